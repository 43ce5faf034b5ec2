/* dims -- what an expression is measured in: bytes, floating-point operations, seconds.
 *
 * A person's text is parsed with names and units that stand for what they are measured in (sym_dims_leaf), and the tree
 * is looked at. What people write without units is let pass: symbols of sizes are numbers of anything (2BDF is flops),
 * and so are plain numbers; one from 1e5 on, or as small, makes a product open, since it may be a rate
 * (bytes/3.35e12). So a finding is one: two things that are both said to be something, and not the same. */
#ifndef RIDGE_SYM_DIMS_H
#define RIDGE_SYM_DIMS_H

#include "calc/base/units.h"
#include "calc/sym/sym.h"

enum { SYM_DIMS_TEXT = 64 };

struct sym_dims {
    bool said; /* something in it has a unit, or is a quantity */
    bool open; /* a factor may be anything */
    double bytes, flops, seconds;
};

/* sym_dims_leaf -- a name, or a number with a unit of `kind`, in the place of its value. Money and watts: nothing is
 * said. */
const struct sym *sym_dims_leaf(struct sym_ctx *c, const char *name, enum units_kind kind);

/* sym_dims_of -- of an expression of such leaves. false: terms of a sum, or what a minimum is of, are not the same;
 * one and other are. Cost: linear in the tree, of which 2^18 nodes are looked at: what is behind them is open. */
bool sym_dims_of(const struct sym *e, struct sym_dims *out, struct sym_dims *one, struct sym_dims *other);

/* sym_dims_agree -- whether two may be equal: both said, none open, and not the same are not. sym_dims_text -- "bytes",
 * "flops/s", "a number". Returns out. */
bool sym_dims_agree(const struct sym_dims *a, const struct sym_dims *b);
const char *sym_dims_text(const struct sym_dims *d, char out[SYM_DIMS_TEXT]);

#endif
