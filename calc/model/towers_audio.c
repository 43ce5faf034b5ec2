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
    const char *name, *root;
    const char *encoder;  /* model_type of audio_config */
    bool sized;           /* the class has Whisper large's sizes as defaults, and that type */
    bool fixed_positions; /* sines, which are not stored */
    enum err_code (*join)(struct ear *x);
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

static const struct ear_row ROWS[] = {
    {.name = "Qwen2-Audio", .root = "qwen2_audio", .encoder = "qwen2_audio_encoder", .sized = true, .join = join_qwen2},
    {.name = "Qwen2.5-Omni audio",
     .root = "qwen2_5_omni_thinker",
     .encoder = "qwen2_5_omni_audio_encoder",
     .sized = true,
     .fixed_positions = true,
     .join = join_omni},
    {.name = "Voxtral", .root = "voxtral", .encoder = "voxtral_encoder", .sized = true, .join = join_voxtral},
    {.name = "Ultravox", .root = "ultravox", .encoder = "whisper", .join = join_ultravox},
    {.name = "Gemma 3n audio", .root = "gemma3n", .encoder = "gemma3n_audio"},
};

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
        if (strcmp(ROWS[i].root, type) == 0) of_class = &ROWS[i];
    if (!json_get(root, "audio_config", &x.c.vision)) {
        if (!of_class) return ERR_OK;
        out->params = out->whole_params = (double)NAN;
        return reader_note(r, "audio tower not counted: the class has one, and the file has no audio_config");
    }
    if (!json_is_object(&x.c.vision)) return json_want(&x.c.vision, "an object", r->e);
    if (json_get(&x.c.vision, "model_type", &j)) TRY(json_str(&j, &encoder, r->e));
    if (of_class && (strcmp(of_class->encoder, encoder) == 0 || (of_class->sized && !*encoder))) x.row = of_class;
    if (x.row) TRY(x.row->join ? count_whisper(&x) : count_gemma3n(&x));
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
