#include <math.h>

#include "calc/cost/build.h"

static enum err_code divide(const char *what, int64_t n, int64_t tp, int64_t *out, struct err *e)
{
    if (n % tp != 0)
        return err_set(e, ERR_USAGE, "%lld %s cannot be split over %lld tensor-parallel ranks", (long long)n, what,
                       (long long)tp);
    *out = n / tp;
    return ERR_OK;
}

/* KV heads of one rank: at least one, so they are copied when there are fewer than ranks. */
static enum err_code kv_heads_of_rank(const struct mixer *x, int64_t tp, int64_t *out, struct err *e)
{
    if (x->kv_heads < tp) {
        *out = 1;
        if (tp % x->kv_heads == 0) return ERR_OK;
        return err_set(e, ERR_USAGE, "%lld KV heads cannot be spread over %lld tensor-parallel ranks",
                       (long long)x->kv_heads, (long long)tp);
    }
    return divide("KV heads", x->kv_heads, tp, out, e);
}

static bool caches(const struct mixer *x)
{
    return x->kind == MIXER_ATTENTION || x->kind == MIXER_LATENT || model_keeps_inputs(x);
}

/* Elements that a layer caches per token, and their bytes, scales of a grouped format included: along the cached width
 * of one layer, or with each of `heads` vectors. kv: KV heads of the rank. */
static int64_t cached_elems(const struct mixer *x, int64_t kv)
{
    if (model_keeps_inputs(x)) return kv;
    return x->kind == MIXER_LATENT ? x->kv_rank + x->rope_dim : kv * (x->head_dim + x->v_head_dim);
}

static double cached_bytes(const struct dtype *d, int64_t elems, int64_t heads)
{
    const double plain = (double)elems * d->bits / 8;
    if (d->group_in == GROUP_HEAD) return plain + (double)heads * d->scale_bits / 8;
    if (!(d->scale_bits > 0) || d->group_in <= 0) return plain;
    const double above = d->super_groups > 0 ? d->super_bits / (double)d->super_groups : 0; /* shared by tokens */
    return plain + ceil((double)elems / (double)d->group_in) * (d->scale_bits + above) / 8;
}

/* Vectors that a layer caches per token: a key and a value of each KV head, one latent, one input. */
static int64_t cached_heads(const struct mixer *x, int64_t kv)
{
    return x->kind == MIXER_LATENT || model_keeps_inputs(x) ? 1 : 2 * kv;
}

/* The numbers of one layer kind on one rank. */
enum { BINDINGS = 64 };

struct env {
    struct sym_binding at[BINDINGS];
    size_t n;
    size_t n_model; /* the first ones are of the model, whatever the layer */
};

static void put(struct sym_ctx *c, struct env *v, const struct sym *var, int64_t value)
{
    v->at[v->n++] = (struct sym_binding){var, sym_int(c, value)};
}

static enum err_code bind_model(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                                struct env *v)
{
    const struct sym *const width[WEIGHT_CLASSES] = {y->b_embed,  y->b_head,   y->b_mixer, y->b_ffn,
                                                     y->b_expert, y->b_router, y->b_other};
    put(c, v, y->L, m->layers);
    put(c, v, y->D, m->hidden);
    put(c, v, y->V, (m->vocab + tp - 1) / tp);
    put(c, v, y->P, m->position_rows);
    put(c, v, y->Nj, m->draft.joined);
    put(c, v, y->Vd, (m->draft.head_rows + tp - 1) / tp);
    put(c, v, y->Dl, m->per_layer_dim);
    put(c, v, y->Vl, (m->per_layer_vocab + tp - 1) / tp);
    put(c, v, y->A, m->streams);
    put(c, v, y->La, m->laurel_rank);
    put(c, v, y->t, tp);
    for (size_t i = 0; i < WEIGHT_CLASSES; i++)
        v->at[v->n++] = (struct sym_binding){width[i], sym_num(c, m->weights[i].bits / 8)};
    v->at[v->n++] = (struct sym_binding){y->b_act, sym_num(c, m->activations.bits / 8)};
    v->at[v->n++] = (struct sym_binding){y->b_state, sym_num(c, m->state.bits / 8)};
    v->n_model = v->n;
    return ERR_OK;
}

