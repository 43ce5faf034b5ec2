/* Stored formats: bits per weight, bytes of small models by hand, lists of modules, published checkpoints, and caches
 * with scales. */
#include <stdlib.h>

#include "tests/csv.h"
#include "tests/stored_models.h"

/* ---- bits ---- */

static void test_bits_per_weight_of_large_matrices(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double bits;
    } CASES[] = {{"awq", 4 + (16 + 4) / 128.0},
                 {"int4-g128", 4.15625},
                 {"mlx4-g64", 4 + 32 / 64.0},
                 {"mlx4-g32", 4 + 32 / 32.0},
                 {"int3-g128", 3 + (16 + 3) / 128.0},
                 {"nf4", 4 + 32 / 64.0},
                 {"nf4-double", 4 + 8 / 64.0 + 32 / (64.0 * 256)},
                 {"fp8", 8},
                 {"fp8-block128", 8 + 32 / (128.0 * 128)},
                 {"mxfp8", 8.25},
                 {"mxfp4", 4.25},
                 {"nvfp4", 4.5},
                 {"q4_0", 4.5},
                 {"q4_1", 5},
                 {"q5_0", 5.5},
                 {"q5_1", 6},
                 {"q8_0", 8.5},
                 {"Q2_K", 2.625},
                 {"q3_k", 3.4375},
                 {"q4_k", 4.5},
                 {"q5_k", 5.5},
                 {"q6_k", 6.5625},
                 {"iq2_xxs", 2.0625},
                 {"iq3_xxs", 3.0625},
                 {"iq4_xs", 4.25},
                 {"iq4_nl", 4.5},
                 {"int8", 8 + 16 / 1031.0}, /* of rows of 1031 */
                 {"fp8-row", 8 + 32 / 1031.0},
                 {"llm-int8", 8 + 32 / 1031.0}};
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct dtype d;
        struct err e = {0};
        if (dtype_find(CASES[i].name, &d, &e) != ERR_OK) fail_msg("%s", e.text);
        if (fabs(dtype_bits_per_weight(&d, 1031) - CASES[i].bits) > 1e-12)
            fail_msg("%s: %.17g bits, by hand %.17g", CASES[i].name, dtype_bits_per_weight(&d, 1031), CASES[i].bits);
    }
}

static void test_names_that_are_no_formats(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",          "int",        "int4-g",     "int4-g0",       "int4-g7",        "int4-g4097",
        "int9-g64",  "int1-g64",   "int4-g064",  "int4-g64x",     "int4-g-64",      "int4-g9999999",
        "llm-int8:", "llm-int8:1", "llm-int8:x", "llm-int8:-0.1", "llm-int8:0.1.2", "mlx4g64"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        struct dtype d;
        struct err e = {0};
        if (dtype_find(BAD[i], &d, &e) != ERR_USAGE) fail_msg("'%s' is taken for a format", BAD[i]);
        assert_non_null(strstr(e.text, "ridge list dtypes"));
    }
}

/* ---- bytes by hand ---- */

