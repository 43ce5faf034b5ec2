/* simulate -- what `ridge simulate` was asked, and what it writes; private to the command. */
#ifndef RIDGE_CLI_SIMULATE_H
#define RIDGE_CLI_SIMULATE_H

#include "calc/base/table.h"
#include "calc/cli/estimate.h"
#include "calc/cli/progress.h"
#include "calc/serve/planner.h"
#include "calc/serve/simulate.h"

/* Everything that a run needs. */
struct simulate_case {
    struct estimate_request request;
    struct estimate_case of;
    struct workload_spec spec; /* unless a trace is given */
    struct workload work;
    struct simulate_setup setup;
    const char *server_text; /* NULL: none */
    const char *moved;       /* where the server's terms are of other devices, said so; NULL */
    struct engine engine;
    struct engine_case server;
    const char *trace, *arrivals, *policy, *route, *memory, *pool; /* as texts; trace NULL: none */
    const char *lengths; /* of requests that are made, in words; NULL: a trace */
    double pool_bytes;
    struct planner_window judged; /* requests that times are of; end 0: all */
    bool p90;                     /* of the band; setup.slower says how much that is */
    const char *factor;           /* as given, times the median; NULL: not given */
    const char *transfer; /* whose measured kernels stand for the device's, a sentence; NULL: its own, or floors */
    const char *link;     /* that caches go over between two pools, in words; NULL: one pool */
    int64_t decoders;     /* two pools: replicas that decode */
    const struct option_values *options;
    bool keep_steps;
    struct simulate_step *steps;
    size_t steps_n, steps_room;
    bool steps_lost; /* memory was exhausted */
    struct progress progress;
    enum err_code came; /* a signal that ended it: the exit status; ERR_OK none did */
    struct simulate_result result;
};

/* simulate_case_open -- from the options. Errors: ERR_USAGE; those of the model, the device and the trace. */
enum err_code simulate_case_open(struct arena *a, const struct option_values *v, struct simulate_case *c,
                                 struct err *e);

/* simulate_work_open -- the requests, from a trace, a workload's file or the options. Errors: ERR_USAGE; those of
 * files. */
enum err_code simulate_work_open(struct arena *a, const struct option_values *v, struct simulate_case *c,
                                 struct err *e);

/* simulate_moves_parse -- of a policy "disagg=P:D". simulate_moves_open -- the link between two pools, and what happens
 * to lost blocks, when the cache is known. Errors: ERR_USAGE. */
enum err_code simulate_moves_parse(const char *text, struct simulate_case *c, struct err *e);
enum err_code simulate_moves_open(const struct option_values *v, struct simulate_case *c, struct err *e);

/* simulate_put_line -- a line of the text, indented and wrapped. simulate_moves_heading, simulate_moves_text -- what
 * moves, before and after the times. */
__attribute__((format(printf, 2, 3))) void simulate_put_line(struct out *o, const char *fmt, ...);
void simulate_moves_heading(struct out *o, const struct simulate_case *c);
enum err_code simulate_moves_text(struct out *o, const struct simulate_case *c, struct err *e);

/* simulate_judged -- of a run, the requests that times are of. */
struct simulate_result simulate_judged(const struct simulate_case *c);

/* simulate_write -- the answer in a format: a summary, a row for each request or run of steps, or
 * for each quantity with its steady state. Errors: as
 * table_write. simulate_plot -- as a picture: of requests the parts that had their tokens within a time, else the
 * timeline. */
enum simulate_rows { SIMULATE_SUMMARY, SIMULATE_REQUESTS, SIMULATE_STEPS, SIMULATE_STEADY };
enum err_code simulate_write(struct arena *a, const struct simulate_case *c, enum simulate_rows which,
                             enum table_format format, const char *keys, struct out *o, struct err *e);
enum err_code simulate_plot(struct arena *a, const struct simulate_case *c, enum simulate_rows which,
                            const char *output, struct err *e);

/* simulate_steady_rows -- the steady state of the same requests beside what was simulated, a row each. Errors:
 * ERR_USAGE what it does not describe; those of steady_solve. */
enum err_code simulate_steady_rows(struct arena *a, const struct simulate_case *c, struct table *t, struct err *e);
const struct column *simulate_steady_columns(size_t *n);

/* simulate_columns -- of the four; n of them. */
const struct column *simulate_columns(enum simulate_rows which, size_t *n);

#endif
