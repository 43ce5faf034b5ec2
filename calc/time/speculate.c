#include "calc/time/speculate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"

/* ---- acceptance ---- */

/* One depth: a number, or several joined by '/', which fall and are 1 together at most. */
static bool parse_depth(const char **at, double *rank, size_t *n)
{
    double sum = 0;
    *n = 0;
    for (;; ++*at) {
        char *end;
        const double x = strtod(*at, &end);
        if (end == *at || !(x >= 0 && x <= 1) || *n == SPECULATE_RANKS_MAX) return false;
        if (*n > 0 && x > rank[*n - 1]) return false;
        rank[(*n)++] = x;
        sum += x;
        *at = end;
        if (*end != '/') return sum <= 1 + 1e-9;
    }
}

enum err_code speculate_accept_parse(const char *text, struct speculate_accept *out, struct err *e)
{
    char clean[64];
    struct speculate_accept a = {.n = 0};
    const bool ranked = strchr(text, '/') != NULL;
    bool bad = false;
    for (const char *at = text; !bad; at++) {
        size_t n;
        bad = a.n == SPECULATE_DEPTH_MAX || !parse_depth(&at, a.rank[a.n], &n) || (*at != ',' && *at != '\0');
        if (bad) break;
        a.at[a.n] = a.rank[a.n][0];
        a.ranks[a.n++] = ranked ? n : 0;
        if (*at == '\0') break;
    }
    if (bad)
        return err_set(e, ERR_USAGE,
                       "'%s' is no acceptance: a part between 0 and 1, one for each depth (0.9,0.8), or those of the "
                       "first, second .. child of a node at each depth (0.6/0.2,0.5/0.1: they fall, and are 1 together "
                       "at most); at most %d deep, %d children",
                       text_clean(clean, sizeof clean, text, strlen(text)), SPECULATE_DEPTH_MAX, SPECULATE_RANKS_MAX);
    *out = a;
    return ERR_OK;
}

bool speculate_accept_ranked(const struct speculate_accept *a) { return a->ranks[0] > 0; }

int64_t speculate_depth_max(const struct speculate_accept *a)
{
    return a->n == 1 ? SPECULATE_DEPTH_MAX : (int64_t)a->n;
}

double speculate_accept_at(const struct speculate_accept *a, int64_t depth)
{
    if (a->n == 1) return a->at[0];
    return depth <= (int64_t)a->n ? a->at[depth - 1] : (double)NAN;
}

double speculate_accept_child(const struct speculate_accept *a, int64_t depth, int64_t r)
{
    const double p = speculate_accept_at(a, depth);
    if (!speculate_accept_ranked(a)) return p * pow(1 - p, (double)(r - 1));
    const int64_t i = a->n == 1 ? 0 : depth - 1;
    if (i >= (int64_t)a->n || r > (int64_t)a->ranks[i]) return (double)NAN;
    return a->rank[i][r - 1];
}

/* ---- chains ---- */

double speculate_kept(const struct speculate_accept *a, int64_t gamma)
{
    double sum = 0, reached = 1;
    for (int64_t i = 1; i <= gamma; i++) {
        reached *= speculate_accept_at(a, i);
        sum += reached;
    }
    return sum;
}

double speculate_tokens(const struct speculate_accept *a, int64_t gamma, bool bonus)
{
    return 1 + speculate_kept(a, bonus ? gamma : gamma - 1);
}

double speculate_tokens_square(const struct speculate_accept *a, int64_t gamma, bool bonus)
{
    const int64_t most = bonus ? gamma + 1 : gamma;
    double sum = 1, reached = 1;
    for (int64_t i = 2; i <= most; i++) {
        reached *= speculate_accept_at(a, i - 1);
        sum += (double)(2 * i - 1) * reached;
    }
    return sum;
}

const struct sym *speculate_tokens_formula(struct sym_ctx *c, const struct sym *a, const struct sym *g, bool bonus)
{
    const struct sym *one = sym_int(c, 1), *last = bonus ? sym_add(c, g, one) : g;
    return sym_div(c, sym_sub(c, one, sym_pow(c, a, last)), sym_sub(c, one, a));
}

double speculate_speedup(double tokens, double decode_s, double draft_s, double verify_s)
{
    return tokens * decode_s / (draft_s + verify_s);
}

