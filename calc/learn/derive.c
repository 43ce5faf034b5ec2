#include "calc/learn/derive.h"

#include <math.h>
#include <string.h>

#include "calc/sym/normal.h"

struct page {
    const struct derive_request *q;
    struct arena *a;
    struct sym_ctx *c;
    struct derivation *d;
    struct err *e;
    bool failed;
};

/* ---- growing lists ---- */

static void begin(struct page *p, const char *title, const char *about)
{
    struct derivation *d = p->d;
    if (d->n == d->cap) {
        const size_t cap = d->cap ? 2 * d->cap : 16;
        struct derive_section *more = arena_array(p->a, cap, sizeof *more);
        if (!more) {
            p->failed = true;
            return;
        }
        if (d->n) memcpy(more, d->section, d->n * sizeof *more);
        d->section = more;
        d->cap = cap;
    }
    d->section[d->n++] = (struct derive_section){.title = title, .about = about};
}

static void put(struct page *p, struct derive_line line)
{
    if (p->failed) return;
    struct derive_section *s = &p->d->section[p->d->n - 1];
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 8;
        struct derive_line *more = arena_array(p->a, cap, sizeof *more);
        if (!more) {
            p->failed = true;
            return;
        }
        if (s->n) memcpy(more, s->line, s->n * sizeof *more);
        s->line = more;
        s->cap = cap;
    }
    s->line[s->n++] = line;
}

static const char *text_of(struct page *p, const char *text)
{
    if (!text) p->failed = true;
    return text;
}
#define PRINTF(p, ...) text_of((p), arena_printf((p)->a, __VA_ARGS__))

static bool is_zero(const struct sym *e)
{
    double v;
    return sym_constant(e, &v) && !(v > 0) && !(v < 0);
}

/* ---- lines ---- */

/* numbers: dropped where it says the same */
static void put_formula(struct page *p, const char *label, const struct sym *formula, const struct sym *numbers)
{
    put(p, (struct derive_line){.label = label, .formula = formula, .numbers = numbers == formula ? NULL : numbers});
}

static enum err_code put_normal(struct page *p, const char *label, const struct sym *formula, const struct sym *numbers)
{
    const struct sym *f, *n = NULL;
    TRY(sym_normal(p->c, formula, &f, p->e));
    if (numbers) TRY(sym_normal(p->c, numbers, &n, p->e));
    put_formula(p, label, f, n);
    return ERR_OK;
}

static enum err_code put_op(struct page *p, const struct cost_op *op, const struct cost_op *with)
{
    begin(p, op->name, cost_op_meaning(op->kind));
    put(p, (struct derive_line){.label = "shapes", .text = op->shape});
    const struct {
        const char *label;
        const struct sym *formula, *numbers;
        bool always;
    } rows[] = {
        {"FLOPs", op->flops, with ? with->flops : NULL, true},
        {"elementwise", op->vector_flops, with ? with->vector_flops : NULL, false},
        {"weights read", op->weight_bytes, with ? with->weight_bytes : NULL, false},
        {"cache bytes", op->kv_bytes, with ? with->kv_bytes : NULL, false},
        {"state bytes", op->state_bytes, with ? with->state_bytes : NULL, false},
        {"activations", op->activation_bytes, with ? with->activation_bytes : NULL, true},
        {"sent", op->wire_bytes, with ? with->wire_bytes : NULL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].always || !is_zero(rows[i].formula))
            put_formula(p, rows[i].label, rows[i].formula, rows[i].numbers);
    return sym_check(p->c, p->e);
}

static const struct sym *ratio_of(struct sym_ctx *c, const struct quantity_topic *t)
{
    return sym_div(c, is_zero(t->total.flops) ? t->total.vector_flops : t->total.flops, t->bytes);
}

/* Intensity, and what it tends to as the sizes that dwarf the others grow: widths for products with weights, the
 * context for attention (MODEL.md "Limits"). */
