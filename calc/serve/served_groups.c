/* served_groups -- errors of rows by engine, kind, load and ranks; of served.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_fit.h>

#include "calc/serve/served.h"

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The smallest that at least q of them do not exceed; NAN of none. */
static double quantile(double *v, size_t n, double q)
{
    if (n == 0) return (double)NAN;
    qsort(v, n, sizeof *v, ascending);
    const double at = ceil(q * (double)n) - 1;
    return v[at > 0 ? (size_t)at : 0];
}

static double error_of(double predicted_s, double measured_s) { return fabs(predicted_s / measured_s - 1); }

/* Room of one group: columns of values, and the rows they are of. */
struct values {
    double *error, *slow, *fitted, *baseline, *first, *bias, *log_error, *log_clients, *log_ranks;
    size_t n, first_n;
};

static enum err_code open_values(struct arena *a, size_t n, struct values *v, struct err *e)
{
    double *room = arena_array(a, 9 * (n + 1), sizeof *room);
    *v = (struct values){.error = room};
    if (!room) return err_nomem(e);
    double **const column[] = {&v->slow, &v->fitted,    &v->baseline,    &v->first,
                               &v->bias, &v->log_error, &v->log_clients, &v->log_ranks};
    for (size_t i = 0; i < sizeof column / sizeof *column; i++) *column[i] = room + (i + 1) * (n + 1);
    return ERR_OK;
}

static void add(struct values *v, const struct served_row *r)
{
    v->error[v->n] = error_of(r->predicted_s, r->tpot_s);
    v->slow[v->n] = r->tpot_s / r->predicted_s;
    v->fitted[v->n] = error_of(r->fitted_s, r->tpot_s);
    v->baseline[v->n] = error_of(r->baseline_s, r->tpot_s);
    v->bias[v->n] = r->predicted_s / r->tpot_s - 1;
    v->log_error[v->n] = log(r->predicted_s / r->tpot_s);
    v->log_clients[v->n] = log2(r->clients);
    v->log_ranks[v->n++] = log2(served_ranks(r));
    if (r->clients <= SERVED_FIRST_CLIENTS) v->first[v->first_n++] = error_of(r->first_s, r->ttft_s);
}

/* Slope over a column that is not all alike; NAN. */
static double slope(const struct values *v, const double *x)
{
    double c0, c1, cov00, cov01, cov11, sum;
    bool alike = true;
    for (size_t i = 1; i < v->n; i++) alike = alike && !(x[i] > x[0]) && !(x[i] < x[0]);
    if (v->n < 3 || alike) return (double)NAN;
    (void)gsl_fit_linear(x, 1, v->log_error, 1, v->n, &c0, &c1, &cov00, &cov01, &cov11, &sum);
    return c1;
}

static void finish(struct values *v, struct served_group *g)
{
    size_t within = 0;
    for (size_t i = 0; i < v->n; i++) within += v->error[i] <= 0.25;
    g->rows = (int64_t)v->n;
    g->first_rows = (int64_t)v->first_n;
    g->within_frac = v->n ? (double)within / (double)v->n : (double)NAN;
    g->slope_clients = slope(v, v->log_clients);
    g->slope_tp = slope(v, v->log_ranks);
    g->bias_frac = (quantile(v->bias, v->n, 0.5) + quantile(v->bias, v->n, 0.5 + 0.5 / fmax(1, (double)v->n))) / 2;
    g->median_frac = quantile(v->error, v->n, 0.5);
    g->slow_p90 = quantile(v->slow, v->n, 0.9);
    g->p90_frac = quantile(v->error, v->n, 0.9);
    g->fitted_median_frac = quantile(v->fitted, v->n, 0.5);
    g->baseline_median_frac = quantile(v->baseline, v->n, 0.5);
    g->ratio = g->median_frac / g->baseline_median_frac;
    g->first_median_frac = quantile(v->first, v->first_n, 0.5);
}

/* Loads and ranks that errors are told by. */
static const struct load {
    const char *name;
    double most;
} LOADS[] = {{"to 4", 4}, {"to 16", 16}, {"to 64", 64}, {"above", HUGE_VAL}};
enum { LOADS_N = sizeof LOADS / sizeof LOADS[0], RANKS_N = 5 };
static const char *const RANKS[RANKS_N] = {"1", "2", "4", "8", "above"};

