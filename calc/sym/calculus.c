/* Derivatives, limits and roots. */
#include "calc/sym/rules.h"

static enum err_code refuse_atom(const struct rules *r, const struct sym *atom, const char *what)
{
    char text[256];
    (void)sym_print(atom, text, sizeof text);
    return err_set(r->err, ERR_RANGE, "%s: it is inside %s", what, text);
}

/* no generator but var itself may have var in it */
static enum err_code refuse_inside(const struct rules *r, struct algebra *al, size_t n, const struct sym *const *var,
                                   const char *what)
{
    for (size_t j = 0; j < al->n_gen; j++) {
        bool yes = false;
        if (al->gen[j]->op != SYM_VAR) TRY(rules_depends(r, al->gen[j], n, var, &yes));
        if (yes) return refuse_atom(r, al->gen[j], what);
    }
    return ERR_OK;
}

/* ---- derivatives ---- */

struct diff {
    const struct rules *r;
    const struct sym *var;
    struct sym_order order;
    const struct sym **of; /* [position] the derivative */
};

static const struct sym *diff_of(const struct diff *d, const struct sym *e)
{
    size_t at = 0;
    return e && sym_order_find(&d->order, e, &at) ? d->of[at] : d->r->c->zero;
}

static const struct sym *diff_power(const struct diff *d, const struct sym *e)
{
    struct sym_ctx *c = d->r->c;
    const struct sym *lower = sym_pow(c, e->a, sym_sub(c, e->b, c->one));
    const struct sym *da = diff_of(d, e->a), *db = diff_of(d, e->b);
    if (sym_is_rational(e->b)) return sym_is_int(da, 0) ? c->zero : SYM_PROD(c, e->b, lower, da);
    const struct sym *of_base = sym_div(c, sym_mul(c, e->b, da), e->a); /* x^(y - 1) is not known to be x^y/x */
    return sym_mul(c, e, sym_is_int(db, 0) ? of_base : sym_add(c, of_base, sym_mul(c, sym_log(c, e->a), db)));
}

static enum err_code diff_node(const struct diff *d, const struct sym *e, const struct sym **out)
{
    struct sym_ctx *c = d->r->c;
    const struct sym *x = sym_left(e), *y = sym_right(e), *dx = diff_of(d, x), *dy = diff_of(d, y);
    bool yes = false;
    *out = c->zero;
    switch (sym_op(e)) {
    case SYM_CONST: break;
    case SYM_VAR: *out = e == d->var ? c->one : c->zero; break;
    case SYM_ADD: *out = sym_add(c, dx, dy); break;
    case SYM_MUL: *out = sym_add(c, sym_mul(c, dx, y), sym_mul(c, x, dy)); break;
    case SYM_DIV:
        *out = sym_div(c, dx, y);
        if (!sym_is_int(dy, 0)) *out = sym_sub(c, *out, sym_div(c, sym_mul(c, x, dy), sym_mul(c, y, y)));
        break;
    case SYM_POW: *out = diff_power(d, e); break;
    case SYM_LOG: *out = sym_div(c, dx, x); break;
    case SYM_EXP: *out = sym_mul(c, e, dx); break;
    case SYM_MIN:
    case SYM_MAX:
    case SYM_CEIL:
    case SYM_FLOOR:
        TRY(rules_depends(d->r, e, 1, &d->var, &yes));
        if (yes) return refuse_atom(d->r, e, "no derivative with respect to a symbol there");
        break;
    }
    return ERR_OK;
}

static enum err_code diff_all(struct diff *d, struct arena *scratch, const struct sym *e, const struct sym **out)
{
    if (!sym_order_make(scratch, 1, &e, &d->order)) return err_nomem(d->r->err);
    d->of = arena_array(scratch, d->order.n, sizeof *d->of);
    if (!d->of) return err_nomem(d->r->err);
    for (size_t i = 0; i < d->order.n; i++) TRY(diff_node(d, d->order.node[i], &d->of[i]));
    *out = diff_of(d, e);
    return ERR_OK;
}

enum err_code sym_diff(struct sym_ctx *c, const struct sym *e, const struct sym *var, const struct sym **out,
                       struct err *err)
{
    const struct rules r = {.c = c, .err = err};
    struct diff d = {.r = &r, .var = var};
    TRY(rules_normal(&r, e, &e));
    struct arena *scratch = arena_open();
    const enum err_code code = scratch ? diff_all(&d, scratch, e, &e) : err_nomem(err);
    arena_close(scratch);
    TRY(code);
    return rules_normal(&r, e, out);
}

/* ---- limits ---- */

static enum err_code limit_in(const struct rules *r, struct algebra *al, const struct sym *e, const struct sym **out,
                              int64_t *order)
{
    struct ratfun v, lead = {0};
    int64_t top, bottom = 0;
    TRY(algebra_value(al, e, &v));
    TRY(algebra_reduce(al, &v));
    TRY(refuse_inside(r, al, r->n_group, r->group, "no limit in a symbol there"));
    TRY(rules_leading(r, al, v.num, &lead.num, &top));
    if (v.den) TRY(rules_leading(r, al, v.den, &lead.den, &bottom));
    *order = top - bottom;
    *out = al->c->zero;
    if (top < bottom) return ERR_OK;
    TRY(ratfun_lowest(al, &lead));
    *out = ratfun_write(al, lead);
    return sym_check(al->c, al->err);
}

