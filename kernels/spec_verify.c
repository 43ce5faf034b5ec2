/* spec-verify -- which drafted tokens stay: modified rejection sampling on the probabilities of draft p and target q.
 *
 * The rule of kernels/speculate.h: token x of the draft is accepted when u p(x) < q(x); after the first that is not,
 * the next token is drawn from max(0, q - p) normalised; when all gamma are, from row gamma of q. p is
 * [batch][gamma][vocab], q [batch][gamma + 1][vocab]; out [batch][gamma + 1] has -1 behind the last token. Uniform
 * numbers are those of a sequence's seed, one for each token tried and one for the draw.
 * How many are accepted decides the work, so that it is a parameter: drafts are chosen such that each sequence accepts
 * so many. Counted: of each token tried its draft, p and q, and a product; of the row where it ends q once and, after
 * a refusal, p once: 1 flop an element to sum q, 3 more for the residual (scale, difference, sum); seeds and results.
 * Sums are in double: at a vocabulary of 10^5 an fp32 sum is off by as much as a token weighs. */
#include <math.h>
#include <string.h>

#include "kernels/speculate.h"
#include "kernels/table.h"
#include "kernels/vector.h"

enum { BATCH, GAMMA, VOCAB, ACCEPTED };
enum { SEEDS, P, Q, DRAFTS, OUT, ROOM };
enum { BLOCK = 512, NONE = -1 };

static const struct kern_arg ARGS[] = {
    [BATCH] = {"batch", 1, 1 << 16, "sequences"},
    [GAMMA] = {"gamma", 1, 1 << 8, "drafted tokens of a sequence"},
    [VOCAB] = {"vocab", 2, 1 << 24, "tokens there are"},
    [ACCEPTED] = {"accepted", 0, 1 << 8, "drafts that each sequence accepts"},
};

static size_t at(const struct kern_shape *s, size_t i) { return (size_t)s->v[i]; }

static const char *refuses(const struct kern_shape *s)
{
    if (s->v[ACCEPTED] > s->v[GAMMA]) return "accepted is above gamma";
    return (double)s->v[BATCH] * (double)(2 * s->v[GAMMA] + 1) * (double)s->v[VOCAB] > 0x1p34
               ? "batch, gamma and vocab together are beyond memory"
               : NULL;
}

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    const size_t batch = at(s, BATCH), gamma = at(s, GAMMA), vocab = at(s, VOCAB);
    out[SEEDS] = (struct kern_buffer){"seeds", KERN_INPUT, KERN_TYPE_I32, batch, 0, 0};
    out[P] = (struct kern_buffer){"p", KERN_INPUT, KERN_TYPE_F32, batch * gamma * vocab, 0, 0};
    out[Q] = (struct kern_buffer){"q", KERN_INPUT, KERN_TYPE_F32, batch * (gamma + 1) * vocab, 0, 0};
    out[DRAFTS] = (struct kern_buffer){"drafts", KERN_INPUT, KERN_TYPE_I32, batch * gamma, 0, 0};
    out[OUT] = (struct kern_buffer){"tokens", KERN_OUTPUT, KERN_TYPE_I32, batch * (gamma + 1), 0, gamma + 1};
    out[ROOM] = (struct kern_buffer){"room", KERN_SCRATCH, KERN_TYPE_F32, 4 * vocab, 0, 0}; /* two rows in double */
    return 6;
}

/* -- inputs -- */

static struct speculate_random uniforms(const struct kern_call *c, size_t sequence)
{
    return (struct speculate_random){(uint64_t)((const int32_t *)c->buffer[SEEDS])[sequence], 0};
}

static const float *p_row(const struct kern_call *c, size_t sequence, size_t i)
{
    return (const float *)c->buffer[P] + (sequence * at(c->shape, GAMMA) + i) * at(c->shape, VOCAB);
}

