/* report -- the answer of `ridge plan` as one HTML file; private to the command.
 *
 * The file needs nothing else: no script, no font, no picture from elsewhere. What came from files or the command line
 * goes through report_text or report_put, which escape it; only constants of the program are written as they stand. */
#ifndef RIDGE_CLI_REPORT_H
#define RIDGE_CLI_REPORT_H

#include "calc/cli/plan_charts.h"
#include "calc/cli/simulate_charts.h"

struct report {
    struct arena *arena;
    struct out *o;
    const struct plan_case *c;
    const struct planner_plan *best; /* NULL: nothing keeps the promises */
    struct plan_curves curves;
    struct planner_run run; /* of the best; steps_n 0: not simulated */
    struct planner_verified verified;
    const char *unsimulated; /* why not; NULL */
};

/* -- writing -- */

/* report_text -- s escaped; hostile characters are '?'. report_put -- the same of a format. */
void report_text(struct out *o, const char *s);
__attribute__((format(printf, 2, 3))) void report_put(struct out *o, const char *format, ...);

/* report_begin, report_end -- the document around its sections. report_section -- a heading with an id, both constants;
 * the one before it ends. */
void report_begin(struct out *o, const char *title);
void report_section(struct out *o, const char *id, const char *heading);
void report_end(struct out *o);

/* report_table -- a table under way: caption and n headings, constants; those whose bit is set in `numbers` are
 * right-aligned. report_row -- one of its rows, n cells, escaped, the first a row's heading; NULL: "-". */
void report_table(struct out *o, const char *caption, size_t n, const char *const *headings, unsigned numbers);
void report_row(struct out *o, size_t n, const char *const *cells, unsigned numbers);
void report_table_end(struct out *o);

/* report_chart -- as SVG that the page's style colours, with a legend where it has several lines. id: a constant word,
 * different for each. A chart without points is a sentence. */
void report_chart(struct out *o, const char *id, const struct chart *chart);

/* report_bar -- parts of a whole side by side, with their names. n <= 4. */
void report_bar(struct out *o, const char *id, const char *title, size_t n, const char *const *names,
                const double *parts);

/* -- sections, in the order of the page; errors: ERR_NOMEM and those of what is derived -- */

enum err_code report_answer(struct report *r, struct err *e);
enum err_code report_inputs(struct report *r, struct err *e);
enum err_code report_conventions(struct report *r, struct err *e);
enum err_code report_winner(struct report *r, struct err *e);
enum err_code report_others(struct report *r, struct err *e);
enum err_code report_pictures(struct report *r, struct err *e);
enum err_code report_formulas(struct report *r, struct err *e);
enum err_code report_method(struct report *r, struct err *e);

#endif
