/* The steady state by hand: what is exact, and laws that hold whatever the setting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/steady_config.h"

/* One client is alone: its prompt whole, then steps of one sequence; one request a sum of both. */
static void test_alone(void **state)
{
    (void)state;
    for (int p = SIMULATE_STATIC; p <= SIMULATE_CHUNKED; p++) {
        struct config c;
        config_open_fixed(&c, (enum simulate_policy)p, "1013", "61");
        c.steady.load = STEADY_CLOSED;
        c.steady.concurrency = 1;
        const struct steady_result r = config_solve(c.arena, &c.steady);
        const double first_s = config_step_s(c.arena, c.plan, 0, 0, 1013);
        const double one_s = config_step_s(c.arena, c.plan, 1, 1013 + .5 + 30, 0);
        near_to(r.ttft_s.mean, first_s, .02, "TTFT"); /* between points of the grid */
        near_to(r.tpot_s.mean, one_s, .005, "TPOT");
        near_to(r.rate_per_s, 1 / (first_s + 60 * one_s), .01, "rate");
        near_to(r.output_tok_per_s, 61 * r.rate_per_s, 1e-9, "tokens");
        arena_close(c.arena);
    }
}

/* Seven clients of one length are a cycle. Whole prompts: four in a step of 4099 tokens, three in the next, then sixty
 * steps of all. Pieces: the same two steps, of those who have answers then, beside the others; 61 steps in all. */
static void test_cycle(void **state)
{
    (void)state;
    for (int p = SIMULATE_FCFS; p <= SIMULATE_CHUNKED; p++) {
        struct config c;
        config_open_fixed(&c, (enum simulate_policy)p, "1013", "61");
        const double context = 1013.5 + 30;
        config_close_loop(&c, 7);
        c.steady.concurrency = 7;
        const struct steady_result r = config_solve(c.arena, &c.steady);
        double first_s, second_s, cycle_s;
        if (p == SIMULATE_FCFS) {
            first_s = 4 * config_step_s(c.arena, c.plan, 0, 0, 1013) /
                      4; /* one prompt, to see that four are not four of it */
            near_to(r.ttft_s.mean / first_s, 2.7, .25, "others in the step");
            struct mix x;
            struct err e = {0};
            double v[MIX_VALUES_N];
            must(mix_open(c.arena, c.plan, &x, &e), &e);
            mix_prefill(&x, 4, 1013, 0);
            mix_eval(&x, v);
            first_s = v[MIX_step_s];
            mix_clear(&x);
            mix_prefill(&x, 3, 1013, 0);
            mix_eval(&x, v);
            second_s = v[MIX_step_s];
            cycle_s = first_s + second_s + 60 * config_step_s(c.arena, c.plan, 7, context, 0);
            near_to(r.ttft_s.mean, (4 * first_s + 3 * (first_s + second_s)) / 7, .02, "first tokens");
            near_to(r.tpot_s.mean, (cycle_s - (4 * first_s + 3 * (first_s + second_s)) / 7) / 60, .01, "tokens");
            near_to(r.rate_per_s, 7 / cycle_s, .01, "rate");
        } else {
            assert_true(r.ttft_s.mean < r.latency_s.mean / 3);
            near_to(r.rate_per_s * (r.ttft_s.mean + 60 * r.step_s), 7, 1e-6, "Little");
        }
        arena_close(c.arena);
    }
}

/* Little's law, and what goes in comes out: decoding = rate * (output - 1) * time of a token. */
static void test_little(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        struct config c;
        config_open(&c, i % 2 ? SIMULATE_FCFS : SIMULATE_CHUNKED, i, 500);
        c.steady.replicas = 1 + i % 3;
        c.steady.rate_per_s = 1e9;
        const double most = config_solve(c.arena, &c.steady).saturation_rate_per_s;
        double before_s = 0, ttft_s = 0;
        for (int k = 1; k < 5; k++) {
            c.steady.rate_per_s = most * k / 5.3;
            const struct steady_result r = config_solve(c.arena, &c.steady);
            near_to(r.decoding, r.rate_per_s / (double)c.steady.replicas * c.lengths.steps * r.step_s, 1e-9, c.name);
            near_to(r.rate_per_s, c.steady.rate_per_s, 1e-12, "rate");
            assert_true(r.tpot_s.mean >= before_s * .98 && r.ttft_s.mean >= ttft_s * .95); /* grow with the rate */
            assert_true(r.utilisation > 0 && r.utilisation <= 1);
            before_s = r.tpot_s.mean;
            ttft_s = r.ttft_s.mean;
        }
        arena_close(c.arena);
    }
}

