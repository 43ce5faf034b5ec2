#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/units.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_kinds.h"
#include "calc/cli/plot_label.h"
#include "calc/cli/plot_names.h"
#include "calc/cli/plot_ops.h"
#include "calc/cli/plot_rows.h"

enum { LABELS_MAX = 80, CANDIDATES_MAX = 64, SCENE_FIXED_MAX = PLOT_CEILINGS_MAX + 2 };

/* Line looks of plots/roofline.gp. */
enum { ROOF_FIRST = 40, ROOF_OTHER = 41, ROOF_OTHER_N = 3, ROOF_RIDGE = 44 };

struct place {
    double x, y;   /* of an operator, on the canvas */
    bool labelled; /* by its own label or that of a neighbour */
};

struct picture {
    struct plot_canvas *canvas;
    struct plot_ops data;
    struct place *places; /* [data.n_ops] */
    struct plot_panel panel;
    struct plot_margin names[PLOT_CEILINGS_MAX];                                        /* of the ceilings */
    struct plot_box strokes[2 * PLOT_CEILINGS_MAX + 1], fixed[SCENE_FIXED_MAX], *marks; /* marks as places */
    size_t n_strokes, n_fixed;
};

/* -- axes -- */

static void choose_range(struct picture *p)
{
    double x0 = HUGE_VAL, x1 = 0, y0 = HUGE_VAL, y1 = 0;
    for (size_t i = 0; i < p->data.n_ops; i++) {
        x0 = fmin(x0, p->data.ops[i].intensity_flops_per_byte);
        x1 = fmax(x1, p->data.ops[i].intensity_flops_per_byte);
        y0 = fmin(y0, p->data.ops[i].rate_flops_per_s);
        y1 = fmax(y1, p->data.ops[i].rate_flops_per_s);
    }
    for (size_t i = 0; i < p->data.n_ceilings; i++) {
        x0 = fmin(x0, plot_ops_ridge(&p->data.ceilings[i]) / 30);
        x1 = fmax(x1, plot_ops_ridge(&p->data.ceilings[i]) * 8);
        y0 = fmin(y0, p->data.ceilings[i].peak_flops_per_s / 30);
        y1 = fmax(y1, p->data.ceilings[i].peak_flops_per_s);
    }
    p->panel.range = (struct plot_box){x0 / 3, y0 / 3, x1 * 3, y1 * 6};
    p->panel.log_x = p->panel.log_y = true;
}

static struct plot_box stroke_on_canvas(const struct plot_panel *f, const struct plot_box *data)
{
    return (struct plot_box){plot_panel_x(f, data->x0), plot_panel_y(f, data->y0), plot_panel_x(f, data->x1),
                             plot_panel_y(f, data->y1)};
}

static void add_roof(struct picture *p, struct out *o, struct plot_box data, int look)
{
    out_printf(o, "%.9e\t%.9e\t%.9e\t%.9e\t%d\n", data.x0, data.y0, data.x1, data.y1, look);
    p->strokes[p->n_strokes++] = stroke_on_canvas(&p->panel, &data);
}

/* The memory roof up to its highest ceiling, for every bandwidth there is; the ceilings; the first one's ridge. */
static enum err_code draw_roofs(struct picture *p, struct err *e)
{
    struct out *o = NULL;
    TRY(plot_canvas_file(p->canvas, "roofs.tsv",
                         "intensity_flops_per_byte\trate_flops_per_s\tto_intensity\tto_rate\tlook\n", &o, e));
    const struct plot_box *r = &p->panel.range;
    for (size_t i = 0; i < p->data.n_ceilings; i++) {
        const struct plot_ceiling *c = &p->data.ceilings[i];
        bool highest = true;
        for (size_t j = 0; j < p->data.n_ceilings; j++) {
            const bool same = fabs(log(p->data.ceilings[j].bandwidth_bytes_per_s / c->bandwidth_bytes_per_s)) < 1e-3;
            if (same && p->data.ceilings[j].peak_flops_per_s > c->peak_flops_per_s) highest = false;
        }
        const int look = i == 0 ? ROOF_FIRST : ROOF_OTHER + (int)((i - 1) % ROOF_OTHER_N);
        const double b = c->bandwidth_bytes_per_s, x0 = fmax(r->x0, r->y0 / b);
        if (highest) add_roof(p, o, (struct plot_box){x0, x0 * b, plot_ops_ridge(c), c->peak_flops_per_s}, ROOF_FIRST);
        add_roof(p, o, (struct plot_box){plot_ops_ridge(c), c->peak_flops_per_s, r->x1, c->peak_flops_per_s}, look);
    }
    const double ridge = plot_ops_ridge(&p->data.ceilings[0]);
    add_roof(p, o, (struct plot_box){ridge, r->y0, ridge, p->data.ceilings[0].peak_flops_per_s}, ROOF_RIDGE);
    return ERR_OK;
}

