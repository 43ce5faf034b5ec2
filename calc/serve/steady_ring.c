/* steady_ring -- clients who ask again at once, answers of one length beside prompts of any, in pieces: who began
 * in one step ends in one, but for those whose prompts that step has no room for. A zero-range process on a ring of as
 * many places as a turn has steps, from all at one place; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

enum {
    PLACES_MAX = 4096,    /* not a unit */
    ROUNDS = 100,         /* where nobody says how long a run is */
    REQUESTS_MAX = 50000, /* looked at */
};

/* A prompt to compute, whose client asked at asked_s. */
struct asked {
    double left_tokens, asked_s;
};

/* An answer that is done before a step. */
struct answer {
    double before_step, first_s;
};

/* First in, first out, of PLACES_MAX each. */
struct ring {
    struct asked asked[PLACES_MAX];
    struct answer answer[PLACES_MAX];
    double waiting_s[PLACES_MAX]; /* when those without a place asked */
    size_t asked_from, asked_n, answer_from, answer_n, waiting_from;
    uint64_t seed;
    double below[STEADY_QUANTILES], tokens[STEADY_QUANTILES]; /* of prompts: the part up to each */
};

static double drawn_tokens(struct ring *x)
{
    x->seed += 0x9E3779B97F4A7C15u; /* splitmix64: Steele, Lea, Flood, OOPSLA 2014 */
    uint64_t z = x->seed;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    const double u = (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.; /* 2^53 */
    size_t low = 0, high = STEADY_QUANTILES - 1;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (x->below[middle] > u)
            high = middle;
        else
            low = middle + 1;
    }
    return x->tokens[low];
}

static void open_ring(struct ring *x, const struct steady_lengths *l)
{
    const double computed = l->prompt_tokens / (l->prompt_tokens + l->cached_tokens);
    double below = 0;
    x->asked_from = x->asked_n = x->answer_from = x->answer_n = x->waiting_from = 0;
    x->seed = 1;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double part;
        (void)steady_quantile(i, &part);
        x->below[i] = below += part;
        x->tokens[i] = fmax(l->prompt_at[i] * computed, 1);
    }
}

static void ask(struct ring *x, double now_s)
{
    x->asked[(x->asked_from + x->asked_n++) % PLACES_MAX] = (struct asked){drawn_tokens(x), now_s};
}

/* Answers that are done: their clients ask again, and the places are those of who waits for longest. */
static void end_answers(struct ring *x, const struct steady_lengths *l, double step, double now_s, size_t waiting,
                        double weight, struct steady_histogram *tpot)
{
    while (x->answer_n > 0 && x->answer[x->answer_from].before_step <= step) {
        double asked_s = now_s;
        steady_histogram_add(tpot, (now_s - x->answer[x->answer_from].first_s) / l->steps, weight);
        x->answer_from = (x->answer_from + 1) % PLACES_MAX;
        x->answer_n--;
        if (waiting > 0) {
            asked_s = x->waiting_s[x->waiting_from];
            x->waiting_s[x->waiting_from] = now_s;
            x->waiting_from = (x->waiting_from + 1) % waiting;
        }
        ask(x, asked_s);
    }
}

/* Tokens of prompts in a step with room for so many, first come, first served; *ended: how many end in it. */
static double take_pieces(struct ring *x, double room, size_t *ended)
{
    double tokens = 0;
    for (*ended = 0; *ended < x->asked_n && tokens < room; (*ended)++) {
        struct asked *q = &x->asked[(x->asked_from + *ended) % PLACES_MAX];
        const double piece = fmin(q->left_tokens, room - tokens);
        tokens += piece;
        q->left_tokens -= piece;
        if (q->left_tokens > 0) break;
    }
    return tokens;
}

bool steady_ring_solve(struct steady_replica *r, double clients, double n, struct steady_histogram *ttft,
                       struct steady_histogram *tpot)
{
    struct steady_times *t = r->times;
    const struct steady_lengths *l = r->s->lengths;
    struct ring x;
    const double asked = r->s->requests > 0 ? r->s->requests / (double)r->s->replicas : ROUNDS * clients;
    const double all = fmin(asked, REQUESTS_MAX), from = floor(all / 4), to = floor(3 * all / 4);
    double step = 0, now_s = 0, done = 0, began_s = 0, first_s = 0, firsts = 0, with = 0, busy_s = 0, decode_s;
    if (!(n >= 1 && n < PLACES_MAX) || !(clients - n < PLACES_MAX) || !(all >= 16 * clients)) return false;
    const size_t places = (size_t)(n + .5), waiting = (size_t)(fmax(clients - n, 0) + .5);
    decode_s = steady_times_step_s(t, n, 0);
    open_ring(&x, l);
    for (size_t i = 0; i < waiting; i++) x.waiting_s[i] = 0;
    for (size_t i = 0; i < places; i++) ask(&x, 0);
    while (done < to) {
        const double weight = done >= from ? 1 : 0;
        if (x.asked_n == 0) {
            now_s += (x.answer[x.answer_from].before_step - step) * decode_s;
            step = x.answer[x.answer_from].before_step;
        }
        end_answers(&x, l, step, now_s, waiting, weight, tpot);
        const double decoding = (double)x.answer_n;
        size_t ended;
        const double tokens = take_pieces(&x, fmax(t->budget_tokens - t->rows * decoding, 1), &ended),
                     took_s = steady_times_step_s(t, decoding, tokens);
        now_s += took_s;
        step++;
        for (size_t i = 0; i < ended; i++) {
            const double own_s = now_s - x.asked[x.asked_from].asked_s;
            x.asked_from = (x.asked_from + 1) % PLACES_MAX;
            x.asked_n--;
            x.answer[(x.answer_from + x.answer_n++) % PLACES_MAX] = (struct answer){step + l->steps, now_s};
            steady_histogram_add(ttft, own_s, weight);
            first_s += weight * own_s;
            firsts += weight;
        }
        done += (double)ended;
        with += weight;
        busy_s += weight * took_s;
        if (!(weight > 0)) began_s = now_s;
    }
    if (!(firsts > 0) || !(now_s > began_s) || !(tpot->total > 0)) return false;
    const double span_s = now_s - began_s;
    r->rate_per_s = firsts / span_s;
    r->token_s = tpot->sum / tpot->total;
    /* Little: who waits has no place */
    r->wait_s = fmax(clients - n, 0) / r->rate_per_s;
    r->rate_per_s = clients / (first_s / firsts + l->steps * r->token_s);
    r->flow = (struct steady_flow){.rate_per_s = r->rate_per_s,
                                   .n = n,
                                   .decode_s = decode_s,
                                   .batches_per_s = with / span_s,
                                   .steps = 1,
                                   .busy_frac = fmin(busy_s / span_s, 1)};
    return true;
}
