/* Unit tests of calc/sym: builders, bind, print, tape. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/sym/node.h"
#include "calc/sym/sym.h"

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    const struct sym *x, *y, *z, *w;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    f->c = sym_open(f->a);
    f->x = sym_var(f->c, "x");
    f->y = sym_var(f->c, "y");
    f->z = sym_var(f->c, "z");
    f->w = sym_var(f->c, "w");
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    const enum err_code code = sym_check(f->c, NULL);
    arena_close(f->a);
    free(f);
    return code == ERR_OK ? 0 : -1;
}

static const struct sym *num(struct fixture *f, int64_t n) { return sym_int(f->c, n); }

static void assert_text(const struct sym *e, const char *want)
{
    char buf[512];
    const size_t n = sym_print(e, buf, sizeof buf);
    assert_string_equal(buf, want);
    assert_int_equal(n, strlen(want));
}

static double value_of(const struct sym *e)
{
    double v = 0.0;
    assert_true(sym_constant(e, &v));
    return v;
}

/* one expression of x, y, z, w at one point */
static double at_point(struct fixture *f, const struct sym *e, double x, double y, double z, double w)
{
    const struct sym *in[] = {f->x, f->y, f->z, f->w};
    const double *col[] = {&x, &y, &z, &w};
    double v = 0.0, *out[] = {&v};
    struct sym_tape *t = NULL;
    struct err err = {0};
    assert_int_equal(sym_tape_compile(f->a, 1, &e, 4, in, &t, &err), ERR_OK);
    sym_tape_eval(t, 1, col, out);
    return v;
}

static size_t length_of(struct fixture *f, const struct sym *e)
{
    const struct sym *in[] = {f->x, f->y, f->z, f->w};
    struct sym_tape *t = NULL;
    assert_int_equal(sym_tape_compile(f->a, 1, &e, 4, in, &t, NULL), ERR_OK);
    return sym_tape_length(t);
}

static void test_hash_consing(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    char name[8] = "x";
    assert_ptr_equal(sym_var(c, name), f->x);
    const struct sym *late = sym_var(c, (memcpy(name, "late", 5), name));
    memcpy(name, "gone!", 6);
    assert_string_equal(sym_name(late), "late");
    assert_null(sym_name(num(f, 3)));
    assert_ptr_equal(sym_add(c, f->x, f->y), sym_add(c, f->y, f->x));
    assert_ptr_equal(sym_mul(c, f->z, sym_mul(c, f->y, f->x)), sym_mul(c, sym_mul(c, f->x, f->z), f->y));
    assert_ptr_equal(sym_add(c, f->w, sym_add(c, f->y, f->x)), SYM_SUM(c, f->y, f->w, f->x));
    assert_ptr_equal(sym_max(c, f->y, f->x), sym_max(c, f->x, f->y));
    assert_ptr_not_equal(sym_div(c, f->y, f->x), sym_div(c, f->x, f->y));
    const struct sym *first[3001]; /* far past the first table and slab */
    for (int i = 2; i <= 3000; i++) first[i] = sym_pow(c, f->x, num(f, i));
    for (int i = 2; i <= 3000; i++) assert_ptr_equal(sym_pow(c, f->x, num(f, i)), first[i]);
    assert_int_equal(sym_op(first[7]), SYM_POW);
}

static void test_identities(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *x = f->x, *zero = num(f, 0), *one = num(f, 1);
    assert_ptr_equal(sym_add(c, x, zero), x);
    assert_ptr_equal(sym_sub(c, x, zero), x);
    assert_ptr_equal(sym_mul(c, one, x), x);
    assert_ptr_equal(sym_mul(c, x, zero), zero);
    assert_ptr_equal(sym_sub(c, x, x), zero);
    assert_ptr_equal(sym_div(c, x, x), one);
    assert_ptr_equal(sym_div(c, x, one), x);
    assert_ptr_equal(sym_div(c, zero, x), zero);
    assert_ptr_equal(sym_pow(c, x, one), x);
    assert_ptr_equal(sym_pow(c, x, zero), one);
    assert_ptr_equal(sym_pow(c, one, x), one);
    assert_ptr_equal(sym_min(c, x, x), x);
    assert_ptr_equal(sym_max(c, x, x), x);
    assert_ptr_equal(sym_ceil(c, num(f, 17)), num(f, 17));
    const struct sym *whole = SYM_SUM(c, sym_mul(c, num(f, 3), sym_ceil(c, x)), sym_floor(c, f->y), num(f, 5));
    assert_ptr_equal(sym_ceil(c, whole), whole);
    assert_ptr_equal(sym_floor(c, whole), whole);
    assert_ptr_not_equal(sym_ceil(c, sym_div(c, whole, num(f, 7))), sym_div(c, whole, num(f, 7)));
    assert_ptr_equal(sym_sum(c, 0, NULL), zero);
    assert_ptr_equal(sym_prod(c, 0, NULL), one);
}