static void test_bytes_of_a_small_model(void **state)
{
    (void)state;
    static const struct {
        const char *quantization;
        double layer; /* bytes of the matrices of one layer; embedding, head and norms are 16 bits beside them */
    } CASES[] = {
        {NULL, 2 * LAYER},
        /* tiles of 32 x 48: q 3*2, k 1*2, o 3*2, gate and up 4*2, down 3*3, fp32 each */
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[32,48]}", LAYER + 4 * (6 + 2 + 2 + 6 + 8 + 8 + 9)},
        {"{\"quant_method\":\"fp8\"}", LAYER + 4 * MATRICES},
        {"{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\"}", LAYER + 8 * MATRICES},
        /* fp32 per row: 72 + 24 + 24 + 72 + 100 + 100 + 72 = 464 rows */
        {"{\"quant_method\":\"fbgemm_fp8\"}", LAYER + 4 * 464},
        /* groups of 32 along 72 and 100: 3 and 4 of them: 3*(464 - 72) + 4*72 = 1464, of 20 bits */
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"zero_point\":true}", LAYER / 2.0 + 2.5 * 1464},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"zero_point\":false}", LAYER / 2.0 + 2 * 1464},
        /* and 4 bytes a column: 6*72 + 100 */
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32}", LAYER / 2.0 + 2.5 * 1464 + 4 * 532},
        {"{\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":32}", LAYER * 3 / 8.0 + 19 / 8.0 * 1464 + 4 * 532},
        {"{\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":-1}", LAYER + 3 * 464 + 4 * 532},
        /* 64 in a row of all elements: q 81, k 27, gate and down 112.5; 81+27+27+81+3*113 = 555 scales of 4 bytes */
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"bnb_4bit_quant_type\":\"nf4\"}",
         LAYER / 2.0 + 4 * 555 + 64 * MATRICES},
        /* scales of one byte; all of a matrix share one in fp32 (fewer than 256) */
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true,\"bnb_4bit_use_double_quant\":true}",
         LAYER / 2.0 + 555 + (4 + 64 + 1024) * MATRICES},
        {"{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true,\"bnb_4bit_use_double_quant\":true}",
         LAYER + 4 * 464 + 1 * MATRICES},
        /* compressed-tensors: 16-bit scales; packed weights carry their shape in 16 bytes */
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"ignore\":[\"lm_head\"],"
         "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":8,\"type\":\"float\","
         "\"strategy\":\"channel\"},\"input_activations\":{\"num_bits\":8,\"type\":\"float\",\"dynamic\":true}}}}",
         LAYER + 2 * 464},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\",\"ignore\":[\"re:.*lm_head\"],"
         "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":8,\"type\":\"int\","
         "\"strategy\":\"channel\"},\"input_activations\":{\"num_bits\":8,\"type\":\"int\",\"dynamic\":true}}}}",
         LAYER + 2 * 464},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\",\"ignore\":[\"lm_head\"],"
         "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":8,\"type\":\"float\","
         "\"strategy\":\"tensor\"},\"input_activations\":{\"num_bits\":8,\"type\":\"float\",\"dynamic\":false}}}}",
         LAYER + 4 * MATRICES},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\",\"ignore\":[\"lm_head\"],"
         "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":4,\"type\":\"int\","
         "\"strategy\":\"group\",\"group_size\":32,\"symmetric\":true}}}}",
         LAYER / 2.0 + 2 * 1464 + 16 * MATRICES},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\",\"ignore\":[\"lm_head\"],"
         "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":4,\"type\":\"int\","
         "\"strategy\":\"group\",\"group_size\":32,\"symmetric\":false,\"actorder\":\"group\"}}}}",
         LAYER / 2.0 + 2.5 * 1464 + 16 * MATRICES + 4 * 532},
        /* groups of 16: 5 along 72, 7 along 100: 5*392 + 7*72 = 2464 of one byte; two fp32 a matrix */
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"nvfp4-pack-quantized\",\"ignore\":[\"lm_head\"],"
         "\"config_groups\":{\"group_0\":{\"targets\":[\"Linear\"],\"weights\":{\"num_bits\":4,\"type\":\"float\","
         "\"strategy\":\"tensor_group\",\"group_size\":16},\"input_activations\":{\"num_bits\":4,\"type\":\"float\","
         "\"strategy\":\"tensor_group\",\"group_size\":16,\"dynamic\":\"local\"}}}}",
         LAYER / 2.0 + 2464 + 8 * MATRICES},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\",\"ignore\":[\"lm_head\"]}",
         LAYER / 2.0 + 2464 + 8 * MATRICES},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\",\"ignore\":[\"lm_head\"]}", LAYER + 8 * MATRICES},
        /* a byte for 32: 1464 groups as above */
        {"{\"quant_method\":\"mxfp8\",\"weight_block_size\":[1,32],\"ignored_layers\":[\"lm_head\"]}", LAYER + 1464},
        {"{\"quant_method\":\"modelopt_mxfp8\",\"quant_algo\":\"MXFP8\",\"ignore\":[\"lm_head\"]}", LAYER + 1464},
        /* one matrix of one layer would be a third of a byte a layer: all q_proj instead */
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"lm_head\",\"q_proj\"]}",
         LAYER + Q + 4 * (MATRICES - 1)},
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"model.layers.*.mlp.down_proj\"]}",
         LAYER + MLP + 4 * (MATRICES - 1)},
        {"{\"quant_method\":\"fp8\",\"ignored_layers\":[\"re:.*self_attn\\\\.(q|o)_proj$\"]}",
         LAYER + 2 * Q + 4 * (MATRICES - 2)},
        {"{\"quant_method\":\"fp8\",\"ignored_layers\":[\"mlp\"]}", LAYER + 3 * MLP + 4 * (MATRICES - 3)},
        {"{\"quant_method\":\"fp8\",\"ignored_layers\":[\"re:.*\\\\.[kqv]_proj$\",\"nobody\"]}",
         LAYER + Q + 2 * K + 4 * (MATRICES - 3)},
        {"{\"quant_method\":\"fp8\",\"ignored_layers\":[\"^model.layers.[0-9]+.mlp.(?:gate|up)_\\\\w+$\"]}",
         LAYER + 2 * MLP + 4 * (MATRICES - 2)},
        /* AutoRound: as AWQ and GPTQ pack it, without the group of each column */
        {"{\"quant_method\":\"auto-round\",\"bits\":4,\"group_size\":32,\"sym\":true,"
         "\"packing_format\":\"auto_round:auto_gptq\",\"extra_config\":{\"lm_head\":{\"bits\":16}}}",
         LAYER / 2.0 + 2.5 * 1464},
        {"{\"quant_method\":\"intel/auto-round\",\"bits\":2,\"group_size\":32}", LAYER / 4.0 + 2.25 * 1464},
        {"{\"quant_method\":\"auto-round\",\"bits\":4,\"group_size\":32,\"extra_config\":{"
         "\".*mlp.*\":{\"bits\":16,\"data_type\":\"float\"}}}",
         (2 * Q + 2 * K) / 2.0 + 2.5 * 3 * (72 + 24 + 24 + 72) + 2.0 * 3 * MLP},
        /* torchao: a 16-bit scale and zero a group; rows 72, 24, 24, 72, 100, 100, 72 */
        {"{\"quant_method\":\"torchao\",\"quant_type\":\"int4_weight_only\",\"quant_type_kwargs\":{\"group_size\":32}}",
         LAYER / 2.0 + 4 * 1464},
        {"{\"quant_method\":\"torchao\",\"quant_type\":{\"default\":{\"_type\":\"Int8WeightOnlyConfig\",\"_data\":{}}}"
         "}",
         LAYER + 2 * 464},
        {"{\"quant_method\":\"torchao\",\"quant_type\":{\"default\":{\"_type\":"
         "\"Float8DynamicActivationFloat8WeightConfig\",\"_data\":{\"granularity\":[{\"_type\":\"PerRow\"}]}}}}",
         LAYER + 4 * 464},
        {"{\"quant_method\":\"torchao\",\"quant_type\":\"float8_weight_only\"}", LAYER + 4 * MATRICES},
        /* HQQ: groups of 64 of the whole matrix, 81, 27, 27, 81 and three times 113 */
        {"{\"quant_method\":\"hqq\",\"quant_config\":{\"weight_quant_params\":{\"nbits\":4,\"group_size\":64}},"
         "\"skip_modules\":[\"lm_head\"]}",
         LAYER / 2.0 + 4 * 555},
        {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp4\",\"qscheme\":\"per_group\","
         "\"group_size\":32,\"scale_format\":\"e8m0\"}},\"exclude\":[\"lm_head\"]}",
         LAYER / 2.0 + 1464},
        {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp4\",\"qscheme\":\"per_group\","
         "\"group_size\":32}},\"layer_quant_config\":{\"*.q_proj\":{\"weight\":{\"dtype\":\"fp8_e4m3\","
         "\"qscheme\":\"per_channel\"}}},\"exclude\":[\"lm_head\"]}",
         (LAYER - Q) / 2.0 + 1464 - 3 * 72 + Q + 4 * 72},
        {"{\"quant_method\":\"quark\",\"global_quant_config\":{\"weight\":{\"dtype\":\"fp8_e4m3\",\"qscheme\":"
         "\"per_tensor\"},\"input_tensors\":{\"dtype\":\"fp8_e4m3\",\"is_dynamic\":false}},\"exclude\":[\"lm_head\"]}",
         LAYER + 8 * MATRICES},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        const struct model m = model_of(a, SMALL, CASES[i].quantization);
        if (m.weights_unknown) fail_msg("%s: %s", CASES[i].quantization, m.weights_unknown);
        const double got = stored(a, &m) - 2 * ENDS - 2 * NORMS;
        if (got != 3 * CASES[i].layer)
            fail_msg("%s: %.17g bytes, by hand %.17g", CASES[i].quantization, got, 3 * CASES[i].layer);
        arena_close(a);
    }
}

