/* stored_tensors -- the quantisation that a safetensors checkpoint is of, by what its tensors are and what stands
 * beside them; private to calc/model. */
#ifndef RIDGE_MODEL_STORED_TENSORS_H
#define RIDGE_MODEL_STORED_TENSORS_H

#include "calc/model/formats.h"
#include "calc/model/tensors.h"

/* stored_tensors_plan -- one rule for every matrix of the language model that is not of the commonest quantised format,
 * which becomes plan->linear. Known by their tensors:
 *
 *     weight in FP8 with weight_scale_inv or weight_scale     tiles, rows or the whole matrix, by the scale's shape
 *     weight in I8 with SCB, or with weight_scale             bitsandbytes, compressed-tensors
 *     weight in U8 with weight.absmax                         bitsandbytes, 4 bits; nested_absmax: scales twice
 *     weight or weight_packed in U8 with FP8 or U8 scales     nvfp4 (16 elements a scale), mxfp4 (32)
 *     weight in U8 with weight_scale of one float             ternary (BitNet)
 *     qweight with qzeros and scales                          AWQ (packed along rows), GPTQ (along columns)
 *     weight_packed in I32 with weight_scale                  compressed-tensors, bits by the model's width
 *     ..._blocks with ..._scales                              mxfp4 experts in one tensor
 *
 * plan->linear NULL: floats alone (*floats true), or packed in a way that is not among these (*floats false). Errors:
 * ERR_NOMEM; ERR_INPUT a name that no pattern can be. Cost: O(tensors). Sources: MODEL.md "Stored precision". */
enum err_code stored_tensors_plan(struct arena *a, const struct tensor_set *s, const struct model *m,
                                  struct format_plan *plan, bool *floats, struct err *e);

/* stored_tensors_apply -- where the tensors are of another quantisation than m, some matrices of another format than m
 * says, or m's is not known, m's formats become theirs; *was what the config said (its format's name, or why it could
 * not be priced), *is the commonest of the tensors. NULL: they agree, or the tensors do not tell. m->weights_unknown:
 * the tensors are quantised, the config says floats, and which matrices they are is not known. Errors: as
 * stored_tensors_plan and format_plan_apply. */
enum err_code stored_tensors_apply(struct arena *a, const struct tensor_set *s, struct model *m, const char **was,
                                   const char **is, struct err *e);

#endif
