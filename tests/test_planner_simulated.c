/* A plan on paper against the same requests in the scheduler. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "calc/serve/planner_verify.h"
#include "tests/planned.h"

static int by_size(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/* What a simulation of so many requests at a rate serves in the middle of its time, and the median of TPOT. */
static void simulated(struct asked *k, struct planner *p, const struct planner_unit *u, const struct planner_plan *plan,
                      struct workload_spec spec, double *per_s, double *tpot_s, double *ttft_s)
{
    struct err e = {0};
    struct workload w;
    struct simulate_result r;
    struct mix_plan *mixed;
    const struct step_setup setup = {.model = &k->model[0],
                                     .hw = &k->hw[0],
                                     .layout = u->layout,
                                     .latency = k->device[0].latency,
                                     .fidelity = STEP_ROOFLINE,
                                     .block_tokens = 16};
    must(mix_compile(k->a, &setup, &mixed, &e), &e);
    must(workload_make(k->a, &spec, &w, &e), &e);
    struct simulate_setup s = {.plan = mixed,
                               .work = &w,
                               .policy = SIMULATE_CHUNKED,
                               .budget_tokens = plan->step_tokens * u->layout.dp,
                               .max_seqs = plan->seqs * u->layout.dp,
                               .groups = u->layout.dp > 1 ? u->layout.dp : 0,
                               .memory = SIMULATE_PAGED,
                               .blocks = planner_blocks(p, u, plan) * u->layout.dp,
                               .block_tokens = 16,
                               .max_len_tokens = 32768,
                               .replicas = 1,
                               .route = SIMULATE_LEAST_LOADED};
    must(simulate_run(k->a, &s, &r, &e), &e);
    double *t = arena_array(k->a, r.n, sizeof *t), *v = arena_array(k->a, r.n, sizeof *v),
           *f = arena_array(k->a, r.n, sizeof *f);
    assert_true(t && v && f && r.n > 99);
    for (size_t i = 0; i < r.n; i++) {
        const struct simulate_record *x = &r.record[i];
        t[i] = x->finish_s;
        v[i] = (x->finish_s - x->first_s) / (x->output_tokens - 1);
        f[i] = x->first_s - x->arrival_s;
    }
    qsort(t, r.n, sizeof *t, by_size);
    qsort(v, r.n, sizeof *v, by_size);
    qsort(f, r.n, sizeof *f, by_size);
    *ttft_s = f[r.n / 2];
    *per_s = (double)(r.n / 2) / (t[r.n * 3 / 4] - t[r.n * 3 / 4 - r.n / 2]);
    *tpot_s = v[r.n / 2];
}

