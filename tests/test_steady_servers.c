/* The steady state of servers' steps, whose kernels have jumps, against those steps and against the simulator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/engine.h"
#include "calc/serve/steady_parts.h"
#include "tests/draws.h"
#include "tests/steady_config.h"

struct served {
    struct config c;
    struct engine engine;
    struct engine_case server;
    double load;
};

/* Lognormal, or of one length in a third of the settings. */
static void length_of(uint64_t *s, double low, double high, char out[64])
{
    const double mean = floor(config_between(s, low, high)), cv = .3 + .7 * config_uniform(s);
    if (config_uniform(s) < .35)
        (void)snprintf(out, 64, "%.0f", mean);
    else
        (void)snprintf(out, 64, "lognormal:%.0f,%.2f,max=%.0f", mean, cv, 10 * mean);
}

static void serve(struct served *k, const char *server, const char *model, const char *device, int64_t tp,
                  const char *prompt, const char *output, int64_t seqs, int64_t tokens, int64_t requests, uint64_t seed)
{
    struct err e = {0};
    bool overlapped;
    struct config *c = &k->c;
    *c = (struct config){.arena = arena_open()};
    must(model_load(c->arena, model, NULL, 0, &c->model, &e), &e);
    must(hw_load(c->arena, device, &c->hw, &e), &e);
    must(engine_load_version(c->arena, server, &k->engine, &overlapped, &e), &e);
    struct layout l = layout_whole(NULL);
    l.tp = tp;
    l.per_node = 8;
    const struct step_setup step = {.model = &c->model,
                                    .hw = &c->hw,
                                    .layout = l,
                                    .latency = {.link_s = 7e-7, .fabric_s = 9e-6},
                                    .fidelity = STEP_BOUND,
                                    .block_tokens = 16};
    must(engine_case_open(c->arena, &k->engine, &step, &k->server, &e), &e);
    c->plan = k->server.bound;
    struct workload_spec spec = {.rate_per_s = 1, .requests = requests, .turns = 1, .samples = 1, .seed = seed};
    must(workload_length_parse(c->arena, prompt, &spec.prompt, &e), &e);
    must(workload_length_parse(c->arena, output, &spec.output, &e), &e);
    must(workload_make(c->arena, &spec, &c->work, &e), &e);
    must(steady_lengths_of_work(c->arena, &c->work, 0, &c->lengths, &e), &e);
    const bool mixed = k->engine.mixed;
    c->steady = (struct steady_setup){.plan = c->plan,
                                      .server = &k->server,
                                      .overlapped = overlapped,
                                      .policy = mixed ? SIMULATE_CHUNKED : SIMULATE_FCFS,
                                      .budget_tokens = tokens,
                                      .max_seqs = seqs,
                                      .blocks = 200003,
                                      .block_tokens = 16,
                                      .watermark_frac = mixed ? 0 : .01,
                                      .replicas = 1,
                                      .lengths = &c->lengths,
                                      .rate_per_s = 1e9,
                                      .arrival_cv2 = 1,
                                      .ttft_limit_s = (double)NAN,
                                      .tpot_limit_s = (double)NAN};
    c->simulated = (struct simulate_setup){.work = &c->work,
                                           .plan = c->plan,
                                           .server = &k->server,
                                           .overlapped = overlapped,
                                           .policy = c->steady.policy,
                                           .budget_tokens = tokens,
                                           .max_seqs = seqs,
                                           .blocks = 200003,
                                           .block_tokens = 16,
                                           .max_len_tokens = WORKLOAD_TOKENS_MAX,
                                           .watermark_frac = c->steady.watermark_frac,
                                           .replicas = 1};
    (void)snprintf(c->name, sizeof c->name, "%s, %s x%lld %s, %s in, %s out, %lld sequences, %lld tokens", server,
                   model, (long long)tp, device, prompt, output, (long long)seqs, (long long)tokens);
}

