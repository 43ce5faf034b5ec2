#include "calc/time/timed.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
    r.spread = sym_var(c, "layout_spread_rate");
    r.fabric = sym_var(c, "fabric");
    r.context = sym_var(c, "layout_context_rate");
    r.sum_s = r.gather_s = r.spread_s = r.hop_s = r.context_s = r.host = NULL;
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

/* Ranks on a CPU that was measured, whose key is NAME or, of several threads together, NAME@THREADS: what is meant are
 * more threads, where it has so many processors. */
static enum err_code refuse_ranks(const struct hw *hw, int64_t tp, struct err *e)
{
    const int name = (int)strcspn(hw->key, "@");
    const double threads = (hw->key[name] ? strtod(hw->key + name + 1, NULL) : 1) * (double)tp;
    if (hw->processors > 0 && threads > hw->processors)
        return err_set(e, ERR_USAGE, "%s:%lld: it has no link to another, and the machine has %.0f processor%s",
                       hw->key, (long long)tp, hw->processors, hw->processors > 1 ? "s" : "");
    return err_set(e, ERR_USAGE, "%s:%lld: it has no link to another; %.0f threads of the machine are %.*s@%.0f",
                   hw->key, (long long)tp, threads, name, hw->key, threads);
}

enum err_code timed_link_rate(const struct hw *hw, int64_t tp, double *out_bytes_per_s, struct err *e)
{
    *out_bytes_per_s = (double)NAN;
    if (tp == 1) return ERR_OK;
    double rate = hw_link_rate(hw, (size_t)tp);
    if (isnan(rate) && !isnan(hw->link_bytes_per_s) && (double)tp > hw->link_domain)
        return err_set(e, ERR_USAGE, "%s: %lld ranks side by side are more than the %.0f devices that its link joins",
                       hw->name, (long long)tp, hw->link_domain);
    if (isnan(rate)) rate = hw->pcie_bytes_per_s;
    if (isnan(rate) && hw->measured && hw->device_kind && strcmp(hw->device_kind, "cpu") == 0)
        return refuse_ranks(hw, tp, e);
    if (isnan(rate))
        return err_set(e, ERR_INPUT, "%s: neither link nor pcie is known, so %lld ranks cannot be timed", hw->file,
                       (long long)tp);
    *out_bytes_per_s = rate;
    return ERR_OK;
}

enum err_code timed_links(const struct hw *hw, const struct layout *l, const struct timed_latency *latency,
                          struct timed_links *out, struct err *e)
{
    const struct layout w = layout_whole(l);
    const int64_t group = layout_group(&w), here = w.per_node;
    const int64_t nodes = layout_nodes(&w, group * w.pp), split = w.tp < here ? w.tp : here;
    struct timed_links r = {.fabric_bytes_per_s = nodes > 1 ? hw->fabric_bytes_per_s : (double)NAN};
    TRY(timed_link_rate(hw, split, &r.link_bytes_per_s, e));
    /* stages side by side in a node hand on over the same link */
    const int64_t near = group > 1 ? group : w.pp > 1 ? 2 : 1;
    TRY(timed_link_rate(hw, near < here ? near : here, &r.spread_bytes_per_s, e));
    if (nodes > 1 && isnan(r.fabric_bytes_per_s))
        return err_set(e, ERR_INPUT, "%s: fabric: not known, so a copy over %lld nodes cannot be timed (--fabric)",
                       hw->file, (long long)nodes);
    const bool switched = hw->nvls && split > 2 && !w.sp;
    r.wire_factor = switched ? 1 : 2 * (double)(split - 1) / (double)split;
    const double near_s = latency->link_s, far_s = latency->fabric_s;
    const double ring = (double)(split - 1), far = (double)(layout_nodes(&w, w.tp) - 1);
    const bool direct = hw->nvls && split > 2; /* every pair has a path of its own */
    r.sum_s = (switched ? 1 : direct ? 2 : 2 * ring) * near_s + 2 * far * far_s;
    if (w.sp) r.sum_s /= 2; /* its other half is an all-gather */
    r.gather_s = (direct ? 1 : ring) * near_s + far * far_s;
    const int64_t sharing = w.dcp < here ? w.dcp : here;
    TRY(timed_link_rate(hw, sharing, &r.context_bytes_per_s, e));
    if (w.dcp > 1)
        r.context_s = (hw->nvls && sharing > 2 ? 1 : (double)(sharing - 1)) * near_s +
                      (double)(layout_nodes(&w, w.dcp) - 1) * far_s;
    r.spread_s = w.dp > 1 ? near_s + (layout_nodes(&w, group) > 1 ? far_s : 0) : 0;
    r.hop_s = nodes > 1 ? fmax(near_s, far_s) : near_s;
    *out = r;
    return ERR_OK;
}

