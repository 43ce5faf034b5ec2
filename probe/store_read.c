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

static enum err_code read_texts(struct arena *a, sqlite3_stmt *q, struct result *r, struct err *e)
{
    const struct {
        const char **to;
        int at;
    } texts[] = {{&r->made, 2},
                 {&r->kernel, 3},
                 {&r->variant, 4},
                 {&r->dtype, 5},
                 {&r->unit, 6},
                 {&r->row_kind, 7},
                 {&r->reason, 11},
                 {&r->cells, 36},
                 {&r->ceiling, 37},
                 {&r->dram_reason, 40},
                 {&r->origin.device, ORIGIN_AT},
                 {&r->origin.identity, ORIGIN_AT + 1},
                 {&r->origin.tool, ORIGIN_AT + 2},
                 {&r->origin.command, ORIGIN_AT + 3},
                 {&r->origin.started, ORIGIN_AT + 4}};
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

static enum err_code read_row(struct arena *a, sqlite3_stmt *q, struct result *r, struct err *e)
{
    *r = (struct result){.id = 0};
    TRY(read_texts(a, q, r, e));
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

static enum err_code read_samples(struct arena *a, struct store *s, struct result *r, struct err *e)
{
    sqlite3_stmt *q;
    size_t n = 0, discards = 0;
    bool sound = true;
    r->times_s = arena_array(a, r->times_n + 1, sizeof *r->times_s);
    r->discards_s = arena_array(a, r->discards_n + 1, sizeof *r->discards_s);
    double *room = arena_array(a, r->times_n + 1, sizeof *room);
    if (!r->times_s || !r->discards_s || !room) return err_nomem(e);
    TRY(store_prepare(s, "SELECT discarded, time_s FROM sample WHERE result = ? ORDER BY discarded, i", &q, e));
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
    (void)sqlite3_finalize(q);
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

static enum err_code read_rows(struct arena *a, struct store *s, sqlite3_stmt *q, struct result **out, size_t *n,
                               struct err *e)
{
    struct result *v = NULL;
    size_t have = 0, room = 0;
    int got;
    while ((got = sqlite3_step(q)) == SQLITE_ROW) {
        if (have == room) {
            room = room ? 2 * room : 64;
            struct result *grown = arena_array(a, room, sizeof *grown);
            if (!grown) return err_nomem(e);
            if (have) memcpy(grown, v, have * sizeof *v);
            v = grown;
        }
        struct err why = {.code = ERR_OK};
        const enum err_code code = read_row(a, q, &v[have], &why);
        if (code == ERR_NOMEM) return err_nomem(e);
        if (code == ERR_OK)
            have++;
        else
            pass_over(s, v[have].id, &why);
    }
    if (got != SQLITE_DONE) return store_fail(s, e);
    *out = v;
    *n = have;
    return ERR_OK;
}

enum err_code store_read(struct arena *a, struct store *s, const struct store_filter *f, struct result **out, size_t *n,
                         struct err *e)
{
    sqlite3_stmt *q;
    struct result *v = NULL;
    size_t have = 0, kept = 0;
    TRY(store_prepare(s,
                      "SELECT * FROM (SELECT r.id, " STORE_RESULT_COLUMNS ", o.device, o.identity, o.tool, o.command,"
                      " o.started FROM result r JOIN origin o ON o.id = r.origin WHERE (?1 IS NULL OR instr(',' || ?1 "
                      "|| ',', ',' || kernel || ',') > 0)"
                      " AND (?2 IS NULL OR row_kind = ?2) AND (?3 IS NULL OR device = ?3)"
                      " AND (?4 IS NULL OR outcome = ?4) AND (?5 IS NULL OR r.id = ?5)"
                      " AND (?7 = 0 OR ceiling <> '')"
                      " ORDER BY r.id DESC LIMIT ?6) ORDER BY 1",
                      &q, e));
    enum err_code code = bind_filter(s, q, f, e);
    if (code == ERR_OK) code = read_rows(a, s, q, &v, &have, e);
    (void)sqlite3_finalize(q);
    TRY(code);
    for (size_t i = 0; i < have; i++) {
        struct err why = {.code = ERR_OK};
        code = f->samples ? read_samples(a, s, &v[i], &why) : ERR_OK;
        if (code == ERR_INPUT)
            pass_over(s, v[i].id, &why);
        else if (code != ERR_OK)
            return err_set(e, code, "%s", why.text);
        else
            v[kept++] = v[i];
    }
    *out = v;
    *n = kept;
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
