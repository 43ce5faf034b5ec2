/* probe_budget -- the time that all of a run may take: its ceilings a part, its shapes the rest; private to the
 * command.
 */
#ifndef RIDGE_CLI_PROBE_BUDGET_H
#define RIDGE_CLI_PROBE_BUDGET_H

#include "calc/cli/probe_work.h"

struct budget {
    double total_s, began_s; /* total_s INFINITY: without end; began_s by clock_now_s */
    double deadline_s;       /* of the sampling of one result, where there is time enough */
};

/* budget_read -- of --budget, else usual_s; it begins now. budget_read_run -- of a run: two minutes, one with --quick,
 * no end where it picks kernels, shapes or all. Errors: ERR_USAGE. */
enum err_code budget_read(const struct work *w, double usual_s, struct budget *out, struct err *e);
enum err_code budget_read_run(const struct work *w, struct budget *out, struct err *e);

/* budget_left_s -- seconds until its end. */
double budget_left_s(const struct budget *b);

/* budget_end_ceilings -- no ceiling goes on when a part of it, 0 to 1, is used up. */
void budget_end_ceilings(struct work *w, const struct budget *b, double part);

/* budget_until_s -- the moment of clock_now_s at which a shape is given up, 0 never: the end; of the first,
 * without which there is no number at all, that much once more, ten seconds at most. */
double budget_until_s(const struct budget *b, bool first);

/* budget_share -- sets the deadline of the next of results_n results: what its share of the time that is left has
 * beside aside_s, which buffers, checks and ceilings take (0, not known: half of it), BUDGET_LEAST_S at least. */
#define BUDGET_LEAST_S 0.5
void budget_share(struct work *w, const struct budget *b, size_t results_n, double aside_s);

/* budget_shape_s -- what a shape takes at most by the settings: its results, cold and hot as state says, each to its
 * deadline, and two ceilings before and after each to theirs. */
double budget_shape_s(const struct work *w, const char *state);

/* budget_say_untried -- a note on codes of ceilings that there was no time for. budget_say_left_out -- one on shapes,
 * with what the ceilings took. Errors: ERR_NOMEM. */
enum err_code budget_say_untried(struct work *w, struct err *e);
enum err_code budget_say_left_out(struct work *w, const struct plan *plan, double ceilings_s, struct err *e);

#endif
