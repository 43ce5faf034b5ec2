/* sample: every variant against the definition and against a sort, token for token; frequencies against the exact
 * distribution; what is at the edge. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <gsl/gsl_cdf.h>

#include "kernels/sample.h"
#include "tests/kernel_check.h"

/* -- one row of logits -- */

enum { ROOM_MAX = 40000 };

static int32_t draw_by(const struct kern_variant *v, const struct kern_shape *s, const void *logits, uint32_t uniform)
{
    static _Thread_local uint64_t room[2 * ROOM_MAX];
    int32_t token = 77;
    const struct kern_call c = {.shape = s, .buffer = {(void *)(uintptr_t)logits, &uniform, &token, room}};
    assert_true(s->v[0] == 1 && s->v[1] <= ROOM_MAX);
    v->run(&c);
    return token;
}

/* The token that all variants of this machine draw. */
static int32_t draw_by_all(const struct kern_machine *m, const struct kern_shape *s, const void *logits,
                           uint32_t uniform)
{
    const struct kern *k = kern_find("sample");
    int32_t token = 0;
    bool any = false;
    for (size_t i = 0; i < k->variants_n; i++) {
        if (k->variants[i].lacks && k->variants[i].lacks(m, s)) continue;
        const int32_t one = draw_by(&k->variants[i], s, logits, uniform);
        if (any && one != token) fail_msg("%s draws %d, not %d", k->variants[i].name, (int)one, (int)token);
        token = one, any = true;
    }
    return token;
}

/* -- by a sort -- */

struct ranked {
    float z;
    uint32_t token;
};

static int by_logit(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->z > b->z || a->z < b->z) return a->z > b->z ? -1 : 1;
    return a->token < b->token ? -1 : 1;
}

static int by_token(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    return a->token < b->token ? -1 : 1;
}

/* Sorts, cuts, and draws by the weights of kernels/sample.h. Kept tokens stay in list; *n of them. */
static int32_t draw_by_sort(const struct kern_shape *s, const float *logits, uint32_t uniform, struct ranked *list,
                            size_t *n)
{
    const float scale = (float)(1.4426950408889634 * 1000 / (double)s->v[4]); /* not a unit */
    uint64_t all = 0, before = 0;
    size_t kept = 0;
    *n = (size_t)s->v[1];
    for (size_t i = 0; i < *n; i++) list[i] = (struct ranked){logits[i], (uint32_t)i};
    qsort(list, *n, sizeof *list, by_logit);
    const float most = list[0].z;
    if (s->v[2] && (size_t)s->v[2] < *n) *n = (size_t)s->v[2];
    for (size_t i = 0; i < *n; i++) all += sample_weight(list[i].z, most, scale);
    while (kept < *n && before * 1000 < all * (uint64_t)s->v[3]) /* not a unit */
        before += sample_weight(list[kept++].z, most, scale);
    *n = kept;
    qsort(list, *n, sizeof *list, by_token);
    uint64_t left = ((before >> 24) * uniform + ((before & 0xffffffu) * uniform >> 24)) >> 8;
    for (size_t i = 0; i < *n; i++) {
        const uint64_t weight = sample_weight(list[i].z, most, scale);
        if (weight > left) return (int32_t)list[i].token;
        left -= weight;
    }
    return -7;
}

/* -- tests -- */

/* Vocabularies around pieces of 16 and 32 and blocks of 512; top_k at both ends and beyond; each of the three ways. */
static void sample_at_odd_shapes(void **state)
{
    static const int64_t SHAPES[][5] = {{1, 1, 0, 1000, 1000},    {3, 2, 1, 1000, 700},      {5, 31, 7, 900, 1000},
                                        {7, 511, 0, 1000, 1300},  {3, 513, 511, 350, 1000},  {2, 1031, 0, 990, 800},
                                        {3, 4099, 50, 1000, 600}, {1, 32003, 40, 950, 1000}, {1, 32003, 0, 900, 1000},
                                        {2, 7919, 4000, 1, 100},  {2, 2053, 9999, 999, 5000}};
    (void)state;
    kernel_check_all("sample", SHAPES[0], sizeof SHAPES / sizeof SHAPES[0]);
}

