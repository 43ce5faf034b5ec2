/* Every value of a step and every column of its operators once more in plain doubles: the pass is built with numbers
 * for B, T and S, each operator is divided by the rates of the device's file, and sums, maxima and memory are a loop's.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/model/stored.h"
#include "calc/time/step.h"

enum { B = 37, T = 211, S = 1531, BLOCK = 16 };

struct asked {
    const char *model, *weights, *gpu;
    int64_t tp;
    enum step_fidelity fidelity;
    bool together, uncached, verify, course, slow_vector;
    double M; /* 0: not averaged */
    int64_t pass_tokens;
};

static const struct asked CASES[] = {
    {"llama-3.1-70b", NULL, "h100-sxm", 4, STEP_ROOFLINE, false, false, false, false, false, 0, 0},
    {"llama-3.1-70b", NULL, "a100-80g", 2, STEP_BOUND, true, false, false, false, false, 0, 0},
    {"llama-3.1-8b", "llm-int8", "h100-sxm", 2, STEP_ROOFLINE, false, false, false, false, true, 0, 0},
    {"gemma-3-27b", "fp8", "h200-sxm", 2, STEP_ROOFLINE, true, false, true, false, false, 0, 0},
    {"gemma-3n-e4b", NULL, "l40s", 1, STEP_ROOFLINE, true, false, false, false, false, 0, 0},
    {"deepseek-v3.2", NULL, "h200-sxm", 8, STEP_ROOFLINE, false, false, false, false, false, 0, 0},
    {"deepseek-v3.2", NULL, "h200-sxm", 8, STEP_BOUND, false, false, true, false, false, 0, 0},
    {"jamba-1.5-mini", NULL, "h100-sxm", 2, STEP_BOUND, false, false, false, false, false, 0, 0},
    {"qwen3-coder-next", NULL, "h100-sxm", 2, STEP_ROOFLINE, true, true, false, false, false, 0, 0},
    {"qwen3-coder-next", NULL, "a100-80g", 1, STEP_ROOFLINE, true, false, true, false, true, 0, 0},
    {"gpt-oss-120b", NULL, "h100-sxm", 2, STEP_ROOFLINE, false, false, false, false, false, 401, 0},
    {"llama-2-13b", NULL, "h100-sxm", 1, STEP_BOUND, true, false, false, true, false, 0, 0},
    {"llada-8b", NULL, "h100-sxm", 1, STEP_ROOFLINE, true, false, false, false, false, 0, 32},
    {"mixtral-8x7b", "int4", "l40s", 2, STEP_ROOFLINE, false, false, false, false, false, 0, 0},
};

static void near(double found, double wanted, const struct asked *q, const char *what)
{
    if (!(fabs(found - wanted) <= 1e-11 * fabs(wanted)))
        fail_msg("%s on %s, %s: found %.17g, wanted %.17g", q->model, q->gpu, what, found, wanted);
}

static double number(struct sym_ctx *c, const struct cost_symbols *y, double r, const struct sym *x)
{
    const struct sym_binding sent = {y->r, sym_num(c, r)};
    double v = (double)NAN;
    if (!sym_constant(sym_bind(c, x, &sent, 1), &v)) fail_msg("not a number");
    return v;
}

/* Matrix unit of a format: its own where the device has one, else the first of these. */
static double peak_of(const struct hw *hw, const struct dtype *d)
{
    static const enum hw_dtype OTHERS[] = {HW_BF16, HW_FP16, HW_TF32, HW_FP32_VECTOR};
    for (int i = 0; i < HW_DTYPES_N; i++)
        if (strcmp(hw_dtype_name((enum hw_dtype)i), d->compute) == 0 && !isnan(hw->peak_flops_per_s[i]))
            return hw->peak_flops_per_s[i];
    for (size_t i = 0; i < 4; i++)
        if (!isnan(hw->peak_flops_per_s[OTHERS[i]])) return hw->peak_flops_per_s[OTHERS[i]];
    return (double)NAN;
}

struct sums {
    double flops, bytes, needed_bytes, held_bytes, compute_s, link_s, time_s, most_activation_bytes;
};

struct bench {
    struct arena *a;
    struct model m;
    struct hw hw;
    struct step *s;
    struct sym_ctx *c;
    struct cost_symbols y;
    double link, r; /* bytes/s of a rank; what an all-reduce sends, of its payload */
};

/* A link of the device's own, else its bus; a ring sends 2(t-1)/t of a sum, a switch that adds up all of it once. */
static void links(struct bench *h, const struct asked *q)
{
    const double t = (double)q->tp;
    h->link =
        t <= h->hw.link_domain && !isnan(h->hw.link_bytes_per_s) ? h->hw.link_bytes_per_s : h->hw.pcie_bytes_per_s;
    h->r = h->hw.nvls && q->tp > 2 ? 1 : 2 * (t - 1) / t;
}

