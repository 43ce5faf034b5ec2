#include "calc/time/step.h"

#include <math.h>

struct phase {
    struct cost_ops ops;
    struct timed *timed; /* one an operator */
    struct timed_total total;
};

struct step {
    struct step_setup setup;
    struct sym_ctx *c;
    struct cost_symbols y;
    const struct sym *in[4]; /* B, T, S, M */
    struct rates rates;
    struct phase phase[STEP_PHASES];
    struct sym_tape *tape;
    double weight_bytes;
    bool untimed; /* no peak rate is known */
    struct cost_cache cache;
};

const char *step_phase_name(enum step_phase p) { return p == STEP_PREFILL ? "prefill" : "decode"; }
const char *step_fidelity_name(enum step_fidelity f) { return f == STEP_BOUND ? "bound" : "roofline"; }

enum err_code step_peak(const struct hw *hw, const struct dtype *d, double *out_flops_per_s, const char **out_name,
                        struct err *e)
{
    enum hw_dtype unit;
    TRY(timed_unit(hw, d, &unit, e));
    *out_flops_per_s = hw->peak_flops_per_s[unit];
    *out_name = hw_dtype_name(unit);
    return ERR_OK;
}

static const char *phase_name(const struct step *s, enum step_phase p)
{
    return p == STEP_DECODE && s->setup.verify ? "verify" : step_phase_name(p);
}

/* Tokens that the last query of the decode step attends to. */
static const struct sym *last_context(const struct step *s)
{
    return s->setup.verify ? SYM_SUM(s->c, s->y.S, s->y.T, sym_int(s->c, -1)) : s->y.S;
}

static enum err_code build_phase(struct arena *a, struct step *s, enum step_phase which, struct err *e)
{
    struct sym_ctx *c = s->c;
    const struct step_setup *u = &s->setup;
    const struct sym *one = sym_int(c, 1);
    struct cost_pass pass = {.name = phase_name(s, which), .B = s->y.B, .T = s->y.T, .S = s->y.T};
    if (which == STEP_PREFILL) {
        if (!u->prefill_together) pass.B = one;
        pass.uncached = u->uncached;
    } else if (u->uncached) {
        pass.T = pass.S = s->y.S;
        pass.uncached = true;
    } else if (u->verify) {
        pass.T = s->y.T;
        pass.S = last_context(s);
        pass.absorbed = true;
    } else {
        pass.T = sym_int(c, u->pass_tokens > 0 ? u->pass_tokens : 1);
        pass.S = s->y.S;
        pass.M = u->averaged ? s->y.M : NULL;
        pass.absorbed = true;
    }
    pass.all_logits = which == STEP_DECODE && (u->model->diffusion || u->verify);
    struct phase *p = &s->phase[which];
    TRY(cost_build(a, c, &s->y, u->model, &u->conventions, &pass, u->tp, &p->ops, e));
    TRY(cost_bind(c, &s->y, u->model, u->tp, &p->ops, e));
    TRY(timed_ops(a, c, &s->rates, u->hw, u->model, u->tp, &p->ops, &p->timed, &s->untimed, e));
    TRY(timed_sum(a, c, &s->rates, u->fidelity, &p->ops, p->timed, NULL, &p->total, e));
    if (u->overlapped && u->fidelity == STEP_ROOFLINE) p->total.time_s = step_overlapped(c, &p->ops, p->timed);
    return sym_check(c, e);
}

const struct sym *step_overlapped(struct sym_ctx *c, const struct cost_ops *ops, const struct timed *timed)
{
    const struct sym *zero = sym_int(c, 0), *computes = zero, *sends = zero;
    for (size_t i = 0; i < ops->n; i++) {
        const struct sym **to = ops->op[i].wire_bytes == zero ? &computes : &sends;
        *to = sym_add(c, *to, sym_mul(c, sym_int(c, ops->op[i].count), timed[i].time_s));
    }
    return sym_max(c, computes, sends);
}

static void total_phase(const struct phase *p, const struct sym **out)
{
    out[0] = p->total.time_s;
    out[1] = p->total.flops;
    out[2] = p->total.bytes;
    out[3] = p->total.compute_s;
    out[4] = p->total.memory_s;
    out[5] = p->total.link_s;
}

const struct sym *step_activation(struct sym_ctx *c, const struct model *m, const struct cost_ops *ops,
                                  const struct sym *rows)
{
    const struct sym *most = sym_int(c, 0);
    for (size_t i = 0; i < ops->n; i++) most = sym_max(c, most, ops->op[i].activation_bytes);
    return sym_add(
        c, most,
        SYM_PROD(c, rows, sym_int(c, m->hidden * (m->streams ? m->streams : 1)), sym_num(c, m->activations.bits / 8)));
}

