/* steady_times -- step times on a grid; of steady_parts.h. */
#include <math.h>
#include <string.h>

#include "calc/serve/steady_chain.h"

enum { ONES = 8, PER_OCTAVE = 4 };

static void find_knots(struct steady_times *t)
{
    for (size_t i = 0; i < STEADY_N_KNOTS; i++)
        t->n_knot[i] = i <= ONES ? (double)i : ONES * exp2((double)(i - ONES) / PER_OCTAVE);
    for (size_t i = 0; i < STEADY_X_KNOTS; i++) t->x_knot[i] = exp2((double)i / 2);
}

/* ---- what a sequence and a prompt token add ---- */

/* A prompt in pieces of c tokens behind cached ones: those of one length at three places, the last by itself. */
static void add_prompt(struct mix *to, double weight, double tokens, double cached, double c)
{
    enum { PLACES = 3 };
    const double whole = floor(tokens / c), rest = whole > 0 ? tokens - whole * c : tokens;
    const double places = fmin(whole, PLACES);
    for (double i = 0; i < places; i++) {
        const double at = whole * (i + .5) / places - .5; /* how many are before it */
        mix_prefill(to, weight * whole / places, c, cached + at * c);
    }
    if (rest > 0) mix_prefill(to, weight, rest, whole > 0 ? cached + whole * c : cached);
}

/* A sequence that decodes, its contexts over its steps: at three places of each node's answer. */
static void add_decode(struct steady_times *t, const struct steady_lengths *l)
{
    enum { PLACES = 3 };
    double steps = 0;
    for (size_t i = 0; i < l->n; i++) steps += l->node[i].weight * (l->node[i].output_tokens - 1);
    if (!(steps > 0)) return;
    for (size_t i = 0; i < l->n; i++) {
        const struct steady_node *x = &l->node[i];
        const double own = x->output_tokens - 1, prompt = x->prompt_tokens + x->cached_tokens;
        const double stride = x->stride > 0 ? x->stride : 1;
        for (int k = 0; k < PLACES && own > 0; k++) {
            const double context = prompt + t->rows - .5 + own * stride * (k + .5) / PLACES;
            mix_decode(&t->decode, x->weight * own / steps / PLACES, context);
            t->context_square += x->weight * own / steps / PLACES * context * context;
        }
        t->context_tokens += x->weight * own / steps * (prompt + t->rows - .5 + own * stride / 2);
    }
    /* answers within a node differ, so that those in a step at a time are longer than their mean */
    double square = 0;
    for (size_t i = 0; i < l->n; i++) square += l->node[i].weight * pow(l->node[i].output_tokens - 1, 2);
    if (l->steps_square > square) {
        const double stride = l->drafted.inverse > 0 ? 1 / l->drafted.inverse : 1;
        const double more = stride * (l->steps_square - square) / (2 * steps);
        mix_decode(&t->decode, 1, t->context_tokens + more);
        mix_decode(&t->decode, -1, t->context_tokens);
        t->context_tokens += more;
    }
}

static void find_groups(struct steady_times *t, const struct steady_lengths *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct steady_node *x = &l->node[i];
        struct steady_group *g = t->groups > 0 ? &t->group[t->groups - 1] : NULL;
        if (!g || (x->prompt_tokens > g->tokens && t->groups < STEADY_GROUPS_MAX)) {
            t->group[t->groups++] = (struct steady_group){x->prompt_tokens, x->weight, x->weight * x->cached_tokens};
        } else {
            g->weight += x->weight;
            g->cached += x->weight * x->cached_tokens;
        }
    }
    for (size_t i = 0; i < t->groups; i++) t->group[i].cached /= t->group[i].weight;
}

double steady_times_piece(const struct steady_setup *s)
{
    const double budget = (double)s->budget_tokens, groups = s->groups > 1 ? (double)s->groups : 1;
    if (s->policy != SIMULATE_CHUNKED) return (double)INFINITY;
    return fmax(1, budget / groups);
}

