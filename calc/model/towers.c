/* towers -- each kind of encoder of images is one row; the layers of all are the same sum, what joins them to the
 * language model is a function of its own (towers_join). */
#include "calc/model/towers.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/towers_count.h"

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
#define SIGLIP(root, type, behind)                                                                                     \
    {                                                                                                                  \
        .name = "SigLIP", .roots = {root}, .encoder = type, .layers = {"num_hidden_layers", 0},                        \
        .width = {"hidden_size", 0}, .ffn = {"intermediate_size", 0}, .patch = {"patch_size", 0},                      \
        .channels = {"num_channels", 3}, .qkv_bias = true, .out_bias = true, .mlp_bias = true, .patch_bias = true,     \
        .norm_vectors = 2, .frames = 1, .join = behind                                                                 \
    }
    SIGLIP("paligemma", "siglip_vision_model", towers_join_paligemma),
    SIGLIP("idefics3", "idefics3_vision", towers_join_idefics3),
    SIGLIP("smolvlm", "smolvlm_vision", towers_join_idefics3),
    SIGLIP("gemma3", "siglip_vision_model", towers_join_gemma3),
#undef SIGLIP
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
    {.name = "Pixtral",
     .roots = {"mistral3", "ministral3"},
     .encoder = "pixtral",
     .text_alone = true,
     .layers = {"num_hidden_layers", 0},
     .width = {"hidden_size", 0},
     .ffn = {"intermediate_size", 0},
     .patch = {"patch_size", 0},
     .channels = {"num_channels", 3},
     .gated = true,
     .norm_vectors = 1,
     .frames = 1,
     .join = towers_join_mistral3},
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
     .join = towers_join_llava},
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
    if (t->all) return t->all(c);
    TRY(towers_size(c, &c->vision, t->layers, LAYERS_MAX, &c->layers));
    TRY(towers_size(c, &c->vision, t->width, WIDTH_MAX, &c->width));
    TRY(towers_size(c, &c->vision, t->ffn, WIDTH_MAX, &c->ffn));
    c->assumed = !json_has(&c->vision, t->width.key);
    if (t->ffn_is_ratio) c->ffn *= c->width;
    TRY(towers_size(c, &c->vision, t->channels, SIDE_MAX, &c->channels));
    TRY(towers_side(c, t->patch, &c->patch));
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

/* A tower whose sizes are those of its class, whatever the file has; NULL the root's type has none. */
static const struct tower *find_of_class(const struct json *root)
{
    const struct tower *t = find(root, root);
    return t && t->of_class ? t : NULL;
}

/* Whether files of this type have a tower even where they do not describe it. */
static bool has_tower(const struct json *root)
{
    struct json j;
    const char *type;
    if (!json_get(root, "model_type", &j) || json_str(&j, &type, NULL) != ERR_OK) return false;
    for (size_t i = 0; i < sizeof TOWERS / sizeof TOWERS[0]; i++)
        for (size_t k = 0; k < sizeof TOWERS[i].roots / sizeof TOWERS[i].roots[0] && TOWERS[i].roots[k]; k++)
            if (strcmp(type, TOWERS[i].roots[k]) == 0) return !TOWERS[i].text_alone;
    return false;
}

/* What the towers are members of: the file, or the part of it that listens and looks. */
static enum err_code tower_root(const struct reader *r, struct json *out)
{
    struct json j;
    *out = *r->root;
    if (!json_get(r->root, "thinker_config", &j)) return ERR_OK;
    if (!json_is_object(&j)) return json_want(&j, "an object", r->e);
    *out = j;
    return ERR_OK;
}

/* Files of one part whose text model is that of a family: keys of what reads images and sound give no sizes. */
static bool read_flat(const struct reader *r, struct model_tower *out)
{
    static const char *const KEYS[] = {"img_processor", "embd_layer", "audio_processor", "mm_vision_tower"};
    bool any = false;
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) any = any || json_has(&r->text, KEYS[i]);
    if (any) out->params = out->whole_params = (double)NAN;
    return any;
}

