#include "kernels/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
} DTYPES[KERN_DTYPES_N] = {[KERN_FP32] = {"fp32"}, [KERN_BF16] = {"bf16"}, [KERN_FP16] = {"fp16"},
                           [KERN_FP8] = {"fp8"},   [KERN_INT8] = {"int8"}, [KERN_INT4_G128] = {"int4-g128"}};

static const size_t TYPE_BYTES[KERN_TYPES_N] = {
    [KERN_TYPE_F32] = 4, [KERN_TYPE_BF16] = 2, [KERN_TYPE_FP16] = 2, [KERN_TYPE_F8] = 1,
    [KERN_TYPE_I8] = 1,  [KERN_TYPE_U8] = 1,   [KERN_TYPE_I32] = 4,
};

static const char *const UNITS[KERN_UNITS_N] = {[KERN_UNIT_FP32] = "fp32",
                                                [KERN_UNIT_BF16_DOT] = "bf16-dot",
                                                [KERN_UNIT_BF16_TILE] = "bf16-tile",
                                                [KERN_UNIT_INT8_DOT] = "int8-dot",
                                                [KERN_UNIT_TENSOR] = "tensor",
                                                [KERN_UNIT_TENSOR_FP8] = "tensor-fp8",
                                                [KERN_UNIT_TENSOR_INT8] = "tensor-int8"};

size_t kern_type_bytes(enum kern_type type) { return TYPE_BYTES[type]; }
const char *kern_dtype_name(enum kern_dtype dtype) { return DTYPES[dtype].name; }
const char *kern_unit_name(enum kern_unit unit) { return UNITS[unit]; }

bool kern_dtype_find(const char *name, enum kern_dtype *out)
{
    for (size_t i = 0; i < KERN_DTYPES_N; i++)
        if (strcmp(DTYPES[i].name, name) == 0) {
            *out = (enum kern_dtype)i;
            return true;
        }
    return false;
}

/* -- variants -- */

const struct kern_variant *kern_variant_find(const struct kern *k, const char *name)
{
    for (size_t i = 0; i < k->variants_n; i++)
        if (strcmp(k->variants[i].name, name) == 0) return &k->variants[i];
    return NULL;
}

void kern_order(const struct kern *k, const struct kern_machine *m, const struct kern_variant **out)
{
    for (size_t i = 0; i < k->variants_n; i++) out[i] = &k->variants[i];
    for (size_t i = 0; m->pairs_slow && i + 1 < k->variants_n; i++) {
        const struct kern_variant *const pairs = out[i], *const plain = out[i + 1];
        if (pairs->unit != KERN_UNIT_BF16_DOT || plain->unit != KERN_UNIT_FP32 || plain->library ||
            !(plain->dtypes & KERN_HAS(KERN_BF16)))
            continue;
        out[i++] = plain;
        out[i] = pairs;
    }
}

size_t kern_pack_room(const struct kern_variant *v, const struct kern_shape *s)
{
    enum { LINE = 64 };
    return (v->pack_bytes(s) + LINE - 1) / LINE * LINE;
}

/* -- elements -- */

float kern_bf16_to(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return v;
}

