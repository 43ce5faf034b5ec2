/* Ranks that share a context: tokens dealt one by one, heads and bytes counted by hand. */
#include "calc/model/draft.h"
#include "calc/serve/pool.h"
#include "calc/time/mix.h"
#include "tests/layouts.h"

/* Tokens of 0 .. n-1 on each of d ranks, dealt in turn; the most. */
static double most_dealt(int n, int d)
{
    int held[64] = {0}, most = 0;
    for (int i = 0; i < n; i++) held[i % d]++;
    for (int r = 0; r < d; r++) most = held[r] > most ? held[r] : most;
    return most;
}

/* One operator of a pass of B sequences, T new tokens of S, as numbers. */
struct counted {
    double flops, kv, needed, held, activation, wire, fabric, vector;
    bool there, context;
};

static double number(const struct sym *x)
{
    double v = (double)NAN;
    if (!sym_constant(x, &v)) fail_msg("no number");
    return v;
}

struct asked {
    const char *model;
    struct layout layout;
    bool absorbed;
    int B, T, S, M; /* M 0: one pass */
};

static struct counted count_op(struct arena *a, const struct asked *q, const char *name)
{
    struct err e = {0};
    struct cost_ops ops;
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct model m = load(a, q->model);
    const struct cost_conventions v = cost_conventions_of(false);
    const struct cost_layout l = {.layout = q->layout};
    const struct cost_pass pass = {.name = "pass",
                                   .B = sym_int(c, q->B),
                                   .T = sym_int(c, q->T),
                                   .S = sym_int(c, q->S),
                                   .M = q->M ? sym_int(c, q->M) : NULL,
                                   .absorbed = q->absorbed};
    struct counted r = {.there = false};
    assert_int_equal(cost_build_layout(a, c, &y, &m, &v, &pass, &l, &ops, &e), ERR_OK);
    if (cost_bind_layout(c, &y, &m, &l, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    for (size_t i = 0; i < ops.n && !r.there; i++) {
        const struct cost_op *op = &ops.op[i];
        if (strcmp(op->name, name) != 0) continue;
        r = (struct counted){number(op->flops),
                             number(op->kv_bytes),
                             number(op->kv_needed_bytes),
                             number(op->held_bytes),
                             number(op->activation_bytes),
                             number(op->wire_bytes),
                             number(op->fabric_bytes),
                             number(op->vector_flops),
                             true,
                             op->context};
    }
    return r;
}

static void test_latents_of_a_decode_step(void **state)
{
    (void)state;
    static const int RANKS[] = {2, 4, 8}, CONTEXTS[] = {1, 7, 8, 9, 1013, 4099};
    for (size_t i = 0; i < COUNT(RANKS); i++)
        for (size_t k = 0; k < COUNT(CONTEXTS); k++) {
            struct arena *a = arena_open();
            const int d = RANKS[i], S = CONTEXTS[k], B = 3;
            const struct asked q = {"deepseek-v3", {.tp = 8, .dcp = d}, true, B, 1, S, 0};
            const double here = most_dealt(S, d), heads = 128.0 / 8 * d, others = d - 1;
            const struct counted at = count_op(a, &q, "attention"), all = count_op(a, &q, "query_all_gather");
            const struct counted lse = count_op(a, &q, "lse_all_gather");
            const struct counted out = count_op(a, &q, "context_reduce_scatter");
            near_to(at.flops, 2 * B * heads * (576 + 512) * here, 1e-15);
            near_to(at.kv, B * here * 576 * 2, 1e-15);
            near_to(at.activation, B * heads * (576 + 512) * 2, 1e-15);
            near_to(at.vector, 5 * B * heads * here, 1e-15); /* a softmax */
            near_to(all.activation, B * 16.0 * 576 * 2 * (d + 1), 1e-15);
            near_to(lse.activation, B * heads * 4 * (d + 1), 1e-15);
            near_to(out.activation, B * 16.0 * 512 * 2 * (d + 1), 1e-15);
            const struct counted scale =
                count_op(a, &q, "context_scale"); /* factors of d log-sum-exps a head, written */
            near_to(scale.activation, B * heads * (2 * 512 * 2 + (d + 1) * 4), 1e-15);
            near_to(scale.vector, B * heads * (512 + 4 * d), 1e-15);
            near_to(count_op(a, &q, "kv_write").held, B * here * 576 * 2, 1e-15);
            near_to(all.wire, B * 16.0 * 576 * 2 * others, 1e-15);
            near_to(lse.wire, B * heads * 4 * others, 1e-15);
            near_to(out.wire, B * 16.0 * 512 * 2 * others, 1e-15);
            assert_true(all.context && lse.context && out.context && !(all.fabric > 0));
            assert_false(count_op(a, &q, "context_merge").there); /* new tokens are among the cached ones */
            arena_close(a);
        }
}

/* Old tokens with the heads of both ranks, new ones with the rank's own. */
static void test_grouped_heads(void **state)
{
    (void)state;
    static const struct {
        int T, S;
    } AT[] = {{1, 1}, {1, 2}, {1, 1013}, {5, 1013}, {127, 127}, {127, 640}};
    for (size_t i = 0; i < COUNT(AT); i++) {
        struct arena *a = arena_open();
        const int B = 3, T = AT[i].T, S = AT[i].S;
        const struct asked q = {"qwen3-235b-a22b", {.tp = 8, .dcp = 2}, true, B, T, S, 0};
        const double N = 64.0 / 8, H = 128, old = most_dealt(S - T, 2);
        double pairs = 0;
        for (int t = 0; t < T; t++)
            pairs += 2 * old + t + 1; /* of a head of the rank: old tokens twice, as two heads */
        const struct counted at = count_op(a, &q, "attention");
        near_to(at.flops, 2 * B * N * 2 * H * pairs, 1e-15);
        near_to(at.vector, 5 * B * N * pairs, 1e-15);
        const struct counted merge = count_op(a, &q, "context_merge"); /* two outputs and log-sum-exps into one */
        near_to(merge.activation, B * T * N * (3 * H * 2 + 2 * 4), 1e-15);
        near_to(merge.vector, B * T * N * (3 * H + 2 * 4), 1e-15);
        near_to(at.kv, B * old * 2 * H * 2, 1e-15);
        near_to(at.needed, B * most_dealt(S, 2) * 2 * H * 2, 1e-15);
        near_to(at.activation, B * T * ((2 + 1) * N * 2 * H + 2 * H) * 2, 1e-15);
        near_to(count_op(a, &q, "query_all_gather").wire, B * T * N * H * 2, 1e-15);
        near_to(count_op(a, &q, "lse_all_gather").wire, B * T * 2 * N * 4, 1e-15);
        near_to(count_op(a, &q, "context_reduce_scatter").wire, B * T * N * H * 2, 1e-15);
        near_to(count_op(a, &q, "kv_write").kv, ceil(B * T / 2.0) * 2 * H * 2, 1e-15);
        assert_true(merge.there);
        arena_close(a);
    }
}

static void test_means_over_steps(void **state)
{
    (void)state;
    static const struct asked CASES[] = {{"deepseek-v3", {.tp = 8, .dcp = 8}, true, 2, 1, 1013, 611},
                                         {"deepseek-v3", {.tp = 8, .dcp = 4}, true, 2, 1, 17, 17},
                                         {"qwen3-235b-a22b", {.tp = 16, .dcp = 4}, true, 2, 1, 1013, 611},
                                         {"qwen3-235b-a22b", {.tp = 8, .dcp = 2}, true, 2, 1, 17, 17}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        double flops = 0, kv = 0, needed = 0;
        for (int s = CASES[i].S - CASES[i].M + 1; s <= CASES[i].S; s++) {
            struct asked one = CASES[i];
            one.S = s;
            one.M = 0;
            const struct counted at = count_op(a, &one, "attention");
            flops += at.flops / CASES[i].M;
            kv += at.kv / CASES[i].M;
            needed += at.needed / CASES[i].M;
        }
        const struct counted mean = count_op(a, &CASES[i], "attention");
        near_to(mean.flops, flops, 1e-12);
        near_to(mean.kv, kv, 1e-12);
        near_to(mean.needed, needed, 1e-12);
        arena_close(a);
    }
}

/* Prompts of latent attention: each rank expands all latents, those of old tokens come from the others. */
static void test_latents_of_a_prompt(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct asked piece = {"deepseek-v3", {.tp = 8, .dcp = 8}, false, 3, 127, 1013, 0};
    struct asked whole = piece, alone = piece;
    whole.S = 127;
    alone.layout.dcp = 1;
    const double old = most_dealt(1013 - 127, 8), bytes = 3 * old * 576 * 2;
    const struct counted all = count_op(a, &piece, "latent_all_gather");
    near_to(all.wire, 7 * bytes, 1e-15);
    near_to(count_op(a, &piece, "kv_b_proj").kv, bytes, 1e-15); /* read before it is sent */
    near_to(count_op(a, &piece, "kv_b_proj").needed, 3 * most_dealt(1013, 8) * 576 * 2, 1e-15);
    near_to(all.activation, 9 * bytes, 1e-15);
    near_to(count_op(a, &piece, "attention").flops, count_op(a, &alone, "attention").flops, 1e-15);
    near_to(count_op(a, &piece, "kv_b_proj").flops, count_op(a, &alone, "kv_b_proj").flops, 1e-15);
    assert_false(count_op(a, &piece, "query_all_gather").there);
    assert_false(count_op(a, &whole, "latent_all_gather").there); /* nothing is cached yet */
    arena_close(a);
}

/* A token that is judged sees those before it, so the part of a rank grows within the pass. */
static void test_judged_tokens(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct asked q = {"deepseek-v3", {.tp = 8, .dcp = 4}, true, 3, 5, 1013, 0};
    double pairs = 0;
    for (int s = 1009; s <= 1013; s++) pairs += most_dealt(s, 4);
    near_to(count_op(a, &q, "attention").flops, 2 * 3 * (16.0 * 4) * (576 + 512) * pairs, 1e-15);
    arena_close(a);
}

/* The cache of a latent is not a TP-th on each rank: only ranks that share it have a part. All parts are one cache. */
static void test_cache_of_a_rank(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct hw hw = device(a, "h200-sxm");
    static const struct {
        const char *model;
        int tp, dcp;
        double token; /* bytes on a rank that has all tokens */
    } CASES[] = {{"deepseek-v3", 1, 1, 70272},     {"deepseek-v3", 8, 1, 70272}, /* not 70272/8 */
                 {"deepseek-v3", 8, 2, 70272},     {"deepseek-v3", 8, 8, 70272},
                 {"deepseek-v3", 16, 16, 70272},   {"qwen3-235b-a22b", 8, 1, 94 * 2 * 128 * 2.0},
                 {"qwen3-235b-a22b", 8, 2, 48128}, {"llama-3.1-70b", 16, 2, 80 * 2 * 128 * 2.0}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        const struct model m = load(a, CASES[i].model);
        double v[STEP_VALUES_N];
        const struct layout l = {.tp = CASES[i].tp, .dcp = CASES[i].dcp, .per_node = 8};
        struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
        eval(s, NULL, 3, 1013, 1013, v);
        const double d = CASES[i].dcp, block = 16 * d;
        near_to(v[STEP_kv_bytes], 3 * most_dealt(1013, CASES[i].dcp) * CASES[i].token, 1e-15);
        near_to(v[STEP_kv_allocated_bytes], 3 * ceil(1013 / block) * 16 * CASES[i].token, 1e-15);
        near_to(step_kv_bytes_per_token(s), CASES[i].token / d, 1e-15);
    }
    arena_close(a);
}

/* Windows and states are whole on every rank, whoever shares the rest. */
static void test_what_is_not_shared(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct hw hw = device(a, "h200-sxm");
    const struct model m = load(a, "gemma-2-27b");
    double one[STEP_VALUES_N], two[STEP_VALUES_N];
    const struct layout l = {.tp = 32, .dcp = 2, .per_node = 8}, whole = {.tp = 32, .per_node = 8};
    struct step *s = compile(a, &m, &hw, (struct step_setup){.layout = l, .fidelity = STEP_ROOFLINE});
    struct step *w = compile(a, &m, &hw, (struct step_setup){.layout = whole, .fidelity = STEP_ROOFLINE});
    eval(s, NULL, 3, 9001, 9001, two);
    eval(w, NULL, 3, 9001, 9001, one);
    const double token = 2 * 128 * 2; /* of a layer: 23 see all, 23 a window of 4096 */
    near_to(one[STEP_kv_bytes], 3 * 23 * token * (9001 + 4096), 1e-15);
    near_to(two[STEP_kv_bytes], 3 * 23 * token * (4501 + 4096), 1e-15);
    arena_close(a);
}

static void test_reasons(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int tp, dcp;
        const char *why;
    } CASES[] = {{"deepseek-v3", 8, 8, NULL},
                 {"deepseek-v3", 8, 3, "3 ranks cannot share a context in a tensor-parallel group of 8"},
                 {"deepseek-v3", 4, 8, "8 ranks cannot share a context in a tensor-parallel group of 4"},
                 {"qwen3-235b-a22b", 8, 2, NULL},
                 {"qwen3-235b-a22b", 8, 4, "a KV head is on 2 of 8"},
                 {"qwen3-235b-a22b", 4, 2, "4 KV heads are split over 4"},
                 {"llama-3.1-70b", 8, 2, "8 KV heads are split over 8"},
                 {"llama-2-13b", 8, 2, "40 KV heads are split over 8"},
                 {"deepseek-v3.2", 8, 8, "keys that an indexer chooses"},
                 {"gpt-oss-120b", 16, 2, "attention sinks are not described"}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        const struct model m = load(a, CASES[i].model);
        const struct layout l = {.tp = CASES[i].tp, .dcp = CASES[i].dcp};
        const enum err_code code = layout_check(&m, &l, &e);
        assert_int_equal(code, CASES[i].why ? ERR_USAGE : ERR_OK);
        if (CASES[i].why && !strstr(e.text, CASES[i].why)) fail_msg("%s", e.text);
        arena_close(a);
    }
}

/* A draft has the same rule, where it attends at all. */
static void test_drafts(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model heads, target = load(a, "deepseek-v3");
    const struct layout l = {.tp = 8, .dcp = 4, .per_node = 8};
    assert_int_equal(model_medusa(a, &target, 2, &heads, &e), ERR_OK);
    assert_int_equal(layout_draft(&heads, &l, 8).dcp, 1);
    assert_int_equal(layout_draft(&target, &l, 2).dcp, 4);
    assert_int_equal(layout_draft(&target, &l, 2).tp, 2);
    assert_int_equal(layout_draft(&target, &l, 2).per_node, 8);
    arena_close(a);
}

/* Sums of a mixed step go on evenly by whole periods, from whatever context. */
static void test_growth(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        struct layout layout;
    } CASES[] = {{"deepseek-v3", {.tp = 8, .dcp = 8}}, {"qwen3-235b-a22b", {.tp = 8, .dcp = 2}}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct mix_plan *plan;
        struct mix on, anew;
        double x[MIX_VALUES_N], y[MIX_VALUES_N];
        const struct model m = load(a, CASES[i].model);
        const struct hw hw = device(a, "h200-sxm");
        const struct step_setup setup = {
            .model = &m, .hw = &hw, .layout = CASES[i].layout, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
        assert_int_equal(mix_compile(a, &setup, &plan, &e), ERR_OK);
        assert_int_equal(mix_period(plan), CASES[i].layout.dcp);
        assert_int_equal(mix_open(a, plan, &on, &e), ERR_OK);
        assert_int_equal(mix_open(a, plan, &anew, &e), ERR_OK);
        const double by = 3 * (double)mix_period(plan);
        for (int k = 0; k < 7; k++) {
            mix_decode(&on, 1, 1009 + 5 * k);
            mix_decode(&anew, 1, 1009 + 5 * k + by);
        }
        mix_advance(&on, 7 * by);
        mix_eval(&on, x);
        mix_eval(&anew, y);
        for (size_t v = 0; v < MIX_VALUES_N; v++) near_to(x[v], y[v], 1e-12);
        arena_close(a);
    }
}

static void test_most_that_can_share(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int tp, most;
    } CASES[] = {{"deepseek-v3", 8, 8},      {"deepseek-v3", 1, 1},   {"qwen3-235b-a22b", 8, 2},
                 {"qwen3-235b-a22b", 16, 4}, {"llama-3.1-70b", 8, 1}, {"llama-3.1-70b", 16, 2},
                 {"deepseek-v3.2", 8, 1},    {"gpt-oss-120b", 16, 1}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        const struct model m = load(a, CASES[i].model);
        assert_int_equal(layout_context_most(&m, CASES[i].tp), CASES[i].most);
        arena_close(a);
    }
}

