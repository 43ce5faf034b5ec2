/* mutate OUT FILE... -- write OUT/FILE, the rewritten source, for every FILE, and OUT/mutants: a line for each mutant
 * with its number, file, line, function and the line of source with the change marked, between tabs. Exit status: 0
 * done, 2 usage, 3 C that it does not read, 4 cannot read or write, 6 memory. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/mutate/mutate.h"

enum { STATUS_USE = 2, STATUS_INPUT = 3, STATUS_IO = 4, STATUS_MEMORY = 6 };

void mutate_fail(const struct mutate *m, const char *what)
{
    (void)fprintf(stderr, "mutate: %s:%d: %s\n", m->file, m->at ? m->at->line : 0, what);
    exit(STATUS_INPUT);
}

static void *room(void *p)
{
    if (p) return p;
    (void)fprintf(stderr, "mutate: out of memory\n");
    exit(STATUS_MEMORY);
}

char *mutate_text(const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    char *s = room(malloc((size_t)n + 1));
    (void)vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return s;
}

void *mutate_grow(void *old, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) return old;
    *cap = *cap ? 2 * *cap : 64;
    return room(realloc(old, *cap * size));
}

static void cannot(const char *path)
{
    perror(path);
    exit(STATUS_IO);
}

static char *read_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) cannot(path);
    size_t n = 0, cap = 0;
    char *s = NULL;
    for (int c; (c = getc(in)) != EOF; n++) {
        s = mutate_grow(s, n + 1, &cap, 1);
        s[n] = (char)c;
    }
    if (ferror(in) || !s) cannot(path);
    (void)fclose(in);
    s[n] = '\0';
    return s;
}

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "wb");
    if (!out) cannot(path);
    const int bad = fputs(text, out) < 0;
    if (fclose(out) != 0 || bad) cannot(path);
}

/* Two lines of a function may be the same: the second is told by a number. */
static int before(const struct mutate *m, size_t i)
{
    int n = 0;
    for (size_t k = 0; k < i; k++)
        if (m->list[k].text && strcmp(m->list[k].file, m->list[i].file) == 0 &&
            strcmp(m->list[k].function, m->list[i].function) == 0 && strcmp(m->list[k].text, m->list[i].text) == 0)
            n++;
    return n;
}

int main(int argc, char **argv)
{
    static struct mutate m;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: mutate OUT FILE...\n");
        return STATUS_USE;
    }
    for (int i = 2; i < argc; i++) {
        m.file = argv[i];
        const struct toks all = mutate_lex(read_file(m.file));
        const char *text = mutate_file(&m, &all);
        write_file(mutate_text("%s/%s", argv[1], m.file), mutate_text("#include \"tools/mutate/mutant.h\"\n%s", text));
    }
    const char *path = mutate_text("%s/mutants", argv[1]);
    FILE *out = fopen(path, "wb");
    if (!out) cannot(path);
    for (size_t i = 0; i < m.n; i++) {
        const struct mutant *x = &m.list[i];
        if (!x->text) continue;
        (void)fprintf(out, "%zu\t%s\t%d\t%s\t%s", i + 1, x->file, x->line, x->function, x->text);
        const int n = before(&m, i);
        if (n > 0) (void)fprintf(out, " #%d", n + 1);
        (void)fputc('\n', out);
    }
    const int bad = ferror(out);
    if (fclose(out) != 0 || bad) cannot(path);
    return 0;
}
