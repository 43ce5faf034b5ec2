#include "calc/cli/probe_import.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/cli/probe_cells.h"
#include "calc/fit/rows_formats.h"

static int column_of(const struct import_columns *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->names[i], name) == 0) return (int)i;
    return -1;
}

void import_read_header(const struct rows_cells *c, struct import_columns *out)
{
    out->n = c->n;
    for (size_t i = 0; i < c->n; i++) out->names[i] = c->cell[i];
    out->device = column_of(out, "device");
    out->made = column_of(out, "made");
    out->dtype = column_of(out, "dtype");
    out->times = column_of(out, "times_s");
    out->discards = column_of(out, "discards_s");
    out->dram_read = column_of(out, "dram_read_bytes");
    out->dram_write = column_of(out, "dram_write_bytes");
    out->kind = column_of(out, ROWS_KIND_COLUMN);
    out->probed = column_of(out, PROBE_CELLS_KERNEL);
}

const char *import_cell(const struct rows_cells *c, int at) { return at < 0 ? "" : c->cell[at]; }

static enum err_code bad_cell(const struct rows_cells *c, const char *column, const char *wanted, struct err *e)
{
    return err_set(e, ERR_INPUT, "%s: line %zu: %s: wanted %s", c->name, c->row_line, column, wanted);
}

#define TIME_WANTED "a time of day in UTC, 2026-11-30T00:10:39Z"

/* -- samples -- */

/* "1.25e-05 1.3e-05": seconds of samples. */
static enum err_code read_times(struct arena *a, const struct rows_cells *c, const char *column, const char *text,
                                double **out, size_t *n, struct err *e)
{
    char *end;
    *n = 0;
    *out = arena_array(a, strlen(text) / 2 + 1, sizeof **out);
    if (!*out) return err_nomem(e);
    for (const char *at = text; *at; at = end + strspn(end, " ")) {
        const double v = strtod(at, &end);
        if (end == at || (*end && *end != ' ') || !(v > 0) || !isfinite(v) || *n == SAMPLE_MAX)
            return bad_cell(c, column, "seconds of samples, 4096 at most, with blanks between them", e);
        (*out)[(*n)++] = v;
    }
    return ERR_OK;
}

/* The samples of a row, of which its time is the median. */
static enum err_code import_samples(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                                    struct result *r, struct err *e)
{
    const double time_s = r->summary.median_s;
    TRY(read_times(a, c, "times_s", import_cell(c, h->times), &r->times_s, &r->times_n, e));
    TRY(read_times(a, c, "discards_s", import_cell(c, h->discards), &r->discards_s, &r->discards_n, e));
    if (!r->times_n) return ERR_OK;
    double *room = arena_array(a, r->times_n, sizeof *room);
    if (!room) return err_nomem(e);
    r->summary = sample_summarise(r->times_s, r->times_n, room);
    if (fabs(r->summary.median_s - time_s) > 1e-9 * time_s) /* not a unit */
        return bad_cell(c, "times_s", "samples whose median is the row's time", e);
    return ERR_OK;
}

/* The number of two digits at text, or -1 where it is none in lo..hi. */
static int two_digits(const char *text, int lo, int hi)
{
    const int v = 10 * (text[0] - '0') + text[1] - '0';
    return v >= lo && v <= hi ? v : -1;
}

static int month_days(int year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return DAYS[month - 1] + (month == 2 && leap);
}

