/* gemm_amx -- products in bf16 by tiles (AMX-BF16), for kernels/gemm.c: c[m,n] = a[m,k] * w[n,k]^T.
 *
 * A block is 32 rows and 32 columns of c, in four of the eight tile registers; the others take two tiles of a and two
 * of w, so that a step of k is four loads and four products. What bounds it is the second cache, which gives the first
 * 48 bytes a cycle, and what a line that comes or goes costs besides. So k is cut into pieces, of which 32 rows stay in
 * the first cache while all columns of a cell go by, past that cache (tileloaddt1). The sums of a piece are stored to
 * one place in the first cache and added to those of the pieces before by vectors, a few lines in each step of the next
 * block: sums loaded into tiles and stored again come in bursts for which the products wait. They stay in the second
 * cache, in a cell that has room there beside its next weights. Rows come a strip ahead from the last level, and not a
 * piece of k ahead: those of a piece would displace the sums. Up to 48 rows are one block, of six tiles.
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
    MOST = 2,                /* tiles of rows of a block, where there are several */
    ALONE = 3,               /* tiles of rows at most that are one block */
    WEIGHTS = 6,             /* first register of weights, of few tiles of rows */
    CUT = 14,                /* steps of k of a piece at most: 28 KiB of 32 rows */
    CELL = 32,               /* tiles of rows of a cell at most */
    CELL_BYTES = 1536 << 10, /* of its sums, of a piece of its rows and two of its weights */
    CELL_COLUMNS = 12,       /* blocks of columns of a cell of several strips at most */
    ROW_AHEAD = 1 << 10,     /* bytes of a row of a */
    APART = 4                /* of so many lines of rows one is asked for: the processor brings those behind it */
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

/* Lines that are asked for meanwhile, so many a step, each `apart` lines behind the one before. */
struct ahead {
    const char *at;
    size_t lines, apart;
};

struct piece {
    const char *a, *w;
    size_t depth, a_step, a_tile; /* steps; bytes from step to step, from tile to tile of rows */
    struct ahead weights, rows;
};

OP void ask(const struct ahead *x, size_t step)
{
    for (size_t i = 0; i < x->lines; i++)
        _mm_prefetch(x->at + (step * x->lines + i) * x->apart * AMX_LINE, _MM_HINT_T1);
}

/* Of register t: the sums of the block before go to tile number `at` of theirs, those of this one begin. */
#define TURN(t, at)                                                                                                    \
    do {                                                                                                               \
        if (turn && before) TILE_STORE(t, before + (at)*AMX_TILE, AMX_LINE);                                           \
        if (turn) TILE_ZERO(t);                                                                                        \
    } while (0)

/* A step of three tiles of rows: sums of tile i and column j of tiles are register 2i + j. The last tile of rows serves
 * both columns. turn: sums of the block before go to `before`, NULL: there is none. */
OP void step_alone(const struct piece *p, size_t l, bool turn, char *before)
{
    const char *const a = p->a + l * p->a_step, *const w = p->w + l * STEP;
    TILE_LOAD_ONCE(7, w, AMX_LINE);
    TILE_LOAD(6, a, AMX_LINE);
    TURN(0, 0);
    TILE_PRODUCT(0, 6, 7);
    ask(&p->weights, l);
    TILE_LOAD(6, a + p->a_tile, AMX_LINE);
    TURN(2, 2);
    TILE_PRODUCT(2, 6, 7);
    TILE_LOAD(6, a + 2 * p->a_tile, AMX_LINE);
    TURN(4, 4);
    TILE_PRODUCT(4, 6, 7);
    TILE_LOAD_ONCE(7, w + AMX_TILE, AMX_LINE);
    TURN(5, 5);
    TILE_PRODUCT(5, 6, 7);
    TILE_LOAD(6, a + p->a_tile, AMX_LINE);
    TURN(3, 3);
    TILE_PRODUCT(3, 6, 7);
    TILE_LOAD(6, a, AMX_LINE);
    TURN(1, 1);
    TILE_PRODUCT(1, 6, 7);
    ask(&p->rows, l);
}

/* A step of one or two tiles of rows, likewise. */
OP void step_few(const struct piece *p, size_t l, size_t tiles, bool turn, char *before)
{
    const char *const a = p->a + l * p->a_step, *const w = p->w + l * STEP;
    TILE_LOAD_ONCE(6, w, AMX_LINE);
    TILE_LOAD(4, a, AMX_LINE);
    TURN(0, 0);
    TILE_PRODUCT(0, 4, 6);
    ask(&p->weights, l);
    if (tiles > 1) {
        TILE_LOAD(5, a + p->a_tile, AMX_LINE);
        TURN(2, 2);
        TILE_PRODUCT(2, 5, 6);
        ask(&p->rows, l);
    }
    TILE_LOAD_ONCE(7, w + AMX_TILE, AMX_LINE);
    TURN(1, 1);
    TILE_PRODUCT(1, 4, 7);
    if (tiles > 1) {
        TURN(3, 3);
        TILE_PRODUCT(3, 5, 7);
    }
}

