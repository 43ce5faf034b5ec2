#include "calc/sym/range.h"

#include "calc/sym/node.h"

struct range {
    struct sym_ctx *c;
    const struct sym *var;
    uint64_t *steps;
    struct err *err;
};

/* A polynomial in the variable: k[0..degree]. */
struct in_var {
    size_t degree;
    const struct sym **k;
};

/* One body, while it is looked at. */
struct body {
    const struct range *r;
    struct arena *scratch;
    const struct sym *e;
    struct sym_order order;
    bool *has;              /* [position] the variable is in it */
    struct in_var *poly;    /* [position] of those that have it */
    const struct sym *atom; /* the first min or max with the variable */
    const char *why;        /* no polynomial: the variable is there */
};

static enum err_code sum_of(const struct range *r, const struct sym *e, const struct sym *low, const struct sym *high,
                            size_t depth, const struct sym **out);

static enum err_code spend(const struct range *r, uint64_t n)
{
    if (n <= *r->steps) {
        *r->steps -= n;
        return ERR_OK;
    }
    *r->steps = 0;
    return err_set(r->err, ERR_RANGE, "the sum would take too long");
}

static size_t position(const struct body *b, const struct sym *e) { return b->order.pos[e->index] - 1; }
static bool has(const struct body *b, const struct sym *e) { return e && b->has[position(b, e)]; }

/* ---- polynomials in the variable ---- */

static enum err_code new_poly(struct body *b, size_t degree, struct in_var *out)
{
    out->degree = degree;
    out->k = arena_array(b->scratch, degree + 1, sizeof *out->k);
    return out->k ? ERR_OK : err_nomem(b->r->err);
}

static const struct sym *coefficient(const struct body *b, const struct in_var *p, size_t i)
{
    return i <= p->degree ? p->k[i] : b->r->c->zero;
}

/* of a node with or without the variable */
static enum err_code poly_of(struct body *b, const struct sym *e, struct in_var *out)
{
    if (has(b, e)) {
        *out = b->poly[position(b, e)];
        return ERR_OK;
    }
    TRY(new_poly(b, 0, out));
    out->k[0] = e;
    return ERR_OK;
}

static enum err_code poly_sum(struct body *b, struct in_var x, struct in_var y, int64_t sign, struct in_var *out)
{
    struct sym_ctx *c = b->r->c;
    const size_t degree = x.degree > y.degree ? x.degree : y.degree;
    TRY(spend(b->r, degree + 1));
    TRY(new_poly(b, degree, out));
    for (size_t i = 0; i <= degree; i++) {
        const struct sym *u = coefficient(b, &x, i), *v = coefficient(b, &y, i);
        out->k[i] = sign < 0 ? sym_sub(c, u, v) : sym_add(c, u, v);
    }
    while (out->degree && sym_is_int(out->k[out->degree], 0)) out->degree--;
    return ERR_OK;
}

static enum err_code poly_product(struct body *b, struct in_var x, struct in_var y, struct in_var *out)
{
    struct sym_ctx *c = b->r->c;
    const size_t degree = x.degree + y.degree;
    if (degree > RANGE_DEGREE_MAX) {
        b->why = "to a power above 30";
        return ERR_OK;
    }
    TRY(spend(b->r, 2 * (x.degree + 1) * (y.degree + 1)));
    TRY(new_poly(b, degree, out));
    for (size_t i = 0; i <= degree; i++) out->k[i] = c->zero;
    for (size_t i = 0; i <= x.degree; i++)
        for (size_t j = 0; j <= y.degree; j++) out->k[i + j] = sym_add(c, out->k[i + j], sym_mul(c, x.k[i], y.k[j]));
    return ERR_OK;
}

static enum err_code poly_power(struct body *b, const struct sym *e, struct in_var *out)
{
    struct in_var x;
    if (has(b, e->b))
        b->why = "in an exponent";
    else if (!sym_is_rational(e->b) || e->b->den != 1)
        b->why = "in the base of a power that is no whole number";
    else if (e->b->num < 0)
        b->why = "in a denominator";
    else if (e->b->num > RANGE_DEGREE_MAX)
        b->why = "to a power above 30";
    if (b->why) return ERR_OK;
    TRY(poly_of(b, e->a, &x));
    *out = x;
    for (int64_t i = 1; i < e->b->num && !b->why; i++) TRY(poly_product(b, *out, x, out));
    return ERR_OK;
}

