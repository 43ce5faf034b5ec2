/* Results of every kernel as measured rows: their work is the kernel's own count, and they are the operators of models.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "calc/cli/probe_rows.h"
#include "calc/cli/store_rows.h"
#include "calc/cli/validate_model.h"
#include "kernels/table.h"

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

/* Memory at 1e9 bytes/s, everything computes at 1e15: bounds are bytes. */
static struct hw core(void)
{
    struct hw hw = {.file = "",
                    .key = "this-cpu",
                    .name = "Core 7",
                    .device_kind = "cpu",
                    .bandwidth_bytes_per_s = 1e9, /* not a unit */
                    .sm_count = 1,
                    .l2_bytes = 0};
    for (size_t i = 0; i < HW_DTYPES_N; i++) hw.peak_flops_per_s[i] = 1e15;
    return hw;
}

static struct result result_of(const struct kern *k, const struct kern_shape *s, double time_s)
{
    struct result r = {.id = 7,
                       .origin = {"Core 7", "{}", "ridge v1", "ridge probe run", "2026-11-05T00:00:05Z"},
                       .made = "",
                       .kernel = k->name,
                       .variant = "own",
                       .dtype = kern_dtype_name(s->dtype),
                       .unit = "fp32",
                       .row_kind = k->row_kind,
                       .cold = true,
                       .outcome = RESULT_MEASURED,
                       .reason = "",
                       .cells = "",
                       .ceiling = "",
                       .summary = {.n = 1, .median_s = time_s, .least_s = time_s, .q1_s = time_s, .q3_s = time_s},
                       .before = {.read_bytes_per_s = 1e9}, /* not a unit: that of the device */
                       .shape = {.n = k->args_n}};
    for (size_t i = 0; i < k->args_n; i++) {
        r.shape.arg[i].name = k->args[i].name;
        r.shape.arg[i].value = s->v[i];
    }
    return r;
}

/* What rows leave out: logits of experts, tables of pages, rates of heads; a head's softmax is no product. */
static void work_is_the_kernels_own_count(void **state)
{
    size_t n, kinds = 0;
    const struct kern *const *table = kern_table(&n);
    for (size_t i = 0; i < n; i++) {
        const struct kern *k = table[i];
        if (!*k->row_kind) continue;
        kinds++;
        for (size_t j = 0; j < k->points_n; j++) {
            const struct kern_shape *s = &k->points[j].shape;
            const struct result r = result_of(k, s, 1);
            struct kern_counts c;
            double flops, bytes;
            k->counts(s, &c);
            if (!probe_row_work(*state, &r, &flops, &bytes)) fail_msg("%s is of no kind of rows", k->name);
            const double counted = c.read_bytes + c.written_bytes;
            if (fabs(flops - c.flops) > 1e-12 * c.flops || bytes > counted * (1 + 1e-12) || bytes < 0.97 * counted)
                fail_msg("%s %s, point %zu: %.17g flops of %.17g, %.17g bytes of %.17g", k->name, r.dtype, j, flops,
                         c.flops, bytes, counted);
        }
    }
    assert_true(kinds >= 14);
}

/* What a sequence of spec-verify reads whole, place by place: of a chain nothing of drafts that stay; of a tree both
 * rows wherever one is refused. */