OP void step(const struct piece *p, size_t l, size_t tiles, bool turn, char *before)
{
    if (tiles == ALONE)
        step_alone(p, l, turn, before);
    else
        step_few(p, l, tiles, turn, before);
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

/* What becomes of the sums of a piece of k: of the first one they are stored in their place, then added there, and with
 * the last they are results; of a piece that is all of k, at once. */
enum end { SET, ADD, PUT, PUT_ALL };

/* A block whose products are made: its sums of this piece, and of those before, tile by tile. */
struct made {
    const char *piece;
    char *sums;
    uint16_t *c;
    size_t n;        /* from row to row of c */
    __mmask32 there; /* columns of them */
    bool past;       /* c is written past the caches */
};

/* Row i of a block. */
OP void end_row(const struct made *b, size_t i, enum end end)
{
    const size_t at = i / AMX_ROWS * STEP + i % AMX_ROWS * AMX_LINE;
    __m512 low = _mm512_load_ps(b->piece + at), high = _mm512_load_ps(b->piece + at + AMX_TILE);
    if (end != PUT_ALL) {
        low = _mm512_add_ps(low, _mm512_load_ps(b->sums + at));
        high = _mm512_add_ps(high, _mm512_load_ps(b->sums + at + AMX_TILE));
    }
    if (end == ADD) {
        _mm512_store_ps(b->sums + at, low);
        _mm512_store_ps(b->sums + at + AMX_TILE, high);
    } else {
        const __m512i all = (__m512i)_mm512_cvtne2ps_pbh(high, low);
        if (b->past)
            _mm512_stream_si512((__m512i *)(void *)(b->c + i * b->n), all);
        else
            _mm512_mask_storeu_epi16(b->c + i * b->n, b->there, all);
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
    size_t each;
    struct ahead some;
};

static struct parts parts_from(const char *from, const char *end, size_t depth, size_t lines, size_t apart)
{
    return (struct parts){from, end, depth * lines * apart * AMX_LINE, {.lines = lines, .apart = apart}};
}

static struct ahead part_of(const struct parts *p, size_t number)
{
    const char *const at = p->from + number * p->each;
    return (struct ahead){at, at < p->end ? p->some.lines : 0, p->some.apart};
}

/* Part `block` of weights that come next: with one block of rows those of the next column, else those of the next cut,
 * or cell, in one walk. */
static struct parts weights_ahead(const struct job *j, const struct cell *c, size_t cut, size_t block)
{
    const size_t lines = parts_of(STEP / AMX_LINE, c->blocks), then = cut + 1 < j->cuts ? cut + 1 : 0;
    const size_t wide = c->column_end - c->column, depth = cut_from(j, cut + 1) - cut_from(j, cut);
    const char *const from =
        c->blocks == 1 ? weights_at(j, c->column + 1, cut) : weights_at(j, c->column + (then ? 0 : wide), then);
    return parts_from(from + block * wide * depth * lines * AMX_LINE, from + wide * depth * STEP, depth, lines, 1);
}

/* First tile of rows of a block of a cell. */
static size_t tile_of(const struct cell *c, size_t block)
{
    return c->tile + block * (c->tile_end - c->tile) / c->blocks;
}

/* Rows of the next block, of this cut or the next. */
static struct parts rows_ahead(const struct job *j, const struct cell *c, size_t cut, size_t block)
{
    const size_t wide = c->column_end - c->column, depth = cut_from(j, cut + 1) - cut_from(j, cut);
    const size_t then = block + 1 < c->blocks ? cut : cut + 1 < j->cuts ? cut + 1 : 0;
    const size_t next = block + 1 < c->blocks ? block + 1 : 0, tiles = tile_of(c, next + 1) - tile_of(c, next);
    const char *const from = rows_at(j, tile_of(c, next), then);
    const size_t lines = c->blocks * j->cuts == 1 ? 0 : parts_of(tiles * AMX_ROWS, wide * APART);
    return parts_from(from, from + tiles * depth * j->tile_bytes, depth, lines, APART);
}

/* A block of rows in a cut: tiles of rows from tile `first` on. */
struct strip {
    size_t cut, block, first;
    char *sums;  /* of the cell */
    char *piece; /* [ALONE * STEP] */
};

OP struct made made_of(const struct job *j, const struct strip *s, size_t column, char *sums)
{
    const size_t n = j->of->n, left = n - column * SIDE, row = s->first * AMX_ROWS;
    return (struct made){.piece = s->piece,
                         .sums = sums,
                         .c = j->of->c + row * n + column * SIDE,
                         .n = n,
                         .there = left < SIDE ? (1u << left) - 1 : ~0u,
                         .past = j->past};
}

/* All columns of a cell with the same rows, which stay in the first cache. What becomes of the sums of a block is done
 * in the steps of the next, evenly. */
OP void run_strip(const struct job *j, const struct cell *c, const struct strip *s, size_t tiles, enum end end)
{
    const size_t depth = cut_from(j, s->cut + 1) - cut_from(j, s->cut), left = j->of->m - s->first * AMX_ROWS;
    const size_t rows = left < tiles * AMX_ROWS ? left : tiles * AMX_ROWS;
    const size_t each = depth > 1 ? parts_of(rows, depth - 1) : 0, apart = (c->tile_end - c->tile) * STEP;
    const struct parts weights = weights_ahead(j, c, s->cut, s->block), next = rows_ahead(j, c, s->cut, s->block);
    char *before = NULL, *sums = s->sums + (s->first - c->tile) * STEP;
    struct made made = {.piece = NULL};
    struct piece p = {.a = rows_at(j, s->first, s->cut),
                      .w = weights_at(j, c->column, s->cut),
                      .depth = depth,
                      .a_step = j->tile_bytes,
                      .a_tile = depth * j->tile_bytes};
    for (size_t column = c->column; column < c->column_end; column++, p.w += depth * STEP, sums += apart) {
        size_t row = before && end != SET ? 0 : rows;
        p.weights = part_of(&weights, column - c->column);
        p.rows = part_of(&next, column - c->column);
        step(&p, 0, tiles, true, before);
        for (size_t l = 1; l < depth; l++) {
            step(&p, l, tiles, false, NULL);
            for (size_t i = 0; i < each && row < rows; i++, row++) end_row(&made, row, end);
        }
        for (; row < rows; row++) end_row(&made, row, end);
        before = end == SET ? sums : s->piece;
        made = made_of(j, s, column, sums);
    }
    sums_store(before, tiles);
    for (size_t row = end == SET ? rows : 0; row < rows; row++) end_row(&made, row, end);
}

OP void run_cut(const struct job *j, const struct cell *c, struct strip *s, enum end end)
{
    for (s->block = 0; s->block < c->blocks; s->block++) {
        s->first = tile_of(c, s->block);
        const size_t tiles = tile_of(c, s->block + 1) - s->first;
        if (tiles == 1)
            run_strip(j, c, s, 1, end);
        else if (tiles == MOST)
            run_strip(j, c, s, MOST, end);
        else
            run_strip(j, c, s, ALONE, end);
    }
}

KERN_AMX_BF16 static void run_cell(const struct job *j, const struct cell *c, char *sums)
{
    char piece[ALONE * STEP] __attribute__((aligned(4096)));
    struct strip s = {.sums = sums, .piece = piece};
    if (j->cuts == 1) {
        run_cut(j, c, &s, PUT_ALL);
        return;
    }
    run_cut(j, c, &s, SET);
    for (s.cut = 1; s.cut + 1 < j->cuts; s.cut++) run_cut(j, c, &s, ADD);
    run_cut(j, c, &s, PUT);
}

static void set_form(size_t rows)
{
    struct amx_form f = {.palette = 1};
    for (size_t i = 0; i < AMX_TILES; i++) {
        f.rows[i] = (uint8_t)(i < WEIGHTS ? rows : AMX_ROWS);
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
                 room = (CELL_BYTES - most * CUT * AMX_TILE) / STEP / (most + 2 * CUT),
                 wide = most > ALONE && room > CELL_COLUMNS ? CELL_COLUMNS : room;
    const struct job j = {.of = g,
                          .steps = steps_of(g->k),
                          .tiles = tiles,
                          .cuts = cuts_of(g->k),
                          .columns = columns,
                          .tile_bytes = rows * AMX_LINE,
                          .past = g->n % SIDE == 0 && (uintptr_t)g->c % AMX_LINE == 0 &&
                                  kern_past(call->machine, 2.0 * (double)(g->m * g->n))};
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
            c.blocks = most <= ALONE ? 1 : parts_of(c.tile_end - c.tile, MOST);
            run_cell(&j, &c, (char *)g->sums + first * most * STEP);
        }
    AMX_RELEASE();
}
#endif
