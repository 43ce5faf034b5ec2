#include "calc/fit/rows_formats.h"

#include <ctype.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/fit/rows_cells.h"

enum { WORD_MAX = 64, ROWS_MAX = 1000000 };

/* Of one call, in the column's unit: no clock tells less, and nothing runs for days. */
static const double TIME_LO = 1e-9, SECONDS_HI = 1e6, MICROSECONDS_HI = 1e9; /* not a unit */

/* -- which device -- */

/* Whether key, "h100-sxm", begins with the word. */
static bool first_word_is(const char *key, const char *word, size_t len)
{
    return strncasecmp(key, word, len) == 0 && !isalnum((unsigned char)key[len]);
}

/* A word with a digit in it: "dgx" names a machine that may hold any of several devices. */
static bool is_device_word(const char *word, size_t len)
{
    if (strcspn(word, "0123456789") >= len) return false;
    static const char PREFIX[] = "configs/hardware/";
    size_t n;
    const struct embed_file *f = embed_under(PREFIX, &n);
    for (size_t i = 0; i < n; i++)
        if (first_word_is(f[i].path + sizeof PREFIX - 1, word, len)) return true;
    return false;
}

/* Whether a text has a word that is this device's own, or one that is another's. */
static bool names(const struct hw *hw, const char *text, bool own)
{
    for (const char *p = text; hw && *p;) {
        size_t len = 0;
        while (isalnum((unsigned char)p[len])) len++;
        const bool is_own = len > 0 && first_word_is(hw->key, p, len);
        if (own ? is_own : len > 1 && !is_own && is_device_word(p, len)) return true;
        p += len + (p[len] != '\0');
    }
    return false;
}

bool rows_is_of(const struct hw *hw, const char *device)
{
    if (strcasecmp(device, hw->key) == 0 || strcasecmp(device, hw->name) == 0) return true;
    for (size_t i = 0; i < hw->aliases_n; i++)
        if (strcasecmp(device, hw->aliases[i]) == 0) return true;
    return false;
}

/* A device of several threads, or of one, is another than the same with other threads: only whole names tell. */
static bool is_others(const struct hw *hw, const struct row *r)
{
    static const char CORE[] = "this-cpu"; /* whichever it is, no device of a file */
    if (!hw || !*r->device || rows_is_of(hw, r->device)) return false;
    if (names(hw, r->device, false) || rows_of_host(hw)) return true;
    if (strncasecmp(r->device, CORE, sizeof CORE - 1) == 0) return true;
    return strcmp(r->framework, "ridge") == 0 && !names(hw, r->device, true);
}

/* -- columns -- */

struct plan {
    const struct rows_format *format;
    int number_at[ROWS_NUMBERS_MAX], text_at[ROWS_TEXTS_N], optional_at[ROWS_OPTIONAL_N], time_at, micros_at,
        outcome_at, precedence_at; /* -1: no such column */
    double time_factor;
    bool host; /* rows of one core */
};

static int find_column(const struct rows_cells *c, const char *name, size_t len)
{
    for (size_t i = 0; i < c->n; i++)
        if (strlen(c->cell[i]) == len && strncmp(c->cell[i], name, len) == 0) return (int)i;
    return -1;
}

static int column(const struct rows_cells *c, const char *name) { return find_column(c, name, strlen(name)); }

/* The i-th of the columns that a format must have, numbers first, then texts; false at the end. */
static bool wanted_column(const struct rows_format *f, size_t i, const char **name, size_t *len)
{
    *name = NULL;
    for (size_t j = 0; j < f->numbers_n && !*name; j++) {
        if (f->numbers[j].optional) continue;
        if (i == 0) *name = f->numbers[j].column;
        i--;
    }
    if (!*name) {
        *name = f->texts;
        for (; i && **name; i--) {
            *name += strcspn(*name, ",");
            *name += **name == ',';
        }
    }
    *len = strcspn(*name, ",");
    return *len > 0;
}

/* How many columns that a format wants the header lacks; their names to missing[cap], as many as fit. */
static size_t lacking(const struct rows_cells *c, const struct rows_format *f, char *missing, size_t cap)
{
    const char *name;
    size_t len, n = 0;
    missing[0] = '\0';
    for (size_t i = 0; wanted_column(f, i, &name, &len); i++) {
        if (find_column(c, name, len) >= 0) continue;
        const size_t used = strlen(missing);
        if (used + len + 3 < cap) (void)snprintf(missing + used, cap - used, "%s%.*s", n ? ", " : "", (int)len, name);
        n++;
    }
    return n;
}

