#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/steady_batches.h"
#include "calc/serve/steady_chain.h"

/* ---- configurations ---- */

struct config {
    struct arena *arena;
    struct model model;
    struct hw hw;
    struct mix_plan *plan;
    struct workload work;
    struct steady_lengths lengths;
    struct steady_setup steady;
    struct simulate_setup simulated;
    char name[256];
};

/* A generator of its own: the configurations are the same everywhere. */
static double uniform(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return (double)(*s >> 11) / 9007199254740992.; /* 2^53 */
}

static double between(uint64_t *s, double low, double high) { return low * pow(high / low, uniform(s)); }

static void length_text(uint64_t *s, double low, double high, int64_t most, char *out, size_t cap)
{
    const double mean = floor(between(s, low, high));
    switch ((int)(uniform(s) * 4)) {
    case 0: (void)snprintf(out, cap, "%.0f", mean); break;
    case 1: (void)snprintf(out, cap, "lognormal:%.0f,%.2f,max=%lld", mean, .3 + uniform(s), (long long)most); break;
    case 2: (void)snprintf(out, cap, "exponential:%.0f", mean); break;
    default: (void)snprintf(out, cap, "uniform:%.0f..%.0f", ceil(.3 * mean), floor(1.7 * mean)); break;
    }
}

static void must(enum err_code code, const struct err *e)
{
    if (code != ERR_OK) fail_msg("%s", e->text);
}

/* The i-th: a model, a device, lengths, a scheduler's limits; no arrivals yet. */
static void open_config(struct config *c, enum simulate_policy policy, int i, int64_t requests)
{
    static const char *const MODELS[] = {"llama-3.1-8b", "qwen3-30b-a3b", "gemma-3-27b", "llama-2-13b",
                                         "rwkv6-finch-7b"},
                             *const DEVICES[] = {"h100-sxm", "h200-sxm", "l40s", "a100-sxm-80gb"};
    uint64_t s = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1) + 77;
    struct err e = {0};
    char prompt[64], output[64];
    for (int k = 0; k < 10; k++) (void)uniform(&s);
    *c = (struct config){.arena = arena_open()};
    const char *model = MODELS[(int)(uniform(&s) * 5)], *device = DEVICES[(int)(uniform(&s) * 4)];
    must(model_load(c->arena, model, NULL, 0, &c->model, &e), &e);
    must(hw_load(c->arena, device, &c->hw, &e), &e);
    const struct step_setup step = {
        .model = &c->model, .hw = &c->hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    must(mix_compile(c->arena, &step, &c->plan, &e), &e);
    length_text(&s, 50, 4000, 30000, prompt, sizeof prompt);
    length_text(&s, 16, 500, 8000, output, sizeof output);
    const int64_t seqs = uniform(&s) < .3 ? (int64_t)between(&s, 8, 64) : 256;
    const int64_t budget = (int64_t)fmax(between(&s, 512, 8192), (double)seqs);
    const double overhead_s = uniform(&s) < .5 ? 0 : between(&s, .0005, .005);
    struct workload_spec spec = {
        .rate_per_s = 1, .requests = requests, .turns = 1, .samples = 1, .seed = (uint64_t)i + 1};
    must(workload_length_parse(c->arena, prompt, &spec.prompt, &e), &e);
    must(workload_length_parse(c->arena, output, &spec.output, &e), &e);
    must(workload_make(c->arena, &spec, &c->work, &e), &e);
    must(steady_lengths_of_work(c->arena, &c->work, 0, &c->lengths, &e), &e);
    c->steady = (struct steady_setup){.plan = c->plan,
                                      .overhead_s = overhead_s,
                                      .policy = policy,
                                      .budget_tokens = budget,
                                      .max_seqs = seqs,
                                      .blocks = 20011,
                                      .block_tokens = 16,
                                      .watermark_frac = policy == SIMULATE_FCFS ? .01 : 0,
                                      .replicas = 1,
                                      .lengths = &c->lengths,
                                      .rate_per_s = 1e9,
                                      .arrival_cv2 = 1,
                                      .ttft_limit_s = (double)NAN,
                                      .tpot_limit_s = (double)NAN};
    c->simulated = (struct simulate_setup){.work = &c->work,
                                           .plan = c->plan,
                                           .overhead_s = overhead_s,
                                           .policy = policy,
                                           .budget_tokens = budget,
                                           .max_seqs = seqs,
                                           .blocks = 20011,
                                           .block_tokens = 16,
                                           .max_len_tokens = WORKLOAD_TOKENS_MAX,
                                           .watermark_frac = c->steady.watermark_frac,
                                           .replicas = 1};
    (void)snprintf(c->name, sizeof c->name, "%d: %s on %s, %s in, %s out, %lld sequences, %lld tokens", i, model,
                   device, prompt, output, (long long)seqs, (long long)budget);
}

static struct steady_result solve(struct arena *a, const struct steady_setup *s)
{
    struct steady_result r;
    struct err e = {0};
    must(steady_solve(a, s, &r, &e), &e);
    return r;
}

static struct simulate_result simulate(struct arena *a, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    must(simulate_run(a, s, &r, &e), &e);
    return r;
}