/* "2026-11-30T00:10:39Z": UTC, as the store has it, but also a day or a month alone: one that a calendar has. */
static bool is_time(const char *text)
{
    static const char FORM[] = "dddd-dd-ddTdd:dd:ddZ";
    size_t i = 0;
    for (; text[i] && i < sizeof FORM - 1; i++)
        if (FORM[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != FORM[i]) return false;
    if (text[i] || (i != sizeof FORM - 1 && i != strlen("2026-11-30") && i != strlen("2026-11"))) return false;
    const int month = two_digits(text + 5, 1, 12);
    const int year = 100 * two_digits(text, 0, 99) + two_digits(text + 2, 0, 99);
    if (month < 0) return false;
    if (i > strlen("2026-11") && two_digits(text + 8, 1, month_days(year, month)) < 0) return false;
    return i < sizeof FORM - 1 || (two_digits(text + 11, 0, 23) >= 0 && two_digits(text + 14, 0, 59) >= 0 &&
                                   two_digits(text + 17, 0, 60) >= 0); /* 60: a leap second */
}

/* Whether it is behind us, or the clocks of two machines may be so far apart: a day. */
static bool is_past(const char *text)
{
    enum { DAY_S = 24 * 60 * 60 };
    char tomorrow[sizeof "2026-11-30T00:10:39Z"];
    const time_t t = time(NULL) + DAY_S;
    struct tm tm;
    if (t <= DAY_S || !gmtime_r(&t, &tm) || !strftime(tomorrow, sizeof tomorrow, "%Y-%m-%dT%H:%M:%SZ", &tm))
        return true;
    return strncmp(text, tomorrow, strlen(text)) <= 0;
}

static enum err_code check_time(const struct rows_cells *c, const char *column, const char *text, struct err *e)
{
    if (!is_time(text)) return bad_cell(c, column, TIME_WANTED, e);
    if (is_past(text)) return ERR_OK;
    return err_set(e, ERR_INPUT, "%s: line %zu: %s: %s is still to come: a clock was wrong, there or here", c->name,
                   c->row_line, column, text);
}

/* A name that tables and messages can show: of a line, and not long. */
bool import_is_name(const char *text)
{
    enum { NAME_MAX_BYTES = 200 };
    char clean[NAME_MAX_BYTES + 4];
    const size_t len = strlen(text);
    return len <= NAME_MAX_BYTES && strcmp(text_clean(clean, sizeof clean, text, len), text) == 0;
}

/* -- a row -- */

/* Columns that are members of a result, or follow from its samples where it has some. */
static bool is_member(const char *name, const struct result *r)
{
    static const char *const MEMBERS[] = {
        "time_s",  "latency_us", "dtype",           "device",           "made",
        "times_s", "discards_s", "dram_read_bytes", "dram_write_bytes", ROWS_KIND_COLUMN};
    static const char *const SUMMED[] = {"spread_frac", "samples", "least_s", "q1_s", "q3_s"};
    for (size_t i = 0; i < sizeof MEMBERS / sizeof MEMBERS[0]; i++)
        if (strcmp(MEMBERS[i], name) == 0) return true;
    for (size_t i = 0; i < sizeof SUMMED / sizeof SUMMED[0]; i++)
        if (strcmp(SUMMED[i], name) == 0) return r->times_n > 0;
    return false;
}

/* What a probe knew of the row. */
static enum err_code import_probed(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                                   struct result *r, struct err *e)
{
    const bool ceiling = strcmp(import_cell(c, h->kind), ROWS_KIND_CEILING) == 0;
    for (size_t i = 0; i < c->n; i++) {
        const bool own = !ceiling && (strcmp(h->names[i], PROBE_CELLS_IDENTITY) == 0 ||
                                      strcmp(h->names[i], PROBE_CELLS_STARTED) == 0);
        struct result unkept = *r; /* those are a ceiling's, and are checked alone */
        if (probe_cells_read(a, h->names[i], c->cell[i], own ? &unkept : r, e) == ERR_OK) {
            if (*unkept.origin.started && own) TRY(check_time(c, PROBE_CELLS_STARTED, unkept.origin.started, e));
            continue;
        }
        if (e && e->code == ERR_INPUT) return err_prepend(e, "%s: line %zu: %s: ", c->name, c->row_line, h->names[i]);
        return e ? e->code : ERR_INPUT;
    }
    if (!wire_list_has("fp32,bf16-dot,bf16-tile,int8-dot,tensor,tensor-fp8,tensor-int8", r->unit)) /* kernel.h */
        return bad_cell(c, "unit", "whose peak counts, of a row of a probe", e);
    if (!import_is_name(r->kernel)) return bad_cell(c, PROBE_CELLS_KERNEL, "the name of a kernel", e);
    if (*r->origin.started) TRY(check_time(c, PROBE_CELLS_STARTED, r->origin.started, e));
    if (ceiling && (!wire_list_has("compute,read,bandwidth,gather,launch", r->ceiling) || strchr(r->ceiling, ',')))
        return bad_cell(c, "ceiling", "compute, read, bandwidth, gather or launch", e);
    if (result_check_rates(r, e) == ERR_OK) return ERR_OK;
    return e ? err_prepend(e, "%s: line %zu: ", c->name, c->row_line) : ERR_INPUT;
}

/* Whether that is a call of a kernel, in a format, which has the work that the row says, and no faster than its
 * ceilings.
 */
static enum err_code check_call(struct arena *a, const struct rows_cells *c, struct account *account,
                                struct result call, const char *dtype, struct err *e)
{
    call.dtype = dtype;
    call.outcome = RESULT_MEASURED;
    enum err_code code = account_check(account, &call, e);
    if (code == ERR_INPUT && e) return err_prepend(e, "%s: line %zu: ", c->name, c->row_line);
    if (code == ERR_OK) code = result_judge(a, &call, e);
    if (code != ERR_OK || call.outcome != RESULT_ABOVE) return code;
    return err_set(e, ERR_INPUT, "%s: line %zu: time_s: %s", c->name, c->row_line, call.reason);
}

/* A number of a row whose shape is known says the same, or is implied. */
static bool agrees(const struct result *r, const struct rows_number *w, double v)
{
    int64_t have;
    if (wire_shape_get(&r->shape, w->column, &have) || (w->own && wire_shape_get(&r->shape, w->own, &have)))
        return v == (double)have;
    return w->absent != ROWS_ONE || v == 1;
}

/* Whole numbers of the row's kind are the shape, further cells stay as they are. Of a ceiling f is NULL. */
static enum err_code import_cells(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                                  const struct rows_format *f, struct result *r, struct err *e)
{
    struct out *cells;
    bool any = false;
    const bool probed = *import_cell(c, h->probed) != '\0';
    const size_t numbers_n = f ? f->numbers_n : 0;
    TRY(out_memory(a, &cells, e));
    out_char(cells, '{');
    for (size_t i = 0; i < c->n; i++) {
        size_t j = 0;
        while (j < numbers_n && !rows_number_is(&f->numbers[j], h->names[i])) j++;
        if (!*c->cell[i] || is_member(h->names[i], r) || (probed && probe_cells_has(h->names[i]))) continue;
        const double v = j < numbers_n ? strtod(c->cell[i], NULL) : (double)NAN;
        if (probed && j < numbers_n && !agrees(r, &f->numbers[j], v))
            return bad_cell(c, h->names[i], "the size that " PROBE_CELLS_SHAPE " says", e);
        if (probed && j < numbers_n) continue;
        if (v == floor(v) && r->shape.n < WIRE_ARGS_MAX) {
            r->shape.arg[r->shape.n].name = h->names[i];
            r->shape.arg[r->shape.n++].value = (int64_t)v;
            continue;
        }
        if (j < numbers_n && !f->numbers[j].mean) return bad_cell(c, h->names[i], "a whole number", e);
        if (any) out_char(cells, ',');
        any = true;
        wire_write_text(cells, h->names[i]);
        out_char(cells, ':');
        wire_write_text(cells, c->cell[i]);
    }
    out_char(cells, '}');
    r->cells = out_text(cells, NULL);
    return r->cells ? ERR_OK : err_nomem(e);
}

static enum err_code read_bytes(const struct rows_cells *c, const char *name, int at, double *out, struct err *e)
{
    char *end;
    const char *text = import_cell(c, at);
    if (!*text) return ERR_OK;
    *out = strtod(text, &end);
    return !*end && *out >= 0 && isfinite(*out) ? ERR_OK : bad_cell(c, name, "bytes", e);
}

/* What a row says of its samples and its state, where it says it. */
static enum err_code check_said(const struct rows_cells *c, const struct import_columns *h, struct err *e)
{
    for (size_t i = 0; i < c->n; i++) {
        char *end;
        const char *text = c->cell[i];
        int64_t precedence;
        if (*text && strcmp(h->names[i], PROBE_CELLS_PRECEDENCE) == 0 &&
            units_parse_count(text, 0, PROBE_CELLS_PRECEDENCE_MAX, &precedence, NULL) != ERR_OK)
            return bad_cell(c, PROBE_CELLS_PRECEDENCE, "how many kinds of rows count before it", e);
        const bool samples = strcmp(h->names[i], "samples") == 0, spread = strcmp(h->names[i], "spread_frac") == 0;
        if (*text && strcmp(h->names[i], "state") == 0 && strcmp(text, "cold") != 0 && strcmp(text, "hot") != 0)
            return bad_cell(c, "state", "cold or hot", e);
        if (!*text || (!samples && !spread)) continue;
        const double v = strtod(text, &end);
        if (*end || !isfinite(v) || v < 0) return bad_cell(c, h->names[i], "zero or more", e);
        if (samples && (v < 1 || v != floor(v))) return bad_cell(c, "samples", "how many there were", e);
    }
    return ERR_OK;
}

/* What a row says of the order of its samples is theirs, or where it has none what that of some can be. */
static enum err_code check_order(const struct rows_cells *c, const struct import_columns *h, const struct result *r,
                                 struct err *e)
{
    static const double SAME = 1e-6; /* of numbers that were printed */
    const struct sample_summary *s = &r->summary;
    const struct {
        const char *column;
        double wanted;
    } order[] = {{"least_s", s->least_s}, {"q1_s", s->q1_s}, {"time_s", s->median_s}, {"q3_s", s->q3_s}};
    double before = 0;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        char *end = NULL;
        const bool time = strcmp(order[i].column, "time_s") == 0; /* or latency_us */
        const char *text = import_cell(c, column_of(h, order[i].column));
        if (!*text && !time) continue;
        const double v = time ? s->median_s : strtod(text, &end);
        if (!time && (*end || !(v > 0) || !isfinite(v))) return bad_cell(c, order[i].column, "seconds", e);
        if (r->times_n && !(fabs(v - order[i].wanted) <= SAME * order[i].wanted))
            return bad_cell(c, order[i].column, "that of times_s", e);
        if (v < before * (1 - SAME))
            return bad_cell(c, order[i].column, "no less than what comes before it in order", e);
        before = v;
    }
    const char *spread = import_cell(c, column_of(h, "spread_frac"));
    if (*spread && r->times_n && !(fabs(strtod(spread, NULL) - s->spread_frac) <= SAME))
        return bad_cell(c, "spread_frac", "that of times_s", e);
    return ERR_OK;
}