/* Sixteen ranks in two nodes: of 15 parts 7 go to ranks in the node, and one over the fabric for each node. */
static void test_over_nodes(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct asked q = {"deepseek-v3", {.tp = 16, .dcp = 16, .per_node = 8}, true, 3, 1, 1013, 0};
    const double part = 3 * 8.0 * 576 * 2;
    const struct counted all = count_op(a, &q, "query_all_gather");
    near_to(all.wire, 14 * part, 1e-15);
    near_to(all.fabric, part, 1e-15);
    struct err e = {0};
    struct timed_links k;
    const struct hw hw = device(a, "h200-sxm");
    assert_int_equal(timed_links(&hw, &q.layout, &(struct timed_latency){3e-6, 7e-6}, &k, &e), ERR_OK);
    near_to(k.context_s, 3e-6 + 7e-6, 1e-12); /* every pair in a node has a path of its own */
    const struct layout two = {.tp = 8, .dcp = 2};
    assert_int_equal(timed_links(&hw, &two, &(struct timed_latency){3e-6, 7e-6}, &k, &e), ERR_OK);
    near_to(k.context_s, 3e-6, 1e-12);
    near_to(k.context_bytes_per_s, hw_link_rate(&hw, 2), 1e-15);
    const struct hw ring = device(a, "a100-80g");
    const struct layout eight = {.tp = 8, .dcp = 8};
    assert_int_equal(timed_links(&ring, &eight, &(struct timed_latency){3e-6, 7e-6}, &k, &e), ERR_OK);
    near_to(k.context_s, 7 * 3e-6, 1e-12);
    arena_close(a);
}

