/* whatif_cache -- what-ifs that shrink the cache: fewer heads, a latent, across layers, within a window. */
#include <string.h>

#include "calc/base/units.h"
#include "calc/model/reader.h"
#include "calc/model/whatif_change.h"

enum { HEADS_MAX = 1 << 16, RANK_MAX = 1 << 20, WINDOW_MAX = 1 << 30 };

/* ---- fewer heads ---- */

/* n KV heads in every layer of attention; 0: one for every query head. */
static enum err_code set_kv_heads(struct change *c, int64_t n)
{
    int64_t attending;
    TRY(change_attending(c, false, &attending));
    for (size_t i = 0; i < c->layers_n; i++) {
        struct mixer *x = &c->layer[i].mixer;
        if (x->kind != MIXER_ATTENTION) continue;
        const int64_t kv = n ? n : x->heads;
        if (x->heads % kv != 0)
            return change_refuse(c, "%lld query heads cannot be cut into %lld equal groups", (long long)x->heads,
                                 (long long)kv);
        x->kv_heads = kv;
    }
    return ERR_OK;
}

enum err_code change_kv_heads(struct change *c)
{
    int64_t n;
    TRY(change_whole(c, HEADS_MAX, &n));
    return set_kv_heads(c, n);
}

enum err_code change_multi_query(struct change *c) { return set_kv_heads(c, 1); }
enum err_code change_multi_head(struct change *c) { return set_kv_heads(c, 0); }

/* ---- a latent ---- */

/* "512+64" or "512+64:1536". */
static enum err_code read_ranks(struct change *c, struct mixer *out)
{
    const char *plus = strchr(c->value, '+'), *colon = strchr(c->value, ':');
    const char *end = colon ? colon : c->value + strlen(c->value);
    if (plus && plus < end) {
        const char *latent = arena_strndup(c->arena, c->value, (size_t)(plus - c->value));
        const char *rope = arena_strndup(c->arena, plus + 1, (size_t)(end - plus - 1));
        if (!latent || !rope) return err_nomem(c->e);
        if (units_parse_count(latent, 1, RANK_MAX, &out->kv_rank, NULL) == ERR_OK &&
            units_parse_count(rope, 1, RANK_MAX, &out->rope_dim, NULL) == ERR_OK &&
            (!colon || units_parse_count(colon + 1, 1, RANK_MAX, &out->q_rank, NULL) == ERR_OK))
            return ERR_OK;
    }
    return change_refuse(c, "wanted the latent and its shared rope part, such as 512+64, and with a query latent "
                            "512+64:1536");
}

/* What latent attention has no place for. */
static enum err_code can_be_latent(const struct change *c, const struct mixer *x)
{
    if (x->window_tokens > 0)
        return change_refuse(c, "layers see a window of %lld tokens, and a latent within a window is not known",
                             (long long)x->window_tokens);
    if (x->output_gate || x->head_gate || x->doubled_input || x->q_rank > 0)
        return change_refuse(
            c, "attention has a gate, a second input or narrow queries, which latent attention has in no known model");
    if (x->v_is_k) return change_refuse(c, "values are the keys themselves, so there is nothing to compress together");
    return ERR_OK;
}

/* Other ranks of a latent that is there; its query latent stays where none is stated. */
static bool resize_latent(const struct mixer *ranks, struct mixer *x)
{
    if (x->kind != MIXER_LATENT) return false;
    x->kv_rank = ranks->kv_rank;
    x->rope_dim = ranks->rope_dim;
    if (ranks->q_rank > 0) x->q_rank = ranks->q_rank;
    return true;
}

/* Widths of heads stay: keys get a rope part beside them. Biases and norms of queries, keys and values go with their
 * matrices; the latents have norms of their own. */
