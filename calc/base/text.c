#include "calc/base/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t text_utf8_len(const char *s, size_t n, uint32_t *code)
{
    if (n == 0) return 0;
    const unsigned char *u = (const unsigned char *)s;
    const size_t len = u[0] < 0x80 ? 1 : u[0] < 0xC2 ? 0 : u[0] < 0xE0 ? 2 : u[0] < 0xF0 ? 3 : u[0] < 0xF5 ? 4 : 0;
    if (len == 0 || len > n) return 0;
    uint32_t c = len == 1 ? u[0] : u[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | (u[i] & 0x3Fu);
    }
    if ((len == 3 && c < 0x800) || (len == 4 && (c < 0x10000 || c > 0x10FFFF)) || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    if (code) *code = c;
    return len;
}

bool text_is_hostile(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/* ASCII that is shown as it is, in one column. */
static bool is_plain(char c) { return c >= ' ' && c <= '~'; }

const char *text_clean(char *out, size_t cap, const char *s, size_t len)
{
    size_t w = 0, fits = 0; /* fits: where "..." still has room */
    for (size_t i = 0; i < len;) {
        uint32_t code = (unsigned char)s[i];
        const bool plain = is_plain(s[i]);
        const size_t n = plain ? 1 : text_utf8_len(s + i, len - i, &code);
        const bool bad = !plain && (n == 0 || text_is_hostile(code));
        const size_t put = bad ? 1 : n;
        if (w + put >= cap) {
            (void)snprintf(out + fits, cap - fits, "...");
            return out;
        }
        if (bad)
            out[w] = '?';
        else
            for (size_t k = 0; k < n; k++) out[w + k] = s[i + k];
        w += put;
        i += n ? n : 1;
        if (w + 4 <= cap) fits = w;
    }
    out[w] = '\0';
    return out;
}

static size_t code_width(uint32_t c)
{
    if ((c >= 0x300 && c <= 0x36F) || (c >= 0x200B && c <= 0x200D) || (c >= 0xFE00 && c <= 0xFE0F)) return 0;
    static const uint32_t wide[][2] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
                                       {0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (c >= wide[i][0] && c <= wide[i][1]) return 2;
    return 1;
}

size_t text_width(const char *s, size_t len)
{
    size_t columns = 0;
    for (size_t i = 0; i < len;) {
        if (is_plain(s[i])) {
            columns++;
            i++;
            continue;
        }
        uint32_t code = '?';
        const size_t n = text_utf8_len(s + i, len - i, &code);
        columns += code_width(code);
        i += n ? n : 1;
    }
    return columns;
}

enum { WORD_MAX = 63, NEAR_MAX = 3 };

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Edits between a and b (optimal string alignment); words longer than WORD_MAX count as far away. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX) return SIZE_MAX;
    size_t row[3][WORD_MAX + 1];
    for (size_t j = 0; j <= nb; j++) row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            const char x = lower(a[i - 1]), y = lower(b[j - 1]);
            size_t best = up[j - 1] + (x != y);
            if (up[j] + 1 < best) best = up[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            const bool swap = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
            if (swap && up2[j - 2] + 1 < best) best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[na % 3][nb];
}

static size_t shared_beginning(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && lower(a[n]) == lower(b[n])) n++;
    return n;
}

const char *text_suggest(char *out, size_t cap, const char *word, const void *first, size_t stride, size_t n)
{
    const char *near[NEAR_MAX];
    size_t far[NEAR_MAX], found = 0;
    const size_t len = strlen(word), limit = len / 3 > 1 ? len / 3 : 1;
    for (size_t i = 0; i < n; i++) {
        const char *name;
        memcpy(&name, (const char *)first + i * stride, sizeof name);
        if (!name) continue;
        size_t d = edit_distance(word, name);
        const size_t shared = shared_beginning(word, name);
        const bool whole = shared >= 3 && (shared == len || shared == strlen(name));
        if (d > limit && shared < 5 && !whole) continue;
        if (d > limit) d = limit + 1; /* alike by their beginning: behind the alike by edits */
        size_t at = found < NEAR_MAX ? found++ : NEAR_MAX;
        for (; at > 0 && far[at - 1] > d; at--)
            if (at < NEAR_MAX) near[at] = near[at - 1], far[at] = far[at - 1];
        if (at < NEAR_MAX) near[at] = name, far[at] = d;
    }
    if (cap) out[0] = '\0';
    static const char *const join[NEAR_MAX][NEAR_MAX] = {{"?", "", ""}, {" or ", "?", ""}, {", ", " or ", "?"}};
    size_t w = 0;
    for (size_t i = 0; i < found && w < cap; i++) {
        const int put = snprintf(out + w, cap - w, "%s%s%s", i ? "" : "; did you mean ", near[i], join[found - 1][i]);
        w += put > 0 ? (size_t)put : 0;
    }
    return out;
}

size_t text_json_char(char out[TEXT_JSON_MAX], const char *s, size_t n, size_t *used)
{
    static const char hex[] = "0123456789abcdef";
    uint32_t code = 0xFFFD;
    const size_t len = text_utf8_len(s, n, &code);
    *used = len ? len : 1;
    if (len == 0) {
        memcpy(out, "\xEF\xBF\xBD", 3);
        return 3;
    }
    const char *named = code && code < 0x80 ? strchr("\"\"\\\\\nn\tt\rr\bb\ff", (int)code) : NULL;
    if (named && (code < 0x20 || code == '"' || code == '\\')) {
        out[0] = '\\';
        out[1] = code == '"' || code == '\\' ? (char)code : named[1];
        return 2;
    }
    if (text_is_hostile(code)) {
        out[0] = '\\';
        out[1] = 'u';
        for (size_t i = 0; i < 4; i++) out[2 + i] = hex[code >> (12 - 4 * i) & 15];
        return 6;
    }
    memcpy(out, s, len);
    return len;
}

size_t text_int(char out[TEXT_NUMBER_MAX], int64_t v)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[20];
    size_t at = sizeof digits;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    while (u >= 100) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * (u % 100), 2);
        u /= 100;
    }
    if (u >= 10) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * u, 2);
    } else {
        digits[--at] = (char)('0' + u);
    }
    size_t w = 0;
    if (v < 0) out[w++] = '-';
    memcpy(out + w, digits + at, sizeof digits - at);
    return w + sizeof digits - at;
}