const struct sym *timed_wire_factor(struct sym_ctx *c, const struct hw *hw, int64_t tp)
{
    return hw && hw->nvls && tp > 2 ? sym_int(c, 1) : sym_rat(c, 2 * (tp - 1), tp);
}

/* Within a node and between nodes at once. */
static const struct sym *link_time(struct sym_ctx *c, const struct rates *r, const struct cost_op *op)
{
    const struct sym *zero = sym_int(c, 0);
    const bool spread = op->kind == OP_ALL_TO_ALL || op->kind == OP_SEND;
    const struct sym *rate = op->context ? r->context : spread ? r->spread : r->link;
    const struct sym *near = op->wire_bytes == zero ? zero : sym_div(c, op->wire_bytes, rate);
    const struct sym *far = op->fabric_bytes == zero ? zero : sym_div(c, op->fabric_bytes, r->fabric);
    const struct sym *bytes = far == zero ? near : near == zero ? far : sym_max(c, near, far);
    const struct sym *start = op->context                 ? r->context_s
                              : op->kind == OP_ALL_TO_ALL ? r->spread_s
                              : op->kind == OP_SEND       ? r->hop_s
                              : op->kind == OP_ALL_GATHER ? r->gather_s
                              : op->kind == OP_ALL_REDUCE ? r->sum_s
                                                          : NULL;
    if (op->context && start) /* old tokens that there may be none of */
        start = sym_mul(c, start, sym_min(c, sym_int(c, 1), sym_add(c, op->wire_bytes, op->fabric_bytes)));
    return bytes == zero || !start ? bytes : sym_add(c, bytes, start);
}

enum err_code timed_ops(struct arena *a, struct sym_ctx *c, const struct rates *r, const struct hw *hw,
                        const struct model *m, const struct sym *sent, struct cost_ops *ops, struct timed **out,
                        bool *untimed, struct err *e)
{
    const struct sym *zero = sym_int(c, 0);
    const struct sym_binding factor = {sym_var(c, "r"), sent};
    const bool vector = !hw || !isnan(hw->peak_flops_per_s[HW_FP32_VECTOR]);
    struct timed *list = arena_array(a, ops->n, sizeof *list);
    if (!list) return err_nomem(e);
    for (size_t i = 0; i < ops->n; i++) {
        struct cost_op *op = &ops->op[i];
        struct timed *t = &list[i];
        *t = (struct timed){.host_bytes = NULL};
        enum hw_dtype unit = HW_BF16;
        const struct dtype *d = op->format              ? op->format
                                : op->compute_class < 0 ? &m->activations
                                                        : &m->weights[op->compute_class];
        const bool known = timed_unit(hw, d, &unit, NULL) == ERR_OK;
        t->unit = known ? hw_dtype_name(unit) : "unknown";
        if (!known && untimed) *untimed = true;
        if (sent) op->wire_bytes = sym_bind(c, op->wire_bytes, &factor, 1);
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
        t->link_s = link_time(c, r, op);
        const struct sym *const part[] = {t->compute_s, t->vector_s, t->memory_s, t->link_s};
        t->time_s = part[0];
        for (size_t k = 1; k < sizeof part / sizeof part[0]; k++)
            if (part[k] != zero) t->time_s = t->time_s == zero ? part[k] : sym_max(c, t->time_s, part[k]);
    }
    TRY(sym_check(c, e));
    *out = list;
    return ERR_OK;
}

