#include "calc/model/tensors_index.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"

/* A total is informative only: one that is no number, or 0, counts as absent. */
static enum err_code read_total(struct json_scan *s, double *out)
{
    const char c = json_scan_peek(s);
    if (c != '-' && (c < '0' || c > '9')) return json_scan_skip(s);
    double v;
    TRY(json_scan_number(s, &v));
    *out = v > 0 ? v : (double)NAN;
    return ERR_OK;
}

static enum err_code read_metadata(struct json_scan *s, struct tensor_index *x)
{
    struct json_text key;
    bool more;
    if (json_scan_peek(s) != '{') return json_scan_skip(s);
    TRY(json_scan_object(s));
    for (;;) {
        TRY(json_scan_member(s, &key, &more));
        if (!more) return ERR_OK;
        if (json_text_is(key, "total_size"))
            TRY(read_total(s, &x->total_bytes));
        else if (json_text_is(key, "total_parameters"))
            TRY(read_total(s, &x->total_params));
        else
            TRY(json_scan_skip(s));
    }
}

/* A shard is a plain file beside the index. */
static bool leaves_directory(struct json_text t)
{
    return t.len == 0 || t.len > 255 || t.s[0] == '.' || memchr(t.s, '/', t.len) || memchr(t.s, '\\', t.len);
}

static bool is_safetensors(struct json_text t)
{
    static const char TAIL[] = ".safetensors";
    const size_t n = sizeof TAIL - 1;
    return t.len > n && memcmp(t.s + t.len - n, TAIL, n) == 0;
}

/* The shard of a tensor; last, shard: the text of the one before, quotes and all, and its number. */
static enum err_code read_shard_name(struct tensor_builder *b, struct json_scan *s, struct tensor_index *x,
                                     struct json_text *last, int32_t *shard)
{
    struct json_text file;
    char clean[84];
    bool fresh;
    (void)json_scan_peek(s);
    const size_t start = s->at;
    if (last->len && s->len - start > last->len && memcmp(s->text + start, last->s, last->len) == 0) {
        s->at += last->len; /* neighbours are mostly in the same one */
        return ERR_OK;
    }
    TRY(json_scan_text(s, &file));
    *last = (struct json_text){s->text + start, s->at - start};
    if (leaves_directory(file))
        return err_set(b->err, ERR_INPUT, "%s: shard '%s' is not the name of a file beside the index", x->file,
                       tensor_clean(clean, file.s, file.len));
    if (tensor_names_add(x->shards, file.s, file.len, shard, &fresh, b->err) != ERR_OK)
        return err_prepend(b->err, "%s: shards: ", x->file);
    if (!fresh) return ERR_OK;
    if (++x->shards_n > TENSOR_SHARDS_MAX)
        return err_set(b->err, ERR_INPUT, "%s: more than %d shards", x->file, (int)TENSOR_SHARDS_MAX);
    if (!is_safetensors(file)) x->pickles = true;
    return ERR_OK;
}

/* Room for one more in shard_of, doubled in the arena; at first for as many tensors as text of len bytes may name. */
static enum err_code reserve(struct tensor_builder *b, struct tensor_index *x, size_t len, size_t *room)
{
    if (x->n < *room) return ERR_OK;
    *room = *room ? 2 * *room : len / TENSOR_ENTRY_BYTES + 1;
    int32_t *grown = arena_array(b->arena, *room, sizeof *grown);
    if (!grown) return err_nomem(b->err);
    if (x->n) memcpy(grown, x->shard_of, x->n * sizeof *grown);
    x->shard_of = grown;
    return ERR_OK;
}

/* Names on their way into the set, while what they need comes from memory. */
enum { WAITING_MAX = 16 };

struct waiting {
    struct json_text name[WAITING_MAX];
    uint32_t hash[WAITING_MAX];
    size_t in, out; /* how many came and went */
};

static enum err_code take_in(struct tensor_builder *b, const struct tensor_index *x, struct waiting *w)
{
    char clean[84];
    bool fresh;
    const size_t i = w->out++ % WAITING_MAX;
    const struct json_text name = w->name[i];
    if (name.len == 0 || name.len > TENSOR_NAME_MAX)
        return err_set(b->err, ERR_INPUT, "%s: weight_map: a tensor's name of %zu bytes, wanted 1 to %d", x->file,
                       name.len, (int)TENSOR_NAME_MAX);
    if (tensor_names_keep(b->names, name.s, name.len, w->hash[i], &fresh, b->err) != ERR_OK)
        return err_prepend(b->err, "%s: weight_map: ", x->file);
    if (fresh) return ERR_OK;
    return err_set(b->err, ERR_INPUT, "%s: weight_map: tensor '%s' is there twice", x->file,
                   tensor_clean(clean, name.s, name.len));
}