/* Whether prompts of up to `longest` tokens are in the same pieces. */
static bool same_pieces(const struct steady_times *a, const struct steady_times *b, double longest)
{
    const double x = fmin(a->piece_tokens, longest), y = fmin(b->piece_tokens, longest);
    return a->pieces == b->pieces && a->beside == b->beside && !(x < y) && !(x > y);
}

/* Room for times, or where others have the same: steps that decode have nothing of a budget, and prompts in the same
 * pieces neither. */
static enum err_code open_tables(struct arena *a, const struct steady_times *like, struct steady_times *t,
                                 struct err *e)
{
    const double longest = t->groups > 0 ? t->group[t->groups - 1].tokens : 0;
    const bool whole = like && same_pieces(like, t, longest);
    t->decode_s = like ? like->decode_s : arena_array(a, STEADY_N_KNOTS, sizeof *t->decode_s);
    if (!t->decode_s) return err_nomem(e);
    for (size_t i = 0; i < STEADY_N_KNOTS && !like; i++) t->decode_s[i] = (double)NAN;
    for (size_t q = t->parts > 1 ? 0 : STEADY_SHARES - 1; q < STEADY_SHARES; q++) {
        t->prompt_s[q] = whole ? like->prompt_s[q] : arena_array(a, STEADY_N_KNOTS, sizeof *t->prompt_s[q]);
        if (!t->prompt_s[q]) return err_nomem(e);
        for (size_t i = 0; i < STEADY_N_KNOTS && !whole; i++)
            for (size_t k = 0; k < STEADY_X_KNOTS; k++) t->prompt_s[q][i][k] = (double)NAN;
    }
    t->rows_s = NULL;
    if (!(t->server || t->calibrated) || t->parts > 1 || t->shared > 1 || t->slowest) return ERR_OK;
    t->rows_s = whole ? like->rows_s : arena_array(a, STEADY_X_KNOTS, sizeof *t->rows_s);
    if (!t->rows_s) return err_nomem(e);
    for (size_t k = 0; k < STEADY_X_KNOTS && !whole; k++) {
        t->rows_s[k].known = 0;
        for (size_t i = 0; i < STEADY_ROW_PLACES; i++) t->rows_s[k].place_s[i] = (double)NAN;
    }
    return ERR_OK;
}

enum err_code steady_times_open(struct arena *a, const struct steady_setup *s, struct steady_times **out, struct err *e)
{
    struct steady_times *t = arena_alloc(a, sizeof *t);
    if (!t) return err_nomem(e);
    memset(t, 0, sizeof *t);
    t->plan = s->plan;
    t->calibrated = s->calibrated;
    t->server = s->server;
    t->overlapped = s->overlapped;
    t->overhead_s = s->overhead_s;
    t->rows = 1;
    t->parts = (double)steady_parts_of(s);
    t->shared = s->groups > 1 && !(t->parts > 1) ? (double)s->groups : 1;
    t->largest = steady_largest_of(t->parts);
    for (size_t i = 0; i < STEADY_SHARES; i++)
        for (size_t q = 0; q < STEADY_X_KNOTS; q++) t->deeper[i][q] = (double)NAN;
    t->long_tokens = s->lengths->prompt_square / s->lengths->prompt_tokens;
    t->slowest = s->slowest;
    if (!(t->stage_s = arena_array(a, (size_t)mix_stages(s->plan), sizeof *t->stage_s))) return err_nomem(e);
    if (s->draft.of) {
        struct simulate_draft *d = arena_alloc(a, sizeof *d);
        if (!d) return err_nomem(e);
        *d = s->draft;
        t->draft = d;
        t->rows = (double)speculate_judged(d->of, d->gamma);
    }
    t->pieces = t->beside = s->policy == SIMULATE_CHUNKED;
    t->budget_tokens = (double)(s->budget_tokens / steady_parts_of(s));
    t->piece_tokens = steady_times_piece(s);
    TRY(mix_open(a, s->plan, &t->decode, e));
    TRY(mix_open(a, s->plan, &t->prompt, e));
    TRY(mix_open(a, s->plan, &t->scratch, e));
    find_knots(t);
    find_groups(t, s->lengths);
    add_decode(t, s->lengths);
    double tokens = 0;
    for (size_t i = 0; i < t->groups; i++) tokens += t->group[i].weight * t->group[i].tokens;
    for (size_t i = 0; i < t->groups; i++)
        add_prompt(&t->prompt, t->group[i].weight / tokens, t->group[i].tokens, t->group[i].cached, t->piece_tokens);
    TRY(open_tables(a, s->times, t, e));
    if (!(t->chain = arena_array(a, 2, sizeof *t->chain))) return err_nomem(e);
    memset(t->chain, 0, 2 * sizeof *t->chain);
    t->arena = a;
    if ((t->parts > 1 || t->rows_s) && s->policy == SIMULATE_FCFS) TRY(steady_times_whole(t, s->times, e));
    TRY(steady_chain_room(t, 1, e));
    *out = t;
    return ERR_OK;
}

