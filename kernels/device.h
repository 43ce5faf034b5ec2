/* device -- what a .cu file is written in: CUDA, in the part of C++ that is also C, so that nvcc compiles it for a card
 * and a C compiler, with kernels/simt/, for the host.
 *
 * A kernel takes one struct by value and is written
 *     KERN_GLOBAL(name, struct args, a, threads) { ... a.m ... }
 * and started with KERN_LAUNCH. threadIdx, blockIdx, blockDim, gridDim, __syncthreads, __syncwarp, the shuffles, votes
 * and atomics of the CUDA C++ Programming Guide (section 10) are as there; the instructions that C++ has no name for
 * are the functions below, under nvcc as inline PTX (PTX ISA 8.x, chapter 9.7), on the host as kernels/simt/simt.h.
 * Types are those of C: bf16 is its 16 bits. Templates are functions inlined with constant arguments. */
#ifndef RIDGE_KERNELS_DEVICE_H
#define RIDGE_KERNELS_DEVICE_H

#ifdef __CUDACC__
extern "C" {
#include "kernels/cuda.h"
}
#else
#include "kernels/cuda.h"
#endif

enum { KERN_WARP = 32 };
#define KERN_ALL 0xffffffffu /* every lane of a warp */

#ifdef __CUDACC__

#include <cuda_runtime.h>

#define KERN_FN static __device__ __forceinline__
#define KERN_BOTH static __host__ __device__ __forceinline__ /* also for the host, to plan a launch */
#define KERN_UNROLL_LOOP _Pragma("unroll")
#define KERN_UNROLL_BY(n) _Pragma(#n) /* KERN_UNROLL_BY(unroll 2): where all would take too many registers */
/* The kernel; at most `threads` threads in a block. */
#define KERN_GLOBAL(name, type, arg, threads)                                                                          \
    static __global__ void __launch_bounds__(threads) name(const __grid_constant__ type arg)
/* One whose blocks need not share a processor: it may have all registers. */
#define KERN_GLOBAL_ALONE(name, type, arg, threads)                                                                    \
    static __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ type arg)
/* The block's shared memory, whose size the launch says. */
#define KERN_SHARED_MEMORY(name) extern __shared__ __align__(128) unsigned char name[]
/* grid_x .. of blocks; beyond 48 KiB a block's shared memory has to be asked for (Programming Guide, 20.7). */
#define KERN_LAUNCH(name, grid_x, grid_y, grid_z, threads, shared, stream, arg)                                        \
    do {                                                                                                               \
        if ((shared) > 48u * 1024u) /* not a unit */                                                                   \
            cudaFuncSetAttribute(name, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(shared));                    \
        name<<<dim3((unsigned)(grid_x), (unsigned)(grid_y), (unsigned)(grid_z)), (unsigned)(threads), (shared),        \
               (cudaStream_t)(stream)>>>(arg);                                                                         \
    } while (0)

KERN_FN uint32_t kern_shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* d[16x8] += a[16x16] * b[16x8], bf16 in, fp32 out. With g = lane / 4 and t = lane % 4: a[0..3] hold pairs of columns
 * 2t of rows g, g + 8, and columns 2t + 8 of rows g, g + 8; b[0..1] pairs of rows 2t, 2t + 8 of column g; d[0..1] is
 * row g, d[2..3] row g + 8, columns 2t and 2t + 1 (PTX ISA, 9.7.14, "mma.m16n8k16"). */
KERN_FN void kern_mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four 8x8 matrices of 16 bits from shared memory: lane i points at row i % 8 (16 bytes, aligned) of matrix i / 8; r[j]
 * gets of matrix j row lane / 4, columns 2 * (lane % 4) and one more. transposed: of its transpose. */
KERN_FN void kern_ldmatrix(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(kern_shared_address(row))
                 : "memory");
}
KERN_FN void kern_ldmatrix_transposed(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(kern_shared_address(row))
                 : "memory");
}

/* 16 bytes from global to shared memory, both aligned to 16, in the background; from `valid` (0..16) on zeros. What a
 * thread copied it sees after kern_copy_wait(n), which leaves its n last groups under way; others see it after a
 * barrier that follows. kern_copy_commit ends a group. n is a constant. */
KERN_FN void kern_copy_16(void *shared, const void *global, int valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(kern_shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(valid)
                 : "memory");
}
KERN_FN void kern_copy_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
#define kern_copy_wait(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")

/* Two fp32 as bf16 in 32 bits, the first in the low half: round to nearest even. */
KERN_FN uint32_t kern_pair_bf16(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* Each half of a pair of bf16 times that of another, to the nearest; subnormal ones too. */
KERN_FN uint32_t kern_scale_bf16(uint32_t pair, uint32_t by)
{
    uint32_t product;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(pair), "r"(by), "r"(0x80008000u)); /* and -0 */
    return product;
}

/* 2^x, as the special function unit has it. */
KERN_FN float kern_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 16 bytes from global memory past the first cache: for data that is read once. */
KERN_FN uint4 kern_load_once(const void *global) { return __ldcs((const uint4 *)global); }

#else
#include "kernels/simt/simt.h"
#endif

/* An fp32 as e4m3, to the nearest, even of two as near; beyond 448 that; NAN 0x7f. By integers, and by a sum whose last
 * bit is 2^-9 below the smallest normal number, 2^-6. */
KERN_FN uint32_t kern_one_e4m3(float v)
{
    const uint32_t bits = __float_as_uint(v), sign = bits >> 24 & 0x80u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return sign | 0x7fu;
    if (size >= 0x43e00000u) return sign | 0x7eu; /* 448 and more */
    if (size < 0x3c800000u) return sign | (__float_as_uint(__uint_as_float(size) + 16384.0f) & 0xfu);
    return sign |
           (((size + 0x7ffffu + (size >> 20 & 1u)) >> 20) - (120u << 3)); /* exponents are biased by 127, and 7 */
}

/* Two of them, the first in the low byte: an instruction from compute capability 8.9 on. */
KERN_FN uint32_t kern_pair_e4m3(float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return kern_one_e4m3(low) | kern_one_e4m3(high) << 8;
#endif
}

/* Two e4m3, the high bytes of a pair's halves, as bf16: their bits in its places are 2^-120 of it, as the exponents are
 * biased by 7 and 127, subnormal ones too. There are no NANs. */
KERN_FN uint32_t kern_pair_of_e4m3(uint32_t halves)
{
    return kern_scale_bf16((halves & 0x80008000u) | (halves & 0x7f007f00u) >> 4, 0x7b807b80u);
}

/* The float that 16 bits of bf16 are; of a pair, its halves. */
KERN_FN float kern_low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
KERN_FN float kern_high_bf16(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
KERN_FN uint16_t kern_one_bf16(float v) { return (uint16_t)(kern_pair_bf16(v, 0) & 0xffffu); }

#endif
