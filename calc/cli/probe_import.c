/* probe_import -- `ridge probe import`: rows that others measured, into the store. */
#include "calc/cli/probe_import.h"

#include <errno.h>
#include <math.h>
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

/* Results of all files, as they are read: they go into the store together, or none does. */
struct reading {
    const struct result *like;
    struct probe_known known;
    struct account *account;
    struct result *v;
    size_t n, room;
};

static enum err_code take_row(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                              const struct row *row, struct reading *in, struct imported *sum, struct err *e)
{
    struct result *r = &in->v[in->n];
    *r = *in->like;
    TRY(row ? import_row(a, c, h, row, in->account, r, e) : import_ceiling(a, c, h, in->account, r, e));
    const char *says = import_cell(c, h->device);
    const bool again = probe_known_has(a, &in->known, r, *import_cell(c, h->made) != '\0');
    if (row) {
        sum->renamed += *says && strcmp(says, r->origin.device) != 0;
        sum->again += again;
        sum->added += !again;
    } else {
        sum->ceilings += !again;
    }
    in->n += !again;
    return ERR_OK;
}

/* How many rows there are behind the header. */
static enum err_code count_rows(struct arena *a, const char *path, size_t *n, struct err *e)
{
    struct rows_cells *c = arena_alloc(a, sizeof *c);
    bool more = true;
    *n = 0;
    if (!c) return err_nomem(e);
    TRY(rows_cells_open(a, path, c, e));
    TRY(rows_cells_next(c, &more, e));
    if (!more) return ERR_OK;
    TRY(rows_cells_next(c, &more, e));
    while (more) {
        (*n)++;
        TRY(rows_cells_next(c, &more, e));
    }
    return *n ? ERR_OK : err_set(e, ERR_INPUT, "%s: a header, and no rows behind it", c->name);
}

static enum err_code make_room(struct arena *a, struct reading *in, size_t n, struct err *e)
{
    struct result *v = arena_array(a, in->n + n + 1, sizeof *v);
    if (!v) return err_nomem(e);
    if (in->n) memcpy(v, in->v, in->n * sizeof *v);
    in->v = v;
    return ERR_OK;
}

/* Rows from first on that are a row before them in the file: they are none. */
static enum err_code drop_repeated(struct arena *a, struct reading *in, size_t first, struct imported *sum,
                                   struct err *e)
{
    bool *again = arena_array(a, in->n - first + 1, sizeof *again);
    size_t kept = first;
    if (!again) return err_nomem(e);
    TRY(probe_known_repeats(a, in->v + first, in->n - first, again, e));
    for (size_t i = first; i < in->n; i++) {
        if (!again[i - first]) {
            in->v[kept++] = in->v[i];
            continue;
        }
        size_t *const count = *in->v[i].row_kind ? &sum->added : &sum->ceilings;
        (*count)--;
        sum->repeated++;
    }
    in->n = kept;
    return ERR_OK;
}

static enum err_code read_file(struct arena *a, const char *path, struct reading *in, struct imported *sum,
                               struct err *e)
{
    static const struct rows_filter ALL = {.hw = NULL};
    struct rows rows = {.n = 0};
    struct rows_cells *c = arena_alloc(a, sizeof *c);
    struct import_columns *h = arena_alloc(a, sizeof *h);
    const size_t first = in->n;
    size_t all, met = 0;
    bool more;
    if (!c || !h) return err_nomem(e);
    TRY(count_rows(a, path, &all, e));
    TRY(rows_read_file(a, path, &ALL, &rows, e)); /* all checks; it keeps every row that has a number */
    TRY(rows_cells_open(a, path, c, e));
    TRY(rows_cells_next(c, &more, e));
    import_read_header(c, h);
    TRY(make_room(a, in, all, e));
    TRY(rows_cells_next(c, &more, e));
    while (more) {
        const bool row = met < rows.n && c->row_line == rows.v[met].line;
        if (row || strcmp(import_cell(c, h->kind), ROWS_KIND_CEILING) == 0)
            TRY(take_row(a, c, h, row ? &rows.v[met] : NULL, in, sum, e));
        met += row;
        TRY(rows_cells_next(c, &more, e));
    }
    TRY(drop_repeated(a, in, first, sum, e));
    sum->numberless += rows.lines_n - rows.n;
    return probe_known_add(a, &in->known, in->v + first, in->n - first, e);
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
    const double nan = (double)NAN;
    const struct result_ceilings none = {nan, nan, nan, nan};
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
    struct result like = {.origin = {device, "{}", commands_tool(), command, now},
                          .made = now,
                          .unit = "",
                          .cold = false,
                          .outcome = RESULT_IMPORTED,
                          .reason = "",
                          .ceiling = "",
                          .stop = SAMPLE_GOING,
                          .error_frac = nan,
                          .tolerance_frac = nan,
                          .flops = nan,
                          .vector_flops = nan,
                          .read_bytes = nan,
                          .written_bytes = nan,
                          .footprint_bytes = nan,
                          .piece_bytes = nan,
                          .dram_read_bytes = nan,
                          .dram_write_bytes = nan,
                          .dram_reason = "",
                          .before = none,
                          .after = none,
                          .summary = sample_summarise(NULL, 0, NULL)};
    TRY(probe_store_open(a, v, true, &s, e));
    for (size_t i = 0; i < v->operands_n; i++)
        if (strcmp(v->operands[i], "-") == 0) TRY(keep_input(e));
    struct reading in = {.like = &like};
    TRY(probe_known_read(a, s, &in.known, e));
    TRY(account_open(a, worker, &in.account, e));
    for (size_t i = 0; i < v->operands_n; i++) TRY(read_file(a, v->operands[i], &in, &sum, e));
    TRY(store_add_all(s, in.v, in.n, e));
    return say(a, v, &sum, e);
}
