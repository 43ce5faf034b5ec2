#include "calc/fit/validate.h"

#include <gsl/gsl_sort_double.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum err_code validate_rows(struct arena *a, const struct hw *hw, const struct rows *rows, const struct efficiency *f,
                            struct validate_row **out, struct err *e)
{
    struct validate_row *v = arena_array(a, rows->n, sizeof *v);
    double *room = arena_array(a, KERNEL_FEATURES_MAX, sizeof *room);
    if (!v || !room) return err_nomem(e);
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->v[i];
        struct kernel_work w;
        struct kernel_features features;
        if (kernel_work(&r->kernel, hw, &w, e) != ERR_OK)
            return e ? err_prepend(e, "%s: line %zu: ", r->file, r->line) : ERR_INPUT;
        const enum fit_regime regime = fit_regime_of(&w);
        const double nan = (double)NAN;
        v[i] = (struct validate_row){r,
                                     kernel_kind_name(r->kernel.kind),
                                     fit_regime_name(regime),
                                     *r->framework ? r->framework : "-",
                                     r->class_name,
                                     r->file,
                                     (int64_t)r->line,
                                     w.bound_s,
                                     w.credited_bound_s,
                                     nan,
                                     nan,
                                     nan,
                                     nan,
                                     r->time_s};
        if (r->unbounded) {
            v[i].bound_s = v[i].credited_bound_s = nan;
            continue;
        }
        const struct fit_class *c = f ? efficiency_find(f, r->class_name) : NULL;
        if (!c) continue;
        TRY(kernel_prepare(&r->kernel, hw, room, &features, e));
        v[i].calibrated_s = kernel_time_s(kernel_form_of(&r->kernel), &features, c->p);
        v[i].baseline_s = kernel_baseline_s(&w, c->baseline);
        const struct fit_band *band = fit_band_of(c, regime);
        if (!band->n) continue;
        v[i].p10_s = v[i].calibrated_s * band->p10;
        v[i].p90_s = v[i].calibrated_s * band->p90;
    }
    *out = v;
    return ERR_OK;
}

/* -- doubts -- */

#define DOUBT_START_S 10e-6 /* more than a kernel takes to start */
enum { DOUBT_PART = 10, DOUBT_TIMES = 100 };

enum err_code validate_doubt(struct arena *a, const struct validate_row *rows, size_t n, const char *device,
                             size_t *below, const char **out, struct err *e)
{
    double *times = arena_array(a, n ? n : 1, sizeof *times);
    if (!times) return err_nomem(e);
    *out = NULL;
    *below = 0;
    size_t bounded = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(rows[i].bound_s)) continue;
        *below += rows[i].measured_s < rows[i].credited_bound_s;
        times[bounded++] = rows[i].measured_s / (rows[i].bound_s + DOUBT_START_S);
    }
    if (*below > 0 && *below * DOUBT_PART >= n) {
        *out = arena_printf(a,
                            "%zu of %zu rows are faster than %s can be: is time_s in seconds, latency_us in "
                            "microseconds, the device the right one?",
                            *below, n, device);
        return *out ? ERR_OK : err_nomem(e);
    }
    gsl_sort(times, 1, bounded);
    const double median = bounded ? gsl_stats_quantile_from_sorted_data(times, 1, bounded, 0.5) : 0;
    if (!(median > DOUBT_TIMES)) return ERR_OK;
    *out = arena_printf(a,
                        "Half of %zu rows take over %.3g times what bounds %s and a start of 10 us: is time_s in "
                        "seconds, latency_us in microseconds, the device the right one?",
                        n, median, device);
    return *out ? ERR_OK : err_nomem(e);
}

/* -- groups -- */

struct keyed {
    const char *group;
    const struct validate_row *row;
};

static int by_group(const void *x, const void *y)
{
    const struct keyed *a = x, *b = y;
    const int c = strcmp(a->group, b->group);
    if (c) return c;
    return a->row < b->row ? -1 : a->row > b->row;
}

