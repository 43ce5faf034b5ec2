/* Speculation on steps of real models: passes that judge, what they read and touch, a step of two models and of a
 * clock, its gain over batches, and trees. */
#include <stdio.h>
#include <string.h>

#include "tests/speculated.h"

struct pair {
    struct arena *a;
    struct model target, draft;
    struct hw hw;
    struct speculate_setup setup;
};

static struct step *compile(struct arena *a, const struct model *m, const struct hw *hw, int64_t tp,
                            enum step_fidelity fidelity, bool verify)
{
    struct err e = {0};
    struct step *s;
    const struct step_setup setup = {
        .model = m, .hw = hw, .layout = {.tp = tp}, .fidelity = fidelity, .block_tokens = 16, .verify = verify};
    if (step_compile(a, &setup, &s, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    return s;
}

static void open_pair(struct pair *p, const char *target, const char *draft, const char *gpu, int64_t tp)
{
    struct err e = {0};
    p->a = arena_open();
    assert_int_equal(model_load(p->a, target, NULL, 0, &p->target, &e), ERR_OK);
    assert_int_equal(model_load(p->a, draft, NULL, 0, &p->draft, &e), ERR_OK);
    assert_int_equal(hw_load(p->a, gpu, &p->hw, &e), ERR_OK);
    p->setup = (struct speculate_setup){.target = compile(p->a, &p->target, &p->hw, tp, STEP_ROOFLINE, false),
                                        .verify = compile(p->a, &p->target, &p->hw, tp, STEP_ROOFLINE, true),
                                        .draft = compile(p->a, &p->draft, &p->hw, tp, STEP_ROOFLINE, false),
                                        .draft_wide = compile(p->a, &p->draft, &p->hw, tp, STEP_ROOFLINE, true),
                                        .accept = constant(.8),
                                        .bonus = true};
}

static void at(struct step *s, double B, double T, double S, double v[STEP_VALUES_N])
{
    const double M = 1;
    double *column[STEP_VALUES_N];
    for (size_t i = 0; i < STEP_VALUES_N; i++) column[i] = &v[i];
    step_eval(s, 1, &B, &T, &S, &M, column);
}

static const struct {
    const char *model, *gpu;
    int64_t tp;
} MODELS[] = {{"llama-3.1-8b", "h100-sxm", 1}, {"gemma-3-27b", "h200-sxm", 1},     {"gpt-oss-120b", "h100-sxm", 2},
              {"deepseek-v3", "h200-sxm", 8},  {"qwen3-235b-a22b", "h100-sxm", 8}, {"mixtral-8x7b", "mi300x", 1}};

/* A verify pass of one token is a decode step; of T it computes what the T decode steps at S .. S+T-1 compute, and
 * reads the weights once: it is not priced as T steps. */
static void test_verify_is_decode_of_many(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(MODELS); i++)
        for (int bound = 0; bound < 2; bound++) {
            struct arena *a = arena_open();
            struct model m;
            struct hw hw;
            struct err e = {0};
            const enum step_fidelity fidelity = bound ? STEP_BOUND : STEP_ROOFLINE;
            assert_int_equal(model_load(a, MODELS[i].model, NULL, 0, &m, &e), ERR_OK);
            assert_int_equal(hw_load(a, MODELS[i].gpu, &hw, &e), ERR_OK);
            struct step *decode = compile(a, &m, &hw, MODELS[i].tp, fidelity, false);
            struct step *verify = compile(a, &m, &hw, MODELS[i].tp, fidelity, true);
            double one[STEP_VALUES_N], many[STEP_VALUES_N], flops = 0, seconds = 0;
            const double B = 3, S = 1531, T = 7;
            at(decode, B, S, S, one);
            at(verify, B, 1, S, many);
            for (enum step_value v = STEP_decode_step_s; v <= STEP_decode_link_s; v++)
                assert_close(many[v], one[v], 1e-13, MODELS[i].model);
            assert_close(many[STEP_kv_bytes], one[STEP_kv_bytes], 1e-15, MODELS[i].model);
            at(verify, B, T, S, many);
            for (double k = 0; k < T; k++) {
                at(decode, B, S, S + k, one);
                flops += one[STEP_decode_flops];
                seconds += one[STEP_decode_step_s];
            }
            assert_close(many[STEP_decode_flops], flops, 1e-13, MODELS[i].model);
            assert_true(many[STEP_decode_step_s] < seconds);
            assert_true(many[STEP_decode_step_s] > one[STEP_decode_step_s]);
            assert_close(many[STEP_kv_bytes], one[STEP_kv_bytes], 1e-15, MODELS[i].model); /* one is at S+T-1 */
            arena_close(a);
        }
}

/* Bound of a dense model: the weights once, the cache up to the last token, T rows of the embedding. */
static void test_verify_reads_weights_once(void **state)
{
    (void)state;
    struct pair p;
    open_pair(&p, "llama-3.1-8b", "llama-3.2-1b", "h100-sxm", 1);
    struct step *decode = compile(p.a, &p.target, &p.hw, 1, STEP_BOUND, false);
    struct step *verify = compile(p.a, &p.target, &p.hw, 1, STEP_BOUND, true);
    double one[STEP_VALUES_N], many[STEP_VALUES_N];
    const double B = 5, S = 977, T = 6;
    at(decode, B, S, S + T - 1, one);
    at(verify, B, T, S, many);
    assert_close(many[STEP_decode_bytes], one[STEP_decode_bytes] + B * (T - 1) * (double)p.target.hidden * 2, 1e-15,
                 "bytes of a verify pass");
    at(decode, B, S, S, one);
    assert_true(many[STEP_decode_step_s] < 1.02 * one[STEP_decode_step_s]); /* memory-bound: nearly free */
    arena_close(p.a);
}

static double expert_bytes(struct arena *a, struct step *s, double B, double T, double S)
{
    struct step_op *ops;
    size_t n;
    struct err e = {0};
    double sum = 0;
    assert_int_equal(step_ops(a, s, STEP_DECODE, B, T, S, 1, &ops, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(ops[i].kind, "experts") == 0) sum += ops[i].weight_bytes;
    return sum;
}

/* A verify pass touches the experts of all its tokens: E*(1-(1-k/E)^(B*T)), k of them for one token. */
static void test_verify_touches_more_experts(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double E, k, B, T, touched; /* published to the last digit */
    } ROWS[] = {{"mixtral-8x7b", 8, 2, 1, 4, 5.47},    {"mixtral-8x7b", 8, 2, 4, 4, 7.92},
                {"qwen3-30b-a3b", 128, 8, 2, 4, 51.6}, {"qwen3-30b-a3b", 128, 8, 4, 8, 111.8},
                {"deepseek-v3", 256, 8, 1, 8, 57.4},   {"deepseek-v3", 256, 8, 16, 4, 222.4},
                {"gpt-oss-120b", 128, 4, 2, 4, 28.7}};
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct arena *a = arena_open();
        struct model m;
        struct hw hw;
        struct err e = {0};
        assert_int_equal(model_load(a, ROWS[i].model, NULL, 0, &m, &e), ERR_OK);
        assert_int_equal(hw_load(a, "h200-sxm", &hw, &e), ERR_OK);
        struct step *verify = compile(a, &m, &hw, 1, STEP_ROOFLINE, true);
        const double S = 1009, one = expert_bytes(a, verify, 1, 1, S);
        const double n = expert_bytes(a, verify, ROWS[i].B, ROWS[i].T, S) / one * ROWS[i].k;
        assert_true(fabs(n - ROWS[i].touched) < .06);
        assert_close(n, ROWS[i].E * (1 - pow(1 - ROWS[i].k / ROWS[i].E, ROWS[i].B * ROWS[i].T)), 1e-12, ROWS[i].model);
        assert_close(expert_bytes(a, verify, ROWS[i].B, ROWS[i].T, S),
                     expert_bytes(a, compile(a, &m, &hw, 1, STEP_ROOFLINE, false), ROWS[i].B * ROWS[i].T, 1, S), 1e-12,
                     "as a decode step of as many sequences");
        arena_close(a);
    }
}

