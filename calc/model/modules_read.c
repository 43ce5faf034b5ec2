/* modules_read -- patterns by which quantisation configs speak of matrices, as they are written. */
#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/modules.h"

static enum err_code refuse(const char *file, const char *given, const char *why, struct err *e)
{
    char clean[64];
    return err_set(e, ERR_INPUT, "%s: the pattern \"%s\" of modules %s; state the format with --weights", file,
                   text_clean(clean, sizeof clean, given, strnlen(given, MODULE_PATTERN_MAX)), why);
}

static void release_regex(void *p)
{
    regfree(p);
    free(p);
}

/* A text that grows within bounds. */
struct draft_text {
    char text[4 * MODULE_PATTERN_MAX + 16];
    size_t n;
};

static void put(struct draft_text *d, const char *s, size_t n)
{
    if (d->n + n >= sizeof d->text) n = sizeof d->text - 1 - d->n;
    memcpy(d->text + d->n, s, n);
    d->n += n;
}

/* What a class that Python names by a letter is within brackets; NULL none. */
static const char *letters_of(char c) { return c == 'd' ? "0-9" : c == 'w' ? "A-Za-z0-9_" : c == 's' ? " " : NULL; }

/* A set in brackets, from '[' on; NULL: not read. In Python a backslash takes the next character as it is, in POSIX it
 * stands for itself. */
static const char *put_set(struct draft_text *d, const char *s)
{
    put(d, s++, 1);
    if (*s == '^') put(d, s++, 1);
    if (*s == ']') put(d, s++, 1);
    for (; *s && *s != ']'; s++) {
        const char *letters = *s == '\\' ? letters_of(s[1]) : NULL;
        if (letters) {
            put(d, letters, strlen(letters));
            s++;
        } else if (*s == '\\' && s[1] && strchr("./_", s[1])) {
            put(d, ++s, 1);
        } else if (*s == '\\' || *s == '[' || !isprint((unsigned char)*s)) {
            return NULL;
        } else {
            put(d, s, 1);
        }
    }
    put(d, "]", 1);
    return *s ? s : NULL;
}

/* Whether a regular expression can tell one layer from another. */
static bool tells_layers(const char *s)
{
    static const char *const WORDS[] = {"layers\\..\\.", "layers.", "h\\..\\.", "blocks\\..\\."};
    if (strpbrk(s, "0123456789[") || strstr(s, "\\d") || strstr(s, "\\w")) return true;
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (strstr(s, WORDS[i])) return true;
    return false;
}

/* The grammar that is read is that of both Python and POSIX: characters, sets in brackets, \d \w \s and escaped
 * punctuation, . * + ? | ( ) ^ $. */
static enum err_code compile(struct arena *a, const char *file, struct module_pattern *p, struct err *e)
{
    static const char UNREAD[] = "uses a regular expression that is not read";
    struct draft_text d = {.n = 0};
    put(&d, "^(", 2);
    for (const char *s = p->text; *s; s++) {
        const char *letters = *s == '\\' ? letters_of(s[1]) : NULL;
        if (letters) {
            put(&d, "[", 1);
            put(&d, letters, strlen(letters));
            put(&d, "]", 1);
            s++;
        } else if (*s == '\\' && s[1] && ispunct((unsigned char)s[1])) {
            if (strchr(".*+?|()^$[]{}\\", s[1])) put(&d, s, 1);
            put(&d, ++s, 1);
        } else if (*s == '[') {
            s = put_set(&d, s);
            if (!s) return refuse(file, p->given, UNREAD, e);
        } else if (*s == '?' && s > p->text && s[-1] == '(' && !(s > p->text + 1 && s[-2] == '\\')) { /* (?: */
            if (s[1] != ':') return refuse(file, p->given, UNREAD, e);
            s++;
        } else if (*s == '?') {
            if (s > p->text && strchr("*+?", s[-1])) continue; /* a lazy repetition matches the same */
            put(&d, s, 1);
        } else if (strchr("{}]\\", *s) || !isprint((unsigned char)*s)) {
            return refuse(file, p->given, UNREAD, e);
        } else {
            put(&d, s, 1);
        }
    }
    put(&d, ")", 1);
    regex_t *re = malloc(sizeof *re);
    if (!re) return err_nomem(e);
    if (regcomp(re, d.text, REG_EXTENDED | REG_NOSUB) != 0) {
        free(re);
        return refuse(file, p->given, "is no regular expression", e);
    }
    p->compiled = re;
    p->by_layer = tells_layers(p->text);
    return arena_defer(a, release_regex, re, e);
}

