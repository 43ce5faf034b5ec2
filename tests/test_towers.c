/* Towers beside a language model: what each class of transformers 5.24 stores of one, by shape, against what is
 * counted. The text part is the same small Llama everywhere, 48 wide. */
#include "tests/families.h"

#include <math.h>
#include <string.h>

#include "calc/base/json.h"

struct tower_case {
    const char *root, *vision, *outside; /* model_type, members of vision_config, further members of the file */
    const char *text;                    /* model_type of the text part; NULL llama */
    struct tensors tensors[16];
    double tokens;
    int64_t token_pixels;
};

#define SIDES ",\"hidden_size\":32,\"num_hidden_layers\":3,\"intermediate_size\":80,\"num_attention_heads\":4"
#define SIGLIP(positions, side)                                                                                        \
    EACH("q, k, v, out", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3), EACH("fc1, fc2", 2 * 80, 32, 3),              \
        EACH("their biases", 1, 80 + 32, 3), EACH("layer_norm1, 2", 4, 32, 3), EACH("post_layernorm", 2, 32, 1),       \
        EACH("position_embedding", positions, 32, 1), EACH("patch_embedding", 3 * (side) * (side) + 1, 32, 1)
#define POOLING_HEAD                                                                                                   \
    EACH("probe", 1, 32, 1), EACH("attention.in_proj", 3 * 32, 32 + 1, 1), EACH("attention.out_proj", 32, 32 + 1, 1),  \
        EACH("layernorm", 2, 32, 1), EACH("mlp.fc1", 80, 32 + 1, 1), EACH("mlp.fc2", 32, 80 + 1, 1)
#define CLIP_SIDES SIDES ",\"image_size\":28,\"patch_size\":7"
#define QWEN3 "\"depth\":3,\"hidden_size\":32,\"intermediate_size\":80,\"patch_size\":4,\"num_position_embeddings\":25,"
#define QWEN3_TENSORS                                                                                                  \
    EACH("qkv, proj", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3), EACH("fc1, fc2", 2 * 80, 32, 3),                 \
        EACH("their biases", 1, 80 + 32, 3), EACH("norm1, norm2", 4, 32, 3), EACH("pos_embed", 25, 32, 1),             \
        EACH("patch_embed", 3 * 2 * 4 * 4 + 1, 32, 1), EACH("merger.norm", 2, 32, 1),                                  \
        EACH("merger.linear_fc1", 128, 128 + 1, 1), EACH("merger.linear_fc2", 48, 128 + 1, 1)
#define VIT                                                                                                            \
    EACH("q, k, v, projection", 4 * 32, 32, 3), EACH("projection bias", 1, 32, 3), EACH("fc1, fc2", 2 * 80, 32, 3),    \
        EACH("their biases", 1, 80 + 32, 3), EACH("layernorms", 4, 32, 3), EACH("lambda_1, 2", 2, 32, 3),              \
        EACH("cls_token, position_embeddings", 1 + 17, 32, 1), EACH("patch_embeddings", 3 * 7 * 7 + 1, 32, 1),         \
        EACH("layer_norm", 2, 128, 1), EACH("linear_1", 48, 128 + 1, 1), EACH("linear_2", 48, 48 + 1, 1)
#define GLM_BEHIND(out, wide)                                                                                          \
    EACH("post_layernorm", 1, 32, 1), EACH("downsample", out, 4 * 32 + 1, 1), EACH("merger.proj", out, out, 1),        \
        EACH("post_projection_norm", 2, out, 1), EACH("merger.gate, up, down", 3 * (out), wide, 1)

