#include "calc/serve/steady_flights.h"

#include <math.h>
#include <stdlib.h>

#include "calc/serve/steady_members.h"
#include "calc/serve/steady_parts.h"
#include "calc/serve/steady_stream.h"

enum {
    SEQS_MAX = 1 << 15,   /* requests of a run */
    BATCHES_MAX = 200000, /* of a run */
    STAGES_MAX = 64,      /* times of more are of so many; not a unit */
    FILLINGS = 6,         /* of a replica, looked at */
    WARM = 64,            /* requests before, and looked at, at least; and as often as a queue forgets; not a unit */
    WARM_MORE = 20,
    SEEN = 1600,
    SEEN_MORE = 80,
    FILLINGS_FULL = 2, /* where others always wait: rates alone, which are known sooner */
    SEEN_FULL = 400,
};

/* Beyond it runs get no longer. */
#define LOAD_MOST .95

struct request {
    double arrival_s, first_s, ttft_s;
    int64_t prompt, steps; /* of an answer, behind its first token */
    int64_t left;          /* tokens of its prompt that are in no batch yet */
    int64_t made;          /* tokens before it lost its cache */
    double tpot_s;
    int64_t waiting; /* that wait when a batch has landed behind which it is the last that came; -1: none has */
};

/* Those that are in one batch after another. */
struct batch {
    struct steady_members members; /* that decode */
    int64_t *ends, ends_n;         /* [max_seqs] whose prompts end with it */
    int64_t landed;                /* how often */
    double end_s;
    bool used;
};

/* A batch in all stages, and in the last one; below 0: not asked for. */
struct seconds {
    double all_s, last_s;
};

struct flights {
    const struct steady_flights *s;
    struct request *request;
    int32_t *places;              /* [requests] of members (steady_members.h) */
    double *scratch;              /* [2 * requests] */
    struct seconds *alone, *full; /* [max_seqs + 1] of n that decode: alone, and with as many prompt tokens as fit */
    int64_t requests, next, came; /* next: to enter */
    int64_t part, part_in;        /* one whose prompt is in part in batches, the last of them; -1 */
    int64_t launched, landed;     /* batches */
    int64_t *lost;                /* those without their caches, [max_seqs] */
    int64_t lost_n;
    struct batch batch[STAGES_MAX];
    int64_t order[STAGES_MAX], first, flights_n, stages;
    double free_s[STAGES_MAX], clock_s, idle_s;
    int64_t running, decoding_made;
    double held; /* tokens */
    int64_t ended, no_place, no_cache;
};

/* ---- the stream ---- */

static void make_stream(struct flights *f)
{
    const struct steady_flights *s = f->s;
    uint64_t times = 20011, lengths = 40009; /* any */
    double *prompt = f->scratch, *output = f->scratch + f->requests, at = 0;
    const bool comes = isfinite(s->rate_per_s);
    if (comes) steady_stream_gaps(&times, s->arrival_cv2, prompt, output, f->requests);
    for (int64_t i = 0; i < f->requests; i++) {
        if (comes) at += prompt[i];
        f->request[i] = (struct request){
            .arrival_s = comes ? at / s->rate_per_s : 0, .ttft_s = (double)NAN, .tpot_s = (double)NAN, .waiting = -1};
    }
    steady_stream_strata(&lengths, prompt, f->requests);
    steady_stream_strata(&lengths, output, f->requests);
    for (int64_t i = 0; i < f->requests; i++) {
        struct request *q = &f->request[i];
        q->left = q->prompt = (int64_t)s->prompt[(size_t)(prompt[i] * (double)s->lengths_n)];
        q->steps = (int64_t)s->output[(size_t)(output[i] * (double)s->lengths_n)] - 1;
    }
}

/* ---- a batch begins ---- */

static double used(const struct flights *f) { return f->held + (double)f->running * (f->s->block_tokens - 1) / 2; }

/* The last that entered of those that would decode leaves. */
static void lose(struct flights *f, struct batch *b)
{
    const struct steady_member last = steady_members_last(&b->members, f->places);
    struct request *q = &f->request[last.request];
    q->made = q->steps - (last.until - b->landed);
    q->left = q->prompt + q->made;
    f->held -= (double)q->left;
    f->running--;
    f->lost[f->lost_n++] = last.request;
}

