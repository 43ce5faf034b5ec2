/* tensors -- from a path to the set of tensors behind it: a file, an index with its shards, the parts of a split file.
 */
#include "calc/model/tensors.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/text.h"
#include "calc/model/tensors_index.h"
#include "calc/model/tensors_read.h"

static bool has_suffix(const char *s, const char *suffix)
{
    const size_t n = strlen(s), k = strlen(suffix);
    return n > k && strcmp(s + n - k, suffix) == 0;
}

/* ---- one file ---- */

static enum err_code read_shard(struct tensor_builder *b, bool gguf, const char *path, int shard,
                                struct tensor_shard *out)
{
    struct tensor_source src;
    TRY(tensor_source_open(b->arena, path, &src, b->err));
    *out = (struct tensor_shard){.path = path, .file_bytes = src.size_bytes};
    const enum err_code code = (gguf ? gguf_read : safetensors_read)(b, &src, shard, &out->header_bytes);
    (void)close(src.fd);
    return code;
}

/* ---- split GGUF ---- */

enum { SPLIT_TAIL = sizeof "-00001-of-00002.gguf" - 1 };

/* The number in five digits at s. */
static bool five_digits(const char *s, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < 5; i++) {
        if (s[i] < '0' || s[i] > '9') return false;
        *out = 10 * *out + (s[i] - '0');
    }
    return true;
}

/* "x-00002-of-00005.gguf": the part and how many there are; false for another name. */
static bool split_name(const char *path, int64_t *part, int64_t *parts)
{
    const size_t n = strlen(path);
    if (n < SPLIT_TAIL) return false;
    const char *tail = path + n - SPLIT_TAIL;
    return tail[0] == '-' && five_digits(tail + 1, part) && strncmp(tail + 6, "-of-", 4) == 0 &&
           five_digits(tail + 10, parts) && strcmp(tail + 15, ".gguf") == 0 && *part >= 1 && *part <= *parts;
}

/* An integer among the pairs from `first` on; fallback when it is not there. */
static int64_t meta_int(const struct tensor_builder *b, size_t first, const char *key, int64_t fallback)
{
    for (size_t i = first; i < b->meta_n; i++)
        if (strcmp(b->meta[i].key, key) == 0 && b->meta[i].kind == TENSOR_META_INT) return b->meta[i].integer;
    return fallback;
}

static enum err_code open_parts(struct tensor_builder *b, const char *path, int64_t parts, struct tensor_set *s)
{
    char clean[84];
    int64_t tensors = -1;
    s->shards = arena_array(b->arena, (size_t)parts, sizeof *s->shards);
    if (!s->shards) return err_nomem(b->err);
    for (int64_t i = 0; i < parts; i++) {
        const size_t first = b->meta_n;
        const char *name = arena_printf(b->arena, "%.*s-%05lld-of-%05lld.gguf", (int)(strlen(path) - SPLIT_TAIL), path,
                                        (long long)i + 1, (long long)parts);
        if (!name) return err_nomem(b->err);
        TRY(read_shard(b, true, name, (int)i, &s->shards[i]));
        tensor_clean(clean, name, strlen(name));
        const int64_t no = meta_int(b, first, "split.no", -1), count = meta_int(b, first, "split.count", -1);
        if (no < 0 || count < 0)
            return err_set(b->err, ERR_INPUT,
                           "%s: its name says part %lld of %lld, its metadata has no split.no and split.count", clean,
                           (long long)i, (long long)parts);
        if (no != i || count != parts)
            return err_set(b->err, ERR_INPUT,
                           "%s: its name says part %lld of %lld, its metadata part %lld of %lld (counted from 0)",
                           clean, (long long)i, (long long)parts, (long long)no, (long long)count);
        if (i == 0)
            tensors = meta_int(b, first, "split.tensors.count", -1);
        else
            b->meta_n = first;
    }
    if (tensors >= 0 && (uint64_t)tensors != b->n)
        return err_set(b->err, ERR_INPUT, "%s: %zu tensors in all parts, but split.tensors.count is %lld", clean, b->n,
                       (long long)tensors);
    s->shards_n = (size_t)parts;
    return ERR_OK;
}