static void test_constants_fold(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    assert_ptr_equal(sym_rat(c, -6, -4), sym_rat(c, 3, 2));
    assert_ptr_equal(sym_rat(c, 6, -4), sym_rat(c, -3, 2));
    assert_ptr_equal(sym_add(c, sym_rat(c, 1, 6), sym_rat(c, 3, 10)), sym_rat(c, 7, 15));
    assert_ptr_equal(sym_sub(c, sym_rat(c, 1, 6), sym_rat(c, 3, 10)), sym_rat(c, -2, 15));
    assert_ptr_equal(sym_mul(c, sym_rat(c, 14, 15), sym_rat(c, 10, 21)), sym_rat(c, 4, 9));
    assert_ptr_equal(sym_div(c, sym_rat(c, 14, 15), sym_rat(c, -7, 5)), sym_rat(c, -2, 3));
    assert_ptr_equal(sym_pow(c, sym_rat(c, -2, 3), num(f, 5)), sym_rat(c, -32, 243));
    assert_ptr_equal(sym_pow(c, sym_rat(c, -2, 3), num(f, -3)), sym_rat(c, -27, 8));
    assert_ptr_equal(sym_pow(c, num(f, -1), num(f, 1000000000000007)), num(f, -1));
    assert_ptr_equal(sym_min(c, sym_rat(c, 22, 7), sym_rat(c, 355, 113)), sym_rat(c, 355, 113));
    assert_ptr_equal(sym_max(c, sym_rat(c, 22, 7), sym_rat(c, 355, 113)), sym_rat(c, 22, 7));
    assert_ptr_equal(sym_ceil(c, sym_rat(c, 22, 7)), num(f, 4));
    assert_ptr_equal(sym_floor(c, sym_rat(c, 22, 7)), num(f, 3));
    assert_ptr_equal(sym_ceil(c, sym_rat(c, -22, 7)), num(f, -3));
    assert_ptr_equal(sym_floor(c, sym_rat(c, -22, 7)), num(f, -4));
    double v = 0.0;
    assert_true(sym_constant(sym_rat(c, 355, 113), &v));
    assert_true(v == 355.0 / 113.0);
    assert_true(sym_constant(num(f, 3), NULL));
    assert_false(sym_constant(f->x, &v));
}

static void test_products_fold(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *x = f->x, *y = f->y, *xy = sym_mul(c, x, y);
    assert_ptr_equal(sym_mul(c, num(f, 2), sym_mul(c, num(f, 3), x)), sym_mul(c, num(f, 6), x));
    assert_ptr_equal(sym_mul(c, sym_mul(c, x, num(f, 2)), sym_mul(c, y, num(f, 3))), sym_mul(c, num(f, 6), xy));
    assert_ptr_equal(sym_div(c, sym_mul(c, num(f, 6), x), num(f, 4)), sym_mul(c, sym_rat(c, 3, 2), x));
    assert_ptr_equal(sym_mul(c, sym_div(c, x, num(f, 7)), num(f, 7)), x);
    assert_ptr_equal(SYM_PROD(c, y, num(f, 5), x, sym_rat(c, 1, 5)), xy);
}

static void test_sums_collect(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *x = f->x, *y = f->y, *xy = sym_mul(c, x, y);
    assert_ptr_equal(sym_add(c, sym_add(c, x, num(f, 2)), num(f, 3)), sym_add(c, x, num(f, 5)));
    assert_ptr_equal(sym_add(c, sym_mul(c, num(f, 3), xy), sym_mul(c, xy, num(f, 11))), sym_mul(c, num(f, 14), xy));
    assert_ptr_equal(sym_add(c, x, x), sym_mul(c, num(f, 2), x));
    assert_ptr_equal(sym_sub(c, sym_add(c, x, y), y), x);
    assert_ptr_equal(sym_sub(c, x, sym_sub(c, x, num(f, 1))), num(f, 1));
    assert_ptr_equal(SYM_SUM(c, sym_div(c, x, num(f, 3)), y, sym_div(c, x, num(f, 6)), sym_div(c, x, num(f, 2))),
                     sym_add(c, x, y));
    /* 3 monomials, 600 terms, nested by sym_add one by one and in pairs: all the same sum after collecting */
    const struct sym *terms[600], *acc = num(f, 0), *m[3] = {x, y, xy};
    int64_t total[3] = {0, 0, 0};
    for (int i = 0; i < 600; i++) {
        total[i % 3] += 7 * i - 1000;
        terms[i] = sym_mul(c, num(f, 7 * i - 1000), m[i % 3]);
        acc = sym_add(c, acc, terms[i]);
    }
    const struct sym *want = num(f, 0);
    for (int i = 0; i < 3; i++) want = sym_add(c, want, sym_mul(c, num(f, total[i]), m[i]));
    assert_ptr_equal(sym_sum(c, 600, terms), want);
    assert_ptr_equal(acc, want);
}

static void test_overflow_stays_unfolded(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *big = num(f, INT64_MAX), *least = num(f, INT64_MIN), *x = f->x;
    assert_true(value_of(sym_mul(c, big, num(f, 3))) == 3.0 * 0x1p63);
    assert_true(value_of(sym_add(c, big, big)) == 0x1p64);
    assert_true(value_of(sym_sub(c, least, num(f, 5))) == -0x1p63);
    assert_true(value_of(sym_rat(c, INT64_MIN, -1)) == 0x1p63);
    assert_true(value_of(sym_div(c, num(f, 3), least)) == 3.0 / -0x1p63);
    assert_true(value_of(sym_pow(c, num(f, 10), num(f, 30))) == pow(10.0, 30.0));
    assert_true(value_of(sym_pow(c, num(f, 3), num(f, -50))) == pow(3.0, -50.0));
    assert_true(value_of(sym_max(c, least, big)) == 0x1p63);
    assert_true(isinf(value_of(sym_div(c, num(f, 3), num(f, 0)))));
    assert_true(isinf(value_of(sym_pow(c, num(f, 0), num(f, -3)))));
    assert_ptr_equal(sym_div(c, sym_mul(c, big, num(f, 3)), num(f, 3)), big); /* the fold that fits is found again */
    /* (2^63 - 1)*3*x, and its like term */
    const struct sym *e = sym_mul(c, num(f, 3), sym_mul(c, big, x));
    assert_true(at_point(f, e, 0.5, 0, 0, 0) == 1.5 * 0x1p63);
    assert_int_equal(length_of(f, e), 1);
    assert_true(at_point(f, SYM_SUM(c, e, f->y, e), 0.25, 7.0, 0, 0) == 1.5 * 0x1p63 + 7.0);
    /* a fraction whose common denominator does not fit */
    const struct sym *p = sym_rat(c, 1, 4611686018427387847), *q = sym_rat(c, 1, 4611686018427387817);
    assert_true(fabs(value_of(sym_add(c, p, q)) * 0x1p61 - 1.0) < 1e-12);
    assert_true(fabs(at_point(f, sym_mul(c, p, sym_mul(c, q, x)), 0x1p124, 0, 0, 0) - 1.0) < 1e-12);
}

