#include "calc/sym/sym.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/sym/node.h"

enum { TABLE_FIRST = 256, SLAB_NODES = 128 };

/* ---- double arithmetic of closed nodes: the same as the tape's ---- */

static bool fits_double(int64_t n)
{
    const uint64_t m = rat_magnitude(n);
    return m == 0 || m >> __builtin_ctzll(m) <= UINT64_C(1) << 53;
}

struct sym_scale sym_scale_of(const struct sym *k)
{
    if (sym_is_rational(k) && (k->den & (k->den - 1)) != 0 && fits_double(k->num) && fits_double(k->den))
        return (struct sym_scale){(double)k->num, (double)k->den};
    return (struct sym_scale){sym_value(k), 1.0};
}

double sym_pow_of(double x, double y)
{
    if (!(y >= 2.0 && y <= (double)SYM_POW_MAX && y == floor(y))) return pow(x, y);
    double r = 1.0;
    for (unsigned n = (unsigned)y;; x *= x) {
        if (n & 1) r *= x;
        n >>= 1;
        if (n == 0) return r;
    }
}

/* ---- interning ---- */

static uint32_t mix(uint64_t op, uint64_t x, uint64_t y)
{
    uint64_t h = (op + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ x * UINT64_C(0xC2B2AE3D27D4EB4F);
    h = (h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9) + y * UINT64_C(0x165667B19E3779F9);
    h = (h ^ h >> 32) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)(h >> 32);
}

static bool same(const struct sym *x, const struct sym *y)
{
    if (x->hash != y->hash || x->op != y->op || x->opaque != y->opaque) return false;
    if (x->op == SYM_VAR) return strcmp(x->name, y->name) == 0;
    if (x->op == SYM_CONST)
        return x->opaque ? memcmp(&x->value, &y->value, sizeof x->value) == 0 : x->num == y->num && x->den == y->den;
    return x->a == y->a && x->b == y->b;
}

const struct sym *sym_fail(struct sym_ctx *c)
{
    c->failed = true;
    return &c->failed_node;
}

static bool grow(struct sym_ctx *c)
{
    const size_t n = c->n_table ? 2 * c->n_table : TABLE_FIRST;
    const struct sym **t = arena_array(c->arena, n, sizeof *t);
    if (!t) return false;
    for (size_t i = 0; i < c->n_table; i++) {
        if (!c->table[i]) continue;
        size_t at = c->table[i]->hash & (n - 1);
        while (t[at]) at = (at + 1) & (n - 1);
        t[at] = c->table[i];
    }
    c->table = t;
    c->n_table = n;
    return true;
}

static const struct sym *intern(struct sym_ctx *c, const struct sym *probe)
{
    if (c->failed) return &c->failed_node;
    if (2 * c->n_nodes >= c->n_table && !grow(c)) return sym_fail(c);
    size_t at = probe->hash & (c->n_table - 1);
    for (; c->table[at]; at = (at + 1) & (c->n_table - 1))
        if (same(c->table[at], probe)) return c->table[at];
    if (c->n_nodes >= UINT32_MAX - 1) return sym_fail(c);
    if (c->n_slab == 0) {
        c->slab = arena_array(c->arena, SLAB_NODES, sizeof *c->slab);
        if (!c->slab) return sym_fail(c);
        c->n_slab = SLAB_NODES;
    }
    struct sym *e = c->slab++;
    c->n_slab--;
    *e = *probe;
    e->index = (uint32_t)++c->n_nodes;
    if (e->op == SYM_VAR && !(e->name = arena_strndup(c->arena, probe->name, strlen(probe->name)))) return sym_fail(c);
    return c->table[at] = e;
}

static bool begins_minus(enum sym_op op, const struct sym *a, const struct sym *b)
{
    switch (op) {
    case SYM_ADD: return a->minus && b->minus; /* the printer puts a positive operand first */
    case SYM_MUL: return a->minus && a->op == SYM_CONST;
    case SYM_DIV: return a->minus && a->op != SYM_ADD;
    case SYM_CONST:
    case SYM_VAR:
    case SYM_POW:
    case SYM_MIN:
    case SYM_MAX:
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_LOG:
    case SYM_EXP: break;
    }
    return false;
}

static bool is_above(enum sym_op op, const struct sym *a, const struct sym *b)
{
    switch (op) {
    case SYM_ADD:
    case SYM_MUL:
    case SYM_DIV:
    case SYM_MIN: return a->above && b->above;
    case SYM_MAX: return a->above || b->above;
    case SYM_POW:
    case SYM_CEIL: return a->above;
    case SYM_EXP: return true;
    case SYM_CONST:
    case SYM_VAR:
    case SYM_FLOOR:
    case SYM_LOG: break;
    }
    return false;
}

