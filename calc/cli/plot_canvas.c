#include "calc/cli/plot_canvas.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"

/* Advances of ' ' to '~' in DejaVu Sans, hundredths of the font size. */
static const unsigned char advances[95] = {32, 41, 46, 84, 64, 95, 78, 28, 39, 39, 50, 84, 32, 37, 32, 34, 64, 64, 64,
                                           64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54, 99, 69, 69, 70, 77, 64,
                                           58, 78, 76, 30, 30, 66, 56, 87, 75, 79, 61, 79, 70, 64, 62, 74, 69, 99, 69,
                                           62, 69, 39, 34, 39, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64, 64, 28, 28, 58,
                                           28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84};

/* Font sizes in pixels; overlay.gp is given them as font_small, font_normal, font_title. */
static const double font_px[] = {[PLOT_SMALL] = 11.5, [PLOT_NORMAL] = 13, [PLOT_TITLE] = 16.5};

enum err_code plot_canvas_file(struct plot_canvas *c, const char *name, const char *header, struct out **out,
                               struct err *e)
{
    if (c->n_files == PLOT_FILES_MAX) return err_set(e, ERR_RANGE, "a picture of more than %d files", PLOT_FILES_MAX);
    struct out *o = NULL;
    TRY(out_memory(c->arena, &o, e));
    out_str(o, header);
    c->files[c->n_files++] = (struct plot_file){.name = name, .out = o};
    *out = o;
    return ERR_OK;
}

enum err_code plot_canvas_open(struct arena *a, bool dumb, struct plot_canvas *c, struct err *e)
{
    *c = (struct plot_canvas){
        .arena = a, .dumb = dumb, .width = dumb ? 78 : 900, .height = dumb ? 23 : 600, .row = dumb ? 1 : 17};
    TRY(plot_canvas_file(c, "settings.gp", "", &c->settings, e));
    TRY(plot_canvas_file(c, "texts.tsv", "x\ty\tlook\trgb\tlabel\n", &c->texts, e));
    TRY(plot_canvas_file(c, "strokes.tsv", "x\ty\tdx\tdy\tlook\n", &c->strokes, e));
    TRY(plot_canvas_file(c, "marks.tsv", "x\ty\tpoint\trgb\n", &c->marks, e));
    TRY(plot_canvas_file(c, "boxes.tsv", "x0\ty0\tx1\ty1\tlook\n", &c->boxes, e));
    plot_canvas_set(c, "width", c->width);
    plot_canvas_set(c, "height", c->height);
    plot_canvas_set(c, "small_px", font_px[PLOT_SMALL]);
    plot_canvas_set(c, "normal_px", font_px[PLOT_NORMAL]);
    plot_canvas_set(c, "title_px", font_px[PLOT_TITLE]);
    return ERR_OK;
}

void plot_canvas_set(struct plot_canvas *c, const char *name, double value)
{
    /* a form with a point: gnuplot divides integers as integers */
    out_printf(c->settings, "%s = %.15e\n", name, value);
}

