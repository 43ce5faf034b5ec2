/* flint -- FLINT's functions, looked up when an expression is first normalised. Private to this room.
 *
 * The library and what it needs (NTL, the C++ runtime, MPFR, GMP) take milliseconds and megabytes to load, which most
 * commands need not pay, and not every system has a static one. So nothing links with it: flint_open finds the very
 * version that the headers are of. Types and prototypes are those of FLINT's headers; of their inline functions only
 * those that call nothing may be used. */
#ifndef RIDGE_SYM_FLINT_H
#define RIDGE_SYM_FLINT_H

#include <flint/fmpz.h>
#include <flint/fmpz_mpoly.h>
#include <flint/fmpz_mpoly_factor.h>
#include <flint/ulong_extras.h>

#include "calc/base/err.h"

/* gcc 12 under the sanitizers takes what their checks leave of a pointer to be of 8 bytes; without them it warns of
 * none of it. */
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif

/* X(member of struct flint, function) */
#define FLINT_FUNCTIONS(X)                                                                                             \
    X(cleanup, flint_cleanup)                                                                                          \
    X(z_release, _fmpz_clear_mpz)                                                                                      \
    X(z_set, fmpz_set)                                                                                                 \
    X(z_get_si, fmpz_get_si)                                                                                           \
    X(z_get_d, fmpz_get_d)                                                                                             \
    X(n_factor, n_factor)                                                                                              \
    X(z_fits_si, fmpz_fits_si)                                                                                         \
    X(z_equal, fmpz_equal)                                                                                             \
    X(z_sgn, fmpz_sgn)                                                                                                 \
    X(z_bits, fmpz_bits)                                                                                               \
    X(z_abs, fmpz_abs)                                                                                                 \
    X(z_mul, fmpz_mul)                                                                                                 \
    X(z_mul_2exp, fmpz_mul_2exp)                                                                                       \
    X(z_mul_ui, fmpz_mul_ui)                                                                                           \
    X(z_divexact, fmpz_divexact)                                                                                       \
    X(z_divexact_ui, fmpz_divexact_ui)                                                                                 \
    X(z_divisible_si, fmpz_divisible_si)                                                                               \
    X(z_pow_ui, fmpz_pow_ui)                                                                                           \
    X(z_root, fmpz_root)                                                                                               \
    X(z_fdiv_q, fmpz_fdiv_q)                                                                                           \
    X(z_cdiv_q, fmpz_cdiv_q)                                                                                           \
    X(z_fdiv_q_2exp, fmpz_fdiv_q_2exp)                                                                                 \
    X(z_fdiv_r_2exp, fmpz_fdiv_r_2exp)                                                                                 \
    X(ring_init, fmpz_mpoly_ctx_init)                                                                                  \
    X(ring_clear, fmpz_mpoly_ctx_clear)                                                                                \
    X(init, fmpz_mpoly_init)                                                                                           \
    X(clear, fmpz_mpoly_clear)                                                                                         \
    X(set, fmpz_mpoly_set)                                                                                             \
    X(set_si, fmpz_mpoly_set_si)                                                                                       \
    X(set_fmpz, fmpz_mpoly_set_fmpz)                                                                                   \
    X(gen, fmpz_mpoly_gen)                                                                                             \
    X(equal, fmpz_mpoly_equal)                                                                                         \
    X(equal_ui, fmpz_mpoly_equal_ui)                                                                                   \
    X(is_fmpz, fmpz_mpoly_is_fmpz)                                                                                     \
    X(neg, fmpz_mpoly_neg)                                                                                             \
    X(add, fmpz_mpoly_add)                                                                                             \
    X(sub, fmpz_mpoly_sub)                                                                                             \
    X(mul, fmpz_mpoly_mul)                                                                                             \
    X(pow_ui, fmpz_mpoly_pow_ui)                                                                                       \
    X(divides, fmpz_mpoly_divides)                                                                                     \
    X(gcd_cofactors, fmpz_mpoly_gcd_cofactors)                                                                         \
    X(term_content, fmpz_mpoly_term_content)                                                                           \
    X(sqrt_heap, fmpz_mpoly_sqrt_heap)                                                                                 \
    X(degrees_si, fmpz_mpoly_degrees_si)                                                                               \
    X(max_bits, fmpz_mpoly_max_bits)                                                                                   \
    X(term_coeff, fmpz_mpoly_get_term_coeff_fmpz)                                                                      \
    X(term_exp, fmpz_mpoly_get_term_exp_ui)                                                                            \
    X(push_term, fmpz_mpoly_push_term_fmpz_ui)                                                                         \
    X(sort_terms, fmpz_mpoly_sort_terms)                                                                               \
    X(combine_terms, fmpz_mpoly_combine_like_terms)                                                                    \
    X(factor, fmpz_mpoly_factor)                                                                                       \
    X(factor_clear, fmpz_mpoly_factor_clear)

struct flint {
    void *library;
#define FLINT_MEMBER(member, function) __typeof__(&function) member;
    FLINT_FUNCTIONS(FLINT_MEMBER)
#undef FLINT_MEMBER
};

/* flint_open -- loads the library on the first call of the process; later ones look it up again (some tens of
 * microseconds: once a context of expressions). Errors: ERR_IO there is no such library, or it lacks a function
 * (named). */
enum err_code flint_open(struct flint *f, struct err *e);

/* flint_close -- the code stays loaded. What FLINT caches for a thread `cleanup` frees. */
void flint_close(struct flint *f);

/* flint_z_clear -- fmpz_clear */
static inline void flint_z_clear(const struct flint *f, fmpz_t z)
{
    if (COEFF_IS_MPZ(*z)) f->z_release(*z);
    *z = 0;
}

#endif
