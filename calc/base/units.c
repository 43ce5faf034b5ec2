#include "calc/base/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

enum { QUOTE_MAX = 48, NUMBER_TEXT_MAX = 64 };

/* A piece of text: the parsers never write into what they are given. */
struct span {
    const char *s;
    size_t len;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static struct span trim(struct span t)
{
    while (t.len && is_blank(t.s[0])) t.s++, t.len--;
    while (t.len && is_blank(t.s[t.len - 1])) t.len--;
    return t;
}

static struct span span_of(const char *s) { return trim((struct span){.s = s, .len = strlen(s)}); }

static bool span_is(struct span t, const char *word) { return t.len == strlen(word) && memcmp(t.s, word, t.len) == 0; }

static enum err_code refuse(struct err *e, struct span t, const char *why)
{
    char quoted[QUOTE_MAX];
    return err_set(e, ERR_USAGE, "\"%s\": %s", text_clean(quoted, sizeof quoted, t.s, t.len), why);
}

/* -- numbers -- */

/* The length of the decimal number at the start of t: digits, one point, an exponent; 0 when there is none. */
static size_t number_len(struct span t)
{
    size_t i = t.len && t.s[0] == '-', digits = 0;
    while (i < t.len && is_digit(t.s[i])) i++, digits++;
    if (i < t.len && t.s[i] == '.') {
        i++;
        while (i < t.len && is_digit(t.s[i])) i++, digits++;
    }
    if (digits == 0) return 0;
    if (i < t.len && (t.s[i] == 'e' || t.s[i] == 'E')) {
        size_t j = i + 1;
        if (j < t.len && (t.s[j] == '+' || t.s[j] == '-')) j++;
        const size_t first = j;
        while (j < t.len && is_digit(t.s[j])) j++;
        if (j > first) i = j;
    }
    return i;
}

/* Split t into a number and the unit behind it. */
static bool split_number(struct span t, double *out, struct span *unit)
{
    const size_t n = number_len(t);
    char copy[NUMBER_TEXT_MAX];
    if (n == 0 || n >= sizeof copy) return false;
    memcpy(copy, t.s, n);
    copy[n] = '\0';
    *out = strtod(copy, NULL);
    *unit = trim((struct span){.s = t.s + n, .len = t.len - n});
    return isfinite(*out);
}

enum whole { WHOLE_OK, WHOLE_NOT, WHOLE_TOO_LARGE };

/* digits * 10^power * factor, exactly. */
static enum whole scale_whole(int64_t digits, int power, int64_t factor, int64_t *out)
{
    if (digits == 0) power = 0;
    for (; power < 0 && digits % 10 == 0; power++) digits /= 10;
    if (__builtin_mul_overflow(digits, factor, &digits)) return WHOLE_TOO_LARGE;
    for (; power < 0; power++) {
        if (digits % 10 != 0) return WHOLE_NOT;
        digits /= 10;
    }
    for (; power > 0; power--)
        if (__builtin_mul_overflow(digits, 10, &digits)) return WHOLE_TOO_LARGE;
    *out = digits;
    return WHOLE_OK;
}

/* The first n bytes of t as number_len accepted them, times factor. */
static enum whole whole_number(struct span t, int64_t factor, int64_t *out)
{
    int64_t digits = 0;
    int power = 0, exponent = 0;
    const bool negative = t.len && t.s[0] == '-';
    bool point = false;
    size_t i = negative;
    for (; i < t.len && t.s[i] != 'e' && t.s[i] != 'E'; i++) {
        if (t.s[i] == '.') {
            point = true;
            continue;
        }
        if (__builtin_mul_overflow(digits, 10, &digits)) return WHOLE_TOO_LARGE;
        if (__builtin_add_overflow(digits, t.s[i] - '0', &digits)) return WHOLE_TOO_LARGE;
        power -= point;
    }
    if (i < t.len) {
        const bool down = ++i < t.len && t.s[i] == '-';
        if (i < t.len && (t.s[i] == '-' || t.s[i] == '+')) i++;
        for (; i < t.len && exponent < 10000; i++) exponent = 10 * exponent + (t.s[i] - '0');
        power += down ? -exponent : exponent;
    }
    return scale_whole(negative ? -digits : digits, power, factor, out);
}

static enum err_code parse_count(struct span t, int64_t lo, int64_t hi, int64_t *out, struct err *e)
{
    static const struct {
        const char *suffix;
        int64_t factor;
    } suffixes[] = {{"", 1}, {"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}};
    static const char wanted[] = "wanted a whole number such as 4096, 2e9 or 128Ki";
    const size_t n = number_len(t);
    if (n == 0 || n >= NUMBER_TEXT_MAX) return refuse(e, t, t.len ? wanted : "empty, wanted a whole number");
    const struct span number = {.s = t.s, .len = n}, suffix = trim((struct span){.s = t.s + n, .len = t.len - n});
    int64_t factor = 0, v = 0;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (span_is(suffix, suffixes[i].suffix)) factor = suffixes[i].factor;
    if (factor == 0) {
        if (suffix.len == 1 && strchr("kKmMgG", suffix.s[0]))
            return refuse(e, t, "1000s or 1024s? write 8e3, 8e6, 8e9 or 8Ki, 8Mi, 8Gi");
        return refuse(e, t, wanted);
    }
    const enum whole how = whole_number(number, factor, &v);
    char quoted[QUOTE_MAX];
    text_clean(quoted, sizeof quoted, t.s, t.len);
    if (how == WHOLE_NOT) return refuse(e, t, "not a whole number");
    if (how == WHOLE_TOO_LARGE) return err_set(e, ERR_RANGE, "\"%s\": beyond 64 bits", quoted);
    if (v < lo || v > hi) {
        if (hi == INT64_MAX) return err_set(e, ERR_USAGE, "\"%s\": wanted at least %lld", quoted, (long long)lo);
        return err_set(e, ERR_USAGE, "\"%s\": wanted %lld to %lld", quoted, (long long)lo, (long long)hi);
    }
    *out = v;
    return ERR_OK;
}

enum err_code units_parse_count(const char *s, int64_t lo, int64_t hi, int64_t *out, struct err *e)
{
    return parse_count(span_of(s), lo, hi, out, e);
}

/* -- quantities -- */

static const struct {
    const char *text;
    double factor;
} PREFIXES[] = {
    {"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}, {"k", 1e3},
    {"K", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},    {"P", 1e15},    {"E", 1e18},
};

/* Take a prefix off the front of unit, longest first; 1 when there is none. */
static double take_prefix(struct span *unit)
{
    for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0]; i++) {
        const size_t n = strlen(PREFIXES[i].text);
        if (unit->len < n || memcmp(unit->s, PREFIXES[i].text, n) != 0) continue;
        unit->s += n;
        unit->len -= n;
        return PREFIXES[i].factor;
    }
    return 1;
}

enum err_code units_parse_bytes(const char *s, double *out_bytes, struct err *e)
{
    const struct span t = span_of(s);
    struct span unit;
    double v;
    if (!split_number(t, &v, &unit)) return refuse(e, t, "wanted bytes such as 80GB (80e9) or 80GiB (80*2^30)");
    if (unit.len == 0) return refuse(e, t, "needs its unit: B, GB (1e9) or GiB (2^30)");
    const double factor = take_prefix(&unit);
    if (unit.len == 0) return refuse(e, t, "which unit? GB is 1e9 bytes, GiB is 2^30 bytes");
    if (span_is(unit, "b") || span_is(unit, "bit"))
        return refuse(e, t, "b is bits, wanted bytes such as GB (1e9) or GiB (2^30)");
    if (!span_is(unit, "B")) return refuse(e, t, "wanted bytes such as 80GB (80e9) or 80GiB (80*2^30)");
    const double bytes = round(v * factor);
    if (!(bytes >= 0)) return refuse(e, t, "wanted bytes of at least 0");
    if (!isfinite(bytes)) return refuse(e, t, "too large");
    *out_bytes = bytes;
    return ERR_OK;
}

enum err_code units_parse_rate(const char *s, enum units_kind kind, double *out_per_s, struct err *e)
{
    static const struct {
        const char *text;
        enum units_kind kind;
        double factor;
    } units[] = {
        {"B/s", UNITS_BYTES_PER_S, 1},       {"Bps", UNITS_BYTES_PER_S, 1},     {"b/s", UNITS_BYTES_PER_S, 0.125},
        {"bit/s", UNITS_BYTES_PER_S, 0.125}, {"bps", UNITS_BYTES_PER_S, 0.125}, {"FLOP/s", UNITS_FLOPS_PER_S, 1},
        {"FLOPS", UNITS_FLOPS_PER_S, 1},     {"FLOPs/s", UNITS_FLOPS_PER_S, 1}, {"FLOPS/s", UNITS_FLOPS_PER_S, 1},
        {"flop/s", UNITS_FLOPS_PER_S, 1},    {"flops/s", UNITS_FLOPS_PER_S, 1}, {"flops", UNITS_FLOPS_PER_S, 1},
        {"FLOPs", UNITS_FLOPS_PER_S, 1},     {"OP/s", UNITS_FLOPS_PER_S, 1},    {"OPS", UNITS_FLOPS_PER_S, 1},
    };
    const struct span t = span_of(s);
    const char *wanted = kind == UNITS_FLOPS_PER_S ? "wanted flops per second such as 989 TFLOP/s"
                                                   : "wanted bytes per second such as 3.35 TB/s or 400 Gb/s (bits)";
    struct span unit;
    double v;
    if (!split_number(t, &v, &unit)) return refuse(e, t, wanted);
    const double prefix = take_prefix(&unit);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (units[i].kind != kind || !span_is(unit, units[i].text)) continue;
        const double rate = v * prefix * units[i].factor;
        if (!(rate > 0)) return refuse(e, t, "wanted a rate above 0");
        if (!isfinite(rate)) return refuse(e, t, "too large");
        *out_per_s = rate;
        return ERR_OK;
    }
    return refuse(e, t, wanted);
}

enum err_code units_parse_time(const char *s, double *out_s, struct err *e)
{
    static const struct {
        const char *text;
        double per_s, s; /* v / per_s * s: 7900 us is then exactly 7900/1e6 */
    } units[] = {
        {"s", 1, 1},    {"ms", 1e3, 1}, {"us", 1e6, 1}, {"\xC2\xB5s", 1e6, 1}, {"\xCE\xBCs", 1e6, 1},
        {"ns", 1e9, 1}, {"min", 1, 60}, {"h", 1, 3600}, {"d", 1, 86400},
    };
    const struct span t = span_of(s);
    struct span unit;
    double v;
    if (!split_number(t, &v, &unit))
        return refuse(e, t, "wanted a time such as 50ms, 1s or 2h (ns, us, ms, s, min, h or d)");
    if (unit.len == 0) return refuse(e, t, "a time needs its unit (ns, us, ms, s, min, h or d), such as 50ms");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!span_is(unit, units[i].text)) continue;
        if (v < 0) return refuse(e, t, "wanted a time of at least 0");
        *out_s = v / units[i].per_s * units[i].s;
        return isfinite(*out_s) ? ERR_OK : refuse(e, t, "too long");
    }
    if (span_is(unit, "m")) return refuse(e, t, "m alone may be minutes or milliseconds: write min or ms");
    return refuse(e, t, "wanted a time in ns, us, ms, s, min, h or d");
}

