#include <math.h>

#include "calc/base/units.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_kinds.h"

enum { PANELS = 3, WAIT = 1 };

static const struct {
    const char *key, *prefix, *title;
} PANEL[PANELS] = {{"batch", "batch", "sequences in the batch"},
                   {"wait_s", "wait", "longest wait of those who came"},
                   {"blocks_percent", "blocks", "cache in use (%)"}};

/* kind "timeline": three panels above each other over time_s. */
enum err_code plot_timeline_build(const struct plot_request *r, struct plot_canvas *c, struct err *e)
{
    struct plot_csv csv;
    struct out *points;
    double most[PANELS] = {0, 0, 0}, last_s = 0, wait_s = 0;
    TRY(plot_csv_parse(c->arena, "timeline", r->csv, &csv, e));
    TRY(plot_canvas_file(c, "points.tsv", "time\tbatch\twait\tblocks\n", &points, e));
    for (size_t i = 0; i < csv.n_rows; i++) wait_s = fmax(wait_s, plot_csv_number(&csv, i, PANEL[WAIT].key));
    const struct units_scale scale = units_scale_for(UNITS_SECONDS, (double)NAN, wait_s > 0 ? wait_s : 1);
    const char *wait = arena_printf(c->arena, "%s (%s)", PANEL[WAIT].title, scale.label);
    if (!wait) return err_nomem(e);
    for (size_t i = 0; i < csv.n_rows; i++) {
        const double time_s = plot_csv_number(&csv, i, "time_s");
        double v[PANELS];
        for (size_t k = 0; k < PANELS; k++) {
            v[k] = plot_csv_number(&csv, i, PANEL[k].key) / (k == WAIT ? scale.divisor : 1);
            most[k] = fmax(most[k], v[k]);
        }
        last_s = fmax(last_s, time_s);
        out_printf(points, "%.9g\t%.9g\t%.9g\t%.9g\n", time_s, v[0], v[1], v[2]);
    }
    if (!(last_s > 0)) return err_set(e, ERR_INPUT, "timeline: no row with a time_s");
    const double top = plot_canvas_head(c, r->title, r->subtitle ? r->subtitle : "");
    const double bottom = c->dumb ? 2 : 62, each = (top - bottom) / PANELS, gap = c->dumb ? 1 : 26;
    for (size_t k = 0; k < PANELS; k++) {
        const double y1 = top - (double)k * each;
        struct plot_panel p = {.range = {0, 0, last_s * 1.005, most[k] > 0 ? most[k] * 1.08 : 1}};
        p.place = c->dumb ? (struct plot_box){7, ceil(y1 - each), c->width - 1, floor(y1 - gap)}
                          : (struct plot_box){78, y1 - each + 8, c->width - 20, y1 - gap};
        plot_canvas_text(c, c->dumb ? 0 : 14, c->dumb ? floor(y1) : y1 - 12, PLOT_NORMAL, PLOT_LEFT,
                         k == WAIT ? wait : PANEL[k].title);
        plot_canvas_panel(c, PANEL[k].prefix, &p);
        if (k + 1 == PANELS)
            plot_canvas_text(c, (p.place.x0 + p.place.x1) / 2, c->dumb ? 0 : 24, PLOT_NORMAL, PLOT_CENTER, "time (s)");
    }
    return ERR_OK;
}
