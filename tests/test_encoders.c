/* Encoder-decoders: parameters against lists of tensors and published totals; operators against a walk over layers,
 * tokens and heads that counts multiply-adds and bytes; what is counted once a request, and what grows. Tensors as in
 * transformers' modeling_t5, _umt5, _bart, _mbart, _blenderbot, _pegasus, _marian, _m2m_100 and _whisper. */
#include "tests/families.h"

#include <string.h>

#include "calc/time/step.h"

/* Biased attention and an MLP of two matrices, with a norm in front of each; `keys` biases of keys. */
#define BIASED(width, layers, blocks, keys)                                                                            \
    EACH("q, k, v, out", 4 * (width), width, (layers) * (blocks)),                                                     \
        EACH("their biases", 3 + (keys), width, (layers) * (blocks)),                                                  \
        EACH("layer norms", 2 * ((blocks) + 1), width, layers)
#define TWO(width, wide, layers)                                                                                       \
    EACH("fc1, fc2", 2 * (wide), width, layers), EACH("their biases", 1, (wide) + (width), layers)
#define BART(width, wide, n_enc, n_dec)                                                                                \
    BIASED(width, n_enc, 1, 1), TWO(width, wide, n_enc), BIASED(width, n_dec, 2, 1), TWO(width, wide, n_dec)

#define SIZES(width, heads, wide, layers)                                                                              \
    "\"d_model\":" #width ",\"encoder_layers\":" #layers ",\"decoder_layers\":" #layers                                \
    ",\"encoder_attention_heads\":" #heads ",\"decoder_attention_heads\":" #heads ",\"encoder_ffn_dim\":" #wide        \
    ",\"decoder_ffn_dim\":" #wide ",\"is_encoder_decoder\":true,\"torch_dtype\":\"float16\""
#define T5(width, heads, kv, wide, layers)                                                                             \
    "\"d_model\":" #width ",\"num_layers\":" #layers ",\"num_heads\":" #heads ",\"d_kv\":" #kv ",\"d_ff\":" #wide      \
    ",\"is_encoder_decoder\":true,\"torch_dtype\":\"bfloat16\""
#define T5_LAYERS(width, inner, mlp, layers)                                                                           \
    EACH("SelfAttention", 4 * (inner), width, 2 * (layers)), EACH("EncDecAttention", 4 * (inner), width, layers),      \
        EACH("DenseReluDense", mlp, width, 2 * (layers)), EACH("layer_norm", 2 + 3, width, layers),                    \
        EACH("final_layer_norm", 2, width, 1)

