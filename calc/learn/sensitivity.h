/* sensitivity -- what is worth improving: how a quantity answers to each size, width and rate, at one point.
 *
 * Elasticity d ln(q)/d ln(x): per cent of q for one per cent of x. Sizes of a model are varied together over all kinds
 * of layer (as x times its number, cost_bind_as), so that F grows in every MLP at once, and heads of one width
 * together. The number of ranks is a layout and no size. A max takes the operand that wins at the point. Of seconds,
 * those of the rates add up to -1. */
#ifndef RIDGE_LEARN_SENSITIVITY_H
#define RIDGE_LEARN_SENSITIVITY_H

#include "calc/learn/quantity.h"

struct sensitivity_row {
    const char *symbol, *meaning;
    double elasticity;
};

struct sensitivity {
    const char *quantity; /* "decode_step" */
    enum units_kind unit;
    double value;                 /* of the quantity, at the point */
    struct sensitivity_row *rows; /* largest magnitude first; those below 0.0005 are left out */
    size_t n;
    bool of_batch, of_context; /* it depends on B, on S or T */
    bool kink;                 /* at the point two resources bind equally: one side's derivatives are given */
};

/* sensitivity_of -- of a plain name of quantity_named_all (decode_step, prefill, throughput, resident_bytes, ...), or
 * of the seconds of a topic. scope: with a model, and with a device where the quantity is one of seconds. Errors:
 * ERR_USAGE no such quantity, no model, no device; as quantity_topic. */
enum err_code sensitivity_of(const struct quantity_scope *scope, enum quantity_phase phase, const char *quantity,
                             int64_t batch, int64_t context, struct sensitivity *out, struct err *e);

#endif
