/* The simulator against what queues are known to do: a request alone, one server, clients who ask again, copies,
 * saturation; and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "tests/server.h"

/* A request by itself: its prompt whole is a prefill, and answer tokens after the first are decode steps at contexts
 * that grow by one, as `ridge estimate` has them. */
static void test_alone(void **state)
{
    (void)state;
    enum { PROMPT = 1013, OUTPUT = 61 };
    struct server b;
    struct step *step;
    struct err e = {0};
    server_open(&b, "llama-2-13b", "h100-sxm", STEP_ROOFLINE);
    const struct step_setup setup = {
        .model = &b.model, .hw = &b.hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    assert_int_equal(step_compile(b.arena, &setup, &step, &e), ERR_OK);
    double prefill_s = 0, decode_s = 0;
    for (int i = 0; i < OUTPUT; i++) {
        double v[STEP_VALUES_N], *out[STEP_VALUES_N];
        const double one = 1, T = PROMPT, S = PROMPT + (i ? i : 0);
        for (size_t k = 0; k < STEP_VALUES_N; k++) out[k] = &v[k];
        step_eval(step, 1, &one, &T, &S, NULL, out);
        if (i == 0) prefill_s = v[STEP_prefill_s];
        if (i > 0) decode_s += v[STEP_decode_step_s];
    }
    const struct workload w = server_make(b.arena, 0, 1, 7, "1013", "61", 3);
    for (int p = SIMULATE_STATIC; p <= SIMULATE_CHUNKED; p++) {
        const struct simulate_setup s = server_setup(&b, &w, (enum simulate_policy)p);
        const struct simulate_result r = server_run(b.arena, &s);
        for (size_t i = 0; i < w.n; i++) {
            near_to(simulate_ttft_s(&r.record[i]), prefill_s, 1e-9, "TTFT");
            near_to(simulate_tpot_s(&r.record[i]), decode_s / (OUTPUT - 1), 1e-9, "TPOT");
            near_to(r.record[i].arrival_s, (double)i * (prefill_s + decode_s), 1e-9, "asks again when answered");
        }
        near_to(r.span_s, 7 * (prefill_s + decode_s), 1e-9, "span");
        near_to(r.busy_s, r.span_s, 1e-9, "busy");
        assert_int_equal(r.steps, 7 * OUTPUT);
    }
    arena_close(b.arena);
}

/* Mean wait of a single server, from runs of `n` requests each with another seed, against Pollaczek-Khinchine,
 * W = rate E[S^2] / (2 (1 - rho)): M/D/1 with fixed answers; with geometric ones of a model whose steps take the same
 * at every context, M/Geo/1, which for long answers is M/M/1, W = rho E[S] / (1 - rho). Within three standard errors of
 * the mean of the runs; each begins empty, and its first tenth is left out. */
static void test_queueing(void **state)
{
    (void)state;
    enum { RUNS = 16, REQUESTS = 7000 };
    struct server b;
    server_open(&b, "rwkv6-finch-7b", "h100-sxm", STEP_ROOFLINE);
    const struct workload probe = server_make(b.arena, 0, 1, 1, "1", "2", 1);
    struct simulate_setup s = server_setup(&b, &probe, SIMULATE_CHUNKED);
    const double step_s = simulate_tpot_s(&server_run(b.arena, &s).record[0]);
    static const struct {
        const char *output;
        double mean, square, rho;
    } CASES[] = {{"211", 211, 211. * 211, .7},
                 {"211", 211, 211. * 211, .85},
                 {"exponential:503", 503.50017, 507015.5, .6}}; /* geometric, p = 1 - exp(-1/503): 1/p, (2-p)/p^2 */
    const double p = -expm1(-1. / 503);
    near_to(CASES[2].mean, 1 / p, 1e-6, "mean of the geometric");
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        const double square = c == 2 ? (2 - p) / p / p : CASES[c].square;
        const double rate = CASES[c].rho / (CASES[c].mean * step_s);
        const double wanted_s = rate * square * step_s * step_s / (2 * (1 - CASES[c].rho));
        double sum = 0, squares = 0;
        if (c == 2) near_to(wanted_s, CASES[c].rho * CASES[c].mean * step_s / (1 - CASES[c].rho), 2e-3, "M/M/1");
        for (int k = 0; k < RUNS; k++) {
            struct arena *a = arena_open();
            const struct workload w = server_make(a, rate, 0, REQUESTS, "1", CASES[c].output, 1000 + (uint64_t)k);
            s.work = &w;
            s.max_seqs = 1;
            const struct simulate_result r = server_run(a, &s);
            double wait_s = 0;
            for (size_t i = REQUESTS / 10; i < w.n; i++) wait_s += simulate_wait_s(&r.record[i]);
            wait_s /= REQUESTS - REQUESTS / 10;
            sum += wait_s;
            squares += wait_s * wait_s;
            assert_false(r.growing);
            arena_close(a);
        }
        const double mean = sum / RUNS, error = sqrt((squares / RUNS - mean * mean) / (RUNS - 1));
        if (fabs(mean - wanted_s) > 3 * error || error > .1 * wanted_s)
            fail_msg("%s at %.2f: waits %g, exactly %g, standard error %g", CASES[c].output, CASES[c].rho, mean,
                     wanted_s, error);
    }
    arena_close(b.arena);
}

