/* plan_choice -- the options of `ridge plan` as devices, precisions, a server and limits to choose from. */
#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/estimate.h"
#include "calc/cli/plan_parts.h"
#include "calc/cli/scope.h"
#include "calc/model/stored.h"
#include "calc/model/whatif.h"

static const char DEVICES[] = "h100-sxm,h200-sxm,l40s", SERVER[] = "vllm";

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

enum err_code plan_devices_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
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

/* The formats of a list: NULL is as stored. narrow: tried beside that where the option is not given; NULL none. */
static enum err_code formats(struct arena *a, const struct option_values *v, const char *name, const char *narrow,
                             const char ***out, size_t *n, struct err *e)
{
    const char *text = option_get(v, name);
    if (!text) text = narrow ? arena_printf(a, "stored,%s", narrow) : "stored";
    if (!text) return err_nomem(e);
    TRY(scope_list(a, text, name, out, n, e));
    for (size_t i = 0; i < *n; i++)
        if (strcmp((*out)[i], "stored") == 0) (*out)[i] = NULL;
    return ERR_OK;
}

enum err_code plan_formats_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
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
    TRY(plan_source_open(v, &first, c, e));
    c->model = first.name;
    c->max_context_tokens = model_context_limit(&first);
    if (c->max_context_tokens > 0) c->max_context_tokens += c->source;
    const bool wide = !first.weights_unknown && model_linear_format(&first)->bits == 16;
    TRY(formats(a, v, "weights", wide ? "fp8" : NULL, &weights, &weights_n, e));
    TRY(formats(a, v, "kv", first.kv.bits == 16 && stored_has_cache(&first) ? stored_cache_fp8(&first) : NULL, &kv,
                &kv_n, e));
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

enum err_code plan_choice_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
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
    TRY(plan_source_whole(a, c, e));
    q->pools = option_get(v, "disagg") != NULL;
    if (q->pools && q->aim != PLANNER_SERVE)
        return err_set(e, ERR_USAGE, "--disagg keeps latencies: not a --job, not --tokens-per-day");
    q->utilization_frac = (double)NAN;
    TRY(option_real(v, "gpu-memory-utilization", .01, 1, &q->utilization_frac, e));
    return ERR_OK;
}
