/* bench_kernels -- what part of its ceiling a kernel of the CPU reaches: each in turn with the ceilings, in one
 * process, so that what slows the machine slows both. Not the probe, which measures, decides and stores; this is for
 * who changes a kernel.
 *
 *     bench_kernels [SECONDS [NAME ...]]
 *
 * of each line that has NAME in its kernel, format and label ("gemm fp32 m=1"), by all sets of instructions but those
 * that a wider one stands for. A round is a call of the reading ceiling, of the gathering one where the line is of
 * pages, of the peak, and of every code; SECONDS of rounds a line (0.3 unless given). Printed: the median over rounds
 * of
 *
 *     max(flops / peak, bytes read / rate of reading, all bytes / rate of moving) / time
 *
 * beside the code's own rates; the rate of reading is that of pieces where those are slower. Ceilings are the best
 * codes of a first tour, measured again in every round. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/table.h"
#include "probe/worker/flush.h"
#include "probe/worker/work.h"

enum { ROUNDS_MAX = 512, CODES_MAX = 12, SAID = 200 };

static const double MEMORY_BYTES = 0x1p33;

struct line {
    const char *label, *kernel;
    struct kern_shape shape;
};

/* {batch, kv_len, n_heads, n_kv_heads, head_dim, window, page_tokens}, and so on, as the kernels name them */
static const struct line LINES[] = {
    {"1 query, one piece", "decode-attention", {{1, 16384, 8, 8, 128, 0, 0}, KERN_BF16}},
    {"4 queries, one piece", "decode-attention", {{1, 8192, 32, 8, 128, 0, 0}, KERN_BF16}},
    {"8 queries, one piece", "decode-attention", {{4, 4096, 64, 8, 128, 0, 0}, KERN_BF16}},
    {"1 query, pages of 16", "decode-attention", {{16, 1024, 8, 8, 128, 0, 16}, KERN_BF16}},
    {"1 query, pages of 64", "decode-attention", {{4, 4096, 8, 8, 128, 0, 64}, KERN_BF16}},
    {"4 queries, pages of 16", "decode-attention", {{8, 4096, 32, 8, 128, 0, 16}, KERN_BF16}},
    {"4 queries, pages of 64", "decode-attention", {{4, 4096, 32, 8, 128, 0, 64}, KERN_BF16}},
    {"8 queries, pages of 16", "decode-attention", {{4, 4096, 64, 8, 128, 0, 16}, KERN_BF16}},
    {"8 queries, pages of 64", "decode-attention", {{4, 4096, 64, 8, 128, 0, 64}, KERN_BF16}},
    {"8 queries of 64", "decode-attention", {{16, 8192, 8, 1, 64, 0, 0}, KERN_BF16}},
    {"1 query, one piece", "decode-attention", {{1, 8192, 32, 32, 128, 0, 0}, KERN_FP32}},
    {"4 queries, one piece", "decode-attention", {{4, 4096, 32, 8, 128, 0, 0}, KERN_FP32}},
    {"1 query, pages of 16", "decode-attention", {{4, 2048, 8, 8, 128, 0, 16}, KERN_FP32}},
    {"4 queries, pages of 16", "decode-attention", {{4, 2048, 32, 8, 128, 0, 16}, KERN_FP32}},
    {"16 heads", "mla-decode", {{1, 8192, 16, 512, 64, 0}, KERN_BF16}},
    {"128 heads, pages of 64", "mla-decode", {{1, 2048, 128, 512, 64, 64}, KERN_BF16}},
    {"16 heads", "mla-decode", {{4, 4096, 16, 512, 64, 0}, KERN_FP32}},
    {"8 of 80 heads", "mamba2-step", {{8, 80, 64, 128, 1, 4}, KERN_FP32}},
    {"64 rows", "rmsnorm", {{64, 4096}, KERN_BF16}},
    {"2048 rows", "rmsnorm", {{2048, 4096}, KERN_BF16}},
    {"1024 rows", "rmsnorm", {{1024, 8192}, KERN_FP32}},
    {"4096 tokens", "kv-write", {{4096, 8, 128}, KERN_BF16}},
    {"4096 tokens", "kv-write", {{4096, 8, 128}, KERN_INT8}},
    {"m=1", "mlp", {{1, 4096, 14336}, KERN_BF16}},
    {"m=16", "mlp", {{16, 4096, 14336}, KERN_BF16}},
    {"512 tokens", "prefill-attention", {{1, 512, 32, 8, 128, 0}, KERN_BF16}},
    {"2048 tokens", "prefill-attention", {{1, 2048, 32, 8, 128, 0}, KERN_FP32}},
    {"4 x 512 tokens, heads of 64", "prefill-attention", {{4, 512, 16, 16, 64, 0}, KERN_FP32}},
    {"m=512", "mlp", {{512, 4096, 14336}, KERN_BF16}},
    {"m=512", "gemm", {{512, 4096, 4096}, KERN_BF16}},
    {"m=1", "gemm", {{1, 14336, 4096}, KERN_BF16}},
    {"m=16", "gemm", {{16, 14336, 4096}, KERN_BF16}},
    {"m=64", "gemm", {{64, 6144, 4096}, KERN_BF16}},
    {"m=128", "gemm", {{128, 4096, 4096}, KERN_BF16}},
    {"m=1", "gemm", {{1, 4096, 4096}, KERN_FP32}},
    {"m=512", "gemm", {{512, 4096, 4096}, KERN_FP32}},
    {"m=64", "gemm", {{64, 4096, 4096}, KERN_FP32}},
};

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_size);
    return n == 0 ? (double)NAN : n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* -- a code at a shape, its operands in memory -- */

