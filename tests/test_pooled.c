/* Attention to a window and to entries of several tokens, and hyper-connections (DeepSeek-V4): every operator against
 * sums written out here, by loops over queries, keys and tensors; the cache and the share of a rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "calc/cost/cost.h"
#include "calc/model/whatif.h"
#include "calc/time/mix.h"

/* Width, heads, their width and its rotated part, query latent, groups and rank of the output; window, tokens of an
 * entry (light: chosen, in two spans; heavy: all), indexer, chosen tokens; streams and rounds. */
enum { D = 10, N = 4, H = 6, R = 2, Q = 7, GO = 2, RO = 5, W = 4, LIGHT = 4, HEAVY = 8, NI = 3, HI = 6, U = 2 * LIGHT };
enum { A = 3, ROUNDS = 5, E = 6, CHOSEN = 2, WIDE = 8, V = 18 };

static const char CONFIG[] =
    "{\"model_type\":\"deepseek_v4\",\"hidden_size\":10,\"num_hidden_layers\":3,\"num_attention_heads\":4,\"head_dim\":"
    "6,"
    "\"qk_rope_head_dim\":2,\"q_lora_rank\":7,\"o_groups\":2,\"o_lora_rank\":5,\"sliding_window\":4,\"vocab_size\":18,"
    "\"compress_ratios\":[0,4,128,0],\"compress_rates\":{\"heavily_compressed_attention\":8},\"index_n_heads\":3,"
    "\"index_head_dim\":6,\"index_topk\":2,\"hc_mult\":3,\"hc_sinkhorn_iters\":5,\"n_routed_experts\":6,"
    "\"num_experts_per_tok\":2,\"moe_intermediate_size\":8,\"n_shared_experts\":1,\"num_hash_layers\":1,"
    "\"torch_dtype\":\"bfloat16\"";

struct pass {
    int B, T, S;
    bool uncached; /* keys and values are made in the pass, and none is kept */
};

/* What an operator has in all: of bytes those in 2 each, and of states in 4. Needed: what is read of earlier passes and
 * kept for later ones; held: what is there after the pass. */
struct sum {
    double flops, vector, weights, cache, state, activations, needed, state_needed, held;
};

/* Queries and the keys that they see, counted one by one: at most `most` (0: all), each of them 1/each of an entry. */
static double pairs(const struct pass *p, int most, int each)
{
    double n = 0;
    for (int query = p->S - p->T; query < p->S; query++)
        for (int key = query, left = most; key >= 0 && (most == 0 || left > 0); key--, left--) n += 1.0 / each;
    return n * p->B;
}

/* Tokens whose vectors are read: of a window those that any query has; chosen ones as different as they can be. */
static double window_keys(const struct pass *p)
{
    double n = 0;
    for (int key = 0; key < p->S; key++) n += key > p->S - p->T - W;
    return n * p->B;
}

static double chosen_keys(const struct pass *p) { return p->B * (p->T * U < p->S ? p->T * U : p->S) / (double)LIGHT; }

/* Tokens before the pass whose vectors one of its queries sees, and tokens of the pass that are in a window after it.
 */
static double window_needed(const struct pass *p)
{
    double n = 0;
    for (int key = 0; key < p->S; key++) n += key < p->S - p->T ? key > p->S - p->T - W : key >= p->S - W;
    return n * p->B;
}

/* Of chosen ones the first query has itself, so one fewer of those before it; all new ones are written. */
static double chosen_needed(const struct pass *p)
{
    const int before = p->S - p->T;
    return p->B * ((before < U - 1 ? before : U - 1) + p->T) / (double)LIGHT;
}

/* rows x in times in x out, by tensors in 2 bytes. */
static struct sum product(double rows, double in, double out)
{
    return (struct sum){.flops = 2 * rows * in * out, .weights = 2 * in * out, .activations = 2 * rows * (in + out)};
}

static struct sum elementwise(double rows, double width, double flops)
{
    return (struct sum){.vector = rows * width * flops, .activations = 2 * rows * 2 * width};
}

static double rows_of(const struct pass *p) { return (double)p->B * p->T; }

/* `width` numbers of each token, of which the last `most` stay (0: all). */
static struct sum written(const struct pass *p, double width, int most)
{
    double stay = 0;
    for (int token = 0; token < p->S; token++) stay += most == 0 || token >= p->S - most;
    return (struct sum){
        .cache = 2 * rows_of(p) * width, .activations = 2 * rows_of(p) * width, .held = 2 * p->B * stay * width};
}

