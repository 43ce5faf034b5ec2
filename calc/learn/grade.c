#include "calc/learn/grade.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"

enum { SHOWN_MAX = 80 };

enum err_code grade_wrong(const struct grade *g, struct exercise_verdict *out, struct err *e, const char *format, ...)
{
    char text[768];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    char *clean = arena_alloc(g->arena, len + 4);
    if (!clean) return err_nomem(e);
    out->right = false;
    out->hint = text_clean(clean, len + 4, text, len);
    return ERR_OK;
}

static bool is_framed(const char *s, size_t n, const char *open, const char *close)
{
    const size_t a = strlen(open), b = strlen(close);
    return n > a + b && strncmp(s, open, a) == 0 && strcmp(s + n - b, close) == 0;
}

const char *grade_plain(struct arena *a, const char *text)
{
    static const char *const FRAMES[][2] = {{"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}};
    for (size_t i = 0; i < sizeof FRAMES / sizeof FRAMES[0]; i++) {
        const size_t n = strlen(text), open = strlen(FRAMES[i][0]), close = strlen(FRAMES[i][1]);
        if (is_framed(text, n, FRAMES[i][0], FRAMES[i][1])) return arena_strndup(a, text + open, n - open - close);
    }
    return arena_strndup(a, text, strlen(text));
}

/* A side without blanks at its ends, and without a frame of its own. */
static const char *trimmed(struct arena *a, const char *s, size_t len)
{
    while (len && (*s == ' ' || *s == '\t')) s++, len--;
    while (len && (s[len - 1] == ' ' || s[len - 1] == '\t')) len--;
    const char *side = arena_strndup(a, s, len);
    return side ? grade_plain(a, side) : NULL;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* Bytes of the arrow at p, 0: there is none. */
static size_t arrow(const char *p)
{
    static const char *const ARROWS[] = {"->", "\xE2\x86\x92", "\\to ", "\\rightarrow "};
    for (size_t i = 0; i < sizeof ARROWS / sizeof ARROWS[0]; i++)
        if (strncmp(p, ARROWS[i], strlen(ARROWS[i])) == 0) return strlen(ARROWS[i]);
    return 0;
}

size_t grade_sides(const struct grade *g, const char *side[GRADE_SIDES_MAX])
{
    static const char ALMOST[] = "\xE2\x89\x88", LATEX[] = "\\approx";
    const char *from = g->text;
    size_t n = 0;
    int depth = 0;
    while (is_space(*from)) from++;
    if (strncmp(from, ALMOST, 3) == 0) from += 3; /* "almost 295" */
    for (const char *p = from;; p++) {
        size_t sign = *p == '=';
        if (depth == 0 && arrow(p)) {
            n = 0;
            from = p + arrow(p);
            p = from - 1;
            continue;
        }
        if (strncmp(p, ALMOST, 3) == 0) sign = 3;
        if (strncmp(p, LATEX, 7) == 0) sign = 7;
        if (*p) depth += (strchr("({[", *p) != NULL) - (strchr(")}]", *p) != NULL);
        if (*p && (!sign || depth > 0)) continue; /* the i = 1 of a sum is in brackets */
        if (*p && n + 1 == GRADE_SIDES_MAX) sign = strlen(p);
        side[n] = trimmed(g->arena, from, (size_t)(p - from));
        if (!side[n++]) return 0;
        if (!*p || n == GRADE_SIDES_MAX) return n;
        from = p + sign;
        p = from - 1;
    }
}

bool grade_is_label(const char *side)
{
    bool letters = false;
    for (const char *p = side; *p; p++) {
        const bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (p == side && !letter && *p != '\\') return false;
        if (strchr("+-*/^%$", *p)) return false;
        letters |= letter;
    }
    return letters;
}

/* What makes a text no answer; NULL: nothing does. */
static const char *unfit(const char *s, size_t len)
{
    if (len == 0) return "the answer is empty";
    if (len > EXERCISE_ANSWER_MAX_BYTES) return "longer than 4096 bytes: one formula, number or word is asked";
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t code = 0;
        n = text_utf8_len(s + i, len - i, &code);
        if (n == 0) return "not UTF-8 text";
        if (code != '\t' && text_is_hostile(code)) return "control characters or line breaks in it: one line is asked";
    }
    return NULL;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Whether a word is in a list with commas. */
static bool is_among(const char *word, size_t len, const char *list)
{
    for (const char *at = list; at && *at;) {
        const size_t n = strcspn(at, ",");
        size_t i = 0;
        while (i < n && i < len && lower(word[i]) == lower(at[i])) i++;
        if (i == n && n == len) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* Which choice all words of the text are, those around it left out; choices_n: none, or several. */
static size_t read_choice(const struct exercise_question *q, const char *text)
{
    static const char AROUND[] = "it,is,it's,its,the,by,bound,limited,answer";
    size_t at = q->choices_n;
    for (const char *p = text; *p;) {
        const size_t n = strcspn(p, " \t-,.;:!?");
        size_t i = 0;
        while (i < q->choices_n && !is_among(p, n, q->choices[i]) && !is_among(p, n, q->also[i])) i++;
        if (n && i == q->choices_n && !is_among(p, n, AROUND)) return i;
        if (i < q->choices_n && at < q->choices_n && at != i) return q->choices_n;
        if (n && i < q->choices_n) at = i;
        p += n + (p[n] != '\0');
    }
    return at;
}

static enum err_code list_choices(const struct grade *g, struct exercise_verdict *out, struct err *e)
{
    char all[256] = "";
    for (size_t i = 0; i < g->q->choices_n; i++) {
        const size_t n = strlen(all);
        (void)snprintf(all + n, sizeof all - n, "%s%s", i ? ", " : "", g->q->choices[i]);
    }
    return grade_wrong(g, out, e, "answer with one of: %s", all);
}

static enum err_code grade_choice(const struct grade *g, struct exercise_verdict *out, struct err *e)
{
    const size_t at = read_choice(g->q, g->text);
    if (at == g->q->choices_n) return list_choices(g, out, e);
    out->given = g->q->choices[at];
    out->right = at == g->q->right;
    if (out->right) return ERR_OK;
    for (size_t i = 0; i < g->q->slips_n; i++)
        if (g->q->slips[i].value == (double)at) return grade_wrong(g, out, e, "%s", g->q->slips[i].hint);
    return grade_wrong(g, out, e, "work it out from the numbers of the question");
}

enum err_code exercise_grade(struct arena *a, struct sym_ctx *c, const struct exercise_question *q, const char *answer,
                             struct exercise_verdict *out, struct err *e)
{
    size_t len = strlen(answer);
    while (len && is_space(answer[len - 1])) len--;
    while (len && is_space(*answer)) answer++, len--;
    const char *text = arena_strndup(a, answer, len < SHOWN_MAX ? len : SHOWN_MAX);
    char *shown = arena_alloc(a, SHOWN_MAX + 4);
    if (!text || !shown) return err_nomem(e);
    struct grade g = {.arena = a, .c = c, .q = q, .text = text};
    struct exercise_verdict v = {.given = text_clean(shown, SHOWN_MAX, answer, len)};
    const char *why = unfit(answer, len);
    if (why) {
        TRY(grade_wrong(&g, &v, e, "%s", why));
        *out = v;
        return ERR_OK;
    }
    text = arena_strndup(a, answer, len);
    if (!text) return err_nomem(e);
    g.text = grade_plain(a, text);
    if (!g.text) return err_nomem(e);
    switch (q->kind) {
    case EXERCISE_FORMULA: TRY(grade_formula(&g, &v, e)); break;
    case EXERCISE_NUMBER: TRY(grade_number(&g, &v, e)); break;
    case EXERCISE_CHOICE: TRY(grade_choice(&g, &v, e)); break;
    }
    *out = v;
    return ERR_OK;
}
