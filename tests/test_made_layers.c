/* Layers that no built-in model has: a size of a built-in one is changed so that every factor is a number of its own,
 * and operators are counted by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/cost.h"
#include "calc/cost/lora.h"
#include "calc/model/stored.h"

enum { B = 13, S = 997 };

struct made {
    struct arena *a;
    struct model m;
    struct sym_ctx *c;
    struct cost_symbols y;
    struct cost_conventions v;
    struct cost_ops ops;
};

static void load(struct made *x, const char *name)
{
    struct err e = {0};
    *x = (struct made){.a = arena_open()};
    if (model_load(x->a, name, NULL, 0, &x->m, &e) != ERR_OK) fail_msg("%s", e.text);
    x->c = sym_open(x->a);
    x->y = cost_symbols_make(x->c);
}

static void build(struct made *x, int64_t tokens, int64_t tp)
{
    struct err e = {0};
    const struct cost_pass pass = {
        .name = "decode", .B = sym_int(x->c, B), .T = sym_int(x->c, tokens), .S = sym_int(x->c, S), .absorbed = true};
    if (cost_build(x->a, x->c, &x->y, &x->m, &x->v, &pass, tp, &x->ops, &e) != ERR_OK) fail_msg("%s", e.text);
    if (cost_bind(x->c, &x->y, &x->m, tp, &x->ops, &e) != ERR_OK) fail_msg("%s", e.text);
}

static const struct cost_op *op_of(const struct made *x, const char *name)
{
    for (size_t i = 0; i < x->ops.n; i++)
        if (strcmp(x->ops.op[i].name, name) == 0) return &x->ops.op[i];
    return NULL;
}

static double value(const struct sym *s)
{
    double v = (double)NAN;
    assert_true(sym_constant(s, &v));
    return v;
}

static void near(double found, double wanted, const char *what)
{
    if (!(fabs(found - wanted) <= 1e-12 * fabs(wanted))) fail_msg("%s: found %.17g, wanted %.17g", what, found, wanted);
}

/* Receptance and key have the key width, value and gate the value width. */
static void test_time_mix_with_wide_values(void **state)
{
    (void)state;
    struct made x;
    load(&x, "falcon-mamba-7b");
    x.m.kinds[0].mixer = (struct mixer){.kind = MIXER_RECURRENT,
                                        .heads = 3,
                                        .kv_heads = 3,
                                        .head_dim = 5,
                                        .v_head_dim = 7,
                                        .recurrence = {.block = RECURRENT_TIME_MIX}};
    build(&x, 1, 1);
    const double D = (double)x.m.hidden;
    near(value(op_of(&x, "r_proj")->flops), 2 * B * D * 15, "r");
    near(value(op_of(&x, "k_proj")->flops), 2 * B * D * 15, "k");
    near(value(op_of(&x, "v_proj")->flops), 2 * B * D * 21, "v");
    near(value(op_of(&x, "g_proj")->flops), 2 * B * D * 21, "g");
    arena_close(x.a);
}

/* Decays of channels that are made of the stream at once, without a narrow waist. */
static void test_decays_without_a_waist(void **state)
{
    (void)state;
    for (int64_t rank = 0; rank <= 1; rank++) { /* a waist of one element is one */
        struct made x;
        load(&x, "kimi-linear-48b-a3b");
        const struct mixer *k = NULL;
        for (size_t i = 0; i < x.m.kinds_n; i++) {
            struct mixer *mixer = &x.m.kinds[i].mixer;
            if (mixer->kind != MIXER_RECURRENT) continue;
            mixer->recurrence.rank = rank;
            mixer->recurrence.gate = GATE_FULL;
            k = mixer;
        }
        assert_true(k && k->recurrence.decay == DECAY_CHANNEL);
        build(&x, 1, 1);
        const double in = rank ? 1 : (double)x.m.hidden, out = (double)(k->heads * k->head_dim);
        near(value(op_of(&x, "decay_up")->flops), 2 * B * in * out, "decay_up");
        assert_true(!op_of(&x, "decay_down") == (rank == 0));
        if (rank) near(value(op_of(&x, "decay_down")->flops), 2.0 * B * (double)x.m.hidden, "decay_down");
        arena_close(x.a);
    }
}

