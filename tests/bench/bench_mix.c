/* bench_mix -- what a mixed step costs a simulator: a sequence that enters, all that decode a token further, a step
 * priced, by floors and by measured kernels; the same whatever the number of sequences. Times are processor time, the
 * least of ROUNDS. Bar: 10 us a step by floors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calc/fit/calibrated.h"

enum { TIMES = 2000, ROUNDS = 3 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Steps of a batch of n sequences in which one is prefilled in pieces: seconds a step of each kind of work. */
static void run(struct calibrated *c, struct mix *x, int n, double out[4])
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    mix_clear(x);
    double start = now_s();
    for (int i = 0; i < n; i++) mix_decode(x, 1, 5000 + 7 * i);
    out[0] = fmin(out[0], (now_s() - start) / n);
    mix_prefill(x, 1, 512, 1024 /* not a unit */);
    start = now_s();
    for (int i = 0; i < TIMES; i++) mix_advance(x, n);
    out[1] = fmin(out[1], (now_s() - start) / TIMES);
    start = now_s();
    for (int i = 0; i < TIMES; i++) mix_eval(x, v);
    out[2] = fmin(out[2], (now_s() - start) / TIMES);
    start = now_s();
    for (int i = 0; i < TIMES / 10; i++) calibrated_mix_eval(c, x, v[MIX_step_s], &t);
    out[3] = fmin(out[3], (now_s() - start) / (TIMES / 10));
}

static enum err_code bench(struct arena *a, const char *name, int64_t tp, struct err *e)
{
    struct model m;
    struct hw hw;
    struct step *step;
    struct source source;
    struct calibrated *c;
    struct mix_plan *plan;
    struct mix x;
    TRY(model_load(a, name, NULL, 0, &m, e));
    TRY(hw_load(a, "h100-sxm", &hw, e));
    const struct step_setup setup = {
        .model = &m, .hw = &hw, .layout = {.tp = tp}, .fidelity = STEP_BOUND, .block_tokens = 16};
    TRY(step_compile(a, &setup, &step, e));
    TRY(mix_compile(a, &setup, &plan, e));
    TRY(mix_open(a, plan, &x, e));
    TRY(source_open(a, &hw, NULL, NULL, &source, e));
    const struct calibrated_setup of = {.step = step, .source = &source, .mix = plan};
    TRY(calibrated_open(a, &of, &c, e));
    static const int SIZES[] = {1, 64, 4096};
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        double s[] = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
        for (int r = 0; r < ROUNDS; r++) run(c, &x, SIZES[i], s);
        printf("  %-14s tp %lld  %4d sequences  enter %5.2f us, advance %6.3f us, step %5.2f us (bar 10), calibrated "
               "%6.1f us\n",
               name, (long long)tp, SIZES[i], s[0] * 1e6, s[1] * 1e6, s[2] * 1e6, s[3] * 1e6);
    }
    return ERR_OK;
}

int main(void)
{
    static const struct {
        const char *model;
        int64_t tp;
    } CASES[] = {{"llama-3.1-70b", 8}, {"gemma-3-27b", 1}, {"deepseek-v3", 8}, {"qwen3.5-27b", 1}};
    printf("bench_mix: steps of a simulator, one core\n");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        const enum err_code code = a ? bench(a, CASES[i].model, CASES[i].tp, &e) : err_nomem(&e);
        arena_close(a);
        if (code != ERR_OK) {
            (void)fprintf(stderr, "%s\n", e.text);
            return (int)code;
        }
    }
    return 0;
}