static const float *q_row(const struct kern_call *c, size_t sequence, size_t i)
{
    return (const float *)c->buffer[Q] + (sequence * (at(c->shape, GAMMA) + 1) + i) * at(c->shape, VOCAB);
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

/* A token whose fate at u is the wanted one, by a margin beyond rounding: some are tried, then that whose q is most, or
 * least, beside p. */
static size_t choose(const float *p, const float *q, size_t n, double u, bool accepted, uint64_t seed)
{
    enum { TRIES = 64 };
    size_t best = 0;
    for (size_t i = 0; i < TRIES; i++) {
        const size_t x = kern_hash(seed, i) % n;
        const double left = u * (double)p[x], right = (double)q[x];
        if (accepted ? left < 0.999 * right : left > 1.001 * right) return x;
    }
    for (size_t i = 1; i < n; i++) {
        const double more = (double)q[i] * (double)p[best] - (double)q[best] * (double)p[i];
        if (accepted ? more > 0 : more < 0) best = i;
    }
    return best;
}

static void fill_drafts(const struct kern_call *c, uint64_t seed, int32_t *drafts)
{
    const size_t gamma = at(c->shape, GAMMA), vocab = at(c->shape, VOCAB);
    for (size_t b = 0; b < at(c->shape, BATCH); b++) {
        struct speculate_random r = uniforms(c, b);
        for (size_t i = 0; i < gamma; i++)
            drafts[b * gamma + i] = (int32_t)choose(p_row(c, b, i), q_row(c, b, i), vocab, speculate_uniform(&r),
                                                    i < at(c->shape, ACCEPTED), kern_hash(seed, b * gamma + i));
    }
}

static void fill(const struct kern_call *c, size_t b, uint64_t seed, void *data)
{
    const size_t gamma = at(c->shape, GAMMA), vocab = at(c->shape, VOCAB), batch = at(c->shape, BATCH);
    if (b == DRAFTS) fill_drafts(c, seed, data);
    for (size_t i = 0; b == SEEDS && i < batch; i++) ((int32_t *)data)[i] = (int32_t)(kern_hash(seed, i) >> 33);
    for (size_t i = 0; b == P && i < batch * gamma; i++)
        fill_row((float *)data + i * vocab, NULL, vocab, kern_hash(seed, i), SIZE_MAX);
    for (size_t i = 0; b == Q && i < batch * (gamma + 1); i++) {
        const size_t sequence = i / (gamma + 1), position = i % (gamma + 1);
        /* as sampling among the likely leaves it: some token has no weight, and is refused at any u */
        fill_row((float *)data + i * vocab, position < gamma ? p_row(c, sequence, position) : NULL, vocab,
                 kern_hash(seed, i), kern_hash(seed, ~i) % vocab);
    }
}

/* -- the definition -- */

/* A block is a sequence. */
static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    const size_t gamma = at(c->shape, GAMMA), vocab = at(c->shape, VOCAB);
    double *p = c->buffer[ROOM], *q = p + vocab;
    struct speculate_random r = uniforms(c, block);
    bool accepted = true;
    (void)b;
    for (size_t i = 0; i <= gamma; i++) out[i] = NONE;
    for (size_t i = 0; accepted; i++) {
        const bool drafted = i < gamma;
        for (size_t j = 0; j < vocab; j++) {
            p[j] = drafted ? (double)p_row(c, block, i)[j] : 0;
            q[j] = (double)q_row(c, block, i)[j];
        }
        const size_t token = drafted ? (size_t)((const int32_t *)c->buffer[DRAFTS])[block * gamma + i] : 0;
        accepted = drafted && speculate_verify_exact(p, q, vocab, token, &r);
        out[i] = (double)(accepted ? token : speculate_draw(q, vocab, &r));
    }
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 3 * (double)(s->v[ACCEPTED] + 1) * (double)s->v[VOCAB];
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    const bool refused = s->v[ACCEPTED] < s->v[GAMMA];
    const double batch = (double)s->v[BATCH], vocab = (double)s->v[VOCAB];
    const double tried = (double)(s->v[ACCEPTED] + refused);
    *out = (struct kern_counts){.vector_flops = batch * (tried + (refused ? 4 : 1) * vocab),
                                /* a row that is read whole has the refused token's p and q in it */
                                .read_bytes =
                                    4 * batch * (1 + tried + 2 * (double)s->v[ACCEPTED] + (refused ? 2 : 1) * vocab),
                                .written_bytes = 4 * batch * (double)(s->v[GAMMA] + 1)};
}

