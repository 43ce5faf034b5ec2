#include "calc/base/json.h"
#include "calc/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/json_scan.h"
#include "calc/base/text.h"
#include "calc/base/units.h"

#define json_bool json_c_bool /* json-c has a type of this name, json.h a function */
#include <json-c/json.h>
#undef json_bool

enum {
    FILE_MAX_BYTES = 4 << 20,
    DEPTH_MAX = 64,
    VALUES_MAX = 1 << 17, /* json-c spends 70-150 bytes on a number, 300-700 on an empty list */
    FOUND_MAX = 48,
    NAME_MAX_BYTES = 200,
};

/* -- reading -- */

struct bytes {
    char *data; /* malloc; one spare byte behind len for the final NUL */
    size_t len;
};

static enum err_code too_large(const char *name, struct err *e)
{
    return err_set(e, ERR_INPUT, "%s: larger than 4 MiB, wanted a JSON file such as config.json", name);
}

static enum err_code read_all(int fd, const char *name, struct bytes *b, struct err *e)
{
    size_t room = 0;
    for (;;) {
        if (b->len + 1 >= room) {
            room = room ? 2 * room : 64 * 1024; /* not a unit */
            char *grown = realloc(b->data, room);
            if (!grown) return err_nomem(e);
            b->data = grown;
        }
        const ssize_t n = read(fd, b->data + b->len, room - b->len - 1);
        if (n == 0) break;
        if (n < 0) {
            if (errno == EINTR) continue;
            return err_set(e, ERR_IO, "%s: cannot read: %s", name, strerror(errno));
        }
        b->len += (size_t)n;
        if (b->len > FILE_MAX_BYTES) return too_large(name, e);
    }
    b->data[b->len] = '\0';
    return ERR_OK;
}

/* Why a file does not open: of a link also what it leads to. */
static enum err_code no_file(const char *path, const char *name, int why, struct err *e)
{
    char to[NAME_MAX_BYTES], clean[NAME_MAX_BYTES];
    const ssize_t n = readlink(path, to, sizeof to);
    if (n > 0 && why == ENOENT)
        return err_set(e, ERR_IO, "%s: is a link to %s, where there is no file", name,
                       text_clean(clean, sizeof clean, to, (size_t)n));
    if (n > 0 && why == ELOOP)
        return err_set(e, ERR_IO, "%s: is a link to %s, and following it never ends", name,
                       text_clean(clean, sizeof clean, to, (size_t)n));
    return err_set(e, ERR_IO, "%s: cannot open: %s", name, strerror(why));
}

/* A pipe has something to read, or had a writer that has gone; one that nobody opens is waited for no longer. */
static enum err_code await_writer(int fd, const char *name, struct err *e)
{
    enum { WAIT_MS = 2000 };
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do n = poll(&p, 1, WAIT_MS);
    while (n < 0 && errno == EINTR);
    if (n < 0) return err_set(e, ERR_IO, "%s: cannot read: %s", name, strerror(errno));
    return n > 0 ? ERR_OK : err_set(e, ERR_IO, "%s: is a pipe, and nobody writes to it", name);
}

static enum err_code read_file(const char *path, const char *name, struct bytes *b, struct err *e)
{
    /* without O_NONBLOCK opening a pipe waits for who writes it */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const bool inherited = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    if (fd < 0) return no_file(path, name, errno, e);
    struct stat st;
    enum err_code code = ERR_OK;
    if (fstat(fd, &st) != 0)
        code = err_set(e, ERR_IO, "%s: cannot read: %s", name, strerror(errno));
    else if (S_ISDIR(st.st_mode))
        code = err_set(e, ERR_IO, "%s: is a directory, wanted a JSON file", name);
    else if (S_ISFIFO(st.st_mode) && !inherited && await_writer(fd, name, e) != ERR_OK)
        code = e ? e->code : ERR_IO;
    else if (fcntl(fd, F_SETFL, 0) != 0)
        code = err_set(e, ERR_IO, "%s: cannot read: %s", name, strerror(errno));
    else if (S_ISREG(st.st_mode) && st.st_size > FILE_MAX_BYTES)
        code = too_large(name, e);
    else
        code = read_all(fd, name, b, e);
    (void)close(fd);
    return code;
}

