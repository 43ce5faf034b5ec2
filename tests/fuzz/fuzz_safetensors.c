/* fuzz_safetensors -- any bytes as a safetensors file, and as an index: tensors that own every byte of the data once,
 * or one clean sentence; never a crash, a leak or a hang. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/model/tensors_index.h"
#include "calc/model/tensors_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what, const char *text)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_safetensors: %s: %s\n", what, text);
    abort();
}

static void check_refusal(enum err_code code, const struct err *e)
{
    require(e->code == code, "the error holds another code than the one returned", e->text);
    require(code == ERR_INPUT || code == ERR_NOMEM, "a code that no file can cause", e->text);
    for (const char *p = e->text; *p; p++)
        require((unsigned char)*p >= ' ' && *p != 0x7f, "a control character of the input is in the message", e->text);
    require(e->text[0] != '\0', "refused without a sentence", "");
}

static void check_tensors(const struct tensor_builder *b, int64_t data_bytes)
{
    int64_t sum = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct tensor *t = &b->tensors[i];
        int64_t elems = 1;
        require(t->type && t->dims >= 0 && t->dims <= TENSOR_DIMS_MAX, "no type or shape", t->name);
        for (int d = 0; d < t->dims; d++) elems *= t->shape[d];
        require(elems == t->elems && t->elems >= 0, "elements are not the shape's", t->name);
        require(t->bytes == elems / t->type->block_elems * t->type->block_bytes, "bytes are not the shape's", t->name);
        require(t->begin_bytes >= 0 && t->begin_bytes + t->bytes <= data_bytes, "outside the data", t->name);
        sum += t->bytes;
    }
    require(sum == data_bytes, "bytes without an owner, or with two", "sum");
}

static void as_file(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct tensor_builder b = {.arena = a, .err = &e, .names = a ? tensor_names_open(a) : NULL};
    const struct tensor_source src = {.name = "fuzz.safetensors", .size_bytes = (int64_t)size, .data = data};
    int64_t header = 0;
    if (b.names) {
        const enum err_code code = safetensors_read(&b, &src, 0, &header);
        if (code != ERR_OK)
            check_refusal(code, &e);
        else
            check_tensors(&b, (int64_t)size - header);
    }
    tensor_builder_close(&b);
    arena_close(a);
}

static void as_index(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct tensor_builder b = {.arena = a, .err = &e, .names = a ? tensor_names_open(a) : NULL};
    struct tensor_index x;
    char *text = malloc(size ? size : 1); /* exactly: the sanitizer sees a byte too many */
    if (text && size) memcpy(text, data, size);
    if (b.names && text) {
        const enum err_code code = tensor_index_parse(&b, "fuzz.index.json", text, size, &x);
        if (code != ERR_OK) check_refusal(code, &e);
        for (size_t i = 0; code == ERR_OK && i < x.n; i++) {
            const char *shard = tensor_names_at(x.shards, x.shard_of[i]);
            require(x.shard_of[i] >= 0 && (size_t)x.shard_of[i] < x.shards_n, "a shard that is not there", "");
            require(*shard && !strchr(shard, '/') && *shard != '.', "a shard outside the directory", shard);
            const char *name = tensor_names_at(b.names, (int32_t)i);
            require(tensor_names_find(b.names, name, strlen(name)) == (int32_t)i, "a name that is not found", name);
        }
    }
    free(text);
    tensor_builder_close(&b);
    arena_close(a);
}

/* The bytes as they are, with a length in front that fits them, and as an index. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_file(data, size);
    uint8_t *framed = malloc(size + 8);
    if (!framed) return 0;
    size_t len = size;
    for (size_t i = 0; i + 1 < size; i++) /* up to the first NUL: what follows is data */
        if (data[i] == 0) {
            len = i;
            break;
        }
    for (size_t i = 0; i < 8; i++) framed[i] = (uint8_t)(len >> (8 * i));
    if (size) memcpy(framed + 8, data, size);
    as_file(framed, size + 8);
    free(framed);
    as_index(data, size);
    return 0;
}
