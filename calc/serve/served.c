#include "calc/serve/served.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/fit/rows_cells.h"
#include "calc/model/stored.h"

/* ---- rows ---- */

#define TEXTS(X) X(engine) X(model) X(system) X(weights)
#define NUMBERS(X) X(tp) X(attention_dp) X(ep) X(prompt_tokens) X(output_tokens) X(concurrency) X(ttft_ms) X(tpot_ms)
#define OPTIONAL(X) X(engine_version) X(measured) X(note)

enum column {
#define X(name) COL_##name,
    TEXTS(X) NUMBERS(X) OPTIONAL(X)
#undef X
        COLUMNS
};

static const char *const NAMES[COLUMNS] = {
#define X(name) #name,
    TEXTS(X) NUMBERS(X) OPTIONAL(X)
#undef X
};
enum { NEEDED = COL_engine_version };

static bool find_columns(const struct rows_cells *c, int at[COLUMNS])
{
    bool all = true;
    for (int k = 0; k < COLUMNS; k++) {
        at[k] = -1;
        for (size_t i = 0; i < c->n; i++)
            if (strcmp(c->cell[i], NAMES[k]) == 0) at[k] = (int)i;
        all = all && (at[k] >= 0 || k >= NEEDED);
    }
    return all;
}

bool served_is(struct arena *a, const char *path)
{
    struct rows_cells c;
    struct err unread = {0};
    int at[COLUMNS];
    bool more;
    return rows_cells_open(a, path, &c, &unread) == ERR_OK && rows_cells_next(&c, &more, &unread) == ERR_OK && more &&
           find_columns(&c, at);
}

const char *served_lacks(struct arena *a, const char *path)
{
    struct rows_cells c;
    struct err unread = {0};
    int at[COLUMNS], found = 0;
    const char *lacking = NULL;
    bool more;
    if (rows_cells_open(a, path, &c, &unread) != ERR_OK || rows_cells_next(&c, &more, &unread) != ERR_OK || !more)
        return NULL;
    (void)find_columns(&c, at);
    for (int k = 0; k < NEEDED; k++) {
        found += at[k] >= 0;
        if (at[k] < 0 && !lacking) lacking = NAMES[k];
    }
    return 2 * found > NEEDED ? lacking : NULL;
}

static const char *cell_of(const struct rows_cells *c, const int at[COLUMNS], enum column k)
{
    return at[k] >= 0 && (size_t)at[k] < c->n ? c->cell[at[k]] : "";
}

