/* run_ask -- what run.c and run_ceilings.c have of one another. */
#ifndef RIDGE_PROBE_RUN_ASK_H
#define RIDGE_PROBE_RUN_ASK_H

#include "probe/run.h"

/* run_left_s -- seconds until a moment; INFINITY: it is never. */
double run_left_s(double until_s);

/* run_job_of -- what the worker is asked, with the settings of the run. */
struct wire_job run_job_of(const struct run *r, const char *kernel, const char *variant, const char *dtype,
                           const struct wire_shape *shape, bool cold);

/* run_measure -- one measurement, whatever comes of it, without ceilings. r->stopped: there is none. Errors: ERR_NOMEM.
 */
enum err_code run_measure(struct run *r, const struct wire_job *job, struct result *out, struct err *e);

/* run_is_processor -- whether the device is a CPU, whose calls are timed one by one and whose other programs show in
 * its ceilings alone: it has a cache of the first level. run_best -- the peak of a unit, and where cold the rate of
 * reading memory, at their best in this run; others are left as they are. */
bool run_is_processor(const struct run *r);
void run_best(const struct run *r, const char *unit, bool cold, struct result_ceilings *out);

/* run_keep -- into the store, if there is one; what it does not take is counted. */
void run_keep(struct run *r, struct result *result);

/* run_around -- the ceilings now: of memory where cold, else of the caches that hold a footprint, NAN: not known.
 * run_around_gather -- how fast pieces are read now that are as large as those of a cold result. run_has_gather --
 * whether a kernel of the device measures that. Errors: ERR_NOMEM. */
enum err_code run_around(struct run *r, const char *unit, bool cold, double footprint_bytes,
                         struct result_ceilings *out, struct err *e);
enum err_code run_around_gather(struct run *r, double piece_bytes, double *out, struct err *e);
bool run_has_gather(const struct run *r);

/* run_around_move -- the rate of moving memory around a cold result x with the rates of reading, where it may bind and
 * was left for later. Errors: ERR_NOMEM. */
enum err_code run_around_move(struct run *r, struct result *x, struct err *e);

/* run_choose_again -- the codes of reading and moving memory once more, of which the best now take the place of those
 * that an earlier, perhaps disturbed moment chose; twice in a run at most, *done false where it was not. Errors:
 * ERR_NOMEM. */
enum err_code run_choose_again(struct run *r, bool *done, struct err *e);

#endif
