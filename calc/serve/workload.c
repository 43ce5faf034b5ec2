#include "calc/serve/workload.h"

#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"

/* ---- what the options say ---- */

/* A finite number and where it ends. */
static bool number(const char **at, double *out)
{
    char *end;
    *out = strtod(*at, &end);
    if (end == *at || !isfinite(*out)) return false;
    *at = end;
    return true;
}

/* n numbers with commas between them, and nothing but ",max=N" behind. */
static bool numbers(const char *at, double *out, size_t n, int64_t *most)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && *at++ != ',') return false;
        if (!number(&at, &out[i])) return false;
    }
    if (*at == '\0') return true;
    double m;
    if (!most || strncmp(at, ",max=", 5) != 0) return false;
    at += 5;
    if (!number(&at, &m) || *at != '\0' || !(m >= 1) || m > WORKLOAD_TOKENS_MAX || floor(m) < m) return false;
    *most = (int64_t)m;
    return true;
}

/* A number a line, of tokens. */
static enum err_code read_list(struct arena *a, const char *path, struct workload_length *out, struct err *e)
{
    char line[64];
    size_t room = 0, n = 0;
    double *list = NULL, sum = 0;
    FILE *f = fopen(path, "r");
    if (!f) return err_set(e, ERR_IO, "%.300s: cannot read it", path);
    enum err_code code = ERR_OK;
    for (size_t at = 1; code == ERR_OK && fgets(line, sizeof line, f); at++) {
        const char *p = line;
        double v;
        if (line[strspn(line, " \t\r\n")] == '\0') continue;
        if (!number(&p, &v) || p[strspn(p, " \t\r\n")] != '\0' || !(v >= 1) || v > WORKLOAD_TOKENS_MAX) {
            code = err_set(e, ERR_INPUT, "%.300s:%zu: wanted one number of tokens from 1 to %d a line", path, at,
                           WORKLOAD_TOKENS_MAX);
            break;
        }
        if (n == room) {
            double *more = arena_array(a, room ? room * 2 : 64, sizeof *more); /* not a unit */
            if (!more || n >= WORKLOAD_REQUESTS_MAX) {
                code = err_nomem(e);
                break;
            }
            if (n > 0) memcpy(more, list, n * sizeof *list);
            list = more;
            room = room ? room * 2 : 64; /* not a unit */
        }
        list[n++] = v;
        sum += v;
    }
    (void)fclose(f);
    TRY(code);
    if (n == 0) return err_set(e, ERR_INPUT, "%.300s: no lengths in it", path);
    out->list = list;
    out->list_n = n;
    out->mean = sum / (double)n;
    return ERR_OK;
}

static bool starts(const char *text, const char *with, const char **rest)
{
    const size_t n = strlen(with);
    *rest = text + n;
    return strncmp(text, with, n) == 0;
}

static bool parse_length(const char *text, struct workload_length *l)
{
    const char *rest;
    double v[2];
    if (starts(text, "lognormal:", &rest)) {
        l->kind = WORKLOAD_LOGNORMAL;
        if (!numbers(rest, v, 2, &l->most) || !(v[1] >= 0)) return false;
        l->cv = v[1];
    } else if (starts(text, "gamma:", &rest)) {
        l->kind = WORKLOAD_GAMMA_LENGTH;
        if (!numbers(rest, v, 2, &l->most) || !(v[1] > 0)) return false;
        l->cv = v[1];
    } else if (starts(text, "pareto:", &rest)) {
        l->kind = WORKLOAD_PARETO;
        if (!numbers(rest, v, 2, &l->most) || !(v[1] > 1)) return false;
        l->alpha = v[1];
    } else if (starts(text, "exponential:", &rest)) {
        l->kind = WORKLOAD_EXPONENTIAL;
        if (!numbers(rest, v, 1, &l->most)) return false;
    } else if (starts(text, "uniform:", &rest)) {
        l->kind = WORKLOAD_UNIFORM;
        const char *dots = strstr(rest, "..");
        char low[32];
        const size_t n = dots ? (size_t)(dots - rest) : sizeof low;
        if (n >= sizeof low) return false;
        memcpy(low, rest, n); /* by itself: "11." is a number too */
        low[n] = '\0';
        if (!numbers(low, &l->low, 1, NULL) || !numbers(dots + 2, &l->high, 1, &l->most)) return false;
        if (!(l->low >= 1) || !(l->high >= l->low)) return false;
        v[0] = (l->low + l->high) / 2;
    } else {
        l->kind = WORKLOAD_FIXED;
        if (!numbers(text, v, 1, NULL) || floor(v[0]) < v[0]) return false;
    }
    l->mean = v[0];
    return l->mean >= 1 && l->mean <= WORKLOAD_TOKENS_MAX;
}

