#include "calc/sym/parse_number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* m * 10^exponent */
struct decimal {
    uint64_t m;
    long exponent;
    bool fits; /* in m */
};

static void add_digit(struct decimal *d, char c, bool after_point)
{
    const uint64_t digit = (uint64_t)(c - '0');
    if (__builtin_mul_overflow(d->m, UINT64_C(10), &d->m) || __builtin_add_overflow(d->m, digit, &d->m))
        d->fits = false;
    if (after_point) d->exponent--;
}

static bool times_power(int64_t *x, int64_t base, long n)
{
    for (; n > 0; n--)
        if (__builtin_mul_overflow(*x, base, x)) return false;
    return true;
}

/* as a rational of int64; false when it is none */
static bool exact(struct sym_ctx *c, struct decimal d, const struct sym **out)
{
    if (!d.fits) return false;
    for (; d.m && d.m % 10 == 0 && d.exponent < 0; d.exponent++) d.m /= 10;
    if (d.m > (uint64_t)INT64_MAX) return false;
    int64_t num = (int64_t)d.m, den = 1;
    if (num && !times_power(&num, 10, d.exponent)) return false;
    if (num && d.exponent < 0) {
        long twos = -d.exponent, fives = -d.exponent;
        for (; twos && num % 2 == 0; twos--) num /= 2;
        for (; fives && num % 5 == 0; fives--) num /= 5;
        if (!times_power(&den, 2, twos) || !times_power(&den, 5, fives)) return false;
    }
    *out = sym_rat(c, num, den);
    return true;
}

/* a whole number of many digits, 18 at a time */
static const struct sym *long_whole(struct sym_ctx *c, const char *digits, size_t n)
{
    enum { CHUNK = 18 };
    const struct sym *r = sym_int(c, 0), *ten = sym_int(c, 10);
    for (size_t i = 0; i < n;) {
        const size_t k = n - i < CHUNK ? n - i : CHUNK;
        int64_t chunk = 0;
        for (size_t j = 0; j < k; j++) chunk = 10 * chunk + (digits[i + j] - '0');
        r = sym_add(c, sym_mul(c, sym_pow(c, ten, sym_int(c, (int64_t)k)), r), sym_int(c, chunk));
        i += k;
    }
    return r;
}

/* the exponent behind a number, if there is one at i; its end */
static size_t exponent_end(const struct parse_chars *t, size_t i, bool upper_e)
{
    const size_t begin = i;
    if (t->s[i] != 'e' && !(t->s[i] == 'E' && upper_e)) return begin;
    i++;
    if (t->s[i] == '+' || t->s[i] == '-') i++;
    if (!parse_is_digit(t->s[i])) return begin;
    while (parse_is_digit(t->s[i])) i++;
    return i;
}

enum err_code parse_number(const struct parse_input *in, struct sym_ctx *c, const struct parse_chars *t, bool upper_e,
                           size_t *i, const struct sym **out)
{
    const size_t begin = *i;
    struct decimal d = {0, 0, true};
    size_t k = begin;
    bool point = false, zero = true;
    for (; parse_is_digit(t->s[k]) || (t->s[k] == '.' && !point); k++) {
        if (t->s[k] == '.') {
            point = true;
            continue;
        }
        zero = zero && t->s[k] == '0';
        add_digit(&d, t->s[k], point);
    }
    if (t->s[k] == '.') return parse_fail(in, ERR_USAGE, t->at[k], "", "a second decimal point in a number");
    const size_t end = exponent_end(t, k, upper_e);
    if (end > k) {
        const size_t digits = end - k - 1 - (parse_is_digit(t->s[k + 1]) ? 0 : 1);
        const long n = digits <= 6 ? strtol(t->s + k + 1, NULL, 10) : PARSE_EXPONENT_MAX + 1;
        if (n > PARSE_EXPONENT_MAX || n < -PARSE_EXPONENT_MAX)
            return parse_fail(in, ERR_RANGE, t->at[k], "", "an exponent beyond %d", PARSE_EXPONENT_MAX);
        d.exponent += n;
    }
    *i = end;
    if (exact(c, d, out)) return ERR_OK;
    const char after = t->s[end]; /* strtod must not read on, as into 2E3 */
    t->s[end] = '\0';
    const double x = strtod(t->s + begin, NULL);
    t->s[end] = after;
    if (!isfinite(x) || (x < 0x1p-1022 && !zero))
        return parse_fail(in, ERR_RANGE, t->at[begin], "", "a number beyond what a double holds");
    *out = point || end > k ? sym_num(c, x) : long_whole(c, t->s + begin, k - begin);
    return ERR_OK;
}