static bool of_some_kind(const struct rows_cells *c)
{
    char missing[4];
    size_t i = 0;
    while (i < rows_formats_n && lacking(c, &rows_formats[i], missing, sizeof missing) > 0) i++;
    return i < rows_formats_n;
}

static size_t wanted_n(const struct rows_format *f)
{
    const char *name;
    size_t len, n = 0;
    while (wanted_column(f, n, &name, &len)) n++;
    return n;
}

static enum err_code check_header(const struct rows_cells *c, struct err *e)
{
    char shown[40];
    for (size_t i = 0; i < c->n; i++)
        if (*c->cell[i] && column(c, c->cell[i]) != (int)i)
            return err_set(e, ERR_INPUT, "%s: line %zu: column \"%s\" is there twice", c->name, c->row_line,
                           text_clean(shown, sizeof shown, c->cell[i], strlen(c->cell[i])));
    return ERR_OK;
}

/* kind: the only one; NULL any. */
static enum err_code make_plan(const struct rows_cells *c, const char *kind, struct plan *out, struct err *e)
{
    char missing[256], best_missing[256] = "";
    double best = 0; /* part of the columns of a kind that are there */
    const struct rows_format *nearest = NULL;
    *out = (struct plan){.time_at = -1};
    for (size_t i = 0; i < rows_formats_n && !out->format; i++) {
        if (kind && strcmp(kernel_kind_name(rows_formats[i].kind), kind) != 0) continue;
        const size_t n = lacking(c, &rows_formats[i], missing, sizeof missing), all = wanted_n(&rows_formats[i]);
        const double part = (double)(all - n) / (double)all;
        if (n == 0) out->format = &rows_formats[i];
        if (part <= best) continue;
        best = part;
        nearest = &rows_formats[i];
        memcpy(best_missing, missing, sizeof missing);
    }
    if (!out->format && !nearest)
        return err_set(e, ERR_INPUT, "%s: line %zu: these columns are of no kind of kernel (ridge list rows)", c->name,
                       c->row_line);
    if (!out->format)
        return err_set(e, ERR_INPUT, "%s: line %zu: these columns are of no kind of kernel; of %s are missing: %s",
                       c->name, c->row_line, kernel_kind_name(nearest->kind), best_missing);
    out->time_at = column(c, "time_s");
    out->time_factor = 1;
    out->micros_at = column(c, "latency_us");
    if (out->time_at < 0) {
        out->time_at = out->micros_at;
        out->time_factor = 1e-6;
    }
    if (out->time_at < 0)
        return err_set(e, ERR_INPUT, "%s: line %zu: missing column: time_s or latency_us", c->name, c->row_line);
    for (size_t i = 0; i < out->format->numbers_n; i++) {
        const struct rows_number *w = &out->format->numbers[i];
        out->number_at[i] = column(c, w->column);
        if (out->number_at[i] < 0 && w->own) out->number_at[i] = column(c, w->own);
    }
    for (size_t i = 0; i < ROWS_OPTIONAL_N; i++) out->optional_at[i] = column(c, rows_optional[i].column);
    for (size_t i = 0; i < ROWS_TEXTS_N; i++) out->text_at[i] = column(c, rows_texts[i].column);
    out->outcome_at = column(c, "outcome");
    out->precedence_at = column(c, ROWS_PRECEDENCE);
    return ERR_OK;
}

static enum err_code number(const struct rows_cells *c, const char *name, int at, double lo, double hi, double *out,
                            struct err *e)
{
    char *end, shown[40];
    const char *s = c->cell[at];
    const double v = strtod(s, &end);
    const bool decimal = *s && strspn(s, "0123456789+-.eE") == strlen(s);
    if (!decimal || end == s || *end || !(v >= lo && v <= hi))
        return err_set(e, ERR_INPUT, "%s: line %zu: %s: found \"%s\", wanted a number from %g to %g", c->name,
                       c->row_line, name, text_clean(shown, sizeof shown, s, strlen(s)), lo, hi);
    *out = v;
    return ERR_OK;
}

/* What the probe says of a result: "measured" and "imported" ones have a number, "wrong", "noisy" and so on none. */
static bool has_number(const struct rows_cells *c, int outcome_at)
{
    const char *outcome = outcome_at < 0 ? "" : c->cell[outcome_at];
    return !*outcome || strcmp(outcome, "measured") == 0 || strcmp(outcome, "imported") == 0;
}

