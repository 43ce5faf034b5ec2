/* Models against published counts: the built-in files against their own "ridge.total_params" (each with its source),
 * and the real config.json files of ../shared against models/truth.csv. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/base/embed.h"
#include "calc/cost/cost.h"
#include "calc/model/family.h"
#include "calc/model/model.h"
#include "tests/csv.h"

static const struct cost_conventions PLAIN = {0};

static struct cost_parameters count(struct arena *a, const struct model *m)
{
    struct cost_parameters p = {0};
    struct err e = {0};
    if (cost_parameters(a, m, &PLAIN, &p, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    return p;
}

/* Cached bytes per token in bf16, and bytes of state, whole model. */
static struct cost_cache cache_of(struct arena *a, struct model m)
{
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    struct cost_cache cache;
    assert_int_equal(dtype_find("bf16", &m.kv, &e), ERR_OK);
    if (cost_cache(c, &y, &m, 1, &cache, &e) != ERR_OK) fail_msg("%s: %s", m.name, e.text);
    return cache;
}

static void test_builtin_totals_equal_their_published_count(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *const *names;
    const size_t n = model_builtins(a, &names);
    assert_true(n >= 25);
    for (size_t i = 0; i < n; i++) {
        struct err e = {0};
        struct model m;
        struct json j, stated;
        double want;
        char path[160];
        if (model_load(a, names[i], NULL, 0, &m, &e) != ERR_OK) fail_msg("%s: %s", names[i], e.text);
        (void)snprintf(path, sizeof path, "configs/models/%s.json", names[i]);
        const struct embed_file *f = embed_find(path);
        assert_non_null(f);
        assert_int_equal(json_parse(a, path, (const char *)f->bytes, f->size, &j, &e), ERR_OK);
        assert_true(json_get(&j, "ridge.total_params", &stated));
        assert_int_equal(json_num(&stated, &want, &e), ERR_OK);
        assert_true(json_get(&j, "ridge.source", &stated));
        const double got = count(a, &m).total;
        if (got != want) fail_msg("%s: %.0f parameters, published %.0f", names[i], got, want);
    }
    arena_close(a);
}

/* Empty cells say nothing. */
static bool agrees(double got, double stated) { return isnan(stated) || got == stated; }

/* Rows of the families ridge knows whose note says that the file alone does not determine the count. */
static bool undetermined(const char *note) { return strstr(note, "NOT reproducible from this config alone") != NULL; }

static void test_truth_table(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static struct csv t;
    if (!csv_open(&t, csv_shared(a, "models/truth.csv"))) {
        arena_close(a);
        skip();
    }
    size_t checked = 0, stateful = 0, refused = 0, wrong = 0;
    while (csv_next(&t)) {
        struct err e = {0};
        struct model m;
        char file[256];
        (void)snprintf(file, sizeof file, "models/configs/%s", csv_get(&t, "source_file"));
        const enum err_code code = model_load(a, csv_shared(a, file), NULL, 0, &m, &e);
        if (code != ERR_OK) {
            assert_int_equal(code, ERR_INPUT); /* other families: refused, never guessed */
            refused++;
            continue;
        }
        const double total = csv_num(&t, "total_params"), active = csv_num(&t, "active_params");
        const double state_bytes = csv_num(&t, "state_bytes_per_sequence");
        if ((isnan(total) && isnan(state_bytes)) || undetermined(csv_get(&t, "notes"))) continue;
        const struct cost_parameters p = count(a, &m);
        const struct cost_cache c = cache_of(a, m);
        const bool ok = agrees(p.total, total) && agrees(p.active, active) &&
                        agrees(c.bytes_per_token_full, csv_num(&t, "kv_bytes_per_token_full_bf16")) &&
                        agrees(c.bytes_per_token_windowed, csv_num(&t, "kv_bytes_per_token_windowed_bf16")) &&
                        c.state_bytes_per_sequence == (isnan(state_bytes) ? 0 : state_bytes);
        checked++;
        stateful += c.state_bytes_per_sequence > 0;
        if (ok) continue;
        wrong++;
        print_message("%s: total %.0f (%.0f) active %.0f (%.0f) kv %.0f+%.0f (%s+%s) state %.0f (%.0f)\n", m.name,
                      p.total, total, p.active, active, c.bytes_per_token_full, c.bytes_per_token_windowed,
                      csv_get(&t, "kv_bytes_per_token_full_bf16"), csv_get(&t, "kv_bytes_per_token_windowed_bf16"),
                      c.state_bytes_per_sequence, state_bytes);
    }
    csv_close(&t);
    print_message("truth.csv: %zu rows equal, %zu of them with a state, %zu of other families refused, %zu wrong\n",
                  checked - wrong, stateful, refused, wrong);
    assert_int_equal(wrong, 0);
    assert_true(checked >= 110 && stateful >= 20);
    arena_close(a);
}

