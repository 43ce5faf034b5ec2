/* fuzz_gguf -- any bytes as a GGUF file: tensors within the data, none over another, or one clean sentence; never a
 * crash, a leak or a hang. What is read as a model is counted, or refused as cleanly. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/model/checkpoint.h"
#include "calc/model/tensors_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what, const char *text)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_gguf: %s: %s\n", what, text);
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
        require(t->type && t->dims >= 0 && t->dims <= 4, "no type or shape", t->name);
        require(t->elems % t->type->block_elems == 0, "a part of a block", t->name);
        require(t->bytes == t->elems / t->type->block_elems * t->type->block_bytes, "bytes are not the shape's",
                t->name);
        require(t->begin_bytes >= 0 && t->begin_bytes + t->bytes <= data_bytes, "outside the data", t->name);
        sum += t->bytes;
    }
    require(sum <= data_bytes, "bytes with two owners", "sum");
}

/* A set that was read is a model, or is refused with a sentence. */
static void as_model(struct arena *a, const struct tensor_builder *b)
{
    struct tensor_set s = {.format = TENSOR_FORMAT_GGUF, .tensors = b->tensors, .n = b->n};
    struct err e = {.code = ERR_OK};
    struct json j;
    struct model m;
    s.meta = b->meta;
    s.meta_n = b->meta_n;
    enum err_code code = gguf_config(a, &s, "fuzz.gguf", &j, &e);
    if (code == ERR_OK) code = model_parse(a, &j, &m, &e);
    if (code == ERR_OK) code = gguf_formats(a, &s, &m, &e);
    if (code != ERR_OK) {
        check_refusal(code, &e);
        return;
    }
    require(m.layers >= 1 && m.hidden >= 1 && m.vocab >= 1, "a model without layers, width or vocabulary", m.family);
    for (size_t c = 0; c < WEIGHT_CLASSES; c++)
        require(m.weights[c].bits > 0 && m.weights[c].name, "a class of weights without a format", m.family);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct tensor_builder b = {.arena = a, .err = &e, .names = a ? tensor_names_open(a) : NULL};
    const struct tensor_source src = {.name = "fuzz.gguf", .size_bytes = (int64_t)size, .data = data};
    int64_t header = 0;
    if (b.names) {
        const enum err_code code = gguf_read(&b, &src, 0, &header);
        if (code != ERR_OK)
            check_refusal(code, &e);
        else
            check_tensors(&b, (int64_t)size - header);
        if (code == ERR_OK) as_model(a, &b);
    }
    tensor_builder_close(&b);
    arena_close(a);
    return 0;
}
