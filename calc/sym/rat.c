#include "calc/sym/rat.h"

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

bool rat_make(int64_t num, int64_t den, struct rat *out)
{
    if (den == 0) return false;
    const uint64_t n = rat_magnitude(num), d = rat_magnitude(den), g = gcd(n, d);
    const bool minus = (num < 0) != (den < 0);
    if (d / g > INT64_MAX || n / g > (uint64_t)INT64_MAX + (minus ? 1 : 0)) return false;
    out->num = minus ? (int64_t)(0 - n / g) : (int64_t)(n / g);
    out->den = (int64_t)(d / g);
    return true;
}

bool rat_mul(struct rat a, struct rat b, struct rat *out)
{
    struct rat x, y, r;
    return rat_make(a.num, b.den, &x) && rat_make(b.num, a.den, &y) && !__builtin_mul_overflow(x.num, y.num, &r.num) &&
           !__builtin_mul_overflow(x.den, y.den, &r.den) && rat_make(r.num, r.den, out);
}

bool rat_add(struct rat a, struct rat b, struct rat *out)
{
    const int64_t g = (int64_t)gcd((uint64_t)a.den, (uint64_t)b.den);
    int64_t x, y, num, den;
    return !__builtin_mul_overflow(a.num, b.den / g, &x) && !__builtin_mul_overflow(b.num, a.den / g, &y) &&
           !__builtin_add_overflow(x, y, &num) && !__builtin_mul_overflow(a.den, b.den / g, &den) &&
           rat_make(num, den, out);
}

bool rat_pow(struct rat a, int64_t n, struct rat *out)
{
    if (a.den == 1 && a.num >= -1 && a.num <= 1) { /* the only bases whose powers always fit */
        *out = (struct rat){n == 0 || (a.num == -1 && n % 2 == 0) ? 1 : a.num, 1};
        return true;
    }
    struct rat r = {1, 1};
    for (;;) {
        if (n & 1 && !rat_mul(r, a, &r)) return false;
        n >>= 1;
        if (n == 0) break;
        if (!rat_mul(a, a, &a)) return false;
    }
    *out = r;
    return true;
}
