#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/hash.h"
#include "calc/fit/fit.h"
#include "calc/fit/rows_formats.h"

#define HELD_OUT_FRAC 0.3 /* of the families */

enum { SEED = 20260829 };

/* What a split leaves: residuals of the points left out. */
struct split {
    bool *out;     /* [families] */
    double *ratio; /* [points] measured over predicted; NAN where the point was fitted */
};

struct work {
    const struct kernel *like;
    struct fit_point *points;
    size_t n, families;
    int splits;
    struct split *split;
    size_t *at;            /* [n] of the points fitted */
    const uint64_t *shape; /* [n] of the points */
    uint64_t *some;        /* [n] of those fitted */
    double *room;
    struct fit_watch watch; /* of the piece that is next */
    double each;            /* rows that a start is */
};

/* -- shapes -- */

/* Every size of a call as its file says it, and whether it was cold: calls of one class that agree in them are repeats,
 * whatever the ceilings around them were. */
static uint64_t shape_of(const struct rows_format *f, const struct kernel *k)
{
    static const double UNKNOWN = -1;
    uint64_t h = hash_start();
    for (size_t i = 0; i < f->numbers_n + ROWS_OPTIONAL_N; i++) {
        const struct rows_number *size = i < f->numbers_n ? &f->numbers[i] : &rows_optional[i - f->numbers_n];
        double v;
        memcpy(&v, (const char *)k + size->offset, sizeof v);
        h = hash_more(h, isnan(v) ? &UNKNOWN : &v, sizeof v);
    }
    return hash_more(h, &k->cold, sizeof k->cold);
}

/* Shapes of n rows of one class. */
static enum err_code shapes_of(struct arena *a, const struct row *const *rows, size_t n, uint64_t **out, struct err *e)
{
    struct kernel like = rows[0]->kernel;
    if (like.kind == KERNEL_CONV) like.kind = KERNEL_SCAN; /* whose files it stands in */
    const struct rows_format *f = rows_format_of(&like);
    *out = arena_array(a, n, sizeof **out);
    if (!*out) return err_nomem(e);
    for (size_t i = 0; i < n; i++) (*out)[i] = f ? shape_of(f, &rows[i]->kernel) : i;
    return ERR_OK;
}

static int by_value(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* How many different ones; v is sorted. */
static size_t count_distinct(uint64_t *v, size_t n)
{
    size_t distinct = 0;
    qsort(v, n, sizeof *v, by_value);
    for (size_t i = 0; i < n; i++) distinct += i == 0 || v[i] != v[i - 1];
    return distinct;
}

enum err_code fit_count_shapes(struct arena *a, const struct row *const *rows, size_t n, size_t *out, struct err *e)
{
    uint64_t *shape;
    *out = 0;
    if (!n) return ERR_OK;
    TRY(shapes_of(a, rows, n, &shape, e));
    *out = count_distinct(shape, n);
    return ERR_OK;
}

/* -- errors -- */

static double error_of(const struct work *k, size_t i, const double *p, bool baseline)
{
    const struct fit_point *x = &k->points[i];
    const double s =
        baseline ? kernel_baseline_s(&x->work, p) : kernel_time_s(kernel_form_of(k->like), &x->features, p);
    return fabs(s - x->time_s) / x->time_s;
}

/* Mean error of the points of which `out` says so (NULL: all), and of those with a large bound. */
static void errors(const struct work *k, const bool *out, const double *p, bool baseline, double *all, double *large)
{
    double sum = 0, large_sum = 0;
    size_t n = 0, large_n = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (out && !out[k->points[i].family]) continue;
        const double x = error_of(k, i, p, baseline);
        sum += x;
        n++;
        if (!(k->points[i].work.bound_s > FIT_LARGE_S)) continue;
        large_sum += x;
        large_n++;
    }
    *all = n ? sum / (double)n : (double)NAN;
    *large = large_n ? large_sum / (double)large_n : (double)NAN;
}

static struct fit_mean mean_of(double *v, size_t n)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i])) v[m++] = v[i];
    if (!m) return (struct fit_mean){(double)NAN, (double)NAN};
    return (struct fit_mean){gsl_stats_mean(v, 1, m), m > 1 ? gsl_stats_sd(v, 1, m) : (double)NAN};
}

enum { STARTS = 8, SPLIT_STARTS = 3 };

