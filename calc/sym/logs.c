/* Logarithms and exponentials, taken apart as far as their arguments are products and sums. */
#include <stdlib.h>

#include "calc/sym/factor.h"

enum { DEPTH = 16, EXPONENT = 64, EXPONENT_TERMS = 64, PRIME_LIMIT = 1000, FACTORS = 64 };

/* A logarithm being taken apart. */
struct logarithm {
    const struct rules *r;
    struct algebra *al;
    int8_t sign[ALGEBRA_GENERATORS];
    const struct sym *sum; /* what is out already */
    int depth;             /* of powers within powers */
    bool minus;            /* what is left is negative where the factors of joint are positive */
    size_t n_joint;        /* factors whose sign is not known: they stay in one logarithm */
    struct {
        struct poly *p;
        int64_t exponent; /* below 0: of the denominator */
    } joint[FACTORS];
};

static enum err_code log_at(const struct rules *r, const struct sym *x, int depth, const struct sym **out);

static void add_log(struct logarithm *l, int64_t times, const struct sym *log)
{
    struct sym_ctx *c = l->r->c;
    l->sum = sym_add(c, l->sum, sym_mul(c, sym_int(c, times), log));
}

static enum err_code never_positive(const struct rules *r)
{
    return err_set(r->err, ERR_RANGE, "the expression has a logarithm of what is not positive");
}

/* ---- numbers ---- */

/* z, with no divisor below PRIME_LIMIT, and beyond 64 bits, as the power of a smaller number where it is one */
static void take_power(const struct flint *f, fmpz_t z, int64_t *times)
{
    static const int64_t PRIME[] = {2, 3, 5, 7, 11, 13};
    fmpz_t root = {0};
    for (size_t i = 0; i < sizeof PRIME / sizeof PRIME[0] && !f->z_fits_si(z);) {
        if (!f->z_root(root, z, PRIME[i])) { /* true when exact */
            i++;
            continue;
        }
        f->z_set(z, root);
        *times *= PRIME[i];
    }
    flint_z_clear(f, root);
}

/* times*log(z), z > 0; z is used up */
static void add_number(struct logarithm *l, fmpz_t z, int64_t times)
{
    const struct flint *f = &l->al->f;
    struct sym_ctx *c = l->r->c;
    for (int64_t d = 2; d < PRIME_LIMIT && *z != 1; d++) {
        int64_t n = 0;
        for (; f->z_divisible_si(z, d); n++) f->z_divexact_ui(z, z, (ulong)d);
        if (n) add_log(l, n * times, sym_log(c, sym_int(c, d)));
    }
    if (*z == 1) return;
    take_power(f, z, &times);
    if (!f->z_fits_si(z)) {
        add_log(l, times, sym_log(c, algebra_write_number(l->al, z)));
        return;
    }
    n_factor_t primes = {.num = 0};
    f->n_factor(&primes, (ulong)f->z_get_si(z), 0);
    for (int i = 0; i < primes.num; i++)
        add_log(l, (int64_t)primes.exp[i] * times, sym_log(c, sym_int(c, (int64_t)primes.p[i])));
}

/* ---- generators ---- */

static bool comes_out(const struct logarithm *l, size_t gen)
{
    const struct sym *g = l->al->gen[gen];
    return l->sign[gen] > 0 ||
           (g->op == SYM_POW && sym_is_rational(g->b)); /* a root is real where its base is positive */
}

static enum err_code add_generator(struct logarithm *l, size_t gen, int64_t times)
{
    const struct sym *g = l->al->gen[gen], *log = NULL;
    if (g->op == SYM_POW && l->depth < DEPTH) {
        const struct sym *base;
        TRY(rules_expand(l->r, g->a, &base));
        TRY(log_at(l->r, base, l->depth + 1, &log));
        log = sym_mul(l->r->c, g->b, log);
    }
    add_log(l, times, log ? log : sym_log(l->r->c, g));
    return ERR_OK;
}

