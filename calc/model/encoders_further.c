/* encoders_further -- encoder-decoders whose halves have the layers of a decoder family, and of samples of sound.
 * Sources: Hugging Face transformers, modeling_t5gemma and modeling_moonshine. MODEL.md "Encoder-decoders". */
#include <string.h>

#include "calc/model/vary.h"

/* A decoder's layer as two blocks: attention to its own tokens, with `norms` of the norms, and to the source. */
static enum err_code count_decoder(struct reader *r, int64_t layer, const struct layer_kind *whole, int64_t norms,
                                   int64_t norms_of_source)
{
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    if (!k) return err_nomem(r->e);
    memcpy(k, whole, sizeof *k);
    memset(&k->ffn, 0, sizeof k->ffn);
    k->norms = norms;
    TRY(reader_count_kind(r->arena, r->m, layer, k, r->e));
    memcpy(k, whole, sizeof *k);
    k->mixer.of_source = true;
    k->mixer.position = POSITION_NONE;
    k->mixer.window_tokens = 0;
    k->norms = norms_of_source;
    return reader_count_kind(r->arena, r->m, layer, k, r->e);
}

/* One half of T5Gemma: layers of Gemma 2, by the sizes of a member of the file. */
static enum err_code read_gemma(struct reader *r, const char *key, struct model *half)
{
    struct reader own = *r;
    struct json j;
    if (!json_get(&r->text, key, &j))
        return err_set(r->e, ERR_INPUT, "%s: %s is missing: the sizes of that half", r->text.file, key);
    if (!json_is_object(&j)) return json_want(&j, "an object", r->e);
    own.text = j;
    own.family = family_named("gemma2");
    own.m = half;
    *half = (struct model){.source = r->m->source};
    TRY(reader_dim(&own, DIM_POSITIONS, 0, 0, &half->max_context_tokens));
    TRY(reader_dim(&own, DIM_HIDDEN, 1, -1, &half->hidden));
    TRY(reader_dim(&own, DIM_LAYERS, 1, -1, &half->layers));
    TRY(reader_dim(&own, DIM_VOCAB, 1, -1, &half->vocab));
    return reader_layers(&own);
}

enum err_code structure_t5gemma(struct reader *r)
{
    enum { NORMS_OF_ATTENTION = 2, NORMS_OF_REST = 4 };
    struct model *m = r->m, enc, dec;
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    if (!k) return err_nomem(r->e);
    TRY(read_gemma(r, "encoder", &enc));
    TRY(read_gemma(r, "decoder", &dec));
    if (enc.hidden != dec.hidden)
        return err_set(r->e, ERR_INPUT,
                       "%s: the encoder is %lld wide and the decoder %lld: halves of two widths are not described",
                       r->text.file, (long long)enc.hidden, (long long)dec.hidden);
    if (enc.vocab != dec.vocab)
        return err_set(r->e, ERR_INPUT, "%s: the encoder knows %lld tokens and the decoder %lld", r->text.file,
                       (long long)enc.vocab, (long long)dec.vocab);
    m->hidden = dec.hidden;
    m->vocab = dec.vocab;
    m->layers = dec.layers;
    m->max_context_tokens = dec.max_context_tokens;
    m->encoder = (struct model_encoder){.layers = enc.layers,
                                        .source_tokens = enc.max_context_tokens,
                                        .own_embedding = true,
                                        .final_norm = true,
                                        .start_tokens = 1};
    for (size_t i = 0; i < enc.order_n; i++) {
        memcpy(k, &enc.kinds[enc.order[i].kind], sizeof *k);
        k->encodes = true;
        TRY(reader_count_kind(r->arena, m, enc.order[i].layer, k, r->e));
    }
    for (size_t i = 0; i < dec.order_n; i++)
        TRY(count_decoder(r, dec.order[i].layer, &dec.kinds[dec.order[i].kind], NORMS_OF_ATTENTION, NORMS_OF_REST));
    return ERR_OK;
}

/* ---- Moonshine ---- */

static enum err_code need(struct reader *r, const char *key, int64_t lo, int64_t hi, int64_t *out)
{
    struct json j;
    if (json_get(&r->text, key, &j)) return json_int(&j, lo, hi, out, r->e);
    return err_set(r->e, ERR_INPUT, "%s: %s is missing, and the %s family has no default for it", r->text.file, key,
                   r->family->name);
}

/* A layer of one half: biases of the MLP alone, which has a gate in the decoder. */
static enum err_code read_moonshine(struct reader *r, bool encoder, int64_t *layers, struct layer_kind *k)
{
    struct mixer *x = &k->mixer;
    const int64_t width = r->m->hidden;
    memset(k, 0, sizeof *k);
    x->kind = MIXER_ATTENTION;
    TRY(need(r, encoder ? "encoder_num_hidden_layers" : "decoder_num_hidden_layers", 1, LAYERS_MAX, layers));
    TRY(need(r, encoder ? "encoder_num_attention_heads" : "decoder_num_attention_heads", 1, 1 << 16, &x->heads));
    TRY(reader_int(r, encoder ? "encoder_num_key_value_heads" : "decoder_num_key_value_heads", 1, 1 << 16, x->heads,
                   &x->kv_heads));
    if (width % x->heads != 0 || x->heads % x->kv_heads != 0)
        return err_set(r->e, ERR_INPUT, "%s: %lld heads, %lld of keys, do not divide a width of %lld", r->text.file,
                       (long long)x->heads, (long long)x->kv_heads, (long long)width);
    x->head_dim = x->v_head_dim = width / x->heads;
    x->position = POSITION_ROPE;
    TRY(reader_flag(r, &r->text, "attention_bias", false, &x->qkv_bias));
    k->ffn = (struct ffn){.kind = FFN_DENSE, .gated = !encoder, .up_bias = true, .down_bias = true};
    k->norms = encoder ? 2 : 1;
    k->encodes = encoder;
    return reader_dim(r, DIM_FFN, 1, -1, &k->ffn.width);
}

/* Three convolutions over samples, a token for 64*3*2 of them; layers that rotate; a norm of the first convolution. */
enum err_code structure_moonshine(struct reader *r)
{
    struct model *m = r->m;
    struct layer_kind *enc = arena_alloc(r->arena, sizeof *enc), *dec = arena_alloc(r->arena, sizeof *dec);
    int64_t layers;
    if (!enc || !dec) return err_nomem(r->e);
    TRY(reader_dim(r, DIM_HIDDEN, 1, -1, &m->hidden));
    TRY(reader_dim(r, DIM_VOCAB, 1, -1, &m->vocab));
    TRY(read_moonshine(r, true, &layers, enc));
    TRY(read_moonshine(r, false, &m->layers, dec));
    m->encoder = (struct model_encoder){.layers = layers,
                                        .stem = {{1, m->hidden, 127, 64, false, true},
                                                 {m->hidden, 2 * m->hidden, 7, 3, true, false},
                                                 {2 * m->hidden, m->hidden, 3, 2, true, false}},
                                        .stem_n = 3,
                                        .final_norm = true,
                                        .start_tokens = 1};
    for (int64_t i = 0; i < layers; i++) TRY(reader_count_kind(r->arena, m, i, enc, r->e));
    for (int64_t i = 0; i < m->layers; i++) TRY(count_decoder(r, i, dec, 1, 2));
    return ERR_OK;
}
