#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/learn/grade.h"
#include "calc/sym/parse.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static char previous(const char *text, size_t i)
{
    while (i > 0 && text[i - 1] == ' ') i--;
    return i > 0 ? text[i - 1] : '\0';
}

static char following(const char *text, size_t i)
{
    while (text[++i] == ' ') continue;
    return text[i];
}

/* An e of 1.3e10, at i. */
static bool is_exponent(const char *text, size_t i)
{
    if ((text[i] != 'e' && text[i] != 'E') || i == 0 || !(is_digit(text[i - 1]) || text[i - 1] == '.')) return false;
    const size_t sign = text[i + 1] == '-' || text[i + 1] == '+';
    return is_digit(text[i + 1 + sign]);
}

/* Where the unit begins. An x between numbers is made a product. */
static size_t split(char *text)
{
    size_t i = 0;
    for (; text[i]; i++) {
        if (is_exponent(text, i)) continue;
        if ((text[i] == 'x' || text[i] == 'X') && is_digit(previous(text, i)) && is_digit(following(text, i))) {
            text[i] = '*';
            continue;
        }
        const bool micro = strncmp(text + i, "\xC2\xB5", 2) == 0 || strncmp(text + i, "\xCE\xBC", 2) == 0;
        const bool times = strcmp(text + i, "\xC3\x97") == 0;
        if (is_letter(text[i]) || text[i] == '%' || text[i] == '$' || micro || times) return i;
    }
    return i;
}

/* Whether the commas of a run of digits, commas and points group thousands; the run without them goes to out. */
static bool ungroup(const char *run, size_t n, char *out, size_t *used)
{
    const size_t point = strcspn(run, "."), whole = point < n ? point : n;
    size_t digits = 0, w = 0;
    bool grouped = false;
    for (size_t i = 0; i < n; i++) {
        if (run[i] == ',' && (i > whole || digits == 0 || digits > 3 || (grouped && digits != 3))) return false;
        if (i == whole && grouped && digits != 3) return false;
        if (run[i] == ',') {
            grouped = true;
            digits = 0;
            continue;
        }
        digits++;
        out[w++] = run[i];
    }
    *used = w;
    return !(grouped && whole == n && digits != 3);
}

/* The blanks and underscores of 13 015 449 600 as commas, where three digits follow and no more. */
static void join_thousands(char *text)
{
    for (size_t i = 1; text[i]; i++)
        if ((text[i] == ' ' || text[i] == '_') && is_digit(text[i - 1]) && strspn(text + i + 1, "0123456789") == 3)
            text[i] = ',';
}

/* Take the commas of 13,015,449,600 out; false where they do not group thousands. */
static bool take_commas(char *text)
{
    size_t w = 0, used;
    for (size_t i = 0; text[i];) {
        const size_t n = strspn(text + i, "0123456789,.");
        if (n == 0) {
            text[w++] = text[i++];
            continue;
        }
        if (!ungroup(text + i, n, text + w, &used)) return false;
        i += n;
        w += used;
    }
    text[w] = '\0';
    return true;
}

static void trim_end(char *text)
{
    size_t n = strlen(text);
    while (n && (text[n - 1] == ' ' || text[n - 1] == '\t')) text[--n] = '\0';
}

static const char *behind_signs(const char *text, bool dollars)
{
    for (;;) {
        if (*text == ' ' || *text == '\t' || *text == '~' || (dollars && *text == '$'))
            text++;
        else if (strncmp(text, "\xE2\x89\x88", 3) == 0) /* almost equal */
            text += 3;
        else
            return text;
    }
}

static bool is_usd(enum units_kind kind) { return kind == UNITS_USD || kind == UNITS_USD_PER_MTOK; }

/* What was asked, for a sentence: "a time (s, ms, us)", "a number of days", "a count of sequences". */
static const char *wanted_name(const struct grade *g)
{
    const struct exercise_question *q = g->q;
    if (q->bare) return arena_printf(g->arena, "%s, as %s or with its unit,", units_kind_name(q->unit), q->bare);
    const bool rate = q->unit == UNITS_COUNT_PER_S;
    if ((q->unit != UNITS_COUNT && !rate) || !q->things) return units_kind_name(q->unit);
    return arena_printf(g->arena, rate ? "%.*ss a second" : "a count (of %.*ss)", (int)strcspn(q->things, ","),
                        q->things);
}

