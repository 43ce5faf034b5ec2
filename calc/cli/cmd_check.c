/* cmd_check -- whether two expressions are equal, by algebra: an answer against what the cost model derives. */
#include <float.h>
#include <math.h>
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

/* Both values at the point, with as many digits as tell them apart. */
static void write_values(struct out *o, const struct sym *const value[2])
{
    static const int DIGITS[] = {12, 17};
    static const char FAR[] = "more than doubles hold";
    char text[2][64] = {"", ""};
    for (size_t k = 0; k < sizeof DIGITS / sizeof DIGITS[0] && strcmp(text[0], text[1]) == 0; k++)
        for (size_t i = 0; i < 2; i++) {
            double v = (double)NAN;
            (void)sym_constant(value[i], &v);
            if (fabs(v) < DBL_MAX)
                (void)snprintf(text[i], sizeof text[i], "%.*g", DIGITS[k], v);
            else
                (void)snprintf(text[i], sizeof text[i], "%s%s", v < 0 ? "minus " : "", FAR);
        }
    if (strcmp(text[0], text[1]) != 0)
        out_printf(o, ": %s against %s\n", text[0], text[1]);
    else
        out_printf(o, ": both %s, apart in further digits\n", text[0]);
}

/* The point where they differ, and both values there. */
static void write_difference(struct out *o, const struct sym_point *x)
{
    char text[64];
    out_str(o, x->n ? "not equal, for example at" : "not equal");
    for (size_t i = 0; i < x->n; i++) {
        (void)sym_print(x->at[i].value, text, sizeof text);
        out_printf(o, "%s %s = %s", i ? "," : "", sym_name(x->at[i].var), text);
    }
    write_values(o, x->value);
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct scope s;
    struct scope_asker asker;
    struct parse_error where = {.column = 0};
    struct sym_point x = {.n = 0};
    struct out *o;
    const struct sym *side[2];
    enum sym_verdict verdict;
    const char *note;
    TRY(option_parse(a, c, argc, argv, &v, e));
    for (size_t i = 0; i < v.operands_n; i++)
        if (strcmp(v.operands[i], "--against") == 0)
            return err_set(e, ERR_USAGE, "check: behind -- there are no options; --against goes in front of it");
    if (v.operands_n != 1 || !option_get(&v, "against"))
        return err_set(e, ERR_USAGE, "check: ridge check 'EXPRESSION' --against 'EXPRESSION'");
    TRY(scope_open(a, &v, NULL, &s, e));
    TRY(scope_asker_make(&s, &asker, e));
    const struct parse_names names = scope_names_of(&asker);
    struct sym_ctx *ctx = s.quantity.c;
    const char *const text[] = {v.operands[0], option_get(&v, "against")};
    for (size_t i = 0; i < 2; i++)
        if (sym_parse(ctx, text[i], strlen(text[i]), &names, &side[i], &where, e) != ERR_OK)
            return scope_parse_failed(i ? "--against " : "", text[i], &where, e);
    TRY(scope_dims(&asker, text[0], text[1], e));
    TRY(scope_settle(&asker, 2, side, &note, e));
    TRY(sym_compare(ctx, side[0], side[1], &verdict, &x, e));
    TRY(out_open(a, NULL, &o, e));
    if (note) out_printf(o, "%s\n", note);
    if (verdict == SYM_VERDICT_EQUAL) out_str(o, "equal\n");
    if (verdict == SYM_VERDICT_DIFFER) write_difference(o, &x);
    if (verdict == SYM_VERDICT_UNKNOWN) out_str(o, "equal at every point tried, but not proved by algebra\n");
    TRY(out_commit(o, e));
    if (verdict == SYM_VERDICT_EQUAL) return ERR_OK;
    return err_set(e, verdict == SYM_VERDICT_DIFFER ? ERR_NO : ERR_RANGE, "%s", ""); /* said on standard output */
}

const struct command command_check = {
    .name = "check",
    .summary = "Whether two expressions are equal, by algebra.",
    .usage = "EXPRESSION --against EXPRESSION [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge check 'S*T/(T+S)' --against 'intensity(attention)' --course\n"
                "  ridge check '6BTDF' --against 'flops(mlp)'\n"
                "\nFunctions: sum(x, i, from, to), min, max, ceil, floor, sqrt, pow, exp,\n"
                "log (natural).\n"
                "Units behind a number: 50ms, 80GB, 16GiB, 3.35TB/s, 989TFLOP/s.\n"
                "Exit status: 0 equal, 1 not equal (with a point), 5 neither could be shown.\n",
    .formulas = true,
    .run = run,
};
