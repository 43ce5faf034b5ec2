/* reader -- what the steps of reading one config.json share; private to calc/model. */
#ifndef RIDGE_MODEL_READER_H
#define RIDGE_MODEL_READER_H

#include "calc/model/family.h"
#include "calc/model/model.h"

enum { LAYERS_MAX = 4096, EXPERTS_MAX = 1 << 16 };

/* Everything the rules look at while one file is read. */
struct reader {
    struct arena *arena;
    const struct json *root;
    struct json text; /* the language model's part: root, or text_config and its like */
    const struct family *family;
    struct model *m;
    struct err *e;
};

/* reader_text_part -- the language model's part of a file: text_config or its like when there is one, else root.
 * Errors: ERR_INPUT such a member that is no object. */
enum err_code reader_text_part(const struct json *root, struct json *out, struct err *e);

/* reader_dim -- a quantity of the file, else the family's class default, else fallback; -1 as fallback makes it
 * required. */
enum err_code reader_dim(struct reader *r, enum dim d, int64_t lo, int64_t fallback, int64_t *out);

/* reader_flag -- a boolean of an object, else fallback. */
enum err_code reader_flag(struct reader *r, const struct json *where, const char *key, bool fallback, bool *out);

/* reader_layers -- fill r->m->kinds: blocks as the family builds them, and which layer has which. */
enum err_code reader_layers(struct reader *r);

#endif
