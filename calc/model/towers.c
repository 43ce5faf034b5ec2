/* towers -- each kind of encoder is one row; the layers of all are the same sum, what joins them to the language model
 * is a function of its own. Tensor lists: Hugging Face transformers, modeling_*.py of each class; OpenGVLab's
 * modeling_intern_vit.py. */
#include "calc/model/towers.h"

#include <math.h>
#include <string.h>

/* A size by its key; fallback is the class default, 0: the key must be there. */
struct size_key {
    const char *key;
    int64_t fallback;
};

struct tower;

/* A tower while it is counted. whole: elements that every tensor-parallel rank has a copy of. */
struct count {
    struct reader *r;
    const struct tower *row;
    struct json vision;
    int64_t layers, width, ffn, patch, channels; /* patch: side in pixels */
    double split, whole;
    const char *missing; /* a key without which nothing is known */
};

struct tower {
    const char *name;
    const char *roots[5]; /* model_type of the whole file */
    const char *encoder;  /* model_type of its vision_config; NULL any */
    struct size_key layers, width, ffn, patch, channels;
    bool ffn_is_ratio; /* the key says how many times wider than the stream */
    bool gated, qkv_bias, out_bias, mlp_bias, patch_bias;
    int64_t norm_vectors;  /* of width elements in a norm: 1, with bias 2 */
    int64_t layer_vectors; /* further ones in a layer */
    int64_t frames;        /* that a patch spans */
    enum err_code (*join)(struct count *c);
};

/* A whole number of the file's vision part. */
static enum err_code size_of(struct count *c, const struct json *where, struct size_key k, int64_t hi, int64_t *out)
{
    struct json j;
    *out = k.fallback;
    if (json_get(where, k.key, &j)) return json_int(&j, 1, hi, out, c->r->e);
    if (k.fallback == 0) c->missing = k.key;
    return ERR_OK;
}

enum { SIDE_MAX = 1 << 16, WIDTH_MAX = 1 << 20 };

static enum err_code vision_size(struct count *c, const char *key, int64_t fallback, int64_t *out)
{
    return size_of(c, &c->vision, (struct size_key){key, fallback}, WIDTH_MAX, out);
}

/* One matrix with its bias. */
static double linear(int64_t in, int64_t out, bool bias) { return (double)in * (double)out + (bias ? (double)out : 0); }

/* Rows of one position each, image_size pixels on a side cut into patches. */
static enum err_code add_positions(struct count *c, int64_t fallback_side, int64_t further)
{
    int64_t side;
    TRY(vision_size(c, "image_size", fallback_side, &side));
    const double across = (double)(side / c->patch);
    c->whole += (across * across + (double)further) * (double)c->width;
    return ERR_OK;
}

/* Groups of merge x merge patches: a norm, then two products, the first as wide as the group. */
static double merger(const struct count *c, int64_t group, int64_t out, int64_t normed)
{
    return (double)(c->row->norm_vectors * normed) + linear(group, group, true) + linear(group, out, true);
}

static enum err_code join_merger(struct count *c, struct size_key out_key)
{
    int64_t merge, out;
    TRY(vision_size(c, "spatial_merge_size", 2, &merge));
    TRY(size_of(c, &c->vision, out_key, WIDTH_MAX, &out));
    c->whole += merger(c, merge * merge * c->width, out, c->width);
    return ERR_OK;
}

static enum err_code join_qwen2_vl(struct count *c) { return join_merger(c, (struct size_key){"hidden_size", 0}); }
static enum err_code join_qwen2_5_vl(struct count *c)
{
    return join_merger(c, (struct size_key){"out_hidden_size", 0});
}

/* Qwen3-VL: learned positions, and one merger more for every level that is fed to an early layer. */
static enum err_code join_qwen3_vl(struct count *c)
{
    int64_t rows, merge, out;
    struct json levels;
    TRY(vision_size(c, "num_position_embeddings", 0, &rows));
    TRY(vision_size(c, "spatial_merge_size", 2, &merge));
    TRY(vision_size(c, "out_hidden_size", 0, &out));
    if (!json_get(&c->vision, "deepstack_visual_indexes", &levels)) {
        c->missing = "deepstack_visual_indexes";
        return ERR_OK;
    }
    if (!json_is_array(&levels)) return json_want(&levels, "a list of layers", c->r->e);
    const int64_t group = merge * merge * c->width;
    c->whole += (double)rows * (double)c->width + merger(c, group, out, c->width) +
                (double)json_len(&levels) * merger(c, group, out, group);
    return ERR_OK;
}

/* Gemma 3: SigLIP without its head; one product without bias and a norm. */
static enum err_code join_gemma3(struct count *c)
{
    bool head;
    TRY(reader_flag(c->r, &c->vision, "vision_use_head", false, &head));
    if (head) c->missing = "vision_use_head";
    TRY(add_positions(c, 0, 0));
    c->whole += 2 * (double)c->width + (double)c->width * (double)c->r->m->hidden + (double)c->width;
    return ERR_OK;
}