/* Stages and attention groups against the simulation: what they serve where others always wait, and a token below. */
static void test_simulated(void **state)
{
    static const struct {
        const char *model, *gpu, *prompt, *output;
        struct layout l;
        int64_t seqs, tokens;
        double rate, within; /* of TPOT */
    } CASES[] = {
        {"llama-3.1-70b", "h100-sxm", "1000", "200", {.tp = 4, .pp = 2, .per_node = 8}, 512, 512, 14, .1},
        {"llama-3.1-70b", "h100-sxm", "uniform:300..900", "131", {.tp = 2, .pp = 4, .per_node = 8}, 192, 512, 11, .1},
        {"llama-3.1-8b", "h100-sxm", "3001", "89", {.tp = 1, .pp = 2, .per_node = 8}, 128, 1024, 3, .1},
        {"llama-3.1-70b", "h100-sxm", "1000", "200", {.tp = 4, .pp = 2, .per_node = 8}, 256, 512, 21, .13},
        {"llama-3.1-70b", "h100-sxm", "2003", "797", {.tp = 1, .pp = 3, .per_node = 8}, 1024, 1024, .4, .1},
        {"deepseek-v3", "h200-sxm", "1000", "200", {.tp = 1, .dp = 8, .ep = 8, .per_node = 8}, 16, 2048, 10, .1},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        const double rate = CASES[i].rate;
        struct asked *k = ask(a, CASES[i].model, &CASES[i].gpu, 1, 8, rate, CASES[i].prompt, CASES[i].output);
        struct planner p;
        struct planner_unit u;
        struct workload_spec w = {.turns = 1, .samples = 1, .requests = 600, .rate_per_s = rate, .seed = 11};
        double most, none, per_s, tpot_s, ttft_s;
        k->q.tpot.frac = k->q.ttft.frac = .5;
        must(workload_length_parse(a, CASES[i].prompt, &w.prompt, &e), &e);
        must(workload_length_parse(a, CASES[i].output, &w.output, &e), &e);
        must(planner_open(a, &k->q, &p, &e), &e);
        must(planner_unit_make(&p, 0, 0, &CASES[i].l, &u, &e), &e);
        struct planner_plan plan = {
            .layout = u.layout, .gpus = 8, .seqs = CASES[i].seqs, .step_tokens = CASES[i].tokens};
        plan.rate_per_s = rate;
        must(planner_memory(&p, &u, plan.step_tokens, plan.seqs, &plan, &e), &e);
        must(planner_solve(&p, &u, &plan, &e), &e);
        simulated(k, &p, &u, &plan, w, &per_s, &tpot_s, &ttft_s);
        if (!(fabs(plan.point.tpot_s / tpot_s - 1) < CASES[i].within))
            fail_msg("%zu: TPOT %.4g on paper, %.4g simulated", i, plan.point.tpot_s, tpot_s);
        /* three quarters of what it serves among them: once several times as long on paper */
        if (u.layout.dp == 1 && !(fabs(plan.point.ttft_s / ttft_s - 1) < .25))
            fail_msg("%zu: TTFT %.4g on paper, %.4g simulated", i, plan.point.ttft_s, ttft_s);
        if (u.layout.dp == 1) {
            w.rate_per_s = 1e4;
            w.requests = 1000; /* five times the places; what begins and what ends is left out */
            simulated(k, &p, &u, &plan, w, &most, &none, &none);
            if (!(fabs(plan.point.saturation_per_s / most - 1) < .1))
                fail_msg("%zu: %.4g a second on paper, %.4g simulated", i, plan.point.saturation_per_s, most);
        }
        arena_close(a);
    }
    (void)state;
}

/* Plans of attention groups through the scheduler, each group with the plan's limits and a cache of its own: tokens and
 * first tokens on paper near to those of the simulation, of prompts beside those that decode and of prompts first. */
static void test_verify_groups(void **state)
{
    static const struct {
        const char *model, *gpu, *server, *prompt, *output;
        struct layout l;
        int64_t seqs, tokens;
        double load;
    } CASES[] = {
        {"qwen3-30b-a3b", "h100-sxm", "sglang", "1200", "lognormal:250,1,max=2000", {.dp = 4, .ep = 4}, 256, 8192, .7},
        {"qwen3-30b-a3b", "h100-sxm", "vllm", "uniform:100..1500", "131", {.dp = 2, .ep = 2}, 64, 2048, .6},
        {"deepseek-v3", "h200-sxm", "vllm", "900", "exponential:150", {.dp = 8, .ep = 8}, 64, 2048, .5},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct asked *k = ask(a, CASES[i].model, &CASES[i].gpu, 1, 8, 1, CASES[i].prompt, CASES[i].output);
        struct engine server;
        struct planner_run run;
        struct planner_verified v;
        struct planner_plan plan = {.layout = CASES[i].l, .seqs = CASES[i].seqs, .step_tokens = CASES[i].tokens}, x;
        struct workload_spec w = {.turns = 1, .samples = 1, .requests = 1500, .rate_per_s = 1, .seed = 13};
        must(workload_length_parse(a, CASES[i].prompt, &w.prompt, &e), &e);
        must(workload_length_parse(a, CASES[i].output, &w.output, &e), &e);
        must(workload_make(a, &w, &k->work, &e), &e);
        must(engine_load_version(a, CASES[i].server, &server, &k->q.overlapped, &e), &e);
        k->q.server = &server;
        k->q.fidelity = PLANNER_CALIBRATED;
        k->q.ttft = k->q.tpot = (struct planner_promise){1e3, .5};
        plan.layout.tp = plan.layout.replicas = 1;
        plan.layout = layout_whole(&plan.layout);
        plan.gpus = layout_gpus(&plan.layout);
        k->q.traffic.rate_per_s = 1e-3;
        must(planner_at(a, &k->q, &plan, &x, &e), &e);
        k->q.traffic.rate_per_s = CASES[i].load * x.point.saturation_per_s;
        must(planner_at(a, &k->q, &plan, &x, &e), &e);
        assert_null(planner_verifies(&x));
        must(planner_run(a, &k->q, &x, &k->work, &run, &e), &e);
        must(planner_run_judge(a, &k->q, &run, &v, &e), &e);
        assert_true(v.finished == 1500 && !v.growing && v.keeps);
        assert_int_equal(run.blocks % CASES[i].l.dp, 0); /* those of every group */
        if (!(fabs(x.point.tpot_s / v.tpot_s - 1) < .12 && fabs(x.point.ttft_s / v.ttft_s - 1) < .2))
            fail_msg("%s: TPOT %.4g on paper, %.4g simulated, TTFT %.4g, %.4g", CASES[i].server, x.point.tpot_s,
                     v.tpot_s, x.point.ttft_s, v.ttft_s);
        arena_close(a);
    }
    (void)state;
}