/* Outlier columns of a fused MLP: a share of D twice (gate, up) and of F once, in 16 bits beside the product. */
static void test_outliers_of_a_fused_mlp(void **state)
{
    (void)state;
    struct made x;
    struct err e = {0};
    load(&x, "llama-3.1-8b");
    x.v.mlp_fused = true;
    assert_int_equal(stored_set_all(&x.m, "llm-int8:0.003", &e), ERR_OK);
    build(&x, 1, 1);
    const double D = (double)x.m.hidden, F = (double)x.m.kinds[0].ffn.width, b = x.m.activations.bits / 8;
    const double d = 0.003 * D, f = 0.003 * F;
    const struct cost_op *mlp = op_of(&x, "mlp");
    near(value(mlp->half_flops), 2 * B * (2 * d * F + f * D), "half_flops");
    near(value(mlp->flops), 2 * B * 3 * D * F + value(mlp->half_flops), "flops");
    near(value(mlp->weight_bytes), value(mlp->tensor[0].bytes) + value(mlp->tensor[1].bytes) + (2 * d * F + f * D) * b,
         "weight_bytes");
    near(value(mlp->activation_bytes), (2 * B * D + 2 * B * F + B * (2 * (d + 2 * F) + f + 2 * D)) * b,
         "activation_bytes");
    arena_close(x.a);
}

/* Outliers of experts: of those that are read, in all copies. */
static void test_outliers_of_experts(void **state)
{
    (void)state;
    struct made x;
    struct err e = {0};
    load(&x, "mixtral-8x7b");
    assert_int_equal(stored_set_all(&x.m, "llm-int8:0.003", &e), ERR_OK);
    build(&x, 1, 1);
    const double D = (double)x.m.hidden, F = (double)x.m.kinds[0].ffn.width, touched = 1 - pow(0.75, B);
    const struct cost_op *down = op_of(&x, "experts_down");
    const double n = 2 * B, columns = 0.003 * F; /* two experts a token */
    near(value(down->half_flops), 2 * n * columns * D, "half_flops");
    near(value(down->weight_bytes), touched * (value(down->tensor[0].bytes) + 8 * columns * D * 2), "weight_bytes");
    near(value(down->activation_bytes), (n * (F + D) + n * (columns + 2 * D)) * 2, "activation_bytes");
    arena_close(x.a);
}

/* An adapter beside an MLP without a gate makes F elements, beside a gated one 2F. */
static void test_adapters(void **state)
{
    (void)state;
    for (int gated = 0; gated < 2; gated++)
        for (int64_t rank = 0; rank <= 1; rank++) {
            struct made x;
            load(&x, "llama-3.1-8b");
            struct ffn *f = &x.m.kinds[0].ffn;
            f->gated = gated > 0;
            f->adapter_rank = rank;
            build(&x, 1, 1);
            const double out = (gated ? 2 : 1) * (double)f->width;
            assert_true(!op_of(&x, "adapter_up") == (rank == 0));
            if (rank) near(value(op_of(&x, "adapter_up")->flops), 2 * B * out, "adapter_up");
            if (rank) near(value(op_of(&x, "adapter_add")->vector_flops), B * out, "adapter_add");
            arena_close(x.a);
        }
}

/* Norms: two at a place have twice the weights, and a bias beside each weight doubles them. */
static void test_norms(void **state)
{
    (void)state;
    static const struct {
        enum norm_kind kind;
        double weights, flops;
    } KINDS[] = {{NORM_RMS, 1, 4}, {NORM_LAYER, 1, 6}, {NORM_LAYER_BIAS, 2, 7}};
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        struct made x;
        load(&x, "llama-3.1-8b");
        struct layer_kind *k = &x.m.kinds[0];
        x.m.norm = KINDS[i].kind;
        k->norms = 6;
        k->mixer.features_kv = true;
        k->mixer.qk_norm = QK_NORM_HEAD;
        build(&x, 1, 1);
        const double D = (double)x.m.hidden, H = (double)k->mixer.head_dim, K = (double)k->mixer.kv_heads;
        near(value(op_of(&x, "mixer_norm")->tensor[0].elems), 3 * KINDS[i].weights * D, "weights of norms");
        near(value(op_of(&x, "mixer_norm")->vector_flops), 3 * KINDS[i].flops * B * D, "flops of norms");
        near(value(op_of(&x, "feature_k_norm")->tensor[0].elems), KINDS[i].weights * H, "weights of key norms");
        near(value(op_of(&x, "feature_k_norm")->vector_flops), KINDS[i].flops * B * K * H, "flops of key norms");
        arena_close(x.a);
    }
}

