#include "calc/cli/this_cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calc/base/json.h"
#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/cli/store_rows.h"
#include "probe/store.h"

/* What a device is described by. */
enum ceiling {
    PEAK_FP32,
    PEAK_DOT,
    PEAK_TILE,
    PEAK_BYTES,
    READ_MEMORY,
    MOVE_MEMORY,
    READ_CACHE,
    CEILINGS_N = READ_CACHE + HW_CACHES
};

static const char *const CEILING_NAMES[CEILINGS_N] = {"peak fp32",     "peak bf16-dot",  "peak bf16-tile",
                                                      "peak int8-dot", "reading memory", "moving memory",
                                                      "reading L1",    "reading L2",     "reading the last cache"};

/* The best of all sets of one identity: what disturbs a ceiling only ever makes it lower. */
struct ceilings {
    const struct result *run;            /* the newest result of them */
    double best[CEILINGS_N];             /* flops/s, bytes/s; NAN in no set */
    const struct result *of[CEILINGS_N]; /* whose that is */
    double newest[CEILINGS_N];           /* of the set that was measured last */
    const struct result *from;           /* the oldest result with a number */
    int64_t first, last;                 /* ids */
    size_t sets;
};

static bool same_identity(const struct result *x, const struct result *y)
{
    return strcmp(x->origin.device, y->origin.device) == 0 && strcmp(x->origin.identity, y->origin.identity) == 0;
}

static bool same_run(const struct result *x, const struct result *y)
{
    return strcmp(x->origin.started, y->origin.started) == 0 && strcmp(x->origin.command, y->origin.command) == 0 &&
           same_identity(x, y);
}

/* -- what a machine says of itself -- */

struct machine {
    double cache_bytes[HW_CACHES], memory_bytes, threads, processors;
    bool cpu;
};

static enum err_code read_machine(struct arena *a, const char *store, const char *identity, struct machine *out,
                                  struct err *e)
{
    struct json j, v, item;
    *out = (struct machine){.memory_bytes = (double)NAN, .threads = 1};
    TRY(json_parse(a, store, identity, strlen(identity), &j, e));
    out->cpu = json_has(&j, "cores") && json_has(&j, "cache_bytes"); /* the worker of CPUs alone says them */
    if (!out->cpu) return ERR_OK;
    if (json_get(&j, "memory_bytes", &v)) TRY(json_num(&v, &out->memory_bytes, e));
    if (json_get(&j, "cores", &v)) TRY(json_num(&v, &out->processors, e));
    if (json_get(&j, "threads_used", &v)) TRY(json_num(&v, &out->threads, e));
    if (!json_get(&j, "cache_bytes", &v)) return ERR_OK;
    for (size_t i = 0; i < HW_CACHES && json_at(&v, i, NULL, &item); i++) TRY(json_num(&item, &out->cache_bytes[i], e));
    return ERR_OK;
}

/* The cache that a hot result read from: the ceilings' operands are half as large as it. */
static size_t level_of(const struct machine *m, double footprint_bytes)
{
    size_t i = 0;
    while (i < HW_CACHES && !(footprint_bytes <= 0.75 * m->cache_bytes[i])) i++;
    return i;
}

/* Which ceiling a result measures, with or without a number; CEILINGS_N: none of a device. */
static size_t ceiling_of(const struct result *r, const struct machine *m)
{
    if (strcmp(r->ceiling, "compute") == 0)
        return strcmp(r->unit, "fp32") == 0        ? PEAK_FP32
               : strcmp(r->unit, "bf16-dot") == 0  ? PEAK_DOT
               : strcmp(r->unit, "bf16-tile") == 0 ? PEAK_TILE
               : strcmp(r->unit, "int8-dot") == 0  ? PEAK_BYTES
                                                   : CEILINGS_N;
    if (strcmp(r->ceiling, "read") == 0 && r->cold) return READ_MEMORY;
    if (strcmp(r->ceiling, "read") == 0) return READ_CACHE + level_of(m, r->footprint_bytes);
    return strcmp(r->ceiling, "bandwidth") == 0 && r->cold ? MOVE_MEMORY : CEILINGS_N;
}