/* Lists that cut through layers: whole bytes of the model's matrices. */
static void test_layers_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *quantization;
        double bytes;
        size_t kinds;
    } CASES[] = {
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"model.layers.1.self_attn.q_proj\",\"lm_head\"]}",
         3 * (LAYER + 4 * MATRICES) + Q - 4, 2},
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"model.layers.0.mlp\",\"model.layers.2.mlp\"]}",
         3 * (LAYER + 4 * MATRICES) + 2 * (3 * MLP - 3 * 4), 2},
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"model.layers.0.self_attn\","
         "\"model.layers.1.self_attn\",\"model.layers.2.self_attn\"]}",
         3 * (LAYER + 4 * MATRICES + 2 * Q + 2 * K - 4 * 4), 1},
        /* a dot at the end: the block from the front, of words within a name none */
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"model.layers.0.mlp.\",\"model.layers.2.mlp.\"]}",
         3 * (LAYER + 4 * MATRICES) + 2 * (3 * MLP - 3 * 4), 2},
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"model.layers.1.\",\"mlp.\"]}",
         2 * (LAYER + 4 * MATRICES) + 2 * LAYER, 2},
        /* a layer behind the last, and parts that the model has not, change nothing */
        {"{\"quant_method\":\"fp8\",\"modules_to_not_convert\":[\"model.layers.3*\",\"visual.blocks.0.attn.proj\","
         "\"model.layers.0.input_layernorm\",\"re:.*vision_tower.*\"]}",
         3 * (LAYER + 4 * MATRICES), 1},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\",\"exclude_modules\":[\"lm_head\",\"model.layers.2*\","
         "\"model.layers.0.self_attn*\"]}",
         3 * (LAYER + 8 * MATRICES) + (2 * Q + 2 * K - 8 * 4) + (LAYER - 8 * MATRICES), 3},
        {"{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{"
         "\"model.layers.1.mlp.up_proj\":{\"quant_algo\":\"FP8\"},"
         "\"model.layers.2.mlp.up_proj\":{\"quant_algo\":\"W4A16_NVFP4\",\"group_size\":16}}}",
         6 * LAYER - MLP + 8 - 2 * MLP + MLP / 2.0 + 5 * 100 + 4, 3},
        /* AWQ: parts of names, dots at their ends too; 1464 groups of 32 a layer, 576 of them in attention */
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"modules_to_not_convert\":[\"model.layers.0.\"]}",
         2 * (LAYER / 2.0 + 2.5 * 1464) + 2 * LAYER, 2},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"modules_to_not_convert\":[\"self_attn.\"]}",
         3 * (2 * (2 * Q + 2 * K) + 3 * MLP / 2.0 + 2.5 * (1464 - 576)), 1},
        {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"modules_to_not_convert\":[\"2.self\"]}",
         3 * (LAYER / 2.0 + 2.5 * 1464) + 1.5 * (2 * Q + 2 * K) - 2.5 * 576, 2},
        /* GPTQModel: 8 bits for the MLP of layer 1, nothing of attention; 32 bits a column, 24 or 20 bits a group */
        {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":128,\"dynamic\":{\"-:.*self_attn.*\":{},"
         "\"+:.*\\\\.1\\\\.mlp.*\":{\"bits\":8}}}",
         3 * 2 * (2 * Q + 2 * K) + 3 * (3 * MLP / 2.0 + 272 * 2.5 + 4 * 244) + 3 * MLP / 2.0 + 272 * .5, 2},
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct arena *a = arena_open();
        struct model m = model_of(a, SMALL, CASES[i].quantization);
        struct err e = {0};
        int64_t layers = 0;
        static const struct cost_conventions FUSED = {.mlp_fused = true};
        struct sym_ctx *c = sym_open(a);
        double fused = 0;
        if (m.weights_unknown) fail_msg("%s: %s", CASES[i].quantization, m.weights_unknown);
        const double got = stored(a, &m) - 2 * ENDS - 2 * NORMS;
        if (got != CASES[i].bytes)
            fail_msg("%s: %.17g bytes, by hand %.17g", CASES[i].quantization, got, CASES[i].bytes);
        const struct cost_ops one = operators_by(a, c, &m, &FUSED); /* however the kernels are cut */
        assert_true(sym_constant(cost_weight_bytes(c, &one, &FUSED), &fused));
        assert_true(fused - 2 * ENDS - 2 * NORMS == got);
        assert_int_equal(m.kinds_n, CASES[i].kinds);
        for (size_t k = 0; k < m.kinds_n; k++) layers += m.kinds[k].count;
        assert_int_equal(layers, 3);
        for (size_t k = 1; k < m.kinds_n; k++) assert_string_not_equal(m.kinds[0].label, m.kinds[k].label);
        /* another format for all of them makes them one kind again */
        assert_int_equal(stored_set_all(&m, "bf16", &e), ERR_OK);
        assert_int_equal(m.kinds_n, 1);
        assert_true(stored(a, &m) == 2 * ENDS + 2 * NORMS + 6 * LAYER);
        arena_close(a);
    }
}

