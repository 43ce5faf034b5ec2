#include "calc/time/timed.h"

#include <math.h>
#include <stddef.h>

static const struct {
    const char *name, *meaning;
} RATES[RATES_N] = {
    [HW_FP32_VECTOR] = {"peak_fp32_vector", "flops/s of the vector unit"},
    [HW_TF32] = {"peak_tf32", "flops/s of the matrix unit in tf32"},
    [HW_BF16] = {"peak_bf16", "flops/s of the matrix unit in bf16"},
    [HW_FP16] = {"peak_fp16", "flops/s of the matrix unit in fp16"},
    [HW_FP8] = {"peak_fp8", "flops/s of the matrix unit in fp8"},
    [HW_INT8] = {"peak_int8", "operations/s of the matrix unit in int8"},
    [HW_FP4] = {"peak_fp4", "flops/s of the matrix unit in fp4"},
    [HW_INT4] = {"peak_int4", "operations/s of the matrix unit in int4"},
    [HW_DTYPES_N] = {"bandwidth", "bytes/s of the memory"},
    [HW_DTYPES_N + 1] = {"link", "bytes/s that a rank sends to the others"},
};

struct rates rates_make(struct sym_ctx *c)
{
    struct rates r;
    for (size_t i = 0; i < HW_DTYPES_N; i++) r.peak[i] = sym_var(c, RATES[i].name);
    r.bandwidth = sym_var(c, RATES[HW_DTYPES_N].name);
    r.link = sym_var(c, RATES[HW_DTYPES_N + 1].name);
    return r;
}

const struct sym *rates_list(const struct rates *r, size_t i, const char **meaning)
{
    *meaning = RATES[i].meaning;
    return i < HW_DTYPES_N ? r->peak[i] : i == HW_DTYPES_N ? r->bandwidth : r->link;
}

struct rates rates_of(struct sym_ctx *c, const struct hw *hw, double link_bytes_per_s)
{
    struct rates r = rates_make(c);
    for (size_t i = 0; i < HW_DTYPES_N; i++)
        if (!isnan(hw->peak_flops_per_s[i])) r.peak[i] = sym_num(c, hw->peak_flops_per_s[i]);
    r.bandwidth = sym_num(c, hw->bandwidth_bytes_per_s);
    if (!isnan(link_bytes_per_s)) r.link = sym_num(c, link_bytes_per_s);
    return r;
}

enum err_code timed_unit(const struct hw *hw, const struct dtype *d, enum hw_dtype *out, struct err *e)
{
    static const enum hw_dtype FALLBACK[] = {HW_BF16, HW_FP16, HW_TF32, HW_FP32_VECTOR};
    enum hw_dtype own;
    if (hw_dtype_find(d->compute, &own) && (!hw || !isnan(hw->peak_flops_per_s[own]))) {
        *out = own;
        return ERR_OK;
    }
    for (size_t i = 0; i < sizeof FALLBACK / sizeof FALLBACK[0]; i++) {
        if (hw && isnan(hw->peak_flops_per_s[FALLBACK[i]])) continue;
        *out = FALLBACK[i];
        return ERR_OK;
    }
    return err_set(e, ERR_INPUT, "%s: no peak rate is known, so no time can be given", hw->file);
}

enum err_code timed_link_rate(const struct hw *hw, int64_t tp, double *out_bytes_per_s, struct err *e)
{
    *out_bytes_per_s = (double)NAN;
    if (tp == 1) return ERR_OK;
    double rate = hw_link_rate(hw, (size_t)tp);
    if (isnan(rate) && !isnan(hw->link_bytes_per_s) && (double)tp > hw->link_domain)
        return err_set(e, ERR_USAGE, "%s: --tp %lld is more than the %.0f devices that its link joins", hw->name,
                       (long long)tp, hw->link_domain);
    if (isnan(rate)) rate = hw->pcie_bytes_per_s;
    if (isnan(rate))
        return err_set(e, ERR_INPUT, "%s: neither link nor pcie is known, so --tp %lld cannot be timed", hw->file,
                       (long long)tp);
    *out_bytes_per_s = rate;
    return ERR_OK;
}

const struct sym *timed_wire_factor(struct sym_ctx *c, const struct hw *hw, int64_t tp)
{
    return hw && hw->nvls && tp > 2 ? sym_int(c, 1) : sym_rat(c, 2 * (tp - 1), tp);
}