static const struct subject SUBJECTS[] = {
    {"whisper-large-v3",
     "{\"model_type\":\"whisper\",\"vocab_size\":51866,\"num_mel_bins\":128,\"max_source_positions\":1500,"
     "\"max_target_positions\":448," SIZES(1280, 20, 5120, 32) "}",
     {EACH("decoder.embed_tokens", 51866, 1280, 1), EACH("decoder.embed_positions", 448, 1280, 1),
      EACH("encoder.embed_positions", 1500, 1280, 1), EACH("conv1", 3 * 128 + 1, 1280, 1),
      EACH("conv2", 3 * 1280 + 1, 1280, 1), EACH("layer_norm", 2 * 2, 1280, 1), BIASED(1280, 32, 1, 0),
      TWO(1280, 5120, 32), BIASED(1280, 32, 2, 0), TWO(1280, 5120, 32)},
     32 * 2 * 1280,
     0,
     0,
     0},
    {"whisper-tiny",
     "{\"model_type\":\"whisper\",\"vocab_size\":51865,\"num_mel_bins\":80,\"max_source_positions\":1500,"
     "\"max_target_positions\":448," SIZES(384, 6, 1536, 4) "}",
     {EACH("decoder.embed_tokens", 51865, 384, 1), EACH("embed_positions", 448 + 1500, 384, 1),
      EACH("conv1", 3 * 80 + 1, 384, 1), EACH("conv2", 3 * 384 + 1, 384, 1), EACH("layer_norm", 2 * 2, 384, 1),
      BIASED(384, 4, 1, 0), TWO(384, 1536, 4), BIASED(384, 4, 2, 0), TWO(384, 1536, 4)},
     4 * 2 * 384,
     0,
     0,
     0},
    {"t5-small",
     "{\"model_type\":\"t5\",\"vocab_size\":32128," T5(512, 8, 64, 2048, 6) "}",
     {EACH("shared", 32128, 512, 1), EACH("relative_attention_bias", 32, 8, 2), T5_LAYERS(512, 512, 2 * 2048, 6)},
     6 * 2 * 512,
     0,
     0,
     0},
    {"t5-base",
     "{\"model_type\":\"t5\",\"vocab_size\":32128,\"num_decoder_layers\":12," T5(768, 12, 64, 3072, 12) "}",
     {EACH("shared", 32128, 768, 1), EACH("relative_attention_bias", 32, 12, 2), T5_LAYERS(768, 768, 2 * 3072, 12)},
     12 * 2 * 768,
     0,
     0,
     0},
    {"flan-t5-small",
     "{\"model_type\":\"t5\",\"vocab_size\":32128,\"feed_forward_proj\":\"gated-gelu\",\"tie_word_embeddings\":"
     "false," T5(512, 6, 64, 1024, 8) "}",
     {EACH("shared", 32128, 512, 1), HEAD(32128, 512), EACH("relative_attention_bias", 32, 6, 2),
      T5_LAYERS(512, 6 * 64, 3 * 1024, 8)},
     8 * 2 * 6 * 64,
     0,
     0,
     0},
    {"mt5-small",
     "{\"model_type\":\"mt5\",\"vocab_size\":250112," T5(512, 6, 64, 1024, 8) "}",
     {EACH("shared", 250112, 512, 1), HEAD(250112, 512), EACH("relative_attention_bias", 32, 6, 2),
      T5_LAYERS(512, 6 * 64, 3 * 1024, 8)},
     8 * 2 * 6 * 64,
     0,
     0,
     0},
    {"umt5-small", /* a table in every layer */
     "{\"model_type\":\"umt5\",\"vocab_size\":256384," T5(512, 6, 64, 1024, 8) "}",
     {EACH("shared", 256384, 512, 1), HEAD(256384, 512), EACH("relative_attention_bias", 32, 6, 2 * 8),
      T5_LAYERS(512, 6 * 64, 3 * 1024, 8)},
     8 * 2 * 6 * 64,
     0,
     0,
     0},
    {"bart-large",
     "{\"model_type\":\"bart\",\"architectures\":[\"BartModel\"],\"vocab_size\":50265,\"max_position_embeddings\":"
     "1024," SIZES(1024, 16, 4096, 12) "}",
     {EACH("shared", 50265, 1024, 1), EACH("embed_positions", 1024 + 2, 1024, 2),
      EACH("layernorm_embedding", 2 * 2, 1024, 1), BART(1024, 4096, 12, 12)},
     12 * 2 * 1024,
     0,
     0,
     0},
    {"mbart-large-50",
     "{\"model_type\":\"mbart\",\"vocab_size\":250054,\"max_position_embeddings\":1024," SIZES(1024, 16, 4096, 12) "}",
     {EACH("shared", 250054, 1024, 1), EACH("embed_positions", 1024 + 2, 1024, 2),
      EACH("layernorm_embedding", 2 * 2, 1024, 1), EACH("layer_norm", 2 * 2, 1024, 1), BART(1024, 4096, 12, 12)},
     12 * 2 * 1024,
     0,
     0,
     0},
    {"blenderbot-400M-distill",
     "{\"model_type\":\"blenderbot\",\"vocab_size\":8008,\"max_position_embeddings\":128,\"d_model\":1280,"
     "\"encoder_layers\":2,\"decoder_layers\":12,\"encoder_attention_heads\":32,\"decoder_attention_heads\":32,"
     "\"encoder_ffn_dim\":5120,\"decoder_ffn_dim\":5120}",
     {EACH("shared", 8008, 1280, 1), EACH("embed_positions", 128, 1280, 2), EACH("layer_norm", 2 * 2, 1280, 1),
      BART(1280, 5120, 2, 12)},
     12 * 2 * 1280,
     0,
     0,
     0},
    {"pegasus-large",
     "{\"model_type\":\"pegasus\",\"vocab_size\":96103,\"max_position_embeddings\":1024," SIZES(1024, 16, 4096, 16) "}",
     {EACH("shared", 96103, 1024, 1), EACH("embed_positions", 1024, 1024, 2), EACH("layer_norm", 2 * 2, 1024, 1),
      BART(1024, 4096, 16, 16)},
     16 * 2 * 1024,
     0,
     0,
     0},
    {"opus-mt-en-de",
     "{\"model_type\":\"marian\",\"vocab_size\":58101,\"max_position_embeddings\":512," SIZES(512, 8, 2048, 6) "}",
     {EACH("shared", 58101, 512, 1), EACH("embed_positions", 512, 512, 2), BART(512, 2048, 6, 6)},
     6 * 2 * 512,
     0,
     0,
     0},
    {"m2m100_418M",
     "{\"model_type\":\"m2m_100\",\"vocab_size\":128112,\"max_position_embeddings\":1024," SIZES(1024, 16, 4096,
                                                                                                 12) "}",
     {EACH("shared", 128112, 1024, 1), EACH("layer_norm", 2 * 2, 1024, 1), BART(1024, 4096, 12, 12)},
     12 * 2 * 1024,
     0,
     0,
     0},
    {"nllb-200-distilled-600M",
     "{\"model_type\":\"m2m_100\",\"vocab_size\":256206,\"max_position_embeddings\":1024," SIZES(1024, 16, 4096,
                                                                                                 12) "}",
     {EACH("shared", 256206, 1024, 1), EACH("layer_norm", 2 * 2, 1024, 1), BART(1024, 4096, 12, 12)},
     12 * 2 * 1024,
     0,
     0,
     0},
};

