#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/units.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_kinds.h"
#include "calc/cli/plot_rows.h"

enum { LAYERS_N = 5, CAPACITIES_MAX = 6 };

static const struct {
    const char *key, *name; /* key NULL: what memory_bytes holds beyond the others */
    enum plot_fill fill;
} layers[LAYERS_N] = {
    {"weight_bytes", "weights", PLOT_WEIGHTS},
    {"kv_bytes", "KV cache", PLOT_KV},
    {"state_bytes", "state", PLOT_STATE},
    {"activation_bytes", "activations", PLOT_ACTIVATION},
    {NULL, "other", PLOT_OTHER},
};

struct bar {
    double at; /* batch or context */
    double bytes[LAYERS_N], sum;
    bool unfit;
};

struct capacity {
    const char *device;
    double bytes, gpus;
};

struct picture {
    struct plot_canvas *canvas;
    const struct plot_csv *csv;
    struct plot_rows naming;
    const char *x_key;
    struct bar *bars;
    size_t n_bars;
    struct capacity capacities[CAPACITIES_MAX];
    size_t n_capacities;
    struct plot_margin names[CAPACITIES_MAX]; /* of the capacities */
    bool used[LAYERS_N];
    struct units_scale scale;
    struct plot_panel panel;        /* bar i stands at x = i, from 0 */
    double captions_y, captions_x1; /* of the caption of the y axis: its line, its end */
};

/* -- reading -- */

static struct bar read_bar(const struct plot_csv *csv, size_t row, const char *x_key)
{
    struct bar b = {.at = plot_csv_number(csv, row, x_key)};
    for (size_t i = 0; i < LAYERS_N; i++) {
        const double v = layers[i].key ? plot_csv_number(csv, row, layers[i].key)
                                       : plot_csv_number(csv, row, "memory_bytes") - b.sum;
        /* the total is rounded and may be unknown: what is left of it counts from 0.5 % */
        if (!(v > 0) || (!layers[i].key && v < 0.005 * b.sum)) continue;
        b.bytes[i] = v;
        b.sum += v;
    }
    b.unfit = plot_rows_fit(csv, row) < 0.5;
    return b;
}

static enum err_code add_bar(struct picture *p, const struct bar *b, struct err *e)
{
    size_t i = p->n_bars;
    while (i > 0 && p->bars[i - 1].at > b->at) i--;
    if (i > 0 && !(p->bars[i - 1].at < b->at)) {
        struct bar *same = &p->bars[i - 1];
        if (fabs(same->sum - b->sum) > 1e-3 * fmax(same->sum, b->sum))
            return err_set(e, ERR_USAGE,
                           "a memory plot shows one configuration over batch or context; the rows differ in more at %s "
                           "%.9g",
                           p->x_key, b->at);
        same->unfit = same->unfit && b->unfit; /* on some device it fits */
        return ERR_OK;
    }
    memmove(p->bars + i + 1, p->bars + i, (p->n_bars - i) * sizeof *p->bars);
    p->bars[i] = *b;
    p->n_bars++;
    return ERR_OK;
}

static enum err_code add_capacity(struct picture *p, size_t row, struct err *e)
{
    const double bytes = plot_csv_number(p->csv, row, "capacity_bytes");
    if (!(bytes > 0)) return ERR_OK;
    const char *device = plot_rows_device(p->canvas->arena, &p->naming, row);
    if (!device) return err_nomem(e);
    for (size_t i = 0; i < p->n_capacities; i++)
        if (strcmp(p->capacities[i].device, device) == 0) return ERR_OK;
    if (p->n_capacities == CAPACITIES_MAX)
        return err_set(e, ERR_USAGE, "a memory plot has room for %d devices", CAPACITIES_MAX);
    p->capacities[p->n_capacities++] = (struct capacity){device, bytes, plot_rows_gpus(p->csv, row)};
    return ERR_OK;
}

