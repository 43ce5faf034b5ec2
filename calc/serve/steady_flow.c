/* steady_flow -- prompts between or beside sequences that decode; of steady_parts.h. */
#include <math.h>

#include "calc/serve/steady_parts.h"

/* Steps that a batch of `tokens` takes whose largest prompt has `own`, and prompt tokens of the last. Whole prompts
 * leave part of a step empty, as the next one does not fit. */
static double steps_of(const struct steady_times *t, double tokens, double own, double room, double fit_tokens,
                       double prompts, double *last)
{
    if (t->pieces) {
        const double steps = fmax(ceil(tokens / room - 1e-9), 1);
        *last = tokens - (steps - 1) * room;
        return steps;
    }
    if (tokens <= room || tokens <= own) {
        *last = tokens;
        return 1;
    }
    const double whole = own >= room ? 1 : 0, left = tokens - whole * own;
    const double steps = fmin(fmax(ceil(left / fit_tokens), 1), fmax(prompts - whole, 1e-3));
    *last = left / steps;
    return whole + steps;
}

/* The other prompts of a batch of f->requests: none, or one of two sums with their mean and variance when there are
 * some. Their number is Poisson, as of what comes during a step. */
enum { OTHERS_MAX = 5 };
struct others {
    int n;
    double tokens[OTHERS_MAX], weight[OTHERS_MAX];
};

static struct others others_of(double requests, double prompt, double square, bool fine)
{
    const double more = fmax(requests - 1, 0), mean = more * prompt;
    /* requests = L / (1 - exp(-L)) */
    double L = 2 * more;
    for (int i = 0; i < 4 && more > 1e-6; i++) L = requests * -expm1(-L);
    const double none = L > 1e-6 ? L / expm1(L) : 1 - more, some = fmax(1 - none, 1e-12);
    const double at = mean / some, variance = (more * square + mean * mean) / some - at * at;
    const double sd = sqrt(fmax(variance, 0)), away = fmin(sd, .9 * at);
    if (!fine) return (struct others){3, {0, at - away, at + away}, {none, some / 2, some / 2}};
    const double w = some / 4, far = fmin(1.36 * sd, .9 * at), near = .38 * far / 1.36; /* quarters of a normal one */
    return (struct others){5, {0, at - far, at - near, at + near, at + far}, {none, w, w, w, w}};
}

/* Mean of the prompt tokens to compute, and of their square. */
static void moments_of(const struct steady_times *t, double *prompt, double *square)
{
    *prompt = *square = 0;
    for (size_t i = 0; i < t->groups; i++) {
        *prompt += t->group[i].weight * t->group[i].tokens;
        *square += t->group[i].weight * t->group[i].tokens * t->group[i].tokens;
    }
}

/* Steps of a batch of so many requests; its seconds. */
static double look_at_batch(struct steady_times *t, struct steady_flow *f, double prompt, double square, bool fine,
                            struct steady_steps *seen, double *none)
{
    const double fit_tokens = t->pieces ? f->room_tokens : steady_flow_fit(t) * prompt;
    const struct others o = others_of(f->requests, prompt, square, fine);
    double seconds = 0;
    double all = 0;
    f->steps = f->last_s = f->own_s = *none = 0;
    *seen = (struct steady_steps){.weight = {0}};
    for (size_t i = 0; i < t->groups; i++) {
        const struct steady_group *g = &t->group[i];
        for (int k = 0; k < o.n; k++) {
            const double w = g->weight * o.weight[k];
            double last;
            const double prompts = 1 + o.tokens[k] / prompt;
            if (!(o.weight[k] > 1e-6)) continue;
            const double steps =
                steps_of(t, g->tokens + o.tokens[k], g->tokens, f->room_tokens, fit_tokens, prompts, &last);
            const double last_s = steady_times_step_s(t, f->n, last);
            f->steps += w * steps;
            f->last_s += w * last_s;
            f->own_s += w * prompts * last_s;
            all += w * prompts;
            *none += w * exp(-f->rate_per_s * last_s);
            const bool own = !t->pieces && g->tokens >= f->room_tokens && steps > 1;
            const double before = t->pieces ? f->room_tokens : own ? g->tokens : last, befores = own ? 1 : steps - 1;
            const double before_s = t->pieces ? f->full_s : own ? steady_times_step_s(t, f->n, before) : last_s;
            seconds += w * (befores * before_s + (steps - befores) * last_s);
            if (!(t->parts > 1)) continue;
            if (befores > 0) steady_steps_add(seen, before, w * befores);
            steady_steps_add(seen, last, w * (steps - befores));
        }
    }
    f->own_s /= all;
    return seconds;
}