static uint32_t count_flat(enum sym_op op, const struct sym *a, const struct sym *b)
{
    if (op == SYM_ADD) {
        const size_t n = sym_n_terms(a) + sym_n_terms(b);
        return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    }
    if (op != SYM_MUL || a->closed) return 1;
    const size_t n = sym_n_factors(a) + sym_n_factors(b);
    return n <= SYM_BLOCK ? (uint32_t)n : 1; /* a longer product is one factor to the next */
}

const struct sym *sym_node(struct sym_ctx *c, enum sym_op op, const struct sym *a, const struct sym *b)
{
    if (c->failed) return &c->failed_node;
    struct sym p = {.op = (uint8_t)op, .hash = mix(op, a->index, b ? b->index : 0), .value = (double)NAN};
    p.a = a;
    p.b = b;
    p.closed = a->closed && (!b || b->closed);
    if (p.closed) p.value = sym_closed_value(op, a, b, &p.exponent);
    const bool whole = a->whole && (!b || b->whole);
    p.whole = op == SYM_CEIL || op == SYM_FLOOR ||
              (whole && op != SYM_DIV && op != SYM_POW && op != SYM_LOG && op != SYM_EXP);
    p.minus = begins_minus(op, a, b);
    p.above = is_above(op, a, b);
    p.n_flat = count_flat(op, a, b);
    const unsigned x = a->need, y = b ? b->need : 0, n = x > y ? x : y > x ? y : x + 1;
    p.need = (uint8_t)(p.closed ? 0 : n < UINT8_MAX ? n : UINT8_MAX);
    return intern(c, &p);
}

const struct sym *sym_rational(struct sym_ctx *c, struct rat r)
{
    struct sym p = {
        .op = SYM_CONST, .n_flat = 1, .closed = true, .whole = r.den == 1, .minus = r.num<0, .above = r.num> 0};
    p.hash = mix(SYM_CONST, (uint64_t)r.num, (uint64_t)r.den);
    p.value = (double)((long double)r.num / (long double)r.den);
    p.num = r.num;
    p.den = r.den;
    return intern(c, &p);
}

struct sym_ctx *sym_open(struct arena *a)
{
    struct sym_ctx *c = arena_alloc(a, sizeof *c);
    if (!c) return NULL;
    c->arena = a;
    c->failed_node = (struct sym){.op = SYM_CONST, .n_flat = 1, .closed = true, .opaque = true, .value = (double)NAN};
    c->zero = sym_int(c, 0);
    c->one = sym_int(c, 1);
    c->minus_one = sym_int(c, -1);
    return c->failed ? NULL : c;
}

enum err_code sym_check(const struct sym_ctx *c, struct err *e) { return c->failed ? err_nomem(e) : ERR_OK; }

/* ---- leaves ---- */

const struct sym *sym_int(struct sym_ctx *c, int64_t n) { return sym_rational(c, (struct rat){n, 1}); }

const struct sym *sym_rat(struct sym_ctx *c, int64_t num, int64_t den)
{
    struct rat r;
    if (rat_make(num, den, &r)) return sym_rational(c, r);
    return sym_node(c, SYM_DIV, sym_int(c, num), sym_int(c, den));
}

const struct sym *sym_num(struct sym_ctx *c, double x)
{
    int e;
    if (x >= -0x1p63 && x < 0x1p63 && x == floor(x)) return sym_int(c, (int64_t)x);
    if (isfinite(x)) {
        int64_t m = (int64_t)ldexp(frexp(x, &e), 53); /* x = m * 2^(e - 53), not 0 */
        const int zeros = __builtin_ctzll(rat_magnitude(m));
        m /= INT64_C(1) << zeros;
        e += zeros - 53;
        if (e < 0 && e > -63) return sym_rational(c, (struct rat){m, INT64_C(1) << -e});
    }
    struct sym p = {
        .op = SYM_CONST, .n_flat = 1, .closed = true, .opaque = true, .minus = x<0.0, .above = x> 0.0, .value = x};
    p.whole = isfinite(x) && x == floor(x);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    p.hash = mix(SYM_CONST, bits, 0);
    return intern(c, &p);
}

const struct sym *sym_var(struct sym_ctx *c, const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *s = name; *s; s++) h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
    struct sym p = {.op = SYM_VAR, .n_flat = 1, .above = true, .hash = mix(SYM_VAR, h, 0), .value = (double)NAN};
    p.name = name;
    return intern(c, &p);
}

enum sym_op sym_op(const struct sym *e) { return (enum sym_op)e->op; }
const char *sym_name(const struct sym *e) { return e->op == SYM_VAR ? e->name : NULL; }

bool sym_constant(const struct sym *e, double *value)
{
    if (e->closed && value) *value = sym_value(e);
    return e->closed;
}
