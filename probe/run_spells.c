#include "probe/run_spells.h"

#include <math.h>

#include "calc/base/clock.h"
#include "probe/run_ask.h"

enum { SPELLS_MAX = 100, LEAST = 3, ENOUGH = 10 };

/* SPELL_S: a core beside another program's thread, or memory that others load, stays so for half a second to some
 * seconds (probe/METHOD.md), and a spell is to lie within one such state. SURE, the error of a median that more spells
 * need not lower; DOUBT, that of one that is given. WAIT: of the time for sampling, where ceilings take the rest. */
static const double SPELL_S = 0.04, SURE = 0.01, DOUBT = 0.03, WAIT = 2, LONG = 2.5;

static double apart(double x, double y) { return fabs(x - y) / fmax(x, y); }

/* The lower of two rates over the best, 1 where nothing is known. */
static double level(double before, double after, double best)
{
    const double low = isnan(before) ? after : isnan(after) ? before : fmin(before, after);
    return isnan(low) || isnan(best) ? 1 : low / best;
}

static bool is_steady(double before, double after) { return !(apart(before, after) > SPELLS_STEADY); }

/* The level of a spell; 0: its ceilings moved. */
static double level_of(const struct result *x, const struct result_ceilings *best)
{
    const struct result_ceilings *b = &x->before, *a = &x->after;
    bool peak, bytes;
    double v = 1;
    result_weighs(x, SPELLS_PART, &peak, &bytes);
    if (peak) {
        if (!is_steady(b->peak_flops_per_s, a->peak_flops_per_s)) return 0;
        v = fmin(v, level(b->peak_flops_per_s, a->peak_flops_per_s, best->peak_flops_per_s));
    }
    if (bytes) {
        if (!is_steady(b->read_bytes_per_s, a->read_bytes_per_s)) return 0;
        v = fmin(v, level(b->read_bytes_per_s, a->read_bytes_per_s, best->read_bytes_per_s));
    }
    return v;
}

double spells_choose(struct result_spell *spells, size_t n, size_t least, const struct result_ceilings *best)
{
    double chosen = 0;
    for (size_t i = 0; i < n; i++) {
        const double top = level_of(&spells[i].of, best);
        size_t alike = 0;
        if (!(top > chosen)) continue;
        for (size_t j = 0; j < n; j++) {
            const double v = level_of(&spells[j].of, best);
            alike += v <= top && v >= SPELLS_LEVEL * top;
        }
        if (alike >= least) chosen = top;
    }
    for (size_t i = 0; i < n; i++) {
        const double v = level_of(&spells[i].of, best);
        spells[i].counts = !(chosen > 0) || (v <= chosen && v >= SPELLS_LEVEL * chosen);
    }
    return chosen;
}

static double larger(double x, double y) { return isnan(x) ? y : isnan(y) ? x : fmax(x, y); }

/* The best that ceilings of this run, and those around these spells, were. */
static struct result_ceilings best_of(const struct run *r, const struct plan_job *job, bool cold,
                                      const struct result_spell *spells, size_t n)
{
    const double nan = (double)NAN;
    struct result_ceilings best = {nan, nan, nan, nan};
    run_best(r, job->variant->unit, cold, &best);
    for (size_t i = 0; i < n; i++) {
        const struct result_ceilings c = result_ceilings_of(&spells[i].of);
        best.peak_flops_per_s = larger(best.peak_flops_per_s, c.peak_flops_per_s);
        best.read_bytes_per_s = larger(best.read_bytes_per_s, c.read_bytes_per_s);
    }
    return best;
}

static size_t counted(const struct result_spell *spells, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; i++) c += spells[i].counts;
    return c;
}

/* What a joined result lacks to be the last; SAMPLE_GOING: a spell more. */
static enum sample_stop decide(const struct wire_job *q, const struct result *x, size_t spells, double level,
                               double sampled_s, double took_s)
{
    const bool best = level >= SPELLS_LEVEL && spells >= LEAST && x->times_n >= (size_t)q->least;
    const double most_s = q->deadline_s * (x->times_n < (size_t)q->least ? LONG : 1);
    if (best && x->summary.spread_frac < q->noise_frac) return SAMPLE_QUIET;
    if (best && !sample_doubt(&x->summary) && x->summary.error_frac <= (spells >= ENOUGH ? DOUBT : SURE))
        return SAMPLE_PLATEAU;
    if (sampled_s >= most_s || took_s >= WAIT * most_s) return SAMPLE_DEADLINE;
    return x->times_n >= SAMPLE_MAX ? SAMPLE_FULL : SAMPLE_GOING;
}

enum err_code run_spells(struct run *r, const struct plan_job *job, const struct wire_job *q, struct result *out,
                         struct err *e)
{
    const bool many = run_is_processor(r);
    const size_t most = many ? SPELLS_MAX : q->cold ? 1 : 2;
    struct result_spell *spells = arena_array(r->arena, most, sizeof *spells);
    struct wire_job ask = *q;
    struct result_ceilings around;
    double bytes = r->last == job ? r->last_bytes : (double)NAN, sampled_s = 0, began_s = 0;
    enum sample_stop stop = SAMPLE_GOING;
    size_t n = 0;
    if (!spells) return err_nomem(e);
    ask.deadline_s = many ? fmin(SPELL_S, q->deadline_s) : q->deadline_s / (double)most;
    TRY(run_around(r, job->variant->unit, q->cold, bytes, &around, e));
    while (stop == SAMPLE_GOING && n < most && !r->stopped) {
        struct result *x = &spells[n].of;
        const double start_s = clock_now_s();
        ask.again = n > 0;
        TRY(run_measure(r, &ask, x, e));
        if (r->stopped) break;
        sampled_s += n > 0 ? clock_now_s() - start_s : ask.deadline_s;
        if (n == 0) began_s = clock_now_s() - ask.deadline_s; /* before it buffers were filled and checked */
        x->before = around;
        x->after = result_unknown().after;
        bytes = x->footprint_bytes;
        if (x->outcome != RESULT_MEASURED && x->outcome != RESULT_NOISY) {
            *out = *x;
            return ERR_OK;
        }
        n++;
        TRY(run_around(r, job->variant->unit, q->cold, bytes, &around, e));
        if (!r->stopped) x->after = around;
        const struct result_ceilings best = best_of(r, job, q->cold, spells, n);
        const double at = spells_choose(spells, n, many ? LEAST : most, &best);
        TRY(result_join(r->arena, spells, n, out, e));
        stop = decide(q, out, counted(spells, n), at, sampled_s, clock_now_s() - began_s);
        if (!many) stop = n < most ? SAMPLE_GOING : x->stop;
    }
    if (r->stopped && r->late && n > 0) { /* its time is over, and it has spells */
        r->stopped = r->late = false;
        stop = SAMPLE_DEADLINE;
    }
    if (!r->stopped) out->stop = stop == SAMPLE_GOING ? SAMPLE_DEADLINE : stop;
    return ERR_OK;
}
