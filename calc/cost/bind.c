#include <math.h>

#include "calc/cost/build.h"

/* Sizes of a rank: numbers that divide, or with symbols for the ranks. */
struct ranks {
    const struct cost_layout *l;
    struct layout w;
    struct layout_symbols y;
    const struct sym *t, *columns; /* ranks of a group; those that split the columns of an expert */
    const struct sym *context;     /* those that share a context; NULL: none do */
    double number[LAYOUT_NUMBERS]; /* of a layout that is not free */
};

static struct ranks ranks_of(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                             const struct cost_layout *l)
{
    struct ranks r = {.l = l, .w = layout_whole(&l->layout), .y = layout_symbols_make(c)};
    r.t = l->free ? y->t : sym_int(c, r.w.tp);
    r.context = r.w.dcp == 1 ? NULL : l->free ? r.y.context : sym_int(c, r.w.dcp);
    r.columns = l->free ? sym_div(c, sym_mul(c, y->t, r.y.groups), r.y.parts) : sym_int(c, layout_group(&r.w) / r.w.ep);
    if (!l->free) layout_numbers(&r.w, m, false, r.number);
    return r;
}

static const struct sym *over(struct sym_ctx *c, int64_t n, const struct sym *ranks)
{
    return n == 0 ? sym_int(c, 0) : sym_div(c, sym_int(c, n), ranks);
}

static const struct sym *rows_over(struct sym_ctx *c, int64_t n, const struct sym *ranks)
{
    return sym_ceil(c, over(c, n, ranks));
}

static const struct sym *kv_over(struct sym_ctx *c, const struct mixer *x, const struct sym *t)
{
    return sym_max(c, sym_int(c, 1), over(c, x->kv_heads, t));
}

static bool splits_index(const struct mixer *x)
{
    return x->index_heads > 0 && (x->one_vector || x->index_block_tokens > 0);
}

