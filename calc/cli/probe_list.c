/* probe_list -- `ridge probe list`: kernels, devices, and what each can run here. */
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/probe_work.h"

struct list_row {
    const char *kernel, *variant, *dtypes, *unit, *parameters, *splits, *here, *summary;
    int64_t points;
};

#define LISTED(field, kind, flags, heading, help)                                                                      \
    COLUMN_AT(struct list_row, field, kind, UNITS_NONE, COLUMN_SHOWN | (flags), heading, help)

static const struct column LIST[] = {
    LISTED(kernel, COLUMN_STRING, COLUMN_WHOLE, "kernel", "what can be measured"),
    LISTED(variant, COLUMN_STRING, COLUMN_WHOLE, "variant", "which code of it"),
    LISTED(dtypes, COLUMN_STRING, COLUMN_WHOLE, "formats", "of weights or cache"),
    LISTED(unit, COLUMN_STRING, COLUMN_SPARE, "unit", "whose peak counts"),
    LISTED(splits, COLUMN_STRING, COLUMN_SPARE, "split",
           "whether several threads can make a call together (--threads)"),
    LISTED(parameters, COLUMN_STRING, COLUMN_SPARE, "parameters", "of a shape"),
    LISTED(points, COLUMN_INT, 0, "shapes", "measured when none is named"),
    LISTED(here, COLUMN_STRING, 0, "here", "whether this machine can run it, or what it lacks"),
    COLUMN_AT(struct list_row, summary, COLUMN_STRING, UNITS_NONE, 0, "summary", "what it does"),
};

/* What another device of this machine is, or why there is none: a sentence. */
static enum err_code say_device(struct work *w, const char *device, struct err *e)
{
    struct run other = {.arena = w->a, .set = w->run.set};
    struct err why = {.code = ERR_OK};
    enum err_code code = work_find_worker(w->a, device, &other.set.worker, &why);
    if (code == ERR_OK) code = run_open(&other, &why);
    run_close(&other);
    if (code == ERR_NOMEM) return err_nomem(e);
    if (code != ERR_OK) return work_note(w, arena_printf(w->a, "Device %s: %s.", device, why.text), e);
    const bool runs = run_is_able(&other);
    return work_note(w, arena_printf(w->a, "Device %s: %s.", device, runs ? other.device.name : other.device.left_out),
                     e);
}

/* The device of the table, and those that the others would be. */
static enum err_code say_devices(struct work *w, const char *no_worker, struct err *e)
{
    const char *own = option_get(w->v, "device");
    if (no_worker) TRY(work_note(w, arena_printf(w->a, "Device %s: %s.", own, no_worker), e));
    if (option_get(w->v, "worker")) return work_note(w, arena_printf(w->a, "Device: %s.", w->run.device.name), e);
    if (!no_worker && run_is_able(&w->run))
        TRY(work_note(w, arena_printf(w->a, "Device %s: %s.", own, w->run.device.name), e));
    for (size_t i = 0; work_devices[i]; i++)
        if (strcmp(work_devices[i], own) != 0) TRY(say_device(w, work_devices[i], e));
    return ERR_OK;
}

/* Whether there is no worker of a card, and why: then the one of the CPU tells which kernels it would have. */
static enum err_code lacks_worker(struct work *w, const char **why, struct err *e)
{
    const char *device = option_get(w->v, "device"), *path;
    struct err found = {.code = ERR_OK};
    *why = NULL;
    if (option_get(w->v, "worker") || work_find_worker(w->a, device, &path, &found) != ERR_DEVICE) return ERR_OK;
    *why = arena_strndup(w->a, found.text, strlen(found.text));
    return *why ? work_find_worker(w->a, work_devices[0], &w->run.set.worker, e) : err_nomem(e);
}

/* A row for each variant of a kernel; without a worker of its device one that says so. */
static size_t put_rows(const struct wire_kernel *k, const char *parameters, const char *no_worker, struct list_row *out)
{
    if (no_worker) {
        *out = (struct list_row){.kernel = k->name,
                                 .parameters = parameters,
                                 .here = no_worker,
                                 .summary = k->summary,
                                 .points = TABLE_INT_UNKNOWN};
        return 1;
    }
    for (size_t j = 0; j < k->variants_n; j++) {
        const struct wire_variant *v = &k->variants[j];
        out[j] = (struct list_row){k->name,
                                   v->name,
                                   v->dtypes,
                                   v->unit,
                                   parameters,
                                   v->splits ? "yes" : "no",
                                   *v->lacks ? v->lacks : "yes",
                                   k->summary,
                                   (int64_t)k->points_n};
    }
    return k->variants_n;
}

static enum err_code list_within(struct work *w, const char *command, struct err *e)
{
    size_t n = 0, most = 0;
    TRY(work_check_output(w, LIST, sizeof LIST / sizeof LIST[0], e));
    const char *no_worker;
    w->run.set.lists = true;
    TRY(lacks_worker(w, &no_worker, e));
    TRY(work_begin(w, command, e));
    run_close(&w->run);
    const struct wire_device *d = &w->run.device;
    const char *wanted = option_get(w->v, "kernel");
    TRY(plan_check_kernels(d, wanted, e));
    for (size_t i = 0; i < d->kernels_n; i++) most += d->kernels[i].variants_n;
    struct list_row *rows = arena_array(w->a, most + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < d->kernels_n; i++) {
        const struct wire_kernel *k = &d->kernels[i];
        const char *parameters = "", *bounds = "";
        if ((wanted && !wire_list_has(wanted, k->name)) || (no_worker && !k->card)) continue;
        for (size_t j = 0; j < k->args_n && parameters && bounds; j++) {
            const struct wire_arg *arg = &k->args[j];
            parameters = arena_printf(w->a, "%s%s%s", parameters, j ? "," : "", arg->name);
            bounds = arena_printf(w->a, "%s%s%s=%lld..%lld", bounds, j ? ", " : "", arg->name, (long long)arg->lo,
                                  (long long)arg->hi);
        }
        if (!parameters || !bounds) return err_nomem(e);
        TRY(work_note(w, arena_printf(w->a, "%s: %s; %s.", k->name, k->summary, bounds), e));
        n += put_rows(k, parameters, no_worker, &rows[n]);
    }
    TRY(say_devices(w, no_worker, e));
    return work_write_table(w, "ridge.probe.list.1", LIST, sizeof LIST / sizeof LIST[0], rows, n, sizeof *rows, e);
}

enum err_code probe_list(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    (void)a;
    return work_held(v, command, list_within, e);
}
