#include <math.h>
#include <string.h>

#include "calc/learn/derive_page.h"
#include "calc/learn/derive_story.h"
#include "calc/learn/sizes.h"
#include "calc/learn/tidy.h"
#include "calc/sym/normal.h"
#include "calc/sym/print.h"

#define PRINTF(p, ...) derive_page_text((p), __VA_ARGS__)

static void put_text(struct derive_page *p, const char *label, const char *text)
{
    derive_page_put(p, (struct derive_line){.label = label, .text = text});
}

/* ---- operators ---- */

/* "max(FLOPs/peak_bf16, bytes/bandwidth)" of what the operator has. */
static const char *time_text(struct derive_page *p, const struct cost_op *op, const struct timed *t)
{
    const char *part[4];
    size_t n = 0;
    if (!derive_page_is_zero(op->flops))
        part[n++] = t->half_unit ? PRINTF(p, "(FLOPs - outliers)/peak_%s + outliers/peak_%s", t->unit, t->half_unit)
                                 : PRINTF(p, "FLOPs/peak_%s", t->unit);
    if (!derive_page_is_zero(op->vector_flops)) part[n++] = "elementwise/peak_fp32_vector";
    if (!derive_page_is_zero(t->bytes)) part[n++] = "bytes/bandwidth";
    if (!derive_page_is_zero(op->wire_bytes)) part[n++] = "sent/link";
    if (n == 0) return "0";
    const char *all = part[0];
    for (size_t i = 1; i < n; i++) all = PRINTF(p, "%s, %s", all, part[i]);
    return n > 1 ? PRINTF(p, "max(%s)", all) : all;
}