static enum err_code read_bars(struct picture *p, struct err *e)
{
    const struct plot_csv *csv = p->csv;
    if (!plot_rows_alike(csv, "model"))
        return err_set(e, ERR_USAGE, "a memory plot shows one model, the rows have several");
    const bool by_context = plot_rows_alike(csv, "batch") && !plot_rows_alike(csv, "context");
    p->x_key = by_context || plot_csv_column(csv, "batch") == csv->n_columns ? "context" : "batch";
    p->bars = arena_array(p->canvas->arena, csv->n_rows + 1, sizeof *p->bars);
    if (!p->bars) return err_nomem(e);
    for (size_t i = 0; i < csv->n_rows; i++) {
        const struct bar b = read_bar(csv, i, p->x_key);
        if (!(b.at > 0) || !(b.sum > 0)) continue;
        TRY(add_bar(p, &b, e));
        TRY(add_capacity(p, i, e));
        for (size_t j = 0; j < LAYERS_N; j++) p->used[j] = p->used[j] || b.bytes[j] > 0;
    }
    if (!p->n_bars) return err_set(e, ERR_INPUT, "memory plot: no row with a %s and bytes", p->x_key);
    return ERR_OK;
}

/* -- axes -- */

static void choose_range(struct picture *p)
{
    double most = 0, least = HUGE_VAL, capacity = 0;
    for (size_t i = 0; i < p->n_bars; i++) {
        most = fmax(most, p->bars[i].sum);
        least = fmin(least, p->bars[i].sum);
    }
    for (size_t i = 0; i < p->n_capacities; i++) capacity = fmax(capacity, p->capacities[i].bytes);
    double top = 1.08 * fmax(most, capacity);
    /* bars far beyond the card are cut and their height said, lest they press the others flat */
    if (capacity > 0 && most > 3 * capacity) top = fmin(top, fmax(1.9 * capacity, 1.3 * least));
    p->scale = units_scale_for(UNITS_BYTES, (double)NAN, top);
    p->panel.range = (struct plot_box){-0.5, 0, (double)p->n_bars - 0.5, top / p->scale.divisor};
}

static void set_tics(struct picture *p)
{
    struct plot_canvas *c = p->canvas;
    const double apart = c->dumb ? 7 : 46;
    double last = -HUGE_VAL;
    out_str(c->settings, "set xtics (");
    for (size_t i = 0; i < p->n_bars; i++) {
        const double x = plot_panel_x(&p->panel, (double)i);
        if (x - last < apart) continue;
        out_printf(c->settings, "%s'%.9g' %zu", i ? ", " : "", p->bars[i].at, i);
        last = x;
    }
    out_str(c->settings, ")\n");
}

/* -- drawing -- */

static double y_of(const struct picture *p, double bytes)
{
    return plot_panel_y(&p->panel, fmin(bytes / p->scale.divisor, p->panel.range.y1));
}

/* Where the total of a bar that ends at y stands: above it, and off the lines of the capacities. */
static double total_y(const struct picture *p, double y)
{
    const double up = p->canvas->dumb ? 1 : 9, clear = p->canvas->dumb ? 0.6 : 8;
    y += up;
    for (size_t pass = 0; pass < p->n_capacities; pass++)
        for (size_t i = 0; i < p->n_capacities; i++) {
            const double line = y_of(p, p->capacities[i].bytes);
            if (fabs(y - line) < clear) y = line + up;
        }
    return y;
}

/* The total over a bar, with as many digits as there is room for; none when bars are too close. */
static void draw_total(struct picture *p, double sum, double x)
{
    struct plot_canvas *c = p->canvas;
    const double pitch = plot_panel_x(&p->panel, 1) - plot_panel_x(&p->panel, 0), v = sum / p->scale.divisor;
    for (int digits = v < 9.95 ? 2 : v < 999.5 ? 1 : 0; digits >= 0; digits--) {
        char text[UNITS_TEXT_MAX];
        (void)snprintf(text, sizeof text, "%.*f", digits, v);
        if (plot_text_wide(c, text, PLOT_SMALL) + (c->dumb ? 1 : 6) > pitch) continue;
        plot_canvas_text(c, x, total_y(p, y_of(p, sum)), PLOT_SMALL, PLOT_CENTER, text);
        return;
    }
}

