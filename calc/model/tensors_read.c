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
    return ERR_OK;
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

/* Open addressing; a slot holds 1 + number. Names made to collide would make every look-up long: such a set is refused
 * rather than waited for. At half load, chains of honest names stay far below the limit. */
enum { PROBES_MAX = 4096, SLOTS_MIN = 256 };

struct name {
    const char *s;
    uint32_t len, hash;
};

struct tensor_names {
    struct arena *arena;
    struct name *names;
    uint32_t *slots;
    size_t n, room, slots_n;
};

static void release_names(void *what)
{
    struct tensor_names *t = what;
    free(t->names);
    free(t->slots);
}

struct tensor_names *tensor_names_open(struct arena *a)
{
    struct tensor_names *t = arena_alloc(a, sizeof *t);
    if (!t) return NULL;
    t->arena = a;
    return arena_defer(a, release_names, t, NULL) == ERR_OK ? t : NULL;
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

static bool grow(struct tensor_names *t)
{
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : SLOTS_MIN / 2;
        struct name *grown = realloc(t->names, room * sizeof *grown);
        if (!grown) return false;
        t->names = grown;
        t->room = room;
    }
    if (2 * (t->n + 1) <= t->slots_n) return true;
    const size_t slots_n = t->slots_n ? 2 * t->slots_n : SLOTS_MIN;
    uint32_t *slots = calloc(slots_n, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < t->n; i++) {
        size_t at = t->names[i].hash & (slots_n - 1);
        while (slots[at]) at = (at + 1) & (slots_n - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->slots_n = slots_n;
    return true;
}

/* The slot that holds the name, or the empty one where it would go; -1 beyond the limit. */
static int64_t probe(const struct tensor_names *t, const char *s, size_t len, uint32_t hash)
{
    size_t at = hash & (t->slots_n - 1);
    for (size_t tries = 0; tries < PROBES_MAX; tries++, at = (at + 1) & (t->slots_n - 1)) {
        if (t->slots[at] == 0) return (int64_t)at;
        const struct name *k = &t->names[t->slots[at] - 1];
        if (k->hash == hash && k->len == len && memcmp(k->s, s, len) == 0) return (int64_t)at;
    }
    return -1;
}

enum err_code tensor_names_add(struct tensor_names *t, const char *s, size_t len, int32_t *number, bool *fresh,
                               struct err *e)
{
    if (t->n >= TENSORS_MAX) return err_set(e, ERR_INPUT, "more than %d names", (int)TENSORS_MAX);
    if (!grow(t)) return err_nomem(e);
    const uint32_t hash = hash_of(s, len);
    const int64_t at = probe(t, s, len, hash);
    if (at < 0) return err_set(e, ERR_INPUT, "names that were made to collide");
    *fresh = t->slots[at] == 0;
    if (*fresh) {
        const char *kept = arena_strndup(t->arena, s, len);
        if (!kept) return err_nomem(e);
        t->names[t->n] = (struct name){kept, (uint32_t)len, hash};
        t->slots[at] = (uint32_t)++t->n;
    }
    *number = (int32_t)t->slots[at] - 1;
    return ERR_OK;
}

int32_t tensor_names_find(const struct tensor_names *t, const char *s, size_t len)
{
    const int64_t at = t->slots_n ? probe(t, s, len, hash_of(s, len)) : -1;
    return at < 0 ? -1 : (int32_t)t->slots[at] - 1;
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
    const bool whole = !over && t->elems % t->type->block_elems == 0 &&
                       (t->dims == 0 || t->shape[t->dims - 1] % t->type->block_elems == 0 || !t->type->quantised);
    if (!over && !whole)
        return err_set(e, ERR_INPUT, "%s: tensor '%s': its shape is no whole number of %s blocks of %lld elements",
                       src->name, tensor_clean(name, t->name, strlen(t->name)), t->type->name,
                       (long long)t->type->block_elems);
    if (over || __builtin_mul_overflow(t->elems / t->type->block_elems, t->type->block_bytes, &t->bytes))
        return err_set(e, ERR_INPUT, "%s: tensor '%s': the product of its shape is beyond 64 bits", src->name,
                       tensor_clean(name, t->name, strlen(t->name)));
    return ERR_OK;
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
    if (tensor_names_add(b->names, name, name_len, &number, &fresh, b->err) != ERR_OK)
        return err_prepend(b->err, "%s: ", src->name);
    if (!fresh)
        return err_set(b->err, ERR_INPUT, "%s: tensor '%s' is there twice", src->name,
                       tensor_clean(clean, name, name_len));
    if (b->n == b->room) {
        const size_t room = b->room ? 2 * b->room : 512;
        struct tensor *grown = realloc(b->tensors, room * sizeof *grown);
        if (!grown) return err_nomem(b->err);
        b->tensors = grown;
        b->room = room;
    }
    struct tensor *out = &b->tensors[b->n];
    *out = *t;
    out->name = tensor_names_at(b->names, number);
    if (out->type) TRY(measure(src, out, b->err));
    b->n++;
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
    free(b->tensors);
    b->tensors = NULL;
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
