/* spec-verify -- which drafted tokens stay: modified rejection sampling on the probabilities of draft p and target q.
 *
 * The rule of kernels/speculate.h: token x of the draft is accepted when u p(x) < q(x); after one that is not, q
 * becomes max(0, q - p) normalised, against which the next candidate in its place is held or, when there is none, the
 * next token drawn; when all gamma are accepted, it is drawn from q. Drafts are a tree, `branches` candidates after
 * each; a chain is one of one branch. Its nodes are counted from the root, children of i from branches * i + 1 on: q is
 * [batch][nodes][vocab], p [batch][nodes that have children][vocab], drafts [batch][nodes - 1]; out [batch][gamma + 1]
 * has -1 behind the last token. Uniform numbers are those of a sequence's seed, one for each token tried and one for
 * the draw.
 * How many are accepted decides the work, so that it is a parameter: drafts are chosen such that each sequence accepts
 * so many, at level i the candidate (i + 1) mod branches, and refuses all at the next. Counted: of each token tried its
 * draft and a product, and its p and q; but where one is refused both rows once instead: 1 flop an element to sum q, 3
 * more for each refusal (scale, difference, sum); of the last row when all are accepted q and 1 flop an element; seeds
 * and results. Sums are in double: at a vocabulary of 10^5 an fp32 sum is off by as much as a token weighs. */
#include <math.h>
#include <string.h>

#include "kernels/speculate.h"
#include "kernels/table.h"
#include "kernels/vector.h"
#include "kernels/verify_rest.h"

enum { BATCH, GAMMA, VOCAB, ACCEPTED, BRANCHES };
enum { SEEDS, P, Q, DRAFTS, OUT, ROOM };
enum { BLOCK = 512, NONE = -1 };

static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [GAMMA] = {"gamma", 1, 1 << 8, "drafted tokens of a sequence"},
    [VOCAB] = {"vocab", 2, 1 << 24, "tokens there are"},
    [ACCEPTED] = {"accepted", 0, 1 << 8, "drafts that each sequence accepts"},
    [BRANCHES] = {"branches", 1, REST_MOST, "candidates after each token: 1 a chain"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }

/* Nodes of a tree of so many levels with its root. */
static double nodes_of(const struct kern_shape *s, int64_t levels)
{
    double all = 1;
    for (int64_t i = 0; i < levels; i++) all = all * (double)s->v[BRANCHES] + 1;
    return all;
}

static size_t nodes(const struct kern_shape *s) { return (size_t)nodes_of(s, s->v[GAMMA]); }
static size_t parents(const struct kern_shape *s) { return (size_t)nodes_of(s, s->v[GAMMA] - 1); }

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[ACCEPTED] > s->v[GAMMA]) return "accepted is above gamma";
    return (double)s->v[BATCH] * 2 * nodes_of(s, s->v[GAMMA]) * (double)s->v[VOCAB] > 0x1p34
               ? "batch, gamma, branches and vocab together are beyond memory"
               : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t batch = at(s, BATCH), gamma = at(s, GAMMA), vocab = at(s, VOCAB);
    out[SEEDS] = (struct kern_buffer){"seeds", KERN_INPUT, KERN_TYPE_I32, batch, 0, 0};
    out[P] = (struct kern_buffer){"p", KERN_INPUT, KERN_TYPE_F32, batch * parents(s) * vocab, 0, 0};
    out[Q] = (struct kern_buffer){"q", KERN_INPUT, KERN_TYPE_F32, batch * nodes(s) * vocab, 0, 0};
    out[DRAFTS] = (struct kern_buffer){"drafts", KERN_INPUT, KERN_TYPE_I32, batch * (nodes(s) - 1), 0, 0};
    out[OUT] = (struct kern_buffer){"tokens", KERN_OUTPUT, KERN_TYPE_I32, batch * (gamma + 1), 0, gamma + 1};
    out[ROOM] =
        (struct kern_buffer){"room", KERN_SCRATCH, KERN_TYPE_F32, 2 * (vocab / BLOCK + 1), 0, 0}; /* in double */
    return 6;
}

/* -- inputs -- */

static struct speculate_random uniforms(const struct kern_call *c, size_t sequence)
{
    return (struct speculate_random){(uint64_t)((const int32_t *)c->buffer[SEEDS])[sequence], 0};
}

static const float *p_row(const struct kern_call *c, size_t sequence, size_t node)
{
    return (const float *)c->buffer[P] + (sequence * parents(c->shape) + node) * at(c->shape, VOCAB);
}

