/* sample -- the next token of each row of logits: softmax at a temperature, the top k, the top p of these, and a draw.
 *
 * Tokens come in the order of their logits, the greater first, of equals the lower index. Kept are the first top_k (0:
 * all) and of these the least number, from the first on, that has top_p of their probability; drawn is the first token,
 * now by index, with which the kept ones have more than u of theirs (Fan et al., arXiv:1805.04833; Holtzman et al.,
 * arXiv:1904.09751). u is a fraction of 32 bits. A row with a NAN, with +inf, or with -inf alone has the token -1.
 * Logits are fp32 or bf16 [batch][vocab]; top_p and temperature are in thousandths; top_k 1 is greedy.
 *
 * Nothing is sorted. Weights are whole numbers (kernels/sample.h), so that all code for all machines draws the same.
 * One walk finds the largest logit. top_k: another keeps a list of those above the k-th so far, cut to k when it is
 * full. Top p alone: tokens of less than (1 - p) / vocab of the whole are never in it, since together they are less
 * than 1 - p; the others are listed. In a list a quickselect by weight finds where the prefix ends, and then, by index,
 * the token. Counted: of each logit 5 flops (largest, difference, scale, exponential, sum), logits, uniforms and tokens
 * once. */
#include "kernels/sample.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/table.h"
#include "kernels/vector.h"

enum { BATCH, VOCAB, TOP_K, TOP_P, TEMPERATURE };
enum { LOGITS, UNIFORMS, TOKENS, ROOM };
enum { BLOCK = 512, SPARE = 1024 /* not a unit: of the list of top_k */, REFUSED = -1 };

static const double THOUSAND = 1000; /* not a unit: top_p and temperature are in thousandths */

static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [VOCAB] = {"vocab", 1, 1 << 20, "tokens there are"},
    [TOP_K] = {"top_k", 0, 1 << 20, "most likely tokens that are kept; 0: all"},
    [TOP_P] = {"top_p_milli", 1, 1000, "thousandths of their probability that are kept"},
    [TEMPERATURE] = {"temperature_milli", 1, 100000, "thousandths of a temperature"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }
static bool in_bf16(const struct kern_shape *s) { return s->dtype == KERN_BF16; }
static enum kern_type type_of(const struct kern_shape *s) { return in_bf16(s) ? KERN_TYPE_BF16 : KERN_TYPE_F32; }

static const char *refuses(const struct kern_shape *s)
{
    return (double)s->v[BATCH] * (double)s->v[VOCAB] > 0x1p33 ? "batch and vocab together are beyond memory" : NULL;
}

/* The room has an item of 16 bytes for each token. */
static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t batch = at(s, BATCH), vocab = at(s, VOCAB);
    out[LOGITS] = (struct kern_buffer){"logits", KERN_INPUT, type_of(s), batch * vocab, 3, 0};
    out[UNIFORMS] = (struct kern_buffer){"uniforms", KERN_INPUT, KERN_TYPE_I32, batch, 0, 0};
    out[TOKENS] = (struct kern_buffer){"tokens", KERN_OUTPUT, KERN_TYPE_I32, batch, 0, 1};
    out[ROOM] = (struct kern_buffer){"room", KERN_SCRATCH, KERN_TYPE_F32, 4 * vocab, 0, 0};
    return 4;
}

/* -- the definition, in double and without lists -- */

/* A logit as a whole number in the same order; zeros of both signs are one. */
static int64_t order_of(double z)
{
    const float v = (float)z;
    int32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits >= 0 ? bits : -(int64_t)(bits & 0x7fffffff);
}
static const int64_t ORDER_MOST = 0x7f800000;

/* What is kept of a row: all above `order`, and of those at it the first `ties`. */
struct cut {
    int64_t order;
    double ties;
};

/* A row of the definition. */
struct defined {
    const struct kern_call *c;
    size_t row;
    double most;
};

static double logit_of(const struct defined *d, size_t token)
{
    return kern_read(d->c->buffer[LOGITS], type_of(d->c->shape), d->row * at(d->c->shape, VOCAB) + token);
}

static double weight_of(const struct defined *d, double z)
{
    return exp((z - d->most) * THOUSAND / (double)d->c->shape->v[TEMPERATURE]);
}

