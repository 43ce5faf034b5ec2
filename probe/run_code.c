#include "probe/run_code.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/clock.h"
#include "probe/run_ask.h"

/* Ceilings around a job: quick, since the code and its buffers are there. */
static const double AROUND_S = 0.25;

double run_ceiling_s(const struct run *r)
{
    return fmin(r->set.deadline_s, r->set.ceiling_s > 0 ? r->set.ceiling_s : AROUND_S);
}

double run_code_rate(const struct result *x, bool flops)
{
    return (flops ? x->flops : x->read_bytes + x->written_bytes) / result_time_s(x);
}

/* That of the fastest sample. */
static double rate_least(const struct result *x, bool flops)
{
    return (flops ? x->flops : x->read_bytes + x->written_bytes) / x->summary.least_s;
}

/* Whether there is time for another code of a ceiling; a job may need the first number of one. Each gives
 * way to the others when its share is over, one without a number when that is over twice. */
static bool is_time_for(const struct run *r, const struct run_ceiling *c)
{
    if (isnan(c->per_s) && r->begun) return true;
    const double more_s = isnan(c->per_s) ? r->share_s : 0;
    return fmin(run_left_s(r->share_until_s) + more_s, run_left_s(r->set.ceilings_until_s)) > 0;
}

/* The next of *groups of codes has its share of what is left for ceilings; none is left: no end of its own. */
void run_code_share(struct run *r, size_t *groups)
{
    const double left_s = fmax(0, run_left_s(r->set.ceilings_until_s));
    r->share_s = *groups ? left_s / (double)*groups : (double)INFINITY;
    r->share_until_s = isinf(r->share_s) ? 0 : clock_now_s() + r->share_s;
    *groups -= *groups > 0;
}

/* A code is beaten when not even its fastest call of a short look comes within a tenth of the best one's median: what
 * disturbs calls makes them slower, and so it is not what was best in a quiet moment that is left out. */
static const double LOOK_S = 0.03, BEATEN = 1.1;

static bool is_beaten(const struct run_ceiling *c, const struct result *x, bool flops)
{
    const bool timed = x->outcome == RESULT_MEASURED || x->outcome == RESULT_NOISY;
    return timed && rate_least(x, flops) * BEATEN < c->per_s;
}

/* Another code of a ceiling that has a number: a short look; *done: it is beaten, or no code at all. */
static enum err_code look(struct run *r, struct wire_job job, const struct run_ceiling *c, bool flops, struct result *x,
                          bool *done, struct err *e)
{
    job.deadline_s = fmin(LOOK_S, job.deadline_s);
    TRY(run_measure(r, &job, x, e));
    *done = r->stopped || is_beaten(c, x, flops) || (x->outcome != RESULT_MEASURED && x->outcome != RESULT_NOISY);
    return ERR_OK;
}

/* A ceiling's sampling, in looks, whose states of the machine differ: the best of them, until two agree on it. */
enum { LOOKS_MAX = 6 };
static const double AGREE = 0.02;

enum err_code run_code_surely(struct run *r, struct wire_job job, struct result *x, struct err *e)
{
    double best_s = (double)INFINITY;
    job.deadline_s /= 4;
    for (int i = 0, agreed = 0; i < LOOKS_MAX && agreed < 2; i++) {
        struct result one;
        job.again = job.again || i > 0;
        TRY(run_measure(r, &job, &one, e));
        if (r->stopped && i > 0 && r->late && !r->begun) { /* it has a look */
            r->late = r->stopped = false;
            return ERR_OK;
        }
        if (r->stopped || (one.outcome != RESULT_MEASURED && one.outcome != RESULT_NOISY)) {
            *x = one;
            return ERR_OK;
        }
        const double s = one.outcome == RESULT_MEASURED ? one.summary.median_s : (double)INFINITY;
        if (s * (1 + AGREE) < best_s) agreed = 0;
        if (isfinite(s) && s <= best_s * (1 + AGREE)) agreed++;
        if (i == 0 || s < best_s) *x = one;
        best_s = fmin(best_s, s);
        if (isfinite(best_s) && run_left_s(r->share_until_s) <= 0) return ERR_OK;
    }
    return ERR_OK;
}

