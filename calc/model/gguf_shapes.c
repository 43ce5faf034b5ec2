/* gguf_shapes -- GGUF files of models whose layers differ in shape, or that have sizes outside the common keys. Source
 * of keys and tensors: llama.cpp, src/models and gguf-py/gguf/constants.py. */
#include <string.h>

#include "calc/model/gguf_config.h"

/* The pair "<architecture>.<key>"; NULL it is not there, or memory is exhausted. */
static const struct tensor_meta *meta_of(const struct gguf_reading *t, const char *key)
{
    const char *full = arena_printf(t->arena, "%s.%s", t->architecture, key);
    return full ? tensors_meta(t->set, full) : NULL;
}

/* A number a layer: a list of them, or one for all. */
static enum err_code of_layer(const struct gguf_reading *t, const char *key, int64_t layer, int64_t *out)
{
    const struct tensor_meta *m = meta_of(t, key);
    *out = -1;
    if (m && m->kind == TENSOR_META_INT) *out = m->integer;
    if (m && m->kind == TENSOR_META_ARRAY && m->ints && layer < m->array_n) *out = m->ints[layer];
    if (*out >= 0) return ERR_OK;
    return err_set(t->err, ERR_INPUT, "%s: %s.%s has no whole number for layer %lld", t->name, t->architecture, key,
                   (long long)layer);
}

static const struct tensor *in_layer(const struct gguf_reading *t, int64_t layer, const char *tail)
{
    const char *name = arena_printf(t->arena, "blk.%lld.%s", (long long)layer, tail);
    return name ? tensors_find(t->set, name) : NULL;
}

static void put_flag(const struct gguf_reading *t, const char *key, bool on)
{
    out_printf(t->out, ",\"%s\":%s", key, on ? "true" : "false");
}

/* Rows of the table of inputs by layer. */
static void put_layer_inputs(const struct gguf_reading *t)
{
    const struct tensor *table = tensors_find(t->set, "per_layer_token_embd.weight");
    if (table && table->dims == 2) gguf_put(t, "vocab_size_per_layer_input", table->shape[0]);
}

enum err_code gguf_put_gemma3n(const struct gguf_reading *t)
{
    const struct tensor *left = in_layer(t, 0, "laurel_l.weight");
    if (!left || left->dims != 2)
        return err_set(t->err, ERR_INPUT, "%s: no matrix blk.0.laurel_l.weight: not a Gemma 3n", t->name);
    gguf_put(t, "laurel_rank", left->shape[0]);
    put_layer_inputs(t);
    return ERR_OK;
}

/* Gemma 4: sliding layers and full ones have heads of their own; full ones may have no values beside the keys; layers
 * that share a cache may have twice the width. */
enum err_code gguf_put_gemma4(const struct gguf_reading *t)
{
    static const char *const NAMES[2] = {"num_key_value_heads", "num_global_key_value_heads"};
    int64_t heads[2] = {0, 0}, shared = 0, wide, kv, slides, ff, width;
    bool found, same = false, doubled = false;
    TRY(gguf_number(t, "attention.shared_kv_layers", &shared, &found));
    if (!found) shared = 0;
    TRY(gguf_number(t, "attention.head_count", &kv, &found)); /* one for all layers */
    if (found) gguf_put(t, "num_attention_heads", kv);
    TRY(of_layer(t, "feed_forward_length", 0, &width));
    for (int64_t i = 0; i < t->layers; i++) {
        TRY(of_layer(t, "attention.sliding_window_pattern", i, &slides));
        TRY(of_layer(t, "attention.head_count_kv", i, &kv));
        TRY(of_layer(t, "feed_forward_length", i, &ff));
        const bool full = slides == 0, own = i < t->layers - shared;
        if (heads[full] == 0) heads[full] = kv;
        if (own && heads[full] != kv)
            return err_set(t->err, ERR_INPUT, "%s: layers of one kind have %lld KV heads and %lld", t->name,
                           (long long)heads[full], (long long)kv);
        if (own && full) same = same || !in_layer(t, i, "attn_v.weight");
        if (ff != width && (own || ff != 2 * width))
            return err_set(t->err, ERR_INPUT, "%s: layer %lld has an MLP of %lld, others of %lld", t->name,
                           (long long)i, (long long)ff, (long long)width);
        doubled = doubled || ff != width;
    }
    for (size_t k = 0; k < 2; k++)
        if (heads[k] > 0) gguf_put(t, NAMES[k], heads[k]);
    TRY(gguf_number(t, "attention.key_length", &wide, &found));
    if (!found) return err_set(t->err, ERR_INPUT, "%s: %s.attention.key_length is missing", t->name, t->architecture);
    gguf_put(t, "global_head_dim", wide);
    TRY(gguf_number(t, "attention.key_length_swa", &wide, &found));
    gguf_put(t, "head_dim", wide); /* one width where only one is said */
    gguf_put(t, "intermediate_size", width);
    put_flag(t, "attention_k_eq_v", same);
    put_flag(t, "use_double_wide_mlp", doubled);
    put_layer_inputs(t);
    return ERR_OK;
}

