/* Attention groups at equilibrium: what they serve and how long a token takes against the simulator, in which each has
 * a queue of its own. RIDGE_STEADY=N looks at N settings and shows them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/steady_parts.h"
#include "tests/steady_settings.h"

#define COUNT(x) (sizeof(x) / sizeof((x)[0]))

/* ---- against the simulator ---- */

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
        setting_draw(i, &x, text);
        setting_open(&c, &x, 2500);
        must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
        const double paper = config_solve(c.arena, &c.steady).saturation_rate_per_s,
                     most = setting_most_per_s(&x, paper);
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
    setting_open(&c, x, requests);
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
        setting_open(&c, x, 6000);
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
            setting_open(&d, x, 6000);
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
    setting_open(&c, &x, 100);
    must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
    const double paper = config_solve(c.arena, &c.steady).saturation_rate_per_s, most = setting_most_per_s(&x, paper);
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
    setting_open(&c, &x, 100);
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