/* copies: one, or of two to four, the least loaded first. */
static void draw(struct served *k, const char *server, int i, bool copies, int64_t requests)
{
    static const struct {
        const char *model;
        int64_t tp;
    } MODEL[] = {{"llama-3.1-8b", 1}, {"llama-3.1-70b", 4}, {"qwen3-30b-a3b", 1},
                 {"qwen3-14b", 1},    {"qwen3-32b", 2},     {"gpt-oss-120b", 1}};
    static const char *const DEVICE[] = {"h100-sxm", "h200-sxm"};
    uint64_t s = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1) + 40961;
    char prompt[64], output[64];
    for (int j = 0; j < 10; j++) (void)config_uniform(&s);
    const int m = (int)(6 * config_uniform(&s)), d = (int)(2 * config_uniform(&s));
    const int64_t tp = MODEL[m].tp * (config_uniform(&s) < .4 ? 2 : 1);
    length_of(&s, 60, 4000, prompt);
    length_of(&s, 50, 800, output);
    const int64_t tokens = (int64_t)512 << (int)(5 * config_uniform(&s));
    const int64_t seqs = config_uniform(&s) < .6 ? 256 : (int64_t)32 << (int)(4 * config_uniform(&s));
    k->load = .5 + .42 * config_uniform(&s);
    const int64_t n = copies ? 2 + (int64_t)(3 * config_uniform(&s)) : 1;
    serve(k, server, MODEL[m].model, DEVICE[d], tp, prompt, output, seqs, tokens, n * requests, (uint64_t)i + 1);
    k->c.steady.replicas = k->c.simulated.replicas = n;
    k->c.steady.route = k->c.simulated.route = SIMULATE_LEAST_LOADED;
}

/* A step by itself: n that decode at the mean context, and whole prompts. */
static double step_s(struct served *k, struct mix *x, double n, double prompts)
{
    const double prompt = k->c.lengths.prompt_tokens;
    mix_clear(x);
    if (n > 0) mix_decode(x, n, prompt + k->c.lengths.output_tokens / 2);
    if (prompts > 0) mix_prefill(x, prompts, prompt, 0);
    return engine_any_s(&k->server, k->c.steady.overlapped, NULL, x);
}

/* Steps of one length of prompts as the engine takes them. The known mistake: on a line between roots of two of their
 * tokens, as tiles and graphs make jumps of a third and, where a graph ends, of a half. */
static void test_steps(void **state)
{
    (void)state;
    static const struct {
        const char *server, *model, *device, *prompt;
        int64_t tp, tokens;
    } OF[] = {
        {"vllm", "llama-3.1-8b", "h100-sxm", "168", 1, 1024}, {"vllm", "qwen3-32b", "l40s", "240", 4, 512},
        {"vllm", "qwen3-14b", "h200-sxm", "100", 1, 2048},    {"trtllm", "llama-3.1-70b", "h100-sxm", "355", 4, 2048},
        {"vllm", "gpt-oss-120b", "h200-sxm", "900", 1, 8192}, {"sglang", "qwen3-30b-a3b", "l40s", "981", 1, 4096}};
    int all = 0, near = 0, lines = 0;
    double worst = 0;
    for (size_t i = 0; i < sizeof OF / sizeof *OF; i++) {
        struct served k;
        struct err e = {0};
        struct steady_times *t;
        struct mix x;
        serve(&k, OF[i].server, OF[i].model, OF[i].device, OF[i].tp, OF[i].prompt, "120", 256, OF[i].tokens, 200, 3);
        must(steady_times_open(k.c.arena, &k.c.steady, &t, &e), &e);
        must(mix_open(k.c.arena, k.c.plan, &x, &e), &e);
        const double prompt = k.c.lengths.prompt_tokens;
        static const double DECODE[] = {4, 25, 80, 200};
        for (size_t j = 0; j < (k.engine.mixed ? 4 : 1); j++) {
            const double n = k.engine.mixed ? DECODE[j] : 0;
            for (double m = 1; m < 9 && n + m * prompt <= (double)OF[i].tokens; m++) {
                const double one_s = step_s(&k, &x, n, m),
                             off = fabs(steady_times_step_s(t, n, m * prompt) / one_s - 1);
                const double low = exp2(floor(2 * log2(m * prompt)) / 2), high = low * sqrt(2);
                const double low_s = step_s(&k, &x, n, low / prompt), high_s = step_s(&k, &x, n, high / prompt);
                const double line_s = low_s + (high_s - low_s) * (m * prompt - low) / (high - low);
                all++;
                near += off <= .03;
                lines += fabs(line_s / one_s - 1) <= .03;
                worst = fmax(worst, off);
            }
        }
        arena_close(k.c.arena);
    }
    if (getenv("RIDGE_STEADY"))
        print_message("steps: %d of %d within 3 %%, on lines %d; worst %.3f\n", near, all, lines, worst);
    assert_true(near >= .9 * all && worst < .2);
    assert_true(lines < .8 * all);
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return (p > q) - (p < q);
}