/* The first did not fit into the step before, so that it is of a length that a token is of; behind it come as many as a
 * renewal process has in what is left, (spread - 2)/2 more than it over a prompt. */
double steady_flow_fit(const struct steady_times *t)
{
    double prompt, square, fit = 1;
    moments_of(t, &prompt, &square);
    const double spread = square / (prompt * prompt);
    if (spread < 1 + 1e-6) return fmax(floor(t->budget_tokens / prompt + 1e-9), 1);
    for (size_t i = 0; i < t->groups; i++)
        fit += t->group[i].weight * t->group[i].tokens / prompt *
               fmax((t->budget_tokens - t->group[i].tokens) / prompt + (spread - 2) / 2, 0);
    return fit;
}

/* Sequences beside prompts: where these are computed between decode steps, those of the other attention groups. */
static double beside_of(const struct steady_times *t, double n) { return t->parts > 1 ? n : 0; }

/* Whole prompts that do not fit into the next step: the same, where a step takes `fit` prompts at most. With one it is
 * the wait behind the prompt in progress: of M/G/1, with vacations to decode (Fuhrmann and Cooper). */
static void find_waiting(struct steady_times *t, struct steady_flow *f, double prompt, double square, double cv2)
{
    const double fit = steady_flow_fit(t);
    const double full_s = steady_times_step_s(t, beside_of(t, f->n), fit * prompt),
                 rho = fmin(f->rate_per_s * full_s / fit, .99);
    const double tail = prompt * (square / (prompt * prompt) + cv2 - 1) / (2 * (1 - rho));
    f->full_s = full_s;
    f->left_frac = rho * rho * exp(-(fit - 1) * prompt / tail);
    f->left_steps = f->left_frac * tail / (fit * prompt);
}

/* Prompt tokens that a step's room leaves over, by the work of an M/G/1 queue: what it has is a geometric number of
 * residual prompts, so that more than the room is there with the chance of one that is as long, or of an exponential
 * tail; what is over then has the mean of either. Pollaczek-Khinchine. */
static void find_leftover(struct steady_times *t, struct steady_flow *f, double prompt, double square, double cv2)
{
    if (!t->pieces) {
        find_waiting(t, f, prompt, square, cv2);
        return;
    }
    const double room = f->room_tokens, rho = fmin(f->rate_per_s * f->full_s * prompt / room, .99);
    double one = 0, two = 0;
    for (size_t i = 0; i < t->groups; i++) {
        const double over = fmax(t->group[i].tokens - room, 0);
        one += t->group[i].weight * over;
        two += t->group[i].weight * over * over;
    }
    const double tail = prompt * (square / (prompt * prompt) + cv2 - 1) / (2 * (1 - rho));
    const double p1 = rho * (1 - rho) * one / prompt, p2 = rho * rho * exp(-room / tail);
    f->left_frac = p1 + p2;
    f->left_steps = ((p1 > 0 ? p1 * two / (2 * one) : 0) + p2 * tail) / room;
}

static double step_of(struct steady_times *t, const struct steady_flow *f, double tokens)
{
    return steady_times_step_s(t, t->parts > 1 ? f->n : 0, tokens);
}

/* What one prompt more adds to a step of as many as a step has. */
static double another_s(struct steady_times *t, const struct steady_flow *f, double prompt)
{
    const double step = fmax(f->requests / f->steps, 1), tokens = step * prompt;
    const double more = fmin(tokens + prompt, fmax(f->room_tokens, tokens)), one_s = step_of(t, f, tokens);
    if (!(more > tokens * 1.01)) return one_s / step;
    return fmin((step_of(t, f, more) - one_s) / (more - tokens) * prompt, one_s / step);
}

/* Whole prompts between decode steps: what a busy period has, begun by those that came in one. A step of k prompts
 * takes alpha + beta*k, and as many come in it as a Poisson number has of that mean; none, and the period ends, with a
 * chance such that the part of time in prefill is what it is. The moments of its prompts, X, are quadratic in k: E[X|k]
 * = A + B k,  E[X^2|k] = a0 + a1 k + a2 k^2 */
