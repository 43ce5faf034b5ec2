#include "calc/serve/describe.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_sf_psi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* Moments, and those of logarithms. */
struct moments {
    double mean, variance, log_mean, log_variance;
};

static struct moments moments_of(const double *v, size_t n, double shift)
{
    struct moments m = {0, 0, 0, 0};
    for (size_t i = 0; i < n; i++) {
        m.mean += v[i] - shift;
        m.log_mean += log(v[i] - shift);
    }
    m.mean /= (double)n;
    m.log_mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        m.variance += pow(v[i] - shift - m.mean, 2);
        m.log_variance += pow(log(v[i] - shift) - m.log_mean, 2);
    }
    m.variance /= (double)n;
    m.log_variance /= (double)n;
    return m;
}

/* The shape of a gamma distribution: Newton's steps on ln k - digamma(k) = s, in 1/k (Minka). */
static double gamma_shape(double mean, double log_mean)
{
    const double s = log(mean) - log_mean;
    if (!(s > 1e-12)) return (double)INFINITY; /* all alike */
    double k = (3 - s + sqrt((s - 3) * (s - 3) + 24 * s)) / (12 * s);
    for (int i = 0; i < 32; i++) {
        const double wrong = log(k) - gsl_sf_psi(k) - s;
        const double next = 1 / (1 / k + wrong / (k * k * (1 / k - gsl_sf_psi_1(k))));
        if (!(next > 0)) break;
        const bool there = fabs(next / k - 1) < 1e-12;
        k = next;
        if (there) break;
    }
    return k;
}

/* ---- lengths ---- */

enum family { LOGNORMAL, GAMMA, EXPONENTIAL, PARETO };

struct curve {
    enum family family;
    double p, q; /* lognormal: mu, sigma; gamma: shape, scale; exponential: mean; Pareto: least, alpha */
};

static double below(const struct curve *c, double x)
{
    if (!(x > 0)) return 0;
    switch (c->family) {
    case LOGNORMAL: return gsl_cdf_lognormal_P(x, c->p, c->q);
    case GAMMA: return gsl_cdf_gamma_P(x, c->p, c->q);
    case EXPONENTIAL: return -expm1(-x / c->p);
    case PARETO: return x > c->p ? 1 - pow(c->p / x, c->q) : 0;
    }
    return (double)NAN;
}

/* Likelihood and distance over sorted whole values. */
static void judge(const struct curve *c, const double *v, size_t n, struct describe_fit *f)
{
    double sum = 0, far = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && v[end] <= v[i]) end++;
        const double low = below(c, v[i] - 1), high = below(c, v[i]);
        sum += (double)(end - i) * log(fmax(high - low, 1e-300));
        far = fmax(far, fmax(fabs((double)i / (double)n - low), fabs((double)end / (double)n - high)));
        i = end;
    }
    f->log_likelihood = sum / (double)n;
    f->distance = far;
}

static void fit_one(enum family family, const struct moments *m, const double *v, size_t n, struct describe_fit *f)
{
    static const char *const NAME[] = {"lognormal", "gamma", "exponential", "pareto"};
    const double unknown = (double)NAN;
    struct curve c = {.family = family};
    *f = (struct describe_fit){NAME[family], unknown, unknown, unknown, unknown, unknown, false, ""};
    switch (family) {
    case LOGNORMAL:
        if (!(m->log_variance > 0)) return;
        c.p = m->log_mean;
        c.q = sqrt(m->log_variance);
        f->mean = exp(m->log_mean + m->log_variance / 2);
        f->cv = sqrt(expm1(m->log_variance));
        break;
    case GAMMA:
        c.p = gamma_shape(m->mean, m->log_mean);
        if (!isfinite(c.p)) return;
        c.q = m->mean / c.p;
        f->mean = m->mean;
        f->cv = 1 / sqrt(c.p);
        break;
    case EXPONENTIAL:
        c.p = f->mean = m->mean;
        f->cv = 1;
        break;
    case PARETO:
        c.p = v[0] - .5;
        c.q = 1 / (m->log_mean - log(c.p));
        if (!(c.q > 1) || !isfinite(c.q)) return;
        f->alpha = c.q;
        f->mean = c.p * c.q / (c.q - 1);
        f->cv = c.q > 2 ? 1 / sqrt(c.q * (c.q - 2)) : (double)INFINITY;
        break;
    }
    judge(&c, v, n, f);
    const double second = family == PARETO ? f->alpha : f->cv;
    const double mean = fmax(f->mean, 1);
    if (family == EXPONENTIAL)
        (void)snprintf(f->text, sizeof f->text, "%s:%.6g,max=%.0f", f->name, mean, v[n - 1]);
    else
        (void)snprintf(f->text, sizeof f->text, "%s:%.6g,%.5g,max=%.0f", f->name, mean, second, v[n - 1]);
}

