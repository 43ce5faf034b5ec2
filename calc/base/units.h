/* units -- the only place where prefixes exist: text with units in, base units (bytes, flops, seconds) inside, text
 * out.
 *
 * GB = 1e9, GiB = 2^30; a bare "G" or a bare number is refused where a unit is expected, with a sentence that names the
 * choices. Parsers take a whole string, blanks around it allowed, and refuse with ERR_USAGE (ERR_RANGE where the number
 * is beyond what can be computed) and one sentence that quotes the text; a caller that read the text from a file puts
 * the file in front and uses ERR_INPUT. */
#ifndef RIDGE_BASE_UNITS_H
#define RIDGE_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

/* What a number is, for parsing and for display. All are held in base units. */
enum units_kind {
    UNITS_NONE,               /* a plain number */
    UNITS_COUNT,              /* things: parameters, tokens, sequences */
    UNITS_BYTES,              /* bytes */
    UNITS_FLOPS,              /* floating-point operations */
    UNITS_SECONDS,            /* seconds */
    UNITS_BYTES_PER_S,        /* bytes/s */
    UNITS_FLOPS_PER_S,        /* flops/s */
    UNITS_TOK_PER_S,          /* tokens/s */
    UNITS_COUNT_PER_S,        /* things/s: requests */
    UNITS_FRAC,               /* a part of one, shown as such */
    UNITS_RATIO,              /* a ratio of two like things, may exceed one */
    UNITS_FLOPS_PER_BYTE,     /* arithmetic intensity */
    UNITS_BYTES_PER_TOKEN,    /* bytes per token */
    UNITS_BYTES_PER_SEQUENCE, /* bytes per sequence */
    UNITS_USD,                /* US dollars */
    UNITS_USD_PER_MTOK,       /* US dollars per million tokens */
    UNITS_WATTS,              /* watts */
};

/* Bytes. */
#define UNITS_GB 1e9
#define UNITS_GIB 1073741824.0

/* units_parse_count -- a whole number in [lo, hi]: "4096", "2e9", "1.5e3", "128Ki", "1.5Mi" (Ki Mi Gi are 2^10 2^20
 * 2^30). "8K", "8M", "8G" are refused: 1000 or 1024 is a choice. Exact; no rounding through doubles. Errors: ERR_USAGE
 * not such a number or outside [lo, hi], ERR_RANGE beyond 64 bits. */
enum err_code units_parse_count(const char *s, int64_t lo, int64_t hi, int64_t *out, struct err *e);

/* units_parse_bytes -- "80GB" (80e9), "80GiB" (80*2^30), "16 GiB", "512MB", "123B"; rounded to a whole byte, >= 0.
 * kB or KB is 1000. Errors: ERR_USAGE, also for a bare "80" or "80G". */
enum err_code units_parse_bytes(const char *s, double *out_bytes, struct err *e);

/* units_parse_rate -- kind UNITS_BYTES_PER_S: "3.35 TB/s", "1.2TiB/s", "400Gb/s" "400 Gbit/s" "400Gbps" (bits, taken
 * to bytes); kind UNITS_FLOPS_PER_S: "989 TFLOP/s", "989 TFLOPS", "1.98 PFLOP/s"; > 0. Errors: ERR_USAGE, also for a
 * bare number or a rate of the other kind. */
enum err_code units_parse_rate(const char *s, enum units_kind kind, double *out_per_s, struct err *e);

/* units_parse_time -- "50ms", "1s", "7900 us", "7.9ms", "12ns", "90min", "24h", "2d"; >= 0. Errors: ERR_USAGE. */
enum err_code units_parse_time(const char *s, double *out_s, struct err *e);

