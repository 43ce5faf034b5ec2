/* cmd_solve -- the value of a symbol at which two quantities meet, and the largest batch or context there is room and
 * time for. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calc/cli/commands.h"
#include "calc/cli/estimate.h"
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
    OFFLOAD_OPTIONS,
    SCOPE_MODEL,
    SCOPE_CONVENTIONS("decode"),
};

enum { TEXT_MAX_BYTES = 1 << 16, INDENT = 4, WIDTH = 79, DIGITS_MAX = 40 };

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

/* A formula with numbers that nobody reads is none; a product of numbers is one. */
static bool is_readable(const struct sym *e, char *text)
{
    size_t digits = 0;
    (void)sym_print(e, text, TEXT_MAX_BYTES);
    for (const char *p = text; *p && digits <= DIGITS_MAX; p++)
        digits = *p >= '0' && *p <= '9' ? digits + 1 : *p == '*' ? digits : 0;
    return digits <= DIGITS_MAX;
}

static void write_value(struct out *o, const char *name, int at, const struct meet_root *r)
{
    if (isinf(r->until))
        out_printf(o, "%*s %s %.6g\n", at, name, r->after ? ">" : ">=", r->value);
    else if (!isnan(r->until) && !(r->value > 0))
        out_printf(o, "%*s %s %.6g\n", at, name, r->before ? "<" : "<=", r->until);
    else if (!isnan(r->until))
        out_printf(o, "%*s = %.6g%s to %.6g%s\n", at, name, r->value, r->after ? " (not itself)" : "", r->until,
                   r->before ? " (not itself)" : "");
    else
        out_printf(o, "%*s = %.6g%s\n", at, name, r->value,
                   r->jump ? " (a step: the sides pass each other there)" : "");
}

static enum err_code write_roots(struct arena *a, struct out *o, const struct sym *var, const struct meet *m,
                                 struct err *e)
{
    char *text = arena_alloc(a, TEXT_MAX_BYTES);
    if (!text) return err_nomem(e);
    const char *name = sym_name(var);
    const int at = (int)strlen(name);
    if (m->by_numbers && m->n && is_readable(m->left, text) && is_readable(m->right, text)) {
        out_str(o, "no closed form; by numbers, where the two are equal:\n");
        write_formula(o, text, "  left ", m->left);
        write_formula(o, text, "  right", m->right);
    }
    for (size_t i = 0; i < m->n; i++) {
        const struct meet_root *r = &m->root[i];
        const bool closed = r->closed && (isnan(r->value) || is_readable(r->closed, text));
        if (closed) write_formula(o, text, name, r->closed);
        if (!isnan(r->value)) write_value(o, closed ? "" : name, at, r);
        if (!r->condition) continue;
        (void)sym_print_wrapped(r->condition, WIDTH - 12, INDENT, text, TEXT_MAX_BYTES);
        out_printf(o, "%*s   where %s > 0\n", at, "", text);
    }
    if (m->more) out_str(o, "and more beyond\n");
    return ERR_OK;
}

/* No value will do: where it was looked for, and why not. */
static enum err_code refuse(struct arena *a, const struct meet *m, const struct scope_limits *limits, const char *name,
                            struct err *e)
{
    const char *where = arena_printf(a, "positive %s%s%s", name, *limits->text ? " " : "", limits->text);
    if (m->by_numbers && !isnan(limits->high))
        where = arena_printf(a, "%s from %g %s", name, m->low, limits->text);
    else if (m->by_numbers && !isnan(limits->low))
        where = arena_printf(a, "%s %s to %g", name, limits->text, m->high);
    else if (m->by_numbers)
        where = arena_printf(a, "%s between %g and %g", name, m->low, m->high);
    if (!where) return err_nomem(e);
    return err_set(e, ERR_NO, "no %s makes the two sides equal: %s", where, m->reason);
}

static enum err_code read_equation(const struct option_values *v, struct scope_asker *asker, const struct sym *side[2],
                                   const char **note, struct err *e)
{
    const struct scope *s = asker->scope;
    struct sym_binding point[2];
    struct parse_error where = {.column = 0};
    struct sym_ctx *c = s->quantity.c;
    const char *text = v->operands[0];
    size_t n;
    const struct parse_names names = scope_names_of(asker);
    if (sym_parse_equation(c, text, strlen(text), &names, &side[0], &side[1], &where, e) != ERR_OK)
        return scope_parse_failed("", text, &where, e);
    if (scope_dims(asker, text, NULL, e) != ERR_OK) return err_prepend(e, "'%.60s': ", text);
    TRY(scope_numbers(s, v, point, &n, e));
    for (size_t i = 0; i < n; i++)
        if (point[i].var == s->quantity.free)
            return err_set(e, ERR_USAGE, "--for %s: it has a value already", option_get(v, "for"));
    TRY(scope_settle(asker, 2, side, note, e));
    for (size_t i = 0; i < 2; i++) side[i] = sym_bind(c, side[i], point, n);
    return sym_check(c, e);
}