/* So does one whose prompt is in part computed, unless a batch under way has a piece of it: it entered last. */
static bool lose_part(struct flights *f)
{
    if (f->part < 0 || f->part_in > f->landed) return false;
    struct request *q = &f->request[f->part];
    f->held -= (double)(q->prompt + q->made - q->left);
    q->left = q->prompt + q->made;
    f->running--;
    f->lost[f->lost_n++] = f->part;
    f->part = -1;
    return true;
}

/* A piece of a prompt; its last one, and it is in the batch. */
static double board(struct flights *f, struct batch *b, int64_t i, double left)
{
    struct request *q = &f->request[i];
    const int64_t piece = q->left < (int64_t)left ? q->left : (int64_t)left;
    q->left -= piece;
    f->held += (double)piece;
    f->part = q->left > 0 ? i : -1;
    f->part_in = f->launched + 1;
    if (q->left == 0) b->ends[b->ends_n++] = i;
    return (double)piece;
}

/* Pieces of prompts beside those that decode: of the one that has begun, of those that lost their caches, of who came.
 */
static double fill(struct flights *f, struct batch *b)
{
    const struct steady_flights *s = f->s;
    const double room = fmax((double)s->budget_tokens - (double)b->members.n, 0);
    const int64_t had = f->lost_n;
    double left = room;
    while (b->members.n > 0 && used(f) + (double)b->members.n > s->cache_tokens)
        if (!lose_part(f)) lose(f, b);
    const double spare = (double)b->members.n;
    if (f->part >= 0 && left >= 1) {
        const double piece = fmin(left, (double)f->request[f->part].left);
        if (used(f) + piece + spare > s->cache_tokens && (f->flights_n > 0 || b->members.n > 0)) {
            (void)lose_part(f);
            return 0;
        }
        left -= board(f, b, f->part, left);
    }
    while (had >= f->lost_n && left >= 1 && f->part < 0 && (f->lost_n > 0 || f->next < f->came)) {
        const int64_t i = f->lost_n > 0 ? f->lost[f->lost_n - 1] : f->next;
        const double piece = fmin(left, (double)f->request[i].left);
        const bool place = f->running < s->max_seqs,
                   cache = used(f) + piece + spare + s->block_tokens <= s->cache_tokens || f->running == 0;
        f->no_place += !place;
        f->no_cache += place && !cache;
        if (!place || !cache) break;
        if (f->lost_n > 0)
            f->lost_n--;
        else
            f->next++;
        f->running++;
        left -= board(f, b, i, left);
    }
    return room - left;
}

static struct seconds price(const struct flights *f, int64_t n, double tokens)
{
    const double slower = f->s->slower, with = (double)n;
    struct seconds *kept = !(tokens > 0)                                    ? &f->alone[n]
                           : !(tokens + with < (double)f->s->budget_tokens) ? &f->full[n]
                                                                            : NULL;
    if (kept && kept->all_s >= 0) return *kept;
    struct seconds x = {.all_s = slower * steady_times_step_s(f->s->through, with, tokens)};
    x.last_s = fmin(x.all_s, slower * steady_times_step_s(f->s->slowest, with, tokens));
    if (kept) *kept = x;
    return x;
}

static void fly(struct flights *f, struct batch *b, const struct seconds *x)
{
    const double each_s = (x->all_s - x->last_s) / (double)(f->stages - 1);
    double at_s = f->clock_s;
    for (int64_t i = 0; i < f->stages - 1; i++) {
        const double free_s = f->free_s[i];
        at_s = f->free_s[i] = (at_s > free_s ? at_s : free_s) + each_s;
    }
    const double free_s = f->free_s[f->stages - 1];
    b->end_s = f->free_s[f->stages - 1] = (at_s > free_s ? at_s : free_s) + x->last_s;
}

/* One batch alone decodes until somebody comes, one of its own ends or the cache is full: all its steps but the last at
 * once. */
static void repeat(struct flights *f, struct batch *b, double all_s)
{
    const double comes_s = f->came < f->requests ? f->request[f->came].arrival_s - f->clock_s : (double)INFINITY;
    const double room = (f->s->cache_tokens - used(f)) / (double)b->members.n - 1;
    const double most = fmin(fmin(ceil(comes_s / all_s), room), (double)(steady_members_next(&b->members) - b->landed));
    if (!(most > 1)) return;
    const int64_t more = (int64_t)most - 1;
    b->landed += more;
    f->landed += more;
    f->launched += more;
    f->held += (double)(more * b->members.n);
    f->decoding_made += more * b->members.n;
    f->clock_s += (double)more * all_s;
}

static struct batch *unused(struct flights *f, int64_t *place)
{
    for (*place = 0; f->batch[*place].used; ++*place) continue;
    return &f->batch[*place];
}

