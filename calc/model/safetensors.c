/* safetensors -- 8 bytes of header length, little-endian; a JSON object of that length, blanks behind it allowed: name
 * to dtype, shape and [begin, end) in the data, and "__metadata__" of strings; then the data, every byte owned once.
 * Source: https://github.com/huggingface/safetensors README "Format", safetensors/src/tensor.rs for the dtypes. */
#include <string.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"
#include "calc/model/tensors_read.h"

/* Elements that share whole bytes, and those bytes. */
static const struct tensor_type TYPES[] = {
    {"BF16", 1, 2, false, 0},        {"F32", 1, 4, false, 0},     {"F16", 1, 2, false, 0},
    {"F8_E4M3", 1, 1, false, 0},     {"F8_E5M2", 1, 1, false, 0}, {"F8_E8M0", 1, 1, false, 0},
    {"U8", 1, 1, false, 0},          {"I8", 1, 1, false, 0},      {"I32", 1, 4, false, 0},
    {"I64", 1, 8, false, 0},         {"BOOL", 1, 1, false, 0},    {"F4", 2, 1, false, 0},
    {"F6_E2M3", 4, 3, false, 0},     {"F6_E3M2", 4, 3, false, 0}, {"I16", 1, 2, false, 0},
    {"U16", 1, 2, false, 0},         {"U32", 1, 4, false, 0},     {"U64", 1, 8, false, 0},
    {"F64", 1, 8, false, 0},         {"C64", 1, 8, false, 0},     {"F8_E4M3FNUZ", 1, 1, false, 0},
    {"F8_E5M2FNUZ", 1, 1, false, 0},
};

const struct tensor_type *safetensors_type(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
        if (strlen(TYPES[i].name) == len && memcmp(TYPES[i].name, name, len) == 0) return &TYPES[i];
    return NULL;
}

/* What an entry says. */
struct entry {
    const struct tensor_type *type;
    int64_t shape[TENSOR_DIMS_MAX], begin, end;
    size_t dims;
};

static enum err_code read_shape(struct json_scan *s, struct entry *t)
{
    return json_scan_ints(s, 0, INT64_MAX, t->shape, TENSOR_DIMS_MAX, &t->dims, "at most 8 dimensions");
}

static enum err_code read_offsets(struct json_scan *s, struct entry *t)
{
    int64_t v[2];
    size_t n;
    TRY(json_scan_ints(s, 0, INT64_MAX, v, 2, &n, "two offsets and no third"));
    if (n != 2) return json_scan_want(s, "two offsets before the end of the list");
    t->begin = v[0];
    t->end = v[1];
    return ERR_OK;
}

static enum err_code read_type(struct json_scan *s, struct entry *t, struct json_text name)
{
    struct json_text text;
    char clean[84], dtype[84];
    TRY(json_scan_text(s, &text));
    t->type = safetensors_type(text.s, text.len);
    if (t->type) return ERR_OK;
    return err_set(s->err, ERR_INPUT, "%s: tensor '%s': dtype \"%s\" is none of safetensors that ridge knows", s->name,
                   tensor_clean(clean, name.s, name.len), tensor_clean(dtype, text.s, text.len));
}

/* The one spelling that the library writes, without the scanner's steps. False: another one, and nothing was read. */
static bool read_usual(struct json_scan *s, struct entry *t)
{
    enum { LONGEST = 12 };
    const struct json_scan start = *s;
    bool usual = json_scan_literal(s, "{\"dtype\":\"");
    size_t n = 0;
    while (usual && n < LONGEST && s->at + n < s->len && s->text[s->at + n] != '"') n++;
    t->type = usual ? safetensors_type(s->text + s->at, n) : NULL;
    s->at += n;
    usual = t->type && json_scan_literal(s, "\",\"shape\":") && read_shape(s, t) == ERR_OK &&
            json_scan_literal(s, ",\"data_offsets\":") && read_offsets(s, t) == ERR_OK && json_scan_literal(s, "}");
    if (!usual) *s = start;
    return usual;
}

static const char *const MEMBERS[] = {"dtype", "shape", "data_offsets"};
enum member { DTYPE, SHAPE, OFFSETS, MEMBERS_N };

static enum member member_of(struct json_text key)
{
    if (key.len == 5 && memcmp(key.s, MEMBERS[DTYPE], 5) == 0) return DTYPE;
    if (key.len == 5 && memcmp(key.s, MEMBERS[SHAPE], 5) == 0) return SHAPE;
    return key.len == 12 && memcmp(key.s, MEMBERS[OFFSETS], 12) == 0 ? OFFSETS : MEMBERS_N;
}

/* What an entry says: each member once, and nothing else. */
static enum err_code read_entry(struct json_scan *s, struct json_text name, struct entry *t)
{
    char clean[84];
    bool had[MEMBERS_N] = {false}, more;
    struct json_text key;
    if (read_usual(s, t)) return ERR_OK;
    TRY(json_scan_object(s));
    for (;;) {
        TRY(json_scan_member(s, &key, &more));
        if (!more) break;
        const enum member k = member_of(key);
        if (k == MEMBERS_N) return json_scan_want(s, "only dtype, shape and data_offsets in a tensor's entry");
        if (had[k]) return json_scan_want(s, "dtype, shape and data_offsets once each");
        had[k] = true;
        if (k == DTYPE) TRY(read_type(s, t, name));
        if (k == SHAPE) TRY(read_shape(s, t));
        if (k == OFFSETS) TRY(read_offsets(s, t));
    }
    for (size_t k = 0; k < MEMBERS_N; k++)
        if (!had[k])
            return err_set(s->err, ERR_INPUT, "%s: tensor '%s': %s is missing in its entry", s->name,
                           tensor_clean(clean, name.s, name.len), MEMBERS[k]);
    return ERR_OK;
}

static enum err_code read_tensor(struct tensor_builder *b, const struct tensor_source *src, struct json_scan *s,
                                 struct json_text key, int shard)
{
    struct entry t;
    char name[84];
    TRY(read_entry(s, key, &t));
    TRY(tensor_builder_add(
        b, src, key.s, key.len,
        &(struct tensor){
            .type = t.type, .shape = t.shape, .dims = (int)t.dims, .begin_bytes = t.begin, .shard = shard}));
    const struct tensor *added = &b->tensors[b->n - 1];
    if (t.end >= t.begin && t.end - t.begin == added->bytes) return ERR_OK;
    return err_set(b->err, ERR_INPUT,
                   "%s: tensor '%s': its offsets [%lld, %lld) are not the %lld bytes of its %s shape", src->name,
                   tensor_clean(name, key.s, key.len), (long long)t.begin, (long long)t.end, (long long)added->bytes,
                   added->type->name);
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
        key = tensor_builder_next(b);
        more = key.len > 0 && json_scan_member_known(&s, key);
        if (!more) TRY(json_scan_member(&s, &key, &more));
        if (!more) break;
        if (key.s[0] != '_' || !json_text_is(key, "__metadata__")) {
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
    char *text;
    TRY(tensor_builder_text(b, (size_t)n, &text));
    TRY(tensor_source_read(src, 8, text, (size_t)n, b->err));
    TRY(read_header(b, src, text, (size_t)n, shard));
    *header_bytes = 8 + (int64_t)n;
    return tensor_builder_check_ranges(b, src, first, src->size_bytes - *header_bytes, true);
}
