#include "calc/cli/plot_ops.h"

#include <math.h>
#include <string.h>

double plot_ops_ridge(const struct plot_ceiling *c) { return c->peak_flops_per_s / c->bandwidth_bytes_per_s; }

static enum err_code read_ceilings(struct arena *a, const char *text, struct plot_ops *p, struct err *e)
{
    struct plot_csv csv;
    TRY(plot_csv_parse(a, "ceilings", text, &csv, e));
    for (size_t i = 0; i < csv.n_rows; i++) {
        const struct plot_ceiling new = {plot_csv_text(&csv, i, "dtype"), plot_csv_number(&csv, i, "peak_flops_per_s"),
                                         plot_csv_number(&csv, i, "bandwidth_bytes_per_s")};
        if (!(new.peak_flops_per_s > 0 && new.bandwidth_bytes_per_s > 0)) continue;
        size_t j = 0;
        while (j < p->n_ceilings &&
               (fabs(log(p->ceilings[j].peak_flops_per_s / new.peak_flops_per_s)) > 1e-3 ||
                fabs(log(p->ceilings[j].bandwidth_bytes_per_s / new.bandwidth_bytes_per_s)) > 1e-3))
            j++;
        if (j == PLOT_CEILINGS_MAX)
            return err_set(e, ERR_USAGE, "a roofline has room for %d ceilings", PLOT_CEILINGS_MAX);
        if (j == p->n_ceilings) {
            p->ceilings[p->n_ceilings++] = new;
        } else {
            p->ceilings[j].dtypes = arena_printf(a, "%s/%s", p->ceilings[j].dtypes, new.dtypes);
            if (!p->ceilings[j].dtypes) return err_nomem(e);
        }
    }
    if (!p->n_ceilings) return err_set(e, ERR_INPUT, "ceilings: no dtype with a peak and a bandwidth");
    return ERR_OK;
}

static enum err_code find_phase(struct plot_ops *p, const char *phase, size_t *out, struct err *e)
{
    size_t i = 0;
    while (i < p->n_phases && strcmp(p->phases[i], phase) != 0) i++;
    if (i == PLOT_PHASES_MAX) return err_set(e, ERR_USAGE, "a roofline has room for %d phases", PLOT_PHASES_MAX);
    if (i == p->n_phases) p->phases[p->n_phases++] = phase;
    *out = i;
    return ERR_OK;
}

static enum err_code read_ops(struct arena *a, const struct plot_csv *csv, struct plot_ops *p, struct err *e)
{
    if (csv->n_rows > PLOT_OPS_MAX)
        return err_set(e, ERR_USAGE, "a roofline has room for %d operators, the rows are %zu", PLOT_OPS_MAX,
                       csv->n_rows);
    p->ops = arena_array(a, csv->n_rows + 1, sizeof *p->ops);
    if (!p->ops) return err_nomem(e);
    const struct plot_ceiling *first = &p->ceilings[0];
    for (size_t i = 0; i < csv->n_rows; i++) {
        struct plot_op op = {.name = plot_csv_text(csv, i, "op")};
        const double flops = plot_csv_number(csv, i, "flops"), bytes = plot_csv_number(csv, i, "bytes");
        const double time_s = plot_csv_number(csv, i, "time_s"), share = plot_csv_number(csv, i, "share_frac");
        op.intensity_flops_per_byte = plot_csv_number(csv, i, "intensity_flops_per_byte");
        if (isnan(op.intensity_flops_per_byte)) op.intensity_flops_per_byte = flops / bytes;
        if (!(op.intensity_flops_per_byte > 0) || !isfinite(op.intensity_flops_per_byte)) {
            p->n_without_flops++;
            continue;
        }
        op.rate_flops_per_s =
            flops > 0 && time_s > 0
                ? flops / time_s
                : fmin(first->peak_flops_per_s, first->bandwidth_bytes_per_s * op.intensity_flops_per_byte);
        op.share_frac = share > 0 ? share : 0;
        p->any_share = p->any_share || share > 0;
        TRY(find_phase(p, plot_csv_text(csv, i, "phase"), &op.phase, e));
        p->ops[p->n_ops++] = op;
    }
    if (!p->n_ops) return err_set(e, ERR_INPUT, "roofline: no operator with flops and bytes");
    return ERR_OK;
}

enum err_code plot_ops_read(struct arena *a, const struct plot_csv *csv, const char *ceilings_csv, struct plot_ops *out,
                            struct err *e)
{
    if (plot_csv_column(csv, "op") == csv->n_columns) return err_set(e, ERR_INPUT, "roofline: no column \"op\"");
    *out = (struct plot_ops){.n_ops = 0};
    TRY(read_ceilings(a, ceilings_csv, out, e));
    return read_ops(a, csv, out, e);
}
