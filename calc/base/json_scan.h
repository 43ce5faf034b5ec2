/* json_scan -- one pass over JSON text without building it, for files too large to hold as objects (indexes and headers
 * of checkpoints: a hundred thousand members in some milliseconds).
 *
 * The caller asks for what it expects, in order; what it does not want it skips. Strict JSON: no NaN, no comments, no
 * trailing commas, UTF-8 throughout, nesting up to 64. Errors are ERR_INPUT "name: byte N: found X, wanted Y". */
#ifndef RIDGE_BASE_JSON_SCAN_H
#define RIDGE_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

/* Where the scan stands. Made by json_scan_open, read-only to callers except for what is done through functions. */
struct json_scan {
    struct arena *arena; /* for strings with escapes */
    const char *name;    /* what messages call the text, clean */
    const char *text;
    size_t at, len;
    bool fresh; /* just behind an opening bracket: no comma is due */
    bool words; /* false; true: NaN, Infinity and -Infinity are values that are skipped, as Python writes them */
    struct err *err;
};

/* A string of the text, escapes resolved. It points into the text, where its closing quote follows, or into the arena,
 * where a NUL does. */
struct json_text {
    const char *s;
    size_t len;
};

/* json_scan_open -- at the first byte of len bytes of text, which outlive the scan; a UTF-8 byte order mark is passed
 * over. name has no hostile characters. */
struct json_scan json_scan_open(struct arena *a, const char *name, const char *text, size_t len, struct err *e);

/* json_scan_peek -- the first byte of the next value or bracket, blanks passed over; 0 at the end. */
char json_scan_peek(struct json_scan *s);

/* json_scan_object, json_scan_array -- enter; json_scan_member, json_scan_element -- the next one's key, or *more =
 * false and the bracket is closed. After each, exactly one value is read or skipped. json_scan_member_known -- whether
 * the next member's key is `known`, a string of JSON without anything to escape, which is then read faster; false:
 * nothing was read. */
enum err_code json_scan_object(struct json_scan *s);
enum err_code json_scan_member(struct json_scan *s, struct json_text *key, bool *more);
bool json_scan_member_known(struct json_scan *s, struct json_text known);
enum err_code json_scan_array(struct json_scan *s);
enum err_code json_scan_element(struct json_scan *s, bool *more);

/* json_scan_text, json_scan_int, json_scan_number -- a value. Integers are written without point and exponent and lie
 * in [lo, hi]; numbers within a double. Strings hold no NUL. json_scan_ints -- a list of at most max
 * integers; of a longer one wanted is said. */
enum err_code json_scan_text(struct json_scan *s, struct json_text *out);
enum err_code json_scan_int(struct json_scan *s, int64_t lo, int64_t hi, int64_t *out);
enum err_code json_scan_ints(struct json_scan *s, int64_t lo, int64_t hi, int64_t *out, size_t max, size_t *n,
                             const char *wanted);
enum err_code json_scan_number(struct json_scan *s, double *out);

/* json_scan_skip -- any value. */
enum err_code json_scan_skip(struct json_scan *s);

/* json_scan_all -- the whole text, from its start: one value with nothing but blanks behind it, and no object with two
 * members of one name (named). Cost: n log n in the members of an object. */
enum err_code json_scan_all(struct json_scan *s);

/* json_scan_literal -- whether the text goes on with exactly these bytes, which are passed over: for what a writer
 * always spells alike. They end in a value or where one begins. */
static inline bool json_scan_literal(struct json_scan *s, const char *bytes)
{
    const size_t n = strlen(bytes);
    if (s->len - s->at < n || memcmp(s->text + s->at, bytes, n) != 0) return false;
    s->at += n;
    s->fresh = false;
    return true;
}

/* json_scan_want -- ERR_INPUT "name: byte N: found X, wanted <wanted>" at the place of the scan. */
enum err_code json_scan_want(const struct json_scan *s, const char *wanted);

/* json_text_is -- whether the text equals a C string. */
bool json_text_is(struct json_text t, const char *s);

#endif