double steady_group_at(const struct steady_times *t, size_t i, double place)
{
    const double own = t->group[i].tokens;
    const double low = i > 0 ? t->group[i - 1].tokens : own, high = i + 1 < t->groups ? t->group[i + 1].tokens : own;
    return place < .5 ? own - (own - low) * (.5 - place) : own + (high - own) * (place - .5);
}

/* ---- times ---- */

/* Of n alike, what the busiest of so many groups has on average: ceil(N/groups) of a number N around n, one at least.
 */
static double busiest_of(double n, double groups) { return fmin(n, fmax(1, n / groups + (groups - 1) / (2 * groups))); }

/* Of as many prompts, each in one of them by chance, as who comes next is sent where an answer has ended: of Poisson
 * numbers around n/groups the largest, one at least. */
static double busiest_prompts(double n, double groups)
{
    enum { TAIL = 500 }; /* not a unit: beyond which exp(-mean) is no number */
    const double mean = n / groups;
    if (mean > TAIL) return fmin(n, mean + sqrt(2 * mean * log(groups)));
    double term = exp(-mean), below = term, most = 0;
    for (double m = 1;; m++) {
        const double more = 1 - pow(below, groups);
        most += more;
        if (!(more >= 1e-6)) break;
        term *= mean / m;
        below = fmin(below + term, 1);
    }
    return fmin(n, fmax(1, most));
}

/* Prompts are of one group each, whatever their pieces. */
static void spread(struct steady_times *t, double n, double x)
{
    const double all = mix_tokens(&t->scratch), prompts = x / t->long_tokens;
    if (n > 0) mix_scale(&t->scratch, MIXED_DECODE, busiest_of(n, t->shared) / n);
    if (x > 0) mix_scale(&t->scratch, MIXED_PREFILL, busiest_prompts(prompts, t->shared) / prompts);
    mix_others(&t->scratch, all - mix_tokens(&t->scratch));
}

/* Of n that decode in all groups, and x prompt tokens of the largest beside `share` of as many in each of the others.
 */
static void part(struct steady_times *t, double n, double x, double share, double deeper)
{
    const double rows = n > 0 ? mix_tokens(&t->scratch) - x : 0, own = n > 0 ? busiest_of(n, t->parts) / n : 0;
    if (n > 0) {
        mix_scale(&t->scratch, MIXED_DECODE, own);
        const double away = sqrt(fmax(t->context_square - t->context_tokens * t->context_tokens, 0) / (own * n));
        mix_decode(&t->scratch, own * n, t->context_tokens + away * (n < t->parts ? steady_largest_of(n) : t->largest));
        mix_decode(&t->scratch, -own * n, t->context_tokens);
    }
    if (x > 0) {
        const double from = t->long_tokens / 2;
        mix_prefill(&t->scratch, 1, x, from + deeper);
        mix_prefill(&t->scratch, -1, x, from);
    }
    mix_others(&t->scratch, rows * (1 - own) + share * (t->parts - 1) * x);
}

