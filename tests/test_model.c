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

/* All modules of multi-token prediction. */
static double count_mtp(struct arena *a, const struct model *m)
{
    struct model module;
    return model_mtp(m, &module) ? (double)m->mtp.modules * count(a, &module).total : 0;
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
        if (json_get(&j, "ridge.tower_params", &stated)) {
            double tower;
            assert_int_equal(json_num(&stated, &tower, &e), ERR_OK);
            if (m.tower.params != tower) fail_msg("%s: tower %.0f, published %.0f", names[i], m.tower.params, tower);
        }
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
    size_t checked = 0, stateful = 0, refused = 0, wrong = 0, towers = 0, mtp = 0;
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
        if ((isnan(total) && isnan(csv_num(&t, "kv_bytes_per_token_full_bf16"))) || undetermined(csv_get(&t, "notes")))
            continue;
        const struct cost_parameters p = count(a, &m);
        const struct cost_cache c = cache_of(a, m);
        const double tower = csv_num(&t, "params_vision_audio"), modules = csv_num(&t, "params_mtp");
        if ((tower > 0 && m.tower.params != tower) || (modules > 0 && count_mtp(a, &m) != modules)) {
            wrong++;
            print_message("%s: tower %.0f (%.0f), multi-token %.0f (%.0f)\n", m.name, m.tower.params, tower,
                          count_mtp(a, &m), modules);
        }
        towers += tower > 0;
        mtp += modules > 0;
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
    print_message("           %zu towers and %zu multi-token modules equal\n", towers, mtp);
    assert_true(checked >= 110 && stateful >= 20 && towers >= 9 && mtp >= 8);
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
static double beside(const struct csv *t)
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
        char file[256];
        struct model module;
        bool evident = false;
        for (size_t i = 0; i < sizeof EVIDENCE / sizeof EVIDENCE[0]; i++)
            evident = evident || strstr(csv_get(&t, "weight_bytes_basis"), EVIDENCE[i]);
        const double want = csv_num(&t, "weight_bytes");
        if (!evident || isnan(want)) continue;
        (void)snprintf(file, sizeof file, "models/configs/%s", csv_get(&t, "source_file"));
        if (model_load(a, csv_shared(a, file), NULL, 0, &m, &e) != ERR_OK || m.weights_unknown) {
            refused++; /* a family or format that is not described */
            print_message("%s: %s\n", csv_get(&t, "model"), e.code != ERR_OK ? e.text : m.weights_unknown);
            continue;
        }
        double got = stored(a, &m) + beside(&t);
        if (csv_num(&t, "params_mtp") > 0 && model_mtp(&m, &module)) got += (double)m.mtp.modules * stored(a, &module);
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

static struct model parse_text(struct arena *a, const char *text)
{
    struct json j;
    struct model m = {0};
    struct err e = {0};
    if (json_parse(a, "config.json", text, strlen(text), &j, &e) != ERR_OK || model_parse(a, &j, &m, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return m;
}

/* Published totals of whole checkpoints, less the text model. Counts of the safetensors: llava-hf/llava-1.5-7b-hf (a
 * vocabulary of 32064), mistralai/Mistral-Small-3.1-24B-Instruct-2503, OpenGVLab/InternVL2_5-2B,
 * meta-llama/Llama-3.2-11B-Vision-Instruct, LiquidAI/LFM2-VL-450M. */
static void test_towers_of_published_checkpoints(void **state)
{
    static const struct {
        const char *config;
        double total;
    } CASES[] = {
        {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":4096,"
         "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"intermediate_size\":11008,\"vocab_size\":32064},"
         "\"vision_config\":{\"model_type\":\"clip_vision_model\",\"hidden_size\":1024,\"image_size\":336,"
         "\"intermediate_size\":4096,\"num_hidden_layers\":24,\"patch_size\":14}}",
         7063427072},
        {"{\"model_type\":\"mistral3\",\"multimodal_projector_bias\":false,\"spatial_merge_size\":2,"
         "\"text_config\":{\"model_type\":\"mistral\",\"hidden_size\":5120,\"num_hidden_layers\":40,"
         "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":32768,"
         "\"vocab_size\":131072,\"sliding_window\":null},\"vision_config\":{\"model_type\":\"pixtral\","
         "\"hidden_size\":1024,\"image_size\":1540,\"intermediate_size\":4096,\"num_hidden_layers\":24,"
         "\"patch_size\":14}}",
         24011361280},
        {"{\"model_type\":\"internvl_chat\",\"downsample_ratio\":0.5,\"llm_config\":{\"model_type\":\"internlm2\","
         "\"hidden_size\":2048,\"num_hidden_layers\":24,\"num_attention_heads\":16,\"num_key_value_heads\":8,"
         "\"intermediate_size\":8192,\"vocab_size\":92553,\"bias\":false},\"vision_config\":{\"model_type\":"
         "\"intern_vit_6b\",\"hidden_size\":1024,\"image_size\":448,\"intermediate_size\":4096,"
         "\"num_hidden_layers\":24,\"patch_size\":14}}",
         2205754368},
        {"{\"model_type\":\"mllama\",\"text_config\":{\"model_type\":\"mllama_text_model\",\"hidden_size\":4096,"
         "\"num_hidden_layers\":40,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
         "\"vocab_size\":128256,\"cross_attention_layers\":[3,8,13,18,23,28,33,38],\"tie_word_embeddings\":false},"
         "\"vision_config\":{\"model_type\":\"mllama_vision_model\",\"hidden_size\":1280,\"image_size\":560,"
         "\"intermediate_size\":5120,\"num_hidden_layers\":32,\"num_global_layers\":8,\"patch_size\":14,"
         "\"max_num_tiles\":4,\"vision_output_dim\":7680,\"supported_aspect_ratios\":"
         "[[1,1],[1,2],[1,3],[1,4],[2,1],[2,2],[3,1],[4,1]]}}",
         10670220835},
        {"{\"model_type\":\"lfm2_vl\",\"downsample_factor\":2,\"projector_hidden_size\":2560,\"text_config\":{"
         "\"model_type\":\"lfm2\",\"hidden_size\":1024,\"block_ff_dim\":6656,\"block_multiple_of\":256,"
         "\"block_ffn_dim_multiplier\":1.0,\"block_auto_adjust_ff_dim\":true,\"conv_L_cache\":3,"
         "\"full_attn_idxs\":[2,5,8,10,12,14],\"num_attention_heads\":16,\"num_hidden_layers\":16,"
         "\"num_key_value_heads\":8,\"vocab_size\":65536},\"vision_config\":{\"model_type\":"
         "\"siglip2_vision_model\",\"hidden_size\":768,\"intermediate_size\":3072,\"num_hidden_layers\":12,"
         "\"num_patches\":256,\"patch_size\":16,\"vision_use_head\":false}}",
         450822656},
    };
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct model m = parse_text(a, CASES[i].config);
        const double got = count(a, &m).total + m.tower.params;
        if (got != CASES[i].total) fail_msg("%s: %.0f, published %.0f", m.tower.name, got, CASES[i].total);
        assert_true(m.tower.whole_params > 0 && m.tower.whole_params < m.tower.params);
    }
    arena_close(a);
}

/* Against Hub safetensors totals: what Kimi-VL A3B has beyond Moonlight 16B A3B (16,407,657,776 and 15,960,111,936, the
 * rotary buffers in both), 25,805,936,206 - 25,233,141,790 of Gemma 4 26B A4B (of which 569,550,384
 * in the tower), both Gemma 3n, 7,849,978,192 and 5,439,438,272, and 8,397,094,912 of Qwen2-Audio, whose index says
 * 16,794,189,824 bytes. */
static void test_towers_of_sound(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    static const char AUDIO[] =
        "{\"model_type\":\"qwen2_audio\",\"audio_config\":{\"model_type\":\"qwen2_audio_encoder\",\"num_mel_bins\":128,"
        "\"encoder_layers\":32,\"encoder_attention_heads\":20,\"encoder_ffn_dim\":5120,\"d_model\":1280,"
        "\"max_source_positions\":1500},\"text_config\":{\"model_type\":\"qwen2\",\"hidden_size\":4096,"
        "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":32,"
        "\"intermediate_size\":11008,\"vocab_size\":156032}}";
    struct model m = parse_text(a, AUDIO);
    assert_true(count(a, &m).total + m.audio.params == 8397094912);
    assert_true(m.audio.tokens == 750);
    assert_true(m.tower.params == 0);
    /* 32 layers: products of queries, keys, values, output and MLP, biases of all but keys and of what goes back */
    assert_true(m.audio.params - m.audio.whole_params ==
                32.0 * (4 * 1280 * 1280 + 2 * 1280 + 2.0 * 1280 * 5120 + 5120));
    static const char *const GEMMA[] = {
        "", ",\"intermediate_size\":8192,\"num_hidden_layers\":30,\"num_kv_shared_layers\":10"};
    static const double TOTAL[] = {7849978192, 5439438272};
    for (size_t i = 0; i < 2; i++) {
        m = parse_text(a,
                       arena_printf(a,
                                    "{\"model_type\":\"gemma3n\",\"text_config\":{\"model_type\":\"gemma3n_text\","
                                    "\"hidden_size\":2048%s%s},\"vision_config\":{\"model_type\":\"gemma3n_vision\"},"
                                    "\"audio_config\":{\"model_type\":\"gemma3n_audio\"}}",
                                    i ? "" : ",\"intermediate_size\":16384,\"num_hidden_layers\":35", GEMMA[i]));
        const double text = count(a, &m).total, got = text + m.tower.params + m.audio.params;
        if (got != TOTAL[i]) fail_msg("%zu: %.0f of text, %.0f, published %.0f", i, text, got, TOTAL[i]);
        assert_true(m.tower.tokens == 256 && m.audio.tokens == 188);
        assert_true(m.tower.params == 294126912 + 128 * 2048 + 2 * 2048 + 2048 * 2048);
    }
    m = parse_text(a, "{\"model_type\":\"gemma4\",\"text_config\":{\"model_type\":\"gemma4_text\",\"hidden_size\":2816,"
                      "\"intermediate_size\":2112,\"num_hidden_layers\":30,\"num_attention_heads\":16,"
                      "\"num_key_value_heads\":8,\"head_dim\":256,\"sliding_window\":1024,\"vocab_size\":262144},"
                      "\"vision_config\":{\"model_type\":\"gemma4_vision\",\"hidden_size\":1152,\"head_dim\":72,"
                      "\"intermediate_size\":4304,\"num_hidden_layers\":27,\"patch_size\":16,"
                      "\"position_embedding_size\":10240,\"standardize\":true,\"default_output_length\":280}}");
    assert_true(m.tower.params == 25805936206.0 - 25233141790.0);
    assert_true(m.tower.tokens == 280);
    m = parse_text(a, "{\"model_type\":\"kimi_vl\",\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":2048,"
                      "\"num_hidden_layers\":3,\"num_attention_heads\":16,\"intermediate_size\":96,\"vocab_size\":31},"
                      "\"vision_config\":{\"model_type\":\"moonvit\",\"hidden_size\":1152,\"init_pos_emb_height\":64,"
                      "\"init_pos_emb_width\":64,\"intermediate_size\":4304,\"merge_kernel_size\":[2,2],"
                      "\"num_attention_heads\":16,\"num_hidden_layers\":27,\"patch_size\":14}}");
    assert_true(m.tower.params == 16407657776.0 - 15960111936.0);
    assert_int_equal(m.tower.token_pixels, 28);
    m = parse_text(a, "{\"model_type\":\"kimi_k25\",\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":7168,"
                      "\"num_hidden_layers\":3,\"num_attention_heads\":16,\"intermediate_size\":96,\"vocab_size\":31},"
                      "\"vision_config\":{\"vt_hidden_size\":1152,\"vt_intermediate_size\":4304,"
                      "\"vt_num_hidden_layers\":27,\"patch_size\":14,\"merge_kernel_size\":[2,2]}}");
    assert_true(m.tower.params == 16407657776.0 - 15960111936.0 + (7168.0 - 2048) * (4608 + 1));
    arena_close(a);
}

/* Projectors that are told apart by a key, against a sum by hand; sizes that a class has by itself. */
static void test_ears(void **state)
{
    /* convolutions of 3 taps, two norms a layer and one behind them, no bias of keys */
    const double layers = 3.0 * (4 * 64 * 64 + 3 * 64 + 2 * 64 * 160 + 160 + 64 + 4 * 64);
    const double encoder = layers + 3 * 20 * 64 + 64 + 3 * 64 * 64 + 64 + 2 * 64, rows = 150 * 64;
    static const struct {
        const char *root, *encoder, *text, *more, *own;
        double behind, tokens;
        bool rows;
    } CASES[] = {
        {"qwen2_audio", "qwen2_audio_encoder", "qwen2", "", "", 64 * 48 + 48, 75, true},
        {"qwen2_5_omni_thinker", "qwen2_5_omni_audio_encoder", "qwen2_5_omni_text", ",\"output_dim\":48", "",
         64 * 48 + 48 + 2 * 48, 75, false},
        {"voxtral", "voxtral_encoder", "llama", "", "", 160 * 48 + 48 * 48, 60, true},
        {"ultravox", "whisper", "llama", "", ",\"hidden_size\":40,\"stack_factor\":8",
         8 * 64 + 8 * 64 * 40 + 20 * 48 + 48, 19, true},
        {"ultravox", "whisper", "llama", "", ",\"hidden_size\":40,\"stack_factor\":8,\"projector_ln_mid\":true",
         8 * 64 + 8 * 64 * 40 + 20 * 48 + 20, 19, true},
        {"ultravox", "whisper", "llama", "", ",\"hidden_size\":40,\"stack_factor\":7,\"projector_act\":\"gelu\"",
         7 * 64 + 7 * 64 * 40 + 40 * 48 + 48, 22, true},
    };
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct model m =
            parse_text(a, arena_printf(a,
                                       "{\"model_type\":\"%s\",\"audio_config\":{\"model_type\":\"%s\",\"d_model\":64,"
                                       "\"encoder_layers\":3,\"encoder_ffn_dim\":160,\"num_mel_bins\":20,"
                                       "\"max_source_positions\":150%s},\"text_config\":{\"model_type\":\"%s\","
                                       "\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
                                       "\"num_key_value_heads\":4,\"intermediate_size\":96,\"vocab_size\":31}%s}",
                                       CASES[i].root, CASES[i].encoder, CASES[i].more, CASES[i].text, CASES[i].own));
        const double want = encoder + CASES[i].behind + (CASES[i].rows ? rows : 0);
        if (m.audio.params < want || m.audio.params > want)
            fail_msg("%zu: %.0f, by hand %.0f (%s)", i, m.audio.params, want, m.notes ? m.notes : "");
        if (m.audio.tokens < CASES[i].tokens || m.audio.tokens > CASES[i].tokens)
            fail_msg("%zu: %g tokens", i, m.audio.tokens);
    }
    /* what is not described: another encoder, sizes that no class has by itself, another projector */
    static const char *const UNKNOWN[] = {
        "{\"model_type\":\"llama\",\"audio_config\":{\"d_model\":64}",
        "{\"model_type\":\"ultravox\",\"audio_config\":{\"model_type\":\"wav2vec2\"}",
        "{\"model_type\":\"ultravox\",\"audio_config\":{\"model_type\":\"whisper\"}",
        "{\"model_type\":\"ultravox\",\"num_projector_layers\":2,\"audio_config\":{\"model_type\":\"whisper\","
        "\"d_model\":64,\"encoder_layers\":3,\"encoder_ffn_dim\":160,\"num_mel_bins\":20,"
        "\"max_source_positions\":150}"};
    for (size_t i = 0; i < sizeof UNKNOWN / sizeof UNKNOWN[0]; i++) {
        const char *text = arena_printf(a,
                                        "%s,\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":48,"
                                        "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"intermediate_size\":96,"
                                        "\"vocab_size\":31}}",
                                        UNKNOWN[i]);
        const struct model m = parse_text(a, text);
        if (!isnan(m.audio.params)) fail_msg("%zu: %.0f", i, m.audio.params);
        assert_non_null(strstr(m.notes, "audio tower not counted"));
    }
    /* the part that reads of a model that also talks */
    const struct model m = parse_text(
        a,
        "{\"model_type\":\"qwen2_5_omni\",\"thinker_config\":{\"model_type\":\"qwen2_5_omni_thinker\","
        "\"audio_config\":{\"model_type\":\"qwen2_5_omni_audio_encoder\"},\"text_config\":{\"model_type\":"
        "\"qwen2_5_omni_text\",\"hidden_size\":3584,\"num_hidden_layers\":28,\"num_attention_heads\":28,"
        "\"num_key_value_heads\":4,\"intermediate_size\":18944,\"vocab_size\":152064,\"tie_word_embeddings\":false}},"
        "\"talker_config\":{\"model_type\":\"qwen2_5_omni_talker\"}}");
    assert_int_equal(m.layers, 28);
    assert_true(m.audio.tokens == 750);
    assert_true(m.audio.params == 636968960.0 - 1500 * 1280 + 1280 * 3584 + 3584 + 2 * 3584);
    arena_close(a);
}

/* Towers that no row describes, or that the file cut short, are not guessed. */
static void test_towers_that_are_not_known(void **state)
{
    static const char *const BESIDE[] = {
        "\"vision_config\":{\"model_type\":\"siglip_vision_model\",\"hidden_size\":1152}",
        "\"vision_config\":{\"model_type\":\"another\",\"hidden_size\":1152}",
        "\"audio_config\":{\"hidden_size\":1152}"};
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof BESIDE / sizeof BESIDE[0]; i++) {
        const char *text = arena_printf(a,
                                        "{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":"
                                        "\"gemma3_text\",\"hidden_size\":2560,\"intermediate_size\":10240,"
                                        "\"num_hidden_layers\":34,\"sliding_window\":1024},%s}",
                                        BESIDE[i]);
        const struct model m = parse_text(a, text);
        assert_true(isnan(i == 2 ? m.audio.params : m.tower.params));
        assert_non_null(strstr(m.notes, "tower not counted"));
    }
    /* parts under other names, and a product over patches in the class itself */
    static const char *const PARTS[][2] = {
        {"\"encoder_config\":{\"model_type\":\"a\"},\"projector_config\":{\"model_type\":\"b\"}",
         "encoder_config, projector_config: not counted"},
        {"\"patch_size\":30", "what reads patches of images: not counted"},
        {"\"quantization_config\":null,\"head_config\":{\"hidden_size\":3}", NULL}};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        const struct model m =
            parse_text(a, arena_printf(a,
                                       "{\"model_type\":\"granite_speech\",\"text_config\":{\"model_type\":\"granite\","
                                       "\"hidden_size\":48,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
                                       "\"intermediate_size\":96,\"vocab_size\":31},%s}",
                                       PARTS[i][0]));
        assert_int_equal(isnan(m.tower.params) && isnan(m.audio.params), PARTS[i][1] != NULL);
        if (PARTS[i][1]) assert_non_null(strstr(m.notes, PARTS[i][1]));
    }
    arena_close(a);
}

