/* layers -- blocks of a model as its family builds them, and which layer has which. */
#include <string.h>

#include "calc/model/pattern.h"
#include "calc/model/reader.h"

/* More different layers than any published model has; blocks that a layer may count as. */
enum { KINDS_MAX = 128, ORDER_SPARE = 2, LOOPS_MAX = 64 };

enum err_code reader_biases(struct reader *r, struct mixer *x, struct ffn *f)
{
    const struct family *fam = r->family;
    const enum bias_rule rule = fam->bias;
    const char *key = fam->bias_key ? fam->bias_key : "attention_bias";
    bool by_key = false, mlp = false;
    const bool keyed = (rule >= BIAS_KEY && rule <= BIAS_KEY_ALL) || rule == BIAS_OUT;
    if (keyed || (rule == BIAS_MLP && fam->bias_key)) {
        TRY(reader_flag(r, &r->text, key, fam->bias_default != fam->bias_inverted, &by_key));
        by_key = by_key != fam->bias_inverted;
    }
    if (rule == BIAS_KEY) TRY(reader_flag(r, &r->text, "mlp_bias", false, &mlp));
    x->qkv_bias = by_key || rule == BIAS_QKV || rule == BIAS_ALL;
    const bool always = rule == BIAS_ALL || rule == BIAS_OUT;
    x->o_bias = (by_key && rule != BIAS_KEY_QKV) || always;
    f->up_bias = f->down_bias = mlp || (by_key && rule == BIAS_KEY_ALL) || rule == BIAS_MLP || always;
    return ERR_OK;
}

static enum err_code read_positions(struct reader *r, struct mixer *x)
{
    const struct family *fam = r->family;
    bool alibi = false;
    x->position = fam->positions ? POSITION_NONE : fam->position;
    if (fam->alibi_key) TRY(reader_flag(r, &r->text, fam->alibi_key, false, &alibi));
    if (alibi) x->position = POSITION_ALIBI;
    return ERR_OK;
}

static enum err_code read_attention(struct reader *r, struct mixer *x)
{
    const struct model *m = r->m;
    const struct family *fam = r->family;
    bool one = false, normed = true;
    x->kind = MIXER_ATTENTION;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    if (fam->multi_query_key) TRY(reader_flag(r, &r->text, fam->multi_query_key, fam->multi_query_default, &one));
    if (one)
        x->kv_heads = 1;
    else
        TRY(reader_dim(r, DIM_KV_HEADS, 1, x->heads, &x->kv_heads));
    const int64_t by_width = m->hidden % x->heads == 0 ? m->hidden / x->heads : -1;
    struct json j;
    bool stated = by_width > 0;
    for (const char *const *key = dim_spellings(DIM_HEAD_DIM); *key && !stated; key++)
        stated = json_get(&r->text, *key, &j);
    for (const struct family_default *p = fam->defaults; p->value && !stated; p++) stated = p->dim == DIM_HEAD_DIM;
    if (!stated)
        return err_set(r->e, ERR_INPUT, "%s: a width of %lld is no multiple of %lld heads, and no head_dim is stated",
                       r->text.file, (long long)m->hidden, (long long)x->heads);
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, by_width, &x->head_dim));
    x->v_head_dim = x->head_dim;
    if (x->heads % x->kv_heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: %lld query heads are not a multiple of %lld KV heads", r->text.file,
                       (long long)x->heads, (long long)x->kv_heads);
    if (fam->qk_norm_key) TRY(reader_flag(r, &r->text, fam->qk_norm_key, fam->qk_norm_default, &normed));
    x->qk_norm = normed ? fam->qk_norm : QK_NORM_NONE;
    x->sinks = fam->sinks;
    x->output_gate = fam->output_gate;
    return read_positions(r, x);
}

