#include "calc/model/vary.h"

#include <math.h>
#include <string.h>

/* A flag that must have one value for the row to hold. */
static enum err_code want_flag(struct reader *r, const char *key, bool wanted, bool fallback, const char *meaning)
{
    bool v;
    TRY(reader_flag(r, &r->text, key, fallback, &v));
    struct json j;
    if (v == wanted) return ERR_OK;
    if (!json_get(&r->text, key, &j))
        return err_set(
            r->e, ERR_INPUT,
            "%s: %s is missing, which means %s, so %s: the %s family does not describe that; --set %s=%s where "
            "there are none",
            r->text.file, key, v ? "true" : "false", meaning, r->family->name, key, v ? "false" : "true");
    return err_set(r->e, ERR_INPUT, "%s: %s is %s, which means %s: the %s family does not describe that", r->text.file,
                   key, v ? "true" : "false", meaning, r->family->name);
}

/* Falcon: the new architecture has grouped heads and a norm for each branch, the old one has one KV head (or all of
 * them) and one norm for both. Files of before the key say it by n_head_kv. Source: transformers, modeling_falcon. */
enum err_code vary_falcon(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json j;
    bool new, one;
    int64_t norms = 2;
    (void)layer;
    TRY(reader_flag(r, &r->text, "new_decoder_architecture", json_get(&r->text, "n_head_kv", &j), &new));
    TRY(reader_flag(r, &r->text, "multi_query", true, &one));
    if (new) {
        if (json_get(&r->text, "num_ln_in_parallel_attn", &j)) TRY(json_int(&j, 1, 2, &norms, r->e));
        k->parallel = true;
        k->norms = norms;
        return ERR_OK;
    }
    x->kv_heads = one ? 1 : x->heads;
    k->norms = k->parallel ? 1 : 2;
    return ERR_OK;
}

/* StableLM: parallel blocks share one norm. */
enum err_code vary_stablelm(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    (void)layer;
    if (k->parallel) k->norms = 1;
    return ERR_OK;
}

/* MPT: the MLP is a multiple of the width; published models have ALiBi and neither biases nor norms of queries. */
enum err_code vary_mpt(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    double ratio = 4;
    (void)layer;
    TRY(want_flag(r, "no_bias", true, true, "biases"));
    TRY(want_flag(r, "attn_config.alibi", true, true, "learned positions"));
    TRY(want_flag(r, "attn_config.qk_ln", false, false, "norms of queries and keys"));
    if (json_get(&r->text, "attn_config.attn_type", &j)) {
        const char *type;
        TRY(json_str(&j, &type, r->e));
        if (strcmp(type, "multihead_attention") != 0) return json_want(&j, "\"multihead_attention\"", r->e);
    }
    if (json_get(&r->text, "expansion_ratio", &j)) TRY(json_num(&j, &ratio, r->e));
    const double width = ratio * (double)r->m->hidden;
    if (!(ratio > 0) || !(ratio <= 64) || floor(width) < width)
        return json_want(&j, "a multiple of the width that is whole", r->e);
    k->ffn.width = (int64_t)width;
    return ERR_OK;
}

/* OPT: pre-norm models whose embedding is as wide as the model. */
enum err_code vary_opt(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    int64_t width = r->m->hidden;
    (void)layer;
    (void)k;
    TRY(want_flag(r, "do_layer_norm_before", true, true, "norms after the blocks and none at the end"));
    if (json_get(&r->text, "word_embed_proj_dim", &j)) TRY(json_int(&j, 1, INT64_MAX, &width, r->e));
    if (width == r->m->hidden) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %s is not the model's width: projections in and out are not described", j.file,
                   j.path);
}

/* ChatGLM 2 and later; the first ChatGLM has the same model_type and another structure. */
enum err_code vary_chatglm(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    bool grouped;
    (void)layer;
    if (json_get(&r->text, "inner_hidden_size", &j))
        return err_set(r->e, ERR_INPUT, "%s: %s marks the first ChatGLM, whose prefix attention is not described",
                       j.file, j.path);
    TRY(want_flag(r, "rmsnorm", true, true, "layer norms"));
    TRY(want_flag(r, "add_bias_linear", false, false, "biases in all linear layers"));
    TRY(want_flag(r, "post_layer_norm", true, true, "no final norm"));
    TRY(reader_flag(r, &r->text, "multi_query_attention", false, &grouped));
    if (!grouped) k->mixer.kv_heads = k->mixer.heads;
    return ERR_OK;
}