static enum err_code put_intensity(struct page *p, const struct quantity_topic *t, const struct quantity_topic *with)
{
    const struct quantity_scope *s = p->q->symbols;
    const struct cost_symbols *y = &s->y;
    const struct sym *ratio = ratio_of(p->c, t), *limit;
    TRY(put_normal(p, is_zero(t->total.flops) ? "elementwise/B" : "intensity", ratio,
                   with ? ratio_of(p->c, with) : NULL));
    if (t->whole || t->layer || is_zero(t->total.flops)) return ERR_OK;
    const struct sym *const widths[] = {y->D, y->F, y->V, y->H, y->C}, *const context[] = {y->S};
    const bool cached = !is_zero(t->total.kv_bytes);
    struct err why = {.code = ERR_OK};
    int64_t order = 0;
    const enum err_code code =
        cached ? sym_limit(p->c, ratio, 1, context, &limit, &order, &why)
               : sym_limit(p->c, ratio, sizeof widths / sizeof widths[0], widths, &limit, &order, &why);
    if (code == ERR_NOMEM) return err_nomem(p->e);
    if (code != ERR_OK || order != 0) return ERR_OK;
    const struct sym *numbers = NULL;
    if (cached && with && sym_limit(p->c, ratio_of(p->c, with), 1, context, &numbers, &order, &why) != ERR_OK)
        numbers = NULL;
    put_formula(p, cached ? "S -> inf" : "widths -> inf", limit, numbers);
    return ERR_OK;
}

/* ---- seconds ---- */

/* "max(FLOPs/peak_bf16, bytes/bandwidth)" of what the operator has. */
static const char *time_text(struct page *p, const struct cost_op *op, const struct timed *t)
{
    const char *part[4];
    size_t n = 0;
    if (!is_zero(op->flops)) part[n++] = PRINTF(p, "FLOPs/peak_%s", t->unit);
    if (!is_zero(op->vector_flops)) part[n++] = "elementwise/peak_fp32_vector";
    if (!is_zero(t->bytes)) part[n++] = "bytes/bandwidth";
    if (!is_zero(op->wire_bytes)) part[n++] = "sent/link";
    if (p->failed || n == 0) return "0";
    const char *all = part[0];
    for (size_t i = 1; i < n && all; i++) all = PRINTF(p, "%s, %s", all, part[i]);
    return n > 1 && all ? PRINTF(p, "max(%s)", all) : all;
}

/* One operator of a device: what it takes on each resource, at the point. */
static enum err_code value_at(struct page *p, const struct sym *e, double *out)
{
    const struct quantity_scope *s = p->q->numbers;
    const struct sym_binding env[] = {{s->y.B, sym_int(p->c, p->q->batch)},
                                      {s->y.S, sym_int(p->c, p->q->context)},
                                      {s->y.T, sym_int(p->c, p->q->phase == QUANTITY_DECODE ? 1 : p->q->context)}};
    *out = (double)NAN;
    (void)sym_constant(sym_bind(p->c, e, env, sizeof env / sizeof env[0]), out);
    return sym_check(p->c, p->e);
}

static enum err_code binding_resource(struct page *p, const struct timed *t, const char **out)
{
    static const char *const NAMES[] = {"compute", "vector", "memory", "link"};
    const struct sym *const part[] = {t->compute_s, t->vector_s, t->memory_s, t->link_s};
    double most = -1, v;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        TRY(value_at(p, part[i], &v));
        if (!(v > most)) continue;
        most = v;
        *out = NAMES[i];
    }
    return ERR_OK;
}

/* ---- the point ---- */

static enum err_code put_amounts(struct page *p, const struct quantity_topic *with)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];
    double flops, vector, bytes;
    TRY(value_at(p, with->total.flops, &flops));
    TRY(value_at(p, with->total.vector_flops, &vector));
    TRY(value_at(p, with->bytes, &bytes));
    const double intensity = (flops > 0 ? flops : vector) / bytes;
    put(p, (struct derive_line){.label = "amounts",
                                .text = PRINTF(p, "%s, %s: %s", units_format_flops(a, flops > 0 ? flops : vector),
                                               units_format_bytes(b, bytes),
                                               units_format(c, UNITS_FLOPS_PER_BYTE, intensity))});
    const struct quantity_scope *s = p->q->numbers;
    enum hw_dtype unit;
    if (!s->hw || !with->time_known || timed_unit(s->hw, &s->model->activations, &unit, NULL) != ERR_OK) return ERR_OK;
    const double ridge = hw_ridge(s->hw, unit);
    put(p, (struct derive_line){.label = "ridge",
                                .text = PRINTF(p, "%s, %s: %.1f flops/byte, so %s-bound (factor %.3g)", s->hw->name,
                                               hw_dtype_name(unit), ridge, intensity < ridge ? "memory" : "compute",
                                               intensity < ridge ? ridge / intensity : intensity / ridge)});
    return ERR_OK;
}

