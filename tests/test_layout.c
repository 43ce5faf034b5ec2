/* Layouts of ranks: what each holds, computes and sends, counted by hand, and what cannot be. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/serve/layouts.h"
#include "calc/time/kernel.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void near_to(double got, double want, double within)
{
    if (!(fabs(got - want) <= within * fabs(want))) fail_msg("found %.17g, wanted %.17g", got, want);
}

static struct model load(struct arena *a, const char *name)
{
    struct err e = {0};
    struct model m;
    if (model_load(a, name, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    return m;
}

static struct hw device(struct arena *a, const char *name)
{
    struct err e = {0};
    struct hw hw;
    if (hw_load(a, name, &hw, &e) != ERR_OK) fail_msg("%s", e.text);
    return hw;
}

static struct step *compile(struct arena *a, const struct model *m, const struct hw *hw, struct step_setup setup)
{
    struct err e = {0};
    struct step *s;
    setup.model = m;
    setup.hw = hw;
    setup.block_tokens = 16;
    if (step_compile(a, &setup, &s, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    return s;
}

/* One point: B, T, S. */
static void eval(struct step *s, const struct layout *l, double B, double T, double S, double *out)
{
    struct err e = {0};
    if (step_eval_layout(s, l, B, T, S, 1, out, &e) != ERR_OK) fail_msg("%s", e.text);
}

static struct step_op find_op(struct arena *a, struct step *s, enum step_phase phase, double B, double S,
                              const char *name, size_t nth)
{
    struct step_op *ops;
    struct err e = {0};
    size_t n;
    assert_int_equal(step_ops(a, s, phase, B, S, S, 1, &ops, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(ops[i].name, name) == 0 && nth-- == 0) return ops[i];
    fail_msg("no operator %s", name);
    return ops[0];
}

/* ---- stages ---- */

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

/* ---- one tape for all layouts ---- */

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

/* ---- memory ---- */

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

/* ---- work ---- */

/* Matrix flops of a decode step of B sequences, over all ranks: stages one after the other, groups side by side. */
static double flops_of_all(struct arena *a, const struct model *m, const struct hw *hw, struct layout l, double B)
{
    struct step_op *ops;
    struct err e = {0};
    size_t n;
    double sum = 0;
    l.microbatches = 1;
    struct step *s = compile(a, m, hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    assert_int_equal(step_ops(a, s, STEP_DECODE, B, 1009, 1009, 1, &ops, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++) sum += ops[i].flops;
    return sum * (double)layout_group(&l);
}

static void test_ranks_share_the_work(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        struct layout layout;
        double again; /* flops of products that all t ranks of a group do, for one sequence */
    } CASES[] = {
        {"llama-3.1-70b", {.tp = 8, .per_node = 8}, 0},
        {"llama-3.1-70b", {.tp = 4, .pp = 5, .per_node = 4}, 0},
        {"mixtral-8x7b", {.tp = 1, .dp = 4, .ep = 4}, 0},
        {"mixtral-8x7b", {.tp = 1, .dp = 4, .ep = 2}, 0},
        {"mixtral-8x7b", {.tp = 2, .dp = 2, .ep = 4}, 2.0 * 32 * 4096 * 8}, /* the router */
        {"mixtral-8x7b", {.tp = 4, .ep = 4}, 3 * 2.0 * 32 * 4096 * 8},      /* three times more */
        {"mixtral-8x7b", {.tp = 4, .ep = 2, .pp = 3}, 3 * 2.0 * 32 * 4096 * 8},
        /* down into both latents in 61 layers, routers of 58 */
        {"deepseek-v3", {.tp = 2, .dp = 8, .ep = 16, .per_node = 8}, 2.0 * 7168 * (61 * (1536 + 576) + 58 * 256)},
    };
    const struct hw hw = device(a, "h200-sxm");
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        const double B = 48, one = flops_of_all(a, &m, &hw, (struct layout){0}, B);
        const struct layout l = CASES[i].layout;
        near_to(flops_of_all(a, &m, &hw, l, B), one + B * CASES[i].again, 1e-12);
    }
    arena_close(a);
}

/* A batch that groups cannot share evenly: the fullest group counts. */
static void test_an_uneven_batch(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    const struct layout l = {.dp = 8, .ep = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    double x[STEP_VALUES_N], y[STEP_VALUES_N];
    eval(s, NULL, 17, 100, 100, x);
    eval(s, NULL, 24, 100, 100, y);
    for (size_t v = 0; v < STEP_VALUES_N; v++) assert_true(x[v] == y[v]);
    arena_close(a);
}

/* Experts of the part that has most, of s drawn: every choice walked. */
static double busiest_by_walking(int experts, int parts, int s)
{
    double most = 0, all = 0;
    const int held = experts / parts;
    for (uint32_t set = 0; set < 1U << experts; set++) {
        if (__builtin_popcount(set) != s) continue;
        int top = 0;
        for (int p = 0; p < parts; p++) {
            const int here = __builtin_popcount(set >> (p * held) & ((1U << held) - 1));
            top = here > top ? here : top;
        }
        most += top;
        all++;
    }
    return most / all;
}

static void test_the_busiest_part(void **state)
{
    (void)state;
    static const int CASES[][2] = {{12, 3}, {14, 7}, {15, 5}, {10, 2}, {13, 13}, {16, 4}};
    for (size_t i = 0; i < COUNT(CASES); i++)
        for (int s = 1; s <= CASES[i][0]; s++)
            near_to(layout_busiest(CASES[i][0], CASES[i][1], s), busiest_by_walking(CASES[i][0], CASES[i][1], s),
                    1e-12);
    assert_true(layout_busiest(256, 1, 97) == 97);
    near_to(layout_busiest(1000, 2, 1000), 500, 1e-9);
    near_to(layout_busiest(1001, 7, 77), 11, 1e-12); /* more than a double counts: the mean */
}

/* Expected maximum over parts of the distinct experts of n tokens, each drawing k different ones: drawn. */
static double busiest_by_drawing(int experts, int k, int parts, int n, int rounds)
{
    uint64_t seed = 88172645463325252U;
    double sum = 0;
    for (int round = 0; round < rounds; round++) {
        bool touched[512] = {false};
        int here[512] = {0}, top = 0;
        for (int token = 0; token < n; token++) {
            bool own[512] = {false};
            for (int drawn = 0; drawn < k;) {
                seed ^= seed << 13; /* xorshift64 */
                seed ^= seed >> 7;
                seed ^= seed << 17;
                const int at = (int)((seed >> 11) % (uint64_t)experts);
                if (own[at]) continue;
                own[at] = true;
                drawn++;
                if (touched[at]) continue;
                touched[at] = true;
                const int now = ++here[at / (experts / parts)];
                top = now > top ? now : top;
            }
        }
        sum += top;
    }
    return sum / rounds;
}

/* Layers whose experts are not those that a layout's numbers are of: parts read as many as the mean, all alike. */
static void test_experts_of_two_kinds(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    const struct layout l = {.dp = 16, .ep = 16, .per_node = 8};
    for (int change = 0; change < 2; change++) {
        struct layer_kind kind[2] = {m.kinds[0], m.kinds[1]};
        kind[0].ffn = kind[1].ffn;
        if (change == 0) kind[1].ffn.experts_per_token = 5;
        if (change == 1) kind[1].ffn.experts = 128;
        m.kinds = kind;
        const double E = (double)kind[1].ffn.experts, k = (double)kind[1].ffn.experts_per_token;
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        const struct step_op op = find_op(a, s, STEP_DECODE, 16, 1000, "experts_up", 1);
        near_to(op.weight_bytes / (58 * 2 * (2048.0 * 7168 + 4 * 16 * 56)), E / 16 * (1 - pow(1 - k / E, 16)), 1e-12);
        m = load(a, "deepseek-v3");
    }
    arena_close(a);
}

/* The slowest rank reads the experts of the part that has most of them; the mean over parts, which a step cannot be as
 * fast as, has a fraction of one expert for one token. */
static void test_experts_that_the_busiest_part_reads(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        int experts, k, layers;
        double expert; /* bytes of gate and up of one */
        int64_t ranks;
        int n[5];
    } CASES[] = {
        {"deepseek-v3", 256, 8, 58, 2 * (2048.0 * 7168 + 4 * 16 * 56), 16, {1, 5, 16, 32, 128}},
        {"deepseek-v3", 256, 8, 58, 2 * (2048.0 * 7168 + 4 * 16 * 56), 2, {1, 3, 7, 24, 64}},
        {"mixtral-8x7b", 8, 2, 32, 2 * 14336.0 * 4096 * 2, 8, {1, 2, 3, 5, 11}},
        {"mixtral-8x7b", 8, 2, 32, 2 * 14336.0 * 4096 * 2, 4, {1, 2, 3, 5, 11}},
        {"mixtral-8x7b", 8, 2, 32, 2 * 14336.0 * 4096 * 2, 2, {1, 2, 3, 5, 11}},
    };
    const struct hw hw = device(a, "h200-sxm");
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        const struct layout l = {.tp = CASES[i].ranks, .ep = CASES[i].ranks, .per_node = 8};
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        for (size_t j = 0; j < COUNT(CASES[i].n); j++) {
            const int n = CASES[i].n[j], parts = (int)CASES[i].ranks;
            const struct step_op op = find_op(a, s, STEP_DECODE, n, 1000, "experts_up", 0);
            const double found = op.weight_bytes / (CASES[i].layers * CASES[i].expert);
            const double drawn = busiest_by_drawing(CASES[i].experts, CASES[i].k, parts, n, 4000);
            near_to(found, drawn, 0.02); /* the draws' own error, and H at the mean for the mean of H */
            if (n == 1) near_to(found, layout_busiest(CASES[i].experts, parts, CASES[i].k), 1e-12);
            assert_true(found >= 1);
            const double pairs = op.flops / (CASES[i].layers * 2.0 * (CASES[i].experts == 8 ? 4096 : 7168) * 2 *
                                             (CASES[i].experts == 8 ? 14336 : 2048));
            near_to(pairs, fmax(found, n * (double)CASES[i].k / parts), 1e-12); /* an expert that is read has one */
        }
    }
    arena_close(a);
}

