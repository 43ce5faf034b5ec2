/* cmd_solve -- the value of a symbol at which two quantities meet: the batch at which an operator reaches the ridge. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/scope.h"
#include "calc/sym/normal.h"
#include "calc/sym/parse.h"
#include "calc/sym/print.h"
#include "calc/time/step.h"

static const struct option OPTIONS[] = {
    {.name = "for",
     .kind = OPTION_TEXT,
     .value = "SYMBOL",
     .group = "What",
     .help = "the symbol to solve for: B, S, T, ..."},
    {.name = "model", .letter = 'm', .kind = OPTION_TEXT, .value = "NAME", .help = "put in the sizes of a model"},
    {.name = "gpu", .letter = 'g', .kind = OPTION_TEXT, .value = "NAME", .help = "gives `ridge`, peak over bandwidth"},
    {.name = "phase",
     .kind = OPTION_TEXT,
     .value = "any|prefill|decode",
     .fallback = "decode",
     .help = "T free, T = S, or T = 1 in the model's own quantities"},
    {.name = "course", .kind = OPTION_FLAG, .help = "as CS336 lecture 10 counts, and its constants on h100-sxm"},
};

/* Peak over bandwidth as an exact quotient; NULL without a device. */
static enum err_code open_ridge(struct arena *a, const struct option_values *v, struct quantity_scope *s,
                                const struct sym **out, struct err *e)
{
    struct hw hw;
    struct dtype half;
    double peak;
    const char *unit;
    *out = NULL;
    if (!option_get(v, "gpu")) return ERR_OK;
    TRY(hw_load(a, option_get(v, "gpu"), &hw, e));
    if (s->course) hw_pin_course(&hw);
    TRY(dtype_find("bf16", &half, e));
    TRY(step_peak(&hw, &half, &peak, &unit, e));
    *out = sym_div(s->c, sym_num(s->c, peak), sym_num(s->c, hw.bandwidth_bytes_per_s));
    return ERR_OK;
}

/* Positive roots, in closed form and as numbers; returns how many. */
static size_t write_roots(struct out *o, const struct sym *var, const struct sym_solution *x)
{
    char text[4096];
    size_t shown = 0;
    for (size_t i = 0; i < x->n; i++) {
        double value;
        const bool number = sym_constant(x->root[i], &value);
        if (number && !(value > 0)) continue;
        (void)sym_print_wrapped(x->root[i], 70, 4, text, sizeof text);
        out_printf(o, "%s = %s\n", sym_name(var), text);
        if (number) out_printf(o, "%*s = %.6g\n", (int)strlen(sym_name(var)), "", value);
        shown++;
    }
    return shown;
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct quantity_scope s;
    struct model model;
    struct scope_asker asker;
    enum quantity_phase phase;
    struct sym_solution x;
    struct out *o;
    const struct sym *ridge, *left, *right, *var = NULL;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (v.operands_n != 1 || !option_get(&v, "for"))
        return err_set(e, ERR_USAGE, "solve: ridge solve 'LEFT = RIGHT' --for SYMBOL");
    TRY(scope_phase(&v, &phase, e));
    TRY(scope_open(a, &v, &model, &s, e));
    TRY(open_ridge(a, &v, &s, &ridge, e));
    scope_asker_make(&s, phase, ridge, &asker);
    const struct parse_names names = scope_names_of(&asker);
    for (size_t i = 0; i < asker.n_symbols; i++)
        if (strcmp(asker.symbols[i].text, option_get(&v, "for")) == 0) var = asker.symbols[i].e;
    if (!var || !sym_name(var))
        return err_set(e, ERR_USAGE, "--for: no symbol '%.20s' (ridge explain lists them)", option_get(&v, "for"));
    if (sym_parse_equation(s.c, v.operands[0], strlen(v.operands[0]), &names, &left, &right, NULL, e) != ERR_OK)
        return err_prepend(e, "'%.60s': ", v.operands[0]);
    TRY(sym_solve(s.c, left, right, var, &x, e));
    TRY(out_open(a, NULL, &o, e));
    size_t shown = 0;
    if (x.kind == SYM_SOLVED_ALWAYS) out_printf(o, "always true: %s does not matter\n", sym_name(var));
    if (x.kind == SYM_SOLVED_ROOTS) shown = write_roots(o, var, &x);
    TRY(out_commit(o, e));
    if (x.kind == SYM_SOLVED_ALWAYS || shown) return ERR_OK;
    return err_set(e, ERR_NO, "no positive %s makes the two sides equal", sym_name(var));
}

const struct command command_solve = {
    .name = "solve",
    .summary = "The value of a symbol at which two quantities meet.",
    .usage = "'LEFT = RIGHT' --for SYMBOL [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge solve 'intensity(mlp) = ridge' --for B -m llama-2-13b -g h100-sxm\n"
                "  ridge solve 'intensity(attention) = 100' --for S --phase prefill --course\n",
    .run = run,
};
