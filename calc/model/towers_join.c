/* towers_join -- what joins an encoder of images to the language model, kind by kind. Tensor lists: Hugging Face
 * transformers, modeling_*.py of each class; OpenGVLab's modeling_intern_vit.py; Moonshot's modeling_kimi_vl.py. */
#include <math.h>

#include "calc/model/towers_count.h"

/* A whole number of the file's vision part. */
enum err_code towers_size(struct count *c, const struct json *where, struct size_key k, int64_t hi, int64_t *out)
{
    struct json j;
    *out = k.fallback;
    if (json_get(where, k.key, &j)) return json_int(&j, 1, hi, out, c->r->e);
    if (k.fallback == 0) c->missing = k.key;
    return ERR_OK;
}

enum err_code towers_side(struct count *c, struct size_key k, int64_t *out)
{
    struct json j, item;
    int64_t side;
    if (!json_get(&c->vision, k.key, &j) || !json_is_array(&j)) return towers_size(c, &c->vision, k, SIDE_MAX, out);
    if (json_len(&j) == 0) return json_want(&j, "a side in pixels, or a list of equal ones", c->r->e);
    for (size_t i = 0; json_at(&j, i, NULL, &item); i++) {
        TRY(json_int(&item, 1, SIDE_MAX, &side, c->r->e));
        if (i > 0 && side != *out) c->missing = k.key; /* not square */
        *out = side;
    }
    return ERR_OK;
}

enum err_code towers_vision_size(struct count *c, const char *key, int64_t fallback, int64_t *out)
{
    return towers_size(c, &c->vision, (struct size_key){key, fallback}, WIDTH_MAX, out);
}

/* One matrix with its bias. */
double towers_linear(int64_t in, int64_t out, bool bias) { return (double)in * (double)out + (bias ? (double)out : 0); }

/* Rows of one position each, image_size pixels on a side cut into patches. */
enum err_code towers_positions(struct count *c, int64_t fallback_side, int64_t further)
{
    int64_t side;
    TRY(towers_side(c, (struct size_key){"image_size", fallback_side}, &side));
    const double across = (double)(side / c->patch);
    c->whole += (across * across + (double)further) * (double)c->width;
    c->tokens = across * across;
    return ERR_OK;
}

/* Groups of merge x merge patches: a norm, then two products, the first as wide as the group. */
static double merger(const struct count *c, int64_t group, int64_t out, int64_t normed)
{
    return (double)(c->row->norm_vectors * normed) + towers_linear(group, group, true) +
           towers_linear(group, out, true);
}

static enum err_code join_merger(struct count *c, struct size_key out_key)
{
    int64_t merge, out;
    TRY(towers_vision_size(c, "spatial_merge_size", 2, &merge));
    TRY(towers_size(c, &c->vision, out_key, WIDTH_MAX, &out));
    c->whole += merger(c, merge * merge * c->width, out, c->width);
    c->token_pixels = c->patch * merge;
    return ERR_OK;
}

enum err_code towers_join_qwen2_vl(struct count *c) { return join_merger(c, (struct size_key){"hidden_size", 0}); }
enum err_code towers_join_qwen2_5_vl(struct count *c)
{
    return join_merger(c, (struct size_key){"out_hidden_size", 0});
}

/* Learned positions, and one merger more for every level that is fed to an early layer; so many where the file does not
 * list them. */
static enum err_code join_levels(struct count *c, size_t usual)
{
    int64_t rows, merge, out;
    size_t n = usual;
    struct json levels;
    TRY(towers_vision_size(c, "num_position_embeddings", 0, &rows));
    TRY(towers_vision_size(c, "spatial_merge_size", 2, &merge));
    TRY(towers_vision_size(c, "out_hidden_size", 0, &out));
    if (json_get(&c->vision, "deepstack_visual_indexes", &levels)) {
        if (!json_is_array(&levels)) return json_want(&levels, "a list of layers", c->r->e);
        n = json_len(&levels);
    }
    const int64_t group = merge * merge * c->width;
    c->token_pixels = c->patch * merge;
    c->whole +=
        (double)rows * (double)c->width + merger(c, group, out, c->width) + (double)n * merger(c, group, out, group);
    return ERR_OK;
}

