/* simulate_request -- the options of `ridge simulate` as a workload, a scheduler and a cache. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/scope.h"
#include "calc/cli/simulate.h"
#include "calc/cli/transfers.h"
#include "calc/serve/paged.h"
#include "calc/serve/planner.h"
#include "calc/serve/planner_verify.h"

/* One of n words, by its place. */
static enum err_code word(const char *text, const char *name, const char *const *words, size_t n, int *out,
                          struct err *e)
{
    char all[160] = "", clean[64];
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = (int)i;
            return ERR_OK;
        }
        (void)strncat(all, i == 0 ? "" : i + 1 == n ? " or " : ", ", sizeof all - strlen(all) - 1);
        (void)strncat(all, words[i], sizeof all - strlen(all) - 1);
    }
    return err_set(e, ERR_USAGE, "--%s is %s, not '%s'", name, all,
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

#define WORD(text, name, out, e, ...)                                                                                  \
    word((text), (name), (const char *const[]){__VA_ARGS__},                                                           \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), (out), (e))

/* A device without a number is one GPU, and pools have a copy each at least. */
static enum err_code check_pools(const struct option_values *v, const struct simulate_case *c, struct err *e)
{
    const char *gpu = option_get(v, "gpu");
    const int64_t tp = c->request.layout.layout.tp, dp = c->request.layout.layout.dp;
    const int64_t copies = c->setup.pools.prefill + c->decoders;
    char clean[64];
    if (c->setup.pools.prefill < 1 || !gpu || strchr(gpu, ':')) return ERR_OK;
    const long long need = (long long)(copies * (tp > 0 ? tp : 1) * (dp > 0 ? dp : 1));
    (void)text_clean(clean, sizeof clean, gpu, strlen(gpu));
    if (copies == 2)
        return err_set(e, ERR_USAGE, "two pools of one copy need %lld GPUs: -g %s:%lld", need, clean, need);
    return err_set(e, ERR_USAGE, "pools of %lld and %lld copies need %lld GPUs: -g %s:%lld",
                   (long long)c->setup.pools.prefill, (long long)c->decoders, need, clean, need);
}

/* ---- model ---- */

/* What servers do with prompts of a decoder alone. */
static enum err_code check_source(const struct option_values *v, const struct simulate_case *c, struct err *e)
{
    static const char *const OF_DECODERS[] = {"prefix-cache", "kv-offloading-size", "enable-hierarchical-cache",
                                              "shared-prefix", "turns"};
    const struct model *m = &c->of.model;
    if (c->server_text)
        TRY(model_refuse_encoder(m, "steps of a server with one are not measured (--server none: floors)", e));
    if (c->setup.pools.prefill > 0)
        TRY(model_refuse_encoder(m, "no engine is known to send its caches between pools (--policy disagg)", e));
    for (size_t i = 0; i < sizeof OF_DECODERS / sizeof *OF_DECODERS; i++)
        if (option_given(v, OF_DECODERS[i]) && m->encoder.layers > 0)
            return err_set(e, ERR_USAGE, "%s has an encoder, and engines share no prompts of one (--%s)", m->name,
                           OF_DECODERS[i]);
    return ERR_OK;
}

