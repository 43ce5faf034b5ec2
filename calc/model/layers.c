/* layers -- blocks of a model as its family builds them, and which layer has which. */
#include <string.h>

#include "calc/model/reader.h"

static const int64_t DIM_MAX[DIM_N] = {[DIM_LAYERS] = LAYERS_MAX,
                                       [DIM_HIDDEN] = 1 << 22,
                                       [DIM_FFN] = 1 << 24,
                                       [DIM_HEADS] = 1 << 16,
                                       [DIM_KV_HEADS] = 1 << 16,
                                       [DIM_HEAD_DIM] = 1 << 16,
                                       [DIM_VOCAB] = 1 << 28,
                                       [DIM_POSITIONS] = (int64_t)1 << 40,
                                       [DIM_WINDOW] = (int64_t)1 << 40,
                                       [DIM_EXPERTS] = EXPERTS_MAX,
                                       [DIM_EXPERTS_PER_TOKEN] = EXPERTS_MAX,
                                       [DIM_EXPERT_WIDTH] = 1 << 24,
                                       [DIM_SHARED_EXPERTS] = EXPERTS_MAX,
                                       [DIM_SHARED_WIDTH] = 1 << 24,
                                       [DIM_DENSE_PREFIX] = LAYERS_MAX,
                                       [DIM_SPARSE_STEP] = LAYERS_MAX,
                                       [DIM_Q_RANK] = 1 << 22,
                                       [DIM_KV_RANK] = 1 << 22,
                                       [DIM_NOPE_DIM] = 1 << 16,
                                       [DIM_ROPE_DIM] = 1 << 16,
                                       [DIM_V_HEAD_DIM] = 1 << 16};

/* The first spelling that the file has; synonyms that contradict each other are refused. */
static enum err_code find_dim(struct reader *r, enum dim d, struct json *out, bool *found)
{
    const char *const *keys = dim_spellings(d);
    int64_t first = 0;
    *found = false;
    for (size_t i = 0; keys[i]; i++) {
        struct json j;
        if (!json_get(&r->text, keys[i], &j) || !json_is_number(&j)) {
            if (!*found && json_get(&r->text, keys[i], &j)) { /* present with a wrong type: report that */
                *out = j;
                *found = true;
                return ERR_OK;
            }
            continue;
        }
        int64_t v;
        TRY(json_int(&j, INT64_MIN, INT64_MAX, &v, r->e));
        if (*found && v != first && d != DIM_POSITIONS && d != DIM_SPARSE_STEP)
            return err_set(r->e, ERR_INPUT, "%s: %s and %s say different numbers (%lld and %lld) for one quantity",
                           out->file, out->path, j.path, (long long)first, (long long)v);
        if (!*found) {
            *out = j;
            first = v;
            *found = true;
        }
    }
    return ERR_OK;
}

/* A quantity of the file, else the family's class default, else fallback; -1 as fallback makes the key required. */
enum err_code reader_dim(struct reader *r, enum dim d, int64_t lo, int64_t fallback, int64_t *out)
{
    struct json j;
    bool found;
    TRY(find_dim(r, d, &j, &found));
    if (found) return json_int(&j, lo, DIM_MAX[d], out, r->e);
    /* null is not absent: classes take it as "derive it", and only an absent key as their default. */
    bool null = false;
    for (const char *const *key = dim_spellings(d); *key; key++) null = null || json_has(&r->text, *key);
    for (const struct family_default *p = r->family->defaults; p->value && !null; p++) {
        if (p->dim != d) continue;
        *out = p->value;
        return ERR_OK;
    }
    if (fallback < 0)
        return err_set(r->e, ERR_INPUT, "%s: %s%s%s is missing, and the %s family has no default for it", r->text.file,
                       r->text.path, *r->text.path ? "." : "", dim_spellings(d)[0], r->family->name);
    *out = fallback;
    return ERR_OK;
}

