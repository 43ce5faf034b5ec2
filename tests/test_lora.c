/* Adapters: against a count matrix by matrix, published sizes, tensors as vLLM makes them, and all ways to choose. */
#include "calc/cost/lora.h"
#include "calc/cost/mixed.h"
#include "tests/layouts.h"

static double params(struct arena *a, const char *model, const char *text)
{
    struct model m;
    struct lora x;
    struct lora_cost c = {.params = (double)NAN};
    struct err e = {0};
    if (model_load(a, model, NULL, 0, &m, &e) != ERR_OK || lora_parse(text, &x, &e) != ERR_OK ||
        lora_cost(&m, &x, &c, &e) != ERR_OK)
        fail_msg("%s %s: %s", model, text, e.text);
    assert_true(layout_routed(&m) || c.flops_per_token == 2 * c.params);
    return c.params;
}

/* "trainable params" that PEFT prints for these models: q and v, and all linear layers. */
static void test_published_sizes(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    assert_true(params(a, "llama-2-7b", "8") == 4194304);
    assert_true(params(a, "llama-2-7b", "16:all") == 39976960);
    assert_true(params(a, "llama-3.1-8b", "16:all") == 41943040);
    assert_true(params(a, "llama-3.1-8b", "8:q_proj,v_proj") == 3407872);
    arena_close(a);
}

/* Both factors of every matrix, one element at a time. */
static void test_count_of_elements(void **state)
{
    static const int SHAPE[][2] = {{4096, 4096},  {1024, 4096},  {1024, 4096}, {4096, 4096},
                                   {14336, 4096}, {14336, 4096}, {4096, 14336}}; /* out, in */
    static const char *const NAMES[] = {"q", "k", "v", "o", "gate", "up", "down"};
    (void)state;
    struct arena *a = arena_open();
    const int rank = 7, layers = 32;
    for (size_t i = 0; i < sizeof SHAPE / sizeof SHAPE[0]; i++) {
        double n = 0;
        for (int l = 0; l < layers; l++)
            for (int r = 0; r < rank; r++) {
                for (int k = 0; k < SHAPE[i][1]; k++) n++;
                for (int k = 0; k < SHAPE[i][0]; k++) n++;
            }
        const char *text = arena_printf(a, "7:%s", NAMES[i]);
        assert_true(params(a, "llama-3.1-8b", text) == n);
    }
    /* an adapter of the MLP alone asks nothing of attention, whatever kind that is */
    assert_true(params(a, "minicpm3-4b", "7:gate,up,down") == 62 * 3 * 7 * (2560.0 + 6400));
    arena_close(a);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *model, *text, *why;
    } CASES[] = {{"deepseek-v3", "8", "no q_proj"},
                 {"llama-3.1-8b", "8:kv_b", "no kv_b_proj"},
                 {"falcon-mamba-7b", "8", "recurrent mixer"},
                 {"qwen3-coder-next", "8:all", "recurrent mixer"},
                 {"kimi-linear-48b-a3b", "8:o", "recurrent mixer"}, /* linear attention has an o_proj too */
                 {"gpt2", "8:gate", "no gate_proj"}};
    static const char *const WRONG[] = {"", "0", "8:", "8:q,", "8:head", "q", "8:qq", "8:q_pro"};
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct lora x;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct model m;
        struct lora_cost c;
        assert_int_equal(model_load(a, CASES[i].model, NULL, 0, &m, &e), ERR_OK);
        assert_int_equal(lora_parse(CASES[i].text, &x, &e), ERR_OK);
        assert_int_equal(lora_cost(&m, &x, &c, &e), ERR_USAGE);
        if (!strstr(e.text, CASES[i].why)) fail_msg("'%s' does not say '%s'", e.text, CASES[i].why);
    }
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        assert_int_equal(lora_parse(WRONG[i], &x, &e), ERR_USAGE);
    /* q and v of the attention layers of hybrids, whatever is between them: every fourth of 48 (queries with a gate),
     * 4 of 40, 6 of 16 */
    assert_true(params(a, "qwen3-coder-next", "8") == 12 * 8.0 * (2048 + 2 * 4096 + 2048 + 512));
    assert_true(params(a, "granite-4.0-h-small", "8") == 4 * 8.0 * (4096 + 4096 + 4096 + 1024));
    assert_true(params(a, "lfm2-1.2b", "8:q,v") == 6 * 8.0 * (2048 + 2048 + 2048 + 512));
    /* attention alone stands beside experts; two matrices are all of an ungated MLP */
    assert_true(params(a, "mixtral-8x7b", "8") == 32 * 8.0 * (4096 + 4096 + 4096 + 1024));
    assert_true(params(a, "gpt2", "4:all") == 12 * 4.0 * (4 * 2 * 768 + 2 * (768 + 3072)));
    arena_close(a);
}

