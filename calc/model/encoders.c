/* encoders -- sizes and layers of encoder-decoders. Tensor lists: Hugging Face transformers, modeling_t5, _umt5, _bart,
 * _mbart, _pegasus, _m2m_100, _marian, _blenderbot, _blenderbot_small and _whisper. MODEL.md "Encoder-decoders". */
#include <string.h>

#include "calc/model/vary.h"

/* Halves of a model: sizes of one's layers. Layer i has experts where i % sparse_step is sparse_at; sparse_step 0: none
 * has. window: tokens on either side that a token of the encoder sees, itself included; 0 all. */
struct half {
    int64_t layers, heads, ffn, head_dim, sparse_step, sparse_at, experts, chosen, window;
    bool router_bias;
};

static enum err_code need(struct reader *r, const char *key, int64_t lo, int64_t hi, int64_t *out)
{
    struct json j;
    if (json_get(&r->text, key, &j)) return json_int(&j, lo, hi, out, r->e);
    return err_set(r->e, ERR_INPUT, "%s: %s is missing, and the %s family has no default for it", r->text.file, key,
                   r->family->name);
}

/* The file is of both halves. */
static enum err_code want_both(struct reader *r)
{
    bool both;
    TRY(reader_flag(r, &r->text, "is_encoder_decoder", true, &both));
    if (both) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: is_encoder_decoder is false: one half of the %s family is not described",
                   r->text.file, r->family->name);
}

/* A layer of the encoder; the same attention is that of a decoder's layer to its own tokens. */
static void fill(const struct reader *r, const struct half *h, int64_t layer, bool gated, struct layer_kind *k)
{
    const bool biased = r->family->bias == BIAS_ALL;
    memset(k, 0, sizeof *k);
    k->mixer.kind = MIXER_ATTENTION;
    k->mixer.heads = k->mixer.kv_heads = h->heads;
    k->mixer.head_dim = k->mixer.v_head_dim = h->head_dim;
    k->mixer.qkv_bias = k->mixer.o_bias = biased;
    k->mixer.position = r->family->positions ? POSITION_NONE : r->family->position;
    k->ffn = (struct ffn){.kind = FFN_DENSE, .gated = gated, .width = h->ffn, .up_bias = biased, .down_bias = biased};
    if (h->sparse_step > 0 && layer % h->sparse_step == h->sparse_at) {
        k->ffn.kind = FFN_MOE;
        k->ffn.experts = h->experts;
        k->ffn.experts_per_token = h->chosen;
        k->ffn.router_bias = h->router_bias;
    }
    k->norms = 2;
}

/* Layers of both halves, alike but for `bias_rows` distances that tables of biases tell apart. */
static enum err_code count_halves(struct reader *r, const struct half *enc, const struct half *dec, bool gated,
                                  bool k_unbiased, int64_t bias_rows)
{
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    struct model *m = r->m;
    if (!k) return err_nomem(r->e);
    m->layers = dec->layers;
    m->encoder.layers = enc->layers;
    for (int64_t i = 0; i < enc->layers; i++) {
        fill(r, enc, i, gated, k);
        k->encodes = true;
        k->mixer.window_tokens = enc->window;
        k->mixer.k_unbiased = k_unbiased;
        k->mixer.bias_rows = bias_rows;
        k->mixer.bias_shared = bias_rows > 0 && i > 0 && !r->family->bias_tables;
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
    }
    for (int64_t i = 0; i < dec->layers; i++) {
        fill(r, dec, i, gated, k);
        k->mixer.k_unbiased = k_unbiased;
        k->mixer.bias_rows = bias_rows;
        k->mixer.bias_shared = bias_rows > 0 && i > 0 && !r->family->bias_tables;
        memset(&k->ffn, 0, sizeof k->ffn);
        k->norms = 1;
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
        fill(r, dec, i, gated, k);
        k->mixer.of_source = true;
        k->mixer.k_unbiased = k_unbiased;
        k->mixer.position = POSITION_NONE;
        TRY(reader_count_kind(r->arena, m, i, k, r->e));
    }
    return ERR_OK;
}

