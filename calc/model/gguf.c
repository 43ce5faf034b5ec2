/* gguf -- magic, version, counts, metadata pairs, tensor table, padding, data; all little-endian, read through a
 * window. Source: https://github.com/ggml-org/ggml docs/gguf.md; types ggml/include/ggml.h, block sizes
 * ggml/src/ggml-common.h. */
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/tensors_read.h"

/* Block sizes: q4_0 is a 16-bit scale and 32 nibbles, 2 + 16; the k-quants are super-blocks of 256, for example q4_K
 * two 16-bit scales, 12 bytes of 6-bit ones and 128 of nibbles; mxfp4 an 8-bit exponent and 32 nibbles. Numbers without
 * a row (4, 5, 31..33, 37, 38) were taken out of the format. i2_s is BitNet's own: four numbers of two bits a byte, and
 * 32 bytes with the scale of the tensor behind them (microsoft/BitNet, ggml.c). */
static const struct {
    uint32_t number;
    struct tensor_type type;
} TYPES[] = {
    {0, {"F32", 1, 4, false, 0}},        {1, {"F16", 1, 2, false, 0}},        {30, {"BF16", 1, 2, false, 0}},
    {28, {"F64", 1, 8, false, 0}},       {24, {"I8", 1, 1, false, 0}},        {25, {"I16", 1, 2, false, 0}},
    {26, {"I32", 1, 4, false, 0}},       {27, {"I64", 1, 8, false, 0}},       {2, {"Q4_0", 32, 18, true, 0}},
    {3, {"Q4_1", 32, 20, true, 0}},      {6, {"Q5_0", 32, 22, true, 0}},      {7, {"Q5_1", 32, 24, true, 0}},
    {8, {"Q8_0", 32, 34, true, 0}},      {9, {"Q8_1", 32, 36, true, 0}},      {10, {"Q2_K", 256, 84, true, 0}},
    {11, {"Q3_K", 256, 110, true, 0}},   {12, {"Q4_K", 256, 144, true, 0}},   {13, {"Q5_K", 256, 176, true, 0}},
    {14, {"Q6_K", 256, 210, true, 0}},   {15, {"Q8_K", 256, 292, true, 0}},   {16, {"IQ2_XXS", 256, 66, true, 0}},
    {17, {"IQ2_XS", 256, 74, true, 0}},  {18, {"IQ3_XXS", 256, 98, true, 0}}, {19, {"IQ1_S", 256, 50, true, 0}},
    {20, {"IQ4_NL", 32, 18, true, 0}},   {21, {"IQ3_S", 256, 110, true, 0}},  {22, {"IQ2_S", 256, 82, true, 0}},
    {23, {"IQ4_XS", 256, 136, true, 0}}, {29, {"IQ1_M", 256, 56, true, 0}},   {34, {"TQ1_0", 256, 54, true, 0}},
    {35, {"TQ2_0", 256, 66, true, 0}},   {39, {"MXFP4", 32, 17, true, 0}},    {40, {"NVFP4", 64, 36, true, 0}},
    {36, {"I2_S", 4, 1, true, 32}},
};

const struct tensor_type *gguf_type(uint32_t number)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (TYPES[i].number == number) return &TYPES[i].type;
    return NULL;
}

enum { WINDOW_BYTES = 64 * 1024, NEST_MAX = 4, INTS_MAX = 4096, TEXT_MAX = 1 << 16, DIMS_MAX = 4 }; /* not a unit */

/* Where the reading stands. */
struct gguf {
    struct tensor_builder *b;
    const struct tensor_source *src;
    struct err *e;
    int64_t at, window_at;
    size_t window_n;
    bool keep_meta;
    unsigned char *window;
};

static int64_t left(const struct gguf *g) { return g->src->size_bytes - g->at; }

static enum err_code ends(const struct gguf *g, const char *what)
{
    return err_set(g->e, ERR_INPUT, "%s: ends at byte %lld, within %s: an incomplete download, or a header that lies",
                   g->src->name, (long long)g->src->size_bytes, what);
}

