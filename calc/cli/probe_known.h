/* probe_known -- which imported results a store has already. */
#ifndef RIDGE_CLI_PROBE_KNOWN_H
#define RIDGE_CLI_PROBE_KNOWN_H

#include "probe/store.h"

/* Imported results, by time. */
struct probe_known {
    const struct result **v;
    size_t n;
};

/* probe_known_read -- those of a store. Errors: as store_read. */
enum err_code probe_known_read(struct arena *a, struct store *s, struct probe_known *out, struct err *e);

/* probe_known_add -- n more of them, which stay where they are. Errors: ERR_NOMEM. */
enum err_code probe_known_add(struct arena *a, struct probe_known *known, const struct result *r, size_t n,
                              struct err *e);

/* probe_known_has -- whether one of them is this row: its kind, format, device, shape and cells; dated: and made then.
 */
bool probe_known_has(struct arena *a, const struct probe_known *known, const struct result *r, bool dated);

/* probe_known_repeats -- which of n rows of one file, whose cells are in one order, are a row before them: again[i],
 * there for n. Errors: ERR_NOMEM. Cost: O(n log n). */
enum err_code probe_known_repeats(struct arena *a, const struct result *r, size_t n, bool *again, struct err *e);

#endif