/* Work that no device does in the row's time: of one that reaches the limits of result.h in everything. */
static enum err_code check_possible(const struct rows_cells *c, const struct row *row, struct err *e)
{
    struct kernel_work w;
    struct hw most = {.file = "", .key = "", .name = "", .bandwidth_bytes_per_s = RESULT_BYTES_PER_S_MAX};
    for (size_t i = 0; i < HW_DTYPES_N; i++) most.peak_flops_per_s[i] = RESULT_FLOPS_PER_S_MAX;
    most.link_bytes_per_s = most.link_pair_bytes_per_s = most.fabric_bytes_per_s = RESULT_BYTES_PER_S_MAX;
    most.link_domain = most.pcie_bytes_per_s = most.host_link_bytes_per_s = (double)NAN;
    most.sm_count = most.l2_bytes = most.clock_mhz = most.sm_version = (double)NAN;
    if (kernel_work(&row->kernel, &most, &w, NULL) != ERR_OK || !(row->time_s < w.bound_s)) return ERR_OK;
    return err_set(e, ERR_INPUT,
                   "%s: line %zu: time_s: %g flops and %g bytes in %g s, no device does more than %g flops/s and %g "
                   "bytes/s: is time_s in seconds, latency_us in microseconds?",
                   c->name, c->row_line, w.flops, w.bytes, row->time_s, RESULT_FLOPS_PER_S_MAX, RESULT_BYTES_PER_S_MAX);
}

