#include "calc/serve/pool.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"

#define GIB 0x1p30

/* 38.24 and 1.28 are fitted to three logs of an H100 and hold on the others; 3 and 2.9 to whole-prompt prefills of 10k
 * to 40k tokens; 20.4 to the one log of the second runner. Non-torch: what the logs of text models print. */
#define ACTIVATION_FIT .sampler_hidden = 1.28, .mlp_ffn = 3, .mlp_hidden = 2.9, .elem_bytes = 2

#define V1_DEFAULTS                                                                                                    \
    .non_torch_bytes = .13 * GIB, .non_torch_tp_bytes = .55 * GIB, .large_gpu_bytes = 70 * GIB, .block_tokens = 16,    \
    .chunk_tokens = 2048, .chunk_offline_tokens = 8192, .chunk_large_tokens = 8192,                                    \
    .chunk_large_offline_tokens = 16384, .seqs = 256, .seqs_large = 1024 /* not a unit */

static const struct pool_engine engines[] = {
    {
        .name = "vllm-v0",
        .versions = "to 0.7, V0 engine",
        .logit_bytes = 38.24,
        ACTIVATION_FIT,
        .non_torch_bytes = .13 * GIB,
        .non_torch_tp_bytes = .39 * GIB,
        .utilization_frac = .90,
        .swap_bytes = 4 * GIB,
        .large_gpu_bytes = (double)INFINITY,
        .block_tokens = 16,
        .chunked_over_tokens = 32768,
        .chunk_tokens = 512,
        .chunk_offline_tokens = 512,
        .seqs = 256,
        .source = "vllm PR 10511, issues 10517, 11251; arg_utils _set_default_args_v0",
    },
    {
        .name = "vllm-v1",
        .versions = "0.8 to 0.20, V1 engine",
        .logit_bytes = 38.24,
        ACTIVATION_FIT,
        V1_DEFAULTS,
        .utilization_frac = .90,
        .groups_layers = true,
        .source = "llm-d-planner empirical-vllm-memory-results; arg_utils get_batch_defaults, PR 17885",
    },
    {
        .name = "vllm-0.21",
        .versions = "from 0.21, first model runner",
        .logit_bytes = 38.24,
        ACTIVATION_FIT,
        V1_DEFAULTS,
        .utilization_frac = .92,
        .subtracts_graphs = true,
        .groups_layers = true,
        .block_aligns = true,
        .state_a_sequence = true,
        .source = "as vllm-v1; vllm PRs 30515, 37467, 38270, 38284",
    },
    {
        .name = "vllm-runner-v2",
        .versions = "2026-07, second model runner",
        .logit_bytes = 20.4,
        .draft_logit_bytes = 4,
        ACTIVATION_FIT,
        V1_DEFAULTS,
        .utilization_frac = .92,
        .subtracts_graphs = true,
        .groups_layers = true,
        .block_aligns = true,
        .state_a_sequence = true,
        .tokens_by_concurrency = true,
        .source = "vllm PRs 37467, 38270, 38284, 48037; issue 51041",
    },
};

enum { ENGINE_COUNT = sizeof engines / sizeof engines[0] };

const struct pool_engine *pool_engine_table(size_t *n)
{
    *n = ENGINE_COUNT;
    return engines;
}

enum err_code pool_engine_find(const char *name, const struct pool_engine **out, struct err *e)
{
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        if (strcmp(name, engines[i].name) != 0) continue;
        *out = &engines[i];
        return ERR_OK;
    }
    char near[128], shown[64];
    text_suggest(near, sizeof near, name, &engines[0].name, sizeof engines[0], ENGINE_COUNT);
    text_clean(shown, sizeof shown, name, strlen(name));
    return err_set(e, ERR_USAGE, "unknown engine version \"%s\"%s", shown, near);
}

static enum err_code check_bytes(const char *field, double v, bool zero_too, struct err *e)
{
    if (isfinite(v) && (zero_too ? v >= 0 : v > 0)) return ERR_OK;
    return err_set(e, ERR_RANGE, "%s: found %g, wanted finite bytes %s 0", field, v, zero_too ? ">=" : ">");
}

