/* What-ifs, against sizes counted by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/cost.h"
#include "calc/model/whatif.h"
#include "calc/time/step.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct arena *A;

static int open_arena(void **state)
{
    (void)state;
    A = arena_open();
    return A ? 0 : -1;
}

static int close_arena(void **state)
{
    (void)state;
    arena_close(A);
    return 0;
}

static struct model load(const char *name)
{
    struct model m;
    struct err e = {0};
    if (model_load(A, name, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    return m;
}

static struct model changed(const char *name, const char *stack)
{
    struct model m = load(name);
    struct err e = {0};
    if (whatif_apply_all(A, &m, stack, &e) != ERR_OK) fail_msg("%s %s: %s", name, stack, e.text);
    int64_t layers = 0;
    for (size_t i = 0; i < m.kinds_n; i++) layers += m.kinds[i].count;
    assert_int_equal(layers, m.order_n);
    assert_true(m.order_n >= (size_t)m.layers);
    return m;
}

static void want_params(const char *name, const char *stack, double want, bool course)
{
    const struct model m = changed(name, stack);
    const struct cost_conventions v = {.norms_uncounted = course};
    struct cost_parameters p;
    struct err e = {0};
    if (cost_parameters(A, &m, &v, &p, &e) != ERR_OK) fail_msg("%s", e.text);
    if (p.total < want || p.total > want) fail_msg("%s %s: %.0f parameters, want %.0f", name, stack, p.total, want);
}

/* Bytes a token in layers without a window, and with one. */
static void want_cache(const char *name, const char *stack, double full, double windowed)
{
    const struct model m = changed(name, stack);
    struct sym_ctx *c = sym_open(A);
    const struct cost_symbols y = cost_symbols_make(c);
    struct cost_cache k;
    struct err e = {0};
    if (cost_cache(c, &y, &m, 1, &k, &e) != ERR_OK) fail_msg("%s", e.text);
    if (fabs(k.bytes_per_token_full - full) > 0 || fabs(k.bytes_per_token_windowed - windowed) > 0)
        fail_msg("%s %s: KV %.17g and %.17g bytes a token, want %.17g and %.17g", name, stack, k.bytes_per_token_full,
                 k.bytes_per_token_windowed, full, windowed);
}

struct figures {
    double weights, kv, decode_s;
};

