#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"
#include "calc/cli/estimate.h"
#include "calc/cli/scope.h"

/* An option with named values; *out is the index of the one given. */
static enum err_code choose(const struct option_values *v, const char *name, const char *const *names, size_t n,
                            int *out, struct err *e)
{
    const char *text = option_get(v, name);
    char all[160] = "";
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (int)i;
            return ERR_OK;
        }
        const size_t at = strlen(all);
        (void)snprintf(all + at, sizeof all - at, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", names[i]);
    }
    return err_set(e, ERR_USAGE, "--%s is %s, not '%.40s'", name, all, text);
}

#define CHOOSE(v, name, out, e, ...)                                                                                   \
    choose((v), (name), (const char *const[]){__VA_ARGS__},                                                            \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), (out), (e))

static enum err_code parse_conventions(struct arena *a, const struct option_values *v, struct estimate_request *q,
                                       struct err *e)
{
    int causal, embed, mlp, head, prefill;
    TRY(CHOOSE(v, "causal", &causal, e, "half", "full"));
    TRY(CHOOSE(v, "embedding", &embed, e, "gathered", "full"));
    TRY(CHOOSE(v, "mlp", &mlp, e, "separate", "fused"));
    TRY(CHOOSE(v, "lm-head", &head, e, "last", "all"));
    TRY(CHOOSE(v, "prefill", &prefill, e, "one", "together"));
    struct cost_conventions *k = &q->conventions;
    *k = cost_conventions_of(q->course);
    TRY(estimate_switches_like(v, q, e));
    if (option_given(v, "causal")) k->causal_full = causal == 1;
    if (option_given(v, "embedding")) k->embed_full_table = embed == 1;
    if (option_given(v, "mlp")) k->mlp_fused = mlp == 1;
    if (option_given(v, "lm-head")) k->head_all = head == 1;
    TRY(estimate_switches_parse(v, q, e));
    q->prefill_together = prefill == 1;
    return estimate_conventions_text(a, q, e);
}

enum err_code estimate_conventions_text(struct arena *a, struct estimate_request *q, struct err *e)
{
    const struct cost_conventions *k = &q->conventions;
    const char *more = estimate_switches_text(a, q);
    if (!more) return err_nomem(e);
    const char *text = arena_printf(a, "%s%s%s%s%s%s%s%s%s%s%s%s", k->causal_full ? " causal=full" : "",
                                    k->embed_full_table ? " embedding=full" : "", k->mlp_fused ? " mlp=fused" : "",
                                    k->head_all ? " lm-head=all" : "", k->norms_uncounted ? " norms=uncounted" : "",
                                    k->activations_uncounted ? " memory=weights+cache" : "",
                                    q->prefill_together ? " prefill=together" : "", q->uncached ? " kv=none" : "",
                                    q->chunk ? " prefill=pieces" : "", q->averaged ? " context=mean" : "",
                                    q->drafting.draft && !q->drafting.bonus ? " bonus=none" : "", more);
    if (!text) return err_nomem(e);
    q->conventions_text = *text ? text + 1 : "default";
    return ERR_OK;
}

enum { BATCH_MAX = 1 << 24, TOKENS_MAX = 1 << 30 };

static enum err_code range(struct arena *a, const struct option_values *v, const char *name, int64_t hi,
                           const int64_t **out, size_t *n, struct err *e)
{
    const char *text = option_get(v, name);
    *n = 0;
    if (!text) return ERR_OK;
    if (units_parse_range(a, text, 1, hi, out, n, e) != ERR_OK) return err_prepend(e, "--%s: ", name);
    return ERR_OK;
}

static enum err_code no_workload(struct arena *a, const char *name, struct err *e)
{
    static const char UNDER[] = "configs/workloads/";
    size_t n;
    char near[200] = "";
    const struct embed_file *f = embed_under(UNDER, &n);
    const char **names = arena_array(a, n + 1, sizeof *names);
    if (!names) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const char *base = f[i].path + sizeof UNDER - 1;
        const size_t len = strlen(base);
        names[i] = arena_strndup(a, base, len > 5 ? len - 5 : len); /* without .json */
        if (!names[i]) return err_nomem(e);
    }
    text_suggest(near, sizeof near, name, names, sizeof *names, n);
    return err_set(e, ERR_USAGE, "--workload: no workload '%.40s' (ridge list workloads), and no file of that name%s",
                   name, near);
}

