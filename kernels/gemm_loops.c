#include "kernels/gemm_loops.h"

#include <string.h>

#include "kernels/split.h"

enum { KC = 512, MC = 144 };

/* Rows from which arithmetic takes about as long as the weights take to come, so that the processor, which fetches what
 * a loop reads next, does not look far enough ahead; and how far that is. One that is to be asked for every line is so
 * for fewer rows too, whose weights then are asked for into the second cache alone. */
enum { FAR_ROWS = 6, FAR_BYTES = 32 << 10, ASKED_BYTES = 8 << 10 };

static size_t round_up(size_t v, size_t to) { return (v + to - 1) / to * to; }
static size_t panels_of(size_t n) { return (n + GEMM_PANEL - 1) / GEMM_PANEL; }

/* Neighbours in k of an element of a step; steps of k. */
static size_t each_of(enum gemm_form form) { return form == GEMM_SQUARES ? 4 : form == GEMM_PAIRS ? 2 : 1; }
static size_t steps_of(size_t k, enum gemm_form form) { return (k + each_of(form) - 1) / each_of(form); }

/* -- packing -- */

size_t gemm_pack_bytes(size_t n, size_t k, enum gemm_form form)
{
    return panels_of(n) * steps_of(k, form) * gemm_step_bytes(form);
}

/* Elements from the first one to those of step l of a panel, of `panels`, `side` of them side by side. */
static size_t packed_at(size_t panels, size_t side, size_t steps, size_t panel, size_t l)
{
    const size_t first = panel / side * side, beside = first + side <= panels ? side : 1;
    return (first * steps + l * beside + panel % side) * GEMM_PANEL;
}

void gemm_pack(const struct gemm_loops *g, enum gemm_form form, size_t side)
{
    const size_t k = g->k, panels = panels_of(g->n), each = each_of(form), steps = steps_of(k, form);
    for (size_t column = 0; column < panels * GEMM_PANEL; column++)
        for (size_t l = 0; l < each * steps; l++) {
            const size_t step = packed_at(panels, side, steps, column / GEMM_PANEL, l / each);
            const size_t to = (step + column % GEMM_PANEL) * each + l % each, from = column * k + l;
            const bool there = column < g->n && l < k;
            if (form == GEMM_FP32)
                ((float *)g->packed)[to] = there ? ((const float *)g->w)[from] : 0;
            else
                ((uint16_t *)g->packed)[to] = there ? ((const uint16_t *)g->w)[from] : 0;
        }
}

/* -- the product -- */

/* Rows [row, row + rows) of a as a strip of squares: [step][pairs of rows][2][4], zeros behind k and, of an odd number,
 * a last row of them. */
static void make_squares(const struct gemm_loops *g, size_t row, size_t rows, float *out)
{
    const size_t k = g->k, steps = (k + 3) / 4, pairs = (rows + 1) / 2;
    for (size_t r = 0; r < 2 * pairs; r++)
        for (size_t l = 0; l < steps; l++) {
            const uint16_t *a = (const uint16_t *)g->a + (row + r) * k + 4 * l;
            uint16_t four[4] = {0};
            if (r < rows) memcpy(four, a, (k - 4 * l < 4 ? k - 4 * l : 4) * sizeof *four);
            memcpy(out + (l * pairs + r / 2) * 4 + r % 2 * 2, four, sizeof four);
        }
}

/* Rows [row, row + rows) of a as a strip, steps in order: [step][rows]. */
static void make_strip(const struct gemm_loops *g, enum gemm_form form, size_t row, size_t rows, float *out)
{
    if (form == GEMM_SQUARES) {
        make_squares(g, row, rows, out);
        return;
    }
    enum { AT_ONCE = 64 }; /* steps, whose rows stay in the first cache until they are whole */
    const size_t k = g->k, steps = steps_of(k, form);
    for (size_t from = 0; from < steps; from += AT_ONCE) {
        const size_t end = steps - from < AT_ONCE ? steps : from + AT_ONCE;
        for (size_t r = 0; r < rows; r++) {
            const float *full = (const float *)g->a + (row + r) * k;
            const uint16_t *half = (const uint16_t *)g->a + (row + r) * k;
            for (size_t l = from; form == GEMM_FP32 && l < end; l++) out[l * rows + r] = full[l];
            for (size_t l = from; form == GEMM_BF16 && l < end; l++) out[l * rows + r] = kern_bf16_to(half[l]);
            for (size_t l = from; form == GEMM_PAIRS && l < end; l++) {
                const uint16_t pair[2] = {half[2 * l], 2 * l + 1 < k ? half[2 * l + 1] : 0};
                memcpy(&out[l * rows + r], pair, sizeof pair);
            }
        }
    }
}

struct job {
    const struct gemm_tiles *tiles;
    enum gemm_form form;
    size_t m, n, steps, panels, strips_n;
    const float *strips;
    const char *w;
    float *sums;
    size_t end; /* of the panels that are this part's */
    bool asked;
};

/* First row of strip i: strips differ by one row at most, of squares by one pair of them. */
static size_t strip_row(const struct job *j, size_t i)
{
    if (j->form != GEMM_SQUARES) return i * j->m / j->strips_n;
    const size_t row = i * ((j->m + 1) / 2) / j->strips_n * 2;
    return row < j->m ? row : j->m;
}

