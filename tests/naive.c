#include "tests/naive_walk.h"

#include <stdlib.h>
#include <string.h>

struct cells cells_open(int n, double element_bytes, double *into)
{
    struct cells c = {.seen = calloc((size_t)n + 1, 1), .element_bytes = element_bytes, .into = into};
    if (!c.seen) abort();
    return c;
}

void touch(struct cells *c, int i)
{
    if (c->seen[i]) return;
    c->seen[i] = 1;
    if (c->into) *c->into += c->element_bytes;
}

/* A stored matrix with the scales that its elements need. */
struct matrix {
    struct cells element, scale;
    int rows, cols, tile_rows, tile_cols, tiles_across;
    bool flat;
};

static struct matrix matrix_open(int rows, int cols, const struct naive_format *f, double *into)
{
    struct matrix m = {.rows = rows, .cols = cols, .tile_rows = f->rows > 0 ? f->rows : 1};
    m.tile_cols = f->cols > 0 ? f->cols : cols;
    m.flat = f->flat;
    int tiles = 0;
    for (int at = 0; at < cols; at += m.tile_cols) m.tiles_across++;
    for (int at = 0; at < rows * cols; at += m.flat ? m.tile_cols : rows * cols) tiles++;
    if (!m.flat) tiles = rows * m.tiles_across;
    m.element = cells_open(rows * cols, f->element_bytes, into);
    m.scale = cells_open(tiles, f->scale_bytes, f->cols == 0 ? NULL : into);
    *into += f->matrix_bytes;
    for (int at = 0; at < cols; at++) *into += f->column_bytes;
    for (int at = 0; f->tiles && at < tiles; at += f->tiles) *into += f->tiles_bytes;
    return m;
}

static void matrix_touch(struct matrix *m, int row, int col)
{
    touch(&m->element, row * m->cols + col);
    touch(&m->scale,
          m->flat ? (row * m->cols + col) / m->tile_cols : row / m->tile_rows * m->tiles_across + col / m->tile_cols);
}

static void matrix_close(struct matrix *m)
{
    free(m->element.seen);
    free(m->scale.seen);
}

struct naive_op *op_open(struct walk *w, const char *name)
{
    if (w->ops->n == NAIVE_OPS) abort();
    struct naive_op *op = &w->ops->op[w->ops->n++];
    *op = (struct naive_op){.name = name, .layer = w->layer};
    return op;
}

/* Keep a matrix in memory: every element and every scale. */
void store(struct naive_op *op, int rows, int cols, const struct naive_format *f)
{
    struct matrix m = matrix_open(rows, cols, f, &op->stored_bytes);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            op->stored_elems++;
            matrix_touch(&m, i, j);
        }
    matrix_close(&m);
}

/* Store a vector and, where the operator uses it, read it. */
void vector(struct walk *w, struct naive_op *op, int n, bool read)
{
    store(op, 1, n, &w->m->other);
    for (int i = 0; read && i < n; i++) op->weight_bytes += w->m->other.element_bytes;
}

struct cells activations(struct walk *w, struct naive_op *op, int n)
{
    return cells_open(n, w->m->activation_bytes, &op->activation_bytes);
}

/* An elementwise kernel: each element of n_in arrays read, each of n_out arrays written. */
void elementwise(struct walk *w, struct naive_op *op, int n, int n_in, int n_out, int flops)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n_in + n_out; j++) op->activation_bytes += w->m->activation_bytes;
        op->vector_flops += flops;
    }
}

/* y[rows, ...] = x[rows, in] with n matrices of out[i] rows over one x. */
struct naive_op *product(struct walk *w, const char *name, int rows, int in, int n, const int *out,
                         const struct naive_format *f, bool bias)
{
    struct naive_op *op = op_open(w, name);
    struct cells x = activations(w, op, rows * in);
    for (int k = 0; k < n; k++) {
        struct matrix a = matrix_open(out[k], in, f, &op->weight_bytes);
        struct cells y = activations(w, op, rows * out[k]);
        store(op, out[k], in, f);
        if (bias) vector(w, op, out[k], true);
        for (int r = 0; r < rows; r++)
            for (int o = 0; o < out[k]; o++) {
                for (int i = 0; i < in; i++) {
                    op->flops += 2;
                    touch(&x, r * in + i);
                    matrix_touch(&a, o, i);
                }
                if (bias) op->vector_flops++;
                touch(&y, r * out[k] + o);
            }
        matrix_close(&a);
        free(y.seen);
    }
    free(x.seen);
    return op;
}

struct naive_op *linear(struct walk *w, const char *name, int rows, int in, int out, const struct naive_format *f,
                        bool bias)
{
    return product(w, name, rows, in, 1, &out, f, bias);
}

static void norms(struct walk *w, const char *name, int n)
{
    if (n == 0) return;
    struct naive_op *op = op_open(w, name);
    for (int k = 0; k < n; k++) {
        elementwise(w, op, w->tokens * w->m->hidden, 1, 1, w->m->norm_flops);
        for (int v = 0; v < w->m->norm_vectors && !w->m->bare_norms; v++)
            vector(w, op, w->m->hidden, !w->p->norms_uncounted);
    }
}

/* RMS norm of parts of a row. */
static void part_norm(struct walk *w, const char *name, int width)
{
    struct naive_op *op = op_open(w, name);
    elementwise(w, op, w->tokens * width, 1, 1, 4);
}

static void residual(struct walk *w, const char *name)
{
    elementwise(w, op_open(w, name), w->tokens * w->m->hidden, 2, 1, 1);
}

/* Behind a block of a layer: the stream may be multiplied first. */
static void block_residual(struct walk *w, const struct naive_layer *l, const char *name)
{
    residual(w, name);
    if (!l->residual_weights) return;
    struct naive_op *op = &w->ops->op[w->ops->n - 1];
    vector(w, op, w->m->hidden, true);
    for (int i = 0; i < w->tokens * w->m->hidden; i++) op->vector_flops++;
}

/* A ring: the vector in as many chunks as ranks; each rank passes a chunk on 2(ranks-1) times. */
void all_reduce_of(struct walk *w, const char *name, int n)
{
    const int ranks = w->p->ranks;
    if (ranks == 1) return;
    struct naive_op *op = op_open(w, name);
    elementwise(w, op, n, 1, 1, 0);
    for (int step = 0; step < 2 * (ranks - 1); step++) op->wire_bytes += (double)n / ranks * w->m->activation_bytes;
}

static void all_reduce(struct walk *w, const char *name) { all_reduce_of(w, name, w->tokens * w->m->hidden); }

/* ---- attention ---- */

