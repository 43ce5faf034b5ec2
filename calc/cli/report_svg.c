/* report_svg -- charts as SVG inside the page. gnuplot draws what --plot asks for; here it cannot: its colours are
 * fixed, where a page is light, dark or on paper, its ids meet those of the next picture, and a report must not lack
 * its pictures where gnuplot is not installed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/report.h"

/* The canvas, and the axes in it. */
static const double WIDTH = 640, HEIGHT = 300, LEFT = 64, RIGHT = 622, TOP = 24, BOTTOM = 252;

/* What a viewer shows that does not read the page's style: the colours of light. */
static const char *const COLOURS[CHART_SERIES_MAX] = {"#0072b2", "#b84a00", "#000",    "#00785a",
                                                      "#a4487d", "#8a6100", "#2a7fb0", "#666"};
static const char *const FILLS[] = {"#0072b2", "#8a6100", "#d5d5d5", "#f4f4f4"};

/* A label's place. */
struct box {
    double x0, x1, y0, y1;
};

struct axes {
    const struct chart *chart;
    struct chart_range r;
    struct box taken[CHART_SERIES_MAX + 1];
    size_t taken_n;
};

static double at_x(const struct axes *a, double x)
{
    const double part =
        a->chart->log_x ? log(x / a->r.x0) / log(a->r.x1 / a->r.x0) : (x - a->r.x0) / (a->r.x1 - a->r.x0);
    return LEFT + part * (RIGHT - LEFT);
}

static double at_y(const struct axes *a, double y)
{
    return BOTTOM - (y - a->r.y0) / (a->r.y1 - a->r.y0) * (BOTTOM - TOP);
}

static void stroke(struct out *o, const char *look, double x0, double y0, double x1, double y1)
{
    out_printf(o, "<line class=\"%s\" stroke=\"#bbb\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", look, x0,
               y0, x1, y1);
}