static void test_doubles(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    assert_ptr_equal(sym_num(c, 6.0), num(f, 6));
    assert_ptr_equal(sym_num(c, -0.0), num(f, 0));
    assert_ptr_equal(sym_num(c, -2.375), sym_rat(c, -19, 8));
    assert_ptr_equal(sym_num(c, 989e12), num(f, 989000000000000));
    assert_ptr_equal(sym_num(c, -0x1p63), num(f, INT64_MIN) /* which has a double */);
    assert_ptr_equal(sym_num(c, 0.85), sym_rat(c, 7656119366529843, INT64_C(1) << 53));
    const double far[] = {1e-9, 0x1p63, 1e300, -1.7e-300, 5e-324};
    for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
        const struct sym *k = sym_num(c, far[i]);
        assert_true(value_of(k) == far[i]);
        assert_ptr_equal(sym_num(c, far[i]), k);
        assert_true(at_point(f, sym_mul(c, f->x, k), 3.0, 0, 0, 0) == 3.0 * far[i]);
    }
    assert_true(isnan(value_of(sym_num(c, (double)NAN))));
    assert_true(value_of(sym_num(c, (double)-INFINITY)) == (double)-INFINITY);
    /* constants that do not fold still are one constant */
    const struct sym *k = sym_mul(c, sym_num(c, 1e-9), sym_num(c, 3e-9));
    assert_true(value_of(k) == 1e-9 * 3e-9);
    assert_true(value_of(sym_div(c, sym_num(c, 1e-9), num(f, 7))) == 1e-9 / 7.0);
    assert_int_equal(length_of(f, SYM_PROD(c, f->x, sym_num(c, 1e-9), f->y, sym_num(c, 3e-9))), 2);
    assert_int_equal(length_of(f, sym_add(c, sym_mul(c, sym_num(c, 1e-9), f->x), sym_mul(c, sym_num(c, 3e-9), f->x))),
                     1);
}

static void test_bind(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *x = f->x, *y = f->y, *z = f->z;
    const struct sym *e = sym_add(c, sym_mul(c, num(f, 2), sym_div(c, x, y)), sym_min(c, z, sym_pow(c, x, y)));
    const struct sym_binding swap[] = {{x, y}, {y, x}};
    const struct sym *swapped = sym_add(c, sym_mul(c, num(f, 2), sym_div(c, y, x)), sym_min(c, z, sym_pow(c, y, x)));
    assert_ptr_equal(sym_bind(c, e, swap, 2), swapped);
    assert_ptr_equal(sym_bind(c, e, NULL, 0), e);
    const struct sym_binding other[] = {{sym_var(c, "unused"), num(f, 3)}};
    assert_ptr_equal(sym_bind(c, e, other, 1), e);
    const struct sym_binding all[] = {{x, num(f, 7)}, {y, num(f, 3)}, {z, num(f, 400)}, {x, num(f, 1)}};
    assert_ptr_equal(sym_bind(c, e, all, 4), sym_rat(c, 14 + 3 * 343, 3)); /* 2*7/3 + min(400, 343) */
    const struct sym *every =
        SYM_SUM(c, sym_ceil(c, sym_div(c, x, y)), sym_floor(c, sym_div(c, x, y)), sym_max(c, x, y));
    assert_ptr_equal(sym_bind(c, every, all, 4), num(f, 3 + 2 + 7));
    const struct sym *io[3] = {sym_sub(c, x, y), sym_sub(c, y, x), z};
    sym_bind_all(c, 3, io, io, swap, 2);
    assert_ptr_equal(io[0], sym_sub(c, y, x));
    assert_ptr_equal(io[1], sym_sub(c, x, y));
    assert_ptr_equal(io[2], z);
}

/* x = x*x + 1, 60 times: a tree of 2^60 leaves in 120 nodes */
static void test_shared_graph(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *e = f->x;
    double want = 0.3;
    for (int i = 0; i < 60; i++) {
        e = sym_add(c, sym_mul(c, e, e), num(f, 1));
        e = sym_div(c, e, num(f, 3)); /* keeps it finite */
        want = (want * want + 1.0) / 3.0;
    }
    const struct sym_binding env[] = {{f->x, f->y}};
    const struct sym *b = sym_bind(c, e, env, 1);
    assert_true(fabs(at_point(f, b, 7.0, 0.3, 0, 0) - want) < 1e-15);
    assert_true(length_of(f, b) <= 180);
    char buf[40];
    for (int i = 0; i < 80; i++) e = sym_pow(c, e, e);
    assert_true(sym_print(e, buf, sizeof buf) == SIZE_MAX);
    assert_int_equal(strlen(buf), sizeof buf - 1);
}