/* Baichuan: the 13B models have ALiBi, and say so only by naming model_max_length alone. */
enum err_code vary_baichuan(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    (void)layer;
    if (!json_get(&r->text, "max_position_embeddings", &j)) k->mixer.position = POSITION_ALIBI;
    return ERR_OK;
}

/* Llama 4: statistics alone as norms of rotated queries and keys; dense layers have a width of their own. */
enum err_code vary_llama4(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    (void)layer;
    if (k->mixer.position == POSITION_NONE) k->mixer.qk_norm = QK_NORM_NONE;
    if (k->ffn.kind != FFN_DENSE) return ERR_OK;
    if (!json_get(&r->text, "intermediate_size_mlp", &j))
        return err_set(r->e, ERR_INPUT, "%s: intermediate_size_mlp is missing: dense layers have that width",
                       r->text.file);
    return json_int(&j, 1, 1 << 24, &k->ffn.width, r->e);
}

/* MiMo-V2: sliding layers have heads of their own, twice the key heads where the file does not say, and sinks; values
 * have a width of their own everywhere. Source: transformers, modular_mimo_v2_flash.py. */
enum err_code vary_mimo_v2(struct reader *r, int64_t layer, struct layer_kind *k)
{
    static const char *const SINKS[] = {"add_full_attention_sink_bias", "add_swa_attention_sink_bias"};
    const bool slides = k->mixer.window_tokens > 0;
    struct mixer *x = &k->mixer;
    struct json j;
    (void)layer;
    TRY(reader_dim(r, DIM_V_HEAD_DIM, 1, x->head_dim, &x->v_head_dim));
    TRY(reader_flag(r, &r->text, SINKS[slides], slides, &x->sinks));
    if (!slides) return ERR_OK;
    x->kv_heads *= 2;
    if (json_get(&r->text, "swa_num_attention_heads", &j)) TRY(json_int(&j, 1, 1 << 16, &x->heads, r->e));
    if (json_get(&r->text, "swa_num_key_value_heads", &j)) TRY(json_int(&j, 1, 1 << 16, &x->kv_heads, r->e));
    if (json_get(&r->text, "swa_head_dim", &j)) TRY(json_int(&j, 1, 1 << 16, &x->head_dim, r->e));
    if (json_get(&r->text, "swa_v_head_dim", &j)) TRY(json_int(&j, 1, 1 << 16, &x->v_head_dim, r->e));
    if (x->heads % x->kv_heads == 0) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %lld key heads of sliding layers do not divide %lld query heads", r->text.file,
                   (long long)x->kv_heads, (long long)x->heads);
}

/* MiniMax-M2: norms of queries and keys over all heads together, unless the file says otherwise. */
enum err_code vary_minimax_m2(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    const char *type;
    (void)layer;
    if (k->mixer.qk_norm == QK_NORM_NONE || !json_get(&r->text, "qk_norm_type", &j)) return ERR_OK;
    TRY(json_str(&j, &type, r->e));
    return strcmp(type, "per_layer") == 0 ? ERR_OK : json_want(&j, "\"per_layer\"", r->e);
}

enum err_code vary_ernie_moe(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    (void)k;
    return want_flag(r, "use_bias", false, false, "biases in every expert");
}

/* The second of a pair of numbers, of images; the first without one. */
static enum err_code second(struct reader *r, const char *key, int64_t fallback, int64_t *out)
{
    struct json list, item;
    *out = fallback;
    if (!json_get(&r->text, key, &list) || !json_is_array(&list)) return ERR_OK;
    if (json_len(&list) != 2 || !json_at(&list, 1, NULL, &item))
        return json_want(&list, "two numbers: of text and of images", r->e);
    return json_int(&item, -1, EXPERTS_MAX, out, r->e);
}

/* ERNIE 4.5 VL: experts for tokens of images beside those for text, in the same layers, with a width of their own.
 * Source: transformers, modeling_ernie4_5_vl_moe.py. */