static size_t real_slow(char out[TEXT_NUMBER_MAX], double v)
{
    for (int digits = 15; digits < 17; digits++) {
        const int n = snprintf(out, TEXT_NUMBER_MAX, "%.*g", digits, v);
        if (strtod(out, NULL) == v) return (size_t)n;
    }
    return (size_t)snprintf(out, TEXT_NUMBER_MAX, "%.17g", v);
}

#if LDBL_MANT_DIG >= 64
/* Powers of ten up to 10^27 are exact in a 64-bit significand. */
static const long double TEN[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                  1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                  1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

static long double scale_ten(long double x, int power) { return power < 0 ? x / TEN[-power] : x * TEN[power]; }

/* |m * 10^power - v| in units of half the gap at v. Scaling rounds once, by at most 2^-10 of half: below 1 - 2^-9 the
 * digits of m certainly read back as v, above 1 + 2^-9 certainly not. */
static long double distance(int64_t m, int power, double v, long double half)
{
    const long double d = scale_ten((long double)m, power) - (long double)v;
    return (d < 0 ? -d : d) / half;
}

/* Write m * 10^power, m > 0, as %g would: an exponent only for far away points. */
static size_t place_point(char out[TEXT_NUMBER_MAX], int64_t m, int power, bool negative)
{
    char digits[TEXT_NUMBER_MAX];
    size_t count = text_int(digits, m), w = 0;
    const int exp10 = power + (int)count - 1;
    while (count > 1 && digits[count - 1] == '0') count--;
    if (negative) out[w++] = '-';
    if (exp10 < -4 || exp10 > 16) {
        out[w++] = digits[0];
        if (count > 1) out[w++] = '.';
        memcpy(out + w, digits + 1, count - 1);
        w += count - 1;
        return w + (size_t)snprintf(out + w, TEXT_NUMBER_MAX - w, "e%+03d", exp10);
    }
    if (exp10 < 0) {
        const size_t zeros = (size_t)-exp10 + 1;
        memcpy(out + w, "0.0000", zeros);
        w += zeros;
        memcpy(out + w, digits, count);
        return w + count;
    }
    const size_t whole = (size_t)exp10 + 1 < count ? (size_t)exp10 + 1 : count;
    memcpy(out + w, digits, whole);
    w += whole;
    for (size_t i = whole; i < (size_t)exp10 + 1; i++) out[w++] = '0';
    if (count > whole) {
        out[w++] = '.';
        memcpy(out + w, digits + whole, count - whole);
        w += count - whole;
    }
    return w;
}

/* 17 digits through one extended multiplication instead of printf's big numbers: several times faster. 0: unsure. */
static size_t real_fast(char out[TEXT_NUMBER_MAX], double v)
{
    const double x = v < 0 ? -v : v;
    if (!(x >= 1e-10 && x < 1e26)) return 0;
    int exp2;
    if (frexp(x, &exp2) == 0.5) return 0; /* a power of two: its neighbour below is nearer than the one above */
    int exp10 = (int)floor((exp2 - 1) * 0.30102999566398120);
    if (exp10 + 1 >= -10 && (long double)x >= scale_ten(1.0L, exp10 + 1)) exp10++;
    const long double half = (long double)ldexp(1, exp2 - 54);
    const long double scaled = scale_ten((long double)x, 16 - exp10);
    const int64_t m17 = (int64_t)(scaled + 0.5L);
    static const int64_t cut[] = {100, 10, 1};
    for (int i = 0; i < 3; i++) {
        const int64_t m = (m17 + cut[i] / 2) / cut[i];
        const int power = exp10 - 14 - i;
        const long double d = distance(m, power, x, half);
        if (d < 1 - 0x1p-9L) return place_point(out, m, power, v < 0);
        if (d <= 1 + 0x1p-9L) return 0;
    }
    return 0;
}
#else
static size_t real_fast(char out[TEXT_NUMBER_MAX], double v)
{
    (void)out;
    (void)v;
    return 0;
}
#endif

size_t text_real(char out[TEXT_NUMBER_MAX], double v)
{
    if (v > -0x1p63 && v < 0x1p63 && v == (double)(int64_t)v) return text_int(out, (int64_t)v);
    const size_t n = real_fast(out, v);
    return n ? n : real_slow(out, v);
}

const char *text_count(char out[TEXT_COUNT_MAX], int64_t n, const char *noun)
{
    const size_t len = strlen(noun);
    const bool ies = len > 1 && noun[len - 1] == 'y' && !strchr("aeiou", noun[len - 2]);
    if (n == 1)
        (void)snprintf(out, TEXT_COUNT_MAX, "1 %.40s", noun);
    else
        (void)snprintf(out, TEXT_COUNT_MAX, "%lld %.*s%s", (long long)n, (int)(ies ? len - 1 : len), noun,
                       ies ? "ies" : "s");
    return out;
}

bool text_is_pointer(const char *s, size_t len)
{
    static const char FIRST[] = "version https://git-lfs.github.com/spec/";
    return len >= sizeof FIRST - 1 && memcmp(s, FIRST, sizeof FIRST - 1) == 0;
}