static const struct tower_case CASES[] = {
    {"qwen3_vl",
     QWEN3 "\"out_hidden_size\":48,\"deepstack_visual_indexes\":[1,2]",
     "",
     NULL,
     {QWEN3_TENSORS, EACH("deepstack.norm", 2, 128, 2), EACH("deepstack.linear_fc1", 128, 128 + 1, 2),
      EACH("deepstack.linear_fc2", 48, 128 + 1, 2)},
     0,
     8},
    {"qwen3_vl",
     QWEN3 "\"out_hidden_size\":48",
     "",
     NULL, /* its class has three levels */
     {QWEN3_TENSORS, EACH("deepstack.norm", 2, 128, 3), EACH("deepstack.linear_fc1", 128, 128 + 1, 3),
      EACH("deepstack.linear_fc2", 48, 128 + 1, 3)},
     0,
     8},
    {"qwen3_5", QWEN3 "\"out_hidden_size\":48", "", NULL, {QWEN3_TENSORS}, 0, 8}, /* that of Qwen3.5 none */
    {"llama4",
     "\"model_type\":\"llama4_vision_model\"" SIDES ",\"image_size\":28,\"patch_size\":7,\"projector_input_dim\":40,"
     "\"projector_output_dim\":24,\"vision_output_dim\":56",
     "",
     NULL,
     {EACH("q, k, v, o", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3), EACH("fc1, fc2", 2 * 80, 32, 3),
      EACH("their biases", 1, 80 + 32, 3), EACH("layer norms", 4, 32, 3), EACH("class, positions", 1 + 17, 32, 1),
      EACH("patch_embedding", 3 * 7 * 7, 32, 1), EACH("layernorm_pre, _post", 4, 32, 1), EACH("adapter.fc1", 40, 80, 1),
      EACH("adapter.fc2", 24, 40, 1), EACH("projector", 48, 56, 1)},
     4,
     0},
    {"paligemma",
     "\"model_type\":\"siglip_vision_model\"" CLIP_SIDES ",\"vision_use_head\":false",
     "",
     NULL,
     {SIGLIP(16, 7), EACH("linear", 48, 32 + 1, 1)},
     16,
     0},
    {"smolvlm",
     "\"model_type\":\"smolvlm_vision\"" SIDES ",\"image_size\":28,\"patch_size\":7",
     ",\"scale_factor\":4",
     NULL,
     {SIGLIP(16, 7), EACH("proj", 48, 16 * 32, 1)},
     1,
     0},
    {"idefics3",
     "\"model_type\":\"idefics3_vision\"" SIDES ",\"image_size\":28,\"patch_size\":7",
     "",
     NULL,
     {SIGLIP(16, 7), EACH("proj", 48, 4 * 32, 1)},
     4,
     0},
    {"internvl",
     "\"model_type\":\"internvl_vision\"" SIDES ",\"image_size\":[28,28],\"patch_size\":[7,7]",
     "",
     NULL,
     {VIT},
     4,
     0},
    {"internvl",
     "\"model_type\":\"internvl_vision\"" SIDES ",\"image_size\":28,\"patch_size\":7,\"attention_bias\":true,"
     "\"use_mean_pooling\":false",
     "",
     NULL,
     {VIT, EACH("q, k, v biases", 3, 32, 3), EACH("layernorm", 2, 32, 1)},
     4,
     0},
    {"glm4v", /* MLPs of layers are as wide as the output, that behind them is not */
     "\"model_type\":\"glm4v_vision\",\"depth\":3,\"hidden_size\":32,\"num_heads\":4,\"intermediate_size\":80,"
     "\"out_hidden_size\":48,\"image_size\":28,\"patch_size\":7",
     "",
     NULL,
     {EACH("qkv, proj", 4 * 32, 32, 3), EACH("gate, up, down", 3 * 48, 32, 3), EACH("norm1, norm2", 2, 32, 3),
      EACH("position_embedding", 16, 32, 1), EACH("post_conv_layernorm", 1, 32, 1),
      EACH("patch_embed", 3 * 2 * 7 * 7 + 1, 32, 1), GLM_BEHIND(48, 80)},
     0,
     14},
    {"glm_ocr",
     "\"model_type\":\"glm_ocr_vision\",\"depth\":3,\"hidden_size\":32,\"num_heads\":4,\"intermediate_size\":80,"
     "\"out_hidden_size\":48,\"image_size\":28,\"patch_size\":7",
     "",
     NULL,
     {EACH("qkv, proj", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3), EACH("gate, up, down", 3 * 80, 32, 3),
      EACH("their biases", 1, 2 * 80 + 32, 3), EACH("q_norm, k_norm", 2, 8, 3), EACH("norm1, norm2", 2, 32, 3),
      EACH("patch_embed", 3 * 2 * 7 * 7 + 1, 32, 1), GLM_BEHIND(48, 3 * 48)},
     0,
     14},
    {"paligemma", /* a file that says nothing of the head has it */
     "\"model_type\":\"siglip_vision_model\"" CLIP_SIDES,
     "",
     NULL,
     {SIGLIP(16, 7), POOLING_HEAD, EACH("linear", 48, 32 + 1, 1)},
     16,
     0},
    {"gemma3",
     "\"model_type\":\"siglip_vision_model\"" CLIP_SIDES ",\"vision_use_head\":true",
     ",\"mm_tokens_per_image\":4",
     NULL,
     {SIGLIP(16, 7), POOLING_HEAD, EACH("mm_soft_emb_norm", 1, 32, 1), EACH("mm_input_projection", 32, 48, 1)},
     4,
     0},
    {"llava", /* of the features of two layers */
     "\"model_type\":\"siglip_vision_model\"" CLIP_SIDES ",\"vision_use_head\":false",
     ",\"vision_feature_layer\":[1,-1],\"multimodal_projector_bias\":false",
     NULL,
     {SIGLIP(16, 7), EACH("linear_1", 48, 2 * 32, 1), EACH("linear_2", 48, 48, 1)},
     16,
     0},
    {"llava_onevision",
     "\"model_type\":\"siglip_vision_model\"" CLIP_SIDES ",\"vision_use_head\":false",
     "",
     NULL,
     {SIGLIP(16, 7), EACH("linear_1", 48, 32 + 1, 1), EACH("linear_2", 48, 48 + 1, 1), EACH("image_newline", 1, 48, 1)},
     16,
     0},
    {"llava_next",
     "\"model_type\":\"clip_vision_model\"" CLIP_SIDES,
     "",
     NULL,
     {EACH("q, k, v, out", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3), EACH("fc1, fc2", 2 * 80, 32, 3),
      EACH("their biases", 1, 80 + 32, 3), EACH("layer_norm1, 2", 4, 32, 3), EACH("class, positions", 1 + 17, 32, 1),
      EACH("patch_embedding", 3 * 7 * 7, 32, 1), EACH("pre_layrnorm, post_layernorm", 4, 32, 1),
      EACH("linear_1", 48, 32 + 1, 1), EACH("linear_2", 48, 48 + 1, 1), EACH("image_newline", 1, 48, 1)},
     16,
     0},
    {"llava",
     "\"model_type\":\"pixtral\"" CLIP_SIDES,
     "",
     NULL,
     {EACH("q, k, v, o", 4 * 32, 32, 3), EACH("gate, up, down", 3 * 80, 32, 3), EACH("norms", 2, 32, 3),
      EACH("patch_conv", 3 * 7 * 7, 32, 1), EACH("ln_pre", 1, 32, 1), EACH("linear_1", 48, 32 + 1, 1),
      EACH("linear_2", 48, 48 + 1, 1)},
     0,
     7},
    {"aya_vision",
     "\"model_type\":\"siglip_vision_model\"" CLIP_SIDES ",\"vision_use_head\":false",
     ",\"alignment_intermediate_size\":24",
     NULL,
     {SIGLIP(16, 7), EACH("layernorm", 2, 4 * 32, 1), EACH("linear_1", 24, 4 * 32 + 1, 1),
      EACH("linear_2", 48, 12 + 1, 1)},
     4,
     0},
    {"cohere2_vision",
     "\"model_type\":\"siglip_vision_model\"" CLIP_SIDES ",\"vision_use_head\":false",
     ",\"alignment_intermediate_size\":24",
     NULL,
     {SIGLIP(16, 7), EACH("linear_1", 24, 4 * 32 + 1, 1), EACH("linear_2", 48, 12 + 1, 1)},
     4,
     0},
    {"lfm2_vl",
     "\"model_type\":\"siglip2_vision_model\"" SIDES ",\"num_patches\":9,\"patch_size\":4,\"vision_use_head\":false",
     ",\"projector_hidden_size\":20",
     NULL,
     {SIGLIP(9, 4), EACH("layer_norm", 2, 4 * 32, 1), EACH("linear_1", 20, 4 * 32 + 1, 1), EACH("linear_2", 48, 21, 1)},
     0,
     8},
    {"lfm2_vl",
     "\"model_type\":\"siglip2_vision_model\"" SIDES ",\"num_patches\":9,\"patch_size\":4",
     ",\"projector_hidden_size\":20,\"projector_bias\":false,\"projector_use_layernorm\":false,"
     "\"downsample_factor\":3",
     NULL,
     {SIGLIP(9, 4), POOLING_HEAD, EACH("linear_1", 20, 9 * 32, 1), EACH("linear_2", 48, 20, 1)},
     0,
     12},
    {"minimax_m3_vl",
     "\"patch_size\":4,\"spatial_merge_size\":2" SIDES,
     ",\"projector_hidden_size\":20",
     NULL,
     {EACH("q, k, v, out", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3), EACH("fc1, fc2", 2 * 80, 32, 3),
      EACH("their biases", 1, 80 + 32, 3), EACH("layer_norm1, 2", 4, 32, 3), EACH("patch", 3 * 2 * 4 * 4, 32, 1),
      EACH("pre_layrnorm", 2, 32, 1), EACH("linear_1", 20, 32 + 1, 1), EACH("linear_2", 48, 20 + 1, 1),
      EACH("merge_linear_1", 20, 4 * 48 + 1, 1), EACH("merge_linear_2", 48, 20 + 1, 1)},
     0,
     8},
    {"step3p7", /* 2.6 times 32 is 83, rounded down; 4 x 4 patches become one token */
     "\"width\":32,\"layers\":3,\"heads\":4,\"mlp_ratio\":2.6,\"image_size\":28,\"patch_size\":7",
     ",\"projector_bias\":true",
     NULL,
     {EACH("q, k, v, out", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3), EACH("fc1, fc2", 2 * 83, 32, 3),
      EACH("their biases", 1, 83 + 32, 3), EACH("layernorms", 4, 32, 3), EACH("lambda_1, 2", 2, 32, 3),
      EACH("patch_embedding", 3 * 7 * 7, 32, 1), EACH("position_embedding", 16, 32, 1), EACH("pre_layernorm", 2, 32, 1),
      EACH("downsampler1", 2 * 32, 9 * 32 + 1, 1), EACH("downsampler2", 4 * 32, 9 * 2 * 32 + 1, 1),
      EACH("multi_modal_projector", 48, 4 * 32 + 1, 1)},
     1,
     0},
};