static const float *q_row(const struct kern_call *c, size_t sequence, size_t node)
{
    return (const float *)c->buffer[Q] + (sequence * nodes(c->shape) + node) * at(c->shape, VOCAB);
}

static size_t draft_of(const struct kern_call *c, size_t sequence, size_t node)
{
    return (size_t)((const int32_t *)c->buffer[DRAFTS])[sequence * (nodes(c->shape) - 1) + node - 1];
}

/* A row of exponentials of normals, times those of a row before it where there is one; without the token `never`. */
static void fill_row(float *out, const float *near, size_t n, uint64_t seed, size_t never)
{
    double sum = 0;
    kern_fill_normal(out, KERN_TYPE_F32, n, near ? 0.7 : 2, seed);
    for (size_t i = 0; i < n; i++) {
        const double weight = i == never ? 0 : exp((double)out[i]) * (near ? (double)near[i] : 1);
        out[i] = (float)weight;
        sum += weight;
    }
    for (size_t i = 0; i < n; i++) out[i] = (float)((double)out[i] / sum);
}

/* Weights that a candidate is held against: q less p for each that was refused before it, by the definition. */
struct weights {
    const float *q, *p;
    double sum[REST_MOST + 1]; /* of the weights after so many refusals; [n] of these */
    size_t n, refused;
};

static double weight_of(const struct weights *w, size_t i)
{
    double v = (double)w->q[i];
    for (size_t j = 0; j < w->refused; j++) {
        v = v / w->sum[j] - (double)w->p[i];
        if (!(v > 0)) v = 0;
    }
    return v;
}

static void sum_weights(struct weights *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->n; i++) sum += weight_of(w, i);
    w->sum[w->refused] = sum;
}

static struct weights weights_at(const struct kern_call *c, size_t sequence, size_t node, bool drafted)
{
    struct weights w = {
        .q = q_row(c, sequence, node), .p = drafted ? p_row(c, sequence, node) : NULL, .n = at(c->shape, VOCAB)};
    sum_weights(&w);
    return w;
}

static void refuse(struct weights *w)
{
    w->refused++;
    sum_weights(w);
    if (w->sum[w->refused] > 0) return;
    w->q = w->p; /* they are equal but for rounding */
    w->refused = 0;
    sum_weights(w);
}

/* A token whose fate at u is the wanted one, by a margin beyond rounding: some are tried, then that whose weight is
 * most, or least, beside p. */
static size_t choose(const struct weights *w, double u, bool accepted, uint64_t seed)
{
    enum { TRIES = 64 };
    size_t best = 0;
    for (size_t i = 0; i < TRIES; i++) {
        const size_t x = kern_hash(seed, i) % w->n;
        const double left = u * (double)w->p[x] * w->sum[w->refused], right = weight_of(w, x);
        if (accepted ? left < 0.999 * right : left > 1.001 * right) return x;
    }
    for (size_t i = 1; i < w->n; i++) {
        const double more = weight_of(w, i) * (double)w->p[best] - weight_of(w, best) * (double)w->p[i];
        if (accepted ? more > 0 : more < 0) best = i;
    }
    return best;
}

/* Candidates of the nodes on the way; those of others are never tried and draw a token of any kind. */
static void fill_drafts(const struct kern_call *c, uint64_t seed, int32_t *drafts)
{
    const size_t gamma = at(c->shape, GAMMA), branches = at(c->shape, BRANCHES), all = nodes(c->shape) - 1;
    for (size_t b = 0; b < at(c->shape, BATCH); b++) {
        struct speculate_random r = uniforms(c, b);
        size_t node = 0;
        for (size_t i = 0; i < all; i++)
            drafts[b * all + i] = (int32_t)(kern_hash(seed, b * all + i) % at(c->shape, VOCAB));
        for (size_t level = 0; level < gamma && level <= at(c->shape, ACCEPTED); level++) {
            const bool ends = level == at(c->shape, ACCEPTED);
            const size_t stays = ends ? branches : (level + 1) % branches;
            struct weights w = weights_at(c, b, node, true);
            for (size_t i = 0; i < branches && i <= stays; i++) {
                const size_t child = branches * node + 1 + i;
                drafts[b * all + child - 1] =
                    (int32_t)choose(&w, speculate_uniform(&r), i == stays, kern_hash(seed, b * all + child));
                if (i < stays) refuse(&w);
            }
            node = branches * node + 1 + stays;
        }
    }
}

