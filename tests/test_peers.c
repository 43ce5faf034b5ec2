/* Mistakes of other tools: one test each for those that no other test names, and a table of all of them that is held
 * against the tests that there are and against the list of mistakes. Numbers on both sides are that list's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/model/stored.h"
#include "calc/time/kernel.h"
#include "calc/time/step.h"
#include "tests/csv.h"
#include "tests/peers.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

struct bench {
    struct arena *a;
    struct model *m; /* steps borrow both: in the arena */
    struct hw *hw;
    struct step *s;
    double v[STEP_VALUES_N];
};

static void close_to(double got, double want, double within, const char *what)
{
    if (!(fabs(got - want) <= within * fabs(want))) fail_msg("%s: %.17g, want %.17g", what, got, want);
}

static const struct cost_conventions COURSE = {.causal_full = true,
                                               .embed_full_table = true,
                                               .mlp_fused = true,
                                               .norms_uncounted = true,
                                               .activations_uncounted = true};

static struct bench open_on(const char *model, const char *gpu)
{
    struct bench b = {.a = arena_open()};
    b.m = arena_array(b.a, 1, sizeof *b.m);
    b.hw = arena_array(b.a, 1, sizeof *b.hw);
    assert_true(b.m && b.hw);
    struct err e = {0};
    if (model_load(b.a, model, NULL, 0, b.m, &e) != ERR_OK || hw_load(b.a, gpu, b.hw, &e) != ERR_OK)
        fail_msg("%s", e.text);
    return b;
}

static void compile(struct bench *b, enum step_fidelity fidelity, bool course)
{
    const struct step_setup setup = {.model = b->m,
                                     .hw = b->hw,
                                     .fidelity = fidelity,
                                     .conventions = course ? COURSE : (struct cost_conventions){0},
                                     .block_tokens = 16};
    struct err e = {0};
    if (step_compile(b->a, &setup, &b->s, &e) != ERR_OK) fail_msg("%s", e.text);
}

static struct bench open_bench(const char *model, enum step_fidelity fidelity, bool course)
{
    struct bench b = open_on(model, "h100-sxm");
    compile(&b, fidelity, course);
    return b;
}

static void eval(struct bench *b, double B, double S)
{
    double *column[STEP_VALUES_N];
    const double M = 1;
    for (size_t i = 0; i < STEP_VALUES_N; i++) column[i] = &b->v[i];
    step_eval(b->s, 1, &B, &S, &S, &M, column);
}

static struct step_op find_op(struct bench *b, enum step_phase phase, double B, double S, const char *name)
{
    struct step_op *ops;
    struct err e = {0};
    size_t n;
    assert_int_equal(step_ops(b->a, b->s, phase, B, S, S, 1, &ops, &n, &e), ERR_OK);
    for (size_t i = 0; i < n; i++)
        if (strcmp(ops[i].name, name) == 0) return ops[i];
    fail_msg("no operator %s", name);
    return ops[0];
}

static struct cost_parameters parameters(struct bench *b)
{
    struct cost_parameters p;
    struct err e = {0};
    assert_int_equal(cost_parameters(b->a, b->m, &COURSE, &p, &e), ERR_OK);
    return p;
}

static double cached_per_token(const struct bench *b)
{
    return step_kv_bytes_per_token_full(b->s) + step_kv_bytes_per_token_windowed(b->s);
}

/* ---- memory ---- */

/* What a prefill has to hold grows with the tokens; a matrix of scores would grow with their square. */
static void test_activations_are_not_square(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-2-7b", STEP_ROOFLINE, false);
    eval(&b, 1, 3000);
    const double one = b.v[STEP_activation_bytes];
    eval(&b, 1, 12000);
    assert_true(b.v[STEP_activation_bytes] < 4.0001 * one);
    assert_true(b.v[STEP_activation_bytes] < 12000.0 * 12000 * 32 * 2 / 8); /* scores of 32 heads */
    const struct step_op core = find_op(&b, STEP_PREFILL, 1, 12000, "attention");
    close_to(core.activation_bytes + core.kv_bytes, 32 * 12000.0 * 4096 * 2 * 4, 1e-12,
             "queries, keys, values and output");
    arena_close(b.a);
}

