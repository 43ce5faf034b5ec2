/* vary_qwen4 -- Qwen4 (Qwen3.8-Flash-Next): keys chosen by means of several, tables of n-grams, streams read by
 * products of low rank. Source: transformers, configuration_qwen4_exp.py and modular_qwen4_exp.py; of the indexer's
 * cache vLLM, qwen4_exp/common/qsa_cache.py. */
#include "calc/model/vary.h"

static bool is_prime(int64_t n)
{
    if (n < 2 || (n > 2 && n % 2 == 0)) return false;
    for (int64_t d = 3; d <= n / d; d += 2)
        if (n % d == 0) return false;
    return true;
}

/* Rows of the n-th table: of every hash a prime number, the next ones from the base on, and room to be whole parts. */
static enum err_code count_rows(struct reader *r, int64_t nth, int64_t heads, int64_t *out)
{
    int64_t size, part, rows = 0;
    TRY(reader_int(r, "ngram_vocab_size_base", 1, INT32_MAX, 20000000, &size));       /* class defaults; not a unit */
    TRY(reader_int(r, "make_ngram_vocab_size_divisible_by", 1, 1 << 20, 128, &part)); /* not a unit */
    size--;
    for (int64_t i = 0; i < (nth + 1) * heads; i++) {
        do size++;
        while (!is_prime(size));
        if (i >= nth * heads) rows += size;
    }
    *out = (rows + part - 1) / part * part;
    return ERR_OK;
}

/* ple_layer_ids, from 1: a table before each of them, in their order. */
static enum err_code read_table(struct reader *r, int64_t layer, struct layer_kind *k)
{
    struct json list, item;
    int64_t one, nth = 0;
    bool here = false;
    k->engram_rows = 0;
    if (!json_get(&r->text, "ple_layer_ids", &list)) return ERR_OK;
    if (!json_is_array(&list) || json_len(&list) > (size_t)r->m->layers)
        return json_want(&list, "a list of layers from 1", r->e);
    for (int64_t i = 0; i <= layer; i++)
        for (size_t n = 0; n < json_len(&list) && json_at(&list, n, NULL, &item); n++) {
            TRY(json_int(&item, 1, r->m->layers, &one, r->e));
            if (one != i + 1) continue;
            here = i == layer;
            nth += !here;
            break;
        }
    return here ? count_rows(r, nth, r->m->engram_columns, &k->engram_rows) : ERR_OK;
}

/* All of its keys, or none and then all tokens are attended. */
static enum err_code read_indexer(struct reader *r, struct mixer *x)
{
    static const char *const KEYS[] = {"indexer_n_heads", "indexer_head_dim", "indexer_budget",
                                       "indexer_compress_ratio", "indexer_kv_heads"};
    int64_t v[5];
    size_t met = 0;
    for (size_t i = 0; i < 5; i++) {
        TRY(reader_int(r, KEYS[i], 1, 1 << 20, 0, &v[i]));
        met += v[i] > 0;
    }
    if (met == 0) return ERR_OK;
    for (size_t i = 0; i < 5; i++)
        if (v[i] == 0)
            return err_set(r->e, ERR_INPUT, "%s: %s is missing beside other sizes of the indexer", r->text.file,
                           KEYS[i]);
    if (v[4] != 1 || v[2] % v[3] != 0)
        return err_set(r->e, ERR_INPUT,
                       "%s: an indexer of %lld key heads and of %lld tokens in blocks of %lld is not of the %s family",
                       r->text.file, (long long)v[4], (long long)v[2], (long long)v[3], r->family->name);
    x->index_heads = v[0];
    x->index_dim = v[1];
    x->top_keys = v[2];
    x->index_pool_tokens = v[3];
    x->index_mean = true;
    return ERR_OK;
}

/* Rows of a token, and their width, are the model's: read with the first layer, which comes before the others. */
static enum err_code read_columns(struct reader *r)
{
    struct model *m = r->m;
    struct json list;
    int64_t longest, heads, width;
    if (!json_get(&r->text, "ple_layer_ids", &list) || json_len(&list) == 0) return ERR_OK;
    TRY(reader_int(r, "ngram_size", 2, 64, 3, &longest)); /* class defaults */
    TRY(reader_int(r, "heads_per_ngram", 1, 1 << 10, 8, &heads));
    TRY(reader_int(r, "ple_embed_dim", 1, 1 << 22, m->hidden, &width));
    TRY(reader_int(r, "ple_conv_kernel_size", 1, 1 << 10, 4, &m->engram_taps));
    m->engram_spacing = longest;
    m->engram_columns = (longest - 1) * heads;
    m->engram_width = width / m->engram_columns;
    return width % m->engram_columns == 0
               ? ERR_OK
               : err_set(r->e, ERR_INPUT, "%s: ple_embed_dim is %lld, no multiple of %lld hashes", r->text.file,
                         (long long)width, (long long)m->engram_columns);
}

enum err_code vary_qwen4(struct reader *r, int64_t layer, struct layer_kind *k)
{
    if (layer == 0) TRY(read_columns(r));
    TRY(read_table(r, layer, k));
    return k->mixer.kind == MIXER_ATTENTION ? read_indexer(r, &k->mixer) : ERR_OK;
}

enum err_code extend_qwen4(struct reader *r)
{
    r->m->hyper_identity = true;
    TRY(reader_int(r, "hc_count", 2, 64, 4, &r->m->hyper_streams));         /* class defaults */
    return reader_int(r, "hc_lowrank", 1, 1 << 20, 320, &r->m->hyper_rank); /* not a unit */
}