enum { SUBJECTS_N = sizeof SUBJECTS / sizeof SUBJECTS[0] };

static void test_tensors(void **state)
{
    (void)state;
    families_tensors(SUBJECTS, SUBJECTS_N);
}

static void test_caches(void **state)
{
    (void)state;
    families_caches(SUBJECTS, SUBJECTS_N);
}

static struct model read_subject(struct arena *a, const char *name)
{
    for (size_t i = 0; i < SUBJECTS_N; i++)
        if (strcmp(SUBJECTS[i].model, name) == 0) return families_read(a, &SUBJECTS[i]);
    fail_msg("no subject %s", name);
    return (struct model){0};
}

/* Counts that Hugging Face's num_parameters prints of the loaded models; one shared embedding more is another number.
 */
static void test_published(void **state)
{
    static const struct {
        const char *model;
        double total;
    } OF[] = {{"whisper-large-v3", 1543490560},
              {"whisper-tiny", 37760640},
              {"t5-small", 60506624},
              {"t5-base", 222903552},
              {"flan-t5-small", 76961152},
              {"mt5-small", 300176768},
              {"bart-large", 406291456},
              {"mbart-large-50", 610879488},
              {"m2m100_418M", 483905536},
              {"nllb-200-distilled-600M", 615073792},
              {"opus-mt-en-de", 74410496},
              {"pegasus-large", 570797056},
              {"blenderbot-400M-distill", 364802560}};
    static const struct cost_conventions PLAIN = {0};
    (void)state;
    for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {.code = ERR_OK};
        const struct model m = read_subject(a, OF[i].model);
        struct cost_parameters p;
        assert_int_equal(cost_parameters(a, &m, &PLAIN, &p, &e), ERR_OK);
        if (p.total != OF[i].total) fail_msg("%s: %.0f, published %.0f", OF[i].model, p.total, OF[i].total);
        assert_true(p.total + (double)(m.vocab * m.hidden) !=
                    OF[i].total); /* the encoder's embedding is the decoder's */
        arena_close(a);
    }
}

/* ---- operators ---- */

/* A gated T5 and a Whisper of no published size; sources and contexts are primes. */
static const struct subject SMALL_T5 = {
    .model = "t5",
    .json = "{\"model_type\":\"t5\",\"vocab_size\":103,\"feed_forward_proj\":\"gated-silu\",\"num_decoder_layers\":3,"
            "\"relative_attention_num_buckets\":11,\"tie_word_embeddings\":false," T5(34, 3, 5, 29, 2) "}"};
static const struct subject SMALL_WHISPER = {
    .model = "whisper",
    .json = "{\"model_type\":\"whisper\",\"vocab_size\":97,\"num_mel_bins\":13,\"max_source_positions\":61,"
            "\"max_target_positions\":53," SIZES(28, 4, 31, 3) "}"};

struct counted {
    double flops, weights, kv; /* multiply-adds twice; elements of matrices that are read; of the cache */
};

struct sizes {
    int64_t encoder, decoder, width, heads, head, wide, ups, vocab, bands;
};

static void product(struct counted *c, int64_t rows, int64_t in, int64_t out)
{
    for (int64_t i = 0; i < rows; i++) c->flops += 2 * (double)in * (double)out;
    c->weights += (double)in * (double)out;
}

/* Scores and sums of every query with every key that it sees: all of them, or those up to itself. */
static void attend(struct counted *c, const struct sizes *s, int64_t queries, int64_t first, int64_t keys, bool causal)
{
    for (int64_t q = 0; q < queries; q++)
        for (int64_t k = 1; k <= keys; k++)
            if (!causal || k <= first + q) c->flops += 2 * 2 * (double)(s->heads * s->head);
}

static void mlp(struct counted *c, const struct sizes *s, int64_t rows)
{
    product(c, rows, s->width, s->ups * s->wide);
    product(c, rows, s->wide, s->width);
}

/* What a request's source is for: stem, encoder, and keys and values of every layer of the decoder. */
static void walk_source(struct counted *c, const struct sizes *s, int64_t source)
{
    const int64_t inner = s->heads * s->head;
    if (s->bands > 0) {
        product(c, 2 * source, 3 * s->bands, s->width);
        product(c, source, 3 * s->width, s->width);
    }
    for (int64_t l = 0; l < s->encoder; l++) {
        for (int i = 0; i < 3; i++) product(c, source, s->width, inner);
        attend(c, s, source, 1, source, false);
        product(c, source, inner, s->width);
        mlp(c, s, source);
    }
    for (int64_t l = 0; l < s->decoder; l++)
        for (int i = 0; i < 2; i++) {
            product(c, source, s->width, inner);
            c->kv += (double)(source * inner); /* written */
        }
}

