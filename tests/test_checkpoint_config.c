/* Checkpoints as models: files beside a config.json, whose safetensors are summed and never stand in its way, and what
 * does not fit together. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/checkpoint_writer.h"

static void put_llama(struct writer *w)
{
    begin(w, "llama");
    put_shape(w);
    pair(w, "feed_forward_length", F);
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_attention(w, i, 0);
        put_norms(w, i, 2);
        put_mlp(w, i, false);
    }
}

static void refused(const struct writer *w, const char *name, enum err_code code, const char *sentence)
{
    struct model m;
    struct err e = {0};
    const enum err_code got = model_load(w->arena, at(w, name), NULL, 0, &m, &e);
    if (got != code || !strstr(e.text, sentence))
        fail_msg("%s: %d \"%s\", wanted %d \"%s\"", name, (int)got, e.text, (int)code, sentence);
}

/* A config.json beside GGUF: its structure, stored as the tensors are; of another architecture only their bytes. */
static void test_gguf_beside_a_config(void **state)
{
    struct writer *w = *state;
    static const char CONFIG[] =
        "{\"model_type\":\"mamba\",\"hidden_size\":192,\"num_hidden_layers\":4,\"vocab_size\":1009,\"state_size\":32,"
        "\"time_step_rank\":12,\"conv_kernel\":4,\"expand\":2,\"torch_dtype\":\"bfloat16\"}";
    put_hybrid(w, "mamba", NULL);
    put_ssm(w, RANK, false);
    put_outside(w, true);
    for (int i = 0; i < BLOCKS; i++) {
        put_norms(w, i, 1);
        put_mamba(w, i, false);
    }
    finish(w);
    checkpoint_file(w->dir, "config.json", CONFIG, strlen(CONFIG), 0);
    struct model m = loaded(w, "config.json");
    const double bytes = weight_bytes(w->arena, &m);
    if (!(fabs(bytes - w->bytes) < 1e-3)) fail_msg("%.3f bytes of %.0f", bytes, w->bytes);
    assert_true(m.stored_bytes == w->bytes);
    assert_non_null(strstr(m.notes, "of GGUF, where the config says bf16: counted as stored"));
    begin(w, "rwkv7");
    put_outside(w, true);
    finish(w);
    m = loaded(w, "config.json");
    assert_non_null(strstr(m.notes, "is counted by its bytes alone"));
    assert_true(m.stored_bytes == w->bytes);
    assert_true(m.weights[WEIGHT_MIXER].bits > 15);
}

static void test_what_a_gguf_must_say(void **state)
{
    struct writer *w = *state;
    begin(w, "wavtokenizer");
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "general.architecture \"wavtokenizer\" is one whose metadata ridge does not read");
    refused(w, "m.gguf", ERR_INPUT, "with the model's config.json beside it");
    begin(w, "llama");
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "no matrix token_embd.weight");
    put_outside(w, false);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "llama.block_count is missing");
    pair(w, "block_count", L);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "hidden_size is missing");
    begin(w, "llama");
    put_outside(w, false);
    put_shape(w);
    pair_list(w, "feed_forward_length", META_I32, 2, (const uint32_t[]){FE, F});
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "llama.feed_forward_length is 96 in one layer and 352 in another");
    begin(w, "llama"); /* fewer blocks than it says, one beyond them, another width */
    put_outside(w, false);
    put_shape(w);
    layer(w, F32, 0, 3, 7, "blk.%d.attn_q.weight", 0);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "and 1 blocks have tensors");
    layer(w, F32, 0, 3, 7, "blk.%d.attn_q.weight", L);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, arena_printf(w->arena, "block_count is %d, and block %d has tensors", L, L));
    begin(w, "llama");
    tensor(w, "token_embd.weight", F32, 0, 101, 53);
    put_shape(w);
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "but rows of token_embd.weight have 53");
    checkpoint_pair_u32(&w->pairs, "general.architecture", 7);
    w->pairs_n++;
    finish(w);
    refused(w, "m.gguf", ERR_INPUT, "is there twice");
    refused(w, "none.gguf", ERR_IO, "cannot open");
}

