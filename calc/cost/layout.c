/* layout -- ranks of a deployment. Derivation: MODEL.md "Layouts". */
#include "calc/cost/layout.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct layout_symbols layout_symbols_make(struct sym_ctx *c)
{
    struct layout_symbols y;
#define X(field, text, meaning) y.field = sym_var(c, text);
    LAYOUT_SYMBOLS(X)
#undef X
    return y;
}

static int64_t or_one(int64_t n) { return n > 0 ? n : 1; }

struct layout layout_whole(const struct layout *l)
{
    struct layout r = l ? *l : (struct layout){0};
    r.tp = or_one(r.tp);
    r.dp = or_one(r.dp);
    r.ep = or_one(r.ep);
    r.pp = or_one(r.pp);
    r.dcp = or_one(r.dcp);
    r.replicas = or_one(r.replicas);
    if (r.per_node <= 0) r.per_node = r.tp * r.dp * r.pp * r.replicas;
    if (r.microbatches <= 0 || r.pp == 1) r.microbatches = r.pp;
    if (!(r.skew > 0)) r.skew = 1;
    return r;
}

int64_t layout_group(const struct layout *l) { return or_one(l->tp) * or_one(l->dp); }
int64_t layout_gpus(const struct layout *l) { return layout_group(l) * or_one(l->pp) * or_one(l->replicas); }

int64_t layout_nodes(const struct layout *l, int64_t n)
{
    const struct layout w = layout_whole(l);
    return (n + w.per_node - 1) / w.per_node;
}

bool layout_plain(const struct layout *l)
{
    const struct layout w = layout_whole(l);
    return w.dp == 1 && w.ep == 1 && w.pp == 1 && w.dcp == 1 && !w.sp && layout_nodes(&w, w.tp) == 1;
}

double layout_bubble(int64_t stages, int64_t microbatches)
{
    return (double)(stages - 1) / (double)(microbatches + stages - 1);
}

double layout_touched(int64_t experts, int64_t experts_per_token, int64_t parts)
{
    if (experts <= 0 || parts <= 1) return 1;
    const double n = (double)experts, elsewhere = n - n / (double)parts;
    double none = 1;
    for (int64_t i = 0; i < experts_per_token && none > 0; i++)
        none *= fmax(0, elsewhere - (double)i) / (n - (double)i);
    return 1 - none;
}

/* ---- the busiest part ---- */

enum { BLOCK = 8 }; /* not a unit: a trip count known to the compiler, which vectorises it */

/* to += k*from, of n or up to a block more, where `from` has nothing. */
static void add_times(double *restrict to, const double *restrict from, double k, int64_t n)
{
    for (int64_t i = 0; i < n; i += BLOCK)
        for (int j = 0; j < BLOCK; j++) to[i + j] += k * from[i + j];
}

/* All of layout_busiest at n numbers of distinct experts. */
static void busiest(int64_t experts, int64_t parts, size_t n, const int64_t *s, double *out)
{
    const int64_t held = experts / parts;
    double choose[LAYOUT_EXPERTS_MAX + 1], all[LAYOUT_EXPERTS_MAX + 1];
    double ways[LAYOUT_EXPERTS_MAX + 1 + BLOCK], next[LAYOUT_EXPERTS_MAX + 1 + BLOCK];
    for (size_t i = 0; i < n; i++) out[i] = parts > 1 ? 0 : (double)s[i];
    if (parts <= 1) return;
    if (experts > LAYOUT_EXPERTS_MAX) {
        for (size_t i = 0; i < n; i++) out[i] = (double)s[i] / (double)parts;
        return;
    }
    choose[0] = all[0] = 1;
    for (int64_t i = 1; i <= held; i++) choose[i] = choose[i - 1] * (double)(held - i + 1) / (double)i;
    for (int64_t i = 1; i <= experts; i++) all[i] = all[i - 1] * (double)(experts - i + 1) / (double)i;
    for (int64_t m = 0; m < held; m++) { /* ways that leave no part with more than m, of any number drawn */
        for (int64_t i = 0; i <= experts + BLOCK; i++) ways[i] = i == 0 ? 1 : 0;
        for (int64_t top = 0; top < parts * m; top += m) { /* of as many parts as hold `top` so, and one more */
            for (int64_t i = 0; i <= top + m + BLOCK; i++) next[i] = 0;
            for (int64_t i = 0; i <= m; i++) add_times(next + i, ways, choose[i], top + 1);
            memcpy(ways, next, (size_t)(top + m + 1) * sizeof *ways);
        }
        for (size_t i = 0; i < n; i++) out[i] += 1 - fmin(1, ways[s[i]] / all[s[i]]);
    }
}

