#include "probe/result.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const double ABOVE = 1.03, AROUND_FRAC = 0.1;

static const char *const OUTCOMES[RESULT_OUTCOMES_N] = {
    [RESULT_MEASURED] = "measured", [RESULT_NOISY] = "noisy",     [RESULT_WRONG] = "wrong",
    [RESULT_REFUSED] = "refused",   [RESULT_ABOVE] = "above",     [RESULT_CRASHED] = "crashed",
    [RESULT_HUNG] = "hung",         [RESULT_GARBAGE] = "garbage", [RESULT_IMPORTED] = "imported"};

const char *result_outcome_name(enum result_outcome outcome) { return OUTCOMES[outcome]; }

bool result_outcome_find(const char *name, enum result_outcome *out)
{
    for (size_t i = 0; i < RESULT_OUTCOMES_N; i++)
        if (strcmp(OUTCOMES[i], name) == 0) {
            *out = (enum result_outcome)i;
            return true;
        }
    return false;
}

struct result result_unknown(void)
{
    const double nan = (double)NAN;
    const struct result_ceilings none = {nan, nan, nan, nan};
    return (struct result){.origin = {"", "", "", "", ""},
                           .made = "",
                           .kernel = "",
                           .variant = "",
                           .dtype = "",
                           .unit = "",
                           .row_kind = "",
                           .reason = "",
                           .stop = SAMPLE_GOING,
                           .error_frac = nan,
                           .tolerance_frac = nan,
                           .flops = nan,
                           .vector_flops = nan,
                           .read_bytes = nan,
                           .written_bytes = nan,
                           .footprint_bytes = nan,
                           .piece_bytes = nan,
                           .dram_read_bytes = nan,
                           .dram_write_bytes = nan,
                           .dram_reason = "",
                           .before = none,
                           .after = none,
                           .summary = sample_summarise(NULL, 0, NULL),
                           .ceiling = "",
                           .cells = ""};
}

static bool is_beyond(const struct result *r)
{
    const double s = r->summary.median_s;
    return r->flops > RESULT_FLOPS_PER_S_MAX * s || r->vector_flops > RESULT_FLOPS_PER_S_MAX * s ||
           r->read_bytes + r->written_bytes > RESULT_BYTES_PER_S_MAX * s;
}

/* Summary and outcome of a result from its samples. */
static enum err_code conclude(struct arena *a, struct result *r, struct err *e)
{
    double *room = arena_array(a, r->times_n + 1, sizeof *room);
    if (!room) return err_nomem(e);
    r->summary = sample_summarise(r->times_s, r->times_n, room);
    if (r->outcome != RESULT_MEASURED) return ERR_OK;
    if (is_beyond(r)) {
        r->outcome = RESULT_ABOVE;
        r->reason = "the work it claims is more than any device does in that time: a fault of the worker";
        return ERR_OK;
    }
    const char *doubt = sample_doubt(&r->summary);
    if (!doubt) return ERR_OK;
    r->outcome = RESULT_NOISY;
    if (r->stop == SAMPLE_DEADLINE && r->times_n < SAMPLE_LEAST && r->discards_n <= r->times_n)
        r->reason =
            arena_printf(a, "the deadline came before %d samples (%zu kept, %zu disturbed): a longer --deadline",
                         SAMPLE_LEAST, r->times_n, r->discards_n);
    else
        r->reason = arena_printf(a, "%s (%zu kept, %zu disturbed)", doubt, r->times_n, r->discards_n);
    return r->reason ? ERR_OK : err_nomem(e);
}

