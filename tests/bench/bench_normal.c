/* bench_normal -- what exact algebra costs: the lecture's checks (bar 100 us), long sums (bar 10 ms), refusals of what
 * would take too long (bar 5 s), and the first call of a process, which loads FLINT. Processor time, best of ROUNDS. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calc/base/arena.h"
#include "calc/sym/normal.h"

enum { ROUNDS = 5, SYMBOLS = 12 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct bench {
    struct sym_ctx *c;
    const struct sym *var[SYMBOLS];
    uint64_t seed;
};

static uint64_t draw(struct bench *b, uint64_t n)
{
    b->seed = b->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (b->seed >> 33) % n;
}

static const struct sym *draw_sum(struct bench *b, size_t n)
{
    const struct sym *sum = sym_int(b->c, 0);
    for (size_t i = 0; i < n; i++) {
        const struct sym *t = sym_int(b->c, 1 + (int64_t)draw(b, 97));
        for (int j = 0; j < 4; j++)
            t = sym_mul(b->c, t, sym_pow(b->c, b->var[draw(b, SYMBOLS)], sym_int(b->c, (int64_t)draw(b, 4))));
        sum = sym_add(b->c, sum, t);
    }
    return sum;
}

/* ---- equality ---- */

static int report_equal(struct bench *b, const char *what, const struct sym *x, const struct sym *y, double bar_s)
{
    struct err err = {0};
    double least_s = (double)INFINITY;
    bool same = false;
    for (int i = 0; i < ROUNDS; i++) {
        const double start = now_s();
        if (sym_equal(b->c, x, y, &same, &err) != ERR_OK || !same) {
            (void)fprintf(stderr, "%s: %s\n", what, same ? err.text : "not equal");
            return 1;
        }
        least_s = fmin(least_s, now_s() - start);
    }
    (void)printf("  %-34s %10.1f us  %s\n", what, least_s * 1e6, least_s <= bar_s ? "" : "over the bar");
    return 0;
}

/* two expressions that differ, and two that are equal but not proved so */
static int compared(struct bench *b)
{
    struct sym_ctx *c = b->c;
    const struct sym *B = sym_var(c, "B"), *D = sym_var(c, "D"), *S = sym_var(c, "S"), *two = sym_int(c, 2);
    const struct sym *pair[][2] = {
        {sym_div(c, sym_mul(c, B, D), sym_add(c, B, D)), sym_div(c, B, two)},
        {sym_max(c, sym_min(c, B, D), sym_min(c, B, S)), sym_min(c, B, sym_max(c, D, S))},
        {sym_pow(c, sym_mul(c, B, D), sym_rat(c, 1, 2)),
         sym_mul(c, sym_pow(c, B, sym_rat(c, 1, 2)), sym_pow(c, D, sym_rat(c, 1, 2)))},
    };
    static const char *const WHAT[] = {"apart at a point", "equal at all points, not proved", "roots, proved at last"};
    for (size_t k = 0; k < sizeof pair / sizeof pair[0]; k++) {
        double least_s = (double)INFINITY;
        for (int i = 0; i < ROUNDS; i++) {
            enum sym_verdict v;
            const double start = now_s();
            if (sym_compare(c, pair[k][0], pair[k][1], &v, NULL, NULL) != ERR_OK) return 1;
            least_s = fmin(least_s, now_s() - start);
        }
        (void)printf("  %-34s %10.1f us\n", WHAT[k], least_s * 1e6);
    }
    return 0;
}

static int lecture(struct bench *b)
{
    struct sym_ctx *c = b->c;
    const struct sym *B = sym_var(c, "B"), *D = sym_var(c, "D"), *F = sym_var(c, "F"), *T = sym_var(c, "T");
    const struct sym *two = sym_int(c, 2), *three = sym_int(c, 3), *six = sym_int(c, 6), *four = sym_int(c, 4);
    const struct sym *BDF = SYM_PROD(c, B, D, F);
    const struct sym *matmul = sym_div(
        c, sym_mul(c, two, BDF), SYM_SUM(c, SYM_PROD(c, two, B, D), SYM_PROD(c, two, D, F), SYM_PROD(c, two, B, F)));
    const struct sym *pairs = SYM_SUM(c, sym_mul(c, B, D), sym_mul(c, B, F), sym_mul(c, D, F));
    const struct sym *mlp =
        sym_div(c, SYM_PROD(c, six, BDF, T),
                SYM_SUM(c, SYM_PROD(c, four, B, T, D), SYM_PROD(c, four, B, T, F), SYM_PROD(c, six, D, F)));
    const struct sym *mlp_form =
        sym_div(c, SYM_PROD(c, three, BDF, T),
                SYM_SUM(c, SYM_PROD(c, two, B, T, D), SYM_PROD(c, two, B, T, F), SYM_PROD(c, three, D, F)));
    const struct sym *limit, *group[] = {D, F};
    int64_t order;
    double least_s = (double)INFINITY;
    for (int i = 0; i < ROUNDS; i++) {
        const double start = now_s();
        if (sym_limit(c, mlp, 2, group, &limit, &order, NULL) != ERR_OK) return 1;
        least_s = fmin(least_s, now_s() - start);
    }
    (void)printf("  %-34s %10.1f us\n", "limit of the gated MLP", least_s * 1e6);
    return report_equal(b, "matmul intensity", matmul, sym_div(c, BDF, pairs), 100e-6) +
           report_equal(b, "gated MLP intensity", mlp, mlp_form, 100e-6);
}

