/* probe_kept -- `ridge probe history` and `show`: the store, read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/probe_rows.h"
#include "calc/cli/probe_sink.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/progress.h"
#include "calc/cli/this_cpu.h"
#include "calc/fit/rows.h"

enum err_code probe_store_path(struct arena *a, const struct option_values *v, const char **out, struct err *e)
{
    const char *path = option_get(v, "store");
    if (!path) return store_default_path(a, out, e);
    *out = path;
    return ERR_OK;
}

static void say_wait(void *closure, const char *text) { progress_notice(closure, text); }

enum err_code probe_store_open(struct arena *a, const struct option_values *v, bool write, struct store **out,
                               struct err *e)
{
    const struct store_access how = {.write = write, .patience_s = PROBE_STORE_PATIENCE_S, .waits = say_wait};
    const char *path;
    TRY(probe_store_path(a, v, &path, e));
    if (strcmp(path, "none") == 0)
        return err_set(e, ERR_USAGE, "--store: none keeps nothing: wanted a file (./none is one)");
    return store_open(a, path, &how, out, e);
}

enum err_code probe_device_name(struct arena *a, const struct option_values *v, const char **out, struct err *e)
{
    struct this_cpu cpu;
    *out = option_given(v, "device") ? option_get(v, "device") : "";
    int64_t threads;
    bool named;
    TRY(this_cpu_named(*out, &named, &threads, e));
    if (!named) return ERR_OK;
    TRY(this_cpu_load(a, option_get(v, "store"), threads, &cpu, e));
    *out = cpu.hw.name;
    return ERR_OK;
}

enum err_code probe_read_filter(const struct option_values *v, struct store_filter *out, struct err *e)
{
    enum result_outcome outcome;
    enum table_format format;
    if (option_get(v, "format")) TRY(table_format_parse(option_get(v, "format"), &format, e));
    *out = (struct store_filter){.kernel = option_get(v, "kernel"),
                                 .outcome = option_get(v, "outcome"),
                                 .row_kind = option_get(v, "kind"),
                                 .device = option_given(v, "device") ? option_get(v, "device") : NULL};
    TRY(rows_check_kinds(out->row_kind, e));
    if (out->row_kind && strchr(out->row_kind, ',')) return err_set(e, ERR_USAGE, "--kind: one kind; without it all");
    if (out->outcome && !result_outcome_find(out->outcome, &outcome))
        return err_set(e, ERR_USAGE,
                       "--outcome: wanted measured, noisy, wrong, refused, above, crashed, hung, garbage or imported");
    const char *last = option_get(v, "last");
    if (!last || units_parse_count(last, 1, INT64_MAX, &out->last, e) == ERR_OK) return ERR_OK;
    return e ? err_prepend(e, "--last: ") : ERR_USAGE;
}

enum err_code probe_write_out(struct arena *a, const struct option_values *v, const struct table *all,
                              enum table_format usual, bool sheet, struct err *e)
{
    enum table_format format = usual;
    struct table t = *all;
    struct out *o;
    if (option_get(v, "format")) TRY(table_format_parse(option_get(v, "format"), &format, e));
    if (option_get(v, "columns")) TRY(table_select(a, all, option_get(v, "columns"), &t, e));
    TRY(out_open(a, option_get(v, "output"), &o, e));
    if (sheet && format == TABLE_TEXT)
        TRY(table_write_sheet(&t, o, e));
    else
        TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

static enum err_code rows_of(struct arena *a, const struct result *r, size_t n, struct probe_row **out, struct err *e)
{
    struct probe_row *rows = arena_array(a, n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) TRY(probe_row_fill(a, &r[i], &rows[i], e));
    *out = rows;
    return ERR_OK;
}

/* -- history, show -- */

/* A name of a list that no result has the kernel of; false: each is some result's. */
static bool find_unmeasured(const char *const *kernels, size_t n, const char *list, const char **name, size_t *len)
{
    for (*name = list; *name && **name; *name += *len + ((*name)[*len] == ',')) {
        size_t i = 0;
        *len = strcspn(*name, ",");
        while (i < n && !(strlen(kernels[i]) == *len && strncmp(kernels[i], *name, *len) == 0)) i++;
        if (*len && i == n) return true;
    }
    return false;
}

