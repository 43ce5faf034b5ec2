#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/json.h"
#include "calc/base/json_scan.h"
#include "calc/base/text.h"
#include "probe/store_sql.h"

/* Texts of the file are whatever somebody put there: cleaned like those of any input. */
static const char *text_at(struct arena *a, sqlite3_stmt *q, int i)
{
    const char *s = (const char *)sqlite3_column_text(q, i);
    const size_t n = s ? (size_t)sqlite3_column_bytes(q, i) : 0;
    char *copy = arena_alloc(a, n + 4);
    return copy ? text_clean(copy, n + 4, s ? s : "", n) : NULL;
}

static double real_at(sqlite3_stmt *q, int i)
{
    return sqlite3_column_type(q, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, i);
}

enum { ORIGIN_AT = 44 }; /* behind id and the columns of a result */

/* Results of one run share its texts where they stay. */
struct last_origin {
    int64_t id;
    struct result_origin is;
};

static enum err_code read_origin(struct arena *a, sqlite3_stmt *q, struct last_origin *last, struct result *r,
                                 struct err *e)
{
    const int64_t id = sqlite3_column_int64(q, 1);
    const char **const to[] = {&r->origin.device, &r->origin.identity, &r->origin.tool, &r->origin.command,
                               &r->origin.started};
    if (last && last->id == id) {
        r->origin = last->is;
        return ERR_OK;
    }
    for (int i = 0; i < (int)(sizeof to / sizeof to[0]); i++)
        if (!(*to[i] = text_at(a, q, ORIGIN_AT + i))) return err_nomem(e);
    if (last) *last = (struct last_origin){id, r->origin};
    return ERR_OK;
}

static enum err_code read_texts(struct arena *a, sqlite3_stmt *q, struct result *r, struct err *e)
{
    const struct {
        const char **to;
        int at;
    } texts[] = {{&r->made, 2},     {&r->kernel, 3},  {&r->variant, 4}, {&r->dtype, 5},    {&r->unit, 6},
                 {&r->row_kind, 7}, {&r->reason, 11}, {&r->cells, 36},  {&r->ceiling, 37}, {&r->dram_reason, 40}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (!(*texts[i].to = text_at(a, q, texts[i].at))) return err_nomem(e);
    return ERR_OK;
}

static void read_numbers(sqlite3_stmt *q, struct result *r)
{
    const struct {
        double *to;
        int at;
    } reals[] = {{&r->error_frac, 17},
                 {&r->tolerance_frac, 18},
                 {&r->flops, 19},
                 {&r->vector_flops, 20},
                 {&r->read_bytes, 21},
                 {&r->written_bytes, 22},
                 {&r->footprint_bytes, 23},
                 {&r->before.peak_flops_per_s, 24},
                 {&r->before.read_bytes_per_s, 25},
                 {&r->before.moved_bytes_per_s, 26},
                 {&r->after.peak_flops_per_s, 27},
                 {&r->after.read_bytes_per_s, 28},
                 {&r->after.moved_bytes_per_s, 29},
                 {&r->summary.median_s, 30},
                 {&r->summary.least_s, 31},
                 {&r->summary.q1_s, 32},
                 {&r->summary.q3_s, 33},
                 {&r->dram_read_bytes, 38},
                 {&r->dram_write_bytes, 39},
                 {&r->piece_bytes, 41},
                 {&r->before.gather_bytes_per_s, 42},
                 {&r->after.gather_bytes_per_s, 43}};
    r->summary.spread_frac = r->summary.error_frac = r->summary.drift_frac = r->summary.most_s = (double)NAN;
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) *reals[i].to = real_at(q, reals[i].at);
    r->id = sqlite3_column_int64(q, 0);
    r->cold = sqlite3_column_int(q, 8) != 0;
    r->seed = sqlite3_column_int64(q, 13);
    r->calls = sqlite3_column_int64(q, 14);
    r->copies = sqlite3_column_int64(q, 15);
    r->checked = sqlite3_column_int64(q, 16);
    r->times_n = (size_t)sqlite3_column_int64(q, 34);
    r->discards_n = (size_t)sqlite3_column_int64(q, 35);
    r->summary.n = r->times_n;
}

static enum err_code check_object(struct arena *a, const char *identity, struct err *e)
{
    struct json j;
    TRY(json_parse(a, "identity", identity, strlen(identity), &j, e));
    return json_is_object(&j) ? ERR_OK : err_set(e, ERR_INPUT, "identity: wanted an object");
}