static size_t load_of(const struct served_row *r)
{
    size_t k = 0;
    while (k + 1 < LOADS_N && r->clients > LOADS[k].most) k++;
    return k;
}

static size_t rank_of(const struct served_row *r)
{
    const double n = served_ranks(r);
    return n <= 1 ? 0 : n <= 2 ? 1 : n <= 4 ? 2 : n <= 8 ? 3 : 4;
}

static bool belongs(const struct served_row *r, const struct served_group *g)
{
    return strcmp(r->engine, g->engine) == 0 &&
           (strcmp(g->kind, "all") == 0 || (r->kind && strcmp(r->kind, g->kind) == 0)) &&
           (!g->clients || g->clients == LOADS[load_of(r)].name) && (!g->ranks || g->ranks == RANKS[rank_of(r)]);
}

static enum err_code fill_group(struct arena *a, const struct served *s, struct served_group *g, struct err *e)
{
    struct values v;
    TRY(open_values(a, s->n, &v, e));
    for (size_t i = 0; i < s->n; i++) {
        const struct served_row *r = &s->row[i];
        bool seen = false;
        if (!belongs(r, g)) continue;
        g->unscored += r->why != NULL;
        if (r->why || isnan(r->predicted_s)) continue;
        for (size_t k = 0; k < i && !seen; k++)
            seen = belongs(&s->row[k], g) && !s->row[k].why && s->row[k].family == r->family;
        g->families += !seen;
        add(&v, r);
    }
    finish(&v, g);
    return ERR_OK;
}

static int by_engine(const void *x, const void *y) { return strcmp(*(const char *const *)x, *(const char *const *)y); }

/* Groups of an engine and kind; of loads and ranks those that have a row. */
static enum err_code add_groups(struct arena *a, const struct served *s, const struct served_group *of, unsigned by,
                                struct served_group *out, size_t *out_n, struct err *e)
{
    const size_t loads = by & SERVED_BY_CLIENTS ? LOADS_N : 1, ranks = by & SERVED_BY_RANKS ? RANKS_N : 1;
    for (size_t i = 0; i < loads; i++)
        for (size_t k = 0; k < ranks; k++) {
            struct served_group *g = &out[*out_n];
            *g = *of;
            g->clients = by & SERVED_BY_CLIENTS ? LOADS[i].name : NULL;
            g->ranks = by & SERVED_BY_RANKS ? RANKS[k] : NULL;
            TRY(fill_group(a, s, g, e));
            *out_n += g->rows + (by ? 0 : g->unscored) > 0;
        }
    return ERR_OK;
}

enum err_code served_groups(struct arena *a, const struct served *s, unsigned by, struct served_group **out,
                            size_t *out_n, struct err *e)
{
    static const char *const KINDS[] = {"dense", "experts", "all"};
    const double nan = (double)NAN;
    const char **engines = arena_array(a, s->n + 1, sizeof *engines);
    size_t n = 0;
    if (!engines) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++)
        if (served_is_first(s, i)) engines[n++] = s->row[i].engine;
    qsort(engines, n, sizeof *engines, by_engine);
    *out = arena_array(a, 3 * n * (by ? LOADS_N * RANKS_N : 1) + 1, sizeof **out);
    if (!*out) return err_nomem(e);
    *out_n = 0;
    for (size_t i = 0; i < n; i++) {
        struct served_fit fit;
        struct err none;
        const bool fitted = served_fit_engine(s, engines[i], SIZE_MAX, &fit, &none) == ERR_OK;
        for (size_t k = 0; k < (by ? 2 : 3); k++) {
            const struct served_group g = {.engine = engines[i],
                                           .kind = KINDS[k],
                                           .host_s = fitted ? fit.terms.host_s : nan,
                                           .kernel_s = fitted ? fit.terms.kernel_s : nan,
                                           .sequence_s = fitted ? fit.terms.sequence_s : nan,
                                           .collective_frac = fitted ? fit.terms.collective_frac : nan};
            TRY(add_groups(a, s, &g, by, *out, out_n, e));
        }
    }
    return by ? ERR_OK : served_drifts(a, s, *out, *out_n, e);
}