/* The node that a node's children are drafted after. */
static void fill_targets(const struct kern_call *c, uint64_t seed, float *data)
{
    const size_t vocab = at(c->shape, VOCAB), all = nodes(c->shape);
    for (size_t i = 0; i < at(c->shape, BATCH) * all; i++) {
        const size_t sequence = i / all, node = i % all;
        /* as sampling among the likely leaves it: some token has no weight, and is refused at any u */
        fill_row(data + i * vocab, node < parents(c->shape) ? p_row(c, sequence, node) : NULL, vocab,
                 kern_hash(seed, i), kern_hash(seed, ~i) % vocab);
    }
}

static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    const size_t vocab = at(c->shape, VOCAB), batch = at(c->shape, BATCH);
    if (b == DRAFTS) fill_drafts(c, seed, data);
    if (b == Q) fill_targets(c, seed, data);
    for (size_t i = 0; b == SEEDS && i < batch; i++) ((int32_t *)data)[i] = (int32_t)(kern_hash(seed, i) >> 33);
    for (size_t i = 0; b == P && i < batch * parents(c->shape); i++)
        fill_row((float *)data + i * vocab, NULL, vocab, kern_hash(seed, i), SIZE_MAX);
}

/* -- the definition -- */

static size_t draw_by_weight(const struct weights *w, double u)
{
    double left = u * w->sum[w->refused];
    size_t last = 0;
    for (size_t i = 0; i < w->n; i++) {
        const double v = weight_of(w, i);
        if (!(v > 0)) continue;
        last = i;
        left -= v;
        if (left < 0) return i;
    }
    return last; /* rounding left a rest */
}

/* A block is a sequence. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const size_t gamma = at(c->shape, GAMMA), branches = at(c->shape, BRANCHES);
    struct speculate_random r = uniforms(c, block);
    size_t node = 0;
    (void)b;
    for (size_t i = 0; i <= gamma; i++) out[i] = NONE;
    for (size_t level = 0; level <= gamma; level++) {
        struct weights w = weights_at(c, block, node, level < gamma);
        bool accepted = false;
        for (size_t i = 0; level < gamma && i < branches && !accepted; i++) {
            const size_t child = branches * node + 1 + i, x = draft_of(c, block, child);
            accepted = speculate_uniform(&r) * (double)w.p[x] * w.sum[w.refused] < weight_of(&w, x);
            if (!accepted) {
                refuse(&w);
                continue;
            }
            out[level] = (double)x;
            node = child;
            break;
        }
        if (accepted) continue;
        out[level] = (double)draw_by_weight(&w, speculate_uniform(&r));
        break;
    }
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)(s->v[ACCEPTED] + 1) * (double)(s->v[BRANCHES] * s->v[BRANCHES]) * (double)s->v[VOCAB];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double batch = (double)s->v[BATCH], vocab = (double)s->v[VOCAB];
    double flops = 0, reads = 1; /* of a sequence, reads of 4 bytes: its seed */
    for (int64_t level = 0; level <= s->v[ACCEPTED]; level++) {
        const bool drafted = level < s->v[GAMMA], ends = level == s->v[ACCEPTED];
        const double refused = !drafted ? 0 : (double)(ends ? s->v[BRANCHES] : (level + 1) % s->v[BRANCHES]);
        const double tried = refused + !ends;
        flops += tried + (refused > 0 || ends ? 1 + 3 * refused : 0) * vocab;
        reads += tried + (refused > 0 ? 2 * vocab
                          : ends      ? vocab
                                      : 2); /* rows have the p and q of tokens tried in them */
    }
    *out = (struct kern_counts){.vector_flops = batch * flops,
                                .read_bytes = 4 * batch * reads,
                                .written_bytes = 4 * batch * (double)(s->v[GAMMA] + 1)};
}

/* Tokens are right or wrong. */
static double tolerance(const struct kern_shape *s)
{
    (void)s;
    return 0;
}

/* -- tuned -- */

