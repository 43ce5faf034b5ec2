#include "calc/cli/plot_label.h"

#include <math.h>

/* Directions around the point, then places above and below it with the text moved sideways. */
enum { DIRECTIONS = 16, SIDEWAYS = 4, PLACES = DIRECTIONS + 2 * SIDEWAYS, SWEEPS_MAX = 16 };

/* Distances from the point to the text: pixels, and characters. */
static const double distances_px[] = {8, 14, 22, 34, 48, 64, 80, 100, 122, 148, 180, 220};
static const double distances_cells[] = {1.5, 2, 3, 4, 6, 8, 11};

static const double forbidden = 1e9; /* not a unit */

bool plot_box_overlap(const struct plot_box *a, const struct plot_box *b)
{
    return a->x0 < b->x1 && b->x0 < a->x1 && a->y0 < b->y1 && b->y0 < a->y1;
}

/* Narrow [*t0, *t1] to where the coordinate p + t*d lies in [lo, hi] (Liang and Barsky). */
static bool clip(double p, double d, double lo, double hi, double *t0, double *t1)
{
    if (fabs(d) < 1e-12) return p > lo && p < hi;
    const double a = (lo - p) / d, b = (hi - p) / d;
    *t0 = fmax(*t0, fmin(a, b));
    *t1 = fmin(*t1, fmax(a, b));
    return *t0 < *t1;
}

bool plot_box_stroked(const struct plot_box *b, const struct plot_box *s)
{
    double t0 = 0, t1 = 1;
    return clip(s->x0, s->x1 - s->x0, b->x0, b->x1, &t0, &t1) && clip(s->y0, s->y1 - s->y0, b->y0, b->y1, &t0, &t1);
}

/* Whether a line runs through a text or grazes it: pixels of half a thick line, and air. */
static bool is_grazed(const struct plot_scene *scene, const struct plot_box *b, const struct plot_box *stroke)
{
    const double air = scene->cells ? 0 : 3;
    return plot_box_stroked(&(struct plot_box){b->x0 - air, b->y0 - air, b->x1 + air, b->y1 + air}, stroke);
}

static double side_of(const struct plot_box *s, double x, double y)
{
    return (s->x1 - s->x0) * (y - s->y0) - (s->y1 - s->y0) * (x - s->x0);
}

static bool strokes_cross(const struct plot_box *a, const struct plot_box *b)
{
    return side_of(a, b->x0, b->y0) * side_of(a, b->x1, b->y1) < 0 &&
           side_of(b, a->x0, a->y0) * side_of(b, a->x1, a->y1) < 0;
}

static struct plot_box leader_of(const struct plot_label *l)
{
    return (struct plot_box){l->x, l->y, l->leader_x, l->leader_y};
}

/* Put l at place k of PLACES, distance units away. */
static void set_place(const struct plot_scene *scene, struct plot_label *l, int k, double distance)
{
    static const double sideways[SIDEWAYS] = {-0.9, -0.45, 0.45, 0.9};
    const double pi = 3.14159265358979323846;
    const double angle = k < DIRECTIONS ? 2 * pi * k / DIRECTIONS : k % 2 ? pi / 2 : 3 * pi / 2;
    const double dx = cos(angle), dy = sin(angle);
    const double flat = scene->cells ? 0.5 : 1; /* a character is twice as high as wide */
    /* the box slides along its edge as the direction turns, so that its nearest edge keeps the distance */
    const double slide_x = k < DIRECTIONS ? fmax(-1, fmin(1, 1.42 * dx)) : sideways[(k - DIRECTIONS) / 2];
    const double slide_y = fmax(-1, fmin(1, 1.42 * dy));
    double x = l->x + dx * distance + (slide_x - 1) * l->width / 2;
    double y = l->y + dy * distance * flat + (slide_y - 1) * l->height / 2;
    if (scene->cells) {
        x = floor(x + 0.5);
        y = floor(y + l->height / 2 + 0.5) - l->height / 2;
    }
    l->box = (struct plot_box){x, y, x + l->width, y + l->height};
    l->leader_x = fmax(x, fmin(l->x, x + l->width));
    l->leader_y = fmax(y, fmin(l->y, y + l->height));
    l->leader = !scene->cells && hypot(l->leader_x - l->x, l->leader_y - l->y) > 15;
}

static double scene_cost(const struct plot_scene *scene, const struct plot_label *l)
{
    const struct plot_box *b = &l->box, *f = &scene->frame, leader = leader_of(l);
    if (b->x0 < f->x0 || b->x1 > f->x1 || b->y0 < f->y0 || b->y1 > f->y1) return forbidden;
    double cost = 0;
    for (size_t i = 0; i < scene->n_boxes; i++) {
        if (plot_box_overlap(b, &scene->boxes[i])) return forbidden;
        if (l->leader && plot_box_stroked(&scene->boxes[i], &leader)) cost += 600;
    }
    for (size_t i = 0; i < scene->n_marks; i++) {
        const struct plot_box *m = &scene->marks[i];
        if (plot_box_overlap(b, m)) cost += 400;
        const bool own = fabs((m->x0 + m->x1) / 2 - l->x) < 12 && fabs((m->y0 + m->y1) / 2 - l->y) < 12;
        if (l->leader && !own && plot_box_stroked(m, &leader)) cost += 60;
    }
    for (size_t i = 0; i < scene->n_strokes; i++)
        if (is_grazed(scene, b, &scene->strokes[i])) cost += 400;
    return cost;
}