enum { MOST = 1000, WHATS = 3 };
static const char *const WHAT[WHATS] = {"TPOT", "TTFT", "latency"};

/* Standard error of a run's p95, of it, by that of its ten parts. */
static double p95_error(const struct simulate_result *q, double (*value)(const struct simulate_record *))
{
    enum { PARTS = 10 };
    double sum = 0, square = 0;
    for (size_t k = 0; k < PARTS; k++) {
        struct simulate_result part = *q;
        struct simulate_spread x;
        struct err e = {0};
        part.record += q->n * k / PARTS;
        part.n = q->n / PARTS;
        must(simulate_spread_of(&part, value, &x, &e), &e);
        sum += x.p95;
        square += x.p95 * x.p95;
    }
    const double mean = sum / PARTS;
    return sqrt(fmax(square / PARTS - mean * mean, 0) / (PARTS - 1)) / mean;
}

static long asked_of(const char *name, long least, long most, long otherwise)
{
    const char *const text = getenv(name);
    const long n = text ? strtol(text, NULL, 10) : 0;
    return n >= least && n <= most ? n : otherwise;
}

/* p5, median and p95 of ratios that are sorted here. */
static void show(const char *server, const char *what, double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    print_message("%s: %s of %d: %.3f %.3f %.3f %.3f %.3f (least, p5, median, p95, most)\n", server, what, n, v[0],
                  v[(int)(.05 * n)], v[n / 2], v[(int)ceil(.95 * n) - 1], v[n - 1]);
}

/* At .5 to .92 of saturation: those within the bars of TPOT (mean 5 %), TTFT (median 15 %). RIDGE_STEADY=N: of so many
 * runs of RIDGE_STEADY_REQUESTS a copy, from the RIDGE_STEADY_FROM-th on, and how far percentiles are off, all of them;
 * RIDGE_STEADY_COPIES: of several behind a router. */
