#include "calc/sym/rules.h"

enum { OPERANDS = 64, SHORTEN_TERMS = 1000 };

/* ---- canonical forms of expressions whose atoms are done ---- */

static enum err_code expand_in(struct algebra *al, const struct sym *e, const struct sym **out, size_t *terms)
{
    struct ratfun v;
    TRY(algebra_value(al, e, &v));
    TRY(algebra_reduce(al, &v));
    *terms = (size_t)v.num->p->length + (v.den ? (size_t)v.den->p->length : 0);
    *out = ratfun_write(al, v);
    return sym_check(al->c, al->err);
}

enum err_code rules_expand(const struct rules *r, const struct sym *e, const struct sym **out)
{
    struct algebra al;
    size_t terms;
    TRY(algebra_open(&al, r->c, 1, &e, r->err));
    const enum err_code code = expand_in(&al, e, out, &terms);
    algebra_close(&al);
    return code;
}

/* whether a minimum is anywhere in e: cheaper than a ring */
static enum err_code has_minimum(const struct rules *r, const struct sym *e, bool *yes)
{
    struct sym_order order;
    struct arena *scratch = arena_open();
    const bool made = scratch && sym_order_make(scratch, 1, &e, &order);
    *yes = false;
    for (size_t i = 0; made && i < order.n; i++) *yes = *yes || order.node[i]->op == SYM_MIN;
    arena_close(scratch);
    return made ? ERR_OK : err_nomem(r->err);
}

/* the minima of two among the generators of e, and the terms of e */
static enum err_code find_minima(const struct rules *r, const struct sym *e, const struct sym **minimum, size_t *n,
                                 size_t *terms)
{
    struct algebra al;
    struct ratfun v;
    TRY(algebra_open(&al, r->c, 1, &e, r->err));
    for (size_t i = 0; i < al.n_gen; i++)
        if (al.gen[i]->op == SYM_MIN && al.gen[i]->a->op != SYM_MIN && al.gen[i]->b->op != SYM_MIN)
            minimum[(*n)++] = al.gen[i];
    const enum err_code code = algebra_value(&al, e, &v);
    if (code == ERR_OK) *terms = (size_t)v.num->p->length + (v.den ? (size_t)v.den->p->length : 0);
    algebra_close(&al);
    return code;
}

/* e with max(a, b) for a + b - min(a, b), kept when it is shorter */
static enum err_code try_maximum(const struct rules *r, const struct sym *minimum, const struct sym **e, size_t *terms)
{
    struct sym_ctx *c = r->c;
    const struct sym *a = minimum->a, *b = minimum->b, *tried;
    const struct sym *with = SYM_SUM(c, a, b, sym_mul(c, c->minus_one, sym_max(c, a, b)));
    struct algebra al;
    size_t n;
    with = sym_bind(c, *e, &(struct sym_binding){minimum, with}, 1); /* any node that is not in a longer sum will do */
    TRY(algebra_open(&al, c, 1, &with, r->err));
    const enum err_code code = expand_in(&al, with, &tried, &n);
    algebra_close(&al);
    TRY(code);
    if (n < *terms) {
        *e = tried;
        *terms = n;
    }
    return ERR_OK;
}

enum err_code rules_shorten(const struct rules *r, const struct sym *e, const struct sym **out)
{
    const struct sym *minimum[ALGEBRA_GENERATORS];
    size_t n = 0, terms = 0;
    bool any;
    *out = e;
    if (r->prove) return ERR_OK;
    TRY(has_minimum(r, e, &any));
    if (!any) return ERR_OK;
    TRY(find_minima(r, e, minimum, &n, &terms));
    for (size_t i = 0; i < n && terms <= SHORTEN_TERMS; i++) TRY(try_maximum(r, minimum[i], out, &terms));
    return ERR_OK;
}

enum err_code rules_normal(const struct rules *r, const struct sym *e, const struct sym **out)
{
    TRY(rules_rewrite(r, e, &e));
    TRY(rules_expand(r, e, &e));
    TRY(rules_shorten(r, e, &e));
    *out = e;
    return ERR_OK;
}

/* ---- one node after another, operands first ---- */

struct form {
    const struct sym *done;     /* rewritten */
    const struct sym *expanded; /* its canonical form; NULL until asked for */
    const struct sym *shown;    /* the same, shortened: what atoms hold */
};

struct rewriting {
    const struct rules *r;
    struct sym_order order;
    struct form *form; /* [position] */
    bool *inner; /* [position] a minimum whose users are all minima, or so of maxima: flattened there, has no form */
};

static struct form *form_of(struct rewriting *w, const struct sym *e)
{
    size_t at = 0;
    (void)sym_order_find(&w->order, e, &at);
    return &w->form[at];
}

static enum err_code expanded_form(struct rewriting *w, const struct sym *e, struct form **out)
{
    struct form *f = form_of(w, e);
    *out = f;
    if (f->expanded) return ERR_OK;
    TRY(rules_expand(w->r, f->done, &f->expanded));
    return rules_shorten(w->r, f->expanded, &f->shown);
}