/* -- parsing -- */

static void release_document(void *obj) { (void)json_object_put(obj); }

static size_t line_at(const char *text, size_t offset)
{
    size_t line = 1;
    for (const char *p = text, *end = text + offset; (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++) line++;
    return line;
}

static enum err_code syntax_error(const char *name, const char *text, size_t len, size_t at,
                                  enum json_tokener_error why, struct err *e)
{
    if (at > len) at = len;
    const size_t line = line_at(text, at);
    const size_t rest = len - at;
    char found[24];
    if (len == 0) return err_set(e, ERR_INPUT, "%s: line 1: the file is empty, wanted a JSON value", name);
    if (why == json_tokener_error_depth)
        return err_set(e, ERR_INPUT, "%s: line %zu: nested deeper than %d levels", name, line, (int)DEPTH_MAX);
    if ((rest > 0 && text[at] == '\0') || (at > 0 && text[at - 1] == '\0')) /* json-c stops at it or just behind */
        return err_set(e, ERR_INPUT, "%s: line %zu: found a NUL byte, wanted JSON text", name, line);
    if (why == json_tokener_continue || why == json_tokener_error_parse_eof || rest == 0)
        return err_set(e, ERR_INPUT,
                       "%s: line %zu: ends before the value is complete, wanted the rest of the JSON text", name, line);
    return err_set(e, ERR_INPUT, "%s: line %zu: %s, found \"%s\"", name, line, json_tokener_error_desc(why),
                   text_clean(found, sizeof found, text + at, rest < 40 ? rest : 40));
}

/* What json-c would spend memory on: objects, lists, and what stands behind a comma outside of texts. The rest of
 * malformed text may be miscounted. */
static bool too_many_values(const char *text, size_t len)
{
    size_t n = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++)
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            n += text[i] == ',' || text[i] == '{' || text[i] == '[';
    return n > VALUES_MAX;
}

/* The first ill-formed UTF-8 byte in text, len when there is none. */
static size_t find_bad_utf8(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        const size_t n = text_utf8_len(text + i, len - i, NULL);
        if (n == 0) return i;
        i += n;
    }
    return len;
}

/* Two bytes a character: a mark says it, or the NUL byte beside the first character. */
static bool is_utf16(const char *text, size_t len)
{
    return len >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0 ||
                        (text[0] == '\0') != (text[1] == '\0'));
}

/* text[len] is readable and NUL: json-c needs the end marked to finish a bare number. */
static enum err_code parse_text(struct arena *a, const char *name, const char *text, size_t len, struct json *out,
                                struct err *e)
{
    const size_t skip = len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* byte order mark */
    text += skip;
    len -= skip;
    if (is_utf16(text, len))
        return err_set(e, ERR_INPUT, "%s: UTF-16 text, wanted UTF-8 (iconv -f UTF-16 -t UTF-8)", name);
    if (too_many_values(text, len))
        return err_set(e, ERR_INPUT, "%s: more than %d values, wanted a JSON file such as config.json", name,
                       (int)VALUES_MAX);
    struct json_tokener *tok = json_tokener_new_ex(DEPTH_MAX);
    if (!tok) return err_nomem(e);
    struct json_object *obj = json_tokener_parse_ex(tok, text, (int)len + 1);
    const enum json_tokener_error why = json_tokener_get_error(tok);
    const size_t end = json_tokener_get_parse_end(tok);
    json_tokener_free(tok);
    if (why != json_tokener_success) return syntax_error(name, text, len, end, why, e);
    if (obj) TRY(arena_defer(a, release_document, obj, e));
    const size_t used = end < len ? end : len, bad = find_bad_utf8(text, used);
    if (bad < used)
        return err_set(e, ERR_INPUT, "%s: line %zu: found byte 0x%02X, wanted UTF-8 text", name, line_at(text, bad),
                       (unsigned)(unsigned char)text[bad]);
    const char *kept = arena_strndup(a, name, strlen(name));
    if (!kept) return err_nomem(e);
    *out = (struct json){.obj = obj, .file = kept, .path = "", .arena = a};
    return ERR_OK;
}