/* 7B: 32,000 * 4,096 in the embedding and as many in the head, 65 norms of 4,096; 2 bytes each. */
static void test_memory_has_both_ends(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-2-7b", STEP_BOUND, false);
    const double layers = 32 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008), ends = 2 * 32000.0 * 4096;
    assert_true(step_weight_bytes(b.s) == 2 * (layers + ends + 65 * 4096.0));
    eval(&b, 1, 1000);
    assert_true(b.v[STEP_memory_bytes] > step_weight_bytes(b.s) + b.v[STEP_kv_bytes]);
    arena_close(b.a);
}

static void test_mlp_activations_have_its_width(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-2-13b", STEP_ROOFLINE, false); /* D 5,120, F 13,824 */
    const struct step_op down = find_op(&b, STEP_PREFILL, 1, 700, "down_proj");
    assert_true(down.activation_bytes == 40 * 700.0 * (13824 + 5120) * 2);
    arena_close(b.a);
}

static void test_heads_of_their_own(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-2-13b", STEP_BOUND, true);
    const struct cost_parameters p = parameters(&b);
    assert_true(p.total == 13015449600.0 && p.total - p.head == 12851609600.0); /* 12.852 when tied */
    assert_true(b.m->vocab == 32000 && p.embedding == 32000.0 * 5120);
    arena_close(b.a);
}

static void test_cache_of_gemma(void **state)
{
    (void)state;
    struct bench b = open_bench("gemma-2-9b", STEP_BOUND, false); /* 42 layers, 8 heads of 256; D/N is 224 */
    assert_true(cached_per_token(&b) == 344064 && 42 * 2 * 8 * (3584 / 16) * 2 == 301056);
    arena_close(b.a);
}

static void test_cache_has_a_format_of_its_own(void **state)
{
    (void)state;
    struct bench b = open_on("llama-3.1-8b", "h100-sxm");
    struct err e = {0};
    assert_int_equal(dtype_find("fp8", &b.m->kv, &e), ERR_OK);
    compile(&b, STEP_BOUND, false);
    assert_true(cached_per_token(&b) == 65536 && step_weight_bytes(b.s) == 2 * 8030261248.0);
    arena_close(b.a);
}

/* DeepSeek-V3's experts are 2,048 wide, its three dense layers 18,432: 1,340 GB in bf16, not 11,542. */
static void test_width_of_an_expert(void **state)
{
    (void)state;
    struct bench b = open_on("deepseek-v3", "h200-sxm");
    const struct cost_parameters p = parameters(&b);
    close_to(2 * p.total, 1342e9, 2e-3, "bytes in bf16");
    assert_true(p.routed == 58 * 256 * 3 * 7168.0 * 2048);
    arena_close(b.a);
}

static void test_gated_mlp_has_three_matrices(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-2-70b", STEP_ROOFLINE, false); /* D 8,192, F 28,672, which is 3.5*D */
    double bytes = find_op(&b, STEP_DECODE, 1, 9, "up_proj").weight_bytes;
    bytes += find_op(&b, STEP_DECODE, 1, 9, "down_proj").weight_bytes;
    assert_true(bytes == 80 * 3 * 8192.0 * 28672 * 2);
    const struct cost_parameters p = parameters(&b);
    assert_true(p.total - p.embedding - p.head == 80 * (2 * 8192.0 * (8192 + 1024) + 3 * 8192.0 * 28672));
    assert_true(p.total - p.embedding - p.head > 1.06 * 12 * 80 * 8192.0 * 8192);
    arena_close(b.a);
}

