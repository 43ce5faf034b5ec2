/* Attention groups at equilibrium: what they serve and how long a token takes against the simulator, in which each has
 * a queue of its own. RIDGE_STEADY=N looks at N settings and shows them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/steady_parts.h"
#include "tests/steady_config.h"

#define COUNT(x) (sizeof(x) / sizeof((x)[0]))

/* ---- against the simulator ---- */

struct setting {
    const char *model, *gpu, *prompt, *output;
    int64_t groups, ep, seqs, tokens;
    enum simulate_policy policy;
    double overhead_s;
};

static void open_setting(struct config *c, const struct setting *x, int64_t requests)
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
static double most_per_s(const struct setting *x, double about_per_s)
{
    struct config c;
    open_setting(&c, x, 5 * x->seqs * x->groups > 2000 ? 5 * x->seqs * x->groups : 2000);
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

static void draw(int i, struct setting *x, char text[2][64])
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

/* Saturation and, at six tenths of it, tokens within a tenth of the simulator's; up to it a token takes longer the
 * more comes, and beyond it there is no steady state. */
static void test_groups_saturate(void **state)
{
    (void)state;
    enum { RATES = 24 };
    const char *const asked = getenv("RIDGE_STEADY");
    const int n = asked && strtol(asked, NULL, 10) > 0 ? (int)strtol(asked, NULL, 10) : 10;
    int far = 0;
    for (int i = 0; i < n; i++) {
        struct setting x;
        struct config c;
        struct simulate_spread tpot;
        struct err e = {0};
        char text[2][64];
        draw(i, &x, text);
        open_setting(&c, &x, 2500);
        must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
        const double paper = config_solve(c.arena, &c.steady).saturation_rate_per_s, most = most_per_s(&x, paper);
        double before_s = 0;
        for (int k = 1; k < RATES; k++) {
            c.steady.rate_per_s = paper * k / RATES;
            const struct steady_result r = config_solve(c.arena, &c.steady);
            assert_false(r.saturated);
            if (!(r.tpot_s.mean > before_s * .99))
                fail_msg("%s: a token takes %g, before %g", c.name, r.tpot_s.mean, before_s);
            before_s = fmax(before_s, r.tpot_s.mean);
        }
        config_hasten(&c, .6 * fmin(most, paper));
        c.steady.rate_per_s = .6 * fmin(most, paper);
        const struct steady_result r = config_solve(c.arena, &c.steady);
        const struct simulate_result q = config_simulate(c.arena, &c.simulated);
        must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
        const bool good = fabs(paper / most - 1) < .1 && fabs(r.tpot_s.p50 / tpot.p50 - 1) < .1;
        far += !good;
        if (asked || !good)
            print_message("%s: %.4g a second, simulated %.4g; a token %.4g s, simulated %.4g\n", c.name, paper, most,
                          r.tpot_s.p50, tpot.p50);
        arena_close(c.arena);
    }
    if (far > n / 10) fail_msg("%d of %d settings are off by more than a tenth", far, n);
}

/* Whether queues grow where so many come. */
static bool grows(const struct setting *x, int64_t requests, double rate_per_s)
{
    struct config c;
    open_setting(&c, x, requests);
    config_hasten(&c, rate_per_s);
    const struct simulate_result q = config_simulate(c.arena, &c.simulated);
    arena_close(c.arena);
    return q.growing;
}

/* Answers of one length end in the order in which they began, so that requests are dealt in turn: the rate at which
 * queues begin to grow, and tokens up to it, within a tenth of the simulator's (that queues grow is said where a
 * twentieth of all wait). Places bind but in the last two. */
static void test_one_length(void **state)
{
    (void)state;
    enum { RATES = 24 };
    static const struct setting SETTINGS[] = {
        {"deepseek-v3", "h200-sxm", "1000", "200", 8, 8, 64, 2048, SIMULATE_CHUNKED, 0},
        {"qwen3-235b-a22b", "h200-sxm", "uniform:75..425", "62", 2, 2, 88, 8192, SIMULATE_CHUNKED, .002},
        {"glm-4.5", "h200-sxm", "600", "150", 2, 2, 256, 4096, SIMULATE_CHUNKED, 0},
        {"kimi-k2.5", "h200-sxm", "382", "72", 4, 1, 71, 8192, SIMULATE_CHUNKED, 0},
        {"qwen3-30b-a3b", "gb200-nvl72", "813", "54", 16, 1, 18, 2048, SIMULATE_CHUNKED, .003},
        {"deepseek-v3", "gb200-nvl72", "uniform:200..1200", "100", 16, 16, 32, 2048, SIMULATE_CHUNKED, 0},
        {"qwen3-30b-a3b", "h200-sxm", "700", "100", 4, 4, 256, 1024, SIMULATE_CHUNKED, 0},
        {"deepseek-v3", "h200-sxm", "uniform:500..1500", "60", 8, 8, 128, 2048, SIMULATE_CHUNKED, 0},
    };
    for (size_t i = 0; i < COUNT(SETTINGS); i++) {
        const struct setting *x = &SETTINGS[i];
        const int64_t places = x->seqs * x->groups, requests = places > 500 ? 24 * places : 12000;
        struct config c;
        struct err e = {0};
        double before_s = 0;
        open_setting(&c, x, 6000);
        must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
        const struct steady_result most = config_solve(c.arena, &c.steady);
        const double paper = most.saturation_rate_per_s;
        assert_int_equal(most.by, i + 2 < COUNT(SETTINGS) ? STEADY_SEQS : STEADY_COMPUTE);
        if (grows(x, requests, .9 * paper)) fail_msg("%s: not yet saturated at %g", c.name, .9 * paper);
        if (!grows(x, requests, 1.15 * paper)) fail_msg("%s: beyond saturation at %g", c.name, 1.15 * paper);
        for (int k = 1; k < RATES; k++) {
            c.steady.rate_per_s = paper * k / RATES;
            const struct steady_result r = config_solve(c.arena, &c.steady);
            assert_false(r.saturated);
            if (!(r.tpot_s.mean > before_s * .99))
                fail_msg("%s: a token takes %g, before %g", c.name, r.tpot_s.mean, before_s);
            before_s = fmax(before_s, r.tpot_s.mean);
        }
        for (int k = 1; k < 4; k++) {
            struct config d;
            struct simulate_spread tpot;
            open_setting(&d, x, 6000);
            c.steady.rate_per_s = .28 * k * paper;
            config_hasten(&d, c.steady.rate_per_s);
            const struct steady_result r = config_solve(c.arena, &c.steady);
            const struct simulate_result q = config_simulate(d.arena, &d.simulated);
            must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
            near_to(r.tpot_s.p50, tpot.p50, .1, d.name);
            arena_close(d.arena);
        }
        arena_close(c.arena);
    }
}

/* The known mistake: the most prompts that one of the groups has by chance, however many tokens a step has room for.
 * Saturation is then a third too low, and plans are refused that serve what is asked. */
static void test_unbounded(void **state)
{
    (void)state;
    const struct setting x = {"deepseek-v3",    "h200-sxm", "uniform:400..1600", "uniform:60..340", 8, 8, 256, 1024,
                              SIMULATE_CHUNKED, 0};
    struct config c;
    struct err e = {0};
    open_setting(&c, &x, 100);
    must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
    const double paper = config_solve(c.arena, &c.steady).saturation_rate_per_s, most = most_per_s(&x, paper);
    near_to(paper, most, .1, "saturation of groups");
    struct steady_times *t = c.steady.times;
    const double n = t->budget_tokens * c.lengths.steps / (c.lengths.prompt_tokens + c.lengths.steps);
    const double room = t->budget_tokens - n, prompts = room / t->long_tokens;
    double term = exp(-prompts), below = term, largest = 0;
    for (int m = 1; m < 60; m++) {
        largest += 1 - pow(below, 8);
        term *= prompts / m;
        below += term;
    }
    const struct steady_others others = {.n = 1, .most = {largest * t->long_tokens}, .sum = {7 * room}, .part = {1}};
    near_to(n / (c.lengths.steps * steady_times_step_s(t, n, room)) * 8, paper, .02, "all steps full");
    t->others = &others;
    const double unbounded = n / (c.lengths.steps * steady_times_step_s(t, n, room)) * 8;
    if (!(unbounded < .8 * most)) fail_msg("unbounded %g, simulated %g", unbounded, most);
    arena_close(c.arena);
}

/* A request lives in one group, so the longest one has a group's part of the cache, not all of it. */
static void test_longest(void **state)
{
    (void)state;
    const struct setting x = {"deepseek-v3",    "h200-sxm", "uniform:400..1600", "uniform:60..340", 8, 8, 256, 1024,
                              SIMULATE_CHUNKED, 0};
    struct config c;
    struct steady_result r;
    struct err e = {0};
    open_setting(&c, &x, 100);
    c.steady.rate_per_s = .5;
    const int64_t longest = (int64_t)ceil(c.lengths.longest_tokens / (double)c.steady.block_tokens);
    c.steady.blocks = longest * x.groups;
    must(steady_solve(c.arena, &c.steady, &r, &e), &e);
    c.steady.blocks -= x.groups;
    assert_true((double)(c.steady.blocks * c.steady.block_tokens) > c.lengths.longest_tokens);
    assert_int_equal(steady_solve(c.arena, &c.steady, &r, &e), ERR_RANGE);
    assert_non_null(strstr(e.text, "attention group"));
    arena_close(c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_groups_saturate), cmocka_unit_test(test_one_length),
                                       cmocka_unit_test(test_unbounded), cmocka_unit_test(test_longest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