static double slowest_s(struct steady_times *t)
{
    double most = 0;
    mix_eval_stages(&t->scratch, t->stage_s);
    for (int64_t i = 0; i < mix_stages(t->plan); i++) most = fmax(most, t->stage_s[i]);
    return most;
}

/* deeper: steady_deeper of as many as have a prompt, where there are several groups. */
static double alone_s(struct steady_times *t, double n, double x, double share, double deeper)
{
    if (!(n > 0) && !(x > 0)) return 0;
    mix_clear(&t->scratch);
    if (n > 0) mix_add(&t->scratch, &t->decode, n);
    if (x > 0) mix_add(&t->scratch, &t->prompt, x);
    if (t->parts > 1)
        part(t, n, x, share, deeper);
    else if (t->shared > 1)
        spread(t, n, x);
    const double beside_s = t->overhead_s + steady_draft_s(t, n, x);
    if (t->slowest) return slowest_s(t) + beside_s;
    return engine_any_s(t->server, t->overlapped, t->calibrated, &t->scratch) + beside_s;
}

double steady_times_alone_s(struct steady_times *t, double n, double x) { return alone_s(t, n, x, 0, 0); }

/* The number of the grid below n, and what part of the way to the next n is. */
static size_t place_of(const struct steady_times *t, double n, double *part)
{
    size_t i = (size_t)n;
    if (n >= ONES) { /* exponents count octaves from 8 */
        i = ONES + PER_OCTAVE * (size_t)(steady_exponent(n) - 4);
        if (i > STEADY_N_KNOTS - 2) i = STEADY_N_KNOTS - 2;
        while (i < STEADY_N_KNOTS - 2 && t->n_knot[i + 1] <= n) i++;
    }
    const double low = t->n_knot[i];
    *part = fmin(fmax((n - low) / (t->n_knot[i + 1] - low), 0), 1);
    return i;
}

static double decode_at(struct steady_times *t, size_t i)
{
    if (isnan(t->decode_s[i])) t->decode_s[i] = alone_s(t, t->n_knot[i], 0, 0, 0);
    return t->decode_s[i];
}

const double STEADY_SHARE[STEADY_SHARES] = {0, .25, 1};

size_t steady_times_knot(const struct steady_times *t, double x)
{
    size_t k = 0;
    if (!(x > 1)) return 0;
    k = 2 * (size_t)(steady_exponent(x) - 1);
    if (k > STEADY_X_KNOTS - 2) k = STEADY_X_KNOTS - 2;
    while (k < STEADY_X_KNOTS - 2 && t->x_knot[k + 1] <= x) k++;
    return k;
}

/* The same whatever decodes beside. */
static double deeper_at(struct steady_times *t, size_t share, size_t q)
{
    double *const deeper = &t->deeper[share][q];
    if (t->parts > 1 && isnan(*deeper))
        *deeper = steady_deeper(t, t->x_knot[q], 1 + STEADY_SHARE[share] * (t->parts - 1));
    return *deeper;
}

/* What x prompt tokens add to a step of the i-th number of sequences. */
static double prompt_at(struct steady_times *t, size_t share, size_t i, double x)
{
    double *const s = t->prompt_s[share][i];
    if (t->rows_s) return steady_times_beyond_s(t, s, t->n_knot[i], x);
    const size_t k = steady_times_knot(t, x);
    for (size_t q = k; q < k + 2; q++)
        if (isnan(s[q]))
            s[q] = alone_s(t, t->n_knot[i], t->x_knot[q], STEADY_SHARE[share], deeper_at(t, share, q)) -
                   (i > 0 ? decode_at(t, i) : 0);
    const double low = t->x_knot[k];
    return s[k] + (s[k + 1] - s[k]) * (x - low) / (t->x_knot[k + 1] - low);
}

/* Prompts are looked at beside powers of two of sequences alone: what they add changes slowly. */
static double prompt_s(struct steady_times *t, size_t share, double n, double x)
{
    if (!(n > 0) || !t->beside) return prompt_at(t, share, 0, x);
    double none;
    const double low = steady_power_below(n > 1 ? n : 1), part = fmax(n, 1) / low - 1;
    const double first = prompt_at(t, share, place_of(t, low, &none), x);
    if (!(part > 0)) return first;
    return first + part * (prompt_at(t, share, place_of(t, 2 * low, &none), x) - first);
}

