/* calibrated -- seconds of a prefill or decode step as kernels that were measured take them.
 *
 * Every operator of the step becomes a call of the kernel that an engine runs for it, timed by the form and the
 * parameters of its measured class (source.h); operators inside another's kernel take nothing of their own. Calls are
 * cold: their weights and caches come from memory. A step takes, of the sum over its calls,
 *   graph  host_s + sum                        (a replay launches nothing by itself)
 *   eager  host_s + max(sum, launches*launch_s)  (launches run ahead of the device until they are the slower)
 * times what whole steps of the framework were measured at over that sum (steps.h), and never less than the bound.
 * Where a part F of the layers' weights is at the host (offload.h), F * max(0, weights/host link - kernel) is added of
 * each kernel that reads some: nobody measured such steps here. Derivation, fusions and defaults: MODEL.md "Calibrated
 * steps". */
#ifndef RIDGE_FIT_CALIBRATED_H
#define RIDGE_FIT_CALIBRATED_H

#include "calc/fit/source.h"
#include "calc/time/mix.h"
#include "calc/time/step.h"

struct calibrated_setup {
    const struct step *step; /* compiled for bound, whose times are the floor */
    const struct source *source;
    bool eager;
    size_t memos;               /* room for what was computed; 0: enough for a sweep */
    bool hostless;              /* a pass within a step of another model: what the host adds is that one's */
    const struct mix_plan *mix; /* for calibrated_mix_eval; of the same model and device; NULL none */
};

struct calibrated; /* lives in the arena; keeps what it computed, so one thread at a time */

/* Median, P10 and P90. */
struct calibrated_time {
    double s, p10_s, p90_s;
};

/* calibrated_open -- Errors: ERR_NOMEM; ERR_RANGE an expression too large. */
enum err_code calibrated_open(struct arena *a, const struct calibrated_setup *setup, struct calibrated **out,
                              struct err *e);

/* calibrated_eval -- the times of a phase at n points as those of step_eval (M may be NULL); floor_s: the bound of each
 * point. Cost: that of attention per point, and of all other operators once per number of rows. */
void calibrated_eval(struct calibrated *c, enum step_phase phase, size_t n, const double *B, const double *T,
                     const double *S, const double *M, const double *floor_s, struct calibrated_time *out);

/* calibrated_mix_eval -- the times of a mixed step; floor_s: its bound. Pieces of prompts attend as so many of their
 * mean size. Steps that only decode are those of calibrated_eval, one whole prompt a prefill; of steps that do both
 * none was measured, and their band is the wider rule. calibrated_mix_ops -- as calibrated_ops. */
void calibrated_mix_eval(struct calibrated *c, const struct mix *x, double floor_s, struct calibrated_time *out);
void calibrated_mix_ops(struct calibrated *c, const struct mix *x, struct step_op *ops, size_t n);

/* calibrated_mix_work -- calibrated_mix_eval, and how many kernels the step is made of. */
struct calibrated_work {
    struct calibrated_time time;
    double kernels;       /* as they were measured: what holds several is one */
    double launches;      /* of each by itself, where no graph is replayed */
    double collectives_s; /* of the kernels' seconds, those among ranks */
    double idle_s;        /* that the device waits for launches */
};
void calibrated_mix_work(struct calibrated *c, const struct mix *x, double floor_s, struct calibrated_work *out);

/* calibrated_mix_prompt -- mix_prompt in calibrated times; floor_s: none, each piece has its own bound. */
void calibrated_mix_prompt(struct calibrated *c, struct mix *scratch, double tokens, double chunk,
                           struct calibrated_time *out);

/* calibrated_ops -- the calibrated seconds of operators that step_ops gave for the same phase and point, times their
 * counts: sets time_s, bound_by ("measured", "fused", "inside", "estimated") and share_frac; what the host adds and
 * what whole steps were measured at are in none of them. */
void calibrated_ops(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M,
                    struct step_op *ops, size_t n);

/* calibrated_band -- P90 over the median, at least 1, of a decode step of `batch` sequences at `context` tokens and of
 * one prompt, whichever is wider. */
double calibrated_band(struct calibrated *c, double batch, double context, double prompt);

/* calibrated_sum_s -- that sum of one point: kernels alone. calibrated_kernels -- how many, as they were measured.
 * calibrated_collectives_s -- of the sum, those among ranks. */
double calibrated_sum_s(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M);
double calibrated_kernels(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M);
double calibrated_collectives_s(struct calibrated *c, enum step_phase phase, double B, double T, double S, double M);

/* calibrated_note -- the i-th sentence on what was not measured as it is used; NULL at the end. */
const char *calibrated_note(const struct calibrated *c, size_t i);

#endif