static void rows_judged_by_hand(void **state)
{
    static const struct {
        int64_t gamma, accepted, branches;
        double rows;
    } CASES[] = {
        {5, 0, 1, 2}, {5, 3, 1, 2}, {5, 5, 1, 1}, /* the refused one; q after all */
        {7, 0, 3, 2},                             /* three refused in one place */
        {7, 2, 3, 6},                             /* candidates 1 and 2 kept, each after refusals */
        {7, 3, 3, 6}, {7, 4, 3, 8},               /* level 2 keeps the first */
        {4, 4, 2, 5},                             /* levels 0 and 2 refuse one each; q after all */
    };
    enum { BATCH = 3, VOCAB = 10007 };
    const struct kern *k = kern_find("spec-verify");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct kern_shape s = {{BATCH, CASES[i].gamma, VOCAB, CASES[i].accepted, CASES[i].branches}, KERN_FP32};
        const struct result r = result_of(k, &s, 1);
        struct kern_counts c;
        double flops, bytes;
        k->counts(&s, &c);
        assert_true(probe_row_work(*state, &r, &flops, &bytes));
        assert_true(bytes == 4.0 * BATCH * (CASES[i].rows * VOCAB + 1 + (double)CASES[i].gamma + 1));
        assert_true(bytes <= c.read_bytes + c.written_bytes);
        assert_true(bytes > (c.read_bytes + c.written_bytes) * 0.99); /* without the numbers of tokens tried */
    }
}

/* Positions, fractions, elements that turn in and out; logits and numbers in, tokens out. */
static void moved_bytes_by_hand(void **state)
{
    static const struct kern_shape TURN = {{37, 12, 4, 96, 32, 1, 10000}, KERN_BF16};
    static const struct kern_shape DRAW = {{5, 10007, 50, 900, 700}, KERN_FP32};
    double flops, bytes;
    struct result r = result_of(kern_find("rope"), &TURN, 1);
    struct row row;
    assert_true(probe_row_work(*state, &r, &flops, &bytes));
    assert_true(flops == 0 && bytes == 2 * 2 * 37.0 * (12 + 4) * 32 + 4 * 37 + 8 * 16);
    assert_true(store_row(*state, &r, "m.db", NULL, &row));
    assert_string_equal(row.class_name, "elementwise/rope/bf16/ridge/interleaved/own");
    assert_string_equal(row.family, "12,4,96,32");
    r = result_of(kern_find("sample"), &DRAW, 1);
    assert_true(probe_row_work(*state, &r, &flops, &bytes));
    assert_true(flops == 0 && bytes == 5 * (4.0 * 10007 + 4 + 4));
    assert_true(store_row(*state, &r, "m.db", NULL, &row));
    assert_string_equal(row.class_name, "elementwise/sample/fp32/ridge/top-k/own");
    assert_true(row.kernel.written_bytes == 5 * 4);
}

/* -- operators -- */

struct place {
    struct arena *a;
    struct hw hw;
    struct model m;
    struct shapes shapes;
    struct result r[64];
    size_t n;
};

