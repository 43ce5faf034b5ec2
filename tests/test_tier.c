/* The prefix cache's tier at the host: what is loaded, when it is there, and whom it keeps waiting. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "calc/serve/simulate.h"

enum { BLOCK = 16 };
static const double BLOCK_BYTES = 131072. * BLOCK, LINK = 37e9;

struct bench {
    struct arena *a;
    struct model model;
    struct hw hw;
    struct mix_plan *plan;
    struct mix x;
};

static void open_bench(struct bench *b)
{
    struct err e = {0};
    b->a = arena_open();
    if (model_load(b->a, "llama-3.1-8b", NULL, 0, &b->model, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(b->a, "h100-sxm", &b->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct step_setup setup = {
        .model = &b->model, .hw = &b->hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = BLOCK};
    if (mix_compile(b->a, &setup, &b->plan, &e) != ERR_OK) fail_msg("%s", e.text);
    if (mix_open(b->a, b->plan, &b->x, &e) != ERR_OK) fail_msg("%s", e.text);
}

static struct simulate_setup setup_of(const struct bench *b, const struct workload *w, int64_t blocks, int64_t tier)
{
    return (struct simulate_setup){.work = w,
                                   .plan = b->plan,
                                   .policy = SIMULATE_CHUNKED,
                                   .budget_tokens = 4096,
                                   .max_seqs = 64,
                                   .blocks = blocks,
                                   .block_tokens = BLOCK,
                                   .max_len_tokens = 131072,
                                   .prefix_cache = true,
                                   .tier = {tier, LINK, BLOCK_BYTES},
                                   .replicas = 1};
}

static struct simulate_result run(const struct bench *b, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    if (simulate_run(b->a, s, &r, &e) != ERR_OK) fail_msg("%s", e.text);
    return r;
}

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.15g, wanted %.15g", what, found, wanted);
}

static double step_s(struct bench *b, double decode_context, double tokens, double prefix)
{
    double v[MIX_VALUES_N];
    mix_clear(&b->x);
    if (decode_context > 0) mix_decode(&b->x, 1, decode_context);
    if (tokens > 0) mix_prefill(&b->x, 1, tokens, prefix);
    mix_eval(&b->x, v);
    return v[MIX_step_s];
}

static struct workload_request request(double arrival_s, int32_t prompt, int32_t output, uint32_t stream)
{
    return (struct workload_request){.arrival_s = arrival_s,
                                     .prompt_tokens = prompt,
                                     .output_tokens = output,
                                     .stream = stream,
                                     .next = WORKLOAD_NO_NEXT};
}

static struct workload of(struct workload_request *q, size_t n)
{
    return (struct workload){
        .request = q, .n = n, .first_n = n, .samples = 1, .open = true, .timed = true, .span_s = q[n - 1].arrival_s};
}

/* A prompt whose blocks another one has overwritten on the device: loaded, and the rest computed. */
static void test_by_hand(void **state)
{
    struct bench b;
    struct workload_request q[] = {request(0, 1501, 1, 1), request(10, 3001, 1, 2), request(20, 1501, 1, 1)};
    const struct workload w = of(q, 3);
    const int64_t had = 1500 / BLOCK * BLOCK;
    (void)state;
    open_bench(&b);
    struct simulate_setup s = setup_of(&b, &w, 188, 4001); /* the second prompt takes all of them */
    const struct simulate_result r = run(&b, &s);
    const double load_s = (double)had / BLOCK * BLOCK_BYTES / LINK;
    assert_int_equal(r.record[2].cached_tokens, had);
    near_to(r.loaded_tokens, (double)had, 1e-15, "loaded");
    near_to(r.loaded_bytes, (double)had / BLOCK * BLOCK_BYTES, 1e-15, "bytes");
    near_to(r.load_wait_s, load_s, 1e-12, "wait");
    near_to(simulate_ttft_s(&r.record[2]), load_s + step_s(&b, 0, (double)(1501 - had), (double)had), 1e-9, "TTFT");
    near_to(simulate_ttft_s(&r.record[0]), step_s(&b, 0, 1501, 0), 1e-9, "without a tier's block");
    near_to(r.hosted_bytes, (double)(1501 / BLOCK + 3001 / BLOCK) * BLOCK_BYTES, 1e-15, "copied there once");
    /* prompts first: the step waits instead */
    s.policy = SIMULATE_FCFS;
    const struct simulate_result f = run(&b, &s);
    near_to(simulate_ttft_s(&f.record[2]), load_s + step_s(&b, 0, (double)(1501 - had), (double)had), 1e-9, "fcfs");
    /* no tier: computed */
    s.tier.blocks = 0;
    s.policy = SIMULATE_CHUNKED;
    const struct simulate_result none = run(&b, &s);
    near_to(simulate_ttft_s(&none.record[2]), step_s(&b, 0, 1501, 0), 1e-9, "computed");
    /* a tier in which the second prompt has overwritten the beginning has nothing in a row from there */
    s.tier.blocks = 188;
    const struct simulate_result small = run(&b, &s);
    assert_int_equal(small.record[2].cached_tokens, 0);
    /* 93 and 187 blocks, and the 93 again, of which the last is the first to go */
    assert_int_equal(small.tier_evictions, 93 + 187 - 188 + 93);
    arena_close(b.a);
}