/* Codes that were too noisy, sampled twice each, before the others are given up: what is disturbed then is the machine,
 * of which another code of the same ceiling gets no number either. */
enum { NOISY_MAX = 3 };

static bool is_given_up(struct run_ceiling *c)
{
    if (!isnan(c->per_s) || c->noisy_n < NOISY_MAX) return false;
    c->why = "three codes were too noisy, and the others were not tried";
    return true;
}

/* A code of a ceiling is left out. */
static enum err_code leave_untried(struct run *r, struct run_ceiling *c)
{
    r->untried++;
    if (isnan(c->per_s) && !c->why) c->why = "no time was left for it";
    return ERR_OK;
}

/* A code of a ceiling that crashed, hung or is wrong, which is no noise. */
static enum err_code note_failure(struct run *r, const struct result *x, struct err *e)
{
    enum { NAMED_MAX = 4 };
    if (x->outcome == RESULT_MEASURED || x->outcome == RESULT_NOISY || x->outcome == RESULT_REFUSED) return ERR_OK;
    r->failed_n++;
    r->garbage_n += x->outcome == RESULT_GARBAGE;
    const char *one =
        arena_printf(r->arena, "%s %s %s: %s", x->kernel, x->variant, result_outcome_name(x->outcome), x->reason);
    if (!one) return err_nomem(e);
    if (r->failed_n > NAMED_MAX || (r->failed && strstr(r->failed, one))) return ERR_OK;
    r->failed = r->failed ? arena_printf(r->arena, "%s; %s", r->failed, one) : one;
    return r->failed ? ERR_OK : err_nomem(e);
}

/* Measure a variant of a kernel that measures a ceiling; a better one takes its place in c. */
enum err_code run_try_code(struct run *r, const struct wire_kernel *k, const struct wire_variant *v, const char *dtype,
                           const struct wire_shape *shape, bool cold, struct run_ceiling *c, struct err *e)
{
    const bool flops = strcmp(k->ceiling, "compute") == 0, starts = strcmp(k->ceiling, "launch") == 0;
    struct wire_job job = run_job_of(r, k->name, v->name, dtype, shape, cold);
    struct result x;
    if (is_given_up(c)) return ERR_OK;
    if (!is_time_for(r, c)) return leave_untried(r, c);
    job.deadline_s = run_ceiling_s(r);
    bool beaten = false;
    if (!starts && !isnan(c->per_s)) TRY(look(r, job, c, flops, &x, &beaten, e));
    job.again = !starts && !isnan(c->per_s); /* behind a look */
    if (!beaten && !r->stopped) TRY(run_code_surely(r, job, &x, e));
    if (r->late && !r->begun) { /* the jobs have time of their own */
        r->late = r->stopped = false;
        return leave_untried(r, c);
    }
    if (r->stopped) return ERR_OK;
    x.ceiling = k->ceiling;
    run_keep(r, &x);
    TRY(note_failure(r, &x, e));
    const double rate = starts ? (double)shape->arg[0].value / result_time_s(&x) : run_code_rate(&x, flops);
    if (isnan(rate) && isnan(c->per_s)) c->why = x.reason;
    c->noisy_n += x.outcome == RESULT_NOISY && !beaten;
    if (!(rate > c->per_s) && !(isnan(c->per_s) && !isnan(rate))) return ERR_OK;
    *c = (struct run_ceiling){.kernel = k->name,
                              .variant = v->name,
                              .dtype = dtype,
                              .shape = x.shape,
                              .per_s = rate,
                              .best_per_s = rate,
                              .spread_frac = x.summary.spread_frac,
                              .footprint_bytes = x.footprint_bytes,
                              .tries = c->tries,
                              .noisy_n = c->noisy_n};
    (void)snprintf(c->unit, sizeof c->unit, "%s", flops ? v->unit : "");
    return ERR_OK;
}
