/* simt -- CUDA on the host, to test kernels where there is no card: each thread of a block is a fiber, run in an order
 * that is chosen, until it waits for others; shuffles, votes, mma and ldmatrix happen when all lanes of their mask have
 * come, as the PTX ISA lays their registers out.
 *
 * It is made to find mistakes, not to be fast:
 *   a missing barrier    a fiber runs on until it must wait, so that what it reads too early is old; no single order
 *                        shows all of them (about a third stay unseen), so tests run several
 *   a missing wait       an asynchronous copy fills its target with NANs when it starts; in the late orders it arrives
 *                        only when it is waited for
 *   a divergent barrier  strict: threads of a block meet at one __syncthreads of the source, none having ended
 *   lanes that miss      of a shuffle's mask; threads that wait for ever
 *   bounds               shared memory has exactly the size of the launch: AddressSanitizer sees what is beyond;
 * without it, guard bytes do at the end of the block. It starts as NANs. alignment            of copies, of ldmatrix
 * rows, and (-fsanitize=alignment) of vector loads Blocks run one after the other, in the order of the fibers. What it
 * cannot find: races that need true concurrency of blocks, and speed. A launch that fails leaves its reason in
 * simt_failure; kernels after it do not run. */
#ifndef RIDGE_KERNELS_SIMT_H
#define RIDGE_KERNELS_SIMT_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* -- for tests -- */

enum simt_order {
    SIMT_FORWARD,  /* the lowest thread that can run, blocks ascending; copies arrive at once */
    SIMT_BACKWARD, /* the highest, blocks descending; copies arrive when they are waited for */
    SIMT_SHUFFLED, /* from a thread that the seed changes; copies arrive when they are waited for */
    SIMT_ORDERS_N
};

/* One mistake that a test puts into a kernel, at one place of its source, to see that it is found. */
enum simt_mistake {
    SIMT_RIGHT,
    SIMT_SKIP_BARRIER, /* __syncthreads does nothing */
    SIMT_SKIP_WARP,    /* __syncwarp does nothing */
    SIMT_WAIT_LESS,    /* kern_copy_wait leaves one group more under way */
    SIMT_SWAP_FIRST,   /* an mma gets registers 1 and 2 of its first factor the other way round */
    SIMT_SWAP_SECOND,  /* registers 0 and 1 of its second */
    SIMT_SHIFT_ROWS,   /* an ldmatrix gets each lane's row from its neighbour */
    SIMT_WRONG_LANE,   /* a shuffle reads of the lane beside */
    SIMT_LESS_SHARED,  /* a launch gets 4 bytes of shared memory too little */
    SIMT_FAR_COPY,     /* an asynchronous copy reads 16 bytes further on, at last beyond the end */
    SIMT_MISTAKES_N
};

struct simt_config {
    enum simt_order order;
    uint64_t seed;
    bool strict; /* barriers as above; else threads that ended count as having come, and any barrier is any other */
    enum simt_mistake mistake;
    unsigned at; /* its place: below simt_places of an earlier run */
};

/* simt_start -- how launches of this thread run from now on; forgets failure and counts. */
void simt_start(const struct simt_config *config);

/* simt_failure -- what the first launch that failed since simt_start was stopped by ("gemm.cu:81: ..."), NULL: none.
 * simt_switches -- how often a fiber gave way since then. */
const char *simt_failure(void);
uint64_t simt_switches(void);

/* simt_places -- of how many places of the source, in the order they were come to since simt_start, a mistake could be
 * made (at most 64); simt_place_name -- "gemm.cu:81". simt_mistaken -- how often the mistake has changed anything. */
unsigned simt_places(enum simt_mistake mistake);
const char *simt_place_name(enum simt_mistake mistake, unsigned at);
uint64_t simt_mistaken(void);

/* -- for kernels: CUDA's names -- */

struct simt_dim {
    unsigned x, y, z;
};

typedef struct {
    unsigned x, y, z, w;
} __attribute__((aligned(16))) uint4;
typedef struct {
    unsigned x, y;
} __attribute__((aligned(8))) uint2;
typedef struct {
    float x, y, z, w;
} __attribute__((aligned(16))) float4;
typedef struct {
    float x, y;
} __attribute__((aligned(8))) float2;

struct simt_place {
    struct simt_dim thread, block, block_size, grid_size;
};

/* Where the fiber that runs is; only inside a kernel. */
const struct simt_place *simt_here(void);

#define threadIdx (simt_here()->thread)
#define blockIdx (simt_here()->block)
#define blockDim (simt_here()->block_size)
#define gridDim (simt_here()->grid_size)