/* Members that are not known are refused, so that a misspelt one is not lost. */
static enum err_code check_workload(const struct json *j, struct err *e)
{
    static const char *const KNOWN[] = {"description", "prompt_tokens", "generate_tokens", "prompt", "generate",
                                        "arrivals",    "rate_per_s",    "source",          "note"};
    const char *key;
    char clean[80], near[160];
    struct json item;
    if (!json_is_object(j)) return json_want(j, "an object with prompt_tokens and generate_tokens", e);
    for (size_t i = 0; json_at(j, i, &key, &item); i++) {
        size_t k = 0;
        while (k < sizeof KNOWN / sizeof *KNOWN && strcmp(key, KNOWN[k]) != 0) k++;
        if (k < sizeof KNOWN / sizeof *KNOWN) continue;
        text_suggest(near, sizeof near, key, KNOWN, sizeof *KNOWN, sizeof KNOWN / sizeof *KNOWN);
        return err_set(e, ERR_INPUT, "%s: %s: no member of a workload%s", j->file,
                       text_clean(clean, sizeof clean, key, strlen(key)), near);
    }
    return ERR_OK;
}

enum err_code estimate_workload_open(struct arena *a, const char *name, struct json *out, struct err *e)
{
    const size_t len = strlen(name);
    if (strchr(name, '/') || (len > 5 && strcmp(name + len - 5, ".json") == 0)) {
        TRY(json_load(a, name, out, e));
        return check_workload(out, e);
    }
    const char *path = arena_printf(a, "configs/workloads/%s.json", name);
    const struct embed_file *f = path ? embed_find(path) : NULL;
    if (!f) return no_workload(a, name, e);
    return json_parse(a, f->path, (const char *)f->bytes, f->size, out, e);
}

/* A workload's tokens in and out, from a built-in name or a file. */
static enum err_code read_workload(struct arena *a, const char *name, struct estimate_request *q, struct err *e)
{
    static const char *const KEYS[] = {"prompt_tokens", "generate_tokens"};
    struct json j, item;
    int64_t *tokens = arena_array(a, 2, sizeof *tokens);
    if (!tokens) return err_nomem(e);
    TRY(estimate_workload_open(a, name, &j, e));
    for (size_t i = 0; i < 2; i++) {
        if (!json_get(&j, KEYS[i], &item)) return err_set(e, ERR_INPUT, "%s: %s is missing", j.file, KEYS[i]);
        TRY(json_int(&item, 1, TOKENS_MAX, &tokens[i], e));
    }
    q->prompt = &tokens[0];
    q->generate = &tokens[1];
    q->prompt_n = q->generate_n = 1;
    return ERR_OK;
}

static enum err_code parse_workload(struct arena *a, const struct option_values *v, struct estimate_request *q,
                                    struct err *e)
{
    TRY(range(a, v, "batch", BATCH_MAX, &q->batch, &q->batch_n, e));
    TRY(range(a, v, "context", TOKENS_MAX, &q->context, &q->context_n, e));
    TRY(range(a, v, "prompt", TOKENS_MAX, &q->prompt, &q->prompt_n, e));
    TRY(range(a, v, "generate", TOKENS_MAX, &q->generate, &q->generate_n, e));
    if (option_get(v, "workload")) {
        if (q->prompt_n || q->generate_n)
            return err_set(e, ERR_USAGE,
                           "--workload gives the tokens in and out; it cannot stand beside --prompt or --generate");
        TRY(read_workload(a, option_get(v, "workload"), q, e));
    }
    if ((q->prompt_n > 0) != (q->generate_n > 0))
        return err_set(e, ERR_USAGE, "--prompt and --generate belong together: tokens in and tokens out of a request");
    if (q->prompt_n > 0 && option_given(v, "context"))
        return err_set(e, ERR_USAGE,
                       "--context fixes the context; it cannot stand beside --prompt, --generate or --workload");
    q->averaged = q->prompt_n > 0;
    q->context_is_default = !q->averaged && !option_given(v, "context");
    size_t points;
    if (__builtin_mul_overflow(q->batch_n, q->averaged ? q->prompt_n * q->generate_n : q->context_n, &points) ||
        points > UNITS_RANGE_MAX * (size_t)10)
        return err_set(e, ERR_RANGE, "more than 100 million points were asked for");
    return ERR_OK;
}

static bool any_engine(const struct option_values *v)
{
    static const char *const FLAGS[] = {"gpu-memory-utilization",
                                        "max-model-len",
                                        "max-num-seqs",
                                        "max-num-batched-tokens",
                                        "block-size",
                                        "engine",
                                        "offline",
                                        "kv-cache-memory",
                                        "mamba-cache-mode",
                                        "mamba-ssm-cache-dtype",
                                        "non-torch-memory",
                                        "activation-memory"};
    for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0]; i++)
        if (option_given(v, FLAGS[i])) return true;
    return false;
}

