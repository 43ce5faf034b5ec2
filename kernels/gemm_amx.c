/* gemm_amx -- products in bf16 by tiles (AMX-BF16), for kernels/gemm.c: c[m,n] = a[m,k] * w[n,k]^T.
 *
 * A block is up to 48 rows and 32 columns of c, in six of the eight tile registers; the other two take a tile of a and
 * one of w by turns. What bounds it is the second cache, which gives the first 48 bytes a cycle: 48 x 32 sums need 53
 * where both operands come from there. So k is cut into short pieces, of which 48 rows stay in the first cache while
 * all columns of a cell go by, past that cache (tileloaddt1), which then takes 21 bytes a cycle; and the sums of a
 * block are stored, and those of the next loaded, one register at a time between the products of one step, which
 * otherwise wait for all of them. They stay in the second cache, in a cell whose next weights and rows have room there
 * as well, and are asked into the first a block before.
 *
 * Weights are packed as the instruction wants them: for 32 columns and each 32 of k two tiles, of 16 pairs of
 * neighbours in k times 16 columns, piece of k by piece of k; rows of a tile by tile, in every call. What comes next
 * from memory is asked for meanwhile, evenly. The order is that of Goto and van de Geijn, ACM TOMS 34(3), 2008. */
#include <string.h>

#include "kernels/amx.h"
#include "kernels/gemm_amx.h"
#include "kernels/split.h"

#if KERN_X86

enum {
    SIDE = 2 * AMX_ROWS,     /* columns of a block */
    STEP = 2 * AMX_TILE,     /* bytes of 32 columns and 32 of k; of the sums of 16 rows and 32 columns */
    MOST = 3,                /* tiles of rows of a block */
    LINES = AMX_ROWS,        /* of a tile */
    CUT = 8,                 /* steps of k of a piece at most: 24 KiB of 48 rows */
    CELL = 32,               /* tiles of rows of a cell at most */
    CELL_BYTES = 1200 << 10, /* of its sums, and of two pieces of its weights */
    PAST = 2 << 20,          /* bytes of c from which it goes past the caches; not a unit */
    ROW_AHEAD = 1 << 10      /* bytes of a row of a */
};
#define OP KERN_AMX_BF16 KERN_INLINE

static size_t parts_of(size_t n, size_t of) { return (n + of - 1) / of; }
static size_t steps_of(size_t k) { return parts_of(k, AMX_DEPTH); }
static size_t tiles_of(size_t m) { return parts_of(m, AMX_ROWS); }

size_t gemm_amx_pack_bytes(size_t n, size_t k) { return parts_of(n, SIDE) * steps_of(k) * STEP; }
size_t gemm_amx_strip_bytes(size_t m, size_t k) { return tiles_of(m) * steps_of(k) * AMX_TILE; }

size_t gemm_amx_sum_bytes(size_t m, size_t n)
{
    return (tiles_of(m) < CELL ? tiles_of(m) : CELL) * parts_of(n, SIDE) * STEP;
}

static size_t cuts_of(size_t k) { return parts_of(steps_of(k), CUT); }

void gemm_amx_pack(const struct gemm_amx *g)
{
    const size_t n = g->n, k = g->k, steps = steps_of(k), cuts = cuts_of(k), columns = parts_of(n, SIDE);
    memset(g->packed, 0, gemm_amx_pack_bytes(n, k));
    for (size_t cut = 0; cut < cuts; cut++) {
        const size_t from = cut * steps / cuts, end = (cut + 1) * steps / cuts, depth = end - from;
        for (size_t j = 0; j < n; j++) {
            uint16_t *const column = (uint16_t *)g->packed + (columns * from + j / SIDE * depth) * (STEP / 2) +
                                     j / AMX_ROWS % 2 * (AMX_TILE / 2) + j % AMX_ROWS * 2;
            for (size_t l = from * AMX_DEPTH, i = 0; l < k && l < end * AMX_DEPTH; l++, i++)
                column[i / AMX_DEPTH * (STEP / 2) + i % AMX_DEPTH / 2 * (AMX_LINE / 2) + i % 2] = g->w[j * k + l];
        }
    }
}

/* -- rows of a -- */

struct job {
    const struct gemm_amx *of;
    size_t steps, tiles, columns, cuts; /* of k, of rows, blocks of columns, and parts that k is cut into */
    size_t tile_bytes;                  /* of a tile of rows: of 16, or of m where that is less */
    bool past;                          /* c is written past the caches */
};

static size_t cut_from(const struct job *j, size_t cut) { return cut * j->steps / j->cuts; }

/* Where rows of a tile begin in a cut: [cut][tile][step][row][32], since tiles whole k apart would share the sets of
 * the second cache. */
