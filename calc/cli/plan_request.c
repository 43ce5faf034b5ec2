/* plan_request -- the options of `ridge plan` as traffic, promises and a choice of devices and precisions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json.h"
#include "calc/base/text.h"
#include "calc/cli/estimate.h"
#include "calc/cli/interrupt.h"
#include "calc/cli/plan.h"
#include "calc/cli/progress.h"
#include "calc/cli/scope.h"
#include "calc/cli/trace_read.h"
#include "calc/model/stored.h"
#include "calc/model/whatif.h"

enum { DRAWN = 4096, LENGTH_STEP = 256, DRAWN_MOST = 1 << 21, OF_LENGTHS = 1 << 14, BURSTS = 32 };

static const char DEVICES[] = "h100-sxm,h200-sxm,l40s", SERVER[] = "vllm";

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
static enum err_code promise(const struct option_values *v, const char *name, struct planner_promise *out,
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

/* -- traffic -- */

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
            return err_set(e, ERR_USAGE, "--trace says when requests come and how long they are: no --%s", MADE[i]);
    TRY(trace_read(a, c->trace, &c->work, e));
    return workload_put_ahead(&c->work, c->source, e);
}

/* Whole periods of a rate that changes in time, one at least, of bursts many, as far as so many requests go. */
static void whole_periods(const struct plan_case *c, struct workload_spec *s)
{
    const double least = s->arrival == WORKLOAD_BURSTY ? BURSTS : 1;
    const double each = s->rate_per_s * workload_period_s(s); /* requests of a period */
    if (c->request.aim != PLANNER_SERVE || !(each > 0)) return;
    const double n = ceil(each * fmax(least, ceil(DRAWN / each)));
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

/* What the decoder of a model begins with, where nothing is said; the source is in front of it. */
static enum err_code made_prompt(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    const struct model *m = c->format[0].model;
    c->prompt = option_get(v, "prompt");
    if (m->encoder.layers > 0 && !option_given(v, "prompt"))
        c->prompt = arena_printf(a, "%lld", (long long)m->encoder.start_tokens);
    return c->prompt ? ERR_OK : err_nomem(e);
}

static enum err_code open_made(struct arena *a, const struct option_values *v, struct plan_case *c, double rate,
                               struct err *e)
{
    int64_t seed = 1;
    struct workload_spec s = {.turns = 1, .samples = 1, .requests = DRAWN, .rate_per_s = rate};
    c->arrivals = option_get(v, "arrivals");
    TRY(made_prompt(a, v, c, e));
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

/* Requests in flight in all copies: of the best plan on paper; without one, as the promise has it. */
static double in_flight(const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    const struct planner_plan *x = &c->result.best[0];
    if (c->result.best_n > 0 && x->point.batch > 0) return x->point.batch * (double)x->layout.replicas;
    const double answer_s = isnan(q->tpot.s) ? 0 : q->traffic.output_tokens * q->tpot.s;
    return q->traffic.rate_per_s * (answer_s + (isnan(q->ttft.s) ? 0 : q->ttft.s / 2));
}

/* How many requests are simulated, and which of them are judged: as many as fill the copies often, those while they
 * fill and empty left out; end 0: all that there are. */
static struct planner_window window_of(const struct plan_case *c, size_t *requests, bool *few)
{
    enum { FILL = 3, JUDGED = 20, EMPTY = 1, MOST = 1 << 17 };
    const double n = in_flight(c), wanted = ceil((FILL + JUDGED + EMPTY) * n);
    *requests = c->work.n;
    *few = false;
    if (c->trace || c->request.aim != PLANNER_SERVE || c->period_s > 0 || !(n > 0)) return (struct planner_window){0};
    if (wanted > (double)c->work.n) *requests = wanted < MOST ? (size_t)wanted : MOST;
    const double all = (double)*requests, part = fmin(n, all / (2 * (FILL + EMPTY)));
    *few = wanted > all;
    return (struct planner_window){(size_t)(FILL * part), *requests - (size_t)(EMPTY * part)};
}

/* The requests that are simulated, the first ones the same. What is longer than the plan's longest is cut there, as its
 * limit of a sequence does. */
static enum err_code lengthen(struct arena *a, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    size_t requests;
    bool few;
    q->judged = window_of(c, &requests, &few);
    if (q->judged.end == 0) return ERR_OK;
    c->fillings = (double)(q->judged.end - q->judged.first) / in_flight(c);
    c->few = few ? c->fillings : 0;
    if (requests <= c->work.n) return ERR_OK;
    struct workload_spec s = c->spec;
    s.requests = (int64_t)requests;
    TRY(workload_make(a, &s, &c->work, e));
    TRY(workload_put_ahead(&c->work, c->source, e));
    for (size_t i = 0; i < c->work.n; i++) {
        struct workload_request *x = &c->work.request[i];
        const int32_t longest = (int32_t)q->traffic.longest_tokens;
        if (x->prompt_tokens >= longest) x->prompt_tokens = longest - 1;
        if (x->output_tokens > longest - x->prompt_tokens) x->output_tokens = longest - x->prompt_tokens;
    }
    return ERR_OK;
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

static enum err_code open_traffic(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
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

/* -- choice -- */

/* A node holds what the link joins, eight where there is none; --nodes divides the GPUs there are. */
static enum err_code open_device(struct arena *a, const struct option_values *v, const struct plan_case *c,
                                 const struct layout_request *asked, const char *text, int64_t most,
                                 struct planner_device *d, struct err *e)
{
    const double bus = 8; /* of an ordinary server */
    struct hw *hw = arena_alloc(a, sizeof *hw);
    struct layout_request of = *asked;
    int64_t n = most;
    if (!hw) return err_nomem(e);
    TRY(scope_gpu(a, v, text, hw, &n, e));
    if (!strchr(text, ':')) n = most;
    if (asked->fabric_bytes_per_s > 0) hw->fabric_bytes_per_s = asked->fabric_bytes_per_s;
    layout_options_latency(&of, hw);
    const double domain = hw->link_domain > 1 ? hw->link_domain : bus;
    *d = (struct planner_device){.hw = hw,
                                 .price = price_of(c->prices, hw),
                                 .most = n < most ? n : most,
                                 .per_node = (int64_t)domain,
                                 .latency = of.latency};
    TRY(offload_options_open(&c->offload, hw, &d->offload, NULL, e));
    d->host_bytes_per_s = isnan(hw->host_link_bytes_per_s) ? hw->pcie_bytes_per_s : hw->host_link_bytes_per_s;
    if (option_given(v, "host-link")) d->host_bytes_per_s = c->offload.host_bytes_per_s;
    if (c->request.tier_bytes > 0 && !(d->host_bytes_per_s > 0))
        return err_set(e, ERR_USAGE, "no rate between %s and its host is known: --host-link 25GB/s", hw->key);
    if (asked->nodes && d->most % asked->nodes != 0)
        return err_set(e, ERR_USAGE, "%lld GPUs do not fill --nodes %lld", (long long)d->most, (long long)asked->nodes);
    if (asked->nodes) d->per_node = d->most / asked->nodes;
    if (d->per_node > d->most) d->per_node = d->most;
    return ERR_OK;
}

static enum err_code open_devices(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    const char **names;
    size_t n;
    int64_t most = 64;
    struct layout_request asked;
    TRY(layout_options_parse(v, &asked, e));
    TRY(offload_options_parse(v, &c->offload, e));
    TRY(option_count(v, "max-gpus", 1, 4096, &most, e)); /* not a unit */
    TRY(scope_list(a, option_get(v, "gpu") ? option_get(v, "gpu") : DEVICES, "gpu", &names, &n, e));
    if (option_get(v, "price")) TRY(price_read(a, option_get(v, "price"), &c->prices, e));
    c->device = arena_array(a, n, sizeof *c->device);
    if (!c->device) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        TRY(open_device(a, v, c, &asked, names[i], most, &c->device[i], e));
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->device[k].hw->key, c->device[i].hw->key) == 0)
                return err_set(e, ERR_USAGE, "--gpu: %s twice", c->device[i].hw->key);
    }
    c->request.device = c->device;
    c->request.devices_n = n;
    c->request.like = asked.layout;
    c->request.any_context = asked.any_context;
    return ERR_OK;
}

/* The formats of a list: NULL is as stored. */
static enum err_code formats(struct arena *a, const struct option_values *v, const char *name, bool wide,
                             const char ***out, size_t *n, struct err *e)
{
    const char *text = option_get(v, name);
    TRY(scope_list(a, text ? text : wide ? "stored,fp8" : "stored", name, out, n, e));
    for (size_t i = 0; i < *n; i++)
        if (strcmp((*out)[i], "stored") == 0) (*out)[i] = NULL;
    return ERR_OK;
}

/* The source of an encoder-decoder, and what is not planned of one. */
static enum err_code open_source(const struct option_values *v, struct model *m, struct plan_case *c, struct err *e)
{
    static const char *const NOT[][2] = {
        {"draft", "drafts for one are not described (--draft)"},
        {"disagg", "no engine is known to send its caches between pools (--disagg)"},
        {"prefix-cache", "engines share no prompts of one (--prefix-cache)"},
        {"kv-offloading-size", "engines share no prompts of one (--kv-offloading-size)"},
        {"max-loras", "adapters of one are not described (--max-loras)"},
        {"server", "steps of a server with one are not measured (--fidelity roofline or bound)"},
        {"efficiency", "no kernels of one are measured (--fidelity roofline or bound)"},
        {"framework", "no kernels of one are measured (--fidelity roofline or bound)"}};
    int64_t source = 0;
    TRY(option_count(v, "source", 1, 1 << 24, &source, e)); /* not a unit */
    if (source > 0) TRY(model_set_source(m, source, e));
    for (size_t i = 0; i < sizeof NOT / sizeof *NOT; i++)
        if (option_given(v, NOT[i][0])) TRY(model_refuse_encoder(m, NOT[i][1], e));
    if (option_get(v, "fidelity") && strcmp(option_get(v, "fidelity"), "calibrated") == 0)
        TRY(model_refuse_encoder(m, "no kernels of one are measured (--fidelity roofline or bound)", e));
    if (m->encoder.layers > 0 && m->encoder.source_tokens == 0)
        return err_set(e, ERR_USAGE, "%s: its file does not say how long a source is: --source N", m->name);
    c->source = model_source_ahead(m);
    return ERR_OK;
}

static enum err_code open_formats(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    const struct model_setting *set;
    const char **weights, **kv;
    size_t set_n, weights_n, kv_n;
    struct model first;
    TRY(scope_settings(a, option_get(v, "set"), &set, &set_n, e));
    TRY(scope_formats(a, v, e));
    TRY(model_load(a, option_get(v, "model"), set, set_n, &first, e));
    c->hub = model_hub_id(a, option_get(v, "model"));
    if (!c->hub) c->hub = emit_source(a, option_get(v, "model"), EMIT_CHECKPOINT);
    if (!c->hub) return err_nomem(e);
    if (option_get(v, "activations")) TRY(dtype_find(option_get(v, "activations"), &first.activations, e));
    if (option_get(v, "what-if")) TRY(whatif_apply_all(a, &first, option_get(v, "what-if"), e));
    TRY(lora_options_parse(v, 0, &c->adapters, e));
    TRY(lora_options_apply(&c->adapters, &first, e));
    TRY(layout_options_towers(v, &first, e));
    if (first.diffusion) return err_set(e, ERR_USAGE, "%s: diffusion models are not planned", first.name);
    if (first.bidirectional) return err_set(e, ERR_USAGE, "%s: it does not generate, so there is no TPOT", first.name);
    TRY(open_source(v, &first, c, e));
    c->model = first.name;
    c->max_context_tokens = model_context_limit(&first);
    if (c->max_context_tokens > 0) c->max_context_tokens += c->source;
    const bool wide = !first.weights_unknown && model_linear_format(&first)->bits == 16;
    TRY(formats(a, v, "weights", wide, &weights, &weights_n, e));
    TRY(formats(a, v, "kv", first.kv.bits == 16, &kv, &kv_n, e));
    struct model *models = arena_array(a, weights_n * kv_n, sizeof *models);
    c->format = arena_array(a, weights_n * kv_n, sizeof *c->format);
    if (!models || !c->format) return err_nomem(e);
    for (size_t i = 0; i < weights_n * kv_n; i++) {
        struct planner_format *f = &c->format[i];
        *f = (struct planner_format){.model = &models[i], .weights = weights[i / kv_n], .kv = kv[i % kv_n]};
        /* each its own: formats are set in the kinds of layers too */
        TRY(model_load(a, option_get(v, "model"), set, set_n, &models[i], e));
        models[i].activations = first.activations;
        if (option_get(v, "what-if")) TRY(whatif_apply_all(a, &models[i], option_get(v, "what-if"), e));
        TRY(lora_options_apply(&c->adapters, &models[i], e));
        TRY(layout_options_towers(v, &models[i], e));
        if (c->source > 0) TRY(model_set_source(&models[i], c->source, e));
        if (f->weights && stored_set_all(&models[i], f->weights, e) != ERR_OK) return err_prepend(e, "--weights: ");
        if (f->kv && stored_set_cache(&models[i], f->kv, e) != ERR_OK) return err_prepend(e, "--kv: ");
        if (models[i].weights_unknown)
            return err_set(e, ERR_INPUT, "%s: %s (--weights FORMAT)", models[i].name, models[i].weights_unknown);
    }
    c->request.format = c->format;
    c->request.formats_n = weights_n * kv_n;
    return ERR_OK;
}

static enum err_code range(struct arena *a, const struct option_values *v, const char *name, const int64_t **out,
                           size_t *n, struct err *e)
{
    if (units_parse_range(a, option_get(v, name), 1, 1 << 20, out, n, e) != ERR_OK)
        return err_prepend(e, "--%s: ", name);
    return ERR_OK;
}

/* Files of parameters, each for the device that it names; of one device any. */
static enum err_code open_efficiency(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    const char *text = option_get(v, "efficiency"), **names;
    char clean[64];
    size_t n;
    if (!text) return ERR_OK;
    if (c->request.fidelity != PLANNER_CALIBRATED)
        return err_set(e, ERR_USAGE, "--efficiency says how times are calibrated; floors have none");
    if (option_get(v, "server") && strcmp(option_get(v, "server"), "none") != 0)
        return err_set(e, ERR_USAGE, "--server says how steps are timed; --efficiency cannot stand beside it");
    TRY(scope_list(a, text, "efficiency", &names, &n, e));
    for (size_t i = 0; i < n; i++) {
        struct efficiency f;
        bool used = false;
        if (efficiency_load(a, names[i], &f, e) != ERR_OK) return err_prepend(e, "--efficiency: ");
        for (size_t d = 0; d < c->request.devices_n; d++) {
            if (c->request.devices_n > 1 && strcmp(c->device[d].hw->key, f.device) != 0) continue;
            if (c->device[d].efficiency)
                return err_set(e, ERR_USAGE, "--efficiency: two files for %s: %s and %s (of %s)", c->device[d].hw->key,
                               c->device[d].efficiency, names[i],
                               text_clean(clean, sizeof clean, f.device, strlen(f.device)));
            c->device[d].efficiency = names[i];
            used = true;
        }
        if (c->has_emit && f.framework && strcmp(f.framework, emit_name(c->emit)) != 0)
            return err_set(e, ERR_USAGE, "--efficiency %s beside --emit %s: its times are of %s", names[i],
                           emit_name(c->emit), text_clean(clean, sizeof clean, f.framework, strlen(f.framework)));
        if (!used)
            return err_set(e, ERR_USAGE, "--efficiency %s is of %s, which is none of the devices of -g", f.file,
                           text_clean(clean, sizeof clean, f.device, strlen(f.device)));
    }
    return ERR_OK;
}

/* What the engine whose steps are taken does not run. */
static const char *refuse(void *closure, const struct layout *l)
{
    const struct plan_case *c = closure;
    const struct emit_plan p = {
        .layout = *l, .experts = layout_routed(c->format[0].model) != NULL, .offload_bytes = c->offload.bytes};
    return emit_refusal(c->runs, &p);
}

/* Steps as a server takes them: of the one that is named, else of vLLM's. What is printed of a plan has no part in it.
 */
static enum err_code open_server(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    const char *text = option_get(v, "server");
    struct err unknown = {0};
    if (text && strcmp(text, "none") == 0) return ERR_OK;
    if (text && (q->fidelity != PLANNER_CALIBRATED || q->framework))
        return err_set(e, ERR_USAGE, "--server says how steps are timed, calibrated; --%s cannot stand beside it",
                       q->framework ? "framework" : "fidelity roofline or bound");
    const bool kernels = q->framework || option_get(v, "efficiency");
    if (!text && q->fidelity == PLANNER_CALIBRATED && !kernels) text = SERVER;
    if (!text) return ERR_OK;
    if (engine_load_version(a, text, &c->engine, &q->overlapped, e) != ERR_OK)
        return err_prepend(e, "--server, a name or none: ");
    if (q->p90 && (isnan(c->engine.slow_p90[0]) || isnan(c->engine.slow_p90[1])))
        return err_set(e, ERR_INPUT, "%s: errors: no \"slow_p90\" of both kinds, so there is no P90 (--band p50)",
                       c->engine.file);
    c->server = text;
    q->server = &c->engine;
    if (emit_find(c->engine.name, &c->runs, &unknown) != ERR_OK) return ERR_OK; /* what it runs is not known */
    q->refuse = refuse;
    q->closure = c;
    return ERR_OK;
}

/* Engines encode a source whole, so that a step has room for one. */
static enum err_code whole_sources(struct arena *a, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    int64_t *kept = arena_array(a, q->step_tokens_n, sizeof *kept);
    size_t n = 0;
    if (!kept) return err_nomem(e);
    for (size_t i = 0; i < q->step_tokens_n; i++)
        if (q->step_tokens[i] > c->source) kept[n++] = q->step_tokens[i];
    if (n == 0)
        return err_set(e, ERR_USAGE, "--max-num-batched-tokens: engines encode a source of %lld tokens whole",
                       (long long)c->source);
    q->step_tokens = kept;
    q->step_tokens_n = n;
    return ERR_OK;
}

static enum err_code open_choice(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    struct planner_request *q = &c->request;
    const char *fidelity = option_get(v, "fidelity"), *band = option_get(v, "band");
    q->fidelity = c->source > 0 ? PLANNER_ROOFLINE : PLANNER_CALIBRATED;
    if (fidelity && strcmp(fidelity, "roofline") == 0)
        q->fidelity = PLANNER_ROOFLINE;
    else if (fidelity && strcmp(fidelity, "bound") == 0)
        q->fidelity = PLANNER_BOUND;
    else if (fidelity && strcmp(fidelity, "calibrated") != 0)
        return err_set(e, ERR_USAGE, "--fidelity is calibrated, roofline or bound, not '%.40s'", fidelity);
    if (strcmp(band, "p50") != 0 && strcmp(band, "p90") != 0)
        return err_set(e, ERR_USAGE, "--band is p50 or p90, not '%.40s'", band);
    q->p90 = strcmp(band, "p90") == 0 && q->fidelity == PLANNER_CALIBRATED;
    q->framework = option_get(v, "framework");
    if (q->fidelity != PLANNER_CALIBRATED && (q->framework || option_given(v, "band")))
        return err_set(e, ERR_USAGE, "--framework and --band are of calibrated times, not of floors");
    TRY(open_efficiency(a, v, c, e));
    TRY(open_server(a, v, c, e));
    TRY(range(a, v, "max-num-seqs", &q->seqs, &q->seqs_n, e));
    q->held_seqs = !option_given(v, "max-num-seqs");
    TRY(range(a, v, "max-num-batched-tokens", &q->step_tokens, &q->step_tokens_n, e));
    TRY(whole_sources(a, c, e));
    q->pools = option_get(v, "disagg") != NULL;
    if (q->pools && q->aim != PLANNER_SERVE)
        return err_set(e, ERR_USAGE, "--disagg keeps latencies: not a --job, not --tokens-per-day");
    q->utilization_frac = (double)NAN;
    TRY(option_real(v, "gpu-memory-utilization", .01, 1, &q->utilization_frac, e));
    return ERR_OK;
}

/* -- draft -- */

static enum err_code open_gammas(struct arena *a, const struct option_values *v, struct planner_drafting *d,
                                 struct err *e)
{
    static const int64_t FIRST[] = {1, 2, 3, 4, 5};
    const char *text = option_get(v, "gamma");
    int64_t most = speculate_depth_max(&d->accept);
    if (d->model->draft.heads > 0 && d->model->draft.heads < most) most = d->model->draft.heads;
    d->gamma = FIRST;
    d->gamma_n = most < 5 ? (size_t)most : sizeof FIRST / sizeof *FIRST;
    if (!text) return ERR_OK;
    if (units_parse_range(a, text, 1, SPECULATE_DEPTH_MAX, &d->gamma, &d->gamma_n, e) != ERR_OK)
        return err_prepend(e, "--gamma: ");
    for (size_t i = 0; i < d->gamma_n; i++) {
        if (d->gamma[i] > most)
            return err_set(e, ERR_USAGE, "--gamma %lld: --accept or the draft says nothing beyond %lld in a row",
                           (long long)d->gamma[i], (long long)most);
        for (size_t k = 0; k < i; k++)
            if (d->gamma[k] == d->gamma[i]) return err_set(e, ERR_USAGE, "--gamma: %lld twice", (long long)d->gamma[i]);
    }
    return ERR_OK;
}

/* One tree, in place of rows. */
static enum err_code open_tree(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    struct planner_drafting *d = &c->drafting;
    struct speculate_tree t;
    if (option_given(v, "gamma")) return err_set(e, ERR_USAGE, "--gamma drafts a row and --tree a tree: one of them");
    if (speculate_tree_parse(option_get(v, "tree"), &t, e) != ERR_OK ||
        speculate_tree_shape(a, &t, &d->accept, d->bonus, &c->shape, e) != ERR_OK)
        return err_prepend(e, "--tree: ");
    if (d->model->draft.heads > 0 && t.depth > d->model->draft.heads)
        return err_set(e, ERR_USAGE, "--tree: --draft %s makes at most %lld tokens in a row, not %lld", c->draft,
                       (long long)d->model->draft.heads, (long long)t.depth);
    c->tree_depth = t.depth;
    c->tree_wide = 0;
    for (int64_t i = 0; i <= c->shape.drafted; i++)
        if (c->shape.node[i].children > c->tree_wide) c->tree_wide = c->shape.node[i].children;
    d->gamma = &c->tree_depth;
    d->gamma_n = 1;
    d->shape = &c->shape;
    return ERR_OK;
}

static enum err_code open_draft(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    struct planner_drafting *d = &c->drafting;
    const struct model *target = c->format[0].model;
    c->draft = option_get(v, "draft");
    if (!c->draft) {
        if (option_given(v, "accept") || option_given(v, "gamma") || option_given(v, "tree"))
            return err_set(e, ERR_USAGE,
                           "--accept, --gamma and --tree are about drafted tokens: which model drafts? --draft NAME");
        return ERR_OK;
    }
    c->accept = option_get(v, "accept");
    if (!c->accept)
        return err_set(e, ERR_USAGE,
                       "--draft: which part of its tokens is kept? --accept 0.8, or by depth 0.9,0.8,0.7");
    if (speculate_accept_parse(c->accept, &d->accept, e) != ERR_OK) return err_prepend(e, "--accept: ");
    if (estimate_draft_load(a, c->draft, target, &c->draft_model, e) != ERR_OK) return err_prepend(e, "--draft: ");
    if (target->diffusion || c->draft_model.diffusion)
        return err_set(e, ERR_USAGE, "--draft: models that settle blocks of tokens are not drafted for");
    d->model = &c->draft_model;
    d->bonus = true;
    d->one_pass = c->draft_model.draft.heads > 0; /* all depths come out of one pass */
    d->prompts = stored_has_cache(&c->draft_model);
    c->draft_kind = strcmp(c->draft, "eagle") == 0 ? EMIT_EAGLE
                    : strcmp(c->draft, "mtp") == 0 ? EMIT_MTP
                    : d->one_pass                  ? EMIT_MEDUSA
                                                   : EMIT_MODEL;
    c->draft_hub = model_hub_id(a, c->draft);
    if (!c->draft_hub) c->draft_hub = emit_source(a, c->draft, EMIT_DRAFT_CHECKPOINT);
    if (!c->draft_hub) return err_nomem(e);
    TRY(option_get(v, "tree") ? open_tree(a, v, c, e) : open_gammas(a, v, d, e));
    c->request.drafting = d;
    return ERR_OK;
}

/* Whether it pays, of the winner. */
static enum err_code pays(struct arena *a, struct plan_case *c, struct err *e)
{
    struct err why = {0};
    if (c->result.best[0].prefill > 0) return ERR_OK;
    if (!c->request.drafting || c->request.aim == PLANNER_JOB) return ERR_OK;
    const enum err_code code = planner_pays(a, &c->request, &c->result.best[0], &c->paying, &why);
    if (code == ERR_NO) c->unpaid = arena_strndup(a, why.text, strlen(why.text));
    return code == ERR_OK || code == ERR_NO ? ERR_OK : err_set(e, code, "%s", why.text);
}

/* -- all -- */

static bool show(void *closure, size_t finished, size_t all)
{
    progress_show(closure, finished, all);
    return !interrupt_pending();
}

/* The cheapest plan that the scheduler agrees with. */
static enum err_code verify(struct arena *a, struct plan_case *c, struct err *e)
{
    struct planner_result *r = &c->result;
    struct progress bar;
    struct interrupt held;
    enum { LEAST = 8 };
    TRY(lengthen(a, c, e));
    const int64_t fit = PLAN_SIMULATIONS * (int64_t)DRAWN * 4 / (int64_t)c->work.n; /* as long in all, of long runs */
    c->simulations = fit < LEAST ? LEAST : fit < PLAN_SIMULATIONS ? fit : PLAN_SIMULATIONS;
    const struct planner_watch watch = {.show = show, .closure = &bar, .most = (size_t)c->simulations};
    interrupt_hold(&held, false);
    progress_start(&bar, "requests of a plan simulated");
    const enum err_code code = c->request.aim == PLANNER_SERVE
                                   ? planner_confirm(a, &c->request, &c->work, &watch, r, &c->confirmed, e)
                                   : planner_confirm_bulk(a, &c->request, &c->work, &watch, r, &c->confirmed, e);
    progress_end(&bar);
    const enum err_code came = interrupt_release(&held);
    TRY(interrupt_relay(code, came, e));
    c->verified = c->confirmed.verified;
    c->refuted = (int64_t)c->confirmed.refuted;
    if (c->confirmed.interrupted)
        return err_set(e, interrupt_relay(ERR_STOPPED, came, NULL),
                       "interrupted: %zu plans were simulated and refuted, and nothing is known of the rest",
                       c->confirmed.refuted);
    if (r->best_n > 0) c->unverified = planner_verifies(&r->best[0]);
    if (c->confirmed.found && c->request.tier_bytes > 0) {
        struct planner_request without = c->request;
        without.tier_bytes = 0;
        TRY(planner_verify(a, &without, &r->best[0], &c->work, &c->tierless, e));
    }
    if (r->best_n > 0 && !c->confirmed.found && !c->unverified && c->request.aim != PLANNER_SERVE)
        c->unverified = c->confirmed.cut ? "too many simulations said no" : "no plan of so many requests a copy";
    return ERR_OK;
}

/* What would cost less and is late on paper, or saturated, by a third of what paper is off at most: of what is farther
 * a simulation refutes most. */
static enum err_code near(struct arena *a, struct plan_case *c, struct err *e)
{
    const struct planner_plan *x = c->result.best_n > 0 ? &c->result.best[0] : NULL;
    const double usd = x ? x->cost.usd_per_h : (double)NAN, part = 1. / 3;
    struct planner_request simulated = c->request;
    size_t requests;
    bool few;
    if (c->request.aim != PLANNER_SERVE || (x && isnan(usd))) return ERR_OK;
    simulated.judged = window_of(c, &requests, &few);
    return planner_near_cheapest(a, &simulated, part, usd, &c->near, &c->has_near, e);
}

static enum err_code search(struct arena *a, struct plan_case *c, struct err *e)
{
    struct progress bar;
    struct interrupt held;
    c->request.progress = show;
    c->request.watching = &bar;
    interrupt_hold(&held, false);
    progress_start(&bar, "parts of the search");
    const enum err_code code = planner_search(a, &c->request, &c->result, e);
    progress_end(&bar);
    const enum err_code came = interrupt_release(&held);
    c->request.progress = NULL;
    return interrupt_relay(code, came, e);
}

/* How far the traffic may rise: simulated where the plan was. */
static enum err_code headroom(struct arena *a, struct plan_case *c, struct err *e)
{
    const struct planner_plan *x = &c->result.best[0];
    struct progress bar;
    struct interrupt held;
    const struct planner_watch watch = {.show = show, .closure = &bar};
    if (c->request.aim == PLANNER_JOB) return ERR_OK;
    if (c->request.aim == PLANNER_DAILY || c->verified.n == 0)
        return planner_headroom(a, &c->request, x, &c->headroom, e);
    interrupt_hold(&held, false);
    progress_start(&bar, "requests of the plan at a higher rate simulated");
    const enum err_code code = planner_headroom_simulated(a, &c->request, x, &c->work, &watch, &c->headroom, e);
    progress_end(&bar);
    return interrupt_relay(code, interrupt_release(&held), e);
}

enum err_code plan_case_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
{
    *c = (struct plan_case){.options = v};
    struct planner_request *q = &c->request;
    if (!option_get(v, "model"))
        return err_set(e, ERR_USAGE, "%s: which model? -m NAME (ridge list models)", v->command->name);
    c->has_emit = option_get(v, "emit") != NULL;
    if (c->has_emit) TRY(emit_find(option_get(v, "emit"), &c->emit, e));
    TRY(option_count(v, "top", 1, 1 << 20, &c->top, e));
    TRY(open_formats(a, v, c, e)); /* a model that is not planned is refused before its traffic is asked for */
    TRY(open_traffic(a, v, c, e));
    TRY(promise(v, "ttft", &q->ttft, e));
    TRY(promise(v, "tpot", &q->tpot, e));
    if (!isnan(q->tpot.s) && !(q->traffic.outputs[q->traffic.n - 1] > 1))
        return err_set(e, ERR_USAGE,
                       "--tpot: every answer %s is one token, which has no time per output token behind it",
                       c->trace ? "of the trace" : "(--generate)");
    TRY(open_draft(a, v, c, e));
    if (c->draft && model_check_context(&c->draft_model, q->traffic.longest_tokens, e) != ERR_OK)
        return err_prepend(e, "--draft: ");
    TRY(open_devices(a, v, c, e));
    TRY(open_choice(a, v, c, e));
    if (c->max_context_tokens > 0 && q->traffic.longest_tokens > c->max_context_tokens)
        return err_set(e, ERR_USAGE, "%s takes %lld tokens, but the longest request has %lld, prompt and answer (%s)",
                       c->model, (long long)(c->max_context_tokens - c->source),
                       (long long)(q->traffic.longest_tokens - c->source),
                       c->trace    ? "of the trace: leave its longer requests out"
                       : c->source ? "of its decoder: what the encoder reads is --source"
                                   : "lengths end with ',max=N'");
    /* a report shows the simulation, so what it recommends has passed it */
    const bool report = strcmp(v->command->name, "report") == 0;
    c->uneven = q->aim != PLANNER_JOB && (c->trace ? !c->drawn : strcmp(c->arrivals, "poisson") != 0);
    /* pools of a cache that binds are some percent better on paper than simulated */
    c->verify = option_get(v, "verify") || q->prefix_cache ||
                ((c->uneven || c->trace || report || q->pools) && q->aim == PLANNER_SERVE);
    for (size_t i = 0; c->has_emit && !report && i < q->formats_n; i++) {
        const struct layout one = layout_whole(NULL);
        const struct emit_plan p = {.layout = one, .kv = c->format[i].kv};
        const struct model *m = c->format[i].model;
        const struct emit_plan of = {
            .layout = one, .encoder = c->source > 0 ? m->family : NULL, .towerless = m->towerless};
        if (emit_refusal(c->emit, &of))
            return err_set(e, ERR_USAGE, "--emit %s: %s", emit_name(c->emit), emit_refusal(c->emit, &of));
        const struct emit_plan drafted = {.layout = one,
                                          .drafting = c->draft_kind,
                                          .draft_tokens = 1,
                                          .draft_nodes = c->tree_depth > 0 ? c->shape.drafted : 0,
                                          .draft_wide = c->tree_wide};
        if (c->draft && emit_refusal(c->emit, &drafted))
            return err_set(e, ERR_USAGE, "--draft %s beside --emit: %s", c->draft, emit_refusal(c->emit, &drafted));
        const struct emit_plan away = {.layout = one, .offload_bytes = c->offload.bytes};
        if (emit_refusal(c->emit, &away))
            return err_set(e, ERR_USAGE, "--cpu-offload-gb beside --emit: %s", emit_refusal(c->emit, &away));
        if (emit_refusal(c->emit, &p))
            return err_set(e, ERR_USAGE, "--kv %s beside --emit: %s", c->format[i].kv, emit_refusal(c->emit, &p));
    }
    TRY(search(a, c, e));
    /* on paper none need keep its promises: paper is off */
    if (c->verify && (c->result.best_n > 0 || q->aim == PLANNER_SERVE)) TRY(verify(a, c, e));
    if (!c->verify) TRY(near(a, c, e));
    if (c->result.best_n == 0) return ERR_OK;
    TRY(pays(a, c, e));
    TRY(plan_hosted_of(a, c, e));
    TRY(headroom(a, c, e));
    /* answers of one token: none has a time behind it, nor a price */
    for (size_t i = 0; i < c->result.best_n && q->traffic.outputs[q->traffic.n - 1] <= 1; i++) {
        c->result.best[i].point.tpot_s = c->result.best[i].point.tpot_mean_s = (double)NAN;
        c->result.best[i].cost.usd_per_mtok_out = (double)NAN;
    }
    return ERR_OK;
}
