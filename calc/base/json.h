/* json -- JSON as published, read through json-c, with errors that name file and key path.
 *
 * Accepts what real config.json files hold: Infinity, -Infinity and NaN tokens, bytes after the first value, a UTF-8
 * byte order mark. Refuses (ERR_INPUT) malformed text with its line, nesting deeper than 64, files over 4 MiB
 * (config.json of published models is below one) and more than 131072 values (the most in 3 MB of a quantised model's
 * modules: 66804), of which json-c takes 70 to 150 bytes for a number and 300 to 700 for an empty list. */
#ifndef RIDGE_BASE_JSON_H
#define RIDGE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

struct json_object;

/* A value and where it stands; path is "" at the root, else "text_config.num_hidden_layers" or "rows[3].x". */
struct json {
    struct json_object *obj; /* borrowed from the document; NULL is JSON null */
    const char *file;        /* name for messages */
    const char *path;
    struct arena *arena;
};

/* json_load -- read and parse a file: JSON as the standard has it (RFC 8259) and the words NaN, Infinity and -Infinity,
 * as Python writes them. Nothing behind the value and no member of an object twice: what is passed over would be lost.
 * Errors: ERR_IO cannot read (a directory, a pipe other than one of /dev, no permission, missing), ERR_INPUT bad
 * content, ERR_NOMEM. */
enum err_code json_load(struct arena *a, const char *path, struct json *out, struct err *e);

/* json_load_strict -- the same without those words. */
enum err_code json_load_strict(struct arena *a, const char *path, struct json *out, struct err *e);

/* json_copy -- a value of its own, alike; it lives as long as the first. Errors: ERR_NOMEM. */
enum err_code json_copy(const struct json *j, struct json *out, struct err *e);

/* json_parse -- parse len bytes; name is what messages call them. Errors: ERR_INPUT, ERR_NOMEM. */
enum err_code json_parse(struct arena *a, const char *name, const char *text, size_t len, struct json *out,
                         struct err *e);

/* json_get -- member key of an object; false when j is no object, or the member is absent or null. key may be a path
 * with dots ("attn_config.kv_n_heads"). */
bool json_get(const struct json *j, const char *key, struct json *out);

/* json_has -- whether object j has the member key (no dots), null included. */
bool json_has(const struct json *j, const char *key);

/* json_at -- element i of an array, or member i of an object (its name to *key when key is not NULL); false past the
 * end. */
bool json_at(const struct json *j, size_t i, const char **key, struct json *out);
size_t json_len(const struct json *j); /* elements of an array, members of an object, 0 otherwise */

bool json_is_object(const struct json *j);
bool json_is_array(const struct json *j);
bool json_is_string(const struct json *j);
bool json_is_number(const struct json *j);
bool json_is_bool(const struct json *j);

/* json_int, json_num, json_bool, json_str -- the value as a C type. json_int takes whole numbers (7, 7.0) in
 * [lo, hi]. Errors: ERR_INPUT naming file, path, what was found and what was wanted. */
enum err_code json_int(const struct json *j, int64_t lo, int64_t hi, int64_t *out, struct err *e);
enum err_code json_num(const struct json *j, double *out, struct err *e);
enum err_code json_bool(const struct json *j, bool *out, struct err *e);
enum err_code json_str(const struct json *j, const char **out, struct err *e);

/* json_override -- set member key of object j to a value written as one whole JSON value ("8", "true", "[1, 2]"), as a
 * count with Ki, Mi or Gi ("4Ki"), or as a bare word, which is a string: it begins with a letter, has no quotes and no
 * brackets, and does not begin like true, false or null. Errors: ERR_USAGE j is no object or the text is none of those,
 * ERR_NOMEM. */
enum err_code json_override(const struct json *j, const char *key, const char *value, struct err *e);

/* json_drop -- remove member key of object j; false when there was none. */
bool json_drop(const struct json *j, const char *key);

/* json_attach -- make value (of any document) a member of object j. Errors: ERR_USAGE j is no object, ERR_NOMEM. */
enum err_code json_attach(const struct json *j, const char *key, const struct json *value, struct err *e);

/* json_hash -- FNV-1a over the value in compact form, 16 hexadecimal digits: what a record says of its input. */
const char *json_hash(const struct json *j, char out[17]);

/* json_want -- ERR_INPUT "file: path: found X, wanted <wanted>" about j. */
enum err_code json_want(const struct json *j, const char *wanted, struct err *e);

#endif
