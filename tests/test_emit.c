/* Command lines of engines: each argument by its name, what engines do not run, text that a shell must not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/lora.h"
#include "calc/serve/emit.h"

static struct emit_plan plain(void)
{
    const struct layout l = {.tp = 4, .replicas = 3, .per_node = 8};
    return (struct emit_plan){.model = "org/model-7B",
                              .layout = layout_whole(&l),
                              .max_num_seqs = 200,
                              .step_tokens = 2048,
                              .max_model_len = 3072,
                              .utilization_frac = .9,
                              .static_frac = .861,
                              .free_frac = .878};
}

static const char *command(struct arena *a, enum emit_engine engine, const struct emit_plan *p)
{
    struct err e = {0};
    const char *out = NULL;
    if (emit_command(a, engine, p, &out, &e) != ERR_OK) fail_msg("%s", e.text);
    return out;
}

static void has(const char *text, const char *piece)
{
    if (!strstr(text, piece)) fail_msg("no %s in:\n%s", piece, text);
}
static void lacks(const char *text, const char *piece)
{
    if (strstr(text, piece)) fail_msg("%s in:\n%s", piece, text);
}

/* What a shell makes of the lines with these variables: `piece` is in it; NULL: it refuses. */
static void shell_says(const char *lines, const char *variables, const char *piece)
{
    char script[4600], got[2048];
    (void)snprintf(script, sizeof script, "{ %s\n%s } 2>/dev/null", variables, lines);
    FILE *f = popen(script, "r"); /* NOLINT(cert-env33-c): a test of what shells do with it */
    assert_non_null(f);
    const size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = '\0';
    const int status = pclose(f);
    if (!piece) assert_int_not_equal(status, 0);
    if (piece) assert_int_equal(status, 0);
    if (piece) has(got, piece);
}

static void test_plain(void **state)
{
    struct arena *a = arena_open();
    const struct emit_plan p = plain();
    assert_string_equal(command(a, EMIT_VLLM, &p),
                        "# 3 copies of 4 GPUs: run this once for each, on GPUs and a port of its own\n"
                        "#   (CUDA_VISIBLE_DEVICES, --port), behind a router to the least loaded:\n"
                        "# nginx with least_conn, say\n"
                        "vllm serve org/model-7B --tensor-parallel-size 4 --max-model-len 3072 \\\n"
                        "  --max-num-seqs 200 --max-num-batched-tokens 2048 \\\n"
                        "  --gpu-memory-utilization 0.9\n");
    const char *s = command(a, EMIT_SGLANG, &p), *t = command(a, EMIT_TRTLLM, &p);
    has(s, "python -m sglang.launch_server --model-path org/model-7B --tp-size 4");
    has(s, "--context-length 3072");
    has(s, "--max-running-requests 200");
    has(s, "--chunked-prefill-size 2048");
    has(s, "--mem-fraction-static 0.861");
    has(t, "trtllm-serve org/model-7B --tp_size 4");
    has(t, "--max_seq_len 3072");
    has(t, "--max_batch_size 200");
    has(t, "--max_num_tokens 2048");
    has(t, "--kv_cache_free_gpu_memory_fraction 0.878");
    lacks(t, "trtllm.yaml");
    arena_close(a);
    (void)state;
}

