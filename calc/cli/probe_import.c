/* probe_import -- `ridge probe import`: rows that others measured, into the store. */
#include "calc/cli/probe_import.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/probe_known.h"
#include "calc/cli/probe_verbs.h"
#include "calc/cli/probe_work.h"
#include "calc/cli/this_cpu.h"
#include "calc/fit/rows_formats.h"

static enum err_code check_device(const char *device, struct err *e)
{
    return import_is_name(device) ? ERR_OK : err_set(e, ERR_USAGE, "--device: wanted " NAME_WANTED);
}

/* -- files -- */

struct imported {
    size_t added, again, numberless; /* again: the store had them; numberless: whose outcome is no number */
    size_t repeated;                 /* are a row before them in their file */
    size_t renamed;                  /* said another device than --device */
    size_t ceilings;                 /* of their machines, new ones */
    const char *device;              /* that of --device, clean */
};

/* Rows of all files go into the store one by one, as they are read, and are in it together, or none is. */
struct reading {
    const struct result *like;
    struct probe_known *known;
    struct account *account;
    struct store_batch *batch;
    struct imported *sum;
};

static enum err_code take_row(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                              const struct row *row, const struct reading *in, struct err *e)
{
    struct imported *const sum = in->sum;
    struct result r = *in->like;
    enum probe_known_as as;
    TRY(row ? import_row(a, c, h, row, in->account, &r, e) : import_ceiling(a, c, h, in->account, &r, e));
    const char *says = import_cell(c, h->device);
    TRY(probe_known_meet(in->known, a, &r, *import_cell(c, h->made) != '\0', &as, e));
    if (row) sum->renamed += *says && strcmp(says, r.origin.device) != 0;
    if (row) sum->again += as == PROBE_KNOWN_BEFORE;
    sum->repeated += as == PROBE_KNOWN_REPEATED;
    if (as != PROBE_KNOWN_NEW) return ERR_OK;
    if (row)
        sum->added++;
    else
        sum->ceilings++;
    return store_batch_add(in->batch, &r, e);
}

static enum err_code read_file(struct arena *a, const char *path, const struct reading *in, struct err *e)
{
    static const struct rows_filter ALL = {.hw = NULL};
    struct rows_lines *l;
    struct import_columns h;
    size_t n = 0;
    TRY(rows_lines_open(a, path, &ALL, &l, e));
    import_read_header(rows_lines_header(l), &h);
    probe_known_next_file(in->known);
    for (enum rows_line what = ROWS_ROW; what != ROWS_END;) {
        struct arena *own = arena_open(); /* of one row */
        struct row row;
        if (!own) return err_nomem(e);
        enum err_code code = rows_lines_next(l, own, &row, &what, e);
        n += what != ROWS_END;
        in->sum->numberless += code == ERR_OK && what == ROWS_NO_NUMBER;
        if (code == ERR_OK && (what == ROWS_ROW || what == ROWS_CEILING))
            code = take_row(own, rows_lines_cells(l), &h, what == ROWS_ROW ? &row : NULL, in, e);
        arena_close(own);
        TRY(code);
    }
    return n ? ERR_OK : err_set(e, ERR_INPUT, "%s: a header, and no rows behind it", rows_lines_cells(l)->name);
}

/* The standard input, which may be a pipe, as a file that can be read more than once. */
static enum err_code keep_input(struct err *e)
{
    struct stat st;
    char block[1 << 14];
    size_t got;
    bool wrote = true;
    if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode)) return ERR_OK;
    FILE *f = tmpfile();
    if (!f) return err_set(e, ERR_IO, "-: cannot keep what comes: %s", strerror(errno));
    while (wrote && (got = fread(block, 1, sizeof block, stdin)) > 0) wrote = fwrite(block, 1, got, f) == got;
    const bool kept = wrote && !ferror(stdin) && fflush(f) == 0 && dup2(fileno(f), STDIN_FILENO) >= 0;
    const int why = errno;
    (void)fclose(f);
    return kept ? ERR_OK : err_set(e, ERR_IO, "-: cannot read: %s", strerror(why));
}

static enum err_code say(struct arena *a, const struct option_values *v, const struct imported *sum, struct err *e)
{
    struct out *o;
    TRY(out_open(a, option_get(v, "output"), &o, e));
    out_printf(o, "%zu row%s imported", sum->added, sum->added == 1 ? "" : "s");
    if (sum->ceilings)
        out_printf(o, ", with %zu ceiling%s of %s", sum->ceilings, sum->ceilings == 1 ? "" : "s",
                   "what they were measured on");
    if (sum->again) out_printf(o, "; %zu %s there already", sum->again, sum->again == 1 ? "was" : "were");
    if (sum->repeated)
        out_printf(o, "; %zu %s a row before %s and %s left out", sum->repeated,
                   sum->repeated == 1 ? "repeats" : "repeat", sum->repeated == 1 ? "it" : "them",
                   sum->repeated == 1 ? "is" : "are");
    if (sum->numberless)
        out_printf(o, "; %zu %s no number, by %s outcome", sum->numberless, sum->numberless == 1 ? "has" : "have",
                   sum->numberless == 1 ? "its" : "their");
    if (sum->renamed)
        out_printf(o, "; %zu %s another device and %s of %s now, as --device says", sum->renamed,
                   sum->renamed == 1 ? "says" : "say", sum->renamed == 1 ? "is" : "are", sum->device);
    out_str(o, ".\n");
    return out_commit(o, e);
}

enum err_code probe_import(struct arena *a, const struct option_values *v, const char *command, struct err *e)
{
    struct store *s;
    struct imported sum = {.added = 0};
    const char *now, *device, *worker = option_get(v, "worker");
    TRY(probe_device_name(a, v, &device, e));
    if (strcmp(device, "cpu") == 0 || strcmp(device, "cuda") == 0)
        return err_set(e, ERR_USAGE,
                       "--device %s: rows are of a device by its name: " THIS_CPU ", the core that ridge probe "
                       "measured, h100-sxm, ...",
                       device);
    TRY(check_device(device, e));
    if (!worker) TRY(work_find_worker(a, "cpu", &worker, e));
    char clean[256];
    sum.device = text_clean(clean, sizeof clean, device, strlen(device));
    TRY(run_now(a, &now, e));
    struct result like = result_unknown();
    like.origin = (struct result_origin){device, "{}", commands_tool(), command, now};
    like.made = now;
    like.outcome = RESULT_IMPORTED;
    TRY(probe_store_open(a, v, true, &s, e));
    for (size_t i = 0; i < v->operands_n; i++)
        if (strcmp(v->operands[i], "-") == 0) TRY(keep_input(e));
    struct reading in = {.like = &like, .sum = &sum};
    TRY(probe_known_open(a, s, &in.known, e));
    TRY(account_open(a, worker, &in.account, e));
    TRY(store_batch_open(a, s, &in.batch, e));
    for (size_t i = 0; i < v->operands_n; i++) TRY(read_file(a, v->operands[i], &in, e));
    TRY(store_batch_commit(in.batch, e));
    return say(a, v, &sum, e);
}
