#include "probe/worker/device.h"

#include "kernels/collective.h"
#include "kernels/cuda.h"
#include "probe/worker/work.h"

#include <stdio.h>
#include <string.h>

void device_put(struct out *o, const char *key, const char *value)
{
    out_char(o, ',');
    wire_write_text(o, key);
    out_char(o, ':');
    wire_write_text(o, value);
}

/* -- kernels -- */

static const char *const CEILINGS[] = {[KERN_CEILING_NONE] = "",         [KERN_CEILING_COMPUTE] = "compute",
                                       [KERN_CEILING_READ] = "read",     [KERN_CEILING_BANDWIDTH] = "bandwidth",
                                       [KERN_CEILING_LAUNCH] = "launch", [KERN_CEILING_GATHER] = "gather"};

static const char *dtypes_text(struct arena *a, unsigned dtypes)
{
    const char *text = "";
    for (size_t i = 0; i < KERN_DTYPES_N && text; i++)
        if (dtypes & KERN_HAS(i))
            text = arena_printf(a, "%s%s%s", text, *text ? "," : "", kern_dtype_name((enum kern_dtype)i));
    return text;
}

static bool describe_points(struct arena *a, const struct kern *k, int64_t threads, struct wire_kernel *out)
{
    struct wire_point *p = arena_array(a, k->points_n + 1, sizeof *p);
    for (size_t i = 0; p && i < k->points_n; i++) {
        const struct kern_point *from = &k->points[i];
        p[i] = (struct wire_point){
            .shape = {.n = k->args_n}, .dtype = kern_dtype_name(from->shape.dtype), .quick = from->quick};
        for (size_t j = 0; j < k->args_n; j++) {
            p[i].shape.arg[j].name = k->args[j].name;
            p[i].shape.arg[j].value = from->shape.v[j] * (j == 0 && k->ceiling == KERN_CEILING_COMPUTE ? threads : 1);
        }
    }
    out->points = p;
    out->points_n = k->points_n;
    return p != NULL;
}

/* Whether kernels/cuda.h lists it: kern_cuda_kv_write is of kv-write. */
static bool has_card_code(const struct kern *k)
{
#define X(name) #name,
    static const char *const NAMES[] = {KERN_CUDA_TABLE(X)};
#undef X
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const char *of = NAMES[i] + strlen("kern_cuda_"), *p = k->name;
        while (*p && (*p == '-' ? '_' : *p) == *of) p++, of++;
        if (!*p && !*of) return true;
    }
    return false;
}

static bool describe_kernel(struct arena *a, const struct device *d, const struct kern *k, struct wire_kernel *out)
{
    const struct kern_machine *m = &d->machine;
    const char *missing = device_missing(d);
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
                                .variants_n = k->variants_n,
                                .card = !d->place && has_card_code(k)};
    for (size_t i = 0; i < k->args_n; i++)
        args[i] = (struct wire_arg){k->args[i].name, k->args[i].help, k->args[i].lo, k->args[i].hi};
    const struct kern_variant **order = arena_array(a, k->variants_n + 1, sizeof *order);
    if (!order) return false;
    kern_order(k, m, order);
    for (size_t i = 0; i < k->variants_n; i++) {
        const struct kern_variant *v = order[i];
        struct kern_shape any = {.dtype = KERN_FP32};
        if (k->points_n) any = k->points[0].shape;
        for (size_t j = k->points_n; j-- > 0;) /* the first that it has the format of */
            if (v->dtypes & KERN_HAS(k->points[j].shape.dtype)) any = k->points[j].shape;
        while (!(v->dtypes & KERN_HAS(any.dtype))) any.dtype = (enum kern_dtype)((any.dtype + 1) % KERN_DTYPES_N);
        const char *lacks = missing ? missing : v->lacks ? v->lacks(m, &any) : NULL;
        const bool splits = !d->place && !v->library && kern_split_find(k);
        if (!lacks && d->team && !splits) lacks = WORK_ONE_THREAD;
        const char *dtypes = dtypes_text(a, v->dtypes);
        if (!dtypes) return false;
        variants[i] = (struct wire_variant){.name = v->name,
                                            .unit = kern_unit_name(v->unit),
                                            .lacks = lacks ? lacks : "",
                                            .dtypes = dtypes,
                                            .library = v->library,
                                            .splits = splits};
    }
    return describe_points(a, k, d->threads, out);
}

enum err_code device_describe(struct arena *a, const struct device *d, struct wire_device *out, struct err *e)
{
    const double *cache = d->team ? d->cache_bytes : d->machine.cache_bytes;
    struct wire_kernel *kernels = arena_array(a, d->kernels_n + 1, sizeof *kernels);
    if (!kernels) return err_nomem(e);
    for (size_t i = 0; i < d->kernels_n; i++)
        if (!describe_kernel(a, d, d->kernels[i], &kernels[i])) return err_nomem(e);
    *out = (struct wire_device){.memory_bytes = device_memory_bytes(d),
                                .cache_bytes = {cache[0], cache[1], cache[2]},
                                .kernels = kernels,
                                .kernels_n = d->kernels_n,
                                .threads = d->threads};
    return device_identity(a, d, &out->name, &out->identity, &out->left_out, e);
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

/* A kernel of this device, or one of several cards, which another worker adds. */
static const struct kern *any_kernel(const struct device *d, const char *name)
{
    static const struct kern *const CARDS[] = {&kern_all_reduce, &kern_all_gather};
    for (size_t i = 0; i < d->kernels_n; i++)
        if (strcmp(d->kernels[i]->name, name) == 0) return d->kernels[i];
    for (size_t i = 0; i < sizeof CARDS / sizeof CARDS[0]; i++)
        if (strcmp(CARDS[i]->name, name) == 0) return CARDS[i];
    return NULL;
}

void device_count(const struct device *d, const struct wire_job *j, struct wire_work *out, char *text, size_t cap)
{
    struct kern_shape shape;
    struct kern_counts c;
    const struct kern *k = any_kernel(d, j->kernel);
    *out = (struct wire_work){.refused = text};
    if (!k) (void)snprintf(text, cap, "no kernel %.40s", j->kernel);
    if (!k || device_shape(k, &j->shape, j->dtype, &shape, text, cap)) return;
    const struct kern_variant *v = kern_variant_find(k, j->variant);
    k->counts(&shape, &c);
    *out = (struct wire_work){.refused = "",
                              .row_kind = k->row_kind,
                              .ceiling = CEILINGS[k->ceiling],
                              .unit = v ? kern_unit_name(v->unit) : "",
                              .flops = c.flops,
                              .vector_flops = c.vector_flops,
                              .read_bytes = c.read_bytes,
                              .written_bytes = c.written_bytes,
                              .piece_bytes = k->piece_bytes ? k->piece_bytes(&shape) : 0};
}
