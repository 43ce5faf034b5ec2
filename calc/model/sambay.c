/* sambay -- SambaY (Phi-4-mini-flash): Mamba and windowed attention by turns, a full attention layer, and behind it
 * layers that attend to its cache or gate the output of the last scan. Sources: modeling_phi4flash of the published
 * model; arXiv 2507.06607. MODEL.md "One cache and one memory". */
#include <string.h>

#include "calc/model/vary.h"

/* sliding_window: a number, or as the class keeps it, one a layer, null where there is none. */
static enum err_code read_window(struct reader *r, int64_t *out)
{
    struct json j, item;
    int64_t one;
    *out = 2047; /* class default; not a unit */
    if (!json_get(&r->text, "sliding_window", &j)) return ERR_OK;
    if (!json_is_array(&j)) return json_int(&j, 1, INT64_C(1) << 40, out, r->e);
    *out = 0;
    for (size_t i = 0; json_at(&j, i, NULL, &item); i++) {
        if (!json_is_number(&item)) continue;
        TRY(json_int(&item, 1, INT64_C(1) << 40, &one, r->e));
        if (*out > 0 && one != *out) return json_want(&j, "one window for all layers that have one", r->e);
        *out = one;
    }
    return *out > 0 ? ERR_OK : json_want(&j, "a window", r->e);
}

/* Attention by differences of pairs of heads, without positions. */
static enum err_code read_attention(struct reader *r, struct mixer *x)
{
    x->kind = MIXER_ATTENTION;
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &x->heads));
    TRY(reader_dim(r, DIM_KV_HEADS, 1, x->heads, &x->kv_heads));
    if (r->m->hidden % x->heads != 0 || x->heads % x->kv_heads != 0 || x->kv_heads % 2 != 0)
        return err_set(r->e, ERR_INPUT, "%s: %lld heads, %lld of keys, do not divide a width of %lld into pairs",
                       r->text.file, (long long)x->heads, (long long)x->kv_heads, (long long)r->m->hidden);
    x->head_dim = x->v_head_dim = r->m->hidden / x->heads;
    x->qkv_bias = x->o_bias = true;
    x->differential = x->difference_weight = true;
    x->position = POSITION_NONE;
    return ERR_OK;
}

enum err_code structure_sambay(struct reader *r)
{
    struct model *m = r->m;
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    struct mixer *attention = arena_alloc(r->arena, sizeof *attention), *scan = arena_alloc(r->arena, sizeof *scan);
    int64_t window, every;
    bool biased;
    if (!k || !attention || !scan) return err_nomem(r->e);
    TRY(reader_dim(r, DIM_HIDDEN, 1, -1, &m->hidden));
    TRY(reader_dim(r, DIM_LAYERS, 1, -1, &m->layers));
    TRY(reader_dim(r, DIM_VOCAB, 1, -1, &m->vocab));
    TRY(reader_int(r, "mb_per_layer", 0, LAYERS_MAX, 2, &every));
    if (every != 2 || m->layers % 4 != 0)
        return err_set(r->e, ERR_INPUT,
                       "%s: mb_per_layer %lld of %lld layers: described are two halves of an even number of layers, "
                       "every second one Mamba",
                       r->text.file, (long long)every, (long long)m->layers);
    TRY(read_window(r, &window));
    TRY(read_attention(r, attention));
    TRY(recurrent_mamba(r, scan));
    TRY(reader_flag(r, &r->text, "mlp_bias", false, &biased));
    k->norms = 2;
    TRY(reader_dense(r, &k->ffn));
    k->ffn.up_bias = k->ffn.down_bias = biased;
    const int64_t half = m->layers / 2;
    for (int64_t i = 0; i < m->layers; i++) {
        memcpy(&k->mixer, i % 2 == 0 ? scan : attention, sizeof k->mixer);
        if (i % 2 == 0 && i > half) { /* gates what layer half scanned */
            k->mixer.recurrence =
                (struct recurrence){.block = RECURRENT_MEMORY, .proj_bias = scan->recurrence.proj_bias};
            k->mixer.head_dim = 1;
        }
        if (i % 2 == 1 && i < half) k->mixer.window_tokens = window;
        if (i % 2 == 1 && i > half + 1) k->mixer.shares_kv = true;
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
    }
    return ERR_OK;
}