/* One number of a row; most are counts. Without a column (at < 0) what the format says. */
static enum err_code count(const struct rows_cells *c, const struct rows_number *w, int at, struct row *r,
                           struct err *e)
{
    double v = w->absent == ROWS_ONE ? 1 : (double)NAN;
    const bool there = at >= 0 && !(w->absent == ROWS_UNKNOWN && !*c->cell[at]);
    if (there) TRY(number(c, w->column, at, w->lo, w->hi, &v, e));
    if (there && !w->mean && v != floor(v))
        return err_set(e, ERR_INPUT, "%s: line %zu: %s: found %g, wanted a whole number", c->name, c->row_line,
                       w->column, v);
    memcpy((char *)&r->kernel + w->offset, &v, sizeof v);
    return ERR_OK;
}

/* A row with time_s and latency_us says one time, as far as the two are rounded. */
static enum err_code check_times(const struct rows_cells *c, const struct plan *p, double time_s, struct err *e)
{
    double micros;
    if (p->micros_at < 0 || !*c->cell[p->micros_at]) return ERR_OK;
    TRY(number(c, "latency_us", p->micros_at, TIME_LO, MICROSECONDS_HI, &micros, e));
    if (fabs(time_s - micros * 1e-6) <= 1e-2 * time_s) return ERR_OK;
    return err_set(e, ERR_INPUT, "%s: line %zu: latency_us: wanted the same time as in the row's time_s", c->name,
                   c->row_line);
}

static enum err_code read_row(struct arena *a, const struct rows_cells *c, const struct plan *p, struct row *r,
                              struct err *e)
{
    const struct rows_format *f = p->format;
    char *row = (char *)r;
    *r = (struct row){.kernel = {.kind = f->kind}, .file = c->name, .line = c->row_line, .format = f};
    for (size_t i = 0; i < f->numbers_n; i++) TRY(count(c, &f->numbers[i], p->number_at[i], r, e));
    for (size_t i = 0; i < ROWS_OPTIONAL_N; i++) {
        if (p->optional_at[i] < 0) continue;
        TRY(count(c, &rows_optional[i], p->optional_at[i], r, e));
    }
    r->dtype = r->kv_dtype = r->framework = r->version = r->kernel_name = r->op = r->device = r->state = "";
    if (f->dtype) r->dtype = f->dtype;
    for (size_t i = 0; i < ROWS_TEXTS_N; i++) {
        if (p->text_at[i] < 0) continue;
        const char *text = c->cell[p->text_at[i]];
        memcpy(row + rows_texts[i].offset, &text, sizeof text);
    }
    const bool micros = p->time_factor < 1;
    TRY(number(c, micros ? "latency_us" : "time_s", p->time_at, TIME_LO, micros ? MICROSECONDS_HI : SECONDS_HI,
               &r->time_s, e));
    r->time_s *= p->time_factor;
    if (!micros) TRY(check_times(c, p, r->time_s, e));
    if (p->precedence_at >= 0 && *c->cell[p->precedence_at] &&
        units_parse_count(c->cell[p->precedence_at], 0, ROWS_PRECEDENCE_MAX, &r->precedence, NULL) != ERR_OK)
        return err_set(e, ERR_INPUT, "%s: line %zu: " ROWS_PRECEDENCE ": wanted how many kinds of rows count before it",
                       c->name, c->row_line);
    r->kernel.host = p->host;
    r->kernel.cold = strcmp(r->state, "cold") == 0;
    if (f->finish(a, r, e) == ERR_OK) return ERR_OK;
    if (!e) return ERR_INPUT;
    return e->code == ERR_NOMEM ? ERR_NOMEM : err_prepend(e, "%s: line %zu: ", c->name, c->row_line);
}

/* -- files -- */

static bool wanted_kind(const char *kinds, const char *name)
{
    const size_t len = strlen(name);
    for (const char *p = kinds; p && *p;) {
        const size_t n = strcspn(p, ",");
        if (n == len && strncmp(p, name, len) == 0) return true;
        p += n + (p[n] == ',');
    }
    return !kinds;
}

