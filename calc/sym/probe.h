/* probe -- the difference of two expressions at numbers of one variable, and what polishes a place where it vanishes.
 * Private to this room. */
#ifndef RIDGE_SYM_PROBE_H
#define RIDGE_SYM_PROBE_H

#include "calc/sym/find.h"

/* lhs, rhs, lhs - rhs with like terms collected first, and the sum of the magnitudes of that difference's terms, which
 * is what rounding errors are in proportion to. NAN: undefined. */
struct probe_point {
    double x, lhs, rhs, gap, scale;
};

struct probe {
    struct sym_tape *tape;
    size_t length;      /* of the tape */
    size_t evaluations; /* still allowed */
    bool side_is_zero;  /* lhs or rhs is 0 throughout */
};

/* probe_open -- compiles. Errors: ERR_RANGE a variable besides var (named), ERR_NOMEM. */
enum err_code probe_open(struct arena *a, struct sym_ctx *c, const struct sym *lhs, const struct sym *rhs,
                         const struct sym *var, struct probe *out, struct err *err);

/* probe_at -- at one x. probe_column -- at n of them; point[i].x is given. scratch holds 5*n. */
struct probe_point probe_at(struct probe *p, double x);
void probe_column(struct probe *p, size_t n, struct probe_point *point, double *scratch);

/* probe_sign -- of the gap; 0 for what may be rounding error alone and for NAN. */
int probe_sign(const struct probe_point *y);
static inline bool probe_defined(const struct probe_point *y) { return y->gap == y->gap; }

/* probe_closeness -- what `closest` minimises: the logarithm of the ratio of the sides, which tells 1e-228 from 1e-229;
 * above that, where they have opposite signs or one is zero, what is between them; that alone where one side is 0
 * throughout. */
double probe_closeness(const struct probe *p, const struct probe_point *y);

/* probe_crossing -- the root between a and b, whose gaps have opposite signs. false: a pole, or undefined between.
 * probe_zero -- the root around z, where the gap is zero; a and b are the last points outside, NULL at an end of the
 * range. probe_zeros -- the same where it is zero within rounding at first <= z <= last, too. probe_edge -- the last
 * defined point, seen from a, which is, towards b, where the sides are no numbers. probe_minimum -- of key over (a.x,
 * b.x), m inside being less than both; ends early where the gap changes sign. */
bool probe_crossing(struct probe *p, struct probe_point a, struct probe_point b, struct sym_root *out);
void probe_zero(struct probe *p, const struct probe_point *a, struct probe_point z, const struct probe_point *b,
                struct sym_root *out);
void probe_zeros(struct probe *p, const struct probe_point *a, struct probe_point first, struct probe_point z,
                 struct probe_point last, const struct probe_point *b, struct sym_root *out);
struct probe_point probe_edge(struct probe *p, struct probe_point a, double b);
typedef double probe_key(const struct probe *p, const struct probe_point *y);
double probe_gap(const struct probe *p, const struct probe_point *y); /* a key: |gap| */
struct probe_point probe_minimum(struct probe *p, probe_key *key, struct probe_point a, struct probe_point m,
                                 struct probe_point b);

#endif
