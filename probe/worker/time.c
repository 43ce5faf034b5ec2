/* time -- warm up and sample; METHOD.md says why so. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "probe/worker/flush.h"
#include "probe/worker/work.h"

/* REPEATED_S: of which a meeting of threads, some microseconds at worst, is below a hundredth */
static const double SAMPLE_S = 100e-6, REPEATED_S = 500e-6, WARM_S = 20e-3, LOST_FRAC = 0.005, LOST_S = 2e-6;

static double clock_s(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) != 0) return (double)NAN;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Some code, of libraries too, leaves the upper halves of vector registers in use, after which every SSE instruction
 * waits for the one before it, and references and fills take ten times as long (Intel, Optimization Reference Manual,
 * "Mixing AVX Code with SSE Code"). */
__attribute__((noinline)) static void clear_uppers(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx")) __asm__ volatile("vzeroupper");
#endif
}

static void run(const struct work *w, const struct kern_call *c)
{
    w->spec.variant->run(c);
    clear_uppers();
}

static void call(struct work *w, size_t *next)
{
    w->last = *next;
    run(w, &w->calls[*next]);
    *next = *next + 1 == w->copies ? 0 : *next + 1;
}

/* -- calls of a team -- */

struct round_of {
    struct work *work;
    size_t first, n;
};

struct end_of {
    const struct work *work;
    size_t i;
};

static void finish(void *closure)
{
    const struct end_of *e = closure;
    e->work->split->finish(&e->work->calls[e->i], e->work->room, team_size(e->work->spec.team));
}

/* A ceiling of a cache: a call of it takes hardly longer than threads take to meet, so they meet behind the last of a
 * sample alone. Parts of it depend on no others. */
static bool is_repeated(const struct work *w)
{
    return w->split && !w->spec.cold && w->copies == 1 && w->spec.kernel->ceiling != KERN_CEILING_NONE;
}

/* The calls of one thread: all of a call end before one begins the next, as operators of a model follow one another. */
static void make_parts(void *closure, unsigned part)
{
    const struct round_of *r = closure;
    const struct work *w = r->work;
    const unsigned n = team_size(w->spec.team);
    for (size_t k = 0, i = r->first; k < r->n; k++, i = i + 1 == w->copies ? 0 : i + 1) {
        const struct kern_part *p = &w->parts[i * n + part];
        struct end_of end = {w, i};
        if (!p->idle) run(w, &p->call);
        if (is_repeated(w) && k + 1 < r->n) continue;
        team_meet(w->spec.team, w->split->finish ? finish : NULL, &end);
    }
}

void work_call(struct work *w, size_t i)
{
    if (w->split)
        team_run(w->spec.team, make_parts, &(struct round_of){w, i, 1}, NULL, NULL);
    else
        run(w, &w->calls[i]);
    w->last = i;
}

/* What the next n calls are of leaves the caches, whichever of the threads brought it there. */
static void flush_next(const struct work *w, size_t n, size_t next)
{
    for (size_t k = 0, i = next; k < n && k < w->copies; k++, i = i + 1 == w->copies ? 0 : i + 1) {
        const struct kern_call *c = &w->calls[i];
        if (c->packed) flush_lines(c->packed, w->packed_bytes);
        for (size_t b = 0; b < w->buffers_n; b++)
            if (work_rotates(w, b))
                flush_lines(c->buffer[b], w->buffer[b].elements * kern_type_bytes(w->buffer[b].type));
    }
}

double work_calls(struct work *w, size_t n, size_t *next, double *lost_s)
{
    if (w->flushes) flush_next(w, n, *next);
    if (w->split) {
        double wall_s;
        team_run(w->spec.team, make_parts, &(struct round_of){w, *next, n}, &wall_s, lost_s);
        w->last = (*next + n - 1) % w->copies;
        *next = (*next + n) % w->copies;
        return wall_s;
    }
    const double cpu = clock_s(CLOCK_THREAD_CPUTIME_ID), start = clock_s(CLOCK_MONOTONIC);
    for (size_t i = 0; i < n; i++) call(w, next);
    const double wall = clock_s(CLOCK_MONOTONIC) - start;
    *lost_s = wall - (clock_s(CLOCK_THREAD_CPUTIME_ID) - cpu);
    return wall;
}