static int sums(struct bench *b)
{
    struct sym_ctx *c = b->c;
    const struct sym *x = draw_sum(b, 60), *y = draw_sum(b, 4), *z = draw_sum(b, 3);
    const struct sym *left = draw_sum(b, 30), *right = draw_sum(b, 30);
    return report_equal(b, "60 terms, common factor of 3", sym_div(c, sym_mul(c, x, z), sym_mul(c, y, z)),
                        sym_div(c, x, y), 10e-3) +
           report_equal(b, "60 terms, two fractions, factor",
                        sym_add(c, sym_div(c, left, y), sym_div(c, sym_mul(c, z, right), sym_mul(c, z, y))),
                        sym_div(c, sym_add(c, left, right), y), 10e-3) +
           report_equal(b, "30 x 30 terms expanded", sym_mul(c, left, right),
                        sym_sub(c, sym_mul(c, sym_add(c, left, y), right), sym_mul(c, y, right)), 10e-3);
}

/* ---- refusals ---- */

static void report_bounded(const char *what, struct sym_ctx *c, const struct sym *e)
{
    struct err err = {0};
    const struct sym *out;
    const double start = now_s();
    const enum err_code code = sym_normal(c, e, &out, &err);
    const double took_s = now_s() - start;
    (void)printf("  %-34s %10.1f ms  %s %s\n", what, took_s * 1e3,
                 took_s < 5.0 ? "" : "over the bar:", code == ERR_OK ? "done" : err.text);
}

static void bounded(struct bench *b)
{
    struct sym_ctx *c = b->c;
    const struct sym *six = SYM_SUM(c, b->var[0], b->var[1], b->var[2], b->var[3], b->var[4], b->var[5]);
    const struct sym *four = SYM_SUM(c, b->var[0], b->var[1], b->var[2], sym_int(c, 1));
    const struct sym *fractions = sym_int(c, 0), *deep = b->var[0], *product = sym_int(c, 1), *shared = sym_int(c, 0);
    char name[16];
    for (int i = 0; i < 120; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        const struct sym *s = sym_var(c, name);
        fractions = sym_add(c, fractions, sym_div(c, b->var[1], sym_add(c, s, b->var[i % SYMBOLS])));
        product = sym_mul(c, product, sym_add(c, s, b->var[i % SYMBOLS]));
        shared = sym_add(c, shared, sym_mul(c, s, b->var[i % SYMBOLS]));
        deep = sym_div(c, sym_add(c, b->var[i % SYMBOLS], sym_mul(c, deep, six)), sym_add(c, deep, four));
    }
    report_bounded("(6 terms)^40", c, sym_pow(c, six, sym_int(c, 40)));
    report_bounded("(4 terms)^100", c, sym_pow(c, four, sym_int(c, 100)));
    report_bounded("(4 terms)^50/(4 terms)^49", c,
                   sym_div(c, sym_pow(c, four, sym_int(c, 50)), sym_pow(c, four, sym_int(c, 49))));
    report_bounded("120 fractions, each its own symbol", c, fractions);
    report_bounded("120 sums multiplied", c, product);
    report_bounded("common factor of 132 symbols", c,
                   sym_div(c, sym_mul(c, shared, b->var[0]), sym_add(c, shared, b->var[1])));
    report_bounded("continued fraction", c, deep);
    for (size_t n = 100; n <= 1600; n *= 2) {
        const struct sym *x = draw_sum(b, n), *y = draw_sum(b, n), *z = draw_sum(b, 12);
        (void)snprintf(name, sizeof name, "%zu x 12 terms", n);
        report_bounded(name, c, sym_div(c, sym_mul(c, x, z), sym_mul(c, y, z)));
    }
    const struct sym *p = sym_int(c, 0), *q = p;
    for (int i = 0; i < 9; i++) {
        const struct sym *k = sym_int(c, 9 + 10 * (int64_t)draw(b, 8));
        p = sym_add(c, p, sym_pow(c, b->var[i % 3], k));
        q = sym_add(c, q, sym_mul(c, sym_pow(c, b->var[(i + 1) % 3], k), b->var[i % 2]));
    }
    report_bounded("high degrees", c, sym_div(c, sym_mul(c, p, q), sym_mul(c, q, sym_add(c, p, b->var[0]))));
}

int main(void)
{
    struct arena *a = arena_open();
    struct bench b = {.c = a ? sym_open(a) : NULL, .seed = 97};
    if (!b.c) return 1;
    for (int i = 0; i < SYMBOLS; i++) b.var[i] = sym_var(b.c, (const char[2]){(char)('a' + i), '\0'});
    const struct sym *out;
    const double start = now_s();
    if (sym_normal(b.c, b.var[0], &out, NULL) != ERR_OK) return 1;
    (void)printf("  %-34s %10.1f us\n", "first call of a process", (now_s() - start) * 1e6);
    const int failed = lecture(&b) + compared(&b) + sums(&b);
    bounded(&b);
    arena_close(a);
    return failed != 0;
}
