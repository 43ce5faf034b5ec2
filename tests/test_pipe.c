/* Stages in mixed steps and in a simulation: their seconds against a step's, batches under way against a count of every
 * stage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/simulate.h"

static void must(enum err_code code, const struct err *e)
{
    if (code != ERR_OK) fail_msg("%s", e->text);
}

static void near_to(double found, double wanted, double within, const char *what)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted))) fail_msg("%s: %.12g, wanted %.12g", what, found, wanted);
}

enum { STAGES_MOST = 8 };

struct bench {
    struct arena *a;
    struct model model, small;
    struct hw hw;
    struct mix_plan *plan;
    struct mix x;
    struct step *step;
    struct speculate_setup of;
};

static void open_bench(struct bench *b, const char *model, const char *hw, const struct layout *l, int64_t judged)
{
    struct err e = {0};
    memset(b, 0, sizeof *b);
    b->a = arena_open();
    must(model_load(b->a, model, NULL, 0, &b->model, &e), &e);
    must(hw_load(b->a, hw, &b->hw, &e), &e);
    struct step_setup u = {.model = &b->model,
                           .hw = &b->hw,
                           .layout = *l,
                           .latency = {.link_s = 7e-7, .fabric_s = 9e-6},
                           .fidelity = STEP_ROOFLINE,
                           .block_tokens = 16};
    u.layout.microbatches = 1;
    must(step_compile(b->a, &u, &b->step, &e), &e);
    u.pass_tokens = judged;
    must(mix_compile(b->a, &u, &b->plan, &e), &e);
    must(mix_open(b->a, b->plan, &b->x, &e), &e);
}

static void stages_of(struct bench *b, double out[STAGES_MOST]) { mix_eval_stages(&b->x, out); }

static double sum_of(const double *s, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += s[i];
    return sum;
}

/* One batch through all stages is a decode step, or a prefill, of one microbatch: layers that divide and layers that do
 * not (61 over 4: 15+15+16+15), a node each, experts. Its values are the fullest stage's. */
static void test_steps(void **state)
{
    (void)state;
    static const struct {
        const char *model, *hw;
        struct layout l;
    } CASES[] = {{"llama-3.1-70b", "h100-sxm", {.tp = 4, .pp = 2, .per_node = 8}},
                 {"llama-3.1-8b", "l40s", {.tp = 1, .pp = 5, .per_node = 8}},
                 {"deepseek-v3", "h200-sxm", {.tp = 8, .pp = 4, .per_node = 8}},
                 {"gemma-3-27b", "a100-80g", {.tp = 2, .pp = 3, .per_node = 6}}};
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        struct bench b;
        double v[STEP_VALUES_N], m[MIX_VALUES_N], s[STAGES_MOST];
        struct err e = {0};
        open_bench(&b, CASES[c].model, CASES[c].hw, &CASES[c].l, 0);
        assert_int_equal(mix_stages(b.plan), CASES[c].l.pp);
        must(step_eval_layout(b.step, NULL, 13, 1511, 1511, 1, v, &e), &e);
        mix_decode(&b.x, 13, 1511);
        mix_eval(&b.x, m);
        stages_of(&b, s);
        near_to(m[MIX_step_s], v[STEP_decode_step_s], 1e-12, CASES[c].model);
        near_to(sum_of(s, CASES[c].l.pp), m[MIX_step_s], 1e-12, "sum");
        near_to(m[MIX_flops], v[STEP_decode_flops], 1e-12, "flops");
        near_to(m[MIX_link_s], v[STEP_decode_link_s], 1e-12, "link");
        near_to(m[MIX_kv_bytes], v[STEP_kv_bytes], 1e-12, "cache");
        mix_clear(&b.x);
        mix_prefill(&b.x, 1, 1511, 0);
        mix_eval(&b.x, m);
        near_to(m[MIX_step_s], v[STEP_prefill_s], 1e-12, "prefill");
        double most = 0;
        for (size_t i = 0; i < step_stages(b.step); i++) most = fmax(most, step_stage_of(b.step, i).weight_bytes);
        near_to(most, step_weight_bytes(b.step), 1e-12, "weights");
        arena_close(b.a);
    }
}

/* ---- simulated ---- */

static struct workload make(struct bench *b, int64_t clients, int64_t n, const char *prompt, const char *output)
{
    struct workload w;
    struct err e = {0};
    struct workload_spec s = {.concurrency = clients, .requests = n, .turns = 1, .samples = 1, .seed = 29};
    must(workload_length_parse(b->a, prompt, &s.prompt, &e), &e);
    must(workload_length_parse(b->a, output, &s.output, &e), &e);
    must(workload_make(b->a, &s, &w, &e), &e);
    return w;
}

static struct simulate_setup setup_of(const struct bench *b, const struct workload *w)
{
    return (struct simulate_setup){.work = w,
                                   .plan = b->plan,
                                   .policy = SIMULATE_CHUNKED,
                                   .budget_tokens = 2048,
                                   .max_seqs = 101,
                                   .blocks = 30011,
                                   .block_tokens = 16,
                                   .max_len_tokens = 131072,
                                   .replicas = 1};
}