enum err_code reader_flag(struct reader *r, const struct json *where, const char *key, bool fallback, bool *out)
{
    struct json j;
    *out = fallback;
    return json_get(where, key, &j) ? json_bool(&j, out, r->e) : ERR_OK;
}

static enum err_code read_biases(struct reader *r, struct mixer *x, struct ffn *f)
{
    const struct family *fam = r->family;
    bool attention = false, mlp = false;
    if (fam->bias == BIAS_KEY) {
        TRY(reader_flag(r, &r->text, "attention_bias", fam->bias_default, &attention));
        TRY(reader_flag(r, &r->text, "mlp_bias", false, &mlp));
    }
    x->qkv_bias = attention || fam->bias == BIAS_QKV || fam->bias == BIAS_ALL;
    x->o_bias = attention || fam->bias == BIAS_ALL;
    f->up_bias = f->down_bias = mlp || fam->bias == BIAS_ALL;
    return ERR_OK;
}

static enum err_code read_attention(struct reader *r, struct mixer *x)
{
    const struct model *m = r->m;
    x->kind = MIXER_ATTENTION;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_KV_HEADS, 1, x->heads, &x->kv_heads));
    const int64_t by_width = m->hidden % x->heads == 0 ? m->hidden / x->heads : -1;
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, by_width, &x->head_dim));
    x->v_head_dim = x->head_dim;
    if (x->heads % x->kv_heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: %lld query heads are not a multiple of %lld KV heads", r->text.file,
                       (long long)x->heads, (long long)x->kv_heads);
    x->qk_norm = r->family->qk_norm;
    x->sinks = r->family->sinks;
    return ERR_OK;
}

static enum err_code read_latent(struct reader *r, struct mixer *x)
{
    x->kind = MIXER_LATENT;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    x->kv_heads = x->heads;
    TRY(reader_dim(r, DIM_Q_RANK, 1, 0, &x->q_rank));
    TRY(reader_dim(r, DIM_KV_RANK, 1, -1, &x->kv_rank));
    TRY(reader_dim(r, DIM_NOPE_DIM, 1, -1, &x->head_dim));
    TRY(reader_dim(r, DIM_ROPE_DIM, 1, -1, &x->rope_dim));
    TRY(reader_dim(r, DIM_V_HEAD_DIM, 1, -1, &x->v_head_dim));
    bool bias;
    TRY(reader_flag(r, &r->text, "attention_bias", false, &bias));
    if (bias) return err_set(r->e, ERR_INPUT, "%s: attention_bias with latent attention is not known", r->text.file);
    return ERR_OK;
}

static enum err_code read_dense(struct reader *r, struct ffn *f)
{
    f->kind = FFN_DENSE;
    f->gated = !r->family->ungated;
    return reader_dim(r, DIM_FFN, 1, r->family->ungated ? 4 * r->m->hidden : -1, &f->width);
}

static enum err_code read_experts(struct reader *r, struct ffn *f)
{
    const struct family *fam = r->family;
    f->kind = FFN_MOE;
    f->gated = true;
    TRY(reader_dim(r, DIM_EXPERTS, 1, -1, &f->experts));
    TRY(reader_dim(r, DIM_EXPERTS_PER_TOKEN, 1, -1, &f->experts_per_token));
    if (f->experts_per_token > f->experts)
        return err_set(r->e, ERR_INPUT, "%s: %lld experts per token, but only %lld experts", r->text.file,
                       (long long)f->experts_per_token, (long long)f->experts);
    TRY(reader_dim(r, fam->moe == MOE_EVERY ? DIM_FFN : DIM_EXPERT_WIDTH, 1, -1, &f->width));
    f->up_bias = f->down_bias = fam->expert_bias;
    f->router_bias = fam->router_bias;
    if (fam->moe == MOE_QWEN) {
        if (fam->shared_gate) TRY(reader_dim(r, DIM_SHARED_WIDTH, 1, -1, &f->shared_width));
        f->shared_gate = fam->shared_gate;
    } else if (fam->moe == MOE_DEEPSEEK) {
        int64_t shared;
        TRY(reader_dim(r, DIM_SHARED_EXPERTS, 0, 0, &shared));
        f->shared_width = shared * f->width;
        struct json j;
        const char *method = fam->router_correction ? "noaux_tc" : "";
        if (json_get(&r->text, "topk_method", &j)) TRY(json_str(&j, &method, r->e));
        f->router_correction = strcmp(method, "noaux_tc") == 0;
    }
    return ERR_OK;
}

