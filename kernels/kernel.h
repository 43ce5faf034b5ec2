/* kernel -- what a measured kernel is: its shapes, buffers, reference, counts, and the code that is timed.
 *
 * A kernel is one file kernels/x.c with one `const struct kern kern_x`, and one row of the table in kernels/table.c;
 * its CUDA version, kernels/x.cu, gives further variants of the same kernel. The harness (probe/worker/) does the rest:
 * it makes the buffers, fills the inputs, poisons the outputs, compares with the reference, and times cold and hot. A
 * kernel measures nothing, allocates nothing, prints nothing and keeps no state.
 *
 * The prefix is kern_, because kernel_ are the predicted times of calc/time/kernel.h; neither folder sees the other. */
#ifndef RIDGE_KERNELS_KERNEL_H
#define RIDGE_KERNELS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- formats -- */

/* What a buffer holds. Packed formats (int4) are KERN_U8 and counted in bytes. */
enum kern_type {
    KERN_TYPE_F32,
    KERN_TYPE_BF16,
    KERN_TYPE_FP16,
    KERN_TYPE_F8, /* e4m3: 4 exponent bits, 3 of fraction, no infinities (OCP 8-bit floating point, 2023) */
    KERN_TYPE_I8,
    KERN_TYPE_U8,
    KERN_TYPE_I32,
    KERN_TYPES_N
};

size_t kern_type_bytes(enum kern_type type);

/* What a kernel is measured in: the format of its weights or of its cache, a name that rows and tables show. */
enum kern_dtype { KERN_FP32, KERN_BF16, KERN_FP16, KERN_FP8, KERN_INT8, KERN_INT4_G128, KERN_DTYPES_N };

/* kern_dtype_name -- "bf16". kern_dtype_find -- back; false for another text. KERN_HAS -- a bit of kern.dtypes. */
const char *kern_dtype_name(enum kern_dtype dtype);
bool kern_dtype_find(const char *name, enum kern_dtype *out);
#define KERN_HAS(dtype) (1u << (dtype))

/* kern_bf16_from, kern_bf16_to -- bf16 to and from fp32: round to nearest even; NAN stays NAN. */
float kern_bf16_to(uint16_t bits);

/* kern_float -- element i of a buffer of bf16, else of fp32. */
static inline float kern_float(const void *data, bool bf16, size_t i)
{
    return bf16 ? kern_bf16_to(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}
uint16_t kern_bf16_from(float v);

/* kern_read -- element i of a buffer as a double; KERN_TYPE_FP16 included. */
double kern_read(const void *data, enum kern_type type, size_t i);

/* -- shapes -- */

enum { KERN_ARGS_MAX = 16, KERN_BUFFERS_MAX = 16, KERN_DEVICES_MAX = KERN_BUFFERS_MAX / 2 };

/* A shape parameter. Names are those of the columns that measured rows have (calc/fit/rows: m n k; batch kv_len n_heads
 * n_kv_heads head_dim window; num_tokens hidden ...), so that a result is a row. A size that changes the work is a
 * parameter, never a constant in the code. */
struct kern_arg {
    const char *name;
    int64_t lo, hi;
    const char *help; /* "rows of the activations", shown by `ridge probe list` */
};

struct kern_shape {
    int64_t v[KERN_ARGS_MAX]; /* in the order of kern.args */
    enum kern_dtype dtype;
};

/* A shape that is measured when the user names none; quick: also with --quick. */
struct kern_point {
    struct kern_shape shape;
    bool quick;
};

/* -- buffers -- */

enum kern_role {
    KERN_INPUT,  /* filled before, only read */
    KERN_OUTPUT, /* poisoned before (NAN, or 0xaa where the type has none), every element written */
    KERN_STATE,  /* filled before, read and written: a recurrent state, a cache that is appended to */
    KERN_SCRATCH /* undefined before and after, not counted */
};

struct kern_buffer {
    const char *name;
    enum kern_role role;
    enum kern_type type;
    size_t elements;
    double sd;      /* inputs and states: standard deviation of their normals; 0: kern.fill makes them */
    size_t granule; /* outputs and states: elements that one call of the reference computes, divides elements */
};

/* -- the machine, as code that is timed may know it -- */

struct kern_machine {
    bool avx2_fma, avx512, avx512_bf16, avx512_vnni, amx_bf16; /* instruction sets that processor and system have */
    bool neon, neon_bf16, neon_dot;                            /* the same of aarch64 */
    /* It is asked for every line ahead of reading: cores of Intel, which otherwise wait for memory; others fetch rows
     * that are read in order by themselves, lines in pairs, and are held up by what asks for them (probe/METHOD.md) */
    bool asked;
    /* Products of pairs of bf16 take longer here than the same in fp32: measured, with multiply-adds in registers */
    bool pairs_slow;
    double cache_bytes[3]; /* L1 data, L2, last level, of one core's view; 0 unknown */
    void *blas;            /* dlopen handle, NULL: none found */
    const char *blas_name; /* "OpenBLAS 0.3.21 SkylakeX", "" */
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc); /* cblas_sgemm, NULL: none */
    /* GNU OpenMP: a region of so many threads, each calling body(data); NULL: none found */
    void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags);
    unsigned threads; /* of such a region */
    /* of a card; 0 on a CPU */
    unsigned processors, capability; /* how many; compute capability, 90 for 9.0 */
    double shared_bytes;             /* that a block may ask for */
    unsigned cards;                  /* like this one, itself included */
    void *nccl;                      /* struct nccl of all of them; NULL where there is one */
};

