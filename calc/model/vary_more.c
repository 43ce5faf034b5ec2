/* vary_more -- families whose layers follow another's but for a key or two, and layers of two blocks. */
#include <string.h>

#include "calc/model/vary.h"

/* InternLM3: one key for the bias of q, k and v, another for that of everything else. */
enum err_code vary_internlm3(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    TRY(reader_flag(r, &r->text, "bias", false, &k->mixer.o_bias));
    k->ffn.up_bias = k->ffn.down_bias = k->mixer.o_bias;
    return ERR_OK;
}

/* OLMo hybrid: layers that attend rotate where the file names a base, and published ones do not. */
enum err_code vary_olmo_hybrid(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    (void)layer;
    if (k->mixer.kind != MIXER_ATTENTION) return ERR_OK;
    const bool rotates = json_get(&r->text, "rope_parameters.rope_theta", &j) || json_get(&r->text, "rope_theta", &j);
    k->mixer.position = rotates ? POSITION_ROPE : POSITION_NONE;
    return ERR_OK;
}

/* One of `words`, by its number. */
static enum err_code word_of(struct reader *r, const struct json *j, const char *const *words, size_t n, size_t *at)
{
    const char *word;
    TRY(json_str(j, &word, r->e));
    for (*at = 0; *at < n; ++*at)
        if (strcmp(word, words[*at]) == 0) return ERR_OK;
    return json_want(j, "\"global\" or \"local\"", r->e);
}

/* GPT-Neo: attention_types, [[words, times], ...], one word a layer when written out; local layers see window_size
 * tokens. */
enum err_code vary_gpt_neo(struct reader *r, int64_t layer, struct layer_kind *k)
{
    static const char *const WORDS[] = {"global", "local"};
    struct json types, part, words, times, item;
    int64_t at = 0, n, window = 256; /* class default; not a unit */
    size_t local = 0;
    if (json_get(&r->text, "window_size", &item)) TRY(json_int(&item, 1, 1 << 24, &window, r->e));
    if (!json_get(&r->text, "attention_types", &types))
        return err_set(r->e, ERR_INPUT, "%s: attention_types is missing: which layers see a window", r->text.file);
    if (!json_is_array(&types)) return json_want(&types, "a list of [words, times]", r->e);
    bool found = false;
    for (size_t i = 0; json_at(&types, i, NULL, &part); i++) {
        if (!json_is_array(&part) || !json_at(&part, 0, NULL, &words) || !json_is_array(&words) ||
            json_len(&words) == 0 || !json_at(&part, 1, NULL, &times))
            return json_want(&part, "[words, times]", r->e);
        TRY(json_int(&times, 0, LAYERS_MAX, &n, r->e));
        const int64_t len = (int64_t)json_len(&words);
        if (layer >= at && layer < at + n * len) {
            (void)json_at(&words, (size_t)((layer - at) % len), NULL, &item);
            TRY(word_of(r, &item, WORDS, sizeof WORDS / sizeof WORDS[0], &local));
            found = true;
        }
        at += n * len;
    }
    if (!found || at != r->m->layers) return json_want(&types, "as many words as there are layers", r->e);
    k->mixer.window_tokens = local ? window : 0;
    return ERR_OK;
}

/* A key that must say one word for the row to hold. */
static enum err_code want_word(struct reader *r, const char *key, const char *wanted)
{
    struct json j;
    const char *word;
    if (!json_get(&r->text, key, &j))
        return err_set(r->e, ERR_INPUT, "%s: %s is missing; the %s family describes \"%s\" alone", r->text.file, key,
                       r->family->name, wanted);
    TRY(json_str(&j, &word, r->e));
    return strcmp(word, wanted) == 0 ? ERR_OK
                                     : err_set(r->e, ERR_INPUT, "%s: %s: the %s family describes \"%s\" alone", j.file,
                                               j.path, r->family->name, wanted);
}

/* Jais: published models have ALiBi and a gated MLP. */
enum err_code vary_jais(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    (void)k;
    TRY(want_word(r, "position_embedding_type", "alibi"));
    return want_word(r, "activation_function", "swiglu");
}

/* Classes of Step list the layers with experts, vLLM takes all but the first: no guess. */
static enum err_code want_named(struct reader *r)
{
    if (json_has(&r->text, "moe_layers_enum") || json_has(&r->text, "mlp_layer_types")) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: moe_layers_enum is missing, and the %s family has no default for it",
                   r->text.file, r->family->name);
}

