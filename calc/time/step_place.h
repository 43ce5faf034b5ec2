/* step_place -- a step in stages: the tape of one stage, evaluated for each different stage of a layout and put
 * together; private to step. Derivation: MODEL.md "Layouts". */
#ifndef RIDGE_TIME_STEP_PLACE_H
#define RIDGE_TIME_STEP_PLACE_H

#include "calc/time/step.h"

/* Further values of a stage, behind those of a point. */
enum { VALUE_FULL = STEP_VALUES_N, VALUE_WINDOWED, VALUE_INDEX, VALUE_STATE, VALUE_HOSTED, VALUES };

/* Inputs of the tape: of a point; with stages also those of a stage, and the layers of each kind behind all; of a free
 * layout its numbers in between. */
enum {
    IN_B,
    IN_T,
    IN_S,
    IN_M,
    POINT_INPUTS,
    IN_HELD = POINT_INPUTS, /* sequences in the cache */
    IN_FIRST,
    IN_LAST,
    IN_HOP_NEAR,
    IN_HOP_FAR,
    STAGE_INPUTS,
    IN_TP = STAGE_INPUTS,
    IN_R,
    IN_LINK,
    IN_SPREAD,
    IN_FABRIC,
    IN_CONTEXT,
    IN_SUM_S,
    IN_GATHER_S,
    IN_SPREAD_S,
    IN_HOP_S,
    IN_CONTEXT_S,
    IN_LAYOUT,
    LAYOUT_INPUTS = IN_LAYOUT + LAYOUT_NUMBERS
};

/* A layout as columns of the tape, one for each different stage. */
struct placed {
    const struct step_setup *setup;
    struct sym_tape *tape; /* of one stage */
    size_t inputs_n;
    bool free; /* the tape takes the numbers of the layout */
    bool valid;
    struct layout of;
    size_t n;
    int64_t *stages; /* how many are like column i */
    double **in;     /* [inputs][n] */
    double **out;    /* [VALUES][n] */
    int64_t *layers; /* room of one stage */
};

/* step_place_open -- room for as many columns as there can be stages; setup, tape, inputs_n and free are filled in.
 * Errors: ERR_NOMEM. */
enum err_code step_place_open(struct arena *a, struct placed *p, struct err *e);

/* step_place -- put a layout (whole) into the columns, unless it is there. Errors: as layout_check, timed_links. */
enum err_code step_place(struct placed *p, const struct layout *w, struct err *e);

/* step_place_eval -- a point in the layout that is placed: out[STEP_VALUES_N]. */
void step_place_eval(struct placed *p, const double point[POINT_INPUTS], double *out);

/* step_place_most -- the largest of a value over the stages, as last evaluated. */
double step_place_most(const struct placed *p, size_t value);

#endif
