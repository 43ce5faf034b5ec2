/* bank_intensity -- what the files of the first set share: makers of its exercises, element formats, the form of
 * answers that are formulas. */
#ifndef RIDGE_LEARN_BANK_INTENSITY_H
#define RIDGE_LEARN_BANK_INTENSITY_H

#include "calc/learn/bank.h"

/* An element format: fp8, bf16, fp32. */
struct bank_precision {
    const char *name, *size; /* "bf16", "2 bytes" */
    int64_t bytes;
};

enum { BANK_PRECISIONS_N = 3 };

/* bank_precision -- by size: 0 fp8, 1 bf16, 2 fp32. bank_draw_precision -- one of them. */
const struct bank_precision *bank_precision(size_t i);
const struct bank_precision *bank_draw_precision(struct exercise_maker *m);

/* bank_at_bytes -- bytes of the textbook's expressions, which are for two an element, at another number of them. */
const struct sym *bank_at_bytes(struct exercise_maker *m, const struct sym *bytes, int64_t per_element);

/* bank_use_symbols -- make the question one for a formula in these symbols (and those it has), and say so. */
void bank_use_symbols(struct exercise_maker *m, struct exercise_question *q, size_t n, const struct sym *const *list);
#define BANK_USE(m, q, ...)                                                                                            \
    bank_use_symbols((m), (q), sizeof((const struct sym *[]){__VA_ARGS__}) / sizeof(const struct sym *),               \
                     (const struct sym *[]){__VA_ARGS__})

/* Makers, as struct exercise wants them. */
#define BANK_MAKER(name) enum err_code name(struct exercise_maker *m, struct exercise_question *q, struct err *e)
BANK_MAKER(bank_ridge_h100);
BANK_MAKER(bank_ridge_device);
BANK_MAKER(bank_ridge_cpu);
BANK_MAKER(bank_ridge_bound);
BANK_MAKER(bank_ridge_batch);
BANK_MAKER(bank_product_intensity);
BANK_MAKER(bank_product_limit);
BANK_MAKER(bank_product_matvec);
BANK_MAKER(bank_mlp_flops);
BANK_MAKER(bank_mlp_intensity);
BANK_MAKER(bank_mlp_limit);
BANK_MAKER(bank_attention_intensity);
BANK_MAKER(bank_attention_phase);
BANK_MAKER(bank_attention_batching);

#endif
