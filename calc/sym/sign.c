#include "calc/sym/rules.h"

#include <stdio.h>

/* ---- signs of generators, from what they are made of ---- */

static int8_t of_number(double x) { return (int8_t)((x > 0.0) - (x < 0.0)); }

/* x and y: signs of the operands, 0 unknown */
static int8_t of_node(const struct sym *e, int8_t x, int8_t y)
{
    switch (sym_op(e)) {
    case SYM_CONST: return of_number(e->value);
    case SYM_VAR: return 1;
    case SYM_ADD: return x == y ? x : 0;
    case SYM_MUL:
    case SYM_DIV: return (int8_t)(x * y);
    case SYM_POW: return x > 0 ? 1 : 0;
    case SYM_MIN: return x < 0 || y < 0 ? -1 : x > 0 && y > 0 ? 1 : 0;
    case SYM_MAX: return x > 0 || y > 0 ? 1 : x < 0 && y < 0 ? -1 : 0;
    case SYM_CEIL: return x > 0 ? 1 : 0;
    case SYM_FLOOR: return x < 0 ? -1 : 0;
    case SYM_LOG:
        return sym_is_rational(e->a) ? of_number((double)(e->a->num > e->a->den) - (double)(e->a->num < e->a->den)) : 0;
    case SYM_EXP: return 1;
    }
    return 0;
}

enum err_code rules_generator_signs(struct algebra *al, int8_t *sign)
{
    size_t at = 0;
    int8_t *of = arena_array(al->scratch, al->order.n, sizeof *of);
    if (!of) return err_nomem(al->err);
    for (size_t i = 0; i < al->order.n; i++) {
        const struct sym *e = al->order.node[i], *a = sym_left(e), *b = sym_right(e);
        const int8_t x = a && sym_order_find(&al->order, a, &at) ? of[at] : 0;
        const int8_t y = b && sym_order_find(&al->order, b, &at) ? of[at] : 0;
        of[i] = of_node(e, x, y);
    }
    for (size_t j = 0; j < al->n_gen; j++) {
        const struct sym *g = al->gen[j];
        const bool joined = algebra_root_index(g) && !sym_order_find(&al->order, g, &at); /* of several roots */
        sign[j] = sym_order_find(&al->order, joined ? g->a : g, &at) && (!joined || of[at] > 0) ? of[at] : 0;
    }
    return ERR_OK;
}

/* ---- signs of rational functions ---- */

static enum sym_sign quotient_sign(int num, int den)
{
    if (num == 0) return SYM_SIGN_ZERO;
    if (num == 2 || den == 2) return SYM_SIGN_UNKNOWN;
    return num == den ? SYM_SIGN_PLUS : SYM_SIGN_MINUS;
}

enum err_code rules_leading(const struct rules *r, struct algebra *al, const struct poly *p, struct poly **out,
                            int64_t *degree)
{
    ulong exp[ALGEBRA_GENERATORS] = {0};
    bool grows[ALGEBRA_GENERATORS] = {0};
    int64_t top = 0;
    for (size_t j = 0; j < al->n_gen; j++)
        for (size_t i = 0; i < r->n_group; i++) grows[j] = grows[j] || al->gen[j] == r->group[i];
    struct poly *lead = poly_new(al);
    if (!lead) return err_nomem(al->err);
    for (int round = 0; round < 2; round++)
        for (slong i = 0; i < p->p->length; i++) {
            int64_t power = 0;
            al->f.term_exp(exp, p->p, i, al->ring);
            for (size_t j = 0; j < al->n_gen; j++) power += grows[j] ? (int64_t)exp[j] : 0;
            if (round == 0 && power > top) top = power;
            if (round == 1 && power == top) al->f.push_term(lead->p, &p->p->coeffs[i], exp, al->ring);
        }
    *out = lead;
    *degree = top;
    return poly_sealed(al, lead);
}

static enum err_code atoms_grow(const struct rules *r, struct algebra *al, bool *yes)
{
    *yes = false;
    for (size_t j = 0; j < al->n_gen && !*yes; j++)
        if (al->gen[j]->op != SYM_VAR) TRY(rules_depends(r, al->gen[j], r->n_group, r->group, yes));
    return ERR_OK;
}