static void draw_bar(struct picture *p, size_t i)
{
    struct plot_canvas *c = p->canvas;
    const struct bar *b = &p->bars[i];
    const double half = p->n_bars > 24 ? 0.45 : 0.32;
    double x0 = plot_panel_x(&p->panel, (double)i - half), x1 = plot_panel_x(&p->panel, (double)i + half);
    const double over = x1 - x0 - (c->dumb ? 12 : 120);
    if (over > 0) { /* a few bars are still bars */
        x0 += over / 2;
        x1 -= over / 2;
    }
    if (c->dumb) { /* all of one width */
        const double wide = fmax(1, floor(x1 - x0));
        x0 = floor((x0 + x1 - wide) / 2 + 0.5);
        x1 = x0 + wide;
    }
    double sum = 0;
    for (size_t j = 0; j < LAYERS_N; j++) {
        const double y0 = y_of(p, sum), y1 = y_of(p, sum += b->bytes[j]);
        /* a line of characters below the axis line and above it */
        const double up = c->dumb ? 0.5 : 0;
        if (y1 - y0 > 1e-6) plot_canvas_box(c, &(struct plot_box){x0, y0 + up, x1, y1 + up}, layers[j].fill);
    }
    const bool cut = b->sum / p->scale.divisor > p->panel.range.y1;
    if (cut && !c->dumb) { /* two strokes of the ground: the bar goes on */
        const double y = p->panel.place.y1 - 14;
        plot_canvas_stroke(c, x0 - 3, y - 4, x1 + 3, y + 2, PLOT_STROKE_BREAK);
        plot_canvas_stroke(c, x0 - 3, y - 10, x1 + 3, y - 4, PLOT_STROKE_BREAK);
    }
    draw_total(p, b->sum, (x0 + x1) / 2);
}

/* A band over the columns that do not fit, and what it means. */
static enum err_code draw_unfit(struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    struct out *o = NULL;
    TRY(plot_canvas_file(c, "unfit.tsv", "from_position\tto_position\n", &o, e));
    size_t first = p->n_bars, end = p->n_bars, n = 0;
    for (size_t i = p->n_bars; i-- > 0;)
        if (p->bars[i].unfit) {
            if (i + 1 == p->n_bars || !p->bars[i + 1].unfit) end = i + 1;
            if (!i || !p->bars[i - 1].unfit) out_printf(o, "%.1f\t%.1f\n", (double)i - 0.5, (double)end - 0.5);
            first = i;
            n++;
        }
    if (!n) return ERR_OK;
    char *text = n == p->n_bars ? arena_printf(c->arena, "does not fit at any %s shown", p->x_key)
                                : arena_printf(c->arena, "does not fit from %s %.9g", p->x_key, p->bars[first].at);
    if (!text) return err_nomem(e);
    const struct plot_box *f = &p->panel.place;
    const double x = plot_panel_x(&p->panel, (double)first - 0.5), half = c->dumb ? 0.5 : 8;
    const double wide = plot_text_wide(c, text, PLOT_SMALL), y = p->captions_y, pad = c->dumb ? 1 : 6;
    /* the caption of the axis stands on the same line */
    const double left = fmax(x, p->captions_x1 + pad);
    const double inside = f->x1 - left - 2 * pad, beside = x - p->captions_x1 - 2 * pad;
    char cut[PLOT_TEXT_MAX];
    plot_canvas_box(c, &(struct plot_box){left, y - half, f->x1, y + half}, PLOT_UNFIT);
    if (wide < inside || inside >= beside)
        plot_canvas_text(c, (left + f->x1) / 2, y, PLOT_SMALL, PLOT_CENTER,
                         plot_text_fit(c, cut, text, PLOT_SMALL, inside));
    else
        plot_canvas_text(c, x - pad, y, PLOT_SMALL, PLOT_RIGHT, plot_text_fit(c, cut, text, PLOT_SMALL, beside));
    return ERR_OK;
}

