#include "calc/cli/probe_known.h"

#include <stdlib.h>
#include <string.h>

#include "calc/base/json.h"
#include "calc/cli/probe_cells.h"

static int by_time(const void *x, const void *y)
{
    const double a = (*(const struct result *const *)x)->summary.median_s;
    const double b = (*(const struct result *const *)y)->summary.median_s;
    return (a > b) - (a < b);
}

/* The same cells, in whatever order their files have them, but for what counts before them there. */
static bool same_cells(struct arena *a, const char *x, const char *y)
{
    struct json in_x, in_y, v, w;
    const char *key, *text, *other;
    if (strcmp(x, y) == 0) return true;
    if (json_parse(a, "cells", x, strlen(x), &in_x, NULL) != ERR_OK ||
        json_parse(a, "cells", y, strlen(y), &in_y, NULL) != ERR_OK ||
        json_len(&in_x) - json_has(&in_x, PROBE_CELLS_PRECEDENCE) !=
            json_len(&in_y) - json_has(&in_y, PROBE_CELLS_PRECEDENCE))
        return false;
    for (size_t i = 0; json_at(&in_x, i, &key, &v); i++)
        if (strcmp(key, PROBE_CELLS_PRECEDENCE) != 0 &&
            (!json_has(&in_y, key) || json_str(&v, &text, NULL) != ERR_OK || !json_get(&in_y, key, &w) ||
             json_str(&w, &other, NULL) != ERR_OK || strcmp(text, other) != 0))
            return false;
    return true;
}

/* dated: y says when it was made. */
static bool same_row(struct arena *a, const struct result *x, const struct result *y, bool dated)
{
    if (x->shape.n != y->shape.n || strcmp(x->row_kind, y->row_kind) != 0 || strcmp(x->dtype, y->dtype) != 0 ||
        strcmp(x->origin.device, y->origin.device) != 0 || (dated && strcmp(x->made, y->made) != 0))
        return false;
    for (size_t i = 0; i < x->shape.n; i++)
        if (strcmp(x->shape.arg[i].name, y->shape.arg[i].name) != 0 || x->shape.arg[i].value != y->shape.arg[i].value)
            return false;
    return same_cells(a, x->cells, y->cells);
}

enum err_code probe_known_read(struct arena *a, struct store *s, struct probe_known *out, struct err *e)
{
    const struct store_filter f = {.outcome = result_outcome_name(RESULT_IMPORTED)};
    struct result *r;
    TRY(store_read(a, s, &f, &r, &out->n, e));
    const size_t n = out->n;
    *out = (struct probe_known){.n = 0};
    return probe_known_add(a, out, r, n, e);
}

enum err_code probe_known_add(struct arena *a, struct probe_known *known, const struct result *r, size_t n,
                              struct err *e)
{
    const struct result **all = arena_array(a, known->n + n + 1, sizeof *all);
    if (!all) return err_nomem(e);
    if (known->n) memcpy(all, known->v, known->n * sizeof *all);
    for (size_t i = 0; i < n; i++) all[known->n + i] = &r[i];
    known->v = all;
    known->n += n;
    qsort(known->v, known->n, sizeof *known->v, by_time);
    return ERR_OK;
}

bool probe_known_has(struct arena *a, const struct probe_known *known, const struct result *r, bool dated)
{
    size_t lo = 0, hi = known->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (known->v[mid]->summary.median_s < r->summary.median_s)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < known->n && !(known->v[lo]->summary.median_s > r->summary.median_s); lo++)
        if (same_row(a, known->v[lo], r, dated)) return true;
    return false;
}

/* In an order in which equal rows of a file stand together. */
static int by_row(const struct result *x, const struct result *y)
{
    int d = (x->summary.median_s > y->summary.median_s) - (x->summary.median_s < y->summary.median_s);
    if (!d) d = strcmp(x->row_kind, y->row_kind);
    if (!d) d = strcmp(x->made, y->made);
    if (!d) d = strcmp(x->dtype, y->dtype);
    if (!d) d = strcmp(x->origin.device, y->origin.device);
    if (!d) d = (x->shape.n > y->shape.n) - (x->shape.n < y->shape.n);
    for (size_t i = 0; !d && i < x->shape.n; i++) {
        const int64_t p = x->shape.arg[i].value, q = y->shape.arg[i].value;
        d = strcmp(x->shape.arg[i].name, y->shape.arg[i].name);
        if (!d) d = (p > q) - (p < q);
    }
    return d ? d : strcmp(x->cells, y->cells);
}

static int by_row_and_place(const void *x, const void *y)
{
    const struct result *a = *(const struct result *const *)x, *b = *(const struct result *const *)y;
    const int d = by_row(a, b);
    return d ? d : (a > b) - (a < b);
}

enum err_code probe_known_repeats(struct arena *a, const struct result *r, size_t n, bool *again, struct err *e)
{
    const struct result **all = arena_array(a, n + 1, sizeof *all);
    if (!all) return err_nomem(e);
    for (size_t i = 0; i < n; i++) all[i] = &r[i];
    qsort(all, n, sizeof *all, by_row_and_place);
    for (size_t i = 0; i < n; i++) again[all[i] - r] = i > 0 && by_row(all[i - 1], all[i]) == 0;
    return ERR_OK;
}
