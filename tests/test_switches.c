/* Switches of how a pass is counted: rules of routing, fusions, forms of latent attention, overlap. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/fusion.h"
#include "calc/model/stored.h"
#include "calc/time/step.h"

struct fixture {
    struct arena *a;
    struct model m;
    struct hw hw;
    struct step *step;
};

static void open_step(struct fixture *f, const char *model, const char *gpu, const char *weights, struct step_setup u)
{
    struct err e = {0};
    f->a = arena_open();
    if (model_load(f->a, model, NULL, 0, &f->m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (weights && stored_set_all(&f->m, weights, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(f->a, gpu, &f->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    u.model = &f->m;
    u.hw = &f->hw;
    u.block_tokens = 16;
    u.fidelity = STEP_ROOFLINE;
    if (step_compile(f->a, &u, &f->step, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
}

static struct step_op op_at(struct fixture *f, enum step_phase phase, double B, double S, const char *name)
{
    struct step_op *op, r = {.name = NULL};
    size_t n;
    struct err e = {0};
    assert_int_equal(step_ops(f->a, f->step, phase, B, S, S, 1, &op, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(op[i].name, name) == 0) r = op[i];
    if (!r.name) fail_msg("no operator %s", name);
    return r;
}

static void close_to(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fabs(want))) fail_msg("%.17g, want %.17g", got, want);
}

/* ---- routing ---- */

/* Experts read in a decode step of B tokens, by the weights of one product. */
static double experts_read(const char *model, const char *rule, double B)
{
    struct fixture f;
    struct step_setup u = {.layout = {.tp = 1}};
    struct err e = {0};
    assert_int_equal(routing_parse(rule, &u.conventions.routing, &e), ERR_OK);
    open_step(&f, model, "h100-sxm", "bf16", u);
    const struct step_op op = op_at(&f, STEP_DECODE, B, 1021, "experts_up");
    const struct ffn *x = &f.m.kinds[f.m.kinds_n - 1].ffn;
    const double one = (double)(f.m.hidden * x->width) * 2 * 2 * (double)op.count; /* gate and up, 2 bytes */
    arena_close(f.a);
    return op.weight_bytes / one;
}

