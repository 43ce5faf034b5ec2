/* plot_label -- places for labels beside their points, so that none covers another. */
#ifndef RIDGE_CLI_PLOT_LABEL_H
#define RIDGE_CLI_PLOT_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/cli/plot_canvas.h"

struct plot_label {
    double x, y;          /* its point */
    double width, height; /* of the text */
    double weight;        /* where there is no room for all, the lighter ones go */
    struct plot_box box;  /* out: where the text goes */
    bool shown;           /* out: false when there was no room */
    bool leader;          /* out: far enough to need a line from its point to (leader_x, leader_y) */
    double leader_x, leader_y;
};

struct plot_scene {
    struct plot_box frame;        /* labels stay inside */
    const struct plot_box *boxes; /* text that stands already: never covered */
    size_t n_boxes;
    const struct plot_box *marks; /* points: covered only when there is no other way */
    size_t n_marks;
    const struct plot_box *strokes; /* lines from (x0, y0) to (x1, y1), in any direction: crossed rather not */
    size_t n_strokes;
    bool cells; /* a canvas of characters: whole coordinates */
};

/* plot_label_place -- choose box and leader of all n labels: each in turn takes the cheapest of some 250 places around
 * its point (distance, lines and points covered, leaders crossed), given the others, until nothing improves; begun in
 * four orders, of which the best is kept. Shown
 * boxes never overlap each other or scene->boxes. Deterministic. Cost: O(n (n + obstacles)). */
void plot_label_place(const struct plot_scene *scene, struct plot_label *labels, size_t n);

/* plot_label_clear -- the first of n candidate boxes that covers no box, mark or stroke of the scene; else the first
 * that covers no box; else n. */
size_t plot_label_clear(const struct plot_scene *scene, const struct plot_box *candidates, size_t n);

/* plot_box_overlap -- whether the insides of two boxes meet. plot_box_stroked -- whether the line from (s.x0, s.y0) to
 * (s.x1, s.y1) passes through the box. */
bool plot_box_overlap(const struct plot_box *a, const struct plot_box *b);
bool plot_box_stroked(const struct plot_box *b, const struct plot_box *s);

#endif