static enum err_code open_model(struct arena *a, const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct estimate_request *q = &c->request;
    int fidelity;
    *q = (struct estimate_request){.options = v, .engine = true, .simulated = true};
    if (v->operands_n)
        return err_set(e, ERR_USAGE, "simulate: '%.60s' belongs to no option (the model goes after -m)",
                       v->operands[0]);
    if (!option_get(v, "model")) return err_set(e, ERR_USAGE, "simulate: which model? -m NAME (ridge list models)");
    TRY(scope_settings(a, option_get(v, "set"), &q->set, &q->set_n, e));
    if (!option_get(v, "gpu")) return err_set(e, ERR_USAGE, "simulate: which GPUs? -g NAME[:N] (ridge list hardware)");
    TRY(option_count(v, "source", 1, WORKLOAD_TOKENS_MAX, &q->source_tokens, e));
    TRY(option_count(v, "tp", 1, 1 << 12, &q->layout.layout.tp, e));
    TRY(option_count(v, "pp", 1, 1 << 12, &q->layout.layout.pp, e));
    TRY(option_count(v, "ep", 1, 1 << 12, &q->layout.layout.ep, e));
    TRY(option_count(v, "attention-dp", 1, 1 << 12, &q->layout.layout.dp, e));
    TRY(layout_options_context(v, &q->layout, e));
    TRY(option_count(v, "replicas", 1, SIMULATE_REPLICAS_MAX, &q->layout.layout.replicas, e));
    TRY(estimate_block_tokens(v, &q->block_tokens, e));
    q->layout.layout.skew = 1;
    if (c->setup.pools.prefill > 0) {
        if (option_given(v, "replicas"))
            return err_set(e, ERR_USAGE,
                           "--policy disagg=P:D says how many replicas there are; --replicas cannot stand "
                           "beside it");
        q->layout.layout.replicas = c->setup.pools.prefill + c->decoders;
    }
    q->what_if = option_get(v, "what-if");
    q->weights = option_get(v, "weights");
    q->kv = option_get(v, "kv");
    q->activations = option_get(v, "activations");
    TRY(WORD(option_get(v, "fidelity"), "fidelity", &fidelity, e, "bound", "roofline", "calibrated"));
    q->calibrated = fidelity == 2 && !c->server_text; /* a server's steps are: by its own */
    q->fidelity = fidelity == 2 ? (c->server_text ? STEP_ROOFLINE : STEP_BOUND) : (enum step_fidelity)fidelity;
    q->efficiency = option_get(v, "efficiency");
    q->framework = option_get(v, "framework");
    if (c->server_text && ((option_given(v, "fidelity") && fidelity != 2) || q->framework || q->efficiency))
        return err_set(e, ERR_USAGE, "--server says how steps are timed, calibrated; --%s cannot stand beside it",
                       q->framework    ? "framework"
                       : q->efficiency ? "efficiency"
                                       : "fidelity roofline or bound");
    if (!q->calibrated && (q->efficiency || q->framework))
        return err_set(e, ERR_USAGE, "--%s says how times are calibrated; it needs --fidelity calibrated",
                       q->efficiency ? "efficiency" : "framework");
    TRY(WORD(option_get(v, "pool"), "pool", &fidelity, e, "engine", "ideal"));
    c->pool = option_get(v, "pool");
    q->engine = fidelity == 0;
    TRY(offload_options_parse(v, &q->offload, e));
    TRY(lora_options_parse(v, 0, &q->adapters, e));
    q->towerless = option_get(v, "no-towers") != NULL;
    TRY(estimate_conventions_text(a, q, e));
    TRY(estimate_drafting_parse(v, q, e));
    if (q->drafting.draft && q->drafting.gamma == 0 && !q->drafting.has_tree)
        return err_set(e, ERR_USAGE,
                       "--draft: an engine drafts a number of tokens that is set before it starts: --gamma N, or a "
                       "tree of them: --tree 4x2x1");
    if (q->drafting.draft && c->setup.policy == SIMULATE_STATIC)
        return err_set(e, ERR_USAGE, "--draft beside --policy static is not described");
    if (q->drafting.tp > 0 && c->server_text)
        return err_set(e, ERR_USAGE,
                       "--draft-tp: a server's draft is on the model's GPUs, where it divides among them");
    q->prefill_together = q->drafting.draft != NULL; /* a draft computes the prompts of a step together */
    TRY(check_pools(v, c, e));
    TRY(estimate_case_open(a, q, option_get(v, "model"), option_get(v, "gpu"), &c->of, e));
    TRY(check_source(v, c, e));
    if (c->of.replicas > SIMULATE_REPLICAS_MAX)
        return err_set(e, ERR_USAGE, "%lld copies: up to %d can be simulated", (long long)c->of.replicas,
                       SIMULATE_REPLICAS_MAX);
    return ERR_OK;
}

static enum err_code load_server(struct arena *a, const struct option_values *v, struct simulate_case *c, struct err *e)
{
    const char *text = option_get(v, "server");
    if (!text || strcmp(text, "none") == 0) return ERR_OK;
    c->server_text = text;
    if (engine_load_version(a, c->server_text, &c->engine, &c->setup.overlapped, e) != ERR_OK)
        return err_prepend(e, "--server, a name or none: ");
    return ERR_OK;
}

/* One stage without a draft, as it is in itself. */
static enum err_code open_server(struct arena *a, struct simulate_case *c, struct err *e)
{
    const struct step_setup setup = {.model = &c->of.model,
                                     .hw = &c->of.hw,
                                     .layout = c->of.layout,
                                     .block_tokens = c->request.block_tokens,
                                     .offload = c->of.offload};
    TRY(engine_case_open(a, &c->engine, &setup, &c->server, e));
    c->setup.server = &c->server;
    return ERR_OK;
}