/* Tokens are right or wrong. */
static double tolerance(const struct kern_shape *s)
{
    (void)s;
    return 0;
}

/* -- tuned -- */

/* Sum of max(0, q * factor - p) over n elements; p NULL: of q * factor. */
typedef double sum_rest(const float *q, const float *p, double factor, size_t n);

static double rest_of(const float *q, const float *p, double factor, size_t i)
{
    const double v = (double)q[i] * factor - (p ? (double)p[i] : 0);
    return v > 0 ? v : 0;
}

static double sum_portable(const float *q, const float *p, double factor, size_t n)
{
    double sum[4] = {0, 0, 0, 0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t j = 0; j < 4; j++) sum[j] += rest_of(q, p, factor, i + j);
    for (; i < n; i++) sum[0] += rest_of(q, p, factor, i);
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

#if KERN_X86
KERN_AVX512 KERN_INLINE __m512d rest_avx512(const float *q, const float *p, __m512d factor)
{
    const __m512d v = _mm512_mul_pd(_mm512_cvtps_pd(_mm256_loadu_ps(q)), factor);
    return p ? _mm512_max_pd(_mm512_sub_pd(v, _mm512_cvtps_pd(_mm256_loadu_ps(p))), _mm512_setzero_pd()) : v;
}

KERN_AVX512 KERN_INLINE double walk_avx512(const float *q, const float *p, double factor, size_t n)
{
    const __m512d f = _mm512_set1_pd(factor);
    __m512d sum[4];
    double rest = 0;
    size_t i = 0;
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) sum[j] = _mm512_setzero_pd();
    for (; i + 32 <= n; i += 32) {
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++)
            sum[j] = _mm512_add_pd(sum[j], rest_avx512(q + i + 8 * j, p ? p + i + 8 * j : NULL, f));
    }
    for (; i < n; i++) rest += rest_of(q, p, factor, i);
    return _mm512_reduce_add_pd(_mm512_add_pd(_mm512_add_pd(sum[0], sum[1]), _mm512_add_pd(sum[2], sum[3]))) + rest;
}

KERN_AVX512 static double sum_avx512(const float *q, const float *p, double factor, size_t n)
{
    return p ? walk_avx512(q, p, factor, n) : walk_avx512(q, NULL, factor, n);
}

KERN_AVX2 KERN_INLINE __m256d rest_avx2(const float *q, const float *p, __m256d factor)
{
    const __m256d v = _mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(q)), factor);
    return p ? _mm256_max_pd(_mm256_sub_pd(v, _mm256_cvtps_pd(_mm_loadu_ps(p))), _mm256_setzero_pd()) : v;
}

KERN_AVX2 KERN_INLINE double walk_avx2(const float *q, const float *p, double factor, size_t n)
{
    const __m256d f = _mm256_set1_pd(factor);
    __m256d sum[4];
    double rest = 0, lane[4];
    size_t i = 0;
    KERN_UNROLL
    for (size_t j = 0; j < 4; j++) sum[j] = _mm256_setzero_pd();
    for (; i + 16 <= n; i += 16) {
        KERN_UNROLL
        for (size_t j = 0; j < 4; j++)
            sum[j] = _mm256_add_pd(sum[j], rest_avx2(q + i + 4 * j, p ? p + i + 4 * j : NULL, f));
    }
    for (; i < n; i++) rest += rest_of(q, p, factor, i);
    _mm256_storeu_pd(lane, _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3])));
    return lane[0] + lane[1] + (lane[2] + lane[3]) + rest;
}

KERN_AVX2 static double sum_avx2(const float *q, const float *p, double factor, size_t n)
{
    return p ? walk_avx2(q, p, factor, n) : walk_avx2(q, NULL, factor, n);
}
#endif