/* As many GPUs as nodes: everything goes over the fabric, at its rate. */
static void test_one_gpu_a_node(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct hw hw = device(a, "h100-sxm"); /* 50 GB/s a GPU */
    const struct model m = load(a, "llama-3.1-8b");
    static const struct layout LAYOUT[] = {{.tp = 4, .per_node = 1}, {.tp = 4, .sp = true, .per_node = 1}};
    for (size_t i = 0; i < COUNT(LAYOUT); i++)
        for (int fidelity = STEP_BOUND; fidelity <= STEP_ROOFLINE; fidelity++) {
            struct step *s =
                compile(a, &m, &hw, (struct step_setup){.layout = LAYOUT[i], .fidelity = (enum step_fidelity)fidelity});
            double v[STEP_VALUES_N];
            eval(s, NULL, 7, 501, 501, v);
            /* 65 sums around a ring of 4, and logits of the other three */
            const double sent = 65 * 2 * 3.0 / 4 * 7 * 4096 * 2 + 3.0 * 7 * 128256 / 4 * 2;
            assert_true(v[STEP_decode_wire_bytes] == 0 && v[STEP_prefill_wire_bytes] == 0);
            near_to(v[STEP_decode_fabric_bytes], sent, 1e-12);
            near_to(v[STEP_decode_link_s], sent / 50e9, 1e-12);
        }
    struct step *s = compile(
        a, &m, &hw, (struct step_setup){.layout = {.tp = 1, .pp = 2, .per_node = 1}, .fidelity = STEP_ROOFLINE});
    const struct step_op hop = find_op(a, s, STEP_DECODE, 14, 501, "stage_send", 0);
    assert_true(hop.wire_bytes == 0 && hop.fabric_bytes == 7 * 4096.0 * 2);
    /* a group of two nodes hands on what each of its GPUs has of the stream: an eighth within a node of eight */
    s = compile(a, &m, &hw,
                (struct step_setup){.layout = {.tp = 16, .pp = 2, .per_node = 8}, .fidelity = STEP_ROOFLINE});
    const struct step_op wide = find_op(a, s, STEP_DECODE, 14, 501, "stage_send", 0);
    assert_true(wide.wire_bytes == 7 * 4096.0 * 2 * 7 / 8 && wide.fabric_bytes == 7 * 4096.0 * 2 / 8);
    /* logits of 16 ranks: 14 of 15 others come within the node */
    const struct step_op logits = find_op(a, s, STEP_DECODE, 14, 501, "logits_all_gather", 0);
    near_to(logits.wire_bytes, 14 * 7.0 * 128256 / 16 * 2, 1e-12);
    near_to(logits.fabric_bytes, 7.0 * 128256 / 16 * 2, 1e-12);
    arena_close(a);
}

/* Without stages a batch is in one part, whatever is asked. */
static void test_microbatches_are_of_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "mixtral-8x7b");
    const struct hw hw = device(a, "h100-sxm");
    const struct layout l = {.dp = 8, .ep = 8}, parts = {.dp = 8, .ep = 8, .microbatches = 4};
    double x[STEP_VALUES_N], y[STEP_VALUES_N];
    eval(compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE}), NULL, 64, 97, 97, x);
    eval(compile(a, &m, &hw, (struct step_setup){.layout = parts, .fidelity = STEP_ROOFLINE}), NULL, 64, 97, 97, y);
    for (size_t v = 0; v < STEP_VALUES_N; v++) assert_true(x[v] == y[v]);
    arena_close(a);
}