/* The heads of rank 0 and the KV heads they use. */
static void share_heads(struct walk *w, const struct naive_layer *l)
{
    int local[64];
    w->heads = l->heads / w->p->ranks;
    w->groups = 0;
    for (int h = 0; h < l->heads; h++) local[h] = -1;
    for (int h = 0; h < w->heads; h++) {
        const int g = l->kv_rank ? h : h / (l->heads / l->kv_heads);
        if (local[g] < 0) local[g] = w->groups++;
        w->group_of[h] = local[g];
    }
}

static bool sees(const struct naive_layer *l, int query, int key)
{
    if (l->both_ways) return l->block == 0 || key / l->block <= query / l->block;
    if (l->chunked) return key <= query && key / l->window == query / l->window;
    return key <= query && (l->window == 0 || key > query - l->window);
}

/* What is held of each token for attention: `record` elements, of which head h uses key[h][d] and value[h][d]. */
struct held {
    int record, key_dim, value_dim;
    int key[64][64], value[64][64];
};

/* Elements of one token's record that a head needs, one by one. */
static void touch_record(const struct held *k, int h, struct matrix *m, int row)
{
    for (int d = 0; d < k->key_dim; d++) matrix_touch(m, row, k->key[h][d]);
    for (int d = 0; d < k->value_dim; d++) matrix_touch(m, row, k->value[h][d]);
}

/* The keys that a query selects among those it sees: such that queries share as few as they can, which is the most that
 * a kernel may have to read. */
static void select_keys(const struct naive_layer *l, int query, unsigned char *taken, unsigned char *chosen)
{
    int left = l->top_keys;
    memset(chosen, 0, (size_t)query + 1);
    for (int round = 0; round < 2; round++) /* keys that no query has, then others */
        for (int key = 0; key <= query && left > 0; key++) {
            if (chosen[key] || (round == 0 && taken[key])) continue;
            chosen[key] = taken[key] = 1;
            left--;
        }
}

/* Keys of old tokens that must be read when queries agree as far as they can: the first one takes itself and fills up
 * with old ones; new tokens are all written, since a later token may select any. */
static void needed_selected(struct walk *w, struct naive_op *op, const struct naive_layer *l, int record)
{
    const struct naive_pass *p = w->p;
    struct matrix m = matrix_open(p->B * p->S, record, &w->m->cache, &op->kv_needed_bytes);
    for (int b = 0; b < p->B; b++) {
        int left = l->top_keys - 1;
        for (int key = 0; key < p->S; key++) {
            if (key < p->S - p->T && left-- <= 0) continue;
            for (int d = 0; d < record; d++) matrix_touch(&m, b * p->S + key, d);
        }
    }
    matrix_close(&m);
}

/* Old tokens that any query sees are read; new ones are written while a later token could see them. */
static void needed_as(struct walk *w, struct naive_op *op, const struct naive_layer *l, int record,
                      const struct naive_format *format)
{
    const struct naive_pass *p = w->p;
    struct matrix m = matrix_open(p->B * p->S, record, format, &op->kv_needed_bytes);
    for (int b = 0; b < p->B; b++)
        for (int key = 0; key < p->S; key++) {
            bool use = key >= p->S - p->T && sees(l, p->S - 1, key);
            for (int q = p->S - p->T; key < p->S - p->T && q < p->S; q++) use = use || sees(l, q, key);
            for (int d = 0; use && d < record; d++) matrix_touch(&m, b * p->S + key, d);
        }
    matrix_close(&m);
}

static void needed(struct walk *w, struct naive_op *op, const struct naive_layer *l, int record)
{
    needed_as(w, op, l, record, &w->m->cache);
}

static struct naive_op *attend(struct walk *w, const struct naive_layer *l, const struct held *k, bool from_cache)
{
    const struct naive_pass *p = w->p;
    const struct naive_format plain = {.element_bytes = w->m->activation_bytes};
    struct naive_op *op = op_open(w, "attention");
    struct cells q = activations(w, op, w->tokens * w->heads * k->key_dim);
    struct cells y = activations(w, op, w->tokens * w->heads * k->value_dim);
    struct matrix held = from_cache ? matrix_open(p->B * p->S, k->record, &w->m->cache, &op->kv_bytes)
                                    : matrix_open(p->B * p->S, k->record, &plain, &op->activation_bytes);
    unsigned char taken[64], chosen[64]; /* of a sequence: by some query; by this one */
    for (int b = 0; b < p->B; b++)
        for (int t = 0; t < p->T; t++)
            for (int h = 0; h < w->heads; h++) {
                const int query = p->S - p->T + t, row = (b * p->T + t) * w->heads + h;
                if (t == 0 && h == 0) memset(taken, 0, sizeof taken);
                if (l->top_keys && h == 0) select_keys(l, query, taken, chosen);
                /* full: as many pairs as the window or the context allows, or as are in the block, masked ones too */
                int pairs = 0;
                for (int key = 0; key < p->S; key++) {
                    const bool unmasked = l->both_ways  ? true
                                          : l->chunked  ? key / l->window == query / l->window
                                          : l->top_keys ? pairs < l->top_keys
                                                        : l->window == 0 || pairs < l->window;
                    const bool seen = sees(l, query, key) && (!l->top_keys || chosen[key]);
                    if (p->causal_full ? unmasked : seen) {
                        pairs++;
                        for (int d = 0; d < k->key_dim; d++) op->flops += 2;
                        op->vector_flops += 5;               /* maximum, difference, exponential, sum, quotient */
                        if (l->alibi) op->vector_flops += 2; /* slope times distance, added */
                        if (l->value_mask) op->vector_flops++;
                        for (int d = 0; d < k->value_dim; d++) op->flops += 2;
                    }
                    if (seen) touch_record(k, h, &held, b * p->S + key);
                }
                for (int d = 0; d < k->key_dim; d++) touch(&q, row * k->key_dim + d);
                for (int d = 0; d < k->value_dim; d++) touch(&y, row * k->value_dim + d);
            }
    if (from_cache && l->top_keys)
        needed_selected(w, op, l, k->record);
    else if (from_cache)
        needed(w, op, l, k->record);
    if (l->sinks) vector(w, op, w->heads, true);
    free(q.seen);
    free(y.seen);
    matrix_close(&held);
    return op;
}

static void write_cache_as(struct walk *w, const char *name, int record, const struct naive_format *format)
{
    if (w->p->uncached) return;
    struct naive_op *op = op_open(w, name);
    struct matrix m = matrix_open(w->tokens, record, format, &op->kv_bytes);
    for (int i = 0; i < w->tokens; i++)
        for (int d = 0; d < record; d++) {
            op->activation_bytes += w->m->activation_bytes;
            matrix_touch(&m, i, d);
        }
    matrix_close(&m);
}