enum err_code towers_join_qwen3_vl(struct count *c) { return join_levels(c, 3); }
enum err_code towers_join_qwen3_5(struct count *c) { return join_levels(c, 0); }

/* SigLIP's head: a vector that attends to all patches, a norm and an MLP. */
enum err_code towers_head(struct count *c)
{
    bool head;
    TRY(reader_flag(c->r, &c->vision, "vision_use_head", c->row->head, &head));
    if (head)
        c->whole += (double)c->width + towers_linear(c->width, 4 * c->width, true) + 2 * (double)c->width +
                    towers_linear(c->width, c->ffn, true) + towers_linear(c->ffn, c->width, true);
    return ERR_OK;
}

/* Gemma 3: one product without bias and a norm. */
enum err_code towers_join_gemma3(struct count *c)
{
    int64_t tokens;
    TRY(towers_size(c, &c->root, (struct size_key){"mm_tokens_per_image", 256}, SIDE_MAX, &tokens));
    TRY(towers_head(c));
    TRY(towers_positions(c, 0, 0));
    c->tokens = (double)tokens;
    c->whole += 2 * (double)c->width + (double)c->width * (double)c->r->m->hidden + (double)c->width;
    return ERR_OK;
}

/* Llama 4: a class token, norms before and after, two products over shuffled pixels, one into the stream. */
enum err_code towers_join_llama4(struct count *c)
{
    int64_t in, middle, out, joined;
    TRY(towers_positions(c, 0, 1));
    TRY(towers_vision_size(c, "projector_input_dim", 0, &middle));
    TRY(towers_vision_size(c, "projector_output_dim", 0, &out));
    TRY(towers_vision_size(c, "vision_output_dim", out, &joined));
    TRY(towers_vision_size(c, "intermediate_size", 0, &in));
    struct json j;
    double ratio = 0.5; /* class default */
    if (json_get(&c->vision, "pixel_shuffle_ratio", &j)) TRY(json_num(&j, &ratio, c->r->e));
    c->tokens *= ratio * ratio;
    c->whole += 5 * (double)c->width + towers_linear(in, middle, false) + towers_linear(middle, out, false) +
                towers_linear(joined, c->r->m->hidden, false);
    return ERR_OK;
}

/* InternVL: a class token; shuffled pixels through a norm and two products with bias. */
enum err_code towers_join_internvl(struct count *c)
{
    struct json j;
    double ratio = 0.5; /* class default */
    TRY(towers_positions(c, 0, 1));
    if (json_get(&c->root, "downsample_ratio", &j)) TRY(json_num(&j, &ratio, c->r->e));
    const double group = (double)c->width / (ratio * ratio);
    if (!(ratio > 0) || !(ratio <= 1) || floor(group) < group)
        return json_want(&j, "a ratio that leaves whole widths", c->r->e);
    const int64_t in = (int64_t)group, D = c->r->m->hidden;
    c->tokens *= ratio * ratio;
    c->whole += (double)c->width + 2 * group + towers_linear(in, D, true) + towers_linear(D, D, true);
    return ERR_OK;
}

/* Two products with a nonlinearity between them, both with bias where the file says so. */
enum err_code towers_projector(struct count *c, int64_t in, bool fallback)
{
    bool bias;
    const int64_t D = c->r->m->hidden;
    TRY(reader_flag(c->r, &c->root, "multimodal_projector_bias", fallback, &bias));
    c->whole += towers_linear(in, D, bias) + towers_linear(D, D, bias);
    return ERR_OK;
}

