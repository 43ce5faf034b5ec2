/* stored -- in which formats a checkpoint keeps its tensors, from torch_dtype and quantization_config. */
#ifndef RIDGE_MODEL_STORED_H
#define RIDGE_MODEL_STORED_H

#include "calc/model/model.h"

/* stored_read -- fill m->weights, m->kv, m->activations; root is the file, text its language-model part.
 * A method that is not known leaves m->weights_unknown set: sizes then need --weights. Errors: ERR_INPUT. */
enum err_code stored_read(struct arena *a, const struct json *root, const struct json *text, struct model *m,
                          struct err *e);

/* stored_set_all -- every class that inference engines quantise (linear layers and experts, not embedding, head,
 * router, norms) to `name`; a plain float format applies to all. Errors: ERR_USAGE unknown name. */
enum err_code stored_set_all(struct model *m, const char *name, struct err *e);

#endif
