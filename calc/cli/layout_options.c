#include "calc/cli/layout_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"

enum { RANKS_MAX = 1 << 20 };

enum err_code layout_options_context(const struct option_values *v, struct layout_request *q, struct err *e)
{
    static const char *const NAMES[] = {"dcp", "decode-context-parallel-size"};
    int64_t n[2] = {0, 0};
    for (size_t i = 0; i < 2; i++) {
        const char *text = option_get(v, NAMES[i]);
        if (text && strcmp(text, "any") == 0)
            q->any_context = true;
        else
            TRY(option_count(v, NAMES[i], 1, RANKS_MAX, &n[i], e));
    }
    if ((n[0] && n[1] && n[0] != n[1]) || (q->any_context && (n[0] || n[1])))
        return err_set(e, ERR_USAGE, "--dcp and --decode-context-parallel-size are the same, and differ");
    q->layout.dcp = n[0] ? n[0] : n[1];
    const char *join = option_get(v, "dcp-comm-backend");
    q->layout.context_direct = strcmp(join, "a2a") == 0;
    if (!q->layout.context_direct && strcmp(join, "ag_rs") != 0)
        return err_set(e, ERR_USAGE, "--dcp-comm-backend is ag_rs or a2a, not '%.40s'", join);
    if (q->layout.context_direct && q->layout.dcp <= 1 && !q->any_context)
        return err_set(e, ERR_USAGE, "--dcp-comm-backend a2a is of ranks that share a context (--dcp N)");
    return ERR_OK;
}

enum err_code layout_options_parse(const struct option_values *v, struct layout_request *out, struct err *e)
{
    struct layout_request q = {.nodes = 0};
    struct layout *l = &q.layout;
    int64_t alias = 0;
    TRY(option_count(v, "tp", 1, 4096, &l->tp, e)); /* not a unit */
    TRY(option_count(v, "pp", 1, RANKS_MAX, &l->pp, e));
    TRY(option_count(v, "ep", 1, RANKS_MAX, &l->ep, e));
    TRY(option_count(v, "attention-dp", 1, RANKS_MAX, &l->dp, e));
    TRY(option_count(v, "dp-attention", 1, RANKS_MAX, &alias, e));
    if (alias && l->dp && alias != l->dp)
        return err_set(e, ERR_USAGE, "--attention-dp and --dp-attention are the same, and differ");
    if (alias) l->dp = alias;
    TRY(layout_options_context(v, &q, e));
    TRY(option_count(v, "replicas", 1, RANKS_MAX, &l->replicas, e));
    TRY(option_count(v, "nodes", 1, RANKS_MAX, &q.nodes, e));
    TRY(option_count(v, "microbatches", 1, RANKS_MAX, &l->microbatches, e));
    l->sp = option_get(v, "sp") != NULL;
    const char *dispatch = option_get(v, "dispatch"), *skew = option_get(v, "skew");
    static const char *const DISPATCH[] = {"copies", "once", "gather"};
    size_t way = 0;
    while (way < 3 && strcmp(DISPATCH[way], dispatch) != 0) way++;
    if (way == 3) return err_set(e, ERR_USAGE, "--dispatch is copies, once or gather, not '%.40s'", dispatch);
    l->dispatch = (enum layout_dispatch)way;
    char *end;
    l->skew = strtod(skew, &end);
    if (*end || !(l->skew >= 1 && l->skew < 1e6)) /* not a unit */
        return err_set(e, ERR_USAGE, "--skew is a factor of at least 1, not '%.40s'", skew);
    if (option_get(v, "fabric") &&
        units_parse_rate(option_get(v, "fabric"), UNITS_BYTES_PER_S, &q.fabric_bytes_per_s, e) != ERR_OK)
        return err_prepend(e, "--fabric: ");
    TRY(option_time(v, "latency", &q.latency.link_s, e));
    TRY(option_time(v, "fabric-latency", &q.latency.fabric_s, e));
    q.latency_given = option_get(v, "latency") != NULL;
    q.fabric_latency_given = option_get(v, "fabric-latency") != NULL;
    *out = q;
    return ERR_OK;
}

