/* hash -- 64-bit FNV-1a, to say which bytes an answer was computed from. Not a defence against forgery.
 * Source: Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm", draft-eastlake-fnv. */
#ifndef RIDGE_BASE_HASH_H
#define RIDGE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "calc/base/err.h"

enum { HASH_TEXT_MAX = 17 };

/* hash_start, hash_more -- the running hash: h = hash_start(); h = hash_more(h, data, n) over the pieces. Cost: O(n).
 */
uint64_t hash_start(void);
uint64_t hash_more(uint64_t h, const void *data, size_t n);

/* hash_text -- h as 16 lower-case hexadecimal digits; returns out. */
const char *hash_text(char out[HASH_TEXT_MAX], uint64_t h);

/* hash_file -- the hash of a regular file's bytes. Errors: ERR_IO cannot read, or not a regular file. Cost: one reading
 * of the file. */
enum err_code hash_file(const char *path, char out[HASH_TEXT_MAX], struct err *e);

#endif