static char *rows_at(const struct job *j, size_t tile, size_t cut)
{
    const size_t from = cut_from(j, cut), depth = cut_from(j, cut + 1) - from;
    return (char *)j->of->strips + (j->tiles * from + tile * depth) * j->tile_bytes;
}

static size_t rows_of(const struct job *j, size_t tile)
{
    const size_t left = j->of->m - tile * AMX_ROWS;
    return left < AMX_ROWS ? left : AMX_ROWS;
}

/* Rows behind m stay as they are: what they make is not read. A line of each row in turn, from the second cache, as
 * rows may share few sets of the first. */
KERN_AMX_BF16 static void make_rows(const struct job *j, size_t tile)
{
    const size_t k = j->of->k, rest = k % AMX_DEPTH, rows = rows_of(j, tile);
    const uint16_t *from = j->of->a + tile * AMX_ROWS * k;
    for (size_t cut = 0, s = 0; cut < j->cuts; cut++)
        for (char *to = rows_at(j, tile, cut); s < cut_from(j, cut + 1); s++, to += j->tile_bytes, from += AMX_DEPTH) {
            const __mmask32 there = rest && s + 1 == j->steps ? (1u << rest) - 1 : ~0u;
            for (size_t r = 0; r < rows; r++) {
                _mm_prefetch((const char *)(from + r * k) + ROW_AHEAD, _MM_HINT_T1);
                _mm512_store_si512(to + r * AMX_LINE, _mm512_maskz_loadu_epi16(there, from + r * k));
            }
        }
}

/* -- a block -- */

/* Lines that are asked for meanwhile, so many a step. */
struct ahead {
    const char *at;
    size_t lines;
};

struct piece {
    const char *a, *w;
    size_t depth, a_step, a_tile; /* steps; bytes from step to step, from tile to tile of rows */
    char *before, *sums;          /* where the sums of the block before go, NULL: there is none; where this one's are */
    struct ahead weights, rows, next_sums;
};

OP void ask(const struct ahead *x, size_t step)
{
    for (size_t i = 0; i < x->lines; i++) _mm_prefetch(x->at + (step * x->lines + i) * AMX_LINE, _MM_HINT_T1);
}

OP void ask_near(const struct ahead *x, size_t step)
{
    for (size_t i = 0; i < x->lines; i++) _mm_prefetch(x->at + (step * x->lines + i) * AMX_LINE, _MM_HINT_T0);
}

/* Of register t: the sums of the block before go, those of this one come, from tile number `at` of theirs. */
#define EXCHANGE(t, at)                                                                                                \
    do {                                                                                                               \
        if (p->before) TILE_STORE(t, p->before + (at)*AMX_TILE, AMX_LINE);                                             \
        if (first)                                                                                                     \
            TILE_ZERO(t);                                                                                              \
        else                                                                                                           \
            TILE_LOAD(t, p->sums + (at)*AMX_TILE, AMX_LINE);                                                           \
    } while (0)

/* A step. Sums of tile i of rows are registers i and 3 + i; the last tile of rows serves both columns. exchange: with
 * the sums of the block before. */
OP void step(const struct piece *p, size_t l, size_t tiles, bool exchange, bool first)
{
    const char *const a = p->a + l * p->a_step, *const w = p->w + l * STEP;
    TILE_LOAD_ONCE(7, w, AMX_LINE);
    TILE_LOAD(6, a, AMX_LINE);
    if (exchange) EXCHANGE(0, 0);
    TILE_PRODUCT(0, 6, 7);
    ask(&p->weights, l);
    if (tiles > 1) {
        TILE_LOAD(6, a + p->a_tile, AMX_LINE);
        if (exchange) EXCHANGE(1, 2);
        TILE_PRODUCT(1, 6, 7);
        ask(&p->rows, l);
    }
    if (tiles > 2) {
        TILE_LOAD(6, a + 2 * p->a_tile, AMX_LINE);
        if (exchange) EXCHANGE(2, 4);
        TILE_PRODUCT(2, 6, 7);
    }
    TILE_LOAD_ONCE(7, w + AMX_TILE, AMX_LINE);
    ask_near(&p->next_sums, l);
    if (tiles > 2) {
        if (exchange) EXCHANGE(5, 5);
        TILE_PRODUCT(5, 6, 7);
        TILE_LOAD(6, a + p->a_tile, AMX_LINE);
    }
    if (tiles > 1) {
        if (exchange) EXCHANGE(4, 3);
        TILE_PRODUCT(4, 6, 7);
        TILE_LOAD(6, a, AMX_LINE);
    }
    if (exchange) EXCHANGE(3, 1);
    TILE_PRODUCT(3, 6, 7);
}