enum err_code workload_length_parse(struct arena *a, const char *text, struct workload_length *out, struct err *e)
{
    struct workload_length l = {.most = WORKLOAD_TOKENS_MAX};
    const char *rest;
    char clean[64];
    if (starts(text, "empirical:", &rest)) {
        l.kind = WORKLOAD_EMPIRICAL;
        TRY(read_list(a, rest, &l, e));
    } else if (!parse_length(text, &l)) {
        return err_set(
            e, ERR_USAGE,
            "'%s' is no length: wanted 300, uniform:10..500, exponential:300, lognormal:MEAN,CV, "
            "gamma:MEAN,CV, pareto:MEAN,ALPHA (above 1) or empirical:FILE, from 1 to %d tokens, ,max=N behind it",
            text_clean(clean, sizeof clean, text, strlen(text)), WORKLOAD_TOKENS_MAX);
    }
    *out = l;
    return ERR_OK;
}

double workload_length_mean(const struct workload_length *l) { return l->mean; }

/* A number and a time, which may have a unit. */
static bool number_and_time(const char *at, double v[2])
{
    struct err unread = {0};
    if (!number(&at, &v[0]) || *at++ != ',') return false;
    const char *time = at;
    return (number(&at, &v[1]) && *at == '\0') || units_parse_time(time, &v[1], &unread) == ERR_OK;
}

