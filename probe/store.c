#include "probe/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "calc/base/clock.h"
#include "calc/base/text.h"
#include "probe/store_sql.h"

/* -- layouts -- */

/* What leads from each layout to the next; the last is STORE_LAYOUT. Never changed once released, only added to. */
static const char *const MIGRATIONS[STORE_LAYOUT] = {
    "CREATE TABLE origin (id INTEGER PRIMARY KEY, device TEXT NOT NULL, identity TEXT NOT NULL, tool TEXT NOT NULL,"
    " command TEXT NOT NULL, started TEXT NOT NULL);"
    "CREATE TABLE result (id INTEGER PRIMARY KEY AUTOINCREMENT, origin INTEGER NOT NULL REFERENCES origin(id),"
    " made TEXT NOT NULL, kernel TEXT NOT NULL, variant TEXT NOT NULL, dtype TEXT NOT NULL, unit TEXT NOT NULL,"
    " row_kind TEXT NOT NULL, cold INTEGER NOT NULL, shape TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL,"
    " stop TEXT NOT NULL, seed INTEGER NOT NULL, calls INTEGER NOT NULL, copies INTEGER NOT NULL,"
    " checked INTEGER NOT NULL, error_frac REAL, tolerance_frac REAL, flops REAL, vector_flops REAL, read_bytes REAL,"
    " written_bytes REAL, footprint_bytes REAL, before_peak_flops_per_s REAL, before_read_bytes_per_s REAL,"
    " before_moved_bytes_per_s REAL, after_peak_flops_per_s REAL, after_read_bytes_per_s REAL,"
    " after_moved_bytes_per_s REAL, median_s REAL, least_s REAL, q1_s REAL, q3_s REAL, n INTEGER NOT NULL,"
    " discards INTEGER NOT NULL);"
    "CREATE TABLE sample (result INTEGER NOT NULL REFERENCES result(id), discarded INTEGER NOT NULL, i INTEGER NOT "
    "NULL,"
    " time_s REAL NOT NULL, PRIMARY KEY (result, discarded, i)) WITHOUT ROWID;"
    "CREATE INDEX result_kernel ON result(kernel);",
    /* imported rows: what their files say beside the shape */
    "ALTER TABLE result ADD COLUMN cells TEXT NOT NULL DEFAULT '';"
    "CREATE INDEX result_row_kind ON result(row_kind);",
    /* which results measure ceilings, until then told by the names of the kernels that do */
    "ALTER TABLE result ADD COLUMN ceiling TEXT NOT NULL DEFAULT '';"
    "UPDATE result SET ceiling = CASE kernel WHEN 'fma' THEN 'compute' WHEN 'stream-read' THEN 'read'"
    " WHEN 'stream-copy' THEN 'bandwidth' WHEN 'stream-triad' THEN 'bandwidth' ELSE '' END;",
    /* what memory moved, by counters of the device */
    "ALTER TABLE result ADD COLUMN dram_read_bytes REAL; ALTER TABLE result ADD COLUMN dram_write_bytes REAL;"
    "ALTER TABLE result ADD COLUMN dram_reason TEXT NOT NULL DEFAULT '';",
    /* files of parameters that were fitted to results */
    "CREATE TABLE fitted (id INTEGER PRIMARY KEY AUTOINCREMENT, device TEXT NOT NULL, path TEXT NOT NULL,"
    " made TEXT NOT NULL);",
    /* pieces in no order, and how fast such are read */
    "ALTER TABLE result ADD COLUMN piece_bytes REAL; ALTER TABLE result ADD COLUMN before_gather_bytes_per_s REAL;"
    "ALTER TABLE result ADD COLUMN after_gather_bytes_per_s REAL;",
};

/* -- SQLite -- */

enum err_code store_fail(const struct store *s, struct err *e)
{
    const int why = sqlite3_errcode(s->db) & 0xff;
    if (why == SQLITE_NOMEM) return err_nomem(e);
    if (why == SQLITE_BUSY || why == SQLITE_LOCKED)
        return err_set(e, ERR_IO, "%s: another program has it locked", s->path);
    if (why == SQLITE_FULL) return err_set(e, ERR_IO, "%s: the disk is full", s->path);
    if (why == SQLITE_NOTADB)
        return err_set(e, ERR_INPUT, "%s: no store of measurements: the file is something else", s->path);
    if (why == SQLITE_CORRUPT) return err_set(e, ERR_INPUT, "%s: damaged: %s", s->path, sqlite3_errmsg(s->db));
    if (why == SQLITE_IOERR && sqlite3_system_errno(s->db))
        return err_set(e, ERR_IO, "%s: %s", s->path, strerror(sqlite3_system_errno(s->db)));
    return err_set(e, ERR_IO, "%s: %s", s->path, sqlite3_errmsg(s->db));
}

enum err_code store_run(struct store *s, const char *sql, struct err *e)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? ERR_OK : store_fail(s, e);
}

