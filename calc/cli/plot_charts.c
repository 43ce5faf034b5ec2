#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/chart.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_kinds.h"

enum { POINTS_MOST = 400 }; /* that markers are readable with */

struct charts {
    struct plot_canvas *canvas;
    struct plot_csv points, charts;
    const char *names[CHART_SERIES_MAX];
    size_t n;
};

static size_t series_of(struct charts *s, const char *name)
{
    size_t i = 0;
    while (i < s->n && strcmp(s->names[i], name) != 0) i++;
    if (i == s->n && i < CHART_SERIES_MAX) s->names[s->n++] = name;
    return i;
}

/* A file for each series of a chart; one without a point has a gap. */
static enum err_code write_points(struct charts *s, size_t chart, struct err *e)
{
    struct out *file[CHART_SERIES_MAX];
    for (size_t i = 0; i < s->n; i++) {
        const char *name = arena_printf(s->canvas->arena, "chart%zu_%zu.tsv", chart + 1, i + 1);
        if (!name) return err_nomem(e);
        TRY(plot_canvas_file(s->canvas, name, "x\ty\tkept\n", &file[i], e));
        out_str(file[i], "NaN\tNaN\t0\n");
    }
    for (size_t row = 0; row < s->points.n_rows; row++) {
        const size_t i = series_of(s, plot_csv_text(&s->points, row, "series"));
        const double x = plot_csv_number(&s->points, row, "x"), y = plot_csv_number(&s->points, row, "y");
        if (plot_csv_number(&s->points, row, "chart") != (double)(chart + 1) || i >= s->n) continue;
        if (isnan(x) || isnan(y))
            out_str(file[i], "\n"); /* a gap */
        else
            out_printf(file[i], "%.9g\t%.9g\t%d\n", x, y, plot_csv_number(&s->points, row, "kept") > 0);
    }
    return ERR_OK;
}

static void write_marks(struct charts *s, size_t row, const struct plot_panel *p)
{
    struct plot_canvas *c = s->canvas;
    const double x = plot_csv_number(&s->charts, row, "x_mark"), y = plot_csv_number(&s->charts, row, "y_mark"),
                 limit = plot_csv_number(&s->charts, row, "x_limit"), lift = c->dumb ? 1 : 12;
    if (limit > 0)
        plot_canvas_text(c, plot_panel_x(p, limit), p->place.y1 + (c->dumb ? 0 : 8), PLOT_SMALL, PLOT_CENTER,
                         "promised");
    if (x > 0) {
        const double at = plot_panel_x(p, x);
        plot_canvas_stroke(c, at, p->place.y0, at, p->place.y1, PLOT_STROKE_CAPACITY);
        plot_canvas_text(c, at, p->place.y1 + (c->dumb ? 0 : 8), PLOT_SMALL, PLOT_CENTER,
                         plot_csv_text(&s->charts, row, "x_mark_name"));
    }
    if (y > 0) {
        const double at = plot_panel_y(p, y);
        plot_canvas_stroke(c, p->place.x0, at, p->place.x1, at, PLOT_STROKE_CAPACITY);
        plot_canvas_text(c, p->place.x1 - 4, at - lift, PLOT_SMALL, PLOT_RIGHT,
                         plot_csv_text(&s->charts, row, "y_mark_name"));
    }
}

/* Tics of a logarithmic axis, which gnuplot would name by whole decades; none: its own. */
static void write_tics(struct charts *s, size_t row, const struct plot_panel *p)
{
    double tick[CHART_TICKS_MAX];
    const size_t n = p->log_x ? chart_ticks(p->range.x0, p->range.x1, 5, true, tick) : 0;
    out_printf(s->canvas->settings, "tics%zu = '", row + 1);
    for (size_t i = 0; i < n; i++) out_printf(s->canvas->settings, "%s%.9g", i ? "," : "", tick[i]);
    out_str(s->canvas->settings, "'\n");
}

