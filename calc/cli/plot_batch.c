#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/units.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_kinds.h"
#include "calc/cli/plot_rows.h"

/* Beyond this ratio of the largest to the smallest value an axis is logarithmic. */
static const double log_ratio = 12;

struct series {
    const char *name;
    double *batch, *step_s, *rate_tok_per_s; /* [n], by batch */
    size_t n, n_points;                      /* rows, and those with a time or a rate */
    double last_fit, first_unfit;            /* batch, NAN when there is none */
    double need_bytes, have_bytes;           /* of the first that does not fit */
    size_t unfit_row;                        /* line of the strip, shared by those with the same region */
};

struct row {
    double batch;
    size_t index, series; /* in the CSV; in picture.series */
};

struct picture {
    struct plot_canvas *canvas;
    const struct plot_csv *csv;
    struct plot_rows naming;
    struct row *rows; /* without prefill, by batch */
    size_t n_rows;
    struct series series[PLOT_SERIES_MAX];
    size_t n_series, n_unfit, n_unfit_rows;
    struct plot_panel step, rate;
    struct units_scale step_scale;
    double x0, x1;
    struct plot_box strip; /* between the panels: who does not fit from where */
};

/* -- reading -- */

static enum err_code find_series(struct picture *p, size_t row, struct series **out, struct err *e)
{
    const char *name = "";
    TRY(plot_rows_name(p->canvas->arena, &p->naming, row, "batch", &name, e));
    size_t i = 0;
    while (i < p->n_series && strcmp(p->series[i].name, name) != 0) i++;
    if (i == PLOT_SERIES_MAX)
        return err_set(e, ERR_USAGE, "a batch plot has room for %d series, the rows have more: \"%s\" is one too many",
                       PLOT_SERIES_MAX, name);
    if (i == p->n_series)
        p->series[p->n_series++] = (struct series){.name = name, .last_fit = (double)NAN, .first_unfit = (double)NAN};
    *out = &p->series[i];
    return ERR_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->batch < y->batch || x->batch > y->batch) return x->batch < y->batch ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static enum err_code sort_rows(struct picture *p, struct err *e)
{
    const struct plot_csv *csv = p->csv;
    p->rows = arena_array(p->canvas->arena, csv->n_rows + 1, sizeof *p->rows);
    if (!p->rows) return err_nomem(e);
    for (size_t i = 0; i < csv->n_rows; i++) {
        const double batch = plot_csv_number(csv, i, "batch");
        if (!(batch > 0) || strcmp(plot_csv_text(csv, i, "phase"), "prefill") == 0) continue;
        struct series *s = NULL; /* the order of the legend is that of the rows, not of the batches */
        TRY(find_series(p, i, &s, e));
        p->rows[p->n_rows++] = (struct row){batch, i, (size_t)(s - p->series)};
        s->n++;
    }
    if (!p->n_rows) return err_set(e, ERR_INPUT, "batch plot: no row with a batch");
    qsort(p->rows, p->n_rows, sizeof *p->rows, compare_rows);
    return ERR_OK;
}

static enum err_code read_series(struct picture *p, struct err *e)
{
    for (size_t i = 0; i < p->n_series; i++) {
        struct series *s = &p->series[i];
        s->batch = arena_array(p->canvas->arena, 3 * s->n, sizeof *s->batch);
        if (!s->batch) return err_nomem(e);
        s->step_s = s->batch + s->n;
        s->rate_tok_per_s = s->step_s + s->n;
        s->n = 0;
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        const size_t row = p->rows[i].index;
        struct series *s = &p->series[p->rows[i].series];
        const double b = p->rows[i].batch, fits = plot_rows_fit(p->csv, row);
        s->batch[s->n] = b;
        s->step_s[s->n] = plot_csv_number(p->csv, row, "decode_step_s");
        s->rate_tok_per_s[s->n] = plot_csv_number(p->csv, row, "throughput_tok_per_s");
        if (s->step_s[s->n] > 0 || s->rate_tok_per_s[s->n] > 0) s->n_points++;
        s->n++;
        if (fits > 0) s->last_fit = b;
        if (fits > 0 || isnan(fits) || !isnan(s->first_unfit)) continue;
        s->first_unfit = b;
        s->need_bytes = plot_csv_number(p->csv, row, "memory_bytes");
        s->have_bytes = plot_csv_number(p->csv, row, "capacity_bytes");
        p->n_unfit++;
    }
    return ERR_OK;
}

