#include "calc/cli/store_rows.h"

#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/base/hash.h"
#include "calc/base/json.h"
#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/cli/probe_cells.h"
#include "calc/cli/probed_rows.h"
#include "calc/fit/rows_formats.h"
#include "calc/fit/shapes.h"
#include "probe/store.h"

/* -- a result -- */

/* A number of the shape, by either name. */
static bool find(const struct wire_shape *s, const struct rows_number *n, int64_t *out)
{
    return wire_shape_get(s, n->column, out) || (n->own && wire_shape_get(s, n->own, out));
}

/* The format of rows whose numbers the shape has, all that it must. */
const struct rows_format *store_row_format(const struct result *r)
{
    int64_t v;
    for (size_t i = 0; i < rows_formats_n; i++) {
        const struct rows_format *f = &rows_formats[i];
        size_t j = 0;
        if (strcmp(kernel_kind_name(f->kind), r->row_kind) != 0) continue;
        while (j < f->numbers_n && (f->numbers[j].absent != ROWS_NEEDED || find(&r->shape, &f->numbers[j], &v))) j++;
        if (j == f->numbers_n) return f;
    }
    return NULL;
}

/* What an imported row says beside its shape: texts, numbers that any row may have, and those that are expected ones.
 */
static bool take_cells(struct arena *a, const struct result *r, const struct rows_format *f, struct row *out)
{
    struct json j, v;
    const char *text;
    if (!r->cells || !*r->cells) return true;
    if (json_parse(a, "cells", r->cells, strlen(r->cells), &j, NULL) != ERR_OK) return false;
    for (size_t i = 0; i < ROWS_TEXTS_N; i++)
        if (json_get(&j, rows_texts[i].column, &v) && json_str(&v, &text, NULL) == ERR_OK)
            memcpy((char *)out + rows_texts[i].offset, &text, sizeof text);
    for (size_t i = 0; i < ROWS_OPTIONAL_N; i++)
        if (json_get(&j, rows_optional[i].column, &v) && json_str(&v, &text, NULL) == ERR_OK)
            *(double *)(void *)((char *)&out->kernel + rows_optional[i].offset) = strtod(text, NULL);
    for (size_t i = 0; i < f->numbers_n; i++)
        if (f->numbers[i].mean && json_get(&j, f->numbers[i].column, &v) && json_str(&v, &text, NULL) == ERR_OK)
            *(double *)(void *)((char *)&out->kernel + f->numbers[i].offset) = strtod(text, NULL);
    return true;
}

/* A cell of an imported row, "" none. */
static const char *cell_of(struct arena *a, const struct result *r, const char *column)
{
    struct json j, v;
    const char *text;
    if (!r->cells || !*r->cells || json_parse(a, "cells", r->cells, strlen(r->cells), &j, NULL) != ERR_OK) return "";
    return json_get(&j, column, &v) && json_str(&v, &text, NULL) == ERR_OK ? text : "";
}

const char *store_state(struct arena *a, const struct result *r)
{
    return r->outcome == RESULT_IMPORTED ? cell_of(a, r, "state") : r->cold ? "cold" : "hot";
}

int64_t store_precedence(struct arena *a, const struct result *r)
{
    int64_t further = 0;
    if (r->outcome != RESULT_IMPORTED) return 0;
    const char *text = cell_of(a, r, PROBE_CELLS_PRECEDENCE);
    if (*text) (void)units_parse_count(text, 0, PROBE_CELLS_PRECEDENCE_MAX, &further, NULL);
    return 1 + further;
}

bool store_is_probed(const struct result *r) { return r->unit && *r->unit; }

/* The peak of the unit that a result was computed with, as the device has it. */
static double peak_of(const struct hw *hw, const char *unit)
{
    static const struct {
        const char *unit;
        enum hw_dtype dtype;
    } UNITS[] = {{"fp32", HW_FP32_VECTOR}, {"bf16-dot", HW_BF16}, {"bf16-tile", HW_BF16}, {"int8-dot", HW_INT8}};
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
        if (strcmp(UNITS[i].unit, unit) == 0) return hw->peak_flops_per_s[UNITS[i].dtype];
    return (double)NAN;
}