/* Operators of experts over ranks, each number by hand; a layer's. */
static void test_operators_of_experts(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    /* 4 groups of 2 ranks, 8 parts: a group has 24 of 96 sequences, a rank sends 12 */
    struct layout l = {.tp = 2, .dp = 4, .ep = 8, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    const double pairs = 96.0 * 8 / 8, fp8 = 1 + 4.0 / 128;
    struct step_op op = find_op(a, s, STEP_DECODE, 96, 1000, "experts_up", 0);
    assert_true(op.count == 58 && op.flops == 58 * 2 * pairs * 7168 * 2 * 2048);
    assert_true(op.activation_bytes == 58 * pairs * (7168 + 2 * 2048) * 2);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "experts_act", 0);
    assert_true(op.vector_flops == 58 * 5 * pairs * 2048);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "combine", 0); /* a rank's 12 tokens, 8 results each */
    assert_true(op.vector_flops == 58 * 2 * 12 * 8.0 * 7168);
    assert_true(op.activation_bytes == 58 * (12 * 8 + 12) * 7168.0 * 2);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "dispatch", 0); /* 8 experts of 8 ranks: to all 7 others */
    near_to(op.wire_bytes, 58 * 7 * 12 * 7168 * fp8, 1e-12);
    near_to(op.activation_bytes, 58 * 8 * 12 * 7168 * fp8, 1e-12);
    assert_true(op.fabric_bytes == 0);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "mlp_all_reduce", 1); /* of the layers with experts */
    assert_true(op.count == 58 && op.wire_bytes == 58 * 24 * 7168.0 * 2);
    /* a group of 25 sequences, one of 24: a rank has 13 of them at most */
    for (int B = 98; B <= 100; B += 2) {
        op = find_op(a, s, STEP_DECODE, B, 1000, "combine", 0);
        assert_true(op.vector_flops == 58 * 2 * 13 * 8.0 * 7168);
    }
    op = find_op(a, s, STEP_DECODE, 100, 1000, "return", 0);
    near_to(op.wire_bytes, 58 * 7 * 13 * 7168.0 * 2, 1e-12);
    /* two nodes: 4 of the 8 others' copies in the node, one over the fabric */
    l.per_node = 4;
    s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    op = find_op(a, s, STEP_DECODE, 96, 1000, "dispatch", 0);
    near_to(op.wire_bytes, 58 * 6 * 12 * 7168 * fp8, 1e-12);
    near_to(op.fabric_bytes, 58 * 1 * 12 * 7168 * fp8, 1e-12);
    near_to(op.activation_bytes, 58 * (1 + 6 + 1) * 12 * 7168 * fp8, 1e-12);
    /* without groups every rank has all tokens: a part's own results are summed */
    l = (struct layout){.tp = 8, .ep = 4};
    s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    op = find_op(a, s, STEP_DECODE, 96, 1000, "combine", 0);
    assert_true(op.vector_flops == 58 * 2 * (96 * 8.0 / 4) * 7168);
    assert_true(op.activation_bytes == 58 * (96 * 8 / 4 + 96) * 7168.0 * 2);
    op = find_op(a, s, STEP_DECODE, 96, 1000, "experts_down", 0); /* two ranks split the columns */
    assert_true(op.flops == 58 * 2 * (96 * 8.0 / 4) * 1024 * 7168);
    arena_close(a);
}

/* The stream to the next stage: within a node the whole of it from each rank; to another node a part of it. */
static void test_hand_over(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    struct layout l = {.tp = 4, .pp = 2, .microbatches = 1, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    struct step_op op = find_op(a, s, STEP_DECODE, 36, 1000, "stage_send", 0);
    assert_true(op.count == 1 && op.wire_bytes == 36 * 8192.0 * 2 && op.fabric_bytes == 0);
    assert_true(op.activation_bytes == 2 * 36 * 8192.0 * 2);
    l.per_node = 4;
    s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    op = find_op(a, s, STEP_DECODE, 36, 1000, "stage_send", 0);
    assert_true(op.wire_bytes == 3.0 / 4 * 36 * 8192 * 2 && op.fabric_bytes == 36 * 8192.0 * 2 / 4);
    /* stages 1 and 3 of 4 end their nodes */
    l = (struct layout){.tp = 4, .pp = 4, .per_node = 8};
    assert_true(!layout_crosses(&l, 0) && layout_crosses(&l, 1) && !layout_crosses(&l, 2));
    l = (struct layout){.tp = 4, .pp = 7, .per_node = 16};
    for (int64_t at = 0; at < 7; at++) assert_int_equal(layout_crosses(&l, at), at == 3);
    l = (struct layout){.tp = 8, .per_node = 8}; /* one stage hands on to none */
    assert_true(!layout_crosses(&l, 0));
    l = (struct layout){.tp = 8, .pp = 2, .per_node = 8};
    assert_true(layout_crosses(&l, 0));
    arena_close(a);
}

/* The busiest part has skew times the tokens, and so much more work, and as many bytes arrive there. */
static void test_skew(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    struct layout l = {.dp = 16, .ep = 16, .per_node = 8};
    struct step *even = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    l.skew = 1.75;
    struct step *skewed = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    const struct step_op x = find_op(a, even, STEP_DECODE, 320, 1000, "experts_up", 0),
                         y = find_op(a, skewed, STEP_DECODE, 320, 1000, "experts_up", 0);
    near_to(y.flops, 1.75 * x.flops, 1e-12);
    near_to(y.weight_bytes / (58 * 16 * 2 * (2048.0 * 7168 + 4 * 16 * 56)), 1 - pow(1 - 1.75 * 8 / 256, 320), 1e-9);
    near_to(find_op(a, skewed, STEP_DECODE, 320, 1000, "dispatch", 0).fabric_bytes,
            1.75 * find_op(a, even, STEP_DECODE, 320, 1000, "dispatch", 0).fabric_bytes, 1e-12);
    near_to(find_op(a, skewed, STEP_DECODE, 320, 1000, "attention", 0).flops,
            find_op(a, even, STEP_DECODE, 320, 1000, "attention", 0).flops, 1e-12);
    arena_close(a);
}

/* Latent attention absorbed: 278,528 flops a pair, 1,152 bytes a key; heads split over ranks, keys not. */
static void test_intensity_of_latent_attention(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    static const struct {
        struct layout layout;
        double ranks;
    } CASES[] = {{{.tp = 1}, 1}, {{.tp = 8}, 8}, {{.dp = 8, .ep = 8}, 1}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = CASES[i].layout});
        const struct step_op op = find_op(a, s, STEP_DECODE, 8, 4096, "attention", 0);
        const double sequences = CASES[i].layout.dp ? 1 : 8;
        assert_true(op.flops == 3 * sequences * 4096 * 278528 / CASES[i].ranks); /* the three dense layers */
        assert_true(op.kv_bytes == 3 * sequences * 4096 * 1152);
        near_to(op.flops / op.kv_bytes, 242 / CASES[i].ranks, 1e-3);
    }
    arena_close(a);
}

/* ---- bytes sent ---- */

/* 70B over 8 H100: 160 sums of B*D*2 bytes; 4.1 us of wire around a ring and 2.3 in the switch for 64 tokens. */
static void test_sums_over_ranks(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw nvls = device(a, "h100-sxm");
    struct hw ring = nvls;
    ring.nvls = false;
    const struct step_setup setup = {.layout = {.tp = 8}, .fidelity = STEP_ROOFLINE};
    struct step *with = compile(a, &m, &nvls, setup), *without = compile(a, &m, &ring, setup);
    static const char *const NAMES[] = {"mixer_all_reduce", "mlp_all_reduce"};
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const struct step_op x = find_op(a, without, STEP_DECODE, 64, 1000, NAMES[i], 0),
                             y = find_op(a, with, STEP_DECODE, 64, 1000, NAMES[i], 0);
        assert_int_equal(x.count, 80); /* two a layer */
        assert_true(x.wire_bytes == 80 * 2 * 7.0 / 8 * 64 * 8192 * 2 && y.wire_bytes == 80.0 * 64 * 8192 * 2);
        near_to(x.time_s / 80, 4.1e-6, 0.01);
        near_to(y.time_s / 80, 2.33e-6, 0.01);
    }
    near_to(find_op(a, without, STEP_PREFILL, 1, 8192, "mlp_all_reduce", 0).time_s / 80, 522e-6, 0.001);
    near_to(find_op(a, with, STEP_PREFILL, 1, 8192, "mlp_all_reduce", 0).time_s / 80, 298e-6, 0.001);
    arena_close(a);
}