static struct model read_case(struct arena *a, const struct tower_case *c, const char *vision)
{
    struct json j;
    struct model m;
    struct err e = {.code = ERR_OK};
    const char *text =
        arena_printf(a,
                     "{\"model_type\":\"%s\"%s,\"vision_config\":{%s},\"text_config\":{\"model_type\":\"%s\","
                     "\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":4,"
                     "\"intermediate_size\":96,\"vocab_size\":31}}",
                     c->root, c->outside, vision, c->text ? c->text : "llama");
    assert_int_equal(json_parse(a, "c.json", text, strlen(text), &j, &e), ERR_OK);
    if (model_parse(a, &j, &m, &e) != ERR_OK) fail_msg("%s: %s", c->root, e.text);
    return m;
}

static void test_tensors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        const struct tower_case *c = &CASES[i];
        const struct model m = read_case(a, c, c->vision);
        double want = 0;
        for (const struct tensors *t = c->tensors; t->name; t++)
            want += (double)t->rows * (double)t->cols * (double)t->times;
        if (!(fabs(m.tower.params - want) < 0.5))
            fail_msg("%zu, %s: %.0f, its tensors %.0f (%s)", i, c->root, m.tower.params, want, m.notes ? m.notes : "");
        if (fabs(m.tower.tokens - c->tokens) > 0 || m.tower.token_pixels != c->token_pixels)
            fail_msg("%zu, %s: %g tokens, %lld pixels", i, c->root, m.tower.tokens, (long long)m.tower.token_pixels);
        arena_close(a);
    }
}

