/* account -- whether results that files bring are what a kernel can have: a worker says of each call what it counts.
 *
 * Counts follow from the kernel, its shape and its format alone, whatever device they were measured on: the worker of
 * this CPU knows those of cards too. */
#ifndef RIDGE_PROBE_ACCOUNT_H
#define RIDGE_PROBE_ACCOUNT_H

#include "probe/result.h"
#include "probe/session.h"

struct account;

/* account_open -- of the worker at path, which is started for the first question and ends with the arena. Errors:
 * ERR_NOMEM. */
enum err_code account_open(struct arena *a, const char *path, struct account **out, struct err *e);

/* account_check -- a result's kernel, shape, format, kind of row and ceiling are of a call that there can be, its unit
 * is that of its variant where the worker has one of the name, and its work is the call's; numbers that it does not say
 * are not held against anything. Errors: ERR_INPUT with the column of a file and what was wanted; ERR_DEVICE the worker
 * cannot be started, does not answer, or knows no such question; ERR_NOMEM. Cost: one answer of the worker. */
enum err_code account_check(struct account *x, const struct result *r, struct err *e);

#endif
