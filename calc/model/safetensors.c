/* safetensors -- 8 bytes of header length, little-endian; a JSON object of that length, blanks behind it allowed: name
 * to dtype, shape and [begin, end) in the data, and "__metadata__" of strings; then the data, every byte owned once.
 * Source: https://github.com/huggingface/safetensors README "Format", safetensors/src/tensor.rs for the dtypes. */
#include <stdlib.h>
#include <string.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"
#include "calc/model/tensors_read.h"

/* Elements that share whole bytes, and those bytes. */
static const struct tensor_type TYPES[] = {
    {"BF16", 1, 2, false},        {"F32", 1, 4, false},         {"F16", 1, 2, false},  {"F8_E4M3", 1, 1, false},
    {"F8_E5M2", 1, 1, false},     {"F8_E8M0", 1, 1, false},     {"U8", 1, 1, false},   {"I8", 1, 1, false},
    {"I32", 1, 4, false},         {"I64", 1, 8, false},         {"BOOL", 1, 1, false}, {"F4", 2, 1, false},
    {"F6_E2M3", 4, 3, false},     {"F6_E3M2", 4, 3, false},     {"I16", 1, 2, false},  {"U16", 1, 2, false},
    {"U32", 1, 4, false},         {"U64", 1, 8, false},         {"F64", 1, 8, false},  {"C64", 1, 8, false},
    {"F8_E4M3FNUZ", 1, 1, false}, {"F8_E5M2FNUZ", 1, 1, false},
};

const struct tensor_type *safetensors_type(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (strlen(TYPES[i].name) == len && memcmp(TYPES[i].name, name, len) == 0) return &TYPES[i];
    return NULL;
}

static enum err_code read_shape(struct json_scan *s, struct tensor *t)
{
    bool more;
    TRY(json_scan_array(s));
    for (t->dims = 0;; t->dims++) {
        TRY(json_scan_element(s, &more));
        if (!more) return ERR_OK;
        if (t->dims == TENSOR_DIMS_MAX) return json_scan_want(s, "at most 8 dimensions");
        TRY(json_scan_int(s, 0, INT64_MAX, &t->shape[t->dims]));
    }
}

static enum err_code read_offsets(struct json_scan *s, int64_t *begin, int64_t *end)
{
    bool more;
    TRY(json_scan_array(s));
    TRY(json_scan_element(s, &more));
    if (!more) return json_scan_want(s, "two offsets before the end of the list");
    TRY(json_scan_int(s, 0, INT64_MAX, begin));
    TRY(json_scan_element(s, &more));
    if (!more) return json_scan_want(s, "two offsets before the end of the list");
    TRY(json_scan_int(s, 0, INT64_MAX, end));
    TRY(json_scan_element(s, &more));
    return more ? json_scan_want(s, "two offsets and no third") : ERR_OK;
}

static enum err_code read_type(struct json_scan *s, struct tensor *t, struct json_text name)
{
    struct json_text text;
    char clean[84], dtype[84];
    TRY(json_scan_text(s, &text));
    t->type = safetensors_type(text.s, text.len);
    if (t->type) return ERR_OK;
    return err_set(s->err, ERR_INPUT, "%s: tensor '%s': dtype \"%s\" is none of safetensors that ridge knows", s->name,
                   tensor_clean(clean, name.s, name.len), tensor_clean(dtype, text.s, text.len));
}

/* What an entry says: each member once, and nothing else. */
static enum err_code read_entry(struct json_scan *s, struct json_text name, struct tensor *t, int64_t *end)
{
    char clean[84];
    static const char *const KEYS[] = {"dtype", "shape", "data_offsets"};
    bool had[3] = {false}, more;
    struct json_text key;
    TRY(json_scan_object(s));
    for (;;) {
        size_t k = 0;
        TRY(json_scan_member(s, &key, &more));
        if (!more) break;
        while (k < 3 && !json_text_is(key, KEYS[k])) k++;
        if (k == 3) return json_scan_want(s, "only dtype, shape and data_offsets in a tensor's entry");
        if (had[k]) return json_scan_want(s, "dtype, shape and data_offsets once each");
        had[k] = true;
        if (k == 0) TRY(read_type(s, t, name));
        if (k == 1) TRY(read_shape(s, t));
        if (k == 2) TRY(read_offsets(s, &t->begin_bytes, end));
    }
    for (size_t k = 0; k < 3; k++)
        if (!had[k])
            return err_set(s->err, ERR_INPUT, "%s: tensor '%s': %s is missing in its entry", s->name,
                           tensor_clean(clean, name.s, name.len), KEYS[k]);
    return ERR_OK;
}

