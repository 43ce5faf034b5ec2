/* Quantised checkpoints whose config says another quantisation, or none: every file is written tensor by tensor, and
 * the model must weigh the sum of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/cost.h"
#include "calc/model/model.h"
#include "tests/checkpoint.h"
#include "tests/scratch.h"

/* Two layers, 8 heads of 32, 2 of keys, 97 words, untied. */
enum { LAYERS = 2, D = 256, N = 256, K = 64, F = 384, V = 97, E = 3, W = 128 };

#define CONFIG                                                                                                         \
    "{\"model_type\":\"llama\",\"hidden_size\":256,\"num_attention_heads\":8,\"num_key_value_heads\":2,"               \
    "\"head_dim\":32,\"intermediate_size\":384,\"num_hidden_layers\":2,\"vocab_size\":97,"                             \
    "\"tie_word_embeddings\":false,\"max_position_embeddings\":512,\"torch_dtype\":\"bfloat16\""

#define EXPERTS                                                                                                        \
    "{\"model_type\":\"qwen3_moe\",\"hidden_size\":256,\"num_attention_heads\":8,\"num_key_value_heads\":2,"           \
    "\"head_dim\":32,\"intermediate_size\":384,\"moe_intermediate_size\":128,\"num_experts\":3,"                       \
    "\"num_experts_per_tok\":2,\"num_hidden_layers\":2,\"vocab_size\":97,\"max_position_embeddings\":512,"             \
    "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\""

struct file {
    char *header;
    size_t n;
    int64_t bytes;
};

static void add(struct file *f, const char *name, const char *type, int64_t rows, int64_t columns)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } TYPES[] = {{"BF16", 2},    {"F16", 2}, {"F32", 4}, {"I32", 4},     {"I64", 8},
                 {"F8_E4M3", 1}, {"U8", 1},  {"I8", 1},  {"F8_E8M0", 1}, {"U32", 4}};
    int64_t each = 0;
    char shape[64] = "";
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (strcmp(TYPES[i].name, type) == 0) each = TYPES[i].bytes;
    assert_true(each > 0);
    if (rows > 0 && columns > 0)
        (void)snprintf(shape, sizeof shape, "%lld,%lld", (long long)rows, (long long)columns);
    else if (rows > 0)
        (void)snprintf(shape, sizeof shape, "%lld", (long long)rows);
    const int64_t end = f->bytes + each * (rows > 0 ? rows : 1) * (columns > 0 ? columns : 1);
    const int n = snprintf(f->header + f->n, (1 << 17) - f->n,
                           "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%lld,%lld]}", f->n ? ',' : '{',
                           name, type, shape, (long long)f->bytes, (long long)end);
    assert_true(n > 0 && f->n + (size_t)n < (1 << 17) - 2);
    f->n += (size_t)n;
    f->bytes = end;
}

/* name + tail */
static void part(struct file *f, const char *name, const char *tail, const char *type, int64_t rows, int64_t columns)
{
    char all[256];
    (void)snprintf(all, sizeof all, "%s%s", name, tail);
    add(f, all, type, rows, columns);
}

/* One matrix of `out` rows and `in` columns, stored in one way. */
typedef void put_matrix(struct file *f, const char *name, int64_t out, int64_t in);

static void put_plain(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "BF16", out, in);
}

static void put_awq(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".qweight", "I32", in, out / 8);
    part(f, name, ".qzeros", "I32", in / 64, out / 8);
    part(f, name, ".scales", "F16", in / 64, out);
}

static void put_gptq(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".qweight", "I32", in / 4, out);
    part(f, name, ".qzeros", "I32", in / 128, out / 4);
    part(f, name, ".scales", "F16", in / 128, out);
    part(f, name, ".g_idx", "I32", in, 0);
}

static void put_gptq4(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".qweight", "I32", in / 8, out);
    part(f, name, ".qzeros", "I32", in / 128, out / 8);
    part(f, name, ".scales", "F16", in / 128, out);
    part(f, name, ".g_idx", "I32", in, 0);
}

static void put_tiles(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "F8_E4M3", out, in);
    part(f, name, ".weight_scale_inv", "F32", (out + 127) / 128, in / 128);
}

static void put_rows(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "F8_E4M3", out, in);
    part(f, name, ".weight_scale", "BF16", out, 1);
}

