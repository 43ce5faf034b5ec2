/* family -- one row per architecture family: what its config.json leaves unsaid.
 *
 * A new llama-like family is one row; a rule that no row can say yet is a new value of one of the enums below. Class
 * defaults and tensor lists follow Hugging Face transformers, configuration_*.py and modeling_*.py of each family, and
 * the repositories of models with code of their own; "exact" names the count that a test holds the row to. */
#ifndef RIDGE_MODEL_FAMILY_H
#define RIDGE_MODEL_FAMILY_H

#include "calc/model/model.h"

/* Quantities that files spell in many ways; the spellings are in dims.c, first one canonical. */
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
    DIM_STATE,
    DIM_CONV_TAPS,
    DIM_SCAN_HEADS,
    DIM_SCAN_HEAD_DIM,
    DIM_SCAN_KEY_HEADS,
    DIM_SCAN_KEY_DIM,
    DIM_GROUPS,
    DIM_EXPAND,
    DIM_CHUNK,
    DIM_STEP_RANK,
    DIM_LRU_WIDTH,
    DIM_LATENT_WIDTH,
    DIM_IDLE_EXPERTS,
    DIM_N
};

/* dim_spellings -- NULL-terminated keys of a quantity, the canonical first. dim_symbol -- the course's letter or NULL.
 */
const char *const *dim_spellings(enum dim d);
const char *dim_symbol(enum dim d);

struct family;

/* dim_name -- what a family's own files call a quantity: for people. */
const char *dim_name(const struct family *f, enum dim d);

/* Which linear layers have biases. "The key" is family.bias_key, attention_bias when the row names none. */
enum bias_rule {
    BIAS_NONE,
    BIAS_KEY,           /* the key: q, k, v and o; "mlp_bias": the MLP */
    BIAS_KEY_QKV,       /* the key: q, k and v */
    BIAS_KEY_ATTENTION, /* the key: q, k, v and o, the MLP never */
    BIAS_KEY_ALL,       /* the key: every linear but the head */
    BIAS_QKV,           /* q, k, v always, without a key */
    BIAS_MLP,           /* the MLP always; q, k, v and o by family.bias_key, never when there is none */
    BIAS_ALL,           /* every linear but the head */
    BIAS_OUT,           /* o and the MLP always; the key: q, k and v */
};

enum window_rule {
    WINDOW_NONE,      /* a sliding_window key is ignored by the class */
    WINDOW_EVERY,     /* all layers, unless use_sliding_window is false */
    WINDOW_OPT_IN,    /* layers from max_window_layers on, only when use_sliding_window is true */
    WINDOW_ALTERNATE, /* even layers slide */
    WINDOW_TYPES,     /* layers that layer_types says; none without it */
    WINDOW_FIRST,     /* every sliding_window_pattern-th layer is full, from the first on, the others slide */
    WINDOW_PERIOD,    /* every sliding_window_pattern-th layer is full, the others slide */
    WINDOW_LISTED,    /* hybrid_layer_pattern: 1 slides, 0 is full */
    WINDOW_CHUNK,     /* layers with rope (no_rope_layers) attend within chunks of attention_chunk_size */
};

/* Layers that do not know positions in a family that otherwise rotates. */
enum nope_rule {
    NOPE_NONE,
    NOPE_FULL, /* layers without a window, where the file has windows */
    NOPE_LIST, /* no_rope_layers: 0 marks them; without a list every no_rope_layer_interval-th */
};

enum moe_rule {
    MOE_NONE,
    MOE_EVERY,    /* all layers; experts as wide as intermediate_size */
    MOE_QWEN,     /* decoder_sparse_step and mlp_only_layers */
    MOE_DEEPSEEK, /* first_k_dense_replace and moe_layer_freq or mlp_layer_types, shared experts */
    MOE_OPTIONAL, /* as MOE_EVERY where the file has a number of experts, else dense */
    MOE_LLAMA4,   /* interleave_moe_layer_step; one shared expert as wide as a routed one */
    MOE_ERNIE,    /* moe_layer_start_index, _end_index and _interval; shared experts */
    MOE_BESIDE,   /* as MOE_OPTIONAL, every token passing a dense MLP of intermediate_size as well */
    MOE_SHARED,  /* as MOE_OPTIONAL, beside a shared MLP of shared_intermediate_size, which is the whole without experts
                  */
    MOE_PERIOD,  /* expert_layer_period and expert_layer_offset; experts as wide as intermediate_size */
    MOE_LETTERS, /* the layers that the hybrid pattern says; shared experts of a width of their own */
    MOE_NAMED,   /* moe_layers_enum, numbers as text, else all but the first; a shared expert of share_expert_dim */
    MOE_COHERE,  /* first_k_dense_replace or mlp_layer_types; shared experts, all as wide as intermediate_size */
    MOE_HUNYUAN, /* moe_layer_num_skipped; shared experts of intermediate_size when use_mixed_mlp_moe */
};