/* Operators of a pass by their share of its time. */
static enum err_code put_times(struct page *p, const struct quantity_topic *with)
{
    char text[UNITS_TEXT_MAX];
    double whole, one;
    TRY(value_at(p, with->total.time_s, &whole));
    put(p, (struct derive_line){.label = "time", .text = PRINTF(p, "%s", units_format_time(text, whole))});
    if (p->q->numbers->fidelity == STEP_BOUND || !(whole > 0) || with->pass.ops.n < 2) return ERR_OK;
    for (size_t i = 0; i < with->pass.ops.n; i++) {
        const struct cost_op *op = &with->pass.ops.op[i];
        const char *by = "";
        TRY(value_at(p, with->pass.timed[i].time_s, &one));
        const double share = one * (double)op->count / whole;
        if (share < 0.005) continue;
        TRY(binding_resource(p, &with->pass.timed[i], &by));
        put(p, (struct derive_line){.label = op->name,
                                    .text = PRINTF(p, "%4lld x %-9s %5.1f %%  %s", (long long)op->count,
                                                   units_format_time(text, one), 100 * share, by)});
    }
    return ERR_OK;
}

static enum err_code put_point(struct page *p, const struct quantity_topic *with)
{
    const struct derive_request *q = p->q;
    const long long tokens = q->phase == QUANTITY_DECODE ? 1 : (long long)q->context;
    const char *extent = with->whole ? "the whole model" : "one layer";
    double v;
    TRY(value_at(p, with->bytes, &v));
    if (isnan(v)) return ERR_OK; /* symbols are left: there are no numbers to give */
    begin(p,
          PRINTF(p, "at B = %lld, S = %lld, T = %lld, %s", (long long)q->batch, (long long)q->context, tokens, extent),
          NULL);
    TRY(put_amounts(p, with));
    if (q->numbers->hw && with->time_known) TRY(put_times(p, with));
    return ERR_OK;
}

/* ---- whole passes ---- */

/* One of the sums over the operators of a layer kind, once; kind -1: outside the layers. */
enum { GROUP_FLOPS, GROUP_WEIGHTS, GROUP_CACHE, GROUP_STATE, GROUP_ACTIVATIONS, GROUPS };

static const struct sym *group_of(const struct cost_op *op, int group, bool needed)
{
    const struct sym *const of[GROUPS] = {op->flops, needed ? op->weight_needed_bytes : op->weight_bytes, op->kv_bytes,
                                          needed ? op->state_needed_bytes : op->state_bytes, op->activation_bytes};
    return of[group];
}

static enum err_code group_sum(struct page *p, const struct quantity_topic *t, int kind, int group,
                               const struct sym **out)
{
    const struct sym *sum = sym_int(p->c, 0);
    const bool needed = p->q->symbols->fidelity == STEP_BOUND;
    for (size_t i = 0; i < t->pass.ops.n; i++)
        if (t->pass.ops.op[i].kind_index == kind) sum = sym_add(p->c, sum, group_of(&t->pass.ops.op[i], group, needed));
    return sym_normal(p->c, sum, out, p->e);
}

/* 40*(sum of a layer) + the rest, as a person would write it. */
static enum err_code grouped(struct page *p, const struct quantity_topic *t, int group, const struct sym **out)
{
    const struct sym *all = sym_int(p->c, 0), *part;
    for (int k = -1; k < (int)t->pass.model->kinds_n; k++) {
        TRY(group_sum(p, t, k, group, &part));
        const struct sym *n = sym_int(p->c, k < 0 ? 1 : t->pass.model->kinds[k].count);
        if (k >= 0 && t->pass.layers) n = sym_mul(p->c, n, t->pass.layers);
        all = sym_add(p->c, all, sym_mul(p->c, n, part));
    }
    *out = all;
    return sym_check(p->c, p->e);
}

