/* Shapes: a model's operators as kernel calls, against sizes written out by hand; and as jobs of a probe. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/fit/shapes.h"
#include "probe/plan.h"

static int begin(void **state)
{
    *state = arena_open();
    return *state ? 0 : -1;
}

static int end(void **state)
{
    arena_close(*state);
    return 0;
}

static const char *text_of(struct arena *a, const struct shape *s)
{
    const char *name, *text = arena_printf(a, "%s %s %s", s->op, kernel_kind_name(s->kernel.kind), s->dtype);
    double v;
    for (size_t i = 0; shape_number(&s->kernel, i, &name, &v); i++)
        text = isnan(v) ? arena_printf(a, "%s %s=?", text, name) : arena_printf(a, "%s %s=%.12g", text, name, v);
    return text;
}

static struct shapes shapes_at(struct arena *a, const char *model, const struct hw *hw, enum step_phase phase, double B,
                               double T, double S)
{
    struct model m;
    struct shapes s = {.n = 0};
    struct err e = {.code = ERR_OK};
    const struct shapes_point at = {phase, B, T, S};
    if (model_load(a, model, NULL, 0, &m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (shapes_of_model(a, &m, hw, &at, &s, &e) != ERR_OK) fail_msg("%s", e.text);
    return s;
}

/* Llama 3.1 8B: D 4096, N 32, K 8, H 128, F 14336, V 128256; gate and up are one product. */
static void sizes_by_hand(void **state)
{
    static const char *const DECODE[] = {
        "mixer_norm elementwise bf16 num_tokens=7 hidden=4096",
        "qkv_proj gemm bf16 m=7 n=6144 k=4096",
        "rope elementwise bf16 num_tokens=7 n_heads=32 n_kv_heads=8 head_dim=128 rotary_dim=128 interleaved=?",
        "kv_write elementwise bf16 num_tokens=7 n_kv_heads=8 head_dim=128",
        "attention decode bf16 batch=7 kv_len=1531 n_heads=32 n_kv_heads=8 head_dim=128 window=0 page_tokens=0",
        "o_proj gemm bf16 m=7 n=4096 k=4096",
        "mlp_norm elementwise bf16 num_tokens=7 hidden=4096",
        "up_proj gemm bf16 m=7 n=28672 k=4096",
        "down_proj gemm bf16 m=7 n=4096 k=14336",
        "final_norm elementwise bf16 num_tokens=7 hidden=4096",
        "lm_head gemm bf16 m=7 n=128256 k=4096",
        "sample elementwise bf16 batch=7 vocab=128256 top_k=0 top_p_milli=1000 temperature_milli=1000",
        "mlp mlp bf16 num_tokens=7 hidden=4096 ffn_full=14336 gated=1"};
    static const char *const PREFILL[] = {
        "mixer_norm elementwise bf16 num_tokens=613 hidden=4096",
        "qkv_proj gemm bf16 m=613 n=6144 k=4096",
        "rope elementwise bf16 num_tokens=613 n_heads=32 n_kv_heads=8 head_dim=128 rotary_dim=128 interleaved=?",
        "kv_write elementwise bf16 num_tokens=613 n_kv_heads=8 head_dim=128",
        "attention prefill bf16 batch=1 q_len=613 n_heads=32 n_kv_heads=8 head_dim=128 window=0",
        "o_proj gemm bf16 m=613 n=4096 k=4096",
        "mlp_norm elementwise bf16 num_tokens=613 hidden=4096",
        "up_proj gemm bf16 m=613 n=28672 k=4096",
        "down_proj gemm bf16 m=613 n=4096 k=14336",
        "final_norm elementwise bf16 num_tokens=613 hidden=4096",
        "lm_head gemm bf16 m=1 n=128256 k=4096",
        "sample elementwise bf16 batch=1 vocab=128256 top_k=0 top_p_milli=1000 temperature_milli=1000",
        "mlp mlp bf16 num_tokens=613 hidden=4096 ffn_full=14336 gated=1"};
    struct hw hw;
    assert_int_equal(hw_load(*state, "h100-sxm", &hw, NULL), ERR_OK);
    const struct shapes d = shapes_at(*state, "llama-3.1-8b", &hw, STEP_DECODE, 7, 1, 1531);
    const struct shapes p = shapes_at(*state, "llama-3.1-8b", NULL, STEP_PREFILL, 7, 613, 613);
    assert_int_equal(d.n, 13);
    assert_int_equal(p.n, 13);
    for (size_t i = 0; i < 13; i++) {
        assert_string_equal(text_of(*state, &d.v[i]), DECODE[i]);
        assert_string_equal(text_of(*state, &p.v[i]), PREFILL[i]);
        const bool in_layer = i < 9 || i == 12;
        assert_int_equal(d.v[i].count, in_layer ? 32 : 1);
        assert_int_equal(d.v[i].layers, in_layer ? 32 : 0);
        assert_true(d.v[i].whole == (i == 12));
        assert_true(isnan(p.v[i].bound_s));
        assert_true(d.v[i].kernel.cold);
    }
    /* weights, input and output once, at the memory's rate */
    const double bytes = 2.0 * (7 * 4096 + 6144.0 * 4096 + 7 * 6144);
    assert_true(fabs(d.v[1].bound_s / (bytes / hw.bandwidth_bytes_per_s) - 1) < 1e-12);
}