static enum err_code check_count(const char *field, int64_t v, int64_t lo, struct err *e)
{
    if (v >= lo) return ERR_OK;
    return err_set(e, ERR_RANGE, "%s: found %" PRId64 ", wanted at least %" PRId64, field, v, lo);
}

static enum err_code multiply(const char *what, int64_t a, int64_t b, int64_t *out, struct err *e)
{
    if (!__builtin_mul_overflow(a, b, out)) return ERR_OK;
    return err_set(e, ERR_RANGE, "%s: %" PRId64 " * %" PRId64 " is beyond 64 bits", what, a, b);
}

/* Whole pages of page_bytes in bytes (0 when bytes <= 0). */
static enum err_code count_pages(const char *what, double bytes, double page_bytes, int64_t *out, struct err *e)
{
    const double n = bytes > 0 ? floor(bytes / page_bytes) : 0;
    if (n >= 0x1p63) return err_set(e, ERR_RANGE, "%s: %g pages are beyond 64 bits", what, n);
    *out = (int64_t)n;
    return ERR_OK;
}

enum err_code pool_defaults(const struct pool_engine *engine, double visible_bytes, bool is_a100, bool server,
                            int64_t max_model_len_tokens, struct pool_request *out, struct err *e)
{
    TRY(check_bytes("visible memory", visible_bytes, false, e));
    TRY(check_count("max_model_len", max_model_len_tokens, 0, e));
    const bool large = visible_bytes >= engine->large_gpu_bytes && !is_a100;
    const int64_t small_chunk = server ? engine->chunk_tokens : engine->chunk_offline_tokens;
    const int64_t large_chunk = server ? engine->chunk_large_tokens : engine->chunk_large_offline_tokens;
    const bool chunked = engine->chunked_over_tokens == 0 || max_model_len_tokens > engine->chunked_over_tokens;
    const int64_t chunk = large ? large_chunk : small_chunk;
    *out = (struct pool_request){
        .engine = engine,
        .visible_bytes = visible_bytes,
        .utilization_frac = engine->utilization_frac,
        .weight_bytes_per_gpu = (double)NAN,
        .activation_bytes = (double)NAN,
        .non_torch_bytes = (double)NAN,
        .graph_bytes = (double)NAN,
        .kv_bytes_per_token_per_gpu = (double)NAN,
        .swap_bytes = engine->swap_bytes,
        .pool_bytes = (double)NAN,
        .block_tokens = engine->block_tokens,
        .max_model_len_tokens = max_model_len_tokens,
        .max_num_seqs = large ? engine->seqs_large : engine->seqs,
        .max_num_batched_tokens = chunked || max_model_len_tokens == 0 ? chunk : max_model_len_tokens,
        .chunked_prefill = chunked,
        .tp = 1,
    };
    return ERR_OK;
}

int64_t pool_ffn_width(const struct model *m)
{
    int64_t most = 1;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct ffn *f = &m->kinds[i].ffn;
        const int64_t w = f->kind == FFN_MOE ? f->experts_per_token * f->width + f->shared_width : f->width;
        if (w > most) most = w;
    }
    return most;
}

enum err_code pool_activation_predict(const struct pool_request *q, struct pool_activation *out, struct err *e)
{
    const struct pool_engine *g = q->engine;
    const int64_t prefill = q->chunked_prefill ? q->max_num_batched_tokens : q->max_model_len_tokens;
    const char *prefill_field = q->chunked_prefill ? "max_num_batched_tokens" : "max_model_len (prefilled whole)";
    TRY(check_count("max_num_seqs", q->max_num_seqs, 1, e));
    TRY(check_count(prefill_field, prefill, 1, e));
    TRY(check_count("draft tokens", q->draft_tokens, 0, e));
    TRY(check_count("vocabulary", q->vocab, 1, e));
    TRY(check_count("hidden width", q->hidden, 1, e));
    TRY(check_count("MLP width", q->ffn_width, 1, e));
    TRY(check_count("tensor parallel degree", q->tp, 1, e));
    int64_t logits, draft_logits, hidden, ffn;
    TRY(multiply("logits", q->max_num_seqs, q->vocab, &logits, e));
    TRY(multiply("draft logits", logits, q->draft_tokens, &draft_logits, e));
    TRY(multiply("hidden states", prefill, q->hidden, &hidden, e));
    TRY(multiply("MLP states", prefill, q->ffn_width, &ffn, e));
    const double sampler = g->logit_bytes * (double)logits + g->draft_logit_bytes * (double)draft_logits +
                           g->sampler_hidden * (double)hidden * g->elem_bytes;
    const double mlp = (g->mlp_ffn * (double)ffn / (double)q->tp + g->mlp_hidden * (double)hidden) * g->elem_bytes;
    *out = (struct pool_activation){
        .sampler_bytes = sampler,
        .mlp_bytes = mlp,
        .bytes = fmax(sampler, mlp),
        .by = sampler >= mlp ? "sampler" : "mlp",
    };
    return ERR_OK;
}

