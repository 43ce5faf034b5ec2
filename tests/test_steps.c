/* Whole steps of engines, measured: the figures of steps.json fitted again, and batch-1 decode held against them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/fit/calibrated.h"
#include "calc/fit/steps.h"
#include "calc/model/stored.h"
#include "tests/csv.h"

static const struct {
    const char *published, *name;
} MODELS[] = {
    {"Qwen/Qwen3-32B", "qwen3-32b"},
    {"meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"},
    {"nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b"},
    {"meta-llama/Llama-3.1-70B", "llama-3.1-70b"},
    {"Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b"},
    {"openai/gpt-oss-120b", "gpt-oss-120b"},
    {"MiniMaxAI/MiniMax-M2.5", "minimax-m2.5"},
    {"deepseek-ai/DeepSeek-R1", "deepseek-r1"},
    {"deepseek-ai/DeepSeek-V3", "deepseek-v3"},
    {"LLaMA-2-7B", "llama-2-7b"},
    {"LLaMA-7B", "llama-2-7b"}, /* the same shapes */
    {"LLaMA-2-70B", "llama-2-70b"},
    {"Llama-3.1-8B", "llama-3.1-8b"},
    {"Llama-3.1-70B", "llama-3.1-70b"},
    {"Mixtral-8x7B", "mixtral-8x7b"},
    {"Falcon-180B", "falcon-180b"},
    {"GPT-J-6B", "gpt-j-6b"},
    {"Qwen3-1.7B", "qwen3-1.7b"},
    {"Qwen3-30B-A3B", "qwen3-30b-a3b"},
    {"Qwen3-14B", "qwen3-14b"},
    {"Qwen2.5-72B", "qwen2.5-72b"},
    {"DeepSeek-R1", "deepseek-r1"},
    {"QwQ-32B", "qwen2.5-32b"}, /* a fine-tuning of it */
    {"gpt-oss-20b", "gpt-oss-20b"},
    {"Llama-3.2-90B-Vision", "llama-3.1-70b"}, /* its text layers without images */
};

static const struct {
    const char *published, *name;
} DEVICES[] = {
    {"h100_sxm", "h100-sxm"}, {"h200_sxm", "h200-sxm"},    {"H100-SXM", "h100-sxm"}, {"H200-SXM", "h200-sxm"},
    {"H200", "h200-sxm"},     {"A100-80-SXM", "a100-80g"}, {"A100-80", "a100-80g"},
};

/* Formats as the files call them; NULL: as the model's own file says. */
static const struct {
    const char *published, *name;
} FORMATS[] = {
    {"fp8", "fp8"},
    {"fp8_block", "fp8-block128"},
    {"bf16", NULL},
    {"fp16", NULL},
    {"bf16 (not stated)", NULL},
    {"bf16 dense, mxfp4 experts", NULL},
    {"mxfp4", NULL},
    {"int8", "int8"},
    {"int4-g32", "int4-g32"},
    {"int4 (AWQ)", "int4-g128"},
};

/* Where a text stands in a table of {published, name}; false: nowhere. */
#define FIND(table, text, at) find(&(table)[0].published, sizeof(table) / sizeof(table)[0], (text), (at))

static bool find(const char *const *published, size_t n, const char *text, size_t *at)
{
    for (*at = 0; *at < n; (*at)++)
        if (strcmp(published[2 * *at], text) == 0) return true;
    return false;
}

struct run_of {
    const char *model, *device, *framework, *weights, *kv; /* as ridge calls them */
    int64_t tp;
    double batch, prompt, generate;
    bool decode_mean; /* over the generation */
};

struct prediction {
    double sum_s, prefill_s, bound_s, weight_bytes;
    struct calibrated_time step, first;
};

