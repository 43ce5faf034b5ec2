#include <string.h>

#include "calc/base/units.h"

enum { UNIT_MAX = 64 };

enum base { NOTHING, BYTE, FLOP, SECOND, TOKEN, SEQUENCE, STEP, THING, DOLLAR, WATT, PART, TIMES };

struct word {
    const char *text;
    enum base base;
    double factor;
};

/* As typed: case counts, and a symbol of a prefix may stand in front. */
static const struct word SYMBOLS[] = {
    {"B", BYTE, 1}, {"b", BYTE, 0.125}, {"s", SECOND, 1},  {"d", SECOND, 86400},
    {"W", WATT, 1}, {"$", DOLLAR, 1},   {"%", PART, 0.01},
};

/* In any case; a prefix, as symbol or word, may stand in front of those that have an SI prefix. */
static const struct word WORDS[] = {
    {"byte", BYTE, 1},           {"bytes", BYTE, 1},        {"bit", BYTE, 0.125},     {"bits", BYTE, 0.125},
    {"flop", FLOP, 1},           {"flops", FLOP, 1},        {"op", FLOP, 1},          {"ops", FLOP, 1},
    {"sec", SECOND, 1},          {"secs", SECOND, 1},       {"second", SECOND, 1},    {"seconds", SECOND, 1},
    {"min", SECOND, 60},         {"mins", SECOND, 60},      {"minute", SECOND, 60},   {"minutes", SECOND, 60},
    {"h", SECOND, 3600},         {"hr", SECOND, 3600},      {"hrs", SECOND, 3600},    {"hour", SECOND, 3600},
    {"hours", SECOND, 3600},     {"day", SECOND, 86400},    {"days", SECOND, 86400},  {"wk", SECOND, 604800},
    {"week", SECOND, 604800},    {"weeks", SECOND, 604800}, {"yr", SECOND, 31557600}, {"year", SECOND, 31557600},
    {"years", SECOND, 31557600}, {"tok", TOKEN, 1},         {"toks", TOKEN, 1},       {"token", TOKEN, 1},
    {"tokens", TOKEN, 1},        {"seq", SEQUENCE, 1},      {"seqs", SEQUENCE, 1},    {"sequence", SEQUENCE, 1},
    {"sequences", SEQUENCE, 1},  {"step", STEP, 1},         {"steps", STEP, 1},       {"pass", STEP, 1},
    {"passes", STEP, 1},         {"usd", DOLLAR, 1},        {"dollar", DOLLAR, 1},    {"dollars", DOLLAR, 1},
    {"cent", DOLLAR, 0.01},      {"cents", DOLLAR, 0.01},   {"watt", WATT, 1},        {"watts", WATT, 1},
    {"percent", PART, 0.01},     {"per cent", PART, 0.01},  {"pct", PART, 0.01},      {"x", TIMES, 1},
    {"times", TIMES, 1},         {"fold", TIMES, 1},        {"-fold", TIMES, 1},      {"\xC3\x97", TIMES, 1},
};

static const struct {
    const char *symbol, *word;
    double factor;
} PREFIXES[] = {
    {"Ki", "kibi", 0x1p10},  {"Mi", "mebi", 0x1p20}, {"Gi", "gibi", 0x1p30},      {"Ti", "tebi", 0x1p40},
    {"Pi", "pebi", 0x1p50},  {"k", "kilo", 1e3},     {"K", "thousand", 1e3},      {"M", "mega", 1e6},
    {"M", "million", 1e6},   {"G", "giga", 1e9},     {"G", "billion", 1e9},       {"T", "tera", 1e12},
    {"T", "trillion", 1e12}, {"P", "peta", 1e15},    {"E", "exa", 1e18},          {"Z", "zetta", 1e21},
    {"m", "milli", 1e-3},    {"u", "micro", 1e-6},   {"\xC2\xB5", "micro", 1e-6}, {"\xCE\xBC", "micro", 1e-6},
    {"n", "nano", 1e-9},     {"p", "pico", 1e-12},
};

/* How many of things there are. */
static const struct {
    const char *text;
    double factor;
} SCALES[] = {
    {"B", 1e9},         {"bn", 1e9},       {"billion", 1e9}, {"G", 1e9},     {"giga", 1e9},
    {"M", 1e6},         {"mn", 1e6},       {"million", 1e6}, {"mega", 1e6},  {"K", 1e3},
    {"k", 1e3},         {"thousand", 1e3}, {"kilo", 1e3},    {"T", 1e12},    {"tera", 1e12},
    {"trillion", 1e12}, {"Ki", 0x1p10},    {"Mi", 0x1p20},   {"Gi", 0x1p30},
};

