/* cmd_explain -- where a number comes from: shapes, FLOPs, bytes, intensity and seconds, step by step, from the very
 * description that `ridge estimate` evaluates. */
#include <stdio.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/explain_page.h"
#include "calc/cli/scope.h"

static const struct option OPTIONS[] = {
    SCOPE_MODEL,
    SCOPE_CONVENTIONS("any"),
    SCOPE_TEXT("batch", 'b', "N", "1", "with -m: put in a batch"),
    SCOPE_TEXT("context", 'c', "N", "1024", "with -m: put in a context"),
    {.name = "conventions", .kind = OPTION_FLAG, .help = "every convention and its default, as ridge list conventions"},
    {.name = "latex", .kind = OPTION_FLAG, .group = "Output", .help = "a LaTeX document"},
    {.name = "output",
     .letter = 'o',
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "write to a file",
     .typed_only = true},
};

static enum err_code list_topics(struct arena *a, struct out *o, struct err *e)
{
    struct quantity_scope s;
    struct quantity_named named[QUANTITY_NAMED_MAX];
    size_t n;
    const char *meaning;
    TRY(quantity_open(a, NULL, false, &s, e));
    TRY(quantity_named_all(&s, named, &n, e));
    out_str(o, "ridge explain TOPIC, one of\n");
    for (const char *const *name = quantity_names(); *name; name++)
        out_printf(o, "  %-18s%s\n", *name, quantity_meaning(*name));
    out_str(o, "\nor a quantity of the whole model\n");
    for (size_t i = 0; i < n; i++)
        if (!quantity_meaning(named[i].name)) out_printf(o, "  %-18s%s\n", named[i].name, named[i].meaning);
    out_str(o, "\nSymbols\n");
#define X(field, text, meaning_)                                                                                       \
    out_printf(o, "  %-18s", text);                                                                                    \
    option_wrap(o, meaning_, 20, 20);
    COST_SYMBOLS(X)
#undef X
    for (size_t i = 0; i < RATES_N; i++) {
        const char *name = sym_name(rates_list(&s.rates, i, &meaning));
        out_printf(o, "  %-18s%s\n", name, meaning);
    }
    return ERR_OK;
}

/* The whole-model topics as a point: decode_step has one query token, the prefill S. */
static enum quantity_phase phase_of(const struct scope *s, const char *topic)
{
    if (strcmp(topic, "decode_step") == 0) return QUANTITY_DECODE;
    return strcmp(topic, "prefill") == 0 ? QUANTITY_PREFILL : s->phase;
}

static enum err_code derive(struct arena *a, const struct option_values *v, const char *topic, struct derivation *out,
                            struct err *e)
{
    struct scope s;
    TRY(scope_open(a, v, NULL, &s, e));
    struct quantity_scope symbols = s.quantity;
    symbols.sizes = QUANTITY_SYMBOLS;
    symbols.rates = rates_make(symbols.c);
    struct derive_request q = {
        .symbols = &symbols, .numbers = s.quantity.model ? &s.quantity : NULL, .phase = phase_of(&s, topic)};
    TRY(units_parse_count(option_get(v, "batch"), 1, 1 << 24, &q.batch, e));
    TRY(units_parse_count(option_get(v, "context"), 1, 1 << 30, &q.context, e));
    return derive_topic(&q, topic, out, e);
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct derivation d;
    struct out *o;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (option_get(&v, "conventions")) {
        char list[] = "list", conventions[] = "conventions";
        char *words[] = {list, conventions, NULL};
        return command_list.run(a, &command_list, 2, words, e);
    }
    if (v.operands_n > 1) return err_set(e, ERR_USAGE, "explain: one topic at a time (ridge explain lists them)");
    if (v.operands_n == 1) TRY(derive(a, &v, v.operands[0], &d, e));
    TRY(out_open(a, option_get(&v, "output"), &o, e));
    if (v.operands_n == 0)
        TRY(list_topics(a, o, e));
    else
        TRY((option_get(&v, "latex") ? explain_page_latex : explain_page_text)(a, o, &d, e));
    return out_commit(o, e);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "Where a number comes from: shapes, FLOPs, bytes, intensity, seconds.",
    .usage = "[TOPIC] [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge explain mlp\n"
                "  ridge explain attention --course\n"
                "  ridge explain attention --phase decode -m llama-2-13b -g h100-sxm -b 64\n"
                "  ridge explain decode_step -m deepseek-v3 --latex -o step.tex\n",
    .run = run,
};