int64_t build_index_parts(const struct mixer *x, int64_t tp)
{
    if (!splits_index(x)) return 1;
    int64_t a = x->index_heads, b = tp;
    while (b > 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Of ranks in a number not yet known as many heads as a whole share is, one at least, as of KV heads. */
static const struct sym *index_over(struct sym_ctx *c, const struct mixer *x, const struct sym *t)
{
    double ranks;
    if (!splits_index(x)) return sym_int(c, x->index_heads);
    if (!sym_constant(t, &ranks)) return sym_max(c, sym_int(c, 1), over(c, x->index_heads, t));
    return sym_int(c, x->index_heads / build_index_parts(x, (int64_t)ranks));
}

static bool caches(const struct mixer *x)
{
    return x->kind == MIXER_ATTENTION || x->kind == MIXER_LATENT || model_keeps_inputs(x);
}

/* Elements that a layer caches per token, and their bytes, scales of a grouped format included: along the cached width
 * of one layer, or with each of `heads` vectors. kv: KV heads of the rank. */
static const struct sym *cached_elems(struct sym_ctx *c, const struct mixer *x, const struct sym *kv)
{
    if (x->kind == MIXER_LATENT) return sym_int(c, x->kv_rank + x->rope_dim);
    if (model_keeps_inputs(x)) return kv;
    return sym_mul(c, kv, sym_int(c, x->head_dim + x->v_head_dim));
}

/* A latent in fp8 with fp32 scales of 128 elements; the one vector of DeepSeek-V4 with scales of a byte for 64, in
 * words of 8 bytes. The rope part keeps 16 bits. Source: vLLM, MLAAttentionSpec; FlashMLA, sparse decoding. */
static int64_t latent_bytes(const struct mixer *x)
{
    enum { GROUP = 128, SMALL_GROUP = 64, WORD = 8, ROPE_BYTES = 2 }; /* not a unit */
    const int64_t small = (x->kv_rank + SMALL_GROUP - 1) / SMALL_GROUP;
    const int64_t scales =
        x->one_vector ? (small + WORD - 1) / WORD * WORD : (x->kv_rank + GROUP - 1) / GROUP * COST_FP32_BYTES;
    return x->kv_rank + scales + ROPE_BYTES * x->rope_dim;
}

static const struct sym *cached_bytes(struct sym_ctx *c, const struct dtype *d, const struct mixer *x,
                                      const struct sym *elems, const struct sym *heads)
{
    if (d->group_in == GROUP_LATENT && x->kind == MIXER_LATENT) return sym_int(c, latent_bytes(x));
    const struct sym *plain = sym_mul(c, elems, sym_num(c, d->bits / 8));
    if (d->group_in == GROUP_HEAD) return sym_add(c, plain, sym_mul(c, heads, sym_num(c, d->scale_bits / 8)));
    if (!(d->scale_bits > 0) || d->group_in <= 0) return plain;
    const double above = d->super_groups > 0 ? d->super_bits / (double)d->super_groups : 0; /* shared by tokens */
    const struct sym *groups = sym_ceil(c, sym_div(c, elems, sym_int(c, d->group_in)));
    return sym_add(c, plain, sym_mul(c, groups, sym_num(c, (d->scale_bits + above) / 8)));
}

/* Vectors that a layer caches per token: a key and a value of each KV head, one latent, one input. */
static const struct sym *cached_heads(struct sym_ctx *c, const struct mixer *x, const struct sym *kv)
{
    const bool one = x->kind == MIXER_LATENT || model_keeps_inputs(x);
    return one ? sym_int(c, 1) : sym_mul(c, sym_int(c, 2), kv);
}

bool cost_index_is_fp8(const struct mixer *x)
{
    return x->index_heads > 0 && x->index_block_tokens == 0 && !x->index_mean;
}

/* Keys of heads that are weighed and summed: fp8 with a float for every 128 elements, whatever the format of the cache.
 * Source: vLLM, DeepseekV32IndexerCache of deepseek_v2.py; SGLang, dsa_indexer_bytes_per_token_per_layer. */
static const struct sym *index_bytes(struct sym_ctx *c, const struct model *m, const struct mixer *x)
{
    enum { GROUP = 128 }; /* not a unit */
    if (cost_index_is_fp8(x)) return sym_int(c, x->index_dim + (x->index_dim + GROUP - 1) / GROUP * COST_FP32_BYTES);
    return cached_bytes(c, &m->kv, x, sym_int(c, x->index_dim), sym_int(c, 1));
}

/* The numbers of one layer kind on one rank. */
enum { BINDINGS = 96 };

struct env {
    struct sym_binding at[BINDINGS];
    size_t n;
    size_t n_model; /* the first ones are of the model, whatever the layer */
};

static void put(struct sym_ctx *c, struct env *v, const struct sym *var, int64_t value)
{
    v->at[v->n++] = (struct sym_binding){var, sym_int(c, value)};
}

static void put_sym(struct env *v, const struct sym *var, const struct sym *value)
{
    v->at[v->n++] = (struct sym_binding){var, value};
}

static void bind_ranks(struct sym_ctx *c, const struct cost_symbols *y, const struct ranks *r, struct env *v)
{
    if (r->l->free) return;
    put(c, v, y->t, r->w.tp);
    const struct sym *const of[LAYOUT_NUMBERS] = {
#define X(field, text, meaning) r->y.field,
        LAYOUT_SYMBOLS(X)
#undef X
    };
    for (size_t i = 0; i < LAYOUT_NUMBERS; i++)
        if (i != LAYOUT_hop_near && i != LAYOUT_hop_far) put_sym(v, of[i], sym_num(c, r->number[i]));
}

static void bind_model(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, const struct ranks *r,
                       struct env *v)
{
    const struct sym *const width[WEIGHT_CLASSES] = {y->b_embed,  y->b_head,   y->b_mixer, y->b_ffn,
                                                     y->b_expert, y->b_router, y->b_other};
    put(c, v, y->L, m->layers);
    if (y->X != y->T && m->encoder.source_tokens > 0) put(c, v, y->X, m->encoder.source_tokens);
    put(c, v, y->D, m->hidden);
    put_sym(v, y->V, rows_over(c, m->vocab, r->t));
    put(c, v, y->P, m->position_rows);
    put(c, v, y->Nj, m->draft.joined);
    put_sym(v, y->Vd, rows_over(c, m->draft.head_rows, r->t));
    put(c, v, y->Dl, m->per_layer_dim);
    put_sym(v, y->Vl, rows_over(c, m->per_layer_vocab, r->t));
    put(c, v, y->A, m->streams ? m->streams : m->hyper_streams);
    put(c, v, y->La, m->laurel_rank);
    put(c, v, y->Rl, m->adapters.rank);
    put(c, v, y->Sl, m->adapters.slots);
    put(c, v, y->Al, m->adapters.among);
    for (size_t i = 0; i < WEIGHT_CLASSES; i++) put_sym(v, width[i], sym_num(c, m->weights[i].bits / 8));
    put_sym(v, y->b_act, sym_num(c, m->activations.bits / 8));
    put_sym(v, y->b_state, sym_num(c, m->state.bits / 8));
    bind_ranks(c, y, r, v);
    v->n_model = v->n;
}

static void bind_kind(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                      const struct layer_kind *k, const struct ranks *r, struct env *v)
{
    const struct mixer *x = &k->mixer;
    const struct ffn *f = &k->ffn;
    const bool grouped = x->kind == MIXER_ATTENTION || x->kind == MIXER_RECURRENT;
    const struct sym *kv = grouped ? kv_over(c, x, r->t) : sym_int(c, 0);
    put_sym(v, y->N, x->kind == MIXER_NONE ? sym_int(c, 0) : over(c, x->heads, r->t));
    put_sym(v, y->K, kv);
    put(c, v, y->H, x->head_dim);
    put(c, v, y->Hv, x->v_head_dim);
    put_sym(v, y->F, over(c, f->width, f->kind == FFN_MOE ? r->columns : r->t));
    put(c, v, y->E, f->experts);
    put(c, v, y->k, f->experts_per_token);
    put_sym(v, y->Fs, over(c, f->shared_width, r->t));
    put(c, v, y->C, x->kv_rank);
    put(c, v, y->R, x->rope_dim);
    put(c, v, y->Q, x->q_rank);
    put(c, v, y->W, x->window_tokens ? x->window_tokens : x->pool_window);
    put(c, v, y->Tp, x->pool_tokens);
    put_sym(v, y->Go, x->o_groups ? sym_max(c, sym_int(c, 1), over(c, x->o_groups, r->t)) : sym_int(c, 0));
    put(c, v, y->Ro, x->o_rank);
    put(c, v, y->U, x->top_keys);
    put_sym(v, y->Ni, index_over(c, x, r->t));
    put(c, v, y->Hi, x->index_dim);
    put_sym(v, y->b_index, x->index_dim ? sym_div(c, index_bytes(c, m, x), sym_int(c, x->index_dim)) : sym_int(c, 0));
    put(c, v, y->J, x->recurrence.conv_taps);
    put(c, v, y->Tc, x->recurrence.chunk_tokens);
    put(c, v, y->Ra,
        x->kind == MIXER_RECURRENT ? x->recurrence.rank
        : f->adapter_rank > 0      ? f->adapter_rank
                                   : x->adapter_rank);
    put(c, v, y->Rm, x->recurrence.mix_rank);
    put(c, v, y->Ri, x->recurrence.rate_rank);
    put(c, v, y->Rv, x->recurrence.value_rank);
    put(c, v, y->Rg, x->recurrence.gate_rank);
    put(c, v, y->Hf, x->recurrence.feature_dim);
    put(c, v, y->Fw, x->recurrence.filter_width);
    put(c, v, y->Fe, x->recurrence.filter_inputs);
    put(c, v, y->Ft, x->recurrence.filter_tokens);
    put(c, v, y->Z, f->latent_width);
    const struct sym *b_kv = sym_num(c, m->kv.bits / 8);
    if (caches(x) && m->kv.scale_bits > 0) {
        const struct sym *elems = cached_elems(c, x, kv);
        b_kv = sym_div(c, cached_bytes(c, &m->kv, x, elems, cached_heads(c, x, kv)), elems);
    }
    put_sym(v, y->b_kv, b_kv);
}

/* The expressions of an operator, as one list. */
enum { EXPRS = 16 + 2 * COST_TENSORS_MAX };

static size_t list(struct cost_op *op, const struct sym ***at)
{
    size_t n = 0;
    at[n++] = &op->flops;
    at[n++] = &op->vector_flops;
    at[n++] = &op->weight_bytes;
    at[n++] = &op->weight_needed_bytes;
    at[n++] = &op->kv_bytes;
    at[n++] = &op->kv_needed_bytes;
    at[n++] = &op->held_bytes;
    at[n++] = &op->state_bytes;
    at[n++] = &op->state_needed_bytes;
    at[n++] = &op->activation_bytes;
    at[n++] = &op->wire_bytes;
    at[n++] = &op->fabric_bytes;
    at[n++] = &op->half_flops;
    at[n++] = &op->rows;
    at[n++] = &op->in;
    at[n++] = &op->out;
    for (size_t i = 0; i < op->tensors_n; i++) {
        at[n++] = &op->tensor[i].elems;
        at[n++] = &op->tensor[i].bytes;
    }
    return n;
}

/* The part that one rank has of a free size of the whole model: as much as of the model's own; of KV heads at least
 * one. */
static const struct sym *part_of_rank(struct sym_ctx *c, const struct cost_symbols *y, int64_t tp,
                                      const struct sym *free, const struct sym *rank, const struct sym *whole)
{
    double own = 0;
    if (tp == 1 || !sym_constant(whole, &own) || !(own > 0)) return free;
    if (free == y->K) return sym_max(c, sym_int(c, 1), sym_div(c, free, sym_int(c, tp)));
    return sym_mul(c, free, sym_div(c, rank, whole));
}

/* What a binding is asked of: one kind of layer (-1: outside them). */
struct place {
    const struct cost_symbols *y;
    const struct model *m;
    struct cost_layout l;
    int kind;
    const struct ranks *ranks; /* of l, which is legal; NULL: to be made */
};

static struct cost_layout of_tp(int64_t tp) { return (struct cost_layout){.layout = {.tp = tp}}; }

static enum err_code bind_place(struct sym_ctx *c, const struct place *p, struct env *v, struct err *e)
{
    struct ranks own;
    const struct ranks *r = p->ranks;
    if (!r) {
        if (!p->l.free) TRY(layout_check(p->m, &p->l.layout, e));
        own = ranks_of(c, p->y, p->m, &p->l);
        r = &own;
    }
    v->n = 0;
    bind_model(c, p->y, p->m, r, v);
    if (p->kind >= 0) bind_kind(c, p->y, p->m, &p->m->kinds[p->kind], r, v);
    return ERR_OK;
}

/* Value heads that are as wide as the key heads, which one number describes. */
static bool same_heads(const struct place *p)
{
    if (p->kind < 0) return false;
    const struct mixer *x = &p->m->kinds[p->kind].mixer;
    return x->kind == MIXER_ATTENTION && x->head_dim == x->v_head_dim;
}

/* Values as asked: x times its number, or the symbol `free` for itself. */
static enum err_code bind_as(struct sym_ctx *c, const struct cost_binding *how, const struct place *p, struct env *v,
                             struct err *e)
{
    const struct place all = {p->y, p->m, of_tp(1), p->kind, NULL};
    struct env whole;
    TRY(bind_place(c, &all, &whole, e));
    const struct sym **hv = NULL, *h = NULL;
    for (size_t i = 0; i < v->n; i++) {
        struct sym_binding *b = &v->at[i];
        const bool here = i < v->n_model || how->free_kind < 0 || how->free_kind == p->kind;
        if (how->relative) b->value = sym_mul(c, b->var, b->value);
        if (b->var == how->free && here)
            b->value = part_of_rank(c, p->y, p->l.layout.tp, b->var, b->value, whole.at[i].value);
        if (b->var == p->y->H) h = b->value;
        if (b->var == p->y->Hv) hv = &b->value;
    }
    if (h && hv && same_heads(p)) *hv = h;
    return ERR_OK;
}

enum err_code cost_size(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int kind, int64_t tp,
                        const struct sym *var, const struct sym **out, struct err *e)
{
    const struct place at = {y, m, of_tp(tp), kind, NULL};
    struct env v;
    double value = 0;
    *out = NULL;
    TRY(bind_place(c, &at, &v, e));
    for (size_t i = 0; i < v.n && !*out; i++)
        if (v.at[i].var == var) *out = v.at[i].value;
    if (*out && sym_constant(*out, &value) && !(value > 0)) *out = NULL;
    if (var == y->b_kv && (kind < 0 || !caches(&m->kinds[kind].mixer))) *out = NULL;
    return sym_check(c, e);
}

enum err_code cost_bind(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                        struct cost_ops *ops, struct err *e)
{
    const struct cost_binding numbers = {.free_kind = -1};
    return cost_bind_as(c, y, m, tp, &numbers, ops, e);
}

/* how NULL: numbers. */
static enum err_code bind_all(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                              const struct cost_layout *l, const struct cost_binding *how, struct cost_ops *ops,
                              struct err *e)
{
    if (!l->free) TRY(layout_check(m, &l->layout, e));
    const struct ranks r = ranks_of(c, y, m, l);
    for (size_t i = 0; i < ops->n;) {
        const int kind = ops->op[i].kind_index;
        size_t end = i;
        while (end < ops->n && ops->op[end].kind_index == kind) end++;
        const struct place at_kind = {y, m, *l, kind, &r};
        struct env v;
        TRY(bind_place(c, &at_kind, &v, e));
        if (how && (how->relative || how->free)) TRY(bind_as(c, how, &at_kind, &v, e));
        const struct sym *in[EXPRS];
        const struct sym **at[EXPRS];
        for (; i < end; i++) {
            const size_t n = list(&ops->op[i], at);
            for (size_t j = 0; j < n; j++) in[j] = *at[j];
            sym_bind_all(c, n, in, in, v.at, v.n);
            for (size_t j = 0; j < n; j++) *at[j] = in[j];
        }
    }
    return sym_check(c, e);
}

enum err_code cost_bind_as(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                           const struct cost_binding *how, struct cost_ops *ops, struct err *e)
{
    const struct cost_layout l = of_tp(tp);
    return bind_all(c, y, m, &l, how, ops, e);
}

enum err_code cost_bind_layout(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct cost_layout *l, struct cost_ops *ops, struct err *e)
{
    return bind_all(c, y, m, l, NULL, ops, e);
}

/* Bytes of an operator's tensors, those that it shares with another or not. */
static const struct sym *tensor_bytes(struct sym_ctx *c, const struct cost_op *op, const struct cost_conventions *v,
                                      bool shared)
{
    const struct sym *sum = sym_int(c, 0);
    for (size_t j = 0; j < op->tensors_n; j++) {
        const struct cost_tensor *x = &op->tensor[j];
        if (x->shared == shared && !(x->norm && v->norms_uncounted)) sum = sym_add(c, sum, x->bytes);
    }
    return sum;
}

const struct sym *cost_weight_bytes(struct sym_ctx *c, const struct cost_ops *ops, const struct cost_conventions *v)
{
    return cost_stage_weight_bytes(c, ops, v, NULL);
}

const struct sym *cost_stage_weight_bytes(struct sym_ctx *c, const struct cost_ops *ops,
                                          const struct cost_conventions *v, const struct cost_stage *stage)
{
    const struct sym *sum = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        sum = sym_add(c, sum, sym_mul(c, cost_times(c, op, stage), tensor_bytes(c, op, v, false)));
        if (!stage || op->kind != OP_LM_HEAD) continue;
        const struct sym *apart = sym_mul(c, stage->last, sym_sub(c, sym_int(c, 1), stage->first));
        sum = sym_add(c, sum, sym_mul(c, apart, tensor_bytes(c, op, v, true)));
    }
    return sum;
}

const struct sym *cost_layer_weight_bytes(struct sym_ctx *c, const struct cost_ops *ops,
                                          const struct cost_conventions *v, const struct cost_stage *stage)
{
    const struct sym *sum = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        if (op->kind_index >= 0 && !cost_op_adapts(op))
            sum = sym_add(c, sum, sym_mul(c, cost_times(c, op, stage), tensor_bytes(c, op, v, false)));
    }
    return sum;
}

