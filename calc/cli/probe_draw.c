/* probe_draw -- measured points on the measured roofline. */
#include <math.h>

#include "calc/cli/plot.h"
#include "calc/cli/probe_rows.h"
#include "calc/cli/probe_verbs.h"

static void cell(struct out *csv, double v)
{
    if (isnan(v))
        out_char(csv, ',');
    else
        out_printf(csv, ",%.9e", v);
}

enum err_code probe_draw(struct arena *a, const struct run *run, const struct probe_row *rows, size_t n,
                         const char *output, struct err *e)
{
    struct out *csv, *roofs;
    const struct run_ceilings *c = &run->ceilings;
    TRY(out_memory(a, &csv, e));
    TRY(out_memory(a, &roofs, e));
    size_t roofs_n = 0;
    out_str(roofs, "dtype,peak_flops_per_s,bandwidth_bytes_per_s\n");
    for (size_t i = 0; i < c->peaks_n; i++) {
        if (isnan(c->peak[i].per_s) || isnan(c->read.per_s)) continue;
        out_printf(roofs, "%s,%.9e,%.9e\n", c->peak[i].unit, c->peak[i].per_s, c->read.per_s);
        roofs_n++;
    }
    if (!roofs_n)
        return err_set(
            e, ERR_NO,
            "the %s could not be measured (%s): a longer --ceilings, a longer --budget, or a quieter machine",
            isnan(c->read.per_s) ? "bandwidth of memory" : "peaks",
            isnan(c->read.per_s) && c->read.why ? c->read.why : "they were too noisy");
    out_str(csv, "op,phase,flops,bytes,time_s\n");
    for (size_t i = 0; i < n; i++) {
        if (isnan(rows[i].measured_s)) continue;
        out_printf(csv, "%s %s,%s", rows[i].kernel, rows[i].dtype, rows[i].state);
        cell(csv, rows[i].flops);
        cell(csv, rows[i].read_bytes + rows[i].written_bytes);
        cell(csv, rows[i].measured_s);
        out_char(csv, '\n');
    }
    const struct plot_request r = {
        .kind = "roofline",
        .csv = out_text(csv, NULL),
        .ceilings_csv = out_text(roofs, NULL),
        .title = "Measured kernels on the measured roofline",
        .subtitle = run->device.threads > 1 ? run->device.name : arena_printf(a, "%s, one core", run->device.name),
        .output = output};
    if (!r.csv || !r.ceilings_csv || !r.subtitle) return err_nomem(e);
    return plot_render(a, &r, e);
}
