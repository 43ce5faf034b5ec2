/* prefill_amx -- causal attention in bf16 by tiles (AMX-BF16), for kernels/prefill_attention.c.
 *
 * Both products are made turned over, so that the lanes of a register are queries throughout: scores [key][query] are
 * keys, as they lie, times queries laid out in pairs; weights of two keys are then one register of pairs, which is what
 * the second product wants; weighted values [element][query] are values, turned over once for all query heads, times
 * them. The maximum and the sum of a softmax need no sum over lanes, and no row of scores is turned over.
 *
 * A block is 32 queries, an item a block against up to 256 keys. The exponentials of an item (two units of the vector
 * side, about as long as one of its products) are made between the products of the scores of the next item, and the
 * maxima of those between the products with the values. The maximum of the softmax is raised where scores are far above
 * it, as in kernels/attend.h. Queries that come next are of the next block or head: items follow one another over all
 * of a key head. */
#include "kernels/prefill_amx.h"
#include "kernels/amx.h"
#include "kernels/turn_over.h"

#if KERN_X86

enum {
    BLOCK = 2 * AMX_ROWS, /* queries of a block, keys of a group */
    GROUPS = 8,           /* of an item at most */
    LANES = 16,
    SCORES = 4 * AMX_TILE /* bytes of a group: [keys' half][queries' half] */
};
static const float FAR_BELOW = -1e30F, HIDDEN = -1e38F, SLACK = 11; /* scores times scale times log2 e; scores */

#define OP KERN_AMX_BF16 KERN_INLINE

static size_t groups_of(size_t tokens) { return (tokens + BLOCK - 1) / BLOCK; }
static size_t steps_of(size_t dim) { return (dim + AMX_DEPTH - 1) / AMX_DEPTH; }

/* keys [group][half][step], values [group][element / 16], queries [step][half], scores [2][group][half][half],
 * weights [group][half], sums [element / 16][half]: tiles. */
size_t prefill_amx_bytes(size_t tokens, size_t dim)
{
    const size_t steps = steps_of(dim);
    return (groups_of(tokens) * 4 * steps + 2 * steps + GROUPS * (2 * 4 + 2) + 4 * steps) * AMX_TILE;
}

struct item {
    size_t head, token, group, groups; /* first query, first group of keys, how many */
    bool first, last;                  /* of the block */
};

struct job {
    const struct prefill_amx *of;
    size_t steps;
    char *keys, *values, *queries, *scores[2], *weights, *sums;
    float log2_scale;
    __m512 most[2], sum[2]; /* of each half of the queries */
};

/* -- layouts -- */

OP __mmask32 there(size_t dim, size_t d) { return d >= dim ? 0 : dim - d >= AMX_DEPTH ? ~0u : (1u << (dim - d)) - 1; }

/* Elements [d, d + 32) of a token, zeros where there is none. */
OP __m512i line(const struct job *j, const uint16_t *from, size_t step, size_t token, size_t d)
{
    const bool is = token < j->of->tokens;
    return _mm512_maskz_loadu_epi16(is ? there(j->of->dim, d) : 0, from + (is ? token * step : 0) + d);
}

OP void lay_out_keys(const struct job *j, size_t group)
{
    const struct prefill_amx *p = j->of;
    char *to = j->keys + group * 2 * j->steps * AMX_TILE;
    for (size_t half = 0; half < 2; half++, to += j->steps * AMX_TILE)
        for (size_t r = 0; r < AMX_ROWS; r++)
            for (size_t s = 0; s < j->steps; s++)
                _mm512_store_si512(to + s * AMX_TILE + r * AMX_LINE,
                                   line(j, p->k, p->k_step, group * BLOCK + half * AMX_ROWS + r, s * AMX_DEPTH));
}