/* What an imported row says, or the conditions of an own one: an object of texts. */
static enum err_code check_texts(struct arena *a, const char *name, const char *cells, struct err *e)
{
    struct json_text key, value;
    bool more = *cells != '\0';
    if (!more) return ERR_OK;
    struct json_scan s = json_scan_open(a, name, cells, strlen(cells), e);
    TRY(json_scan_object(&s));
    while (more) {
        TRY(json_scan_member(&s, &key, &more));
        if (more) TRY(json_scan_text(&s, &value));
    }
    return ERR_OK;
}

static enum err_code read_row(struct arena *a, sqlite3_stmt *q, struct last_origin *last, struct result *r,
                              struct err *e)
{
    *r = (struct result){.id = 0};
    TRY(read_texts(a, q, r, e));
    TRY(read_origin(a, q, last, r, e));
    read_numbers(q, r);
    const char *shape = text_at(a, q, 9), *outcome = text_at(a, q, 10), *stop = text_at(a, q, 12);
    if (!shape || !outcome || !stop) return err_nomem(e);
    if (!result_outcome_find(outcome, &r->outcome)) return err_set(e, ERR_INPUT, "no such outcome");
    if (!sample_stop_find(stop, &r->stop)) return err_set(e, ERR_INPUT, "no such end of sampling");
    if (r->times_n > SAMPLE_MAX || r->discards_n > SAMPLE_MAX) return err_set(e, ERR_INPUT, "its number of samples");
    const double time_s = result_time_s(r);
    if (!isnan(time_s) && !(time_s > 0 && isfinite(time_s))) return err_set(e, ERR_INPUT, "a time of %g s", time_s);
    TRY(result_check_rates(r, e));
    TRY(check_texts(a, "cells", r->cells, e));
    TRY(check_object(a, r->origin.identity, e));
    return wire_read_shape(a, shape, &r->shape, e);
}

enum err_code store_senseless(const struct store *s, struct err *e)
{
    char which[24 * STORE_SENSELESS_MAX] = "";
    for (size_t i = 0; i < s->senseless_n && i < STORE_SENSELESS_MAX; i++) {
        const size_t used = strlen(which);
        (void)snprintf(which + used, sizeof which - used, "%s%lld", i ? ", " : "", (long long)s->senseless[i]);
    }
    if (!s->senseless_n) return ERR_OK;
    const bool one = s->senseless_n == 1;
    return err_set(e, ERR_INPUT, "%s: result%s %s%s make%s no sense and %s left out (%s%s)", s->path, one ? "" : "s",
                   which, s->senseless_n > STORE_SENSELESS_MAX ? " and more" : "", one ? "s" : "", one ? "is" : "are",
                   one ? "" : "of the first: ", s->why.text);
}

enum err_code store_check(struct store *s, struct err *e)
{
    sqlite3_stmt *q;
    char said[120];
    TRY(store_prepare(s, "PRAGMA quick_check(1)", &q, e));
    enum err_code code = sqlite3_step(q) == SQLITE_ROW ? ERR_OK : store_fail(s, e);
    const char *text = code == ERR_OK ? (const char *)sqlite3_column_text(q, 0) : NULL;
    if (text && strcmp(text, "ok") != 0)
        code = err_set(e, ERR_INPUT, "%s: damaged: %s", s->path, text_clean(said, sizeof said, text, strlen(text)));
    (void)sqlite3_finalize(q);
    return code;
}

/* Each once, however often it is read. */
static void pass_over(struct store *s, int64_t id, const struct err *why)
{
    for (size_t i = 0; i < s->senseless_n && i < STORE_SENSELESS_MAX; i++)
        if (s->senseless[i] == id) return;
    if (!s->senseless_n) s->why = *why;
    if (s->senseless_n < STORE_SENSELESS_MAX) s->senseless[s->senseless_n] = id;
    s->senseless_n++;
}

