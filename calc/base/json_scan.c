#include "calc/base/json_scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

enum { DEPTH_MAX = 64, NUMBER_MAX = 400 };

struct json_scan json_scan_open(struct arena *a, const char *name, const char *text, size_t len, struct err *e)
{
    struct json_scan s = {.arena = a, .name = name, .text = text, .len = len, .fresh = true, .err = e};
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) s.at = 3; /* byte order mark */
    return s;
}

static inline char peek(struct json_scan *s)
{
    for (; s->at < s->len; s->at++) {
        const char c = s->text[s->at];
        if (c > ' ' || (c != ' ' && c != '\n' && c != '\t' && c != '\r')) return c;
    }
    return '\0';
}

char json_scan_peek(struct json_scan *s) { return peek(s); }

enum err_code json_scan_want(const struct json_scan *s, const char *wanted)
{
    char found[28];
    const size_t rest = s->len - s->at;
    if (rest == 0) return err_set(s->err, ERR_INPUT, "%s: byte %zu: found the end, wanted %s", s->name, s->at, wanted);
    text_clean(found, sizeof found, s->text + s->at, rest < 40 ? rest : 40);
    return err_set(s->err, ERR_INPUT, "%s: byte %zu: found \"%s\", wanted %s", s->name, s->at, found, wanted);
}

static inline enum err_code take(struct json_scan *s, char c, const char *wanted)
{
    if (peek(s) != c) return json_scan_want(s, wanted);
    s->at++;
    return ERR_OK;
}

enum err_code json_scan_object(struct json_scan *s)
{
    TRY(take(s, '{', "an object"));
    s->fresh = true;
    return ERR_OK;
}

enum err_code json_scan_array(struct json_scan *s)
{
    TRY(take(s, '[', "a list"));
    s->fresh = true;
    return ERR_OK;
}

/* Behind a value or an opening bracket: the closing one, or the comma that is due. */
static inline enum err_code next(struct json_scan *s, char closing, const char *wanted, bool *more)
{
    *more = peek(s) != closing;
    if (!*more)
        s->at++;
    else if (!s->fresh)
        TRY(take(s, ',', wanted));
    s->fresh = false;
    return ERR_OK;
}

enum err_code json_scan_member(struct json_scan *s, struct json_text *key, bool *more)
{
    TRY(next(s, '}', "a comma or the end of the object", more));
    if (!*more) return ERR_OK;
    if (json_scan_peek(s) != '"') return json_scan_want(s, "a member's name");
    TRY(json_scan_text(s, key));
    return take(s, ':', "a colon");
}

enum err_code json_scan_element(struct json_scan *s, bool *more)
{
    return next(s, ']', "a comma or the end of the list", more);
}

/* ---- strings ---- */