/* Experts have adapters of their own, of which a token passes k; latents two products each. */
static void test_experts_and_latents(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct lora_cost c;
    struct lora x;
    const struct model mixtral = load(a, "mixtral-8x7b");
    assert_int_equal(lora_parse("7:gate,up,down", &x, &e), ERR_OK);
    assert_int_equal(lora_cost(&mixtral, &x, &c, &e), ERR_OK);
    assert_true(c.params == 32 * 8 * 3 * 7 * (4096.0 + 14336));
    assert_true(c.flops_per_token == 2 * 32 * 2 * 3 * 7 * (4096.0 + 14336));
    const double q = 7168 + 1536 + (1536 + 128 * 192.0), kv = (7168 + 576) + (512 + 128 * 256.0);
    const double o = 128 * 128.0 + 7168;
    assert_true(params(a, "deepseek-v3", "11:q_a,q_b,kv_a,kv_b,o") == 61 * 11 * (q + kv + o));
    const double dense = 3 * 3 * (7168.0 + 18432), experts = 58 * 257 * 3 * (7168.0 + 2048);
    assert_true(params(a, "deepseek-v3", "11:all") == 11 * (61 * (q + kv + o) + dense + experts));
    arena_close(a);
}

/* ---- served ---- */

static double number(const struct sym *x)
{
    double v = (double)NAN;
    if (!sym_constant(x, &v)) fail_msg("no number");
    return v;
}

struct served {
    const char *model;
    struct model_adapters adapters;
    struct layout layout;
    bool absorbed;
    int B, T;
};

struct worked {
    struct cost_ops ops;
    double slot_bytes, weight_bytes, flops; /* flops: of the adapters' products, of all layers */
    struct model model;
};

