/* Unit tests of calc/sym/normal.h: the lecture's derivations, canonical forms, atoms, roots, refusals, and random pairs
 * whose equality is known by construction and checked by residues and at exact rational points. */
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
#include "calc/sym/normal.h"
#include "tests/draws.h"
#include "tests/sym_mpq.h"

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    const struct sym *B, *D, *F, *S, *T, *W;
    struct err err;
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    f->c = sym_open(f->a);
    f->B = sym_var(f->c, "B");
    f->D = sym_var(f->c, "D");
    f->F = sym_var(f->c, "F");
    f->S = sym_var(f->c, "S");
    f->T = sym_var(f->c, "T");
    f->W = sym_var(f->c, "W");
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

/* ---- shorthands ---- */

static const struct sym *num(struct fixture *f, int64_t n) { return sym_int(f->c, n); }

#define PROD(...) SYM_PROD(f->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(f->c, __VA_ARGS__)

static const struct sym *normal(struct fixture *f, const struct sym *e)
{
    const struct sym *out = NULL;
    const enum err_code code = sym_normal(f->c, e, &out, &f->err);
    if (code != ERR_OK) print_message("%s\n", f->err.text);
    assert_int_equal(code, ERR_OK);
    return out;
}

static bool equal(struct fixture *f, const struct sym *a, const struct sym *b)
{
    bool yes = false;
    const enum err_code code = sym_equal(f->c, a, b, &yes, &f->err);
    if (code != ERR_OK) print_message("%s\n", f->err.text);
    assert_int_equal(code, ERR_OK);
    return yes;
}

/* one canonical form, and that form is its own */
static void assert_same(struct fixture *f, const struct sym *a, const struct sym *b)
{
    const struct sym *n = normal(f, a);
    assert_ptr_equal(n, normal(f, b));
    assert_ptr_equal(n, normal(f, n));
    assert_true(equal(f, a, b));
    assert_true(equal(f, a, n));
}

static void assert_differ(struct fixture *f, const struct sym *a, const struct sym *b)
{
    assert_ptr_not_equal(normal(f, a), normal(f, b));
    assert_false(equal(f, a, b));
}

static void assert_refused(struct fixture *f, const struct sym *e, const char *why)
{
    const struct sym *out = f->B;
    f->err.text[0] = '\0';
    assert_int_equal(sym_normal(f->c, e, &out, &f->err), ERR_RANGE);
    assert_ptr_equal(out, f->B);
    if (!strstr(f->err.text, why)) print_message("%s\n", f->err.text);
    assert_non_null(strstr(f->err.text, why));
}

static const struct sym *limit(struct fixture *f, const struct sym *e, const struct sym *u, const struct sym *v,
                               int64_t order)
{
    const struct sym *group[2] = {u, v}, *out = NULL;
    int64_t got = INT64_MIN;
    assert_int_equal(sym_limit(f->c, e, v ? 2 : 1, group, &out, &got, &f->err), ERR_OK);
    assert_int_equal(got, order);
    return out;
}

/* ---- the lecture ---- */

enum { WIDTH = 2 }; /* bytes of a bf16 */

/* an m x k by k x n product: two flops a multiply-add */
static const struct sym *product_flops(struct fixture *f, const struct sym *m, const struct sym *k, const struct sym *n)
{
    return PROD(num(f, 2), m, k, n);
}

static const struct sym *matrix_bytes(struct fixture *f, const struct sym *rows, const struct sym *columns)
{
    return PROD(num(f, WIDTH), rows, columns);
}

static void test_lecture_matmul(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *bytes =
        SUM(matrix_bytes(f, f->B, f->D), matrix_bytes(f, f->D, f->F), matrix_bytes(f, f->B, f->F));
    const struct sym *intensity = sym_div(c, product_flops(f, f->B, f->D, f->F), bytes);
    const struct sym *want =
        sym_div(c, PROD(f->B, f->D, f->F), SUM(PROD(f->B, f->D), PROD(f->B, f->F), PROD(f->D, f->F)));
    assert_same(f, intensity, want);
    assert_ptr_equal(normal(f, intensity), want);
    assert_ptr_equal(limit(f, intensity, f->D, f->F, 0), f->B);
    enum sym_sign sign;
    assert_int_equal(sym_monotone(c, intensity, f->B, &sign, &f->err), ERR_OK);
    assert_int_equal(sign, SYM_SIGN_PLUS);
}