/* Step-3: one KV head; queries of all heads are made of one normed product (multi-matrix factorisation). */
enum err_code vary_step3(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json j;
    (void)layer;
    TRY(want_named(r));
    x->q_rank = 2048; /* not a unit */
    if (json_get(&r->text, "share_q_dim", &j)) TRY(json_int(&j, 1, 1 << 22, &x->q_rank, r->e));
    x->kv_heads = 1;
    return ERR_OK;
}

/* Entry `layer` of a list of one number a layer. */
static enum err_code number_of(struct reader *r, const char *key, int64_t layer, struct json *out, bool *found)
{
    struct json list;
    *found = json_get(&r->text, key, &list);
    if (!*found) return ERR_OK;
    if (!json_is_array(&list) || json_len(&list) != (size_t)r->m->layers || !json_at(&list, (size_t)layer, NULL, out))
        return json_want(&list, "a list of one number per layer", r->e);
    return ERR_OK;
}

/* Step-3.5: layers of attention_other_setting.attention_type have heads of their own; a gate of one number a head.
 * Classes differ in what a missing layer_types means (transformers: none slides; vLLM: every second): no guess. */
enum err_code vary_step3p5(struct reader *r, int64_t layer, struct layer_kind *k)
{
    static const char *const KEYS[] = {"attention_other_setting.num_attention_heads",
                                       "attention_other_setting.num_attention_groups",
                                       "attention_other_setting.head_dim"};
    struct mixer *x = &k->mixer;
    int64_t *const into[] = {&x->heads, &x->kv_heads, &x->head_dim};
    struct json j;
    const char *type = "";
    bool by_layer;
    TRY(want_named(r));
    if (json_get(&r->text, "sliding_window", &j) && !json_has(&r->text, "layer_types"))
        return err_set(r->e, ERR_INPUT, "%s: layer_types is missing, and the %s family has no default for it",
                       r->text.file, r->family->name);
    TRY(number_of(r, "num_attention_heads_per_layer", layer, &j, &by_layer)); /* as transformers saves it */
    if (by_layer) TRY(json_int(&j, 1, 1 << 16, &x->heads, r->e));
    const bool saved = by_layer || json_has(&r->text, "num_sliding_attention_heads");
    if (x->window_tokens > 0 && !by_layer)
        TRY(reader_int(r, "num_sliding_attention_heads", 1, 1 << 16, x->heads, &x->heads));
    TRY(reader_flag(r, &r->text, "use_head_wise_attn_gate", saved, &x->head_gate));
    if (k->ffn.kind == FFN_MOE) /* the class has both always, and files that it saves do not say so */
        TRY(reader_flag(r, &r->text, "use_moe_router_bias", saved, &k->ffn.router_correction));
    if (!json_get(&r->text, "attention_other_setting", &j)) return ERR_OK;
    if (!json_get(&r->text, "attention_other_setting.attention_type", &j))
        return err_set(r->e, ERR_INPUT, "%s: attention_other_setting.attention_type is missing", r->text.file);
    TRY(json_str(&j, &type, r->e));
    const bool slides = strcmp(type, "sliding_attention") == 0;
    if (!slides && strcmp(type, "full_attention") != 0)
        return json_want(&j, "\"sliding_attention\" or \"full_attention\"", r->e);
    if (slides != (x->window_tokens > 0)) return ERR_OK;
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        if (json_get(&r->text, KEYS[i], &j)) TRY(json_int(&j, 1, 1 << 16, into[i], r->e));
    x->v_head_dim = x->head_dim;
    if (x->heads % x->kv_heads == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %lld query heads are not a multiple of %lld KV heads", r->text.file,
                   (long long)x->heads, (long long)x->kv_heads);
}

/* Ling with linear attention: no biases; shared experts of a width of their own. */
enum err_code vary_ling(struct reader *r, int64_t layer, struct layer_kind *k)
{
    static const char *const BIASES[] = {"use_bias", "use_qkv_bias"};
    struct ffn *f = &k->ffn;
    struct json j;
    int64_t width = f->width, groups, heads;
    (void)layer;
    if (json_get(&r->text, "group_norm_size", &j)) {
        TRY(json_int(&j, 1, 1 << 16, &groups, r->e));
        TRY(reader_dim(r, DIM_HEADS, 1, -1, &heads));
        if (heads % groups != 0) return json_want(&j, "a divisor of the number of heads", r->e);
    }
    for (size_t i = 0; i < sizeof BIASES / sizeof BIASES[0]; i++) {
        bool biased;
        TRY(reader_flag(r, &r->text, BIASES[i], false, &biased));
        if (biased)
            return err_set(r->e, ERR_INPUT, "%s: %s is true, which the %s family does not describe", r->text.file,
                           BIASES[i], r->family->name);
    }
    if (f->kind != FFN_MOE || !json_get(&r->text, "moe_shared_expert_intermediate_size", &j)) return ERR_OK;
    TRY(json_int(&j, 1, 1 << 24, &width, r->e));
    f->shared_width = f->shared_width / f->width * width;
    return ERR_OK;
}