/* -- ranges -- */

struct piece {
    int64_t first, last, step; /* step 0: one value */
    bool geometric;
};

/* The position of needle in t, t.len when absent. */
static size_t find(struct span t, const char *needle)
{
    const size_t n = strlen(needle);
    for (size_t i = 0; i + n <= t.len; i++)
        if (memcmp(t.s + i, needle, n) == 0) return i;
    return t.len;
}

static struct span before(struct span t, size_t at) { return trim((struct span){.s = t.s, .len = at}); }
static struct span after(struct span t, size_t at) { return trim((struct span){.s = t.s + at, .len = t.len - at}); }

/* Where the step of "b+s" or "b*f" begins; the sign of an exponent is none. */
static size_t find_step(struct span t)
{
    for (size_t i = 1; i < t.len; i++)
        if (t.s[i] == '*' || (t.s[i] == '+' && t.s[i - 1] != 'e' && t.s[i - 1] != 'E')) return i;
    return t.len;
}

static enum err_code parse_piece(struct span t, int64_t lo, int64_t hi, struct piece *out, struct err *e)
{
    const size_t dots = find(t, "..");
    struct piece p = {.step = 0};
    if (dots == t.len) {
        TRY(parse_count(t, lo, hi, &p.first, e));
        p.last = p.first;
        *out = p;
        return ERR_OK;
    }
    const struct span rest = after(t, dots + 2);
    if (dots == 0 || rest.len == 0) return refuse(e, t, "a range needs both ends, such as 1..512*2");
    const size_t at = find_step(rest);
    TRY(parse_count(before(t, dots), lo, hi, &p.first, e));
    TRY(parse_count(before(rest, at), lo, hi, &p.last, e));
    p.step = 1;
    if (at < rest.len) {
        p.geometric = rest.s[at] == '*';
        const struct span step = after(rest, at + 1);
        if (step.len == 0) return refuse(e, t, "a step is missing, such as in 1..512*2 or 1..10+3");
        TRY(parse_count(step, INT64_MIN, INT64_MAX, &p.step, e));
    }
    if (p.first > p.last) return refuse(e, t, "a range counts upwards");
    if (p.geometric && (p.step < 2 || p.first < 1))
        return refuse(e, t, "a*f counts from at least 1 by a factor of 2 or more");
    if (p.step < 1) return refuse(e, t, "the step must be at least 1");
    *out = p;
    return ERR_OK;
}

