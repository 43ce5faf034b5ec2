#include "calc/cli/plot_sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct row {
    double at;
    size_t index, series; /* in the CSV; in plot_sweep.series */
};

static enum err_code find_series(struct arena *a, struct plot_sweep *p, size_t row, struct plot_series **out,
                                 struct err *e)
{
    size_t i = 0;
    while (i < p->n_series && !plot_rows_same(&p->naming, p->series[i].first_row, row)) i++;
    *out = &p->series[i];
    if (i < p->n_series) return ERR_OK;
    const char *name = "";
    TRY(plot_rows_name(a, &p->naming, row, &name, e));
    if (i == PLOT_SERIES_MAX)
        return err_set(e, ERR_USAGE, "a batch plot has room for %d series, the rows have more: \"%s\" is one too many",
                       PLOT_SERIES_MAX, name);
    p->series[p->n_series++] = (struct plot_series){.name = name,
                                                    .first_row = row,
                                                    .last_fit = (double)NAN,
                                                    .first_unfit = (double)NAN,
                                                    .unfit_region = PLOT_SWEEP_FITS};
    return ERR_OK;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->at < y->at || x->at > y->at) return x->at < y->at ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* What a row has on the x axis; 0 when it is not of this picture. */
static double row_at(const struct plot_csv *csv, size_t row, const char *x_key)
{
    if (strcmp(plot_csv_text(csv, row, "phase"), "prefill") == 0) return 0;
    const double batch = plot_csv_number(csv, row, "batch"), x = plot_csv_number(csv, row, x_key);
    return batch > 0 && x > 0 ? x : 0;
}

static bool varies(const struct plot_csv *csv, const char *key)
{
    double first = 0;
    for (size_t i = 0; i < csv->n_rows; i++) {
        const double x = row_at(csv, i, key);
        if (first > 0 && x > 0 && (x < first || x > first)) return true;
        if (!(first > 0)) first = x;
    }
    return false;
}

/* Batch, unless only the context varies. */
static void choose_x(struct plot_sweep *p)
{
    const bool by_context = !varies(p->csv, "batch") && varies(p->csv, "context");
    p->x_key = by_context ? "context" : "batch";
    plot_rows_axis(&p->naming, p->x_key);
    /* with one prompt, it is the tokens generated that make up the contexts */
    if (by_context && plot_rows_alike(p->csv, "prompt_tokens")) plot_rows_axis(&p->naming, "generate_tokens");
}

static enum err_code sort_rows(struct arena *a, struct plot_sweep *p, struct row **out, struct err *e)
{
    const struct plot_csv *csv = p->csv;
    struct row *rows = arena_array(a, csv->n_rows + 1, sizeof *rows);
    p->at = arena_array(a, csv->n_rows + 1, sizeof *p->at);
    if (!rows || !p->at) return err_nomem(e);
    for (size_t i = 0; i < csv->n_rows; i++) {
        const double at = row_at(csv, i, p->x_key);
        if (!(at > 0)) continue;
        struct plot_series *s = NULL; /* the order of the legend is that of the rows, not of the x axis */
        TRY(find_series(a, p, i, &s, e));
        rows[p->n_rows++] = (struct row){at, i, (size_t)(s - p->series)};
        s->n++;
    }
    if (!p->n_rows) return err_set(e, ERR_INPUT, "batch plot: no row with a batch");
    qsort(rows, p->n_rows, sizeof *rows, compare_rows);
    for (size_t i = 0; i < p->n_rows; i++) p->at[i] = rows[i].at;
    *out = rows;
    return ERR_OK;
}

static enum err_code read_series(struct arena *a, struct plot_sweep *p, const struct row *rows, struct err *e)
{
    for (size_t i = 0; i < p->n_series; i++) {
        struct plot_series *s = &p->series[i];
        s->at = arena_array(a, 3 * s->n, sizeof *s->at);
        if (!s->at) return err_nomem(e);
        s->step_s = s->at + s->n;
        s->rate_tok_per_s = s->step_s + s->n;
        s->n = 0;
    }
    for (size_t i = 0; i < p->n_rows; i++) {
        const size_t row = rows[i].index;
        struct plot_series *s = &p->series[rows[i].series];
        const double at = rows[i].at, fits = plot_rows_fit(p->csv, row);
        s->at[s->n] = at;
        s->step_s[s->n] = plot_csv_number(p->csv, row, "decode_step_s");
        s->rate_tok_per_s[s->n] = plot_csv_number(p->csv, row, "throughput_tok_per_s");
        if (s->step_s[s->n] > 0 || s->rate_tok_per_s[s->n] > 0) s->n_points++;
        s->n++;
        if (fits > 0) s->last_fit = at;
        if (fits > 0 || isnan(fits) || !isnan(s->first_unfit)) continue;
        s->first_unfit = at;
        s->need_bytes = plot_csv_number(p->csv, row, "memory_bytes");
        s->have_bytes = plot_csv_number(p->csv, row, "capacity_bytes");
        p->n_unfit++;
    }
    return ERR_OK;
}

/* Number the regions that do not fit. */
static void group_unfit(struct plot_sweep *p)
{
    for (size_t i = 0; i < p->n_series; i++) {
        struct plot_series *s = &p->series[i];
        if (isnan(s->first_unfit)) continue;
        s->unfit_region = p->n_unfit_regions;
        for (size_t j = 0; j < i; j++) {
            const struct plot_series *o = &p->series[j];
            const bool never = isnan(o->last_fit) && isnan(s->last_fit);
            const bool same = !(o->last_fit < s->last_fit) && !(o->last_fit > s->last_fit) &&
                              !(o->first_unfit < s->first_unfit) && !(o->first_unfit > s->first_unfit) &&
                              isnan(o->last_fit) == isnan(s->last_fit);
            if (!isnan(o->first_unfit) && (never || same)) s->unfit_region = o->unfit_region;
        }
        if (s->unfit_region == p->n_unfit_regions) p->n_unfit_regions++;
    }
}

enum err_code plot_sweep_read(struct arena *a, const struct plot_csv *csv, struct plot_sweep *out, struct err *e)
{
    if (plot_csv_column(csv, "batch") == csv->n_columns)
        return err_set(e, ERR_INPUT, "batch plot: no column \"batch\"");
    *out = (struct plot_sweep){.csv = csv, .naming = plot_rows_look(csv)};
    struct row *rows = NULL;
    choose_x(out);
    TRY(sort_rows(a, out, &rows, e));
    TRY(read_series(a, out, rows, e));
    group_unfit(out);
    return ERR_OK;
}
