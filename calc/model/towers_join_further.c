/* towers_join_further -- what joins an encoder of images to the language model: LLaVA and its like, Cohere's, LFM2-VL,
 * MiniMax-M3, Step-3.7. Tensor lists: Hugging Face transformers, modeling_*.py of each class. */
#include <math.h>

#include "calc/model/towers_count.h"

/* Layers whose outputs a projector reads side by side: one where the key is a number. */
static enum err_code feature_layers(struct count *c, int64_t *out)
{
    struct json j;
    *out = 1;
    if (json_get(&c->root, "vision_feature_layer", &j) && json_is_array(&j)) *out = (int64_t)json_len(&j);
    if (*out < 1) return json_want(&j, "a layer or a list of them", c->r->e);
    return ERR_OK;
}

/* A projector of LLaVA, and the row that ends lines of tiles. */
static enum err_code join_llava(struct count *c, bool newline)
{
    int64_t n;
    TRY(feature_layers(c, &n));
    if (newline) c->whole += (double)c->r->m->hidden;
    return towers_projector(c, n * c->width, true);
}

/* CLIP with a class token and norms before and after. */
static enum err_code join_clip(struct count *c, bool newline)
{
    TRY(towers_positions(c, 0, 1));
    c->whole += 5 * (double)c->width;
    return join_llava(c, newline);
}

enum err_code towers_join_llava(struct count *c) { return join_clip(c, false); }
enum err_code towers_join_llava_next(struct count *c) { return join_clip(c, true); }

/* SigLIP: a position a patch, a norm after the layers, its head. */
static enum err_code join_siglip(struct count *c, int64_t fallback_side)
{
    TRY(towers_head(c));
    TRY(towers_positions(c, fallback_side, 0));
    c->whole += 2 * (double)c->width;
    return ERR_OK;
}

enum err_code towers_join_llava_siglip(struct count *c)
{
    TRY(join_siglip(c, 224)); /* not a unit */
    return join_llava(c, false);
}

enum err_code towers_join_onevision(struct count *c)
{
    TRY(join_siglip(c, 224)); /* not a unit */
    return join_llava(c, true);
}

/* Pixtral: one norm before the layers; images keep their size. */
enum err_code towers_join_llava_pixtral(struct count *c)
{
    c->whole += (double)c->width;
    c->token_pixels = c->patch;
    return join_llava(c, false);
}

/* Cohere: squares of patches side by side, a product into twice the width of a gated one, a product into the stream. */
static enum err_code join_cohere(struct count *c, int64_t middle, bool normed)
{
    int64_t factor;
    TRY(join_siglip(c, 224)); /* not a unit */
    TRY(towers_size(c, &c->root, (struct size_key){"downsample_factor", 2}, SIDE_MAX, &factor));
    TRY(towers_size(c, &c->root, (struct size_key){"alignment_intermediate_size", middle}, WIDTH_MAX, &middle));
    const int64_t group = factor * factor * c->width;
    c->tokens /= (double)(factor * factor);
    c->whole += (normed ? 2 * (double)group : 0) + towers_linear(group, middle, true) +
                towers_linear(middle / 2, c->r->m->hidden, true);
    return ERR_OK;
}

enum err_code towers_join_cohere2(struct count *c) { return join_cohere(c, 36864, false); } /* not a unit */
enum err_code towers_join_aya(struct count *c) { return join_cohere(c, c->r->m->hidden, true); }

/* LFM2-VL: SigLIP 2 whose images keep their shape, a row for each of num_patches places; squares of patches through a
 * norm and two products. */
enum err_code towers_join_lfm2_vl(struct count *c)
{
    int64_t rows, factor, middle;
    bool bias, normed;
    TRY(towers_head(c));
    TRY(towers_vision_size(c, "num_patches", 256, &rows)); /* not a unit */
    TRY(towers_size(c, &c->root, (struct size_key){"downsample_factor", 2}, SIDE_MAX, &factor));
    TRY(towers_size(c, &c->root, (struct size_key){"projector_hidden_size", 2560}, WIDTH_MAX, &middle));
    TRY(reader_flag(c->r, &c->root, "projector_bias", true, &bias));
    TRY(reader_flag(c->r, &c->root, "projector_use_layernorm", true, &normed));
    const int64_t group = factor * factor * c->width;
    c->token_pixels = c->patch * factor;
    c->whole += (double)(rows + 2) * (double)c->width + (normed ? 2 * (double)group : 0) +
                towers_linear(group, middle, bias) + towers_linear(middle, c->r->m->hidden, bias);
    return ERR_OK;
}

/* MiniMax-M3: a norm before the layers; each patch through two products, then squares of patches through two. */
enum err_code towers_join_minimax_m3(struct count *c)
{
    int64_t merge, middle;
    const int64_t D = c->r->m->hidden;
    TRY(towers_vision_size(c, "spatial_merge_size", 2, &merge));
    TRY(towers_size(c, &c->root, (struct size_key){"projector_hidden_size", 6144}, WIDTH_MAX, &middle));
    c->token_pixels = c->patch * merge;
    c->whole += 2 * (double)c->width + towers_linear(c->width, middle, true) + towers_linear(middle, D, true) +
                towers_linear(merge * merge * D, middle, true) + towers_linear(middle, D, true);
    return ERR_OK;
}

/* Step-3.7: positions and a norm before the layers; two convolutions of 3 x 3 and stride 2, each twice as wide as what
 * it reads; one product. */
enum err_code towers_join_step3p7(struct count *c)
{
    bool bias, classed, normed;
    const double d = (double)c->width;
    TRY(reader_flag(c->r, &c->root, "projector_bias", false, &bias));
    TRY(reader_flag(c->r, &c->vision, "use_cls_token", false, &classed));
    TRY(reader_flag(c->r, &c->vision, "use_ln_post", false, &normed));
    if (classed) c->missing = "use_cls_token";
    if (normed) c->missing = "use_ln_post";
    TRY(towers_positions(c, 728, 0)); /* not a unit */
    const double across = ceil(ceil(sqrt(c->tokens) / 2) / 2);
    c->tokens = across * across;
    c->whole +=
        2 * d + 9 * d * 2 * d + 2 * d + 9 * 2 * d * 4 * d + 4 * d + towers_linear(4 * c->width, c->r->m->hidden, bias);
    return ERR_OK;
}
