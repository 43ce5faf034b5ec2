/* speculate -- speculative decoding, whole: draft, verify, accept, on models small enough to know what comes out.
 *
 * Draft p, target q. A drafted token x is accepted with probability min(1, q(x)/p(x)); at the first that is not, the
 * next token is drawn from max(0, q - p) normalised; when all are, from q. What comes out is distributed as the target
 * alone would draw it (Leviathan, Kalman, Matias, arXiv:2211.17192, theorem 3.5; Chen et al., arXiv:2302.01318).
 * A tree drafts several tokens after each: they are tried in turn, q becoming max(0, q - p) normalised with every one
 * that is not accepted (Miao et al., arXiv:2305.09781, multi-step sampling); all are drawn from p independently.
 * A chain is a tree of one branch. The memory is the caller's, and so are the models. */
#ifndef RIDGE_KERNELS_SPECULATE_H
#define RIDGE_KERNELS_SPECULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A model whose next token depends on the last: probabilities [last][next], rows sum to 1. */
struct speculate_model {
    size_t vocab;
    const double *prob;
};

/* Uniform numbers: a seed, and how many were taken. */
struct speculate_random {
    uint64_t seed, taken;
};

/* speculate_uniform -- the next in [0, 1). speculate_draw -- an index with probability proportional to weight[n] >= 0,
 * whose sum is positive. Cost: O(n). */
double speculate_uniform(struct speculate_random *r);
size_t speculate_draw(const double *weight, size_t n, struct speculate_random *r);

/* A verifier: whether token, drafted from p, is accepted against weights q[n] (a distribution up to a factor). When it
 * is not, q becomes the weights that the next candidate, or the token drawn instead, is held against. */
typedef bool speculate_verify(const double *p, double *q, size_t n, size_t token, struct speculate_random *r);

/* speculate_verify_exact -- modified rejection sampling, as above. */
bool speculate_verify_exact(const double *p, double *q, size_t n, size_t token, struct speculate_random *r);

struct speculate {
    struct speculate_model draft, target; /* of one vocabulary */
    size_t gamma, branches;               /* drafted tokens in a row, >= 1; drafts after each, >= 1 */
    bool greedy;                          /* the most probable token, the first of equals; branches must be 1 */
    speculate_verify *verify;
    double *room;   /* [vocab] */
    size_t *drafts; /* [speculate_nodes(gamma, branches)] */
};

/* speculate_nodes -- of the tree of drafts with its root: 1 + b + ... + b^gamma; SIZE_MAX beyond what can be counted.
 */
size_t speculate_nodes(size_t gamma, size_t branches);

/* speculate_round -- one draft and its verification after `last`: 1 to gamma+1 tokens into out[gamma+1], returns how
 * many. Draft: every node after its parent. Verify: from the root, the drafts after the token accepted last, in turn.
 * Cost: O(speculate_nodes * vocab). */
size_t speculate_round(const struct speculate *s, size_t last, struct speculate_random *r, size_t *out);

/* speculate_generate -- n tokens after `last` into out[n]; *rounds counts what it took. carry[gamma+1]. */
void speculate_generate(const struct speculate *s, size_t last, struct speculate_random *r, size_t *out, size_t n,
                        size_t *rounds, size_t *carry);

#endif