static void put_static(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "F8_E4M3", out, in);
    part(f, name, ".weight_scale", "F32", 0, 0);
    part(f, name, ".input_scale", "F32", 0, 0);
}

static void put_nvfp4(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "U8", out, in / 2);
    part(f, name, ".weight_scale", "F8_E4M3", out, in / 16);
    part(f, name, ".weight_scale_2", "F32", 0, 0);
    part(f, name, ".input_scale", "F32", 0, 0);
}

static void put_packed(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight_packed", "I32", out, in / 8);
    part(f, name, ".weight_scale", "BF16", out, in / 32);
    part(f, name, ".weight_shape", "I64", 2, 0);
}

static void put_mxfp4(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight_packed", "U8", out, in / 2);
    part(f, name, ".weight_scale", "U8", out, in / 32);
}

static void put_ternary(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "U8", out / 4, in);
    part(f, name, ".weight_scale", "BF16", 1, 0);
}

static void put_int8(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "I8", out, in);
    part(f, name, ".weight_scale", "BF16", out, 1);
}

static void put_nf4(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "U8", out * in / 2, 1);
    part(f, name, ".weight.absmax", "F32", out * in / 64, 0);
    part(f, name, ".weight.quant_map", "F32", 16, 0);
}

static void put_mlx(struct file *f, const char *name, int64_t out, int64_t in)
{
    part(f, name, ".weight", "U32", out, in / 8);
    part(f, name, ".scales", "BF16", out, in / 64);
    part(f, name, ".biases", "BF16", out, in / 64);
}

static void layer_part(struct file *f, put_matrix *put, int i, const char *tail, int64_t out, int64_t in)
{
    char name[192];
    (void)snprintf(name, sizeof name, "model.layers.%d.%s", i, tail);
    put(f, name, out, in);
}

static void norm(struct file *f, int i, const char *tail, int64_t width)
{
    char name[192];
    (void)snprintf(name, sizeof name, "model.layers.%d.%s.weight", i, tail);
    add(f, name, "BF16", width, 0);
}

/* attention: of layers from 1 on; first: of layer 0; mlp; head: of the output head. */
struct stored_layout {
    put_matrix *first, *attention, *mlp, *head;
    bool experts;
};

static void put_layer(struct file *f, const struct stored_layout *x, int i)
{
    put_matrix *attention = i == 0 ? x->first : x->attention;
    layer_part(f, attention, i, "self_attn.q_proj", N, D);
    layer_part(f, attention, i, "self_attn.k_proj", K, D);
    layer_part(f, attention, i, "self_attn.v_proj", K, D);
    layer_part(f, attention, i, "self_attn.o_proj", D, N);
    norm(f, i, "input_layernorm", D);
    norm(f, i, "post_attention_layernorm", D);
    if (!x->experts) {
        layer_part(f, x->mlp, i, "mlp.gate_proj", F, D);
        layer_part(f, x->mlp, i, "mlp.up_proj", F, D);
        layer_part(f, x->mlp, i, "mlp.down_proj", D, F);
        return;
    }
    norm(f, i, "self_attn.q_norm", 32);
    norm(f, i, "self_attn.k_norm", 32);
    layer_part(f, put_plain, i, "mlp.gate", E, D);
    for (int k = 0; k < E; k++) {
        char name[64];
        static const char *const TAILS[] = {"gate_proj", "up_proj", "down_proj"};
        for (int t = 0; t < 3; t++) {
            (void)snprintf(name, sizeof name, "mlp.experts.%d.%s", k, TAILS[t]);
            layer_part(f, x->mlp, i, name, t == 2 ? D : W, t == 2 ? W : D);
        }
    }
}

static int64_t write_file(const char *dir, const struct stored_layout *x)
{
    struct file f = {.header = malloc(1 << 17)};
    assert_non_null(f.header);
    add(&f, "model.embed_tokens.weight", "BF16", V, D);
    x->head(&f, "lm_head", V, D);
    add(&f, "model.norm.weight", "BF16", D, 0);
    for (int i = 0; i < LAYERS; i++) put_layer(&f, x, i);
    f.header[f.n++] = '}';
    f.header[f.n] = '\0';
    checkpoint_safetensors(dir, "model.safetensors", f.header, f.bytes);
    free(f.header);
    return f.bytes;
}