/* ---- draft heads ---- */

/* EAGLE: sizes that its authors publish, in billions (README of SafeAILab/EAGLE). The others tensor by tensor. */
static void test_draft_heads(void **state)
{
    static const struct {
        const char *config, *family;
        double total, within;
    } CASES[] = {
        {"{\"model_type\":\"eagle\",\"hidden_size\":4096,\"num_hidden_layers\":1,\"num_attention_heads\":32,"
         "\"num_key_value_heads\":32,\"intermediate_size\":11008,\"vocab_size\":32000,\"bias\":false}",
         "eagle", .24e9, 5e6},
        {"{\"model_type\":\"llama\",\"architectures\":[\"EagleLlamaForCausalLM\"],\"hidden_size\":4096,"
         "\"num_hidden_layers\":1,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
         "\"vocab_size\":128256}",
         "eagle", .25e9, 5e6},
        {"{\"model_type\":\"eagle\",\"hidden_size\":8192,\"num_hidden_layers\":1,\"num_attention_heads\":64,"
         "\"num_key_value_heads\":8,\"intermediate_size\":28672,\"vocab_size\":32000}",
         "eagle", .99e9, 5e6},
        /* 3*4096^2 joined; 8192*(4096+2*1024) + 4096^2 attention; 3*4096*14336; 4 norms; 32000*4096 */
        {"{\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"],\"hidden_size\":4096,"
         "\"num_hidden_layers\":1,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
         "\"vocab_size\":128256,\"draft_vocab_size\":32000}",
         "eagle3", 50331648.0 + 50331648 + 16777216 + 176160768 + 16384 + 131072000, 0},
        /* 5*2560^2; five layers of 2560*128*(2*32+2*8) + 3*2560*9728 + 2*2560 + 2*128; 2 norms */
        {"{\"model_type\":\"qwen3\",\"hidden_size\":2560,\"num_hidden_layers\":5,\"num_attention_heads\":32,"
         "\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":9728,\"vocab_size\":151936,"
         "\"block_size\":16,\"dflash_config\":{\"target_layer_ids\":[1,9,17,25,33]}}",
         "dflash", 32768000.0 + 5 * (26214400.0 + 74711040 + 5120 + 256) + 5120, 0},
        {"{\"medusa_num_heads\":5,\"medusa_num_layers\":1,\"hidden_size\":4096,\"vocab_size\":32000}", "medusa",
         5 * (4096.0 * 4096 + 4096 + 32000.0 * 4096), 0},
        {"{\"model_type\":\"medusa\",\"num_heads\":3,\"num_hidden_layers\":2,\"medusa_fc_bias\":false,"
         "\"hidden_size\":512,\"vocab_size\":1000}",
         "medusa", 3 * (2 * 512.0 * 512 + 1000.0 * 512), 0},
    };
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct model m = parse_text(a, CASES[i].config);
        const double got = count(a, &m).total;
        assert_string_equal(m.family, CASES[i].family);
        if (fabs(got - CASES[i].total) > CASES[i].within)
            fail_msg("%zu %s: %.0f parameters, want %.0f", i, m.family, got, CASES[i].total);
    }
    arena_close(a);
}