/* the number and the generators that divide every term of p, out; what is left replaces it */
static enum err_code take_content(struct logarithm *l, struct poly **p, int64_t side)
{
    struct algebra *al = l->al;
    ulong exp[ALGEBRA_GENERATORS] = {0};
    struct poly *content = poly_new(al), *taken = poly_new(al), *rest = poly_new(al);
    if (!content || !taken || !rest) return err_nomem(al->err);
    al->f.term_content(content->p, (*p)->p, al->ring);
    al->f.term_exp(exp, content->p, 0, al->ring);
    for (size_t j = 0; j < al->n_gen; j++) {
        if (!comes_out(l, j)) exp[j] = 0;
        if (exp[j]) TRY(add_generator(l, j, side * (int64_t)exp[j]));
    }
    al->f.z_abs(al->z[1], &content->p->coeffs[0]);
    al->f.push_term(taken->p, al->z[1], exp, al->ring);
    TRY(poly_sealed(al, taken));
    if (!al->f.divides(rest->p, (*p)->p, taken->p, al->ring))
        return err_set(al->err, ERR_RANGE, "a logarithm could not be simplified");
    add_number(l, al->z[1], side);
    poly_free(al, content);
    poly_free(al, taken);
    poly_free(al, *p);
    *p = rest;
    return poly_sealed(al, rest);
}

/* ---- polynomials ---- */

/* one factor, of positive or unknown sign, or minus such a one */
static enum err_code add_factor(struct logarithm *l, struct poly *p, int64_t exponent)
{
    struct algebra *al = l->al;
    const struct sym *shown = NULL;
    int sign = poly_sign(al, p, l->sign);
    if (sign == -1) {
        al->f.neg(p->p, p->p, al->ring);
        if (exponent % 2) l->minus = !l->minus;
        sign = 1;
    }
    if (poly_is_one(al, p)) return ERR_OK;
    TRY(rules_shorten(l->r, poly_write(al, p), &shown));
    if (sign == 1 || shown->above) { /* max(x, y) is plainly positive, x + y - min(x, y) is not */
        add_log(l, exponent, sym_log(l->r->c, shown));
        return ERR_OK;
    }
    if (l->n_joint == FACTORS) return err_set(al->err, ERR_RANGE, "a logarithm has more than %d factors", FACTORS);
    l->joint[l->n_joint].p = p;
    l->joint[l->n_joint++].exponent = exponent;
    return ERR_OK;
}

static enum err_code add_factors(struct logarithm *l, fmpz_mpoly_factor_t f, int64_t side)
{
    struct algebra *al = l->al;
    if (al->f.z_sgn(f->constant) < 0) l->minus = !l->minus;
    for (slong i = 0; i < f->num; i++) {
        struct poly *p = poly_new(al);
        if (!p) return err_nomem(al->err);
        al->f.set(p->p, &f->poly[i], al->ring);
        TRY(poly_sealed(al, p));
        TRY(add_factor(l, p, side * al->f.z_get_si(&f->exp[i])));
    }
    return ERR_OK;
}

static enum err_code add_poly(struct logarithm *l, struct poly *p, int64_t side)
{
    struct algebra *al = l->al;
    TRY(take_content(l, &p, side));
    if (al->f.z_sgn(&p->p->coeffs[0]) < 0) {
        al->f.neg(p->p, p->p, al->ring);
        l->minus = !l->minus;
    }
    if (poly_is_one(al, p)) return ERR_OK;
    if (!factor_soon(al, p)) return add_factor(l, p, side);
    fmpz_mpoly_factor_t f = {{.constant = {1}, .constant_den = {1}}};
    const bool done = al->f.factor(f, p->p, al->ring) != 0;
    const enum err_code code = done ? add_factors(l, f, side) : add_factor(l, p, side);
    al->f.factor_clear(f, al->ring);
    return code;
}

/* ---- what stays together ---- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

/* the product of the factors on one side, exponents divided by times; NULL for 1 */
static enum err_code joint_side(struct logarithm *l, int64_t side, int64_t times, struct poly **out)
{
    *out = NULL;
    for (size_t i = 0; i < l->n_joint; i++) {
        const int64_t n = side * l->joint[i].exponent / times;
        struct poly *power, *product;
        if (n <= 0) continue;
        TRY(poly_pow(l->al, l->joint[i].p, (uint64_t)n, &power));
        if (*out) {
            TRY(poly_mul(l->al, *out, power, &product));
            power = product;
        }
        *out = power;
    }
    return ERR_OK;
}

/* The logarithm of all that has no known sign: its odd power comes out, its even one but for a square. Of a quotient
 * and its inverse one is chosen. */