/* Closed loop of n clients: n are in the system until the last requests, so Little's law is an identity,
 * sum of latencies = n * span - (what those that found nobody to follow did not wait); and the span of a single server
 * is the sum of all services, whatever the clients. */
static void test_closed(void **state)
{
    (void)state;
    struct server b;
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    double span_s[2];
    for (int k = 0; k < 2; k++) {
        const struct workload w = server_make(b.arena, 0, k ? 37 : 1, 211, "uniform:101..907", "lognormal:73,0.7", 9);
        struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
        s.max_seqs = 1;
        s.budget_tokens = 4096;
        const struct simulate_result r = server_run(b.arena, &s);
        double sum_s = 0, idle_s = 0;
        size_t last = 0;
        for (size_t i = 0; i < w.n; i++) {
            sum_s += simulate_latency_s(&r.record[i]);
            if (w.request[i].next != WORKLOAD_NO_NEXT) continue;
            idle_s += r.span_s - r.record[i].finish_s;
            last++;
        }
        assert_int_equal(last, k ? 37 : 1);
        near_to(sum_s, (k ? 37 : 1) * r.span_s - idle_s, 1e-9, "Little");
        span_s[k] = r.span_s;
    }
    near_to(span_s[1], span_s[0], 1e-9, "span");
    arena_close(b.arena);
}

/* A server's clients, one after the other in conversations and with time to think: X (R + think) is no more than their
 * number, and all but what the ends of the run miss; asked again without what is beside the steps it would be more. */
static void test_fronted(void **state)
{
    (void)state;
    struct server b;
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    for (int k = 0; k < 3; k++) {
        const int64_t clients = k ? 7 : 1;
        const double think_s = k == 2 ? .113 : 0;
        struct workload w = server_make(b.arena, 0, clients, 701, "8009", "1", 9);
        struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
        struct simulate_spread x;
        struct err e = {0};
        double little[2];
        w.think_s = think_s;
        for (int fronted = 0; fronted < 2; fronted++) {
            s.fronted = fronted;
            struct simulate_result r = server_run(b.arena, &s);
            simulate_front(&r);
            assert_int_equal(simulate_spread_of(&r, simulate_latency_s, &x, &e), ERR_OK);
            little[fronted] = (double)r.finished / r.span_s * (x.mean + think_s) / (double)clients;
        }
        if (!(little[1] <= 1 + (think_s / x.mean + 1e-9) / 100 && little[1] > .98)) fail_msg("%d: %g", k, little[1]);
        if (!k && !(little[0] > 1.2)) fail_msg("%d: %g", k, little[0]);
    }
    arena_close(b.arena);
}

/* Several servers of one: no request waits with as many clients as replicas. */
static void test_routes(void **state)
{
    (void)state;
    struct server b;
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    double wait_s[2];
    for (int k = 0; k < 2; k++) {
        const struct workload w = server_make(b.arena, 17, 0, 4001, "uniform:101..907", "lognormal:73,1.7", 9);
        struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
        struct simulate_spread x;
        s.replicas = 5;
        s.max_seqs = 2;
        s.route = k ? SIMULATE_LEAST_LOADED : SIMULATE_ROUND_ROBIN;
        const struct simulate_result r = server_run(b.arena, &s);
        assert_int_equal(r.finished, w.n);
        assert_int_equal(simulate_spread_of(&r, simulate_wait_s, &x, NULL), ERR_OK);
        for (size_t i = 0; !k && i < w.n; i++) assert_int_equal(r.record[i].replica, i % 5);
        wait_s[k] = x.mean;
    }
    if (!(wait_s[1] < wait_s[0] * .6)) fail_msg("waits %g least loaded, %g in turn", wait_s[1], wait_s[0]);
    const struct workload w = server_make(b.arena, 0, 5, 200, "uniform:101..907", "lognormal:73,1.7", 9);
    struct simulate_setup s = server_setup(&b, &w, SIMULATE_FCFS);
    s.replicas = 5;
    s.max_seqs = 1;
    s.route = SIMULATE_LEAST_LOADED;
    const struct simulate_result r = server_run(b.arena, &s);
    for (size_t i = 0; i < w.n; i++) near_to(r.record[i].start_s + 1, r.record[i].arrival_s + 1, 1e-12, "waits");
    arena_close(b.arena);
}

