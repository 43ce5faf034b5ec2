/* probe_known -- which imported results there are already, in a store or before in the files that are being imported.
 *
 * Rows are known by hashes of 96 bits: of n = 1e6 rows two are taken for one with a chance of n^2/2^97, 6e-18. */
#ifndef RIDGE_CLI_PROBE_KNOWN_H
#define RIDGE_CLI_PROBE_KNOWN_H

#include "probe/store.h"

struct probe_known;

enum probe_known_as {
    PROBE_KNOWN_NEW,
    PROBE_KNOWN_BEFORE,  /* the store has it, or a file before: kind, format, device, shape, time and cells, in whatever
                            order, but for what counts before them; and where it says when it was made, made then */
    PROBE_KNOWN_REPEATED /* a row before it in its file is the same to the letter */
};

/* probe_known_open -- the imported results of a store. Errors: as store_each. Cost: O(results) time, 43 to 86 bytes
 * of memory each, and 64 to 128 of each row that is new. */
enum err_code probe_known_open(struct arena *a, struct store *s, struct probe_known **out, struct err *e);

/* probe_known_next_file -- rows from here on are of another file. */
void probe_known_next_file(struct probe_known *k);

/* probe_known_meet -- what a row is known as; a new one is known from then on. dated: it says when it was made. Errors:
 * ERR_NOMEM. Cost: O(cells of the row). */
enum err_code probe_known_meet(struct probe_known *k, struct arena *a, const struct result *r, bool dated,
                               enum probe_known_as *out, struct err *e);

#endif
