#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/run_ask.h"
#include "probe/run_code.h"

static const double GATHER_BYTES = 0x1p15;

double run_peak(const struct run_ceilings *c, const char *unit)
{
    for (size_t i = 0; i < c->peaks_n; i++)
        if (strcmp(c->peak[i].unit, unit) == 0) return c->peak[i].per_s;
    return (double)NAN;
}

/* The ceiling of the cache that holds a footprint: the next faster one's up to twice that one's size; NULL none does.
 */
static const struct run_ceiling *hot_ceiling(const struct run *r, double footprint_bytes)
{
    const double *size = r->device.cache_bytes;
    const struct run_ceiling *c = r->ceilings.cache;
    double below = 0;
    for (size_t i = 0; i < RUN_LEVELS; i++) {
        if (size[i] <= 0 || (i > 0 && size[i] <= size[i - 1])) continue;
        if (footprint_bytes <= fmax(size[i], 2 * below)) {
            const bool above = i > 0 && footprint_bytes <= 2 * below && !(c[i].per_s > c[i - 1].per_s);
            return &c[above ? i - 1 : i];
        }
        below = size[i];
    }
    return NULL;
}

double run_hot_rate(const struct run *r, double footprint_bytes)
{
    const struct run_ceiling *c = hot_ceiling(r, footprint_bytes);
    return c ? c->per_s : (double)NAN;
}

static struct run_ceiling *ceiling_of_unit(struct run_ceilings *c, const char *unit)
{
    for (size_t i = 0; i < c->peaks_n; i++)
        if (strcmp(c->peak[i].unit, unit) == 0) return &c->peak[i];
    if (c->peaks_n == RUN_UNITS_MAX) return NULL;
    struct run_ceiling *new = &c->peak[c->peaks_n++];
    *new = (struct run_ceiling){.per_s = (double)NAN};
    (void)snprintf(new->unit, sizeof new->unit, "%s", unit);
    return new;
}

static enum err_code measure_peaks(struct run *r, const struct wire_kernel *k, struct err *e)
{
    for (size_t i = 0; i < k->points_n; i++)
        for (size_t j = 0; j < k->variants_n && !r->stopped; j++) {
            const struct wire_variant *v = &k->variants[j];
            if (*v->lacks || !wire_list_has(v->dtypes, k->points[i].dtype)) continue;
            struct run_ceiling *c = ceiling_of_unit(&r->ceilings, v->unit);
            if (c) TRY(run_try_code(r, k, v, k->points[i].dtype, &k->points[i].shape, false, c, e));
        }
    return ERR_OK;
}

/* Each code of a kernel that starts work: as many starts at once as any of its points has. */
static enum err_code measure_launches(struct run *r, const struct wire_kernel *k, struct err *e)
{
    const struct wire_point *most = NULL;
    struct run_ceilings *c = &r->ceilings;
    for (size_t i = 0; i < k->points_n; i++)
        if (!most || k->points[i].shape.arg[0].value > most->shape.arg[0].value) most = &k->points[i];
    for (size_t j = 0; most && k->args_n == 1 && j < k->variants_n && !r->stopped; j++) {
        const struct wire_variant *v = &k->variants[j];
        if (c->launches_n == RUN_LAUNCHES_MAX) break;
        struct run_ceiling *new = &c->launch[c->launches_n++];
        *new = (struct run_ceiling){.per_s = (double)NAN, .variant = v->name, .why = *v->lacks ? v->lacks : NULL};
        if (!*v->lacks) TRY(run_try_code(r, k, v, most->dtype, &most->shape, false, new, e));
    }
    return ERR_OK;
}

/* The first so many variants of a stream that run here, over a footprint of about so many bytes: its one parameter is
 * elements of an array. */
static enum err_code measure_stream(struct run *r, const struct wire_kernel *k, double bytes, bool cold, size_t most,
                                    struct run_ceiling *c, struct err *e)
{
    if (k->args_n != 1 || !(bytes > 0)) return ERR_OK;
    const struct wire_shape shape = {.n = 1, .arg = {{k->args[0].name, (int64_t)(bytes / 4)}}};
    for (size_t j = 0, n = 0; j < k->variants_n && n < most && !r->stopped; j++) {
        if (*k->variants[j].lacks) continue;
        n++;
        TRY(run_try_code(r, k, &k->variants[j], "fp32", &shape, cold, c, e));
    }
    return ERR_OK;
}

bool run_is_processor(const struct run *r) { return r->device.cache_bytes[0] > 0; }

static double array_bytes(const struct run *r)
{
    return run_is_processor(r) ? fmin(RUN_ARRAY_CORE_BYTES * (double)r->set.threads, RUN_ARRAY_BYTES) : RUN_ARRAY_BYTES;
}