static void test_experts_of_one_token(void **state)
{
    (void)state;
    static const struct {
        const char *model, *rule;
        double touched; /* by one token */
    } CASES[] = {
        {"mixtral-8x7b", "uniform", 2},         {"mixtral-8x7b", "zipf:0.7", 2},
        {"mixtral-8x7b", "zipf:3", 2},          {"qwen3-30b-a3b", "zipf:1.1", 8},
        {"deepseek-v3", "zipf:1", 8},           {"mixtral-8x7b", "active", 2},
        {"deepseek-v3", "loads:1.01", 8},       {"mixtral-8x7b", "loads:1", 2},
        {"mixtral-8x7b", "upper", 2},           {"mixtral-8x7b", "all", 8},
        {"mixtral-8x7b", "replacement", 1.875}, {"qwen3-30b-a3b", "replacement", 7.7846347979521},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        close_to(experts_read(CASES[i].model, CASES[i].rule, 1), CASES[i].touched, 1e-7);
}

/* Known: uniform 5.47 of 8 at four tokens and 51.6 of 128 at eight; tools that read k at any batch, or all, are wrong.
 */
static void test_experts_of_many(void **state)
{
    (void)state;
    close_to(experts_read("mixtral-8x7b", "uniform", 4), 8 * (1 - pow(0.75, 4)), 1e-12);
    close_to(experts_read("qwen3-30b-a3b", "uniform", 8), 128 * (1 - pow(1 - 8.0 / 128, 8)), 1e-12);
    close_to(experts_read("qwen3-30b-a3b", "zipf:0", 8), 128 * (1 - pow(1 - 8.0 / 128, 8)), 1e-12);
    close_to(experts_read("mixtral-8x7b", "replacement", 5), 8 * (1 - pow(7.0 / 8, 10)), 1e-12);
    assert_true(experts_read("mixtral-8x7b", "active", 64) == 2);
    assert_true(experts_read("mixtral-8x7b", "upper", 3) == 6 && experts_read("mixtral-8x7b", "upper", 5) == 8);
    double before = experts_read("qwen3-30b-a3b", "uniform", 16);
    for (int s = 1; s < 5; s++) { /* the more skewed, the fewer */
        const char rule[] = {'z', 'i', 'p', 'f', ':', (char)('0' + s), '\0'};
        const double now = experts_read("qwen3-30b-a3b", rule, 16);
        assert_true(now < before && now >= 8);
        before = now;
    }
}

/* Loads of density x^-a between 1 and 200: 200^u for a = 1, u the part of experts that have less; the density's own
 * mean of 1-(1-cx)^n by a fine sum, where no expert is certain. */
static void test_experts_by_loads(void **state)
{
    (void)state;
    static const double EXPONENTS[] = {0.5, 1.01, 1.2};
    const char *const rules[] = {"loads:0.5", "loads:1.01", "loads:1.2"};
    for (size_t i = 0; i < 3; i++) {
        enum { STEPS = 200000, EXPERTS = 256, K = 8, TOKENS = 7 };
        const double a = EXPONENTS[i];
        double weight = 0, mean = 0, missed = 0;
        for (int part = 0; part < 2; part++)
            for (int k = 0; k < STEPS; k++) {
                const double x = exp(log(200) * (k + 0.5) / STEPS), w = pow(x, 1 - a); /* dx = x dln x */
                if (part == 0) mean += w * x;
                if (part == 0) weight += w;
                if (part == 1) missed += w * pow(1 - x / (mean / weight) * K / EXPERTS, TOKENS);
            }
        close_to(experts_read("deepseek-v3", rules[i], TOKENS), EXPERTS * (1 - missed / weight), 0.003);
    }
    assert_true(experts_read("deepseek-v3", "loads:1.2", 16) < experts_read("deepseek-v3", "loads:1.01", 16));
}

/* Draws with those very probabilities and exactly k different experts each: one point a step on a line of lengths p,
 * counted. */
static void test_experts_drawn(void **state)
{
    (void)state;
    enum { E = 61, K = 7, N = 13, ROUNDS = 20000 };
    double p[E], sum = 0, seen = 0;
    routing_popularity(&(struct routing){ROUTING_ZIPF, 0.83}, E, K, p);
    for (int i = 0; i < E; i++) {
        assert_true(p[i] > 0 && p[i] <= 1 && (i == 0 || p[i] <= p[i - 1]));
        sum += p[i];
    }
    close_to(sum, K, 1e-12);
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < ROUNDS; round++) {
        bool touched[E] = {false};
        for (int n = 0; n < N; n++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            double at = (double)(random >> 11) / 9007199254740992.0, end = 0;
            int drawn = 0;
            for (int i = 0; i < E; i++) {
                end += p[i];
                if (at >= end || drawn == K) continue;
                touched[i] = true; /* no expert twice: its length is at most the step */
                at += 1;
                drawn++;
            }
            assert_true(drawn >= K - 1 && drawn <= K);
        }
        for (int i = 0; i < E; i++) seen += touched[i];
    }
    double expected = 0;
    for (int i = 0; i < E; i++) expected += 1 - pow(1 - p[i], N);
    close_to(seen / ROUNDS, expected, 0.005);
}

