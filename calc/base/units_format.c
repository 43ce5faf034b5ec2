#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"

/* A ladder of prefixes, largest first, and the unit behind them. */
struct step {
    double divisor;
    const char *label;
};

static const struct step NONE[] = {{1, ""}};
static const struct step COUNT[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}, {1, ""}};
static const struct step BYTES[] = {{1e18, "EB"}, {1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"},
                                    {1e6, "MB"},  {1e3, "kB"},  {1, "B"}};
static const struct step BYTES_IEC[] = {{0x1p60, "EiB"}, {0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
                                        {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"}};
static const struct step FLOPS[] = {{1e21, "ZFLOP"}, {1e18, "EFLOP"}, {1e15, "PFLOP"}, {1e12, "TFLOP"},
                                    {1e9, "GFLOP"},  {1e6, "MFLOP"},  {1e3, "kFLOP"},  {1, "FLOP"}};
static const struct step SECONDS[] = {{3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
static const struct step BYTES_PER_S[] = {{1e15, "PB/s"}, {1e12, "TB/s"}, {1e9, "GB/s"},
                                          {1e6, "MB/s"},  {1e3, "kB/s"},  {1, "B/s"}};
static const struct step FLOPS_PER_S[] = {{1e18, "EFLOP/s"}, {1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"},
                                          {1e6, "MFLOP/s"},  {1e3, "kFLOP/s"},  {1, "FLOP/s"}};
static const struct step BYTES_PER_TOKEN[] = {{1e9, "GB/tok"}, {1e6, "MB/tok"}, {1e3, "kB/tok"}, {1, "B/tok"}};
static const struct step BYTES_PER_SEQ[] = {{1e9, "GB/seq"}, {1e6, "MB/seq"}, {1e3, "kB/seq"}, {1, "B/seq"}};
static const struct step TOK_PER_S[] = {{1, "tok/s"}};
static const struct step INTENSITY[] = {{1, "flop/byte"}};
static const struct step USD[] = {{1, "$"}};
static const struct step USD_PER_MTOK[] = {{1, "$/Mtok"}};
static const struct step WATTS[] = {{1e6, "MW"}, {1e3, "kW"}, {1, "W"}};

struct ladder {
    const struct step *steps;
    size_t n;
};

#define LADDER(steps) ((struct ladder){steps, sizeof steps / sizeof steps[0]})

static struct ladder ladder_of(enum units_kind kind)
{
    switch (kind) {
    case UNITS_COUNT: return LADDER(COUNT);
    case UNITS_BYTES: return LADDER(BYTES);
    case UNITS_FLOPS: return LADDER(FLOPS);
    case UNITS_SECONDS: return LADDER(SECONDS);
    case UNITS_BYTES_PER_S: return LADDER(BYTES_PER_S);
    case UNITS_FLOPS_PER_S: return LADDER(FLOPS_PER_S);
    case UNITS_TOK_PER_S: return LADDER(TOK_PER_S);
    case UNITS_FLOPS_PER_BYTE: return LADDER(INTENSITY);
    case UNITS_BYTES_PER_TOKEN: return LADDER(BYTES_PER_TOKEN);
    case UNITS_BYTES_PER_SEQUENCE: return LADDER(BYTES_PER_SEQ);
    case UNITS_USD: return LADDER(USD);
    case UNITS_USD_PER_MTOK: return LADDER(USD_PER_MTOK);
    case UNITS_WATTS: return LADDER(WATTS);
    case UNITS_NONE:
    case UNITS_COUNT_PER_S:
    case UNITS_FRAC:
    case UNITS_RATIO: break;
    }
    return LADDER(NONE);
}

/* The step whose rounded value is at least 1: 999.96 MB is shown as 1 GB. */
static size_t step_for(struct ladder l, double magnitude)
{
    for (size_t i = 0; i + 1 < l.n; i++)
        if (magnitude / l.steps[i].divisor >= 0.99995) return i;
    return l.n - 1;
}

/* The step without prefix: zero and unknown are shown in it. */
static size_t base_step(struct ladder l)
{
    size_t i = 0;
    while (i + 1 < l.n && l.steps[i].divisor > 1) i++;
    return i;
}

static void strip_zeros(char *s)
{
    if (!strchr(s, '.') || strchr(s, 'e')) return;
    size_t n = strlen(s);
    while (s[n - 1] == '0') s[--n] = '\0';
    if (s[n - 1] == '.') s[n - 1] = '\0';
}

const char *units_format_plain(char out[UNITS_TEXT_MAX], double v)
{
    const double x = fabs(v);
    if (isnan(v))
        (void)snprintf(out, UNITS_TEXT_MAX, "-");
    else if (isinf(v))
        (void)snprintf(out, UNITS_TEXT_MAX, "%sinf", v < 0 ? "-" : "");
    else if (x >= 999.95 && x < 1e15)
        (void)snprintf(out, UNITS_TEXT_MAX, "%.0f", v);
    else
        (void)snprintf(out, UNITS_TEXT_MAX, "%.4g", v == 0 ? 0 : v);
    return out;
}

static const char *format_on(char out[UNITS_TEXT_MAX], struct ladder l, const char *space, double v)
{
    units_format_plain(out, v);
    if (!isfinite(v)) return out;
    const struct step *s = &l.steps[v == 0 ? base_step(l) : step_for(l, fabs(v))];
    units_format_plain(out, v / s->divisor);
    strip_zeros(out);
    const size_t n = strlen(out);
    (void)snprintf(out + n, UNITS_TEXT_MAX - n, "%s%s", s->label[0] ? space : "", s->label);
    return out;
}

const char *units_format(char out[UNITS_TEXT_MAX], enum units_kind kind, double v)
{
    return format_on(out, ladder_of(kind), kind == UNITS_COUNT ? "" : " ", v);
}

const char *units_format_bytes(char out[UNITS_TEXT_MAX], double bytes) { return units_format(out, UNITS_BYTES, bytes); }
const char *units_format_time(char out[UNITS_TEXT_MAX], double s) { return units_format(out, UNITS_SECONDS, s); }
const char *units_format_flops(char out[UNITS_TEXT_MAX], double flops) { return units_format(out, UNITS_FLOPS, flops); }
const char *units_format_count(char out[UNITS_TEXT_MAX], double n) { return units_format(out, UNITS_COUNT, n); }

const char *units_format_bytes_iec(char out[UNITS_TEXT_MAX], double bytes)
{
    return format_on(out, LADDER(BYTES_IEC), " ", bytes);
}

const char *units_format_digits(char out[UNITS_TEXT_MAX], double count)
{
    if (!(fabs(count) < 0x1p63) || count != floor(count)) return units_format_count(out, count);
    char digits[TEXT_NUMBER_MAX];
    const size_t n = text_int(digits, (int64_t)count), sign = digits[0] == '-';
    size_t w = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > sign && (n - i) % 3 == 0) out[w++] = ',';
        out[w++] = digits[i];
    }
    out[w] = '\0';
    return out;
}

struct units_scale units_scale_for(enum units_kind kind, double min, double max)
{
    const struct ladder l = ladder_of(kind);
    size_t i = isfinite(max) && max > 0 ? step_for(l, max) : base_step(l);
    while (i + 1 < l.n && min / l.steps[i].divisor < 0.1 && max / l.steps[i + 1].divisor < 1e5) i++;
    return (struct units_scale){.divisor = l.steps[i].divisor, .label = l.steps[i].label};
}