/* Which layers of a family with recurrent mixers attend. */
enum hybrid_rule {
    HYBRID_NONE,    /* all; no recurrent mixer */
    HYBRID_NEVER,   /* none */
    HYBRID_TYPES,   /* layer_types or layers_block_type, a word a layer; without it every full_attention_interval-th */
    HYBRID_PERIOD,  /* attn_layer_period and attn_layer_offset */
    HYBRID_FLAGS,   /* attn_type_list: 1 attends */
    HYBRID_INDEXES, /* full_attn_idxs or attn_layer_indices, from 0, or layer_types */
    HYBRID_ATTN,    /* attn.layers, from 0; without attn none. Its members say what the attention is */
    HYBRID_LISTS,   /* linear_attn_config.full_attn_layers and .kda_layers, from 1 */
    HYBRID_LETTERS, /* hybrid_override_pattern or layers_block_type, one block a layer */
    HYBRID_TILED,   /* block_types, repeated */
    HYBRID_GROUPS,  /* every layer_group_size-th, of whole groups */
    HYBRID_FOURS,   /* layer_types; without it of every four the third attends and the first, not that of all layers,
                     * within a window */
    HYBRID_CYCLE,   /* layer_types; without it family.cycle, again and again */
    HYBRID_BESIDE,  /* all layers attend and are recurrent, side by side */
    HYBRID_MIDDLE,  /* the layer at half of every mamba_step; the last where there are no more than that */
    HYBRID_SHARED,  /* layers_block_type: all layers are recurrent, "hybrid" ones after a shared attention block */
};

/* How a checkpoint stores modules of multi-token prediction (num_nextn_predict_layers, mtp_num_hidden_layers). */
enum mtp_rule {
    MTP_NONE,   /* not known */
    MTP_SHARED, /* modules of a layer each, with the model's embedding and head */
    MTP_COPIES, /* the same with copies of both */
    MTP_STACK,  /* one module of so many layers, with the model's embedding and head */
    MTP_OWN,    /* modules of a layer each that mtp_layer makes, with the model's embedding and head */
};

/* How the width of the dense MLP follows from the file. */
enum ffn_rule {
    FFN_PLAIN,         /* as it says */
    FFN_ABSENT,        /* layers are mixers alone */
    FFN_ROUNDED,       /* block_auto_adjust_ff_dim: 2/3 of it, times a factor, rounded up to block_multiple_of */
    FFN_RATIO,         /* without intermediate_size 2/3 of hidden_ratio*hidden_size, rounded up to 256 */
    FFN_RATIO_ALWAYS,  /* the same whatever intermediate_size says, which is that of the mixers */
    FFN_FACTOR,        /* ffn_proj_factor times hidden_size, rounded up to ffn_round_up_to_multiple_of */
    FFN_CHANNEL_FOUR,  /* channel mix; without intermediate_size 4 times hidden_size */
    FFN_CHANNEL,       /* channel mix; without intermediate_size 7/2 of hidden_size, rounded down to 32 */
    FFN_CHANNEL_RATIO, /* the same; hidden_ratio times hidden_size rounded up to 32 where that is stated */
    FFN_CHANNEL_BARE,  /* that with a ratio of 4, without the gate */
};

struct family_default {
    enum dim dim;
    int64_t value;
};

/* The same of files of one model_type alone, whose class has it in place of the row's. */
struct family_typed {
    const char *type;
    enum dim dim;
    int64_t value;
};

/* What a family calls one of its matrices, behind the layer's number. */
struct family_module {
    enum module module;
    const char *name; /* NULL ends a list */
};