int64_t speculate_best(const struct speculate_accept *a, bool bonus, int64_t n, double decode_s, const double *draft_s,
                       const double *verify_s, double *out_speedup)
{
    int64_t best = 1;
    double most = (double)NAN;
    for (int64_t gamma = 1; gamma <= n; gamma++) {
        const double speedup =
            speculate_speedup(speculate_tokens(a, gamma, bonus), decode_s, draft_s[gamma - 1], verify_s[gamma - 1]);
        if (speedup <= most || isnan(speedup)) continue;
        most = speedup;
        best = gamma;
    }
    *out_speedup = most;
    return best;
}

/* ---- trees ---- */

enum err_code speculate_tree_parse(const char *text, struct speculate_tree *out, struct err *e)
{
    char clean[64];
    struct speculate_tree t = {.children = strchr(text, 'x') != NULL};
    int64_t level = 1, sum = 0;
    bool bad = false;
    for (const char *at = text; !bad; at++) {
        int64_t n = 0;
        const char *digit = at;
        for (; *at >= '0' && *at <= '9' && n <= SPECULATE_NODES_MAX; at++) n = 10 * n + (*at - '0');
        bad = at == digit || n < 1 || n > SPECULATE_NODES_MAX || t.depth == SPECULATE_DEPTH_MAX ||
              (*at != '\0' && *at != (t.children ? 'x' : ','));
        if (bad) break;
        t.width[t.depth++] = n;
        level = t.children ? level * n : n;
        sum += level;
        bad = sum > SPECULATE_NODES_MAX;
        if (*at == '\0') break;
    }
    if (bad)
        return err_set(e, ERR_USAGE,
                       "'%s' is no tree: nodes at each depth (1,3,2,1) or children of each node (4x2x1), at most %d "
                       "deep and %d nodes",
                       text_clean(clean, sizeof clean, text, strlen(text)), SPECULATE_DEPTH_MAX, SPECULATE_NODES_MAX);
    *out = t;
    return ERR_OK;
}

/* Nodes and whose children they are, while a tree is built. */
struct builder {
    struct speculate_node *node;
    int32_t *child;
    int32_t nodes_n, child_n;
};

static enum err_code builder_open(struct arena *a, const struct speculate_tree *t, struct builder *b, struct err *e)
{
    int64_t level = 1, all = 0;
    for (int64_t d = 0; d < t->depth; d++) {
        level = t->children ? level * t->width[d] : t->width[d];
        all += level;
    }
    b->node = arena_array(a, (size_t)all + 1, sizeof *b->node);
    b->child = arena_array(a, (size_t)all, sizeof *b->child);
    b->nodes_n = 1;
    b->child_n = 0;
    return b->node && b->child ? ERR_OK : err_nomem(e);
}

/* A depth: how many children each of its nodes has, in order. */
static void builder_node(struct builder *b, int32_t at, int64_t children)
{
    b->node[at] = (struct speculate_node){(int32_t)children, b->child_n};
    b->child_n += (int32_t)children;
}

/* A depth of the tree: what reaches each node, how many children it has, and its place among those of its parent. */
struct level {
    double *reached;
    int64_t *children, *parent, *rank;
    int64_t n;
};

static enum err_code level_make(struct arena *a, int64_t n, struct level *out, struct err *e)
{
    out->n = n;
    out->reached = arena_array(a, (size_t)n, sizeof *out->reached);
    out->children = arena_array(a, (size_t)n, sizeof *out->children);
    out->parent = arena_array(a, (size_t)n, sizeof *out->parent);
    out->rank = arena_array(a, (size_t)n, sizeof *out->rank);
    if (!out->reached || !out->children || !out->parent || !out->rank) return err_nomem(e);
    for (int64_t i = 0; i < n; i++) out->children[i] = 0;
    return ERR_OK;
}

static enum err_code refuse_children(int64_t depth, struct err *e)
{
    return err_set(e, ERR_USAGE, "at depth %lld the tree has more children of a node than the acceptance has ranks",
                   (long long)depth);
}

/* The likeliest children of the nodes above. A node's next child is its likeliest that is not yet there. */
static enum err_code hang(struct level *above, const struct speculate_accept *p, int64_t depth, struct level *below,
                          struct err *e)
{
    for (int64_t i = 0; i < below->n; i++) {
        int64_t parent = -1;
        double most = -1;
        for (int64_t k = 0; k < above->n; k++) {
            const double reached = above->reached[k] * speculate_accept_child(p, depth, above->children[k] + 1);
            if (!(reached > most)) continue;
            most = reached;
            parent = k;
        }
        if (parent < 0) return refuse_children(depth, e);
        below->parent[i] = parent;
        below->rank[i] = above->children[parent]++;
        below->reached[i] = most;
    }
    return ERR_OK;
}