static enum err_code sign_in(const struct rules *r, struct algebra *al, const struct sym *e, enum sym_sign *out)
{
    int8_t sign[ALGEBRA_GENERATORS] = {0};
    struct ratfun v;
    TRY(rules_generator_signs(al, sign));
    for (size_t j = 0; r->prove && j < al->n_gen; j++)
        if (algebra_is_part(al->gen[j])) sign[j] = 1;
    TRY(algebra_value(al, e, &v));
    *out = quotient_sign(poly_sign(al, v.num, sign), v.den ? poly_sign(al, v.den, sign) : 1);
    if (*out != SYM_SIGN_UNKNOWN || r->n_group == 0) return ERR_OK;
    struct poly *num, *den = NULL;
    int64_t power;
    bool grow;
    TRY(atoms_grow(r, al, &grow));
    if (grow) return ERR_OK;
    TRY(rules_leading(r, al, v.num, &num, &power));
    if (v.den) TRY(rules_leading(r, al, v.den, &den, &power));
    *out = quotient_sign(poly_sign(al, num, sign), den ? poly_sign(al, den, sign) : 1);
    return ERR_OK;
}

static enum err_code plain_sign(const struct rules *r, const struct sym *e, enum sym_sign *out)
{
    struct algebra al;
    TRY(algebra_open(&al, r->c, 1, &e, r->err));
    const enum err_code code = sign_in(r, &al, e, out);
    algebra_close(&al);
    return code;
}

/* ---- with known pairs ---- */

enum { KNOWN_MAX = 64 };

/* high := low + slack, slack a new variable, wherever high is one; as often as chains of pairs need */
static enum err_code substituted_sign(const struct rules *r, const struct sym *e, enum sym_sign *out)
{
    struct sym_binding env[KNOWN_MAX];
    char name[32];
    size_t n = 0;
    for (size_t i = 0; i < r->n_known && n < KNOWN_MAX; i++) {
        if (sym_op(r->known[i].high) != SYM_VAR) continue;
        (void)snprintf(name, sizeof name, "\x01slack %zu", i); /* no name that a person can give */
        env[n++] = (struct sym_binding){r->known[i].high, sym_add(r->c, r->known[i].low, sym_var(r->c, name))};
    }
    for (size_t i = 0; i < n; i++) {
        const struct sym *next = sym_bind(r->c, e, env, n);
        if (next == e) break;
        e = next;
    }
    return plain_sign(r, e, out);
}

enum err_code rules_sign(const struct rules *r, const struct sym *e, enum sym_sign *out)
{
    TRY(plain_sign(r, e, out));
    if (*out != SYM_SIGN_UNKNOWN || r->n_known == 0) return ERR_OK;
    TRY(substituted_sign(r, e, out));
    for (size_t i = 0; i < r->n_known && *out == SYM_SIGN_UNKNOWN; i++) {
        const struct sym *gap = sym_sub(r->c, r->known[i].high, r->known[i].low);
        enum sym_sign above, below;
        TRY(plain_sign(r, sym_sub(r->c, e, gap), &above));
        TRY(plain_sign(r, sym_add(r->c, e, gap), &below));
        if (above == SYM_SIGN_PLUS || above == SYM_SIGN_ZERO) *out = SYM_SIGN_PLUS;
        if (below == SYM_SIGN_MINUS || below == SYM_SIGN_ZERO) *out = SYM_SIGN_MINUS;
    }
    return ERR_OK;
}

/* ---- what others ask ---- */

enum err_code sym_sign(struct sym_ctx *c, const struct sym *e, enum sym_sign *out, struct err *err)
{
    const struct rules r = {.c = c, .err = err};
    TRY(rules_normal(&r, e, &e));
    return plain_sign(&r, e, out);
}

enum err_code sym_monotone(struct sym_ctx *c, const struct sym *e, const struct sym *var, enum sym_sign *out,
                           struct err *err)
{
    const struct sym *d;
    TRY(sym_diff(c, e, var, &d, err));
    return sym_sign(c, d, out, err);
}
