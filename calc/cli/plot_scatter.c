#include <math.h>
#include <string.h>

#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_kinds.h"

enum { RATIO_MOST = 5 };

struct scatter {
    struct plot_canvas *canvas;
    struct plot_csv csv;
    const char *groups[PLOT_SERIES_MAX];
    size_t n_groups, shown;
    struct plot_panel panel;
};

static size_t group_of(struct scatter *s, const char *name)
{
    size_t i = 0;
    while (i < s->n_groups && strcmp(s->groups[i], name) != 0) i++;
    if (i == s->n_groups && i < PLOT_SERIES_MAX) s->groups[s->n_groups++] = name;
    return i < PLOT_SERIES_MAX ? i : PLOT_SERIES_MAX - 1;
}

static bool read_point(const struct scatter *s, size_t row, double *measured_s, double *ratio)
{
    *measured_s = plot_csv_number(&s->csv, row, "measured_s");
    *ratio = plot_csv_number(&s->csv, row, "calibrated_s") / *measured_s;
    return *measured_s > 0 && *ratio > 0;
}

static void lay_out(const struct plot_request *r, struct scatter *s, double x0, double x1)
{
    struct plot_canvas *c = s->canvas;
    struct plot_entry entries[PLOT_SERIES_MAX];
    for (size_t i = 0; i < s->n_groups; i++)
        entries[i] = (struct plot_entry){
            .text = s->groups[i], .point = plot_series_point(c, i + 1), .rgb = plot_series_rgb(i + 1)};
    double y = plot_canvas_head(c, r->title, r->subtitle ? r->subtitle : "");
    y = plot_canvas_legend(c, entries, s->n_groups, y);
    plot_canvas_text(c, c->dumb ? 0 : 14, y, PLOT_NORMAL, PLOT_LEFT, "calibrated / measured");
    s->panel.place = c->dumb ? (struct plot_box){6, 2, c->width - 1, floor(y - 1)}
                             : (struct plot_box){78, 62, c->width - 20, y - 16};
    s->panel.range = (struct plot_box){x0 / 1.5, 1.0 / RATIO_MOST, x1 * 1.5, RATIO_MOST};
    s->panel.log_x = s->panel.log_y = true;
    plot_canvas_panel(c, "main", &s->panel);
    plot_canvas_text(c, (s->panel.place.x0 + s->panel.place.x1) / 2, c->dumb ? 0 : 24, PLOT_NORMAL, PLOT_CENTER,
                     "measured (s)");
}

/* kind "scatter": measured_s and calibrated_s of every row, a colour per text of `group`. */
enum err_code plot_scatter_build(const struct plot_request *r, struct plot_canvas *c, struct err *e)
{
    struct scatter *s = arena_alloc(c->arena, sizeof *s);
    struct out *points = NULL;
    double x0 = HUGE_VAL, x1 = 0, measured_s, ratio;
    if (!s) return err_nomem(e);
    s->canvas = c;
    TRY(plot_csv_parse(c->arena, "scatter plot", r->csv, &s->csv, e));
    TRY(plot_canvas_file(c, "points.tsv", "measured\tratio\tpoint\trgb\n", &points, e));
    for (size_t i = 0; i < s->csv.n_rows; i++) {
        if (!read_point(s, i, &measured_s, &ratio)) continue;
        const size_t g = group_of(s, plot_csv_text(&s->csv, i, "group")) + 1;
        x0 = fmin(x0, measured_s);
        x1 = fmax(x1, measured_s);
        s->shown++;
        out_printf(points, "%.6e\t%.6e\t%d\t%u\n", measured_s, fmin(fmax(ratio, 1.02 / RATIO_MOST), RATIO_MOST / 1.02),
                   plot_series_point(c, g), plot_series_rgb(g));
    }
    if (!s->shown) return err_set(e, ERR_INPUT, "scatter plot: no row with both measured_s and calibrated_s");
    lay_out(r, s, x0, x1);
    return ERR_OK;
}