/* The unit behind the number: its factor, or why it will not do. */
static enum err_code read_unit(const struct grade *g, const char *unit, bool dollar, double *factor, const char **why,
                               struct err *e)
{
    enum units_kind kind = UNITS_NONE;
    const struct exercise_question *q = g->q;
    const char *asked = wanted_name(g);
    char clean[48];
    *factor = 1;
    if (!asked) return err_nomem(e);
    if (!*unit && q->bare && units_read_word(q->bare, strlen(q->bare), q->unit, q->things, &kind, factor))
        return ERR_OK;
    if (!*unit && (dollar || units_kind_bare(q->unit))) return ERR_OK;
    if (!*unit)
        *why = arena_printf(g->arena, "%s was asked: give the unit", asked);
    else if (!units_read_word(unit, strlen(unit), q->unit, q->things, &kind, factor))
        *why = arena_printf(g->arena, "the unit '%s' is not known; %s was asked",
                            text_clean(clean, sizeof clean, unit, strlen(unit)), asked);
    else if (kind != q->unit)
        *why = arena_printf(g->arena, "%s was asked; this is %s", asked, units_kind_name(kind));
    else
        return ERR_OK;
    return *why ? ERR_OK : err_nomem(e);
}

/* text: the number alone, with nothing or a unit behind it. */
static enum err_code read_value(const struct grade *g, char *text, bool has_unit, double *value, const char **why,
                                struct err *e)
{
    const struct sym *number;
    struct err refused;
    const struct parse_names none = {.symbols = NULL};
    trim_end(text);
    if (!*text) {
        *why = "a finite number is asked, its unit behind it";
        return ERR_OK;
    }
    join_thousands(text);
    if (!take_commas(text)) {
        *why = "a comma groups thousands (13,015,449,600); decimals have a point";
        return ERR_OK;
    }
    const enum err_code code = sym_parse(g->c, text, strlen(text), &none, &number, NULL, &refused);
    if (code == ERR_NOMEM) return err_nomem(e);
    if (code != ERR_OK && has_unit) {
        *why = "this cannot be read as a number with its unit behind it";
        return ERR_OK;
    }
    if (code != ERR_OK) {
        *why = arena_printf(g->arena, "cannot be read as a number: %s", refused.text);
        return *why ? ERR_OK : err_nomem(e);
    }
    if (!sym_constant(number, value) || !isfinite(*value)) *why = "a number is asked, not beyond all bounds";
    return ERR_OK;
}

void grade_plain_units(char *text)
{
    static const struct {
        const char *from, *to;
    } WORDS[] = {{"\\,", " "}, {"\\;", " "}, {"\\ ", " "}, {"\\times", "*"}, {"\\cdot", "*"}, {"\\%", "%"}};
    static const char *const UPRIGHT[] = {"\\text{", "\\mathrm{", "\\textrm{"};
    size_t w = 0;
    for (char *p = text; *p;) {
        size_t i = 0, u = 0;
        while (i < sizeof WORDS / sizeof WORDS[0] && strncmp(p, WORDS[i].from, strlen(WORDS[i].from)) != 0) i++;
        while (u < sizeof UPRIGHT / sizeof UPRIGHT[0] && strncmp(p, UPRIGHT[u], strlen(UPRIGHT[u])) != 0) u++;
        char *close = u < sizeof UPRIGHT / sizeof UPRIGHT[0] ? strchr(p, '}') : NULL;
        if (close) {
            *close = ' ';
            p += strlen(UPRIGHT[u]);
        } else if (i < sizeof WORDS / sizeof WORDS[0]) {
            text[w++] = *WORDS[i].to;
            p += strlen(WORDS[i].from);
        } else {
            text[w++] = *p++;
        }
    }
    text[w] = '\0';
    trim_end(text);
}

/* The "1/" or "/" of 2898 1/s, which split leaves with the number: where the unit begins with it. */
static size_t begin_of_rate(const char *text, size_t at)
{
    size_t i = at;
    while (i > 0 && text[i - 1] == ' ') i--;
    if (i == 0 || text[i - 1] != '/') return at;
    i--;
    size_t one = i;
    while (one > 0 && text[one - 1] == ' ') one--;
    if (one > 1 && text[one - 1] == '1' && text[one - 2] == ' ') return one - 1;
    return i;
}

