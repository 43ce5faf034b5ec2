/* Families against their tensors, further ones: stripes of keys, layers that run several times, lists by layer. */
#include "tests/families.h"

#include <math.h>
#include <string.h>

/* The matrices of an OpenELM layer of q query heads, k KV heads, an MLP of f. */
#define ELM(q, k, f) EACH("qkv_proj, out_proj", 2 * ((q) + (k)) * 64, 1280, 1), EACH("proj_1, proj_2", 3 * (f), 1280, 1)

static const struct subject SUBJECTS[] = {
    {"phi-3-small-8k", /* counted as published: 7392272384 */
     "{\"model_type\":\"phi3small\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"ff_intermediate_size\":14336,\"vocab_size\":100352,"
     "\"dense_attention_every_n_layers\":2,\"blocksparse_block_size\":64,\"blocksparse_num_local_blocks\":16,"
     "\"blocksparse_vert_stride\":8}",
     {EACH("embed_tokens", 100352, 4096, 1), EACH("final_layernorm", 2, 4096, 1),
      EACH("query_key_value", 6144, 4096, 32), EACH("query_key_value.bias", 1, 6144, 32), EACH("dense", 4096, 4096, 32),
      EACH("dense.bias", 1, 4096, 32), EACH("up_proj", 28672, 4096, 32), EACH("up_proj.bias", 1, 28672, 32),
      EACH("down_proj", 4096, 14336, 32), EACH("down_proj.bias", 1, 4096, 32), NORMS(4, 4096, 32)},
     32 * 2 * 1024, /* the cache keeps all keys in every layer */
     0,
     0,
     0},
    {"molmo-7b-o", /* rows of the embedding beyond those of the head; norms of all queries and all keys */
     "{\"model_type\":\"molmo\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"intermediate_size\":22016,\"vocab_size\":100278,\"embedding_size\":100352,"
     "\"qkv_bias\":false,\"attention_layer_norm\":true,\"weight_tying\":false,\"layer_norm_type\":\"rms\"}",
     {EACH("wte", 100352 + 128, 4096, 1), EACH("ln_f", 1, 4096, 1), EACH("ff_out", 100352, 4096, 1),
      EACH("att_proj", 4096 + 2 * 1024, 4096, 32), EACH("attn_out", 4096, 4096, 32), EACH("q_norm", 1, 4096, 32),
      EACH("k_norm", 1, 1024, 32), EACH("ff_proj", 22016, 4096, 32), EACH("ff_out", 4096, 11008, 32),
      NORMS(2, 4096, 32)},
     32 * 2 * 1024,
     0,
     0,
     0},
    {"plamo", /* seven queries for each pair of a key and a value head */
     "{\"model_type\":\"plamo\",\"hidden_size\":84,\"num_hidden_layers\":3,\"num_attention_heads\":14,"
     "\"num_key_value_heads\":14,\"n_shared_head\":7,\"intermediate_size\":37,\"vocab_size\":101}",
     {ENDS(101, 84), HEAD(101, 84), QKVO(84, 12, 84, 3), GATED(84, 37, 3), NORMS(1, 84, 3)},
     3 * 24,
     0,
     0,
     0},
    {"plamo3",
     "{\"model_type\":\"plamo3\",\"hidden_size\":44,\"num_hidden_layers\":9,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":10,\"intermediate_size\":37,\"vocab_size\":101,\"window_size\":13}",
     {ENDS(101, 44), QKVO(60, 20, 44, 9), EACH("q_norm, k_norm", 2, 10, 9), GATED(44, 37, 9), NORMS(4, 44, 9)},
     1 * 40,
     8 * 40,
     0,
     0},
    {"openpangu-embedded-7b",
     "{\"model_type\":\"PanguEmbedded\",\"hidden_size\":4096,\"num_hidden_layers\":34,\"num_attention_heads\":32,"
     "\"num_key_value_heads\":8,\"intermediate_size\":12800,\"vocab_size\":153376,\"bias\":true}",
     {ENDS(153376, 4096), HEAD(153376, 4096), QKVO(4096, 1024, 4096, 34), EACH("q, k, v bias", 1, 6144, 34),
      EACH("o_proj.bias", 1, 4096, 34), GATED(4096, 12800, 34), NORMS(2, 4096, 34)},
     34 * 2 * 1024,
     0,
     0,
     0},
    {"ouro-2.6b", /* weights once, caches of four times */
     "{\"model_type\":\"ouro\",\"hidden_size\":2048,\"num_hidden_layers\":48,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":16,\"intermediate_size\":5632,\"vocab_size\":49152,\"total_ut_steps\":4}",
     {ENDS(49152, 2048), HEAD(49152, 2048), QKVO(2048, 2048, 2048, 48), GATED(2048, 5632, 48), NORMS(4, 2048, 48),
      EACH("early_exit_gate", 1, 2048 + 1, 1)},
     4 * 48 * 2 * 2048,
     0,
     0,
     0},
    {"nanbeige",
     "{\"model_type\":\"nanbeige\",\"hidden_size\":44,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":10,\"intermediate_size\":37,\"vocab_size\":101,\"num_loops\":3,"
     "\"qk_norm\":true,\"skip_loop_final_norm\":true}",
     {ENDS(101, 44), HEAD(101, 44), QKVO(60, 20, 44, 5), EACH("q_norm, k_norm", 2, 10, 5), GATED(44, 37, 5),
      NORMS(2, 44, 5)},
     3 * 5 * 40,
     0,
     0,
     0},
    {"nanbeige, once",
     "{\"model_type\":\"nanbeige\",\"hidden_size\":44,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":10,\"intermediate_size\":37,\"vocab_size\":101}",
     {ENDS(101, 44), HEAD(101, 44), QKVO(60, 20, 44, 5), GATED(44, 37, 5), NORMS(2, 44, 5)},
     5 * 40,
     0,
     0,
     0},
    {"solar-pro-preview",
     "{\"model_type\":\"solar\",\"hidden_size\":5120,\"num_hidden_layers\":64,\"num_attention_heads\":40,"
     "\"num_key_value_heads\":10,\"intermediate_size\":17920,\"vocab_size\":32128,\"sliding_window\":2047}",
     {ENDS(32128, 5120), HEAD(32128, 5120), QKVO(5120, 1280, 5120, 64), GATED(5120, 17920, 64), NORMS(2, 5120, 64)},
     0,
     64 * 2 * 1280,
     0,
     0},
    {"openelm-270m", /* published: 271527168 */
     "{\"model_type\":\"openelm\",\"num_transformer_layers\":16,\"model_dim\":1280,\"head_dim\":64,"
     "\"num_query_heads\":[12,12,12,12,12,16,16,16,16,16,16,16,20,20,20,20],"
     "\"num_kv_heads\":[3,3,3,3,3,4,4,4,4,4,4,4,5,5,5,5],\"ffn_dim_divisor\":256,\"vocab_size\":32000,"
     "\"ffn_multipliers\":[0.5,0.73,0.97,1.2,1.43,1.67,1.9,2.13,2.37,2.6,2.83,3.07,3.3,3.53,3.77,4.0],"
     "\"normalize_qk_projections\":true,\"share_input_output_layers\":true,\"ffn_with_glu\":true}",
     {EACH("token_embeddings", 32000, 1280, 1),
      EACH("norm", 1, 1280, 1),
      ELM(12, 3, 768),
      ELM(12, 3, 1024),
      ELM(12, 3, 1280),
      ELM(12, 3, 1536),
      ELM(12, 3, 1792),
      ELM(16, 4, 2048),
      ELM(16, 4, 2560),
      ELM(16, 4, 2816),
      ELM(16, 4, 3072),
      EACH("proj_1, 2", 3 * 3328, 1280, 1),
      EACH("qkv_proj, out_proj", 40 * 64, 1280, 3),
      EACH("proj_1, 2", 3 * 3584, 1280, 1),
      EACH("proj_1, 2", 3 * 3840, 1280, 1),
      NORMS(2, 1280, 16),
      EACH("q_norm, k_norm", 2, 64, 16),
      EACH("qkv_proj, out_proj", 50 * 64, 1280, 4),
      EACH("proj_1, 2", 3 * 4352, 1280, 1),
      EACH("proj_1, 2", 3 * 4608, 1280, 1),
      EACH("proj_1, 2", 3 * 4864, 1280, 1),
      EACH("proj_1, 2", 3 * 5120, 1280, 1)},
     (5 * 3 + 7 * 4 + 4 * 5) * 2 * 64,
     0,
     0,
     0},
    {"aria",
     "{\"model_type\":\"aria_text\",\"hidden_size\":2560,\"num_hidden_layers\":28,\"num_attention_heads\":20,"
     "\"num_key_value_heads\":20,\"intermediate_size\":1664,\"vocab_size\":100352,\"moe_num_experts\":64,"
     "\"moe_topk\":6,\"moe_num_shared_experts\":2}",
     {ENDS(100352, 2560), HEAD(100352, 2560), QKVO(2560, 2560, 2560, 28), EXPERTS(2560, 1664, 28, 64, 6),
      GATED(2560, 2 * 1664, 28), EACH("router", 64, 2560, 28), NORMS(2, 2560, 28)},
     28 * 2 * 2560,
     0,
     0,
     0},
    {"sarvam", /* shared experts of a width of their own */
     "{\"model_type\":\"sarvam_mla\",\"hidden_size\":44,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"q_lora_rank\":17,\"kv_lora_rank\":19,\"qk_nope_head_dim\":7,\"qk_rope_head_dim\":3,\"v_head_dim\":5,"
     "\"intermediate_size\":37,\"moe_intermediate_size\":11,\"moe_shared_expert_intermediate_size\":13,"
     "\"num_experts\":9,\"num_experts_per_tok\":2,\"num_shared_experts\":2,\"first_k_dense_replace\":1,"
     "\"vocab_size\":101}",
     {ENDS(101, 44), HEAD(101, 44), LATENT(44, 6, 17, 19, 7, 3, 5, 5), GATED(44, 37, 1), EXPERTS(44, 11, 4, 9, 2),
      GATED(44, 26, 4), EACH("gate", 9, 44, 4), EACH("e_score_correction_bias", 1, 9, 4), NORMS(2, 44, 5)},
     5 * 22,
     0,
     0,
     0},
    {"plamo-2-1b",
     "{\"model_type\":\"plamo2\",\"hidden_size\":2048,\"num_hidden_layers\":16,\"num_attention_heads\":16,"
     "\"num_key_value_heads\":1,\"hidden_size_per_head\":128,\"mamba_d_state\":64,\"mamba_d_conv\":4,"
     "\"mamba_num_heads\":32,\"mamba_step\":2,\"intermediate_size\":8192,\"vocab_size\":100032}",
     {ENDS(100032, 2048), EACH("qkv_proj", 18 * 128, 2048, 8), EACH("o_proj", 2048, 2048, 8),
      EACH("q_weight, k_weight", 17, 128, 8), EACH("in_proj", 8192, 2048, 8), EACH("conv1d", 4096, 4, 8),
      EACH("bcdt_proj", 128 + 2 * 64, 4096, 8), EACH("dt_norm, B_norm, C_norm", 1, 128 + 2 * 64, 8),
      EACH("dt_proj", 32, 128, 8), EACH("A_log, D, dt_bias", 3, 32, 8), EACH("out_proj", 2048, 4096, 8),
      GATED(2048, 8192, 16), NORMS(4, 2048, 16)},
     8 * 2 * 128,
     0,
     8 * 3 * 4096,
     8 * 32 * 64 * 128},
    {"xlstm-7b", /* published: 6865424896 */
     "{\"model_type\":\"xlstm\",\"hidden_size\":4096,\"embedding_dim\":4096,\"num_hidden_layers\":32,"
     "\"num_blocks\":32,\"num_heads\":8,\"qk_dim_factor\":0.5,\"v_dim_factor\":1.0,\"ffn_proj_factor\":2.667,"
     "\"ffn_round_up_to_multiple_of\":64,\"vocab_size\":50304,\"use_bias\":false,\"add_out_norm\":true}",
     {ENDS(50304, 4096), HEAD(50304, 4096), EACH("q, k", 2 * 2048, 4096, 32), EACH("v", 4096, 4096, 32),
      EACH("ogate_preact", 4096, 4096, 32), EACH("igate_preact, fgate_preact", 16, 4096 + 1, 32),
      EACH("multihead_norm", 1, 4096, 32), EACH("out_proj", 4096, 4096, 32), GATED(4096, 10944, 32),
      NORMS(2, 4096, 32)},
     0,
     0,
     0,
     32 * 8 * (256 * 512 + 256 + 1)},
    {"openai-gpt", /* published: 116534784 */
     "{\"model_type\":\"openai-gpt\",\"architectures\":[\"OpenAIGPTLMHeadModel\"],\"n_embd\":768,\"n_layer\":12,"
     "\"n_head\":12,\"n_positions\":512,\"n_ctx\":512,\"vocab_size\":40478}",
     {EACH("tokens_embed", 40478, 768, 1), EACH("positions_embed", 512, 768, 1), EACH("c_attn", 3 * 768, 768 + 1, 12),
      EACH("attn.c_proj", 768, 768 + 1, 12), EACH("c_fc", 3072, 768 + 1, 12), EACH("mlp.c_proj", 768, 3072 + 1, 12),
      NORMS(4, 768, 12)},
     12 * 2 * 768,
     0,
     0,
     0},
    {"ctrl",
     "{\"model_type\":\"ctrl\",\"architectures\":[\"CTRLLMHeadModel\"],\"n_embd\":1280,\"n_layer\":48,\"n_head\":16,"
     "\"dff\":8192,\"n_positions\":50000,\"vocab_size\":246534}",
     {EACH("w", 246534, 1280, 1), EACH("layernorm", 2, 1280, 1), EACH("lm_head.bias", 1, 246534, 1),
      EACH("Wq, Wk, Wv, dense", 4 * 1280, 1280 + 1, 48), EACH("ffn.0", 8192, 1280 + 1, 48),
      EACH("ffn.2", 1280, 8192 + 1, 48), NORMS(4, 1280, 48)},
     48 * 2 * 1280,
     0,
     0,
     0},
    {"llava-onevision-qwen2, of one part", /* the tower and what joins it are not counted */
     "{\"model_type\":\"llava\",\"architectures\":[\"LlavaQwenForCausalLM\"],\"hidden_size\":44,"
     "\"num_hidden_layers\":5,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"intermediate_size\":37,"
     "\"vocab_size\":101,\"mm_vision_tower\":\"google/siglip-so400m-patch14-384\"}",
     {ENDS(101, 44), HEAD(101, 44), QKVO(44, 22, 44, 5), EACH("q, k, v bias", 1, 88, 5), GATED(44, 37, 5),
      NORMS(2, 44, 5)},
     5 * 44,
     0,
     0,
     0},
    {"iquest loop coder", /* a gate of each head and layer for the second time, which keeps a window */
     "{\"model_type\":\"iquestloopcoder\",\"hidden_size\":48,\"num_hidden_layers\":5,\"num_attention_heads\":6,"
     "\"num_key_value_heads\":2,\"head_dim\":8,\"intermediate_size\":37,\"vocab_size\":101,\"loop_num\":2,"
     "\"loop_window_size\":11}",
     {ENDS(101, 48), HEAD(101, 48), QKVO(48, 16, 48, 5), GATED(48, 37, 5), NORMS(2, 48, 5),
      EACH("gate_projections.weight", 6, 8, 5), EACH("gate_projections.bias", 1, 6, 5)},
     5 * 32,
     5 * 32,
     0,
     0},
};

