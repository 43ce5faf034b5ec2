#define _DEFAULT_SOURCE /* _SC_NPROCESSORS_ONLN */
#include "probe/worker/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "calc/base/text.h"

#ifndef RIDGE_VERSION
#define RIDGE_VERSION "unknown"
#endif

/* -- files of the system -- */

/* Text behind "key ... : " in a file of such lines; false when there is none. */
static bool find_line(const char *path, const char *key, char *out, size_t cap)
{
    char line[1024]; /* not a unit */
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        const char *v = strchr(line, ':');
        v = v ? v + 1 : line + strlen(key);
        v += strspn(v, " \t");
        (void)text_clean(out, cap, v, strcspn(v, "\n"));
        found = true;
    }
    if (f) (void)fclose(f);
    return found;
}

static const char *first_line(const char *path, char *out, size_t cap)
{
    return find_line(path, "", out, cap) ? out : "";
}

double device_memory_bytes(void)
{
    char text[64];
    if (!find_line("/proc/meminfo", "MemAvailable:", text, sizeof text)) return 0x1p30;
    return strtod(text, NULL) * 0x1p10 / 2;
}

static void processor_name(char *out, size_t cap)
{
    struct utsname u;
    if (find_line("/proc/cpuinfo", "model name", out, cap)) return;
    (void)snprintf(out, cap, "%s processor", uname(&u) == 0 ? u.machine : "unknown");
}

/* -- identity -- */

static void put(struct out *o, const char *key, const char *value)
{
    out_char(o, ',');
    wire_write_text(o, key);
    out_char(o, ':');
    wire_write_text(o, value);
}

