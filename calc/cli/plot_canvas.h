/* plot_canvas -- a picture under construction: the data files and settings that a script of plots/ reads.
 *
 * Coordinates are units of the canvas from its lower left corner: pixels of a 900x600 picture, or characters of a 79x24
 * terminal, where a text's y is its line. Text, strokes, marks and boxes written here are drawn over the panels by
 * plots/overlay.gp at exactly these places. */
#ifndef RIDGE_CLI_PLOT_CANVAS_H
#define RIDGE_CLI_PLOT_CANVAS_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"

enum { PLOT_FILES_MAX = 24, PLOT_SERIES_MAX = 12, PLOT_TEXT_MAX = 256 };

struct plot_file {
    const char *name;
    struct out *out; /* in memory */
};

struct plot_canvas {
    struct arena *arena;
    bool dumb;            /* characters instead of pixels */
    double width, height; /* 900 x 600 pixels, 78 x 23 from the first character to the last */
    double row;           /* from one line of text to the next */
    struct plot_file files[PLOT_FILES_MAX];
    size_t n_files;
    struct out *settings; /* assignments of numbers, in gnuplot's language */
    struct out *texts, *strokes, *marks, *boxes;
};

struct plot_box {
    double x0, y0, x1, y1; /* x0 <= x1, y0 <= y1 */
};

/* A pair of axes: the part of the canvas it covers and the data range shown there. */
struct plot_panel {
    struct plot_box place;
    struct plot_box range;
    bool log_x, log_y;
};

enum plot_size { PLOT_SMALL, PLOT_NORMAL, PLOT_TITLE };
enum plot_align { PLOT_LEFT, PLOT_CENTER, PLOT_RIGHT };

/* Looks of boxes (overlay.gp) and of strokes (style.gp); strokes below PLOT_STROKE_LEADER are the series, from 1. */
enum plot_fill { PLOT_WEIGHTS = 1, PLOT_KV, PLOT_STATE, PLOT_ACTIVATION, PLOT_OTHER, PLOT_UNFIT, PLOT_FILLS_END };
enum plot_stroke { PLOT_STROKE_LEADER = 20, PLOT_STROKE_BREAK, PLOT_STROKE_CAPACITY };

/* plot_canvas_open -- an empty canvas. Errors: ERR_NOMEM. */
enum err_code plot_canvas_open(struct arena *a, bool dumb, struct plot_canvas *c, struct err *e);

/* plot_canvas_file -- one more file for the script, beginning with a header line; cells are separated by tabs. name is
 * a constant or lives in the arena. Errors: ERR_NOMEM, ERR_RANGE more than PLOT_FILES_MAX. */
enum err_code plot_canvas_file(struct plot_canvas *c, const char *name, const char *header, struct out **out,
                               struct err *e);

/* plot_canvas_set -- give the script a number. name is a constant. */
void plot_canvas_set(struct plot_canvas *c, const char *name, double value);

/* plot_canvas_panel -- give the script PREFIX_left, _right, _bottom, _top (parts of the canvas), PREFIX_x0, _x1, _y0,
 * _y1 (the range) and PREFIX_log_x, _log_y. */
void plot_canvas_panel(struct plot_canvas *c, const char *prefix, const struct plot_panel *p);

/* plot_panel_x, plot_panel_y -- where a data coordinate lies on the canvas. */
double plot_panel_x(const struct plot_panel *p, double x);
double plot_panel_y(const struct plot_panel *p, double y);

/* plot_text_wide -- estimated width of text on the canvas, from the advances of DejaVu Sans, the widest of the usual
 * fonts. */
double plot_text_wide(const struct plot_canvas *c, const char *text, enum plot_size size);

/* plot_text_fit -- copy text to out with "..." for what is beyond width; what differs in long names is mostly at their
 * ends, so the middle goes. Returns out. */
const char *plot_text_fit(const struct plot_canvas *c, char out[PLOT_TEXT_MAX], const char *text, enum plot_size size,
                          double width);

/* plot_text_put -- text as one cell of a data file: without controls, and without the two characters that gnuplot
 * interprets there (the quote and the backslash become look-alikes). */
void plot_text_put(struct out *o, const char *text);

/* plot_canvas_text -- black text whose vertical middle is y. plot_canvas_text_rgb -- in another colour. */
void plot_canvas_text(struct plot_canvas *c, double x, double y, enum plot_size size, enum plot_align align,
                      const char *text);
void plot_canvas_text_rgb(struct plot_canvas *c, double x, double y, enum plot_size size, enum plot_align align,
                          unsigned rgb, const char *text);

/* plot_canvas_stroke, _mark, _box -- a line, a point (gnuplot's point type), a filled rectangle. */
void plot_canvas_stroke(struct plot_canvas *c, double x0, double y0, double x1, double y1, int stroke);
void plot_canvas_mark(struct plot_canvas *c, double x, double y, int point, unsigned rgb);
void plot_canvas_box(struct plot_canvas *c, const struct plot_box *b, enum plot_fill fill);

/* plot_series_point, plot_series_rgb -- marker and colour of series i (from 1), as in plots/style.gp. */
int plot_series_point(const struct plot_canvas *c, size_t i);
unsigned plot_series_rgb(size_t i);

/* plot_canvas_head -- title and subtitle (either may be NULL or ""). Returns the y below which the rest may begin. */
double plot_canvas_head(struct plot_canvas *c, const char *title, const char *subtitle);

/* A name beside the end of a horizontal line, in two lines of small text. */
struct plot_margin {
    double y;                 /* of the line */
    const char *first, *then; /* "79.2 GB usable", "h100-sxm" */
};

enum { PLOT_MARGIN_MAX = 16 };

/* plot_margin_wide -- the width that n <= PLOT_MARGIN_MAX names need right of a panel, at most a fifth of the canvas
 * (longer ones are cut); as much as to the edge of a canvas without names when n is 0. */
double plot_margin_wide(const struct plot_canvas *c, const struct plot_margin *names, size_t n);

/* plot_canvas_margin -- write the names right of x, each at its y; those that would meet move up, with a line to where
 * they belong. */
void plot_canvas_margin(struct plot_canvas *c, double x, const struct plot_margin *names, size_t n);

struct plot_entry {
    const char *text;
    int stroke;          /* sample line, 0 none */
    int point;           /* sample marker, 0 none */
    unsigned rgb;        /* of the marker */
    enum plot_fill fill; /* sample box, 0 none */
};

/* plot_canvas_legend -- n entries in as many columns as fit, the first line at y; more than 6 that do not fit in two
 * columns are written small, or on a terminal cut. Returns the y below it. */
double plot_canvas_legend(struct plot_canvas *c, const struct plot_entry *entries, size_t n, double y);

#endif