/* A pass of the decoder over `tokens` that follow `before` ones. */
static void walk_decoder(struct counted *c, const struct sizes *s, int64_t source, int64_t before, int64_t tokens)
{
    const int64_t inner = s->heads * s->head;
    for (int64_t l = 0; l < s->decoder; l++) {
        for (int i = 0; i < 3; i++) product(c, tokens, s->width, inner);
        c->kv += 2 * (double)(tokens * inner) + 2 * (double)((before + tokens) * inner); /* written, read */
        attend(c, s, tokens, before + 1, before + tokens, true);
        product(c, tokens, inner, s->width);
        product(c, tokens, s->width, inner);
        c->kv += 2 * (double)(source * inner);
        attend(c, s, tokens, 1, source, false);
        product(c, tokens, inner, s->width);
        mlp(c, s, tokens);
    }
    product(c, 1, s->width, s->vocab);
}

static double number(const struct sym *e)
{
    double v = 0;
    assert_true(sym_constant(e, &v));
    return v;
}

/* Sums over the operators of a pass of one sequence; matrices are those of products. */
static struct counted sum_pass(struct arena *a, const struct model *m, const struct cost_pass *shape, int64_t source,
                               int64_t tokens, int64_t context)
{
    static const struct cost_conventions PLAIN = {0};
    struct sym_ctx *c = sym_open(a);
    struct cost_symbols y = cost_symbols_make(c);
    struct cost_pass pass = *shape;
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    struct counted r = {0};
    y.X = sym_int(c, source);
    pass.B = sym_int(c, 1);
    pass.T = sym_int(c, tokens);
    pass.S = sym_int(c, context);
    assert_int_equal(cost_build(a, c, &y, m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, m, 1, &ops, &e), ERR_OK);
    for (size_t i = 0; i < ops.n; i++) {
        const struct cost_op *op = &ops.op[i];
        const double flops = number(op->flops), times = (double)op->count;
        r.flops += times * flops;
        r.kv += times * number(op->kv_bytes) / 2; /* bytes of an element */
        if ((op->kind != OP_LINEAR && op->kind != OP_LM_HEAD) || !(flops > 0)) continue;
        for (size_t t = 0; t < op->tensors_n; t++) /* stacked matrices; a vector behind them is a bias */
            if (t == 0 || op->tensor[t].class != WEIGHT_OTHER) r.weights += times * number(op->tensor[t].elems);
    }
    return r;
}

static void same(const char *what, struct counted got, struct counted want)
{
    if (got.flops != want.flops || got.weights != want.weights || got.kv != want.kv)
        fail_msg("%s: %.0f flops, %.0f weights, %.0f elements of cache; walked %.0f, %.0f, %.0f", what, got.flops,
                 got.weights, got.kv, want.flops, want.weights, want.kv);
}

static void check_passes(const struct subject *subject, const struct sizes *s, int64_t source, int64_t start)
{
    struct arena *a = arena_open();
    const struct model m = families_read(a, subject);
    const struct cost_pass prefill = {.name = "prefill", .encodes = true},
                           decode = {.name = "decode", .absorbed = true};
    struct counted want = {0};
    assert_int_equal(m.encoder.start_tokens, start);
    walk_source(&want, s, source);
    walk_decoder(&want, s, source, 0, start);
    same(subject->model, sum_pass(a, &m, &prefill, source, start, start), want);
    for (int64_t context = 7; context < 53; context += 10) { /* the encoder is at rest, its output read whole */
        want = (struct counted){0};
        walk_decoder(&want, s, source, context - 1, 1);
        same(subject->model, sum_pass(a, &m, &decode, source, 1, context), want);
    }
    arena_close(a);
}

static void test_operators(void **state)
{
    static const struct sizes T5_SIZES = {2, 3, 34, 3, 5, 29, 2, 103, 0},
                              WHISPER_SIZES = {3, 3, 28, 4, 7, 31, 1, 97, 13};
    (void)state;
    check_passes(&SMALL_T5, &T5_SIZES, 41, 1);
    check_passes(&SMALL_WHISPER, &WHISPER_SIZES, 61, 2);
}

/* ---- what is easily got wrong ---- */

/* What one operator does, once: X = 41 places or tokens, B = 3 requests; two bytes an element throughout. */
struct each {
    const char *name;
    int kind; /* of layer; -1 outside */
    double flops, vector, weights, kv, activations, held;
};

