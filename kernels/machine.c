/* machine -- what this processor can do, and the BLAS that is installed on it. */
#define _GNU_SOURCE /* RTLD_NODELETE */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/table.h"
#include "kernels/vector.h"

#if KERN_X86
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#endif

#if KERN_ARM && defined(__linux__)
#include <sys/auxv.h>
#endif

#if KERN_X86
/* Tiles: the processor has them (cpuid 7, edx: bit 22 for products of bf16, 24 for the registers), and the system lets
 * this process use them, whose state is too large to be saved for all (Linux, Documentation/arch/x86/xstate.rst). */
static bool has_tiles(void)
{
#if defined(__linux__)
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM; not units */
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    return (d >> 22 & d >> 24 & 1u) && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}
#endif

static void find_isa(struct kern_machine *m)
{
#if KERN_X86
    __builtin_cpu_init();
    m->asked = __builtin_cpu_is("intel");
    m->avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    m->avx512 = m->avx2_fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    m->avx512_bf16 = m->avx512 && __builtin_cpu_supports("avx512bf16");
    m->amx_bf16 = m->avx512_bf16 && has_tiles();
    m->avx512_vnni = m->avx512 && __builtin_cpu_supports("avx512vnni");
#elif KERN_ARM
    m->neon = true;
#if defined(__linux__)
    const unsigned long dot = 1ul << 20, bf16 = 1ul << 14; /* ASIMDDP of the first word, BF16 of the second */
    m->neon_dot = (getauxval(AT_HWCAP) & dot) != 0;
    m->neon_bf16 = (getauxval(AT_HWCAP2) & bf16) != 0;
#endif
#else
    (void)m;
#endif
}

static bool read_line(const char *path, char *text, size_t cap)
{
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const bool got = fgets(text, (int)cap, f) != NULL;
    (void)fclose(f);
    if (got) text[strcspn(text, "\n")] = '\0';
    return got;
}

static double cache_size(int index, int level)
{
    char path[96], text[32], *end;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
    if (!read_line(path, text, sizeof text) || strtol(text, NULL, 10) != level) return 0;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
    if (!read_line(path, text, sizeof text) || strcmp(text, "Instruction") == 0) return 0;
    (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    if (!read_line(path, text, sizeof text)) return 0;
    const double n = strtod(text, &end);
    return n * (*end == 'K' ? 0x1p10 : *end == 'M' ? 0x1p20 : 1);
}

static void find_caches(struct kern_machine *m)
{
    for (int level = 1; level <= 3; level++)
        for (int index = 0; index < 8 && m->cache_bytes[level - 1] <= 0; index++)
            m->cache_bytes[level - 1] = cache_size(index, level);
    if (m->cache_bytes[2] <= 0) m->cache_bytes[2] = m->cache_bytes[1]; /* no third level: the second is the last */
}

/* A pointer to a function of the library, as POSIX has dlsym give one. */
static bool find_symbol(void *library, const char *name, void *slot)
{
    void *const p = dlsym(library, name);
    if (p) memcpy(slot, &p, sizeof p);
    return p != NULL;
}

static void find_blas(struct kern_machine *m)
{
    static const char *const LIBRARIES[] = {"libopenblas.so.0", "libblis.so.4"};
    void (*set_threads)(int) = NULL;
    void (*blis_threads)(long) = NULL;
    char *(*config)(void) = NULL;
    const char *(*blis_version)(void) = NULL;
    /* one thread, and no pool of threads that would be started while loading */
    (void)setenv("OPENBLAS_NUM_THREADS", "1", 1);
    (void)setenv("BLIS_NUM_THREADS", "1", 1);
    m->blas_name = "";
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof LIBRARIES[0] && !m->blas; i++) {
        m->blas = dlopen(LIBRARIES[i], RTLD_NOW | RTLD_LOCAL);
        if (!m->blas) continue;
        if (!find_symbol(m->blas, "cblas_sgemm", &m->sgemm)) {
            (void)dlclose(m->blas);
            m->blas = NULL;
            continue;
        }
        if (find_symbol(m->blas, "openblas_set_num_threads", &set_threads)) set_threads(1);
        if (find_symbol(m->blas, "bli_thread_set_num_threads", &blis_threads)) blis_threads(1);
        m->blas_name = i == 0 ? "OpenBLAS" : "BLIS";
        if (find_symbol(m->blas, "openblas_get_config", &config)) m->blas_name = config();
        if (find_symbol(m->blas, "bli_info_get_version_str", &blis_version)) m->blas_name = blis_version();
    }
}

/* It stays loaded: its threads do. */
static void find_openmp(struct kern_machine *m)
{
    int (*threads)(void) = NULL;
    void *const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library || !find_symbol(library, "omp_get_max_threads", &threads)) return;
    if (find_symbol(library, "GOMP_parallel", &m->parallel)) m->threads = (unsigned)threads();
}

/* -- rates -- */

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of a multiply-add of a unit, by its first code that runs here; infinite: none does. */
static double fma_time(const struct kern_machine *m, enum kern_unit unit, enum kern_dtype dtype)
{
    enum { CHAINS = 960, STEPS = 400 };
    _Alignas(64) float input[CHAINS] = {0};
    _Alignas(64) float output[CHAINS];
    const struct kern_shape s = {{CHAINS, STEPS}, dtype};
    const struct kern_call c = {.shape = &s, .machine = m, .buffer = {input, input, input, output}};
    struct kern_counts counts;
    kern_fma.counts(&s, &counts);
    for (size_t i = 0; i < kern_fma.variants_n; i++) {
        const struct kern_variant *v = &kern_fma.variants[i];
        if (v->unit != unit || (v->lacks && v->lacks(m, &s))) continue;
        const double start = seconds();
        v->run(&c);
        return (seconds() - start) / counts.flops;
    }
    return (double)INFINITY;
}

/* The best of some turns of a few microseconds each: rates differ by a factor of two one way or the other (a core of
 * Zen 4 makes twice as many by pairs as in fp32, one of Emerald Rapids half as many), so that no disturbance decides.
 */
static bool find_pairs_slow(const struct kern_machine *m)
{
    enum { TURNS = 12 };
    double pairs = (double)INFINITY, plain = (double)INFINITY;
    for (int i = 0; i < TURNS; i++) {
        plain = fmin(plain, fma_time(m, KERN_UNIT_FP32, KERN_FP32));
        pairs = fmin(pairs, fma_time(m, KERN_UNIT_BF16_DOT, KERN_BF16));
    }
    return isfinite(pairs) && pairs > plain;
}

void kern_machine_open(struct kern_machine *out)
{
    *out = (struct kern_machine){.blas_name = ""};
    find_isa(out);
    find_caches(out);
    find_blas(out);
    find_openmp(out);
    out->pairs_slow = find_pairs_slow(out);
}

void kern_machine_close(struct kern_machine *m)
{
    if (m->blas) (void)dlclose(m->blas);
    *m = (struct kern_machine){.blas_name = ""};
}