/* b->why or b->atom are set where it is none */
static enum err_code poly_node(struct body *b, const struct sym *e, struct in_var *out)
{
    struct in_var x, y;
    switch (sym_op(e)) {
    case SYM_CONST: break;
    case SYM_VAR:
        TRY(new_poly(b, 1, out));
        out->k[0] = b->r->c->zero;
        out->k[1] = b->r->c->one;
        break;
    case SYM_ADD:
    case SYM_MUL:
        TRY(poly_of(b, e->a, &x));
        TRY(poly_of(b, e->b, &y));
        return e->op == SYM_ADD ? poly_sum(b, x, y, 1, out) : poly_product(b, x, y, out);
    case SYM_DIV:
        if (has(b, e->b)) {
            b->why = "in a denominator";
            break;
        }
        TRY(poly_of(b, e->a, &x));
        TRY(spend(b->r, x.degree + 1));
        TRY(new_poly(b, x.degree, out));
        for (size_t i = 0; i <= x.degree; i++) out->k[i] = sym_div(b->r->c, x.k[i], e->b);
        break;
    case SYM_POW: return poly_power(b, e, out);
    case SYM_MIN:
    case SYM_MAX: b->atom = e; break;
    case SYM_CEIL:
    case SYM_FLOOR: b->why = "inside a ceil or floor"; break;
    case SYM_LOG: b->why = "inside a logarithm"; break;
    case SYM_EXP: b->why = "in an exponent"; break;
    }
    return ERR_OK;
}

static enum err_code body_open(struct body *b)
{
    if (!sym_order_make(b->scratch, 1, &b->e, &b->order)) return err_nomem(b->r->err);
    TRY(spend(b->r, 1 + b->order.n / 4 + b->order.n_index / 64));
    b->has = arena_array(b->scratch, b->order.n, sizeof *b->has);
    b->poly = arena_array(b->scratch, b->order.n, sizeof *b->poly);
    if (!b->has || !b->poly) return err_nomem(b->r->err);
    for (size_t i = 0; i < b->order.n; i++) {
        const struct sym *e = b->order.node[i];
        b->has[i] = e == b->r->var || has(b, sym_left(e)) || has(b, sym_right(e));
    }
    for (size_t i = 0; i < b->order.n && !b->why && !b->atom; i++)
        if (b->has[i]) TRY(poly_node(b, b->order.node[i], &b->poly[i]));
    return ERR_OK;
}

/* the body with value for one of its nodes */
static enum err_code substituted(struct body *b, const struct sym *node, const struct sym *value,
                                 const struct sym **memo, const struct sym **out)
{
    uint64_t built = 1;
    for (size_t i = 0; i < b->order.n; i++) {
        const struct sym *e = b->order.node[i];
        memo[i] = e == node ? value : e;
        if (e == node || !b->has[i] || !sym_left(e)) continue;
        memo[i] = sym_rebuild(b->r->c, e, memo[position(b, e->a)], e->b ? memo[position(b, e->b)] : NULL);
        built++;
    }
    *out = memo[b->order.n - 1];
    return spend(b->r, built);
}

/* ---- Faulhaber ---- */

/* B_j as in the sum from 1 to n: B_1 is 1/2; B_3, B_5, ... are 0 */
static struct rat bernoulli(size_t j)
{
    static const struct rat EVEN[RANGE_DEGREE_MAX / 2 + 1] = {{1, 1},
                                                              {1, 6},
                                                              {-1, 30},
                                                              {1, 42},
                                                              {-1, 30},
                                                              {5, 66},
                                                              {-691, 2730},
                                                              {7, 6},
                                                              {-3617, 510},
                                                              {43867, 798},
                                                              {-174611, 330},
                                                              {854513, 138},
                                                              {-236364091, 2730},
                                                              {8553103, 6},
                                                              {-INT64_C(23749461029), 870},
                                                              {INT64_C(8615841276005), 14322}};
    if (j == 1) return (struct rat){1, 2};
    return j % 2 ? (struct rat){0, 1} : EVEN[j / 2];
}

/* the sum of p from 1 to n, as a polynomial in n without constant term; all numbers fit: degree <= 30 */
static enum err_code antidifference(struct body *b, const struct in_var *p, struct in_var *out)
{
    struct sym_ctx *c = b->r->c;
    TRY(spend(b->r, 2 * (p->degree + 1) * (p->degree + 1)));
    TRY(new_poly(b, p->degree + 1, out));
    for (size_t m = 0; m <= out->degree; m++) out->k[m] = c->zero;
    for (size_t k = 0; k <= p->degree; k++) {
        struct rat choose = {1, 1}, x; /* C(k+1, j) */
        for (size_t j = 0; j <= k; j++) {
            if (j && !rat_mul(choose, (struct rat){(int64_t)(k + 2 - j), (int64_t)j}, &choose))
                return err_nomem(b->r->err);
            if (!rat_mul(choose, bernoulli(j), &x) || !rat_mul(x, (struct rat){1, (int64_t)k + 1}, &x))
                return err_nomem(b->r->err);
            const size_t m = k + 1 - j;
            out->k[m] = sym_add(c, out->k[m], sym_mul(c, sym_rational(c, x), p->k[k]));
        }
    }
    return ERR_OK;
}

