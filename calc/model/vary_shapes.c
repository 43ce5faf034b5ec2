/* vary_shapes -- families whose layers differ in shape, or share what an earlier layer made. */
#include <math.h>
#include <string.h>

#include "calc/model/vary.h"

/* Hunyuan: with use_cla every cla_share_factor-th layer makes keys and values, and those after it use them. */
enum err_code vary_hunyuan(struct reader *r, int64_t layer, struct layer_kind *k)
{
    bool shares;
    int64_t factor;
    TRY(reader_flag(r, &r->text, "use_cla", false, &shares));
    if (!shares) return ERR_OK;
    TRY(reader_int(r, "cla_share_factor", 1, LAYERS_MAX, 1, &factor));
    k->mixer.shares_kv = layer % factor != 0;
    k->mixer.idle_kv = false;
    return ERR_OK;
}

/* ---- MiniMax-M3 ---- */

#define SPARSE "sparse_attention_config."

/* Whether a layer chooses keys: by layer_types, or by sparse_attention_freq. */
static enum err_code chooses(struct reader *r, int64_t layer, bool *out)
{
    struct json list, item;
    int64_t on;
    const char *word;
    bool use, said = false;
    *out = false;
    if (json_get(&r->text, SPARSE "use_sparse_attention", &item)) {
        TRY(json_bool(&item, &use, r->e));
        if (!use) return ERR_OK;
    }
    if (json_get(&r->text, "layer_types", &list) && json_at(&list, (size_t)layer, NULL, &item)) {
        TRY(json_str(&item, &word, r->e));
        *out = strcmp(word, r->family->full_word) == 0;
        said = true;
    }
    if (!json_get(&r->text, SPARSE "sparse_attention_freq", &list)) return ERR_OK;
    if (!json_is_array(&list) || json_len(&list) != (size_t)r->m->layers || !json_at(&list, (size_t)layer, NULL, &item))
        return json_want(&list, "a list of one number per layer", r->e);
    TRY(json_int(&item, 0, 1, &on, r->e));
    if (said && *out != (on == 1))
        return err_set(r->e, ERR_INPUT, "%s: layer_types and %s contradict each other about layer %lld", r->text.file,
                       list.path, (long long)layer);
    *out = on == 1;
    return ERR_OK;
}

/* A size of the indexer, under transformers' name or that of the published files. */
static enum err_code index_size(struct reader *r, const char *key, const char *published, int64_t *out)
{
    struct json j;
    if (json_get(&r->text, key, &j) || json_get(&r->text, published, &j)) return json_int(&j, 1, 1 << 20, out, r->e);
    return err_set(r->e, ERR_INPUT, "%s: %s is missing: the indexer's shape", r->text.file, published);
}

/* MiniMax-M3: most layers attend to blocks of keys that an indexer of one head for each KV head chooses; dense layers
 * have a width of their own. Source: transformers, modeling_minimax_m3_vl.py, configuration_minimax_m3_vl.py. */
enum err_code vary_minimax_m3(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json list, item;
    int64_t blocks, off = 1;
    bool sparse;
    TRY(chooses(r, layer, &sparse));
    if (k->ffn.kind == FFN_DENSE) TRY(reader_int(r, "dense_intermediate_size", 1, 1 << 24, 12288, &k->ffn.width));
    if (!sparse) return ERR_OK;
    TRY(index_size(r, "index_n_heads", SPARSE "sparse_num_index_heads", &x->index_heads));
    TRY(index_size(r, "index_head_dim", SPARSE "sparse_index_dim", &x->index_dim));
    TRY(index_size(r, "index_block_size", SPARSE "sparse_block_size", &x->index_block_tokens));
    TRY(index_size(r, "index_topk_blocks", SPARSE "sparse_topk_blocks", &blocks));
    x->top_keys = blocks * x->index_block_tokens;
    if (x->index_heads != x->kv_heads)
        return err_set(r->e, ERR_INPUT, "%s: %lld heads of the indexer for %lld KV heads: not described", r->text.file,
                       (long long)x->index_heads, (long long)x->kv_heads);
    if (json_get(&r->text, SPARSE "sparse_disable_index_value", &list) && json_at(&list, (size_t)layer, NULL, &item))
        TRY(json_int(&item, 0, 1, &off, r->e));
    if (off == 1) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: layer %lld has values of the indexer, which the %s family does not describe",
                   r->text.file, (long long)layer, r->family->name);
}

/* ---- layers found by architecture search (Nemotron NAS, DeciLM) ---- */