static struct worked work(struct arena *a, const struct served *q)
{
    struct err e = {0};
    struct worked r = {.model = load(a, q->model)};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions v = cost_conventions_of(false);
    const struct cost_layout l = {.layout = q->layout};
    const struct cost_pass pass = {
        .name = "pass", .B = sym_int(c, q->B), .T = sym_int(c, q->T), .S = sym_int(c, 64), .absorbed = q->absorbed};
    if (q->adapters.slots > 0 && lora_serve(&r.model, &q->adapters, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(cost_build_layout(a, c, &y, &r.model, &v, &pass, &l, &r.ops, &e), ERR_OK);
    if (cost_bind_layout(c, &y, &r.model, &l, &r.ops, &e) != ERR_OK) fail_msg("%s", e.text);
    r.slot_bytes = number(cost_adapter_bytes(c, &r.ops, &v, NULL));
    r.weight_bytes = number(cost_weight_bytes(c, &r.ops, &v));
    for (size_t i = 0; i < r.ops.n; i++)
        if (cost_op_adapts(&r.ops.op[i])) r.flops += (double)r.ops.op[i].count * number(r.ops.op[i].flops);
    return r;
}

static const struct cost_op *found(const struct worked *w, const char *name)
{
    for (size_t i = 0; i < w->ops.n; i++)
        if (strcmp(w->ops.op[i].name, name) == 0) return &w->ops.op[i];
    return NULL;
}

/* Elements of a stacked tensor [slots, 1, rows, columns]. */
static double stacked(int slots, int rows, int columns) { return (double)slots * rows * columns; }

/* Llama 3.1 8B on one of tp ranks, by the classes of vllm/lora/layers, tensor after tensor. */
static double llama_elements(int tp, int slots, int rank, bool sharded)
{
    const int D = 4096, H = 128, F = 14336, V = 128256, q = 32 / tp * H, kv = (tp >= 8 ? 1 : 8 / tp) * H;
    const int rows_a = sharded ? rank / tp : rank, rows_b = sharded ? D / tp : D;
    double layer = 0;
    for (int slice = 0; slice < 3; slice++) layer += stacked(slots, rows_a, D); /* qkv_proj */
    layer += stacked(slots, q, rank) + stacked(slots, kv, rank) + stacked(slots, kv, rank);
    layer += stacked(slots, rank, 32 / tp * H) + stacked(slots, rows_b, rank); /* o_proj */
    for (int slice = 0; slice < 2; slice++)                                    /* gate_up_proj */
        layer += stacked(slots, rows_a, D) + stacked(slots, F / tp, rank);
    layer += stacked(slots, rank, F / tp) + stacked(slots, rows_b, rank);        /* down_proj */
    return 32 * layer + 2 * (stacked(slots, V, rank) + stacked(slots, D, rank)); /* embedding, head */
}

static void test_slots_of_a_rank(void **state)
{
    (void)state;
    static const int RANKS[] = {1, 2, 4, 16}; /* of the last each has a KV head that another has too */
    for (size_t i = 0; i < COUNT(RANKS); i++)
        for (int sharded = 0; sharded < 2; sharded++) {
            struct arena *a = arena_open();
            const int tp = RANKS[i], rank = sharded ? 48 : 7;
            struct served q = {.model = "llama-3.1-8b", .layout = {.tp = tp}, .B = 3, .T = 1};
            const struct worked bare = work(a, &q);
            assert_true(bare.slot_bytes == 0 && !found(&bare, "qkv_proj_shrink"));
            q.adapters = (struct model_adapters){.slots = 5, .rank = rank, .among = 5, .sharded = sharded};
            const struct worked w = work(a, &q);
            const double bytes = 2 * llama_elements(tp, 5, rank, sharded);
            assert_true(w.slot_bytes == bytes);
            assert_true(w.weight_bytes == bare.weight_bytes + bytes);
            /* One factor of each pair is on every rank whole: a share of 1/tp is too little. Where both are split
             * those of the vocabulary are whole still. */
            if (tp > 1) assert_true(w.slot_bytes > (sharded ? 1 : 1.3) * 2 * llama_elements(1, 5, rank, sharded) / tp);
            struct cost_parameters counted;
            struct err e = {0};
            const struct cost_conventions v = cost_conventions_of(false);
            assert_int_equal(cost_parameters(a, &w.model, &v, &counted, &e), ERR_OK);
            assert_true(counted.total == 8030261248); /* adapters are none of the model's */
            arena_close(a);
        }
}

/* Where the slots are of the products that an adapter names, they hold as many of it, and a token's flops are its. */
static void test_slots_hold_adapters(void **state)
{
    (void)state;
    static const char *const MODELS[] = {"llama-3.1-8b", "qwen3-8b", "minicpm3-4b", "gemma-2-2b", "gpt2"};
    for (size_t i = 0; i < COUNT(MODELS); i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct lora_cost one;
        const struct lora x = {.rank = 13, .modules = LORA_ALL};
        const struct served q = {
            .model = MODELS[i], .adapters = {.slots = 3, .rank = 13, .among = 17, .modules = LORA_ALL}, .B = 5, .T = 7};
        const struct worked w = work(a, &q);
        assert_int_equal(lora_cost(&w.model, &x, &one, &e), ERR_OK);
        assert_true(w.slot_bytes == 2 * 3 * one.params);
        if (strcmp(MODELS[i], "minicpm3-4b") != 0) /* expands the latents of all old tokens too */
            assert_true(w.flops == 5 * 7 * one.flops_per_token);
        arena_close(a);
    }
}

static void test_modules_choose_products(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct served q = {.model = "llama-3.1-8b", .B = 2, .T = 1};
    q.adapters = (struct model_adapters){.slots = 3, .rank = 7, .among = 3, .modules = LORA_V | LORA_DOWN};
    const struct worked w = work(a, &q);
    assert_true(found(&w, "qkv_proj_shrink") && found(&w, "down_proj_expand")); /* q and k too: engines stack them */
    assert_true(!found(&w, "o_proj_shrink") && !found(&w, "head_shrink") && !found(&w, "embed_expand"));
    assert_true(w.slot_bytes == 2 * 3 * 7 * 32 * (3 * 4096 + 4096 + 2 * 1024 + 14336 + 4096.0));
    arena_close(a);
}

/* Distinct adapters of B sequences, over all A^B choices. */
static double mean_distinct(int A, int B)
{
    double ways = 1, sum = 0;
    for (int i = 0; i < B; i++) ways *= A;
    for (int way = 0; way < (int)ways; way++) {
        unsigned seen = 0;
        for (int i = 0, rest = way; i < B; i++, rest /= A) seen |= 1U << rest % A;
        for (; seen; seen &= seen - 1) sum++;
    }
    return sum / ways;
}

static void test_distinct_adapters(void **state)
{
    (void)state;
    static const struct {
        int among, batch, slots;
    } CASES[] = {{1, 5, 2}, {3, 1, 3}, {3, 4, 3}, {5, 6, 5}, {7, 5, 7}, {5, 6, 3}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        const struct served q = {.model = "llama-3.1-8b",
                                 .adapters = {.slots = CASES[i].slots, .rank = 7, .among = CASES[i].among},
                                 .B = CASES[i].batch,
                                 .T = 2};
        const struct worked w = work(a, &q);
        const double n = fmin(CASES[i].slots, mean_distinct(CASES[i].among, CASES[i].batch));
        const double rows = 2.0 * CASES[i].batch;
        const struct cost_op *shrink = found(&w, "down_proj_shrink"), *expand = found(&w, "qkv_proj_expand");
        near_to(number(shrink->weight_bytes), 2 * n * 7 * 14336, 1e-14);
        near_to(number(shrink->activation_bytes), rows * (2 * 14336 + 2 * 4 * 7), 1e-14);
        near_to(number(shrink->flops), 2 * rows * 7 * 14336, 1e-14);
        near_to(number(expand->weight_bytes), 2 * n * 7 * 6144, 1e-14);
        near_to(number(expand->activation_bytes), rows * (4 * 3 * 7 + 2 * 2 * 6144), 1e-14);
        near_to(number(expand->flops), 2 * rows * 7 * 6144, 1e-14);
        arena_close(a);
    }
}

static int bits(unsigned x)
{
    int n = 0;
    for (; x; x &= x - 1) n++;
    return n;
}

/* Pairs of an adapter and an expert, over all choices of two sequences of two tokens: 2 of 8 experts, 1 of A adapters.
 */
static double mean_pairs(int A)
{
    unsigned pair[28];
    size_t n = 0;
    double same = 0, apart = 0;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++) pair[n++] = 1U << i | 1U << k;
    for (size_t w = 0; w < 28 * 28; w++)
        for (size_t x = 0; x < 28 * 28; x++) {
            const unsigned one = pair[w / 28] | pair[w % 28], other = pair[x / 28] | pair[x % 28];
            same += bits(one | other);
            apart += bits(one) + bits(other);
        }
    return (same / A + apart * (A - 1) / A) / (28.0 * 28 * 28 * 28);
}

static void test_experts_of_adapters(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct served q = {.model = "mixtral-8x7b", .B = 2, .T = 2};
    q.adapters = (struct model_adapters){.slots = 5, .rank = 7, .among = 5};
    struct worked w = work(a, &q);
    near_to(number(found(&w, "experts_up_shrink")->weight_bytes), mean_pairs(5) * 2 * 2 * 7 * 4096, 1e-14);
    near_to(number(found(&w, "experts_down_expand")->weight_bytes), mean_pairs(5) * 2 * 7 * 4096, 1e-14);
    near_to(number(found(&w, "experts_up_shrink")->flops), 2 * 4 * 2 * 2 * 7 * 4096.0, 1e-14);
    q.adapters.among = 1;
    w = work(a, &q);
    near_to(number(found(&w, "experts_up_shrink")->weight_bytes), mean_pairs(1) * 2 * 2 * 7 * 4096, 1e-14);
    /* a rank of two has half of the columns of every expert; one of two parts has half of the experts whole */
    const double D = 4096, F = 14336, attention = 3 * D + 16 * 128 + 8 * 128 + 16 * 128 + D, router = D + 8;
    const double ends = 2 * (32000 + D);
    q.layout = (struct layout){.tp = 2};
    w = work(a, &q);
    assert_true(w.slot_bytes == 2 * 5 * 7 * (32 * (attention + router + 8 * (2 * (D + F / 2) + F / 2 + D)) + ends));
    q.layout = (struct layout){.tp = 2, .ep = 2};
    w = work(a, &q);
    assert_true(w.slot_bytes == 2 * 5 * 7 * (32 * (attention + router + 4 * 3 * (D + F)) + ends));
    arena_close(a);
}

/* kv_b_proj has slots in both forms, work in one alone; a mixed step holds them once. */
static void test_latents_served(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct served q = {.model = "minicpm3-4b", .B = 3, .T = 1, .absorbed = true};
    q.adapters = (struct model_adapters){.slots = 3, .rank = 7, .among = 3};
    const struct worked decode = work(a, &q);
    q.absorbed = false;
    const struct worked prefill = work(a, &q);
    assert_true(decode.slot_bytes == prefill.slot_bytes);
    assert_true(number(found(&decode, "kv_b_shrink")->flops) == 0);
    assert_true(number(found(&prefill, "kv_b_shrink")->flops) == 2.0 * 3 * 64 * 7 * 256);
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions v = cost_conventions_of(false);
    const struct cost_layout l = {.layout = {.tp = 1}};
    struct cost_mixed mixed;
    assert_int_equal(cost_build_mixed(a, c, &y, &decode.model, &v, &l, 1, &mixed, &e), ERR_OK);
    assert_int_equal(cost_bind_mixed(a, c, &y, &decode.model, &l, &mixed, &e), ERR_OK);
    assert_true(number(cost_adapter_bytes(c, &mixed.ops, &v, NULL)) == decode.slot_bytes);
    arena_close(a);
}

/* Both factors split: what lies between is gathered, or summed, in fp32. */
static void test_sharded_sends(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct served q = {.model = "llama-3.1-8b", .layout = {.tp = 4}, .B = 3, .T = 5};
    q.adapters = (struct model_adapters){.slots = 5, .rank = 24, .among = 5, .sharded = true};
    struct worked w = work(a, &q);
    near_to(number(found(&w, "qkv_proj_all_gather")->wire_bytes), 3 * 15 * 3 * 6 * 4.0, 1e-14); /* a part to 3 others */
    near_to(number(found(&w, "qkv_proj_shrink")->flops), 2 * 15 * 4096 * 3 * 6.0, 1e-14);
    near_to(number(found(&w, "o_proj_expand")->flops), 2 * 15 * 24 * 1024.0, 1e-14);
    assert_true(found(&w, "o_proj_all_reduce") && found(&w, "down_proj_all_reduce"));
    q.adapters.sharded = false;
    w = work(a, &q);
    assert_true(!found(&w, "qkv_proj_all_gather") && !found(&w, "o_proj_all_reduce"));
    struct model m = load(a, "llama-3.1-8b");
    q.adapters = (struct model_adapters){.slots = 5, .rank = 6, .among = 5, .sharded = true};
    assert_int_equal(lora_serve(&m, &q.adapters, &e), ERR_OK);
    assert_int_equal(layout_check(&m, &q.layout, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "first factor"));
    arena_close(a);
}

/* Memory has the slots, of the stage that has most; a layout that is a symbol, as plans have it, gives the same. */
static void test_steps(void **state)
{
    static const struct {
        const char *model;
        struct layout layout;
    } CASES[] = {{"llama-3.1-8b", {.tp = 1}},
                 {"llama-3.1-8b", {.tp = 4}},
                 {"llama-3.1-8b", {.tp = 2, .pp = 2}},
                 {"mixtral-8x7b", {.tp = 2, .dp = 2, .ep = 4}}};
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++)
        for (int sharded = 0; sharded < 2; sharded++) {
            struct arena *a = arena_open();
            struct err e = {0};
            double bare[STEP_VALUES_N], fixed[STEP_VALUES_N], any[STEP_VALUES_N];
            const struct hw hw = device(a, "h100-sxm");
            const struct model_adapters x = {.slots = 3, .rank = 24, .among = 17, .sharded = sharded};
            const struct model without = load(a, CASES[i].model);
            struct model m = load(a, CASES[i].model);
            const struct layout *l = &CASES[i].layout;
            if (lora_serve(&m, &x, &e) != ERR_OK) fail_msg("%s", e.text);
            const struct step_setup of = {.layout = *l, .fidelity = STEP_ROOFLINE},
                                    free = {.any_layout = true, .fidelity = STEP_ROOFLINE};
            eval(compile(a, &without, &hw, of), NULL, 12, 512, 1024, bare);
            struct step *s = compile(a, &m, &hw, of);
            eval(s, NULL, 12, 512, 1024, fixed);
            eval(compile(a, &m, &hw, free), l, 12, 512, 1024, any);
            near_to(step_adapter_bytes(s), fixed[STEP_adapter_bytes], 1e-14);
            assert_true(fixed[STEP_adapter_bytes] > 0 && bare[STEP_adapter_bytes] == 0);
            if (l->pp == 0) {
                near_to(fixed[STEP_weight_bytes], bare[STEP_weight_bytes] + fixed[STEP_adapter_bytes], 1e-14);
                near_to(fixed[STEP_memory_bytes], bare[STEP_memory_bytes] + fixed[STEP_adapter_bytes], 1e-14);
            }
            assert_true(fixed[STEP_decode_step_s] > bare[STEP_decode_step_s]);
            static const enum step_value SAME[] = {STEP_weight_bytes,  STEP_adapter_bytes, STEP_memory_bytes,
                                                   STEP_decode_step_s, STEP_prefill_s,     STEP_decode_wire_bytes};
            for (size_t k = 0; k < COUNT(SAME); k++) near_to(any[SAME[k]], fixed[SAME[k]], 1e-12);
            arena_close(a);
        }
}

static void test_not_served(void **state)
{
    static const struct {
        const char *model, *why;
    } CASES[] = {
        {"falcon-mamba-7b", "recurrent mixer"}, {"deepseek-v3.2", "an indexer"}, {"gemma-3n-e4b", "beside the layers"}};
    (void)state;
    struct arena *a = arena_open();
    const struct model_adapters x = {.slots = 1, .rank = 8, .among = 1};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct err e = {0};
        struct model m = load(a, CASES[i].model);
        assert_int_equal(lora_serve(&m, &x, &e), ERR_USAGE);
        if (!strstr(e.text, CASES[i].why)) fail_msg("'%s' does not say '%s'", e.text, CASES[i].why);
        assert_int_equal(m.adapters.slots, 0);
    }
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_sizes),
        cmocka_unit_test(test_count_of_elements),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_experts_and_latents),
        cmocka_unit_test(test_slots_of_a_rank),
        cmocka_unit_test(test_slots_hold_adapters),
        cmocka_unit_test(test_modules_choose_products),
        cmocka_unit_test(test_distinct_adapters),
        cmocka_unit_test(test_experts_of_adapters),
        cmocka_unit_test(test_latents_served),
        cmocka_unit_test(test_sharded_sends),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_not_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