static enum err_code append(struct arena *a, struct rows *out, const struct row *r, struct err *e)
{
    if (out->n >= ROWS_MAX) return err_set(e, ERR_RANGE, "more than %d rows", ROWS_MAX);
    if ((out->n & (out->n - 1)) == 0 && (out->n == 0 || out->n >= 256)) {
        const size_t room = out->n ? 2 * out->n : 256;
        struct row *grown = arena_array(a, room, sizeof *grown);
        if (!grown) return err_nomem(e);
        if (out->n) memcpy(grown, out->v, out->n * sizeof *grown);
        out->v = grown;
    }
    out->v[out->n++] = *r;
    return ERR_OK;
}

static enum err_code note_file(struct arena *a, struct rows *out, const char *path, size_t n, const char *why,
                               struct err *e)
{
    struct rows_file *grown = arena_array(a, out->files_n + 1, sizeof *grown);
    char *copy = arena_strndup(a, path, strlen(path));
    if (!grown || !copy) return err_nomem(e);
    if (out->files_n) memcpy(grown, out->files, out->files_n * sizeof *grown);
    grown[out->files_n++] = (struct rows_file){.path = copy, .n = n, .why = why};
    out->files = grown;
    return ERR_OK;
}

/* -- files of several kinds -- */

/* What the rows of a file are read by: one plan, or where it says the kind of each row, that of the row. */
struct reader {
    struct rows_cells header;
    int kind_at; /* -1: all are of one kind */
    bool may_be_unknown[ROWS_CELLS_COLUMNS_MAX];
    struct rows_cells has; /* the columns that the last row has, "" those that it has not */
    bool planned;
    char kind[WORD_MAX];
    struct plan plan;
};

static enum err_code open_reader(const struct rows_cells *c, struct reader *out, struct err *e)
{
    *out = (struct reader){.header = *c, .kind_at = column(c, ROWS_KIND_COLUMN)};
    TRY(check_header(c, e));
    if (out->kind_at < 0) return make_plan(c, NULL, &out->plan, e);
    for (size_t i = 0; i < c->n; i++)
        for (size_t f = 0; f < rows_formats_n && !out->may_be_unknown[i]; f++)
            for (size_t j = 0; j < rows_formats[f].numbers_n; j++)
                if (rows_formats[f].numbers[j].absent == ROWS_UNKNOWN &&
                    strcmp(rows_formats[f].numbers[j].column, c->cell[i]) == 0)
                    out->may_be_unknown[i] = true;
    return ERR_OK;
}

/* The plan of the row in c. */
static enum err_code plan_row(const struct rows_cells *c, struct reader *r, struct err *e)
{
    if (r->kind_at < 0) return ERR_OK;
    const char *kind = c->cell[r->kind_at];
    bool same = r->planned && strcmp(kind, r->kind) == 0;
    if (!r->planned) r->has = r->header;
    for (size_t i = 0; i < c->n; i++) {
        const char *name = *c->cell[i] || r->may_be_unknown[i] ? r->header.cell[i] : "";
        same = same && *name == *r->has.cell[i];
        r->has.cell[i] = name;
    }
    if (same) return ERR_OK;
    r->has.row_line = c->row_line;
    r->planned = false;
    if (!*kind || strlen(kind) >= sizeof r->kind || strchr(kind, ',') || rows_check_kinds(kind, e) != ERR_OK) {
        char shown[WORD_MAX];
        return err_set(e, ERR_INPUT, "%s: line %zu: " ROWS_KIND_COLUMN ": no kind of kernel \"%s\"", c->name,
                       c->row_line, text_clean(shown, sizeof shown, kind, strlen(kind)));
    }
    memcpy(r->kind, kind, strlen(kind) + 1);
    const bool host = r->plan.host;
    TRY(make_plan(&r->has, r->kind, &r->plan, e));
    r->plan.host = host;
    r->planned = true;
    return ERR_OK;
}

bool rows_of_host(const struct hw *hw) { return hw && hw->device_kind && strcmp(hw->device_kind, "cpu") == 0; }

/* -- line by line -- */

struct rows_lines {
    struct rows_cells cells;
    struct reader reader;
    const struct rows_filter *filter;
};

/* The names of columns, which outlive their line. */
static enum err_code keep_header(struct arena *a, struct rows_cells *header, struct err *e)
{
    for (size_t i = 0; i < header->n; i++)
        if (!(header->cell[i] = arena_strndup(a, header->cell[i], strlen(header->cell[i])))) return err_nomem(e);
    return ERR_OK;
}