double layout_busiest(int64_t experts, int64_t parts, int64_t s)
{
    double r;
    busiest(experts, parts, 1, &s, &r);
    return r;
}

void layout_knots(int64_t experts, int64_t experts_per_token, double out[LAYOUT_KNOTS])
{
    const double n = (double)experts, k = (double)experts_per_token;
    out[0] = 0;
    for (int i = 1; i < LAYOUT_KNOTS; i++) out[i] = round(k * pow(n / k, (double)(i - 1) / (LAYOUT_KNOTS - 2)));
}

/* Of layout_busiest between knots: the slope of the first piece, and by how much it rises at each further knot. */
static void rises(const struct layout *w, const struct model *m, double out[LAYOUT_KNOTS - 1])
{
    const struct ffn *f = layout_routed(m);
    double knot[LAYOUT_KNOTS], most[LAYOUT_KNOTS], last = 0;
    int64_t at[LAYOUT_KNOTS];
    for (int i = 0; i < LAYOUT_KNOTS - 1; i++) out[i] = i == 0 ? 1 : 0;
    if (!f || w->ep <= 1) return;
    layout_knots(f->experts, f->experts_per_token, knot);
    for (int i = 0; i < LAYOUT_KNOTS; i++) at[i] = (int64_t)knot[i];
    busiest(f->experts, w->ep, LAYOUT_KNOTS, at, most);
    for (int i = 0; i < LAYOUT_KNOTS - 1; i++) {
        const double wide = knot[i + 1] - knot[i], slope = wide > 0 ? (most[i + 1] - most[i]) / wide : last;
        out[i] = slope - last;
        last = slope;
    }
}

const struct ffn *layout_routed(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].ffn.kind == FFN_MOE) return &m->kinds[i].ffn;
    return NULL;
}

/* Copies of a token that its rank sends, within the node and over the fabric; of those that arrive at the busiest part
 * as many as bind. */
static void copies(const struct layout *w, const struct model *m, double *near, double *far)
{
    const struct ffn *f = layout_routed(m);
    const int64_t all = layout_group(w), nodes = layout_nodes(w, all);
    *near = *far = 0;
    if (!f || w->dp == 1) return;
    const double ranks = (double)all, q = (double)nodes, here = nodes > 1 ? (double)w->per_node : ranks;
    const double k = (double)f->experts_per_token, columns = (double)(all / w->ep);
    if (w->dispatch != LAYOUT_COPIES || k * columns >= ranks) {
        const bool once = w->dispatch == LAYOUT_ONCE, whole = w->ep % nodes == 0; /* parts do not straddle nodes */
        const double rank = once ? fmin(1, w->skew * layout_touched(f->experts, f->experts_per_token, w->ep)) : 1;
        const double node =
            once && whole ? fmin(1, w->skew * layout_touched(f->experts, f->experts_per_token, nodes)) : 1;
        *near = (ranks - q) * rank;
        *far = (q - 1) * node;
        return;
    }
    *near = w->skew * k * columns * (here - 1) / ranks;
    *far = w->skew * k * columns * (ranks - here) / ranks;
}