/* Mistral 3: a norm, groups of patches merged into one width by a product, the projector. */
enum err_code towers_join_mistral3(struct count *c)
{
    int64_t merge;
    TRY(towers_size(c, &c->root, (struct size_key){"spatial_merge_size", 2}, SIDE_MAX, &merge));
    c->token_pixels = c->patch * merge;
    c->whole += 2 * (double)c->width + towers_linear(merge * merge * c->width, c->width, false);
    return towers_projector(c, c->width, false);
}

/* Llama 3.2: tiles of an image have gated embeddings of their own, and further layers with a gate on each block see
 * all tiles. aspect_ratios + 1 rows of each table, for images that fill no tile. */
enum err_code towers_join_mllama(struct count *c)
{
    int64_t global, side, tiles, out;
    struct json ratios;
    TRY(towers_vision_size(c, "num_global_layers", 0, &global));
    TRY(towers_vision_size(c, "image_size", 0, &side));
    TRY(towers_vision_size(c, "max_num_tiles", 0, &tiles));
    TRY(towers_vision_size(c, "vision_output_dim", 0, &out));
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
    c->whole += 5 * D + towers_linear(out, c->r->m->hidden, true);
    return ERR_OK;
}

/* Gemma 4: rows of two tables, one of each coordinate; norms of query and key heads; a mean and a deviation where the
 * file says so; one product without bias. */
enum err_code towers_join_gemma4(struct count *c)
{
    int64_t rows, head, tokens;
    bool standard;
    TRY(towers_vision_size(c, "position_embedding_size", 10240, &rows)); /* not a unit */
    TRY(towers_vision_size(c, "head_dim", 64, &head));                   /* not a unit */
    TRY(towers_vision_size(c, "default_output_length", 280, &tokens));
    TRY(reader_flag(c->r, &c->vision, "standardize", false, &standard));
    const double D = (double)c->width;
    c->whole += 2 * (double)rows * D + 2 * (double)c->layers * (double)head + (standard ? 2 * D : 0) +
                towers_linear(c->width, c->r->m->hidden, false);
    c->tokens = (double)tokens;
    return ERR_OK;
}

/* MoonViT: a grid of positions, a norm after the layers; a norm, groups of patches through two products with bias. */
enum err_code towers_join_moonvit(struct count *c)
{
    int64_t height, width, side[2] = {2, 2};
    struct json list, item;
    TRY(towers_vision_size(c, "init_pos_emb_height", 64, &height)); /* not a unit */
    TRY(towers_vision_size(c, "init_pos_emb_width", 64, &width));   /* not a unit */
    if (json_get(&c->vision, "merge_kernel_size", &list)) {
        if (!json_is_array(&list) || json_len(&list) != 2) return json_want(&list, "a list of two sides", c->r->e);
        for (size_t i = 0; i < 2 && json_at(&list, i, NULL, &item); i++)
            TRY(json_int(&item, 1, 64, &side[i], c->r->e)); /* not a unit */
    }
    const int64_t group = side[0] * side[1] * c->width;
    c->whole += (double)height * (double)width * (double)c->width + 4 * (double)c->width +
                towers_linear(group, group, true) + towers_linear(group, c->r->m->hidden, true);
    if (side[0] == side[1]) c->token_pixels = c->patch * side[0];
    return ERR_OK;
}

/* Molmo: CLIP's rows for the class and 336 pixels on a side, a norm before the layers; features of two of them side by
 * side, pooled 2 x 2 by an attention to their mean; two vectors for padding; a gated MLP as wide as the decoder's.
 * Source: vLLM, molmo.py. */
enum err_code towers_join_molmo(struct count *c)
{
    enum { SIDE = 336, LEVELS = 2, POOL = 2 };
    const int64_t across = SIDE / c->patch, wide = LEVELS * c->width, D = c->r->m->hidden;
    const int64_t F = c->r->m->kinds[0].ffn.width, rows = across * across + 1;
    c->whole += (double)((rows + 1 + 2) * c->width + LEVELS * wide);
    c->split += 3 * towers_linear(wide, c->width, true) + towers_linear(c->width, c->width, true) +
                2 * towers_linear(c->width, F, false) + towers_linear(F, D, false);
    c->tokens = (double)(across / POOL * (across / POOL));
    return ERR_OK;
}