/* A step adds up, its drafts are decode steps of the draft at growing contexts, and both caches hold them. */
static void test_step_of_a_pair(void **state)
{
    (void)state;
    struct pair p;
    struct speculate_point x;
    double v[STEP_VALUES_N], draft = 0;
    const double B = 11, T = 700, S = 1301;
    open_pair(&p, "llama-3.1-70b", "llama-3.2-1b", "h100-sxm", 4);
    p.setup.gamma = 5;
    speculate_eval(&p.setup, B, T, S, 1, &x);
    for (double k = 0; k < 5; k++) {
        at(p.setup.draft, B, S, S + k, v);
        draft += v[STEP_decode_step_s];
    }
    assert_close(x.draft_s, draft, 1e-13, "draft_s");
    assert_close(x.draft_kv_bytes, v[STEP_kv_bytes], 1e-15, "the draft's cache"); /* v is at S+4 */
    assert_true(x.draft_kv_bytes == B * (S + 4) * step_kv_bytes_per_token_full(p.setup.draft));
    assert_true(x.kv_bytes == B * (S + 5) * step_kv_bytes_per_token_full(p.setup.target));
    at(p.setup.verify, B, 6, S, v);
    assert_true(x.verify_s == v[STEP_decode_step_s] && x.query_tokens == 6);
    at(p.setup.target, B, T, S, v);
    assert_true(x.decode_s == v[STEP_decode_step_s]);
    assert_true(x.step_s == x.draft_s + x.verify_s);
    assert_close(x.tokens, (1 - pow(.8, 6)) / .2, 1e-14, "tokens");
    assert_close(x.speedup, x.tokens * x.decode_s / x.step_s, 1e-15, "speedup");
    /* without the bonus: a token less at most, a row less to judge */
    p.setup.bonus = false;
    struct speculate_point y;
    speculate_eval(&p.setup, B, T, S, 1, &y);
    assert_true(y.query_tokens == 5 && y.verify_s < x.verify_s && y.draft_s == x.draft_s);
    assert_close(y.tokens, x.tokens - pow(.8, 5), 1e-14, "no bonus");
    p.setup.bonus = true;
    p.setup.one_pass = true; /* heads beside each other: one pass, and nothing of its own is read again */
    speculate_eval(&p.setup, B, T, S, 1, &y);
    at(p.setup.draft, B, S, S, v);
    assert_true(y.draft_s == v[STEP_decode_step_s] && y.draft_kv_bytes == v[STEP_kv_bytes]);
    assert_true(y.verify_s == x.verify_s && y.tokens == x.tokens);
    arena_close(p.a);
}

