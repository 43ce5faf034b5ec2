/* estimate_switches -- switches of how floors are counted that few ask for: fusions, routing, forms, overlap, peers. */
#include <stdio.h>
#include <string.h>

#include "calc/cli/estimate.h"
#include "calc/cli/peers.h"
#include "calc/cost/fusion.h"

static const char *const OWN[] = {"like", "fuse", "routing", "overlap", "latent", "head-multiple"};

static enum err_code parse_latent(const struct option_values *v, struct cost_conventions *k, struct err *e)
{
    static const char *const FORMS[] = {"by-pass", "absorbed", "expanded"};
    const char *text = option_get(v, "latent");
    if (option_get(v, "head-multiple") &&
        units_parse_count(option_get(v, "head-multiple"), 1, 1 << 12, &k->head_multiple, e) != ERR_OK)
        return err_prepend(e, "--head-multiple: ");
    for (size_t i = 0; i < sizeof FORMS / sizeof FORMS[0]; i++)
        if (strcmp(text, FORMS[i]) == 0) {
            k->latent = (enum cost_latent)i;
            return ERR_OK;
        }
    return err_set(e, ERR_USAGE, "--latent is by-pass, absorbed or expanded, not '%.40s'", text);
}

enum err_code estimate_switches_like(const struct option_values *v, struct estimate_request *q, struct err *e)
{
    const char *name = option_get(v, "like");
    char all[160] = "";
    size_t n;
    const struct peer *p = peers_list(&n);
    if (!name) return ERR_OK;
    for (size_t i = 0; i < n; i++)
        (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", p[i].name);
    p = peers_find(name);
    if (!p) return err_set(e, ERR_USAGE, "--like: no tool '%.40s'; there are %s", name, all);
    if (q->course) return err_set(e, ERR_USAGE, "--course and --like are two ways of counting: one of them");
    if (p->fidelity && !option_given(v, "fidelity") && !q->by_op) q->fidelity = STEP_BOUND;
    q->conventions.causal_full = p->causal != NULL;
    q->conventions.embed_full_table = p->embedding != NULL;
    q->conventions.head_all = p->lm_head != NULL;
    return p->routing ? routing_parse(p->routing, &q->conventions.routing, e) : ERR_OK;
}

enum err_code estimate_switches_parse(const struct option_values *v, struct estimate_request *q, struct err *e)
{
    struct cost_conventions *k = &q->conventions;
    const char *overlap = option_get(v, "overlap");
    for (size_t i = 0; q->calibrated && i < sizeof OWN / sizeof OWN[0]; i++)
        if (option_given(v, OWN[i]))
            return err_set(e, ERR_USAGE, "--%s is about floors; measured kernels are as they are", OWN[i]);
    if (option_get(v, "routing") && routing_parse(option_get(v, "routing"), &k->routing, e) != ERR_OK)
        return err_prepend(e, "--routing: ");
    if (fusion_parse(option_get(v, "fuse"), &k->fused, e) != ERR_OK) return err_prepend(e, "--fuse: ");
    TRY(parse_latent(v, k, e));
    if (strcmp(overlap, "none") != 0 && strcmp(overlap, "links") != 0)
        return err_set(e, ERR_USAGE, "--overlap is none or links, not '%.40s'", overlap);
    q->overlapped = strcmp(overlap, "links") == 0;
    if (q->fidelity != STEP_BOUND) return ERR_OK;
    if (q->overlapped) return err_set(e, ERR_USAGE, "--overlap links: in the bound everything overlaps already");
    if (k->fused) return err_set(e, ERR_USAGE, "--fuse: the bound holds whatever is fused");
    return ERR_OK;
}

enum err_code estimate_switches_check(const struct estimate_request *q, const struct estimate_case *c, struct err *e)
{
    const struct cost_conventions *k = &q->conventions;
    bool experts = false, latent = false;
    for (size_t i = 0; i < c->model.kinds_n; i++) {
        experts = experts || c->model.kinds[i].ffn.kind == FFN_MOE;
        latent = latent || c->model.kinds[i].mixer.kind == MIXER_LATENT;
    }
    if (option_given(q->options, "routing") && !experts)
        return err_set(e, ERR_USAGE, "--routing: %s has no experts", c->model.name);
    if ((k->latent != LATENT_BY_PASS || k->head_multiple > 0) && !latent)
        return err_set(e, ERR_USAGE, "--%s: %s has no latent attention",
                       k->latent != LATENT_BY_PASS ? "latent" : "head-multiple", c->model.name);
    if (q->overlapped && c->gpus == c->replicas)
        return err_set(e, ERR_USAGE, "--overlap links: nothing is sent on one GPU (--tp)");
    return ERR_OK;
}

const char *estimate_switches_text(struct arena *a, const struct estimate_request *q)
{
    const struct cost_conventions *k = &q->conventions;
    char text[320] = "", rule[48];
    const bool all = k->fused == FUSION_ALL;
    if (q->overlapped) (void)snprintf(text, sizeof text, " overlap=links");
    if (k->fused) (void)snprintf(text + strlen(text), sizeof text - strlen(text), " fuse=%s", all ? "all" : "");
    for (size_t i = 0, n = 0; !all && i < FUSIONS_N; i++)
        if (k->fused >> i & 1)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", n++ ? "+" : "", fusion_name(i));
    if (k->routing.rule != ROUTING_UNIFORM)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " routing=%s",
                       routing_name(&k->routing, rule, sizeof rule));
    if (k->latent != LATENT_BY_PASS)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " latent=%s",
                       k->latent == LATENT_ABSORBED ? "absorbed" : "expanded");
    if (k->head_multiple)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " head-multiple=%lld",
                       (long long)k->head_multiple);
    return arena_strndup(a, text, strlen(text));
}