/* A model's flops: hundreds of monomials in dimensions that become numbers. */
static void test_bind_collects(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *dim[6], *acc = num(f, 0), *part = NULL;
    struct sym_binding env[6];
    for (int i = 0; i < 6; i++) {
        const char name[] = {'d', (char)('0' + i), '\0'};
        dim[i] = sym_var(c, name);
        env[i] = (struct sym_binding){dim[i], num(f, 3 + 2 * i)};
    }
    double want = 0.0;
    const double v[4] = {13.0, 29.0, 0.0, 0.0};
    for (int i = 0; i < 900; i++) {
        const struct sym *t = SYM_PROD(c, num(f, 2 + i % 7), dim[i % 6], dim[i / 6 % 6], dim[i / 36 % 6]);
        double tv = (2 + i % 7) * (3 + 2 * (i % 6)) * (3 + 2 * (i / 6 % 6)) * (double)(3 + 2 * (i / 36 % 6));
        for (int j = 0; j < 2; j++) {
            if (i >> j & 1) {
                t = sym_mul(c, t, j ? f->y : f->x);
                tv *= v[j];
            }
        }
        want += tv;
        acc = sym_add(c, acc, t);
        if (i == 500) part = acc;
    }
    const struct sym *in[2] = {acc, part}, *out[2];
    assert_true(length_of(f, sym_bind(c, acc, env, 6)) <= 5); /* x, y, x*y, 1 */
    sym_bind_all(c, 2, in, out, env, 6);
    for (int i = 0; i < 2; i++) assert_true(length_of(f, out[i]) <= 5);
    assert_true(at_point(f, out[0], v[0], v[1], 0, 0) == want);
}

static void test_print(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const char *names[] = {"B", "S", "T", "D", "F", "W"};
    const struct sym *v[6], *x = f->x, *y = f->y;
    for (int i = 0; i < 6; i++) v[i] = sym_var(c, names[i]);
    const struct sym *B = v[0], *S = v[1], *T = v[2], *W = v[5];
    assert_text(SYM_PROD(c, num(f, 6), B, T, v[3], v[4]), "6*B*T*D*F");
    assert_text(sym_div(c, sym_add(c, S, T), num(f, 2)), "(S + T)/2");
    assert_text(sym_min(c, S, W), "min(S, W)");
    assert_text(sym_sub(c, y, x), "y - x");
    assert_text(sym_sub(c, x, sym_mul(c, sym_rat(c, 3, 2), y)), "x - 3*y/2");
    assert_text(sym_sub(c, sym_sub(c, num(f, -5), x), y), "-x - y - 5");
    assert_text(sym_add(c, sym_sub(c, S, T), num(f, 1)), "S - T + 1");
    assert_text(sym_mul(c, num(f, -1), sym_add(c, x, y)), "-(x + y)");
    assert_text(sym_mul(c, num(f, 3), sym_add(c, x, y)), "3*(x + y)");
    assert_text(sym_div(c, x, sym_mul(c, num(f, 2), y)), "x/(2*y)");
    assert_text(sym_div(c, sym_div(c, x, y), num(f, 7)), "x/(7*y)");
    assert_text(sym_div(c, sym_mul(c, num(f, -3), x), y), "-3*x/y");
    assert_text(sym_sub(c, f->z, sym_div(c, sym_mul(c, num(f, 3), x), y)), "z - 3*x/y");
    assert_text(sym_mul(c, sym_div(c, x, y), sym_div(c, y, x)), "(x/y)*y/x");
    assert_text(SYM_PROD(c, S, S, B, sym_add(c, x, y), sym_add(c, x, y)), "B*S^2*(x + y)^2");
    assert_text(sym_pow(c, x, sym_add(c, y, num(f, 1))), "x^(y + 1)");
    assert_text(sym_pow(c, sym_mul(c, num(f, 2), x), num(f, -1)), "(2*x)^(-1)");
    assert_text(sym_pow(c, sym_pow(c, x, num(f, 2)), sym_rat(c, 1, 3)), "(x^2)^(1/3)");
    assert_text(sym_ceil(c, sym_div(c, S, num(f, 16))), "ceil(S/16)");
    assert_text(sym_floor(c, sym_max(c, x, sym_rat(c, -1, 3))), "floor(max(x, -1/3))");
    assert_text(sym_mul(c, sym_num(c, 0.85), x), "0.85*x");
    assert_text(sym_sub(c, x, sym_num(c, 1e-9)), "x - 1e-09");
    assert_text(sym_mul(c, num(f, INT64_MIN), x), "-9223372036854775808*x");
    assert_text(sym_mul(c, sym_mul(c, num(f, INT64_MAX), num(f, 3)), x), "27670116110564327421*x");
    char buf[8];
    assert_int_equal(sym_print(sym_min(c, S, W), buf, sizeof buf), 9);
    assert_string_equal(buf, "min(S, ");
    assert_int_equal(sym_print(S, NULL, 0), 1);
}

/* ---- tape against a recursive evaluator that knows the documented order of operations ---- */

static bool is_double(int64_t n) { return (long double)(double)n == (long double)n; }