/* Gemma 4 26B: the 5 layers without a window use their keys for values, 2 heads of 512; 25 have 8 heads of 256 of both.
 * Two tensors are kept of each, as engines log it. */
static void test_keys_that_are_values(void **state)
{
    (void)state;
    struct bench b = open_bench("gemma-4-26b-a4b", STEP_BOUND, false);
    assert_true(step_kv_bytes_per_token_windowed(b.s) == 25 * 2 * 8 * 256 * 2);
    assert_true(step_kv_bytes_per_token_full(b.s) == 5 * 2 * 2 * 512 * 2);
    arena_close(b.a);
}

/* gpt-oss-120b is a file of 65.25 GB; at half a byte a weight of its experts it would be 61.58. */
static void test_bytes_of_four_bits(void **state)
{
    (void)state;
    struct bench b = open_bench("gpt-oss-120b", STEP_BOUND, false);
    close_to(step_weight_bytes(b.s), 65.25e9, 1e-3, "bytes of weights");
    const struct cost_parameters p = parameters(&b);
    close_to(step_weight_bytes(b.s) - p.routed * (4.25 - 4) / 8, 61.58e9, 2e-3, "without scales");
    arena_close(b.a);
}

/* Attention alone has a cache. LFM2: 6 of 16 layers, 8 heads of 64; Jamba: 4 of 32, 8 of 128; Qwen 3.5: 16 of 64, 4 of
 * 256; MiniMax-M1: 10 of 80, 8 of 128. */
static void test_recurrent_layers_have_no_cache(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double layers, all, heads, width;
    } ROWS[] = {{"lfm2-1.2b", 6, 16, 8, 64},
                {"jamba-1.5-mini", 4, 32, 8, 128},
                {"qwen3.5-27b", 16, 64, 4, 256},
                {"minimax-m1-80k", 10, 80, 8, 128}};
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct bench b = open_bench(ROWS[i].model, STEP_BOUND, false);
        assert_true((double)b.m->layers == ROWS[i].all);
        assert_true(cached_per_token(&b) == ROWS[i].layers * 2 * ROWS[i].heads * ROWS[i].width * 2);
        assert_true(step_state_bytes_per_sequence(b.s) > 0);
        arena_close(b.a);
    }
}

/* gpt-oss-20b: 12 of 24 layers see 128 tokens; Gemma 3n: 28 of 35 see 512, and 15 of the 35 have no cache of their own.
 */
static void test_windows_and_shared_layers(void **state)
{
    (void)state;
    struct bench b = open_bench("gpt-oss-20b", STEP_BOUND, false);
    const double layer = 2 * 8 * 64 * 2;
    eval(&b, 3, 5000);
    assert_true(b.v[STEP_kv_bytes] == 3 * 12 * layer * (5000 + 128));
    arena_close(b.a);
    b = open_bench("gemma-3n-e4b", STEP_BOUND, false);
    assert_true(cached_per_token(&b) == 20 * 2 * 2 * 256 * 2);
    eval(&b, 1, 9000);
    assert_true(b.v[STEP_kv_bytes] == 2 * 2 * 256 * 2 * (4 * 9000.0 + 16 * 512));
    arena_close(b.a);
}

/* DeepSeek-V3.2 selects 2,048 keys of the cache, which it keeps whole: 61 layers of 576 elements, and of 128 for the
 * indexer beside them. */
static void test_sparse_attention_keeps_all_keys(void **state)
{
    (void)state;
    struct bench b = open_on("deepseek-v3.2", "h200-sxm");
    compile(&b, STEP_BOUND, false);
    eval(&b, 1, 30000);
    const double index = step_kv_bytes_per_token_index(b.s);
    assert_true(cached_per_token(&b) == 61 * 576 * 2 && index > 0);
    assert_true(b.v[STEP_kv_bytes] == 30000 * (61 * 576 * 2 + index));
    arena_close(b.a);
}

