#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/serve/pages.h"
#include "calc/serve/pool.h"

#define GIB 0x1p30

static struct pages lay(const struct pages_kind *k, size_t n, int64_t align, enum pages_states states)
{
    const struct pages_rule rule = {.block_tokens = 16, .align_tokens = align, .states = states, .chunk_tokens = 256};
    struct pages p = {0};
    struct err e = {.code = ERR_OK};
    if (pages_lay(k, n, &rule, &p, &e) != ERR_OK) fail_msg("%s", e.text);
    return p;
}

static double padding_percent(const struct pages *p)
{
    return 100 * ((double)p->page_bytes / (double)p->state_bytes - 1);
}

/* State of a gated delta rule in bytes: fp32 matrices of 128 x 128 a value head, three bf16 columns of a convolution
 * over queries, keys (16 heads) and values. Of Mamba-2: heads x dim x state elements, and columns over x, B and C. */
static int64_t delta_bytes(int64_t v_heads) { return v_heads * 128 * 128 * 4 + (2 * 16 * 128 + v_heads * 128) * 3 * 2; }

static int64_t ssd_bytes(int64_t heads, int64_t dim, int64_t state, int64_t groups, int64_t element_bytes)
{
    return heads * dim * state * element_bytes + (heads * dim + 2 * groups * state) * 3 * 2;
}

/* "Setting attention block size to N tokens", "Padding mamba page size by P%": start-up logs of vLLM. */
static void test_logged_blocks(void **state)
{
    (void)state;
    const struct {
        const char *model;
        int64_t token_bytes, state_bytes, block;
        double padding; /* NAN: the log does not print it */
    } logs[] = {
        {"Qwen3.5-27B", 2 * 4 * 256 * 2, delta_bytes(48), 784, .13},
        {"Qwen3.5-27B, fp8 cache", 2 * 4 * 256, delta_bytes(48), 1568, .13},
        {"Qwen3.5-9B", 2 * 4 * 256 * 2, delta_bytes(32), 528, (double)NAN},
        {"Qwen3.5-9B, fp8 cache", 2 * 4 * 256, delta_bytes(32), 1056, .76},
        {"Qwen3.5-0.8B", 2 * 2 * 256 * 2, delta_bytes(16), 544, 2.64},
        {"Qwen3.6-35B-A3B, fp8 cache", 2 * 2 * 256, delta_bytes(32), 2096, 0},
        {"Nemotron-3-Nano-30B-A3B, fp8 cache", 2 * 2 * 128, ssd_bytes(64, 64, 128, 8, 4), 4176, .19},
        {"Nemotron-Nano-9B-v2, bf16 states", 2 * 8 * 128 * 2, ssd_bytes(128, 80, 128, 8, 2), 672, (double)NAN},
        {"LFM2.5-1.2B", 2 * 8 * 64 * 2, 2048 * 2 * 2, 16, 300},
    };
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        const struct pages_kind k[] = {{.keep = PAGES_TOKENS, .layers = 5, .bytes = logs[i].token_bytes},
                                       {.keep = PAGES_STATE, .layers = 11, .bytes = logs[i].state_bytes}};
        const struct pages p = lay(k, 2, 16, PAGES_STATES_NONE);
        if (p.block_tokens != logs[i].block) fail_msg("%s: %lld", logs[i].model, (long long)p.block_tokens);
        if (fabs(padding_percent(&p) - logs[i].padding) > .005)
            fail_msg("%s: padded by %.3f%%", logs[i].model, padding_percent(&p));
        assert_int_equal(p.page_bytes, logs[i].block * logs[i].token_bytes);
    }
}

static struct pool pool_of(const struct pages *p, const char *engine, double pool_bytes, int64_t len, int64_t seqs)
{
    struct pool_request q;
    struct pool out = {0};
    struct err e = {.code = ERR_OK};
    const struct pool_engine *g = NULL;
    if (pool_engine_find(engine, &g, &e) != ERR_OK) fail_msg("%s", e.text);
    if (pool_defaults(g, 40 * GIB, false, true, len, &q, &e) != ERR_OK) fail_msg("%s", e.text);
    q.pages = p;
    q.pool_bytes = pool_bytes;
    q.max_num_seqs = seqs;
    q.activation_bytes = 0;
    if (pool_compute(&q, &out, &e) != ERR_OK) fail_msg("%s", e.text);
    return out;
}

static void near_to(double found, double wanted, double tolerance)
{
    if (!(fabs(found - wanted) <= tolerance)) fail_msg("%.17g is not %.17g within %g", found, wanted, tolerance);
}