/* ---- which layer is what ---- */

/* layer_types, one string a layer; sets windowed[] and *given. */
static enum err_code read_layer_types(struct reader *r, bool *windowed, bool *given)
{
    struct json list, item;
    *given = json_get(&r->text, "layer_types", &list);
    if (!*given) return ERR_OK;
    if (!json_is_array(&list)) return json_want(&list, "a list of one string per layer", r->e);
    if (json_len(&list) != (size_t)r->m->layers)
        return err_set(r->e, ERR_INPUT, "%s: %s has %zu entries for %lld layers", list.file, list.path, json_len(&list),
                       (long long)r->m->layers);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        const char *kind;
        TRY(json_str(&item, &kind, r->e));
        windowed[i] = strcmp(kind, "sliding_attention") == 0;
        if (!windowed[i] && strcmp(kind, "full_attention") != 0)
            return json_want(&item,
                             "\"full_attention\" or \"sliding_attention\" (others have cache layouts that the "
                             "family does not describe)",
                             r->e);
    }
    return ERR_OK;
}

static enum err_code plan_windows(struct reader *r, bool *windowed, int64_t *window)
{
    const struct family *fam = r->family;
    const int64_t layers = r->m->layers;
    struct json j;
    bool use, given;
    *window = 0;
    TRY(reader_flag(r, &r->text, "use_sliding_window", fam->window != WINDOW_OPT_IN, &use));
    TRY(read_layer_types(r, windowed, &given)); /* checked whether or not it decides */
    bool listed = false;
    for (int64_t i = 0; i < layers; i++) listed = listed || windowed[i];
    if (fam->window == WINDOW_NONE && listed)
        return err_set(r->e, ERR_INPUT, "%s: layer_types has sliding layers, but the %s family has none", r->text.file,
                       fam->name);
    if (fam->window != WINDOW_NONE && use) TRY(reader_dim(r, DIM_WINDOW, 0, 0, window));
    if (*window == 0) {
        for (int64_t i = 0; i < layers; i++) windowed[i] = false;
        return ERR_OK;
    }
    if (given) return ERR_OK;
    int64_t period = fam->window_period ? fam->window_period : 1, from = 0;
    if (json_get(&r->text, "sliding_window_pattern", &j) || json_get(&r->text, "_sliding_window_pattern", &j))
        TRY(json_int(&j, 1, LAYERS_MAX, &period, r->e));
    if (fam->window == WINDOW_OPT_IN) from = 28; /* class default of max_window_layers */
    if (json_get(&r->text, "max_window_layers", &j)) TRY(json_int(&j, 0, INT64_MAX, &from, r->e));
    for (int64_t i = 0; i < layers; i++) {
        switch (fam->window) {
        case WINDOW_EVERY: windowed[i] = true; break;
        case WINDOW_OPT_IN: windowed[i] = i >= from; break;
        case WINDOW_ALTERNATE: windowed[i] = i % 2 == 0; break;
        case WINDOW_PERIOD: windowed[i] = (i + 1) % period != 0; break;
        case WINDOW_NONE: break;
        }
    }
    return ERR_OK;
}