static void test_settings_change_a_gguf(void **state)
{
    struct writer *w = *state;
    put_llama(w);
    const struct model plain = explained(w, "llama");
    const struct model_setting set = {"L", "2"};
    struct model m;
    struct err e = {0};
    assert_int_equal(model_load(w->arena, at(w, "m.gguf"), &set, 1, &m, &e), ERR_OK);
    assert_int_equal(m.layers, 2);
    assert_true(isnan(m.stored_bytes));
    assert_true(m.weights[WEIGHT_FFN].bits == plain.weights[WEIGHT_FFN].bits);
    assert_string_not_equal(m.hash, plain.hash);
    const struct model folder = loaded(w, "");
    assert_string_equal(folder.hash, plain.hash);
    assert_true(folder.stored_bytes == plain.stored_bytes);
}

static const char CONFIG[] = "{\"model_type\":\"llama\",\"hidden_size\":7,\"num_hidden_layers\":1,\"vocab_size\":11,"
                             "\"num_attention_heads\":1,\"intermediate_size\":13,\"tie_word_embeddings\":true}";

static void test_safetensors_beside_a_config(void **state)
{
    struct writer *w = *state;
    checkpoint_file(w->dir, "config.json", CONFIG, sizeof CONFIG - 1, 0);
    struct model m = loaded(w, "");
    assert_true(isnan(m.stored_bytes) && isnan(m.stored_elems));
    assert_null(m.notes);
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"BF16\",\"shape\":[17,19],\"data_offsets\":[0,646]}}", 646);
    for (int i = 0; i < 2; i++) {
        m = loaded(w, i ? "config.json" : "");
        assert_true(m.stored_bytes == 646);
        assert_true(m.stored_elems == 323);
        assert_true(m.stored_plain);
        assert_string_equal(m.notes, "the checkpoint's one tensor is no matrix that the config describes");
    }
    const struct model_setting set = {"L", "2"};
    struct err e = {0};
    assert_int_equal(model_load(w->arena, w->dir, &set, 1, &m, &e), ERR_OK);
    assert_true(isnan(m.stored_bytes));
    /* packed */
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"U8\",\"shape\":[17,19],\"data_offsets\":[0,323]}}", 323);
    m = loaded(w, "");
    assert_true(m.stored_bytes == 323);
    assert_false(m.stored_plain);
    /* one that lies is refused, and named */
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"U8\",\"shape\":[17,19],\"data_offsets\":[0,323]}}", 322);
    assert_int_equal(model_load(w->arena, w->dir, NULL, 0, &m, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "model.safetensors: ends 1 bytes before"));
    checkpoint_safetensors(w->dir, "model.safetensors",
                           "{\"x\":{\"dtype\":\"U8\",\"shape\":[17,19],\"data_offsets\":[0,323]}}", 323);
    /* an index alone */
    static const char INDEX[] = "{\"metadata\":{\"total_size\":647.0},\"weight_map\":{\"x\":\"s.safetensors\"}}";
    checkpoint_file(w->dir, "model.safetensors.index.json", INDEX, sizeof INDEX - 1, 0);
    m = loaded(w, "");
    assert_true(m.stored_bytes == 647);
    assert_true(isnan(m.stored_elems));
    assert_non_null(strstr(m.notes, "only an index was read"));
}

