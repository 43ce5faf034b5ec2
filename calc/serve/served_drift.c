/* served_drift -- how errors of servers' rows grow with clients and with ranks; of served.h. Derivation: MODEL.md
 * "Servers", *Drift*. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "calc/serve/served.h"

double served_ranks(const struct served_row *r) { return (double)(r->tp * r->attention_dp); }

static int ascending(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *v, size_t n)
{
    if (n == 0) return (double)NAN;
    qsort(v, n, sizeof *v, ascending);
    return v[(n - 1) / 2];
}

static bool same(double x, double y) { return !(x > y) && !(x < y); }

/* Alike in all but clients, or in all but the ranks (experts in parts or not). */
static bool beside(const struct served_row *x, const struct served_row *y, bool ranks)
{
    return strcmp(x->engine, y->engine) == 0 && strcmp(x->version, y->version) == 0 && x->family == y->family &&
           strcmp(x->device, y->device) == 0 && strcmp(x->weights, y->weights) == 0 &&
           same(x->prompt_tokens, y->prompt_tokens) && same(x->output_tokens, y->output_tokens) &&
           x->attention_dp == y->attention_dp &&
           (ranks ? same(x->clients, y->clients) && (x->ep > 1) == (y->ep > 1) : x->tp == y->tp && x->ep == y->ep);
}

/* ---- slopes of families ---- */

/* A number of clients, or of ranks, of a set: y is the mean of rows that repeat it. */
struct point {
    size_t family, set;
    double x, y;
    int64_t rows;
};

/* Sums of squares about a set's, or all of a family's sets', means. */
struct sums {
    double n, x, y, xx, xy, yy;
};

static void add_point(struct sums *m, const struct point *p)
{
    m->n++;
    m->x += p->x;
    m->y += p->y;
    m->xx += p->x * p->x;
    m->xy += p->x * p->y;
    m->yy += p->y * p->y;
}

static void add_set(struct sums *to, const struct sums *m)
{
    to->n += m->n - 1; /* its mean is its own */
    to->xx += m->xx - m->x * m->x / m->n;
    to->xy += m->xy - m->x * m->y / m->n;
    to->yy += m->yy - m->y * m->y / m->n;
}

/* Room of one group at a time. */
struct room {
    struct point *point;
    struct sums *family; /* [families] */
    double *slope;       /* of sets */
    bool *done;          /* [rows] */
};

static bool belongs(const struct served_row *r, const struct served_group *g)
{
    return strcmp(r->engine, g->engine) == 0 &&
           (strcmp(g->kind, "all") == 0 || (r->kind && strcmp(r->kind, g->kind) == 0)) && !r->why &&
           !isnan(r->predicted_s);
}

/* The points of the set that row i is of. */
static size_t collect(const struct served *s, const struct served_group *g, size_t i, bool ranks, struct room *room)
{
    size_t n = 0;
    for (size_t k = i; k < s->n; k++) {
        const struct served_row *r = &s->row[k];
        if (!belongs(r, g) || !beside(&s->row[i], r, ranks)) continue;
        const double x = log2(ranks ? served_ranks(r) : r->clients), y = log(r->predicted_s / r->tpot_s);
        size_t at = 0;
        room->done[k] = true;
        while (at < n && !same(room->point[at].x, x)) at++;
        if (at == n) room->point[n++] = (struct point){.x = x};
        struct point *p = &room->point[at];
        p->y += (y - p->y) / (double)++p->rows;
    }
    return n;
}

/* Sets, their median slope, and the slopes of families; how many. */
static size_t slopes_of(const struct served *s, const struct served_group *g, size_t group, bool ranks,
                        struct room *room, struct served_slope *out, struct served_drift *drift)
{
    size_t sets = 0, n = 0;
    double left = 0, free_n = 0;
    *drift = (struct served_drift){.mean = (double)NAN, .half = (double)NAN, .p = (double)NAN};
    memset(room->done, 0, (s->n + 1) * sizeof *room->done);
    memset(room->family, 0, (s->families_n + 1) * sizeof *room->family);
    for (size_t i = 0; i < s->n; i++) {
        struct sums set = {0}, about = {0};
        if (room->done[i] || !belongs(&s->row[i], g)) continue;
        const size_t points = collect(s, g, i, ranks, room);
        if (points < 2) continue;
        for (size_t k = 0; k < points; k++) add_point(&set, &room->point[k]);
        add_set(&about, &set);
        add_set(&room->family[s->row[i].family], &set);
        room->slope[sets++] = about.xy / about.xx;
    }
    for (size_t f = 0; f < s->families_n; f++) {
        const struct sums *m = &room->family[f];
        if (!(m->xx > 0)) continue;
        left += fmax(0, m->yy - m->xy * m->xy / m->xx);
        free_n += m->n - 1;
        out[n++] = (struct served_slope){group, m->xy / m->xx, 1 / m->xx};
    }
    const double of_a_row = free_n > 0 ? left / free_n : (double)NAN;
    for (size_t k = 0; k < n; k++) out[k].variance *= of_a_row;
    drift->sets = (int64_t)sets;
    drift->models = (int64_t)n;
    drift->median = median(room->slope, sets);
    for (size_t k = 0; k < sets; k++) room->slope[k] = fabs(room->slope[k] - drift->median);
    drift->se = sets > 1 ? 1.2533 * 1.4826 * median(room->slope, sets) / sqrt((double)sets) : (double)NAN;
    return n;
}