/* Layers of an architecture search: attention without KV heads is a product, without heads it is absent. */
enum err_code gguf_put_deci(const struct gguf_reading *t)
{
    int64_t most = 0, heads, kv, ff;
    out_str(t->out, ",\"block_configs\":[");
    for (int64_t i = 0; i < t->layers; i++) {
        TRY(of_layer(t, "attention.head_count", i, &heads));
        TRY(of_layer(t, "attention.head_count_kv", i, &kv));
        TRY(of_layer(t, "feed_forward_length", i, &ff));
        if (heads > 0 && (kv == 0 || heads % kv != 0))
            return err_set(t->err, ERR_INPUT, "%s: layer %lld has %lld heads and %lld KV heads: not described", t->name,
                           (long long)i, (long long)heads, (long long)kv);
        if (heads > most) most = heads;
        out_printf(t->out, "%s{\"attention\":{\"no_op\":%s", i ? "," : "", heads == 0 ? "true" : "false");
        if (heads > 0) out_printf(t->out, ",\"n_heads_in_group\":%lld", (long long)(heads / kv));
        out_printf(t->out, "},\"ffn\":{\"no_op\":%s", ff == 0 ? "true" : "false");
        if (ff > 0) out_printf(t->out, ",\"intermediate_size\":%lld", (long long)ff);
        out_str(t->out, "}}");
    }
    out_char(t->out, ']');
    gguf_put(t, "num_attention_heads", most);
    return ERR_OK;
}

/* Kimi Linear: layers with the delta rule have no KV heads, and a product of their decays. */
enum err_code gguf_put_kimi(const struct gguf_reading *t)
{
    int64_t heads, v;
    bool found;
    TRY(of_layer(t, "attention.head_count", 0, &heads));
    gguf_put(t, "num_attention_heads", heads);
    gguf_put(t, "linear_num_heads", heads);
    TRY(gguf_number(t, "kda.head_dim", &v, &found));
    if (!found) return err_set(t->err, ERR_INPUT, "%s: %s.kda.head_dim is missing", t->name, t->architecture);
    gguf_put(t, "linear_head_dim", v);
    TRY(gguf_number(t, "ssm.conv_kernel", &v, &found));
    if (!found) return err_set(t->err, ERR_INPUT, "%s: %s.ssm.conv_kernel is missing", t->name, t->architecture);
    gguf_put(t, "linear_conv_kernel_dim", v);
    out_str(t->out, ",\"layer_types\":[");
    for (int64_t i = 0; i < t->layers; i++)
        out_printf(t->out, "%s\"%s\"", i ? "," : "",
                   in_layer(t, i, "ssm_f_a.weight") ? "linear_attention" : "full_attention");
    out_char(t->out, ']');
    return gguf_in_layers(t->set, "ssm_g_a.weight")
               ? ERR_OK
               : err_set(t->err, ERR_INPUT, "%s: no ssm_g_a.weight: a gate of another form than Kimi Linear's",
                         t->name);
}

/* DeepSeek-V4: sizes of its attention and streams, and what each layer's entries stand for. */
enum err_code gguf_put_deepseek4(const struct gguf_reading *t)
{
    static const struct {
        const char *gguf, *config;
    } KEYS[] = {{"attention.q_lora_rank", "q_lora_rank"},
                {"attention.key_length", "head_dim"},
                {"rope.dimension_count", "qk_rope_head_dim"},
                {"attention.output_group_count", "o_groups"},
                {"attention.output_lora_rank", "o_lora_rank"},
                {"hyper_connection.count", "hc_mult"},
                {"hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"},
                {"hash_layer_count", "num_hash_layers"}};
    int64_t ratio;
    bool found;
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
        TRY(gguf_copy(t, KEYS[i].gguf, KEYS[i].config, &found));
        if (!found) return err_set(t->err, ERR_INPUT, "%s: %s.%s is missing", t->name, t->architecture, KEYS[i].gguf);
    }
    out_str(t->out, ",\"compress_ratios\":[");
    for (int64_t i = 0; i < t->layers; i++) {
        TRY(of_layer(t, "attention.compress_ratios", i, &ratio));
        out_printf(t->out, "%s%lld", i ? "," : "", (long long)ratio);
    }
    out_char(t->out, ']');
    return ERR_OK;
}

/* Grok: with an MLP beside the experts it is Grok 2. Source: llama.cpp, src/models/grok.cpp. */
enum err_code gguf_put_grok(const struct gguf_reading *t)
{
    bool found = false;
    const bool beside = gguf_in_layers(t->set, "ffn_up.weight");
    if (beside) out_str(t->out, ",\"residual_moe\":true");
    if (!beside) TRY(gguf_copy(t, "expert_feed_forward_length", "intermediate_size", &found));
    return found ? ERR_OK : gguf_copy(t, "feed_forward_length", "intermediate_size", &found);
}

/* Cohere 2 with experts: the plain width is that of the dense layers before them. Source: llama.cpp,
 * src/models/cohere2moe.cpp. */
enum err_code gguf_put_cohere2_moe(const struct gguf_reading *t)
{
    const char *key = arena_printf(t->arena, "%s.attention.layer_norm_rms_epsilon", t->architecture);
    const char *pattern = arena_printf(t->arena, "%s.attention.sliding_window_pattern", t->architecture);
    bool found;
    if (!key || !pattern) return err_nomem(t->err);
    if (tensors_meta(t->set, key)) out_str(t->out, ",\"rms_norm_eps\":0.00001");
    const struct tensor_meta *m = tensors_meta(t->set, pattern);
    if (m && m->kind == TENSOR_META_INT) gguf_put(t, "sliding_window_pattern", m->integer);
    TRY(gguf_copy(t, "feed_forward_length", "prefix_dense_intermediate_size", &found));
    TRY(gguf_copy(t, "expert_feed_forward_length", "intermediate_size", &found));
    return found ? ERR_OK : gguf_copy(t, "feed_forward_length", "intermediate_size", &found);
}