static enum err_code read_context(const struct option_values *v, int64_t *out, struct err *e)
{
    *out = 0;
    const char *text = option_get(v, "context");
    return text ? units_parse_count(text, 1, 1 << 30, out, e) : ERR_OK;
}

static enum err_code solve(struct arena *a, const struct option_values *v, struct err *e)
{
    struct scope s;
    struct scope_asker asker;
    struct scope_limits limits;
    struct meet m;
    struct out *o;
    const struct sym *side[2];
    const char *wanted = option_get(v, "for"), *note;
    int64_t context;
    TRY(scope_open(a, v, wanted, &s, e));
    TRY(scope_asker_make(&s, &asker, e));
    TRY(read_equation(v, &asker, side, &note, e));
    TRY(read_context(v, &context, e));
    TRY(scope_limits(&asker, context, &limits, e));
    const struct sym *var = s.quantity.free;
    const struct meet_limits within = {limits.low, limits.high};
    const enum err_code code = meet_solve(a, s.quantity.c, side[0], side[1], var, &within, &m, e);
    const char *missing = code == ERR_RANGE ? scope_missing(&asker, 2, side, var) : NULL;
    if (missing)
        return err_set(e, ERR_USAGE, "%s has no closed form here, and numbers need values: give %s", wanted, missing);
    TRY(code);
    TRY(out_open(a, NULL, &o, e));
    if (note) out_printf(o, "%s\n", note);
    if (m.always) out_printf(o, "always true: %s does not matter\n", wanted);
    TRY(write_roots(a, o, var, &m, e));
    TRY(out_commit(o, e));
    return m.always || m.n ? ERR_OK : refuse(a, &m, &limits, wanted, e);
}

/* ---- largest batch and context ---- */

static enum err_code time_option(const struct option_values *v, const char *name, double *out, struct err *e)
{
    *out = (double)NAN;
    return option_time(v, name, out, e);
}

static enum err_code open_step(struct arena *a, const struct scope *s, const struct offload_request *away,
                               struct step **out, struct err *e)
{
    struct offload offload;
    TRY(offload_options_open(away, &s->hw, &offload, NULL, e));
    const struct quantity_scope *q = &s->quantity;
    const struct step_setup setup = {.model = q->model,
                                     .hw = &s->hw,
                                     .layout = {.tp = q->tp},
                                     .fidelity = q->fidelity,
                                     .conventions = q->conventions,
                                     .prefill_together = q->prefill_together,
                                     .uncached = model_passes_whole(q->model),
                                     .pass_tokens = q->model->block_tokens,
                                     .offload = offload,
                                     .block_tokens = 16};
    return step_compile(a, &setup, out, e);
}

