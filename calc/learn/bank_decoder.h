/* bank_decoder -- the decoders that makers of exercises ask about, and what the cost model counts of one as the lecture
 * does: all parameters but norms, weights and cache alone in memory, each read once in a decode step. */
#ifndef RIDGE_LEARN_BANK_DECODER_H
#define RIDGE_LEARN_BANK_DECODER_H

#include "calc/learn/bank.h"

/* bank_course -- the conventions of all counts below: the textbook's, one kernel for the MLP, no activations held. */
struct cost_conventions bank_course(const struct exercise_maker *m);

/* bank_decoder -- a Llama-like decoder of drawn sizes: grouped-query attention with K < N, gated MLP, a head of its own
 * (not tied), 16 bits throughout. N*H = D in half of the draws; D is a multiple of 128. Errors: ERR_NOMEM. */
enum err_code bank_decoder(struct exercise_maker *m, struct model *out, struct err *e);

/* bank_decoder_with -- a copy of a model that shares nothing that a maker changes, with K KV heads in every layer.
 * Errors: ERR_NOMEM. */
enum err_code bank_decoder_with(struct exercise_maker *m, const struct model *of, int64_t kv_heads, struct model *out,
                                struct err *e);

/* bank_decoder_sizes -- "L = 40 layers, model width D = 5120, ..." of the first layer kind. */
const char *bank_decoder_sizes(struct exercise_maker *m, const struct model *d);

/* Counts of a model on one device. */
struct bank_counts {
    double params;             /* norms left out */
    double weight_bytes;       /* as stored, scales included */
    double kv_bytes_per_token; /* of all layers, windows ignored */
};

/* bank_count -- Errors: as cost_parameters and cost_bind. */
enum err_code bank_count(struct exercise_maker *m, const struct model *d, struct bank_counts *out, struct err *e);

/* bank_cache_bytes -- KV cache of one sequence at context S, windows cut. Errors: as cost_cache. */
enum err_code bank_cache_bytes(struct exercise_maker *m, const struct model *d, int64_t S, double *out, struct err *e);

/* bank_decode_s -- seconds of one decode step of B sequences at context S: max(flops/peak, (weights + KV)/bandwidth).
 * Errors: as step_compile. */
enum err_code bank_decode_s(struct exercise_maker *m, const struct model *d, const struct hw *hw, double B, double S,
                            double *out, struct err *e);

/* The textbook decoder with every size a symbol; layers are multiplied by L, value heads are as wide as key heads. */
struct bank_template {
    bool tied, gated;
    bool mha; /* K = N */
};

/* bank_parameters, bank_kv_token -- its parameters in V D F L N K H; bytes cached per token in L K H b_kv. Errors: as
 * cost_build. */
enum err_code bank_parameters(struct exercise_maker *m, const struct bank_template *t, const struct sym **out,
                              struct err *e);
enum err_code bank_kv_token(struct exercise_maker *m, const struct sym **out, struct err *e);

/* A built-in model that a device holds with B sequences of S tokens, the device at the lecture's constants where it is
 * the lecture's. B is 4..128, so that a step is bound by memory. */
struct bank_served {
    struct model model;
    struct hw hw;
    struct bank_counts n;
    double peak_flops_per_s; /* dense, 16-bit */
    int64_t B, S;
};

/* bank_served -- drawn. Errors: as model_load, hw_load and bank_count. */
enum err_code bank_served(struct exercise_maker *m, struct bank_served *out, struct err *e);

/* bank_device_16bit -- a drawn device with a known price and its dense 16-bit peak. Errors: as hw_load. */
enum err_code bank_device_16bit(struct exercise_maker *m, struct hw *out, double *peak_flops_per_s, struct err *e);

/* bank_ask -- the frame of a question with a number for an answer. */
void bank_ask(struct exercise_question *q, enum units_kind unit, double value, double tolerance_frac, const char *form);

/* bank_served_text -- parameters, bytes cached per token, device and bandwidth, as a question states them. */
const char *bank_served_text(struct exercise_maker *m, const struct bank_served *s);

/* bank_peak_text -- a peak in full, "1307.4 TFLOP/s": a question must not round what it gives. */
const char *bank_peak_text(struct exercise_maker *m, double flops_per_s);

/* bank_shown, bank_digits -- units_format and units_format_digits as texts in the maker's arena. */
const char *bank_shown(struct exercise_maker *m, enum units_kind kind, double v);
const char *bank_digits(struct exercise_maker *m, double count);

#endif
