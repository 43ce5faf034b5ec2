/* Whole steps: the lecture's numbers, sums over operators, and properties that any roofline has. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/base/json.h"
#include "calc/time/step.h"
#include "tests/csv.h"

static const struct cost_conventions COURSE = {.causal_full = true,
                                               .embed_full_table = true,
                                               .mlp_fused = true,
                                               .norms_uncounted = true,
                                               .activations_uncounted = true};

struct point {
    double v[STEP_VALUES_N];
};

static struct step *compile(struct arena *a, struct model *m, struct hw *hw, const char *model, const char *set_k,
                            const char *gpu, struct step_setup setup)
{
    struct err e = {0};
    struct step *s = NULL;
    const struct model_setting k = {"K", set_k};
    if (model_load(a, model, &k, set_k ? 1 : 0, m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(a, gpu, hw, &e) != ERR_OK) fail_msg("%s", e.text);
    setup.model = m;
    setup.hw = hw;
    setup.block_tokens = 16;
    if (step_compile(a, &setup, &s, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    return s;
}

static struct point eval(struct step *s, double B, double T, double S, double M)
{
    struct point p;
    double *column[STEP_VALUES_N];
    for (size_t i = 0; i < STEP_VALUES_N; i++) column[i] = &p.v[i];
    step_eval(s, 1, &B, &T, &S, &M, column);
    return p;
}

static void assert_close(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("%s: %.17g, want %.17g", what, got, want);
}

/* CS336 Spring 2025, lecture 10: the executed lecture's own figures, S = 1024. */
static void test_course_numbers(void **state)
{
    static const struct {
        const char *K;
        double B, params, memory_bytes, latency_s, tok_per_s;
    } ROWS[] = {
        {NULL, 1, 13015449600.0, 26869760000.0, 0.008020823880597015, 124.6754716082317},
        {NULL, 64, 13015449600.0, 79717990400.0, 0.02379641504477612, 2689.480742354489},
        {NULL, 256, 13015449600.0, 240779264000.0, 0.0718744071641791, 3561.7685084376703},
        {"8", 64, 11337728000.0, 33412874240.0, 0.00997399231044776, 6416.688323787855},
        {"8", 256, 11337728000.0, 65625128960.0, 0.01958959073432836, 13068.164795877605},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct hw hw;
        struct err e = {0};
        struct cost_parameters p;
        assert_int_equal(hw_load(a, "h100-sxm", &hw, &e), ERR_OK);
        hw.bandwidth_bytes_per_s = 3.35e12;
        if (model_load(a, "llama-2-13b", &(struct model_setting){"K", ROWS[i].K}, ROWS[i].K ? 1 : 0, &m, &e) != ERR_OK)
            fail_msg("%s", e.text);
        const struct step_setup setup = {.model = &m,
                                         .hw = &hw,
                                         .layout = {.tp = 1},
                                         .fidelity = STEP_BOUND,
                                         .conventions = COURSE,
                                         .block_tokens = 16};
        struct step *s;
        assert_int_equal(step_compile(a, &setup, &s, &e), ERR_OK);
        assert_int_equal(cost_parameters(a, &m, &COURSE, &p, &e), ERR_OK);
        const struct point at = eval(s, ROWS[i].B, 1024, 1024, 1);
        assert_true(p.total == ROWS[i].params);
        assert_true(at.v[STEP_memory_bytes] == ROWS[i].memory_bytes);
        assert_close(at.v[STEP_decode_step_s], ROWS[i].latency_s, "latency");
        assert_close(ROWS[i].B / at.v[STEP_decode_step_s], ROWS[i].tok_per_s, "throughput");
        arena_close(a);
    }
}

/* memory = 838860800 B + 26030899200 at S = 1024, latency and throughput in B: the lecture's polynomials. */
static void test_course_polynomial_in_batch(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m;
    struct hw hw;
    struct step *s = compile(a, &m, &hw, "llama-2-13b", NULL, "h100-sxm",
                             (struct step_setup){.fidelity = STEP_BOUND, .conventions = COURSE});
    for (double B = 1; B < 3000; B = B * 3 + 2) {
        const struct point at = eval(s, B, 1024, 1024, 1);
        assert_true(at.v[STEP_memory_bytes] == 838860800.0 * B + 26030899200.0);
        if (at.v[STEP_decode_compute_s] > at.v[STEP_decode_memory_s]) break;
        /* The lecture prints 15 digits of 838860800/3.35e12 and of 26030899200/3.35e12. */
        assert_close(at.v[STEP_decode_step_s], (838860800.0 * B + 26030899200.0) / 3.35e12, "latency");
        assert_true(fabs(at.v[STEP_decode_step_s] - (0.000250406208955224 * B + 0.00777041767164179)) <
                    1e-12 * at.v[STEP_decode_step_s]);
        assert_true(fabs(B / at.v[STEP_decode_step_s] - 127792.358398438 * B / (32 * B + 993)) <
                    1e-12 * B / at.v[STEP_decode_step_s]);
    }
    arena_close(a);
}