/* One rank sums with nobody; all ranks of two nodes do. */
static void test_one_rank_sends_nothing(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const char *const MODELS[] = {"llama-3.1-8b", "deepseek-v3"};
    for (size_t i = 0; i < COUNT(MODELS); i++) {
        const struct model m = load(a, MODELS[i]);
        const struct hw hw = device(a, "h200-sxm");
        const struct step_setup any = {.any_layout = true, .latency = {5e-6, 20e-6}, .fidelity = STEP_ROOFLINE};
        double v[STEP_VALUES_N], w[STEP_VALUES_N];
        eval(compile(a, &m, &hw, any), &(struct layout){.tp = 1}, 7, 1009, 1009, v);
        eval(compile(a, &m, &hw, (struct step_setup){.fidelity = STEP_ROOFLINE}), NULL, 7, 1009, 1009, w);
        assert_true(v[STEP_decode_wire_bytes] == 0 && v[STEP_decode_fabric_bytes] == 0 && v[STEP_prefill_link_s] == 0);
        near_to(v[STEP_decode_step_s], w[STEP_decode_step_s], 1e-12);
        near_to(v[STEP_activation_bytes], w[STEP_activation_bytes], 1e-12);
    }
    arena_close(a);
}

/* Over two nodes of 8: what a node cannot sum itself goes over the fabric, an eighth of it by each rank. */
static void test_sums_over_nodes(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    const struct layout l = {.tp = 16, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    const struct step_op op = find_op(a, s, STEP_DECODE, 64, 1000, "mixer_all_reduce", 0);
    const double sum = 64 * 8192.0 * 2;
    near_to(op.fabric_bytes, 80 * 2 * (1.0 / 2) * sum / 8, 1e-12);
    near_to(op.time_s, 80 * fmax(sum / 450e9, sum / 8 / 50e9), 1e-9);
    const struct step_op logits = find_op(a, s, STEP_DECODE, 64, 1000, "logits_all_gather", 0);
    assert_true(logits.wire_bytes == 14 * 64 * 8016.0 * 2 && logits.fabric_bytes == 64 * 8016.0 * 2);
    arena_close(a);
}

/* Start-up: 2(t-1) messages around a ring, one in the switch. */
static void test_latency_of_links(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct hw hw = device(a, "h100-sxm");
    struct err e = {0};
    const struct timed_latency each = {5e-6, 20e-6};
    struct timed_links k;
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 8}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 5e-6, 1e-12);
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 16, .per_node = 8}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 5e-6 + 2 * 20e-6, 1e-12);
    hw.nvls = false;
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 8}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 14 * 5e-6, 1e-12);
    near_to(k.gather_s, 7 * 5e-6, 1e-12);
    near_to(k.wire_factor, 1.75, 1e-12);
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 2, .sp = true}, &each, &k, &e), ERR_OK);
    near_to(k.sum_s, 5e-6, 1e-12);
    assert_int_equal(timed_links(&hw, &(struct layout){.dp = 16, .ep = 16, .per_node = 8}, &each, &k, &e), ERR_OK);
    near_to(k.spread_s, 25e-6, 1e-12);
    hw.fabric_bytes_per_s = (double)NAN;
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 16, .per_node = 8}, &each, &k, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "fabric"));
    arena_close(a);
}

/* The same of every kind of layout, messages in a row counted by hand: 3 us in a node, 11 us between nodes. */
static void test_messages_in_a_row(void **state)
{
    (void)state;
    static const struct {
        struct layout l;
        double factor, sum_us, gather_us, spread_us, hop_us, spread_rate;
    } CASES[] = {
        /* in a switch that sums: one message; two ranks have no use for it: a ring there and back */
        {{.tp = 4}, 1, 3, 3, 0, 3, 450e9},
        {{.tp = 2}, 1, 2 * 3, 3, 0, 3, 450e9},
        {{.tp = 3}, 1, 3, 3, 0, 3, 450e9},
        /* halves of a sum: out of the switch's reach; every pair has a path */
        {{.tp = 4, .sp = true}, 1.5, 3, 3, 0, 3, 450e9},
        /* two nodes of eight: there and back on the fabric behind the sum within */
        {{.tp = 16, .per_node = 8}, 1, 3 + 2 * 11, 3 + 11, 0, 11, 450e9},
        {{.tp = 24, .per_node = 8}, 1, 3 + 4 * 11, 3 + 2 * 11, 0, 11, 450e9},
        /* experts of several groups: a message in the node, one between nodes where there are several */
        {{.dp = 4, .ep = 4}, 0, 0, 0, 3, 3, 450e9},
        {{.dp = 16, .ep = 16, .per_node = 8}, 0, 0, 0, 3 + 11, 11, 450e9},
        {{.tp = 2, .dp = 2, .ep = 4, .per_node = 4}, 1, 6, 3, 3, 3, 450e9},
        /* stages: by the link of a node, or between nodes */
        {{.pp = 2}, 0, 0, 0, 0, 3, 450e9},
        {{.pp = 2, .per_node = 1}, 0, 0, 0, 0, 11, (double)NAN},
        {{.tp = 4, .pp = 4, .per_node = 8}, 1, 3, 3, 0, 11, 450e9},
        {{.tp = 1}, 0, 0, 0, 0, 3, (double)NAN},
    };
    struct arena *a = arena_open();
    struct err e = {0};
    const struct hw hw = device(a, "h100-sxm");
    const struct timed_latency each = {3e-6, 11e-6};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct timed_links k;
        if (timed_links(&hw, &CASES[i].l, &each, &k, &e) != ERR_OK) fail_msg("%zu: %s", i, e.text);
        const double got[] = {k.wire_factor, k.sum_s * 1e6, k.gather_s * 1e6, k.spread_s * 1e6, k.hop_s * 1e6};
        const double want[] = {CASES[i].factor, CASES[i].sum_us, CASES[i].gather_us, CASES[i].spread_us,
                               CASES[i].hop_us};
        for (size_t v = 0; v < 5; v++)
            if (!(fabs(got[v] - want[v]) < 1e-9)) fail_msg("case %zu, value %zu: %g, want %g", i, v, got[v], want[v]);
        assert_true(isnan(CASES[i].spread_rate) ? isnan(k.spread_bytes_per_s)
                                                : k.spread_bytes_per_s == CASES[i].spread_rate);
        const int64_t gpus = layout_gpus(&CASES[i].l), node = CASES[i].l.per_node ? CASES[i].l.per_node : gpus;
        assert_true(isnan(k.fabric_bytes_per_s) == (gpus <= node));
    }
    arena_close(a);
}

/* Time of one operator, apart from how often it runs, against bytes over rates and messages in a row. */
static void one_takes(struct arena *a, struct step *s, const char *name, double near_rate, double far_rate,
                      double start_s)
{
    const struct step_op op = find_op(a, s, STEP_DECODE, 8, 1000, name, 0);
    const double n = (double)op.count;
    near_to(op.time_s / n, fmax(op.wire_bytes / n / near_rate, op.fabric_bytes / n / far_rate) + start_s, 1e-9);
    assert_string_equal(op.bound_by, "link");
}

/* Devices that each reach every other by a path of its own: of n of them one sends n - 1 times as fast. 3 us in a node,
 * 11 between nodes, where each operator takes its own number of messages and the rate of those that it joins. */