static enum err_code read_latent(struct reader *r, struct mixer *x)
{
    x->kind = MIXER_LATENT;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    x->kv_heads = x->heads;
    TRY(reader_dim(r, DIM_Q_RANK, 1, 0, &x->q_rank));
    TRY(reader_dim(r, DIM_KV_RANK, 1, -1, &x->kv_rank));
    TRY(reader_dim(r, DIM_NOPE_DIM, 1, -1, &x->head_dim));
    TRY(reader_dim(r, DIM_ROPE_DIM, 0, -1, &x->rope_dim)); /* 0: none shares it, and nothing turns */
    const bool by_width = r->family->v_head_by_width && r->m->hidden % x->heads == 0;
    TRY(reader_dim(r, DIM_V_HEAD_DIM, 1, by_width ? r->m->hidden / x->heads : -1, &x->v_head_dim));
    bool bias;
    TRY(reader_flag(r, &r->text, "attention_bias", false, &bias));
    x->position = x->rope_dim > 0 ? r->family->position : POSITION_NONE;
    x->sinks = r->family->sinks;
    if (bias) return err_set(r->e, ERR_INPUT, "%s: attention_bias with latent attention is not known", r->text.file);
    return ERR_OK;
}

enum err_code reader_dense(struct reader *r, struct ffn *f)
{
    const struct family *fam = r->family;
    const int64_t divisor = fam->ffn_divisor ? fam->ffn_divisor : 1;
    f->kind = FFN_DENSE;
    f->gated = !fam->ungated;
    f->act_params = fam->act_params;
    f->inner_norm = fam->inner_norm;
    TRY(reader_dim(r, DIM_FFN, 1, fam->four ? 4 * r->m->hidden : fam->layer_widths ? divisor : -1, &f->width));
    if (f->width % divisor != 0)
        return err_set(r->e, ERR_INPUT, "%s: an MLP width of %lld, which the %s family divides by %lld", r->text.file,
                       (long long)f->width, fam->name, (long long)divisor);
    f->width /= divisor;
    return ERR_OK;
}

/* ---- which layer is what ---- */

/* layer_types, one string a layer; sets windowed[] and *given. */
static enum err_code read_layer_types(struct reader *r, bool *windowed, bool *given)
{
    struct json list, item;
    int64_t ahead = 0; /* layers of multi-token prediction, which may be in the list too */
    *given = json_get(&r->text, "layer_types", &list);
    if (!*given) return ERR_OK;
    if (!json_is_array(&list)) return json_want(&list, "a list of one string per layer", r->e);
    if (json_get(&r->text, "num_nextn_predict_layers", &item)) TRY(json_int(&item, 0, LAYERS_MAX, &ahead, r->e));
    if (json_len(&list) != (size_t)r->m->layers && json_len(&list) != (size_t)(r->m->layers + ahead))
        return err_set(r->e, ERR_INPUT, "%s: %s has %zu entries for %lld layers", list.file, list.path, json_len(&list),
                       (long long)r->m->layers);
    for (size_t i = 0; i < (size_t)r->m->layers && json_at(&list, i, NULL, &item); i++) {
        const char *kind;
        TRY(json_str(&item, &kind, r->e));
        const char *local = r->family->window == WINDOW_CHUNK ? "chunked_attention" : "sliding_attention";
        windowed[i] = strcmp(kind, local) == 0;
        const char *other = r->family->full_word;
        if (!windowed[i] && strcmp(kind, "full_attention") != 0 && !(other && strcmp(kind, other) == 0))
            return json_want(&item,
                             "\"full_attention\" or \"sliding_attention\" (others have cache layouts that the "
                             "family does not describe)",
                             r->e);
    }
    return ERR_OK;
}

