/* layout -- how the ranks of a deployment share a model: the one object that memory, bytes sent and time are read from.
 *
 * A copy of the model takes tp*dp*pp GPUs. Ranks are numbered with tp innermost, then dp, pp, copies, so that groups
 * that talk most are neighbours; per_node of them are joined by the device's link, nodes by the fabric. Derivation and
 * sources: MODEL.md "Layouts". */
#ifndef RIDGE_COST_LAYOUT_H
#define RIDGE_COST_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/err.h"
#include "calc/model/model.h"
#include "calc/sym/sym.h"

/* How often a token is sent to the ranks of its experts. */
enum layout_dispatch {
    LAYOUT_COPIES, /* once for each expert and rank that has columns of it; where that is every rank or more, as GATHER
                    */
    LAYOUT_ONCE,   /* once to a node that has one of its experts, there once to each rank that has one */
    LAYOUT_GATHER, /* once to every node, there to every rank */
};

/* 0 of a number stands for 1, of per_node for all, of microbatches for pp: all zero is one GPU. Microbatches are of
 * stages: without them a batch is one. */
struct layout {
    int64_t tp;  /* ranks that split attention, dense blocks and vocabulary of a group */
    int64_t dp;  /* attention groups of tp ranks, each with sequences of its own; experts are those of all groups */
    int64_t ep;  /* parts in which the experts are dealt to tp*dp ranks; the ranks of a part split their columns */
    int64_t pp;  /* stages of whole layers */
    int64_t dcp; /* of tp neighbouring ranks that share the cache of a sequence by tokens (decode context) */
    int64_t replicas;     /* copies, which share nothing */
    int64_t per_node;     /* GPUs that one node's link joins */
    int64_t microbatches; /* parts of a batch that are in the stages at once */
    bool sp;              /* norms and residual sums on 1/tp of the tokens */
    bool context_direct; /* partial outputs go to the ranks of their heads with their log-sum-exps, in one all-to-all */
    enum layout_dispatch dispatch;
    double skew; /* routed tokens of the busiest part over the mean; 0: 1 */
};

/* What a layout is to the expressions: field, text, meaning. t and r are of cost.h. That a context is shared is of the
 * structure, like sp; by how many is a number. */
#define LAYOUT_SYMBOLS(X)                                                                                              \
    X(context, "layout_context", "ranks that share the cache of a sequence by tokens")                                 \
    X(context_far, "layout_context_far", "parts of an all-gather among them that come over the fabric")                \
    X(groups, "layout_groups", "attention groups")                                                                     \
    X(parts, "layout_parts", "parts in which experts are dealt")                                                       \
    X(skew, "layout_skew", "routed tokens of the busiest part over the mean")                                          \
    X(rise0, "layout_rise_0", "experts of the busiest part per distinct expert, and how it changes")                   \
    X(rise1, "layout_rise_1", "at the knots of layout_knots")                                                          \
    X(rise2, "layout_rise_2", "")                                                                                      \
    X(rise3, "layout_rise_3", "")                                                                                      \
    X(rise4, "layout_rise_4", "")                                                                                      \
    X(rise5, "layout_rise_5", "")                                                                                      \
    X(rise6, "layout_rise_6", "")                                                                                      \
    X(rise7, "layout_rise_7", "")                                                                                      \
    X(rise8, "layout_rise_8", "")                                                                                      \
    X(rise9, "layout_rise_9", "")                                                                                      \
    X(rise10, "layout_rise_10", "")                                                                                    \
    X(split, "layout_split", "1 where t > 1, else 0")                                                                  \
    X(spread, "layout_spread", "1 where there are several attention groups, else 0")                                   \
    X(narrow, "layout_narrow", "ranks over which norms split the tokens")                                              \
    X(reduced, "layout_reduced", "bytes over the fabric per byte all-reduced")                                         \
    X(gathered, "layout_gathered", "parts that come over the fabric per part of an all-gather")                        \
    X(near, "layout_near", "copies of a token sent within the node")                                                   \
    X(far, "layout_far", "copies of a token sent over the fabric")                                                     \
    X(hop_near, "layout_hop_near", "bytes within the node per byte handed to the next stage")                          \
    X(hop_far, "layout_hop_far", "bytes over the fabric per byte handed to the next stage")

struct layout_symbols {
#define X(field, text, meaning) const struct sym *field;
    LAYOUT_SYMBOLS(X)
#undef X
};
enum {
#define X(field, text, meaning) LAYOUT_##field,
    LAYOUT_SYMBOLS(X)
#undef X
        LAYOUT_NUMBERS
};

struct layout_symbols layout_symbols_make(struct sym_ctx *c);

/* layout_whole -- the same with ones, per_node, microbatches and skew in place of zeros. NULL: one GPU. */
struct layout layout_whole(const struct layout *l);

/* layout_numbers -- the number of each symbol; experts and experts_per_token as a layer has them (0 none). hop_*: of a
 * stage whose next one is in another node (crosses), or in its own. A token's copies: MODEL.md "Layouts".
 */
