/* bank_arch -- what the files of the set on architectures share: its makers, models of several kinds of layers, and
 * counts of them. */
#ifndef RIDGE_LEARN_BANK_ARCH_H
#define RIDGE_LEARN_BANK_ARCH_H

#include "calc/learn/bank_decoder.h"

/* bank_arch_split -- a copy of a model whose layers are of two kinds: `first` of them as its first kind is, the rest a
 * copy of it that the caller changes (kinds[1]). Errors: ERR_NOMEM. */
enum err_code bank_arch_split(struct exercise_maker *m, const struct model *of, int64_t first, struct model *out,
                              struct err *e);

/* bank_arch_state -- bytes of state that a sequence has, whatever its length. Errors: as cost_cache. */
enum err_code bank_arch_state(struct exercise_maker *m, const struct model *d, double *out, struct err *e);

/* bank_arch_parameters -- as the lecture counts. Errors: as cost_parameters. */
enum err_code bank_arch_parameters(struct exercise_maker *m, const struct model *d, struct cost_parameters *out,
                                   struct err *e);

/* bank_arch_pass -- the operators of a pass of a model, with its numbers where bound. Errors: as cost_build and
 * cost_bind. */
enum err_code bank_arch_pass(struct exercise_maker *m, const struct model *d, const struct cost_conventions *v,
                             const struct cost_pass *pass, bool bound, struct cost_ops *out, struct err *e);

/* Makers, as struct exercise wants them. */
#define BANK_MAKER(name) enum err_code name(struct exercise_maker *m, struct exercise_question *q, struct err *e)
BANK_MAKER(bank_recurrent_crossing);
BANK_MAKER(bank_recurrent_state);
BANK_MAKER(bank_recurrent_hybrid);
BANK_MAKER(bank_experts_touched);
BANK_MAKER(bank_experts_active);
BANK_MAKER(bank_experts_bytes);
BANK_MAKER(bank_formats_int4);
BANK_MAKER(bank_formats_outliers);
BANK_MAKER(bank_formats_cache);
BANK_MAKER(bank_formats_pruned);
BANK_MAKER(bank_passes_weights);
BANK_MAKER(bank_passes_flops);

#endif