OP void lay_out_values(const struct job *j, size_t group)
{
    const struct prefill_amx *p = j->of;
    char *to = j->values + group * 2 * j->steps * AMX_TILE;
    for (size_t s = 0; s < j->steps; s++, to += 2 * AMX_TILE) {
        __m512i low[16], high[16];
        for (size_t i = 0; i < 16; i++) { /* elements of two tokens side by side */
            const __m512i x = line(j, p->v, p->k_step, group * BLOCK + 2 * i, s * AMX_DEPTH);
            const __m512i y = line(j, p->v, p->k_step, group * BLOCK + 2 * i + 1, s * AMX_DEPTH);
            low[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)),
                                     _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(y)), 16));
            high[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1)),
                                      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(y, 1)), 16));
        }
        kern_turn_over(low);
        kern_turn_over(high);
        for (size_t i = 0; i < 16; i++) {
            _mm512_store_si512(to + i * AMX_LINE, low[i]);
            _mm512_store_si512(to + AMX_TILE + i * AMX_LINE, high[i]);
        }
    }
}

/* Queries of a block in pairs of elements; those of the next block are asked for. */
OP void lay_out_queries(const struct job *j, const struct item *t)
{
    const struct prefill_amx *p = j->of;
    char *to = j->queries;
    const uint16_t *const from = p->q + t->head * p->dim;
    for (size_t s = 0; s < j->steps; s++)
        for (size_t half = 0; half < 2; half++, to += AMX_TILE) {
            __m512i x[16];
            for (size_t i = 0; i < 16; i++) {
                const size_t token = t->token + half * AMX_ROWS + i;
                x[i] = line(j, from, p->q_step, token, s * AMX_DEPTH);
                if (token + BLOCK < p->tokens)
                    _mm_prefetch((const char *)(from + (token + BLOCK) * p->q_step + s * AMX_DEPTH), _MM_HINT_T1);
            }
            kern_turn_over(x);
            for (size_t i = 0; i < 16; i++) _mm512_store_si512(to + i * AMX_LINE, x[i]);
        }
}

/* -- the softmax, some tiles of scores at a time -- */

/* What is to be done to the tiles of scores of an item, half a tile at a time: to weights; to maxima. */
struct work {
    const char *scores;
    char *weights;
    size_t next, n; /* halves of tiles */
    __m512 scale, less[2], sum[2], found[2];
    __m512i order;
};

/* Eight keys and sixteen queries; `half` of the queries. */
OP void soften(struct work *w, size_t half)
{
    const size_t tile = w->next / 2, group = tile / 4, at = tile / 2 % 2 * 2 + w->next % 2;
    const char *const s = w->scores + w->next * (AMX_TILE / 2);
    char *const to = w->weights + (group * 2 + half) * AMX_TILE + at * (AMX_TILE / 4);
    KERN_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const __m512 x = amx_exp2(_mm512_fmadd_ps(_mm512_load_ps(s + 2 * i * AMX_LINE), w->scale, w->less[half]));
        const __m512 y = amx_exp2(_mm512_fmadd_ps(_mm512_load_ps(s + (2 * i + 1) * AMX_LINE), w->scale, w->less[half]));
        w->sum[half] = _mm512_add_ps(w->sum[half], _mm512_add_ps(x, y));
        _mm512_store_si512(to + i * AMX_LINE, _mm512_permutexvar_epi16(w->order, (__m512i)_mm512_cvtne2ps_pbh(y, x)));
    }
    w->next++;
}

OP void find(struct work *w, size_t half)
{
    const char *const s = w->scores + w->next * (AMX_TILE / 2);
    __m512 x = _mm512_load_ps(s), y = _mm512_load_ps(s + AMX_LINE);
    KERN_UNROLL
    for (size_t i = 2; i < 8; i += 2) {
        x = _mm512_max_ps(x, _mm512_load_ps(s + i * AMX_LINE));
        y = _mm512_max_ps(y, _mm512_load_ps(s + (i + 1) * AMX_LINE));
    }
    w->found[half] = _mm512_max_ps(w->found[half], _mm512_max_ps(x, y));
    w->next++;
}

/* A step of them, to weights or to maxima. */
OP void do_some(struct work *w, bool weights)
{
    if (w->next >= w->n) return;
    if (w->next / 2 % 2) {
        if (weights)
            soften(w, 1);
        else
            find(w, 1);
    } else {
        if (weights)
            soften(w, 0);
        else
            find(w, 0);
    }
}