static enum err_code put_groups(struct page *p, const struct quantity_topic *t, const struct quantity_topic *with)
{
    static const char *const LABELS[GROUPS] = {"FLOPs", "weights", "cache", "state", "activations"};
    const bool bound = p->q->symbols->fidelity == STEP_BOUND;
    begin(p, "in all",
          bound ? "compulsory traffic: weights once, cache entries that no fusion avoids"
                : "summed over dependent operators");
    for (int g = 0; g < GROUPS; g++) {
        const struct sym *sum, *numbers = NULL;
        if (bound && g == GROUP_ACTIVATIONS) continue;
        if (bound && g == GROUP_CACHE) {
            TRY(put_normal(p, LABELS[g], t->total.kv_needed_bytes, with ? with->total.kv_needed_bytes : NULL));
            continue;
        }
        TRY(grouped(p, t, g, &sum));
        if (with)
            TRY(sym_normal(p->c,
                           g == GROUP_FLOPS     ? with->total.flops
                           : g == GROUP_WEIGHTS ? bound ? with->total.weight_needed_bytes : with->total.weight_bytes
                           : g == GROUP_STATE   ? bound ? with->total.state_needed_bytes : with->total.state_bytes
                           : g == GROUP_CACHE   ? with->total.kv_bytes
                                                : with->total.activation_bytes,
                           &numbers, p->e));
        if (!is_zero(sum)) put_formula(p, LABELS[g], sum, numbers);
    }
    const bool state = !is_zero(t->total.state_bytes);
    put(p, (struct derive_line){.label = "bytes",
                                .text = bound   ? state ? "weights + cache + state" : "weights + cache"
                                        : state ? "weights + cache + state + activations"
                                                : "weights + cache + activations"});
    return ERR_OK;
}

static void put_seconds(struct page *p, const struct quantity_topic *t)
{
    if (!t->time_known) return;
    const bool bound = p->q->symbols->fidelity == STEP_BOUND;
    const char *unit = t->pass.ops.n ? t->pass.timed[0].unit : "bf16";
    begin(p, "time", bound ? "all work pooled: a floor whatever the fusion" : "a floor: perfect kernels, no launches");
    if (bound) {
        const char *link = p->q->symbols->tp > 1 ? ", sent/link" : "";
        put(p, (struct derive_line){.label = t->name,
                                    .text = PRINTF(p, "max(FLOPs/peak_%s, bytes/bandwidth%s)", unit, link)});
        return;
    }
    for (int k = -1; k < (int)t->pass.model->kinds_n; k++) {
        const bool layers = k >= 0;
        if (layers)
            put(p, (struct derive_line){
                       .label = t->pass.layers ? "L times"
                                               : PRINTF(p, "%lld times", (long long)t->pass.model->kinds[k].count),
                       .text = t->pass.model->kinds[k].label});
        for (size_t i = 0; i < t->pass.ops.n; i++)
            if (t->pass.ops.op[i].kind_index == k)
                put(p, (struct derive_line){.label = PRINTF(p, "%s%s", layers ? "  " : "", t->pass.ops.op[i].name),
                                            .text = time_text(p, &t->pass.ops.op[i], &t->pass.timed[i])});
    }
}

/* ---- topics ---- */

static enum err_code derive_ops(struct page *p, const struct quantity_topic *t, const struct quantity_topic *with)
{
    int kind = -2;
    for (size_t i = 0; i < t->pass.ops.n; i++) {
        const struct cost_op *op = &t->pass.ops.op[i];
        if (t->whole && op->kind_index != kind && op->kind_index >= 0) {
            const struct layer_kind *k = &t->pass.model->kinds[op->kind_index];
            begin(p,
                  t->pass.layers ? "each of the L layers" : PRINTF(p, "%s, %lld times", k->label, (long long)k->count),
                  NULL);
        }
        if (t->whole && op->kind_index != kind && op->kind_index < 0) begin(p, "outside the layers", NULL);
        kind = op->kind_index;
        TRY(put_op(p, op, with ? &with->pass.ops.op[i] : NULL));
    }
    return ERR_OK;
}