/* X (B T x D) read, U, G (B T x F) written, V read, Y (B T x D) written; three weights read */
static void test_lecture_gated_mlp(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *rows = PROD(f->B, f->T);
    const struct sym *flops =
        SUM(product_flops(f, rows, f->D, f->F), product_flops(f, rows, f->D, f->F), product_flops(f, rows, f->F, f->D));
    const struct sym *weight = matrix_bytes(f, f->D, f->F), *inner = matrix_bytes(f, rows, f->F);
    const struct sym *bytes =
        SUM(matrix_bytes(f, rows, f->D), inner, inner, weight, weight, weight, matrix_bytes(f, rows, f->D));
    const struct sym *intensity = sym_div(c, flops, bytes);
    assert_true(equal(f, flops, PROD(num(f, 6), f->B, f->T, f->D, f->F)));
    const struct sym *want =
        sym_div(c, PROD(num(f, 3), f->B, f->D, f->F, f->T),
                SUM(PROD(num(f, 2), f->B, f->D, f->T), PROD(num(f, 2), f->B, f->F, f->T), PROD(num(f, 3), f->D, f->F)));
    assert_same(f, intensity, want);
    assert_ptr_equal(normal(f, intensity), want);
    assert_ptr_equal(limit(f, intensity, f->D, f->F, 0), rows);
}

/* Q K^T and its product with V, a head width of D over all heads; Q and O, K and V through memory */
static void test_lecture_attention(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *flops =
        PROD(f->B, sym_add(c, product_flops(f, f->T, f->D, f->S), product_flops(f, f->T, f->S, f->D)));
    const struct sym *queries = matrix_bytes(f, f->T, f->D), *keys = matrix_bytes(f, f->S, f->D);
    const struct sym *intensity = sym_div(c, flops, PROD(f->B, SUM(queries, queries, keys, keys)));
    assert_ptr_equal(normal(f, intensity), sym_div(c, PROD(f->S, f->T), sym_add(c, f->S, f->T)));
    const struct sym *prefill = sym_bind(c, intensity, &(struct sym_binding){f->T, f->S}, 1);
    assert_ptr_equal(normal(f, prefill), PROD(sym_rat(c, 1, 2), f->S));
    const struct sym *decode = sym_bind(c, intensity, &(struct sym_binding){f->T, num(f, 1)}, 1);
    assert_ptr_equal(normal(f, decode), sym_div(c, f->S, sym_add(c, f->S, num(f, 1))));
    assert_ptr_equal(limit(f, decode, f->S, NULL, 0), num(f, 1));
}

/* ---- canonical forms ---- */

static void test_forms(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *B = f->B, *D = f->D, *F = f->F, *sum = sym_add(c, B, D), *gap = sym_sub(c, B, D);
    assert_same(f, sym_sub(c, PROD(B, B), PROD(D, D)), sym_mul(c, sum, gap));
    assert_same(f, sym_div(c, sym_sub(c, PROD(B, B), PROD(D, D)), gap), sum);
    assert_same(f, sym_add(c, sym_div(c, num(f, 1), B), sym_div(c, num(f, 1), D)), sym_div(c, sum, PROD(B, D)));
    assert_same(f, sym_pow(c, sym_div(c, sum, F), num(f, -3)), sym_div(c, PROD(F, F, F), sym_pow(c, sum, num(f, 3))));
    assert_same(f, sym_div(c, sum, PROD(num(f, -7), gap)), sym_div(c, sum, PROD(num(f, 7), sym_sub(c, D, B))));
    assert_same(f, sym_sub(c, sym_div(c, B, sum), sym_div(c, D, sum)), sym_div(c, gap, sum));
    assert_same(f, sym_sub(c, sym_div(c, B, gap), sym_div(c, D, gap)), num(f, 1));
    assert_same(f, sym_mul(c, sym_num(c, 0.1), num(f, 10)), sym_mul(c, num(f, 10), sym_num(c, 0.1)));
    assert_differ(f, sym_mul(c, sym_num(c, 0.1), num(f, 10)), num(f, 1)); /* 0.1 is no tenth */
    assert_same(f, sym_mul(c, sym_num(c, 0x1p-90), sym_num(c, 0x1p97)), num(f, 128));
    assert_differ(f, PROD(B, sum), PROD(D, sum));
    assert_differ(f, sym_div(c, B, D), sym_div(c, D, B));
    assert_ptr_equal(normal(f, sym_sub(c, PROD(sum, F), PROD(F, B))), PROD(D, F));
}

static void test_long_numbers(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *big = sym_pow(c, num(f, 97), num(f, 61)), *n = sym_add(c, f->S, big);
    assert_same(f, sym_pow(c, n, num(f, 2)), SUM(PROD(f->S, f->S), PROD(num(f, 2), big, f->S), PROD(big, big)));
    assert_same(f, sym_div(c, PROD(big, f->S), sym_pow(c, num(f, 97), num(f, 60))), PROD(num(f, 97), f->S));
    assert_same(f, sym_sub(c, big, sym_add(c, big, f->S)), PROD(num(f, -1), f->S));
    assert_differ(f, big, sym_add(c, big, num(f, 1)));
    assert_same(f, sym_ceil(c, sym_div(c, sym_add(c, big, num(f, 1)), num(f, 97))),
                sym_add(c, sym_pow(c, num(f, 97), num(f, 60)), num(f, 1)));
}

