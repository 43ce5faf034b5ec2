/* The largest batch or context, against a loop over all of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "calc/serve/limit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct step *compile(struct arena *a, struct model *m, struct hw *hw, const char *model, const char *gpu,
                            int64_t tp)
{
    struct err e = {0};
    struct step *s = NULL;
    if (model_load(a, model, NULL, 0, m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(a, gpu, hw, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct step_setup setup = {
        .model = m, .hw = hw, .layout = {.tp = tp}, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    if (step_compile(a, &setup, &s, &e) != ERR_OK) fail_msg("%s: %s", model, e.text);
    return s;
}

struct figures {
    double memory, decode_s, prefill_s;
};

static struct figures at(struct step *s, int64_t batch, int64_t context)
{
    struct figures f;
    const double B = (double)batch, S = (double)context;
    double *out[STEP_VALUES_N] = {0};
    out[STEP_memory_bytes] = &f.memory;
    out[STEP_decode_step_s] = &f.decode_s;
    out[STEP_prefill_s] = &f.prefill_s;
    step_eval(s, 1, &B, &S, &S, NULL, out);
    return f;
}

/* The last n of 1..most before the first that breaks something; *because the first thing it breaks. */
static int64_t loop(const struct limit_request *q, int64_t most, const char **because)
{
    *because = NULL;
    for (int64_t n = 1; n <= most; n++) {
        const bool batch = q->of == LIMIT_BATCH;
        const struct figures f = at(q->step, batch ? n : q->other, batch ? q->other : n);
        if (f.memory > q->capacity_bytes) *because = "memory";
        if (!*because && f.decode_s > q->tpot_s) *because = "TPOT";
        if (!*because && f.prefill_s > q->ttft_s) *because = "TTFT";
        if (*because) return n - 1;
    }
    return most;
}

static void check(const struct limit_request *q, const char *wanted, const char *what)
{
    const char *because;
    const int64_t want = loop(q, q->most, &because);
    const struct limit r = limit_find(q);
    if (r.value != want) fail_msg("%s: %lld, want %lld", what, (long long)r.value, (long long)want);
    if (because ? !r.because || strcmp(r.because, because) != 0 : r.because != NULL)
        fail_msg("%s: because %s, want %s", what, r.because, because);
    if (wanted ? !because || strcmp(because, wanted) != 0 : because != NULL)
        fail_msg("%s: the case should break %s", what, wanted);
    if (r.value) {
        assert_int_equal(q->of == LIMIT_BATCH ? r.at.batch : r.at.context, r.value);
        assert_int_equal(q->of == LIMIT_BATCH ? r.at.context : r.at.batch, q->other);
        const struct figures f = at(q->step, r.at.batch, r.at.context);
        assert_true(!(f.memory > r.at.memory_bytes) && !(f.memory < r.at.memory_bytes));
        assert_true(f.memory <= q->capacity_bytes);
    }
    if (r.because) assert_int_equal(q->of == LIMIT_BATCH ? r.next.batch : r.next.context, r.value + 1);
}

