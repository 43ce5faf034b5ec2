#include "calc/fit/fit.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const regime_names[FIT_REGIMES_N] = {"tiny", "memory", "compute"};

const char *fit_regime_name(enum fit_regime regime) { return regime_names[regime]; }

const struct fit_band *fit_band_of(const struct fit_class *c, enum fit_regime regime)
{
    return c->moved[regime].n ? &c->moved[regime] : &c->band[regime];
}

enum fit_regime fit_regime_of(const struct kernel_work *w)
{
    if (w->bound_s < FIT_TINY_S) return FIT_TINY;
    return w->compute_s > w->memory_s ? FIT_COMPUTE : FIT_MEMORY;
}

/* -- points -- */

static int by_family(const void *x, const void *y)
{
    const struct row *const *a = x, *const *b = y;
    return strcmp((*a)->family, (*b)->family);
}

enum err_code fit_points(struct arena *a, const struct hw *hw, const struct row *const *rows, size_t n,
                         struct fit_point **out, size_t *families_n, struct err *e)
{
    struct fit_point *points = arena_array(a, n, sizeof *points);
    const struct row **sorted = arena_array(a, n, sizeof *sorted);
    double *room = arena_array(a, KERNEL_FEATURES_MAX, sizeof *room);
    if (!points || !sorted || !room) return err_nomem(e);
    memcpy(sorted, rows, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_family);
    size_t families = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(sorted[i]->family, sorted[families]->family) != 0)
            sorted[i == 0 ? 0 : ++families] = sorted[i];
    }
    *families_n = n ? families + 1 : 0;
    for (size_t i = 0; i < n; i++) {
        struct fit_point *p = &points[i];
        p->time_s = rows[i]->time_s;
        const struct row **own = bsearch(&rows[i], sorted, *families_n, sizeof *sorted, by_family);
        p->family = own ? (size_t)(own - sorted) : 0;
        enum err_code code = kernel_work(&rows[i]->kernel, hw, &p->work, e);
        if (code == ERR_OK) code = kernel_prepare(&rows[i]->kernel, hw, room, &p->features, e);
        if (code != ERR_OK) return e ? err_prepend(e, "%s: line %zu: ", rows[i]->file, rows[i]->line) : code;
        p->features.v = arena_array(a, p->features.n ? p->features.n : 1, sizeof *room);
        if (!p->features.v) return err_nomem(e);
        memcpy(p->features.v, room, p->features.n * sizeof *room);
    }
    *out = points;
    return ERR_OK;
}

/* -- one fit -- */

#define SOFT 0.08 /* deviations of ln(predicted/measured) beyond it count about linearly */

enum { ITERATIONS = 60 };

struct problem {
    const struct kernel_form *form; /* NULL: the baseline */
    const struct kernel_param *const *params;
    size_t n_params;
    const struct fit_point *points;
    const size_t *at;
    size_t n;
    const struct fit_watch *watch; /* NULL: nobody */
};

/* A parameter between its bounds from any u, and back. */
static double from_free(const struct kernel_param *k, double u)
{
    const double lo = log(k->lo), hi = log(k->hi);
    return exp(lo + (hi - lo) / (1 + exp(-u)));
}

static double to_free(const struct kernel_param *k, double v)
{
    const double part = (log(v) - log(k->lo)) / (log(k->hi) - log(k->lo));
    const double inside = fmin(fmax(part, 0.005), 0.995);
    return log(inside / (1 - inside));
}

static double predict(const struct problem *m, const struct fit_point *point, const double *p)
{
    return m->form ? kernel_time_s(m->form, &point->features, p) : kernel_baseline_s(&point->work, p);
}

static int residuals(const gsl_vector *u, void *closure, gsl_vector *out)
{
    const struct problem *m = closure;
    double p[KERNEL_PARAMS_MAX];
    for (size_t i = 0; i < m->n_params; i++) p[i] = from_free(m->params[i], gsl_vector_get(u, i));
    for (size_t i = 0; i < m->n; i++) {
        const struct fit_point *point = &m->points[m->at[i]];
        const double x = log(predict(m, point, p) / point->time_s);
        const double rho = 2 * SOFT * SOFT * (sqrt(1 + (x / SOFT) * (x / SOFT)) - 1);
        gsl_vector_set(out, i, copysign(sqrt(rho), x));
    }
    return GSL_SUCCESS;
}

/* Standard deviations of ln p from the Jacobian at the solution: s^2 (J'J)^-1, J per ln p. */
static void deviations(const struct problem *m, gsl_multifit_nlinear_workspace *w, const double *p, double *out)
{
    gsl_matrix *cov = gsl_matrix_alloc(m->n_params, m->n_params);
    double cost = 0;
    if (!cov) return;
    (void)gsl_blas_ddot(gsl_multifit_nlinear_residual(w), gsl_multifit_nlinear_residual(w), &cost);
    (void)gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(w), 1e-10, cov);
    for (size_t i = 0; i < m->n_params; i++) {
        const double lo = log(m->params[i]->lo), hi = log(m->params[i]->hi), part = (log(p[i]) - lo) / (hi - lo);
        const double slope = (hi - lo) * part * (1 - part); /* d ln p / d u */
        const double freedom = m->n > m->n_params ? (double)(m->n - m->n_params) : 1;
        out[i] = slope * sqrt(fmax(0, gsl_matrix_get(cov, i, i)) * cost / freedom);
    }
    gsl_matrix_free(cov);
}