/* The best gamma is no slower than any other; as a mean over M steps it is a step at their mean context. */
static void test_best_gamma_of_a_pair(void **state)
{
    (void)state;
    static const double BATCH[] = {1, 13, 89, 307};
    struct pair p;
    open_pair(&p, "qwen3-32b", "qwen3-0.6b", "h100-sxm", 2);
    for (size_t i = 0; i < COUNT(BATCH); i++) {
        struct speculate_point best, x;
        p.setup.gamma = 0;
        speculate_eval(&p.setup, BATCH[i], 500, 1100, 1, &best);
        assert_int_equal(best.gamma, best.best_gamma);
        for (p.setup.gamma = 1; p.setup.gamma <= SPECULATE_DEPTH_MAX; p.setup.gamma++) {
            speculate_eval(&p.setup, BATCH[i], 500, 1100, 1, &x);
            assert_int_equal(x.best_gamma, best.gamma);
            assert_true(x.speedup <= best.speedup);
            if (x.gamma == best.gamma) assert_true(x.speedup == best.speedup);
        }
        p.setup.gamma = 3;
        struct speculate_point mean;
        speculate_eval(&p.setup, BATCH[i], 500, 1100, 201, &mean); /* contexts 900 .. 1100 */
        speculate_eval(&p.setup, BATCH[i], 500, 1000, 1, &x);
        assert_true(mean.verify_s == x.verify_s && mean.draft_s == x.draft_s);
        assert_true(mean.kv_bytes > x.kv_bytes); /* memory is that of the longest */
    }
    /* without the bonus a chain of g is judged by g rows; a draft of so many heads makes no longer chain */
    p.setup.bonus = false;
    for (size_t i = 0; i < 2 * COUNT(BATCH); i++) {
        p.setup.depth_max = i % 2 ? 3 : 0;
        struct speculate_point best, x;
        const int64_t deepest = p.setup.depth_max ? p.setup.depth_max : SPECULATE_DEPTH_MAX;
        int64_t wanted = 0;
        double most = 0;
        for (p.setup.gamma = 1; p.setup.gamma <= deepest; p.setup.gamma++) {
            speculate_eval(&p.setup, BATCH[i / 2], 500, 1100, 1, &x);
            if (x.speedup > most) wanted = x.gamma;
            most = fmax(most, x.speedup);
        }
        p.setup.gamma = 0;
        speculate_eval(&p.setup, BATCH[i / 2], 500, 1100, 1, &best);
        assert_int_equal(best.best_gamma, wanted);
        assert_int_equal(best.gamma, wanted);
        assert_true(best.speedup == most);
    }
    arena_close(p.a);
}

