/* steady_chain_come -- prompts that come in a time, of a stream or of every so many of one, in tokens and the parts of
 * all; of steady_chain.h. */
#include <math.h>

#include "calc/serve/steady_chain.h"

/* Points of a normal distribution with its first nine moments (Gauss and Hermite). */
static const double NORMAL[] = {-2.856970, -1.355626, 0, 1.355626, 2.856970};
static const double NORMAL_PART[] = {.01125741, .2220759, 8. / 15, .2220759, .01125741};
enum { NORMALS = sizeof NORMAL / sizeof NORMAL[0] };

/* ---- what comes in a time ---- */

/* Several prompts, `weight` of all: a lognormal sum of that mean and square. */
static void put_several(struct steady_chain_sum *s, double weight, double at, double square)
{
    const double sd = sqrt(log1p(fmax(square / (at * at) - 1, 0)));
    double mean = 0;
    for (int i = 0; i < NORMALS; i++) mean += NORMAL_PART[i] * (s->tokens[s->n + i] = exp(sd * NORMAL[i]));
    for (int i = 0; i < NORMALS; i++, s->n++) {
        s->tokens[s->n] *= at / mean;
        s->weight[s->n] = weight * NORMAL_PART[i];
    }
}

/* Of a number: none and one in these parts, and its mean and mean square, apart from bursts. */
static struct steady_chain_sum come_of(const struct steady_chain *c, double none, double one, double count,
                                       double number_square)
{
    struct steady_chain_sum s = {.n = 1, .tokens = {0}, .weight = {none}};
    const double more = 1 - none - one;
    const bool several = more > 1e-5;
    const double ones = several ? one : 1 - s.weight[0];
    if (!(ones > 0) && !several) return s;
    for (int i = 0; i < c->ones; i++) {
        s.tokens[s.n] = c->one_tokens[i];
        s.weight[s.n++] = ones * c->one_part[i];
    }
    if (!several) return s;
    const double prompt = c->prompt_tokens, all = count * prompt;
    const double square = count * c->prompt_square + (c->arrival_cv2 - 1) * all * prompt +
                          (number_square - count) * prompt * prompt - one * c->prompt_square;
    put_several(&s, more, (all - one * prompt) / more, square / more);
    return s;
}

struct steady_chain_sum steady_chain_come(const struct steady_chain *c, double count)
{
    const double none = exp(-count);
    return come_of(c, none, count * none, count, count + count * count);
}

struct steady_chain_sum steady_chain_come_number(const struct steady_chain *c, const struct steady_chain_number *x)
{
    return come_of(c, x->none, x->one, x->mean, x->square);
}

/* ---- every so many of a stream ---- */

int steady_chain_phases(const struct steady_setup *s)
{
    if (steady_routed(s) < 2 || steady_parts_of(s) > 1) return 1;
    return s->route == SIMULATE_ROUND_ROBIN && s->replicas > 2 ? STEADY_CHAIN_PHASES : 2;
}

enum err_code steady_chain_room(struct steady_times *t, int phases, struct err *e)
{
    if (phases <= t->phases) return ERR_OK;
    const size_t states = STEADY_CHAIN_PLACES * (size_t)phases;
    double *folded = arena_array(t->arena, states * states, sizeof *folded);
    for (size_t i = 0; i < 2; i++) {
        t->chain[i].to = arena_array(t->arena, states * states, sizeof *t->chain[i].to);
        t->chain[i].folded = folded;
        if (!t->chain[i].to || !folded) return err_nomem(e);
    }
    t->phases = phases;
    return ERR_OK;
}

struct steady_chain_ticks steady_chain_tick(int phases, double ticks)
{
    enum { MOST = 8 * STEADY_CHAIN_PHASES };
    struct steady_chain_ticks x = {0};
    double p[MOST], rest = 1, rest_mean = ticks, rest_square = ticks + ticks * ticks;
    p[0] = exp(-ticks);
    for (int i = 1; i < MOST; i++) p[i] = p[i - 1] * ticks / i;
    for (int i = 0; i < MOST; i++) {
        rest -= p[i];
        rest_mean -= i * p[i];
        rest_square -= (double)i * i * p[i];
    }
    const bool far = rest > 1e-9; /* beyond: any phase, and numbers as of a line */
    for (int j = 0; j < phases; j++) {
        for (int i = 0; i < MOST; i++) {
            const int k = (j + i) / phases;
            x.of[k < 2 ? k : 2][j][(j + i) % phases] += p[i];
            if (k < 2) continue;
            x.mean[j] += k * p[i];
            x.square[j] += (double)k * k * p[i];
        }
        if (!far) continue;
        const double at = j - (phases - 1) / 2.; /* of the floor, on average */
        for (int q = 0; q < phases; q++) x.of[2][j][q] += rest / phases;
        x.mean[j] += (rest_mean + at * rest) / phases;
        x.square[j] += (rest_square + 2 * at * rest_mean + at * at * rest) / (phases * phases);
    }
    for (int j = 0; j < phases; j++) {
        double some = 0;
        for (int q = 0; q < phases; q++) some += x.of[2][j][q];
        x.mean[j] /= fmax(some, 1e-300);   /* not a unit */
        x.square[j] /= fmax(some, 1e-300); /* not a unit */
    }
    return x;
}

