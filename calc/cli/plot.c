#include "calc/cli/plot.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calc/base/embed.h"
#include "calc/base/out.h"
#include "calc/base/text.h"
#include "calc/cli/plot_canvas.h"
#include "calc/cli/plot_gnuplot.h"
#include "calc/cli/plot_kinds.h"

struct kind {
    const char *name, *script;
    enum err_code (*build)(const struct plot_request *r, struct plot_canvas *c, struct err *e);
};

static const struct kind kinds[] = {
    {"roofline", "plots/roofline.gp", plot_roofline_build}, {"batch", "plots/batch.gp", plot_batch_build},
    {"memory", "plots/memory.gp", plot_memory_build},       {"scatter", "plots/scatter.gp", plot_scatter_build},
    {"timeline", "plots/timeline.gp", plot_timeline_build}, {"charts", "plots/charts.gp", plot_charts_build},
};

/* 900x600 pixels each; noenhanced: "_" and "^" in names are characters. */
struct form {
    const char *ending;      /* of the file name; "-" for the terminal */
    const char *terminal;    /* gnuplot's, completed by the script */
    double points_per_pixel; /* font sizes in this terminal */
};

static const struct form forms[] = {
    {".png", "set terminal pngcairo noenhanced size 900,600 background '#ffffff' font 'sans-serif,9.75'", 0.75},
    {".svg", "set terminal svg noenhanced name 'ridge' size 900,600 background '#ffffff' font 'sans-serif,13'", 1},
    {".pdf",
     "set terminal pdfcairo noenhanced size 9in,6in background '#ffffff' font 'sans-serif,13.6' pointscale 0.75", 1.05},
    {"-", "set terminal dumb noenhanced mono size 79,24", 1},
};

enum { FORM_DUMB = 3, SHARED_N = 2 };
static const char *const shared[SHARED_N] = {"plots/style.gp", "plots/overlay.gp"};

static const struct form *find_form(const char *output)
{
    if (strcmp(output, "-") == 0) return &forms[FORM_DUMB];
    const char *slash = strrchr(output, '/'), *name = slash ? slash + 1 : output, *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < FORM_DUMB; i++)
        if (strcasecmp(dot, forms[i].ending) == 0) return &forms[i];
    return NULL;
}

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

enum err_code plot_check(const char *kind, const char *output, struct err *e)
{
    char clean[200];
    if (!find_kind(kind))
        return err_set(e, ERR_USAGE, "no plot \"%s\"; there are roofline, batch and memory",
                       text_clean(clean, sizeof clean, kind, strlen(kind)));
    if (!find_form(output))
        return err_set(e, ERR_USAGE, "--plot %s: wanted a file ending .png, .svg or .pdf, or - for the terminal",
                       text_clean(clean, sizeof clean, output, strlen(output)));
    return ERR_OK;
}

static enum err_code add_script(struct plot_source *files, size_t *n, const char *path, struct err *e)
{
    const struct embed_file *f = embed_find(path);
    if (!f) return err_set(e, ERR_IO, "%s: not in this program", path);
    files[(*n)++] = (struct plot_source){.name = strrchr(path, '/') + 1, .bytes = f->bytes, .size = f->size};
    return ERR_OK;
}

enum err_code plot_render(struct arena *a, const struct plot_request *r, struct err *e)
{
    TRY(plot_check(r->kind, r->output, e));
    const struct kind *kind = find_kind(r->kind);
    const struct form *form = find_form(r->output);
    struct plot_canvas c;
    TRY(plot_canvas_open(a, form == &forms[FORM_DUMB], &c, e));
    out_printf(c.settings, "%s\nset output 'picture'\ndumb = %d\npoints_per_pixel = %g\n", form->terminal, c.dumb,
               form->points_per_pixel);
    TRY(kind->build(r, &c, e));
    out_str(c.settings, "load 'style.gp'\n");
    out_printf(c.settings, "load '%s'\nset output\n", strrchr(kind->script, '/') + 1);

    struct plot_source files[PLOT_FILES_MAX + SHARED_N + 1];
    size_t n = 0;
    for (; n < c.n_files; n++) {
        files[n].name = c.files[n].name;
        files[n].bytes = out_text(c.files[n].out, &files[n].size);
        if (!files[n].bytes) return err_nomem(e);
    }
    for (size_t i = 0; i < SHARED_N; i++) TRY(add_script(files, &n, shared[i], e));
    TRY(add_script(files, &n, kind->script, e));
    struct out *to = NULL;
    TRY(out_open(a, r->output, &to, e));
    const enum err_code code = plot_gnuplot_run(a, files, n, "settings.gp", "picture", to, e);
    if (code != ERR_OK) {
        out_abandon(to);
        return code;
    }
    return out_commit(to, e);
}