static double naive(const struct sym *e, const double *v, double *memo, bool *done)
{
    if (done[e->index]) return memo[e->index];
    double r = (double)NAN;
    const bool leaf = e->op == SYM_CONST || e->op == SYM_VAR;
    const double a = leaf ? 0.0 : naive(e->a, v, memo, done), b = leaf || !e->b ? 0.0 : naive(e->b, v, memo, done);
    switch (sym_op(e)) {
    case SYM_CONST: r = e->opaque ? e->value : (double)((long double)e->num / (long double)e->den); break;
    case SYM_VAR: r = v[e->name[0] == 'w' ? 3 : e->name[0] - 'x']; break;
    case SYM_ADD: r = a + b; break;
    case SYM_MUL:
        if (e->a->op == SYM_CONST && !e->a->opaque && is_double(e->a->num) && is_double(e->a->den)) {
            r = b * (double)e->a->num;
            r = r / (double)e->a->den;
        } else {
            r = a * b;
        }
        break;
    case SYM_DIV: r = a / b; break;
    case SYM_POW:
        if (b >= 2.0 && b <= 16.0 && b == floor(b)) { /* the bits of n from the low one */
            double square = a;
            r = (int)b & 1 ? a : 1.0;
            for (int bit = 2; bit <= (int)b; bit *= 2) {
                square *= square;
                if ((int)b & bit) r *= square;
            }
        } else {
            r = pow(a, b);
        }
        break;
    case SYM_MIN: r = isnan(a) || isnan(b) ? (double)NAN : fmin(a, b); break;
    case SYM_MAX: r = isnan(a) || isnan(b) ? (double)NAN : fmax(a, b); break;
    case SYM_CEIL: r = ceil(a); break;
    case SYM_FLOOR: r = floor(a); break;
    case SYM_LOG: r = log(a); break;
    case SYM_EXP: r = exp(a); break;
    }
    done[e->index] = true;
    memo[e->index] = r;
    return r;
}

static uint64_t rnd(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *s >> 33;
}

static const struct sym *random_node(struct fixture *f, const struct sym **pool, size_t n, uint64_t *s)
{
    static const double constant[] = {2.5, -7.0, 1.0 / 3.0, 1e-9, 11.0};
    struct sym_ctx *c = f->c;
    const struct sym *a = pool[rnd(s) % n], *b = pool[rnd(s) % n];
    const int64_t p = (int64_t)(rnd(s) % 41) - 20, q = (int64_t)(rnd(s) % 13) + 1;
    switch (rnd(s) % 16) {
    case 0: return sym_add(c, a, b);
    case 1: return sym_sub(c, a, b);
    case 2: return sym_mul(c, a, b);
    case 3: return sym_div(c, a, b);
    case 4: return sym_min(c, a, b);
    case 5: return sym_max(c, a, b);
    case 6: return sym_ceil(c, a);
    case 7: return sym_floor(c, a);
    case 8: {
        static const int64_t power[] = {2, 3, 5, -1, 17};
        return sym_pow(c, a, num(f, power[rnd(s) % 5]));
    }
    case 9: return sym_mul(c, sym_rat(c, p, q), a);
    case 10: return sym_add(c, a, sym_rat(c, p, q));
    case 11: return sym_sum(c, 5, (const struct sym *[]){a, b, pool[rnd(s) % n], sym_mul(c, num(f, p), b), a});
    case 13: return sym_log(c, a);
    case 14: return sym_exp(c, sym_min(c, a, num(f, 7)));
    case 12: return sym_mul(c, sym_num(c, constant[rnd(s) % 5]), sym_div(c, num(f, q), a));
    default: return sym_pow(c, rnd(s) % 2 ? sym_rat(c, q, 7) : sym_max(c, a, num(f, 1)), sym_min(c, b, num(f, 4)));
    }
}

static bool same_bits(double x, double y) { return (isnan(x) && isnan(y)) || memcmp(&x, &y, sizeof x) == 0; }

static void test_tape_against_naive(void **state)
{
    struct fixture *f = *state;
    enum { POINTS = 211, POOL = 40, OUTS = 6 };
    const struct sym *in[] = {f->x, f->y, f->z, f->w}, *pool[POOL], *out[OUTS];
    uint64_t s = 20240229;
    double col[4][POINTS], res[OUTS][POINTS];
    for (int p = 0; p < POINTS; p++) {
        for (int i = 0; i < 4; i++) col[i][p] = (double)((int64_t)(rnd(&s) % 4001) - 2000) / (i % 2 ? 1.0 : 64.0);
    }
    for (int round = 0; round < 60; round++) {
        for (size_t i = 0; i < POOL; i++) pool[i] = i < 4 ? in[i] : random_node(f, pool, i, &s);
        for (int j = 0; j < OUTS; j++) out[j] = pool[POOL - 1 - 3 * j];
        struct sym_tape *t = NULL;
        assert_int_equal(sym_tape_compile(f->a, OUTS, out, 4, in, &t, NULL), ERR_OK);
        sym_tape_eval(t, POINTS, (const double *[]){col[0], col[1], col[2], col[3]},
                      (double *[]){res[0], res[1], res[2], res[3], res[4], res[5]});
        uint32_t top = 0;
        for (int j = 0; j < OUTS; j++) top = out[j]->index > top ? out[j]->index : top;
        double *memo = calloc((size_t)top + 1, sizeof *memo);
        bool *done = calloc((size_t)top + 1, sizeof *done);
        assert_true(memo && done);
        for (int p = 0; p < POINTS; p++) {
            const double v[] = {col[0][p], col[1][p], col[2][p], col[3][p]};
            memset(done, 0, (size_t)top + 1);
            for (int j = 0; j < OUTS; j++) {
                const double want = naive(out[j], v, memo, done);
                if (!same_bits(res[j][p], want)) fail_msg("round %d out %d: %a, not %a", round, j, res[j][p], want);
            }
        }
        free(memo);
        free(done);
    }
}