/* ---- scheduler ---- */

static enum err_code open_policy(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    static const char CHUNKED[] = "chunked=", DISAGG[] = "disagg=";
    struct simulate_setup *s = &c->setup;
    const char *text = c->policy = option_get(v, "policy");
    if (c->server_text && !option_given(v, "policy")) text = c->policy = c->engine.mixed ? "chunked" : "fcfs";
    char clean[64];
    if (strncmp(text, CHUNKED, sizeof CHUNKED - 1) == 0) {
        s->policy = SIMULATE_CHUNKED;
        if (units_parse_count(text + sizeof CHUNKED - 1, 1, WORKLOAD_TOKENS_MAX, &s->budget_tokens, e) != ERR_OK)
            return err_prepend(e, "--policy: ");
        return ERR_OK;
    }
    if (strncmp(text, DISAGG, sizeof DISAGG - 1) == 0) {
        s->policy = SIMULATE_CHUNKED;
        return simulate_moves_parse(text + sizeof DISAGG - 1, c, e);
    }
    s->policy = strcmp(text, "fcfs") == 0     ? SIMULATE_FCFS
                : strcmp(text, "static") == 0 ? SIMULATE_STATIC
                                              : SIMULATE_CHUNKED;
    if (s->policy != SIMULATE_CHUNKED || strcmp(text, "chunked") == 0) return ERR_OK;
    return err_set(e, ERR_USAGE, "--policy is chunked, chunked=TOKENS, fcfs, static or disagg=P:D, not '%s'",
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

/* What the engine starts with, where nothing was said. */
static enum err_code open_limits(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct simulate_setup *s = &c->setup;
    const struct pool_request *r = &c->of.engine.request;
    const bool engine = c->request.engine;
    int64_t budget = c->server_text ? c->engine.budget_tokens : engine ? r->max_num_batched_tokens : 8192;
    s->max_seqs = engine ? r->max_num_seqs : 256;
    s->max_len_tokens =
        engine && r->max_model_len_tokens > 0 ? r->max_model_len_tokens : c->of.model.max_context_tokens;
    TRY(option_count(v, "max-num-seqs", 1, 1 << 20, &s->max_seqs, e));
    TRY(option_count(v, "max-num-batched-tokens", 1, WORKLOAD_TOKENS_MAX, &budget, e));
    TRY(option_count(v, "max-model-len", 1, WORKLOAD_TOKENS_MAX, &s->max_len_tokens, e));
    const int64_t ahead = model_source_ahead(&c->of.model);
    if (option_given(v, "max-model-len") || !engine) s->max_len_tokens += s->max_len_tokens > 0 ? ahead : 0;
    if (s->max_len_tokens < 1) s->max_len_tokens = WORKLOAD_TOKENS_MAX;
    if (s->budget_tokens > 0 && option_given(v, "max-num-batched-tokens"))
        return err_set(e, ERR_USAGE, "--policy chunked=N and --max-num-batched-tokens say the same");
    const int64_t groups = layout_whole(&c->of.layout).dp;
    if (s->budget_tokens == 0) s->budget_tokens = budget;
    if (ahead > 0 && s->policy == SIMULATE_CHUNKED && s->budget_tokens <= ahead)
        return err_set(e, ERR_USAGE,
                       "a step of %lld tokens is too small for a source of %lld: engines encode it whole "
                       "(--max-num-batched-tokens)",
                       (long long)s->budget_tokens, (long long)ahead);
    if (groups > 1) { /* each has its own */
        s->groups = groups;
        s->budget_tokens *= groups;
        s->max_seqs *= groups;
    }
    const struct estimate_drafting *d = &c->request.drafting;
    const int64_t room = s->budget_tokens / (d->draft ? speculate_judged(&c->of.speculation, d->gamma) : 1);
    if (s->policy == SIMULATE_CHUNKED && s->max_seqs > room) {
        if (option_given(v, "max-num-seqs"))
            return err_set(e, ERR_USAGE, "a step of %lld tokens is too small for --max-num-seqs %lld",
                           (long long)s->budget_tokens, (long long)s->max_seqs);
        if (room < 1)
            return err_set(e, ERR_USAGE, "a step of %lld tokens is too small for a draft of %lld",
                           (long long)s->budget_tokens, (long long)speculate_drafted(&c->of.speculation, d->gamma));
        s->max_seqs = room;
    }
    return ERR_OK;
}

static enum err_code open_memory(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct simulate_setup *s = &c->setup;
    int memory;
    c->memory = option_get(v, "memory");
    TRY(WORD(c->memory, "memory", &memory, e, "paged", "contiguous", "contiguous=max", "contiguous=pow2",
             "contiguous=exact"));
    s->memory = memory == 0 ? SIMULATE_PAGED : memory < 3 ? SIMULATE_REGION_MAX : (enum simulate_memory)(memory - 1);
    s->prefix_cache = option_get(v, "prefix-cache") != NULL;
    s->watermark_frac = s->policy == SIMULATE_FCFS ? .01 : 0;
    return option_real(v, "watermark", 0, .999, &s->watermark_frac, e);
}

static enum err_code open_draft(struct simulate_case *c, struct err *e)
{
    const struct estimate_drafting *d = &c->request.drafting;
    struct simulate_setup *s = &c->setup;
    if (!d->draft) return ERR_OK;
    int64_t longest = 0;
    for (size_t i = 0; i < c->work.n; i++) {
        const int64_t all = (int64_t)c->work.request[i].prompt_tokens + c->work.request[i].output_tokens;
        if (all <= s->max_len_tokens && all > longest) longest = all; /* longer ones are refused */
    }
    if (model_check_context(&c->of.draft, longest, e) != ERR_OK) return err_prepend(e, "--draft: ");
    if (s->memory != SIMULATE_PAGED) return err_set(e, ERR_USAGE, "--draft needs a paged cache");
    if (step_state_bytes_per_sequence(c->of.speculation.draft) > 0)
        return err_set(e, ERR_USAGE,
                       "--draft: %s keeps recurrent states, and how an engine drafts with them is not known",
                       c->of.draft.name);
    s->draft = (struct simulate_draft){.of = &c->of.speculation,
                                       .gamma = d->has_tree ? d->tree.depth : d->gamma,
                                       .prompts = step_kv_bytes_per_token(c->of.speculation.draft) > 0,
                                       .kv_bytes_per_token = step_kv_bytes_per_token(c->of.speculation.draft),
                                       .seed = c->trace ? 1 : c->spec.seed}; /* of plans */
    return ERR_OK;
}

/* Tokens that the memory left over by weights, the largest step's activations and states holds. */
static enum err_code open_ideal(struct arena *a, struct simulate_case *c, struct err *e)
{
    const struct estimate_case *of = &c->of;
    struct simulate_setup *s = &c->setup;
    struct mix x;
    double v[MIX_VALUES_N], tokens;
    char more[UNITS_TEXT_MAX];
    TRY(mix_open(a, of->mix_plan, &x, e));
    mix_prefill(&x, 1, (double)s->budget_tokens, 0);
    mix_eval(&x, v);
    const struct step *draft = c->request.drafting.draft ? of->speculation.draft : NULL;
    double least = (double)INFINITY;
    for (size_t i = 0; i < step_stages(of->step); i++) { /* the fullest stage has the fewest */
        const struct step_stage g = step_stage_of(of->step, i);
        const double token = g.kv_bytes_per_token + (draft && g.last ? step_kv_bytes_per_token(draft) : 0);
        const double pool_bytes = of->capacity_bytes - (draft && g.last ? step_weight_bytes(draft) : 0) -
                                  g.weight_bytes - g.beside_bytes - v[MIX_activation_bytes] -
                                  g.state_bytes_per_sequence * (double)s->max_seqs;
        if (!(pool_bytes > 0))
            return err_set(e, ERR_NO, "does not fit: weights, activations and states need %s more than one GPU has",
                           units_format_bytes(more, -pool_bytes));
        tokens = token > 0 ? pool_bytes / token * (double)(s->groups > 1 ? s->groups : 1)
                           : (double)s->max_seqs * (double)s->max_len_tokens;
        if (i > 0 && !(tokens < least)) continue;
        least = tokens;
        c->pool_bytes = pool_bytes;
    }
    s->blocks = (int64_t)fmin(least / (double)s->block_tokens, PAGED_BLOCKS_MAX);
    return s->blocks > 0 ? ERR_OK : err_set(e, ERR_NO, "does not fit: not one block of the cache");
}

static enum err_code open_pool(struct arena *a, struct simulate_case *c, struct err *e)
{
    struct simulate_setup *s = &c->setup;
    const struct estimate_engine *g = &c->of.engine;
    s->block_tokens = c->request.block_tokens * c->of.layout.dcp;
    if (!c->request.engine) return open_ideal(a, c, e);
    if (g->refusal[0]) return err_set(e, ERR_NO, "the engine %s", g->refusal); /* "refuses to start: ..." */
    c->pool_bytes = g->pool.pool_bytes;
    s->block_tokens = g->pool.block_tokens;
    s->blocks = g->pages ? g->pool.tokens / s->block_tokens : g->pool.blocks;
    if (s->blocks > PAGED_BLOCKS_MAX) s->blocks = PAGED_BLOCKS_MAX;
    return ERR_OK;
}

/* A cache of so many blocks. */
static enum err_code open_blocks(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct simulate_setup *s = &c->setup;
    const int64_t groups = s->groups > 1 ? s->groups : 1;
    int64_t blocks = 0;
    if (!option_given(v, "num-gpu-blocks-override")) return ERR_OK;
    TRY(option_count(v, "num-gpu-blocks-override", 1, PAGED_BLOCKS_MAX / groups, &blocks, e));
    c->pool_bytes *= (double)(blocks * groups) / (double)s->blocks;
    s->blocks = blocks * groups;
    return ERR_OK;
}

/* Sequences that memory allows, as ridge plan counts them. */
static enum err_code batch_of(struct simulate_case *c, const struct planner_traffic *t, double *out, struct err *e)
{
    const struct simulate_setup *s = &c->setup;
    double of[STEP_VALUES_N];
    TRY(step_eval_layout(c->of.step, NULL, 1, 1, ceil(t->context_tokens) + (double)s->block_tokens / 2, 1, of, e));
    const double bytes = of[STEP_kv_bytes] + of[STEP_state_bytes];
    *out = fmin(bytes > 0 ? fmax(1, floor(c->pool_bytes / bytes)) : (double)s->max_seqs, (double)s->max_seqs);
    return ERR_OK;
}

/* Whether a plan's clock has the times. */
static bool planned(const struct simulate_case *c)
{
    return c->server_text && (c->request.drafting.draft || layout_whole(&c->of.layout).pp > 1);
}

/* Stages and drafts beside a server's steps, by the clock of a plan of the same layout (planner_times_of). */
static enum err_code open_planned(struct arena *a, struct simulate_case *c, struct err *e)
{
    const struct estimate_case *of = &c->of;
    const struct estimate_drafting *d = &c->request.drafting;
    struct simulate_setup *s = &c->setup;
    struct layout_request latency = c->request.layout;
    layout_options_latency(&latency, &of->hw);
    const struct planner_device device = {.hw = &of->hw,
                                          .price = price_of(NULL, &of->hw),
                                          .most = of->gpus,
                                          .per_node = layout_whole(&of->layout).per_node,
                                          .latency = latency.latency,
                                          .offload = of->offload,
                                          .host_bytes_per_s = (double)NAN};
    const struct planner_format format = {.model = &of->model};
    const int64_t gamma = d->has_tree ? d->tree.depth : d->gamma;
    const struct planner_drafting drafting = {.model = &of->draft,
                                              .accept = d->accept,
                                              .bonus = of->speculation.bonus,
                                              .one_pass = of->speculation.one_pass,
                                              .prompts = s->draft.prompts,
                                              .gamma = &gamma,
                                              .gamma_n = 1,
                                              .shape = of->speculation.shape};
    struct planner_request q = {.device = &device,
                                .devices_n = 1,
                                .format = &format,
                                .formats_n = 1,
                                .drafting = d->draft ? &drafting : NULL,
                                .aim = PLANNER_SERVE,
                                .ttft = {(double)NAN, .95},
                                .tpot = {(double)NAN, .95},
                                .fidelity = PLANNER_CALIBRATED,
                                .p90 = c->p90,
                                .server = &c->engine,
                                .overlapped = s->overlapped,
                                .utilization_frac = (double)NAN};
    struct planner_plan plan = {.layout = of->layout, .gamma = d->draft ? gamma : 0};
    struct planner_times t;
    if (d->draft && layout_whole(&of->layout).pp > 1)
        return err_set(
            e, ERR_USAGE,
            "no engine that is released drafts beside stages, but for an experiment of SGLang's, so there are "
            "no times of a server (--server none: floors)");
    TRY(planner_traffic_of(a, &c->work, 1, &q.traffic, e));
    TRY(batch_of(c, &q.traffic, &plan.batch_most, e));
    TRY(planner_times_of(a, &q, &plan, &t, e));
    s->plan = t.plan;
    s->server = t.server;
    s->overlapped = t.overlapped;
    s->slower = t.slower;
    if (t.draft) s->draft.of = t.draft;
    return ERR_OK;
}

/* What a band is at: means of a sequence, of several answers to a prompt as of one. */
static enum err_code sequences(struct arena *a, const struct simulate_case *c, struct planner_traffic *out,
                               struct err *e)
{
    struct workload one = c->work;
    one.samples = 1;
    return planner_traffic_of(a, &one, 1, out, e);
}

/* A number of times the median; false: the text is none. */
static bool times_median(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0';
}

/* How much slower than predicted nine of ten services are at most: of a server's steps what was measured (engine_band),
 * else the band of steps, at the batch that memory allows, as ridge plan has it. */
static enum err_code open_band(struct arena *a, const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct simulate_setup *s = &c->setup;
    struct planner_traffic t;
    double batch;
    int p90 = 0;
    const char *band = option_get(v, "band");
    double factor;
    if (times_median(band, &factor)) {
        if (!(factor >= .01 && factor <= 100)) /* not a unit */
            return err_set(e, ERR_USAGE, "--band %.40s: wanted p50, p90 or times of the median from 0.01 to 100", band);
        c->factor = band;
    } else {
        TRY(WORD(band, "band", &p90, e, "p50", "p90"));
        c->p90 = p90 == 1;
    }
    if (option_given(v, "band") && !c->request.calibrated && !c->server_text)
        return err_set(e, ERR_USAGE, "--band is of calibrated times: it needs --fidelity calibrated or --server%s",
                       option_given(v, "server") ? " NAME, not none" : "");
    if (planned(c)) TRY(open_planned(a, c, e));
    if (c->factor) s->slower = factor;
    if (c->factor || planned(c) || !c->p90) return ERR_OK;
    TRY(sequences(a, c, &t, e));
    TRY(batch_of(c, &t, &batch, e));
    s->slower = c->server_text ? engine_band(&c->server, batch, t.context_tokens, t.prompt_tokens)
                               : calibrated_band(c->of.calibrated, batch, t.context_tokens, t.prompt_tokens);
    return isnan(s->slower) ? err_set(e, ERR_INPUT, "%s: errors: no \"slow_p90\", so there is no P90", c->engine.file)
                            : ERR_OK;
}

enum err_code simulate_case_open(struct arena *a, const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct simulate_setup *s = &c->setup;
    int route;
    *c = (struct simulate_case){.options = v};
    TRY(load_server(a, v, c, e));
    TRY(open_policy(v, c, e));
    TRY(open_model(a, v, c, e));
    TRY(simulate_work_open(a, v, c, e));
    TRY(open_limits(v, c, e));
    if (option_given(v, "truncate")) workload_truncate(&c->work, c->setup.max_len_tokens);
    TRY(open_memory(v, c, e));
    TRY(open_pool(a, c, e));
    TRY(open_blocks(v, c, e));
    TRY(simulate_moves_open(v, c, e));
    TRY(open_draft(c, e));
    c->route = option_get(v, "route");
    TRY(WORD(c->route, "route", &route, e, "round-robin", "least-loaded", "prefix"));
    s->route = (enum simulate_route)route;
    if (s->route == SIMULATE_PREFIX && !s->prefix_cache)
        return err_set(e, ERR_USAGE, "--route prefix looks for cached prefixes: it needs --prefix-cache");
    TRY(option_time(v, "overhead", &s->overhead_s, e));
    s->work = &c->work;
    if (c->server_text && !planned(c)) TRY(open_server(a, c, e));
    s->fronted = c->server_text != NULL;
    if (c->server_text) c->moved = engine_device_note(a, &c->engine, &c->of.hw);
    s->plan = s->server ? c->server.bound : c->of.mix_plan;
    s->calibrated = c->of.calibrated;
    s->replicas = c->of.replicas;
    if (c->server_text || c->request.calibrated)
        TRY(transfer_text(a, &c->of.hw, c->request.efficiency, c->server_text ? c->engine.name : c->request.framework,
                          &c->transfer, e));
    return open_band(a, v, c, e);
}