/* MLX: 4 bits with 32 bits a group of 64, embedding, head and router too; members with dots change single modules. */
static void test_mlx_overrides(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    enum { ATTENTION = 2 * 64 * 64 + 2 * 32 * 64, EXPERT = 48 * 64, REST = 2 * (2 * 64 + 2 * 16) + 64 };
    const double four = 4.5 / 8, eight = 8.5 / 8;
    /* down projections of 48 columns have one group of them */
    const double experts = 5 * (2 * EXPERT * four + EXPERT / 2.0 + 64 * 4);
    struct model m = model_of(a, EXPERTS, "{\"group_size\":64,\"bits\":4}");
    assert_true(stored(a, &m) == 2 * (ATTENTION * four + 5 * 64 * four + experts) + 2 * 64 * 64 * four + 2 * REST);
    m = model_of(a, EXPERTS,
                 "{\"group_size\":64,\"bits\":4,\"model.layers.0.mlp.gate\":{\"group_size\":64,\"bits\":8},"
                 "\"model.layers.1.mlp.gate\":{\"group_size\":64,\"bits\":8},\"model.embed_tokens\":false,"
                 "\"model.layers.1.self_attn.q_proj\":false}");
    assert_null(m.weights_unknown);
    assert_true(stored(a, &m) == 2 * (ATTENTION * four + 5 * 64 * eight + experts) + 64 * 64 * (2 - four) +
                                     64 * 64 * four + 64 * 64 * 2.0 + 2 * REST);
    /* the head, whose name has no dot */
    m = model_of(a, EXPERTS, "{\"group_size\":64,\"bits\":4,\"lm_head\":{\"group_size\":64,\"bits\":8}}");
    assert_null(m.weights_unknown);
    assert_true(stored(a, &m) ==
                2 * (ATTENTION * four + 5 * 64 * four + experts) + 64 * 64 * (four + eight) + 2 * REST);
    m = model_of(a, EXPERTS, "{\"group_size\":64,\"bits\":4,\"others\":{\"rank\":64}}");
    assert_non_null(strstr(m.weights_unknown, "\"others\""));
    arena_close(a);
}