/* The terms under the budget; fills budget, activation, non_torch, graphs and pool of p. */
static enum err_code subtract_terms(const struct pool_request *q, struct pool *p, struct err *e)
{
    if (isnan(p->activation_bytes) && isnan(q->pool_bytes)) {
        struct pool_activation a;
        TRY(pool_activation_predict(q, &a, e));
        p->activation_bytes = a.bytes;
        p->activation_by = a.by;
    }
    if (!isnan(q->pool_bytes)) {
        p->pool_bytes = q->pool_bytes;
        return isfinite(q->pool_bytes) ? ERR_OK : err_set(e, ERR_RANGE, "pool: found %g, wanted bytes", q->pool_bytes);
    }
    TRY(check_bytes("visible memory", q->visible_bytes, false, e));
    if (!(q->utilization_frac > 0 && q->utilization_frac <= 1))
        return err_set(e, ERR_RANGE, "gpu_memory_utilization: found %g, wanted a part in (0, 1]", q->utilization_frac);
    TRY(check_bytes("weights per GPU", q->weight_bytes_per_gpu, true, e));
    if (isnan(p->non_torch_bytes))
        p->non_torch_bytes = q->tp > 1 ? q->engine->non_torch_tp_bytes : q->engine->non_torch_bytes;
    if (q->engine->subtracts_graphs) {
        p->graphs_unknown = isnan(q->graph_bytes);
        p->graph_bytes = p->graphs_unknown ? 0 : q->graph_bytes;
    }
    p->budget_bytes = q->visible_bytes * q->utilization_frac;
    p->pool_bytes =
        p->budget_bytes - q->weight_bytes_per_gpu - p->activation_bytes - p->non_torch_bytes - p->graph_bytes;
    return ERR_OK;
}

static enum err_code check_request(const struct pool_request *q, struct err *e)
{
    if (!q->pages) TRY(check_bytes("KV bytes per token", q->kv_bytes_per_token_per_gpu, false, e));
    TRY(check_count("block", q->block_tokens, 1, e));
    TRY(check_count("max_model_len", q->max_model_len_tokens, 0, e));
    TRY(check_count("tensor parallel degree", q->tp, 1, e));
    if (!isnan(q->activation_bytes)) TRY(check_bytes("activation", q->activation_bytes, true, e));
    if (!isnan(q->non_torch_bytes)) TRY(check_bytes("non-torch memory", q->non_torch_bytes, true, e));
    if (!isnan(q->graph_bytes)) TRY(check_bytes("CUDA graphs", q->graph_bytes, true, e));
    if (!isnan(q->swap_bytes)) TRY(check_bytes("swap space", q->swap_bytes, true, e));
    return ERR_OK;
}

static int64_t ranks_of(const struct pool_request *q) { return q->context_ranks > 1 ? q->context_ranks : 1; }

/* Of a pool whose blocks are counted: tokens, sequences of max_model_len, the longest one. */
static enum err_code count_tokens(const struct pool_request *q, struct pool *p, struct err *e)
{
    const int64_t len = q->max_model_len_tokens, step = q->max_num_batched_tokens > 0 ? q->max_num_batched_tokens : len;
    const struct pages *g = q->pages;
    if (len > 0) {
        p->blocks_per_sequence =
            g ? pages_of_sequence(g, len, step) : len / p->block_tokens + (len % p->block_tokens != 0);
        p->max_concurrency = (double)p->blocks / (double)p->blocks_per_sequence;
    }
    TRY(multiply("KV tokens", g ? p->blocks / g->groups : p->blocks, p->block_tokens, &p->tokens, e));
    if (g) TRY(multiply("KV tokens", p->tokens, ranks_of(q), &p->tokens, e));
    if (!g) {
        p->longest_tokens = p->tokens;
        return ERR_OK;
    }
    p->longest_tokens = pages_longest(g, p->blocks, step > 0 ? step : 1, len > 0 ? len : (int64_t)1 << 40);
    if (q->engine->tokens_by_concurrency && len > 0) p->tokens = (int64_t)(p->max_concurrency * (double)len);
    return ERR_OK;
}