/* What is not described of them is unknown, and named. */
static void test_unknown(void **state)
{
    static const struct {
        size_t of;
        const char *vision, *word;
    } UNKNOWN[] = {
        {7, "\"model_type\":\"internvl_vision\"" SIDES ",\"image_size\":28,\"patch_size\":7,\"use_qk_norm\":true",
         "use_qk_norm"},
        {7, "\"model_type\":\"internvl_vision\"" SIDES ",\"image_size\":28,\"patch_size\":[7,14]", "patch_size"},
        {22, "\"width\":32,\"layers\":3,\"mlp_ratio\":2.6,\"use_cls_token\":true", "use_cls_token"},
        {10, "\"model_type\":\"glm_ocr_vision\",\"attention_bias\":false", "attention_bias"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof UNKNOWN / sizeof UNKNOWN[0]; i++) {
        struct arena *a = arena_open();
        const struct model m = read_case(a, &CASES[UNKNOWN[i].of], UNKNOWN[i].vision);
        assert_true(isnan(m.tower.params));
        if (!strstr(m.notes, UNKNOWN[i].word)) fail_msg("%zu: %s", i, m.notes);
        arena_close(a);
    }
}

/* Encoders of sound of Qwen3: three convolutions over bands and time, keys with bias, no stored positions. */
static void test_ears(void **state)
{
    static const struct tensors TENSORS[] = {
        EACH("conv2d1", 6, 9 + 1, 1),        EACH("conv2d2, 3", 6, 9 * 6 + 1, 2), EACH("conv_out", 32, 6 * 3, 1),
        EACH("q, k, v, out", 4 * 32, 32, 3), EACH("their biases", 4, 32, 3),      EACH("fc1, fc2", 2 * 80, 32, 3),
        EACH("their biases", 1, 80 + 32, 3), EACH("layer norms", 4, 32, 3),       EACH("ln_post", 2, 32, 1),
        EACH("proj1", 32, 32 + 1, 1),        EACH("proj2", 48, 32 + 1, 1)};
    static const struct {
        const char *before, *encoder, *more, *after;
        double tokens;
    } EARS[] = {/* 30 chunks of 100 frames, 13 places each; 21 of 140 and one of 60, 18 and 8 */
                {"{\"model_type\":\"qwen3_asr\",", "qwen3_asr_encoder", "", "}", 390},
                {"{\"model_type\":\"qwen3_asr\",\"thinker_config\":{\"model_type\":\"qwen3_asr_thinker\",",
                 "qwen3_asr_audio_encoder", ",\"n_window\":70", "}}", 21 * 18 + 8},
                {"{\"model_type\":\"qwen3_omni_moe\",\"thinker_config\":{\"model_type\":\"qwen3_omni_moe_thinker\",",
                 "qwen3_omni_moe_audio_encoder", "", "}}", 390}};
    (void)state;
    struct arena *a = arena_open();
    double want = 0;
    for (size_t i = 0; i < sizeof TENSORS / sizeof TENSORS[0]; i++)
        want += (double)TENSORS[i].rows * (double)TENSORS[i].cols * (double)TENSORS[i].times;
    for (size_t i = 0; i < sizeof EARS / sizeof EARS[0]; i++) {
        struct json j;
        struct model m;
        struct err e = {.code = ERR_OK};
        const char *text =
            arena_printf(a,
                         "%s\"audio_config\":{\"model_type\":\"%s\",\"d_model\":32,\"encoder_layers\":3,"
                         "\"encoder_ffn_dim\":80,\"num_mel_bins\":20,\"downsample_hidden_size\":6,\"output_dim\":48%s},"
                         "\"text_config\":{\"model_type\":\"qwen3\",\"hidden_size\":48,\"num_hidden_layers\":2,"
                         "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"intermediate_size\":96,"
                         "\"vocab_size\":31}%s",
                         EARS[i].before, EARS[i].encoder, EARS[i].more, EARS[i].after);
        assert_int_equal(json_parse(a, "c.json", text, strlen(text), &j, &e), ERR_OK);
        if (model_parse(a, &j, &m, &e) != ERR_OK) fail_msg("%zu: %s", i, e.text);
        if (!(fabs(m.audio.params - want) < 0.5))
            fail_msg("%zu: %.0f, its tensors %.0f (%s)", i, m.audio.params, want, m.notes ? m.notes : "");
        if (fabs(m.audio.tokens - EARS[i].tokens) > 0) fail_msg("%zu: %g tokens", i, m.audio.tokens);
    }
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors), cmocka_unit_test(test_ears),
                                       cmocka_unit_test(test_unknown)};
    return cmocka_run_group_tests_name("towers", tests, NULL, NULL);
}