static void test_bytes_of_seventy_billion(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-3.1-70b", STEP_BOUND, false);
    assert_true(step_weight_bytes(b.s) == 2 * 70553706496.0);
    arena_close(b.a);
}

/* ---- flops ---- */

/* A decode step's attention, one kernel, has 4*N*H flops a key, and keys are those of the context. */
static void test_decode_attends_to_its_context(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-3.1-8b", STEP_ROOFLINE, false);
    assert_true(find_op(&b, STEP_DECODE, 7, 5003, "attention").flops == 32 * 7 * 5003.0 * 4 * 32 * 128);
    eval(&b, 1, 1);
    const double one = b.v[STEP_decode_flops];
    eval(&b, 1, 5003);
    assert_true(b.v[STEP_decode_flops] - one == 32 * 5002.0 * 4 * 32 * 128);
    arena_close(b.a);
}

/* Mixtral 8x7B: 2 of 8 experts, 12.9 of 46.7 billion parameters: 25.5 GFLOP a token, not 14.2 (one expert) nor 93
 * (all).
 */
static void test_flops_of_k_experts(void **state)
{
    (void)state;
    struct bench b = open_bench("mixtral-8x7b", STEP_BOUND, false);
    eval(&b, 1, 1);
    close_to(b.v[STEP_decode_flops], 25.5e9, 2e-3, "flops of a token");
    eval(&b, 1, 4096);
    const struct cost_parameters p = parameters(&b);
    close_to(b.v[STEP_prefill_flops], 2 * (p.active - p.embedding - p.head) * 4096, .05, "a prefill");
    assert_true(b.v[STEP_prefill_flops] < 2 * p.total * 4096 / 3);
    arena_close(b.a);
}

/* A row for each token, whatever the phase, and no product. */
static void test_embedding_is_a_gather(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-2-13b", STEP_ROOFLINE, false);
    for (enum step_phase phase = STEP_PREFILL; phase < STEP_PHASES; phase++) {
        const double tokens = phase == STEP_PREFILL ? 900 : 7;
        const struct step_op op = find_op(&b, phase, 7, 900, "embed");
        assert_true(op.flops == 0 && op.weight_bytes == tokens * 5120 * 2);
    }
    arena_close(b.a);
}

/* A product of a few rows has a flop a byte for each row: one multiply-add on two bytes is two flops. */
static void test_intensity_counts_flops(void **state)
{
    (void)state;
    struct bench b = open_bench("llama-2-70b", STEP_ROOFLINE, false);
    close_to(find_op(&b, STEP_DECODE, 1, 900, "down_proj").intensity_flops_per_byte, 1, 1e-3, "a product");
    close_to(find_op(&b, STEP_DECODE, 1, 90000, "attention").intensity_flops_per_byte, 8, 1e-3, "8 heads share a key");
    arena_close(b.a);
}

/* Pairs of chunks add up; the root of the sum of their squares, as one prompt, has others. */
static void test_pieces_of_prompts_add_up(void **state)
{
    (void)state;
    static const double PIECES[][2] = {{512, 0}, {307, 1200}, {1024, 4096}};
    double pairs = 0, squares = 0, loop = 0;
    for (size_t i = 0; i < COUNT(PIECES); i++) {
        pairs += kernel_pairs(PIECES[i][0], PIECES[i][1], 0);
        squares += PIECES[i][0] * PIECES[i][0];
        for (double t = 1; t <= PIECES[i][0]; t++) loop += PIECES[i][1] + t;
    }
    assert_true(pairs == loop);
    assert_true(kernel_pairs(sqrt(squares), 0, 0) < pairs / 5);
}

/* ---- seconds ---- */