/* A file that is open, whose first line is a header; *of_none: of no kind of kernel, where that is no error. */
static enum err_code open_lines(struct arena *a, const struct rows_filter *filter, struct rows_lines *l, bool *of_none,
                                struct err *e)
{
    struct rows_cells *c = &l->cells;
    bool more;
    l->filter = filter;
    TRY(rows_cells_next(c, &more, e));
    if (!more) return err_set(e, ERR_INPUT, "%s: empty, wanted a line of column names", c->name);
    *of_none = filter->lenient && column(c, ROWS_KIND_COLUMN) < 0 && !of_some_kind(c);
    if (*of_none) return ERR_OK;
    TRY(open_reader(c, &l->reader, e));
    l->reader.plan.host = rows_of_host(filter->hw);
    return c->window ? keep_header(a, &l->reader.header, e) : ERR_OK;
}

enum err_code rows_lines_open(struct arena *a, const char *path, const struct rows_filter *filter,
                              struct rows_lines **out, struct err *e)
{
    struct rows_lines *l = arena_alloc(a, sizeof *l);
    bool of_none;
    if (!l) return err_nomem(e);
    TRY(rows_cells_stream(a, path, &l->cells, e));
    *out = l;
    return open_lines(a, filter, l, &of_none, e);
}

const struct rows_cells *rows_lines_header(const struct rows_lines *l) { return &l->reader.header; }
const struct rows_cells *rows_lines_cells(const struct rows_lines *l) { return &l->cells; }

enum err_code rows_lines_next(struct rows_lines *l, struct arena *a, struct row *r, enum rows_line *what, struct err *e)
{
    struct rows_cells *c = &l->cells;
    const struct rows_filter *f = l->filter;
    bool more;
    TRY(rows_cells_next(c, &more, e));
    *what = ROWS_END;
    if (!more) return ERR_OK;
    if (c->n != l->reader.header.n)
        return err_set(e, ERR_INPUT, "%s: line %zu: %zu cells, wanted the %zu of the header", c->name, c->row_line,
                       c->n, l->reader.header.n);
    *what = ROWS_CEILING;
    if (l->reader.kind_at >= 0 && strcmp(c->cell[l->reader.kind_at], ROWS_KIND_CEILING) == 0) return ERR_OK;
    TRY(plan_row(c, &l->reader, e));
    *what = ROWS_NO_NUMBER;
    if (!has_number(c, l->reader.plan.outcome_at)) return ERR_OK;
    TRY(read_row(a, c, &l->reader.plan, r, e));
    *what = is_others(f->hw, r) ? ROWS_OF_OTHERS : ROWS_ROW;
    if (*what == ROWS_ROW && ((f->framework && strcmp(f->framework, r->framework) != 0) ||
                              !wanted_kind(f->kinds, kernel_kind_name(r->kernel.kind))))
        *what = ROWS_UNASKED;
    return ERR_OK;
}

enum err_code rows_read_file(struct arena *a, const char *path, const struct rows_filter *filter, struct rows *out,
                             struct err *e)
{
    const char *slash = strrchr(path, '/');
    if (names(filter->hw, slash ? slash + 1 : path, false)) return note_file(a, out, path, 0, "of another device", e);
    struct rows_lines *l = arena_alloc(a, sizeof *l);
    struct row r;
    bool of_none;
    const size_t before = out->n;
    if (!l) return err_nomem(e);
    TRY(rows_cells_open(a, path, &l->cells, e));
    TRY(open_lines(a, filter, l, &of_none, e));
    if (of_none) return note_file(a, out, path, 0, "columns of no kind of kernel", e);
    for (enum rows_line what = ROWS_ROW; what != ROWS_END;) {
        TRY(rows_lines_next(l, a, &r, &what, e));
        out->lines_n += what != ROWS_END && what != ROWS_CEILING;
        out->others_n += what == ROWS_OF_OTHERS;
        if (what == ROWS_ROW) TRY(append(a, out, &r, e));
    }
    TRY(note_file(a, out, path, out->n - before, NULL, e));
    const struct rows_cells *header = &l->reader.header;
    const struct plan *p = &l->reader.plan;
    const bool assumed = l->reader.kind_at < 0 && column(header, "dtype") < 0 && column(header, "q_dtype") < 0;
    if (assumed && p->format->kind != KERNEL_COLLECTIVE) {
        out->files[out->files_n - 1].dtype_assumed = p->format->dtype;
        out->files[out->files_n - 1].kind = p->format->kind;
    }
    return ERR_OK;
}