/* Simulated, the rate may rise to the headroom and not by what it is known within; with bursts that is less than on
 * paper, which knows none, and it is the same when asked again. */
static void test_headroom_simulated(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, 8, 23, "777", "131");
    const struct planner_watch watch = {.most = 100};
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 1501, .rate_per_s = 23, .seed = 7};
    struct planner_result r;
    struct planner_headroom paper, h, again;
    struct planner_verified v;
    k->q.tpot.s = .02;
    k->q.ttft.s = .7;
    k->q.like.pp = 1;
    must(workload_arrival_parse("bursty:5,7", &s, &e), &e);
    must(workload_length_parse(a, "777", &s.prompt, &e), &e);
    must(workload_length_parse(a, "131", &s.output, &e), &e);
    must(workload_make(a, &s, &k->work, &e), &e);
    must(planner_traffic_of(a, &k->work, 23, &k->q.traffic, &e), &e);
    must(planner_search(a, &k->q, &r, &e), &e);
    struct planner_confirmed c;
    must(planner_confirm(a, &k->q, &k->work, &watch, &r, &c, &e), &e);
    assert_true(c.found);
    must(planner_headroom(a, &k->q, &r.best[0], &paper, &e), &e);
    must(planner_headroom_simulated(a, &k->q, &r.best[0], &k->work, &watch, &h, &e), &e);
    must(planner_headroom_simulated(a, &k->q, &r.best[0], &k->work, &watch, &again, &e), &e);
    assert_int_equal(paper.simulations, 0);
    assert_true(h.simulations > 1 && h.simulations <= 12 && h.within_frac <= .011);
    assert_true(h.rate_per_s == again.rate_per_s && h.breaks == again.breaks && h.binds == again.binds);
    assert_true(h.rate_per_s >= 23 && h.rate_per_s < paper.rate_per_s);
    k->q.traffic.rate_per_s = h.rate_per_s;
    must(planner_verify(a, &k->q, &r.best[0], &k->work, &v, &e), &e);
    assert_true(v.keeps && v.breaks == PLANNER_MEETS);
    k->q.traffic.rate_per_s = h.rate_per_s * (1 + h.within_frac);
    must(planner_verify(a, &k->q, &r.best[0], &k->work, &v, &e), &e);
    assert_true(!v.keeps && v.breaks == h.breaks);
    arena_close(a);
    (void)state;
}

/* A plan holds whatever requests are drawn: TPOT and TTFT of the simulation are those of the steady state within the
 * bars of such a sample. */