void layout_numbers(const struct layout *l, const struct model *m, bool crosses, double out[LAYOUT_NUMBERS])
{
    const struct layout w = layout_whole(l);
    const double q = (double)layout_nodes(&w, w.tp), t = (double)w.tp;
    out[LAYOUT_context] = (double)w.dcp;
    out[LAYOUT_context_far] = (double)(layout_nodes(&w, w.dcp) - 1);
    out[LAYOUT_groups] = (double)w.dp;
    out[LAYOUT_parts] = (double)w.ep;
    out[LAYOUT_skew] = w.skew;
    out[LAYOUT_split] = w.tp > 1 ? 1 : 0;
    out[LAYOUT_spread] = w.dp > 1 ? 1 : 0;
    out[LAYOUT_narrow] = w.sp ? t : 1;
    out[LAYOUT_reduced] = q > 1 ? 2 * (q - 1) / q / (double)w.per_node : 0;
    out[LAYOUT_gathered] = q - 1;
    copies(&w, m, &out[LAYOUT_near], &out[LAYOUT_far]);
    rises(&w, m, &out[LAYOUT_rise0]);
    layout_hops(&w, crosses, &out[LAYOUT_hop_near], &out[LAYOUT_hop_far]);
}

void layout_hops(const struct layout *l, bool crosses, double *near, double *far)
{
    const struct layout w = layout_whole(l);
    const double here = fmin((double)w.tp, (double)w.per_node); /* of a group, side by side */
    *near = crosses ? (here - 1) / here : 1;
    *far = crosses ? 1 / here : 0;
}

/* ---- what a model allows ---- */

enum err_code layout_split(const char *what, int64_t n, const char *over, int64_t parts, int64_t *out, struct err *e)
{
    if (n % parts != 0)
        return err_set(e, ERR_USAGE, "%lld %s cannot be split over %lld %s", (long long)n, what, (long long)parts,
                       over);
    *out = n / parts;
    return ERR_OK;
}

static const char RANKS[] = "tensor-parallel ranks";

enum err_code layout_kv_heads(const struct mixer *x, int64_t tp, int64_t *out, struct err *e)
{
    if (x->kv_heads < tp) {
        *out = 1;
        if (tp % x->kv_heads == 0) return ERR_OK;
        return err_set(e, ERR_USAGE, "%lld KV heads cannot be spread over %lld tensor-parallel ranks",
                       (long long)x->kv_heads, (long long)tp);
    }
    return layout_split("KV heads", x->kv_heads, RANKS, tp, out, e);
}

static enum err_code check_kind(const struct layer_kind *k, const struct layout *w, struct err *e)
{
    const struct mixer *x = &k->mixer;
    const struct ffn *f = &k->ffn;
    int64_t n;
    if (x->kind != MIXER_NONE) TRY(layout_split("heads", x->heads, RANKS, w->tp, &n, e));
    if (x->kind == MIXER_ATTENTION || x->kind == MIXER_RECURRENT) TRY(layout_kv_heads(x, w->tp, &n, e));
    if (x->value_mask && w->tp > 1)
        return err_set(e, ERR_USAGE, "a mask made of the values of all KV heads is not described over ranks");
    if (x->differential) TRY(layout_split("pairs of KV heads", x->kv_heads / 2, RANKS, w->tp, &n, e));
    TRY(layout_split("columns of the shared expert", f->shared_width, RANKS, w->tp, &n, e));
    if (f->kind != FFN_MOE) return layout_split("columns of the MLP", f->width, RANKS, w->tp, &n, e);
    TRY(layout_split("experts", f->experts, "expert-parallel parts", w->ep, &n, e));
    if (f->group_experts > 0) {
        TRY(layout_split("groups of experts", f->experts / f->group_experts, "expert-parallel parts", w->ep, &n, e));
        TRY(layout_split("columns of a group's expert", f->group_width, RANKS, layout_group(w) / w->ep, &n, e));
    }
    return layout_split("columns of an expert", f->width, w->ep > 1 || w->dp > 1 ? "ranks" : RANKS,
                        layout_group(w) / w->ep, &n, e);
}