/* Names stay where they are in the text: a NUL goes over the closing quote. */
static enum err_code read_map(struct tensor_builder *b, struct json_scan *s, char *text, struct tensor_index *x)
{
    struct waiting w = {.in = 0};
    struct json_text key, last = {NULL, 0};
    bool more;
    int32_t shard = -1;
    size_t room = 0;
    TRY(json_scan_object(s));
    for (;;) {
        TRY(json_scan_member(s, &key, &more));
        if (!more) break;
        const bool in_text = (uintptr_t)key.s >= (uintptr_t)text && (uintptr_t)key.s < (uintptr_t)(text + s->len);
        if (in_text) text[(size_t)(key.s - text) + key.len] = '\0';
        x->escapes = x->escapes || !in_text;
        if (w.in - w.out == WAITING_MAX) TRY(take_in(b, x, &w));
        w.name[w.in % WAITING_MAX] = key;
        w.hash[w.in++ % WAITING_MAX] = tensor_names_expect(b->names, key.s, key.len);
        TRY(reserve(b, x, s->len, &room));
        TRY(read_shard_name(b, s, x, &last, &shard));
        x->shard_of[x->n++] = shard;
    }
    while (w.out < w.in) TRY(take_in(b, x, &w));
    return ERR_OK;
}

enum err_code tensor_index_parse(struct tensor_builder *b, const char *name, char *text, size_t len,
                                 struct tensor_index *out)
{
    struct tensor_index x = {.file = name, .directory = "", .total_bytes = (double)NAN, .total_params = (double)NAN};
    struct json_scan s = json_scan_open(b->arena, name, text, len, b->err);
    struct json_text key;
    bool more, mapped = false;
    x.shards = tensor_names_open(b->arena);
    if (!x.shards || !tensor_names_reserve(b->names, len / TENSOR_ENTRY_BYTES)) return err_nomem(b->err);
    TRY(json_scan_object(&s));
    for (;;) {
        TRY(json_scan_member(&s, &key, &more));
        if (!more) break;
        const bool map = json_text_is(key, "weight_map");
        if (map && mapped) return json_scan_want(&s, "weight_map once");
        mapped = mapped || map;
        if (map)
            TRY(read_map(b, &s, text, &x));
        else if (json_text_is(key, "metadata"))
            TRY(read_metadata(&s, &x));
        else
            TRY(json_scan_skip(&s));
    }
    if (!mapped) return err_set(b->err, ERR_INPUT, "%s: no weight_map: not an index of a checkpoint", name);
    *out = x;
    return ERR_OK;
}

enum err_code tensor_index_read(struct tensor_builder *b, const char *path, struct tensor_index *out)
{
    struct tensor_source src;
    TRY(tensor_source_open(b->arena, path, &src, b->err));
    enum err_code code = ERR_OK;
    char *text = NULL;
    if (src.size_bytes > TENSOR_HEADER_MAX_BYTES)
        code = err_set(b->err, ERR_INPUT, "%s: an index of %lld bytes, wanted at most %d", src.name,
                       (long long)src.size_bytes, (int)TENSOR_HEADER_MAX_BYTES);
    else if ((text = arena_alloc(b->arena, (size_t)src.size_bytes + 1)) == NULL)
        code = err_nomem(b->err);
    if (code == ERR_OK) code = tensor_source_read(&src, 0, text, (size_t)src.size_bytes, b->err);
    (void)close(src.fd);
    TRY(code);
    TRY(tensor_index_parse(b, src.name, text, (size_t)src.size_bytes, out));
    const char *slash = strrchr(path, '/');
    out->directory = slash ? arena_strndup(b->arena, path, (size_t)(slash - path) + 1) : "";
    return out->directory ? ERR_OK : err_nomem(b->err);
}

/* ---- against the shards ---- */

/* Sentences joined while there is room. */
struct complaints {
    char text[560];
    size_t used, n, told;
};

static void complain(struct complaints *c, const char *name, const char *what, const char *where)
{
    char clean[84], at[84];
    c->n++;
    if (c->told + 1 < c->n) return;
    const int len =
        snprintf(c->text + c->used, sizeof c->text - c->used, "%s'%s' %s%s", c->n == 1 ? "" : "; ",
                 tensor_clean(clean, name, strlen(name)), what, where ? tensor_clean(at, where, strlen(where)) : "");
    if (len < 0 || (size_t)len >= sizeof c->text - c->used) {
        c->text[c->used] = '\0';
        return;
    }
    c->used += (size_t)len;
    c->told = c->n;
}

enum err_code tensor_index_check(const struct tensor_builder *b, const struct tensor_index *x)
{
    struct complaints c = {.used = 0};
    /* names are distinct on both sides: as many, and all where they should be, are the same */
    if (b->strangers == 0 && b->n == x->n) return ERR_OK;
    for (size_t i = 0; i < b->n; i++) {
        const struct tensor *t = &b->tensors[i];
        const int32_t number = tensor_names_find(b->names, t->name, strlen(t->name));
        if (number < 0 || (size_t)number >= x->n)
            complain(&c, t->name, "is not in the index but in ", tensor_names_at(x->shards, t->shard));
        else if (x->shard_of[number] != t->shard)
            complain(&c, t->name, "is not where the index says but in ", tensor_names_at(x->shards, t->shard));
    }
    for (size_t i = 0; i < x->n; i++)
        if (!b->seen[i]) complain(&c, tensor_names_at(b->names, (int32_t)i), "is in no shard", NULL);
    if (c.told < c.n) return err_set(b->err, ERR_INPUT, "%s: %s; and %zu more", x->file, c.text, c.n - c.told);
    return err_set(b->err, ERR_INPUT, "%s: %s", x->file, c.text);
}
