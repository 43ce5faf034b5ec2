/* estimate_pages -- a model's layers as an engine lays them out in one pool. */
#include <math.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/estimate.h"

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* A block raised for states is a multiple of what the attention kernel takes: 16 tokens; 64 of latents; 32 of heads of
 * 256 on Blackwell, where FlashInfer has no smaller one. Source: vLLM HybridAttentionMambaModelConfig. */
static int64_t alignment(const struct estimate_case *c)
{
    static const char *const BLACKWELL[] = {"b200", "b300", "gb200", "gb300"};
    int64_t r = 16;
    for (size_t i = 0; i < c->model.kinds_n; i++) {
        const struct mixer *x = &c->model.kinds[i].mixer;
        if (x->kind == MIXER_LATENT) return 64; /* not a unit */
        if (x->kind != MIXER_ATTENTION || x->head_dim != 256) continue;
        for (size_t k = 0; k < sizeof BLACKWELL / sizeof BLACKWELL[0]; k++)
            if (begins(c->hw.key, BLACKWELL[k])) r = 32;
    }
    return r;
}

static enum err_code cache_mode(const struct option_values *v, enum pages_states *out, struct err *e)
{
    const char *text = option_get(v, "mamba-cache-mode");
    char clean[64];
    *out = strcmp(text, "align") == 0 ? PAGES_STATES_ALIGN
           : strcmp(text, "all") == 0 ? PAGES_STATES_ALL
                                      : PAGES_STATES_NONE;
    if (*out != PAGES_STATES_NONE || strcmp(text, "none") == 0) return ERR_OK;
    return err_set(e, ERR_USAGE, "--mamba-cache-mode is none, align or all, not '%s'",
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

/* Format of the states of one kind of layers: as asked; else what the file says; else that of activations, and fp32
 * for a decay of every channel under the delta rule. Source: vLLM MambaStateDtypeCalculator. */
static enum err_code state_format(const char *text, const struct model *m, const struct layer_kind *k,
                                  struct dtype *out, struct err *e)
{
    static const char *const FORMATS[] = {"float32", "float16", "bfloat16"};
    const struct recurrence *p = &k->mixer.recurrence;
    char clean[64];
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++)
        if (strcmp(text, FORMATS[i]) == 0) return dtype_find(text, out, e);
    if (strcmp(text, "auto") != 0)
        return err_set(e, ERR_USAGE, "--mamba-ssm-cache-dtype is auto, float32, float16 or bfloat16, not '%s'",
                       text_clean(clean, sizeof clean, text, strlen(text)));
    if (!m->state_assumed) {
        *out = m->state;
        return ERR_OK;
    }
    if (p->block == RECURRENT_LINEAR && p->delta && p->decay == DECAY_CHANNEL) return dtype_find("fp32", out, e);
    *out = m->activations;
    return ERR_OK;
}

static enum err_code whole_bytes(double bytes, int64_t *out, struct err *e)
{
    if (!(bytes >= 1) || bytes >= 0x1p62 || floor(bytes) < bytes)
        return err_set(e, ERR_USAGE, "a layer keeps %g bytes: an engine's pages hold whole ones", bytes);
    *out = (int64_t)bytes;
    return ERR_OK;
}

/* One kind of layers; false: it keeps nothing of its own. */
static enum err_code lay_kind(struct arena *a, const struct option_values *v, const struct model *of, int64_t tp,
                              int64_t drafts, const struct layer_kind *k, struct pages_kind *out, bool *keeps,
                              struct err *e)
{
    const struct mixer *x = &k->mixer;
    struct layer_kind kind = *k;
    struct model m = *of;
    struct cost_kind_cache one;
    if (x->kind == MIXER_RECURRENT) {
        if (m.foreign_states)
            return err_set(e, ERR_USAGE, "%s keeps recurrent states of a kind that vLLM does not serve: no pool",
                           m.name);
        TRY(state_format(option_get(v, "mamba-ssm-cache-dtype"), of, k, &m.state, e));
        if (x->recurrence.conv_taps > 0) kind.mixer.recurrence.conv_taps += drafts; /* columns of drafted tokens */
    }
    TRY(cost_kind_cache(a, &m, &kind, tp, &one, e));
    const double bytes = one.token_bytes + one.index_bytes + one.state_bytes;
    *keeps = bytes > 0;
    if (!*keeps) return ERR_OK;
    if (one.state_bytes > 0 && one.token_bytes + one.index_bytes > 0)
        return err_set(e, ERR_USAGE,
                       "%s: layers of %s keep both a cache and a state, which no engine's pages are known to hold: "
                       "no pool",
                       m.name, k->label);
    *out = (struct pages_kind){.keep = one.state_bytes > 0 ? PAGES_STATE
                                       : !x->window_tokens ? PAGES_TOKENS
                                       : x->chunked        ? PAGES_CHUNKS
                                                           : PAGES_WINDOW,
                               .layers = k->count,
                               .window_tokens = x->window_tokens};
    return whole_bytes(bytes, &out->bytes, e);
}

/* Whether layers keep in more ways than every token. */
static bool keeps_otherwise(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        if (x->kind == MIXER_RECURRENT) return true;
        if (x->kind != MIXER_NONE && x->window_tokens > 0 && !x->shares_kv && !x->images) return true;
    }
    return false;
}

