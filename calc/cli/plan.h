/* plan -- what `ridge plan` was asked, and the rows that answer it; private to the command. */
#ifndef RIDGE_CLI_PLAN_H
#define RIDGE_CLI_PLAN_H

#include "calc/base/table.h"
#include "calc/cli/layout_options.h"
#include "calc/cli/option.h"
#include "calc/serve/emit.h"
#include "calc/serve/planner.h"
#include "calc/serve/planner_verify.h"

/* plan_layout_columns -- all columns of a layout; n of them. plan_columns -- of a plan. */
const struct column *plan_layout_columns(size_t *n);
const struct column *plan_columns(size_t *n);

/* plan_layouts_run -- the answer to --layouts. Errors: those of the options and files; ERR_NO no layout fits. */
enum err_code plan_layouts_run(struct arena *a, const struct option_values *v, enum table_format format, struct err *e);

/* A question about traffic, everything loaded. */
struct plan_case {
    const struct option_values *options;
    const char *model, *hub; /* its name, and what an engine loads it by */
    struct planner_request request;
    struct planner_device *device;
    struct planner_format *format;
    struct workload work;
    const char *arrivals, *prompt, *generate, *trace; /* as asked; NULL */
    double tokens_per_day;                            /* NAN: not asked */
    bool verify, has_emit;
    const char *server; /* as asked, or the engine of --emit; NULL: none */
    struct engine engine;
    enum emit_engine emit;
    int64_t top, max_context_tokens;
    struct price_list *prices;
    struct planner_result result;
    struct planner_headroom headroom; /* of the winner */
    struct planner_verified verified; /* of it; n 0: not simulated */
    const char *unverified;           /* why it was not; NULL */
    int64_t refuted;                  /* plans that the simulation said no to, each with a copy more then */
};

/* plan_case_open -- from the options. Errors: ERR_USAGE; those of files. */
enum err_code plan_case_open(struct arena *a, const struct option_values *v, struct plan_case *out, struct err *e);

/* plan_layout_words -- "TP4 PP2 x3"; NULL: no memory. plan_money -- "$54.00", "no known price". */
const char *plan_layout_words(struct arena *a, const struct layout *l);
const char *plan_money(char out[UNITS_TEXT_MAX], double usd);

/* plan_write -- the answer in a format; text: with the reasons. plan_emit -- the engine's command line, the plan as a
 * comment above it. plan_none -- that nothing keeps the promises, and what forbids it: ERR_NO. */
enum err_code plan_write(struct arena *a, const struct plan_case *c, enum table_format format, struct out *o,
                         struct err *e);
enum err_code plan_emit(struct arena *a, const struct plan_case *c, struct out *o, struct err *e);
enum err_code plan_none(const struct plan_case *c, struct err *e);

#endif