static enum err_code run_split(struct work *k, struct split *s, gsl_rng *rng, double score[4], struct err *e)
{
    double p[KERNEL_PARAMS_MAX], base[KERNEL_BASELINE_PARAMS_N];
    size_t *order = k->at, fitted = 0;
    for (size_t i = 0; i < k->families; i++) order[i] = i;
    gsl_ran_shuffle(rng, order, k->families, sizeof *order);
    const size_t out_n = (size_t)fmax(1, floor(HELD_OUT_FRAC * (double)k->families));
    for (size_t i = 0; i < out_n; i++) s->out[order[i]] = true;
    for (size_t i = 0; i < k->n; i++)
        if (!s->out[k->points[i].family]) {
            k->some[fitted] = k->shape[i];
            k->at[fitted++] = i;
        }
    if (count_distinct(k->some, fitted) < kernel_params_n(k->like)) { /* fewer shapes than parameters: no fit */
        for (size_t i = 0; i < k->n; i++) s->ratio[i] = (double)NAN;
        for (size_t i = 0; i < 4; i++) score[i] = (double)NAN;
        return ERR_OK;
    }
    k->watch.rows = SPLIT_STARTS * k->each;
    TRY(fit_params(k->like, k->points, k->at, fitted, SPLIT_STARTS, &k->watch, p, NULL, e));
    k->watch.before += k->watch.rows;
    TRY(fit_baseline(k->points, k->at, fitted, base, e));
    errors(k, s->out, p, false, &score[0], &score[1]);
    errors(k, s->out, base, true, &score[2], &score[3]);
    for (size_t i = 0; i < k->n; i++)
        s->ratio[i] = s->out[k->points[i].family]
                          ? k->points[i].time_s / kernel_time_s(kernel_form_of(k->like), &k->points[i].features, p)
                          : (double)NAN;
    return ERR_OK;
}

/* Band of the held-out ratios of a regime; without (may be NULL): families that do not count, and split skip. */
static struct fit_band band_of(const struct work *k, enum fit_regime regime, int skip, const bool *without)
{
    size_t n = 0;
    for (int s = 0; s < k->splits; s++) {
        if (s == skip) continue;
        for (size_t i = 0; i < k->n; i++) {
            if (isnan(k->split[s].ratio[i]) || fit_regime_of(&k->points[i].work) != regime) continue;
            if (without && without[k->points[i].family]) continue;
            k->room[n++] = k->split[s].ratio[i];
        }
    }
    if (!n) return (struct fit_band){0, (double)NAN, (double)NAN, (double)NAN};
    gsl_sort(k->room, 1, n);
    return (struct fit_band){n, gsl_stats_quantile_from_sorted_data(k->room, 1, n, 0.1),
                             gsl_stats_quantile_from_sorted_data(k->room, 1, n, 0.5),
                             gsl_stats_quantile_from_sorted_data(k->room, 1, n, 0.9)};
}

/* Part of a split's held-out rows inside the band of other families. */
static double coverage_of(const struct work *k, int s)
{
    size_t inside = 0, n = 0;
    for (int r = 0; r < FIT_REGIMES_N; r++) {
        const struct fit_band b = band_of(k, (enum fit_regime)r, s, k->split[s].out);
        if (!b.n) continue;
        for (size_t i = 0; i < k->n; i++) {
            const double x = k->split[s].ratio[i];
            if (isnan(x) || fit_regime_of(&k->points[i].work) != (enum fit_regime)r) continue;
            n++;
            inside += x >= b.p10 && x <= b.p90;
        }
    }
    return n ? (double)inside / (double)n : (double)NAN;
}

/* Median and largest error of all rows that any split left out. */
static void held_out_errors(const struct work *k, struct fit_class *out)
{
    size_t n = 0;
    for (int s = 0; s < k->splits; s++)
        for (size_t i = 0; i < k->n; i++)
            if (!isnan(k->split[s].ratio[i])) k->room[n++] = fabs(1 / k->split[s].ratio[i] - 1);
    gsl_sort(k->room, 1, n);
    out->held_out_median_frac = n ? gsl_stats_quantile_from_sorted_data(k->room, 1, n, 0.5) : (double)NAN;
    out->held_out_most_frac = n ? k->room[n - 1] : (double)NAN;
}

static enum err_code run_splits(struct arena *a, struct work *k, struct fit_class *out, struct err *e)
{
    const size_t splits = (size_t)k->splits;
    double *score = arena_array(a, 5 * splits, sizeof *score);
    k->split = arena_array(a, splits, sizeof *k->split);
    k->room = arena_array(a, splits * k->n, sizeof *k->room);
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    if (!score || !k->split || !k->room || !rng) {
        gsl_rng_free(rng);
        return err_nomem(e);
    }
    gsl_rng_set(rng, SEED);
    enum err_code code = ERR_OK;
    for (size_t s = 0; s < splits && code == ERR_OK; s++) {
        double v[4] = {0};
        k->split[s].out = arena_array(a, k->families, sizeof(bool));
        k->split[s].ratio = arena_array(a, k->n, sizeof(double));
        code = k->split[s].out && k->split[s].ratio ? run_split(k, &k->split[s], rng, v, e) : err_nomem(e);
        for (size_t j = 0; j < 4; j++) score[j * splits + s] = v[j];
    }
    gsl_rng_free(rng);
    TRY(code);
    for (int s = 0; s < k->splits; s++) score[4 * splits + (size_t)s] = coverage_of(k, s);
    for (int r = 0; r < FIT_REGIMES_N; r++) out->band[r] = band_of(k, (enum fit_regime)r, -1, NULL);
    held_out_errors(k, out);
    out->held_out = mean_of(score, splits);
    out->large = mean_of(score + splits, splits);
    out->held_out_baseline = mean_of(score + 2 * splits, splits);
    out->large_baseline = mean_of(score + 3 * splits, splits);
    out->coverage_frac = mean_of(score + 4 * splits, splits);
    return ERR_OK;
}

