#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/units.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_kinds.h"
#include "calc/cli/plot_rows.h"
#include "calc/cli/plot_sweep.h"

/* Beyond this ratio of the largest to the smallest value an axis is logarithmic. */
static const double log_ratio = 12;

struct picture {
    struct plot_canvas *canvas;
    struct plot_sweep sweep;
    struct plot_panel step, rate;
    struct units_scale step_scale;
    double x0, x1;
    struct plot_box strip; /* between the panels: who does not fit from where */
};

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
    for (size_t i = 0; i < p->sweep.n_series; i++)
        for (size_t j = 0; j < p->sweep.series[i].n; j++) {
            const struct plot_series *s = &p->sweep.series[i];
            b0 = fmin(b0, s->at[j]);
            b1 = fmax(b1, s->at[j]);
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

/* Tics at the values there are while they leave room for each other, at powers of two beyond that. */
static void set_tics(struct picture *p)
{
    struct plot_canvas *c = p->canvas;
    char widest[UNITS_TEXT_MAX];
    (void)snprintf(widest, sizeof widest, "%.9g", p->sweep.at[p->sweep.n_rows - 1]);
    const double apart = fmax(c->dumb ? 6 : 42, plot_text_wide(c, widest, PLOT_NORMAL) + (c->dumb ? 1 : 12));
    double last = -HUGE_VAL, previous = 0;
    out_str(c->settings, "set xtics (");
    bool any = false, all = true;
    for (int pass = 0; pass < 2 && !any; pass++) {
        for (size_t i = 0; pass == 0 && i < p->sweep.n_rows; i++) {
            const double b = p->sweep.at[i];
            if (b > previous && i && plot_panel_x(&p->step, b) - plot_panel_x(&p->step, previous) < apart) all = false;
            previous = b;
        }
        for (size_t i = 0; i < p->sweep.n_rows; i++) {
            const double b = p->sweep.at[i], at = plot_panel_x(&p->step, b);
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
    for (size_t i = 0; i < p->sweep.n_series; i++) {
        const struct plot_series *s = &p->sweep.series[i];
        if (!s->n_points) continue;
        char *name = arena_printf(c->arena, "series%zu.tsv", ++n_drawn);
        if (!name) return err_nomem(e);
        struct out *o = NULL;
        TRY(plot_canvas_file(c, name, "at\tdecode_step\tthroughput_tok_per_s\tmark\n", &o, e));
        double last = -HUGE_VAL; /* where there are many points, only some are marked */
        for (size_t j = 0; j < s->n; j++) {
            const double x = plot_panel_x(&p->step, s->at[j]);
            const bool mark = x - last >= (c->dumb ? 3 : 14);
            if (mark) last = x;
            out_printf(o, "%.9g\t%.9g\t%.9g\t%d\n", s->at[j],
                       s->step_s[j] > 0 ? s->step_s[j] / p->step_scale.divisor : (double)NAN,
                       s->rate_tok_per_s[j] > 0 ? s->rate_tok_per_s[j] : (double)NAN, mark);
        }
        out_printf(c->settings, "look_%zu = %zu\n", n_drawn, i + 1);
    }
    if (!n_drawn) { /* gnuplot enters an empty iteration once */
        struct out *o = NULL;
        TRY(plot_canvas_file(c, "series1.tsv", "at\tdecode_step\tthroughput_tok_per_s\tmark\nNaN\tNaN\tNaN\t0\n", &o,
                             e));
        out_str(c->settings, "look_1 = 1\n");
    }
    plot_canvas_set(c, "series_n", n_drawn ? (double)n_drawn : 1);
    return ERR_OK;
}

static bool nothing_drawn(const struct picture *p)
{
    for (size_t i = 0; i < p->sweep.n_series; i++)
        if (p->sweep.series[i].n_points) return false;
    return true;
}

/* Where the region of a series that does not fit begins: half-way, in its logarithm, from the last that does. */
static double unfit_from(const struct picture *p, const struct plot_series *s)
{
    if (isnan(s->last_fit)) return p->x0;
    return s->last_fit < s->first_unfit ? sqrt(s->last_fit * s->first_unfit) : s->first_unfit;
}

/* One bar of the strip: the series whose region begins where that of `first` does. */
static enum err_code draw_unfit_bar(struct picture *p, size_t first, double y, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const struct plot_series *s = &p->sweep.series[first];
    const double x = plot_panel_x(&p->step, unfit_from(p, s)), half = c->dumb ? 0.5 : 7, pad = c->dumb ? 1 : 6;
    char need[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX], cut[PLOT_TEXT_MAX];
    size_t marks = 0;
    for (size_t i = first; i < p->sweep.n_series; i++) marks += p->sweep.series[i].unfit_region == s->unfit_region;
    const double step = p->sweep.n_series > 1 ? (c->dumb ? 2 : 16) : 0, room = (double)marks * step;
    const double within = p->strip.x1 - x - room - 4 * pad, beside = x - pad - room;
    char *text = isnan(s->last_fit)
                     ? arena_printf(c->arena, "does not fit at any %s shown", p->sweep.x_key)
                     : arena_printf(c->arena, "does not fit from %s %.9g", p->sweep.x_key, s->first_unfit);
    if (text && marks == 1 && s->need_bytes > s->have_bytes) {
        char *full = arena_printf(c->arena, "%s (%s of %s)", text, units_format_bytes(need, s->need_bytes),
                                  units_format_bytes(have, s->have_bytes));
        if (!full || plot_text_wide(c, full, PLOT_SMALL) <= fmax(within, beside)) text = full;
    }
    if (!text) return err_nomem(e);
    const bool inside = plot_text_wide(c, text, PLOT_SMALL) < within;
    plot_canvas_box(c, &(struct plot_box){x, y - half, p->strip.x1, y + half}, PLOT_UNFIT);
    if (inside)
        plot_canvas_text(c, (x + room + p->strip.x1) / 2, y, PLOT_SMALL, PLOT_CENTER, text);
    else
        plot_canvas_text(c, beside, y, PLOT_SMALL, PLOT_RIGHT, plot_text_fit(c, cut, text, PLOT_SMALL, beside));
    double at = inside ? x + 0.75 * step : x + 0.4 * step - room;
    for (size_t i = first; step > 0 && i < p->sweep.n_series; i++)
        if (p->sweep.series[i].unfit_region == s->unfit_region) {
            plot_canvas_mark(c, at, y, plot_series_point(c, i + 1), plot_series_rgb(i + 1));
            at += step;
        }
    return ERR_OK;
}

static enum err_code draw_unfit(struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    struct out *o = NULL;
    TRY(plot_canvas_file(c, "unfit.tsv", "from\tto\tlook\n", &o, e));
    /* regions lie over each other: all together are no darker than 0.4 */
    plot_canvas_set(c, "unfit_shade", fmin(0.16, 1 - pow(0.6, 1 / fmax(1, (double)p->sweep.n_unfit))));
    size_t drawn = 0;
    for (size_t i = 0; i < p->sweep.n_series; i++) {
        if (isnan(p->sweep.series[i].first_unfit)) continue;
        /* what never fits has no points to shade, and those of others do fit */
        if (!isnan(p->sweep.series[i].last_fit) || nothing_drawn(p))
            out_printf(o, "%.9g\t%.9g\t%zu\n", unfit_from(p, &p->sweep.series[i]), p->x1, i + 1);
        if (p->sweep.series[i].unfit_region < drawn) continue;
        TRY(draw_unfit_bar(p, i, p->strip.y1 - (0.5 + (double)drawn) * c->row, e));
        drawn++;
    }
    return ERR_OK;
}

static enum err_code draw_captions(struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const char *fidelity = plot_csv_text(p->sweep.csv, p->sweep.series[0].first_row, "fidelity");
    const bool said = *fidelity && plot_rows_alike(p->sweep.csv, "fidelity");
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
                     strcmp(p->sweep.x_key, "context") == 0 ? "context (tokens)"
                     : plot_rows_any_copies(p->sweep.csv)   ? "batch (sequences per copy)"
                                                            : "batch (sequences)");
    return ERR_OK;
}

static enum err_code lay_out(const struct plot_request *r, struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const char *shared = r->subtitle;
    if (!shared) TRY(plot_rows_shared(c->arena, &p->sweep.naming, &shared, e));
    double y = plot_canvas_head(c, r->title, shared);
    struct plot_entry entries[PLOT_SERIES_MAX];
    for (size_t i = 0; i < p->sweep.n_series; i++)
        entries[i] = (struct plot_entry){.text = p->sweep.series[i].name,
                                         .stroke = (int)i + 1,
                                         .point = plot_series_point(c, i + 1),
                                         .rgb = plot_series_rgb(i + 1)};
    if (p->sweep.n_series > 1) y = plot_canvas_legend(c, entries, p->sweep.n_series, y);
    const double caption = c->dumb ? 2 : 28, bottom = c->dumb ? 2 : 46, left = c->dumb ? 8 : 78;
    const double right = c->width - (c->dumb ? 1 : 20);
    const double strip = (double)p->sweep.n_unfit_regions * c->row;
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
    TRY(plot_csv_parse(c->arena, "batch plot", r->csv, &csv, e));
    TRY(plot_sweep_read(c->arena, &csv, &p->sweep, e));
    TRY(lay_out(r, p, e));
    set_tics(p);
    TRY(write_series(p, e));
    TRY(draw_unfit(p, e));
    return draw_captions(p, e);
}
