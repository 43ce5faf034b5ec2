#include "calc/cli/simulate_charts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/units.h"

/* x shared out over the bins that start_s .. end_s covers. */
static void spill(double bin[SIMULATE_BINS], double width_s, double start_s, double end_s, double x)
{
    for (size_t i = (size_t)fmin(start_s / width_s, SIMULATE_BINS - 1); i < SIMULATE_BINS; i++) {
        const double from_s = fmax(start_s, (double)i * width_s), to_s = fmin(end_s, (double)(i + 1) * width_s);
        if (!(to_s > from_s) && (double)i * width_s >= end_s) break;
        bin[i] += x * fmax(to_s - from_s, 0) / width_s;
    }
}

void simulate_bins_of(const struct simulate_step *step, size_t n, const struct simulate_result *r, double blocks,
                      struct simulate_bins *out)
{
    const double width_s = r->span_s / SIMULATE_BINS;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < SIMULATE_BINS; i++) out->time_s[i] = ((double)i + .5) * width_s;
    for (size_t i = 0; i < n; i++) {
        const struct simulate_step *x = &step[i];
        spill(out->batch, width_s, x->start_s, x->end_s, (double)x->running);
        spill(out->blocks_percent, width_s, x->start_s, x->end_s, 100 * (double)x->blocks / blocks);
    }
    for (size_t i = 0; i < r->n; i++) {
        const double came_s = r->record[i].arrival_s, wait_s = simulate_wait_s(&r->record[i]);
        double *bin = &out->wait_s[(size_t)fmin(fmax(came_s / width_s, 0), SIMULATE_BINS - 1)];
        if (!isnan(wait_s)) *bin = fmax(*bin, wait_s); /* NAN: not begun */
    }
}

static struct chart empty(const char *title, const char *x_title, const char *y_title)
{
    const double none = (double)NAN;
    return (struct chart){.title = title,
                          .x_title = x_title,
                          .y_title = y_title,
                          .n = 1,
                          .x_limit = none,
                          .x_mark = none,
                          .y_mark = none,
                          .y_most = none};
}

enum err_code simulate_time_charts(struct arena *a, const struct simulate_bins *b, struct chart out[3], struct err *e)
{
    static const char *const TITLE[] = {"sequences in the batch", "longest wait of those who came", "cache in use"},
                             *const UNIT[] = {"sequences, all copies", NULL, "% of the blocks"};
    double most_s = 0, *wait = arena_array(a, SIMULATE_BINS, sizeof *wait);
    if (!wait) return err_nomem(e);
    for (size_t i = 0; i < SIMULATE_BINS; i++) most_s = fmax(most_s, b->wait_s[i]);
    const struct units_scale scale = units_scale_for(UNITS_SECONDS, (double)NAN, most_s > 0 ? most_s : 1);
    for (size_t i = 0; i < SIMULATE_BINS; i++) wait[i] = b->wait_s[i] / scale.divisor;
    const double *const y[] = {b->batch, wait, b->blocks_percent};
    const char *unit = arena_printf(a, "%s until begun", scale.label);
    if (!unit) return err_nomem(e);
    for (size_t k = 0; k < 3; k++) {
        out[k] = empty(TITLE[k], "time, s", UNIT[k] ? UNIT[k] : unit);
        out[k].series[0] = (struct chart_series){TITLE[k], b->time_s, y[k], NULL, SIMULATE_BINS};
    }
    return ERR_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The part of n sorted times that are at most so long, at so many of them as can be told apart; from 0 on. */
static enum err_code parts(struct arena *a, const double *sorted, size_t n, struct chart_series *out, struct err *e)
{
    enum { POINTS = 300 };
    const size_t points = n < POINTS ? n : POINTS;
    double *x = arena_array(a, 2 * (points + 1), sizeof *x), *y = x ? x + points + 1 : NULL;
    if (!x) return err_nomem(e);
    for (size_t i = 0; i <= points; i++) {
        const size_t at = i * n / points;     /* so many are at most x */
        x[i] = 1e3 * sorted[at ? at - 1 : 0]; /* not a unit */
        y[i] = 100 * (double)at / (double)n;
    }
    out->x = x;
    out->y = y;
    out->n = points + 1;
    return ERR_OK;
}

enum err_code simulate_part_charts(struct arena *a, const struct simulate_result *r, const double limit_s[2],
                                   const double frac[2], struct chart out[2], struct err *e)
{
    static double (*const VALUE[])(const struct simulate_record *) = {simulate_ttft_s, simulate_tpot_s};
    static const char *const TITLE[] = {"time to first token", "time per output token"}, *const NAME[] = {"TTFT, ms",
                                                                                                          "TPOT, ms"};
    double *v = arena_array(a, r->n + 1, sizeof *v);
    if (!v) return err_nomem(e);
    for (size_t k = 0; k < 2; k++) {
        size_t n = 0;
        out[k] = empty(TITLE[k], NAME[k], "% of requests within");
        out[k].log_x = true;
        out[k].y_most = 100;
        out[k].x_limit = 1e3 * limit_s[k]; /* not a unit */
        if (!isnan(limit_s[k])) {
            out[k].y_mark = 100 * frac[k];
            out[k].y_mark_name = "so many are promised";
        }
        for (size_t i = 0; i < r->n; i++) {
            v[n] = VALUE[k](&r->record[i]);
            if (!isnan(v[n])) n++;
        }
        if (n == 0 && k == 0) return err_set(e, ERR_NO, "no request was answered: nothing to draw");
        out[k].series[0].name = "requests";
        if (n == 0) continue; /* answers of one token have no TPOT */
        qsort(v, n, sizeof *v, by_value);
        TRY(parts(a, v, n, &out[k].series[0], e));
    }
    return ERR_OK;
}