uint16_t kern_bf16_from(float v)
{
    uint32_t wide;
    memcpy(&wide, &v, sizeof wide);
    if ((wide & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(wide >> 16 | 0x40u); /* NAN stays one when cut */
    return (uint16_t)((wide + 0x7fffu + (wide >> 16 & 1u)) >> 16);
}

/* binary16 -> double, IEEE 754: 1 sign, 5 exponent, 10 fraction bits. */
static double fp16_to(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double v = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(fraction + 1024, exponent - 25); /* not a unit */
    return bits & 0x8000 ? -v : v;
}

static uint16_t fp16_from(double v)
{
    const uint16_t sign = signbit(v) ? 0x8000u : 0;
    int exponent;
    if (isnan(v)) return 0x7e00;
    v = fabs(v);
    if (v >= 65520) return (uint16_t)(sign | 0x7c00u); /* halfway beyond the largest, 65504 */
    (void)frexp(v, &exponent);
    const int scale = exponent - 11 < -24 ? -24 : exponent - 11; /* weight of the last fraction bit */
    const double units = nearbyint(ldexp(v, -scale));
    return (uint16_t)(sign | (uint16_t)(scale == -24 ? units : ldexp(scale + 24, 10) + units));
}

/* e4m3 -> double: bias 7, all bits of exponent and fraction set is no number, else the largest exponent counts. */
static double f8_to(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const double v = exponent == 15 && fraction == 7 ? (double)NAN
                     : exponent == 0                 ? ldexp(fraction, -9)
                                                     : ldexp(fraction + 8, exponent - 10);
    return bits & 0x80 ? -v : v;
}

static uint8_t f8_from(double v)
{
    const uint8_t sign = signbit(v) ? 0x80u : 0;
    int exponent;
    if (isnan(v)) return 0x7f;
    v = fmin(fabs(v), 448); /* the largest */
    (void)frexp(v, &exponent);
    const int scale = exponent - 4 < -9 ? -9 : exponent - 4; /* weight of the last fraction bit */
    const double units = nearbyint(ldexp(v, -scale));
    return (uint8_t)(sign | (uint8_t)(scale == -9 ? units : ldexp(scale + 9, 3) + units));
}

double kern_read(const void *data, enum kern_type type, size_t i)
{
    switch (type) {
    case KERN_TYPE_F32: return (double)((const float *)data)[i];
    case KERN_TYPE_BF16: return (double)kern_bf16_to(((const uint16_t *)data)[i]);
    case KERN_TYPE_FP16: return fp16_to(((const uint16_t *)data)[i]);
    case KERN_TYPE_F8: return f8_to(((const uint8_t *)data)[i]);
    case KERN_TYPE_I8: return (double)((const int8_t *)data)[i];
    case KERN_TYPE_U8: return (double)((const uint8_t *)data)[i];
    case KERN_TYPE_I32: return (double)((const int32_t *)data)[i];
    case KERN_TYPES_N: break;
    }
    return (double)NAN;
}

static void put(void *data, enum kern_type type, size_t i, double v)
{
    switch (type) {
    case KERN_TYPE_F32: ((float *)data)[i] = (float)v; break;
    case KERN_TYPE_BF16: ((uint16_t *)data)[i] = kern_bf16_from((float)v); break;
    case KERN_TYPE_FP16: ((uint16_t *)data)[i] = fp16_from(v); break;
    case KERN_TYPE_F8: ((uint8_t *)data)[i] = f8_from(v); break;
    case KERN_TYPE_I8: ((int8_t *)data)[i] = (int8_t)fmax(-127, fmin(127, nearbyint(v))); break;
    case KERN_TYPE_U8: ((uint8_t *)data)[i] = (uint8_t)fmax(0, fmin(255, nearbyint(v))); break;
    case KERN_TYPE_I32: ((int32_t *)data)[i] = (int32_t)fmax(-2e9, fmin(2e9, nearbyint(v))); break;
    case KERN_TYPES_N: break;
    }
}

/* -- random numbers -- */

/* splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */
uint64_t kern_hash(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double kern_normal(uint64_t seed, uint64_t i)
{
    const uint64_t pair = i / 2;
    const double u = ((double)(kern_hash(seed, 2 * pair) >> 11) + 0.5) * 0x1p-53;
    const double v = (double)(kern_hash(seed, 2 * pair + 1) >> 11) * 0x1p-53;
    const double r = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;
    return r * (i % 2 ? sin(angle) : cos(angle));
}

void kern_fill_normal(void *data, enum kern_type type, size_t n, double sd, uint64_t seed)
{
    enum { PERIOD = 1048573 }; /* prime: no row of a matrix repeats before it does */
    const size_t fresh = n < PERIOD ? n : PERIOD, bytes = kern_type_bytes(type);
    for (size_t i = 0; i < fresh; i++) put(data, type, i, sd * kern_normal(seed, i));
    for (size_t i = fresh; i < n; i += fresh)
        memcpy((char *)data + i * bytes, data, (n - i < fresh ? n - i : fresh) * bytes);
}

void kern_fill_order(int32_t *data, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) data[i] = (int32_t)i;
    for (size_t i = n; i-- > 1;) {
        const size_t j = kern_hash(seed, i) % (i + 1);
        const int32_t swap = data[i];
        data[i] = data[j];
        data[j] = swap;
    }
}

/* -- shapes -- */

const char *kern_shape_check(const struct kern *k, const struct kern_shape *s, char *text, size_t cap)
{
    if (!(k->dtypes & KERN_HAS(s->dtype))) {
        (void)snprintf(text, cap, "%s has no %s", k->name, kern_dtype_name(s->dtype));
        return text;
    }
    for (size_t i = 0; i < k->args_n; i++) {
        const struct kern_arg *a = &k->args[i];
        if (s->v[i] >= a->lo && s->v[i] <= a->hi) continue;
        (void)snprintf(text, cap, "%s: %lld is not in %lld..%lld", a->name, (long long)s->v[i], (long long)a->lo,
                       (long long)a->hi);
        return text;
    }
    const char *why = k->refuses ? k->refuses(s) : NULL;
    if (why) (void)snprintf(text, cap, "%s", why);
    return why ? text : NULL;
}