/* n bytes (at most a window) at the place of the reading, which moves on. */
static enum err_code take(struct gguf *g, size_t n, const char *what, const unsigned char **out)
{
    if (left(g) < (int64_t)n) return ends(g, what);
    if (g->at < g->window_at || g->at + (int64_t)n > g->window_at + (int64_t)g->window_n) {
        const int64_t rest = left(g);
        g->window_at = g->at;
        g->window_n = 0;
        const size_t want = rest < WINDOW_BYTES ? (size_t)rest : WINDOW_BYTES;
        TRY(tensor_source_read(g->src, g->at, g->window, want, g->e));
        g->window_n = want;
    }
    *out = g->window + (g->at - g->window_at);
    g->at += (int64_t)n;
    return ERR_OK;
}

static enum err_code take_uint(struct gguf *g, size_t n, const char *what, uint64_t *out)
{
    const unsigned char *p;
    uint64_t v = 0;
    TRY(take(g, n, what, &p));
    for (size_t i = n; i-- > 0;) v = v << 8 | p[i];
    *out = v;
    return ERR_OK;
}

/* A length in bytes or elements of at least `each` bytes: what is left of the file bounds it. */
static enum err_code take_count(struct gguf *g, int64_t each, const char *what, int64_t *out)
{
    uint64_t n;
    TRY(take_uint(g, 8, what, &n));
    if (n > (uint64_t)(left(g) / each))
        return err_set(g->e, ERR_INPUT, "%s: %llu %s, more than the rest of the file can hold", g->src->name,
                       (unsigned long long)n, what);
    *out = (int64_t)n;
    return ERR_OK;
}

/* A string's bytes, its first cap of them in the arena. */
static enum err_code take_string(struct gguf *g, int64_t cap, const char *what, const char **out, int64_t *len)
{
    TRY(take_count(g, 1, what, len));
    const int64_t end = g->at + *len, kept = *len < cap ? *len : cap;
    char *s = arena_alloc(g->b->arena, (size_t)kept + 1);
    if (!s) return err_nomem(g->e);
    for (int64_t done = 0; done < kept;) {
        const unsigned char *p;
        const int64_t n = kept - done < WINDOW_BYTES ? kept - done : WINDOW_BYTES;
        TRY(take(g, (size_t)n, what, &p));
        memcpy(s + done, p, (size_t)n);
        done += n;
    }
    g->at = end;
    *out = s;
    return ERR_OK;
}

/* ---- metadata ---- */

enum gguf_value {
    VALUE_U8,
    VALUE_I8,
    VALUE_U16,
    VALUE_I16,
    VALUE_U32,
    VALUE_I32,
    VALUE_F32,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_ARRAY,
    VALUE_U64,
    VALUE_I64,
    VALUE_F64,
    VALUES_N
};

static const unsigned char VALUE_BYTES[VALUES_N] = {
    [VALUE_U8] = 1,  [VALUE_I8] = 1,   [VALUE_U16] = 2, [VALUE_I16] = 2, [VALUE_U32] = 4, [VALUE_I32] = 4,
    [VALUE_F32] = 4, [VALUE_BOOL] = 1, [VALUE_U64] = 8, [VALUE_I64] = 8, [VALUE_F64] = 8};

static bool is_signed(uint32_t t) { return t == VALUE_I8 || t == VALUE_I16 || t == VALUE_I32 || t == VALUE_I64; }

static int64_t as_integer(uint32_t type, uint64_t v)
{
    const unsigned bits = 8u * VALUE_BYTES[type];
    if (is_signed(type)) {
        if (bits < 64 && v >> (bits - 1)) v |= ~UINT64_C(0) << bits;
        int64_t s;
        memcpy(&s, &v, sizeof s);
        return s;
    }
    return v > (uint64_t)INT64_MAX ? TENSOR_UNKNOWN : (int64_t)v;
}