static struct simulate_result run(struct bench *b, const struct simulate_setup *s)
{
    struct simulate_result r;
    struct err e = {0};
    must(simulate_run(b->a, s, &r, &e), &e);
    return r;
}

/* A client alone: every token passes all stages, one of which works at a time. */
static void test_alone(void **state)
{
    (void)state;
    enum { PROMPT = 1013, OUTPUT = 37 };
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", &(struct layout){.tp = 1, .pp = 3, .per_node = 8}, 0);
    const struct workload w = make(&b, 1, 3, "1013", "37");
    struct simulate_setup s = setup_of(&b, &w);
    s.overhead_s = .003;
    const struct simulate_result r = run(&b, &s);
    double m[MIX_VALUES_N];
    mix_prefill(&b.x, 1, PROMPT, 0);
    mix_eval(&b.x, m);
    const double first_s = m[MIX_step_s] + .003;
    double later_s = 0;
    for (int i = 1; i < OUTPUT; i++) {
        mix_clear(&b.x);
        mix_decode(&b.x, 1, PROMPT + i);
        mix_eval(&b.x, m);
        later_s += m[MIX_step_s] + .003;
    }
    for (size_t i = 0; i < 3; i++) {
        near_to(simulate_ttft_s(&r.record[i]), first_s, 1e-12, "TTFT");
        near_to(simulate_latency_s(&r.record[i]), first_s + later_s, 1e-12, "latency");
    }
    assert_int_equal(r.steps, 3 * OUTPUT);
    assert_true(r.bubble_frac > 2. / 3); /* of three stages two wait, and all for the engine */
    arena_close(b.a);
}

/* As many requests as stages, whose prompts fill a step each: each is a batch of its own, and every batch begins when
 * its last one ended. A stage begins when it has it and is free: begin = max(end before, free). In four stages of
 * equal layers no batch waits but for the first stage's embedding and the last one's head, so the time of a token is
 * the larger of the sum of the stages and all batches on the slowest. */
static void test_ring(void **state)
{
    (void)state;
    enum { PROMPT = 512, OUTPUT = 41, STAGES = 4 };
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", &(struct layout){.tp = 1, .pp = STAGES, .per_node = 8}, 0);
    const struct workload w = make(&b, STAGES, STAGES, "512", "41");
    struct simulate_setup s = setup_of(&b, &w);
    s.budget_tokens = PROMPT;
    const struct simulate_result r = run(&b, &s);
    double stage[STAGES_MOST], idle[STAGES] = {0}, end[STAGES] = {0}, first[STAGES], busy = 0;
    for (int k = 0; k < OUTPUT; k++) {
        mix_clear(&b.x);
        if (k == 0)
            mix_prefill(&b.x, 1, PROMPT, 0);
        else
            mix_decode(&b.x, 1, PROMPT + k);
        stages_of(&b, stage);
        for (int j = 0; j < STAGES; j++) {
            double at = end[j];
            for (int i = 0; i < STAGES; i++) at = idle[i] = fmax(at, idle[i]) + stage[i];
            end[j] = at;
            if (k == 0) first[j] = at;
            busy += sum_of(stage, STAGES);
        }
    }
    for (int j = 0; j < STAGES; j++) {
        near_to(simulate_ttft_s(&r.record[j]), first[j], 1e-12, "TTFT");
        near_to(r.record[j].finish_s, end[j], 1e-12, "last");
    }
    double most = 0;
    for (int i = 0; i < STAGES; i++) most = fmax(most, stage[i]);
    near_to((end[0] - first[0]) / (OUTPUT - 1), fmax(sum_of(stage, STAGES), STAGES * most), .02, "TPOT");
    near_to(r.bubble_frac, 1 - busy / (STAGES * r.busy_s), 1e-12, "bubble");
    assert_int_equal(r.steps, STAGES * OUTPUT);
    /* the mistake: that stages idle as in one pass, (p-1)/(m+p-1) */
    assert_true(r.bubble_frac < .5 * layout_bubble(STAGES, STAGES));
    arena_close(b.a);
}

/* A prompt of three pieces goes through two stages with a piece in each: the second begins while the first is in the
 * second stage. Each piece begins when there is room among two batches under way. */
static void test_pieces(void **state)
{
    (void)state;
    enum { PROMPT = 3000, PIECE = 1000 };
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", &(struct layout){.tp = 1, .pp = 2, .per_node = 8}, 0);
    const struct workload w = make(&b, 1, 1, "3000", "2");
    struct simulate_setup s = setup_of(&b, &w);
    s.budget_tokens = PIECE;
    const struct simulate_result r = run(&b, &s);
    double stage[STAGES_MOST], idle[2] = {0}, end[3];
    for (int k = 0; k < 3; k++) {
        mix_clear(&b.x);
        mix_prefill(&b.x, 1, PIECE, PIECE * k);
        stages_of(&b, stage);
        double at = k < 2 ? 0 : end[0]; /* the third when the first is through */
        for (int i = 0; i < 2; i++) at = idle[i] = fmax(at, idle[i]) + stage[i];
        end[k] = at;
    }
    near_to(simulate_ttft_s(&r.record[0]), end[2], 1e-12, "TTFT");
    arena_close(b.a);
}