/* What one call works on. Buffers are in the order of kern.buffers, each aligned to 64 bytes. */
struct kern_call {
    const struct kern_shape *shape;
    const struct kern_machine *machine;
    void *buffer[KERN_BUFFERS_MAX];
    void *packed;  /* what variant.pack made; NULL without one */
    void *scratch; /* variant.scratch_bytes of it, aligned to 64; NULL without one */
    void *stream;  /* cudaStream_t of a CUDA variant, whose buffers are on the device; NULL on a CPU */
    /* of a call that threads make together (kernels/split.h): which part this is, of how many (0: the whole), and what
     * all of them wait for one another by */
    unsigned part, parts;
    void (*meet)(void *team);
    void *team;
};

/* kern_meet -- wait until all parts of a call are here; nothing where there are none. */
static inline void kern_meet(const struct kern_call *c)
{
    if (c->parts > 1) c->meet(c->team);
}

/* -- the kernel -- */

/* Work of one call, as the algorithm needs it: a multiply-add is 2 flops, each input read once and each output written
 * once, a state both. The bytes of a padded or packed layout beyond that are the variant's own loss and not counted.
 * Derivation in the comment of the kernel; independent of the formulas in calc/, with which tests compare it. */
struct kern_counts {
    double flops;        /* of products */
    double vector_flops; /* the rest: exponentials, norms, conversions; 0 where products are all */
    double read_bytes, written_bytes;
};

/* Whose peak a variant cannot beat: the FMA peak of fp32, or that of a dot product unit of its format. */
enum kern_unit {
    KERN_UNIT_FP32,
    KERN_UNIT_BF16_DOT,
    KERN_UNIT_BF16_TILE,
    KERN_UNIT_INT8_DOT,
    KERN_UNIT_TENSOR, /* of a card: bf16 and fp16 */
    KERN_UNIT_TENSOR_FP8,
    KERN_UNIT_TENSOR_INT8,
    KERN_UNITS_N
};
const char *kern_unit_name(enum kern_unit unit);

/* One implementation. The tuned ones and, where a library has the operation, the library's. */
struct kern_variant {
    const char *name; /* "avx512", "openblas" */
    enum kern_unit unit;
    unsigned dtypes; /* KERN_HAS bits */
    /* NULL when this machine can run the shape, else the reason as a piece of a sentence: "no AVX-512". NULL pointer:
     * always. */
    const char *(*lacks)(const struct kern_machine *m, const struct kern_shape *s);
    /* Weights into the variant's own layout, once and untimed. pack_bytes 0 or NULL: not needed; the packed copy then
     * is what run reads, and cold calls rotate over copies of it. A pack reads the inputs of c and writes c->packed. */
    size_t (*pack_bytes)(const struct kern_shape *s);
    void (*pack)(const struct kern_call *c);
    void (*run)(const struct kern_call
                    *c); /* what is timed; right for any valid shape, also odd ones; one thread, or one of c->parts */
    unsigned packed_inputs; /* bit b: packed stands for buffer b, which run does not read; cold calls leave it out */
    bool library;           /* somebody else's code: measured beside the own, to compare */
    /* What run needs beside the buffers of the kernel, undefined before; NULL: nothing. */
    size_t (*scratch_bytes)(const struct kern_shape *s, const struct kern_machine *m);
};

/* What a kernel measures besides itself. */
enum kern_ceiling {
    KERN_CEILING_NONE,
    KERN_CEILING_COMPUTE,   /* flops/s; its first parameter is independent work, of which each thread gets as much */
    KERN_CEILING_READ,      /* bytes/s, reading: one parameter, elements of an fp32 array */
    KERN_CEILING_BANDWIDTH, /* bytes/s, reading and writing; the same parameter */
    KERN_CEILING_LAUNCH,    /* starts/s; one parameter, how many of them */
    KERN_CEILING_GATHER,    /* bytes/s, reading pieces in no order: elements of an fp32 array, and of a piece */
};