static const struct {
    int point;
    unsigned rgb, text_rgb; /* text in a darker shade */
} phase_looks[PLOT_PHASES_MAX] = {
    {5, 0x0072B2, 0x00507D}, {6, 0xD55E00, 0x963F00}, {9, 0x009E73, 0x00664A}, {12, 0, 0}};

/* Filled square and open circle go to prefill and decode whatever the order of the rows. */
static size_t phase_look(const struct picture *p, size_t phase)
{
    if (strcmp(p->data.phases[phase], "prefill") == 0) return 0;
    if (strcmp(p->data.phases[phase], "decode") == 0) return 1;
    return phase < 2 ? phase + 2 : phase;
}

static int phase_point(const struct picture *p, size_t phase)
{
    if (!p->canvas->dumb) return phase_looks[phase_look(p, phase)].point;
    const char ch = p->data.phases[phase][0]; /* types 1 to 26 are letters there: P and D */
    return ch >= 'a' && ch <= 'z' ? ch - 'a' + 1 : 24;
}

static enum err_code draw_points(struct picture *p, struct err *e)
{
    struct out *o = NULL;
    TRY(plot_canvas_file(p->canvas, "points.tsv", "intensity_flops_per_byte\trate_flops_per_s\tpoint\trgb\n", &o, e));
    p->marks = arena_array(p->canvas->arena, p->data.n_ops, sizeof *p->marks);
    p->places = arena_array(p->canvas->arena, p->data.n_ops, sizeof *p->places);
    if (!p->marks || !p->places) return err_nomem(e);
    const double r = p->canvas->dumb ? 0.5 : 6;
    for (size_t i = 0; i < p->data.n_ops; i++) {
        const struct plot_op *op = &p->data.ops[i];
        struct place *at = &p->places[i];
        out_printf(o, "%.9e\t%.9e\t%d\t%u\n", op->intensity_flops_per_byte, op->rate_flops_per_s,
                   phase_point(p, op->phase), phase_looks[phase_look(p, op->phase)].rgb);
        at->x = plot_panel_x(&p->panel, op->intensity_flops_per_byte);
        at->y = plot_panel_y(&p->panel, op->rate_flops_per_s);
        p->marks[i] = (struct plot_box){at->x - r, at->y - r, at->x + r, at->y + r};
    }
    return ERR_OK;
}

/* -- labels -- */

static struct plot_scene scene_of(const struct picture *p)
{
    enum { TIC_PX = 12 }; /* tics stand inside of the axes */
    struct plot_box frame = p->panel.place;
    frame.x0 += p->canvas->dumb ? 1 : TIC_PX; /* the axis itself takes a column */
    frame.y0 += p->canvas->dumb ? 0 : TIC_PX;
    return (struct plot_scene){.frame = frame,
                               .boxes = p->fixed,
                               .n_boxes = p->n_fixed,
                               .marks = p->marks,
                               .n_marks = p->data.n_ops,
                               .strokes = p->strokes,
                               .n_strokes = p->n_strokes,
                               .cells = p->canvas->dumb};
}