static void test_draft_heads_that_cannot_be_known(void **state)
{
    static const char *const CASES[][2] = {
        {"{\"medusa_num_heads\":3,\"base_model_name_or_path\":\"lmsys/vicuna-7b-v1.3\"}", "lmsys/vicuna-7b-v1.3"},
        {"{\"medusa_num_heads\":3,\"hidden_size\":64}", "--set vocab_size"},
        {"{\"model_type\":\"medusa\",\"hidden_size\":64,\"vocab_size\":100}", "medusa_num_heads"},
        {"{\"model_type\":\"llama\",\"draft_vocab_size\":100,\"target_hidden_size\":128,\"hidden_size\":64,"
         "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"intermediate_size\":8,\"vocab_size\":200}",
         "target_hidden_size"},
        {"{\"model_type\":\"llama\",\"draft_vocab_size\":300,\"hidden_size\":64,\"num_hidden_layers\":1,"
         "\"num_attention_heads\":4,\"intermediate_size\":8,\"vocab_size\":200}",
         "draft_vocab_size"},
        {"{\"model_type\":\"qwen3\",\"dflash_config\":{},\"hidden_size\":64,\"num_hidden_layers\":1,"
         "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"intermediate_size\":8,\"vocab_size\":200}",
         "block_size"},
        {"{\"model_type\":\"mllama_text_model\",\"hidden_size\":64,\"num_hidden_layers\":1,"
         "\"num_attention_heads\":8,\"intermediate_size\":8,\"vocab_size\":200}",
         "cross_attention_layers"},
        {"{\"model_type\":\"llada\",\"d_model\":64,\"n_layers\":1,\"n_heads\":4,\"mlp_hidden_size\":8,"
         "\"vocab_size\":200,\"embedding_size\":256}",
         "vocab_size"},
    };
    (void)state;
    struct arena *a = arena_open();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct json j;
        struct model m;
        struct err e = {0};
        assert_int_equal(json_parse(a, "config.json", CASES[i][0], strlen(CASES[i][0]), &j, &e), ERR_OK);
        if (model_parse(a, &j, &m, &e) != ERR_INPUT) fail_msg("%s: not refused", CASES[i][0]);
        if (!strstr(e.text, CASES[i][1])) fail_msg("'%s' does not say '%s'", e.text, CASES[i][1]);
    }
    arena_close(a);
}