static enum err_code note_flat(struct reader *r)
{
    TRY(reader_note(r, "what reads images or sound is not counted: the file gives no sizes of it"));
    const bool adapted = json_has(&r->text, "vision_lora") || json_has(&r->text, "speech_lora");
    return adapted ? reader_note(r, "adapters of images and sound (vision_lora, speech_lora) are not counted") : ERR_OK;
}

/* Another part beside the language model that is a model of its own, whatever it is called: encoder_config and its
 * like. */
static bool is_part(const struct reader *r, const char *key, const struct json *member)
{
    static const char TAIL[] = "_config";
    const size_t n = strlen(key), tail = sizeof TAIL - 1;
    if (strcmp(key, "audio_config") == 0 || strcmp(key, "vision_config") == 0) return false; /* told of already */
    return n > tail && strcmp(key + n - tail, TAIL) == 0 && json_has(member, "model_type") &&
           member->obj != r->text.obj;
}

/* Parts that no row of towers is about, of a file whose text model is a part too; and Fuyu's patches, which a product
 * of the model itself reads. */
static enum err_code note_parts(struct reader *r, const struct json *root)
{
    struct json member;
    const char *key, *names = NULL;
    char clean[64];
    if (r->text.obj == root->obj) return ERR_OK;
    for (size_t i = 0; json_at(root, i, &key, &member); i++) {
        if (!is_part(r, key, &member)) continue;
        names = arena_printf(r->arena, "%s%s%s", names ? names : "", names ? ", " : "",
                             text_clean(clean, sizeof clean, key, strlen(key)));
        if (!names) return err_nomem(r->e);
    }
    if (!names && json_has(root, "patch_size")) names = "what reads patches of images";
    if (!names) return ERR_OK;
    r->m->tower.params = r->m->tower.whole_params = (double)NAN;
    if (!(fabs(r->m->audio.params) > 0)) r->m->audio.params = r->m->audio.whole_params = (double)NAN;
    const char *text = arena_printf(r->arena, "%s: not counted, no row describes it", names);
    return text ? reader_note(r, text) : err_nomem(r->e);
}

enum err_code towers_read(struct reader *r)
{
    struct model_tower *out = &r->m->tower;
    struct count c = {.r = r};
    *out = (struct model_tower){.params = 0};
    TRY(tower_root(r, &c.root));
    TRY(towers_read_audio(r, &c.root));
    c.row = find_of_class(&c.root);
    if (c.row) {
        c.vision = c.root;
    } else if (!json_get(&c.root, "vision_config", &c.vision)) {
        if (read_flat(r, out)) return note_flat(r);
        if (!has_tower(&c.root)) return note_parts(r, &c.root);
        out->params = out->whole_params = (double)NAN;
        return reader_note(r, "vision tower not counted: the class has one, and the file has no vision_config");
    }
    if (!json_is_object(&c.vision)) return json_want(&c.vision, "an object", r->e);
    if (!c.row) c.row = find(&c.root, &c.vision);
    if (c.row) TRY(count_tower(&c));
    if (!c.row || c.missing) {
        out->params = out->whole_params = (double)NAN;
        if (!c.row) return reader_note(r, "vision tower not counted: no row describes it");
        const char *text =
            arena_printf(r->arena, "vision tower not counted: vision_config.%s is missing or unusual", c.missing);
        return text ? reader_note(r, text) : err_nomem(r->e);
    }
    if (c.assumed)
        TRY(reader_note(r, "sizes of the vision tower that vision_config does not state are those of its class"));
    *out = (struct model_tower){.name = c.row->name,
                                .params = c.split + c.whole,
                                .whole_params = c.whole,
                                .tokens = c.tokens,
                                .token_pixels = c.token_pixels};
    return ERR_OK;
}