/* Those of transformers that stand after "gated-" or alone (activations.py). */
static bool is_nonlinearity(const char *word)
{
    static const char *const KNOWN[] = {"relu",        "gelu",      "gelu_new",          "silu",       "swish",
                                        "gelu_python", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "gelu_accurate",
                                        "relu2",       "relu6",     "leaky_relu",        "mish",       "tanh",
                                        "sigmoid",     "linear"};
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
        if (strcmp(word, KNOWN[i]) == 0) return true;
    return false;
}

/* Experts of one half: Switch states how many layers have them (or every how many-th), NLLB-MoE every how many-th. */
static enum err_code read_sparse(struct reader *r, bool encoder, struct half *h)
{
    const char *const layers = encoder ? "num_sparse_encoder_layers" : "num_sparse_decoder_layers";
    const char *const step = encoder ? "encoder_sparse_step" : "decoder_sparse_step";
    int64_t n;
    if (r->family->moe == MOE_NONE) return ERR_OK;
    TRY(reader_dim(r, DIM_EXPERTS, 1, -1, &h->experts));
    TRY(reader_flag(r, &r->text, "router_bias", false, &h->router_bias));
    h->chosen = r->family->moe == MOE_EVERY ? 1 : 2;
    if (r->family->moe == MOE_PERIOD) {
        TRY(reader_int(r, step, 0, LAYERS_MAX, 4, &h->sparse_step)); /* class default */
        h->sparse_at = h->sparse_step - 1;
        return ERR_OK;
    }
    TRY(reader_int(r, layers, 0, h->layers, h->layers < 3 ? h->layers : 3, &n)); /* class default */
    /* 0 of them is one all the same: the class then takes a step of all layers. The step itself, which files saved
     * before have beside or in place of it, is set over what the class derives. Source: transformers,
     * configuration_switch_transformers.py. */
    TRY(reader_int(r, step, 0, LAYERS_MAX, h->layers / (n > 0 ? n : 1), &h->sparse_step));
    h->sparse_at = h->sparse_step > 1;
    return ERR_OK;
}

/* LongT5: tokens of the encoder see local_radius on either side. */
static enum err_code read_radius(struct reader *r, struct half *h)
{
    struct json j;
    const char *type = "local";
    if (!r->family->local_source) return ERR_OK;
    if (json_get(&r->text, "encoder_attention_type", &j)) TRY(json_str(&j, &type, r->e));
    if (strcmp(type, "local") != 0)
        return err_set(
            r->e, ERR_INPUT,
            "%s: encoder_attention_type is not \"local\": sums of blocks that all tokens see as well are not "
            "described",
            r->text.file);
    TRY(reader_int(r, "local_radius", 1, 1 << 24, 127, &h->window)); /* class default; not a unit */
    h->window++;
    return ERR_OK;
}

/* T5, mT5, UMT5, Switch, LongT5: heads of a width of their own, no biases, a table of biases by distance. */
enum err_code structure_t5(struct reader *r)
{
    struct model *m = r->m;
    struct half enc = {0}, dec;
    struct json j;
    const char *act = r->family->ungated ? "relu" : "gated-gelu";
    int64_t distances;
    TRY(want_both(r));
    TRY(reader_dim(r, DIM_HIDDEN, 1, -1, &m->hidden));
    TRY(reader_dim(r, DIM_VOCAB, 1, -1, &m->vocab));
    TRY(reader_dim(r, DIM_HEADS, 1, -1, &enc.heads));
    TRY(need(r, "num_layers", 1, LAYERS_MAX, &enc.layers));
    TRY(need(r, "d_kv", 1, 1 << 16, &enc.head_dim));
    TRY(need(r, "d_ff", 1, 1 << 24, &enc.ffn));
    dec = enc;
    TRY(reader_int(r, "num_decoder_layers", 1, LAYERS_MAX, enc.layers, &dec.layers));
    TRY(reader_int(r, "relative_attention_num_buckets", 1, 1 << 20, 32, &distances)); /* not a unit */
    TRY(read_sparse(r, true, &enc));
    TRY(read_sparse(r, false, &dec));
    TRY(read_radius(r, &enc));
    if (json_get(&r->text, r->family->moe == MOE_NONE ? "feed_forward_proj" : "dense_act_fn", &j))
        TRY(json_str(&j, &act, r->e));
    const bool gated = strncmp(act, "gated-", sizeof "gated-" - 1) == 0;
    if (!is_nonlinearity(gated ? act + sizeof "gated-" - 1 : act))
        return json_want(&j, "a nonlinearity, \"relu\" or \"gelu\", behind \"gated-\" where it has a gate", r->e);
    m->encoder = (struct model_encoder){.source_tokens = m->max_context_tokens, .final_norm = true, .start_tokens = 1};
    return count_halves(r, &enc, &dec, gated, false, distances);
}