static enum err_code check_whole(struct arena *a, const char *name, const struct bytes *b, bool strict, struct err *e)
{
    struct json_scan s = json_scan_open(a, name, b->data, b->len, e);
    s.words = !strict;
    return json_scan_all(&s);
}

/* What unpacks a compressed file, by its first bytes; NULL: it is none. */
static const char *unpacker(const char *text, size_t len, const char **what)
{
    static const struct {
        const char *first, *what, *tool;
        size_t len;
    } PACKED[] = {{"\x1F\x8B", "gzip", "gzip -dc", 2},
                  {"\x28\xB5\x2F\xFD", "zstd", "zstd -dc", 4},
                  {"\xFD"
                   "7zXZ",
                   "xz", "xz -dc", 5},
                  {"BZh", "bzip2", "bzip2 -dc", 3},
                  {"\x04\x22\x4D\x18", "lz4", "lz4 -dc", 4},
                  {"PK\x03\x04", "zip", "unzip -p", 4}};
    for (size_t i = 0; i < sizeof PACKED / sizeof PACKED[0]; i++) {
        if (len < PACKED[i].len || memcmp(text, PACKED[i].first, PACKED[i].len) != 0) continue;
        *what = PACKED[i].what;
        return PACKED[i].tool;
    }
    return NULL;
}

static enum err_code load(struct arena *a, const char *path, bool strict, struct json *out, struct err *e)
{
    char name[NAME_MAX_BYTES];
    text_clean(name, sizeof name, path, strlen(path));
    struct bytes b = {0};
    enum err_code code = read_file(path, name, &b, e);
    if (code == ERR_OK && text_is_pointer(b.data, b.len))
        code = err_set(e, ERR_INPUT, "%s: a Git LFS pointer, not the file it stands for: git lfs pull", name);
    const char *packed = NULL, *tool = code == ERR_OK ? unpacker(b.data, b.len, &packed) : NULL;
    if (tool)
        code = err_set(e, ERR_INPUT, "%s: compressed with %s, wanted JSON text: unpack it first (%s FILE)", name,
                       packed, tool);
    if (code == ERR_OK && strict) code = check_whole(a, name, &b, true, e);
    if (code == ERR_OK) code = parse_text(a, name, b.data, b.len, out, e);
    if (code == ERR_OK && !strict) code = check_whole(a, name, &b, false, e);
    free(b.data);
    return code;
}

enum err_code json_load(struct arena *a, const char *path, struct json *out, struct err *e)
{
    return load(a, path, false, out, e);
}

enum err_code json_load_strict(struct arena *a, const char *path, struct json *out, struct err *e)
{
    return load(a, path, true, out, e);
}

enum err_code json_copy(const struct json *j, struct json *out, struct err *e)
{
    struct json_object *copy = NULL;
    *out = *j;
    if (!j->obj) return ERR_OK;
    if (json_object_deep_copy(j->obj, &copy, NULL) != 0) return err_nomem(e);
    out->obj = copy;
    return arena_defer(j->arena, release_document, copy, e);
}

enum err_code json_parse(struct arena *a, const char *name, const char *text, size_t len, struct json *out,
                         struct err *e)
{
    char clean[NAME_MAX_BYTES];
    text_clean(clean, sizeof clean, name, strlen(name));
    if (len > FILE_MAX_BYTES) return too_large(clean, e);
    char *ended = malloc(len + 1);
    if (!ended) return err_nomem(e);
    if (len) memcpy(ended, text, len);
    ended[len] = '\0';
    const enum err_code code = parse_text(a, clean, ended, len, out, e);
    free(ended);
    return code;
}