/* Llama 2 13B, 16 sequences of 1,024 tokens: 13.4 GB of cache are 4.01 ms, and those of all 16 are read. */
static void test_time_of_a_cache(void **state)
{
    (void)state;
    struct bench b = open_on("llama-2-13b", "h100-sxm");
    b.hw->bandwidth_bytes_per_s = 3.35e12;
    compile(&b, STEP_BOUND, true);
    eval(&b, 16, 1024);
    const double many = b.v[STEP_decode_step_s];
    close_to(many - 2 * 13015449600.0 / 3.35e12, 4.01e-3, 2e-3, "time of the cache");
    eval(&b, 1, 1024);
    close_to((many - b.v[STEP_decode_step_s]) * 3.35e12, 15 * 838860800.0, 1e-9, "of 15 further sequences");
    arena_close(b.a);
}

/* 3,400 GB/s: 7.9 ms for 13B; at as many GiB it would be 7.36. 989 TFLOP/s are 989e12. */
static void test_a_gigabyte_is_decimal(void **state)
{
    (void)state;
    double rate;
    struct err e = {0};
    assert_int_equal(units_parse_rate("3400 GB/s", UNITS_BYTES_PER_S, &rate, &e), ERR_OK);
    assert_true(rate == 3.4e12);
    struct bench b = open_on("llama-2-13b", "h100-sxm");
    b.hw->bandwidth_bytes_per_s = rate;
    compile(&b, STEP_BOUND, true);
    eval(&b, 1, 1024);
    close_to(b.v[STEP_decode_step_s], 26869760000.0 / 3.4e12, 1e-12, "13B at batch 1");
    assert_int_equal(units_parse_rate("989 TFLOP/s", UNITS_FLOPS_PER_S, &rate, &e), ERR_OK);
    assert_true(rate == 989e12);
    arena_close(b.a);
}

/* A product of few rows is as long as its bytes: two of an element in 16 bits. */
static void test_time_of_bytes_not_elements(void **state)
{
    (void)state;
    struct bench b = open_on("llama-2-13b", "a100-80g");
    const struct kernel k = {
        .kind = KERNEL_GEMM, .unit = HW_BF16, .element_bytes = 2, .m = 3, .n = 12288, .k = 12288, .groups = 1};
    struct kernel_work w;
    struct err e = {0};
    if (kernel_work(&k, b.hw, &w, &e) != ERR_OK) fail_msg("%s", e.text);
    close_to(w.memory_s, 2 * (12288.0 * 12288 + 2 * 3 * 12288) / b.hw->bandwidth_bytes_per_s, 1e-12, "seconds");
    assert_true(w.bound_s == w.memory_s);
    arena_close(b.a);
}

/* A decode step reads the latents that a layer keeps: 576 elements a token, where keys and values of all heads are
 * 128*(192+128), 71 times as many. */
static void test_steps_read_latents(void **state)
{
    (void)state;
    struct bench b = open_on("deepseek-v3", "h200-sxm");
    compile(&b, STEP_BOUND, false);
    eval(&b, 9, 1000);
    const double one = b.v[STEP_decode_bytes];
    eval(&b, 9, 5000);
    close_to(b.v[STEP_decode_bytes] - one, 9 * 4000 * 70272.0, 1e-9, "bytes of 4,000 further tokens");
    arena_close(b.a);
}

/* ---- the table ---- */

static char *text_of(struct arena *a, const char *path)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    if (!f) return NULL;
    enum { MOST = 1 << 18 };
    char *text = arena_array(a, MOST, 1);
    if (text) text[fread(text, 1, MOST - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

/* Every test of the table is defined in its file, and run there. */
static void test_tests_of_the_table_are_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < PEERS_N; i++) {
        const struct peers_row *r = &PEERS[i];
        assert_true(r->mistake && (r->file != NULL) == (r->test != NULL));
        if (!r->file) continue;
        struct arena *a = arena_open();
        const char *text = text_of(a, arena_printf(a, "tests/%s.c", r->file));
        if (!text) fail_msg("%s %d: no tests/%s.c", r->tool, r->bullet, r->file);
        const char *define = strstr(text, arena_printf(a, "static void %s(void", r->test));
        const char *list = strstr(text, "struct CMUnitTest "), *use = list ? strstr(list, r->test) : NULL;
        if (!define || !use) fail_msg("%s %d, %s: no %s in %s", r->tool, r->bullet, r->mistake, r->test, r->file);
        arena_close(a);
    }
}

