#include "calc/cli/this_cpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/json.h"
#include "calc/base/text.h"
#include "calc/base/units.h"
#include "probe/store.h"

/* The results of one run: they follow one another but for what other programs stored meanwhile. */
struct ceilings {
    const struct result *run;             /* one result of it */
    double fp32, dot, bytes;              /* flops/s */
    double read, moved, cache[HW_CACHES]; /* bytes/s */
    int64_t first, last;                  /* ids */
};

static bool same_run(const struct result *x, const struct result *y)
{
    return strcmp(x->origin.started, y->origin.started) == 0 && strcmp(x->origin.device, y->origin.device) == 0 &&
           strcmp(x->origin.command, y->origin.command) == 0 && strcmp(x->origin.identity, y->origin.identity) == 0;
}

static void keep_best(double *to, double v)
{
    if (v > *to || isnan(*to)) *to = v;
}

/* -- what a machine says of itself -- */

struct machine {
    double cache_bytes[HW_CACHES], memory_bytes, threads;
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

static void take(const struct result *r, const struct machine *m, struct ceilings *c)
{
    const double time_s = result_time_s(r), bytes = (r->read_bytes + r->written_bytes) / time_s;
    if (!*r->ceiling || isnan(time_s)) return;
    if (strcmp(r->ceiling, "compute") == 0) {
        if (strcmp(r->unit, "fp32") == 0) keep_best(&c->fp32, r->flops / time_s);
        if (strcmp(r->unit, "bf16-dot") == 0) keep_best(&c->dot, r->flops / time_s);
        if (strcmp(r->unit, "int8-dot") == 0) keep_best(&c->bytes, r->flops / time_s);
    } else if (strcmp(r->ceiling, "read") == 0 && r->cold) {
        keep_best(&c->read, bytes);
    } else if (strcmp(r->ceiling, "read") == 0) {
        const size_t level = level_of(m, r->footprint_bytes);
        if (level < HW_CACHES) keep_best(&c->cache[level], bytes);
    } else if (strcmp(r->ceiling, "bandwidth") == 0 && r->cold) {
        keep_best(&c->moved, bytes);
    } else {
        return;
    }
    if (!c->first) c->first = r->id;
    c->last = r->id;
}

/* -- the device -- */

static void describe(const struct ceilings *c, const struct machine *m, const char *store, const char *key,
                     const char *said, struct hw *out)
{
    const double nan = (double)NAN, narrow = fmax(c->fp32, c->dot);
    const double peaks[HW_DTYPES_N] = {
        [HW_FP32_VECTOR] = c->fp32, [HW_TF32] = c->fp32, [HW_FP16] = c->fp32,
        [HW_BF16] = narrow,         [HW_FP8] = narrow,   [HW_INT8] = fmax(narrow, c->bytes),
        [HW_FP4] = narrow,          [HW_INT4] = narrow};
    *out = (struct hw){.file = store,
                       .key = key,
                       .measured = said,
                       .name = c->run->origin.device,
                       .device_kind = "cpu",
                       .memory_label_bytes = m->memory_bytes,
                       .memory_visible_bytes = m->memory_bytes,
                       .memory_usable_bytes = nan,
                       .bandwidth_bytes_per_s = c->read,
                       .bandwidth_measured_bytes_per_s = c->read,
                       .moved_bytes_per_s = c->moved,
                       .sm_count = m->threads,
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
        out->cache_bytes_per_s[i] = c->cache[i];
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

bool this_cpu_named(const char *name, int64_t *threads)
{
    const size_t len = strlen(THIS_CPU);
    *threads = 1;
    if (strncmp(name, THIS_CPU, len) != 0) return false;
    if (!name[len]) return true;
    return name[len] == '@' && units_parse_count(name + len + 1, 2, 1 << 16, threads, NULL) == ERR_OK;
}

enum err_code this_cpu_make(struct arena *a, const char *store, const struct result *r, size_t n, int64_t threads,
                            struct this_cpu *out, struct err *e)
{
    const char *key = key_of(a, threads);
    double other = 0;
    if (!key) return err_nomem(e);
    const double nan = (double)NAN;
    struct machine m;
    struct err unread = {.code = ERR_OK};
    for (size_t end = n; end > 0; end--) {
        const struct result *last = &r[end - 1];
        struct ceilings c = {.run = last, .fp32 = nan, .dot = nan, .bytes = nan, .read = nan, .moved = nan};
        if (!*last->ceiling || (end < n && same_run(last, &r[end]))) continue; /* looked at with its run's last */
        if (read_machine(a, store, last->origin.identity, &m, &unread) == ERR_NOMEM) return err_nomem(e);
        if (!m.cpu) continue;
        if (m.threads != (double)threads) {
            if (other < 1) other = m.threads;
            continue;
        }
        for (size_t i = 0; i < HW_CACHES; i++) c.cache[i] = nan;
        for (size_t i = 0; i < end; i++)
            if (same_run(&r[i], last)) take(&r[i], &m, &c);
        if (isnan(c.fp32) || isnan(c.read) || isnan(m.memory_bytes)) continue;
        out->said = arena_printf(a, "%s%s: ceilings of %s, results %lld to %lld of %s", last->origin.device,
                                 threads > 1 ? "" : ", one core", last->origin.started, (long long)c.first,
                                 (long long)c.last, store);
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

enum err_code this_cpu_load(struct arena *a, const char *path, int64_t threads, struct this_cpu *out, struct err *e)
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