enum err_code store_prepare(struct store *s, const char *sql, sqlite3_stmt **out, struct err *e)
{
    return sqlite3_prepare_v2(s->db, sql, -1, out, NULL) == SQLITE_OK ? ERR_OK : store_fail(s, e);
}

static enum err_code read_layout(struct store *s, int *out, struct err *e)
{
    sqlite3_stmt *q;
    TRY(store_prepare(s, "PRAGMA user_version", &q, e));
    const bool row = sqlite3_step(q) == SQLITE_ROW;
    const int version = row ? sqlite3_column_int(q, 0) : 0;
    const enum err_code code = row ? ERR_OK : store_fail(s, e);
    (void)sqlite3_finalize(q);
    *out = version;
    return code;
}

/* "file:" and the path, with what a URI would take for something else spelled out, and that nobody writes to it. */
static const char *still_uri(struct arena *a, const char *path)
{
    const char *uri = arena_printf(a, "file:%s", *path == '/' ? "//" : "");
    for (const char *p = path; *p && uri; p++)
        uri = strchr("%?#", *p) ? arena_printf(a, "%s%%%02x", uri, (unsigned)(unsigned char)*p)
                                : arena_printf(a, "%s%c", uri, *p);
    return uri ? arena_printf(a, "%s?immutable=1", uri) : NULL;
}

/* The layout of a file to be read: one in a folder where no log can be made is read as it lies there. */
static enum err_code read_layout_of(struct arena *a, struct store *s, const char *path, int *out, struct err *e)
{
    if (read_layout(s, out, e) == ERR_OK) return ERR_OK;
    const int why = sqlite3_errcode(s->db) & 0xff;
    if (why != SQLITE_READONLY && why != SQLITE_CANTOPEN) return e ? e->code : ERR_IO;
    const char *uri = still_uri(a, path);
    if (!uri) return err_nomem(e);
    (void)sqlite3_close_v2(s->db);
    if (sqlite3_open_v2(uri, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) != SQLITE_OK)
        return s->db ? store_fail(s, e) : err_nomem(e);
    return read_layout(s, out, e);
}

static enum err_code check_layout(const struct store *s, int layout, struct err *e)
{
    if (layout >= 0 && layout <= STORE_LAYOUT) return ERR_OK;
    return err_set(e, ERR_INPUT, "%s: layout %d, this program knows up to %d: a newer one wrote it", s->path, layout,
                   STORE_LAYOUT);
}

/* Written into the header of stores: "rdge". Older ones have none, and are known by their tables. */
enum { STORE_APPLICATION = 0x72646765 };

/* Whether a file is a store, or an empty one that may become one; nothing is written to what another program made. */
static enum err_code check_ours(struct store *s, struct err *e)
{
    static const char SQL[] =
        "SELECT (SELECT count(*) FROM sqlite_master), (SELECT count(*) FROM sqlite_master WHERE type = 'table' AND"
        " name IN ('origin', 'result', 'sample')), (SELECT application_id FROM pragma_application_id),"
        " (SELECT user_version FROM pragma_user_version)";
    sqlite3_stmt *q;
    TRY(store_prepare(s, SQL, &q, e));
    const bool row = sqlite3_step(q) == SQLITE_ROW;
    const int all = row ? sqlite3_column_int(q, 0) : 0, own = row ? sqlite3_column_int(q, 1) : 0,
              application = row ? sqlite3_column_int(q, 2) : 0, layout = row ? sqlite3_column_int(q, 3) : 0;
    const enum err_code code = row ? ERR_OK : store_fail(s, e);
    (void)sqlite3_finalize(q);
    if (code != ERR_OK) return code;
    const bool known = application == 0 || application == STORE_APPLICATION;
    const bool empty = all == 0 && layout == 0, ours = own == 3 && layout != 0;
    if (known && (empty || ours)) return ERR_OK;
    return err_set(e, ERR_INPUT, "%s: no store of measurements: the file is something else", s->path);
}

enum err_code store_roll_back(struct store *s, enum err_code code)
{
    if (code != ERR_OK && !sqlite3_get_autocommit(s->db)) (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* All steps within the transaction that looked at the layout: two programs do not both take them. */
static enum err_code migrate_within(struct store *s, struct err *e)
{
    int layout;
    char number[96];
    TRY(store_run(s, "BEGIN IMMEDIATE", e));
    TRY(read_layout(s, &layout, e));
    TRY(check_layout(s, layout, e));
    for (int i = layout; i < STORE_LAYOUT; i++) TRY(store_run(s, MIGRATIONS[i], e));
    (void)sqlite3_snprintf(sizeof number, number, "PRAGMA user_version = %d; PRAGMA application_id = %d", STORE_LAYOUT,
                           STORE_APPLICATION);
    TRY(store_run(s, number, e));
    return store_run(s, "COMMIT", e);
}

static enum err_code migrate(struct store *s, struct err *e)
{
    int layout;
    TRY(read_layout(s, &layout, e));
    TRY(check_layout(s, layout, e));
    return layout == STORE_LAYOUT ? ERR_OK : store_roll_back(s, migrate_within(s, e));
}

/* -- opening -- */

enum err_code store_default_path(struct arena *a, const char **out, struct err *e)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && data[0] == '/') /* relative ones are to be ignored, says the XDG specification */
        *out = arena_printf(a, "%s/ridge/measurements.db", data);
    else if (home && *home)
        *out = arena_printf(a, "%s/.local/share/ridge/measurements.db", home);
    else
        return err_set(e, ERR_IO, "neither XDG_DATA_HOME nor HOME says where measurements are kept");
    return *out ? ERR_OK : err_nomem(e);
}