enum err_code pool_compute(const struct pool_request *q, struct pool *out, struct err *e)
{
    TRY(check_request(q, e));
    const struct pages *g = q->pages;
    int64_t block;
    TRY(multiply("block", q->block_tokens, ranks_of(q), &block, e));
    struct pool p = {
        .budget_bytes = (double)NAN,
        .activation_bytes = q->activation_bytes,
        .activation_by = isnan(q->activation_bytes) ? "unknown" : "given",
        .non_torch_bytes = q->non_torch_bytes,
        .block_tokens = g ? g->block_tokens : block,
        .page_bytes =
            g ? (double)g->group_layers * (double)g->page_bytes : q->kv_bytes_per_token_per_gpu * (double)block,
        .max_concurrency = (double)NAN,
    };
    TRY(check_bytes("page", p.page_bytes, false, e));
    TRY(subtract_terms(q, &p, e));
    TRY(count_pages("KV pool", p.pool_bytes, p.page_bytes, &p.blocks, e));
    if (!isnan(q->swap_bytes)) TRY(count_pages("swap space", q->swap_bytes, p.page_bytes, &p.cpu_blocks, e));
    TRY(count_tokens(q, &p, e));

    int64_t need = p.blocks_per_sequence > 0 ? p.blocks_per_sequence : 1;
    p.verdict = p.blocks == 0 ? POOL_NO_MEMORY : p.blocks < need ? POOL_LEN_TOO_BIG : POOL_STARTS;
    if (p.verdict == POOL_STARTS && g && g->state_bytes > 0 && q->engine->state_a_sequence &&
        q->max_num_seqs > p.blocks) {
        p.verdict = POOL_FEW_STATES;
        need = q->max_num_seqs;
    }
    p.need_bytes = (double)need * p.page_bytes;
    p.short_bytes = p.verdict == POOL_STARTS ? 0 : p.need_bytes - p.pool_bytes;
    *out = p;
    return ERR_OK;
}

const char *pool_explain(const struct pool_request *q, const struct pool *p, char *out, size_t cap)
{
    char pool[UNITS_TEXT_MAX], need[UNITS_TEXT_MAX], more[UNITS_TEXT_MAX], tokens[UNITS_TEXT_MAX];
    units_format_bytes_iec(pool, fabs(p->pool_bytes));
    units_format_bytes_iec(need, p->need_bytes);
    units_format_bytes_iec(more, p->short_bytes);
    units_format_digits(tokens, (double)(p->verdict == POOL_STARTS ? p->tokens : p->longest_tokens));
    switch (p->verdict) {
    case POOL_STARTS:
        (void)snprintf(out, cap, "starts: %s for the KV cache, %s tokens in %" PRId64 " blocks of %" PRId64, pool,
                       tokens, p->blocks, p->block_tokens);
        break;
    case POOL_NO_MEMORY:
        (void)snprintf(out, cap, "refuses to start: %s%s for the KV cache, %s needed, %s short",
                       p->pool_bytes < 0 ? "-" : "", pool, need, more);
        break;
    case POOL_LEN_TOO_BIG:
        (void)snprintf(out, cap,
                       "refuses to start: max_model_len %" PRId64 " needs %s, the KV cache has %s (%s short); the "
                       "largest that works is %s",
                       q->max_model_len_tokens, need, pool, more, tokens);
        break;
    case POOL_FEW_STATES:
        (void)snprintf(out, cap,
                       "refuses to start: max_num_seqs %" PRId64
                       " needs a block each for the recurrent state, the pool "
                       "has %" PRId64 " (%s short)",
                       q->max_num_seqs, p->blocks, more);
        break;
    }
    return out;
}
