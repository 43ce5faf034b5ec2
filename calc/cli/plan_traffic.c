/* plan_traffic -- the options of `ridge plan` that say what comes, and what is promised to it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json.h"
#include "calc/base/text.h"
#include "calc/cli/plan_parts.h"
#include "calc/cli/trace_read.h"

enum { DRAWN_MOST = 1 << 21, OF_LENGTHS = 1 << 14, BURSTS = 32 };

/* Whether the value of an option is the one that a scenario has. */
static bool of_scenario(const struct json *s, const struct option_values *v, const char *name)
{
    struct json item;
    const char *text, *is = option_get(v, name);
    struct err unread = {0};
    double x;
    if (!option_given(v, name) || !json_get(s, name, &item)) return false;
    if (json_is_string(&item)) return json_str(&item, &text, &unread) != ERR_OK || strcmp(text, is) == 0;
    return !json_is_number(&item) || json_num(&item, &x, &unread) != ERR_OK || !(fabs(strtod(is, NULL) - x) > 0);
}

static void forget(const struct option_values *v, const char *name)
{
    for (size_t i = 0; i < v->command->options_n; i++) {
        if (strcmp(v->command->options[i].name, name) != 0) continue;
        v->given[i] = false;
        v->text[i] = v->command->options[i].fallback;
    }
}

/* "p95=1s" or "1s". */
enum err_code plan_promise_open(const struct option_values *v, const char *name, struct planner_promise *out,
                                struct err *e)
{
    static const struct {
        const char *name;
        double frac;
    } PARTS[] = {{"p50=", .5}, {"p90=", .9}, {"p95=", .95}, {"p99=", .99}};
    const char *text = option_get(v, name), *time = text;
    *out = (struct planner_promise){(double)NAN, .95};
    if (!text) return ERR_OK;
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (strncmp(text, PARTS[i].name, strlen(PARTS[i].name)) == 0) {
            out->frac = PARTS[i].frac;
            time = text + strlen(PARTS[i].name);
        }
    if (time == text && strchr(text, '='))
        return err_set(e, ERR_USAGE, "--%s: p50=, p90=, p95= or p99= and a time", name);
    if (units_parse_time(time, &out->s, e) != ERR_OK) return err_prepend(e, "--%s: ", name);
    const double longest_s = 1e9; /* not a unit */
    if (out->s > longest_s)
        return err_set(e, ERR_USAGE, "--%s: '%.40s' is no promise: wanted a time below thirty years", name, time);
    return out->s > 0 ? ERR_OK : err_set(e, ERR_USAGE, "--%s: '%s' is no promise: wanted a time above 0", name, time);
}

static enum err_code only_one(const struct option_values *v, struct err *e)
{
    static const char *const OF[] = {"rate", "tokens-per-day", "job"};
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) n += option_given(v, OF[i]);
    if (n > 1) return err_set(e, ERR_USAGE, "--rate, --tokens-per-day and --job are three questions: one of them");
    if (n == 0 && !option_given(v, "trace"))
        return err_set(
            e, ERR_USAGE, "%s: which traffic? --rate R, --trace FILE, --tokens-per-day N or --job requests=N%s",
            v->command->name, strcmp(v->command->name, "plan") == 0 ? "; --layouts lists ways to share GPUs" : "");
    if (option_given(v, "deadline") != option_given(v, "job"))
        return err_set(e, ERR_USAGE, "--job and --deadline belong together: so many requests by then");
    const bool late = option_given(v, "ttft") || option_given(v, "tpot");
    if (late && (option_given(v, "job") || option_given(v, "tokens-per-day")))
        return err_set(e, ERR_USAGE, "--job and --tokens-per-day promise no latency: no --ttft or --tpot");
    if (!late && !option_given(v, "job") && !option_given(v, "tokens-per-day"))
        return err_set(e, ERR_USAGE, "%s: which latencies are promised? --ttft p95=1s, --tpot p95=40ms, or one of them",
                       v->command->name);
    return ERR_OK;
}

static enum err_code open_trace(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    static const char *const MADE[] = {"prompt", "generate", "arrivals", "seed"};
    for (size_t i = 0; i < sizeof MADE / sizeof *MADE; i++)
        if (option_given(v, MADE[i]))
            return err_set(e, ERR_USAGE, "--trace says when requests come and how long they are: leave out --%s",
                           MADE[i]);
    TRY(trace_read(a, c->trace, &c->work, e));
    return workload_put_ahead(&c->work, c->source, e);
}

