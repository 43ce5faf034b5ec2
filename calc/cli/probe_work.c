#include "calc/cli/probe_work.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "calc/base/hold.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/plot.h"
#include "calc/cli/plot_gnuplot.h"

enum err_code work_note(struct work *w, const char *text, struct err *e)
{
    if (!text) return err_nomem(e);
    if (w->notes_n < WORK_NOTES_MAX) w->notes[w->notes_n++] = text;
    return ERR_OK;
}

/* -- options -- */

enum err_code work_read_time(const struct option_values *v, const char *name, double lo, double hi, double *out,
                             struct err *e)
{
    if (!option_get(v, name)) return ERR_OK;
    struct err why = {.code = ERR_OK};
    const enum err_code code = option_time(v, name, out, &why);
    const char *text = option_get(v, name);
    if (code != ERR_OK && *text != '-') return err_set(e, code, "%s", why.text);
    if (code == ERR_OK && *out >= lo && *out <= hi) return ERR_OK;
    return err_set(e, ERR_USAGE, "--%s: wanted %.7g to %.7g seconds", name, lo, hi);
}

const char *const work_devices[] = {"cpu", "cuda", NULL};

static enum err_code check_device(const char *device, struct err *e)
{
    char clean[64];
    for (size_t i = 0; work_devices[i]; i++)
        if (strcmp(work_devices[i], device) == 0) return ERR_OK;
    return err_set(e, ERR_USAGE, "--device: found \"%s\", wanted cpu or cuda",
                   text_clean(clean, sizeof clean, device, strlen(device)));
}

enum err_code work_find_worker(struct arena *a, const char *device, const char **out, struct err *e)
{
    static const char *const PROGRAMS[] = {"ridge-worker-cpu", "ridge-worker-cuda"};
    for (size_t i = 0; work_devices[i]; i++)
        if (strcmp(work_devices[i], device) == 0) {
            TRY(session_worker_path(a, PROGRAMS[i], out, e));
            if (i == 0 || access(*out, X_OK) == 0) return ERR_OK;
            return err_set(e, ERR_DEVICE, "there is no %s beside this program: make builds it where there is nvcc",
                           PROGRAMS[i]);
        }
    return check_device(device, e);
}

