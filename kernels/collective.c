/* collective -- all-reduce: every card has an array, and each gets their sum. all-gather: every card has a part of an
 * array, and each gets the whole.
 *
 * bytes is the array that each card ends with, as rows of collectives have it (NCCL's tests call it the size). Buffers
 * of a card lie on it. Counted, of one card: its input read, its output written, and the additions of its share of the
 * sum, (n - 1) / n an element; what goes over links depends on the way that is taken and is not counted here. */
#include "kernels/collective.h"

#include "kernels/vector.h"

static const struct kern_arg ARGS[] = {
    [COLLECTIVE_CARDS] = {"n_gpus", 2, KERN_DEVICES_MAX, "cards that take part"},
    [COLLECTIVE_BYTES] = {"bytes", 2, INT64_C(1) << 36, "of the array that each ends with"},
};

static size_t cards(const struct kern_shape *s) { return (size_t)s->v[COLLECTIVE_CARDS]; }

static enum kern_type type_of(const struct kern_shape *s)
{
    return s->dtype == KERN_BF16 ? KERN_TYPE_BF16 : s->dtype == KERN_FP16 ? KERN_TYPE_FP16 : KERN_TYPE_F32;
}

void collective_elements(const struct kern_shape *s, bool gathers, size_t *in, size_t *out)
{
    *out = (size_t)s->v[COLLECTIVE_BYTES] / kern_type_bytes(type_of(s));
    *in = gathers ? *out / cards(s) : *out;
}

static const char *refuses_reduce(const struct kern_shape *s)
{
    return s->v[COLLECTIVE_BYTES] % (int64_t)kern_type_bytes(type_of(s)) ? "bytes are no whole elements" : NULL;
}

static const char *refuses_gather(const struct kern_shape *s)
{
    const size_t parts = kern_type_bytes(type_of(s)) * cards(s);
    return (size_t)s->v[COLLECTIVE_BYTES] % parts ? "bytes are no whole elements for each card" : NULL;
}

static size_t describe(const struct kern_shape *s, bool gathers, struct kern_buffer *b)
{
    size_t in, out;
    collective_elements(s, gathers, &in, &out);
    for (size_t r = 0; r < cards(s); r++) {
        b[2 * r] = (struct kern_buffer){"input", KERN_INPUT, type_of(s), in, 1, 0};
        b[2 * r + 1] = (struct kern_buffer){"output", KERN_OUTPUT, type_of(s), out, 0, 1};
    }
    return 2 * cards(s);
}

static unsigned device(size_t b) { return (unsigned)(b / 2); }

static size_t buffers_reduce(const struct kern_shape *s, struct kern_buffer *out) { return describe(s, false, out); }
static size_t buffers_gather(const struct kern_shape *s, struct kern_buffer *out) { return describe(s, true, out); }

static void sum(const struct kern_call *c, size_t b, size_t block, double *out)
{
    (void)b;
    *out = 0;
    for (size_t r = 0; r < cards(c->shape); r++) *out += kern_read(c->buffer[2 * r], type_of(c->shape), block);
}

static void gather(const struct kern_call *c, size_t b, size_t block, double *out)
{
    size_t in, all;
    (void)b;
    collective_elements(c->shape, true, &in, &all);
    *out = kern_read(c->buffer[block / in * 2], type_of(c->shape), block % in);
}

static double reference_cost(const struct kern_shape *s, size_t b)
{
    (void)b;
    return 100 * (double)cards(s); /* so that of several large arrays not all is kept */
}

static void counts(const struct kern_shape *s, bool gathers, struct kern_counts *out)
{
    size_t in, all;
    const double n = (double)cards(s), bytes = (double)kern_type_bytes(type_of(s));
    collective_elements(s, gathers, &in, &all);
    *out = (struct kern_counts){.vector_flops = gathers ? 0 : (n - 1) / n * (double)all,
                                .read_bytes = bytes * (double)in,
                                .written_bytes = bytes * (double)all};
}

static void counts_reduce(const struct kern_shape *s, struct kern_counts *out) { counts(s, false, out); }
static void counts_gather(const struct kern_shape *s, struct kern_counts *out) { counts(s, true, out); }

/* 16 bits: each of up to seven additions rounds to 8 or 11 bits. */
static double tolerance_reduce(const struct kern_shape *s) { return s->dtype == KERN_FP32 ? 1e-5 : 1e-2; }

static double tolerance_gather(const struct kern_shape *s)
{
    (void)s;
    return 0; /* copies */
}

#define ALL (KERN_HAS(KERN_FP32) | KERN_HAS(KERN_BF16) | KERN_HAS(KERN_FP16))
#define COMMON                                                                                                         \
    .row_kind = "collective", .device = device, .args = ARGS, .args_n = sizeof ARGS / sizeof ARGS[0], .dtypes = ALL,   \
    .reference_cost = reference_cost

const struct kern kern_all_reduce = {
    .name = "all-reduce",
    .summary = "the sum of an array of each card, on all of them",
    COMMON,
    .refuses = refuses_reduce,
    .buffers = buffers_reduce,
    .reference = sum,
    .counts = counts_reduce,
    .tolerance = tolerance_reduce,
};

const struct kern kern_all_gather = {
    .name = "all-gather",
    .summary = "the parts of an array that cards have, on all of them",
    COMMON,
    .refuses = refuses_gather,
    .buffers = buffers_gather,
    .reference = gather,
    .counts = counts_gather,
    .tolerance = tolerance_gather,
};