static double between_of(struct steady_times *t, struct steady_flow *f, double prompt, double spread)
{
    const double rate = f->rate_per_s, step = fmax(f->requests / f->steps, 1);
    const double one_s = step_of(t, f, step * prompt), beta_s = another_s(t, f, prompt);
    const double r = fmin(rate * beta_s, .97), u = rate * fmax(one_s - beta_s * step, 0), g = rate * f->decode_s;
    const double begins = -expm1(-g), rho = fmin(f->busy_frac, .99);
    const double B = 1 / (1 - r), x = g / (1 - rho), A = fmax(x - B * g, 0) / begins;
    const double ends = A > 0 && u > 0 ? fmin(B * u / A, 1) : 1;
    const double a1 = B * (2 * ((1 - ends) * A + B * u) + B * B * r * (1 + 2 * u + r * (spread - 1)));
    const double a0 = (a1 * u + B * B * (u + u * u)) / ends;
    const double square = a0 * begins + a1 * g + B * B * (g + g * g);
    f->mates = fmax(square / x - x - 1, 0);
    f->between_s2 = f->each_s * f->each_s * fmax(square - x * x + x * (spread - 1), 0);
    /* Prompts after one's own, before the first step that decodes, against those before each later one. */
    const double At_s = fmax(rho * f->decode_s / (1 - rho) - beta_s * B * g, 0) / begins;
    /* others that come while one waits for the step in progress are in its own step, where they fit */
    const double found_s = (rho * f->own_s * spread + (1 - rho) * f->decode_s) / 2;
    const double alone = exp(-2 * (steady_flow_fit(t) - 1));
    const double own = rate * f->own_s, left = rate * (f->left_steps * f->full_s + alone * found_s);
    f->period_s = At_s + beta_s * B;
    return At_s * -expm1(-own) + beta_s * B * (own + left) - rho * f->decode_s / (1 - rho);
}

/* Who begins to decode finds more prompts waiting than whoever decodes does at the end of a step: all that came during
 * the long step that computed its own. In m steps it sees m*token_s and, once, the difference. */
static double extra_of(struct steady_times *t, struct steady_flow *f, double batch_s, double prompt, double spread)
{
    const double mixed = f->batches_per_s * f->steps, plain = f->n > 0 ? (1 - f->busy_frac) / f->decode_s : 0;
    const double all = mixed + plain, rate = f->rate_per_s;
    const double each_s = (batch_s - (t->beside ? f->steps * f->decode_s : 0)) / f->requests;
    /* Lengths of steps vary: with what came in the one before, and that with its length. */
    const double rho = fmin(rate * each_s, .99), adds_s = t->beside ? each_s : another_s(t, f, prompt);
    const double follow = fmin(rate * adds_s, .99);
    const double part = f->n > 0 ? 1 : f->busy_frac, step_s = part / all; /* the rest is idle */
    const double variance = rate * step_s * adds_s * adds_s * spread / (1 - follow * follow);
    const double square = (plain * f->decode_s * f->decode_s + (mixed - f->batches_per_s) * f->full_s * f->full_s +
                           f->batches_per_s * f->last_s * f->last_s);
    f->seen_s = fmin(fmax(square, all * (step_s * step_s + variance)), fmax(f->full_s * part, square));
    f->last_cv2 = fmax(f->seen_s - square, 0) / (f->batches_per_s * f->last_s * f->last_s);
    f->each_s = each_s;
    /* Prompts computed in a row, as of a busy period: the more of them begin to decode at a time. */
    const double come = fmin(rate * each_s, .9);
    f->mates = (come + come * come * (spread - 1)) / ((1 - come) * (1 - come)) + 1 / (1 - come) - 1;
    if (!(f->n > 0)) return 0;
    if (!t->beside) return between_of(t, f, prompt, spread);
    double alone = 1; /* steps of a prompt by itself */
    for (size_t i = 0; i < t->groups && t->pieces; i++)
        alone += t->group[i].weight * fmax(ceil(t->group[i].tokens / f->room_tokens - 1e-9) - 1, 0);
    const double first = each_s * rate * (f->own_s + (alone - 1 + f->left_steps) * f->full_s);
    double last = each_s * rate * f->decode_s;
    if (t->beside)
        last = each_s * rate / all + f->batches_per_s / all * (f->full_s - f->decode_s) * f->steps * (f->steps - 1) / 2;
    return (first - last) / fmax(1 - rho, .01);
}