static double last_cache_bytes(const struct run *r)
{
    return r->device.cache_bytes[2] > 0 ? r->device.cache_bytes[2] : 0x1p26;
}

/* The same of memory: the copies of a cold array are more than any cache holds, and one of them takes milliseconds, so
 * that a call is short beside what sampling may take, however large the cache. */
static enum err_code measure_memory(struct run *r, const struct wire_kernel *k, size_t most, struct run_ceiling *c,
                                    struct err *e)
{
    return measure_stream(r, k, fmin(fmin(8 * last_cache_bytes(r), array_bytes(r)), r->device.memory_bytes / 8), true,
                          most, c, e);
}

/* Pieces of about so many bytes in no order; one of their size may have been measured before. NULL in *out: this
 * device has no such kernel, or no room is left. */
static enum err_code measure_gather(struct run *r, double piece_bytes, struct run_ceiling **out, struct err *e)
{
    enum { ROW = 64 }; /* elements of a row, of which pieces are multiples */
    struct run_ceilings *c = &r->ceilings;
    const double piece = fmax(1, floor(piece_bytes / 4 / ROW)) * ROW,
                 pieces = fmax(RUN_PIECES_FEW, floor(fmin(2 * last_cache_bytes(r), array_bytes(r)) / 4 / piece));
    *out = NULL;
    for (size_t i = 0; i < c->gathers_n; i++)
        if (c->gather[i].shape.arg[1].value == (int64_t)piece) *out = &c->gather[i];
    for (size_t i = 0; !*out && i < r->device.kernels_n && !r->stopped && c->gathers_n < RUN_GATHERS_MAX; i++) {
        const struct wire_kernel *k = &r->device.kernels[i];
        if (strcmp(k->ceiling, "gather") != 0 || k->args_n != 2) continue;
        struct run_ceiling *new = &c->gather[c->gathers_n++];
        const struct wire_shape shape = {
            .n = 2, .arg = {{k->args[0].name, (int64_t)(pieces * piece)}, {k->args[1].name, (int64_t)piece}}};
        *new = (struct run_ceiling){.per_s = (double)NAN, .shape = shape};
        for (size_t j = 0; j < k->variants_n && !r->stopped; j++)
            if (!*k->variants[j].lacks) TRY(run_try_code(r, k, &k->variants[j], "fp32", &shape, true, new, e));
        *out = new;
    }
    return ERR_OK;
}

double run_piece_bytes(const struct run_ceiling *c) { return 4 * (double)c->shape.arg[1].value; }

/* Reading and writing together is at least as fast as reading alone. What was not measured is not known, but of a
 * device that has no code which writes reading is all that there is. */
static void at_least_read(const struct run *r, const struct run_ceiling *read, struct run_ceiling *moved)
{
    bool writes = false;
    for (size_t i = 0; i < r->device.kernels_n; i++)
        writes = writes || strcmp(r->device.kernels[i].ceiling, "bandwidth") == 0;
    if (moved->per_s < read->per_s || (!writes && !isnan(read->per_s))) *moved = *read;
}

/* What reads and writes, where it is measured. */
static enum err_code measure_moves(struct run *r, struct err *e)
{
    struct run_ceilings *c = &r->ceilings;
    for (size_t i = 0; i < r->device.kernels_n && !r->stopped; i++)
        if (strcmp(r->device.kernels[i].ceiling, "bandwidth") == 0)
            TRY(measure_memory(r, &r->device.kernels[i], SIZE_MAX, &c->moved, e));
    at_least_read(r, &c->read, &c->moved);
    return ERR_OK;
}

/* Where time is short, moving is measured behind the first cold result that it may bind. */
static bool is_short(const struct run *r) { return r->set.ceilings_until_s > 0; }

enum err_code run_around_move(struct run *r, struct result *x, struct err *e)
{
    static const double SAME = 1.01; /* well below what a prediction is left out for */
    struct run_ceilings *c = &r->ceilings;
    const double all = x->read_bytes + x->written_bytes, read = result_ceilings_of(x).read_bytes_per_s;
    if (!is_short(r) || isnan(c->read.per_s) || !isnan(c->moved.per_s) || c->moved.tries > 0) return ERR_OK;
    if (!(all / read > SAME * result_bound_s(x, x->flops, x->read_bytes, 0))) return ERR_OK;
    c->moved.tries++;
    TRY(measure_moves(r, e));
    x->before.moved_bytes_per_s = c->moved.per_s * (x->before.read_bytes_per_s / c->read.per_s);
    x->after.moved_bytes_per_s = c->moved.per_s * (x->after.read_bytes_per_s / c->read.per_s);
    return ERR_OK;
}

/* What is measured before any job. */
static bool needs_moves(const struct run *r) { return !is_short(r) || r->set.launches; }
static bool needs_caches(const struct run *r) { return !(r->set.cold && is_short(r)); }

