/* gemm_amx -- products in bf16 by tiles (AMX-BF16), for kernels/gemm.c: c[m,n] = a[m,k] * w[n,k]^T.
 *
 * A block is up to 48 rows and 32 columns of c, in six of the eight tile registers; the other two take a tile of a and
 * one of w by turns. What bounds it is the second cache, which gives the first 48 bytes a cycle: 32 rows need 64 for
 * products without a pause, 48 need 53. A piece of weights that stayed in the first would halve that, but k must then
 * be cut so short that sums, read and written again, cost more. Weights are packed as the instruction wants them: for
 * 32 columns and each 32 of k two tiles, of 16 pairs of neighbours in k times 16 columns, one walk through memory; rows
 * of a tile by tile, in every call. One block of rows: weights go by once, bound by memory, and k is not cut. More: of
 * a cell of c whose sums stay in half of the second cache, and its rows of a in a quarter, each piece of 32 columns
 * meets all rows (the order of Goto and van de Geijn, ACM TOMS 34(3), 2008). Sums between the cuts lie tile by tile,
 * since rows of c would share few sets of the caches. What comes next is asked for meanwhile, evenly. */
#include <string.h>

#include "kernels/amx.h"
#include "kernels/gemm_amx.h"
#include "kernels/split.h"

#if KERN_X86

