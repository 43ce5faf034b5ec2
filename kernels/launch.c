/* launch -- what it costs to start work that does nothing: n starts, one after the other, each writing its number.
 *
 * On a CPU a start is a call through a pointer, as the worker calls a kernel, or a parallel region of GNU OpenMP with
 * all its threads, which are awake from the region before it: threads that sleep take longer. The region is entered as
 * gcc's code enters one (libgomp's GOMP_parallel), and each of its threads is counted. On a card it is an empty kernel
 * (launch.cu). Counted: four bytes a start. */
#include <stdatomic.h>

#include "kernels/table.h"

enum { LAUNCHES_MAX = 512 };

static const struct kern_arg ARGS[] = {{"n", 1, LAUNCHES_MAX, "starts, one after the other"}};

static size_t buffers(const struct kern_shape *s, struct kern_buffer *out)
{
    out[0] = (struct kern_buffer){"out", KERN_OUTPUT, KERN_TYPE_I32, (size_t)s->v[0], 0, 1};
    return 1;
}

static void reference(const struct kern_call *c, size_t b, size_t block, double *out)
{
    (void)c, (void)b;
    *out = (double)block;
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)s, (void)b;
    return 1;
}

static void counts(const struct kern_shape *s, struct kern_counts *out)
{
    *out = (struct kern_counts){.written_bytes = 4 * (double)s->v[0]};
}

static double tolerance(const struct kern_shape *s)
{
    (void)s;
    return 1e-12;
}

/* -- tuned -- */

static void write_number(int32_t *out, int32_t i) { out[i] = i; }

static void run_call(const struct kern_call *c)
{
    void (*volatile start)(int32_t *, int32_t) = write_number; /* read anew each time, so that nothing is inlined */
    for (int32_t i = 0; i < (int32_t)c->shape->v[0]; i++) start(c->buffer[0], i);
}

static void come(void *came) { (void)atomic_fetch_add_explicit((atomic_uint *)came, 1, memory_order_relaxed); }

static void run_region(const struct kern_call *c)
{
    const struct kern_machine *m = c->machine;
    atomic_uint came = 0;
    unsigned before = 0;
    for (int32_t i = 0; i < (int32_t)c->shape->v[0]; i++) {
        m->parallel(come, &came, m->threads, 0);
        const unsigned now = atomic_load_explicit(&came, memory_order_relaxed);
        ((int32_t *)c->buffer[0])[i] = now - before == m->threads ? i : -1;
        before = now;
    }
}

static const char *lacks_region(const struct kern_machine *m, const struct kern_shape *s)
{
    (void)s;
    if (!m->parallel) return "no GNU OpenMP (libgomp.so.1) is installed";
    return m->threads < 2 ? "one thread alone" : NULL;
}

static const struct kern_variant VARIANTS[] = {
    {.name = "call", .unit = KERN_UNIT_FP32, .dtypes = KERN_HAS(KERN_FP32), .run = run_call},
    {.name = "openmp",
     .unit = KERN_UNIT_FP32,
     .dtypes = KERN_HAS(KERN_FP32),
     .lacks = lacks_region,
     .run = run_region,
     .library = true},
};

static const struct kern_point POINTS[] = {{{{1}, KERN_FP32}, true}, {{{256}, KERN_FP32}, true}};

const struct kern kern_launch = {
    .name = "launch",
    .summary = "starts of nothing one after the other: what a call, a parallel region or a kernel of a card costs",
    .row_kind = "",
    .ceiling = KERN_CEILING_LAUNCH,
    .args = ARGS,
    .args_n = 1,
    .dtypes = KERN_HAS(KERN_FP32),
    .points = POINTS,
    .points_n = sizeof POINTS / sizeof POINTS[0],
    .buffers = buffers,
    .reference = reference,
    .reference_cost = reference_cost,
    .counts = counts,
    .tolerance = tolerance,
    .variants = VARIANTS,
    .variants_n = sizeof VARIANTS / sizeof VARIANTS[0],
};
