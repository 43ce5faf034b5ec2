/* bank_makers -- makers that stand in another file than the rows of their set, one prototype each: bank_cache.c for
 * bank_memory.c, bank_flops.c for bank_time.c. All as `make` of struct exercise. */
#ifndef RIDGE_LEARN_BANK_MAKERS_H
#define RIDGE_LEARN_BANK_MAKERS_H

#include "calc/learn/bank_decoder.h"

enum err_code bank_cache_formula(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_token(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_batch(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_of_total(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_without(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_gqa_saving(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_latent(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_window(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_equals_weights(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_cache_largest_batch(struct exercise_maker *m, struct exercise_question *q, struct err *e);

enum err_code bank_flops_mlp_bound(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_flops_prefill_time(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_flops_forward(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_flops_attention_share(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_flops_training_days(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_flops_training_memory(struct exercise_maker *m, struct exercise_question *q, struct err *e);

#endif