enum err_code probe_check_found(struct arena *a, struct store *s, const struct store_filter *f, size_t found,
                                struct err *e)
{
    const char *name, **kernels;
    size_t n, len, kernels_n;
    char word[64], near[160];
    if (found && !f->kernel) return ERR_OK;
    TRY(store_kernels(a, s, &kernels, &kernels_n, &n, e));
    if (!n) return err_set(e, ERR_NO, "no results yet (ridge probe run)");
    if (find_unmeasured(kernels, kernels_n, f->kernel, &name, &len)) {
        (void)text_clean(word, sizeof word, name, len);
        return err_set(e, ERR_NO, "no results of a kernel \"%s\"%s", word,
                       text_suggest(near, sizeof near, word, kernels, sizeof *kernels, kernels_n));
    }
    if (found) return ERR_OK;
    return err_set(e, ERR_NO, "no such results; there are %zu of other kernels, devices, outcomes or kinds", n);
}

/* Rows of text and md are kept until the widest cell is known, 7 kB each: without --last a page of the newest. */
enum { PAGE = 1000 };

static enum err_code take_page(struct arena *a, struct store *s, struct store_filter *f, const char **note,
                               struct err *e)
{
    int64_t n;
    if (f->last) return ERR_OK;
    TRY(store_count(s, f, &n, e));
    if (n <= PAGE) return ERR_OK;
    f->last = PAGE;
    *note = arena_printf(a, "the newest %d of %lld results: --last N shows more, -f csv, json or jsonl all.", PAGE,
                         (long long)n);
    return *note ? ERR_OK : err_nomem(e);
}

/* The table of a history, which text shows as its rows want. */
struct history {
    struct column *columns;
    struct probe_sink sink; /* opened by the first row: without any there is no table */
    const char *device;     /* of the first */
    const char *note;       /* of what is left out; NULL: nothing */
    bool several, over;
};

static enum err_code add_row(struct arena *a, const struct option_values *v, struct arena *own, const struct result *r,
                             struct history *h, struct err *e)
{
    struct probe_row row;
    TRY(probe_row_fill(own, r, &row, e));
    if (!h->device) {
        struct table t = {.columns = h->columns,
                          .n_columns = probe_row_columns_n,
                          .stride_bytes = sizeof row,
                          .schema = "ridge.probe.1",
                          .tool = commands_tool()};
        t.scenario_json = option_scenario_json(a, v);
        t.notes = &h->note;
        t.n_notes = h->note != NULL;
        h->device = arena_strndup(a, r->origin.device, strlen(r->origin.device));
        if (!h->device) return err_nomem(e);
        TRY(probe_sink_open(a, v, &t, TABLE_TEXT, &h->sink, e));
    }
    h->several = h->several || strcmp(r->origin.device, h->device) != 0;
    h->over = h->over || probe_rows_over(&row, 1);
    return probe_sink_row(&h->sink, &row, e);
}

/* Rows of two devices are told apart. */
static void show_devices(struct column *columns)
{
    for (size_t i = 0; i < probe_row_columns_n; i++) {
        if (strcmp(columns[i].key, "device") == 0) columns[i].flags |= COLUMN_SHOWN;
        /* its place: the ratio tells what is predicted */
        if (strcmp(columns[i].key, "variant") == 0 || strcmp(columns[i].key, "predicted_s") == 0)
            columns[i].flags |= COLUMN_SPARE;
    }
}

