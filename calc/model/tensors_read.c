/* tensors_read -- sources of bytes, sets of names, and a set of tensors while it grows. */
#include "calc/model/tensors_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/text.h"

const char *tensor_clean(char out[84], const char *s, size_t len) { return text_clean(out, 84, s, len); }

/* ---- sources ---- */

enum err_code tensor_source_open(struct arena *a, const char *path, struct tensor_source *out, struct err *e)
{
    char name[200];
    struct stat st;
    text_clean(name, sizeof name, path, strlen(path));
    const char *kept = arena_strndup(a, name, strlen(name));
    if (!kept) return err_nomem(e);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return err_set(e, ERR_IO, "%s: cannot open: %s", name, strerror(errno));
    const bool known = fstat(fd, &st) == 0;
    if (!known || !S_ISREG(st.st_mode)) {
        (void)close(fd);
        return err_set(e, ERR_IO, "%s: %s", name, known ? "not a regular file" : strerror(errno));
    }
    *out = (struct tensor_source){.name = kept, .size_bytes = st.st_size, .fd = fd};
    char first[64];
    const ssize_t n = pread(fd, first, sizeof first, 0);
    if (n <= 0 || !text_is_pointer(first, (size_t)n)) return ERR_OK;
    (void)close(fd);
    return err_set(e, ERR_INPUT, "%s: a Git LFS pointer, not the file it stands for: git lfs pull", name);
}