static enum err_code number_of(const struct rows_cells *c, const int at[COLUMNS], enum column k, double low,
                               double *out, struct err *e)
{
    const char *text = cell_of(c, at, k);
    char *end, clean[64];
    *out = strtod(text, &end);
    if (end != text && !*end && *out >= low && *out <= (double)(1 << 24)) return ERR_OK;
    return err_set(e, ERR_INPUT, "%s:%zu: %s: wanted a number from %g, not '%s'", c->name, c->row_line, NAMES[k], low,
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

static enum err_code read_row(const struct rows_cells *c, const int at[COLUMNS], struct served_row *r, struct err *e)
{
    const double nan = (double)NAN;
    double tp, dp, ep, ttft_ms, tpot_ms;
    *r = (struct served_row){.file = c->name,
                             .line = (int64_t)c->row_line,
                             .engine = cell_of(c, at, COL_engine),
                             .version = cell_of(c, at, COL_engine_version),
                             .model = cell_of(c, at, COL_model),
                             .device = cell_of(c, at, COL_system),
                             .weights = cell_of(c, at, COL_weights),
                             .measured = cell_of(c, at, COL_measured),
                             .predicted_s = nan,
                             .first_s = nan,
                             .baseline_s = nan,
                             .fitted_s = nan};
    const char *note = cell_of(c, at, COL_note);
    if (*note) r->why = note;
    TRY(number_of(c, at, COL_tp, 1, &tp, e));
    TRY(number_of(c, at, COL_attention_dp, 1, &dp, e));
    TRY(number_of(c, at, COL_ep, 1, &ep, e));
    TRY(number_of(c, at, COL_prompt_tokens, 1, &r->prompt_tokens, e));
    TRY(number_of(c, at, COL_output_tokens, 1, &r->output_tokens, e));
    TRY(number_of(c, at, COL_concurrency, 1, &r->clients, e));
    TRY(number_of(c, at, COL_ttft_ms, 0, &ttft_ms, e));
    TRY(number_of(c, at, COL_tpot_ms, 1e-6, &tpot_ms, e)); /* not a unit */
    r->tp = (int64_t)tp;
    r->attention_dp = (int64_t)dp;
    r->ep = (int64_t)ep;
    r->ttft_s = ttft_ms / 1e3; /* not a unit */
    r->tpot_s = tpot_ms / 1e3; /* not a unit */
    return ERR_OK;
}

enum err_code served_read(struct arena *a, const char *path, struct served *out, struct err *e)
{
    struct rows_cells c;
    int at[COLUMNS];
    size_t room = 256; /* not a unit */
    bool more;
    TRY(rows_cells_open(a, path, &c, e));
    TRY(rows_cells_next(&c, &more, e));
    if (!more || !find_columns(&c, at))
        return err_set(e, ERR_INPUT, "%s: no table of servers (ridge help validate)", c.name);
    *out = (struct served){.row = arena_array(a, room, sizeof *out->row)};
    for (;;) {
        if (!out->row) return err_nomem(e);
        TRY(rows_cells_next(&c, &more, e));
        if (!more && out->n == 0) return err_set(e, ERR_INPUT, "%s: no row of a server behind the header", c.name);
        if (!more) return served_correct(a, out, e);
        if (out->n == SERVED_ROWS_MAX) return err_set(e, ERR_INPUT, "%s: more than %d rows", c.name, SERVED_ROWS_MAX);
        if (out->n == room) {
            struct served_row *grown = arena_array(a, room *= 2, sizeof *grown);
            if (grown) memcpy(grown, out->row, out->n * sizeof *grown);
            out->row = grown;
            if (!grown) return err_nomem(e);
        }
        TRY(read_row(&c, at, &out->row[out->n++], e));
    }
}

/* ---- deployments ---- */

/* A model by its published name; of a checkpoint in another format, or tuned for instructions, that of its shapes. */
static enum err_code load_model(struct arena *a, const char *published, struct model *m, struct err *e)
{
    static const char *const TAILS[] = {"-fp8", "-instruct"};
    struct err plain;
    if (model_load(a, published, NULL, 0, m, &plain) == ERR_OK) return ERR_OK;
    const char *last = strrchr(published, '/');
    last = last ? last + 1 : published;
    char *name = arena_strndup(a, last, strlen(last));
    if (!name) return err_nomem(e);
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++) name[i] = (char)tolower((unsigned char)name[i]);
    for (size_t i = 0; i < sizeof TAILS / sizeof TAILS[0]; i++) {
        const size_t tail = strlen(TAILS[i]);
        if (len > tail && strcmp(name + len - tail, TAILS[i]) == 0) name[len -= tail] = '\0';
    }
    if (model_load(a, name, NULL, 0, m, e) == ERR_OK) return ERR_OK;
    if (e->code != ERR_NOMEM) *e = plain; /* names what was published */
    return e->code;
}

/* Formats as tables of servers call them; NULL: as the model's own file says. */
static enum err_code set_weights(struct model *m, const char *published, struct err *e)
{
    static const struct {
        const char *published, *name;
    } FORMATS[] = {
        {"fp8", "fp8"},    {"fp8_block", "fp8-block128"},       {"bf16", "bf16"}, {"bf16 (not stated)", "bf16"},
        {"int4_wo", NULL}, {"bf16 dense, mxfp4 experts", NULL},
    };
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++)
        if (strcmp(published, FORMATS[i].published) == 0)
            return FORMATS[i].name ? stored_set_all(m, FORMATS[i].name, e) : ERR_OK;
    return stored_set_all(m, published, e);
}

static bool same_deployment(const struct served_row *x, const struct served_row *y)
{
    return strcmp(x->engine, y->engine) == 0 && strcmp(x->version, y->version) == 0 &&
           strcmp(x->model, y->model) == 0 && strcmp(x->device, y->device) == 0 &&
           strcmp(x->weights, y->weights) == 0 && x->tp == y->tp && x->attention_dp == y->attention_dp &&
           x->ep == y->ep;
}

