/* vary_shared_pools -- attention to entries that layers share, with tables of n-grams: DeepSeek-V4.1. Source:
 * transformers, configuration_deepseek_v41.py and modular_deepseek_v41.py. */
#include "calc/model/vary.h"

/* A list that the class has another default for at each depth: it must be there. */
static enum err_code list_of(struct reader *r, const char *key, struct json *out)
{
    if (json_get(&r->text, key, out))
        return json_is_array(out) ? ERR_OK : json_want(out, "a list of whole numbers", r->e);
    return err_set(r->e, ERR_INPUT, "%s: %s is missing: what the layers keep and share", r->text.file, key);
}

/* Tokens of an entry of a layer, 0 without entries. */
static enum err_code ratio_of(struct reader *r, int64_t layer, int64_t *out)
{
    struct json list, item;
    TRY(list_of(r, "compress_ratios", &list));
    if (json_len(&list) < (size_t)r->m->layers || !json_at(&list, (size_t)layer, NULL, &item))
        return json_want(&list, "a list of one number per layer", r->e);
    return json_int(&item, 0, 1 << 20, out, r->e);
}

/* The last layer of a list at or before `layer`, and its place in the list; -1 none. */
static enum err_code last_of(struct reader *r, const char *key, int64_t layer, int64_t *out, size_t *place)
{
    struct json list, item;
    int64_t one;
    *out = -1;
    TRY(list_of(r, key, &list));
    for (size_t i = 0; i < json_len(&list) && json_at(&list, i, NULL, &item); i++) {
        TRY(json_int(&item, 0, r->m->layers - 1, &one, r->e));
        if (one > layer || one < *out) continue;
        *out = one;
        *place = i;
    }
    return ERR_OK;
}

/* The indexer behind which others score what it left to them: -1 none; of the class the last layer with entries. */
static enum err_code candidates_from(struct reader *r, int64_t *out)
{
    struct json j;
    size_t place;
    if (json_get(&r->text, "candidate_source_layer_id", &j)) return json_int(&j, -1, r->m->layers - 1, out, r->e);
    return last_of(r, "kv_source_layer_ids", r->m->layers - 1, out, &place);
}

static enum err_code read_indexer(struct reader *r, int64_t layer, struct mixer *x)
{
    int64_t from, blocks, each;
    TRY(reader_int(r, "index_n_heads", 1, 1 << 16, 32, &x->index_heads)); /* class defaults; not a unit */
    TRY(reader_int(r, "index_head_dim", 1, 1 << 16, 128, &x->index_dim)); /* not a unit */
    TRY(candidates_from(r, &from));
    TRY(reader_int(r, "candidate_topk_blocks", 1, 1 << 20, 2048, &blocks)); /* not a unit */
    TRY(reader_int(r, "candidate_block_size", 1, 1 << 16, 8, &each));       /* not a unit */
    if (from >= 0 && layer > from) x->index_candidates = blocks * each;
    return ERR_OK;
}

/* The table of n-grams before a layer. */
static enum err_code read_engram(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json layers, rows, item;
    int64_t one;
    k->engram_rows = 0;
    if (!json_get(&r->text, "engram_layer_ids", &layers)) return ERR_OK;
    TRY(list_of(r, "engram_layer_ids", &layers));
    for (size_t i = 0; i < json_len(&layers) && json_at(&layers, i, NULL, &item); i++) {
        TRY(json_int(&item, 0, r->m->layers - 1, &one, r->e));
        if (one != layer) continue;
        TRY(list_of(r, "engram_num_embeddings", &rows));
        if (json_len(&rows) != json_len(&layers) || !json_at(&rows, i, NULL, &item))
            return json_want(&rows, "a number for each of engram_layer_ids", r->e);
        TRY(json_int(&item, 1, INT64_MAX / (1 << 20), &k->engram_rows, r->e));
    }
    return ERR_OK;
}

enum err_code vary_deepseek_v41(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    int64_t window, ratio, source, index, same;
    size_t place;
    x->pool_lean = true;
    k->ffn.image_correction = true;
    TRY(read_engram(r, layer, k));
    TRY(reader_dim(r, DIM_WINDOW, 1, -1, &window));
    TRY(ratio_of(r, layer, &ratio));
    TRY(last_of(r, "kv_source_layer_ids", layer, &source, &place));
    TRY(last_of(r, "index_source_layer_ids", layer, &index, &place));
    if (ratio == 0) {
        x->window_tokens = window;
        return source == layer || index == layer
                   ? err_set(r->e, ERR_INPUT, "%s: layer %lld is a source and has a compress_ratio of 0", r->text.file,
                             (long long)layer)
                   : ERR_OK;
    }
    if (source < 0 || index < source)
        return err_set(r->e, ERR_INPUT, "%s: layer %lld has no source of %s at or before it", r->text.file,
                       (long long)layer, source < 0 ? "entries" : "chosen ones of its entries");
    TRY(ratio_of(r, source, &same));
    if (same != ratio)
        return err_set(r->e, ERR_INPUT, "%s: layer %lld has entries of %lld tokens, and their source of %lld",
                       r->text.file, (long long)layer, (long long)ratio, (long long)same);
    x->pool_tokens = ratio;
    x->pool_spans = 1;
    x->pool_borrowed = source < layer;
    *(x->pool_borrowed ? &x->window_tokens : &x->pool_window) = window;
    TRY(reader_int(r, "index_topk", 1, 1 << 20, 512, &x->top_keys)); /* class default; not a unit */
    x->top_keys *= ratio;
    return index == layer ? read_indexer(r, layer, x) : ERR_OK;
}

enum err_code extend_deepseek_v41(struct reader *r)
{
    struct json j;
    int64_t longest, heads;
    r->m->hyper_handed = true;
    TRY(extend_deepseek_v4(r)); /* streams: the same keys and class defaults */
    if (!json_get(&r->text, "engram_layer_ids", &j)) return ERR_OK;
    TRY(reader_int(r, "engram_max_ngram_size", 2, 64, 4, &longest));
    TRY(reader_int(r, "engram_n_heads", 1, 1 << 10, 8, &heads));
    r->m->engram_columns = (longest - 1) * heads; /* of every n-gram of two tokens and more */
    return reader_int(r, "engram_head_dim", 1, 1 << 16, 256, &r->m->engram_width); /* not a unit */
}
