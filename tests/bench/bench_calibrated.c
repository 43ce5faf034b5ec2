/* bench_calibrated -- what a point costs at calibrated fidelity: prefill and decode of a whole model, on one core.
 *
 * Two sweeps: batches 1..512 against contexts, where each number of rows is summed once and attention per point; and
 * every point at a batch of its own, where nothing is found again. Bar: 2 us a point of the first. Times are processor
 * time, the least of ROUNDS. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calc/fit/calibrated.h"

enum { BATCHES = 512, CONTEXTS = 400, ROUNDS = 3, APART = 4096 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct columns {
    double *B, *S, *floor_s;
    struct calibrated_time *out;
};

static double sweep_s(struct calibrated *c, const struct columns *k, size_t n)
{
    double least = HUGE_VAL;
    for (int r = 0; r < ROUNDS; r++) {
        const double start = now_s();
        calibrated_eval(c, STEP_PREFILL, n, k->B, k->S, k->S, NULL, k->floor_s, k->out);
        calibrated_eval(c, STEP_DECODE, n, k->B, k->S, k->S, NULL, k->floor_s, k->out);
        least = fmin(least, now_s() - start);
    }
    return least;
}

static enum err_code bench(struct arena *a, const char *name, const char *gpu, int64_t tp, struct err *e)
{
    struct model m;
    struct hw hw;
    struct step *step;
    struct source source;
    struct calibrated *c;
    const size_t n = (size_t)BATCHES * CONTEXTS;
    struct columns k = {arena_array(a, n, sizeof *k.B), arena_array(a, n, sizeof *k.S),
                        arena_array(a, n, sizeof *k.floor_s), arena_array(a, n, sizeof *k.out)};
    if (!k.B || !k.S || !k.floor_s || !k.out) return err_nomem(e);
    TRY(model_load(a, name, NULL, 0, &m, e));
    TRY(hw_load(a, gpu, &hw, e));
    const struct step_setup setup = {
        .model = &m, .hw = &hw, .layout = {.tp = tp}, .fidelity = STEP_BOUND, .averaged = false, .block_tokens = 16};
    TRY(step_compile(a, &setup, &step, e));
    TRY(source_open(a, &hw, NULL, NULL, &source, e));
    const struct calibrated_setup of = {.step = step, .source = &source};
    TRY(calibrated_open(a, &of, &c, e));
    for (size_t i = 0; i < n; i++) {
        k.B[i] = (double)(i % BATCHES + 1);
        k.S[i] = (double)(64 + 97 * (i / BATCHES));
    }
    const double grid_s = sweep_s(c, &k, n) / (double)n;
    for (size_t i = 0; i < APART; i++) {
        k.B[i] = (double)(i + 1);
        k.S[i] = (double)(64 + 13 * i);
    }
    TRY(calibrated_open(a, &of, &c, e));
    double apart_s = now_s();
    calibrated_eval(c, STEP_DECODE, APART, k.B, k.S, k.S, NULL, k.floor_s, k.out);
    apart_s = (now_s() - apart_s) / APART;
    printf(
        "  %-16s %-9s tp %lld  grid of %zu points %6.3f us a point (bar 2)  decode, rows never seen before %6.2f us\n",
        name, gpu, (long long)tp, n, grid_s * 1e6, apart_s * 1e6);
    return ERR_OK;
}

int main(void)
{
    static const struct {
        const char *model, *gpu;
        int64_t tp;
    } CASES[] = {{"llama-3.1-70b", "h100-sxm", 8}, {"llama-3.1-8b", "h100-sxm", 1}, {"gemma-3-27b", "h100-sxm", 1},
                 {"qwen3-30b-a3b", "a100-80g", 1}, {"deepseek-r1", "h200-sxm", 8},  {"gpt-oss-120b", "h100-sxm", 1}};
    printf("bench_calibrated: prefill and decode step, one core\n");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        const enum err_code code = a ? bench(a, CASES[i].model, CASES[i].gpu, CASES[i].tp, &e) : err_nomem(&e);
        arena_close(a);
        if (code != ERR_OK) {
            (void)fprintf(stderr, "%s\n", e.text);
            return (int)code;
        }
    }
    return 0;
}