/* The c of min(1, c/e^S) that sums to k, found by halving; a skew at which the k-th is a 10^20th of the first. */
static void test_popularity_by_halving(void **state)
{
    (void)state;
    static const struct {
        double exponent;
        int64_t experts, k;
    } CASES[] = {{0, 61, 7},  {0.83, 61, 7}, {1.1, 128, 8}, {3, 8, 2},
                 {3, 61, 11}, {9, 64, 6},    {16, 257, 19}, {16, 23, 22}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double p[257], low = 0, high = 1e40; /* of 257^16 */
        const double s = CASES[i].exponent, k = (double)CASES[i].k;
        const int64_t n = CASES[i].experts;
        for (int round = 0; round < 3000; round++) {
            const double c = low + (high - low) / 2;
            double sum = 0;
            for (int64_t e = n; e > 0; e--) sum += fmin(1, c * pow((double)e, -s));
            if (sum < k)
                low = c;
            else
                high = c;
        }
        routing_popularity(&(struct routing){ROUTING_ZIPF, s}, n, CASES[i].k, p);
        for (int64_t e = 0; e < n; e++) close_to(p[e], fmin(1, high * pow((double)(e + 1), -s)), 1e-9);
    }
}

/* Loads at their quantiles, found by adding up the density in small steps; 1 is a case of its own. */
static void test_loads_by_adding(void **state)
{
    (void)state;
    static const double EXPONENTS[] = {0, 1, 1.2, 3};
    enum { E = 7, STEPS = 200000 };
    for (size_t i = 0; i < sizeof EXPONENTS / sizeof *EXPONENTS; i++) {
        double p[E], x[E], all = 0, sum = 0, seen = 0;
        const double a = EXPONENTS[i], h = log(200) / STEPS;
        int next = 0;
        for (int s = 0; s < STEPS; s++) all += exp((1 - a) * h * (s + 0.5));
        for (int s = 0; s < STEPS && next < E; s++) {
            seen += exp((1 - a) * h * (s + 0.5));
            if (seen >= all * (next + 0.5) / E) x[next++] = exp(h * (s + 1));
        }
        assert_int_equal(next, E);
        for (int e = 0; e < E; e++) sum += x[e];
        routing_popularity(&(struct routing){ROUTING_LOADS, a}, E, 1, p);
        for (int e = 0; e < E; e++) close_to(p[e], x[E - 1 - e] / sum, 2e-4);
    }
}

/* Experts dealt to parts at random: what the busiest is drawn for over the mean, counted. */
static void test_busiest_part_of_loads(void **state)
{
    (void)state;
    static const struct {
        double exponent;
        int experts, k, parts;
    } CASES[] = {{1.01, 128, 8, 4}, {1.01, 256, 8, 8}, {1.2, 96, 6, 3}, {0, 60, 4, 5}, {1.01, 128, 4, 8}};
    enum { EXPERTS = 256, ROUNDS = 4000 };
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const int n = CASES[i].experts, held = n / CASES[i].parts;
        const struct routing r = {ROUTING_LOADS, CASES[i].exponent};
        double p[EXPERTS], sum = 0;
        routing_popularity(&r, n, CASES[i].k, p);
        for (int round = 0; round < ROUNDS; round++) {
            double most = 0;
            for (int e = 0; e < n; e++) { /* shuffled as it is dealt */
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                const int other = e + (int)(random % (uint64_t)(n - e));
                const double taken = p[other];
                p[other] = p[e];
                p[e] = taken;
            }
            for (int part = 0; part < CASES[i].parts; part++) {
                double load = 0;
                for (int e = part * held; e < (part + 1) * held; e++) load += p[e];
                most = fmax(most, load);
            }
            sum += most;
        }
        const double counted = sum / ROUNDS * CASES[i].parts / CASES[i].k;
        const double got = routing_part_load(&r, n, CASES[i].k, CASES[i].parts, p);
        if (!(got > 1.05 && fabs(got / counted - 1) < 0.03))
            fail_msg("%d experts in %d parts: %g, counted %g", n, CASES[i].parts, got, counted);
    }
    double room[128];
    assert_true(routing_part_load(&(struct routing){ROUTING_LOADS, 1.01}, 128, 8, 1, room) == 1);
    assert_true(routing_part_load(&(struct routing){.rule = ROUTING_UNIFORM}, 128, 8, 8, room) == 1);
    close_to(routing_part_load(&(struct routing){ROUTING_ZIPF, 0}, 128, 8, 8, room), 1, 1e-9);
}