/* Of t ticks, every so many of which is one: from a phase that is anywhere, or from the last one's; floor((t +
 * phase)/every). */
static struct steady_chain_number number_in_turn(int every, double count, bool before)
{
    enum { FAR = 400 }; /* not a unit */
    const double t = every * count, away = 8 * sqrt(t) + 8;
    struct steady_chain_number x = {0};
    if (t > FAR) { /* phases are as good as uniform */
        x.mean = before ? count - (every - 1.) / (2 * every) : count;
        x.square =
            x.mean * x.mean + count / every + ((double)every * every - 1) / ((before ? 12. : 6.) * every * every);
        return x;
    }
    double p = exp(-t);
    for (int i = 0; i <= t + away; p *= t / ++i) {
        const double low = floor((double)i / every), more = before ? 0 : (double)i / every - low;
        x.none += low < 1 ? p * (1 - more) : 0;
        x.one += low < 1 ? p * more : low < 2 ? p * (1 - more) : 0;
        x.mean += p * (low + more);
        x.square += p * (low * low + more * (2 * low + 1));
    }
    return x;
}

/* Of the t ticks of two for each that comes the phase j of the last one stays: k come of t - j ticks to t - j + 1. */
struct steady_chain_number steady_chain_number_of(int every, double count)
{
    const double none = exp(-count);
    if (every < 2) return (struct steady_chain_number){none, count * none, count, count + count * count};
    if (every > 2) return number_in_turn(every, count, false);
    const double t = 2 * count, p = exp(-t);
    return (struct steady_chain_number){p * (1 + t / 2), p * (t / 2 + t * t / 2 + t * t * t / 12), count,
                                        count * count + count / 2 - expm1(-4 * count) / 8};
}

struct steady_chain_number steady_chain_number_before(int every, double count)
{
    if (every < 2) return steady_chain_number_of(1, count);
    if (every > 2) return number_in_turn(every, count, true);
    const double t = 2 * count, p = exp(-t), mean = count + expm1(-4 * count) / 4;
    return (struct steady_chain_number){p * (1 + t), p * (t * t / 2 + t * t * t / 6), mean,
                                        mean * mean + mean / 2 - expm1(-4 * mean) / 8};
}

void steady_chain_sum_of(double mean, double square, struct steady_chain_sum *s)
{
    s->n = 0;
    put_several(s, 1, mean, square);
}

void steady_chain_several(const struct steady_chain *c, double mean, double square, struct steady_chain_sum *s)
{
    const double prompt = c->prompt_tokens, bursts = (c->arrival_cv2 - 1) * mean;
    s->n = 0;
    put_several(s, 1, mean * prompt, mean * (c->prompt_square - prompt * prompt) + (square + bursts) * prompt * prompt);
}

/* ---- lengths ---- */

int steady_chain_prompts(const struct steady_lengths *l, double most, int room, double *tokens, double *part)
{
    const double computed = l->prompt_tokens / (l->prompt_tokens + l->cached_tokens);
    double sum = 0, weight = 0, below = 0;
    int n = 0;
    for (size_t i = 0; i < STEADY_QUANTILES; i++) {
        double one;
        (void)steady_quantile(i, &one);
        const double value = fmax(l->prompt_at[i] * computed, 1);
        sum += one * value;
        weight += one;
        below += one;
        if (weight < fmin(most, (1 - below) * 1.3) * (1 - 1e-9) && i + 1 < STEADY_QUANTILES) continue;
        if (n > 0 && (n == room || !(sum / weight > tokens[n - 1] * (1 + 1e-9)))) {
            tokens[n - 1] = (tokens[n - 1] * part[n - 1] + sum) / (part[n - 1] + weight);
            part[n - 1] += weight;
        } else {
            tokens[n] = sum / weight;
            part[n++] = weight;
        }
        sum = weight = 0;
    }
    return n;
}