/* Number or weight of the tokens that are kept and whose order is in [from, to). */
static double measure(const struct defined *d, struct cut kept, bool weighs, int64_t from, int64_t to)
{
    double sum = 0, ties = 0;
    for (size_t i = 0; i < at(d->c->shape, VOCAB); i++) {
        const double z = logit_of(d, i);
        const int64_t order = order_of(z);
        if (order < from || order >= to || order < kept.order) continue;
        if (order == kept.order && ++ties > kept.ties) continue;
        sum += weighs ? weight_of(d, z) : 1;
    }
    return sum;
}

/* The first of the kept tokens that are `need` in number or weight. */
static struct cut cut_to(const struct defined *d, struct cut kept, bool weighs, double need)
{
    int64_t from = -ORDER_MOST, to = ORDER_MOST; /* the order of the last is in [from, to) */
    double above = 0;
    while (to - from > 1) {
        const int64_t middle = from + (to - from) / 2;
        const double more = measure(d, kept, weighs, middle, to);
        if (above + more >= need) {
            from = middle;
        } else {
            above += more;
            to = middle;
        }
    }
    const double all = measure(d, kept, false, from, to), each = measure(d, kept, weighs, from, to) / fmax(all, 1);
    return (struct cut){from, fmin(all, each > 0 ? fmax(1, ceil((need - above) / each)) : all)};
}

static double draw_of(const struct defined *d, struct cut kept, double u)
{
    double left = u * measure(d, kept, true, -ORDER_MOST, ORDER_MOST), ties = 0, last = REFUSED;
    for (size_t i = 0; i < at(d->c->shape, VOCAB); i++) {
        const double z = logit_of(d, i), weight = weight_of(d, z);
        const int64_t order = order_of(z);
        if (order < kept.order || (order == kept.order && ++ties > kept.ties) || !(weight > 0)) continue;
        left -= weight;
        last = (double)i;
        if (left < 0) return last;
    }
    return last; /* rounding left a rest */
}

/* A row, and what is kept of it for a top p of that times `share`; false: it is refused. */
static bool define(const struct kern_call *c, size_t row, double share, struct defined *d, struct cut *kept)
{
    const struct kern_shape *s = c->shape;
    *d = (struct defined){c, row, -(double)INFINITY};
    *kept = (struct cut){-ORDER_MOST, 0};
    for (size_t i = 0; i < at(s, VOCAB); i++) {
        const double z = logit_of(d, i);
        if (!(z < (double)INFINITY)) return false;
        d->most = fmax(d->most, z);
    }
    if (isinf(d->most)) return false;
    if (s->v[TOP_K]) *kept = cut_to(d, *kept, false, (double)s->v[TOP_K]);
    if (s->v[TOP_P] == 1000) return true; /* not a unit */
    const double all = measure(d, *kept, true, -ORDER_MOST, ORDER_MOST);
    *kept = cut_to(d, *kept, true, fmin(all, (double)s->v[TOP_P] * all / THOUSAND * share));
    return true;
}

/* A block is a row. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    struct defined d;
    struct cut kept;
    (void)b;
    *out = define(c, block, 1, &d, &kept)
               ? draw_of(&d, kept, (double)((const uint32_t *)c->buffer[UNIFORMS])[block] * 0x1p-32)
               : REFUSED;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 100 * (double)s->v[VOCAB];
}

/* Numbers that draw the same token when all weights are off by as much as fp32 makes them. */
static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    enum { TRIES = 32 };
    static const double OFF = 1e-6;
    uint32_t *out = data;
    (void)b;
    for (size_t row = 0; row < at(c->shape, BATCH); row++) {
        struct defined d;
        struct cut less, more;
        const bool drawn = define(c, row, 1 - OFF, &d, &less) && define(c, row, 1 + OFF, &d, &more);
        for (size_t i = 0; i < TRIES; i++) {
            out[row] = (uint32_t)(kern_hash(seed, row * TRIES + i) >> 32);
            if (!drawn) break;
            const double u = (double)out[row] * 0x1p-32, token = draw_of(&d, less, u - OFF);
            const double others[] = {draw_of(&d, less, u + OFF), draw_of(&d, more, u - OFF),
                                     draw_of(&d, more, u + OFF)};
            if (token == others[0] && token == others[1] && token == others[2]) break;
        }
    }
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const double batch = (double)s->v[BATCH], all = batch * (double)s->v[VOCAB];
    *out = (struct kern_counts){
        .vector_flops = 5 * all, .read_bytes = (in_bf16(s) ? 2 : 4) * all + 4 * batch, .written_bytes = 4 * batch};
}