void plot_canvas_panel(struct plot_canvas *c, const char *prefix, const struct plot_panel *p)
{
    const struct {
        const char *name;
        double value;
    } set[] = {{"left", p->place.x0 / c->width},
               {"right", p->place.x1 / c->width},
               {"bottom", p->place.y0 / c->height},
               {"top", p->place.y1 / c->height},
               {"x0", p->range.x0},
               {"x1", p->range.x1},
               {"y0", p->range.y0},
               {"y1", p->range.y1},
               {"log_x", p->log_x ? 1 : 0},
               {"log_y", p->log_y ? 1 : 0}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        out_printf(c->settings, "%s_%s = %.15e\n", prefix, set[i].name, set[i].value);
}

/* Part of the way from a to b at which v lies. */
static double part(double v, double a, double b, bool logarithmic)
{
    return logarithmic ? log(v / a) / log(b / a) : (v - a) / (b - a);
}

double plot_panel_x(const struct plot_panel *p, double x)
{
    return p->place.x0 + part(x, p->range.x0, p->range.x1, p->log_x) * (p->place.x1 - p->place.x0);
}

double plot_panel_y(const struct plot_panel *p, double y)
{
    return p->place.y0 + part(y, p->range.y0, p->range.y1, p->log_y) * (p->place.y1 - p->place.y0);
}

/* -- text -- */

/* Width of the character at s in the units of the canvas; its bytes to *n. */
static double char_wide(const struct plot_canvas *c, const char *s, size_t len, enum plot_size size, size_t *n)
{
    *n = text_utf8_len(s, len, NULL);
    if (*n == 0) *n = 1;
    const unsigned char ch = (unsigned char)*s;
    if (c->dumb) return (double)text_width(s, *n);
    /* 3 % for advances rounded to whole pixels */
    if (ch >= ' ' && ch <= '~') return 1.03 * font_px[size] * advances[ch - ' '] / 100;
    return 1.03 * font_px[size] * (text_width(s, *n) > 1 ? 1.05 : 0.75);
}

double plot_text_wide(const struct plot_canvas *c, const char *text, enum plot_size size)
{
    double sum = 0;
    for (size_t i = 0, n = 0, len = strlen(text); i < len; i += n) sum += char_wide(c, text + i, len - i, size, &n);
    return sum;
}

const char *plot_text_fit(const struct plot_canvas *c, char out[PLOT_TEXT_MAX], const char *text, enum plot_size size,
                          double width)
{
    const size_t len = strlen(text);
    if (len < PLOT_TEXT_MAX && plot_text_wide(c, text, size) <= width) {
        memcpy(out, text, len + 1);
        return out;
    }
    const double half = (width - plot_text_wide(c, "...", size)) / 2;
    size_t head = 0, n = 0;
    for (double sum = 0; head < len && head < PLOT_TEXT_MAX / 2 - 8; head += n) {
        sum += char_wide(c, text + head, len - head, size, &n);
        if (sum > half) break;
    }
    size_t tail = len;
    for (double sum = 0; tail > head && len - tail < PLOT_TEXT_MAX / 2 - 8;) {
        size_t start = tail - 1;
        while (start > head && ((unsigned char)text[start] & 0xC0) == 0x80) start--;
        sum += char_wide(c, text + start, len - start, size, &n);
        if (sum > half) break;
        tail = start;
    }
    (void)snprintf(out, PLOT_TEXT_MAX, "%.*s...%s", (int)head, text, text + tail);
    return out;
}

void plot_text_put(struct out *o, const char *text)
{
    for (size_t i = 0, len = strlen(text); i < len;) {
        uint32_t code = 0;
        const size_t n = text_utf8_len(text + i, len - i, &code);
        if (n == 0)
            out_char(o, '?');
        else if (code == '\n' || code == '\t')
            out_char(o, ' ');
        else if (code == '"')
            out_str(o, "\xE2\x80\x9D"); /* U+201D, closing quote */
        else if (code == '\\')
            out_str(o, "\xE2\x88\x96"); /* U+2216, set minus */
        else if (!text_is_hostile(code))
            out_write(o, text + i, n);
        i += n ? n : 1;
    }
}

void plot_canvas_text_rgb(struct plot_canvas *c, double x, double y, enum plot_size size, enum plot_align align,
                          unsigned rgb, const char *text)
{
    if (!*text) return;
    if (c->dumb) { /* gnuplot rounds halves its own way */
        const double wide = plot_text_wide(c, text, size);
        x = floor((align == PLOT_LEFT ? x : align == PLOT_CENTER ? x - wide / 2 : x - wide + 1) + 0.5);
        y = floor(y + 0.5);
        align = PLOT_LEFT;
    }
    out_printf(c->texts, "%.3f\t%.3f\t%d\t%u\t\"", x, y, 3 * (int)size + (int)align, rgb);
    plot_text_put(c->texts, text);
    out_str(c->texts, "\"\n");
}

void plot_canvas_text(struct plot_canvas *c, double x, double y, enum plot_size size, enum plot_align align,
                      const char *text)
{
    plot_canvas_text_rgb(c, x, y, size, align, 0, text);
}

/* -- figures -- */

void plot_canvas_stroke(struct plot_canvas *c, double x0, double y0, double x1, double y1, int stroke)
{
    out_printf(c->strokes, "%.3f\t%.3f\t%.3f\t%.3f\t%d\n", x0, y0, x1 - x0, y1 - y0, stroke);
}

void plot_canvas_mark(struct plot_canvas *c, double x, double y, int point, unsigned rgb)
{
    if (c->dumb) { /* over the characters of boxes, which are texts there */
        const char letter[] = {(char)('A' + point - 1), '\0'};
        plot_canvas_text(c, x, y, PLOT_SMALL, PLOT_LEFT, letter);
        return;
    }
    out_printf(c->marks, "%.3f\t%.3f\t%d\t%u\n", x, y, point, rgb);
}

/* What a filled character cell looks like. */
static const char fill_chars[PLOT_FILLS_END] = {[PLOT_WEIGHTS] = '#',    [PLOT_KV] = '/',    [PLOT_STATE] = '%',
                                                [PLOT_ACTIVATION] = '.', [PLOT_OTHER] = '+', [PLOT_UNFIT] = ':'};

void plot_canvas_box(struct plot_canvas *c, const struct plot_box *b, enum plot_fill fill)
{
    if (!c->dumb) {
        out_printf(c->boxes, "%.3f\t%.3f\t%.3f\t%.3f\t%d\n", b->x0, b->y0, b->x1, b->y1, (int)fill);
        return;
    }
    char cells[80];
    const double n = fmin(floor(b->x1 + 0.5) - floor(b->x0 + 0.5), 79);
    if (!(n >= 1)) return;
    memset(cells, fill_chars[fill], (size_t)n);
    cells[(size_t)n] = '\0';
    for (double y = floor(b->y0 + 0.5); y < floor(b->y1 + 0.5); y++)
        plot_canvas_text(c, floor(b->x0 + 0.5), y, PLOT_SMALL, PLOT_LEFT, cells);
}

int plot_series_point(const struct plot_canvas *c, size_t i)
{
    /* filled and open shapes by turns: circle, square, triangle, down, diamond, pentagon */
    static const int points[PLOT_SERIES_MAX] = {7, 4, 9, 10, 13, 14, 6, 5, 8, 11, 12, 15};
    return c->dumb ? (int)i : points[(i - 1) % PLOT_SERIES_MAX];
}

unsigned plot_series_rgb(size_t i)
{
    /* Okabe and Ito (2008), without the yellow, which is lost on white */
    static const unsigned rgb[] = {0x0072B2, 0xD55E00, 0x000000, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9};
    return rgb[(i - 1) % (sizeof rgb / sizeof rgb[0])];
}

/* Centred text, on two lines when one is not enough. Returns the y of the line after. */
static double put_wrapped(struct plot_canvas *c, const char *text, enum plot_size size, double y, double line)
{
    char cut[PLOT_TEXT_MAX];
    const double wide = c->width - 2 * (c->dumb ? 0 : 14);
    size_t split = 0;
    double sum = 0;
    for (size_t i = 0, n = 0, len = strlen(text); i < len && sum <= wide; i += n) {
        sum += char_wide(c, text + i, len - i, size, &n);
        if (text[i] == ' ' && sum <= wide) split = i;
    }
    if (sum > wide && split > 0 && split < PLOT_TEXT_MAX) {
        memcpy(cut, text, split);
        cut[split] = '\0';
        plot_canvas_text(c, c->width / 2, y, size, PLOT_CENTER, cut);
        text += split + 1;
        y -= line;
    }
    plot_canvas_text(c, c->width / 2, y, size, PLOT_CENTER, plot_text_fit(c, cut, text, size, wide));
    return y - line;
}

double plot_canvas_head(struct plot_canvas *c, const char *title, const char *subtitle)
{
    double y = c->height - (c->dumb ? 0 : 20);
    if (title && *title) y = put_wrapped(c, title, PLOT_TITLE, y, c->dumb ? 1 : 22);
    if (subtitle && *subtitle) y = put_wrapped(c, subtitle, PLOT_NORMAL, y, c->dumb ? 1 : 21);
    return y;
}

double plot_margin_wide(const struct plot_canvas *c, const struct plot_margin *names, size_t n)
{
    double wide = c->dumb ? 1 : 20;
    for (size_t i = 0; i < n; i++) {
        const double text =
            fmax(plot_text_wide(c, names[i].first, PLOT_SMALL), plot_text_wide(c, names[i].then, PLOT_SMALL));
        wide = fmax(wide, text + (c->dumb ? 2 : 18));
    }
    return floor(fmin(wide, c->width / (c->dumb ? 3.5 : 5)));
}

void plot_canvas_margin(struct plot_canvas *c, double x, const struct plot_margin *names, size_t n)
{
    const double line = c->dumb ? 1 : 14, left = x + (c->dumb ? 1 : 10), room = c->width - left - (c->dumb ? -1 : 4);
    double last = -HUGE_VAL;
    bool done[PLOT_MARGIN_MAX] = {false};
    for (size_t k = 0; k < n && k < PLOT_MARGIN_MAX; k++) {
        size_t i = n;
        for (size_t j = 0; j < n && j < PLOT_MARGIN_MAX; j++)
            if (!done[j] && (i == n || names[j].y < names[i].y)) i = j;
        done[i] = true;
        const double y = c->dumb ? floor(names[i].y + 0.5) : names[i].y,
                     at = fmax(y, last + (c->dumb ? 2 : 2.2) * line);
        last = c->dumb ? floor(at) : at;
        if (!c->dumb && at > y + 1) plot_canvas_stroke(c, x + 1, y, left - 2, at, PLOT_STROKE_LEADER);
        char cut[PLOT_TEXT_MAX];
        plot_canvas_text(c, left, last, PLOT_SMALL, PLOT_LEFT, plot_text_fit(c, cut, names[i].first, PLOT_SMALL, room));
        plot_canvas_text(c, left, last - line, PLOT_SMALL, PLOT_LEFT,
                         plot_text_fit(c, cut, names[i].then, PLOT_SMALL, room));
    }
}

/* The sample in front of an entry, `wide` units from x. */
static void draw_sample(struct plot_canvas *c, const struct plot_entry *s, double x, double y, double wide)
{
    if (s->stroke && !c->dumb) plot_canvas_stroke(c, x, y, x + wide, y, s->stroke);
    if (s->point) plot_canvas_mark(c, x + wide / 2, y, s->point, s->rgb);
    if (s->fill) {
        const double up = c->dumb ? 0.5 : 6;
        plot_canvas_box(c, &(struct plot_box){x, y - (c->dumb ? 0 : up), x + wide, y + up}, s->fill);
    }
}

static double widest_entry(const struct plot_canvas *c, const struct plot_entry *entries, size_t n, enum plot_size size)
{
    double wide = 0;
    for (size_t i = 0; i < n; i++) wide = fmax(wide, plot_text_wide(c, entries[i].text, size));
    return wide;
}

double plot_canvas_legend(struct plot_canvas *c, const struct plot_entry *entries, size_t n, double y)
{
    if (!n) return y;
    bool lines = false;
    for (size_t i = 0; i < n; i++) lines = lines || entries[i].stroke;
    const double sample = c->dumb ? 2 : lines ? 46 : 22, gap = c->dumb ? 1 : 7, between = c->dumb ? 3 : 24;
    const double room = c->width - 2 * (c->dumb ? 0 : 20);
    double wide = widest_entry(c, entries, n, PLOT_NORMAL), high = c->row;
    enum plot_size size = PLOT_NORMAL;
    /* more than 6 lines: smaller ones, rather than names cut where they differ; characters have one size only */
    const double half = room / 2 - sample - gap - between;
    if (n > 6 && wide > half && c->dumb) wide = half;
    if (n > 6 && wide > half) {
        size = PLOT_SMALL;
        wide = widest_entry(c, entries, n, size);
        high = 14;
    }
    wide = fmin(wide, room - sample - gap);
    const double cell = sample + gap + wide;
    size_t columns = (size_t)fmax(1, floor((room + between) / (cell + between)));
    if (columns > n) columns = n;
    const size_t rows = (n + columns - 1) / columns;
    columns = (n + rows - 1) / rows;
    const double x0 = (c->width - (double)columns * (cell + between) + between) / 2;
    for (size_t i = 0; i < n; i++) {
        const double x = (c->dumb ? floor(x0) : x0) + (double)(i / rows) * (cell + between);
        const double line = y - (double)(i % rows) * high;
        char cut[PLOT_TEXT_MAX];
        draw_sample(c, &entries[i], x, line, sample);
        plot_canvas_text(c, x + sample + gap, line, size, PLOT_LEFT,
                         plot_text_fit(c, cut, entries[i].text, size, wide));
    }
    return y - (double)rows * high - (c->row - high);
}
