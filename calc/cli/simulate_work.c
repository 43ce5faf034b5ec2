/* simulate_work -- the requests of `ridge simulate`: a trace, or lengths and arrivals that are drawn. */
#include <string.h>

#include "calc/base/json.h"
#include "calc/cli/interrupt.h"
#include "calc/cli/progress.h"
#include "calc/cli/simulate.h"
#include "calc/cli/trace_read.h"

static enum err_code only_made(const struct option_values *v, struct err *e)
{
    static const char *const MADE[] = {"concurrency", "prompt", "generate", "arrivals",      "turns",
                                       "think",       "seed",   "workload", "shared-prefix", "exact-rate"};
    for (size_t i = 0; i < sizeof MADE / sizeof MADE[0]; i++)
        if (option_given(v, MADE[i]))
            return err_set(e, ERR_USAGE,
                           "--trace says when requests come and how long they are; --%s cannot stand "
                           "beside it",
                           MADE[i]);
    return ERR_OK;
}

/* The same requests, closer together or further apart, so that so many come in a second. */
static enum err_code scale_trace(struct arena *a, const struct option_values *v, struct workload *w, struct err *e)
{
    double rate_per_s = 0;
    TRY(option_real(v, "rate", 1e-6, 1e6, &rate_per_s, e)); /* not a unit */
    if (!w->timed || !(w->span_s > 0) || w->first_n < 2) {  /* of no times of its own: the order of lengths stays */
        w->note = arena_printf(a, "%s%sthe trace has no times: Poisson arrivals at --rate", w->note ? w->note : "",
                               w->note ? "; " : "");
        return w->note ? workload_draw_arrivals(w, rate_per_s, 1, e) : err_nomem(e);
    }
    const double factor = (double)(w->first_n - 1) / w->span_s / rate_per_s;
    for (size_t i = 0; i < w->n; i++) w->request[i].arrival_s *= factor;
    w->span_s *= factor;
    return ERR_OK;
}

/* Lengths, arrivals and rate of a workload; what the options say goes before it. */
struct made {
    const char *prompt, *generate, *arrivals;
    double rate_per_s;
    const char *file; /* of what no option says; NULL: there is none */
};

static enum err_code text_or_tokens(struct arena *a, const struct json *j, const char *key, const char *tokens,
                                    const char **out, struct err *e)
{
    struct json item;
    int64_t n;
    if (json_get(j, key, &item)) return json_str(&item, out, e);
    if (!json_get(j, tokens, &item)) return err_set(e, ERR_INPUT, "%s: %s is missing", j->file, tokens);
    TRY(json_int(&item, 1, WORKLOAD_TOKENS_MAX, &n, e));
    *out = arena_printf(a, "%lld", (long long)n);
    return *out ? ERR_OK : err_nomem(e);
}

static enum err_code open_made(struct arena *a, const struct option_values *v, struct made *out, struct err *e)
{
    const char *name = option_get(v, "workload");
    const double least = 1e-6, most = 1e6; /* not a unit */
    struct json j, item;
    *out = (struct made){option_get(v, "prompt"), option_get(v, "generate"), option_get(v, "arrivals"), 0, NULL};
    if (!name) return ERR_OK;
    TRY(estimate_workload_open(a, name, &j, e));
    out->file = j.file;
    if (!option_given(v, "prompt")) TRY(text_or_tokens(a, &j, "prompt", "prompt_tokens", &out->prompt, e));
    if (!option_given(v, "generate")) TRY(text_or_tokens(a, &j, "generate", "generate_tokens", &out->generate, e));
    if (option_given(v, "concurrency")) return ERR_OK;
    if (json_get(&j, "rate_per_s", &item)) {
        TRY(json_num(&item, &out->rate_per_s, e));
        if (!(out->rate_per_s >= least && out->rate_per_s <= most))
            return json_want(&item, "requests a second from 1e-06 to 1e+06", e);
    }
    if (!option_given(v, "arrivals") && json_get(&j, "arrivals", &item)) TRY(json_str(&item, &out->arrivals, e));
    return ERR_OK;
}

/* What the error of a part is about: an option, or a member of the workload's file, which then is a bad file. */
static enum err_code of_part(const struct option_values *v, const struct made *m, const char *name, struct err *e)
{
    if (!m->file || option_given(v, name)) return err_prepend(e, "--%s: ", name);
    if (e->code == ERR_USAGE) e->code = ERR_INPUT;
    return err_prepend(e, "%s: %s: ", m->file, name);
}

static bool show_drawn(void *closure, size_t done, size_t all)
{
    progress_show(closure, done, all);
    return !interrupt_pending();
}

static enum err_code draw(struct arena *a, struct simulate_case *c, struct err *e)
{
    struct interrupt held;
    struct progress bar;
    c->spec.go_on = show_drawn;
    c->spec.closure = &bar;
    interrupt_hold(&held, true);
    progress_start(&bar, "requests drawn");
    const enum err_code code = workload_make(a, &c->spec, &c->work, e);
    progress_end(&bar);
    const enum err_code came = interrupt_release(&held);
    c->spec.go_on = NULL;
    c->spec.closure = NULL;
    return interrupt_relay(code, came, e);
}

