/* stored_models -- small models whose bytes are counted by hand, with and without a quantisation config. */
#ifndef RIDGE_TESTS_STORED_MODELS_H
#define RIDGE_TESTS_STORED_MODELS_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "calc/cost/cost.h"
#include "calc/model/model.h"
#include "calc/model/modules.h"
#include "calc/model/stored.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct cost_conventions PLAIN = {0};

/* Three layers of D = 72: q and o of 6 heads of 12, k and v of 2, an MLP of 100; 131 words, untied. */
#define SMALL                                                                                                          \
    "{\"model_type\":\"llama\",\"hidden_size\":72,\"num_attention_heads\":6,\"num_key_value_heads\":2,"                \
    "\"head_dim\":12,\"intermediate_size\":100,\"num_hidden_layers\":3,\"vocab_size\":131,"                            \
    "\"max_position_embeddings\":64,\"torch_dtype\":\"bfloat16\""
enum {
    Q = 72 * 72,
    K = 24 * 72,
    MLP = 100 * 72,
    LAYER = 2 * Q + 2 * K + 3 * MLP,
    ENDS = 2 * 131 * 72,
    NORMS = 7 * 72,
    MATRICES = 7
};

/* Two layers of D = 64 with 5 experts of 48, two of them a token; 64 words, untied. */
#define EXPERTS                                                                                                        \
    "{\"model_type\":\"qwen3_moe\",\"hidden_size\":64,\"num_attention_heads\":4,\"num_key_value_heads\":2,"            \
    "\"head_dim\":16,\"intermediate_size\":96,\"moe_intermediate_size\":48,\"num_experts\":5,"                         \
    "\"num_experts_per_tok\":2,\"num_hidden_layers\":2,\"vocab_size\":64,\"max_position_embeddings\":64,"              \
    "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\""

static inline enum err_code parse(struct arena *a, const char *base, const char *quantization, struct model *m,
                                  struct err *e)
{
    struct json j;
    const char *text = arena_printf(a, "%s%s%s}", base, quantization ? ",\"quantization_config\":" : "",
                                    quantization ? quantization : "");
    TRY(json_parse(a, "c.json", text, strlen(text), &j, e));
    TRY(model_parse(a, &j, m, e));
    m->name = "small";
    return ERR_OK;
}

static inline struct model model_of(struct arena *a, const char *base, const char *quantization)
{
    struct model m;
    struct err e = {0};
    if (parse(a, base, quantization, &m, &e) != ERR_OK) fail_msg("%s: %s", quantization ? quantization : base, e.text);
    return m;
}

static inline struct cost_ops operators_by(struct arena *a, struct sym_ctx *c, const struct model *m,
                                           const struct cost_conventions *v)
{
    struct err e = {0};
    const struct cost_symbols y = cost_symbols_make(c);
    const struct cost_pass pass = {.name = "decode", .B = y.B, .T = sym_int(c, 1), .S = y.S, .absorbed = true};
    struct cost_ops ops;
    if (cost_build(a, c, &y, m, v, &pass, 1, &ops, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    if (cost_bind(c, &y, m, 1, &ops, &e) != ERR_OK) fail_msg("%s: %s", m->name, e.text);
    return ops;
}

static inline struct cost_ops operators(struct arena *a, struct sym_ctx *c, const struct model *m)
{
    return operators_by(a, c, m, &PLAIN);
}

static inline double stored(struct arena *a, const struct model *m)
{
    struct sym_ctx *c = sym_open(a);
    const struct cost_ops ops = operators(a, c, m);
    double v = (double)NAN;
    assert_true(sym_constant(cost_weight_bytes(c, &ops, &PLAIN), &v));
    return v;
}

#endif