/* Arrivals made at one a second come so many times as fast. */
static void hasten(struct config *c, double rate_per_s)
{
    for (size_t i = 0; i < c->work.n; i++) c->work.request[i].arrival_s /= rate_per_s;
    c->work.span_s /= rate_per_s;
    c->steady.rate_per_s = (double)c->work.n / c->work.span_s;
}

/* ---- against the simulator ---- */

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

/* Answers a second between two parts of them: without the beginning and the end of a run. */
static double answers_per_s(struct arena *a, const struct simulate_result *q, double from, double to)
{
    double *end_s = arena_array(a, q->n, sizeof *end_s);
    assert_non_null(end_s);
    for (size_t k = 0; k < q->n; k++) end_s[k] = q->record[k].finish_s;
    qsort(end_s, q->n, sizeof *end_s, by_value);
    size_t i = (size_t)(from * (double)q->n), j = (size_t)(to * (double)q->n);
    while (i + 1 < j && !(end_s[i + 1] > end_s[i])) i++; /* from the end of a batch to that of another */
    while (j + 1 < q->n && !(end_s[j + 1] > end_s[j])) j++;
    return (double)(j - i) / (end_s[j] - end_s[i]);
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
    open_config(&c, policy, i, requests);
    (void)uniform(&s);
    const double one_per_s = solve(c.arena, &c.steady).saturation_rate_per_s * (.2 + .6 * uniform(&s));
    const int copies = behind_a_router() ? 2 + (int)(3 * uniform(&s)) : 1;
    hasten(&c, copies * one_per_s);
    c.simulated.replicas = c.steady.replicas = copies;
    c.simulated.route = c.steady.route = in_turn() ? SIMULATE_ROUND_ROBIN : SIMULATE_LEAST_LOADED;
    const struct steady_result r = solve(c.arena, &c.steady);
    const struct simulate_result q = simulate(c.arena, &c.simulated);
    must(simulate_spread_of(&q, simulate_ttft_s, &ttft, &e), &e);
    must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
    assert_false(r.saturated);
    const double rate = answers_per_s(c.arena, &q, .05, .95) * c.lengths.output_tokens;
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
    return asked > 0 && asked <= 10000 ? (int)asked : plain;
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
            open_config(&c, WANTED[p].policy, i, requests);
            for (size_t k = 0; k < c.work.n; k++) c.work.request[k].arrival_s = 0;
            c.work.open = c.work.timed = false;
            c.steady.load = STEADY_OFFLINE;
            c.steady.requests = (double)c.work.n;
            const struct simulate_result q = simulate(c.arena, &c.simulated);
            const double found = answers_per_s(c.arena, &q, .25, .85);
            const double rate = solve(c.arena, &c.steady).saturation_rate_per_s;
            good += fabs(rate / found - 1) <= .05;
            if (fabs(rate / found - 1) > .05) show_far(&c, "saturation", rate, found);
            arena_close(c.arena);
        }
        if (getenv("RIDGE_STEADY"))
            print_message("policy %d: saturation of %d in %d within 5 %%\n", (int)WANTED[p].policy, good, n);
        hold(good, WANTED[p].part, n, WANTED[p].policy, "saturation");
    }
}

/* So many clients, each asking again as soon as it is answered. */
static void close_loop(struct config *c, size_t clients)
{
    for (size_t i = 0; i < c->work.n; i++) {
        c->work.request[i].arrival_s = 0;
        c->work.request[i].next = i + clients < c->work.n ? (uint32_t)(i + clients) : WORKLOAD_NO_NEXT;
    }
    c->work.open = c->work.timed = false;
    c->work.first_n = clients;
    c->work.span_s = 0;
    c->steady.load = STEADY_CLOSED;
    c->steady.concurrency = (double)clients;
    c->steady.requests = (double)c->work.n;
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
    (void)uniform(&s);
    const double clients = floor(between(&s, 1, 400));
    /* each asks so often that few are done long before the others */
    open_config(&c, policy, i, (int64_t)fmax((double)requests, (double)each * clients));
    close_loop(&c, (size_t)clients);
    const struct steady_result r = solve(c.arena, &c.steady);
    const struct simulate_result q = simulate(c.arena, &c.simulated);
    const bool whole = policy == SIMULATE_STATIC;
    const struct simulate_spread ttft = middle(&q, whole, simulate_ttft_s), tpot = middle(&q, whole, simulate_tpot_s);
    const double rate = answers_per_s(c.arena, &q, whole ? .05 : .25, whole ? .95 : .7) * c.lengths.output_tokens;
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
        open_config(&c, SIMULATE_CHUNKED, 4, 78 * EACH[k]);
        close_loop(&c, 78);
        const struct steady_result r = solve(c.arena, &c.steady);
        const struct simulate_result q = simulate(c.arena, &c.simulated);
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

/* ---- exact cases ---- */

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.9g, wanted %.9g", what, found, wanted);
}