static void check_each(const struct subject *subject, bool encodes, const struct each *want, size_t n)
{
    static const struct cost_conventions PLAIN = {0};
    struct arena *a = arena_open();
    const struct model m = families_read(a, subject);
    struct sym_ctx *c = sym_open(a);
    struct cost_symbols y = cost_symbols_make(c);
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    y.X = sym_int(c, 41);
    const struct cost_pass pass = {.name = "pass",
                                   .B = sym_int(c, 3),
                                   .T = sym_int(c, encodes ? 2 : 1),
                                   .S = sym_int(c, encodes ? 2 : 17),
                                   .encodes = encodes};
    assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, 1, &ops, &e), ERR_OK);
    for (size_t i = 0; i < n; i++) {
        const struct cost_op *op = NULL;
        for (size_t k = 0; k < ops.n && !op; k++)
            if (strcmp(ops.op[k].name, want[i].name) == 0 && ops.op[k].kind_index == want[i].kind) op = &ops.op[k];
        if (!op) fail_msg("%s: no %s in kind %d", subject->model, want[i].name, want[i].kind);
        const double got[] = {number(op->flops),    number(op->vector_flops),     number(op->weight_bytes),
                              number(op->kv_bytes), number(op->activation_bytes), number(op->held_bytes)};
        const double right[] = {want[i].flops, want[i].vector,      want[i].weights,
                                want[i].kv,    want[i].activations, want[i].held};
        for (size_t k = 0; k < 6; k++)
            if (got[k] != right[k])
                fail_msg("%s %s of kind %d, field %zu: %.17g, want %.17g", subject->model, want[i].name, want[i].kind,
                         k, got[k], right[k]);
    }
    arena_close(a);
}

/* Whisper: 28 wide, heads of 7, 13 bands; T5: 34 wide, 3 heads of 5, 11 distances. A norm is 7 flops an element with
 * bias and two vectors, 4 and one without; a nonlinearity reads and writes; a softmax is 5 flops a pair. */
static void test_each_operator(void **state)
{
    enum { ROWS = 3 * 41, D = 28, I = 15 };
    static const struct each WHISPER[] = {
        {"stem_conv", -1, 2.0 * 2 * ROWS * 39 * D, 2.0 * ROWS * D, 2.0 * (39 * D + D), 0, 2.0 * 2 * ROWS * (13 + D), 0},
        {"stem_conv_strided", -1, 2.0 * ROWS * 3 * D * D, ROWS * D, 2.0 * (3 * D * D + D), 0, 2.0 * ROWS * 3 * D, 0},
        {"source_positions", -1, 0, ROWS * D, 2.0 * ROWS * D, 0, 2.0 * 2 * ROWS * D, 0},
        {"source_norm", -1, 0, 7.0 * ROWS * D, 2.0 * 2 * D, 0, 2.0 * 2 * ROWS * D, 0},
        {"qkv_proj", 0, 2.0 * ROWS * D * 3 * D, ROWS * 2.0 * D, 2.0 * (3 * D * D + 2 * D), 0, 2.0 * ROWS * 4 * D, 0},
        {"attention", 0, 2.0 * 3 * 41 * 41 * 2 * D, 5.0 * 3 * 41 * 41 * 4, 0, 0, 2.0 * ROWS * (2 * D + 2 * D), 0},
        {"qkv_proj", 1, 2.0 * 6 * D * 3 * D, 6 * 2.0 * D, 2.0 * (3 * D * D + 2 * D), 0, 2.0 * 6 * 4 * D, 0},
        {"q_proj", 2, 2.0 * 6 * D * D, 6 * D, 2.0 * (D * D + D), 0, 2.0 * 6 * 2 * D, 0},
        {"source_kv_proj", 2, 2.0 * ROWS * D * 2 * D, ROWS * D, 2.0 * (2 * D * D + D), 0, 2.0 * ROWS * 3 * D, 0},
        {"source_kv_write", 2, 0, 0, 0, 2.0 * ROWS * 2 * D, 2.0 * ROWS * 2 * D, 2.0 * ROWS * 2 * D},
        {"attention", 2, 2.0 * 6 * 41 * 2 * D, 5.0 * 6 * 41 * 4, 0, 2.0 * ROWS * 2 * D, 2.0 * 6 * 2 * D, 0},
    };
    static const struct each RESTING[] = {
        {"stem_conv", -1, 0, 0, 0, 0, 0, 0},
        {"source_norm", -1, 0, 0, 0, 0, 0, 0},
        {"attention", 0, 0, 0, 0, 0, 0, 0},
        {"up_proj", 0, 0, 0, 0, 0, 0, 0},
        {"source_kv_proj", 2, 0, 0, 0, 0, 0, 0},
        {"source_kv_write", 2, 0, 0, 0, 0, 0, 2.0 * ROWS * 2 * D},
        {"attention", 2, 2.0 * 3 * 41 * 2 * D, 5.0 * 3 * 41 * 4, 0, 2.0 * ROWS * 2 * D, 2.0 * 3 * 2 * D, 0},
        {"attention", 1, 2.0 * 3 * 17 * 2 * D, 5.0 * 3 * 17 * 4, 0, 2.0 * 3 * 17 * 2 * D, 2.0 * 3 * 2 * D, 0},
    };
    static const struct each T5_OPS[] = {
        {"source_embed", -1, 0, 0, 2.0 * ROWS * 34, 0, 2.0 * ROWS * 34, 0},
        {"source_norm", -1, 0, 4.0 * ROWS * 34, 2.0 * 34, 0, 2.0 * 2 * ROWS * 34, 0},
        {"qkv_proj", 0, 2.0 * ROWS * 34 * 3 * I, 0, 2.0 * 3 * I * 34, 0, 2.0 * ROWS * (34 + 3 * I), 0},
        {"attention", 0, 2.0 * 3 * 41 * 41 * 2 * I, 6.0 * 3 * 41 * 41 * 3, 2.0 * 33, 0, 2.0 * ROWS * 4 * I, 0},
        {"attention", 1, 2.0 * 3 * 41 * 41 * 2 * I, 6.0 * 3 * 41 * 41 * 3, 2.0 * 33, 0, 2.0 * ROWS * 4 * I, 0},
        {"attention", 2, 2.0 * 3 * 3 * 2 * I, 6.0 * 3 * 3 * 3, 2.0 * 33, 2.0 * 6 * 2 * I, 2.0 * 6 * 2 * I, 0},
        {"attention", 3, 2.0 * 6 * 41 * 2 * I, 5.0 * 6 * 41 * 3, 0, 2.0 * ROWS * 2 * I, 2.0 * 6 * 2 * I, 0},
    };
    (void)state;
    check_each(&SMALL_WHISPER, true, WHISPER, sizeof WHISPER / sizeof WHISPER[0]);
    check_each(&SMALL_WHISPER, false, RESTING, sizeof RESTING / sizeof RESTING[0]);
    check_each(&SMALL_T5, true, T5_OPS, sizeof T5_OPS / sizeof T5_OPS[0]);
}