static void write_cache(struct walk *w, const char *name, int record) { write_cache_as(w, name, record, &w->m->cache); }

/* Squares of a token's queries, and of its keys, summed over ranks in fp32: a ring as above. */
static void sum_squares(struct walk *w)
{
    const int ranks = w->p->ranks, sums = w->tokens * 2;
    if (ranks == 1) return;
    struct naive_op *op = op_open(w, "qk_norm_all_reduce");
    for (int i = 0; i < sums; i++) op->activation_bytes += 4 + 4;
    for (int step = 0; step < 2 * (ranks - 1); step++) op->wire_bytes += (double)sums / ranks * 4;
}

/* Norms of query heads and of the key heads that the layer makes. */
static void norm_heads(struct walk *w, const struct naive_layer *l, int width)
{
    const int each[] = {w->heads, w->groups}, vectors = l->qk_vectors ? l->qk_vectors : 1;
    if (l->qk_wide) sum_squares(w);
    struct naive_op *op = op_open(w, "qk_norm");
    elementwise(w, op, w->tokens * width, 1, 1, l->qk_flops ? l->qk_flops : 4);
    for (int side = 0; side < (l->shares_kv ? 1 : 2) && !l->qk_bare; side++)
        for (int v = 0; v < (l->qk_each ? each[side] * vectors : vectors); v++)
            vector(w, op, l->key_dim, !w->p->norms_uncounted);
    if (l->idle_kv) vector(w, op, l->key_dim, false);
}

/* A low-rank product beside each of q, k and v. */
static void qkv_adapters(struct walk *w, int in, int rank, const int *out)
{
    const int down[] = {rank, rank, rank}, wide = out[0] + out[1] + out[2];
    struct naive_op *op = product(w, "qkv_adapter_down", w->tokens, in, 3, down, &w->m->mixer, false);
    op = op_open(w, "qkv_adapter_up");
    for (int side = 0; side < 3; side++) {
        const double before = op->stored_bytes;
        store(op, out[side], rank, &w->m->mixer);
        op->weight_bytes += op->stored_bytes - before;
        for (int t = 0; t < w->tokens; t++) {
            for (int k = 0; k < rank; k++) op->activation_bytes += w->m->activation_bytes;
            for (int o = 0; o < out[side]; o++) {
                op->activation_bytes += w->m->activation_bytes;
                for (int k = 0; k < rank; k++) op->flops += 2;
            }
        }
    }
    elementwise(w, op_open(w, "qkv_adapter_add"), w->tokens * wide, 2, 1, 1);
}

static void latent_norm(struct walk *w, const char *name, int width)
{
    part_norm(w, name, width);
    vector(w, &w->ops->op[w->ops->n - 1], width, !w->p->norms_uncounted);
}

/* Scores of every key that a query sees, by small heads; one comparison each for the choice of the best. */
static void indexer(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const struct naive_pass *p = w->p;
    const struct naive_format plain = {.element_bytes = m->activation_bytes};
    const struct naive_format fp8 = NAIVE_TILED(1, 1, 128, 4), *cache = l->index_blocks ? &m->cache : &fp8;
    const int dim = l->index_dim;
    int n = l->index_heads, parts = l->index_blocks ? p->ranks : 1; /* heads of blocks as KV heads are split */
    while (n % parts || p->ranks % parts) parts--;
    n /= parts;
    linear(w, "index_q_proj", w->tokens, l->index_blocks ? m->hidden : l->q_rank, n * dim, &m->mixer, false);
    linear(w, "index_k_proj", w->tokens, m->hidden, dim, &m->mixer, false);
    /* an RMS norm of queries and one of keys; of keys alone a layer norm with bias */
    struct naive_op *op = op_open(w, l->index_blocks ? "index_norm" : "index_k_norm");
    elementwise(w, op, w->tokens * (l->index_blocks ? n + 1 : 1) * dim, 1, 1, l->index_blocks ? 4 : 7);
    for (int v = 0; v < 2; v++) vector(w, op, dim, !p->norms_uncounted);
    elementwise(w, op_open(w, "index_rope"), w->tokens * (n + 1) * (l->index_blocks ? dim : l->rope_dim), 1, 1, 3);
    write_cache_as(w, "index_write", dim, cache);
    if (!l->index_blocks) linear(w, "index_weights", w->tokens, m->hidden, n, &m->router, false);
    op = op_open(w, "index");
    struct cells q = activations(w, op, w->tokens * n * dim), weight = activations(w, op, w->tokens * n);
    struct matrix keys = p->uncached ? matrix_open(p->B * p->S, dim, &plain, &op->activation_bytes)
                                     : matrix_open(p->B * p->S, dim, cache, &op->kv_bytes);
    for (int b = 0; b < p->B; b++)
        for (int t = 0; t < p->T; t++)
            for (int key = 0; key < p->S; key++) {
                const int token = b * p->T + t;
                const bool seen = key <= p->S - p->T + t;
                if (!seen && !p->causal_full) continue;
                for (int h = 0; h < n; h++) {
                    for (int d = 0; d < dim; d++) {
                        op->flops += 2;
                        touch(&q, (token * n + h) * dim + d);
                        if (seen) matrix_touch(&keys, b * p->S + key, d);
                    }
                    op->vector_flops += l->index_blocks ? 1 : 3; /* maximum; ReLU, times the head's weight, sum */
                    if (!l->index_blocks) touch(&weight, token * n + h);
                }
                if (!l->index_blocks) op->vector_flops++;
            }
    if (!p->uncached) needed_as(w, op, l, dim, cache);
    free(q.seen);
    free(weight.seen);
    matrix_close(&keys);
}