/* A key of the indexer: fp8 elements and a float, whatever the format of the cache. */
#define INDEX_BYTES (HI + 4.0)

static struct sum index_written(const struct pass *p)
{
    struct sum r = written(p, HI / (double)LIGHT, 0);
    r.cache *= INDEX_BYTES / (2 * HI);
    r.held *= INDEX_BYTES / (2 * HI);
    return r;
}

/* An entry of `width` numbers of every `each` tokens: a bias, a softmax of 5, a product and a sum of each of `spans`
 * times as many; its norm 4. Products and gates wait in 4 bytes, and are read once a span; `spans` times `each` tokens
 * have room, and those of the pass's that can be the next entry's must. */
static struct sum entries(const struct pass *p, double width, double each, double spans)
{
    const double n = rows_of(p), wide = spans * width;
    struct sum r = {.vector = n * (8 * wide + 4 * width / each),
                    .weights = 2 * (each * wide + width),
                    .activations = 2 * n * (2 * wide + width / each)};
    if (p->uncached) return r;
    r.state = 4 * n * (1 + spans) * 2 * wide;
    for (int token = 0; token < spans * each; token++) {
        r.held += 4 * p->B * 2 * wide;
        r.state_needed += token < p->T ? 4 * p->B * 2 * wide : 0;
    }
    return r;
}

static struct sum attention(const struct pass *p, int layer)
{
    double seen = pairs(p, W, 1), keys = window_keys(p), needed = window_needed(p);
    const double all = p->B * p->S / (double)HEAVY;
    if (layer == 1) seen += pairs(p, U, LIGHT), keys += chosen_keys(p), needed += chosen_needed(p);
    if (layer == 2) seen += pairs(p, 0, HEAVY), keys += all, needed += all;
    struct sum r = {.flops = 2 * N * 2 * H * seen,
                    .vector = 5 * N * seen,
                    .weights = 2 * N,
                    .activations = 2 * rows_of(p) * N * 2 * H};
    if (p->uncached) {
        r.activations += 2 * keys * H;
    } else {
        r.cache = 2 * keys * H;
        r.needed = 2 * needed * H;
    }
    return r;
}

static struct sum index_scores(const struct pass *p)
{
    const double seen = pairs(p, 0, LIGHT), keys = 2 * p->B * p->S / (double)LIGHT * HI;
    const double cached = p->B * p->S / (double)LIGHT * INDEX_BYTES;
    const double queries = 2 * rows_of(p) * (NI * HI + NI);
    struct sum r = {.flops = 2 * NI * HI * seen, .vector = (3 * NI + 1) * seen};
    r.activations = queries + (p->uncached ? keys : 0);
    r.cache = r.needed = p->uncached ? 0 : cached;
    return r;
}

/* Heads of a group pass a matrix of their own: RO rows of N*H/GO numbers, GO times. */
static struct sum grouped(const struct pass *p)
{
    double weights = 0, flops = 0;
    for (int g = 0; g < GO; g++) {
        weights += 2.0 * RO * N * H / GO;
        flops += 2.0 * rows_of(p) * RO * N * H / GO;
    }
    return (struct sum){.flops = flops, .weights = weights, .activations = 2 * rows_of(p) * (N * H + GO * RO)};
}

/* n weights of streams: 7 for a sigmoid with scale, base and a number added; `rounds` of four operations on A x A. */
static struct sum stream_weights(const struct pass *p, int n, int scales, int rounds)
{
    return (struct sum){.vector = rows_of(p) * (7 * n + 4.0 * rounds * A * A),
                        .weights = 2 * (n + scales),
                        .activations = 2 * rows_of(p) * 2 * n};
}

/* Streams in and the block's input out; all streams and its output in, streams out, by A weights and A x A. */
static struct sum streams(const struct pass *p, bool write)
{
    double flops = 0;
    for (int stream = 0; stream < A; stream++) flops += write ? 2.0 * A * D + 2 * D : 2 * D;
    return (struct sum){.vector = rows_of(p) * flops,
                        .activations = 2 * rows_of(p) * (write ? 2 * A * D + D + A + A * A : A * D + A + D)};
}

/* A norm with a weight of each number. */
static struct sum norm(double rows, double width)
{
    struct sum r = elementwise(rows, width, 4);
    r.weights = 2 * width;
    return r;
}

