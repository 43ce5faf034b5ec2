/* text -- small helpers on byte strings: cleaning what came from outside, names nearest to a mistyped one, digits.
 *
 * Text is UTF-8. Whatever a file or a command line said passes text_clean before it reaches a terminal. All functions
 * here are pure; numbers assume the "C" locale, which the program never changes. */
#ifndef RIDGE_BASE_TEXT_H
#define RIDGE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* text_utf8_len -- bytes (1..4) of the well-formed UTF-8 character at s, of which n bytes are readable; 0 when the
 * bytes are not well formed (overlong, surrogate, beyond U+10FFFF, cut short) or n is 0. code may be NULL. */
size_t text_utf8_len(const char *s, size_t n, uint32_t *code);

/* text_is_hostile -- code points that steer a terminal or reorder text: C0 and C1 controls, DEL, line and paragraph
 * separators, directional overrides and isolates, the byte order mark. */
bool text_is_hostile(uint32_t code);

/* text_clean -- copy s (len bytes) to out (cap >= 4 bytes, NUL included) with hostile characters and ill-formed bytes
 * replaced by '?'; cut at a character, marked "...", when it does not fit. Returns out. */
const char *text_clean(char *out, size_t cap, const char *s, size_t len);

/* text_width -- terminal columns of s (len bytes): 0 for combining marks, 2 for wide East Asian characters and emoji.
 */
size_t text_width(const char *s, size_t len);

/* text_suggest -- write "; did you mean a, b or c?" (at most 3 names, nearest first) to out, or "" when nothing is
 * near. The n names are the const char * found at first, first + stride, ... (a field in an array of structs, or an
 * array of pointers with stride sizeof(char *)); NULL names are passed over. Distance: edits (insert, delete, change,
 * swap of neighbours; case ignored), at most a third of the word; or a shared beginning of 5, or of 3 when it is all of
 * one. Returns out. */
const char *text_suggest(char *out, size_t cap, const char *word, const void *first, size_t stride, size_t n);

enum { TEXT_JSON_MAX = 6, TEXT_NUMBER_MAX = 32, TEXT_COUNT_MAX = 64 };

/* text_json_char -- the JSON form (TEXT_JSON_MAX bytes at most, no NUL) of the character at s, of which n >= 1 bytes
 * are readable: controls, quote and backslash escaped, other hostile characters as \uXXXX, ill-formed bytes as U+FFFD.
 * *used gets the bytes taken from s. Returns the bytes written. */
size_t text_json_char(char out[TEXT_JSON_MAX], const char *s, size_t n, size_t *used);

/* text_int -- decimal digits of v, no NUL. Returns the bytes written (at most 20). */
size_t text_int(char out[TEXT_NUMBER_MAX], int64_t v);

/* text_count -- "1 request", "3 requests", "2 copies": n of a noun of at most 40 bytes, in the singular, whose plural
 * has an s, or ies for a consonant's y. Returns out. */
const char *text_count(char out[TEXT_COUNT_MAX], int64_t n, const char *noun);

/* text_real -- v as decimal text that strtod reads back to the same double, no NUL: whole numbers under 2^63 as plain
 * digits, otherwise 15, 16 or 17 significant digits, the fewest that are exact. Legal JSON. v is finite; -0 becomes 0.
 * Returns the bytes written. */
size_t text_real(char out[TEXT_NUMBER_MAX], double v);

/* text_is_pointer -- whether a file is a pointer of Git LFS, which stands for one that was not fetched. Source:
 * git-lfs, docs/spec.md. */
bool text_is_pointer(const char *s, size_t len);

#endif