/* Put a text at the first clear place along a line: ending there, above or below it; else right or left of it. */
static void fix_label(struct picture *p, const char *text, struct plot_box along, bool above)
{
    struct plot_canvas *c = p->canvas;
    struct plot_box candidates[CANDIDATES_MAX];
    const double wide = plot_text_wide(c, text, PLOT_SMALL), high = c->dumb ? 1 : 14, gap = c->dumb ? 0.6 : 7;
    for (size_t i = 0; i < CANDIDATES_MAX; i++) {
        const double t = (double)(i / 2) / (CANDIDATES_MAX / 2 - 1);
        const bool flip = i % 2 == 1;
        const double x = along.x0 + t * (along.x1 - along.x0), y = along.y0 + t * (along.y1 - along.y0);
        struct plot_box b = above ? (struct plot_box){x - wide, flip ? y - gap - high : y + gap, x, 0}
                                  : (struct plot_box){flip ? x - 2 * gap - wide : x + 2 * gap, y, 0, 0};
        if (c->dumb) b = (struct plot_box){floor(b.x0 + 0.5), floor(b.y0 + 0.5) + (above ? 0.5 : -0.5), 0, 0};
        candidates[i] = (struct plot_box){b.x0, b.y0, b.x0 + wide, b.y0 + high};
    }
    const struct plot_scene scene = scene_of(p);
    const size_t pick = plot_label_clear(&scene, candidates, CANDIDATES_MAX);
    if (pick == CANDIDATES_MAX || p->n_fixed == SCENE_FIXED_MAX) return;
    const struct plot_box *b = &candidates[pick];
    p->fixed[p->n_fixed++] = *b;
    plot_canvas_text(c, b->x0, (b->y0 + b->y1) / 2, PLOT_SMALL, PLOT_LEFT, text);
}

static enum err_code label_roofs(struct picture *p, struct err *e)
{
    struct arena *a = p->canvas->arena;
    const struct plot_box *f = &p->panel.place;
    const double ridge = plot_ops_ridge(&p->data.ceilings[0]), edge = p->canvas->dumb ? 1 : 13;
    char number[UNITS_TEXT_MAX];
    char *text = arena_printf(a, "ridge %s flops/byte", units_format_plain(number, ridge < 100 ? ridge : round(ridge)));
    if (!text) return err_nomem(e);
    const double x = plot_panel_x(&p->panel, ridge);
    fix_label(p, text, (struct plot_box){x, f->y0 + edge, x, f->y1}, false);
    for (size_t i = 0; i < p->n_strokes; i++) {
        const struct plot_box s = p->strokes[i];
        if (fabs(s.x1 - s.x0) < 1 || fabs(s.y1 - s.y0) < 1) continue; /* the memory roofs are what slopes */
        text = NULL;
        for (size_t j = 0; j < p->data.n_ceilings && !text; j++) {
            const struct plot_ceiling *c = &p->data.ceilings[j];
            if (fabs(plot_panel_x(&p->panel, plot_ops_ridge(c)) - s.x1) > 0.01) continue;
            text = arena_printf(a, "memory %s", units_format(number, UNITS_BYTES_PER_S, c->bandwidth_bytes_per_s));
        }
        if (!text) return err_nomem(e);
        fix_label(p, text, (struct plot_box){s.x0 + 0.25 * (s.x1 - s.x0), s.y0 + 0.25 * (s.y1 - s.y0), s.x1, s.y1},
                  true);
    }
    return ERR_OK;
}

/* Whether an operator of another phase lies so near to i that its marker does not tell whose a label is. */
static bool ambiguous(const struct picture *p, size_t i)
{
    const double near = p->canvas->dumb ? 2 : 18;
    for (size_t j = 0; j < p->data.n_ops; j++)
        if (p->data.ops[j].phase != p->data.ops[i].phase && fabs(p->places[j].x - p->places[i].x) < near &&
            fabs(p->places[j].y - p->places[i].y) < near)
            return true;
    return false;
}