/* What only calibrated times read. */
static enum err_code parse_calibrated(const struct option_values *v, bool calibrated, struct estimate_request *q,
                                      struct err *e)
{
    static const char *const FLAGS[] = {"efficiency", "framework", "launch"};
    int launch;
    TRY(CHOOSE(v, "launch", &launch, e, "graph", "eager"));
    for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0] && !calibrated; i++)
        if (option_given(v, FLAGS[i]))
            return err_set(e, ERR_USAGE, "--%s says how times are calibrated; it needs --fidelity calibrated",
                           FLAGS[i]);
    if (calibrated && q->course) return err_set(e, ERR_USAGE, "--course counts by hand, so it has no calibrated times");
    q->calibrated = calibrated;
    q->eager = launch == 1;
    q->efficiency = option_get(v, "efficiency");
    q->framework = option_get(v, "framework");
    return ERR_OK;
}

enum err_code estimate_block_tokens(const struct option_values *v, int64_t *out, struct err *e)
{
    TRY(option_count(v, "block-size", 1, 1 << 20, out, e));
    const int64_t page = 16; /* not a unit: tokens that attention kernels read at a time */
    if (*out % page == 0 || (*out < page && (*out & (*out - 1)) == 0)) return ERR_OK;
    return err_set(e, ERR_USAGE, "--block-size %lld: engines take 1, 2, 4, 8 or a multiple of %lld", (long long)*out,
                   (long long)page);
}

enum err_code estimate_request_parse(struct arena *a, const struct option_values *v, struct estimate_request *out,
                                     struct err *e)
{
    struct estimate_request q = {.options = v};
    int fidelity, only;
    if (v->operands_n)
        return err_set(e, ERR_USAGE, "estimate: '%.60s' belongs to no option (the model goes after -m)",
                       v->operands[0]);
    if (!option_get(v, "model")) return err_set(e, ERR_USAGE, "estimate: which model? -m NAME (ridge list models)");
    if (!option_get(v, "gpu")) return err_set(e, ERR_USAGE, "estimate: which device? -g NAME (ridge list hardware)");
    TRY(scope_list(a, option_get(v, "model"), "-m", &q.models, &q.models_n, e));
    TRY(scope_list(a, option_get(v, "gpu"), "-g", &q.gpus, &q.gpus_n, e));
    TRY(scope_settings(a, option_get(v, "set"), &q.set, &q.set_n, e));
    TRY(layout_options_parse(v, &q.layout, e));
    TRY(offload_options_parse(v, &q.offload, e));
    TRY(estimate_block_tokens(v, &q.block_tokens, e));
    q.what_if = option_get(v, "what-if");
    TRY(scope_formats(a, v, e));
    if (option_get(v, "steps") && units_parse_count(option_get(v, "steps"), 1, TOKENS_MAX, &q.steps, e) != ERR_OK)
        return err_prepend(e, "--steps: ");
    if (option_get(v, "block") &&
        units_parse_count(option_get(v, "block"), 1, 1 << 20, &q.diffusion_block, e) != ERR_OK)
        return err_prepend(e, "--block: ");
    TRY(option_count(v, "source", 1, TOKENS_MAX, &q.source_tokens, e));
    if (option_get(v, "lora") && lora_parse(option_get(v, "lora"), &q.lora, e) != ERR_OK)
        return err_prepend(e, "--lora: ");
    TRY(lora_options_parse(v, q.lora.rank, &q.adapters, e));
    q.towerless = option_get(v, "no-towers") != NULL;
    q.weights = option_get(v, "weights");
    q.kv = option_get(v, "kv");
    q.activations = option_get(v, "activations");
    q.uncached = q.kv && strcmp(q.kv, "none") == 0;
    if (q.uncached) q.kv = NULL;
    q.course = option_get(v, "course") != NULL;
    q.ignore_memory = option_get(v, "ignore-memory") != NULL;
    q.by_op = option_get(v, "by-op") != NULL;
    q.engine = any_engine(v);
    TRY(CHOOSE(v, "fidelity", &fidelity, e, "bound", "roofline", "calibrated"));
    TRY(parse_calibrated(v, fidelity == 2, &q, e));
    TRY(CHOOSE(v, "only", &only, e, "all", "memory", "prefill", "decode"));
    q.fidelity = q.calibrated                                           ? STEP_BOUND
                 : q.course && !q.by_op && !option_given(v, "fidelity") ? STEP_BOUND
                                                                        : (enum step_fidelity)fidelity;
    q.only = (enum estimate_only)only;
    if (q.by_op && q.fidelity == STEP_BOUND && !q.calibrated)
        return err_set(e, ERR_USAGE, "--by-op shows every operator at its own limit, which is --fidelity roofline");
    TRY(parse_workload(a, v, &q, e));
    TRY(estimate_drafting_parse(v, &q, e));
    TRY(estimate_mix_parse(a, v, &q, e));
    TRY(estimate_train_parse(v, &q, e));
    TRY(parse_conventions(a, v, &q, e));
    *out = q;
    return ERR_OK;
}