/* What walks that get to depth d add: `reached` do, of which `ends` find no children there. */
static void add_depth(struct speculate_shape *r, bool bonus, int64_t d, double reached, double ends)
{
    const double so_many = reached - (bonus ? 0 : ends); /* of d + 1 tokens or more */
    r->tokens += so_many;
    r->tokens_square += (double)(2 * d + 1) * so_many;
    if (d > 0) r->kept_tokens += reached;
}

static enum err_code shape_by_depth(struct arena *a, const struct speculate_tree *t, const struct speculate_accept *p,
                                    bool bonus, struct builder *b, struct speculate_shape *r, int64_t *inner,
                                    struct err *e)
{
    struct level above, below = {0};
    TRY(level_make(a, 1, &above, e));
    above.reached[0] = 1;
    *inner = 0;
    for (int64_t d = 0; d <= t->depth; d++) {
        const int32_t base = b->nodes_n - (int32_t)above.n;
        double reached = 0, ends = 0;
        if (d < t->depth) {
            TRY(level_make(a, t->width[d], &below, e));
            TRY(hang(&above, p, d + 1, &below, e));
            r->nodes[d] = below.n;
            r->drafted += below.n;
        }
        for (int64_t i = 0; i < above.n; i++) {
            reached += above.reached[i];
            if (above.children[i] == 0) ends += above.reached[i];
            if (above.children[i] > 0 && d > 0) ++*inner;
            builder_node(b, base + (int32_t)i, above.children[i]);
        }
        add_depth(r, bonus, d, reached, ends);
        for (int64_t i = 0; d < t->depth && i < below.n; i++)
            b->child[b->node[base + below.parent[i]].first + below.rank[i]] = b->nodes_n++;
        above = below;
    }
    return ERR_OK;
}

/* Some one of the first k children: 1-(1-p)^k of independent tries, the sum of ranks. */
static double some_child(const struct speculate_accept *p, int64_t depth, int64_t k)
{
    double sum = 0;
    if (!speculate_accept_ranked(p)) return 1 - pow(1 - speculate_accept_at(p, depth), (double)k);
    for (int64_t r = 1; r <= k; r++) sum += speculate_accept_child(p, depth, r);
    return sum;
}

static enum err_code shape_by_children(const struct speculate_tree *t, const struct speculate_accept *p, bool bonus,
                                       struct builder *b, struct speculate_shape *r, int64_t *inner, struct err *e)
{
    int64_t level = 1;
    double reached = 1;
    for (int64_t d = 0; d <= t->depth; d++) {
        const int32_t base = b->nodes_n - (int32_t)level;
        const int64_t children = d < t->depth ? t->width[d] : 0;
        add_depth(r, bonus, d, reached, d == t->depth ? reached : 0);
        for (int64_t i = 0; i < level; i++) {
            builder_node(b, base + (int32_t)i, children);
            for (int64_t k = 0; k < children; k++) b->child[b->node[base + i].first + k] = b->nodes_n++;
        }
        if (d == t->depth) break;
        level *= children;
        reached *= some_child(p, d + 1, children);
        if (isnan(reached)) return refuse_children(d + 1, e);
        r->nodes[d] = level;
        r->drafted += level;
    }
    *inner = r->drafted - level;
    return ERR_OK;
}

enum err_code speculate_tree_shape(struct arena *a, const struct speculate_tree *t, const struct speculate_accept *p,
                                   bool bonus, struct speculate_shape *out, struct err *e)
{
    struct speculate_shape r = {.depth = t->depth};
    struct builder b;
    int64_t inner = 0; /* nodes with children, the root not among them */
    if (t->depth > speculate_depth_max(p))
        return err_set(e, ERR_USAGE, "a tree %lld deep wants as many acceptances, not %zu", (long long)t->depth, p->n);
    TRY(builder_open(a, t, &b, e));
    if (t->children)
        TRY(shape_by_children(t, p, bonus, &b, &r, &inner, e));
    else
        TRY(shape_by_depth(a, t, p, bonus, &b, &r, &inner, e));
    r.query_tokens = 1 + (bonus ? r.drafted : inner);
    r.node = b.node;
    r.child = b.child;
    *out = r;
    return ERR_OK;
}