struct family {
    int64_t layers, hidden, vocab;
};

/* The number of its sizes, a new one where no model before had them. */
static size_t family_of(struct family *f, size_t *n, const struct model *m)
{
    for (size_t i = 0; i < *n; i++)
        if (f[i].layers == m->layers && f[i].hidden == m->hidden && f[i].vocab == m->vocab) return i;
    f[*n] = (struct family){m->layers, m->hidden, m->vocab};
    return (*n)++;
}

struct deployment {
    struct engine engine;
    struct model model;
    struct hw hw;
    struct engine_case opened;
};

static enum err_code open_deployment(struct arena *a, const struct served_row *r, struct deployment *d, struct err *e)
{
    TRY(engine_load(a, r->engine, &d->engine, e));
    engine_set_version(&d->engine, r->version);
    TRY(load_model(a, r->model, &d->model, e));
    TRY(set_weights(&d->model, r->weights, e));
    TRY(hw_load(a, r->device, &d->hw, e));
    const struct step_setup setup = {.model = &d->model,
                                     .hw = &d->hw,
                                     .layout = {.tp = r->tp, .dp = r->attention_dp, .ep = r->ep, .skew = 1},
                                     .block_tokens = 16};
    return engine_case_open(a, &d->engine, &setup, &d->opened, e);
}

static void predict_row(struct served_row *r, struct deployment *d, const char *below, struct err *e)
{
    const struct engine_loop loop = {r->clients, r->prompt_tokens, r->output_tokens};
    if (engine_closed_loop(&d->opened, &loop, &r->closed, e) != ERR_OK) return;
    const double cycle_s = r->ttft_s + r->tpot_s * (r->output_tokens - 1);
    if (!r->why && cycle_s < r->closed.bound_s) r->why = below;
}

/* All rows of the deployment of row `at`, in memory of its own. */
static enum err_code predict_deployment(struct arena *a, struct arena *own, struct served *s, size_t at,
                                        struct family *families, bool *done, struct err *e)
{
    static const char BELOW[] = "shorter than the bound of what a cycle computes";
    struct deployment *d = arena_alloc(own, sizeof *d);
    struct err why = {0};
    const struct served_row *first = &s->row[at];
    if (!d) return err_nomem(e);
    *d = (struct deployment){.engine = {0}};
    const enum err_code code = open_deployment(own, first, d, &why);
    if (code == ERR_NOMEM) return err_nomem(e);
    const char *text = code == ERR_OK ? NULL : arena_strndup(a, why.text, strlen(why.text));
    if (code != ERR_OK && !text) return err_nomem(e);
    const size_t family = code == ERR_OK ? family_of(families, &s->families_n, &d->model) : SIZE_MAX;
    for (size_t i = at; i < s->n; i++) {
        struct served_row *r = &s->row[i];
        if (done[i] || !same_deployment(first, r)) continue;
        done[i] = true;
        r->family = family;
        if (code != ERR_OK) {
            if (!r->why) r->why = text;
            continue;
        }
        r->overlapped = engine_overlaps(&d->engine, r->version);
        r->per_kernel = d->engine.per_kernel;
        r->kind = engine_has_experts(&d->model) ? "experts" : "dense";
        why = (struct err){0};
        predict_row(r, d, BELOW, &why);
        if (why.code != ERR_OK && !r->why && !(r->why = arena_strndup(a, why.text, strlen(why.text))))
            return err_nomem(e);
    }
    return ERR_OK;
}

enum err_code served_predict(struct arena *a, struct served *s, struct err *e)
{
    bool *done = arena_array(a, s->n + 1, sizeof *done);
    struct family *families = arena_array(a, s->n + 1, sizeof *families);
    if (!done || !families) return err_nomem(e);
    s->families_n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (done[i]) continue;
        struct arena *own = arena_open();
        if (!own) return err_nomem(e);
        const enum err_code code = predict_deployment(a, own, s, i, families, done, e);
        arena_close(own);
        TRY(code);
    }
    return ERR_OK;
}
