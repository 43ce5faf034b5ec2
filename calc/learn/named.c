/* The plain names of quantity.h. */
#include "calc/learn/quantity.h"

/* What stands for a size of an operator's layer: its symbol, its number, or both. */
static const struct sym *size_or_number(const struct quantity_scope *s, const struct cost_op *op, const struct sym *var,
                                        int64_t number)
{
    if (!s->model || s->sizes == QUANTITY_SYMBOLS) return var;
    if (s->sizes == QUANTITY_RELATIVE) return sym_mul(s->c, var, sym_int(s->c, number));
    return s->free == var && (s->layer < 0 || s->layer == op->kind_index) ? var : sym_int(s->c, number);
}

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
        const struct sym *share = sym_div(s->c, size_or_number(s, op, s->y.k, f->experts_per_token),
                                          size_or_number(s, op, s->y.E, f->experts));
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

enum err_code quantity_linear_unit(const struct quantity_scope *s, enum hw_dtype *out, struct err *e)
{
    struct dtype textbook;
    if (!s->model) TRY(dtype_find("bf16", &textbook, e));
    return timed_unit(s->hw, s->model ? model_linear_format(s->model) : &textbook, out, e);
}

const struct sym *quantity_ridge(const struct quantity_scope *s, enum hw_dtype unit)
{
    return sym_div(s->c, s->rates.peak[unit], s->rates.bandwidth);
}

struct list {
    const struct quantity_scope *s;
    struct quantity_named *out;
    size_t n;
};

static void put(struct list *l, const char *name, enum units_kind unit, const struct sym *value, const char *meaning)
{
    l->out[l->n++] = (struct quantity_named){name, meaning, unit, value};
}

/* What resident_bytes is, of a model with recurrent state or none, with towers or none. */
#define STAYS ": what stays; memory_bytes of ridge estimate has activations too"
static const char *const RESIDENT[2][2] = {
    {"weight_bytes + kv_bytes" STAYS, "weight_bytes + kv_bytes + image and audio towers" STAYS},
    {"weight_bytes + kv_bytes + state_bytes" STAYS,
     "weight_bytes + kv_bytes + state_bytes + image and audio towers" STAYS},
};
#undef STAYS

/* What is stored. whole: a decode step of the whole model; held: of one rank. */
static void put_stored(struct list *l, const struct quantity_topic *whole, const struct quantity_topic *held)
{
    const struct quantity_scope *s = l->s;
    const struct sym *weights = stored_bytes(s, held), *kv = sum_held(s, held, false), *state = sum_held(s, held, true);
    const bool stateful = state != sym_int(s->c, 0);
    put(l, "params", UNITS_COUNT, whole->params, "parameters, each stored tensor once");
    put(l, "active_params", UNITS_COUNT, active_params(s, whole), "parameters that one token passes");
    put(l, "weight_bytes", UNITS_BYTES, weights, "weights as stored, one rank");
    put(l, "kv_bytes", UNITS_BYTES, kv,
        s->model && model_passes_whole(s->model) ? "cache: none, every pass takes the whole sequence"
                                                 : "cache of B sequences at context S, one rank");
    if (stateful) put(l, "state_bytes", UNITS_BYTES, state, "recurrent state of B sequences, one rank");
    const struct model_beside beside = s->model ? model_beside(s->model) : (struct model_beside){0, 0};
    const double tower_bytes = model_beside_bytes(&beside, (double)s->tp);
    put(l, "resident_bytes", UNITS_BYTES, SYM_SUM(s->c, weights, kv, state, sym_num(s->c, tower_bytes)),
        RESIDENT[stateful][tower_bytes > 0]);
}

const struct sym *quantity_settled(const struct quantity_scope *s)
{
    const struct model *m = s->model;
    if (!m || !m->diffusion || m->block_tokens == 0 || m->block_steps == 0) return sym_int(s->c, 1);
    return sym_div(s->c, sym_int(s->c, m->block_tokens), sym_int(s->c, m->block_steps));
}

/* What the device makes of it. */
static enum err_code put_timed(struct list *l, struct err *e)
{
    const struct quantity_scope *s = l->s;
    struct quantity_topic decode, prefill;
    enum hw_dtype unit;
    TRY(quantity_topic(s, "decode_step", QUANTITY_DECODE, &decode, e));
    const bool prefills = !s->model || !model_passes_whole(s->model), denoises = s->model && s->model->diffusion;
    if (prefills) TRY(quantity_topic(s, "prefill", QUANTITY_PREFILL, &prefill, e));
    if (!decode.time_known || quantity_linear_unit(s, &unit, NULL) != ERR_OK) return ERR_OK;
    const char *name = hw_dtype_name(unit), *all = "B / decode_step, tokens per second";
    if (s->copies > 1)
        all = arena_printf(s->arena, "%lld copies of B / decode_step, tokens per second", (long long)s->copies);
    const char *ridge =
        arena_printf(s->arena, "peak / bandwidth, flops per byte: %s, the unit of the linear layers", name);
    const char *peak = arena_printf(s->arena, "flops/s of the matrix unit of the linear layers: %s", name);
    if (!all || !ridge || !peak) return err_nomem(e);
    if (denoises) all = arena_printf(s->arena, "%s%s", all, ", times the tokens that a pass settles");
    if (!all) return err_nomem(e);
    put(l, "decode_step", UNITS_SECONDS, decode.total.time_s, denoises ? decode.meaning : "seconds of one decode step");
    if (prefills)
        put(l, "prefill", UNITS_SECONDS, prefill.total.time_s,
            s->prefill_together ? "seconds of a prefill of B prompts of S tokens"
                                : "seconds of a prefill of one prompt of S tokens");
    put(l, "throughput", UNITS_TOK_PER_S,
        SYM_PROD(s->c, sym_int(s->c, s->copies), quantity_settled(s), sym_div(s->c, s->y.B, decode.total.time_s)), all);
    put(l, "ridge", UNITS_FLOPS_PER_BYTE, quantity_ridge(s, unit), ridge);
    put(l, "peak", UNITS_FLOPS_PER_S, s->rates.peak[unit], peak);
    return ERR_OK;
}

enum err_code quantity_named_all(const struct quantity_scope *s, struct quantity_named out[QUANTITY_NAMED_MAX],
                                 size_t *n, struct err *e)
{
    struct quantity_scope one = *s;
    struct quantity_topic held, whole;
    struct list l = {s, out, 0};
    one.tokens = NULL;
    TRY(quantity_topic(&one, "decode_step", QUANTITY_DECODE, &held, e));
    whole = held;
    one.tp = 1;
    if (s->tp > 1) TRY(quantity_topic(&one, "decode_step", QUANTITY_DECODE, &whole, e));
    put_stored(&l, &whole, &held);
    TRY(put_timed(&l, e));
    if (s->hw)
        put(&l, "capacity_bytes", UNITS_BYTES, sym_num(s->c, hw_capacity_bytes(s->hw)),
            "memory that a process can use");
    *n = l.n;
    return sym_check(s->c, e);
}
