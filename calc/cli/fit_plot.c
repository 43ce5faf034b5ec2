#include "calc/cli/fit_plot.h"

#include <math.h>

#include "calc/base/out.h"
#include "calc/cli/plot.h"

enum err_code fit_plot_check(const char *output, struct err *e) { return plot_check("scatter", output, e); }

enum err_code fit_plot(struct arena *a, const struct validate_row *rows, size_t n, const char *device,
                       const char *output, struct err *e)
{
    struct out *csv;
    size_t drawn = 0;
    TRY(out_memory(a, &csv, e));
    out_str(csv, "group,measured_s,calibrated_s\n");
    for (size_t i = 0; i < n; i++) {
        if (isnan(rows[i].calibrated_s)) continue;
        out_printf(csv, "%s,%.6e,%.6e\n", rows[i].kind, rows[i].measured_s, rows[i].calibrated_s);
        drawn++;
    }
    if (!drawn) return err_set(e, ERR_NO, "no row of a class with parameters: nothing to draw");
    const char *subtitle = arena_printf(a, "%s, %zu measured calls", device, drawn);
    const struct plot_request r = {.kind = "scatter",
                                   .csv = out_text(csv, NULL),
                                   .title = "Calibrated kernel times against measured ones",
                                   .subtitle = subtitle,
                                   .output = output};
    if (!r.csv || !subtitle) return err_nomem(e);
    return plot_render(a, &r, e);
}
