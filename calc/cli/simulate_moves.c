/* simulate_moves -- caches that leave a replica, as `ridge simulate` is asked about them and tells of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/cli/simulate.h"
#include "calc/serve/paged.h"

enum err_code simulate_moves_parse(const char *text, struct simulate_case *c, struct err *e)
{
    const char *colon = strchr(text, ':');
    char first[24], clean[64];
    if (!colon || colon - text >= (int)sizeof first)
        return err_set(e, ERR_USAGE,
                       "--policy disagg=P:D: wanted how many replicas prefill and how many decode, not '%s'",
                       text_clean(clean, sizeof clean, text, strlen(text)));
    memcpy(first, text, (size_t)(colon - text));
    first[colon - text] = 0;
    if (units_parse_count(first, 1, SIMULATE_REPLICAS_MAX, &c->setup.pools.prefill, e) != ERR_OK ||
        units_parse_count(colon + 1, 1, SIMULATE_REPLICAS_MAX, &c->decoders, e) != ERR_OK)
        return err_prepend(e, "--policy disagg=P:D: ");
    return ERR_OK;
}

/* Within what the device's own links join, those; else what is between nodes. */
static enum err_code open_link(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    static const char *const ONLY[] = {"kv-link", "kv-latency", "kv-transfer"};
    struct simulate_pools *p = &c->setup.pools;
    const struct hw *hw = &c->of.hw;
    const char *text = option_get(v, "kv-link"), *sent = option_get(v, "kv-transfer");
    const bool joined = (double)c->of.gpus <= hw->link_domain;
    char clean[64];
    for (size_t i = 0; p->prefill == 0 && i < sizeof ONLY / sizeof ONLY[0]; i++)
        if (option_given(v, ONLY[i]))
            return err_set(e, ERR_USAGE, "--%s is about caches between two pools: it needs --policy disagg=P:D",
                           ONLY[i]);
    if (p->prefill == 0) return ERR_OK;
    p->link_bytes_per_s = joined ? hw->link_bytes_per_s : hw->fabric_bytes_per_s;
    c->link = joined ? hw->link_kind : hw->fabric_kind;
    if (text) {
        c->link = "as given";
        if (units_parse_rate(text, UNITS_BYTES_PER_S, &p->link_bytes_per_s, e) != ERR_OK)
            return err_prepend(e, "--kv-link: ");
    }
    if (!c->link) c->link = joined ? "the devices' links" : "the fabric between nodes";
    if (!(p->link_bytes_per_s > 0))
        return err_set(e, ERR_USAGE, "no rate is known of what joins these %lld GPUs: --kv-link 50GB/s, of one GPU",
                       (long long)c->of.gpus);
    if (units_parse_time(option_get(v, "kv-latency"), &p->link_latency_s, e) != ERR_OK)
        return err_prepend(e, "--kv-latency: ");
    if (strcmp(sent, "layers") == 0)
        p->layers = c->of.model.layers;
    else if (strcmp(sent, "whole") != 0)
        return err_set(e, ERR_USAGE, "--kv-transfer is whole or layers, not '%s'",
                       text_clean(clean, sizeof clean, sent, strlen(sent)));
    return ERR_OK;
}

static enum err_code open_swap(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    struct simulate_setup *s = &c->setup;
    const char *text = option_get(v, "preemption"), *link = option_get(v, "host-link");
    const int64_t groups = s->groups > 1 ? s->groups : 1;
    char clean[64];
    if (strcmp(text, "swap") == 0)
        s->preemption = SIMULATE_SWAP;
    else if (strcmp(text, "recompute") != 0)
        return err_set(e, ERR_USAGE, "--preemption is recompute or swap, not '%s'",
                       text_clean(clean, sizeof clean, text, strlen(text)));
    if (s->preemption != SIMULATE_SWAP && option_given(v, "swap-space"))
        return err_set(e, ERR_USAGE, "--swap-space is room for blocks that are lost: it needs --preemption swap");
    s->swap.bytes_per_s = hw_host_rate(&c->of.hw, NULL);
    if (link && units_parse_rate(link, UNITS_BYTES_PER_S, &s->swap.bytes_per_s, e) != ERR_OK)
        return err_prepend(e, "--host-link: ");
    if (units_parse_bytes(option_get(v, "swap-space"), &s->swap.host_bytes, e) != ERR_OK)
        return err_prepend(e, "--swap-space: ");
    s->swap.host_bytes *= (double)groups;
    s->swap.block_bytes = c->pool_bytes * (double)groups / (double)s->blocks;
    if (s->preemption != SIMULATE_SWAP) return ERR_OK;
    if (!(s->swap.bytes_per_s > 0))
        return err_set(e, ERR_USAGE, "--preemption swap: no rate between %s and its host is known: --host-link 25GB/s",
                       c->of.hw.key);
    if (s->policy == SIMULATE_STATIC || s->memory != SIMULATE_PAGED)
        return err_set(e, ERR_USAGE, "--preemption swap: only blocks of a paged cache are lost and come back");
    return ERR_OK;
}