enum err_code result_fill(struct arena *a, const struct wire_result *w, struct result *r, struct err *e)
{
    static const enum result_outcome OF[WIRE_OUTCOMES_N] = {[WIRE_MEASURED] = RESULT_MEASURED,
                                                            [WIRE_WRONG] = RESULT_WRONG,
                                                            [WIRE_REFUSED] = RESULT_REFUSED,
                                                            [WIRE_COUNTED] = RESULT_GARBAGE};
    r->outcome = OF[w->outcome];
    r->reason = w->reason;
    r->unit = w->unit ? w->unit : "";
    r->stop = w->stop;
    r->calls = w->calls;
    r->copies = w->copies;
    r->checked = w->checked;
    r->error_frac = w->error_frac;
    r->tolerance_frac = w->tolerance_frac;
    r->flops = w->flops;
    r->vector_flops = w->vector_flops;
    r->read_bytes = w->read_bytes;
    r->written_bytes = w->written_bytes;
    r->footprint_bytes = w->footprint_bytes;
    r->piece_bytes = w->piece_bytes;
    r->cells = w->conditions ? w->conditions : "";
    r->times_s = w->times_s;
    r->times_n = w->times_n;
    r->discards_s = w->discards_s;
    r->discards_n = w->discards_n;
    TRY(conclude(a, r, e));
    if (r->outcome == RESULT_MEASURED || w->outcome == WIRE_MEASURED) return ERR_OK;
    if (w->outcome == WIRE_COUNTED) r->reason = "the worker counted bytes, and was asked to time";
    if (!r->reason || !*r->reason) r->reason = "the worker does not say why";
    return ERR_OK;
}

void result_count(const struct wire_result *w, struct result *r)
{
    const bool counted = w->outcome == WIRE_COUNTED;
    r->dram_read_bytes = counted ? w->dram_read_bytes : (double)NAN;
    r->dram_write_bytes = counted ? w->dram_write_bytes : (double)NAN;
    r->dram_reason = "";
    if (counted) return;
    r->dram_reason = w->outcome == WIRE_MEASURED ? "this worker does not know how to count"
                     : w->reason && *w->reason   ? w->reason
                                                 : "the worker does not say why";
}

/* The larger of two rates, either of which may be unknown. */
static double best(double x, double y) { return isnan(x) ? y : isnan(y) ? x : fmax(x, y); }

struct result_ceilings result_ceilings_of(const struct result *r)
{
    return (struct result_ceilings){.peak_flops_per_s = best(r->before.peak_flops_per_s, r->after.peak_flops_per_s),
                                    .read_bytes_per_s = best(r->before.read_bytes_per_s, r->after.read_bytes_per_s),
                                    .moved_bytes_per_s = best(r->before.moved_bytes_per_s, r->after.moved_bytes_per_s),
                                    .gather_bytes_per_s =
                                        best(r->before.gather_bytes_per_s, r->after.gather_bytes_per_s)};
}

double result_gather(const struct result *r)
{
    const struct result_ceilings c = result_ceilings_of(r);
    return c.gather_bytes_per_s > 0 && c.gather_bytes_per_s < c.read_bytes_per_s ? c.gather_bytes_per_s : (double)NAN;
}

double result_bound_s(const struct result *r, double flops, double read_bytes, double moved_bytes)
{
    const struct result_ceilings c = result_ceilings_of(r);
    const double peak = c.peak_flops_per_s, read = c.read_bytes_per_s, moved = c.moved_bytes_per_s;
    double bound = 0;
    if ((flops > 0 && isnan(peak)) || (read_bytes > 0 && isnan(read))) return (double)NAN;
    if (moved_bytes > 0 && isnan(moved) && !(read_bytes > 0)) return (double)NAN; /* nothing bounds its bytes */
    if (flops > 0) bound = fmax(bound, flops / peak);
    const double gather = result_gather(r);
    if (read_bytes > 0) bound = fmax(bound, read_bytes / (isnan(gather) ? read : gather));
    if (moved_bytes > 0 && !isnan(moved)) bound = fmax(bound, moved_bytes / moved);
    return bound > 0 ? bound : (double)NAN;
}

bool result_lacks_move(const struct result *r, double flops, double read_bytes, double moved_bytes)
{
    const struct result_ceilings c = result_ceilings_of(r);
    if (!r->cold || !isnan(c.moved_bytes_per_s)) return false;
    return moved_bytes / c.read_bytes_per_s > ABOVE * result_bound_s(r, flops, read_bytes, moved_bytes);
}