/* ---- stored bytes ---- */

static double stored(struct arena *a, const struct model *m)
{
    struct err e = {0};
    struct sym_ctx *c = sym_open(a);
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    struct cost_ops ops;
    double v = 0;
    if (cost_build(a, c, &y, m, &PLAIN, &pass, 1, &ops, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    if (cost_bind(c, &y, m, 1, &ops, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    assert_true(sym_constant(cost_weight_bytes(c, &ops, &PLAIN), &v));
    return v;
}

/* What a checkpoint holds beside the model that its row describes, in bytes: from the row's own columns and notes. */
static double beside(const struct csv *t, double v, double D)
{
    static const struct {
        const char *model;
        double bytes;
    } BUFFERS[] = {
        /* inv_freq of rotary embeddings: elements of the published totals that are no parameters, traps E */
        {"ehartford/Wizard-Vicuna-30B-Uncensored", 4.0 * 60 * 64},
        {"meta-llama/Llama-2-13b-chat-hf", 2.0 * 40 * 64},
        {"meta-llama/Llama-2-70b-hf", 2.0 * 80 * 64},
        {"THUDM/chatglm2-6b", 2.0 * 32},
        /* masks of 2048 x 2048 bits, masked_bias and inv_freq of 32 layers */
        {"togethercomputer/RedPajama-INCITE-7B-Base", 32.0 * (2048.0 * 2048 / 8 + 2 + 128)},
        /* states of bitsandbytes, JSON text for each of 280 matrices whose length depends on a number in it */
        {"IrfanUruchi/Llama-2-13B-bnb4", 352683 - 280 * 1088},
    };
    const char *name = csv_get(t, "model");
    double sum = 2 * csv_num(t, "params_vision_audio");
    for (size_t i = 0; i < sizeof BUFFERS / sizeof BUFFERS[0]; i++)
        if (strcmp(BUFFERS[i].model, name) == 0) sum += BUFFERS[i].bytes;
    /* a layer for multi-token prediction: one more layer (read as such), embedding and head once more, a projection of
     * [2D, D] and three norms, none of them quantised */
    if (csv_num(t, "params_mtp") > 0) sum += 2 * (2 * v * D + 2 * D * D + 3 * D);
    return sum;
}

/* Checkpoints whose bytes someone published, or whose elements by type add up to a published count. */
static void test_stored_bytes(void **state)
{
    static const char *const EVIDENCE[] = {"index", "fp8", "mxfp4", "published"};
    (void)state;
    struct arena *a = arena_open();
    static struct csv t;
    if (!csv_open(&t, csv_shared(a, "models/truth.csv"))) {
        arena_close(a);
        skip();
    }
    size_t equal = 0, refused = 0, wrong = 0;
    while (csv_next(&t)) {
        struct err e = {0};
        struct model m;
        char file[256], more[16];
        bool evident = false;
        for (size_t i = 0; i < sizeof EVIDENCE / sizeof EVIDENCE[0]; i++)
            evident = evident || strstr(csv_get(&t, "weight_bytes_basis"), EVIDENCE[i]);
        const double want = csv_num(&t, "weight_bytes"), layers = csv_num(&t, "n_layers");
        if (!evident || isnan(want)) continue;
        (void)snprintf(file, sizeof file, "models/configs/%s", csv_get(&t, "source_file"));
        (void)snprintf(more, sizeof more, "%.0f", layers + (csv_num(&t, "params_mtp") > 0 ? 1 : 0));
        const struct model_setting set = {"L", more};
        if (model_load(a, csv_shared(a, file), &set, 1, &m, &e) != ERR_OK || m.weights_unknown) {
            refused++; /* a family or format that is not described */
            print_message("%s: %s\n", csv_get(&t, "model"), e.code != ERR_OK ? e.text : m.weights_unknown);
            continue;
        }
        const double got = stored(a, &m) + beside(&t, (double)m.vocab, (double)m.hidden);
        if (got == want) {
            equal++;
            continue;
        }
        wrong++;
        print_message("%s: %.0f bytes, published %.0f\n", csv_get(&t, "model"), got, want);
    }
    csv_close(&t);
    print_message("stored bytes: %zu checkpoints equal, %zu refused, %zu wrong\n", equal, refused, wrong);
    assert_int_equal(wrong, 0);
    assert_true(equal >= 34);
    arena_close(a);
}

/* A built-in file as a document that a test may change. */
static struct json document(struct arena *a, const char *name)
{
    struct err e = {0};
    struct json j = {0};
    const char *path = arena_printf(a, "configs/models/%s.json", name);
    const struct embed_file *f = embed_find(path);
    assert_non_null(f);
    assert_int_equal(json_parse(a, path, (const char *)f->bytes, f->size, &j, &e), ERR_OK);
    return j;
}

static enum err_code parse_changed(struct arena *a, const char *name, const char *key, const char *value, bool drop,
                                   struct model *m, struct err *e)
{
    struct json j = document(a, name);
    if (drop)
        assert_true(json_drop(&j, key));
    else
        assert_int_equal(json_override(&j, key, value, e), ERR_OK);
    return model_parse(a, &j, m, e);
}

/* A mixture of experts without its number of experts is refused: priced as dense it would be 3 to 18 times too small.
 */
static void test_experts_without_their_number_are_refused(void **state)
{
    static const char *const CASES[][2] = {{"qwen3-30b-a3b", "num_experts"},
                                           {"qwen1.5-moe-a2.7b", "num_experts"},
                                           {"gpt-oss-20b", "num_local_experts"},
                                           {"deepseek-v2-lite", "n_routed_experts"},
                                           {"deepseek-v3", "n_routed_experts"}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct model m;
        assert_int_equal(parse_changed(a, CASES[i][0], CASES[i][1], NULL, true, &m, &e), ERR_INPUT);
        assert_int_equal(parse_changed(a, CASES[i][0], CASES[i][1], "null", false, &m, &e), ERR_INPUT);
        assert_int_equal(parse_changed(a, CASES[i][0], CASES[i][1], "0", false, &m, &e), ERR_INPUT);
        arena_close(a);
    }
}

/* An absent key is the class default, null is "derive it" (Hugging Face transformers, configuration_*.py). */
static void test_absent_keys_are_class_defaults_and_null_is_not(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    assert_int_equal(parse_changed(a, "mistral-7b-v0.1", "sliding_window", NULL, true, &m, &e), ERR_OK);
    assert_int_equal(m.kinds[0].mixer.window_tokens, 4096);
    assert_int_equal(parse_changed(a, "mistral-7b-v0.1", "sliding_window", "null", false, &m, &e), ERR_OK);
    assert_int_equal(m.kinds[0].mixer.window_tokens, 0);
    assert_int_equal(parse_changed(a, "deepseek-v3", "q_lora_rank", NULL, true, &m, &e), ERR_OK);
    assert_int_equal(m.kinds[0].mixer.q_rank, 1536);
    assert_int_equal(parse_changed(a, "deepseek-v3", "q_lora_rank", "null", false, &m, &e), ERR_OK);
    assert_int_equal(m.kinds[0].mixer.q_rank, 0);
    assert_int_equal(parse_changed(a, "qwen3-30b-a3b", "num_key_value_heads", NULL, true, &m, &e), ERR_OK);
    assert_int_equal(m.kinds[0].mixer.kv_heads, 4);
    assert_int_equal(parse_changed(a, "gpt-oss-20b", "num_key_value_heads", NULL, true, &m, &e), ERR_OK);
    assert_int_equal(m.kinds[0].mixer.kv_heads, 8);
    assert_int_equal(parse_changed(a, "gpt-oss-20b", "attention_bias", NULL, true, &m, &e), ERR_OK);
    assert_true(m.kinds[0].mixer.qkv_bias && m.kinds[0].mixer.o_bias);
    assert_int_equal(parse_changed(a, "qwen2-7b", "use_sliding_window", "true", false, &m, &e), ERR_OK);
    arena_close(a);
}

/* Lists of modules that stay in full precision; where they cut through a class, it keeps the format of the rest. */
static void test_modules_kept_in_full_precision(void **state)
{
    static const struct {
        const char *quantization;
        const char *mixer, *ffn; /* formats; NULL: not priced */
    } CASES[] = {
        {"{\"quant_method\": \"fp8\"}", "fp8", "fp8"},
        {"{\"quant_method\": \"fp8\", \"modules_to_not_convert\": [\"mlp\", \"lm_head\"]}", "fp8", "bf16"},
        {"{\"quant_method\": \"fp8\", \"ignored_layers\": [\"model.layers.*.self_attn\"]}", "bf16", "fp8"},
        {"{\"quant_method\": \"fp8\", \"ignored_layers\": [\"model.layers.0.self_attn.q_proj\"]}", "fp8", "fp8"},
        {"{\"quant_method\": \"fp8\", \"ignored_layers\": [\"model.layers.0.self_attn\"]}", "fp8", "fp8"},
        {"{\"quant_method\": \"fp8\", \"ignored_layers\": [\"model.layers.0.input_layernorm\", \"lm_head\"]}", "fp8",
         "fp8"},
        {"{\"quant_method\": \"bitsandbytes\", \"load_in_8bit\": true, \"llm_int8_skip_modules\": [\"lm_head\", "
         "\"down_proj\"]}",
         "llm-int8", "llm-int8"},
        {"{\"quant_method\": \"mxfp4\"}", NULL, NULL},
        {"{}", NULL, NULL},
        {"{\"bits\": 4, \"group_size\": 64}", "mlx4-g64", "mlx4-g64"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct model m;
        if (parse_changed(a, "llama-3.1-8b", "quantization_config", CASES[i].quantization, false, &m, &e) != ERR_OK)
            fail_msg("%s: %s", CASES[i].quantization, e.text);
        if (!CASES[i].mixer) {
            assert_non_null(m.weights_unknown);
        } else {
            if (m.weights_unknown) fail_msg("%s: %s", CASES[i].quantization, m.weights_unknown);
            assert_string_equal(m.weights[WEIGHT_MIXER].name, CASES[i].mixer);
            assert_string_equal(m.weights[WEIGHT_FFN].name, CASES[i].ffn);
            assert_string_equal(m.weights[WEIGHT_ROUTER].name, i == 9 ? "mlx4-g64" : "bf16");
        }
        arena_close(a);
    }
}

/* Which layers attend must be said in full, and what a family does not describe is refused. */
static void test_hybrids_that_cannot_be_known_are_refused(void **state)
{
    static const struct {
        const char *model, *key, *value; /* value NULL: dropped */
    } CASES[] = {{"minimax-m1-80k", "attn_type_list", NULL},
                 {"minimax-m1-80k", "attn_type_list", "[0, 1]"},
                 {"minimax-m1-80k", "num_hidden_layers", "79"},
                 {"nemotron-nano-9b-v2", "hybrid_override_pattern", "\"M-M-\""},
                 {"nemotron-nano-9b-v2", "hybrid_override_pattern", NULL},
                 {"nemotron-nano-9b-v2", "n_groups", "7"},
                 {"granite-4.0-h-small", "layer_types", NULL},
                 {"kimi-linear-48b-a3b", "linear_attn_config", NULL},
                 {"kimi-linear-48b-a3b", "num_hidden_layers", "28"},
                 {"recurrentgemma-2b", "_block_types", "[\"recurrent\", \"fourier\"]"},
                 {"recurrentgemma-2b", "_block_types", "[]"},
                 {"recurrentgemma-2b", "lru_width", "2561"},
                 {"zamba2-7b", "layers_block_type", NULL},
                 {"zamba2-7b", "use_shared_attention_lora", "true"},
                 {"lfm2-1.2b", "full_attn_idxs", NULL},
                 {"lfm2-1.2b", "full_attn_idxs", "[2, 2]"},
                 {"lfm2-1.2b", "full_attn_idxs", "[16]"},
                 {"jamba-1.5-mini", "attn_layer_offset", "8"},
                 {"qwen3.5-27b", "text_config.mamba_ssm_dtype", "\"int7\""}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct arena *a = arena_open();
        struct err e = {0};
        struct model m;
        struct json j = document(a, CASES[i].model), part = j;
        const char *dot = strchr(CASES[i].key, '.');
        const char *key = dot ? dot + 1 : CASES[i].key;
        if (dot) assert_true(json_get(&j, "text_config", &part));
        if (!CASES[i].value)
            assert_true(json_drop(&part, key));
        else
            assert_int_equal(json_override(&part, key, CASES[i].value, &e), ERR_OK);
        if (model_parse(a, &j, &m, &e) != ERR_INPUT) fail_msg("%s %s: not refused", CASES[i].model, CASES[i].key);
        arena_close(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_totals_equal_their_published_count),
        cmocka_unit_test(test_truth_table),
        cmocka_unit_test(test_stored_bytes),
        cmocka_unit_test(test_experts_without_their_number_are_refused),
        cmocka_unit_test(test_absent_keys_are_class_defaults_and_null_is_not),
        cmocka_unit_test(test_modules_kept_in_full_precision),
        cmocka_unit_test(test_hybrids_that_cannot_be_known_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