/* Who decodes goes on while another one's prefix is on its way, and is not slower for it. */
static void test_beside(void **state)
{
    struct bench b;
    struct workload_request q[] = {request(0, 2001, 1, 1), request(1, 3001, 1, 3), request(2, 701, 113, 2),
                                   request(2.05, 2001, 1, 1)};
    const struct workload w = of(q, 4), alone = of(q, 3);
    (void)state;
    open_bench(&b);
    struct simulate_setup s = setup_of(&b, &w, 190, 4001);
    s.tier.bytes_per_s = 50e6; /* five seconds */
    const struct simulate_result r = run(&b, &s);
    s.work = &alone;
    const struct simulate_result without = run(&b, &s);
    near_to(r.record[2].finish_s, without.record[2].finish_s, 1e-9, "the other's answer");
    const double load_s = 2000. / BLOCK * BLOCK_BYTES / 50e6;
    assert_true(r.record[3].cached_tokens == 2000);
    near_to(r.record[3].first_s, r.record[3].start_s + load_s + step_s(&b, 0, 1, 2000), 1e-9, "its first token");
    /* a prompt that comes while nothing else is there does not wait for that load */
    struct workload_request late[] = {q[0], q[1], request(2, 2001, 1, 1), request(3, 307, 1, 5)};
    const struct workload v = of(late, 4);
    s.work = &v;
    const struct simulate_result p = run(&b, &s);
    near_to(simulate_ttft_s(&p.record[3]), step_s(&b, 0, 307, 0), 1e-9, "beside a load");
    /* two loads go one after the other */
    struct workload_request two[] = {q[0], q[1], request(2, 2001, 1, 1), request(2, 2001, 1, 1)};
    two[3].prompt_tokens = 1601;
    const struct workload u = of(two, 4);
    s.work = &u;
    s.blocks = 300;
    s.tier.blocks = 4001;
    two[1].prompt_tokens = 4700;
    const struct simulate_result t = run(&b, &s);
    /* 6 of its first blocks are on the device still */
    const double first_s = 2 + (125 - 6) * BLOCK_BYTES / 50e6, second_s = first_s + (100 - 6) * BLOCK_BYTES / 50e6;
    assert_int_equal(t.loads, 2);
    assert_true(t.record[2].first_s > first_s && t.record[2].first_s < first_s + .1);
    assert_true(t.record[3].first_s > second_s && t.record[3].first_s < second_s + .1);
    arena_close(b.a);
}

/* A tier that never overwrites finds what a device that never does would have: conversations, one at a time. */
static void test_endless(void **state)
{
    struct bench b;
    struct err e = {0};
    struct workload w;
    struct workload_spec spec = {.concurrency = 1, .requests = 211, .turns = 5, .samples = 1, .seed = 13};
    (void)state;
    open_bench(&b);
    if (workload_length_parse(b.a, "lognormal:500,0.7,max=2500", &spec.prompt, &e) != ERR_OK ||
        workload_length_parse(b.a, "uniform:20..150", &spec.output, &e) != ERR_OK ||
        workload_make(b.a, &spec, &w, &e) != ERR_OK)
        fail_msg("%s", e.text);
    struct simulate_setup s = setup_of(&b, &w, 1 << 16, 0);
    const struct simulate_result device = run(&b, &s);
    s.blocks = 1100; /* of a few requests */
    const struct simulate_result little = run(&b, &s);
    s.tier.blocks = 1 << 16;
    const struct simulate_result both = run(&b, &s);
    near_to(both.cached_tokens, device.cached_tokens, 1e-15, "found");
    near_to(both.computed_tokens, device.computed_tokens, 1e-15, "computed");
    assert_true(both.loads > 0 || little.cached_tokens >= device.cached_tokens);
    assert_int_equal(both.tier_evictions, 0);
    assert_int_equal(both.finished, w.n);
    near_to(both.hosted_bytes, device.hosted_bytes + both.hosted_bytes, 1e-15, "without a tier nothing is copied");
    arena_close(b.a);
}

