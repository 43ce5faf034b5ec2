#include <math.h>
#include <string.h>

#include "probe/store_sql.h"

struct binder {
    sqlite3_stmt *q;
    int at;
    bool failed;
};

static void bind_text(struct binder *b, const char *v)
{
    b->failed = sqlite3_bind_text(b->q, ++b->at, v ? v : "", -1, SQLITE_TRANSIENT) != SQLITE_OK || b->failed;
}

static void bind_int(struct binder *b, int64_t v)
{
    b->failed = sqlite3_bind_int64(b->q, ++b->at, v) != SQLITE_OK || b->failed;
}

static void bind_real(struct binder *b, double v) /* NAN and the infinities become NULL */
{
    const int done = isfinite(v) ? sqlite3_bind_double(b->q, ++b->at, v) : sqlite3_bind_null(b->q, ++b->at);
    b->failed = done != SQLITE_OK || b->failed;
}

struct store_batch {
    struct store *store;
    struct binder row, sample;
    bool open;
    /* run of the store before it */
    int64_t origin;
    struct result_origin is;
    struct arena *of_origin;
};

static enum err_code step(struct store *s, struct binder *b, struct err *e)
{
    if (!b->failed && sqlite3_step(b->q) == SQLITE_DONE) return ERR_OK;
    return store_fail(s, e);
}

/* Results that follow one another from one run share its row. */
static bool is_same(const struct result_origin *x, const struct result_origin *y)
{
    return strcmp(x->device, y->device) == 0 && strcmp(x->identity, y->identity) == 0 &&
           strcmp(x->tool, y->tool) == 0 && strcmp(x->command, y->command) == 0 && strcmp(x->started, y->started) == 0;
}

/* Texts of a run, which outlive the result that they came with. */
static enum err_code keep_origin(const struct result_origin *o, struct arena **a, struct result_origin *is,
                                 struct err *e)
{
    const char *const from[] = {o->device, o->identity, o->tool, o->command, o->started};
    const char **const to[] = {&is->device, &is->identity, &is->tool, &is->command, &is->started};
    if (!(*a = arena_open())) return err_nomem(e);
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++)
        if (!(*to[i] = arena_strndup(*a, from[i], strlen(from[i])))) {
            arena_close(*a);
            *a = NULL;
            return err_nomem(e);
        }
    return ERR_OK;
}

static enum err_code add_origin(struct store_batch *b, const struct result_origin *o, struct err *e)
{
    struct binder row = {.at = 0};
    struct store *s = b->store;
    struct result_origin is;
    struct arena *of_it;
    TRY(store_prepare(s, "INSERT INTO origin (device, identity, tool, command, started) VALUES (?,?,?,?,?)", &row.q,
                      e));
    bind_text(&row, o->device);
    bind_text(&row, o->identity);
    bind_text(&row, o->tool);
    bind_text(&row, o->command);
    bind_text(&row, o->started);
    enum err_code code = step(s, &row, e);
    (void)sqlite3_finalize(row.q);
    if (code == ERR_OK) code = keep_origin(o, &of_it, &is, e);
    if (code != ERR_OK) return code;
    if (s->of_origin != b->of_origin) arena_close(s->of_origin);
    s->origin = sqlite3_last_insert_rowid(s->db);
    s->is = is;
    s->of_origin = of_it;
    return ERR_OK;
}

static void bind_result(struct binder *b, const struct store *s, const struct result *r, const char *shape)
{
    bind_int(b, s->origin);
    const char *const texts[] = {r->made, r->kernel, r->variant, r->dtype, r->unit, r->row_kind};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) bind_text(b, texts[i]);
    bind_int(b, r->cold);
    bind_text(b, shape);
    bind_text(b, result_outcome_name(r->outcome));
    bind_text(b, r->reason);
    bind_text(b, sample_stop_name(r->stop));
    const int64_t counts[] = {r->seed, r->calls, r->copies, r->checked};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) bind_int(b, counts[i]);
    const double reals[] = {r->error_frac,
                            r->tolerance_frac,
                            r->flops,
                            r->vector_flops,
                            r->read_bytes,
                            r->written_bytes,
                            r->footprint_bytes,
                            r->before.peak_flops_per_s,
                            r->before.read_bytes_per_s,
                            r->before.moved_bytes_per_s,
                            r->after.peak_flops_per_s,
                            r->after.read_bytes_per_s,
                            r->after.moved_bytes_per_s,
                            r->summary.median_s,
                            r->summary.least_s,
                            r->summary.q1_s,
                            r->summary.q3_s};
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) bind_real(b, reals[i]);
    bind_int(b, (int64_t)r->times_n);
    bind_int(b, (int64_t)r->discards_n);
    bind_text(b, r->cells);
    bind_text(b, r->ceiling);
    bind_real(b, r->dram_read_bytes);
    bind_real(b, r->dram_write_bytes);
    bind_text(b, r->dram_reason);
    bind_real(b, r->piece_bytes);
    bind_real(b, r->before.gather_bytes_per_s);
    bind_real(b, r->after.gather_bytes_per_s);
}

