/* steady_times_rows -- jumps of a step's time: tiles of kernels, and graphs up to so many tokens; of steady_parts.h. */
#include <math.h>
#include <stdint.h>

#include "calc/serve/steady_parts.h"

/* Sums of averages are not quite whole: a tile's last token is in it. */
static double inside(double tokens) { return tokens * (1 - 1e-9); } /* rounding; not a unit */

static double place_s(struct steady_times *t, size_t k, size_t i)
{
    if (i == STEADY_ROW_PLACES) return place_s(t, k + 1, 0);
    double *const s = &t->rows_s[k].place_s[i];
    const double low = t->x_knot[k];
    if (isnan(*s))
        *s = steady_times_alone_s(t, 0, inside(low + (t->x_knot[k + 1] - low) * (double)i / STEADY_ROW_PLACES));
    return *s;
}

/* Halves of the way between two knots, until the middle of one is on a line; quarters at least, so that two jumps on
 * one line are not one. What they end with around a cell is the line of all its cells. */
static void find_line(struct steady_times *t, size_t k, size_t cell)
{
    const double within = .005, least = 4; /* tokens */
    const double width = (t->x_knot[k + 1] - t->x_knot[k]) / STEADY_ROW_PLACES;
    struct steady_rows *const r = &t->rows_s[k];
    size_t low = 0, high = STEADY_ROW_PLACES;
    while (high - low > 1 && (double)(high - low) * width > least) {
        const size_t middle = (low + high) / 2;
        const double line_s = .5 * (place_s(t, k, low) + place_s(t, k, high)), middle_s = place_s(t, k, middle);
        const bool straight = high - low < STEADY_ROW_PLACES && fabs(middle_s - line_s) <= within * middle_s;
        if (cell < middle)
            high = middle;
        else
            low = middle;
        if (straight) break;
    }
    const double low_s = place_s(t, k, low), slope_s = (place_s(t, k, high) - low_s) / (double)(high - low);
    for (size_t i = low; i < high; i++) {
        r->line_s[i] = low_s + slope_s * (double)(i - low);
        r->known |= UINT32_C(1) << i;
    }
    r->line_s[high] = place_s(t, k, high);
}

double steady_times_rows_s(struct steady_times *t, double rows)
{
    const size_t below = steady_times_knot(t, rows), k = below < STEADY_X_KNOTS - 2 ? below : STEADY_X_KNOTS - 3;
    const double low = t->x_knot[k], at = (rows - low) * STEADY_ROW_PLACES / (t->x_knot[k + 1] - low);
    const size_t cell = at < STEADY_ROW_PLACES - 1 ? at > 0 ? (size_t)at : 0 : STEADY_ROW_PLACES - 1;
    struct steady_rows *const r = &t->rows_s[k];
    if (!(r->known >> cell & 1)) find_line(t, k, cell);
    const double low_s = r->line_s[cell], part = at - (double)cell;
    return part > 0 ? low_s + (r->line_s[cell + 1] - low_s) * part : low_s;
}

double steady_times_beyond_s(struct steady_times *t, double at_s[STEADY_X_KNOTS], double n, double x)
{
    const size_t k = steady_times_knot(t, x) / 2 * 2;
    for (size_t q = k; q <= k + 2; q += 2) {
        const double tokens = inside(t->x_knot[q]);
        if (isnan(at_s[q]))
            at_s[q] =
                steady_times_alone_s(t, n, tokens) - steady_times_alone_s(t, 0, inside(t->rows * n + t->x_knot[q]));
    }
    const double low = t->x_knot[k];
    return at_s[k] + (at_s[k + 2] - at_s[k]) * (x - low) / (t->x_knot[k + 2] - low);
}

double steady_times_near_s(struct steady_times *t, double n, double x, double below, double above)
{
    enum { POINTS = 8 };
    static const double FAR[POINTS] = {-.875, -.625, -.375, -.125, .125, .375, .625, .875},
                        NUMBER[POINTS] = {-.5, 1.2, -1.2, .5, -.5, 1.2, -1.2, .5};
    if (!t->rows_s) return steady_times_step_s(t, n, x);
    const bool beside = t->beside && n > 0;
    const double rows = beside ? t->rows * n : 0, away = beside ? 1.5 * t->rows * sqrt(n) : 0, width = above - below;
    const double slope_s =
        width > 0 ? (steady_times_rows_s(t, rows + above) - steady_times_rows_s(t, rows + below)) / width : 0;
    double sum_s = 0, total = 0;
    for (int i = 0; i < POINTS; i++) {
        const double far = FAR[i] < 0 ? FAR[i] * (x - below) : FAR[i] * (above - x);
        const double weight = width > 0 ? (1 - fabs(FAR[i])) * (FAR[i] < 0 ? x - below : above - x) : 1;
        sum_s += weight * (steady_times_rows_s(t, fmax(rows + far + NUMBER[i] * away, 0) + x) - slope_s * far);
        total += weight;
    }
    const double here_s = steady_times_rows_s(t, rows + x);
    return steady_times_step_s(t, n, x) + sum_s / total - here_s;
}
