#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/sym/interval.h"
#include "calc/sym/normal.h"

enum {
    SMALL_POINTS = 128,   /* of whole numbers */
    FRACTION_POINTS = 96, /* of fractions, too */
    WIDE_POINTS = 128,    /* of any size, too */
    POINTS = SMALL_POINTS + FRACTION_POINTS + WIDE_POINTS,
    FEW_POINTS = 8,
    EXACT_POINTS = 24,
    GROW_EVERY = 8,
    NODES_MAX = 20000000, /* evaluated altogether */
};

static const uint64_t EXACT_WORK = 1000000; /* not a unit */ /* of exact evaluation: some tens of milliseconds */

/* ---- points ---- */

/* a digest of point and variable */
static uint64_t digest(uint64_t point, uint64_t variable)
{
    uint64_t h = point * UINT64_C(0x9E3779B97F4A7C15) + (variable + 1) * UINT64_C(0xD1B54A32D192ED03);
    h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
    return h ^ h >> 31;
}

/* small numbers at first */
static struct rat coordinate(uint64_t point, uint64_t variable)
{
    const uint64_t h = digest(point, variable), kind = h >> 60;
    if (point < SMALL_POINTS) return (struct rat){(int64_t)(1 + h % (3 + point / GROW_EVERY)), 1};
    struct rat r = {(int64_t)(1 + h % 23), 1};
    if (point < SMALL_POINTS + FRACTION_POINTS) {
        if (kind < 12) (void)rat_make(r.num, (int64_t)(2 + (h >> 8) % 11), &r);
        return r;
    }
    const uint64_t size = (h >> 8) % 51, low = h >> 16;
    if (size < 10) {
        (void)rat_make((int64_t)(1 + low % 3), INT64_C(1) << (10 - size), &r);
    } else {
        const uint64_t top = UINT64_C(1) << (size - 10);
        r.num = (int64_t)(top + low % top);
    }
    return r;
}

static int by_name(const void *x, const void *y)
{
    const struct sym_binding *a = x, *b = y;
    return strcmp(sym_name(a->var), sym_name(b->var));
}

/* ---- one search ---- */

struct comparison {
    struct sym_ctx *c;
    const struct sym *side[2];
    struct sym_order order;
    size_t root[2];         /* positions */
    struct interval *value; /* [position] */
    struct sym_point p;
    size_t tried; /* points where both have bounds */
    struct err *err;
};

static enum err_code comparison_open(struct comparison *k, struct arena *scratch)
{
    if (!sym_order_make(scratch, 2, k->side, &k->order)) return err_nomem(k->err);
    k->value = arena_array(scratch, k->order.n, sizeof *k->value);
    k->p.at = arena_array(k->c->arena, k->order.n + 1, sizeof *k->p.at);
    if (!k->value || !k->p.at) return err_nomem(k->err);
    for (size_t i = 0; i < k->order.n; i++)
        if (k->order.node[i]->op == SYM_VAR) k->p.at[k->p.n++].var = k->order.node[i];
    if (k->p.n) qsort(k->p.at, k->p.n, sizeof *k->p.at, by_name);
    for (size_t i = 0; i < 2; i++) (void)sym_order_find(&k->order, k->side[i], &k->root[i]);
    return ERR_OK;
}

static void move_to(struct comparison *k, uint64_t point)
{
    for (size_t i = 0; i < k->p.n; i++) {
        const struct rat r = coordinate(point, i);
        k->value[k->order.pos[k->p.at[i].var->index] - 1] = interval_rational(r.num, r.den);
    }
}

/* e there, exactly; false: no value, or it would take too long */
static bool exact_value(struct comparison *k, const struct sym *e, const struct sym **out)
{
    return sym_normal(k->c, sym_bind(k->c, e, k->p.at, k->p.n), out, NULL) == ERR_OK && sym_constant(*out, NULL);
}

static void bind_at(struct comparison *k, uint64_t point)
{
    for (size_t i = 0; i < k->p.n; i++) {
        const struct rat r = coordinate(point, i);
        k->p.at[i].value = sym_rational(k->c, r);
    }
}

/* The values of both where bounds told them apart. */
static void tell_values(struct comparison *k, uint64_t point)
{
    bind_at(k, point);
    for (size_t i = 0; i < 2; i++) {
        const struct interval v = k->value[k->root[i]];
        if (exact_value(k, k->side[i], &k->p.value[i])) continue;
        k->p.value[i] = sym_num(k->c, isfinite(v.hi) ? v.lo + (v.hi - v.lo) / 2.0 : v.lo);
    }
}