/* A router's correction in fp32 and the scales of its experts are both read. */
static void test_routing(void **state)
{
    (void)state;
    struct made x;
    load(&x, "mixtral-8x7b");
    x.m.kinds[0].ffn.router_correction = true;
    x.m.kinds[0].ffn.expert_scale = true;
    build(&x, 1, 1);
    const struct cost_op *route = op_of(&x, "route");
    near(value(route->weight_bytes), 8 * 4 + 8 * x.m.weights[WEIGHT_OTHER].bits / 8, "route");
    near(value(route->vector_flops), 5.0 * B * 8 + B * 2, "flops");
    arena_close(x.a);
}

/* The class whose format decides the unit: a tied head is the embedding, elementwise work has none. */
static void test_classes(void **state)
{
    (void)state;
    static const char *const MODELS[] = {"llama-3.1-8b", "llama-3.2-1b"};
    for (size_t i = 0; i < 2; i++) {
        struct made x;
        load(&x, MODELS[i]);
        build(&x, 1, 1);
        assert_int_equal(op_of(&x, "lm_head")->compute_class, x.m.tied ? WEIGHT_EMBED : WEIGHT_HEAD);
        assert_int_equal(op_of(&x, "mixer_norm")->compute_class, -1);
        assert_int_equal(op_of(&x, "attention")->compute_class, -1);
        assert_int_equal(op_of(&x, "up_proj")->compute_class, WEIGHT_FFN);
        arena_close(x.a);
    }
}

/* A pass of a fixed number of tokens is the pass of T tokens at that number. */
static void test_fixed_passes(void **state)
{
    (void)state;
    static const char *const MODELS[] = {"llama-3.1-8b", "gemma-3-27b", "deepseek-v3.2"};
    for (size_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++)
        for (int64_t tokens = 1; tokens <= 3; tokens++) {
            struct made x;
            struct err e = {0};
            load(&x, MODELS[i]);
            for (size_t k = 0; k < x.m.kinds_n; k++)
                if (x.m.kinds[k].mixer.top_keys > 0) x.m.kinds[k].mixer.top_keys = 101; /* fewer than S */
            build(&x, tokens, 1);
            const struct cost_pass pass = {.name = "decode", .B = x.y.B, .T = x.y.T, .S = x.y.S, .absorbed = true};
            const struct sym_binding at[] = {
                {x.y.B, sym_int(x.c, B)}, {x.y.T, sym_int(x.c, tokens)}, {x.y.S, sym_int(x.c, S)}};
            struct cost_ops ops;
            assert_int_equal(cost_build(x.a, x.c, &x.y, &x.m, &x.v, &pass, 1, &ops, &e), ERR_OK);
            assert_int_equal(cost_bind(x.c, &x.y, &x.m, 1, &ops, &e), ERR_OK);
            assert_int_equal(ops.n, x.ops.n);
            for (size_t k = 0; k < ops.n; k++) {
                near(value(x.ops.op[k].flops), value(sym_bind(x.c, ops.op[k].flops, at, 3)), ops.op[k].name);
                near(value(x.ops.op[k].kv_bytes), value(sym_bind(x.c, ops.op[k].kv_bytes, at, 3)), ops.op[k].name);
                near(value(x.ops.op[k].kv_needed_bytes), value(sym_bind(x.c, ops.op[k].kv_needed_bytes, at, 3)),
                     ops.op[k].name);
            }
            arena_close(x.a);
        }
}

/* A free size of the whole model, as a rank has it, and every size times a factor. */
static void test_sizes_that_stay_free(void **state)
{
    (void)state;
    struct made x;
    struct err e = {0};
    load(&x, "llama-3.1-8b");
    const struct mixer *k = &x.m.kinds[0].mixer;
    const double D = (double)x.m.hidden, F = (double)x.m.kinds[0].ffn.width;
    const struct sym *const sizes[] = {x.y.F, x.y.K, x.y.H, x.y.D};
    for (int64_t tp = 1; tp <= 16; tp *= 4)
        for (size_t i = 0; i < 4; i++)
            for (int kind = -1; kind <= 1; kind++) {
                const struct cost_binding how = {.free = sizes[i], .free_kind = kind};
                const struct cost_pass pass = {.name = "decode",
                                               .B = sym_int(x.c, B),
                                               .T = sym_int(x.c, 1),
                                               .S = sym_int(x.c, S),
                                               .absorbed = true};
                const double free = 96 * (double)(i + 1), t = (double)tp;
                const struct sym_binding at = {sizes[i], sym_num(x.c, free)};
                const bool here = kind <= 0 || sizes[i] == x.y.D; /* kind 1 there is not */
                assert_int_equal(cost_build(x.a, x.c, &x.y, &x.m, &x.v, &pass, tp, &x.ops, &e), ERR_OK);
                assert_int_equal(cost_bind_as(x.c, &x.y, &x.m, tp, &how, &x.ops, &e), ERR_OK);
                const double f = (i == 0 && here ? free : F) / t, d = i == 3 ? free : D;
                const double h = i == 2 && here ? free : (double)k->head_dim;
                double kv = (i == 1 && here ? free : (double)k->kv_heads) / t;
                if (kv < 1) kv = 1;
                near(value(sym_bind(x.c, op_of(&x, "up_proj")->flops, &at, 1)), 2 * B * d * 2 * f, "up_proj");
                near(value(sym_bind(x.c, op_of(&x, "qkv_proj")->flops, &at, 1)),
                     2 * B * d * ((double)k->heads / t + 2 * kv) * h, "qkv_proj");
                near(value(sym_bind(x.c, op_of(&x, "kv_write")->kv_bytes, &at, 1)), B * kv * 2 * h * 2, "kv_write");
            }
    arena_close(x.a);
}

