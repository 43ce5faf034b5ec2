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
    double until;                /* the sides are equal from value (0: from nothing on) to here (INFINITY: and for all
                                    larger ones); NAN: at value alone */
    bool after, before;          /* of a stretch: not at value itself, not at until itself: a side makes a step there */
    bool jump;                   /* the sides pass each other in a step and are equal nowhere */
};

struct meet {
    bool always;                    /* equal for every value */
    bool by_numbers;                /* no closed form; equation says what was solved */
    double low, high;               /* by numbers: where they were looked for */
    const struct sym *left, *right; /* canonical; NULL where that cannot be had */
    const struct sym *hole;         /* a value that would do, but a side divides by zero there; NULL none */
    bool more;                      /* there are further ones beyond the last */
    size_t n;
    struct meet_root root[MEET_MAX];
    const char
        *reason; /* n == 0 and not always: "the left side grows with S, but only towards 8; the right is 295.3" */
};

/* Values of var that are answers: from low to high, NAN no limit. */
struct meet_limits {
    double low, high;
};

/* meet_solve -- the positive values of var within limits (NULL: none) with left = right: in closed form as far as
 * sym_solve goes, else by numbers (sym_find) between 1e-6 and 1e18, and where there are none between 1e-30 and 1e30. A
 * value where a side divides by zero is none, though both sides have the same limit there. Of two roots in symbols the
 * sum and the product say which are positive (Vieta). Errors: ERR_RANGE no closed form, and symbols are left so that
 * there are no numbers either (both said); ERR_NOMEM. */
enum err_code meet_solve(struct arena *a, struct sym_ctx *c, const struct sym *left, const struct sym *right,
                         const struct sym *var, const struct meet_limits *limits, struct meet *out, struct err *e);

#endif