static void take(const struct result *r, const struct machine *m, struct ceilings *c)
{
    const double time_s = result_time_s(r);
    const size_t i = ceiling_of(r, m);
    if (i >= CEILINGS_N || isnan(time_s)) return;
    const double v = (i <= PEAK_BYTES ? r->flops : r->read_bytes + r->written_bytes) / time_s;
    if (!(v <= c->best[i])) {
        c->best[i] = v;
        c->of[i] = r;
    }
    if (same_run(r, c->run) && !(v <= c->newest[i])) c->newest[i] = v;
    if (!c->from) {
        c->from = r;
        c->first = r->id;
    }
    c->last = r->id;
}

static void gather_sets(const struct result *r, size_t n, const struct machine *m, struct ceilings *c)
{
    const struct result *before = NULL;
    for (size_t i = 0; i < CEILINGS_N; i++) c->best[i] = c->newest[i] = (double)NAN;
    for (size_t i = 0; i < n; i++) {
        if (!*r[i].ceiling || !same_identity(&r[i], c->run)) continue;
        c->sets += !before || !same_run(&r[i], before); /* two at once may count as more */
        before = &r[i];
        take(&r[i], m, c);
    }
}

/* -- what is said of it -- */

/* Codes of a ceiling that its best set tried and no set has a number of. */
static size_t codes_lost(const struct result *r, size_t n, const struct machine *m, const struct ceilings *c,
                         size_t which)
{
    size_t lost = 0;
    for (size_t i = 0; i < n; i++) {
        if (!same_run(&r[i], c->of[which]) || ceiling_of(&r[i], m) != which || !isnan(result_time_s(&r[i]))) continue;
        bool known = false;
        for (size_t j = 0; j < n && !known; j++)
            known = strcmp(r[j].variant, r[i].variant) == 0 && strcmp(r[j].kernel, r[i].kernel) == 0 &&
                    same_identity(&r[j], &r[i]) && ceiling_of(&r[j], m) == which &&
                    (!isnan(result_time_s(&r[j])) || (j < i && same_run(&r[j], &r[i])));
        lost += !known;
    }
    return lost;
}

static const char *listed(struct arena *a, const char *list, const char *word)
{
    return list ? arena_printf(a, "%s%s%s", list, *list ? ", " : "", word) : NULL;
}

/* "; reading memory: 17.67 GB/s in the last set, ..." and how many codes were lost. NULL: no memory. */
static const char *doubt_of(struct arena *a, const struct ceilings *c, size_t i, size_t lost)
{
    static const double BELOW = 0.9;
    const enum units_kind unit = i <= PEAK_BYTES ? UNITS_FLOPS_PER_S : UNITS_BYTES_PER_S;
    char newest[UNITS_TEXT_MAX], best[UNITS_TEXT_MAX];
    const char *text = lost ? arena_printf(a, "; %s: %zu code%s gave no number, so it may be too low", CEILING_NAMES[i],
                                           lost, lost == 1 ? "" : "s")
                            : "";
    if (!text || !(c->newest[i] < BELOW * c->best[i])) return text;
    return arena_printf(a, "%s; %s: %s in the last set, %.0f %% below %s of %s: other work on this machine", text,
                        CEILING_NAMES[i], units_format(newest, unit, c->newest[i]),
                        100 * (1 - c->newest[i] / c->best[i]), units_format(best, unit, c->best[i]),
                        c->of[i]->origin.started);
}

