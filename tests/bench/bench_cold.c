/* bench_cold -- two ways to make operands cold, in turn in one process: copies that together are eight caches, and
 * lines that are flushed before each call (probe/worker/flush.h). Printed: medians of a call by each, the median of
 * their ratio over turns, which no slow moment of the machine moves, and what filling the copies took.
 *
 *     bench_cold [SECONDS]      of turns for each kernel (2) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/table.h"
#include "probe/worker/flush.h"
#include "probe/worker/work.h"

enum { TURNS_MAX = 4096, WAYS = 2, ROTATED = 0, FLUSHED = 1 };

static const double MEMORY_BYTES = 0x1p33;

static const struct {
    const char *kernel;
    struct kern_shape shape;
} CASES[] = {
    {"stream-copy", {{1 << 20}, KERN_FP32}},
    {"stream-update", {{1 << 20}, KERN_FP32}},
    {"kv-write", {{4096, 8, 128}, KERN_BF16}},
    {"mamba2-step", {{8, 80, 64, 128, 1, 4}, KERN_FP32}},
    {"prefill-attention", {{1, 512, 32, 8, 128, 0}, KERN_BF16}},
    {"stream-read", {{1 << 21}, KERN_FP32}},
    {"gemm", {{1, 4096, 4096}, KERN_BF16}},
    {"gemm", {{1, 1024, 1024}, KERN_BF16}},
    {"gemm", {{16, 4096, 4096}, KERN_BF16}},
    {"gemm", {{64, 1024, 1024}, KERN_BF16}},
    {"gemm", {{512, 4096, 4096}, KERN_BF16}},
    {"int4-matvec", {{1, 14336, 4096}, KERN_INT4_G128}},
    {"mlp", {{1, 2048, 5632}, KERN_BF16}},
    {"decode-attention", {{1, 8192, 32, 8, 128, 0, 0}, KERN_BF16}},
    {"decode-attention", {{4, 4096, 32, 8, 128, 0, 16}, KERN_BF16}},
    {"mla-decode", {{1, 8192, 16, 512, 64, 0}, KERN_BF16}},
    {"sample", {{8, 128256, 50, 900, 700}, KERN_FP32}},
};

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n ? v[n / 2] : (double)NAN;
}

/* The first code that runs here. */
static const struct kern_variant *code_of(const struct kern *k, const struct kern_shape *s,
                                          const struct kern_machine *m)
{
    for (size_t i = 0; i < k->variants_n; i++) {
        const struct kern_variant *v = &k->variants[i];
        if (v->dtypes & KERN_HAS(s->dtype) && !(v->lacks && v->lacks(m, s))) return v;
    }
    return NULL;
}

/* The median of the calls of a spell, behind as long a one that gives caches and lines that wait to be written the
 * state of this way. */
static double spell(struct work *w, size_t *next)
{
    enum { CALLS_MAX = 512 };
    static const double SPELL_S = 0.03;
    static double time_s[CALLS_MAX];
    double lost;
    size_t n = 0;
    for (size_t i = 0; i < w->copies; i++) w->calls[i].shape = &w->spec.shape;
    for (double start = now_s(); now_s() - start < SPELL_S;) (void)work_calls(w, 1, next, &lost);
    for (double start = now_s(); n == 0 || (n < CALLS_MAX && now_s() - start < SPELL_S); n++)
        time_s[n] = work_calls(w, 1, next, &lost);
    return median(time_s, n);
}

static int measure(const struct kern *k, const struct kern_shape *s, const struct kern_machine *m, double seconds)
{
    static double time_s[WAYS][TURNS_MAX], ratio[TURNS_MAX];
    struct work work[WAYS];
    double fill_s[WAYS];
    size_t next[WAYS] = {0}, turns = 0, open = 0;
    const struct kern_variant *v = code_of(k, s, m);
    char text[200];
    const char *why = v ? NULL : "no code of it runs here";
    for (; open < WAYS && !why; open += !why) {
        const struct work_spec spec = {
            .kernel = k, .variant = v, .shape = *s, .cold = true, .seed = 7, .flush = open == FLUSHED};
        const double start = now_s();
        why = work_open(&spec, m, MEMORY_BYTES, &work[open], text, sizeof text);
        fill_s[open] = now_s() - start;
    }
    if (why) {
        (void)fprintf(stderr, "%s: %s\n", k->name, why);
        for (size_t i = 0; i < open; i++) work_close(&work[i]);
        return 1;
    }
    for (const double start = now_s(); now_s() - start < seconds && turns < TURNS_MAX; turns++) {
        for (size_t i = 0; i < WAYS; i++) time_s[i][turns] = spell(&work[i], &next[i]);
        ratio[turns] = time_s[FLUSHED][turns] / time_s[ROTATED][turns];
    }
    (void)printf("  %-17s %-5s %-12s %9.1f us rotated %9.1f us flushed %6.3f  filled in %5.2f and %5.2f s\n", k->name,
                 kern_dtype_name(s->dtype), v->name, median(time_s[ROTATED], turns) * 1e6,
                 median(time_s[FLUSHED], turns) * 1e6, median(ratio, turns), fill_s[ROTATED], fill_s[FLUSHED]);
    (void)fflush(stdout);
    for (size_t i = 0; i < WAYS; i++) work_close(&work[i]);
    return 0;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 2;
    struct kern_machine m;
    int failed = 0;
    if (!flush_can()) {
        (void)printf("  this processor has no instruction that flushes a line\n");
        return 0;
    }
    kern_machine_open(&m);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        failed |= measure(kern_find(CASES[i].kernel), &CASES[i].shape, &m, seconds);
    kern_machine_close(&m);
    return failed;
}
