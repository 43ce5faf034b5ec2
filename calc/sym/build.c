#include <stdlib.h>
#include <string.h>

#include "calc/sym/node.h"

enum { OPERAND_TERMS = 64 };

/* ---- closed arithmetic: folds rationals that fit, keeps the rest as it stands ---- */

static const struct sym *commutative(struct sym_ctx *c, enum sym_op op, const struct sym *a, const struct sym *b)
{
    return a->index < b->index ? sym_node(c, op, a, b) : sym_node(c, op, b, a);
}

static const struct sym *closed_add(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    struct rat r;
    if (sym_is_int(a, 0)) return b;
    if (sym_is_int(b, 0)) return a;
    if (sym_is_rational(a) && sym_is_rational(b) && rat_add(sym_rat_of(a), sym_rat_of(b), &r))
        return sym_rational(c, r);
    return commutative(c, SYM_ADD, a, b);
}

static const struct sym *closed_mul(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    if (sym_is_int(a, 1) || sym_is_int(b, 0)) return b;
    if (sym_is_int(b, 1) || sym_is_int(a, 0)) return a;
    if (!sym_is_rational(a)) {
        const struct sym *swap = a;
        a = b;
        b = swap;
    }
    if (!sym_is_rational(a)) return commutative(c, SYM_MUL, a, b);
    struct rat r;
    if (sym_is_rational(b) && rat_mul(sym_rat_of(a), sym_rat_of(b), &r)) return sym_rational(c, r);
    if (b->op == SYM_MUL && sym_is_rational(b->a) && rat_mul(sym_rat_of(a), sym_rat_of(b->a), &r)) {
        const struct sym *rest = b->b;
        if (r.num == 1 && r.den == 1) return rest;
        if (sym_is_rational(rest) && rat_mul(r, sym_rat_of(rest), &r)) return sym_rational(c, r);
        return sym_node(c, SYM_MUL, sym_rational(c, r), rest);
    }
    return sym_is_rational(b) ? commutative(c, SYM_MUL, a, b) : sym_node(c, SYM_MUL, a, b);
}

/* split -- e = k*m with k closed; m NULL when e is closed */
static struct sym_term split(const struct sym_ctx *c, const struct sym *e)
{
    if (e->closed) return (struct sym_term){.k = e};
    if (e->op == SYM_MUL && e->a->closed) return (struct sym_term){.k = e->a, .m = e->b};
    return (struct sym_term){.k = c->one, .m = e};
}

/* ---- products ---- */

size_t sym_factors(const struct sym *e, const struct sym **out)
{
    const size_t n = sym_n_factors(e);
    for (size_t i = n; i-- > 1; e = e->a) out[i] = e->b;
    out[0] = e;
    return n;
}

static const struct sym *merge_factors(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    if (sym_n_factors(a) + sym_n_factors(b) > SYM_BLOCK)
        return sym_n_factors(a) == sym_n_factors(b)  ? commutative(c, SYM_MUL, a, b)
               : sym_n_factors(a) > sym_n_factors(b) ? sym_node(c, SYM_MUL, a, b)
                                                     : sym_node(c, SYM_MUL, b, a);
    const struct sym *x[SYM_BLOCK], *y[SYM_BLOCK], *r = NULL;
    const size_t nx = sym_factors(a, x), ny = sym_factors(b, y);
    for (size_t i = 0, j = 0; i < nx || j < ny;) {
        const struct sym *f = j >= ny || (i < nx && x[i]->index <= y[j]->index) ? x[i++] : y[j++];
        r = r ? sym_node(c, SYM_MUL, r, f) : f;
    }
    return r;
}

const struct sym *sym_mul(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    if (c->failed) return &c->failed_node;
    const struct sym_term x = split(c, a), y = split(c, b);
    const struct sym *k = closed_mul(c, x.k, y.k);
    if (!x.m && !y.m) return k;
    if (sym_is_int(k, 0)) return k;
    const struct sym *m = !x.m ? y.m : !y.m ? x.m : merge_factors(c, x.m, y.m);
    return sym_is_int(k, 1) ? m : sym_node(c, SYM_MUL, k, m);
}

const struct sym *sym_prod(struct sym_ctx *c, size_t n, const struct sym *const *f)
{
    const struct sym *r = c->one;
    for (size_t i = 0; i < n; i++) r = sym_mul(c, r, f[i]);
    return r;
}

/* ---- sums ---- */

static bool is_negated_sum(const struct sym *e)
{
    return e->op == SYM_MUL && sym_is_int(e->a, -1) && e->b->op == SYM_ADD && !e->closed;
}