/* The folders that lead to a file. */
static enum err_code make_folders(struct arena *a, const char *path, struct err *e)
{
    char clean[256];
    char *p = arena_strndup(a, path, strlen(path));
    if (!p) return err_nomem(e);
    for (char *slash = strchr(p + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(p, 0777) != 0 && errno != EEXIST)
            return err_set(e, ERR_IO, "%s: cannot make the folder: %s", text_clean(clean, sizeof clean, p, strlen(p)),
                           strerror(errno));
        *slash = '/';
    }
    return ERR_OK;
}

static void release(void *what)
{
    const struct store *s = what;
    arena_close(s->of_origin);
    (void)sqlite3_close_v2(s->db);
}

/* Another program has the file locked: wait a moment, or no longer. A program that never lets go costs the patience
 * once, however many results there are. */
static int wait_turn(void *store, int asked)
{
    enum { FIRST_MS = 1, MOST_MS = 50 };
    static const double SAID_S = 0.5;
    struct store *s = store;
    char text[400];
    if (s->waited_s >= s->how.patience_s) return 0;
    const int ms = asked < MOST_MS ? FIRST_MS + asked : MOST_MS;
    const double began_s = clock_now_s();
    (void)sqlite3_sleep(ms);
    s->waited_s += clock_now_s() - began_s;
    if (s->told || !s->how.waits || s->waited_s < SAID_S) return 1;
    s->told = true;
    (void)snprintf(text, sizeof text, "%.200s: another program has it locked; waiting, %.3g s at most", s->path,
                   s->how.patience_s);
    s->how.waits(s->how.closure, text);
    return 1;
}

/* Two programs that make a file log ahead at once are told apart by SQLite without a wait: the later one asks again. */
static enum err_code begin_writing(struct store *s, double patience_s, struct err *e)
{
    enum { ASK_MS = 20, ASKED_MAX = 100 };
    enum err_code code = ERR_OK;
    const double began_s = clock_now_s();
    for (int i = 0; i < ASKED_MAX; i++) {
        code = check_ours(s, e);
        if (code == ERR_OK)
            code = store_run(s, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", e);
        if (code == ERR_OK) code = migrate(s, e);
        if (code == ERR_OK || (sqlite3_errcode(s->db) & 0xff) != SQLITE_BUSY) return code;
        (void)sqlite3_sleep(ASK_MS);
        if (clock_now_s() - began_s > patience_s) return code;
    }
    return code;
}

enum err_code store_open(struct arena *a, const char *path, const struct store_access *how, struct store **out,
                         struct err *e)
{
    struct store *s = arena_alloc(a, sizeof *s);
    char clean[256];
    struct stat st;
    int layout;
    if (!s) return err_nomem(e);
    s->path = arena_strndup(a, clean, strlen(text_clean(clean, sizeof clean, path, strlen(path))));
    if (!s->path) return err_nomem(e);
    const bool there = stat(path, &st) == 0;
    if (!there && !how->write)
        return err_set(e, ERR_NO, "%s: there is no such file, so no measurements yet (ridge probe run)", s->path);
    if (there && !S_ISREG(st.st_mode)) return err_set(e, ERR_IO, "%s: not a regular file", s->path);
    if (!there) TRY(make_folders(a, path, e));
    /* who reads may write where that is allowed: the last to close then clears the log away */
    const int flags = SQLITE_OPEN_READWRITE | (how->write ? SQLITE_OPEN_CREATE : 0);
    const int opened = sqlite3_open_v2(path, &s->db, flags, NULL);
    if (!s->db) return err_nomem(e);
    TRY(arena_defer(a, release, s, e));
    if (opened != SQLITE_OK) return store_fail(s, e);
    s->how = *how;
    (void)sqlite3_busy_handler(s->db, wait_turn, s);
    if (how->write) {
        TRY(begin_writing(s, how->patience_s, e));
    } else {
        TRY(store_run(s, "PRAGMA query_only = 1", e));
        TRY(read_layout_of(a, s, path, &layout, e));
        TRY(check_ours(s, e));
        TRY(check_layout(s, layout, e));
        if (layout == 0)
            return err_set(e, ERR_INPUT, "%s: no measurements: the file has none of their tables", s->path);
        if (layout < STORE_LAYOUT)
            return err_set(e, ERR_INPUT, "%s: layout %d, wanted %d: the next ridge probe run brings it up to date",
                           s->path, layout, STORE_LAYOUT);
    }
    *out = s;
    return ERR_OK;
}