static void total_memory(struct step *s, const struct sym **out)
{
    struct sym_ctx *c = s->c;
    const struct step_setup *u = &s->setup;
    const struct sym *zero = sym_int(c, 0);
    const struct sym *prompt = u->prefill_together ? sym_mul(c, s->y.B, s->y.T) : s->y.T;
    const struct sym *passed = u->verify ? s->y.T : sym_int(c, u->pass_tokens > 0 ? u->pass_tokens : 1);
    const struct sym *decode = sym_mul(c, s->y.B, u->uncached ? s->y.S : passed);
    const struct sym_binding held = {s->y.S, last_context(s)};
    const struct sym *blocks = sym_ceil(c, sym_div(c, held.value, sym_int(c, u->block_tokens)));
    const struct sym *sequence =
        u->verify ? sym_bind(c, s->cache.bytes_per_sequence, &held, 1) : s->cache.bytes_per_sequence;
    const double per_token =
        s->cache.bytes_per_token_full + s->cache.bytes_per_token_windowed + s->cache.bytes_per_token_index;
    out[STEP_kv_bytes] = u->uncached ? zero : sym_mul(c, s->y.B, sequence);
    out[STEP_kv_allocated_bytes] =
        u->uncached ? zero : SYM_PROD(c, s->y.B, blocks, sym_num(c, (double)u->block_tokens * per_token));
    out[STEP_activation_bytes] = u->conventions.activations_uncounted
                                     ? zero
                                     : sym_max(c, step_activation(c, u->model, &s->phase[STEP_PREFILL].ops, prompt),
                                               step_activation(c, u->model, &s->phase[STEP_DECODE].ops, decode));
    out[STEP_state_bytes] = u->uncached ? zero : sym_mul(c, s->y.B, sym_num(c, s->cache.state_bytes_per_sequence));
    out[STEP_memory_bytes] = SYM_SUM(c, sym_num(c, s->weight_bytes + u->beside_bytes), out[STEP_kv_bytes],
                                     out[STEP_state_bytes], out[STEP_activation_bytes]);
}

enum err_code step_compile(struct arena *a, const struct step_setup *setup, struct step **out, struct err *e)
{
    const struct model *m = setup->model;
    if (m->weights_unknown)
        return err_set(e, ERR_INPUT, "%s: %s; state the format with --weights", m->source, m->weights_unknown);
    struct step *s = arena_alloc(a, sizeof *s);
    if (!s) return err_nomem(e);
    s->setup = *setup;
    s->c = sym_open(a);
    if (!s->c) return err_nomem(e);
    s->y = cost_symbols_make(s->c);
    const struct sym *const in[] = {s->y.B, s->y.T, s->y.S, s->y.M};
    for (size_t i = 0; i < 4; i++) s->in[i] = in[i];
    double link;
    TRY(timed_link_rate(setup->hw, setup->tp, &link, e));
    s->rates = rates_of(s->c, setup->hw, link);
    for (enum step_phase p = 0; p < STEP_PHASES; p++) TRY(build_phase(a, s, p, e));
    TRY(cost_cache(s->c, &s->y, m, setup->tp, &s->cache, e));
    const struct sym *weights = cost_weight_bytes(s->c, &s->phase[STEP_DECODE].ops, &setup->conventions);
    if (!sym_constant(weights, &s->weight_bytes)) return err_set(e, ERR_RANGE, "%s: weights have no size", m->name);
    const struct sym *exprs[STEP_VALUES_N];
    total_memory(s, exprs);
    total_phase(&s->phase[STEP_PREFILL], exprs + STEP_prefill_s);
    total_phase(&s->phase[STEP_DECODE], exprs + STEP_decode_step_s);
    TRY(sym_check(s->c, e));
    TRY(sym_tape_compile(a, STEP_VALUES_N, exprs, 4, s->in, &s->tape, e));
    *out = s;
    return ERR_OK;
}

void step_eval(struct step *s, size_t n, const double *B, const double *T, const double *S, const double *M,
               double *const out[STEP_VALUES_N])
{
    const double *const in[] = {B, T, S, M};
    sym_tape_eval(s->tape, n, in, out);
}