static enum err_code bad_threads(const char *text, struct err *e)
{
    char clean[64];
    return err_set(e, ERR_USAGE, "--threads: found \"%s\", wanted all, or 1 to as many as there are cores",
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

static enum err_code read_settings(struct work *w, struct err *e)
{
    struct run_settings *s = &w->run.set;
    const bool quick = option_given(w->v, "quick");
    s->deadline_s = quick ? 1 : 3;
    s->ceiling_s = quick ? 0.2 : 0.25;
    s->noise_frac = 0.005;
    TRY(work_read_time(w->v, "deadline", 1e-3, 1e4, &s->deadline_s, e));
    TRY(work_read_time(w->v, "ceilings", 1e-3, 1e2, &s->ceiling_s, e));
    TRY(work_read_time(w->v, "patience", 0.05, 1e5, &s->patience_s, e));
    TRY(option_count(w->v, "samples", SAMPLE_LEAST, SAMPLE_MAX / 4, &s->least, e));
    TRY(option_count(w->v, "seed", 0, INT64_MAX, &s->seed, e));
    s->threads = WIRE_ALL_THREADS;
    if (strcmp(option_get(w->v, "threads"), "all") != 0 &&
        option_count(w->v, "threads", 1, 1 << 16, &s->threads, e) != ERR_OK)
        return bad_threads(option_get(w->v, "threads"), e);
    TRY(check_device(option_get(w->v, "device"), e));
    if (option_get(w->v, "worker")) s->worker = option_get(w->v, "worker");
    return s->worker ? ERR_OK : work_find_worker(w->a, option_get(w->v, "device"), &s->worker, e);
}

static void show_phase(void *closure, const char *phase)
{
    struct work *w = closure;
    (void)phase;
    progress_show(&w->bar, w->done, w->total);
}

const char *work_who(const struct work *w)
{
    return w->run.device.threads > 1 ? w->run.device.name : arena_printf(w->a, "%s, one core", w->run.device.name);
}

enum err_code work_begin(struct work *w, const char *command, struct err *e)
{
    w->run.arena = w->a;
    w->run.progress = show_phase;
    w->run.closure = w;
    w->run.origin = (struct result_origin){.device = "", .identity = "{}", .tool = commands_tool(), .command = command};
    TRY(run_now(w->a, &w->run.origin.started, e));
    TRY(read_settings(w, e));
    TRY(run_open(&w->run, e));
    return *w->run.device.left_out ? work_note(w, arena_printf(w->a, "%s.", w->run.device.left_out), e) : ERR_OK;
}

/* -- the store -- */

static void say_wait(void *closure, const char *text) { progress_notice(closure, text); }

/* The folder of the store is locked as long as this program measures into it; the others are told. Where folders cannot
 * be locked nothing is known. */
static enum err_code meet_others(struct work *w, struct err *e)
{
    const char *slash = strrchr(w->store_path, '/');
    const char *folder = slash ? arena_strndup(w->a, w->store_path, (size_t)(slash - w->store_path) + 1) : ".";
    if (!folder) return err_nomem(e);
    w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->folder < 0) return ERR_OK;
    w->another = flock(w->folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return w->another ? work_note(w,
                                  "another ridge probe is measuring into a store of this folder: both disturb each "
                                  "other, and results are slower or noisy.",
                                  e)
                      : ERR_OK;
}

enum err_code work_open_store(struct work *w, double left_s, struct err *e)
{
    static const double LEAST_S = 1;
    const struct store_access how = {.write = true,
                                     .patience_s = fmin(PROBE_STORE_PATIENCE_S, fmax(LEAST_S, left_s)),
                                     .waits = say_wait,
                                     .closure = &w->bar};
    const char *path = option_get(w->v, "store");
    struct err why = {.code = ERR_OK};
    if (path && strcmp(path, "none") == 0) return work_note(w, "not stored (--store none).", e);
    enum err_code code = probe_store_path(w->a, w->v, &w->store_path, &why);
    if (code == ERR_OK) code = store_open(w->a, w->store_path, &how, &w->run.store, &why);
    if (code == ERR_OK) return meet_others(w, e);
    w->run.store = NULL;
    if (code == ERR_NOMEM) return err_nomem(e);
    if (path) return err_set(e, code, "not stored: %s (--store none measures all the same)", why.text);
    const char *text = arena_printf(w->a, "not stored: %s", why.text);
    if (!text) return err_nomem(e);
    w->no_store = true;
    progress_notice(&w->bar, text);
    return work_note(w, arena_printf(w->a, "%s.", text), e);
}

enum err_code work_say_stored(struct work *w, struct err *e)
{
    const struct run *r = &w->run;
    if (!r->store) return ERR_OK;
    char clean[200];
    (void)text_clean(clean, sizeof clean, w->store_path, strlen(w->store_path));
    TRY(work_note(w, arena_printf(w->a, "%zu result%s stored in %s.", r->stored, r->stored == 1 ? "" : "s", clean), e));
    if (!r->not_stored) return ERR_OK;
    return work_note(w, arena_printf(w->a, "%zu not stored: %s.", r->not_stored, r->store_err.text), e);
}

enum err_code work_say_failed(struct work *w, struct err *e)
{
    const struct run *r = &w->run;
    if (!r->failed_n) return ERR_OK;
    return work_note(w,
                     arena_printf(w->a, "%zu measurement%s of ceilings failed, which may be too low without: %s%s.",
                                  r->failed_n, r->failed_n == 1 ? "" : "s", r->failed, r->failed_n > 4 ? "; ..." : ""),
                     e);
}

enum err_code work_all_stored(const struct work *w, struct err *e)
{
    const struct run *r = &w->run;
    if (w->no_store)
        return err_set(e, ERR_IO, "%zu result%s not stored, for want of a store (--store none asks for none)",
                       r->not_stored, r->not_stored == 1 ? "" : "s");
    if (!r->store || !r->not_stored) return ERR_OK;
    return err_set(e, r->store_err.code, "%zu of %zu results not stored: %s", r->not_stored, r->not_stored + r->stored,
                   r->store_err.text);
}

/* -- output -- */

enum err_code work_write_table(struct work *w, const char *schema, const struct column *columns, size_t columns_n,
                               const void *rows, size_t n, size_t stride, struct err *e)
{
    enum table_format format = TABLE_TEXT;
    struct out *o;
    const struct table all = {.columns = columns,
                              .n_columns = columns_n,
                              .rows = rows,
                              .n_rows = n,
                              .stride_bytes = stride,
                              .schema = schema,
                              .tool = commands_tool(),
                              .scenario_json = option_scenario_json(w->a, w->v),
                              .notes = w->notes,
                              .n_notes = w->notes_n};
    struct table t = all;
    if (!all.scenario_json) return err_nomem(e);
    if (option_get(w->v, "format")) TRY(table_format_parse(option_get(w->v, "format"), &format, e));
    if (option_get(w->v, "columns")) TRY(table_select(w->a, &all, option_get(w->v, "columns"), &t, e));
    TRY(out_open(w->a, option_get(w->v, "output"), &o, e));
    TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

enum err_code work_check_output(struct work *w, const struct column *columns, size_t n, struct err *e)
{
    enum table_format format;
    const struct table all = {.columns = columns, .n_columns = n};
    struct table t;
    if (option_get(w->v, "format")) TRY(table_format_parse(option_get(w->v, "format"), &format, e));
    if (option_get(w->v, "columns")) TRY(table_select(w->a, &all, option_get(w->v, "columns"), &t, e));
    if (!option_get(w->v, "plot")) return ERR_OK;
    TRY(plot_check("roofline", option_get(w->v, "plot"), e));
    return plot_gnuplot_check(e);
}

/* -- the frame of each -- */

/* What came meanwhile ends the program as the others of it end: 130, 129 where its terminal is gone. SIGQUIT, which
 * asks for a core dump, stays as it is. */
static enum err_code ended(const sigset_t *before, enum err_code code, struct err *e)
{
    static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t came, one;
    int which, last = 0;
    for (size_t i = 0; i < sizeof ENDING / sizeof ENDING[0]; i++) {
        if (sigpending(&came) != 0 || sigismember(&came, ENDING[i]) != 1 || sigismember(before, ENDING[i]) != 0)
            continue;
        (void)sigemptyset(&one);
        (void)sigaddset(&one, ENDING[i]);
        if (sigwait(&one, &which) == 0) last = which;
    }
    hold_end(before);
    if (!last) return code;
    return err_set(e, last == SIGHUP ? ERR_HUNG_UP : ERR_STOPPED, "interrupted");
}

enum err_code work_held(const struct option_values *v, const char *command,
                        enum err_code (*verb)(struct work *w, const char *command, struct err *e), struct err *e)
{
    sigset_t before;
    struct arena *own = arena_open();
    struct work *w = own ? arena_alloc(own, sizeof *w) : NULL;
    enum err_code code;
    hold_begin(&before);
    if (w) {
        w->a = own;
        w->v = v;
        w->run.set.before = &before;
        w->folder = -1;
        code = verb(w, command, e);
        progress_end(&w->bar);
        run_close(&w->run);
        if (w->folder >= 0) (void)close(w->folder);
    } else {
        code = err_nomem(e);
    }
    arena_close(own);
    return ended(&before, code, e);
}
