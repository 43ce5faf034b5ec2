#include "calc/cli/plot_rows.h"

#include <math.h>
#include <string.h>

/* Columns that name a configuration, and the word that a bare number needs in front. */
static const struct {
    const char *key, *word;
} naming[PLOT_NAMING_N] = {
    {"model", ""}, {"hardware", ""}, {"batch", "batch "}, {"context", "context "}, {"fidelity", ""}};

bool plot_rows_alike(const struct plot_csv *csv, const char *key)
{
    for (size_t i = 1; i < csv->n_rows; i++)
        if (strcmp(plot_csv_text(csv, i, key), plot_csv_text(csv, 0, key)) != 0) return false;
    return true;
}

/* A value short enough that those behind it are seen too: the middle of long ones goes. */
static const char *shorten(struct arena *a, const char *s)
{
    enum { KEEP = 24 };
    const size_t len = strlen(s);
    if (len <= 2 * KEEP + 3) return s;
    size_t head = KEEP, tail = len - KEEP;
    while (head && ((unsigned char)s[head] & 0xC0) == 0x80) head--;
    while (tail < len && ((unsigned char)s[tail] & 0xC0) == 0x80) tail++;
    return arena_printf(a, "%.*s...%s", (int)head, s, s + tail);
}

struct plot_rows plot_rows_look(const struct plot_csv *csv)
{
    struct plot_rows r = {.csv = csv};
    for (size_t i = 0; i < PLOT_NAMING_N; i++) r.alike[i] = plot_rows_alike(csv, naming[i].key);
    return r;
}

static enum err_code describe(struct arena *a, const struct plot_rows *r, size_t row, bool alike, const char *except,
                              const char **out, struct err *e)
{
    const char *text = "";
    for (size_t i = 0; i < PLOT_NAMING_N; i++) {
        const char *value = r->csv->n_rows ? plot_csv_text(r->csv, row, naming[i].key) : "";
        if (!*value || r->alike[i] != alike) continue;
        if (except && strcmp(naming[i].key, except) == 0) continue;
        value = shorten(a, value);
        if (!value) return err_nomem(e);
        text = arena_printf(a, "%s%s%s%s", text, *text ? ", " : "", naming[i].word, value);
        if (!text) return err_nomem(e);
    }
    *out = text;
    return ERR_OK;
}

enum err_code plot_rows_shared(struct arena *a, const struct plot_rows *r, const char **out, struct err *e)
{
    return describe(a, r, 0, true, NULL, out, e);
}

enum err_code plot_rows_name(struct arena *a, const struct plot_rows *r, size_t row, const char *except,
                             const char **out, struct err *e)
{
    return describe(a, r, row, false, except, out, e);
}

double plot_rows_fit(const struct plot_csv *csv, size_t row)
{
    const char *fits = plot_csv_text(csv, row, "fits");
    if (strcmp(fits, "yes") == 0 || strcmp(fits, "true") == 0) return 1;
    if (strcmp(fits, "no") == 0 || strcmp(fits, "false") == 0) return 0;
    const double need = plot_csv_number(csv, row, "memory_bytes"), have = plot_csv_number(csv, row, "capacity_bytes");
    return isnan(need) || isnan(have) ? (double)NAN : need <= have ? 1 : 0;
}