static const char *bound_by(const double s[4])
{
    static const char *const NAMES[] = {"compute", "vector", "memory", "link"};
    size_t most = 0;
    for (size_t i = 1; i < 4; i++)
        if (s[i] > s[most]) most = i;
    return NAMES[most];
}

static void check_row(struct bench *h, const struct asked *q, const struct cost_op *op, const struct step_op *row,
                      const double s[4], double time_s)
{
#define VALUE(field) ((double)op->count * number(h->c, &h->y, h->r, op->field))
    near(row->flops, VALUE(flops), q, op->name);
    near(row->vector_flops, VALUE(vector_flops), q, op->name);
    near(row->weight_bytes, VALUE(weight_bytes), q, op->name);
    near(row->kv_bytes, VALUE(kv_bytes), q, op->name);
    near(row->state_bytes, VALUE(state_bytes), q, op->name);
    near(row->activation_bytes, VALUE(activation_bytes), q, op->name);
    near(row->wire_bytes, VALUE(wire_bytes), q, op->name);
    const double bytes = VALUE(weight_bytes) + VALUE(kv_bytes) + VALUE(state_bytes) + VALUE(activation_bytes);
    near(row->bytes, bytes, q, op->name);
    const double flops = VALUE(flops) > 0 ? VALUE(flops) : VALUE(vector_flops);
    if (bytes > 0) near(row->intensity_flops_per_byte, flops / bytes, q, op->name);
#undef VALUE
    near(row->time_s, (double)op->count * time_s, q, op->name);
    assert_string_equal(row->bound_by, bound_by(s));
    assert_string_equal(row->layer, op->kind_index < 0 ? "model" : h->m.kinds[op->kind_index].label);
    assert_string_equal(row->name, op->name);
    assert_int_equal(row->count, op->count);
}

