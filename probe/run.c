#include "probe/run_ask.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calc/base/clock.h"
#include "probe/run_spells.h"

enum { WHY_MAX = 400 };

static const double DESCRIBE_S = 30, START_S = 1;

enum err_code run_now(struct arena *a, const char **out, struct err *e)
{
    const time_t now = time(NULL);
    struct tm t;
    char text[32] = "";
    if (gmtime_r(&now, &t)) (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
    *out = arena_strndup(a, text, strlen(text));
    return *out ? ERR_OK : err_nomem(e);
}

/* Seconds until a moment; INFINITY: it is never. */
double run_left_s(double until_s) { return until_s > 0 ? until_s - clock_now_s() : (double)INFINITY; }

/* -- asking the worker -- */

static enum err_code start(struct run *r, struct session **session, struct err *e)
{
    return *session ? ERR_OK : session_open(r->arena, r->set.worker, r->set.before, session, e);
}

bool run_is_able(const struct run *r)
{
    for (size_t i = 0; i < r->device.kernels_n; i++)
        for (size_t j = 0; j < r->device.kernels[i].variants_n; j++)
            if (!*r->device.kernels[i].variants[j].lacks) return true;
    return false;
}

enum err_code run_open(struct run *r, struct err *e)
{
    const int64_t threads = r->set.threads ? r->set.threads : 1;
    const struct wire_request q = {.ask = WIRE_DESCRIBE, .threads = threads};
    struct wire_reply reply;
    char why[WHY_MAX];
    TRY(start(r, &r->session, e));
    const enum session_end end =
        session_ask(r->session, r->arena, &q,
                    fmin(fmin(DESCRIBE_S, fmax(START_S, r->set.patience_s)), fmax(START_S, run_left_s(r->set.until_s))),
                    NULL, NULL, &reply, why, sizeof why);
    if (end != SESSION_ANSWERED) {
        run_close(r);
        r->stopped = end == SESSION_STOPPED;
        return err_set(e, ERR_DEVICE, "%s", why);
    }
    r->device = reply.device;
    if (!reply.device.kernels_n || !(r->set.lists || run_is_able(r))) {
        run_close(r);
        return err_set(e, ERR_DEVICE, "%s", *reply.device.left_out ? reply.device.left_out : "no kernel can run here");
    }
    if (reply.device.threads != threads && threads != WIRE_ALL_THREADS) {
        run_close(r);
        return err_set(e, ERR_RANGE, "--threads %lld: %lld can make a call together on this device", (long long)threads,
                       (long long)reply.device.threads);
    }
    r->set.threads = reply.device.threads;
    r->origin.device = reply.device.name;
    r->origin.identity = reply.device.identity;
    return ERR_OK;
}

void run_close(struct run *r)
{
    session_close(r->session);
    session_close(r->counting);
    r->session = r->counting = NULL;
}

struct wire_job run_job_of(const struct run *r, const char *kernel, const char *variant, const char *dtype,
                           const struct wire_shape *shape, bool cold)
{
    return (struct wire_job){.kernel = kernel,
                             .variant = variant,
                             .dtype = dtype,
                             .shape = *shape,
                             .cold = cold,
                             .seed = r->set.seed,
                             .least = r->set.least,
                             .noise_frac = r->set.noise_frac,
                             .deadline_s = r->set.deadline_s};
}

/* An answer to q, no later than there is time for: then r->late. */
static enum session_end ask(struct run *r, struct session *s, const struct wire_request *q, struct wire_reply *reply,
                            char *why, size_t cap)
{
    const double own_s = q->job.deadline_s * 3 + r->set.patience_s,
                 all_s = run_left_s(r->begun ? r->set.until_s : r->set.ceilings_until_s);
    const enum session_end end =
        session_ask(s, r->arena, q, fmin(own_s, all_s), r->progress, r->closure, reply, why, cap);
    r->late = r->late || (end == SESSION_HUNG && all_s < own_s);
    return r->late ? SESSION_STOPPED : end;
}

/* One measurement, whatever comes of it, without ceilings. r->stopped: there is none. */
enum err_code run_measure(struct run *r, const struct wire_job *job, struct result *out, struct err *e)
{
    static const enum result_outcome OF[] = {
        [SESSION_CRASHED] = RESULT_CRASHED, [SESSION_HUNG] = RESULT_HUNG, [SESSION_GARBAGE] = RESULT_GARBAGE};
    const struct wire_request q = {.ask = WIRE_MEASURE, .threads = r->set.threads, .job = *job};
    struct wire_reply reply;
    char why[WHY_MAX] = "";
    *out = result_unknown();
    out->origin = r->origin;
    out->kernel = job->kernel;
    out->variant = job->variant;
    out->dtype = job->dtype;
    out->cold = job->cold;
    out->shape = job->shape;
    out->seed = job->seed;
    TRY(run_now(r->arena, &out->made, e));
    enum session_end end = SESSION_CRASHED;
    struct err failed = {.code = ERR_OK};
    if (start(r, &r->session, &failed) == ERR_OK)
        end = ask(r, r->session, &q, &reply, why, sizeof why);
    else
        (void)snprintf(why, sizeof why, "%.*s", WHY_MAX - 1, failed.text);
    if (end == SESSION_ANSWERED) return result_fill(r->arena, &reply.result, out, e);
    session_close(r->session);
    r->session = NULL;
    r->stopped = end == SESSION_STOPPED;
    if (r->stopped) return ERR_OK;
    out->outcome = OF[end];
    out->reason = arena_strndup(r->arena, why, strlen(why));
    if (end != SESSION_CRASHED) return out->reason ? ERR_OK : err_nomem(e);
    r->crash =
        arena_printf(r->arena, "%s %s %s: %s", job->kernel, job->variant, result_outcome_name(out->outcome), why);
    return out->reason && r->crash ? ERR_OK : err_nomem(e);
}

/* The bytes of a job by counters, in the worker that times nothing. r->stopped: they are not known. */
static enum err_code count(struct run *r, const struct wire_job *job, struct result *out, struct err *e)
{
    struct wire_request q = {.ask = WIRE_MEASURE, .threads = r->set.threads, .job = *job};
    struct wire_reply reply;
    char why[WHY_MAX] = "";
    struct err failed = {.code = ERR_OK};
    enum session_end end = SESSION_CRASHED;
    q.job.dram_bytes = true;
    if (start(r, &r->counting, &failed) == ERR_OK)
        end = ask(r, r->counting, &q, &reply, why, sizeof why);
    else
        (void)snprintf(why, sizeof why, "%.*s", WHY_MAX - 1, failed.text);
    if (end == SESSION_ANSWERED) {
        result_count(&reply.result, out);
        return ERR_OK;
    }
    session_close(r->counting);
    r->counting = NULL;
    r->stopped = end == SESSION_STOPPED;
    out->dram_reason = arena_strndup(r->arena, why, strlen(why));
    return out->dram_reason ? ERR_OK : err_nomem(e);
}

void run_keep(struct run *r, struct result *result)
{
    struct err e = {.code = ERR_OK};
    if (r->store && store_add(r->store, result, &e) == ERR_OK) {
        r->stored++;
        return;
    }
    r->not_stored++;
    if (r->store && r->store_err.code == ERR_OK) r->store_err = e;
}

/* -- jobs -- */

enum err_code run_refuses(struct run *r, const struct plan_job *job, bool cold, const char **why, struct err *e)
{
    const double patience_s = r->set.patience_s;
    struct wire_job q = run_job_of(r, job->kernel->name, job->variant->name, job->dtype, &job->shape, cold);
    struct result x = {.outcome = RESULT_MEASURED};
    q.deadline_s = 1e-3;
    r->set.patience_s = 0.3;
    const enum err_code code = run_measure(r, &q, &x, e);
    r->set.patience_s = patience_s;
    *why = code == ERR_OK && !r->stopped && x.outcome == RESULT_REFUSED ? x.reason : NULL;
    return code;
}

struct run_count run_counts(struct run *r, const struct plan_job *job)
{
    const struct run_count none = {(double)NAN, (double)NAN};
    const struct wire_request q = {
        .ask = WIRE_COUNT,
        .threads = 1,
        .job = run_job_of(r, job->kernel->name, job->variant->name, job->dtype, &job->shape, true)};
    struct wire_reply reply;
    char why[WHY_MAX] = "";
    if (start(r, &r->session, NULL) != ERR_OK) return none;
    const enum session_end end =
        session_ask(r->session, r->arena, &q, fmin(START_S, r->set.patience_s), NULL, NULL, &reply, why, sizeof why);
    if (end == SESSION_ANSWERED)
        return *reply.work.refused
                   ? none
                   : (struct run_count){reply.work.flops, reply.work.read_bytes + reply.work.written_bytes};
    session_close(r->session);
    r->session = NULL;
    r->stopped = end == SESSION_STOPPED;
    return none;
}

/* Whether the memory around a cold result is said to be slower than what it read, which arithmetic does not bind. */
static bool is_above_memory(const struct result *r)
{
    const double memory_s = result_bound_s(r, 0, r->read_bytes, r->read_bytes + r->written_bytes);
    const double compute_s = result_bound_s(r, r->flops, 0, 0);
    return r->outcome == RESULT_ABOVE && r->cold && memory_s > r->summary.median_s && !(compute_s >= memory_s);
}

/* A job between measurements of its ceilings. r->stopped: there is no result. */
static enum err_code measure_between(struct run *r, const struct plan_job *job, const struct wire_job *q,
                                     struct result *out, struct err *e)
{
    const bool cold = q->cold;
    TRY(run_spells(r, job, q, out, e));
    if (r->stopped) return ERR_OK;
    out->row_kind = job->kernel->row_kind;
    out->ceiling = job->kernel->ceiling;
    r->last = job;
    r->last_bytes = out->footprint_bytes;
    if (out->outcome != RESULT_MEASURED) return ERR_OK;
    if (!run_has_gather(r)) out->piece_bytes = (double)NAN; /* pieces that no ceiling of this device tells apart */
    const bool more = run_left_s(r->set.until_s) > 0;       /* time for further ceilings */
    if (cold && more && out->piece_bytes > 0)
        TRY(run_around_gather(r, out->piece_bytes, &out->after.gather_bytes_per_s, e));
    if (r->stopped) return ERR_OK;
    if (cold && more) TRY(run_around_move(r, out, e));
    if (r->stopped) return ERR_OK;
    if (!cold) result_floor(out, run_hot_rate(r, out->footprint_bytes));
    return result_judge(r->arena, out, e);
}

enum err_code run_job(struct run *r, const struct plan_job *job, bool cold, struct result *out, struct err *e)
{
    struct wire_job q = run_job_of(r, job->kernel->name, job->variant->name, job->dtype, &job->shape, cold);
    bool chosen = false;
    r->begun = true;
    TRY(measure_between(r, job, &q, out, e));
    if (!r->stopped && is_above_memory(out)) TRY(run_choose_again(r, &chosen, e));
    if (chosen) {
        run_keep(r, out); /* no number of it stays */
        TRY(measure_between(r, job, &q, out, e));
    }
    if (r->stopped) return ERR_OK;
    const bool right = out->outcome == RESULT_MEASURED || out->outcome == RESULT_NOISY || out->outcome == RESULT_ABOVE;
    if (r->set.dram_bytes && right) TRY(count(r, &q, out, e));
    if (r->stopped) return ERR_OK;
    run_keep(r, out);
    return ERR_OK;
}