static const char *identity(struct arena *a, const struct kern_machine *m, const char *name, struct err *e)
{
    struct out *o;
    struct utsname u;
    char text[256];
    if (out_memory(a, &o, e) != ERR_OK) return NULL;
    out_str(o, "{\"name\":");
    wire_write_text(o, name);
    static const char *const KEYS[] = {"cpu family", "model\t", "stepping", "microcode"};
    static const char *const NAMES[] = {"family", "model", "stepping", "microcode"};
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        if (find_line("/proc/cpuinfo", KEYS[i], text, sizeof text)) put(o, NAMES[i], text);
    (void)snprintf(text, sizeof text, "%s%s%s%s", m->avx2_fma ? "avx2 fma" : "", m->avx512 ? " avx512" : "",
                   m->avx512_bf16 ? " avx512-bf16" : "", m->avx512_vnni ? " avx512-vnni" : "");
    put(o, "instructions", text);
    out_printf(o, ",\"cores\":%ld,\"threads_used\":1", sysconf(_SC_NPROCESSORS_ONLN));
    out_printf(o, ",\"cache_bytes\":[%.0f,%.0f,%.0f]", m->cache_bytes[0], m->cache_bytes[1], m->cache_bytes[2]);
    if (find_line("/proc/meminfo", "MemTotal:", text, sizeof text))
        out_printf(o, ",\"memory_bytes\":%.0f", strtod(text, NULL) * 0x1p10);
    put(o, "vendor", first_line("/sys/class/dmi/id/sys_vendor", text, sizeof text));
    if (uname(&u) == 0) {
        (void)snprintf(text, sizeof text, "%.60s %.120s %.60s", u.sysname, u.release, u.machine);
        put(o, "system", text);
    }
    put(o, "governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof text));
    put(o, "huge_pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text));
    put(o, "blas", m->blas_name);
    put(o, "compiler", __VERSION__);
    put(o, "worker", RIDGE_VERSION);
    out_char(o, '}');
    return out_text(o, NULL);
}

/* -- kernels -- */

static const char *dtypes_text(struct arena *a, unsigned dtypes)
{
    const char *text = "";
    for (size_t i = 0; i < KERN_DTYPES_N && text; i++)
        if (dtypes & KERN_HAS(i))
            text = arena_printf(a, "%s%s%s", text, *text ? "," : "", kern_dtype_name((enum kern_dtype)i));
    return text;
}

static bool describe_points(struct arena *a, const struct kern *k, struct wire_kernel *out)
{
    struct wire_point *p = arena_array(a, k->points_n + 1, sizeof *p);
    for (size_t i = 0; p && i < k->points_n; i++) {
        const struct kern_point *from = &k->points[i];
        p[i] = (struct wire_point){
            .shape = {.n = k->args_n}, .dtype = kern_dtype_name(from->shape.dtype), .quick = from->quick};
        for (size_t j = 0; j < k->args_n; j++) {
            p[i].shape.arg[j].name = k->args[j].name;
            p[i].shape.arg[j].value = from->shape.v[j];
        }
    }
    out->points = p;
    out->points_n = k->points_n;
    return p != NULL;
}

static bool describe_kernel(struct arena *a, const struct kern_machine *m, const struct kern *k,
                            struct wire_kernel *out)
{
    static const char *const CEILINGS[] = {[KERN_CEILING_NONE] = "",
                                           [KERN_CEILING_COMPUTE] = "compute",
                                           [KERN_CEILING_READ] = "read",
                                           [KERN_CEILING_BANDWIDTH] = "bandwidth"};
    struct wire_arg *args = arena_array(a, k->args_n + 1, sizeof *args);
    struct wire_variant *variants = arena_array(a, k->variants_n + 1, sizeof *variants);
    if (!args || !variants) return false;
    *out = (struct wire_kernel){.name = k->name,
                                .summary = k->summary,
                                .row_kind = k->row_kind,
                                .ceiling = CEILINGS[k->ceiling],
                                .args = args,
                                .args_n = k->args_n,
                                .variants = variants,
                                .variants_n = k->variants_n};
    for (size_t i = 0; i < k->args_n; i++)
        args[i] = (struct wire_arg){k->args[i].name, k->args[i].help, k->args[i].lo, k->args[i].hi};
    for (size_t i = 0; i < k->variants_n; i++) {
        const struct kern_variant *v = &k->variants[i];
        const struct kern_shape any = {.dtype = KERN_FP32};
        const char *lacks = v->lacks ? v->lacks(m, k->points_n ? &k->points[0].shape : &any) : NULL;
        const char *dtypes = dtypes_text(a, v->dtypes);
        if (!dtypes) return false;
        variants[i] = (struct wire_variant){v->name, kern_unit_name(v->unit), lacks ? lacks : "", dtypes, v->library};
    }
    return describe_points(a, k, out);
}

enum err_code device_describe(struct arena *a, const struct kern_machine *m, struct wire_device *out, struct err *e)
{
    size_t n;
    char name[256];
    const struct kern *const *table = kern_table(&n);
    struct wire_kernel *kernels = arena_array(a, n, sizeof *kernels);
    if (!kernels) return err_nomem(e);
    processor_name(name, sizeof name);
    for (size_t i = 0; i < n; i++)
        if (!describe_kernel(a, m, table[i], &kernels[i])) return err_nomem(e);
    *out = (struct wire_device){.name = arena_strndup(a, name, strlen(name)),
                                .identity = identity(a, m, name, e),
                                .memory_bytes = device_memory_bytes(),
                                .cache_bytes = {m->cache_bytes[0], m->cache_bytes[1], m->cache_bytes[2]},
                                .kernels = kernels,
                                .kernels_n = n,
                                .left_out = m->sgemm ? "" : "no OpenBLAS or BLIS is installed: libraries are left out"};
    return out->name && out->identity ? ERR_OK : err_nomem(e);
}

const char *device_shape(const struct kern *k, const struct wire_shape *s, const char *dtype, struct kern_shape *out,
                         char *text, size_t cap)
{
    struct kern_shape shape = {.dtype = KERN_FP32};
    if (!kern_dtype_find(dtype, &shape.dtype)) {
        (void)snprintf(text, cap, "no format %.40s", dtype);
        return text;
    }
    for (size_t i = 0; i < k->args_n; i++)
        if (!wire_shape_get(s, k->args[i].name, &shape.v[i])) {
            (void)snprintf(text, cap, "%s: no %s is given", k->name, k->args[i].name);
            return text;
        }
    for (size_t i = 0; i < s->n; i++) {
        size_t j = 0;
        while (j < k->args_n && strcmp(k->args[j].name, s->arg[i].name) != 0) j++;
        if (j < k->args_n) continue;
        (void)snprintf(text, cap, "%s has no %.40s", k->name, s->arg[i].name);
        return text;
    }
    *out = shape;
    return kern_shape_check(k, out, text, cap);
}