#define KERN_FN static inline __attribute__((unused))
#define KERN_BOTH KERN_FN
#define KERN_UNROLL_LOOP
#define KERN_UNROLL_BY(n)
#define KERN_GLOBAL(name, type, arg, threads)                                                                          \
    static void name##_body(const type arg);                                                                           \
    static void name(const void *simt_arg) { name##_body(*(const type *)simt_arg); }                                   \
    enum { name##_threads = (threads) };                                                                               \
    static void name##_body(const type arg)
#define KERN_GLOBAL_ALONE KERN_GLOBAL
#define KERN_SHARED_MEMORY(name) unsigned char *const name = (unsigned char *)simt_shared()
#define KERN_LAUNCH(name, grid_x, grid_y, grid_z, threads, shared, stream, arg)                                        \
    do {                                                                                                               \
        (void)(stream);                                                                                                \
        simt_launch(#name, name, &(arg), (unsigned)(grid_x), (unsigned)(grid_y), (unsigned)(grid_z),                   \
                    (unsigned)(threads), name##_threads, (shared));                                                    \
    } while (0)

void simt_launch(const char *name, void (*kernel)(const void *), const void *arg, unsigned grid_x, unsigned grid_y,
                 unsigned grid_z, unsigned threads, unsigned threads_max, size_t shared_bytes);
void *simt_shared(void);

/* A place in the source, by which barriers are told apart. */
#define SIMT_SITE __FILE__ ":" SIMT_TEXT(__LINE__)
#define SIMT_TEXT(x) SIMT_TEXT_OF(x)
#define SIMT_TEXT_OF(x) #x

void simt_barrier(const char *site);
#define __syncthreads() simt_barrier(SIMT_SITE)
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}

/* What lanes do together. in: up to SIMT_IN bytes of each; out: what this lane gets. */
enum { SIMT_IN = 48, SIMT_LANES = 32 };
enum simt_op {
    SIMT_SYNC,    /* - -> - */
    SIMT_SHUFFLE, /* value, source lane -> value of that lane; of a lane that is not in the mask: NANs */
    SIMT_BALLOT,  /* value -> the lanes where it is not 0 */
    SIMT_MMA,     /* a[4] b[2] d[4] -> d[4] */
    SIMT_LDMATRIX,
    SIMT_LDMATRIX_TRANSPOSED /* address -> r[4] */
};
void simt_warp(enum simt_op op, const char *site, unsigned mask, const void *in, size_t in_bytes, void *out);

/* Lane of a shuffle's source; width a power of two. */
enum simt_pick { SIMT_PICK_INDEX, SIMT_PICK_XOR, SIMT_PICK_DOWN, SIMT_PICK_UP };
uint32_t simt_shuffle(const char *site, unsigned mask, uint32_t value, enum simt_pick pick, unsigned by);
uint32_t simt_ballot(const char *site, unsigned mask, int predicate);

static inline float __uint_as_float(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
static inline uint32_t __float_as_uint(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
static inline float simt_shuffle_float(const char *site, unsigned mask, float v, enum simt_pick pick, unsigned by)
{
    return __uint_as_float(simt_shuffle(site, mask, __float_as_uint(v), pick, by));
}
static inline int simt_shuffle_int(const char *site, unsigned mask, int v, enum simt_pick pick, unsigned by)
{
    return (int)simt_shuffle(site, mask, (uint32_t)v, pick, by);
}
#define SIMT_SHUFFLE(mask, v, pick, by)                                                                                \
    _Generic((v), float                                                                                                \
             : simt_shuffle_float, int                                                                                 \
             : simt_shuffle_int, default                                                                               \
             : simt_shuffle)(SIMT_SITE, mask, v, pick, (unsigned)(by))
#define __shfl_sync(mask, v, lane) SIMT_SHUFFLE(mask, v, SIMT_PICK_INDEX, lane)
#define __shfl_xor_sync(mask, v, by) SIMT_SHUFFLE(mask, v, SIMT_PICK_XOR, by)
#define __shfl_down_sync(mask, v, by) SIMT_SHUFFLE(mask, v, SIMT_PICK_DOWN, by)
#define __shfl_up_sync(mask, v, by) SIMT_SHUFFLE(mask, v, SIMT_PICK_UP, by)
#define __ballot_sync(mask, predicate) simt_ballot(SIMT_SITE, mask, predicate)
#define __any_sync(mask, predicate) (simt_ballot(SIMT_SITE, mask, predicate) != 0)
#define __all_sync(mask, predicate) (simt_ballot(SIMT_SITE, mask, !(predicate)) == 0)
void simt_sync_warp(const char *site);
#define __syncwarp() simt_sync_warp(SIMT_SITE)

float simt_atomic_add_float(float *at, float v);
unsigned simt_atomic_add_unsigned(unsigned *at, unsigned v);
unsigned atomicXor(unsigned *at, unsigned v);
int simt_atomic_add_int(int *at, int v);
#define atomicAdd(at, v)                                                                                               \
    _Generic((at), float * : simt_atomic_add_float, int * : simt_atomic_add_int, unsigned * : simt_atomic_add_unsigned)( \
        at, v)

#define kern_mma_bf16(d, a, b) simt_mma(SIMT_SITE, d, a, b)
#define kern_ldmatrix(r, row) simt_ldmatrix(SIMT_LDMATRIX, SIMT_SITE, r, row)
#define kern_ldmatrix_transposed(r, row) simt_ldmatrix(SIMT_LDMATRIX_TRANSPOSED, SIMT_SITE, r, row)
void simt_mma(const char *site, float d[4], const uint32_t a[4], const uint32_t b[2]);
void simt_ldmatrix(enum simt_op op, const char *site, uint32_t r[4], const void *row);

#define kern_copy_16(shared, global, valid) simt_copy_16(SIMT_SITE, shared, global, valid)
void simt_copy_16(const char *site, void *shared, const void *global, int valid);
void kern_copy_commit(void);
void simt_copy_wait(const char *site, int n);
#define kern_copy_wait(n) simt_copy_wait(SIMT_SITE, n)

uint32_t kern_pair_bf16(float low, float high);
uint32_t kern_scale_bf16(uint32_t pair, uint32_t by);
static inline float kern_exp2(float x) { return exp2f(x); }
uint4 simt_load_16(const char *site, const void *at);
#define kern_load_once(at) simt_load_16(SIMT_SITE, at)
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
#define __expf(x) expf(x)
#define __fdividef(x, y) ((x) / (y))
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }

#endif
