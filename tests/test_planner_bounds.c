/* What the planner says of a plan without solving it, against the same plan solved, over drawn settings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "calc/serve/planner_parts.h"
#include "tests/draws.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void must(enum err_code code, const struct err *e)
{
    if (code != ERR_OK) fail_msg("%s", e->text);
}

struct asked {
    struct hw hw;
    struct model model;
    struct planner_device device;
    struct planner_format format;
    struct workload work;
    struct planner_request q;
    struct engine server;
};

struct setting {
    const char *model, *gpu, *prompt, *output;
    int64_t most;
    enum planner_fidelity fidelity;
    const char *server; /* NULL: none */
};

static const int64_t STEPS[] = {512, 2048, 8192}, SEQS[] = {16, 96, 512};

static void ask(struct arena *a, const struct setting *x, struct asked *k)
{
    struct err e = {0};
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 600, .rate_per_s = 1, .seed = 11};
    must(hw_load(a, x->gpu, &k->hw, &e), &e);
    must(model_load(a, x->model, NULL, 0, &k->model, &e), &e);
    must(workload_length_parse(a, x->prompt, &s.prompt, &e), &e);
    must(workload_length_parse(a, x->output, &s.output, &e), &e);
    must(workload_make(a, &s, &k->work, &e), &e);
    k->device = (struct planner_device){.hw = &k->hw,
                                        .price = price_of(NULL, &k->hw),
                                        .most = x->most,
                                        .per_node = x->most < 8 ? x->most : 8,
                                        .latency = {.link_s = 7e-7, .fabric_s = 9e-6}};
    k->format = (struct planner_format){.model = &k->model};
    k->q = (struct planner_request){.device = &k->device,
                                    .devices_n = 1,
                                    .format = &k->format,
                                    .formats_n = 1,
                                    .ttft = {1e3, .95},
                                    .tpot = {1e3, .95},
                                    .step_tokens = STEPS,
                                    .step_tokens_n = COUNT(STEPS),
                                    .seqs = SEQS,
                                    .seqs_n = COUNT(SEQS),
                                    .held_seqs = true,
                                    .fidelity = x->fidelity,
                                    .p90 = x->fidelity == PLANNER_CALIBRATED,
                                    .utilization_frac = (double)NAN};
    if (x->server) {
        must(engine_load(a, x->server, &k->server, &e), &e);
        k->q.server = &k->server;
    }
    must(planner_traffic_of(a, &k->work, 1e-3, &k->q.traffic, &e), &e);
}

static double draw(uint64_t *state, double from, double to)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
    return from + (to - from) * (double)(*state >> 11) * 0x1p-53;
}

/* A plan at a drawn rate, a promise near what it does and a nearest miss that is drawn: whatever is said without a
 * point is what the point says, and the miss is no nearer. */
static bool said(struct planner *p, struct planner_request *q, const struct planner_option *x, uint64_t *state)
{
    static const double FRAC[] = {.5, .9, .95, .99};
    struct err e = {0};
    struct planner_plan solved = x->plan, shown;
    q->tpot = (struct planner_promise){1e3, FRAC[(int)draw(state, 0, 4)]};
    solved.rate_per_s = 1e-3;
    must(planner_solve(p, x->unit, &solved, &e), &e);
    solved.rate_per_s = solved.point.saturation_per_s * draw(state, .2, 1.6);
    shown = solved;
    must(planner_solve(p, x->unit, &solved, &e), &e);
    if (solved.verdict == PLANNER_MEETS) {
        q->tpot.s = solved.point.tpot_s * draw(state, .4, 1.2);
        must(planner_solve(p, x->unit, &solved, &e), &e);
    }
    const struct planner_told told = {.saturated = draw(state, 1, 1.3), .late_tpot = draw(state, 1, 1.3)};
    must(planner_solve_told(p, x->unit, &told, &shown, &e), &e);
    assert_int_equal(shown.verdict, solved.verdict);
    if (isinf(shown.miss)) {
        assert_true(isnan(shown.point.tpot_s));
        const double nearest = shown.verdict == PLANNER_SATURATED ? told.saturated : told.late_tpot;
        if (!(solved.miss > nearest))
            fail_msg("TP%lld PP%lld DP%lld, %lld sequences, %lld tokens: %s by %.4f, said to be farther than %.4f",
                     (long long)x->unit->layout.tp, (long long)x->unit->layout.pp, (long long)x->unit->layout.dp,
                     (long long)x->plan.seqs, (long long)x->plan.step_tokens, planner_verdict_name(solved.verdict),
                     solved.miss, nearest);
        return true;
    }
    assert_true(shown.miss == solved.miss);
    return false;
}