static void sample_is_what_a_sort_finds(void **state)
{
    enum { MOST = 1031 };
    static struct ranked list[MOST];
    static float logits[MOST];
    static uint16_t halves[MOST];
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    for (uint64_t i = 0; i < 3000; i++) {
        const int64_t n = 1 + (int64_t)(kern_hash(1, i) % (i % 3 ? MOST : 40));
        struct kern_shape s = {{1, n, 0, 1000, 1000}, i % 2 ? KERN_BF16 : KERN_FP32}; /* not a unit */
        if (i % 5) s.v[2] = (int64_t)(kern_hash(2, i) % (uint64_t)(n + 2));
        if (i % 7) s.v[3] = 1 + (int64_t)(kern_hash(3, i) % 1000); /* not a unit */
        s.v[4] = 1 + (int64_t)(kern_hash(4, i) % 3000);
        for (int64_t j = 0; j < n; j++) {
            double z = 2 * kern_normal(5 + i, (uint64_t)j);
            if (i % 4 == 1) z = rint(z);                         /* many are equal, zeros of both signs */
            if (i % 4 == 2 && j % 3 && j) z = -(double)INFINITY; /* masked */
            halves[j] = kern_bf16_from((float)z);
            logits[j] = i % 2 ? kern_bf16_to(halves[j]) : (float)z;
        }
        const uint32_t uniform = (uint32_t)(kern_hash(6, i) >> (i % 11 ? 32 : 63)) - (i % 13 == 0);
        size_t kept;
        const int32_t want = draw_by_sort(&s, logits, uniform, list, &kept);
        assert_int_equal(draw_by_all(&m, &s, i % 2 ? (void *)halves : (void *)logits, uniform), want);
    }
    kern_machine_close(&m);
}

/* Draws over evenly spread uniforms, against the exact probabilities of what is kept: chi-square, as of one in 10^4. */
static void sample_has_the_distribution(void **state)
{
    enum { N = 211, DRAWS = 20000 };
    static const int64_t CASES[][3] = {{0, 1000, 1000}, {17, 1000, 1000}, {0, 900, 1500}, {40, 800, 700}};
    struct kern_machine m;
    float logits[N];
    (void)state;
    kern_machine_open(&m);
    kern_fill_normal(logits, KERN_TYPE_F32, N, 1.5, 97);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct kern_shape s = {{1, N, CASES[i][0], CASES[i][1], CASES[i][2]}, KERN_FP32};
        struct ranked order[N];
        double p[N] = {0}, seen[N] = {0}, all = 0, before = 0, square = 0;
        size_t k = s.v[2] ? (size_t)s.v[2] : N, kept = 0, classes = 0;
        for (size_t j = 0; j < N; j++) order[j] = (struct ranked){logits[j], (uint32_t)j};
        qsort(order, N, sizeof *order, by_logit);
        for (size_t j = 0; j < k; j++) all += exp((double)order[j].z * 1000 / (double)s.v[4]);   /* not a unit */
        for (; kept < k && before < all * (double)s.v[3] / 1000; kept++)                         /* not a unit */
            before += p[order[kept].token] = exp((double)order[kept].z * 1000 / (double)s.v[4]); /* not a unit */
        for (uint64_t j = 0; j < DRAWS; j++)
            seen[draw_by(kern_find("sample")->variants + kern_find("sample")->variants_n - 1, &s, logits,
                         (uint32_t)(kern_hash(1013, j) >> 32))]++;
        double small[2] = {0, 0};
        for (size_t j = 0; j < N; j++) {
            const double want = p[j] / before * DRAWS;
            if (p[j] <= 0) assert_true(seen[j] <= 0); /* what is cut is never drawn */
            if (want < 10) {
                small[0] += want, small[1] += seen[j];
                continue;
            }
            square += (seen[j] - want) * (seen[j] - want) / want;
            classes++;
        }
        if (small[0] > 0) square += (small[1] - small[0]) * (small[1] - small[0]) / small[0], classes++;
        assert_true(classes > 8);
        assert_true(gsl_cdf_chisq_Q(square, (double)(classes - 1)) > 1e-4);
    }
    kern_machine_close(&m);
}

