/* cmd_solve -- the value of a symbol at which two quantities meet, and the largest batch or context there is room and
 * time for. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/scope.h"
#include "calc/learn/meet.h"
#include "calc/serve/limit.h"
#include "calc/sym/print.h"

static const struct option OPTIONS[] = {
    {.name = "for",
     .kind = OPTION_TEXT,
     .value = "SYMBOL",
     .group = "What",
     .help = "the symbol to solve for: B, S, T, a size of the model, a rate of the device"},
    SCOPE_TEXT("batch", 'b', "N", NULL, "put in a batch"),
    SCOPE_TEXT("context", 'c', "N", NULL, "put in a context; of 'max batch': 1024"),
    SCOPE_TEXT("tpot", 0, "TIME", NULL, "of 'max batch', 'max context': a decode step may take at most this: 50ms"),
    SCOPE_TEXT("ttft", 0, "TIME", NULL, "the same of a prompt's prefill"),
    SCOPE_MODEL,
    SCOPE_CONVENTIONS("decode"),
};

enum { TEXT_MAX_BYTES = 1 << 16, INDENT = 4, WIDTH = 79 };

static void write_formula(struct out *o, char *text, const char *name, const struct sym *e)
{
    const int at = (int)strlen(name) + 3;
    (void)sym_print_wrapped(e, (size_t)(WIDTH - at), INDENT, text, TEXT_MAX_BYTES);
    out_printf(o, "%s = ", name);
    for (const char *p = text; *p;) {
        const size_t line = strcspn(p, "\n");
        if (p != text) out_printf(o, "%*s", at, "");
        out_write(o, p, line);
        out_char(o, '\n');
        p += line + (p[line] == '\n');
    }
}

static enum err_code write_roots(struct arena *a, struct out *o, const struct sym *var, const struct meet *m,
                                 struct err *e)
{
    char *text = arena_alloc(a, TEXT_MAX_BYTES);
    if (!text) return err_nomem(e);
    const char *name = sym_name(var);
    const int at = (int)strlen(name);
    if (m->by_numbers && m->n) {
        out_str(o, "no closed form; by numbers, where the two are equal:\n");
        write_formula(o, text, "  left ", m->left);
        write_formula(o, text, "  right", m->right);
    }
    for (size_t i = 0; i < m->n; i++) {
        const struct meet_root *r = &m->root[i];
        if (r->closed) write_formula(o, text, name, r->closed);
        if (!isnan(r->value))
            out_printf(o, "%*s = %.6g%s", at, r->closed ? "" : name, r->value,
                       r->jump ? " (a step: the sides pass each other there)" : "");
        if (!isnan(r->value) && !isnan(r->until)) out_printf(o, " to %.6g", r->until);
        if (!isnan(r->value)) out_char(o, '\n');
        if (!r->condition) continue;
        (void)sym_print_wrapped(r->condition, WIDTH - 12, INDENT, text, TEXT_MAX_BYTES);
        out_printf(o, "%*s   where %s > 0\n", at, "", text);
    }
    if (m->more) out_str(o, "and more beyond\n");
    return ERR_OK;
}

/* Words for what an equation states in a person's own units. */
static const struct {
    const char *text;
    int64_t num, den;
} UNITS[] = {{"ms", 1, 1000},     {"us", 1, 1000000}, {"GB", 1000000000, 1},
             {"GiB", 1 << 30, 1}, {"MB", 1000000, 1}, {"MiB", 1 << 20, 1}}; /* not a unit */

static enum err_code solve(struct arena *a, const struct option_values *v, struct err *e)
{
    struct scope s;
    struct scope_asker asker;
    struct sym_binding point[2];
    size_t n;
    struct meet m;
    struct parse_error where = {.column = 0};
    struct out *o;
    const struct sym *left, *right;
    const char *text = v->operands[0], *wanted = option_get(v, "for");
    TRY(scope_open(a, v, wanted, &s, e));
    const struct sym *var = scope_symbol(&s, wanted);
    if (!var) return err_set(e, ERR_USAGE, "--for: no symbol '%.20s' (ridge explain lists them)", wanted);
    struct sym_ctx *c = s.quantity.c;
    TRY(scope_asker_make(&s, &asker, e));
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
        asker.symbols[asker.n_symbols++] = (struct parse_symbol){UNITS[i].text, sym_rat(c, UNITS[i].num, UNITS[i].den)};
    const struct parse_names names = scope_names_of(&asker);
    if (sym_parse_equation(c, text, strlen(text), &names, &left, &right, &where, e) != ERR_OK)
        return scope_parse_failed("", text, &where, e);
    TRY(scope_numbers(&s, v, point, &n, e));
    for (size_t i = 0; i < n; i++)
        if (point[i].var == var) return err_set(e, ERR_USAGE, "--for %s: it has a value already", wanted);
    left = sym_bind(c, left, point, n);
    right = sym_bind(c, right, point, n);
    TRY(meet_solve(a, c, left, right, var, &m, e));
    TRY(out_open(a, NULL, &o, e));
    if (m.always) out_printf(o, "always true: %s does not matter\n", wanted);
    TRY(write_roots(a, o, var, &m, e));
    TRY(out_commit(o, e));
    if (m.always || m.n) return ERR_OK;
    return err_set(e, ERR_NO, "no positive %s makes the two sides equal: %s", wanted, m.reason);
}

/* ---- largest batch and context ---- */

static enum err_code time_option(const struct option_values *v, const char *name, double *out, struct err *e)
{
    *out = (double)NAN;
    if (!option_get(v, name)) return ERR_OK;
    if (units_parse_time(option_get(v, name), out, e) != ERR_OK) return err_prepend(e, "--%s: ", name);
    return ERR_OK;
}