static enum err_code open_gguf(struct tensor_builder *b, const char *path, struct tensor_set *s)
{
    int64_t part, parts;
    char clean[84];
    s->format = TENSOR_FORMAT_GGUF;
    if (split_name(path, &part, &parts)) return open_parts(b, path, parts, s);
    s->shards = arena_array(b->arena, 1, sizeof *s->shards);
    if (!s->shards) return err_nomem(b->err);
    s->shards_n = 1;
    TRY(read_shard(b, true, path, 0, &s->shards[0]));
    const int64_t count = meta_int(b, 0, "split.count", 1);
    if (count > 1)
        return err_set(b->err, ERR_INPUT,
                       "%s: one of %lld parts, but not named ...-00001-of-%05lld.gguf, so the others cannot be found",
                       tensor_clean(clean, path, strlen(path)), (long long)count, (long long)count);
    return ERR_OK;
}

/* ---- safetensors ---- */

static enum err_code open_single(struct tensor_builder *b, const char *path, struct tensor_set *s)
{
    s->format = TENSOR_FORMAT_SAFETENSORS;
    s->shards = arena_array(b->arena, 1, sizeof *s->shards);
    if (!s->shards) return err_nomem(b->err);
    s->shards_n = 1;
    return read_shard(b, false, path, 0, &s->shards[0]);
}

/* The tensors of an index without any of its shards. */
static void take_names(struct tensor_builder *b, const struct tensor_index *x, struct tensor_set *s)
{
    s->format = TENSOR_FORMAT_INDEX;
    s->headers_missing = true;
    for (size_t i = 0; i < x->n; i++)
        b->tensors[b->n++] = (struct tensor){.name = tensor_names_at(b->names, (int32_t)i),
                                             .elems = TENSOR_UNKNOWN,
                                             .bytes = TENSOR_UNKNOWN,
                                             .begin_bytes = TENSOR_UNKNOWN,
                                             .shard = x->shard_of[i]};
    for (size_t i = 0; i < s->shards_n; i++) s->shards[i].file_bytes = s->shards[i].header_bytes = TENSOR_UNKNOWN;
}

/* Which shards are there. */
static enum err_code look(struct tensor_builder *b, const struct tensor_index *x, struct tensor_set *s, size_t *present,
                          size_t *absent)
{
    *present = 0;
    *absent = x->shards_n;
    for (size_t i = 0; i < x->shards_n; i++) {
        s->shards[i].path = arena_printf(b->arena, "%s%s", x->directory, tensor_names_at(x->shards, (int32_t)i));
        if (!s->shards[i].path) return err_nomem(b->err);
        const bool there = access(s->shards[i].path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
        if (there)
            ++*present;
        else if (*absent == x->shards_n)
            *absent = i;
    }
    return ERR_OK;
}

static enum err_code open_index(struct tensor_builder *b, const char *path, struct tensor_set *s)
{
    struct tensor_index x;
    size_t present, absent;
    char clean[84];
    TRY(tensor_index_read(b, path, &x));
    s->format = TENSOR_FORMAT_SAFETENSORS;
    s->index_total_bytes = x.total_bytes;
    s->index_total_params = x.total_params;
    s->shards_n = x.shards_n;
    s->shards = arena_array(b->arena, x.shards_n ? x.shards_n : 1, sizeof *s->shards);
    if (!s->shards) return err_nomem(b->err);
    TRY(look(b, &x, s, &present, &absent));
    TRY(tensor_builder_expect(b, x.shard_of, x.n, !x.escapes));
    if (x.pickles || present == 0) {
        take_names(b, &x, s);
        return ERR_OK;
    }
    if (absent < x.shards_n)
        return err_set(b->err, ERR_IO, "%s: shard '%s' is missing (%zu of %zu are there)", x.file,
                       tensor_clean(clean, tensor_names_at(x.shards, (int32_t)absent),
                                    strlen(tensor_names_at(x.shards, (int32_t)absent))),
                       present, x.shards_n);
    for (size_t i = 0; i < x.shards_n; i++) TRY(read_shard(b, false, s->shards[i].path, (int)i, &s->shards[i]));
    return tensor_index_check(b, &x);
}

/* ---- directories ---- */

/* What a directory holds of one kind: how many, and the first by name. */
struct found {
    size_t n;
    char name[256];
};

enum found_kind { FOUND_INDEX, FOUND_SAFETENSORS, FOUND_GGUF, FOUND_PICKLE_INDEX, FOUND_KINDS };

static enum found_kind kind_of(const char *name)
{
    int64_t part, parts;
    if (has_suffix(name, ".safetensors.index.json")) return FOUND_INDEX;
    if (has_suffix(name, ".bin.index.json")) return FOUND_PICKLE_INDEX;
    if (has_suffix(name, ".safetensors")) return FOUND_SAFETENSORS;
    if (has_suffix(name, ".gguf") && !(split_name(name, &part, &parts) && part > 1)) return FOUND_GGUF;
    return FOUND_KINDS;
}

static enum err_code look_around(const char *path, struct found found[FOUND_KINDS], struct err *e)
{
    static const char *const USUAL[FOUND_KINDS] = {"model.safetensors.index.json", "model.safetensors", "",
                                                   "pytorch_model.bin.index.json"};
    char clean[84];
    DIR *d = opendir(path);
    if (!d) return err_set(e, ERR_IO, "%s: cannot open: %s", tensor_clean(clean, path, strlen(path)), strerror(errno));
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        const size_t len = strlen(entry->d_name);
        const enum found_kind k = kind_of(entry->d_name);
        if (entry->d_name[0] == '.' || k == FOUND_KINDS || len >= sizeof found[k].name) continue;
        const bool usual = found[k].n > 0 && strcmp(found[k].name, USUAL[k]) == 0;
        found[k].n++;
        if (found[k].n == 1 || strcmp(entry->d_name, USUAL[k]) == 0 ||
            (!usual && strcmp(entry->d_name, found[k].name) < 0))
            memcpy(found[k].name, entry->d_name, len + 1);
    }
    (void)closedir(d);
    for (enum found_kind k = FOUND_INDEX; k < FOUND_KINDS; k++)
        if (found[k].n > 1 && strcmp(found[k].name, USUAL[k]) == 0) found[k].n = 1;
    return ERR_OK;
}

