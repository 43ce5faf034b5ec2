/* family -- one row per architecture family: what its config.json leaves unsaid.
 *
 * A new llama-like family is one row; a rule that no row can say yet is a new value of one of the enums below. */
#ifndef RIDGE_MODEL_FAMILY_H
#define RIDGE_MODEL_FAMILY_H

#include "calc/model/model.h"

/* Quantities that files spell in many ways; the spellings are in family.c, first one canonical. */
enum dim {
    DIM_LAYERS,
    DIM_HIDDEN,
    DIM_FFN,
    DIM_HEADS,
    DIM_KV_HEADS,
    DIM_HEAD_DIM,
    DIM_VOCAB,
    DIM_POSITIONS,
    DIM_WINDOW,
    DIM_EXPERTS,
    DIM_EXPERTS_PER_TOKEN,
    DIM_EXPERT_WIDTH,
    DIM_SHARED_EXPERTS,
    DIM_SHARED_WIDTH,
    DIM_DENSE_PREFIX,
    DIM_SPARSE_STEP,
    DIM_Q_RANK,
    DIM_KV_RANK,
    DIM_NOPE_DIM,
    DIM_ROPE_DIM,
    DIM_V_HEAD_DIM,
    DIM_N
};

/* dim_spellings -- NULL-terminated keys of a quantity, the canonical first. dim_symbol -- the course's letter or NULL.
 */
const char *const *dim_spellings(enum dim d);
const char *dim_symbol(enum dim d);

enum bias_rule {
    BIAS_NONE,
    BIAS_KEY, /* "attention_bias": q, k, v and o; "mlp_bias": the MLP */
    BIAS_QKV, /* q, k, v always, without a key */
    BIAS_ALL, /* every linear but the head */
};

enum window_rule {
    WINDOW_NONE,      /* a sliding_window key is ignored by the class */
    WINDOW_EVERY,     /* all layers, unless use_sliding_window is false */
    WINDOW_OPT_IN,    /* layers from max_window_layers on, only when use_sliding_window is true */
    WINDOW_ALTERNATE, /* even layers slide */
    WINDOW_PERIOD,    /* every sliding_window_pattern-th layer is full, the others slide */
};

enum moe_rule {
    MOE_NONE,
    MOE_EVERY,    /* all layers; experts as wide as intermediate_size */
    MOE_QWEN,     /* decoder_sparse_step and mlp_only_layers */
    MOE_DEEPSEEK, /* first_k_dense_replace and moe_layer_freq, shared experts */
};

struct family_default {
    enum dim dim;
    int64_t value;
};

struct family {
    const char *name;
    const char *types[6];         /* model_type values */
    const char *architectures[4]; /* for files without model_type */
    enum norm_kind norm;
    int norms;    /* of width D in a layer */
    bool tied;    /* class default of tie_word_embeddings */
    bool ungated; /* up and down only */
    bool qk_norm, sinks, positions, latent, expert_bias, router_bias;
    bool bias_default;      /* class default of attention_bias */
    bool shared_gate;       /* a shared expert behind a 1 x hidden gate in every MoE layer */
    bool router_correction; /* class default: routing with a stored correction bias (topk_method noaux_tc) */
    enum bias_rule bias;
    enum window_rule window;
    enum moe_rule moe;
    int64_t window_period;             /* class default of sliding_window_pattern */
    struct family_default defaults[8]; /* class defaults of keys that files omit; value 0 ends */
    const char *blocks;                /* for `ridge list families` */
    const char *exact;                 /* what was checked, and against what */
};

const struct family *family_table(size_t *n);
const struct family *family_find(const char *model_type);        /* NULL unknown */
const struct family *family_find_architecture(const char *name); /* NULL unknown; case-insensitive */

#endif
