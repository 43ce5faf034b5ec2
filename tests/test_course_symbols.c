/* The formulas of a course (Stanford CS336, Spring 2025, lecture 10), as strings of cases/course.json, against what the
 * cost model derives: flops, bytes, intensities, their limits and substitutions, parameters and the polynomials in B.
 * All is decided by algebra; the strings come from the file. Skipped without it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calc/base/json.h"
#include "calc/learn/quantity.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct fixture {
    struct arena *a;
    struct quantity_scope scope;
    const struct sym *c; /* what grows in a limit */
    struct parse_symbol symbols[64];
    struct parse_names names;
    struct json course;
    bool found;
    struct err err;
};

static void check(struct fixture *f, enum err_code code, const char *what)
{
    if (code != ERR_OK) fail_msg("%s: %s", what, f->err.text);
}

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    if (quantity_open(f->a, NULL, true, &f->scope, &f->err) != ERR_OK) return -1;
    f->c = sym_var(f->scope.c, "c");
    const struct parse_symbol all[] = {
#define X(field, text, meaning) {text, f->scope.y.field},
        COST_SYMBOLS(X)
#undef X
            {"c", f->c},
    };
    _Static_assert(COUNT(all) <= COUNT(f->symbols), "room for c");
    memcpy(f->symbols, all, sizeof all);
    f->names = (struct parse_names){.symbols = f->symbols, .n_symbols = COUNT(all)};
    const char *root = getenv("RIDGE_SHARED");
    const char *path = arena_printf(f->a, "%s/cases/course.json", root ? root : "../shared");
    const enum err_code code = json_load(f->a, path, &f->course, &f->err);
    f->found = code == ERR_OK;
    *state = f;
    return code == ERR_OK || code == ERR_IO ? 0 : -1;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    const enum err_code code = sym_check(f->scope.c, NULL);
    arena_close(f->a);
    free(f);
    return code == ERR_OK ? 0 : -1;
}

/* ---- reading the file ---- */

static const struct sym *parsed_n(struct fixture *f, const char *text, size_t len)
{
    const struct sym *e = NULL;
    check(f, sym_parse(f->scope.c, text, len, &f->names, &e, NULL, &f->err), text);
    return e;
}

static const struct sym *parsed(struct fixture *f, const char *text) { return parsed_n(f, text, strlen(text)); }

static const char *text_of(struct fixture *f, const struct json *j)
{
    const char *s = NULL;
    check(f, json_str(j, &s, &f->err), "course.json");
    return s;
}

static struct json member(const struct json *j, const char *key)
{
    struct json out = {0};
    if (!json_get(j, key, &out)) fail_msg("course.json: no %s", key);
    return out;
}

static const struct sym *expression(struct fixture *f, const struct json *j, const char *key)
{
    const struct json m = member(j, key);
    return parsed(f, text_of(f, &m));
}

static double number(struct fixture *f, const struct json *j, const char *key)
{
    const struct json m = member(j, key);
    double v = (double)NAN;
    check(f, json_num(&m, &v, &f->err), key);
    return v;
}

/* "D=c*B, F=c*B, c->inf": the equations are bound in e; true when the last part is the arrow. */
static bool substituted(struct fixture *f, const char *text, const struct sym **e)
{
    struct sym_binding env[4];
    size_t n = 0;
    bool grows = false;
    while (*text) {
        const size_t len = strcspn(text, ","), left = strcspn(text, "=,");
        assert_false(grows);
        if (left < len) {
            assert_true(n < COUNT(env));
            env[n].var = parsed_n(f, text, left);
            assert_non_null(sym_name(env[n].var));
            env[n++].value = parsed_n(f, text + left + 1, len - left - 1);
        } else {
            grows = len >= 6 && memcmp(text + len - 6, "c->inf", 6) == 0;
            assert_true(grows);
        }
        text += len + (text[len] == ',');
    }
    *e = sym_bind(f->scope.c, *e, env, n);
    return grows;
}

/* ---- deciding ---- */

static void assert_equal(struct fixture *f, const struct sym *got, const struct sym *want, const char *what)
{
    bool same = false;
    char text[2][512];
    check(f, sym_equal(f->scope.c, got, want, &same, &f->err), what);
    if (same) return;
    (void)sym_print(got, text[0], sizeof text[0]);
    (void)sym_print(want, text[1], sizeof text[1]);
    fail_msg("%s: %s is not %s", what, text[0], text[1]);
}

/* ---- the three derivations ---- */

/* The entry's first word, and the topic of the cost model. One plain product [B, D] x [D, F] is the down projection
 * with D and F exchanged, one token a sequence. */