static size_t n_operand_terms(const struct sym *e) { return sym_n_terms(is_negated_sum(e) ? e->b : e); }

static void push_term(struct sym_ctx *c, struct sym_term t)
{
    if (c->n_terms == c->cap_terms) {
        const size_t cap = c->cap_terms ? 2 * c->cap_terms : 4 * SYM_BLOCK;
        struct sym_term *grown = arena_array(c->arena, cap, sizeof *grown);
        if (!grown) {
            (void)sym_fail(c);
            return;
        }
        if (c->n_terms) memcpy(grown, c->terms, c->n_terms * sizeof *grown);
        c->terms = grown;
        c->cap_terms = cap;
    }
    t.seq = c->n_terms;
    c->terms[c->n_terms++] = t;
}

void sym_push_operand(struct sym_ctx *c, const struct sym *e)
{
    const struct sym *todo[OPERAND_TERMS + 1];
    const bool open = n_operand_terms(e) <= OPERAND_TERMS, minus = open && is_negated_sum(e);
    size_t n = 0;
    todo[n++] = minus ? e->b : e;
    while (n) {
        const struct sym *x = todo[--n];
        if (open && sym_n_terms(x) > 1) {
            todo[n++] = x->b;
            todo[n++] = x->a;
            continue;
        }
        struct sym_term t = split(c, x);
        if (minus) t.k = closed_mul(c, c->minus_one, t.k);
        push_term(c, t);
    }
}