/* v sorted. */
static void lengths(const double *v, size_t n, struct describe_lengths *out)
{
    const struct moments plain = moments_of(v, n, 0), m = moments_of(v, n, .5);
    *out = (struct describe_lengths){.mean = plain.mean,
                                     .cv = sqrt(plain.variance) / plain.mean,
                                     .p50 = v[(n - 1) / 2],
                                     .p95 = v[(size_t)ceil(.95 * (double)n) - 1],
                                     .p99 = v[(size_t)ceil(.99 * (double)n) - 1],
                                     .least = (int64_t)v[0],
                                     .most = (int64_t)v[n - 1]};
    struct describe_fit *best = NULL;
    double least = (double)INFINITY;
    for (enum family k = LOGNORMAL; k <= PARETO; k++) {
        struct describe_fit *f = &out->fit[k];
        fit_one(k, &m, v, n, f);
        const double schwarz = (k == EXPONENTIAL ? 1 : 2) * log((double)n) - 2 * f->log_likelihood * (double)n;
        if (!(schwarz < least)) continue;
        least = schwarz;
        best = f;
    }
    if (v[n - 1] <= v[0]) { /* all alike: a number is no distribution */
        (void)snprintf(out->fit[EXPONENTIAL].text, sizeof out->fit[EXPONENTIAL].text, "%.0f", v[0]);
        out->fit[EXPONENTIAL].name = "fixed";
        out->fit[EXPONENTIAL].mean = v[0];
        out->fit[EXPONENTIAL].cv = out->fit[EXPONENTIAL].distance = out->fit[EXPONENTIAL].log_likelihood = 0;
        best = &out->fit[EXPONENTIAL];
    }
    if (best) best->chosen = true;
}

/* ---- arrivals ---- */

static double gap_distance(const double *gap, size_t n, double shape, double mean_s)
{
    double far = 0;
    for (size_t i = 0; i < n; i++) {
        const double at = gsl_cdf_gamma_P(gap[i], shape, mean_s / shape);
        far = fmax(far, fmax(fabs(at - (double)i / (double)n), fabs(at - (double)(i + 1) / (double)n)));
    }
    return far;
}

/* Variance over mean of the requests in windows of so many seconds, one after another. */
static double dispersion(const struct workload *w, double window_s)
{
    enum { LEAST = 20 };
    const double windows = floor(w->span_s / window_s), mean = (double)w->first_n / (w->span_s / window_s);
    double sum = 0, square = 0, seen = 0;
    if (windows < LEAST) return (double)NAN;
    for (size_t i = 0; i < w->first_n;) {
        const double at = floor(w->request[i].arrival_s / window_s);
        size_t n = 0;
        while (i < w->first_n && floor(w->request[i].arrival_s / window_s) <= at) {
            i++;
            n++;
        }
        if (at >= windows) break;
        sum += (double)n;
        square += (double)n * (double)n;
        seen++;
    }
    return mean > 0 && seen > 0 ? (square / windows - (sum / windows) * (sum / windows)) / (sum / windows)
                                : (double)NAN;
}