/* Llama 4: a class token, norms before and after, two products over shuffled pixels, one into the stream. */
static enum err_code join_llama4(struct count *c)
{
    int64_t in, middle, out;
    TRY(add_positions(c, 0, 1));
    TRY(vision_size(c, "projector_input_dim", 0, &middle));
    TRY(vision_size(c, "projector_output_dim", 0, &out));
    TRY(vision_size(c, "intermediate_size", 0, &in));
    c->whole += 5 * (double)c->width + linear(in, middle, false) + linear(middle, out, false) +
                linear(out, c->r->m->hidden, false);
    return ERR_OK;
}

/* InternVL: a class token; shuffled pixels through a norm and two products with bias. */
static enum err_code join_internvl(struct count *c)
{
    struct json j;
    double ratio = 0.5; /* class default */
    TRY(add_positions(c, 0, 1));
    if (json_get(c->r->root, "downsample_ratio", &j)) TRY(json_num(&j, &ratio, c->r->e));
    const double group = (double)c->width / (ratio * ratio);
    if (!(ratio > 0) || !(ratio <= 1) || floor(group) < group)
        return json_want(&j, "a ratio that leaves whole widths", c->r->e);
    const int64_t in = (int64_t)group, D = c->r->m->hidden;
    c->whole += (double)c->width + 2 * group + linear(in, D, true) + linear(D, D, true);
    return ERR_OK;
}

/* Two products with a nonlinearity between them, both with bias where the file says so. */
static enum err_code add_projector(struct count *c, int64_t in, bool fallback)
{
    bool bias;
    const int64_t D = c->r->m->hidden;
    TRY(reader_flag(c->r, c->r->root, "multimodal_projector_bias", fallback, &bias));
    c->whole += linear(in, D, bias) + linear(D, D, bias);
    return ERR_OK;
}

/* Mistral 3: a norm, groups of patches merged into one width by a product, the projector. */
static enum err_code join_mistral3(struct count *c)
{
    int64_t merge;
    TRY(size_of(c, c->r->root, (struct size_key){"spatial_merge_size", 2}, SIDE_MAX, &merge));
    c->whole += 2 * (double)c->width + linear(merge * merge * c->width, c->width, false);
    return add_projector(c, c->width, false);
}

/* LLaVA: CLIP with a class token and norms before and after. */
static enum err_code join_llava(struct count *c)
{
    TRY(add_positions(c, 0, 1));
    c->whole += 5 * (double)c->width;
    return add_projector(c, c->width, true);
}

/* Llama 3.2: tiles of an image have gated embeddings of their own, and further layers with a gate on each block see
 * all tiles. aspect_ratios + 1 rows of each table, for images that fill no tile. */
static enum err_code join_mllama(struct count *c)
{
    int64_t global, side, tiles, out;
    struct json ratios;
    TRY(vision_size(c, "num_global_layers", 0, &global));
    TRY(vision_size(c, "image_size", 0, &side));
    TRY(vision_size(c, "max_num_tiles", 0, &tiles));
    TRY(vision_size(c, "vision_output_dim", 0, &out));
    if (!json_get(&c->vision, "supported_aspect_ratios", &ratios)) {
        c->missing = "supported_aspect_ratios";
        return ERR_OK;
    }
    if (!json_is_array(&ratios)) return json_want(&ratios, "a list of pairs", c->r->e);
    const double across = (double)(side / c->patch), rows = across * across + 1, D = (double)c->width;
    const double tables = (double)(json_len(&ratios) + 1), of_tiles = tables * (double)tiles * D;
    c->split += c->split / (double)c->layers * (double)global;
    c->whole += c->whole / (double)c->layers * (double)global + 2 * (double)global; /* gates */
    c->whole += rows * D + 1 + rows * of_tiles + 2 * (of_tiles + 1);
    c->whole += 5 * D + linear(out, c->r->m->hidden, true);
    return ERR_OK;
}

