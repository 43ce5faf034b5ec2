/* simulate_spread -- what requests saw of a simulation. */
#include <math.h>
#include <stdlib.h>

#include "calc/serve/simulate.h"

double simulate_ttft_s(const struct simulate_record *r) { return r->first_s - r->arrival_s; }
double simulate_latency_s(const struct simulate_record *r) { return r->finish_s - r->arrival_s; }
double simulate_wait_s(const struct simulate_record *r) { return r->start_s - r->arrival_s; }
double simulate_move_s(const struct simulate_record *r) { return r->moved_s - r->first_s; }
double simulate_tpot_s(const struct simulate_record *r)
{
    return r->output_tokens > 1 ? (r->finish_s - r->first_s) / (r->output_tokens - 1) : (double)NAN;
}

double simulate_front_s(const struct simulate_record *r) { return engine_first_s(r->prompt_tokens); }

void simulate_front(struct simulate_result *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct simulate_record *x = &r->record[i];
        const double later_s = simulate_front_s(x);
        x->first_s += later_s; /* NAN stays: not reached */
        x->moved_s += later_s;
        x->finish_s += later_s;
        r->span_s = fmax(r->span_s, x->finish_s); /* of NAN and a number the number */
    }
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

static double at_least(const double *v, size_t n, double p)
{
    const size_t i = (size_t)ceil(p * (double)n);
    return v[i > 0 ? i - 1 : 0];
}

enum err_code simulate_spread_of(const struct simulate_result *r, double (*value)(const struct simulate_record *),
                                 struct simulate_spread *out, struct err *e)
{
    const double unknown = (double)NAN;
    *out = (struct simulate_spread){0, unknown, unknown, unknown, unknown, unknown, unknown};
    double *v = malloc((r->n + 1) * sizeof *v), sum = 0;
    if (!v) return err_nomem(e);
    for (size_t i = 0; i < r->n; i++) {
        if (!(r->record[i].finish_s >= 0)) continue;
        const double x = value(&r->record[i]);
        if (isnan(x)) continue;
        v[out->n++] = x;
        sum += x;
    }
    if (out->n > 0) {
        qsort(v, out->n, sizeof *v, by_value);
        out->mean = sum / (double)out->n;
        out->p50 = at_least(v, out->n, .5);
        out->p90 = at_least(v, out->n, .9);
        out->p95 = at_least(v, out->n, .95);
        out->p99 = at_least(v, out->n, .99);
        out->most = v[out->n - 1];
    }
    free(v);
    return ERR_OK;
}