/* Next value of the piece; false past the end. */
static bool piece_next(const struct piece *p, int64_t *v)
{
    int64_t next;
    if (p->step == 0) return false;
    if (p->geometric ? __builtin_mul_overflow(*v, p->step, &next) : __builtin_add_overflow(*v, p->step, &next))
        return false;
    *v = next;
    return next <= p->last;
}

/* How many values, saturating just above the cap. */
static size_t piece_count(const struct piece *p)
{
    if (p->step != 0 && !p->geometric) {
        const uint64_t gaps = ((uint64_t)p->last - (uint64_t)p->first) / (uint64_t)p->step;
        return gaps < UNITS_RANGE_MAX ? (size_t)gaps + 1 : UNITS_RANGE_MAX + 1;
    }
    size_t n = 1;
    for (int64_t v = p->first; piece_next(p, &v);) n++;
    return n;
}

static bool take_piece(struct span *list, struct span *piece)
{
    if (!list->s) return false;
    const size_t comma = find(*list, ",");
    *piece = before(*list, comma);
    *list = comma < list->len ? (struct span){.s = list->s + comma + 1, .len = list->len - comma - 1}
                              : (struct span){.s = NULL, .len = 0};
    return true;
}

enum err_code units_parse_range(struct arena *a, const char *s, int64_t lo, int64_t hi, const int64_t **out,
                                size_t *out_n, struct err *e)
{
    const struct span all = span_of(s);
    size_t n = 0, w = 0;
    struct span list = all, text;
    struct piece p;
    while (take_piece(&list, &text)) {
        if (text.len == 0) return refuse(e, all, all.len ? "an empty piece in the list" : "empty, wanted numbers");
        TRY(parse_piece(text, lo, hi, &p, e));
        n += piece_count(&p);
        char quoted[QUOTE_MAX];
        if (n > UNITS_RANGE_MAX)
            return err_set(e, ERR_RANGE, "\"%s\": more than %d values",
                           text_clean(quoted, sizeof quoted, text.s, text.len), (int)UNITS_RANGE_MAX);
    }
    int64_t *values = arena_array(a, n, sizeof *values);
    if (!values) return err_nomem(e);
    for (list = all; take_piece(&list, &text);) {
        TRY(parse_piece(text, lo, hi, &p, e));
        int64_t v = p.first;
        do values[w++] = v;
        while (piece_next(&p, &v));
    }
    *out = values;
    *out_n = n;
    return ERR_OK;
}