void layout_numbers(const struct layout *l, const struct model *m, bool crosses, double out[LAYOUT_NUMBERS]);

/* layout_hops -- of them hop_near and hop_far alone. */
void layout_hops(const struct layout *l, bool crosses, double *near, double *far);

/* layout_routed -- the experts that the numbers of a layout are of: those of the first layers that have any; NULL none.
 */
const struct ffn *layout_routed(const struct model *m);

/* layout_group -- tp*dp, ranks of a stage; layout_gpus -- those of all copies. layout_nodes -- nodes that n
 * neighbouring ranks lie in. layout_plain -- tensor parallelism in one node and copies, nothing else. */
int64_t layout_group(const struct layout *l);
int64_t layout_gpus(const struct layout *l);
int64_t layout_nodes(const struct layout *l, int64_t n);
bool layout_plain(const struct layout *l);

/* layout_skew_most -- the largest skew that parts can have: all tokens go to one, min(e, E/k); 1 with one part. */
double layout_skew_most(const struct model *m, const struct layout *l);

/* layout_check -- whether a model can be laid out so. Errors: ERR_USAGE naming what does not divide: heads, KV heads,
 * columns, experts, nodes; stages of layers that share weights or a cache; experts of a model that has none. */
enum err_code layout_check(const struct model *m, const struct layout *l, struct err *e);
/* layout_check_of -- the same, its sentence beginning with the model's name where it has one, and ending with fewer
 * ranks that would do where there are some. Cost: layout_check of every divisor of tp. */
enum err_code layout_check_of(const struct model *m, const struct layout *l, struct err *e);

/* layout_split -- n over parts. Errors: ERR_USAGE naming both. layout_kv_heads -- KV heads of one of tp ranks: at least
 * one, so they are copied when there are fewer than ranks. Errors: ERR_USAGE. */
enum err_code layout_split(const char *what, int64_t n, const char *over, int64_t parts, int64_t *out, struct err *e);
enum err_code layout_kv_heads(const struct mixer *x, int64_t tp, int64_t *out, struct err *e);

/* layout_shares_context -- whether the cache of such a layer is split by tokens where a context is shared: attention to
 * all tokens, plain or latent. Windows, chunks and states are kept whole by every rank. Source: vLLM
 * dcp_world_size_for_kv_cache_spec. layout_context_most -- the most ranks of tp that can share a context: those that
 * have the same KV head, tp/K, or of a latent all; as many as divide the queries of a head. */
bool layout_shares_context(const struct mixer *x);
int64_t layout_context_most(const struct model *m, int64_t tp);

/* layout_draft -- the layout of a draft on tp of the ranks of a model: as many share its context as the model's, where
 * it attends at all. Source: vLLM, whose drafts have the rule of the model. */
struct layout layout_draft(const struct model *draft, const struct layout *l, int64_t tp);

/* layout_stage -- how many layers of each kind stage s has, of m->kinds_n; returns the layers in it. Layers run in the
 * model's order, L/pp to a stage; what is left over goes one each to the stages before the last, from its neighbour
 * back. Source: vLLM get_pp_indices. */
int64_t layout_stage(const struct model *m, int64_t pp, int64_t s, int64_t *out_counts);

/* layout_stage_layers -- how many layers stage s of pp has. */
int64_t layout_stage_layers(int64_t layers, int64_t pp, int64_t s);

/* layout_crosses -- whether stage s hands its stream to another node. */
bool layout_crosses(const struct layout *l, int64_t s);

/* layout_bubble -- part of the time that stages idle while m microbatches pass p of them once: (p-1)/(m+p-1). */
double layout_bubble(int64_t stages, int64_t microbatches);

/* layout_touched -- part of parts that a token with k of E experts has one in, all choices alike:
 * 1 - C(E - E/parts, k)/C(E, k). */
double layout_touched(int64_t experts, int64_t experts_per_token, int64_t parts);

/* layout_busiest -- experts of the part that has most of them, of s drawn among E in equal parts, all choices alike:
 * sum over m of 1 - P(no part has more than m), P the coefficient of x^s in (sum over i <= m of C(E/parts, i)
 * x^i)^parts over C(E, s); exact. From 0 to min(s, E/parts). Of more than LAYOUT_EXPERTS_MAX, whose
 * C(E, E/2) a double still holds: s/parts, the mean. Cost: O(E^2 * E/parts). */
enum { LAYOUT_EXPERTS_MAX = 1000 }; /* not a unit */
enum { LAYOUT_KNOTS = 12 };
double layout_busiest(int64_t experts, int64_t parts, int64_t s);

/* layout_knots -- distinct experts between which layout_busiest is drawn straight: 0, k, and on to E by a constant
 * factor; knots may be alike. */
void layout_knots(int64_t experts, int64_t experts_per_token, double out[LAYOUT_KNOTS]);

#endif
