#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/simulate.h"
#include "tests/csv.h"

struct bench {
    struct arena *arena;
    struct model model;
    struct hw hw;
    struct mix_plan *plan;
};

static void open_bench(struct bench *b, const char *model, const char *hw, enum step_fidelity f)
{
    struct err e = {0};
    b->arena = arena_open();
    if (model_load(b->arena, model, NULL, 0, &b->model, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(b->arena, hw, &b->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct step_setup setup = {
        .model = &b->model, .hw = &b->hw, .layout = {.tp = 1}, .fidelity = f, .block_tokens = 16};
    if (mix_compile(b->arena, &setup, &b->plan, &e) != ERR_OK) fail_msg("%s", e.text);
}

static struct simulate_setup setup_of(const struct bench *b, const struct workload *w, enum simulate_policy p)
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

static struct simulate_result run(struct arena *a, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    if (simulate_run(a, s, &r, &e) != ERR_OK) fail_msg("%s", e.text);
    return r;
}

static struct workload make(struct arena *a, double rate, int64_t clients, int64_t n, const char *prompt,
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

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.12g, wanted %.12g", what, found, wanted);
}

/* ---- an independent count: every step by itself, every sequence looked at in every step ---- */

enum { NAIVE_MAX = 512 };

struct naive {
    int left, context, done, waits; /* answer tokens to come; cached tokens; of the prompt computed */
    double first_s, finish_s;
};

static double naive_price(const struct simulate_setup *s, const struct mix *x)
{
    double v[MIX_VALUES_N];
    struct calibrated_time t;
    mix_eval(x, v);
    if (!s->calibrated) return v[MIX_step_s] + s->overhead_s;
    calibrated_mix_eval(s->calibrated, x, v[MIX_step_s], &t);
    return t.s + s->overhead_s;
}

/* Without limits of memory. Chunked: decoding ones take a token each, prompts in order what is left. Prompts first:
 * whole ones within the budget, or one; where there is none all decode. */
static void naive_run(const struct bench *b, const struct simulate_setup *s, struct naive *q)
{
    const struct workload *w = s->work;
    const bool together = s->policy == SIMULATE_CHUNKED;
    struct mix x;
    struct err e = {0};
    double now = 0;
    size_t in = 0, out = 0; /* requests in .. entered so far are in the batch, or answered */
    assert_int_equal(mix_open(b->arena, b->plan, &x, &e), ERR_OK);
    for (size_t i = 0; i < w->n; i++)
        q[i] = (struct naive){.left = w->request[i].output_tokens, .first_s = (double)NAN, .finish_s = (double)NAN};
    while (out < w->n) {
        int piece[NAIVE_MAX] = {0};
        int64_t left = s->budget_tokens, prompts = 0;
        if (in == out && w->request[in].arrival_s > now) now = w->request[in].arrival_s;
        mix_clear(&x);
        for (size_t i = 0; i < in && together; i++)
            if (q[i].left > 0 && q[i].done == w->request[i].prompt_tokens) {
                mix_decode(&x, 1, q[i].context + 1);
                piece[i] = -1;
                left--;
            }
        for (size_t i = 0; i < w->n && left > 0; i++) {
            const int64_t more = w->request[i].prompt_tokens - q[i].done;
            if (i >= in) {
                if (w->request[i].arrival_s > now || (int64_t)(in - out) >= s->max_seqs) break;
                if (!together && more > left && prompts > 0) break;
                in++;
            }
            if (more == 0) continue;
            piece[i] = (int)(more < left || !together ? more : left);
            mix_prefill(&x, 1, piece[i], q[i].done);
            left -= piece[i];
            prompts++;
        }
        for (size_t i = 0; i < in && !together && prompts == 0; i++)
            if (q[i].left > 0) {
                mix_decode(&x, 1, q[i].context + 1);
                piece[i] = -1;
            }
        now += naive_price(s, &x);
        for (size_t i = 0; i < in; i++) {
            if (piece[i] > 0) q[i].done += piece[i];
            q[i].context += abs(piece[i]);
            if (piece[i] == 0 || q[i].done < w->request[i].prompt_tokens) continue;
            if (piece[i] > 0) q[i].first_s = now;
            if (--q[i].left > 0) continue;
            q[i].finish_s = now;
            out++;
        }
    }
}

/* The simulator's runs of steps are those steps, one by one. */
static void test_against_steps(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double rate;
        int64_t budget, seqs;
        enum step_fidelity fidelity;
    } CASES[] = {{"llama-3.1-8b", 11, 512, 256, STEP_ROOFLINE},
                 {"llama-3.1-8b", 41, 307, 17, STEP_BOUND},
                 {"gemma-3-27b", 3, 700, 31, STEP_ROOFLINE},
                 {"qwen3-30b-a3b", 17, 2048, 64, STEP_ROOFLINE},
                 {"rwkv6-finch-7b", 13, 401, 43, STEP_ROOFLINE}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct bench b;
        struct naive q[NAIVE_MAX];
        open_bench(&b, CASES[c].model, "h200-sxm", CASES[c].fidelity);
        const struct workload w =
            make(b.arena, CASES[c].rate, 0, 101, "lognormal:709,1.3,max=9001", "lognormal:97,0.9", 17);
        for (int p = SIMULATE_FCFS; p <= SIMULATE_CHUNKED; p++) {
            struct simulate_setup s = setup_of(&b, &w, (enum simulate_policy)p);
            s.budget_tokens = CASES[c].budget;
            s.max_seqs = CASES[c].seqs;
            s.overhead_s = .00031;
            const struct simulate_result r = run(b.arena, &s);
            naive_run(&b, &s, q);
            assert_int_equal(r.finished, w.n);
            for (size_t i = 0; i < w.n; i++) {
                near_to(r.record[i].first_s, q[i].first_s, 1e-7, CASES[c].model);
                near_to(r.record[i].finish_s, q[i].finish_s, 1e-7, CASES[c].model);
            }
        }
        arena_close(b.arena);
    }
}

/* Calibrated times of runs are those of single steps within what the runs are cut to. */
static void test_calibrated(void **state)
{
    (void)state;
    struct bench b;
    struct naive q[NAIVE_MAX];
    struct step *step;
    struct source source;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_BOUND);
    const struct step_setup setup = {
        .model = &b.model, .hw = &b.hw, .layout = {.tp = 1}, .fidelity = STEP_BOUND, .block_tokens = 16};
    const struct workload w = make(b.arena, 11, 0, 101, "lognormal:709,1.3,max=9001", "lognormal:97,0.9", 17);
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    assert_int_equal(step_compile(b.arena, &setup, &step, &e), ERR_OK);
    assert_int_equal(source_open(b.arena, &b.hw, NULL, NULL, &source, &e), ERR_OK);
    const struct calibrated_setup of = {.step = step, .source = &source, .mix = b.plan};
    const struct simulate_result floors = run(b.arena, &s);
    assert_int_equal(calibrated_open(b.arena, &of, &s.calibrated, &e), ERR_OK);
    const struct simulate_result r = run(b.arena, &s);
    size_t far = 0;
    naive_run(&b, &s, q);
    for (size_t i = 0; i < w.n; i++) {
        const double tpot_s = (q[i].finish_s - q[i].first_s) / (r.record[i].output_tokens - 1);
        far += r.record[i].output_tokens > 1 && fabs(simulate_tpot_s(&r.record[i]) / tpot_s - 1) > 5e-4;
        near_to(r.record[i].finish_s, q[i].finish_s, 1e-3, "finish");
    }
    if (far > w.n / 20) fail_msg("%zu far", far); /* an arrival may fall into the step before or behind */
    assert_true(r.busy_s > floors.busy_s);
    arena_close(b.arena);
}

/* A static batch by hand: prompts padded to the longest, all decode until the longest answer is done, and the one that
 * came meanwhile waits for all of that. */
static void test_static_batch(void **state)
{
    (void)state;
    static const char TRACE[] = "arrival_s,prompt_tokens,output_tokens\n0,53,31\n0,101,7\n0.001,17,2\n";
    struct bench b;
    struct workload w;
    struct mix x;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    assert_int_equal(workload_read_text(b.arena, "t", TRACE, sizeof TRACE - 1, &w, &e), ERR_OK);
    const struct simulate_setup s = setup_of(&b, &w, SIMULATE_STATIC);
    const struct simulate_result r = run(b.arena, &s);
    assert_int_equal(mix_open(b.arena, b.plan, &x, &e), ERR_OK);
    mix_prefill(&x, 2, 101, 0);
    const double first_s = naive_price(&s, &x);
    double end_s = first_s;
    for (int i = 1; i < 31; i++) {
        mix_clear(&x);
        mix_decode(&x, 2, 101 + i);
        end_s += naive_price(&s, &x);
    }
    for (int i = 0; i < 2; i++) {
        near_to(r.record[i].first_s, first_s, 1e-9, "first");
        near_to(r.record[i].finish_s, end_s, 1e-9, "finish");
    }
    near_to(r.record[2].start_s, end_s, 1e-9, "start");
    arena_close(b.arena);
}

/* Mooncake's traces: with a cache that never evicts, the share of prompts' tokens that its publishers' hashes give. */
static void test_mooncake(void **state)
{
    (void)state;
    struct bench b;
    struct workload w;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const enum err_code code =
        workload_read(b.arena, csv_shared(b.arena, "serving/traces/mooncake_synthetic.csv"), &w, &e);
    if (code != ERR_OK) {
        arena_close(b.arena);
        skip();
    }
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    s.prefix_cache = true;
    s.max_len_tokens = 300000;
    s.replicas = 5;
    const struct simulate_result r = run(b.arena, &s);
    assert_int_equal(r.finished, 3993);
    near_to(r.cached_tokens / r.prompt_tokens, .651, 2e-3, "hits");
    arena_close(b.arena);
}

/* The same blocks of hashes: a prompt that begins like one before has its full blocks but for the last token's. */
static void test_hashes(void **state)
{
    (void)state;
    static const char TRACE[] = "{\"timestamp\":0,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[7,8,9]}\n"
                                "{\"timestamp\":9000,\"input_length\":1500,\"output_length\":5,\"hash_ids\":[7,8,11]}\n"
                                "{\"timestamp\":18000,\"input_length\":1024,\"output_length\":5,\"hash_ids\":[7,8]}\n";
    struct bench b;
    struct workload w;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    assert_int_equal(workload_read_text(b.arena, "t", TRACE, sizeof TRACE - 1, &w, &e), ERR_OK);
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    s.prefix_cache = true;
    const struct simulate_result r = run(b.arena, &s);
    assert_int_equal(r.record[0].cached_tokens, 0);
    assert_int_equal(r.record[1].cached_tokens, 1024);
    assert_int_equal(r.record[2].cached_tokens, 1008);
    arena_close(b.arena);
}

/* A request by itself: its prompt whole is a prefill, and answer tokens after the first are decode steps at contexts
 * that grow by one, as `ridge estimate` has them. */
static void test_alone(void **state)
{
    (void)state;
    enum { PROMPT = 1013, OUTPUT = 61 };
    struct bench b;
    struct step *step;
    struct err e = {0};
    open_bench(&b, "llama-2-13b", "h100-sxm", STEP_ROOFLINE);
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
    const struct workload w = make(b.arena, 0, 1, 7, "1013", "61", 3);
    for (int p = SIMULATE_STATIC; p <= SIMULATE_CHUNKED; p++) {
        const struct simulate_setup s = setup_of(&b, &w, (enum simulate_policy)p);
        const struct simulate_result r = run(b.arena, &s);
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
    struct bench b;
    open_bench(&b, "rwkv6-finch-7b", "h100-sxm", STEP_ROOFLINE);
    const struct workload probe = make(b.arena, 0, 1, 1, "1", "2", 1);
    struct simulate_setup s = setup_of(&b, &probe, SIMULATE_CHUNKED);
    const double step_s = simulate_tpot_s(&run(b.arena, &s).record[0]);
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
            const struct workload w = make(a, rate, 0, REQUESTS, "1", CASES[c].output, 1000 + (uint64_t)k);
            s.work = &w;
            s.max_seqs = 1;
            const struct simulate_result r = run(a, &s);
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
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    double span_s[2];
    for (int k = 0; k < 2; k++) {
        const struct workload w = make(b.arena, 0, k ? 37 : 1, 211, "uniform:101..907", "lognormal:73,0.7", 9);
        struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
        s.max_seqs = 1;
        s.budget_tokens = 4096;
        const struct simulate_result r = run(b.arena, &s);
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
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    for (int k = 0; k < 3; k++) {
        const int64_t clients = k ? 7 : 1;
        const double think_s = k == 2 ? .113 : 0;
        struct workload w = make(b.arena, 0, clients, 701, "8009", "1", 9);
        struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
        struct simulate_spread x;
        struct err e = {0};
        double little[2];
        w.think_s = think_s;
        for (int fronted = 0; fronted < 2; fronted++) {
            s.fronted = fronted;
            struct simulate_result r = run(b.arena, &s);
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
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    double wait_s[2];
    for (int k = 0; k < 2; k++) {
        const struct workload w = make(b.arena, 17, 0, 4001, "uniform:101..907", "lognormal:73,1.7", 9);
        struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
        struct simulate_spread x;
        s.replicas = 5;
        s.max_seqs = 2;
        s.route = k ? SIMULATE_LEAST_LOADED : SIMULATE_ROUND_ROBIN;
        const struct simulate_result r = run(b.arena, &s);
        assert_int_equal(r.finished, w.n);
        assert_int_equal(simulate_spread_of(&r, simulate_wait_s, &x, NULL), ERR_OK);
        for (size_t i = 0; !k && i < w.n; i++) assert_int_equal(r.record[i].replica, i % 5);
        wait_s[k] = x.mean;
    }
    if (!(wait_s[1] < wait_s[0] * .6)) fail_msg("waits %g least loaded, %g in turn", wait_s[1], wait_s[0]);
    const struct workload w = make(b.arena, 0, 5, 200, "uniform:101..907", "lognormal:73,1.7", 9);
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_FCFS);
    s.replicas = 5;
    s.max_seqs = 1;
    s.route = SIMULATE_LEAST_LOADED;
    const struct simulate_result r = run(b.arena, &s);
    for (size_t i = 0; i < w.n; i++) near_to(r.record[i].start_s + 1, r.record[i].arrival_s + 1, 1e-12, "waits");
    arena_close(b.arena);
}

struct watch {
    int64_t blocks, running;
    double prefilled, decoded, last_s;
};

static void watch_step(void *closure, const struct simulate_step *x)
{
    struct watch *w = closure;
    if (x->blocks > w->blocks) w->blocks = x->blocks;
    if (x->running > w->running) w->running = x->running;
    assert_true(x->start_s >= w->last_s && x->end_s > x->start_s && x->steps >= 1);
    assert_true(x->stored_tokens <= x->blocks * 16);
    w->last_s = x->end_s;
    w->prefilled += (double)x->prefill_tokens;
    w->decoded += (double)(x->decoding * x->steps);
}

/* A cache that is too small for the batch: requests lose their blocks and are computed anew; nobody is lost, every
 * token is made once, and what is computed twice is what was lost. */
static void test_preemption(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    for (int p = SIMULATE_FCFS; p <= SIMULATE_CHUNKED; p++) {
        const struct workload w = make(b.arena, 0, 0, 307, "uniform:11..607", "uniform:50..900", 23);
        struct simulate_setup s = setup_of(&b, &w, (enum simulate_policy)p);
        struct watch seen = {0};
        s.blocks = 701;
        s.closure = &seen;
        s.step = watch_step;
        const struct simulate_result r = run(b.arena, &s);
        double prompts = 0, outputs = 0;
        for (size_t i = 0; i < w.n; i++) {
            prompts += w.request[i].prompt_tokens;
            outputs += w.request[i].output_tokens;
            assert_true(r.record[i].first_s <= r.record[i].finish_s && r.record[i].start_s < r.record[i].first_s);
        }
        assert_int_equal(r.finished, w.n);
        assert_true(r.preemptions > 20 && seen.blocks <= 701 && seen.blocks > 690);
        assert_true(seen.prefilled > prompts);
        assert_true(r.computed_tokens == seen.prefilled && r.output_tokens == outputs);
        /* each sequence's first token, and one after each recompute, come from a prefill */
        near_to(seen.decoded, outputs - (double)w.n - (double)r.preemptions, .01, "decoded");
        assert_true(seen.running == r.most_running);
    }
    arena_close(b.arena);
}

/* Samples share the prompt's blocks; each writes its own answer. */
static void test_samples(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    struct workload w = make(b.arena, 0, 1, 3, "1003", "73", 23);
    w.samples = 7;
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    const struct simulate_result r = run(b.arena, &s);
    assert_int_equal(r.finished, 3);
    assert_true(r.output_tokens == 3 * 7 * 73 && r.computed_tokens == 3 * 1003);
    assert_int_equal(r.copies, 3 * 6);
    assert_int_equal(r.most_blocks, 1003 / 16 + 7 * ((1003 % 16 + 72 + 15) / 16));
    assert_int_equal(r.most_running, 7);
    arena_close(b.arena);
}

/* Conversations: what was said before is found, all of its full blocks, when the cache is large; little when it is
 * small; and the router that looks for it finds it where round robin does not. */
static void test_prefixes(void **state)
{
    (void)state;
    struct bench b;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    struct workload_spec spec = {
        .rate_per_s = 2, .requests = 1000, .turns = 5, .samples = 1, .think_s = 5, .shared_tokens = 331, .seed = 77};
    struct workload w;
    assert_int_equal(workload_length_parse(b.arena, "uniform:31..307", &spec.prompt, &e), ERR_OK);
    assert_int_equal(workload_length_parse(b.arena, "uniform:31..307", &spec.output, &e), ERR_OK);
    assert_int_equal(workload_make(b.arena, &spec, &w, &e), ERR_OK);
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    s.prefix_cache = true;
    s.blocks = 200003;
    const struct simulate_result all = run(b.arena, &s);
    double wanted = 0, prompts = 0, late = 0;
    for (size_t i = 0; i < w.n; i++) {
        const uint32_t next = w.request[i].next;
        prompts += w.request[i].prompt_tokens;
        if (next == WORKLOAD_NO_NEXT) continue;
        /* the last token of an answer is never put into the cache */
        const int said = (w.request[i].prompt_tokens + w.request[i].output_tokens - 1) / 16 * 16;
        wanted += said;
        if (all.record[next].cached_tokens != said) fail_msg("%d found of %d", all.record[next].cached_tokens, said);
    }
    for (size_t i = 0; i < w.first_n; i++) { /* the prefix of all, but for those that came with the first */
        const int found = all.record[i].cached_tokens;
        assert_true(found == 0 || found == 331 / 16 * 16);
        late += found;
    }
    assert_true(late > .9 * 320 * (double)w.first_n);
    near_to(all.cached_tokens, wanted + late, 1e-12, "cached");
    near_to(all.computed_tokens + all.cached_tokens, prompts, 1e-12, "computed or cached");
    s.blocks = 2003;
    const struct simulate_result few = run(b.arena, &s);
    assert_int_equal(few.finished, w.n);
    assert_true(few.cached_tokens < .8 * all.cached_tokens && few.evictions > 1000);
    s.blocks = 200003;
    s.replicas = 7;
    const struct simulate_result in_turn = run(b.arena, &s);
    s.route = SIMULATE_PREFIX;
    const struct simulate_result aware = run(b.arena, &s);
    const double kept = aware.cached_tokens / all.cached_tokens, lost = in_turn.cached_tokens / all.cached_tokens;
    if (!(kept > .9 && lost < .7)) fail_msg("%.3f of the hits of one replica, %.3f in turn", kept, lost);
    arena_close(b.arena);
}

/* Figure 2 of the PagedAttention paper: of all memory of the cache 20.4 % held tokens in regions of the longest length,
 * 26.8 % in those of the next power of two of the answer, 38.2 % in those of just what was needed, and 96.3 % in
 * blocks. With lengths as in ShareGPT (161 in, 338 out on average) and buddies the same comes out within 3 points; and
 * of blocks in use under 4 % is waste. */
static void test_waste(void **state)
{
    (void)state;
    static const struct {
        enum simulate_memory memory;
        double useful;
    } CASES[] = {{SIMULATE_REGION_MAX, .204},
                 {SIMULATE_REGION_POW2, .268},
                 {SIMULATE_REGION_EXACT, .382},
                 {SIMULATE_PAGED, .963}};
    struct bench b;
    double span_s[4];
    open_bench(&b, "llama-2-13b", "a100-80g", STEP_ROOFLINE);
    const struct workload w = make(b.arena, 0, 0, 1500, "lognormal:161,1.1,max=1024", "lognormal:338,0.9,max=1023", 11);
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct simulate_setup s = setup_of(&b, &w, SIMULATE_FCFS);
        s.memory = CASES[c].memory;
        s.blocks = 1001;
        s.max_len_tokens = 2048;
        const struct simulate_result r = run(b.arena, &s);
        assert_int_equal(r.finished, w.n);
        const double useful = r.useful_frac * r.block_frac;
        if (fabs(useful - CASES[c].useful) > .03) fail_msg("memory %zu: %.3f useful", c, useful);
        if (c == 3) assert_true(r.useful_frac > .96);
        span_s[c] = r.span_s;
    }
    assert_true(span_s[3] < .5 * span_s[0]);
    arena_close(b.arena);
}

struct stored {
    size_t n;
    int64_t tokens[64], blocks[64];
};

static void keep_stored(void *closure, const struct simulate_step *x)
{
    struct stored *k = closure;
    assert_true(x->steps == 1 && k->n < 64);
    k->tokens[k->n] = x->stored_tokens;
    k->blocks[k->n++] = x->blocks;
}

/* Tokens that samples share are in the cache once: 4 answers to 40 tokens share two blocks of 16, and have the other 8
 * of them and their own tokens each; what is used never exceeds what is held. */
static void test_shared_once(void **state)
{
    (void)state;
    struct bench b;
    struct stored k = {.n = 0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const struct workload w = make(b.arena, 0, 0, 1, "40", "3", 4);
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    struct workload four = w;
    four.samples = 4;
    s.work = &four;
    s.step = keep_stored;
    s.closure = &k;
    const struct simulate_result r = run(b.arena, &s);
    assert_int_equal(k.n, 3);
    assert_int_equal(k.tokens[0], 40);
    for (int j = 1; j < 3; j++) {
        assert_int_equal(k.tokens[j], 32 + 4 * (8 + j));
        assert_int_equal(k.blocks[j], 2 + 4);
    }
    assert_true(r.useful_frac > 40. / 48 * .5 && r.useful_frac < 1);
    arena_close(b.arena);
}

/* Above saturation a queue grows, and that is said; below it is not, near it neither. */
static void test_saturation(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const struct workload offline = make(b.arena, 0, 0, 3000, "509", "211", 5);
    struct simulate_setup s = setup_of(&b, &offline, SIMULATE_CHUNKED);
    s.max_seqs = 64;
    const struct simulate_result most = run(b.arena, &s);
    const double saturation = 3000 / most.span_s;
    assert_false(most.growing);
    static const struct {
        double part;
        bool growing;
    } CASES[] = {{.5, false}, {.9, false}, {1.3, true}, {3, true}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        const struct workload w = make(b.arena, saturation * CASES[c].part, 0, 3000, "509", "211", 5);
        s.work = &w;
        const struct simulate_result r = run(b.arena, &s);
        if (r.growing != CASES[c].growing) fail_msg("at %.1f of saturation", CASES[c].part);
    }
    arena_close(b.arena);
}

/* Static batches wait for their longest; iteration-level ones do not: several times the throughput. */
static void test_static(void **state)
{
    (void)state;
    struct bench b;
    double span_s[3];
    open_bench(&b, "llama-2-13b", "h100-sxm", STEP_ROOFLINE);
    const struct workload w = make(b.arena, 0, 0, 640, "100", "exponential:200,max=4096", 31);
    for (int p = SIMULATE_STATIC; p <= SIMULATE_CHUNKED; p++) {
        struct simulate_setup s = setup_of(&b, &w, (enum simulate_policy)p);
        s.max_seqs = 32;
        span_s[p] = run(b.arena, &s).span_s;
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
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const struct workload w = make(b.arena, 9, 0, 2000, "lognormal:509,1", "lognormal:211,1", 5);
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    s.replicas = 3;
    const struct simulate_result x = run(b.arena, &s), y = run(b.arena, &s);
    for (size_t i = 0; i < w.n; i++) assert_true(x.record[i].finish_s == y.record[i].finish_s);
    s.progress = stop;
    const struct simulate_result part = run(b.arena, &s);
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
    struct bench b;
    struct simulate_result r;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", STEP_ROOFLINE);
    const struct workload w = make(b.arena, 0, 0, 7, "900", "200", 5);
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
    s.max_len_tokens = 1000;
    r = run(b.arena, &s);
    assert_true(r.refused == 7 && r.finished == 0);
    s.budget_tokens = 100;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    s.budget_tokens = 512;
    s.overhead_s = (double)NAN;
    assert_int_equal(simulate_run(b.arena, &s, &r, &e), ERR_RANGE);
    arena_close(b.arena);
}

/* ---- real servers ---- */

struct measured {
    double ttft_s[300], tpot_s[300], prompt_tokens[300];
    size_t n;
};

static bool read_measured(struct arena *a, const char *file, struct measured *m)
{
    struct csv *c = arena_alloc(a, sizeof *c);
    m->n = 0;
    assert_non_null(c);
    if (!csv_open(c, csv_shared(a, file))) return false;
    while (m->n < 300 && csv_next(c)) {
        m->ttft_s[m->n] = csv_num(c, "ttft_s");
        m->prompt_tokens[m->n] = csv_num(c, "prompt_tokens");
        m->tpot_s[m->n++] = csv_num(c, "tpot_ms") / 1e3;
    }
    csv_close(c);
    return m->n == 300;
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

/* Median over every fourth request, or over the others. */
static double median(const double *v, size_t n, bool quarter)
{
    double kept[300];
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if ((i % 4 == 0) == quarter) kept[k++] = v[i];
    qsort(kept, k, sizeof *kept, by_value);
    return kept[k / 2];
}

/* Whether the queue grew. */
static bool simulated(const struct simulate_setup *s, double *ttft_s, double *tpot_s)
{
    struct arena *a = arena_open();
    const struct simulate_result r = run(a, s);
    for (size_t i = 0; i < r.n; i++) {
        ttft_s[i] = simulate_ttft_s(&r.record[i]);
        tpot_s[i] = simulate_tpot_s(&r.record[i]);
    }
    arena_close(a);
    return r.growing;
}

/* vLLM's own times, request by request: one factor on the seconds of calibrated kernels, fitted to the median TPOT of
 * every fourth request (and to nothing of TTFT), then medians of the others. The first is of a server that is
 * overloaded, and must be. The second ran two attention groups with experts in two parts. What a request waits for
 * beside the steps is that of first tokens, of another server (engine.h). */
static void test_measured(void **state)
{
    (void)state;
    static const struct {
        const char *file, *model;
        int64_t groups, seqs; /* attention groups, and parts of the experts */
        double tpot_within, ttft_within;
    } CASES[] = {{"serving/traces/measured_vllm_rtxpro6000_llama31_8b.csv", "llama-3.1-8b", 1, 128, .1, .2},
                 {"serving/traces/measured_vllm_rtxpro6000_qwen3_30b_a3b_dp2ep2.csv", "qwen3-30b-a3b", 2, 128, .1, .2}};
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct bench b;
        struct measured m;
        struct workload w;
        struct engine vllm;
        struct engine_case server;
        struct err e = {0};
        double ttft_s[300], tpot_s[300], low = 0.25, high = 4;
        bool growing = false;
        open_bench(&b, CASES[c].model, "rtx-pro-6000-server", STEP_ROOFLINE);
        if (!read_measured(b.arena, CASES[c].file, &m)) {
            arena_close(b.arena);
            skip();
        }
        const struct layout layout = {.tp = 1, .dp = CASES[c].groups, .ep = CASES[c].groups};
        const struct step_setup setup = {.model = &b.model, .hw = &b.hw, .layout = layout, .block_tokens = 16};
        if (workload_read(b.arena, csv_shared(b.arena, CASES[c].file), &w, &e) != ERR_OK ||
            engine_load(b.arena, "vllm", &vllm, &e) != ERR_OK ||
            engine_case_open(b.arena, &vllm, &setup, &server, &e) != ERR_OK)
            fail_msg("%s", e.text);
        struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
        s.plan = server.bound;
        s.server = &server;
        s.groups = CASES[c].groups;
        s.max_seqs = CASES[c].seqs * s.groups;
        s.budget_tokens *= s.groups;
        s.blocks *= s.groups;
        vllm.terms.host_s = vllm.terms.sequence_s = vllm.terms.kernel_s = 0;
        for (int k = 0; k < 12; k++) {
            vllm.terms.factor = sqrt(low * high);
            growing = simulated(&s, ttft_s, tpot_s);
            if (median(tpot_s, m.n, true) < median(m.tpot_s, m.n, true))
                low = vllm.terms.factor;
            else
                high = vllm.terms.factor;
        }
        const double tpot = median(tpot_s, m.n, false) / median(m.tpot_s, m.n, false) - 1,
                     ttft = (median(ttft_s, m.n, false) + engine_first_s(median(m.prompt_tokens, m.n, false))) /
                                median(m.ttft_s, m.n, false) -
                            1;
        print_message("%s: kernels times %.3f: TPOT %+.1f %%, TTFT %+.1f %%\n", CASES[c].model, vllm.terms.factor,
                      100 * tpot, 100 * ttft);
        assert_true(growing || CASES[c].groups > 1);
        if (fabs(tpot) > CASES[c].tpot_within || fabs(ttft) > CASES[c].ttft_within)
            fail_msg("%s: TPOT %+.3f, TTFT %+.3f", CASES[c].model, tpot, ttft);
        arena_close(b.arena);
    }
}

/* Attention groups, each with a queue of its own to which the least loaded is sent, those behind the last one first;
 * every step by itself, every group priced in every step beside the tokens of the others. Without limits of memory,
 * prompts beside those that decode. The known mistake: one queue for all, spread evenly in every step. */
static void naive_groups(const struct bench *b, const struct simulate_setup *s, struct naive *q, int *of)
{
    enum { MOST = 8 };
    const struct workload *w = s->work;
    const int groups = (int)s->groups;
    struct mix x[MOST];
    struct err e = {0};
    double now = 0;
    int turn = 0;
    size_t routed = 0, out = 0;
    for (int g = 0; g < groups; g++) assert_int_equal(mix_open(b->arena, s->plan, &x[g], &e), ERR_OK);
    for (size_t i = 0; i < w->n; i++)
        q[i] = (struct naive){.left = w->request[i].output_tokens, .first_s = (double)NAN, .finish_s = (double)NAN};
    while (out < w->n) {
        int piece[NAIVE_MAX] = {0}, load[MOST];
        double all = 0, took_s = 0;
        if (out == routed && w->request[routed].arrival_s > now) now = w->request[routed].arrival_s;
        for (; routed < w->n && w->request[routed].arrival_s <= now; routed++) {
            int to = turn % groups;
            memset(load, 0, sizeof load);
            for (size_t i = 0; i < routed; i++) load[of[i]] += !(q[i].finish_s <= w->request[routed].arrival_s);
            for (int k = 1; k < groups; k++)
                if (load[(turn + k) % groups] < load[to]) to = (turn + k) % groups;
            of[routed] = to;
            turn = to + 1;
        }
        for (int g = 0; g < groups; g++) {
            int64_t left = s->budget_tokens / groups, there = 0;
            mix_clear(&x[g]);
            for (size_t i = 0; i < routed; i++) {
                if (of[i] != g || q[i].left == 0 || q[i].done < w->request[i].prompt_tokens) continue;
                mix_decode(&x[g], 1, q[i].context + 1);
                piece[i] = -1;
                left--;
            }
            for (size_t i = 0; i < routed; i++) {
                if (of[i] != g || q[i].left == 0) continue;
                const int64_t more = w->request[i].prompt_tokens - q[i].done;
                if (++there > s->max_seqs / groups) break;
                if (more == 0 || left == 0) continue;
                piece[i] = (int)(more < left ? more : left);
                mix_prefill(&x[g], 1, piece[i], q[i].done);
                left -= piece[i];
            }
            all += mix_tokens(&x[g]);
        }
        for (int g = 0; g < groups; g++) {
            if (!(mix_tokens(&x[g]) > 0)) continue;
            mix_others(&x[g], all - mix_tokens(&x[g]));
            took_s = fmax(took_s, naive_price(s, &x[g]));
        }
        now += took_s;
        for (size_t i = 0; i < routed; i++) {
            if (piece[i] == 0) continue;
            if (piece[i] > 0) {
                q[i].done += piece[i];
                q[i].context += piece[i];
                if (q[i].done < w->request[i].prompt_tokens) continue;
                q[i].first_s = now;
            } else {
                q[i].context++;
            }
            if (--q[i].left == 0) {
                q[i].finish_s = now;
                out++;
            }
        }
    }
}

static void test_groups(void **state)
{
    static const struct {
        int64_t groups, budget, seqs;
        double rate;
    } CASES[] = {{2, 701, 64, 21}, {4, 300, 3, 53}, {8, 2048, 64, 190}};
    (void)state;
    for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
        struct bench b;
        struct err e = {0};
        struct naive q[NAIVE_MAX];
        int of[NAIVE_MAX];
        open_bench(&b, "qwen3-30b-a3b", "h100-sxm", STEP_ROOFLINE);
        const int64_t groups = CASES[c].groups;
        const struct step_setup setup = {.model = &b.model,
                                         .hw = &b.hw,
                                         .layout = {.tp = 1, .dp = groups, .ep = groups},
                                         .fidelity = STEP_ROOFLINE,
                                         .block_tokens = 16};
        if (mix_compile(b.arena, &setup, &b.plan, &e) != ERR_OK) fail_msg("%s", e.text);
        struct workload w = make(b.arena, CASES[c].rate, 0, 151, "lognormal:600,0.9,max=5000", "uniform:2..90", 17);
        struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED);
        s.groups = groups;
        s.budget_tokens = groups * CASES[c].budget;
        s.max_seqs = groups * CASES[c].seqs;
        s.route = SIMULATE_LEAST_LOADED;
        naive_groups(&b, &s, q, of);
        const struct simulate_result r = run(b.arena, &s);
        assert_int_equal(r.finished, w.n);
        double last_s = 0;
        for (size_t i = 0; i < w.n; i++) {
            near_to(r.record[i].first_s, q[i].first_s, 1e-9, "first token of a group");
            near_to(r.record[i].finish_s, q[i].finish_s, 1e-9, "last token of a group");
            assert_int_equal(r.record[i].replica, 0);
            last_s = fmax(last_s, q[i].finish_s);
        }
        near_to(r.span_s, last_s, 1e-9, "span");
        assert_true(r.busy_s <= last_s && r.mean_running > 1 && r.most_running <= s.max_seqs);
        assert_int_equal(r.held_blocks, 0);
        /* copies of groups: all are routed to, each by itself in time */
        s.replicas = 3;
        const struct simulate_result many = run(b.arena, &s);
        int64_t of_copy[3] = {0};
        for (size_t i = 0; i < w.n; i++) of_copy[many.record[i].replica]++;
        assert_true(of_copy[0] > 30 && of_copy[1] > 30 && of_copy[2] > 30);
        assert_int_equal(many.pool[0].replicas, 3);
        /* a cache that holds the longest once in all, not once in every group */
        s.replicas = 1;
        s.blocks = groups * 60;
        assert_true(run(b.arena, &s).refused > 0);
        s.blocks = groups - 1;
        assert_int_equal(simulate_run(b.arena, &s, &(struct simulate_result){0}, &e), ERR_RANGE);
        s.blocks = groups * 60;
        s.policy = SIMULATE_FCFS;
        s.budget_tokens = groups - 1;
        assert_int_equal(simulate_run(b.arena, &s, &(struct simulate_result){0}, &e), ERR_RANGE);
        arena_close(b.arena);
    }
}

/* A service whose steps take b times as long, requests b times as far apart: every time is b times as long. */
static void test_slower(void **state)
{
    struct bench b;
    (void)state;
    open_bench(&b, "llama-3.1-8b", "l40s", STEP_ROOFLINE);
    struct workload w = make(b.arena, 7.3, 0, 211, "lognormal:700,0.6,max=3000", "uniform:20..130", 5);
    struct workload far = w;
    const double slower = 1.37;
    far.request = arena_array(b.arena, w.n, sizeof *far.request);
    assert_non_null(far.request);
    for (size_t i = 0; i < w.n; i++) {
        far.request[i] = w.request[i];
        far.request[i].arrival_s *= slower;
    }
    far.span_s *= slower;
    struct simulate_setup s = setup_of(&b, &w, SIMULATE_CHUNKED), t = setup_of(&b, &far, SIMULATE_CHUNKED);
    t.slower = slower;
    const struct simulate_result x = run(b.arena, &s), y = run(b.arena, &t);
    for (size_t i = 0; i < w.n; i++) {
        near_to(y.record[i].first_s, slower * x.record[i].first_s, 1e-6, "first token");
        near_to(y.record[i].finish_s, slower * x.record[i].finish_s, 1e-6, "last token");
    }
    near_to(y.busy_s, slower * x.busy_s, 1e-6, "busy");
    arena_close(b.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slower),
        cmocka_unit_test(test_against_steps),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_queueing),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_fronted),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_shared_once),
        cmocka_unit_test(test_waste),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_static),
        cmocka_unit_test(test_partial_and_repeated),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_calibrated),
        cmocka_unit_test(test_static_batch),
        cmocka_unit_test(test_mooncake),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