static enum err_code sum_polynomial(struct body *b, const struct sym *low, const struct sym *high,
                                    const struct sym **out)
{
    struct sym_ctx *c = b->r->c;
    struct in_var p, sum;
    const struct sym *term[RANGE_DEGREE_MAX + 2], *before = sym_sub(c, low, c->one);
    TRY(poly_of(b, b->e, &p));
    TRY(antidifference(b, &p, &sum));
    for (size_t m = 1; m <= sum.degree; m++) {
        const struct sym *n = sym_int(c, (int64_t)m);
        const struct sym *gap = sym_sub(c, sym_pow(c, high, n), sym_pow(c, before, n));
        term[m - 1] = sym_mul(c, sum.k[m], gap);
    }
    *out = sym_sum(c, sum.degree, term);
    return ERR_OK;
}

/* ---- min and max ---- */

static bool is_whole_power(const struct sym *e) { return sym_is_rational(e->b) && e->b->den == 1 && e->b->num >= 0; }

/* whether e is whole when its symbols are */
static enum err_code is_whole(const struct range *r, const struct sym *e, bool *yes)
{
    struct sym_order order;
    struct arena *scratch = arena_open();
    bool *whole = NULL;
    if (scratch && sym_order_make(scratch, 1, &e, &order)) whole = arena_array(scratch, order.n, sizeof *whole);
    for (size_t i = 0; whole && i < order.n; i++) {
        const struct sym *x = order.node[i], *a = sym_left(x), *b = sym_right(x);
        const bool both = a && whole[order.pos[a->index] - 1] && (!b || whole[order.pos[b->index] - 1]);
        whole[i] = x->whole || x->op == SYM_VAR ||
                   (both && x->op != SYM_DIV && x->op != SYM_LOG && x->op != SYM_EXP &&
                    (x->op != SYM_POW || is_whole_power(x)));
    }
    *yes = whole && whole[order.n - 1];
    arena_close(scratch);
    return whole ? ERR_OK : err_nomem(r->err);
}

static enum err_code closed_form_refused(const struct body *b, const char *why)
{
    return err_set(
        b->r->err, ERR_RANGE,
        "no closed form of the sum: its variable is %s; term by term it is added up only between numbers, and "
        "of at most %d terms",
        why, RANGE_TERMS_MAX);
}

static int sign_of(struct sym_ctx *c, const struct sym *e)
{
    return e->above ? 1 : sym_mul(c, c->minus_one, e)->above ? -1 : 0;
}

/* Where the atom's operands cross: u <= v up to there when *sign is 1, from there when it is -1; 0: they never do, and
 * *at is u - v. why is set when that cannot be said. */
static enum err_code crossing(struct body *b, const struct sym **at, int *sign)
{
    struct sym_ctx *c = b->r->c;
    struct in_var u, v, d;
    TRY(poly_of(b, b->atom->a, &u));
    TRY(poly_of(b, b->atom->b, &v));
    TRY(poly_sum(b, u, v, -1, &d));
    *sign = 0;
    *at = d.k[0];
    if (d.degree == 0) return ERR_OK;
    if (d.degree == 1) *sign = sign_of(c, d.k[1]);
    if (*sign == 0) {
        b->why =
            d.degree == 1 ? "inside a min or max with a factor of unknown sign" : "inside a min or max of powers of it";
        return ERR_OK;
    }
    bool whole;
    *at = sym_div(c, sym_mul(c, c->minus_one, d.k[0]), d.k[1]);
    TRY(is_whole(b->r, *at, &whole));
    if (!whole) *at = sym_floor(c, *at);
    return ERR_OK;
}

static enum err_code sum_split(struct body *b, const struct sym *low, const struct sym *high, size_t depth,
                               const struct sym **out)
{
    struct sym_ctx *c = b->r->c;
    const struct sym *at, *part[2], *a = b->atom->a, *v = b->atom->b;
    const struct sym **memo = arena_array(b->scratch, b->order.n, sizeof *memo);
    const bool least = b->atom->op == SYM_MIN;
    int sign;
    if (!memo) return err_nomem(b->r->err);
    if (depth == RANGE_SPLITS_MAX)
        b->why = "inside too many min or max";
    else
        TRY(crossing(b, &at, &sign));
    if (b->why) return ERR_OK;
    if (sign == 0) {
        const struct sym *gap = least ? sym_min(c, at, c->zero) : sym_max(c, at, c->zero);
        TRY(substituted(b, b->atom, sym_add(c, v, gap), memo, &part[0]));
        return sum_of(b->r, part[0], low, high, depth + 1, out);
    }
    const bool first = (sign > 0) == least; /* a up to the crossing */
    const struct sym *p = sym_min(c, sym_max(c, at, sym_sub(c, low, c->one)), high);
    TRY(substituted(b, b->atom, first ? a : v, memo, &part[0]));
    TRY(substituted(b, b->atom, first ? v : a, memo, &part[1]));
    TRY(sum_of(b->r, part[0], low, p, depth + 1, &part[0]));
    TRY(sum_of(b->r, part[1], sym_add(c, p, c->one), high, depth + 1, &part[1]));
    *out = sym_add(c, part[0], part[1]);
    return ERR_OK;
}