enum err_code rows_others(struct arena *a, const struct rows *rows, const char **out, struct err *e)
{
    *out = NULL;
    if (!rows->others_n) return ERR_OK;
    *out = arena_printf(a, "%zu row%s of another device and passed over.", rows->others_n,
                        rows->others_n == 1 ? " is" : "s are");
    return *out ? ERR_OK : err_nomem(e);
}

enum err_code rows_assumed(struct arena *a, const struct rows *rows, const char **out, struct err *e)
{
    const char *said[KERNEL_KINDS_N] = {NULL}, *last = NULL, *each = "";
    bool alike = true;
    *out = NULL;
    for (size_t i = 0; i < rows->files_n; i++) {
        const struct rows_file *f = &rows->files[i];
        if (!f->n || !f->dtype_assumed || said[f->kind]) continue;
        if (last && strcmp(last, f->dtype_assumed) != 0) alike = false;
        last = said[f->kind] = f->dtype_assumed;
    }
    if (!last) return ERR_OK;
    for (size_t k = 0; k < KERNEL_KINDS_N && !alike; k++) {
        if (!said[k]) continue;
        each =
            arena_printf(a, "%s%sof %s as %s", each, *each ? ", " : "", kernel_kind_name((enum kernel_kind)k), said[k]);
        if (!each) return err_nomem(e);
    }
    *out = alike ? arena_printf(a, "Rows without a column dtype are taken as %s.", last)
                 : arena_printf(a, "Rows without a column dtype are taken: %s.", each);
    return *out ? ERR_OK : err_nomem(e);
}

enum err_code rows_check_kinds(const char *kinds, struct err *e)
{
    char word[WORD_MAX], shown[WORD_MAX];
    enum kernel_kind kind;
    for (const char *p = kinds; p && *p;) {
        const size_t n = strcspn(p, ","), len = n < WORD_MAX - 1 ? n : WORD_MAX - 1;
        memcpy(word, p, len);
        word[len] = '\0';
        if (!kernel_kind_find(word, &kind))
            return err_set(e, ERR_USAGE,
                           "no kind of kernel \"%s\"; there are gemm, prefill, decode, mla_prefill, mla_decode, "
                           "mla_bmm, moe, mlp, scan, conv, elementwise and collective",
                           text_clean(shown, sizeof shown, word, len));
        p += n + (p[n] == ',');
    }
    return ERR_OK;
}

/* One piece of --from: a directory stands for its *.csv, anything else is a pattern. */
static enum err_code read_piece(struct arena *a, const char *piece, const struct rows_filter *filter, struct rows *out,
                                struct err *e)
{
    struct stat st;
    glob_t g;
    const bool there = stat(piece, &st) == 0;
    const char *pattern = there && S_ISDIR(st.st_mode) ? arena_printf(a, "%s/*.csv", piece) : piece;
    if (!pattern) return err_nomem(e);
    if (there && !S_ISDIR(st.st_mode)) return rows_read_file(a, piece, filter, out, e);
    const int failed = glob(pattern, 0, NULL, &g);
    if (failed) {
        char shown[256];
        (void)text_clean(shown, sizeof shown, pattern, strlen(pattern));
        if (failed == GLOB_NOSPACE) return err_nomem(e);
        return err_set(e, ERR_IO, "%s: no such file", shown);
    }
    enum err_code code = ERR_OK;
    struct rows_filter lenient = *filter;
    lenient.lenient = true;
    for (size_t i = 0; i < g.gl_pathc && code == ERR_OK; i++) code = rows_read_file(a, g.gl_pathv[i], &lenient, out, e);
    globfree(&g);
    return code;
}

enum err_code rows_read(struct arena *a, const char *from, const struct rows_filter *filter, struct rows *out,
                        struct err *e)
{
    struct rows rows = {.n = 0};
    TRY(rows_check_kinds(filter->kinds, e));
    for (const char *p = from; *p;) {
        const size_t n = strcspn(p, ",");
        char *piece = arena_strndup(a, p, n);
        if (!piece) return err_nomem(e);
        if (n) TRY(read_piece(a, piece, filter, &rows, e));
        p += n + (p[n] == ',');
    }
    if (!rows.n && !rows.lines_n && rows.files_n == 1 && !rows.files[0].why)
        return err_set(e, ERR_NO, "no rows: %s has a header and nothing behind it", rows.files[0].path);
    if (!rows.n)
        return err_set(e, ERR_NO, "no rows: %zu file%s read, none of this device, framework and kind", rows.files_n,
                       rows.files_n == 1 ? "" : "s");
    *out = rows;
    return ERR_OK;
}
