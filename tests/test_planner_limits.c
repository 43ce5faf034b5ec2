/* Limits of sequences that a plan may have: what the cache holds beside those that are asked for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calc/model/stored.h"
#include "calc/serve/planner_parts.h"
#include "calc/serve/planner_verify.h"

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
};

static const int64_t STEPS[] = {512, 1024, 2048, 4096, 8192}, SEQS[] = {16, 32, 64, 128, 256, 512, 1024};

static void ask(struct arena *a, const char *model, const char *gpu, const char *weights, int64_t most, double rate,
                const char *prompt, const char *output, struct asked *k)
{
    struct err e = {0};
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 800, .rate_per_s = rate, .seed = 5};
    must(hw_load(a, gpu, &k->hw, &e), &e);
    must(model_load(a, model, NULL, 0, &k->model, &e), &e);
    if (weights) must(stored_set_all(&k->model, weights, &e), &e);
    must(workload_length_parse(a, prompt, &s.prompt, &e), &e);
    must(workload_length_parse(a, output, &s.output, &e), &e);
    must(workload_make(a, &s, &k->work, &e), &e);
    k->device = (struct planner_device){.hw = &k->hw,
                                        .price = price_of(NULL, &k->hw),
                                        .most = most,
                                        .per_node = most < 8 ? most : 8,
                                        .latency = {.link_s = 7e-7, .fabric_s = 9e-6}};
    k->format = (struct planner_format){.model = &k->model, .weights = weights};
    k->q = (struct planner_request){.device = &k->device,
                                    .devices_n = 1,
                                    .format = &k->format,
                                    .formats_n = 1,
                                    .ttft = {3, .95},
                                    .tpot = {.06, .95},
                                    .step_tokens = STEPS,
                                    .step_tokens_n = COUNT(STEPS),
                                    .seqs = SEQS,
                                    .seqs_n = COUNT(SEQS),
                                    .held_seqs = true,
                                    .fidelity = PLANNER_ROOFLINE,
                                    .utilization_frac = (double)NAN};
    must(planner_traffic_of(a, &k->work, rate, &k->q.traffic, &e), &e);
}

static double pool_at(struct planner *p, const struct planner_unit *u, int64_t step_tokens, int64_t seqs)
{
    struct planner_plan x;
    struct err e = {0};
    must(planner_memory(p, u, step_tokens, seqs, &x, &e), &e);
    return x.pool_bytes;
}

/* Largest number that fits beside what the engine reserves for as many, one by one. */
static int64_t counted(struct planner *p, const struct planner_unit *u, int64_t step_tokens, double bytes)
{
    int64_t n = 1;
    while ((double)(n + 1) * bytes <= pool_at(p, u, step_tokens, n + 1)) n++;
    return n;
}

/* Of 900 tokens in and 150 out a random step attends to 900 + 75.5 of them, and its answer ends at 1051 on average;
 * half a block of 16 is beside either. A token has 2 * 32 layers * 8 heads * 128 * 2 bytes. */
static void test_numbers(void **state)
{
    struct arena *a = arena_open();
    struct asked k;
    struct planner p;
    struct planner_unit u;
    struct planner_held held;
    struct err e = {0};
    const double token = 2. * 32 * 8 * 128 * 2;
    size_t compared = 0;
    ask(a, "llama-3.1-8b", "l40s", NULL, 1, 5, "900", "150", &k);
    must(planner_open(a, &k.q, &p, &e), &e);
    must(planner_unit_make(&p, 0, 0, &(struct layout){.tp = 1, .per_node = 1}, &u, &e), &e);
    assert_true(fabs(u.sequence_bytes / (token * (976 + 8)) - 1) < 1e-12);
    assert_true(fabs(u.ended_bytes / (token * (1051 + 8)) - 1) < 1e-12);
    for (size_t i = 0; i < COUNT(STEPS); i++) {
        must(planner_held(&p, &u, STEPS[i], &held, &e), &e);
        assert_int_equal(held.n, 2);
        const int64_t ended = counted(&p, &u, STEPS[i], u.ended_bytes),
                      mean = counted(&p, &u, STEPS[i], u.sequence_bytes);
        assert_true(ended < mean && ended > 128 && mean < 256);
        /* where more sequences reserve a byte more, one fewer may be said than fits */
        assert_true(held.seqs[0] <= ended && held.seqs[0] >= ended - 1);
        assert_true(held.seqs[1] <= mean && held.seqs[1] >= mean - 1);
        compared += held.n;
    }
    assert_int_equal(compared, 2 * COUNT(STEPS));
    /* none is added that is there, that no step has room for, that is outside, or that is not asked for */
    const int64_t own[] = {16, held.seqs[0], 1024}, few[] = {16, 32};
    k.q.seqs = own;
    k.q.seqs_n = 3;
    must(planner_held(&p, &u, 8192, &held, &e), &e);
    assert_int_equal(held.n, 1);
    k.q.step_tokens = few; /* of a step of 32 tokens at most 32 */
    must(planner_held(&p, &u, 32, &held, &e), &e);
    assert_int_equal(held.n, 0);
    k.q.seqs = few;
    k.q.seqs_n = 2;
    must(planner_held(&p, &u, 8192, &held, &e), &e);
    assert_int_equal(held.n, 0);
    k.q.seqs = SEQS;
    k.q.seqs_n = COUNT(SEQS);
    k.q.held_seqs = false;
    must(planner_held(&p, &u, 8192, &held, &e), &e);
    assert_int_equal(held.n, 0);
    arena_close(a);
    (void)state;
}