/* Trinity: queries and their gate are matrices of their own. */
enum err_code vary_afmoe(struct reader *r, int64_t layer, struct layer_kind *k)
{
    int64_t dense;
    (void)layer;
    TRY(reader_dim(r, DIM_DENSE_PREFIX, 0, -1, &dense));
    if (dense > r->m->layers)
        return err_set(r->e, ERR_INPUT, "%s: num_dense_layers is %lld of %lld layers", r->text.file, (long long)dense,
                       (long long)r->m->layers);
    k->mixer.gate_apart = true;
    return ERR_OK;
}

/* HyperCLOVA X: norms after both blocks too, where the file says so. */
enum err_code vary_hyperclovax(struct reader *r, int64_t layer, struct layer_kind *k)
{
    bool after;
    (void)layer;
    TRY(reader_flag(r, &r->text, "use_post_norm", true, &after));
    if (after) k->norms += 2;
    return ERR_OK;
}

/* Jais 2: biases of the MLP unless the file says otherwise. */
enum err_code vary_jais2(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    TRY(reader_flag(r, &r->text, "mlp_bias", true, &k->ffn.up_bias));
    k->ffn.down_bias = k->ffn.up_bias;
    return ERR_OK;
}

/* TeleChat 2: biases of the last product of either block alone. */
enum err_code vary_telechat2(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    (void)layer;
    k->mixer.o_bias = k->ffn.down_bias = true;
    return ERR_OK;
}

/* Granite with windows: a base of the rotation by layer, 0 none. */
enum err_code vary_granite_swa(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    bool found;
    double base = 1;
    TRY(number_of(r, "layer_rope_theta", layer, &j, &found));
    if (found) TRY(json_num(&j, &base, r->e));
    if (!(base > 0)) k->mixer.position = POSITION_NONE;
    return ERR_OK;
}

/* Arctic: layers whose number, counted from 1, moe_layer_frequency divides have experts, and beside them, where the
 * file says so, an MLP as wide as the model with a norm of its own; the others an MLP. Published files say it under two
 * names: parallel_attn_mlp_res (the class's; off by default) and use_residual (vLLM's). Source: configuration_arctic.py
 * of the published models, vLLM arctic.py. */
enum err_code vary_arctic(struct reader *r, int64_t layer, struct layer_kind *k)
{
    static const char *const KEYS[] = {"parallel_attn_mlp_res", "use_residual"};
    struct json j;
    bool said[2] = {false, false}, beside = false;
    int64_t every = 2; /* class default */
    if (json_get(&r->text, "moe_layer_frequency", &j)) TRY(json_int(&j, 1, LAYERS_MAX, &every, r->e));
    for (size_t i = 0; i < 2; i++) {
        if (!json_get(&r->text, KEYS[i], &j)) continue;
        bool on;
        TRY(json_bool(&j, &on, r->e));
        if (i == 1 && said[0] && on != beside)
            return err_set(r->e, ERR_INPUT, "%s: %s and %s contradict each other about an MLP beside the experts",
                           r->text.file, KEYS[0], KEYS[1]);
        said[i] = true;
        beside = on;
    }
    if ((layer + 1) % every != 0) {
        memset(&k->ffn, 0, sizeof k->ffn);
        return reader_dense(r, &k->ffn);
    }
    if (!beside) return ERR_OK;
    k->ffn.shared_width = r->m->hidden;
    k->norms++;
    return ERR_OK;
}

/* Apertus: xIELU learns two numbers; another nonlinearity none. */
enum err_code vary_apertus(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    const char *act = "xielu";
    (void)layer;
    if (json_get(&r->text, "hidden_act", &j)) TRY(json_str(&j, &act, r->e));
    if (strcmp(act, "xielu") != 0) k->ffn.act_params = 0;
    return ERR_OK;
}

/* Apertus 1.5: the output head may know fewer tokens than the embedding, which has those of images and sound too. */
enum err_code extend_apertus(struct reader *r)
{
    struct model *m = r->m;
    int64_t rows;
    TRY(reader_int(r, "output_vocab_size", 1, m->vocab, m->vocab, &rows));
    if (rows == m->vocab) return ERR_OK;
    if (m->tied)
        return err_set(r->e, ERR_INPUT, "%s: tied to the embedding a head cannot know %lld of %lld tokens",
                       r->text.file, (long long)rows, (long long)m->vocab);
    m->draft.head_rows = rows;
    return ERR_OK;
}

