/* cmd_check -- whether two expressions are equal, by algebra: an answer against what the cost model derives. */
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
    char text[2][64] = {"", ""};
    for (size_t k = 0; k < sizeof DIGITS / sizeof DIGITS[0] && strcmp(text[0], text[1]) == 0; k++)
        for (size_t i = 0; i < 2; i++) {
            double v = (double)NAN;
            (void)sym_constant(value[i], &v);
            (void)snprintf(text[i], sizeof text[i], "%.*g", DIGITS[k], v);
        }
    if (strcmp(text[0], text[1]) != 0)
        out_printf(o, ": %s against %s\n", text[0], text[1]);
    else
        out_printf(o, ": both about %s, apart in further digits\n", text[0]);
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

/* Proved equal; different at a point; or neither can be shown. */
enum verdict { EQUAL, DIFFERENT, UNDECIDED };

static enum err_code compare(struct sym_ctx *c, const struct sym *const side[2], enum verdict *out, struct sym_point *x,
                             struct err *e)
{
    bool equal;
    TRY(sym_equal(c, side[0], side[1], &equal, e));
    *out = equal ? EQUAL : DIFFERENT;
    if (equal) return ERR_OK;
    const enum err_code code = sym_counterexample(c, side[0], side[1], x, e);
    if (code == ERR_NO) *out = UNDECIDED;
    return code == ERR_NO ? ERR_OK : code;
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
    enum verdict verdict;
    const char *note;
    TRY(option_parse(a, c, argc, argv, &v, e));
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
    TRY(scope_settle(&asker, 2, side, &note, e));
    TRY(compare(ctx, side, &verdict, &x, e));
    TRY(out_open(a, NULL, &o, e));
    if (note) out_printf(o, "%s\n", note);
    if (verdict == EQUAL) out_str(o, "equal\n");
    if (verdict == DIFFERENT) write_difference(o, &x);
    if (verdict == UNDECIDED) out_str(o, "equal at every point tried, but not proved by algebra\n");
    TRY(out_commit(o, e));
    if (verdict == EQUAL) return ERR_OK;
    return err_set(e, verdict == DIFFERENT ? ERR_NO : ERR_RANGE, "%s", ""); /* said on standard output */
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