static enum err_code read_samples(struct arena *a, struct store *s, sqlite3_stmt *q, struct result *r, struct err *e)
{
    size_t n = 0, discards = 0;
    bool sound = true;
    r->times_s = arena_array(a, r->times_n + 1, sizeof *r->times_s);
    r->discards_s = arena_array(a, r->discards_n + 1, sizeof *r->discards_s);
    double *room = arena_array(a, r->times_n + 1, sizeof *room);
    if (!r->times_s || !r->discards_s || !room) return err_nomem(e);
    int got = sqlite3_bind_int64(q, 1, r->id);
    while (got == SQLITE_OK || got == SQLITE_ROW) {
        got = sqlite3_step(q);
        if (got != SQLITE_ROW) break;
        const bool discarded = sqlite3_column_int(q, 0) != 0;
        const double t = sqlite3_column_double(q, 1);
        sound = sound && t > 0 && isfinite(t);
        if (discarded && discards < r->discards_n) r->discards_s[discards++] = t;
        if (!discarded && n < r->times_n) r->times_s[n++] = t;
    }
    const enum err_code code = got == SQLITE_DONE ? ERR_OK : store_fail(s, e);
    (void)sqlite3_reset(q);
    TRY(code);
    if (n != r->times_n || discards != r->discards_n) return err_set(e, ERR_INPUT, "samples are missing");
    if (!sound) return err_set(e, ERR_INPUT, "a sample is no time");
    if (n) r->summary = sample_summarise(r->times_s, n, room);
    return ERR_OK;
}

static enum err_code bind_filter(struct store *s, sqlite3_stmt *q, const struct store_filter *f, struct err *e)
{
    const char *const texts[] = {f->kernel, f->row_kind, f->device, f->outcome};
    int bad = 0;
    for (int i = 0; i < 4; i++)
        if (texts[i]) bad |= sqlite3_bind_text(q, i + 1, texts[i], -1, SQLITE_TRANSIENT);
    if (f->id) bad |= sqlite3_bind_int64(q, 5, f->id);
    bad |= sqlite3_bind_int64(q, 6, f->last ? f->last : INT64_MAX);
    bad |= sqlite3_bind_int(q, 7, f->ceilings);
    return bad ? store_fail(s, e) : ERR_OK;
}

struct store_reading {
    struct store *store;
    sqlite3_stmt *q, *samples; /* samples NULL: not wanted */
    bool shared;
    struct last_origin last; /* of results that stay */
};

void store_end(struct store_reading *c)
{
    (void)sqlite3_finalize(c->q);
    (void)sqlite3_finalize(c->samples);
    c->q = c->samples = NULL;
}

static void release(void *what) { store_end(what); }

#define RESULTS                                                                                                        \
    "SELECT r.id, " STORE_RESULT_COLUMNS ", o.device, o.identity, o.tool, o.command, o.started FROM result r JOIN"     \
    " origin o ON o.id = r.origin WHERE (?1 IS NULL OR instr(',' || ?1 || ',', ',' || kernel || ',') > 0)"             \
    " AND (?2 IS NULL OR row_kind = ?2) AND (?3 IS NULL OR device = ?3) AND (?4 IS NULL OR outcome = ?4)"              \
    " AND (?5 IS NULL OR r.id = ?5) AND (?7 = 0 OR ceiling <> '')"

enum err_code store_each(struct arena *a, struct store *s, const struct store_filter *f, struct store_reading **out,
                         struct err *e)
{
    struct store_reading *c = arena_alloc(a, sizeof *c);
    if (!c) return err_nomem(e);
    *c = (struct store_reading){.store = s};
    TRY(arena_defer(a, release, c, e));
    /* the newest are sorted; all come in the order of the table */
    TRY(store_prepare(s,
                      f->last ? "SELECT * FROM (" RESULTS " ORDER BY r.id DESC LIMIT ?6) ORDER BY 1"
                              : RESULTS " ORDER BY r.id LIMIT ?6",
                      &c->q, e));
    if (f->samples)
        TRY(store_prepare(s, "SELECT discarded, time_s FROM sample WHERE result = ? ORDER BY discarded, i", &c->samples,
                          e));
    *out = c;
    return bind_filter(s, c->q, f, e);
}

enum err_code store_next(struct store_reading *c, struct arena *a, struct result *r, bool *more, struct err *e)
{
    for (;;) {
        const int got = sqlite3_step(c->q);
        struct err why = {.code = ERR_OK};
        *more = got == SQLITE_ROW;
        if (got == SQLITE_DONE) return ERR_OK;
        if (got != SQLITE_ROW) return store_fail(c->store, e);
        enum err_code code = read_row(a, c->q, c->shared ? &c->last : NULL, r, &why);
        if (code == ERR_OK && c->samples) code = read_samples(a, c->store, c->samples, r, &why);
        if (code == ERR_OK) return ERR_OK;
        if (code != ERR_INPUT) return err_set(e, code, "%s", why.text);
        pass_over(c->store, r->id, &why);
    }
}