enum err_code vary_ernie_vl(struct reader *r, int64_t layer, struct layer_kind *k)
{
    static const char *const ENDS[] = {"moe_layer_start_index", "moe_layer_end_index"};
    struct ffn *f = &k->ffn;
    (void)layer;
    if (f->kind != FFN_MOE) return vary_ernie_moe(r, layer, k);
    TRY(second(r, "moe_num_experts", f->experts, &f->image_experts));
    TRY(second(r, "moe_intermediate_size", f->width, &f->image_width));
    for (size_t i = 0; i < 2; i++) { /* beyond the last layer is the last layer */
        struct json list, item;
        int64_t text, images;
        if (!json_get(&r->text, ENDS[i], &list) || !json_is_array(&list)) continue;
        if (!json_at(&list, 0, NULL, &item)) return json_want(&list, "two numbers: of text and of images", r->e);
        TRY(json_int(&item, -1, LAYERS_MAX, &text, r->e));
        TRY(second(r, ENDS[i], text, &images));
        if (text != images && !(i == 1 && text >= r->m->layers - 1 && images >= r->m->layers - 1))
            return json_want(&list, "the same layers for text and for images", r->e);
    }
    if (f->image_experts < 1 || f->image_width < 1) f->image_experts = f->image_width = 0;
    return vary_ernie_moe(r, layer, k);
}

/* Schedules that transformers makes a list of, without which it is not known which layers have an indexer. */
enum err_code vary_indexer_types(struct reader *r, int64_t usual)
{
    static const char *const SCHEDULES[] = {"index_topk_pattern", "index_topk_freq"};
    struct json j;
    int64_t every = usual;
    if (json_has(&r->text, "indexer_types")) return ERR_OK;
    if (json_get(&r->text, SCHEDULES[1], &j)) TRY(json_int(&j, 0, LAYERS_MAX, &every, r->e));
    if ((every == usual || (every < 1 && usual == 1)) && !json_get(&r->text, SCHEDULES[0], &j)) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %s without indexer_types is not read: which layers have an indexer",
                   r->text.file, json_get(&r->text, SCHEDULES[0], &j) ? SCHEDULES[0] : SCHEDULES[1]);
}

enum err_code vary_indexer_shared(struct reader *r, int64_t layer, int64_t group, struct mixer *x)
{
    struct json list, item;
    const char *word = "full";
    bool full = layer == 0 || (layer - 1) % group == 0;
    if (json_get(&r->text, "indexer_types", &list)) {
        if (!json_is_array(&list) || json_len(&list) != (size_t)r->m->layers ||
            !json_at(&list, (size_t)layer, NULL, &item))
            return json_want(&list, "a list of one string per layer", r->e);
        TRY(json_str(&item, &word, r->e));
        full = strcmp(word, "full") == 0;
        if (!full && strcmp(word, "shared") != 0) return json_want(&item, "\"full\" or \"shared\"", r->e);
        if (!full && layer == 0) return json_want(&item, "\"full\" in the first layer", r->e);
    }
    if (!full) x->index_heads = x->index_dim = 0;
    return ERR_OK;
}

/* DeepSeek sparse attention: an indexer in every layer, or in those that indexer_types calls "full"; the others take
 * the choice of the last of those. */
enum err_code vary_indexer(struct reader *r, int64_t layer, struct layer_kind *k)
{
    static const char *const KEYS[] = {"index_topk", "index_n_heads", "index_head_dim"};
    struct mixer *x = &k->mixer;
    int64_t *const into[] = {&x->top_keys, &x->index_heads, &x->index_dim};
    struct json j;
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        if (!json_get(&r->text, KEYS[i], &j))
            return err_set(r->e, ERR_INPUT, "%s: %s is missing: the indexer's shape", r->text.file, KEYS[i]);
        TRY(json_int(&j, 1, 1 << 20, into[i], r->e));
    }
    TRY(vary_indexer_types(r, 1));
    if (x->q_rank == 0)
        return err_set(r->e, ERR_INPUT, "%s: q_lora_rank is missing: the indexer's queries come from it", r->text.file);
    return vary_indexer_shared(r, layer, 1, x);
}

/* Seed-OSS and Helium: keys of their own for the bias of the output and for those of the MLP. */
enum err_code vary_biases(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    TRY(reader_flag(r, &r->text, "attention_out_bias", false, &k->mixer.o_bias));
    TRY(reader_flag(r, &r->text, "mlp_bias", false, &k->ffn.up_bias));
    k->ffn.down_bias = k->ffn.up_bias;
    return ERR_OK;
}