static void test_seconds_of_what_is_sent(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3"), dense = load(a, "llama-3.1-8b");
    struct hw hw = device(a, "mi300x");
    hw.fabric_bytes_per_s = 50e9;
    const double pair = hw.link_pair_bytes_per_s;
    assert_true(!hw.nvls && pair > 0 && 7 * pair <= hw.link_bytes_per_s * 1.001);
    struct step_setup u = {.fidelity = STEP_ROOFLINE, .latency = {3e-6, 11e-6}};
    u.layout = (struct layout){.tp = 2, .dp = 4, .ep = 8, .per_node = 8};
    struct step *s = compile(a, &m, &hw, u);
    one_takes(a, s, "mlp_all_reduce", pair, 50e9, 6e-6);
    one_takes(a, s, "logits_all_gather", pair, 50e9, 3e-6);
    one_takes(a, s, "dispatch", 7 * pair, 50e9, 3e-6);
    one_takes(a, s, "return", 7 * pair, 50e9, 3e-6);
    u.layout = (struct layout){.dp = 8, .ep = 8, .per_node = 4};
    s = compile(a, &m, &hw, u);
    one_takes(a, s, "dispatch", 3 * pair, 50e9, 14e-6);
    u.layout = (struct layout){.tp = 4, .per_node = 2};
    s = compile(a, &dense, &hw, u);
    one_takes(a, s, "mixer_all_reduce", pair, 50e9, 2 * 3e-6 + 2 * 11e-6);
    one_takes(a, s, "logits_all_gather", pair, 50e9, 14e-6);
    u.layout.sp = true;
    s = compile(a, &dense, &hw, u);
    one_takes(a, s, "mixer_reduce_scatter", pair, 50e9, 14e-6);
    one_takes(a, s, "mixer_all_gather", pair, 50e9, 14e-6);
    u.layout = (struct layout){.tp = 4, .pp = 2, .microbatches = 1, .per_node = 8};
    one_takes(a, compile(a, &dense, &hw, u), "stage_send", 3 * pair, 50e9, 3e-6);
    u.layout = (struct layout){.tp = 1, .pp = 2, .microbatches = 1, .per_node = 8};
    one_takes(a, compile(a, &dense, &hw, u), "stage_send", pair, 50e9, 3e-6);
    u.layout.per_node = 1;
    one_takes(a, compile(a, &dense, &hw, u), "stage_send", pair, 50e9, 11e-6);
    /* either latency by itself */
    u.layout = (struct layout){.tp = 4, .per_node = 2};
    u.latency = (struct timed_latency){.link_s = 3e-6};
    one_takes(a, compile(a, &dense, &hw, u), "logits_all_gather", pair, 50e9, 3e-6);
    u.latency = (struct timed_latency){.fabric_s = 11e-6};
    one_takes(a, compile(a, &dense, &hw, u), "logits_all_gather", pair, 50e9, 11e-6);
    struct timed_links k;
    struct err e = {0};
    assert_int_equal(timed_links(&hw, &(struct layout){.tp = 1, .per_node = 8}, &u.latency, &k, &e), ERR_OK);
    assert_true(isnan(k.spread_bytes_per_s) && isnan(k.link_bytes_per_s));
    arena_close(a);
}

/* Columns of points through stages: what is not asked for is left alone, and no mean of contexts is one context. */
static void test_columns_through_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-8b");
    const struct hw hw = device(a, "h100-sxm");
    const struct layout l = {.tp = 2, .pp = 2, .microbatches = 2};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE, .averaged = true});
    const double B[] = {12, 38}, T[] = {1009, 517}, S[] = {1009, 517}, M[] = {64, 3};
    for (int averaged = 0; averaged < 2; averaged++) {
        double got[2], want[STEP_VALUES_N], *column[STEP_VALUES_N] = {0};
        struct err e = {0};
        column[STEP_decode_step_s] = got;
        step_eval(s, 2, B, T, S, averaged ? M : NULL, column);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(step_eval_layout(s, NULL, B[i], T[i], S[i], averaged ? M[i] : 1, want, &e), ERR_OK);
            assert_true(!(got[i] < want[STEP_decode_step_s]) && !(got[i] > want[STEP_decode_step_s]));
        }
    }
    /* an odd batch: the larger of two microbatches counts, for memory all sequences */
    double odd[STEP_VALUES_N], even[STEP_VALUES_N];
    eval(s, NULL, 37, 1009, 1009, odd);
    eval(s, NULL, 38, 1009, 1009, even);
    assert_true(odd[STEP_decode_step_s] == even[STEP_decode_step_s]);
    assert_true(odd[STEP_kv_bytes] == even[STEP_kv_bytes] / 38 * 37);
    const struct step_op send = find_op(a, s, STEP_DECODE, 37, 1009, "stage_send", 0);
    assert_true(send.wire_bytes == 19 * 4096.0 * 2);
    arena_close(a);
}

/* A step that takes layouts as they come forgets the one before, whatever is other in it. */
static void test_layouts_that_follow_each_other(void **state)
{
    (void)state;
    static const struct layout FIRST = {
        .tp = 2, .dp = 4, .ep = 8, .pp = 2, .replicas = 1, .per_node = 8, .microbatches = 2, .skew = 1};
    struct layout next[8];
    for (size_t i = 0; i < 8; i++) next[i] = FIRST;
    next[0].tp = 4;
    next[1].dp = 8;
    next[2].ep = 4;
    next[3].pp = 4;
    next[4].per_node = 4;
    next[5].microbatches = 4;
    next[6].dispatch = LAYOUT_ONCE;
    next[7].skew = 1.5;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    const struct step_setup any = {.any_layout = true, .fidelity = STEP_ROOFLINE, .latency = {1e-6, 9e-6}};
    struct step *both = compile(a, &m, &hw, any), *alone = compile(a, &m, &hw, any);
    double base[STEP_VALUES_N], after[STEP_VALUES_N], fresh[STEP_VALUES_N];
    for (size_t i = 0; i < 8; i++) {
        eval(both, &FIRST, 96, 1021, 1021, base);
        eval(both, &next[i], 96, 1021, 1021, after);
        eval(alone, &(struct layout){.tp = 1}, 1, 7, 7, fresh); /* nothing alike before it */
        eval(alone, &next[i], 96, 1021, 1021, fresh);
        bool other = false;
        for (size_t v = 0; v < STEP_VALUES_N; v++) {
            if (after[v] < fresh[v] || after[v] > fresh[v]) fail_msg("layout %zu, value %zu", i, v);
            other = other || after[v] < base[v] || after[v] > base[v];
        }
        assert_true(other);
        eval(both, &FIRST, 96, 1021, 1021, after); /* and back */
        for (size_t v = 0; v < STEP_VALUES_N; v++) assert_true(!(after[v] < base[v]) && !(after[v] > base[v]));
    }
    arena_close(a);
}

/* DeepEP: 128 tokens of a rank, 8 copies of 7,168 elements of 1 + 4/128 bytes out and of 2 back: 7.57 and 14.7 MB. Of
 * G ranks one is the sender itself. */