static void test_seeds(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    static const uint64_t SEEDS[] = {3, 17, 101, 4099};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, 4, 19, "uniform:200..1300", "uniform:50..250");
    struct planner_result r;
    k->q.like.pp = 1;
    k->q.tpot.s = .02;
    must(planner_search(a, &k->q, &r, &e), &e);
    assert_true(r.best_n > 0);
    const struct planner_plan *x = &r.best[0];
    for (size_t i = 0; i < COUNT(SEEDS); i++) {
        struct workload w;
        struct planner_verified v;
        struct workload_spec s = {
            .turns = 1, .samples = 1, .requests = 1500, .rate_per_s = 19, .seed = SEEDS[i], .output = {0}};
        must(workload_length_parse(a, "uniform:200..1300", &s.prompt, &e), &e);
        must(workload_length_parse(a, "uniform:50..250", &s.output, &e), &e);
        must(workload_make(a, &s, &w, &e), &e);
        must(planner_verify(a, &k->q, x, &w, &v, &e), &e);
        if (v.growing || fabs(v.tpot_s / x->point.tpot_s - 1) > .15 || fabs(v.ttft_s / x->point.ttft_s - 1) > .3)
            fail_msg("seed %d: TPOT %.5f, planned %.5f; TTFT %.4f, planned %.4f", (int)SEEDS[i], v.tpot_s,
                     x->point.tpot_s, v.ttft_s, x->point.ttft_s);
    }
    arena_close(a);
    (void)state;
}

/* The winner holds in the scheduler, request by request. */
static void test_verify(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, 4, 9, "777", "131");
    struct planner_result r;
    struct planner_verified v;
    k->q.like.pp = 1;
    must(planner_search(a, &k->q, &r, &e), &e);
    assert_true(r.best_n > 0);
    must(planner_verify(a, &k->q, &r.best[0], &k->work, &v, &e), &e);
    assert_int_equal(v.n, 700);
    assert_int_equal(v.finished, 700);
    assert_true(!v.growing && v.keeps);
    assert_true(fabs(v.tpot_s / r.best[0].point.tpot_s - 1) < .25);
    /* the same run, step by step: what its steps add up to, and its quantiles again */
    struct planner_run run;
    struct planner_verified again;
    must(planner_run(a, &k->q, &r.best[0], &k->work, &run, &e), &e);
    must(planner_run_judge(a, &k->q, &run, &again, &e), &e);
    assert_true(again.ttft_s == v.ttft_s && again.tpot_s == v.tpot_s && again.keeps);
    assert_true(run.band >= 1 && run.steps_n > 0);
    double busy_s = 0, steps = 0, last_s = 0, above = 0;
    for (size_t i = 0; i < run.steps_n; i++) {
        busy_s += run.step[i].end_s - run.step[i].start_s;
        steps += (double)run.step[i].steps;
    }
    for (size_t i = 0; i < run.result.n; i++) {
        last_s = fmax(last_s, run.result.record[i].finish_s);
        above += simulate_tpot_s(&run.result.record[i]) > v.tpot_s;
    }
    assert_true(fabs(busy_s / run.result.busy_s - 1) < 1e-9 && steps == (double)run.result.steps);
    assert_true(fabs(last_s / run.result.span_s - 1) < 1e-9); /* of a clock that starts at 0 */
    assert_true(above / 700 <= .05 && above / 700 > .03);
    struct planner_plan stages = r.best[0];
    stages.layout.dp = stages.layout.pp = 2;
    assert_non_null(planner_verifies(&stages));
    assert_int_equal(planner_verify(a, &k->q, &stages, &k->work, &v, &e), ERR_USAGE);
    /* stages: on paper requests flock into one batch, which is what engines do to those that come one by one: a token
     * takes all stages, and no batch beside makes up for it */
    stages.layout.dp = 1;
    stages.layout.pp = 2;
    struct planner_plan paper;
    must(planner_at(a, &k->q, &stages, &paper, &e), &e);
    stages = paper;
    assert_null(planner_verifies(&stages));
    must(planner_run(a, &k->q, &stages, &k->work, &run, &e), &e);
    must(planner_run_judge(a, &k->q, &run, &v, &e), &e);
    assert_true(run.of_floors && run.result.bubble_frac > .2);
    if (!(stages.point.tpot_s > .9 * v.tpot_s && stages.point.tpot_s < 1.5 * v.tpot_s))
        fail_msg("stages: TPOT %.4g on paper, %.4g simulated", stages.point.tpot_s, v.tpot_s);
    arena_close(a);
    (void)state;
}