/* The first harmonic of a day of the rate: 2 |sum of e^(i w t)| / n. */
static double swing(const struct workload *w)
{
    const double day_s = 86400, days = floor(w->span_s / day_s);
    double x = 0, y = 0, n = 0;
    if (days < 2) return (double)NAN;
    for (size_t i = 0; i < w->first_n && w->request[i].arrival_s < days * day_s; i++) {
        const double at = 2 * M_PI * w->request[i].arrival_s / day_s;
        x += cos(at);
        y += sin(at);
        n++;
    }
    return fmin(2 * hypot(x, y) / n, 1);
}

static enum err_code arrivals(const struct workload *w, double *gap, struct describe_arrivals *out, struct err *e)
{
    static const double WINDOW_S[DESCRIBE_WINDOWS] = {1, 10, 60, 600};
    const size_t n = w->first_n - 1;
    const double unknown = (double)NAN;
    *out = (struct describe_arrivals){.rate_per_s = unknown, .swing_frac = unknown};
    if (!w->timed || w->first_n < 3 || !(w->span_s > 0)) return ERR_OK;
    for (size_t i = 0; i < n; i++) {
        gap[i] = w->request[i + 1].arrival_s - w->request[i].arrival_s;
        if (!(gap[i] >= 0)) return err_set(e, ERR_RANGE, "arrivals out of order");
        out->ties |= !(gap[i] > 0);
    }
    qsort(gap, n, sizeof *gap, ascending);
    double mean_s = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean_s += gap[i] / (double)n;
    for (size_t i = 0; i < n; i++) square += (gap[i] - mean_s) * (gap[i] - mean_s) / (double)n;
    out->span_s = w->span_s;
    out->rate_per_s = 1 / mean_s;
    out->cv = sqrt(square) / mean_s;
    const double shape = out->ties ? 1 / (out->cv * out->cv) : gamma_shape(mean_s, moments_of(gap, n, 0).log_mean);
    out->gamma_cv = isfinite(shape) ? 1 / sqrt(shape) : 0;
    out->distance = isfinite(shape) ? gap_distance(gap, n, shape, mean_s) : unknown;
    out->poisson_distance = gap_distance(gap, n, 1, mean_s);
    for (size_t i = 0; i < DESCRIBE_WINDOWS; i++) {
        out->window_s[i] = WINDOW_S[i];
        out->dispersion[i] = dispersion(w, WINDOW_S[i]);
    }
    out->swing_frac = swing(w);
    const double alike = 2 / sqrt((double)n); /* two standard errors of the CV of exponential gaps */
    if (out->swing_frac >= .2)
        (void)snprintf(out->text, sizeof out->text, "diurnal:%.3g,86400", out->swing_frac);
    else if (!(out->gamma_cv > 0) || fabs(out->gamma_cv - 1) <= alike)
        (void)snprintf(out->text, sizeof out->text, "poisson");
    else
        (void)snprintf(out->text, sizeof out->text, "gamma:%.4g", out->gamma_cv);
    return ERR_OK;
}

enum err_code describe_work(struct arena *a, const struct workload *w, struct describe *out, struct err *e)
{
    double *v = arena_array(a, w->n + 1, sizeof *v);
    if (!v) return err_nomem(e);
    if (w->n < 2) return err_set(e, ERR_RANGE, "a distribution of %zu requests: at least 2", w->n);
    *out = (struct describe){.n = w->n};
    for (size_t i = 0; i < w->n; i++) v[i] = w->request[i].prompt_tokens;
    qsort(v, w->n, sizeof *v, ascending);
    lengths(v, w->n, &out->prompt);
    for (size_t i = 0; i < w->n; i++) v[i] = w->request[i].output_tokens;
    qsort(v, w->n, sizeof *v, ascending);
    lengths(v, w->n, &out->output);
    return arrivals(w, v, &out->arrivals, e);
}
