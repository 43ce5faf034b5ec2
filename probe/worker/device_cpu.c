#define _DEFAULT_SOURCE /* _SC_NPROCESSORS_ONLN */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernels/table.h"
#include "probe/worker/device.h"
#include "probe/worker/processor.h"

#ifndef RIDGE_VERSION
#define RIDGE_VERSION "unknown"
#endif

/* -- files of the system -- */

static const char *first_line(const char *path, char *out, size_t cap)
{
    return processor_find(path, "", out, cap) ? out : "";
}

double device_memory_bytes(const struct device *d)
{
    char text[64];
    (void)d;
    if (!processor_find("/proc/meminfo", "MemAvailable:", text, sizeof text)) return 0x1p30;
    return strtod(text, NULL) * 0x1p10 / 2;
}

/* -- identity -- */

static const char *identity(struct arena *a, const struct device *d, const char *name, struct err *e)
{
    const struct kern_machine *m = &d->machine;
    struct out *o;
    struct utsname u;
    char text[256];
    if (out_memory(a, &o, e) != ERR_OK) return NULL;
    out_str(o, "{\"name\":");
    wire_write_text(o, name);
    static const char *const KEYS[] = {"cpu family",      "model\t",  "stepping",    "microcode",
                                       "CPU implementer", "CPU part", "CPU variant", "CPU revision"};
    static const char *const NAMES[] = {"family",      "model", "stepping", "microcode",
                                        "implementer", "part",  "variant",  "revision"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        if (processor_find("/proc/cpuinfo", KEYS[i], text, sizeof text)) device_put(o, NAMES[i], text);
    (void)snprintf(text, sizeof text, "%s%s%s%s%s%s%s%s", m->avx2_fma ? "avx2 fma" : "", m->avx512 ? " avx512" : "",
                   m->avx512_bf16 ? " avx512-bf16" : "", m->avx512_vnni ? " avx512-vnni" : "",
                   m->amx_bf16 ? " amx-bf16" : "", m->neon ? "neon" : "", m->neon_bf16 ? " bf16" : "",
                   m->neon_dot ? " dotprod" : "");
    device_put(o, "instructions", text);
    if (m->avx512_bf16 || m->neon_bf16)
        device_put(o, "bf16_pairs", m->pairs_slow ? "slower than fp32" : "faster than fp32");
    const double *cache = d->team ? d->cache_bytes : m->cache_bytes;
    out_printf(o, ",\"cores\":%ld,\"threads_used\":%lld", sysconf(_SC_NPROCESSORS_ONLN), (long long)d->threads);
    out_printf(o, ",\"cache_bytes\":[%.0f,%.0f,%.0f]", cache[0], cache[1], cache[2]);
    if (processor_find("/proc/meminfo", "MemTotal:", text, sizeof text))
        out_printf(o, ",\"memory_bytes\":%.0f", strtod(text, NULL) * 0x1p10);
    device_put(o, "vendor", first_line("/sys/class/dmi/id/sys_vendor", text, sizeof text));
    if (uname(&u) == 0) {
        (void)snprintf(text, sizeof text, "%.60s %.120s %.60s", u.sysname, u.release, u.machine);
        device_put(o, "system", text);
    }
    device_put(o, "governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof text));
    device_put(o, "huge_pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text));
    device_put(o, "blas", m->blas_name);
    device_put(o, "compiler", __VERSION__);
    device_put(o, "worker", RIDGE_VERSION);
    out_char(o, '}');
    return out_text(o, NULL);
}

enum err_code device_identity(struct arena *a, const struct device *d, const char **name, const char **text,
                              const char **left_out, struct err *e)
{
    char cpu[256];
    processor_name("/proc/cpuinfo", cpu, sizeof cpu);
    *name =
        d->team ? arena_printf(a, "%s, %lld threads", cpu, (long long)d->threads) : arena_strndup(a, cpu, strlen(cpu));
    *text = identity(a, d, cpu, e);
    *left_out = d->machine.sgemm ? "" : "no OpenBLAS or BLIS is installed: libraries are left out";
    return *name && *text ? ERR_OK : err_nomem(e);
}

/* -- the device -- */

const char *device_program(void) { return "ridge-worker-cpu"; }

bool device_open(struct device *out)
{
    *out = (struct device){.threads = 1, .processors = team_processors()}; /* before one of them is bound */
    kern_machine_open(&out->machine);
    out->kernels = kern_table(&out->kernels_n);
    return true;
}

const char *device_missing(const struct device *d)
{
    (void)d;
    return NULL;
}

const char *device_use_threads(struct device *d, int64_t threads, char *text, size_t cap)
{
    struct team *team = NULL;
    team_close(d->team);
    d->team = NULL;
    d->threads = 1;
    if (threads == 1) return NULL;
    if (threads <= d->processors) team = team_open((unsigned)threads);
    if (!team) {
        (void)snprintf(text, cap, "%lld threads cannot be had: this process may run on %lld processors",
                       (long long)threads, (long long)d->processors);
        return text;
    }
    d->team = team;
    d->threads = threads;
    for (int i = 0; i < 3; i++) {
        const unsigned n = team_caches(team, i + 1); /* unknown: nearer ones are a core's, the last all cores' */
        d->cache_bytes[i] = d->machine.cache_bytes[i] * (n ? n : i < 2 ? (unsigned)threads : 1);
    }
    return NULL;
}

void device_close(struct device *d)
{
    team_close(d->team);
    kern_machine_close(&d->machine);
}