static struct figures figures(const struct model *m, double B, double S)
{
    struct hw hw;
    struct step *s;
    struct err e = {0};
    struct figures f = {0};
    double *out[STEP_VALUES_N] = {0};
    if (hw_load(A, "h100-sxm", &hw, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct step_setup setup = {
        .model = m, .hw = &hw, .layout = {.tp = 1}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    if (step_compile(A, &setup, &s, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    out[STEP_kv_bytes] = &f.kv;
    out[STEP_decode_step_s] = &f.decode_s;
    step_eval(s, 1, &B, &S, &S, NULL, out);
    f.weights = step_weight_bytes(s);
    return f;
}

static void refused(const char *name, const char *stack, const char *because)
{
    struct model m = load(name);
    const struct model before = m;
    struct err e = {0};
    assert_int_equal(whatif_apply_all(A, &m, stack, &e), ERR_USAGE);
    if (!strstr(e.text, because)) fail_msg("%s %s: \"%s\" says nothing of \"%s\"", name, stack, e.text, because);
    assert_ptr_equal(m.kinds, before.kinds);
    assert_ptr_equal(m.name, before.name);
    assert_string_equal(m.hash, before.hash);
    assert_int_equal(m.kinds_n, before.kinds_n);
}

/* ---- Llama 2 13B: D 5120, F 13824, 40 layers of 40 heads of 128, V 32000 ---- */

enum { D = 5120, F = 13824, L = 40, V = 32000 };

static const double OUTSIDE = 2.0 * V * D + D, MLP = 3.0 * D * F + 2 * D; /* with norms */

static void test_fewer_heads(void **state)
{
    (void)state;
    /* The course: 2VD + 3DFL + (2DNH + 2DKH)L, without norms. */
    want_params("llama-2-13b", "gqa=8", 11337728000.0, true);
    want_params("llama-2-13b", "gqa=40", 13015449600.0, true);
    want_params("llama-2-13b", "mqa", 2.0 * V * D + L * (3.0 * D * F + 2.0 * D * D + 2.0 * D * 128), true);
    want_params("llama-2-13b", "gqa=8", OUTSIDE + L * (MLP + 2.0 * D * D + 2.0 * D * 1024), false);
    want_cache("llama-2-13b", "gqa=8", 40 * 8 * 2 * 128 * 2.0, 0);
    want_cache("llama-2-13b", "gqa=5", 40 * 5 * 2 * 128 * 2.0, 0);
    want_cache("llama-2-13b", "mqa", 40 * 2 * 128 * 2.0, 0);
    want_cache("llama-3.1-8b", "mha", 32 * 32 * 2 * 128 * 2.0, 0);
    /* Qwen2 7B has biases of q, k and v: 28 heads of 128 on 4 KV heads, D 3584. 4 to 7 KV heads: 3 more of both. */
    const struct model base = load("qwen2-7b");
    const struct cost_conventions v = {0};
    struct cost_parameters p;
    struct err e = {0};
    assert_int_equal(cost_parameters(A, &base, &v, &p, &e), ERR_OK);
    want_params("qwen2-7b", "gqa=7", p.total + 28 * 2.0 * 3 * 128 * (3584 + 1), false);
    assert_string_equal(changed("llama-2-13b", "gqa=8").attention, "GQA");
    assert_string_equal(changed("llama-3.1-8b", "mha").attention, "MHA");
    assert_string_equal(changed("llama-3.1-8b", "mqa").attention, "MQA");
    refused("llama-2-13b", "gqa=7", "40 query heads");
    refused("llama-2-13b", "gqa=80", "40 query heads");
    refused("llama-2-13b", "gqa=0", "gqa=0");
    refused("deepseek-v2", "gqa=8", "latent attention");
}

static void test_latent(void **state)
{
    (void)state;
    /* q D x 40(128+64), latent D x 576, its norm, expansion 512 x 40(128+128), o. */
    const double mixer = D * 40.0 * 192 + D * 576.0 + 512 + 512 * 40.0 * 256 + 1.0 * D * D;
    want_params("llama-2-13b", "mla=512+64", OUTSIDE + L * (MLP + mixer), false);
    const double low = D * 768.0 + 768 + 768 * 40.0 * 160 + D * 416.0 + 384 + 384 * 40.0 * 256 + 1.0 * D * D;
    want_params("llama-2-13b", "mla=384+32:768", OUTSIDE + L * (MLP + low), false);
    want_cache("llama-2-13b", "mla=512+64", 40 * 576 * 2.0, 0);
    want_cache("llama-2-13b", "mla=384+32:768", 40 * 416 * 2.0, 0);
    /* 128 heads of 128, as DeepSeek-V2 has: 576 values a token and layer instead of 2 x 16384. */
    want_cache("llama-3.1-405b", "mha", 126 * 2 * 16384 * 2.0, 0);
    want_cache("llama-3.1-405b", "mla=512+64", 126 * 576 * 2.0, 0);
    want_cache("deepseek-v2", "kv=bf16", 60 * 576 * 2.0, 0);
    const struct model m = changed("llama-2-13b", "mla=512+64");
    assert_string_equal(m.attention, "MLA");
    assert_string_equal(m.kinds[0].label, "latent attention + mlp");
    refused("deepseek-v2", "window=1024", "latent attention");
    refused("mistral-7b-v0.1", "mla=512+64", "window");
    refused("llama-2-13b", "cla=2+mla=512+64", "cache of an earlier layer");
    refused("llama-2-13b", "mla=512", "512+64");
    refused("llama-2-13b", "mla=512+", "512+64");
    refused("llama-2-13b", "mla=512+64:", "512+64");
    refused("llama-2-13b", "mla=512+64+gqa=8", "latent attention");
    refused("llama-2-13b", "mla=512+64+window=1024", "latent attention");
}

static void test_across_layers(void **state)
{
    (void)state;
    /* 20 layers without K and V. */
    want_params("llama-2-13b", "cla=2", OUTSIDE + L * (MLP + 4.0 * D * D) - 20 * 2.0 * D * D, false);
    want_cache("llama-2-13b", "cla=2", 819200.0 / 2, 0);
    /* Groups of 3 of 40: 14 make a cache, the last group has one layer. */
    want_params("llama-2-13b", "cla=3", OUTSIDE + L * (MLP + 4.0 * D * D) - 26 * 2.0 * D * D, false);
    want_cache("llama-2-13b", "cla=3", 14 * 2 * 5120 * 2.0, 0);
    want_cache("llama-2-13b", "mqa+cla=2", 20 * 2 * 128 * 2.0, 0);
    /* gpt-oss-20b: 12 layers within 128 tokens, 12 without a window; each kind shares among its own. */
    want_cache("gpt-oss-20b", "cla=2", 6 * 8 * 2 * 64 * 2.0, 6 * 8 * 2 * 64 * 2.0);
    const struct model m = changed("llama-2-13b", "cla=2");
    assert_string_equal(m.attention, "MHA, 20/40 share KV");
    assert_int_equal(m.kinds_n, 2);
    assert_int_equal(m.kinds[1].count, 20);
    assert_string_equal(m.kinds[1].label, "attention to shared KV + mlp");
    for (size_t i = 0; i < m.order_n; i++) assert_int_equal(m.kinds[m.order[i].kind].mixer.shares_kv, i % 2 == 1);
    refused("llama-2-13b", "cla=1", "2 or more");
    refused("llama-2-13b", "cla=2+cla=2", "earlier layer");
    refused("deepseek-v2", "cla=2", "latent attention");
    refused("gemma-3n-e4b", "cla=2", "earlier layer");
    refused("llama-2-13b", "cla=2+window=1024", "earlier layer");
}

static void test_window(void **state)
{
    (void)state;
    const double layer = 2 * 5120 * 2.0;
    /* 40 layers in periods of 6: six are complete, and four more slide. */
    want_cache("llama-2-13b", "window=1024:5/6", 6 * layer, 34 * layer);
    want_cache("llama-2-13b", "window=1Ki:3/4", 10 * layer, 30 * layer);
    want_cache("llama-2-13b", "window=4096", 0, 40 * layer);
    want_params("llama-2-13b", "window=1024:5/6", OUTSIDE + L * (MLP + 4.0 * D * D), false);
    const struct model m = changed("llama-2-13b", "window=1024:5/6");
    assert_string_equal(m.attention, "MHA, 34/40 within 1024");
    for (size_t i = 0; i < m.order_n; i++)
        assert_int_equal(m.kinds[m.order[i].kind].mixer.window_tokens, i % 6 == 5 ? 0 : 1024); /* not a unit */
    /* A pattern of its own is replaced. */
    want_cache("gpt-oss-20b", "window=none", 24 * 8 * 2 * 64 * 2.0, 0);
    want_cache("gpt-oss-20b", "window=256:2/3", 8 * 8 * 2 * 64 * 2.0, 16 * 8 * 2 * 64 * 2.0);
    assert_string_equal(changed("gpt-oss-20b", "window=none").attention, "GQA");
    /* One global layer in six at W = 1024, S = 32Ki: (S + 5W)/(6S) = 37/192 of the cache, exactly. */
    const struct model all = load("qwen2.5-3b"), local = changed("qwen2.5-3b", "window=1024:5/6");
    assert_int_equal(all.layers % 6, 0);
    const double kv = figures(&all, 1, 32768).kv, cut = figures(&local, 1, 32768).kv;
    assert_true(kv > 0 && !(cut * 192 < kv * 37) && !(cut * 192 > kv * 37));
    /* Layers of two kinds, three with an MLP before 89 with experts: the period runs over both. */
    const struct model two = changed("glm-4.5", "window=512:1/2");
    assert_int_equal(two.kinds_n, 4);
    for (size_t i = 0; i < two.order_n; i++) {
        assert_int_equal(two.kinds[two.order[i].kind].mixer.window_tokens, i % 2 == 0 ? 512 : 0);
        assert_int_equal(two.kinds[two.order[i].kind].ffn.kind, i < 3 ? FFN_DENSE : FFN_MOE);
    }
    refused("llama-2-13b", "window=1024:7/6", "7/6");
    refused("llama-2-13b", "window=1024:5", "such as 5/6");
    refused("llama-2-13b", "window=1024:40/41", "fewer than one period");
    refused("llama-2-13b", "window=none:1/2", "none");
    refused("llama-2-13b", "window=wide", "wanted a window");
    refused("deepseek-v2", "window=1024", "latent attention");
    refused("gemma-3n-e4b", "window=1024", "earlier layer");
}

/* ---- a state instead of a cache ---- */

static void want_state(const char *name, const char *stack, double want)
{
    const struct model m = changed(name, stack);
    struct sym_ctx *c = sym_open(A);
    const struct cost_symbols y = cost_symbols_make(c);
    struct cost_cache k;
    struct err e = {0};
    if (cost_cache(c, &y, &m, 1, &k, &e) != ERR_OK) fail_msg("%s", e.text);
    if (fabs(k.state_bytes_per_sequence - want) > 0)
        fail_msg("%s %s: state of %.17g bytes, want %.17g", name, stack, k.state_bytes_per_sequence, want);
}

static void test_states(void **state)
{
    (void)state;
    /* Mamba-2: 160 heads of 64, one group of B and C of 128, 4 taps with a bias over 10240 + 2*128 channels; per head a
     * step bias, a rate and D; a norm. 35 of 40 layers: five periods of 8. State in fp32, convolution in fp16. */
    const double ssd = D * (2.0 * 10240 + 2 * 128 + 160) + 5.0 * (10240 + 256) + 3 * 160 + 10240 + 10240.0 * D;
    want_params("llama-2-13b", "ssm=7/8", OUTSIDE + L * MLP + 5 * 4.0 * D * D + 35 * ssd, false);
    want_cache("llama-2-13b", "ssm=7/8", 5 * 2 * 5120 * 2.0, 0);
    want_state("llama-2-13b", "ssm=7/8", 35 * (160.0 * 64 * 128 * 4 + 3 * (10240 + 256) * 2));
    want_state("llama-2-13b", "ssm=7/8+state=bf16", 35 * (160.0 * 64 * 128 * 2 + 3 * (10240 + 256) * 2));
    /* Linear attention: q, k, v and a gate of 40 x 128, o, a norm over all of it; 128 x 128 a head. */
    const double linear = 5.0 * D * D + 5120;
    want_params("llama-2-13b", "linear=7/8", OUTSIDE + L * MLP + 5 * 4.0 * D * D + 35 * linear, false);
    want_state("llama-2-13b", "linear=7/8", 35 * 40.0 * 128 * 128 * 4);
    want_state("llama-2-13b", "linear=3/4+gqa=8", 30 * 40.0 * 128 * 128 * 4);
    want_cache("llama-2-13b", "linear=3/4+gqa=8", 10 * 2 * 1024 * 2.0, 0); /* not a unit */
    want_cache("llama-2-13b", "linear=1/2+window=1024:1/2", 10 * 2 * 5120 * 2.0, 10 * 2 * 5120 * 2.0);
    /* Heads of the full layers may be few, those of the linear ones are not: Llama 3.1 8B has 32 of 128. */
    want_state("llama-3.1-8b", "linear=7/8", 28 * 32.0 * 128 * 128 * 4);
    const struct model m = changed("llama-2-13b", "ssm=7/8");
    assert_string_equal(m.attention, "MHA 5/40, mamba-2");
    for (size_t i = 0; i < m.order_n; i++)
        assert_int_equal(m.kinds[m.order[i].kind].mixer.kind, i % 8 == 7 ? MIXER_ATTENTION : MIXER_RECURRENT);
    /* Published shapes: MiniMax-01's 70 of 80 layers of 64 heads of 128 keep 280 MiB a sequence. */
    want_state("minimax-m1-80k", "kv=bf16", 280.0 * 1048576); /* not a unit */
    refused("llama-2-13b", "ssm=9/8", "9/8");
    refused("llama-2-13b", "ssm=7", "such as 5/6");
    refused("llama-2-13b", "cla=2+linear=7/8", "earlier layer");
    refused("deepseek-v3.2", "ssm=7/8", "indexer");
    refused("falcon-mamba-7b", "linear=7/8", "no attention");
    want_state("stripedhyena-hessian-7b", "poles=5", 16 * (2 * 5 * 4096 * 4.0 + 2 * 3 * 4096 * 2.0));
    assert_non_null(strstr(changed("stripedhyena-hessian-7b", "poles=2").notes, "changes nothing"));
    refused("lfm2-1.2b", "state=fp32", "columns of convolutions");
    refused("llada-8b", "ssm=1/2", "see later ones");
    refused("dream-7b", "linear=1/2", "see later ones");
    refused("dream-7b", "window=1024", "see later ones");
    refused("llada-8b", "kv=fp8", "no cache");
    refused("llama-3.1-8b", "kv=gptq4", "format of weights");
    refused("lfm2-1.2b", "kv=int4", "across heads");
    /* Other ranks of DeepSeek-V3's latent, 61 layers: kv_a loses 7168*256, kv_b 128*256*256, the norm 256. */
    want_cache("deepseek-v3", "mla=256+64", 61 * 320 * 2.0, 0);
    want_params("deepseek-v3", "mla=256+64", 671026419200.0 - 61 * (7168 * 256 + 128 * 256 * 256 + 256), false);
    want_params("deepseek-v3", "mla=512+64:1024", 671026419200.0 - 61 * (7168 * 512 + 512 + 128.0 * 192 * 512), false);
    assert_non_null(strstr(changed("deepseek-v3", "mla=512+64").notes, "changes nothing"));
    refused("lfm2-1.2b", "poles=2", "long convolution");
    refused("falcon-mamba-7b", "gqa=8", "no attention");
    refused("zamba2-7b", "window=1024:1/2", "weights of others");
    refused("zamba2-7b", "layers=16", "none can be left out");
    refused("llama-2-13b", "state=fp8", "fp32, bf16 or fp16");
    refused("qwen3.5-27b", "mla=512+64", "gate");
}

/* ---- pruning: shapes of published models ---- */

static void test_pruning(void **state)
{
    (void)state;
    /* Llama-3.1-Minitron 4B: by width (D 3072, F 9216) and by depth (16 of 32 layers); heads, and so the cache, stay.
     */
    const double v = 128256, d = 4096, w = 3072;
    const double wide = 2 * v * w + w + 32 * (2 * w * 4096 + 2 * w * 1024 + 3 * w * 9216 + 2 * w);
    const double deep = 2 * v * d + d + 16 * (2 * d * 4096 + 2 * d * 1024 + 3 * d * 14336 + 2 * d);
    want_params("llama-3.1-8b", "hidden=3072+ffn=9216", wide, false);
    want_params("llama-3.1-8b", "layers=16", deep, false);
    assert_true(fabs(wide - 4.51e9) < 0.005e9 && fabs(deep - 4.54e9) < 0.005e9);
    want_cache("llama-3.1-8b", "hidden=3072+ffn=9216", 131072, 0);
    want_cache("llama-3.1-8b", "layers=16", 65536, 0);
    /* Mistral-NeMo-Minitron 8B. */
    const double nemo = 2 * 131072.0 * d + d + 40 * (2 * d * 4096 + 2 * d * 1024 + 3 * d * 11520 + 2 * d);
    want_params("mistral-nemo-12b", "hidden=4096+ffn=11520", nemo, false);
    assert_true(fabs(nemo - 8.41e9) < 0.005e9);
    want_cache("mistral-nemo-12b", "hidden=4096+ffn=11520", 163840, 0);
    /* Nemotron-4 15B to Minitron 8B and 4B: two matrices in the MLP, norms with biases. */
    static const struct {
        const char *model, *stack;
        double d, f, heads;
    } PATH[] = {{"minitron-8b", "hidden=4096+ffn=16384", 4096, 16384, 48},
                {"minitron-4b", "hidden=3072+ffn=9216+heads=24", 3072, 9216, 24}};
    for (size_t i = 0; i < COUNT(PATH); i++) {
        const double q = PATH[i].heads * 128, p = PATH[i].d;
        const double want = 2 * 256000 * p + 2 * p + 32 * (2 * p * q + 2 * p * 1024 + 2 * p * PATH[i].f + 4 * p);
        want_params("nemotron-4-15b", PATH[i].stack, want, false);
        want_params(PATH[i].model, "kv=bf16", want, false);
        want_cache("nemotron-4-15b", PATH[i].stack, 131072, 0);
    }
    /* Heads: KV heads stay, or are as many where they were. */
    want_params("llama-2-13b", "heads=20", OUTSIDE + L * (MLP + 4.0 * D * 2560), false);
    want_cache("llama-2-13b", "heads=20", 819200.0 / 2, 0);
    want_cache("llama-3.1-8b", "heads=24", 131072, 0);
    want_cache("deepseek-v2", "heads=64", 60 * 576 * 2.0, 0);
    refused("llama-3.1-8b", "heads=20", "8 KV heads");
    refused("llama-2-13b", "layers=41", "only be left out");
    refused("mixtral-8x7b", "ffn=7168", "experts");
    /* The dense prefix stays in front. */
    const struct model m = changed("deepseek-v3", "layers=7");
    assert_int_equal(m.kinds_n, 2);
    assert_int_equal(m.kinds[0].count, 3);
    assert_int_equal(m.kinds[0].ffn.kind, FFN_DENSE);
    assert_int_equal(m.kinds[1].count, 4);
}

/* ---- formats, stacks, names ---- */

static void test_formats(void **state)
{
    (void)state;
    const double linear = L * (4.0 * D * D + 3.0 * D * F), rest = 2.0 * V * D + (2.0 * L + 1) * D;
    /* 4 + (16 + 4)/128 bits, every row being a multiple of 128; 8 bits and a 16-bit scale a row. */
    const double rows = L * (4.0 * D + 2.0 * F + D);
    const struct {
        const char *what;
        double bytes;
    } FORMATS[] = {
        {"weights=fp8", linear + 2 * rest},
        {"weights=int8", linear + 2 * rows + 2 * rest},
        {"weights=int4-g128", linear * (4 + 20.0 / 128) / 8 + 2 * rest},
    };
    for (size_t i = 0; i < COUNT(FORMATS); i++) {
        const struct model m = changed("llama-2-13b", FORMATS[i].what);
        const double found = figures(&m, 1, 1024).weights;
        if (fabs(found - FORMATS[i].bytes) > 0)
            fail_msg("%s: %.17g bytes, want %.17g", FORMATS[i].what, found, FORMATS[i].bytes);
    }
    /* 3 bits, a 16-bit scale and a zero point of 3 or 4 bits for 128 of them. */
    const struct model three = changed("llama-2-13b", "weights=int3-g128");
    const double bits = (figures(&three, 1, 1024).weights - 2 * rest) * 8 / linear;
    assert_true(bits >= 3 + 19.0 / 128 && bits <= 3 + 20.0 / 128);
    want_cache("llama-2-13b", "kv=fp8", 819200.0 / 2, 0);
    want_cache("llama-2-13b", "kv=int8+gqa=8", 163840.0 / 2, 0);
    assert_string_equal(changed("llama-2-13b", "activations=fp32").activations.name, "fp32");
    refused("llama-2-13b", "weights=int5", "int5");
    refused("llama-2-13b", "kv=none", "none");
}

static void test_stacks(void **state)
{
    (void)state;
    const struct model m = changed("llama-2-13b", "gqa=8,window=1024:5/6+cla=2,kv=int8");
    assert_string_equal(m.name, "llama-2-13b gqa=8 window=1024:5/6 cla=2 kv=int8");
    assert_string_equal(m.attention, "GQA, 34/40 within 1024, 20/40 share KV");
    want_cache("llama-2-13b", "gqa=8,window=1024:5/6+cla=2,kv=int8", 3 * 2048, 17 * 2048);
    /* In order: 24 heads divide into 8 groups, 40 heads with 8 groups do not become 20. */
    want_cache("llama-2-13b", "heads=24+gqa=8", 163840, 0);
    refused("llama-2-13b", "gqa=8+heads=20", "8 KV heads");
    want_cache("llama-2-13b", "heads=20+gqa=10", 40 * 10 * 2 * 128 * 2.0, 0);
    /* The last one of a kind counts. */
    want_cache("llama-2-13b", "gqa=8+gqa=4", 163840.0 / 2, 0);
    refused("llama-2-13b", "", "empty");
    refused("llama-2-13b", "gqa=8,,mqa", "empty");
    refused("llama-2-13b", "gqa=8+", "empty");
    refused("llama-2-13b", "gqa=", "gqa=N");
    refused("llama-2-13b", "mqa=1", "no value");
    refused("llama-2-13b", "wndow=1024", "window");
    const struct model a = changed("llama-2-13b", "gqa=8"), b = changed("llama-2-13b", "gqa=4"),
                       c = load("llama-2-13b");
    assert_string_not_equal(a.hash, b.hash);
    assert_string_not_equal(a.hash, c.hash);
}

/* What a checkpoint's headers say holds while its weights do. */
static void test_stored(void **state)
{
    static const struct {
        const char *what;
        bool kept;
    } CASES[] = {{"kv=fp8", true}, {"activations=fp32", true}, {"weights=fp8", false}, {"gqa=8", false}};
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct model m = load("llama-2-13b");
        struct err e = {0};
        m.stored_bytes = 26031728640.0;
        m.stored_elems = 13015864320.0;
        assert_int_equal(whatif_apply(A, &m, CASES[i].what, &e), ERR_OK);
        assert_int_equal(isnan(m.stored_bytes), !CASES[i].kept);
        assert_int_equal(isnan(m.stored_elems), !CASES[i].kept);
    }
}

/* Every row of the table on every built-in model: a whole model comes out that can be timed, or a sentence. */
static void test_all_models(void **state)
{
    static const char *const TRIED[] = {
        "gqa=4",    "mqa",         "mha",     "mla=256+32", "cla=2",           "window=512:3/4",
        "ssm=2/3",  "linear=2/3",  "poles=3", "layers=2",   "hidden=1920",     "ffn=2560",
        "heads=16", "weights=fp8", "kv=fp8",  "state=bf16", "activations=bf16"};
    const char *const *names;
    size_t rows;
    (void)state;
    (void)whatif_table(&rows);
    assert_int_equal(rows, COUNT(TRIED));
    const size_t n = model_builtins(A, &names);
    for (size_t i = 0; i < n; i++) {
        const struct model base = load(names[i]);
        const bool priced = !base.weights_unknown;
        for (size_t k = 0; k < COUNT(TRIED) && priced; k++) {
            struct model m = base;
            struct err e = {0};
            if (whatif_apply(A, &m, TRIED[k], &e) != ERR_OK) {
                assert_int_equal(e.code, ERR_USAGE);
                assert_non_null(strchr(e.text, ':'));
                continue;
            }
            const struct figures f = figures(&m, 3, 777);
            if (!(f.weights > 0) || !(f.kv >= 0) || !(f.decode_s > 0)) fail_msg("%s", m.name);
        }
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_arena, close_arena)
    const struct CMUnitTest tests[] = {
        TEST(test_fewer_heads), TEST(test_latent),  TEST(test_across_layers), TEST(test_window), TEST(test_states),
        TEST(test_pruning),     TEST(test_formats), TEST(test_stacks),        TEST(test_stored), TEST(test_all_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
