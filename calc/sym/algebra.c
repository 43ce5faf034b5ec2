#include "calc/sym/algebra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- generators ---- */

static bool whole_exponent(const struct sym *e) { return sym_is_rational(e->b) && e->b->den == 1; }

static bool is_generator(const struct sym *e)
{
    switch (sym_op(e)) {
    case SYM_CONST:
    case SYM_ADD:
    case SYM_MUL:
    case SYM_DIV: return false;
    case SYM_POW: return !whole_exponent(e);
    case SYM_VAR:
    case SYM_MIN:
    case SYM_MAX:
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_LOG:
    case SYM_EXP: break;
    }
    return true;
}

int64_t algebra_root_index(const struct sym *e)
{
    return e->op == SYM_POW && sym_is_rational(e->b) && e->b->num == 1 && e->b->den > 1 ? e->b->den : 0;
}

static int compare_constants(const struct sym *a, const struct sym *b)
{
    if (a->opaque != b->opaque) return a->opaque ? 1 : -1;
    if (a->value < b->value || a->value > b->value) return a->value < b->value ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

/* By structure, variables first; distinct nodes differ somewhere, so one path down is enough. */
static int compare(const void *x, const void *y)
{
    const struct sym *a = *(const struct sym *const *)x, *b = *(const struct sym *const *)y;
    while (a != b) {
        if (a->op != b->op) return a->op < b->op ? -1 : 1;
        if (a->op == SYM_VAR) return strcmp(a->name, b->name);
        if (a->op == SYM_CONST) return compare_constants(a, b);
        const bool left = a->a != b->a;
        const struct sym *next = left ? a->a : a->b;
        b = left ? b->a : b->b;
        a = next;
    }
    return 0;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* One root of each base, of the least common multiple of their indices. Those of one base are neighbours: their order
 * goes by the base first. */
static void join_roots(struct algebra *al)
{
    size_t kept = 0;
    for (size_t i = 0; i < al->n_gen;) {
        const struct sym *first = al->gen[i++];
        const int64_t index = algebra_root_index(first);
        int64_t all = index;
        for (; index && i < al->n_gen; i++) {
            const int64_t q = algebra_root_index(al->gen[i]);
            if (q == 0 || al->gen[i]->a != first->a) break;
            const int64_t more = q / gcd(all, q);
            if (all > ALGEBRA_EXPONENT / more) break; /* the rest stay apart */
            all *= more;
        }
        al->gen[kept++] = all == index ? first : sym_pow(al->c, first->a, sym_rat(al->c, 1, all));
    }
    al->n_gen = kept;
}

/* What the roots need, counted from the top down. */
static enum err_code find_generators(struct algebra *al, size_t n, const struct sym *const *exprs)
{
    size_t at = 0, found = 0;
    for (size_t i = 0; i < n; i++)
        if (sym_order_find(&al->order, exprs[i], &at)) al->uses[at]++;
    for (size_t i = al->order.n; i-- > 0;) {
        const struct sym *e = al->order.node[i], *x = sym_left(e), *y = sym_right(e);
        if (!al->uses[i]) continue;
        if (is_generator(e)) {
            found++;
            y = NULL;
            if (!algebra_root_index(e) && !algebra_is_part(e)) x = NULL;
        } else if (e->op == SYM_POW) {
            y = NULL;
        }
        if (x && sym_order_find(&al->order, x, &at)) al->uses[at]++;
        if (y && sym_order_find(&al->order, y, &at)) al->uses[at]++;
    }
    if (found > ALGEBRA_GENERATORS)
        return err_set(al->err, ERR_RANGE,
                       "the expression has %zu different symbols, more than the %d of exact algebra", found,
                       ALGEBRA_GENERATORS);
    al->gen = arena_array(al->scratch, found + 1, sizeof *al->gen);
    al->radicand = arena_array(al->scratch, found + 1, sizeof *al->radicand);
    if (!al->gen || !al->radicand) return err_nomem(al->err);
    for (size_t i = 0; i < al->order.n; i++)
        if (al->uses[i] && is_generator(al->order.node[i])) al->gen[al->n_gen++] = al->order.node[i];
    if (found) qsort(al->gen, found, sizeof *al->gen, compare);
    join_roots(al);
    return ERR_OK;
}

/* ---- values ---- */

static enum err_code opaque_value(struct algebra *al, double x, struct ratfun *out)
{
    int e;
    if (!isfinite(x)) return err_set(al->err, ERR_RANGE, "a constant of the expression is no finite number");
    const double fraction = frexp(x, &e);
    TRY(poly_int(al, (int64_t)ldexp(fraction, 53), &out->num));
    e -= 53;
    const uint64_t bits = (uint64_t)(e < 0 ? -(int64_t)e : e);
    struct poly *two, *power, *scaled;
    TRY(poly_int(al, 2, &two));
    TRY(poly_pow(al, two, bits, &power));
    poly_free(al, two);
    if (e < 0) {
        out->den = power;
        return ratfun_lowest(al, out);
    }
    TRY(poly_mul(al, out->num, power, &scaled));
    poly_free(al, power);
    poly_free(al, out->num);
    out->num = scaled;
    return ERR_OK;
}

static enum err_code constant_value(struct algebra *al, const struct sym *e, struct ratfun *out)
{
    if (e->opaque) return opaque_value(al, e->value, out);
    TRY(poly_int(al, e->num, &out->num));
    return e->den == 1 ? ERR_OK : poly_int(al, e->den, &out->den);
}

static enum err_code generator_value(struct algebra *al, const struct sym *e, struct ratfun *out)
{
    size_t i = 0;
    ulong exp[ALGEBRA_GENERATORS] = {0};
    const int64_t q = algebra_root_index(e);
    while (i < al->n_gen && al->gen[i] != e) i++;
    exp[i < al->n_gen ? i : 0] = 1;
    if (i == al->n_gen) { /* a root that was joined with others */
        for (i = 0; algebra_root_index(al->gen[i]) % q != 0 || al->gen[i]->a != e->a;) i++;
        exp[0] = 0;
        exp[i] = (ulong)(algebra_root_index(al->gen[i]) / q);
    }
    out->num = poly_new(al);
    if (!out->num) return err_nomem(al->err);
    flint_z_clear(&al->f, al->z[0]);
    *al->z[0] = 1;
    al->f.push_term(out->num->p, al->z[0], exp, al->ring);
    return ERR_OK;
}

static struct ratfun *operand(struct algebra *al, const struct sym *e)
{
    size_t at = 0;
    (void)sym_order_find(&al->order, e, &at);
    return &al->value[at];
}

static void taken(struct algebra *al, const struct sym *e)
{
    size_t at = 0;
    if (e && sym_order_find(&al->order, e, &at) && al->uses[at] && --al->uses[at] == 0) ratfun_free(al, &al->value[at]);
}

static enum err_code quotient(struct algebra *al, struct ratfun a, struct ratfun b, struct ratfun *out)
{
    struct ratfun inverse;
    TRY(ratfun_inverse(al, b, &inverse));
    TRY(ratfun_mul(al, a, inverse, out));
    ratfun_free(al, &inverse);
    return ERR_OK;
}

static enum err_code power(struct algebra *al, const struct sym *e, struct ratfun *out)
{
    if (rat_magnitude(e->b->num) > ALGEBRA_EXPONENT)
        return err_set(al->err, ERR_RANGE, "the exponent %lld is beyond the %d of exact algebra", (long long)e->b->num,
                       ALGEBRA_EXPONENT);
    TRY(ratfun_pow(al, *operand(al, e->a), e->b->num, out));
    taken(al, e->a);
    return ERR_OK;
}

static enum err_code node_value(struct algebra *al, const struct sym *e, struct ratfun *out)
{
    if (e->op == SYM_CONST) return constant_value(al, e, out);
    if (is_generator(e)) return generator_value(al, e, out);
    if (e->op == SYM_POW) return power(al, e, out);
    const struct ratfun x = *operand(al, e->a), y = *operand(al, e->b);
    TRY(e->op == SYM_ADD   ? ratfun_add(al, x, y, out)
        : e->op == SYM_MUL ? ratfun_mul(al, x, y, out)
                           : quotient(al, x, y, out));
    taken(al, e->a);
    taken(al, e->b);
    return ERR_OK;
}

static enum err_code find_values(struct algebra *al)
{
    for (size_t i = 0; i < al->order.n; i++)
        if (al->uses[i]) TRY(node_value(al, al->order.node[i], &al->value[i]));
    for (size_t j = 0; j < al->n_gen; j++)
        if (algebra_root_index(al->gen[j]) || algebra_is_part(al->gen[j]))
            al->radicand[j] = *operand(al, al->gen[j]->a);
    return ERR_OK;
}

/* ---- opening and closing ---- */

static enum err_code prepare(struct algebra *al, size_t n, const struct sym *const *exprs)
{
    if (!sym_order_make(al->scratch, n, exprs, &al->order)) return err_nomem(al->err);
    al->uses = arena_array(al->scratch, al->order.n, sizeof *al->uses);
    al->value = arena_array(al->scratch, al->order.n, sizeof *al->value);
    if (!al->uses || !al->value) return err_nomem(al->err);
    TRY(find_generators(al, n, exprs));
    /* lexicographic: the order that FLINT's gcd works in */
    al->f.ring_init(al->ring, al->n_gen ? (slong)al->n_gen : 1, ORD_LEX);
    al->ring_made = true;
    return find_values(al);
}

static void release_library(void *f) { flint_close(f); }

static enum err_code find_library(struct sym_ctx *c, struct err *e)
{
    if (c->flint) return ERR_OK;
    struct flint *f = arena_alloc(c->arena, sizeof *f);
    if (!f) return err_nomem(e);
    TRY(flint_open(f, e));
    TRY(arena_defer(c->arena, release_library, f, e));
    c->flint = f;
    return ERR_OK;
}

enum err_code algebra_open(struct algebra *al, struct sym_ctx *c, size_t n, const struct sym *const *exprs,
                           struct err *e)
{
    *al = (struct algebra){.c = c, .err = e};
    TRY(sym_check(c, e));
    TRY(find_library(c, e));
    al->f = *c->flint;
    al->scratch = arena_open();
    const enum err_code code = al->scratch ? prepare(al, n, exprs) : err_nomem(e);
    if (code != ERR_OK) algebra_close(al);
    return code;
}

void algebra_close(struct algebra *al)
{
    while (al->live) poly_free(al, al->live);
    for (size_t i = 0; i < sizeof al->z / sizeof al->z[0]; i++) flint_z_clear(&al->f, al->z[i]);
    if (al->ring_made) al->f.ring_clear(al->ring);
    arena_close(al->scratch);
    al->f.cleanup(); /* what FLINT caches for this thread */
}

enum err_code algebra_value(struct algebra *al, const struct sym *e, struct ratfun *out)
{
    const struct ratfun *r = operand(al, e);
    *out = (struct ratfun){0};
    TRY(poly_copy(al, r->num, &out->num));
    return r->den ? poly_copy(al, r->den, &out->den) : ERR_OK;
}

/* ---- back to expressions ---- */

const struct sym *algebra_write_number(struct algebra *al, const fmpz_t z)
{
    enum { DIGIT = 62 };
    if (al->f.z_fits_si(z)) return sym_int(al->c, al->f.z_get_si(z));
    const struct sym *r = al->c->zero, *base = sym_int(al->c, INT64_C(1) << DIGIT);
    fmpz_t all = {0}, digit = {0};
    al->f.z_abs(all, z);
    for (size_t i = al->f.z_bits(all) / DIGIT + 1; i-- > 0;) {
        al->f.z_fdiv_q_2exp(digit, all, i * DIGIT);
        al->f.z_fdiv_r_2exp(digit, digit, DIGIT);
        r = sym_add(al->c, sym_mul(al->c, base, r), sym_int(al->c, al->f.z_get_si(digit)));
    }
    flint_z_clear(&al->f, all);
    flint_z_clear(&al->f, digit);
    return al->f.z_sgn(z) < 0 ? sym_mul(al->c, al->c->minus_one, r) : r;
}

/* g^n; of a root in one step: (b^(1/3))^2 is b^(2/3) */
static const struct sym *generator_power(struct algebra *al, size_t gen, ulong n)
{
    const struct sym *g = al->gen[gen];
    const int64_t q = algebra_root_index(g);
    if (q) return sym_pow(al->c, g->a, sym_rat(al->c, (int64_t)n, q));
    return sym_pow(al->c, g, sym_int(al->c, (int64_t)n));
}

/* p over a number, NULL for 1 */
static const struct sym *write_over(struct algebra *al, const struct poly *p, const struct sym *number)
{
    const size_t n = (size_t)p->p->length;
    ulong exp[ALGEBRA_GENERATORS] = {0};
    const struct sym **term = arena_array(al->scratch, n + 1, sizeof *term);
    if (!term) return sym_fail(al->c);
    for (size_t i = 0; i < n; i++) {
        al->f.term_exp(exp, p->p, (slong)i, al->ring);
        const struct sym *t = algebra_write_number(al, &p->p->coeffs[i]);
        if (number) t = sym_div(al->c, t, number);
        for (size_t j = 0; j < al->n_gen; j++)
            if (exp[j]) t = sym_mul(al->c, t, generator_power(al, j, exp[j]));
        term[i] = t;
    }
    return sym_sum(al->c, n, term);
}

const struct sym *poly_write(struct algebra *al, const struct poly *p) { return write_over(al, p, NULL); }

static uint64_t bits_of(const struct algebra *al, const struct poly *p) { return rat_magnitude(al->f.max_bits(p->p)); }

/* Numbers beyond what a double holds above and below the stroke: each coefficient gets its own stroke, so that the
 * quotient has a value where both sides alone are infinite. */
static const struct sym *write_long(struct algebra *al, struct ratfun r)
{
    struct sym_ctx *c = al->c;
    if (al->f.is_fmpz(r.den->p, al->ring)) return write_over(al, r.num, algebra_write_number(al, &r.den->p->coeffs[0]));
    const uint64_t x = bits_of(al, r.num), y = bits_of(al, r.den);
    const struct sym *scale = sym_pow(c, sym_int(c, 2), sym_int(c, (int64_t)(x < y ? x : y)));
    return sym_div(c, write_over(al, r.num, scale), write_over(al, r.den, scale));
}

const struct sym *ratfun_write(struct algebra *al, struct ratfun r)
{
    enum { LONG_BITS = 900 };
    if (r.den && bits_of(al, r.den) > LONG_BITS && bits_of(al, r.num) > LONG_BITS &&
        !(al->f.is_fmpz(r.num->p, al->ring) && al->f.is_fmpz(r.den->p, al->ring)))
        return write_long(al, r);
    const struct sym *num = poly_write(al, r.num);
    return r.den ? sym_div(al->c, num, poly_write(al, r.den)) : num;
}

/* ---- one generator at a time ---- */

int64_t poly_degree(struct algebra *al, const struct poly *p, size_t gen)
{
    slong degree[ALGEBRA_GENERATORS] = {0};
    if (p->p->length) al->f.degrees_si(degree, p->p, al->ring);
    return degree[gen];
}

enum err_code poly_coefficients(struct algebra *al, const struct poly *p, size_t gen, size_t degree, struct poly **out)
{
    ulong exp[ALGEBRA_GENERATORS] = {0};
    for (size_t k = 0; k <= degree; k++)
        if (!(out[k] = poly_new(al))) return err_nomem(al->err);
    for (slong i = 0; i < p->p->length; i++) {
        al->f.term_exp(exp, p->p, i, al->ring);
        const ulong k = exp[gen];
        exp[gen] = 0;
        al->f.push_term(out[k]->p, &p->p->coeffs[i], exp, al->ring); /* still in order */
    }
    for (size_t k = 0; k <= degree; k++) TRY(poly_sealed(al, out[k]));
    return ERR_OK;
}

int poly_sign(struct algebra *al, const struct poly *p, const int8_t *sign)
{
    ulong exp[ALGEBRA_GENERATORS] = {0};
    int all = 0;
    for (slong i = 0; i < p->p->length; i++) {
        al->f.term_exp(exp, p->p, i, al->ring);
        int s = al->f.z_sgn(&p->p->coeffs[i]);
        for (size_t j = 0; j < al->n_gen; j++) {
            if (exp[j] && !sign[j]) return 2;
            if (exp[j] % 2) s *= sign[j];
        }
        if (all && all != s) return 2;
        all = s;
    }
    return all;
}