/* -- walking -- */

static bool descend(const struct json *j, struct json_object *obj, const char *path, struct json *out)
{
    *out = (struct json){.obj = obj, .file = j->file, .path = path ? path : j->path, .arena = j->arena};
    return true;
}

static const char *member_path(const struct json *j, const char *key)
{
    return arena_printf(j->arena, "%s%s%s", j->path, j->path[0] ? "." : "", key);
}

bool json_get(const struct json *j, const char *key, struct json *out)
{
    struct json_object *at = j->obj;
    for (const char *rest = key; json_object_is_type(at, json_type_object);) {
        struct json_object *member = NULL;
        if (json_object_object_get_ex(at, rest, &member)) /* a member may have dots in its own name */
            return member ? descend(j, member, member_path(j, key), out) : false;
        const char *dot = strchr(rest, '.');
        char head[128];
        if (!dot || (size_t)(dot - rest) >= sizeof head) return false;
        memcpy(head, rest, (size_t)(dot - rest));
        head[dot - rest] = '\0';
        if (!json_object_object_get_ex(at, head, &at)) return false;
        rest = dot + 1;
    }
    return false;
}

static void release_members(struct json_object *obj, void *members)
{
    (void)obj;
    free(members);
}

/* The members of an object by position. json-c chains them, so the first call lays them out in an array that lives with
 * the object: walking an object stays linear however long it is. */
static struct lh_entry *member_at(struct json_object *obj, size_t i)
{
    if (i >= (size_t)json_object_object_length(obj)) return NULL;
    struct lh_entry **members = json_object_get_userdata(obj);
    if (!members) {
        members = malloc((size_t)json_object_object_length(obj) * sizeof(struct lh_entry *));
        if (!members) return NULL;
        size_t n = 0;
        for (struct lh_entry *m = json_object_get_object(obj)->head; m; m = m->next) members[n++] = m;
        json_object_set_userdata(obj, members, release_members);
    }
    return members[i];
}

bool json_at(const struct json *j, size_t i, const char **key, struct json *out)
{
    if (json_object_is_type(j->obj, json_type_array)) {
        if (i >= json_object_array_length(j->obj)) return false;
        if (key) *key = NULL;
        return descend(j, json_object_array_get_idx(j->obj, i), arena_printf(j->arena, "%s[%zu]", j->path, i), out);
    }
    struct lh_entry *m = json_object_is_type(j->obj, json_type_object) ? member_at(j->obj, i) : NULL;
    if (!m) return false;
    const char *name = lh_entry_k(m);
    struct json_object *value = lh_entry_v(m);
    if (key) *key = name;
    return descend(j, value, member_path(j, name), out);
}

size_t json_len(const struct json *j)
{
    if (json_object_is_type(j->obj, json_type_array)) return json_object_array_length(j->obj);
    if (json_object_is_type(j->obj, json_type_object)) return (size_t)json_object_object_length(j->obj);
    return 0;
}

/* -- values -- */

bool json_is_object(const struct json *j) { return json_object_is_type(j->obj, json_type_object); }
bool json_is_array(const struct json *j) { return json_object_is_type(j->obj, json_type_array); }
bool json_is_string(const struct json *j) { return json_object_is_type(j->obj, json_type_string); }
bool json_is_bool(const struct json *j) { return json_object_is_type(j->obj, json_type_boolean); }

bool json_is_number(const struct json *j)
{
    return json_object_is_type(j->obj, json_type_int) || json_object_is_type(j->obj, json_type_double);
}