static void test_loaded(void **state)
{
    (void)state;
    static const char *const SERVER[] = {"vllm", "trtllm", "sglang"};
    double (*const VALUE[WHATS])(const struct simulate_record *) = {simulate_tpot_s, simulate_ttft_s,
                                                                    simulate_latency_s};
    const char *const asked = getenv("RIDGE_STEADY"), *const only = getenv("RIDGE_STEADY_SERVER");
    const int n = (int)asked_of("RIDGE_STEADY", 1, MOST, (long)draws(6)),
              from = (int)asked_of("RIDGE_STEADY_FROM", 1, 1000000, 0);
    const bool copies = getenv("RIDGE_STEADY_COPIES") != NULL;
    const int64_t requests = asked_of("RIDGE_STEADY_REQUESTS", 1000, 10000000, asked ? 24000 : 8000);
    for (size_t v = 0; v < sizeof SERVER / sizeof *SERVER; v++) {
        static double p95[WHATS][MOST], error[WHATS][MOST];
        if (only && strcmp(only, SERVER[v]) != 0) continue;
        int tpot = 0, ttft = 0, of = 0;
        for (int i = from; i < from + n; i++) {
            struct served k;
            struct simulate_spread first, token, all;
            struct err e = {0};
            draw(&k, SERVER[v], i, copies, requests);
            config_hasten(&k.c, k.load * config_solve(k.c.arena, &k.c.steady).saturation_rate_per_s);
            const struct steady_result r = config_solve(k.c.arena, &k.c.steady);
            struct simulate_result q = config_simulate(k.c.arena, &k.c.simulated);
            q.record += q.n / 8; /* filling, emptying */
            q.n -= q.n / 8 + q.n / 16;
            must(simulate_spread_of(&q, simulate_ttft_s, &first, &e), &e);
            must(simulate_spread_of(&q, simulate_tpot_s, &token, &e), &e);
            must(simulate_spread_of(&q, simulate_latency_s, &all, &e), &e);
            assert_false(r.saturated);
            const double off = r.tpot_s.mean / token.mean, half = r.ttft_s.p50 / first.p50;
            tpot += fabs(off - 1) <= (asked ? .05 : .07);
            ttft += fabs(half - 1) <= .15;
            p95[0][of] = r.tpot_s.p95 / token.p95;
            p95[1][of] = r.ttft_s.p95 / first.p95;
            p95[2][of] = r.latency_s.p95 / all.p95;
            for (int m = 0; m < WHATS; m++) error[m][of] = p95_error(&q, VALUE[m]);
            if (asked)
                print_message("%d x%d at %.2f: TPOT %.3f p95 %.3f +- %.3f, TTFT p50 %.3f p95 %.3f +- %.3f, latency p95 "
                              "%.3f: %s\n",
                              i, (int)k.c.steady.replicas, k.load, off, p95[0][of], error[0][of], half, p95[1][of],
                              error[1][of], p95[2][of], k.c.name);
            of++;
            arena_close(k.c.arena);
        }
        for (int m = 0; m < WHATS && asked; m++) {
            char text[64];
            (void)snprintf(text, sizeof text, "%s p95 over simulated", WHAT[m]);
            show(SERVER[v], text, p95[m], of);
            (void)snprintf(text, sizeof text, "standard error of %s p95", WHAT[m]);
            show(SERVER[v], text, error[m], of);
        }
        if (asked) print_message("%s: of %d TPOT %d, TTFT %d within the bars\n", SERVER[v], n, tpot, ttft);
        if (!asked && (tpot < .8 * n || ttft < .8 * n))
            fail_msg("%s: of %d TPOT %d, TTFT %d", SERVER[v], n, tpot, ttft);
    }
}

/* Prompts first on one copy, by the moments of periods between decode steps: the closed form that floors have. */
static struct steady_result by_moments(struct config *c)
{
    struct steady_replica r = {.s = &c->steady, .arrival_cv2 = 1, .others_frac = 1, .prompts_frac = 1};
    struct steady_result o = {0};
    struct err e = {0};
    must(steady_times_open(c->arena, &c->steady, &r.times, &e), &e);
    r.rate_per_s = c->steady.rate_per_s;
    (void)steady_saturation_of(&r);
    steady_open_solve(&r);
    steady_tell(&r, &o);
    return o;
}

/* Prompts first: steps that have jumps, experts that every prompt more reads more of. The known mistake: a step of k
 * prompts on a line, whose slope is that between the two steps around the mean. */