static const struct {
    const char *model, *gpu;
    int64_t tp;
} CASES[] = {{"llama-3.1-8b", "h100-sxm", 1},
             {"gpt2-xl", "a100-80g", 1},
             {"gemma-3-27b", "h200-sxm", 1},
             {"gpt-oss-120b", "h100-sxm", 2},
             {"deepseek-v3", "h200-sxm", 8},
             {"deepseek-v2-lite", "l40s", 1},
             {"qwen1.5-moe-a2.7b", "l4", 1},
             {"qwen3-235b-a22b", "h100-sxm", 8},
             {"mixtral-8x7b", "mi300x", 1},
             {"phi-3-mini-4k", "rtx-4090", 1},
             {"nemotron-nano-9b-v2", "h100-sxm", 2},
             {"qwen3.5-27b", "h200-sxm", 4},
             {"zamba2-7b", "h100-sxm", 1},
             {"kimi-linear-48b-a3b", "h200-sxm", 1},
             {"recurrentgemma-2b", "l40s", 1},
             {"falcon-mamba-7b", "h100-sxm", 2},
             {"lfm2-1.2b", "l4", 1}};

/* Sums over operators equal the totals exactly where all terms are whole, and within rounding for seconds. */
static void test_operators_sum_to_totals(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct hw hw;
        struct step *s = compile(a, &m, &hw, CASES[i].model, NULL, CASES[i].gpu,
                                 (struct step_setup){.fidelity = STEP_ROOFLINE, .layout = {.tp = CASES[i].tp}});
        const double B = 7, T = 1531, S = 2311;
        const struct point at = eval(s, B, T, S, 1);
        for (enum step_phase p = 0; p < STEP_PHASES; p++) {
            struct step_op *op;
            size_t n;
            struct err e = {0};
            double flops = 0, bytes = 0, time_s = 0;
            assert_int_equal(step_ops(a, s, p, B, T, S, 1, &op, &n, &e), ERR_OK);
            for (size_t k = 0; k < n; k++) {
                flops += op[k].flops;
                bytes += op[k].bytes;
                time_s += op[k].time_s;
            }
            const size_t at_phase = p == STEP_PREFILL ? STEP_prefill_s : STEP_decode_step_s;
            assert_true(flops == at.v[at_phase + 1]);
            if (m.kinds[m.kinds_n - 1].ffn.kind == FFN_DENSE)
                assert_true(bytes == at.v[at_phase + 2]);
            else /* expected experts are no whole number */
                assert_close(bytes, at.v[at_phase + 2], "bytes");
            assert_close(time_s, at.v[at_phase], "time");
        }
        arena_close(a);
    }
}

static void test_bound_never_exceeds_roofline_and_more_bandwidth_never_slows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct hw hw, fast;
        struct err e = {0};
        struct step *roof = compile(a, &m, &hw, CASES[i].model, NULL, CASES[i].gpu,
                                    (struct step_setup){.fidelity = STEP_ROOFLINE, .layout = {.tp = CASES[i].tp}});
        struct step *bound = compile(a, &m, &hw, CASES[i].model, NULL, CASES[i].gpu,
                                     (struct step_setup){.fidelity = STEP_BOUND, .layout = {.tp = CASES[i].tp}});
        fast = hw;
        fast.bandwidth_bytes_per_s *= 2;
        struct step_setup setup = {
            .model = &m, .hw = &fast, .layout = {.tp = CASES[i].tp}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
        struct step *faster;
        assert_int_equal(step_compile(a, &setup, &faster, &e), ERR_OK);
        for (double B = 1; B <= 512; B *= 8)
            for (double S = 17; S < 40000; S *= 13) {
                const struct point r = eval(roof, B, S, S, 1), b = eval(bound, B, S, S, 1),
                                   f = eval(faster, B, S, S, 1);
                assert_true(b.v[STEP_decode_step_s] <= r.v[STEP_decode_step_s]);
                assert_true(b.v[STEP_prefill_s] <= r.v[STEP_prefill_s]);
                assert_true(f.v[STEP_decode_step_s] <= r.v[STEP_decode_step_s]);
                assert_true(f.v[STEP_prefill_s] <= r.v[STEP_prefill_s]);
            }
        arena_close(a);
    }
}

