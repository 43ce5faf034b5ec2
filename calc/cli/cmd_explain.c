/* cmd_explain -- where a number comes from: an operator's shapes, FLOPs, bytes and intensity, step by step, from the
 * very description that `ridge estimate` evaluates. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/cli/commands.h"
#include "calc/cli/scope.h"
#include "calc/sym/normal.h"
#include "calc/sym/print.h"
#include "calc/time/step.h"

#define TEXT(name_, letter_, value_, fallback_, help_)                                                                 \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .kind = OPTION_TEXT, .value = value_, .fallback = fallback_, .help = help_   \
    }

static const struct option OPTIONS[] = {
    {.name = "model",
     .letter = 'm',
     .kind = OPTION_TEXT,
     .value = "NAME",
     .group = "What",
     .help = "put in the sizes of a model; without it every size is a symbol"},
    TEXT("gpu", 'g', "NAME", NULL, "say on which side of this device's ridge the intensity lies"),
    TEXT("phase", 0, "any|prefill|decode", "any", "T free, T = S, or T = 1"),
    {.name = "course", .kind = OPTION_FLAG, .help = "as CS336 lecture 10 counts: all S*T pairs, K = N, N*H = D"},
    TEXT("batch", 'b', "N", "1", "with -m: put in a batch"),
    TEXT("context", 'c', "N", "1024", "with -m: put in a context"),
    {.name = "conventions", .kind = OPTION_FLAG, .help = "every convention and its default, as ridge list conventions"},
    {.name = "latex", .kind = OPTION_FLAG, .group = "Output", .help = "formulas in LaTeX"},
    TEXT("output", 'o', "FILE", NULL, "write to a file"),
};

enum { FORMULA_MAX = 1 << 16, LABEL = 16 };

struct page {
    struct arena *arena;
    struct out *out;
    struct sym_ctx *c;
    bool latex;
    char *text; /* FORMULA_MAX bytes */
};

/* "  FLOPs         = 6*B*T*D*F", broken at operators. */
static enum err_code formula(struct page *p, const char *label, const struct sym *e, struct err *err)
{
    out_printf(p->out, "  %-*s", LABEL - 2, label);
    if (p->latex) {
        (void)sym_print_as(e, SYM_LATEX, p->text, FORMULA_MAX);
        out_printf(p->out, "$%s$\n", p->text);
        return ERR_OK;
    }
    (void)sym_print_wrapped(e, 79 - LABEL, 4, p->text, FORMULA_MAX);
    for (const char *at = p->text; *at;) {
        const size_t line = strcspn(at, "\n");
        if (at != p->text) out_printf(p->out, "%*s", LABEL, "");
        out_write(p->out, at, line);
        out_char(p->out, '\n');
        at += line + (at[line] == '\n');
    }
    return sym_check(p->c, err);
}

/* A formula in its canonical form. */
static enum err_code normal(struct page *p, const char *label, const struct sym *e, struct err *err)
{
    const struct sym *n;
    TRY(sym_normal(p->c, e, &n, err));
    return formula(p, label, n, err);
}

static enum err_code explain_op(struct page *p, const struct cost_op *op, struct err *e)
{
    out_printf(p->out, "\n%s: ", op->name);
    option_wrap(p->out, cost_op_meaning(op->kind), strlen(op->name) + 2, 4);
    out_printf(p->out, "  %-*s%s\n", LABEL - 2, "shapes", op->shape);
    TRY(formula(p, "FLOPs", op->flops, e));
    double none;
    if (!sym_constant(op->vector_flops, &none)) TRY(formula(p, "elementwise", op->vector_flops, e));
    if (!sym_constant(op->weight_bytes, &none) || none > 0) TRY(formula(p, "weights read", op->weight_bytes, e));
    if (!sym_constant(op->kv_bytes, &none) || none > 0) TRY(formula(p, "cache bytes", op->kv_bytes, e));
    return formula(p, "activations", op->activation_bytes, e);
}

/* Intensity, and what it tends to as the sizes that dwarf the others grow. */
static enum err_code explain_intensity(struct page *p, const struct quantity_scope *s, const struct quantity_topic *q,
                                       struct err *e)
{
    double none;
    const bool matrix = !sym_constant(q->flops, &none) || none > 0;
    const struct sym *ratio = sym_div(s->c, matrix ? q->flops : q->vector_flops, q->bytes);
    TRY(normal(p, matrix ? "intensity" : "elementwise/B", ratio, e));
    const struct sym *const grown[] = {s->y.D, s->y.F, s->y.V, s->y.H, s->y.C};
    const struct sym *limit;
    if (!matrix || s->model || strcmp(q->name, "attention") == 0 || strcmp(q->name, "latent_attention") == 0)
        return ERR_OK;
    struct err why = {.code = ERR_OK};
    int64_t order = 0;
    if (sym_limit(p->c, ratio, sizeof grown / sizeof grown[0], grown, &limit, &order, &why) == ERR_OK && order == 0)
        TRY(formula(p, "widths -> inf", limit, e));
    return ERR_OK;
}

static enum err_code explain_total(struct page *p, const struct quantity_scope *s, const struct quantity_topic *q,
                                   struct err *e)
{
    out_printf(p->out, "\nin all\n");
    TRY(normal(p, "FLOPs", q->flops, e));
    TRY(normal(p, "bytes", q->bytes, e));
    return explain_intensity(p, s, q, e);
}