/* Rules by name and back; the ends of an exponent's range are in it. */
static void test_rules_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum routing_rule rule;
        double exponent;
    } CASES[] = {{"uniform", ROUTING_UNIFORM, 0},
                 {"replacement", ROUTING_REPLACEMENT, 0},
                 {"upper", ROUTING_UPPER, 0},
                 {"active", ROUTING_ACTIVE, 0},
                 {"all", ROUTING_ALL, 0},
                 {"zipf:0", ROUTING_ZIPF, 0},
                 {"zipf:1.25", ROUTING_ZIPF, 1.25},
                 {"zipf:16", ROUTING_ZIPF, 16},
                 {"loads:1.01", ROUTING_LOADS, 1.01}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct routing r;
        struct err e = {0};
        char text[32];
        assert_int_equal(routing_parse(CASES[i].text, &r, &e), ERR_OK);
        assert_true(r.rule == CASES[i].rule && r.exponent == CASES[i].exponent);
        assert_string_equal(routing_name(&r, text, sizeof text), CASES[i].text);
    }
}

static void test_rules_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",        "zipf",    "zipf:",  "zipf:-1",  "zipf:nan",   "zipf:17",
                                      "zipf:1x", "Uniform", "loads:", "loads:-1", "loads:1.2x", "uniformly"};
    struct routing r;
    struct err e = {0};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) assert_int_equal(routing_parse(BAD[i], &r, &e), ERR_USAGE);
    double p[5];
    routing_popularity(&(struct routing){ROUTING_ZIPF, 9}, 5, 5, p); /* k = E: all are certain */
    for (int i = 0; i < 5; i++) assert_true(p[i] == 1);
}

/* ---- fusion ---- */

/* Llama 3.1 8B, B = 19: D = 4096, F = 14336, N*H = 4096, K*H = 1024, 16 bits; bytes of activations, by hand. */
static void test_fusions(void **state)
{
    (void)state;
    enum { B = 19, L = 32, D = 4096, F = 14336, KV = 1024 };
    const double n = 2.0 * B * L;
    static const char *const NAMES[] = {"up_proj", "mlp_act", "mixer_residual", "mlp_norm", "rope", "kv_write"};
    const double apart[] = {n * (D + 2 * F), n * 3 * F, n * 3 * D, n * 2 * D, n * 2 * (D + KV), n * 2 * KV};
    const double fused[] = {n * (D + F), 0, n * D, n * D, 0, 0};
    for (int all = 0; all < 2; all++) {
        struct fixture f;
        const struct step_setup u = {.conventions = {.fused = all ? FUSION_ALL : 0}};
        open_step(&f, "llama-3.1-8b", "h100-sxm", NULL, u);
        for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
            const struct step_op op = op_at(&f, STEP_DECODE, B, 1021, NAMES[i]);
            assert_true(op.activation_bytes == (all ? fused : apart)[i]);
        }
        const struct step_op write = op_at(&f, STEP_DECODE, B, 1021, "kv_write");
        assert_true(write.kv_bytes == n * 2 * KV); /* the cache is written all the same */
        arena_close(f.a);
    }
    unsigned parsed;
    struct err e = {0};
    assert_int_equal(fusion_parse("rope,norm", &parsed, &e), ERR_OK);
    assert_true(parsed == (FUSION_ROPE | FUSION_NORM));
    assert_int_equal(fusion_parse("rope,attention", &parsed, &e), ERR_USAGE);
    assert_int_equal(fusion_parse("", &parsed, &e), ERR_USAGE);
}

