#include "calc/cli/layout_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/units.h"

enum { RANKS_MAX = 1 << 20 };

static enum err_code count(const struct option_values *v, const char *name, int64_t most, int64_t *out, struct err *e)
{
    if (!option_get(v, name)) return ERR_OK;
    if (units_parse_count(option_get(v, name), 1, most, out, e) != ERR_OK) return err_prepend(e, "--%s: ", name);
    return ERR_OK;
}

static enum err_code latency(const struct option_values *v, const char *name, double *out, struct err *e)
{
    if (!option_get(v, name)) return ERR_OK;
    if (units_parse_time(option_get(v, name), out, e) != ERR_OK) return err_prepend(e, "--%s: ", name);
    return ERR_OK;
}

enum err_code layout_options_parse(const struct option_values *v, struct layout_request *out, struct err *e)
{
    struct layout_request q = {.nodes = 0};
    struct layout *l = &q.layout;
    int64_t alias = 0;
    TRY(count(v, "tp", 4096, &l->tp, e)); /* not a unit */
    TRY(count(v, "pp", RANKS_MAX, &l->pp, e));
    TRY(count(v, "ep", RANKS_MAX, &l->ep, e));
    TRY(count(v, "attention-dp", RANKS_MAX, &l->dp, e));
    TRY(count(v, "dp-attention", RANKS_MAX, &alias, e));
    if (alias && l->dp && alias != l->dp)
        return err_set(e, ERR_USAGE, "--attention-dp and --dp-attention are the same, and differ");
    if (alias) l->dp = alias;
    TRY(count(v, "replicas", RANKS_MAX, &l->replicas, e));
    TRY(count(v, "nodes", RANKS_MAX, &q.nodes, e));
    TRY(count(v, "microbatches", RANKS_MAX, &l->microbatches, e));
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
    TRY(latency(v, "latency", &q.latency.link_s, e));
    TRY(latency(v, "fabric-latency", &q.latency.fabric_s, e));
    *out = q;
    return ERR_OK;
}

enum err_code layout_options_nodes(const struct layout_request *q, int64_t gpus, int64_t copy, struct hw *hw,
                                   int64_t *per_node, struct err *e)
{
    if (q->fabric_bytes_per_s > 0) hw->fabric_bytes_per_s = q->fabric_bytes_per_s;
    const bool linked = !isnan(hw->link_bytes_per_s) && !isnan(hw->fabric_bytes_per_s);
    *per_node = gpus;
    if (q->nodes) {
        if (gpus % q->nodes != 0)
            return err_set(e, ERR_USAGE, "%lld GPUs do not fill --nodes %lld", (long long)gpus, (long long)q->nodes);
        *per_node = gpus / q->nodes;
        return ERR_OK;
    }
    if (!linked || !((double)gpus > hw->link_domain)) return ERR_OK;
    const int64_t here = (int64_t)hw->link_domain;
    const bool fills = gpus % here == 0;
    if (copy <= here && !(fills && here % copy == 0)) { /* a copy to a node */
        *per_node = copy;
        return ERR_OK;
    }
    if (!fills)
        return err_set(e, ERR_USAGE, "%lld GPUs do not fill nodes of %lld (--nodes N)", (long long)gpus,
                       (long long)here);
    *per_node = here;
    return ERR_OK;
}

static int64_t or_one(int64_t n) { return n > 0 ? n : 1; }

enum err_code layout_options_open(const struct layout_request *q, int64_t gpus, struct hw *hw, struct layout *out,
                                  struct err *e)
{
    struct layout l = q->layout;
    const int64_t rest = or_one(l.pp) * or_one(l.dp), copies = or_one(l.replicas);
    if (!l.tp) {
        if (gpus % (rest * copies) != 0)
            return err_set(e, ERR_USAGE, "%lld GPUs are not a multiple of PP %lld x attention-DP %lld x %lld copies",
                           (long long)gpus, (long long)or_one(l.pp), (long long)or_one(l.dp), (long long)copies);
        l.tp = gpus / (rest * copies);
    }
    if (rest == 1 && gpus % l.tp != 0)
        return err_set(e, ERR_USAGE, "%lld GPUs are not a multiple of --tp %lld", (long long)gpus, (long long)l.tp);
    if (gpus % (rest * l.tp) != 0)
        return err_set(e, ERR_USAGE, "%lld GPUs are not a multiple of TP %lld x PP %lld x attention-DP %lld",
                       (long long)gpus, (long long)l.tp, (long long)or_one(l.pp), (long long)or_one(l.dp));
    const int64_t found = gpus / (rest * l.tp);
    if (l.replicas && l.replicas != found)
        return err_set(e, ERR_USAGE, "%lld GPUs hold %lld copies of %lld GPUs, not --replicas %lld", (long long)gpus,
                       (long long)found, (long long)(rest * l.tp), (long long)l.replicas);
    l.replicas = found;
    TRY(layout_options_nodes(q, gpus, rest * l.tp, hw, &l.per_node, e));
    *out = layout_whole(&l);
    return ERR_OK;
}

const char *layout_text(const struct layout *l, char *out, size_t cap)
{
    const struct layout w = layout_whole(l);
    char pp[48] = "", dp[48] = "", ep[48] = "";
    if (w.pp > 1) (void)snprintf(pp, sizeof pp, ", PP %lld", (long long)w.pp);
    if (w.dp > 1) (void)snprintf(dp, sizeof dp, ", attention-DP %lld", (long long)w.dp);
    if (w.ep > 1) (void)snprintf(ep, sizeof ep, ", EP %lld", (long long)w.ep);
    (void)snprintf(out, cap, "TP %lld%s%s%s%s, %lld cop%s", (long long)w.tp, pp, dp, ep, w.sp ? ", SP" : "",
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