static enum err_code bind_kind(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct layer_kind *k, int64_t tp, struct env *v, struct err *e)
{
    const struct mixer *x = &k->mixer;
    const struct ffn *f = &k->ffn;
    int64_t heads = 0, kv = 0, width = 0, shared = 0;
    if (x->kind != MIXER_NONE) TRY(divide("heads", x->heads, tp, &heads, e));
    if (x->kind == MIXER_ATTENTION || x->kind == MIXER_RECURRENT) TRY(kv_heads_of_rank(x, tp, &kv, e));
    TRY(divide(f->kind == FFN_MOE ? "columns of an expert" : "columns of the MLP", f->width, tp, &width, e));
    TRY(divide("columns of the shared expert", f->shared_width, tp, &shared, e));
    put(c, v, y->N, heads);
    put(c, v, y->K, kv);
    put(c, v, y->H, x->head_dim);
    put(c, v, y->Hv, x->v_head_dim);
    put(c, v, y->F, width);
    put(c, v, y->E, f->experts);
    put(c, v, y->k, f->experts_per_token);
    put(c, v, y->Fs, shared);
    put(c, v, y->C, x->kv_rank);
    put(c, v, y->R, x->rope_dim);
    put(c, v, y->Q, x->q_rank);
    put(c, v, y->W, x->window_tokens);
    put(c, v, y->U, x->top_keys);
    put(c, v, y->Ni, x->index_heads);
    put(c, v, y->Hi, x->index_dim);
    const double index_bytes = x->index_dim ? cached_bytes(&m->kv, x->index_dim, 1) / (double)x->index_dim : 0;
    v->at[v->n++] = (struct sym_binding){y->b_index, sym_num(c, index_bytes)};
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
    const int64_t elems = caches(x) ? cached_elems(x, kv) : 0;
    const struct sym *b_kv = sym_num(c, elems ? cached_bytes(&m->kv, elems, cached_heads(x, kv)) : m->kv.bits / 8);
    v->at[v->n++] = (struct sym_binding){y->b_kv, elems ? sym_div(c, b_kv, sym_int(c, elems)) : b_kv};
    return ERR_OK;
}

/* The expressions of an operator, as one list. */
enum { EXPRS = 15 + 2 * COST_TENSORS_MAX };

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
    int64_t tp;
    int kind;
};

static enum err_code bind_place(struct sym_ctx *c, const struct place *p, struct env *v, struct err *e)
{
    v->n = 0;
    TRY(bind_model(c, p->y, p->m, p->tp, v));
    return p->kind >= 0 ? bind_kind(c, p->y, p->m, &p->m->kinds[p->kind], p->tp, v, e) : ERR_OK;
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
    const struct place all = {p->y, p->m, 1, p->kind};
    struct env whole;
    TRY(bind_place(c, &all, &whole, e));
    const struct sym **hv = NULL, *h = NULL;
    for (size_t i = 0; i < v->n; i++) {
        struct sym_binding *b = &v->at[i];
        const bool here = i < v->n_model || how->free_kind < 0 || how->free_kind == p->kind;
        if (how->relative) b->value = sym_mul(c, b->var, b->value);
        if (b->var == how->free && here) b->value = part_of_rank(c, p->y, p->tp, b->var, b->value, whole.at[i].value);
        if (b->var == p->y->H) h = b->value;
        if (b->var == p->y->Hv) hv = &b->value;
    }
    if (h && hv && same_heads(p)) *hv = h;
    return ERR_OK;
}

