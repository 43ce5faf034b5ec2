#include "calc/serve/steady_flights.h"

#include <math.h>
#include <stdlib.h>

#include "calc/serve/steady_parts.h"

enum {
    SEQS_MAX = 1 << 15,   /* requests of a run */
    BATCHES_MAX = 200000, /* of a run */
    STAGES_MAX = 64,      /* times of more are of so many; not a unit */
};

struct request {
    double arrival_s, first_s, ttft_s;
    int64_t prompt, steps; /* of an answer, behind its first token */
    int64_t left;          /* tokens of its prompt that are in no batch yet */
    int64_t until;         /* of its batch, the landing with which it ends */
    int64_t made;          /* tokens before it lost its cache */
    double tpot_s;
};

/* Those that are in one batch after another. */
struct batch {
    int32_t *seq; /* [max_seqs] those that decode, and behind them those whose prompts end with it */
    int64_t n, ends_n;
    int64_t landed, next; /* how often; when the first ends */
    double end_s;
    bool used;
};

struct flights {
    const struct steady_flights *s;
    struct request *request;
    int64_t requests, next, came; /* next: to enter */
    int64_t part, part_in;        /* one whose prompt is in part in batches, the last of them; -1 */
    int64_t launched, landed;     /* batches */
    int32_t *lost;                /* those without their caches, [max_seqs] */
    int64_t lost_n;
    struct batch batch[STAGES_MAX];
    int64_t order[STAGES_MAX], first, flights_n, stages;
    double free_s[STAGES_MAX], clock_s, idle_s;
    int64_t running, decoding_made;
    double held; /* tokens */
    int64_t ended, no_place, no_cache;
};

/* ---- the stream ---- */

/* Sebastiano Vigna's splitmix64, as a number in (0, 1). */
static double draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((double)((z ^ (z >> 31)) >> 11) + .5) * 0x1p-53;
}

/* A gap of mean 1: hyperexponential of two phases of equal parts in the mean, or a constant and an exponential one. */
static double gap(uint64_t *state, double cv2)
{
    const double x = -log(draw(state)), which = draw(state);
    if (cv2 <= 1) return 1 + sqrt(fmax(cv2, 0)) * (x - 1);
    const double p = .5 * (1 + sqrt((cv2 - 1) / (cv2 + 1)));
    return x / (2 * (which < p ? p : 1 - p));
}

static void make_stream(struct flights *f)
{
    const struct steady_flights *s = f->s;
    uint64_t times = 20011, lengths = 40009; /* any */
    double at = 0;
    for (int64_t i = 0; i < f->requests; i++) {
        struct request *q = &f->request[i];
        const double n = (double)s->lengths_n;
        at += gap(&times, s->arrival_cv2);
        *q = (struct request){.arrival_s = isfinite(s->rate_per_s) ? at / s->rate_per_s : 0,
                              .prompt = (int64_t)s->prompt[(size_t)(draw(&lengths) * n)],
                              .steps = (int64_t)s->output[(size_t)(draw(&lengths) * n)] - 1,
                              .ttft_s = (double)NAN,
                              .tpot_s = (double)NAN};
        q->left = q->prompt;
    }
}

/* ---- a batch begins ---- */

static double used(const struct flights *f) { return f->held + (double)f->running * (f->s->block_tokens - 1) / 2; }

/* The last that entered of those that would decode leaves. */
static void lose(struct flights *f, struct batch *b)
{
    const int32_t i = b->seq[--b->n];
    struct request *q = &f->request[i];
    q->made = q->steps - (q->until - b->landed);
    q->left = q->prompt + q->made;
    f->held -= (double)q->left;
    f->running--;
    f->lost[f->lost_n++] = i;
}

/* So does one whose prompt is in part computed, unless a batch under way has a piece of it: it entered last. */
static bool lose_part(struct flights *f)
{
    if (f->part < 0 || f->part_in > f->landed) return false;
    struct request *q = &f->request[f->part];
    f->held -= (double)(q->prompt + q->made - q->left);
    q->left = q->prompt + q->made;
    f->running--;
    f->lost[f->lost_n++] = (int32_t)f->part;
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
    if (q->left == 0) b->seq[b->n + b->ends_n++] = (int32_t)i;
    return (double)piece;
}

/* Pieces of prompts beside those that decode: of the one that has begun, of those that lost their caches, of who came.
 */