enum err_code tensor_source_read(const struct tensor_source *s, int64_t at, void *buf, size_t n, struct err *e)
{
    if (s->data) {
        if (n) memcpy(buf, s->data + at, n);
        return ERR_OK;
    }
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(s->fd, (char *)buf + done, n - done, (off_t)(at + (int64_t)done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return err_set(e, ERR_IO, "%s: cannot read: %s", s->name, strerror(errno));
        if (got == 0) return err_set(e, ERR_IO, "%s: became shorter while it was read", s->name);
        done += (size_t)got;
    }
    return ERR_OK;
}

/* ---- names ---- */

/* Open addressing; a slot holds 1 + number below some bits of the hash, so that most look-ups end without the name
 * itself. Names made to collide would make every look-up long: such a set is refused rather than waited for. At half
 * load, chains of honest names stay far below the limit. */
enum { PROBES_MAX = 4096, SLOTS_MIN = 256, NUMBER_BITS = 22 };

_Static_assert(TENSORS_MAX < 1 << NUMBER_BITS, "a number and one more fit in a slot");

struct name {
    const char *s;
    size_t len;
};

struct tensor_names {
    struct arena *arena;
    struct name *names;
    uint32_t *slots;
    size_t n, room, slots_n;
};

struct tensor_names *tensor_names_open(struct arena *a)
{
    struct tensor_names *t = arena_alloc(a, sizeof *t);
    if (t) t->arena = a;
    return t;
}

/* Words rather than bytes: the names of a large checkpoint are megabytes. The order of bytes in a word is the
 * machine's; nothing but the place of a slot depends on it. */
static uint32_t hash_of(const char *s, size_t len)
{
    uint64_t h = len, word;
    for (; len >= sizeof word; s += sizeof word, len -= sizeof word) {
        memcpy(&word, s, sizeof word);
        h = (h ^ word) * 0x9E3779B97F4A7C15u; /* 2^64 over the golden ratio, odd */
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, s, len);
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(h >> 32);
}

/* The number in a slot, -1 in an empty one; what of a hash is above it. */
static int32_t number_in(uint32_t slot) { return (int32_t)(slot & ((1U << NUMBER_BITS) - 1)) - 1; }
static uint32_t tag_of(uint32_t hash) { return hash >> NUMBER_BITS << NUMBER_BITS; }

bool tensor_names_reserve(struct tensor_names *t, size_t n)
{
    if (n > t->room) {
        struct name *names = arena_array(t->arena, n, sizeof *names);
        if (!names) return false;
        if (t->n) memcpy(names, t->names, t->n * sizeof *names);
        t->names = names;
        t->room = n;
    }
    if (2 * n <= t->slots_n) return true;
    size_t slots_n = SLOTS_MIN;
    while (slots_n < 2 * n) slots_n *= 2;
    uint32_t *slots = arena_array(t->arena, slots_n, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < t->slots_n; i++) {
        if (t->slots[i] == 0) continue;
        const struct name *k = &t->names[number_in(t->slots[i])];
        size_t at = hash_of(k->s, k->len) & (slots_n - 1);
        while (slots[at]) at = (at + 1) & (slots_n - 1);
        slots[at] = t->slots[i];
    }
    t->slots = slots;
    t->slots_n = slots_n;
    return true;
}

static bool name_is(const struct name *k, const char *s, size_t len)
{
    return k->len == len && memcmp(k->s, s, len) == 0;
}

/* The slot that holds the name, or the empty one where it would go; -1 beyond the limit. */
static int64_t probe(const struct tensor_names *t, const char *s, size_t len, uint32_t hash)
{
    size_t at = hash & (t->slots_n - 1);
    for (size_t tries = 0; tries < PROBES_MAX; tries++, at = (at + 1) & (t->slots_n - 1)) {
        if (t->slots[at] == 0) return (int64_t)at;
        const bool alike = tag_of(t->slots[at]) == tag_of(hash);
        if (alike && name_is(&t->names[number_in(t->slots[at])], s, len)) return (int64_t)at;
    }
    return -1;
}

static enum err_code add_name(struct tensor_names *t, const char *s, size_t len, bool copy, uint32_t hash,
                              int32_t *number, bool *fresh, struct err *e)
{
    if (t->n >= TENSORS_MAX) return err_set(e, ERR_INPUT, "more than %d names", (int)TENSORS_MAX);
    if (t->n == t->room && !tensor_names_reserve(t, t->n ? 2 * t->n : SLOTS_MIN / 2)) return err_nomem(e);
    const int64_t at = probe(t, s, len, hash);
    if (at < 0) return err_set(e, ERR_INPUT, "names that were made to collide");
    *fresh = t->slots[at] == 0;
    if (*fresh) {
        const char *kept = copy ? arena_strndup(t->arena, s, len) : s;
        if (!kept) return err_nomem(e);
        t->names[t->n++] = (struct name){kept, len};
        t->slots[at] = tag_of(hash) | (uint32_t)t->n;
    }
    *number = number_in(t->slots[at]);
    return ERR_OK;
}

enum err_code tensor_names_add(struct tensor_names *t, const char *s, size_t len, int32_t *number, bool *fresh,
                               struct err *e)
{
    return add_name(t, s, len, true, hash_of(s, len), number, fresh, e);
}

uint32_t tensor_names_expect(const struct tensor_names *t, const char *s, size_t len)
{
    const uint32_t hash = hash_of(s, len);
    if (t->slots_n) __builtin_prefetch(&t->slots[hash & (t->slots_n - 1)], 1);
    return hash;
}

enum err_code tensor_names_keep(struct tensor_names *t, const char *s, size_t len, uint32_t hash, bool *fresh,
                                struct err *e)
{
    int32_t number;
    return add_name(t, s, len, false, hash, &number, fresh, e);
}

int32_t tensor_names_find(const struct tensor_names *t, const char *s, size_t len)
{
    const int64_t at = t->slots_n ? probe(t, s, len, hash_of(s, len)) : -1;
    return at < 0 ? -1 : number_in(t->slots[at]);
}

int32_t tensor_names_find_near(const struct tensor_names *t, const char *s, size_t len, int32_t guess)
{
    const bool right = guess >= 0 && (size_t)guess < t->n && name_is(&t->names[guess], s, len);
    return right ? guess : tensor_names_find(t, s, len);
}

const char *tensor_names_at(const struct tensor_names *t, int32_t number) { return t->names[number].s; }

/* ---- the set while it grows ---- */

/* Elements and bytes of a shape. */
static enum err_code measure(const struct tensor_source *src, struct tensor *t, struct err *e)
{
    char name[84];
    bool over = false;
    t->elems = 1;
    for (int i = 0; i < t->dims; i++) over = over || __builtin_mul_overflow(t->elems, t->shape[i], &t->elems);
    if (!over && t->type->block_elems == 1 && !__builtin_mul_overflow(t->elems, t->type->block_bytes, &t->bytes))
        return ERR_OK; /* nearly all, without a division */
    const bool whole = !over && t->elems % t->type->block_elems == 0 &&
                       (t->dims == 0 || t->shape[t->dims - 1] % t->type->block_elems == 0 || !t->type->quantised);
    if (!over && !whole)
        return err_set(e, ERR_INPUT, "%s: tensor '%s': its shape is no whole number of %s blocks of %lld elements",
                       src->name, tensor_clean(name, t->name, strlen(t->name)), t->type->name,
                       (long long)t->type->block_elems);
    if (over || __builtin_mul_overflow(t->elems / t->type->block_elems, t->type->block_bytes, &t->bytes) ||
        __builtin_add_overflow(t->bytes, t->type->tail_bytes, &t->bytes))
        return err_set(e, ERR_INPUT, "%s: tensor '%s': the product of its shape is beyond 64 bits", src->name,
                       tensor_clean(name, t->name, strlen(t->name)));
    return ERR_OK;
}

enum err_code tensor_builder_expect(struct tensor_builder *b, const int32_t *shard_of, size_t n, bool plain)
{
    b->seen = arena_array(b->arena, n ? n : 1, sizeof *b->seen);
    b->tensors = arena_array(b->arena, n ? n : 1, sizeof *b->tensors);
    if (!b->seen || !b->tensors) return err_nomem(b->err);
    b->shard_of = shard_of;
    b->expected_n = b->room = n;
    b->plain = plain;
    return ERR_OK;
}

struct json_text tensor_builder_next(const struct tensor_builder *b)
{
    if (!b->plain || (size_t)b->next >= b->expected_n) return (struct json_text){"", 0};
    return (struct json_text){b->names->names[b->next].s, b->names->names[b->next].len};
}

/* A shape in the arena, that of an earlier tensor where it is one of those kept. */
static const int64_t *keep_shape(struct tensor_builder *b, const int64_t *side, int dims)
{
    uint64_t hash = (uint64_t)dims;
    for (int i = 0; i < dims; i++) hash = (hash ^ (uint64_t)side[i]) * 0x9E3779B97F4A7C15u; /* as in hash_of */
    struct tensor_shape *k = &b->shapes[hash >> 32 & (TENSOR_SHAPES_KEPT - 1)];
    const size_t bytes = (size_t)dims * sizeof *side;
    if (k->side && k->dims == dims && memcmp(k->side, side, bytes) == 0) return k->side;
    int64_t *copy = arena_alloc(b->arena, bytes ? bytes : 1);
    if (!copy) return NULL;
    if (bytes) memcpy(copy, side, bytes);
    *k = (struct tensor_shape){copy, dims};
    return copy;
}

/* The number of a tensor's name, new or, with an index, expected. */
static enum err_code number_of(struct tensor_builder *b, const char *name, size_t len, int shard, int32_t *number,
                               bool *fresh)
{
    *number = b->shard_of ? tensor_names_find_near(b->names, name, len, b->next) : -1;
    b->next = *number + 1; /* most files keep to the index's order */
    *fresh = *number >= 0 && (size_t)*number < b->expected_n && !b->seen[*number];
    if (*fresh) b->seen[*number] = true;
    if (b->shard_of && (*number < 0 || (*fresh && b->shard_of[*number] != shard))) b->strangers++;
    return *number >= 0 ? ERR_OK : tensor_names_add(b->names, name, len, number, fresh, b->err);
}

enum err_code tensor_builder_add(struct tensor_builder *b, const struct tensor_source *src, const char *name,
                                 size_t name_len, const struct tensor *t)
{
    char clean[84];
    int32_t number;
    bool fresh;
    if (name_len == 0 || name_len > TENSOR_NAME_MAX)
        return err_set(b->err, ERR_INPUT, "%s: a tensor's name of %zu bytes, wanted 1 to %d", src->name, name_len,
                       (int)TENSOR_NAME_MAX);
    if (number_of(b, name, name_len, t->shard, &number, &fresh) != ERR_OK)
        return err_prepend(b->err, "%s: ", src->name);
    if (!fresh)
        return err_set(b->err, ERR_INPUT, "%s: tensor '%s' is there twice", src->name,
                       tensor_clean(clean, name, name_len));
    if (b->n == b->room) {
        const size_t room = b->room ? 2 * b->room : 512;
        struct tensor *grown = arena_array(b->arena, room, sizeof *grown);
        if (!grown) return err_nomem(b->err);
        if (b->n) memcpy(grown, b->tensors, b->n * sizeof *grown);
        b->tensors = grown;
        b->room = room;
    }
    struct tensor *out = &b->tensors[b->n];
    *out = *t;
    out->name = tensor_names_at(b->names, number);
    out->shape = keep_shape(b, t->shape, t->dims);
    if (!out->shape) return err_nomem(b->err);
    TRY(measure(src, out, b->err));
    b->n++;
    return ERR_OK;
}

enum err_code tensor_builder_text(struct tensor_builder *b, size_t n, char **text)
{
    if (n > b->text_room) {
        free(b->text);
        b->text = malloc(n);
        b->text_room = b->text ? n : 0;
        if (!b->text) return err_nomem(b->err);
    }
    *text = b->text;
    return ERR_OK;
}

enum err_code tensor_builder_meta(struct tensor_builder *b, const struct tensor_meta *pair)
{
    if (b->meta_n == b->meta_room) {
        const size_t room = b->meta_room ? 2 * b->meta_room : 64;
        struct tensor_meta *grown = arena_array(b->arena, room, sizeof *grown);
        if (!grown) return err_nomem(b->err);
        if (b->meta_n) memcpy(grown, b->meta, b->meta_n * sizeof *grown);
        b->meta = grown;
        b->meta_room = room;
    }
    b->meta[b->meta_n++] = *pair;
    return ERR_OK;
}

void tensor_builder_close(struct tensor_builder *b)
{
    free(b->text);
    b->text = NULL;
}

/* ---- who owns which bytes ---- */

static int by_begin(const void *a, const void *b)
{
    const struct tensor *x = *(const struct tensor *const *)a, *y = *(const struct tensor *const *)b;
    if (x->begin_bytes != y->begin_bytes) return x->begin_bytes < y->begin_bytes ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static enum err_code not_its_place(const struct tensor_builder *b, const struct tensor_source *src,
                                   const struct tensor *t, int64_t end)
{
    char name[84];
    tensor_clean(name, t->name, strlen(t->name));
    if (t->begin_bytes < end)
        return err_set(b->err, ERR_INPUT, "%s: tensor '%s' begins at byte %lld, within another that ends at %lld",
                       src->name, name, (long long)t->begin_bytes, (long long)end);
    return err_set(b->err, ERR_INPUT, "%s: %lld bytes before tensor '%s' belong to no tensor", src->name,
                   (long long)(t->begin_bytes - end), name);
}

static enum err_code check_end(const struct tensor_builder *b, const struct tensor_source *src, int64_t end,
                               int64_t data_bytes, bool dense)
{
    if (end > data_bytes)
        return err_set(b->err, ERR_INPUT,
                       "%s: ends %lld bytes before its last tensor does: an incomplete download, or a header that lies",
                       src->name, (long long)(end - data_bytes));
    if (dense && end < data_bytes)
        return err_set(b->err, ERR_INPUT, "%s: its last %lld bytes belong to no tensor", src->name,
                       (long long)(data_bytes - end));
    return ERR_OK;
}

enum err_code tensor_builder_check_ranges(struct tensor_builder *b, const struct tensor_source *src, size_t first,
                                          int64_t data_bytes, bool dense)
{
    const size_t n = b->n - first;
    int64_t end = 0;
    bool sorted = true;
    for (size_t i = first; i + 1 < b->n && sorted; i++) {
        const struct tensor *x = &b->tensors[i], *y = &b->tensors[i + 1];
        sorted = x->begin_bytes < y->begin_bytes || (x->begin_bytes == y->begin_bytes && x->bytes <= y->bytes);
    }
    const struct tensor **order = sorted ? NULL : malloc(n * sizeof *order);
    if (!sorted && !order) return err_nomem(b->err);
    for (size_t i = 0; i < n && order; i++) order[i] = &b->tensors[first + i];
    if (order) qsort(order, n, sizeof *order, by_begin);
    enum err_code code = ERR_OK;
    for (size_t i = 0; i < n && code == ERR_OK; i++) {
        const struct tensor *t = order ? order[i] : &b->tensors[first + i];
        if (t->begin_bytes < end || (dense && t->begin_bytes > end)) code = not_its_place(b, src, t, end);
        end = t->begin_bytes + t->bytes; /* the readers checked that it does not overflow */
    }
    free(order);
    return code != ERR_OK ? code : check_end(b, src, end, data_bytes, dense);
}
