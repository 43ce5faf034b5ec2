/* towers_audio -- encoders of sound. Most are Whisper's encoder (arXiv 2212.04356) with something of their own behind
 * it: two convolutions over mel bands, the second of stride 2, a position each, layers with a norm before each block,
 * one norm after them. Tensor lists: Hugging Face transformers, modeling_*.py of each class; vLLM's ultravox.py. */
#include <math.h>
#include <string.h>

#include "calc/model/towers_count.h"

struct ear_row;

/* An encoder while it is counted. */
struct ear {
    struct count c; /* vision: the audio_config */
    const struct ear_row *row;
    int64_t mels, positions;
};

struct ear_row {
    const char *name;
    const char *roots[3];                 /* model_type of the file, or of its part that listens */
    const char *encoders[2];              /* model_type of audio_config */
    bool sized;                           /* the class has Whisper large's sizes as defaults, and that type */
    bool fixed_positions;                 /* sines, which are not stored */
    enum err_code (*join)(struct ear *x); /* behind Whisper's encoder; NULL of another kind: */
    enum err_code (*all)(struct ear *x);  /* counts everything */
};

/* ---- what is behind the encoder ---- */

/* Qwen2-Audio: pairs of positions averaged, one product with bias. */
static enum err_code join_qwen2(struct ear *x)
{
    x->c.tokens = (double)(x->positions / 2);
    x->c.whole += towers_linear(x->c.width, x->c.r->m->hidden, true);
    return ERR_OK;
}

/* Qwen2.5-Omni: the same into a width of its own, and two rows for the beginning and the end. */
static enum err_code join_omni(struct ear *x)
{
    int64_t out;
    TRY(towers_vision_size(&x->c, "output_dim", 3584, &out));
    x->c.tokens = (double)(x->positions / 2);
    x->c.whole += towers_linear(x->c.width, out, true) + 2 * (double)out;
    return ERR_OK;
}

/* Voxtral: as many positions side by side as are as wide as the MLP, two products. */
static enum err_code join_voxtral(struct ear *x)
{
    const int64_t D = x->c.r->m->hidden;
    x->c.tokens = (double)x->positions * (double)x->c.width / (double)x->c.ffn;
    x->c.whole += towers_linear(x->c.ffn, D, false) + towers_linear(D, D, false);
    return ERR_OK;
}

/* Ultravox: stacked positions, normed, two products with a gate between them, a norm after the first or the second. */
static enum err_code join_ultravox(struct ear *x)
{
    int64_t stack, middle;
    bool inner;
    struct json j;
    const char *act = "swiglu"; /* class default */
    const int64_t D = x->c.r->m->hidden;
    if (json_get(&x->c.root, "num_projector_layers", &j)) {
        int64_t layers;
        TRY(json_int(&j, 0, LAYERS_MAX, &layers, x->c.r->e));
        if (layers > 0) x->c.missing = "num_projector_layers";
    }
    TRY(towers_size(&x->c, &x->c.root, (struct size_key){"stack_factor", 8}, SIDE_MAX, &stack));
    TRY(towers_size(&x->c, &x->c.root, (struct size_key){"hidden_size", 4096}, WIDTH_MAX, &middle)); /* not a unit */
    TRY(reader_flag(x->c.r, &x->c.root, "projector_ln_mid", false, &inner));
    if (json_get(&x->c.root, "projector_act", &j)) TRY(json_str(&j, &act, x->c.r->e));
    const int64_t in = stack * x->c.width, out = strcmp(act, "swiglu") == 0 ? middle / 2 : middle;
    x->c.tokens = ceil((double)x->positions / (double)stack);
    x->c.whole +=
        (double)in + towers_linear(in, middle, false) + towers_linear(out, D, false) + (double)(inner ? out : D);
    return ERR_OK;
}

/* ---- Gemma 3n ---- */

/* Two convolutions of 3 x 3 and stride 2 over mel bands, their outputs into the width. */
static enum err_code add_subsampling(struct ear *x)
{
    int64_t bands, channels[2] = {128, 32}; /* class defaults */
    struct json list, item;
    TRY(towers_vision_size(&x->c, "input_feat_size", 128, &bands)); /* not a unit */
    if (json_get(&x->c.vision, "sscp_conv_channel_size", &list)) {
        if (!json_is_array(&list) || json_len(&list) != 2) return json_want(&list, "a list of two sizes", x->c.r->e);
        for (size_t i = 0; i < 2 && json_at(&list, i, NULL, &item); i++)
            TRY(json_int(&item, 1, SIDE_MAX, &channels[i], x->c.r->e));
    }
    x->c.whole += 10 * (double)channels[0] + (double)channels[1] * (9 * (double)channels[0] + 1) +
                  towers_linear(bands / 4 * channels[1], x->c.width, false);
    return ERR_OK;
}