static double cache_at(struct arena *a, const struct model *m, int64_t source, int64_t context)
{
    struct sym_ctx *c = sym_open(a);
    struct cost_symbols y = cost_symbols_make(c);
    struct cost_cache cache;
    struct err e = {.code = ERR_OK};
    const struct sym_binding at[] = {{y.S, sym_int(c, context)}};
    y.X = sym_int(c, source);
    struct model free = *m;
    free.encoder.source_tokens = 0; /* so that X is what it is here */
    assert_int_equal(cost_cache(c, &y, &free, 1, &cache, &e), ERR_OK);
    return number(sym_bind(c, cache.bytes_per_sequence, at, 1));
}

/* Of the small Whisper: 3 layers, 28 wide, 2 bytes. */
static void test_two_caches(void **state)
{
    struct arena *a = arena_open();
    const struct model m = families_read(a, &SMALL_WHISPER);
    const double token = 3 * 2 * 28 * 2;
    (void)state;
    assert_true(cache_at(a, &m, 61, 19) == token * (61 + 19));
    assert_true(cache_at(a, &m, 61, 43) - cache_at(a, &m, 61, 19) == token * (43 - 19)); /* output grows one alone */
    assert_true(cache_at(a, &m, 47, 19) - cache_at(a, &m, 61, 19) == token * (47 - 61)); /* a source the other */
    arena_close(a);
}

/* Tokens of a source see each other: X*X pairs, where a causal mask would leave X*(X+1)/2. Flops of the encoder's
 * attention are the second difference of a pass over the source: all else is linear in it. */
static void test_not_causal(void **state)
{
    struct arena *a = arena_open();
    const struct model m = families_read(a, &SMALL_WHISPER);
    const struct cost_pass prefill = {.name = "prefill", .encodes = true};
    double f[3];
    (void)state;
    for (int64_t i = 0; i < 3; i++) f[i] = sum_pass(a, &m, &prefill, 17 + 12 * i, 2, 2).flops;
    const double squares = f[2] - 2 * f[1] + f[0], each = 3 * 2 * 2 * 28; /* layers, two products, heads */
    assert_true(squares == 2 * 12 * 12 * each);
    arena_close(a);
}