bool step_timed(const struct step *s) { return !s->untimed; }
double step_weight_bytes(const struct step *s) { return s->weight_bytes; }
double step_kv_bytes_per_token_full(const struct step *s) { return s->cache.bytes_per_token_full; }
double step_kv_bytes_per_token_windowed(const struct step *s) { return s->cache.bytes_per_token_windowed; }
double step_kv_bytes_per_token_index(const struct step *s) { return s->cache.bytes_per_token_index; }
double step_state_bytes_per_sequence(const struct step *s)
{
    return s->setup.uncached ? 0 : s->cache.state_bytes_per_sequence;
}
size_t step_length(const struct step *s) { return sym_tape_length(s->tape); }

struct step_pass step_pass_of(const struct step *s, enum step_phase phase)
{
    const struct phase *p = &s->phase[phase];
    return (struct step_pass){
        .setup = &s->setup, .c = s->c, .in = s->in, .in_n = 4, .op = p->ops.op, .timed = p->timed, .n = p->ops.n};
}

enum { OP_VALUES = 12 };

static void fill_op(const struct model *m, const struct cost_op *op, const struct timed *t, const double *v,
                    struct step_op *row)
{
    const double n = (double)op->count;
    row->layer = op->kind_index < 0 ? "model" : m->kinds[op->kind_index].label;
    row->name = op->name;
    row->kind = cost_op_name(op->kind);
    row->shape = op->shape;
    row->count = op->count;
    row->compute = t->unit;
    row->flops = n * v[0];
    row->vector_flops = n * v[1];
    row->weight_bytes = n * v[2];
    row->kv_bytes = n * v[3];
    row->activation_bytes = n * v[4];
    row->wire_bytes = n * v[5];
    row->state_bytes = n * v[11];
    row->bytes = row->weight_bytes + row->kv_bytes + row->state_bytes + row->activation_bytes;
    row->intensity_flops_per_byte = (row->flops > 0 ? row->flops : row->vector_flops) / row->bytes;
    row->time_s = n * v[6];
    static const char *const BINDS[] = {"compute", "vector", "memory", "link"};
    size_t most = 0;
    for (size_t k = 1; k < 4; k++)
        if (v[7 + k] > v[7 + most]) most = k;
    row->bound_by = BINDS[most];
}

enum err_code step_ops_of(struct arena *a, const struct step_list *l, const double *values, struct step_op **out,
                          struct err *e)
{
    const size_t n = l->n;
    const struct sym **exprs = arena_array(a, n * OP_VALUES, sizeof *exprs);
    double *value = arena_array(a, n * OP_VALUES, sizeof *value);
    double **column = arena_array(a, n * OP_VALUES, sizeof *column);
    const double **at = arena_array(a, l->in_n, sizeof *at);
    struct step_op *rows = arena_array(a, n, sizeof *rows);
    if (!exprs || !value || !column || !rows || !at) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const struct cost_op *op = &l->op[i];
        const struct timed *t = &l->timed[i];
        const struct sym *const v[OP_VALUES] = {
            op->flops,      op->vector_flops, op->weight_bytes, op->kv_bytes, op->activation_bytes,
            op->wire_bytes, t->time_s,        t->compute_s,     t->vector_s,  t->memory_s,
            t->link_s,      op->state_bytes};
        for (size_t k = 0; k < OP_VALUES; k++) exprs[i * OP_VALUES + k] = v[k];
    }
    for (size_t i = 0; i < n * OP_VALUES; i++) column[i] = &value[i];
    for (size_t i = 0; i < l->in_n; i++) at[i] = &values[i];
    struct sym_tape *tape;
    TRY(sym_tape_compile(a, n * OP_VALUES, exprs, l->in_n, l->in, &tape, e));
    sym_tape_eval(tape, 1, at, column);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        rows[i].phase = l->phase;
        fill_op(l->model, &l->op[i], &l->timed[i], value + i * OP_VALUES, &rows[i]);
        sum += rows[i].time_s;
    }
    for (size_t i = 0; i < n; i++) rows[i].share_frac = rows[i].time_s / sum;
    *out = rows;
    return ERR_OK;
}

enum err_code step_ops(struct arena *a, const struct step *s, enum step_phase phase, double B, double T, double S,
                       double M, struct step_op **out, size_t *out_n, struct err *e)
{
    const struct phase *p = &s->phase[phase];
    const double values[] = {B, T, S, M};
    const struct step_list list = {.model = s->setup.model,
                                   .phase = phase_name(s, phase),
                                   .op = p->ops.op,
                                   .timed = p->timed,
                                   .n = p->ops.n,
                                   .in = s->in,
                                   .in_n = 4};
    *out_n = p->ops.n;
    return step_ops_of(a, &list, values, out, e);
}
