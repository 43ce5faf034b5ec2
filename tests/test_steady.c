/* The steady state against the simulator: drawn settings at a rate, all at once and with clients who ask again; copies
 * behind a router. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/draws.h"
#include "tests/steady_config.h"

/* What is counted within which distance. */
struct score {
    int n, tpot, tpot_half, ttft, rate;
    double tpot_p95[10000], ttft_p95[10000]; /* [n] of the steady state over simulated; 10000: configurations() */
};

static void show_far(const struct config *c, const char *what, double steady, double simulated)
{
    if (getenv("RIDGE_STEADY")) print_message("%s: %s %g, simulated %g\n", c->name, what, steady, simulated);
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* RIDGE_STEADY_COPIES: two to four, the least loaded first; =turn: in turn. */
static bool behind_a_router(void) { return getenv("RIDGE_STEADY_COPIES") != NULL; }

static bool in_turn(void) { return behind_a_router() && strcmp(getenv("RIDGE_STEADY_COPIES"), "turn") == 0; }

static void at_a_load(struct score *k, enum simulate_policy policy, int i, int64_t requests)
{
    struct config c;
    struct simulate_spread ttft, tpot;
    struct err e = {0};
    uint64_t s = (uint64_t)(i + 1) * 0x2545F4914F6CDD1Du;
    config_open(&c, policy, i, requests);
    (void)config_uniform(&s);
    const double one_per_s = config_solve(c.arena, &c.steady).saturation_rate_per_s * (.2 + .6 * config_uniform(&s));
    const int copies = behind_a_router() ? 2 + (int)(3 * config_uniform(&s)) : 1;
    config_hasten(&c, copies * one_per_s);
    c.simulated.replicas = c.steady.replicas = copies;
    c.simulated.route = c.steady.route = in_turn() ? SIMULATE_ROUND_ROBIN : SIMULATE_LEAST_LOADED;
    const struct steady_result r = config_solve(c.arena, &c.steady);
    const struct simulate_result q = config_simulate(c.arena, &c.simulated);
    must(simulate_spread_of(&q, simulate_ttft_s, &ttft, &e), &e);
    must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
    assert_false(r.saturated);
    const double rate = config_answers_per_s(c.arena, &q, .05, .95) * c.lengths.output_tokens;
    k->tpot_p95[k->n] = r.tpot_s.p95 / tpot.p95;
    k->ttft_p95[k->n] = r.ttft_s.p95 / ttft.p95;
    k->n++;
    k->tpot += fabs(r.tpot_s.mean / tpot.mean - 1) <= .05;
    k->tpot_half += fabs(r.tpot_s.p50 / tpot.p50 - 1) <= .05;
    k->ttft += fabs(r.ttft_s.p50 / ttft.p50 - 1) <= .15;
    k->rate += fabs(r.output_tok_per_s / rate - 1) <= .05;
    if (fabs(r.tpot_s.mean / tpot.mean - 1) > .05) show_far(&c, "TPOT", r.tpot_s.mean, tpot.mean);
    if (fabs(r.ttft_s.p50 / ttft.p50 - 1) > .15) show_far(&c, "TTFT", r.ttft_s.p50, ttft.p50);
    if (fabs(r.output_tok_per_s / rate - 1) > .05) show_far(&c, "throughput", r.output_tok_per_s, rate);
    arena_close(c.arena);
}

/* How far percentiles are off: the planner's margins (calc/serve/planner_near.c) are their p95. */
static void show_spread(enum simulate_policy policy, const char *what, double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    print_message("policy %d: %s p95 over simulated, of %d: %.3f %.3f %.3f %.3f %.3f (least, p5, median, p95, most)\n",
                  (int)policy, what, n, v[0], v[(int)(.05 * n)], v[n / 2], v[(int)ceil(.95 * n) - 1], v[n - 1]);
}

/* Of the shorter runs one more may be chance. */
static void hold(int found, double part, int n, enum simulate_policy policy, const char *what)
{
    if (found < part * n - (getenv("RIDGE_STEADY") ? 0 : 1))
        fail_msg("policy %d: %s of %d in %d within the bar", (int)policy, what, found, n);
}

static int configurations(int plain)
{
    const char *n = getenv("RIDGE_STEADY");
    const long asked = n ? strtol(n, NULL, 10) : 0;
    return asked > 0 && asked <= 10000 ? (int)asked : (int)draws((size_t)plain);
}

/* The first of the configurations: RIDGE_STEADY_FROM=1000 draws others. */
static int first_of(void)
{
    const char *n = getenv("RIDGE_STEADY_FROM");
    const long asked = n ? strtol(n, NULL, 10) : 0;
    return asked > 0 && asked <= 1000000 ? (int)asked : 0;
}

/* Loads from a fifth to four fifths of saturation. How many of the configurations are within the bars (TPOT and
 * throughput 5 %, TTFT 15 %) is held to what it was; RIDGE_STEADY=N looks at N longer runs and names the others. */
static void test_against_simulator(void **state)
{
    (void)state;
    static const struct {
        enum simulate_policy policy;
        double tpot, tpot_half, ttft, rate;
    } WANTED[] = {{SIMULATE_CHUNKED, 1, .96, 1, 1}, {SIMULATE_FCFS, 1, .9, 1, 1}, {SIMULATE_STATIC, 1, .98, 1, 1}};
    const int n = configurations(16);
    for (size_t p = 0; p < sizeof WANTED / sizeof WANTED[0]; p++) {
        struct score k = {0};
        /* a static batch is one event: as many batches as others have requests would take longer still */
        const bool batches = WANTED[p].policy == SIMULATE_STATIC;
        const int64_t requests = getenv("RIDGE_STEADY") ? (batches ? 40000 : 8000) : (batches ? 12000 : 2000);
        for (int i = 0; i < n; i++) at_a_load(&k, WANTED[p].policy, first_of() + i, requests);
        if (getenv("RIDGE_STEADY"))
            print_message("policy %d: of %d TPOT %d, its median %d, TTFT %d, throughput %d within the bars\n",
                          (int)WANTED[p].policy, k.n, k.tpot, k.tpot_half, k.ttft, k.rate);
        if (getenv("RIDGE_STEADY")) {
            show_spread(WANTED[p].policy, "TPOT", k.tpot_p95, k.n);
            show_spread(WANTED[p].policy, "TTFT", k.ttft_p95, k.n);
        }
        if (behind_a_router()) continue; /* the bars are of one */
        hold(k.tpot, WANTED[p].tpot, n, WANTED[p].policy, "TPOT");
        hold(k.tpot_half, WANTED[p].tpot_half, n, WANTED[p].policy, "median TPOT");
        hold(k.ttft, WANTED[p].ttft, n, WANTED[p].policy, "TTFT");
        hold(k.rate, WANTED[p].rate, n, WANTED[p].policy, "throughput");
    }
}

/* All at once: answers a second between a quarter and 85 % of them are the rate at which it saturates. */
static void test_saturation(void **state)
{
    (void)state;
    static const struct {
        enum simulate_policy policy;
        double part;
    } WANTED[] = {{SIMULATE_CHUNKED, 1}, {SIMULATE_FCFS, 1}, {SIMULATE_STATIC, 1}};
    const int n = configurations(12);
    for (size_t p = 0; p < sizeof WANTED / sizeof WANTED[0]; p++) {
        int good = 0;
        /* those that begin together end together: several rounds of them are counted, so that one more is little */
        const bool batches = WANTED[p].policy == SIMULATE_STATIC;
        const int64_t requests = getenv("RIDGE_STEADY") ? (batches ? 200000 : 16000) : (batches ? 12000 : 4000);
        for (int i = first_of(); i < first_of() + n; i++) {
            struct config c;
            config_open(&c, WANTED[p].policy, i, requests);
            for (size_t k = 0; k < c.work.n; k++) c.work.request[k].arrival_s = 0;
            c.work.open = c.work.timed = false;
            c.steady.load = STEADY_OFFLINE;
            c.steady.requests = (double)c.work.n;
            const struct simulate_result q = config_simulate(c.arena, &c.simulated);
            const double found = config_answers_per_s(c.arena, &q, .25, .85);
            const double rate = config_solve(c.arena, &c.steady).saturation_rate_per_s;
            good += fabs(rate / found - 1) <= .05;
            if (fabs(rate / found - 1) > .05) show_far(&c, "saturation", rate, found);
            arena_close(c.arena);
        }
        if (getenv("RIDGE_STEADY"))
            print_message("policy %d: saturation of %d in %d within 5 %%\n", (int)WANTED[p].policy, good, n);
        hold(good, WANTED[p].part, n, WANTED[p].policy, "saturation");
    }
}

/* Requests of the middle of a run; static batches are the same from the first to the last. */
static struct simulate_spread middle(const struct simulate_result *q, bool whole,
                                     double (*value)(const struct simulate_record *))
{
    struct simulate_result part = *q;
    struct simulate_spread x;
    struct err e = {0};
    if (!whole) {
        part.record += q->n / 4;
        part.n = q->n * 7 / 10 - q->n / 4;
    }
    must(simulate_spread_of(&part, value, &x, &e), &e);
    return x;
}

static void with_clients(struct score *k, enum simulate_policy policy, int i, int64_t requests, int64_t each)
{
    struct config c;
    uint64_t s = (uint64_t)(i + 1) * 0x2545F4914F6CDD1Du;
    (void)config_uniform(&s);
    const double clients = floor(config_between(&s, 1, 400));
    /* each asks so often that few are done long before the others */
    config_open(&c, policy, i, (int64_t)fmax((double)requests, (double)each * clients));
    config_close_loop(&c, (size_t)clients);
    const struct steady_result r = config_solve(c.arena, &c.steady);
    const struct simulate_result q = config_simulate(c.arena, &c.simulated);
    const bool whole = policy == SIMULATE_STATIC;
    const struct simulate_spread ttft = middle(&q, whole, simulate_ttft_s), tpot = middle(&q, whole, simulate_tpot_s);
    const double rate =
        config_answers_per_s(c.arena, &q, whole ? .05 : .25, whole ? .95 : .7) * c.lengths.output_tokens;
    k->tpot_p95[k->n] = r.tpot_s.p95 / tpot.p95;
    k->ttft_p95[k->n] = r.ttft_s.p95 / ttft.p95;
    k->n++;
    k->tpot += fabs(r.tpot_s.mean / tpot.mean - 1) <= .05;
    k->tpot_half += fabs(r.tpot_s.p50 / tpot.p50 - 1) <= .05;
    k->ttft += fabs(r.ttft_s.p50 / ttft.p50 - 1) <= .15;
    k->rate += fabs(r.output_tok_per_s / rate - 1) <= .05;
    if (fabs(r.tpot_s.mean / tpot.mean - 1) > .05) show_far(&c, "closed TPOT", r.tpot_s.mean, tpot.mean);
    if (fabs(r.ttft_s.p50 / ttft.p50 - 1) > .15) show_far(&c, "closed TTFT", r.ttft_s.p50, ttft.p50);
    if (fabs(r.output_tok_per_s / rate - 1) > .05) show_far(&c, "closed throughput", r.output_tok_per_s, rate);
    arena_close(c.arena);
}

/* From one client to more than there are places for. */
static void test_clients(void **state)
{
    (void)state;
    static const struct {
        enum simulate_policy policy;
        double tpot, ttft, rate;
    } WANTED[] = {{SIMULATE_CHUNKED, 1, 1, 1}, {SIMULATE_FCFS, 1, 1, 1}, {SIMULATE_STATIC, 1, 1, 1}};
    const int n = configurations(9);
    const int64_t requests = getenv("RIDGE_STEADY") ? 4000 : 2000;
    for (size_t p = 0; p < sizeof WANTED / sizeof WANTED[0]; p++) {
        struct score k = {0};
        /* those of a static batch are one event */
        const int64_t rounds = getenv("RIDGE_STEADY") ? 100 : 60,
                      each = WANTED[p].policy == SIMULATE_STATIC ? 3 * rounds : rounds;
        for (int i = 0; i < n; i++) with_clients(&k, WANTED[p].policy, first_of() + i, requests, each);
        if (getenv("RIDGE_STEADY"))
            print_message("policy %d: clients, of %d TPOT %d, its median %d, TTFT %d, throughput %d within the bars\n",
                          (int)WANTED[p].policy, k.n, k.tpot, k.tpot_half, k.ttft, k.rate);
        if (getenv("RIDGE_STEADY")) {
            show_spread(WANTED[p].policy, "TPOT", k.tpot_p95, k.n);
            show_spread(WANTED[p].policy, "TTFT", k.ttft_p95, k.n);
        }
        if (behind_a_router()) continue; /* the bars are of one */
        hold(k.tpot, WANTED[p].tpot, n, WANTED[p].policy, "clients' TPOT");
        hold(k.ttft, WANTED[p].ttft, n, WANTED[p].policy, "clients' TTFT");
        hold(k.rate, WANTED[p].rate, n, WANTED[p].policy, "clients' throughput");
    }
}

/* Answers of one length, prompts of several: groups part for as long as a run goes on, so that first tokens are of its
 * length. Against the simulator at two lengths of run. */
static void test_ring(void **state)
{
    (void)state;
    static const int64_t EACH[] = {32, 200};
    double ttft_s[2];
    for (size_t k = 0; k < 2; k++) {
        struct config c;
        config_open(&c, SIMULATE_CHUNKED, 4, 78 * EACH[k]);
        config_close_loop(&c, 78);
        const struct steady_result r = config_solve(c.arena, &c.steady);
        const struct simulate_result q = config_simulate(c.arena, &c.simulated);
        const struct simulate_spread ttft = middle(&q, false, simulate_ttft_s);
        if (!(fabs(r.ttft_s.p50 / ttft.p50 - 1) <= .1) || !(fabs(r.ttft_s.p95 / ttft.p95 - 1) <= .15))
            fail_msg("%d rounds: TTFT p50 %g, simulated %g; p95 %g, simulated %g", (int)EACH[k], r.ttft_s.p50, ttft.p50,
                     r.ttft_s.p95, ttft.p95);
        assert_true(fabs(r.rate_per_s * r.latency_s.mean / 78 - 1) < .01);
        ttft_s[k] = r.ttft_s.p50;
        arena_close(c.arena);
    }
    assert_true(ttft_s[1] < .85 * ttft_s[0]);
}

/* Prompts first, many short ones beside nearly as many that decode as there are places: busy periods are no longer than
 * places are free, nor independent. The known mistake, as many independent ones as there are steps: TPOT p95 was 1.3 to
 * 2.8 times what it is, and the median a half. */
static void test_places(void **state)
{
    (void)state;
    static const int DRAWN[] = {1004, 1012, 1186};
    for (size_t i = 0; i < sizeof DRAWN / sizeof *DRAWN; i++) {
        struct score k = {0};
        at_a_load(&k, SIMULATE_FCFS, DRAWN[i], 4000);
        if (!(fabs(k.tpot_p95[0] - 1) <= .12)) fail_msg("%d: TPOT p95 %.3f of simulated", DRAWN[i], k.tpot_p95[0]);
    }
}

/* Copies behind a router, in turn and the least loaded first, against the simulator: and a share of arrivals by chance,
 * which is what one copy alone has, is farther off (the known mistake). */
static void test_copies(void **state)
{
    (void)state;
    enum { DRAWS = 6 };
    for (int p = SIMULATE_FCFS; p <= SIMULATE_CHUNKED; p++)
        for (int turn = 0; turn < 2; turn++) {
            double off[2][4] = {{0}};
            for (int i = 0; i < DRAWS; i++) {
                struct config c;
                struct simulate_spread ttft, tpot;
                struct err e = {0};
                config_open(&c, (enum simulate_policy)p, 310 + i, 3000);
                const int copies = 2 + i % 3;
                config_hasten(&c, copies * (.35 + .07 * i) * config_solve(c.arena, &c.steady).saturation_rate_per_s);
                c.simulated.replicas = copies;
                c.simulated.route = turn ? SIMULATE_ROUND_ROBIN : SIMULATE_LEAST_LOADED;
                struct steady_setup share = c.steady;
                share.rate_per_s /= copies;
                c.steady.replicas = copies;
                c.steady.route = c.simulated.route;
                const struct steady_result r[] = {config_solve(c.arena, &c.steady), config_solve(c.arena, &share)};
                const struct simulate_result q = config_simulate(c.arena, &c.simulated);
                must(simulate_spread_of(&q, simulate_ttft_s, &ttft, &e), &e);
                must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
                near_to(r[0].output_tok_per_s, copies * r[1].output_tok_per_s, 1e-9, "throughput");
                for (int k = 0; k < 2; k++) {
                    off[k][0] += fabs(log(r[k].ttft_s.p50 / ttft.p50)) / DRAWS;
                    off[k][1] += fabs(log(r[k].ttft_s.p95 / ttft.p95)) / DRAWS;
                    off[k][2] += fabs(log(r[k].tpot_s.p50 / tpot.p50)) / DRAWS;
                    off[k][3] += fabs(log(r[k].tpot_s.p95 / tpot.p95)) / DRAWS;
                }
                arena_close(c.arena);
            }
            if (getenv("RIDGE_STEADY"))
                for (int k = 0; k < 2; k++)
                    print_message("policy %d, turn %d, %s: TTFT p50 %.3f p95 %.3f TPOT p50 %.3f p95 %.3f off\n", p,
                                  turn, k ? "a share by chance" : "copies", off[k][0], off[k][1], off[k][2], off[k][3]);
            for (int k = 0; k < 4; k++) assert_true(off[0][k] < (p == SIMULATE_CHUNKED ? .1 : .25));
            assert_true(off[0][1] + off[0][3] < .7 * (off[1][1] + off[1][3]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_simulator),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