static enum err_code read_half(struct reader *r, bool encoder, struct half *h)
{
    const int64_t width = r->m->hidden;
    TRY(need(r, encoder ? "encoder_layers" : "decoder_layers", 1, LAYERS_MAX, &h->layers));
    TRY(need(r, encoder ? "encoder_attention_heads" : "decoder_attention_heads", 1, 1 << 16, &h->heads));
    TRY(need(r, encoder ? "encoder_ffn_dim" : "decoder_ffn_dim", 1, 1 << 24, &h->ffn));
    if (width % h->heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: a width of %lld is no multiple of %lld heads", r->text.file,
                       (long long)width, (long long)h->heads);
    h->head_dim = width / h->heads;
    return read_sparse(r, encoder, h);
}

static enum err_code read_both(struct reader *r, struct half *enc, struct half *dec)
{
    TRY(want_both(r));
    TRY(reader_dim(r, DIM_HIDDEN, 1, -1, &r->m->hidden));
    TRY(reader_dim(r, DIM_VOCAB, 1, -1, &r->m->vocab));
    TRY(read_half(r, true, enc));
    return read_half(r, false, dec);
}

/* BART and its like: biases everywhere, one embedding for both halves and the head. */
enum err_code structure_bart(struct reader *r)
{
    struct model *m = r->m;
    struct half enc = {0}, dec = {0};
    bool shared;
    TRY(read_both(r, &enc, &dec));
    TRY(reader_flag(r, &r->text, "share_encoder_decoder_embeddings", true, &shared));
    if (!shared)
        return err_set(r->e, ERR_INPUT,
                       "%s: share_encoder_decoder_embeddings is false: embeddings of their own are not described",
                       r->text.file);
    m->encoder = (struct model_encoder){.source_tokens = m->max_context_tokens,
                                        .embed_norm = r->family->embed_norm,
                                        .final_norm = !r->family->post_norm,
                                        .start_tokens = 1};
    m->draft.no_final_norm = r->family->post_norm;
    if (r->family->positions) {
        m->encoder.position_offset = r->family->position_offset;
        m->encoder.position_rows = m->max_context_tokens + m->encoder.position_offset;
    }
    return count_halves(r, &enc, &dec, false, false, 0);
}

/* Whisper: two convolutions of three taps in front, the second over every other place; keys have no bias. The decoder
 * begins with the start of a transcript and a mark for times, in a vocabulary of several languages (51,865 entries and
 * more) a language and a task between them. Source: whisper/model.py and whisper/tokenizer.py of openai/whisper. */
enum err_code structure_whisper(struct reader *r)
{
    enum { TAPS = 3, STRIDE = 2, LANGUAGES_FROM = 51865, START = 2, START_OF_LANGUAGES = 4 };
    struct model *m = r->m;
    struct half enc = {0}, dec = {0};
    int64_t source, bands;
    TRY(read_both(r, &enc, &dec));
    TRY(need(r, "num_mel_bins", 1, 1 << 16, &bands));
    TRY(reader_int(r, "max_source_positions", 1, 1 << 24, 1500, &source)); /* class default; not a unit */
    TRY(reader_int(r, "max_target_positions", 1, 1 << 24, 448, &m->max_context_tokens));
    m->encoder = (struct model_encoder){
        .source_tokens = source,
        .position_rows = source,
        .stem = {{bands, m->hidden, TAPS, 1, true, false}, {m->hidden, m->hidden, TAPS, STRIDE, true, false}},
        .stem_n = 2,
        .final_norm = true,
        .start_tokens = m->vocab >= LANGUAGES_FROM ? START_OF_LANGUAGES : START};
    return count_halves(r, &enc, &dec, false, true, 0);
}