struct span {
    const char *s;
    size_t len;
};

static struct span trim(struct span t)
{
    while (t.len && (*t.s == ' ' || *t.s == '\t')) t.s++, t.len--;
    while (t.len && (t.s[t.len - 1] == ' ' || t.s[t.len - 1] == '\t' || t.s[t.len - 1] == '.')) t.len--;
    return t;
}

static bool is_exactly(struct span t, const char *word) { return strlen(word) == t.len && !memcmp(t.s, word, t.len); }
static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool begins(struct span t, const char *word, bool any_case)
{
    const size_t n = strlen(word);
    if (n > t.len) return false;
    for (size_t i = 0; i < n; i++)
        if (any_case ? lower(t.s[i]) != lower(word[i]) : t.s[i] != word[i]) return false;
    return true;
}

static struct span behind(struct span t, size_t n) { return trim((struct span){t.s + n, t.len - n}); }

static const struct word *plain(struct span t)
{
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof SYMBOLS[0]; i++)
        if (is_exactly(t, SYMBOLS[i].text)) return &SYMBOLS[i];
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (strlen(WORDS[i].text) == t.len && begins(t, WORDS[i].text, true)) return &WORDS[i];
    return NULL;
}

/* A unit with its prefix; false when it is none. */
static bool read_atom(struct span t, enum base *base, double *factor)
{
    if (t.len && *t.s == '1') t = behind(t, 1); /* $/1M tokens */
    const struct word *w = plain(t);
    double prefix = 1;
    for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0] && !w; i++) {
        prefix = PREFIXES[i].factor;
        if (begins(t, PREFIXES[i].word, true)) w = plain(behind(t, strlen(PREFIXES[i].word)));
        if (!w && begins(t, PREFIXES[i].symbol, false)) w = plain(behind(t, strlen(PREFIXES[i].symbol)));
    }
    /* gflops: of flops and tokens nobody counts thousandths */
    for (size_t i = 0; i < sizeof PREFIXES / sizeof PREFIXES[0] && !w; i++) {
        prefix = PREFIXES[i].factor;
        if (prefix > 1 && begins(t, PREFIXES[i].symbol, true)) w = plain(behind(t, strlen(PREFIXES[i].symbol)));
        if (w && w->base != FLOP) w = NULL;
    }
    if (!w) return false;
    *base = w->base;
    *factor = prefix * w->factor;
    return true;
}

static const struct {
    enum base above, below;
    enum units_kind kind;
    double factor;
} KINDS[] = {
    {BYTE, NOTHING, UNITS_BYTES, 1},
    {FLOP, NOTHING, UNITS_FLOPS, 1},
    {SECOND, NOTHING, UNITS_SECONDS, 1},
    {TOKEN, NOTHING, UNITS_COUNT, 1},
    {SEQUENCE, NOTHING, UNITS_COUNT, 1},
    {DOLLAR, NOTHING, UNITS_USD, 1},
    {WATT, NOTHING, UNITS_WATTS, 1},
    {PART, NOTHING, UNITS_FRAC, 1},
    {TIMES, NOTHING, UNITS_RATIO, 1},
    {BYTE, SECOND, UNITS_BYTES_PER_S, 1},
    {FLOP, SECOND, UNITS_FLOPS_PER_S, 1},
    {TOKEN, SECOND, UNITS_TOK_PER_S, 1},
    {THING, SECOND, UNITS_COUNT_PER_S, 1},
    {FLOP, BYTE, UNITS_FLOPS_PER_BYTE, 1},
    {BYTE, TOKEN, UNITS_BYTES_PER_TOKEN, 1},
    {BYTE, SEQUENCE, UNITS_BYTES_PER_SEQUENCE, 1},
    {DOLLAR, TOKEN, UNITS_USD_PER_MTOK, 1e6},
    {SECOND, STEP, UNITS_SECONDS, 1},  /* of one step: the question says of what */
    {SECOND, TOKEN, UNITS_SECONDS, 1}, /* of one token of each sequence */
    {BYTE, STEP, UNITS_BYTES, 1},
    {FLOP, STEP, UNITS_FLOPS, 1},
};