static void test_formats(void **state)
{
    struct arena *a = arena_open();
    struct emit_plan p = plain();
    p.weights = p.kv = "fp8";
    p.fp8_on_load = true;
    has(command(a, EMIT_VLLM, &p), "--quantization fp8");
    has(command(a, EMIT_VLLM, &p), "--kv-cache-dtype fp8");
    has(command(a, EMIT_SGLANG, &p), "--kv-cache-dtype fp8_e4m3");
    /* a file's kv_cache_config stands for all of the command line's: the fraction has to be in it */
    has(command(a, EMIT_TRTLLM, &p), "kv_cache_config:\n  dtype: fp8\n  free_gpu_memory_fraction: 0.878\n");
    /* it converts nothing as it loads: what is stored in 16 bits is no word of its line, which stops until one is set
     */
    has(command(a, EMIT_TRTLLM, &p), "a checkpoint stored so is needed");
    has(command(a, EMIT_TRTLLM, &p), "trtllm-serve ${CHECKPOINT:?} ");
    has(command(a, EMIT_TRTLLM, &p), "--quant fp8 --export_fmt hf");
    lacks(command(a, EMIT_VLLM, &p), "CHECKPOINT");
    p.weights = "int4-g128";
    p.fp8_on_load = false;
    has(command(a, EMIT_VLLM, &p), "weights in int4-g128: a checkpoint stored so is needed");
    has(command(a, EMIT_VLLM, &p), "vllm serve ${CHECKPOINT:?} ");
    has(command(a, EMIT_SGLANG, &p), "--model-path ${CHECKPOINT:?} ");
    lacks(command(a, EMIT_VLLM, &p), "--export_fmt");
    lacks(command(a, EMIT_VLLM, &p), "--quantization");
    p.longest_tokens = p.max_model_len;
    has(command(a, EMIT_VLLM, &p), "and not one longer");
    p.longest_tokens = p.max_model_len * 4 / 5;
    has(command(a, EMIT_VLLM, &p), "25 % more");
    p.longest_tokens = 0;
    /* latents of which keys are chosen: two engines mean their own layout by fp8, the third has one scale */
    p.kv = "fp8-ds-mla";
    has(command(a, EMIT_VLLM, &p), "--kv-cache-dtype fp8");
    lacks(command(a, EMIT_VLLM, &p), "--kv-cache-dtype fp8-");
    has(command(a, EMIT_SGLANG, &p), "--kv-cache-dtype fp8_e4m3");
    has(emit_refusal(EMIT_TRTLLM, &p), "--kv fp8");
    p.kv = "int4-g64";
    for (int i = 0; i < EMIT_ENGINES; i++) has(emit_refusal((enum emit_engine)i, &p), "cache");
    arena_close(a);
    (void)state;
}