/* Sums over operators, each so many times. */
static enum err_code sum_times(struct arena *a, struct sym_ctx *c, const struct rates *r, enum step_fidelity fidelity,
                               const struct cost_ops *ops, const struct timed *timed, const struct sym *const *times,
                               struct timed_total *out, struct err *e)
{
    enum { SUMS = 16 };
    const struct sym *zero = sym_int(c, 0);
    const bool bound = fidelity == STEP_BOUND;
    const struct sym **term = arena_array(a, ops->n * SUMS, sizeof *term);
    if (!term) return err_nomem(e);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *o = &ops->op[i];
        const struct timed *t = &timed[i];
        const struct sym *const part[SUMS] = {
            o->flops,           o->vector_flops,
            o->weight_bytes,    o->kv_bytes,
            o->kv_needed_bytes, o->activation_bytes,
            o->wire_bytes,      t->bytes,
            t->compute_s,       t->link_s,
            t->time_s,          o->weight_needed_bytes,
            o->state_bytes,     o->state_needed_bytes,
            o->fabric_bytes,    !t->host_bytes ? zero : bound ? t->host_needed_bytes : t->host_bytes};
        for (size_t k = 0; k < SUMS; k++) term[k * ops->n + i] = sym_mul(c, times[i], part[k]);
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
                            .state_needed_bytes = sum[13],
                            .fabric_bytes = sum[14],
                            .host_bytes = sum[15]};
    t.bytes = bound ? SYM_SUM(c, t.weight_needed_bytes, t.kv_needed_bytes, t.state_needed_bytes) : sum[7];
    if (bound && r->host) t.bytes = sym_sub(c, t.bytes, t.host_bytes);
    t.host_s = r->host ? sym_div(c, t.host_bytes, r->host) : zero;
    t.compute_s = sum[8];
    t.link_s = sum[9];
    t.memory_s = sym_div(c, t.bytes, r->bandwidth);
    t.time_s = bound ? sym_max(c, t.compute_s, t.memory_s) : sum[10];
    if (bound && t.link_s != zero) t.time_s = sym_max(c, t.time_s, t.link_s);
    if (bound && t.host_s != zero) t.time_s = sym_max(c, t.time_s, t.host_s);
    TRY(sym_check(c, e));
    *out = t;
    return ERR_OK;
}

enum err_code timed_sum(struct arena *a, struct sym_ctx *c, const struct rates *r, enum step_fidelity fidelity,
                        const struct cost_ops *ops, const struct timed *timed, const struct sym *layers,
                        struct timed_total *out, struct err *e)
{
    const struct sym **times = arena_array(a, ops->n, sizeof *times);
    if (!times) return err_nomem(e);
    for (size_t i = 0; i < ops->n; i++) {
        times[i] = cost_times(c, &ops->op[i], NULL);
        if (layers && ops->op[i].kind_index >= 0) times[i] = sym_mul(c, times[i], layers);
    }
    return sum_times(a, c, r, fidelity, ops, timed, times, out, e);
}

enum err_code timed_sum_stage(struct arena *a, struct sym_ctx *c, const struct rates *r, enum step_fidelity fidelity,
                              const struct cost_ops *ops, const struct timed *timed, const struct cost_stage *stage,
                              struct timed_total *out, struct err *e)
{
    const struct sym **times = arena_array(a, ops->n, sizeof *times);
    if (!times) return err_nomem(e);
    for (size_t i = 0; i < ops->n; i++) times[i] = cost_times(c, &ops->op[i], stage);
    return sum_times(a, c, r, fidelity, ops, timed, times, out, e);
}