/* Where each pair has a link of its own, two ranks have one of the seven that eight have. */
static void test_seconds_of_a_gather(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "mi300x");
    const struct layout l = {.tp = 8, .dcp = 2};
    const double part = 3 * 16.0 * 576 * 2, rate = hw_link_rate(&hw, 2);
    assert_true(rate < hw_link_rate(&hw, 8));
    const struct timed_latency latency = {3e-6, 0};
    struct step *s =
        compile(a, &m, &hw, (struct step_setup){.layout = l, .latency = latency, .fidelity = STEP_ROOFLINE});
    const struct step_op op = find_op(a, s, STEP_DECODE, 3, 1013, "query_all_gather", 0);
    near_to(op.time_s, (double)op.count * (part / rate + 3e-6), 1e-12);
    arena_close(a);
}

/* Outputs and log-sum-exps in one message to the ranks of their heads: of 16 in two nodes 7 are near, 8 far. */
static void test_outputs_sent_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        struct layout layout;
        double heads, width, near, far;
    } CASES[] = {{"deepseek-v3", {.tp = 8, .dcp = 8, .context_direct = true}, 16, 512, 7, 0},
                 {"deepseek-v3", {.tp = 8, .dcp = 2, .context_direct = true}, 16, 512, 1, 0},
                 {"deepseek-v3", {.tp = 16, .dcp = 16, .per_node = 8, .context_direct = true}, 8, 512, 7, 8},
                 {"qwen3-235b-a22b", {.tp = 8, .dcp = 2, .context_direct = true}, 8, 128, 1, 0}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        const int B = 3;
        const struct asked q = {CASES[i].model, CASES[i].layout, true, B, 1, 1013, 0};
        const double d = (double)CASES[i].layout.dcp, part = B * CASES[i].heads * (CASES[i].width * 2 + 4);
        const struct counted all = count_op(a, &q, "context_all_to_all"), sum = count_op(a, &q, "context_sum");
        near_to(all.wire, CASES[i].near * part, 1e-15);
        assert_true(all.context);
        if (CASES[i].far > 0)
            near_to(all.fabric, CASES[i].far * part, 1e-15);
        else
            assert_false(all.fabric > 0);
        near_to(all.activation, 2 * d * part, 1e-15);
        near_to(sum.activation, d * part + B * CASES[i].heads * CASES[i].width * 2, 1e-15);
        near_to(sum.vector, B * CASES[i].heads * d * (2 * CASES[i].width + 4), 1e-15);
        assert_false(count_op(a, &q, "lse_all_gather").there || count_op(a, &q, "context_reduce_scatter").there);
        arena_close(a);
    }
}