static bool expected(const char *name, int layer, const struct pass *p, struct sum *out)
{
    const double n = rows_of(p), mix = (2 + A) * A;
    const double each = layer == 1 ? LIGHT : HEAVY, spans = layer == 1 ? 2 : 1;
    const struct {
        const char *name;
        struct sum sum;
    } OF[] = {
        {"q_a_proj", product(n, D, Q)},
        {"q_a_norm", norm(n, Q)},
        {"kv_norm", norm(n, H)},
        {"q_b_proj", product(n, Q, N * H)},
        {"q_norm", elementwise(n, N * H, 3)},
        {"kv_proj", product(n, D, H)},
        {"rope", elementwise(n, (N + 1) * R, 3)},
        {"unrope", elementwise(n, N * R, 3)},
        {"kv_write", written(p, H, W)},
        {"pool_proj", product(n, D, 2 * spans * H)},
        {"pool", entries(p, H, each, spans)},
        {"pool_rope", elementwise(n, R / each, 3)},
        {"pool_write", written(p, H / each, 0)},
        {"index_pool_proj", product(n, D, 4 * HI)},
        {"index_pool", entries(p, HI, LIGHT, 2)},
        {"index_pool_rope", elementwise(n, R / (double)LIGHT, 3)},
        {"index_write", index_written(p)},
        {"index_q_proj", product(n, Q, NI * HI)},
        {"index_rope", elementwise(n, NI * R, 3)},
        {"index_weights", product(n, D, NI)},
        {"index", index_scores(p)},
        {"attention", attention(p, layer)},
        {"o_a_proj", grouped(p)},
        {"o_b_proj", product(n, GO * RO, D)},
        {"join_norm", norm(n, D)},
        {"join_streams_norm", (struct sum){.vector = 4 * n * A * D, .weights = 2 * D, .activations = 4 * n * A * D}},
        {"join_proj", product(n, D, D)},
        {"join_streams_proj", product(n * A, D, D)},
        {"streams_join", (struct sum){.vector = n * A * D, .activations = 2 * n * (D + 2 * A * D)}},
        {"streams_open", (struct sum){.activations = 2 * n * (D + A * D)}},
        {"mixer_streams_norm", elementwise(n, A * D, 3)},
        {"mixer_streams_proj", product(n, A * D, mix)},
        {"mixer_streams_weights", stream_weights(p, (2 + A) * A, 3, ROUNDS)},
        {"mixer_streams_read", streams(p, false)},
        {"mixer_streams_write", streams(p, true)},
        {"mlp_streams_norm", elementwise(n, A * D, 3)},
        {"mlp_streams_weights", stream_weights(p, (2 + A) * A, 3, ROUNDS)},
        {"mlp_streams_read", streams(p, false)},
        {"mlp_streams_proj", product(n, A * D, mix)},
        {"mlp_streams_write", streams(p, true)},
        {"streams_close_norm", elementwise(n, A * D, 3)},
        {"streams_close_proj", product(n, A * D, A)},
        {"streams_close_weights", stream_weights(p, A, 1, 0)},
        {"streams_close", streams(p, false)}};
    for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++) {
        if (strcmp(OF[i].name, name) != 0) continue;
        *out = OF[i].sum;
        /* beside entries the window does not grow: room for all of it is kept, with what waits for the next entry */
        if (layer != 0 && strcmp(name, "kv_write") == 0) out->held = 0;
        if (strcmp(name, "pool") == 0 && !p->uncached) out->held += 2.0 * p->B * W * H;
        return true;
    }
    return false;
}

static struct model read_model(struct arena *a, const char *further)
{
    struct json j;
    struct model m = {0};
    struct err e = {.code = ERR_OK};
    const char *text = arena_printf(a, "%s%s}", CONFIG, further);
    if (json_parse(a, "config.json", text, strlen(text), &j, &e) != ERR_OK || model_parse(a, &j, &m, &e) != ERR_OK)
        fail_msg("%s: %s", further, e.text);
    m.name = "small";
    return m;
}

static double number(const struct sym *x)
{
    double v = -1;
    assert_true(sym_constant(x, &v));
    return v;
}