/* Weights are those of exp, to what fp32 has of a difference of logits, and never more than the most likely token's. */
static void weights_are_exponentials(void **state)
{
    (void)state;
    assert_true(sample_weight(3.25F, 3.25F, 1.7F) == UINT64_C(1) << 39);
    assert_true(sample_weight(-(float)INFINITY, 3, 1) == 0);
    assert_true(sample_weight(0, 41, 1) == 0);
    for (int i = 0; i < 20000; i++) {
        const float z = (float)i * -0.000731F;
        const double want = exp2((double)z) * 0x1p39;
        assert_true(fabs((double)sample_weight(z, 0, 1) - want) <= 2e-7 * want + 1);
        assert_true(sample_weight(z, 0, 1) <= UINT64_C(1) << 39);
    }
}

static void sample_at_the_edge(void **state)
{
    const float inf = (float)INFINITY;
    static float equal[1000], rows[6][5];
    const float made[6][5] = {{1, 5, 5, 2, -3},  {-inf, -inf, 2, -inf, -inf},    {1, (float)NAN, 2, 3, 4},
                              {1, 2, inf, 3, 4}, {-inf, -inf, -inf, -inf, -inf}, {0.0F, -0.0F, 0.0F, -0.0F, -1}};
    struct kern_machine m;
    (void)state;
    kern_machine_open(&m);
    memcpy(rows, made, sizeof rows);
    for (uint32_t j = 0; j < 33; j++) {
        const uint32_t u = j < 32 ? j * 0x08000000u + 12345u : 0xffffffffu;
        const struct kern_shape greedy = {{1, 5, 1, 1000, 1000}, KERN_FP32}, little = {{1, 5, 0, 1, 1000}, KERN_FP32};
        const struct kern_shape whole = {{1, 5, 0, 1000, 1000}, KERN_FP32}, two = {{1, 5, 2, 1000, 1000}, KERN_FP32};
        const struct kern_shape *const shapes[] = {&greedy, &little, &whole, &two};
        /* the first of equals, whatever u is; with two, both of them in turn */
        assert_int_equal(draw_by_all(&m, &greedy, rows[0], u), 1);
        assert_int_equal(draw_by_all(&m, &little, rows[0], u), 1);
        assert_int_equal(draw_by_all(&m, &two, rows[0], u), u < 0x80000000u ? 1 : 2);
        assert_int_equal(draw_by_all(&m, &greedy, rows[5], u), 0);
        assert_int_equal(draw_by_all(&m, &two, rows[5], u), u < 0x80000000u ? 0 : 1);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(draw_by_all(&m, shapes[i], rows[1], u), 2); /* masked tokens are never drawn */
            assert_int_equal(draw_by_all(&m, shapes[i], rows[2], u), -1);
            assert_int_equal(draw_by_all(&m, shapes[i], rows[3], u), -1);
            assert_int_equal(draw_by_all(&m, shapes[i], rows[4], u), -1);
        }
        /* 1000 equal tokens, the first 357 of them kept: u of them */
        const struct kern_shape part = {{1, 1000, 0, 357, 1000}, KERN_FP32}; /* not a unit */
        assert_int_equal(draw_by_all(&m, &part, equal, u), (int32_t)((uint64_t)u * 357 >> 32));
    }
    kern_machine_close(&m);
}

static void sample_counts(void **state)
{
    (void)state;
    for (int bytes = 2; bytes <= 4; bytes += 2) {
        const struct kern_shape s = {{3, 101, 7, 900, 1000}, bytes == 2 ? KERN_BF16 : KERN_FP32}; /* not a unit */
        struct kern_counts c = {.flops = 0}, have;
        for (int b = 0; b < 3; b++) {
            c.read_bytes += 4;
            c.written_bytes += 4;
            for (int v = 0; v < 101; v++) {
                c.vector_flops += 5;
                c.read_bytes += bytes;
            }
        }
        kern_find("sample")->counts(&s, &have);
        assert_true(have.flops == 0 && have.vector_flops == c.vector_flops);
        assert_true(have.read_bytes == c.read_bytes && have.written_bytes == c.written_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_exponentials),    cmocka_unit_test(sample_at_the_edge),
        cmocka_unit_test(sample_is_what_a_sort_finds), cmocka_unit_test(sample_has_the_distribution),
        cmocka_unit_test(sample_at_odd_shapes),        cmocka_unit_test(sample_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
