/* plan_drafting -- the options of `ridge plan` about drafted tokens, and whether they pay. */
#include <math.h>
#include <string.h>

#include "calc/cli/estimate.h"
#include "calc/cli/plan_parts.h"
#include "calc/model/stored.h"

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

enum err_code plan_draft_open(struct arena *a, const struct option_values *v, struct plan_case *c, struct err *e)
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
enum err_code plan_pays(struct arena *a, struct plan_case *c, struct err *e)
{
    struct err why = {0};
    if (c->result.best[0].prefill > 0) return ERR_OK;
    if (!c->request.drafting || c->request.aim == PLANNER_JOB) return ERR_OK;
    const enum err_code code = planner_pays(a, &c->request, &c->result.best[0], &c->paying, &why);
    if (code == ERR_NO) c->unpaid = arena_strndup(a, why.text, strlen(why.text));
    return code == ERR_OK || code == ERR_NO ? ERR_OK : err_set(e, code, "%s", why.text);
}