/* One label for the operators of a phase that lie where i does. */
static enum err_code gather(struct picture *p, size_t i, const char **names, struct plot_label *l, const char **text,
                            struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const double near_x = c->dumb ? 1.5 : 11, near_y = c->dumb ? 0.6 : 9;
    size_t n = 0;
    double share = 0, sum_x = 0, sum_y = 0;
    for (size_t j = i; j < p->data.n_ops; j++) {
        const struct plot_op *o = &p->data.ops[j];
        struct place *at = &p->places[j];
        if (at->labelled || o->phase != p->data.ops[i].phase) continue;
        if (fabs(at->x - p->places[i].x) > near_x || fabs(at->y - p->places[i].y) > near_y) continue;
        at->labelled = true;
        names[n++] = o->name;
        share += o->share_frac;
        sum_x += at->x;
        sum_y += at->y;
    }
    char *joined = plot_names_join(c->arena, names, n, c->dumb ? 18 : 34), cut[PLOT_TEXT_MAX];
    if (!joined) return err_nomem(e);
    plot_text_fit(c, cut, joined, PLOT_SMALL, c->dumb ? 26 : 290);
    const char *which =
        ambiguous(p, i) && *p->data.phases[p->data.ops[i].phase] ? p->data.phases[p->data.ops[i].phase] : NULL;
    char *label = arena_printf(c->arena, share >= 0.005 ? "%s %.0f%%" : "%s", cut, 100 * share);
    if (label && which) label = arena_printf(c->arena, "%s (%s)", label, which);
    *text = label;
    if (!*text) return err_nomem(e);
    *l = (struct plot_label){.x = sum_x / (double)n,
                             .y = sum_y / (double)n,
                             .width = plot_text_wide(c, *text, PLOT_SMALL) + (c->dumb ? 1 : 0),
                             .height = c->dumb ? 1 : 14,
                             .weight = share};
    return ERR_OK;
}

/* Returns through *n_left how many labels found no room. */
static enum err_code label_points(struct picture *p, size_t *n_left, struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const char **names = arena_array(c->arena, p->data.n_ops, sizeof *names);
    const char **texts = arena_array(c->arena, p->data.n_ops, sizeof *texts);
    size_t *phases = arena_array(c->arena, p->data.n_ops, sizeof *phases);
    struct plot_label *labels = arena_array(c->arena, p->data.n_ops, sizeof *labels);
    if (!names || !texts || !phases || !labels) return err_nomem(e);
    size_t n = 0;
    for (size_t i = 0; i < p->data.n_ops; i++)
        if (!p->places[i].labelled) {
            TRY(gather(p, i, names, &labels[n], &texts[n], e));
            phases[n++] = p->data.ops[i].phase;
        }
    for (size_t i = 0; n > LABELS_MAX && i < LABELS_MAX; i++) { /* the heaviest to the front */
        size_t most = i;
        for (size_t j = i + 1; j < n; j++)
            if (labels[j].weight > labels[most].weight) most = j;
        const struct plot_label label = labels[i];
        const char *text = texts[i];
        const size_t phase = phases[i];
        labels[i] = labels[most];
        texts[i] = texts[most];
        phases[i] = phases[most];
        labels[most] = label;
        texts[most] = text;
        phases[most] = phase;
    }
    const struct plot_scene scene = scene_of(p);
    plot_label_place(&scene, labels, n < LABELS_MAX ? n : LABELS_MAX);
    *n_left = 0;
    for (size_t i = 0; i < n; i++) {
        const struct plot_label *l = &labels[i];
        if (!l->shown) {
            (*n_left)++;
            continue;
        }
        if (l->leader) plot_canvas_stroke(c, l->x, l->y, l->leader_x, l->leader_y, PLOT_STROKE_LEADER);
        plot_canvas_text_rgb(c, l->box.x0, (l->box.y0 + l->box.y1) / 2, PLOT_SMALL, PLOT_LEFT,
                             phase_looks[phase_look(p, phases[i])].text_rgb, texts[i]);
    }
    return ERR_OK;
}

/* -- all of it -- */

/* What the rows of a roofline may not differ in. */
static enum err_code one_only(const struct plot_csv *csv, struct err *e)
{
    static const struct {
        const char *key, *name;
    } one[] = {{"model", "model"},     {"hardware", "hardware"},      {"gpus", "number of GPUs"},
               {"tp", "degree of TP"}, {"weights", "weights format"}, {"kv", "KV format"}};
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
        if (!plot_rows_alike(csv, one[i].key))
            return err_set(e, ERR_USAGE, "a roofline shows one %s, the rows have several", one[i].name);
    return ERR_OK;
}

