/* Mixed steps: equal to plain passes where those say the same, sums counted one by one, prompts in pieces. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/time/mix.h"

static const char *const MODELS[] = {
    "llama-3.1-8b",      "gemma-3-27b",      "deepseek-v3", "gpt-oss-20b",         "mixtral-8x7b",   "falcon-mamba-7b",
    "jamba-1.5-mini",    "qwen3.5-27b",      "zamba2-7b",   "kimi-linear-48b-a3b", "llama-4-scout",  "deepseek-v3.2",
    "recurrentgemma-2b", "gemma-3n-e4b",     "glm-5.2",     "hunyuan-a13b",        "minimax-m1-80k", "lfm2-1.2b",
    "rwkv6-finch-1.6b",  "rwkv7-goose-0.4b", "h3-125m"};

struct fixture {
    struct arena *a;
    struct model m;
    struct hw hw;
    struct step *step;
    struct mix_plan *plan;
    struct mix mix;
};

enum { TOWER = 61729 }; /* parameters of one beside each model */

static void open_model(struct fixture *f, const char *model, const char *gpu, struct step_setup u)
{
    struct err e = {0};
    f->a = arena_open();
    if (model_load(f->a, model, NULL, 0, &f->m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(f->a, gpu, &f->hw, &e) != ERR_OK) fail_msg("%s", e.text);
    f->m.tower = (struct model_tower){.params = TOWER};
    u.model = &f->m;
    u.hw = &f->hw;
    u.block_tokens = 16;
    if (step_compile(f->a, &u, &f->step, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    if (mix_compile(f->a, &u, &f->plan, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    if (mix_open(f->a, f->plan, &f->mix, &e) != ERR_OK) fail_msg("%s", e.text);
}

static void step_at(struct fixture *f, double B, double T, double S, double v[STEP_VALUES_N])
{
    const double M = 1;
    double *column[STEP_VALUES_N];
    for (size_t i = 0; i < STEP_VALUES_N; i++) column[i] = &v[i];
    step_eval(f->step, 1, &B, &T, &S, &M, column);
}

static void close_to(double got, double want, const char *model, const char *what)
{
    if (!(fabs(got - want) <= 1e-12 * fabs(want))) fail_msg("%s: %s is %.17g, want %.17g", model, what, got, want);
}

/* Sequences that all decode at one context are a decode step, and one whole prompt is a prefill, in all that both say.
 */
static void test_plain_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        for (int bound = 0; bound < 2; bound++) {
            struct fixture f;
            double v[STEP_VALUES_N], x[MIX_VALUES_N];
            const struct step_setup u = {.fidelity = bound ? STEP_BOUND : STEP_ROOFLINE};
            open_model(&f, MODELS[i], "h100-sxm", u);
            step_at(&f, 37, 1283, 4099, v);
            mix_decode(&f.mix, 30, 4099);
            mix_decode(&f.mix, 7, 4099);
            mix_eval(&f.mix, x);
            close_to(x[MIX_flops], v[STEP_decode_flops], MODELS[i], "decode flops");
            close_to(x[MIX_bytes], v[STEP_decode_bytes], MODELS[i], "decode bytes");
            close_to(x[MIX_step_s], v[STEP_decode_step_s], MODELS[i], "decode s");
            close_to(x[MIX_kv_bytes], v[STEP_kv_bytes], MODELS[i], "kv");
            close_to(x[MIX_state_bytes], v[STEP_state_bytes], MODELS[i], "state");
            mix_clear(&f.mix);
            mix_prefill(&f.mix, 1, 1283, 0);
            mix_eval(&f.mix, x);
            close_to(x[MIX_flops], v[STEP_prefill_flops], MODELS[i], "prefill flops");
            close_to(x[MIX_step_s], v[STEP_prefill_s], MODELS[i], "prefill s");
            if (!bound) close_to(x[MIX_bytes], v[STEP_prefill_bytes], MODELS[i], "prefill bytes");
            arena_close(f.a);
        }
}

/* The same in layouts with experts in parts: a group's sequences with as many in each other group are the step of all;
 * so are those of all, shared among the groups. */
static void test_layouts(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"deepseek-v3", "qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-20b"};
    static const struct layout LAYOUTS[] = {{.tp = 4, .ep = 2},
                                            {.tp = 2, .dp = 2, .ep = 4},
                                            {.tp = 1, .dp = 4, .ep = 4},
                                            {.tp = 2, .dp = 2, .ep = 2, .sp = true}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        for (size_t k = 0; k < sizeof LAYOUTS / sizeof *LAYOUTS; k++) {
            struct fixture f;
            double v[STEP_VALUES_N], x[MIX_VALUES_N], y[MIX_VALUES_N];
            const double groups = (double)layout_whole(&LAYOUTS[k]).dp;
            open_model(&f, NAMES[i], "h200-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE, .layout = LAYOUTS[k]});
            step_at(&f, 37 * groups, 1283, 4099, v);
            mix_decode(&f.mix, 37, 4099);
            mix_others(&f.mix, 37 * (groups - 1));
            mix_eval(&f.mix, x);
            close_to(x[MIX_step_s], v[STEP_decode_step_s], NAMES[i], "decode s");
            close_to(x[MIX_flops], v[STEP_decode_flops], NAMES[i], "decode flops");
            close_to(x[MIX_kv_bytes], v[STEP_kv_bytes], NAMES[i], "kv");
            mix_clear(&f.mix);
            mix_decode(&f.mix, 37 * groups - 0.5, 4099); /* ceil to 37 in the busiest */
            mix_decode(&f.mix, 0.5, 4099);
            mix_share(&f.mix, groups);
            mix_eval(&f.mix, y);
            close_to(y[MIX_step_s], x[MIX_step_s], NAMES[i], "shared decode s");
            mix_clear(&f.mix);
            mix_prefill(&f.mix, 1, 1283, 0);
            mix_others(&f.mix, 1283 * (groups - 1));
            mix_eval(&f.mix, x);
            close_to(x[MIX_step_s], v[STEP_prefill_s], NAMES[i], "prefill s");
            close_to(x[MIX_activation_bytes], v[STEP_activation_bytes], NAMES[i], "arrays of a prefill");
            arena_close(f.a);
        }
}

/* Two kinds of layers with windows of their own: each kind's sums are of its own. */
static void test_two_windows(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = {0};
    double v[STEP_VALUES_N], x[MIX_VALUES_N];
    open_model(&f, "gpt-oss-20b", "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
    assert_int_equal(f.m.kinds_n, 2);
    struct layer_kind kind[2] = {f.m.kinds[0], f.m.kinds[1]};
    kind[0].mixer.window_tokens = 127;
    kind[1].mixer.window_tokens = 1511;
    f.m.kinds = kind;
    const struct step_setup u = {.model = &f.m, .hw = &f.hw, .block_tokens = 16, .fidelity = STEP_ROOFLINE};
    assert_int_equal(step_compile(f.a, &u, &f.step, &e), ERR_OK);
    assert_int_equal(mix_compile(f.a, &u, &f.plan, &e), ERR_OK);
    assert_int_equal(mix_open(f.a, f.plan, &f.mix, &e), ERR_OK);
    step_at(&f, 11, 4099, 4099, v);
    mix_decode(&f.mix, 11, 4099);
    mix_eval(&f.mix, x);
    close_to(x[MIX_flops], v[STEP_decode_flops], "two windows", "decode flops");
    close_to(x[MIX_bytes], v[STEP_decode_bytes], "two windows", "decode bytes");
    close_to(x[MIX_kv_bytes], v[STEP_kv_bytes], "two windows", "kv");
    assert_true(mix_settled_tokens(f.plan) == 1511);
    mix_advance(&f.mix, 11);
    step_at(&f, 11, 4100, 4100, v);
    mix_eval(&f.mix, x);
    close_to(x[MIX_bytes], v[STEP_decode_bytes], "two windows", "bytes a token further");
    mix_clear(&f.mix);
    mix_prefill(&f.mix, 1, 4099, 0);
    step_at(&f, 11, 4099, 4099, v);
    mix_eval(&f.mix, x);
    close_to(x[MIX_flops], v[STEP_prefill_flops], "two windows", "prefill flops");
    arena_close(f.a);
}

/* One prompt among groups is whole in one of them, and sequences that decode are rounded up. */
static void test_busiest_group(void **state)
{
    (void)state;
    struct fixture f;
    open_model(&f, "qwen3-30b-a3b", "h200-sxm",
               (struct step_setup){.fidelity = STEP_ROOFLINE, .layout = {.tp = 1, .dp = 4, .ep = 4}});
    mix_decode(&f.mix, 5, 997);
    mix_prefill(&f.mix, 1, 613, 0);
    mix_share(&f.mix, 4);
    assert_true(mix_tokens(&f.mix) == 2 + 613);
    assert_true(*f.mix.others_tokens == 3);
    arena_close(f.a);
    /* experts have the tokens of both groups, whichever they are of: 37 and 11, 11 and 37, 48 and none */
    static const double OWN[] = {37, 11, 48};
    double work[3];
    for (size_t i = 0; i < 3; i++) {
        struct step_op *op;
        size_t n;
        struct err e = {0};
        open_model(&f, "qwen3-30b-a3b", "h200-sxm",
                   (struct step_setup){.fidelity = STEP_ROOFLINE, .layout = {.tp = 1, .dp = 2, .ep = 2}});
        mix_decode(&f.mix, OWN[i], 997);
        mix_others(&f.mix, 48 - OWN[i]);
        assert_int_equal(mix_ops(f.a, &f.mix, &op, &n, &e), ERR_OK);
        for (size_t k = 0; k < n; k++)
            if (strcmp(op[k].name, "experts_up") == 0) work[i] = op[k].flops;
        arena_close(f.a);
    }
    close_to(work[0], 48 * 2.0 * 48 * 8 / 2 * 2048 * 2 * 768, "qwen3-30b-a3b", "work of experts");
    assert_true(!(work[1] < work[0]) && !(work[1] > work[0]) && !(work[2] < work[0]) && !(work[2] > work[0]));
}

struct piece {
    double n, tokens, prefix; /* tokens 0: decodes at context prefix */
};

/* Query and key pairs of one layer, each looked at by itself. window 0: none. */
static double pairs_of(const struct piece *p, size_t n, int64_t window)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t T = p[i].tokens > 0 ? (int64_t)p[i].tokens : 1;
        const int64_t S = p[i].tokens > 0 ? (int64_t)(p[i].prefix + p[i].tokens) : (int64_t)p[i].prefix;
        double one = 0;
        for (int64_t q = S - T + 1; q <= S; q++)
            for (int64_t k = 1; k <= q; k++) one += window == 0 || k > q - window;
        sum += p[i].n * one;
    }
    return sum;
}

static double keys_of(const struct piece *p, size_t n, int64_t window)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t T = p[i].tokens > 0 ? (int64_t)p[i].tokens : 1;
        const int64_t S = p[i].tokens > 0 ? (int64_t)(p[i].prefix + p[i].tokens) : (int64_t)p[i].prefix;
        int64_t seen = 0;
        for (int64_t k = 1; k <= S; k++) seen += window == 0 || k > (S - T + 1) - window; /* by some query */
        sum += p[i].n * (double)seen;
    }
    return sum;
}

static const struct piece PIECES[] = {{11, 0, 97}, {5, 0, 1511}, {1, 0, 7}, {1, 389, 0}, {2, 173, 1409}, {1, 1, 613}};
enum { PIECES_N = sizeof PIECES / sizeof PIECES[0], DECODES = 3, DECODED = 17, PREFILLED = 389 + 2 * 173 + 1 };

static void fill(struct mix *x)
{
    mix_clear(x);
    for (size_t i = 0; i < PIECES_N; i++)
        if (PIECES[i].tokens > 0)
            mix_prefill(x, PIECES[i].n, PIECES[i].tokens, PIECES[i].prefix);
        else
            mix_decode(x, PIECES[i].n, PIECES[i].prefix);
}

/* Sequences of all kinds in one step: attention by the naive count of each part, products over all tokens at once. */
static void test_sums(void **state)
{
    (void)state;
    struct fixture f;
    struct step_op *op;
    size_t n;
    struct err e = {0};
    open_model(&f, "gemma-3-27b", "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
    fill(&f.mix);
    assert_true(mix_tokens(&f.mix) == DECODED + PREFILLED);
    assert_true(mix_sequences(&f.mix) == DECODED + 4);
    assert_int_equal(mix_ops(f.a, &f.mix, &op, &n, &e), ERR_OK);
    size_t attentions = 0, products = 0;
    for (size_t i = 0; i < n; i++) {
        const bool decode = strcmp(op[i].name, "decode_attention") == 0,
                   prefill = strcmp(op[i].name, "prefill_attention") == 0;
        if (strcmp(op[i].name, "lm_head") == 0) /* a row a sequence */
            close_to(op[i].flops, 2.0 * (DECODED + 4) * (double)f.m.hidden * (double)f.m.vocab, "gemma", "head");
        if (strcmp(op[i].name, "down_proj") == 0) {
            const double rows = DECODED + PREFILLED, D = (double)f.m.hidden, F = 21504;
            products++;
            close_to(op[i].flops, 2 * rows * D * F * (double)op[i].count, "gemma", "down_proj");
            close_to(op[i].weight_bytes, 2 * D * F * (double)op[i].count, "gemma", "its weights, read once");
        }
        if (!decode && !prefill) continue;
        attentions++;
        const struct mixer *x = NULL;
        for (size_t k = 0; k < f.m.kinds_n; k++)
            if (strcmp(f.m.kinds[k].label, op[i].layer) == 0) x = &f.m.kinds[k].mixer;
        assert_non_null(x);
        const struct piece *of = decode ? PIECES : PIECES + DECODES;
        const size_t of_n = decode ? DECODES : PIECES_N - DECODES;
        const double pairs = pairs_of(of, of_n, x->window_tokens), keys = keys_of(of, of_n, x->window_tokens);
        close_to(op[i].flops, 4 * pairs * (double)(x->heads * x->head_dim * op[i].count), "gemma", "pairs");
        close_to(op[i].kv_bytes, 4 * keys * (double)(x->kv_heads * x->head_dim * op[i].count), "gemma", "keys");
    }
    assert_true(attentions == 4 && products == 2);
    arena_close(f.a);
}

/* A step holds each weight once however it is mixed: less than its parts by themselves. */
static void test_together_costs_less(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        struct fixture f;
        double both[MIX_VALUES_N], decode[MIX_VALUES_N], prefill[MIX_VALUES_N];
        open_model(&f, MODELS[i], "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
        mix_decode(&f.mix, 32, 1511);
        mix_eval(&f.mix, decode);
        mix_prefill(&f.mix, 1, 211, 1021);
        mix_eval(&f.mix, both);
        mix_decode(&f.mix, -32, 1511);
        mix_eval(&f.mix, prefill);
        assert_true(both[MIX_step_s] < decode[MIX_step_s] + prefill[MIX_step_s]);
        assert_true(both[MIX_step_s] > decode[MIX_step_s] && both[MIX_step_s] > prefill[MIX_step_s]);
        const bool experts = f.m.kinds[f.m.kinds_n - 1].ffn.kind == FFN_MOE;
        if (!experts) close_to(both[MIX_flops], decode[MIX_flops] + prefill[MIX_flops], MODELS[i], "flops of both");
        arena_close(f.a);
    }
}

/* Pieces of a prompt have together the pairs of the whole: exact, whatever the mask. Peers that take the mean of the
 * context, or the minimum of the mean and the window, do not come out. */
static void test_prompt_in_pieces(void **state)
{
    (void)state;
    static const double CHUNKS[] = {613, 2048, 5000, 20000};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        struct fixture f;
        struct step_op *op;
        struct err e = {0};
        size_t n;
        open_model(&f, MODELS[i], "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
        double whole[4] = {0}, tokens = 9311; /* beyond every window and block */
        for (size_t k = 0; k < sizeof CHUNKS / sizeof *CHUNKS; k++) {
            double sum[4] = {0}; /* attention of each layer kind */
            for (double from = 0; from < tokens; from += CHUNKS[k]) {
                mix_clear(&f.mix);
                mix_prefill(&f.mix, 1, fmin(CHUNKS[k], tokens - from), from);
                assert_int_equal(mix_ops(f.a, &f.mix, &op, &n, &e), ERR_OK);
                for (size_t j = 0; j < n; j++)
                    for (size_t q = 0; q < f.m.kinds_n && q < 4; q++)
                        if (strcmp(op[j].name, "prefill_attention") == 0 &&
                            strcmp(op[j].layer, f.m.kinds[q].label) == 0)
                            sum[q] += op[j].flops;
            }
            for (size_t q = 0; q < 4; q++) {
                if (k == 0) whole[q] = sum[q];
                close_to(sum[q], whole[q], MODELS[i], "pairs of all pieces");
            }
        }
        arena_close(f.a);
    }
}

/* Weights are read again for each piece; times add up. */
static void test_prompt_times(void **state)
{
    (void)state;
    struct fixture f;
    double v[STEP_VALUES_N], whole[MIX_VALUES_N], pieces[MIX_VALUES_N];
    open_model(&f, "llama-3.1-8b", "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
    step_at(&f, 1, 4096, 4096, v);
    mix_prompt(&f.mix, 4096, 4096, whole);
    close_to(whole[MIX_step_s], v[STEP_prefill_s], "llama", "one piece");
    mix_prompt(&f.mix, 4096, 64, pieces);
    assert_true(pieces[MIX_step_s] > 1.5 * whole[MIX_step_s]);
    /* 64 pieces read 64 times the 7,504,658,432 elements that a pass reads (all but the embedding) */
    assert_true(pieces[MIX_bytes] - whole[MIX_bytes] > 63 * 2 * 7504658432.0);
    /* and the cache of 131,072 bytes a token: kv*T^2/(2C) = 131072*4096^2/128 in all pieces, 131072*4096 in one */
    arena_close(f.a);
}

/* Memory is the sum of what is held; means are those of the sequences; a plan says from where on they grow evenly. */
static void test_held_and_means(void **state)
{
    (void)state;
    struct fixture f;
    double x[MIX_VALUES_N], plain[MIX_VALUES_N], v[STEP_VALUES_N];
    open_model(&f, "jamba-1.5-mini", "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
    assert_true(isnan(mix_mean(&f.mix, MIXED_DECODE).context));
    fill(&f.mix);
    mix_eval(&f.mix, x);
    assert_true(x[MIX_kv_bytes] > 0 && x[MIX_state_bytes] > 0 && x[MIX_activation_bytes] > 0);
    close_to(x[MIX_memory_bytes],
             step_weight_bytes(f.step) + 2 * TOWER + x[MIX_kv_bytes] + x[MIX_state_bytes] + x[MIX_activation_bytes],
             "jamba", "memory");
    const struct mix_mean d = mix_mean(&f.mix, MIXED_DECODE), p = mix_mean(&f.mix, MIXED_PREFILL);
    assert_true(d.sequences == DECODED && d.tokens == 1 && p.sequences == 4 && p.tokens == PREFILLED / 4.0);
    close_to(d.context, (11 * 97 + 5 * 1511 + 7) / 17.0, "jamba", "mean context of decodes");
    close_to(p.context, (389 + 2 * (173 + 1409) + 614) / 4.0, "jamba", "mean context of prompts");
    /* a prompt in pieces of 512, 512 and 259: times add up, what is held is that of the last */
    double sum[MIX_VALUES_N] = {0}, most = 0;
    static const double PIECE[] = {512, 512, 259};
    for (int i = 0; i < 3; i++) {
        mix_clear(&f.mix);
        mix_prefill(&f.mix, 1, PIECE[i], 512 * i);
        mix_eval(&f.mix, plain);
        for (size_t k = 0; k < MIX_VALUES_N; k++) sum[k] += plain[k];
        most = fmax(most, plain[MIX_activation_bytes]);
    }
    mix_prompt(&f.mix, 1283, 512, x);
    close_to(x[MIX_step_s], sum[MIX_step_s], "jamba", "seconds of pieces");
    close_to(x[MIX_flops], sum[MIX_flops], "jamba", "flops of pieces");
    close_to(x[MIX_link_s] + x[MIX_memory_s], sum[MIX_link_s] + sum[MIX_memory_s], "jamba", "resources of pieces");
    close_to(x[MIX_kv_bytes], plain[MIX_kv_bytes], "jamba", "cache after the last piece");
    close_to(x[MIX_state_bytes], plain[MIX_state_bytes], "jamba", "state");
    close_to(x[MIX_activation_bytes], most, "jamba", "the largest piece's activations");
    arena_close(f.a);
    static const struct {
        const char *model;
        double settled;
    } FROM[] = {
        {"llama-3.1-8b", 2}, {"gemma-3-27b", 1024}, {"deepseek-v3.2", 2048}, {"llama-4-scout", (double)INFINITY}};
    for (size_t i = 0; i < sizeof FROM / sizeof *FROM; i++) {
        open_model(&f, FROM[i].model, "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
        assert_true(mix_settled_tokens(f.plan) == FROM[i].settled);
        arena_close(f.a);
    }
    /* beside other work, links: the plain passes of the same setup; uncounted activations take no memory */
    double alone = 0;
    for (int overlapped = 0; overlapped < 2; overlapped++) {
        open_model(&f, "llama-3.1-8b", "h100-sxm",
                   (struct step_setup){.fidelity = STEP_ROOFLINE,
                                       .layout = {.tp = 4},
                                       .overlapped = overlapped,
                                       .conventions = {.activations_uncounted = overlapped}});
        step_at(&f, 37, 1283, 4099, v);
        mix_decode(&f.mix, 37, 4099);
        mix_eval(&f.mix, x);
        close_to(x[MIX_step_s], v[STEP_decode_step_s], "llama", overlapped ? "overlapped" : "in sequence");
        assert_true((x[MIX_activation_bytes] == 0) == overlapped);
        if (overlapped) assert_true(x[MIX_step_s] < alone);
        alone = x[MIX_step_s];
        arena_close(f.a);
    }
}

/* A mix with another one in it has the sequences of both, so many times; an emptied one has none. */
static void test_added_mixes(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = {0};
    struct mix other;
    double x[MIX_VALUES_N], y[MIX_VALUES_N];
    open_model(&f, "gpt-oss-20b", "h200-sxm",
               (struct step_setup){.fidelity = STEP_ROOFLINE, .layout = {.tp = 1, .dp = 2, .ep = 2}});
    assert_int_equal(mix_open(f.a, f.plan, &other, &e), ERR_OK);
    mix_decode(&other, 5, 997);
    mix_prefill(&other, 2, 173, 1409);
    mix_decode(&f.mix, 11, 97);
    mix_add(&f.mix, &other, 3);
    mix_others(&f.mix, 400);
    assert_true(mix_tokens(&f.mix) == 11 + 3 * (5 + 2 * 173) && mix_sequences(&f.mix) == 11 + 3 * (5 + 2));
    mix_eval(&f.mix, x);
    mix_clear(&f.mix);
    assert_true(mix_tokens(&f.mix) == 0 && mix_sequences(&f.mix) == 0 && *f.mix.others_tokens == 0);
    mix_decode(&f.mix, 11, 97);
    mix_decode(&f.mix, 15, 997);
    mix_prefill(&f.mix, 6, 173, 1409);
    mix_others(&f.mix, 400);
    mix_eval(&f.mix, y);
    for (size_t v = 0; v < MIX_VALUES_N; v++) close_to(x[v], y[v], "gpt-oss-20b", "value of both");
    arena_close(f.a);
}

/* A simulator's batch: sequences grow by a token a step. */
static void test_advance(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        struct fixture f;
        struct mix again;
        struct err e = {0};
        double context[13], x[MIX_VALUES_N], y[MIX_VALUES_N];
        open_model(&f, MODELS[i], "h100-sxm", (struct step_setup){.fidelity = STEP_ROOFLINE});
        assert_int_equal(mix_open(f.a, f.plan, &again, &e), ERR_OK);
        const double settled = mix_settled_tokens(f.plan);
        for (size_t k = 0; k < 13; k++) {
            context[k] = (double)(k * k * 211 + 89);
            mix_decode(&f.mix, 1, context[k]);
        }
        for (int step = 0; step < 300; step++) {
            double old = 0;
            for (size_t k = 0; k < 13; k++) {
                if (context[k] >= settled)
                    old++;
                else {
                    mix_decode(&f.mix, -1, context[k]);
                    mix_decode(&f.mix, 1, context[k] + 1);
                }
                context[k]++;
            }
            mix_advance(&f.mix, old);
        }
        for (size_t k = 0; k < 13; k++) mix_decode(&again, 1, context[k]);
        mix_eval(&f.mix, x);
        mix_eval(&again, y);
        for (size_t v = 0; v < MIX_VALUES_N; v++)
            if (x[v] != y[v]) fail_msg("%s: value %zu is %.17g, not %.17g", MODELS[i], v, x[v], y[v]);
        mix_copy(&f.mix, &again);
        mix_eval(&f.mix, x);
        assert_true(x[MIX_step_s] == y[MIX_step_s]);
        arena_close(f.a);
    }
}

static void test_refused(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    struct hw hw;
    struct mix_plan *p;
    assert_int_equal(model_load(a, "llada-8b", NULL, 0, &m, &e), ERR_OK);
    assert_int_equal(hw_load(a, "h100-sxm", &hw, &e), ERR_OK);
    const struct step_setup u = {
        .model = &m, .hw = &hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    assert_int_equal(mix_compile(a, &u, &p, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "blocks"));
    /* either of the two by itself */
    for (int both = 0; both < 2; both++) {
        struct model one;
        assert_int_equal(model_load(a, "llama-3.1-8b", NULL, 0, &one, &e), ERR_OK);
        *(both ? &one.diffusion : &one.bidirectional) = true;
        const struct step_setup of = {
            .model = &one, .hw = &hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
        assert_int_equal(mix_compile(a, &of, &p, &e), ERR_USAGE);
        assert_non_null(strstr(e.text, "blocks"));
    }
    /* layouts that come with each point */
    assert_int_equal(model_load(a, "llama-3.1-8b", NULL, 0, &m, &e), ERR_OK);
    const struct step_setup any = {
        .model = &m, .hw = &hw, .layout = {.tp = 2}, .any_layout = true, .fidelity = STEP_ROOFLINE};
    assert_int_equal(mix_compile(a, &any, &p, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "one layout"));
    const struct step_setup stages = {
        .model = &m, .hw = &hw, .layout = {.tp = 2, .pp = 33}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    assert_int_equal(mix_compile(a, &stages, &p, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "33 stages"));
    static const char *const HEADS[] = {"eagle", "medusa"};
    for (size_t i = 0; i < 2; i++) { /* a draft's pass needs what its target found */
        struct model head;
        assert_int_equal(i ? model_medusa(a, &m, 3, &head, &e) : model_eagle(a, &m, &head, &e), ERR_OK);
        const struct step_setup of = {.model = &head, .hw = &hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE};
        if (mix_compile(a, &of, &p, &e) != ERR_USAGE) fail_msg("%s", HEADS[i]);
    }
    arena_close(a);
}

/* Sequences that judge drafted tokens are a verify pass, a row of logits for each token. */
static void test_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        for (int f = STEP_BOUND; f <= STEP_ROOFLINE; f++) {
            const int64_t tokens = i % 2 ? 2 : 5;
            struct fixture x;
            double v[STEP_VALUES_N], w[MIX_VALUES_N];
            open_model(
                &x, MODELS[i], "h100-sxm",
                (struct step_setup){
                    .fidelity = (enum step_fidelity)f, .verify = true, .pass_tokens = tokens, .layout = {.tp = 1}});
            step_at(&x, 7, (double)tokens, 3011, v);
            mix_decode(&x.mix, 7, 3011 + (double)tokens - 1);
            mix_eval(&x.mix, w);
            assert_true(fabs(mix_tokens(&x.mix) - 7 * (double)tokens) < 1);
            close_to(w[MIX_flops], v[STEP_decode_flops], MODELS[i], "flops");
            close_to(w[MIX_bytes], v[STEP_decode_bytes], MODELS[i], "bytes");
            close_to(w[MIX_step_s], v[STEP_decode_step_s], MODELS[i], "seconds");
            arena_close(x.a);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judged),
        cmocka_unit_test(test_plain_passes),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_two_windows),
        cmocka_unit_test(test_busiest_group),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_together_costs_less),
        cmocka_unit_test(test_prompt_in_pieces),
        cmocka_unit_test(test_prompt_times),
        cmocka_unit_test(test_held_and_means),
        cmocka_unit_test(test_added_mixes),
        cmocka_unit_test(test_advance),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
