#include "calc/time/offload.h"

const struct sym *offload_bytes(struct sym_ctx *c, const struct offload *o, const struct cost_ops *ops,
                                const struct cost_conventions *v, const struct cost_stage *stage)
{
    return sym_min(c, sym_num(c, o->bytes), cost_layer_weight_bytes(c, ops, v, stage));
}

const struct sym *offload_part(struct sym_ctx *c, const struct offload *o, const struct cost_ops *ops,
                               const struct cost_conventions *v, const struct cost_stage *stage)
{
    return sym_min(c, sym_int(c, 1), sym_div(c, sym_num(c, o->bytes), cost_layer_weight_bytes(c, ops, v, stage)));
}

static const struct sym *longest(struct sym_ctx *c, const struct sym *const *part, size_t n)
{
    const struct sym *zero = sym_int(c, 0), *most = part[0];
    for (size_t k = 1; k < n; k++)
        if (part[k] != zero) most = most == zero ? part[k] : sym_max(c, most, part[k]);
    return most;
}

enum err_code offload_ops(struct sym_ctx *c, const struct rates *r, const struct sym *part, const struct cost_ops *ops,
                          struct timed *timed, struct err *e)
{
    const struct sym *zero = sym_int(c, 0), *rest = sym_sub(c, sym_int(c, 1), part);
    for (size_t i = 0; i < ops->n; i++) {
        const struct cost_op *op = &ops->op[i];
        struct timed *t = &timed[i];
        if (op->kind_index < 0 || op->weight_bytes == zero || cost_op_adapts(op)) continue;
        const struct sym *w = op->weight_bytes, *stream_s = sym_div(c, w, r->host);
        const struct sym *const of[] = {t->compute_s, t->vector_s, sym_div(c, sym_sub(c, t->bytes, w), r->bandwidth),
                                        t->link_s, stream_s};
        t->resident_s = t->time_s;
        t->time_s = sym_add(c, sym_mul(c, rest, t->time_s), sym_mul(c, part, longest(c, of, sizeof of / sizeof *of)));
        t->host_bytes = sym_mul(c, part, w);
        t->host_s = sym_mul(c, part, stream_s);
        t->host_needed_bytes = sym_mul(c, part, op->weight_needed_bytes);
        t->bytes = sym_sub(c, t->bytes, t->host_bytes);
        t->memory_s = sym_div(c, t->bytes, r->bandwidth);
    }
    return sym_check(c, e);
}

double offload_hides_tokens(const struct offload *o, double weight_bytes, double peak_flops_per_s)
{
    return weight_bytes * peak_flops_per_s / (2 * o->host_bytes_per_s);
}