static void test_tensors(void **state)
{
    (void)state;
    families_tensors(SUBJECTS, sizeof SUBJECTS / sizeof SUBJECTS[0]);
}

static void test_caches(void **state)
{
    (void)state;
    families_caches(SUBJECTS, sizeof SUBJECTS / sizeof SUBJECTS[0]);
}

/* Molmo's tower is its class's: with it the 7B-D is as large as published. */
static void test_tower(void **state)
{
    static const struct cost_conventions PLAIN = {0};
    static const struct subject D = {
        .model = "molmo-7b-d",
        .json = "{\"model_type\":\"molmo\",\"hidden_size\":3584,\"num_hidden_layers\":28,\"num_attention_heads\":28,"
                "\"num_key_value_heads\":4,\"intermediate_size\":37888,\"vocab_size\":152064,\"qkv_bias\":true,"
                "\"embedding_size\":152064,\"attention_layer_norm\":false}"};
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct cost_parameters p;
    const struct model m = families_read(a, &D);
    (void)state;
    assert_int_equal(cost_parameters(a, &m, &PLAIN, &p, &e), ERR_OK);
    assert_true(p.total + m.tower.params == 8021025280.0);
    assert_true(m.tower.tokens == 144.0); /* of a crop */
    arena_close(a);
}