void store_calibrate(const struct result *r, const struct hw *hw, struct row *out)
{
    struct kernel_work w;
    const struct result_ceilings c = result_ceilings_of(r);
    const double peak = c.peak_flops_per_s > 0 ? c.peak_flops_per_s : (double)NAN;
    const double read = c.read_bytes_per_s > 0 ? c.read_bytes_per_s : (double)NAN;
    if (r->flops > 0) out->kernel.compute_slower = peak_of(hw, r->unit) / peak;
    if (r->cold)
        out->kernel.memory_slower = hw->bandwidth_bytes_per_s / read;
    else if (read > 0 && kernel_work(&out->kernel, hw, &w, NULL) == ERR_OK && w.memory_s > 0)
        out->kernel.memory_slower = w.bytes / w.memory_s / read;
    out->uncalibrated = (r->flops > 0 && isnan(out->kernel.compute_slower)) || isnan(read);
    out->unbounded =
        out->uncalibrated || result_lacks_move(r, r->flops, r->read_bytes, r->read_bytes + r->written_bytes);
}

bool store_row(struct arena *a, const struct result *r, const char *store, const struct hw *hw, struct row *out)
{
    const struct rows_format *f = store_row_format(r);
    const bool own = r->outcome != RESULT_IMPORTED;
    struct err ignored = {.code = ERR_OK};
    if (!f) return false;
    *out = (struct row){.kernel = {.kind = f->kind, .host = rows_of_host(hw)},
                        .op = r->kernel,
                        .dtype = own && wire_list_has(f->texts, "kv_dtype") ? store_query_dtype(r->dtype) : r->dtype,
                        .kv_dtype = "",
                        .framework = own ? "ridge" : "",
                        .version = "",
                        .kernel_name = r->variant,
                        .device = r->origin.device,
                        .state = store_state(a, r),
                        .file = store,
                        .line = (size_t)r->id,
                        .time_s = result_time_s(r),
                        .imported = !own,
                        .precedence = store_precedence(a, r),
                        .probed = store_is_probed(r)};
    out->kernel.cold = strcmp(out->state, "cold") == 0;
    if (wire_list_has(f->texts, "kv_dtype")) out->kv_dtype = r->dtype;
    for (size_t i = 0; i < f->numbers_n; i++) {
        const struct rows_number *w = &f->numbers[i];
        int64_t v = 1;
        const bool there = find(&r->shape, w, &v) || w->absent == ROWS_ONE;
        *(double *)(void *)((char *)&out->kernel + w->offset) = there ? (double)v : (double)NAN;
    }
    if (!take_cells(a, r, f, out) || f->finish(a, out, &ignored) != ERR_OK) return false;
    if (store_is_probed(r) && out->kernel.host) store_calibrate(r, hw, out);
    return true;
}

const char *store_query_dtype(const char *dtype) { return strcmp(dtype, "fp8") == 0 ? "bf16" : dtype; }

/* -- all of a device -- */

/* The rows alone, whatever else is in the file that holds them and by whatever numbers. */
static const char *hash_rows(struct arena *a, const struct rows *rows)
{
    char text[HASH_TEXT_MAX];
    static const double UNKNOWN = -1;
    uint64_t h = hash_start();
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->v[i];
        h = hash_more(h, r->class_name, strlen(r->class_name) + 1);
        h = hash_more(h, r->family, strlen(r->family) + 1);
        h = hash_more(h, r->state, strlen(r->state) + 1);
        const struct rows_format *f = rows_format_of(&r->kernel);
        for (size_t j = 0; f && j < f->numbers_n; j++) {
            double v;
            memcpy(&v, (const char *)&r->kernel + f->numbers[j].offset, sizeof v);
            h = hash_more(h, isnan(v) ? &UNKNOWN : &v, sizeof v);
        }
        h = hash_more(h, &r->time_s, sizeof r->time_s);
    }
    return arena_strndup(a, hash_text(text, h), HASH_TEXT_MAX - 1);
}