static void grouped_query(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int q = w->heads * l->key_dim, keys = w->groups * l->key_dim, values = w->groups * l->value_dim;
    const int qkv[] = {l->output_gate ? 2 * q : q, keys, values}, made = l->shares_kv ? 0 : keys;
    const char *name = l->shares_kv ? "q_proj" : l->v_is_k ? "qk_proj" : l->q_rank ? "qkv_a_proj" : "qkv_proj";
    const int first[] = {l->q_rank ? l->q_rank : qkv[0], qkv[1], qkv[2]};
    struct naive_op *op = product(w, name, w->tokens, l->doubled_input ? 2 * m->hidden : m->hidden,
                                  l->shares_kv ? 1
                                  : l->v_is_k  ? 2
                                               : 3,
                                  first, &m->mixer, l->qkv_bias);
    if (l->q_rank) {
        latent_norm(w, "q_a_norm", l->q_rank);
        op = linear(w, "q_b_proj", w->tokens, l->q_rank, q, &m->mixer, false);
    }
    for (int i = 1; i < 3 && l->idle_kv; i++) store(op, qkv[i], m->hidden, &m->mixer);
    if (l->qkv_rank) qkv_adapters(w, l->doubled_input ? 2 * m->hidden : m->hidden, l->qkv_rank, qkv);
    if (l->state.taps) naive_conv(w, l, q + keys + values, 0, 1);
    if (l->qk_norm) norm_heads(w, l, q + made);
    if (l->v_norm && !l->shares_kv) elementwise(w, op_open(w, "v_norm"), w->tokens * values, 1, 1, 3);
    /* a pair turns by 4 products and 2 sums: 3 an element */
    if (m->positions == 0 && !l->alibi && !l->unrotated)
        elementwise(w, op_open(w, "rope"), w->tokens * (q + made), 1, 1, 3);
    if (l->features_kv) { /* weights that the block's own tokens have met */
        op = product(w, "feature_kv", w->tokens, m->hidden, 2, qkv + 1, &m->mixer, l->qkv_bias);
        op->stored_elems = op->stored_bytes = 0;
        op->reread = true;
        if (l->qk_norm) {
            op = op_open(w, "feature_k_norm");
            elementwise(w, op, w->tokens * keys, 1, 1, 4);
            vector(w, op, l->key_dim, !w->p->norms_uncounted);
            op->stored_elems = op->stored_bytes = 0;
            op->reread = true;
        }
        elementwise(w, op_open(w, "feature_rope"), w->tokens * keys, 1, 1, 3);
    }
    if (!l->shares_kv) write_cache(w, "kv_write", keys + values);
    struct held k = {.record = keys + values, .key_dim = l->key_dim, .value_dim = l->value_dim};
    for (int h = 0; h < w->heads; h++) {
        for (int d = 0; d < l->key_dim; d++) k.key[h][d] = w->group_of[h] * l->key_dim + d;
        for (int d = 0; d < l->value_dim; d++) k.value[h][d] = keys + w->group_of[h] * l->value_dim + d;
    }
    for (int h = 0; h < w->heads && l->pairs; h++) { /* heads 2j and 2j+1 have keys of their own, values of both */
        const int pair = h / 2 / (w->heads / w->groups), key = 2 * pair + h % 2;
        k.value_dim = 2 * l->value_dim;
        for (int d = 0; d < l->key_dim; d++) k.key[h][d] = key * l->key_dim + d;
        for (int d = 0; d < k.value_dim; d++) k.value[h][d] = keys + 2 * pair * l->value_dim + d;
    }
    if (l->index_heads) indexer(w, l);
    if (l->value_mask) naive_key_mask(w, l);
    op = attend(w, l, &k, !w->p->uncached);
    if (l->shares_kv) op->kv_needed_bytes = 0; /* moved for the layer that made it */
    if (l->pairs) naive_difference(w, l);
    if (l->output_gate) elementwise(w, op_open(w, "output_gate"), w->tokens * w->heads * l->value_dim, 2, 1, 5);
    if (l->head_gate) {
        linear(w, "head_gate_proj", w->tokens, m->hidden, w->heads, &m->mixer, false);
        op = op_open(w, "head_gate");
        elementwise(w, op, w->tokens * w->heads, 1, 0, 4); /* sigmoid: neg, exp, +, / */
        elementwise(w, op, w->tokens * w->heads * l->value_dim, 1, 1, 1);
    }
    linear(w, "o_proj", w->tokens, w->heads * l->value_dim, m->hidden, &m->mixer, l->o_bias);
}

/* Each head has a slice of its own: rows of the expansion for it, over the latent. */
static void per_head(struct walk *w, const char *name, int in, int out, int rows, int cols)
{
    struct naive_op *op = op_open(w, name);
    struct naive_format f = w->m->mixer;
    if (cols == in) f.matrix_bytes = f.column_bytes = 0; /* of the matrix that both halves share: once */
    struct matrix a = matrix_open(w->heads * rows, cols, &f, &op->weight_bytes);
    struct cells x = activations(w, op, w->tokens * w->heads * in), y = activations(w, op, w->tokens * w->heads * out);
    store(op, w->heads * rows, cols, &f);
    for (int t = 0; t < w->tokens; t++)
        for (int h = 0; h < w->heads; h++)
            for (int o = 0; o < out; o++)
                for (int i = 0; i < in; i++) {
                    op->flops += 2;
                    touch(&x, (t * w->heads + h) * in + i);
                    touch(&y, (t * w->heads + h) * out + o);
                    matrix_touch(&a, h * rows + (cols == out ? i : o), cols == out ? o : i);
                }
    matrix_close(&a);
    free(x.seen);
    free(y.seen);
}

/* Attention in the latent space: key = latent and rope part, value = latent, the same for all heads. */
static void attend_absorbed(struct walk *w, const struct naive_layer *l)
{
    struct held k = {.record = l->kv_rank + l->rope_dim, .key_dim = l->kv_rank + l->rope_dim, .value_dim = l->kv_rank};
    for (int h = 0; h < w->heads; h++) {
        for (int d = 0; d < k.key_dim; d++) k.key[h][d] = d;
        for (int d = 0; d < k.value_dim; d++) k.value[h][d] = d;
    }
    per_head(w, "q_absorb", l->key_dim, l->kv_rank, l->key_dim, l->kv_rank);
    attend(w, l, &k, !w->p->uncached);
    per_head(w, "v_absorb", l->kv_rank, l->value_dim, l->value_dim, l->kv_rank);
}

/* Latents of all S tokens become keys and values of all heads. Old ones come from the cache with their rope part. */
static void attend_expanded(struct walk *w, const struct naive_layer *l)
{
    const struct naive_pass *p = w->p;
    const int keys = w->heads * l->key_dim, wide = keys + w->heads * l->value_dim, record = l->kv_rank + l->rope_dim;
    struct naive_op *op = linear(w, "kv_b_proj", p->B * p->S, l->kv_rank, wide, &w->m->mixer, false);
    if (!p->uncached) {
        for (int old = 0; old < p->B * (p->S - p->T); old++) {
            for (int d = 0; d < l->kv_rank; d++) op->activation_bytes -= w->m->activation_bytes; /* not made here */
            for (int d = 0; d < record; d++) op->kv_bytes += w->m->cache.element_bytes;
        }
        needed(w, op, l, record);
    }
    struct held k = {.record = wide, .key_dim = l->key_dim + l->rope_dim, .value_dim = l->value_dim};
    for (int h = 0; h < w->heads; h++) {
        for (int d = 0; d < l->key_dim; d++) k.key[h][d] = h * l->key_dim + d;
        for (int d = l->key_dim; d < k.key_dim; d++) k.key[h][d] = h * l->key_dim; /* shared, below */
        for (int d = 0; d < l->value_dim; d++) k.value[h][d] = keys + h * l->value_dim + d;
    }
    op = attend(w, l, &k, false);
    for (int i = 0; i < w->tokens * l->rope_dim; i++) op->activation_bytes += w->m->activation_bytes;
}

