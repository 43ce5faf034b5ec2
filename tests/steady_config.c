#include "tests/steady_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A generator of its own: the configurations are the same everywhere. */
double config_uniform(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return (double)(*s >> 11) / 9007199254740992.; /* 2^53 */
}

double config_between(uint64_t *s, double low, double high) { return low * pow(high / low, config_uniform(s)); }

static void length_text(uint64_t *s, double low, double high, int64_t most, char *out, size_t cap)
{
    const double mean = floor(config_between(s, low, high));
    switch ((int)(config_uniform(s) * 4)) {
    case 0: (void)snprintf(out, cap, "%.0f", mean); break;
    case 1:
        (void)snprintf(out, cap, "lognormal:%.0f,%.2f,max=%lld", mean, .3 + config_uniform(s), (long long)most);
        break;
    case 2: (void)snprintf(out, cap, "exponential:%.0f", mean); break;
    default: (void)snprintf(out, cap, "uniform:%.0f..%.0f", ceil(.3 * mean), floor(1.7 * mean)); break;
    }
}

/* The i-th: a model, a device, lengths, a scheduler's limits; no arrivals yet. */
void config_open(struct config *c, enum simulate_policy policy, int i, int64_t requests)
{
    static const char *const MODELS[] = {"llama-3.1-8b", "qwen3-30b-a3b", "gemma-3-27b", "llama-2-13b",
                                         "rwkv6-finch-7b"},
                             *const DEVICES[] = {"h100-sxm", "h200-sxm", "l40s", "a100-sxm-80gb"};
    uint64_t s = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1) + 77;
    struct err e = {0};
    char prompt[64], output[64];
    for (int k = 0; k < 10; k++) (void)config_uniform(&s);
    *c = (struct config){.arena = arena_open()};
    const char *model = MODELS[(int)(config_uniform(&s) * 5)], *device = DEVICES[(int)(config_uniform(&s) * 4)];
    must(model_load(c->arena, model, NULL, 0, &c->model, &e), &e);
    must(hw_load(c->arena, device, &c->hw, &e), &e);
    const struct step_setup step = {
        .model = &c->model, .hw = &c->hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    must(mix_compile(c->arena, &step, &c->plan, &e), &e);
    length_text(&s, 50, 4000, 30000, prompt, sizeof prompt);
    length_text(&s, 16, 500, 8000, output, sizeof output);
    const int64_t seqs = config_uniform(&s) < .3 ? (int64_t)config_between(&s, 8, 64) : 256;
    const int64_t budget = (int64_t)fmax(config_between(&s, 512, 8192), (double)seqs);
    const double overhead_s = config_uniform(&s) < .5 ? 0 : config_between(&s, .0005, .005);
    struct workload_spec spec = {
        .rate_per_s = 1, .requests = requests, .turns = 1, .samples = 1, .seed = (uint64_t)i + 1};
    must(workload_length_parse(c->arena, prompt, &spec.prompt, &e), &e);
    must(workload_length_parse(c->arena, output, &spec.output, &e), &e);
    must(workload_make(c->arena, &spec, &c->work, &e), &e);
    must(steady_lengths_of_work(c->arena, &c->work, 0, &c->lengths, &e), &e);
    c->steady = (struct steady_setup){.plan = c->plan,
                                      .overhead_s = overhead_s,
                                      .policy = policy,
                                      .budget_tokens = budget,
                                      .max_seqs = seqs,
                                      .blocks = 20011,
                                      .block_tokens = 16,
                                      .watermark_frac = policy == SIMULATE_FCFS ? .01 : 0,
                                      .replicas = 1,
                                      .lengths = &c->lengths,
                                      .rate_per_s = 1e9,
                                      .arrival_cv2 = 1,
                                      .ttft_limit_s = (double)NAN,
                                      .tpot_limit_s = (double)NAN};
    c->simulated = (struct simulate_setup){.work = &c->work,
                                           .plan = c->plan,
                                           .overhead_s = overhead_s,
                                           .policy = policy,
                                           .budget_tokens = budget,
                                           .max_seqs = seqs,
                                           .blocks = 20011,
                                           .block_tokens = 16,
                                           .max_len_tokens = WORKLOAD_TOKENS_MAX,
                                           .watermark_frac = c->steady.watermark_frac,
                                           .replicas = 1};
    (void)snprintf(c->name, sizeof c->name, "%d: %s on %s, %s in, %s out, %lld sequences, %lld tokens", i, model,
                   device, prompt, output, (long long)seqs, (long long)budget);
}

void config_open_fixed(struct config *c, enum simulate_policy policy, const char *prompt, const char *output)
{
    struct workload_length p, o;
    struct err e = {0};
    config_open(c, policy, 3, 2);
    must(workload_length_parse(c->arena, prompt, &p, &e), &e);
    must(workload_length_parse(c->arena, output, &o, &e), &e);
    must(steady_lengths_of(c->arena, &p, &o, 0, &c->lengths, &e), &e);
    c->steady.overhead_s = 0;
    c->steady.max_seqs = 256;
    c->steady.budget_tokens = 4099;
}

struct steady_result config_solve(struct arena *a, const struct steady_setup *s)
{
    struct steady_result r;
    struct err e = {0};
    must(steady_solve(a, s, &r, &e), &e);
    return r;
}

struct simulate_result config_simulate(struct arena *a, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    must(simulate_run(a, s, &r, &e), &e);
    return r;
}

/* Arrivals made at one a second come so many times as fast. */
void config_hasten(struct config *c, double rate_per_s)
{
    for (size_t i = 0; i < c->work.n; i++) c->work.request[i].arrival_s /= rate_per_s;
    c->work.span_s /= rate_per_s;
    c->steady.rate_per_s = (double)c->work.n / c->work.span_s;
}

/* So many clients, each asking again as soon as it is answered. */
void config_close_loop(struct config *c, size_t clients)
{
    for (size_t i = 0; i < c->work.n; i++) {
        c->work.request[i].arrival_s = 0;
        c->work.request[i].next = i + clients < c->work.n ? (uint32_t)(i + clients) : WORKLOAD_NO_NEXT;
    }
    c->work.open = c->work.timed = false;
    c->work.first_n = clients;
    c->work.span_s = 0;
    c->steady.load = STEADY_CLOSED;
    c->steady.concurrency = (double)clients;
    c->steady.requests = (double)c->work.n;
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* Answers a second between two parts of them: without the beginning and the end of a run. */
double config_answers_per_s(struct arena *a, const struct simulate_result *q, double from, double to)
{
    double *end_s = arena_array(a, q->n, sizeof *end_s);
    assert_non_null(end_s);
    for (size_t k = 0; k < q->n; k++) end_s[k] = q->record[k].finish_s;
    qsort(end_s, q->n, sizeof *end_s, by_value);
    size_t i = (size_t)(from * (double)q->n), j = (size_t)(to * (double)q->n);
    while (i + 1 < j && !(end_s[i + 1] > end_s[i])) i++; /* from the end of a batch to that of another */
    while (j + 1 < q->n && !(end_s[j + 1] > end_s[j])) j++;
    return (double)(j - i) / (end_s[j] - end_s[i]);
}

double config_step_s(struct arena *a, struct mix_plan *plan, double decoding, double context, double prompt)
{
    struct mix x;
    struct err e = {0};
    double v[MIX_VALUES_N];
    must(mix_open(a, plan, &x, &e), &e);
    if (decoding > 0) mix_decode(&x, decoding, context);
    if (prompt > 0) mix_prefill(&x, 1, prompt, 0);
    mix_eval(&x, v);
    return v[MIX_step_s];
}