/* Between 128, which are too few, and 256, which the cache does not hold, there is a plan; pruning finds it as well as
 * what solves every candidate, and counts the same ones. */
static void test_between(void **state)
{
    struct arena *a = arena_open();
    struct asked k;
    struct err e = {0};
    struct planner_result powers, held, all;
    ask(a, "qwen3-14b", "h100-sxm", "fp8", 1, 1e3, "1500", "400", &k);
    k.q.fidelity = PLANNER_CALIBRATED;
    k.q.p90 = true;
    k.q.ttft.s = 1e3;
    k.q.tpot.s = (double)NAN;
    k.q.held_seqs = false;
    /* a little more than powers of two serve */
    must(planner_search(a, &k.q, &powers, &e), &e);
    k.q.traffic.rate_per_s = 1.005 * powers.tally[0][PLANNER_SATURATED].nearest.point.saturation_per_s;
    must(planner_search(a, &k.q, &powers, &e), &e);
    k.q.held_seqs = true;
    must(planner_search(a, &k.q, &held, &e), &e);
    k.q.exhaustive = true;
    must(planner_search(a, &k.q, &all, &e), &e);
    assert_int_equal(powers.best_n, 0);
    assert_int_equal(held.best_n, 1);
    assert_int_equal(all.best_n, 1);
    assert_int_equal(held.candidates, all.candidates);
    assert_true(held.candidates > powers.candidates);
    assert_int_equal(held.best[0].seqs, all.best[0].seqs);
    assert_int_equal(held.best[0].step_tokens, all.best[0].step_tokens);
    assert_true(held.best[0].seqs > 128 && held.best[0].seqs < 256);
    arena_close(a);
    (void)state;
}

/* A queue of 10.1 where 10 are served a second grows by .1: the last of 4000 waits 40/10.1 s for it, at p95 the 95th.
 */
static void test_tells(void **state)
{
    struct planner_request q = {.traffic = {.rate_per_s = 10.1}, .ttft = {3.7, .95}, .judged = {100, 4100}};
    assert_true(planner_tells(&q)); /* .01 * .95 * 4000/10.1 = 3.76 */
    q.ttft.s = 3.8;
    assert_false(planner_tells(&q));
    q.ttft.s = (double)NAN; /* a token's time does not grow with a queue */
    assert_false(planner_tells(&q));
    q.ttft.s = 3.7;
    q.aim = PLANNER_DAILY;
    assert_false(planner_tells(&q));
    q.aim = PLANNER_SERVE;
    q.judged = (struct planner_window){0, 0};
    assert_false(planner_tells(&q));
    (void)state;
}

static bool near_at(struct arena *a, struct asked *k, double rate_per_s, struct planner_plan *out)
{
    struct err e = {0};
    bool found;
    k->q.traffic.rate_per_s = rate_per_s;
    must(planner_near_cheapest(a, &k->q, 1, (double)NAN, out, &found, &e), &e);
    return found;
}

/* What saturates on paper by less than it may be off is near, where a run would tell and where it keeps its promises
 * with as much less; the simulation has the last word: of a cache that paper says is full too early it says yes. */