/* ---- a context shared by ranks ---- */

bool layout_shares_context(const struct mixer *x)
{
    const bool latent = x->kind == MIXER_LATENT && !x->one_vector;
    return (x->kind == MIXER_ATTENTION || latent) && !x->images && !x->of_source && x->window_tokens == 0 &&
           x->pool_tokens == 0;
}

/* What keeps the cache of a layer whole although it would be split; NULL: nothing. */
static const char *not_shared(const struct mixer *x)
{
    if (x->one_vector || x->pool_tokens > 0) return "entries of several tokens are";
    if (x->index_heads > 0 || x->top_keys > 0) return "keys that an indexer chooses among all are";
    if (model_keeps_inputs(x)) return "a long convolution is";
    if (x->first_too) return "layers that run again are";
    if (x->differential) return "differences of attentions are";
    if (x->value_mask) return "masks made of values are";
    if (x->stripe_every > 0) return "blocks of keys that a head sees in stripes are";
    if (!layout_shares_context(x)) return NULL;
    if (x->sinks) return "attention sinks are";
    if (x->position == POSITION_ALIBI) return "distances of ALiBi are";
    return x->features_kv ? "keys of a target's features are" : NULL;
}

int64_t layout_context_most(const struct model *m, int64_t tp)
{
    int64_t most = tp;
    bool any = false;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        if (m->bidirectional || m->diffusion || not_shared(x)) return 1;
        if (!layout_shares_context(x)) continue;
        any = true;
        if (x->kind != MIXER_ATTENTION) continue;
        const int64_t same = tp > x->kv_heads && tp % x->kv_heads == 0 ? tp / x->kv_heads : 1;
        while (most > 1 && (same % most != 0 || x->heads / x->kv_heads % most != 0)) most--;
    }
    return any ? most : 1;
}

struct layout layout_draft(const struct model *draft, const struct layout *l, int64_t tp)
{
    struct layout r = *l;
    bool attends = false;
    for (size_t i = 0; i < draft->kinds_n; i++) {
        const enum mixer_kind kind = draft->kinds[i].mixer.kind;
        attends = attends || kind == MIXER_ATTENTION || kind == MIXER_LATENT;
    }
    r.tp = tp;
    if (!attends) r.dcp = 1;
    return r;
}

static enum err_code check_shared(const struct mixer *x, const struct layout *w, struct err *e)
{
    const char *why = not_shared(x);
    if (why)
        return err_set(e, ERR_USAGE, "%s not described over ranks that share a context (decode context parallelism)",
                       why);
    if (!layout_shares_context(x) || x->kind != MIXER_ATTENTION) return ERR_OK;
    const long long kv = (long long)x->kv_heads, tp = (long long)w->tp, n = (long long)w->dcp;
    if (tp <= kv)
        return err_set(e, ERR_USAGE,
                       "%lld KV heads are split over %lld tensor-parallel ranks already: a context is shared by ranks "
                       "that have the same (TP above %lld)",
                       kv, tp, kv);
    if (tp / kv % n != 0)
        return err_set(e, ERR_USAGE,
                       "%lld ranks cannot share a context: a KV head is on %lld of %lld (TP / KV heads), which they "
                       "must divide",
                       n, tp / kv, tp);
    if (x->heads / x->kv_heads % w->dcp != 0)
        return err_set(e, ERR_USAGE, "%lld queries of a KV head cannot be split over %lld ranks that share a context",
                       (long long)(x->heads / x->kv_heads), n);
    return ERR_OK;
}

static enum err_code check_context(const struct model *m, const struct layout *w, struct err *e)
{
    bool any = false;
    if (w->dcp == 1) return ERR_OK;
    if (w->tp % w->dcp != 0)
        return err_set(e, ERR_USAGE, "%lld ranks cannot share a context in a tensor-parallel group of %lld",
                       (long long)w->dcp, (long long)w->tp);
    if (m->bidirectional || m->diffusion)
        return err_set(e, ERR_USAGE, "%s sees tokens on both sides, which is not described where ranks share a context",
                       m->name);
    for (size_t i = 0; i < m->kinds_n; i++) {
        TRY(check_shared(&m->kinds[i].mixer, w, e));
        any = any || layout_shares_context(&m->kinds[i].mixer);
    }
    if (any) return ERR_OK;
    return err_set(e, ERR_USAGE, "no layer of %s attends to all tokens, so there is no cache for ranks to share",
                   m->name);
}

