/* quantity -- names for what the cost model counts ("flops(mlp)", "kv_bytes", "ridge", "decode_step"), as expressions.
 *
 * Without a model the expressions are those of a textbook decoder whose every size is a symbol; with one, its numbers
 * are put in. Without a device its rates are symbols too (peak_bf16, bandwidth, link), so seconds are expressions. */
#ifndef RIDGE_LEARN_QUANTITY_H
#define RIDGE_LEARN_QUANTITY_H

#include "calc/base/units.h"
#include "calc/time/timed.h"

enum quantity_phase { QUANTITY_ANY, QUANTITY_PREFILL, QUANTITY_DECODE };

/* What stands for the sizes of a model. */
enum quantity_sizes {
    QUANTITY_NUMBERS,  /* its numbers */
    QUANTITY_SYMBOLS,  /* the symbols of its structure; bytes per element are numbers where a format has no scales */
    QUANTITY_RELATIVE, /* each symbol x times its number: x = 1 is the model (cost_bind_as) */
};

struct quantity_scope {
    struct arena *arena;
    struct sym_ctx *c;
    struct cost_symbols y;
    struct rates rates;        /* symbols, or the numbers of hw */
    const struct model *model; /* NULL: the textbook's */
    const struct hw *hw;       /* NULL: none; decides which matrix unit a format uses */
    struct cost_conventions conventions;
    enum step_fidelity fidelity;
    enum quantity_sizes sizes;
    const struct sym *free; /* a size of the whole model, or a rate, that keeps no number; NULL none. Of a size of
                               layers: in kind `layer` alone, where that is chosen; L: only of one kind of layer */
    const struct sym
        *tokens;    /* query tokens of a decode step, speculation's T; NULL: 1, or of a diffusion model its own */
    int64_t tp;     /* ranks */
    int64_t copies; /* of the model, each with B sequences of its own: throughput is that of all */
    bool prefill_together; /* prefill takes the prompts of B sequences in one pass, not one prompt */
    int layer;             /* which kind of layer topics are of; -1: the first that has it */
    bool course;           /* the lecture's attention: K = N heads, N*H = D */
};

/* quantity_tokens -- query tokens of a sequence in a decode step: those of a diffusion model's block, S where it passes
 * whole sequences, else `tokens` or 1. */
const struct sym *quantity_tokens(const struct quantity_scope *s);

/* quantity_settled -- tokens of a sequence that a decode step makes: 1, or of blocks of a diffusion model their tokens
 * over their passes. */
const struct sym *quantity_settled(const struct quantity_scope *s);

/* quantity_open -- a scope of the textbook with symbolic rates, in context c (NULL: a new one). course: the lecture's
 * conventions. Errors: ERR_NOMEM. */
enum err_code quantity_open(struct arena *a, struct sym_ctx *c, bool course, struct quantity_scope *out, struct err *e);

/* quantity_device -- put a device's rates into the scope, but for `free`; hw is borrowed. Errors: as timed_link_rate.
 */
enum err_code quantity_device(struct quantity_scope *s, const struct hw *hw, struct err *e);

/* The operators of a pass, with their times. layers: what the count of a layer's operators is multiplied by. */
struct quantity_pass {
    struct cost_ops ops;
    struct timed *timed;
    const struct sym *layers;  /* NULL: 1 */
    const struct model *model; /* the scope's, or the textbook's */
};

/* A topic: one operator, or several that belong together, of one layer kind, summed; or a layer; or a whole pass. */
struct quantity_topic {
    const char *name, *meaning;
    bool whole;                /* of the model and not of a layer */
    bool layer;                /* all operators of a layer */
    bool prompt;               /* the prefill of one prompt, whatever B */
    bool time_known;           /* time_s means something: the device has a peak rate */
    struct quantity_pass pass; /* only the topic's operators; counts are 1 unless whole */
    struct timed_total total;
    const struct sym *bytes;  /* all that is moved; of a whole pass those that the fidelity charges */
    const struct sym *params; /* elements of the weights; whole: each stored tensor once */
};

/* quantity_names -- topics that quantity_topic takes, NULL-terminated. quantity_meaning -- one sentence on a topic;
 * NULL unknown. */
const char *const *quantity_names(void);
const char *quantity_meaning(const char *topic);

/* quantity_of_layer -- whether a topic is of a layer (an operator of the textbook or of the model, or all of them) and
 * not of the whole model. */
bool quantity_of_layer(const struct quantity_scope *s, const char *name);

/* quantity_topic -- the expressions of a topic in a phase: T and S free, T = S (prefill), or T = 1 (decode).
 * A diffusion model that passes whole sequences has T = S in every phase, and no prefill. Errors: ERR_USAGE unknown
 * topic (nearest offered), one that the model has not, `layer` of a model with several kinds;
 * ERR_NOMEM. */
enum err_code quantity_topic(const struct quantity_scope *s, const char *name, enum quantity_phase phase,
                             struct quantity_topic *out, struct err *e);

/* quantity_params -- elements of the weights of a topic (of a pass: each stored tensor once). */
const struct sym *quantity_params(const struct quantity_scope *s, const struct quantity_topic *q);

/* quantity_calls -- call(topic) that quantity_resolve takes: flops, vector_flops, bytes, weight_bytes, kv_bytes,
 * state_bytes, activation_bytes, params (of the whole model; all others of one rank), intensity (flops/bytes) and time
 * (seconds). quantity_value -- the same of a topic that is there. Errors: as quantity_topic; ERR_USAGE unknown call.
 * quantity_units -- the matrix units that the flops of a topic run on, bit u: unit u of enum hw_dtype. */
const char *const *quantity_calls(size_t *n);
enum err_code quantity_resolve(const struct quantity_scope *s, enum quantity_phase phase, const char *call,
                               const char *argument, const struct sym **out, struct err *e);
enum err_code quantity_value(const struct quantity_scope *s, const struct quantity_topic *q, const char *call,
                             const struct sym **out, struct err *e);
unsigned quantity_units(const struct quantity_topic *q);

/* Plain names: of the model, its passes and the device. */
enum { QUANTITY_NAMED_MAX = 24 };
struct quantity_named {
    const char *name, *meaning;
    enum units_kind unit;
    const struct sym *value;
};

/* quantity_named_all -- params, weight_bytes, kv_bytes, resident_bytes, decode_step, prefill, throughput, ridge, ... of
 * the scope; *n of them; a model without a prefill has none here. Parameters are of the whole model, bytes and seconds
 * of one rank, throughput of all copies. resident_bytes has the towers of model_beside. ridge and peak are of the unit
 * of the linear layers' format (quantity_linear_unit). Errors: as quantity_topic. */
enum err_code quantity_named_all(const struct quantity_scope *s, struct quantity_named out[QUANTITY_NAMED_MAX],
                                 size_t *n, struct err *e);

/* quantity_linear_unit -- the matrix unit of the format that most weights have. quantity_ridge -- peak/bandwidth of a
 * unit. Errors: ERR_INPUT no peak rate is known. */
enum err_code quantity_linear_unit(const struct quantity_scope *s, enum hw_dtype *out, struct err *e);
const struct sym *quantity_ridge(const struct quantity_scope *s, enum hw_dtype unit);

#endif