static const char *describe(const struct json *j, char out[FOUND_MAX + 3])
{
    if (json_is_object(j) || json_is_array(j)) {
        const bool list = json_is_array(j);
        const size_t n = json_len(j);
        (void)snprintf(out, FOUND_MAX + 3, "%s of %zu %s%s", list ? "a list" : "an object", n,
                       list ? "element" : "member", n == 1 ? "" : "s");
    } else if (json_is_string(j)) {
        char clean[FOUND_MAX];
        const char *s = json_object_get_string(j->obj);
        text_clean(clean, sizeof clean, s, (size_t)json_object_get_string_len(j->obj));
        (void)snprintf(out, FOUND_MAX + 3, "\"%s\"", clean);
    } else {
        const char *s = j->obj ? json_object_to_json_string_ext(j->obj, JSON_C_TO_STRING_PLAIN) : "null";
        if (!s) s = "a value";
        text_clean(out, FOUND_MAX, s, strlen(s));
    }
    return out;
}

enum err_code json_want(const struct json *j, const char *wanted, struct err *e)
{
    char path[NAME_MAX_BYTES], found[FOUND_MAX + 3];
    text_clean(path, sizeof path, j->path, strlen(j->path));
    return err_set(e, ERR_INPUT, "%s: %s%sfound %s, wanted %s", j->file, path, path[0] ? ": " : "", describe(j, found),
                   wanted);
}

/* The value as int64 when it is whole and json-c has not clamped it. INT64_MIN is what json-c makes of every integer
 * below it, so it counts as clamped. */
static bool whole_number(const struct json *j, int64_t *out)
{
    if (json_object_is_type(j->obj, json_type_int)) {
        *out = json_object_get_int64(j->obj);
        return *out < 0 ? *out != INT64_MIN : json_object_get_uint64(j->obj) <= (uint64_t)INT64_MAX;
    }
    if (!json_object_is_type(j->obj, json_type_double)) return false;
    const double x = json_object_get_double(j->obj);
    if (!(x > -0x1p63 && x < 0x1p63) || x != floor(x)) return false;
    *out = (int64_t)x;
    return true;
}

enum err_code json_int(const struct json *j, int64_t lo, int64_t hi, int64_t *out, struct err *e)
{
    int64_t v;
    if (!whole_number(j, &v)) return json_want(j, json_is_number(j) ? "a whole number of 64 bits" : "an integer", e);
    if (v >= lo && v <= hi) {
        *out = v;
        return ERR_OK;
    }
    char wanted[96];
    if (hi == INT64_MAX)
        (void)snprintf(wanted, sizeof wanted, "an integer of at least %lld", (long long)lo);
    else
        (void)snprintf(wanted, sizeof wanted, "an integer from %lld to %lld", (long long)lo, (long long)hi);
    return json_want(j, wanted, e);
}

enum err_code json_num(const struct json *j, double *out, struct err *e)
{
    if (!json_is_number(j)) return json_want(j, "a number", e);
    if (json_object_is_type(j->obj, json_type_int)) {
        const int64_t v = json_object_get_int64(j->obj);
        const uint64_t u = v < 0 ? 0 : json_object_get_uint64(j->obj);
        if (v == INT64_MIN || u == UINT64_MAX) return json_want(j, "a number that fits 64 bits", e);
        *out = v < 0 ? (double)v : (double)u;
        return ERR_OK;
    }
    const double x = json_object_get_double(j->obj);
    if (isinf(x)) { /* the token Infinity is meant, 1e999 is not */
        const char *s = json_object_to_json_string_ext(j->obj, JSON_C_TO_STRING_PLAIN);
        if (s && strchr(s, 'I') == NULL && strchr(s, 'i') == NULL)
            return json_want(j, "a number within the range of a double", e);
    }
    *out = x;
    return ERR_OK;
}

enum err_code json_bool(const struct json *j, bool *out, struct err *e)
{
    if (!json_is_bool(j)) return json_want(j, "true or false", e);
    *out = json_object_get_boolean(j->obj) != 0;
    return ERR_OK;
}