#define STRIPED(heads, rest)                                                                                           \
    "{\"model_type\":\"phi3small\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":" heads          \
    ",\"num_key_value_heads\":2,\"ff_intermediate_size\":37,\"vocab_size\":101" rest "}"
#define PATTERN ",\"blocksparse_block_size\":5,\"blocksparse_num_local_blocks\":3,\"blocksparse_vert_stride\":4"

static void test_refused(void **state)
{
    static const struct refused CASES[] = {
        {STRIPED("6", PATTERN), "6 heads are no multiple of 4 stripes"},
        {STRIPED("8", PATTERN ",\"blocksparse_homo_head_pattern\":true"), "the same stripes of keys in all heads"},
        {STRIPED("8", ""), "blocksparse_block_size is missing"},
        {"{\"model_type\":\"openelm\",\"num_transformer_layers\":2,\"model_dim\":12,\"head_dim\":3,\"vocab_size\":7,"
         "\"num_query_heads\":[2,2],\"num_kv_heads\":[1],\"ffn_multipliers\":[1,2]}",
         "num_kv_heads"},
        {"{\"model_type\":\"llama\",\"hidden_size\":12,\"num_hidden_layers\":2,\"num_attention_heads\":3,"
         "\"intermediate_size\":7,\"vocab_size\":19,\"num_loops\":2}",
         "layers that run several times"},
    };
    (void)state;
    families_refused(CASES, sizeof CASES / sizeof CASES[0]);
}