const struct sym *cost_adapter_bytes(struct sym_ctx *c, const struct cost_ops *ops, const struct cost_conventions *v,
                                     const struct cost_stage *stage)
{
    const struct sym *sum = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++)
        if (cost_op_adapts(&ops->op[i]))
            sum =
                sym_add(c, sum, sym_mul(c, cost_times(c, &ops->op[i], stage), tensor_bytes(c, &ops->op[i], v, false)));
    return sum;
}

/* State of one sequence in a layer of one kind on one rank. */
static const struct sym *state_bytes(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                                     const struct layer_kind *k, const struct ranks *r)
{
    struct env v = {.n = 0};
    bind_model(c, y, m, r, &v);
    bind_kind(c, y, m, k, r, &v);
    const struct scan_state s = scan_state(c, y, k);
    const struct sym *bytes = SYM_SUM(c, sym_mul(c, s.conv, y->b_act), sym_mul(c, s.recurrent, y->b_state));
    return sym_bind(c, bytes, v.at, v.n);
}

/* What one layer of a kind keeps on one rank; one that has no cache or state of its own nothing. */
struct kept {
    const struct sym *token, *index, *state, *source; /* source: of a token of the encoder's output */
};

static struct kept kind_cache(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                              const struct layer_kind *k, const struct ranks *r)
{
    const struct mixer *x = &k->mixer;
    const struct sym *zero = sym_int(c, 0);
    struct kept q = {zero, zero, zero, zero};
    if (x->kind == MIXER_NONE || x->shares_kv || x->images || k->encodes) return q;
    q.state = state_bytes(c, y, m, k, r);
    if (k->engram_rows > 0 && m->engram_taps > 1) /* inputs of the convolution behind a table of n-grams */
        q.state =
            sym_add(c, q.state,
                    sym_mul(c, sym_int(c, (m->engram_taps - 1) * m->engram_spacing * m->hyper_streams * m->hidden),
                            sym_num(c, m->activations.bits / 8)));
    if (!caches(x)) return q;
    const struct sym *kv = x->kind == MIXER_LATENT ? zero : kv_over(c, x, r->t);
    q.token = cached_bytes(c, &m->kv, x, cached_elems(c, x, kv), cached_heads(c, x, kv));
    if (x->of_source) {
        q.source = q.token;
        q.token = zero;
    }
    if (x->pool_borrowed) return q;
    if (x->index_heads > 0) q.index = index_bytes(c, m, x);
    if (x->index_pool_tokens > 0) { /* keys and gates of a pool that is open, or keys alone */
        const int64_t open = (x->index_mean ? 1 : 2) * x->index_pool_tokens * x->index_dim;
        const double bits = x->index_mean ? m->activations.bits : m->state.bits;
        q.state = sym_add(c, q.state, sym_mul(c, sym_int(c, open), sym_num(c, bits / 8)));
        q.index = sym_div(c, q.index, sym_int(c, x->index_pool_tokens));
    }
    if (x->pool_tokens == 0) return q;
    /* Beside entries the vectors of a window, and what the next entries are made of: products and gates. */
    const int64_t open = x->pool_tokens > 1 ? 2 * x->pool_spans * x->pool_spans * x->pool_tokens : 0;
    const int64_t wide = x->head_dim + (x->pool_lean ? 0 : x->index_dim);
    const struct sym *parts = sym_mul(c, sym_int(c, open * wide), sym_num(c, m->state.bits / 8));
    q.state = SYM_SUM(c, q.state, parts, sym_mul(c, q.token, sym_int(c, x->pool_window)));
    q.token = sym_div(c, q.token, sym_int(c, x->pool_tokens));
    q.index = sym_div(c, q.index, sym_int(c, x->pool_tokens));
    return q;
}