/* A dense target gains less the larger the batch, down to a loss; experts make small batches worse than middling ones.
 */
static void test_gain_falls_with_batch(void **state)
{
    (void)state;
    struct pair p;
    struct speculate_point x;
    double before = (double)INFINITY;
    open_pair(&p, "llama-3.1-8b", "llama-3.2-1b", "h100-sxm", 1);
    p.setup.gamma = 3;
    for (double B = 1; B <= 4096; B *= 2) {
        speculate_eval(&p.setup, B, 64, 64, 1, &x);
        assert_true(x.speedup < before);
        before = x.speedup;
    }
    assert_true(before < 1);
    /* flat until 4B rows reach the ridge of 295: B 74 */
    struct speculate_point one, most;
    speculate_eval(&p.setup, 1, 64, 64, 1, &one);
    speculate_eval(&p.setup, 64, 64, 64, 1, &x);
    speculate_eval(&p.setup, 256, 64, 64, 1, &most);
    assert_true(x.verify_s < 1.3 * one.verify_s && most.verify_s > 2 * x.verify_s);
    arena_close(p.a);
    open_pair(&p, "mixtral-8x7b", "llama-3.2-1b", "h100-sxm", 4);
    p.setup.gamma = 3;
    speculate_eval(&p.setup, 1, 64, 64, 1, &one);
    speculate_eval(&p.setup, 16, 64, 64, 1, &x);
    assert_true(one.verify_s > 1.5 * one.decode_s && x.verify_s < 1.2 * x.decode_s && one.speedup < x.speedup);
    arena_close(p.a);
}