static enum err_code refuse_replaced(struct reader *r, const struct json *block)
{
    static const char *const UNUSUAL[] = {"replace_with_linear", "sparsify",
                                          "num_sink_tokens",     "window_length",
                                          "unshifted_sink",      "use_prefill_window_in_sink_attention"};
    struct json j;
    bool on;
    for (size_t i = 0; i < sizeof UNUSUAL / sizeof UNUSUAL[0]; i++)
        if (json_get(block, UNUSUAL[i], &j) && (!json_is_bool(&j) || (json_bool(&j, &on, NULL) == ERR_OK && on)))
            return err_set(r->e, ERR_INPUT, "%s: %s is used, which the %s family does not describe", j.file, j.path,
                           r->family->name);
    return ERR_OK;
}

/* Width of a gated MLP: mult*2/3 of the model's, whole, rounded up to a multiple of 256. */
static enum err_code nas_width(struct reader *r, const struct json *block, int64_t *out)
{
    struct json j;
    double mult;
    if (json_get(block, "intermediate_size", &j)) return json_int(&j, 1, 1 << 24, out, r->e);
    if (!json_get(block, "ffn_mult", &j))
        return err_set(r->e, ERR_INPUT, "%s: %s has neither ffn_mult nor intermediate_size", block->file, block->path);
    TRY(json_num(&j, &mult, r->e));
    if (!(mult > 0) || !(mult <= 64)) return json_want(&j, "a number between 0 and 64", r->e);
    const int64_t width = (int64_t)floor(2 * mult * (double)r->m->hidden / 3);
    *out = (width + 255) / 256 * 256;
    return ERR_OK;
}

enum err_code vary_nas(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json list, block, attention, ffn;
    bool none;
    int64_t group;
    if (!json_get(&r->text, "block_configs", &list))
        return err_set(r->e, ERR_INPUT, "%s: block_configs is missing: the shapes of the layers", r->text.file);
    if (!json_is_array(&list) || json_len(&list) != (size_t)r->m->layers ||
        !json_at(&list, (size_t)layer, NULL, &block))
        return json_want(&list, "a list of one object per layer", r->e);
    if (!json_get(&block, "attention", &attention) || !json_get(&block, "ffn", &ffn))
        return json_want(&block, "an object with attention and ffn", r->e);
    TRY(refuse_replaced(r, &attention));
    TRY(refuse_replaced(r, &ffn));
    k->norms = 2;
    TRY(reader_flag(r, &attention, "no_op", false, &none));
    if (none) {
        memset(&k->mixer, 0, sizeof k->mixer);
        k->norms--;
    } else {
        struct json j;
        if (!json_get(&attention, "n_heads_in_group", &j))
            return err_set(r->e, ERR_INPUT, "%s: %s.n_heads_in_group is missing", attention.file, attention.path);
        TRY(json_int(&j, 1, k->mixer.heads, &group, r->e));
        if (k->mixer.heads % group != 0) return json_want(&j, "a divisor of the query heads", r->e);
        k->mixer.kv_heads = k->mixer.heads / group;
    }
    TRY(reader_flag(r, &ffn, "no_op", false, &none));
    if (!none) return nas_width(r, &ffn, &k->ffn.width);
    memset(&k->ffn, 0, sizeof k->ffn);
    k->norms--;
    return ERR_OK;
}

/* ---- Gemma 3n and 4 ---- */

/* Whether a layer is one of the last num_kv_shared_layers. */
static enum err_code shares_last(struct reader *r, int64_t layer, int64_t fallback, bool *out)
{
    int64_t shared;
    TRY(reader_int(r, "num_kv_shared_layers", 0, r->m->layers, fallback, &shared));
    *out = layer >= r->m->layers - shared && shared < r->m->layers;
    return ERR_OK;
}

enum err_code vary_gemma3n(struct reader *r, int64_t layer, struct layer_kind *k)
{
    k->mixer.v_norm = true;
    TRY(shares_last(r, layer, 15, &k->mixer.shares_kv)); /* class default */
    k->mixer.idle_kv = k->mixer.shares_kv;
    return ERR_OK;
}

/* A member of per_layer_config: the layer that its name says ("05"), once. */
static enum err_code layer_named(struct reader *r, const struct json *entry, const char *name, int64_t *out)
{
    int64_t at = 0;
    size_t i = 0;
    for (; name[i] >= '0' && name[i] <= '9' && at < r->m->layers; i++) at = 10 * at + (name[i] - '0');
    *out = at;
    if (i > 0 && name[i] == '\0' && at < r->m->layers) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %.60s is not one of %lld layers", entry->file, entry->path,
                   (long long)r->m->layers);
}

