/* bench_simulate -- a million requests on 8 replicas, and an hour of a chat service (19,366 requests at 5.5 a second)
 * on one; with the cache's prefixes and behind routers too. Seconds are processor time on one core, memory is the
 * largest that the process had. Bars: 60 s and 500 MB for the million; 1 s for the hour; "nan": no bar. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "calc/serve/simulate.h"

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct job {
    const char *name, *model, *hw, *prompt, *output;
    int64_t tp, replicas, requests, turns;
    double rate_per_s;
    enum simulate_route route;
    bool prefixes;
    double bar_s;
};

static enum err_code bench(struct arena *a, const struct job *j, struct err *e)
{
    struct model m;
    struct hw hw;
    struct mix_plan *plan;
    struct workload w;
    struct simulate_result r;
    struct rusage use;
    struct workload_spec spec = {
        .rate_per_s = j->rate_per_s, .requests = j->requests, .turns = j->turns, .think_s = 5, .samples = 1, .seed = 1};
    TRY(model_load(a, j->model, NULL, 0, &m, e));
    TRY(hw_load(a, j->hw, &hw, e));
    const struct step_setup step = {
        .model = &m, .hw = &hw, .layout = {.tp = j->tp}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    TRY(mix_compile(a, &step, &plan, e));
    TRY(workload_length_parse(a, j->prompt, &spec.prompt, e));
    TRY(workload_length_parse(a, j->output, &spec.output, e));
    const double start_s = now_s();
    TRY(workload_make(a, &spec, &w, e));
    const struct simulate_setup s = {.work = &w,
                                     .plan = plan,
                                     .policy = SIMULATE_CHUNKED,
                                     .budget_tokens = 2048,
                                     .max_seqs = 256,
                                     .blocks = 26000,
                                     .block_tokens = 16,
                                     .max_len_tokens = 131072,
                                     .replicas = j->replicas,
                                     .route = j->route,
                                     .prefix_cache = j->prefixes};
    TRY(simulate_run(a, &s, &r, e));
    const double took_s = now_s() - start_s;
    (void)getrusage(RUSAGE_SELF, &use);
    printf("  %-34s %8lld requests, %9lld steps, batch %5.1f%s: %6.2f s (bar %g), %4.0f MB\n", j->name,
           (long long)j->requests, (long long)r.steps, r.mean_running, r.growing ? ", overloaded" : "", took_s,
           j->bar_s, (double)use.ru_maxrss / 1e3);
    return r.finished + r.refused == w.n ? ERR_OK : err_set(e, ERR_RANGE, "requests were lost");
}

int main(void)
{
    static const char CHAT[] = "lognormal:1155,0.96,max=14050", ANSWERS[] = "lognormal:211,0.77,max=1000";
    static const struct job JOBS[] = {
        {"an hour of chat", "llama-3.1-8b", "h100-sxm", CHAT, ANSWERS, 1, 1, 19366, 1, 5.53, SIMULATE_ROUND_ROBIN,
         false, 1},
        {"windows", "gemma-3-27b", "h100-sxm", CHAT, ANSWERS, 1, 1, 19366, 1, 2.3, SIMULATE_ROUND_ROBIN, false,
         (double)NAN},
        {"conversations, prefixes, 8 replicas", "llama-3.1-8b", "h100-sxm", "lognormal:300,0.9", ANSWERS, 1, 8, 100000,
         5, 15, SIMULATE_PREFIX, true, (double)NAN},
        {"a million, in turn", "llama-3.1-70b", "h100-sxm", CHAT, ANSWERS, 4, 8, 1000000, 1, 70, SIMULATE_ROUND_ROBIN,
         false, 60},
        {"a million, least loaded", "llama-3.1-70b", "h100-sxm", CHAT, ANSWERS, 4, 8, 1000000, 1, 70,
         SIMULATE_LEAST_LOADED, false, 60},
    };
    printf("bench_simulate: requests through schedulers, one core\n");
    for (size_t i = 0; i < sizeof JOBS / sizeof JOBS[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        const enum err_code code = a ? bench(a, &JOBS[i], &e) : err_nomem(&e);
        arena_close(a);
        if (code != ERR_OK) {
            (void)fprintf(stderr, "%s\n", e.text);
            return (int)code;
        }
    }
    return 0;
}