/* A conformer: two MLPs of half weight around attention with relative positions and a gated convolution. Nothing of it
 * is split over ranks. */
static enum err_code count_gemma3n(struct ear *x)
{
    int64_t layers, heads, taps, rows, tokens;
    struct json j;
    if (json_get(&x->c.vision, "sscp_conv_kernel_size", &j) || json_get(&x->c.vision, "sscp_conv_stride_size", &j)) {
        struct json side, one;
        for (size_t i = 0; json_at(&j, i, NULL, &side); i++)
            for (size_t k = 0; json_at(&side, k, NULL, &one); k++) {
                int64_t n;
                TRY(json_int(&one, 1, SIDE_MAX, &n, x->c.r->e));
                if (n != 3 && n != 2) x->c.missing = "sscp_conv_kernel_size";
            }
    }
    TRY(towers_vision_size(&x->c, "hidden_size", 1536, &x->c.width));
    TRY(towers_vision_size(&x->c, "conf_num_hidden_layers", 12, &layers));
    TRY(towers_vision_size(&x->c, "conf_num_attention_heads", 8, &heads));
    TRY(towers_vision_size(&x->c, "conf_conv_kernel_size", 5, &taps));
    TRY(towers_vision_size(&x->c, "vocab_size", 128, &rows)); /* not a unit */
    TRY(towers_size(&x->c, &x->c.root, (struct size_key){"audio_soft_tokens_per_image", 188}, SIDE_MAX, &tokens));
    const double d = (double)x->c.width;
    const double mlp = 8 * d * d + 2 * d, attention = 5 * d * d + d / (double)heads + 2 * d;
    const double convolution = 3 * d * d + (double)taps * d + 2 * d;
    TRY(add_subsampling(x));
    x->c.whole += (double)layers * (2 * mlp + attention + convolution + d);
    x->c.whole += (double)rows * d + 2 * d + towers_linear(x->c.width, x->c.r->m->hidden, false);
    x->c.tokens = (double)tokens;
    return ERR_OK;
}

/* ---- Whisper ---- */

/* Sizes by Whisper's names or by those of other classes. */
static enum err_code ear_size(struct ear *x, const char *key, const char *other, int64_t fallback, int64_t *out)
{
    struct json j;
    const bool there = json_get(&x->c.vision, key, &j);
    return towers_vision_size(&x->c, there ? key : other, x->row->sized ? fallback : 0, out);
}

static enum err_code count_whisper(struct ear *x)
{
    struct count *c = &x->c;
    TRY(ear_size(x, "encoder_layers", "num_hidden_layers", 32, &c->layers));
    TRY(ear_size(x, "d_model", "hidden_size", 1280, &c->width));
    TRY(ear_size(x, "encoder_ffn_dim", "intermediate_size", 5120, &c->ffn));
    TRY(ear_size(x, "num_mel_bins", "num_mel_bins", 128, &x->mels)); /* not a unit */
    TRY(towers_vision_size(c, "max_source_positions", 1500, &x->positions));
    c->assumed = !json_has(&c->vision, "d_model") && !json_has(&c->vision, "hidden_size");
    if (c->missing) return ERR_OK;
    const double d = (double)c->width, f = (double)c->ffn, n = (double)c->layers;
    c->split += n * (4 * d * d + 2 * d + 2 * d * f + f); /* keys have no bias */
    c->whole += n * (6 * d);                             /* two norms, biases of the products back to the stream */
    c->whole += 3 * d * (double)x->mels + d + 3 * d * d + d + 2 * d;
    if (!x->row->fixed_positions) c->whole += (double)x->positions * d;
    return x->row->join(x);
}

/* ---- Qwen3-Omni, Qwen3-ASR ---- */

static int64_t halved(int64_t n) { return n / 2 + n % 2; }

/* Three convolutions of 3 x 3 and stride 2 over bands and time, what is left of the bands side by side into the width;
 * Whisper's layers, keys with bias, positions by sines; a norm, two products. Chunks of twice n_window frames of 10 ms
 * are read apart. */
