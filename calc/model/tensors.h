/* tensors -- what a checkpoint holds, from its own headers: names, formats, shapes and bytes of every tensor. No guess:
 * bytes and elements are those of the files. Data are never read: a checkpoint of 700 GB takes milliseconds.
 *
 * Formats: safetensors (one file; shards with an index) and GGUF (one file; split in parts). A header that lies --
 * bytes out of range, overlapping, unowned, counts no file could hold, names twice -- is refused with a sentence. */
#ifndef RIDGE_MODEL_TENSORS_H
#define RIDGE_MODEL_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

enum { TENSOR_DIMS_MAX = 8 };

#define TENSOR_UNKNOWN INT64_MIN

/* A storage format: block_elems elements take block_bytes bytes. In GGUF scales are part of the block, so that elements
 * are those of the model; in safetensors packed weights and their scales are tensors of their own. */
struct tensor_type {
    const char *name; /* as its format spells it: "BF16", "Q4_K" */
    int64_t block_elems, block_bytes;
    bool quantised;     /* scales are in the blocks */
    int64_t tail_bytes; /* behind the blocks of a tensor */
};

struct tensor {
    const char *name;
    const struct tensor_type *type; /* NULL when its shard was not there */
    const int64_t *shape;           /* of dims sides, slowest index first, in both formats */
    int64_t elems;                  /* as stored; TENSOR_UNKNOWN without a header */
    int64_t bytes;                  /* TENSOR_UNKNOWN without a header */
    int64_t begin_bytes;            /* place behind the shard's header */
    int shard, dims;
};

struct tensor_shard {
    const char *path;
    int64_t file_bytes;   /* TENSOR_UNKNOWN when it is not there */
    int64_t header_bytes; /* everything before the data */
};

enum tensor_meta_kind { TENSOR_META_TEXT, TENSOR_META_INT, TENSOR_META_REAL, TENSOR_META_BOOL, TENSOR_META_ARRAY };

/* A pair of a header's free metadata. */
struct tensor_meta {
    const char *key;
    enum tensor_meta_kind kind;
    const char *text;    /* TEXT, cut at 64 Ki bytes */
    int64_t integer;     /* INT, BOOL; unsigned ones beyond the range are TENSOR_UNKNOWN */
    double real;         /* REAL */
    int64_t array_n;     /* ARRAY */
    const int64_t *ints; /* ARRAY of at most 4096 integers; else NULL */
};

enum tensor_format { TENSOR_FORMAT_SAFETENSORS, TENSOR_FORMAT_GGUF, TENSOR_FORMAT_INDEX };

struct tensor_set {
    enum tensor_format format;
    bool headers_missing; /* only an index was there: names and shards without shapes and bytes */
    struct tensor *tensors;
    size_t n;
    struct tensor_shard *shards;
    size_t shards_n;
    int64_t total_bytes, total_elems; /* TENSOR_UNKNOWN with headers_missing */
    struct tensor_meta *meta;         /* GGUF: of the first part; safetensors: __metadata__ of the first shard */
    size_t meta_n;
    double index_total_bytes;  /* the index's metadata.total_size; NAN absent, 0 or no number */
    double index_total_params; /* its metadata.total_parameters; NAN absent */
    const char *notes;         /* what does not agree though it does not matter; NULL none */
};

/* tensors_open -- the tensors at path: a .safetensors file, a ....index.json, a .gguf (of a split one any part: all are
 * read), or a directory that holds one of them (the index before single files, safetensors before GGUF).
 *
 * Of an index whose shards are all absent, or hold pickles, names and totals are read (headers_missing). A total_size
 * other than the sum is a note. Errors: ERR_IO cannot read, a directory with none or several of them, a shard or part
 * that is missing (named); ERR_INPUT a header that lies, a file that ends early, tensors that the index names and the
 * shards have not or the other way round (named), a version or type that is not known; ERR_NOMEM.
 * Cost: O(bytes of the headers) in time, O(tensors) in memory.
 * Sources: https://github.com/huggingface/safetensors README "Format"; https://github.com/ggml-org/ggml docs/gguf.md.
 */
enum err_code tensors_open(struct arena *a, const char *path, struct tensor_set *out, struct err *e);

/* tensors_present -- whether tensors_open would look into something at path, and of which format (INDEX: over pickles):
 * the right suffix, or a directory that holds such a file. Reads no file. */
bool tensors_present(const char *path, enum tensor_format *format);

/* What tensors of one type hold together. */
struct tensor_total {
    const struct tensor_type *type; /* NULL: without a header */
    int64_t tensors, elems, bytes;
};

/* tensors_totals -- by type, largest bytes first. Errors: ERR_NOMEM. Cost: O(tensors * types). */
enum err_code tensors_totals(struct arena *a, const struct tensor_set *s, struct tensor_total **out, size_t *out_n,
                             struct err *e);

/* tensors_plain -- every tensor is of a float type of 16 bits or more, so that elements are parameters. */
bool tensors_plain(const struct tensor_set *s);

/* tensors_find -- by name, NULL none. tensors_meta -- by key, NULL none. Cost: O(n). */
const struct tensor *tensors_find(const struct tensor_set *s, const char *name);
const struct tensor_meta *tensors_meta(const struct tensor_set *s, const char *key);

#endif