struct code {
    struct work work;
    struct kern_counts counts;
    size_t next;
    double time_s[ROUNDS_MAX];
};

static bool code_open(const struct kern *k, const struct kern_variant *v, const struct kern_shape *s, bool cold,
                      const struct kern_machine *m, struct code *out)
{
    char text[SAID];
    const struct work_spec spec = {
        .kernel = k, .variant = v, .shape = *s, .cold = cold, .seed = 7, .flush = flush_can()};
    *out = (struct code){.next = 0};
    const char *why = work_open(&spec, m, MEMORY_BYTES, &out->work, text, sizeof text);
    if (why) {
        (void)fprintf(stderr, "%s %s: %s\n", k->name, v->name, why);
        return false;
    }
    k->counts(s, &out->counts);
    return true;
}

/* Seconds of a call of about so many seconds. */
static double code_time(struct code *c, double least_s)
{
    double lost, s = 0;
    size_t n = 0;
    do {
        s += work_calls(&c->work, 1, &c->next, &lost);
        n++;
    } while (s < least_s);
    return s / (double)n;
}

static double code_bytes(const struct code *c) { return c->counts.read_bytes + c->counts.written_bytes; }

static const char *lacks(const struct kern_variant *v, const struct kern_machine *m, const struct kern_shape *s)
{
    return v->dtypes & KERN_HAS(s->dtype) ? v->lacks ? v->lacks(m, s) : NULL : "not in this format";
}

/* -- ceilings -- */

/* The fastest code of a ceiling; NULL: none runs. */
static struct code *ceiling_open(const struct kern *k, const struct kern_shape *s, bool cold, enum kern_unit unit,
                                 const struct kern_machine *m)
{
    enum { TRIES = 3 };
    static const double LEAST_S = 2e-3;
    double best_s = (double)INFINITY;
    struct code *best = NULL;
    for (size_t i = 0; i < k->variants_n; i++) {
        const struct kern_variant *v = &k->variants[i];
        struct code *c = NULL;
        double s_best = (double)INFINITY;
        if (lacks(v, m, s) || v->unit != unit || !(c = malloc(sizeof *c))) continue;
        if (code_open(k, v, s, cold, m, c)) {
            for (int t = 0; t < TRIES; t++) s_best = fmin(s_best, code_time(c, LEAST_S));
            if (s_best < best_s) {
                struct code *const swap = best;
                best = c;
                best_s = s_best;
                c = swap;
            }
            if (c) work_close(&c->work);
        }
        free(c);
    }
    return best;
}

static void close_all(struct code **c, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c[i]) work_close(&c[i]->work);
        free(c[i]);
    }
}

enum { READ, MOVE, GATHER, PEAK, PEAKS_END = PEAK + KERN_UNITS_N };

static void open_ceilings(const struct kern_machine *m, struct code **c)
{
    static const struct kern *const MOVES[] = {&kern_stream_copy, &kern_stream_triad, &kern_stream_update};
    const struct kern_shape array = {{(int64_t)1 << 22}, KERN_FP32}; /* not a unit */
    c[READ] = ceiling_open(&kern_stream_read, &array, true, KERN_UNIT_FP32, m);
    for (size_t i = 0; i < sizeof MOVES / sizeof MOVES[0]; i++) {
        struct code *other = ceiling_open(MOVES[i], &array, true, KERN_UNIT_FP32, m);
        if (other && c[MOVE] &&
            code_bytes(other) / code_time(other, 0.01) < code_bytes(c[MOVE]) / code_time(c[MOVE], 0.01)) {
            close_all(&other, 1);
            continue;
        }
        if (other) {
            close_all(&c[MOVE], 1);
            c[MOVE] = other;
        }
    }
    for (size_t u = 0; u < KERN_UNITS_N; u++)
        for (size_t p = 0; p < kern_fma.points_n; p++)
            if (!c[PEAK + u])
                c[PEAK + u] = ceiling_open(&kern_fma, &kern_fma.points[p].shape, false, (enum kern_unit)u, m);
    for (size_t i = READ; i < PEAKS_END; i++) {
        if (!c[i]) continue;
        const double s = code_time(c[i], 0.01);
        (void)printf("  %-14s %-22s %8.1f G%s/s\n", c[i]->work.spec.kernel->name, c[i]->work.spec.variant->name,
                     (i >= PEAK ? c[i]->counts.flops : code_bytes(c[i])) / s / 1e9, i >= PEAK ? "flop" : "B");
    }
}

