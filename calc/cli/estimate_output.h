/* estimate_output -- where the rows of `ridge estimate` go; private to the command. */
#ifndef RIDGE_CLI_ESTIMATE_OUTPUT_H
#define RIDGE_CLI_ESTIMATE_OUTPUT_H

#include "calc/cli/estimate.h"
#include "calc/cli/progress.h"

/* Where rows go: streamed as they come, or kept until the table is whole. */
struct estimate_sink {
    struct arena *arena;
    struct table table;
    enum table_format format;
    struct out *out;
    bool streamed, first;
    struct estimate_row *rows;
    size_t rows_n, fits_n, points_n, all_points;
    struct progress progress;
    const char *because;      /* why the first point that does not fit does not */
    double least_short_bytes; /* of points that do not fit */
    double need_bytes, capacity_bytes;
    const char *notes[64];
};

/* estimate_write -- the rows that were kept, in the sink's format; one case has rows_n / cases_n of them.
 * Errors: those of the tables; ERR_USAGE an unknown column. */
enum err_code estimate_write(struct estimate_sink *s, const struct estimate_request *q,
                             const struct estimate_case *cases, size_t cases_n, struct err *e);

/* estimate_write_heading -- the lines over the table of a case. */
void estimate_write_heading(struct out *o, const struct estimate_request *q, const struct estimate_case *c);

/* estimate_plot_kind -- of the picture that was asked for. estimate_draw -- draw it. Errors: as plot_render. */
const char *estimate_plot_kind(const struct estimate_request *q);
enum err_code estimate_draw(struct estimate_sink *s, const struct estimate_request *q,
                            const struct estimate_case *cases, struct err *e);

#endif