static void test_layouts(void **state)
{
    struct arena *a = arena_open();
    struct err e = {0};
    const char *none = NULL;
    struct emit_plan p = plain();
    const struct layout wide = {.tp = 2, .dp = 4, .ep = 8, .per_node = 8};
    p.layout = layout_whole(&wide);
    p.experts = true;
    const char *v = command(a, EMIT_VLLM, &p), *s = command(a, EMIT_SGLANG, &p);
    has(v, "--tensor-parallel-size 2");
    has(v, "--data-parallel-size 4");
    has(v, "--enable-expert-parallel");
    has(v, "--max-num-seqs 200"); /* of each attention group, as it is asked for */
    has(s, "--tp-size 8");
    has(s, "--dp-size 4 --enable-dp-attention");
    has(s, "--ep-size 8");
    has(s, "--max-running-requests 800");                                  /* of all four */
    has(s, "--chunked-prefill-size 8192");                                 /* of four groups: each takes 2048 */
    assert_int_equal(emit_command(a, EMIT_TRTLLM, &p, &none, &e), ERR_NO); /* groups of two ranks */
    p.layout.ep = 4;
    assert_non_null(emit_refusal(EMIT_VLLM, &p)); /* experts over half of the ranks */
    assert_null(emit_refusal(EMIT_SGLANG, &p));
    const struct layout ranks = {.tp = 1, .dp = 8, .ep = 8, .per_node = 8};
    p.layout = layout_whole(&ranks);
    has(command(a, EMIT_TRTLLM, &p), "enable_attention_dp: true");
    has(command(a, EMIT_TRTLLM, &p), "--tp_size 8");
    has(command(a, EMIT_TRTLLM, &p), "--ep_size 8");
    has(command(a, EMIT_TRTLLM, &p), "--config trtllm.yaml");
    const struct layout sharing = {.tp = 8, .dcp = 4, .per_node = 8};
    p.layout = layout_whole(&sharing);
    has(command(a, EMIT_VLLM, &p), "--decode-context-parallel-size 4");
    has(command(a, EMIT_SGLANG, &p), "--dcp-size 4");
    p.layout.context_direct = true;
    has(command(a, EMIT_VLLM, &p), "--dcp-comm-backend a2a");
    has(command(a, EMIT_SGLANG, &p), "--dcp-comm-backend a2a");
    assert_non_null(emit_refusal(EMIT_TRTLLM, &p));
    p.layout.pp = 2;
    assert_non_null(emit_refusal(EMIT_SGLANG, &p));
    assert_null(emit_refusal(EMIT_VLLM, &p));
    const struct layout far = {.tp = 8, .pp = 2, .per_node = 8};
    p.layout = layout_whole(&far);
    p.experts = false;
    has(command(a, EMIT_VLLM, &p), "--pipeline-parallel-size 2");
    has(command(a, EMIT_VLLM, &p), "--distributed-executor-backend ray");
    has(command(a, EMIT_SGLANG, &p), "--nnodes 2 --node-rank ${RANK:?} --dist-init-addr ${HEAD_IP:?}:20000");
    has(command(a, EMIT_VLLM, &p), "# on every other one: ray start --address=${HEAD_IP:?}:6379\n");
    has(command(a, EMIT_TRTLLM, &p), "srun --nodes 2 --ntasks-per-node 8 --mpi=pmix trtllm-llmapi-launch");
    has(command(a, EMIT_TRTLLM, &p), "--pp_size 2");
    const struct layout groups = {.tp = 2, .dp = 12, .ep = 24, .per_node = 8}; /* four groups a node, three nodes */
    p.layout = layout_whole(&groups);
    p.experts = true;
    has(command(a, EMIT_VLLM, &p), "--data-parallel-size 12");
    has(command(a, EMIT_VLLM, &p), "--data-parallel-size-local 4");
    has(command(a, EMIT_VLLM, &p), "--data-parallel-address ${HEAD_IP:?}");
    has(command(a, EMIT_VLLM, &p), "--data-parallel-start-rank $((${RANK:?} * 4))");
    has(command(a, EMIT_SGLANG, &p), "--nnodes 3 --node-rank ${RANK:?}");
    for (int i = 0; i < EMIT_ENGINES - 1; i++) { /* the shell itself says what is missing */
        char say[4200];
        const char *lines = command(a, (enum emit_engine)i, &p), *start = lines;
        while (*start == '#') start = strchr(start, '\n') + 1;
        (void)snprintf(say, sizeof say, "printf '%%s ' %s", start);
        shell_says(say, ":", NULL);
        shell_says(say, "HEAD_IP=10.0.0.7; RANK=2",
                   i == EMIT_VLLM ? "--data-parallel-start-rank 8 --headless"
                                  : "--node-rank 2 --dist-init-addr 10.0.0.7:20000");
    }
    arena_close(a);
    (void)state;
}

/* Steps of prompts and of those that decode: SGLang keeps them apart unless told; a draft and stages keep them so. */
static void test_mixed(void **state)
{
    struct arena *a = arena_open();
    struct emit_plan p = plain();
    lacks(command(a, EMIT_SGLANG, &p), "--enable-mixed-chunk");
    p.mixed = true;
    has(command(a, EMIT_SGLANG, &p), "--enable-mixed-chunk");
    lacks(command(a, EMIT_VLLM, &p), "mixed");
    p.layout.pp = 2;
    lacks(command(a, EMIT_SGLANG, &p), "--enable-mixed-chunk");
    has(command(a, EMIT_SGLANG, &p), "prompts are computed in steps of their own");
    arena_close(a);
    (void)state;
}