struct kern {
    const char *name;     /* "gemm": lower case, '-' between words */
    const char *summary;  /* one line for `ridge probe list` */
    const char *row_kind; /* kind of measured row that a result is: "gemm" "decode" "prefill" "moe" "scan" "mla_decode"
                             "elementwise" ..., of calc/fit; "" : none yet */
    enum kern_ceiling ceiling;
    const struct kern_arg *args;
    size_t args_n;
    unsigned dtypes; /* KERN_HAS bits */
    const struct kern_point *points;
    size_t points_n;
    /* NULL when the parameters, each within its bounds, fit together, else the reason: "n_heads is no multiple of
     * n_kv_heads". NULL pointer: always. */
    const char *(*refuses)(const struct kern_shape *s);
    /* Describe the buffers (at most KERN_BUFFERS_MAX); returns how many. Sizes must not overflow within the bounds. */
    size_t (*buffers)(const struct kern_shape *s, struct kern_buffer *out);
    /* Of a kernel that runs on several cards at once: on which of them, from 0 on, a buffer lies. NULL: on the only
     * one. */
    unsigned (*device)(size_t b);
    /* Make an input that is not normals (indices, block tables, lengths, quantised weights with scales); called for
     * buffers with sd 0. b is its number; data has the buffer's size; seed decides all. Earlier inputs are in c. */
    void (*fill)(const struct kern_call *c, size_t b, uint64_t seed, void *data);
    /* Elements [block * granule, (block + 1) * granule) of output or state b, by the definition, in double, from the
     * stored inputs. Nothing is shared with the tuned code. Blocks are independent: of large shapes some are checked.
     */
    void (*reference)(const struct kern_call *c, size_t b, size_t block, double *out);
    /* Multiply-adds that one such block costs, for the choice of how many are checked. */
    double (*reference_cost)(const struct kern_shape *s, size_t b);
    void (*counts)(const struct kern_shape *s, struct kern_counts *out);
    /* Bytes of the pieces in which its inputs are read, each in order, that lie in no order: pages of a cache. 0: in
     * one piece, as where the pointer is NULL. */
    double (*piece_bytes)(const struct kern_shape *s);
    /* ||result - reference|| / ||reference|| that passes: 1e-5 where all is fp32, 1e-2 with bf16 storage of results;
     * say the reason where it is more. */
    double (*tolerance)(const struct kern_shape *s);
    const struct kern_variant *variants;
    size_t variants_n;
};

/* kern_table -- all kernels in the order they are listed; kern_find -- by name, NULL unknown. */
const struct kern *const *kern_table(size_t *n);
const struct kern *kern_find(const char *name);

/* kern_variant_find -- a variant of a kernel by name, NULL unknown. kern_pack_room -- its pack_bytes in whole cache
 * lines, for several packed weights one behind the other. */
const struct kern_variant *kern_variant_find(const struct kern *k, const char *name);
size_t kern_pack_room(const struct kern_variant *v, const struct kern_shape *s);

/* kern_order -- the variants of a kernel as this machine has them, best first, variants_n pointers: as in the table,
 * but where pairs are slow what multiplies by them stands behind the fp32 code of the same format that is next. */
void kern_order(const struct kern *k, const struct kern_machine *m, const struct kern_variant **out);

/* kern_shape_check -- NULL when the shape is within bounds and the kernel takes it in this format, else the reason,
 * written to text. */
const char *kern_shape_check(const struct kern *k, const struct kern_shape *s, char *text, size_t cap);

/* -- random numbers, the same on every machine -- */

/* kern_hash -- 64 well-mixed bits of (seed, i). kern_normal -- element i of the standard normals of a seed (Box and
 * Muller, 1958). kern_fill_normal -- n normals times sd as elements of a type. kern_fill_order -- 0 .. n - 1 in random
 * order (Fisher and Yates): pages, slots. */
uint64_t kern_hash(uint64_t seed, uint64_t i);
double kern_normal(uint64_t seed, uint64_t i);
void kern_fill_normal(void *data, enum kern_type type, size_t n, double sd, uint64_t seed);
void kern_fill_order(int32_t *data, size_t n, uint64_t seed);

/* -- the machine -- */

/* kern_machine_open -- what this processor has; loads OpenBLAS or BLIS when one is installed, limited to one thread.
 * kern_machine_close -- unloads it. */
void kern_machine_open(struct kern_machine *out);
void kern_machine_close(struct kern_machine *m);

#endif