/* units_read_word -- what the unit behind a number is, as people write it: "GiB", "ms", "microseconds", "TFLOPS",
 * "tokens per second", "requests a minute", "1/s", "kB/tok", "flops per byte", "$/1M tokens", "%", "x"; of a count also
 * "B", "G" and "billion", with or without the things counted ("billion tokens", "Gparams"), which are those in things:
 * a list with commas, each with an s behind it or none ("parameter,param"); NULL: none may be named. wanted decides
 * what several readings leave open: of a count "B" is 1e9, of anything else bytes; and what a question says already may
 * be missing
 * ("kB" for bytes per token, "TFLOPS" for flops per second, "1/s" for tokens per second, "requests" for requests a
 * second) or be there ("ms/step"). *kind and *factor (to base units) are set when it is a unit, which need not be the
 * one wanted; else false. Bits are eighths of bytes. Case counts where it tells units apart (ms, Mb, MB). */
bool units_read_word(const char *text, size_t len, enum units_kind wanted, const char *things, enum units_kind *kind,
                     double *factor);

/* units_kind_name -- "a time (s, ms, us)". units_kind_bare -- whether a number of the kind may stand without a unit:
 * counts, parts, ratios, flops per byte. */
const char *units_kind_name(enum units_kind kind);
bool units_kind_bare(enum units_kind kind);

enum { UNITS_RANGE_MAX = 10000000 };

/* units_parse_range -- a list of counts, pieces joined by commas, each one of
 *   a         one count as for units_parse_count
 *   a..b      a, a+1, ... up to b
 *   a..b+s    a, a+s, ... while <= b
 *   a..b*f    a, a*f, ... while <= b (a >= 1, f >= 2)
 * Order and repetitions are kept. All values in [lo, hi]; at most UNITS_RANGE_MAX of them. *out lives in a.
 * Errors: ERR_USAGE quoting the piece, ERR_RANGE too many values or beyond 64 bits, ERR_NOMEM. Cost: O(values). */
enum err_code units_parse_range(struct arena *a, const char *s, int64_t lo, int64_t hi, const int64_t **out,
                                size_t *out_n, struct err *e);

enum { UNITS_TEXT_MAX = 48 };

/* units_format -- v with prefix and unit, 4 significant digits: "26.87 GB", "8.02 ms", "3.35 TB/s", "13.02 B"
 * (billion), "26.03 TFLOP", "295.2 flop/byte"; "-" when v is NAN, "inf" or "-inf" when infinite. Returns out. */
const char *units_format(char out[UNITS_TEXT_MAX], enum units_kind kind, double v);

const char *units_format_bytes(char out[UNITS_TEXT_MAX], double bytes);     /* "26.87 GB" */
const char *units_format_bytes_iec(char out[UNITS_TEXT_MAX], double bytes); /* "25.02 GiB" */
const char *units_format_time(char out[UNITS_TEXT_MAX], double s);          /* "8.02 ms" */
const char *units_format_flops(char out[UNITS_TEXT_MAX], double flops);     /* "26.03 GFLOP" */
const char *units_format_count(char out[UNITS_TEXT_MAX], double count);     /* "13.02B", for display only */

/* units_format_digits -- a whole number in full, digits grouped: "13,015,449,600". "-" when NAN; as units_format_count
 * when not whole or beyond 2^63. Returns out. */
const char *units_format_digits(char out[UNITS_TEXT_MAX], double count);

/* units_format_plain -- 4 significant digits without unit: "26.87", "8.02", "1.235e-07", "12345". Returns out. */
const char *units_format_plain(char out[UNITS_TEXT_MAX], double v);

/* One scale for a whole column of numbers. */
struct units_scale {
    double divisor;    /* shown value = v / divisor */
    const char *label; /* its unit with prefix, "GB", "ms", "" */
};

/* units_scale -- the scale for values of which min and max are the smallest and largest nonzero magnitudes (NAN: there
 * are none): the prefix of max, or a smaller one while that keeps min readable and max within 5 digits. */
struct units_scale units_scale_for(enum units_kind kind, double min, double max);

#endif