/* Keys that a query does not see. */
OP void hide(const struct job *j, const struct item *t, char *scores)
{
    const size_t window = j->of->window;
    for (size_t g = 0; g < t->groups; g++) {
        const size_t key = (t->group + g) * BLOCK;
        const bool before = window && t->token + BLOCK > key + window, behind = key + BLOCK > t->token + 1;
        for (size_t r = 0; (before || behind) && r < BLOCK; r++)
            for (size_t half = 0; half < 2; half++) {
                const size_t query = t->token + half * LANES;
                const size_t from = key + r > query ? key + r - query : 0;
                const size_t end = window && key + r + window < query + LANES
                                       ? (key + r + window > query ? key + r + window - query : 0)
                                       : LANES;
                const uint32_t seen = from < end ? (1u << end) - (1u << from) : 0;
                char *const at = scores + g * SCORES + (r / AMX_ROWS * 2 + half) * AMX_TILE + r % AMX_ROWS * AMX_LINE;
                _mm512_mask_store_ps(at, (__mmask16)~seen, _mm512_set1_ps(HIDDEN));
            }
    }
}

/* The maxima that have been found: where they are far above those so far, what has been summed becomes less. */
OP void raise(struct job *j, const struct item *t, const struct work *w)
{
    for (size_t half = 0; half < 2; half++) {
        const __m512 old = j->most[half], found = _mm512_mul_ps(w->found[half], _mm512_set1_ps(j->log2_scale));
        if (!_mm512_cmp_ps_mask(found, _mm512_add_ps(old, _mm512_set1_ps(SLACK)), _CMP_GT_OQ)) continue;
        const __m512 new = _mm512_max_ps(old, found), less = amx_exp2(_mm512_sub_ps(old, new));
        j->most[half] = new;
        j->sum[half] = _mm512_mul_ps(j->sum[half], less);
        for (size_t d = 0; !t->first && d < 2 * j->steps; d++)
            for (size_t r = 0; r < AMX_ROWS; r++) {
                char *const at = j->sums + (2 * d + half) * AMX_TILE + r * AMX_LINE;
                _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), less));
            }
    }
}

/* -- products, and what is done meanwhile -- */

#define EXCHANGE(t, before, after)                                                                                     \
    do {                                                                                                               \
        if (before) TILE_STORE(t, (before) + (t)*AMX_TILE, AMX_LINE);                                                  \
        if (after)                                                                                                     \
            TILE_LOAD(t, (after) + (t)*AMX_TILE, AMX_LINE);                                                            \
        else                                                                                                           \
            TILE_ZERO(t);                                                                                              \
    } while (0)

/* Two tiles of rows, `apart` bytes from one another and read once, and two of columns, which follow one another. */
struct operands {
    const char *a, *b;
    size_t apart;
};

OP void fetch(const struct operands *o)
{
    TILE_LOAD_ONCE(4, o->a, AMX_LINE);
    TILE_LOAD(6, o->b, AMX_LINE);
    TILE_LOAD(7, o->b + AMX_TILE, AMX_LINE);
    TILE_LOAD_ONCE(5, o->a + o->apart, AMX_LINE);
}

/* The products of what has been fetched; what comes next is fetched before the work, since the processor does not look
 * beyond both. Sums of the step before go to `before` and those of this one come from `after` (NULL: there are none).
 */
OP void step(const struct operands *next, bool exchange, char *before, const char *after, struct work *w, bool weights)
{
    if (exchange) EXCHANGE(0, before, after);
    TILE_PRODUCT(0, 4, 6);
    if (exchange) EXCHANGE(1, before, after);
    TILE_PRODUCT(1, 4, 7);
    TILE_LOAD_ONCE(4, next->a, AMX_LINE);
    do_some(w, weights);
    if (exchange) EXCHANGE(2, before, after);
    TILE_PRODUCT(2, 5, 6);
    TILE_LOAD(6, next->b, AMX_LINE);
    if (exchange) EXCHANGE(3, before, after);
    TILE_PRODUCT(3, 5, 7);
    TILE_LOAD(7, next->b + AMX_TILE, AMX_LINE);
    TILE_LOAD_ONCE(5, next->a + next->apart, AMX_LINE);
    do_some(w, weights);
}