static double apart(double x, double y) { return isnan(x) || isnan(y) ? 0 : fabs(x - y) / fmax(x, y); }

/* The median of each ceiling over the spells that count and know it, before them or behind; room: 2 n. */
static struct result_ceilings median_ceilings(const struct result_spell *spells, size_t n, bool before, double *room)
{
    static const size_t EACH[] = {
        offsetof(struct result_ceilings, peak_flops_per_s), offsetof(struct result_ceilings, read_bytes_per_s),
        offsetof(struct result_ceilings, moved_bytes_per_s), offsetof(struct result_ceilings, gather_bytes_per_s)};
    struct result_ceilings out;
    for (size_t k = 0; k < sizeof EACH / sizeof EACH[0]; k++) {
        size_t m = 0;
        for (size_t i = 0; i < n; i++) {
            const struct result_ceilings *c = before ? &spells[i].of.before : &spells[i].of.after;
            const double rate = *(const double *)((const char *)c + EACH[k]);
            if (spells[i].counts && !isnan(rate)) room[m++] = rate;
        }
        *(double *)((char *)&out + EACH[k]) = sample_summarise(room, m, room + n).median_s;
    }
    return out;
}

/* A result has no more of either than SAMPLE_MAX, as one series of a worker: the first. */
static void append(double *all, size_t *n, const double *more, size_t more_n)
{
    if (more_n > SAMPLE_MAX - *n) more_n = SAMPLE_MAX - *n;
    if (more_n) memcpy(all + *n, more, more_n * sizeof *all);
    *n += more_n;
}

enum err_code result_join(struct arena *a, const struct result_spell *spells, size_t n, struct result *r, struct err *e)
{
    size_t times = 0, discards = 0, last = 0;
    for (size_t i = 0; i < n; i++) {
        times += spells[i].of.times_n;
        discards += spells[i].of.discards_n;
        if (spells[i].counts) last = i;
    }
    double *const times_s = arena_array(a, times + 1, sizeof *times_s),
                  *const discards_s = arena_array(a, times + discards + 1, sizeof *discards_s),
                  *const room = arena_array(a, 2 * n, sizeof *room);
    if (!times_s || !discards_s || !room) return err_nomem(e);
    *r = spells[last].of;
    r->times_n = r->discards_n = 0;
    r->times_s = times_s;
    r->discards_s = discards_s;
    r->outcome = RESULT_MEASURED;
    r->reason = "";
    for (size_t i = 0; i < n; i++) {
        const struct result *x = &spells[i].of;
        append(discards_s, &r->discards_n, x->discards_s, x->discards_n);
        if (spells[i].counts)
            append(times_s, &r->times_n, x->times_s, x->times_n);
        else
            append(discards_s, &r->discards_n, x->times_s, x->times_n);
    }
    r->before = median_ceilings(spells, n, true, room);
    r->after = median_ceilings(spells, n, false, room);
    return conclude(a, r, e);
}

void result_floor(struct result *r, double cache_bytes_per_s)
{
    const double bound = result_bound_s(r, 0, r->read_bytes, 0);
    if (isnan(bound) || bound <= ABOVE * r->summary.median_s) return;
    r->before.read_bytes_per_s = r->after.read_bytes_per_s = cache_bytes_per_s;
}

void result_weighs(const struct result *r, double part, bool *peak, bool *bytes)
{
    const double bound = result_bound_s(r, r->flops, r->read_bytes, r->read_bytes + r->written_bytes);
    const double peak_s = r->flops / fmin(r->before.peak_flops_per_s, r->after.peak_flops_per_s);
    const double read_s =
        (r->read_bytes + r->written_bytes) / fmin(r->before.read_bytes_per_s, r->after.read_bytes_per_s);
    *peak = !(peak_s < part * bound);
    *bytes = !(read_s < part * bound);
}