static void test_all_to_all(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h800-sxm");
    static const int64_t RANKS[] = {16, 32, 64, 128, 256};
    for (size_t i = 0; i < COUNT(RANKS); i++) {
        const struct layout l = {.dp = RANKS[i], .ep = RANKS[i], .per_node = 8};
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        const double g = (double)RANKS[i], B = 128 * g;
        const struct step_op out = find_op(a, s, STEP_DECODE, B, 1000, "dispatch", 0),
                             back = find_op(a, s, STEP_DECODE, B, 1000, "return", 0);
        near_to((out.wire_bytes + out.fabric_bytes) / 58 * g / (g - 1), 7569408, 1e-12);
        near_to((back.wire_bytes + back.fabric_bytes) / 58 * g / (g - 1), 14680064, 1e-12);
        near_to(out.fabric_bytes / 58, 7569408 * (g - 8) / g, 1e-12);
        near_to(out.time_s / 58, fmax(out.fabric_bytes / 50e9, out.wire_bytes / 200e9) / 58, 1e-9);
    }
    arena_close(a);
}

/* Nodes and parts that k of E experts lie in, every choice walked. */
static double touched_by_walking(int experts, int k, int parts)
{
    double hit = 0, all = 0;
    for (uint32_t set = 0; set < 1U << experts; set++) {
        if (__builtin_popcount(set) != k) continue;
        all++;
        hit += (set & ((1U << (experts / parts)) - 1)) != 0;
    }
    return hit / all;
}

static void test_tokens_sent_once(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const int CASES[][3] = {{12, 3, 4}, {14, 2, 7}, {15, 5, 3}, {12, 7, 2}, {10, 9, 5}, {9, 1, 3}};
    for (size_t i = 0; i < COUNT(CASES); i++)
        near_to(layout_touched(CASES[i][0], CASES[i][1], CASES[i][2]),
                touched_by_walking(CASES[i][0], CASES[i][1], CASES[i][2]), 1e-12);
    const struct model m = load(a, "deepseek-v3");
    struct layout l = {.dp = 32, .ep = 32, .per_node = 8, .dispatch = LAYOUT_ONCE};
    double n[LAYOUT_NUMBERS];
    layout_numbers(&l, &m, false, n);
    near_to(n[LAYOUT_near], 28 * layout_touched(256, 8, 32), 1e-12);
    near_to(n[LAYOUT_far], 3 * layout_touched(256, 8, 4), 1e-12);
    l.dispatch = LAYOUT_COPIES;
    layout_numbers(&l, &m, false, n);
    near_to(n[LAYOUT_near], 8 * 7.0 / 32, 1e-12);
    near_to(n[LAYOUT_far], 8 * 24.0 / 32, 1e-12);
    l.ep = 1; /* every rank has columns of every expert: each gets the token once */
    layout_numbers(&l, &m, false, n);
    assert_true(n[LAYOUT_near] == 28 && n[LAYOUT_far] == 3);
    l.skew = 3; /* nor more often where it is busiest */
    layout_numbers(&l, &m, false, n);
    assert_true(n[LAYOUT_near] == 28 && n[LAYOUT_far] == 3);
    l.dp = 1;
    l.tp = 32; /* all ranks have all tokens */
    layout_numbers(&l, &m, false, n);
    assert_true(n[LAYOUT_near] == 0 && n[LAYOUT_far] == 0);
    arena_close(a);
}

/* Sequence parallelism: the same bytes in two halves around a ring, a t-th of the norms, and no sum in the switch. */
static void test_sequence_parallel_norms(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "llama-3.1-70b");
    const struct hw hw = device(a, "h100-sxm");
    const struct step_setup plain = {.layout = {.tp = 8}, .fidelity = STEP_ROOFLINE};
    const struct step_setup split = {.layout = {.tp = 8, .sp = true}, .fidelity = STEP_ROOFLINE};
    struct step *x = compile(a, &m, &hw, plain), *y = compile(a, &m, &hw, split);
    const double sum = 64 * 8192.0 * 2;
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_reduce_scatter", 0).wire_bytes == 80 * 7.0 / 8 * sum);
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_all_gather", 0).wire_bytes == 80 * 7.0 / 8 * sum);
    /* a rank reads the sum of all rows and writes its own eighth, or the other way round */
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_reduce_scatter", 0).activation_bytes ==
                80 * (64 + 8) * 8192.0 * 2);
    assert_true(find_op(a, y, STEP_DECODE, 64, 1000, "mixer_all_gather", 0).activation_bytes ==
                80 * (64 + 8) * 8192.0 * 2);
    assert_true(find_op(a, x, STEP_DECODE, 64, 1000, "mixer_norm", 0).vector_flops ==
                8 * find_op(a, y, STEP_DECODE, 64, 1000, "mixer_norm", 0).vector_flops);
    assert_true(find_op(a, y, STEP_DECODE, 3, 1000, "mlp_residual", 0).vector_flops == 80 * 8192.0); /* one row */
    arena_close(a);
}

/* ---- time ---- */

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

/* ---- numbers of a layout ---- */

/* What is left unsaid of a layout, and which are tensor parallelism in one node and copies alone. */
static void test_what_is_left_unsaid(void **state)
{
    (void)state;
    const struct layout w = layout_whole(&(struct layout){.tp = 2, .dp = 3, .pp = 5, .replicas = 7});
    assert_int_equal(w.per_node, 210);
    assert_int_equal(w.microbatches, 5);
    assert_int_equal(layout_nodes(&w, 210), 1);
    static const struct {
        struct layout l;
        bool plain;
    } CASES[] = {{{.tp = 4}, true},
                 {{.tp = 4, .replicas = 3, .per_node = 4}, true},
                 {{.tp = 4, .per_node = 2}, false},
                 {{.tp = 4, .sp = true}, false},
                 {{.tp = 4, .pp = 2}, false},
                 {{.tp = 4, .ep = 2}, false},
                 {{.dp = 2}, false},
                 {{.dp = 2, .ep = 2}, false}};
    for (size_t i = 0; i < COUNT(CASES); i++) assert_int_equal(layout_plain(&CASES[i].l), CASES[i].plain);
}