static enum err_code open_path(struct tensor_builder *b, const char *path, struct tensor_set *s);

static enum err_code open_directory(struct tensor_builder *b, const char *path, struct tensor_set *s)
{
    struct found found[FOUND_KINDS] = {{0}};
    char clean[84];
    const size_t len = strlen(path);
    TRY(look_around(path, found, b->err));
    for (enum found_kind k = FOUND_INDEX; k < FOUND_KINDS; k++) {
        if (found[k].n == 0) continue;
        if (found[k].n > 1)
            return err_set(b->err, ERR_IO, "%s: %zu files like '%s' and no index over them: name one",
                           tensor_clean(clean, path, len), found[k].n, found[k].name);
        const char *file = arena_printf(b->arena, "%s%s%s", path, path[len - 1] == '/' ? "" : "/", found[k].name);
        return file ? open_path(b, file, s) : err_nomem(b->err);
    }
    return err_set(b->err, ERR_IO, "%s: no .safetensors, no index of them and no .gguf in this directory",
                   tensor_clean(clean, path, len));
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum err_code open_path(struct tensor_builder *b, const char *path, struct tensor_set *s)
{
    char clean[84];
    if (has_suffix(path, ".gguf")) return open_gguf(b, path, s);
    if (has_suffix(path, ".safetensors")) return open_single(b, path, s);
    if (has_suffix(path, ".index.json")) return open_index(b, path, s);
    return err_set(b->err, ERR_USAGE, "'%s': wanted a .safetensors file, a ....index.json, a .gguf or their directory",
                   tensor_clean(clean, path, strlen(path)));
}

bool tensors_present(const char *path, enum tensor_format *format)
{
    static const enum tensor_format FORMATS[FOUND_KINDS] = {
        [FOUND_INDEX] = TENSOR_FORMAT_SAFETENSORS,
        [FOUND_SAFETENSORS] = TENSOR_FORMAT_SAFETENSORS,
        [FOUND_GGUF] = TENSOR_FORMAT_GGUF,
        [FOUND_PICKLE_INDEX] = TENSOR_FORMAT_INDEX,
    };
    struct found found[FOUND_KINDS] = {{0}};
    enum found_kind k = FOUND_INDEX;
    if (!is_directory(path)) {
        k = has_suffix(path, ".gguf") ? FOUND_GGUF : kind_of(path);
    } else {
        if (look_around(path, found, NULL) != ERR_OK) return false;
        while (k < FOUND_KINDS && found[k].n == 0) k++;
    }
    if (k == FOUND_KINDS) return false;
    *format = FORMATS[k];
    return true;
}

/* ---- the whole ---- */

static enum err_code sum_up(struct tensor_builder *b, struct tensor_set *s)
{
    char clean[84];
    if (s->headers_missing) {
        s->total_bytes = s->total_elems = TENSOR_UNKNOWN;
        return ERR_OK;
    }
    for (size_t i = 0; i < s->n; i++)
        if (__builtin_add_overflow(s->total_bytes, s->tensors[i].bytes, &s->total_bytes) ||
            __builtin_add_overflow(s->total_elems, s->tensors[i].elems, &s->total_elems))
            return err_set(b->err, ERR_INPUT, "%s: the sum of all tensors is beyond 64 bits",
                           tensor_clean(clean, s->shards[0].path, strlen(s->shards[0].path)));
    if (isnan(s->index_total_bytes) || s->index_total_bytes == (double)s->total_bytes) return ERR_OK;
    s->notes = arena_printf(b->arena, "the index says %.0f bytes, its tensors hold %lld", s->index_total_bytes,
                            (long long)s->total_bytes);
    return s->notes ? ERR_OK : err_nomem(b->err);
}

enum err_code tensors_open(struct arena *a, const char *path, struct tensor_set *out, struct err *e)
{
    struct tensor_set s = {.index_total_bytes = (double)NAN, .index_total_params = (double)NAN};
    struct tensor_builder b = {.arena = a, .err = e, .names = tensor_names_open(a)};
    if (!b.names) return err_nomem(e);
    const enum err_code code = *path == '\0'        ? err_set(e, ERR_USAGE, "the path is empty")
                               : is_directory(path) ? open_directory(&b, path, &s)
                                                    : open_path(&b, path, &s);
    tensor_builder_close(&b);
    TRY(code);
    s.tensors = b.tensors;
    s.n = b.n;
    s.meta = b.meta;
    s.meta_n = b.meta_n;
    TRY(sum_up(&b, &s));
    *out = s;
    return ERR_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const struct tensor_total *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

enum err_code tensors_totals(struct arena *a, const struct tensor_set *s, struct tensor_total **out, size_t *out_n,
                             struct err *e)
{
    enum { TYPES_MAX = 64 }; /* more than both tables hold */
    struct tensor_total *t = arena_array(a, TYPES_MAX, sizeof *t);
    size_t n = 0;
    if (!t) return err_nomem(e);
    for (size_t i = 0; i < s->n; i++) {
        size_t k = 0;
        while (k < n && t[k].type != s->tensors[i].type) k++;
        if (k == n) t[n++] = (struct tensor_total){.type = s->tensors[i].type};
        t[k].tensors++;
        if (!s->tensors[i].type) continue;
        t[k].elems += s->tensors[i].elems;
        t[k].bytes += s->tensors[i].bytes;
    }
    if (s->headers_missing)
        for (size_t k = 0; k < n; k++) t[k].elems = t[k].bytes = TENSOR_UNKNOWN;
    if (n) qsort(t, n, sizeof *t, by_bytes);
    *out = t;
    *out_n = n;
    return ERR_OK;
}

bool tensors_plain(const struct tensor_set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct tensor_type *t = s->tensors[i].type;
        if (i > 0 && t == s->tensors[i - 1].type) continue;
        if (!t || t->quantised || t->block_bytes < 2 * t->block_elems || !strchr(t->name, 'F')) return false;
    }
    return true;
}

const struct tensor *tensors_find(const struct tensor_set *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->tensors[i].name, name) == 0) return &s->tensors[i];
    return NULL;
}

const struct tensor_meta *tensors_meta(const struct tensor_set *s, const char *key)
{
    for (size_t i = 0; i < s->meta_n; i++)
        if (strcmp(s->meta[i].key, key) == 0) return &s->meta[i];
    return NULL;
}