enum err_code probe_history(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct store_filter f;
    struct store_reading *c;
    struct history h = {.device = NULL};
    enum table_format format = TABLE_TEXT;
    (void)command;
    const struct table none = {.columns = probe_row_columns, .n_columns = probe_row_columns_n};
    struct table chosen;
    TRY(probe_read_filter(v, &f, e));
    if (option_get(v, "columns")) TRY(table_select(a, &none, option_get(v, "columns"), &chosen, e));
    if (option_get(v, "format")) TRY(table_format_parse(option_get(v, "format"), &format, e));
    if (f.device) TRY(probe_device_name(a, v, &f.device, e));
    TRY(probe_store_open(a, v, false, &s, e));
    TRY(store_hold(s, e));
    if (f.kernel) TRY(probe_check_found(a, s, &f, 1, e));
    h.columns = arena_array(a, probe_row_columns_n, sizeof *h.columns);
    if (!h.columns) return err_nomem(e);
    memcpy(h.columns, probe_row_columns, probe_row_columns_n * sizeof *h.columns);
    const bool kept = format == TABLE_TEXT || format == TABLE_MD;
    if (kept) TRY(take_page(a, s, &f, &h.note, e));
    TRY(store_each(a, s, &f, &c, e));
    if (kept) store_share(c);
    enum err_code code = ERR_OK;
    for (bool more = true; more && code == ERR_OK;) {
        struct arena *own = kept ? a : arena_open(); /* of one result */
        struct result r;
        if (!own) return err_nomem(e);
        code = store_next(c, own, &r, &more, e);
        if (code == ERR_OK && more) code = add_row(a, v, own, &r, &h, e);
        if (own != a) arena_close(own);
    }
    store_end(c);
    TRY(code);
    if (!h.device) TRY(store_senseless(s, e));
    if (!h.device) return probe_check_found(a, s, &f, 0, e);
    if (h.over) probe_show_over(h.columns, probe_row_columns_n);
    if (h.several) show_devices(h.columns);
    TRY(probe_sink_end(&h.sink, e));
    return store_senseless(s, e);
}

struct sample_row {
    int64_t sample;
    bool discarded;
    double time_s;
};

static const struct column SAMPLES[] = {
    COLUMN_AT(struct sample_row, sample, COLUMN_INT, UNITS_NONE, COLUMN_SHOWN, "sample",
              "in the order they were taken"),
    COLUMN_AT(struct sample_row, discarded, COLUMN_BOOL, UNITS_NONE, COLUMN_SHOWN, "discarded",
              "the thread lost the processor meanwhile"),
    COLUMN_AT(struct sample_row, time_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN, "time", "of one call"),
};

static enum err_code show_samples(struct arena *a, const struct option_values *v, const struct result *r, struct err *e)
{
    const size_t n = r->times_n + r->discards_n;
    struct sample_row *rows = arena_array(a, n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const bool discarded = i >= r->times_n;
        const size_t j = discarded ? i - r->times_n : i;
        rows[i] = (struct sample_row){(int64_t)j + 1, discarded, discarded ? r->discards_s[j] : r->times_s[j]};
    }
    const struct table t = {.columns = SAMPLES,
                            .n_columns = sizeof SAMPLES / sizeof SAMPLES[0],
                            .rows = rows,
                            .n_rows = n,
                            .stride_bytes = sizeof *rows,
                            .schema = "ridge.probe.samples.1",
                            .tool = commands_tool()};
    return probe_write_out(a, v, &t, TABLE_TEXT, false, e);
}

enum err_code probe_show(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct store_filter f = {.samples = true};
    struct result *r;
    struct probe_row *rows = NULL;
    struct column all[64];
    size_t n;
    (void)command;
    if (units_parse_count(v->operands[0], 1, INT64_MAX, &f.id, e) != ERR_OK)
        return e ? err_prepend(e, "probe show: ") : ERR_USAGE;
    TRY(probe_store_open(a, v, false, &s, e));
    TRY(store_read(a, s, &f, &r, &n, e));
    if (!n) TRY(store_senseless(s, e));
    if (!n) return err_set(e, ERR_NO, "no result %lld", (long long)f.id);
    if (option_given(v, "each")) return show_samples(a, v, r, e);
    TRY(rows_of(a, r, n, &rows, e));
    for (size_t i = 0; i < probe_row_columns_n && i < sizeof all / sizeof all[0]; i++) {
        all[i] = probe_row_columns[i];
        all[i].flags |= COLUMN_SHOWN;
    }
    const struct table t = {.columns = all,
                            .n_columns = probe_row_columns_n,
                            .rows = rows,
                            .n_rows = 1,
                            .stride_bytes = sizeof *rows,
                            .schema = "ridge.probe.1",
                            .tool = commands_tool()};
    return probe_write_out(a, v, &t, TABLE_TEXT, true, e);
}