static void test_atoms(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *S = f->S, *T = f->T, *W = f->W;
    assert_same(f, sym_add(c, sym_min(c, S, W), sym_max(c, W, S)), sym_add(c, S, W));
    assert_same(f, sym_min(c, sym_sub(c, sym_add(c, S, W), W), S), S);
    assert_same(f, sym_max(c, sym_div(c, PROD(S, W), W), T), sym_max(c, T, S));
    assert_ptr_equal(normal(f, sym_max(c, T, S)), sym_max(c, T, S));
    assert_ptr_equal(normal(f, sym_sub(c, sym_add(c, S, T), sym_max(c, T, S))), sym_min(c, T, S));
    assert_same(f, sym_max(c, sym_max(c, S, T), W), sym_max(c, S, sym_max(c, T, W)));
    assert_same(f, sym_min(c, sym_min(c, S, T), sym_min(c, W, S)), sym_min(c, S, sym_min(c, T, W)));
    assert_same(f, sym_min(c, S, sym_add(c, S, T)), S); /* symbols are positive */
    assert_same(f, sym_max(c, PROD(S, num(f, 3)), PROD(S, num(f, 2))), PROD(S, num(f, 3)));
    const struct sym *blocks = sym_ceil(c, sym_div(c, sym_add(c, S, T), num(f, 16)));
    assert_same(f, PROD(num(f, 16), blocks),
                PROD(num(f, 16), sym_ceil(c, sym_div(c, PROD(W, sym_add(c, T, S)), PROD(num(f, 16), W)))));
    assert_differ(f, blocks, sym_div(c, sym_add(c, S, T), num(f, 16)));
    assert_differ(f, blocks, sym_floor(c, sym_div(c, sym_add(c, S, T), num(f, 16))));
    assert_same(f, sym_ceil(c, sym_div(c, PROD(num(f, 7), S), PROD(num(f, 2), S))), num(f, 4));
    assert_same(f, sym_floor(c, sym_sub(c, sym_div(c, S, S), sym_rat(c, 5, 2))), num(f, -2));
    assert_same(f, sym_pow(c, sym_sub(c, num(f, 1), sym_div(c, num(f, 1), W)), sym_sub(c, sym_add(c, S, T), T)),
                sym_pow(c, sym_div(c, sym_sub(c, W, num(f, 1)), W), S));
}

static void test_known_orders(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *out = NULL, *S = f->S, *T = f->T, *W = f->W, *D = f->D;
    const struct sym_known chain[] = {{W, S}, {S, T}}, at_least[] = {{num(f, 1), S}},
                           whole[] = {{PROD(num(f, 3), W), sym_add(c, S, T)}};
    assert_int_equal(sym_normal_given(c, sym_min(c, PROD(W, D), PROD(D, S)), 1, chain, &out, &f->err), ERR_OK);
    assert_ptr_equal(out, PROD(W, D));
    assert_int_equal(sym_normal_given(c, sym_max(c, W, T), 2, chain, &out, &f->err), ERR_OK);
    assert_ptr_equal(out, T);
    assert_int_equal(sym_normal_given(c, sym_max(c, PROD(S, T), T), 1, at_least, &out, &f->err), ERR_OK);
    assert_ptr_equal(out, PROD(S, T));
    assert_int_equal(sym_normal_given(c, sym_min(c, PROD(num(f, 3), W), sym_add(c, T, S)), 1, whole, &out, &f->err),
                     ERR_OK);
    assert_ptr_equal(out, PROD(num(f, 3), W));
    bool yes = false;
    assert_int_equal(sym_equal_given(c, sym_min(c, W, S), W, 1, chain, &yes, &f->err), ERR_OK);
    assert_true(yes);
    assert_false(equal(f, sym_min(c, W, S), W));
}

