/* towers_rows -- each kind of encoder of images is one row. */
#include <string.h>

#include "calc/model/towers_count.h"

static const struct tower TOWERS[] = {
    {.name = "Qwen2-VL",
     .roots = {"qwen2_vl"},
     .layers = {"depth", 32},
     .width = {"embed_dim", 1280},
     .ratio = "mlp_ratio",
     .ratio_fallback = 4,
     .patch = {"patch_size", 14},
     .channels = {"in_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 2,
     .frames = 2,
     .join = towers_join_qwen2_vl},
    {.name = "Qwen2.5-VL",
     .roots = {"qwen2_5_vl", "qwen2_5_omni_thinker"},
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
     .join = towers_join_qwen2_5_vl},
#define QWEN3(first, second, behind)                                                                                   \
    {                                                                                                                  \
        .name = "Qwen3-VL", .roots = {first, second}, .layers = {"depth", 0}, .width = {"hidden_size", 0},             \
        .ffn = {"intermediate_size", 0}, .patch = {"patch_size", 0}, .channels = {"in_channels", 3}, .qkv_bias = true, \
        .out_bias = true, .mlp_bias = true, .patch_bias = true, .norm_vectors = 2, .frames = 2, .join = behind         \
    }
    QWEN3("qwen3_vl", "qwen3_vl_moe", towers_join_qwen3_vl),
    QWEN3("qwen3_omni_moe_thinker", NULL, towers_join_qwen3_vl),
    QWEN3("qwen3_5", "qwen3_5_moe", towers_join_qwen3_5),
#undef QWEN3
    {.name = "GLM-4.1V",
     .roots = {"glm4v", "glm4v_moe", "glm46v"},
     .layers = {"depth", 24},
     .width = {"hidden_size", 1536 /* not a unit */},
     .ffn = {"out_hidden_size", 4096},
     .patch = {"patch_size", 14},
     .channels = {"in_channels", 3},
     .gated = true,
     .patch_bias = true,
     .norm_vectors = 1,
     .frames = 2,
     .join = towers_join_glm4v},
    {.name = "GLM-OCR",
     .roots = {"glm_ocr"},
     .layers = {"depth", 24},
     .width = {"hidden_size", 1024 /* not a unit */},
     .ffn = {"intermediate_size", 4096},
     .patch = {"patch_size", 14},
     .channels = {"in_channels", 3},
     .gated = true,
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .patch_bias = true,
     .norm_vectors = 1,
     .frames = 2,
     .join = towers_join_glm_ocr},
#define SIGLIP(root, type, headed, behind)                                                                             \
    {                                                                                                                  \
        .name = "SigLIP", .roots = {root}, .encoder = type, .layers = {"num_hidden_layers", 0},                        \
        .width = {"hidden_size", 0}, .ffn = {"intermediate_size", 0}, .patch = {"patch_size", 0},                      \
        .channels = {"num_channels", 3}, .qkv_bias = true, .out_bias = true, .mlp_bias = true, .patch_bias = true,     \
        .head = headed, .norm_vectors = 2, .frames = 1, .join = behind                                                 \
    }
    SIGLIP("paligemma", "siglip_vision_model", true, towers_join_paligemma),
    SIGLIP("idefics3", "idefics3_vision", false, towers_join_idefics3),
    SIGLIP("smolvlm", "smolvlm_vision", false, towers_join_idefics3),
    SIGLIP("gemma3", "siglip_vision_model", true, towers_join_gemma3),
    SIGLIP("llava", "siglip_vision_model", true, towers_join_llava_siglip),
    SIGLIP("llava_onevision", "siglip_vision_model", true, towers_join_onevision),
    SIGLIP("aya_vision", "siglip_vision_model", true, towers_join_aya),
    SIGLIP("cohere2_vision", "siglip_vision_model", true, towers_join_cohere2),
#undef SIGLIP
    {.name = "SigLIP 2",
     .roots = {"lfm2_vl", "lfm2-vl"},
     .encoder = "siglip2_vision_model",
     .layers = {"num_hidden_layers", 12},
     .width = {"hidden_size", 768},
     .ffn = {"intermediate_size", 3072},
     .patch = {"patch_size", 16},
     .channels = {"num_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .patch_bias = true,
     .head = true,
     .norm_vectors = 2,
     .frames = 1,
     .join = towers_join_lfm2_vl},
    {.name = "MiniMax-M3 vision",
     .roots = {"minimax_m3_vl"},
     .layers = {"num_hidden_layers", 32},
     .width = {"hidden_size", 1280},
     .ffn = {"intermediate_size", 5120},
     .patch = {"patch_size", 14},
     .channels = {"num_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 2,
     .frames = 2,
     .join = towers_join_minimax_m3},
    {.name = "Step-3.7 vision",
     .roots = {"step3p7"},
     .layers = {"num_hidden_layers", 47},
     .layers_other = "layers",
     .width = {"hidden_size", 1536 /* not a unit */},
     .width_other = "width",
     .ratio = "mlp_ratio",
     .ratio_fallback = 8960.0 / 1536,
     .patch = {"patch_size", 14},
     .channels = {"num_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 2,
     .layer_vectors = 2,
     .frames = 1,
     .join = towers_join_step3p7},
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
     .join = towers_join_llama4},
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
     .join = towers_join_internvl},
    {.name = "InternViT",
     .roots = {"internvl"},
     .encoder = "internvl_vision",
     .layers = {"num_hidden_layers", 24},
     .width = {"hidden_size", 1024 /* not a unit */},
     .ffn = {"intermediate_size", 4096},
     .patch = {"patch_size", 14},
     .channels = {"num_channels", 3},
     .out_bias = true,
     .mlp_bias = true,
     .patch_bias = true,
     .norm_vectors = 2,
     .layer_vectors = 2,
     .frames = 1,
     .join = towers_join_internvl_saved},
#define PIXTRAL(first, second, alone, behind)                                                                          \
    {                                                                                                                  \
        .name = "Pixtral", .roots = {first, second}, .encoder = "pixtral", .text_alone = alone,                        \
        .layers = {"num_hidden_layers", 24}, .width = {"hidden_size", 1024 /* not a unit */},                          \
        .ffn = {"intermediate_size", 4096}, .patch = {"patch_size", 16}, .channels = {"num_channels", 3},              \
        .gated = true, .norm_vectors = 1, .frames = 1, .join = behind                                                  \
    }
    PIXTRAL("mistral3", "ministral3", true, towers_join_mistral3),
    PIXTRAL("llava", NULL, false, towers_join_llava_pixtral),
#undef PIXTRAL
#define CLIP(root, behind)                                                                                             \
    {                                                                                                                  \
        .name = "CLIP", .roots = {root}, .encoder = "clip_vision_model", .layers = {"num_hidden_layers", 0},           \
        .width = {"hidden_size", 0}, .ffn = {"intermediate_size", 0}, .patch = {"patch_size", 0},                      \
        .channels = {"num_channels", 3}, .qkv_bias = true, .out_bias = true, .mlp_bias = true, .norm_vectors = 2,      \
        .frames = 1, .join = behind                                                                                    \
    }
    CLIP("llava", towers_join_llava),
    CLIP("llava_next", towers_join_llava_next),
#undef CLIP
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
     .join = towers_join_mllama},
    {.name = "Gemma 4 vision",
     .roots = {"gemma4"},
     .encoder = "gemma4_vision",
     .layers = {"num_hidden_layers", 16},
     .width = {"hidden_size", 768},
     .ffn = {"intermediate_size", 3072},
     .patch = {"patch_size", 16},
     .channels = {"num_channels", 3},
     .gated = true,
     .norm_vectors = 1,
     .layer_vectors = 2,
     .frames = 1,
     .join = towers_join_gemma4},
    {.name = "MobileNet-V5", .roots = {"gemma3n"}, .encoder = "gemma3n_vision", .all = towers_count_mobilenet},
#define MOONVIT(root, stem)                                                                                            \
    {                                                                                                                  \
        .name = "MoonViT", .roots = {root}, .layers = {stem "num_hidden_layers", 27},                                  \
        .width = {stem "hidden_size", 1152}, .ffn = {stem "intermediate_size", 4304}, .patch = {"patch_size", 14},     \
        .channels = {"in_channels", 3}, .qkv_bias = true, .out_bias = true, .mlp_bias = true, .patch_bias = true,      \
        .norm_vectors = 2, .frames = 1, .join = towers_join_moonvit                                                    \
    }
    MOONVIT("kimi_vl", ""),
    MOONVIT("kimi_k25", "vt_"),
#undef MOONVIT
    {.name = "Molmo's CLIP",
     .roots = {"molmo"},
     .of_class = true,
     .layers = {"image_num_layers", 23},
     .width = {"image_emb_dim", 1024 /* not a unit */},
     .ffn = {"image_mlp_dim", 4096},
     .patch = {"image_patch_size", 14},
     .channels = {"image_channels", 3},
     .qkv_bias = true,
     .out_bias = true,
     .mlp_bias = true,
     .norm_vectors = 2,
     .frames = 1,
     .join = towers_join_molmo},
};

const struct tower *towers_find(const struct json *root, const struct json *vision)
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

const struct tower *towers_of_class(const struct json *root)
{
    const struct tower *t = towers_find(root, root);
    return t && t->of_class ? t : NULL;
}

bool towers_expected(const struct json *root)
{
    struct json j;
    const char *type;
    if (!json_get(root, "model_type", &j) || json_str(&j, &type, NULL) != ERR_OK) return false;
    for (size_t i = 0; i < sizeof TOWERS / sizeof TOWERS[0]; i++)
        for (size_t k = 0; k < sizeof TOWERS[i].roots / sizeof TOWERS[i].roots[0] && TOWERS[i].roots[k]; k++)
            if (strcmp(type, TOWERS[i].roots[k]) == 0) return !TOWERS[i].text_alone;
    return false;
}