/* Each name alone, every set of names, and words that stand alone or are none. */
static void test_lists_of_fusions(void **state)
{
    (void)state;
    struct err e = {0};
    unsigned parsed;
    for (unsigned set = 1; set < 1U << FUSIONS_N; set++) {
        char text[128] = "";
        for (size_t i = 0; i < FUSIONS_N; i++)
            if (set >> i & 1) {
                if (*text) (void)strncat(text, ",", sizeof text - strlen(text) - 1);
                (void)strncat(text, fusion_name(i), sizeof text - strlen(text) - 1);
            }
        assert_int_equal(fusion_parse(text, &parsed, &e), ERR_OK);
        assert_int_equal(parsed, set);
    }
    assert_int_equal(fusion_parse("all", &parsed, &e), ERR_OK);
    assert_int_equal(parsed, (1U << FUSIONS_N) - 1);
    assert_int_equal(fusion_parse("none", &parsed, &e), ERR_OK);
    assert_int_equal(parsed, 0);
    static const char *const ALONE[] = {"all,rope", "none,rope", "rope,all", "norm,none"};
    static const char *const NO_NAME[] = {"any",   "nope",  "al",    "alls",  "non",   "rop",
                                          "ropes", "rope,", ",rope", "nones", "allall"};
    for (size_t i = 0; i < sizeof ALONE / sizeof *ALONE; i++) {
        assert_int_equal(fusion_parse(ALONE[i], &parsed, &e), ERR_USAGE);
        assert_non_null(strstr(e.text, "stands alone"));
    }
    for (size_t i = 0; i < sizeof NO_NAME / sizeof *NO_NAME; i++) {
        assert_int_equal(fusion_parse(NO_NAME[i], &parsed, &e), ERR_USAGE);
        assert_non_null(strstr(e.text, "is no fusion"));
    }
}

/* One fusion takes the arrays of its own kind and name alone, and of a gated activation a third of what it reads and
 * writes off the operator before it, which the first of a list does not have. */
static void test_one_fusion_of_a_list(void **state)
{
    (void)state;
    static const struct {
        enum cost_op_kind kind;
        const char *name, *shape;
        unsigned by; /* what changes it */
        int64_t left;
    } OPS[] = {{OP_ACTIVATION, "mlp_act", "[rows, F]", 0, 210}, /* nothing before it */
               {OP_LINEAR, "up_proj", "", FUSION_ACTIVATION, 140},
               {OP_ACTIVATION, "mlp_act", "[rows, 2F] -> [rows, F]", FUSION_ACTIVATION, 0},
               {OP_LINEAR, "other_act", "", 0, 210},
               {OP_ACTIVATION, "_act", "[rows, F]", FUSION_ACTIVATION, 0},
               {OP_ACTIVATION, "mlp_active", "[rows, F]", 0, 210},
               {OP_ACTIVATION, "act", "[rows, F]", 0, 210},
               {OP_RESIDUAL, "mlp_residual", "", FUSION_RESIDUAL, 70},
               {OP_RESIDUAL, "mlp_sum", "", 0, 210},
               {OP_LINEAR, "to_residual", "", 0, 210},
               {OP_NORM, "mlp_norm", "", FUSION_NORM, 105},
               {OP_ROPE, "rope", "", FUSION_ROPE, 0},
               {OP_HEAD_NORM, "q_norm", "", FUSION_HEAD_NORM, 0},
               {OP_KV_WRITE, "kv_write", "", FUSION_KV_WRITE, 0}};
    enum { N = sizeof OPS / sizeof *OPS };
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    for (unsigned set = 0; set < 1U << FUSIONS_N; set++) {
        struct cost_op op[N + 1];
        memset(op, 0, sizeof op);
        for (size_t i = 0; i <= N; i++) op[i].activation_bytes = sym_int(c, 210);
        for (size_t i = 0; i < N; i++) {
            op[i + 1].kind = OPS[i].kind;
            op[i + 1].name = OPS[i].name;
            op[i + 1].shape = OPS[i].shape;
        }
        struct cost_ops ops = {.op = op + 1, .n = N};
        fusion_apply(c, set, &ops);
        assert_true(op[0].activation_bytes == sym_int(c, 210));
        for (size_t i = 0; i < N; i++)
            if (op[i + 1].activation_bytes != sym_int(c, set & OPS[i].by ? OPS[i].left : 210))
                fail_msg("%s of %u", OPS[i].name, set);
    }
    arena_close(a);
}