enum err_code grade_read_number(const struct grade *g, const char *text, struct grade_number *out, const char **why,
                                struct err *e)
{
    const char *right = behind_signs(text, false), *begin = behind_signs(right, is_usd(g->q->unit));
    char *number = arena_strndup(g->arena, begin, strlen(begin));
    *why = NULL;
    if (!number) return err_nomem(e);
    const bool dollar = begin != right;
    grade_plain_units(number);
    size_t at = split(number);
    const char *stroke = dollar && number[at] ? strchr(number, '/') : NULL;
    if (stroke && (size_t)(stroke - number) < at) at = (size_t)(stroke - number); /* $0.50/1M tokens */
    if (number[at] && !dollar) at = begin_of_rate(number, at);
    const bool word = strncmp(number + at, "per ", 4) == 0;
    const char *sign = dollar && number[at] ? "$" : "";
    const char *unit = arena_printf(g->arena, "%s%s%s", sign, word ? " " : "", number + at);
    if (!unit) return err_nomem(e);
    number[at] = '\0';
    TRY(read_value(g, number, *unit != '\0', &out->raw, why, e));
    if (*why) return ERR_OK;
    TRY(read_unit(g, unit, dollar, &out->factor, why, e));
    out->value = out->raw * out->factor;
    if (!*why && !isfinite(out->value)) *why = "a number is asked, not beyond all bounds";
    return ERR_OK;
}

static bool is_near(double value, double of, double tolerance_frac)
{
    return fabs(value - of) <= fmax(tolerance_frac, 4 * DBL_EPSILON) * fabs(of);
}

static bool is_bytes(enum units_kind kind)
{
    return kind == UNITS_BYTES || kind == UNITS_BYTES_PER_S || kind == UNITS_BYTES_PER_TOKEN ||
           kind == UNITS_BYTES_PER_SEQUENCE;
}

/* The prefixes of bytes that differ by a few percent, as factors of both kinds. */
static const struct {
    double decimal, binary;
    const char *hint;
} PREFIXES[] = {
    {1e3, 0x1p10, "off by 1.024, the ratio of KiB (1024 bytes) to kB (1000 bytes)"},
    {1e6, 0x1p20, "off by 1.049, the ratio of MiB (2^20 bytes) to MB (1e6 bytes)"},
    {1e9, 0x1p30, "off by 1.074, the ratio of GiB (2^30 bytes) to GB (1e9 bytes)"},   /* not a unit */
    {1e12, 0x1p40, "off by 1.100, the ratio of TiB (2^40 bytes) to TB (1e12 bytes)"}, /* not a unit */
};

/* A factor between what was given and what is right, either way round. */
static const struct {
    double factor;
    bool bytes, part; /* only of bytes; only of parts and ratios */
    const char *hint;
} FACTORS[] = {
    {8, true, false, "off by a factor of 8: bits for bytes"},
    {2, false, false, "off by a constant factor: a 2 is too many, or missing"},
    {4, false, false, "off by a constant factor: a power of 2 is too many, or missing"},
    {8, false, false, "off by a constant factor: a power of 2 is too many, or missing"},
    {16, false, false, "off by a constant factor: a power of 2 is too many, or missing"},
    {100, false, true, "off by a factor of 100: a part of one, or percent with its sign"},
    {1e3, false, false, "off by a factor of 1000: check the prefix"},
    {1e6, false, false, "off by a factor of a million: check the prefix"},
    {1e9, false, false, "off by a factor of 1e9: check the prefix"},   /* not a unit */
    {1e12, false, false, "off by a factor of 1e12: check the prefix"}, /* not a unit */
};

static const char *find_factor(const struct exercise_question *q, const struct grade_number *x)
{
    const double tolerance_frac = fmin(fmax(q->tolerance_frac, 1e-6), 0.01);
    const double ratio = x->value / q->value;
    if (!(ratio > 0) || !isfinite(ratio)) return NULL;
    for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0] && is_bytes(q->unit); i++) {
        const double f = PREFIXES[i].binary / PREFIXES[i].decimal;
        const bool typed = x->factor == PREFIXES[i].decimal || x->factor == PREFIXES[i].binary;
        if (typed && (is_near(ratio, f, tolerance_frac) || is_near(ratio, 1 / f, tolerance_frac)))
            return PREFIXES[i].hint;
    }
    for (size_t i = 0; i < sizeof FACTORS / sizeof FACTORS[0]; i++) {
        const double f = FACTORS[i].factor;
        if (FACTORS[i].bytes && !is_bytes(q->unit) && q->unit != UNITS_FLOPS_PER_BYTE) continue;
        if (FACTORS[i].part && q->unit != UNITS_FRAC && q->unit != UNITS_RATIO) continue;
        if (is_near(ratio, f, tolerance_frac) || is_near(ratio, 1 / f, tolerance_frac)) return FACTORS[i].hint;
    }
    return NULL;
}