/* Times and memory of a point: T is the source, S the decoder's own. */
static void test_step(void **state)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    const struct model m = read_subject(a, "whisper-large-v3");
    struct hw hw;
    assert_int_equal(hw_load(a, "h100-sxm", &hw, &e), ERR_OK);
    const struct step_setup setup = {.model = &m, .hw = &hw, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    struct step *s;
    double v[2][STEP_VALUES_N];
    (void)state;
    assert_int_equal(step_compile(a, &setup, &s, &e), ERR_OK);
    assert_int_equal(step_eval_layout(s, NULL, 7, 1500, 101, 1, v[0], &e), ERR_OK);
    assert_int_equal(step_eval_layout(s, NULL, 7, 750, 101, 1, v[1], &e), ERR_OK);
    const double token = 32 * 2 * 1280 * 2, weights = 2.0 * 1543490560;
    assert_true(v[0][STEP_weight_bytes] == weights);
    assert_true(step_kv_bytes_per_source_token(s) == token && step_kv_bytes_per_token(s) == token);
    assert_true(v[0][STEP_kv_bytes] == 7 * token * (1500 + 101));
    assert_true(v[0][STEP_kv_allocated_bytes] == 7 * token * (94 * 16 + 7 * 16)); /* whole blocks of either */
    assert_true(v[1][STEP_kv_bytes] == 7 * token * (750 + 101));
    assert_true(v[0][STEP_prefill_flops] > 2 * v[1][STEP_prefill_flops] - v[1][STEP_decode_flops]);
    /* a step reads no weights of the encoder (636,966,400 numbers), no keys' products, no more of the table than rows
     */
    const double resting = 2 * (636966400.0 + 32 * (2 * 1280.0 * 1280 + 1280));
    assert_true(v[0][STEP_decode_bytes] < weights - resting + v[0][STEP_kv_bytes] + 7e7);
    assert_true(v[0][STEP_decode_bytes] > weights - resting + v[0][STEP_kv_bytes] - 3e6);
    arena_close(a);
}

static void test_not_described(void **state)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct model m = read_subject(a, "whisper-tiny");
    const struct model plain = {.name = "plain"};
    const struct layout stages = {.tp = 1, .pp = 2}, split = {.tp = 2}, uneven = {.tp = 4};
    (void)state;
    assert_int_equal(layout_check(&m, &stages, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "has an encoder"));
    assert_int_equal(layout_check(&m, &split, &e), ERR_OK);
    assert_int_equal(layout_check(&m, &uneven, &e), ERR_USAGE); /* 6 heads */
    assert_int_equal(model_set_source(&m, 1501, &e), ERR_USAGE);
    assert_int_equal(model_set_source(&m, 1499, &e), ERR_OK);
    assert_true(m.encoder.source_tokens == 1499);
    assert_int_equal(model_check_source(&plain, 3, &e), ERR_USAGE);
    assert_int_equal(model_refuse_encoder(&plain, "", &e), ERR_OK);
    arena_close(a);
}

/* Bytes of all weights of a config whose quantisation leaves out what `left` names. */
static double bytes_of(struct arena *a, const char *sizes, const char *left)
{
    static const struct cost_conventions PLAIN = {0};
    const char *text = arena_printf(a,
                                    "{%s,\"torch_dtype\":\"float16\",\"quantization_config\":{\"quant_method\":\"fp8\","
                                    "\"activation_scheme\":\"dynamic\",\"modules_to_not_convert\":[%s]}}",
                                    sizes, left);
    const struct subject s = {.model = left, .json = text};
    const struct model m = families_read(a, &s);
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S};
    struct cost_ops ops;
    struct err e = {.code = ERR_OK};
    if (m.weights_unknown) fail_msg("%s: %s", left, m.weights_unknown);
    assert_int_equal(cost_build(a, c, &y, &m, &PLAIN, &pass, 1, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind(c, &y, &m, 1, &ops, &e), ERR_OK);
    return number(cost_weight_bytes(c, &ops, &PLAIN));
}

/* What stays in 16 bits has a byte more an element: names say of which half, of which attention and of whose MLP. */
static void test_formats_by_name(void **state)
{
#define WHISPER_TEXT                                                                                                   \
    "\"model_type\":\"whisper\",\"vocab_size\":97,\"num_mel_bins\":13,\"d_model\":32,\"encoder_layers\":5,"            \
    "\"decoder_layers\":3,\"encoder_attention_heads\":4,\"decoder_attention_heads\":4,\"encoder_ffn_dim\":48,"         \
    "\"decoder_ffn_dim\":80"
#define T5_TEXT                                                                                                        \
    "\"model_type\":\"t5\",\"vocab_size\":97,\"d_model\":32,\"num_layers\":5,\"num_decoder_layers\":3,\"d_kv\":8,"     \
    "\"num_heads\":5,\"d_ff\":48,\"feed_forward_proj\":\"gated-gelu\""
    enum { D = 32, ENC = 48, DEC = 80, I = 40 };
    static const struct {
        const char *sizes, *left;
        double elems;
    } OF[] = {
        {WHISPER_TEXT, "\"re:model.encoder.*\"", 5 * (4 * D * D + 2 * D * ENC)},
        {WHISPER_TEXT, "\"re:.*decoder.*\"", 3 * (8 * D * D + 2 * D * DEC)},
        {WHISPER_TEXT, "\"model.encoder.layers.4\"", 4 * D * D + 2 * D * ENC},
        {WHISPER_TEXT, "\"model.encoder.layers.1.fc1\"", D * ENC},
        {WHISPER_TEXT, "\"model.decoder.layers.1.fc1\"", D * DEC},
        {WHISPER_TEXT, "\"fc2\"", 5 * D * ENC + 3 * D * DEC},
        {WHISPER_TEXT, "\"encoder_attn\"", 3 * 4 * D * D},
        {WHISPER_TEXT, "\"model.decoder.layers.2.encoder_attn.k_proj\"", D * D},
        {WHISPER_TEXT, "\"self_attn.out_proj\"", (5 + 3) * D * D},
        {WHISPER_TEXT, "\"proj_out\",\"model.encoder.conv1\"", 0},
        {T5_TEXT, "\"encoder.block.4.layer.1\"", 3 * D * ENC},
        {T5_TEXT, "\"decoder.block.1.layer.1\"", 4 * D * I},
        {T5_TEXT, "\"decoder.block.1.layer.2.DenseReluDense.wi_0\"", D * ENC},
        {T5_TEXT, "\"wo\"", (5 + 3) * D * ENC},
        {T5_TEXT, "\"re:decoder.*EncDecAttention.q\"", 3 * D * I},
        {T5_TEXT, "\"lm_head\"", 0},
    };
    struct arena *a = arena_open();
    (void)state;
    for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++) {
        const double more = bytes_of(a, OF[i].sizes, OF[i].left) - bytes_of(a, OF[i].sizes, "");
        if (more > OF[i].elems || more < 0.9 * OF[i].elems) /* and the scales of what was left out are gone */
            fail_msg("%s: %.17g bytes more, of %.0f elements", OF[i].left, more, OF[i].elems);
    }
    arena_close(a);
}