/* Groups fill nodes, or nodes hold whole groups. */
static enum err_code check_nodes(const char *what, int64_t n, const struct layout *w, struct err *e)
{
    if (n % w->per_node == 0 || w->per_node % n == 0 || layout_gpus(w) <= w->per_node) return ERR_OK;
    return err_set(e, ERR_USAGE, "%s of %lld ranks does not fill nodes of %lld GPUs", what, (long long)n,
                   (long long)w->per_node);
}

static enum err_code check_stages(const struct model *m, const struct layout *w, struct err *e)
{
    if (w->pp == 1) return ERR_OK;
    if (w->pp > m->layers)
        return err_set(e, ERR_USAGE, "%lld layers cannot fill %lld stages", (long long)m->layers, (long long)w->pp);
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].borrowed || m->kinds[i].mixer.shares_kv || m->kinds[i].mixer.pool_borrowed)
            return err_set(e, ERR_USAGE, "stages cannot part layers that share %s",
                           m->kinds[i].borrowed ? "weights" : "a cache");
    if (m->per_layer_dim > 0 || m->streams > 0)
        return err_set(e, ERR_USAGE, "stages hand on one stream, and layers read several");
    return ERR_OK;
}

double layout_skew_most(const struct model *m, const struct layout *l)
{
    const struct layout w = layout_whole(l);
    double most = 1; /* the busiest part has all */
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct ffn *f = &m->kinds[i].ffn;
        if (f->kind == FFN_MOE)
            most = fmax(most, fmin((double)w.ep, (double)f->experts / (double)f->experts_per_token));
    }
    return most;
}

enum err_code layout_check(const struct model *m, const struct layout *l, struct err *e)
{
    const struct layout w = layout_whole(l);
    const int64_t group = layout_group(&w);
    const bool experts = layout_routed(m) != NULL;
    const double most = layout_skew_most(m, l);
    for (size_t i = 0; i < m->kinds_n && group > 1; i++)
        if (m->kinds[i].mixer.routed_queries)
            return err_set(e, ERR_USAGE, "%s: how queries made by experts are split over ranks is not known", m->name);
    for (size_t i = 0; i < m->kinds_n && group > w.ep; i++)
        if (m->kinds[i].ffn.latent_each_norm)
            return err_set(
                e, ERR_USAGE,
                "%s: what an expert gives is normed, and how ranks that split an expert do that is not known "
                "(parts of whole experts: --ep %lld)",
                m->name, (long long)group);
    if (w.pp > 1 || w.dcp > 1 || w.sp)
        TRY(model_refuse_encoder(m,
                                 "its ranks split every layer (TP): stages, shared contexts and split norms are not "
                                 "described",
                                 e));
    if (!experts && (w.ep > 1 || w.dp > 1))
        return err_set(e, ERR_USAGE, "there are no experts for %s to be over: copies do what is left",
                       w.ep > 1 ? "expert parallelism" : "attention groups");
    if (group % w.ep != 0)
        return err_set(e, ERR_USAGE, "%lld expert-parallel parts cannot be dealt to %lld ranks (TP x attention-DP)",
                       (long long)w.ep, (long long)group);
    if (!experts && w.skew > 1) return err_set(e, ERR_USAGE, "%s has no experts, so none are skewed", m->name);
    if (w.ep == 1 && w.skew > 1)
        return err_set(e, ERR_USAGE, "skew is of experts in several parts (EP): one part has all tokens");
    if (w.skew < 1 || (w.skew > 1 && w.skew > most))
        return err_set(e, ERR_USAGE, "skew is between 1 (all parts alike) and %.4g (all tokens to one part)", most);
    for (size_t i = 0; i < m->kinds_n; i++) TRY(check_kind(&m->kinds[i], &w, e));
    TRY(check_stages(m, &w, e));
    TRY(check_context(m, &w, e));
    if (m->adapters.slots > 0 && m->adapters.sharded) {
        int64_t part;
        TRY(layout_split("rows of an adapter's first factor (its rank)", m->adapters.rank, RANKS, w.tp, &part, e));
        TRY(layout_split("rows of an adapter's second factor", m->hidden, RANKS, w.tp, &part, e));
    }
    TRY(check_nodes("a TP group", w.tp, &w, e));
    if (w.dcp > 1) TRY(check_nodes("ranks that share a context: a group", w.dcp, &w, e));
    return check_nodes("a stage", group, &w, e);
}

