/* planner_found -- what an endless prefix cache finds of requests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/serve/planner.h"

/* Names of blocks that were seen: open addressing, 0 is free. */
struct names {
    uint64_t *at;
    size_t n, room; /* room: a power of two */
};

static uint64_t *slot(const struct names *s, uint64_t name)
{
    size_t i = (size_t)((name * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (s->room - 1);
    while (s->at[i] != 0 && s->at[i] != name) i = (i + 1) & (s->room - 1);
    return &s->at[i];
}

static bool add(struct names *s, uint64_t name)
{
    if (2 * s->n >= s->room) {
        struct names more = {.room = s->room ? 2 * s->room : 1 << 12};
        more.at = calloc(more.room, sizeof *more.at);
        if (!more.at) return false;
        for (size_t i = 0; i < s->room; i++)
            if (s->at[i] != 0) *slot(&more, s->at[i]) = s->at[i];
        free(s->at);
        s->at = more.at;
        s->room = more.room;
    }
    uint64_t *at = slot(s, name);
    s->n += *at == 0;
    *at = name;
    return true;
}

/* Tokens of the prompt that are in front of the first block nobody had; then all of its blocks are known. */
static bool find(struct names *s, const struct workload *w, const struct workload_request *q, int64_t block,
                 int64_t *found)
{
    const int64_t all = ((int64_t)q->prompt_tokens + q->output_tokens - 1) / block;
    int64_t n = 0;
    for (bool known = s->room > 0; known && (n + 1) * block < q->prompt_tokens;) {
        const uint64_t name = workload_block_hash(w, q, block, n);
        known = name != 0 && *slot(s, name) == name;
        n += known;
    }
    *found = n * block;
    for (int64_t i = 0; i < all; i++) {
        const uint64_t name = workload_block_hash(w, q, block, i);
        if (name != 0 && !add(s, name)) return false;
    }
    return true;
}

enum err_code planner_traffic_cached(struct arena *a, const struct workload *w, double rate_per_s, int64_t block_tokens,
                                     struct planner_traffic *out, struct err *e)
{
    struct workload left = *w;
    struct names seen = {.n = 0};
    struct planner_traffic whole;
    double found = 0, all = 0;
    bool room = true;
    TRY(planner_traffic_of(a, w, rate_per_s, &whole, e));
    left.request = arena_array(a, w->n, sizeof *left.request);
    if (!left.request) return err_nomem(e);
    memcpy(left.request, w->request, w->n * sizeof *left.request);
    for (size_t i = 0; i < w->n && room; i++) {
        int64_t n;
        room = find(&seen, w, &w->request[i], block_tokens, &n);
        found += (double)n;
        all += (double)w->request[i].prompt_tokens;
        left.request[i].prompt_tokens -= (int32_t)n;
    }
    free(seen.at);
    if (!room) return err_nomem(e);
    TRY(planner_traffic_of(a, &left, rate_per_s, out, e));
    out->context_tokens = whole.context_tokens;
    out->longest_tokens = whole.longest_tokens;
    out->asked_tokens = whole.prompt_tokens;
    out->found_frac = found / all;
    return steady_lengths_of_work(a, w, fmin(out->found_frac, .999), &out->lengths, e);
}
