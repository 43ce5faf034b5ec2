#include "tests/server.h"

void server_open(struct server *b, const char *model, const char *hw, enum step_fidelity f)
{
    struct err e = {0};
    b->arena = arena_open();
    if (model_load(b->arena, model, NULL, 0, &b->model, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(b->arena, hw, &b->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct step_setup setup = {
        .model = &b->model, .hw = &b->hw, .layout = {.tp = 1}, .fidelity = f, .block_tokens = 16};
    if (mix_compile(b->arena, &setup, &b->plan, &e) != ERR_OK) fail_msg("%s", e.text);
}

struct simulate_setup server_setup(const struct server *b, const struct workload *w, enum simulate_policy p)
{
    return (struct simulate_setup){.work = w,
                                   .plan = b->plan,
                                   .policy = p,
                                   .budget_tokens = 2048,
                                   .max_seqs = 256,
                                   .blocks = 30011,
                                   .block_tokens = 16,
                                   .max_len_tokens = 131072,
                                   .replicas = 1};
}

struct simulate_result server_run(struct arena *a, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    if (simulate_run(a, s, &r, &e) != ERR_OK) fail_msg("%s", e.text);
    return r;
}

struct workload server_make(struct arena *a, double rate, int64_t clients, int64_t n, const char *prompt,
                            const char *output, uint64_t seed)
{
    struct workload w = {.n = 0};
    struct err e = {0};
    struct workload_spec s = {
        .rate_per_s = rate, .concurrency = clients, .requests = n, .turns = 1, .samples = 1, .seed = seed};
    if (workload_length_parse(a, prompt, &s.prompt, &e) != ERR_OK ||
        workload_length_parse(a, output, &s.output, &e) != ERR_OK || workload_make(a, &s, &w, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return w;
}