/* At and above saturation: said, by what, and no latencies. */
static void test_saturated(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_CHUNKED, "907", "211");
    const double most = config_solve(c.arena, &c.steady).saturation_rate_per_s;
    for (int k = 0; k < 2; k++) {
        c.steady.rate_per_s = most * (k ? 1.0001 : 17);
        const struct steady_result r = config_solve(c.arena, &c.steady);
        assert_true(r.saturated);
        assert_true(isnan(r.ttft_s.mean) && isnan(r.tpot_s.p50) && isnan(r.batch) && isnan(r.goodput_per_s));
        assert_true(isnan(r.output_tok_per_s) && isnan(r.utilisation));
        near_to(r.saturation_rate_per_s, most, 1e-9, "rate");
    }
    c.steady.rate_per_s = most * .6;
    assert_false(config_solve(c.arena, &c.steady).saturated);
    c.steady.max_seqs = 7;
    assert_int_equal(config_solve(c.arena, &c.steady).by, STEADY_SEQS);
    c.steady.max_seqs = 256;
    c.steady.blocks = 331;
    assert_int_equal(config_solve(c.arena, &c.steady).by, STEADY_BLOCKS);
    arena_close(c.arena);
}

/* q = m/P where answers end in bunches, exp(-k) of it where they end independently. */
static void test_again(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_CHUNKED, "907", "211");
    near_to(steady_again_of(&c.lengths, 3.7), 210. / 907, 1e-9, "of one length");
    near_to(steady_vain_of(&c.lengths, 603, 31), .5 * (304. / 907) * (603. / 907) / (exp(2 * 31. / 210) - 1), 1e-9,
            "first pieces");
    assert_true(!(steady_vain_of(&c.lengths, 911, 31) > 0));  /* prompts no longer than a step */
    assert_true(!(steady_rest_of(&c.lengths, 1301, 31) > 0)); /* answers of one length */
    arena_close(c.arena);
    /* a whole prompt and 394 tokens of the next: 394/907 (1 - 394/907)^2, of steps of which 31 answers' prompts fill a
     * part; none where they fill steps, and none where two prompts fit */
    config_open_fixed(&c, SIMULATE_CHUNKED, "907", "exponential:211");
    const double x = 394. / 907, filled = 31 / c.lengths.steps * 907 / 1301;
    near_to(steady_rest_of(&c.lengths, 1301, 31), x * (1 - x) * (1 - x) * (1 - filled * filled), 1e-6, "rest");
    assert_true(!(steady_rest_of(&c.lengths, 1301, 307) > 0));
    assert_true(!(steady_rest_of(&c.lengths, 1823, 31) > 0));
    arena_close(c.arena);
    config_open_fixed(&c, SIMULATE_CHUNKED, "907", "exponential:211");
    near_to(steady_again_of(&c.lengths, 0), (c.lengths.output_tokens - 1) / c.lengths.prompt_tokens, 1e-9,
            "nothing kept");
    near_to(steady_again_of(&c.lengths, 1.3) / steady_again_of(&c.lengths, 0), exp(-1.3), 1e-4, "independent");
    arena_close(c.arena);
}

/* One client whose prompt takes three steps: 4099 tokens each and the rest, then steps of one. As many that steps are
 * full for ever: n = C m/(P + m) decode, and the others wait. */
