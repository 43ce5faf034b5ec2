#include "calc/cli/chart.h"

#include <math.h>

#include "calc/base/out.h"
#include "calc/cli/plot.h"

bool chart_range_of(const struct chart *c, struct chart_range *out)
{
    double x0 = HUGE_VAL, x1 = 0, y1 = 0;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->series[i].n; k++) {
            const double x = c->series[i].x[k], y = c->series[i].y[k];
            if (!isfinite(x) || !isfinite(y) || (c->log_x && !(x > 0))) continue;
            x0 = fmin(x0, x);
            x1 = fmax(x1, x);
            y1 = fmax(y1, y);
        }
    if (!(x1 > 0)) return false;
    if (c->x_limit > 0) x1 = fmax(x1, c->x_limit * 1.05);
    if (c->x_mark > 0) x1 = fmax(x1, c->x_mark * 1.05);
    *out = (struct chart_range){.x0 = c->log_x ? x0 / 1.15 : 0,
                                .x1 = c->log_x ? x1 * 1.15 : x1 * 1.03,
                                .y0 = 0,
                                .y1 = c->y_most > 0 ? c->y_most
                                      : y1 > 0      ? y1 * 1.08
                                                    : 1};
    return true;
}

size_t chart_ticks(double lo, double hi, size_t about, bool logarithmic, double *out)
{
    static const double STEPS[] = {1, 2, 5, 10};
    size_t n = 0;
    if (logarithmic) {
        const bool wide = log10(hi / lo) > 2.5;
        for (double decade = pow(10, floor(log10(lo))); decade <= hi; decade *= 10)
            for (size_t k = 0; k < (wide ? 1 : 3); k++) {
                const double v = decade * STEPS[k];
                if (v >= lo && v <= hi && n < CHART_TICKS_MAX) out[n++] = v;
            }
        if (n >= 3) return n;
        n = 0; /* within a decade round numbers stand far enough apart */
    }
    const double rough = (hi - lo) / (double)(about ? about : 1), decade = pow(10, floor(log10(rough)));
    double step = decade * 10;
    for (size_t k = 4; k-- > 0;)
        if (decade * STEPS[k] >= rough) step = decade * STEPS[k];
    for (double i = ceil(lo / step); i * step <= hi * (1 + 1e-12) && n < CHART_TICKS_MAX; i++) out[n++] = i * step;
    return n;
}

static void put_cell(struct out *o, const char *s)
{
    out_char(o, '"');
    for (; s && *s; s++) {
        if (*s == '"') out_char(o, '"');
        out_char(o, *s);
    }
    out_char(o, '"');
}

static void put_number(struct out *o, double v)
{
    if (isfinite(v)) out_printf(o, ",%.9g", v);
    if (!isfinite(v)) out_char(o, ',');
}

enum err_code chart_render(struct arena *a, const struct chart *chart, size_t n, const char *title,
                           const char *subtitle, const char *output, struct err *e)
{
    struct out *points, *charts;
    size_t drawn = 0;
    TRY(out_memory(a, &points, e));
    TRY(out_memory(a, &charts, e));
    out_str(points, "chart,series,x,y,kept\n");
    out_str(charts, "title,x_title,y_title,x_mark_name,y_mark_name,x0,x1,y0,y1,log_x,x_limit,x_mark,y_mark\n");
    for (size_t i = 0; i < n; i++) {
        const struct chart *c = &chart[i];
        struct chart_range r;
        if (!chart_range_of(c, &r)) continue;
        drawn++;
        const char *const texts[] = {c->title, c->x_title, c->y_title, c->x_mark_name, c->y_mark_name};
        const double numbers[] = {r.x0, r.x1, r.y0, r.y1, c->log_x ? 1 : 0, c->x_limit, c->x_mark, c->y_mark};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            if (k) out_char(charts, ',');
            put_cell(charts, texts[k]);
        }
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) put_number(charts, numbers[k]);
        out_char(charts, '\n');
        for (size_t s = 0; s < c->n; s++)
            for (size_t k = 0; k < c->series[s].n; k++) {
                out_printf(points, "%zu,", drawn);
                put_cell(points, c->series[s].name);
                put_number(points, c->series[s].x[k]);
                put_number(points, c->series[s].y[k]);
                out_printf(points, ",%d\n", !c->series[s].kept || c->series[s].kept[k]);
            }
    }
    if (!drawn) return err_set(e, ERR_NO, "nothing to draw");
    const struct plot_request q = {.kind = "charts",
                                   .csv = out_text(points, NULL),
                                   .charts_csv = out_text(charts, NULL),
                                   .title = title,
                                   .subtitle = subtitle,
                                   .output = output};
    return q.csv && q.charts_csv ? plot_render(a, &q, e) : err_nomem(e);
}