/* timed NULL: no line with its time */
static enum err_code put_op(struct derive_page *p, const struct cost_op *op, const struct timed *timed,
                            const struct cost_op *with)
{
    derive_page_begin(p, op->name, cost_op_says(op));
    put_text(p, "shapes", op->shape);
    const struct {
        const char *label;
        const struct sym *formula, *numbers;
    } rows[] = {
        {"FLOPs", op->flops, with ? with->flops : NULL},
        {"outliers", op->half_flops, with ? with->half_flops : NULL},
        {"elementwise", op->vector_flops, with ? with->vector_flops : NULL},
        {"weights read", op->weight_bytes, with ? with->weight_bytes : NULL},
        {"cache bytes", op->kv_bytes, with ? with->kv_bytes : NULL},
        {"state bytes", op->state_bytes, with ? with->state_bytes : NULL},
        {"activations", op->activation_bytes, with ? with->activation_bytes : NULL},
        {"sent", op->wire_bytes, with ? with->wire_bytes : NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!derive_page_is_zero(rows[i].formula))
            derive_page_formula(p, rows[i].label, rows[i].formula, rows[i].numbers);
    if (timed) put_text(p, "time", time_text(p, op, timed));
    return sym_check(p->c, p->e);
}

static const struct sym *ratio_of(struct sym_ctx *c, const struct quantity_topic *t)
{
    return sym_div(c, derive_page_is_zero(t->total.flops) ? t->total.vector_flops : t->total.flops, t->bytes);
}

/* Intensity, and what it tends to as the sizes that dwarf the others grow: widths for products with weights, the
 * context for attention. */
static enum err_code put_intensity(struct derive_page *p, const struct quantity_topic *t,
                                   const struct quantity_topic *with)
{
    const struct quantity_scope *s = p->q->symbols;
    const struct cost_symbols *y = &s->y;
    const struct sym *ratio = ratio_of(p->c, t), *limit;
    if (derive_page_is_zero(ratio)) return derive_page_normal(p, "bytes", t->bytes, with ? with->bytes : NULL);
    TRY(derive_page_normal(p, "intensity", ratio, with ? ratio_of(p->c, with) : NULL));
    if (t->whole || t->layer || derive_page_is_zero(t->total.flops)) return ERR_OK;
    const struct sym *const widths[] = {y->D, y->F, y->Fs, y->V, y->H, y->Hv, y->C, y->R, y->Q};
    const struct sym *const context[] = {y->S};
    const bool cached = !derive_page_is_zero(t->total.kv_bytes) || t->pass.ops.op[0].kind == OP_ATTENTION;
    struct err why = {.code = ERR_OK};
    int64_t order = 0;
    const enum err_code code =
        cached ? sym_limit(p->c, ratio, 1, context, &limit, &order, &why)
               : sym_limit(p->c, ratio, sizeof widths / sizeof widths[0], widths, &limit, &order, &why);
    if (code == ERR_NOMEM) return err_nomem(p->e);
    if (code != ERR_OK || order != 0 || tidy(p->c, limit, &limit, &why) != ERR_OK) return ERR_OK;
    const struct sym *numbers = NULL;
    if (cached && with && sym_limit(p->c, ratio_of(p->c, with), 1, context, &numbers, &order, &why) != ERR_OK)
        numbers = NULL;
    derive_page_formula(p, cached ? "S -> inf" : "widths -> inf", limit, numbers);
    return ERR_OK;
}

/* ---- whole passes ---- */

/* One of the sums over the operators of a layer kind, once; kind -1: outside the layers. */
enum { GROUP_FLOPS, GROUP_WEIGHTS, GROUP_CACHE, GROUP_STATE, GROUP_ACTIVATIONS, GROUP_SENT, GROUPS };

static const struct sym *group_of(const struct cost_op *op, int group, bool needed)
{
    const struct sym *const of[GROUPS] = {op->flops,
                                          needed ? op->weight_needed_bytes : op->weight_bytes,
                                          op->kv_bytes,
                                          needed ? op->state_needed_bytes : op->state_bytes,
                                          op->activation_bytes,
                                          op->wire_bytes};
    return of[group];
}

static const struct sym *group_total(const struct timed_total *t, int group, bool needed)
{
    const struct sym *const of[GROUPS] = {t->flops,
                                          needed ? t->weight_needed_bytes : t->weight_bytes,
                                          t->kv_bytes,
                                          needed ? t->state_needed_bytes : t->state_bytes,
                                          t->activation_bytes,
                                          t->wire_bytes};
    return of[group];
}

static enum err_code group_sum(struct derive_page *p, const struct quantity_topic *t, int kind, int group,
                               const struct sym **out)
{
    const struct sym *sum = sym_int(p->c, 0);
    const bool needed = p->q->symbols->fidelity == STEP_BOUND;
    for (size_t i = 0; i < t->pass.ops.n; i++)
        if (t->pass.ops.op[i].kind_index == kind) sum = sym_add(p->c, sum, group_of(&t->pass.ops.op[i], group, needed));
    return sym_normal(p->c, sum, out, p->e);
}

/* 40*(sum of a layer) + the rest, as a person would write it. */
static enum err_code grouped(struct derive_page *p, const struct quantity_topic *t, int group, const struct sym **out)
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

/* "FLOPs/peak_bf16", or of several units "(FLOPs in fp8)/peak_fp8 + (FLOPs in bf16)/peak_bf16" */
static const char *pooled_flops(struct derive_page *p, const struct quantity_topic *t)
{
    const char *unit[HW_DTYPES_N] = {"bf16"}, *text = "";
    size_t n = 0;
    for (size_t i = 0; i < t->pass.ops.n; i++) {
        const char *own = t->pass.timed[i].unit;
        bool seen = derive_page_is_zero(t->pass.ops.op[i].flops);
        for (size_t k = 0; k < n; k++) seen = seen || strcmp(unit[k], own) == 0;
        if (!seen && n < HW_DTYPES_N) unit[n++] = own;
    }
    if (n < 2) return PRINTF(p, "FLOPs/peak_%s", unit[0]);
    for (size_t k = 0; k < n; k++)
        text = PRINTF(p, "%s%s(FLOPs in %s)/peak_%s", text, k ? " + " : "", unit[k], unit[k]);
    return text;
}

static enum err_code put_groups(struct derive_page *p, const struct quantity_topic *t,
                                const struct quantity_topic *with)
{
    static const char *const LABELS[GROUPS] = {"FLOPs", "weights", "cache", "state", "activations", "sent"};
    const bool bound = p->q->symbols->fidelity == STEP_BOUND;
    derive_page_begin(p, "in all",
                      bound ? "compulsory traffic: weights once, cache entries that no fusion avoids"
                            : "summed over dependent operators");
    for (int g = 0; g < GROUPS; g++) {
        const struct sym *sum, *numbers = NULL;
        if (bound && g == GROUP_ACTIVATIONS) continue;
        if (bound && g == GROUP_CACHE) {
            TRY(derive_page_normal(p, LABELS[g], t->total.kv_needed_bytes, with ? with->total.kv_needed_bytes : NULL));
            continue;
        }
        TRY(grouped(p, t, g, &sum));
        if (with) TRY(sym_normal(p->c, group_total(&with->total, g, bound), &numbers, p->e));
        if (!derive_page_is_zero(sum)) derive_page_formula(p, LABELS[g], sum, numbers);
    }
    const char *state = derive_page_is_zero(t->total.state_bytes) ? "" : " + state";
    put_text(p, "bytes", PRINTF(p, "weights + cache%s%s", state, bound ? "" : " + activations"));
    if (!t->time_known) return ERR_OK;
    const char *link = p->q->symbols->tp > 1 ? ", sent/link" : "";
    if (bound)
        put_text(p, "time",
                 PRINTF(p, "max(%s, bytes/bandwidth%s), all work pooled: a floor whatever the fusion",
                        pooled_flops(p, t), link));
    else
        put_text(p, "time", "the sum over the operators below: a floor, of perfect kernels without launches");
    return ERR_OK;
}

/* ---- topics ---- */

/* Of an operator nothing runs in the pass: it is of an encoder at rest, or needs an image. */
static bool rests(const struct cost_op *op)
{
    const struct sym *const of[] = {op->flops,       op->vector_flops, op->weight_bytes,     op->kv_bytes,
                                    op->state_bytes, op->wire_bytes,   op->activation_bytes, op->fabric_bytes};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (!derive_page_is_zero(of[i])) return false;
    return true;
}

static enum err_code derive_ops(struct derive_page *p, const struct quantity_topic *t,
                                const struct quantity_topic *with)
{
    const bool timed = t->time_known && (!t->whole || p->q->symbols->fidelity == STEP_ROOFLINE);
    int kind = -2;
    for (size_t i = 0; i < t->pass.ops.n; i++) {
        const struct cost_op *op = &t->pass.ops.op[i];
        if (t->whole && rests(op)) continue;
        if (t->whole && op->kind_index != kind && op->kind_index >= 0) {
            const struct layer_kind *k = &t->pass.model->kinds[op->kind_index];
            derive_page_begin(
                p, t->pass.layers ? "each of the L layers" : PRINTF(p, "%s, %lld times", k->label, (long long)k->count),
                NULL);
        }
        if (t->whole && op->kind_index != kind && op->kind_index < 0) derive_page_begin(p, "outside the layers", NULL);
        kind = op->kind_index;
        TRY(put_op(p, op, timed ? &t->pass.timed[i] : NULL, with ? &with->pass.ops.op[i] : NULL));
    }
    return ERR_OK;
}

static enum err_code derive_phases(struct derive_page *p, const char *topic)
{
    double n = 1;
    (void)sym_constant(quantity_tokens(p->q->symbols), &n);
    const char *const titles[] = {"", "prefill, T = S", PRINTF(p, "decode, T = %.0f", n)};
    for (enum quantity_phase phase = QUANTITY_PREFILL; phase <= QUANTITY_DECODE; phase++) {
        struct quantity_topic t, with;
        TRY(quantity_topic(p->q->symbols, topic, phase, &t, p->e));
        if (p->q->numbers) TRY(quantity_topic(p->q->numbers, topic, phase, &with, p->e));
        derive_page_begin(p, titles[phase], NULL);
        TRY(put_intensity(p, &t, p->q->numbers ? &with : NULL));
    }
    return ERR_OK;
}

static enum err_code put_sums(struct derive_page *p, const struct quantity_topic *t, const struct quantity_topic *with)
{
    derive_page_begin(p, "in all", NULL);
    if (!derive_page_is_zero(t->total.flops))
        TRY(derive_page_normal(p, "FLOPs", t->total.flops, with ? with->total.flops : NULL));
    else if (!derive_page_is_zero(t->total.vector_flops))
        TRY(derive_page_normal(p, "elementwise", t->total.vector_flops, with ? with->total.vector_flops : NULL));
    if (!derive_page_is_zero(ratio_of(p->c, t)))
        TRY(derive_page_normal(p, "bytes", t->bytes, with ? with->bytes : NULL));
    return put_intensity(p, t, with);
}

/* "; on one of 8 ranks, ..." */
static const char *rank_text(struct derive_page *p)
{
    const struct quantity_scope *s = p->q->symbols;
    if (s->tp == 1) return "";
    return PRINTF(p, "; on one of %lld ranks, N, K, F, V being its share", (long long)s->tp);
}

/* ", layer kind 2 of 3: ..., 58 layers (--layer chooses)" */
static const char *kind_text(struct derive_page *p, int kind)
{
    const struct model *m = p->q->symbols->model;
    if (!m || kind < 0 || m->kinds_n == 1) return "";
    const struct layer_kind *k = &m->kinds[kind];
    return PRINTF(p, ", layer kind %d of %zu: %s, %lld layer%s%s", kind + 1, m->kinds_n, k->label, (long long)k->count,
                  k->count == 1 ? "" : "s", p->q->symbols->layer < 0 ? " (--layer chooses another)" : "");
}

/* Of what, and by which conventions: the model, the kind of layer, the rank. */
static const char *about_text(struct derive_page *p, const struct quantity_topic *t)
{
    const struct model *m = p->q->symbols->model;
    const int kind = t->whole || t->pass.ops.n == 0 ? -1 : t->pass.ops.op[0].kind_index;
    return PRINTF(p, "%s%s%s%s%s; 1 multiply-add is 2 flops%s",
                  t->whole || kind < 0 ? "per pass" : "per layer and pass", m ? ", " : "",
                  m ? derive_page_clean(p, m->name) : "", kind_text(p, kind), rank_text(p),
                  m ? "" : "; 2 bytes per element");
}

/* ---- sizes ---- */

static bool occurs(struct derive_page *p, const struct sym *e, const struct sym *var)
{
    const struct sym_binding one = {var, sym_int(p->c, 1)};
    return e && sym_bind(p->c, e, &one, 1) != e;
}

/* What the symbols of the page's formulas are in the model. */
static enum err_code put_sizes(struct derive_page *p, size_t n, const struct sym *const *formula, uint64_t kinds,
                               bool rank)
{
    enum { NUMBERS = 24, LINE = 62 }; /* columns */
    const struct quantity_scope *s = p->q->symbols;
    struct sizes all[SIZES_SYMBOLS];
    const char *text[SIZES_SYMBOLS];
    size_t sizes = 0, used = 0, width = 0;
    if (s->model) TRY(sizes_all(s, kinds, all, &sizes, p->e));
    for (size_t i = 0; i < sizes; i++) {
        bool is = false;
        for (size_t k = 0; k < n && !is; k++) is = occurs(p, formula[k], all[i].var);
        if (!is || all[i].n == 0) continue;
        text[used] = sizes_text(s, &all[i], rank);
        if (!text[used]) return err_nomem(p->e);
        if (strlen(text[used]) > width && strlen(text[used]) <= NUMBERS) width = strlen(text[used]);
        all[used++] = all[i];
    }
    if (used) derive_page_begin(p, "where", NULL);
    for (size_t i = 0; i < used; i++) {
        const char *meaning = all[i].meaning;
        const size_t all_of_it = strlen(meaning), short_of_it = strcspn(meaning, "(");
        const bool fits = width + 2 + all_of_it <= LINE || short_of_it == all_of_it;
        put_text(p, sym_name(all[i].var),
                 PRINTF(p, "%-*s  %.*s", (int)width, text[i], (int)(fits ? all_of_it : short_of_it - 1), meaning));
    }
    return sym_check(p->c, p->e);
}

static enum err_code put_topic_sizes(struct derive_page *p, const struct quantity_topic *t)
{
    const struct timed_total *x = &t->total;
    const struct sym *const sums[] = {x->flops, x->vector_flops, t->bytes, x->kv_bytes, x->wire_bytes, t->pass.layers};
    return put_sizes(p, sizeof sums / sizeof sums[0], sums, sizes_kinds(t), true);
}

/* A page with many operators begins with what they come to. */
static enum err_code derive_many(struct derive_page *p, const struct quantity_topic *t,
                                 const struct quantity_topic *with)
{
    if (with) TRY(derive_point(p, with));
    TRY(t->whole ? put_groups(p, t, with) : put_sums(p, t, with));
    TRY(put_topic_sizes(p, t));
    return derive_ops(p, t, with);
}

static enum err_code derive_operators(struct derive_page *p, const char *topic)
{
    struct quantity_topic t, with_all, *with = NULL;
    const struct derive_request *q = p->q;
    TRY(quantity_topic(q->symbols, topic, q->phase, &t, p->e));
    if (q->numbers) {
        TRY(quantity_topic(q->numbers, topic, q->phase, &with_all, p->e));
        with = &with_all;
    }
    p->d->title = PRINTF(p, "%s: %s", t.name, t.meaning);
    p->d->about = about_text(p, &t);
    if (t.whole || t.layer) return derive_many(p, &t, with);
    TRY(derive_ops(p, &t, with));
    TRY(put_sums(p, &t, with));
    const struct model *m = q->symbols->model;
    if (q->phase == QUANTITY_ANY && !(m && model_passes_whole(m))) TRY(derive_phases(p, topic));
    TRY(put_topic_sizes(p, &t));
    return with ? derive_point(p, with) : ERR_OK;
}

/* ---- plain names ---- */

enum { FORMULA_LONG = 500 };

/* The formula; of a throughput too long to read, in terms of the step that has a page of its own. */
static enum err_code put_named(struct derive_page *p, const struct quantity_named *what, const struct sym *numbers)
{
    const struct sym *formula;
    TRY(tidy(p->c, what->value, &formula, p->e));
    if (strcmp(what->name, "throughput") != 0 || sym_print(formula, NULL, 0) <= FORMULA_LONG)
        return derive_page_normal(p, what->name, formula, numbers);
    const struct sym *rate = sym_div(p->c, p->q->symbols->y.B, sym_var(p->c, "decode_step"));
    const struct sym *each =
        SYM_PROD(p->c, sym_int(p->c, p->q->symbols->copies), quantity_settled(p->q->symbols), rate);
    derive_page_formula(p, what->name, each, NULL);
    return sym_check(p->c, p->e);
}

static enum err_code derive_named(struct derive_page *p, const char *topic, bool *found)
{
    struct quantity_named list[QUANTITY_NAMED_MAX], with[QUANTITY_NAMED_MAX];
    char text[UNITS_TEXT_MAX];
    size_t n, with_n = 0, i = 0, k = 0;
    double v;
    TRY(quantity_named_all(p->q->symbols, list, &n, p->e));
    while (i < n && strcmp(list[i].name, topic) != 0) i++;
    *found = i < n;
    if (!*found) return ERR_OK;
    if (p->q->numbers) TRY(quantity_named_all(p->q->numbers, with, &with_n, p->e));
    while (k < with_n && strcmp(with[k].name, topic) != 0) k++;
    p->d->title = PRINTF(p, "%s: %s", list[i].name, list[i].meaning);
    const struct model *m = p->q->symbols->model;
    const bool of_model = strcmp(topic, "params") == 0 || strcmp(topic, "active_params") == 0; /* not of a rank */
    p->d->about = PRINTF(p, "%s%s", m ? derive_page_clean(p, m->name) : "the textbook's decoder, 2 bytes per element",
                         of_model ? "" : rank_text(p));
    derive_page_begin(p, "formula", NULL);
    TRY(put_named(p, &list[i], k < with_n ? with[k].value : NULL));
    TRY(put_sizes(p, 1, &list[i].value, UINT64_MAX, !of_model));
    if (k == with_n) return ERR_OK;
    TRY(derive_page_value(p, with[k].value, &v));
    if (isnan(v)) return ERR_OK; /* symbols are left */
    const bool anywhere = sym_constant(with[k].value, NULL);
    derive_page_begin(p,
                      anywhere ? "in numbers"
                               : PRINTF(p, "at B = %lld, S = %lld", (long long)p->q->batch, (long long)p->q->context),
                      NULL);
    put_text(p, list[i].name, PRINTF(p, "%s", units_format(text, list[i].unit, v)));
    return ERR_OK;
}

enum err_code derive_topic(const struct derive_request *q, const char *topic, struct derivation *out, struct err *e)
{
    struct derivation d = {.n = 0};
    struct derive_page p = {.q = q, .a = q->symbols->arena, .c = q->symbols->c, .d = &d, .e = e};
    bool found = false;
    if (derive_story_meaning(topic)) {
        TRY(derive_story(&p, topic));
        found = true;
    }
    if (!found && !quantity_meaning(topic)) TRY(derive_named(&p, topic, &found));
    if (!found) TRY(derive_operators(&p, topic));
    if (p.failed) return err_nomem(e);
    *out = d;
    return sym_check(p.c, e);
}
