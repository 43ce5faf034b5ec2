/* run_code -- one code of a ceiling: whether there is time for it, a look at it, its sampling, what is made of it. Of
 * run_ceilings.c, which says which codes there are of which ceiling. */
#ifndef RIDGE_PROBE_RUN_CODE_H
#define RIDGE_PROBE_RUN_CODE_H

#include "probe/run.h"

/* Arrays of ceilings of memory, at most, of a card and for each thread of a processor (where reading one takes half a
 * millisecond, less than others take the processor away for); pieces of such an array that are read in no order, at
 * least. */
#define RUN_ARRAY_BYTES 0x1p26
#define RUN_ARRAY_CORE_BYTES 0x1p23
enum { RUN_PIECES_FEW = 16 };

/* run_ceiling_s -- of the sampling of a ceiling. run_code_rate -- counted flops, or bytes, over the time of a result;
 * NAN it has none. */
double run_ceiling_s(const struct run *r);
double run_code_rate(const struct result *x, bool flops);

/* run_code_share -- the next of *groups of codes has its share of what is left for ceilings, and there is one group
 * less; none is left: no end of its own. */
void run_code_share(struct run *r, size_t *groups);

/* run_code_surely -- a ceiling's sampling: the best of up to six looks, of a quarter of its time each, until two of
 * them agree within 2 % on what is best. Errors: ERR_NOMEM. */
enum err_code run_code_surely(struct run *r, struct wire_job job, struct result *x, struct err *e);

/* run_try_code -- measure a variant of a kernel that measures a ceiling; a better one takes its place in c. One that a
 * short look shows beaten is sampled no further; no variant is tried once so many as never succeed on a machine like
 * this, three, gave no number for noise, which c->why then says. Errors: ERR_NOMEM. */
enum err_code run_try_code(struct run *r, const struct wire_kernel *k, const struct wire_variant *v, const char *dtype,
                           const struct wire_shape *shape, bool cold, struct run_ceiling *c, struct err *e);

#endif
