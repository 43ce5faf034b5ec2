/* tensors_index -- model.safetensors.index.json: which shard holds which tensor; private to calc/model and to the fuzz
 * targets. */
#ifndef RIDGE_MODEL_TENSORS_INDEX_H
#define RIDGE_MODEL_TENSORS_INDEX_H

#include "calc/model/tensors_read.h"

struct tensor_index {
    const char *file;      /* for messages */
    const char *directory; /* "" or ending in a slash */
    struct tensor_names *shards;
    int32_t *shard_of; /* by number of name among the builder's */
    size_t n, shards_n;
    double total_bytes, total_params; /* NAN absent, 0 or no number */
    bool escapes;                     /* names that JSON does not spell as they are */
    bool pickles;                     /* shards that are no safetensors files */
};

/* tensor_index_read -- the index at path. tensor_index_parse -- the same from its text, which becomes the names: NULs
 * are written behind them, and it outlives the builder. Bytes behind the object are left alone. Errors: ERR_IO,
 * ERR_INPUT no index, a tensor twice, a shard's name that leaves the directory; ERR_NOMEM. Cost: O(bytes). */
enum err_code tensor_index_read(struct tensor_builder *b, const char *path, struct tensor_index *out);
enum err_code tensor_index_parse(struct tensor_builder *b, const char *name, char *text, size_t len,
                                 struct tensor_index *out);

/* tensor_index_check -- that the shards hold exactly what the index says, each where it says. Errors: ERR_INPUT naming
 * the tensors, as many as there is room for. */
enum err_code tensor_index_check(const struct tensor_builder *b, const struct tensor_index *x);

#endif