static enum err_code add_samples(struct store *s, struct binder *b, const struct result *r, struct err *e)
{
    for (size_t i = 0; i < r->times_n + r->discards_n; i++) {
        const bool discarded = i >= r->times_n;
        const size_t j = discarded ? i - r->times_n : i;
        b->at = 0;
        bind_int(b, r->id);
        bind_int(b, discarded);
        bind_int(b, (int64_t)j);
        bind_real(b, discarded ? r->discards_s[j] : r->times_s[j]);
        TRY(step(s, b, e));
        (void)sqlite3_reset(b->q);
    }
    return ERR_OK;
}

static enum err_code add_one(struct store *s, struct binder *row, struct binder *sample, struct result *r,
                             struct err *e)
{
    struct arena *a = arena_open();
    struct out *o;
    if (!a) return err_nomem(e);
    enum err_code code = out_memory(a, &o, e);
    if (code == ERR_OK) {
        wire_write_shape(o, &r->shape);
        row->at = 0;
        bind_result(row, s, r, out_text(o, NULL));
        code = step(s, row, e);
    }
    arena_close(a);
    TRY(code);
    r->id = sqlite3_last_insert_rowid(s->db);
    (void)sqlite3_reset(row->q);
    return add_samples(s, sample, r, e);
}

static void take_back(struct store_batch *b)
{
    struct store *s = b->store;
    if (!b->open) return;
    b->open = false;
    (void)sqlite3_finalize(b->row.q);
    (void)sqlite3_finalize(b->sample.q);
    (void)store_roll_back(s, ERR_IO);
    if (s->of_origin != b->of_origin) arena_close(s->of_origin);
    s->origin = b->origin; /* it went with the transaction */
    s->is = b->is;
    s->of_origin = b->of_origin;
}

static void release(void *what) { take_back(what); }

enum err_code store_batch_open(struct arena *a, struct store *s, struct store_batch **out, struct err *e)
{
    struct store_batch *b = arena_alloc(a, sizeof *b);
    if (!b) return err_nomem(e);
    *b = (struct store_batch){.store = s, .open = true, .origin = s->origin, .is = s->is, .of_origin = s->of_origin};
    TRY(arena_defer(a, release, b, e));
    enum err_code code = store_run(s, "BEGIN IMMEDIATE", e);
    if (code == ERR_OK)
        code = store_prepare(s,
                             "INSERT INTO result (" STORE_RESULT_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,"
                             "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                             &b->row.q, e);
    if (code == ERR_OK)
        code = store_prepare(s, "INSERT INTO sample (result, discarded, i, time_s) VALUES (?,?,?,?)", &b->sample.q, e);
    if (code != ERR_OK) take_back(b);
    *out = b;
    return code;
}

enum err_code store_batch_add(struct store_batch *b, struct result *r, struct err *e)
{
    struct store *s = b->store;
    enum err_code code = ERR_OK;
    if (!s->origin || !is_same(&r->origin, &s->is)) code = add_origin(b, &r->origin, e);
    if (code == ERR_OK) code = add_one(s, &b->row, &b->sample, r, e);
    if (code == ERR_OK) return ERR_OK;
    take_back(b);
    r->id = 0;
    return code;
}

enum err_code store_batch_commit(struct store_batch *b, struct err *e)
{
    struct store *s = b->store;
    const enum err_code code = store_run(s, "COMMIT", e);
    if (code != ERR_OK) {
        take_back(b);
        return code;
    }
    b->open = false;
    (void)sqlite3_finalize(b->row.q);
    (void)sqlite3_finalize(b->sample.q);
    if (s->of_origin != b->of_origin) arena_close(b->of_origin);
    s->waited_s = 0;
    return ERR_OK;
}

enum err_code store_add(struct store *s, struct result *r, struct err *e)
{
    struct store_batch *b;
    struct arena *a = arena_open();
    if (!a) return err_nomem(e);
    enum err_code code = store_batch_open(a, s, &b, e);
    if (code == ERR_OK) code = store_batch_add(b, r, e);
    if (code == ERR_OK) code = store_batch_commit(b, e);
    if (code != ERR_OK) r->id = 0;
    arena_close(a);
    return code;
}

enum err_code store_add_fitted(struct store *s, const char *device, const struct store_fitted *f, struct err *e)
{
    struct binder b = {.at = 0};
    TRY(store_prepare(s, "INSERT INTO fitted (device, path, made) VALUES (?,?,?)", &b.q, e));
    bind_text(&b, device);
    bind_text(&b, f->path);
    bind_text(&b, f->made);
    const enum err_code code = step(s, &b, e);
    (void)sqlite3_finalize(b.q);
    return code;
}