/* A token with probability proportional to the rest of q without p: sums of blocks first, then into one block. */
static size_t draw(const struct kern_call *c, const float *q, const float *p, double u, sum_rest *sum)
{
    const size_t n = at(c->shape, VOCAB);
    const double factor = p ? 1 / sum(q, NULL, 1, n) : 1;
    double *blocks = c->buffer[ROOM], all = 0;
    size_t last = 0;
    for (size_t i = 0; i * BLOCK < n; i++) {
        const size_t first = i * BLOCK;
        blocks[i] = sum(q + first, p ? p + first : NULL, factor, n - first < BLOCK ? n - first : BLOCK);
        all += blocks[i];
    }
    if (!(all > 0) && p) return draw(c, p, NULL, u, sum); /* p equals q but for rounding */
    double left = u * all;
    for (size_t i = 0; i * BLOCK < n; i++) {
        if (blocks[i] > 0 && left >= blocks[i]) {
            left -= blocks[i];
            last = i;
            continue;
        }
        for (size_t j = i * BLOCK; j < n && j < (i + 1) * BLOCK; j++) {
            const double weight = rest_of(q, p, factor, j);
            left -= weight;
            if (weight > 0 && left < 0) return j;
        }
        if (blocks[i] > 0) last = i;
    }
    for (size_t j = (last + 1) * BLOCK < n ? (last + 1) * BLOCK : n; j-- > 0;) /* rounding left a rest */
        if (rest_of(q, p, factor, j) > 0) return j;
    return 0;
}

static void verify(const struct kern_call *c, sum_rest *sum)
{
    const size_t gamma = at(c->shape, GAMMA);
    for (size_t b = 0; b < at(c->shape, BATCH); b++) {
        const int32_t *draft = (const int32_t *)c->buffer[DRAFTS] + b * gamma;
        int32_t *out = (int32_t *)c->buffer[OUT] + b * (gamma + 1);
        struct speculate_random r = uniforms(c, b);
        size_t i = 0;
        /* rows sum to 1 as far as fp32 goes, so that no row is read for a token that stays */
        for (; i < gamma; i++) {
            const double p = (double)p_row(c, b, i)[draft[i]], q = (double)q_row(c, b, i)[draft[i]];
            if (!(speculate_uniform(&r) * p < q)) break;
            out[i] = draft[i];
        }
        out[i] = (int32_t)draw(c, q_row(c, b, i), i < gamma ? p_row(c, b, i) : NULL, speculate_uniform(&r), sum);
        while (++i <= gamma) out[i] = NONE;
    }
}

static void run_portable(const struct kern_call *c) { verify(c, sum_portable); }
#if KERN_X86
static void run_avx2(const struct kern_call *c) { verify(c, sum_avx2); }
static void run_avx512(const struct kern_call *c) { verify(c, sum_avx512); }
#endif

#define ONLY KERN_HAS(KERN_FP32)

static const struct kern_variant VARIANTS[] = {
#if KERN_X86
    {.name = "avx512", .unit = KERN_UNIT_FP32, .dtypes = ONLY, .lacks = kern_lacks_avx512, .run = run_avx512},
    {.name = "avx2", .unit = KERN_UNIT_FP32, .dtypes = ONLY, .lacks = kern_lacks_avx2, .run = run_avx2},
#endif
    {.name = "portable", .unit = KERN_UNIT_FP32, .dtypes = ONLY, .run = run_portable},
};

/* Vocabularies of 128 and 32 thousand; refused soon and late, and nowhere. */
static const struct kern_point POINTS[] = {
    {{{8, 4, 128256, 2}, KERN_FP32}, true},
    {{{16, 4, 32000, 1}, KERN_FP32}, true},
    {{{8, 4, 128256, 4}, KERN_FP32}, false},
    {{{4, 8, 128256, 0}, KERN_FP32}, false},
};

const struct kern kern_spec_verify = {
    .name = "spec-verify",
    .summary = "drafted tokens against the target: modified rejection sampling",
    .row_kind = "",
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