/* One checked row of the file as a result. */
enum err_code import_row(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                         const struct row *row, struct account *account, struct result *r, struct err *e)
{
    r->row_kind = r->kernel = kernel_kind_name(row->kernel.kind);
    r->dtype = *import_cell(c, h->dtype) ? c->cell[h->dtype] : row->dtype;
    r->variant = *row->kernel_name ? row->kernel_name : row->framework;
    r->cold = row->kernel.cold;
    r->summary.median_s = row->time_s;
    if (*import_cell(c, h->made)) r->made = c->cell[h->made];
    TRY(check_time(c, "made", r->made, e));
    if (!*r->origin.device) r->origin.device = import_cell(c, h->device);
    if (!*r->origin.device)
        return err_set(e, ERR_USAGE,
                       "%s: line %zu: no device: --device NAME says what rows were measured on that do not say it",
                       c->name, c->row_line);
    if (!import_is_name(import_cell(c, h->device))) return bad_cell(c, "device", NAME_WANTED, e);
    TRY(check_said(c, h, e));
    TRY(check_possible(c, row, e));
    TRY(read_bytes(c, "dram_read_bytes", h->dram_read, &r->dram_read_bytes, e));
    TRY(read_bytes(c, "dram_write_bytes", h->dram_write, &r->dram_write_bytes, e));
    TRY(import_samples(a, c, h, r, e));
    const char *samples = import_cell(c, column_of(h, "samples"));
    if (*samples && r->times_n && strtod(samples, NULL) != (double)r->times_n)
        return bad_cell(c, "samples", "how many times_s has", e);
    TRY(check_order(c, h, r, e));
    const char *format = *row->kv_dtype ? row->kv_dtype : r->dtype; /* of a kernel that has two that of its cache */
    if (!*import_cell(c, h->probed)) return import_cells(a, c, h, row->format, r, e);
    TRY(import_probed(a, c, h, r, e));
    const struct result call = *r; /* the shape is the kernel's own: further cells come behind it */
    TRY(import_cells(a, c, h, row->format, r, e));
    return check_call(a, c, account, call, format, e);
}