static void test_drafts(void **state)
{
    struct arena *a = arena_open();
    struct err e = {0};
    const char *none;
    struct emit_plan p = plain();
    p.draft = "org/small-1B";
    p.draft_tokens = 5;
    has(command(a, EMIT_VLLM, &p), "--speculative-config '{\"method\": \"draft_model\",\n"
                                   "    \"model\": \"org/small-1B\",\n    \"num_speculative_tokens\": 5}'\n");
    const char *s = command(a, EMIT_SGLANG, &p), *t = command(a, EMIT_TRTLLM, &p);
    has(s, "--speculative-algorithm STANDALONE");
    has(s, "--speculative-draft-model-path org/small-1B");
    has(s, "--speculative-num-steps 5");
    has(s, "--speculative-eagle-topk 1");
    has(s, "--speculative-num-draft-tokens 6"); /* the last token is judged too */
    has(t,
        "speculative_config:\n  decoding_type: Draft_Target\n  max_draft_len: 5\n  speculative_model: org/small-1B\n");
    has(t, "--config trtllm.yaml");
    p.draft = "a'b";
    for (int i = 0; i < EMIT_ENGINES; i++)
        assert_int_equal(emit_command(a, (enum emit_engine)i, &p, &none, &e), ERR_USAGE);
    p.drafting = EMIT_MTP;
    has(command(a, EMIT_VLLM, &p), "'{\"method\": \"mtp\",\n    \"num_speculative_tokens\": 5}'");
    has(command(a, EMIT_SGLANG, &p), "--speculative-algorithm NEXTN");
    has(command(a, EMIT_TRTLLM, &p), "decoding_type: MTP\n  num_nextn_predict_layers: 5\n");
    p.drafting = EMIT_EAGLE;
    has(command(a, EMIT_VLLM, &p), "\"model\": \"HEAD\"");
    has(command(a, EMIT_SGLANG, &p), "--speculative-algorithm EAGLE");
    assert_non_null(emit_refusal(EMIT_TRTLLM, &p));
    p.draft_nodes = 17; /* a tree: SGLang alone, which hangs the likeliest itself */
    p.draft_wide = 3;
    s = command(a, EMIT_SGLANG, &p);
    has(s, "--speculative-num-steps 5");
    has(s, "--speculative-eagle-topk 3");
    has(s, "--speculative-num-draft-tokens 18");
    assert_non_null(emit_refusal(EMIT_VLLM, &p));
    assert_non_null(emit_refusal(EMIT_TRTLLM, &p));
    p.drafting = EMIT_MEDUSA;
    assert_non_null(emit_refusal(EMIT_SGLANG, &p));
    p.draft_nodes = 0;
    has(command(a, EMIT_VLLM, &p), "\"method\": \"medusa\",\n    \"model\": \"HEAD\"");
    assert_non_null(emit_refusal(EMIT_TRTLLM, &p));
    p.layout.pp = 2;
    for (int i = 0; i < EMIT_ENGINES; i++) assert_non_null(emit_refusal((enum emit_engine)i, &p));
    arena_close(a);
    (void)state;
}

static void test_pools(void **state)
{
    struct arena *a = arena_open();
    struct emit_plan p = plain();
    p.prefill = 2;
    p.mixed = true;
    const char *v = command(a, EMIT_VLLM, &p), *s = command(a, EMIT_SGLANG, &p), *t = command(a, EMIT_TRTLLM, &p);
    for (int i = 0; i < EMIT_ENGINES; i++)
        has(command(a, (enum emit_engine)i, &p), "2 copies of 4 GPUs prefill and 1 decode");
    has(v, "--kv-transfer-config '{\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\"}'");
    has(s, "--disaggregation-mode prefill");
    has(s, "--disaggregation-mode decode");
    has(s, "--pd-disaggregation");
    lacks(s, "mixed");
    has(t, "cache_transceiver_config:\n  backend: DEFAULT\n");
    has(t, "trtllm-serve disaggregated -c FILE");
    arena_close(a);
    (void)state;
}