static void rows_of_a_call(void **state)
{
    const struct shapes d = shapes_at(*state, "llama-3.1-8b", NULL, STEP_DECODE, 7, 1, 1531);
    struct row r = {.kernel = {.kind = KERNEL_GEMM, .m = 7, .n = 6144, .k = 4096}, .dtype = "bf16"};
    assert_true(shape_is(&d.v[1], &r));
    assert_false(shape_is(&d.v[5], &r));
    r.kernel.m = 8;
    assert_false(shape_is(&d.v[1], &r));
    r.kernel.m = 7;
    r.dtype = "fp32";
    assert_false(shape_is(&d.v[1], &r));
    r = (struct row){.kernel = d.v[4].kernel, .dtype = "bf16"};
    assert_true(shape_is(&d.v[4], &r));
    r.kv_dtype = "fp8"; /* another cache */
    assert_false(shape_is(&d.v[4], &r));
    r.dtype = r.kv_dtype, r.kv_dtype = "bf16";
    assert_true(shape_is(&d.v[4], &r));
    r.kernel.page_tokens = 16;
    assert_false(shape_is(&d.v[4], &r));
    r.kernel.page_tokens = (double)NAN; /* engines do not say */
    assert_true(shape_is(&d.v[4], &r));
    r.kernel.window = 512;
    assert_false(shape_is(&d.v[4], &r));
}

/* The rope part of absorbed latent attention: a row gives latent and rope apart. */
static void latent_sizes(void **state)
{
    const struct shapes d = shapes_at(*state, "deepseek-v3", NULL, STEP_DECODE, 3, 1, 911);
    size_t found = 0;
    for (size_t i = 0; i < d.n; i++) {
        if (d.v[i].kernel.kind != KERNEL_MLA_DECODE) continue;
        const char *text = text_of(*state, &d.v[i]);
        found++;
        assert_non_null(strstr(text, "batch=3 kv_len=911 n_heads_local=128 kv_lora_rank=512 rope_dim=64"));
    }
    assert_true(found > 0);
}

/* What turns, whichever elements are its pairs; and drawing from all tokens, not from some. */
static void rows_of_turns_and_draws(void **state)
{
    const struct shapes d = shapes_at(*state, "llama-3.1-8b", NULL, STEP_DECODE, 7, 1, 1531);
    const struct shape *rope = &d.v[2], *draw = &d.v[11];
    struct row r = {.kernel = rope->kernel, .dtype = "bf16"};
    for (int i = 0; i < 2; i++) {
        r.kernel.interleaved = i;
        assert_true(shape_is(rope, &r));
    }
    r.kernel.rotary_dim = 64;
    assert_false(shape_is(rope, &r));
    assert_false(shape_is(&d.v[3], &r)); /* of writing keys: its sizes are among them */
    r = (struct row){.kernel = draw->kernel, .dtype = "bf16"};
    assert_true(shape_is(draw, &r));
    r.kernel.top_k = 50;
    assert_false(shape_is(draw, &r));
    r.kernel.top_k = 0;
    r.kernel.drafts = 3; /* one that judges drafts */
    assert_false(shape_is(draw, &r));
}

/* The parts of 128 heads and of their one key that turn. */
static void latent_turns(void **state)
{
    const struct shapes d = shapes_at(*state, "deepseek-v3", NULL, STEP_DECODE, 3, 1, 911);
    size_t found = 0;
    for (size_t i = 0; i < d.n; i++) {
        if (strcmp(d.v[i].op, "rope") != 0) continue;
        found++;
        assert_non_null(
            strstr(text_of(*state, &d.v[i]), "num_tokens=3 n_heads=128 n_kv_heads=1 head_dim=64 rotary_dim=64"));
    }
    assert_true(found > 0);
}

