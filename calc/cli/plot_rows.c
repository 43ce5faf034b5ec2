#include "calc/cli/plot_rows.h"

#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 3, DEVICE = 1 };

/* Columns that name a configuration, and the word that a value needs in front. */
static const struct {
    const char *keys[COLUMNS_MAX], *word;
} naming[PLOT_NAMING_N] = {
    {{"model"}, ""},
    [DEVICE] = {{"hardware", "gpus", "tp"}, ""},
    {{"weights"}, "weights "},
    {{"kv"}, "KV "},
    {{"batch"}, "batch "},
    {{"context"}, "context "},
    {{"generate_tokens"}, "generating "},
    {{"fidelity"}, ""},
};

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
    for (size_t i = 0; i < PLOT_NAMING_N; i++) {
        r.alike[i] = true;
        for (size_t k = 0; k < COLUMNS_MAX && naming[i].keys[k]; k++)
            r.alike[i] = r.alike[i] && plot_rows_alike(csv, naming[i].keys[k]);
    }
    return r;
}

void plot_rows_axis(struct plot_rows *r, const char *key)
{
    for (size_t i = 0; i < PLOT_NAMING_N; i++)
        if (strcmp(naming[i].keys[0], key) == 0) r->axis[i] = true;
}

bool plot_rows_same(const struct plot_rows *r, size_t row, size_t other)
{
    for (size_t i = 0; i < PLOT_NAMING_N; i++)
        for (size_t k = 0; !r->axis[i] && !r->alike[i] && k < COLUMNS_MAX && naming[i].keys[k]; k++) {
            const char *key = naming[i].keys[k];
            if (strcmp(plot_csv_text(r->csv, row, key), plot_csv_text(r->csv, other, key)) != 0) return false;
        }
    return true;
}

const char *plot_rows_device(struct arena *a, const struct plot_rows *r, size_t row)
{
    const char *hardware = shorten(a, plot_csv_text(r->csv, row, "hardware"));
    const char *gpus = plot_csv_text(r->csv, row, "gpus"), *tp = plot_csv_text(r->csv, row, "tp");
    const bool nameless = hardware && !*hardware && !r->alike[DEVICE];
    const bool counted = *gpus && (strcmp(gpus, "1") != 0 || nameless);
    if (counted && hardware) hardware = arena_printf(a, "%s x %s", gpus, *hardware ? hardware : "GPU");
    if (hardware && *tp && (counted || strcmp(tp, "1") != 0))
        hardware = arena_printf(a, "%s%sTP %s", hardware, *hardware ? " " : "", tp);
    return hardware;
}

static enum err_code describe(struct arena *a, const struct plot_rows *r, size_t row, bool shared, const char **out,
                              struct err *e)
{
    const char *text = "";
    for (size_t i = 0; r->csv->n_rows && i < PLOT_NAMING_N; i++) {
        if (r->alike[i] != shared || (r->axis[i] && !shared)) continue;
        const char *value =
            i == DEVICE ? plot_rows_device(a, r, row) : shorten(a, plot_csv_text(r->csv, row, naming[i].keys[0]));
        if (!value) return err_nomem(e);
        if (!*value) continue;
        text = arena_printf(a, "%s%s%s%s", text, *text ? ", " : "", naming[i].word, value);
        if (!text) return err_nomem(e);
    }
    *out = text;
    return ERR_OK;
}

enum err_code plot_rows_shared(struct arena *a, const struct plot_rows *r, const char **out, struct err *e)
{
    return describe(a, r, 0, true, out, e);
}

enum err_code plot_rows_name(struct arena *a, const struct plot_rows *r, size_t row, const char **out, struct err *e)
{
    return describe(a, r, row, false, out, e);
}

double plot_rows_gpus(const struct plot_csv *csv, size_t row)
{
    const double n = plot_csv_number(csv, row, "gpus");
    return n > 1 ? n : 1;
}

bool plot_rows_any_gpus(const struct plot_csv *csv)
{
    for (size_t i = 0; i < csv->n_rows; i++)
        if (plot_rows_gpus(csv, i) > 1) return true;
    return false;
}

bool plot_rows_any_copies(const struct plot_csv *csv)
{
    for (size_t i = 0; i < csv->n_rows; i++)
        if (plot_rows_gpus(csv, i) > plot_csv_number(csv, i, "tp")) return true;
    return false;
}

double plot_rows_fit(const struct plot_csv *csv, size_t row)
{
    const char *fits = plot_csv_text(csv, row, "fits");
    if (strcmp(fits, "yes") == 0 || strcmp(fits, "true") == 0) return 1;
    if (strcmp(fits, "no") == 0 || strcmp(fits, "false") == 0) return 0;
    const double need = plot_csv_number(csv, row, "memory_bytes"), have = plot_csv_number(csv, row, "capacity_bytes");
    return isnan(need) || isnan(have) ? (double)NAN : need <= have ? 1 : 0;
}