/* One tape for all layouts, and one compiled for each. */
static void test_free_layouts(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = load(a, "deepseek-v3");
    const struct hw hw = device(a, "h200-sxm");
    const struct timed_latency latency = {3e-6, 7e-6};
    static const struct layout LAYOUTS[] = {{.tp = 8, .dcp = 2, .per_node = 8},
                                            {.tp = 8, .dcp = 8, .per_node = 8},
                                            {.tp = 4, .dp = 2, .ep = 8, .dcp = 4, .per_node = 8},
                                            {.tp = 16, .dcp = 16, .per_node = 8},
                                            {.tp = 16, .dcp = 8, .per_node = 8}, /* sums over nodes, contexts within */
                                            {.tp = 4, .pp = 2, .dcp = 2, .per_node = 8}};
    struct step *any = NULL;
    for (size_t i = 0; i < 2 * COUNT(LAYOUTS); i++) {
        double x[STEP_VALUES_N], y[STEP_VALUES_N];
        struct layout l = LAYOUTS[i % COUNT(LAYOUTS)];
        l.context_direct = i >= COUNT(LAYOUTS);
        const struct step_setup of_all = {.layout = {.dcp = 2, .context_direct = l.context_direct},
                                          .any_layout = true,
                                          .latency = latency,
                                          .fidelity = STEP_ROOFLINE};
        if (i % COUNT(LAYOUTS) == 0) any = compile(a, &m, &hw, of_all);
        struct step *own =
            compile(a, &m, &hw, (struct step_setup){.layout = l, .latency = latency, .fidelity = STEP_ROOFLINE});
        eval(any, &l, 24, 1013, 1013, x);
        eval(own, NULL, 24, 1013, 1013, y);
        for (size_t v = 0; v < STEP_VALUES_N; v++) near_to(x[v], y[v], 1e-12);
    }
    struct err e = {0};
    double v[STEP_VALUES_N];
    const struct layout whole = {.tp = 8, .per_node = 8};
    assert_int_equal(step_eval_layout(any, &whole, 1, 1, 1, 1, v, &e),
                     ERR_USAGE); /* it has operators that this lacks */
    arena_close(a);
}