/* What is wrong with the sets. NULL: no memory. */
static const char *doubts(struct arena *a, const struct result *r, size_t n, const struct machine *m,
                          const struct ceilings *c)
{
    const char *text = "", *never = "", *last = "";
    for (size_t i = 0; i < CEILINGS_N; i++) {
        const bool dots = i == PEAK_DOT || i == PEAK_TILE || i == PEAK_BYTES; /* not every CPU has them */
        const bool cache = i >= READ_CACHE;
        if (cache && !(m->cache_bytes[i - READ_CACHE] > 0)) continue;
        if (isnan(c->best[i])) {
            if (!dots) never = listed(a, never, CEILING_NAMES[i]);
            continue;
        }
        if (isnan(c->newest[i])) last = listed(a, last, CEILING_NAMES[i]);
        const char *one = cache ? "" : doubt_of(a, c, i, codes_lost(r, n, m, c, i));
        text = text && one ? arena_printf(a, "%s%s", text, one) : NULL;
    }
    if (!text || !never || !last) return NULL;
    return arena_printf(a, "%s%s%s%s%s", text, *last ? "; the last set is partial, without " : "", last,
                        *never ? "; partial: no set has " : "", never);
}

static const char *say(struct arena *a, const char *store, const struct result *r, size_t n, const struct machine *m,
                       const struct ceilings *c, bool alone)
{
    char best[UNITS_TEXT_MAX];
    const char *of = "", *to = "", *wrong = doubts(a, r, n, m, c);
    if (c->sets > 1) {
        to = arena_printf(a, " to %s", c->run->origin.started);
        of = arena_printf(a, ", the best of %zu sets (reading memory: %s of %s)", c->sets,
                          units_format(best, UNITS_BYTES_PER_S, c->best[READ_MEMORY]),
                          c->of[READ_MEMORY]->origin.started);
    }
    if (!of || !to || !wrong) return NULL;
    return arena_printf(a, "%s%s: %sceilings of %s%s, results %lld to %lld of %s%s%s", c->run->origin.device,
                        alone ? ", one core" : "", c->run->outcome == RESULT_IMPORTED ? "imported " : "",
                        c->from->origin.started, to, (long long)c->first, (long long)c->last, store, of, wrong);
}

/* -- the device -- */

static void describe(const struct ceilings *c, const struct machine *m, const char *store, const char *key,
                     const char *said, struct hw *out)
{
    const double nan = (double)NAN, fp32 = c->best[PEAK_FP32],
                 narrow = fmax(fmax(fp32, c->best[PEAK_DOT]), c->best[PEAK_TILE]);
    const double peaks[HW_DTYPES_N] = {
        [HW_FP32_VECTOR] = fp32, [HW_TF32] = fp32,  [HW_FP16] = fp32,
        [HW_BF16] = narrow,      [HW_FP8] = narrow, [HW_INT8] = fmax(narrow, c->best[PEAK_BYTES]),
        [HW_FP4] = narrow,       [HW_INT4] = narrow};
    *out = (struct hw){.file = store,
                       .key = key,
                       .measured = said,
                       .name = c->run->origin.device,
                       .device_kind = "cpu",
                       .memory_label_bytes = m->memory_bytes,
                       .memory_visible_bytes = m->memory_bytes,
                       .memory_usable_bytes = nan,
                       .bandwidth_bytes_per_s = c->best[READ_MEMORY],
                       .bandwidth_measured_bytes_per_s = c->best[READ_MEMORY],
                       .moved_bytes_per_s = c->best[MOVE_MEMORY],
                       .sm_count = m->threads,
                       .processors = m->processors,
                       .clock_mhz = nan,
                       .sm_version = nan,
                       .l2_bytes = nan,
                       .link_bytes_per_s = nan,
                       .link_pair_bytes_per_s = nan,
                       .link_domain = nan,
                       .fabric_bytes_per_s = nan,
                       .pcie_bytes_per_s = nan,
                       .host_link_bytes_per_s = nan,
                       .power_w = nan,
                       .price_low_usd_per_h = nan,
                       .price_high_usd_per_h = nan,
                       .price_list_usd_per_h = nan};
    for (size_t i = 0; i < HW_DTYPES_N; i++) out->peak_flops_per_s[i] = peaks[i];
    for (size_t i = 0; i < HW_CACHES; i++) {
        out->cache_bytes[i] = m->cache_bytes[i];
        out->cache_bytes_per_s[i] = c->best[READ_CACHE + i];
        if (m->cache_bytes[i] > 0) out->l2_bytes = m->cache_bytes[i];
    }
    for (int f = 0; f < HW_FIELDS_N; f++) {
        const double v = hw_value(out, (enum hw_field)f);
        if (isnan(v)) continue;
        out->origin[f] = (struct hw_origin){.status = HW_READ, .source = said};
    }
}

