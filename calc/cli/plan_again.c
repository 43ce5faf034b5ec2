/* plan_again -- the simulation of a plan as a command line of its own. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/plan_parts.h"

enum { LINE_MOST = 78 };

/* Words of a command, wrapped with a backslash; text NULL: no memory. */
struct words {
    struct arena *arena;
    const char *text;
    size_t column;
};

__attribute__((format(printf, 2, 3))) static void put(struct words *w, const char *fmt, ...)
{
    char word[512]; /* not a unit */
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(word, sizeof word, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof word) w->text = NULL;
    if (!w->text) return;
    const size_t of = strlen(word);
    const bool full = w->column + 1 + of + 2 > LINE_MOST;
    w->text = arena_printf(w->arena, "%s%s%s", w->text, full ? " \\\n      " : *w->text ? " " : "    ", word);
    w->column = full ? 6 + of : w->column + (w->column ? 1 : 4) + of;
}

static void put_option(struct words *w, const char *name, const char *value)
{
    const char *word = value ? emit_quoted(w->arena, value) : NULL;
    if (value && !word) w->text = NULL;
    if (word) put(w, "--%s %s", name, word);
}

/* Options that both commands have and read alike. */
static void put_same(struct words *w, const struct option_values *v)
{
    static const char *const TEXTS[] = {"set",
                                        "what-if",
                                        "activations",
                                        "source",
                                        "cpu-offload-gb",
                                        "host-link",
                                        "max-loras",
                                        "max-lora-rank",
                                        "lora-target-modules",
                                        "loras",
                                        "max-cpu-loras",
                                        "kv-offloading-size",
                                        "gpu-memory-utilization",
                                        "framework"},
                             *const FLAGS[] = {"fully-sharded-loras", "no-towers"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        if (option_given(v, TEXTS[i])) put_option(w, TEXTS[i], option_get(v, TEXTS[i]));
    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
        if (option_given(v, FLAGS[i])) put(w, "--%s", FLAGS[i]);
}

static void put_layout(struct words *w, const struct plan_case *c, const struct planner_plan *x)
{
    const struct layout *l = &x->layout;
    put(w, "-g %s:%lld", c->device[x->device].hw->key, (long long)x->gpus);
    put(w, "--tp %lld", (long long)l->tp);
    if (l->pp > 1) put(w, "--pp %lld", (long long)l->pp);
    if (l->dp > 1) put(w, "--attention-dp %lld", (long long)l->dp);
    if (l->ep > 1) put(w, "--ep %lld", (long long)l->ep);
    if (l->dcp > 1) put(w, "--dcp %lld", (long long)l->dcp);
    if (l->dcp > 1 && l->context_direct) put(w, "--dcp-comm-backend a2a");
    if (x->prefill > 0) {
        const struct planner_link link = planner_link_of(&c->request, x->device, x->gpus);
        put(w, "--policy disagg=%lld:%lld", (long long)x->prefill, (long long)(l->replicas - x->prefill));
        char s[TEXT_NUMBER_MAX];
        if (link.latency_s > 0) put(w, "--kv-latency %.*ss", (int)text_real(s, link.latency_s), s);
    } else if (l->replicas > 1) {
        put(w, "--replicas %lld", (long long)l->replicas);
    }
    if (l->replicas > 1) put(w, "--route least-loaded");
}

/* What comes, as it was simulated; times are of those that were judged. */
static void put_requests(struct words *w, const struct plan_case *c)
{
    const struct planner_request *q = &c->request;
    if (c->trace) {
        put_option(w, "trace", c->trace);
        if (option_given(c->options, "rate")) put_option(w, "rate", option_get(c->options, "rate"));
    } else {
        put_option(w, "rate", option_get(c->options, "rate"));
        if (strcmp(c->arrivals, "poisson") != 0) put_option(w, "arrivals", c->arrivals);
        if (!(c->period_s > 0)) put(w, "--exact-rate");
        put(w, "--requests %zu", c->work.n);
        if (q->judged.end > 0) put(w, "--judge %zu..%zu", q->judged.first + 1, q->judged.end);
        put_option(w, "prompt", c->prompt);
        put_option(w, "generate", c->generate);
        if (option_given(c->options, "seed")) put_option(w, "seed", option_get(c->options, "seed"));
    }
    put(w, "--max-model-len %lld", (long long)(q->traffic.longest_tokens - c->source));
    if (c->truncated > 0) put(w, "--truncate");
    if (q->prefix_cache) put(w, "--prefix-cache");
}

static void put_times(struct words *w, const struct plan_case *c, const struct planner_plan *x)
{
    const struct planner_request *q = &c->request;
    char s[TEXT_NUMBER_MAX];
    const bool one = q->server && engine_measured_on(q->server, c->device[x->device].hw) &&
                     fabs(c->verified.band / q->server->slow_p90[engine_has_experts(q->format[0].model)] - 1) < 1e-12;
    if (c->server) put_option(w, "server", c->server);
    if (!q->server)
        put(w, "--fidelity %s",
            q->fidelity == PLANNER_CALIBRATED ? "calibrated"
            : q->fidelity == PLANNER_ROOFLINE ? "roofline"
                                              : "bound");
    if (c->device[x->device].efficiency) put_option(w, "efficiency", c->device[x->device].efficiency);
    if (q->p90 && one)
        put(w, "--band p90");
    else if (q->fidelity == PLANNER_CALIBRATED && c->verified.band > 0 && fabs(c->verified.band - 1) > 0)
        put(w, "--band %.*s", (int)text_real(s, c->verified.band), s);
}

static void put_draft(struct words *w, const struct plan_case *c, const struct planner_plan *x)
{
    if (x->gamma <= 0) return;
    put_option(w, "draft", c->draft);
    put_option(w, "accept", c->accept);
    if (c->drafting.shape)
        put_option(w, "tree", option_get(c->options, "tree"));
    else
        put(w, "--gamma %lld", (long long)x->gamma);
}

/* What the other command has no option for; NULL: nothing. */
static const char *cannot(const struct plan_case *c, const struct planner_plan *x)
{
    static const char *const ONLY[] = {"fabric", "latency", "fabric-latency", "dispatch", "skew", "microbatches", "sp"};
    static const char text[] = "an option of this plan about its layout (--fabric, --latency, --dispatch, --skew, ...)";
    for (size_t i = 0; i < sizeof ONLY / sizeof *ONLY; i++)
        if (option_given(c->options, ONLY[i])) return text;
    if (option_given(c->options, "nodes") && x->gpus > c->device[x->device].per_node) return "so many nodes (--nodes)";
    if (x->gamma > 0 && (x->layout.dp > 1 || x->layout.ep > 1))
        return "drafts beside attention groups or experts in parts";
    if (c->request.fidelity != PLANNER_CALIBRATED && layout_group(&x->layout) * x->layout.pp > 1)
        return "floors with NCCL's latency among ranks in them";
    return NULL;
}

enum err_code plan_again(struct arena *a, const struct plan_case *c, const char **line, const char **why, struct err *e)
{
    const struct planner_request *q = &c->request;
    const struct planner_plan *x = &c->result.best[0];
    struct words w = {.arena = a, .text = ""};
    *line = "";
    *why = NULL;
    if (q->aim != PLANNER_SERVE || c->verified.n == 0) return ERR_OK;
    *why = cannot(c, x);
    if (*why) return ERR_OK;
    const struct planner_format *f = &c->format[x->format];
    const int64_t most = x->step_tokens / planner_judged(q, x->gamma), groups = x->layout.dp > 1 ? x->layout.dp : 1;
    put(&w, "ridge simulate");
    const char *model = emit_quoted(a, option_get(c->options, "model"));
    if (!model) return err_nomem(e);
    put(&w, "-m %s", model);
    put_layout(&w, c, x);
    if (f->weights) put_option(&w, "weights", f->weights);
    if (f->kv) put_option(&w, "kv", f->kv);
    put_requests(&w, c);
    put(&w, "--max-num-seqs %lld", (long long)(x->seqs < most ? x->seqs : most));
    put(&w, "--max-num-batched-tokens %lld", (long long)x->step_tokens);
    if (x->layout.ep > 1 || x->layout.dp > 1) put(&w, "--pool ideal");
    put(&w, "--num-gpu-blocks-override %lld", (long long)(c->verified.blocks / groups));
    put_same(&w, c->options);
    put_draft(&w, c, x);
    put_times(&w, c, x);
    if (!w.text) return err_nomem(e);
    *line = arena_printf(a, "%s\n", w.text);
    return *line ? ERR_OK : err_nomem(e);
}