/* A key block that a head sees: one of the last three, or one whose number and the head's give a multiple of four. */
static bool sees(int head, int query, int key)
{
    const int near = query / 5 - key / 5;
    return key <= query && (near < 3 || (key / 5 + head + 1) % 4 == 0);
}

/* Of 8 heads, 4 of each KV head or 2: pairs of all heads and keys of all KV heads, one by one. */
static void count_stripes(int kv_heads, int T, int S, double *pairs, double *keys)
{
    const int group = 8 / kv_heads;
    *pairs = *keys = 0;
    for (int g = 0; g < kv_heads; g++)
        for (int key = 0; key < S; key++) {
            bool any = false;
            for (int h = g * group; h < (g + 1) * group; h++)
                for (int q = S - T; q < S; q++) {
                    *pairs += sees(h, q, key);
                    any = any || sees(h, q, key);
                }
            *keys += any;
        }
}

/* The attention of layer 0, which is striped, in a pass. */
static const struct cost_op *striped(struct arena *a, struct sym_ctx *c, const struct model *m, int T, int S, int M)
{
    struct err e = {.code = ERR_OK};
    struct cost_ops *ops = arena_alloc(a, sizeof *ops);
    const struct cost_symbols y = cost_symbols_make(c);
    static const struct cost_conventions PLAIN = {0};
    const struct cost_layout l = {.layout = {.tp = 1}};
    const struct cost_pass pass = {
        .name = "pass", .B = sym_int(c, 1), .T = sym_int(c, T), .S = sym_int(c, S), .M = M ? sym_int(c, M) : NULL};
    assert_int_equal(cost_build_layout(a, c, &y, m, &PLAIN, &pass, &l, ops, &e), ERR_OK);
    assert_int_equal(cost_bind_layout(c, &y, m, &l, ops, &e), ERR_OK);
    for (size_t i = 0; i < ops->n; i++)
        if (strcmp(ops->op[i].name, "attention") == 0 && ops->op[i].kind_index == 0) return &ops->op[i];
    fail();
    return NULL;
}

