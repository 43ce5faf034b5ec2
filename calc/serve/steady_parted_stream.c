/* steady_parted_stream -- the requests of a run of attention groups; of steady_parted.h. */
#include <math.h>

#include "calc/serve/steady_parted_run.h"
#include "calc/serve/steady_stream.h"

/* The part of a distribution up to each of its quantiles. */
static void parts_below(double below[STEADY_QUANTILES])
{
    double sum = 0, part;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        (void)steady_quantile(i, &part);
        below[i] = sum += part;
    }
}

/* Quantiles rise; that all are one is the usual case of what planners ask. */
static bool varies(const double *at) { return at[0] < at[STEADY_QUANTILES - 1]; }

static double quantile(const double *at, const double *below, double u)
{
    if (!varies(at)) return at[0];
    size_t low = 0, high = STEADY_QUANTILES - 1;
    while (low < high) {
        const size_t i = (low + high) / 2;
        if (u < below[i])
            high = i;
        else
            low = i + 1;
    }
    return at[low];
}

static void make_stream(struct steady_parted_run *x)
{
    const struct steady_lengths *l = x->s->lengths;
    const double computed = l->prompt_tokens / (l->prompt_tokens + l->cached_tokens);
    uint64_t times = 20011, lengths = 40009; /* any */
    double *u = x->scratch, *v = x->scratch + x->requests, at = 0, below[STEADY_QUANTILES];
    parts_below(below);
    if (!x->waits) steady_stream_gaps(&times, x->r->arrival_cv2, u, v, x->requests);
    for (int64_t i = 0; i < x->requests; i++) {
        if (!x->waits && i >= x->there) at += u[i] / x->rate_per_s;
        x->request[i] = (struct steady_parted_request){.arrival_s = at, .next = -1};
    }
    if (varies(l->prompt_at) || varies(l->output_at)) {
        steady_stream_strata(&lengths, u, x->requests);
        steady_stream_strata(&lengths, v, x->requests);
    }
    for (int64_t i = 0; i < x->requests; i++) {
        x->request[i].prompt = (int32_t)fmax(round(quantile(l->prompt_at, below, u[i]) * computed), 1);
        x->request[i].steps = (int32_t)fmax(round(quantile(l->output_at, below, v[i])) - 1, 0);
    }
}

/* Those that are there as a run begins are anywhere in their answers, of which long ones are there longer. */
static void fill(struct steady_parted_run *x)
{
    const struct steady_lengths *l = x->s->lengths;
    double below[STEADY_QUANTILES], all = 0, part;
    uint64_t lengths = 60013; /* any */
    if (x->there == 0) return;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        (void)steady_quantile(i, &part);
        below[i] = all += part * (l->output_at[i] - 1);
    }
    steady_stream_strata(&lengths, x->scratch, x->there);
    steady_stream_strata(&lengths, x->scratch + x->there, x->there);
    for (int64_t i = 0; i < x->there; i++) {
        struct steady_parted_request *w = &x->request[i];
        struct steady_parted_queue *q = &x->queue[i % x->groups];
        w->steps = (int32_t)fmax(round(quantile(l->output_at, below, all * x->scratch[i])) - 1, 1);
        const int32_t left = 1 + (int32_t)(x->scratch[x->there + i] * w->steps);
        steady_members_add(&q->members, x->places, i, left < w->steps ? left : w->steps);
        q->held += w->prompt + w->steps - left + x->half_block + l->cached_tokens;
    }
    x->next = x->there;
}

void steady_parted_stream(struct steady_parted_run *x)
{
    make_stream(x);
    fill(x);
}