static void test_roots(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *half = sym_rat(c, 1, 2), *x = sym_add(c, f->S, f->T), *r = sym_pow(c, x, half);
    assert_same(f, PROD(r, r), x);
    assert_same(f, sym_div(c, num(f, 1), r), sym_div(c, r, x));
    assert_same(f, sym_div(c, num(f, 1), sym_sub(c, r, f->W)),
                sym_div(c, sym_add(c, r, f->W), sym_sub(c, x, PROD(f->W, f->W))));
    assert_same(f, sym_pow(c, x, sym_rat(c, 7, 2)), PROD(x, x, x, r));
    assert_same(f, sym_pow(c, PROD(num(f, 12), f->S, f->S, f->T), half),
                PROD(num(f, 2), f->S, sym_pow(c, PROD(num(f, 3), f->T), half)));
    assert_same(f, sym_pow(c, sym_div(c, f->S, f->T), half), sym_div(c, sym_pow(c, PROD(f->S, f->T), half), f->T));
    assert_same(f, sym_pow(c, num(f, 8), sym_rat(c, 2, 3)), num(f, 4));
    const struct sym *third = sym_pow(c, x, sym_rat(c, 1, 3));
    assert_same(f, PROD(third, third, third), x);
    assert_same(f, PROD(third, third), sym_pow(c, x, sym_rat(c, 2, 3)));
    assert_differ(f, r, third);
    assert_refused(f, sym_pow(c, num(f, -7), half), "root of a negative");
    assert_refused(f, sym_div(c, f->W, sym_sub(c, PROD(r, r), x)), "divides by zero");
}

/* ---- calculus ---- */

static void test_diff(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *S = f->S, *T = f->T, *sum = sym_add(c, S, T), *out = NULL;
    assert_int_equal(sym_diff(c, sym_div(c, PROD(S, T), sum), S, &out, &f->err), ERR_OK);
    assert_true(equal(f, out, sym_pow(c, sym_div(c, T, sum), num(f, 2))));
    assert_int_equal(sym_diff(c, sym_pow(c, sum, num(f, 7)), T, &out, &f->err), ERR_OK);
    assert_true(equal(f, out, PROD(num(f, 7), sym_pow(c, sum, num(f, 6)))));
    assert_int_equal(sym_diff(c, sym_pow(c, S, sym_rat(c, 1, 2)), S, &out, &f->err), ERR_OK);
    assert_true(equal(f, out, sym_div(c, num(f, 1), PROD(num(f, 2), sym_pow(c, S, sym_rat(c, 1, 2))))));
    const struct sym *window = sym_min(c, S, f->W);
    assert_int_equal(sym_diff(c, PROD(T, window), T, &out, &f->err), ERR_OK);
    assert_ptr_equal(out, window);
    assert_int_equal(sym_diff(c, PROD(T, window), S, &out, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "min("));
    assert_int_equal(sym_diff(c, sym_pow(c, T, PROD(S, f->W)), S, &out, &f->err), ERR_OK);
    assert_true(equal(f, out, PROD(f->W, sym_log(c, T), sym_pow(c, T, PROD(S, f->W)))));
}

static void test_limits(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *B = f->B, *D = f->D, *F = f->F, *S = f->S, *T = f->T, *sum = sym_add(c, D, F);
    assert_ptr_equal(limit(f, sym_div(c, D, sym_add(c, sum, B)), D, F, 0), sym_div(c, D, sum));
    assert_ptr_equal(limit(f, sym_div(c, SUM(PROD(D, F, B), PROD(D, S), T), sum), D, F, 1),
                     sym_div(c, PROD(B, D, F), sum));
    assert_ptr_equal(limit(f, sym_div(c, B, sum), D, F, -1), num(f, 0));
    assert_ptr_equal(limit(f, sym_div(c, PROD(S, T), sym_add(c, S, T)), S, NULL, 0), T);
    assert_ptr_equal(limit(f, sym_min(c, PROD(B, D), PROD(F, F)), F, NULL, 0), PROD(B, D));
    assert_ptr_equal(limit(f, sym_max(c, sym_div(c, S, F), T), F, NULL, 0), T);
    const struct sym *out = NULL, *group[] = {S};
    int64_t order = 0;
    assert_int_equal(sym_limit(c, sym_ceil(c, sym_div(c, S, T)), 1, group, &out, &order, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "ceil("));
}

static struct sym_solution solve(struct fixture *f, const struct sym *l, const struct sym *r, const struct sym *var)
{
    struct sym_solution s = {0};
    assert_int_equal(sym_solve(f->c, l, r, var, &s, &f->err), ERR_OK);
    for (size_t i = 0; i < s.n; i++) {
        const struct sym_binding at = {var, s.root[i]};
        assert_true(equal(f, sym_bind(f->c, l, &at, 1), sym_bind(f->c, r, &at, 1)));
    }
    return s;
}