static enum err_code number(const struct option_values *v, const char *name, double *out, struct err *e)
{
    const double most = 1 << 20;
    const char *text = option_get(v, name);
    char *end, clean[64];
    *out = strtod(text, &end);
    if (end != text && !*end && *out > 0 && *out <= most) return ERR_OK;
    return err_set(e, ERR_USAGE, "--%s: wanted a number above 0 and at most %g, not '%s'", name, most,
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

/* The prefix cache's tier at the host: bytes of a GPU by one engine's names or the other's. */
static enum err_code open_tier(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    static const char *const OF[] = {"hicache-ratio", "hicache-size"};
    struct simulate_setup *s = &c->setup;
    const int64_t groups = s->groups > 1 ? s->groups : 1;
    const bool vllm = option_get(v, "kv-offloading-size") != NULL,
               sglang = option_get(v, "enable-hierarchical-cache") != NULL;
    double x, bytes;
    for (size_t i = 0; i < sizeof OF / sizeof *OF; i++)
        if (option_given(v, OF[i]) && !sglang)
            return err_set(e, ERR_USAGE, "--%s is of the cache at the host: it needs --enable-hierarchical-cache",
                           OF[i]);
    if (vllm && sglang)
        return err_set(e, ERR_USAGE, "--kv-offloading-size and --enable-hierarchical-cache say the same");
    if (!vllm && !sglang) return ERR_OK;
    if (s->memory != SIMULATE_PAGED || s->policy == SIMULATE_STATIC)
        return err_set(e, ERR_USAGE, "a cache at the host is of paged caches, and no static batch has one");
    if (vllm) {
        TRY(number(v, "kv-offloading-size", &x, e));
        bytes = x * UNITS_GIB / (double)layout_group(&c->of.layout);
    } else if (option_get(v, "hicache-size")) {
        TRY(number(v, "hicache-size", &x, e));
        bytes = x * UNITS_GB;
    } else {
        TRY(number(v, "hicache-ratio", &x, e));
        bytes = x * c->pool_bytes;
    }
    s->prefix_cache = true;
    s->tier = (struct simulate_tier){.bytes_per_s = s->swap.bytes_per_s, .block_bytes = s->swap.block_bytes};
    if (c->request.engine && !c->of.engine.pages) s->tier.block_bytes = c->of.engine.pool.page_bytes;
    s->tier.blocks = (int64_t)fmin(bytes * (double)groups / s->tier.block_bytes, PAGED_BLOCKS_MAX);
    if (s->tier.blocks < 1) return err_set(e, ERR_USAGE, "a cache at the host of less than one block");
    if (!(s->tier.bytes_per_s > 0))
        return err_set(e, ERR_USAGE, "no rate between %s and its host is known: --host-link 25GB/s", c->of.hw.key);
    return ERR_OK;
}

enum err_code simulate_moves_open(const struct option_values *v, struct simulate_case *c, struct err *e)
{
    TRY(open_link(v, c, e));
    if (c->setup.pools.prefill > 0 && c->setup.memory != SIMULATE_PAGED)
        return err_set(e, ERR_USAGE, "--policy disagg: caches that move are paged ones");
    TRY(open_swap(v, c, e));
    return open_tier(v, c, e);
}

/* ---- text ---- */

/* Its room, and whether a cached token is sooner there than computed: bytes/link against 2*parameters/peak. */
static void heading_tier(struct out *o, const struct simulate_case *c)
{
    const struct simulate_tier *t = &c->setup.tier;
    const double token_s = t->block_bytes / (double)c->setup.block_tokens / t->bytes_per_s;
    char room[UNITS_TEXT_MAX], rate[UNITS_TEXT_MAX], load[UNITS_TEXT_MAX], compute[UNITS_TEXT_MAX];
    double peak;
    const char *unit;
    simulate_put_line(o, "prefixes also at the host: %s a GPU, %lld tokens a replica, loaded at %s",
                      units_format_bytes(room, (double)t->blocks * t->block_bytes /
                                                   (double)(c->setup.groups > 1 ? c->setup.groups : 1)),
                      (long long)(t->blocks * c->setup.block_tokens),
                      units_format(rate, UNITS_BYTES_PER_S, t->bytes_per_s));
    if (step_peak(&c->of.hw, model_linear_format(&c->of.model), &peak, &unit, NULL) != ERR_OK) return;
    simulate_put_line(
        o, "a token takes %s to be loaded (bytes / link), at least %s to be computed (2 * parameters / peak)",
        units_format_time(load, token_s),
        units_format_time(compute, 2 * c->of.params.active / (peak * (double)layout_group(&c->of.layout))));
}

void simulate_moves_heading(struct out *o, const struct simulate_case *c)
{
    const struct simulate_setup *s = &c->setup;
    const struct simulate_pools *p = &s->pools;
    char rate[UNITS_TEXT_MAX], room[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX], clean[96];
    if (p->prefill > 0)
        simulate_put_line(o, "%lld prefill%s, %lld decode%s; caches cross at %s a GPU (%s), %s", (long long)p->prefill,
                          p->prefill == 1 ? "s" : "", (long long)c->decoders, c->decoders == 1 ? "s" : "",
                          units_format(rate, UNITS_BYTES_PER_S, p->link_bytes_per_s),
                          text_clean(clean, sizeof clean, c->link, strlen(c->link)),
                          p->layers > 0 ? "each layer when it is computed" : "whole, when a prompt is computed");
    if (s->draft.of) {
        char tree[64] = "";
        if (s->draft.of->shape)
            (void)snprintf(tree, sizeof tree, " as a tree %lld deep", (long long)s->draft.of->shape->depth);
        simulate_put_line(o, "%s drafts %s a step%s, of which %s are kept%s",
                          text_clean(clean, sizeof clean, c->of.draft.name, strlen(c->of.draft.name)),
                          text_count(n, speculate_drafted(s->draft.of, s->draft.gamma), "token"), tree,
                          c->request.drafting.accept_text, s->draft.of->bonus ? "" : ", without a bonus");
    }
    if (s->tier.blocks > 0) heading_tier(o, c);
    if (s->preemption == SIMULATE_SWAP)
        simulate_put_line(o, "lost blocks are swapped to the host at %s, up to %s a GPU",
                          units_format(rate, UNITS_BYTES_PER_S, s->swap.bytes_per_s),
                          units_format_bytes(room, s->swap.host_bytes / (double)(s->groups > 1 ? s->groups : 1)));
}

static enum err_code pools_text(struct out *o, const struct simulate_case *c, struct err *e)
{
    static const char *const NAME[] = {"prefill", "decode"};
    const struct simulate_result *r = &c->result;
    char t[UNITS_TEXT_MAX], u[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX];
    struct simulate_spread move;
    TRY(simulate_spread_of(r, simulate_move_s, &move, e));
    for (int i = 0; i < 2; i++)
        simulate_put_line(o, "%s: busy %.1f %%, batch %.1f on average, %lld at most, cache %.1f %% in use", NAME[i],
                          100 * r->pool[i].busy_s / r->span_s / (double)r->pool[i].replicas, r->pool[i].mean_running,
                          (long long)r->pool[i].most_running, 100 * r->pool[i].block_frac);
    simulate_put_line(o, "%s moved, %s a GPU: %s after the first token on average, %s at p99; links busy %.1f %%",
                      text_count(n, (int64_t)r->transfers, "cache"), units_format_bytes(b, r->transfer_bytes),
                      units_format_time(t, move.mean), units_format_time(u, move.p99),
                      100 * r->link_busy_s / r->span_s / (double)c->setup.pools.prefill);
    return ERR_OK;
}

enum err_code simulate_moves_text(struct out *o, const struct simulate_case *c, struct err *e)
{
    const struct simulate_result *r = &c->result;
    const struct simulate_setup *s = &c->setup;
    char t[UNITS_TEXT_MAX], u[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX];
    if (s->pools.prefill > 0) TRY(pools_text(o, c, e));
    if (s->tier.blocks > 0)
        simulate_put_line(o,
                          "%.1f %% of the prompts' tokens, part of those, came from the host: %s of %s a "
                          "GPU%s, which waited %s "
                          "each; %s were copied there",
                          r->prompt_tokens > 0 ? 100 * r->loaded_tokens / r->prompt_tokens : 0,
                          text_count(n, (int64_t)r->loads, "load"), units_format_bytes(b, r->loaded_bytes),
                          r->loads > 0 && r->preemptions > 0 ? ", those again after preemptions included" : "",
                          units_format_time(t, r->loads > 0 ? r->load_wait_s / (double)r->loads : 0),
                          units_format_bytes(u, r->hosted_bytes));
    if (s->draft.of)
        simulate_put_line(
            o, "%.4g tokens a step of a sequence (%.4g expected); the draft takes %.1f %% of the busy time",
            r->judged_tokens / r->judged, speculate_mean(s->draft.of, s->draft.gamma), 100 * r->draft_s / r->busy_s);
    if (r->preemptions == 0 || s->memory != SIMULATE_PAGED) return ERR_OK;
    if (s->preemption == SIMULATE_SWAP)
        simulate_put_line(o, "%lld swapped out, %lld back: %s of a GPU both ways, for which steps waited %s",
                          (long long)r->swaps, (long long)r->swapped_back, units_format_bytes(b, r->swapped_bytes),
                          units_format_time(t, r->copied_s));
    simulate_put_line(o, "what was lost takes %s to be computed anew by itself, %s to be swapped out and back",
                      units_format_time(t, r->recompute_would_s),
                      isnan(r->swap_would_s) ? "not known how long" : units_format_time(u, r->swap_would_s));
    return ERR_OK;
}