static struct sums sum_up(struct bench *h, const struct asked *q, const struct cost_pass *pass,
                          const struct step_op *row, size_t rows)
{
    const struct cost_conventions v = cost_conventions_of(q->course);
    struct sums sum = {.flops = 0};
    struct cost_ops ops;
    struct err e = {0};
    if (cost_build(h->a, h->c, &h->y, &h->m, &v, pass, q->tp, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    if (cost_bind(h->c, &h->y, &h->m, q->tp, &ops, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_int_equal(rows, ops.n);
    double whole_s = 0, shares = 0;
    for (size_t i = 0; i < ops.n; i++) {
        const struct cost_op *op = &ops.op[i];
        const struct dtype *d = op->format              ? op->format
                                : op->compute_class < 0 ? &h->m.activations
                                                        : &h->m.weights[op->compute_class];
        const double n = (double)op->count, half = number(h->c, &h->y, h->r, op->half_flops);
        const double flops = number(h->c, &h->y, h->r, op->flops),
                     act = number(h->c, &h->y, h->r, op->activation_bytes);
        const double bytes = number(h->c, &h->y, h->r, op->weight_bytes) + number(h->c, &h->y, h->r, op->kv_bytes) +
                             number(h->c, &h->y, h->r, op->state_bytes) + act;
        const double parts[] = {(flops - half) / peak_of(&h->hw, d) + half / peak_of(&h->hw, &h->m.activations),
                                number(h->c, &h->y, h->r, op->vector_flops) / h->hw.peak_flops_per_s[HW_FP32_VECTOR],
                                bytes / h->hw.bandwidth_bytes_per_s,
                                q->tp > 1 ? number(h->c, &h->y, h->r, op->wire_bytes) / h->link : 0};
        const double time_s = fmax(fmax(parts[0], parts[1]), fmax(parts[2], parts[3]));
        check_row(h, q, op, &row[i], parts, time_s);
        sum.flops += n * flops;
        sum.held_bytes += n * number(h->c, &h->y, h->r, op->held_bytes);
        sum.bytes += n * bytes;
        sum.needed_bytes +=
            n * (number(h->c, &h->y, h->r, op->weight_needed_bytes) + number(h->c, &h->y, h->r, op->kv_needed_bytes) +
                 number(h->c, &h->y, h->r, op->state_needed_bytes));
        sum.compute_s += n * parts[0];
        sum.link_s += n * parts[3];
        sum.time_s += n * time_s;
        sum.most_activation_bytes = fmax(sum.most_activation_bytes, act);
        whole_s += n * time_s;
    }
    for (size_t i = 0; i < ops.n; i++) {
        near(row[i].share_frac, row[i].time_s / whole_s, q, "share");
        shares += row[i].share_frac;
    }
    near(shares, 1, q, "shares");
    if (q->fidelity == STEP_BOUND) {
        sum.bytes = sum.needed_bytes;
        sum.time_s = fmax(fmax(sum.compute_s, sum.bytes / h->hw.bandwidth_bytes_per_s), sum.link_s);
    }
    return sum;
}

static void check_memory(struct bench *h, const struct asked *q, const double *v, const struct sums *prefill,
                         const struct sums *decode, double beside_bytes)
{
    struct cost_cache cache;
    struct err e = {0};
    const double last = q->verify ? S + T - 1 : S; /* tokens in the cache at the end of the pass */
    const double decoded = q->uncached ? S : q->verify ? T : q->pass_tokens ? (double)q->pass_tokens : 1;
    const double stream = (double)h->m.hidden * (h->m.streams ? (double)h->m.streams : 1) * h->m.activations.bits / 8;
    assert_int_equal(cost_cache(h->c, &h->y, &h->m, q->tp, &cache, &e), ERR_OK);
    const struct sym_binding at = {h->y.S, sym_num(h->c, last)};
    double kv = 0, per_token = cache.bytes_per_token_full;
    assert_true(sym_constant(sym_bind(h->c, cache.bytes_per_sequence, &at, 1), &kv));
    per_token += cache.bytes_per_token_windowed;
    per_token += cache.bytes_per_token_index;
    const double held = q->uncached ? 0 : 1;
    near(v[STEP_kv_bytes], held * B * kv, q, "kv_bytes");
    near(v[STEP_kv_allocated_bytes], held * B * ceil(last / BLOCK) * BLOCK * per_token, q, "kv_allocated_bytes");
    near(v[STEP_state_bytes], held * B * cache.state_bytes_per_sequence, q, "state_bytes");
    near(decode->held_bytes, v[STEP_kv_bytes] + v[STEP_state_bytes], q, "what operators keep");
    near(step_state_bytes_per_sequence(h->s), held * cache.state_bytes_per_sequence, q, "state of a sequence");
    double act = fmax(prefill->most_activation_bytes + (q->together ? B * T : T) * stream,
                      decode->most_activation_bytes + B * decoded * stream);
    if (q->course) act = 0;
    near(v[STEP_activation_bytes], act, q, "activation_bytes");
    near(v[STEP_memory_bytes],
         step_weight_bytes(h->s) + beside_bytes + v[STEP_kv_bytes] + v[STEP_state_bytes] + v[STEP_activation_bytes], q,
         "memory_bytes");
}

static void check(const struct asked *q)
{
    struct err e = {0};
    struct bench h = {.a = arena_open()};
    if (model_load(h.a, q->model, NULL, 0, &h.m, &e) != ERR_OK) fail_msg("%s", e.text);
    if (q->weights && stored_set_all(&h.m, q->weights, &e) != ERR_OK) fail_msg("%s", e.text);
    if (hw_load(h.a, q->gpu, &h.hw, &e) != ERR_OK) fail_msg("%s", e.text);
    if (q->slow_vector) h.hw.peak_flops_per_s[HW_FP32_VECTOR] /= 97;
    /* a tower of so many parameters, of which every rank has a copy of these */
    h.m.tower = (struct model_tower){.params = 7654321, .whole_params = 54321};
    h.m.audio = (struct model_tower){.params = (double)NAN, .whole_params = 1}; /* nobody knows: nothing */
    const double tp = q->tp > 1 ? (double)q->tp : 1;
    const double beside_bytes = (7600000 / tp + 54321) * h.m.weights[WEIGHT_OTHER].bits / 8;
    const struct step_setup setup = {.model = &h.m,
                                     .hw = &h.hw,
                                     .layout = {.tp = q->tp},
                                     .fidelity = q->fidelity,
                                     .conventions = cost_conventions_of(q->course),
                                     .prefill_together = q->together,
                                     .uncached = q->uncached,
                                     .averaged = q->M > 0,
                                     .verify = q->verify,
                                     .block_tokens = BLOCK,
                                     .pass_tokens = q->pass_tokens};
    if (step_compile(h.a, &setup, &h.s, &e) != ERR_OK) fail_msg("%s: %s", q->model, e.text);
    h.c = sym_open(h.a);
    h.y = cost_symbols_make(h.c);
    links(&h, q);
    double v[STEP_VALUES_N], *column[STEP_VALUES_N];
    const double b = B, t = T, s = S, mean = q->M > 0 ? q->M : 1;
    for (size_t i = 0; i < STEP_VALUES_N; i++) column[i] = &v[i];
    step_eval(h.s, 1, &b, &t, &s, &mean, column);
    const struct sym *one = sym_int(h.c, 1), *bs = sym_int(h.c, B), *ts = sym_int(h.c, T), *ss = sym_int(h.c, S);
    const struct cost_pass prompt = {
        .name = "prefill", .B = q->together ? bs : one, .T = ts, .S = ts, .uncached = q->uncached};
    struct cost_pass next = {
        .name = "decode", .B = bs, .T = one, .S = ss, .absorbed = !q->uncached, .uncached = q->uncached};
    if (q->uncached) next.T = ss;
    if (q->verify) {
        next.T = ts;
        next.S = sym_int(h.c, S + T - 1);
    }
    if (q->M > 0) next.M = sym_num(h.c, q->M);
    if (q->pass_tokens) next.T = sym_int(h.c, q->pass_tokens);
    next.all_logits = q->verify || h.m.diffusion;
    struct sums sum[STEP_PHASES];
    for (int p = 0; p < STEP_PHASES; p++) {
        struct step_op *rows;
        size_t n;
        assert_int_equal(step_ops(h.a, h.s, (enum step_phase)p, B, T, S, mean, &rows, &n, &e), ERR_OK);
        sum[p] = sum_up(&h, q, p == STEP_PREFILL ? &prompt : &next, rows, n);
        assert_string_equal(rows[0].phase, p == STEP_PREFILL ? "prefill" : q->verify ? "verify" : "decode");
        const double *at = v + (p == STEP_PREFILL ? STEP_prefill_s : STEP_decode_step_s);
        near(at[0], sum[p].time_s, q, "time");
        near(at[1], sum[p].flops, q, "flops");
        near(at[2], sum[p].bytes, q, "bytes");
        near(at[3], sum[p].compute_s, q, "compute");
        near(at[4], sum[p].bytes / h.hw.bandwidth_bytes_per_s, q, "memory");
        near(at[5], sum[p].link_s, q, "link");
    }
    check_memory(&h, q, v, &sum[STEP_PREFILL], &sum[STEP_DECODE], beside_bytes);
    arena_close(h.a);
}

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) check(&CASES[i]);
}

/* The totals behind a formula, each with a number of its own. */
static void test_totals(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    struct err e = {0};
    const struct sym *x[15];
    for (int64_t i = 0; i < 15; i++) x[i] = sym_int(c, 1009 + 2 * i * i);
    struct cost_op op[] = {{.kind_index = -1, .count = 3}, {.kind_index = 0, .count = 5}};
    struct timed timed[2];
    for (size_t i = 0; i < 2; i++) {
        op[i].flops = x[0], op[i].vector_flops = x[1], op[i].weight_bytes = x[2], op[i].kv_bytes = x[3];
        op[i].kv_needed_bytes = x[4], op[i].activation_bytes = x[5], op[i].wire_bytes = x[6];
        op[i].weight_needed_bytes = x[7], op[i].state_bytes = x[8], op[i].state_needed_bytes = x[9],
        op[i].fabric_bytes = x[14];
        timed[i] = (struct timed){.bytes = x[10], .compute_s = x[11], .link_s = x[12], .time_s = x[13]};
    }
    const struct cost_ops ops = {.op = op, .n = 2};
    const struct rates rates = {.bandwidth = sym_int(c, 7)};
    for (int bound = 0; bound < 2; bound++) {
        struct timed_total t;
        const enum step_fidelity f = bound ? STEP_BOUND : STEP_ROOFLINE;
        const struct sym *layers = sym_int(c, 11);
        assert_int_equal(timed_sum(a, c, &rates, f, &ops, timed, layers, &t, &e), ERR_OK);
        const struct sym *got[] = {
            t.flops,           t.vector_flops,          t.weight_bytes,         t.kv_bytes,
            t.kv_needed_bytes, t.activation_bytes,      t.wire_bytes,           t.weight_needed_bytes,
            t.state_bytes,     t.state_needed_bytes,    bound ? NULL : t.bytes, t.compute_s,
            t.link_s,          bound ? NULL : t.time_s, t.fabric_bytes};
        const double copies = 3 + 5 * 11;
        double v, want;
        for (size_t i = 0; i < 15; i++) {
            if (!got[i]) continue;
            assert_true(sym_constant(got[i], &v) && sym_constant(x[i], &want));
            assert_true(v == copies * want);
        }
        if (!bound) continue;
        const double bytes = copies * (1009 * 3 + 2 * (16 + 49 + 81)), link_s = copies * (1009 + 2 * 144);
        assert_true(sym_constant(t.bytes, &v) && v == bytes);
        assert_true(sym_constant(t.time_s, &v) && v == link_s && link_s > bytes / 7);
    }
    arena_close(a);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(step_fidelity_name(STEP_BOUND), "bound");
    assert_string_equal(step_fidelity_name(STEP_ROOFLINE), "roofline");
    assert_string_equal(step_phase_name(STEP_PREFILL), "prefill");
    assert_string_equal(step_phase_name(STEP_DECODE), "decode");
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    const struct rates r = rates_make(c);
    const char *meaning;
    for (size_t i = 0; i < RATES_N; i++) {
        const struct sym *want = i < HW_DTYPES_N ? r.peak[i] : i == HW_DTYPES_N ? r.bandwidth : r.link;
        assert_ptr_equal(rates_list(&r, i, &meaning), want);
    }
    assert_string_equal(sym_name(r.link), "link");
    assert_string_equal(sym_name(r.bandwidth), "bandwidth");
    arena_close(a);
}

/* What one rank can send: over the link as far as it joins, else over the bus; more ranks than a link joins are
 * refused. */
static void test_link_rates(void **state)
{
    (void)state;
    const double none = (double)NAN;
    const struct {
        double link, pair, domain, pcie;
        int64_t tp;
        enum err_code code;
        double rate;
    } ROWS[] = {
        {450e9, none, 8, 55e9, 8, ERR_OK, 450e9},     {450e9, none, 8, 55e9, 9, ERR_USAGE, none},
        {none, none, none, 55e9, 8, ERR_OK, 55e9},    {450e9, 64e9, 8, 55e9, 4, ERR_OK, 192e9},
        {450e9, 64e9, 8, none, 8, ERR_OK, 448e9},     {250e9, 64e9, 8, none, 8, ERR_OK, 250e9},
        {none, none, none, none, 2, ERR_INPUT, none}, {none, none, none, none, 1, ERR_OK, none},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const struct hw hw = {.name = "made",
                              .file = "made",
                              .link_bytes_per_s = ROWS[i].link,
                              .link_pair_bytes_per_s = ROWS[i].pair,
                              .link_domain = ROWS[i].domain,
                              .pcie_bytes_per_s = ROWS[i].pcie};
        struct err e = {0};
        double rate = -1;
        assert_int_equal(timed_link_rate(&hw, ROWS[i].tp, &rate, &e), ROWS[i].code);
        if (ROWS[i].code == ERR_OK) assert_true(isnan(ROWS[i].rate) ? isnan(rate) : rate == ROWS[i].rate);
    }
    /* of a payload: around a ring 2(t-1)/t, through a switch that sums all of it once */
    struct arena *a = arena_open();
    struct sym_ctx *c = sym_open(a);
    const struct hw with = {.nvls = true}, without = {.nvls = false};
    for (int64_t tp = 2; tp <= 7; tp++) {
        assert_ptr_equal(timed_wire_factor(c, &with, tp), sym_int(c, 1));
        assert_ptr_equal(timed_wire_factor(c, &without, tp), sym_rat(c, 2 * tp - 2, tp));
        assert_ptr_equal(timed_wire_factor(c, NULL, tp), sym_rat(c, 2 * tp - 2, tp));
    }
    arena_close(a);
}

/* The course's constants, of the one device that it speaks of. */
static void test_course_constants(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct err e = {0};
    struct hw hw;
    assert_int_equal(hw_load(a, "h100-sxm", &hw, &e), ERR_OK);
    hw_pin_course(&hw);
    assert_true(hw.peak_flops_per_s[HW_BF16] == 989e12 && hw.peak_flops_per_s[HW_FP16] == 989e12);
    assert_true(hw.bandwidth_bytes_per_s == 3350000000000.0 && hw_capacity_bytes(&hw) == 80000000000.0);
    assert_int_equal(hw_load(a, "h200-sxm", &hw, &e), ERR_OK);
    const struct hw before = hw;
    hw_pin_course(&hw);
    assert_memory_equal(&hw, &before, sizeof hw);
    /* without a device a format computes in its own unit */
    enum hw_dtype unit;
    const struct dtype fp8 = {.compute = "fp8"}, none = {.compute = "none"};
    assert_int_equal(timed_unit(NULL, &fp8, &unit, &e), ERR_OK);
    assert_int_equal(unit, HW_FP8);
    assert_int_equal(timed_unit(NULL, &none, &unit, &e), ERR_OK);
    assert_int_equal(unit, HW_BF16);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_totals),           cmocka_unit_test(test_names),
        cmocka_unit_test(test_link_rates), cmocka_unit_test(test_course_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
