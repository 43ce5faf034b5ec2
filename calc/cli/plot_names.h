/* plot_names -- one short text for several operator names. */
#ifndef RIDGE_CLI_PLOT_NAMES_H
#define RIDGE_CLI_PLOT_NAMES_H

#include <stddef.h>

#include "calc/base/arena.h"

/* plot_names_join -- the n distinct ones of names, said once where they share a path (up to the last '.') or an ending
 * (from the last '_'): q_proj, k_proj, v_proj, o_proj, lm_head become "q/k/v/o_proj, lm_head"; a.up, b.up become
 * "a/b.up". What does not go into max_wide columns (of terminal width) is counted: "q/k/v_proj +5". In order of first
 * appearance. NULL when memory is exhausted. Cost: O(n^2). */
char *plot_names_join(struct arena *a, const char *const *names, size_t n, size_t max_wide);

#endif