static int hex4(const char *p, size_t n)
{
    int v = 0;
    for (size_t i = 0; i < 4; i++) {
        if (i >= n) return -1;
        const char c = p[i];
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (d < 0) return -1;
        v = 16 * v + d;
    }
    return v;
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80u | (c & 0x3Fu));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* \uXXXX, in pairs beyond the basic plane; s->at is behind the 'u'. NUL and lone surrogates are refused. */
static enum err_code escape_unicode(struct json_scan *s, char *out, size_t *n)
{
    const char *p = s->text + s->at;
    const size_t rest = s->len - s->at;
    const int high = hex4(p, rest);
    if (high <= 0) return json_scan_want(s, "four hexadecimal digits, not all zero");
    uint32_t c = (uint32_t)high;
    s->at += 4;
    if (c >= 0xD800 && c < 0xE000) {
        const int low = rest >= 10 && p[4] == '\\' && p[5] == 'u' ? hex4(p + 6, rest - 6) : -1;
        if (c >= 0xDC00 || low < 0xDC00 || low >= 0xE000)
            return json_scan_want(s, "the other half of a surrogate pair");
        c = 0x10000 + ((c - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
        s->at += 6;
    }
    *n += put_utf8(out + *n, c);
    return ERR_OK;
}

/* A string with escapes, from its first character; end is its closing quote. It only shrinks. */
static enum err_code unescape(struct json_scan *s, size_t end, struct json_text *out)
{
    static const char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
    char *copy = arena_alloc(s->arena, end - s->at + 1);
    size_t n = 0;
    if (!copy) return err_nomem(s->err);
    while (s->at < end) {
        const char c = s->text[s->at++];
        if (c != '\\') {
            copy[n++] = c;
            continue;
        }
        const char e = s->text[s->at++]; /* at most the closing quote: a backslash before it would have moved end */
        const char *known = strchr(FROM, e);
        if (e == 'u') {
            TRY(escape_unicode(s, copy, &n));
        } else if (known && e) {
            copy[n++] = TO[known - FROM];
        } else {
            s->at--;
            return json_scan_want(s, "an escape of JSON");
        }
    }
    copy[n] = '\0';
    *out = (struct json_text){copy, n};
    return ERR_OK;
}

/* Bytes of a string that a scan stops at: a quote, a backslash, below a blank, not ASCII (negative as signed). */
static inline bool is_special(signed char c) { return c < ' ' || c == '"' || c == '\\'; }

typedef signed char bytes16 __attribute__((vector_size(16)));

/* How many of n bytes come before the first special one. */
static inline size_t plain_len(const char *p, size_t n)
{
    size_t i = 0;
    for (; i + sizeof(bytes16) <= n; i += sizeof(bytes16)) {
        bytes16 v;
        uint64_t hit[2];
        memcpy(&v, p + i, sizeof v);
        v = (v < ' ') | (v == '"') | (v == '\\');
        memcpy(hit, &v, sizeof hit);
        if ((hit[0] | hit[1]) == 0) continue;
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        return i + (size_t)(hit[0] ? __builtin_ctzll(hit[0]) : 64 + __builtin_ctzll(hit[1])) / 8;
#else
        break;
#endif
    }
    while (i < n && !is_special((signed char)p[i])) i++;
    return i;
}

bool json_scan_member_known(struct json_scan *s, struct json_text known)
{
    const struct json_scan start = *s;
    bool same = s->fresh || peek(s) == ',';
    if (same && !s->fresh) s->at++;
    same = same && peek(s) == '"' && s->len - s->at > known.len + 2 && s->text[s->at + known.len + 1] == '"' &&
           memcmp(s->text + s->at + 1, known.s, known.len) == 0;
    if (same) s->at += known.len + 2;
    same = same && peek(s) == ':';
    if (!same) {
        *s = start;
        return false;
    }
    s->at++;
    s->fresh = false;
    return true;
}

enum err_code json_scan_text(struct json_scan *s, struct json_text *out)
{
    TRY(take(s, '"', "a string"));
    bool escaped = false;
    size_t i = s->at;
    while (i < s->len) { /* an escape may leap beyond */
        i += plain_len(s->text + i, s->len - i);
        if (i >= s->len || s->text[i] == '"') break;
        const bool backslash = s->text[i] == '\\';
        const size_t step = backslash ? 2 : text_utf8_len(s->text + i, s->len - i, NULL);
        if (step == 0 || (unsigned char)s->text[i] < ' ') {
            s->at = i;
            return json_scan_want(s, "a character of a string in UTF-8");
        }
        escaped = escaped || backslash;
        i += step;
    }
    if (i >= s->len) {
        s->at = s->len;
        return json_scan_want(s, "the end of a string");
    }
    if (escaped)
        TRY(unescape(s, i, out));
    else
        *out = (struct json_text){s->text + s->at, i - s->at};
    s->at = i + 1;
    s->fresh = false;
    return ERR_OK;
}

/* ---- numbers ---- */

enum err_code json_scan_int(struct json_scan *s, int64_t lo, int64_t hi, int64_t *out)
{
    const char *p = s->text;
    const bool minus = peek(s) == '-';
    size_t i = s->at + (minus ? 1 : 0);
    const size_t first = i, safe = s->len - i < 18 ? s->len : i + 18; /* so many digits are within 64 bits */
    int64_t v = 0;
    bool in_range = true;
    for (; i < safe && p[i] >= '0' && p[i] <= '9'; i++) v = 10 * v - (p[i] - '0'); /* below 0 */
    for (; i < s->len && p[i] >= '0' && p[i] <= '9'; i++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, p[i] - '0', &v)) in_range = false;
    const char after = i < s->len ? p[i] : '\0';
    if (i == first || (p[first] == '0' && i > first + 1) || after == '.' || after == 'e' || after == 'E')
        return json_scan_want(s, "an integer");
    if (!minus && __builtin_sub_overflow(0, v, &v)) in_range = false;
    if (!in_range || v < lo || v > hi) return json_scan_want(s, "an integer within its bounds");
    s->at = i;
    s->fresh = false;
    *out = v;
    return ERR_OK;
}

enum err_code json_scan_ints(struct json_scan *s, int64_t lo, int64_t hi, int64_t *out, size_t max, size_t *n,
                             const char *wanted)
{
    TRY(json_scan_array(s));
    for (*n = 0;; ++*n) {
        const char c = peek(s);
        if (c == ']') break;
        if (*n == max) return json_scan_want(s, wanted);
        if (*n > 0) {
            if (c != ',') return json_scan_want(s, "a comma or the end of the list");
            s->at++;
        }
        TRY(json_scan_int(s, lo, hi, &out[*n]));
    }
    s->at++;
    s->fresh = false;
    return ERR_OK;
}

/* Length of a number by the grammar of JSON at p, 0 when there is none. */
static size_t number_len(const char *p, size_t n)
{
    size_t i = n > 0 && p[0] == '-' ? 1 : 0;
    const size_t whole = i;
    while (i < n && p[i] >= '0' && p[i] <= '9') i++;
    if (i == whole || (p[whole] == '0' && i > whole + 1)) return 0;
    if (i < n && p[i] == '.') {
        const size_t frac = ++i;
        while (i < n && p[i] >= '0' && p[i] <= '9') i++;
        if (i == frac) return 0;
    }
    if (i < n && (p[i] == 'e' || p[i] == 'E')) {
        i++;
        if (i < n && (p[i] == '+' || p[i] == '-')) i++;
        const size_t power = i;
        while (i < n && p[i] >= '0' && p[i] <= '9') i++;
        if (i == power) return 0;
    }
    return i;
}

enum err_code json_scan_number(struct json_scan *s, double *out)
{
    char copy[NUMBER_MAX];
    (void)json_scan_peek(s);
    const size_t n = number_len(s->text + s->at, s->len - s->at);
    if (n == 0 || n >= sizeof copy) return json_scan_want(s, "a number");
    memcpy(copy, s->text + s->at, n);
    copy[n] = '\0';
    const double v = strtod(copy, NULL);
    if (isinf(v)) return json_scan_want(s, "a number within the range of a double");
    s->at += n;
    s->fresh = false;
    *out = v;
    return ERR_OK;
}

/* ---- what is not wanted ---- */

static enum err_code skip_word(struct json_scan *s)
{
    static const char *const WORDS[] = {"true", "false", "null", "NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < (s->words ? sizeof WORDS / sizeof WORDS[0] : 3); i++) {
        const size_t n = strlen(WORDS[i]);
        if (s->len - s->at < n || memcmp(s->text + s->at, WORDS[i], n) != 0) continue;
        s->at += n;
        s->fresh = false;
        return ERR_OK;
    }
    return json_scan_want(s, "a value");
}

static enum err_code skip_plain(struct json_scan *s)
{
    const char c = json_scan_peek(s);
    struct json_text text;
    if (c == '"') return json_scan_text(s, &text);
    const bool endless = s->words && c == '-' && s->len - s->at > 1 && s->text[s->at + 1] == 'I';
    if (endless || (c != '-' && (c < '0' || c > '9'))) return skip_word(s);
    const size_t n = number_len(s->text + s->at, s->len - s->at);
    if (n == 0) return json_scan_want(s, "a number");
    s->at += n;
    s->fresh = false;
    return ERR_OK;
}

enum err_code json_scan_skip(struct json_scan *s)
{
    bool is_object[DEPTH_MAX]; /* the brackets that are open */
    size_t depth = 0;
    do {
        const char c = json_scan_peek(s);
        if (c == '{' || c == '[') {
            if (depth == DEPTH_MAX) return json_scan_want(s, "at most 64 levels of brackets");
            is_object[depth++] = c == '{';
            s->at++;
            s->fresh = true;
        } else {
            TRY(skip_plain(s));
        }
        for (bool more = false; depth > 0 && !more;) {
            struct json_text key;
            TRY(is_object[depth - 1] ? json_scan_member(s, &key, &more) : json_scan_element(s, &more));
            if (!more) depth--;
        }
    } while (depth > 0);
    return ERR_OK;
}

bool json_text_is(struct json_text t, const char *s) { return strlen(s) == t.len && memcmp(t.s, s, t.len) == 0; }