/* Of a diffusion model a step is a pass, and without a cache there is no prefill. */
static void write_point(struct out *o, const struct limit_point *p, const struct model *m, bool timed)
{
    const bool whole = model_passes_whole(m);
    char memory[UNITS_TEXT_MAX], kv[UNITS_TEXT_MAX], held[UNITS_TEXT_MAX], step[UNITS_TEXT_MAX], first[UNITS_TEXT_MAX];
    out_printf(o, "B = %-8lld S = %-8lld memory %s (KV %s)", (long long)p->batch, (long long)p->context,
               units_format_bytes(memory, p->memory_bytes),
               whole || !(p->kv_bytes > 0) ? "none" : units_format_bytes(kv, p->kv_bytes));
    const bool state = p->state_bytes > 0;
    if (state || timed) out_printf(o, "\n%27s", "");
    if (state) out_printf(o, "state %s%s", units_format_bytes(held, p->state_bytes), timed ? ", " : "");
    if (timed)
        out_printf(o, "%s %s", m->diffusion ? "a pass" : "decode step", units_format_time(step, p->decode_step_s));
    if (timed && !whole) out_printf(o, ", prefill %s", units_format_time(first, p->prefill_s));
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
    char weights[UNITS_TEXT_MAX], capacity[UNITS_TEXT_MAX], towers[UNITS_TEXT_MAX];
    static const char *const OTHERS[] = {"phase", "layer", "tokens"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        if (option_given(v, OTHERS[i]))
            return err_set(e, ERR_USAGE, "max %s: --%s says nothing here", NAMES[of], OTHERS[i]);
    TRY(scope_open(a, v, NULL, &s, e));
    if (!s.quantity.model || !s.gpus)
        return err_set(e, ERR_USAGE, "max %s: name a model (-m) and a device (-g)", NAMES[of]);
    if (option_given(v, NAMES[of]) || option_given(v, "for"))
        return err_set(e, ERR_USAGE, "max %s: --%s is what is looked for", NAMES[of],
                       option_given(v, "for") ? "for" : NAMES[of]);
    TRY(scope_numbers(&s, v, point, &n, e));
    double other;
    const int64_t rows = model_positions(&s.model); /* of a learned position table, beyond which there is no pass */
    if (rows > 0 && q.other > rows && of == LIMIT_BATCH) q.other = rows;
    if (n && sym_constant(point[0].value, &other)) q.other = (int64_t)other;
    TRY(time_option(v, "tpot", &q.tpot_s, e));
    TRY(time_option(v, "ttft", &q.ttft_s, e));
    if (!isnan(q.ttft_s) && model_passes_whole(&s.model))
        return err_set(e, ERR_USAGE, "--ttft: %s has no prefill, every pass takes the whole sequence: --tpot is of one",
                       s.model.name);
    struct model loaded = s.model;
    loaded.towerless = false;
    const struct model_beside held = model_beside(&loaded);
    const double beside = model_beside_bytes(&held, (double)s.quantity.tp);
    struct offload_request away;
    TRY(offload_options_parse(v, &away, e));
    TRY(open_step(a, &s, &away, &q.step, e));
    if (!step_timed(q.step) && (!isnan(q.tpot_s) || !isnan(q.ttft_s)))
        return err_set(e, ERR_INPUT, "%s: no peak rate is known, so no latency can be promised", s.hw.file);
    q.capacity_bytes = hw_capacity_bytes(&s.hw);
    const int64_t own = s.model.max_context_tokens;
    if (of == LIMIT_CONTEXT && own > 0) q.most = own;
    if (of == LIMIT_CONTEXT && rows > 0 && rows < q.most) q.most = rows;
    const struct limit r = limit_find(&q);
    TRY(out_open(a, NULL, &o, e));
    if (step_offloaded_bytes(q.step) > 0)
        out_printf(o, "%s of weights at the host, not among these\n",
                   units_format_bytes(weights, step_offloaded_bytes(q.step)));
    out_printf(o, "weights %s%s%s, capacity %s of each GPU%s\n", units_format_bytes(weights, step_weight_bytes(q.step)),
               !(beside > 0)       ? ""
               : s.model.towerless ? ", towers not loaded "
                                   : ", image and audio towers ",
               beside > 0 ? units_format_bytes(towers, beside) : "", units_format_bytes(capacity, q.capacity_bytes),
               s.quantity.tp > 1 ? ", bytes of one rank" : "");
    if (r.value) {
        out_printf(o, "max %s = %lld\n", NAMES[of], (long long)r.value);
        out_str(o, "  the last that holds   ");
        write_point(o, &r.at, &s.model, step_timed(q.step));
    }
    if (r.because) {
        out_printf(o, "  %-22s", "the next does not");
        write_point(o, &r.next, &s.model, step_timed(q.step));
        out_printf(o, "  it breaks %s\n", r.because);
    } else if (of == LIMIT_CONTEXT && r.value && r.value == q.most && own > 0) {
        out_printf(o, "  the model's own limit, %lld tokens, is reached first\n", (long long)q.most);
    }
    if (of == LIMIT_BATCH && own > 0 && q.other > own)
        out_printf(o, "  context %lld is beyond the model's own limit, %lld tokens\n", (long long)q.other,
                   (long long)own);
    TRY(out_commit(o, e));
    if (r.value) return ERR_OK;
    return err_set(e, ERR_NO, "not even %s 1: %s", NAMES[of], r.because);
}

/* "max batch" in any case and with any blanks */
static bool says(const char *text, const char *first, const char *second)
{
    const char *const word[] = {first, second};
    for (size_t i = 0; i < 2; i++) {
        text += strspn(text, " \t");
        const size_t n = strcspn(text, " \t");
        if (n != strlen(word[i]) || strncasecmp(text, word[i], n) != 0) return false;
        text += n;
    }
    return text[strspn(text, " \t")] == '\0';
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (v.operands_n == 1 && says(v.operands[0], "max", "batch")) return largest(a, &v, LIMIT_BATCH, e);
    if (v.operands_n == 1 && says(v.operands[0], "max", "context")) return largest(a, &v, LIMIT_CONTEXT, e);
    if (v.operands_n == 1 && strchr(v.operands[0], '=') && !option_get(&v, "for"))
        return err_set(e, ERR_USAGE, "solve: for which symbol? --for SYMBOL");
    if (v.operands_n != 1 || !option_get(&v, "for"))
        return err_set(e, ERR_USAGE, "solve: ridge solve 'LEFT = RIGHT' --for SYMBOL, or 'max batch', 'max context'");
    static const char *const MEMORY[] = {"tpot", "ttft", "cpu-offload-gb", "host-link"};
    for (size_t i = 0; i < sizeof MEMORY / sizeof *MEMORY; i++)
        if (option_given(&v, MEMORY[i]))
            return err_set(e, ERR_USAGE, "--%s goes with 'max batch' and 'max context'", MEMORY[i]);
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
                "  ridge solve 'max batch' -m llama-3.1-8b -g h100-sxm -c 8192 --tpot 50ms\n"
                "\nFunctions: sum(x, i, from, to), min, max, ceil, floor, sqrt, pow, exp,\n"
                "log (natural).\n"
                "Units behind a number: 50ms, 80GB, 16GiB, 3.35TB/s, 989TFLOP/s.\n",
    .formulas = true,
    .run = run,
};