/* Number the lines of the strip. */
static void group_unfit(struct picture *p)
{
    for (size_t i = 0; i < p->n_series; i++) {
        struct series *s = &p->series[i];
        if (isnan(s->first_unfit)) continue;
        s->unfit_row = p->n_unfit_rows;
        for (size_t j = 0; j < i; j++) {
            const struct series *o = &p->series[j];
            const bool never = isnan(o->last_fit) && isnan(s->last_fit);
            const bool same = !(o->last_fit < s->last_fit) && !(o->last_fit > s->last_fit) &&
                              !(o->first_unfit < s->first_unfit) && !(o->first_unfit > s->first_unfit) &&
                              isnan(o->last_fit) == isnan(s->last_fit);
            if (!isnan(o->first_unfit) && (never || same)) s->unfit_row = o->unfit_row;
        }
        if (s->unfit_row == p->n_unfit_rows) p->n_unfit_rows++;
    }
}

/* -- axes -- */

/* The range of an axis for positive values lo..hi: from 0, or whole decades around them. */
static void choose_values(struct plot_panel *f, double lo, double hi)
{
    const bool none = !(lo <= hi);
    if (none) lo = hi = 1;
    f->log_y = hi / lo > log_ratio;
    f->range.y0 = f->log_y ? lo / 1.6 : 0;
    f->range.y1 = f->log_y ? hi * 1.6 : hi * 1.12;
}

static void choose_range(struct picture *p)
{
    double b0 = HUGE_VAL, b1 = 0, s0 = HUGE_VAL, s1 = 0, r0 = HUGE_VAL, r1 = 0;
    for (size_t i = 0; i < p->n_series; i++)
        for (size_t j = 0; j < p->series[i].n; j++) {
            const struct series *s = &p->series[i];
            b0 = fmin(b0, s->batch[j]);
            b1 = fmax(b1, s->batch[j]);
            if (s->step_s[j] > 0) {
                s0 = fmin(s0, s->step_s[j]);
                s1 = fmax(s1, s->step_s[j]);
            }
            if (s->rate_tok_per_s[j] > 0) {
                r0 = fmin(r0, s->rate_tok_per_s[j]);
                r1 = fmax(r1, s->rate_tok_per_s[j]);
            }
        }
    const double edge = b1 > b0 ? exp2(fmax(0.25, 0.035 * log2(b1 / b0))) : 2;
    p->x0 = b0 / edge;
    p->x1 = b1 * edge;
    p->step_scale = units_scale_for(UNITS_SECONDS, (double)NAN, s1 > 0 ? s1 : 1);
    choose_values(&p->step, s0 / p->step_scale.divisor, s1 / p->step_scale.divisor);
    choose_values(&p->rate, r0, r1);
    p->step.range.x0 = p->rate.range.x0 = p->x0;
    p->step.range.x1 = p->rate.range.x1 = p->x1;
    p->step.log_x = p->rate.log_x = true;
}

/* Tics at the batches there are while they leave room for each other, at powers of two beyond that. */
static void set_tics(struct picture *p)
{
    struct plot_canvas *c = p->canvas;
    const double apart = c->dumb ? 6 : 42;
    double last = -HUGE_VAL, previous = 0;
    out_str(c->settings, "set xtics (");
    bool any = false, all = true;
    for (int pass = 0; pass < 2 && !any; pass++) {
        for (size_t i = 0; pass == 0 && i < p->n_rows; i++) {
            const double b = p->rows[i].batch;
            if (b > previous && i && plot_panel_x(&p->step, b) - plot_panel_x(&p->step, previous) < apart) all = false;
            previous = b;
        }
        for (size_t i = 0; i < p->n_rows; i++) {
            const double b = p->rows[i].batch, at = plot_panel_x(&p->step, b);
            const bool power = fabs(log2(b) - round(log2(b))) < 1e-9;
            if (at - last < apart || (!all && pass == 0 && !power)) continue;
            out_printf(c->settings, "%s%.9g", any ? ", " : "", b);
            last = at;
            any = true;
        }
    }
    out_str(c->settings, ")\n");
}

/* -- drawing -- */