/* Kimi K2 on 8 ranks: 715,072 tokens as each rank has all of them, 5,721,088 as logged with 8 that share (46.80 GiB to
 * two digits, 61 layers of 1,152 bytes). */
static void test_tokens_of_a_pool(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        double token, logged;
    } CASES[] = {{0, 70272, 715072}, {1, 70272, 715072}, {8, 8784, 5721088}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        struct pool p;
        struct pool_request r = {.pool_bytes = 46.80 * 1073741824, /* not a unit */
                                 .kv_bytes_per_token_per_gpu = CASES[i].token,
                                 .context_ranks = CASES[i].ranks,
                                 .activation_bytes = 0,
                                 .non_torch_bytes = 0,
                                 .graph_bytes = 0,
                                 .swap_bytes = (double)NAN,
                                 .block_tokens = 16,
                                 .max_model_len_tokens = 262144, /* not a unit */
                                 .max_num_seqs = 1,
                                 .max_num_batched_tokens = 1,
                                 .tp = 8};
        assert_int_equal(pool_engine_find("vllm-v1", &r.engine, &e), ERR_OK);
        assert_int_equal(pool_compute(&r, &p, &e), ERR_OK);
        near_to((double)p.tokens, CASES[i].logged, 2e-4);
        near_to(p.page_bytes, 16 * 70272.0, 1e-15);
        assert_int_equal(p.block_tokens, CASES[i].ranks == 8 ? 128 : 16);
        assert_int_equal(p.blocks_per_sequence, 262144 / (CASES[i].ranks == 8 ? 128 : 16)); /* not a unit */
    }
}

