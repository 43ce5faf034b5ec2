/* Layouts in stages: what each stage holds, one tape for all layouts, memory of ranks, and time of stages and copies.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/layouts.h"

static void test_layers_of_stages(void **state)
{
    (void)state;
    static const struct {
        int64_t layers, pp, of[8];
    } CASES[] = {{61, 2, {31, 30}},       {61, 4, {15, 15, 16, 15}},     {80, 3, {27, 27, 26}},
                 {7, 5, {1, 1, 2, 2, 1}}, {32, 4, {8, 8, 8, 8}},         {29, 1, {29}},
                 {5, 5, {1, 1, 1, 1, 1}}, {11, 7, {1, 1, 2, 2, 2, 2, 1}}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        int64_t sum = 0;
        for (int64_t s = 0; s < CASES[i].pp; s++) {
            assert_int_equal(layout_stage_layers(CASES[i].layers, CASES[i].pp, s), CASES[i].of[s]);
            sum += CASES[i].of[s];
        }
        assert_int_equal(sum, CASES[i].layers);
    }
}

/* Layers of several kinds: each stage has those of its own, in the order in which they run. */
static void test_kinds_of_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3"); /* 3 dense, 58 with experts */
    int64_t n[8];
    assert_int_equal(m.kinds_n, 2);
    (void)layout_stage(&m, 2, 0, n);
    assert_true(n[0] == 3 && n[1] == 28);
    (void)layout_stage(&m, 2, 1, n);
    assert_true(n[0] == 0 && n[1] == 30);
    /* of kinds that follow each other no order is said */
    struct model plain = m;
    plain.order = NULL;
    for (int64_t pp = 1; pp <= 61; pp++)
        for (int64_t s = 0; s < pp; s++) {
            int64_t own[2] = {-1, -1}, want[2];
            assert_int_equal(layout_stage(&plain, pp, s, own), layout_stage(&m, pp, s, want));
            assert_true(own[0] == want[0] && own[1] == want[1]);
        }
    static const char *const MODELS[] = {"qwen3-coder-next", "gpt-oss-120b", "llama-3.1-8b", "nemotron-3-nano-30b-a3b"};
    for (size_t i = 0; i < COUNT(MODELS); i++)
        for (int64_t pp = 1; pp <= 5; pp++) {
            const struct model of = load(a, MODELS[i]);
            int64_t counts[64], all[64] = {0};
            assert_true(of.kinds_n <= COUNT(counts));
            for (int64_t s = 0; s < pp; s++) {
                assert_int_equal(layout_stage(&of, pp, s, counts), layout_stage_layers(of.layers, pp, s));
                for (size_t k = 0; k < of.kinds_n; k++) all[k] += counts[k];
            }
            for (size_t k = 0; k < of.kinds_n; k++) assert_int_equal(all[k], of.kinds[k].count);
        }
    arena_close(a);
}

/* m of m+p-1 slots are filled. */
static void test_bubbles(void **state)
{
    (void)state;
    for (int64_t p = 1; p <= 7; p++)
        for (int64_t m = 1; m <= 11; m++) {
            int64_t idle = 0, slots = 0;
            for (int64_t at = 0; at < m + p - 1; at++, slots++) idle += at >= m; /* of the first stage */
            near_to(1 - layout_bubble(p, m), 1 - (double)idle / (double)slots, 1e-15);
            near_to(1 - layout_bubble(p, m), (double)m / (double)(m + p - 1), 1e-15);
        }
    assert_true(layout_bubble(1, 5) == 0);
}

static const struct layout LAYOUTS[] = {{.tp = 1, .per_node = 8},
                                        {.tp = 8, .per_node = 8},
                                        {.tp = 4, .pp = 3, .per_node = 8},
                                        {.tp = 16, .per_node = 8},
                                        {.tp = 2, .pp = 5, .microbatches = 3, .per_node = 2},
                                        {.tp = 8, .pp = 2, .replicas = 3, .per_node = 8},
                                        {.tp = 8, .per_node = 1},
                                        {.tp = 2, .pp = 3, .per_node = 1}};
