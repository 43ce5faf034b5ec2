/* steps -- whole steps of engines, measured, against the sum of their kernels' calibrated times.
 *
 * Bands of a step are those of whole steps. They come from published end-to-end measurements, not from adding up bands
 * of kernels, whose errors are neither independent nor all of what a step is. */
#ifndef RIDGE_FIT_STEPS_H
#define RIDGE_FIT_STEPS_H

#include "calc/fit/fit.h"
#include "calc/time/step.h"

/* What a framework's step takes beside its kernels, and how far measured steps lie from both together. */
struct steps {
    const char *framework;
    enum step_phase phase;
    double host_s;        /* per step: scheduling, sampling, inputs */
    struct fit_band band; /* measured over predicted of models left out; n 0: none measured */
    const char *source;
};

/* steps_find -- NULL when no whole steps of that framework and phase were measured. */
const struct steps *steps_find(const char *framework, enum step_phase phase);

/* steps_widest -- the lowest P10 and the highest P90 of all of them; 1 of none. */
void steps_widest(double *low, double *high);

/* Host seconds of one kernel launched by itself; measured: start-up of vLLM's all-reduce called eagerly over that in a
 * graph. */
#define STEPS_LAUNCH_S 16e-6

#endif