/* The most ranks, fewer than those of a layout that is otherwise the same, over which the model can be split and that
 * divide them; 0: there are none but one. */
static int64_t layout_fewer_ranks(const struct model *m, const struct layout *l)
{
    const int64_t all = layout_whole(l).tp;
    if (!layout_plain(l)) return 0;
    for (int64_t tp = all / 2; tp > 1; tp--) {
        struct layout fewer = *l;
        struct err why = {.code = ERR_OK};
        fewer.tp = tp;
        if (all % tp == 0 && layout_check(m, &fewer, &why) == ERR_OK) return tp;
    }
    return 0;
}

enum err_code layout_check_of(const struct model *m, const struct layout *l, struct err *e)
{
    struct err why = {.code = ERR_OK};
    const enum err_code code = layout_check(m, l, &why);
    if (code == ERR_OK) return ERR_OK;
    const bool named = m->name && !strstr(why.text, m->name);
    const int64_t fewer = layout_fewer_ranks(m, l);
    char can[48] = "";
    if (fewer > 0) (void)snprintf(can, sizeof can, " (--tp %lld divides)", (long long)fewer);
    return err_set(e, code, "%s%s%s%s", named ? m->name : "", named ? ": " : "", why.text, can);
}

/* ---- stages ---- */

/* First layer of stage s. */
static int64_t stage_from(int64_t layers, int64_t pp, int64_t s)
{
    const int64_t each = layers / pp, more = layers % pp;
    const int64_t from = pp - 1 - more; /* stages from .. pp-2 have one more */
    const int64_t extra = s <= from ? 0 : s - from < more ? s - from : more;
    return s * each + extra;
}

int64_t layout_stage_layers(int64_t layers, int64_t pp, int64_t s)
{
    return stage_from(layers, pp, s + 1) - stage_from(layers, pp, s);
}

int64_t layout_stage(const struct model *m, int64_t pp, int64_t s, int64_t *out_counts)
{
    const int64_t from = stage_from(m->layers, pp, s), to = stage_from(m->layers, pp, s + 1);
    for (size_t k = 0; k < m->kinds_n; k++) out_counts[k] = m->encoder.layers > 0 ? m->kinds[k].count : 0;
    if (m->encoder.layers > 0) return to - from; /* both halves: it has no stages */
    if (m->order) {
        for (size_t i = 0; i < m->order_n; i++)
            if (m->order[i].layer >= from && m->order[i].layer < to) out_counts[m->order[i].kind]++;
        return to - from;
    }
    int64_t at = 0;
    for (size_t k = 0; k < m->kinds_n; k++) {
        const int64_t end = at + m->kinds[k].count, low = at > from ? at : from, high = end < to ? end : to;
        if (high > low) out_counts[k] = high - low;
        at = end;
    }
    return to - from;
}

bool layout_crosses(const struct layout *l, int64_t s)
{
    const struct layout w = layout_whole(l);
    const int64_t group = layout_group(&w);
    return group >= w.per_node ? group * w.pp > w.per_node : (s + 1) * group % w.per_node == 0;
}
