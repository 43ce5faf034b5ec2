/* tensors_read -- what the readers of headers share; private to calc/model and to the fuzz targets. */
#ifndef RIDGE_MODEL_TENSORS_READ_H
#define RIDGE_MODEL_TENSORS_READ_H

#include "calc/model/tensors.h"

enum {
    TENSOR_HEADER_MAX_BYTES = 100000000,
    /* the limit of the safetensors library */ /* not a unit */
    TENSOR_NAME_MAX = 4096,
    TENSORS_MAX = 1 << 21,
    TENSOR_SHARDS_MAX = 1 << 16,
};

/* Where bytes come from: a file read in place, or a buffer. */
struct tensor_source {
    const char *name; /* what messages call it, clean */
    int64_t size_bytes;
    int fd;                    /* when data is NULL */
    const unsigned char *data; /* size_bytes of them, or NULL */
};

/* tensor_source_open -- a regular file; the caller closes fd. Errors: ERR_IO (missing, no permission, no file). */
enum err_code tensor_source_open(struct arena *a, const char *path, struct tensor_source *out, struct err *e);

/* tensor_source_read -- n bytes at `at`, which lie within the file. Errors: ERR_IO, also when it shrank meanwhile. */
enum err_code tensor_source_read(const struct tensor_source *s, int64_t at, void *buf, size_t n, struct err *e);

/* Strings and the number each was given in order of arrival. */
struct tensor_names;

/* tensor_names_open -- empty, freed with the arena; NULL without memory. */
struct tensor_names *tensor_names_open(struct arena *a);

/* tensor_names_add -- the number of a string (copied to the arena); *fresh whether it is new.
 * Errors: ERR_INPUT more than 2^31 or names made to collide, ERR_NOMEM. tensor_names_find -- or -1. tensor_names_at --
 * by number. */
enum err_code tensor_names_add(struct tensor_names *t, const char *s, size_t len, int32_t *number, bool *fresh,
                               struct err *e);
int32_t tensor_names_find(const struct tensor_names *t, const char *s, size_t len);
const char *tensor_names_at(const struct tensor_names *t, int32_t number);

/* A set while it is read. */
struct tensor_builder {
    struct arena *arena;
    struct tensor *tensors; /* malloc; tensor i has name number i */
    size_t n, room;
    struct tensor_names *names;
    struct tensor_meta *meta; /* arena; doubled when full */
    size_t meta_n, meta_room;
    struct err *err;
};

/* tensor_builder_add -- a new tensor of that name with its elements and bytes computed from type and shape. name_len
 * bytes are copied. Errors: ERR_INPUT (source named) name twice, empty or too long, too many, product beyond 64 bits,
 * no whole number of blocks; ERR_NOMEM. */
enum err_code tensor_builder_add(struct tensor_builder *b, const struct tensor_source *src, const char *name,
                                 size_t name_len, const struct tensor *t);

/* tensor_builder_meta -- room for one more pair. Errors: ERR_NOMEM. */
enum err_code tensor_builder_meta(struct tensor_builder *b, const struct tensor_meta *pair);

/* tensor_builder_check_ranges -- of tensors first..n-1 of one shard: within data_bytes, no two overlapping; with dense
 * also no byte of data_bytes without an owner. Errors: ERR_INPUT, ERR_NOMEM. Cost: O(n log n), O(n) when in order. */
enum err_code tensor_builder_check_ranges(struct tensor_builder *b, const struct tensor_source *src, size_t first,
                                          int64_t data_bytes, bool dense);

/* tensor_builder_close -- free what is not the arena's, on failure. */
void tensor_builder_close(struct tensor_builder *b);

/* safetensors_read, gguf_read -- one file's header into the builder as shard `shard`; *header_bytes all before the
 * data. Errors: ERR_INPUT with a sentence, ERR_IO, ERR_NOMEM. */
enum err_code safetensors_read(struct tensor_builder *b, const struct tensor_source *src, int shard,
                               int64_t *header_bytes);
enum err_code gguf_read(struct tensor_builder *b, const struct tensor_source *src, int shard, int64_t *header_bytes);

/* tensor_clean -- a name of a file for messages, at most 80 bytes. */
const char *tensor_clean(char out[84], const char *s, size_t len);

/* safetensors_type -- by name; NULL unknown. gguf_type -- by number; NULL unknown. */
const struct tensor_type *safetensors_type(const char *name, size_t len);
const struct tensor_type *gguf_type(uint32_t number);

#endif