/* Latency limits come from the step itself: what it takes at some batch, so that the limit lies inside the range. */
static void test_batch_against_a_loop(void **state)
{
    static const struct {
        const char *model, *gpu;
        int64_t tp, context;
    } ROWS[] = {{"llama-3.1-8b", "h100-sxm", 1, 4099}, {"llama-2-13b", "a100-80g", 1, 1021},
                {"gemma-3-27b", "h200-sxm", 2, 3001},  {"deepseek-v3", "h200-sxm", 8, 911},
                {"mixtral-8x7b", "mi300x", 1, 1777},   {"mistral-7b-v0.1", "rtx-4090", 1, 5003},
                {"gpt-oss-20b", "h100-sxm", 1, 4099}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct arena *a = arena_open();
        struct model m;
        struct hw hw;
        struct step *s = compile(a, &m, &hw, ROWS[i].model, ROWS[i].gpu, ROWS[i].tp);
        const double fits = 1e15;
        struct limit_request q = {.step = s,
                                  .of = LIMIT_BATCH,
                                  .other = ROWS[i].context,
                                  .most = 2000,
                                  .capacity_bytes = hw_capacity_bytes(&hw),
                                  .tpot_s = (double)NAN,
                                  .ttft_s = (double)NAN};
        const char *because;
        const int64_t in_memory = loop(&q, 2000, &because);
        check(&q, because, ROWS[i].model);
        q.capacity_bytes = fits;
        check(&q, NULL, ROWS[i].model);
        static const int64_t AT[] = {1, 2, 3, 47, 64, 65, 1021, 1999};
        for (size_t k = 0; k < COUNT(AT); k++) {
            q.tpot_s = at(s, AT[k], ROWS[i].context).decode_s; /* holds at AT, no longer one later */
            check(&q, "TPOT", ROWS[i].model);
        }
        q.tpot_s = at(s, 1, ROWS[i].context).decode_s * 0.99;
        check(&q, "TPOT", ROWS[i].model);
        q.tpot_s = (double)NAN;
        q.ttft_s = at(s, 1, ROWS[i].context).prefill_s * 0.99; /* of one prompt: all batches or none */
        check(&q, "TTFT", ROWS[i].model);
        q.ttft_s = at(s, 1, ROWS[i].context).prefill_s;
        check(&q, NULL, ROWS[i].model);
        if (in_memory > 2 && in_memory < 2000) { /* whichever comes first */
            q.capacity_bytes = hw_capacity_bytes(&hw);
            q.tpot_s = at(s, in_memory - 1, ROWS[i].context).decode_s;
            check(&q, "TPOT", ROWS[i].model);
            q.tpot_s = at(s, in_memory + 1, ROWS[i].context).decode_s;
            check(&q, "memory", ROWS[i].model);
        }
        arena_close(a);
    }
}

/* Contexts: a window stops the cache from growing, so that only some layers, or the activations, end it. */
static void test_context_against_a_loop(void **state)
{
    static const struct {
        const char *model;
        int64_t batch;
    } ROWS[] = {{"llama-3.1-8b", 61}, {"gemma-3-4b", 257}, {"mistral-7b-v0.1", 131}, {"gpt-oss-20b", 1021}};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        struct arena *a = arena_open();
        struct model m;
        struct hw hw;
        struct step *s = compile(a, &m, &hw, ROWS[i].model, "h100-sxm", 1);
        struct limit_request q = {.step = s,
                                  .of = LIMIT_CONTEXT,
                                  .other = ROWS[i].batch,
                                  .most = 9001,
                                  .capacity_bytes = at(s, ROWS[i].batch, 6007).memory,
                                  .tpot_s = (double)NAN,
                                  .ttft_s = (double)NAN};
        check(&q, "memory", ROWS[i].model);
        q.capacity_bytes = 1e15;
        q.ttft_s = at(s, 1, 4127).prefill_s;
        check(&q, "TTFT", ROWS[i].model);
        q.ttft_s = (double)NAN;
        q.tpot_s = at(s, ROWS[i].batch, 3001).decode_s;
        const bool windows_only = strcmp(ROWS[i].model, "mistral-7b-v0.1") == 0;
        check(&q, "TPOT", ROWS[i].model);
        if (windows_only) { /* all layers see 4096: beyond that no step takes longer */
            q.tpot_s = at(s, ROWS[i].batch, 4096).decode_s;
            check(&q, NULL, ROWS[i].model);
        }
        arena_close(a);
    }
}

static void test_ends_of_the_range(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct model m;
    struct hw hw;
    struct step *s = compile(a, &m, &hw, "llama-3.1-8b", "h100-sxm", 1);
    struct limit_request q = {.step = s,
                              .of = LIMIT_BATCH,
                              .other = 1021,
                              .capacity_bytes = 1e15,
                              .tpot_s = (double)NAN,
                              .ttft_s = (double)NAN};
    static const int64_t MOST[] = {1, 2, 3, 64, 1000, 1023};
    for (size_t i = 0; i < COUNT(MOST); i++) {
        q.most = MOST[i];
        const struct limit r = limit_find(&q);
        assert_int_equal(r.value, MOST[i]);
        assert_null(r.because);
        assert_int_equal(r.at.batch, MOST[i]);
    }
    q.most = INT64_C(1) << 40;
    q.capacity_bytes = step_weight_bytes(s) * 0.5;
    const struct limit none = limit_find(&q);
    assert_int_equal(none.value, 0);
    assert_string_equal(none.because, "memory");
    assert_int_equal(none.next.batch, 1);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_against_a_loop),
        cmocka_unit_test(test_context_against_a_loop),
        cmocka_unit_test(test_ends_of_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