/* Whole periods of a rate that changes in time, one at least, of bursts many, as far as so many requests go. */
static void whole_periods(const struct plan_case *c, struct workload_spec *s)
{
    const double least = s->arrival == WORKLOAD_BURSTY ? BURSTS : 1;
    const double each = s->rate_per_s * workload_period_s(s); /* requests of a period */
    if (c->request.aim != PLANNER_SERVE || !(each > 0)) return;
    const double n = ceil(each * fmax(least, ceil(PLAN_DRAWN / each)));
    s->requests = n > DRAWN_MOST ? DRAWN_MOST : (int64_t)n;
}

/* What comes when, and how much of it was drawn. */
static enum err_code open_flow(struct arena *a, struct plan_case *c, const struct workload_spec *s, struct err *e)
{
    const double period_s = workload_period_s(s);
    if (c->request.aim != PLANNER_SERVE || !(period_s > 0)) return ERR_OK;
    c->period_s = period_s;
    c->periods = c->work.span_s / period_s;
    /* of chance: less than a whole one, or few */
    c->partly = c->periods < (s->arrival == WORKLOAD_DIURNAL ? .98 : .5 * BURSTS);
    return planner_flow_of(a, s, &c->work, &c->request.flow, e);
}

/* Of made requests those that moments and quantiles are taken of; the longest is that of all. */
static enum err_code made_traffic(struct arena *a, struct plan_case *c, double rate, struct err *e)
{
    struct workload part = c->work;
    if (!c->trace && part.n > OF_LENGTHS) {
        part.n = part.first_n = OF_LENGTHS;
        part.span_s = part.request[part.n - 1].arrival_s;
    }
    TRY(planner_traffic_of(a, &part, rate, &c->request.traffic, e));
    for (size_t i = part.n; i < c->work.n; i++) {
        const struct workload_request *x = &c->work.request[i];
        const int64_t all = (int64_t)x->prompt_tokens + x->output_tokens;
        if (all > c->request.traffic.longest_tokens) c->request.traffic.longest_tokens = all;
    }
    return ERR_OK;
}

static enum err_code open_made(struct arena *a, const struct option_values *v, struct plan_case *c, double rate,
                               struct err *e)
{
    int64_t seed = 1;
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = PLAN_DRAWN, .rate_per_s = rate};
    c->arrivals = option_get(v, "arrivals");
    c->prompt = plan_source_prompt(a, v, c);
    if (!c->prompt) return err_nomem(e);
    c->generate = option_get(v, "generate");
    TRY(option_count(v, "seed", 0, UINT32_MAX, &seed, e));
    s.seed = (uint64_t)seed;
    if (workload_arrival_parse(c->arrivals, &s, e) != ERR_OK) return err_prepend(e, "--arrivals: ");
    if (workload_length_parse(a, c->prompt, &s.prompt, e) != ERR_OK) return err_prepend(e, "--prompt: ");
    if (workload_length_parse(a, c->generate, &s.output, e) != ERR_OK) return err_prepend(e, "--generate: ");
    whole_periods(c, &s);
    TRY(workload_make(a, &s, &c->work, e));
    TRY(workload_put_ahead(&c->work, c->source, e));
    c->spec = s;
    return open_flow(a, c, &s, e);
}

static enum err_code open_job(const struct option_values *v, struct planner_request *q, struct err *e)
{
    static const char REQUESTS[] = "requests=";
    const char *text = option_get(v, "job");
    char clean[64];
    int64_t n;
    if (strncmp(text, REQUESTS, sizeof REQUESTS - 1) != 0)
        return err_set(e, ERR_USAGE, "--job is requests=N, not '%s'",
                       text_clean(clean, sizeof clean, text, strlen(text)));
    if (units_parse_count(text + sizeof REQUESTS - 1, 1, INT64_C(1) << 40, &n, e) != ERR_OK)
        return err_prepend(e, "--job: ");
    q->requests = (double)n;
    if (units_parse_time(option_get(v, "deadline"), &q->deadline_s, e) != ERR_OK) return err_prepend(e, "--deadline: ");
    return q->deadline_s > 0 ? ERR_OK : err_set(e, ERR_USAGE, "--deadline: a time above 0");
}