/* Where nobody saw the ceilings around a row of others: so far below what the device can do no error explains it. */
static bool is_impossible(const struct result *r, const struct kernel_work *w)
{
    static const double BELOW = 0.5;
    return r->outcome == RESULT_IMPORTED && !store_is_probed(r) && result_time_s(r) < BELOW * w->credited_bound_s;
}

/* Whether arithmetic takes half of a row's bound or more. */
static bool computes(const struct row *r, const struct hw *hw)
{
    struct kernel_work w;
    if (kernel_work(&r->kernel, hw, &w, NULL) != ERR_OK) return false;
    return 2 * w.compute_s >= w.bound_s;
}

/* Results during which memory, or a peak, was much slower than this machine often reaches (a tenth of its results; of a
 * peak those of the same class): others used it meanwhile. The limit is that of METHOD.md, chosen where errors of rows
 * left out begin to grow. */
static enum err_code find_busy(struct arena *a, const struct hw *hw, bool memory, struct rows *rows, struct err *e)
{
    static const double BUSY = 1 / 0.85;
    double *slower = arena_array(a, rows->n + 1, sizeof *slower), *often = arena_array(a, rows->n + 1, sizeof *often);
    if (!slower || !often) return err_nomem(e);
    for (size_t i = 0; i < rows->n; i++) {
        size_t n = 0, same = 0; /* memory is every row's, a peak its class's: told once */
        while (same < i && !memory && strcmp(rows->v[same].class_name, rows->v[i].class_name) != 0) same++;
        if (same < i) {
            often[i] = often[same];
            continue;
        }
        for (size_t j = 0; j < rows->n; j++) {
            const struct row *r = &rows->v[j];
            const double v = memory ? r->kernel.memory_slower : r->kernel.compute_slower;
            const bool counts = memory ? r->kernel.cold : strcmp(r->class_name, rows->v[i].class_name) == 0;
            if (counts && v > 0) slower[n++] = v;
        }
        gsl_sort(slower, 1, n);
        often[i] = n ? slower[n / 10] : (double)INFINITY;
    }
    for (size_t i = 0; i < rows->n; i++) {
        struct row *r = &rows->v[i];
        const double v = memory ? r->kernel.memory_slower : r->kernel.compute_slower;
        if ((memory ? r->kernel.cold : computes(r, hw)) && v > BUSY * often[i]) r->uncalibrated = true;
    }
    return ERR_OK;
}

static bool is_same_call(const struct row *x, const struct row *y)
{
    const struct shape s = {.kernel = x->kernel, .dtype = shape_dtype(x)};
    return strcmp(x->class_name, y->class_name) == 0 && strcmp(x->kernel_name, y->kernel_name) == 0 &&
           strcmp(x->state, y->state) == 0 && shape_is(&s, y);
}

/* Results of a call that the same code did much faster at another time, of what the ceilings around each allowed: a
 * program beside slowed them all through, by what no ceiling shows (perhaps a thread on the same core that takes turns
 * to issue, which a chain of multiply-adds does not notice). The limit is thrice what results of one call differ by on
 * a quiet core. */
static enum err_code find_slowed(struct arena *a, struct rows *rows, const struct hw *hw, struct err *e)
{
    static const double SLOWED = 1.1;
    struct kernel_work w;
    double *part = arena_array(a, rows->n + 1, sizeof *part);
    if (!part) return err_nomem(e);
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->v[i];
        const bool known = r->kernel.host && (!r->imported || r->probed) && !r->uncalibrated;
        part[i] = known && kernel_work(&r->kernel, hw, &w, NULL) == ERR_OK ? r->time_s / w.bound_s : (double)NAN;
    }
    for (size_t i = 0; i < rows->n; i++)
        for (size_t j = 0; j < rows->n && !isnan(part[i]); j++)
            if (part[i] > SLOWED * part[j] && is_same_call(&rows->v[i], &rows->v[j])) rows->v[i].uncalibrated = true;
    return ERR_OK;
}