static enum err_code write_series(struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    size_t n_drawn = 0;
    for (size_t i = 0; i < p->n_series; i++) {
        const struct series *s = &p->series[i];
        if (!s->n_points) continue;
        char *name = arena_printf(c->arena, "series%zu.tsv", ++n_drawn);
        if (!name) return err_nomem(e);
        struct out *o = NULL;
        TRY(plot_canvas_file(c, name, "batch\tdecode_step\tthroughput_tok_per_s\tmark\n", &o, e));
        double last = -HUGE_VAL; /* where there are many points, only some are marked */
        for (size_t j = 0; j < s->n; j++) {
            const double x = plot_panel_x(&p->step, s->batch[j]);
            const bool mark = x - last >= (c->dumb ? 3 : 14);
            if (mark) last = x;
            out_printf(o, "%.9g\t%.9g\t%.9g\t%d\n", s->batch[j],
                       s->step_s[j] > 0 ? s->step_s[j] / p->step_scale.divisor : (double)NAN,
                       s->rate_tok_per_s[j] > 0 ? s->rate_tok_per_s[j] : (double)NAN, mark);
        }
        out_printf(c->settings, "look_%zu = %zu\n", n_drawn, i + 1);
    }
    if (!n_drawn) { /* gnuplot enters an empty iteration once */
        struct out *o = NULL;
        TRY(plot_canvas_file(c, "series1.tsv", "batch\tdecode_step\tthroughput_tok_per_s\tmark\nNaN\tNaN\tNaN\t0\n", &o,
                             e));
        out_str(c->settings, "look_1 = 1\n");
    }
    plot_canvas_set(c, "series_n", n_drawn ? (double)n_drawn : 1);
    return ERR_OK;
}

/* Where the region of a series that does not fit begins: half-way, in log batch, from the last that does. */
static double unfit_from(const struct picture *p, const struct series *s)
{
    if (isnan(s->last_fit)) return p->x0;
    return s->last_fit < s->first_unfit ? sqrt(s->last_fit * s->first_unfit) : s->first_unfit;
}

/* One bar of the strip: the series whose region begins where that of `first` does. */
static enum err_code draw_unfit_bar(struct picture *p, size_t first, double y, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const struct series *s = &p->series[first];
    const double x = plot_panel_x(&p->step, unfit_from(p, s)), half = c->dumb ? 0.5 : 7, pad = c->dumb ? 1 : 6;
    char need[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX], cut[PLOT_TEXT_MAX];
    size_t marks = 0;
    for (size_t i = first; i < p->n_series; i++) marks += p->series[i].unfit_row == s->unfit_row;
    char *text = isnan(s->last_fit) ? arena_printf(c->arena, "does not fit at any batch shown")
                                    : arena_printf(c->arena, "does not fit from batch %.9g", s->first_unfit);
    if (text && marks == 1 && s->need_bytes > s->have_bytes)
        text = arena_printf(c->arena, "%s (%s of %s)", text, units_format_bytes(need, s->need_bytes),
                            units_format_bytes(have, s->have_bytes));
    if (!text) return err_nomem(e);
    const double step = p->n_series > 1 ? (c->dumb ? 2 : 16) : 0, room = (double)marks * step;
    const bool inside = p->strip.x1 - x > plot_text_wide(c, text, PLOT_SMALL) + room + 4 * pad;
    plot_canvas_box(c, &(struct plot_box){x, y - half, p->strip.x1, y + half}, PLOT_UNFIT);
    if (inside)
        plot_canvas_text(c, (x + room + p->strip.x1) / 2, y, PLOT_SMALL, PLOT_CENTER, text);
    else
        plot_canvas_text(c, x - pad - room, y, PLOT_SMALL, PLOT_RIGHT,
                         plot_text_fit(c, cut, text, PLOT_SMALL, x - pad - room));
    double at = inside ? x + 0.75 * step : x + 0.4 * step - room;
    for (size_t i = first; step > 0 && i < p->n_series; i++)
        if (p->series[i].unfit_row == s->unfit_row) {
            plot_canvas_mark(c, at, y, plot_series_point(c, i + 1), plot_series_rgb(i + 1));
            at += step;
        }
    return ERR_OK;
}

static enum err_code draw_unfit(struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    struct out *o = NULL;
    TRY(plot_canvas_file(c, "unfit.tsv", "from_batch\tto_batch\tlook\n", &o, e));
    /* regions lie over each other: all together are no darker than 0.4 */
    plot_canvas_set(c, "unfit_shade", fmin(0.16, 1 - pow(0.6, 1 / fmax(1, (double)p->n_unfit))));
    size_t drawn = 0;
    for (size_t i = 0; i < p->n_series; i++) {
        if (isnan(p->series[i].first_unfit)) continue;
        out_printf(o, "%.9g\t%.9g\t%zu\n", unfit_from(p, &p->series[i]), p->x1, i + 1);
        if (p->series[i].unfit_row < drawn) continue;
        TRY(draw_unfit_bar(p, i, p->strip.y1 - (0.5 + (double)drawn) * c->row, e));
        drawn++;
    }
    return ERR_OK;
}