/* Where step `from` of a strip of rows [row, row + rows) lies among the strips. */
static size_t strip_at(const struct job *j, size_t row, size_t rows, size_t from)
{
    if (j->form == GEMM_SQUARES) return 2 * (row * j->steps + from * round_up(rows, 2));
    return row * j->steps + from * rows;
}

/* How many panels lie side by side with one, itself included. */
static size_t beside(const struct job *j, size_t panel)
{
    const size_t side = j->tiles->side;
    return panel / side * side + side <= j->panels ? side : 1;
}

/* Where step `from` of a panel lies. */
static const char *panel_at(const struct job *j, size_t panel, size_t from)
{
    const size_t side = j->tiles->side, first = panel / side * side;
    return j->w + (first * j->steps + from * beside(j, panel) + panel % side) * gemm_step_bytes(j->form);
}

/* Bytes ahead that the weights of a strip alone are asked for. */
static size_t far_of(const struct job *j)
{
    if (j->strips_n > 1) return 0;
    return j->m >= FAR_ROWS ? FAR_BYTES : j->asked ? ASKED_BYTES : 0;
}

/* Panels [panel, panel + wide) times strips [first, end), steps [from, from + depth). */
static void run_panels(const struct job *j, size_t panel, size_t wide, size_t first, size_t end, size_t from,
                       size_t depth)
{
    const size_t left = j->n - panel * GEMM_PANEL, later = panel + wide, strips = end - first;
    const bool alone = j->strips_n == 1, fetch = !alone && later < j->end;
    const size_t next_step = (beside(j, panel) * gemm_step_bytes(j->form) + strips - 1) / strips;
    for (size_t i = first; i < end; i++) {
        const size_t row = strip_row(j, i), rows = strip_row(j, i + 1) - row;
        const struct gemm_tile t = {.a = j->strips + strip_at(j, row, rows, from),
                                    .w = panel_at(j, panel, from),
                                    .panel = j->steps * gemm_step_bytes(j->form),
                                    .step = beside(j, panel) * gemm_step_bytes(j->form),
                                    .far = far_of(j),
                                    .far_alone = alone && j->asked && j->m < FAR_ROWS,
                                    .depth = depth,
                                    .sums = j->sums + row * j->n + panel * GEMM_PANEL,
                                    .stride = j->n,
                                    .columns = left < wide * GEMM_PANEL ? left : wide * GEMM_PANEL,
                                    .more = from > 0,
                                    .next = fetch ? panel_at(j, later, from) + (i - first) * depth * next_step : NULL,
                                    .next_step = next_step};
        const struct gemm_tiles *s = j->tiles;
        (wide == 1 ? s->one[rows] : alone ? s->wide[rows] : s->many[rows]).run(&t);
    }
}

/* The columns of a part, row by row. */
static void round_part(const struct job *j, uint16_t *out, size_t panels_from)
{
    const size_t from = panels_from * GEMM_PANEL, end = j->end * GEMM_PANEL < j->n ? j->end * GEMM_PANEL : j->n;
    for (size_t r = 0; r < j->m && from < end; r++)
        j->tiles->round(j->sums + r * j->n + from, out + r * j->n + from, end - from);
}

void gemm_multiply(const struct gemm_loops *g, const struct gemm_tiles *tiles, enum gemm_form form,
                   const struct kern_call *c)
{
    const size_t m = g->m;
    const unsigned parts = c->parts > 1 ? c->parts : 1;
    struct job j = {.tiles = tiles,
                    .form = form,
                    .m = m,
                    .n = g->n,
                    .steps = steps_of(g->k, form),
                    .panels = panels_of(g->n),
                    .strips_n = (m + tiles->rows_max - 1) / tiles->rows_max,
                    .strips = g->strips,
                    .w = g->packed,
                    .sums = form == GEMM_FP32 ? g->c : g->sums,
                    .asked = c->machine->asked};
    const size_t depth_max = j.strips_n == 1 ? j.steps : KC, block = MC / tiles->rows_max;
    const size_t wide = j.strips_n == 1 ? tiles->wide[m].wide : tiles->many[tiles->rows_max].wide;
    const size_t pairs = (j.panels + 1) / 2, panels_from = 2 * kern_split_from(pairs, c->part, parts);
    j.end = 2 * kern_split_from(pairs, c->part + 1, parts);
    if (j.end > j.panels) j.end = j.panels;
    for (size_t i = kern_split_from(j.strips_n, c->part, parts); i < kern_split_from(j.strips_n, c->part + 1, parts);
         i++) {
        const size_t row = strip_row(&j, i);
        make_strip(g, form, row, strip_row(&j, i + 1) - row, g->strips + strip_at(&j, row, 0, 0));
    }
    kern_meet(c);
    for (size_t from = 0; from < j.steps; from += depth_max)
        for (size_t first = 0; first < j.strips_n; first += block) {
            const size_t end = j.strips_n - first < block ? j.strips_n : first + block;
            const size_t depth = j.steps - from < depth_max ? j.steps - from : depth_max;
            for (size_t panel = panels_from, take; panel < j.end; panel += take) {
                take = j.end - panel >= wide ? wide : 1;
                run_panels(&j, panel, take, first, end, from, depth);
            }
        }
    if (form == GEMM_FP32) return;
    if (parts == 1)
        tiles->round(j.sums, g->c, j.m * j.n);
    else
        round_part(&j, g->c, panels_from);
}