enum err_code workload_arrival_parse(const char *text, struct workload_spec *spec, struct err *e)
{
    const char *rest;
    double v[2];
    bool good = true;
    char clean[64];
    if (strcmp(text, "poisson") == 0) {
        spec->arrival = WORKLOAD_POISSON;
    } else if (starts(text, "gamma:", &rest)) {
        spec->arrival = WORKLOAD_GAMMA;
        good = numbers(rest, &spec->cv, 1, NULL) && spec->cv > 0;
    } else if (starts(text, "bursty:", &rest)) {
        spec->arrival = WORKLOAD_BURSTY;
        good = number_and_time(rest, v) && v[0] >= 1 && v[1] > 0;
        spec->burst_ratio = good ? v[0] : 1;
        spec->burst_s = good ? v[1] : 1;
    } else if (starts(text, "diurnal:", &rest)) {
        spec->arrival = WORKLOAD_DIURNAL;
        good = number_and_time(rest, v) && v[0] >= 0 && v[0] <= 1 && v[1] > 0;
        spec->swing_frac = good ? v[0] : 0;
        spec->period_s = good ? v[1] : 1;
    } else {
        good = false;
    }
    if (good) return ERR_OK;
    return err_set(e, ERR_USAGE,
                   "'%s' is no process of arrivals: wanted poisson, gamma:CV, bursty:RATIO,TIME or "
                   "diurnal:SWING,TIME (swing from 0 to 1)",
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

double workload_period_s(const struct workload_spec *s)
{
    if (s->arrival == WORKLOAD_DIURNAL && s->swing_frac > 0) return s->period_s;
    return s->arrival == WORKLOAD_BURSTY && s->burst_ratio > 1 ? 2 * s->burst_s : 0;
}

double workload_sine_per_s(const struct workload_spec *s, double at_s)
{
    return s->rate_per_s * (1 + s->swing_frac * sin(2 * M_PI * at_s / s->period_s));
}

enum err_code workload_put_ahead(struct workload *w, int64_t tokens, struct err *e)
{
    for (size_t i = 0; i < w->n && tokens > 0; i++) {
        struct workload_request *x = &w->request[i];
        const int64_t all = x->prompt_tokens + tokens;
        if (all > WORKLOAD_TOKENS_MAX)
            return err_set(e, ERR_RANGE, "a prompt of %lld tokens, its source among them: up to %d", (long long)all,
                           (int)WORKLOAD_TOKENS_MAX);
        x->prompt_tokens = (int32_t)all;
    }
    return ERR_OK;
}

double workload_came_per_s(const struct workload *w)
{
    return (double)(w->first_n - 1) / w->span_s * (double)w->n / (double)w->first_n;
}

double workload_arrival_cv2(const struct workload *w)
{
    if (!w->timed || w->first_n < 3) return 1;
    const double n = (double)(w->first_n - 1), mean = w->span_s / n;
    double squares = 0;
    for (size_t i = 1; i < w->first_n; i++) {
        const double gap = w->request[i].arrival_s - w->request[i - 1].arrival_s;
        squares += (gap - mean) * (gap - mean);
    }
    return mean > 0 ? squares / n / (mean * mean) : 1;
}

/* ---- draws ---- */

static int32_t draw_length(const struct workload_length *l, gsl_rng *g)
{
    double v = l->mean;
    switch (l->kind) {
    case WORKLOAD_FIXED: break;
    case WORKLOAD_UNIFORM: v = floor(gsl_ran_flat(g, l->low, l->high + 1)); break;
    case WORKLOAD_EXPONENTIAL: v = gsl_ran_exponential(g, l->mean); break;
    case WORKLOAD_LOGNORMAL: {
        const double s2 = log1p(l->cv * l->cv);
        v = gsl_ran_lognormal(g, log(l->mean) - s2 / 2, sqrt(s2));
        break;
    }
    case WORKLOAD_GAMMA_LENGTH: v = gsl_ran_gamma(g, 1 / (l->cv * l->cv), l->mean * l->cv * l->cv); break;
    case WORKLOAD_PARETO: v = gsl_ran_pareto(g, l->alpha, l->mean * (l->alpha - 1) / l->alpha); break;
    case WORKLOAD_EMPIRICAL: v = l->list[gsl_rng_uniform_int(g, (unsigned long)l->list_n)]; break;
    }
    return (int32_t)fmin(fmax(ceil(v), 1), (double)l->most);
}

/* State of the arrival process. */
struct clock {
    double now_s, switch_s;
    bool busy;
};

static double next_arrival(const struct workload_spec *s, struct clock *c, gsl_rng *g)
{
    const double mean_s = 1 / s->rate_per_s;
    switch (s->arrival) {
    case WORKLOAD_POISSON: c->now_s += gsl_ran_exponential(g, mean_s); break;
    case WORKLOAD_GAMMA: {
        const double shape = 1 / (s->cv * s->cv);
        c->now_s += gsl_ran_gamma(g, shape, mean_s / shape);
        break;
    }
    case WORKLOAD_BURSTY: /* half of the time at each rate; what is left of a gap at a switch is drawn anew */
        for (;;) {
            const double quiet = 2 * s->rate_per_s / (1 + s->burst_ratio);
            const double gap_s = gsl_ran_exponential(g, 1 / (c->busy ? quiet * s->burst_ratio : quiet));
            if (c->now_s + gap_s < c->switch_s) {
                c->now_s += gap_s;
                break;
            }
            c->now_s = c->switch_s;
            c->busy = !c->busy;
            c->switch_s += gsl_ran_exponential(g, s->burst_s);
        }
        break;
    case WORKLOAD_DIURNAL: { /* thinned from the highest rate */
        const double most = s->rate_per_s * (1 + s->swing_frac);
        double rate;
        do {
            c->now_s += gsl_ran_exponential(g, 1 / most);
            rate = workload_sine_per_s(s, c->now_s);
        } while (gsl_rng_uniform(g) * most >= rate);
        break;
    }
    }
    return c->now_s;
}

enum { ARRIVALS, PROMPTS, OUTPUTS, GENERATORS };

static enum err_code check_spec(const struct workload_spec *s, struct err *e)
{
    if (s->requests < 1 || s->requests > WORKLOAD_REQUESTS_MAX)
        return err_set(e, ERR_RANGE, "%lld requests: from 1 to %d can be simulated", (long long)s->requests,
                       WORKLOAD_REQUESTS_MAX);
    if (!(s->rate_per_s >= 0) || !isfinite(s->rate_per_s) || (s->rate_per_s > 0 && s->rate_per_s < 1e-12))
        return err_set(e, ERR_RANGE, "a rate of %g requests a second", s->rate_per_s);
    if (s->rate_per_s > 0 && s->concurrency > 0) return err_set(e, ERR_RANGE, "arrivals are open or closed, not both");
    if (s->turns < 1 || s->samples < 1 || s->concurrency < 0 || s->shared_tokens < 0 || !(s->think_s >= 0) ||
        s->shared_tokens > WORKLOAD_TOKENS_MAX)
        return err_set(e, ERR_RANGE, "turns, samples, clients, shared tokens and thinking time cannot be below 0");
    return ERR_OK;
}

/* Requests of one conversation, the first at `at`, the k-th at at + k * stride. */
static enum err_code make_turns(const struct workload_spec *s, struct workload *w, gsl_rng *const *g, size_t at,
                                size_t stride, uint32_t stream, struct err *e)
{
    int64_t said = s->shared_tokens;
    for (int64_t k = 0; k < s->turns && at < w->n; k++, at += stride) {
        struct workload_request *r = &w->request[at];
        const int64_t prompt = said + draw_length(&s->prompt, g[PROMPTS]);
        const int32_t output = draw_length(&s->output, g[OUTPUTS]);
        if (prompt > WORKLOAD_TOKENS_MAX)
            return err_set(e, ERR_RANGE, "turn %lld of a conversation has a prompt of %lld tokens, more than %d",
                           (long long)k + 1, (long long)prompt, WORKLOAD_TOKENS_MAX);
        *r = (struct workload_request){.arrival_s = r->arrival_s,
                                       .prompt_tokens = (int32_t)prompt,
                                       .output_tokens = output,
                                       .shared_tokens = (int32_t)s->shared_tokens,
                                       .stream = stream,
                                       .next = WORKLOAD_NO_NEXT};
        if (k + 1 < s->turns && at + stride < w->n) r->next = (uint32_t)(at + stride);
        said = prompt + output;
    }
    return ERR_OK;
}

/* Conversations c, c + clients, ... are a client's, one after the other. */
static void chain_clients(struct workload *w, size_t conversations, size_t clients)
{
    for (size_t c = 0; c + clients < conversations; c++) {
        size_t last = c;
        while (w->request[last].next != WORKLOAD_NO_NEXT) last = w->request[last].next;
        w->request[last].next = (uint32_t)(c + clients);
    }
}

static enum err_code make(const struct workload_spec *s, struct workload *w, gsl_rng *const *g, struct err *e)
{
    const size_t turns = (size_t)s->turns, conversations = (w->n + turns - 1) / turns;
    struct clock c = {.busy = false};
    if (s->arrival == WORKLOAD_BURSTY) c.switch_s = gsl_ran_exponential(g[ARRIVALS], s->burst_s);
    for (size_t i = 0; i < conversations; i++) {
        if (s->go_on && i % 4096 == 0 && !s->go_on(s->closure, i, conversations)) /* now and then */
            return err_set(e, ERR_STOPPED, "interrupted while requests were drawn: nothing was simulated or written");
        if (w->timed) w->request[i].arrival_s = next_arrival(s, &c, g[ARRIVALS]);
        TRY(make_turns(s, w, g, i, conversations, (uint32_t)i + 1, e));
    }
    w->first_n = conversations;
    if (s->concurrency > 0 && (size_t)s->concurrency < conversations) {
        w->first_n = (size_t)s->concurrency;
        chain_clients(w, conversations, w->first_n);
    }
    w->span_s = w->timed ? c.now_s : 0;
    return ERR_OK;
}

enum err_code workload_make(struct arena *a, const struct workload_spec *s, struct workload *out, struct err *e)
{
    TRY(check_spec(s, e));
    gsl_rng *g[GENERATORS];
    struct workload w = {.n = (size_t)s->requests,
                         .think_s = s->think_s,
                         .samples = s->samples,
                         .open = s->concurrency == 0,
                         .timed = s->rate_per_s > 0,
                         .rate_per_s = workload_period_s(s) > 0 ? s->rate_per_s : 0};
    w.request = arena_array(a, w.n, sizeof *w.request);
    if (!w.request) return err_nomem(e);
    enum err_code code = ERR_OK;
    for (size_t i = 0; i < GENERATORS; i++) {
        g[i] = gsl_rng_alloc(gsl_rng_mt19937);
        if (!g[i]) code = err_nomem(e);
        if (g[i]) gsl_rng_set(g[i], (unsigned long)((s->seed * GENERATORS + i + 1) & UINT32_MAX));
    }
    if (code == ERR_OK) code = make(s, &w, g, e);
    for (size_t i = 0; i < GENERATORS; i++) gsl_rng_free(g[i]);
    if (code == ERR_OK) *out = w;
    return code;
}

enum err_code workload_draw_arrivals(struct workload *w, double rate_per_s, uint64_t seed, struct err *e)
{
    gsl_rng *g = gsl_rng_alloc(gsl_rng_mt19937);
    double now_s = 0;
    if (!g) return err_nomem(e);
    gsl_rng_set(g, (unsigned long)((seed * GENERATORS + ARRIVALS + 1) & UINT32_MAX));
    for (size_t i = 0; i < w->first_n; i++) w->request[i].arrival_s = now_s += gsl_ran_exponential(g, 1 / rate_per_s);
    gsl_rng_free(g);
    w->timed = true;
    w->span_s = now_s;
    return ERR_OK;
}

size_t workload_truncate(struct workload *w, int64_t longest_tokens)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        struct workload_request *x = &w->request[i];
        if ((int64_t)x->prompt_tokens + x->output_tokens <= longest_tokens) continue;
        if (x->prompt_tokens >= longest_tokens) x->prompt_tokens = (int32_t)(longest_tokens - 1);
        if (x->output_tokens > longest_tokens - x->prompt_tokens)
            x->output_tokens = (int32_t)(longest_tokens - x->prompt_tokens);
        n++;
    }
    return n;
}

/* ---- names of blocks ---- */

static uint64_t scramble(uint64_t x, uint64_t y)
{
    x += UINT64_C(0x9e3779b97f4a7c15) * (y + 1);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x ? x : 1;
}

uint64_t workload_block_hash(const struct workload *w, const struct workload_request *r, int64_t block_tokens,
                             int64_t i)
{
    const int64_t end = (i + 1) * block_tokens;
    if (r->hash_n > 0) { /* a hash of a trace is of all before it too */
        const int64_t k = (end - 1) / w->hash_tokens;
        return k < (int64_t)r->hash_n && end <= r->prompt_tokens
                   ? scramble((uint64_t)w->hash[r->hash_first + (size_t)k] + 1, (uint64_t)i)
                   : 0;
    }
    if (end <= r->shared_tokens) return scramble(0, (uint64_t)i);
    return r->stream ? scramble((uint64_t)r->stream << 32, (uint64_t)i) : 0;
}