/* Crowded: tokens are computed, found here or loaded, none twice and none lost. */
static void test_books(void **state)
{
    struct bench b;
    struct err e = {0};
    struct workload w;
    struct workload_spec spec = {.rate_per_s = 2.3, .requests = 501, .turns = 4, .samples = 1, .seed = 3, .think_s = 7};
    (void)state;
    open_bench(&b);
    if (workload_length_parse(b.a, "lognormal:700,0.7,max=2500", &spec.prompt, &e) != ERR_OK ||
        workload_length_parse(b.a, "uniform:20..150", &spec.output, &e) != ERR_OK ||
        workload_arrival_parse("poisson", &spec, &e) != ERR_OK || workload_make(b.a, &spec, &w, &e) != ERR_OK)
        fail_msg("%s", e.text);
    struct simulate_setup s = setup_of(&b, &w, 1500, 1 << 14);
    const struct simulate_result r = run(&b, &s);
    s.tier.blocks = 0;
    const struct simulate_result without = run(&b, &s);
    double cached = 0;
    for (size_t i = 0; i < r.n; i++) cached += r.record[i].cached_tokens;
    assert_int_equal(r.finished, w.n);
    near_to(r.cached_tokens, cached, 1e-15, "cached");
    assert_true(r.loads > 50 && r.loaded_tokens < r.cached_tokens && r.cached_tokens > without.cached_tokens);
    if (r.preemptions == 0) near_to(r.computed_tokens + r.cached_tokens, r.prompt_tokens, 1e-15, "all prompts");
    if (r.preemptions == 0) near_to(r.loaded_bytes, r.loaded_tokens / BLOCK * BLOCK_BYTES, 1e-12, "whole blocks");
    s.tier = (struct simulate_tier){5, 0, 1};
    struct simulate_result no;
    assert_int_equal(simulate_run(b.a, &s, &no, &e), ERR_RANGE);
    arena_close(b.a);
}

/* Small caches, most of them taken by loads: all are answered, no block is left, and of the whole comes the part. */
static void test_small(void **state)
{
    struct bench b;
    struct err e = {0};
    int64_t preemptions = 0, loads = 0, reloaded = 0;
    (void)state;
    open_bench(&b);
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct workload w;
        struct workload_spec spec = {.rate_per_s = 1.7 + (double)(seed % 5),
                                     .requests = 29,
                                     .turns = 2 + (int64_t)(seed % 4),
                                     .samples = 1,
                                     .seed = seed};
        if (workload_length_parse(b.a, seed % 2 ? "1999" : "uniform:300..2500", &spec.prompt, &e) != ERR_OK ||
            workload_length_parse(b.a, "uniform:20..307", &spec.output, &e) != ERR_OK ||
            workload_arrival_parse("poisson", &spec, &e) != ERR_OK || workload_make(b.a, &spec, &w, &e) != ERR_OK)
            fail_msg("%s", e.text);
        struct simulate_setup s = setup_of(&b, &w, 701 + 97 * (int64_t)(seed % 7), 1 << 14);
        if (seed % 3 == 0) s.tier.bytes_per_s = 1e9;
        if (seed % 8 == 5) s.groups = 3;
        if (seed % 8 == 7) s.policy = SIMULATE_FCFS;
        if (seed % 6 == 4) s.budget_tokens = 509;
        if (seed % 11 == 2) s.watermark_frac = .013;
        const struct simulate_result r = run(&b, &s);
        assert_int_equal(r.finished + r.refused, w.n);
        assert_int_equal(r.held_blocks, 0);
        assert_true(r.loaded_tokens <= r.cached_tokens && r.cached_tokens < r.prompt_tokens);
        double loaded = 0;
        for (size_t i = 0; i < r.n; i++) {
            assert_true(r.record[i].loaded_tokens <= r.record[i].cached_tokens);
            loaded += r.record[i].loaded_tokens;
        }
        near_to(r.loaded_tokens, loaded, 1e-15, "loaded");
        assert_true(r.loaded_bytes >= r.loaded_tokens / BLOCK * BLOCK_BYTES * (1 - 1e-12));
        preemptions += r.preemptions;
        loads += r.loads;
        reloaded += r.loaded_bytes > (r.loaded_tokens / BLOCK + .5) * BLOCK_BYTES;
    }
    assert_true(preemptions > 0 && loads > 100 && reloaded > 0);
    arena_close(b.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_beside), cmocka_unit_test(test_endless),
        cmocka_unit_test(test_books),   cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