static void test_solve(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *B = f->B, *D = f->D, *F = f->F, *S = f->S, *T = f->T;
    const struct sym *intensity = sym_div(c, PROD(S, T), sym_add(c, S, T));
    struct sym_solution s = solve(f, intensity, num(f, 295), S);
    assert_int_equal(s.n, 1);
    assert_true(equal(f, s.root[0], sym_div(c, PROD(num(f, 295), T), sym_sub(c, T, num(f, 295)))));
    s = solve(f, SUM(PROD(B, S, S), PROD(D, S), F), num(f, 0), S);
    assert_int_equal(s.n, 2);
    s = solve(f, PROD(S, S), SUM(PROD(S, sym_add(c, B, D)), PROD(num(f, -1), B, D)), S); /* (S - B)(S - D) */
    assert_int_equal(s.n, 2);
    assert_true((s.root[0] == B && s.root[1] == D) || (s.root[0] == D && s.root[1] == B));
    s = solve(f, PROD(S, S), SUM(PROD(num(f, 14), S), num(f, -49)), S);
    assert_int_equal(s.n, 1);
    assert_ptr_equal(s.root[0], num(f, 7));
    assert_int_equal(solve(f, PROD(S, S), num(f, -5), S).kind, SYM_SOLVED_NEVER);
    assert_int_equal(solve(f, sym_add(c, S, T), SUM(S, T, num(f, 3)), S).kind, SYM_SOLVED_NEVER);
    assert_int_equal(solve(f, PROD(sym_add(c, S, T), S), SUM(PROD(S, S), PROD(S, T)), S).kind, SYM_SOLVED_ALWAYS);
    assert_int_equal(sym_solve(c, PROD(S, S, S), T, S, &s, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "degree 3 in S"));
    assert_int_equal(sym_solve(c, sym_ceil(c, sym_div(c, S, T)), T, S, &s, &f->err), ERR_RANGE);
    assert_non_null(strstr(f->err.text, "ceil("));
}

static enum sym_sign sign_of(struct fixture *f, const struct sym *e)
{
    enum sym_sign s = SYM_SIGN_UNKNOWN;
    assert_int_equal(sym_sign(f->c, e, &s, &f->err), ERR_OK);
    return s;
}

static void test_signs(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *S = f->S, *T = f->T;
    assert_int_equal(sign_of(f, sym_sub(c, sym_pow(c, sym_add(c, S, T), num(f, 2)), PROD(S, S))), SYM_SIGN_PLUS);
    assert_int_equal(sign_of(f, sym_div(c, S, sym_sub(c, num(f, -3), T))), SYM_SIGN_MINUS);
    assert_int_equal(sign_of(f, sym_sub(c, S, T)), SYM_SIGN_UNKNOWN);
    assert_int_equal(sign_of(f, sym_sub(c, PROD(S, sym_add(c, S, T)), SUM(PROD(S, S), PROD(S, T)))), SYM_SIGN_ZERO);
    assert_int_equal(sign_of(f, sym_max(c, S, T)), SYM_SIGN_PLUS);
    assert_int_equal(sign_of(f, sym_min(c, S, T)), SYM_SIGN_PLUS);
    assert_int_equal(sign_of(f, sym_max(c, sym_sub(c, S, T), sym_sub(c, T, num(f, 3)))), SYM_SIGN_UNKNOWN);
    assert_int_equal(sign_of(f, sym_floor(c, sym_div(c, S, T))), SYM_SIGN_UNKNOWN); /* may be 0 */
    enum sym_sign s;
    assert_int_equal(sym_monotone(c, sym_div(c, num(f, 5), sym_add(c, S, T)), T, &s, &f->err), ERR_OK);
    assert_int_equal(s, SYM_SIGN_MINUS);
    assert_int_equal(sym_monotone(c, sym_div(c, num(f, 5), sym_add(c, S, T)), f->W, &s, &f->err), ERR_OK);
    assert_int_equal(s, SYM_SIGN_ZERO);
}

static void test_counterexample(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    struct sym_point p, again;
    const struct sym *a = sym_div(c, PROD(f->S, f->T), sym_add(c, f->S, f->T)), *b = sym_div(c, f->S, num(f, 2));
    assert_int_equal(sym_counterexample(c, a, b, &p, &f->err), ERR_OK);
    assert_int_equal(p.n, 2);
    assert_ptr_equal(p.at[0].var, f->S);
    assert_ptr_equal(p.at[1].var, f->T);
    double s = 0.0, t = 0.0, x = 0.0, y = 0.0;
    assert_true(sym_constant(p.at[0].value, &s) && sym_constant(p.at[1].value, &t));
    assert_true(sym_constant(p.value[0], &x) && sym_constant(p.value[1], &y));
    assert_true(s >= 1.0 && s <= 40.0 && t >= 1.0 && t <= 40.0 && s != t);
    assert_ptr_equal(p.value[0], sym_rat(c, (int64_t)(s * t), (int64_t)(s + t)));
    assert_true(fabs(y - s / 2.0) < 1e-15 && fabs(x - y) > 1e-9);
    assert_int_equal(sym_counterexample(c, a, b, &again, &f->err), ERR_OK);
    assert_ptr_equal(again.at[0].value, p.at[0].value);
    assert_ptr_equal(again.at[1].value, p.at[1].value);
    const struct sym *r = sym_pow(c, f->S, sym_rat(c, 1, 2));
    assert_int_equal(sym_counterexample(c, r, sym_add(c, r, num(f, 1)), &p, &f->err), ERR_OK);
    assert_int_equal(sym_counterexample(c, a, a, &p, &f->err), ERR_NO);
}