enum err_code cost_size(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int kind, int64_t tp,
                        const struct sym *var, const struct sym **out, struct err *e)
{
    const struct place at = {y, m, tp, kind};
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

enum err_code cost_bind_as(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                           const struct cost_binding *how, struct cost_ops *ops, struct err *e)
{
    for (size_t i = 0; i < ops->n;) {
        const int kind = ops->op[i].kind_index;
        size_t end = i;
        while (end < ops->n && ops->op[end].kind_index == kind) end++;
        const struct place at_kind = {y, m, tp, kind};
        struct env v;
        TRY(bind_place(c, &at_kind, &v, e));
        if (how->relative || how->free) TRY(bind_as(c, how, &at_kind, &v, e));
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

const struct sym *cost_weight_bytes(struct sym_ctx *c, const struct cost_ops *ops, const struct cost_conventions *v)
{
    const struct sym *sum = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++)
        for (size_t j = 0; j < ops->op[i].tensors_n; j++) {
            const struct cost_tensor *x = &ops->op[i].tensor[j];
            if (x->shared || (x->norm && v->norms_uncounted)) continue;
            sum = sym_add(c, sum, sym_mul(c, sym_int(c, ops->op[i].count), x->bytes));
        }
    return sum;
}

/* State of one sequence in a layer of one kind on one rank. */
static enum err_code state_bytes(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                                 const struct layer_kind *k, int64_t tp, double *out, struct err *e)
{
    struct env v = {.n = 0};
    TRY(bind_model(c, y, m, tp, &v));
    TRY(bind_kind(c, y, m, k, tp, &v, e));
    const struct scan_state s = scan_state(c, y, k);
    const struct sym *bytes = SYM_SUM(c, sym_mul(c, s.conv, y->b_act), sym_mul(c, s.recurrent, y->b_state));
    if (!sym_constant(sym_bind(c, bytes, v.at, v.n), out)) return err_set(e, ERR_RANGE, "a state has no size");
    return ERR_OK;
}

/* A layer that has no cache or state of its own keeps nothing. */
static enum err_code kind_cache(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                                const struct layer_kind *k, int64_t tp, struct cost_kind_cache *out, struct err *e)
{
    const struct mixer *x = &k->mixer;
    int64_t kv = 0;
    *out = (struct cost_kind_cache){.token_bytes = 0};
    if (x->kind == MIXER_NONE || x->shares_kv || x->images) return ERR_OK;
    TRY(state_bytes(c, y, m, k, tp, &out->state_bytes, e));
    if (!caches(x)) return ERR_OK;
    if (x->kind != MIXER_LATENT) TRY(kv_heads_of_rank(x, tp, &kv, e));
    out->token_bytes = cached_bytes(&m->kv, cached_elems(x, kv), cached_heads(x, kv));
    if (x->index_heads > 0) out->index_bytes = cached_bytes(&m->kv, x->index_dim, 1);
    return ERR_OK;
}

enum err_code cost_kind_cache(struct arena *a, const struct model *m, const struct layer_kind *k, int64_t tp,
                              struct cost_kind_cache *out, struct err *e)
{
    struct sym_ctx *c = sym_open(a);
    if (!c) return err_nomem(e);
    const struct cost_symbols y = cost_symbols_make(c);
    TRY(kind_cache(c, &y, m, k, tp, out, e));
    return sym_check(c, e);
}

enum err_code cost_cache(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                         struct cost_cache *out, struct err *e)
{
    struct cost_cache r = {.bytes_per_sequence = sym_int(c, 0)};
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        const double n = (double)m->kinds[i].count;
        struct cost_kind_cache one;
        TRY(kind_cache(c, y, m, &m->kinds[i], tp, &one, e));
        r.state_bytes_per_sequence += n * one.state_bytes;
        if (one.token_bytes > 0) {
            const struct sym *tokens = x->window_tokens ? sym_min(c, y->S, sym_int(c, x->window_tokens)) : y->S;
            r.bytes_per_sequence =
                sym_add(c, r.bytes_per_sequence, sym_mul(c, sym_num(c, n * one.token_bytes), tokens));
            *(x->window_tokens ? &r.bytes_per_token_windowed : &r.bytes_per_token_full) += n * one.token_bytes;
        }
        if (one.index_bytes > 0) {
            r.bytes_per_sequence = sym_add(c, r.bytes_per_sequence, sym_mul(c, sym_num(c, n * one.index_bytes), y->S));
            r.bytes_per_token_index += n * one.index_bytes;
        }
    }
    TRY(sym_check(c, e));
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
        for (size_t j = 0; j < op->tensors_n; j++) {
            const struct cost_tensor *x = &op->tensor[j];
            if (x->norm && v->norms_uncounted) continue;
            double elems = 0;
            TRY(count_of(sym_mul(c, sym_int(c, op->count), x->elems), &elems, e));
            if (op->kind == OP_LM_HEAD) r.head += elems;
            if (x->shared) continue;
            r.total += elems;
            if (op->kind == OP_EMBED) r.embedding += elems;
            if (op->kind != OP_EXPERTS) {
                r.active += elems;
                continue;
            }
            const struct ffn *f = &m->kinds[op->kind_index].ffn;
            r.routed += elems;
            r.active += elems / (double)f->experts * (double)f->experts_per_token;
        }
    }
    if (!(r.total < 9007199254740992.0))
        return err_set(e, ERR_RANGE, "more than 2^53 parameters cannot be counted exactly");
    *out = r;
    return ERR_OK;
}