static void lay_out(struct charts *s, size_t row, double top)
{
    struct plot_canvas *c = s->canvas;
    char prefix[32], fit[PLOT_TEXT_MAX];
    const double each = floor((c->width - (c->dumb ? 0 : 10)) / (double)s->charts.n_rows);
    const double left = (double)row * each;
    struct plot_panel p = {.log_x = plot_csv_number(&s->charts, row, "log_x") > 0};
    p.range = (struct plot_box){plot_csv_number(&s->charts, row, "x0"), plot_csv_number(&s->charts, row, "y0"),
                                plot_csv_number(&s->charts, row, "x1"), plot_csv_number(&s->charts, row, "y1")};
    p.place = c->dumb ? (struct plot_box){left + 7, 2, left + each - 2, floor(top - 3)}
                      : (struct plot_box){left + 70, 62, left + each - 14, top - 58};
    (void)snprintf(prefix, sizeof prefix, "chart%zu", row + 1);
    plot_canvas_panel(c, prefix, &p);
    (void)snprintf(prefix, sizeof prefix, "limit%zu", row + 1);
    const double limit = plot_csv_number(&s->charts, row, "x_limit");
    plot_canvas_set(c, prefix, limit > 0 ? limit : 0);
    plot_canvas_text(c, left + (c->dumb ? 0 : 14), top - (c->dumb ? 0 : 14), PLOT_NORMAL, PLOT_LEFT,
                     plot_text_fit(c, fit, plot_csv_text(&s->charts, row, "title"), PLOT_NORMAL, each - 20));
    plot_canvas_text(c, left + (c->dumb ? 0 : 14), top - (c->dumb ? 1 : 34), PLOT_SMALL, PLOT_LEFT,
                     plot_text_fit(c, fit, plot_csv_text(&s->charts, row, "y_title"), PLOT_SMALL, each - 20));
    plot_canvas_text(c, (p.place.x0 + p.place.x1) / 2, c->dumb ? 0 : 24, PLOT_NORMAL, PLOT_CENTER,
                     plot_text_fit(c, fit, plot_csv_text(&s->charts, row, "x_title"), PLOT_NORMAL, each - 20));
    write_tics(s, row, &p);
    write_marks(s, row, &p);
}

/* Whether any line has a marker, which the legend shows then; a terminal's letters are its lines. */
static bool marked(const struct charts *s)
{
    bool any = s->canvas->dumb;
    for (size_t row = 0; row < s->points.n_rows && s->points.n_rows <= POINTS_MOST; row++)
        any = any || plot_csv_number(&s->points, row, "kept") > 0;
    return any;
}

/* kind "charts": lines side by side. */
enum err_code plot_charts_build(const struct plot_request *r, struct plot_canvas *c, struct err *e)
{
    struct charts *s = arena_alloc(c->arena, sizeof *s);
    struct plot_entry entries[CHART_SERIES_MAX];
    if (!s) return err_nomem(e);
    *s = (struct charts){.canvas = c};
    TRY(plot_csv_parse(c->arena, "charts", r->csv, &s->points, e));
    TRY(plot_csv_parse(c->arena, "charts", r->charts_csv, &s->charts, e));
    if (s->charts.n_rows < 1 || s->charts.n_rows > CHARTS_MAX)
        return err_set(e, ERR_USAGE, "charts: %zu of them, wanted 1 to %d", s->charts.n_rows, CHARTS_MAX);
    for (size_t row = 0; row < s->points.n_rows; row++)
        if (series_of(s, plot_csv_text(&s->points, row, "series")) >= CHART_SERIES_MAX)
            return err_set(e, ERR_USAGE, "charts: more than %d lines", CHART_SERIES_MAX);
    if (s->n == 0) return err_set(e, ERR_INPUT, "charts: no row to draw");
    const bool markers = marked(s);
    for (size_t i = 0; i < s->n; i++)
        entries[i] = (struct plot_entry){.text = s->names[i],
                                         .stroke = (int)i + 1,
                                         .point = markers ? plot_series_point(c, i + 1) : 0,
                                         .rgb = plot_series_rgb(i + 1)};
    double y = plot_canvas_head(c, r->title, r->subtitle ? r->subtitle : "");
    if (s->n > 1) y = plot_canvas_legend(c, entries, s->n, y);
    plot_canvas_set(c, "charts", (double)s->charts.n_rows);
    plot_canvas_set(c, "series_n", (double)s->n);
    plot_canvas_set(c, "points_shown", s->points.n_rows <= POINTS_MOST ? 1 : 0);
    for (size_t i = 0; i < s->charts.n_rows; i++) {
        TRY(write_points(s, i, e));
        lay_out(s, i, y);
    }
    return ERR_OK;
}