/* ---- latent attention ---- */

/* DeepSeek-V3: 278,528 flops a pair absorbed, 81,920 expanded and 33,554,432 a key for expanding; 128 heads on 8 ranks
 * are 16, which a kernel of 64 computes as 64. */
static void test_latent(void **state)
{
    (void)state;
    const double B = 3, S = 1021; /* 58 layers of experts, 3 dense ones apart */
    struct fixture f;
    open_step(&f, "deepseek-v3", "h200-sxm", NULL, (struct step_setup){.layout = {.tp = 1}});
    close_to(op_at(&f, STEP_DECODE, B, S, "attention").flops, 278528 * B * S * 58, 1e-12);
    close_to(op_at(&f, STEP_PREFILL, B, S, "attention").flops, 81920 * S * (S + 1) / 2 * 58, 1e-12);
    arena_close(f.a);
    open_step(&f, "deepseek-v3", "h200-sxm", NULL, (struct step_setup){.conventions = {.latent = LATENT_EXPANDED}});
    close_to(op_at(&f, STEP_DECODE, B, S, "attention").flops, 81920 * B * S * 58, 1e-12);
    close_to(op_at(&f, STEP_DECODE, B, S, "kv_b_proj").flops, 33554432 * B * S * 58, 1e-12);
    arena_close(f.a);
    open_step(&f, "deepseek-v3", "h200-sxm", NULL, (struct step_setup){.conventions = {.latent = LATENT_ABSORBED}});
    close_to(op_at(&f, STEP_PREFILL, B, S, "attention").flops, 278528 * S * (S + 1) / 2 * 58, 1e-12);
    arena_close(f.a);
    open_step(&f, "deepseek-v3", "h200-sxm", NULL,
              (struct step_setup){.layout = {.tp = 8}, .conventions = {.head_multiple = 64}});
    close_to(op_at(&f, STEP_DECODE, B, S, "attention").flops, 278528 / 2.0 * B * S * 58, 1e-12);
    arena_close(f.a);
    /* 128 heads in three times 48 */
    open_step(&f, "deepseek-v3", "h200-sxm", NULL, (struct step_setup){.conventions = {.head_multiple = 48}});
    close_to(op_at(&f, STEP_DECODE, B, S, "attention").flops, 278528 / 128.0 * 144 * B * S * 58, 1e-12);
    close_to(op_at(&f, STEP_PREFILL, B, S, "attention").flops, 81920 * S * (S + 1) / 2 * 58, 1e-12);
    arena_close(f.a);
}

/* ---- overlap ---- */

/* What links do hides behind what the device does, or the other way round: in a switch, and all over the fabric. */
static void test_overlap(void **state)
{
    (void)state;
    const double B = 37, S = 2053, M = 1;
    for (int fabric = 0; fabric < 2; fabric++) {
        struct fixture f, g;
        double t[2][2];
        const struct layout l = {.tp = 8, .per_node = fabric ? 1 : 8};
        open_step(&f, "llama-3.1-70b", "h100-sxm", NULL, (struct step_setup){.layout = l});
        open_step(&g, "llama-3.1-70b", "h100-sxm", NULL, (struct step_setup){.layout = l, .overlapped = true});
        struct fixture *const both[] = {&f, &g};
        for (int i = 0; i < 2; i++) {
            double *column[STEP_VALUES_N] = {0};
            column[STEP_prefill_s] = &t[i][0];
            column[STEP_decode_step_s] = &t[i][1];
            step_eval(both[i]->step, 1, &B, &S, &S, &M, column);
        }
        for (int phase = 0; phase < 2; phase++) {
            struct step_op *op;
            size_t n;
            struct err e = {0};
            double computes = 0, sends = 0;
            assert_int_equal(step_ops(f.a, f.step, (enum step_phase)phase, B, S, S, 1, &op, &n, &e), ERR_OK);
            for (size_t i = 0; i < n; i++)
                *(op[i].wire_bytes + op[i].fabric_bytes > 0 ? &sends : &computes) += op[i].time_s;
            assert_true(sends > 0);
            close_to(t[0][phase], computes + sends, 1e-12);
            close_to(t[1][phase], fmax(computes, sends), 1e-12);
        }
        arena_close(f.a);
        arena_close(g.a);
    }
}

