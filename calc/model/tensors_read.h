/* tensors_read -- what the readers of headers share; private to calc/model and to the fuzz targets. */
#ifndef RIDGE_MODEL_TENSORS_READ_H
#define RIDGE_MODEL_TENSORS_READ_H

#include "calc/base/json_scan.h"
#include "calc/model/tensors.h"

enum {
    TENSOR_HEADER_MAX_BYTES = 100000000,
    /* the limit of the safetensors library */ /* not a unit */
    TENSOR_NAME_MAX = 4096,
    TENSORS_MAX = 1 << 21,
    TENSOR_SHARDS_MAX = 1 << 16,
    TENSOR_SHAPES_KEPT = 64,
    TENSOR_ENTRY_BYTES = 72, /* few entries of an index are shorter: for first guesses of their number */
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

/* tensor_names_open -- empty, freed with the arena; NULL without memory. tensor_names_reserve -- room for n names;
 * false without memory. */
struct tensor_names *tensor_names_open(struct arena *a);
bool tensor_names_reserve(struct tensor_names *t, size_t n);

/* tensor_names_add -- the number of a string (copied to the arena); *fresh whether it is new.
 * Errors: ERR_INPUT more than 2^21 or names made to collide, ERR_NOMEM. tensor_names_keep -- the same for a string that
 * outlives the set and has a NUL behind it, not copied, a while after tensor_names_expect has begun to fetch what it
 * needs, and said its hash. tensor_names_find -- or -1; _near looks first at the one of
 * number guess. tensor_names_at -- by number. Cost: O(len). */
enum err_code tensor_names_add(struct tensor_names *t, const char *s, size_t len, int32_t *number, bool *fresh,
                               struct err *e);
uint32_t tensor_names_expect(const struct tensor_names *t, const char *s, size_t len);
enum err_code tensor_names_keep(struct tensor_names *t, const char *s, size_t len, uint32_t hash, bool *fresh,
                                struct err *e);
int32_t tensor_names_find(const struct tensor_names *t, const char *s, size_t len);
int32_t tensor_names_find_near(const struct tensor_names *t, const char *s, size_t len, int32_t guess);
const char *tensor_names_at(const struct tensor_names *t, int32_t number);

/* A set while it is read. */
struct tensor_builder {
    struct arena *arena;
    struct tensor *tensors; /* doubled when full */
    size_t n, room;
    struct tensor_names *names;
    /* Of an index, whose names are the first expected_n: which shard should hold each, and which were read. */
    const int32_t *shard_of; /* NULL: no index */
    bool *seen, plain;
    size_t expected_n, strangers; /* tensors that the index does not have, or not there */
    int32_t next;                 /* the name that may come next */
    struct tensor_shape {
        const int64_t *side;
        int dims;
    } shapes[TENSOR_SHAPES_KEPT]; /* those met lately, by a hash: few are many tensors' */
    char *text;                   /* malloc; one header after the other */
    size_t text_room;
    struct tensor_meta *meta; /* arena; doubled when full */
    size_t meta_n, meta_room;
    struct err *err;
};

/* tensor_builder_expect -- an index names n tensors, numbers 0 to n-1 of names; shard_of outlives the builder; plain:
 * JSON spells all of them as they are. Errors: ERR_NOMEM. tensor_builder_next -- the plain name that may come next,
 * empty when none is expected. */
enum err_code tensor_builder_expect(struct tensor_builder *b, const int32_t *shard_of, size_t n, bool plain);
struct json_text tensor_builder_next(const struct tensor_builder *b);

/* tensor_builder_text -- room for n bytes of a header, until the next one's. Errors: ERR_NOMEM. */
enum err_code tensor_builder_text(struct tensor_builder *b, size_t n, char **text);

/* tensor_builder_add -- a new tensor of that name with its elements and bytes computed from type and shape. name_len
 * bytes and the shape are copied. Errors: ERR_INPUT (source named) name twice, empty or too long, too many, product
 * beyond 64 bits, no whole number of blocks; ERR_NOMEM. */
enum err_code tensor_builder_add(struct tensor_builder *b, const struct tensor_source *src, const char *name,
                                 size_t name_len, const struct tensor *t);

/* tensor_builder_meta -- room for one more pair. Errors: ERR_NOMEM. */
enum err_code tensor_builder_meta(struct tensor_builder *b, const struct tensor_meta *pair);

/* tensor_builder_check_ranges -- of tensors first..n-1 of one shard: within data_bytes, no two overlapping; with dense
 * also no byte of data_bytes without an owner. Errors: ERR_INPUT, ERR_NOMEM. Cost: O(n log n), O(n) when in order. */
enum err_code tensor_builder_check_ranges(struct tensor_builder *b, const struct tensor_source *src, size_t first,
                                          int64_t data_bytes, bool dense);

/* tensor_builder_close -- free what is not the arena's. */
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
