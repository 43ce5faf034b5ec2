/* Speculation: published vectors, closed forms, and the accept-and-refuse loop of rows and trees played out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/csv.h"
#include "tests/speculated.h"

/* ---- vectors ---- */

static char *shared_text(struct arena *a, const char *file)
{
    FILE *f = fopen(csv_shared(a, file), "rb");
    if (!f) return NULL;
    enum { MOST = 1 << 16 };
    char *text = arena_array(a, MOST, 1);
    if (text) text[fread(text, 1, MOST - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

static int64_t best_at(double alpha, double c, double *speedup)
{
    const struct speculate_accept a = constant(alpha);
    double draft[SPECULATE_DEPTH_MAX], verify[SPECULATE_DEPTH_MAX];
    for (int i = 0; i < SPECULATE_DEPTH_MAX; i++) {
        draft[i] = (i + 1) * c;
        verify[i] = 1;
    }
    return speculate_best(&a, true, SPECULATE_DEPTH_MAX, 1, draft, verify, speedup);
}

/* "Best gamma (speed-up): alpha .6,c .1: 3 (1.67); .7,.05: 6 (2.35); ..." and the expected tokens at alpha .8. */
static void test_shared_vectors(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *text = shared_text(a, "serving/formulas.md");
    if (!text) {
        arena_close(a);
        skip();
    }
    int gamma[4], n = 0;
    double want[4], alpha, c, speedup;
    const char *at = strstr(text, "Test: alpha .8: gamma ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "Test: alpha .8: gamma %d/%d/%d/%d -> %lf / %lf / %lf / %lf", &gamma[0], &gamma[1],
                            &gamma[2], &gamma[3], &want[0], &want[1], &want[2], &want[3]),
                     8);
    for (int i = 0; i < 4; i++) {
        const struct speculate_accept p = constant(.8);
        assert_true(fabs(speculate_tokens(&p, gamma[i], true) - want[i]) < 6e-4);
    }
    at = strstr(text, "Best gamma (speed-up):");
    assert_non_null(at);
    at += strlen("Best gamma (speed-up):");
    for (int best;
         sscanf(at, n == 0 ? " alpha %lf,c %lf: %d (%lf)" : " %lf,%lf: %d (%lf)", &alpha, &c, &best, &want[0]) == 4;
         n++) {
        assert_int_equal(best_at(alpha, c, &speedup), best);
        assert_true(fabs(speedup - want[0]) < 6e-3);
        at = strchr(at, ')') + 1;
        if (*at == ';') at++;
    }
    assert_int_equal(n, 6);
    arena_close(a);
}

/* Mean lengths measured at depths 1 to 5, and what a constant acceptance would have made of the first. */
static void test_shared_depths(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    const char *text = shared_text(a, "serving/formulas.md"), *at = text ? strstr(text, "MTP mean lengths ") : NULL;
    if (!text) {
        arena_close(a);
        skip();
    }
    double mean[5], geometric, first;
    int depth;
    assert_non_null(at);
    assert_int_equal(
        sscanf(at, "MTP mean lengths %lf, %lf, %lf, %lf, %lf", &mean[0], &mean[1], &mean[2], &mean[3], &mean[4]), 5);
    struct speculate_accept p = {.n = 5};
    for (int i = 0; i < 5; i++)
        p.at[i] = (mean[i] - (i ? mean[i - 1] : 1)) / (i == 0 ? 1 : mean[i - 1] - (i > 1 ? mean[i - 2] : 1));
    for (int i = 0; i < 5; i++) assert_close(speculate_tokens(&p, i + 1, true), mean[i], 1e-12, "mean length");
    at = strstr(text, "the geometric law with ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "the geometric law with %lf predicts %lf at depth %d", &first, &geometric, &depth), 3);
    p = constant(first);
    assert_true(fabs(speculate_tokens(&p, depth, true) - geometric) < 6e-3);
    arena_close(a);
}

/* The same by hand: a = 3/5: 1 + 3/5 + 9/25 = 49/25, and so on. */
static void test_by_hand(void **state)
{
    (void)state;
    const struct speculate_accept a = constant(.6);
    assert_close(speculate_tokens(&a, 2, true), 49. / 25, 1e-15, "a = 3/5, two drafts");
    assert_close(speculate_tokens(&a, 2, false), 8. / 5, 1e-15, "no bonus");
    assert_close(speculate_kept(&a, 2), 24. / 25, 1e-15, "kept");
    const struct speculate_accept depths = {.at = {.9, .5, .2}, .n = 3};
    assert_close(speculate_tokens(&depths, 3, true), 1 + .9 + .45 + .09, 1e-15, "by depth");
    assert_close(speculate_tokens(&depths, 3, false), 1 + .9 + .45, 1e-15, "by depth, no bonus");
    assert_true(isnan(speculate_tokens(&depths, 4, true)));
    assert_true(speculate_depth_max(&depths) == 3 && isnan(speculate_accept_at(&depths, 4)));
    double speedup;
    /* a = .8, c = .5: (1 + .8 + .64)/2 = 1.22 at two drafts, 1.8/1.5 = 1.2 at one, 2.952/2.5 = 1.18 at three */
    assert_int_equal(best_at(.8, .5, &speedup), 2);
    assert_close(speedup, 1.22, 1e-12, "speedup");
    assert_int_equal(best_at(.1, .9, &speedup), 1); /* even the best is a loss: a < c */
    assert_true(speedup < 1);
}

/* Closed forms of the geometric series; gamma drafts are neither gamma nor gamma + 1 tokens unless all are kept. */
static void test_closed_forms(void **state)
{
    (void)state;
    static const double ALPHAS[] = {.07, .31, .59, .83, .97};
    for (size_t i = 0; i < COUNT(ALPHAS); i++)
        for (int64_t g = 1; g <= SPECULATE_DEPTH_MAX; g++) {
            const double a = ALPHAS[i];
            const struct speculate_accept p = constant(a);
            assert_close(speculate_tokens(&p, g, true), (1 - pow(a, (double)g + 1)) / (1 - a), 1e-13, "bonus");
            assert_close(speculate_tokens(&p, g, false), (1 - pow(a, (double)g)) / (1 - a), 1e-13, "no bonus");
            assert_close(speculate_kept(&p, g), a * (1 - pow(a, (double)g)) / (1 - a), 1e-13, "kept");
            assert_true(speculate_tokens(&p, g, true) < (double)g + 1);
        }
    for (int64_t g = 1; g <= 7; g++) {
        const struct speculate_accept all = constant(1), none = constant(0);
        assert_true(speculate_tokens(&all, g, true) == (double)g + 1);
        assert_true(speculate_tokens(&all, g, false) == (double)g);
        assert_true(speculate_tokens(&none, g, true) == 1 && speculate_tokens(&none, g, false) == 1);
    }
}

/* Chinchilla drafts K = 4 at 1.8 ms a token where it takes 14.1 ms itself; its gains (1.92, 2.46, as the lecture quotes
 * them) must lie below what full acceptance allows and come from acceptances that a draft can have. Source:
 * 2302.01318, section 4. */
static void test_chinchilla(void **state)
{
    (void)state;
    static const double GAINS[] = {1.92, 2.46};
    const double draft = 4 * 1.8 / 14.1;
    const struct speculate_accept all = constant(1);
    const double ceiling = speculate_speedup(speculate_tokens(&all, 4, true), 1, draft, 1);
    double before = 0;
    for (size_t i = 0; i < COUNT(GAINS); i++) {
        assert_true(GAINS[i] < ceiling);
        double lo = 0, hi = 1;
        for (int k = 0; k < 60; k++) {
            const struct speculate_accept p = constant((lo + hi) / 2);
            *(speculate_speedup(speculate_tokens(&p, 4, true), 1, draft, 1) < GAINS[i] ? &lo : &hi) = (lo + hi) / 2;
        }
        assert_true(lo > .6 && lo < .9 && lo > before);
        before = lo;
    }
}

/* ---- the loop, played out ---- */

static uint64_t random_next(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double random_unit(uint64_t *s) { return (double)(random_next(s) >> 11) * 0x1p-53; }

enum { WORDS = 5 };

static int draw(uint64_t *s, const double *p)
{
    double u = random_unit(s);
    for (int i = 0; i < WORDS - 1; i++) {
        if (u < p[i]) return i;
        u -= p[i];
    }
    return WORDS - 1;
}

/* One step with target p and draft q: tokens kept, replaced and, with the bonus, added. */
static int play_step(uint64_t *s, const double *p, const double *q, int gamma, bool bonus, int *out)
{
    double rest[WORDS], sum = 0;
    for (int i = 0; i < WORDS; i++) sum += rest[i] = fmax(p[i] - q[i], 0);
    for (int i = 0; i < WORDS; i++) rest[i] /= sum;
    for (int g = 0; g < gamma; g++) {
        const int x = draw(s, q);
        if (random_unit(s) * q[x] < p[x]) {
            out[g] = x;
            continue;
        }
        out[g] = draw(s, rest);
        return g + 1;
    }
    if (!bonus) return gamma;
    out[gamma] = draw(s, p);
    return gamma + 1;
}

/* Acceptance is the sum of min(p, q); the mean length of a step is the formula's, and what comes out is a sample of the
 * target whatever the draft. */
static void test_chain_against_loop(void **state)
{
    (void)state;
    static const double P[WORDS] = {.41, .23, .17, .13, .06}, Q[WORDS] = {.19, .31, .11, .29, .10};
    enum { STEPS = 200000, GAMMA = 4 };
    double alpha = 0;
    uint64_t seed = 20231;
    for (int i = 0; i < WORDS; i++) alpha += fmin(P[i], Q[i]);
    const struct speculate_accept a = constant(alpha);
    for (int bonus = 0; bonus < 2; bonus++)
        for (int gamma = 1; gamma <= GAMMA; gamma++) {
            double sum = 0, squares = 0, first[WORDS] = {0};
            for (int k = 0; k < STEPS; k++) {
                int words[GAMMA + 1];
                const int n = play_step(&seed, P, Q, gamma, bonus, words);
                sum += n;
                squares += (double)n * n;
                first[words[0]] += 1. / STEPS;
            }
            const double mean = sum / STEPS, deviation = sqrt(fmax(squares / STEPS - mean * mean, 0) / STEPS);
            const double want = speculate_tokens(&a, gamma, bonus);
            if (!(fabs(mean - want) <= 5 * deviation)) fail_msg("gamma %d: %.5f, want %.5f", gamma, mean, want);
            for (int i = 0; i < WORDS; i++) assert_true(fabs(first[i] - P[i]) < 5 * sqrt(P[i] / STEPS));
        }
}

/* Children are tried in turn at every node, down to a refusal of all or to a node without any. */
static int play_tree(uint64_t *s, const struct speculate_tree *t, const struct speculate_accept *p, bool bonus)
{
    for (int64_t d = 0; d < t->depth; d++) {
        bool kept = false;
        for (int64_t k = 0; k < t->width[d] && !kept; k++) kept = random_unit(s) < speculate_accept_at(p, d + 1);
        if (!kept) return (int)d + 1;
    }
    return (int)t->depth + (bonus ? 1 : 0);
}

static void test_tree_against_loop(void **state)
{
    (void)state;
    static const char *const TREES[] = {"3x2x1", "1x5x2x3", "7x1"};
    enum { STEPS = 200000 };
    const struct speculate_accept p = {.at = {.61, .43, .37, .29}, .n = 4};
    struct arena *a = arena_open();
    struct err e = {0};
    uint64_t seed = 90017;
    for (size_t i = 0; i < COUNT(TREES); i++)
        for (int bonus = 0; bonus < 2; bonus++) {
            struct speculate_tree t;
            struct speculate_shape shape;
            assert_int_equal(speculate_tree_parse(TREES[i], &t, &e), ERR_OK);
            assert_int_equal(speculate_tree_shape(a, &t, &p, bonus, &shape, &e), ERR_OK);
            double sum = 0, squares = 0;
            for (int k = 0; k < STEPS; k++) {
                const int n = play_tree(&seed, &t, &p, bonus);
                sum += n;
                squares += (double)n * n;
            }
            const double mean = sum / STEPS, deviation = sqrt((squares / STEPS - mean * mean) / STEPS);
            if (!(fabs(mean - shape.tokens) <= 5 * deviation))
                fail_msg("%s: %.5f, want %.5f", TREES[i], mean, shape.tokens);
        }
    arena_close(a);
}

/* ---- trees ---- */

/* Largest expected kept tokens of all ways to hang width[d..] under nodes of these probabilities. */
static double hang_all(const double *above, int n, const struct speculate_tree *t, int64_t d,
                       const struct speculate_accept *p);

static double share_out(const double *above, int n, int at, int left, double *below, int m,
                        const struct speculate_tree *t, int64_t d, const struct speculate_accept *p)
{
    if (at == n) {
        if (left > 0) return -1;
        double sum = 0;
        for (int i = 0; i < m; i++) sum += below[i];
        return sum + hang_all(below, m, t, d + 1, p);
    }
    double most = -1, q = above[at] * speculate_accept_at(p, d + 1);
    for (int k = 0; k <= left; k++) { /* this node gets k children */
        const double sum = share_out(above, n, at + 1, left - k, below, m + k, t, d, p);
        if (sum > most) most = sum;
        below[m + k] = q;
        q *= 1 - speculate_accept_at(p, d + 1);
    }
    return most;
}

static double hang_all(const double *above, int n, const struct speculate_tree *t, int64_t d,
                       const struct speculate_accept *p)
{
    double below[16];
    return d == t->depth ? 0 : share_out(above, n, 0, (int)t->width[d], below, 0, t, d, p);
}

/* The expression that is explained is what is computed. */
static void test_formula(void **state)
{
    (void)state;
    struct arena *arena = arena_open();
    struct sym_ctx *c = sym_open(arena);
    for (int bonus = 0; bonus < 2; bonus++)
        for (int64_t gamma = 1; gamma <= 7; gamma += 2)
            for (double a = 0.13; a < 1; a += 0.29) {
                const struct speculate_accept p = constant(a);
                double v = (double)NAN;
                const struct sym *e = speculate_tokens_formula(c, sym_num(c, a), sym_int(c, gamma), bonus);
                assert_true(sym_constant(e, &v));
                assert_close(v, speculate_tokens(&p, gamma, bonus), 1e-12, "tokens");
            }
    arena_close(arena);
}

/* Nodes as a list: where each hangs and the how-manieth child it is. */
struct leaf {
    int parent, rank, depth; /* parent -1: the last token */
};

/* Expected kept tokens by definition: over all nodes the product of the acceptances along the path. */
static double paths(const struct leaf *node, int n, const double (*rank)[4])
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double reached = 1;
        for (int at = i; at >= 0; at = node[at].parent) reached *= rank[node[at].depth - 1][node[at].rank - 1];
        sum += reached;
    }
    return sum;
}

/* One draw a node: which child is the target's own token, or none. */
static double play_ranked(uint64_t *s, const struct leaf *node, int n, const double (*rank)[4], int steps)
{
    double kept = 0;
    for (int k = 0; k < steps; k++)
        for (int at = -1, depth = 1; depth <= 3; depth++) {
            double u = random_unit(s);
            int next = -1;
            for (int r = 1; r <= 4 && next < 0; r++) {
                u -= rank[depth - 1][r - 1];
                if (u >= 0) continue;
                for (int i = 0; i < n; i++)
                    if (node[i].parent == at && node[i].depth == depth && node[i].rank == r) next = i;
                break;
            }
            if (next < 0) break;
            kept++;
            at = next;
        }
    return kept / steps;
}

/* Acceptance by depth and rank, as Medusa measures its heads: a tree by hand, its nodes walked and played. */
static void test_tree_by_rank(void **state)
{
    (void)state;
    static const double RANK[3][4] = {{.61, .13, .07, .03}, {.43, .17, .05, .02}, {.37, .11, .02, .01}};
    struct arena *a = arena_open();
    struct err e = {0};
    struct speculate_accept p;
    struct speculate_tree t;
    struct speculate_shape shape;
    assert_int_equal(speculate_accept_parse(".61/.13/.07/.03,.43/.17/.05/.02,.37/.11/.02/.01", &p, &e), ERR_OK);
    assert_true(speculate_accept_ranked(&p));
    assert_close(speculate_tokens(&p, 3, true), 1 + .61 + .61 * .43 + .61 * .43 * .37, 1e-14,
                 "a chain is of first ranks");
    /* 3,4,2: three children of the last token; below: .61*.43 > .61*.17 > .13*.43 > .61*.05; then .37 of the first two
     */
    static const struct leaf HUNG[] = {{-1, 1, 1}, {-1, 2, 1}, {-1, 3, 1}, {0, 1, 2}, {0, 2, 2},
                                       {1, 1, 2},  {0, 3, 2},  {3, 1, 3},  {4, 1, 3}};
    assert_int_equal(speculate_tree_parse("3,4,2", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(a, &t, &p, true, &shape, &e), ERR_OK);
    assert_close(shape.kept_tokens, paths(HUNG, COUNT(HUNG), RANK), 1e-14, "3,4,2");
    assert_close(shape.tokens, 1 + shape.kept_tokens, 1e-14, "3,4,2");
    uint64_t seed = 60013;
    enum { STEPS = 400000 };
    const double played = play_ranked(&seed, HUNG, COUNT(HUNG), RANK, STEPS);
    assert_true(fabs(played - shape.kept_tokens) < 5 * 1.2 / sqrt(STEPS)); /* deviation of 0..3 below 1.2 */
    /* 3x2x1: every node */
    struct leaf all[3 + 6 + 6];
    int n = 0;
    for (int i = 0; i < 3; i++) all[n++] = (struct leaf){-1, i + 1, 1};
    for (int i = 0; i < 6; i++) all[n++] = (struct leaf){i / 2, i % 2 + 1, 2};
    for (int i = 0; i < 6; i++) all[n++] = (struct leaf){3 + i, 1, 3};
    assert_int_equal(speculate_tree_parse("3x2x1", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(a, &t, &p, true, &shape, &e), ERR_OK);
    assert_close(shape.kept_tokens, paths(all, n, RANK), 1e-14, "3x2x1");
    /* without the bonus a walk to the last depth yields one less */
    assert_int_equal(speculate_tree_shape(a, &t, &p, false, &shape, &e), ERR_OK);
    assert_close(shape.tokens, 1 + paths(all, n, RANK) - (.61 + .13 + .07) * (.43 + .17) * .37, 1e-14, "no bonus");
    /* independent tries of the first rank keep more: a second choice is worse than that */
    const struct speculate_accept tries = {.at = {.61, .43, .37}, .n = 3};
    struct speculate_shape wide;
    assert_int_equal(speculate_tree_shape(a, &t, &tries, true, &wide, &e), ERR_OK);
    assert_true(wide.tokens > 1 + shape.kept_tokens);
    /* one depth is every depth; beyond the ranks nothing is guessed */
    assert_int_equal(speculate_accept_parse("0.5/0.25", &p, &e), ERR_OK);
    assert_int_equal(speculate_tree_parse("2x1x2", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(a, &t, &p, true, &shape, &e), ERR_OK);
    assert_close(shape.kept_tokens, .75 + .75 * .5 + .75 * .5 * .75, 1e-14, "2x1x2");
    static const char *const WIDE[] = {"2x1x3", "2,3,7", "3"};
    for (size_t i = 0; i < COUNT(WIDE); i++) {
        assert_int_equal(speculate_tree_parse(WIDE[i], &t, &e), ERR_OK);
        assert_int_equal(speculate_tree_shape(a, &t, &p, true, &shape, &e), ERR_USAGE);
        assert_non_null(strstr(e.text, i == 2 ? "at depth 1" : "at depth 3"));
    }
    static const char *const BAD[] = {"0.5/0.6",  "0.6/0.5", "0.5/",
                                      "/0.5",     "0.5/x",   "0.5/-0.1",
                                      "0.5/0.2,", "nan/0",   "0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0"};
    for (size_t i = 0; i < COUNT(BAD); i++) assert_int_equal(speculate_accept_parse(BAD[i], &p, &e), ERR_USAGE);
    arena_close(a);
}

/* No way to hang the nodes keeps more tokens. */
static void test_nodes_hang_where_they_are_likeliest(void **state)
{
    (void)state;
    static const char *const TREES[] = {"1,3,2,1", "3,4,2", "2,5,3", "4,1,3,2", "7"};
    static const double ROOT[] = {1};
    const struct speculate_accept p = {.at = {.53, .71, .37, .62}, .n = 4};
    struct arena *a = arena_open();
    struct err e = {0};
    for (size_t i = 0; i < COUNT(TREES); i++) {
        struct speculate_tree t;
        struct speculate_shape shape;
        assert_int_equal(speculate_tree_parse(TREES[i], &t, &e), ERR_OK);
        assert_int_equal(speculate_tree_shape(a, &t, &p, true, &shape, &e), ERR_OK);
        assert_close(shape.kept_tokens, hang_all(ROOT, 1, &t, 0, &p), 1e-12, TREES[i]);
        assert_close(shape.tokens, 1 + shape.kept_tokens, 1e-15, TREES[i]);
        assert_int_equal(shape.query_tokens, shape.drafted + 1);
    }
    /* by hand: two at depth 1 (p, p(1-p)), one below the first: .53 + .53*.47 + .53*.71 */
    struct speculate_tree t;
    struct speculate_shape shape;
    assert_int_equal(speculate_tree_parse("2,1", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(a, &t, &p, true, &shape, &e), ERR_OK);
    assert_close(shape.kept_tokens, .53 + .53 * .47 + .53 * .71, 1e-14, "2,1");
    /* without the bonus a walk that ends at the second node, or at the last one, yields one less; only the first node's
     * logits are needed beside the last token's */
    assert_int_equal(speculate_tree_shape(a, &t, &p, false, &shape, &e), ERR_OK);
    assert_int_equal(shape.query_tokens, 2);
    assert_close(shape.tokens, 1 + .53, 1e-14, "2,1 without bonus");
    arena_close(a);
}

static void test_tree_shapes(void **state)
{
    (void)state;
    const struct speculate_accept p = {.at = {.7, .6, .5, .4}, .n = 4};
    struct arena *a = arena_open();
    struct err e = {0};
    struct speculate_tree t;
    struct speculate_shape x, y;
    for (int64_t g = 1; g <= 4; g++)
        for (int bonus = 0; bonus < 2; bonus++) { /* a chain is a tree */
            assert_int_equal(speculate_tree_parse(&"1,1,1,1"[2 * (4 - g)], &t, &e), ERR_OK);
            assert_int_equal(speculate_tree_shape(a, &t, &p, bonus, &x, &e), ERR_OK);
            assert_close(x.tokens, speculate_tokens(&p, g, bonus), 1e-14, "chain");
            assert_int_equal(x.query_tokens, bonus ? g + 1 : g);
            assert_int_equal(x.drafted, g);
        }
    /* children of each node: 4 + 8 + 8 nodes, each level reached with 1-(1-p)^k */
    assert_int_equal(speculate_tree_parse("4x2x1", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(a, &t, &p, true, &x, &e), ERR_OK);
    assert_int_equal(x.drafted, 20);
    const double one = 1 - pow(.3, 4), two = one * (1 - .16), three = two * .5;
    assert_close(x.tokens, 1 + one + two + three, 1e-14, "4x2x1");
    /* as many nodes hung where they are likeliest keep no less */
    assert_int_equal(speculate_tree_parse("4,8,8", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(a, &t, &p, true, &y, &e), ERR_OK);
    assert_true(y.tokens >= x.tokens);
    assert_int_equal(speculate_tree_parse("2,2,2,2,2", &t, &e), ERR_OK);
    assert_int_equal(speculate_tree_shape(a, &t, &p, true, &x, &e), ERR_USAGE); /* deeper than is known */
    static const char *const BAD[] = {
        "",  "0",    "3,",  ",3", "3,0,1", "3x",    "2,3x1", "1-2",  "4097",    "99x99",
        "a", "1,,1", "3.5", "-1", "x2",    "64x64", "+3",    "1, 2", "4000,97", "9999999999999999999999"};
    for (size_t i = 0; i < COUNT(BAD); i++)
        if (speculate_tree_parse(BAD[i], &t, &e) != ERR_USAGE) fail_msg("'%s' is taken for a tree", BAD[i]);
    static const char *const REFUSED[] = {"", "1.1", "-.1", ".8,", ",.8", "nan", "x", ".8;.7", "80%", "inf"};
    struct speculate_accept q;
    for (size_t i = 0; i < COUNT(REFUSED); i++)
        if (speculate_accept_parse(REFUSED[i], &q, &e) != ERR_USAGE) fail_msg("'%s' is taken", REFUSED[i]);
    assert_int_equal(speculate_accept_parse("0.9,.5,1", &q, &e), ERR_OK);
    assert_true(q.n == 3 && q.at[0] == .9 && q.at[1] == .5 && q.at[2] == 1);
    arena_close(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_vectors),    cmocka_unit_test(test_shared_depths),
        cmocka_unit_test(test_by_hand),           cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_chinchilla),        cmocka_unit_test(test_chain_against_loop),
        cmocka_unit_test(test_tree_by_rank),      cmocka_unit_test(test_formula),
        cmocka_unit_test(test_tree_against_loop), cmocka_unit_test(test_nodes_hang_where_they_are_likeliest),
        cmocka_unit_test(test_tree_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