/* Above saturation a queue grows, and that is said; below it is not, near it neither. */
static void test_saturation(void **state)
{
    (void)state;
    struct server b;
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const struct workload offline = server_make(b.arena, 0, 0, 3000, "509", "211", 5);
    struct simulate_setup s = server_setup(&b, &offline, SIMULATE_CHUNKED);
    s.max_seqs = 64;
    const struct simulate_result most = server_run(b.arena, &s);
    const double saturation = 3000 / most.span_s;
    assert_false(most.growing);
    static const struct {
        double part;
        bool growing;
    } CASES[] = {{.5, false}, {.9, false}, {1.3, true}, {3, true}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        const struct workload w = server_make(b.arena, saturation * CASES[c].part, 0, 3000, "509", "211", 5);
        s.work = &w;
        const struct simulate_result r = server_run(b.arena, &s);
        if (r.growing != CASES[c].growing) fail_msg("at %.1f of saturation", CASES[c].part);
    }
    arena_close(b.arena);
}

/* Static batches wait for their longest; iteration-level ones do not: several times the throughput. */
static void test_static(void **state)
{
    (void)state;
    struct server b;
    double span_s[3];
    server_open(&b, "llama-2-13b", "h100-sxm", STEP_ROOFLINE);
    const struct workload w = server_make(b.arena, 0, 0, 640, "100", "exponential:200,max=4096", 31);
    for (int p = SIMULATE_STATIC; p <= SIMULATE_CHUNKED; p++) {
        struct simulate_setup s = server_setup(&b, &w, (enum simulate_policy)p);
        s.max_seqs = 32;
        span_s[p] = server_run(b.arena, &s).span_s;
    }
    /* the longest of 32 exponentials is H_32 = 4.06 means */
    const double gain = span_s[SIMULATE_STATIC] / span_s[SIMULATE_FCFS];
    if (!(gain > 2.5 && gain < 4.5)) fail_msg("gain %g", gain);
    arena_close(b.arena);
}

static bool stop(void *closure, size_t finished, size_t all)
{
    (void)closure;
    (void)all;
    return finished < 300;
}

static void test_partial_and_repeated(void **state)
{
    (void)state;
    struct server b;
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const struct workload w = server_make(b.arena, 9, 0, 2000, "lognormal:509,1", "lognormal:211,1", 5);
    struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
    s.replicas = 3;
    const struct simulate_result x = server_run(b.arena, &s), y = server_run(b.arena, &s);
    for (size_t i = 0; i < w.n; i++) assert_true(x.record[i].finish_s == y.record[i].finish_s);
    s.progress = stop;
    const struct simulate_result part = server_run(b.arena, &s);
    assert_true(part.partial && part.finished >= 300 && part.finished < 1500 && !x.partial);
    size_t finished = 0;
    for (size_t i = 0; i < w.n; i++) {
        if (!(part.record[i].finish_s >= 0)) continue;
        finished++;
        assert_true(part.record[i].finish_s == x.record[i].finish_s);
    }
    assert_int_equal(finished, part.finished);
    arena_close(b.arena);
}

static void test_refusals(void **state)
{
    (void)state;
    struct server b;
    struct simulate_result r;
    struct err e = {0};
    server_open(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const struct workload w = server_make(b.arena, 0, 0, 7, "900", "200", 5);
    struct simulate_setup s = server_setup(&b, &w, SIMULATE_CHUNKED);
    s.max_len_tokens = 1000;
    r = server_run(b.arena, &s);
    assert_true(r.refused == 7 && r.finished == 0);
    s.budget_tokens = 100;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    s.budget_tokens = 512;
    s.overhead_s = (double)NAN;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    arena_close(b.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),    cmocka_unit_test(test_queueing),
        cmocka_unit_test(test_closed),   cmocka_unit_test(test_fronted),
        cmocka_unit_test(test_routes),   cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_static),   cmocka_unit_test(test_partial_and_repeated),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