enum {
    SIDE = 2 * AMX_ROWS,   /* columns of a block */
    STEP = 2 * AMX_TILE,   /* bytes of 32 columns and 32 of k; of the sums of 16 rows and 32 columns */
    MOST = 3,              /* tiles of rows of a block */
    LINES = AMX_ROWS,      /* of a tile */
    CUT = 32,              /* steps of k at most where it is cut */
    CELL = 16,             /* tiles of rows of a cell at most: with CUT 512 KiB of a */
    CELL_BYTES = 0x100000, /* of its sums */
    ROW_AHEAD = 1 << 10,   /* bytes of a row of a */
    FAR = 16 << 10         /* bytes ahead of the walk through weights that go by once */
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

void gemm_amx_pack(const struct gemm_amx *g)
{
    const size_t n = g->n, k = g->k, steps = steps_of(k);
    uint16_t *const out = g->packed;
    memset(out, 0, gemm_amx_pack_bytes(n, k));
    for (size_t j = 0; j < n; j++) {
        uint16_t *const column =
            out + j / SIDE * steps * (STEP / 2) + j / AMX_ROWS % 2 * (AMX_TILE / 2) + j % AMX_ROWS * 2;
        for (size_t l = 0; l < k; l++)
            column[l / AMX_DEPTH * (STEP / 2) + l % AMX_DEPTH / 2 * (AMX_LINE / 2) + l % 2] = g->w[j * k + l];
    }
}

/* -- rows of a -- */

struct job {
    const struct gemm_amx *of;
    size_t steps, tiles, cuts; /* of k, of rows, and parts that k is cut into */
    size_t tile_bytes;         /* of a tile of rows: of 16, or of m where that is less */
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
    struct ahead weights, rows, sums;
};

OP void ask(const struct ahead *x, size_t step)
{
    for (size_t i = 0; i < x->lines; i++) _mm_prefetch(x->at + (step * x->lines + i) * AMX_LINE, _MM_HINT_T1);
}

/* Sums of tile i of rows are registers 2i and 2i + 1. The tile of weights that is loaded serves two tiles of rows. */
OP void multiply(const struct piece *p, size_t tiles)
{
    const char *a = p->a, *w = p->w;
    for (size_t l = 0; l < p->depth; l++, a += p->a_step, w += STEP) {
        TILE_LOAD(6, a, AMX_LINE);
        TILE_LOAD(7, w, AMX_LINE);
        TILE_PRODUCT(0, 6, 7);
        TILE_LOAD(7, w + AMX_TILE, AMX_LINE);
        ask(&p->weights, l);
        TILE_PRODUCT(1, 6, 7);
        if (tiles > 1) {
            TILE_LOAD(6, a + p->a_tile, AMX_LINE);
            TILE_PRODUCT(3, 6, 7);
            TILE_LOAD(7, w, AMX_LINE);
            ask(&p->rows, l);
            for (size_t i = 0; i < p->sums.lines; i++)
                _mm_prefetch(p->sums.at + (l * p->sums.lines + i) * AMX_LINE, _MM_HINT_T0);
            TILE_PRODUCT(2, 6, 7);
        }
        if (tiles > 2) {
            TILE_LOAD(6, a + 2 * p->a_tile, AMX_LINE);
            TILE_PRODUCT(4, 6, 7);
            TILE_LOAD(7, w + AMX_TILE, AMX_LINE);
            TILE_PRODUCT(5, 6, 7);
        }
    }
}

OP void sums_load(const char *from, size_t tiles)
{
    TILE_LOAD(0, from, AMX_LINE);
    TILE_LOAD(1, from + AMX_TILE, AMX_LINE);
    if (tiles > 1) TILE_LOAD(2, from + STEP, AMX_LINE);
    if (tiles > 1) TILE_LOAD(3, from + STEP + AMX_TILE, AMX_LINE);
    if (tiles > 2) TILE_LOAD(4, from + 2 * STEP, AMX_LINE);
    if (tiles > 2) TILE_LOAD(5, from + 2 * STEP + AMX_TILE, AMX_LINE);
}

OP void sums_store(char *to, size_t tiles)
{
    TILE_STORE(0, to, AMX_LINE);
    TILE_STORE(1, to + AMX_TILE, AMX_LINE);
    if (tiles > 1) TILE_STORE(2, to + STEP, AMX_LINE);
    if (tiles > 1) TILE_STORE(3, to + STEP + AMX_TILE, AMX_LINE);
    if (tiles > 2) TILE_STORE(4, to + 2 * STEP, AMX_LINE);
    if (tiles > 2) TILE_STORE(5, to + 2 * STEP + AMX_TILE, AMX_LINE);
}

OP void sums_zero(void)
{
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_ZERO(4);
    TILE_ZERO(5);
}

/* Sums of up to 16 rows, tile by tile, to `columns` columns of c. */
OP void put(const char *sums, uint16_t *c, size_t n, size_t rows, size_t columns)
{
    const __mmask32 there = columns < SIDE ? (1u << columns) - 1 : ~0u;
    for (size_t r = 0; r < rows; r++, sums += AMX_LINE) {
        const __m512 low = _mm512_load_ps(sums), high = _mm512_load_ps(sums + AMX_TILE);
        _mm512_mask_storeu_epi16(c + r * n, there, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

/* Where a block is: its first tile of rows, how many, its columns, its sums between the cuts. */
struct place {
    size_t tile, column;
    char *sums;
};

/* A piece of a block. Sums are none before the first, and go to c after the last. */
OP void run_block(const struct job *j, const struct piece *p, const struct place *at, size_t tiles, bool first,
                  bool last)
{
    char whole[MOST * STEP] __attribute__((aligned(64)));
    if (first)
        sums_zero();
    else
        sums_load(at->sums, tiles);
    multiply(p, tiles);
    sums_store(last ? whole : at->sums, tiles);
    const size_t n = j->of->n, left = n - at->column * SIDE;
    for (size_t i = 0; last && i < tiles; i++)
        put(whole + i * STEP, j->of->c + (at->tile + i) * AMX_ROWS * n + at->column * SIDE, n, rows_of(j, at->tile + i),
            left < SIDE ? left : SIDE);
}

/* -- the product -- */

/* Tiles of rows, and blocks of columns, of a cell; parts that its rows are cut into. */
struct cell {
    size_t tile, tile_end, column, column_end, blocks;
};

static const char *weights_at(const struct job *j, size_t column, size_t step)
{
    return (const char *)j->of->packed + (column * j->steps + step) * STEP;
}

/* Weights that follow those of `column` at steps [from, end): of as many lines, a part for each block of rows. */
static struct ahead weights_ahead(const struct job *j, const struct cell *c, size_t column, size_t from, size_t end,
                                  size_t block)
{
    const size_t lines = parts_of(STEP / AMX_LINE, c->blocks);
    const char *const next = c->blocks == 1               ? weights_at(j, column, from) + FAR
                             : column + 1 < c->column_end ? weights_at(j, column + 1, from)
                             : end < j->steps             ? weights_at(j, c->column, end)
                                                          : weights_at(j, c->column_end, 0);
    return (struct ahead){next + block * (end - from) * lines * AMX_LINE, lines};
}

/* Rows of the next cut: a part for each block of rows and columns, of which a tile takes a power of two. */
static struct ahead rows_ahead(const struct job *j, const struct cell *c, size_t cut, size_t number)
{
    if (cut + 1 >= j->cuts) return (struct ahead){NULL, 0};
    const size_t tiles = c->tile_end - c->tile, parts = (c->column_end - c->column) * c->blocks;
    size_t lines = 1;
    while (lines < LINES && lines * parts < tiles * LINES) lines *= 2;
    const size_t tile = number / (LINES / lines), part = number % (LINES / lines);
    if (tile >= tiles) return (struct ahead){NULL, 0};
    const size_t depth = cut_from(j, cut + 2) - cut_from(j, cut + 1);
    return (struct ahead){rows_at(j, c->tile + tile, cut + 1) + part * depth * lines * AMX_LINE, lines};
}

OP void run_cell(const struct job *j, const struct cell *c, char *sums)
{
    const size_t all = c->tile_end - c->tile;
    for (size_t cut = 0; cut < j->cuts; cut++) {
        const size_t from = cut_from(j, cut), end = cut_from(j, cut + 1), depth = end - from;
        const bool first = cut == 0, last = cut + 1 == j->cuts;
        for (size_t column = c->column; column < c->column_end; column++)
            for (size_t b = 0; b < c->blocks; b++) {
                const size_t before = b * all / c->blocks, tiles = (b + 1) * all / c->blocks - before;
                const struct place at = {.tile = c->tile + before,
                                         .column = column,
                                         .sums = sums + ((column - c->column) * all + before) * STEP};
                const struct piece p = {.a = rows_at(j, at.tile, cut),
                                        .w = weights_at(j, column, from),
                                        .depth = depth,
                                        .a_step = j->tile_bytes,
                                        .a_tile = depth * j->tile_bytes,
                                        .weights = weights_ahead(j, c, column, from, end, b),
                                        .sums = {last && first ? NULL : at.sums + tiles * STEP,
                                                 last && first ? 0 : parts_of(tiles * STEP / AMX_LINE, depth)},
                                        .rows = rows_ahead(j, c, cut, (column - c->column) * c->blocks + b)};
                if (tiles == 1)
                    run_block(j, &p, &at, 1, first, last);
                else if (tiles == 2)
                    run_block(j, &p, &at, 2, first, last);
                else
                    run_block(j, &p, &at, MOST, first, last);
            }
    }
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
    const size_t cells = parts_of(tiles, CELL), most = parts_of(tiles, cells), wide = CELL_BYTES / STEP / most;
    const struct job j = {.of = g,
                          .steps = steps_of(g->k),
                          .tiles = tiles,
                          .cuts = tiles > MOST ? parts_of(steps_of(g->k), CUT) : 1,
                          .tile_bytes = rows * AMX_LINE};
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