enum err_code cost_kind_cache(struct arena *a, const struct model *m, const struct layer_kind *k, int64_t tp,
                              struct cost_kind_cache *out, struct err *e)
{
    struct sym_ctx *c = sym_open(a);
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_layout l = of_tp(tp);
    TRY(layout_check(m, &l.layout, e));
    const struct ranks r = ranks_of(c, &y, m, &l);
    const struct kept q = kind_cache(c, &y, m, k, &r);
    TRY(sym_check(c, e));
    if (!sym_constant(q.token, &out->token_bytes) || !sym_constant(q.index, &out->index_bytes) ||
        !sym_constant(q.state, &out->state_bytes))
        return err_set(e, ERR_RANGE, "a cache has no size");
    return ERR_OK;
}

enum err_code cost_stage_cache(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct cost_layout *l, const struct cost_stage *stage,
                               struct cost_stage_cache *out, struct err *e)
{
    const struct sym *zero = sym_int(c, 0);
    struct cost_stage_cache q = {zero, zero, zero, zero, zero, zero};
    const bool known = y->X != y->T && m->encoder.source_tokens > 0;
    const struct sym *source = known ? sym_int(c, m->encoder.source_tokens) : y->X;
    if (!l->free) TRY(layout_check(m, &l->layout, e));
    const struct ranks r = ranks_of(c, y, m, l);
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        const struct sym *n = stage ? stage->layers[i] : sym_int(c, m->kinds[i].count);
        const struct kept k = kind_cache(c, y, m, &m->kinds[i], &r);
        const struct sym *tokens = x->window_tokens ? sym_min(c, y->S, sym_int(c, x->window_tokens)) : y->S;
        const struct sym *token = sym_mul(c, n, k.token), *index = sym_mul(c, n, k.index);
        const struct sym **sum = x->window_tokens ? &q.per_token_windowed : &q.per_token_full;
        const bool shared = r.context && layout_shares_context(x);
        if (shared) tokens = sym_ceil(c, sym_div(c, tokens, r.context)); /* of the rank that has most */
        *sum = sym_add(c, *sum, shared ? sym_div(c, token, r.context) : token);
        q.per_sequence = sym_add(c, q.per_sequence, sym_mul(c, token, tokens));
        q.per_sequence = sym_add(c, q.per_sequence, sym_mul(c, index, y->S));
        q.per_sequence = SYM_SUM(c, q.per_sequence, SYM_PROD(c, n, k.source, source));
        q.per_source_token = sym_add(c, q.per_source_token, sym_mul(c, n, k.source));
        q.per_token_index = sym_add(c, q.per_token_index, index);
        q.state_per_sequence = sym_add(c, q.state_per_sequence, sym_mul(c, n, k.state));
    }
    TRY(sym_check(c, e));
    *out = q;
    return ERR_OK;
}