static void test_refused(void **state)
{
    static const struct refused CASES[] = {
        {"{\"model_type\":\"t5\",\"architectures\":[\"T5EncoderModel\"],\"vocab_size\":103," T5(34, 3, 5, 29, 2) "}",
         "an encoder alone"},
        {"{\"model_type\":\"t5\",\"vocab_size\":103,\"d_model\":34,\"num_layers\":2,\"num_heads\":3,\"d_kv\":5}",
         "d_ff is missing"},
        {"{\"model_type\":\"bart\",\"is_encoder_decoder\":false,\"d_model\":8}", "is_encoder_decoder is false"},
        {"{\"model_type\":\"bart\",\"architectures\":[\"BartForSequenceClassification\"],\"vocab_size\":101,"
         "\"max_position_embeddings\":64," SIZES(28, 4, 31, 3) "}",
         "another head"},
        {"{\"model_type\":\"marian\",\"vocab_size\":101,\"max_position_embeddings\":64,"
         "\"share_encoder_decoder_embeddings\":false," SIZES(28, 4, 31, 3) "}",
         "share_encoder_decoder_embeddings is false"},
        {"{\"model_type\":\"pegasus\",\"vocab_size\":101," SIZES(28, 4, 31, 3) "}", "n_positions is missing"},
        {"{\"model_type\":\"m2m_100\",\"vocab_size\":101," SIZES(28, 3, 31, 3) "}", "no multiple of 3 heads"},
        {"{\"model_type\":\"whisper\",\"vocab_size\":101," SIZES(28, 4, 31, 3) "}", "num_mel_bins is missing"},
        {"{\"model_type\":\"t5\",\"feed_forward_proj\":\"abc\",\"vocab_size\":103," T5(34, 3, 5, 29, 2) "}",
         "feed_forward_proj: found \"abc\", wanted a nonlinearity"},
        {"{\"model_type\":\"whisper\",\"architectures\":[\"WhisperForCausalLM\"],\"vocab_size\":101,\"num_mel_bins\":"
         "13,"
         "\"max_source_positions\":41,\"max_target_positions\":64," SIZES(28, 4, 31, 3) "}",
         "WhisperForCausalLM, a decoder alone"},
        {"{\"model_type\":\"whisper\",\"architectures\":[\"WhisperForAudioClassification\"],\"vocab_size\":101,"
         "\"num_mel_bins\":13,\"max_source_positions\":41,\"max_target_positions\":64," SIZES(28, 4, 31, 3) "}",
         "another head"},
        {"{\"model_type\":\"led\",\"architectures\":[\"BartForConditionalGeneration\"],\"vocab_size\":101,"
         "\"max_position_embeddings\":64," SIZES(28, 4, 31, 3) "}",
         "an encoder and decoder of a kind that ridge does not describe"},
        {"{\"model_type\":\"prophetnet\"}", "an encoder and decoder of a kind that ridge does not describe"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),       cmocka_unit_test(test_caches),
        cmocka_unit_test(test_published),     cmocka_unit_test(test_operators),
        cmocka_unit_test(test_each_operator), cmocka_unit_test(test_two_caches),
        cmocka_unit_test(test_not_causal),    cmocka_unit_test(test_step),
        cmocka_unit_test(test_not_described), cmocka_unit_test(test_formats_by_name),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