/* The same number of elements under other names, in other layers, or of other sides. */
static void test_tensors_of_another_model(void **state)
{
    struct writer *w = *state;
    static const char LLAMA[] = "{\"model_type\":\"llama\",\"hidden_size\":7,\"num_hidden_layers\":2,\"vocab_size\":11,"
                                "\"num_attention_heads\":1,\"intermediate_size\":13,\"tie_word_embeddings\":true}",
                      LFM2[] = "{\"model_type\":\"lfm2\",\"hidden_size\":7,\"num_hidden_layers\":2,\"vocab_size\":11,"
                               "\"num_attention_heads\":1,\"num_key_value_heads\":1,\"intermediate_size\":13,"
                               "\"block_auto_adjust_ff_dim\":false,\"layer_types\":[\"conv\",\"full_attention\"]}",
                      MAMBA[] = "{\"model_type\":\"mamba\",\"hidden_size\":7,\"num_hidden_layers\":2,\"vocab_size\":11,"
                                "\"state_size\":3,\"time_step_rank\":2,\"expand\":2}";
    static const struct {
        const char *config, *name;
        int rows, columns;
        const char *note; /* NULL: none of these */
    } CASES[] = {
        {LLAMA, "model.layers.1.self_attn.q_proj.weight", 7, 7, NULL},
        {LLAMA, "model.layers.7.self_attn.q_proj.weight", 7, 7, "behind the last one of the config (1)"},
        {LLAMA, "base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight", 7, 7, "one tensor is no matrix"},
        {LLAMA, "model.embed_tokens.weight", 12, 7,
         "tensor model.embed_tokens.weight is 12 x 7, the config explains 11"},
        {LFM2, "model.layers.1.self_attn.out_proj.weight", 7, 7, NULL},
        {LFM2, "model.layers.0.self_attn.out_proj.weight", 7, 7,
         "1 stand in layers where the config has none of that name, such as model.layers.0.self_attn.out_proj.weight"},
        {LFM2, "model.layers.0.conv.in_proj.weight", 22, 7, "is 22 x 7, the config explains 21 x 7"},
        {MAMBA, "backbone.layers.0.mixer.in_proj.weight", 28, 7, NULL},
        {MAMBA, "backbone.layers.0.mixer.x_proj.weight", 9, 14, "is 9 x 14, the config explains 8 x 14"},
        {MAMBA, "backbone.layers.0.mixer.A_log", 14, 5, "is 14 x 5, the config explains 14 x 3"},
        {MAMBA, "model.layers.0.self_attn.q_proj.weight", 7, 7, "one tensor is no matrix"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const int bytes = 2 * CASES[i].rows * CASES[i].columns;
        const char *header =
            arena_printf(w->arena, "{\"%s\":{\"dtype\":\"BF16\",\"shape\":[%d,%d],\"data_offsets\":[0,%d]}}",
                         CASES[i].name, CASES[i].rows, CASES[i].columns, bytes);
        checkpoint_file(w->dir, "config.json", CASES[i].config, strlen(CASES[i].config), 0);
        checkpoint_safetensors(w->dir, "model.safetensors", header, bytes);
        const struct model m = loaded(w, "");
        if (CASES[i].note ? !m.notes || !strstr(m.notes, CASES[i].note) : m.notes != NULL)
            fail_msg("%s: %s", CASES[i].name, m.notes ? m.notes : "no note");
    }
    checkpoint_safetensors(w->dir, "model.safetensors", "{}", 0);
    const struct model m = loaded(w, "");
    assert_non_null(strstr(m.notes, "the checkpoint holds no tensors"));
}

/* A llama whose metadata says one size other than its tensors have, as GGUF; the note that must come of it. */
static void disagrees(struct writer *w, const char *key, uint32_t says, const char *arch, const char *note)
{
    static const struct {
        const char *key;
        uint32_t v;
    } PAIRS[] = {{"block_count", L},          {"embedding_length", D},
                 {"attention.head_count", N}, {"attention.head_count_kv", K},
                 {"attention.key_length", H}, {"attention.value_length", H},
                 {"feed_forward_length", F},  {"expert_count", E},
                 {"expert_used_count", TOP},  {"expert_feed_forward_length", FE}};
    const bool experts = strcmp(arch, "qwen3moe") == 0;
    const bool heads = strcmp(key, "attention.key_length") == 0; /* keys and values have one width */
    begin(w, arch);
    for (size_t i = 0; i < (experts ? 10 : 7); i++) {
        const bool also = heads && strcmp(PAIRS[i].key, "attention.value_length") == 0;
        pair(w, PAIRS[i].key, also || strcmp(PAIRS[i].key, key) == 0 ? says : PAIRS[i].v);
    }
    put_outside(w, false);
    for (int i = 0; i < L; i++) {
        put_attention(w, i, experts ? QK_NORM : 0);
        put_norms(w, i, 2);
        if (experts)
            put_experts(w, i, FE);
        else
            put_mlp(w, i, false);
    }
    finish(w);
    const struct model m = loaded(w, "m.gguf");
    if (!note) {
        if (m.notes) fail_msg("%s %s: %s", arch, key, m.notes);
        return;
    }
    if (!m.notes || !strstr(m.notes, note))
        fail_msg("%s %u: \"%s\", wanted \"%s\"", key, says, m.notes ? m.notes : "", note);
}

static void test_widths_of_a_gguf(void **state)
{
    struct writer *w = *state;
    disagrees(w, "", 0, "llama", NULL);
    disagrees(w, "", 0, "qwen3moe", NULL);
    disagrees(w, "feed_forward_length", 384, "llama",
              "tensor blk.0.ffn_gate.weight is 352 x 192, the config explains 384 x 192, and 8 more");
    disagrees(w, "attention.head_count_kv", 3, "llama",
              "tensor blk.0.attn_k.weight is 128 x 192, the config explains 192 x 192, and 5 more");
    disagrees(w, "attention.head_count", 8, "llama",
              "tensor blk.0.attn_q.weight is 384 x 192, the config explains 512 x 192, and 5 more");
    disagrees(w, "attention.key_length", 32, "llama",
              "tensor blk.0.attn_q.weight is 384 x 192, the config explains 192 x 192, and 11 more");
    disagrees(w, "expert_feed_forward_length", 64, "qwen3moe",
              "tensor blk.0.ffn_gate_exps.weight is 7 x 96 x 192, the config explains 7 x 64 x 192, and 8 more");
    disagrees(w, "expert_count", 5, "qwen3moe",
              "tensor blk.0.ffn_gate_exps.weight is 7 x 96 x 192, the config explains 5 x 96 x 192, and 8 more");
}

/* The same of safetensors; what is packed, of no layer or beyond the last one is not held against the config. */
static void test_widths_of_safetensors(void **state)
{
    struct writer *w = *state;
    static const struct {
        const char *name, *type, *shape;
        int bytes;
        const char *note;
    } FILES[] = {
        {"model.layers.0.mlp.up_proj.weight", "BF16", "13,7", 182, NULL},
        {"model.layers.0.mlp.up_proj.weight", "BF16", "12,7", 168,
         "tensor model.layers.0.mlp.up_proj.weight is 12 x 7, the config explains 13 x 7"},
        {"model.layers.0.mlp.down_proj.weight", "F8_E4M3", "7,11", 77,
         "tensor model.layers.0.mlp.down_proj.weight is 7 x 11, the config explains 7 x 13"},
        {"model.layers.0.self_attn.o_proj.weight", "BF16", "7,5", 70,
         "tensor model.layers.0.self_attn.o_proj.weight is 7 x 5, the config explains 7 x 7"},
        {"model.layers.1.mlp.up_proj.weight", "BF16", "12,7", 168, NULL},
        {"mtp.layers.0.mlp.up_proj.weight", "BF16", "12,7", 168, NULL},
        {"model.layers.0.mlp.up_proj.weight", "U8", "12,7", 84, NULL},
    };
    checkpoint_file(w->dir, "config.json", CONFIG, sizeof CONFIG - 1, 0);
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        const char *header =
            arena_printf(w->arena, "{\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[0,%d]}}", FILES[i].name,
                         FILES[i].type, FILES[i].shape, FILES[i].bytes);
        checkpoint_safetensors(w->dir, "model.safetensors", header, FILES[i].bytes);
        const struct model m = loaded(w, "");
        const bool said = m.notes && strstr(m.notes, "the config explains");
        if (FILES[i].note ? !said || !strstr(m.notes, FILES[i].note) : said)
            fail_msg("%zu: %s", i, m.notes ? m.notes : "nothing");
    }
}

