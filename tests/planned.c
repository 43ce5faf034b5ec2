#include "tests/planned.h"

#include <math.h>

#include "calc/model/stored.h"

const int64_t STEPS[2] = {512, 4096}, SEQS[2] = {24, 200};

struct asked *ask(struct arena *a, const char *model, const char *const *gpus, size_t gpus_n, int64_t most, double rate,
                  const char *prompt, const char *output)
{
    struct err e = {0};
    struct asked *k = arena_alloc(a, sizeof *k);
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 700, .rate_per_s = rate, .seed = 7};
    assert_non_null(k);
    k->a = a;
    for (size_t i = 0; i < gpus_n; i++) {
        must(hw_load(a, gpus[i], &k->hw[i], &e), &e);
        const int64_t node = k->hw[i].link_domain > 1 ? (int64_t)k->hw[i].link_domain : 8;
        k->device[i] = (struct planner_device){.hw = &k->hw[i],
                                               .price = price_of(NULL, &k->hw[i]),
                                               .most = most,
                                               .per_node = node < most ? node : most,
                                               .latency = {.link_s = 7e-7, .fabric_s = 9e-6}};
    }
    for (size_t i = 0; i < 2; i++) {
        must(model_load(a, model, NULL, 0, &k->model[i], &e), &e);
        k->format[i] = (struct planner_format){.model = &k->model[i]};
        if (i == 0) continue;
        must(stored_set_all(&k->model[i], "fp8", &e), &e);
        k->format[i].weights = "fp8";
    }
    must(workload_length_parse(a, prompt, &s.prompt, &e), &e);
    must(workload_length_parse(a, output, &s.output, &e), &e);
    must(workload_make(a, &s, &k->work, &e), &e);
    k->q = (struct planner_request){.device = k->device,
                                    .devices_n = gpus_n,
                                    .format = k->format,
                                    .formats_n = 2,
                                    .aim = PLANNER_SERVE,
                                    .ttft = {1.3, .95},
                                    .tpot = {.047, .95},
                                    .step_tokens = STEPS,
                                    .step_tokens_n = COUNT(STEPS),
                                    .seqs = SEQS,
                                    .seqs_n = COUNT(SEQS),
                                    .fidelity = PLANNER_ROOFLINE,
                                    .utilization_frac = (double)NAN};
    must(planner_traffic_of(a, &k->work, rate, &k->q.traffic, &e), &e);
    return k;
}

void same_plan(const struct planner_plan *x, const struct planner_plan *y, const char *what)
{
    if (x->device != y->device || x->format != y->format || x->gpus != y->gpus || x->layout.tp != y->layout.tp ||
        x->layout.pp != y->layout.pp || x->layout.dp != y->layout.dp || x->layout.ep != y->layout.ep ||
        x->layout.replicas != y->layout.replicas || x->seqs != y->seqs || x->step_tokens != y->step_tokens)
        fail_msg("%s: %lld GPUs TP%lld PP%lld x%lld seqs %lld step %lld, but %lld GPUs TP%lld PP%lld x%lld seqs %lld "
                 "step %lld",
                 what, (long long)x->gpus, (long long)x->layout.tp, (long long)x->layout.pp,
                 (long long)x->layout.replicas, (long long)x->seqs, (long long)x->step_tokens, (long long)y->gpus,
                 (long long)y->layout.tp, (long long)y->layout.pp, (long long)y->layout.replicas, (long long)y->seqs,
                 (long long)y->step_tokens);
    assert_true(fabs(x->point.tpot_s / y->point.tpot_s - 1) < 1e-9 || isnan(x->point.tpot_s));
    assert_true(fabs(x->point.saturation_per_s / y->point.saturation_per_s - 1) < 1e-9);
}