/* Windows by the keys beside layer_types; *key: the one that the file has, NULL where the class alone decides. */
static enum err_code derive_windows(struct reader *r, bool *windowed, const char **key)
{
    const struct family *fam = r->family;
    int64_t period = fam->window_period ? fam->window_period : 1, from = 0;
    struct json j;
    *key = NULL;
    if ((fam->period_key && json_get(&r->text, fam->period_key, &j)) ||
        json_get(&r->text, "sliding_window_pattern", &j) || json_get(&r->text, "_sliding_window_pattern", &j)) {
        if (json_is_string(&j) || fam->window == WINDOW_PERIOD || fam->window == WINDOW_FIRST) *key = j.path;
        if (json_is_string(&j)) return pattern_letters(r, &j, windowed);
        TRY(json_int(&j, 1, LAYERS_MAX, &period, r->e));
    }
    if (fam->window == WINDOW_LISTED) {
        *key = "hybrid_layer_pattern";
        return pattern_numbers(r, *key, windowed);
    }
    if (fam->window == WINDOW_CHUNK) {
        *key = json_get(&r->text, "no_rope_layers", &j) && json_len(&j) > 0 ? "no_rope_layers" : NULL;
        return pattern_rope(r, windowed);
    }
    if (fam->window == WINDOW_OPT_IN) from = 28; /* class default of max_window_layers */
    if (json_get(&r->text, "max_window_layers", &j)) {
        if (fam->window == WINDOW_OPT_IN) *key = j.path;
        TRY(json_int(&j, 0, INT64_MAX, &from, r->e));
    }
    for (int64_t i = 0; i < r->m->layers; i++) {
        switch (fam->window) {
        case WINDOW_EVERY: windowed[i] = true; break;
        case WINDOW_OPT_IN: windowed[i] = i >= from; break;
        case WINDOW_ALTERNATE: windowed[i] = i % 2 == 0; break;
        case WINDOW_FIRST: windowed[i] = i % period != 0; break;
        case WINDOW_PERIOD: windowed[i] = (i + 1) % period != 0; break;
        case WINDOW_NONE:
        case WINDOW_TYPES:
        case WINDOW_LISTED:
        case WINDOW_CHUNK: break;
        }
    }
    return ERR_OK;
}

/* layer_types decides; another key of the file must say the same. */
static enum err_code check_windows(struct reader *r, const bool *windowed)
{
    bool *other = arena_array(r->arena, (size_t)r->m->layers, sizeof *other);
    const char *key;
    if (!other) return err_nomem(r->e);
    if (r->family->window == WINDOW_LISTED && !json_has(&r->text, "hybrid_layer_pattern")) return ERR_OK;
    TRY(derive_windows(r, other, &key));
    for (int64_t i = 0; i < r->m->layers && key; i++)
        if (other[i] != windowed[i])
            return err_set(r->e, ERR_INPUT,
                           "%s: layer_types and %s contradict each other about the window of layer %lld", r->text.file,
                           key, (long long)i);
    return ERR_OK;
}

static enum err_code plan_windows(struct reader *r, bool *windowed, int64_t *window)
{
    const struct family *fam = r->family;
    const int64_t layers = r->m->layers;
    const char *key;
    bool use, given;
    *window = 0;
    if (fam->own_types) return ERR_OK;
    TRY(reader_flag(r, &r->text, "use_sliding_window", fam->window != WINDOW_OPT_IN, &use));
    TRY(read_layer_types(r, windowed, &given)); /* checked whether or not it decides */
    bool listed = false;
    for (int64_t i = 0; i < layers; i++) listed = listed || windowed[i];
    if (fam->window == WINDOW_NONE && listed)
        return err_set(r->e, ERR_INPUT, "%s: layer_types has sliding layers, but the %s family has none", r->text.file,
                       fam->name);
    if (fam->window != WINDOW_NONE && use) TRY(reader_dim(r, DIM_WINDOW, 0, 0, window));
    if (*window == 0 && listed)
        return err_set(r->e, ERR_INPUT, "%s: layer_types has sliding layers, but %s, so they have no window",
                       r->text.file, use ? "no sliding_window is stated" : "use_sliding_window is false");
    if (*window == 0) return ERR_OK;
    TRY(given ? check_windows(r, windowed) : derive_windows(r, windowed, &key));
    if (fam->full_last) windowed[layers - 1] = false;
    return ERR_OK;
}