/* ---- refusals ---- */

static const struct sym *indexed(struct fixture *f, const char *stem, int i)
{
    char name[16];
    (void)snprintf(name, sizeof name, "%s%d", stem, i);
    return sym_var(f->c, name);
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *wide = SUM(f->B, f->D, f->F, f->S, f->T, f->W), *many = num(f, 0), *fractions = num(f, 0);
    assert_refused(f, sym_pow(c, wide, num(f, 40)), "200000 terms");
    assert_refused(f, sym_pow(c, f->S, num(f, 1001)), "exponent 1001");
    assert_refused(f, sym_pow(c, f->S, num(f, INT64_MIN)), "exponent");
    assert_refused(f, PROD(sym_pow(c, f->S, num(f, 600)), sym_pow(c, f->S, num(f, 401))), "power above 1000");
    assert_refused(f, sym_pow(c, sym_pow(c, sym_add(c, f->S, f->T), num(f, 40)), num(f, 30)), "power above 1000");
    assert_refused(f, sym_pow(c, sym_pow(c, num(f, 97), num(f, 1000)), num(f, 1000)), "bits");
    assert_refused(f, sym_div(c, f->S, sym_sub(c, PROD(f->T, wide), PROD(wide, f->T))), "divides by zero");
    assert_refused(f, sym_pow(c, sym_sub(c, PROD(f->T, wide), PROD(wide, f->T)), num(f, -1)), "divides by zero");
    assert_refused(f, sym_mul(c, f->S, sym_num(c, (double)INFINITY)), "finite");
    assert_refused(f, sym_mul(c, f->S, sym_num(c, (double)NAN)), "finite");
    for (int i = 0; i < 257; i++) many = sym_add(c, many, indexed(f, "m", i));
    assert_refused(f, many, "257 different symbols");
    for (int i = 0; i < 40; i++)
        fractions = sym_add(c, fractions, sym_div(c, f->S, sym_add(c, indexed(f, "m", i), indexed(f, "n", i))));
    assert_refused(f, fractions, "");
    const struct sym *a = SUM(sym_pow(c, f->B, num(f, 700)), sym_pow(c, f->D, num(f, 650)), f->F),
                     *b = SUM(sym_pow(c, f->D, num(f, 300)), sym_pow(c, f->B, num(f, 290)), f->F, num(f, 1));
    assert_refused(f, sym_div(c, a, sym_add(c, sym_mul(c, b, b), f->S)), "common factor");
    const struct sym *deep = f->S, *longest = f->S;
    for (int i = 0; i < 64; i++) longest = sym_max(c, longest, indexed(f, "m", i));
    assert_refused(f, longest, "64 operands");
    for (int i = 0; i < 200; i++) deep = sym_div(c, sym_add(c, f->T, PROD(deep, wide)), sym_add(c, deep, f->W));
    assert_refused(f, deep, "");
}

/* ---- random pairs ---- */

enum { SYMBOLS = 12, TERMS = 60, PAIRS = 10000, PAIRS_A_CONTEXT = 50 };

/* the prime 2^61 - 1: residues are exact values of another ring, so equal expressions have equal residues */
static const uint64_t PRIME = (UINT64_C(1) << 61) - 1;

static uint64_t times(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b % PRIME);
}

static uint64_t to_power(uint64_t a, uint64_t n)
{
    uint64_t r = 1;
    for (; n; n >>= 1, a = times(a, a))
        if (n & 1) r = times(r, a);
    return r;
}

static uint64_t inverse(uint64_t a) { return to_power(a, PRIME - 2); }

static uint64_t residue_of_int(int64_t n) { return n < 0 ? PRIME - (uint64_t)-n % PRIME : (uint64_t)n % PRIME; }

