/* stored -- in which formats a checkpoint keeps its tensors, from torch_dtype and quantization_config. */
#ifndef RIDGE_MODEL_STORED_H
#define RIDGE_MODEL_STORED_H

#include "calc/model/model.h"

/* stored_read -- fill m->weights, m->kv, m->activations, and the formats of m->kinds where a quantisation converts some
 * matrices of a class and not others; root is the file, text its language-model part. What cannot be priced leaves
 * m->weights_unknown set, with what is missing: sizes then need --weights. Errors: ERR_INPUT a wrong type, a number
 * beyond its bounds, a pattern of modules that cannot be read. */
enum err_code stored_read(struct arena *a, const struct json *root, const struct json *text, bool router_fp32,
                          struct model *m, struct err *e);

/* stored_set_all -- every class that inference engines quantise (linear layers and experts, not embedding, head,
 * router, norms) to `name`; a plain float format applies to all. Layers that differed in formats alone are of one kind
 * again. Errors: ERR_USAGE unknown name. */
enum err_code stored_set_all(struct model *m, const char *name, struct err *e);

/* stored_has_cache -- whether m keeps anything of past tokens but states: a layer attends, or keeps its inputs, and a
 * pass is not over the whole sequence. */
bool stored_has_cache(const struct model *m);

/* stored_cache_fp8 -- the format that engines keep m's cache in where it is said to be fp8: of latents of which keys
 * are chosen another layout. MODEL.md "Stored precision", Cache. */
const char *stored_cache_fp8(const struct model *m);

/* stored_cache_note -- a sentence where m's cache is plain fp8 and vLLM and SGLang would keep another of it
 * (stored_cache_fp8), which is larger; NULL: nothing to say. */
const char *stored_cache_note(const struct model *m);

/* stored_set_cache -- the format of m's cache. Errors: ERR_USAGE a model without one, unknown name, a format of weights
 * alone, one whose groups would run across the heads of a layer, which are cached one by one. */
enum err_code stored_set_cache(struct model *m, const char *name, struct err *e);

#endif