/* Tokens and concurrency that the same logs print, from the memory that they print or, where they do not, from the only
 * number of blocks that gives both. */
static void test_logged_pools(void **state)
{
    (void)state;
    /* vLLM issue 40691, 0.19, H20: 290,864 tokens, 33.04 times 32,768. floor(1487 / 4) * 784; 1487 / (42 + 3). */
    const struct pages_kind dense[] = {{.keep = PAGES_TOKENS, .layers = 16, .bytes = 4096},
                                       {.keep = PAGES_STATE, .layers = 48, .bytes = delta_bytes(48)}};
    struct pages p = lay(dense, 2, 16, PAGES_STATES_NONE);
    assert_int_equal(p.groups, 4);
    assert_int_equal(p.group_layers, 16);
    struct pool v = pool_of(&p, "vllm-v1", 1487.0 * 16 * 784 * 4096, 32768, 16);
    assert_int_equal(v.blocks, 1487);
    assert_int_equal(v.tokens, 290864);
    near_to(v.max_concurrency, 33.04, .005);

    /* 0.21, prefix caching, one card: 1.28 GiB, 33,536 tokens, 1.68 times 65,536. 64 blocks; 32 + 3*2 a sequence. */
    const struct pages_kind experts[] = {{.keep = PAGES_TOKENS, .layers = 10, .bytes = 1024},
                                         {.keep = PAGES_STATE, .layers = 30, .bytes = delta_bytes(32)}};
    p = lay(experts, 2, 16, PAGES_STATES_ALIGN);
    v = pool_of(&p, "vllm-0.21", 1.28 * GIB, 65536, 1);
    assert_int_equal(v.tokens, 33536);
    near_to(v.max_concurrency, 1.68, .005);
    p.states = PAGES_STATES_NONE; /* the peers' count, a page a state: 64/35 */
    if (fabs(pool_of(&p, "vllm-0.21", 1.28 * GIB, 65536, 1).max_concurrency - 1.68) < .1) fail_msg("one page a state");

    /* LFM2.5-1.2B: 2 padding layers, 217,264 tokens, 313.37 times 2,048. */
    const struct pages_kind conv[] = {{.keep = PAGES_STATE, .layers = 10, .bytes = 8192},
                                      {.keep = PAGES_TOKENS, .layers = 6, .bytes = 2048}};
    p = lay(conv, 2, 16, PAGES_STATES_NONE);
    assert_int_equal(p.padding_layers, 2);
    assert_int_equal(p.groups, 3);
    v = pool_of(&p, "vllm-v1", 40738.0 * 6 * 32768, 2048, 8);
    assert_int_equal(v.tokens, 217264);
    near_to(v.max_concurrency, 313.37, .005);

    /* The same with a drafter of 5 windowed layers that drafts 7 tokens, prefix caching: blocks of 832 (1.71 %), 1,018
     * of them, 8.78 times 4,096 (4 groups of 5 blocks, 10 of 2 + 7, one of 5 + 1). */
    const int64_t columns = delta_bytes(48) + 7 * (2 * 16 * 128 + 48 * 128) * 2;
    const struct pages_kind drafted[] = {{.keep = PAGES_TOKENS, .layers = 16, .bytes = 4096},
                                         {.keep = PAGES_STATE, .layers = 48, .bytes = columns},
                                         {.keep = PAGES_WINDOW, .layers = 5, .bytes = 4096, .window_tokens = 2048}};
    const struct pages_rule seven = {
        .block_tokens = 16, .align_tokens = 16, .states = PAGES_STATES_ALIGN, .draft_tokens = 7};
    struct err e = {.code = ERR_OK};
    assert_int_equal(pages_lay(drafted, 3, &seven, &p, &e), ERR_OK);
    assert_int_equal(p.block_tokens, 832);
    near_to(padding_percent(&p), 1.71, .005);
    assert_int_equal(p.padding_layers, 4 + 2);
    v = pool_of(&p, "vllm-runner-v2", 1018.0 * 5 * 832 * 4096, 4096, 4);
    assert_int_equal(v.blocks, 1018);
    near_to(v.max_concurrency, 8.78, .005);
    assert_int_equal(v.tokens, 35945);

    /* Gemma 3 27B: 8 padding layers, 205,696 tokens from 109.86 GiB in 89,994 blocks. */
    const struct pages_kind windows[] = {{.keep = PAGES_WINDOW, .layers = 52, .bytes = 8192, .window_tokens = 1024},
                                         {.keep = PAGES_TOKENS, .layers = 10, .bytes = 8192}};
    p = lay(windows, 2, 16, PAGES_STATES_NONE);
    assert_int_equal(p.padding_layers, 8);
    v = pool_of(&p, "vllm-v1", 89994.0 * 10 * 16 * 8192, 0, 8);
    assert_int_equal(v.tokens, 205696);
}