/* Integer expressions with an exact int64 twin; bound is the largest magnitude that any regrouping can meet. */
struct twin {
    const struct sym *e;
    int64_t v;
    double bound;
};

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

static struct twin combine(struct fixture *f, struct twin a, struct twin b, uint64_t *s)
{
    struct sym_ctx *c = f->c;
    const int64_t q = (int64_t)(rnd(s) % 97) + 2, p = (int64_t)(rnd(s) % 31) + 1;
    const double sum = a.bound + b.bound, most = a.bound > b.bound ? a.bound : b.bound;
    switch (rnd(s) % 9) {
    case 0: return (struct twin){sym_add(c, a.e, b.e), a.v + b.v, sum};
    case 1: return (struct twin){sym_sub(c, a.e, b.e), a.v - b.v, sum};
    case 2: return (struct twin){sym_mul(c, a.e, b.e), a.bound * b.bound < 0x1p52 ? a.v * b.v : 0, a.bound * b.bound};
    case 3: return (struct twin){sym_min(c, a.e, b.e), a.v < b.v ? a.v : b.v, most};
    case 4: return (struct twin){sym_max(c, a.e, b.e), a.v > b.v ? a.v : b.v, most};
    case 5:
        return (struct twin){sym_floor(c, sym_mul(c, sym_rat(c, p, q), a.e)),
                             a.bound * (double)p < 0x1p52 ? floor_div(a.v * p, q) : 0, a.bound * (double)p};
    case 6: return (struct twin){sym_ceil(c, sym_div(c, a.e, num(f, q))), -floor_div(-a.v, q), a.bound + 1.0};
    case 7:
        return (struct twin){sym_pow(c, a.e, num(f, 3)), a.bound < 165140.0 ? a.v * a.v * a.v : 0,
                             a.bound * a.bound * a.bound};
    default:
        return (struct twin){SYM_SUM(c, a.e, sym_mul(c, num(f, p), b.e), sym_mul(c, num(f, -q), a.e), num(f, p)),
                             a.v + p * b.v - q * a.v + p,
                             a.bound + (double)p * b.bound + (double)q * a.bound + (double)p};
    }
}

static void test_integers_exact(void **state)
{
    struct fixture *f = *state;
    uint64_t s = 77003;
    size_t checked = 0;
    double largest = 0.0;
    for (int round = 0; round < 400; round++) {
        struct twin pool[24] = {{f->x, 0, 0}, {f->y, 0, 0}, {f->z, 0, 0}, {f->w, 0, 0}};
        double v[4];
        for (int i = 0; i < 4; i++) {
            pool[i].v = (int64_t)(rnd(&s) % 20011) - 10005;
            v[i] = (double)pool[i].v;
            pool[i].bound = fabs(v[i]) + 1.0;
        }
        size_t n = 4;
        while (n < 24) {
            const struct twin t = combine(f, pool[rnd(&s) % n], pool[rnd(&s) % n], &s);
            if (t.bound < 0x1p52) pool[n++] = t;
        }
        for (size_t i = 4; i < n; i++, checked++) {
            const double want = (double)pool[i].v;
            assert_true(at_point(f, pool[i].e, v[0], v[1], v[2], v[3]) == want);
            const struct sym_binding env[] = {
                {f->x, num(f, (int64_t)v[0])}, {f->w, num(f, (int64_t)v[3])}, {f->y, num(f, (int64_t)v[1])}};
            const struct sym *b = sym_bind(f->c, pool[i].e, env, 3);
            assert_true(at_point(f, b, 0, 0, v[2], 0) == want);
            largest = fabs(want) > largest ? fabs(want) : largest;
        }
    }
    assert_int_equal(checked, 400 * 20);
    assert_true(largest > 0x1p45);
    /* 2^53 itself: 3*3002399751580330 + 2 + y */
    const struct sym *e = SYM_SUM(f->c, sym_mul(f->c, num(f, 3), f->x), num(f, 2), f->y);
    assert_true(at_point(f, e, 3002399751580330.0, 0.0, 0, 0) == 0x1p53);
    const struct sym *blocks = sym_ceil(f->c, sym_div(f->c, f->x, num(f, 49)));
    for (int k = 1; k < 200; k++) assert_true(at_point(f, blocks, 49.0 * k, 0, 0, 0) == (double)k);
    const struct sym *groups = sym_floor(f->c, sym_div(f->c, f->x, num(f, 49)));
    for (int k = 1; k < 200; k++) assert_true(at_point(f, groups, 49.0 * k, 0, 0, 0) == (double)k);
}