OP void leave(char *to)
{
    TILE_STORE(0, to, AMX_LINE);
    TILE_STORE(1, to + AMX_TILE, AMX_LINE);
    TILE_STORE(2, to + 2 * AMX_TILE, AMX_LINE);
    TILE_STORE(3, to + 3 * AMX_TILE, AMX_LINE);
}

/* Scores of an item, while those of another become weights. */
OP void scores(const struct job *j, const struct item *t, char *to, struct work *w)
{
    const size_t group = 2 * j->steps * AMX_TILE;
    struct operands o = {j->keys + t->group * group, j->queries, j->steps * AMX_TILE};
    char *before = NULL;
    fetch(&o);
    for (size_t g = 0; g < t->groups; g++) {
        const char *const keys = o.a;
        for (size_t s = 0; s < j->steps; s++) {
            const bool last = s + 1 == j->steps;
            o.a = !last ? keys + (s + 1) * AMX_TILE : g + 1 < t->groups ? keys + group : keys;
            o.b = j->queries + (last ? 0 : (s + 1) * 2 * AMX_TILE);
            if (s == 0)
                step(&o, true, before, NULL, w, true);
            else
                step(&o, false, NULL, NULL, w, true);
        }
        before = to + g * SCORES;
    }
    leave(before);
}

/* Weighted values of an item, while maxima of another are found. */
OP void values(const struct job *j, const struct item *t, struct work *w)
{
    const size_t group = 2 * j->steps * AMX_TILE;
    struct operands o = {j->values + t->group * group, j->weights, AMX_TILE};
    char *before = NULL, *sums = j->sums;
    fetch(&o);
    for (size_t s = 0; s < j->steps; s++, sums += 4 * AMX_TILE) {
        const char *const value = j->values + t->group * group + s * 2 * AMX_TILE;
        for (size_t g = 0; g < t->groups; g++) {
            const bool last = g + 1 == t->groups;
            o.a = !last ? value + (g + 1) * group : s + 1 < j->steps ? value + 2 * AMX_TILE : value;
            o.b = j->weights + (last ? 0 : (g + 1) * 2 * AMX_TILE);
            if (g == 0)
                step(&o, true, before, t->first ? NULL : sums, w, false);
            else
                step(&o, false, NULL, NULL, w, false);
        }
        before = sums;
    }
    leave(before);
}

/* -- all of a key head -- */

/* Elements of 32 of sixteen queries are sixteen pairs of sums. */
OP void finish(const struct job *j, const struct item *t, __m512i order)
{
    const struct prefill_amx *p = j->of;
    for (size_t half = 0; half < 2; half++) {
        const __m512 part = _mm512_div_ps(_mm512_set1_ps(1), j->sum[half]);
        uint16_t *const out = p->out + t->head * p->dim + (t->token + half * LANES) * p->q_step;
        for (size_t s = 0; s < j->steps; s++) {
            __m512i x[16];
            for (size_t i = 0; i < 16; i++) {
                const char *const at = j->sums + (4 * s + i / 8 * 2 + half) * AMX_TILE + i % 8 * 2 * AMX_LINE;
                const __m512 low = _mm512_mul_ps(_mm512_load_ps(at), part);
                const __m512 high = _mm512_mul_ps(_mm512_load_ps(at + AMX_LINE), part);
                x[i] = _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
            }
            kern_turn_over(x);
            for (size_t i = 0; i < 16 && t->token + half * LANES + i < p->tokens; i++) {
                uint16_t *const to = out + i * p->q_step + s * AMX_DEPTH;
                if (p->past)
                    _mm512_stream_si512((__m512i *)(void *)to, x[i]);
                else
                    _mm512_mask_storeu_epi16(to, there(p->dim, s * AMX_DEPTH), x[i]);
            }
        }
    }
}