/* What may be left out behind the stroke, because the question says it. */
static enum units_kind short_for(enum units_kind kind, enum units_kind wanted)
{
    if (kind == UNITS_BYTES && (wanted == UNITS_BYTES_PER_TOKEN || wanted == UNITS_BYTES_PER_SEQUENCE)) return wanted;
    if (kind == UNITS_FLOPS && wanted == UNITS_FLOPS_PER_S) return wanted; /* TFLOPS */
    if (kind == UNITS_USD && wanted == UNITS_USD_PER_MTOK) return wanted;
    if (kind == UNITS_FRAC && wanted == UNITS_RATIO) return wanted; /* 150% */
    return kind;
}

/* Whether t is one of the things, a list with commas, of which each may have an s behind it. */
static bool is_thing(struct span t, const char *things)
{
    for (const char *at = things; at && *at;) {
        const size_t n = strcspn(at, ",");
        const bool plural = t.len == n + 1 && lower(t.s[n]) == 's';
        size_t i = 0;
        while (i < n && i < t.len && lower(t.s[i]) == lower(at[i])) i++;
        if (i == n && (t.len == n || plural)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* "billion", "M", "Gparams", "sequences". */
static bool read_count(struct span t, const char *things, double *factor)
{
    *factor = 1;
    if (is_thing(t, things)) return true;
    for (size_t i = 0; i < sizeof SCALES / sizeof SCALES[0]; i++) {
        const size_t n = strlen(SCALES[i].text);
        if (!begins(t, SCALES[i].text, n > 2)) continue;
        const struct span rest = behind(t, n);
        if (rest.len && !is_thing(rest, things)) continue;
        *factor = SCALES[i].factor;
        return true;
    }
    return false;
}

/* The text with " per ", " a " and " an " as a stroke. */
static struct span with_strokes(const char *text, size_t len, char room[UNIT_MAX])
{
    struct span out = {room, 0};
    if (len >= UNIT_MAX) return out;
    for (size_t i = 0; i < len; i++) {
        const struct span rest = {text + i, len - i};
        const size_t n = begins(rest, " per ", true) && !begins(rest, " per cent", true) ? strlen(" per ")
                         : begins(rest, " a ", true)                                     ? strlen(" a ")
                         : begins(rest, " an ", true)                                    ? strlen(" an ")
                                                                                         : 0;
        if (n > 0) {
            room[out.len++] = '/';
            i += n - 1;
        } else {
            room[out.len++] = text[i];
        }
    }
    return trim(out);
}

static bool read_rate(struct span t, enum units_kind *kind, double *factor)
{
    static const struct {
        const char *end, *unit;
    } SHORT[] = {{"Bps", "B"}, {"bps", "b"}, {"tps", "tok"}};
    for (size_t i = 0; i < sizeof SHORT / sizeof SHORT[0]; i++) {
        if (t.len < 3 || memcmp(t.s + t.len - 3, SHORT[i].end, 3) != 0) continue;
        char atom[UNIT_MAX];
        const size_t n = t.len - 3, m = strlen(SHORT[i].unit);
        enum base base;
        memcpy(atom, t.s, n);
        memcpy(atom + n, SHORT[i].unit, m);
        if (!read_atom((struct span){atom, n + m}, &base, factor)) continue;
        *kind = base == BYTE ? UNITS_BYTES_PER_S : UNITS_TOK_PER_S;
        return true;
    }
    return false;
}

/* "57 times smaller", "43% of the layer": what the question says already, cut off. */
static struct span without_comparison(struct span t, enum units_kind wanted)
{
    static const char *const WORDS_OF[] = {"smaller", "larger", "faster", "slower", "higher", "lower",
                                           "fewer",   "less",   "more",   "longer", "shorter"};
    if (wanted == UNITS_FRAC || wanted == UNITS_RATIO)
        for (size_t i = 1; i + 4 <= t.len; i++)
            if (begins((struct span){t.s + i, t.len - i}, " of ", true)) return trim((struct span){t.s, i});
    for (size_t i = 0; i < sizeof WORDS_OF / sizeof WORDS_OF[0] && wanted == UNITS_RATIO; i++) {
        const size_t n = strlen(WORDS_OF[i]);
        if (t.len > n + 1 && t.s[t.len - n - 1] == ' ' && begins((struct span){t.s + t.len - n, n}, WORDS_OF[i], true))
            return trim((struct span){t.s, t.len - n});
    }
    return t;
}

/* What stands in front of the stroke and behind it, "t/s", "1/s", "requests/s", "$/1M" included. */
static bool read_ratio(struct span t, enum units_kind wanted, const char *things, enum base *above, double *up,
                       enum base *below, double *down)
{
    const char *stroke = memchr(t.s, '/', t.len);
    const struct span top = trim((struct span){t.s, stroke ? (size_t)(stroke - t.s) : t.len});
    if (!stroke && wanted == UNITS_COUNT_PER_S && is_thing(top, things)) {
        *above = THING;
        *below = SECOND;
        return true;
    }
    if (!stroke) return read_atom(top, above, up);
    const struct span bottom = behind(t, (size_t)(stroke - t.s) + 1);
    const bool one = top.len == 0 || is_exactly(top, "1");
    if (wanted == UNITS_TOK_PER_S && (one || is_exactly(top, "t")))
        *above = TOKEN;
    else if (wanted == UNITS_COUNT_PER_S && (one || is_thing(top, things)))
        *above = THING;
    else if (!read_atom(top, above, up))
        return false;
    if (read_atom(bottom, below, down)) return true;
    if (*above != DOLLAR) return false;
    const struct span million = bottom.len && *bottom.s == '1' ? behind(bottom, 1) : bottom; /* of tokens */
    *below = TOKEN;
    *down = 1e6;
    return is_exactly(million, "M") || (million.len == 7 && begins(million, "million", true));
}

bool units_read_word(const char *text, size_t len, enum units_kind wanted, const char *things, enum units_kind *kind,
                     double *factor)
{
    char room[UNIT_MAX];
    const struct span t = without_comparison(with_strokes(text, len, room), wanted);
    enum base above = NOTHING, below = NOTHING;
    double up = 1, down = 1;
    *kind = UNITS_NONE;
    if (t.len == 0) return false;
    if (wanted == UNITS_COUNT && read_count(t, things, factor)) {
        *kind = UNITS_COUNT;
        return true;
    }
    if (read_rate(t, kind, factor)) return true;
    if (!read_ratio(t, wanted, things, &above, &up, &below, &down)) return false;
    if (wanted == UNITS_COUNT && (above == TOKEN || above == SEQUENCE) && below == NOTHING) return false;
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++)
        if (KINDS[i].above == above && KINDS[i].below == below) {
            *kind = short_for(KINDS[i].kind, wanted);
            *factor = up / down * KINDS[i].factor;
            return true;
        }
    return false;
}

static const struct {
    const char *name;
    bool bare;
} NAMES[] = {
    [UNITS_NONE] = {"a plain number", true},
    [UNITS_COUNT] = {"a count", true},
    [UNITS_BYTES] = {"a number of bytes (B, GB, GiB)", false},
    [UNITS_FLOPS] = {"a number of flops (FLOP, GFLOP, TFLOP)", false},
    [UNITS_SECONDS] = {"a time (s, ms, us)", false},
    [UNITS_BYTES_PER_S] = {"bytes per second (B/s, GB/s, TB/s)", false},
    [UNITS_FLOPS_PER_S] = {"flops per second (FLOP/s, TFLOP/s)", false},
    [UNITS_TOK_PER_S] = {"tokens per second (tok/s)", false},
    [UNITS_COUNT_PER_S] = {"a number a second", true},
    [UNITS_FRAC] = {"a part of one (0.25, 25%)", true},
    [UNITS_RATIO] = {"a ratio", true},
    [UNITS_FLOPS_PER_BYTE] = {"an intensity (flop/byte)", true},
    [UNITS_BYTES_PER_TOKEN] = {"bytes per token (B/tok, kB/tok)", false},
    [UNITS_BYTES_PER_SEQUENCE] = {"bytes per sequence (B/seq, GB/seq)", false},
    [UNITS_USD] = {"dollars ($)", false},
    [UNITS_USD_PER_MTOK] = {"dollars per million tokens ($/Mtok)", false},
    [UNITS_WATTS] = {"watts (W, kW)", false},
};

const char *units_kind_name(enum units_kind kind) { return NAMES[kind].name; }
bool units_kind_bare(enum units_kind kind) { return NAMES[kind].bare; }