/* The mean over M decode steps of what the single steps read and compute (bound fidelity: bytes are linear in them). */
static void test_average_over_a_generation_is_the_mean_of_its_steps(void **state)
{
    (void)state;
    static const char *const MODELS[] = {"llama-3.1-8b", "gemma-3-4b", "deepseek-v2-lite", "nemotron-nano-9b-v2"};
    for (size_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct hw hw;
        struct step *one =
            compile(a, &m, &hw, MODELS[i], NULL, "h100-sxm", (struct step_setup){.fidelity = STEP_BOUND});
        struct step *mean = compile(a, &m, &hw, MODELS[i], NULL, "h100-sxm",
                                    (struct step_setup){.fidelity = STEP_BOUND, .averaged = true});
        const double prompt = 911, steps = 257; /* crosses the 1024-token window of gemma-3 */
        double bytes = 0, flops = 0;
        for (double k = 1; k <= steps; k++) {
            const struct point p = eval(one, 3, prompt, prompt + k, 1);
            bytes += p.v[STEP_decode_bytes];
            flops += p.v[STEP_decode_flops];
        }
        const struct point p = eval(mean, 3, prompt, prompt + steps, steps);
        assert_close(p.v[STEP_decode_bytes], bytes / steps, "bytes");
        assert_close(p.v[STEP_decode_flops], flops / steps, "flops");
        arena_close(a);
    }
}

/* State is read and written in every decode step whatever the context, and its traffic grows with the batch: MiniMax-M1
 * has 70*64*128*128 elements of 4 bytes a sequence. */
static void test_state_is_read_and_written(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m;
    struct hw hw;
    struct err e = {0};
    const double one = 70.0 * 64 * 128 * 128 * 4, B = 64;
    struct step *s =
        compile(a, &m, &hw, "minimax-m1-80k", NULL, "h100-sxm", (struct step_setup){.fidelity = STEP_BOUND});
    struct step *none = compile(a, &m, &hw, "minimax-m1-80k", NULL, "h100-sxm",
                                (struct step_setup){.fidelity = STEP_BOUND, .uncached = true});
    for (double S = 100; S < 1e6; S *= 37) {
        struct step_op *op;
        size_t n;
        double walked[STEP_PHASES] = {0};
        for (enum step_phase p = 0; p < STEP_PHASES; p++) {
            assert_int_equal(step_ops(a, s, p, B, S, S, 1, &op, &n, &e), ERR_OK);
            for (size_t i = 0; i < n; i++) walked[p] += op[i].state_bytes;
        }
        assert_true(walked[STEP_DECODE] == 2 * B * one);
        assert_true(walked[STEP_PREFILL] == one); /* a prompt alone, from nothing */
        assert_true(eval(s, B, S, S, 1).v[STEP_state_bytes] == B * one);
        assert_true(eval(none, B, S, S, 1).v[STEP_state_bytes] == 0);
    }
    assert_true(step_state_bytes_per_sequence(s) == one);
    arena_close(a);
}

/* Sums over the operators of a decode step, attention and the gathered embedding apart. */
struct work {
    double flops, attention_flops, weight_bytes;
};

static struct work walk(struct arena *a, const struct step *s, double S)
{
    struct step_op *op;
    size_t n;
    struct err e = {0};
    struct work w = {0};
    assert_int_equal(step_ops(a, s, STEP_DECODE, 1, S, S, 1, &op, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(op[i].name, "embed") == 0) continue;
        *(strcmp(op[i].name, "attention") == 0 ? &w.attention_flops : &w.flops) += op[i].flops;
        w.weight_bytes += op[i].weight_bytes;
    }
    return w;
}

/* Rules for LLaDA 8B with N weights in products (all but the input embedding and 65 norms) and 32 layers of 32 heads of
 * 128: a generation of G tokens in s passes costs s*2*N*(P+G) flops and s*4*L*h*c*(P+G)^2 of attention, s*(P+G)/G times
 * the flops and s/G times the weight reads of the same shape with a cache and one token a step; in blocks of b with s_b
 * passes each, s_b/b weight reads and 2*N*s_b flops a token. LLaDA arXiv 2502.09992, BD3-LM 2503.09573. */