/* ---- groups ---- */

/* Weighted mean of a group's slopes, its weight, the sum of squared weights and of weighted squares about the mean. */
struct pooled {
    double n, mean, weight, weight2, squares;
};

static double weight_of(const struct served_slope *s, double spread2)
{
    return 1 / (spread2 + fmax(s->variance, 1e-14)); /* rows that are exact are within 1e-7 a doubling */
}

static struct pooled pool_group(const struct served_slope *slope, size_t n, size_t group, double spread2)
{
    struct pooled p = {0};
    for (size_t i = 0; i < n; i++) {
        if (slope[i].group != group || isnan(slope[i].variance)) continue;
        const double w = weight_of(&slope[i], spread2);
        p.n++;
        p.weight += w;
        p.weight2 += w * w;
        p.mean += w * slope[i].slope;
    }
    p.mean /= p.weight;
    for (size_t i = 0; i < n; i++) {
        if (slope[i].group != group || isnan(slope[i].variance)) continue;
        const double d = slope[i].slope - p.mean;
        p.squares += weight_of(&slope[i], spread2) * d * d;
    }
    return p;
}

void served_pool(const struct served_slope *slope, size_t n, size_t groups, double *mean, double *se, double *degrees)
{
    double q = 0, scale = 0, free_n = 0;
    for (size_t k = 0; k < groups; k++) {
        const struct pooled p = pool_group(slope, n, k, 0);
        if (!(p.n > 0)) continue;
        q += p.squares;
        scale += p.weight - p.weight2 / p.weight;
        free_n += p.n - 1;
    }
    const double spread2 = free_n > 0 ? fmax(0, (q - free_n) / scale) : 0;
    double squares = 0;
    for (size_t k = 0; k < groups; k++) {
        const struct pooled p = pool_group(slope, n, k, spread2);
        mean[k] = p.n > 0 ? p.mean : (double)NAN;
        se[k] = p.n > 0 && free_n > 0 ? 1 / sqrt(p.weight) : (double)NAN;
        if (p.n > 0) squares += p.squares;
    }
    const double factor = free_n > 0 ? sqrt(fmax(1, squares / free_n)) : (double)NAN;
    for (size_t k = 0; k < groups; k++) se[k] *= factor;
    *degrees = free_n;
}

void served_holm(const double *p, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = isnan(p[i]) ? (double)NAN : 0;
        for (size_t j = 0; j < n; j++) {
            size_t as_large = 0;
            if (!(p[j] <= p[i])) continue;
            for (size_t k = 0; k < n; k++) as_large += p[k] >= p[j];
            out[i] = fmax(out[i], fmin(1, (double)as_large * p[j]));
        }
    }
}

static struct served_drift *drift_of(struct served_group *g, bool ranks)
{
    return ranks ? &g->drift_tp : &g->drift_clients;
}

enum err_code served_drifts(struct arena *a, const struct served *s, struct served_group *g, size_t n, struct err *e)
{
    struct room room = {.point = arena_array(a, s->n + 1, sizeof *room.point),
                        .family = arena_array(a, s->families_n + 1, sizeof *room.family),
                        .slope = arena_array(a, s->n + 1, sizeof *room.slope),
                        .done = arena_array(a, s->n + 1, sizeof *room.done)};
    struct served_slope *slope = arena_array(a, (s->families_n + 1) * (n + 1), sizeof *slope);
    double *mean = arena_array(a, n + 1, sizeof *mean), *se = arena_array(a, n + 1, sizeof *se);
    double *p = arena_array(a, 2 * n + 1, sizeof *p), *adjusted = arena_array(a, 2 * n + 1, sizeof *adjusted);
    if (!room.point || !room.family || !room.slope || !room.done || !slope || !mean || !se || !p || !adjusted)
        return err_nomem(e);
    for (size_t ranks = 0; ranks < 2; ranks++) {
        double degrees;
        size_t slopes = 0;
        for (size_t i = 0; i < n; i++) {
            const size_t of = slopes_of(s, &g[i], i, ranks == 1, &room, slope + slopes, drift_of(&g[i], ranks == 1));
            if (strcmp(g[i].kind, "all") != 0) slopes += of; /* "all" counts no family twice */
        }
        served_pool(slope, slopes, n, mean, se, &degrees);
        for (size_t i = 0; i < n; i++) {
            struct served_drift *d = drift_of(&g[i], ranks == 1);
            d->mean = mean[i];
            d->half = degrees > 0 ? gsl_cdf_tdist_Pinv(0.975, degrees) * se[i] : (double)NAN;
            p[2 * i + ranks] =
                degrees > 0 && se[i] > 0 ? 2 * gsl_cdf_tdist_Q(fabs(mean[i] / se[i]), degrees) : (double)NAN;
        }
    }
    served_holm(p, 2 * n, adjusted);
    for (size_t i = 0; i < n; i++) {
        g[i].drift_clients.p = adjusted[2 * i];
        g[i].drift_tp.p = adjusted[2 * i + 1];
    }
    return ERR_OK;
}