/* A trace that is typed stands instead of the traffic of a scenario; what is dropped is noted. */
static enum err_code prefer_trace(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    static const char *const MADE[] = {"rate", "prompt", "generate", "arrivals", "seed"};
    const char *path = option_get(v, "scenario"), *dropped = "";
    char clean[96];
    struct json root, inner;
    if (!path || !option_given(v, "trace")) return ERR_OK;
    TRY(json_load(a, path, &root, e));
    if (json_get(&root, "scenario", &inner)) root = inner;
    (void)text_clean(clean, sizeof clean, path, strlen(path));
    const bool both = of_scenario(&root, v, "trace");
    for (size_t i = 0; i < sizeof MADE / sizeof *MADE; i++) {
        if (!of_scenario(&root, v, MADE[i]) || (both && i == 0)) continue;
        if (both)
            return err_set(e, ERR_USAGE, "a trace says when requests come and how long they are: %s and trace in %s",
                           MADE[i], clean);
        forget(v, MADE[i]);
        dropped = arena_printf(a, "%s%s%s", dropped, *dropped ? ", " : "", MADE[i]);
        if (!dropped) return err_nomem(e);
    }
    if (!*dropped) return ERR_OK;
    c->replaced = arena_printf(a, "--trace stands instead of %s in %s", dropped, clean);
    return c->replaced ? ERR_OK : err_nomem(e);
}

/* Prefixes that requests share: of a trace that names blocks, by promises that are simulated. */
static enum err_code open_prefixes(const struct option_values *v, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    double gib = 0;
    q->prefix_cache = option_given(v, "prefix-cache") || option_given(v, "kv-offloading-size");
    if (!q->prefix_cache) return ERR_OK;
    TRY(option_real(v, "kv-offloading-size", 1e-3, 1e6, &gib, e)); /* not a unit */
    q->tier_bytes = gib * UNITS_GIB;
    if (q->aim != PLANNER_SERVE) return err_set(e, ERR_USAGE, "--prefix-cache is planned where latencies are promised");
    if (!c->trace || c->work.hash_tokens <= 0)
        return err_set(
            e, ERR_USAGE,
            "--prefix-cache: which prompts begin alike is known of a trace that names its blocks (Mooncake)");
    size_t named = 0;
    while (named < c->work.n && c->work.request[named].hash_n == 0) named++;
    if (named == c->work.n)
        return err_set(
            e, ERR_USAGE,
            "--prefix-cache: no request of this trace names its blocks, so nothing is known of which prompts "
            "begin alike (Mooncake's traces have them, as hash_ids)");
    return ERR_OK;
}

enum err_code plan_traffic_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    double rate = (double)NAN;
    const double day_s = 86400;
    c->trace = option_get(v, "trace");
    c->tokens_per_day = (double)NAN;
    TRY(prefer_trace(a, v, c, e));
    TRY(only_one(v, e));
    TRY(option_real(v, "rate", 1e-6, 1e6, &rate, e));                      /* not a unit */
    TRY(option_real(v, "tokens-per-day", 1, 1e15, &c->tokens_per_day, e)); /* not a unit */
    q->aim = option_given(v, "job") ? PLANNER_JOB : isnan(c->tokens_per_day) ? PLANNER_SERVE : PLANNER_DAILY;
    TRY(c->trace ? open_trace(a, v, c, e) : open_made(a, v, c, isnan(rate) ? 1 : rate, e));
    if (q->aim == PLANNER_JOB) {
        TRY(open_job(v, q, e));
        rate = q->requests / q->deadline_s;
    }
    if (c->trace && q->aim != PLANNER_JOB && !(c->work.span_s > 0)) {
        const double each = q->aim == PLANNER_DAILY ? 1 : rate;
        if (isnan(each))
            return err_set(e, ERR_USAGE, "the trace has no times of its own: how many requests a second? --rate R");
        TRY(workload_draw_arrivals(&c->work, each, 1, e));
        c->drawn = true;
    }
    TRY(open_prefixes(v, c, e));
    TRY(q->prefix_cache ? planner_traffic_cached(a, &c->work, rate, 16, &q->traffic, e) /* vLLM's block */
                        : made_traffic(a, c, q->aim == PLANNER_DAILY ? 1 : rate, e));
    if (q->aim == PLANNER_DAILY) q->traffic.rate_per_s = c->tokens_per_day / day_s / q->traffic.output_tokens;
    return ERR_OK;
}