/* Tokens are right or wrong. */
static double tolerance(const struct kern_shape *s)
{
    (void)s;
    return 0;
}

/* -- tuned -- */

struct row {
    const void *logits; /* of this row */
    bool bf16;
    size_t n;
    float most, scale;
};

static float logit(const struct row *row, size_t i) { return kern_float(row->logits, row->bf16, i); }

/* A token of a list: what it comes by, the greater first and no two the same, and what it weighs. */
struct item {
    uint64_t rank, weight;
};

static struct item item_of(float z, size_t token)
{
    return (struct item){(uint64_t)sample_key(z) << 32 | (0xffffffffu - (uint32_t)token), 1};
}

/* What walks over a row, on one instruction set. */
struct walks {
    float (*most)(const struct row *row);
    uint64_t (*sum)(const struct row *row, size_t from, size_t to);
    void (*gather)(const struct row *row, size_t *from, float bound, struct item *list, size_t *n, size_t room);
};

#define LANES_BODY "kernels/sample_body.h"
#include "kernels/lanes_all.h"

static void swap(struct item *x, struct item *y)
{
    const struct item z = *x;
    *x = *y;
    *y = z;
}

/* Moves the item of middle rank of the first, the middle and the last to the end. */
static void choose_pivot(struct item *list, size_t n)
{
    struct item *a = list, *b = list + n / 2, *c = list + n - 1;
    if (a->rank < b->rank) swap(a, b);
    if (b->rank > c->rank) swap(b, c); /* c is the greatest but one, or the pivot */
    if (a->rank < c->rank) swap(a, c);
}

/* Quickselect by weight: moves those of greatest rank that together weigh more than target, no more of them than that
 * takes, to the front, the last of them last; returns how many. All weigh more than target. */
static size_t select_above(struct item *list, size_t n, uint64_t target)
{
    size_t from = 0, to = n;
    while (to - from > 1) {
        struct item *part = list + from;
        const size_t last = to - from - 1;
        uint64_t weight = 0;
        size_t m = 0;
        choose_pivot(part, last + 1);
        for (size_t i = 0; i < last; i++)
            if (part[i].rank > part[last].rank) {
                weight += part[i].weight;
                swap(part + i, part + m++);
            }
        if (weight > target) {
            to = from + m;
            continue;
        }
        swap(part + m, part + last);
        if (weight + part[m].weight > target) return from + m + 1;
        target -= weight + part[m].weight;
        from += m + 1;
    }
    return to;
}

/* The top_k of a row, of those that weigh anything; returns how many. */
static size_t list_top(const struct row *row, const struct walks *w, size_t k, struct item *list)
{
    const size_t twice = 2 * k > k + SPARE ? 2 * k : k + SPARE, room = twice < row->n ? twice : row->n;
    float bound = -(float)INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < row->n;) {
        w->gather(row, &i, bound, list, &n, room);
        if (n <= k) continue;
        n = select_above(list, n, k - 1);
        bound = sample_value((uint32_t)(list[n - 1].rank >> 32)); /* later ones of the same logit come after it */
    }
    for (size_t i = 0; i < n; i++)
        list[i].weight = sample_weight(sample_value((uint32_t)(list[i].rank >> 32)), row->most, row->scale);
    return n;
}

/* Those that a top p can have, of all that weigh `all`; returns how many. */
static size_t list_likely(const struct row *row, const struct walks *w, uint64_t all, int64_t p, struct item *list)
{
    const double least = (THOUSAND - (double)p) / THOUSAND * (double)all / (double)row->n;
    const double power = log2(least) - SAMPLE_ONE - 1e-3; /* far beyond the rounding of a weight */
    size_t n = 0, i = 0;
    w->gather(row, &i, (float)((double)row->most + power / (double)row->scale), list, &n, row->n);
    for (size_t j = 0; j < n; j++)
        list[j].weight = sample_weight(sample_value((uint32_t)(list[j].rank >> 32)), row->most, row->scale);
    return n;
}

