/* checkpoint -- what the tensors of a checkpoint say about a model; private to calc/model and to the fuzz targets. */
#ifndef RIDGE_MODEL_CHECKPOINT_H
#define RIDGE_MODEL_CHECKPOINT_H

#include "calc/model/model.h"
#include "calc/model/tensors.h"

/* checkpoint_stored -- fill m->stored_*: totals of the set, of an index alone what it says; its notes join m's. Errors:
 * ERR_NOMEM. */
enum err_code checkpoint_stored(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e);

/* checkpoint_beside -- the same of the safetensors, index or GGUF in the directory of a config.json, when there are
 * any. What cannot be read, or lies, becomes a note: the config stands without it. Errors: ERR_NOMEM. */
enum err_code checkpoint_beside(struct arena *a, const char *config_path, struct model *m, struct err *e);

/* checkpoint_widths -- where a matrix of a layer has other sides than m's (heads, latents, MLP, experts), a note names
 * the first one and how many more there are. Packed ones are left out: their sides are not those of their elements.
 * Errors: ERR_NOMEM. Cost: O(tensors * layers). */
enum err_code checkpoint_widths(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e);

/* checkpoint_names -- where the matrices of a safetensors checkpoint are not those of m, a note: none of them is, or
 * some stand in layers in which m has none of that name, or that m has not. Errors: ERR_NOMEM. Cost: O(tensors *
 * kinds).
 */
enum err_code checkpoint_names(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e);

/* gguf_config -- the metadata of a GGUF file as a config.json that model_parse takes: keys of general.architecture in
 * their Hugging Face spelling, the vocabulary from the embedding's rows, biases and a tied head from which tensors are
 * there. Errors: ERR_INPUT an architecture without a family, a key or tensor that is missing, sides that change from
 * layer to layer; ERR_NOMEM. Source of the keys: https://github.com/ggml-org/llama.cpp gguf-py/gguf/constants.py. */
enum err_code gguf_config(struct arena *a, const struct tensor_set *s, const char *name, struct json *out,
                          struct err *e);

/* gguf_formats -- m->weights from the tensors: the mean bits of each weight class, so that a class as large as the
 * model's weighs what its tensors do. Errors: ERR_NOMEM. */
enum err_code gguf_formats(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e);

#endif