static void test_first(void **state)
{
    (void)state;
    static const struct {
        const char *model, *device, *prompt, *output;
        int64_t tp, seqs, tokens;
        double load;
    } OF[] = {
        {"gpt-oss-120b", "h100-sxm", "lognormal:232,0.39,max=2320", "427", 2, 64, 4096, .8},
        {"gpt-oss-120b", "h200-sxm", "lognormal:600,0.9,max=6000", "lognormal:90,0.7,max=900", 1, 256, 2048, .85},
        {"gpt-oss-120b", "h200-sxm", "120", "60", 1, 256, 8192, .85},
        {"qwen3-30b-a3b", "l40s", "981", "lognormal:120,0.5,max=1200", 1, 256, 4096, .8},
        {"qwen3-30b-a3b", "l40s", "240", "60", 1, 256, 1024, .85},
        {"qwen3-14b", "h100-sxm", "lognormal:3077,0.99,max=30770", "lognormal:355,0.96,max=3550", 2, 256, 8192, .86}};
    double worst[2] = {0};
    for (size_t i = 0; i < sizeof OF / sizeof *OF; i++) {
        struct served k;
        struct simulate_spread token, first, all;
        struct err e = {0};
        serve(&k, "sglang", OF[i].model, OF[i].device, OF[i].tp, OF[i].prompt, OF[i].output, OF[i].seqs, OF[i].tokens,
              10000, 11);
        config_hasten(&k.c, OF[i].load * config_solve(k.c.arena, &k.c.steady).saturation_rate_per_s);
        const struct steady_result r[] = {config_solve(k.c.arena, &k.c.steady), by_moments(&k.c)};
        struct simulate_result q = config_simulate(k.c.arena, &k.c.simulated);
        q.record += q.n / 8; /* filling, emptying */
        q.n -= q.n / 8 + q.n / 16;
        must(simulate_spread_of(&q, simulate_tpot_s, &token, &e), &e);
        must(simulate_spread_of(&q, simulate_ttft_s, &first, &e), &e);
        must(simulate_spread_of(&q, simulate_latency_s, &all, &e), &e);
        near_to(r[0].ttft_s.p50, first.p50, .2, "TTFT p50");
        if (strchr(OF[i].output, ':') == NULL) near_to(r[0].latency_s.p95, all.p95, .08, "latency p95");
        for (int m = 0; m < 2; m++) {
            const double off =
                fmax(fabs(log(r[m].tpot_s.mean / token.mean)), .5 * fabs(log(r[m].tpot_s.p95 / token.p95)));
            worst[m] = fmax(worst[m], off);
            if (getenv("RIDGE_STEADY"))
                print_message("%s, %s: TPOT %.3f of simulated, p95 %.3f; TTFT p95 %.3f\n", k.c.name,
                              m ? "by moments" : "run", r[m].tpot_s.mean / token.mean, r[m].tpot_s.p95 / token.p95,
                              r[m].ttft_s.p95 / first.p95);
        }
        arena_close(k.c.arena);
    }
    if (!(worst[0] < .06)) fail_msg("prompts first: TPOT off by %.3f", worst[0]);
    assert_true(worst[1] > .12);
}

/* Answers of one length are as long as their tokens take, which prompts beside them make. The known mistake: the mean
 * of a token's time for all. */
static void test_answers(void **state)
{
    (void)state;
    static const struct {
        const char *server, *prompt, *output;
        double load;
        bool far; /* the mistake shows */
    } OF[] = {{"vllm", "1500", "60", .5, true},
              {"vllm", "3000", "120", .5, true},
              {"vllm", "lognormal:1200,1,max=12000", "200", .6, true},
              {"sglang", "1500", "60", .5, true},
              {"sglang", "lognormal:1200,1,max=12000", "lognormal:150,0.8,max=1500", .6, false}};
    for (size_t i = 0; i < sizeof OF / sizeof *OF; i++) {
        struct served k;
        struct simulate_spread all;
        struct err e = {0};
        serve(&k, OF[i].server, "llama-3.1-8b", "h100-sxm", 1, OF[i].prompt, OF[i].output, 256, 2048, 10000, 5);
        config_hasten(&k.c, OF[i].load * config_solve(k.c.arena, &k.c.steady).saturation_rate_per_s);
        const struct steady_result r = config_solve(k.c.arena, &k.c.steady);
        struct simulate_result q = config_simulate(k.c.arena, &k.c.simulated);
        q.record += q.n / 8; /* filling, emptying */
        q.n -= q.n / 8 + q.n / 16;
        must(simulate_spread_of(&q, simulate_latency_s, &all, &e), &e);
        const double mean_s = r.ttft_s.p99 + k.c.lengths.steps * r.tpot_s.mean;
        if (getenv("RIDGE_STEADY"))
            print_message(
                "%s: latency mean %.3f, p50 %.3f, p95 %.3f, p99 %.3f of simulated; at a mean token p99 %.3f\n",
                k.c.name, r.latency_s.mean / all.mean, r.latency_s.p50 / all.p50, r.latency_s.p95 / all.p95,
                r.latency_s.p99 / all.p99, mean_s / all.p99);
        near_to(r.latency_s.p50, all.p50, .05, "latency p50");
        near_to(r.latency_s.p95, all.p95, .12, "latency p95");
        near_to(r.latency_s.p99, all.p99, .12, "latency p99");
        if (OF[i].far) assert_true(mean_s < .9 * all.p99);
        arena_close(k.c.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_first),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