/* The last batch that pays pays, the next does not; none and all are told apart. */
static void test_where_it_stops_paying(void **state)
{
    (void)state;
    struct pair p;
    struct speculate_point x;
    open_pair(&p, "llama-3.1-8b", "llama-3.2-1b", "h100-sxm", 1);
    for (int64_t gamma = 1; gamma <= 5; gamma += 2) {
        p.setup.gamma = gamma;
        const int64_t last = speculate_pays_until(&p.setup, 64, 64, 1);
        assert_true(last > 1 && last < SPECULATE_BATCH_MAX);
        speculate_eval(&p.setup, (double)last, 64, 64, 1, &x);
        assert_true(x.speedup > 1);
        for (int64_t B = last + 1; B < last + 200; B++) {
            speculate_eval(&p.setup, (double)B, 64, 64, 1, &x);
            assert_true(x.speedup <= 1);
        }
    }
    p.setup.accept = constant(.01);
    assert_int_equal(speculate_pays_until(&p.setup, 64, 64, 1), 0);
    /* a long cache is read once for all drafted tokens, whatever the batch */
    p.setup.accept = constant(.8);
    assert_int_equal(speculate_pays_until(&p.setup, 64, 65536, 1), SPECULATE_BATCH_MAX);
    arena_close(p.a);
}

/* A chain of one node a depth is the chain; a wide tree costs more to draft and to judge. */
/* A clock that charges by what a pass is asked: the step of a pair is its passes, at one context each. */
struct asked {
    struct step *target, *verify;
    int64_t calls, averaged;
    double limit; /* batches up to it are judged cheaply; 0: all */
};

static double charge(void *self, struct step *of, double B, double T, double S, double M)
{
    struct asked *x = self;
    x->calls++;
    x->averaged += M > 1 || M < 1;
    const double rows = B * T;
    if (of == x->verify && x->limit > 0) return B <= x->limit ? 900 : 1e6;
    return of == x->target ? 1000 : of == x->verify ? 900 + (rows > 10 * B ? 40 : 1) * rows / B : 3 + S / 1000;
}

static void test_passes_of_a_clock(void **state)
{
    (void)state;
    struct pair p;
    open_pair(&p, "llama-3.1-8b", "llama-3.2-1b", "h100-sxm", 1);
    struct asked x = {p.setup.target, p.setup.verify, 0, 0, 0};
    p.setup.clock = (struct speculate_clock){charge, &x};
    for (int bonus = 0; bonus < 2; bonus++) {
        struct speculate_point best, one;
        double most = 0;
        int64_t wanted = 0;
        p.setup.bonus = bonus;
        p.setup.gamma = 0;
        speculate_eval(&p.setup, 3, 1, 1000, 1, &best);
        for (int64_t gamma = 1; gamma <= 16; gamma++) { /* each chain by itself: its passes are asked for anew */
            const double T = (double)(bonus ? gamma + 1 : gamma);
            double draft = 3 + 1;
            for (int64_t i = 1; i < gamma; i++) draft += 3 + (1000 + (double)i) / 1000;
            p.setup.gamma = gamma;
            speculate_eval(&p.setup, 3, 1, 1000, 1, &one);
            assert_close(one.verify_s, 900 + (T > 10 ? 40 : 1) * T, 1e-12, "verify");
            assert_close(one.draft_s, draft, 1e-12, "draft");
            if (one.speedup <= most) continue;
            most = one.speedup;
            wanted = gamma;
        }
        assert_int_equal(best.best_gamma, wanted);
        assert_int_equal(wanted, bonus ? 9 : 10); /* the last that verifies at the low rate */
    }
    assert_true(x.calls > 0 && x.averaged == 0);
    static const int64_t LAST[] = {1, 2, 3, 77, 78, 1023, 1025};
    for (size_t i = 0; i < COUNT(LAST); i++) {
        x.limit = (double)LAST[i];
        assert_int_equal(speculate_pays_until(&p.setup, 1, 1000, 1), LAST[i]);
    }
    arena_close(p.a);
}