/* A config of no known family beside one layer's tensors: the family of such tensors is named, and no other. */
static void test_family_of_safetensors(void **state)
{
    struct writer *w = *state;
    static const char OTHER[] =
        "{\"model_type\":\"qzz\",\"hidden_size\":8,\"num_hidden_layers\":1,\"vocab_size\":11,\"num_attention_heads\":2,"
        "\"num_key_value_heads\":1,\"head_dim\":4,\"intermediate_size\":13,\"tie_word_embeddings\":true}";
    enum { LAYER = 1 << 0, Q_NORMS = 1 << 1, BIASES = 1 << 2, ODD = 1 << 3, BEHIND = 1 << 4 };
    static const struct {
        const char *name, *shape;
        int elems;
        unsigned in;
    } TENSORS[] = {
        {"model.embed_tokens.weight", "11,8", 88, LAYER},
        {"model.norm.weight", "8", 8, LAYER},
        {"model.layers.0.input_layernorm.weight", "8", 8, LAYER},
        {"model.layers.0.post_attention_layernorm.weight", "8", 8, LAYER},
        {"model.layers.0.self_attn.q_proj.weight", "8,8", 64, LAYER},
        {"model.layers.0.self_attn.k_proj.weight", "4,8", 32, LAYER},
        {"model.layers.0.self_attn.v_proj.weight", "4,8", 32, LAYER},
        {"model.layers.0.self_attn.o_proj.weight", "8,8", 64, LAYER},
        {"model.layers.0.mlp.gate_proj.weight", "13,8", 104, LAYER},
        {"model.layers.0.mlp.up_proj.weight", "13,8", 104, LAYER},
        {"model.layers.0.mlp.down_proj.weight", "8,13", 104, LAYER},
        {"model.layers.0.self_attn.q_norm.weight", "4", 4, Q_NORMS},
        {"model.layers.0.self_attn.k_norm.weight", "4", 4, Q_NORMS},
        {"model.layers.0.self_attn.q_proj.bias", "8", 8, BIASES},
        {"model.layers.0.self_attn.k_proj.bias", "4", 4, BIASES},
        {"model.layers.0.self_attn.v_proj.bias", "4", 4, BIASES},
        {"model.layers.0.mlp.odd.weight", "3", 3, ODD},
        {"model.layers.1.input_layernorm.weight", "8", 8, BEHIND},
    };
    static const struct {
        unsigned has;
        const char *family; /* NULL: none is like them */
    } CASES[] = {
        {LAYER, "llama"},    {LAYER | Q_NORMS, "qwen3"}, {LAYER | BIASES, "qwen2"},
        {LAYER | ODD, NULL}, {LAYER | BEHIND, "llama"}, /* of a layer behind the last */
    };
    checkpoint_file(w->dir, "config.json", OTHER, sizeof OTHER - 1, 0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct err e = {0};
        struct model m;
        const char *header = "";
        int at = 0;
        for (size_t t = 0; t < sizeof TENSORS / sizeof TENSORS[0]; t++) {
            if (!(CASES[i].has & TENSORS[t].in)) continue;
            header = arena_printf(w->arena, "%s%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%s],\"data_offsets\":[%d,%d]}",
                                  header, *header ? "," : "", TENSORS[t].name, TENSORS[t].shape, at,
                                  at + 2 * TENSORS[t].elems);
            at += 2 * TENSORS[t].elems;
        }
        checkpoint_safetensors(w->dir, "model.safetensors", arena_printf(w->arena, "{%s}", header), at);
        assert_int_equal(model_load(w->arena, w->dir, NULL, 0, &m, &e), ERR_INPUT);
        const char *said = strstr(e.text, "the tensors beside it are those of the ");
        if (!CASES[i].family) {
            if (said) fail_msg("%zu: %s", i, e.text);
            continue;
        }
        const char *want =
            arena_printf(w->arena, "those of the %s family: --set model_type=%s", CASES[i].family, CASES[i].family);
        if (!said || !strstr(said, want)) fail_msg("%zu: %s", i, e.text);
    }
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, open_writer, close_writer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_gguf_beside_a_config),     RUN(test_what_a_gguf_must_say),        RUN(test_settings_change_a_gguf),
        RUN(test_tensors_of_another_model), RUN(test_safetensors_beside_a_config), RUN(test_widths_of_a_gguf),
        RUN(test_widths_of_safetensors),    RUN(test_family_of_safetensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