/* Groups of codes that a kernel is of such a measurement, and all of them. */
static size_t groups_of(const struct run *r, const struct wire_kernel *k)
{
    const char *of = k->ceiling;
    if (strcmp(of, "compute") == 0) return 1;
    if (strcmp(of, "read") == 0) return !r->set.hot + (needs_caches(r) ? (size_t)RUN_LEVELS : 0);
    if (strcmp(of, "bandwidth") == 0) return !r->set.hot && needs_moves(r);
    return strcmp(of, "gather") == 0 && r->set.launches && !r->set.hot;
}

static size_t groups_n(const struct run *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->device.kernels_n; i++) n += groups_of(r, &r->device.kernels[i]);
    return n;
}

enum err_code run_measure_ceilings(struct run *r, struct err *e)
{
    struct run_ceilings *c = &r->ceilings;
    *c = (struct run_ceilings){.peaks_n = 0};
    c->read.per_s = c->moved.per_s = (double)NAN;
    for (size_t i = 0; i < RUN_LEVELS; i++) c->cache[i].per_s = (double)NAN;
    size_t groups = groups_n(r);
    for (size_t i = 0; i < r->device.kernels_n && !r->stopped; i++) {
        const struct wire_kernel *k = &r->device.kernels[i];
        const bool reads = strcmp(k->ceiling, "read") == 0, moves = strcmp(k->ceiling, "bandwidth") == 0;
        if (r->set.launches && strcmp(k->ceiling, "launch") == 0) TRY(measure_launches(r, k, e));
        if (strcmp(k->ceiling, "compute") == 0) {
            run_code_share(r, &groups);
            TRY(measure_peaks(r, k, e));
        }
        if (!r->set.hot && (reads || (moves && needs_moves(r)))) {
            run_code_share(r, &groups);
            TRY(measure_memory(r, k, SIZE_MAX, reads ? &c->read : &c->moved, e));
        }
        for (size_t l = 0; reads && needs_caches(r) && l < RUN_LEVELS && !r->stopped; l++) {
            run_code_share(r, &groups);
            TRY(measure_stream(r, k, r->device.cache_bytes[l] / 2, false, SIZE_MAX, &c->cache[l], e));
        }
    }
    r->share_until_s = 0;
    at_least_read(r, &c->read, &c->moved);
    struct run_ceiling *gather;
    if (r->set.launches && !r->set.hot && !r->stopped) TRY(measure_gather(r, GATHER_BYTES, &gather, e));
    return ERR_OK;
}

enum { TRIES_MAX = 2, FEW = 2 };

/* A ceiling of cold jobs in a unit that was too noisy, or had no time, once more: where time is short by few codes. */
static enum err_code try_again(struct run *r, const char *unit, bool cold, struct err *e)
{
    struct run_ceilings *c = &r->ceilings;
    const size_t most = run_left_s(r->set.ceilings_until_s) > 0 ? SIZE_MAX : FEW;
    for (size_t i = 0; i < r->device.kernels_n && !r->stopped; i++) {
        const struct wire_kernel *k = &r->device.kernels[i];
        const bool peak = strcmp(k->ceiling, "compute") == 0, read = strcmp(k->ceiling, "read") == 0;
        struct run_ceiling *lacking = read ? &c->read : NULL;
        for (size_t j = 0; peak && j < c->peaks_n; j++)
            if (strcmp(c->peak[j].unit, unit) == 0) lacking = &c->peak[j];
        if (!lacking || !isnan(lacking->per_s) || lacking->tries >= TRIES_MAX || (read && !cold)) continue;
        lacking->tries++;
        lacking->noisy_n = 0; /* another moment */
        if (read) TRY(measure_memory(r, k, most, lacking, e));
        for (size_t p = 0; peak && p < k->points_n; p++)
            for (size_t j = 0; j < k->variants_n && !r->stopped; j++) {
                const struct wire_variant *v = &k->variants[j];
                if (!*v->lacks && strcmp(v->unit, unit) == 0 && wire_list_has(v->dtypes, k->points[p].dtype))
                    TRY(run_try_code(r, k, v, k->points[p].dtype, &k->points[p].shape, false, lacking, e));
            }
    }
    if (cold) at_least_read(r, &c->read, &c->moved);
    return ERR_OK;
}

