/* families -- a family against its tensors: a published model's config.json, cut down to the keys that decide sizes,
 * beside the list of tensors that the modelling code of its class makes of it, written down by shape. The list is
 * counted by adding; the cache by what a token leaves in each layer. */
#ifndef RIDGE_TESTS_FAMILIES_H
#define RIDGE_TESTS_FAMILIES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "calc/cost/cost.h"

/* `times` tensors of rows x cols; of experts that a token does not all pass, `used` of them work on one; -1: none. */
struct tensors {
    const char *name;
    int64_t rows, cols, times, used;
};

enum { TENSORS_MAX = 48 };

struct subject {
    const char *model, *json;
    struct tensors tensors[TENSORS_MAX];
    int64_t full_elems, windowed_elems; /* that a token leaves in caches that grow, and in those that do not */
    int64_t conv_elems, state_elems;    /* of a sequence: in 2 bytes, in 4 */
};

#define ENDS(vocab, width)                                                                                             \
    {"embed_tokens", vocab, width, 1, 0}, { "norm", 1, width, 1, 0 }
#define HEAD(vocab, width)                                                                                             \
    {                                                                                                                  \
        "lm_head", vocab, width, 1, 0                                                                                  \
    }
#define EACH(name, rows, cols, layers)                                                                                 \
    {                                                                                                                  \
        name, rows, cols, layers, 0                                                                                    \
    }
/* Stored, and met by no token of text. */
#define HELD(name, rows, cols, times)                                                                                  \
    {                                                                                                                  \
        name, rows, cols, times, -1                                                                                    \
    }
#define NORMS(n, width, layers)                                                                                        \
    {                                                                                                                  \
        "layer norms", n, width, layers, 0                                                                             \
    }
#define QKVO(q, kv, width, layers)                                                                                     \
    EACH("q_proj", q, width, layers), EACH("k_proj", kv, width, layers), EACH("v_proj", kv, width, layers),            \
        EACH("o_proj", width, q, layers)
#define GATED(width, wide, layers)                                                                                     \
    EACH("gate_proj", wide, width, layers), EACH("up_proj", wide, width, layers), EACH("down_proj", width, wide, layers)
#define EXPERTS(width, wide, layers, all, chosen)                                                                      \
    {"experts.gate_proj", wide, width, (layers) * (all), (layers) * (chosen)},                                         \
        {"experts.up_proj", wide, width, (layers) * (all), (layers) * (chosen)},                                       \
    {                                                                                                                  \
        "experts.down_proj", width, wide, (layers) * (all), (layers) * (chosen)                                        \
    }
#define LATENT(width, heads, q, kv, nope, rope, value, layers)                                                         \
    EACH("q_a_proj", q, width, layers), EACH("q_a_layernorm", 1, q, layers),                                           \
        EACH("q_b_proj", (heads) * ((nope) + (rope)), q, layers),                                                      \
        EACH("kv_a_proj_with_mqa", (kv) + (rope), width, layers), EACH("kv_a_layernorm", 1, kv, layers),               \
        EACH("kv_b_proj", (heads) * ((nope) + (value)), kv, layers), EACH("o_proj", width, (heads) * (value), layers)

/* families_read -- a subject's config as a model; fails the test where it is refused. */
struct model families_read(struct arena *a, const struct subject *s);

/* families_tensors, families_caches -- parameters, all and active, of n subjects against their lists; what a token and
 * a sequence leave in caches. */
void families_tensors(const struct subject *s, size_t n);
void families_caches(const struct subject *s, size_t n);

struct refused {
    const char *json, *sentence;
};

/* families_refused -- configs that are refused, with a sentence that has these words. */
void families_refused(const struct refused *cases, size_t n);

#endif