/* Every built-in model: whole sizes, or such as are expected values. */
static void all_models_have_sizes(void **state)
{
    static const char FOLDER[] = "configs/models/";
    size_t n, calls = 0;
    const struct embed_file *f = embed_under(FOLDER, &n);
    for (size_t i = 0; i < n; i++) {
        struct arena *a = arena_open();
        struct model m;
        struct err e = {.code = ERR_OK};
        struct shapes s = {.n = 0};
        const struct shapes_point at = {STEP_DECODE, 3, 1, 97};
        const char *stem = f[i].path + sizeof FOLDER - 1;
        const char *name = arena_strndup(a, stem, strcspn(stem, "/"));
        if (strlen(name) > 5 && strcmp(name + strlen(name) - 5, ".json") == 0)
            name = arena_strndup(a, name, strlen(name) - 5);
        const bool known = model_load(a, name, NULL, 0, &m, &e) == ERR_OK && !m.weights_unknown;
        if (known && m.encoder.layers > 0) {
            assert_int_equal(shapes_of_model(a, &m, NULL, &at, &s, &e), ERR_USAGE);
        } else if (known) {
            if (shapes_of_model(a, &m, NULL, &at, &s, &e) != ERR_OK) fail_msg("%s: %s", name, e.text);
            calls += s.n;
            for (size_t j = 0; j < s.n; j++) {
                const char *size;
                double v;
                for (size_t k = 0; shape_number(&s.v[j].kernel, k, &size, &v); k++)
                    if (!isnan(v) && !(v >= 0 && v == floor(v))) fail_msg("%s: %s", name, text_of(a, &s.v[j]));
            }
        }
        arena_close(a);
    }
    assert_true(calls > 200);
    (void)state;
}

/* -- jobs -- */