enum err_code store_find_noisy(struct arena *a, const struct hw *hw, struct rows *rows, struct err *e)
{
    TRY(find_busy(a, hw, true, rows, e));
    TRY(find_busy(a, hw, false, rows, e));
    return find_slowed(a, rows, hw, e);
}

/* Rows of calls that others with precedence are of: the least before, or the greatest. */
static enum err_code drop_second(struct arena *a, struct rows *rows, bool greatest, size_t *dropped, struct err *e)
{
    size_t kept = 0, first_n = 0;
    bool *second = arena_array(a, rows->n + 1, sizeof *second);
    if (!second) return err_nomem(e);
    for (size_t i = 0; i < rows->n; i++) first_n += rows->v[i].precedence == rows->v[0].precedence;
    for (size_t i = 0; i < rows->n && first_n < rows->n; i++)
        for (size_t j = 0; j < rows->n && !second[i]; j++) {
            const int64_t before = rows->v[i].precedence - rows->v[j].precedence;
            second[i] = (greatest ? before < 0 : before > 0) && is_same_call(&rows->v[i], &rows->v[j]);
        }
    for (size_t i = 0; i < rows->n; i++)
        if (!second[i]) rows->v[kept++] = rows->v[i];
    *dropped = rows->n - kept;
    rows->n = kept;
    return ERR_OK;
}

enum err_code store_rows_make(struct arena *a, const char *store, const struct result *r, size_t n,
                              const struct rows_filter *filter, bool imported, struct rows *out,
                              struct store_left_out *left_out, struct err *e)
{
    struct rows rows = {.n = 0};
    const char *other = NULL;
    size_t unasked = 0;
    *left_out = (struct store_left_out){.of_no_kind = 0};
    TRY(rows_check_kinds(filter->kinds, e));
    rows.v = arena_array(a, n + 1, sizeof *rows.v);
    rows.files = arena_array(a, 1, sizeof *rows.files);
    if (!rows.v || !rows.files) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        struct row *row = &rows.v[rows.n];
        struct kernel_work w;
        if (isnan(result_time_s(&r[i])) || !*r[i].row_kind) continue;
        if (!rows_is_of(filter->hw, r[i].origin.device)) {
            other = r[i].origin.device;
            continue;
        }
        if (filter->kinds && !wire_list_has(filter->kinds, r[i].row_kind)) {
            unasked++;
            continue;
        }
        if (!store_row(a, &r[i], store, filter->hw, row) || kernel_work(&row->kernel, filter->hw, &w, NULL) != ERR_OK) {
            left_out->of_no_kind++;
            continue;
        }
        if (is_impossible(&r[i], &w)) {
            left_out->impossible++;
            continue;
        }
        if (filter->framework && strcmp(filter->framework, row->framework) != 0) {
            unasked++;
            continue;
        }
        left_out->own = left_out->own || r[i].outcome != RESULT_IMPORTED;
        left_out->samples += r[i].times_n;
        left_out->discards += r[i].discards_n;
        rows.n++;
    }
    const char *at = strchr(filter->hw->key, '@'); /* of so many threads */
    if (!rows.n && unasked)
        return err_set(e, ERR_NO, "%s: no rows of %.60s%s%.60s%s%.60s; there are %zu others", store, filter->hw->name,
                       filter->kinds ? ", kind " : "", filter->kinds ? filter->kinds : "",
                       filter->framework ? ", framework " : "", filter->framework ? filter->framework : "", unasked);
    if (!rows.n)
        return err_set(e, ERR_NO, "%s: no results of %.60s that are rows%s%.60s%s: ridge probe run%s%.20s", store,
                       filter->hw->name, other ? " (there are some of " : "", other ? other : "", other ? ")" : "",
                       at ? " --threads " : "", at ? at + 1 : "");
    TRY(drop_second(a, &rows, imported, &left_out->second, e));
    TRY(store_find_noisy(a, filter->hw, &rows, e));
    rows.files_n = 1;
    rows.files[0] = (struct rows_file){.path = store, .n = rows.n, .hash = hash_rows(a, &rows)};
    if (!rows.files[0].hash) return err_nomem(e);
    *out = rows;
    return ERR_OK;
}