static void latent(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int q = w->heads * (l->key_dim + l->rope_dim);
    if (l->q_rank) {
        linear(w, "q_a_proj", w->tokens, m->hidden, l->q_rank, &m->mixer, false);
        latent_norm(w, "q_a_norm", l->q_rank);
        if (l->gate_of_latent)
            linear(w, "q_gate_proj", w->tokens, 2 * l->q_rank, q + w->heads * l->value_dim, &m->mixer, false);
        else
            linear(w, "q_b_proj", w->tokens, l->q_rank, q, &m->mixer, false);
    } else {
        linear(w, "q_proj", w->tokens, m->hidden, q, &m->mixer, false);
    }
    linear(w, "kv_a_proj", w->tokens, m->hidden, l->kv_rank + l->rope_dim, &m->mixer, false);
    latent_norm(w, "kv_a_norm", l->kv_rank);
    if (!l->unrotated) elementwise(w, op_open(w, "rope"), w->tokens * (w->heads + 1) * l->rope_dim, 1, 1, 3);
    write_cache(w, "kv_write", l->kv_rank + l->rope_dim);
    if (l->index_heads) indexer(w, l);
    if (w->p->absorbed || l->top_keys)
        attend_absorbed(w, l);
    else
        attend_expanded(w, l);
    if (l->output_gate) {
        const int wide = w->heads * l->value_dim;
        if (!l->gate_of_latent) linear(w, "output_gate_proj", w->tokens, m->hidden, wide, &m->mixer, false);
        elementwise(w, op_open(w, "output_gate"), w->tokens * wide, 2, 1, 5);
    }
    linear(w, "o_proj", w->tokens, w->heads * l->value_dim, m->hidden, &m->mixer, l->o_bias);
}

/* ---- feed-forward ---- */

/* SiLU is neg, exp, +, / and the gate one product more. */
void naive_activation(struct walk *w, const char *name, int n, bool gated)
{
    elementwise(w, op_open(w, name), n, gated ? 2 : 1, 1, gated ? 5 : 4);
}

/* l: the layer whose MLP it is; NULL for shared experts. */
static void dense(struct walk *w, const char *up, const char *act, const char *down, int width, bool gated, bool bias,
                  const struct naive_layer *l)
{
    const int adapter = l ? l->adapter_rank : 0;
    const int out[] = {width, width};
    product(w, up, w->tokens, w->m->hidden, gated ? 2 : 1, out, &w->m->ffn, bias);
    if (adapter) {
        linear(w, "adapter_down", w->tokens, w->m->hidden, adapter, &w->m->ffn, false);
        linear(w, "adapter_up", w->tokens, adapter, gated ? 2 * width : width, &w->m->ffn, false);
        elementwise(w, op_open(w, "adapter_add"), w->tokens * (gated ? 2 * width : width), 2, 1, 1);
    }
    naive_activation(w, act, w->tokens * width, gated);
    if (l && l->act_stored) vector(w, &w->ops->op[w->ops->n - 1], l->act_stored, true);
    if (l && l->inner_norm) latent_norm(w, "mlp_inner_norm", width);
    linear(w, down, w->tokens, width, w->m->hidden, &w->m->ffn, bias);
}

/* All of it in one kernel: what a token's row of gate and up holds is written to memory, and is still on chip when the
 * last product reads it. */
static void fused(struct walk *w, int width, bool gated, bool bias)
{
    struct walk parts = *w;
    struct naive_ops scratch = {.n = 0};
    parts.ops = &scratch;
    dense(&parts, "up", "act", "down", width, gated, bias, NULL);
    struct naive_op *op = op_open(w, "mlp");
    for (size_t i = 0; i < scratch.n; i++) {
        op->flops += scratch.op[i].flops;
        op->weight_bytes += scratch.op[i].weight_bytes;
        op->stored_elems += scratch.op[i].stored_elems;
        op->stored_bytes += scratch.op[i].stored_bytes;
    }
    op->vector_flops = scratch.op[1].vector_flops + scratch.op[0].vector_flops + scratch.op[2].vector_flops;
    struct cells x = activations(w, op, w->tokens * w->m->hidden), y = activations(w, op, w->tokens * w->m->hidden);
    struct cells a = activations(w, op, w->tokens * width), b = activations(w, op, w->tokens * width);
    for (int t = 0; t < w->tokens; t++)
        for (int f = 0; f < width; f++)
            for (int d = 0; d < w->m->hidden; d++) {
                touch(&x, t * w->m->hidden + d);
                touch(&a, t * width + f);
                if (gated) touch(&b, t * width + f);
                touch(&y, t * w->m->hidden + d);
            }
    free(x.seen);
    free(y.seen);
    free(a.seen);
    free(b.seen);
}

/* Every token meets `chosen` experts; an expert's matrices are read with the probability that some token chose it. */
static void grouped(struct walk *w, const char *name, const struct naive_layer *l, int in, int n, const int *out)
{
    struct naive_op *op = op_open(w, name);
    double missed = 1;
    for (int t = 0; t < w->tokens; t++) missed *= 1 - (double)l->chosen / l->experts;
    for (int e = 0; e < l->experts; e++) {
        const double before = op->stored_bytes;
        for (int k = 0; k < n; k++) {
            store(op, out[k], in, &w->m->expert);
            if (l->expert_bias) vector(w, op, out[k], false);
        }
        op->weight_bytes += (1 - missed) * (op->stored_bytes - before);
    }
    for (int row = 0; row < w->tokens * l->chosen; row++) {
        for (int i = 0; i < in; i++) op->activation_bytes += w->m->activation_bytes;
        for (int k = 0; k < n; k++)
            for (int o = 0; o < out[k]; o++) {
                for (int i = 0; i < in; i++) op->flops += 2;
                if (l->expert_bias) op->vector_flops++;
                op->activation_bytes += w->m->activation_bytes;
            }
    }
}