/* What other attention groups have in a step of this one, so much of whose steps compute prompts. */
static void see_others(struct steady_times *t, const struct steady_steps *seen, double frac, struct steady_flow *f)
{
    struct steady_law law;
    steady_steps_law(seen, fmin(frac, 1), &law);
    steady_others_of(&law, t->parts, &f->others);
}

double steady_flow_replaced_s(struct steady_times *t, double n, double ends, double bunch, double single_frac)
{
    enum { ROUNDS = 6 };
    double prompt, square, none, cycle_s = 0;
    struct steady_steps seen;
    moments_of(t, &prompt, &square);
    const double some = -expm1(-ends / bunch);
    struct steady_flow f = {.n = n, .requests = ends / some, .room_tokens = t->budget_tokens};
    steady_others_none(&f.others);
    for (int k = 0; k < (t->parts > 1 ? ROUNDS : 1); k++) {
        if (t->parts > 1) t->others = &f.others;
        f.full_s = steady_times_step_s(t, n, f.room_tokens);
        cycle_s = steady_times_step_s(t, n, 0) + some * look_at_batch(t, &f, prompt, square, true, &seen, &none);
        /* answers of one token are done with their prompts: others follow on them before the next decode step */
        for (double more = ends * single_frac; more > 1e-3 && !t->beside; more *= single_frac)
            cycle_s += -expm1(-more) * step_of(t, &f, more / -expm1(-more) * prompt);
        if (t->parts > 1) see_others(t, &seen, some * f.steps / (1 + some * f.steps), &f);
    }
    t->others = NULL;
    return cycle_s;
}

void steady_flow_solve(struct steady_times *t, double rate_per_s, double cv2, double n, struct steady_flow *f)
{
    enum { ROUNDS = 40 };
    double prompt, square, none = 1;
    struct steady_steps seen;
    moments_of(t, &prompt, &square);
    *f = (struct steady_flow){.rate_per_s = rate_per_s, .n = n, .requests = 1, .stable = true};
    f->room_tokens = fmax(t->beside ? t->budget_tokens - t->rows * n : t->budget_tokens, 1);
    steady_others_none(&f->others);
    t->others = t->parts > 1 ? &f->others : NULL;
    double batch_s = 0, decode_s = 0;
    for (int k = 0; k < ROUNDS; k++) {
        if (k == 0 || t->parts > 1) {
            f->decode_s = steady_times_step_s(t, n, 0);
            f->full_s = steady_times_step_s(t, n, f->room_tokens);
        }
        const double starts = n > 0 ? -expm1(-rate_per_s * f->decode_s) / f->decode_s : rate_per_s;
        batch_s = look_at_batch(t, f, prompt, square, false, &seen, &none);
        f->batches_per_s = starts / (none + starts * batch_s);
        f->busy_frac = fmin(f->batches_per_s * batch_s, 1);
        const double requests = fmax(rate_per_s / f->batches_per_s, 1), before = f->requests;
        f->requests = k < 6 ? requests : before + .5 * (requests - before);
        const bool settled = !(t->parts > 1) || fabs(f->decode_s - decode_s) <= 3e-3 * decode_s;
        if (settled && fabs(f->requests - before) < 3e-3 * before) break;
        decode_s = f->decode_s;
        if (k + 1 == ROUNDS || f->requests > 1e6) f->stable = false; /* not a unit */
        if (!(t->parts > 1)) continue;
        const double mixed = f->batches_per_s * f->steps, plain = n > 0 ? (1 - f->busy_frac) / f->decode_s : 0;
        see_others(t, &seen, n > 0 ? mixed / (mixed + plain) : f->busy_frac, f);
    }
    find_leftover(t, f, prompt, square, cv2);
    f->token_s = (double)INFINITY;
    if (n > 0) {
        const double decode_steps = (1 - f->busy_frac) / f->decode_s;
        f->token_s = 1 / (decode_steps + (t->beside ? f->batches_per_s * f->steps : 0));
        f->varies_s2 = t->parts > 1 ? steady_times_square_s2(t, n, 0) - f->decode_s * f->decode_s : 0;
        if (!isfinite(f->token_s)) f->stable = false;
    }
    if (f->stable || !(n > 0)) f->extra_s = extra_of(t, f, batch_s, prompt, square / (prompt * prompt));
    t->others = NULL;
}