static void load(struct place *p, struct arena *a, const char *model)
{
    struct err e = {.code = ERR_OK};
    const struct shapes_point at = {STEP_DECODE, 3, 1, 911};
    *p = (struct place){.a = a, .hw = core()};
    if (model_load(a, model, NULL, 0, &p->m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (shapes_of_model(a, &p->m, &p->hw, &at, &p->shapes, &e) != ERR_OK) fail_msg("%s", e.text);
}

static const struct shape *shape_named(const struct place *p, const char *op)
{
    for (size_t i = 0; i < p->shapes.n; i++)
        if (strcmp(p->shapes.v[i].op, op) == 0) return &p->shapes.v[i];
    fail_msg("no %s", op);
    return NULL;
}

static void measured(struct place *p, const char *kern, enum kern_dtype dtype, const int64_t *v, double time_s)
{
    const struct kern *k = kern_find(kern);
    struct kern_shape s = {.dtype = dtype};
    char text[128];
    assert_non_null(k);
    memcpy(s.v, v, k->args_n * sizeof *v);
    if (kern_shape_check(k, &s, text, sizeof text)) fail_msg("%s: %s", kern, text);
    p->r[p->n++] = result_of(k, &s, time_s);
}

static struct operator_row row_named(struct place *p, const char *op)
{
    const struct rows_filter all = {.hw = &p->hw};
    struct rows rows;
    struct validate_row *v;
    struct operator_row *out;
    struct err e = {.code = ERR_OK};
    struct store_left_out left_out;
    size_t n;
    if (store_rows_make(p->a, "m.db", p->r, p->n, &all, false, &rows, &left_out, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(left_out.of_no_kind + left_out.impossible, 0);
    assert_int_equal(rows.n, p->n);
    if (validate_rows(p->a, &p->hw, &rows, NULL, &v, &e) != ERR_OK) fail_msg("%s", e.text);
    const struct operator_rows of = {.model = &p->m, .shapes = &p->shapes, .rows = v, .n = rows.n};
    const char *missing;
    if (validate_model_rows(p->a, &of, &out, &n, &missing, &e) != ERR_OK) fail_msg("%s", e.text);
    for (size_t i = 0; i < n; i++)
        if (strncmp(out[i].op, op, strlen(op)) == 0 && (!out[i].op[strlen(op)] || out[i].op[strlen(op)] == ' '))
            return out[i];
    fail_msg("no %s", op);
    return out[0];
}

/* Llama 3.1 8B, D 4096, F 14336: a layer's MLP once, whole or by its products. */
static void a_whole_mlp_counts_once(void **state)
{
    struct place p;
    load(&p, *state, "llama-3.1-8b");
    const double up_s = shape_named(&p, "up_proj")->bound_s, down_s = shape_named(&p, "down_proj")->bound_s;
    const double whole_s = shape_named(&p, "mlp")->bound_s;
    assert_true(fabs(whole_s * 1e9 - 2 * (3 * 4096.0 * 14336 + 2 * 3 * 4096)) < 1); /* not a unit */
    assert_true(up_s + down_s > whole_s);
    measured(&p, "mlp", KERN_BF16, (const int64_t[]){3, 4096, 14336}, 0.7);
    struct operator_row layer = row_named(&p, "layer"), mlp = row_named(&p, "mlp");
    assert_true(mlp.measured_s == 0.7 && mlp.bound_s == whole_s && layer.measured_s == 0.7);
    assert_true(layer.bound_s == whole_s && layer.covered_frac < 1);
    assert_string_equal(layer.op, "layer (measured)");
    assert_true(layer.whole_bound_s > whole_s && layer.covered_frac == whole_s / layer.whole_bound_s);
    measured(&p, "gemm", KERN_BF16, (const int64_t[]){3, 28672, 4096}, 0.5); /* one of two products: still whole */
    layer = row_named(&p, "layer");
    assert_true(layer.measured_s == 0.7);
    measured(&p, "gemm", KERN_BF16, (const int64_t[]){3, 4096, 14336}, 0.1); /* both, and faster */
    layer = row_named(&p, "layer");
    assert_true(fabs(layer.measured_s - 0.6) < 1e-12 && fabs(layer.bound_s - (up_s + down_s)) < 1e-12);
    measured(&p, "rmsnorm", KERN_BF16, (const int64_t[]){3, 4096}, 0.01); /* two of them */
    measured(&p, "kv-write", KERN_BF16, (const int64_t[]){3, 8, 128}, 0.003);
    layer = row_named(&p, "layer");
    assert_true(fabs(layer.measured_s - 0.623) < 1e-12);
    measured(&p, "rope", KERN_BF16, (const int64_t[]){3, 32, 8, 128, 128, 1, 10000}, 0.0007);
    measured(&p, "rope", KERN_BF16, (const int64_t[]){3, 32, 8, 128, 64, 0, 10000}, 0.0001); /* half of a head */
    const double before_s = layer.bound_s;
    layer = row_named(&p, "layer");
    assert_true(fabs(layer.measured_s - 0.6237) < 1e-12);
    assert_true(fabs((layer.bound_s - before_s) * 1e9 - (2 * 2 * 3 * 40 * 128 + 4 * 3 + 8 * 64)) <
                1e-3); /* not a unit */
    measured(&p, "sample", KERN_BF16, (const int64_t[]){3, 128256, 50, 1000, 1000}, 0.0001);
    assert_true(isnan(row_named(&p, "sample").measured_s)); /* of the 50 most likely alone */
    measured(&p, "sample", KERN_BF16, (const int64_t[]){3, 128256, 0, 1000, 1000}, 0.0009);
    assert_true(row_named(&p, "sample").measured_s == 0.0009);
    assert_true(row_named(&p, "layer").measured_s == layer.measured_s);    /* it is in no layer */
    measured(&p, "rmsnorm", KERN_BF16, (const int64_t[]){5, 4096}, 0.001); /* of another batch */
    assert_true(row_named(&p, "layer").measured_s == layer.measured_s);
}

/* Mamba-2 2.7B: 80 heads of 64, a state of 128, kept in fp32. */
static void a_state_is_of_its_format(void **state)
{
    struct place p;
    load(&p, *state, "mamba2-2.7b");
    const struct shape *scan = shape_named(&p, "scan");
    measured(&p, "rmsnorm", KERN_BF16, (const int64_t[]){3, 2560}, 0.5);
    measured(&p, "mamba2-step", KERN_BF16, (const int64_t[]){3, 80, 64, 128, 1, 2}, 0.1);
    assert_true(isnan(row_named(&p, "scan").measured_s));
    measured(&p, "mamba2-step", KERN_BF16, (const int64_t[]){3, 80, 64, 128, 1, 4}, 0.2);
    const struct operator_row r = row_named(&p, "scan");
    assert_true(r.measured_s == 0.2 && r.bound_s == scan->bound_s);
    /* state read and written in fp32; x, y, b and c in bf16 */
    assert_true(fabs(r.bound_s * 1e9 - 3 * (2 * 4 * 80 * 64 * 128.0 + 2 * (2 * 80 * 64 + 2 * 128.0))) <
                1); /* not a unit */
}

/* Granite 3.1 1B: 32 experts, 8 a token: three tokens touch 32 * (1 - (3/4)^3) = 18.5 of them, in whole numbers 19. */
static void experts_are_those_expected(void **state)
{
    struct place p;
    load(&p, *state, "granite-3.1-1b-a400m");
    assert_true(shape_named(&p, "experts_up")->kernel.active_experts == 19);
    measured(&p, "moe", KERN_BF16, (const int64_t[]){3, 1024, 512, 8, 32, 8}, 0.1); /* far fewer */
    measured(&p, "moe", KERN_BF16, (const int64_t[]){3, 1024, 512, 8, 32, 19}, 0.3);
    const struct operator_row r = row_named(&p, "experts_up");
    assert_true(r.measured_s == 0.3);
    assert_true(fabs(r.bound_s * 1e9 - 2 * (19 * 3 * 1024.0 * 512 + 2 * 3 * 1024)) < 1); /* not a unit */
}

/* Weights of 4 bits with a scale for 128, activations of 16. */
static void narrow_weights_are_products(void **state)
{
    struct hw hw = core();
    const struct kern *k = kern_find("int4-matvec");
    const struct kern_shape s = {{3, 257, 1280}, KERN_INT4_G128};
    const struct result r = result_of(k, &s, 0.25);
    struct row row;
    struct kernel_work w;
    assert_true(store_row(*state, &r, "m.db", &hw, &row));
    assert_string_equal(row.class_name, "gemm/int4-g128/ridge/own");
    assert_int_equal(kernel_work(&row.kernel, &hw, &w, NULL), ERR_OK);
    assert_true(w.bytes == 257 * (640 + 2 * 10) + 2 * 3 * 1280 + 2 * 3 * 257);
    assert_true(w.flops == 2.0 * 3 * 257 * 1280);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(work_is_the_kernels_own_count, begin, end),
        cmocka_unit_test_setup_teardown(rows_judged_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(moved_bytes_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(a_whole_mlp_counts_once, begin, end),
        cmocka_unit_test_setup_teardown(a_state_is_of_its_format, begin, end),
        cmocka_unit_test_setup_teardown(experts_are_those_expected, begin, end),
        cmocka_unit_test_setup_teardown(narrow_weights_are_products, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