double steady_times_decode_s(struct steady_times *t, double n)
{
    double part;
    if (!(n > 0)) return 0;
    const size_t i = place_of(t, fmax(n * t->parts, 1), &part);
    const double low_s = decode_at(t, i);
    return part > 0 ? low_s + part * (decode_at(t, i + 1) - low_s) : low_s;
}

double steady_times_share_s(const double at_s[STEADY_SHARES], double share)
{
    size_t k = 0;
    while (k + 2 < STEADY_SHARES && STEADY_SHARE[k + 1] <= share) k++;
    return at_s[k] + (at_s[k + 1] - at_s[k]) * (share - STEADY_SHARE[k]) / (STEADY_SHARE[k + 1] - STEADY_SHARE[k]);
}

void steady_times_shares_s(struct steady_times *t, double n, double x, double out[STEADY_SHARES])
{
    const double decode_s = steady_times_decode_s(t, n);
    for (size_t q = 0; q < STEADY_SHARES; q++) {
        const double more_s = x > 0 ? prompt_s(t, q, n * t->parts, x) : 0;
        out[q] = t->beside ? decode_s + more_s : fmax(decode_s, more_s);
    }
}

/* A step is as long as its largest group: x of this one or the most that another has, beside all that the others have.
 */
static double part_s(struct steady_times *t, double n, double decode_s, double x, double most, double sum)
{
    const double largest = fmax(x, most);
    if (!(largest > 0)) return decode_s;
    const double share = fmin(fmax(sum - fmax(most - x, 0), 0) / (largest * (t->parts - 1)), 1);
    size_t k = 0;
    while (k + 2 < STEADY_SHARES && STEADY_SHARE[k + 1] <= share) k++;
    const double at = (share - STEADY_SHARE[k]) / (STEADY_SHARE[k + 1] - STEADY_SHARE[k]),
                 low_s = prompt_s(t, k, n, largest);
    const double more_s = at > 0 ? low_s + at * (prompt_s(t, k + 1, n, largest) - low_s) : low_s;
    return t->beside ? decode_s + more_s : fmax(decode_s, more_s);
}

static double parts_s(struct steady_times *t, double n, double x, double *square_s2)
{
    const struct steady_others *o = t->others;
    const double decode_s = steady_times_decode_s(t, n), all = n * t->parts;
    double mean_s = 0;
    if (!o) {
        mean_s = part_s(t, all, decode_s, x, 0, x * (t->parts - 1));
        *square_s2 = mean_s * mean_s;
        return mean_s;
    }
    *square_s2 = 0;
    for (int i = 0; i < o->n; i++) {
        const double step_s = part_s(t, all, decode_s, x, o->most[i], o->sum[i]);
        mean_s += o->part[i] * step_s;
        *square_s2 += o->part[i] * step_s * step_s;
    }
    return mean_s;
}

double steady_times_step_s(struct steady_times *t, double n, double x)
{
    double square_s2;
    if (t->parts > 1) return parts_s(t, n, x, &square_s2);
    if (t->rows_s && x > 0) {
        const bool beside = t->beside && n > 0;
        const double rows_s = steady_times_rows_s(t, (beside ? t->rows * n : 0) + x);
        return beside ? rows_s + prompt_s(t, STEADY_SHARES - 1, n, x) : rows_s;
    }
    const double decode_s = t->beside || !(x > 0) ? steady_times_decode_s(t, n) : 0;
    return x > 0 ? decode_s + prompt_s(t, STEADY_SHARES - 1, n, x) : decode_s;
}

double steady_times_square_s2(struct steady_times *t, double n, double x)
{
    double square_s2;
    if (t->parts > 1) {
        (void)parts_s(t, n, x, &square_s2);
        return square_s2;
    }
    const double step_s = steady_times_step_s(t, n, x);
    return step_s * step_s;
}