static void test_sizes_times_a_factor(void **state)
{
    (void)state;
    struct made x;
    struct err e = {0};
    load(&x, "llama-3.1-8b");
    const struct cost_binding how = {.free_kind = -1, .relative = true};
    const struct cost_pass pass = {
        .name = "decode", .B = sym_int(x.c, B), .T = sym_int(x.c, 1), .S = sym_int(x.c, S), .absorbed = true};
    assert_int_equal(cost_build(x.a, x.c, &x.y, &x.m, &x.v, &pass, 1, &x.ops, &e), ERR_OK);
    assert_int_equal(cost_bind_as(x.c, &x.y, &x.m, 1, &how, &x.ops, &e), ERR_OK);
    const struct sym_binding at[] = {
        {x.y.D, sym_int(x.c, 3)}, {x.y.F, sym_int(x.c, 5)},     {x.y.N, sym_int(x.c, 7)},    {x.y.K, sym_int(x.c, 11)},
        {x.y.H, sym_int(x.c, 2)}, {x.y.Hv, sym_int(x.c, 1009)}, {x.y.b_kv, sym_int(x.c, 13)}};
    const struct mixer *k = &x.m.kinds[0].mixer;
    const double D = 3.0 * (double)x.m.hidden, F = 5.0 * (double)x.m.kinds[0].ffn.width, H = 2.0 * (double)k->head_dim;
    const double N = 7.0 * (double)k->heads, K = 11.0 * (double)k->kv_heads; /* values are as wide as keys */
    near(value(sym_bind(x.c, op_of(&x, "up_proj")->flops, at, 7)), 2 * B * D * 2 * F, "up_proj");
    near(value(sym_bind(x.c, op_of(&x, "qkv_proj")->flops, at, 7)), 2 * B * D * (N + 2 * K) * H, "qkv_proj");
    near(value(sym_bind(x.c, op_of(&x, "kv_write")->kv_bytes, at, 7)), B * K * 2 * H * 2 * 13, "kv_write");
    arena_close(x.a);
}

static double size_of(struct made *x, int kind, int64_t tp, const struct sym *var)
{
    const struct sym *out;
    struct err e = {0};
    assert_int_equal(cost_size(x->c, &x->y, &x->m, kind, tp, var, &out, &e), ERR_OK);
    return out ? value(out) : -1;
}

static void test_sizes_of_kinds(void **state)
{
    (void)state;
    struct made x;
    load(&x, "llama-3.1-8b");
    const struct mixer *k = &x.m.kinds[0].mixer;
    near(size_of(&x, 0, 2, x.y.N), (double)k->heads / 2, "N");
    near(size_of(&x, 0, 2, x.y.F), (double)x.m.kinds[0].ffn.width / 2, "F");
    near(size_of(&x, -1, 1, x.y.D), (double)x.m.hidden, "D");
    near(size_of(&x, 0, 1, x.y.b_kv), 2, "b_kv");
    near(size_of(&x, -1, 1, x.y.b_kv), -1, "no cache outside the layers");
    near(size_of(&x, 0, 1, x.y.E), -1, "no experts");
    near(size_of(&x, -1, 1, x.y.F), -1, "no MLP outside the layers");
    near(size_of(&x, 0, 1, x.y.B), -1, "no size of the model");
    near(size_of(&x, 0, 1, x.y.W), -1, "no window");
    x.m.kinds[0].mixer.window_tokens = 1;
    near(size_of(&x, 0, 1, x.y.W), 1, "a window of one token is one");
    arena_close(x.a);
    load(&x, "falcon-mamba-7b");
    near(size_of(&x, 0, 1, x.y.b_kv), -1, "no cache of a state");
    arena_close(x.a);
    load(&x, "deepseek-v3");
    near(size_of(&x, 0, 1, x.y.b_kv), 2, "a cache of latents");
    arena_close(x.a);
}

