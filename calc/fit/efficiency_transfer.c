#include <math.h>
#include <string.h>

#include "calc/fit/efficiency.h"

/* -- what transfers cost -- */

/* Four of five calls of `to` take what parameters of `from` say within this factor either way: the 0.8 quantile of
 * |ln(measured/calibrated)| over classes that both were measured in, attention of head widths and with or without
 * windows as both were. Source: `ridge validate --rows -g TO --transfer-from FROM` on the rows that the files of
 * configs/efficiency were fitted to; tests/test_transfer.c counts them again. */
struct measured_transfer {
    const char *from, *to;
    bool same_generation;
    double products, prefill, decode, experts, collectives; /* NAN: no class in common */
};

static const struct measured_transfer measured[] = {
    {"h100-sxm", "h200-sxm", true, 1.096, 1.175, 1.191, 1.222, 1.144},
    {"h200-sxm", "h100-sxm", true, 1.102, 1.175, 1.189, 1.232, 1.137},
    {"h100-sxm", "a100-80g", false, 1.259, 1.231, 1.499, (double)NAN, 1.597},
    {"h200-sxm", "a100-80g", false, 1.266, 1.225, 1.376, (double)NAN, 1.647},
    {"a100-80g", "h100-sxm", false, 1.262, 1.228, 1.505, (double)NAN, 1.635},
    {"a100-80g", "h200-sxm", false, 1.296, 1.260, 1.396, (double)NAN, 1.639},
};

static double factor_of(const struct measured_transfer *t, enum kernel_kind kind)
{
    switch (kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return t->products;
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL: return t->prefill;
    case KERNEL_DECODE:
    case KERNEL_MLA_DECODE: return t->decode;
    case KERNEL_MOE: return t->experts;
    case KERNEL_COLLECTIVE: return t->collectives;
    case KERNEL_MLP:
    case KERNEL_SCAN:
    case KERNEL_CONV:
    case KERNEL_ELEMENTWISE:
    case KERNEL_KINDS_N: break;
    }
    return (double)NAN;
}

/* Geometric mean over transfers to other devices; NAN none measured this kind. */
static double mean_factor(enum kernel_kind kind, bool same_generation, const char *to)
{
    double logs = 0;
    size_t n = 0;
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        const double f = factor_of(&measured[i], kind);
        if (measured[i].same_generation != same_generation || strcmp(measured[i].to, to) == 0 || isnan(f)) continue;
        logs += log(f);
        n++;
    }
    return n ? exp(logs / (double)n) : (double)NAN;
}

double efficiency_factor(enum kernel_kind kind, bool same_generation, const char *to)
{
    double f = mean_factor(kind, same_generation, to);
    if (!isnan(f)) return f;
    for (int k = 0; k < KERNEL_KINDS_N; k++) f = fmax(f, mean_factor((enum kernel_kind)k, same_generation, to));
    return f;
}

/* -- generations -- */

/* Of one SM, flops/s in 16 bits; NAN unknown. */
static double sm_peak(const struct hw *h)
{
    const double bf16 = h->peak_flops_per_s[HW_BF16];
    return (isnan(bf16) ? h->peak_flops_per_s[HW_FP16] : bf16) / h->sm_count;
}

bool efficiency_same_generation(const struct hw *x, const struct hw *y)
{
    const enum hw_dtype units[] = {HW_BF16, HW_FP8};
    for (size_t i = 0; i < 2; i++)
        if (isnan(x->peak_flops_per_s[units[i]]) != isnan(y->peak_flops_per_s[units[i]])) return false;
    return x->vendor && y->vendor && strcmp(x->vendor, y->vendor) == 0 &&
           fabs(log(sm_peak(x) / sm_peak(y))) < log(1.25);
}

/* -- parameters -- */

static double scale_of(enum kernel_scaling scaling, const struct hw *from, const struct hw *to)
{
    const double scale = kernel_scale(scaling, from, to);
    return isnan(scale) ? 1 : scale;
}

static void move_class(struct fit_class *c, const struct hw *from, const struct hw *to, double factor)
{
    for (size_t k = 0; k < c->n_params; k++) c->p[k] *= scale_of(kernel_param(&c->like, k)->scaling, from, to);
    if (c->like.kind != KERNEL_COLLECTIVE) c->baseline[0] *= scale_of(KERNEL_CYCLES, from, to); /* start_s */
    for (int r = 0; r < FIT_REGIMES_N; r++) {
        const struct fit_band *own = &c->band[r];
        const bool known = own->n > 0;
        c->moved[r] = (struct fit_band){.n = 1,
                                        .p10 = known ? fmin(own->p10, 1 / factor) : 1 / factor,
                                        .p50 = known ? own->p50 : 1,
                                        .p90 = known ? fmax(own->p90, factor) : factor};
    }
}

enum err_code efficiency_transfer(struct arena *a, const struct efficiency *f, const struct hw *from,
                                  const struct hw *to, struct efficiency *out, struct err *e)
{
    const bool same = efficiency_same_generation(from, to);
    struct fit_class *classes = arena_array(a, f->n ? f->n : 1, sizeof *classes);
    if (!classes) return err_nomem(e);
    for (size_t i = 0; i < f->n; i++) {
        classes[i] = f->classes[i];
        move_class(&classes[i], from, to, efficiency_factor(classes[i].like.kind, same, to->key));
    }
    *out = *f;
    out->classes = classes;
    return ERR_OK;
}