OP void sums_store(char *to, size_t tiles)
{
    TILE_STORE(0, to, AMX_LINE);
    TILE_STORE(3, to + AMX_TILE, AMX_LINE);
    if (tiles > 1) TILE_STORE(1, to + STEP, AMX_LINE);
    if (tiles > 1) TILE_STORE(4, to + STEP + AMX_TILE, AMX_LINE);
    if (tiles > 2) TILE_STORE(2, to + 2 * STEP, AMX_LINE);
    if (tiles > 2) TILE_STORE(5, to + 2 * STEP + AMX_TILE, AMX_LINE);
}

/* Sums of up to 16 rows, tile by tile, to `columns` columns of c; past: past the caches. */
OP void put(const char *sums, uint16_t *c, size_t n, size_t rows, size_t columns, bool past)
{
    const __mmask32 there = columns < SIDE ? (1u << columns) - 1 : ~0u;
    for (size_t r = 0; r < rows; r++, sums += AMX_LINE) {
        const __m512 low = _mm512_load_ps(sums), high = _mm512_load_ps(sums + AMX_TILE);
        const __m512i all = (__m512i)_mm512_cvtne2ps_pbh(high, low);
        if (past)
            _mm512_stream_si512((__m512i *)(void *)(c + r * n), all);
        else
            _mm512_mask_storeu_epi16(c + r * n, there, all);
    }
}

/* -- the product -- */

/* Tiles of rows, and blocks of columns, of a cell; parts that its rows are cut into. */
struct cell {
    size_t tile, tile_end, column, column_end, blocks;
};

/* [cut][column][step]: what is in use of a cut at a time lies in one piece, since columns whole k apart would share the
 * sets of the second cache. */
static const char *weights_at(const struct job *j, size_t column, size_t cut)
{
    const size_t from = cut_from(j, cut), depth = cut_from(j, cut + 1) - from;
    return (const char *)j->of->packed + (j->columns * from + column * depth) * STEP;
}

/* What is asked for while a strip is multiplied, so much a block of it: [block] at from + number * each. */
struct parts {
    const char *from, *end;
    size_t each, lines;
};

static struct ahead part_of(const struct parts *p, size_t number)
{
    const char *const at = p->from + number * p->each;
    return (struct ahead){at, at < p->end ? p->lines : 0};
}

/* Part `block` of weights that come next: with one block of rows those of the next column, else those of the next cut,
 * or cell. */
static struct parts weights_ahead(const struct job *j, const struct cell *c, size_t cut, size_t block)
{
    const size_t lines = parts_of(STEP / AMX_LINE, c->blocks), then = cut + 1 < j->cuts ? cut + 1 : 0;
    const size_t wide = c->column_end - c->column, depth = cut_from(j, cut + 1) - cut_from(j, cut);
    const char *const from =
        c->blocks == 1 ? weights_at(j, c->column + 1, cut) : weights_at(j, c->column + (then ? 0 : wide), then);
    return (struct parts){from + block * depth * lines * AMX_LINE, from + wide * depth * STEP, depth * STEP, lines};
}

/* Rows of the next cut, of which each block of rows and columns asks for a part. */
static struct parts rows_ahead(const struct job *j, const struct cell *c, size_t cut, size_t block)
{
    const size_t then = cut + 1 < j->cuts ? cut + 1 : 0, tiles = c->tile_end - c->tile,
                 wide = c->column_end - c->column;
    const size_t depth = cut_from(j, cut + 1) - cut_from(j, cut),
                 lines = j->cuts == 1 ? 0 : parts_of(tiles * LINES, wide * c->blocks);
    const char *const from = rows_at(j, c->tile, then), *const end = from + tiles * depth * j->tile_bytes;
    return (struct parts){from + block * wide * depth * lines * AMX_LINE, end, depth * lines * AMX_LINE, lines};
}

/* Where the blocks of `tiles` tiles of rows from c->tile + before on are. */
struct strip {
    size_t cut, block, before;
    char *sums;  /* of the cell */
    char *whole; /* [2][MOST * STEP]: of the last cut */
};

OP void put_block(const struct job *j, const struct strip *s, const struct cell *c, size_t column, size_t tiles,
                  const char *sums)
{
    const size_t n = j->of->n, left = n - column * SIDE, row = (c->tile + s->before) * AMX_ROWS;
    for (size_t i = 0; i < tiles; i++)
        put(sums + i * STEP, j->of->c + (row + i * AMX_ROWS) * n + column * SIDE, n,
            rows_of(j, c->tile + s->before + i), left < SIDE ? left : SIDE, j->past);
}

/* All columns of a cell with the same rows, which stay in the first cache: sums of a block go while those of the next
 * come. */