/* Words that stand in front of every name of a language model; *half: the one that a name of an encoder-decoder is of.
 */
static const char *strip(const char *s, enum pattern_half *half)
{
    static const char *const WORDS[] = {"model.",   "language_model.", "backbone.", "transformer.",
                                        "decoder.", "encoder.",        "gpt_neox."};
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
            const size_t len = strlen(WORDS[i]);
            if (strncmp(s, WORDS[i], len) != 0 || s[len] == '\0') continue;
            if (strcmp(WORDS[i], "encoder.") == 0) *half = HALF_ENCODER;
            if (strcmp(WORDS[i], "decoder.") == 0) *half = HALF_DECODER;
            s += len;
            again = true;
        }
    }
    return s;
}

/* Length of a word that stands for "layers" in front of a number; 0 none. */
static size_t trunk_of(const char *s)
{
    static const char *const WORDS[] = {"h", "blocks", "block"};
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        const size_t len = strlen(WORDS[i]);
        if (strncmp(s, WORDS[i], len) == 0 && s[len] == '.' &&
            (isdigit((unsigned char)s[len + 1]) || s[len + 1] == '*'))
            return len;
    }
    return 0;
}

/* "experts.17.down_proj" becomes "experts.0.down_proj". */
static enum err_code unify_experts(struct arena *a, struct module_pattern *p, struct err *e)
{
    static const char WORD[] = "experts.";
    const char *at = strstr(p->text, WORD);
    if (!at) return ERR_OK;
    at += sizeof WORD - 1;
    const size_t digits = strspn(at, "0123456789");
    if (digits == 0 || (at[digits] != '.' && at[digits] != '\0')) return ERR_OK;
    p->of_one_expert = true;
    p->text = arena_printf(a, "%.*s0%s", (int)(at - p->text), p->text, at + digits);
    return p->text ? ERR_OK : err_nomem(e);
}

void module_pattern_as_part(struct module_pattern *p)
{
    if (p->kind != PATTERN_NAME) return;
    p->kind = PATTERN_PART;
    p->layer = -1;
}

enum err_code module_pattern_read(struct arena *a, const char *file, const char *given, bool regex,
                                  struct module_pattern *out, struct err *e)
{
    struct module_pattern p = {.given = given, .text = given, .layer = -1};
    if (strlen(given) > MODULE_PATTERN_MAX) return refuse(file, given, "is longer than 400 characters", e);
    if (strncmp(given, "re:", 3) == 0) {
        regex = true;
        p.text = given + 3;
    }
    /* Python's libraries match names that say no more by re.match, too */
    if (regex || strpbrk(given, "[]?{}()|\\^$+")) {
        p.kind = PATTERN_REGEX;
        TRY(compile(a, file, &p, e));
        *out = p;
        return ERR_OK;
    }
    if (*given == '\0') return refuse(file, given, "is empty", e);
    p.kind = strchr(given, '*') ? PATTERN_GLOB : PATTERN_NAME;
    p.text = strip(given, &p.half);
    size_t len = strlen(p.text);
    if (len > 7 && strcmp(p.text + len - 7, ".weight") == 0) len -= 7;
    const size_t trunk = trunk_of(p.text);
    p.text = trunk ? arena_printf(a, "layers%.*s", (int)(len - trunk), p.text + trunk) : arena_strndup(a, p.text, len);
    if (!p.text) return err_nomem(e);
    TRY(unify_experts(a, &p, e));
    /* "layers.7": a glob may go on after the digits, "layers.7*" */
    if (strncmp(p.text, "layers.", 7) == 0) {
        const size_t digits = strspn(p.text + 7, "0123456789");
        if (digits > 0 && digits < 7 && (p.text[7 + digits] == '.' || p.text[7 + digits] == '\0'))
            p.layer = strtol(p.text + 7, NULL, 10);
    }
    *out = p;
    return ERR_OK;
}