/* Layers that attend to an earlier one's cache need one that has it: of the same reach. */
static enum err_code check_sharing(struct reader *r)
{
    const struct model *m = r->m;
    bool owned[2] = {false, false};
    for (size_t i = 0; i < m->order_n; i++) {
        const struct mixer *x = &m->kinds[m->order[i].kind].mixer;
        if (x->kind != MIXER_ATTENTION) continue;
        const bool windowed = x->window_tokens > 0;
        if (x->shares_kv && !owned[windowed])
            return err_set(r->e, ERR_INPUT,
                           "%s: layer %lld attends to the cache of an earlier layer %s a window, and there is none",
                           r->text.file, (long long)m->order[i].layer, windowed ? "with" : "without");
        owned[windowed] = owned[windowed] || !x->shares_kv;
    }
    return ERR_OK;
}

static const char *kind_label(struct arena *a, const struct layer_kind *k)
{
    const struct mixer *x = &k->mixer;
    const struct ffn *f = &k->ffn;
    const char *mixer =
        x->kind == MIXER_RECURRENT            ? recurrent_name(x)
        : x->doubled_input && k->one_residual ? k->borrowed ? "shared attention again" : "shared attention"
        : x->images                           ? "attention to images"
        : x->pool_tokens > 0      ? x->index_heads > 0 ? "attention to chosen entries" : "attention to entries"
        : x->one_vector           ? "attention"
        : x->kind == MIXER_LATENT ? "latent attention"
        : x->shares_kv            ? "attention to shared KV"
        : x->of_source            ? "attention to the source"
                                  : "attention";
    const char *ffn = f->kind == FFN_MOE ? "experts" : f->residual_unit ? "residual unit" : "mlp";
    if (x->kind == MIXER_NONE || f->kind == FFN_NONE)
        return x->kind != MIXER_NONE ? mixer : f->kind != FFN_NONE ? ffn : "nothing";
    const char *local = x->stripe_every ? "striped " : !x->window_tokens ? "" : x->chunked ? "chunked " : "sliding ";
    const char *again = k->borrowed && !k->one_residual ? " again" : "";
    return arena_printf(a, "%s%s%s%s %s %s", k->encodes ? "encoder: " : "", local, mixer, again,
                        k->parallel ? "|" : "+", ffn);
}

enum err_code reader_count_kind(struct arena *a, struct model *m, int64_t layer, const struct layer_kind *k,
                                struct err *e)
{
    const size_t most =
        ORDER_SPARE * (size_t)m->layers * (size_t)(m->loops > 1 ? m->loops : 1) + (size_t)m->encoder.layers;
    size_t at = 0;
    if (!m->kinds) {
        m->kinds = arena_array(a, KINDS_MAX, sizeof *m->kinds);
        m->order = arena_array(a, most, sizeof *m->order);
        if (!m->kinds || !m->order) return err_nomem(e);
    }
    while (at < m->kinds_n && (!model_same_layer(&m->kinds[at], k) || m->kinds[at].formats != k->formats)) at++;
    if (at == KINDS_MAX || m->order_n == most)
        return err_set(e, ERR_INPUT, "%s: more than %d kinds of layers", m->source, KINDS_MAX);
    if (at == m->kinds_n) {
        struct layer_kind *new = &m->kinds[m->kinds_n++];
        memcpy(new, k, sizeof *new);
        new->count = 0;
        new->label = kind_label(a, new);
        if (!new->label) return err_nomem(e);
    }
    m->kinds[at].count++;
    m->order[m->order_n++] = (struct layer_place){layer, at};
    return ERR_OK;
}

/* Layers that run again, with the weights that they have and caches of their own. */
static enum err_code run_again(struct reader *r)
{
    struct model *m = r->m;
    const size_t once = m->order_n;
    int64_t window = 0;
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    if (!k) return err_nomem(r->e);
    if (r->family->first_too) TRY(reader_int(r, "loop_window_size", 1, INT64_C(1) << 40, 64, &window)); /* class */
    for (int64_t loop = 1; loop < m->loops; loop++)
        for (size_t i = 0; i < once; i++) {
            memcpy(k, &m->kinds[m->order[i].kind], sizeof *k);
            k->borrowed = true;
            k->mixer.first_too = r->family->first_too;
            if (r->family->first_too) k->mixer.window_tokens = window;
            TRY(reader_count_kind(r->arena, m, m->order[i].layer, k, r->e));
        }
    return ERR_OK;
}