static struct cost_ops operators_by(struct arena *a, struct sym_ctx *c, const struct model *m, const struct pass *p,
                                    int64_t tp, const struct cost_conventions *v)
{
    struct err e = {.code = ERR_OK};
    struct cost_ops ops;
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "pass",
                                   .B = sym_int(c, p->B),
                                   .T = sym_int(c, p->T),
                                   .S = sym_int(c, p->S),
                                   .absorbed = true,
                                   .uncached = p->uncached};
    if (cost_build(a, c, &y, m, v, &pass, tp, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    if (cost_bind(c, &y, m, tp, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    return ops;
}

static struct cost_ops operators(struct arena *a, struct sym_ctx *c, const struct model *m, const struct pass *p,
                                 int64_t tp)
{
    static const struct cost_conventions PLAIN = {0};
    return operators_by(a, c, m, p, tp, &PLAIN);
}

static void same(const char *op, const char *what, double found, double wanted)
{
    const double off = found > wanted ? found - wanted : wanted - found;
    if (off > 1e-9 * (wanted + 1)) fail_msg("%s: %s are %.6f, not %.6f", op, what, found, wanted);
}

static int compare(const struct cost_ops *ops, const struct pass *p)
{
    int met = 0;
    for (size_t k = 0; k < ops->n; k++) {
        const struct cost_op *op = &ops->op[k];
        struct sum want;
        if (!expected(op->name, op->kind_index, p, &want)) continue;
        met++;
        same(op->name, "flops", number(op->flops), want.flops);
        same(op->name, "elementwise flops", number(op->vector_flops), want.vector);
        same(op->name, "weights", number(op->weight_bytes), want.weights);
        same(op->name, "cache", number(op->kv_bytes), want.cache);
        same(op->name, "state", number(op->state_bytes), want.state);
        same(op->name, "activations", number(op->activation_bytes), want.activations);
        same(op->name, "cache that is needed", number(op->kv_needed_bytes), want.needed);
        same(op->name, "state that is needed", number(op->state_needed_bytes), want.state_needed);
        same(op->name, "cache and state after it", number(op->held_bytes), want.held);
    }
    return met;
}

static void test_operators(void **state)
{
    static const struct pass PASSES[] = {{3, 1, 29, false}, {2, 7, 7, false},   {2, 5, 23, false}, {1, 3, 3, false},
                                         {1, 1, 2, false},  {1, 11, 29, false}, {2, 31, 31, true}};
    (void)state;
    for (size_t i = 0; i < sizeof PASSES / sizeof PASSES[0]; i++) {
        struct arena *a = arena_open();
        struct sym_ctx *c = sym_open(a);
        const struct model m = read_model(a, "");
        const struct pass *p = &PASSES[i];
        const struct cost_ops ops = operators(a, c, &m, p, 1);
        /* of all layers, of entries, of the indexer, before and behind them; what is not kept is not written */
        assert_int_equal(compare(&ops, p), 3 * 22 + 2 * 4 + 8 + 5 - (p->uncached ? 3 + 2 + 1 : 0));
        arena_close(a);
    }
}

/* The multi-token module: a layer of a window, whose streams are the target's, each joined with the embedding. */
static void test_module(void **state)
{
    static const struct pass STEP = {3, 1, 29, false};
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    const struct model m = read_model(a, ",\"num_nextn_predict_layers\":1");
    struct model module;
    (void)state;
    assert_true(model_mtp(&m, &module));
    const struct cost_ops ops = operators(a, c, &module, &STEP, 1);
    assert_int_equal(compare(&ops, &STEP), 22 + 5 + 4);
    arena_close(a);
}

/* Weights of norms are left out where they are said to be, of entries and of latents; biases and sinks are not norms.
 */
static void test_norms_uncounted(void **state)
{
    static const struct pass STEP = {3, 1, 29, false};
    static const struct cost_conventions COUNT = {.norms_uncounted = true};
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    const struct model m = read_model(a, "");
    const struct cost_ops ops = operators_by(a, c, &m, &STEP, 1, &COUNT);
    int met = 0;
    (void)state;
    for (size_t i = 0; i < ops.n; i++) {
        static const char *const NAME[] = {"q_a_norm", "kv_norm", "attention", "index_pool", "pool"};
        const double want[] = {0, 0, 2 * N, 2 * 2 * LIGHT * HI,
                               2.0 * H * (ops.op[i].kind_index == 1 ? 2 * LIGHT : HEAVY)};
        for (size_t k = 0; k < sizeof NAME / sizeof NAME[0]; k++) {
            if (strcmp(ops.op[i].name, NAME[k]) != 0) continue;
            same(NAME[k], "weights", number(ops.op[i].weight_bytes), want[k]);
            met++;
        }
    }
    assert_int_equal(met, 3 * 3 + 1 + 2);
    arena_close(a);
}

/* Of a sequence of 29 tokens: entries of 4 and of 8, window and open entries of either, the window of the first layer.
 * The keys of one token more, and what a rank of two has: all of it. */
static void test_cache(void **state)
{
    (void)state;
    for (int tp = 1; tp <= 2; tp++) {
        struct arena *a = arena_open();
        struct sym_ctx *c = sym_open(a);
        const struct model m = read_model(a, "");
        const struct cost_symbols y = cost_symbols_make(c);
        struct cost_cache cache;
        struct err e = {.code = ERR_OK};
        assert_int_equal(cost_cache(c, &y, &m, tp, &cache, &e), ERR_OK);
        const double S = 29, open = 4 * (2 * LIGHT * 2 * 2 * (H + HI) + HEAVY * 2 * H);
        assert_true(cache.bytes_per_token_windowed == 2 * H);
        assert_true(cache.bytes_per_token_full == 2 * (H / (double)LIGHT + H / (double)HEAVY));
        assert_true(cache.bytes_per_token_index == INDEX_BYTES / (double)LIGHT);
        assert_true(cache.state_bytes_per_sequence == open + 2 * 2 * W * H);
        const struct sym_binding at = {y.S, sym_int(c, 29)};
        same("cache", "bytes", number(sym_bind(c, cache.bytes_per_sequence, &at, 1)),
             2 * W * H + S * (2 * H + INDEX_BYTES) / LIGHT + 2 * S * H / HEAVY);
        arena_close(a);
    }
}

/* Heads, experts and words are split in two; groups of the output with their heads; what all heads share is whole. */
static void test_rank(void **state)
{
    (void)state;
    static const struct pass STEP = {1, 1, 29, false};
    static const char *const WHOLE[] = {"q_a_proj", "kv_proj", "pool_proj", "index_q_proj", "mixer_streams_proj"};
    static const char *const SPLIT[] = {"q_b_proj", "o_a_proj", "o_b_proj"};
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    const struct model m = read_model(a, "");
    const struct cost_ops one = operators(a, c, &m, &STEP, 1), two = operators(a, c, &m, &STEP, 2);
    for (size_t i = 0; i < one.n; i++)
        for (size_t k = 0; k < two.n; k++) {
            if (strcmp(one.op[i].name, two.op[k].name) != 0 || one.op[i].kind_index != two.op[k].kind_index) continue;
            for (size_t n = 0; n < sizeof WHOLE / sizeof WHOLE[0]; n++)
                if (strcmp(one.op[i].name, WHOLE[n]) == 0)
                    same(WHOLE[n], "weights", number(two.op[k].weight_bytes), number(one.op[i].weight_bytes));
            for (size_t n = 0; n < sizeof SPLIT / sizeof SPLIT[0]; n++)
                if (strcmp(one.op[i].name, SPLIT[n]) == 0)
                    same(SPLIT[n], "weights", 2 * number(two.op[k].weight_bytes), number(one.op[i].weight_bytes));
        }
    /* with two ranks to a group each has its one head's part of the group's matrix, and what takes RO numbers of it */
    const struct cost_ops four = operators(a, c, &m, &STEP, 4);
    for (size_t k = 0; k < four.n; k++) {
        if (strcmp(four.op[k].name, "o_a_proj") == 0)
            same("group", "weights", number(four.op[k].weight_bytes), 2 * RO * H);
        if (strcmp(four.op[k].name, "o_b_proj") == 0)
            same("all", "weights", number(four.op[k].weight_bytes), 2 * RO * D);
    }
    arena_close(a);
}

/* A stage hands on all streams of its tokens; on the device they lie beside the largest operator. Three stages of a
 * layer each, three microbatches of five sequences. */
static void test_streams_between_stages(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m = read_model(a, "");
    struct err e = {.code = ERR_OK};
    struct hw hw;
    struct step *s;
    struct step_op *op;
    double v[STEP_VALUES_N], most = 0;
    size_t n, met = 0;
    assert_int_equal(hw_load(a, "h100-sxm", &hw, &e), ERR_OK);
    struct step_setup u = {
        .model = &m, .hw = &hw, .fidelity = STEP_ROOFLINE, .layout = {.tp = 1, .pp = 3}, .block_tokens = 16};
    if (step_compile(a, &u, &s, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(step_ops(a, s, STEP_DECODE, 15, 29, 29, 1, &op, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(op[i].name, "stage_send") != 0) continue;
        same("stage_send", "bytes", op[i].wire_bytes, 2 * 5 * A * D * 2); /* from the first and the second */
        same("stage_send", "bytes between nodes", op[i].fabric_bytes, 0);
        met++;
    }
    assert_int_equal(met, 1);
    u.layout = (struct layout){.tp = 1};
    if (step_compile(a, &u, &s, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(step_eval_layout(s, NULL, 15, 29, 29, 1, v, &e), ERR_OK);
    same("step", "cache of a token", step_kv_bytes_per_token(s),
         2 * (H + H / (double)LIGHT + H / (double)HEAVY) + INDEX_BYTES / (double)LIGHT); /* window, entries, indexer */
    for (enum step_phase phase = STEP_PREFILL; phase < STEP_PHASES; phase++) {
        const double tokens = phase == STEP_DECODE ? 15 : 29; /* prompts pass one by one */
        assert_int_equal(step_ops(a, s, phase, 15, 29, 29, 1, &op, &n, &e), ERR_OK);
        for (size_t i = 0; i < n; i++) {
            const double beside = op[i].activation_bytes / (double)op[i].count + tokens * A * D * 2;
            if (beside > most) most = beside;
        }
    }
    same("step", "activations", v[STEP_activation_bytes], most);
    arena_close(a);
}

/* Sequences of one step, of unlike contexts: what each has in caches, and in open entries whatever its context. */
static void test_mixed_step(void **state)
{
    (void)state;
    static const struct {
        int n, S;
    } AT[] = {{7, 29}, {5, 53}, {1, 3}};
    struct arena *a = arena_open();
    const struct model m = read_model(a, "");
    struct err e = {.code = ERR_OK};
    struct hw hw;
    struct mix_plan *plan;
    struct mix x;
    double v[MIX_VALUES_N], cache = 0, open = 0;
    assert_int_equal(hw_load(a, "h100-sxm", &hw, &e), ERR_OK);
    const struct step_setup u = {
        .model = &m, .hw = &hw, .fidelity = STEP_ROOFLINE, .layout = {.tp = 1}, .block_tokens = 16};
    if (mix_compile(a, &u, &plan, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(mix_open(a, plan, &x, &e), ERR_OK);
    mix_clear(&x);
    for (size_t i = 0; i < sizeof AT / sizeof AT[0]; i++) {
        mix_decode(&x, AT[i].n, AT[i].S);
        for (int sequence = 0; sequence < AT[i].n; sequence++) {
            cache += 2 * H * (AT[i].S < W ? AT[i].S : W); /* of the layer without entries */
            cache += AT[i].S * ((2 * H + INDEX_BYTES) / LIGHT + 2 * H / (double)HEAVY);
            open += 4 * (2 * LIGHT * 2 * 2 * (H + HI) + HEAVY * 2 * H) + 2 * 2 * W * H;
        }
    }
    mix_eval(&x, v);
    same("mixed", "cache", v[MIX_kv_bytes], cache);
    same("mixed", "windows and open entries", v[MIX_state_bytes], open);
    arena_close(a);
}

/* Heads of the indexer are split in as many parts as divide them and the ranks: six in 2, over four ranks too, and five
 * not. Scores of split heads are summed, a float for every entry that a query sees. */
static void test_index_rank(void **state)
{
    (void)state;
    static const struct pass PASSES[] = {{1, 1, 29, false}, {2, 13, 13, false}};
    static const struct {
        int heads, tp, parts;
    } CASES[] = {{6, 2, 2}, {6, 4, 2}, {8, 4, 4}, {5, 4, 1}, {6, 1, 1}};
    for (size_t i = 0; i < 2 * (sizeof CASES / sizeof CASES[0]); i++) {
        const struct pass *p = &PASSES[i % 2];
        const double heads = CASES[i / 2].heads / CASES[i / 2].parts, n = rows_of(p), seen = pairs(p, 0, LIGHT);
        const double ring = 2.0 * (CASES[i / 2].tp - 1) / CASES[i / 2].tp;
        struct arena *a = arena_open();
        struct sym_ctx *c = sym_open(a);
        struct model m = read_model(a, "");
        for (size_t k = 0; k < m.kinds_n; k++)
            if (m.kinds[k].mixer.index_heads > 0) m.kinds[k].mixer.index_heads = CASES[i / 2].heads;
        const struct cost_ops ops = operators(a, c, &m, p, CASES[i / 2].tp);
        int found = 0, sums = 0;
        for (size_t k = 0; k < ops.n; k++) {
            const struct cost_op *op = &ops.op[k];
            if (strcmp(op->name, "index_q_proj") == 0)
                found++, same(op->name, "weights", number(op->weight_bytes), 2 * Q * heads * HI);
            if (strcmp(op->name, "index_weights") == 0)
                found++, same(op->name, "flops", number(op->flops), 2 * n * D * heads);
            if (strcmp(op->name, "index_pool_proj") == 0) /* keys are one for all heads */
                found++, same(op->name, "weights", number(op->weight_bytes), 2 * D * 4 * HI);
            if (strcmp(op->name, "index") == 0) {
                found++, same(op->name, "flops", number(op->flops), 2 * heads * HI * seen);
                same(op->name, "vector flops", number(op->vector_flops), (3 * heads + 1) * seen);
            }
            if (strcmp(op->name, "index_all_reduce") != 0) continue;
            sums++;
            const struct sym_binding at = {cost_symbols_make(c).r, sym_num(c, ring)};
            same(op->name, "wire", number(sym_bind(c, op->wire_bytes, &at, 1)), ring * 4 * seen);
            same(op->name, "activations", number(op->activation_bytes), 2 * 4 * seen);
        }
        assert_int_equal(found, 4);
        assert_int_equal(sums, CASES[i / 2].parts > 1);
        arena_close(a);
    }
}

/* What layers and operators are called is what they do: none is latent attention, and pooling is no norm of heads. */
static void test_words(void **state)
{
    static const char *const LABELS[] = {"sliding attention + experts", "attention to chosen entries + experts",
                                         "attention to entries + experts"};
    static const struct pass STEP = {1, 1, 29, false};
    (void)state;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    const struct model m = read_model(a, "");
    for (size_t i = 0; i < m.kinds_n; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof LABELS / sizeof LABELS[0]; k++) known |= strcmp(m.kinds[i].label, LABELS[k]) == 0;
        if (!known) fail_msg("%s", m.kinds[i].label);
    }
    const struct cost_ops ops = operators(a, c, &m, &STEP, 1);
    for (size_t i = 0; i < ops.n; i++) {
        const bool pools = strcmp(ops.op[i].name, "pool") == 0 || strcmp(ops.op[i].name, "index_pool") == 0;
        assert_int_equal(strstr(cost_op_says(&ops.op[i]), "pooled into entries") != NULL, pools);
        if (!pools) assert_string_equal(cost_op_says(&ops.op[i]), cost_op_meaning(ops.op[i].kind));
    }
    arena_close(a);
}

/* Published files: linear layers in FP8 by tiles, experts in FP4; entries, weights of streams and routers stay. */
static void test_formats(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    static const struct pass STEP = {1, 1, 29, false};
    const struct model m = read_model(a, ",\"expert_dtype\":\"fp4\",\"quantization_config\":{\"quant_method\":\"fp8\","
                                         "\"weight_block_size\":[128,128]}");
    assert_null(m.weights_unknown);
    assert_string_equal(m.weights[WEIGHT_MIXER].name, "fp8-block128");
    assert_string_equal(m.weights[WEIGHT_FFN].name, "fp8-block128");
    assert_string_equal(m.weights[WEIGHT_EXPERT].name, "mxfp4");
    assert_string_equal(m.weights[WEIGHT_ROUTER].name, "bf16");
    const struct cost_ops ops = operators(a, c, &m, &STEP, 1);
    for (size_t i = 0; i < ops.n; i++) {
        const char *name = ops.op[i].name;
        if (strcmp(name, "o_a_proj") == 0) assert_true(number(ops.op[i].weight_bytes) == RO * N * H + 4);
        if (strcmp(name, "kv_proj") == 0) assert_true(number(ops.op[i].weight_bytes) == D * H + 4);
        if (strcmp(name, "pool_proj") == 0 && ops.op[i].kind_index == 2)
            assert_true(number(ops.op[i].weight_bytes) == 2 * 2 * D * H);
        if (strcmp(name, "experts_up") == 0) /* of six experts gate and up: half a byte, and a byte of each row of 10 */
            assert_true(number(ops.op[i].tensor[0].bytes) == E * 2 * WIDE * (D / 2 + 1));
    }
    arena_close(a);
}

/* What expert_dtype says, in any case of letters, is the format of experts and of nothing else. */
static void test_expert_formats(void **state)
{
    static const struct {
        const char *word, *beside_fp8, *alone;
    } CASES[] = {{"fp4", "mxfp4", "mxfp4"},    {"FP4", "mxfp4", "mxfp4"},      {"mxfp4", "mxfp4", "mxfp4"},
                 {"NVFP4", "nvfp4", "nvfp4"},  {"fp8", "fp8-block128", "fp8"}, {"BF16", "bf16", "bf16"},
                 {"bfloat16", "bf16", "bf16"}, {"float16", "fp16", "fp16"}};
    static const char *const REFUSED[] = {"int4", "foo", "", "fp", "fp44"};
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *key = arena_printf(a, ",\"expert_dtype\":\"%s\"", CASES[i].word);
        const struct model m = read_model(
            a, arena_printf(a, "%s,\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}",
                            key));
        assert_string_equal(m.weights[WEIGHT_EXPERT].name, CASES[i].beside_fp8);
        assert_string_equal(m.weights[WEIGHT_MIXER].name, "fp8-block128");
        const struct model n = read_model(a, key);
        assert_string_equal(n.weights[WEIGHT_EXPERT].name, CASES[i].alone);
        assert_string_equal(n.weights[WEIGHT_MIXER].name, "bf16");
    }
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++)
        for (int quantised = 0; quantised < 2; quantised++) {
            struct json j;
            struct model m;
            struct err e = {.code = ERR_OK};
            const char *text = arena_printf(a, "%s,\"expert_dtype\":\"%s\"%s}", CONFIG, REFUSED[i],
                                            quantised ? ",\"quantization_config\":{\"quant_method\":\"fp8\"}" : "");
            assert_int_equal(json_parse(a, "config.json", text, strlen(text), &j, &e), ERR_OK);
            assert_int_equal(model_parse(a, &j, &m, &e), ERR_INPUT);
            if (!strstr(e.text, "expert_dtype") || !strstr(e.text, "the format of experts")) fail_msg("%s", e.text);
        }
    arena_close(a);
}

static void test_refused(void **state)
{
    static const struct {
        const char *from, *to, *sentence;
    } CASES[] = {
        {"\"compress_ratios\":[0,4,128,0]", "\"compress_ratios\":[0,4]", "a list of one number per layer"},
        {"\"compress_ratios\":[0,4,128,0]", "\"compress_ratios\":[0,4,16]", "0, 1, 4 or 128"},
        {"\"compress_ratios\":[0,4,128,0]", "\"x\":1", "compress_ratios (or layer_types) is missing"},
        {"\"compress_ratios\":[0,4,128,0]", "\"layer_types\":[\"sliding_attention\",\"full_attention\",\"x\"]",
         "compressed_sparse_attention"},
        {"\"x\":0", "\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\"]",
         "layer_types and compress_ratios contradict each other about layer 1"},
        {"\"o_groups\":2", "\"o_groups\":3", "4 heads are no multiple of 3 o_groups"},
        {"\"x\":0", "\"num_key_value_heads\":2", "num_key_value_heads is 2"},
        {"\"num_hash_layers\":1", "\"num_hash_layers\":4", "num_hash_layers is 4 of 3 layers"},
        {"\"x\":0", "\"first_k_dense_replace\":4", "first_k_dense_replace is 4 of 3 layers"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct json j;
        struct model m;
        struct err e = {.code = ERR_OK};
        const char *text = arena_printf(a, "%s,\"x\":0}", CONFIG), *at = strstr(text, CASES[i].from);
        assert_non_null(at);
        text = arena_printf(a, "%.*s%s%s", (int)(at - text), text, CASES[i].to, at + strlen(CASES[i].from));
        if (strstr(CASES[i].to, "\"x\""))
            text = arena_printf(a, "%.*s}", (int)(strlen(text) - strlen(",\"x\":0}")), text);
        assert_int_equal(json_parse(a, "config.json", text, strlen(text), &j, &e), ERR_OK);
        if (model_parse(a, &j, &m, &e) != ERR_INPUT) fail_msg("%s: read", CASES[i].to);
        if (!strstr(e.text, CASES[i].sentence)) fail_msg("%s: %s", CASES[i].to, e.text);
        arena_close(a);
    }
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct model m = read_model(a, "");
    assert_int_equal(whatif_apply(a, &m, "window=4", &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "keys are the values"));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_operators),
                                       cmocka_unit_test(test_module),
                                       cmocka_unit_test(test_norms_uncounted),
                                       cmocka_unit_test(test_cache),
                                       cmocka_unit_test(test_rank),
                                       cmocka_unit_test(test_streams_between_stages),
                                       cmocka_unit_test(test_mixed_step),
                                       cmocka_unit_test(test_index_rank),
                                       cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_formats),
                                       cmocka_unit_test(test_expert_formats),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("pooled", tests, NULL, NULL);
}