/* Routers in fp32, as MiniMax stores them, stay so beside a quantisation. */
static void test_routers_in_fp32_stay(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    static const struct model_setting SET = {"quantization_config", "{\"quant_method\":\"fp8\"}"};
    assert_int_equal(model_load(a, "minimax-m1-80k", NULL, 0, &m, &e), ERR_OK);
    assert_string_equal(m.weights[WEIGHT_ROUTER].name, "fp32");
    assert_int_equal(model_load(a, "minimax-m1-80k", &SET, 1, &m, &e), ERR_OK);
    assert_null(m.weights_unknown);
    assert_string_equal(m.weights[WEIGHT_EXPERT].name, "fp8");
    assert_string_equal(m.weights[WEIGHT_ROUTER].name, "fp32");
    arena_close(a);
}

/* Experts named one by one: all of them are a format, some of them are refused. */
static void test_experts_one_by_one(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    for (int named = 4; named <= 5; named++) {
        const char *list = "";
        for (int l = 0; l < 2; l++)
            for (int x = 0; x < named; x++)
                for (int p = 0; p < 3; p++)
                    list = arena_printf(a, "%s%s\"model.layers.%d.mlp.experts.%d.%s_proj\":{\"quant_algo\":\"FP8\"}",
                                        list, *list ? "," : "", l, x,
                                        p == 0   ? "gate"
                                        : p == 1 ? "up"
                                                 : "down");
        const char *q = arena_printf(
            a, "{\"quant_method\":\"modelopt\",\"quant_algo\":\"MIXED_PRECISION\",\"quantized_layers\":{%s}}", list);
        const struct model m = model_of(a, EXPERTS, q), plain = model_of(a, EXPERTS, NULL);
        if (named == 4) {
            assert_non_null(m.weights_unknown);
            assert_non_null(strstr(m.weights_unknown, "not all"));
        } else {
            assert_null(m.weights_unknown);
            assert_true(stored(a, &m) == stored(a, &plain) - 2 * 15 * (48 * 64 - 8.0));
        }
    }
    arena_close(a);
}

/* ---- published checkpoints ---- */

/* BitNet b1.58 2B4T: matrices of a layer are 2*2560*2560 + 2*640*2560 + 3*2560*6912 = 69,468,160 weights, four to a
 * byte, with a scale each; embedding and norms in bf16. The Hub counts 849,787,090 elements of both types. Layers that
 * quantise at every step store floats. */