static void points_of_kinds_are_jobs(void **state)
{
    static const struct wire_arg GEMM[] = {{"m", "", 1, 64}, {"n", "", 1, 9999}, {"k", "", 1, 9999}};
    static const struct wire_arg PAGED[] = {{"batch", "", 1, 64}, {"kv_len", "", 1, 9999}, {"page_tokens", "", 0, 512}};
    static const struct wire_variant V[] = {{"own", "fp32", "", "fp32,bf16", false, false}};
    static const struct wire_kernel KERNELS[] = {{.name = "product",
                                                  .row_kind = "gemm",
                                                  .ceiling = "",
                                                  .args = GEMM,
                                                  .args_n = 3,
                                                  .variants = V,
                                                  .variants_n = 1},
                                                 {.name = "reading",
                                                  .row_kind = "",
                                                  .ceiling = "read",
                                                  .args = GEMM,
                                                  .args_n = 1,
                                                  .variants = V,
                                                  .variants_n = 1},
                                                 {.name = "paged",
                                                  .row_kind = "decode",
                                                  .ceiling = "",
                                                  .args = PAGED,
                                                  .args_n = 3,
                                                  .variants = V,
                                                  .variants_n = 1}};
    static const struct wire_device D = {.name = "D", .kernels = KERNELS, .kernels_n = 3};
    static const struct plan_point OF_ONE = {"gemm", "bf16", {3, {{"m", 7}, {"n", 131}, {"k", 257}}}, NULL, "product"};
    const struct plan_point points[] = {
        {"gemm", "bf16", {3, {{"m", 7}, {"n", 131}, {"k", 257}}}, NULL, NULL},
        {"gemm", "bf16", {3, {{"m", 7}, {"n", 131}, {"k", 257}}}, NULL, NULL},  /* twice the same */
        {"gemm", "fp32", {3, {{"k", 257}, {"n", 131}, {"m", 7}}}, "", NULL},    /* another format, another order */
        {"gemm", "bf16", {3, {{"m", 65}, {"n", 131}, {"k", 257}}}, NULL, NULL}, /* too large */
        {"gemm", "fp8", {3, {{"m", 7}, {"n", 131}, {"k", 257}}}, NULL, NULL},   /* no such variant */
        {"decode", "bf16", {3, {{"batch", 5}, {"kv_len", 911}, {"taps", 1}}}, "tp,taps", NULL},
        {"moe", "bf16", {1, {{"num_tokens", 3}}}, NULL, NULL},                                  /* no such kernel */
        {"decode", "bf16", {3, {{"batch", 5}, {"kv_len", 911}, {"taps", 4}}}, "taps", NULL},    /* it knows 1 alone */
        {"decode", "bf16", {3, {{"batch", 5}, {"kv_len", 911}, {"n_heads", 1}}}, "taps", NULL}, /* another kernel's */
    };
    struct plan_request q = {.points = points, .points_n = 9};
    struct plan p;
    struct err e = {.code = ERR_OK};
    if (plan_make(*state, &D, &q, &p, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(p.n, 3);
    assert_string_equal(p.jobs[0].dtype, "bf16");
    assert_string_equal(p.jobs[1].dtype, "fp32");
    assert_string_equal(p.jobs[1].shape.arg[0].name, "m");
    assert_int_equal(p.jobs[1].shape.arg[0].value, 7);
    assert_string_equal(p.jobs[2].kernel->name, "paged");
    assert_int_equal(p.jobs[2].shape.arg[1].value, 911);
    assert_int_equal(p.jobs[2].shape.arg[2].value, 0); /* the kind does not name it */
    assert_int_equal(p.left_out_n, 3);
    assert_non_null(strstr(p.left_out[2], "paged bf16 is left out: taps=4: it knows 1 alone"));
    assert_non_null(strstr(p.left_out[0], "m=65 is not within 1 to 64"));
    assert_non_null(strstr(p.left_out[1], "fp8"));
    q.points = points + 3;
    q.points_n = 2;
    assert_int_equal(plan_make(*state, &D, &q, &p, &e), ERR_DEVICE);
    struct plan_point other = OF_ONE;
    q.points = &other;
    q.points_n = 1;
    assert_int_equal(plan_make(*state, &D, &q, &p, &e), ERR_OK);
    assert_int_equal(p.n, 1);
    other.kernel = "paged"; /* no kernel of that name has this kind */
    assert_int_equal(plan_make(*state, &D, &q, &p, &e), ERR_NO);
}

/* Wherever a plan is cut off, every kernel has had its share: 7 points that tell much of one kernel, 2 of another, each
 * of the first by a library too; then the others. */
static void cut_off_anywhere(void **state)
{
    static const struct wire_variant V[] = {{"own", "fp32", "", "fp32", false, false},
                                            {"lib", "fp32", "", "fp32", true, false}};
    static const struct wire_arg ARGS[] = {{"m", "", 1, 4096}}; /* not a unit */
    struct wire_point many[9], few[3];
    for (int i = 0; i < 9; i++) many[i] = (struct wire_point){{1, {{"m", i + 1}}}, "fp32", i < 7};
    for (int i = 0; i < 3; i++) few[i] = (struct wire_point){{1, {{"m", 101 + i}}}, "fp32", i > 0};
    const struct wire_kernel kernels[] = {
        {.name = "many",
         .row_kind = "",
         .ceiling = "",
         .args = ARGS,
         .args_n = 1,
         .points = many,
         .points_n = 9,
         .variants = V,
         .variants_n = 2},
        {.name = "few",
         .row_kind = "",
         .ceiling = "",
         .args = ARGS,
         .args_n = 1,
         .points = few,
         .points_n = 3,
         .variants = V,
         .variants_n = 1},
        {.name = "roof",
         .row_kind = "",
         .ceiling = "read",
         .args = ARGS,
         .args_n = 1,
         .points = few,
         .points_n = 3,
         .variants = V,
         .variants_n = 1},
    };
    const struct wire_device device = {
        .name = "", .identity = "{}", .left_out = "", .kernels = kernels, .kernels_n = 3};
    struct plan_request q = {.kernels = NULL};
    struct plan p;
    bool seen[64] = {false};
    assert_int_equal(plan_make(*state, &device, &q, &p, NULL), ERR_OK);
    assert_int_equal(p.n, 2 * 9 + 3); /* what measures ceilings was measured as one */
    plan_spread(&p);
    size_t m = 0, f = 0;
    for (size_t i = 0; i < 9; i++) { /* those that tell, by own code */
        const bool is_few = strcmp(p.jobs[i].kernel->name, "few") == 0;
        assert_true(p.jobs[i].quick && !p.jobs[i].variant->library);
        m += !is_few;
        f += is_few;
        assert_true(fabs((double)m / 7 - (double)f / 2) <= 0.5);
    }
    for (size_t i = 0; i < p.n; i++) {
        if (i > 0) assert_true(p.jobs[i - 1].quick || !p.jobs[i].quick);
        assert_true(p.jobs[i].nth < p.n && !seen[p.jobs[i].nth]);
        seen[p.jobs[i].nth] = true;
    }
    q.measures = true;
    assert_int_equal(plan_make(*state, &device, &q, &p, NULL), ERR_OK);
    assert_int_equal(p.n, 2 * 9 + 3 + 3);
    q = (struct plan_request){.shape = "m=1..1000+1", .kernels = "few"}; /* a sweep: any tenth of it is of all of it */
    assert_int_equal(plan_make(*state, &device, &q, &p, NULL), ERR_OK);
    plan_spread(&p);
    size_t tenth[10] = {0};
    for (size_t i = 0; i < 100; i++) tenth[(p.jobs[i].shape.arg[0].value - 1) / 100]++;
    for (size_t i = 0; i < 10; i++) assert_true(tenth[i] >= 8 && tenth[i] <= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sizes_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(rows_of_a_call, begin, end),
        cmocka_unit_test_setup_teardown(rows_of_turns_and_draws, begin, end),
        cmocka_unit_test_setup_teardown(latent_sizes, begin, end),
        cmocka_unit_test_setup_teardown(latent_turns, begin, end),
        cmocka_unit_test_setup_teardown(all_models_have_sizes, begin, end),
        cmocka_unit_test_setup_teardown(points_of_kinds_are_jobs, begin, end),
        cmocka_unit_test_setup_teardown(cut_off_anywhere, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