static enum err_code derive_phases(struct page *p, const char *topic)
{
    static const char *const TITLES[] = {"", "prefill, T = S", "decode, T = 1"};
    for (enum quantity_phase phase = QUANTITY_PREFILL; phase <= QUANTITY_DECODE; phase++) {
        struct quantity_topic t, with;
        TRY(quantity_topic(p->q->symbols, topic, phase, &t, p->e));
        if (p->q->numbers) TRY(quantity_topic(p->q->numbers, topic, phase, &with, p->e));
        begin(p, TITLES[phase], NULL);
        TRY(put_intensity(p, &t, p->q->numbers ? &with : NULL));
    }
    return ERR_OK;
}

static enum err_code derive_operators(struct page *p, const char *topic)
{
    struct quantity_topic t, with_all, *with = NULL;
    const struct derive_request *q = p->q;
    TRY(quantity_topic(q->symbols, topic, q->phase, &t, p->e));
    if (q->numbers) {
        TRY(quantity_topic(q->numbers, topic, q->phase, &with_all, p->e));
        with = &with_all;
    }
    const struct quantity_scope *s = q->symbols;
    p->d->title = PRINTF(p, "%s: %s", t.name, t.meaning);
    p->d->about = PRINTF(p, "%s%s%s; 1 multiply-add is 2 flops%s", t.whole ? "per pass" : "per layer and pass",
                         s->model ? ", " : "", s->model ? s->model->name : "", s->model ? "" : "; 2 bytes per element");
    TRY(derive_ops(p, &t, with));
    if (t.whole) {
        TRY(put_groups(p, &t, with));
        put_seconds(p, &t);
    } else {
        begin(p, "in all", NULL);
        TRY(put_normal(p, "FLOPs", t.total.flops, with ? with->total.flops : NULL));
        TRY(put_normal(p, "bytes", t.bytes, with ? with->bytes : NULL));
        TRY(put_intensity(p, &t, with));
        if (q->phase == QUANTITY_ANY) TRY(derive_phases(p, topic));
    }
    return with ? put_point(p, with) : ERR_OK;
}

/* ---- plain names ---- */

static enum err_code derive_named(struct page *p, const char *topic, bool *found)
{
    struct quantity_named list[QUANTITY_NAMED_MAX], with[QUANTITY_NAMED_MAX];
    size_t n, with_n = 0;
    TRY(quantity_named_all(p->q->symbols, list, &n, p->e));
    if (p->q->numbers) TRY(quantity_named_all(p->q->numbers, with, &with_n, p->e));
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, topic) != 0) continue;
        const struct sym *numbers = NULL;
        for (size_t k = 0; k < with_n; k++)
            if (strcmp(with[k].name, topic) == 0) numbers = with[k].value;
        *found = true;
        p->d->title = PRINTF(p, "%s: %s", list[i].name, list[i].meaning);
        begin(p, "formula", NULL);
        TRY(put_normal(p, list[i].name, list[i].value, numbers));
        double v;
        if (!numbers) return ERR_OK;
        TRY(value_at(p, numbers, &v));
        char text[UNITS_TEXT_MAX];
        begin(p, PRINTF(p, "at B = %lld, S = %lld", (long long)p->q->batch, (long long)p->q->context), NULL);
        put(p,
            (struct derive_line){.label = list[i].name, .text = PRINTF(p, "%s", units_format(text, list[i].unit, v))});
        return ERR_OK;
    }
    return ERR_OK;
}

enum err_code derive_topic(const struct derive_request *q, const char *topic, struct derivation *out, struct err *e)
{
    struct derivation d = {.n = 0};
    struct page p = {.q = q, .a = q->symbols->arena, .c = q->symbols->c, .d = &d, .e = e};
    bool found = false;
    if (!quantity_meaning(topic)) TRY(derive_named(&p, topic, &found));
    if (!found) TRY(derive_operators(&p, topic));
    if (p.failed) return err_nomem(e);
    *out = d;
    return sym_check(p.c, e);
}
