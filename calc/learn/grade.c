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

const char *grade_right_side(const char *text, size_t *n)
{
    const char *right = text;
    int depth = 0;
    *n = 0;
    for (const char *p = text; *p; p++) {
        depth += (strchr("({[", *p) != NULL) - (strchr(")}]", *p) != NULL);
        if (*p != '=' || depth > 0) continue; /* the i = 1 of a sum is in brackets */
        right = p + 1;
        (*n)++;
    }
    while (*right == ' ' || *right == '\t') right++;
    return *n == 1 ? right : text;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

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

static bool is_same_word(const char *a, size_t len, const char *word)
{
    if (strlen(word) != len) return false;
    for (size_t i = 0; i < len; i++) {
        const char x = a[i] >= 'A' && a[i] <= 'Z' ? (char)(a[i] - 'A' + 'a') : a[i];
        const char y = word[i] >= 'A' && word[i] <= 'Z' ? (char)(word[i] - 'A' + 'a') : word[i];
        if (x != y) return false;
    }
    return true;
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
    size_t len = strlen(g->text), at = 0;
    while (len && strchr(".,;:!?", g->text[len - 1])) len--;
    while (at < g->q->choices_n && !is_same_word(g->text, len, g->q->choices[at])) at++;
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
    g.text = arena_strndup(a, answer, len);
    if (!g.text) return err_nomem(e);
    switch (q->kind) {
    case EXERCISE_FORMULA: TRY(grade_formula(&g, &v, e)); break;
    case EXERCISE_NUMBER: TRY(grade_number(&g, &v, e)); break;
    case EXERCISE_CHOICE: TRY(grade_choice(&g, &v, e)); break;
    }
    *out = v;
    return ERR_OK;
}