static void without_splits(struct fit_class *c)
{
    const struct fit_mean none = {(double)NAN, (double)NAN};
    c->held_out = c->held_out_baseline = c->large = c->large_baseline = c->coverage_frac = none;
    c->held_out_median_frac = c->held_out_most_frac = (double)NAN;
    for (int r = 0; r < FIT_REGIMES_N; r++) c->band[r] = (struct fit_band){0, (double)NAN, (double)NAN, (double)NAN};
}

enum err_code fit_class(struct arena *a, const struct hw *hw, const struct row *const *rows, size_t n, int splits,
                        const struct fit_watch *watch, struct fit_class *out, struct err *e)
{
    double deviation[KERNEL_PARAMS_MAX], unused;
    uint64_t *shape;
    struct work k = {.like = &rows[0]->kernel, .n = n, .splits = splits};
    struct fit_class c = {.name = rows[0]->class_name, .like = rows[0]->kernel, .rows_n = n};
    TRY(fit_points(a, hw, rows, n, &k.points, &k.families, e));
    TRY(shapes_of(a, rows, n, &shape, e));
    TRY(fit_count_shapes(a, rows, n, &c.shapes_n, e));
    k.shape = shape;
    k.some = arena_array(a, n, sizeof *k.some);
    k.at = arena_array(a, n, sizeof *k.at);
    if (!k.at || !k.some) return err_nomem(e);
    for (size_t i = 0; i < n; i++) k.at[i] = i;
    c.families_n = k.families;
    c.n_params = kernel_params_n(k.like);
    if (watch) k.watch = *watch;
    k.each = k.watch.rows / (STARTS + SPLIT_STARTS * (double)splits);
    k.watch.rows = STARTS * k.each;
    TRY(fit_params(k.like, k.points, k.at, n, STARTS, &k.watch, c.p, deviation, e));
    k.watch.before += k.watch.rows;
    TRY(fit_baseline(k.points, k.at, n, c.baseline, e));
    errors(&k, NULL, c.p, false, &c.mape_frac, &unused);
    errors(&k, NULL, c.baseline, true, &c.baseline_mape_frac, &unused);
    for (size_t i = 0; i < n; i++) c.large_n += k.points[i].work.bound_s > FIT_LARGE_S;
    for (size_t i = 0; i < c.n_params; i++) {
        const struct kernel_param *param = kernel_param(k.like, i);
        c.lo[i] = fmax(param->lo, c.p[i] * exp(-1.96 * deviation[i]));
        c.hi[i] = fmin(param->hi, c.p[i] * exp(1.96 * deviation[i]));
    }
    without_splits(&c);
    if (splits > 0 && k.families > 3) TRY(run_splits(a, &k, &c, e));
    *out = c;
    return ERR_OK;
}

static int by_class(const void *x, const void *y)
{
    const struct row *const *a = x, *const *b = y;
    const int c = strcmp((*a)->class_name, (*b)->class_name);
    if (c) return c;
    return *a < *b ? -1 : *a > *b; /* both in one array: the order read */
}

size_t fit_shapes_min(const struct kernel *like) { return like->host ? FIT_SHAPES_MIN_HOST : FIT_SHAPES_MIN; }

enum err_code fit_rows(struct arena *a, const struct hw *hw, const struct rows *rows, int splits,
                       void (*done)(void *closure, size_t n, size_t of), void *closure, struct fit_class **out,
                       size_t *out_n, struct err *e)
{
    const struct row **sorted = arena_array(a, rows->n ? rows->n : 1, sizeof *sorted);
    if (!sorted) return err_nomem(e);
    size_t classes = 0, found = 0, n = 0;
    for (size_t i = 0; i < rows->n; i++)
        if (!rows->v[i].uncalibrated) sorted[n++] = &rows->v[i];
    qsort(sorted, n, sizeof *sorted, by_class);
    for (size_t i = 0; i < n; i++) classes += i == 0 || strcmp(sorted[i]->class_name, sorted[i - 1]->class_name) != 0;
    struct fit_class *v = arena_array(a, classes ? classes : 1, sizeof *v);
    if (!v) return err_nomem(e);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && strcmp(sorted[to]->class_name, sorted[from]->class_name) == 0; to++) continue;
        size_t shapes;
        TRY(fit_count_shapes(a, sorted + from, to - from, &shapes, e));
        if (shapes >= fit_shapes_min(&sorted[from]->kernel))
            TRY(fit_class(a, hw, sorted + from, to - from, splits,
                          &(struct fit_watch){done, closure, (double)from, (double)(to - from), n}, &v[found++], e));
        if (done) done(closure, to, n);
    }
    *out = v;
    *out_n = found;
    return ERR_OK;
}
