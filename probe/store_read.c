#include <math.h>
#include <string.h>

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

enum { ORIGIN_AT = 41 }; /* behind id and the columns of a result */

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
                 {&r->dram_write_bytes, 39}};
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

static enum err_code read_row(struct arena *a, const struct store *s, sqlite3_stmt *q, struct result *r, struct err *e)
{
    *r = (struct result){.id = 0};
    TRY(read_texts(a, q, r, e));
    read_numbers(q, r);
    const char *shape = text_at(a, q, 9), *outcome = text_at(a, q, 10), *stop = text_at(a, q, 12);
    if (!shape || !outcome || !stop) return err_nomem(e);
    if (!result_outcome_find(outcome, &r->outcome) || !sample_stop_find(stop, &r->stop) || r->times_n > SAMPLE_MAX ||
        r->discards_n > SAMPLE_MAX)
        return err_set(e, ERR_INPUT, "%s: result %lld makes no sense", s->path, (long long)r->id);
    if (wire_read_shape(a, shape, &r->shape, e) == ERR_OK) return ERR_OK;
    return e ? err_prepend(e, "%s: result %lld: ", s->path, (long long)r->id) : ERR_INPUT;
}

static enum err_code read_samples(struct arena *a, struct store *s, struct result *r, struct err *e)
{
    sqlite3_stmt *q;
    size_t n = 0, discards = 0;
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
        if (discarded && discards < r->discards_n) r->discards_s[discards++] = t;
        if (!discarded && n < r->times_n) r->times_s[n++] = t;
    }
    const enum err_code code = got == SQLITE_DONE ? ERR_OK : store_fail(s, e);
    (void)sqlite3_finalize(q);
    TRY(code);
    if (n != r->times_n || discards != r->discards_n)
        return err_set(e, ERR_INPUT, "%s: result %lld lacks samples", s->path, (long long)r->id);
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
        TRY(read_row(a, s, q, &v[have], e));
        have++;
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
    size_t have = 0;
    TRY(store_prepare(s,
                      "SELECT * FROM (SELECT r.id, " STORE_RESULT_COLUMNS ", o.device, o.identity, o.tool, o.command,"
                      " o.started FROM result r JOIN origin o ON o.id = r.origin WHERE (?1 IS NULL OR kernel = ?1)"
                      " AND (?2 IS NULL OR row_kind = ?2) AND (?3 IS NULL OR device = ?3)"
                      " AND (?4 IS NULL OR outcome = ?4) AND (?5 IS NULL OR r.id = ?5)"
                      " AND (?7 = 0 OR ceiling <> '')"
                      " ORDER BY r.id DESC LIMIT ?6) ORDER BY 1",
                      &q, e));
    enum err_code code = bind_filter(s, q, f, e);
    if (code == ERR_OK) code = read_rows(a, s, q, &v, &have, e);
    (void)sqlite3_finalize(q);
    TRY(code);
    for (size_t i = 0; i < have && f->samples; i++) TRY(read_samples(a, s, &v[i], e));
    *out = v;
    *n = have;
    return ERR_OK;
}