enum err_code sym_limit(struct sym_ctx *c, const struct sym *e, size_t n, const struct sym *const *group,
                        const struct sym **out, int64_t *order, struct err *err)
{
    const struct rules plain = {.c = c, .err = err}, r = {.c = c, .group = group, .n_group = n, .err = err};
    struct algebra al;
    int64_t power = 0;
    TRY(rules_rewrite(&r, e, &e));
    TRY(rules_expand(&r, e, &e));
    TRY(algebra_open(&al, c, 1, &e, err));
    const enum err_code code = limit_in(&r, &al, e, &e, &power);
    algebra_close(&al);
    TRY(code);
    TRY(rules_shorten(&plain, e, &e));
    *out = e;
    *order = power;
    return ERR_OK;
}

/* ---- roots ---- */

static enum err_code linear_root(struct algebra *al, struct poly *const *k, const struct sym **out)
{
    struct ratfun v = {0};
    TRY(poly_copy(al, k[0], &v.num));
    TRY(poly_copy(al, k[1], &v.den));
    al->f.neg(v.num->p, v.num->p, al->ring);
    TRY(ratfun_lowest(al, &v));
    *out = ratfun_write(al, v);
    return ERR_OK;
}

/* (-b + sqrt(b^2 - 4ac))/(2a), and with -; in the builder's terms */
static enum err_code quadratic_roots(struct algebra *al, struct poly *const *k, struct sym_solution *s)
{
    struct sym_ctx *c = al->c;
    struct poly *square, *product, *minus_four, *scaled, *d, *root = poly_new(al);
    if (!root) return err_nomem(al->err);
    TRY(poly_mul(al, k[1], k[1], &square));
    TRY(poly_mul(al, k[0], k[2], &product));
    TRY(poly_int(al, -4, &minus_four));
    TRY(poly_mul(al, product, minus_four, &scaled));
    TRY(poly_add(al, square, scaled, &d));
    const struct sym *minus_b = sym_mul(c, c->minus_one, poly_write(al, k[1]));
    const struct sym *two_a = sym_mul(c, sym_int(c, 2), poly_write(al, k[2]));
    s->n = poly_is_zero(d) ? 1 : 2;
    if (s->n == 1) {
        s->root[0] = sym_div(c, minus_b, two_a);
        return ERR_OK;
    }
    if (al->f.is_fmpz(d->p, al->ring) && al->f.z_sgn(&d->p->coeffs[0]) < 0) {
        s->n = 0;
        return ERR_OK;
    }
    const bool exact = al->f.sqrt_heap(root->p, d->p, al->ring, 1) != 0;
    const struct sym *r = exact ? poly_write(al, root) : sym_pow(c, poly_write(al, d), sym_rat(c, 1, 2));
    s->root[0] = sym_div(c, sym_add(c, minus_b, r), two_a);
    s->root[1] = sym_div(c, sym_sub(c, minus_b, r), two_a);
    return ERR_OK;
}

static enum err_code solve_in(const struct rules *r, struct algebra *al, const struct sym *e, const struct sym *var,
                              struct sym_solution *s)
{
    struct ratfun v;
    struct poly *k[3];
    size_t gen = 0;
    TRY(algebra_value(al, e, &v));
    TRY(algebra_reduce(al, &v));
    TRY(refuse_inside(r, al, 1, &var, "no solution for a symbol there"));
    while (gen < al->n_gen && al->gen[gen] != var) gen++;
    const int64_t degree = gen < al->n_gen ? poly_degree(al, v.num, gen) : 0;
    *s = (struct sym_solution){.kind = poly_is_zero(v.num) ? SYM_SOLVED_ALWAYS : SYM_SOLVED_NEVER};
    if (degree == 0) return ERR_OK;
    if (degree > 2)
        return err_set(al->err, ERR_RANGE, "the equation has degree %lld in %s: closed forms are given to degree 2",
                       (long long)degree, sym_name(var));
    TRY(poly_coefficients(al, v.num, gen, (size_t)degree, k));
    s->n = 1;
    TRY(degree == 1 ? linear_root(al, k, &s->root[0]) : quadratic_roots(al, k, s));
    if (s->n) s->kind = SYM_SOLVED_ROOTS;
    return sym_check(al->c, al->err);
}

enum err_code sym_solve(struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs, const struct sym *var,
                        struct sym_solution *out, struct err *err)
{
    const struct rules r = {.c = c, .err = err};
    const struct sym *e;
    struct sym_solution s;
    struct algebra al;
    if (sym_op(var) != SYM_VAR) return err_set(err, ERR_RANGE, "only a symbol can be solved for");
    TRY(rules_normal(&r, sym_sub(c, lhs, rhs), &e));
    TRY(algebra_open(&al, c, 1, &e, err));
    const enum err_code code = solve_in(&r, &al, e, var, &s);
    algebra_close(&al);
    TRY(code);
    for (size_t i = 0; i < s.n; i++) TRY(rules_normal(&r, s.root[i], &s.root[i]));
    *out = s;
    return ERR_OK;
}