static double number(const struct sym *x)
{
    double v = 0;
    assert_true(sym_constant(x, &v));
    return v;
}

static void test_stripes(void **state)
{
    static const int PASSES[][2] = {{1, 1},  {1, 5},   {1, 15},  {1, 16},  {1, 17},  {1, 59}, {1, 60},
                                    {7, 23}, {17, 17}, {61, 61}, {13, 97}, {40, 41}, {3, 18}, {5, 83}};
    static const char *const FILES[] = {
        STRIPED("8", PATTERN ",\"dense_attention_every_n_layers\":2"),
        "{\"model_type\":\"phi3small\",\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":8,"
        "\"num_key_value_heads\":4,\"ff_intermediate_size\":37,\"vocab_size\":101" PATTERN "}"};
    (void)state;
    for (int f = 0; f < 2; f++) {
        const int kv_heads = 2 << f;
        for (size_t i = 0; i < sizeof PASSES / sizeof PASSES[0]; i++) {
            struct arena *a = arena_open();
            struct sym_ctx *c = sym_open(a);
            const struct subject s = {.model = "striped", .json = FILES[f]};
            const struct model m = families_read(a, &s);
            const int T = PASSES[i][0], S = PASSES[i][1], H = 6;
            double pairs, keys, mean_pairs = 0, mean_keys = 0;
            count_stripes(kv_heads, T, S, &pairs, &keys);
            assert_string_equal(m.attention, f == 0 ? "GQA, 1/2 striped" : "GQA, 2/2 striped");
            const struct cost_op *op = striped(a, c, &m, T, S, 0);
            assert_true(number(op->flops) == 2.0 * 2 * H * pairs);
            /* on the mean over positions of the pattern: exactly so where whole groups of four blocks are far */
            const int far = (S - T) / 5 - 2;
            if (far <= 0 || far % 4 == 0 || kv_heads == 2) assert_true(number(op->kv_bytes) == 2.0 * 2 * H * keys);
            assert_true(number(op->kv_needed_bytes) == number(op->kv_bytes));
            for (int at = S - T + 1; at <= S; at++) { /* T decode steps, the last at S */
                count_stripes(kv_heads, 1, at, &pairs, &keys);
                mean_pairs += pairs / T;
                mean_keys += number(striped(a, c, &m, 1, at, 0)->kv_bytes) / T;
            }
            op = striped(a, c, &m, 1, S, T);
            assert_true(fabs(number(op->flops) - 2.0 * 2 * H * mean_pairs) <= 1e-9 * mean_pairs);
            assert_true(fabs(number(op->kv_bytes) - mean_keys) <= 1e-9 * mean_keys);
            arena_close(a);
        }
    }
}