/* mlp_only_layers: indices whose feed-forward stays dense. */
static enum err_code clear_listed(struct reader *r, const char *key, bool *flags)
{
    struct json list, item;
    if (!json_get(&r->text, key, &list)) return ERR_OK;
    if (!json_is_array(&list)) return json_want(&list, "a list of layer numbers", r->e);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        int64_t at;
        TRY(json_int(&item, 0, r->m->layers - 1, &at, r->e));
        flags[at] = false;
    }
    return ERR_OK;
}

static enum err_code plan_experts(struct reader *r, bool *moe)
{
    const int64_t layers = r->m->layers;
    int64_t prefix = 0, step = 1, experts;
    struct json j, list, item;
    if (r->family->moe == MOE_NONE) return ERR_OK;
    TRY(reader_dim(r, DIM_EXPERTS, 1, -1, &experts));
    if (r->family->moe == MOE_DEEPSEEK) TRY(reader_dim(r, DIM_DENSE_PREFIX, 0, 0, &prefix));
    const bool listed = json_get(&r->text, "moe_layer_freq", &list) && json_is_array(&list);
    if (!listed && r->family->moe != MOE_EVERY) TRY(reader_dim(r, DIM_SPARSE_STEP, 1, 1, &step));
    if (listed && json_len(&list) != (size_t)layers)
        return err_set(r->e, ERR_INPUT, "%s: %s has %zu entries for %lld layers", list.file, list.path, json_len(&list),
                       (long long)layers);
    for (int64_t i = 0; i < layers; i++) {
        int64_t on = 1;
        if (listed && json_at(&list, (size_t)i, NULL, &item)) TRY(json_int(&item, 0, 1, &on, r->e));
        const bool in_step = r->family->moe == MOE_QWEN ? (i + 1) % step == 0 : i % step == 0;
        moe[i] = on && i >= prefix && in_step;
    }
    if (json_get(&r->text, "mlp_only_layers", &j)) TRY(clear_listed(r, "mlp_only_layers", moe));
    return ERR_OK;
}

static const char *kind_label(struct reader *r, const struct mixer *x, const struct ffn *f)
{
    return arena_printf(r->arena, "%s%s + %s", x->window_tokens ? "sliding " : "",
                        x->kind == MIXER_LATENT ? "latent attention" : "attention",
                        f->kind == FFN_MOE ? "experts" : "mlp");
}

enum err_code reader_layers(struct reader *r)
{
    struct model *m = r->m;
    struct mixer mixer = {0};
    struct ffn dense = {0}, experts = {0};
    int64_t window;
    bool *windowed = arena_array(r->arena, (size_t)m->layers, sizeof *windowed);
    bool *moe = arena_array(r->arena, (size_t)m->layers, sizeof *moe);
    m->kinds = arena_array(r->arena, 4, sizeof *m->kinds);
    if (!windowed || !moe || !m->kinds) return err_nomem(r->e);
    TRY(r->family->latent ? read_latent(r, &mixer) : read_attention(r, &mixer));
    TRY(plan_windows(r, windowed, &window));
    TRY(plan_experts(r, moe));
    bool any[2] = {false, false};
    for (int64_t i = 0; i < m->layers; i++) any[moe[i]] = true;
    if (any[0]) TRY(read_dense(r, &dense));
    TRY(read_biases(r, &mixer, &dense));
    if (any[1]) TRY(read_experts(r, &experts));
    size_t at[2][2] = {{0}}; /* 1 + index of the kind, by windowed and moe */
    for (int64_t i = 0; i < m->layers; i++) {
        size_t *slot = &at[windowed[i]][moe[i]];
        if (*slot == 0) {
            struct layer_kind *k = &m->kinds[m->kinds_n];
            *slot = ++m->kinds_n;
            *k = (struct layer_kind){.mixer = mixer, .ffn = moe[i] ? experts : dense, .norms = r->family->norms};
            k->mixer.window_tokens = windowed[i] ? window : 0;
            k->label = kind_label(r, &k->mixer, &k->ffn);
            if (!k->label) return err_nomem(r->e);
        }
        m->kinds[*slot - 1].count++;
    }
    return ERR_OK;
}