static int by_factor(const void *x, const void *y)
{
    const struct sym_term *a = x, *b = y;
    const uint32_t i = a->m ? a->m->index : UINT32_MAX, j = b->m ? b->m->index : UINT32_MAX;
    if (i != j) return i < j ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

static const struct sym *plus(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    return a && b ? sym_node(c, SYM_ADD, a, b) : a ? a : b;
}

const struct sym *sym_collect(struct sym_ctx *c)
{
    struct sym_term *t = c->terms;
    const size_t n = c->n_terms;
    c->n_terms = 0;
    if (c->failed) return &c->failed_node;
    if (n > 1) qsort(t, n, sizeof *t, by_factor);
    size_t kept = 0, blocks = 0;
    const struct sym *constant = NULL, *block = NULL;
    for (size_t i = 0; i < n;) {
        const struct sym *m = t[i].m, *k = t[i].k;
        for (i++; i < n && t[i].m == m; i++) k = closed_add(c, k, t[i].k);
        if (sym_is_int(k, 0)) continue;
        if (!m) {
            constant = k;
            break;
        }
        block = plus(c, block, sym_is_int(k, 1) ? m : sym_node(c, SYM_MUL, k, m));
        if (++kept % SYM_BLOCK == 0) { /* the slot was read already: blocks < i */
            t[blocks++].m = block;
            block = NULL;
        }
    }
    if (block) t[blocks++].m = block;
    for (; blocks > 1; blocks = (blocks + 1) / 2)
        for (size_t i = 0; i < blocks; i += 2) t[i / 2].m = plus(c, t[i].m, i + 1 < blocks ? t[i + 1].m : NULL);
    const struct sym *sum = plus(c, blocks ? t[0].m : NULL, constant);
    return sum ? sum : c->zero;
}

const struct sym *sym_sum(struct sym_ctx *c, size_t n, const struct sym *const *terms)
{
    if (c->failed) return &c->failed_node;
    for (size_t i = 0; i < n; i++) sym_push_operand(c, terms[i]);
    return sym_collect(c);
}

/* a long sum and another: O(1), apart from the constants */
static const struct sym *add_long(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    const struct sym *k = c->zero, *side[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        if (side[i]->closed) {
            k = closed_add(c, k, side[i]);
            side[i] = NULL;
        } else if (side[i]->op == SYM_ADD && side[i]->b->closed) {
            k = closed_add(c, k, side[i]->b);
            side[i] = side[i]->a;
        }
    }
    const struct sym *s = side[0] ? side[0] : side[1];
    if (side[0] && side[0] == side[1]) {
        s = sym_mul(c, sym_int(c, 2), s);
    } else if (side[0] && side[1]) {
        const size_t m = sym_n_terms(side[0]), n = sym_n_terms(side[1]);
        s = m == n  ? commutative(c, SYM_ADD, side[0], side[1])
            : m > n ? sym_node(c, SYM_ADD, side[0], side[1])
                    : sym_node(c, SYM_ADD, side[1], side[0]);
    }
    return sym_is_int(k, 0) ? s : sym_node(c, SYM_ADD, s, k);
}

const struct sym *sym_add(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    if (c->failed) return &c->failed_node;
    if (n_operand_terms(a) + n_operand_terms(b) > SYM_BLOCK) return add_long(c, a, b);
    sym_push_operand(c, a);
    sym_push_operand(c, b);
    return sym_collect(c);
}

const struct sym *sym_sub(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    if (a == b && !c->failed) return c->zero;
    return sym_add(c, a, sym_mul(c, c->minus_one, b));
}

/* ---- the rest ---- */

const struct sym *sym_div(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    struct rat r;
    if (c->failed) return &c->failed_node;
    if (sym_is_int(b, 0)) return sym_node(c, SYM_DIV, a, b);
    if (a == b) return c->one;
    if (sym_is_int(a, 0)) return a;
    if (sym_is_rational(b) && rat_make(b->den, b->num, &r)) return sym_mul(c, a, sym_rational(c, r));
    return sym_node(c, SYM_DIV, a, b);
}

const struct sym *sym_pow(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    if (c->failed) return &c->failed_node;
    if (sym_is_int(b, 0) || sym_is_int(a, 1)) return c->one;
    if (sym_is_int(b, 1)) return a;
    if (sym_is_rational(a) && sym_is_rational(b) && b->den == 1 && b->num != INT64_MIN) {
        struct rat base = sym_rat_of(a), r;
        const int64_t n = b->num < 0 ? -b->num : b->num;
        if ((b->num > 0 || rat_make(a->den, a->num, &base)) && rat_pow(base, n, &r)) return sym_rational(c, r);
    }
    return sym_node(c, SYM_POW, a, b);
}

static const struct sym *extreme(struct sym_ctx *c, enum sym_op op, const struct sym *a, const struct sym *b)
{
    struct rat minus_b, d;
    if (c->failed) return &c->failed_node;
    if (a == b) return a;
    if (sym_is_rational(a) && sym_is_rational(b) && rat_mul(sym_rat_of(b), (struct rat){-1, 1}, &minus_b) &&
        rat_add(sym_rat_of(a), minus_b, &d))
        return (d.num < 0) == (op == SYM_MIN) ? a : b;
    if (a->closed != b->closed) return a->closed ? sym_node(c, op, b, a) : sym_node(c, op, a, b);
    return commutative(c, op, a, b);
}

const struct sym *sym_min(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    return extreme(c, SYM_MIN, a, b);
}

const struct sym *sym_max(struct sym_ctx *c, const struct sym *a, const struct sym *b)
{
    return extreme(c, SYM_MAX, a, b);
}

const struct sym *sym_ceil(struct sym_ctx *c, const struct sym *a)
{
    if (c->failed) return &c->failed_node;
    if (a->whole) return a;
    if (sym_is_rational(a)) return sym_int(c, a->num / a->den + (a->num > 0)); /* den > 1: no overflow, never exact */
    return sym_node(c, SYM_CEIL, a, NULL);
}

const struct sym *sym_floor(struct sym_ctx *c, const struct sym *a)
{
    if (c->failed) return &c->failed_node;
    if (a->whole) return a;
    if (sym_is_rational(a)) return sym_int(c, a->num / a->den - (a->num < 0));
    return sym_node(c, SYM_FLOOR, a, NULL);
}

const struct sym *sym_log(struct sym_ctx *c, const struct sym *a)
{
    if (c->failed) return &c->failed_node;
    if (sym_is_int(a, 1)) return c->zero;
    return a->op == SYM_EXP ? a->a : sym_node(c, SYM_LOG, a, NULL);
}

const struct sym *sym_exp(struct sym_ctx *c, const struct sym *a)
{
    if (c->failed) return &c->failed_node;
    if (sym_is_int(a, 0)) return c->one;
    return a->op == SYM_LOG && a->a->above ? a->a : sym_node(c, SYM_EXP, a, NULL);
}

const struct sym *sym_rebuild(struct sym_ctx *c, const struct sym *e, const struct sym *x, const struct sym *y)
{
    switch (sym_op(e)) {
    case SYM_ADD: return sym_add(c, x, y);
    case SYM_MUL: return sym_mul(c, x, y);
    case SYM_DIV: return sym_div(c, x, y);
    case SYM_POW: return sym_pow(c, x, y);
    case SYM_MIN: return sym_min(c, x, y);
    case SYM_MAX: return sym_max(c, x, y);
    case SYM_CEIL: return sym_ceil(c, x);
    case SYM_FLOOR: return sym_floor(c, x);
    case SYM_LOG: return sym_log(c, x);
    case SYM_EXP: return sym_exp(c, x);
    case SYM_CONST:
    case SYM_VAR: break;
    }
    return e;
}