/* A token with probability proportional to the rest: sums of blocks first, then into one block. */
static size_t draw(const struct rest *of, size_t n, double *blocks, double u, sum_rest *sum)
{
    struct rest r = *of;
    double all = 0;
    size_t last = 0;
    for (size_t i = 0; i * BLOCK < n; i++) {
        const size_t first = i * BLOCK;
        blocks[i] = sum(&r, first, n - first < BLOCK ? n - first : BLOCK);
        all += blocks[i];
    }
    if (!(all > 0) && r.refused) { /* p equals q but for rounding */
        r.refused = 0;
        r.q = r.p;
        return draw(&r, n, blocks, u, sum);
    }
    double left = u * all;
    for (size_t i = 0; i * BLOCK < n; i++) {
        if (blocks[i] > 0 && left >= blocks[i]) {
            left -= blocks[i];
            last = i;
            continue;
        }
        for (size_t j = i * BLOCK; j < n && j < (i + 1) * BLOCK; j++) {
            const double weight = rest_at(&r, j);
            left -= weight;
            if (weight > 0 && left < 0) return j;
        }
        if (blocks[i] > 0) last = i;
    }
    for (size_t j = (last + 1) * BLOCK < n ? (last + 1) * BLOCK : n; j-- > 0;) /* rounding left a rest */
        if (rest_at(&r, j) > 0) return j;
    return 0;
}

/* The candidate of a node that stays, 0: none, and r is what the token instead is drawn from. */
static size_t verify_node(const struct kern_call *c, size_t sequence, size_t node, struct rest *r,
                          struct speculate_random *random, sum_rest *sum)
{
    const size_t branches = at(c->shape, BRANCHES), n = at(c->shape, VOCAB);
    double all = 1; /* rows sum to 1 as far as fp32 goes, so that no row is read for a first token that stays */
    for (size_t i = 0; i < branches; i++) {
        const size_t child = branches * node + 1 + i, x = draft_of(c, sequence, child);
        if (speculate_uniform(random) * (double)r->p[x] * all < rest_at(r, x)) return child;
        if (r->refused == 0) all = sum(r, 0, n);
        r->factor[r->refused++] = 1 / all;
        if (i + 1 == branches) break; /* the draw sums them */
        all = sum(r, 0, n);
        if (all > 0) continue;
        r->q = r->p; /* they are equal but for rounding */
        r->refused = 0;
        all = 1;
    }
    return 0;
}

static void verify(const struct kern_call *c, sum_rest *sum)
{
    const size_t gamma = at(c->shape, GAMMA), vocab = at(c->shape, VOCAB);
    for (size_t b = 0; b < at(c->shape, BATCH); b++) {
        int32_t *out = (int32_t *)c->buffer[OUT] + b * (gamma + 1);
        struct speculate_random random = uniforms(c, b);
        size_t node = 0, level = 0;
        for (;; level++) {
            struct rest r = {.q = q_row(c, b, node), .p = level < gamma ? p_row(c, b, node) : NULL};
            const size_t child = level < gamma ? verify_node(c, b, node, &r, &random, sum) : 0;
            if (!child) {
                out[level] = (int32_t)draw(&r, vocab, c->buffer[ROOM], speculate_uniform(&random), sum);
                break;
            }
            out[level] = (int32_t)draft_of(c, b, child);
            node = child;
        }
        while (++level <= gamma) out[level] = NONE;
    }
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c) { verify(c, rest_##set); }
RUN(portable)
KERN_SETS(RUN)

#define ONLY KERN_HAS(KERN_FP32)

static const struct kern_variant VARIANTS[] = {KERN_ROWS(ONLY, KERN_RUN) KERN_ROW_PORTABLE(ONLY, KERN_RUN)};

/* Vocabularies of 128 and 32 thousand; refused soon and late, and nowhere; a tree of three. */
static const struct kern_point POINTS[] = {
    {{{8, 4, 128256, 2, 1}, KERN_FP32}, true},  {{{16, 4, 32000, 1, 1}, KERN_FP32}, true},
    {{{8, 4, 128256, 4, 1}, KERN_FP32}, false}, {{{4, 8, 128256, 0, 1}, KERN_FP32}, false},
    {{{4, 3, 32000, 1, 3}, KERN_FP32}, false},
};

const struct kern kern_spec_verify = {
    .name = "spec-verify",
    .summary = "drafted tokens against the target: modified rejection sampling",
    .row_kind = "elementwise",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = ONLY,
    .points = POINTS,
    .points_n = sizeof POINTS / sizeof POINTS[0],
    .refuses = refuses,
    .buffers = buffers,
    .fill = fill,
    .reference = reference,
    .reference_cost = reference_cost,
    .counts = counts,
    .tolerance = tolerance,
    .variants = VARIANTS,
    .variants_n = sizeof VARIANTS / sizeof VARIANTS[0],
};
