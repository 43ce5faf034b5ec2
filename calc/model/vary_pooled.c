/* vary_pooled -- attention whose cache has entries of several tokens: DeepSeek-V4. Source: transformers,
 * configuration_deepseek_v4.py and modeling_deepseek_v4.py. */
#include <math.h>
#include <string.h>

#include "calc/model/vary.h"

/* Class defaults; entries of overlapping windows are of two spans. */
enum { CHOSEN_RATE = 4, HEAVY_RATE = 128, CHOSEN_SPANS = 2, TYPES = 3 };

/* layer_types, and the key of compress_rates. */
static const char *const TYPE[TYPES] = {"sliding_attention", "compressed_sparse_attention",
                                        "heavily_compressed_attention"};

/* The rotated part of a head: qk_rope_head_dim, or a share of it. */
static enum err_code read_rope(struct reader *r, struct mixer *x)
{
    struct json j;
    double share = 64.0 / 512; /* class default; not a unit */
    if (json_get(&r->text, "qk_rope_head_dim", &j)) return json_int(&j, 1, x->head_dim - 1, &x->rope_dim, r->e);
    const bool said = json_get(&r->text, "partial_rotary_factor", &j);
    if (said) TRY(json_num(&j, &share, r->e));
    x->rope_dim = (int64_t)floor(share * (double)x->head_dim);
    if (x->rope_dim > 0 && x->rope_dim < x->head_dim) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: a rotated share of %g of a head of %lld is no part of it", r->text.file, share,
                   (long long)x->head_dim);
}

enum err_code attention_deepseek_v4(struct reader *r, struct mixer *x)
{
    int64_t kv;
    bool bias;
    x->kind = MIXER_LATENT;
    x->one_vector = true;
    x->sinks = true;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_KV_HEADS, 1, 1, &kv));
    if (kv != 1)
        return err_set(r->e, ERR_INPUT, "%s: num_key_value_heads is %lld: the %s family has one", r->text.file,
                       (long long)kv, r->family->name);
    TRY(reader_dim(r, DIM_HEAD_DIM, 2, -1, &x->head_dim));
    TRY(reader_dim(r, DIM_Q_RANK, 1, -1, &x->q_rank));
    TRY(read_rope(r, x));
    TRY(reader_int(r, "o_groups", 1, 1 << 16, 8, &x->o_groups));
    TRY(reader_int(r, "o_lora_rank", 1, 1 << 22, 1024, &x->o_rank)); /* not a unit */
    TRY(reader_flag(r, &r->text, "attention_bias", false, &bias));
    if (bias)
        return err_set(r->e, ERR_INPUT, "%s: attention_bias is true, which the %s family does not describe",
                       r->text.file, r->family->name);
    if (x->heads % x->o_groups != 0)
        return err_set(r->e, ERR_INPUT, "%s: %lld heads are no multiple of %lld o_groups", r->text.file,
                       (long long)x->heads, (long long)x->o_groups);
    x->kv_heads = x->heads;
    x->v_head_dim = x->head_dim;
    x->kv_rank = x->head_dim - x->rope_dim;
    x->position = POSITION_ROPE;
    return ERR_OK;
}

/* Tokens of an entry of either kind of compressed layer. */
static enum err_code read_rate(struct reader *r, size_t type, int64_t *out)
{
    static const char *const LEGACY[TYPES] = {NULL, "compress_rate_csa", "compress_rate_hca"};
    struct json rates, j;
    *out = type == 1 ? CHOSEN_RATE : HEAVY_RATE;
    if (json_get(&r->text, LEGACY[type], &j)) return json_int(&j, 2, 1 << 20, out, r->e);
    if (!json_get(&r->text, "compress_rates", &rates) || !json_get(&rates, TYPE[type], &j)) return ERR_OK;
    return json_int(&j, 2, 1 << 20, out, r->e);
}

static enum err_code type_of(struct reader *r, const struct json *list, int64_t layer, size_t *out)
{
    struct json item;
    const char *word;
    if (!json_is_array(list) || json_len(list) != (size_t)r->m->layers || !json_at(list, (size_t)layer, NULL, &item))
        return json_want(list, "a list of one string per layer", r->e);
    TRY(json_str(&item, &word, r->e));
    for (*out = 0; *out < TYPES; ++*out)
        if (strcmp(word, TYPE[*out]) == 0) return ERR_OK;
    return json_want(
        &item, "\"sliding_attention\", \"compressed_sparse_attention\" or \"heavily_compressed_attention\"", r->e);
}