/* only whole numbers, sums, products and quotients: no atom whose value could hide that it is zero */
static bool is_plain_number(const struct sym *e)
{
    struct sym_order o;
    struct arena *scratch = arena_open();
    bool plain = scratch && sym_order_make(scratch, 1, &e, &o);
    for (size_t i = 0; plain && i < o.n; i++)
        plain = o.node[i]->op == SYM_CONST || o.node[i]->op == SYM_ADD || o.node[i]->op == SYM_MUL ||
                o.node[i]->op == SYM_DIV ||
                (o.node[i]->op == SYM_POW && sym_is_rational(o.node[i]->b) && o.node[i]->b->den == 1);
    arena_close(scratch);
    return plain;
}

static bool differ_exactly(struct comparison *k, uint64_t point)
{
    const struct sym *gap;
    bind_at(k, point);
    for (size_t i = 0; i < 2; i++)
        if (!exact_value(k, k->side[i], &k->p.value[i])) return false;
    k->tried++;
    if (k->p.value[0] == k->p.value[1]) return false;
    return exact_value(k, sym_sub(k->c, k->p.value[0], k->p.value[1]), &gap) && !sym_is_int(gap, 0) &&
           is_plain_number(gap);
}

/* few: only the first points, and by bounds alone */
static enum err_code search(struct comparison *k, struct arena *scratch, bool few, bool *found)
{
    TRY(comparison_open(k, scratch));
    const size_t affordable = NODES_MAX / k->order.n, most = !k->p.n ? 1 : few ? FEW_POINTS : POINTS;
    const size_t points = affordable < most ? affordable : most;
    uint64_t close[EXACT_POINTS];
    size_t n_close = 0;
    for (uint64_t i = 0; i < points && !*found; i++) {
        move_to(k, i);
        interval_eval(&k->order, k->value);
        const struct interval *x = &k->value[k->root[0]], *y = &k->value[k->root[1]];
        const bool both = interval_defined(*x) && interval_defined(*y);
        k->tried += both;
        *found = both && interval_apart(*x, *y);
        if (*found) tell_values(k, i);
        if ((!both || x->lo < x->hi || y->lo < y->hi) && n_close < EXACT_POINTS) close[n_close++] = i;
    }
    for (size_t i = 0; i < n_close && !few && !*found && *k->c->work; i++) *found = differ_exactly(k, close[i]);
    return sym_check(k->c, k->err);
}

/* *tried: how many points had both values */
static enum err_code find_point(struct sym_ctx *c, const struct sym *a, const struct sym *b, bool few,
                                struct sym_point *out, bool *found, size_t *tried, struct err *err)
{
    struct comparison k = {.c = c, .side = {a, b}, .err = err};
    uint64_t work = EXACT_WORK, *const before = c->work;
    *found = false;
    TRY(sym_check(c, err));
    struct arena *scratch = arena_open();
    if (!scratch) return err_nomem(err);
    c->work = &work;
    const enum err_code code = search(&k, scratch, few, found);
    c->work = before;
    arena_close(scratch);
    if (code == ERR_OK && *found && out) *out = k.p;
    *tried = k.tried;
    return code;
}

enum err_code sym_counterexample(struct sym_ctx *c, const struct sym *a, const struct sym *b, struct sym_point *out,
                                 struct err *err)
{
    bool found;
    size_t tried;
    TRY(find_point(c, a, b, false, out, &found, &tried, err));
    return found ? ERR_OK : err_set(err, ERR_NO, "no point among %d where the two differ", POINTS);
}

enum err_code sym_compare(struct sym_ctx *c, const struct sym *a, const struct sym *b, enum sym_verdict *verdict,
                          struct sym_point *point, struct err *err)
{
    struct err refused = {.code = ERR_OK};
    bool equal = false, found = false;
    size_t tried = 0;
    TRY(find_point(c, a, b, true, point, &found, &tried, err)); /* what differs need not be expanded */
    if (found) {
        *verdict = SYM_VERDICT_DIFFER;
        return ERR_OK;
    }
    const enum err_code code = sym_equal(c, a, b, &equal, &refused);
    if (code == ERR_OK && equal) {
        *verdict = SYM_VERDICT_EQUAL;
        return ERR_OK;
    }
    if (code == ERR_OK || code == ERR_RANGE) TRY(find_point(c, a, b, false, point, &found, &tried, err));
    if (!found && (tried == 0 || (code != ERR_OK && code != ERR_RANGE))) {
        if (code == ERR_OK) return err_set(err, ERR_RANGE, "no point among %d where both have a value", POINTS);
        if (err) *err = refused;
        return code;
    }
    *verdict = found ? SYM_VERDICT_DIFFER : SYM_VERDICT_UNKNOWN;
    return ERR_OK;
}