static void test_rounding_and_unknown(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const double v[] = {0.0,
                        -0.0,
                        0.3,
                        -0.3,
                        0.5,
                        -0.5,
                        0.7,
                        -0.7,
                        1.5,
                        -1.5,
                        2.0,
                        -17.0,
                        2.999999,
                        1e15 + 0.5,
                        -1e15 - 0.5,
                        0x1p52 - 0.5,
                        0x1p52,
                        1e300,
                        5e-324,
                        -5e-324,
                        (double)INFINITY,
                        (double)-INFINITY,
                        (double)NAN};
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        assert_true(same_bits(at_point(f, sym_ceil(c, f->x), v[i], 0, 0, 0), ceil(v[i])));
        assert_true(same_bits(at_point(f, sym_floor(c, f->x), v[i], 0, 0, 0), floor(v[i])));
        for (size_t j = 0; j < sizeof v / sizeof v[0]; j++) {
            const bool unknown = isnan(v[i]) || isnan(v[j]);
            const double least = unknown ? (double)NAN : v[i] < v[j] ? v[i] : v[j];
            const double most = unknown ? (double)NAN : v[i] > v[j] ? v[i] : v[j];
            const double min = at_point(f, sym_min(c, f->x, f->y), v[i], v[j], 0, 0);
            const double max = at_point(f, sym_max(c, f->x, f->y), v[i], v[j], 0, 0);
            assert_true(min == least || (isnan(min) && unknown));
            assert_true(max == most || (isnan(max) && unknown));
        }
        assert_true(isnan(at_point(f, sym_min(c, f->x, num(f, 3)), (double)NAN, 0, 0, 0)));
        assert_true(isnan(at_point(f, sym_max(c, f->x, num(f, 3)), (double)NAN, 0, 0, 0)));
    }
}

static void test_columns(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    enum { MOST = 1000, GUARD = 3 };
    const struct sym *in[] = {f->x, f->y, f->z};
    const struct sym *sum = sym_add(c, f->x, sym_mul(c, num(f, 7), f->y));
    const struct sym *outs[] = {sum, f->y, num(f, 41), sum, sym_mul(c, sum, sum), sym_mul(c, sum, f->x)};
    struct sym_tape *t = NULL;
    assert_int_equal(sym_tape_compile(f->a, 6, outs, 3, in, &t, NULL), ERR_OK);
    double x[MOST], y[MOST], r[6][MOST + GUARD];
    for (int i = 0; i < MOST; i++) {
        x[i] = 3.0 * i - 500.0;
        y[i] = 0.25 * i;
    }
    const size_t sizes[] = {0, 1, 7, 8, 9, 31, 32, 33, 40, 127, 128, 129, 161, 256, 999, 1000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const size_t n = sizes[k];
        for (int wanted = 1; wanted < 64; wanted += 31) { /* 1, 32, 63 */
            double *out[6];
            for (int j = 0; j < 6; j++) {
                for (int i = 0; i < MOST + GUARD; i++) r[j][i] = -12345.0;
                out[j] = wanted >> j & 1 ? r[j] : NULL;
            }
            sym_tape_eval(t, n, (const double *[]){x, y, NULL}, out);
            for (size_t i = 0; i < MOST + GUARD; i++) {
                const double s = i < MOST ? x[i] + 7.0 * y[i] : 0.0;
                const double want[6] = {s, i < MOST ? y[i] : 0.0, 41.0, s, s * s, i < MOST ? s * x[i] : 0.0};
                for (int j = 0; j < 6; j++) assert_true(r[j][i] == (out[j] && i < n ? want[j] : -12345.0));
            }
        }
    }
}

static void test_tape_is_short(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *x = f->x, *y = f->y;
    assert_int_equal(length_of(f, sym_sub(c, x, y)), 1);
    assert_int_equal(length_of(f, sym_sub(c, num(f, 3), x)), 1);
    assert_int_equal(length_of(f, sym_add(c, x, sym_mul(c, num(f, 5), y))), 1);
    assert_int_equal(length_of(f, sym_div(c, x, num(f, 3))), 1);
    assert_int_equal(length_of(f, sym_pow(c, x, num(f, 5))), 3);
    assert_int_equal(length_of(f, sym_pow(c, x, num(f, 17))), 1);
    const struct sym *shared = sym_mul(c, num(f, 5), y);
    assert_int_equal(length_of(f, sym_add(c, sym_div(c, x, shared), shared)), 3);
}

static void test_unknown_variable(void **state)
{
    struct fixture *f = *state;
    const struct sym *in[] = {f->x, f->y}, *e = sym_add(f->c, f->x, sym_var(f->c, "n_heads"));
    struct sym_tape *t = NULL;
    struct err err = {0};
    assert_int_equal(sym_tape_compile(f->a, 1, &e, 2, in, &t, &err), ERR_RANGE);
    assert_null(t);
    assert_int_equal(err.code, ERR_RANGE);
    assert_string_equal(err.text, "variable 'n_heads' has no values: it is not among the 2 inputs");
}