/* Operators of a model whose layers run three times: a product of each layer each time, the norm behind all times or
 * the last alone, weights of the later times those of the first. */
static void test_loops(void **state)
{
    static const struct subject *const LOOPED[] = {&SUBJECTS[5], &SUBJECTS[6]};
    static const struct cost_conventions PLAIN = {0};
    (void)state;
    for (size_t f = 0; f < 2; f++) {
        struct arena *a = arena_open();
        struct sym_ctx *c = sym_open(a);
        struct err e = {.code = ERR_OK};
        struct cost_ops ops;
        const struct cost_symbols y = cost_symbols_make(c);
        const struct model m = families_read(a, LOOPED[f]);
        const struct cost_layout l = {.layout = {.tp = 1}};
        const struct cost_pass pass = {.name = "pass", .B = sym_int(c, 3), .T = sym_int(c, 1), .S = sym_int(c, 97)};
        assert_int_equal(cost_build_layout(a, c, &y, &m, &PLAIN, &pass, &l, &ops, &e), ERR_OK);
        int64_t down = 0, shared = 0, norms = 0;
        for (size_t i = 0; i < ops.n; i++) {
            const struct cost_op *op = &ops.op[i];
            if (strcmp(op->name, "down_proj") == 0) down += op->count;
            if (strcmp(op->name, "down_proj") == 0 && op->tensor[0].shared) shared += op->count;
            if (strcmp(op->name, "final_norm") == 0 || strcmp(op->name, "loop_norm") == 0) norms += op->count;
        }
        assert_int_equal(down, m.layers * m.loops);
        assert_int_equal(shared, m.layers * (m.loops - 1));
        assert_int_equal(norms, f == 0 ? 4 : 1);
        assert_string_equal(m.attention, f == 0 ? "MHA, 4 times" : "GQA, 3 times");
        assert_int_equal(m.order_n, m.layers * m.loops);
        assert_int_equal(m.order[m.layers].layer, 0);
        const struct cost_layout stages = {.layout = {.tp = 1, .pp = 2}};
        assert_int_equal(layout_check(&m, &stages.layout, &e), ERR_USAGE);
        assert_non_null(strstr(e.text, "share weights"));
        arena_close(a);
    }
}