static void test_pieces(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_CHUNKED, "10007", "exponential:61");
    const double steps = c.lengths.steps;
    config_close_loop(&c, 1);
    const struct steady_result r = config_solve(c.arena, &c.steady);
    struct mix x;
    struct err e = {0};
    double first_s = 0, v[MIX_VALUES_N];
    must(mix_open(c.arena, c.plan, &x, &e), &e);
    for (int k = 0; k < 3; k++) {
        mix_clear(&x);
        mix_prefill(&x, 1, k < 2 ? 4099 : 10007 - 2 * 4099, 4099. * k);
        mix_eval(&x, v);
        first_s += v[MIX_step_s];
    }
    near_to(r.ttft_s.mean, first_s, .03, "three steps");
    near_to(r.ttft_s.p50, first_s, .03, "three steps");
    near_to(r.rate_per_s * (r.ttft_s.mean + steps * r.step_s), 1, 1e-6, "Little");
    config_close_loop(&c, 251);
    const struct steady_result full = config_solve(c.arena, &c.steady);
    const double n = 4099 * steps / (10007 + steps);
    c.steady.load = STEADY_OFFLINE;
    c.steady.requests = 997;
    near_to(full.rate_per_s, config_solve(c.arena, &c.steady).saturation_rate_per_s, .02, "full steps");
    near_to(full.decoding, n, .05, "as many as full steps have room for");
    near_to(full.rate_per_s * full.ttft_s.mean, 251 - n, .01, "the others wait");
    arena_close(c.arena);
}

/* Whole prompts one by one, a Poisson number of them between two decode steps, of mean L = n/m: half of the others are
 * in front, and none with the chance (1 - exp(-L))/L. */
static void test_fronts(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_FCFS, "3001", "exponential:61");
    const double one_s = config_step_s(c.arena, c.plan, 0, 0, 3001);
    static const int64_t CLIENTS[] = {7, 17, 53};
    for (size_t i = 0; i < 3; i++) {
        config_close_loop(&c, (size_t)CLIENTS[i]);
        c.steady.ttft_limit_s = 1.2 * one_s;
        const struct steady_result r = config_solve(c.arena, &c.steady);
        const double mean = (double)CLIENTS[i] / c.lengths.steps;
        near_to(r.ttft_s.mean, one_s * (1 + mean / 2), .04, "half are in front");
        near_to(r.good_frac, -expm1(-mean) / mean, .02, "none in front");
    }
    arena_close(c.arena);
}

/* Single tokens of fixed prompts under fcfs, one at a time: M/D/1 by Pollaczek-Khinchine. */
static void test_prompts_alone(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_FCFS, "3001", "1");
    c.steady.budget_tokens = 3001;
    const double service_s = config_step_s(c.arena, c.plan, 0, 0, 3001);
    for (int k = 0; k < 3; k++) {
        const double rho = .2 + .2 * k;
        c.steady.rate_per_s = rho / service_s;
        const struct steady_result r = config_solve(c.arena, &c.steady);
        const double wanted_s = service_s * (1 + rho / (2 * (1 - rho)));
        near_to(r.ttft_s.mean, wanted_s, .12, "M/D/1");
        near_to(r.utilisation, rho, .03, "utilisation");
        assert_true(isnan(r.tpot_s.mean));
    }
    arena_close(c.arena);
}

/* Goodput is between nothing and all of the rate, and half of it at the median of one of the two. */
static void test_goodput(void **state)
{
    (void)state;
    struct config c;
    config_open_fixed(&c, SIMULATE_CHUNKED, "lognormal:907,0.7", "exponential:211");
    c.steady.rate_per_s = .5 * config_solve(c.arena, &c.steady).saturation_rate_per_s;
    const struct steady_result r = config_solve(c.arena, &c.steady);
    near_to(r.goodput_per_s, r.rate_per_s, 1e-9, "without limits");
    c.steady.ttft_limit_s = r.ttft_s.p50;
    near_to(config_solve(c.arena, &c.steady).good_frac, .5, .02, "TTFT");
    c.steady.ttft_limit_s = (double)NAN;
    c.steady.tpot_limit_s = r.tpot_s.p90;
    near_to(config_solve(c.arena, &c.steady).good_frac, .9, .02, "TPOT");
    c.steady.tpot_limit_s = 1e-9;
    assert_true(config_solve(c.arena, &c.steady).good_frac < .02);
    arena_close(c.arena);
}