void layout_options_latency(struct layout_request *q, const struct hw *hw)
{
    if (!q->latency_given) q->latency.link_s = isnan(hw->link_bytes_per_s) ? 1e-6 : 0.6e-6; /* not a unit */
    if (!q->fabric_latency_given) q->latency.fabric_s = 8.4e-6;                             /* not a unit */
}

enum err_code layout_options_used(const struct layout_request *q, const struct model *m, int64_t gpus, int64_t per_node,
                                  const struct layout *l, struct err *e)
{
    const struct layout *asked = &q->layout;
    const bool alone = gpus == 1, experts = layout_routed(m) != NULL;
    const bool spread = asked->dispatch != LAYOUT_COPIES, skewed = asked->skew > 1;
    if (asked->sp && (alone || l->tp == 1))
        return err_set(e, ERR_USAGE, "--sp splits norms over tensor-parallel ranks, and there is one (--tp N)");
    if (asked->dcp > 1 && (alone || l->tp == 1))
        return err_set(e, ERR_USAGE, "--dcp is of tensor-parallel ranks, and there is one (--tp N)");
    if (asked->microbatches > 1 && (alone || l->pp == 1))
        return err_set(e, ERR_USAGE, "--microbatches are of stages, and there is one (--pp N)");
    if (q->fabric_bytes_per_s > 0 && per_node >= gpus)
        return err_set(e, ERR_USAGE, "--fabric joins nodes, and there is one (--nodes N)");
    if (q->fabric_latency_given && per_node >= gpus)
        return err_set(e, ERR_USAGE, "--fabric-latency is of messages between nodes, and there is one (--nodes N)");
    if (q->latency_given && alone)
        return err_set(e, ERR_USAGE, "--latency is of messages between GPUs, and there is one");
    if (!experts && (spread || skewed))
        return err_set(e, ERR_USAGE, "%s has no experts, so --%s changes nothing", m->name,
                       spread ? "dispatch" : "skew");
    if (spread && (alone || l->dp == 1))
        return err_set(e, ERR_USAGE, "--dispatch is of tokens of several attention groups (--attention-dp N)");
    if (skewed && (alone || l->ep == 1)) return err_set(e, ERR_USAGE, "--skew is of experts in several parts (--ep N)");
    return ERR_OK;
}

/* The fewest nodes of at most `here` that so many GPUs fill. */
static int64_t fewest_nodes(int64_t gpus, int64_t here)
{
    int64_t n = (gpus + here - 1) / here;
    while (gpus % n != 0) n++;
    return n;
}

enum err_code layout_options_nodes(const struct layout_request *q, int64_t gpus, int64_t copy, struct hw *hw,
                                   int64_t *per_node, struct err *e)
{
    if (q->fabric_bytes_per_s > 0) hw->fabric_bytes_per_s = q->fabric_bytes_per_s;
    const bool linked = !isnan(hw->link_bytes_per_s) && hw->link_domain > 1;
    char many[TEXT_COUNT_MAX];
    *per_node = gpus;
    if (q->nodes) {
        if (gpus % q->nodes != 0)
            return err_set(e, ERR_USAGE, "%s %s not fill --nodes %lld", text_count(many, gpus, "GPU"),
                           gpus == 1 ? "does" : "do", (long long)q->nodes);
        *per_node = gpus / q->nodes;
        if (linked && (double)*per_node > hw->link_domain)
            return err_set(e, ERR_USAGE,
                           "%s: %lld GPUs in a node are more than the %.0f that its link joins: --nodes %lld", hw->name,
                           (long long)*per_node, hw->link_domain,
                           (long long)fewest_nodes(gpus, (int64_t)hw->link_domain));
        return ERR_OK;
    }
    if (!linked || !((double)gpus > hw->link_domain)) return ERR_OK;
    const int64_t here = (int64_t)hw->link_domain;
    const bool fills = gpus % here == 0;
    if (copy <= here && !(fills && here % copy == 0)) { /* a copy to a node */
        *per_node = copy;
        return ERR_OK;
    }
    if (!fills) {
        const int64_t n = fewest_nodes(gpus, here);
        return err_set(e, ERR_USAGE, "%lld GPUs do not fill nodes of %lld (--nodes %lld: %lld in each)",
                       (long long)gpus, (long long)here, (long long)n, (long long)(gpus / n));
    }
    *per_node = here;
    return ERR_OK;
}

