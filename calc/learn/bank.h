/* bank -- what makers of exercises draw and derive with, and the rows of all sets. */
#ifndef RIDGE_LEARN_BANK_H
#define RIDGE_LEARN_BANK_H

#include "calc/cost/cost.h"
#include "calc/learn/exercise.h"
#include "calc/model/model.h"
#include "calc/time/hw.h"

/* One question in the making. rng: the state of splitmix64 (Steele, Lea, Flood, OOPSLA 2014), seeded from the
 * exercise's name and the seed. */
struct exercise_maker {
    struct arena *arena;
    struct sym_ctx *c;
    struct cost_symbols y;
    struct quantity_scope textbook; /* --course conventions, no model; for quantity_resolve */
    uint64_t rng;
};

/* bank_draw -- uniform in [lo, hi], lo <= hi. bank_pick -- one of n numbers, n >= 1. */
int64_t bank_draw(struct exercise_maker *m, int64_t lo, int64_t hi);
int64_t bank_pick(struct exercise_maker *m, size_t n, const int64_t *of);

/* bank_device -- one of n built-in devices by key; bank_model likewise. Errors: as hw_load, model_load. */
enum err_code bank_device(struct exercise_maker *m, size_t n, const char *const *keys, struct hw *out, struct err *e);
enum err_code bank_model(struct exercise_maker *m, size_t n, const char *const *names, struct model *out,
                         struct err *e);

/* bank_printf -- a text in the maker's arena; "" when memory is exhausted (then sym_check or the caller's ERR_NOMEM).
 */
const char *bank_printf(struct exercise_maker *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* bank_show, bank_show_normal -- an expression as a person writes it, as it is or in canonical form; "" as
 * bank_printf, and where there is no canonical form. */
const char *bank_show(struct exercise_maker *m, const struct sym *e);
const char *bank_show_normal(struct exercise_maker *m, const struct sym *e);

/* Other words for the choices "memory" and "compute". */
#define BANK_ALSO_MEMORY "bandwidth,mem"
#define BANK_ALSO_COMPUTE "arithmetic,math,flops,peak"

/* bank_step, bank_slip, bank_slip_formula -- add to a question; what is beyond the room it has is dropped, and the
 * tests of all exercises want some room to be left. */
void bank_step(struct exercise_question *q, const char *text);
void bank_slip(struct exercise_question *q, double value, const char *hint);
void bank_slip_formula(struct exercise_question *q, const struct sym *formula, const char *hint);

/* The sets, one file each (bank_<set>.c): rows in the order of the course, *n of them. */
const struct exercise *bank_intensity(size_t *n);     /* matrix products, MLP, attention, the ridge line */
const struct exercise *bank_memory(size_t *n);        /* parameters, weights, KV cache, GQA, quantisation */
const struct exercise *bank_time(size_t *n);          /* latency, throughput, batching, replicas, training flops */
const struct exercise *bank_architectures(size_t *n); /* MLA, shared caches, windows, states, experts, formats */
const struct exercise *bank_scale(size_t *n);         /* drafts, passes of many tokens, ranks, training at scale */
const struct exercise *bank_serving(size_t *n);       /* caches in blocks, queues, batches, replicas, cost */

#endif