/* Blocks of a sequence by going through its tokens: a block of a group is held when a token in it is. */
static int64_t count_blocks(const struct pages_kind *k, int64_t block, int64_t tokens, int64_t step)
{
    int64_t n = 0;
    for (int64_t first = 0; first < tokens; first += block) {
        const int64_t end = first + block < tokens ? first + block : tokens;
        bool held = false;
        for (int64_t t = first; t < end; t++) {
            const int64_t back = tokens - t; /* of the last token: 1 */
            held = held || k->keep == PAGES_TOKENS || back < k->window_tokens + step;
        }
        n += held;
    }
    return n;
}

static void test_sequences(void **state)
{
    (void)state;
    const struct pages_kind k[] = {{.keep = PAGES_TOKENS, .layers = 7, .bytes = 12},
                                   {.keep = PAGES_WINDOW, .layers = 15, .bytes = 12, .window_tokens = 101},
                                   {.keep = PAGES_STATE, .layers = 22, .bytes = 997}};
    struct pages p = lay(k, 3, 16, PAGES_STATES_NONE);
    assert_int_equal(p.block_tokens, 96); /* 16 * ceil(997 / 192) */
    assert_int_equal(p.groups, 1 + 3 + 4);
    assert_int_equal(p.padding_layers, 8 * 7 - 44);
    for (int64_t len = 1; len < 1500; len += 13) {
        const int64_t step = 37, own = count_blocks(&k[0], 96, len, step), some = count_blocks(&k[1], 96, len, step);
        const int64_t most = pages_of_sequence(&p, len, step);
        /* a window may begin anywhere in a block, so one more is set aside than it can hold from a boundary */
        assert_in_range(most, own + 3 * some + 4, own + 3 * (some + 1) + 4);
        p.states = PAGES_STATES_ALIGN;
        assert_int_equal(pages_of_sequence(&p, len, step), most + 4);
        p.states = PAGES_STATES_ALL;
        assert_int_equal(pages_of_sequence(&p, len, step), most + 4 * (own - 1));
        p.states = PAGES_STATES_NONE;
        assert_in_range(pages_longest(&p, most, step, 100000), len, len + 95);
    }
    assert_int_equal(pages_longest(&p, 3, 1, 100), 0);
    assert_int_equal(pages_longest(&p, 1 << 30, 1, 4099), 4099);
}

/* 1.5 times: 12 and 13 layers make groups of 13, 12 and 18 of 12. Kinds that keep alike are one type. */
static void test_groups(void **state)
{
    (void)state;
    struct pages_kind k[] = {{.keep = PAGES_TOKENS, .layers = 13, .bytes = 31},
                             {.keep = PAGES_WINDOW, .layers = 5, .bytes = 31, .window_tokens = 129},
                             {.keep = PAGES_WINDOW, .layers = 7, .bytes = 31, .window_tokens = 129}};
    struct pages p = lay(k, 3, 16, PAGES_STATES_NONE);
    assert_int_equal(p.types_n, 2);
    assert_int_equal(p.group_layers, 13);
    assert_int_equal(p.groups, 2);
    k[0].layers = 18;
    p = lay(k, 3, 16, PAGES_STATES_NONE);
    assert_int_equal(p.group_layers, 12);
    assert_int_equal(p.groups, 3);
    /* Tokens half as wide: blocks twice as long. */
    k[1].bytes = k[2].bytes = 62;
    p = lay(k, 3, 16, PAGES_STATES_NONE);
    assert_int_equal(p.page_bytes, 62 * 16);
    assert_int_equal(p.type[0].block_tokens, 32);
    assert_int_equal(p.type[1].block_tokens, 16);
    assert_int_equal(p.block_tokens, 16);
    /* Chunks of the scan: 997 bytes in tokens of 12 are 84; a multiple of lcm(16, 256). */
    const struct pages_kind s[] = {{.keep = PAGES_TOKENS, .layers = 3, .bytes = 12},
                                   {.keep = PAGES_STATE, .layers = 3, .bytes = 997}};
    assert_int_equal(lay(s, 2, 16, PAGES_STATES_ALL).block_tokens, 256);
    assert_int_equal(lay(s, 2, 64, PAGES_STATES_NONE).block_tokens, 128);
}

