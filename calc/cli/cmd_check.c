/* cmd_check -- whether two expressions are equal, by algebra: an answer against what the cost model derives. */
#include <stdio.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/scope.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"

static const struct option OPTIONS[] = {
    {.name = "against",
     .kind = OPTION_TEXT,
     .value = "EXPRESSION",
     .group = "What",
     .help = "what it should equal; flops(mlp), bytes(...), intensity(...), kv_bytes and the like are the model's own"},
    SCOPE_MODEL,
    SCOPE_CONVENTIONS("any"),
};

/* The point where they differ, and both values there. */
static enum err_code show_difference(const struct quantity_scope *s, const struct sym *a, const struct sym *b,
                                     struct out *o, struct err *e)
{
    struct sym_point x;
    char text[64];
    double value[2] = {0, 0};
    const enum err_code code = sym_counterexample(s->c, a, b, &x, e);
    if (code == ERR_NO) { /* they differ, but too little or too far out for doubles to show */
        out_str(o, "not equal\n");
        return ERR_OK;
    }
    TRY(code);
    out_str(o, "not equal, for example at");
    for (size_t i = 0; i < x.n; i++) {
        (void)sym_print(x.at[i].value, text, sizeof text);
        out_printf(o, "%s %s = %s", i ? "," : "", sym_name(x.at[i].var), text);
    }
    for (size_t i = 0; i < 2; i++) (void)sym_constant(x.value[i], &value[i]);
    out_printf(o, ": %.12g against %.12g\n", value[0], value[1]);
    return ERR_OK;
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct scope s;
    struct scope_asker asker;
    struct parse_error where = {.column = 0};
    struct out *o;
    const struct sym *left, *right;
    bool equal;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (v.operands_n != 1 || !option_get(&v, "against"))
        return err_set(e, ERR_USAGE, "check: ridge check 'EXPRESSION' --against 'EXPRESSION'");
    TRY(scope_open(a, &v, NULL, &s, e));
    TRY(scope_asker_make(&s, &asker, e));
    const struct parse_names names = scope_names_of(&asker);
    struct sym_ctx *ctx = s.quantity.c;
    const char *text = v.operands[0], *against = option_get(&v, "against");
    if (sym_parse(ctx, text, strlen(text), &names, &left, &where, e) != ERR_OK)
        return scope_parse_failed("", text, &where, e);
    if (sym_parse(ctx, against, strlen(against), &names, &right, &where, e) != ERR_OK)
        return scope_parse_failed("--against ", against, &where, e);
    TRY(sym_equal(ctx, left, right, &equal, e));
    TRY(out_open(a, NULL, &o, e));
    if (equal)
        out_str(o, "equal\n");
    else
        TRY(show_difference(&s.quantity, left, right, o, e));
    TRY(out_commit(o, e));
    if (!equal) (void)err_set(e, ERR_NO, "%s", ""); /* said on standard output */
    return equal ? ERR_OK : ERR_NO;
}

const struct command command_check = {
    .name = "check",
    .summary = "Whether two expressions are equal, by algebra.",
    .usage = "EXPRESSION --against EXPRESSION [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge check 'S*T/(T+S)' --against 'intensity(attention)' --course\n"
                "  ridge check '6BTDF' --against 'flops(mlp)'\n",
    .run = run,
};