enum { GLOBAL_HEAD_DIM = 512 }; /* class default */

/* What per_layer_config says of a layer: its heads, and nothing else. Source: transformers,
 * heterogeneity/configuration_utils.py. */
static enum err_code own_heads(struct reader *r, int64_t layer, const struct json *all, struct mixer *x)
{
    struct json entry, item;
    const char *name, *key;
    bool found = false;
    if (!json_is_object(all)) return json_want(all, "an object of one object a layer", r->e);
    for (size_t i = 0; json_at(all, i, &name, &entry); i++) {
        int64_t at;
        TRY(layer_named(r, &entry, name, &at));
        if (!json_is_object(&entry)) return json_want(&entry, "an object", r->e);
        if (at != layer) continue;
        if (found)
            return err_set(r->e, ERR_INPUT, "%s: %.60s says layer %lld twice", entry.file, entry.path, (long long)at);
        found = true;
        for (size_t k = 0; json_at(&entry, k, &key, &item); k++) {
            if (strcmp(key, "head_dim") == 0)
                TRY(json_int(&item, 1, 1 << 16, &x->head_dim, r->e));
            else if (strcmp(key, "num_key_value_heads") == 0)
                TRY(json_int(&item, 1, x->heads, &x->kv_heads, r->e));
            else
                return err_set(r->e, ERR_INPUT,
                               "%s: %.80s is another in one layer, which the %s family does not describe", item.file,
                               item.path, r->family->name);
        }
    }
    return x->heads % x->kv_heads == 0 ? ERR_OK : json_want(all, "key heads that divide the query heads", r->e);
}

/* Full layers have heads of their own: per_layer_config, else global_head_dim and num_global_key_value_heads, which
 * are not read beside it. Source: transformers, configuration_gemma4.py. */
enum err_code vary_gemma4(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    struct json by_layer;
    bool same, doubled;
    x->v_norm = true;
    TRY(shares_last(r, layer, 0, &x->shares_kv));
    TRY(reader_flag(r, &r->text, "attention_k_eq_v", false, &same));
    const bool full = x->window_tokens == 0;
    if (json_get(&r->text, "per_layer_config", &by_layer)) {
        TRY(own_heads(r, layer, &by_layer, x));
    } else if (full) {
        TRY(reader_int(r, "global_head_dim", 1, 1 << 16, GLOBAL_HEAD_DIM, &x->head_dim));
        if (same) TRY(reader_int(r, "num_global_key_value_heads", 1, x->heads, x->kv_heads, &x->kv_heads));
    }
    x->v_head_dim = x->head_dim;
    x->v_is_k = full && same;
    TRY(reader_flag(r, &r->text, "use_double_wide_mlp", false, &doubled));
    if (k->ffn.kind == FFN_DENSE && doubled && x->shares_kv) k->ffn.width *= 2;
    if (k->ffn.kind != FFN_MOE) return ERR_OK;
    k->ffn.router_norm = k->ffn.expert_scale = true;
    k->ffn.branch_norms = 3; /* before the experts, and after each branch */
    return ERR_OK;
}

static enum err_code read_layer_inputs(struct reader *r, int64_t fallback)
{
    TRY(reader_int(r, "hidden_size_per_layer_input", 0, 1 << 20, fallback, &r->m->per_layer_dim));
    if (r->m->per_layer_dim == 0) return ERR_OK;
    /* 262144: default of the classes of Gemma 3n and Gemma 4 */
    return reader_int(r, "vocab_size_per_layer_input", 1, 1 << 28, 262144, &r->m->per_layer_vocab); /* not a unit */
}

enum err_code extend_gemma3n(struct reader *r)
{
    TRY(reader_int(r, "altup_num_inputs", 1, 64, 4, &r->m->streams)); /* class defaults */
    TRY(reader_int(r, "laurel_rank", 1, 1 << 20, 64, &r->m->laurel_rank));
    return read_layer_inputs(r, 256);
}

enum err_code extend_gemma4(struct reader *r)
{
    const bool none = r->read_as || json_has(&r->text, "hidden_size_per_layer_input"); /* null */
    r->m->layer_scale = true;
    return read_layer_inputs(r, none ? 0 : 256); /* class default */
}

enum err_code extend_gemma4_unified(struct reader *r)
{
    r->m->layer_scale = true;
    return ERR_OK;
}