static double fill(struct flights *f, struct batch *b)
{
    const struct steady_flights *s = f->s;
    const double room = fmax((double)s->budget_tokens - (double)b->n, 0);
    const int64_t had = f->lost_n;
    double left = room;
    while (b->n > 0 && used(f) + (double)b->n > s->cache_tokens)
        if (!lose_part(f)) lose(f, b);
    const double spare = (double)b->n;
    if (f->part >= 0 && left >= 1) {
        const double piece = fmin(left, (double)f->request[f->part].left);
        if (used(f) + piece + spare > s->cache_tokens && (f->flights_n > 0 || b->n > 0)) {
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

static void fly(struct flights *f, struct batch *b, double n, double tokens)
{
    const double all_s = f->s->slower * steady_times_step_s(f->s->through, n, tokens);
    const double last_s = fmin(all_s, f->s->slower * steady_times_step_s(f->s->slowest, n, tokens));
    const double each_s = (all_s - last_s) / (double)(f->stages - 1);
    double at_s = f->clock_s;
    for (int64_t i = 0; i < f->stages; i++)
        at_s = f->free_s[i] = fmax(at_s, f->free_s[i]) + (i == f->stages - 1 ? last_s : each_s);
    b->end_s = at_s;
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
        if (landed < 0) b->n = b->ends_n = b->landed = b->next = 0;
        landed = -1;
        const double tokens = fill(f, b);
        b->used = b->n + b->ends_n > 0 || tokens > 0;
        if (!b->used && f->flights_n == 0 && f->lost_n + f->came - f->next > 0) continue;
        if (!b->used) return;
        fly(f, b, (double)b->n, tokens);
        f->order[(f->first + f->flights_n++) % f->stages] = place;
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
    f->first = (f->first + 1) % f->stages;
    f->flights_n--;
    f->landed++;
    f->clock_s = b->end_s;
    b->landed++;
    b->used = false;
    f->held += (double)b->n;
    f->decoding_made += b->n;
    int64_t kept = b->n;
    if (b->n > 0 && b->landed >= b->next) {
        kept = 0;
        b->next = INT64_MAX;
        for (int64_t i = 0; i < b->n; i++) {
            struct request *q = &f->request[b->seq[i]];
            if (q->until > b->landed) {
                if (q->until < b->next) b->next = q->until;
                b->seq[kept++] = b->seq[i];
            } else {
                end(f, q);
            }
        }
    }
    if (kept == 0) b->next = INT64_MAX;
    for (int64_t i = 0; i < b->ends_n; i++) {
        const int32_t at = b->seq[b->n + i];
        struct request *q = &f->request[at];
        if (!(q->first_s > 0)) {
            q->first_s = f->clock_s;
            q->ttft_s = f->clock_s - q->arrival_s;
        }
        q->until = b->landed + q->steps - q->made;
        if (q->until <= b->landed) {
            end(f, q);
            continue;
        }
        if (q->until < b->next) b->next = q->until;
        b->seq[kept++] = at;
    }
    b->n = kept;
    b->ends_n = 0;
    return place;
}

/* ---- a run ---- */

static enum err_code open(struct flights *f, struct err *e)
{
    const size_t places = (size_t)f->s->max_seqs;
    f->request = malloc((size_t)f->requests * sizeof *f->request);
    f->lost = malloc(places * sizeof *f->lost);
    bool ok = f->request && f->lost;
    for (int64_t i = 0; i < f->stages; i++) {
        f->batch[i].seq = malloc(places * sizeof *f->batch[i].seq);
        ok = ok && f->batch[i].seq;
    }
    return ok ? ERR_OK : err_nomem(e);
}

static void close(struct flights *f)
{
    free(f->request);
    free(f->lost);
    for (int64_t i = 0; i < f->stages; i++) free(f->batch[i].seq);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Requests from..to in order of their times; the mean. */
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
    qsort(o->ttft_s, o->n, sizeof *o->ttft_s, by_value);
    qsort(o->tpot_s, o->tokens_n, sizeof *o->tpot_s, by_value);
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

enum err_code steady_flights_run(struct arena *a, const struct steady_flights *s, struct steady_flights_result *out,
                                 struct err *e)
{
    struct flights f = {.s = s, .part = -1, .stages = s->stages < STAGES_MAX ? s->stages : STAGES_MAX};
    double steps = 0, from_s = 0, made = 0;
    for (size_t i = 0; i < s->lengths_n; i++) steps += (s->output[i] - 1) / (double)s->lengths_n;
    const double held = holds(s, steps), warm = 1.5 * held + 64, seen = fmax(1.5 * held, 400); /* not a unit */
    f.requests = (int64_t)fmin(warm + seen + held, SEQS_MAX);
    const int64_t from = (int64_t)fmin(warm, (double)f.requests / 3),
                  to = f.requests - (int64_t)fmin(held, (double)f.requests / 4);
    *out = (struct steady_flights_result){.n = 0};
    enum err_code code = open(&f, e);
    if (code == ERR_OK) {
        int64_t landed = -1, began = -1;
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
            if (began < 0 && f.ended >= from) {
                began = f.ended;
                from_s = f.clock_s;
                made = (double)f.decoding_made;
            }
        }
        out->rate_per_s = steps > 0 ? ((double)f.decoding_made - made) / steps / (f.clock_s - from_s)
                                    : (double)(f.ended - began) / (f.clock_s - from_s);
        out->busy_frac = 1 - f.idle_s / f.clock_s;
        out->cache = f.no_cache > f.no_place;
        code = collect(a, &f, from, to, out, e);
    }
    close(&f);
    return code;
}