static enum err_code draw_captions(struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const char *fidelity = plot_csv_text(p->csv, p->rows[0].index, "fidelity");
    const bool said = *fidelity && plot_rows_alike(p->csv, "fidelity");
    char *step = arena_printf(c->arena, said ? "decode step time, %s (%s)" : "decode step time, %s",
                              p->step_scale.label, fidelity);
    char *rate = arena_printf(c->arena, said ? "aggregate throughput, tokens/s (%s)" : "aggregate throughput, tokens/s",
                              fidelity);
    if (!step || !rate) return err_nomem(e);
    const double left = c->dumb ? 0 : 14, up = c->dumb ? 1 : 13;
    char cut[PLOT_TEXT_MAX];
    plot_canvas_text(c, left, p->step.place.y1 + up, PLOT_NORMAL, PLOT_LEFT,
                     plot_text_fit(c, cut, step, PLOT_NORMAL, c->width - 2 * left));
    plot_canvas_text(c, left, p->rate.place.y1 + up, PLOT_NORMAL, PLOT_LEFT,
                     plot_text_fit(c, cut, rate, PLOT_NORMAL, c->width - 2 * left));
    plot_canvas_text(c, (p->rate.place.x0 + p->rate.place.x1) / 2, c->dumb ? 0 : 14, PLOT_NORMAL, PLOT_CENTER,
                     "batch (sequences)");
    return ERR_OK;
}

static bool nothing_drawn(const struct picture *p)
{
    for (size_t i = 0; i < p->n_series; i++)
        if (p->series[i].n_points) return false;
    return true;
}

static enum err_code lay_out(const struct plot_request *r, struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const char *shared = r->subtitle;
    if (!shared) TRY(plot_rows_shared(c->arena, &p->naming, &shared, e));
    double y = plot_canvas_head(c, r->title, shared);
    struct plot_entry entries[PLOT_SERIES_MAX];
    for (size_t i = 0; i < p->n_series; i++)
        entries[i] = (struct plot_entry){.text = p->series[i].name,
                                         .stroke = (int)i + 1,
                                         .point = plot_series_point(c, i + 1),
                                         .rgb = plot_series_rgb(i + 1)};
    if (p->n_series > 1) y = plot_canvas_legend(c, entries, p->n_series, y);
    const double caption = c->dumb ? 2 : 28, bottom = c->dumb ? 2 : 46, left = c->dumb ? 8 : 78;
    const double right = c->width - (c->dumb ? 1 : 20);
    const double strip = (double)p->n_unfit_rows * c->row;
    const double top = y - (c->dumb ? 1 : 18), high = (top - bottom - caption - strip) / 2;
    p->step.place = (struct plot_box){left, top - high, right, top};
    p->strip = (struct plot_box){left, top - high - strip, right, top - high};
    p->rate.place = (struct plot_box){left, bottom, right, bottom + high};
    if (!c->dumb) { /* the strip in the middle of the gap rather than on the axis */
        p->strip.y0 -= 6;
        p->strip.y1 -= 6;
    } else {
        p->step.place.y0 = ceil(p->step.place.y0);
        p->rate.place.y1 = floor(p->rate.place.y1);
        p->strip.y1 = p->step.place.y0 - 0.5;
    }
    choose_range(p);
    plot_canvas_set(c, "empty", nothing_drawn(p) ? 1 : 0);
    plot_canvas_panel(c, "step", &p->step);
    plot_canvas_panel(c, "rate", &p->rate);
    return ERR_OK;
}

enum err_code plot_batch_build(const struct plot_request *r, struct plot_canvas *c, struct err *e)
{
    struct plot_csv csv;
    struct picture *p = arena_alloc(c->arena, sizeof *p);
    if (!p) return err_nomem(e);
    p->canvas = c;
    p->csv = &csv;
    TRY(plot_csv_parse(c->arena, "batch plot", r->csv, &csv, e));
    if (plot_csv_column(&csv, "batch") == csv.n_columns)
        return err_set(e, ERR_INPUT, "batch plot: no column \"batch\"");
    p->naming = plot_rows_look(&csv);
    TRY(sort_rows(p, e));
    TRY(read_series(p, e));
    group_unfit(p);
    TRY(lay_out(r, p, e));
    set_tics(p);
    TRY(write_series(p, e));
    TRY(draw_unfit(p, e));
    return draw_captions(p, e);
}