static enum err_code too_many_operands(const struct rewriting *w, const struct sym *root)
{
    return err_set(w->r->err, ERR_RANGE, "a %s has more than %d operands", root->op == SYM_MIN ? "min" : "max",
                   OPERANDS);
}

/* the distinct operands of nested minima, or maxima */
static enum err_code gather(struct rewriting *w, const struct sym *root, struct form **leaf, size_t *n)
{
    const struct sym *stack[OPERANDS + 2];
    size_t depth = 0, visits = 0;
    *n = 0;
    stack[depth++] = root;
    while (depth) {
        const struct sym *e = stack[--depth];
        if (e->op == root->op) {
            if (depth >= OPERANDS || visits++ >= 2 * OPERANDS) return too_many_operands(w, root);
            stack[depth++] = e->b;
            stack[depth++] = e->a;
            continue;
        }
        struct form *f;
        TRY(expanded_form(w, e, &f));
        size_t i = 0;
        while (i < *n && leaf[i]->expanded != f->expanded) i++;
        if (i < *n) continue;
        if (*n == OPERANDS) return too_many_operands(w, root);
        leaf[(*n)++] = f;
    }
    return ERR_OK;
}

/* drops operands that another one beats */
static enum err_code keep_best(struct rewriting *w, bool smallest, struct form **leaf, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        for (size_t j = i + 1; j < *n;) {
            const struct sym *d = sym_sub(w->r->c, leaf[i]->expanded, leaf[j]->expanded);
            enum sym_sign sign;
            TRY(rules_expand(w->r, d, &d));
            TRY(rules_sign(w->r, d, &sign));
            if (sign == SYM_SIGN_UNKNOWN) {
                j++;
                continue;
            }
            if ((sign == SYM_SIGN_PLUS) == smallest) leaf[i] = leaf[j];
            leaf[j] = leaf[--*n];
            j = i + 1; /* a new one at i meets all the others again */
        }
    return ERR_OK;
}

/* whether one of the operands of e, a min or max of several, is x */
static bool has_operand(const struct sym *e, const struct sym *x)
{
    const uint8_t op = e->op;
    for (; e->op == op; e = e->a)
        if (e->b == x || e->a == x) return true;
    return false;
}

/* max(x, min(x, y)) is x */
static void drop_absorbed(enum sym_op op, struct form **leaf, size_t *n)
{
    const uint8_t other = op == SYM_MIN ? SYM_MAX : SYM_MIN;
    for (size_t i = 0; i < *n;) {
        bool absorbed = false;
        for (size_t j = 0; j < *n && leaf[i]->shown->op == other; j++)
            absorbed = absorbed || has_operand(leaf[i]->shown, leaf[j]->shown);
        if (absorbed)
            leaf[i] = leaf[--*n];
        else
            i++;
    }
}

static void sort_leaves(struct form **leaf, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && leaf[j]->shown->index < leaf[j - 1]->shown->index; j--) {
            struct form *swap = leaf[j];
            leaf[j] = leaf[j - 1];
            leaf[j - 1] = swap;
        }
}

static enum err_code rewrite_extreme(struct rewriting *w, const struct sym *e, const struct sym **out)
{
    struct sym_ctx *c = w->r->c;
    struct form *leaf[OPERANDS];
    size_t n;
    TRY(gather(w, e, leaf, &n));
    drop_absorbed(e->op, leaf, &n);
    TRY(keep_best(w, e->op == SYM_MIN, leaf, &n));
    if (n == 1) {
        *out = leaf[0]->expanded;
        return ERR_OK;
    }
    if (w->r->prove) {
        const struct sym *x[OPERANDS];
        for (size_t i = 0; i < n; i++) x[i] = leaf[i]->expanded;
        return prove_extreme(w->r, sym_op(e), n, x, out);
    }
    sort_leaves(leaf, n);
    if (n == 2 && e->op == SYM_MAX) {
        const struct sym *minimum = sym_min(c, leaf[0]->shown, leaf[1]->shown);
        *out = SYM_SUM(c, leaf[0]->expanded, leaf[1]->expanded, sym_mul(c, c->minus_one, minimum));
        return ERR_OK;
    }
    *out = leaf[0]->shown;
    for (size_t i = 1; i < n; i++)
        *out = e->op == SYM_MIN ? sym_min(c, *out, leaf[i]->shown) : sym_max(c, *out, leaf[i]->shown);
    return ERR_OK;
}

/* The whole part outside. prove: a floor is written with ceil. */
static enum err_code rewrite_rounding(struct rewriting *w, const struct sym *e, const struct sym **out)
{
    struct form *f;
    struct sym_ctx *c = w->r->c;
    const bool up = e->op == SYM_CEIL || w->r->prove;
    TRY(expanded_form(w, e->a, &f));
    const struct sym *x = f->expanded, *whole = c->zero, *rest;
    *out = e->op == SYM_CEIL ? sym_ceil(c, f->shown) : sym_floor(c, f->shown);
    if (!sym_left(*out)) return ERR_OK;
    if (x->closed) return x->whole ? ERR_OK : rules_round_number(w->r, x, e->op == SYM_CEIL, out);
    const bool minus = up && e->op == SYM_FLOOR;
    if (minus) TRY(rules_expand(w->r, sym_mul(c, c->minus_one, x), &x));
    TRY(rules_whole_part(w->r, x, &whole, &rest));
    if (!minus && sym_is_int(whole, 0)) return ERR_OK;
    TRY(rules_shorten(w->r, rest, &rest));
    *out = sym_add(c, whole, up ? sym_ceil(c, rest) : sym_floor(c, rest));
    if (minus) *out = sym_mul(c, c->minus_one, *out);
    return ERR_OK;
}

