/* meet -- where two quantities meet, and when they do not, why. */
#ifndef RIDGE_LEARN_MEET_H
#define RIDGE_LEARN_MEET_H

#include "calc/sym/find.h"
#include "calc/sym/normal.h"

enum { MEET_MAX = FIND_ROOTS_MAX };

/* One positive value of the variable. */
struct meet_root {
    const struct sym *closed;    /* closed form; NULL: found by numbers */
    const struct sym *condition; /* the root is positive where this is: its sign is not known; NULL: it is positive */
    double value;                /* NAN while symbols are left */
    double until;                /* the sides are equal from value to here; NAN: at value alone */
    bool jump;                   /* the sides pass each other in a step and are equal nowhere */
};

struct meet {
    bool always;                    /* equal for every value */
    bool by_numbers;                /* no closed form; equation says what was solved */
    const struct sym *left, *right; /* canonical; NULL where that cannot be had */
    bool more;                      /* there are further ones beyond the last */
    size_t n;
    struct meet_root root[MEET_MAX];
    const char
        *reason; /* n == 0 and not always: "the left side grows with S, but only towards 8; the right is 295.3" */
};

/* meet_solve -- the positive values of var with left = right: in closed form as far as sym_solve goes, else by numbers
 * between 1e-6 and 1e18 (sym_find). Errors: ERR_RANGE no closed form, and symbols are left so that there are no
 * numbers either (both said); ERR_NOMEM. */
enum err_code meet_solve(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                         const struct sym *var, struct meet *out, struct err *e);

#endif