static void experts(struct walk *w, const struct naive_layer *l)
{
    const struct naive_model *m = w->m;
    const int stream = l->latent ? l->latent : m->hidden;
    const int width = l->expert_width / w->p->ranks, up[] = {width, width}, down[] = {stream};
    norms(w, "branch_norm", l->branch_norms);
    norms(w, "router_norm", l->router_norm ? 1 : 0);
    const int known = l->experts + l->idle;
    linear(w, "router", w->tokens, m->hidden, known, &m->router, l->router_bias);
    struct naive_op *op = op_open(w, "route");
    for (int t = 0; t < w->tokens; t++) {
        elementwise(w, op, known, 1, 0, 5);
        elementwise(w, op, l->chosen, 0, 1, 0);
    }
    if (l->correction) { /* kept in four bytes */
        const struct naive_format wide = {.element_bytes = 4};
        store(op, 1, known, &wide);
        for (int i = 0; i < known; i++) op->weight_bytes += 4;
    }
    if (l->expert_scale) {
        vector(w, op, l->experts, true);
        for (int i = 0; i < w->tokens * l->chosen; i++) op->vector_flops++;
    }
    if (l->latent) linear(w, "latent_down", w->tokens, m->hidden, l->latent, &m->ffn, l->mlp_bias);
    grouped(w, "experts_up", l, stream, l->ungated ? 1 : 2, up);
    naive_activation(w, "experts_act", w->tokens * l->chosen * width, !l->ungated);
    grouped(w, "experts_down", l, width, 1, down);
    op = op_open(w, "combine");
    elementwise(w, op, w->tokens * l->chosen * stream, 1, 0, 2);
    elementwise(w, op, w->tokens * stream, 0, 1, 0);
    if (l->group) naive_groups(w, l);
    if (l->latent_norm) { /* of the whole sum, so ranks add up first */
        if (w->p->ranks > 1) all_reduce_of(w, "latent_all_reduce", w->tokens * stream);
        latent_norm(w, "latent_norm", stream);
    }
    if (l->latent) linear(w, "latent_up", w->tokens, l->latent, m->hidden, &m->ffn, l->mlp_bias);
    if (l->shared_width == 0) return;
    dense(w, "shared_up", "shared_act", "shared_down", l->shared_width / w->p->ranks, !l->ungated, l->mlp_bias, NULL);
    if (l->shared_gate) linear(w, "shared_gate", w->tokens, m->hidden, 1, &m->router, false);
    op = op_open(w, "shared_add");
    elementwise(w, op, w->tokens * m->hidden, 2, 1, l->shared_gate ? 2 : 1);
    if (l->shared_gate) elementwise(w, op, w->tokens, 1, 0, 0);
}

static void channel_mix(struct walk *w, int width, bool bare)
{
    const struct naive_model *m = w->m;
    naive_token_shift(w, "channel_shift", bare ? 1 : 2);
    linear(w, "up_proj", w->tokens, m->hidden, width, &m->ffn, false);
    naive_activation(w, "mlp_act", w->tokens * width, false);
    linear(w, "down_proj", w->tokens, width, m->hidden, &m->ffn, false);
    if (bare) return;
    linear(w, "receptance", w->tokens, m->hidden, m->hidden, &m->ffn, false);
    elementwise(w, op_open(w, "channel_gate"), w->tokens * m->hidden, 2, 1, 5);
}

/* Of a layer that uses an earlier one's weights only its adapter and the product after it are stored. */
static void return_borrowed(struct walk *w, size_t start)
{
    static const char *const OWN[] = {"adapter_down", "adapter_up", "block_proj", "qkv_adapter_down", "qkv_adapter_up"};
    for (size_t i = start; i < w->ops->n; i++) {
        struct naive_op *op = &w->ops->op[i];
        bool own = false;
        for (size_t k = 0; k < sizeof OWN / sizeof OWN[0]; k++) own = own || strcmp(OWN[k], op->name) == 0;
        if (own) continue;
        op->stored_elems = op->stored_bytes = 0;
        op->reread = true;
    }
}

/* ---- the whole ---- */

static void embedding(struct walk *w, int rows)
{
    const struct naive_model *m = w->m;
    if (m->no_embedding) return;
    struct naive_op *op = op_open(w, "embed");
    store(op, rows + m->embed_extra, m->hidden, &m->embed);
    for (int t = 0; t < w->tokens; t++)
        for (int d = 0; d < m->hidden; d++) {
            op->activation_bytes += m->activation_bytes;
            if (!w->p->embed_full_table) op->weight_bytes += m->embed.element_bytes;
        }
    if (w->p->embed_full_table) op->weight_bytes = op->stored_bytes;
    if (m->embed_borrowed) op->stored_elems = op->stored_bytes = 0;
    if (m->positions > 0) {
        op = op_open(w, "positions");
        store(op, m->positions, m->hidden, &m->embed);
        elementwise(w, op, w->tokens * m->hidden, 1, 1, 1);
        for (int i = 0; i < w->tokens * m->hidden; i++) op->weight_bytes += m->embed.element_bytes;
    }
    all_reduce(w, "embed_all_reduce");
    if (m->embed_norm) norms(w, "embed_norm", 1);
}

/* Vectors side by side, each normed, become one. */
static void join(struct walk *w)
{
    const struct naive_model *m = w->m;
    if (m->joined == 0) return;
    norms(w, "join_norm", m->norms_before);
    linear(w, "join_proj", w->tokens, m->joined * m->hidden, m->hidden, &m->head, m->joined_bias);
    norms(w, "feature_norm", m->norms_after);
}

static void head(struct walk *w, int vocab)
{
    const struct naive_model *m = w->m;
    const int rows = w->p->head_all || w->p->all_logits ? w->tokens : w->p->B, ranks = w->p->ranks;
    const int heads = m->heads ? m->heads : 1, drawn = w->p->all_logits ? w->tokens : w->p->B;
    if (m->head_dense) naive_head_dense(w, rows);
    struct naive_op *op = op_open(w, "lm_head"), each = {.name = "lm_head", .layer = w->layer};
    for (int h = 0; h < heads; h++) { /* each over its own vector */
        struct naive_ops one = {.n = 0};
        struct walk part = *w;
        part.ops = &one;
        linear(&part, "lm_head", rows, m->hidden, vocab, m->tied ? &m->embed : &m->head, m->head_bias);
        if (m->tied || m->head_borrowed)
            one.op->stored_elems = one.op->stored_bytes = 0; /* the embedding's, another's */
        if (m->tied && m->head_bias) vector(&part, one.op, vocab, false);
        each.flops += one.op->flops;
        each.vector_flops += one.op->vector_flops;
        each.weight_bytes += one.op->weight_bytes;
        each.activation_bytes += one.op->activation_bytes;
        each.stored_elems += one.op->stored_elems;
        each.stored_bytes += one.op->stored_bytes;
    }
    *op = each;
    if (ranks > 1) {
        op = op_open(w, "logits_all_gather");
        const int logits = rows * heads * vocab;
        elementwise(w, op, logits, 1, 0, 0);
        for (int from = 0; from < ranks; from++) elementwise(w, op, logits, 0, 1, 0);
        for (int to = 1; to < ranks; to++) op->wire_bytes += logits * m->activation_bytes;
    }
    elementwise(w, op_open(w, "sample"), drawn * heads * ranks * vocab, 1, 0, 5);
}