static enum err_code open_step(struct arena *a, const struct scope *s, struct step **out, struct err *e)
{
    const struct quantity_scope *q = &s->quantity;
    const struct step_setup setup = {.model = q->model,
                                     .hw = &s->hw,
                                     .tp = q->tp,
                                     .fidelity = q->fidelity,
                                     .conventions = q->conventions,
                                     .block_tokens = 16};
    return step_compile(a, &setup, out, e);
}

static void write_point(struct out *o, const struct limit_point *p, bool timed)
{
    char memory[UNITS_TEXT_MAX], kv[UNITS_TEXT_MAX], step[UNITS_TEXT_MAX], first[UNITS_TEXT_MAX];
    out_printf(o, "B = %-8lld S = %-8lld memory %s (KV %s)", (long long)p->batch, (long long)p->context,
               units_format_bytes(memory, p->memory_bytes), units_format_bytes(kv, p->kv_bytes));
    if (timed)
        out_printf(o, "\n%27sdecode step %s, prefill %s", "", units_format_time(step, p->decode_step_s),
                   units_format_time(first, p->prefill_s));
    out_char(o, '\n');
}

static enum err_code largest(struct arena *a, const struct option_values *v, enum limit_of of, struct err *e)
{
    static const char *const NAMES[] = {"batch", "context"};
    struct scope s;
    struct sym_binding point[2];
    size_t n;
    struct out *o;
    struct limit_request q = {.of = of, .other = of == LIMIT_BATCH ? 1024 : 1, .most = LIMIT_MOST}; /* not a unit */
    char weights[UNITS_TEXT_MAX], capacity[UNITS_TEXT_MAX];
    TRY(scope_open(a, v, NULL, &s, e));
    if (!s.quantity.model || !s.gpus)
        return err_set(e, ERR_USAGE, "max %s: name a model (-m) and a device (-g)", NAMES[of]);
    if (option_given(v, NAMES[of]) || option_given(v, "for"))
        return err_set(e, ERR_USAGE, "max %s: --%s is what is looked for", NAMES[of],
                       option_given(v, "for") ? "for" : NAMES[of]);
    TRY(scope_numbers(&s, v, point, &n, e));
    double other;
    if (n && sym_constant(point[0].value, &other)) q.other = (int64_t)other;
    TRY(time_option(v, "tpot", &q.tpot_s, e));
    TRY(time_option(v, "ttft", &q.ttft_s, e));
    TRY(open_step(a, &s, &q.step, e));
    if (!step_timed(q.step) && (!isnan(q.tpot_s) || !isnan(q.ttft_s)))
        return err_set(e, ERR_INPUT, "%s: no peak rate is known, so no latency can be promised", s.hw.file);
    q.capacity_bytes = hw_capacity_bytes(&s.hw);
    const int64_t own = s.model.max_context_tokens;
    if (of == LIMIT_CONTEXT && own > 0) q.most = own;
    const struct limit r = limit_find(&q);
    TRY(out_open(a, NULL, &o, e));
    out_printf(o, "weights %s, capacity %s of each GPU%s\n", units_format_bytes(weights, step_weight_bytes(q.step)),
               units_format_bytes(capacity, q.capacity_bytes), s.quantity.tp > 1 ? ", bytes of one rank" : "");
    if (r.value) {
        out_printf(o, "max %s = %lld\n", NAMES[of], (long long)r.value);
        out_str(o, "  the last that holds   ");
        write_point(o, &r.at, step_timed(q.step));
    }
    if (r.because) {
        out_printf(o, "  %-22s", "the next does not");
        write_point(o, &r.next, step_timed(q.step));
        out_printf(o, "  it breaks %s\n", r.because);
    } else if (of == LIMIT_CONTEXT && r.value && r.value == own) {
        out_printf(o, "  the model's own limit, %lld tokens, is reached first\n", (long long)own);
    }
    if (of == LIMIT_BATCH && own > 0 && q.other > own)
        out_printf(o, "  context %lld is beyond the model's own limit, %lld tokens\n", (long long)q.other,
                   (long long)own);
    TRY(out_commit(o, e));
    if (r.value) return ERR_OK;
    return err_set(e, ERR_NO, "not even %s 1: %s", NAMES[of], r.because);
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (v.operands_n == 1 && strcmp(v.operands[0], "max batch") == 0) return largest(a, &v, LIMIT_BATCH, e);
    if (v.operands_n == 1 && strcmp(v.operands[0], "max context") == 0) return largest(a, &v, LIMIT_CONTEXT, e);
    if (v.operands_n != 1 || !option_get(&v, "for"))
        return err_set(e, ERR_USAGE, "solve: ridge solve 'LEFT = RIGHT' --for SYMBOL, or 'max batch', 'max context'");
    if (option_given(&v, "tpot") || option_given(&v, "ttft"))
        return err_set(e, ERR_USAGE, "--tpot and --ttft go with 'max batch' and 'max context'");
    return solve(a, &v, e);
}

const struct command command_solve = {
    .name = "solve",
    .summary = "Where two quantities meet; the largest batch or context.",
    .usage = "'LEFT = RIGHT' --for SYMBOL | 'max batch' | 'max context' [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge solve 'intensity(mlp) = ridge' --for B -m llama-2-13b -g h100-sxm\n"
                "  ridge solve 'kv_bytes = weight_bytes' --for S -m llama-3.1-8b --batch 32\n"
                "  ridge solve 'decode_step = 50ms' --for B -m llama-3.1-8b -g h100-sxm -c 8192\n"
                "  ridge solve 'max batch' -m llama-3.1-8b -g h100-sxm -c 8192 --tpot 50ms\n",
    .run = run,
};