static uint64_t residue(const struct sym *e, const struct sym *const *var, const uint64_t *at)
{
    switch (sym_op(e)) {
    case SYM_CONST: return times(residue_of_int(e->num), inverse(residue_of_int(e->den)));
    case SYM_VAR:
        for (int i = 0; i < SYMBOLS; i++)
            if (var[i] == e) return at[i];
        break;
    case SYM_ADD: return (residue(e->a, var, at) + residue(e->b, var, at)) % PRIME;
    case SYM_MUL: return times(residue(e->a, var, at), residue(e->b, var, at));
    case SYM_DIV: return times(residue(e->a, var, at), inverse(residue(e->b, var, at)));
    case SYM_POW: {
        const uint64_t base = residue(e->a, var, at);
        return to_power(e->b->num < 0 ? inverse(base) : base, (uint64_t)llabs(e->b->num));
    }
    case SYM_MIN:
    case SYM_MAX:
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_LOG:
    case SYM_EXP: break;
    }
    fail();
    return 0;
}

struct term {
    int64_t k;
    int8_t exp[SYMBOLS];
};

struct pair_maker {
    struct sym_ctx *c;
    const struct sym *var[SYMBOLS];
    uint64_t seed;
};

static uint64_t draw(struct pair_maker *m, uint64_t n)
{
    m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (m->seed >> 33) % n;
}

static struct term draw_term(struct pair_maker *m, size_t symbols)
{
    struct term t = {.k = 1 + (int64_t)draw(m, 97)};
    if (draw(m, 4) == 0) t.k = -t.k;
    for (int i = 0; i < 4; i++) t.exp[draw(m, symbols)] = (int8_t)draw(m, 4);
    return t;
}

/* the factors in any order, powers now and then as products */
static const struct sym *write_term(struct pair_maker *m, struct term t)
{
    const struct sym *r = sym_int(m->c, t.k);
    const size_t first = draw(m, SYMBOLS);
    for (size_t i = 0; i < SYMBOLS; i++) {
        const size_t j = (first + 5 * i) % SYMBOLS;
        if (draw(m, 2))
            r = sym_mul(m->c, r, sym_pow(m->c, m->var[j], sym_int(m->c, t.exp[j])));
        else
            for (int8_t k = 0; k < t.exp[j]; k++) r = sym_mul(m->c, m->var[j], r);
    }
    return r;
}

/* a sum in a random grouping; two terms now and then with their common factor in front */
static const struct sym *write_sum(struct pair_maker *m, struct term *t, size_t n)
{
    const struct sym *part[TERMS];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || draw(m, 3)) {
            part[count++] = write_term(m, t[i]);
            continue;
        }
        struct term common = {.k = 1};
        for (int j = 0; j < SYMBOLS; j++) {
            common.exp[j] = t[i].exp[j] < t[i + 1].exp[j] ? t[i].exp[j] : t[i + 1].exp[j];
            t[i].exp[j] = (int8_t)(t[i].exp[j] - common.exp[j]);
            t[i + 1].exp[j] = (int8_t)(t[i + 1].exp[j] - common.exp[j]);
        }
        const struct sym *inner = sym_add(m->c, write_term(m, t[i]), write_term(m, t[i + 1]));
        part[count++] = sym_mul(m->c, inner, write_term(m, common));
        i++;
    }
    while (count > 1) {
        const size_t i = draw(m, count - 1);
        part[i] = sym_add(m->c, part[i], part[--count]);
    }
    return part[0];
}

static void shuffle(struct pair_maker *m, struct term *t, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = draw(m, i);
        const struct term swap = t[i - 1];
        t[i - 1] = t[j];
        t[j] = swap;
    }
}

static const struct sym *write_shuffled(struct pair_maker *m, const struct term *t, size_t n)
{
    struct term copy[TERMS];
    memcpy(copy, t, n * sizeof *t);
    shuffle(m, copy, n);
    return write_sum(m, copy, n);
}

/* one of several ways to write num/den, with a common factor f */
static const struct sym *write_fraction(struct pair_maker *m, const struct term *num_, size_t n, const struct term *den,
                                        size_t n_den, const struct term *f, size_t n_f)
{
    struct sym_ctx *c = m->c;
    const struct sym *factor = write_shuffled(m, f, n_f), *over = n_den ? write_shuffled(m, den, n_den) : sym_int(c, 1);
    switch (draw(m, 4)) {
    case 0: return sym_div(c, write_shuffled(m, num_, n), over);
    case 1: return sym_div(c, sym_mul(c, factor, write_shuffled(m, num_, n)), sym_mul(c, over, factor));
    case 2: {
        const size_t half = n / 2 + 1 < n ? n / 2 + 1 : n - 1;
        const struct sym *x = write_shuffled(m, num_, half), *y = write_shuffled(m, num_ + half, n - half);
        return sym_add(c, sym_div(c, x, over), sym_div(c, sym_mul(c, factor, y), sym_mul(c, factor, over)));
    }
    default: return sym_mul(c, sym_div(c, factor, over), sym_div(c, write_shuffled(m, num_, n), factor));
    }
}

