/* Adapters: against a count matrix by matrix, and published sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/cost/lora.h"

static double params(struct arena *a, const char *model, const char *text)
{
    struct model m;
    struct lora x;
    struct lora_cost c = {.params = (double)NAN};
    struct err e = {0};
    if (model_load(a, model, NULL, 0, &m, &e) != ERR_OK || lora_parse(text, &x, &e) != ERR_OK ||
        lora_cost(&m, &x, &c, &e) != ERR_OK)
        fail_msg("%s %s: %s", model, text, e.text);
    assert_true(c.flops_per_token == 2 * c.params);
    return c.params;
}

/* "trainable params" that PEFT prints for these models: q and v, and all linear layers. */
static void test_published_sizes(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    assert_true(params(a, "llama-2-7b", "8") == 4194304);
    assert_true(params(a, "llama-2-7b", "16:all") == 39976960);
    assert_true(params(a, "llama-3.1-8b", "16:all") == 41943040);
    assert_true(params(a, "llama-3.1-8b", "8:q_proj,v_proj") == 3407872);
    arena_close(a);
}

/* Both factors of every matrix, one element at a time. */
static void test_count_of_elements(void **state)
{
    static const int SHAPE[][2] = {{4096, 4096},  {1024, 4096},  {1024, 4096}, {4096, 4096},
                                   {14336, 4096}, {14336, 4096}, {4096, 14336}}; /* out, in */
    static const char *const NAMES[] = {"q", "k", "v", "o", "gate", "up", "down"};
    (void)state;
    struct arena *a = arena_open();
    const int rank = 7, layers = 32;
    for (size_t i = 0; i < sizeof SHAPE / sizeof SHAPE[0]; i++) {
        double n = 0;
        for (int l = 0; l < layers; l++)
            for (int r = 0; r < rank; r++) {
                for (int k = 0; k < SHAPE[i][1]; k++) n++;
                for (int k = 0; k < SHAPE[i][0]; k++) n++;
            }
        const char *text = arena_printf(a, "7:%s", NAMES[i]);
        assert_true(params(a, "llama-3.1-8b", text) == n);
    }
    /* an adapter of the MLP alone asks nothing of attention, whatever kind that is */
    assert_true(params(a, "minicpm3-4b", "7:gate,up,down") == 62 * 3 * 7 * (2560.0 + 6400));
    arena_close(a);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *model, *text, *why;
    } CASES[] = {{"deepseek-v3", "8", "latent attention"},
                 {"mixtral-8x7b", "8:all", "routed experts"},
                 {"falcon-mamba-7b", "8", "recurrent mixer"},
                 {"gpt2", "8:gate", "no gate_proj"}};
    static const char *const WRONG[] = {"", "0", "8:", "8:q,", "8:head", "q", "8:qq", "8:q_pro"};
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct lora x;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct model m;
        struct lora_cost c;
        assert_int_equal(model_load(a, CASES[i].model, NULL, 0, &m, &e), ERR_OK);
        assert_int_equal(lora_parse(CASES[i].text, &x, &e), ERR_OK);
        assert_int_equal(lora_cost(&m, &x, &c, &e), ERR_INPUT);
        if (!strstr(e.text, CASES[i].why)) fail_msg("'%s' does not say '%s'", e.text, CASES[i].why);
    }
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        assert_int_equal(lora_parse(WRONG[i], &x, &e), ERR_USAGE);
    /* attention alone stands beside experts; two matrices are all of an ungated MLP */
    assert_true(params(a, "mixtral-8x7b", "8") == 32 * 8.0 * (4096 + 4096 + 4096 + 1024));
    assert_true(params(a, "gpt2", "4:all") == 12 * 4.0 * (4 * 2 * 768 + 2 * (768 + 3072)));
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_sizes),
        cmocka_unit_test(test_count_of_elements),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