enum err_code result_judge(struct arena *a, struct result *r, struct err *e)
{
    if (r->outcome != RESULT_MEASURED) return ERR_OK;
    const double bound = result_bound_s(r, r->flops, r->read_bytes, r->read_bytes + r->written_bytes);
    bool peak, bytes;
    result_weighs(r, 0.5, &peak, &bytes);
    const double peak_apart = peak ? apart(r->before.peak_flops_per_s, r->after.peak_flops_per_s) : 0;
    const double read_apart = bytes ? apart(r->before.read_bytes_per_s, r->after.read_bytes_per_s) : 0;
    if (bound > ABOVE * r->summary.median_s) {
        r->outcome = RESULT_ABOVE;
        r->reason =
            arena_printf(a, "%.2f of what the machine can do: a fault of the harness, or ceilings of a noisy moment",
                         bound / r->summary.median_s);
    } else if (fmax(peak_apart, read_apart) > AROUND_FRAC) {
        r->outcome = RESULT_NOISY;
        r->reason = arena_printf(a, "the %s of the machine before and after it differ by %.0f %%",
                                 peak_apart > read_apart ? "peak" : "bandwidth", 100 * fmax(peak_apart, read_apart));
    }
    return r->reason ? ERR_OK : err_nomem(e);
}

double result_time_s(const struct result *r)
{
    return r->outcome == RESULT_MEASURED || r->outcome == RESULT_IMPORTED ? r->summary.median_s : (double)NAN;
}

enum err_code result_check_rates(const struct result *r, struct err *e)
{
    static const double WORK = 1e24; /* not a unit */
    const double time_s = result_time_s(r), bytes = r->read_bytes + r->written_bytes;
    const struct {
        const char *what;
        double value, most;
    } each[] = {{"flops", r->flops, WORK},
                {"vector_flops", r->vector_flops, WORK},
                {"read_bytes", r->read_bytes, WORK},
                {"written_bytes", r->written_bytes, WORK},
                {"footprint_bytes", r->footprint_bytes, WORK},
                {"piece_bytes", r->piece_bytes, WORK},
                {"flops/s", r->flops / time_s, RESULT_FLOPS_PER_S_MAX},
                {"bytes/s", bytes / time_s, RESULT_BYTES_PER_S_MAX},
                {"dram_read_bytes/s", r->dram_read_bytes / time_s, RESULT_BYTES_PER_S_MAX},
                {"dram_write_bytes/s", r->dram_write_bytes / time_s, RESULT_BYTES_PER_S_MAX},
                {"flops/s before", r->before.peak_flops_per_s, RESULT_FLOPS_PER_S_MAX},
                {"flops/s after", r->after.peak_flops_per_s, RESULT_FLOPS_PER_S_MAX},
                {"bytes/s before", r->before.read_bytes_per_s, RESULT_BYTES_PER_S_MAX},
                {"bytes/s after", r->after.read_bytes_per_s, RESULT_BYTES_PER_S_MAX},
                {"bytes/s moved before", r->before.moved_bytes_per_s, RESULT_BYTES_PER_S_MAX},
                {"bytes/s moved after", r->after.moved_bytes_per_s, RESULT_BYTES_PER_S_MAX},
                {"bytes/s of pieces before", r->before.gather_bytes_per_s, RESULT_BYTES_PER_S_MAX},
                {"bytes/s of pieces after", r->after.gather_bytes_per_s, RESULT_BYTES_PER_S_MAX}};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        if (!isnan(each[i].value) && !(each[i].value >= 0 && each[i].value <= each[i].most))
            return err_set(e, ERR_INPUT, "%s: found %g, wanted 0 to %g", each[i].what, each[i].value, each[i].most);
    if (*r->ceiling && !isnan(time_s) && !(fmax(r->flops, bytes) > 0))
        return err_set(e, ERR_INPUT, "a ceiling of no work");
    return ERR_OK;
}
