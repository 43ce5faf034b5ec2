/* served_fit -- the terms of engines; of served.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_multimin.h>

#include "calc/serve/served.h"

/* ---- the fit ---- */

struct problem {
    const struct served *s;
    const char *engine;
    size_t without, params;
};

static bool counts(const struct problem *p, const struct served_row *r)
{
    return !r->why && r->family != p->without && strcmp(r->engine, p->engine) == 0;
}

static double baseline_s(const struct served_row *r, const double c[SERVED_BASELINE_N])
{
    return c[0] + c[1] * r->closed.roofline_decode_s + c[2] * r->closed.roofline_prefill_s;
}

static struct engine_terms terms_of(bool per_sequence, const double *p)
{
    return per_sequence ? (struct engine_terms){.host_s = p[0], .factor = 1, .sequence_s = p[1]}
                        : (struct engine_terms){.host_s = p[0], .factor = p[1]};
}

static double predict_s(size_t params, const struct served_row *r, const double *p)
{
    if (params == SERVED_BASELINE_N) return baseline_s(r, p);
    const struct engine_terms t = terms_of(r->per_sequence, p);
    return engine_steps_s(&t, r->overlapped, &r->closed.token);
}

static double loss(const gsl_vector *u, void *closure)
{
    const struct problem *p = closure;
    const double d = 0.05;
    double v[SERVED_BASELINE_N], sum = 0;
    for (size_t i = 0; i < p->params; i++) v[i] = exp(fmin(gsl_vector_get(u, i), 10));
    for (size_t i = 0; i < p->s->n; i++) {
        const struct served_row *r = &p->s->row[i];
        if (!counts(p, r)) continue;
        const double x = log(predict_s(p->params, r, v) / r->tpot_s) / d;
        sum += 2 * d * d * (sqrt(1 + x * x) - 1);
    }
    return sum;
}

/* From a start, until the simplex is small; then from where that ended, with a new one. */
static enum err_code descend(struct problem *p, const double *start, double *out, double *least, struct err *e)
{
    enum { ROUNDS = 2, STEPS = 400 };
    gsl_multimin_function f = {.f = loss, .n = p->params, .params = p};
    gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, p->params);
    gsl_vector *u = gsl_vector_alloc(p->params), *size = gsl_vector_alloc(p->params);
    const bool room = m && u && size;
    for (size_t i = 0; room && i < p->params; i++) gsl_vector_set(u, i, log(start[i]));
    for (int round = 0; room && round < ROUNDS; round++) {
        gsl_vector_set_all(size, 0.5);
        if (gsl_multimin_fminimizer_set(m, &f, u, size) != GSL_SUCCESS) break;
        for (int k = 0; k < STEPS; k++)
            if (gsl_multimin_fminimizer_iterate(m) != GSL_SUCCESS || gsl_multimin_fminimizer_size(m) < 1e-5) break;
        (void)gsl_vector_memcpy(u, gsl_multimin_fminimizer_x(m));
    }
    if (room && gsl_multimin_fminimizer_minimum(m) < *least) {
        *least = gsl_multimin_fminimizer_minimum(m);
        for (size_t i = 0; i < p->params; i++) out[i] = exp(gsl_vector_get(u, i));
    }
    if (m) gsl_multimin_fminimizer_free(m);
    if (u) gsl_vector_free(u);
    if (size) gsl_vector_free(size);
    return room ? ERR_OK : err_nomem(e);
}

static bool is_per_sequence(const struct problem *p)
{
    for (size_t i = 0; i < p->s->n; i++)
        if (counts(p, &p->s->row[i])) return p->s->row[i].per_sequence;
    return false;
}

/* What first tokens of few clients take beside their steps: of what makes one row right, and 0, the least sum of
 * |ln(predicted/measured)|. */
