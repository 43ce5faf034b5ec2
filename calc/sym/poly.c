#include "calc/sym/algebra.h"

/* What one calculation may do: pairs of terms multiplied, and so on; seconds at most. */
static const uint64_t WORK = 20000000, LIVE_BYTES = UINT64_C(1) << 29; /* not a unit */

/* FLINT's gcd takes long where degrees are high, hardly ever because of terms, and never ends where the degrees have
 * too many combinations (seen from 2^200). Measured below these: under a second. */
enum { SQUARES = 100000 };
static const double BOX = 0x1p150;

/* Of the coefficients of one polynomial together: 8 MB, 60 as expressions. */
static const uint64_t COEFFICIENT_BITS = 64000000;

/* ---- the polynomials of a calculation ---- */

struct poly *poly_new(struct algebra *al)
{
    struct poly *p = al->idle;
    if (p) al->idle = p->next;
    if (!p && !(p = arena_alloc(al->scratch, sizeof *p))) return NULL;
    al->f.init(p->p, al->ring);
    *p = (struct poly){.p = {p->p[0]}, .next = al->live};
    if (al->live) al->live->previous = p;
    al->live = p;
    return p;
}

void poly_free(struct algebra *al, struct poly *p)
{
    if (!p) return;
    al->live_bytes -= p->size_bytes;
    al->f.clear(p->p, al->ring);
    if (p->next) p->next->previous = p->previous;
    *(p->previous ? &p->previous->next : &al->live) = p->next;
    p->next = al->idle;
    al->idle = p;
}

static enum err_code too_large(struct algebra *al)
{
    return err_set(al->err, ERR_RANGE, "expanding the expression would take more than %d terms", ALGEBRA_TERMS);
}

static enum err_code spend(struct algebra *al, uint64_t work)
{
    uint64_t *left = al->c->work;
    al->work += work;
    if (left) *left -= work < *left ? work : *left;
    if (al->work <= WORK && (!left || *left)) return ERR_OK;
    return err_set(al->err, ERR_RANGE, "expanding the expression would take too long");
}

static enum err_code exponent_too_large(struct algebra *al, const struct sym *gen)
{
    char text[64];
    (void)sym_print(gen, text, sizeof text);
    return err_set(al->err, ERR_RANGE, "expanding the expression would raise %s to a power above %d", text,
                   ALGEBRA_EXPONENT);
}

static enum err_code degrees_fit(struct algebra *al, const struct poly *p, uint64_t times)
{
    slong degree[ALGEBRA_GENERATORS] = {0};
    if (p->p->length == 0) return ERR_OK;
    al->f.degrees_si(degree, p->p, al->ring);
    for (size_t i = 0; i < al->n_gen; i++)
        if (degree[i] > 0 && times > ALGEBRA_EXPONENT / (uint64_t)degree[i]) return exponent_too_large(al, al->gen[i]);
    return ERR_OK;
}

static uint64_t bits_of(const struct algebra *al, const struct poly *p)
{
    const slong n = al->f.max_bits(p->p);
    return (uint64_t)(n < 0 ? -n : n);
}

static enum err_code numbers_too_large(struct algebra *al)
{
    return err_set(al->err, ERR_RANGE, "the coefficients of the expanded expression would be too long");
}

enum err_code poly_sealed(struct algebra *al, struct poly *p)
{
    if (p->p->length > ALGEBRA_TERMS) return too_large(al);
    /* packed in so few bits an exponent is below 512 */
    if (p->p->bits > 10) TRY(degrees_fit(al, p, 1));
    const uint64_t words = 1 + ((uint64_t)p->p->bits * al->n_gen) / 64, length = (uint64_t)p->p->length;
    const uint64_t number_bits = length < 64 ? 0 : length * bits_of(al, p);
    if (number_bits > COEFFICIENT_BITS) return numbers_too_large(al);
    al->live_bytes -= p->size_bytes;
    p->size_bytes = 8 * (1 + words) * length + number_bits / 8;
    al->live_bytes += p->size_bytes;
    if (al->live_bytes > LIVE_BYTES) return too_large(al);
    return ERR_OK;
}

enum err_code poly_copy(struct algebra *al, const struct poly *a, struct poly **out)
{
    struct poly *p = poly_new(al);
    if (!p) return err_nomem(al->err);
    al->f.set(p->p, a->p, al->ring);
    *out = p;
    return poly_sealed(al, p);
}

enum err_code poly_int(struct algebra *al, int64_t n, struct poly **out)
{
    struct poly *p = poly_new(al);
    if (!p) return err_nomem(al->err);
    al->f.set_si(p->p, n, al->ring);
    *out = p;
    return ERR_OK;
}

enum err_code poly_add(struct algebra *al, const struct poly *a, const struct poly *b, struct poly **out)
{
    TRY(spend(al, (uint64_t)(a->p->length + b->p->length)));
    struct poly *p = poly_new(al);
    if (!p) return err_nomem(al->err);
    al->f.add(p->p, a->p, b->p, al->ring);
    *out = p;
    return poly_sealed(al, p);
}

