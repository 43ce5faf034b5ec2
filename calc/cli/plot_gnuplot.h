/* plot_gnuplot -- run gnuplot on a script in a directory of its own. */
#ifndef RIDGE_CLI_PLOT_GNUPLOT_H
#define RIDGE_CLI_PLOT_GNUPLOT_H

#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/out.h"

struct plot_source {
    const char *name; /* a plain file name */
    const void *bytes;
    size_t size;
};

/* plot_gnuplot_check -- whether PATH leads to gnuplot, before what is to be drawn is measured. Errors: ERR_IO it does
 * not.
 */
enum err_code plot_gnuplot_check(struct err *e);

/* plot_gnuplot_run -- write n files into a fresh directory below $TMPDIR (/tmp when unset), run
 * `gnuplot --default-settings script` there (found by PATH, no shell, standard input empty, its messages kept off the
 * terminal), append the file `result` it leaves to `to`, remove the directory. SIGINT, SIGTERM, SIGHUP and SIGQUIT that
 * arrive meanwhile stop gnuplot and take effect after the removal. gnuplot gets two minutes.
 * Errors: ERR_IO gnuplot not found, its first line of complaint, no room for the files; ERR_NOMEM. */
enum err_code plot_gnuplot_run(struct arena *a, const struct plot_source *files, size_t n, const char *script,
                               const char *result, struct out *to, struct err *e);

#endif