static double step_s(struct arena *a, struct mix_plan *plan, double decoding, double context, double prompt)
{
    struct mix x;
    struct err e = {0};
    double v[MIX_VALUES_N];
    must(mix_open(a, plan, &x, &e), &e);
    if (decoding > 0) mix_decode(&x, decoding, context);
    if (prompt > 0) mix_prefill(&x, 1, prompt, 0);
    mix_eval(&x, v);
    return v[MIX_step_s];
}

static void open_fixed(struct config *c, enum simulate_policy policy, const char *prompt, const char *output)
{
    struct workload_length p, o;
    struct err e = {0};
    open_config(c, policy, 3, 2);
    must(workload_length_parse(c->arena, prompt, &p, &e), &e);
    must(workload_length_parse(c->arena, output, &o, &e), &e);
    must(steady_lengths_of(c->arena, &p, &o, 0, &c->lengths, &e), &e);
    c->steady.overhead_s = 0;
    c->steady.max_seqs = 256;
    c->steady.budget_tokens = 4099;
}

/* One client is alone: its prompt whole, then steps of one sequence; one request a sum of both. */
static void test_alone(void **state)
{
    (void)state;
    for (int p = SIMULATE_STATIC; p <= SIMULATE_CHUNKED; p++) {
        struct config c;
        open_fixed(&c, (enum simulate_policy)p, "1013", "61");
        c.steady.load = STEADY_CLOSED;
        c.steady.concurrency = 1;
        const struct steady_result r = solve(c.arena, &c.steady);
        const double first_s = step_s(c.arena, c.plan, 0, 0, 1013);
        const double one_s = step_s(c.arena, c.plan, 1, 1013 + .5 + 30, 0);
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
        open_fixed(&c, (enum simulate_policy)p, "1013", "61");
        const double context = 1013.5 + 30;
        close_loop(&c, 7);
        c.steady.concurrency = 7;
        const struct steady_result r = solve(c.arena, &c.steady);
        double first_s, second_s, cycle_s;
        if (p == SIMULATE_FCFS) {
            first_s = 4 * step_s(c.arena, c.plan, 0, 0, 1013) / 4; /* one prompt, to see that four are not four of it */
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
            cycle_s = first_s + second_s + 60 * step_s(c.arena, c.plan, 7, context, 0);
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
        open_config(&c, i % 2 ? SIMULATE_FCFS : SIMULATE_CHUNKED, i, 500);
        c.steady.replicas = 1 + i % 3;
        c.steady.rate_per_s = 1e9;
        const double most = solve(c.arena, &c.steady).saturation_rate_per_s;
        double before_s = 0, ttft_s = 0;
        for (int k = 1; k < 5; k++) {
            c.steady.rate_per_s = most * k / 5.3;
            const struct steady_result r = solve(c.arena, &c.steady);
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
    open_fixed(&c, SIMULATE_CHUNKED, "907", "211");
    const double most = solve(c.arena, &c.steady).saturation_rate_per_s;
    for (int k = 0; k < 2; k++) {
        c.steady.rate_per_s = most * (k ? 1.0001 : 17);
        const struct steady_result r = solve(c.arena, &c.steady);
        assert_true(r.saturated);
        assert_true(isnan(r.ttft_s.mean) && isnan(r.tpot_s.p50) && isnan(r.batch) && isnan(r.goodput_per_s));
        assert_true(isnan(r.output_tok_per_s) && isnan(r.utilisation));
        near_to(r.saturation_rate_per_s, most, 1e-9, "rate");
    }
    c.steady.rate_per_s = most * .6;
    assert_false(solve(c.arena, &c.steady).saturated);
    c.steady.max_seqs = 7;
    assert_int_equal(solve(c.arena, &c.steady).by, STEADY_SEQS);
    c.steady.max_seqs = 256;
    c.steady.blocks = 331;
    assert_int_equal(solve(c.arena, &c.steady).by, STEADY_BLOCKS);
    arena_close(c.arena);
}

/* Where the cache binds, preempted sequences are computed anew: against the simulator, all at once. */
static void test_preempted(void **state)
{
    (void)state;
    static const struct {
        enum simulate_policy policy;
        const char *prompt, *output;
        int64_t blocks;
        double low, high;
    } CASES[] = {
        {SIMULATE_CHUNKED, "1201", "307", 8009, .9, 1.05},
        {SIMULATE_CHUNKED, "1201", "exponential:307", 8009, .94, 1.05},
        {SIMULATE_CHUNKED, "503", "exponential:997", 9001, .92, 1.05},
        {SIMULATE_CHUNKED, "lognormal:1201,0.6", "lognormal:307,0.7", 8009, .94, 1.06},
        {SIMULATE_FCFS, "1201", "307", 8009, .87, 1.05}, /* safe: bunches are not whole */
        {SIMULATE_FCFS, "1201", "exponential:307", 8009, .92, 1.06},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct config c;
        open_fixed(&c, CASES[i].policy, CASES[i].prompt, CASES[i].output);
        c.simulated.blocks = c.steady.blocks = CASES[i].blocks;
        c.simulated.overhead_s = 0;
        c.simulated.max_seqs = c.steady.max_seqs;
        c.simulated.budget_tokens = c.steady.budget_tokens;
        struct workload_spec spec = {.rate_per_s = 1, .requests = 2500, .turns = 1, .samples = 1, .seed = 11 + i};
        struct err e = {0};
        must(workload_length_parse(c.arena, CASES[i].prompt, &spec.prompt, &e), &e);
        must(workload_length_parse(c.arena, CASES[i].output, &spec.output, &e), &e);
        must(workload_make(c.arena, &spec, &c.work, &e), &e);
        must(steady_lengths_of_work(c.arena, &c.work, 0, &c.lengths, &e), &e);
        for (size_t k = 0; k < c.work.n; k++) c.work.request[k].arrival_s = 0;
        c.work.open = c.work.timed = false;
        const struct simulate_result q = simulate(c.arena, &c.simulated);
        const double found = answers_per_s(c.arena, &q, .3, .8);
        const struct steady_result r = solve(c.arena, &c.steady);
        assert_int_equal(r.by, STEADY_BLOCKS);
        assert_true(q.preemptions > 0);
        if (getenv("RIDGE_STEADY"))
            print_message("%s: case %zu: saturates at %.6g, simulated %.6g (%.3f), %.3g preempted\n", c.name, i,
                          r.saturation_rate_per_s, found, r.saturation_rate_per_s / found,
                          (double)q.preemptions / (double)c.work.n);
        if (!(r.saturation_rate_per_s / found >= CASES[i].low && r.saturation_rate_per_s / found <= CASES[i].high))
            fail_msg("case %zu: saturates at %.6g, simulated %.6g", i, r.saturation_rate_per_s, found);
        arena_close(c.arena);
    }
}

/* q = m/P where answers end in bunches, exp(-k) of it where they end independently. */
static void test_again(void **state)
{
    (void)state;
    struct config c;
    open_fixed(&c, SIMULATE_CHUNKED, "907", "211");
    near_to(steady_again_of(&c.lengths, 3.7), 210. / 907, 1e-9, "of one length");
    near_to(steady_vain_of(&c.lengths, 603, 31), .5 * (304. / 907) * (603. / 907) / (exp(2 * 31. / 210) - 1), 1e-9,
            "first pieces");
    assert_true(!(steady_vain_of(&c.lengths, 911, 31) > 0));  /* prompts no longer than a step */
    assert_true(!(steady_rest_of(&c.lengths, 1301, 31) > 0)); /* answers of one length */
    arena_close(c.arena);
    /* a whole prompt and 394 tokens of the next: 394/907 (1 - 394/907)^2, of steps of which 31 answers' prompts fill a
     * part; none where they fill steps, and none where two prompts fit */
    open_fixed(&c, SIMULATE_CHUNKED, "907", "exponential:211");
    const double x = 394. / 907, filled = 31 / c.lengths.steps * 907 / 1301;
    near_to(steady_rest_of(&c.lengths, 1301, 31), x * (1 - x) * (1 - x) * (1 - filled * filled), 1e-6, "rest");
    assert_true(!(steady_rest_of(&c.lengths, 1301, 307) > 0));
    assert_true(!(steady_rest_of(&c.lengths, 1823, 31) > 0));
    arena_close(c.arena);
    open_fixed(&c, SIMULATE_CHUNKED, "907", "exponential:211");
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
    open_fixed(&c, SIMULATE_CHUNKED, "10007", "exponential:61");
    const double steps = c.lengths.steps;
    close_loop(&c, 1);
    const struct steady_result r = solve(c.arena, &c.steady);
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
    close_loop(&c, 251);
    const struct steady_result full = solve(c.arena, &c.steady);
    const double n = 4099 * steps / (10007 + steps);
    c.steady.load = STEADY_OFFLINE;
    c.steady.requests = 997;
    near_to(full.rate_per_s, solve(c.arena, &c.steady).saturation_rate_per_s, .02, "full steps");
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
    open_fixed(&c, SIMULATE_FCFS, "3001", "exponential:61");
    const double one_s = step_s(c.arena, c.plan, 0, 0, 3001);
    static const int64_t CLIENTS[] = {7, 17, 53};
    for (size_t i = 0; i < 3; i++) {
        close_loop(&c, (size_t)CLIENTS[i]);
        c.steady.ttft_limit_s = 1.2 * one_s;
        const struct steady_result r = solve(c.arena, &c.steady);
        const double mean = (double)CLIENTS[i] / c.lengths.steps;
        near_to(r.ttft_s.mean, one_s * (1 + mean / 2), .04, "half are in front");
        near_to(r.good_frac, -expm1(-mean) / mean, .02, "none in front");
    }
    arena_close(c.arena);
}

/* Twenty-five clients of static batches of ten: half wait for one batch and half for two. */
static void test_turns(void **state)
{
    (void)state;
    struct config c;
    open_fixed(&c, SIMULATE_STATIC, "1013", "61");
    close_loop(&c, 25);
    c.steady.max_seqs = 10;
    const struct steady_result r = solve(c.arena, &c.steady);
    struct mix x;
    struct err e = {0};
    double v[MIX_VALUES_N];
    must(mix_open(c.arena, c.plan, &x, &e), &e);
    mix_prefill(&x, 10, 1013, 0);
    mix_eval(&x, v);
    const double first_s = v[MIX_step_s], all_s = first_s + 60 * step_s(c.arena, c.plan, 1, 1013.5 + 30, 0);
    mix_clear(&x);
    mix_decode(&x, 10, 1013.5 + 30);
    mix_eval(&x, v);
    const double batch_s = first_s + 60 * v[MIX_step_s];
    assert_true(batch_s > all_s); /* of ten, not of one */
    near_to(r.rate_per_s, 10 / batch_s, .01, "ten a batch");
    near_to(r.ttft_s.mean, first_s + 1.5 * batch_s, .02, "a batch and a half");
    near_to(r.ttft_s.p90, first_s + 2 * batch_s, .02, "two");
    near_to(r.ttft_s.p50, first_s + batch_s, .02, "one");
    near_to(r.tpot_s.mean, v[MIX_step_s], .01, "one length");
    arena_close(c.arena);
}

/* A chain against a queue of whole prompts, step by step: time of a step, seconds of the first seven of an answer, what
 * waits behind nothing, others that begin with one, and the first tokens of those who come in a step. */
static void test_chain(void **state)
{
    (void)state;
    enum { STEPS = 200000, AFTER = 7, QUEUE = 256 };
    static const struct {
        const char *prompt, *output;
        int64_t budget;
        double load;
        int phases;
    } CASES[] = {{"1709", "53", 1103, .6, 1}, {"307", "41", 2003, .7, 1}, {"exponential:907", "67", 811, .5, 1},
                 {"1709", "53", 1103, .7, 2}, {"307", "41", 2003, .7, 3}, {"exponential:907", "67", 811, .6, 3}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct steady_chain c;
        static struct steady_histogram h;
        static double step_s[STEPS + AFTER];
        static unsigned char begun[STEPS + AFTER];
        struct config k;
        struct err e = {0};
        open_fixed(&k, SIMULATE_CHUNKED, CASES[i].prompt, CASES[i].output);
        k.steady.budget_tokens = CASES[i].budget;
        k.steady.replicas = CASES[i].phases;
        must(steady_times_open(k.arena, &k.steady, &k.steady.times, &e), &e);
        struct steady_times *t = k.steady.times;
        assert_int_equal(steady_chain_phases(&k.steady), CASES[i].phases);
        must(steady_chain_room(t, CASES[i].phases, &e), &e);
        c = t->chain[0];
        struct steady_replica r = {.s = &k.steady, .times = t, .arrival_cv2 = 1, .prompts_frac = 1};
        const double n = 11, room = (double)CASES[i].budget - n, full_s = steady_times_step_s(t, n, room);
        const double rate = CASES[i].load * room / (full_s * k.lengths.prompt_tokens);
        const bool fixed = CASES[i].prompt[0] != 'e';
        steady_chain_open(&r, rate, n, n, false, &c);
        steady_histogram_clear(&h);
        steady_chain_first(&c, &k.lengths, 0, 1, &h);
        double queue[QUEUE], came_s[QUEUE], sum_s = 0, first_s = 0, firsts = 0, clear = 0;
        int waiting = 0, phase = 0;
        uint64_t seed = 77 + i;
        for (int q = 0; q < 10; q++) (void)uniform(&seed);
        for (size_t step = 0; step < STEPS + AFTER; step++) {
            double left = room, tokens = 0;
            int done = 0;
            for (int q = 0; q < waiting && left > 0; q++) {
                const double piece = fmin(queue[q], left);
                left -= piece;
                tokens += piece;
                queue[q] -= piece;
                done += !(queue[q] > 0);
            }
            step_s[step] = steady_times_step_s(t, n, tokens);
            for (int q = 0; q < done; q++) first_s += sum_s + step_s[step] - came_s[q];
            firsts += done;
            waiting -= done;
            for (int q = 0; q < waiting; q++) {
                queue[q] = queue[q + done];
                came_s[q] = came_s[q + done];
            }
            /* every phases-th of a stream */
            const double ticks = CASES[i].phases * rate * step_s[step];
            for (double at = -log1p(-uniform(&seed)); at < ticks; at -= log1p(-uniform(&seed))) {
                if (++phase % CASES[i].phases != 0) continue;
                assert_true(waiting < QUEUE);
                queue[waiting] = fixed ? k.lengths.prompt_tokens : -k.lengths.prompt_tokens * log1p(-uniform(&seed));
                came_s[waiting++] = sum_s + step_s[step] * at / ticks;
            }
            sum_s += step_s[step];
            begun[step] = (unsigned char)done;
            clear += waiting == 0 ? done : 0;
        }
        double seven_s = 0, others = 0, beside = 0, all = 0;
        for (size_t step = 0; step < STEPS; step++) {
            all += begun[step];
            beside += begun[step] * (begun[step] - 1);
            for (size_t a = 1; a <= AFTER && begun[step]; a++) {
                seven_s += begun[step] * step_s[step + a];
                others += begun[step] * begun[step + a];
            }
        }
        double later = AFTER * c.begin;
        for (int a = 1; a <= AFTER && a <= c.known; a++) later += c.more[a];
        near_to(c.mean_s, sum_s / (STEPS + AFTER), .02, "a step");
        near_to(c.begin, all / STEPS, .02, "begin in a step");
        near_to(steady_chain_sum_s(&c, AFTER), seven_s / all, .04, "seven steps");
        double none = 0;
        for (int j = 0; j < c.phases; j++) none += c.entry[j];
        near_to(none, clear / firsts, .1, "nothing behind it");
        near_to(1 + c.with, 1 + beside / all, .1, "begin with it");
        near_to(1 + later, 1 + others / all, .12, "begin later");
        near_to(h.sum / h.total, first_s / firsts, .04, "first token");
        arena_close(k.arena);
    }
}

/* Static batches of answers of 17 or 61 tokens, either as likely, prompts of 47: of 8 blocks of 16 tokens a sequence
 * has 4 or 7, so that three short ones fit into 15 blocks and two of whatever length. A batch begins with a long one
 * with the chance q. Of short ones it has three with the chance 1/4, and ends with the same for a long one, which
 * begins the next: q = (1 - x)/2 + x, x = (1 - q)/4, that is q = 5/9, and E[N] = 2 + (1 - q)/4 = 19/9. */
static void test_turns_of(void **state)
{
    (void)state;
    struct config c;
    struct err e = {0};
    struct workload w;
    struct workload_spec spec = {.rate_per_s = 1, .requests = 4000, .turns = 1, .samples = 1, .seed = 3};
    open_fixed(&c, SIMULATE_STATIC, "47", "17");
    must(workload_length_parse(c.arena, "47", &spec.prompt, &e), &e);
    must(workload_length_parse(c.arena, "17", &spec.output, &e), &e);
    must(workload_make(c.arena, &spec, &w, &e), &e);
    for (size_t i = 1; i < w.n; i += 2) w.request[i].output_tokens = 61;
    must(steady_lengths_of_work(c.arena, &w, 0, &c.lengths, &e), &e);
    c.steady.blocks = 15;
    struct steady_batches b = {.s = &c.steady};
    struct steady_turns x;
    double below = 0;
    must(mix_open(c.arena, c.plan, &b.x, &e), &e);
    for (size_t q = 0; q < STEADY_QUANTILES; q++) {
        double part;
        (void)steady_quantile(q, &part);
        below += part;
        b.log_below[q] = log(fmin(below, 1));
    }
    steady_turns_of(&b, 2, 256, &x);
    near_to(x.number, 19. / 9, .02, "two, or three short ones");
    arena_close(c.arena);
}

/* Every n-th of a stream, counted one by one: how many come from each phase, and the phase that follows. */
static void test_ticks(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    static const double TICKS[] = {.37, 2.9, 13.1};
    uint64_t seed = 4711;
    for (int n = 2; n <= STEADY_CHAIN_PHASES; n++)
        for (size_t t = 0; t < sizeof TICKS / sizeof *TICKS; t++)
            for (int from = 0; from < n; from++) {
                const struct steady_chain_ticks x = steady_chain_tick(n, TICKS[t]);
                double of[3][STEADY_CHAIN_PHASES] = {{0}}, several = 0, mean = 0, square = 0, all = 0;
                for (int i = 0; i < DRAWS; i++) {
                    int phase = from, came = 0;
                    for (double at = -log1p(-uniform(&seed)); at < TICKS[t]; at -= log1p(-uniform(&seed)))
                        if (++phase == n) {
                            phase = 0;
                            came++;
                        }
                    of[came < 2 ? came : 2][phase] += 1. / DRAWS;
                    several += came > 1;
                    mean += came > 1 ? came : 0;
                    square += came > 1 ? came * came : 0;
                }
                for (int some = 0; some < 3; some++)
                    for (int q = 0; q < n; q++) {
                        assert_true(fabs(x.of[some][from][q] - of[some][q]) < 5e-3);
                        all += x.of[some][from][q];
                    }
                near_to(all, 1, 1e-12, "all");
                if (several > 1000) near_to(x.mean[from], mean / several, .02, "several");
                if (several > 1000) near_to(x.square[from], square / several, .04, "several, squared");
            }
}

/* Of every other one, by hand: behind one nobody comes in a time of x with the chance e^-2x (1 + 2x), and fewer than x
 * come on average, by (1 - e^-4x)/4 (Cox, Renewal Theory, 1962). */
static void test_turns_by_hand(void **state)
{
    (void)state;
    struct steady_setup s = {.replicas = 2, .route = SIMULATE_ROUND_ROBIN, .load = STEADY_OPEN};
    for (double x = .07; x < 9; x *= 1.9) {
        near_to(steady_turn_none(&s, x), exp(-2 * x) * (1 + 2 * x), 1e-12, "none");
        near_to(steady_turn_fewer(&s, x), -expm1(-4 * x) / 4, 1e-12, "fewer");
    }
    s.replicas = 1;
    near_to(steady_turn_none(&s, .7), exp(-.7), 1e-12, "one copy");
    assert_true(!(steady_turn_fewer(&s, .7) > 0));
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
                open_config(&c, (enum simulate_policy)p, 310 + i, 3000);
                const int copies = 2 + i % 3;
                hasten(&c, copies * (.35 + .07 * i) * solve(c.arena, &c.steady).saturation_rate_per_s);
                c.simulated.replicas = copies;
                c.simulated.route = turn ? SIMULATE_ROUND_ROBIN : SIMULATE_LEAST_LOADED;
                struct steady_setup share = c.steady;
                share.rate_per_s /= copies;
                c.steady.replicas = copies;
                c.steady.route = c.simulated.route;
                const struct steady_result r[] = {solve(c.arena, &c.steady), solve(c.arena, &share)};
                const struct simulate_result q = simulate(c.arena, &c.simulated);
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

/* Single tokens of fixed prompts under fcfs, one at a time: M/D/1 by Pollaczek-Khinchine. */
static void test_prompts_alone(void **state)
{
    (void)state;
    struct config c;
    open_fixed(&c, SIMULATE_FCFS, "3001", "1");
    c.steady.budget_tokens = 3001;
    const double service_s = step_s(c.arena, c.plan, 0, 0, 3001);
    for (int k = 0; k < 3; k++) {
        const double rho = .2 + .2 * k;
        c.steady.rate_per_s = rho / service_s;
        const struct steady_result r = solve(c.arena, &c.steady);
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
    open_fixed(&c, SIMULATE_CHUNKED, "lognormal:907,0.7", "exponential:211");
    c.steady.rate_per_s = .5 * solve(c.arena, &c.steady).saturation_rate_per_s;
    const struct steady_result r = solve(c.arena, &c.steady);
    near_to(r.goodput_per_s, r.rate_per_s, 1e-9, "without limits");
    c.steady.ttft_limit_s = r.ttft_s.p50;
    near_to(solve(c.arena, &c.steady).good_frac, .5, .02, "TTFT");
    c.steady.ttft_limit_s = (double)NAN;
    c.steady.tpot_limit_s = r.tpot_s.p90;
    near_to(solve(c.arena, &c.steady).good_frac, .9, .02, "TPOT");
    c.steady.tpot_limit_s = 1e-9;
    assert_true(solve(c.arena, &c.steady).good_frac < .02);
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

/* Prefill replicas, a link, decode replicas: each saturates in turn; the transfer is between first and second token. */
static void test_pools(void **state)
{
    (void)state;
    struct config c;
    open_fixed(&c, SIMULATE_FCFS, "1511", "307");
    struct steady_decode d = {.plan = c.plan,
                              .max_seqs = 256,
                              .blocks = 20011,
                              .block_tokens = 16,
                              .replicas = 2,
                              .kv_bytes_per_token = 131072,
                              .link_bytes_per_s = 25e9};
    c.steady.decode = &d;
    c.steady.replicas = 3;
    const struct steady_result most = solve(c.arena, &c.steady);
    const double prefill_s = step_s(c.arena, c.plan, 0, 0, 1511), transfer_s = 1511 * 131072. / 25e9;
    c.steady.rate_per_s = .4 * most.saturation_rate_per_s;
    const struct steady_result r = solve(c.arena, &c.steady);
    assert_true(r.ttft_s.mean >= prefill_s * .98 && r.ttft_s.mean <= prefill_s * 1.4); /* idle between, not steps */
    const double rest_s = .5 * r.decode_utilisation * r.step_s; /* of the step that runs when it is asked for */
    near_to(r.move_s - rest_s, transfer_s, .2, "transfer");
    assert_true(r.move_s >= transfer_s + rest_s - 1e-9);
    near_to(r.tpot_s.mean, r.step_s + r.move_s / 306, .01, "TPOT");
    d.link_bytes_per_s = 1e8;
    assert_int_equal(solve(c.arena, &c.steady).by, STEADY_TRANSFER);
    near_to(solve(c.arena, &c.steady).saturation_rate_per_s, 3 * 1e8 / (1511 * 131072.), 1e-6, "link");
    d.link_bytes_per_s = (double)INFINITY;
    d.replicas = 64;
    c.steady.rate_per_s = 1e9;
    assert_int_equal(solve(c.arena, &c.steady).by, STEADY_COMPUTE);
    c.steady.load = STEADY_CLOSED;
    c.steady.concurrency = 5;
    struct steady_result none;
    struct err e = {0};
    assert_int_equal(steady_solve(c.arena, &c.steady, &none, &e), ERR_RANGE);
    arena_close(c.arena);
}

/* Pools that are overloaded: as many answers a second as the slower pool makes, whichever it is. A budget that a step's
 * sequences and a prompt fill does not slow replicas that only decode. Caches that bind lose some: 8 %. */
static void test_pools_overloaded(void **state)
{
    (void)state;
    static const struct {
        const char *prompt, *output;
        int64_t first, second, blocks, budget;
        double within;
        enum steady_limit by;
    } CASES[] = {
        {"211", "199", 1, 1, 20011, 1031, .05, STEADY_SEQS},
        {"1201", "97", 2, 1, 20011, 1031, .05, STEADY_COMPUTE},
        {"1201", "307", 1, 3, 20011, 4099, .05, STEADY_COMPUTE},
        {"4001", "53", 1, 1, 20011, 4099, .05, STEADY_COMPUTE},
        {"101", "uniform:203..803", 2, 1, 20011, 1031, .05, STEADY_SEQS},
        {"211", "499", 1, 1, 6007, 4099, .08, STEADY_BLOCKS},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct config c;
        open_fixed(&c, SIMULATE_CHUNKED, CASES[i].prompt, CASES[i].output);
        struct workload_spec spec = {.rate_per_s = 1, .requests = 4000, .turns = 1, .samples = 1, .seed = 23 + i};
        struct err e = {0};
        must(workload_length_parse(c.arena, CASES[i].prompt, &spec.prompt, &e), &e);
        must(workload_length_parse(c.arena, CASES[i].output, &spec.output, &e), &e);
        must(workload_make(c.arena, &spec, &c.work, &e), &e);
        for (size_t k = 0; k < c.work.n; k++) c.work.request[k].arrival_s = 0;
        c.work.open = c.work.timed = false;
        const struct steady_decode d = {.plan = c.plan,
                                        .max_seqs = c.steady.max_seqs,
                                        .blocks = CASES[i].blocks,
                                        .block_tokens = 16,
                                        .replicas = CASES[i].second,
                                        .link_bytes_per_s = (double)INFINITY};
        c.steady.decode = &d;
        c.steady.replicas = CASES[i].first;
        c.steady.blocks = c.simulated.blocks = CASES[i].blocks;
        c.steady.budget_tokens = c.simulated.budget_tokens = CASES[i].budget;
        c.simulated.overhead_s = 0;
        c.simulated.max_seqs = c.steady.max_seqs;
        c.simulated.replicas = CASES[i].first + CASES[i].second;
        c.simulated.pools.prefill = CASES[i].first;
        c.simulated.pools.link_bytes_per_s = (double)INFINITY;
        const struct steady_result r = solve(c.arena, &c.steady);
        const struct simulate_result q = simulate(c.arena, &c.simulated);
        const double found = answers_per_s(c.arena, &q, .25, .85);
        if (!(fabs(r.saturation_rate_per_s / found - 1) <= CASES[i].within))
            print_message("case %zu: saturates at %.6g, simulated %.6g\n", i, r.saturation_rate_per_s, found);
        if (r.by != CASES[i].by) print_message("case %zu by %d\n", i, (int)r.by);
        near_to(r.saturation_rate_per_s, found, CASES[i].within, CASES[i].prompt);
        arena_close(c.arena);
    }
}

/* No more are in flight than ask, and a mean and percentiles are of one distribution. */
static void test_clients_agree(void **state)
{
    (void)state;
    static const double CLIENTS[] = {1, 7, 31, 127};
    for (size_t i = 0; i < 4 * 4; i++) {
        struct config c;
        const bool fixed = i / 4 % 2 == 0;
        open_fixed(&c, i / 8 ? SIMULATE_FCFS : SIMULATE_CHUNKED, fixed ? "1201" : "lognormal:1201,0.5",
                   fixed ? "307" : "lognormal:307,0.5");
        c.steady.load = STEADY_CLOSED;
        c.steady.concurrency = CLIENTS[i % 4];
        const struct steady_result r = solve(c.arena, &c.steady);
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
    open_config(&c, SIMULATE_CHUNKED, 5, 3000);
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
    hasten(&c, .5 * solve(c.arena, &c.steady).saturation_rate_per_s);
    const struct steady_result r = solve(c.arena, &c.steady);
    const struct simulate_result q = simulate(c.arena, &c.simulated);
    must(simulate_spread_of(&q, simulate_tpot_s, &tpot, &e), &e);
    near_to(r.tpot_s.mean, tpot.mean, .05, "TPOT");
    c.steady.times = NULL;
    near_to(solve(c.arena, &c.steady).tpot_s.mean, r.tpot_s.mean, 1e-9, "times that are kept");
    /* of another budget, with what the first one knows and without; a budget below the longest prompt and one above */
    struct steady_setup own = c.steady, shared = c.steady;
    must(steady_times_open(c.arena, &c.steady, &shared.times, &e), &e);
    (void)solve(c.arena, &shared);
    static const int64_t BUDGET[] = {512, 16384};
    for (size_t i = 0; i < 2; i++) {
        own.budget_tokens = shared.budget_tokens = BUDGET[i];
        must(steady_times_open(c.arena, &shared, &shared.times, &e), &e);
        const struct steady_result x = solve(c.arena, &own), y = solve(c.arena, &shared);
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
    open_fixed(&c, SIMULATE_CHUNKED, "907", "211");
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
        cmocka_unit_test(test_against_simulator),
        cmocka_unit_test(test_saturation),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_little),
        cmocka_unit_test(test_saturated),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_fronts),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_turns_of),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_turns_by_hand),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_prompts_alone),
        cmocka_unit_test(test_goodput),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_pools_overloaded),
        cmocka_unit_test(test_clients_agree),
        cmocka_unit_test(test_calibrated),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