enum err_code poly_mul(struct algebra *al, const struct poly *a, const struct poly *b, struct poly **out)
{
    const uint64_t pairs = (uint64_t)a->p->length * (uint64_t)b->p->length;
    const uint64_t bits = pairs > 1 ? bits_of(al, a) + bits_of(al, b) : 1;
    TRY(spend(al, pairs * (1 + bits / 128)));
    if (bits > ALGEBRA_BITS)
        return err_set(al->err, ERR_RANGE, "a coefficient would take more than %d bits", ALGEBRA_BITS);
    struct poly *p = poly_new(al);
    if (!p) return err_nomem(al->err);
    al->f.mul(p->p, a->p, b->p, al->ring);
    *out = p;
    return poly_sealed(al, p);
}

/* C(length + n - 1, n): the most terms that the n-th power has; stops at limit */
static uint64_t power_terms(uint64_t length, uint64_t n, uint64_t limit)
{
    const uint64_t top = length + n - 1, k = n < length - 1 ? n : length - 1;
    uint64_t r = 1;
    for (uint64_t i = 1; i <= k && r <= limit; i++) r = r * (top - k + i) / i;
    return r;
}

enum err_code poly_pow(struct algebra *al, const struct poly *a, uint64_t n, struct poly **out)
{
    if (n == 0) return poly_int(al, 1, out);
    if (poly_is_zero(a) || n == 1) return poly_copy(al, a, out);
    const uint64_t length = (uint64_t)a->p->length;
    uint64_t bits = 1;
    while (bits < 64 && length >> bits) bits++;
    bits += bits_of(al, a);
    if (bits > 1 + 1 && n > ALGEBRA_BITS / bits)
        return err_set(al->err, ERR_RANGE, "a coefficient would take more than %d bits", ALGEBRA_BITS);
    TRY(degrees_fit(al, a, n));
    const uint64_t terms = power_terms(length, n, ALGEBRA_TERMS);
    if (terms <= ALGEBRA_TERMS) {
        if (terms * bits * n > 8 * COEFFICIENT_BITS) return numbers_too_large(al);
        TRY(spend(al, terms * length * (1 + bits * n / 256)));
        struct poly *p = poly_new(al);
        if (!p) return err_nomem(al->err);
        if (!al->f.pow_ui(p->p, a->p, n, al->ring)) return too_large(al);
        *out = p;
        return poly_sealed(al, p);
    }
    /* like terms may yet keep it small */
    struct poly *r, *next;
    TRY(poly_copy(al, a, &r));
    for (uint64_t i = 1; i < n; i++) {
        TRY(poly_mul(al, r, a, &next));
        poly_free(al, r);
        r = next;
    }
    *out = r;
    return ERR_OK;
}

static enum err_code gcd_affordable(struct algebra *al, const struct poly *a, const struct poly *b)
{
    if (a->p->length == 1 || b->p->length == 1) return ERR_OK;
    slong x[ALGEBRA_GENERATORS] = {0}, y[ALGEBRA_GENERATORS] = {0};
    al->f.degrees_si(x, a->p, al->ring);
    al->f.degrees_si(y, b->p, al->ring);
    uint64_t shared = 0, squares = 0;
    double box = 1.0;
    for (size_t i = 0; i < al->n_gen; i++) {
        const uint64_t d = (uint64_t)(x[i] < y[i] ? x[i] : y[i]);
        shared += d > 0;
        squares += d * d;
        box *= (double)(d + 1);
    }
    if (shared > 1 && (box > BOX || squares > SQUARES))
        return err_set(al->err, ERR_RANGE,
                       "finding the common factor of polynomials of %ld and %ld terms in %llu symbols would take too "
                       "long",
                       (long)a->p->length, (long)b->p->length, (unsigned long long)shared);
    const uint64_t words = 1 + (bits_of(al, a) + bits_of(al, b)) / 128;
    return spend(al, 20 * words * (uint64_t)(a->p->length + b->p->length) + (shared > 1 ? 100 * squares : 0));
}

enum err_code poly_gcd(struct algebra *al, const struct poly *a, const struct poly *b, struct poly **g,
                       struct poly **a1, struct poly **b1)
{
    *g = *a1 = *b1 = NULL;
    if (poly_is_one(al, a) || poly_is_one(al, b)) return ERR_OK;
    TRY(gcd_affordable(al, a, b));
    struct poly *p = poly_new(al), *x = poly_new(al), *y = poly_new(al);
    if (!p || !x || !y) return err_nomem(al->err);
    if (!al->f.gcd_cofactors(p->p, x->p, y->p, a->p, b->p, al->ring))
        return err_set(al->err, ERR_RANGE, "the common factor of two polynomials could not be found");
    if (poly_is_one(al, p)) {
        poly_free(al, p);
        poly_free(al, x);
        poly_free(al, y);
        return ERR_OK;
    }
    *g = p;
    *a1 = x;
    *b1 = y;
    TRY(poly_sealed(al, p));
    TRY(poly_sealed(al, x));
    return poly_sealed(al, y);
}