/* A.X K1: a norm of what the experts give. */
enum err_code vary_axk1(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    (void)layer;
    if (k->ffn.kind == FFN_MOE) k->norms++;
    return ERR_OK;
}

/* Laguna: query heads by layer, and a gate of one number a head, or of one an element where `gating` says other than
 * true or "per-head" (modeling_laguna.py: false too). */
enum err_code vary_laguna(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json j;
    bool found;
    const char *gating = "per-head";
    x->head_gate = true;
    if (json_get(&r->text, "gating", &j)) {
        if (json_is_string(&j))
            TRY(json_str(&j, &gating, r->e));
        else
            TRY(json_bool(&j, &x->head_gate, r->e));
    }
    if (strcmp(gating, "per-head") != 0) x->head_gate = false;
    x->output_gate = x->gate_apart = !x->head_gate;
    TRY(number_of(r, "num_attention_heads_per_layer", layer, &j, &found));
    if (found) TRY(json_int(&j, 1, 1 << 16, &x->heads, r->e));
    if (x->heads % x->kv_heads == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %lld query heads are not a multiple of %lld KV heads", r->text.file,
                   (long long)x->heads, (long long)x->kv_heads);
}

/* Grok 2: without residual_moe the experts are alone. */
enum err_code vary_grok2(struct reader *r, int64_t layer, struct layer_kind *k)
{
    bool beside;
    (void)layer;
    TRY(reader_flag(r, &r->text, "residual_moe", false, &beside));
    if (!beside) k->ffn.shared_width = 0;
    return ERR_OK;
}

/* LongCat-Flash: a layer attends twice. Experts run beside the first MLP, and are added behind the second half. */
enum err_code further_longcat(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    memset(&k->ffn, 0, sizeof k->ffn);
    return reader_dense(r, &k->ffn);
}

/* Cohere 2 with experts: layers before the experts have a width and a pattern of windows of their own, and rotate when
 * they are full; behind them full layers know no positions. Source: transformers, configuration_cohere2_moe.py,
 * modeling_cohere2_moe.py. */
enum err_code vary_cohere2_moe(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    int64_t prefix, every = 1, period = 4, window; /* class defaults */
    const bool dense = k->ffn.kind == FFN_DENSE;
    TRY(reader_dim(r, DIM_DENSE_PREFIX, 0, 0, &prefix));
    TRY(reader_dim(r, DIM_WINDOW, 0, 0, &window));
    if (json_get(&r->text, "prefix_dense_sliding_window_pattern", &j)) TRY(json_int(&j, 1, LAYERS_MAX, &every, r->e));
    if (json_get(&r->text, "sliding_window_pattern", &j)) TRY(json_int(&j, 1, LAYERS_MAX, &period, r->e));
    if (!json_has(&r->text, "layer_types")) {
        const bool slides = layer < prefix ? (layer + 1) % every != 0 : (layer - prefix + 1) % period != 0;
        k->mixer.window_tokens = slides ? window : 0;
    }
    k->mixer.position = k->mixer.window_tokens > 0 || (dense && every == 1) ? POSITION_ROPE : POSITION_NONE;
    if (!dense || !json_get(&r->text, "prefix_dense_intermediate_size", &j)) return ERR_OK;
    return json_int(&j, 1, 1 << 24, &k->ffn.width, r->e);
}

/* Its norms have statistics of one kind or the other. */
enum err_code extend_cohere2_moe(struct reader *r)
{
    struct json j;
    r->m->norm = json_get(&r->text, "rms_norm_eps", &j) ? NORM_RMS : NORM_LAYER;
    return ERR_OK;
}

/* JetMoE: as many heads for each chosen expert as there are of keys. Source: transformers, modular_jetmoe.py and
 * configuration_jetmoe.py. */
enum err_code attention_jetmoe(struct reader *r, struct mixer *x)
{
    int64_t chosen;
    x->kind = MIXER_ATTENTION;
    x->routed_queries = true;
    TRY(reader_dim(r, DIM_KV_HEADS, 1, -1, &x->kv_heads));
    TRY(reader_dim(r, DIM_HEAD_DIM, 1, -1, &x->head_dim));
    TRY(reader_dim(r, DIM_EXPERTS_PER_TOKEN, 1, -1, &chosen));
    x->v_head_dim = x->head_dim;
    x->heads = x->kv_heads * chosen;
    return ERR_OK;
}

enum err_code vary_jetmoe(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    (void)layer;
    k->ffn.sum_bias = true;
    return ERR_OK;
}