static const struct layout SPREAD[] = {{.dp = 16, .ep = 16, .per_node = 8},
                                       {.tp = 4, .ep = 4, .per_node = 8},
                                       {.tp = 2, .dp = 4, .ep = 8, .pp = 3, .per_node = 8},
                                       {.tp = 4, .dp = 2, .ep = 2, .skew = 1.5, .per_node = 4},
                                       {.tp = 2, .dp = 8, .ep = 16, .dispatch = LAYOUT_ONCE, .per_node = 8},
                                       {.tp = 1, .dp = 4, .ep = 1, .pp = 2, .microbatches = 5, .per_node = 4},
                                       {.dp = 16, .ep = 16, .dispatch = LAYOUT_GATHER, .per_node = 4},
                                       {.tp = 2, .dp = 4, .ep = 4, .pp = 2, .per_node = 1}};

static void compare_tapes(struct arena *a, const char *name, const struct layout *l, bool sp, bool together)
{
    const struct model m = load(a, name);
    const struct hw hw = device(a, "h200-sxm");
    for (int fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
        struct step_setup setup = {.fidelity = (enum step_fidelity)fidelity,
                                   .layout = *l,
                                   .prefill_together = together,
                                   .latency = {3e-6, 17e-6}};
        setup.layout.sp = sp;
        struct layout with = *l;
        with.sp = sp;
        struct step *one = compile(a, &m, &hw, setup);
        setup.any_layout = true;
        struct step *any = compile(a, &m, &hw, setup);
        static const double AT[][3] = {{1, 97, 97}, {53, 1009, 1009}, {512, 4099, 4099}};
        for (size_t i = 0; i < COUNT(AT); i++) {
            double x[STEP_VALUES_N], y[STEP_VALUES_N];
            eval(one, NULL, AT[i][0], AT[i][1], AT[i][2], x);
            eval(any, &with, AT[i][0], AT[i][1], AT[i][2], y);
            for (size_t v = 0; v < STEP_VALUES_N; v++) near_to(y[v], x[v], 1e-11);
        }
    }
}

static void test_one_tape_prices_what_each_layout_of_its_own_does(void **state)
{
    (void)state;
    static const char *const DENSE[] = {"llama-3.1-70b", "gemma-3-27b"};
    static const char *const EXPERTS[] = {"deepseek-v3", "qwen3-235b-a22b"};
    struct arena *a = arena_open();
    for (size_t i = 0; i < COUNT(DENSE); i++)
        for (size_t k = 0; k < COUNT(LAYOUTS); k++) {
            if (i == 1 && LAYOUTS[k].tp > 8) continue;
            compare_tapes(a, DENSE[i], &LAYOUTS[k], k % 2 == 1, k % 3 == 2);
        }
    for (size_t i = 0; i < COUNT(EXPERTS); i++)
        for (size_t k = 0; k < COUNT(SPREAD); k++) compare_tapes(a, EXPERTS[i], &SPREAD[k], k % 2 == 0, k % 3 == 1);
    arena_close(a);
}

static double weights_of(struct arena *a, const struct model *m, const struct layout *l, double *fullest)
{
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    static const struct cost_conventions PLAIN = {0};
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    const struct cost_layout of = {.layout = *l};
    const struct layout w = layout_whole(l);
    struct cost_ops ops;
    double sum = 0;
    assert_int_equal(cost_build_layout(a, c, &y, m, &PLAIN, &pass, &of, &ops, &e), ERR_OK);
    if (cost_bind_layout(c, &y, m, &of, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    *fullest = 0;
    for (int64_t s = 0; s < w.pp; s++) {
        int64_t n[64];
        const struct sym *layers[64];
        double bytes;
        assert_true(m->kinds_n <= COUNT(n));
        (void)layout_stage(m, w.pp, s, n);
        for (size_t k = 0; k < m->kinds_n; k++) layers[k] = sym_int(c, n[k]);
        const struct cost_stage stage = {layers, sym_int(c, s == 0), sym_int(c, s == w.pp - 1)};
        assert_true(sym_constant(cost_stage_weight_bytes(c, &ops, &PLAIN, &stage), &bytes));
        sum += bytes;
        *fullest = fmax(*fullest, bytes);
    }
    return sum * (double)layout_group(&w);
}

/* All stages together hold the model; a tied head once more. */
static void test_stages_hold_the_model(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        double again; /* bytes of a tied embedding: V*D*2 */
    } CASES[] = {{"llama-3.1-8b", 0}, {"llama-3.2-1b", 128256.0 * 2048 * 2}, {"deepseek-v3", 0}, {"gpt-oss-20b", 0}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        double most, whole = weights_of(a, &m, &(struct layout){0}, &most);
        assert_true(most == whole);
        for (int64_t pp = 2; pp <= 5; pp++)
            assert_true(weights_of(a, &m, &(struct layout){.pp = pp}, &most) == whole + CASES[i].again);
    }
    arena_close(a);
}

/* Llama 3.1 8B in bf16, counted by hand: 32 layers of q, k, v, o, gate, up, down and two norms; two ends. */
static void test_two_stages_by_hand(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-8b");
    const struct hw hw = device(a, "h100-sxm");
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = {.pp = 2}, .fidelity = STEP_ROOFLINE});
    double v[STEP_VALUES_N];
    const double layer = 2.0 * (4096 * (4096 + 2 * 1024 + 4096) + 3 * 4096 * 14336 + 2 * 4096);
    const double head = 2.0 * 128256 * 4096, norm = 2 * 4096;
    eval(s, NULL, 6, 1000, 1000, v);
    assert_true(v[STEP_weight_bytes] == 16 * layer + head + norm);
    assert_true(v[STEP_kv_bytes] == 6.0 * 1000 * 16 * 2 * 8 * 128 * 2); /* half the layers: not the cache of all */
    assert_true(step_weight_bytes(s) == v[STEP_weight_bytes]);
    arena_close(a);
}