/* The same topic at T = S and at T = 1. */
static enum err_code explain_phases(struct page *p, const struct quantity_scope *s, const char *topic, struct err *e)
{
    static const char *const TITLES[] = {"", "prefill, T = S", "decode, T = 1"};
    for (enum quantity_phase phase = QUANTITY_PREFILL; phase <= QUANTITY_DECODE; phase++) {
        struct quantity_topic q;
        TRY(quantity_topic(s, topic, phase, &q, e));
        out_printf(p->out, "\n%s\n", TITLES[phase]);
        TRY(explain_intensity(p, s, &q, e));
    }
    return ERR_OK;
}

/* Numbers at a batch and a context, against the ridge of a device. */
static enum err_code explain_numbers(struct page *p, const struct quantity_scope *s, const struct option_values *v,
                                     enum quantity_phase phase, const struct quantity_topic *q, struct err *e)
{
    int64_t batch, context;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];
    TRY(units_parse_count(option_get(v, "batch"), 1, 1 << 24, &batch, e));
    TRY(units_parse_count(option_get(v, "context"), 1, 1 << 30, &context, e));
    const int64_t tokens = phase == QUANTITY_DECODE ? 1 : context;
    const struct sym_binding env[] = {
        {s->y.B, sym_int(s->c, batch)}, {s->y.S, sym_int(s->c, context)}, {s->y.T, sym_int(s->c, tokens)}};
    double flops, vector, bytes;
    if (!sym_constant(sym_bind(s->c, q->flops, env, 3), &flops) ||
        !sym_constant(sym_bind(s->c, q->vector_flops, env, 3), &vector) ||
        !sym_constant(sym_bind(s->c, q->bytes, env, 3), &bytes))
        return ERR_OK; /* symbols are left: there are no numbers to give */
    const double intensity = (flops > 0 ? flops : vector) / bytes;
    out_printf(p->out, "\nat B = %lld, S = %lld, T = %lld, one layer\n", (long long)batch, (long long)context,
               (long long)tokens);
    out_printf(p->out, "  %s, %s: %s\n", units_format_flops(a, flops > 0 ? flops : vector),
               units_format_bytes(b, bytes), units_format(c, UNITS_FLOPS_PER_BYTE, intensity));
    if (!option_get(v, "gpu")) return ERR_OK;
    struct hw hw;
    double peak;
    const char *unit;
    TRY(hw_load(p->arena, option_get(v, "gpu"), &hw, e));
    if (s->course) hw_pin_course(&hw);
    TRY(step_peak(&hw, &s->model->activations, &peak, &unit, e));
    const double ridge = peak / hw.bandwidth_bytes_per_s;
    out_printf(p->out, "  %s, %s: ridge %.1f flops/byte, so %s-bound (factor %.3g)\n", hw.name, unit, ridge,
               intensity < ridge ? "memory" : "compute", intensity < ridge ? ridge / intensity : intensity / ridge);
    return ERR_OK;
}

static void list_topics(struct out *o)
{
    out_str(o, "ridge explain TOPIC, one of\n");
    for (const char *const *name = quantity_names(); *name; name++)
        out_printf(o, "  %-18s%s\n", *name, quantity_meaning(*name));
    out_str(o, "\nSymbols\n");
#define X(field, text, meaning)                                                                                        \
    out_printf(o, "  %-10s", text);                                                                                    \
    option_wrap(o, meaning, 12, 12);
    COST_SYMBOLS(X)
#undef X
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct quantity_scope s;
    struct model model;
    struct quantity_topic q;
    enum quantity_phase phase;
    TRY(option_parse(a, c, argc, argv, &v, e));
    TRY(scope_phase(&v, &phase, e));
    if (option_get(&v, "conventions")) {
        char list[] = "list", conventions[] = "conventions";
        char *words[] = {list, conventions, NULL};
        return command_list.run(a, &command_list, 2, words, e);
    }
    if (v.operands_n > 1) return err_set(e, ERR_USAGE, "explain: one topic at a time (ridge explain lists them)");
    struct page p = {.arena = a, .latex = option_get(&v, "latex") != NULL, .text = arena_alloc(a, FORMULA_MAX)};
    if (!p.text) return err_nomem(e);
    if (v.operands_n == 1) {
        TRY(scope_open(a, &v, &model, &s, e));
        TRY(quantity_topic(&s, v.operands[0], phase, &q, e));
        p.c = s.c;
    }
    TRY(out_open(a, option_get(&v, "output"), &p.out, e));
    if (v.operands_n == 0) {
        list_topics(p.out);
        return out_commit(p.out, e);
    }
    out_printf(p.out, "%s: %s\n  per layer and pass%s%s; 1 multiply-add is 2 flops%s\n", q.name, q.meaning,
               s.model ? ", " : "", s.model ? s.model->name : "", s.model ? "" : "; 2 bytes per element");
    for (size_t i = 0; i < q.ops_n; i++) TRY(explain_op(&p, q.ops[i], e));
    TRY(explain_total(&p, &s, &q, e));
    if (phase == QUANTITY_ANY) TRY(explain_phases(&p, &s, v.operands[0], e));
    if (s.model) TRY(explain_numbers(&p, &s, &v, phase, &q, e));
    return out_commit(p.out, e);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "Where a number comes from: shapes, FLOPs, bytes, intensity, limit.",
    .usage = "[TOPIC] [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge explain mlp\n"
                "  ridge explain attention --course\n"
                "  ridge explain attention --phase decode -m llama-2-13b -g h100-sxm -b 64\n",
    .run = run,
};