/* A pool of several kinds: blocks of every token are as many times longer, those of windows and states are not. */
static void test_pages_of_kinds(void **state)
{
    (void)state;
    struct err e = {0};
    struct pages one, four;
    struct pages_kind kinds[] = {{.keep = PAGES_TOKENS, .layers = 5, .bytes = 512},
                                 {.keep = PAGES_WINDOW, .layers = 5, .bytes = 512, .window_tokens = 100}};
    const struct pages_rule rule = {.block_tokens = 16, .align_tokens = 16, .max_model_len_tokens = 4096};
    assert_int_equal(pages_lay(kinds, 2, &rule, &one, &e), ERR_OK);
    kinds[0].context_ranks = 4;
    assert_int_equal(pages_lay(kinds, 2, &rule, &four, &e), ERR_OK);
    const int64_t window = (99 + 32 + 15) / 16 + 1; /* whole on every rank */
    assert_int_equal(pages_of_sequence(&one, 1013, 32), (1013 + 15) / 16 + window);
    assert_int_equal(pages_of_sequence(&four, 1013, 32), (1013 + 63) / 64 + window);
    assert_int_equal(one.page_bytes, four.page_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_latents_of_a_decode_step),
        cmocka_unit_test(test_grouped_heads),
        cmocka_unit_test(test_means_over_steps),
        cmocka_unit_test(test_latents_of_a_prompt),
        cmocka_unit_test(test_judged_tokens),
        cmocka_unit_test(test_cache_of_a_rank),
        cmocka_unit_test(test_what_is_not_shared),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_most_that_can_share),
        cmocka_unit_test(test_over_nodes),
        cmocka_unit_test(test_seconds_of_a_gather),
        cmocka_unit_test(test_outputs_sent_at_once),
        cmocka_unit_test(test_free_layouts),
        cmocka_unit_test(test_tokens_of_a_pool),
        cmocka_unit_test(test_pages_of_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
