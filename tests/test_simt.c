
/* Kernels of kernels/x.cu on the host: right against the reference at odd shapes in every order, and the emulator finds
 * the mistakes that it is there to find. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/cuda.h"
#include "kernels/simt/simt.h"

/* A small card, so that walks over a grid go round more than once. */
static const struct kern_machine MACHINE = {.processors = 3, .capability = 90, .shared_bytes = 227 * 1024};

/* -- every kernel, every variant -- */

static void *make_buffer(const struct kern *k, const struct kern_call *c, size_t b, const struct kern_buffer *d)
{
    const size_t bytes = d->elements * kern_type_bytes(d->type);
    void *data = NULL;
    assert_int_equal(posix_memalign(&data, 64, bytes ? bytes : 1), 0); /* exact: AddressSanitizer sees one beyond */
    memset(data, d->type == KERN_TYPE_I32 || d->type == KERN_TYPE_U8 || d->type == KERN_TYPE_I8 ? 0xaa : 0xff, bytes);
    if (d->role == KERN_INPUT || d->role == KERN_STATE) {
        if (d->sd > 0)
            kern_fill_normal(data, d->type, d->elements, d->sd, 1009 + b);
        else
            k->fill(c, b, 1009 + b, data);
    }
    return data;
}

/* Runs and compares, ||result - reference|| / ||reference|| over each output; "" or what is wrong. States start from a
 * copy, since the reference reads them. */
static void try_shape(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                      const struct simt_config *config, char *wrong, size_t cap)
{
    const struct kern *k = cuda->kern;
    struct kern_buffer d[KERN_BUFFERS_MAX];
    struct kern_call before = {.shape = s, .machine = &MACHINE}, after = before;
    if (kern_shape_check(k, s, wrong, cap)) return;
    wrong[0] = 0;
    const size_t n = k->buffers(s, d);
    for (size_t b = 0; b < n; b++) {
        const size_t bytes = d[b].elements * kern_type_bytes(d[b].type);
        if (d[b].role == KERN_SCRATCH) continue; /* of the CPU's code */
        before.buffer[b] = make_buffer(k, &before, b, d + b);
        after.buffer[b] = before.buffer[b];
        if (d[b].role == KERN_INPUT) continue;
        assert_int_equal(posix_memalign(&after.buffer[b], 64, bytes ? bytes : 1), 0);
        memcpy(after.buffer[b], before.buffer[b], bytes);
    }
    const size_t scratch = v->scratch_bytes ? v->scratch_bytes(s, &MACHINE) : 0;
    if (scratch) assert_int_equal(posix_memalign(&after.scratch, 64, scratch), 0);
    if (scratch) memset(after.scratch, 0xff, scratch);
    simt_start(config);
    v->run(&after);
    free(after.scratch);
    if (simt_failure()) snprintf(wrong, cap, "%s", simt_failure());
    for (size_t b = 0; b < n && !wrong[0]; b++) {
        if (d[b].role != KERN_OUTPUT && d[b].role != KERN_STATE) continue;
        double apart = 0, all = 0;
        double *want = malloc(d[b].granule * sizeof *want);
        assert_non_null(want);
        for (size_t block = 0; block < d[b].elements / d[b].granule; block++) {
            k->reference(&before, b, block, want);
            for (size_t i = 0; i < d[b].granule; i++) {
                const double have = kern_read(after.buffer[b], d[b].type, block * d[b].granule + i);
                apart += (have - want[i]) * (have - want[i]);
                all += want[i] * want[i];
            }
        }
        free(want);
        if (!(sqrt(apart) <= k->tolerance(s) * sqrt(all)))
            snprintf(wrong, cap, "%s: %g of %g off", d[b].name, sqrt(apart), sqrt(all));
    }
    for (size_t b = 0; b < n; b++) {
        if (after.buffer[b] != before.buffer[b]) free(after.buffer[b]);
        free(before.buffer[b]);
    }
}