/* Near an exact answer: what is wrong with it. */
static const char *near_whole(const struct exercise_question *q, double value)
{
    enum { DIGITS_MIN = 100000 }; /* a number of so many digits is rounded, a smaller one is miscounted */
    if (value != floor(value)) return "a whole number is asked, and this is none";
    return q->value < DIGITS_MIN ? "near, but the exact number is asked, and this is not it"
                                 : "near, but the exact number is asked: give all digits";
}

static enum err_code say_number(const struct grade *g, const struct grade_number *x, struct exercise_verdict *out,
                                struct err *e)
{
    const struct exercise_question *q = g->q;
    const double value = x->value;
    for (size_t i = 0; i < q->slips_n; i++)
        if (is_near(value, q->slips[i].value, q->tolerance_frac)) return grade_wrong(g, out, e, "%s", q->slips[i].hint);
    if (value < 0 && q->value > 0) return grade_wrong(g, out, e, "below zero, which it cannot be");
    const char *factor = find_factor(q, x);
    if (factor) return grade_wrong(g, out, e, "%s", factor);
    const double off = fabs(value / q->value - 1);
    if (q->tolerance_frac > 0 && off < fmax(0.02, 5 * q->tolerance_frac))
        return grade_wrong(g, out, e, "near, but not within %.3g%%: rounded too early?", 100 * q->tolerance_frac);
    if (!(q->tolerance_frac > 0) && off < 0.01) return grade_wrong(g, out, e, "%s", near_whole(q, value));
    return grade_wrong(g, out, e, value > q->value ? "too large" : "too small");
}

static enum err_code show_given(const struct grade *g, double value, struct exercise_verdict *out, struct err *e)
{
    char unit[UNITS_TEXT_MAX];
    const char *base = strchr(units_format(unit, g->q->unit, g->q->unit == UNITS_COUNT ? (double)NAN : 0), ' ');
    out->given = arena_printf(g->arena, "%.12g%s", value, base ? base : "");
    return out->given ? ERR_OK : err_nomem(e);
}

/* A side in front of the last '=': a name, or the same number, there or before its unit; else *why. */
static enum err_code check_side(const struct grade *g, const char *side, bool first, const struct grade_number *last,
                                const char **why, struct err *e)
{
    const double tolerance_frac = fmax(g->q->tolerance_frac, 0.01); /* what is computed is written rounded */
    struct grade_number x = {0, 0, 1};
    *why = NULL;
    if (first && grade_is_label(side)) return ERR_OK;
    TRY(grade_read_number(g, side, &x, why, e));
    if (*why) {
        char *number = arena_strndup(g->arena, side, strlen(side));
        if (!number) return err_nomem(e);
        *why = NULL;
        TRY(read_value(g, number, false, &x.raw, why, e));
        x.value = x.raw;
    }
    if (*why)
        *why = "what is in front of '=' cannot be read: give the last number alone";
    else if (!is_near(x.value, last->value, tolerance_frac) && !is_near(x.raw, last->raw, tolerance_frac))
        *why = "the sides of '=' are not equal: give one number";
    return ERR_OK;
}

enum err_code grade_number(const struct grade *g, struct exercise_verdict *out, struct err *e)
{
    struct grade_number x = {0, 0, 1};
    const char *side[GRADE_SIDES_MAX], *why;
    const size_t n = grade_sides(g, side);
    if (n == 0) return err_nomem(e);
    TRY(grade_read_number(g, side[n - 1], &x, &why, e));
    for (size_t i = 0; i + 1 < n && !why; i++) TRY(check_side(g, side[i], i == 0, &x, &why, e));
    if (why) return grade_wrong(g, out, e, "%s", why);
    TRY(show_given(g, x.value, out, e));
    out->right = is_near(x.value, g->q->value, g->q->tolerance_frac);
    return out->right ? ERR_OK : say_number(g, &x, out, e);
}