/* The numbers of a layout of DeepSeek-V3 (8 of 256 experts), each by hand. */
static void test_numbers_by_hand(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3"), dense = load(a, "llama-3.1-8b");
    const double of_4 = layout_touched(256, 8, 4), of_8 = layout_touched(256, 8, 8);
    const struct {
        struct layout l;
        double near, far, skew_most;
    } CASES[] = {
        {{.tp = 1}, 0, 0, 1},
        {{.tp = 4, .ep = 4}, 0, 0, 4}, /* all ranks have all tokens */
        /* room in the node for twice as many: 8 copies, a quarter of them to the sender itself */
        {{.dp = 4, .ep = 4, .per_node = 8}, 3, 0, 4},
        {{.dp = 16, .ep = 16, .per_node = 32}, 8 * 15.0 / 16, 0, 16},
        /* as many copies as ranks: each gets the token, over the fabric once for the node */
        {{.dp = 8, .ep = 8, .per_node = 4}, 6, 1, 8},
        {{.dp = 8, .ep = 8, .skew = 2, .per_node = 4}, 6, 1, 8},
        /* two ranks have columns of an expert: twice the copies */
        {{.dp = 32, .ep = 16, .per_node = 8}, 8 * 2 * 7.0 / 32, 8 * 2 * 24.0 / 32, 16},
        {{.dp = 32, .ep = 32, .skew = 1.25, .per_node = 8}, 1.25 * 8 * 7 / 32, 1.25 * 8 * 24 / 32, 32},
        {{.dp = 64, .ep = 64, .per_node = 8}, 8 * 7.0 / 64, 8 * 56.0 / 64, 32}, /* 256/8: no token twice to an expert */
        /* once to a rank and a node that has any of its experts, at most always */
        {{.dp = 8, .ep = 8, .dispatch = LAYOUT_ONCE, .per_node = 2}, 4 * of_8, 3 * of_4, 8},
        {{.dp = 4, .ep = 4, .skew = 1.5, .dispatch = LAYOUT_ONCE, .per_node = 2}, 2, 1, 4},
        {{.dp = 8, .ep = 8, .skew = 1.25, .dispatch = LAYOUT_ONCE, .per_node = 2}, 4 * 1.25 * of_8, 3, 8},
        {{.dp = 6, .ep = 3, .dispatch = LAYOUT_ONCE, .per_node = 3}, 4 * layout_touched(256, 8, 3), 1, 3},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        double n[LAYOUT_NUMBERS];
        const struct layout *l = &CASES[i].l;
        layout_numbers(l, &m, false, n);
        if (fabs(n[LAYOUT_near] - CASES[i].near) > 1e-12 || fabs(n[LAYOUT_far] - CASES[i].far) > 1e-12)
            fail_msg("case %zu: %.17g and %.17g", i, n[LAYOUT_near], n[LAYOUT_far]);
        near_to(layout_skew_most(&m, l), CASES[i].skew_most, 1e-15);
        assert_true(layout_skew_most(&dense, l) == 1);
        assert_true(n[LAYOUT_narrow] == 1 && n[LAYOUT_reduced] == 0 && n[LAYOUT_gathered] == 0);
        layout_numbers(l, &dense, false, n);
        assert_true(n[LAYOUT_near] == 0 && n[LAYOUT_far] == 0);
        assert_true(n[LAYOUT_rise0] == 1); /* of no experts, as of one part */
        for (int k = LAYOUT_rise0 + 1; k < LAYOUT_rise0 + LAYOUT_KNOTS - 1; k++) assert_true(n[k] == 0);
    }
    double n[LAYOUT_NUMBERS];
    layout_numbers(&(struct layout){.tp = 24, .sp = true, .per_node = 8}, &m, false, n);
    near_to(n[LAYOUT_reduced], 2 * 2.0 / 3 / 8, 1e-15);
    assert_true(n[LAYOUT_narrow] == 24 && n[LAYOUT_gathered] == 2);
    assert_true(layout_touched(256, 8, 1) == 1 && layout_touched(0, 0, 4) == 1);
    near_to(layout_touched(256, 8, 2),
            1 - 128.0 / 256 * 127 / 255 * 126 / 254 * 125 / 253 * 124 / 252 * 123 / 251 * 122 / 250 * 121 / 249, 1e-14);
    assert_true(layout_busiest(1000, 2, 9) > 5); /* still counted, not the mean */
    arena_close(a);
}

/* Knots by a constant factor from k to E; at each of them the straight pieces meet what they stand for. */
static void test_knots(void **state)
{
    (void)state;
    static const int64_t CASES[][3] = {{256, 8, 16}, {128, 8, 4}, {8, 2, 2}, {60, 4, 5}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const double n = (double)CASES[i][0], k = (double)CASES[i][1];
        double knot[LAYOUT_KNOTS];
        layout_knots(CASES[i][0], CASES[i][1], knot);
        assert_true(knot[0] == 0 && knot[1] == k && knot[LAYOUT_KNOTS - 1] == n);
        for (int j = 1; j < LAYOUT_KNOTS; j++) near_to(knot[j], k * pow(n / k, (j - 1) / 10.0), 0.5 / k + 1e-12);
    }
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    double knot[LAYOUT_KNOTS], out[LAYOUT_NUMBERS];
    layout_knots(256, 8, knot);
    layout_numbers(&(struct layout){.dp = 16, .ep = 16}, &m, false, out);
    for (int at = 1; at < LAYOUT_KNOTS; at++) {
        double sum = 0;
        for (int i = 0; i < LAYOUT_KNOTS - 1; i++) sum += out[LAYOUT_rise0 + i] * fmax(0, knot[at] - knot[i]);
        near_to(sum, layout_busiest(256, 16, (int64_t)knot[at]), 1e-12);
    }
    arena_close(a);
}

/* ---- what is legal ---- */

/* Heads of a rank: a part of them, or one that several ranks have. */
static void test_heads_of_a_rank(void **state)
{
    (void)state;
    static const int64_t CASES[][3] = {{8, 2, 4}, {8, 8, 1}, {2, 8, 1}, {1, 3, 1}, {12, 3, 4}}; /* heads, ranks, own */
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        int64_t n = -1;
        const struct mixer x = {.kv_heads = CASES[i][0]};
        assert_int_equal(layout_kv_heads(&x, CASES[i][1], &n, &e), ERR_OK);
        assert_int_equal(n, CASES[i][2]);
    }
    int64_t n;
    assert_int_equal(layout_kv_heads(&(struct mixer){.kv_heads = 2}, 3, &n, NULL), ERR_USAGE);
    assert_int_equal(layout_kv_heads(&(struct mixer){.kv_heads = 8}, 3, &n, NULL), ERR_USAGE);
}

/* Models that are not published: what refuses them is named. */
static void test_reasons_by_hand(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model narrow = load(a, "qwen3-30b-a3b"), dense = load(a, "llama-3.1-8b"), wide = load(a, "llama-3.1-8b"),
                 streams = load(a, "llama-3.1-8b");
    assert_int_equal(narrow.kinds_n, 1);
    struct layer_kind kind = narrow.kinds[0];
    kind.ffn.width = 1000;
    narrow.kinds = &kind;
    struct model even = load(a, "qwen3-30b-a3b"), many = even; /* 128 experts, 8 or 100 of them a token */
    struct layer_kind most = even.kinds[0];
    most.ffn.experts_per_token = 100;
    many.kinds = &most;
    wide.per_layer_dim = 64;
    streams.streams = 4;
    const struct {
        const struct model *m;
        struct layout l;
        const char *why;
    } CASES[] = {{&narrow, {.tp = 16}, "1000 columns of an expert cannot be split over 16 tensor-parallel ranks"},
                 {&narrow, {.dp = 16}, "1000 columns of an expert cannot be split over 16 ranks"},
                 {&narrow, {.dp = 2, .tp = 8}, "1000 columns of an expert cannot be split over 16 ranks"},
                 {&narrow, {.tp = 32, .ep = 2}, "1000 columns of an expert cannot be split over 16 ranks"},
                 {&narrow, {.tp = 32, .dp = 3, .ep = 6}, "128 experts cannot be split over 6"},
                 {&dense, {.pp = 32}, NULL},
                 {&dense, {.pp = 33}, "32 layers cannot fill 33 stages"},
                 {&dense, {.tp = 2, .skew = 1.5}, "has no experts, so none are skewed"},
                 {&narrow, {.tp = 1, .skew = 1.5}, "one part has all tokens"},
                 {&even, {.dp = 4, .ep = 4, .skew = 0.5}, "skew is between 1 (all parts alike) and 4"},
                 {&even, {.dp = 4, .ep = 4, .skew = 4}, NULL},
                 {&even, {.dp = 4, .ep = 4, .skew = 4.01}, "skew is between 1"},
                 {&many, {.dp = 4, .ep = 4, .skew = 1.5}, "skew is between 1 (all parts alike) and 1.28"},
                 {&many, {.dp = 4, .ep = 4, .skew = 1.25}, NULL},
                 {&wide, {.pp = 2}, "stages hand on one stream"},
                 {&streams, {.pp = 2}, "stages hand on one stream"}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        const enum err_code code = layout_check(CASES[i].m, &CASES[i].l, &e);
        if (code != (CASES[i].why ? ERR_USAGE : ERR_OK)) fail_msg("%zu: %s", i, e.text);
        if (CASES[i].why && !strstr(e.text, CASES[i].why)) fail_msg("%zu: %s", i, e.text);
    }
    /* a cache is asked for as a step is: in a layout that there is */
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    struct cost_cache cache;
    assert_int_equal(cost_cache(c, &y, &dense, 3, &cache, &e), ERR_USAGE);
    arena_close(a);
}