/* Which start of how many. */
struct descent {
    const struct fit_watch *watch;
    int nth, starts;
};

/* Of iterations most starts need a fraction: the n-th is told as n/(n + HALF) of its start. */
static void tell(const size_t iteration, void *closure, const gsl_multifit_nlinear_workspace *w)
{
    enum { HALF = 12 };
    const struct descent *d = closure;
    const struct fit_watch *t = d->watch;
    (void)w;
    if (!t || !t->done) return;
    const double part = ((double)d->nth + (double)iteration / (double)(iteration + HALF)) / (double)d->starts;
    t->done(t->closure, (size_t)(t->before + part * t->rows), t->of);
}

/* From one start; *cost is what remains. */
static enum err_code descend(struct problem *m, int nth, int starts, const double *start, double *p, double *cost,
                             double *deviation, struct err *e)
{
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    how.h_df = 1e-4;
    how.solver = gsl_multifit_nlinear_solver_cholesky;
    how.scale = gsl_multifit_nlinear_scale_levenberg;
    gsl_multifit_nlinear_fdf f = {.f = residuals, .n = m->n, .p = m->n_params, .params = m};
    gsl_multifit_nlinear_workspace *w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, m->n, m->n_params);
    gsl_vector *u = gsl_vector_alloc(m->n_params);
    struct descent at = {m->watch, nth, starts};
    enum err_code code = ERR_OK;
    if (!w || !u) {
        code = err_nomem(e);
    } else {
        int info = 0;
        for (size_t i = 0; i < m->n_params; i++) gsl_vector_set(u, i, to_free(m->params[i], start[i]));
        (void)gsl_multifit_nlinear_init(u, &f, w);
        (void)gsl_multifit_nlinear_driver(ITERATIONS, 1e-5, 1e-6, 1e-6, tell, &at, &info, w);
        (void)gsl_blas_ddot(gsl_multifit_nlinear_residual(w), gsl_multifit_nlinear_residual(w), cost);
        for (size_t i = 0; i < m->n_params; i++)
            p[i] = from_free(m->params[i], gsl_vector_get(gsl_multifit_nlinear_position(w), i));
        if (deviation) deviations(m, w, p, deviation);
    }
    if (u) gsl_vector_free(u);
    if (w) gsl_multifit_nlinear_free(w);
    return code;
}

/* A fixed choice of 0 or 1 for parameter i in start s, without pattern (multiplicative hash of Knuth). */
static int mixture(size_t i, int s)
{
    const uint32_t h = (uint32_t)(i * 31 + (size_t)s * 977 + 7) * UINT32_C(2654435761);
    return (int)(h >> 31);
}

static enum err_code solve(struct problem *m, int starts, double *p, double *deviation, struct err *e)
{
    double start[KERNEL_PARAMS_MAX], found[KERNEL_PARAMS_MAX], spread[KERNEL_PARAMS_MAX], cost, best = HUGE_VAL;
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    enum err_code code = ERR_OK;
    for (int s = 0; s < starts && code == ERR_OK; s++) {
        /* the two starts of every parameter, then mixtures of them */
        for (size_t i = 0; i < m->n_params; i++) start[i] = m->params[i]->start[s < 2 ? s : mixture(i, s)];
        code = descend(m, s, starts, start, found, &cost, deviation ? spread : NULL, e);
        if (code != ERR_OK || !(cost < best)) continue;
        best = cost;
        memcpy(p, found, m->n_params * sizeof *p);
        if (deviation) memcpy(deviation, spread, m->n_params * sizeof *p);
    }
    (void)gsl_set_error_handler(before);
    if (code == ERR_OK && best == HUGE_VAL) return err_set(e, ERR_RANGE, "no start of the fit leads to finite times");
    return code;
}

enum err_code fit_params(const struct kernel *like, const struct fit_point *points, const size_t *at, size_t n,
                         int starts, const struct fit_watch *watch, double *p, double *deviation, struct err *e)
{
    const struct kernel_param *params[KERNEL_PARAMS_MAX];
    struct problem m = {.form = kernel_form_of(like),
                        .params = params,
                        .n_params = kernel_params_n(like),
                        .points = points,
                        .at = at,
                        .n = n,
                        .watch = watch};
    for (size_t i = 0; i < m.n_params; i++) params[i] = kernel_param(like, i);
    return solve(&m, starts, p, deviation, e);
}

enum err_code fit_baseline(const struct fit_point *points, const size_t *at, size_t n, double *p, struct err *e)
{
    const struct kernel_param *params[KERNEL_BASELINE_PARAMS_N];
    struct problem m = {.params = params, .n_params = KERNEL_BASELINE_PARAMS_N, .points = points, .at = at, .n = n};
    for (size_t i = 0; i < m.n_params; i++) params[i] = &kernel_baseline_params[i];
    return solve(&m, 2, p, NULL, e);
}
