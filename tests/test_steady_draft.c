/* Drafts in a steady state: steps of answers by chance, request by request, and against the simulation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "calc/serve/steady.h"

static void must(enum err_code code, const struct err *e)
{
    if (code != ERR_OK) fail_msg("%s", e->text);
}

static double uniform(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*x >> 11) / 9007199254740992.0;
}

static struct speculate_accept accept_of(const char *text)
{
    struct err e = {0};
    struct speculate_accept p;
    must(speculate_accept_parse(text, &p, &e), &e);
    return p;
}

/* Answers of m tokens, drafts kept or not one by one: steps on average, and how they vary. */
static void test_steps(void **state)
{
    static const struct {
        const char *accept;
        int64_t gamma;
        bool bonus;
        double m;
    } CASES[] = {{"0.8", 4, true, 131}, {"0.7,0.6,0.5", 3, true, 17}, {"0.9", 5, false, 43}, {"0.35", 2, true, 7}};
    struct arena *a = arena_open();
    struct err e = {0};
    uint64_t x = 20011;
    for (size_t c = 0; c < sizeof CASES / sizeof *CASES; c++) {
        enum { TRIES = 40000 };
        const struct speculate_accept p = accept_of(CASES[c].accept);
        const struct steady_node one = {.prompt_tokens = 100, .output_tokens = 1 + CASES[c].m, .weight = 1};
        const struct steady_lengths l = {.node = &one,
                                         .n = 1,
                                         .prompt_tokens = 100,
                                         .output_tokens = 1 + CASES[c].m,
                                         .steps = CASES[c].m,
                                         .steps_square = CASES[c].m * CASES[c].m,
                                         .inverse = 1 / CASES[c].m};
        struct steady_lengths out;
        double sum = 0, square = 0, made = 0, made2 = 0, steps = 0;
        for (int i = 0; i < TRIES; i++) {
            double left = CASES[c].m, n = 0;
            while (left > 0) {
                int64_t y = 1;
                while (y - 1 < CASES[c].gamma && uniform(&x) < speculate_accept_at(&p, y)) y++;
                if (!CASES[c].bonus && y > CASES[c].gamma) y = CASES[c].gamma;
                made += (double)y;
                made2 += (double)(y * y);
                left -= (double)y;
                n++;
            }
            steps += n;
            sum += n;
            square += n * n;
        }
        const double k = speculate_tokens(&p, CASES[c].gamma, CASES[c].bonus),
                     k2 = speculate_tokens_square(&p, CASES[c].gamma, CASES[c].bonus);
        must(steady_lengths_judged(a, &l, k, k2, &out, &e), &e);
        const double mean = sum / TRIES;
        assert_true(fabs(k2 / (made2 / steps) - 1) < .01);
        assert_true(fabs(k / (made / steps) - 1) < .01);
        if (fabs(out.steps / mean - 1) > .01) fail_msg("%s: %.4f steps, not %.4f", CASES[c].accept, out.steps, mean);
        const double variance = square / TRIES - mean * mean, ours = out.steps_square - out.steps * out.steps;
        if (fabs(ours - variance) > .25 * variance + .1)
            fail_msg("%s: variance %.3f, not %.3f", CASES[c].accept, ours, variance);
        assert_true(fabs(out.node[0].stride * out.steps - CASES[c].m) < 1e-9);
        assert_true(fabs(out.drafted.inverse - out.steps / CASES[c].m) < 1e-12);
        assert_true(fabs(out.drafted.answer_tokens - 1 - CASES[c].m) < 1e-12);
    }
    arena_close(a);
    (void)state;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct served {
    struct arena *a;
    struct model target, small;
    struct hw hw;
    struct speculate_setup of;
    struct mix_plan *plan, *plain;
};

static void open_served(struct served *k, const char *accept, int64_t gamma)
{
    struct err e = {0};
    k->a = arena_open();
    must(model_load(k->a, "llama-3.1-70b", NULL, 0, &k->target, &e), &e);
    must(model_load(k->a, "llama-3.2-1b", NULL, 0, &k->small, &e), &e);
    must(hw_load(k->a, "h100-sxm", &k->hw, &e), &e);
    const struct layout l = {.tp = 4, .per_node = 8};
    struct step_setup s = {.model = &k->target,
                           .hw = &k->hw,
                           .layout = layout_whole(&l),
                           .latency = {.link_s = 7e-7, .fabric_s = 9e-6},
                           .fidelity = STEP_ROOFLINE,
                           .block_tokens = 16};
    must(mix_compile(k->a, &s, &k->plain, &e), &e);
    s.pass_tokens = gamma + 1;
    must(mix_compile(k->a, &s, &k->plan, &e), &e);
    s.pass_tokens = 0;
    s.model = &k->small;
    s.prefill_together = true;
    k->of = (struct speculate_setup){.accept = accept_of(accept), .bonus = true, .gamma = gamma};
    must(step_compile(k->a, &s, &k->of.draft, &e), &e);
}

/* Means and the upper tail against the simulation of the same steps, at a third and at two thirds of saturation. */
static void test_simulated(void **state)
{
    struct served k;
    struct err e = {0};
    enum { GAMMA = 4 };
    open_served(&k, "0.8", GAMMA);
    struct steady_lengths l, drafted;
    struct workload_length prompt, output;
    must(workload_length_parse(k.a, "700", &prompt, &e), &e);
    must(workload_length_parse(k.a, "uniform:60..340", &output, &e), &e);
    must(steady_lengths_of(k.a, &prompt, &output, 0, &l, &e), &e);
    must(steady_lengths_judged(k.a, &l, speculate_mean(&k.of, GAMMA), speculate_square(&k.of, GAMMA), &drafted, &e),
         &e);
    struct steady_setup s = {.plan = k.plan,
                             .policy = SIMULATE_CHUNKED,
                             .budget_tokens = 2048,
                             .max_seqs = 128,
                             .blocks = 40000,
                             .block_tokens = 16,
                             .replicas = 1,
                             .lengths = &drafted,
                             .load = STEADY_OPEN,
                             .rate_per_s = 1,
                             .arrival_cv2 = 1,
                             .ttft_limit_s = (double)NAN,
                             .tpot_limit_s = (double)NAN,
                             .draft = {.of = &k.of, .gamma = GAMMA, .prompts = true}};
    struct steady_result r, plain;
    must(steady_solve(k.a, &s, &r, &e), &e);
    const double most = r.saturation_rate_per_s;
    for (double part = 1; part < 3; part++) {
        struct workload w;
        struct simulate_result x;
        s.rate_per_s = part / 3 * most;
        must(steady_solve(k.a, &s, &r, &e), &e);
        const struct workload_spec spec = {.turns = 1,
                                           .samples = 1,
                                           .requests = 3000,
                                           .rate_per_s = s.rate_per_s,
                                           .seed = 11,
                                           .prompt = prompt,
                                           .output = output};
        must(workload_make(k.a, &spec, &w, &e), &e);
        const struct simulate_setup of = {.work = &w,
                                          .plan = k.plan,
                                          .policy = SIMULATE_CHUNKED,
                                          .budget_tokens = s.budget_tokens,
                                          .max_seqs = s.max_seqs,
                                          .blocks = s.blocks,
                                          .block_tokens = s.block_tokens,
                                          .max_len_tokens = 4096,
                                          .replicas = 1,
                                          .draft = s.draft};
        must(simulate_run(k.a, &of, &x, &e), &e);
        double tpot = 0, ttft = 0;
        for (size_t i = 0; i < x.n; i++) {
            tpot += simulate_tpot_s(&x.record[i]) / (double)x.n;
            ttft += simulate_ttft_s(&x.record[i]) / (double)x.n;
        }
        double *tail = arena_array(k.a, x.n, sizeof *tail);
        for (size_t i = 0; i < x.n; i++) tail[i] = simulate_tpot_s(&x.record[i]);
        qsort(tail, x.n, sizeof *tail, by_value);
        const double p95 = tail[(size_t)(.95 * (double)x.n)];
        if (fabs(r.tpot_s.mean / tpot - 1) > .05 || fabs(r.ttft_s.mean / ttft - 1) > .1 ||
            fabs(r.tpot_s.p95 / p95 - 1) > .2)
            fail_msg("at %.0f/3: TPOT %.5f, simulated %.5f; TTFT %.4f, %.4f; p95 %.5f, %.5f", part, r.tpot_s.mean, tpot,
                     r.ttft_s.mean, ttft, r.tpot_s.p95, p95);
        assert_true(fabs(r.output_tok_per_s / (s.rate_per_s * l.output_tokens) - 1) < 1e-9);
    }
    /* it pays at little load and not where steps are full of flops: the peers' mistake is a speedup of any batch */
    struct steady_setup t = s;
    t.plan = k.plain;
    t.lengths = &l;
    t.draft = (struct simulate_draft){0};
    t.max_seqs = s.max_seqs = 1600;
    t.budget_tokens = s.budget_tokens = 8192;
    t.blocks = s.blocks = 400000;
    must(steady_solve(k.a, &t, &plain, &e), &e);
    must(steady_solve(k.a, &s, &r, &e), &e);
    if (plain.saturation_rate_per_s < 1.05 * r.saturation_rate_per_s)
        fail_msg("saturates at %g, %g without, %d %d", r.saturation_rate_per_s, plain.saturation_rate_per_s, (int)r.by,
                 (int)plain.by);
    t.rate_per_s = s.rate_per_s = .05;
    must(steady_solve(k.a, &t, &plain, &e), &e);
    must(steady_solve(k.a, &s, &r, &e), &e);
    assert_true(r.tpot_s.mean < .6 * plain.tpot_s.mean);
    s.lengths = &l; /* lengths that are not drafted */
    assert_int_equal(steady_solve(k.a, &s, &r, &e), ERR_RANGE);
    arena_close(k.a);
    (void)state;
}

/* Beside two pools: those that prefill compute the draft's prompts too, both caches cross, those that decode draft. */
static void test_pools(void **state)
{
    enum { GAMMA = 3, N = 3000 };
    const double TOKEN_BYTES = 80 * 2 * 2 * 128 * 2, DRAFT_BYTES = 16 * 2 * 2 * 64 * 2; /* of a GPU of four */
    struct served k;
    struct err e = {0};
    struct steady_lengths l, drafted;
    struct workload_length prompt, output;
    struct steady_result r;
    open_served(&k, "0.8,0.7,0.6", GAMMA);
    must(workload_length_parse(k.a, "lognormal:700,0.5,max=3000", &prompt, &e), &e);
    must(workload_length_parse(k.a, "uniform:60..340", &output, &e), &e);
    must(steady_lengths_of(k.a, &prompt, &output, 0, &l, &e), &e);
    must(steady_lengths_judged(k.a, &l, speculate_mean(&k.of, GAMMA), speculate_square(&k.of, GAMMA), &drafted, &e),
         &e);
    const struct steady_decode d = {.plan = k.plan,
                                    .max_seqs = 128,
                                    .blocks = 40000,
                                    .block_tokens = 16,
                                    .replicas = 2,
                                    .kv_bytes_per_token = TOKEN_BYTES + DRAFT_BYTES,
                                    .link_bytes_per_s = 9e9};
    struct steady_setup s = {.plan = k.plan,
                             .policy = SIMULATE_CHUNKED,
                             .budget_tokens = 2048,
                             .max_seqs = 128,
                             .blocks = 40000,
                             .block_tokens = 16,
                             .replicas = 2,
                             .lengths = &drafted,
                             .load = STEADY_OPEN,
                             .rate_per_s = 1,
                             .arrival_cv2 = 1,
                             .ttft_limit_s = (double)NAN,
                             .tpot_limit_s = (double)NAN,
                             .draft = {.of = &k.of, .gamma = GAMMA, .prompts = true, .kv_bytes_per_token = DRAFT_BYTES},
                             .decode = &d};
    must(steady_solve(k.a, &s, &r, &e), &e);
    const double most = r.saturation_rate_per_s;
    static const double PARTS[] = {.06, 1, 2};
    for (size_t q = 0; q < sizeof PARTS / sizeof *PARTS; q++) {
        const double part = PARTS[q];
        struct workload w;
        struct simulate_result x;
        s.rate_per_s = part / 3 * most;
        must(steady_solve(k.a, &s, &r, &e), &e);
        const struct workload_spec spec = {.turns = 1,
                                           .samples = 1,
                                           .requests = N,
                                           .rate_per_s = s.rate_per_s,
                                           .seed = 17,
                                           .prompt = prompt,
                                           .output = output};
        must(workload_make(k.a, &spec, &w, &e), &e);
        const struct simulate_setup of = {.work = &w,
                                          .plan = k.plan,
                                          .policy = SIMULATE_CHUNKED,
                                          .budget_tokens = s.budget_tokens,
                                          .max_seqs = s.max_seqs,
                                          .blocks = s.blocks,
                                          .block_tokens = s.block_tokens,
                                          .max_len_tokens = 4096,
                                          .replicas = 4,
                                          .pools = {.prefill = 2, .link_bytes_per_s = d.link_bytes_per_s},
                                          .draft = s.draft};
        must(simulate_run(k.a, &of, &x, &e), &e);
        double tpot = 0, ttft = 0, crossed = 0;
        for (size_t i = 0; i < x.n; i++) {
            tpot += simulate_tpot_s(&x.record[i]) / (double)x.n;
            ttft += simulate_ttft_s(&x.record[i]) / (double)x.n;
            crossed += x.record[i].prompt_tokens * (TOKEN_BYTES + DRAFT_BYTES);
        }
        assert_int_equal(x.finished, N);
        if (fabs(x.transfer_bytes / crossed - 1) > 1e-12)
            fail_msg("%.9g bytes crossed, %.9g", x.transfer_bytes, crossed);
        if (fabs(r.tpot_s.mean / tpot - 1) > .05 || (part < 1 && fabs(r.ttft_s.mean / ttft - 1) > .03))
            fail_msg("at %.2f/3: TPOT %.5f, simulated %.5f; TTFT %.4f, %.4f", part, r.tpot_s.mean, tpot, r.ttft_s.mean,
                     ttft);
        assert_true(fabs(x.judged_tokens / x.judged / speculate_tokens(&k.of.accept, GAMMA, true) - 1) < .02);
        assert_true(fabs(r.output_tok_per_s / (s.rate_per_s * l.output_tokens) - 1) < 1e-9);
    }
    arena_close(k.a);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_simulated),
                                       cmocka_unit_test(test_pools)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