/* a term that is another: a coefficient, or an exponent, off by one */
static void spoil(struct pair_maker *m, struct term *t)
{
    if (draw(m, 2))
        t->k += t->k == -1 ? 2 : 1;
    else
        t->exp[draw(m, SYMBOLS)]++;
}

/* Whether a and b are equal where each symbol is some p/q, p and q up to 997: of the same at all points, of others not
 * at all of a few. */
static bool rational_agrees(struct pair_maker *m, const struct sym *a, const struct sym *b, bool same)
{
    enum { POINTS = 4 };
    const struct sym *const both[] = {a, b};
    mpq_t at[SYMBOLS], value[2];
    bool ok = true, differ = false;
    for (size_t i = 0; i < 2; i++) mpq_init(value[i]);
    for (size_t i = 0; i < SYMBOLS; i++) mpq_init(at[i]);
    for (int k = 0; k < (same ? 1 : POINTS) && ok && !differ; k++) {
        for (size_t i = 0; i < SYMBOLS; i++) {
            mpq_set_ui(at[i], 1 + (unsigned long)draw(m, 997), 1 + (unsigned long)draw(m, 997));
            mpq_canonicalize(at[i]);
        }
        ok = sym_mpq(2, both, SYMBOLS, m->var, at, value);
        differ = ok && mpq_cmp(value[0], value[1]) != 0;
    }
    for (size_t i = 0; i < SYMBOLS; i++) mpq_clear(at[i]);
    for (size_t i = 0; i < 2; i++) mpq_clear(value[i]);
    return ok && differ != same;
}

/* Whether the pair was told apart, or found equal, as it was built. */
static bool pair_right(struct pair_maker *m, bool same, struct err *err)
{
    struct term t[TERMS], den[4], f[3];
    const size_t symbols = 2 + draw(m, SYMBOLS - 1), n = 2 + draw(m, TERMS - 1), n_den = draw(m, 5),
                 n_f = 1 + draw(m, 3);
    for (size_t i = 0; i < n; i++) t[i] = draw_term(m, symbols);
    for (size_t i = 0; i < n_den; i++) den[i] = draw_term(m, symbols);
    for (size_t i = 0; i < n_f; i++) f[i] = draw_term(m, symbols);
    for (size_t i = 0; i < n_den; i++) den[i].k = llabs(den[i].k); /* never zero */
    for (size_t i = 0; i < n_f; i++) f[i].k = llabs(f[i].k);
    const struct sym *a = write_fraction(m, t, n, den, n_den, f, n_f);
    if (!same) spoil(m, &t[draw(m, n)]);
    const struct sym *b = write_fraction(m, t, n, den, n_den, f, n_f), *na = NULL, *nb = NULL;
    bool equal_ = !same;
    if (sym_equal(m->c, a, b, &equal_, err) != ERR_OK) return false;
    uint64_t at[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++) at[i] = 1 + draw(m, UINT64_C(1) << 31);
    const bool agree = residue(a, m->var, at) == residue(b, m->var, at);
    if (agree != same) return false;
    if (draw(m, 8) == 0) { /* forms too */
        if (sym_normal(m->c, a, &na, err) != ERR_OK || sym_normal(m->c, b, &nb, err) != ERR_OK) return false;
        if ((na == nb) != same || residue(na, m->var, at) != residue(a, m->var, at)) return false;
    }
    if (!rational_agrees(m, na ? na : a, b, same)) return false;
    return equal_ == same;
}

static void test_random_pairs(void **state)
{
    struct fixture *f = *state;
    const size_t pairs = draws(PAIRS);
    size_t right = 0;
    struct pair_maker m = {.seed = 20250613};
    for (size_t done = 0; done < pairs;) {
        struct arena *a = arena_open();
        m.c = sym_open(a);
        assert_non_null(m.c);
        for (int i = 0; i < SYMBOLS; i++) m.var[i] = sym_var(m.c, (const char[2]){(char)('a' + i), '\0'});
        for (size_t i = 0; i < PAIRS_A_CONTEXT; i++, done++) {
            const bool ok = pair_right(&m, done % 2 == 0, &f->err);
            if (!ok) print_message("pair %zu: %s\n", done, f->err.text);
            right += ok;
        }
        arena_close(a);
    }
    assert_int_equal(right, pairs);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_lecture_matmul),
        TEST(test_lecture_gated_mlp),
        TEST(test_lecture_attention),
        TEST(test_forms),
        TEST(test_long_numbers),
        TEST(test_atoms),
        TEST(test_known_orders),
        TEST(test_roots),
        TEST(test_diff),
        TEST(test_limits),
        TEST(test_solve),
        TEST(test_signs),
        TEST(test_counterexample),
        TEST(test_refusals),
        TEST(test_random_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
