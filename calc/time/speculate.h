/* speculate -- speculative decoding: a draft proposes tokens, the target judges all of them in one pass. Expected
 * tokens of such a step, its time from the operators of both models, and how many tokens to draft.
 *
 * A step drafts, verifies, and keeps the drafted tokens up to the first that is refused; there the target's own token
 * takes its place. When nothing is refused, the verify pass has one more row of logits, and most implementations draw
 * one more token from it: the *bonus*. It is a convention here (with or without), never silent: with it a chain of
 * gamma drafts yields 1 .. gamma+1 tokens and the pass has gamma+1 query tokens; without it 1 .. gamma tokens and gamma
 * query tokens. Acceptance at a depth is the probability that a drafted token is kept when all before it were.
 *
 * Sources: Leviathan, Kalman, Matias, arXiv 2211.17192; Chen et al., arXiv 2302.01318; SpecInfer, arXiv 2305.09781;
 * Medusa, arXiv 2401.10774; EAGLE, arXiv 2401.15077. Derivations: MODEL.md "Speculation". */
#ifndef RIDGE_TIME_SPECULATE_H
#define RIDGE_TIME_SPECULATE_H

#include "calc/time/step.h"

enum { SPECULATE_DEPTH_MAX = 32, SPECULATE_NODES_MAX = 4096, SPECULATE_RANKS_MAX = 16 };

/* Acceptance in [0, 1]: one value for every depth (n = 1), or at[i] at depth i+1 and nothing known beyond n. With
 * ranks, of a depth the part of each child by its rank: rank[i][r-1] is the probability that the r-th child of a node
 * at depth i is the one that is kept, ranks[i] of them, which fall and are 1 together at most; at[i] is the first.
 * Without (ranks all 0) siblings are independent tries. */
struct speculate_accept {
    double at[SPECULATE_DEPTH_MAX];
    size_t n;
    double rank[SPECULATE_DEPTH_MAX][SPECULATE_RANKS_MAX];
    size_t ranks[SPECULATE_DEPTH_MAX];
};

/* speculate_accept_parse -- "0.8", by depth "0.9,0.8,0.7", by depth and rank "0.6/0.15/0.08,0.5/0.1". Errors:
 * ERR_USAGE. speculate_accept_ranked -- whether ranks are given. */
bool speculate_accept_ranked(const struct speculate_accept *a);
enum err_code speculate_accept_parse(const char *text, struct speculate_accept *out, struct err *e);

/* speculate_depth_max -- the deepest draft that the acceptance says something about. */
int64_t speculate_depth_max(const struct speculate_accept *a);

/* speculate_accept_at -- acceptance at depth >= 1; NAN beyond speculate_depth_max. */
double speculate_accept_at(const struct speculate_accept *a, int64_t depth);

/* speculate_accept_child -- probability that the r-th child (from 1) of a node that was kept is kept, at depth >= 1: of
 * its rank, NAN beyond those that are given; without ranks p*(1-p)^(r-1). Source: 2401.10774, section 2.3.3 (accuracy
 * of the i-th prediction of head k). */
double speculate_accept_child(const struct speculate_accept *a, int64_t depth, int64_t r);

/* speculate_kept -- expected drafted tokens that a chain of gamma keeps: sum over i = 1..gamma of the product of the
 * first i acceptances; a*(1-a^gamma)/(1-a) when constant. speculate_tokens -- expected tokens of a step: 1 +
 * kept(gamma) with the bonus, (1-a^(gamma+1))/(1-a); 1 + kept(gamma-1) without, (1-a^gamma)/(1-a). gamma >= 0, without
 * the bonus
 * >= 1; NAN beyond the acceptance. Source: 2211.17192, equation 1. */
double speculate_kept(const struct speculate_accept *a, int64_t gamma);
double speculate_tokens(const struct speculate_accept *a, int64_t gamma, bool bonus);

/* speculate_tokens_square -- E[tokens^2] of such a step: sum over i of (2i - 1) times the probability of i tokens or
 * more, which is 1 for i = 1 and falls by the acceptances. NAN beyond the acceptance. */