enum err_code change_latent(struct change *c)
{
    struct mixer ranks = {.kind = MIXER_LATENT};
    bool any = false;
    TRY(read_ranks(c, &ranks));
    TRY(change_unshared(c, "a latent"));
    for (size_t i = 0; i < c->layers_n; i++) {
        struct mixer *x = &c->layer[i].mixer, was;
        any = any || x->kind == MIXER_ATTENTION || x->kind == MIXER_LATENT;
        if (resize_latent(&ranks, x) || x->kind != MIXER_ATTENTION) continue;
        TRY(can_be_latent(c, x));
        memcpy(&was, x, sizeof was);
        memset(x, 0, sizeof *x);
        x->kind = MIXER_LATENT;
        x->heads = x->kv_heads = was.heads;
        x->head_dim = was.head_dim;
        x->v_head_dim = was.v_head_dim;
        x->q_rank = ranks.q_rank;
        x->kv_rank = ranks.kv_rank;
        x->rope_dim = ranks.rope_dim;
        x->position = POSITION_ROPE;
        x->sinks = was.sinks;
        x->o_bias = was.o_bias;
    }
    return any ? ERR_OK : change_refuse(c, "the model has no attention");
}

/* ---- across layers ---- */

/* Whether a layer's cache could be another's: same tokens, same shape. */
static bool same_cache(const struct mixer *a, const struct mixer *b)
{
    return a->window_tokens == b->window_tokens && a->chunked == b->chunked && a->kv_heads == b->kv_heads &&
           a->head_dim == b->head_dim && a->v_head_dim == b->v_head_dim && a->v_is_k == b->v_is_k;
}

enum err_code change_across_layers(struct change *c)
{
    int64_t n, attending;
    bool any = false;
    TRY(change_whole(c, LAYERS_MAX, &n));
    TRY(change_attending(c, true, &attending));
    if (n == 1) return change_refuse(c, "one layer shares with no other: wanted 2 or more");
    if (n > attending) return change_refuse(c, "wanted at most %lld, as many layers as attend", (long long)attending);
    TRY(change_unshared(c, "a second sharing"));
    TRY(change_owned(c));
    for (size_t i = 0; i < c->layers_n; i++) {
        struct mixer *x = &c->layer[i].mixer;
        int64_t before = 0;
        if (x->kind != MIXER_ATTENTION) continue;
        for (size_t k = 0; k < i; k++)
            before += c->layer[k].mixer.kind == MIXER_ATTENTION && same_cache(&c->layer[k].mixer, x);
        x->shares_kv = before % n != 0;
        any = any || x->shares_kv;
    }
    return any ? ERR_OK : change_refuse(c, "no two layers have caches of one shape");
}

/* ---- within a window ---- */

/* "1024", "1024:5/6" or "none": tokens 0. */
static enum err_code read_window(struct change *c, int64_t *tokens, const char **part)
{
    const char *colon = strchr(c->value, ':');
    const char *text = colon ? arena_strndup(c->arena, c->value, (size_t)(colon - c->value)) : c->value;
    if (!text) return err_nomem(c->e);
    *tokens = 0;
    *part = colon ? colon + 1 : NULL;
    if (strcmp(text, "none") == 0 ? colon != NULL : units_parse_count(text, 1, WINDOW_MAX, tokens, NULL) != ERR_OK)
        return change_refuse(c, "wanted a window in tokens, such as 1024 or 1024:5/6, or none");
    return ERR_OK;
}

enum err_code change_check_window(struct change *c)
{
    struct part part;
    const char *text;
    int64_t tokens;
    TRY(read_window(c, &tokens, &text));
    return text ? change_read_part(c, text, &part) : ERR_OK;
}

enum err_code change_window(struct change *c)
{
    struct part part = {1, 1};
    const char *text;
    int64_t tokens, attending, at = 0;
    for (size_t i = 0; i < c->layers_n; i++)
        if (c->layer[i].mixer.kind == MIXER_LATENT)
            return change_refuse(c,
                                 "the model has latent attention, and no known model has a window on a latent cache");
    TRY(change_attending(c, true, &attending));
    TRY(change_unshared(c, "a window"));
    TRY(read_window(c, &tokens, &text));
    if (text) TRY(change_part(c, text, &part));
    if (c->m->bidirectional && tokens > 0)
        return change_refuse(c, "tokens of this model see later ones, and windows of such are not described");
    for (size_t i = 0; i < c->layers_n; i++) {
        struct mixer *x = &c->layer[i].mixer;
        if (x->kind != MIXER_ATTENTION) continue;
        x->window_tokens = at++ % part.of < part.some ? tokens : 0;
        x->chunked = false;
    }
    return ERR_OK;
}

enum err_code change_check_ranks(struct change *c)
{
    struct mixer ranks = {.kind = MIXER_LATENT};
    return read_ranks(c, &ranks);
}