/* DeepSeek-V3 over 16 groups: every rank has all but 15/16 of the experts, one block of 128x128 under a scale of 4
 * bytes, and its own sequences' latents. */
static void test_experts_over_ranks_by_hand(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    double most;
    const double whole = weights_of(a, &m, &(struct layout){0}, &most);
    const double expert = 3 * (2048.0 * 7168 + 4 * 16 * 56);
    const struct layout l = {.dp = 16, .ep = 16, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    double v[STEP_VALUES_N];
    eval(s, NULL, 100, 1000, 1000, v);
    assert_true(v[STEP_weight_bytes] == whole - 58 * (256 - 16) * expert);
    /* all ranks: the model and 15 copies of what is not experts */
    assert_true(weights_of(a, &m, &l, &most) == whole + 15 * (whole - 58 * 256 * expert));
    assert_true(v[STEP_kv_bytes] == 7.0 * 1000 * 70272); /* ceil(100/16) sequences */
    /* columns of experts over the ranks of a part: as many bytes where blocks divide */
    const struct layout columns = {.dp = 16, .ep = 4, .per_node = 8};
    s = compile(a, &m, &hw, (struct step_setup){.layout = columns, .fidelity = STEP_ROOFLINE});
    eval(s, NULL, 100, 1000, 1000, v);
    assert_true(v[STEP_weight_bytes] == whole - 58 * 240 * expert);
    arena_close(a);
}

/* What tools get wrong: a latent or a KV head divided by all ranks, a cache that stages do not divide. */
static void test_caches_of_ranks(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        struct layout layout;
        double per_token;
    } CASES[] = {{"deepseek-v3", {.tp = 8}, 70272}, /* MODEL: 61 layers of 1,152 bytes, on every rank */
                 {"deepseek-v3", {.tp = 16, .per_node = 8}, 70272},
                 {"llama-3.1-8b", {.tp = 8}, 131072.0 / 8},
                 {"llama-3.1-8b", {.tp = 16, .per_node = 8}, 131072.0 / 8}, /* 8 KV heads: not a sixteenth */
                 {"llama-3.1-8b", {.pp = 4}, 131072.0 / 4},
                 {"llama-3.1-8b", {.tp = 2, .pp = 2}, 131072.0 / 4}};
    const struct hw hw = device(a, "h200-sxm");
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = CASES[i].layout});
        double v[STEP_VALUES_N];
        eval(s, NULL, 3, 1009, 1009, v);
        assert_true(v[STEP_kv_bytes] == 3 * 1009 * CASES[i].per_token);
        assert_true(step_kv_bytes_per_token_full(s) == CASES[i].per_token);
    }
    arena_close(a);
}

static double time_of(const struct step_op *ops, size_t n, const char *layer, const char *skip)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(ops[i].layer, layer) == 0 && strcmp(ops[i].name, skip) != 0) sum += ops[i].time_s;
    return sum;
}

/* Two stages of a model with layers of one kind, put together from its operators: the step is twice the slower stage,
 * or both of one microbatch; a prompt passes both. */