double speculate_tokens_square(const struct speculate_accept *a, int64_t gamma, bool bonus);

/* speculate_tokens_formula -- speculate_tokens of a constant acceptance a as an expression: (1 - a^(g+1))/(1 - a) with
 * the bonus, (1 - a^g)/(1 - a) without; undefined at a = 1. */
const struct sym *speculate_tokens_formula(struct sym_ctx *c, const struct sym *a, const struct sym *g, bool bonus);

/* A tree of drafts below the last token: nodes at each depth, or children of each node at each depth (the k best tokens
 * of each head, all combined). A chain of gamma is 1,1,..,1. */
struct speculate_tree {
    int64_t depth, width[SPECULATE_DEPTH_MAX];
    bool children;
};

/* speculate_tree_parse -- "1,3,2,1": nodes at depths 1, 2, ..; "4x2x1": children of each node. Errors: ERR_USAGE not
 * such a list, deeper than SPECULATE_DEPTH_MAX or of more than SPECULATE_NODES_MAX nodes. */
enum err_code speculate_tree_parse(const char *text, struct speculate_tree *out, struct err *e);

/* A node of a tree: child[first .. first + children - 1] of its shape are its children, the first rank first. */
struct speculate_node {
    int32_t children, first;
};

/* What a tree is and yields. */
struct speculate_shape {
    int64_t depth, nodes[SPECULATE_DEPTH_MAX]; /* nodes at each depth */
    int64_t drafted;                           /* nodes in all */
    int64_t query_tokens;              /* of the verify pass: nodes + 1; without bonus those with children + 1 */
    double kept_tokens;                /* expected drafted tokens kept */
    double tokens;                     /* expected tokens of a step */
    double tokens_square;              /* E[tokens^2] */
    const struct speculate_node *node; /* the last token, then depth by depth: drafted + 1 */
    const int32_t *child;              /* drafted of them: places in node */
};

/* speculate_tree_shape -- siblings are tried in turn, each kept with the acceptance p of its depth once those before it
 * were refused: the r-th child of a node is kept with p*(1-p)^(r-1), one of k with 1-(1-p)^k; or as ranks say. The
 * events of siblings exclude each other, so kept_tokens is the sum over nodes of the product along the path. Nodes
 * given by depth hang where they are likeliest. Without the bonus a walk that ends in a node without children yields
 * one token less; tokens_square is the sum over i of (2i - 1) times the probability of i tokens or more. Errors:
 * ERR_USAGE deeper than the acceptance reaches, or more children than it has ranks; ERR_NOMEM. Cost: O(sum of
 * nodes[d]*nodes[d+1]). Source: 2305.09781 (multi-step speculative sampling); 2401.10774, section 2.3.3.
 */
enum err_code speculate_tree_shape(struct arena *a, const struct speculate_tree *t, const struct speculate_accept *p,
                                   bool bonus, struct speculate_shape *out, struct err *e);

/* speculate_speedup -- tokens per second with speculation over those without: tokens*decode/(draft + verify). */
double speculate_speedup(double tokens, double decode_s, double draft_s, double verify_s);

/* speculate_best -- the gamma of 1..n with the largest speedup (the smallest such) and that speedup (NAN: none is
 * known); draft_s[i] and verify_s[i] are those of gamma = i+1. Source: 2211.17192, section 3.5, there with draft_s =
 * gamma*c and verify_s = 1.
 */
int64_t speculate_best(const struct speculate_accept *a, bool bonus, int64_t n, double decode_s, const double *draft_s,
                       const double *verify_s, double *out_speedup);

/* ---- on a device ---- */

/* Other seconds than a step's own: of a decode step of `of`, one of the steps below, or of its pass over T tokens. */
struct speculate_clock {
    double (*seconds)(void *self, struct step *of, double B, double T, double S, double M);
    void *self;
};