/* ---- one by one ---- */

/* the number of terms when both bounds are numbers and it is small enough */
static bool few_terms(const struct sym *low, const struct sym *high, size_t *n)
{
    int64_t gap;
    if (!sym_is_rational(low) || !sym_is_rational(high)) return false;
    if (__builtin_sub_overflow(high->num, low->num, &gap) || gap >= RANGE_TERMS_MAX) return false;
    *n = (size_t)(gap + 1);
    return true;
}

static enum err_code sum_terms(struct body *b, int64_t low, size_t n, const struct sym **out)
{
    struct sym_ctx *c = b->r->c;
    const struct sym **term = arena_array(b->scratch, n + 1, sizeof *term);
    const struct sym **memo = arena_array(b->scratch, b->order.n, sizeof *memo);
    if (!term || !memo) return err_nomem(b->r->err);
    for (size_t i = 0; i < n; i++) TRY(substituted(b, b->r->var, sym_int(c, low + (int64_t)i), memo, &term[i]));
    *out = sym_sum(c, n, term);
    return ERR_OK;
}

/* ---- the sum ---- */

static enum err_code sum_body(struct body *b, const struct sym *low, const struct sym *high, size_t depth,
                              const struct sym **out)
{
    const struct range *r = b->r, quiet = {r->c, r->var, r->steps, NULL};
    size_t n = 0;
    TRY(body_open(b));
    if (!b->why && !b->atom) return sum_polynomial(b, low, high, out);
    const bool few = few_terms(low, high, &n);
    if (few && n <= RANGE_FEW) return sum_terms(b, low->num, n, out);
    *out = NULL;
    if (few) b->r = &quiet; /* that it cannot be split is no error then */
    const enum err_code code = b->why ? ERR_OK : sum_split(b, low, high, depth, out);
    b->r = r;
    if (code != ERR_OK && !(few && code == ERR_RANGE)) return code;
    if (code == ERR_OK && *out) return ERR_OK;
    return few ? sum_terms(b, low->num, n, out) : closed_form_refused(b, b->why);
}

static enum err_code sum_of(const struct range *r, const struct sym *e, const struct sym *low, const struct sym *high,
                            size_t depth, const struct sym **out)
{
    struct body b = {.r = r, .e = e, .scratch = arena_open()};
    TRY(sym_check(r->c, r->err));
    const enum err_code code = b.scratch ? sum_body(&b, low, high, depth, out) : err_nomem(r->err);
    arena_close(b.scratch);
    return code;
}

static enum err_code check_bounds(const struct range *r, const struct sym *low, const struct sym *high)
{
    const struct sym *const side[2] = {low, high};
    for (int k = 0; k < 2; k++) {
        bool whole = true;
        double x = 0.0;
        if (!sym_constant(side[k], &x)) continue;
        TRY(is_whole(r, side[k], &whole));
        if (!whole) return err_set(r->err, ERR_RANGE, "a bound of a sum is %g, no whole number", x);
    }
    const struct sym *gap = sym_add(r->c, sym_sub(r->c, high, low), r->c->one);
    double n = 0.0;
    if (sym_constant(gap, &n) && !(n >= 0.0))
        return err_set(r->err, ERR_RANGE, "the upper bound of a sum is below the lower one");
    return ERR_OK;
}

enum err_code sym_sum_range_within(struct sym_ctx *c, const struct sym *body, const struct sym *var,
                                   const struct sym *low, const struct sym *high, uint64_t *steps,
                                   const struct sym **out, struct err *err)
{
    const struct range r = {c, var, steps, err};
    const struct sym *sum = NULL;
    TRY(sym_check(c, err));
    if (sym_op(var) != SYM_VAR) return err_set(err, ERR_RANGE, "only over a symbol can be summed");
    TRY(check_bounds(&r, low, high));
    TRY(sum_of(&r, body, low, high, 0, &sum));
    TRY(sym_check(c, err));
    *out = sum;
    return ERR_OK;
}

enum err_code sym_sum_range(struct sym_ctx *c, const struct sym *body, const struct sym *var, const struct sym *low,
                            const struct sym *high, const struct sym **out, struct err *err)
{
    uint64_t steps = RANGE_WORK;
    return sym_sum_range_within(c, body, var, low, high, &steps, out, err);
}