/* Drafts: their passes are the last stage's, and all stages judge. */
static void test_draft(void **state)
{
    (void)state;
    enum { PROMPT = 1013, OUTPUT = 61, GAMMA = 3 };
    struct bench b;
    struct err e = {0};
    open_bench(&b, "llama-3.1-8b", "h100-sxm", &(struct layout){.tp = 1, .pp = 2, .per_node = 8}, GAMMA + 1);
    must(model_load(b.a, "llama-3.2-1b", NULL, 0, &b.small, &e), &e);
    const struct step_setup u = {.model = &b.small,
                                 .hw = &b.hw,
                                 .layout = {.tp = 1},
                                 .fidelity = STEP_ROOFLINE,
                                 .block_tokens = 16,
                                 .prefill_together = true};
    must(step_compile(b.a, &u, &b.of.draft, &e), &e);
    must(speculate_accept_parse("1", &b.of.accept, &e), &e);
    b.of.bonus = true;
    const struct workload w = make(&b, 1, 2, "1013", "61");
    struct simulate_setup s = setup_of(&b, &w);
    s.draft = (struct simulate_draft){.of = &b.of, .gamma = GAMMA, .prompts = true};
    const struct simulate_result r = run(&b, &s);
    double m[MIX_VALUES_N], took_s = 0, one = 1, draft_s, *column[STEP_VALUES_N] = {0};
    const double P = PROMPT;
    mix_prefill(&b.x, 1, PROMPT, 0);
    mix_eval(&b.x, m);
    column[STEP_prefill_s] = &draft_s;
    step_eval(b.of.draft, 1, &one, &P, &P, &one, column);
    took_s = m[MIX_step_s] + draft_s;
    column[STEP_prefill_s] = NULL;
    column[STEP_decode_step_s] = &draft_s;
    for (int left = OUTPUT - 1, stored = PROMPT; left > 0; left -= GAMMA + 1, stored += GAMMA + 1) {
        mix_clear(&b.x);
        mix_decode(&b.x, 1, stored + GAMMA + 1);
        mix_eval(&b.x, m);
        took_s += m[MIX_step_s];
        for (int i = 0; i < GAMMA; i++) {
            const double S = stored + 1 + i;
            step_eval(b.of.draft, 1, &one, &one, &S, &one, column);
            took_s += draft_s;
        }
    }
    for (size_t i = 0; i < 2; i++) near_to(simulate_latency_s(&r.record[i]), took_s, 1e-12, "latency");
    arena_close(b.a);
}

/* Whatever happens, everybody is answered and no block is left: small caches that preempt, prefixes, samples, swaps. */
static void test_crowded(void **state)
{
    (void)state;
    struct bench b;
    open_bench(&b, "llama-3.1-8b", "h100-sxm", &(struct layout){.tp = 1, .pp = 3, .per_node = 8}, 0);
    struct workload w = make(&b, 41, 307, "lognormal:509,1,max=1800", "exponential:61,max=300");
    struct simulate_setup s = setup_of(&b, &w);
    const struct simulate_result roomy = run(&b, &s);
    assert_int_equal(roomy.finished, 307);
    assert_true(roomy.preemptions == 0 && roomy.bubble_frac > 0 && roomy.bubble_frac < 1);
    for (int policy = 0; policy < 2; policy++)
        for (int swap = 0; swap < 2; swap++)
            for (int samples = 1; samples < 4; samples += 2) {
                s = setup_of(&b, &w);
                w.samples = samples;
                s.policy = policy ? SIMULATE_FCFS : SIMULATE_CHUNKED;
                s.budget_tokens = 700;
                s.blocks = 401;
                s.prefix_cache = true;
                s.preemption = swap ? SIMULATE_SWAP : SIMULATE_RECOMPUTE;
                s.swap = (struct simulate_swap){.bytes_per_s = 25e9, .host_bytes = 1e12, .block_bytes = 16 * 65536};
                const struct simulate_result r = run(&b, &s);
                assert_int_equal(r.finished, 307);
                assert_int_equal(r.held_blocks, 0);
                assert_true(r.preemptions > 0 && r.most_blocks <= 401);
                assert_true(r.span_s > roomy.span_s);
            }
    w.samples = 1;
    s = setup_of(&b, &w);
    struct simulate_result none;
    struct err e = {0};
    s.policy = SIMULATE_STATIC;
    assert_int_equal(simulate_run(b.a, &s, &none, &e), ERR_RANGE);
    arena_close(b.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_ring),  cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_draft), cmocka_unit_test(test_crowded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