/* What the flags of states and the engine leave open for this model. */
static enum err_code check_states(const struct option_values *v, const struct estimate_case *c,
                                  const struct pool_engine *engine, struct err *e)
{
    static const char *const FLAGS[] = {"mamba-cache-mode", "mamba-ssm-cache-dtype"};
    const char *name = c->model.name;
    if (c->state_bytes > 0 && !engine->groups_layers)
        return err_set(e, ERR_USAGE, "%s keeps recurrent states, and how %s holds them is not known here: no pool",
                       name, engine->name);
    for (size_t i = 0; i < sizeof FLAGS / sizeof FLAGS[0] && !(c->state_bytes > 0); i++)
        if (option_given(v, FLAGS[i]))
            return err_set(e, ERR_USAGE, "--%s: no layer of %s keeps a recurrent state", FLAGS[i], name);
    return ERR_OK;
}

enum err_code estimate_pages_open(struct arena *a, const struct option_values *v, struct estimate_case *c,
                                  const struct model *draft, struct pool_request *r, struct err *e)
{
    const struct model *m = &c->model;
    struct pages_rule rule = {.block_tokens = r->block_tokens,
                              .align_tokens = alignment(c),
                              .draft_tokens = r->draft_tokens,
                              .max_model_len_tokens = r->max_model_len_tokens};
    size_t n = 0;
    TRY(cache_mode(v, &rule.states, e));
    TRY(check_states(v, c, r->engine, e));
    if (m->encoder.layers > 0) return ERR_OK; /* two caches of one width: uniform blocks */
    if (!r->engine->groups_layers || !(keeps_otherwise(m) || (draft && keeps_otherwise(draft)))) return ERR_OK;
    if (r->engine->block_aligns && r->block_tokens > rule.align_tokens) rule.align_tokens = r->block_tokens;
    const size_t most = m->kinds_n + (draft ? draft->kinds_n : 0);
    struct pages_kind *kinds = arena_array(a, most, sizeof *kinds);
    struct pages *pages = arena_alloc(a, sizeof *pages);
    if (!kinds || !pages) return err_nomem(e);
    for (size_t i = 0; i < most; i++) {
        const bool own = i < m->kinds_n;
        const struct layer_kind *k = own ? &m->kinds[i] : &draft->kinds[i - m->kinds_n];
        bool keeps;
        TRY(lay_kind(a, v, own ? m : draft, own ? c->tp : c->draft_tp, rule.draft_tokens, k, &kinds[n], &keeps, e));
        if (keeps && kinds[n].keep == PAGES_TOKENS) kinds[n].context_ranks = r->context_ranks;
        n += keeps;
        if (keeps && k->mixer.recurrence.chunk_tokens > rule.chunk_tokens)
            rule.chunk_tokens = k->mixer.recurrence.chunk_tokens;
    }
    if (rule.chunk_tokens == 0) rule.chunk_tokens = 1;
    r->pages = c->engine.pages = pages;
    return pages_lay(kinds, n, &rule, pages, e);
}