/* Adapters of a gated query, of an input twice as wide, of values that are keys. */
static void test_low_rank(void **state)
{
    (void)state;
    struct made x;
    struct err e = {0};
    struct lora_cost cost;
    load(&x, "llama-3.1-8b");
    struct layer_kind *k = &x.m.kinds[0];
    const double D = (double)x.m.hidden, q = (double)(k->mixer.heads * k->mixer.head_dim);
    const double kv = (double)(k->mixer.kv_heads * k->mixer.head_dim), L = (double)k->count;
    k->mixer.output_gate = true;
    k->mixer.doubled_input = true;
    const struct lora all = {.rank = 11, .modules = LORA_Q | LORA_K | LORA_V | LORA_O};
    assert_int_equal(lora_cost(&x.m, &all, &cost, &e), ERR_OK);
    near(cost.params, 11 * L * ((2 * D + 2 * q) + 2 * (2 * D + kv) + (q + D)), "params");
    near(cost.flops_per_token, 2 * cost.params, "flops");
    k->mixer.v_is_k = true;
    const struct lora keys = {.rank = 11, .modules = LORA_Q | LORA_K | LORA_O};
    assert_int_equal(lora_cost(&x.m, &keys, &cost, &e), ERR_OK);
    near(cost.params, 11 * L * ((2 * D + 2 * q) + (2 * D + kv) + (q + D)), "params without values");
    assert_int_equal(lora_cost(&x.m, &all, &cost, &e), ERR_USAGE); /* there is no v_proj */
    k->ffn.channel_mix = true;
    const struct lora up = {.rank = 11, .modules = LORA_UP};
    assert_int_equal(lora_cost(&x.m, &up, &cost, &e), ERR_USAGE);
    k->ffn.channel_mix = false;
    k->ffn.residual_unit = true;
    assert_int_equal(lora_cost(&x.m, &up, &cost, &e), ERR_USAGE);
    arena_close(x.a);
}

/* 2^53 parameters are too many to count. */
static void test_too_many_parameters(void **state)
{
    (void)state;
    struct made x;
    struct err e = {0};
    struct cost_parameters p;
    load(&x, "llama-3.1-8b");
    x.m.kinds_n = 0; /* embedding and head alone: 2*V*D and the last norm's D */
    x.m.hidden = 1 << 22;
    x.m.vocab = 1 << 30;
    assert_int_equal(cost_parameters(x.a, &x.m, &x.v, &p, &e), ERR_RANGE);
    x.m.vocab = (1 << 30) - 1; /* 2^53 - 2^23 + 2^22 */
    assert_int_equal(cost_parameters(x.a, &x.m, &x.v, &p, &e), ERR_OK);
    assert_true(p.total == 9007199254740992.0 - 4194304);
    assert_true(p.head == 4503599627370496.0 - 4194304 && p.embedding == p.head && p.routed == 0);
    arena_close(x.a);
    load(&x, "mixtral-8x7b");
    const struct ffn *f = &x.m.kinds[0].ffn;
    assert_int_equal(cost_parameters(x.a, &x.m, &x.v, &p, &e), ERR_OK);
    near(p.routed, (double)x.m.kinds[0].count * 8 * 3 * (double)f->width * (double)x.m.hidden, "routed");
    near(p.active, p.total - p.routed * 6 / 8, "active");
    near(p.head, (double)x.m.vocab * (double)x.m.hidden, "head");
    arena_close(x.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_mix_with_wide_values),
        cmocka_unit_test(test_decays_without_a_waist),
        cmocka_unit_test(test_outliers_of_a_fused_mlp),
        cmocka_unit_test(test_outliers_of_experts),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_routing),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_fixed_passes),
        cmocka_unit_test(test_sizes_that_stay_free),
        cmocka_unit_test(test_sizes_times_a_factor),
        cmocka_unit_test(test_sizes_of_kinds),
        cmocka_unit_test(test_low_rank),
        cmocka_unit_test(test_too_many_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