OP void run_strip(const struct job *j, const struct cell *c, const struct strip *s, size_t tiles, bool first)
{
    const size_t from = cut_from(j, s->cut), end = cut_from(j, s->cut + 1), all = c->tile_end - c->tile;
    const bool last = s->cut + 1 == j->cuts;
    const struct parts weights = weights_ahead(j, c, s->cut, s->block), rows = rows_ahead(j, c, s->cut, s->block);
    const size_t near = first && last ? 0 : parts_of(tiles * STEP / AMX_LINE, end - from);
    const char *w = weights_at(j, c->column, s->cut);
    char *before = NULL, *sums = s->sums + s->before * STEP;
    struct piece p = {.a = rows_at(j, c->tile + s->before, s->cut),
                      .depth = end - from,
                      .a_step = j->tile_bytes,
                      .a_tile = (end - from) * j->tile_bytes};
    for (size_t column = c->column; column < c->column_end; column++, w += p.depth * STEP, sums += all * STEP) {
        const size_t number = column - c->column;
        char *const whole = s->whole + number % 2 * MOST * STEP;
        p.w = w;
        p.before = before;
        p.sums = sums;
        p.weights = part_of(&weights, number);
        p.rows = part_of(&rows, number);
        p.next_sums = (struct ahead){sums + all * STEP, near};
        step(&p, 0, tiles, true, first);
        if (last && before) put_block(j, s, c, column - 1, tiles, before);
        for (size_t l = 1; l < p.depth; l++) step(&p, l, tiles, false, first);
        before = last ? whole : sums;
    }
    sums_store(before, tiles);
    if (last) put_block(j, s, c, c->column_end - 1, tiles, before);
}

OP void run_cut(const struct job *j, const struct cell *c, struct strip *s, bool first)
{
    const size_t all = c->tile_end - c->tile;
    for (s->block = 0; s->block < c->blocks; s->block++) {
        s->before = s->block * all / c->blocks;
        const size_t tiles = (s->block + 1) * all / c->blocks - s->before;
        if (tiles == 1)
            run_strip(j, c, s, 1, first);
        else if (tiles == 2)
            run_strip(j, c, s, 2, first);
        else
            run_strip(j, c, s, MOST, first);
    }
}

KERN_AMX_BF16 static void run_cell(const struct job *j, const struct cell *c, char *sums)
{
    char whole[2 * MOST * STEP] __attribute__((aligned(64)));
    struct strip s = {.sums = sums, .whole = whole};
    run_cut(j, c, &s, true);
    for (s.cut = 1; s.cut < j->cuts; s.cut++) run_cut(j, c, &s, false);
}

static void set_form(size_t rows)
{
    struct amx_form f = {.palette = 1};
    for (size_t i = 0; i < AMX_TILES; i++) {
        f.rows[i] = (uint8_t)(i + 1 < AMX_TILES ? rows : AMX_ROWS);
        f.row_bytes[i] = AMX_LINE;
    }
    AMX_SET_FORM(f);
}

KERN_AMX_BF16 void gemm_amx_run(const struct gemm_amx *g, const struct kern_call *call)
{
    const unsigned parts = call->parts > 1 ? call->parts : 1;
    const size_t tiles = tiles_of(g->m), columns = parts_of(g->n, SIDE), rows = g->m < AMX_ROWS ? g->m : AMX_ROWS;
    const size_t first = kern_split_from(columns, call->part, parts),
                 end = kern_split_from(columns, call->part + 1, parts);
    const size_t cells = parts_of(tiles, CELL), most = parts_of(tiles, cells),
                 wide = CELL_BYTES / STEP / (most + 2 * CUT);
    const struct job j = {.of = g,
                          .steps = steps_of(g->k),
                          .tiles = tiles,
                          .cuts = cuts_of(g->k),
                          .columns = columns,
                          .tile_bytes = rows * AMX_LINE,
                          .past =
                              g->m * g->n * sizeof *g->c > PAST && g->n % SIDE == 0 && (uintptr_t)g->c % AMX_LINE == 0};
    const size_t made = kern_split_from(tiles, call->part + 1, parts);
    for (size_t i = kern_split_from(tiles, call->part, parts); i < made; i++) make_rows(&j, i);
    kern_meet(call);
    set_form(rows);
    for (size_t i = 0; i < cells; i++)
        for (size_t column = first; column < end; column += wide) {
            struct cell c = {.tile = i * tiles / cells,
                             .tile_end = (i + 1) * tiles / cells,
                             .column = column,
                             .column_end = end - column < wide ? end : column + wide};
            c.blocks = parts_of(c.tile_end - c.tile, MOST);
            run_cell(&j, &c, (char *)g->sums + first * most * STEP);
        }
    AMX_RELEASE();
}
#endif
