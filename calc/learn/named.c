/* The plain names of quantity.h. */
#include "calc/learn/quantity.h"

/* Elements of the weights that a token passes: k of E experts. */
static const struct sym *active_params(const struct quantity_scope *s, const struct quantity_topic *q)
{
    struct quantity_topic part = *q;
    const struct sym *sum = q->params;
    for (size_t i = 0; i < q->pass.ops.n; i++) {
        const struct cost_op *op = &q->pass.ops.op[i];
        if (op->kind != OP_EXPERTS) continue;
        const struct ffn *f = &q->pass.model->kinds[op->kind_index].ffn;
        part.pass.ops = (struct cost_ops){&q->pass.ops.op[i], 1};
        const struct sym *all = quantity_params(s, &part);
        const struct sym *share = s->model && s->sizes != QUANTITY_SYMBOLS
                                      ? sym_rat(s->c, f->experts_per_token, f->experts)
                                      : sym_div(s->c, s->y.k, s->y.E);
        sum = sym_add(s->c, sum, sym_mul(s->c, all, sym_sub(s->c, share, sym_int(s->c, 1))));
    }
    return sum;
}

/* Of the cache, or of recurrent state. */
static const struct sym *sum_held(const struct quantity_scope *s, const struct quantity_topic *q, bool state)
{
    const struct sym *zero = sym_int(s->c, 0);
    const struct sym *sum = sym_int(s->c, 0);
    for (size_t i = 0; i < q->pass.ops.n; i++) {
        const struct cost_op *op = &q->pass.ops.op[i];
        if ((op->state_bytes != zero) != state) continue;
        const struct sym *n = sym_int(s->c, op->count);
        if (q->pass.layers && op->kind_index >= 0) n = sym_mul(s->c, n, q->pass.layers);
        sum = sym_add(s->c, sum, sym_mul(s->c, n, op->held_bytes));
    }
    return sum;
}

static const struct sym *stored_bytes(const struct quantity_scope *s, const struct quantity_topic *q)
{
    struct cost_ops model = q->pass.ops, layers = q->pass.ops;
    const struct sym *in_layers, *outside;
    struct cost_op *list = arena_array(s->arena, 2 * q->pass.ops.n, sizeof *list);
    if (!list) return sym_int(s->c, 0);
    layers.op = list;
    model.op = list + q->pass.ops.n;
    layers.n = model.n = 0;
    for (size_t i = 0; i < q->pass.ops.n; i++) {
        struct cost_ops *to = q->pass.ops.op[i].kind_index >= 0 ? &layers : &model;
        to->op[to->n++] = q->pass.ops.op[i];
    }
    in_layers = cost_weight_bytes(s->c, &layers, &s->conventions);
    outside = cost_weight_bytes(s->c, &model, &s->conventions);
    return sym_add(s->c, q->pass.layers ? sym_mul(s->c, q->pass.layers, in_layers) : in_layers, outside);
}

static enum err_code find_ridge(const struct quantity_scope *s, const struct model *m, const struct sym **peak,
                                struct err *e)
{
    enum hw_dtype unit;
    TRY(timed_unit(s->hw, &m->activations, &unit, e));
    *peak = s->rates.peak[unit];
    return ERR_OK;
}

enum err_code quantity_named_all(const struct quantity_scope *s, struct quantity_named out[QUANTITY_NAMED_MAX],
                                 size_t *n, struct err *e)
{
    struct sym_ctx *c = s->c;
    struct quantity_scope one = *s;
    struct quantity_topic held, decode, prefill;
    const struct sym *peak;
    one.tokens = NULL;
    TRY(quantity_topic(&one, "decode_step", QUANTITY_DECODE, &held, e));
    TRY(quantity_topic(s, "decode_step", QUANTITY_DECODE, &decode, e));
    TRY(quantity_topic(s, "prefill", QUANTITY_PREFILL, &prefill, e));
    const struct sym *weights = stored_bytes(s, &held), *kv = sum_held(s, &held, false),
                     *state = sum_held(s, &held, true);
    size_t k = 0;
    out[k++] = (struct quantity_named){"params", "parameters, each stored tensor once", UNITS_COUNT, held.params};
    out[k++] = (struct quantity_named){"active_params", "parameters that one token passes", UNITS_COUNT,
                                       active_params(s, &held)};
    out[k++] = (struct quantity_named){"weight_bytes", "weights as stored, one rank", UNITS_BYTES, weights};
    out[k++] = (struct quantity_named){"kv_bytes", "cache of B sequences at context S, one rank", UNITS_BYTES, kv};
    const bool stateful = state != sym_int(c, 0);
    if (stateful)
        out[k++] =
            (struct quantity_named){"state_bytes", "recurrent state of B sequences, one rank", UNITS_BYTES, state};
    out[k++] = (struct quantity_named){"memory_bytes",
                                       stateful ? "weight_bytes + kv_bytes + state_bytes" : "weight_bytes + kv_bytes",
                                       UNITS_BYTES, SYM_SUM(c, weights, kv, state)};
    if (decode.time_known && find_ridge(s, held.pass.model, &peak, NULL) == ERR_OK) {
        out[k++] =
            (struct quantity_named){"decode_step", "seconds of one decode step", UNITS_SECONDS, decode.total.time_s};
        out[k++] = (struct quantity_named){"prefill", "seconds of a prefill of B prompts of S tokens", UNITS_SECONDS,
                                           prefill.total.time_s};
        out[k++] = (struct quantity_named){"throughput", "B / decode_step, tokens per second", UNITS_TOK_PER_S,
                                           sym_div(c, s->y.B, decode.total.time_s)};
        out[k++] = (struct quantity_named){"ridge", "peak / bandwidth, flops per byte", UNITS_FLOPS_PER_BYTE,
                                           sym_div(c, peak, s->rates.bandwidth)};
        out[k++] = (struct quantity_named){"peak", "flops/s of the matrix unit for the activations' format",
                                           UNITS_FLOPS_PER_S, peak};
    }
    if (s->hw)
        out[k++] = (struct quantity_named){"capacity_bytes", "memory that a process can use", UNITS_BYTES,
                                           sym_num(c, hw_capacity_bytes(s->hw))};
    *n = k;
    return sym_check(c, e);
}
