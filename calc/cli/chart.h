/* chart -- lines over an axis, as values that are shown: what plots/charts.gp draws as a picture, and a report as SVG
 * of its own (report_svg.h). Texts are untrusted. */
#ifndef RIDGE_CLI_CHART_H
#define RIDGE_CLI_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

enum { CHART_SERIES_MAX = 8, CHARTS_MAX = 3, CHART_TICKS_MAX = 24 };

struct chart_series {
    const char *name;
    const double *x, *y; /* [n]; NAN: a gap */
    const bool *kept;    /* [n] points that keep every promise; NULL: all do */
    size_t n;
};

/* NAN: none. */
struct chart {
    const char *title, *x_title, *y_title; /* axes with their units */
    const char *about;                     /* a sentence */
    struct chart_series series[CHART_SERIES_MAX];
    size_t n;
    bool log_x;
    double x_limit; /* what is promised: x up to it */
    double x_mark, y_mark;
    const char *x_mark_name, *y_mark_name;
    double y_most; /* of the axis; NAN: of the data */
};

/* A rectangle of the data: x from 0, or of a logarithmic axis from below the least; y from 0. */
struct chart_range {
    double x0, x1, y0, y1;
};

/* chart_range_of -- false: there is no point to draw. */
bool chart_range_of(const struct chart *c, struct chart_range *out);

/* chart_ticks -- round numbers within lo..hi, at most CHART_TICKS_MAX and about `about` of them: 1, 2 or 5 times powers
 * of ten; logarithmic: of every decade all three or the first, where three of them are within. Returns how many. */
size_t chart_ticks(double lo, double hi, size_t about, bool logarithmic, double *out);

/* chart_render -- n <= CHARTS_MAX charts side by side with gnuplot; the names of their series are alike. Errors: as
 * plot_render; ERR_NO nothing to draw. */
enum err_code chart_render(struct arena *a, const struct chart *chart, size_t n, const char *title,
                           const char *subtitle, const char *output, struct err *e);

#endif