/* What an acceptance may be, and what is known of a depth or a rank that it does not name. */
static void test_ends_of_acceptances(void **state)
{
    (void)state;
    static const char *const TAKEN[] = {"0", "1", "0.4/0.4", "0.5/0", "0.5/0.3/0.2", "0,1"};
    static const char *const REFUSED[] = {"1.5", "-0.1", "0.3/0.4", "0.5/0.3/0.2000000015", "0.6/0.5", "2"};
    struct speculate_accept p;
    struct err e = {0};
    for (size_t i = 0; i < COUNT(TAKEN); i++)
        if (speculate_accept_parse(TAKEN[i], &p, &e) != ERR_OK) fail_msg("'%s' is refused", TAKEN[i]);
    for (size_t i = 0; i < COUNT(REFUSED); i++)
        if (speculate_accept_parse(REFUSED[i], &p, &e) != ERR_USAGE) fail_msg("'%s' is taken", REFUSED[i]);
    assert_int_equal(speculate_accept_parse("0.6/0.2,0.5/0.1/0.05", &p, &e), ERR_OK);
    assert_close(speculate_accept_child(&p, 2, 3), 0.05, 1e-15, "third child");
    assert_true(isnan(speculate_accept_child(&p, 1, 3)) && isnan(speculate_accept_child(&p, 3, 1)));
    /* of drafts that pay alike the shortest; of none that is known the first, and no speedup */
    const double draft[] = {1, 1, 1}, verify[] = {1, 1, 1}, unknown[] = {(double)NAN, (double)NAN, (double)NAN};
    const struct speculate_accept never = constant(0);
    double speedup;
    assert_int_equal(speculate_best(&never, true, 3, 1, draft, verify, &speedup), 1);
    assert_close(speedup, 0.5, 1e-15, "speedup");
    assert_int_equal(speculate_best(&never, true, 3, 1, unknown, verify, &speedup), 1);
    assert_true(isnan(speedup));
    /* trees by depth: nodes that are never kept hang somewhere; of two places alike the first */
    struct arena *a = arena_open();
    struct speculate_shape shape;
    const struct speculate_tree t = {.depth = 2, .width = {2, 2}};
    assert_int_equal(speculate_tree_shape(a, &t, &never, true, &shape, &e), ERR_OK);
    assert_true(shape.kept_tokens == 0 && shape.query_tokens == 5);
    const struct speculate_accept half = constant(0.5);
    assert_int_equal(speculate_tree_shape(a, &t, &half, false, &shape, &e), ERR_OK);
    assert_int_equal(shape.query_tokens, 2); /* both nodes below are the first one's */
    arena_close(a);
}

