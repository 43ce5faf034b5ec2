/* stored_methods -- the quantisation methods, one reader each; private to calc/model.
 *
 * Each takes the object that describes the quantisation and fills a plan, or sets m->weights_unknown to a sentence
 * without its subject ("stored ..."). m->weights are all floats when they are called. Errors: ERR_INPUT wrong types and
 * numbers beyond their bounds; ERR_NOMEM. */
#ifndef RIDGE_MODEL_STORED_METHODS_H
#define RIDGE_MODEL_STORED_METHODS_H

#include "calc/model/formats.h"

struct stored {
    struct arena *arena;
    struct model *m;
    struct format_plan plan;
    struct err *e;
};

enum err_code stored_fp8(struct stored *s, const struct json *q);      /* fp8, by tensor or by tiles */
enum err_code stored_fp8_rows(struct stored *s, const struct json *q); /* fbgemm_fp8 */
enum err_code stored_mxfp8(struct stored *s, const struct json *q);
enum err_code stored_mxfp4(struct stored *s, const struct json *q); /* experts alone */
enum err_code stored_awq(struct stored *s, const struct json *q);
enum err_code stored_gptq(struct stored *s, const struct json *q);
enum err_code stored_bitsandbytes(struct stored *s, const struct json *q);
enum err_code stored_expert_dtype(struct stored *s, const struct json *j); /* expert_dtype (DeepSeek-V4) */
enum err_code stored_bitnet(struct stored *s, const struct json *q);
enum err_code stored_mlx(struct stored *s, const struct json *q); /* has no quant_method */

/* stored_mlx_part -- whether a member of MLX's object is the format of a module, which has dots in its name, but for
 * one at the top of the model (lm_head). */
bool stored_mlx_part(const struct json *member);

enum err_code stored_compressed(struct stored *s, const struct json *q); /* compressed-tensors */
enum err_code stored_modelopt(struct stored *s, const struct json *q);   /* also hf_quant_config.json */
enum err_code stored_auto_round(struct stored *s, const struct json *q);
enum err_code stored_torchao(struct stored *s, const struct json *q);
enum err_code stored_hqq(struct stored *s, const struct json *q);
enum err_code stored_quark(struct stored *s, const struct json *q);

/* What they share. stored_unknown -- set weights_unknown, printf-like, with a text of the file cleaned as its %s.
 * stored_keep -- rules for the lists of modules that stay floats. stored_named -- a format by name, in the arena.
 * stored_cache_scheme -- m->kv from a kv_cache_scheme of compressed-tensors. */
enum err_code stored_unknown(struct stored *s, const char *format, const char *text);
enum err_code stored_keep(struct stored *s, const struct json *q);
enum err_code stored_named(struct stored *s, const char *name, struct dtype **out);
enum err_code stored_cache_scheme(struct stored *s, const struct json *q);

#endif