static int64_t or_one(int64_t n) { return n > 0 ? n : 1; }

enum err_code layout_options_open(const struct layout_request *q, int64_t gpus, struct hw *hw, struct layout *out,
                                  struct err *e)
{
    struct layout l = q->layout;
    char many[TEXT_COUNT_MAX], copies_of[TEXT_COUNT_MAX], each[TEXT_COUNT_MAX];
    const char *are = gpus == 1 ? "is" : "are";
    (void)text_count(many, gpus, "GPU");
    if (q->any_context)
        return err_set(e, ERR_USAGE, "--dcp any is of ridge plan, which looks for a number: --dcp N here");
    const int64_t rest = or_one(l.pp) * or_one(l.dp), copies = or_one(l.replicas);
    if (!l.tp) {
        if (gpus % (rest * copies) != 0)
            return err_set(e, ERR_USAGE, "%s %s not a multiple of PP %lld x attention-DP %lld x %s", many, are,
                           (long long)or_one(l.pp), (long long)or_one(l.dp), text_count(copies_of, copies, "copy"));
        l.tp = gpus / (rest * copies);
    }
    if (rest == 1 && gpus % l.tp != 0)
        return err_set(e, ERR_USAGE, "%s %s not a multiple of --tp %lld", many, are, (long long)l.tp);
    if (gpus % (rest * l.tp) != 0)
        return err_set(e, ERR_USAGE, "%s %s not a multiple of TP %lld x PP %lld x attention-DP %lld", many, are,
                       (long long)l.tp, (long long)or_one(l.pp), (long long)or_one(l.dp));
    const int64_t found = gpus / (rest * l.tp);
    if (l.replicas && l.replicas != found)
        return err_set(e, ERR_USAGE, "%s %s %s of %s, not --replicas %lld", many, gpus == 1 ? "holds" : "hold",
                       text_count(copies_of, found, "copy"), text_count(each, rest * l.tp, "GPU"),
                       (long long)l.replicas);
    l.replicas = found;
    TRY(layout_options_nodes(q, gpus, rest * l.tp, hw, &l.per_node, e));
    *out = layout_whole(&l);
    return ERR_OK;
}

const char *layout_nodes_text(int64_t gpus, int64_t per_node, const struct hw *hw, char *out, size_t cap)
{
    const int64_t nodes = gpus / per_node;
    char far[UNITS_TEXT_MAX], near[UNITS_TEXT_MAX], bus[80] = "";
    out[0] = '\0';
    if (per_node > 1 && isnan(hw->link_bytes_per_s) && !isnan(hw->pcie_bytes_per_s))
        (void)snprintf(bus, sizeof bus, "PCIe in it, %s for each GPU",
                       units_format(near, UNITS_BYTES_PER_S, hw->pcie_bytes_per_s));
    if (nodes == 1 && *bus) (void)snprintf(out, cap, "1 node of %lld GPUs, %s (--nodes N)", (long long)gpus, bus);
    if (nodes > 1)
        (void)snprintf(out, cap, "%lld nodes of %lld GPU%s, %s%s%s between them for each GPU", (long long)nodes,
                       (long long)per_node, per_node == 1 ? "" : "s", bus, *bus ? ", " : "",
                       isnan(hw->fabric_bytes_per_s) ? "no known fabric (--fabric)"
                                                     : units_format(far, UNITS_BYTES_PER_S, hw->fabric_bytes_per_s));
    return out;
}