static void check_shape(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                        const struct simt_config *config)
{
    char wrong[512];
    try_shape(cuda, v, s, config, wrong, sizeof wrong);
    if (wrong[0])
        fail_msg("%s %s, %s at %lld %lld %lld: %s (order %d, seed %llu)", cuda->kern->name, v->name,
                 kern_dtype_name(s->dtype), (long long)s->v[0], (long long)s->v[1], (long long)s->v[2], wrong,
                 (int)config->order, (unsigned long long)config->seed);
}

/* Odd shapes by kernel: everything at the edge of a tile, one beyond, and far from one. */
static const struct {
    const char *kern;
    int64_t v[KERN_ARGS_MAX];
} SHAPES[] = {
    {"stream-read", {1}},
    {"stream-read", {7919}},
    {"stream-copy", {3}},
    {"stream-copy", {6151}},
    {"stream-triad", {5}},
    {"stream-triad", {6143}},
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

static void run_order(enum simt_order order, uint64_t seed)
{
    const struct simt_config config = {.order = order, .seed = seed, .strict = true};
    size_t n, checked = 0;
    const struct kern_cuda *const *table = kern_cuda_table(&n);
    for (size_t i = 0; i < n; i++) {
        size_t shapes = 0;
        for (size_t j = 0; j < sizeof SHAPES / sizeof SHAPES[0]; j++) {
            if (strcmp(SHAPES[j].kern, table[i]->kern->name) != 0) continue;
            for (size_t v = 0; v < table[i]->variants_n; v++)
                for (int dtype = 0; dtype < KERN_DTYPES_N; dtype++) {
                    const struct kern_variant *variant = table[i]->variants + v;
                    struct kern_shape s = {.dtype = (enum kern_dtype)dtype};
                    memcpy(s.v, SHAPES[j].v, sizeof s.v);
                    if (!(variant->dtypes & KERN_HAS(dtype)) || (variant->lacks && variant->lacks(&MACHINE, &s)))
                        continue;
                    check_shape(table[i], variant, &s, &config);
                    checked++, shapes++;
                }
        }
        if (shapes == 0) fail_msg("no odd shape of %s", table[i]->kern->name);
    }
    print_message("%zu kernels, %zu checks\n", n, checked);
}

static void test_forward(void **state) { (void)state, run_order(SIMT_FORWARD, 0); }
static void test_backward(void **state) { (void)state, run_order(SIMT_BACKWARD, 0); }
static void test_shuffled(void **state) { (void)state, run_order(SIMT_SHUFFLED, 15485863); }

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

/* -- mistakes put into every kernel: each barrier, wait, fragment and row of each source is needed, and missed -- */

enum { SPOTS_MAX = 256, PLACE_MAX = 64, CHILD_MOST_S = 60 };
enum { LIKE_RIGHT, LIKE_WRONG, NOT_MADE };

/* A place of the source and what is wrong there. */
struct spot {
    char place[PLACE_MAX];
    enum simt_mistake mistake;
    bool found, made;
};

/* One mistake in a process of its own: it may read anywhere, or go on for ever. */
static int try_mistake(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                       const struct simt_config *config)
{
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    int status = 0;
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char how[512];
        for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) (void)signal(SIGNALS[i], SIG_DFL);
        (void)close(STDERR_FILENO); /* what a sanitizer has to say */
        (void)alarm(CHILD_MOST_S);
        try_shape(cuda, v, s, config, how, sizeof how);
        _exit(how[0] ? LIKE_WRONG : simt_mistaken() ? LIKE_RIGHT : NOT_MADE);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : LIKE_WRONG;
    return code == LIKE_RIGHT || code == NOT_MADE ? code : LIKE_WRONG;
}

/* The places of the last run that are new. */
static void add_spots(struct spot *spots, size_t *n)
{
    for (int mistake = SIMT_SKIP_BARRIER; mistake < SIMT_MISTAKES_N; mistake++)
        for (unsigned p = 0; p < simt_places((enum simt_mistake)mistake); p++) {
            const char *place = simt_place_name((enum simt_mistake)mistake, p);
            size_t i = 0;
            while (i < *n && !((int)spots[i].mistake == mistake && strcmp(spots[i].place, place) == 0)) i++;
            if (i < *n) continue;
            assert_true(*n < SPOTS_MAX && strlen(place) < PLACE_MAX);
            spots[*n] = (struct spot){.mistake = (enum simt_mistake)mistake};
            (void)snprintf(spots[(*n)++].place, PLACE_MAX, "%s", place);
        }
}