static double weighs(struct arena *a, const struct model *m)
{
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_conventions v = {0};
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    struct cost_ops ops;
    double bytes = (double)NAN;
    if (cost_build(a, c, &y, m, &v, &pass, 1, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    if (cost_bind(c, &y, m, 1, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_true(sym_constant(cost_weight_bytes(c, &ops, &v), &bytes));
    return bytes;
}

static struct model load(struct arena *a, const char *dir, const char *base, const char *said)
{
    struct model m = {0};
    struct err e = {0};
    const char *text = arena_printf(a, "%s%s}", base, said);
    checkpoint_file(dir, "config.json", text, strlen(text), 0);
    if (model_load(a, dir, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s: %s", said, e.text);
    return m;
}

#define SAYS_FP8 ",\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}"
#define SAYS_INT4                                                                                                      \
    ",\"quantization_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"zero_point\":true}"
#define SAYS_TWO                                                                                                       \
    SAYS_FP8 ",\"compression_config\":{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":128,\"zero_point\":true}"
#define SAYS_UNKNOWN ",\"quantization_config\":{\"quant_method\":\"of-ones-own\",\"bits\":4}"

static const struct {
    put_matrix *put;
    const char *format; /* as the note calls it */
} SCHEMES[] = {{put_awq, "int4-g64"},    {put_gptq, "gptq8-g128"}, {put_tiles, "fp8-block128"},
               {put_rows, "fp8-row"},    {put_static, "fp8"},      {put_nvfp4, "nvfp4"},
               {put_packed, "int4-g32"}, {put_mxfp4, "mxfp4"},     {put_int8, "int8"},
               {put_ternary, "ternary"}, {put_nf4, "nf4"},         {put_plain, "bf16"}};

/* Whatever the config says, the model weighs its tensors; where they agree, nothing is said. */
static void test_schemes(void **state)
{
    (void)state;
    static const char *const SAID[] = {"", SAYS_FP8, SAYS_INT4, SAYS_TWO, SAYS_UNKNOWN};
    char dir[SCRATCH_MAX];
    (void)scratch_dir(dir);
    for (size_t i = 0; i < sizeof SCHEMES / sizeof SCHEMES[0]; i++) {
        put_matrix *put = SCHEMES[i].put;
        const struct stored_layout x = {.first = put, .attention = put, .mlp = put, .head = put_plain};
        const int64_t bytes = write_file(dir, &x);
        for (size_t k = 0; k < sizeof SAID / sizeof SAID[0]; k++) {
            struct arena *a = arena_open();
            const struct model m = load(a, dir, CONFIG, SAID[k]);
            if (m.weights_unknown) fail_msg("%s, said %zu: %s", SCHEMES[i].format, k, m.weights_unknown);
            const double found = weighs(a, &m);
            if (found < (double)bytes || found > (double)bytes)
                fail_msg("%s, said %zu: %.0f for %lld", SCHEMES[i].format, k, found, (long long)bytes);
            const bool agree = (k == 0 && put == put_plain) || (k == 1 && put == put_tiles);
            if (agree) {
                assert_null(m.notes);
            } else {
                assert_non_null(m.notes);
                if (!strstr(m.notes, SCHEMES[i].format)) fail_msg("%s: %s", SCHEMES[i].format, m.notes);
                assert_non_null(strstr(m.notes, "where the config says"));
            }
            if (k == 3) assert_non_null(strstr(m.notes, "quantised in two ways"));
            if (k == 4) assert_non_null(strstr(m.notes, "of-ones-own"));
            arena_close(a);
        }
    }
    scratch_remove(dir);
}

/* Matrices left as floats, by layer, by block and at the end; and those of a second format. */
static void test_mixtures(void **state)
{
    (void)state;
    const struct stored_layout layouts[] = {
        {.first = put_plain, .attention = put_awq, .mlp = put_awq, .head = put_plain},
        {.first = put_plain, .attention = put_plain, .mlp = put_nvfp4, .head = put_plain},
        {.first = put_static, .attention = put_static, .mlp = put_nvfp4, .head = put_plain},
        {.first = put_plain, .attention = put_static, .mlp = put_nvfp4, .head = put_static},
        {.first = put_plain, .attention = put_plain, .mlp = put_packed, .head = put_plain, .experts = true},
        {.first = put_rows, .attention = put_plain, .mlp = put_nvfp4, .head = put_rows, .experts = true},
        {.first = put_tiles, .attention = put_tiles, .mlp = put_tiles, .head = put_plain, .experts = true},
    };
    char dir[SCRATCH_MAX];
    (void)scratch_dir(dir);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const int64_t bytes = write_file(dir, &layouts[i]);
        struct arena *a = arena_open();
        const struct model m = load(a, dir, layouts[i].experts ? EXPERTS : CONFIG, SAYS_TWO);
        if (m.weights_unknown) fail_msg("%zu: %s", i, m.weights_unknown);
        const double found = weighs(a, &m);
        if (found < (double)bytes || found > (double)bytes) fail_msg("%zu: %.0f for %lld", i, found, (long long)bytes);
        arena_close(a);
    }
    scratch_remove(dir);
}

/* What the tensors do not tell stays as the config has it: two that contradict each other are no price. */
static void test_not_told(void **state)
{
    (void)state;
    const struct stored_layout x = {.first = put_mlx, .attention = put_mlx, .mlp = put_mlx, .head = put_plain};
    char dir[SCRATCH_MAX];
    (void)scratch_dir(dir);
    (void)write_file(dir, &x);
    struct arena *a = arena_open();
    assert_non_null(load(a, dir, CONFIG, SAYS_TWO).weights_unknown);
    assert_null(load(a, dir, CONFIG, SAYS_INT4).weights_unknown);
    assert_null(load(a, dir, CONFIG, SAYS_INT4).notes);
    scratch_remove(dir);
    arena_close(a);
}

/* ---- layers without attention, and configs that name the right format for the wrong matrices ---- */

struct row {
    const char *name; /* with %d for the layer */
    int64_t out, in;  /* in 0: a vector */
    put_matrix *put;  /* NULL: one tensor as it is, conv1d's with a side of 1 */
};

static void put_conv(struct file *f, const char *name, int64_t channels, int64_t taps)
{
    const int n = snprintf(f->header + f->n, (1 << 17) - f->n,
                           ",\"%s.weight\":{\"dtype\":\"BF16\",\"shape\":[%lld,1,%lld],\"data_offsets\":[%lld,%lld]}",
                           name, (long long)channels, (long long)taps, (long long)f->bytes,
                           (long long)(f->bytes + 2 * channels * taps));
    assert_true(n > 0);
    f->n += (size_t)n;
    f->bytes += 2 * channels * taps;
}

static int64_t write_rows(const char *dir, const char *embedding, const struct row *ends, size_t ends_n,
                          const struct row *const *layer, const size_t *layer_n, int layers)
{
    struct file f = {.header = malloc(1 << 17)};
    char name[192];
    assert_non_null(f.header);
    add(&f, embedding, "BF16", V, D);
    for (size_t i = 0; i < ends_n; i++) {
        if (ends[i].put)
            ends[i].put(&f, ends[i].name, ends[i].out, ends[i].in);
        else
            add(&f, ends[i].name, "BF16", ends[i].out, ends[i].in);
    }
    for (int i = 0; i < layers; i++)
        for (size_t k = 0; k < layer_n[i]; k++) {
            const struct row *x = &layer[i][k];
            (void)snprintf(name, sizeof name, "%s.layers.%d.%s",
                           strncmp(embedding, "backbone", 8) == 0 ? "backbone" : "model", i, x->name);
            if (x->put)
                x->put(&f, name, x->out, x->in);
            else
                add(&f, name, "BF16", x->out, x->in);
        }
    f.header[f.n++] = '}';
    f.header[f.n] = '\0';
    checkpoint_safetensors(dir, "model.safetensors", f.header, f.bytes);
    free(f.header);
    return f.bytes;
}

static void expect_bytes(const char *dir, const char *base, const char *said, int64_t bytes, const char *note)
{
    struct arena *a = arena_open();
    const struct model m = load(a, dir, base, said);
    if (m.weights_unknown) fail_msg("%s: %s", said, m.weights_unknown);
    const double found = weighs(a, &m);
    if (found < (double)bytes || found > (double)bytes) fail_msg("%s: %.0f for %lld", said, found, (long long)bytes);
    if (!note)
        assert_null(m.notes);
    else if (!m.notes || !strstr(m.notes, note))
        fail_msg("%s: %s", said, m.notes ? m.notes : "no note");
    arena_close(a);
}

#define SAYS_STATIC                                                                                                    \
    ",\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\",\"exclude_modules\":[\"lm_head\"%" \
    "s]}"

/* Mamba-1: inner width 512, time step of rank 16, states of 16. Mamba-1's two products of the time step may be left. */
static void test_mamba(void **state)
{
    (void)state;
    enum { I = 2 * D, R = 16, H = 16 };
    static const char CONFIG_MAMBA[] =
        "{\"model_type\":\"mamba\",\"hidden_size\":256,\"num_hidden_layers\":2,\"vocab_size\":97,\"state_size\":16,"
        "\"time_step_rank\":16,\"conv_kernel\":4,\"expand\":2,\"use_conv_bias\":true,\"torch_dtype\":\"bfloat16\"";
    static put_matrix *const PUTS[][2] = {{put_rows, put_rows}, {put_rows, put_plain}, {put_gptq, put_plain}};
    static const char *const SAID[] = {"", SAYS_FP8, SAYS_UNKNOWN};
    char dir[SCRATCH_MAX];
    (void)scratch_dir(dir);
    for (size_t i = 0; i < sizeof PUTS / sizeof PUTS[0]; i++) {
        const struct row rows[] = {{"norm.weight", D, 0, NULL},
                                   {"mixer.in_proj", 2 * I, D, PUTS[i][0]},
                                   {"mixer.conv1d", I, 4, put_conv},
                                   {"mixer.conv1d.bias", I, 0, NULL},
                                   {"mixer.x_proj", R + 2 * H, I, PUTS[i][1]},
                                   {"mixer.dt_proj", I, R, PUTS[i][1]},
                                   {"mixer.dt_proj.bias", I, 0, NULL},
                                   {"mixer.A_log", I, H, NULL},
                                   {"mixer.D", I, 0, NULL},
                                   {"mixer.out_proj", D, I, PUTS[i][0]}};
        const struct row *const layers[] = {rows, rows};
        const size_t n = sizeof rows / sizeof rows[0], counts[] = {n, n};
        const struct row ends[] = {{"backbone.norm_f.weight", D, 0, NULL}};
        const int64_t bytes = write_rows(dir, "backbone.embeddings.weight", ends, 1, layers, counts, 2);
        for (size_t k = 0; k < sizeof SAID / sizeof SAID[0]; k++)
            expect_bytes(dir, CONFIG_MAMBA, SAID[k], bytes, "counted as stored");
    }
    scratch_remove(dir);
}

/* LFM2: a convolution's projections and attention's have a last word in common. */
static void test_short_convolution(void **state)
{
    (void)state;
    static const char CONFIG_LFM2[] =
        "{\"model_type\":\"lfm2\",\"hidden_size\":256,\"num_attention_heads\":8,\"num_key_value_heads\":2,"
        "\"num_hidden_layers\":2,\"vocab_size\":97,\"intermediate_size\":384,\"block_auto_adjust_ff_dim\":false,"
        "\"conv_L_cache\":3,\"layer_types\":[\"conv\",\"full_attention\"],\"torch_dtype\":\"bfloat16\"";
    static put_matrix *const PUTS[][3] = {
        {put_plain, put_rows, put_rows}, {put_plain, put_plain, put_gptq}, {put_rows, put_plain, put_plain}};
    char dir[SCRATCH_MAX];
    (void)scratch_dir(dir);
    for (size_t i = 0; i < sizeof PUTS / sizeof PUTS[0]; i++) {
        put_matrix *conv = PUTS[i][0], *attention = PUTS[i][1], *mlp = PUTS[i][2];
#define LFM2_MLP                                                                                                       \
    {"operator_norm.weight", D, 0, NULL}, {"ffn_norm.weight", D, 0, NULL}, {"feed_forward.w1", F, D, mlp},             \
        {"feed_forward.w3", F, D, mlp},                                                                                \
    {                                                                                                                  \
        "feed_forward.w2", D, F, mlp                                                                                   \
    }
        const struct row first[] = {
            LFM2_MLP, {"conv.in_proj", 3 * D, D, conv}, {"conv.conv", D, 3, put_conv}, {"conv.out_proj", D, D, conv}};
        const struct row second[] = {LFM2_MLP,
                                     {"self_attn.q_proj", N, D, attention},
                                     {"self_attn.k_proj", K, D, attention},
                                     {"self_attn.v_proj", K, D, attention},
                                     {"self_attn.out_proj", D, N, attention},
                                     {"self_attn.q_layernorm.weight", 32, 0, NULL},
                                     {"self_attn.k_layernorm.weight", 32, 0, NULL}};
        const struct row *const layers[] = {first, second};
        const size_t counts[] = {sizeof first / sizeof first[0], sizeof second / sizeof second[0]};
        const struct row ends[] = {{"model.embedding_norm.weight", D, 0, NULL}};
        const int64_t bytes = write_rows(dir, "model.embed_tokens.weight", ends, 1, layers, counts, 2);
        expect_bytes(dir, CONFIG_LFM2, "", bytes, "counted as stored");
        expect_bytes(dir, CONFIG_LFM2, SAYS_FP8, bytes, "counted as stored");
    }
    scratch_remove(dir);
}

/* The format is the config's, the matrices that have it are not. */
static void test_other_matrices(void **state)
{
    (void)state;
    static const struct stored_layout LAYOUTS[] = {
        {.first = put_static, .attention = put_static, .mlp = put_static, .head = put_plain},
        {.first = put_plain, .attention = put_static, .mlp = put_static, .head = put_plain},
        {.first = put_static, .attention = put_plain, .mlp = put_static, .head = put_plain},
        {.first = put_static, .attention = put_static, .mlp = put_static, .head = put_static}};
    static const char *const LEFT[] = {"", ",\"*o_proj\"", ",\"model.layers.1.self_attn*\",\"*gate_proj\"",
                                       ",\"model.layers.0.self_attn*\""};
    char dir[SCRATCH_MAX], said[512];
    (void)scratch_dir(dir);
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof LAYOUTS[0]; i++) {
        const int64_t bytes = write_file(dir, &LAYOUTS[i]);
        for (size_t k = 0; k < sizeof LEFT / sizeof LEFT[0]; k++) {
            const bool agree = (i == 0 && k == 0) || (i == 1 && k == 3);
            (void)snprintf(said, sizeof said, SAYS_STATIC, LEFT[k]);
            expect_bytes(dir, CONFIG, said, bytes, agree ? NULL : "which matrices are stored as fp8 differs");
        }
    }
    /* AWQ said, GPTQ stored with its column of indexes */
    const struct stored_layout gptq = {.first = put_gptq4, .attention = put_gptq4, .mlp = put_gptq4, .head = put_plain};
    expect_bytes(dir, CONFIG, SAYS_INT4, write_file(dir, &gptq), "stored as gptq4-g128");
    scratch_remove(dir);
}

/* Quantised matrices of layers that have no names here are no price, and are not counted as floats. */
static void test_no_names(void **state)
{
    (void)state;
    static const char CONFIG_RWKV[] =
        "{\"model_type\":\"rwkv5\",\"hidden_size\":256,\"num_hidden_layers\":2,\"vocab_size\":97,\"head_size\":64,"
        "\"attention_hidden_size\":256,\"intermediate_size\":384,\"torch_dtype\":\"bfloat16\"";
    const struct stored_layout x = {.first = put_rows, .attention = put_rows, .mlp = put_rows, .head = put_plain};
    char dir[SCRATCH_MAX];
    (void)scratch_dir(dir);
    (void)write_file(dir, &x);
    struct arena *a = arena_open();
    const struct model m = load(a, dir, CONFIG_RWKV, "");
    assert_non_null(m.weights_unknown);
    assert_non_null(strstr(m.weights_unknown, "quantised by its tensors"));
    scratch_remove(dir);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schemes),           cmocka_unit_test(test_mixtures),
                                       cmocka_unit_test(test_not_told),          cmocka_unit_test(test_mamba),
                                       cmocka_unit_test(test_short_convolution), cmocka_unit_test(test_other_matrices),
                                       cmocka_unit_test(test_no_names)};
    return cmocka_run_group_tests_name("stored_tensors", tests, NULL, NULL);
}