static enum err_code add_joint(struct logarithm *l)
{
    struct sym_ctx *c = l->r->c;
    int64_t times = 0;
    struct poly *part[2];
    const struct sym *side[2], *x;
    for (size_t i = 0; i < l->n_joint; i++) times = gcd(times, l->joint[i].exponent);
    if (l->minus && times % 2 == 0) return never_positive(l->r); /* also for none */
    if (l->n_joint == 0) return ERR_OK;
    if (times % 2 == 0) times /= 2;
    TRY(joint_side(l, 1, times, &part[0]));
    TRY(joint_side(l, -1, times, &part[1]));
    for (int k = 0; k < 2; k++) side[k] = part[k] ? poly_write(l->al, part[k]) : c->one;
    const bool inverse = !part[0] || (part[1] && side[1]->index < side[0]->index);
    struct ratfun v = {.num = part[inverse ? 1 : 0], .den = part[inverse ? 0 : 1]};
    if (l->minus) l->al->f.neg(v.num->p, v.num->p, l->al->ring);
    x = ratfun_write(l->al, v);
    TRY(sym_check(c, l->r->err));
    TRY(rules_shorten(l->r, x, &x));
    add_log(l, inverse ? -times : times, sym_log(c, x));
    return ERR_OK;
}

static enum err_code log_in(struct logarithm *l, const struct sym *x)
{
    struct ratfun v;
    TRY(rules_generator_signs(l->al, l->sign));
    TRY(algebra_value(l->al, x, &v));
    if (poly_is_zero(v.num)) return never_positive(l->r);
    TRY(add_poly(l, v.num, 1));
    if (v.den) TRY(add_poly(l, v.den, -1));
    TRY(add_joint(l));
    return sym_check(l->r->c, l->r->err);
}

static enum err_code log_at(const struct rules *r, const struct sym *x, int depth, const struct sym **out)
{
    struct algebra al;
    TRY(algebra_open(&al, r->c, 1, &x, r->err));
    struct logarithm *l = arena_alloc(al.scratch, sizeof *l);
    enum err_code code = l ? ERR_OK : err_nomem(r->err);
    if (l) {
        *l = (struct logarithm){.r = r, .al = &al, .sum = r->c->zero, .depth = depth};
        code = log_in(l, x);
        if (code == ERR_OK) *out = l->sum;
    }
    algebra_close(&al);
    return code;
}

enum err_code rules_log(const struct rules *r, const struct sym *x, const struct sym **out)
{
    return log_at(r, x, 0, out);
}

/* ---- exponentials ---- */

/* exp(k*m); base: b of a log(b) that was a factor of m and is no longer, or NULL */
static enum err_code exp_of_term(const struct rules *r, struct rat k, const struct sym *base, const struct sym *m,
                                 const struct sym **out)
{
    struct sym_ctx *c = r->c;
    if (base && sym_is_int(m, 1) && k.den > 1 && k.den <= EXPONENT && rat_magnitude(k.num) <= ALGEBRA_EXPONENT) {
        TRY(rules_expand(r, base, &base));
        return rules_root(r, base, k.num, k.den, out);
    }
    const bool apart = rat_magnitude(k.num) <= EXPONENT && k.den <= EXPONENT;
    if (base && !(r->prove && apart && !sym_is_int(m, 1))) {
        *out = sym_pow(c, base, sym_mul(c, sym_rational(c, k), m));
        return ERR_OK;
    }
    if (!apart) { /* only the sign comes out */
        const bool minus = k.num < 0 && rat_make(k.num, -k.den, &k);
        *out = sym_exp(c, sym_mul(c, sym_rational(c, k), m));
        if (minus) *out = sym_pow(c, *out, c->minus_one);
        return ERR_OK;
    }
    const struct sym *x = base ? sym_pow(c, base, m) : sym_exp(c, m);
    if (k.den > 1) x = sym_pow(c, x, sym_rat(c, 1, k.den));
    *out = sym_pow(c, x, sym_int(c, k.num));
    return ERR_OK;
}

/* The monomial with these exponents over den (NULL: 1), in lowest terms; *base gets b of a single factor log(b) above,
 * which is left out. */