/* The error of a run's quantile is that of ten parts of it, counted here again from its records: about the spread of
 * runs with other requests, neither a tenth of it nor ten times as much. Each request as if it were independent, which
 * neighbours in one batch are not, is the known mistake: too sure. */
static void test_run_error(void **state)
{
    static const char *const GPU[] = {"h100-sxm"};
    enum { RUNS = 7, N = 3001, PART = N / 10 };
    struct arena *a = arena_open();
    struct err e = {0};
    struct asked *k = ask(a, "llama-3.1-8b", GPU, 1, 2, 13, "777", "131");
    struct planner_result r;
    double sum = 0, squares = 0, said = 0, alone = 0;
    (void)state;
    must(planner_search(a, &k->q, &r, &e), &e);
    assert_true(r.best_n > 0);
    for (int run = 0; run < RUNS; run++) {
        struct workload_spec s = {.turns = 1, .samples = 1, .requests = N, .rate_per_s = 13, .seed = (uint64_t)run + 3};
        struct planner_run x;
        struct planner_verified v, whole;
        double part[PART], all[N], of = 0, of2 = 0;
        must(workload_length_parse(a, "exponential:777,max=5000", &s.prompt, &e), &e);
        must(workload_length_parse(a, "exponential:131,max=2000", &s.output, &e), &e);
        must(workload_make(a, &s, &k->work, &e), &e);
        k->q.judged = (struct planner_window){0, N};
        k->q.traffic.longest_tokens = 7000;
        must(planner_run(a, &k->q, &r.best[0], &k->work, &x, &e), &e);
        must(planner_run_judge(a, &k->q, &x, &v, &e), &e);
        k->q.judged = (struct planner_window){0, 0}; /* nothing is judged alone: its parts may differ */
        must(planner_run_judge(a, &k->q, &x, &whole, &e), &e);
        assert_true(isnan(whole.ttft_error_frac) && isnan(whole.tpot_error_frac) && whole.ttft_s == v.ttft_s);
        k->q.judged = (struct planner_window){7, 7 + 999}; /* too few */
        must(planner_run_judge(a, &k->q, &x, &whole, &e), &e);
        assert_true(isnan(whole.ttft_error_frac) && whole.ttft_s > 0);
        for (size_t p = 0; p < 10; p++) {
            for (size_t i = 0; i < PART; i++) part[i] = simulate_ttft_s(&x.result.record[p * PART + i]);
            qsort(part, PART, sizeof *part, by_size);
            const double q = part[(size_t)ceil(.95 * PART) - 1] / v.ttft_s;
            of += q / 10;
            of2 += q * q / 10;
        }
        const double error = 2.262 * sqrt((of2 - of * of) * 10 / 9 / 10);
        if (fabs(v.ttft_error_frac / error - 1) > .02) fail_msg("error %.4g, by hand %.4g", v.ttft_error_frac, error);
        for (size_t i = 0; i < N; i++) all[i] = simulate_ttft_s(&x.result.record[i]);
        qsort(all, N, sizeof *all, by_size);
        /* of independent ones: the ranks that the quantile is between, 95 in 100 */
        const double half = 1.96 * sqrt(N * .95 * .05);
        alone += (all[(size_t)(.95 * N + half)] - all[(size_t)(.95 * N - half)]) / 2 / v.ttft_s / RUNS;
        sum += v.ttft_s;
        squares += v.ttft_s * v.ttft_s;
        said += v.ttft_error_frac / RUNS;
    }
    const double mean = sum / RUNS, spread = 1.96 * sqrt((squares / RUNS - mean * mean) * RUNS / (RUNS - 1)) / mean;
    if (!(said > spread / 3 && said < 3 * spread)) fail_msg("errors of %.4g, runs within %.4g", said, spread);
    if (!(alone < .8 * said)) fail_msg("errors of %.4g, of independent requests %.4g", said, alone);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simulated),
        cmocka_unit_test(test_verify_groups),
        cmocka_unit_test(test_headroom_simulated),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_run_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
