/* served_fit -- the terms of engines; of served.h. */
#include <math.h>
#include <string.h>

#include <gsl/gsl_errno.h>
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

static struct engine_terms terms_of(bool per_kernel, const double *p)
{
    return per_kernel ? (struct engine_terms){.kernel_s = p[0], .factor = 1, .sequence_s = p[1]}
                      : (struct engine_terms){.host_s = p[0], .factor = 1, .collective_frac = p[1]};
}

static double predict_s(size_t params, const struct served_row *r, const double *p)
{
    if (params == SERVED_BASELINE_N) return baseline_s(r, p);
    const struct engine_terms t = terms_of(r->per_kernel, p);
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

static bool is_per_kernel(const struct problem *p)
{
    for (size_t i = 0; i < p->s->n; i++)
        if (counts(p, &p->s->row[i])) return p->s->row[i].per_kernel;
    return false;
}

enum err_code served_fit_engine(const struct served *s, const char *engine, size_t without, struct served_fit *out,
                                struct err *e)
{
    enum { LAUNCHES = 700 }; /* of a step, for where to start */
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
    const bool per_kernel = is_per_kernel(&p);
    double terms[2] = {0, 0}, least[2] = {HUGE_VAL, HUGE_VAL};
    for (size_t k = 0; k < sizeof STARTS / sizeof STARTS[0]; k++) {
        const double start[2] = {per_kernel ? STARTS[k][0] / LAUNCHES : STARTS[k][0], per_kernel ? 2e-5 : 0.2};
        p.params = 2;
        TRY(descend(&p, start, terms, &least[0], e));
        p.params = SERVED_BASELINE_N;
        TRY(descend(&p, STARTS[k], out->baseline, &least[1], e));
    }
    out->terms = terms_of(per_kernel, terms);
    return ERR_OK;
}

bool served_is_first(const struct served *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(s->row[k].engine, s->row[i].engine) == 0) return false;
    return true;
}

/* ---- first tokens ---- */

/* Of one row, by the terms of its engine; start_s of each kernel that its prompt's step launches. */
static double first_token_s(const struct served_row *r, double start_s)
{
    return r->steps_first_s + engine_first_s(r->prompt_tokens) + r->closed.first_launches * start_s;
}

static bool is_of_few(const struct served_row *r, size_t without)
{
    return !r->why && r->family != without && r->clients <= SERVED_FIRST_CLIENTS && r->closed.first_launches > 0;
}

/* Of all engines together: of what makes one row right, and 0, the least sum of |ln(predicted/measured)|; steps_first_s
 * set. */
static double start_of(const struct served *s, size_t without)
{
    double best_s = 0, least = HUGE_VAL;
    for (size_t k = 0; k <= s->n; k++) {
        const struct served_row *at = k < s->n ? &s->row[k] : NULL;
        double sum = 0;
        if (at && !is_of_few(at, without)) continue;
        const double start_s = at ? (at->ttft_s - first_token_s(at, 0)) / at->closed.first_launches : 0;
        if (!(start_s >= 0)) continue;
        for (size_t i = 0; i < s->n; i++)
            if (is_of_few(&s->row[i], without)) sum += fabs(log(first_token_s(&s->row[i], start_s) / s->row[i].ttft_s));
        if (sum >= least) continue;
        least = sum;
        best_s = start_s;
    }
    return best_s;
}

/* ---- left out ---- */

/* Rows of each engine by what is fitted to all families but one (SIZE_MAX: all); of a family with no others in its
 * engine nothing. */
static enum err_code predict_without(struct served *s, size_t without, struct err *e)
{
    for (size_t i = 0; i < s->n; i++) {
        struct served_fit fit;
        if (!served_is_first(s, i)) continue;
        const bool some = served_fit_engine(s, s->row[i].engine, without, &fit, e) == ERR_OK;
        if (!some && e->code == ERR_NOMEM) return ERR_NOMEM;
        for (size_t k = i; some && k < s->n; k++) {
            struct served_row *r = &s->row[k];
            if (r->why || strcmp(r->engine, s->row[i].engine) != 0) continue;
            r->steps_first_s = engine_steps_s(&fit.terms, r->overlapped, &r->closed.first);
            if (without == SIZE_MAX) r->fitted_s = engine_steps_s(&fit.terms, r->overlapped, &r->closed.token);
            if (r->family != without) continue;
            r->predicted_s = engine_steps_s(&fit.terms, r->overlapped, &r->closed.token);
            r->baseline_s = baseline_s(r, fit.baseline);
        }
    }
    const double start_s = start_of(s, without);
    if (without == SIZE_MAX) s->start_s = start_s;
    for (size_t i = 0; i < s->n; i++)
        if (s->row[i].family == without && !isnan(s->row[i].predicted_s))
            s->row[i].first_s = first_token_s(&s->row[i], start_s);
    return ERR_OK;
}

enum err_code served_leave_out(struct served *s, struct err *e)
{
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    enum err_code code = predict_without(s, SIZE_MAX, e);
    for (size_t family = 0; family < s->families_n && code == ERR_OK; family++) code = predict_without(s, family, e);
    (void)gsl_set_error_handler(before);
    return code;
}