/* A ceiling of the machine that rows were measured on. */
enum err_code import_ceiling(struct arena *a, const struct rows_cells *c, const struct import_columns *h,
                             struct account *account, struct result *r, struct err *e)
{
    char *end;
    const char *time = import_cell(c, column_of(h, "time_s")), *state = import_cell(c, column_of(h, "state"));
    r->row_kind = "";
    r->dtype = import_cell(c, h->dtype);
    r->variant = import_cell(c, column_of(h, "kernel"));
    r->cold = strcmp(state, "cold") == 0;
    r->summary.median_s = strtod(time, &end);
    if (!*time || *end || !(r->summary.median_s > 0) || !isfinite(r->summary.median_s))
        return bad_cell(c, "time_s", "seconds", e);
    r->made = import_cell(c, h->made);
    TRY(check_time(c, "made", r->made, e));
    if (!*r->origin.device) r->origin.device = import_cell(c, h->device);
    if (!*r->origin.device) return bad_cell(c, "device", "what the ceiling is of", e);
    if (!import_is_name(import_cell(c, h->device))) return bad_cell(c, "device", NAME_WANTED, e);
    if (!*import_cell(c, h->probed)) return bad_cell(c, PROBE_CELLS_KERNEL, "what measured the ceiling", e);
    TRY(check_said(c, h, e));
    TRY(import_probed(a, c, h, r, e));
    TRY(check_call(a, c, account, *r, r->dtype, e));
    return import_cells(a, c, h, NULL, r, e);
}