/* -- a line -- */

static double rate(const struct code *c, size_t r, bool flops)
{
    return c ? (flops ? c->counts.flops : code_bytes(c)) / c->time_s[r] : (double)NAN;
}

static void report(const struct line *l, const struct code *c, struct code *const *ceiling, size_t rounds)
{
    static double part[ROUNDS_MAX], time[ROUNDS_MAX];
    const struct code *peak = ceiling[PEAK + c->work.spec.variant->unit];
    for (size_t r = 0; r < rounds; r++) {
        const double compute_s = c->counts.flops > 0 ? c->counts.flops / rate(peak, r, true) : 0;
        const double read = fmin(rate(ceiling[READ], r, false), rate(ceiling[GATHER], r, false));
        const double bound_s = fmax(fmax(isnan(compute_s) ? 0 : compute_s, c->counts.read_bytes / read),
                                    code_bytes(c) / rate(ceiling[MOVE], r, false));
        time[r] = c->time_s[r];
        part[r] = bound_s / time[r];
    }
    const double s = median(time, rounds);
    (void)printf("  %-17s %-23s %-5s %-13s %10.1f us %6.2f GB/s %7.1f Gflop/s %5.1f %%\n", l->kernel, l->label,
                 kern_dtype_name(l->shape.dtype), c->work.spec.variant->name, s * 1e6, code_bytes(c) / s / 1e9,
                 c->counts.flops / s / 1e9, 100 * median(part, rounds));
}

static int measure(const struct line *l, double seconds, const struct kern_machine *m, struct code **ceiling)
{
    const struct kern *k = kern_find(l->kernel);
    struct code *code[CODES_MAX];
    size_t n = 0, rounds = 0;
    char text[SAID];
    const char *why = k ? kern_shape_check(k, &l->shape, text, sizeof text) : "no such kernel";
    if (why) {
        (void)fprintf(stderr, "%s: %s\n", l->kernel, why);
        return 1;
    }
    const double piece = k->piece_bytes ? k->piece_bytes(&l->shape) / 4 : 0;
    if (piece > 0) {
        const struct kern_shape s = {{(int64_t)(floor(0x1p22 / piece) * piece), (int64_t)piece}, KERN_FP32};
        ceiling[GATHER] = ceiling_open(&kern_stream_gather, &s, true, KERN_UNIT_FP32, m);
    }
    for (size_t i = 0; i < k->variants_n && n < CODES_MAX; i++) {
        const struct kern_variant *v = &k->variants[i];
        if (lacks(v, m, &l->shape) || strcmp(v->name, "portable") == 0 || (m->avx512 && strcmp(v->name, "avx2") == 0) ||
            !(code[n] = malloc(sizeof *code[n])))
            continue;
        if (code_open(k, v, &l->shape, true, m, code[n]))
            n++;
        else
            free(code[n]);
    }
    for (double spent = 0; spent < seconds && rounds < ROUNDS_MAX; rounds++) {
        for (size_t i = 0; i < PEAKS_END; i++)
            if (ceiling[i]) spent += ceiling[i]->time_s[rounds] = code_time(ceiling[i], i >= PEAK ? 1e-4 : 0);
        for (size_t i = 0; i < n; i++) spent += code[i]->time_s[rounds] = code_time(code[i], 1e-3);
    }
    static double room[ROUNDS_MAX];
    if (ceiling[GATHER]) {
        for (size_t r = 0; r < rounds; r++) room[r] = rate(ceiling[GATHER], r, false);
        (void)printf("  %-17s %-23s       %-13s %10s    %6.2f GB/s\n", "stream-gather", l->label,
                     ceiling[GATHER]->work.spec.variant->name, "", median(room, rounds) / 1e9);
    }
    for (size_t i = 0; i < n; i++) report(l, code[i], ceiling, rounds);
    close_all(code, n);
    close_all(&ceiling[GATHER], 1);
    ceiling[GATHER] = NULL;
    return n == 0;
}

int main(int argc, char **argv)
{
    struct kern_machine m;
    struct code *ceiling[PEAKS_END] = {NULL};
    const double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.3;
    int failed = 0;
    kern_machine_open(&m);
    open_ceilings(&m, ceiling);
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
        bool wanted = argc <= 2;
        char name[SAID];
        (void)snprintf(name, sizeof name, "%s %s %s", LINES[i].kernel, kern_dtype_name(LINES[i].shape.dtype),
                       LINES[i].label);
        for (int j = 2; j < argc; j++) wanted = wanted || strstr(name, argv[j]);
        if (wanted) failed |= measure(&LINES[i], seconds, &m, ceiling);
        (void)fflush(stdout);
    }
    close_all(ceiling, PEAKS_END);
    kern_machine_close(&m);
    return failed;
}
