#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/estimate.h"

static const int64_t COUNT_MAX = (int64_t)1 << 40;

static enum err_code bytes_option(const struct option_values *v, const char *name, double *out, struct err *e)
{
    const char *text = option_get(v, name);
    if (!text) return ERR_OK;
    if (units_parse_bytes(text, out, e) != ERR_OK) return err_prepend(e, "--%s: ", name);
    return ERR_OK;
}

/* A fraction in (0, 1]. */
static enum err_code fraction_option(const struct option_values *v, const char *name, double *out, struct err *e)
{
    const char *text = option_get(v, name);
    if (!text) return ERR_OK;
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !(x > 0 && x <= 1))
        return err_set(e, ERR_USAGE, "--%s: '%.40s' is no fraction above 0 and at most 1", name, text);
    *out = x;
    return ERR_OK;
}

static enum err_code engine_option(const struct option_values *v, const struct pool_engine **out, struct err *e)
{
    size_t n;
    const struct pool_engine *all = pool_engine_table(&n);
    const char *name = option_get(v, "engine");
    char names[200] = "", clean[64];
    if (pool_engine_find(name, out, NULL) == ERR_OK) return ERR_OK;
    for (size_t i = 0; i < n; i++) {
        const size_t at = strlen(names);
        (void)snprintf(names + at, sizeof names - at, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", all[i].name);
    }
    return err_set(e, ERR_USAGE, "--engine is %s, not '%s'", names,
                   text_clean(clean, sizeof clean, name, strlen(name)));
}

/* What vLLM refuses whatever the memory. */
static void refuse_settings(struct estimate_engine *g, const struct model *m)
{
    const struct pool_request *r = &g->request;
    const int64_t ahead = model_source_ahead(m);
    if (m->max_context_tokens > 0 && r->max_model_len_tokens - ahead > m->max_context_tokens)
        (void)snprintf(g->refusal, sizeof g->refusal,
                       "refuses max_model_len %lld: the model's own limit is %lld tokens",
                       (long long)(r->max_model_len_tokens - ahead), (long long)m->max_context_tokens);
    else if (r->max_num_batched_tokens < r->max_num_seqs)
        (void)snprintf(g->refusal, sizeof g->refusal, "refuses max_num_batched_tokens %lld below max_num_seqs %lld",
                       (long long)r->max_num_batched_tokens, (long long)r->max_num_seqs);
    else if (g->pool.verdict != POOL_STARTS)
        (void)pool_explain(r, &g->pool, g->refusal, sizeof g->refusal);
}

const char *estimate_engine_limit(const struct estimate_engine *g, int64_t batch, int64_t context)
{
    const struct pool_request *r = &g->request;
    if (g->refusal[0]) return "the engine does not start";
    if (batch > r->max_num_seqs) return "batch beyond max_num_seqs";
    if (r->max_model_len_tokens > 0 && context > r->max_model_len_tokens) return "context beyond max_model_len";
    const int64_t block = r->block_tokens * r->context_ranks;
    const int64_t blocks = r->pages ? pages_of_sequence(r->pages, context, 1) : (context + block - 1) / block;
    return (double)blocks * (double)batch > (double)g->pool.blocks ? "more blocks than the pool has" : NULL;
}

/* Of several stages the one with the fewest blocks; a draft is in the last. The sampler's reserve, which is the last
 * one's, is taken off all. */
static enum err_code least_pool(const struct estimate_case *c, struct pool_request *r, struct pool *out, struct err *e)
{
    const bool drafts = c->speculation.draft != NULL;
    struct pool_request least = *r;
    bool any = false;
    for (size_t i = 0; i < step_stages(c->step); i++) {
        const struct step_stage s = step_stage_of(c->step, i);
        struct pool_request one = *r;
        struct pool p;
        one.weight_bytes_per_gpu = s.weight_bytes + s.beside_bytes;
        one.kv_bytes_per_token_per_gpu = s.kv_bytes_per_token;
        if (drafts && s.last) {
            one.weight_bytes_per_gpu += step_weight_bytes(c->speculation.draft);
            one.kv_bytes_per_token_per_gpu += step_kv_bytes_per_token(c->speculation.draft);
        }
        TRY(pool_compute(&one, &p, e));
        if (any && (p.blocks > out->blocks || (p.blocks == out->blocks && p.pool_bytes > out->pool_bytes))) continue;
        any = true;
        *out = p;
        least = one;
    }
    *r = least;
    return ERR_OK;
}

/* The draft's weights come off the pool, its cache is in every block, and its tokens want logits. */
static enum err_code add_draft(const struct estimate_case *c, struct pool_request *r, struct err *e)
{
    const struct speculate_setup *s = &c->speculation;
    if (!s->shape && s->gamma == 0)
        return err_set(e, ERR_USAGE,
                       "an engine drafts a number of tokens that is set before it starts: give --gamma N");
    if (step_state_bytes_per_sequence(s->draft) > 0)
        return err_set(e, ERR_USAGE, "%s keeps recurrent states, and how an engine drafts with them is not known here",
                       c->draft.name);
    r->weight_bytes_per_gpu += step_weight_bytes(s->draft);
    r->kv_bytes_per_token_per_gpu += step_kv_bytes_per_token_full(s->draft) +
                                     step_kv_bytes_per_token_windowed(s->draft) +
                                     step_kv_bytes_per_token_index(s->draft);
    r->draft_tokens = s->shape ? s->shape->drafted : s->gamma;
    return ERR_OK;
}

enum err_code estimate_engine_open(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                   struct err *e)
{
    struct pool *out = &c->engine.pool;
    struct pool_request *request = &c->engine.request;
    const struct option_values *v = q->options;
    const struct model *m = &c->model;
    const struct pool_engine *engine;
    if (c->uncached && !q->uncached)
        return err_set(e, ERR_USAGE, "%s passes whole sequences and keeps no cache: no pool", m->name);
    if (q->uncached)
        return err_set(e, ERR_USAGE, "--kv none has no cache pool: it cannot stand beside an engine's flags");
    const double visible = isnan(c->hw.memory_usable_bytes) ? hw_capacity_bytes(&c->hw) : c->hw.memory_usable_bytes;
    int64_t len = m->max_context_tokens;
    TRY(engine_option(v, &engine, e));
    TRY(option_count(v, "max-model-len", 1, COUNT_MAX, &len, e));
    if (len > 0) len += model_source_ahead(m); /* the engine's limit is of its decoder */
    struct pool_request r;
    TRY(pool_defaults(engine, visible, strncmp(c->hw.key, "a100", 4) == 0, option_get(v, "offline") == NULL, len, &r,
                      e));
    r.weight_bytes_per_gpu = step_weight_bytes(c->step) + step_beside_bytes(c->step);
    r.kv_bytes_per_token_per_gpu = step_kv_bytes_per_token_full(c->step) + step_kv_bytes_per_token_windowed(c->step) +
                                   step_kv_bytes_per_token_index(c->step);
    if (option_given(v, "block-size")) r.block_tokens = q->block_tokens;
    r.max_model_len_tokens = len;
    r.tp = c->tp;
    r.context_ranks = c->layout.dcp;
    if (q->drafting.draft) TRY(add_draft(c, &r, e));
    TRY(estimate_pages_open(a, v, c, q->drafting.draft ? &c->draft : NULL, &r, e));
    r.vocab = m->vocab;
    r.hidden = m->hidden;
    r.ffn_width = pool_ffn_width(m);
    TRY(fraction_option(v, "gpu-memory-utilization", &r.utilization_frac, e));
    TRY(option_count(v, "max-num-seqs", 1, COUNT_MAX, &r.max_num_seqs, e));
    TRY(option_count(v, "max-num-batched-tokens", 1, COUNT_MAX, &r.max_num_batched_tokens, e));
    TRY(bytes_option(v, "kv-cache-memory", &r.pool_bytes, e));
    TRY(bytes_option(v, "non-torch-memory", &r.non_torch_bytes, e));
    TRY(bytes_option(v, "activation-memory", &r.activation_bytes, e));
    if (!isnan(r.pool_bytes) && r.pool_bytes + r.weight_bytes_per_gpu > visible)
        return err_set(e, ERR_USAGE, "--kv-cache-memory: with the weights more than the whole memory of %s",
                       c->hw.name);
    if (step_stages(c->step) > 1 || layout_whole(&c->layout).pp > 1) {
        if (r.pages)
            return err_set(e, ERR_USAGE,
                           "the pool of layers of several kinds in stages is not described: --pool ideal");
        TRY(least_pool(c, &r, out, e));
    } else {
        TRY(pool_compute(&r, out, e));
    }
    *request = r;
    refuse_settings(&c->engine, m);
    return ERR_OK;
}