static bool listed(const char *tool, int bullet)
{
    for (size_t i = 0; i < PEERS_N; i++)
        if (strcmp(PEERS[i].tool, tool) == 0 && PEERS[i].bullet == bullet) return true;
    return false;
}

static int rows_of(const char *tool)
{
    int most = 0;
    for (size_t i = 0; i < PEERS_N; i++)
        if (strcmp(PEERS[i].tool, tool) == 0 && PEERS[i].bullet > most) most = PEERS[i].bullet;
    return most;
}

/* Every bullet of section 2 is in the table, and nothing else; so is every mistake that section 6 names. */
static void test_all_mistakes_are_in_the_table(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    char *text = text_of(a, csv_shared(a, "refs/peers.md"));
    if (!text) {
        arena_close(a);
        skip();
    }
    const char *from = strstr(text, "\n## 2."), *to = from ? strstr(from + 1, "\n## 3.") : NULL;
    assert_true(from && to);
    char tool[64] = "";
    int bullet = 0, tools = 0, bullets = 0;
    for (const char *line = from + 1; line < to; line = strchr(line, '\n') + 1) {
        const char *mark = line + strspn(line, " ");
        if (strncmp(line, "### ", 4) == 0) {
            if (bullet != rows_of(tool)) fail_msg("%s: %d bullets, the table goes to %d", tool, bullet, rows_of(tool));
            const size_t n = strcspn(line + 4, " \n");
            (void)snprintf(tool, sizeof tool, "%.*s", (int)n, line + 4);
            bullet = 0;
            tools++;
        } else if (strncmp(mark, "- ", 2) == 0) {
            bullets++;
            if (!listed(tool, ++bullet)) fail_msg("%s %d: %.100s", tool, bullet, mark);
        }
    }
    assert_true(tools >= 10 && bullets >= 50);
    const char *at = strstr(text, "turned into named negative tests:");
    int named = 1;
    assert_non_null(at);
    for (; *at != '\n'; at++) named += *at == ';';
    assert_int_equal(named, rows_of("named"));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations_are_not_square),
        cmocka_unit_test(test_memory_has_both_ends),
        cmocka_unit_test(test_mlp_activations_have_its_width),
        cmocka_unit_test(test_heads_of_their_own),
        cmocka_unit_test(test_cache_of_gemma),
        cmocka_unit_test(test_cache_has_a_format_of_its_own),
        cmocka_unit_test(test_width_of_an_expert),
        cmocka_unit_test(test_gated_mlp_has_three_matrices),
        cmocka_unit_test(test_keys_that_are_values),
        cmocka_unit_test(test_bytes_of_four_bits),
        cmocka_unit_test(test_recurrent_layers_have_no_cache),
        cmocka_unit_test(test_windows_and_shared_layers),
        cmocka_unit_test(test_sparse_attention_keeps_all_keys),
        cmocka_unit_test(test_bytes_of_seventy_billion),
        cmocka_unit_test(test_decode_attends_to_its_context),
        cmocka_unit_test(test_flops_of_k_experts),
        cmocka_unit_test(test_embedding_is_a_gather),
        cmocka_unit_test(test_intensity_counts_flops),
        cmocka_unit_test(test_pieces_of_prompts_add_up),
        cmocka_unit_test(test_time_of_a_cache),
        cmocka_unit_test(test_a_gigabyte_is_decimal),
        cmocka_unit_test(test_time_of_bytes_not_elements),
        cmocka_unit_test(test_steps_read_latents),
        cmocka_unit_test(test_tests_of_the_table_are_there),
        cmocka_unit_test(test_all_mistakes_are_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
