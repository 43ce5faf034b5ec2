/* scope -- the options that explain and check share: which conventions, which model. */
#ifndef RIDGE_CLI_SCOPE_H
#define RIDGE_CLI_SCOPE_H

#include "calc/cli/option.h"
#include "calc/learn/quantity.h"
#include "calc/sym/parse.h"

/* scope_open -- a context and the scope that --model and --course name; model (borrowed by the scope) is filled when
 * one is named. Errors: as model_load; ERR_NOMEM. */
enum err_code scope_open(struct arena *a, const struct option_values *v, struct model *model,
                         struct quantity_scope *out, struct err *e);

/* scope_phase -- --phase as a quantity_phase. Errors: ERR_USAGE. */
enum err_code scope_phase(const struct option_values *v, enum quantity_phase *out, struct err *e);

/* scope_asker -- what a person's expression may name: the symbols, the quantities of a phase, and "ridge" unless it is
 * NULL. It must outlive the parse. Each quantity is derived once, however often an expression names it: a text of calls
 * stays as cheap as one of symbols. scope_names_of -- as sym_parse takes it. */
struct scope_asker {
    const struct quantity_scope *scope;
    enum quantity_phase phase;
    struct parse_symbol symbols[48];
    size_t n_symbols;
    struct scope_answer {
        const char *call; /* "flops(mlp" */
        const struct sym *value;
    } known[256];
    size_t n_known;
};
void scope_asker_make(const struct quantity_scope *s, enum quantity_phase phase, const struct sym *ridge,
                      struct scope_asker *out);
struct parse_names scope_names_of(struct scope_asker *k);

#endif