static void test_time_of_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-8b");
    const struct hw hw = device(a, "h100-sxm");
    for (int64_t microbatches = 1; microbatches <= 3; microbatches++) {
        const struct layout l = {.tp = 2, .pp = 2, .microbatches = microbatches, .per_node = 2};
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        for (int phase = STEP_PREFILL; phase <= STEP_DECODE; phase++) {
            struct step_op *ops;
            struct err e = {0};
            size_t n;
            double v[STEP_VALUES_N];
            const double B = 60, round = phase == STEP_PREFILL ? 1 : (double)microbatches;
            assert_int_equal(step_ops(a, s, (enum step_phase)phase, B, 1009, 1009, 1, &ops, &n, &e), ERR_OK);
            double layers = 0, first = 0, last = 0;
            for (size_t i = 0; i < n; i++) {
                const bool start = strncmp(ops[i].name, "embed", 5) == 0 || strcmp(ops[i].name, "stage_send") == 0;
                *(strcmp(ops[i].layer, "model") != 0 ? &layers : start ? &first : &last) += ops[i].time_s;
            }
            near_to(time_of(ops, n, "model", ""), first + last, 1e-12);
            const double x = layers / 2 + first, y = layers / 2 + last;
            eval(s, NULL, B, 1009, 1009, v);
            near_to(v[phase == STEP_PREFILL ? STEP_prefill_s : STEP_decode_step_s],
                    phase == STEP_PREFILL ? x + y : fmax(x + y, round * fmax(x, y)), 1e-12);
        }
        /* a stage hands rows*D*2 bytes on, half by each rank over the fabric */
        const struct step_op hop = find_op(a, s, STEP_DECODE, 60, 1009, "stage_send", 0);
        assert_true(hop.fabric_bytes == 60.0 / (double)microbatches * 4096 * 2 / 2);
    }
    arena_close(a);
}

/* Prompts together are microbatches: (m + p - 1) passages of the slowest stage at most, all stages alike. */
static void test_prompts_in_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    const struct step_setup setup = {.layout = {.tp = 4, .pp = 4, .microbatches = 8, .per_node = 4},
                                     .prefill_together = true,
                                     .fidelity = STEP_ROOFLINE};
    struct step *s = compile(a, &m, &hw, setup);
    double all[STEP_VALUES_N], one[STEP_VALUES_N];
    eval(s, NULL, 16, 2003, 2003, all); /* 8 microbatches of 2 prompts */
    eval(s, NULL, 2, 2003, 2003, one);  /* 2 of 1 */
    assert_true(all[STEP_prefill_s] > one[STEP_prefill_s]);
    struct step_setup alone = setup;
    alone.layout.microbatches = 1;
    s = compile(a, &m, &hw, alone);
    eval(s, NULL, 2, 2003, 2003, one); /* one microbatch of 2 prompts through 4 stages of 20 layers */
    near_to(all[STEP_prefill_s], one[STEP_prefill_s] / 4 * (8 + 4 - 1), 0.02); /* the ends differ */
    arena_close(a);
}

/* Copies share nothing: the throughput of one, times as many. */
static void test_copies(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    struct err e = {0};
    struct layouts_request q = {.model = &m, .hw = &hw, .capacity_bytes = hw_capacity_bytes(&hw), .average = 1};
    q.step = compile(a, &m, &hw, (struct step_setup){.any_layout = true, .fidelity = STEP_ROOFLINE});
    q.prompt = q.context = 1009;
    q.per_node = 8;
    struct layouts_item one, three;
    q.gpus = 8;
    q.batch = 40;
    assert_int_equal(layouts_price(a, &q, &(struct layout){.tp = 8, .per_node = 8}, &one, &e), ERR_OK);
    q.gpus = 24;
    q.batch = 120;
    assert_int_equal(layouts_price(a, &q, &(struct layout){.tp = 8, .replicas = 3, .per_node = 8}, &three, &e), ERR_OK);
    assert_int_equal(three.batch, 40);
    near_to(three.throughput_tok_per_s, 3 * one.throughput_tok_per_s, 1e-12);
    assert_true(three.value[STEP_memory_bytes] == one.value[STEP_memory_bytes]);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_of_stages),
        cmocka_unit_test(test_kinds_of_stages),
        cmocka_unit_test(test_bubbles),
        cmocka_unit_test(test_one_tape_prices_what_each_layout_of_its_own_does),
        cmocka_unit_test(test_stages_hold_the_model),
        cmocka_unit_test(test_two_stages_by_hand),
        cmocka_unit_test(test_experts_over_ranks_by_hand),
        cmocka_unit_test(test_caches_of_ranks),
        cmocka_unit_test(test_time_of_stages),
        cmocka_unit_test(test_prompts_in_stages),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