static enum err_code read_tensor(struct tensor_builder *b, const struct tensor_source *src, struct json_scan *s,
                                 struct json_text key, int shard)
{
    struct tensor t = {.shard = shard};
    int64_t end = 0;
    char name[84];
    TRY(read_entry(s, key, &t, &end));
    TRY(tensor_builder_add(b, src, key.s, key.len, &t));
    const struct tensor *added = &b->tensors[b->n - 1];
    if (end >= t.begin_bytes && end - t.begin_bytes == added->bytes) return ERR_OK;
    return err_set(b->err, ERR_INPUT,
                   "%s: tensor '%s': its offsets [%lld, %lld) are not the %lld bytes of its %s shape", src->name,
                   tensor_clean(name, key.s, key.len), (long long)t.begin_bytes, (long long)end,
                   (long long)added->bytes, added->type->name);
}

static enum err_code read_metadata(struct tensor_builder *b, struct json_scan *s, bool keep)
{
    struct json_text key, value;
    bool more;
    if (json_scan_peek(s) == 'n') return json_scan_skip(s); /* null */
    TRY(json_scan_object(s));
    for (;;) {
        TRY(json_scan_member(s, &key, &more));
        if (!more) return ERR_OK;
        TRY(json_scan_text(s, &value));
        if (!keep) continue;
        if (value.len > 1 << 16) value.len = 1 << 16;
        const struct tensor_meta pair = {.key = arena_strndup(b->arena, key.s, key.len),
                                         .kind = TENSOR_META_TEXT,
                                         .text = arena_strndup(b->arena, value.s, value.len)};
        if (!pair.key || !pair.text) return err_nomem(b->err);
        TRY(tensor_builder_meta(b, &pair));
    }
}

static enum err_code read_header(struct tensor_builder *b, const struct tensor_source *src, const char *text,
                                 size_t len, int shard)
{
    struct json_scan s = json_scan_open(b->arena, src->name, text, len, b->err);
    struct json_text key;
    bool more, metadata = false;
    if (text[0] != '{') return json_scan_want(&s, "the object of a safetensors header");
    TRY(json_scan_object(&s));
    for (;;) {
        TRY(json_scan_member(&s, &key, &more));
        if (!more) break;
        if (!json_text_is(key, "__metadata__")) {
            TRY(read_tensor(b, src, &s, key, shard));
        } else {
            if (metadata) return json_scan_want(&s, "__metadata__ once");
            metadata = true;
            TRY(read_metadata(b, &s, b->meta_n == 0));
        }
    }
    (void)json_scan_peek(&s);
    return s.at == len ? ERR_OK : json_scan_want(&s, "nothing but blanks behind the header's object");
}

enum err_code safetensors_read(struct tensor_builder *b, const struct tensor_source *src, int shard,
                               int64_t *header_bytes)
{
    unsigned char length[8];
    uint64_t n = 0;
    if (src->size_bytes < 8)
        return err_set(b->err, ERR_INPUT, "%s: %lld bytes, too few for a safetensors file", src->name,
                       (long long)src->size_bytes);
    TRY(tensor_source_read(src, 0, length, sizeof length, b->err));
    for (size_t i = 8; i-- > 0;) n = n << 8 | length[i];
    if (n < 2 || n > TENSOR_HEADER_MAX_BYTES)
        return err_set(b->err, ERR_INPUT, "%s: a header of %llu bytes, wanted 2 to %d: not a safetensors file",
                       src->name, (unsigned long long)n, (int)TENSOR_HEADER_MAX_BYTES);
    if ((int64_t)n > src->size_bytes - 8)
        return err_set(b->err, ERR_INPUT,
                       "%s: a header of %llu bytes in a file of %lld: an incomplete download, or no safetensors file",
                       src->name, (unsigned long long)n, (long long)src->size_bytes);
    const size_t first = b->n;
    char *text = malloc((size_t)n);
    if (!text) return err_nomem(b->err);
    enum err_code code = tensor_source_read(src, 8, text, (size_t)n, b->err);
    if (code == ERR_OK) code = read_header(b, src, text, (size_t)n, shard);
    free(text);
    if (code != ERR_OK) return code;
    *header_bytes = 8 + (int64_t)n;
    return tensor_builder_check_ranges(b, src, first, src->size_bytes - *header_bytes, true);
}