static double cost_of(const struct plot_scene *scene, const struct plot_label *labels, size_t n, size_t self,
                      double distance)
{
    const struct plot_label *l = &labels[self];
    double cost = distance * (scene->cells ? 10 : 1) + scene_cost(scene, l);
    const struct plot_box leader = leader_of(l);
    for (size_t i = 0; i < n && cost < forbidden; i++) {
        const struct plot_label *o = &labels[i];
        if (i == self || !o->shown) continue;
        if (plot_box_overlap(&l->box, &o->box)) return forbidden;
        const struct plot_box other = leader_of(o);
        if (l->leader && plot_box_stroked(&o->box, &leader)) cost += 600;
        if (o->leader && plot_box_stroked(&l->box, &other)) cost += 600;
        if (l->leader && o->leader && strokes_cross(&leader, &other)) cost += 200;
    }
    return cost;
}

/* The cheapest place of one label given the others. Returns whether it moved. */
static bool place_one(const struct plot_scene *scene, struct plot_label *labels, size_t n, size_t self)
{
    const double *distances = scene->cells ? distances_cells : distances_px;
    const size_t n_distances =
        scene->cells ? sizeof distances_cells / sizeof *distances_cells : sizeof distances_px / sizeof *distances_px;
    const struct plot_label before = labels[self];
    struct plot_label best = before;
    best.shown = false;
    double least = forbidden;
    for (size_t d = 0; d < n_distances && distances[d] < least; d++)
        for (int k = 0; k < PLACES; k++) {
            set_place(scene, &labels[self], k, distances[d]);
            /* the diagonals least: straight beside or above reads best */
            const double cost = cost_of(scene, labels, n, self, distances[d]) + (k % 4 ? 2 : 0);
            if (cost >= least) continue;
            least = cost;
            best = labels[self];
            best.shown = true;
        }
    labels[self] = best;
    return best.shown != before.shown ||
           (best.shown && (fabs(best.box.x0 - before.box.x0) > 1e-9 || fabs(best.box.y0 - before.box.y0) > 1e-9));
}

/* Which of two labels is placed first, in one of the ORDERS tried. */
static bool comes_first(const struct plot_label *l, const struct plot_label *o, int order)
{
    const double a = order < 2 ? o->weight : l->x, b = order < 2 ? l->weight : o->x;
    return order % 2 ? b < a : a < b;
}

/* From scratch: all in the given order, then in turn until nothing moves. Returns the cost of the whole. */
static double place_all(const struct plot_scene *scene, struct plot_label *labels, size_t n, int order)
{
    for (size_t i = 0; i < n; i++) labels[i].shown = false;
    for (size_t done = 0; done < n; done++) /* n is some tens: ranks are counted rather than sorted */
        for (size_t i = 0; i < n; i++) {
            size_t rank = 0;
            for (size_t j = 0; j < n; j++)
                if (comes_first(&labels[j], &labels[i], order) ||
                    (j < i && !comes_first(&labels[i], &labels[j], order)))
                    rank++;
            if (rank != done) continue;
            (void)place_one(scene, labels, n, i);
            break;
        }
    bool moved = true;
    for (int sweep = 0; sweep < SWEEPS_MAX && moved; sweep++) {
        moved = false;
        for (size_t i = 0; i < n; i++)
            if (place_one(scene, labels, n, i)) moved = true;
    }
    double cost = 0;
    for (size_t i = 0; i < n; i++) {
        const double far = hypot(labels[i].leader_x - labels[i].x, labels[i].leader_y - labels[i].y);
        cost += labels[i].shown ? cost_of(scene, labels, n, i, far) : 5000 * (1 + labels[i].weight);
    }
    return cost;
}

void plot_label_place(const struct plot_scene *scene, struct plot_label *labels, size_t n)
{
    enum { ORDERS = 4 };
    int best = 0;
    double least = HUGE_VAL;
    for (int order = 0; order < ORDERS; order++) {
        const double cost = place_all(scene, labels, n, order);
        if (!(cost < least)) continue;
        least = cost;
        best = order;
    }
    if (best != ORDERS - 1) (void)place_all(scene, labels, n, best);
}

static bool overlaps_any(const struct plot_box *b, const struct plot_box *others, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (plot_box_overlap(b, &others[i])) return true;
    return false;
}

static bool is_grazed_by_any(const struct plot_scene *scene, const struct plot_box *b)
{
    for (size_t i = 0; i < scene->n_strokes; i++)
        if (is_grazed(scene, b, &scene->strokes[i])) return true;
    return false;
}

size_t plot_label_clear(const struct plot_scene *scene, const struct plot_box *candidates, size_t n)
{
    size_t second = n;
    for (size_t i = 0; i < n; i++) {
        const struct plot_box *b = &candidates[i], *f = &scene->frame;
        if (b->x0 < f->x0 || b->x1 > f->x1 || b->y0 < f->y0 || b->y1 > f->y1) continue;
        if (overlaps_any(b, scene->boxes, scene->n_boxes)) continue;
        if (second == n) second = i;
        if (!overlaps_any(b, scene->marks, scene->n_marks) && !is_grazed_by_any(scene, b)) return i;
    }
    return second;
}