/* Distributions as nodes: moments of what a workload draws; fixed lengths are one node. */
static void test_lengths(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"lognormal:700,0.9", "exponential:313", "uniform:10..501", "pareto:300,2.5",
                                        "gamma:607,0.8"};
    struct arena *a = arena_open();
    struct err e = {0};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        struct workload w;
        struct steady_lengths drawn, nodes;
        struct workload_spec s = {.rate_per_s = 1, .requests = 200000, .turns = 1, .samples = 1, .seed = 5};
        must(workload_length_parse(a, TEXTS[i], &s.prompt, &e), &e);
        must(workload_length_parse(a, TEXTS[i], &s.output, &e), &e);
        must(workload_make(a, &s, &w, &e), &e);
        must(steady_lengths_of_work(a, &w, 0, &drawn, &e), &e);
        must(steady_lengths_of(a, &s.prompt, &s.output, 0, &nodes, &e), &e);
        near_to(nodes.prompt_tokens, drawn.prompt_tokens, .01, TEXTS[i]);
        near_to(nodes.steps, drawn.steps, .01, TEXTS[i]);
        near_to(nodes.steps_square, drawn.steps_square, i == 3 ? .2 : .04, TEXTS[i]);
        near_to(nodes.inverse, drawn.inverse, .1, TEXTS[i]);
        double weight = 0, mean = 0;
        for (size_t k = 0; k < nodes.n; k++) {
            weight += nodes.node[k].weight;
            mean += nodes.node[k].weight * nodes.node[k].output_tokens;
        }
        near_to(weight, 1, 1e-9, "weights");
        near_to(mean, nodes.output_tokens, 1e-9, "mean");
        must(steady_lengths_of(a, &s.prompt, &s.output, .37, &nodes, &e), &e);
        near_to(nodes.prompt_tokens + nodes.cached_tokens, drawn.prompt_tokens, .01, "with what is cached");
        near_to(nodes.cached_tokens / (nodes.prompt_tokens + nodes.cached_tokens), .37, .01, "cached");
    }
    arena_close(a);
}

/* No more are in flight than ask, and a mean and percentiles are of one distribution. */
static void test_clients_agree(void **state)
{
    (void)state;
    static const double CLIENTS[] = {1, 7, 31, 127};
    for (size_t i = 0; i < 4 * 4; i++) {
        struct config c;
        const bool fixed = i / 4 % 2 == 0;
        config_open_fixed(&c, i / 8 ? SIMULATE_FCFS : SIMULATE_CHUNKED, fixed ? "1201" : "lognormal:1201,0.5",
                          fixed ? "307" : "lognormal:307,0.5");
        c.steady.load = STEADY_CLOSED;
        c.steady.concurrency = CLIENTS[i % 4];
        const struct steady_result r = config_solve(c.arena, &c.steady);
        assert_true(r.batch <= CLIENTS[i % 4] * (1 + 1e-9));
        near_to(r.rate_per_s * r.latency_s.mean, CLIENTS[i % 4], .01, "Little");
        assert_false(r.ttft_s.p50 <= r.ttft_s.p90 && r.ttft_s.p99 < r.ttft_s.mean * (1 - 1e-9));
        assert_false(r.latency_s.p99 < r.latency_s.mean * (1 - 1e-9));
        if (fixed && i % 4 == 0) {
            near_to(r.ttft_s.p50, r.ttft_s.mean, 1e-9, "one TTFT");
            near_to(r.ttft_s.p99, r.ttft_s.mean, 1e-9, "one TTFT");
            near_to(r.latency_s.p50, r.latency_s.mean, 1e-9, "one latency");
            near_to(r.latency_s.p99, r.latency_s.mean, 1e-9, "one latency");
        }
        arena_close(c.arena);
    }
}