static enum err_code name_ceilings(struct picture *p, struct err *e)
{
    struct arena *a = p->canvas->arena;
    for (size_t i = 0; i < p->data.n_ceilings; i++) {
        const struct plot_ceiling *c = &p->data.ceilings[i];
        const double ridge = plot_ops_ridge(c);
        char number[UNITS_TEXT_MAX];
        p->names[i].first = arena_printf(a, "%s", units_format(number, UNITS_FLOPS_PER_S, c->peak_flops_per_s));
        p->names[i].then = arena_printf(a, i ? "%s, ridge %s" : "%s", c->dtypes,
                                        units_format_plain(number, ridge < 100 ? ridge : round(ridge)));
        if (!p->names[i].first || !p->names[i].then) return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code draw_frame(const struct plot_request *r, const struct plot_csv *csv, struct picture *p,
                                struct err *e)
{
    struct plot_canvas *c = p->canvas;
    const char *shared = r->subtitle;
    const struct plot_rows rows = plot_rows_look(csv);
    if (!shared) TRY(plot_rows_shared(c->arena, &rows, &shared, e));
    double y = plot_canvas_head(c, r->title, shared);
    struct plot_entry entries[PLOT_PHASES_MAX];
    for (size_t i = 0; i < p->data.n_phases; i++)
        entries[i] = (struct plot_entry){.text = *p->data.phases[i] ? p->data.phases[i] : "operator",
                                         .point = phase_point(p, i),
                                         .rgb = phase_looks[phase_look(p, i)].rgb};
    y = plot_canvas_legend(c, entries, p->data.n_phases, y);
    char caption[PLOT_TEXT_MAX];
    (void)snprintf(caption, sizeof caption, "%sFLOP/s%s", c->dumb ? "" : "attainable ",
                   plot_rows_any_gpus(csv) ? " per GPU" : "");
    plot_canvas_text(c, c->dumb ? 0 : 14, y, PLOT_NORMAL, PLOT_LEFT, caption);
    TRY(name_ceilings(p, e));
    const double right = c->width - plot_margin_wide(c, p->names, p->data.n_ceilings);
    p->panel.place = c->dumb ? (struct plot_box){6, 2, right, y - 1} : (struct plot_box){104, 62, right, y - 14};
    plot_canvas_text(c, (p->panel.place.x0 + p->panel.place.x1) / 2, c->dumb ? 0 : 24, PLOT_NORMAL, PLOT_CENTER,
                     "arithmetic intensity (flops/byte)");
    choose_range(p);
    plot_canvas_panel(c, "main", &p->panel);
    for (size_t i = 0; i < p->data.n_ceilings; i++)
        p->names[i].y = plot_panel_y(&p->panel, p->data.ceilings[i].peak_flops_per_s);
    plot_canvas_margin(c, right, p->names, p->data.n_ceilings);
    return ERR_OK;
}

static void draw_note(const struct picture *p, size_t n_left)
{
    char note[PLOT_TEXT_MAX] = "";
    size_t used = 0;
    if (p->data.any_share) used += (size_t)snprintf(note, sizeof note, "%%: share of the phase's time. ");
    if (p->data.n_without_flops)
        used += (size_t)snprintf(note + used, sizeof note - used, "%zu operators without flops not shown. ",
                                 p->data.n_without_flops);
    if (n_left) (void)snprintf(note + used, sizeof note - used, "%zu points unlabelled.", n_left);
    struct plot_canvas *c = p->canvas;
    if (!c->dumb) plot_canvas_text(c, c->width - 14, 9, PLOT_SMALL, PLOT_RIGHT, note);
}

enum err_code plot_roofline_build(const struct plot_request *r, struct plot_canvas *c, struct err *e)
{
    struct plot_csv csv;
    struct picture *p = arena_alloc(c->arena, sizeof *p);
    if (!p) return err_nomem(e);
    p->canvas = c;
    TRY(plot_csv_parse(c->arena, "roofline", r->csv, &csv, e));
    TRY(one_only(&csv, e));
    TRY(plot_ops_read(c->arena, &csv, r->ceilings_csv, &p->data, e));
    TRY(draw_frame(r, &csv, p, e));
    TRY(draw_roofs(p, e));
    TRY(draw_points(p, e));
    TRY(label_roofs(p, e));
    size_t n_left = 0;
    TRY(label_points(p, &n_left, e));
    draw_note(p, n_left);
    return ERR_OK;
}