enum err_code run_choose_again(struct run *r, bool *done, struct err *e)
{
    const double until_s = r->set.ceilings_until_s;
    struct run_ceiling read = {.per_s = (double)NAN}, moved = {.per_s = (double)NAN};
    enum err_code code = ERR_OK;
    *done = r->choices < TRIES_MAX;
    if (!*done) return ERR_OK;
    r->choices++;
    r->set.ceilings_until_s = 0; /* as long as the job has time */
    for (size_t i = 0; i < r->device.kernels_n && !r->stopped && code == ERR_OK; i++) {
        const struct wire_kernel *k = &r->device.kernels[i];
        const bool reads = strcmp(k->ceiling, "read") == 0;
        if (reads || strcmp(k->ceiling, "bandwidth") == 0)
            code = measure_memory(r, k, SIZE_MAX, reads ? &read : &moved, e);
    }
    r->set.ceilings_until_s = until_s;
    TRY(code);
    *done = !r->stopped && !isnan(read.per_s);
    if (!*done) return ERR_OK;
    r->ceilings.read = read;
    at_least_read(r, &read, &moved);
    if (!isnan(moved.per_s)) r->ceilings.moved = moved;
    return ERR_OK;
}

void run_best(const struct run *r, const char *unit, bool cold, struct result_ceilings *out)
{
    const struct run_ceilings *c = &r->ceilings;
    for (size_t i = 0; i < c->peaks_n; i++)
        if (strcmp(c->peak[i].unit, unit) == 0 && !isnan(c->peak[i].per_s))
            out->peak_flops_per_s = c->peak[i].best_per_s;
    if (cold && !isnan(c->read.per_s)) out->read_bytes_per_s = c->read.best_per_s;
}

/* Measure a known ceiling once more; the rate, NAN when it cannot be told now. On a processor it is the median of a
 * moment, in turn with the spells of a job, and few samples tell it. */
static enum err_code again(struct run *r, struct run_ceiling *c, bool cold, double *out, struct err *e)
{
    enum { FEW_SAMPLES = 3 };
    static const double MOMENT_S = 0.02;
    struct result x;
    *out = (double)NAN;
    if (isnan(c->per_s) || r->stopped) return ERR_OK;
    struct wire_job job = run_job_of(r, c->kernel, c->variant, c->dtype, &c->shape, cold);
    const bool flops = *c->unit != '\0';
    job.keep = true;
    job.deadline_s = run_is_processor(r) ? fmin(MOMENT_S, run_ceiling_s(r)) : run_ceiling_s(r);
    TRY(run_measure(r, &job, &x, e));
    if (r->stopped) return ERR_OK;
    if (x.outcome == RESULT_MEASURED || !run_is_processor(r))
        *out = run_code_rate(&x, flops);
    else if (x.outcome == RESULT_NOISY && x.times_n >= FEW_SAMPLES)
        *out = (flops ? x.flops : x.read_bytes + x.written_bytes) / x.summary.median_s;
    if (x.outcome == RESULT_MEASURED && *out > c->best_per_s) c->best_per_s = *out;
    return ERR_OK;
}

/* How fast an array of a footprint is read now that stays in the caches, by the code that reads its cache best. */
static enum err_code again_hot(struct run *r, double footprint_bytes, double *out, struct err *e)
{
    const struct run_ceiling *c = hot_ceiling(r, footprint_bytes);
    *out = (double)NAN;
    if (!c || !c->shape.n) return ERR_OK;
    struct run_ceiling same = *c;
    same.shape.arg[0].value = (int64_t)fmax(1, footprint_bytes / 4);
    return again(r, &same, false, out, e);
}

/* The ceilings now: of memory where cold, else of the caches that hold a footprint, NAN: not known. */
enum err_code run_around(struct run *r, const char *unit, bool cold, double footprint_bytes,
                         struct result_ceilings *out, struct err *e)
{
    struct run_ceilings *c = &r->ceilings;
    const double nan = (double)NAN;
    *out = (struct result_ceilings){nan, nan, nan, nan};
    TRY(try_again(r, unit, cold, e));
    for (size_t i = 0; i < c->peaks_n && isnan(out->peak_flops_per_s); i++)
        if (strcmp(c->peak[i].unit, unit) == 0) TRY(again(r, &c->peak[i], false, &out->peak_flops_per_s, e));
    if (!cold) return again_hot(r, footprint_bytes, &out->read_bytes_per_s, e);
    TRY(again(r, &c->read, true, &out->read_bytes_per_s, e));
    /* what writes was measured once: it is taken to have changed as reading has */
    out->moved_bytes_per_s = c->moved.per_s * (out->read_bytes_per_s / c->read.per_s);
    return ERR_OK;
}

bool run_has_gather(const struct run *r)
{
    size_t i = 0;
    while (i < r->device.kernels_n && strcmp(r->device.kernels[i].ceiling, "gather") != 0) i++;
    return i < r->device.kernels_n;
}

/* How fast pieces are read now that are as large as those of a cold result. */
enum err_code run_around_gather(struct run *r, double piece_bytes, double *out, struct err *e)
{
    struct run_ceiling *c;
    *out = (double)NAN;
    TRY(measure_gather(r, piece_bytes, &c, e));
    return c ? again(r, c, true, out, e) : ERR_OK;
}