/* Every mistake of one shape, variant and order that is not found yet. */
static void try_spots(const struct kern_cuda *cuda, const struct kern_variant *v, const struct kern_shape *s,
                      enum simt_order order, struct spot *spots, size_t *n)
{
    struct simt_config config = {order, 29, true, SIMT_RIGHT, 0};
    char how[512], names[SIMT_MISTAKES_N][SPOTS_MAX / 4][PLACE_MAX];
    unsigned names_n[SIMT_MISTAKES_N];
    try_shape(cuda, v, s, &config, how, sizeof how);
    add_spots(spots, n);
    for (int mistake = SIMT_SKIP_BARRIER; mistake < SIMT_MISTAKES_N; mistake++) {
        names_n[mistake] = simt_places((enum simt_mistake)mistake);
        for (unsigned p = 0; p < names_n[mistake]; p++)
            (void)snprintf(names[mistake][p], PLACE_MAX, "%s", simt_place_name((enum simt_mistake)mistake, p));
    }
    for (size_t i = 0; i < *n; i++) {
        if (spots[i].found) continue;
        config.mistake = spots[i].mistake;
        for (config.at = 0; config.at < names_n[config.mistake]; config.at++)
            if (strcmp(names[config.mistake][config.at], spots[i].place) == 0) break;
        if (config.at == names_n[config.mistake]) continue;
        const int code = try_mistake(cuda, v, s, &config);
        spots[i].made = spots[i].made || code != NOT_MADE;
        spots[i].found = code == LIKE_WRONG;
    }
}

static void test_mistakes(void **state)
{
    static const char *const NAMES[] = {
        [SIMT_SKIP_BARRIER] = "barrier left out",     [SIMT_SKIP_WARP] = "warp barrier left out",
        [SIMT_WAIT_LESS] = "wait for too little",     [SIMT_SWAP_FIRST] = "first factor swapped",
        [SIMT_SWAP_SECOND] = "second factor swapped", [SIMT_SHIFT_ROWS] = "rows shifted"};
    size_t n, missed = 0, places = 0;
    const struct kern_cuda *const *table = kern_cuda_table(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        struct spot spots[SPOTS_MAX];
        size_t spots_n = 0;
        for (size_t j = 0; j < sizeof SHAPES / sizeof SHAPES[0]; j++) {
            if (strcmp(SHAPES[j].kern, table[i]->kern->name) != 0) continue;
            for (size_t v = 0; v < table[i]->variants_n; v++)
                for (int dtype = 0; dtype < KERN_DTYPES_N; dtype++)
                    for (int order = 0; order < SIMT_ORDERS_N; order++) {
                        const struct kern_variant *variant = table[i]->variants + v;
                        struct kern_shape s = {.dtype = (enum kern_dtype)dtype};
                        memcpy(s.v, SHAPES[j].v, sizeof s.v);
                        if (!(variant->dtypes & KERN_HAS(dtype)) || (variant->lacks && variant->lacks(&MACHINE, &s)))
                            continue;
                        try_spots(table[i], variant, &s, (enum simt_order)order, spots, &spots_n);
                    }
        }
        for (size_t k = 0; k < spots_n; k++, places++) {
            if (spots[k].found || !spots[k].made) continue; /* a mistake that changes nothing is none */
            print_message("%s: %s at %s is not seen\n", table[i]->kern->name, NAMES[spots[k].mistake], spots[k].place);
            missed++;
        }
    }
    print_message("%zu mistakes, %zu not seen\n", places, missed);
    assert_int_equal(missed, 0);
    assert_true(places > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),  cmocka_unit_test(test_seeded_bugs), cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward), cmocka_unit_test(test_shuffled),    cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