/* ---- several residual streams, and inputs by layer ---- */

/* Inputs of all layers at once: a row of a table, and a product of the embedding, normed; their sum. */
static void layer_inputs(struct walk *w)
{
    const struct naive_model *m = w->m;
    const int wide = m->layers * m->layer_dim, ranks = w->p->ranks;
    int rows = 0;
    if (m->layer_dim == 0) return;
    while (rows * ranks < m->layer_vocab) rows++;
    struct naive_op *op = op_open(w, "layer_embed");
    store(op, rows, wide, &m->embed);
    for (int i = 0; i < w->tokens * wide; i++) {
        op->activation_bytes += m->activation_bytes;
        if (!w->p->embed_full_table) op->weight_bytes += m->embed.element_bytes;
    }
    if (w->p->embed_full_table) op->weight_bytes = op->stored_bytes;
    if (ranks > 1) {
        op = op_open(w, "layer_embed_all_reduce");
        elementwise(w, op, w->tokens * wide, 1, 1, 0);
        for (int step = 0; step < 2 * (ranks - 1); step++)
            op->wire_bytes += (double)w->tokens * wide / ranks * m->activation_bytes;
    }
    linear(w, "layer_input_proj", w->tokens, m->hidden, wide, &m->ffn, false);
    part_norm(w, "layer_input_norm", wide);
    vector(w, &w->ops->op[w->ops->n - 1], m->layer_dim, !w->p->norms_uncounted);
    elementwise(w, op_open(w, "layer_input_add"), w->tokens * wide, 2, 1, 1);
}

/* Matrices for all streams but the first; over one input, or each over its own. */
static void stream_products(struct walk *w, const char *name, bool one_input)
{
    const struct naive_model *m = w->m;
    struct naive_op *op = op_open(w, name);
    for (int s = 1; s < m->streams; s++) {
        struct matrix a = matrix_open(m->hidden, m->hidden, &m->ffn, &op->weight_bytes);
        store(op, m->hidden, m->hidden, &m->ffn);
        struct cells x = activations(w, op, w->tokens * m->hidden), y = activations(w, op, w->tokens * m->hidden);
        if (one_input && s > 1) x.into = NULL; /* read for the first */
        for (int t = 0; t < w->tokens; t++)
            for (int o = 0; o < m->hidden; o++)
                for (int i = 0; i < m->hidden; i++) {
                    op->flops += 2;
                    touch(&x, t * m->hidden + i);
                    touch(&y, t * m->hidden + o);
                    matrix_touch(&a, o, i);
                }
        free(x.seen);
        free(y.seen);
        matrix_close(&a);
    }
}

/* Further streams get the size of the first: squares and sums of all, products of the further ones. */
static void level(struct walk *w, const char *name)
{
    struct naive_op *op = op_open(w, name);
    const int n = w->tokens * w->m->hidden;
    elementwise(w, op, n, 1, 0, 2);
    for (int s = 1; s < w->m->streams; s++) elementwise(w, op, n, 1, 1, 3);
}

/* Norm, router and hyperbolic tangent over the active stream; stored once a layer. */
static void modalities(struct walk *w, const char *norm, const char *router, const char *tangent, bool stored)
{
    const size_t from = w->ops->n;
    norms(w, norm, 1);
    linear(w, router, w->tokens, w->m->hidden, w->m->streams, &w->m->router, false);
    for (size_t i = from; i < w->ops->n && stored; i++) {
        w->ops->op[i].stored_elems = w->ops->op[i].stored_bytes = 0;
        w->ops->op[i].reread = true;
    }
    naive_activation(w, tangent, w->tokens * w->m->streams, false);
}

static void predict(struct walk *w)
{
    const struct naive_model *m = w->m;
    const int n = m->streams;
    if (n == 0) return;
    modalities(w, "predict_norm", "predict_router", "predict_tanh", false);
    linear(w, "predict_coefs", w->tokens, n, n * n, &m->router, false);
    struct naive_op *op = op_open(w, "predict");
    struct cells x = activations(w, op, w->tokens * n * m->hidden), y = activations(w, op, w->tokens * n * m->hidden);
    struct cells mix = activations(w, op, w->tokens * n * n);
    for (int t = 0; t < w->tokens; t++)
        for (int to = 0; to < n; to++)
            for (int d = 0; d < m->hidden; d++) {
                for (int from = 0; from < n; from++) {
                    op->flops += 2;
                    touch(&x, (t * n + from) * m->hidden + d);
                    touch(&mix, (t * n + from) * n + to);
                }
                op->vector_flops++; /* with the stream itself */
                touch(&y, (t * n + to) * m->hidden + d);
            }
    free(x.seen);
    free(y.seen);
    free(mix.seen);
}

static void correct(struct walk *w)
{
    const struct naive_model *m = w->m;
    const int n = m->streams;
    if (n == 0) return;
    modalities(w, "correct_norm", "correct_router", "correct_tanh", true);
    linear(w, "correct_coefs", w->tokens, n, n, &m->router, false);
    struct naive_op *op = op_open(w, "correct");
    elementwise(w, op, w->tokens * m->hidden, 1, 0, 1); /* the layer's output less its prediction */
    for (int s = 0; s < n; s++) elementwise(w, op, w->tokens * m->hidden, 1, 1, 2);
    elementwise(w, op, w->tokens * n, 1, 0, 0);
    op = op_open(w, "correct_scale");
    elementwise(w, op, w->tokens * m->hidden, 1, 1, 1);
    vector(w, op, m->hidden, true);
}

static void own_input(struct walk *w)
{
    const struct naive_model *m = w->m;
    if (m->layer_dim == 0) return;
    linear(w, "layer_gate", w->tokens, m->hidden, m->layer_dim, &m->ffn, false);
    naive_activation(w, "layer_gate_act", w->tokens * m->layer_dim, true);
    linear(w, "layer_proj", w->tokens, m->layer_dim, m->hidden, &m->ffn, false);
    norms(w, "layer_norm", 1);
    if (m->streams == 0) {
        residual(w, "layer_input_residual");
        return;
    }
    struct naive_op *op = op_open(w, "layer_input_residual");
    elementwise(w, op, w->tokens * m->hidden, 1, 0, 0);
    for (int s = 1; s < m->streams; s++) elementwise(w, op, w->tokens * m->hidden, 1, 1, 1);
}

