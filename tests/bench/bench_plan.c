/* bench_plan -- a plan over more than 20,000 candidates: devices, layouts, precisions, limits, calibrated at P90.
 *
 * Bar: 2 s. A dense model on three devices, with lengths all alike and four precisions, and with lengths that vary; and
 * one with experts, whose attention groups and parts of experts are more layouts. Times are processor time, one run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calc/model/stored.h"
#include "calc/serve/planner.h"

enum { DEVICES = 3, FORMATS = 4 };

static const double BAR_S = 2;
static const size_t CANDIDATES = 20000;

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A question about a model. */
struct asked {
    const char *name, *gpu[DEVICES], *prompt, *output;
    size_t gpus_n, formats_n;
    double rate_per_s;
};

static const struct asked ASKED[] = {
    {"llama-3.1-70b", {"h100-sxm", "h200-sxm", "l40s"}, "1200", "300", 3, FORMATS, 12},
    {"llama-3.1-70b",
     {"h100-sxm", "h200-sxm", "l40s"},
     "lognormal:1200,1,max=16000",
     "lognormal:300,1,max=4000",
     3,
     1,
     12},
    {"deepseek-v3", {"h200-sxm"}, "1200", "300", 1, 1, 20},
};

static enum err_code bench(struct arena *a, const struct asked *k, bool *slow, struct err *e)
{
    const char *name = k->name, *const *gpus = k->gpu;
    const size_t gpus_n = k->gpus_n;
    const double rate = k->rate_per_s;
    static const int64_t STEPS[] = {512, 1024, 2048, 4096, 8192}, SEQS[] = {16, 32, 64, 128, 256, 512, 1024};
    struct hw hw[DEVICES];
    struct planner_device device[DEVICES];
    struct model model[FORMATS];
    struct planner_format format[FORMATS];
    struct workload work;
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 4096, .rate_per_s = rate, .seed = 1};
    struct planner_result r;
    for (size_t i = 0; i < gpus_n; i++) {
        TRY(hw_load(a, gpus[i], &hw[i], e));
        device[i] = (struct planner_device){.hw = &hw[i],
                                            .price = price_of(NULL, &hw[i]),
                                            .most = 64,
                                            .per_node = 8,
                                            .latency = {.link_s = 6e-7, .fabric_s = 8.4e-6}};
    }
    for (size_t i = 0; i < k->formats_n; i++) {
        TRY(model_load(a, name, NULL, 0, &model[i], e));
        format[i] =
            (struct planner_format){.model = &model[i], .weights = i & 1 ? "fp8" : NULL, .kv = i & 2 ? "fp8" : NULL};
        if (format[i].weights) TRY(stored_set_all(&model[i], "fp8", e));
        if (format[i].kv) TRY(stored_set_cache(&model[i], "fp8", e));
    }
    TRY(workload_length_parse(a, k->prompt, &s.prompt, e));
    TRY(workload_length_parse(a, k->output, &s.output, e));
    TRY(workload_make(a, &s, &work, e));
    struct planner_request q = {.device = device,
                                .devices_n = gpus_n,
                                .format = format,
                                .formats_n = k->formats_n,
                                .ttft = {2, .95},
                                .tpot = {.06, .95},
                                .step_tokens = STEPS,
                                .step_tokens_n = sizeof STEPS / sizeof *STEPS,
                                .seqs = SEQS,
                                .seqs_n = sizeof SEQS / sizeof *SEQS,
                                .held_seqs = true,
                                .fidelity = PLANNER_CALIBRATED,
                                .p90 = true,
                                .utilization_frac = (double)NAN};
    TRY(planner_traffic_of(a, &work, rate, &q.traffic, e));
    const double start = now_s();
    TRY(planner_search(a, &q, &r, e));
    const double took_s = now_s() - start;
    (void)printf("%-14s %7zu candidates, %6zu solved, %2zu plans: %6.3f s, %5.2f us a candidate\n", name, r.candidates,
                 r.solved, r.best_n, took_s, took_s / (double)r.candidates * 1e6);
    *slow = *slow || r.candidates < CANDIDATES || took_s > BAR_S;
    return ERR_OK;
}

int main(void)
{
    struct arena *a = arena_open();
    struct err e = {0};
    bool slow = false;
    enum err_code code = a ? ERR_OK : err_nomem(&e);
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED && code == ERR_OK; i++) code = bench(a, &ASKED[i], &slow, &e);
    if (code != ERR_OK) (void)fprintf(stderr, "%s\n", e.text);
    arena_close(a);
    if (code == ERR_OK && slow) (void)fprintf(stderr, "bar: %zu candidates in %g s\n", CANDIDATES, BAR_S);
    return code == ERR_OK ? slow : (int)code;
}