static void test_states_alone(void **state)
{
    (void)state;
    const struct pages_kind k = {.keep = PAGES_STATE, .layers = 61, .bytes = 10007};
    struct pages_rule rule = {.block_tokens = 16, .align_tokens = 16, .max_model_len_tokens = 4099};
    struct pages p;
    struct err e = {.code = ERR_OK};
    assert_int_equal(pages_lay(&k, 1, &rule, &p, &e), ERR_OK);
    const struct pool v = pool_of(&p, "vllm-v1", 7.0 * 61 * 10007 + 5, 4099, 3);
    assert_int_equal(v.blocks, 7);
    assert_int_equal(v.tokens, 7 * 4099);
    near_to(v.max_concurrency, 7, 0);
    rule.max_model_len_tokens = 0;
    assert_int_equal(pages_lay(&k, 1, &rule, &p, &e), ERR_USAGE);
}

/* From PR 38270 a sequence must have a block for its state; before, the engine ran fewer without a word. */
static void test_verdicts(void **state)
{
    (void)state;
    const struct pages_kind k[] = {{.keep = PAGES_TOKENS, .layers = 16, .bytes = 4096},
                                   {.keep = PAGES_STATE, .layers = 48, .bytes = delta_bytes(48)}};
    const struct pages p = lay(k, 2, 16, PAGES_STATES_NONE);
    const double block = 16.0 * 784 * 4096;
    char text[320];
    struct pool v = pool_of(&p, "vllm-0.21", 969 * block, 132000, 1024);
    assert_int_equal(v.verdict, POOL_FEW_STATES);
    near_to(v.short_bytes, 55 * block, 0);
    const struct pool_request q = {.max_num_seqs = 1024};
    assert_non_null(strstr(pool_explain(&q, &v, text, sizeof text), "max_num_seqs 1024"));
    assert_int_equal(pool_of(&p, "vllm-0.21", 969 * block, 132000, 969).verdict, POOL_STARTS);
    assert_int_equal(pool_of(&p, "vllm-v1", 969 * block, 132000, 1024).verdict, POOL_STARTS);
    /* 100 blocks: 3 of states, 97 of 784 tokens. */
    v = pool_of(&p, "vllm-0.21", 100 * block, 132000, 16);
    assert_int_equal(v.verdict, POOL_LEN_TOO_BIG);
    assert_int_equal(v.longest_tokens, 97 * 784);
    /* The second runner prints max_concurrency * max_model_len: 4.33 and so on. */
    v = pool_of(&p, "vllm-runner-v2", 969 * block, 131072, 16);
    assert_int_equal(v.tokens, (int64_t)(969.0 / (168 + 3) * 131072));
}

static void refused(const struct pages_kind *k, size_t n, struct pages_rule rule, const char *word)
{
    struct pages p;
    struct err e = {.code = ERR_OK};
    if (pages_lay(k, n, &rule, &p, &e) == ERR_OK) fail_msg("laid out: %s", word);
    if (!strstr(e.text, word)) fail_msg("\"%s\" has no \"%s\"", e.text, word);
}

static void test_refusals(void **state)
{
    (void)state;
    const struct pages_rule rule = {.block_tokens = 16, .align_tokens = 16};
    struct pages_kind k[] = {{.keep = PAGES_TOKENS, .layers = 3, .bytes = 31},
                             {.keep = PAGES_WINDOW, .layers = 5, .bytes = 47, .window_tokens = 129}};
    refused(k, 2, rule, "cannot be made equal");
    refused(k, 0, rule, "kinds of layers");
    refused(k, 1, (struct pages_rule){.block_tokens = 0, .align_tokens = 16}, "block");
    refused(k, 1, (struct pages_rule){.block_tokens = 16, .align_tokens = 0}, "alignment");
    k[1].window_tokens = 0;
    refused(k, 2, rule, "window");
    k[0].layers = 0;
    refused(k, 1, rule, "layers");
    k[0] = (struct pages_kind){.keep = PAGES_TOKENS, .layers = 3, .bytes = INT64_MAX / 2};
    refused(k, 1, rule, "64 bits");
    k[0].bytes = 3;
    k[1] = (struct pages_kind){.keep = PAGES_STATE, .layers = 3, .bytes = INT64_MAX - 1};
    refused(k, 2, (struct pages_rule){.block_tokens = 1, .align_tokens = INT64_MAX / 2}, "64 bits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logged_blocks), cmocka_unit_test(test_logged_pools), cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_groups),        cmocka_unit_test(test_states_alone), cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