static void test_deep(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    enum { DEPTH = 100000 };
    const struct sym *chain = f->x, *sum = num(f, 0), *product = f->y, *pile = f->x;
    double want_chain = 11.0, want_sum = 0.0;
    for (int i = 0; i < DEPTH; i++) {
        const int64_t k = 3 + i % 5;
        chain = sym_ceil(c, sym_div(c, sym_add(c, sym_mul(c, chain, f->y), num(f, k)), num(f, 7)));
        want_chain = ceil((want_chain * 5.0 + (double)k) / 7.0);
        sum = sym_add(c, sum, sym_floor(c, sym_div(c, f->x, num(f, i + 2))));
        want_sum += floor(11.0 / (i + 2));
        product = sym_mul(c, product, sym_max(c, f->z, num(f, i % 1000 - 2000)));
        pile = sym_min(c, sym_add(c, f->w, pile), f->y);
    }
    const struct sym *in[4] = {chain, sum, product, pile}, *out[4];
    const double want[4] = {want_chain, want_sum, 5.0, 5.0};
    for (int i = 0; i < 4; i++) assert_true(at_point(f, in[i], 11.0, 5.0, 1.0, 3.0) == want[i]);
    const struct sym_binding env[] = {{f->x, sym_add(c, f->w, num(f, 8))}, {f->z, num(f, 1)}};
    sym_bind_all(c, 4, in, out, env, 2);
    for (int i = 0; i < 4; i++) assert_true(at_point(f, out[i], 0.0, 5.0, 0.0, 3.0) == want[i]);
    const struct sym_binding all[] = {{f->x, num(f, 11)}, {f->y, num(f, 5)}, {f->z, num(f, 1)}, {f->w, num(f, 3)}};
    sym_bind_all(c, 4, in, out, all, 4);
    for (int i = 0; i < 4; i++) assert_true(value_of(out[i]) == want[i]);
    char buf[64];
    assert_true(sym_print(chain, buf, sizeof buf) > DEPTH);
    assert_true(sym_print(sum, buf, sizeof buf) > DEPTH);
    assert_memory_equal(buf, "floor(x/2) + floor(x/3)", 23);
    const size_t n = sym_print(chain, NULL, 0);
    char *whole = malloc(n + 1);
    assert_non_null(whole);
    assert_int_equal(sym_print(chain, whole, n + 1), n);
    assert_int_equal(strlen(whole), n);
    free(whole);
}

static void test_failed_context(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    const struct sym *x = sym_var(c, "x"), *y;
    struct err err = {0};
    assert_int_equal(sym_check(c, &err), ERR_OK);
    (void)sym_fail(c);
    y = sym_add(c, sym_sub(c, x, sym_int(c, 3)), sym_mul(c, x, sym_num(c, 1e-9)));
    y = sym_div(c, sym_pow(c, y, x), sym_min(c, sym_ceil(c, y), sym_max(c, x, sym_floor(c, y))));
    y = SYM_SUM(c, y, sym_rat(c, 1, 3), SYM_PROD(c, x, sym_var(c, "z")), sym_bind(c, x, NULL, 0));
    assert_true(isnan(value_of(y)));
    assert_int_equal(sym_check(c, &err), ERR_NOMEM);
    arena_close(a);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

/* numbers that no double holds, and what becomes of them */
static void test_wide_numbers(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *three = sym_int(c, 3), *four = sym_int(c, 4), *big[2];
    double v = 0.0;
    for (int i = 0; i < 2; i++) big[i] = sym_pow(c, i ? four : three, sym_int(c, 700));
    assert_true(sym_constant(sym_div(c, big[0], big[1]), &v));
    assert_true(fabs(v / pow(0.75, 700.0) - 1.0) < 1e-12);
    assert_true(sym_constant(big[1], &v) && isinf(v));
    assert_true(sym_constant(sym_div(c, three, big[1]), &v) && v == 0.0);
    assert_true(sym_constant(sym_mul(c, sym_div(c, three, big[1]), sym_mul(c, big[1], sym_rat(c, 7, 5))), &v));
    assert_true(fabs(v - 4.2) < 1e-12);
    assert_true(sym_constant(sym_log(c, big[1]), &v) && fabs(v - 700.0 * log(4.0)) < 1e-9);
    assert_true(sym_constant(sym_sub(c, sym_add(c, big[1], big[0]), big[1]), &v));
    assert_true(sym_constant(sym_div(c, sym_max(c, big[0], big[1]), sym_min(c, big[1], sym_mul(c, four, big[1]))), &v));
    assert_true(v == 1.0);
    const struct sym *half = sym_pow(c, big[1], sym_rat(c, 1, 2));
    assert_true(sym_constant(sym_div(c, half, sym_pow(c, sym_int(c, 2), sym_int(c, 690))), &v));
    assert_true(fabs(v - 1024.0) < 1e-9); /* not a unit */
    assert_true(sym_constant(sym_ceil(c, sym_div(c, three, big[1])), &v) && v == 1.0);
    const struct sym *e = sym_exp(c, sym_int(c, 900)), *inverse = sym_exp(c, sym_int(c, -897));
    assert_true(sym_constant(sym_mul(c, e, inverse), &v) && fabs(v / exp(3.0) - 1.0) < 1e-12);
    const struct sym *nan = sym_num(c, (double)NAN);
    assert_true(sym_constant(sym_min(c, big[1], nan), &v) && isnan(v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_hash_consing),
        WITH_FIXTURE(test_identities),
        WITH_FIXTURE(test_constants_fold),
        WITH_FIXTURE(test_products_fold),
        WITH_FIXTURE(test_sums_collect),
        WITH_FIXTURE(test_overflow_stays_unfolded),
        WITH_FIXTURE(test_doubles),
        WITH_FIXTURE(test_bind),
        WITH_FIXTURE(test_shared_graph),
        WITH_FIXTURE(test_bind_collects),
        WITH_FIXTURE(test_print),
        WITH_FIXTURE(test_tape_against_naive),
        WITH_FIXTURE(test_integers_exact),
        WITH_FIXTURE(test_rounding_and_unknown),
        WITH_FIXTURE(test_columns),
        WITH_FIXTURE(test_tape_is_short),
        WITH_FIXTURE(test_unknown_variable),
        WITH_FIXTURE(test_deep),
        WITH_FIXTURE(test_wide_numbers),
        cmocka_unit_test(test_failed_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