static void test_published_ternary(void **state)
{
    static const char BASE[] = "{\"model_type\":\"bitnet\",\"architectures\":[\"BitNetForCausalLM\"],"
                               "\"hidden_size\":2560,\"num_hidden_layers\":30,\"num_attention_heads\":20,"
                               "\"num_key_value_heads\":5,\"intermediate_size\":6912,\"vocab_size\":128256,"
                               "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\"";
    const double BYTES = 30.0 * 69468160 / 4, FLOATS = 128256.0 * 2560 + 30 * (3 * 2560 + 6912) + 2560, SCALES = 30 * 7;
    const struct {
        const char *quantization;
        double bytes;
        const char *unknown, *note;
    } CASES[] = {
        {"{\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\",\"quantization_mode\":\"offline\"}",
         BYTES + 2 * (FLOATS + SCALES), NULL, "transformers unpacks"},
        {"{\"quant_method\":\"bitnet\",\"modules_to_not_convert\":null}", BYTES + 2 * (FLOATS + SCALES), NULL, NULL},
        {"{\"quant_method\":\"bitnet\",\"linear_class\":\"autobitlinear\",\"quantization_mode\":\"online\"}",
         2 * (4 * BYTES + FLOATS), NULL, NULL},
        {"{\"quant_method\":\"bitnet\",\"quantization_mode\":\"online\"}", BYTES + 2 * (FLOATS + SCALES), NULL, NULL},
        {"{\"quant_method\":\"bitnet\",\"modules_to_not_convert\":[\"down_proj\"]}",
         BYTES + 30 * 2560 * 6912 * (2 - 0.25) + 2 * (FLOATS + SCALES - 30), NULL, NULL},
        {"{\"quant_method\":\"bitnet\",\"linear_class\":\"trilinear\"}", 0, "trilinear", NULL},
        {"{\"quant_method\":\"bitnet\",\"quantization_mode\":\"both\"}", 0, "mode \"both\"", NULL},
        {"{\"quant_method\":\"bitnet\",\"use_rms_norm\":true}", 0, "a norm in front", NULL},
    };
    (void)state;
    assert_true(BYTES + FLOATS + SCALES == 849787090);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        const struct model m = model_of(a, BASE, CASES[i].quantization);
        if (CASES[i].unknown) {
            assert_non_null(m.weights_unknown);
            assert_non_null(strstr(m.weights_unknown, CASES[i].unknown));
        } else {
            if (m.weights_unknown) fail_msg("%s: %s", CASES[i].quantization, m.weights_unknown);
            const double found = stored(a, &m);
            if (found < CASES[i].bytes || found > CASES[i].bytes)
                fail_msg("%s: %.0f for %.0f", CASES[i].quantization, found, CASES[i].bytes);
            assert_true(CASES[i].note ? m.notes && strstr(m.notes, CASES[i].note) : !m.notes);
        }
        arena_close(a);
    }
}

/* Llama 3.1 8B in int8 with the rest in fp32: metadata.total_size 11188584672 of a published index. */
static void test_published_int8(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    static const struct model_setting SET[] = {
        {"torch_dtype", "float32"},
        {"quantization_config",
         "{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true,\"bnb_4bit_quant_type\":\"fp4\"}"}};
    assert_int_equal(model_load(a, "llama-3.1-8b", SET, 2, &m, &e), ERR_OK);
    assert_true(stored(a, &m) == 11188584672.0);
    arena_close(a);
}

/* A config with the hf_quant_config.json of its quantised copy. */
static bool with_modelopt(struct arena *a, const char *config, const char *beside, struct model *m)
{
    struct json j, q, text;
    struct err e = {0};
    const char *path = csv_shared(a, arena_printf(a, "models/configs/%s.json", config));
    if (!path || json_load(a, path, &j, &e) != ERR_OK) return false;
    path = csv_shared(a, arena_printf(a, "models/hf_quant/%s_hf_quant_config.json", beside));
    if (json_load(a, path, &q, &e) != ERR_OK) return false;
    /* without the original's */
    assert_int_equal(json_override(&j, "quantization_config", "null", &e), ERR_OK);
    if (json_get(&j, "text_config", &text))
        assert_int_equal(json_override(&text, "quantization_config", "null", &e), ERR_OK);
    assert_int_equal(json_attach(&j, "hf_quant_config", &q, &e), ERR_OK);
    if (model_parse(a, &j, m, &e) != ERR_OK) fail_msg("%s: %s", beside, e.text);
    m->name = beside;
    if (m->weights_unknown) fail_msg("%s: %s", beside, m->weights_unknown);
    assert_string_equal(m->kv.name, "fp8");
    return true;
}