static const struct {
    const char *word, *topic;
    enum quantity_phase phase;
    bool exchanged;
} ENTRIES[] = {
    {"matmul", "down_proj", QUANTITY_DECODE, true},
    {"gated", "mlp", QUANTITY_ANY, false},
    {"attention", "attention", QUANTITY_ANY, false},
};

static const struct sym *exchanged(struct fixture *f, const struct sym *e)
{
    const struct cost_symbols *y = &f->scope.y;
    const struct sym_binding env[] = {{y->D, y->F}, {y->F, y->D}};
    return sym_bind(f->scope.c, e, env, COUNT(env));
}

static void compare_cases(struct fixture *f, const struct json *entry, const char *key, const struct sym *intensity,
                          size_t *n)
{
    struct json cases, value;
    const char *how;
    if (!json_get(entry, key, &cases)) return;
    for (size_t i = 0; json_at(&cases, i, &how, &value); i++, ++*n) {
        const struct sym *e = intensity, *want = parsed(f, text_of(f, &value));
        if (substituted(f, how, &e)) {
            int64_t order = 97;
            check(f, sym_limit(f->scope.c, e, 1, &f->c, &e, &order, &f->err), how);
            assert_int_equal(order, 0);
        }
        assert_equal(f, e, want, how);
    }
}

static void test_derivations(void **state)
{
    struct fixture *f = *state;
    struct json entry;
    size_t entries = 0, cases = 0;
    if (!f->found) skip();
    const struct json list = member(&f->course, "symbolic");
    for (size_t i = 0; json_at(&list, i, NULL, &entry); i++, entries++) {
        const struct json of = member(&entry, "of");
        const char *name = text_of(f, &of);
        size_t k = 0;
        while (k < COUNT(ENTRIES) && strncmp(name, ENTRIES[k].word, strlen(ENTRIES[k].word)) != 0) k++;
        if (k == COUNT(ENTRIES)) fail_msg("course.json has an entry for which there is no topic: %s", name);
        struct quantity_topic q;
        check(f, quantity_topic(&f->scope, ENTRIES[k].topic, ENTRIES[k].phase, &q, &f->err), name);
        const struct sym *flops = q.total.flops, *bytes = q.bytes;
        if (ENTRIES[k].exchanged) {
            flops = exchanged(f, flops);
            bytes = exchanged(f, bytes);
        }
        const struct sym *intensity = sym_div(f->scope.c, flops, bytes);
        assert_equal(f, flops, expression(f, &entry, "flops"), name);
        assert_equal(f, bytes, expression(f, &entry, "bytes"), name);
        assert_equal(f, intensity, expression(f, &entry, "intensity"), name);
        compare_cases(f, &entry, "limit", intensity, &cases);
        compare_cases(f, &entry, "subs", intensity, &cases);
    }
    assert_int_equal(entries, COUNT(ENTRIES));
    assert_int_equal(cases, 4); /* two limits, T = S and T = 1 */
}

/* Both phases of attention as the model derives them by itself, T = S and T = 1 from the start. */
static void test_attention_phases(void **state)
{
    struct fixture *f = *state;
    static const struct {
        enum quantity_phase phase;
        const char *key;
    } PHASES[] = {{QUANTITY_PREFILL, "T=S"}, {QUANTITY_DECODE, "T=1"}};
    struct json entry;
    if (!f->found) skip();
    const struct json list = member(&f->course, "symbolic");
    assert_true(json_at(&list, 2, NULL, &entry));
    const struct json subs = member(&entry, "subs");
    for (size_t i = 0; i < COUNT(PHASES); i++) {
        const struct sym *got = NULL;
        check(f, quantity_resolve(&f->scope, PHASES[i].phase, "intensity", "attention", &got, &f->err), "attention");
        assert_equal(f, got, expression(f, &subs, PHASES[i].key), PHASES[i].key);
    }
}

/* ---- the model ---- */

static struct cost_ops pass_of(struct fixture *f, const struct model *m)
{
    const struct cost_symbols *y = &f->scope.y;
    const struct cost_pass pass = {.name = "decode", .B = y->B, .T = sym_int(f->scope.c, 1), .S = y->S};
    struct cost_ops ops = {0};
    check(f, cost_build(f->a, f->scope.c, y, m, &f->scope.conventions, &pass, 1, &ops, &f->err), "build");
    return ops;
}

static struct model load(struct fixture *f, const char *kv_heads)
{
    struct model m = {0};
    const struct model_setting set = {"K", kv_heads};
    check(f, model_load(f->a, "llama-2-13b", &set, 1, &m, &f->err), "llama-2-13b");
    return m;
}