/* PaliGemma: SigLIP without its head, one product with bias. */
enum err_code towers_join_paligemma(struct count *c)
{
    TRY(towers_head(c));
    TRY(towers_positions(c, 224, 0)); /* not a unit */
    c->whole += 2 * (double)c->width + towers_linear(c->width, c->r->m->hidden, true);
    return ERR_OK;
}

/* Idefics 3, SmolVLM: SigLIP without its head, squares of tokens side by side through one product. */
enum err_code towers_join_idefics3(struct count *c)
{
    int64_t scale;
    TRY(towers_size(c, &c->root, (struct size_key){"scale_factor", 2}, SIDE_MAX, &scale));
    TRY(towers_positions(c, 0, 0));
    c->tokens /= (double)(scale * scale);
    c->whole += 2 * (double)c->width + towers_linear(scale * scale * c->width, c->r->m->hidden, false);
    return ERR_OK;
}

/* InternVL as transformers saves it: biases of queries, keys and values by a flag, a norm behind the layers where their
 * mean is not taken. */
enum err_code towers_join_internvl_saved(struct count *c)
{
    bool biased, normed, mean, placed;
    TRY(reader_flag(c->r, &c->vision, "attention_bias", false, &biased));
    TRY(reader_flag(c->r, &c->vision, "use_qk_norm", false, &normed));
    TRY(reader_flag(c->r, &c->vision, "use_mean_pooling", true, &mean));
    TRY(reader_flag(c->r, &c->vision, "use_absolute_position_embeddings", true, &placed));
    if (normed) c->missing = "use_qk_norm";
    if (!placed) c->missing = "use_absolute_position_embeddings";
    if (biased) c->split += 3 * (double)c->layers * (double)c->width;
    if (!mean) c->whole += 2 * (double)c->width;
    return towers_join_internvl(c);
}

/* GLM: a norm behind the layers, squares of patches made one by a convolution; a product, a layer norm and a gated MLP
 * as wide as `wide`. */
static enum err_code join_glm(struct count *c, int64_t out, int64_t wide)
{
    int64_t merge;
    TRY(towers_vision_size(c, "spatial_merge_size", 2, &merge));
    c->token_pixels = c->patch * merge;
    c->whole += (double)c->width + towers_linear(merge * merge * c->width, out, true) + towers_linear(out, out, false) +
                2 * (double)out + 3 * towers_linear(out, wide, false);
    return ERR_OK;
}

/* GLM-4.1V and 4.6V: positions, a norm before them; biases of queries, keys and values by a flag. */
enum err_code towers_join_glm4v(struct count *c)
{
    int64_t wide;
    bool biased;
    TRY(towers_vision_size(c, "intermediate_size", 13696, &wide)); /* not a unit */
    TRY(reader_flag(c->r, &c->vision, "attention_bias", false, &biased));
    if (biased) c->split += 3 * (double)c->layers * (double)c->width;
    TRY(towers_positions(c, 336, 0)); /* not a unit */
    c->tokens = 0;
    c->whole += (double)c->width;
    return join_glm(c, c->ffn, wide); /* layers have MLPs as wide as the output */
}

/* GLM-OCR: norms of query and key heads, no positions; an MLP as many times wider as an image has channels. */
enum err_code towers_join_glm_ocr(struct count *c)
{
    int64_t out, heads;
    bool biased;
    TRY(towers_vision_size(c, "out_hidden_size", 1536, &out)); /* not a unit */
    TRY(towers_vision_size(c, "num_heads", 16, &heads));
    TRY(reader_flag(c->r, &c->vision, "attention_bias", true, &biased));
    if (!biased) c->missing = "attention_bias";
    c->whole += 2 * (double)c->layers * (double)(c->width / heads);
    return join_glm(c, out, c->channels * out);
}