static enum err_code open_trace(struct arena *a, const struct option_values *v, struct simulate_case *c, struct err *e)
{
    int64_t most = 0;
    TRY(only_made(v, e));
    if (option_given(v, "requests")) TRY(option_count(v, "requests", 1, WORKLOAD_REQUESTS_MAX, &most, e));
    TRY(trace_read(a, c->trace, &c->work, e));
    if (most > 0 && (size_t)most < c->work.n) {
        c->work.n = c->work.first_n = (size_t)most;
        c->work.span_s = c->work.request[c->work.n - 1].arrival_s;
    }
    return option_given(v, "rate") ? scale_trace(a, v, &c->work, e) : ERR_OK;
}

/* "A..B", from one on. */
static enum err_code open_judged(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    const char *text = option_get(v, "judge"), *dots = text ? strstr(text, "..") : NULL;
    char first[24] = "";
    int64_t from = 0, to = 0;
    if (!text) return ERR_OK;
    if (dots && dots - text < (int)sizeof first) memcpy(first, text, (size_t)(dots - text));
    if (!dots || units_parse_count(first, 1, WORKLOAD_REQUESTS_MAX, &from, e) != ERR_OK ||
        units_parse_count(dots + 2, 1, WORKLOAD_REQUESTS_MAX, &to, e) != ERR_OK || from > to)
        return err_set(e, ERR_USAGE, "--judge is A..B, the first and the last request that times are of, not '%.40s'",
                       text);
    if ((size_t)to > c->work.n) return err_set(e, ERR_USAGE, "--judge %.40s: there are %zu requests", text, c->work.n);
    c->judged = (struct planner_window){(size_t)(from - 1), (size_t)to};
    return ERR_OK;
}

/* Made requests brought to their rate, as a plan's are. */
static enum err_code exact_rate(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct workload *w = &c->work;
    if (!option_given(v, "exact-rate")) return ERR_OK;
    if (!(c->spec.rate_per_s > 0) || workload_period_s(&c->spec) > 0 || !(w->span_s > 0))
        return err_set(e, ERR_USAGE,
                       "--exact-rate scales times that are drawn at a constant --rate, and there are none");
    const double faster = c->spec.rate_per_s / workload_came_per_s(w);
    for (size_t i = 0; i < w->n; i++) w->request[i].arrival_s /= faster;
    w->span_s /= faster;
    return ERR_OK;
}

enum err_code simulate_work_open(struct arena *a, const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct workload_spec *s = &c->spec;
    int64_t seed = 1;
    *s = (struct workload_spec){.turns = 1, .samples = 1, .requests = 1000};
    c->trace = option_get(v, "trace");
    TRY(option_count(v, "samples", 1, UINT16_MAX, &s->samples, e));
    if (c->trace) {
        TRY(open_trace(a, v, c, e));
        c->work.samples = s->samples;
        TRY(workload_put_ahead(&c->work, model_source_ahead(&c->of.model), e));
        return open_judged(v, c, e);
    }
    struct made made;
    TRY(open_made(a, v, &made, e));
    if (!option_given(v, "prompt") && !made.file && c->of.model.encoder.layers > 0)
        made.prompt = arena_printf(a, "%lld", (long long)c->of.model.encoder.start_tokens);
    if (!made.prompt) return err_nomem(e);
    c->arrivals = made.arrivals;
    const char *const usual = made.file ? "" : " (default)";
    c->lengths =
        arena_printf(a, "prompts of %s tokens%s, answers of %s%s", made.prompt, option_given(v, "prompt") ? "" : usual,
                     made.generate, option_given(v, "generate") ? "" : usual);
    if (!c->lengths) return err_nomem(e);
    s->rate_per_s = made.rate_per_s;
    TRY(option_count(v, "requests", 1, WORKLOAD_REQUESTS_MAX, &s->requests, e));
    TRY(option_count(v, "concurrency", 1, WORKLOAD_REQUESTS_MAX, &s->concurrency, e));
    TRY(option_count(v, "turns", 1, 1 << 16, &s->turns, e));
    TRY(option_count(v, "shared-prefix", 1, WORKLOAD_TOKENS_MAX, &s->shared_tokens, e));
    TRY(option_count(v, "seed", 0, UINT32_MAX, &seed, e));
    TRY(option_time(v, "think", &s->think_s, e));
    TRY(option_real(v, "rate", 1e-6, 1e6, &s->rate_per_s, e)); /* not a unit */
    s->seed = (uint64_t)seed;
    if (option_given(v, "think") && s->turns == 1 && s->concurrency == 0)
        return err_set(e, ERR_USAGE,
                       "--think is the time from an answer to the next request: it needs --turns or --concurrency");
    if (s->rate_per_s > 0 && s->concurrency > 0)
        return err_set(e, ERR_USAGE,
                       "--rate and --concurrency: requests come at times of their own, or when a client "
                       "has its answer");
    if (option_given(v, "arrivals") && !(s->rate_per_s > 0))
        return err_set(e, ERR_USAGE, "--arrivals says how requests come at a --rate; the rate is missing");
    if (workload_arrival_parse(c->arrivals, s, e) != ERR_OK) return of_part(v, &made, "arrivals", e);
    if (workload_length_parse(a, made.prompt, &s->prompt, e) != ERR_OK) return of_part(v, &made, "prompt", e);
    if (workload_length_parse(a, made.generate, &s->output, e) != ERR_OK) return of_part(v, &made, "generate", e);
    TRY(draw(a, c, e));
    TRY(exact_rate(v, c, e));
    TRY(workload_put_ahead(&c->work, model_source_ahead(&c->of.model), e));
    return open_judged(v, c, e);
}