static void laurel(struct walk *w)
{
    const struct naive_model *m = w->m;
    if (m->laurel == 0) return;
    linear(w, "laurel_left", w->tokens, m->hidden, m->laurel, &m->ffn, false);
    linear(w, "laurel_right", w->tokens, m->laurel, m->hidden, &m->ffn, false);
    norms(w, "laurel_norm", 1);
    residual(w, "laurel_residual");
}

static void feed_forward(struct walk *w, const struct naive_layer *l)
{
    if (l->residual_unit) {
        linear(w, "unit_proj", w->tokens, w->m->hidden, w->m->hidden, &w->m->ffn, l->mlp_bias);
        naive_activation(w, "unit_act", w->tokens * w->m->hidden, false);
    } else if (l->experts)
        experts(w, l);
    else if (l->channel_mix)
        channel_mix(w, l->width / w->p->ranks, l->channel_bare);
    else if (w->p->mlp_fused && !l->adapter_rank && !l->act_stored && !l->inner_norm)
        fused(w, l->width / w->p->ranks, !l->ungated, l->mlp_bias);
    else
        dense(w, "up_proj", "mlp_act", "down_proj", l->width / w->p->ranks, !l->ungated, l->mlp_bias, l);
}

/* Nothing runs: what is stored stays. */
static void hold_back(struct walk *w, size_t start)
{
    struct naive_op *op = op_open(w, "image_gates");
    vector(w, op, 2, false);
    for (size_t i = start; i < w->ops->n; i++) {
        op = &w->ops->op[i];
        *op = (struct naive_op){
            .name = op->name, .layer = op->layer, .stored_elems = op->stored_elems, .stored_bytes = op->stored_bytes};
    }
}

/* A low-rank product of what a norm made, through two nonlinearities, times it. */
static void norm_gate(struct walk *w, int rank, const char *down, const char *act, const char *up, const char *gate)
{
    if (rank == 0) return;
    linear(w, down, w->tokens, w->m->hidden, rank, &w->m->router, false);
    naive_activation(w, act, w->tokens * rank, false);
    linear(w, up, w->tokens, rank, w->m->hidden, &w->m->router, false);
    elementwise(w, op_open(w, gate), w->tokens * w->m->hidden, 2, 1, 5);
}

/* A factor of every element, one more than a low-rank product of one vector, the same for all tokens. */
static void condition(struct walk *w, int rank)
{
    const int tokens = w->tokens;
    if (rank == 0) return;
    w->tokens = 1;
    linear(w, "mlp_condition_down", 1, w->m->hidden, rank, &w->m->router, false);
    naive_activation(w, "mlp_condition_act", rank, false);
    linear(w, "mlp_condition_up", 1, rank, w->m->hidden, &w->m->router, false);
    w->tokens = tokens;
    elementwise(w, op_open(w, "mlp_condition"), tokens * w->m->hidden, 1, 1, 2);
}

/* One block after the other, each with its sum; or both from one input, one sum of the two and one with the input. */
static void layer(struct walk *w, const struct naive_layer *l)
{
    const int half = l->one_residual || l->doubled_input ? l->norms - l->norms / 2 : l->norms / 2;
    const int before = l->no_mixer ? 0 : l->no_mlp ? l->norms : l->parallel ? 1 : half;
    const size_t start = w->ops->n;
    if (!l->no_mixer) share_heads(w, l);
    predict(w);
    norms(w, "mixer_norm", before);
    norm_gate(w, l->mixer_gate, "mixer_norm_down", "mixer_norm_act", "mixer_norm_up", "mixer_norm_gate");
    laurel(w);
    if (l->state.block) naive_recurrent(w, l);
    if (!l->no_mixer && l->kv_rank) latent(w, l);
    if (!l->no_mixer && !l->kv_rank && !l->state.block) grouped_query(w, l);
    if (!l->parallel && !l->no_mixer) {
        all_reduce(w, "mixer_all_reduce");
        if (!l->one_residual) block_residual(w, l, "mixer_residual");
    }
    if (w->m->laurel) residual(w, "laurel_add");
    norms(w, "mlp_norm", l->norms - before);
    norm_gate(w, l->mlp_gate, "mlp_norm_down", "mlp_norm_act", "mlp_norm_up", "mlp_norm_gate");
    condition(w, l->condition);
    if (!l->no_mlp) {
        feed_forward(w, l);
        if (l->parallel) residual(w, "branch_sum");
        if (!l->residual_unit) all_reduce(w, l->parallel ? "layer_all_reduce" : "mlp_all_reduce");
        if (l->out_proj) linear(w, "block_proj", w->tokens, w->m->hidden, w->m->hidden, &w->m->ffn, false);
        block_residual(w, l, l->parallel ? "layer_residual" : "mlp_residual");
    }
    if (l->borrowed) return_borrowed(w, start);
    if (l->images) hold_back(w, start);
    correct(w);
    own_input(w);
    if (!w->m->layer_scale) return;
    struct naive_op *op = op_open(w, "layer_scale");
    elementwise(w, op, w->tokens * w->m->hidden, 1, 1, 1);
    vector(w, op, 1, true);
}

void naive_count(const struct naive_model *m, const struct naive_pass *p, struct naive_ops *out)
{
    struct walk w = {.m = m, .p = p, .ops = out, .layer = -1, .tokens = p->B * p->T};
    const int tokens = m->head_rows ? m->head_rows : m->vocab;
    int vocab = 0, known = 0; /* rows of rank 0 when all ranks have equally many */
    while (vocab * p->ranks < m->vocab) vocab++;
    while (known * p->ranks < tokens) known++;
    out->n = 0;
    embedding(&w, vocab);
    join(&w);
    layer_inputs(&w);
    if (m->streams) {
        stream_products(&w, "streams_open", true);
        level(&w, "streams_level");
    }
    for (w.layer = 0; w.layer < m->layers; w.layer++) layer(&w, &m->layer[w.layer]);
    w.layer = -1;
    if (m->streams) {
        stream_products(&w, "streams_close", false);
        level(&w, "streams_relevel");
        struct naive_op *op = op_open(&w, "streams_mean");
        for (int s = 0; s < m->streams; s++) elementwise(&w, op, w.tokens * m->hidden, 1, s == 0, 1);
    }
    if (!m->no_final_norm) norms(&w, "final_norm", 1);
    head(&w, known);
}