static const struct tower TOWERS[] = {
    {.name = "Qwen2-VL",
     .roots = {"qwen2_vl"},
     .layers = {"depth", 32},
     .width = {"embed_dim", 1280},
     .ffn = {"mlp_ratio", 4},
     .ffn_is_ratio = true,
     .patch = {"patch_size", 14},
     .channels = {"in_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 2,
     .frames = 2,
     .join = join_qwen2_vl},
    {.name = "Qwen2.5-VL",
     .roots = {"qwen2_5_vl"},
     .layers = {"depth", 32},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 14},
     .channels = {"in_channels", 3},
     .gated = true,
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 1,
     .frames = 2,
     .join = join_qwen2_5_vl},
    {.name = "Qwen3-VL",
     .roots = {"qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"},
     .layers = {"depth", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"in_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .patch_bias = true,
     .norm_vectors = 2,
     .frames = 2,
     .join = join_qwen3_vl},
    {.name = "SigLIP",
     .roots = {"gemma3"},
     .encoder = "siglip_vision_model",
     .layers = {"num_hidden_layers", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"num_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .patch_bias = true,
     .norm_vectors = 2,
     .frames = 1,
     .join = join_gemma3},
    {.name = "Llama 4 vision",
     .roots = {"llama4"},
     .encoder = "llama4_vision_model",
     .layers = {"num_hidden_layers", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"num_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 2,
     .frames = 1,
     .join = join_llama4},
    {.name = "InternViT",
     .roots = {"internvl_chat"},
     .encoder = "intern_vit_6b",
     .layers = {"num_hidden_layers", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"num_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .patch_bias = true,
     .norm_vectors = 2,
     .layer_vectors = 2,
     .frames = 1,
     .join = join_internvl},
    {.name = "Pixtral",
     .roots = {"mistral3", "ministral3"},
     .encoder = "pixtral",
     .layers = {"num_hidden_layers", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"num_channels", 3},
     .gated = true,
     .norm_vectors = 1,
     .frames = 1,
     .join = join_mistral3},
    {.name = "CLIP",
     .roots = {"llava"},
     .encoder = "clip_vision_model",
     .layers = {"num_hidden_layers", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"num_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 2,
     .frames = 1,
     .join = join_llava},
    {.name = "Llama 3.2 vision",
     .roots = {"mllama"},
     .encoder = "mllama_vision_model",
     .layers = {"num_hidden_layers", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"num_channels", 3},
     .mlp_bias = true,
     .norm_vectors = 2,
     .frames = 1,
     .join = join_mllama},
};

/* Layers: two norms, queries, keys, values and output of the stream's own width, and an MLP. */
static void count_layers(struct count *c)
{
    const struct tower *t = c->row;
    const double D = (double)c->width, F = (double)c->ffn, n = (double)c->layers, ups = t->gated ? 2 : 1;
    c->split += n * (4 * D * D + (t->qkv_bias ? 3 * D : 0) + (ups + 1) * D * F + (t->mlp_bias ? ups * F : 0));
    c->whole +=
        n * ((t->out_bias ? D : 0) + (t->mlp_bias ? D : 0) + (double)(2 * t->norm_vectors + t->layer_vectors) * D);
}

static enum err_code count_tower(struct count *c)
{
    const struct tower *t = c->row;
    struct json patch;
    TRY(size_of(c, &c->vision, t->layers, LAYERS_MAX, &c->layers));
    TRY(size_of(c, &c->vision, t->width, WIDTH_MAX, &c->width));
    TRY(size_of(c, &c->vision, t->ffn, WIDTH_MAX, &c->ffn));
    if (t->ffn_is_ratio) c->ffn *= c->width;
    TRY(size_of(c, &c->vision, t->channels, SIDE_MAX, &c->channels));
    if (json_get(&c->vision, t->patch.key, &patch) && !json_is_number(&patch))
        c->missing = t->patch.key; /* patches that are not square */
    else
        TRY(size_of(c, &c->vision, t->patch, SIDE_MAX, &c->patch));
    if (c->missing) return ERR_OK;
    count_layers(c);
    const double pixels = (double)c->channels * (double)t->frames * (double)c->patch * (double)c->patch;
    TRY(t->join(c));
    c->whole += (pixels + (t->patch_bias ? 1 : 0)) * (double)c->width;
    return ERR_OK;
}

static const struct tower *find(const struct json *root, const struct json *vision)
{
    struct json j;
    const char *type = "", *encoder = NULL;
    if (json_get(root, "model_type", &j) && json_str(&j, &type, NULL) != ERR_OK) return NULL;
    if (json_get(vision, "model_type", &j) && json_str(&j, &encoder, NULL) != ERR_OK) return NULL;
    for (size_t i = 0; i < sizeof TOWERS / sizeof TOWERS[0]; i++) {
        const struct tower *t = &TOWERS[i];
        for (size_t k = 0; k < sizeof t->roots / sizeof t->roots[0] && t->roots[k]; k++)
            if (strcmp(type, t->roots[k]) == 0 && (!t->encoder || (encoder && strcmp(encoder, t->encoder) == 0)))
                return t;
    }
    return NULL;
}

enum err_code towers_read(struct reader *r)
{
    struct model_tower *out = &r->m->tower;
    struct json audio;
    struct count c = {.r = r};
    *out = (struct model_tower){.params = 0};
    const bool hears = json_get(r->root, "audio_config", &audio);
    if (hears) {
        out->params = out->whole_params = (double)NAN;
        TRY(reader_note(r, "audio tower not counted"));
    }
    if (!json_get(r->root, "vision_config", &c.vision)) return ERR_OK;
    if (!json_is_object(&c.vision)) return json_want(&c.vision, "an object", r->e);
    c.row = find(r->root, &c.vision);
    if (c.row) TRY(count_tower(&c));
    if (!c.row || c.missing) {
        out->params = out->whole_params = (double)NAN;
        if (!c.row) return reader_note(r, "vision tower not counted: no row describes it");
        const char *text =
            arena_printf(r->arena, "vision tower not counted: vision_config.%s is missing or unusual", c.missing);
        return text ? reader_note(r, text) : err_nomem(r->e);
    }
    if (hears) return ERR_OK;
    *out = (struct model_tower){.name = c.row->name, .params = c.split + c.whole, .whole_params = c.whole};
    return ERR_OK;
}