static void test_tree_of_a_pair(void **state)
{
    (void)state;
    struct pair p;
    struct speculate_point chain, tree;
    struct speculate_shape shape;
    struct err e = {0};
    open_pair(&p, "llama-3.1-8b", "llama-3.2-1b", "h100-sxm", 1);
    p.setup.gamma = 4;
    speculate_eval(&p.setup, 3, 900, 900, 1, &chain);
    struct speculate_tree t;
    assert_int_equal(speculate_tree_parse("1,1,1,1", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(p.a, &t, &p.setup.accept, true, &shape, &e), ERR_OK);
    p.setup.shape = &shape;
    speculate_eval(&p.setup, 3, 900, 900, 1, &tree);
    assert_close(tree.draft_s, chain.draft_s, 1e-14, "draft_s");
    assert_true(tree.verify_s == chain.verify_s && tree.draft_kv_bytes == chain.draft_kv_bytes);
    assert_close(tree.tokens, chain.tokens, 1e-14, "tokens");
    assert_int_equal(speculate_tree_parse("3,5,2,1", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(p.a, &t, &p.setup.accept, true, &shape, &e), ERR_OK);
    speculate_eval(&p.setup, 3, 900, 900, 1, &tree);
    /* passes over the last token, then over 3, 5 and 2 nodes */
    static const double NODES[] = {1, 3, 5, 2};
    double v[STEP_VALUES_N], sum = 0, end = 900;
    for (size_t i = 0; i < COUNT(NODES); i++) {
        at(p.setup.draft_wide, 3, NODES[i], end - (NODES[i] - 1) + (i ? NODES[i] : 0), v);
        sum += v[STEP_decode_step_s];
        end += i ? NODES[i] : 0;
    }
    assert_close(tree.draft_s, sum, 1e-13, "draft_s of a tree");
    assert_int_equal(tree.query_tokens, 12);
    assert_true(tree.tokens > chain.tokens && tree.verify_s > chain.verify_s);
    assert_true(tree.draft_kv_bytes == 3 * (900 + 10) * step_kv_bytes_per_token_full(p.setup.draft));
    assert_true(tree.kv_bytes == 3 * (900 + 11) * step_kv_bytes_per_token_full(p.setup.target));
    /* activations of the draft: of its prompt, or of its widest pass */
    double narrow[STEP_VALUES_N], wide[STEP_VALUES_N];
    for (double T = 1; T < 1000; T += 898) {
        speculate_eval(&p.setup, 3, T, 900, 1, &tree);
        at(p.setup.draft, 3, T, 900, narrow);
        at(p.setup.draft_wide, 3, 5, 900, wide);
        assert_true(tree.draft_activation_bytes == fmax(narrow[STEP_activation_bytes], wide[STEP_activation_bytes]));
    }
    /* of the passes over nodes: the last depth is not passed over */
    static const struct {
        const char *tree;
        double widest;
    } TREES[] = {{"5,2,1", 5}, {"2,3,7,9", 7}, {"1,1,1", 1}, {"1,2,9", 2}};
    for (size_t i = 0; i < COUNT(TREES); i++) {
        assert_int_equal(speculate_tree_parse(TREES[i].tree, &t, &e), ERR_OK);
        assert_int_equal(speculate_tree_shape(p.a, &t, &p.setup.accept, true, &shape, &e), ERR_OK);
        speculate_eval(&p.setup, 3, 1, 900, 1, &tree);
        at(p.setup.draft_wide, 3, TREES[i].widest, 900, wide);
        at(p.setup.draft, 3, 1, 900, narrow);
        assert_true(tree.draft_activation_bytes == fmax(narrow[STEP_activation_bytes], wide[STEP_activation_bytes]));
    }
    assert_int_equal(speculate_tree_parse("3,5,2,1", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(p.a, &t, &p.setup.accept, true, &shape, &e), ERR_OK);
    p.setup.one_pass = true; /* all depths of one pass over the last token */
    speculate_eval(&p.setup, 3, 900, 900, 1, &tree);
    at(p.setup.draft, 3, 1, 900, v);
    assert_true(tree.draft_s == v[STEP_decode_step_s] && tree.draft_kv_bytes == v[STEP_kv_bytes]);
    at(p.setup.draft, 3, 900, 900, v);
    assert_true(tree.draft_activation_bytes == v[STEP_activation_bytes]);
    /* 3 children, of each 5, of each 2: without the bonus the last 30 are not judged */
    assert_int_equal(speculate_tree_parse("3x5x2", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(p.a, &t, &p.setup.accept, false, &shape, &e), ERR_OK);
    assert_int_equal(shape.query_tokens, 1 + 3 + 15);
    assert_int_equal(speculate_tree_shape(p.a, &t, &p.setup.accept, true, &shape, &e), ERR_OK);
    assert_int_equal(shape.query_tokens, 1 + 3 + 15 + 30);
    arena_close(p.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify_is_decode_of_many),    cmocka_unit_test(test_verify_reads_weights_once),
        cmocka_unit_test(test_verify_touches_more_experts), cmocka_unit_test(test_step_of_a_pair),
        cmocka_unit_test(test_passes_of_a_clock),           cmocka_unit_test(test_ends_of_acceptances),
        cmocka_unit_test(test_best_gamma_of_a_pair),        cmocka_unit_test(test_gain_falls_with_batch),
        cmocka_unit_test(test_where_it_stops_paying),       cmocka_unit_test(test_tree_of_a_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