/* "this-cpu@8"; NULL: no memory. */
static const char *key_of(struct arena *a, int64_t threads)
{
    return threads > 1 ? arena_printf(a, THIS_CPU "@%lld", (long long)threads) : THIS_CPU;
}

enum err_code this_cpu_named(const char *name, bool *named, int64_t *threads, struct err *e)
{
    const size_t len = strlen(THIS_CPU);
    char clean[80];
    *threads = 1;
    *named = strncmp(name, THIS_CPU, len) == 0 && (!name[len] || name[len] == '@');
    if (!*named || !name[len]) return ERR_OK;
    if (units_parse_count(name + len + 1, 1, 1 << 16, threads, NULL) == ERR_OK) return ERR_OK;
    return err_set(e, ERR_USAGE, "%s: wanted " THIS_CPU ", one core, or " THIS_CPU "@N, N threads together (1 to 65536)",
                   text_clean(clean, sizeof clean, name, strlen(name)));
}

enum err_code this_cpu_make(struct arena *a, const char *store, const struct result *r, size_t n, int64_t threads,
                            struct this_cpu *out, struct err *e)
{
    const char *key = key_of(a, threads);
    double other = 0;
    const char *lacks = "";
    if (!key) return err_nomem(e);
    struct machine m;
    struct err unread = {.code = ERR_OK};
    for (size_t end = n; end > 0; end--) {
        const struct result *last = &r[end - 1];
        struct ceilings c = {.run = last};
        if (!*last->ceiling || (end < n && same_identity(last, &r[end]))) continue; /* looked at with the newer ones */
        if (read_machine(a, store, last->origin.identity, &m, &unread) == ERR_NOMEM) return err_nomem(e);
        if (!m.cpu) continue;
        if (m.threads != (double)threads) {
            if (other < 1) other = m.threads;
            continue;
        }
        gather_sets(r, end, &m, &c);
        for (size_t i = 0; i < CEILINGS_N && !*lacks; i++)
            if ((i == PEAK_FP32 || i == READ_MEMORY) && isnan(c.best[i])) lacks = CEILING_NAMES[i];
        if (isnan(c.best[PEAK_FP32]) || isnan(c.best[READ_MEMORY]) || isnan(m.memory_bytes)) continue;
        out->said = say(a, store, r, end, &m, &c, threads == 1);
        if (!out->said) return err_nomem(e);
        describe(&c, &m, store, key, out->said, &out->hw);
        return ERR_OK;
    }
    if (unread.code != ERR_OK) return err_set(e, unread.code, "%s", unread.text);
    char by[48] = "", there[80] = "";
    if (threads > 1) (void)snprintf(by, sizeof by, " --threads %lld", (long long)threads);
    if (other > 1) (void)snprintf(there, sizeof there, " (there are some of " THIS_CPU "@%.0f)", other);
    if (other == 1) /* one is one */
        (void)snprintf(there, sizeof there, " (there are some of one core, " THIS_CPU ")");
    if (*lacks)
        return err_set(
            e, ERR_NO,
            "%s: the ceilings of it in %s have no number of %s: ridge probe ceilings%s --ceilings 1s samples "
            "longer",
            key, store, lacks, by);
    return err_set(e, ERR_NO,
                   "%s: %s has no ceilings of a CPU that were measured on a quiet core%s: ridge probe ceilings%s", key,
                   store, there, by);
}

/* What ridge fit made of its results last. */
static enum err_code find_fitted(struct arena *a, struct store *s, struct this_cpu *cpu, struct err *e)
{
    struct store_fitted f;
    char clean[256];
    TRY(store_last_fitted(a, s, cpu->hw.name, &f, e));
    if (!f.path) return ERR_OK;
    cpu->hw.efficiency = f.path;
    cpu->hw.fitted = arena_printf(a, "fitted to its kernels: %s of %s",
                                  text_clean(clean, sizeof clean, f.path, strlen(f.path)), f.made);
    return cpu->hw.fitted ? ERR_OK : err_nomem(e);
}