/* Files of a family with latents whose attention has none: use_mla is false, or both widths of keys are 0 (vLLM looks
 * at the widths alone). */
static enum err_code has_no_latents(struct reader *r, bool *out)
{
    struct json j;
    int64_t nope = 1, rope = 1;
    bool latent;
    TRY(reader_flag(r, &r->text, "use_mla", true, &latent));
    if (json_get(&r->text, "qk_nope_head_dim", &j)) TRY(json_int(&j, 0, INT64_C(1) << 20, &nope, r->e));
    if (json_get(&r->text, "qk_rope_head_dim", &j)) TRY(json_int(&j, 0, INT64_C(1) << 20, &rope, r->e));
    *out = !latent || (nope == 0 && rope == 0);
    return ERR_OK;
}

enum err_code reader_attention(struct reader *r, struct mixer *x)
{
    bool plain = true, bias;
    if (r->family->attention) return r->family->attention(r, x);
    if (r->family->latent) TRY(has_no_latents(r, &plain));
    if (!plain) return read_latent(r, x);
    if (r->family->latent) {
        TRY(reader_flag(r, &r->text, "attention_bias", false, &bias));
        if (bias)
            return err_set(r->e, ERR_INPUT, "%s: attention_bias without latents is not known of the %s family",
                           r->text.file, r->family->name);
    }
    return read_attention(r, x);
}

enum err_code reader_layers(struct reader *r)
{
    struct model *m = r->m;
    const struct family *fam = r->family;
    struct mixer mixer = {0};
    struct ffn dense = {0}, experts = {0};
    int64_t window;
    bool parallel = fam->parallel;
    bool *windowed = arena_array(r->arena, (size_t)m->layers, sizeof *windowed);
    bool *moe = arena_array(r->arena, (size_t)m->layers, sizeof *moe);
    bool *turns = arena_array(r->arena, (size_t)m->layers, sizeof *turns);
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    if (!windowed || !moe || !turns || !k) return err_nomem(r->e);
    if (fam->hybrid != HYBRID_NONE) return reader_hybrid(r);
    if (fam->loops_key) TRY(reader_int(r, fam->loops_key, 1, LOOPS_MAX, fam->loops_default, &m->loops));
    m->loops_bare = fam->first_too;
    if (fam->bare_loops_key) TRY(reader_flag(r, &r->text, fam->bare_loops_key, false, &m->loops_bare));
    m->exit_gate = fam->exit_gate;
    TRY(reader_attention(r, &mixer));
    if (fam->parallel_key) TRY(reader_flag(r, &r->text, fam->parallel_key, fam->parallel, &parallel));
    TRY(plan_windows(r, windowed, &window));
    TRY(pattern_experts(r, moe));
    TRY(pattern_turns(r, windowed, turns));
    bool any[2] = {false, false};
    for (int64_t i = 0; i < m->layers; i++) any[moe[i]] = true;
    if (any[0]) TRY(reader_dense(r, &dense));
    TRY(reader_biases(r, &mixer, &dense));
    if (any[1]) TRY(reader_experts(r, &experts));
    experts.shared_bias = any[1] && fam->shared_bias && dense.up_bias;
    for (int64_t i = 0; i < m->layers; i++) {
        r->layer = i;
        memcpy(&k->mixer, &mixer, sizeof mixer);
        memcpy(&k->ffn, moe[i] ? &experts : &dense, sizeof dense);
        k->norms = fam->norms;
        k->parallel = parallel;
        k->mixer.window_tokens = windowed[i] ? window : 0;
        k->mixer.chunked = windowed[i] && fam->window == WINDOW_CHUNK;
        if (!turns[i]) k->mixer.position = POSITION_NONE;
        if (fam->vary) TRY(fam->vary(r, i, k));
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
        if (!fam->further) continue;
        TRY(fam->further(r, i, k));
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
    }
    TRY(run_again(r));
    return check_sharing(r);
}