enum err_code cost_cache(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                         struct cost_cache *out, struct err *e)
{
    const struct cost_layout l = of_tp(tp);
    struct cost_stage_cache q;
    TRY(cost_stage_cache(c, y, m, &l, NULL, &q, e));
    struct cost_cache r = {.bytes_per_sequence = q.per_sequence};
    if (!sym_constant(q.per_token_full, &r.bytes_per_token_full) ||
        !sym_constant(q.per_token_windowed, &r.bytes_per_token_windowed) ||
        !sym_constant(q.per_token_index, &r.bytes_per_token_index) ||
        !sym_constant(q.per_source_token, &r.bytes_per_source_token) ||
        !sym_constant(q.state_per_sequence, &r.state_bytes_per_sequence))
        return err_set(e, ERR_RANGE, "a cache has no size");
    *out = r;
    return ERR_OK;
}

static enum err_code count_of(const struct sym *e, double *out, struct err *err)
{
    double v;
    const double exact = 9007199254740992.0; /* 2^53 */
    if (!sym_constant(e, &v) || !(v < exact))
        return err_set(err, ERR_RANGE, "more than 2^53 parameters cannot be counted exactly");
    *out += v;
    return ERR_OK;
}

/* Share of the experts that one token works on, the mean of its choices where they are of groups. */
static double chosen_of(const struct ffn *f, bool by_group)
{
    const double all = (double)f->experts, each = (double)f->experts_per_token;
    double missed = 1;
    if (!by_group) return each / all;
    for (int64_t i = 0; i < f->group_experts; i++) missed *= (all - each - (double)i) / (all - (double)i);
    return 1 - missed;
}