static double first_of(const struct problem *p, const struct engine_terms *t)
{
    double best_s = 0, least = HUGE_VAL;
    for (size_t k = 0; k <= p->s->n; k++) {
        const struct served_row *at = k < p->s->n ? &p->s->row[k] : NULL;
        if (at && (!counts(p, at) || at->clients > SERVED_FIRST_CLIENTS)) continue;
        const double first_s = at ? at->ttft_s - engine_steps_s(t, at->overlapped, &at->closed.first) : 0;
        double sum = 0;
        if (first_s < 0) continue;
        for (size_t i = 0; i < p->s->n; i++) {
            const struct served_row *r = &p->s->row[i];
            if (!counts(p, r) || r->clients > SERVED_FIRST_CLIENTS) continue;
            sum += fabs(log((engine_steps_s(t, r->overlapped, &r->closed.first) + first_s) / r->ttft_s));
        }
        if (sum >= least) continue;
        least = sum;
        best_s = first_s;
    }
    return best_s;
}

enum err_code served_fit_engine(const struct served *s, const char *engine, size_t without, struct served_fit *out,
                                struct err *e)
{
    static const double STARTS[][SERVED_BASELINE_N] = {{3e-4, 1, 1}, {3e-3, 1, 1.5}, {1e-2, 0.7, 0.7}};
    struct problem p = {.s = s, .engine = engine, .without = without};
    *out = (struct served_fit){.rows = 0};
    for (size_t i = 0; i < s->n; i++) {
        bool seen = false;
        if (!counts(&p, &s->row[i])) continue;
        for (size_t k = 0; k < i && !seen; k++) seen = counts(&p, &s->row[k]) && s->row[k].family == s->row[i].family;
        out->families += !seen;
        out->rows++;
    }
    if (!out->rows) return err_set(e, ERR_NO, "no row of %.40s is left to fit", engine);
    const bool per_sequence = is_per_sequence(&p);
    double terms[2] = {0, 1}, least[2] = {HUGE_VAL, HUGE_VAL};
    for (size_t k = 0; k < sizeof STARTS / sizeof STARTS[0]; k++) {
        const double start[2] = {STARTS[k][0], per_sequence ? 2e-5 : STARTS[k][1]};
        p.params = 2;
        TRY(descend(&p, start, terms, &least[0], e));
        p.params = SERVED_BASELINE_N;
        TRY(descend(&p, STARTS[k], out->baseline, &least[1], e));
    }
    out->terms = terms_of(per_sequence, terms);
    out->terms.first_s = first_of(&p, &out->terms);
    return ERR_OK;
}

static bool is_first(const struct served *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(s->row[k].engine, s->row[i].engine) == 0) return false;
    return true;
}

static enum err_code leave_out(struct served *s, const char *engine, struct err *e)
{
    struct served_fit all, rest;
    const enum err_code code = served_fit_engine(s, engine, SIZE_MAX, &all, e);
    if (code == ERR_NO) return ERR_OK; /* none is scored */
    TRY(code);
    for (size_t family = 0; family < s->families_n; family++) {
        const bool others = served_fit_engine(s, engine, family, &rest, e) == ERR_OK;
        if (!others && e->code == ERR_NOMEM) return ERR_NOMEM;
        for (size_t i = 0; i < s->n; i++) {
            struct served_row *r = &s->row[i];
            if (r->why || r->family != family || strcmp(r->engine, engine) != 0) continue;
            r->fitted_s = engine_steps_s(&all.terms, r->overlapped, &r->closed.token);
            if (!others || rest.rows == all.rows) continue;
            r->predicted_s = engine_steps_s(&rest.terms, r->overlapped, &r->closed.token);
            r->first_s = engine_steps_s(&rest.terms, r->overlapped, &r->closed.first) + rest.terms.first_s;
            r->baseline_s = baseline_s(r, rest.baseline);
        }
    }
    return ERR_OK;
}