/* compress_ratios: 0 or 1 slides, 4 chooses, 128 does not. Entries behind the layers are of multi-token prediction. */
static enum err_code ratio_of(struct reader *r, const struct json *list, int64_t layer, size_t *out)
{
    struct json item;
    int64_t ratio;
    if (!json_is_array(list) || json_len(list) < (size_t)r->m->layers || !json_at(list, (size_t)layer, NULL, &item))
        return json_want(list, "a list of one number per layer", r->e);
    TRY(json_int(&item, 0, HEAVY_RATE, &ratio, r->e));
    *out = ratio <= 1 ? 0 : ratio == CHOSEN_RATE ? 1 : 2;
    return ratio <= 1 || ratio == CHOSEN_RATE || ratio == HEAVY_RATE ? ERR_OK
                                                                     : json_want(&item, "0, 1, 4 or 128", r->e);
}

/* What a layer's cache is, by layer_types or compress_ratios; where neither is there classes differ. */
static enum err_code read_type(struct reader *r, int64_t layer, size_t *out)
{
    struct json types, ratios;
    size_t by_ratio;
    const bool typed = layer < r->m->layers && json_get(&r->text, "layer_types", &types),
               rated = json_get(&r->text, "compress_ratios", &ratios);
    if (!typed && !rated)
        return err_set(r->e, ERR_INPUT, "%s: compress_ratios (or layer_types) is missing: what the layers keep",
                       r->text.file);
    if (typed) TRY(type_of(r, &types, layer, out));
    if (rated) TRY(ratio_of(r, &ratios, layer, &by_ratio));
    if (typed && rated && *out != by_ratio)
        return err_set(r->e, ERR_INPUT, "%s: layer_types and compress_ratios contradict each other about layer %lld",
                       r->text.file, (long long)layer);
    if (!typed) *out = by_ratio;
    return ERR_OK;
}

/* Layers whose experts are looked up by token have no routing bias. */
static enum err_code read_hashed(struct reader *r, int64_t layer, struct ffn *f)
{
    struct json types, item;
    const char *word;
    int64_t hashed;
    TRY(reader_int(r, "num_hash_layers", 0, LAYERS_MAX, 3, &hashed)); /* class default */
    if (hashed > r->m->layers && json_has(&r->text, "num_hash_layers"))
        return err_set(r->e, ERR_INPUT, "%s: num_hash_layers is %lld of %lld layers", r->text.file, (long long)hashed,
                       (long long)r->m->layers);
    bool here = layer < hashed;
    if (json_get(&r->text, "mlp_layer_types", &types) && json_at(&types, (size_t)layer, NULL, &item)) {
        TRY(json_str(&item, &word, r->e));
        here = strcmp(word, "hash_moe") == 0;
    }
    if (here) f->router_correction = false;
    return ERR_OK;
}

enum err_code vary_deepseek_v4(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    size_t type = 0;
    int64_t window;
    TRY(read_type(r, layer, &type));
    TRY(reader_dim(r, DIM_WINDOW, 1, -1, &window));
    TRY(read_hashed(r, layer, &k->ffn));
    if (type == 0) {
        x->window_tokens = window;
        return ERR_OK;
    }
    x->pool_window = window;
    x->pool_spans = type == 1 ? CHOSEN_SPANS : 1;
    TRY(read_rate(r, type, &x->pool_tokens));
    if (type != 1) return ERR_OK;
    TRY(reader_int(r, "index_n_heads", 1, 1 << 16, 64, &x->index_heads)); /* class defaults; not a unit */
    TRY(reader_int(r, "index_head_dim", 1, 1 << 16, 128, &x->index_dim)); /* not a unit */
    TRY(reader_int(r, "index_topk", 1, 1 << 20, 512, &x->top_keys));      /* not a unit */
    x->top_keys *= x->pool_tokens;
    return ERR_OK;
}

/* A module's layer is what its entry of compress_ratios says, behind those of the layers. A checkpoint with another
 * drafter in the modules' place (DSpark) stores that under their names. */
enum err_code mtp_deepseek_v4(struct reader *r, int64_t module, struct layer_kind *k)
{
    struct json ratios;
    k->count = 0;
    if (json_has(&r->text, "dspark_block_size") || !json_get(&r->text, "compress_ratios", &ratios) ||
        json_len(&ratios) <= (size_t)(r->m->layers + module))
        return ERR_OK;
    k->count = 1;
    k->mixer = (struct mixer){.kind = MIXER_LATENT};
    k->ffn.router_correction = r->family->router_correction;
    TRY(attention_deepseek_v4(r, &k->mixer));
    return vary_deepseek_v4(r, r->m->layers + module, k);
}

enum err_code extend_deepseek_v4(struct reader *r)
{
    TRY(reader_int(r, "hc_mult", 1, 64, 4, &r->m->hyper_streams));               /* class defaults; not a unit */
    return reader_int(r, "hc_sinkhorn_iters", 0, 1000, 20, &r->m->hyper_rounds); /* not a unit */
}