static enum err_code count_qwen3(struct ear *x)
{
    struct count *c = &x->c;
    int64_t channels, out, window;
    const bool asr = strcmp(x->row->name, "Qwen3-ASR audio") == 0;
    TRY(towers_vision_size(c, "encoder_layers", asr ? 24 : 32, &c->layers));
    TRY(towers_vision_size(c, "d_model", asr ? 1024 : 1280, &c->width));       /* not a unit */
    TRY(towers_vision_size(c, "encoder_ffn_dim", asr ? 4096 : 5120, &c->ffn)); /* not a unit */
    TRY(towers_vision_size(c, "num_mel_bins", 128, &x->mels));                 /* not a unit */
    TRY(towers_vision_size(c, "downsample_hidden_size", 480, &channels));
    TRY(towers_vision_size(c, "output_dim", 3584, &out)); /* not a unit */
    TRY(towers_vision_size(c, "n_window", 50, &window));
    c->assumed = !json_has(&c->vision, "d_model");
    const double d = (double)c->width, f = (double)c->ffn, n = (double)c->layers, ch = (double)channels;
    c->split += n * (4 * d * d + 3 * d + 2 * d * f + f);
    c->whole += n * 6 * d; /* two norms, biases of the products back to the stream */
    c->whole += 9 * ch + ch + 2 * (9 * ch * ch + ch);
    c->whole += towers_linear(channels * halved(halved(halved(x->mels))), c->width, false) + 2 * d;
    c->whole += towers_linear(c->width, c->width, true) + towers_linear(c->width, out, true);
    const int64_t frames = 3000, chunk = 2 * window, rest = frames % chunk;
    c->tokens = (double)(frames / chunk * halved(halved(halved(chunk))) + halved(halved(halved(rest))));
    return ERR_OK;
}

static const struct ear_row ROWS[] = {
    {.name = "Qwen2-Audio",
     .roots = {"qwen2_audio"},
     .encoders = {"qwen2_audio_encoder"},
     .sized = true,
     .join = join_qwen2},
    {.name = "Qwen2.5-Omni audio",
     .roots = {"qwen2_5_omni_thinker"},
     .encoders = {"qwen2_5_omni_audio_encoder"},
     .sized = true,
     .fixed_positions = true,
     .join = join_omni},
    {.name = "Qwen3-Omni audio",
     .roots = {"qwen3_omni_moe_thinker"},
     .encoders = {"qwen3_omni_moe_audio_encoder"},
     .sized = true,
     .all = count_qwen3},
    {.name = "Qwen3-ASR audio",
     .roots = {"qwen3_asr", "qwen3_asr_thinker"},
     .encoders = {"qwen3_asr_audio_encoder", "qwen3_asr_encoder"},
     .sized = true,
     .all = count_qwen3},
    {.name = "Voxtral", .roots = {"voxtral"}, .encoders = {"voxtral_encoder"}, .sized = true, .join = join_voxtral},
    {.name = "Ultravox", .roots = {"ultravox"}, .encoders = {"whisper"}, .join = join_ultravox},
    {.name = "Gemma 3n audio", .roots = {"gemma3n"}, .encoders = {"gemma3n_audio"}, .all = count_gemma3n},
};

static bool among(const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n && words[i]; i++)
        if (strcmp(words[i], word) == 0) return true;
    return false;
}

enum err_code towers_read_audio(struct reader *r, const struct json *root)
{
    struct model_tower *out = &r->m->audio;
    struct ear x = {.c = {.r = r, .root = *root}};
    struct json j;
    const char *type = "", *encoder = "";
    const struct ear_row *of_class = NULL;
    *out = (struct model_tower){.params = 0};
    if (json_get(root, "model_type", &j)) TRY(json_str(&j, &type, r->e));
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0] && !of_class; i++)
        if (among(ROWS[i].roots, sizeof ROWS[i].roots / sizeof ROWS[i].roots[0], type)) of_class = &ROWS[i];
    if (!json_get(root, "audio_config", &x.c.vision)) {
        if (!of_class) return ERR_OK;
        out->params = out->whole_params = (double)NAN;
        return reader_note(r, "audio tower not counted: the class has one, and the file has no audio_config");
    }
    if (!json_is_object(&x.c.vision)) return json_want(&x.c.vision, "an object", r->e);
    if (json_get(&x.c.vision, "model_type", &j)) TRY(json_str(&j, &encoder, r->e));
    const size_t encoders = of_class ? sizeof of_class->encoders / sizeof of_class->encoders[0] : 0;
    if (of_class && (among(of_class->encoders, encoders, encoder) || (of_class->sized && !*encoder))) x.row = of_class;
    if (x.row) TRY(x.row->all ? x.row->all(&x) : count_whisper(&x));
    if (!x.row || x.c.missing) {
        out->params = out->whole_params = (double)NAN;
        if (!x.row) return reader_note(r, "audio tower not counted: no row describes it");
        const char *text =
            arena_printf(r->arena, "audio tower not counted: audio_config.%s is missing or unusual", x.c.missing);
        return text ? reader_note(r, text) : err_nomem(r->e);
    }
    if (x.c.assumed)
        TRY(reader_note(r, "sizes of the audio tower that audio_config does not state are those of its class"));
    *out = (struct model_tower){
        .name = x.row->name, .params = x.c.split + x.c.whole, .whole_params = x.c.whole, .tokens = x.c.tokens};
    return ERR_OK;
}