enum err_code served_leave_out(struct served *s, struct err *e)
{
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    enum err_code code = ERR_OK;
    for (size_t i = 0; i < s->n && code == ERR_OK; i++)
        if (is_first(s, i)) code = leave_out(s, s->row[i].engine, e);
    (void)gsl_set_error_handler(before);
    return code;
}

/* ---- groups ---- */

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

/* Room of one group: columns of values. */
struct values {
    double *error, *slow, *fitted, *baseline, *first, *log_error, *log_clients, *log_tp;
    size_t n, first_n;
};

static enum err_code open_values(struct arena *a, size_t n, struct values *v, struct err *e)
{
    double *room = arena_array(a, 8 * (n + 1), sizeof *room);
    if (!room) return err_nomem(e);
    *v = (struct values){.error = room};
    double **const column[] = {&v->slow,      &v->fitted,      &v->baseline, &v->first,
                               &v->log_error, &v->log_clients, &v->log_tp};
    for (size_t i = 0; i < sizeof column / sizeof *column; i++) *column[i] = room + (i + 1) * (n + 1);
    return ERR_OK;
}

static void add(struct values *v, const struct served_row *r)
{
    v->error[v->n] = error_of(r->predicted_s, r->tpot_s);
    v->slow[v->n] = r->tpot_s / r->predicted_s;
    v->fitted[v->n] = error_of(r->fitted_s, r->tpot_s);
    v->baseline[v->n] = error_of(r->baseline_s, r->tpot_s);
    v->log_error[v->n] = log(r->predicted_s / r->tpot_s);
    v->log_clients[v->n] = log2(r->clients);
    v->log_tp[v->n++] = log2((double)(r->tp * r->attention_dp));
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
    g->drift_clients = slope(v, v->log_clients);
    g->drift_tp = slope(v, v->log_tp);
    g->median_frac = quantile(v->error, v->n, 0.5);
    g->slow_p90 = quantile(v->slow, v->n, 0.9);
    g->p90_frac = quantile(v->error, v->n, 0.9);
    g->fitted_median_frac = quantile(v->fitted, v->n, 0.5);
    g->baseline_median_frac = quantile(v->baseline, v->n, 0.5);
    g->ratio = g->median_frac / g->baseline_median_frac;
    g->first_median_frac = quantile(v->first, v->first_n, 0.5);
}

static bool belongs(const struct served_row *r, const struct served_group *g)
{
    return strcmp(r->engine, g->engine) == 0 &&
           (strcmp(g->kind, "all") == 0 || (r->kind && strcmp(r->kind, g->kind) == 0));
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

enum err_code served_groups(struct arena *a, const struct served *s, struct served_group **out, size_t *out_n,
                            struct err *e)
{
    static const char *const KINDS[] = {"dense", "experts", "all"};
    const double nan = (double)NAN;
    const char **engines = arena_array(a, s->n + 1, sizeof *engines);
    size_t n = 0;
    if (!engines) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++)
        if (is_first(s, i)) engines[n++] = s->row[i].engine;
    qsort(engines, n, sizeof *engines, by_engine);
    *out = arena_array(a, 3 * n + 1, sizeof **out);
    if (!*out) return err_nomem(e);
    *out_n = 0;
    for (size_t i = 0; i < n; i++) {
        struct served_fit fit;
        struct err none;
        const bool fitted = served_fit_engine(s, engines[i], SIZE_MAX, &fit, &none) == ERR_OK;
        for (size_t k = 0; k < 3; k++) {
            struct served_group *g = &(*out)[*out_n];
            *g = (struct served_group){.engine = engines[i],
                                       .kind = KINDS[k],
                                       .host_s = fitted ? fit.terms.host_s : nan,
                                       .sequence_s = fitted ? fit.terms.sequence_s : nan,
                                       .factor = fitted ? fit.terms.factor : nan,
                                       .first_s = fitted ? fit.terms.first_s : nan};
            TRY(fill_group(a, s, g, e));
            if (g->rows + g->unscored > 0) (*out_n)++;
        }
    }
    return ERR_OK;
}