static void test_modelopt_files(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m;
    if (!with_modelopt(a, "Qwen__Qwen3-32B", "Qwen__Qwen3-32B-FP8-Static-PerTensor", &m)) {
        arena_close(a);
        skip();
    }
    /* 64 layers of 5120: q and o of 8192, k and v of 1024, MLP of 25600; two scales for each of 7 matrices */
    const double linear = 64.0 * 5120 * (2 * 8192 + 2 * 1024 + 3 * 25600);
    assert_true(stored(a, &m) == 2 * (32762123264.0 - linear) + linear + 64 * 7 * 8);
    /* all but head and routers: 94 layers of 4096 with 128 experts of 1536, q of 8192, k and v of 512 */
    assert_true(with_modelopt(a, "Qwen__Qwen3-235B-A22B", "nvidia__Qwen3-235B-A22B-NVFP4", &m));
    const double all = 94.0 * 4096 * (2 * 8192 + 2 * 512 + 128 * 3 * 1536);
    assert_true(stored(a, &m) == 2 * (235093634560.0 - all) + all * 4.5 / 8 + 94 * (4 + 128 * 3) * 8.0);
    /* attention but o_proj stays; 3 dense layers of 18432, 58 of 256 experts of 2048 and a shared one */
    assert_true(with_modelopt(a, "deepseek-ai__DeepSeek-V3", "nvidia__DeepSeek-V3.1-NVFP4", &m));
    const double v3 = 7168.0 * (61.0 * 16384 + 3 * 3 * 18432.0 + 58.0 * 257 * 3 * 2048);
    const double correction = 58 * 256; /* in fp32 */
    assert_true(stored(a, &m) ==
                2 * (671026419200.0 - v3) + 2 * correction + v3 * 4.5 / 8 + (61 + 3 * 3 + 58 * 257 * 3) * 8.0);
    /* a hybrid whose list leaves 6 of 23 mamba layers: 18237772608 stored elements were published, those of packed
     * bytes and of scales of 16, without the numbers that a matrix has one of */
    assert_true(with_modelopt(a, "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
                              "nvidia__NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", &m));
    const double total = 31577940288.0, biases = 23 * 128, matrices = 23 * 129 * 2 + 17 * 2;
    const double converted = (2 * total + 2 * biases + 8 * matrices - stored(a, &m)) / (2 - 4.5 / 8);
    assert_true(total - converted + converted / 2 + converted / 16 == 18237772608.0);
    static const char *const OTHERS[][2] = {{"google__gemma-4-26B-A4B", "nvidia__Gemma-4-26B-A4B-NVFP4"},
                                            {"deepseek-ai__DeepSeek-V3.2", "nvidia__DeepSeek-V3.2-NVFP4"},
                                            {"zai-org__GLM-5", "nvidia__GLM-5-NVFP4"},
                                            {"zai-org__GLM-5.2", "nvidia__GLM-5.2-NVFP4"},
                                            {"moonshotai__Kimi-K2.5", "nvidia__Kimi-K2.6-NVFP4"},
                                            {"MiniMaxAI__MiniMax-M2.5", "nvidia__MiniMax-M2.5-NVFP4"},
                                            {"Qwen__Qwen3.5-27B", "nvidia__Qwen3.6-27B-NVFP4"},
                                            {"Qwen__Qwen3.5-397B-A17B", "nvidia__Qwen3.5-397B-A17B-NVFP4"}};
    for (size_t i = 0; i < COUNT(OTHERS); i++) {
        assert_true(with_modelopt(a, OTHERS[i][0], OTHERS[i][1], &m));
        struct model plain = m;
        struct err e = {0};
        assert_int_equal(stored_set_all(&plain, "bf16", &e), ERR_OK);
        const double share = stored(a, &m) / stored(a, &plain);
        if (!(share > 4.5 / 16 && share < .5)) fail_msg("%s: %g of its size in 16 bits", m.name, share);
    }
    arena_close(a);
}

/* compressed-tensors files: attention and routers of Llama 4 Scout stay, and all but the routed experts of Kimi K2.5.
 */
static void test_compressed_files(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m;
    struct err e = {0};
    const char *path = csv_shared(a, "models/configs/RedHatAI__Llama-4-Scout-17B-16E-Instruct-FP8-dynamic.json");
    if (model_load(a, path, NULL, 0, &m, &e) != ERR_OK) {
        arena_close(a);
        skip();
    }
    assert_null(m.weights_unknown);
    const double experts = 48.0 * 17 * 3 * 5120 * 8192, rows = 48.0 * 17 * (2 * 8192 + 5120);
    assert_true(stored(a, &m) == 2 * (107769861120.0 - experts) + experts + 2 * rows);
    path = csv_shared(a, "models/configs/moonshotai__Kimi-K2.5.json");
    assert_int_equal(model_load(a, path, NULL, 0, &m, &e), ERR_OK);
    assert_null(m.weights_unknown);
    const double routed = 60.0 * 384 * 3 * 7168 * 2048, correction = 60 * 384;
    assert_true(stored(a, &m) ==
                2 * (1026408232448.0 - routed) + 2 * correction + routed * 4.5 / 8 + 60 * 384 * 3 * 16.0);
    arena_close(a);
}

/* ---- outliers ---- */

static const struct cost_op *named(const struct cost_ops *ops, const char *name)
{
    for (size_t i = 0; i < ops->n; i++)
        if (strcmp(ops->op[i].name, name) == 0) return &ops->op[i];
    fail_msg("no operator %s", name);
    return NULL;
}

static double at(struct arena *a, struct sym_ctx *c, const struct sym *x, double B, double S)
{
    struct sym_tape *tape;
    struct err e = {0};
    double v;
    const struct cost_symbols y = cost_symbols_make(c);
    const struct sym *const in[] = {y.B, y.S};
    const double *const point[] = {&B, &S};
    double *const out[] = {&v};
    assert_int_equal(sym_tape_compile(a, 1, &x, 2, in, &tape, &e), ERR_OK);
    sym_tape_eval(tape, 1, point, out);
    return v;
}