/* A first token that is late at any rate is so at hardly any, by more than is told; nothing else is said to be. */
static bool said_first(struct planner *p, struct planner_request *q, const struct planner_option *x, uint64_t *state)
{
    static const double FRAC[] = {.5, .9, .95, .99};
    const struct planner_told told = {(double)INFINITY, (double)INFINITY, draw(state, 1, 1.3)};
    struct err e = {0};
    struct planner_plan alone = x->plan, shown = x->plan;
    q->tpot.s = 1e3;
    q->ttft = (struct planner_promise){1e3, FRAC[(int)draw(state, 0, 4)]};
    alone.rate_per_s = 1e-3;
    must(planner_solve(p, x->unit, &alone, &e), &e);
    q->ttft.s = alone.point.ttft_s * draw(state, .4, 1.2);
    shown.rate_per_s = alone.point.saturation_per_s * draw(state, .01, 1.2);
    must(planner_solve_told(p, x->unit, &told, &shown, &e), &e);
    const bool late = shown.verdict == PLANNER_LATE_TTFT && isinf(shown.miss);
    if (late && !(alone.point.ttft_s > q->ttft.s * told.late_ttft))
        fail_msg("TP%lld PP%lld, %lld sequences, %lld tokens: p%g is %.4g s where it is said to be beyond %.4g",
                 (long long)x->unit->layout.tp, (long long)x->unit->layout.pp, (long long)x->plan.seqs,
                 (long long)x->plan.step_tokens, 100 * q->ttft.frac, alone.point.ttft_s, q->ttft.s * told.late_ttft);
    q->ttft = (struct planner_promise){1e3, .95};
    return late;
}

/* RIDGE_BOUNDS=N: every option is drawn so often, instead of once. */
static void test_bounds(void **state)
{
    static const struct setting SETTINGS[] = {
        {"llama-3.1-8b", "h100-sxm", "1200", "300", 4, PLANNER_CALIBRATED, NULL},
        {"llama-3.1-8b", "l40s", "lognormal:700,1,max=9000", "exponential:90", 8, PLANNER_ROOFLINE, NULL},
        {"qwen3-30b-a3b", "h100-sxm", "uniform:100..2000", "40", 4, PLANNER_CALIBRATED, NULL},
        {"qwen3-30b-a3b", "h200-sxm", "3000", "lognormal:300,1,max=3000", 8, PLANNER_BOUND, NULL},
        {"qwen3-30b-a3b", "h200-sxm", "1500", "exponential:100", 4, PLANNER_CALIBRATED, "sglang"},
    };
    const char *often = getenv("RIDGE_BOUNDS");
    const int times = often ? (int)strtol(often, NULL, 10) : 1;
    size_t shown = 0, first = 0, all = 0;
    for (size_t i = 0; i < COUNT(SETTINGS); i++) {
        struct arena *a = arena_open();
        struct asked k;
        struct planner p;
        struct planner_option *option;
        struct err e = {0};
        size_t n;
        uint64_t at = 100 + i;
        ask(a, &SETTINGS[i], &k);
        must(planner_open(a, &k.q, &p, &e), &e);
        must(planner_options(&p, &option, &n, &e), &e);
        for (size_t m = 0; m < n; m += draws(n) < n ? 4 : 1)
            for (int u = 0; u < times; u++, all++) {
                shown += said(&p, &k.q, &option[m], &at);
                first += said_first(&p, &k.q, &option[m], &at);
            }
        arena_close(a);
    }
    if (!(shown > all / 10)) fail_msg("%zu of %zu are shown", shown, all);
    if (!(first > all / 10)) fail_msg("first tokens of %zu of %zu are shown", first, all);
    (void)state;
}

/* A job is solved whatever is told: its deadline is no bound of these. */
static void test_job(void **state)
{
    static const struct setting X = {"llama-3.1-8b", "h100-sxm", "1200", "300", 1, PLANNER_ROOFLINE, NULL};
    struct arena *a = arena_open();
    struct asked k;
    ask(a, &X, &k);
    const struct planner_told told = {1, 1, 1};
    const struct planner_plan plan = {.rate_per_s = 5};
    struct planner_beyond b = planner_beyond_of(&k.q, &plan, &told);
    assert_true(b.saturation_per_s < 5 && b.saturation_per_s > 5 * (1 - 1e-6) && b.tpot_s > 1e3);
    b = planner_beyond_of(&k.q, &plan, NULL);
    assert_true(!(b.saturation_per_s > 0) && isinf(b.tpot_s));
    k.q.aim = PLANNER_JOB;
    b = planner_beyond_of(&k.q, &plan, &told);
    assert_true(!(b.saturation_per_s > 0) && isinf(b.tpot_s));
    k.q.aim = PLANNER_DAILY;
    b = planner_beyond_of(&k.q, &plan, &told);
    assert_true(b.saturation_per_s > 0 && isinf(b.tpot_s));
    arena_close(a);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds), cmocka_unit_test(test_job)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