static void test_saturated(void **state)
{
    static const int64_t FULL[] = {256}, FEW[] = {96}, STEP[] = {1024};
    struct arena *a = arena_open();
    struct asked k;
    struct err e = {0};
    struct planner_result r;
    struct planner_plan near;
    struct planner_confirmed c;
    const struct planner_watch watch = {.most = 10};
    ask(a, "qwen3-14b", "h100-sxm", "fp8", 1, 1e3, "1500", "400", &k);
    k.q.fidelity = PLANNER_CALIBRATED;
    k.q.p90 = true;
    k.q.seqs = FULL;
    k.q.seqs_n = k.q.step_tokens_n = 1;
    k.q.step_tokens = STEP;
    k.q.ttft.s = 2;
    k.q.tpot.s = .08;
    must(planner_search(a, &k.q, &r, &e), &e);
    const double most_per_s = r.tally[0][PLANNER_SATURATED].nearest.point.saturation_per_s;
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = 4000, .rate_per_s = 1.01 * most_per_s, .seed = 5};
    must(workload_length_parse(a, "1500", &s.prompt, &e), &e);
    must(workload_length_parse(a, "400", &s.output, &e), &e);
    must(workload_make(a, &s, &k.work, &e), &e);
    k.q.judged = (struct planner_window){400, 3900};
    assert_true(near_at(a, &k, 1.01 * most_per_s, &near));
    assert_int_equal(near.paper, PLANNER_SATURATED);
    const double part = planner_near_part(&k.q, &near);
    assert_true(fabs(part - .01 / .05) < 1e-6);
    assert_false(near_at(a, &k, 1.051 * most_per_s, &near));
    k.q.tpot.s = .02; /* nor at a 20th less */
    assert_false(near_at(a, &k, 1.01 * most_per_s, &near));
    k.q.tpot.s = .08;
    k.q.judged = (struct planner_window){400, 1000};
    assert_false(near_at(a, &k, 1.01 * most_per_s, &near));
    k.q.judged = (struct planner_window){400, 3900};
    must(planner_search(a, &k.q, &r, &e), &e);
    assert_int_equal(r.best_n, 0);
    must(planner_confirm(a, &k.q, &k.work, &watch, &r, &c, &e), &e);
    assert_true(c.found);
    assert_int_equal(r.best[0].verdict, PLANNER_MEETS);
    assert_int_equal(r.best[0].paper, PLANNER_SATURATED);
    k.q.seqs = FEW; /* always a place in the cache: paper is as good as exact, and a run tells */
    k.q.traffic.rate_per_s = 1e3;
    k.q.ttft.s = 7.5;
    s.requests = 10000;
    must(workload_make(a, &s, &k.work, &e), &e);
    k.q.judged.end = 9900;
    must(planner_search(a, &k.q, &r, &e), &e);
    k.q.traffic.rate_per_s = 1.02 * r.tally[0][PLANNER_SATURATED].nearest.point.saturation_per_s;
    must(planner_search(a, &k.q, &r, &e), &e);
    must(planner_confirm(a, &k.q, &k.work, &watch, &r, &c, &e), &e);
    assert_false(c.found);
    assert_int_equal(c.near_refuted, 1);
    arena_close(a);
    (void)state;
}

/* Without a steady state none serves more than comes, so that no reason can be said with a negative number. */
static void test_unsteady(void **state)
{
    const struct planner_request q = {.ttft = {1, .95}, .tpot = {1, .95}};
    struct planner_plan x = {.rate_per_s = 5, .point = planner_point_unknown()};
    x.point.saturation_per_s = 5.253; /* as a chain had it that found no state at 5 */
    planner_judge(&q, &x);
    assert_int_equal(x.verdict, PLANNER_SATURATED);
    assert_true(x.miss >= 1 && x.point.saturation_per_s <= x.rate_per_s);
    x.point = planner_point_unknown();
    x.point.saturation_per_s = 4;
    planner_judge(&q, &x);
    assert_int_equal(x.verdict, PLANNER_SATURATED);
    assert_true(fabs(x.miss - 1.25) < 1e-12);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_between),
                                       cmocka_unit_test(test_tells), cmocka_unit_test(test_saturated),
                                       cmocka_unit_test(test_unsteady)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