/* -- the options -- */

static enum err_code read_store(struct arena *a, const char *path, struct measured *m, const struct rows_filter *filter,
                                struct err *e)
{
    static const struct store_access READ = {.write = false, .patience_s = 20};
    static const struct store_filter ALL = {.kernel = NULL};
    struct store *s;
    struct result *r;
    size_t n;
    char clean[256];
    if (!path) TRY(store_default_path(a, &path, e));
    const char *name = arena_strndup(a, clean, strlen(text_clean(clean, sizeof clean, path, strlen(path))));
    if (!name) return err_nomem(e);
    TRY(store_open(a, path, &READ, &s, e));
    TRY(store_read(a, s, &ALL, &r, &n, e));
    m->from = s;
    if (!n) TRY(store_senseless(s, e));
    return store_rows_make(a, name, r, n, filter, m->imported, &m->rows, &m->left_out, e);
}

/* Rows of files: of one call by one code those count that counted where they come from, as in that store. */
static enum err_code count_first(struct arena *a, struct measured *m, struct err *e)
{
    bool some = false;
    TRY(probed_rows_mark(a, &m->hw, &m->rows, &m->probed, e));
    for (size_t i = 0; i < m->rows.n; i++) some = some || m->rows.v[i].precedence > 0;
    if (m->imported && !some)
        return err_set(
            e, ERR_USAGE,
            "--imported: of these files no row says that others count before it (a column " PROBE_CELLS_PRECEDENCE
            " of ridge probe export)");
    if (some) TRY(drop_second(a, &m->rows, m->imported, &m->left_out.second, e));
    return m->probed ? store_find_noisy(a, &m->hw, &m->rows, e) : ERR_OK;
}

enum err_code measured_senseless(const struct measured *m, struct err *e)
{
    return m->from ? store_senseless(m->from, e) : ERR_OK;
}

enum err_code measured_open(struct arena *a, const struct option_values *v, struct measured *out, struct err *e)
{
    const char *device = option_get(v, "device"), *from = option_get(v, "from"), *path = option_get(v, "store");
    const bool store = strcmp(from, STORE_FROM) == 0;
    *out = (struct measured){.imported = option_given(v, "imported"), .picked = option_get(v, "kind") != NULL};
    if (!store && wire_list_has(from, STORE_FROM) && access(STORE_FROM, F_OK) != 0)
        return err_set(e, ERR_USAGE, "--from: store stands alone: ridge probe import FILE puts rows of files into it");
    int64_t threads;
    bool named;
    TRY(this_cpu_named(device, &named, &threads, e));
    if (named) {
        struct this_cpu cpu;
        TRY(this_cpu_load(a, path, threads, &cpu, e));
        out->hw = cpu.hw;
        out->said = cpu.said;
    } else if (hw_load(a, device, &out->hw, e) != ERR_OK) {
        struct this_cpu cpu;
        if (!e || e->code == ERR_NOMEM) return e ? e->code : ERR_INPUT;
        if (this_cpu_load_device(a, path, device, &cpu, NULL) != ERR_OK) return e->code;
        *e = (struct err){.code = ERR_OK};
        out->hw = cpu.hw;
        out->said = cpu.said;
    }
    const struct rows_filter filter = {
        .hw = &out->hw, .framework = option_get(v, "framework"), .kinds = option_get(v, "kind")};
    if (store) return read_store(a, path, out, &filter, e);
    TRY(rows_read(a, from, &filter, &out->rows, e));
    return count_first(a, out, e);
}
