#include "tests/steady_settings.h"

#include <stdio.h>

void setting_open(struct config *c, const struct setting *x, int64_t requests)
{
    struct err e = {0};
    *c = (struct config){.arena = arena_open()};
    must(model_load(c->arena, x->model, NULL, 0, &c->model, &e), &e);
    must(hw_load(c->arena, x->gpu, &c->hw, &e), &e);
    const struct layout all = {.tp = 1, .dp = x->groups, .ep = x->ep, .pp = 1, .per_node = x->groups};
    const struct step_setup step = {.model = &c->model,
                                    .hw = &c->hw,
                                    .layout = layout_whole(&all),
                                    .latency = {.link_s = 7e-7, .fabric_s = 9e-6},
                                    .fidelity = STEP_ROOFLINE,
                                    .block_tokens = 16};
    must(mix_compile(c->arena, &step, &c->plan, &e), &e);
    struct workload_spec spec = {.rate_per_s = 1, .requests = requests, .turns = 1, .samples = 1, .seed = 17};
    must(workload_length_parse(c->arena, x->prompt, &spec.prompt, &e), &e);
    must(workload_length_parse(c->arena, x->output, &spec.output, &e), &e);
    must(workload_make(c->arena, &spec, &c->work, &e), &e);
    must(steady_lengths_of_work(c->arena, &c->work, 0, &c->lengths, &e), &e);
    c->steady = (struct steady_setup){.plan = c->plan,
                                      .overhead_s = x->overhead_s,
                                      .policy = x->policy,
                                      .budget_tokens = x->tokens * x->groups,
                                      .max_seqs = x->seqs * x->groups,
                                      .blocks = 20011 * x->groups,
                                      .block_tokens = 16,
                                      .groups = x->groups,
                                      .watermark_frac = x->policy == SIMULATE_FCFS ? .01 : 0,
                                      .replicas = 1,
                                      .route = SIMULATE_LEAST_LOADED,
                                      .lengths = &c->lengths,
                                      .rate_per_s = 1e9,
                                      .arrival_cv2 = 1,
                                      .ttft_limit_s = (double)NAN,
                                      .tpot_limit_s = (double)NAN};
    c->simulated = (struct simulate_setup){.work = &c->work,
                                           .plan = c->plan,
                                           .overhead_s = x->overhead_s,
                                           .policy = x->policy,
                                           .budget_tokens = x->tokens * x->groups,
                                           .max_seqs = x->seqs * x->groups,
                                           .groups = x->groups,
                                           .blocks = 20011 * x->groups,
                                           .block_tokens = 16,
                                           .max_len_tokens = WORKLOAD_TOKENS_MAX,
                                           .watermark_frac = c->steady.watermark_frac,
                                           .replicas = 1,
                                           .route = SIMULATE_LEAST_LOADED};
    (void)snprintf(c->name, sizeof c->name,
                   "%s in %lld groups, EP %lld, %s in, %s out, %lld sequences, %lld tokens, %d", x->model,
                   (long long)x->groups, (long long)x->ep, x->prompt, x->output, (long long)x->seqs,
                   (long long)x->tokens, (int)x->policy);
}

/* Answers a second where requests come four times as fast as they are answered. */
double setting_most_per_s(const struct setting *x, double about_per_s)
{
    struct config c;
    setting_open(&c, x, 5 * x->seqs * x->groups > 2000 ? 5 * x->seqs * x->groups : 2000);
    config_hasten(&c, 4 * about_per_s);
    const struct simulate_result q = config_simulate(c.arena, &c.simulated);
    const double found = config_answers_per_s(c.arena, &q, .3, .8);
    arena_close(c.arena);
    return found;
}

static void length_text(uint64_t *s, double low, double high, char *out, size_t cap)
{
    const double mean = floor(config_between(s, low, high));
    switch ((int)(config_uniform(s) * 3)) {
    case 0: (void)snprintf(out, cap, "lognormal:%.0f,%.2f,max=20000", mean, .3 + .5 * config_uniform(s)); break;
    case 1: (void)snprintf(out, cap, "exponential:%.0f", mean); break;
    default: (void)snprintf(out, cap, "uniform:%.0f..%.0f", ceil(.3 * mean), floor(1.7 * mean)); break;
    }
}

void setting_draw(int i, struct setting *x, char text[2][64])
{
    static const char *const MODELS[] = {"deepseek-v3", "kimi-k2.5", "qwen3-235b-a22b", "glm-4.5", "qwen3-30b-a3b"};
    static const int64_t GROUPS[] = {2, 4, 8, 16}, TOKENS[] = {1024, 2048, 4096, 8192};
    uint64_t s = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1) + 4099;
    for (int k = 0; k < 10; k++) (void)config_uniform(&s);
    const int64_t groups = GROUPS[i % 4];
    length_text(&s, 100, 3000, text[0], 64);
    length_text(&s, 40, 400, text[1], 64);
    *x = (struct setting){.model = MODELS[(int)(config_uniform(&s) * 5)],
                          .gpu = groups > 8 ? "gb200-nvl72" : "h200-sxm",
                          .prompt = text[0],
                          .output = text[1],
                          .groups = groups,
                          .ep = config_uniform(&s) < .7 ? groups : 1,
                          .seqs = (int64_t)config_between(&s, 12, 120),
                          .tokens = TOKENS[(int)(config_uniform(&s) * 4)],
                          .policy = i % 5 == 4 ? SIMULATE_FCFS : SIMULATE_CHUNKED};
    x->overhead_s = config_uniform(&s) < .5 ? 0 : config_between(&s, .001, .005);
}
