/* quantity -- names for what the cost model counts ("flops(mlp)", "kv_bytes", "ridge"), as expressions.
 *
 * Without a model the expressions are those of a textbook decoder whose every size is a symbol; with one, its numbers
 * are put in. Bytes per element are numbers throughout: 2 where no model says otherwise. */
#ifndef RIDGE_LEARN_QUANTITY_H
#define RIDGE_LEARN_QUANTITY_H

#include "calc/cost/cost.h"

enum quantity_phase { QUANTITY_ANY, QUANTITY_PREFILL, QUANTITY_DECODE };

struct quantity_scope {
    struct arena *arena;
    struct sym_ctx *c;
    struct cost_symbols y;
    const struct model *model; /* NULL: the textbook's */
    struct cost_conventions conventions;
    bool course; /* the lecture's attention: K = N heads, N*H = D */
};

/* A topic: one operator, or several that belong together, of one layer kind, summed. Per layer and pass, one rank. */
struct quantity_topic {
    const char *name, *meaning;
    const struct cost_op *const *ops; /* what it consists of */
    size_t ops_n;
    const struct sym *flops, *vector_flops, *weight_bytes, *kv_bytes, *activation_bytes, *bytes, *params;
};

/* quantity_names -- topics that quantity_topic takes, NULL-terminated. */
const char *const *quantity_names(void);

/* quantity_topic -- the expressions of a topic in a phase: T and S free, T = S (prefill), or T = 1 (decode).
 * Errors: ERR_USAGE unknown topic (nearest offered) or one that the model has not; ERR_NOMEM. */
enum err_code quantity_topic(const struct quantity_scope *s, const char *name, enum quantity_phase phase,
                             struct quantity_topic *out, struct err *e);

/* quantity_resolve -- call(argument) of what a person types: flops, vector_flops, bytes, weight_bytes, kv_bytes,
 * activation_bytes, params and intensity (flops/bytes) of a topic. Errors: as quantity_topic; ERR_USAGE unknown call.
 */
enum err_code quantity_resolve(const struct quantity_scope *s, enum quantity_phase phase, const char *call,
                               const char *argument, const struct sym **out, struct err *e);

/* quantity_calls -- the calls that quantity_resolve takes; *n of them. */
const char *const *quantity_calls(size_t *n);

/* quantity_meaning -- one sentence on a topic; NULL unknown. */
const char *quantity_meaning(const char *topic);

#endif