/* The fewest and the most that a token may work on, as shares of all: with n choices of E experts and others that
 * compute nothing, n less those others to n; of groups of g, those that n choices behind one another lie in to one
 * each.
 */
static void chosen_bounds(const struct ffn *f, bool by_group, double *least, double *most)
{
    const double all = (double)f->experts, idle = (double)f->idle_experts;
    const double n = (double)f->experts_per_token * (all + idle) / all;
    const double groups = by_group ? all / (double)f->group_experts : all;
    *least = fmax(0, n - idle) / all;
    if (by_group) *least = ceil(fmax(0, n - idle) / (double)f->group_experts) / groups;
    *most = fmin(n, groups) / groups;
}

enum err_code cost_parameters(struct arena *a, const struct model *m, const struct cost_conventions *v,
                              struct cost_parameters *out, struct err *e)
{
    struct sym_ctx *c = sym_open(a);
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    struct cost_ops ops;
    struct cost_parameters r = {0};
    TRY(cost_build(a, c, &y, m, v, &pass, 1, &ops, e));
    TRY(cost_bind(c, &y, m, 1, &ops, e));
    for (size_t i = 0; i < ops.n; i++) {
        const struct cost_op *op = &ops.op[i];
        if (cost_op_adapts(op)) continue;
        for (size_t j = 0; j < op->tensors_n; j++) {
            const struct cost_tensor *x = &op->tensor[j];
            if (x->norm && v->norms_uncounted) continue;
            double elems = 0;
            TRY(count_of(sym_mul(c, sym_int(c, op->count), x->elems), &elems, e));
            if (op->kind == OP_LM_HEAD) r.head += elems;
            if (x->shared) continue;
            r.total += elems;
            if (op->kind == OP_EMBED) r.embedding += elems;
            if (x->idle) continue;
            if (op->kind != OP_EXPERTS) {
                r.active += elems;
                r.active_min += elems;
                r.active_max += elems;
                continue;
            }
            const struct ffn *f = &m->kinds[op->kind_index].ffn;
            double least, most;
            chosen_bounds(f, op->by_group, &least, &most);
            r.routed += elems;
            r.active += elems * chosen_of(f, op->by_group);
            r.active_min += elems * least;
            r.active_max += elems * most;
        }
    }
    if (!(r.total < 9007199254740992.0))
        return err_set(e, ERR_RANGE, "more than 2^53 parameters cannot be counted exactly");
    *out = r;
    return ERR_OK;
}