extern const struct family_module MODULES_GPT2[], MODULES_QWEN[], MODULES_OPT[], MODULES_PHI[], MODULES_BLOOM[],
    MODULES_CHATGLM[], MODULES_NEOX[], MODULES_BAILING[], MODULES_GPTJ[], MODULES_MPT[], MODULES_DBRX[],
    MODULES_INTERNLM2[], MODULES_BAICHUAN[], MODULES_EXAONE[], MODULES_LLADA[], MODULES_GRANITE_MOE[],
    MODULES_MAMBA_BESIDE[], MODULES_GRANITE_HYBRID[], MODULES_QWEN_DELTA[], MODULES_MINIMAX[], MODULES_LFM2[],
    MODULES_PERSIMMON[], MODULES_GPT_NEO[], MODULES_JAIS[], MODULES_AFMOE[], MODULES_GROK[], MODULES_LONGCAT[],
    MODULES_STEP3[], MODULES_FALCON_H1[], MODULES_TELECHAT[], MODULES_LING[], MODULES_ARCTIC[], MODULES_GROK2[],
    MODULES_OLMO_HYBRID[], MODULES_MINIMAX_M3[], MODULES_DEEPSEEK_V4[], MODULES_KIMI[], MODULES_GLM5_NEXT[],
    MODULES_ZAMBA2[], MODULES_GRIFFIN[], MODULES_RWKV4[], MODULES_PHI3_SMALL[], MODULES_MOLMO[], MODULES_PLAMO[],
    MODULES_OPENELM[], MODULES_ARIA[], MODULES_PLAMO2[], MODULES_XLSTM[], MODULES_BART[], MODULES_T5[], MODULES_CTRL[],
    MODULES_JETMOE[], MODULES_MODERNBERT[], MODULES_PHI4FLASH[], MODULES_T5GEMMA[], MODULES_MOONSHINE[],
    MODULES_COSMOS3_EDGE[], MODULES_LAGUNA[];

struct reader;

/* Files of one model_type whose decoder is another family's, by their key "version". */
struct family_version {
    const char *version, *family; /* NULL ends */
};