static struct prediction predict(const struct run_of *r)
{
    struct arena *a = arena_open();
    struct err e = {0};
    struct model m;
    struct hw hw;
    struct step *step;
    struct source source;
    struct calibrated *c;
    struct prediction p = {0};
    if (model_load(a, r->model, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (r->weights && stored_set_all(&m, r->weights, &e) != ERR_OK) fail_msg("%s", e.text);
    if (r->kv && dtype_find(r->kv, &m.kv, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(a, r->device, &hw, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct step_setup setup = {.model = &m,
                                     .hw = &hw,
                                     .layout = {.tp = r->tp},
                                     .fidelity = STEP_BOUND,
                                     .averaged = r->decode_mean,
                                     .prefill_together = !r->decode_mean,
                                     .block_tokens = 16};
    if (step_compile(a, &setup, &step, &e) != ERR_OK) fail_msg("%s: %s", r->model, e.text);
    if (source_open(a, &hw, NULL, r->framework, &source, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct calibrated_setup of = {.step = step, .source = &source};
    if (calibrated_open(a, &of, &c, &e) != ERR_OK) fail_msg("%s", e.text);
    const double B = r->batch, T = r->prompt, S = r->prompt + r->generate, M = r->generate;
    double prefill_bound_s, *column[STEP_VALUES_N] = {0};
    column[STEP_decode_step_s] = &p.bound_s;
    column[STEP_prefill_s] = &prefill_bound_s;
    step_eval(step, 1, &B, &T, &S, &M, column);
    p.sum_s = calibrated_sum_s(c, STEP_DECODE, B, T, S, M);
    p.prefill_s = calibrated_sum_s(c, STEP_PREFILL, B, T, S, M);
    p.weight_bytes = step_weight_bytes(step);
    calibrated_eval(c, STEP_DECODE, 1, &B, &T, &S, &M, &p.bound_s, &p.step);
    calibrated_eval(c, STEP_PREFILL, 1, &B, &T, &S, &M, &prefill_bound_s, &p.first);
    arena_close(a);
    return p;
}

/* -- steps.json, again -- */

enum { RESIDUALS_MAX = 2048, MODELS_MAX = 32 };

struct residual {
    const char *model, *framework;
    double measured_s, sum_s; /* sum_s: kernels of a step, and of the prefills between two tokens */
};

struct residuals {
    struct residual v[RESIDUALS_MAX];
    size_t n;
};

/* In closed loop every sequence waits, per request, for the prefills of all: batch*prefill/generated a token. */
static void read_served(struct arena *a, struct residuals *out)
{
    struct csv *t = arena_alloc(a, sizeof *t);
    out->n = 0;
    if (!t || !csv_open(t, csv_shared(a, "serving/engine_serving_h100_h200.csv"))) {
        skip();
        return;
    }
    while (csv_next(t)) {
        size_t model, device, format;
        if (*csv_get(t, "note") || csv_num(t, "attention_dp") > 1) continue;
        if (!FIND(MODELS, csv_get(t, "model"), &model) || !FIND(DEVICES, csv_get(t, "system"), &device)) continue;
        if (!FIND(FORMATS, csv_get(t, "weights"), &format)) continue;
        const char *engine = csv_get(t, "engine");
        const struct run_of r = {.model = MODELS[model].name,
                                 .device = DEVICES[device].name,
                                 .framework = arena_strndup(a, engine, strlen(engine)),
                                 .weights = FORMATS[format].name,
                                 .tp = (int64_t)csv_num(t, "tp"),
                                 .batch = csv_num(t, "concurrency"),
                                 .prompt = csv_num(t, "prompt_tokens"),
                                 .generate = csv_num(t, "output_tokens"),
                                 .decode_mean = true};
        const struct prediction p = predict(&r);
        const double between_s = r.batch * p.prefill_s / r.generate, measured_s = csv_num(t, "tpot_ms") / 1e3;
        if (between_s > 0.15 * p.sum_s || measured_s < p.bound_s) continue;
        assert_true(out->n < RESIDUALS_MAX);
        out->v[out->n++] = (struct residual){r.model, r.framework, measured_s, p.sum_s + between_s};
    }
    csv_close(t);
}

/* Rows of a framework, with one model or without it (NULL: all); each weighs 1/rows of its model. */
static double weight_of(const struct residuals *all, const struct residual *r)
{
    double n = 0;
    for (size_t i = 0; i < all->n; i++)
        n += strcmp(all->v[i].framework, r->framework) == 0 && strcmp(all->v[i].model, r->model) == 0;
    return 1 / n;
}

static double fit_host_s(const struct residuals *all, const double *weight, const char *framework, const char *without)
{
    double best_s = 0, least = HUGE_VAL;
    for (int k = 0; k <= 80; k++) {
        const double host_s = k * 50e-6;
        double sum = 0;
        for (size_t i = 0; i < all->n; i++) {
            const struct residual *r = &all->v[i];
            if (strcmp(r->framework, framework) != 0 || (without && strcmp(r->model, without) == 0)) continue;
            sum += weight[i] * fabs(log(r->measured_s / (host_s + r->sum_s)));
        }
        if (sum >= least) continue;
        least = sum;
        best_s = host_s;
    }
    return best_s;
}

struct weighed {
    double value, weight;
};

static int by_value(const void *x, const void *y)
{
    const struct weighed *a = x, *b = y;
    return (a->value > b->value) - (a->value < b->value);
}

static double quantile(const struct weighed *v, size_t n, double q)
{
    double all = 0, sum = 0;
    for (size_t i = 0; i < n; i++) all += v[i].weight;
    for (size_t i = 0; i < n; i++) {
        sum += v[i].weight;
        if (sum >= q * all * (1 - 1e-12)) return v[i].value;
    }
    return v[n - 1].value;
}

static struct steps_table load_steps(struct arena *a)
{
    struct steps_table t;
    struct err e;
    if (steps_load(a, &t, &e) != ERR_OK) fail_msg("%s", e.text);
    return t;
}

static void check(const char *what, const char *framework, double got, double stated, double within)
{
    print_message("  %s %s: %.4g, stated %.4g\n", framework, what, got, stated);
    if (!(fabs(got - stated) <= within)) fail_msg("%s %s is %.4g, steps.json says %.4g", framework, what, got, stated);
}

/* The table is data, so what it must say is checked. */
static void test_what_a_table_must_say(void **state)
{
    (void)state;
#define LAUNCH "{\"schema\":\"ridge.steps.1\",\"launch\":{\"value_s\":1.7e-5},\"steps\":["
#define STEP(phase, host, p50)                                                                                         \
    "{\"framework\":\"mine\",\"phase\":\"" phase "\",\"host_s\":" host ",\"rows\":7,\"p10\":0.75,\"p50\":" p50         \
    ",\"p90\":1.25,\"source\":\"a loop\",\"date\":\"2026-11\"}"
    static const struct {
        const char *text, *says;
    } bad[] = {{"{\"schema\":\"ridge.steps.2\"}", "ridge.steps.1"},
               {"{\"schema\":\"ridge.steps.1\",\"steps\":[]}", "launch"},
               {LAUNCH STEP("verify", "0", "1") "]}", "decode or prefill"},
               {LAUNCH STEP("decode", "-1e-3", "1") "]}", "host_s"},
               {LAUNCH STEP("decode", "0", "1.5") "]}", "p10 <= p50 <= p90"},
               {LAUNCH "],\"launches\":[{\"framework\":\"mine\"}]}", "value_s"},
               {LAUNCH "{\"framework\":\"mine\"}]}", "phase"}};
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct json j;
    struct steps_table t = {.n = 0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(json_parse(a, "steps.json", bad[i].text, strlen(bad[i].text), &j, &e), ERR_OK);
        assert_int_equal(steps_parse(&j, &t, &e), ERR_INPUT);
        if (!strstr(e.text, bad[i].says)) fail_msg("\"%s\" does not say \"%s\"", e.text, bad[i].says);
    }
    static const char good[] = LAUNCH STEP("decode", "0.0025", "1.125") "," STEP(
        "prefill", "0", "1") "],\"launches\":[{\"framework\":\"theirs\",\"value_s\":2.9e-5,\"source\":\"a loop\"}]}";
    assert_int_equal(json_parse(a, "steps.json", good, strlen(good), &j, &e), ERR_OK);
    if (steps_parse(&j, &t, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_true(t.n == 2 && t.launch_s == 1.7e-5);
    assert_true(steps_launch_s(&t, "theirs") == 2.9e-5 && steps_launch_s(&t, "mine") == 1.7e-5);
    assert_true(steps_find(&t, "mine", STEP_DECODE)->host_s == 0.0025);
    assert_true(steps_find(&t, "mine", STEP_PREFILL)->band.n == 7);
    assert_null(steps_find(&t, "yours", STEP_DECODE));
    double low, high;
    steps_widest(&t, &low, &high);
    assert_true(low == 0.75 && high == 1.25);
    arena_close(a);
}

/* What a Python call costs the host: all-reduces of up to 64 KiB called eagerly, less those in a graph, medians of each
 * number of ranks. One number for both engines would be wrong: theirs are 16 and 28 us. */
static void test_launches_as_stated(void **state)
{
    static const struct {
        const char *framework, *eager, *graph;
    } OF[] = {{"vllm", "vLLM_custom_eager", "vLLM_custom_graph"},
              {"sglang", "SGLang_CustomAllReduce_eager", "SGLang_CustomAllReduce_graph"}};
    enum { RANKS = 3, MOST = 64, LARGEST = 65536 };
    (void)state;
    struct arena *a = arena_open();
    struct csv *t = arena_alloc(a, sizeof *t);
    const struct steps_table stated = load_steps(a);
    double own_us[2];
    for (size_t i = 0; i < 2; i++) {
        struct weighed v[RANKS][2][MOST];
        size_t n[RANKS][2] = {{0}};
        if (!t || !csv_open(t, csv_shared(a, "measured/custom_allreduce_h100_sxm.csv"))) {
            arena_close(a);
            skip();
            return;
        }
        while (csv_next(t)) {
            const double ranks = csv_num(t, "n_gpus");
            const bool eager = strcmp(csv_get(t, "kernel"), OF[i].eager) == 0;
            const size_t r = ranks < 3 ? 0 : ranks < 5 ? 1 : 2;
            if (csv_num(t, "bytes") > LARGEST || (!eager && strcmp(csv_get(t, "kernel"), OF[i].graph) != 0)) continue;
            assert_true(n[r][eager] < MOST);
            v[r][eager][n[r][eager]++] = (struct weighed){csv_num(t, "latency_us"), 1};
        }
        csv_close(t);
        own_us[i] = 0;
        for (size_t r = 0; r < RANKS; r++) {
            for (size_t k = 0; k < 2; k++) qsort(v[r][k], n[r][k], sizeof v[r][k][0], by_value);
            own_us[i] += (quantile(v[r][1], n[r][1], 0.5) - quantile(v[r][0], n[r][0], 0.5)) / RANKS;
        }
        check("launch us", OF[i].framework, own_us[i], 1e6 * steps_launch_s(&stated, OF[i].framework), 1.5);
    }
    assert_true(own_us[1] > 1.5 * own_us[0]);
    arena_close(a);
}

static void test_decode_steps_as_stated(void **state)
{
    static const char *const FRAMEWORKS[] = {"vllm", "trtllm", "sglang"};
    (void)state;
    struct arena *a = arena_open();
    const struct steps_table stated = load_steps(a);
    struct residuals *all = arena_alloc(a, sizeof *all);
    assert_non_null(all);
    read_served(a, all);
    double *weight = arena_array(a, all->n, sizeof *weight);
    struct weighed *left = arena_array(a, all->n, sizeof *left);
    for (size_t i = 0; i < all->n; i++) weight[i] = weight_of(all, &all->v[i]);
    for (size_t f = 0; f < 3; f++) {
        const struct steps *s = steps_find(&stated, FRAMEWORKS[f], STEP_DECODE);
        size_t n = 0;
        assert_non_null(s);
        for (size_t i = 0; i < all->n; i++) {
            const struct residual *r = &all->v[i];
            if (strcmp(r->framework, s->framework) != 0) continue;
            const double host_s = fit_host_s(all, weight, s->framework, r->model);
            left[n++] = (struct weighed){r->measured_s / (host_s + r->sum_s), weight[i]};
        }
        qsort(left, n, sizeof *left, by_value);
        check("rows", s->framework, (double)n, (double)s->band.n, 2);
        check("host ms", s->framework, 1e3 * fit_host_s(all, weight, s->framework, NULL), 1e3 * s->host_s, 0.051);
        check("P10", s->framework, quantile(left, n, 0.1), s->band.p10, 0.015);
        check("P50", s->framework, quantile(left, n, 0.5), s->band.p50, 0.015);
        check("P90", s->framework, quantile(left, n, 0.9), s->band.p90, 0.015);
    }
    arena_close(a);
}

/* First tokens of TensorRT-LLM without a queue: nothing is fitted to them but the band. */
static void test_prefill_steps_as_stated(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct csv *t = arena_alloc(a, sizeof *t);
    struct weighed v[64];
    size_t n = 0;
    const struct steps_table stated = load_steps(a);
    if (!t || !csv_open(t, csv_shared(a, "serving/e2e_measured.csv"))) {
        arena_close(a);
        skip();
        return;
    }
    while (csv_next(t)) {
        size_t model, device, format;
        if (strcmp(csv_get(t, "roofline_check"), "prefill-compute") != 0) continue;
        if (strcmp(csv_get(t, "framework"), "TensorRT-LLM") != 0) continue;
        if (!FIND(MODELS, csv_get(t, "model"), &model) || !FIND(DEVICES, csv_get(t, "gpu"), &device)) continue;
        if (!FIND(FORMATS, csv_get(t, "precision"), &format)) continue;
        const struct run_of r = {.model = MODELS[model].name,
                                 .device = DEVICES[device].name,
                                 .framework = "trtllm",
                                 .weights = FORMATS[format].name,
                                 .tp = (int64_t)csv_num(t, "tp"),
                                 .batch = csv_num(t, "batch_or_concurrency"),
                                 .prompt = csv_num(t, "input_len"),
                                 .generate = 1};
        v[n++] = (struct weighed){csv_num(t, "value") / 1e3 / predict(&r).prefill_s, 1};
    }
    csv_close(t);
    qsort(v, n, sizeof *v, by_value);
    const struct steps *s = steps_find(&stated, "trtllm", STEP_PREFILL);
    assert_non_null(s);
    check("prefill rows", "trtllm", (double)n, (double)s->band.n, 0.5);
    check("prefill P10", "trtllm", quantile(v, n, 0.1), s->band.p10, 0.015);
    check("prefill P50", "trtllm", quantile(v, n, 0.5), s->band.p50, 0.015);
    check("prefill P90", "trtllm", quantile(v, n, 0.9), s->band.p90, 0.015);
    arena_close(a);
}

/* -- batch-1 decode, independent of the above -- */

/* Seconds of a decode step; NAN for a metric that is none. */
static double step_of(const struct csv *t, double weight_bytes)
{
    const char *metric = csv_get(t, "metric");
    const double value = csv_num(t, "value");
    if (strcmp(metric, "reported_bandwidth") == 0)
        return weight_bytes / (value * 1e9); /* the README's: bytes * tok/s */
    if (strcmp(metric, "tpot_ms") == 0 || strcmp(metric, "itl_intercept_ms") == 0) return value / 1e3;
    if (strcmp(metric, "decode_tok_s") == 0 || strcmp(metric, "out_tok_s_total") == 0) return 1 / value;
    return (double)NAN;
}

static double number_or(const char *text, double otherwise)
{
    char *end;
    const double x = strtod(text, &end);
    return *text && !*end ? x : otherwise;
}

static void test_batch_one_decode(void **state)
{
    static const struct {
        const char *published, *framework;
    } ENGINES[] = {{"vLLM", "vllm"}, {"TensorRT-LLM", "trtllm"}, {"gpt-fast", "none"}};
    (void)state;
    struct arena *a = arena_open();
    struct csv *t = arena_alloc(a, sizeof *t);
    struct weighed errors[256], of[3][256];
    size_t n = 0, each[3] = {0, 0, 0}, within = 0, below = 0;
    if (!t || !csv_open(t, csv_shared(a, "serving/e2e_measured.csv"))) {
        arena_close(a);
        skip();
        return;
    }
    print_message("%-6s %-21s %-11s %-11s TP %-12s %9s %8s %10s %7s\n", "row", "model", "weights", "device", "engine",
                  "measured", "bound", "calibrated", "error");
    while (csv_next(t)) {
        size_t model, device, format, engine;
        if (strncmp(csv_get(t, "roofline_check"), "batch1-", 7) != 0) continue;
        if (!FIND(MODELS, csv_get(t, "model"), &model) || !FIND(DEVICES, csv_get(t, "gpu"), &device)) continue;
        if (!FIND(FORMATS, csv_get(t, "precision"), &format) || !FIND(ENGINES, csv_get(t, "framework"), &engine))
            continue;
        const struct run_of r = {.model = MODELS[model].name,
                                 .device = DEVICES[device].name,
                                 .framework = ENGINES[engine].framework,
                                 .weights = FORMATS[format].name,
                                 .kv = strncmp(csv_get(t, "kv_dtype"), "fp8", 3) == 0 ? "fp8" : NULL,
                                 .tp = (int64_t)csv_num(t, "tp"),
                                 .batch = 1,
                                 .prompt = number_or(csv_get(t, "input_len"), 1024),
                                 .generate = number_or(csv_get(t, "output_len"), 128),
                                 .decode_mean = true};
        const struct prediction p = predict(&r);
        const double s = step_of(t, p.weight_bytes);
        if (isnan(s)) continue;
        assert_true(n < 256);
        print_message("%-6s %-21s %-11s %-11s %2d %-12s %6.2f ms %5.2f ms %7.2f ms %+5.1f %%%s\n", csv_get(t, "id"),
                      csv_get(t, "model"), csv_get(t, "precision"), csv_get(t, "gpu"), (int)r.tp,
                      csv_get(t, "framework"), 1e3 * s, 1e3 * p.bound_s, 1e3 * p.step.s, 100 * (p.step.s / s - 1),
                      s < p.bound_s ? "  below the bound" : "");
        below += s < p.bound_s;
        within += s >= p.step.p10_s && s <= p.step.p90_s;
        errors[n++] = of[engine][each[engine]++] = (struct weighed){fabs(p.step.s / s - 1), 1};
    }
    csv_close(t);
    assert_true(n > 20);
    qsort(errors, n, sizeof *errors, by_value);
    for (size_t i = 0; i < 3; i++) {
        qsort(of[i], each[i], sizeof of[i][0], by_value);
        if (each[i])
            print_message("%s: %zu rows, median error %.1f %%\n", ENGINES[i].published, each[i],
                          100 * quantile(of[i], each[i], 0.5));
    }
    print_message("all: %zu rows, median error %.1f %% (bar: 15 %%), %zu within P10..P90, %zu below the bound\n", n,
                  100 * quantile(errors, n, 0.5), within, below);
    assert_true(below == 0);
    assert_true(quantile(errors, n, 0.5) < 0.15);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_table_must_say),  cmocka_unit_test(test_launches_as_stated),
        cmocka_unit_test(test_decode_steps_as_stated), cmocka_unit_test(test_prefill_steps_as_stated),
        cmocka_unit_test(test_batch_one_decode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
