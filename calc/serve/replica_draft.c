/* replica_draft -- drafts of the sequences that decode: what is kept of them, and what they take; of replica.h. */
#include <math.h>

#include "calc/serve/replica_parts.h"

int64_t replica_more(const struct replica *r, const struct replica_seq *q, int64_t k)
{
    if (!r->setup->draft.of) return k;
    const int64_t more = q->stored + r->judged - q->kv.tokens;
    return more > 0 ? more : 0;
}

/* In [0, 1), of a key: splitmix64's finalizer. */
static double uniform(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((x ^ (x >> 31)) >> 11) / 9007199254740992.; /* 2^53 */
}

static uint64_t key_of(uint64_t x, uint64_t y) { return (x ^ y) * UINT64_C(0xd6e8feb86659fd93) + (x << 17 | x >> 47); }

/* Drafted tokens of q that are kept: up to the first that is refused, or whose siblings all are; and what comes out. */
static int64_t keep(const struct simulate_draft *d, const struct replica_seq *q, int64_t *made)
{
    double u[SPECULATE_DEPTH_MAX];
    const uint64_t who =
        key_of(key_of(key_of(d->seed + 1, q->request + UINT64_C(1)), (uint64_t)q->sample), (uint64_t)q->generated + 1);
    for (int64_t n = 0; n < d->gamma; n++) u[n] = uniform(key_of(who, (uint64_t)n));
    return speculate_keep(d->of, d->gamma, u, made);
}

int64_t replica_draw_one(struct replica *r, struct replica_seq *q)
{
    int64_t made;
    const int64_t kept = keep(&r->setup->draft, q, &made), left = q->wanted - q->generated;
    q->gain = (int32_t)(made < left ? made : left);
    r->sums.judged++;
    r->sums.kept_tokens += (double)kept;
    r->sums.judged_tokens += (double)made;
    return q->gain;
}

int64_t replica_draw(struct replica *r)
{
    int64_t all = 0;
    for (int64_t i = 0; i < r->running_n; i++)
        if (r->running[i]->decoding) all += replica_draw_one(r, r->running[i]);
    return all;
}

double replica_draft_s(struct replica *r, int64_t decoding, double stored, int64_t pieces, int64_t tokens)
{
    const struct simulate_draft *d = &r->setup->draft;
    double took_s = 0;
    if (!d->of) return 0;
    if (decoding > 0 && (pieces == 0 || r->setup->policy == SIMULATE_CHUNKED)) {
        const double B = (double)decoding;
        took_s = speculate_draft_s(d->of, d->gamma, B, floor(stored / B + 1));
    }
    if (pieces > 0 && d->prompts) { /* all pieces together, each as long as the mean */
        const double B = (double)pieces, T = ceil((double)tokens / B), S = T, one = 1;
        double prefill_s = 0, *column[STEP_VALUES_N] = {0};
        column[STEP_prefill_s] = &prefill_s;
        step_eval(d->of->draft, 1, &B, &T, &S, &one, column);
        took_s += prefill_s;
    }
    if (r->setup->slower > 0) took_s *= r->setup->slower;
    r->sums.draft_s += took_s;
    return took_s;
}