/* Lines across, named in the right margin, where no bar is. */
static void draw_capacities(struct picture *p)
{
    struct plot_canvas *c = p->canvas;
    const struct plot_box *f = &p->panel.place;
    for (size_t i = 0; i < p->n_capacities; i++) {
        const double y = p->names[i].y = y_of(p, p->capacities[i].bytes);
        if (!c->dumb) {
            plot_canvas_stroke(c, f->x0, y, f->x1, y, PLOT_STROKE_CAPACITY);
            continue;
        }
        char dashes[80];
        const size_t n = (size_t)fmin(f->x1 - f->x0 - 1, 79);
        memset(dashes, '-', n);
        dashes[n] = '\0';
        plot_canvas_text(c, f->x0 + 1, y, PLOT_SMALL, PLOT_LEFT, dashes);
    }
    plot_canvas_margin(c, f->x1, p->names, p->n_capacities);
}

static enum err_code name_capacities(struct picture *p, struct err *e)
{
    for (size_t i = 0; i < p->n_capacities; i++) {
        char number[UNITS_TEXT_MAX];
        p->names[i].first = arena_printf(p->canvas->arena, p->capacities[i].gpus > 1 ? "%s usable each" : "%s usable",
                                         units_format_bytes(number, p->capacities[i].bytes));
        p->names[i].then = p->capacities[i].device;
        if (!p->names[i].first) return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code lay_out(const struct plot_request *r, struct picture *p, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const char *shared = r->subtitle;
    if (!shared) TRY(plot_rows_shared(c->arena, &p->naming, &shared, e));
    double y = plot_canvas_head(c, r->title, shared);
    struct plot_entry entries[LAYERS_N];
    size_t n = 0;
    for (size_t i = 0; i < LAYERS_N; i++)
        if (p->used[i]) entries[n++] = (struct plot_entry){.text = layers[i].name, .fill = layers[i].fill};
    y = plot_canvas_legend(c, entries, n, y);
    TRY(name_capacities(p, e));
    const double margin = plot_margin_wide(c, p->names, p->n_capacities);
    choose_range(p);
    char *caption =
        arena_printf(c->arena, plot_rows_any_gpus(p->csv) ? "memory per GPU, %s" : "memory, %s", p->scale.label);
    if (!caption) return err_nomem(e);
    const double left = c->dumb ? 0 : 14;
    p->captions_y = y - (c->dumb ? 0 : 2);
    p->captions_x1 = left + plot_text_wide(c, caption, PLOT_NORMAL);
    plot_canvas_text(c, left, p->captions_y, PLOT_NORMAL, PLOT_LEFT, caption);
    p->panel.place = c->dumb ? (struct plot_box){7, 2, c->width - margin, y - 2}
                             : (struct plot_box){66, 62, c->width - margin, y - 32};
    plot_canvas_text(c, (p->panel.place.x0 + p->panel.place.x1) / 2, c->dumb ? 0 : 24, PLOT_NORMAL, PLOT_CENTER,
                     strcmp(p->x_key, "context") == 0 ? "context (tokens)"
                     : plot_rows_any_copies(p->csv)   ? "batch (sequences per copy)"
                                                      : "batch (sequences)");
    plot_canvas_panel(c, "main", &p->panel);
    return ERR_OK;
}

enum err_code plot_memory_build(const struct plot_request *r, struct plot_canvas *c, struct err *e)
{
    struct plot_csv csv;
    struct picture *p = arena_alloc(c->arena, sizeof *p);
    if (!p) return err_nomem(e);
    p->canvas = c;
    p->csv = &csv;
    TRY(plot_csv_parse(c->arena, "memory plot", r->csv, &csv, e));
    p->naming = plot_rows_look(&csv);
    TRY(read_bars(p, e));
    TRY(lay_out(r, p, e));
    set_tics(p);
    TRY(draw_unfit(p, e));
    for (size_t i = 0; i < p->n_bars; i++) draw_bar(p, i);
    draw_capacities(p);
    return ERR_OK;
}
