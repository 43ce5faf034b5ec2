
/* Kernels of kernels/x.cu on the host: right against the reference at odd shapes in every order, and the emulator finds
 * the mistakes that it is there to find. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/simt_check.h"

/* Odd shapes by kernel: everything at the edge of a tile, one beyond, and far from one. */
static const struct simt_check_shape SHAPES[] = {
    {"stream-read", {1}},
    {"stream-read", {7919}},
    {"stream-copy", {3}},
    {"stream-copy", {6151}},
    {"stream-triad", {5}},
    {"stream-triad", {6143}},
    {"stream-update", {7}},
    {"stream-update", {6151}},
    {"gemm", {1, 1, 1}},
    {"gemm", {1, 33, 72}},
    {"gemm", {13, 97, 200}},
    {"gemm", {16, 64, 520}},
    {"gemm", {17, 31, 71}},
    {"gemm", {129, 130, 136}},
    {"gemm", {128, 128, 192}},
    {"gemm", {70, 261, 67}},
    /* batch, kv_len, heads, kv_heads, dim, window, page */
    {"fma", {192, 7}},
    {"launch", {5}},
    {"decode-attention", {1, 1, 1, 1, 8, 0, 0}},
    {"decode-attention", {2, 131, 6, 2, 67, 0, 16}},
    {"decode-attention", {1, 389, 19, 1, 64, 0, 7}},
    {"decode-attention", {1, 300, 4, 2, 128, 257, 64}},
    {"decode-attention", {1, 200, 3, 1, 256, 0, 0}},
    {"int4-matvec", {1, 17, 4160}},
    {"int4-matvec", {11, 21, 331}},
    {"int4-matvec", {18, 8, 1096}},
    {"mlp", {3, 40, 67}},
    {"mlp", {17, 24, 33}},
    /* batch, q_len, heads, kv_heads, dim, window */
    {"prefill-attention", {1, 1, 1, 1, 8, 0}},
    {"prefill-attention", {2, 131, 2, 1, 35, 0}},
    {"prefill-attention", {1, 193, 1, 1, 64, 70}},
    {"prefill-attention", {1, 129, 1, 1, 104, 0}},
    {"prefill-attention", {1, 97, 1, 1, 256, 33}},
};

/* Kernels whose shapes are in a program of their own, test_simt_*.c. */
static const char *const ELSEWHERE[] = {
    "mla-decode", "moe", "rmsnorm", "kv-write", "rope", "sample", "mamba2-step", "linear-step", "spec-verify",
};

static void test_all_have_shapes(void **state)
{
    size_t n;
    const struct kern_cuda *const *table = kern_cuda_table(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const char *const name = table[i]->kern->name;
        bool found = false;
        for (size_t j = 0; j < sizeof SHAPES / sizeof SHAPES[0]; j++)
            found = found || strcmp(SHAPES[j].kern, name) == 0;
        for (size_t j = 0; j < sizeof ELSEWHERE / sizeof ELSEWHERE[0]; j++)
            found = found || strcmp(ELSEWHERE[j], name) == 0;
        if (!found) fail_msg("no odd shape of %s", name);
    }
}

#define ALL SHAPES, sizeof SHAPES / sizeof SHAPES[0]
static void test_forward(void **state) { (void)state, simt_check_order(ALL, SIMT_FORWARD, 0); }
static void test_backward(void **state) { (void)state, simt_check_order(ALL, SIMT_BACKWARD, 0); }
static void test_shuffled(void **state) { (void)state, simt_check_order(ALL, SIMT_SHUFFLED, 15485863); }
static void test_mistakes(void **state) { (void)state, simt_check_mistakes(ALL); }

/* -- register layouts, by hand from the PTX ISA -- */

struct layout_args {
    const uint16_t *a, *b; /* 16x16, 16x8, row by row */
    float *d;              /* 16x8 */
    int by_matrix;         /* registers by ldmatrix, else element by element */
};

KERN_GLOBAL(layout_kernel, struct layout_args, s, 32)
{
    KERN_SHARED_MEMORY(shared);
    uint16_t *const a = (uint16_t *)(void *)shared, *const b = a + 16 * 16;
    const unsigned lane = threadIdx.x, g = lane / 4, t = lane % 4;
    uint32_t x[4], y[4];
    float d[4] = {0.5f, 0.25f, 0.125f, 1};
    for (unsigned i = lane; i < 256; i += 32) a[i] = s.a[i];
    for (unsigned i = lane; i < 128; i += 32) b[i] = s.b[i];
    __syncthreads();
    if (s.by_matrix) {
        kern_ldmatrix(x, a + lane % 16 * 16 + lane / 16 * 8);
        kern_ldmatrix_transposed(y, b + lane % 16 * 8);
    } else {
        for (unsigned r = 0; r < 4; r++) {
            const uint16_t *at = a + (g + r % 2 * 8) * 16 + 2 * t + r / 2 * 8;
            x[r] = at[0] | (uint32_t)at[1] << 16;
        }
        for (unsigned r = 0; r < 2; r++) {
            const uint16_t *at = b + (2 * t + r * 8) * 8 + g;
            y[r] = at[0] | (uint32_t)at[8] << 16;
        }
    }
    kern_mma_bf16(d, x, y);
    for (unsigned r = 0; r < 4; r++) s.d[(g + r / 2 * 8) * 8 + 2 * t + r % 2] = d[r];
}