/* ---- formats ---- */

/* int4 weights with 16-bit activations are multiplied in bf16, fp8 on a device without fp8 too; LLM.int8() has two
 * paths, most of it on the int8 unit. */
static void test_units(void **state)
{
    (void)state;
    static const struct {
        const char *gpu, *weights, *unit;
    } CASES[] = {{"h100-sxm", "int4-g128", "bf16"},
                 {"a100-80g", "fp8", "bf16"},
                 {"h100-sxm", "fp8", "fp8"},
                 {"a100-80g", "llm-int8", "int8"}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct fixture f;
        open_step(&f, "llama-3.1-8b", CASES[i].gpu, CASES[i].weights, (struct step_setup){.layout = {.tp = 1}});
        assert_string_equal(op_at(&f, STEP_DECODE, 19, 1021, "up_proj").compute, CASES[i].unit);
        arena_close(f.a);
    }
    /* what a device is not known to do takes no time there, and no second */
    struct fixture g;
    double known_s, unknown_s;
    open_step(&g, "llama-3.1-8b", "h100-sxm", NULL, (struct step_setup){.layout = {.tp = 1}});
    const struct step_setup vectors = {.model = &g.m, .hw = &g.hw, .block_tokens = 16, .fidelity = STEP_ROOFLINE};
    known_s = op_at(&g, STEP_DECODE, 19, 1021, "mlp_norm").time_s;
    g.hw.peak_flops_per_s[HW_FP32_VECTOR] = (double)NAN;
    struct err refused = {0};
    assert_int_equal(step_compile(g.a, &vectors, &g.step, &refused), ERR_OK);
    unknown_s = op_at(&g, STEP_DECODE, 19, 1021, "mlp_norm").time_s;
    close_to(unknown_s, known_s, 1e-12);
    arena_close(g.a);
    /* a head that is the embedding computes in the embedding's format */
    struct fixture f;
    struct err e = {0};
    open_step(&f, "llama-3.2-1b", "h100-sxm", "fp8", (struct step_setup){.layout = {.tp = 1}});
    assert_string_equal(op_at(&f, STEP_DECODE, 19, 1021, "lm_head").compute, "bf16");
    f.m.weights[WEIGHT_EMBED] = f.m.weights[WEIGHT_FFN];
    const struct step_setup u = {.model = &f.m, .hw = &f.hw, .block_tokens = 16, .fidelity = STEP_ROOFLINE};
    assert_int_equal(step_compile(f.a, &u, &f.step, &e), ERR_OK);
    assert_string_equal(op_at(&f, STEP_DECODE, 19, 1021, "lm_head").compute, "fp8");
    arena_close(f.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts_of_one_token),
        cmocka_unit_test(test_experts_of_many),
        cmocka_unit_test(test_experts_by_loads),
        cmocka_unit_test(test_experts_drawn),
        cmocka_unit_test(test_popularity_by_halving),
        cmocka_unit_test(test_loads_by_adding),
        cmocka_unit_test(test_busiest_part_of_loads),
        cmocka_unit_test(test_rules_named),
        cmocka_unit_test(test_rules_refused),
        cmocka_unit_test(test_fusions),
        cmocka_unit_test(test_lists_of_fusions),
        cmocka_unit_test(test_one_fusion_of_a_list),
        cmocka_unit_test(test_latent),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
