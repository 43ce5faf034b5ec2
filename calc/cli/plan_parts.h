/* plan_parts -- the parts that plan_case_open consists of, in its order; private to plan_*.c. */
#ifndef RIDGE_CLI_PLAN_PARTS_H
#define RIDGE_CLI_PLAN_PARTS_H

#include "calc/cli/plan.h"

enum { PLAN_DRAWN = 4096 }; /* made requests, at least */

/* plan_formats_open -- the model in each precision. plan_traffic_open -- what comes. plan_promise_open -- the option
 * `name`, "p95=1s" or "1s". plan_draft_open -- what drafts. plan_devices_open -- the devices, their prices and hosts.
 * plan_choice_open -- how steps are timed, and the limits to choose from. Errors: ERR_USAGE; those of files. */
enum err_code plan_formats_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e);
enum err_code plan_traffic_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e);
enum err_code plan_promise_open(const struct option_values *v, const char *name, struct planner_promise *out,
                                struct err *e);
enum err_code plan_draft_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e);
enum err_code plan_devices_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e);
enum err_code plan_choice_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e);

/* plan_source_open -- the source of an encoder-decoder: c->source, 0 of other models; what is not planned of one is
 * refused. plan_source_prompt -- what its decoder begins with, else the option; NULL: no memory. plan_source_whole --
 * steps that have room for a whole source, of those to choose from. Errors: ERR_USAGE; ERR_NOMEM. */
enum err_code plan_source_open(const struct option_values *v, struct model *m, struct plan_case *c, struct err *e);
const char *plan_source_prompt(struct arena *a, const struct option_values *v, const struct plan_case *c);
enum err_code plan_source_whole(struct arena *a, struct plan_case *c, struct err *e);

/* plan_find -- all candidates on paper; where asked, simulations of them; the headroom of the winner. plan_pays --
 * whether the winner's draft does. Errors: those of the planner; ERR_STOPPED. */
enum err_code plan_find(struct arena *a, struct plan_case *c, struct err *e);
enum err_code plan_pays(struct arena *a, struct plan_case *c, struct err *e);

/* plan_again -- the command line of `ridge simulate` that simulates the winner once more, to the digit; "": it was not
 * simulated; *why: none does, a sentence, else NULL. Errors: ERR_NOMEM. */
enum err_code plan_again(struct arena *a, const struct plan_case *c, const char **line, const char **why,
                         struct err *e);

/* plan_text_notes -- behind the answer: why others fail, and what all of it assumes. */
enum err_code plan_text_notes(struct arena *a, struct out *o, const struct plan_case *c, struct err *e);

#endif
