/* steps -- whole steps of engines, measured, against the sum of their kernels' calibrated times.
 *
 * Bands of a step are those of whole steps. They come from published end-to-end measurements, not from adding up bands
 * of kernels, whose errors are neither independent nor all of what a step is. They are data,
 * configs/efficiency/steps.json:
 *   {"schema": "ridge.steps.1", "launch": {"value_s", "source", "date"}, "launches": [{"framework", "value_s",
 * "source", "date"}] (of those that differ; may be missing), "steps": [{"framework", "phase": "decode"|"prefill",
 * "host_s", "rows", "p10", "p50", "p90", "source", "date"}]} */
#ifndef RIDGE_FIT_STEPS_H
#define RIDGE_FIT_STEPS_H

#include "calc/base/json.h"
#include "calc/fit/fit.h"
#include "calc/time/step.h"

/* What a framework's step takes beside its kernels, and how far measured steps lie from both together. */
struct steps {
    const char *framework;
    enum step_phase phase;
    double host_s;        /* per step: scheduling, sampling, inputs */
    struct fit_band band; /* measured over predicted of models left out */
    const char *source, *date;
};

/* Host seconds of one kernel that a framework launches by itself. */
struct steps_launch {
    const char *framework;
    double value_s;
};

struct steps_table {
    const struct steps *v;
    size_t n;
    double launch_s; /* host seconds of one kernel launched by itself, unless its framework's are known */
    const struct steps_launch *launch;
    size_t launches_n;
};

/* steps_load -- the built-in table. steps_parse -- one from JSON of the form above. Errors: ERR_INPUT naming file and
 * key: missing, of another kind, a band that does not ascend; ERR_NOMEM. */
enum err_code steps_load(struct arena *a, struct steps_table *out, struct err *e);
enum err_code steps_parse(const struct json *j, struct steps_table *out, struct err *e);

/* steps_find -- NULL when no whole steps of that framework and phase were measured. */
const struct steps *steps_find(const struct steps_table *t, const char *framework, enum step_phase phase);

/* steps_launch_s -- host seconds of one kernel that a framework launches by itself; of one that has no own, launch_s.
 */
double steps_launch_s(const struct steps_table *t, const char *framework);

/* steps_widest -- the lowest P10 and the highest P90 of all of them; 1 of none. */
void steps_widest(const struct steps_table *t, double *low, double *high);

#endif
