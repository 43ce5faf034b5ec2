/* sym_mod -- an expression at a point of the integers modulo the prime 2^61 - 1: equal expressions have equal values,
 * with no rounding; unequal ones almost never do. Powers that are no small integer are hashes of what they are of, as
 * min, max, ceil and floor are unless of small fractions; exp is a permutation and log its inverse. So the builder's
 * identities hold: S*(1/S) is written S*1/S and read as 1, and log, ceil and min of both must agree. */
#ifndef RIDGE_TESTS_SYM_MOD_H
#define RIDGE_TESTS_SYM_MOD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "calc/sym/node.h"

#define SYM_MOD_P ((UINT64_C(1) << 61) - 1)

static inline uint64_t mod_mul(uint64_t a, uint64_t b)
{
    const uint64_t mask = UINT64_C(0xffffffff), al = a & mask, ah = a >> 32, bl = b & mask, bh = b >> 32;
    const uint64_t mid = ah * bl + (al * bl >> 32), mid2 = al * bh + (mid & mask); /* a, b < 2^61: no overflow */
    const uint64_t hi = ah * bh + (mid >> 32) + (mid2 >> 32), lo = mid2 << 32 | (al * bl & mask);
    const uint64_t r = (lo & SYM_MOD_P) + (lo >> 61 | hi << 3);
    return r >= SYM_MOD_P ? r - SYM_MOD_P : r;
}

static inline uint64_t mod_add(uint64_t a, uint64_t b)
{
    const uint64_t r = a + b;
    return r >= SYM_MOD_P ? r - SYM_MOD_P : r;
}

static inline uint64_t mod_pow(uint64_t a, uint64_t n)
{
    uint64_t r = 1;
    for (; n; n >>= 1, a = mod_mul(a, a))
        if (n & 1) r = mod_mul(r, a);
    return r;
}

static inline uint64_t mod_inverse(uint64_t a) { return mod_pow(a, SYM_MOD_P - 2); } /* 0 for 0 */

static inline uint64_t mod_int(int64_t n)
{
    const uint64_t m = (n < 0 ? 0 - (uint64_t)n : (uint64_t)n) % SYM_MOD_P;
    return n < 0 && m ? SYM_MOD_P - m : m;
}

static inline uint64_t mod_hash(uint64_t op, uint64_t a, uint64_t b)
{
    uint64_t h = (op + 7) * UINT64_C(0x9E3779B97F4A7C15) ^ a * UINT64_C(0xC2B2AE3D27D4EB4F);
    h = (h ^ h >> 29) * UINT64_C(0xBF58476D1CE4E5B9) + b * UINT64_C(0x165667B19E3779F9);
    return ((h ^ h >> 32) * UINT64_C(0x94D049BB133111EB)) % SYM_MOD_P;
}

/* a = n/d with |n| and d below 2^15, if there is such a fraction: Euclid, stopped halfway */
static inline bool mod_fraction(uint64_t a, int64_t *n, int64_t *d)
{
    const int64_t limit = INT64_C(1) << 15;
    int64_t r = (int64_t)SYM_MOD_P, s = (int64_t)a, t = 0, u = 1; /* r = t*a, s = u*a, and |t|, |u| <= p */
    while (s >= limit) {
        const int64_t q = r / s, next = r - q * s, v = t - q * u;
        r = s;
        s = next;
        t = u;
        u = v;
    }
    *n = u < 0 ? -s : s;
    *d = u < 0 ? -u : u;
    return *d < limit;
}

/* A permutation of the residues and its inverse, with 0 -> 1, for exp and log: 1 + 31*a^17; 17 is prime to p - 1. */
enum { MOD_EXP_POWER = 17, MOD_EXP_FACTOR = 31 };
static inline uint64_t mod_exp(uint64_t a) { return mod_add(1, mod_mul(MOD_EXP_FACTOR, mod_pow(a, MOD_EXP_POWER))); }
static inline uint64_t mod_log(uint64_t a)
{
    const uint64_t root = UINT64_C(1763291712928118903); /* its inverse modulo p - 1 */
    return mod_pow(mod_mul(mod_add(a, SYM_MOD_P - 1), mod_inverse(MOD_EXP_FACTOR)), root);
}

static inline uint64_t mod_node(const struct sym *e, uint64_t a, uint64_t b)
{
    uint64_t h = 1469598103;
    int64_t n = 0, d = 1, m = 0, f = 1;
    switch (sym_op(e)) {
    case SYM_CONST:
        if (!e->opaque) return mod_mul(mod_int(e->num), mod_inverse(mod_int(e->den)));
        memcpy(&h, &e->value, sizeof h);
        if (!e->minus) return mod_hash(1, h, 0);
        h ^= UINT64_C(1) << 63; /* -x is (-1)*x to the printer */
        return SYM_MOD_P - mod_hash(1, h, 0);
    case SYM_VAR:
        for (const char *s = e->name; *s; s++) h = mod_hash(2, h, (unsigned char)*s);
        return h;
    case SYM_ADD: return mod_add(a, b);
    case SYM_MUL: return mod_mul(a, b);
    case SYM_DIV: return mod_mul(a, mod_inverse(b));
    case SYM_POW:
        if (a == 1) return 1;
        if (b < 4096) return mod_pow(a, b);
        if (SYM_MOD_P - b < 4096) return mod_inverse(mod_pow(a, SYM_MOD_P - b));
        break;
    case SYM_MIN:
    case SYM_MAX:
        if (a == b) return a;
        if (mod_fraction(a, &n, &d) && mod_fraction(b, &m, &f)) return (e->op == SYM_MIN) == (n * f < m * d) ? a : b;
        return mod_hash(e->op, mod_add(a, b), mod_mul(a, b)); /* of the unordered pair */
    case SYM_CEIL:
    case SYM_FLOOR:
        if (!mod_fraction(a, &n, &d)) break;
        return mod_int(n / d + (n % d > 0 && e->op == SYM_CEIL) - (n % d < 0 && e->op == SYM_FLOOR));
    case SYM_LOG: return mod_log(a);
    case SYM_EXP: return mod_exp(a);
    }
    return mod_hash(e->op, a, b);
}

/* false when memory is exhausted */
static inline bool sym_mod(const struct sym *e, uint64_t *out)
{
    struct arena *scratch = arena_open();
    struct sym_order o;
    uint64_t *v = NULL;
    if (scratch && sym_order_make(scratch, 1, &e, &o)) v = arena_array(scratch, o.n, sizeof *v);
    for (size_t i = 0; v && i < o.n; i++) {
        const struct sym *x = o.node[i], *l = sym_left(x), *r = sym_right(x);
        v[i] = mod_node(x, l ? v[o.pos[l->index] - 1] : 0, r ? v[o.pos[r->index] - 1] : 0);
    }
    if (v) *out = v[o.n - 1];
    arena_close(scratch);
    return v != NULL;
}

#endif