/* The first item of a block, or the one behind it; false: behind the last of all. */
static bool next_item(const struct prefill_amx *p, struct item *t, bool start)
{
    if (!start && !t->last) {
        t->group += t->groups;
        t->first = false;
    } else {
        if (!start) t->head++;
        if (t->head >= p->heads) {
            t->head = 0;
            t->token += BLOCK;
        }
        if (t->token >= p->tokens) return false;
        t->group = p->window && t->token + 1 > p->window ? (t->token + 1 - p->window) / BLOCK : 0;
        t->first = true;
    }
    const size_t left = t->token / BLOCK + 1 - t->group, items = (left + GROUPS - 1) / GROUPS;
    t->groups = (left + items - 1) / items;
    t->last = items == 1;
    return true;
}

static void set_form(void)
{
    struct amx_form f = {.palette = 1};
    for (size_t i = 0; i < AMX_TILES; i++) {
        f.rows[i] = AMX_ROWS;
        f.row_bytes[i] = AMX_LINE;
    }
    AMX_SET_FORM(f);
}

OP void run_items(struct job *j)
{
    uint16_t word[AMX_DEPTH];
    for (size_t i = 0; i < AMX_DEPTH; i++) word[i] = (uint16_t)(i / 2 + i % 2 * LANES);
    struct work w = {.scale = _mm512_set1_ps(j->log2_scale), .weights = j->weights, .order = _mm512_loadu_si512(word)};
    struct item now = {0}, then = {0};
    size_t slot = 0;
    for (bool more = next_item(j->of, &then, true), start = true; start || more; slot ^= 1) {

        if (!start) { /* the item whose scores and maxima are there */
            now = then;
            more = next_item(j->of, &then, false);
            if (now.first)
                for (size_t half = 0; half < 2; half++) {
                    j->most[half] = _mm512_set1_ps(FAR_BELOW);
                    j->sum[half] = _mm512_setzero_ps();
                }
            raise(j, &now, &w);
            for (size_t half = 0; half < 2; half++) {
                w.less[half] = _mm512_sub_ps(_mm512_setzero_ps(), j->most[half]);
                w.sum[half] = j->sum[half];
            }
            w.scores = j->scores[slot ^ 1];
            w.n = now.groups * 8;
            w.next = 0;
        }
        if (more && then.first) lay_out_queries(j, &then);
        if (more) scores(j, &then, j->scores[slot], &w);
        while (w.next < w.n) do_some(&w, true);
        if (more) hide(j, &then, j->scores[slot]);
        w.scores = j->scores[slot];
        w.n = more ? then.groups * 8 : 0;
        w.next = 0;
        w.found[0] = w.found[1] = _mm512_set1_ps(HIDDEN);
        if (!start) {
            for (size_t half = 0; half < 2; half++) j->sum[half] = w.sum[half];
            values(j, &now, &w);
        }
        while (w.next < w.n) do_some(&w, false);
        if (!start && now.last) finish(j, &now, w.order);
        start = false;
    }
}

KERN_AMX_BF16 void prefill_amx_run(const struct prefill_amx *p)
{
    const size_t steps = steps_of(p->dim), groups = groups_of(p->tokens);
    struct job j = {.of = p, .steps = steps, .keys = p->scratch, .log2_scale = p->scale * 1.44269504F};
    j.values = j.keys + groups * 2 * steps * AMX_TILE;
    j.queries = j.values + groups * 2 * steps * AMX_TILE;
    j.scores[0] = j.queries + 2 * steps * AMX_TILE;
    j.scores[1] = j.scores[0] + GROUPS * SCORES;
    j.weights = j.scores[1] + GROUPS * SCORES;
    j.sums = j.weights + GROUPS * 2 * AMX_TILE;
    for (size_t g = 0; g < groups; g++) {
        lay_out_keys(&j, g);
        lay_out_values(&j, g);
    }
    set_form();
    run_items(&j);
    AMX_RELEASE();
}
#endif