/* Stored elements of every tensor, norms left out, with all sizes still symbols: as often as L where in every layer. */
static const struct sym *parameters(struct fixture *f, const struct model *m)
{
    struct sym_ctx *c = f->scope.c;
    const struct cost_symbols *y = &f->scope.y;
    const struct cost_ops ops = pass_of(f, m);
    const struct sym *sum = sym_int(c, 0);
    for (size_t i = 0; i < ops.n; i++) {
        const struct cost_op *op = &ops.op[i];
        const struct sym *count = sym_int(c, 1);
        if (op->kind_index >= 0) {
            assert_int_equal(op->count, m->layers);
            count = y->L;
        }
        for (size_t k = 0; k < op->tensors_n; k++)
            if (!op->tensor[k].shared && !op->tensor[k].norm)
                sum = sym_add(c, sum, sym_mul(c, count, op->tensor[k].elems));
    }
    return sym_bind(c, sum, &(struct sym_binding){y->Hv, y->H}, 1);
}

static void test_parameters(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->scope.c;
    const struct cost_symbols *y = &f->scope.y;
    struct json row;
    double value = (double)NAN;
    if (!f->found) skip();
    const struct json model = member(&f->course, "model"), rows = member(&f->course, "numbers");
    const struct model m = load(f, "40");
    const struct sym *got = parameters(f, &m), *want = expression(f, &model, "num_params");
    assert_equal(f, got, want, "num_params");
    const struct sym *const var[] = {y->D, y->F, y->N, y->H, y->L, y->V};
    struct sym_binding env[COUNT(var) + 1];
    for (size_t i = 0; i < COUNT(var); i++)
        env[i] = (struct sym_binding){var[i], sym_num(c, number(f, &model, sym_name(var[i])))};
    for (size_t i = 0; json_at(&rows, i, NULL, &row); i++) {
        env[COUNT(var)] = (struct sym_binding){y->K, sym_num(c, number(f, &row, "K"))};
        assert_true(sym_constant(sym_bind(c, got, env, COUNT(env)), &value));
        assert_true(value == number(f, &row, "num_params"));
    }
    assert_true(json_len(&rows) > 0);
}

/* num and den are equal up to a constant that is 1 to the 15 digits that the file prints. */
static void assert_nearly(struct fixture *f, const struct sym *num, const struct sym *den, const char *what)
{
    const struct sym *ratio = NULL;
    double v = (double)NAN;
    check(f, sym_normal(f->scope.c, sym_div(f->scope.c, num, den), &ratio, &f->err), what);
    if (!sym_constant(ratio, &v)) fail_msg("%s: not of one shape", what);
    if (!(fabs(v - 1.0) < 5e-15)) fail_msg("%s: off by a factor %.17g", what, v);
}

/* Memory exactly, latency and throughput in shape exactly and in coefficients to the digits printed: from the
 * expressions of weights and cache, not from compiled seconds. */
static void test_polynomials_in_batch(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->scope.c;
    const struct cost_symbols *y = &f->scope.y;
    if (!f->found) skip();
    const struct json p = member(&f->course, "memory_as_polynomial_in_B"), hw = member(&f->course, "hardware"),
                      conventions = member(&f->course, "conventions");
    const struct model m = load(f, "40");
    struct cost_ops ops = pass_of(f, &m);
    struct cost_cache cache;
    check(f, cost_bind(c, y, &m, 1, &ops, &f->err), "bind");
    check(f, cost_cache(c, y, &m, 1, &cache, &f->err), "cache");
    const struct sym_binding context = {y->S, sym_num(c, number(f, &conventions, "S"))};
    const struct sym *memory = sym_add(c, cost_weight_bytes(c, &ops, &f->scope.conventions),
                                       sym_mul(c, y->B, sym_bind(c, cache.bytes_per_sequence, &context, 1)));
    assert_equal(f, memory, expression(f, &p, "K=40"), "memory");

    const struct sym *rate = sym_num(c, number(f, &hw, "hbm_bytes_per_s"));
    const struct sym *latency = sym_div(c, memory, rate), *printed = expression(f, &p, "latency_K=40");
    const struct sym_binding none = {y->B, sym_int(c, 0)};
    const struct sym *slope = NULL, *printed_slope = NULL;
    check(f, sym_diff(c, latency, y->B, &slope, &f->err), "latency");
    check(f, sym_diff(c, printed, y->B, &printed_slope, &f->err), "latency");
    assert_nearly(f, printed_slope, slope, "latency, per sequence");
    assert_nearly(f, sym_bind(c, printed, &none, 1), sym_bind(c, latency, &none, 1), "latency, of the weights");
    assert_nearly(f, expression(f, &p, "throughput_K=40"), sym_div(c, y->B, latency), "throughput");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        TEST(test_derivations),
        TEST(test_attention_phases),
        TEST(test_parameters),
        TEST(test_polynomials_in_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