static enum err_code write_term(const struct rules *r, struct algebra *al, const ulong *exp, const struct poly *den,
                                const struct sym **base, const struct sym **m)
{
    ulong rest[ALGEBRA_GENERATORS] = {0};
    struct ratfun v = {.num = poly_new(al)};
    size_t logs = 0, at = 0;
    if (!v.num) return err_nomem(al->err);
    flint_z_clear(&al->f, al->z[1]);
    *al->z[1] = 1;
    al->f.push_term(v.num->p, al->z[1], exp, al->ring);
    if (den) TRY(poly_copy(al, den, &v.den));
    TRY(ratfun_lowest(al, &v));
    al->f.term_exp(rest, v.num->p, 0, al->ring);
    for (size_t j = 0; j < al->n_gen; j++) {
        if (rest[j] == 0 || al->gen[j]->op != SYM_LOG) continue;
        logs += rest[j];
        at = j;
    }
    *base = logs == 1 ? al->gen[at]->a : NULL;
    if (*base) rest[at] = 0;
    struct poly *num = poly_new(al);
    if (!num) return err_nomem(al->err);
    al->f.push_term(num->p, al->z[1], rest, al->ring);
    *m = ratfun_write(al, (struct ratfun){num, v.den});
    poly_free(al, num);
    ratfun_free(al, &v);
    TRY(sym_check(r->c, r->err));
    return rules_shorten(r, *m, m);
}

/* v = (sum of numbers times monomials)/(number times den): den NULL for 1; false when a number is too long, or there
 * are too many terms */
static enum err_code split_sum(struct algebra *al, struct ratfun v, bool *splits, int64_t *number, struct poly **den)
{
    *splits = v.num->p->length <= EXPONENT_TERMS;
    *number = 1;
    *den = NULL;
    for (slong i = 0; i < v.num->p->length; i++)
        *splits = *splits && al->f.z_fits_si(&v.num->p->coeffs[i]) && al->f.z_get_si(&v.num->p->coeffs[i]) != INT64_MIN;
    if (!v.den) return ERR_OK;
    ulong exp[ALGEBRA_GENERATORS] = {0};
    struct poly *content = poly_new(al), *number_only = poly_new(al), *rest = poly_new(al);
    if (!content || !number_only || !rest) return err_nomem(al->err);
    al->f.term_content(content->p, v.den->p, al->ring);
    *splits = *splits && al->f.z_fits_si(&content->p->coeffs[0]);
    if (!*splits) return ERR_OK;
    *number = al->f.z_get_si(&content->p->coeffs[0]);
    al->f.push_term(number_only->p, &content->p->coeffs[0], exp, al->ring);
    if (!al->f.divides(rest->p, v.den->p, number_only->p, al->ring))
        return err_set(al->err, ERR_RANGE, "an exponent could not be simplified");
    if (!poly_is_one(al, rest)) *den = rest;
    return poly_sealed(al, rest);
}

static enum err_code exp_in(const struct rules *r, struct algebra *al, const struct sym *x, const struct sym **out)
{
    struct sym_ctx *c = r->c;
    struct ratfun v;
    const struct sym *product = c->one, *factor = NULL, *base = NULL, *m = NULL;
    struct poly *den;
    int64_t number;
    bool splits;
    ulong exp[ALGEBRA_GENERATORS] = {0};
    TRY(algebra_value(al, x, &v));
    TRY(split_sum(al, v, &splits, &number, &den));
    if (!splits) {
        TRY(rules_shorten(r, x, &x));
        *out = sym_exp(c, x);
        return ERR_OK;
    }
    for (slong i = 0; i < v.num->p->length; i++) {
        struct rat k;
        if (!rat_make(al->f.z_get_si(&v.num->p->coeffs[i]), number, &k)) continue; /* number > 0: never */
        al->f.term_exp(exp, v.num->p, i, al->ring);
        TRY(write_term(r, al, exp, den, &base, &m));
        TRY(exp_of_term(r, k, base, m, &factor));
        product = sym_mul(c, product, factor);
    }
    *out = product;
    return sym_check(c, r->err);
}

enum err_code rules_exp(const struct rules *r, const struct sym *x, const struct sym **out)
{
    struct algebra al;
    TRY(algebra_open(&al, r->c, 1, &x, r->err));
    const enum err_code code = exp_in(r, &al, x, out);
    algebra_close(&al);
    return code;
}