/* A small LLaDA whose code counts itself: 124,327,616 (d_model 448, 6 layers; a published training log). */
static void test_diffusion_models(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const struct model m =
        parse_text(a, "{\"model_type\":\"llada\",\"d_model\":448,\"n_layers\":6,\"n_heads\":7,\"n_kv_heads\":7,"
                      "\"mlp_hidden_size\":768,\"mlp_ratio\":2,\"vocab_size\":126464,\"embedding_size\":126464,"
                      "\"weight_tying\":false,\"max_sequence_length\":1024,\"alibi\":false,\"rope\":true}");
    assert_true(count(a, &m).total == 124327616);
    assert_true(m.diffusion && m.bidirectional && !m.block_causal && m.block_tokens == 0);
    arena_close(a);
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

/* The published formula of RWKV-5's and -6's parameters and sums over the tensor lists of others, for sizes that no
 * built-in file has. */
static void test_recurrent_totals_by_their_tensor_lists(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    /* 3B: 13 products of D*D a layer, 16 vectors, mixtures of rank 32 and a decay of 64 */
    struct model m = parse_text(a, "{\"model_type\":\"rwkv6\",\"hidden_size\":2560,\"num_hidden_layers\":32,"
                                   "\"attention_hidden_size\":2560,\"head_size\":64,\"vocab_size\":65536,"
                                   "\"tie_word_embeddings\":false}");
    const double D = 2560, L = 32;
    assert_true(count(a, &m).total == 13 * D * D * L + L * D * (16 + 10 * 32 + 2 * 64) + 4 * D + 2 * 65536 * D);
    /* the same as flash-linear-attention spells it */
    m = parse_text(a, "{\"model_type\":\"rwkv6\",\"hidden_size\":2560,\"num_hidden_layers\":32,\"num_heads\":40,"
                      "\"expand_k\":1.0,\"expand_v\":1.0,\"proj_low_rank_dim\":32,\"gate_low_rank_dim\":64,"
                      "\"hidden_ratio\":3.5,\"norm_first\":true,\"vocab_size\":65536}");
    assert_true(count(a, &m).total == 3099863040);
    /* Mamba-2 by its authors' file and by transformers' (370M: 48 layers of 1024, vocabulary 50288) */
    m = parse_text(a, "{\"d_model\":1024,\"n_layer\":48,\"vocab_size\":50277,\"ssm_cfg\":{\"layer\":\"Mamba2\"},"
                      "\"rms_norm\":true,\"pad_vocab_size_multiple\":16,\"tie_embeddings\":true}");
    const double theirs = count(a, &m).total, state_bytes = cache_of(a, m).state_bytes_per_sequence;
    m = parse_text(a, "{\"model_type\":\"mamba2\",\"hidden_size\":1024,\"num_hidden_layers\":48,\"vocab_size\":50288,"
                      "\"state_size\":128,\"expand\":2,\"head_dim\":64,\"num_heads\":32,\"n_groups\":1,"
                      "\"tie_word_embeddings\":true}");
    assert_true(count(a, &m).total == theirs && cache_of(a, m).state_bytes_per_sequence == state_bytes);
    /* Mamba-1 as well (370M) */
    m = parse_text(a, "{\"d_model\":1024,\"n_layer\":48,\"vocab_size\":50277,\"ssm_cfg\":{},"
                      "\"pad_vocab_size_multiple\":8}");
    assert_true(count(a, &m).total == 371516416);
    m = parse_text(a, "{\"model_type\":\"mamba\",\"hidden_size\":1024,\"num_hidden_layers\":48,\"vocab_size\":50280,"
                      "\"ssm_cfg\":{},\"state_size\":16}");
    assert_true(count(a, &m).total == 371516416);
    assert_string_equal(m.family, "mamba"); /* model_type decides where it stands */
    arena_close(a);
}

/* The state of a Taylor map is that of the expanded width: 1 + 16 + 256, and the sum of weights beside the values. */
static void test_state_of_a_taylor_map(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    assert_int_equal(model_load(a, "based-360m", NULL, 0, &m, &e), ERR_OK);
    const double linear = 5 * 16.0 * 273 * (64 + 1) * 4, columns = 17.0 * 2 * 2048 * 2;
    const struct cost_cache c = cache_of(a, m);
    assert_true(c.state_bytes_per_sequence == linear + columns);
    assert_true(c.bytes_per_token_full == 0 && c.bytes_per_token_windowed == 5 * 2.0 * 1024 * 2);
    arena_close(a);
}

/* Poles make the state of a long convolution constant; a filter without them keeps every input. */
static void test_state_of_long_convolutions(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    assert_int_equal(model_load(a, "stripedhyena-hessian-7b", NULL, 0, &m, &e), ERR_OK);
    struct cost_cache c = cache_of(a, m);
    assert_true(c.state_bytes_per_sequence == 16 * (2 * 3 * 4096 * 2.0 + 2 * 2 * 4096 * 4.0));
    assert_true(c.bytes_per_token_full == 16 * 2 * 8 * 128 * 2.0); /* of its attention */
    /* LongSafari/hyenadna-large-1m-seqlen-hf by the keys of its HyenaConfig; the Hub rounds its total to 54.6M (quoted)
     */
    static const char DNA[] =
        "{\"model_type\":\"hyenadna\",\"d_model\":256,\"n_layer\":8,\"d_inner\":1024,\"vocab_size\":12,"
        "\"pad_vocab_size_multiple\":8,\"filter_order\":64,\"emb_dim\":5,\"num_inner_mlps\":2,\"hyena_order\":2,"
        "\"short_filter_order\":3,\"max_seq_len\":1000002,\"train_freq\":true,\"torch_dtype\":\"float32\"}";
    m = parse_text(a, DNA);
    assert_true(count(a, &m).total == 54556768);
    c = cache_of(a, m);
    assert_true(c.bytes_per_token_full == 8 * 256 * 2.0);
    /* more than one long convolution a layer, and a filter whose stored times are not known */
    static const char *const REFUSED[] = {
        "{\"model_type\":\"hyenadna\",\"d_model\":256,\"n_layer\":8,\"vocab_size\":12,\"max_seq_len\":99,"
        "\"hyena_order\":3}",
        "{\"model_type\":\"hyenadna\",\"d_model\":256,\"n_layer\":8,\"vocab_size\":12}"};
    for (size_t i = 0; i < 2; i++) {
        struct json j;
        assert_int_equal(json_parse(a, "config.json", REFUSED[i], strlen(REFUSED[i]), &j, &e), ERR_OK);
        assert_int_equal(model_parse(a, &j, &m, &e), ERR_INPUT);
    }
    arena_close(a);
}

/* transformers' own spelling of MiniMax: a word a layer in place of attn_type_list. */
static void test_minimax_by_words(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct model flags, words;
    struct json j = document(a, "minimax-m1-80k"), list, item;
    assert_int_equal(model_parse(a, &j, &flags, &e), ERR_OK);
    assert_true(json_get(&j, "attn_type_list", &list));
    const char *text = "[";
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        int64_t full;
        assert_int_equal(json_int(&item, 0, 1, &full, &e), ERR_OK);
        text = arena_printf(a, "%s%s\"%s_attention\"", text, i ? "," : "", full ? "full" : "linear");
    }
    text = arena_printf(a, "%s]", text);
    assert_true(json_drop(&j, "attn_type_list"));
    assert_int_equal(json_override(&j, "layer_types", text, &e), ERR_OK);
    if (model_parse(a, &j, &words, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_true(model_same(&flags, &words));
    assert_int_equal(json_override(&j, "block_size", "128", &e), ERR_OK); /* of the scan */
    assert_int_equal(model_parse(a, &j, &words, &e), ERR_OK);
    assert_int_equal(words.kinds[0].mixer.recurrence.chunk_tokens, 128);
    assert_true(json_drop(&j, "layer_types"));
    assert_int_equal(model_parse(a, &j, &words, &e), ERR_INPUT);
    assert_non_null(strstr(e.text, "attn_type_list or layer_types is missing"));
    arena_close(a);
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
                 {"zamba2-7b", "add_bias_linear", "true"},
                 {"rwkv7-goose-0.1b", "a_low_rank_dim", NULL},
                 {"rwkv7-goose-0.1b", "head_dim", "65"},
                 {"rwkv7-goose-0.1b", "value_dim", "[768, 512]"},
                 {"rwkv7-goose-0.1b", "attn", "{\"num_heads\": 12}"},
                 {"rwkv7-goose-0.1b", "attn", "{\"layers\": [3]}"},
                 {"rwkv7-goose-0.1b", "attn", "{\"layers\": [12], \"num_heads\": 12}"},
                 {"rwkv7-goose-0.1b", "attn", "{\"layers\": [3], \"num_heads\": 7}"},
                 {"rwkv6-finch-1.6b", "expand_k", "1.0"}, /* then the ranks must be stated */
                 {"rwkv6-finch-1.6b", "head_size", "63"},
                 {"mamba2attn-2.7b", "attn_cfg", NULL},
                 {"mamba2attn-2.7b", "ssm_cfg", "{\"layer\": \"Mamba3\"}"},
                 {"mamba2attn-2.7b", "ssm_cfg", "{\"layer\": \"Mamba2\", \"rmsnorm\": false}"},
                 {"mamba2attn-2.7b", "ssm_cfg", "{\"layer\": \"Mamba2\", \"d_ssm\": 64}"},
                 {"mamba2attn-2.7b", "ssm_cfg", "{\"layer\": \"Mamba2\", \"headdim\": 63}"},
                 {"mamba2attn-2.7b", "moe_layer_idx", "[0, 1]"},
                 {"mamba2-130m", "ssm_cfg", NULL},
                 {"h3-125m", "attn_cfg", NULL},
                 {"h3-125m", "ssm_cfg", "{\"mode\": \"nplr\"}"},
                 {"h3-125m", "ssm_cfg", "{\"mode\": \"diag\", \"n_ssm\": 1}"},
                 {"based-360m", "mixer", "{\"_target_\": \"based.models.mixers.hyena.Hyena\"}"},
                 {"based-360m", "mixer", "{\"expand_proj\": 4}"},
                 {"based-360m", "alt_mixer", "{\"_target_\": \"x.LinearAttention\", \"feature_dim\": 16}"},
                 {"stripedhyena-hessian-7b", "state_size", NULL},
                 {"stripedhyena-hessian-7b", "hyena_filter_groups", "2"},
                 {"stripedhyena-hessian-7b", "hyena_layer_idxs", "[0]"},
                 {"stripedhyena-hessian-7b", "smeared_gqa", "true"},
                 {"falcon-mamba-7b", "attn", "{\"layers\": [3], \"num_heads\": 8}"},
                 {"h3-125m", "attn_layer_idx", "[12]"}, /* a layer that there is not, and one twice */
                 {"h3-125m", "attn_layer_idx", "[6, 6]"},
                 {"h3-125m", "attn_layer_idx", "[-1]"},
                 {"mamba2attn-2.7b", "attn_layer_idx", "[64]"},
                 {"based-360m", "alt_mixer_layers", "[27]"},
                 {"based-360m", "alt_mixer_layers", "[1, 7]"}, /* 7 is of the other list */
                 {"stripedhyena-hessian-7b", "attn_layer_idxs", "[32]"},
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
        cmocka_unit_test(test_recurrent_totals_by_their_tensor_lists),
        cmocka_unit_test(test_state_of_a_taylor_map),
        cmocka_unit_test(test_state_of_long_convolutions),
        cmocka_unit_test(test_truth_table),
        cmocka_unit_test(test_stored_bytes),
        cmocka_unit_test(test_towers_of_published_checkpoints),
        cmocka_unit_test(test_towers_of_sound),
        cmocka_unit_test(test_ears),
        cmocka_unit_test(test_towers_that_are_not_known),
        cmocka_unit_test(test_draft_heads),
        cmocka_unit_test(test_draft_heads_that_cannot_be_known),
        cmocka_unit_test(test_diffusion_models),
        cmocka_unit_test(test_experts_without_their_number_are_refused),
        cmocka_unit_test(test_absent_keys_are_class_defaults_and_null_is_not),
        cmocka_unit_test(test_modules_kept_in_full_precision),
        cmocka_unit_test(test_hybrids_that_cannot_be_known_are_refused),
        cmocka_unit_test(test_minimax_by_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