static void test_diffusion_passes(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m, causal;
    struct hw hw;
    struct err e = {0};
    const double norms = 65.0 * 4096, N = 8015581184.0 - 126464.0 * 4096 - norms, P = 337, G = 128, s_G = 32;
    const double b = 16, s_b = 5;
    struct step *whole = compile(a, &m, &hw, "llada-8b", NULL, "h100-sxm",
                                 (struct step_setup){.fidelity = STEP_ROOFLINE, .uncached = true});
    struct step *blocks = compile(a, &m, &hw, "llada-8b", NULL, "h100-sxm",
                                  (struct step_setup){.fidelity = STEP_ROOFLINE, .pass_tokens = (int64_t)b});
    struct step *ordinary;
    causal = m;
    causal.diffusion = causal.bidirectional = false;
    const struct step_setup setup = {
        .model = &causal, .hw = &hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    assert_int_equal(step_compile(a, &setup, &ordinary, &e), ERR_OK);
    const struct work w = walk(a, whole, P + G), of_block = walk(a, blocks, P + G), one = walk(a, ordinary, P + G);
    assert_true(s_G * w.flops == s_G * 2 * N * (P + G));
    assert_true(w.attention_flops == 4 * 32.0 * 32 * 128 * (P + G) * (P + G));
    assert_true(one.flops == 2 * N);
    assert_true(s_G * w.flops == s_G * (P + G) / G * (G * one.flops));
    assert_true(s_G * w.weight_bytes == s_G / G * (G * one.weight_bytes) && w.weight_bytes == 2 * (N + norms));
    assert_true(s_b * of_block.weight_bytes / b == s_b / b * one.weight_bytes);
    assert_true(s_b * of_block.flops / b == 2 * N * s_b);
    assert_true(of_block.attention_flops == 4 * 32.0 * 32 * 128 * b * (P + G)); /* both ways within the block */
    assert_true(eval(whole, 3, 1, P + G, 1).v[STEP_kv_bytes] == 0);
    assert_true(eval(blocks, 3, P, P + G, G).v[STEP_kv_bytes] == 3 * 524288.0 * (P + G));
    arena_close(a);
}

/* EAGLE for Llama 3 8B: a draft step reads its layer and the target's head, about a tenth of what the target reads. */
static void test_draft_step_reads_a_tenth_of_its_target(void **state)
{
    static const char CONFIG[] = "{\"model_type\":\"eagle\",\"hidden_size\":4096,\"num_hidden_layers\":1,"
                                 "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
                                 "\"vocab_size\":128256,\"torch_dtype\":\"bfloat16\"}";
    (void)state;
    struct arena *a = arena_open();
    struct model m, draft;
    struct hw hw;
    struct json j;
    struct err e = {0};
    struct step *target =
        compile(a, &m, &hw, "llama-3-8b", NULL, "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
    struct step *head;
    assert_int_equal(json_parse(a, "config.json", CONFIG, sizeof CONFIG - 1, &j, &e), ERR_OK);
    assert_int_equal(model_parse(a, &j, &draft, &e), ERR_OK);
    draft.name = "eagle";
    const struct step_setup setup = {
        .model = &draft, .hw = &hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    assert_int_equal(step_compile(a, &setup, &head, &e), ERR_OK);
    const double c = walk(a, head, 512).weight_bytes / walk(a, target, 512).weight_bytes;
    assert_true(c > .10 && c < .105); /* (.25 + .53) / 7.5 */
    /* one layer of cache more: 135,168 bytes a token instead of 131,072 */
    assert_true(step_kv_bytes_per_token_full(head) + step_kv_bytes_per_token_full(target) == 135168);
    arena_close(a);
}

/* Claims on record that a bound refutes: 138 GB do not fit in 80, and one sequence of Llama-2-70B in fp16 cannot pass
 * 24 tokens/s at 3.35 TB/s. */
static void test_impossible_claims_are_refuted(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m;
    struct hw hw;
    struct step *s = compile(a, &m, &hw, "llama-2-70b", NULL, "h100-sxm", (struct step_setup){.fidelity = STEP_BOUND});
    const struct point p = eval(s, 1, 128, 128, 1);
    assert_true(p.v[STEP_memory_bytes] > hw_capacity_bytes(&hw));
    assert_true(1 / p.v[STEP_decode_step_s] < 24.5);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_course_numbers),
        cmocka_unit_test(test_course_polynomial_in_batch),
        cmocka_unit_test(test_operators_sum_to_totals),
        cmocka_unit_test(test_bound_never_exceeds_roofline_and_more_bandwidth_never_slows),
        cmocka_unit_test(test_average_over_a_generation_is_the_mean_of_its_steps),
        cmocka_unit_test(test_state_is_read_and_written),
        cmocka_unit_test(test_diffusion_passes),
        cmocka_unit_test(test_draft_step_reads_a_tenth_of_its_target),
        cmocka_unit_test(test_impossible_claims_are_refuted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