/* dots.llm1: the class lets layers from max_window_layers on slide; published files have no window. */
enum err_code vary_dots(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    int64_t first = r->m->layers;
    (void)layer;
    (void)k;
    if (!json_get(&r->text, "sliding_window", &j)) return ERR_OK;
    if (json_get(&r->text, "max_window_layers", &j)) TRY(json_int(&j, 0, INT64_MAX, &first, r->e));
    if (first >= r->m->layers) return ERR_OK;
    return err_set(r->e, ERR_INPUT,
                   "%s: sliding_window and max_window_layers make layers slide, which the %s family "
                   "does not describe",
                   r->text.file, r->family->name);
}

/* Ling: biases that the class has unless told otherwise; shared experts as wide as routed ones, said twice. */
enum err_code vary_bailing(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    int64_t width = k->ffn.width;
    (void)layer;
    TRY(want_flag(r, "use_bias", false, true, "biases"));
    TRY(want_flag(r, "use_qkv_bias", false, false, "biases of queries, keys and values"));
    if (k->ffn.kind != FFN_MOE || !json_get(&r->text, "moe_shared_expert_intermediate_size", &j)) return ERR_OK;
    TRY(json_int(&j, 1, 1 << 24, &width, r->e));
    return width == k->ffn.width ? ERR_OK : json_want(&j, "the width of a routed expert", r->e);
}

/* Llama 3.2 vision: the layers of cross_attention_layers have queries of the text and keys and values of an image, a
 * norm of each head, and a gate on either block. */
enum err_code vary_mllama(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json list, item;
    int64_t at;
    if (!json_get(&r->text, "cross_attention_layers", &list))
        return err_set(r->e, ERR_INPUT, "%s: cross_attention_layers is missing: which layers attend to images",
                       r->text.file);
    if (!json_is_array(&list)) return json_want(&list, "a list of layer numbers", r->e);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        TRY(json_int(&item, 0, r->m->layers - 1, &at, r->e));
        if (at != layer) continue;
        k->mixer.images = true;
        k->mixer.qk_norm = QK_NORM_HEAD;
        k->mixer.position = POSITION_NONE;
    }
    return ERR_OK;
}

enum err_code extend_mllama(struct reader *r)
{
    r->m->embed_extra_rows = 8; /* fixed in the class: the image token and its like */
    return ERR_OK;
}

/* LLaDA: keys of the code it is made of; published models have neither biases nor norms of queries. */
enum err_code vary_llada(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json j;
    const char *norm = "rms", *block = "llama";
    int64_t rows = r->m->vocab;
    (void)layer;
    (void)k;
    TRY(want_flag(r, "include_bias", false, false, "biases"));
    TRY(want_flag(r, "include_qkv_bias", false, false, "biases of queries, keys and values"));
    TRY(want_flag(r, "attention_layer_norm", false, false, "norms of queries and keys"));
    TRY(want_flag(r, "rope", true, true, "learned positions"));
    TRY(want_flag(r, "input_emb_norm", false, false, "a norm of the embedding"));
    if (json_get(&r->text, "layer_norm_type", &j)) TRY(json_str(&j, &norm, r->e));
    if (strcmp(norm, "rms") != 0) return json_want(&j, "\"rms\"", r->e);
    if (json_get(&r->text, "block_type", &j)) TRY(json_str(&j, &block, r->e));
    if (strcmp(block, "llama") != 0) return json_want(&j, "\"llama\"", r->e);
    if (json_get(&r->text, "embedding_size", &j)) TRY(json_int(&j, 1, INT64_MAX, &rows, r->e));
    return rows == r->m->vocab ? ERR_OK : json_want(&j, "as many rows as vocab_size", r->e);
}

static enum err_code read_blocks(struct reader *r, int64_t usual)
{
    struct json j;
    r->m->block_tokens = usual;
    if (json_get(&r->text, "block_size", &j)) return json_int(&j, 1, 1 << 20, &r->m->block_tokens, r->e);
    return ERR_OK;
}

/* SDAR and LLaDA 2: their files name no block; published chat models were trained with 4 and 32 (sglang,
 * dllm/config.py). */
enum err_code extend_blocks(struct reader *r) { return read_blocks(r, 4); }

enum err_code extend_wide_blocks(struct reader *r) { return read_blocks(r, 32); /* not a unit */ }