static void test_quoting(void **state)
{
    struct arena *a = arena_open();
    struct emit_plan p = plain();
    p.model = "it's $(rm) `x`\n; \033[2J";
    for (int i = 0; i < EMIT_ENGINES; i++) has(command(a, (enum emit_engine)i, &p), " 'it'\\''s $(rm) `x`?; ?[2J' ");
    p.model = "-f";
    has(command(a, EMIT_VLLM, &p), "vllm serve '-f' ");
    enum emit_engine engine;
    struct err e = {0};
    assert_int_equal(emit_find("sglang", &engine, &e), ERR_OK);
    assert_int_equal(engine, EMIT_SGLANG);
    assert_int_equal(emit_find("tgi", &engine, &e), ERR_USAGE);
    arena_close(a);
    (void)state;
}

/* No line is wider than a terminal, whatever is on it. */
static void test_width(void **state)
{
    struct arena *a = arena_open();
    struct emit_plan p = plain();
    p.kv = p.weights = "fp8";
    p.fp8_on_load = true;
    for (int i = 0; i < EMIT_ENGINES; i++)
        for (const char *at = command(a, (enum emit_engine)i, &p); *at;) {
            const char *end = strchr(at, '\n');
            assert_true(end && end - at <= 80);
            at = end + 1;
        }
    arena_close(a);
    (void)state;
}

/* Adapters: each engine's own names, all products unless some are named. */
static void test_adapters(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct emit_plan p = plain();
    lacks(command(a, EMIT_VLLM, &p), "lora");
    p.adapters = (struct model_adapters){.slots = 7, .rank = 32, .among = 50};
    p.host_adapters = 7;
    has(command(a, EMIT_VLLM, &p), "--enable-lora");
    has(command(a, EMIT_VLLM, &p), "--max-loras 7");
    has(command(a, EMIT_VLLM, &p), "--max-lora-rank 32");
    lacks(command(a, EMIT_VLLM, &p), "--max-cpu-loras");
    lacks(command(a, EMIT_VLLM, &p), "--lora-target-modules");
    has(command(a, EMIT_SGLANG, &p), "--max-loras-per-batch 7");
    has(command(a, EMIT_SGLANG, &p), "--lora-target-modules all");
    assert_non_null(emit_refusal(EMIT_TRTLLM, &p));
    p.adapters.rank = 24;
    assert_non_null(emit_refusal(EMIT_VLLM, &p));
    has(command(a, EMIT_SGLANG, &p), "--max-lora-rank 24");
    p.adapters.rank = 640;
    assert_non_null(emit_refusal(EMIT_VLLM, &p));
    p.adapters.rank = 320;
    assert_null(emit_refusal(EMIT_VLLM, &p));
    p.host_adapters = 50;
    p.adapters.modules = LORA_V | LORA_KV_A;
    p.adapters.sharded = true;
    has(command(a, EMIT_VLLM, &p), "--max-cpu-loras 50");
    has(command(a, EMIT_VLLM, &p), "--fully-sharded-loras");
    has(command(a, EMIT_VLLM, &p), "v_proj kv_a_proj_with_mqa");
    assert_non_null(emit_refusal(EMIT_SGLANG, &p));
    p.adapters.sharded = false;
    has(command(a, EMIT_SGLANG, &p), "--max-loaded-loras 50");
    arena_close(a);
}

/* Engines load a directory or an id, no JSON file. */
static void test_source(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    assert_string_equal(emit_source(a, "x/y/config.json", "?"), "x/y");
    assert_string_equal(emit_source(a, "config.json", "?"), ".");
    assert_string_equal(emit_source(a, "/config.json", "?"), "/");
    assert_string_equal(emit_source(a, "x/q14.json", "?"), "?");
    assert_string_equal(emit_source(a, "Qwen/Qwen3-14B", "?"), "Qwen/Qwen3-14B");
    assert_string_equal(emit_source(a, "x.json/model", "?"), "x.json/model");
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_source),  cmocka_unit_test(test_plain),
                                       cmocka_unit_test(test_formats), cmocka_unit_test(test_adapters),
                                       cmocka_unit_test(test_layouts), cmocka_unit_test(test_mixed),
                                       cmocka_unit_test(test_drafts),  cmocka_unit_test(test_pools),
                                       cmocka_unit_test(test_quoting), cmocka_unit_test(test_width)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