/* Of 29 tokens the second time reads all of the first one's cache and the last 11 of its own. */
static void test_first_too(void **state)
{
    static const struct cost_conventions PLAIN = {0};
    const struct subject *s = &SUBJECTS[sizeof SUBJECTS / sizeof SUBJECTS[0] - 1];
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct err e = {.code = ERR_OK};
    struct cost_ops ops;
    const struct cost_symbols y = cost_symbols_make(c);
    const struct model m = families_read(a, s);
    const struct cost_layout l = {.layout = {.tp = 1}};
    const struct cost_pass pass = {.name = "pass", .B = sym_int(c, 3), .T = sym_int(c, 1), .S = sym_int(c, 29)};
    double first = 0, second = 0, again = 0, needed = 0, gates = 0;
    (void)state;
    assert_int_equal(cost_build_layout(a, c, &y, &m, &PLAIN, &pass, &l, &ops, &e), ERR_OK);
    assert_int_equal(cost_bind_layout(c, &y, &m, &l, &ops, &e), ERR_OK);
    for (size_t i = 0; i < ops.n; i++) {
        const struct cost_op *op = &ops.op[i];
        const double kv = (double)op->count * number(op->kv_bytes);
        if (strcmp(op->name, "attention") == 0) *(op->kind_index == 0 ? &first : &second) += kv;
        if (strcmp(op->name, "attention_first") == 0) again += kv;
        if (strcmp(op->name, "attention_first") == 0) needed += number(op->kv_needed_bytes);
        if (strcmp(op->name, "loop_gate") == 0) gates += (double)op->count * number(op->vector_flops);
    }
    assert_true(first == 5.0 * 3 * 29 * 32 * 2 && again == first && second == 5.0 * 3 * 11 * 32 * 2);
    assert_true(!(needed > 0));
    assert_true(gates == 5.0 * 3 * 6 * (2 * 8 + 4 + 3 * 8));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tensors),  cmocka_unit_test(test_caches),
                                       cmocka_unit_test(test_tower),    cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_stripes),  cmocka_unit_test(test_loops),
                                       cmocka_unit_test(test_first_too)};
    return cmocka_run_group_tests_name("families_further", tests, NULL, NULL);
}