static double as_real(uint32_t type, uint64_t v)
{
    if (type == VALUE_F32) {
        const uint32_t bits = (uint32_t)v;
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    double d;
    memcpy(&d, &v, sizeof d);
    return d;
}

static enum err_code take_type(struct gguf *g, const char *key, uint32_t *type)
{
    uint64_t t;
    char clean[84];
    TRY(take_uint(g, 4, "a metadata pair", &t));
    if (t >= VALUES_N)
        return err_set(g->e, ERR_INPUT, "%s: metadata '%s' is of type %llu, which GGUF has not", g->src->name,
                       tensor_clean(clean, key, strlen(key)), (unsigned long long)t);
    *type = (uint32_t)t;
    return ERR_OK;
}

/* Elements of a list are passed over; integers of a short one are kept. */
static enum err_code take_array(struct gguf *g, int depth, const char *key, struct tensor_meta *out)
{
    uint32_t type;
    char clean[84];
    int64_t n, len;
    if (depth > NEST_MAX)
        return err_set(g->e, ERR_INPUT, "%s: metadata '%s': lists nested deeper than %d", g->src->name,
                       tensor_clean(clean, key, strlen(key)), (int)NEST_MAX);
    TRY(take_type(g, key, &type));
    const int64_t each = type == VALUE_STRING ? 8 : type == VALUE_ARRAY ? 12 : VALUE_BYTES[type];
    TRY(take_count(g, each, "elements of a metadata list", &n));
    out->kind = TENSOR_META_ARRAY;
    out->array_n = n;
    if (type == VALUE_STRING || type == VALUE_ARRAY) {
        for (int64_t i = 0; i < n; i++) {
            struct tensor_meta inner;
            if (type == VALUE_ARRAY) {
                TRY(take_array(g, depth + 1, key, &inner));
            } else {
                TRY(take_count(g, 1, "bytes of a string", &len));
                g->at += len;
            }
        }
        return ERR_OK;
    }
    if (type == VALUE_F32 || type == VALUE_F64 || n > INTS_MAX || !g->keep_meta || depth > 1) {
        g->at += n * each;
        return ERR_OK;
    }
    int64_t *ints = arena_array(g->b->arena, n ? (size_t)n : 1, sizeof *ints);
    if (!ints) return err_nomem(g->e);
    for (int64_t i = 0; i < n; i++) {
        uint64_t v;
        TRY(take_uint(g, (size_t)each, "a metadata list", &v));
        ints[i] = as_integer(type, v);
    }
    out->ints = ints;
    return ERR_OK;
}

static enum err_code take_scalar(struct gguf *g, uint32_t type, struct tensor_meta *out)
{
    uint64_t v;
    char clean[84];
    TRY(take_uint(g, VALUE_BYTES[type], "a metadata value", &v));
    if (type == VALUE_F32 || type == VALUE_F64) {
        out->kind = TENSOR_META_REAL;
        out->real = as_real(type, v);
        return ERR_OK;
    }
    if (type == VALUE_BOOL && v > 1)
        return err_set(g->e, ERR_INPUT, "%s: metadata '%s' is %llu, wanted 0 or 1", g->src->name,
                       tensor_clean(clean, out->key, strlen(out->key)), (unsigned long long)v);
    out->kind = type == VALUE_BOOL ? TENSOR_META_BOOL : TENSOR_META_INT;
    out->integer = as_integer(type, v);
    return ERR_OK;
}

static enum err_code take_pair(struct gguf *g, struct tensor_names *keys)
{
    struct tensor_meta m = {0};
    int64_t len;
    uint32_t type;
    int32_t number;
    bool fresh;
    char clean[84];
    TRY(take_string(g, UINT16_MAX, "bytes of a metadata key", &m.key, &len));
    if (len == 0 || len > UINT16_MAX || strlen(m.key) != (size_t)len)
        return err_set(g->e, ERR_INPUT, "%s: a metadata key of %lld bytes, wanted 1 to 65535 without NUL", g->src->name,
                       (long long)len);
    if (tensor_names_add(keys, m.key, (size_t)len, &number, &fresh, g->e) != ERR_OK)
        return err_prepend(g->e, "%s: metadata: ", g->src->name);
    if (!fresh)
        return err_set(g->e, ERR_INPUT, "%s: metadata '%s' is there twice", g->src->name,
                       tensor_clean(clean, m.key, (size_t)len));
    TRY(take_type(g, m.key, &type));
    if (type == VALUE_ARRAY) {
        TRY(take_array(g, 1, m.key, &m));
    } else if (type == VALUE_STRING) {
        m.kind = TENSOR_META_TEXT;
        TRY(take_string(g, g->keep_meta ? TEXT_MAX : 0, "bytes of a metadata string", &m.text, &len));
    } else {
        TRY(take_scalar(g, type, &m));
    }
    /* Parts of a split file repeat only what says which part they are. */
    const bool wanted = g->keep_meta || strcmp(m.key, "general.alignment") == 0 || strncmp(m.key, "split.", 6) == 0;
    return wanted ? tensor_builder_meta(g->b, &m) : ERR_OK;
}

/* ---- tensors ---- */

static enum err_code take_tensor(struct gguf *g, int shard, int64_t alignment)
{
    int64_t shape[TENSOR_DIMS_MAX];
    struct tensor t = {.shard = shard, .shape = shape};
    const char *name;
    char clean[84];
    int64_t len;
    uint64_t dims, type, v;
    TRY(take_string(g, TENSOR_NAME_MAX, "bytes of a tensor's name", &name, &len));
    if (len > TENSOR_NAME_MAX || strlen(name) != (size_t)len)
        return err_set(g->e, ERR_INPUT, "%s: a tensor's name of %lld bytes, wanted at most %d without NUL",
                       g->src->name, (long long)len, (int)TENSOR_NAME_MAX);
    tensor_clean(clean, name, (size_t)len);
    TRY(take_uint(g, 4, "the tensor table", &dims));
    if (dims > DIMS_MAX)
        return err_set(g->e, ERR_INPUT, "%s: tensor '%s' has %llu dimensions, wanted at most %d", g->src->name, clean,
                       (unsigned long long)dims, (int)DIMS_MAX);
    t.dims = (int)dims;
    for (int i = 0; i < t.dims; i++) { /* stored fastest first */
        TRY(take_uint(g, 8, "the tensor table", &v));
        if (v > (uint64_t)INT64_MAX)
            return err_set(g->e, ERR_INPUT, "%s: tensor '%s' has a side of %llu, beyond 63 bits", g->src->name, clean,
                           (unsigned long long)v);
        shape[t.dims - 1 - i] = (int64_t)v;
    }
    TRY(take_uint(g, 4, "the tensor table", &type));
    t.type = gguf_type((uint32_t)type);
    if (!t.type)
        return err_set(g->e, ERR_INPUT, "%s: tensor '%s' is of type number %llu, which ridge does not know",
                       g->src->name, clean, (unsigned long long)type);
    TRY(take_uint(g, 8, "the tensor table", &v));
    t.begin_bytes = (int64_t)(v & (uint64_t)INT64_MAX);
    if (v > (uint64_t)g->src->size_bytes || t.begin_bytes % alignment != 0)
        return err_set(g->e, ERR_INPUT, "%s: tensor '%s' begins at byte %llu of the data: %s", g->src->name, clean,
                       (unsigned long long)v,
                       v > (uint64_t)g->src->size_bytes ? "beyond the end of the file" : "not aligned");
    TRY(tensor_builder_add(g->b, g->src, name, (size_t)len, &t));
    if (g->b->tensors[g->b->n - 1].bytes <= g->src->size_bytes) return ERR_OK;
    return err_set(g->e, ERR_INPUT,
                   "%s: tensor '%s' takes %lld bytes in a file of %lld: an incomplete download, or a header that lies",
                   g->src->name, clean, (long long)g->b->tensors[g->b->n - 1].bytes, (long long)g->src->size_bytes);
}

static enum err_code find_alignment(const struct gguf *g, size_t meta_first, int64_t *out)
{
    *out = 32;
    for (size_t i = meta_first; i < g->b->meta_n; i++) {
        const struct tensor_meta *m = &g->b->meta[i];
        if (strcmp(m->key, "general.alignment") != 0) continue;
        if (m->kind != TENSOR_META_INT || m->integer < 1 || m->integer > 1 << 20 || (m->integer & (m->integer - 1)))
            return err_set(g->e, ERR_INPUT, "%s: general.alignment is no power of two up to 2^20", g->src->name);
        *out = m->integer;
    }
    return ERR_OK;
}

static enum err_code take_preamble(struct gguf *g)
{
    const unsigned char *magic;
    uint64_t version;
    if (left(g) < 24)
        return err_set(g->e, ERR_INPUT, "%s: %lld bytes, too few for a GGUF file", g->src->name, (long long)left(g));
    TRY(take(g, 4, "the magic number", &magic));
    if (memcmp(magic, "GGUF", 4) != 0) {
        char found[16];
        return err_set(g->e, ERR_INPUT, "%s: begins with \"%s\", not with GGUF", g->src->name,
                       text_clean(found, sizeof found, (const char *)magic, 4));
    }
    TRY(take_uint(g, 4, "the version", &version));
    if (version == 2 || version == 3) return ERR_OK;
    if (version && (version & 0xFFFF) == 0)
        return err_set(g->e, ERR_INPUT, "%s: a big-endian GGUF file, wanted little-endian (gguf_convert_endian.py)",
                       g->src->name);
    return err_set(g->e, ERR_INPUT, "%s: GGUF version %llu, wanted 2 or 3%s", g->src->name, (unsigned long long)version,
                   version == 1 ? " (version 1 counts in 32 bits: convert it again)" : "");
}

static enum err_code read_all(struct gguf *g, int shard, int64_t *header_bytes)
{
    uint64_t tensors;
    int64_t pairs, alignment;
    const size_t first = g->b->n, meta_first = g->b->meta_n;
    struct tensor_names *keys = tensor_names_open(g->b->arena);
    if (!keys) return err_nomem(g->e);
    TRY(take_preamble(g));
    TRY(take_uint(g, 8, "the number of tensors", &tensors));
    /* the least: lengths of name and key, a type, one byte; and of a tensor's name, dimensions, type, offset */
    TRY(take_count(g, 8 + 1 + 4 + 1, "metadata pairs", &pairs));
    if (tensors > (uint64_t)(left(g) / (8 + 1 + 4 + 4 + 8)) || tensors > TENSORS_MAX)
        return err_set(g->e, ERR_INPUT, "%s: %llu tensors, more than the rest of the file can hold", g->src->name,
                       (unsigned long long)tensors);
    for (int64_t i = 0; i < pairs; i++) TRY(take_pair(g, keys));
    TRY(find_alignment(g, meta_first, &alignment));
    for (uint64_t i = 0; i < tensors; i++) TRY(take_tensor(g, shard, alignment));
    int64_t data_at = (g->at + alignment - 1) / alignment * alignment;
    if (data_at > g->src->size_bytes) {
        if (tensors > 0) return ends(g, "the padding before the data");
        data_at = g->src->size_bytes; /* metadata only: nothing to align */
    }
    *header_bytes = data_at;
    return tensor_builder_check_ranges(g->b, g->src, first, g->src->size_bytes - data_at, false);
}

enum err_code gguf_read(struct tensor_builder *b, const struct tensor_source *src, int shard, int64_t *header_bytes)
{
    struct gguf g = {.b = b, .src = src, .e = b->err, .keep_meta = shard == 0};
    g.window = malloc(WINDOW_BYTES);
    if (!g.window) return err_nomem(b->err);
    const enum err_code code = read_all(&g, shard, header_bytes);
    free(g.window);
    return code;
}