/* Batches begin until as many are under way as there are stages, or nobody is left for one. */
static void launch(struct flights *f, int64_t landed)
{
    while (f->came < f->requests && f->request[f->came].arrival_s <= f->clock_s) f->came++;
    while (f->flights_n < f->stages) {
        int64_t place = landed;
        struct batch *b = landed >= 0 ? &f->batch[landed] : unused(f, &place);
        if (landed < 0) {
            steady_members_clear(&b->members);
            b->ends_n = b->landed = 0;
        }
        landed = -1;
        const double tokens = fill(f, b);
        b->used = b->members.n + b->ends_n > 0 || tokens > 0;
        if (!b->used && f->flights_n == 0 && f->lost_n + f->came - f->next > 0) continue;
        if (!b->used) return;
        const struct seconds x = price(f, b->members.n, tokens);
        if (f->flights_n == 0 && !(tokens > 0) && f->next == f->came && f->lost_n == 0 && f->part < 0)
            repeat(f, b, x.all_s);
        fly(f, b, &x);
        const int64_t last = f->first + f->flights_n++;
        f->order[last < f->stages ? last : last - f->stages] = place;
        f->launched++;
    }
}

/* ---- and ends ---- */

static void end(struct flights *f, struct request *q)
{
    q->tpot_s = q->steps > 0 ? (f->clock_s - q->first_s) / (double)q->steps : (double)NAN;
    f->held -= (double)(q->prompt + q->steps);
    f->running--;
    f->ended++;
}

static int64_t land(struct flights *f)
{
    const int64_t place = f->order[f->first];
    struct batch *b = &f->batch[place];
    if (++f->first == f->stages) f->first = 0;
    f->flights_n--;
    f->landed++;
    f->clock_s = b->end_s;
    b->landed++;
    b->used = false;
    f->held += (double)b->members.n;
    f->decoding_made += b->members.n;
    for (int64_t i; (i = steady_members_end(&b->members, f->places, b->landed)) >= 0;) end(f, &f->request[i]);
    for (int64_t i = 0; i < b->ends_n; i++) {
        struct request *q = &f->request[b->ends[i]];
        if (!(q->first_s > 0)) {
            q->first_s = f->clock_s;
            q->ttft_s = f->clock_s - q->arrival_s;
        }
        const int64_t until = b->landed + q->steps - q->made;
        if (until <= b->landed)
            end(f, q);
        else
            steady_members_add(&b->members, f->places, b->ends[i], until);
    }
    b->ends_n = 0;
    return place;
}

/* ---- a run ---- */

/* Those that waited when so many had come. */
static int64_t waiting(const struct flights *f, int64_t came)
{
    int64_t i = came - 1;
    while (i >= 0 && f->request[i].waiting < 0) i--;
    return i < 0 ? 0 : f->request[i].waiting;
}

/* Whether arrivals outrun the service, as a simulation says it (simulate.h). */
static bool grows(const struct flights *f, int64_t to)
{
    const int64_t half = waiting(f, to / 2), last = waiting(f, to);
    return isfinite(f->s->rate_per_s) && last > to / 20 && 2 * last > 3 * half;
}

static enum err_code open(struct flights *f, struct err *e)
{
    const size_t places = (size_t)f->s->max_seqs;
    f->request = malloc((size_t)f->requests * sizeof *f->request);
    f->scratch = malloc(2 * (size_t)f->requests * sizeof *f->scratch);
    f->lost = malloc(places * sizeof *f->lost);
    f->places = calloc((size_t)f->requests, sizeof *f->places);
    f->alone = malloc((places + 1) * sizeof *f->alone);
    f->full = malloc((places + 1) * sizeof *f->full);
    bool ok = f->request && f->scratch && f->lost && f->places && f->alone && f->full;
    for (size_t n = 0; ok && n <= places; n++) f->alone[n].all_s = f->full[n].all_s = -1;
    for (int64_t i = 0; i < f->stages; i++) {
        f->batch[i].ends = malloc(places * sizeof *f->batch[i].ends);
        ok = steady_members_open(&f->batch[i].members, f->s->max_seqs) && f->batch[i].ends && ok;
    }
    return ok ? ERR_OK : err_nomem(e);
}

static void close(struct flights *f)
{
    free(f->request);
    free(f->scratch);
    free(f->alone);
    free(f->full);
    free(f->lost);
    free(f->places);
    for (int64_t i = 0; i < f->stages; i++) {
        steady_members_close(&f->batch[i].members);
        free(f->batch[i].ends);
    }
}

