/* shapes -- the operators of a model's step as calls of kernels, with the sizes that rows of their kind have: what is
 * to be measured of a model, and which measured row is which operator. */
#ifndef RIDGE_FIT_SHAPES_H
#define RIDGE_FIT_SHAPES_H

#include "calc/fit/rows.h"
#include "calc/time/step.h"

/* One call of a step. */
struct shape {
    const char *phase, *op; /* "decode", "qkv_proj"; borrowed from the model's step */
    int kind_index;         /* kind of layer, -1 outside the layers */
    int64_t count, layers;  /* calls of the step; layers of its kind, 0 outside them */
    struct kernel kernel;   /* cold */
    bool whole;             /* an MLP in one call, whose products are calls of their own as well */
    const char *dtype;      /* of the weights, or of the cache: as rows call it */
    double batch;
    double tokens;  /* new ones of each sequence */
    double bound_s; /* of one call, on the step's device; NAN no rate is known */
};

/* shapes_of_model -- the calls of a phase with a kind of rows on one device, appended to out: a decode step of B
 * sequences at context S, or a prefill of one prompt of T tokens. Recurrent mixers, products, attention, RMS norms of
 * the model's width, writing keys and values, turning queries and keys, and drawing tokens are calls; what is fused
 * into them, or moves other bytes alone, is none. Behind them each gated dense MLP once more, whole. Of experts so many
 * are touched as are expected, in whole numbers. hw NULL: sizes without bounds. Errors: as step_compile. */
enum { SHAPES_OTHERS_MAX = 32 };
struct shapes {
    struct shape *v;
    size_t n, room;
    const char *others[SHAPES_OTHERS_MAX]; /* operators that are no calls of a kind of rows, each name once */
    size_t others_n;
};
struct shapes_point {
    enum step_phase phase;
    double batch, tokens, context;
};
enum err_code shapes_of_model(struct arena *a, const struct model *m, const struct hw *hw,
                              const struct shapes_point *at, struct shapes *out, struct err *e);

/* shape_number -- the i-th size of a call as rows of its kind call it: "m" 8, "n" 4096, ...; false at the end. A size
 * that is expected and not known (experts that a batch touches) is NAN. */
bool shape_number(const struct kernel *k, size_t i, const char **name, double *value);

/* shape_ones -- the sizes of a call, joined by ',', that a kernel need not know of when they are 1. Errors: NULL, no
 * memory. */
const char *shape_ones(struct arena *a, const struct kernel *k);

/* shape_dtype -- the format that a row is told apart by: of decoding that of the cache. */
const char *shape_dtype(const struct row *r);

/* shape_is -- whether a row is a measurement of a call: its kind, format (of decoding that of the cache) and every size
 * that is known; an expected one as near as a twentieth or 1. */
bool shape_is(const struct shape *s, const struct row *r);

#endif