enum err_code json_str(const struct json *j, const char **out, struct err *e)
{
    if (!json_is_string(j)) return json_want(j, "a string", e);
    const char *s = json_object_get_string(j->obj);
    if (strlen(s) != (size_t)json_object_get_string_len(j->obj)) return json_want(j, "a string without NUL", e);
    *out = s;
    return ERR_OK;
}

/* A value that needs no quotes: a letter, then anything that is no punctuation of JSON. What only begins like a literal
 * of JSON, or is one in other letters (Python's True), would be neither. */
static bool is_bare_word(const char *value)
{
    static const char *const LITERALS[] = {"true", "false", "null"};
    const char c = value[0];
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_' && !((unsigned char)c >= 0x80)) return false;
    for (size_t i = 0; i < sizeof LITERALS / sizeof LITERALS[0]; i++)
        if (strncasecmp(value, LITERALS[i], strlen(LITERALS[i])) == 0) return false;
    return strpbrk(value, "\"'{}[]") == NULL && find_bad_utf8(value, strlen(value)) == strlen(value);
}

/* The text as one whole JSON value, a count as options have it (4Ki), or a bare word. */
static enum err_code read_value(struct arena *a, const char *key, const char *value, struct json_object **out,
                                struct err *e)
{
    char name[NAME_MAX_BYTES], found[FOUND_MAX];
    const size_t len = strlen(value);
    struct json_scan s = json_scan_open(a, "", value, len, NULL);
    struct json parsed;
    int64_t count;
    *out = NULL;
    text_clean(name, sizeof name, key, strlen(key));
    s.words = true;
    if (json_scan_all(&s) == ERR_OK) {
        TRY(json_parse(a, name, value, len, &parsed, e));
        *out = json_object_get(parsed.obj);
        return *out || !parsed.obj ? ERR_OK : err_nomem(e);
    }
    const bool iec = len > 2 && value[len - 1] == 'i' && strchr("KMG", value[len - 2]) != NULL;
    if (iec && units_parse_count(value, 0, INT64_MAX, &count, NULL) == ERR_OK)
        *out = json_object_new_int64(count);
    else if (is_bare_word(value))
        *out = json_object_new_string(value);
    else
        return err_set(e, ERR_USAGE,
                       "%s: '%s' is no whole JSON value (8, 4Ki, true, \"text\", [1, 2]); a string that is no plain "
                       "word goes in double quotes",
                       name, text_clean(found, sizeof found, value, len));
    return *out ? ERR_OK : err_nomem(e);
}

enum err_code json_override(const struct json *j, const char *key, const char *value, struct err *e)
{
    struct json_object *v;
    if (!json_is_object(j)) return err_set(e, ERR_USAGE, "%s is not an object: nothing can be set in it", j->file);
    TRY(read_value(j->arena, key, value, &v, e));
    if (json_object_object_add(j->obj, key, v) != 0) return err_nomem(e);
    return ERR_OK;
}

const char *json_hash(const struct json *j, char out[17])
{
    size_t n = 0;
    const char *text = json_object_to_json_string_length(j->obj, JSON_C_TO_STRING_PLAIN, &n);
    return hash_text(out, hash_more(hash_start(), text ? text : "", n));
}

enum err_code json_attach(const struct json *j, const char *key, const struct json *value, struct err *e)
{
    if (!json_is_object(j)) return err_set(e, ERR_USAGE, "%s is not an object: nothing can be set in it", j->file);
    if (json_object_object_add(j->obj, key, json_object_get(value->obj)) != 0) return err_nomem(e);
    return ERR_OK;
}

bool json_has(const struct json *j, const char *key)
{
    return json_is_object(j) && json_object_object_get_ex(j->obj, key, NULL);
}

bool json_drop(const struct json *j, const char *key)
{
    if (!json_has(j, key)) return false;
    json_object_object_del(j->obj, key);
    return true;
}
