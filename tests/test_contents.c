/* calc/MODEL.md as people walk through it: its contents are its headings, and its table of heads is the families'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/arena.h"
#include "calc/base/embed.h"
#include "calc/model/family.h"

static const char *manual(void) { return (const char *)embed_find("calc/MODEL.md")->bytes; }

/* The anchor that a heading of n bytes gets where Markdown is shown: small letters, blanks as dashes, no marks. */
static void anchor_of(char out[128], const char *heading, size_t n)
{
    size_t w = 0;
    for (size_t i = 0; i < n && w < 127; i++) {
        const unsigned char c = (unsigned char)heading[i];
        if (c == ' ')
            out[w++] = '-';
        else if (isalnum(c) || c == '-' || c == '_')
            out[w++] = (char)tolower(c);
    }
    out[w] = '\0';
}

static void test_contents(void **state)
{
    (void)state;
    const char *text = manual(), *link = strstr(text, "\n\n[") + 2;
    const char *end = strstr(link, "\n\n");
    size_t n = 0;
    for (const char *at = strstr(text, "\n## "); at; at = strstr(at + 1, "\n## "), n++) {
        const char *heading = at + 4;
        const size_t len = strcspn(heading, "\n");
        char anchor[128], want[320];
        anchor_of(anchor, heading, len);
        const int wide = snprintf(want, sizeof want, "[%.*s](#%s)", (int)len, heading, anchor);
        if (!link || link >= end || strncmp(link, want, (size_t)wide) != 0)
            fail_msg("the contents of MODEL.md have no %s in its place", want);
        link = strchr(link + 1, '[');
    }
    assert_true(n > 25);
    if (link && link < end) fail_msg("the contents of MODEL.md go on after the last heading");
}

static int64_t default_of(const struct family *f, enum dim d)
{
    for (const struct family_default *p = f->defaults; p->value; p++)
        if (p->dim == d) return p->value;
    return 0;
}

/* "| both | 2 | 128 | `glm`, `glm4` |": a number that is not there is in backticks. */
static void check_row(const char *row, const char *name, int64_t kv, int64_t width)
{
    char want[64], kv_text[24] = "`N`", width_text[24] = "`D/N`";
    if (kv) (void)snprintf(kv_text, sizeof kv_text, "%lld", (long long)kv);
    if (width) (void)snprintf(width_text, sizeof width_text, "%lld", (long long)width);
    (void)snprintf(want, sizeof want, "| %s | %s | %s | ", kv && width ? "both" : kv ? "K" : "H", kv_text, width_text);
    if (strncmp(row, want, strlen(want)) != 0) fail_msg("%s is not in the row \"%s\"", name, want);
}

/* Whether a family, or one model_type of it, is in the table, and where it belongs. */
static bool check_name(const char *table, const char *end, const char *who, int64_t kv, int64_t width)
{
    char name[64];
    (void)snprintf(name, sizeof name, "`%s`", who);
    const char *at = strstr(table, name);
    const bool there = at && at < end;
    if (there != (kv || width)) fail_msg("%s %s in the table of heads", name, there ? "is" : "is not");
    if (!there) return false;
    while (at[-1] != '\n') at--;
    check_row(at, name, kv, width);
    return true;
}

static void test_heads(void **state)
{
    (void)state;
    size_t named = 0, ticks = 0;
    const struct family *f;
    const char *table = strstr(manual(), "| absent | K | H | families |");
    assert_non_null(table);
    const char *end = strstr(table, "\n\n");
    for (size_t i = 0; (f = family_at(i)); i++) {
        named += check_name(table, end, f->name, default_of(f, DIM_KV_HEADS), default_of(f, DIM_HEAD_DIM));
        for (size_t t = 0; t < sizeof f->typed / sizeof f->typed[0] && f->typed[t].type; t++)
            if (f->typed[t].dim == DIM_KV_HEADS)
                named += check_name(table, end, f->typed[t].type, f->typed[t].value, default_of(f, DIM_HEAD_DIM));
    }
    for (const char *at = table; at < end; at++) ticks += *at == '`';
    size_t rows = 0; /* whose first or second number is in backticks too */
    for (const char *at = table; at < end; at++) rows += strncmp(at, "`D/N`", 5) == 0 || strncmp(at, "`N`", 3) == 0;
    assert_int_equal(ticks, 2 * (named + rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_contents), cmocka_unit_test(test_heads)};
    return cmocka_run_group_tests_name("contents", tests, NULL, NULL);
}