/* 7 sequences, a quarter of the columns of 72 in 16 bits: down_proj of 100 columns and 72 rows has 25 of them. */
static void test_outlier_columns_are_a_second_product(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct err e = {0};
    struct model m = model_of(a, SMALL, NULL);
    assert_int_equal(stored_set_all(&m, "llm-int8:0.25", &e), ERR_OK);
    const struct cost_ops ops = operators(a, c, &m);
    const struct cost_op *down = named(&ops, "down_proj");
    assert_true(at(a, c, down->flops, 7, 1) == 2.0 * 7 * 72 * (100 + 25));
    assert_true(at(a, c, down->half_flops, 7, 1) == 2.0 * 7 * 72 * 25);
    assert_true(at(a, c, down->weight_bytes, 7, 1) == 7200 + 4 * 72 + 1 + 2.0 * 25 * 72);
    /* the input's outliers once more, the output read and written by the second product */
    assert_true(at(a, c, down->activation_bytes, 7, 1) == 2.0 * 7 * (100 + 72) + 2.0 * 7 * (25 + 2 * 72));
    assert_true(stored(a, &m) == 2 * ENDS + 2 * NORMS + 3 * (LAYER + 4 * 464 + MATRICES));
    assert_int_equal(stored_set_all(&m, "llm-int8:0", &e), ERR_OK);
    const struct cost_ops none = operators(a, c, &m);
    assert_true(at(a, c, named(&none, "down_proj")->half_flops, 7, 1) == 0);
    m = model_of(a, SMALL, "{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}");
    assert_true(m.weights[WEIGHT_FFN].outlier_frac == .001);
    m = model_of(a, SMALL, "{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true,\"llm_int8_threshold\":0.0}");
    assert_true(m.weights[WEIGHT_FFN].outlier_frac == 0);
    arena_close(a);
}

/* ---- caches ---- */

static void test_caches_with_scales(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double bytes; /* a token and layer: keys and values of 2 heads of 12 */
    } CASES[] = {{"bf16", 96},
                 {"fp8", 48},
                 {"int8", 48},
                 {"int8-head", 48 + 4 * 4},
                 {"fp8-head", 48 + 4 * 4},
                 {"int4-head", 24 + 4 * 4},
                 {"int4-g32", 24 + 2 * 2.5},
                 {"int8-g32", 48 + 2 * 3},
                 {"q8_0", 48 + 2 * 2},
                 {"q4_0", 24 + 2 * 2},
                 {"nvfp4", 24 + 3}};
    struct arena *a = arena_open();
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct sym_ctx *c = sym_open(a);
        struct model m = model_of(a, SMALL, NULL);
        struct err e = {0};
        struct cost_cache cache;
        const struct cost_symbols y = cost_symbols_make(c);
        assert_int_equal(dtype_find(CASES[i].name, &m.kv, &e), ERR_OK);
        assert_int_equal(cost_cache(c, &y, &m, 1, &cache, &e), ERR_OK);
        if (cache.bytes_per_token_full != 3 * CASES[i].bytes)
            fail_msg("%s: %g bytes a token, by hand %g", CASES[i].name, cache.bytes_per_token_full, 3 * CASES[i].bytes);
        const struct cost_ops ops = operators(a, c, &m);
        assert_true(at(a, c, named(&ops, "kv_write")->kv_bytes, 5, 11) == 5 * CASES[i].bytes);
        assert_true(at(a, c, named(&ops, "attention")->kv_bytes, 5, 11) == 5 * 11 * CASES[i].bytes);
    }
    arena_close(a);
}

static void test_cache_schemes_of_files(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m = model_of(a, SMALL,
                              "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{},\"kv_cache_scheme\":"
                              "{\"num_bits\":8,\"type\":\"float\",\"strategy\":\"tensor\"}}");
    assert_string_equal(m.kv.name, "fp8");
    m = model_of(a, SMALL, "{\"quant_method\":\"modelopt\",\"kv_cache_quant_algo\":\"INT8\"}");
    assert_string_equal(m.kv.name, "int8");
    assert_null(m.weights_unknown);
    assert_true(stored(a, &m) == 2 * ENDS + 2 * NORMS + 6 * LAYER);
    m = model_of(a, SMALL, "{\"quant_method\":\"modelopt\",\"kv_cache_quant_algo\":\"FP3\"}");
    assert_non_null(strstr(m.weights_unknown, "FP3"));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_per_weight_of_large_matrices),
        cmocka_unit_test(test_names_that_are_no_formats),
        cmocka_unit_test(test_bytes_of_a_small_model),
        cmocka_unit_test(test_layers_told_apart),
        cmocka_unit_test(test_mlx_overrides),
        cmocka_unit_test(test_routers_in_fp32_stay),
        cmocka_unit_test(test_experts_one_by_one),
        cmocka_unit_test(test_published_int8),
        cmocka_unit_test(test_published_ternary),
        cmocka_unit_test(test_modelopt_files),
        cmocka_unit_test(test_compressed_files),
        cmocka_unit_test(test_outlier_columns_are_a_second_product),
        cmocka_unit_test(test_caches_with_scales),
        cmocka_unit_test(test_cache_schemes_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