struct family {
    const char *name;
    const char *types[12];        /* model_type values */
    const char *architectures[4]; /* for files without model_type; of a draft for all */
    bool draft;                   /* a head that drafts for another model: */
    const char *mark;             /* a key that says so whatever the model_type; NULL none. So does that of others: */
    const char *sign;             /* the same in a file without model_type and architectures */
    int plain;                    /* offered for a file of no known family that fits: 1 before 2; 0 never */
    enum norm_kind norm;
    int norms;    /* of width D in a layer */
    bool tied;    /* class default of tie_word_embeddings */
    bool ungated; /* up and down only */
    bool four;    /* class default of the MLP's width: 4 times hidden, where the file says null or nothing */
    bool sinks, positions, latent, expert_bias, router_bias;
    enum qk_norm qk_norm;
    const char *qk_norm_key; /* a flag without which qk_norm does not hold; qk_norm_default when absent */
    bool qk_norm_default;
    enum position_kind position;
    int64_t position_offset;  /* rows of the learned position table beyond the longest context */
    const char *alibi_key;    /* a flag that turns rope into ALiBi */
    const char *parallel_key; /* a flag of parallel attention and MLP; parallel when absent or without one */
    bool parallel;
    const char *multi_query_key; /* a flag that means one KV head; multi_query_default when absent */
    bool multi_query_default;
    bool embed_norm, embed_norm_plain; /* plain: statistics alone */
    bool head_bias;                    /* on the output head */
    const char *bias_key;              /* see enum bias_rule */
    bool bias_inverted;                /* the key says that there are none */
    bool bias_default;                 /* class default of the key */
    bool head_bias_by_key;             /* lm_head_bias */
    bool shared_gate;                  /* a shared expert behind a 1 x hidden gate in every MoE layer */
    bool latent_float;                 /* products into and out of experts' latent space are kept as routers are */
    bool router_fp32;                  /* routers are stored in fp32 whatever the format of the file */
    bool router_correction;            /* class default: routing with a stored correction bias (topk_method noaux_tc) */
    const char *experts_key;           /* a flag without which a number of experts says nothing */
    const char *correction_key;        /* a flag that says so instead; router_correction when absent */
    bool attn_required;                /* without attn it is not known which layers attend */
    bool shared_bias;                  /* shared experts have the biases of an MLP */
    bool scan_heads_decide;            /* Mamba-2: heads times their width is the inner width, whatever expand says */
    int64_t ffn_divisor;               /* the file's width is this many times the true one; 0 means 1 */
    bool v_head_by_width;              /* class default of v_head_dim of latent attention: hidden / heads */
    bool plain_shared;                 /* a block that layers share has no low-rank products of theirs, and no rope */
    bool halves;                       /* an encoder-decoder: names of matrices say of which half they are */
    bool local_source;                 /* an encoder's tokens see those of local_radius on either side */
    bool post_norm;                    /* encoder-decoder: norms behind blocks, none at the end of either half */
    bool bias_tables;       /* encoder-decoder: every layer has its table of biases by distance, not the first */
    int64_t act_params;     /* numbers that the nonlinearity of an MLP stores */
    bool inner_norm;        /* of the MLP, before its down product */
    const char *layers_key; /* the number of layers, whatever other keys say; NULL none */
    const char *loops_key;  /* how often the layers run, loops_default when absent; NULL once */
    int64_t loops_default;
    bool first_too;             /* later times attend to the first one's cache, and within loop_window_size to theirs */
    const char *bare_loops_key; /* a flag without which the final norm is behind each time; NULL it is */
    bool exit_gate;             /* behind each time: hidden numbers and a bias */
    bool full_last;             /* the last layer is full, whatever layer_types and the period say */
    const char *period_key;     /* what the file calls sliding_window_pattern; NULL that */
    bool pairs;                 /* numbers of experts are lists of two: of tokens of text, of images (read by vary) */
    bool layer_widths;          /* vary sets the width of the MLP, layer by layer */
    enum bias_rule bias;
    enum window_rule window;
    bool own_types;        /* layer_types is read by vary */
    const char *full_word; /* of layer_types, another for a layer without a window; NULL none */
    enum nope_rule nope;
    enum moe_rule moe;
    enum hybrid_rule hybrid;
    const char *cycle; /* HYBRID_CYCLE: a letter a layer: r recurs, s attends within a window, f to all */
    enum ffn_rule ffn;
    enum mtp_rule mtp;
    /* MTP_OWN: k is like the model's last layer; made the layer of a module, or left with a count of 0 where the file
     * does not say what it is. */
    enum err_code (*mtp_layer)(struct reader *r, int64_t module, struct layer_kind *k);
    bool diffusion;          /* denoises tokens that see each other */
    bool block_causal;       /* those of a block, block by block */
    bool output_gate;        /* of attention */
    bool adapted_vocabulary; /* vLLM's class has slots of adapters for embedding and head (embedding_modules) */
    bool engine_states;      /* vLLM serves it with its recurrent layers (its registry of models) */
    enum err_code (*attention)(struct reader *r, struct mixer *x); /* in place of the usual ones; NULL those */
    /* Fills a recurrent mixer from the file; NULL without one. */
    enum err_code (*recurrent)(struct reader *r, struct mixer *x);
    int64_t window_period;    /* class default of sliding_window_pattern */
    const char *describes[8]; /* keys of unusual structure (reader.c) that the row does describe */
    /* What the fields above cannot say: called for each layer with what they make of it. NULL none. Files with
     * structure that neither describes are refused here. */
    enum err_code (*vary)(struct reader *r, int64_t layer, struct layer_kind *k);
    /* A second block of a layer: called behind vary with what that made, which is counted before it. NULL none. */
    enum err_code (*further)(struct reader *r, int64_t layer, struct layer_kind *k);
    enum err_code (*extend)(struct reader *r); /* what the model has outside its layers; NULL none */
    /* Reads sizes and layers in place of the common way; NULL that. */
    enum err_code (*structure)(struct reader *r);
    struct family_typed typed[4];
    struct family_default defaults[12]; /* class defaults of keys that files omit; value 0 ends */
    /* Sizes of the class that a text part within a larger file omits, since it is saved as what differs from them; in a
     * file of its own they are missing. */
    struct family_default nested[8];
    const char *spelled[8]; /* keys of sizes that its files spell otherwise than the first of dim_spellings */
    const struct family_module *modules;   /* names in place of the usual ones (modules.c); NULL none */
    const char *trunk;                     /* what it says for "layers": "h", "blocks"; NULL that */
    const struct family_version *versions; /* the row stands for others; NULL for itself */
    const char *blocks;                    /* for `ridge list families` */
    const char *exact;                     /* what was checked, and against what */
};

/* Rows by kind: a file each, closed by a row without a name. */
extern const struct family FAMILIES_DENSE[], FAMILIES_LAYER_NORM[], FAMILIES_EXPERTS[], FAMILIES_RECURRENT[],
    FAMILIES_DRAFTS[], FAMILIES_ENCODERS[];

const struct family *family_at(size_t i);                        /* the i-th of all; NULL behind the last */
const struct family *family_named(const char *name);             /* by its row's name; NULL unknown */
const struct family *family_find(const char *model_type);        /* NULL unknown */
const struct family *family_find_architecture(const char *name); /* NULL unknown; case-insensitive */

#endif