/* Of requests from..to; the mean. */
static enum err_code collect(struct arena *a, struct flights *f, int64_t from, int64_t to,
                             struct steady_flights_result *o, struct err *e)
{
    double first = 0, each = 0;
    o->ttft_s = arena_array(a, (size_t)(to - from) + 1, sizeof *o->ttft_s);
    o->tpot_s = arena_array(a, (size_t)(to - from) + 1, sizeof *o->tpot_s);
    if (!o->ttft_s || !o->tpot_s) return err_nomem(e);
    for (int64_t i = from; i < to; i++) {
        const struct request *q = &f->request[i];
        if (!isnan(q->ttft_s)) first += o->ttft_s[o->n++] = q->ttft_s;
        if (!isnan(q->tpot_s)) each += o->tpot_s[o->tokens_n++] = q->tpot_s;
    }
    o->ttft_mean_s = o->n ? first / (double)o->n : (double)NAN;
    o->tpot_mean_s = o->tokens_n ? each / (double)o->tokens_n : (double)NAN;
    return ERR_OK;
}

/* Requests that a replica holds, at most: of a token's time in full batches, where all have a place. */
static double holds(const struct steady_flights *s, double steps)
{
    const double full_s = s->slower * steady_times_step_s(s->through, 1, (double)s->budget_tokens - 1);
    return fmin((double)s->max_seqs, s->rate_per_s * (steps + (double)s->stages) * full_s);
}

/* Requests that come: while it fills; to look at, several fillings of it and as many as a queue forgets; and behind
 * them, so that the last that are looked at are not alone. *from, *to: those that are looked at. */
static int64_t lengths_of(const struct steady_flights *s, double steps, int64_t *from, int64_t *to)
{
    const double held = holds(s, steps), load = fmin(s->load_frac, LOAD_MOST);
    const double forgets = 1 / ((1 - load) * (1 - load));
    const double warm = 1.5 * held + WARM + WARM_MORE * forgets;
    const double seen = isfinite(s->rate_per_s) ? fmax(FILLINGS * held, SEEN + SEEN_MORE * forgets)
                                                : fmax(FILLINGS_FULL * held, SEEN_FULL);
    const int64_t n = (int64_t)fmin(warm + seen + held, SEQS_MAX);
    *from = (int64_t)fmin(warm, (double)n / 3);
    *to = n - (int64_t)fmin(held, (double)n / 4);
    return n;
}

enum err_code steady_flights_run(struct arena *a, const struct steady_flights *s, struct steady_flights_result *out,
                                 struct err *e)
{
    struct flights f = {.s = s, .part = -1, .stages = s->stages < STAGES_MAX ? s->stages : STAGES_MAX};
    double steps = 0, from_s = 0, made = 0;
    for (size_t i = 0; i < s->lengths_n; i++) steps += (s->output[i] - 1) / (double)s->lengths_n;
    int64_t from, to;
    f.requests = lengths_of(s, steps, &from, &to);
    *out = (struct steady_flights_result){.n = 0};
    enum err_code code = open(&f, e);
    if (code == ERR_OK) {
        int64_t landed = -1, began = -1; /* began: had ended when looking begins; of few that end, from the start */
        make_stream(&f);
        for (int64_t k = 0; k < BATCHES_MAX && f.ended < to; k++) {
            launch(&f, landed);
            if (f.flights_n == 0) {
                if (f.next >= f.requests) break;
                f.idle_s += f.request[f.next].arrival_s - f.clock_s;
                f.clock_s = f.request[f.next].arrival_s;
                landed = -1;
                continue;
            }
            landed = land(&f);
            if (f.came > 0) f.request[f.came - 1].waiting = f.came - f.next;
            if (began < 0 && f.ended >= from) {
                began = f.ended;
                from_s = f.clock_s;
                made = (double)f.decoding_made;
            }
        }
        if (f.ended < to) { /* out of batches: what they answered is looked at */
            to = f.ended;
            from = from < to / 3 ? from : to / 3;
        }
        out->rate_per_s = steps > 0 ? ((double)f.decoding_made - made) / steps / (f.clock_s - from_s)
                                    : ((double)f.ended - fmax((double)began, 0)) / (f.clock_s - from_s);
        out->busy_frac = 1 - f.idle_s / f.clock_s;
        out->cache = f.no_cache > f.no_place;
        out->growing = grows(&f, to);
        code = collect(a, &f, from, to, out, e);
    }
    close(&f);
    return code;
}