static enum err_code rewrite_power(struct rewriting *w, const struct sym *e, const struct sym **out)
{
    struct form *base, *exponent;
    TRY(expanded_form(w, e->b, &exponent));
    const struct sym *n = exponent->shown;
    if (sym_is_rational(n) && n->den == 1) {
        *out = sym_pow(w->r->c, form_of(w, e->a)->done, n);
        return ERR_OK;
    }
    TRY(expanded_form(w, e->a, &base));
    if (sym_is_rational(n) && rat_magnitude(n->num) <= ALGEBRA_EXPONENT && n->den <= OPERANDS)
        return rules_root(w->r, base->expanded, n->num, n->den, out);
    if (w->r->prove) return prove_power(w->r, base->expanded, exponent->expanded, out);
    *out = sym_pow(w->r->c, base->shown, n);
    return ERR_OK;
}

static enum err_code rewrite_transcendent(struct rewriting *w, const struct sym *e, const struct sym **out)
{
    struct form *f;
    TRY(expanded_form(w, e->a, &f));
    return e->op == SYM_LOG ? rules_log(w->r, f->expanded, out) : rules_exp(w->r, f->expanded, out);
}

static enum err_code rewrite_node(struct rewriting *w, const struct sym *e, const struct sym **out)
{
    struct sym_ctx *c = w->r->c;
    *out = e;
    if (!sym_left(e)) return ERR_OK;
    const struct sym *x = form_of(w, e->a)->done, *y = e->b ? form_of(w, e->b)->done : NULL;
    const bool same = x == e->a && y == e->b;
    switch (sym_op(e)) {
    case SYM_ADD: *out = same ? e : sym_add(c, x, y); break;
    case SYM_MUL: *out = same ? e : sym_mul(c, x, y); break;
    case SYM_DIV: *out = same ? e : sym_div(c, x, y); break;
    case SYM_POW: return rewrite_power(w, e, out);
    case SYM_MIN:
    case SYM_MAX: return rewrite_extreme(w, e, out);
    case SYM_CEIL:
    case SYM_FLOOR: return rewrite_rounding(w, e, out);
    case SYM_LOG:
    case SYM_EXP: return rewrite_transcendent(w, e, out);
    case SYM_CONST:
    case SYM_VAR: break;
    }
    return ERR_OK;
}

/* inner as long as every user is of the same kind */
static void find_inner(struct rewriting *w, const struct sym *root)
{
    size_t at = 0;
    for (size_t i = 0; i < w->order.n; i++) {
        const struct sym *e = w->order.node[i];
        w->inner[i] = e != root && (e->op == SYM_MIN || e->op == SYM_MAX);
    }
    for (size_t i = 0; i < w->order.n; i++) {
        const struct sym *e = w->order.node[i], *operand[2] = {sym_left(e), sym_right(e)};
        for (size_t j = 0; j < 2; j++)
            if (operand[j] && operand[j]->op != e->op && sym_order_find(&w->order, operand[j], &at))
                w->inner[at] = false;
    }
}

static enum err_code rewrite(struct rewriting *w, struct arena *scratch, const struct sym *e, const struct sym **out)
{
    if (!sym_order_make(scratch, 1, &e, &w->order)) return err_nomem(w->r->err);
    w->form = arena_array(scratch, w->order.n, sizeof *w->form);
    w->inner = arena_array(scratch, w->order.n, sizeof *w->inner);
    if (!w->form || !w->inner) return err_nomem(w->r->err);
    find_inner(w, e);
    for (size_t i = 0; i < w->order.n; i++)
        if (!w->inner[i]) TRY(rewrite_node(w, w->order.node[i], &w->form[i].done));
    *out = form_of(w, e)->done;
    return sym_check(w->r->c, w->r->err);
}

enum err_code rules_rewrite(const struct rules *r, const struct sym *e, const struct sym **out)
{
    struct rewriting w = {.r = r};
    TRY(sym_check(r->c, r->err));
    struct arena *scratch = arena_open();
    const enum err_code code = scratch ? rewrite(&w, scratch, e, out) : err_nomem(r->err);
    arena_close(scratch);
    return code;
}

enum err_code rules_depends(const struct rules *r, const struct sym *e, size_t n, const struct sym *const *var,
                            bool *yes)
{
    struct sym_order order;
    size_t at;
    struct arena *scratch = arena_open();
    const bool made = scratch && sym_order_make(scratch, 1, &e, &order);
    *yes = false;
    for (size_t i = 0; made && i < n; i++) *yes = *yes || sym_order_find(&order, var[i], &at);
    arena_close(scratch);
    return made ? ERR_OK : err_nomem(r->err);
}
