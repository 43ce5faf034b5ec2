#include "calc/sym/parse_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"

/* ---- where an error is ---- */

enum { EXCERPT_BEFORE = 36, EXCERPT_COLUMNS = 76 };

/* bytes of the character at i, 1 where there is none */
static size_t step(const struct parse_input *in, size_t i)
{
    const size_t k = text_utf8_len(in->text + i, in->len - i, NULL);
    return k ? k : 1;
}

static void point_at(const struct parse_input *in, size_t offset, struct parse_error *w)
{
    size_t start[EXCERPT_BEFORE] = {0}, characters = 0, i = 0;
    for (; i < offset; i += step(in, i)) start[characters++ % EXCERPT_BEFORE] = i;
    w->column = characters + 1;
    i = characters < EXCERPT_BEFORE ? 0 : start[characters % EXCERPT_BEFORE];
    size_t used = 0, columns = 0, before = 0;
    if (i) {
        memcpy(w->excerpt, "...", 3);
        used = columns = 3;
    }
    for (bool reached = false;; i += step(in, i)) {
        if (i >= offset && !reached) {
            before = columns;
            reached = true;
        }
        if (i >= in->len) break;
        char one[8];
        const char c = in->text[i];
        if (c == '\t' || c == '\n' || c == '\r')
            memcpy(one, " ", 2);
        else
            (void)text_clean(one, sizeof one, in->text + i, step(in, i));
        const size_t n = strlen(one);
        if (used + n + 4 > sizeof w->excerpt || columns >= EXCERPT_COLUMNS) {
            memcpy(w->excerpt + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(w->excerpt + used, one, n);
        used += n;
        columns += text_width(one, n);
    }
    w->excerpt[used] = '\0';
    (void)snprintf(w->caret, sizeof w->caret, "%*s^", (int)before, "");
}

enum err_code parse_fail(const struct parse_input *in, enum err_code code, size_t offset, const char *hint,
                         const char *fmt, ...)
{
    char text[400];
    struct parse_error here = {0};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    point_at(in, offset, &here);
    if (in->where) *in->where = here;
    return err_set(in->e, code, "%s at column %zu%s", text, here.column, hint);
}

/* ---- reading ---- */

struct reader {
    const struct parse_input *in;
    struct parse_chars *out;
    size_t i;    /* next byte of the input */
    size_t from; /* where what is being put came from */
};

static void put(struct reader *r, const char *s, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        r->out->at[r->out->n] = (uint32_t)r->from;
        r->out->s[r->out->n++] = s[k];
    }
}

static void put_char(struct reader *r, int c)
{
    const char one = (char)c;
    put(r, &one, 1);
}

static char peek(const struct reader *r) { return r->i < r->in->len ? r->in->text[r->i] : '\0'; }

static enum err_code fail(const struct reader *r, size_t offset, const char *what)
{
    return parse_fail(r->in, ERR_USAGE, offset, "", "%s", what);
}

static int plain_of(uint32_t code) /* 0: no operator, bracket or space */
{
    static const struct {
        uint16_t code;
        char plain;
    } TABLE[] = {{0x00B7, '*'},         {0x00D7, '*'},          {0x00F7, '/'},          {0x2013, '-'},
                 {0x2044, '/'},         {0x2062, '*'},          {0x2212, '-'},          {0x2215, '/'},
                 {0x2217, '*'},         {0x2219, '*'},          {0x22C5, '*'},          {0x2308, PARSE_LCEIL},
                 {0x2309, PARSE_RCEIL}, {0x230A, PARSE_LFLOOR}, {0x230B, PARSE_RFLOOR}, {0x00A0, ' '},
                 {0x202F, ' '},         {0x205F, ' '},          {0x3000, ' '}};
    if (code >= 0x2000 && code <= 0x200B) return ' ';
    for (size_t i = 0; i < sizeof TABLE / sizeof TABLE[0]; i++)
        if (TABLE[i].code == code) return TABLE[i].plain;
    return 0;
}

/* what stands for more than one character; NULL: none */
static const char *word_of(uint32_t code)
{
    switch (code) {
    case 0x221A: return " sqrt ";
    case 0x00BD: return "(1/2)";
    case 0x00BC: return "(1/4)";
    case 0x00BE: return "(3/4)";
    default: return NULL;
    }
}

static int superscript_of(uint32_t code) /* 0: none */
{
    switch (code) {
    case 0x00B9: return '1';
    case 0x00B2: return '2';
    case 0x00B3: return '3';
    case 0x2070: return '0';
    case 0x207B: return '-';
    default: return code >= 0x2074 && code <= 0x2079 ? (int)(code - 0x2074) + '4' : 0;
    }
}

static enum err_code read_unicode(struct reader *r)
{
    uint32_t code = 0;
    size_t k = text_utf8_len(r->in->text + r->i, r->in->len - r->i, &code);
    if (k == 0) return fail(r, r->i, "bytes that are not UTF-8");
    const int plain = plain_of(code);
    if (!plain && text_is_hostile(code)) return fail(r, r->i, "a control character");
    const char *word = word_of(code);
    if (word && code != 0x221A && r->out->n && parse_is_digit(r->out->s[r->out->n - 1]))
        return fail(r, r->i, "a fraction behind a digit: 2.5 is written so");
    if (plain) {
        put_char(r, plain);
    } else if (word) {
        put(r, word, strlen(word));
    } else if (!superscript_of(code)) {
        put(r, r->in->text + r->i, k);
    } else {
        put_char(r, PARSE_SUPER);
        for (int c; k && (c = superscript_of(code)) != 0;) {
            r->from = r->i;
            put_char(r, c);
            r->i += k;
            k = text_utf8_len(r->in->text + r->i, r->in->len - r->i, &code);
        }
        put_char(r, PARSE_SUPER_END);
        return ERR_OK;
    }
    r->i += k;
    return ERR_OK;
}

/* ---- LaTeX ---- */

enum command { COMMAND_PUT, COMMAND_TEXT, COMMAND_SUM };

static const struct latex {
    const char *name;
    enum command what;
    char put[4];
} LATEX[] = {
    {"cdot", COMMAND_PUT, "*"},
    {"times", COMMAND_PUT, "*"},
    {"ast", COMMAND_PUT, "*"},
    {"div", COMMAND_PUT, "/"},
    {"sum", COMMAND_SUM, {PARSE_SUM}},
    {"frac", COMMAND_PUT, {PARSE_FRAC}},
    {"dfrac", COMMAND_PUT, {PARSE_FRAC}},
    {"tfrac", COMMAND_PUT, {PARSE_FRAC}},
    {"lceil", COMMAND_PUT, {PARSE_LCEIL}},
    {"rceil", COMMAND_PUT, {PARSE_RCEIL}},
    {"lfloor", COMMAND_PUT, {PARSE_LFLOOR}},
    {"rfloor", COMMAND_PUT, {PARSE_RFLOOR}},
    {"left", COMMAND_PUT, " "},
    {"right", COMMAND_PUT, " "},
    {"big", COMMAND_PUT, " "},
    {"Big", COMMAND_PUT, " "},
    {"bigl", COMMAND_PUT, " "},
    {"bigr", COMMAND_PUT, " "},
    {"Bigl", COMMAND_PUT, " "},
    {"Bigr", COMMAND_PUT, " "},
    {"quad", COMMAND_PUT, " "},
    {"qquad", COMMAND_PUT, " "},
    {"mathrm", COMMAND_TEXT, ""},
    {"mathit", COMMAND_TEXT, ""},
    {"mathsf", COMMAND_TEXT, ""},
    {"mathbf", COMMAND_TEXT, ""},
    {"operatorname", COMMAND_TEXT, ""},
    {"text", COMMAND_TEXT, ""},
    {"textit", COMMAND_TEXT, ""},
    {"textrm", COMMAND_TEXT, ""},
};

/* the letters behind the backslash at i */
static size_t command_length(const struct reader *r, size_t i)
{
    size_t n = 0;
    while (i + 1 + n < r->in->len && parse_is_letter(r->in->text[i + 1 + n])) n++;
    return n;
}

static const struct latex *command_at(const struct reader *r, size_t i)
{
    const size_t n = command_length(r, i);
    for (size_t k = 0; k < sizeof LATEX / sizeof LATEX[0]; k++)
        if (strlen(LATEX[k].name) == n && memcmp(LATEX[k].name, r->in->text + i + 1, n) == 0) return &LATEX[k];
    return NULL;
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ') r->i++;
}

/* the inside of {...} at r->i, as the text of a name: wrappers and braces within it dropped */
static enum err_code read_text(struct reader *r, const char *what)
{
    const size_t open = r->i;
    size_t depth = 0;
    do {
        const char c = peek(r);
        r->from = r->i;
        if (r->i >= r->in->len) return parse_fail(r->in, ERR_USAGE, open, "", "the '{' of %s is not closed", what);
        if (c == '{') {
            depth++;
        } else if (c == '}') {
            depth--;
        } else if (c == '\\' && r->i + 1 < r->in->len && r->in->text[r->i + 1] == '_') {
            put_char(r, '_');
            r->i++;
        } else if (c == '\\') {
            const struct latex *x = command_at(r, r->i);
            if (!x || x->what != COMMAND_TEXT)
                return parse_fail(r->in, ERR_USAGE, r->i, "", "%s holds a command that is no name", what);
            r->i += strlen(x->name);
        } else if ((unsigned char)c >= 0x80) {
            TRY(read_unicode(r));
            continue;
        } else if (parse_is_name_char(c) || c == ' ' || c == '-' || c == '.') {
            put_char(r, c);
        } else {
            return parse_fail(r->in, ERR_USAGE, r->i, "", "%s holds a character that is in no name", what);
        }
        r->i++;
    } while (depth);
    if (peek(r) != '_') put_char(r, ' '); /* kv}_{bytes} is one name, b_{k}v are two */
    return ERR_OK;
}

/* \sum, and the subscript behind it, which is no name */
static enum err_code read_sum(struct reader *r)
{
    static const char LIMITS[] = "\\limits";
    const size_t n = sizeof LIMITS - 1;
    put_char(r, PARSE_SUM);
    skip_blanks(r);
    if (r->in->len - r->i >= n && memcmp(r->in->text + r->i, LIMITS, n) == 0) r->i += n;
    skip_blanks(r);
    if (peek(r) != '_') return parse_fail(r->in, ERR_USAGE, r->from, "", "\\sum without _{name=low}");
    r->i++;
    return ERR_OK;
}

static enum err_code read_command(struct reader *r)
{
    const size_t n = command_length(r, r->i);
    const char *word = r->in->text + r->i + 1;
    if (n == 0) {
        const char c = r->i + 1 < r->in->len ? *word : '\0';
        static const char FROM[] = ",;:! \\{}_()[]", TO[] = "      ()_    ";
        const char *known = c ? strchr(FROM, c) : NULL;
        if (!known) return fail(r, r->i, "a backslash that begins no command");
        put_char(r, TO[known - FROM]);
        r->i += 2;
        return ERR_OK;
    }
    const struct latex *x = command_at(r, r->i);
    r->i += 1 + n;
    if (!x) {
        put_char(r, ' ');
        for (size_t k = 0; k < n; k++, r->from++) put_char(r, word[k]);
        if (peek(r) != '_') put_char(r, ' ');
        return ERR_OK;
    }
    if (x->what == COMMAND_SUM) return read_sum(r);
    if (x->what == COMMAND_PUT) {
        put(r, x->put, strlen(x->put));
        return ERR_OK;
    }
    skip_blanks(r);
    if (peek(r) != '{') return parse_fail(r->in, ERR_USAGE, r->from, "", "\\%s without a name in braces", x->name);
    put_char(r, ' ');
    return read_text(r, "the name");
}

/* _{kv}, _\mathrm{kv}; any other underscore is itself */
static enum err_code read_subscript(struct reader *r)
{
    put_char(r, '_');
    r->i++;
    if (peek(r) == '{') return read_text(r, "the subscript");
    const struct latex *x = peek(r) == '\\' ? command_at(r, r->i) : NULL;
    if (!x || x->what != COMMAND_TEXT) return ERR_OK;
    r->i += 1 + strlen(x->name);
    skip_blanks(r);
    return peek(r) == '{' ? read_text(r, "the subscript") : fail(r, r->i, "a subscript without braces");
}

/* one of the dollars around all of a formula, one or two on either side */
static bool is_math_mark(const struct parse_input *in, size_t i)
{
    const char *s = in->text;
    const size_t n = in->len;
    if (s[i] != '$' || n < 2 || s[0] != '$' || s[n - 1] != '$') return false;
    return i == 0 || i == n - 1 || (n > 4 && s[1] == '$' && s[n - 2] == '$' && (i == 1 || i == n - 2));
}

enum err_code parse_read(const struct parse_input *in, struct arena *scratch, struct parse_chars *out)
{
    struct reader r = {in, out, 0, 0};
    if (in->len > PARSE_BYTES_MAX)
        return parse_fail(in, ERR_RANGE, PARSE_BYTES_MAX, "", "an expression of more than %d bytes", PARSE_BYTES_MAX);
    *out = (struct parse_chars){.n = 0};
    out->s = arena_alloc(scratch, 3 * in->len + 8); /* a half, of 2 bytes, becomes (1/2) */
    out->at = arena_array(scratch, 3 * in->len + 8, sizeof *out->at);
    if (!out->s || !out->at) return err_nomem(in->e);
    while (r.i < in->len) {
        const unsigned char c = (unsigned char)in->text[r.i];
        r.from = r.i;
        if (c == '\\') {
            TRY(read_command(&r));
        } else if (c == '_') {
            TRY(read_subscript(&r));
        } else if (c >= 0x80) {
            TRY(read_unicode(&r));
        } else if (c == 0x7f || (c < ' ' && (c < '\t' || c > '\r'))) {
            return fail(&r, r.i, "a control character");
        } else {
            put_char(&r, c <= ' ' || c == '~' || is_math_mark(in, r.i) ? ' ' : c);
            r.i++;
        }
    }
    out->at[out->n] = (uint32_t)in->len;
    return ERR_OK;
}