static void test_illegal_layouts_are_named(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        struct layout layout;
        const char *why; /* NULL: legal */
    } CASES[] = {
        {"deepseek-v3", {.tp = 12}, "128 heads cannot be split over 12 tensor-parallel ranks"},
        {"deepseek-v3", {.tp = 4, .ep = 3}, "3 expert-parallel parts cannot be dealt to 4 ranks"},
        {"deepseek-v3", {.dp = 12, .ep = 12}, "256 experts cannot be split over 12 expert-parallel parts"},
        {"deepseek-v3", {.tp = 4, .dp = 8, .ep = 16}, NULL},
        {"deepseek-v3", {.pp = 62}, "61 layers cannot fill 62 stages"},
        {"deepseek-v3", {.dp = 4, .ep = 4, .skew = 5}, "skew is between 1 (all parts alike) and 4"},
        {"llama-3.1-70b", {.ep = 2, .tp = 2}, "no experts"},
        {"llama-3.1-70b", {.dp = 2}, "no experts"},
        {"llama-3.1-70b", {.tp = 24}, "64 heads cannot be split over 24"},
        {"llama-3.1-70b", {.tp = 16, .per_node = 12, .pp = 3}, "a TP group of 16 ranks does not fill nodes of 12"},
        {"llama-3.1-70b", {.tp = 2, .pp = 3}, NULL},
        {"qwen2-0.5b", {.tp = 4}, "14 heads cannot be split over 4"},
        {"gpt-oss-120b", {.tp = 5, .ep = 5}, "64 heads"},
        {"mixtral-8x7b", {.dp = 3}, "14336 columns of an expert cannot be split over 3"},
        {"gemma-3n-e4b", {.pp = 2}, "stages cannot part layers that share a cache"},
        {"zamba2-7b", {.pp = 3}, "stages cannot part layers that share weights"},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        const struct model m = load(a, CASES[i].model);
        const enum err_code code = layout_check(&m, &CASES[i].layout, &e);
        if (code != (CASES[i].why ? ERR_USAGE : ERR_OK)) fail_msg("%s %zu: %s", CASES[i].model, i, e.text);
        if (CASES[i].why && !strstr(e.text, CASES[i].why)) fail_msg("%s: %s", CASES[i].model, e.text);
    }
    arena_close(a);
}

/* Every ordered factorisation of the GPUs, and every divisor of a stage: walked over all numbers. */
static void test_all_layouts_are_listed(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const struct {
        const char *model;
        int64_t gpus;
    } CASES[] = {{"deepseek-v3", 16}, {"llama-3.1-70b", 24}, {"qwen3-30b-a3b", 12}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        const struct hw hw = device(a, "h200-sxm");
        const int64_t n = CASES[i].gpus;
        const bool experts = i != 1;
        struct err e = {0};
        size_t want = 0, found;
        for (int64_t r = 1; r <= n; r++)
            for (int64_t pp = 1; pp <= n; pp++)
                for (int64_t dp = 1; dp <= (experts ? n : 1); dp++)
                    for (int64_t tp = 1; tp <= n; tp++)
                        for (int64_t ep = 1; ep <= (experts ? n : 1); ep++)
                            want += r * pp * dp * tp == n && tp * dp % ep == 0;
        struct layouts_request q = {.model = &m,
                                    .hw = &hw,
                                    .gpus = n,
                                    .per_node = n % 8 == 0 ? 8 : n,
                                    .batch = 31,
                                    .prompt = 500,
                                    .context = 500,
                                    .average = 1,
                                    .capacity_bytes = hw_capacity_bytes(&hw)};
        q.step = compile(a, &m, &hw, (struct step_setup){.any_layout = true, .fidelity = STEP_ROOFLINE});
        struct layouts_item *items;
        if (n == 12) q.per_node = 4;
        if (layouts_list(a, &q, &items, &found, &e) != ERR_OK) fail_msg("%s", e.text);
        assert_true(found == want);
        for (size_t k = 0; k < found; k++) {
            assert_int_equal(layout_gpus(&items[k].layout), n);
            assert_int_equal(items[k].verdict == LAYOUTS_ILLEGAL, layout_check(&m, &items[k].layout, NULL) != ERR_OK);
            assert_true(items[k].verdict == LAYOUTS_ILLEGAL ||
                        (items[k].left_bytes >= 0) == (items[k].verdict == LAYOUTS_FITS));
            assert_true(k == 0 || items[k - 1].verdict <= items[k].verdict);
        }
    }
    arena_close(a);
}

/* Windows: w*S - w*(w-1)/2 pairs, not the mean context cut to the window. */
static void test_pairs_in_windows(void **state)
{
    (void)state;
    static const int CASES[][2] = {{8192, 4096}, {1009, 128}, {97, 96}, {50, 50}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const double S = CASES[i][0], w = CASES[i][1];
        double pairs = 0;
        for (int s = 1; s <= CASES[i][0]; s++) pairs += s < CASES[i][1] ? s : CASES[i][1];
        assert_true(kernel_pairs(S, 0, w) == pairs && pairs == w * S - w * (w - 1) / 2);
    }
    assert_true(kernel_pairs(8192, 0, 4096) != 8192.0 * 4096);
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
        cmocka_unit_test(test_ranks_share_the_work),
        cmocka_unit_test(test_an_uneven_batch),
        cmocka_unit_test(test_the_busiest_part),
        cmocka_unit_test(test_experts_of_two_kinds),
        cmocka_unit_test(test_experts_that_the_busiest_part_reads),
        cmocka_unit_test(test_one_gpu_a_node),
        cmocka_unit_test(test_microbatches_are_of_stages),
        cmocka_unit_test(test_operators_of_experts),
        cmocka_unit_test(test_hand_over),
        cmocka_unit_test(test_skew),
        cmocka_unit_test(test_intensity_of_latent_attention),
        cmocka_unit_test(test_sums_over_ranks),
        cmocka_unit_test(test_one_rank_sends_nothing),
        cmocka_unit_test(test_sums_over_nodes),
        cmocka_unit_test(test_latency_of_links),
        cmocka_unit_test(test_messages_in_a_row),
        cmocka_unit_test(test_seconds_of_what_is_sent),
        cmocka_unit_test(test_columns_through_stages),
        cmocka_unit_test(test_layouts_that_follow_each_other),
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_tokens_sent_once),
        cmocka_unit_test(test_sequence_parallel_norms),
        cmocka_unit_test(test_time_of_stages),
        cmocka_unit_test(test_prompts_in_stages),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_what_is_left_unsaid),
        cmocka_unit_test(test_numbers_by_hand),
        cmocka_unit_test(test_knots),
        cmocka_unit_test(test_heads_of_a_rank),
        cmocka_unit_test(test_reasons_by_hand),
        cmocka_unit_test(test_illegal_layouts_are_named),
        cmocka_unit_test(test_all_layouts_are_listed),
        cmocka_unit_test(test_pairs_in_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