/* Calibrated times, of the simulator and of the steady state, and several replicas in turn. */
static void test_calibrated(void **state)
{
    (void)state;
    struct config c;
    struct step *step;
    struct source source;
    struct err e = {0};
    struct simulate_spread tpot;
    config_open(&c, SIMULATE_CHUNKED, 5, 3000);
    must(model_load(c.arena, "llama-3.1-8b", NULL, 0, &c.model, &e), &e);
    must(hw_load(c.arena, "h100-sxm", &c.hw, &e), &e);
    const struct step_setup setup = {
        .model = &c.model, .hw = &c.hw, .layout = {.tp = 1}, .fidelity = STEP_BOUND, .block_tokens = 16};
    must(mix_compile(c.arena, &setup, &c.plan, &e), &e);
    must(step_compile(c.arena, &setup, &step, &e), &e);
    must(source_open(c.arena, &c.hw, NULL, NULL, &source, &e), &e);
    const struct calibrated_setup of = {.step = step, .source = &source, .mix = c.plan};
    must(calibrated_open(c.arena, &of, &c.steady.calibrated, &e), &e);
    c.steady.plan = c.simulated.plan = c.plan;
    c.simulated.calibrated = c.steady.calibrated;
    c.steady.replicas = c.simulated.replicas = 2;
    must(steady_times_open(c.arena, &c.steady, &c.steady.times, &e), &e);
    config_hasten(&c, .5 * config_solve(c.arena, &c.steady).saturation_rate_per_s);
    const struct steady_result r = config_solve(c.arena, &c.steady);
    const struct simulate_result q = config_simulate(c.arena, &c.simulated);
    must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
    near_to(r.tpot_s.mean, tpot.mean, .05, "TPOT");
    c.steady.times = NULL;
    near_to(config_solve(c.arena, &c.steady).tpot_s.mean, r.tpot_s.mean, 1e-9, "times that are kept");
    /* of another budget, with what the first one knows and without; a budget below the longest prompt and one above */
    struct steady_setup own = c.steady, shared = c.steady;
    must(steady_times_open(c.arena, &c.steady, &shared.times, &e), &e);
    (void)config_solve(c.arena, &shared);
    static const int64_t BUDGET[] = {512, 16384};
    for (size_t i = 0; i < 2; i++) {
        own.budget_tokens = shared.budget_tokens = BUDGET[i];
        must(steady_times_open(c.arena, &shared, &shared.times, &e), &e);
        const struct steady_result x = config_solve(c.arena, &own), y = config_solve(c.arena, &shared);
        near_to(y.ttft_s.p95, x.ttft_s.p95, 1e-12, "TTFT with shared times");
        near_to(y.tpot_s.mean, x.tpot_s.mean, 1e-12, "TPOT with shared times");
    }
    arena_close(c.arena);
}

/* What is no question. */
static void test_refused(void **state)
{
    (void)state;
    struct config c;
    struct steady_result r;
    struct err e = {0};
    config_open_fixed(&c, SIMULATE_CHUNKED, "907", "211");
    struct steady_setup s = c.steady;
    s.blocks = 61; /* 976 tokens */
    assert_int_equal(steady_solve(c.arena, &s, &r, &e), ERR_RANGE);
    s = c.steady;
    s.rate_per_s = 0;
    assert_int_equal(steady_solve(c.arena, &s, &r, &e), ERR_RANGE);
    s.rate_per_s = (double)NAN;
    assert_int_equal(steady_solve(c.arena, &s, &r, &e), ERR_RANGE);
    s = c.steady;
    s.budget_tokens = 255;
    assert_int_equal(steady_solve(c.arena, &s, &r, &e), ERR_RANGE);
    s = c.steady;
    s.load = STEADY_CLOSED;
    assert_int_equal(steady_solve(c.arena, &s, &r, &e), ERR_RANGE);
    s.load = STEADY_OFFLINE;
    assert_int_equal(steady_solve(c.arena, &s, &r, &e), ERR_RANGE);
    arena_close(c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),     cmocka_unit_test(test_cycle),         cmocka_unit_test(test_little),
        cmocka_unit_test(test_saturated), cmocka_unit_test(test_again),         cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_fronts),    cmocka_unit_test(test_prompts_alone), cmocka_unit_test(test_goodput),
        cmocka_unit_test(test_lengths),   cmocka_unit_test(test_clients_agree), cmocka_unit_test(test_calibrated),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