static const char *part_of(const struct validate_row *r, const char *word, size_t len)
{
    const struct {
        const char *name, *text;
    } parts[] = {{"kind", r->kind}, {"regime", r->regime}, {"framework", r->framework}, {"class", r->class_name}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strlen(parts[i].name) == len && strncmp(parts[i].name, word, len) == 0) return parts[i].text;
    return NULL;
}

static enum err_code name_group(struct arena *a, const struct validate_row *r, const char *by, const char **out,
                                struct err *e)
{
    const char *name = "";
    for (const char *p = by; *p;) {
        const size_t len = strcspn(p, ",");
        const char *part = part_of(r, p, len);
        if (!part) return err_set(e, ERR_USAGE, "--by: wanted any of kind, regime, framework, class joined by ','");
        name = *name ? arena_printf(a, "%s, %s", name, part) : part;
        if (!name) return err_nomem(e);
        p += len + (p[len] == ',');
    }
    *out = name;
    return ERR_OK;
}

static struct validate_group summarise(const struct keyed *k, size_t n, const struct hw *hw, const char *name,
                                       double *errors)
{
    struct validate_group g = {.group = name, .rows = (int64_t)n};
    double logs = 0, sum = 0, baseline = 0;
    size_t m = 0, bounded = 0, inside = 0, banded = 0;
    for (size_t i = 0; i < n; i++) {
        const struct validate_row *r = k[i].row;
        struct kernel_work w = {.weak = false};
        (void)kernel_work(&r->row->kernel, hw, &w, NULL);
        g.weak += w.weak;
        g.below_bound += r->measured_s < r->credited_bound_s;
        g.below_bound_fitted += r->calibrated_s < r->credited_bound_s;
        if (!isnan(r->bound_s)) {
            logs += log(r->measured_s / r->bound_s);
            bounded++;
        }
        if (isnan(r->calibrated_s)) continue;
        errors[m] = fabs(r->calibrated_s - r->measured_s) / r->measured_s;
        sum += errors[m++];
        baseline += fabs(r->baseline_s - r->measured_s) / r->measured_s;
        if (isnan(r->p10_s)) continue;
        banded++;
        inside += r->measured_s >= r->p10_s && r->measured_s <= r->p90_s;
    }
    const double nan = (double)NAN;
    gsl_sort(errors, 1, m);
    g.calibrated = (int64_t)m;
    g.bound_ratio = bounded ? exp(logs / (double)bounded) : nan;
    g.mape_frac = m ? sum / (double)m : nan;
    g.median_frac = m ? gsl_stats_quantile_from_sorted_data(errors, 1, m, 0.5) : nan;
    g.p90_frac = m ? gsl_stats_quantile_from_sorted_data(errors, 1, m, 0.9) : nan;
    g.baseline_mape_frac = m ? baseline / (double)m : nan;
    g.coverage_frac = banded ? (double)inside / (double)banded : nan;
    return g;
}

enum err_code validate_groups(struct arena *a, const struct validate_row *rows, size_t n, const struct hw *hw,
                              const char *by, struct validate_group **out, size_t *out_n, struct err *e)
{
    struct keyed *k = arena_array(a, n ? n : 1, sizeof *k);
    double *errors = arena_array(a, n ? n : 1, sizeof *errors);
    size_t groups = 0;
    if (!k || !errors) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        k[i].row = &rows[i];
        TRY(name_group(a, &rows[i], by ? by : "", &k[i].group, e));
    }
    qsort(k, n, sizeof *k, by_group);
    for (size_t i = 0; i < n; i++) groups += i == 0 || strcmp(k[i].group, k[i - 1].group) != 0;
    struct validate_group *v = arena_array(a, groups + 1, sizeof *v);
    if (!v) return err_nomem(e);
    size_t at = 0;
    for (size_t from = 0, to; from < n && by && *by; from = to) {
        for (to = from + 1; to < n && strcmp(k[to].group, k[from].group) == 0; to++) continue;
        v[at++] = summarise(k + from, to - from, hw, k[from].group, errors);
    }
    v[at++] = summarise(k, n, hw, "all", errors);
    *out = v;
    *out_n = at;
    return ERR_OK;
}