const char *layout_text(const struct layout *l, char *out, size_t cap)
{
    const struct layout w = layout_whole(l);
    char pp[48] = "", dp[48] = "", ep[48] = "", dcp[48] = "";
    if (w.dcp > 1) (void)snprintf(dcp, sizeof dcp, ", DCP %lld", (long long)w.dcp);
    if (w.pp > 1) (void)snprintf(pp, sizeof pp, ", PP %lld", (long long)w.pp);
    if (w.dp > 1) (void)snprintf(dp, sizeof dp, ", attention-DP %lld", (long long)w.dp);
    if (w.ep > 1) (void)snprintf(ep, sizeof ep, ", EP %lld", (long long)w.ep);
    (void)snprintf(out, cap, "TP %lld%s%s%s%s%s, %lld cop%s", (long long)w.tp, dcp, pp, dp, ep, w.sp ? ", SP" : "",
                   (long long)w.replicas, w.replicas == 1 ? "y" : "ies");
    return out;
}

const char *layout_stages_text(const struct model *m, const struct layout *l, char *out, size_t cap)
{
    const struct layout w = layout_whole(l);
    out[0] = '\0';
    for (int64_t s = 0; w.pp > 1 && s < w.pp; s++) {
        const size_t at = strlen(out);
        (void)snprintf(out + at, cap - at, "%s%lld", s ? "+" : "", (long long)layout_stage_layers(m->layers, w.pp, s));
    }
    return out;
}

/* ---- towers ---- */

enum err_code layout_options_towers(const struct option_values *v, struct model *m, struct err *e)
{
    const struct model_beside b = model_beside(m);
    if (!option_get(v, "no-towers")) return ERR_OK;
    if (!(model_beside_bytes(&b, 1) > 0))
        return err_set(e, ERR_USAGE, "--no-towers: %s has none that are counted", m->name);
    m->towerless = true;
    return ERR_OK;
}

/* ---- weights at the host ---- */

enum err_code offload_options_parse(const struct option_values *v, struct offload_request *out, struct err *e)
{
    const char *text = option_get(v, "cpu-offload-gb"), *link = option_get(v, "host-link");
    const double most = 65536; /* not a unit */
    char *end, clean[64];
    *out = (struct offload_request){0, (double)NAN};
    if (text) {
        const double n = strtod(text, &end);
        if (end == text || *end || !(n >= 0 && n <= most))
            return err_set(e, ERR_USAGE,
                           "--cpu-offload-gb: wanted a number of GiB from 0 to %g, as vLLM has it, not '%s'", most,
                           text_clean(clean, sizeof clean, text, strlen(text)));
        out->bytes = n * UNITS_GIB;
    }
    if (link && units_parse_rate(link, UNITS_BYTES_PER_S, &out->host_bytes_per_s, e) != ERR_OK)
        return err_prepend(e, "--host-link: ");
    const bool swaps = option_given(v, "host-link") && option_get(v, "preemption"); /* prices what loses its blocks */
    if (option_given(v, "host-link") && !(out->bytes > 0) && !option_given(v, "kv-offloading-size") && !swaps)
        return err_set(e, ERR_USAGE, "--host-link is the way of what stays at the host, and nothing does (%s)",
                       strcmp(v->command->name, "estimate") == 0 ? "--cpu-offload-gb"
                                                                 : "--cpu-offload-gb, --kv-offloading-size");
    return ERR_OK;
}

enum err_code offload_options_open(const struct offload_request *q, const struct hw *hw, struct offload *out,
                                   const char **kind, struct err *e)
{
    *out = (struct offload){q->bytes, hw_host_rate(hw, kind)};
    if (!isnan(q->host_bytes_per_s)) out->host_bytes_per_s = q->host_bytes_per_s;
    if (!isnan(q->host_bytes_per_s) && kind) *kind = "as given";
    if (q->bytes > 0 && !(out->host_bytes_per_s > 0))
        return err_set(e, ERR_USAGE, "--cpu-offload-gb: no rate between %s and its host is known: --host-link 25GB/s",
                       hw->key);
    return ERR_OK;
}