enum err_code timed_ops(struct arena *a, struct sym_ctx *c, const struct rates *r, const struct hw *hw,
                        const struct model *m, int64_t tp, struct cost_ops *ops, struct timed **out, bool *untimed,
                        struct err *e)
{
    const struct sym *zero = sym_int(c, 0), *sent = sym_var(c, "r");
    const struct sym_binding factor = {sent, timed_wire_factor(c, hw, tp)};
    const bool vector = !hw || !isnan(hw->peak_flops_per_s[HW_FP32_VECTOR]);
    struct timed *list = arena_array(a, ops->n, sizeof *list);
    if (!list) return err_nomem(e);
    for (size_t i = 0; i < ops->n; i++) {
        struct cost_op *op = &ops->op[i];
        struct timed *t = &list[i];
        enum hw_dtype unit = HW_BF16;
        const struct dtype *d = op->format              ? op->format
                                : op->compute_class < 0 ? &m->activations
                                                        : &m->weights[op->compute_class];
        const bool known = timed_unit(hw, d, &unit, NULL) == ERR_OK;
        t->unit = known ? hw_dtype_name(unit) : "unknown";
        if (!known && untimed) *untimed = true;
        op->wire_bytes = sym_bind(c, op->wire_bytes, &factor, 1);
        t->bytes = SYM_SUM(c, op->weight_bytes, op->kv_bytes, op->state_bytes, op->activation_bytes);
        t->compute_s = known ? sym_div(c, op->flops, r->peak[unit]) : zero;
        enum hw_dtype half;
        if (known && op->half_flops != zero && timed_unit(hw, &m->activations, &half, NULL) == ERR_OK) {
            t->half_unit = hw_dtype_name(half);
            t->compute_s = sym_add(c, sym_div(c, sym_sub(c, op->flops, op->half_flops), r->peak[unit]),
                                   sym_div(c, op->half_flops, r->peak[half]));
        }
        t->vector_s = vector ? sym_div(c, op->vector_flops, r->peak[HW_FP32_VECTOR]) : zero;
        t->memory_s = sym_div(c, t->bytes, r->bandwidth);
        t->link_s = tp > 1 ? sym_div(c, op->wire_bytes, r->link) : zero;
        const struct sym *const part[] = {t->compute_s, t->vector_s, t->memory_s, t->link_s};
        t->time_s = part[0];
        for (size_t k = 1; k < sizeof part / sizeof part[0]; k++)
            if (part[k] != zero) t->time_s = t->time_s == zero ? part[k] : sym_max(c, t->time_s, part[k]);
    }
    TRY(sym_check(c, e));
    *out = list;
    return ERR_OK;
}

enum err_code timed_sum(struct arena *a, struct sym_ctx *c, const struct rates *r, enum step_fidelity fidelity,
                        const struct cost_ops *ops, const struct timed *timed, const struct sym *layers,
                        struct timed_total *out, struct err *e)
{
    enum { SUMS = 14 };
    const struct sym **term = arena_array(a, ops->n * SUMS, sizeof *term);
    if (!term) return err_nomem(e);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *o = &ops->op[i];
        const struct timed *t = &timed[i];
        const struct sym *const part[SUMS] = {o->flops,           o->vector_flops,
                                              o->weight_bytes,    o->kv_bytes,
                                              o->kv_needed_bytes, o->activation_bytes,
                                              o->wire_bytes,      t->bytes,
                                              t->compute_s,       t->link_s,
                                              t->time_s,          o->weight_needed_bytes,
                                              o->state_bytes,     o->state_needed_bytes};
        const struct sym *n = sym_int(c, o->count);
        if (layers && o->kind_index >= 0) n = sym_mul(c, n, layers);
        for (size_t k = 0; k < SUMS; k++) term[k * ops->n + i] = sym_mul(c, n, part[k]);
    }
    const struct sym *sum[SUMS];
    for (size_t k = 0; k < SUMS; k++) sum[k] = sym_sum(c, ops->n, term + k * ops->n);
    struct timed_total t = {.flops = sum[0],
                            .vector_flops = sum[1],
                            .weight_bytes = sum[2],
                            .kv_bytes = sum[3],
                            .kv_needed_bytes = sum[4],
                            .activation_bytes = sum[5],
                            .wire_bytes = sum[6],
                            .weight_needed_bytes = sum[11],
                            .state_bytes = sum[12],
                            .state_needed_bytes = sum[13]};
    const bool bound = fidelity == STEP_BOUND;
    t.bytes = bound ? SYM_SUM(c, t.weight_needed_bytes, t.kv_needed_bytes, t.state_needed_bytes) : sum[7];
    t.compute_s = sum[8];
    t.link_s = sum[9];
    t.memory_s = sym_div(c, t.bytes, r->bandwidth);
    t.time_s = bound ? sym_max(c, t.compute_s, t.memory_s) : sum[10];
    if (bound && t.link_s != sym_int(c, 0)) t.time_s = sym_max(c, t.time_s, t.link_s);
    TRY(sym_check(c, e));
    *out = t;
    return ERR_OK;
}