static void label(struct out *o, double x, double y, const char *anchor, const char *text)
{
    out_printf(o, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    report_text(o, text);
    out_str(o, "</text>\n");
}

static bool inside(const struct box *b, double x, double y) { return x > b->x0 && x < b->x1 && y > b->y0 && y < b->y1; }

/* Whether a line goes through a box: by points on its pieces, closer together than a box is wide. */
static bool crossed(const struct axes *a, const struct box *b)
{
    enum { PIECES = 64 };
    for (size_t i = 0; i < a->chart->n; i++) {
        const struct chart_series *s = &a->chart->series[i];
        for (size_t k = 1; k < s->n; k++) {
            if (!isfinite(s->x[k - 1]) || !isfinite(s->y[k - 1]) || !isfinite(s->x[k]) || !isfinite(s->y[k])) continue;
            const double x0 = at_x(a, s->x[k - 1]), y0 = at_y(a, s->y[k - 1]), x1 = at_x(a, s->x[k]),
                         y1 = at_y(a, s->y[k]);
            for (int p = 0; p <= PIECES; p++)
                if (inside(b, x0 + (x1 - x0) * p / PIECES, y0 + (y1 - y0) * p / PIECES)) return true;
        }
    }
    return false;
}

/* Whether a label there is over nothing else. */
static bool clear(const struct axes *a, const struct box *b)
{
    if (b->x0 < 0 || b->x1 > WIDTH || b->y0 < 0) return false;
    for (size_t i = 0; i < a->taken_n; i++) {
        const struct box *t = &a->taken[i];
        if (b->x0 < t->x1 && b->x1 > t->x0 && b->y0 < t->y1 && b->y1 > t->y0) return false;
    }
    return !crossed(a, b);
}

/* Where text of a width goes: the first place that is clear, else the first. x, y: its left end on the base line. */
struct place {
    double x, y;
};

static void put_clear(struct out *o, struct axes *a, const struct place *at, size_t n, double width, const char *text)
{
    size_t chosen = 0;
    for (size_t i = n; i-- > 0;) {
        const struct box b = {at[i].x - 1, at[i].x + width, at[i].y - 10, at[i].y + 2};
        if (clear(a, &b)) chosen = i;
    }
    const struct place p = at[chosen];
    if (a->taken_n < sizeof a->taken / sizeof *a->taken)
        a->taken[a->taken_n++] = (struct box){p.x - 1, p.x + width, p.y - 10, p.y + 2};
    label(o, p.x, p.y, "start", text);
}

static void write_axes(struct out *o, const struct axes *a)
{
    double tick[CHART_TICKS_MAX];
    char text[32];
    const struct chart *c = a->chart;
    if (c->x_limit > a->r.x0)
        out_printf(o, "<rect class=\"ok\" fill=\"#e7f0e2\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                   LEFT, TOP, at_x(a, fmin(c->x_limit, a->r.x1)) - LEFT, BOTTOM - TOP);
    size_t n = chart_ticks(a->r.y0, a->r.y1, 6, false, tick);
    for (size_t i = 0; i < n; i++) {
        stroke(o, "grid", LEFT, at_y(a, tick[i]), RIGHT, at_y(a, tick[i]));
        (void)snprintf(text, sizeof text, "%.6g", tick[i]);
        label(o, LEFT - 6, at_y(a, tick[i]) + 4, "end", text);
    }
    n = chart_ticks(a->r.x0, a->r.x1, 8, c->log_x, tick);
    for (size_t i = 0; i < n; i++) {
        stroke(o, "grid", at_x(a, tick[i]), TOP, at_x(a, tick[i]), BOTTOM);
        (void)snprintf(text, sizeof text, "%.6g", tick[i]);
        label(o, at_x(a, tick[i]), BOTTOM + 16, "middle", text);
    }
    out_printf(o, "<path class=\"axis\" fill=\"none\" stroke=\"#555\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", LEFT, TOP,
               BOTTOM, RIGHT);
    label(o, LEFT - 50, TOP - 10, "start", c->y_title);
    label(o, (LEFT + RIGHT) / 2, BOTTOM + 38, "middle", c->x_title);
}

/* Points that are kept or not: all of a line with `late`, else pieces of those that are. */
static void write_line(struct out *o, const struct axes *a, const struct chart_series *s, size_t i, bool late)
{
    bool open = false, any = false;
    for (size_t k = 0; k < s->n; k++) {
        const bool here = isfinite(s->x[k]) && isfinite(s->y[k]) && (late || !s->kept || s->kept[k]);
        if (here) {
            if (!any)
                out_printf(o, "<path class=\"%s s%zu\" fill=\"none\" stroke=\"%s\" d=\"", late ? "late" : "line", i + 1,
                           COLOURS[i]);
            any = true;
            out_printf(o, "%c%.1f %.1f", open ? 'L' : 'M', at_x(a, s->x[k]), at_y(a, s->y[k]));
        }
        open = here;
    }
    if (any) out_str(o, "\"/>\n");
}

/* Its number beside the last point, so that colour is not all that tells lines apart. */
static void write_number(struct out *o, struct axes *a, const struct chart_series *s, size_t i, size_t of)
{
    char text[16];
    size_t k = s->n;
    while (k > 0 && !(isfinite(s->x[k - 1]) && isfinite(s->y[k - 1]))) k--;
    if (k == 0 || of < 2) return;
    (void)snprintf(text, sizeof text, "%zu", (i + 1) % 100); /* not a unit */
    const double x = at_x(a, s->x[k - 1]), y = at_y(a, s->y[k - 1]), wide = i + 1 < 10 ? 8 : 16;
    const struct place at[] = {{x + 4, y - 3},
                               {x + 4, y + 12},
                               {x - wide - 4, y - 5},
                               {x - wide - 4, y + 14},
                               {x - 2 * wide - 12, y - 5},
                               {x - 2 * wide - 12, y + 14},
                               {x - 3 * wide - 20, y - 5}};
    put_clear(o, a, at, sizeof at / sizeof *at, wide, text);
}

static void write_marks(struct out *o, struct axes *a)
{
    const struct chart *c = a->chart;
    if (c->x_limit > a->r.x0) label(o, at_x(a, fmin(c->x_limit, a->r.x1)), TOP - 5, "middle", "promised");
    if (c->x_mark > 0) {
        stroke(o, "asked", at_x(a, c->x_mark), TOP, at_x(a, c->x_mark), BOTTOM);
        label(o, at_x(a, c->x_mark), TOP - 5, "middle", c->x_mark_name);
    }
    if (c->y_mark > 0) {
        stroke(o, "asked", LEFT, at_y(a, c->y_mark), RIGHT, at_y(a, c->y_mark));
        const double y = at_y(a, c->y_mark) + 14, wide = 6.6 * (double)strlen(c->y_mark_name);
        const struct place at[] = {{RIGHT - 4 - wide, y},
                                   {LEFT + 6, y},
                                   {(LEFT + RIGHT - wide) / 2, y},
                                   {RIGHT - 4 - wide, (TOP + BOTTOM) / 2},
                                   {LEFT + 6, (TOP + BOTTOM) / 2}};
        put_clear(o, a, at, sizeof at / sizeof *at, wide, c->y_mark_name);
    }
}

static void begin(struct out *o, const char *id, const char *title, const char *about, double height)
{
    out_str(o, "<figure>\n<figcaption>");
    report_text(o, title);
    out_printf(o,
               "</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-labelledby=\"%s-t %s-d\">\n"
               "<title id=\"%s-t\">",
               WIDTH, height, id, id, id);
    report_text(o, title);
    out_printf(o, "</title>\n<desc id=\"%s-d\">", id);
    report_text(o, about);
    out_str(o, "</desc>\n");
}

void report_chart(struct out *o, const char *id, const struct chart *chart)
{
    struct axes a = {.chart = chart};
    if (!chart_range_of(chart, &a.r)) {
        out_str(o, "<p>");
        report_put(o, "%s: nothing to draw.", chart->title);
        out_str(o, "</p>\n");
        return;
    }
    begin(o, id, chart->title, chart->about ? chart->about : chart->y_title, HEIGHT);
    write_axes(o, &a);
    bool parts = false;
    for (size_t i = 0; i < chart->n; i++)
        for (size_t k = 0; k < chart->series[i].n && chart->series[i].kept; k++) parts |= chart->series[i].kept[k];
    for (size_t i = 0; i < chart->n; i++) {
        const struct chart_series whole = {chart->series[i].name, chart->series[i].x, chart->series[i].y, NULL,
                                           chart->series[i].n};
        if (parts) write_line(o, &a, &chart->series[i], i, true);
        write_line(o, &a, parts ? &chart->series[i] : &whole, i, false);
    }
    for (size_t i = 0; i < chart->n; i++) write_number(o, &a, &chart->series[i], i, chart->n);
    write_marks(o, &a);
    out_str(o, "</svg>\n");
    if (chart->n > 1) out_str(o, "<ul class=\"legend\">\n");
    for (size_t i = 0; chart->n > 1 && i < chart->n; i++) {
        out_printf(
            o,
            "<li><svg viewBox=\"0 0 36 12\" aria-hidden=\"true\"><path class=\"line s%zu\" d=\"M0 6H36\"/></svg> "
            "%zu: ",
            i + 1, i + 1);
        report_text(o, chart->series[i].name);
        out_str(o, "</li>\n");
    }
    if (chart->n > 1) out_str(o, "</ul>\n");
    out_str(o, "</figure>\n");
}

void report_bar(struct out *o, const char *id, const char *title, size_t n, const char *const *names,
                const double *parts)
{
    const double top = 30, bottom = 62, height = 70;
    double all = 0, x = LEFT / 4;
    const double wide = WIDTH - 2 * x;
    for (size_t i = 0; i < n; i++) all += parts[i];
    if (!(all > 0)) return;
    begin(o, id, title, "parts of a bar; the table below has the numbers", height);
    for (size_t i = 0; i < n; i++) {
        const double w = wide * parts[i] / all;
        out_printf(o, "<rect class=\"part f%zu\" fill=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                   i + 1, FILLS[i], x, top, w, bottom - top);
        if (i == 0 && w > 40) label(o, x, top - 8, "start", names[i]);
        if (i > 0 && i + 1 < n && w > 150) label(o, x + w / 2, top - 8, "middle", names[i]);
        if (i > 0 && i + 1 == n) label(o, x + w, top - 8, "end", names[i]);
        x += w;
    }
    out_str(o, "</svg>\n</figure>\n");
}