/* Calls that fill a sample, from the fastest of those that warm up; *call_s is its time. */
static size_t warm_up(struct work *w, double most_s, size_t *next, double *call_s)
{
    static const size_t CALLS_MAX = (size_t)1 << 25;
    const double start = clock_s(CLOCK_MONOTONIC);
    const size_t most = w->flushes ? w->copies : CALLS_MAX; /* a copy is cold once */
    double fastest = (double)INFINITY, lost;
    if (w->call_s > WARM_S) { /* a call in vain would be dearer than what it warms */
        *call_s = w->call_s;
        return 1;
    }
    for (size_t i = w->call_s > 0, n = 1; i < 2 || clock_s(CLOCK_MONOTONIC) - start < fmin(WARM_S, most_s); i++) {
        const double t = work_calls(w, n, next, &lost);
        fastest = fmin(fastest, t / (double)n);
        if (t < SAMPLE_S / 4 && 2 * n <= most) n *= 2; /* a call may be shorter than the clock's step */
        if (clock_s(CLOCK_MONOTONIC) - start > most_s) break;
    }
    *call_s = w->call_s = fastest;
    const double filled = ceil((is_repeated(w) ? REPEATED_S : SAMPLE_S) / fmax(fastest, 1e-9));
    return (size_t)fmin(fmax(1, filled), (double)most);
}

void work_time(struct work *w, const struct sample_rule *given, struct work_times *out)
{
    static const size_t EVERY = 16; /* decide when a sixteenth more samples are there: it costs cache */
    const double start = clock_s(CLOCK_MONOTONIC);
    double room[SAMPLE_MAX], call_s;
    struct sample_rule own = *given;
    const struct sample_rule *rule = &own;
    size_t next = 0, decide = rule->least;
    out->n = out->discards_n = 0;
    out->stop = SAMPLE_GOING;
    out->conditions[0] = '\0';
    if (w->spec.place) {
        w->spec.place->code->time(w->spec.place, w, given, out);
        return;
    }
    if (w->flushes) (void)snprintf(out->conditions, sizeof out->conditions, "{\"cold\":\"lines flushed\"}");
    out->calls = warm_up(w, rule->deadline_s / 4, &next, &call_s);
    /* long calls get the time for twice the least number, within three deadlines in all */
    own.deadline_s = fmin(2.5 * own.deadline_s, fmax(own.deadline_s, 2 * (double)rule->least * call_s));
    while (out->stop == SAMPLE_GOING) {
        double lost;
        if (!w->spec.cold && out->calls > 1)
            (void)work_calls(w, 1, &next, &lost); /* bring back what the decision drove out */
        const double t = work_calls(w, out->calls, &next, &lost), each = t / (double)out->calls;
        if (lost > fmax(LOST_S, LOST_FRAC * t)) {
            if (out->discards_n < SAMPLE_MAX) out->discard_s[out->discards_n++] = each;
        } else {
            out->time_s[out->n++] = each;
        }
        const double elapsed = clock_s(CLOCK_MONOTONIC) - start;
        if (out->n < decide && out->n < SAMPLE_MAX && elapsed < rule->deadline_s) continue;
        out->stop = sample_decide(rule, out->time_s, out->n, elapsed, room);
        decide = out->n + out->n / EVERY + 1;
    }
}

/* -- bytes, by counters -- */

struct round {
    struct work *work;
    size_t next, calls;
};

static const char *run_round(void *closure)
{
    struct round *r = closure;
    for (size_t i = 0; i < r->calls; i++) call(r->work, &r->next);
    return r->work->spec.place->code->wait(r->work->spec.place);
}

const char *work_count(struct work *w, double bytes[2], char *text, size_t cap)
{
    enum { CALLS_LEAST = 16 };
    struct place *const p = w->spec.place;
    struct round r = {w, 0, w->copies > CALLS_LEAST ? w->copies : CALLS_LEAST};
    bytes[0] = bytes[1] = (double)NAN;
    if (!p || !p->code->count) {
        (void)snprintf(text, cap, "only a card counts the bytes of its memory");
        return text;
    }
    const char *why = run_round(&r); /* caches hold what calls leave in them */
    if (why) {
        (void)snprintf(text, cap, "%s", why);
        return text;
    }
    why = p->code->count(p, run_round, &r, bytes, text, cap);
    for (size_t i = 0; i < 2; i++) bytes[i] /= (double)r.calls;
    return why;
}