/* Ceilings of this machine come before those that files brought of others, and of these as they say. */
static size_t drop_second(struct arena *a, struct result *r, size_t n)
{
    int64_t first = INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const int64_t at = store_precedence(a, &r[i]);
        if (at < first && !isnan(result_time_s(&r[i]))) first = at;
    }
    for (size_t i = 0; i < n; i++)
        if (first == INT64_MAX || store_precedence(a, &r[i]) == first) r[kept++] = r[i];
    return kept;
}

/* The results of a device alone, and by how many threads the newest is. */
static enum err_code pick_device(struct arena *a, const char *store, const char *device, struct result *r, size_t *n,
                                 int64_t *threads, struct err *e)
{
    size_t kept = 0;
    struct machine m = {.threads = 1};
    struct err unread = {.code = ERR_OK};
    for (size_t i = 0; i < *n; i++)
        if (strcasecmp(r[i].origin.device, device) == 0) r[kept++] = r[i];
    *n = kept;
    if (!kept) return err_set(e, ERR_NO, "%s: %s has no ceilings of it", device, store);
    if (read_machine(a, store, r[kept - 1].origin.identity, &m, &unread) == ERR_NOMEM) return err_nomem(e);
    if (m.cpu && m.threads > 1) *threads = (int64_t)m.threads;
    return ERR_OK;
}

/* device: by its name; NULL: this one. */
static enum err_code load(struct arena *a, const char *path, const char *device, int64_t threads, struct this_cpu *out,
                          struct err *e)
{
    static const struct store_access READ = {.write = false, .patience_s = 20};
    const struct store_filter ceilings = {.ceilings = true};
    struct store *s;
    struct result *r;
    size_t n;
    char clean[256];
    const char *where = path ? "" : " (of $XDG_DATA_HOME, else ~/.local/share)";
    if (!path) TRY(store_default_path(a, &path, e));
    const char *name = arena_strndup(a, clean, strlen(text_clean(clean, sizeof clean, path, strlen(path))));
    if (!name) return err_nomem(e);
    if (store_open(a, path, &READ, &s, e) != ERR_OK) {
        if (!e) return ERR_IO;
        if (e->code != ERR_NO) return e->code;
        const char *key = key_of(a, threads);
        char by[48] = "";
        if (threads > 1) (void)snprintf(by, sizeof by, " --threads %lld", (long long)threads);
        return key ? err_set(e, ERR_NO, "%s: no measurements in %s%s yet: ridge probe ceilings%s", key, name, where, by)
                   : err_nomem(e);
    }
    TRY(store_read(a, s, &ceilings, &r, &n, e));
    if (device)
        TRY(pick_device(a, name, device, r, &n, &threads, e));
    else
        n = drop_second(a, r, n);
    struct err senseless = {.code = ERR_OK};
    (void)store_senseless(s, &senseless);
    if (!n && senseless.code != ERR_OK) return err_set(e, senseless.code, "%s", senseless.text);
    const enum err_code made = this_cpu_make(a, name, r, n, threads, out, e);
    if (made == ERR_NO) TRY(store_check(s, e)); /* a page that is gone may hold them */
    TRY(made);
    if (senseless.code != ERR_OK) out->said = arena_printf(a, "%s; %s", out->said, senseless.text);
    out->hw.measured = out->said;
    return out->said ? find_fitted(a, s, out, e) : err_nomem(e);
}

enum err_code this_cpu_load(struct arena *a, const char *path, int64_t threads, struct this_cpu *out, struct err *e)
{
    return load(a, path, NULL, threads, out, e);
}

enum err_code this_cpu_load_device(struct arena *a, const char *path, const char *device, struct this_cpu *out,
                                   struct err *e)
{
    TRY(load(a, path, device, 1, out, e));
    out->hw.key = out->hw.name;
    return ERR_OK;
}