enum err_code store_count(struct store *s, const struct store_filter *f, int64_t *n, struct err *e)
{
    struct store_filter all = *f;
    sqlite3_stmt *q;
    all.last = 0;
    TRY(store_prepare(s, "SELECT count(*) FROM (" RESULTS " LIMIT ?6)", &q, e));
    enum err_code code = bind_filter(s, q, &all, e);
    if (code == ERR_OK) code = sqlite3_step(q) == SQLITE_ROW ? ERR_OK : store_fail(s, e);
    *n = code == ERR_OK ? sqlite3_column_int64(q, 0) : 0;
    (void)sqlite3_finalize(q);
    return code;
}

void store_share(struct store_reading *c) { c->shared = true; }

enum err_code store_hold(struct store *s, struct err *e) { return store_run(s, "BEGIN", e); }

void store_let_go(struct store *s) { (void)store_roll_back(s, ERR_IO); }

enum err_code store_kernels(struct arena *a, struct store *s, const char ***out, size_t *n, size_t *results_n,
                            struct err *e)
{
    sqlite3_stmt *q;
    size_t room = 0;
    int got;
    *n = *results_n = 0;
    *out = NULL;
    TRY(store_prepare(s, "SELECT kernel, count(*) FROM result GROUP BY kernel ORDER BY kernel", &q, e));
    enum err_code code = ERR_OK;
    while (code == ERR_OK && (got = sqlite3_step(q)) == SQLITE_ROW) {
        if (*n == room) {
            room = room ? 2 * room : 64;
            const char **grown = arena_array(a, room, sizeof *grown);
            if (grown && *n) memcpy(grown, *out, *n * sizeof *grown);
            *out = grown;
        }
        const char *name = *out ? text_at(a, q, 0) : NULL;
        if (name) (*out)[(*n)++] = name;
        *results_n += (size_t)sqlite3_column_int64(q, 1);
        code = name ? ERR_OK : err_nomem(e);
    }
    if (code == ERR_OK && got != SQLITE_DONE) code = store_fail(s, e);
    (void)sqlite3_finalize(q);
    return code;
}

enum err_code store_read(struct arena *a, struct store *s, const struct store_filter *f, struct result **out, size_t *n,
                         struct err *e)
{
    struct store_reading *c;
    struct result *v = NULL;
    size_t room = 0;
    bool more = true;
    *n = 0;
    TRY(store_each(a, s, f, &c, e));
    store_share(c);
    for (;;) {
        if (*n == room) {
            room = room ? 2 * room : 64;
            struct result *grown = arena_array(a, room, sizeof *grown);
            if (!grown) return err_nomem(e);
            if (*n) memcpy(grown, v, *n * sizeof *v);
            v = grown;
        }
        const enum err_code code = store_next(c, a, &v[*n], &more, e);
        if (code != ERR_OK || !more) store_end(c);
        TRY(code);
        if (!more) break;
        (*n)++;
    }
    *out = v;
    return ERR_OK;
}

enum err_code store_last_fitted(struct arena *a, struct store *s, const char *device, struct store_fitted *out,
                                struct err *e)
{
    sqlite3_stmt *q;
    *out = (struct store_fitted){.path = NULL};
    TRY(store_prepare(s, "SELECT path, made FROM fitted WHERE device = ? ORDER BY id DESC LIMIT 1", &q, e));
    int got = sqlite3_bind_text(q, 1, device, -1, SQLITE_TRANSIENT);
    if (got == SQLITE_OK) got = sqlite3_step(q);
    enum err_code code = got == SQLITE_ROW || got == SQLITE_DONE ? ERR_OK : store_fail(s, e);
    if (got == SQLITE_ROW) {
        const char *path = (const char *)sqlite3_column_text(q, 0); /* as it is: it is opened */
        out->path = arena_strndup(a, path ? path : "", path ? strlen(path) : 0);
        out->made = text_at(a, q, 1);
        if (!out->path || !out->made) code = err_nomem(e);
    }
    (void)sqlite3_finalize(q);
    return code;
}