/* Two models on the same devices, draft and target in turn. Steps are borrowed. */
struct speculate_setup {
    struct step *target;          /* ordinary */
    struct step *verify;          /* the target, compiled with verify */
    struct step *draft;           /* ordinary */
    struct step *draft_wide;      /* the draft, compiled with verify: passes over several nodes of a tree; else NULL */
    struct speculate_clock clock; /* seconds NULL: the steps' own */
    struct speculate_accept accept;
    bool bonus;
    bool one_pass;     /* one pass of the draft proposes all depths (Medusa's heads), not one a depth */
    int64_t depth_max; /* drafts in a row that the draft can make (its heads); 0: any number */
    int64_t gamma;     /* of a chain; 0: the best at every point */
    const struct speculate_shape *shape; /* NULL: a chain */
};

struct speculate_point {
    int64_t gamma; /* drafts in a row: of the chain, or the depth of the tree */
    int64_t query_tokens;
    int64_t best_gamma; /* of a chain */
    double tokens;      /* expected, of a step of one sequence */
    double decode_s, draft_s, verify_s, step_s, speedup;
    double kv_bytes, kv_allocated_bytes, state_bytes, activation_bytes; /* of the target, drafted tokens included */
    double draft_kv_bytes, draft_state_bytes, draft_activation_bytes;
};

/* speculate_eval -- one step at batch B and context S (that of the first query token); T prompt tokens, for the draft's
 * activations; M > 1: as the mean over M decode steps, the last at S, taken at their mean context. Drafts of depth d
 * are made by one pass over the nodes of depth d-1, the first over the last token; draft_s adds them up. Memory counts
 * the drafted tokens. Bytes are per GPU. Cost: 2*depth points of step_eval. */
void speculate_eval(const struct speculate_setup *s, double B, double T, double S, double M,
                    struct speculate_point *out);

/* A pass of the draft within a step: over `tokens` tokens of a sequence, the first of them at context S. */
struct speculate_pass {
    struct step *step;
    double tokens, S;
};

/* speculate_passes -- those of a chain of gamma (of the tree where there is one) at context S, in order; how many.
 * Passes after the first find what those before put into the draft's cache. */
size_t speculate_passes(const struct speculate_setup *s, int64_t gamma, double S,
                        struct speculate_pass out[SPECULATE_DEPTH_MAX]);

/* speculate_draft_s -- seconds of all of them at batch B. */
double speculate_draft_s(const struct speculate_setup *s, int64_t gamma, double B, double S);

/* speculate_judged -- tokens of a sequence in the pass that judges a chain of gamma drafts, or the tree where there is
 * one. speculate_drafted -- of them drafted. speculate_mean, speculate_square -- expected tokens of such a step, and of
 * their square. */
int64_t speculate_judged(const struct speculate_setup *s, int64_t gamma);
int64_t speculate_drafted(const struct speculate_setup *s, int64_t gamma);
double speculate_mean(const struct speculate_setup *s, int64_t gamma);
double speculate_square(const struct speculate_setup *s, int64_t gamma);

/* speculate_keep -- a step of one sequence as it falls: drafted tokens that are kept, down the chain of gamma or the
 * tree, and in *made the tokens that come out. u[d]: of depth d + 1, in [0, 1), drawn for it; with the children of the
 * node that is reached kept with a_1, a_2, .. it goes to the first r for which a_1 + .. + a_r exceeds u, and ends where
 * none does. A chain is the tree of width one. */
int64_t speculate_keep(const struct speculate_setup *s, int64_t gamma, const double u[SPECULATE_DEPTH_MAX],
                       int64_t *made);

enum { SPECULATE_BATCH_MAX = 65536 };

/* speculate_pays_until -- the largest batch up to SPECULATE_BATCH_MAX at which the step above is faster than decoding,
 * whatever the memory; 0: at none. Looked for at powers of two, then between them: of experts the gain has a dip at
 * small batches, so it is the last crossing. Cost: 33 points of speculate_eval at most. */
int64_t speculate_pays_until(const struct speculate_setup *s, double T, double S, double M);

#endif
