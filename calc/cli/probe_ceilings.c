/* probe_ceilings -- `ridge probe ceilings`. */
#include <math.h>
#include <stdio.h>

#include "calc/cli/commands.h"
#include "calc/cli/probe_budget.h"
#include "calc/cli/probe_work.h"

enum { CEILINGS_MAX = RUN_UNITS_MAX + 2 + RUN_LEVELS + RUN_LAUNCHES_MAX + RUN_GATHERS_MAX };

static const double USUAL_S = 60; /* four times what a quiet machine takes */

struct ceiling_row {
    const char *ceiling, *kernel, *variant, *dtype, *why;
    size_t noisy_n;
    double flops_per_s, bytes_per_s, launch_s, ridge_flops_per_byte, spread_frac, footprint_bytes;
};

#define CEILING(field, kind, unit, heading, help)                                                                      \
    COLUMN_AT(struct ceiling_row, field, kind, unit, COLUMN_SHOWN, heading, help)

static const struct column CEILINGS[] = {
    CEILING(ceiling, COLUMN_STRING, UNITS_NONE, "ceiling", "what nothing on this machine exceeds"),
    CEILING(flops_per_s, COLUMN_REAL, UNITS_FLOPS_PER_S, "peak", "measured flops per second"),
    CEILING(bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, "bandwidth", "measured bytes per second"),
    CEILING(launch_s, COLUMN_REAL, UNITS_SECONDS, "start", "measured seconds until work that does nothing is done"),
    CEILING(ridge_flops_per_byte, COLUMN_REAL, UNITS_FLOPS_PER_BYTE, "ridge", "peak over bandwidth of reading memory"),
    COLUMN_AT(struct ceiling_row, footprint_bytes, COLUMN_REAL, UNITS_BYTES, COLUMN_SHOWN | COLUMN_SPARE, "footprint",
              "bytes that the measurement touches"),
    CEILING(kernel, COLUMN_STRING, UNITS_NONE, "kernel", "with what"),
    CEILING(variant, COLUMN_STRING, UNITS_NONE, "variant", "the best of its variants"),
    COLUMN_AT(struct ceiling_row, dtype, COLUMN_STRING, UNITS_NONE, 0, "dtype", "format"),
    COLUMN_AT(struct ceiling_row, spread_frac, COLUMN_REAL, UNITS_FRAC, COLUMN_SHOWN | COLUMN_SPARE, "spread",
              "relative spread of the samples"),
    COLUMN_AT(struct ceiling_row, why, COLUMN_STRING, UNITS_NONE, 0, "why", "why there is no number"),
};

static struct ceiling_row row_of(const char *name, const struct run_ceiling *c, bool flops)
{
    const double nan = (double)NAN;
    return (struct ceiling_row){.ceiling = name,
                                .kernel = c->kernel,
                                .variant = c->variant,
                                .dtype = c->dtype,
                                .why = c->why,
                                .noisy_n = c->noisy_n,
                                .flops_per_s = flops ? c->per_s : nan,
                                .bytes_per_s = flops ? nan : c->per_s,
                                .launch_s = nan,
                                .ridge_flops_per_byte = nan,
                                .spread_frac = c->kernel ? c->spread_frac : nan,
                                .footprint_bytes = c->kernel ? c->footprint_bytes : nan};
}

/* Rows of all ceilings; rows has room for CEILINGS_MAX. */
static size_t ceiling_rows(struct work *w, struct ceiling_row *rows)
{
    static const char *const LEVELS[RUN_LEVELS] = {"read L1", "read L2", "read last cache"};
    const struct run_ceilings *c = &w->run.ceilings;
    const double nan = (double)NAN;
    size_t n = 0;
    for (size_t i = 0; i < c->peaks_n; i++) {
        const char *name = arena_printf(w->a, "peak %s", c->peak[i].unit);
        rows[n] = row_of(name, &c->peak[i], true);
        rows[n++].ridge_flops_per_byte = c->peak[i].per_s / c->read.per_s;
    }
    rows[n++] = row_of("read memory", &c->read, false);
    rows[n++] = row_of("move memory", &c->moved, false);
    for (size_t i = 0; i < c->gathers_n; i++)
        rows[n++] =
            row_of(arena_printf(w->a, "gather %.4g KiB", run_piece_bytes(&c->gather[i]) / 0x1p10), /* not a unit */
                   &c->gather[i], false);
    for (size_t i = 0; i < RUN_LEVELS; i++)
        if (w->run.device.cache_bytes[i] > 0 &&
            (i == 0 || w->run.device.cache_bytes[i] > w->run.device.cache_bytes[i - 1]))
            rows[n++] = row_of(LEVELS[i], &c->cache[i], false);
    for (size_t i = 0; i < c->launches_n; i++) {
        rows[n] = row_of(arena_printf(w->a, "start %s", c->launch[i].variant), &c->launch[i], false);
        rows[n].bytes_per_s = rows[n].footprint_bytes = nan;
        rows[n++].launch_s = 1 / c->launch[i].per_s;
    }
    return n;
}

static enum err_code ceilings_within(struct work *w, const char *command, struct err *e)
{
    struct ceiling_row rows[CEILINGS_MAX];
    size_t known = 0;
    TRY(work_check_output(w, CEILINGS, sizeof CEILINGS / sizeof CEILINGS[0], e));
    w->run.set.launches = true;
    struct budget budget;
    TRY(budget_read(w, USUAL_S, &budget, e));
    w->run.set.until_s = budget_until_s(&budget, false);
    TRY(work_begin(w, command, e));
    budget_end_ceilings(w, &budget, 1);
    TRY(work_open_store(w, budget_left_s(&budget), e));
    progress_start(&w->bar, "ceilings");
    w->total = 1;
    const enum err_code code = run_measure_ceilings(&w->run, e);
    progress_end(&w->bar);
    run_close(&w->run);
    TRY(code);
    const size_t n = ceiling_rows(w, rows);
    for (size_t i = 0; i < n; i++) {
        const bool has = !isnan(rows[i].flops_per_s) || !isnan(rows[i].bytes_per_s) || !isnan(rows[i].launch_s);
        known += has;
        if (has && rows[i].noisy_n)
            TRY(work_note(w,
                          arena_printf(w->a, "%s: %zu code%s gave no number, so it may be too low: too noisy.",
                                       rows[i].ceiling, rows[i].noisy_n, rows[i].noisy_n == 1 ? "" : "s"),
                          e));
        if (!has && rows[i].why) TRY(work_note(w, arena_printf(w->a, "%s: %s.", rows[i].ceiling, rows[i].why), e));
    }
    TRY(work_note(w, arena_printf(w->a, "%s.", work_who(w)), e));
    TRY(work_say_failed(w, e));
    if (w->run.stopped) TRY(work_note(w, "stopped by a signal.", e));
    TRY(budget_say_untried(w, e));
    TRY(work_say_stored(w, e));
    TRY(work_write_table(w, "ridge.probe.ceilings.1", CEILINGS, sizeof CEILINGS / sizeof CEILINGS[0], rows, n,
                         sizeof rows[0], e));
    TRY(work_all_stored(w, e));
    if (known || w->run.stopped) return ERR_OK;
    return err_set(e, w->run.garbage_n && w->run.garbage_n == w->run.failed_n ? ERR_DEVICE : ERR_NO,
                   "no ceiling could be measured: %s",
                   w->run.failed    ? w->run.failed
                   : w->run.untried ? "there was no time for it"
                                    : "the machine was too noisy");
}

enum err_code probe_ceilings(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    (void)a;
    return work_held(v, command, ceilings_within, e);
}