static void test_layouts(void **state)
{
    uint16_t a[16 * 16], b[16 * 8];
    float d[2][16 * 8];
    (void)state;
    kern_fill_normal(a, KERN_TYPE_BF16, 256, 1, 7);
    kern_fill_normal(b, KERN_TYPE_BF16, 128, 1, 8);
    simt_start(&(struct simt_config){.order = SIMT_SHUFFLED, .seed = 3, .strict = true});
    for (int i = 0; i < 2; i++) {
        const struct layout_args args = {a, b, d[i], i};
        KERN_LAUNCH(layout_kernel, 1, 1, 1, 32, (16 * 16 + 16 * 8) * 2, NULL, args);
        assert_null(simt_failure());
        for (int row = 0; row < 16; row++)
            for (int column = 0; column < 8; column++) {
                static const double START[2][2] = {{0.5, 0.25}, {0.125, 1}};
                double want = START[row / 8][column % 2];
                for (int k = 0; k < 16; k++)
                    want += (double)kern_bf16_to(a[row * 16 + k]) * (double)kern_bf16_to(b[k * 8 + column]);
                assert_true(fabs((double)d[i][row * 8 + column] - want) < 1e-5);
            }
    }
}

/* -- mistakes that must be found: a row-sum by a tree in shared memory, and what can be wrong with it -- */

enum bug {
    NONE,
    NO_BARRIER,        /* before the tree */
    NO_BARRIER_IN,     /* between its levels */
    DIVERGENT_BARRIER, /* half of the block waits elsewhere */
    SOME_BARRIER,      /* half of the block waits at all */
    NO_WAIT,           /* for the copies */
    WAIT_OF_OTHERS,    /* a barrier is what makes a copy of another thread seen */
    BEYOND_SHARED,
    BEYOND_COPY,
    MISALIGNED_COPY,
    LANE_MISSES,
    BUGS_N
};

struct sum_args {
    const float *in; /* 256 */
    float *out;      /* 1 */
    int bug;
};

KERN_GLOBAL(sum_kernel, struct sum_args, s, 64)
{
    KERN_SHARED_MEMORY(shared);
    float *const v = (float *)(void *)shared;
    const unsigned t = threadIdx.x, from = s.bug == WAIT_OF_OTHERS ? (t + 1) % 64 : t;
    kern_copy_16(s.bug == BEYOND_COPY       ? v + 4 * t + 4
                 : s.bug == MISALIGNED_COPY ? v + 4 * t + (t == 5)
                                            : v + 4 * t,
                 s.in + 4 * t, 16);
    kern_copy_commit();
    if (s.bug != NO_WAIT) kern_copy_wait(0);
    float sum = v[4 * from] + v[4 * from + 1] + v[4 * from + 2] + v[4 * from + 3];
    if (s.bug == NO_WAIT) kern_copy_wait(0);
    __syncthreads();
    v[t] = sum;
    if (s.bug == BEYOND_SHARED && t == 63) v[256] = 1;
    if (s.bug == DIVERGENT_BARRIER && t < 32)
        __syncthreads();
    else if (s.bug != NO_BARRIER && !(s.bug == SOME_BARRIER && t < 32))
        __syncthreads();
    for (unsigned half = 32; half > 0; half /= 2) {
        if (t < half) v[t] += v[t + half];
        if (s.bug != NO_BARRIER_IN) __syncthreads();
    }
    if (s.bug == LANE_MISSES && t < 32 && t != 7) v[0] += 0 * __shfl_xor_sync(0xffffffffu, v[0], 1);
    if (t == 0) *s.out = v[0];
}

/* Whether one order sees the bug: the emulator says so, or the result is wrong. */
static bool seen(enum bug bug, const struct simt_config *config)
{
    float in[256], out = 0;
    double want = 0;
    for (unsigned i = 0; i < 256; i++) want += (double)(in[i] = (float)(1 + i * 7 % 31));
    float *const exact = malloc(sizeof in);
    assert_non_null(exact);
    memcpy(exact, in, sizeof in);
    void *aligned = NULL;
    assert_int_equal(posix_memalign(&aligned, 16, sizeof in), 0);
    memcpy(aligned, in, sizeof in);
    free(exact);
    const struct sum_args args = {aligned, &out, (int)bug};
    simt_start(config);
    KERN_LAUNCH(sum_kernel, 1, 1, 1, 64, sizeof in, NULL, args);
    free(aligned);
    return simt_failure() || !((double)out == want);
}

static void test_seeded_bugs(void **state)
{
    (void)state;
    for (int bug = NONE; bug < BUGS_N; bug++) {
#if defined(__SANITIZE_ADDRESS__)
        if (bug == BEYOND_SHARED) continue; /* stops the program, which is how it is found there */
#endif
        int orders = 0;
        for (int order = 0; order < SIMT_ORDERS_N; order++)
            orders +=
                seen((enum bug)bug, &(struct simt_config){.order = (enum simt_order)order, .seed = 11, .strict = true});
        print_message("bug %d: seen in %d of %d orders%s%s\n", bug, orders, SIMT_ORDERS_N, simt_failure() ? ": " : "",
                      simt_failure() ? simt_failure() : "");
        assert_true(bug == NONE ? orders == 0 : orders > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),  cmocka_unit_test(test_seeded_bugs), cmocka_unit_test(test_all_have_shapes),
        cmocka_unit_test(test_forward),  cmocka_unit_test(test_backward),    cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