static uint64_t sum_of_list(const struct item *list, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) sum += list[i].weight;
    return sum;
}

/* Of a whole row: by sums of blocks, then in one block; `sums` has room for them. */
static int32_t draw_from_row(const struct row *row, const struct walks *w, uint32_t uniform, uint64_t *sums)
{
    uint64_t all = 0;
    size_t i = 0;
    for (size_t b = 0; b * BLOCK < row->n; b++) {
        sums[b] = w->sum(row, b * BLOCK, row->n < (b + 1) * BLOCK ? row->n : (b + 1) * BLOCK);
        all += sums[b];
    }
    uint64_t left = sample_point(all, uniform);
    for (; left >= sums[i / BLOCK]; i += BLOCK) left -= sums[i / BLOCK];
    for (;; i++) {
        const uint64_t weight = sample_weight(logit(row, i), row->most, row->scale);
        if (weight > left) return (int32_t)i;
        left -= weight;
    }
}

static int32_t draw(const struct kern_shape *s, struct row *row, const struct walks *w, uint32_t uniform, void *room)
{
    struct item *list = room;
    const size_t k = at(s, TOP_K);
    const int p = (int)s->v[TOP_P];
    uint64_t all;
    size_t n;
    row->most = w->most(row);
    if (!isfinite(row->most)) return REFUSED;
    if (k > 0 && k < row->n) {
        n = list_top(row, w, k, list);
        all = sum_of_list(list, n);
    } else if (p < 1000) { /* not a unit */
        all = w->sum(row, 0, row->n);
        n = list_likely(row, w, all, p, list);
    } else {
        return draw_from_row(row, w, uniform, room);
    }
    n = select_above(list, n, sample_share(all, p) - 1);
    for (size_t i = 0; i < n; i++) list[i].rank &= 0xffffffffu; /* from now on by index */
    n = select_above(list, n, sample_point(sum_of_list(list, n), uniform));
    return (int32_t)(0xffffffffu - (uint32_t)list[n - 1].rank);
}

static void run_walks(const struct kern_call *c, const struct walks *w)
{
    const struct kern_shape *s = c->shape;
    struct row row = {.bf16 = in_bf16(s), .n = at(s, VOCAB)};
    row.scale = (float)(1.4426950408889634 * THOUSAND / (double)s->v[TEMPERATURE]);
    for (size_t b = 0; b < at(s, BATCH); b++) {
        row.logits = (const char *)c->buffer[LOGITS] + b * row.n * kern_type_bytes(type_of(s));
        ((int32_t *)c->buffer[TOKENS])[b] =
            draw(s, &row, w, ((const uint32_t *)c->buffer[UNIFORMS])[b], c->buffer[ROOM]);
    }
}

#define RUN(set)                                                                                                       \
    static void run_##set(const struct kern_call *c) { run_walks(c, &WALKS_##set); }
RUN(portable)
KERN_SETS(RUN)

#define BOTH (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16))

static const struct kern_variant VARIANTS[] = {KERN_ROWS(BOTH, KERN_RUN) KERN_ROW_PORTABLE(BOTH, KERN_RUN)};

/* Vocabularies of 128 and 32 thousand; the top k and p, p alone, and the whole. */
static const struct kern_point POINTS[] = {
    {{{8, 128256, 50, 900, 700}, KERN_FP32}, true},
    {{{8, 128256, 0, 950, 1000}, KERN_BF16}, false}, /* not a unit */
    {{{8, 32003, 0, 1000, 1000}, KERN_FP32}, false}, /* not a unit */
};

const struct kern kern_sample = {
    .name = "sample",
    .summary = "tokens from logits: temperature, top k, top p and a draw",
    .row_kind = "elementwise",
    .args = ARGS,
    .args_n = sizeof ARGS / sizeof ARGS[0],
    .dtypes = BOTH,
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
