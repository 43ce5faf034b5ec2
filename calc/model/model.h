/* model -- what a language model is: the one description from which parameters, memory, FLOPs, bytes and time follow.
 *
 * A model is an embedding, `layers` decoder layers of few distinct kinds, a final norm and an output head. A layer kind
 * is a token mixer (attention, latent attention, a recurrence, or none) and a feed-forward block, with norms around
 * them. Kinds are evaluated once and counted. All sizes are those of the whole model; a tensor-parallel rank is derived
 * in calc/cost. An encoder-decoder has an encoder beside that, whose layers are kinds of their own, before those of the
 * decoder; a decoder's layer is then two blocks, attention to its own tokens and, with the MLP, to the encoder's
 * output.
 */
#ifndef RIDGE_MODEL_MODEL_H
#define RIDGE_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/json.h"
#include "calc/model/dtype.h"

enum mixer_kind { MIXER_NONE, MIXER_ATTENTION, MIXER_LATENT, MIXER_RECURRENT };

/* Recurrent mixers carry a state of constant size from token to token instead of a cache. In all of them the state is
 * `heads` matrices of head_dim x v_head_dim, written by keys (kv_heads groups of head_dim) and values. */
enum recurrent_block {
    RECURRENT_SELECTIVE, /* Mamba-1: a head is one channel (v_head_dim 1), head_dim its state; arXiv 2312.00752 */
    RECURRENT_SSD,       /* Mamba-2: head_dim is the state size, kv_heads the groups of B and C; arXiv 2405.21060. With
                          * rank: B, C and a latent of the time steps are made of the convolution's output (PLaMo-2) */
    RECURRENT_LINEAR,    /* linear attention and the delta rule on projected q, k, v */
    RECURRENT_LRU,       /* RG-LRU: a head is a block of the gates, its state a vector; arXiv 2402.19427 */
    RECURRENT_CONV,      /* a gated short convolution alone: a head is one channel */
    RECURRENT_WKV,       /* RWKV-4: a head is one channel; sums of weighted values and of weights, and the largest
                          * exponent; arXiv 2305.13048 */
    RECURRENT_TIME_MIX,  /* RWKV-5: a stored decay and bonus a key element; arXiv 2404.05892 */
    RECURRENT_FINCH,     /* RWKV-6: mixtures and decays made of the token by low-rank products; arXiv 2404.05892 */
    RECURRENT_GOOSE,     /* RWKV-7: a generalised delta rule with a rate a key element; arXiv 2503.14456 */
    RECURRENT_DIAGONAL,  /* S4D: a channel has head_dim complex poles of its own; arXiv 2206.11893. With conv_taps those
                          * of a shift SSM of the keys, and gates: H3, arXiv 2212.14052 */
    RECURRENT_MEMORY,    /* a gated memory unit: the stream's gate times what an earlier layer's scan gave for the
                          * same token; no state. A head is one channel; arXiv 2507.06607 */
    RECURRENT_FILTER,    /* Hyena: a convolution as long as the context between gates; arXiv 2302.10866. A channel's
                          * filter is a sum of head_dim complex poles, or with filter_width what an MLP makes of time */
};

enum decay_kind {
    DECAY_NONE,
    DECAY_FIXED,   /* one constant a head */
    DECAY_HEAD,    /* one number a token and head */
    DECAY_CHANNEL, /* one number a token and key element */
};

enum recurrent_gate { GATE_NONE, GATE_FULL, GATE_LOW_RANK };
/* ... of the output: a weight for all heads, one norm over all heads, or a layer norm of each head with a weight an
 * element. */
enum recurrent_norm { OUTPUT_PLAIN, OUTPUT_HEAD_NORM, OUTPUT_WIDE_NORM, OUTPUT_EACH_NORM };

struct recurrence {
    enum recurrent_block block;
    int64_t conv_taps;                        /* of the short causal convolution; 0: none */
    int64_t chunk_tokens;                     /* of the scan in a pass of many tokens */
    int64_t rank;                             /* of the low-rank products: time step, decay, gate; 0: none */
    int64_t mix_rank;                         /* RWKV-6: of each of five mixtures with the token before */
    int64_t rate_rank, value_rank, gate_rank; /* RWKV-7: of rates, of the share of the first layer's values (0: it is
                                               * the first layer), of the gate */
    int64_t feature_dim; /* linear: queries and keys are so wide before a Taylor map makes 1 + d + d*d of them, which is
                          * head_dim; outputs are divided by the sum of their weights; arXiv 2402.18668. 0: no map */
    int64_t filter_width, filter_inputs, filter_layers, filter_tokens; /* Hyena: of the MLP that makes the filter, its
                                                                        * inputs a token, inner layers, stored times */
    bool conv_bias, proj_bias;
    bool memory;              /* linear: mLSTM: a gate of each key beside the decay, both with biases, the sum of keys
                               * beside the state, by which answers are divided, and the largest exponent; arXiv
                               * 2405.04517 */
    bool inner_norms;         /* Mamba-1: RMS norms of time step, B and C */
    bool inner_norm_weights;  /* with a weight each */
    bool delta;               /* the state first forgets what it would answer to the key; arXiv 2406.06484 */
    enum decay_kind decay;    /* linear */
    bool decay_weights;       /* a stored rate a head and a bias a decay */
    int64_t idle_rates;       /* stored rates beyond those of the heads: zeros, as Kimi K3 pads them */
    bool decay_bias;          /* the decay's last product has a bias */
    enum recurrent_gate gate; /* of the output */
    bool gate_bias;
    enum recurrent_norm norm; /* of the output, before the gate */
    bool key_norms;           /* RMS norms of query and key heads, one weight of head_dim each */
    bool rope, activated;     /* queries and keys turn; q, k and v pass a nonlinearity without a convolution; of a
                               * convolution alone: SiLU and one gate for two gates */
    bool filter_sines;        /* Hyena: frequencies of its sines are stored */
    bool gated_unit;          /* S4D: the output product makes twice the width, whose halves are gate and value */
};

/* Norms of query and key heads: one weight of head_dim for all heads; a weight for every head, statistics within each;
 * one norm over all heads together; or statistics alone. EACH_LAYER: layer norms of each with a weight and a bias for
 * every head, whatever the norm of the stream. */
enum qk_norm { QK_NORM_NONE, QK_NORM_HEAD, QK_NORM_EACH, QK_NORM_WIDE, QK_NORM_PLAIN, QK_NORM_EACH_LAYER };

/* How a layer knows positions: rotation of queries and keys, not at all (or by a learned table, see position_rows), a
 * linear bias on every score (ALiBi, arXiv 2108.12409), or one that a table has for a head and a distance (T5, arXiv
 * 1910.10683). */
enum position_kind { POSITION_ROPE, POSITION_NONE, POSITION_ALIBI, POSITION_RELATIVE };

/* Token mixer of one layer. Attention: q (heads*head_dim), k and v (kv_heads*...), o. Latent (MLA, arXiv 2405.04434):
 * q through q_rank (0: one matrix), k and v through a cached latent of kv_rank plus rope_dim shared rope elements. */
struct mixer {
    enum mixer_kind kind;
    int64_t heads, kv_heads;
    int64_t head_dim;      /* width of a query and key head; latent: the part without rope */
    int64_t v_head_dim;    /* width of a value head */
    int64_t window_tokens; /* keys a query can see, itself included; 0: all */
    bool chunked;          /* those of its own block of window_tokens instead of the last ones */
    /* Phi-3 small: keys in blocks of so many tokens, of which a head sees the stripe_near last, that of the query
     * included, and one of every stripe_every before them, which differ from head to head; 0: all. The cache keeps
     * all. MODEL.md "Stripes of keys". */
    int64_t stripe_tokens, stripe_near, stripe_every;
    int64_t q_rank;            /* queries are made of a normed product so wide; 0: one matrix */
    int64_t kv_rank, rope_dim; /* latent only */
    bool qkv_bias, o_bias;
    enum qk_norm qk_norm;
    enum position_kind position;
    bool sinks;        /* one learned logit per head beside the softmax */
    bool shares_kv;    /* attends to the cache of an earlier layer and makes no keys and values */
    bool first_too;    /* of layers that run again: attends to the cache that its first time left as well; a gate
                        * of each head, made of its query, weighs both answers. MODEL.md "Loops" */
    bool idle_kv;      /* its key and value weights are stored all the same */
    bool v_is_k;       /* values are the keys before their norm: no matrix of their own, a cache all the same */
    bool rope_norm;    /* latent: RMS norm of the rope part of the keys, before it turns */
    bool query_scales; /* queries of a head, and of the indexer's, times a*log(place) + b of two stored numbers */
    bool v_norm;       /* RMS norm without a weight over each value head */
    /* Sparse attention (DeepSeek-V3.2): a query attends to the top_keys best keys by the scores of an indexer, 0: all.
     * index_heads 0: by those of an earlier layer. index_dim elements a token are cached beside keys and values. */
    int64_t top_keys, index_heads, index_dim;
    /* MiniMax-M3: an indexer of a head for each KV head, which reads the stream and chooses blocks of so many keys; 0:
     * keys one by one, by queries of q_rank. */
    int64_t index_block_tokens;
    /* GLM-5.3-Flash: keys of the indexer are pooled, so many tokens to one, by a softmax of gates; 0: one a token. */
    int64_t index_pool_tokens;
    bool index_stream; /* ... keys one by one, by queries of a layer norm of the stream (Mistral Large 4) */
    bool index_mean;   /* ... by their plain mean; its queries read the stream, scores of heads are summed (Qwen4) */
    /* DeepSeek-V4 (latent): keys are the values, one vector of head_dim, its rope part of rope_dim included, that all
     * heads share. Where pool_tokens > 0 those of the last pool_window tokens are kept, and of every pool_tokens tokens
     * one entry, made of the pool_spans * pool_tokens last ones; with an indexer queries see the top_keys best entries
     * (top_keys tokens before them), without one all. Outputs of o_groups groups of heads each pass o_rank numbers. */
    bool one_vector;
    int64_t pool_tokens, pool_spans, pool_window, o_groups, o_rank;
    /* DeepSeek-V4.1: entries by gates without places, of one token (pool_tokens 1) without a gate; an indexer whose
     * keys are products of the entries; queries without a norm behind their latent. */
    bool pool_lean;
    bool pool_borrowed; /* entries, and keys of the indexer, are those of an earlier layer: read, not made or kept,
                         * beside a window of window_tokens */
    int64_t index_candidates; /* entries, of which an earlier indexer left so many to this one; 0 all */
    bool head_gate;           /* a product of one number a head, whose sigmoid multiplies the output */
    /* Heads in pairs: either scores its own keys and weighs the values of both, and a share of the second answer,
     * learned by the layer, is taken from the first; then an RMS norm of the pair's answer, with a weight as wide or
     * none (arXiv 2410.05258). MODEL.md "Differences of attentions". */
    bool differential, difference_weight;
    bool value_mask;     /* a number of each key and KV head, made of all its values, is added to every score (Doge) */
    bool routed_queries; /* queries and output are made by experts, as many and as many of them chosen as in the layer's
                          * feed-forward block: of kv_heads heads each, all against the same keys and values */
    bool output_gate;    /* a second product as wide as the output, whose sigmoid multiplies it (without latents: as the
                          * queries) */
    bool gate_apart;     /* ... made by a matrix of its own, without a bias, not by that of the queries */
    bool gate_bias;      /* a number a head is added to the gate before its sigmoid */
    bool gate_of_latent; /* latent: made with the queries, of the query latent beside what its norm makes of it */
    bool doubled_input;  /* reads the residual stream beside the embedding: 2*hidden wide */
    bool features_kv;    /* a target's features become keys and values too, by the same weights, and these are kept */
    bool images;         /* keys and values are those of an image: without one the layer is skipped, its weights held */
    bool of_source;      /* keys and values are those of the encoder's output: made once a request, as many as it has */
    bool k_unbiased;     /* qkv_bias is of queries and values alone */
    int64_t bias_rows;   /* POSITION_RELATIVE: distances that the table tells apart */
    bool bias_shared;    /* ... and it is that of an earlier layer */
    int64_t adapter_rank;         /* low-rank products of its own beside q, k and v, which other layers share; 0 none */
    struct recurrence recurrence; /* of attention: the short convolution of q, k and v alone */
};

/* model_keeps_inputs -- a long convolution whose filter has no poles: every input of a sequence is kept, as in a cache.
 */
bool model_keeps_inputs(const struct mixer *x);

enum ffn_kind { FFN_NONE, FFN_DENSE, FFN_MOE };

/* Feed-forward block. Gated: gate and up of (width, hidden), down of (hidden, width); else up and down only. */
struct ffn {
    enum ffn_kind kind;
    bool gated;
    bool up_bias, down_bias;
    int64_t width; /* dense width, or width of one routed expert */
    int64_t experts, experts_per_token;
    int64_t idle_experts; /* further ones that the router knows and that give their input back: a choice of them is
                           * no work. experts_per_token is the mean of choices of the others */
    int64_t image_experts, image_width; /* experts of tokens of images, with a router of their own: held, and unread by
                                         * tokens of text */
    int64_t shared_width;               /* all shared experts together; 0 none */
    bool shared_bias;                   /* ... with biases of their own, as one MLP */
    /* GroveMoE: group_experts experts, one behind the other, have a further one of group_width between them, that runs
     * once for a token which chose any of them; arXiv 2508.07785. 0 none. */
    int64_t group_experts, group_width;
    int64_t latent_width; /* routed experts work in a projection of the stream; 0: in the stream itself */
    bool latent_bias;     /* of the products into it and back */
    bool latent_in_norm;  /* RMS norm of what enters it; latent_each_norm: of what each expert leaves in it */
    bool latent_each_norm;
    bool latent_norm;       /* RMS norm of their sum in it, before the way back */
    int64_t adapter_rank;   /* a low-rank product of its own beside gate and up, which other layers share; 0 none */
    bool out_proj;          /* a hidden x hidden product after the block */
    bool residual_unit;     /* Medusa: one hidden x hidden product and a nonlinearity, added to the stream */
    bool channel_mix;       /* RWKV: inputs mixed with the token before, squared ReLU, a gate of hidden x hidden */
    bool channel_bare;      /* the same without the gate: RWKV-7 */
    bool shared_gate;       /* a 1 x hidden gate on the shared expert's output */
    bool router_bias;       /* bias of the router product */
    int64_t act_params;     /* numbers that the nonlinearity stores (xIELU: two) */
    bool inner_norm;        /* RMS norm of the dense width, before the down product */
    bool router_norm;       /* the router reads an RMS norm of its own */
    bool expert_scale;      /* one stored factor of each expert's routing weight */
    int64_t branch_norms;   /* norms of width `hidden` around routed and shared experts, beyond those of the layer */
    bool router_correction; /* load-balancing bias of `experts` elements, stored though not trained by gradient */
    bool sum_bias;          /* a vector of the model width added to the sum of the experts, and to that of queries' */
    bool image_correction;  /* another for tokens of images: held */
};

/* What a norm of the stream stores: a weight, or a weight and a bias, or nothing (statistics alone). */
enum norm_kind { NORM_RMS, NORM_LAYER, NORM_LAYER_BIAS, NORM_RMS_PLAIN, NORM_LAYER_PLAIN };

/* Matrices that a checkpoint may store in formats of their own. */
enum module {
    MODULE_Q,
    MODULE_K,
    MODULE_V,
    MODULE_O,
    MODULE_Q_A, /* latent attention: down into and up from the latents */
    MODULE_Q_B,
    MODULE_KV_A,
    MODULE_KV_B,
    MODULE_INDEX_Q,
    MODULE_INDEX_K,
    MODULE_STATE_IN, /* recurrent: what makes keys and values, the gate, the rates; back to the stream */
    MODULE_STATE_GATE,
    MODULE_STATE_RATES,
    MODULE_STATE_STEP_DOWN, /* Mamba-1: what makes the time step's latent, B and C; time steps of the latent */
    MODULE_STATE_STEP_UP,
    MODULE_STATE_OUT,
    MODULE_DECAY_DOWN, /* decays of the delta rule: down to a rank and up from it; and its gate's */
    MODULE_DECAY_UP,
    MODULE_GATE_DOWN,
    MODULE_GATE_UP,
    MODULE_OUT_GATE,      /* of latent attention's output */
    MODULE_MIXER_ADAPTER, /* a layer's own low-rank products beside weights that it shares: attention's, the MLP's */
    MODULE_FFN_ADAPTER,
    MODULE_CHANNEL_GATE, /* of RWKV's channel mix */
    MODULE_BLOCK_OUT,    /* behind a block that layers share */
    MODULE_LATENT_DOWN,  /* of experts in a latent space */
    MODULE_LATENT_UP,
    MODULE_GATE, /* of the dense MLP */
    MODULE_UP,
    MODULE_DOWN,
    MODULE_SHARED_GATE,
    MODULE_SHARED_UP,
    MODULE_SHARED_DOWN,
    MODULE_EXPERT_GATE,
    MODULE_EXPERT_UP,
    MODULE_EXPERT_DOWN,
    MODULE_ROUTER, /* from here on kept as floats by all formats that do not say otherwise */
    MODULE_SHARED_SWITCH,
    MODULE_INDEX_WEIGHTS,
    MODULE_STATE_BLOCKS, /* RG-LRU: gates by blocks, no linear layer */
    MODULES
};

struct layer_kind {
    int64_t count;
    struct mixer mixer;
    struct ffn ffn;
    int64_t norms; /* norms of width `hidden` in a layer */
    bool encodes;  /* of the encoder: runs once a request, over the source, whose tokens all see each other */
    bool borrowed; /* its weights are those of the kind before it, adapters and out_proj apart */
    int64_t mixer_gate_rank, ffn_gate_rank; /* what the norm before a block makes is gated by a low-rank product of it,
                                             * through a nonlinearity and a sigmoid (A.X K2); 0: plain */
    int64_t ffn_condition_rank; /* what the norm before the feed-forward block makes is scaled, element by element, by a
                                 * low-rank product of one vector that all tokens of a pass share (Voxtral Realtime: the
                                 * delay of its text); 0: none */
    int64_t engram_rows;        /* of the table of n-grams before the layer (model.engram_columns); 0 none */
    bool residual_weights;      /* a stored factor of every element of the stream in both sums with it (Doge) */
    bool residual_gates; /* ... of every element of the stream and of the block, both of one stored number (Muse) */
    bool plain_norm;     /* a norm without a weight behind the mixer, beside those of norms */
    bool one_residual;   /* the stream is added to once, after the feed-forward block */
    bool parallel;       /* mixer and feed-forward read the same input, and one sum takes both */
    const char *label;   /* "attention + mlp", "sliding attention + experts", "attention | mlp" when parallel, ... */
    const struct dtype *const *formats; /* by enum module; NULL entries, or NULL: that of the weight class */
};

/* One layer and its kind. */
struct layer_place {
    int64_t layer; /* from 0; a block in front of a layer has its number */
    size_t kind;   /* of kinds[] */
};

/* Parts of a model that may be stored in different formats. */
enum weight_class {
    WEIGHT_EMBED,
    WEIGHT_HEAD,
    WEIGHT_MIXER,
    WEIGHT_FFN,
    WEIGHT_EXPERT,
    WEIGHT_ROUTER,
    WEIGHT_OTHER,
    WEIGHT_CLASSES
};

/* An encoder of images or of sound beside the language model, with what joins it to the stream (MODEL.md "Towers"):
 * parameters, and of them those that every tensor-parallel rank has a copy of. 0: the file has none; NAN: it has one
 * that is not described. */
struct model_tower {
    const char *name; /* NULL none */
    double params, whole_params;
    double tokens;        /* that an image (or each tile of it), or 30 seconds of sound, becomes; 0 not known */
    int64_t token_pixels; /* images keep their size: side of the square of pixels that becomes one token; 0 */
};

/* A convolution over time: of `in` channels, at every stride-th place, with a nonlinearity; norm: of all channels and
 * places of a sequence together, with a weight and a bias of each channel. */
struct model_conv {
    int64_t in, out, taps, stride;
    bool bias, norm;
};

enum { STEM_MAX = 3 };

/* The encoder of an encoder-decoder, as wide as its decoder: it reads a source once, and layers of the decoder attend
 * to its output (MODEL.md "Encoder-decoders"). */
struct model_encoder {
    int64_t layers;                   /* 0: none */
    int64_t source_tokens;            /* that it reads (of sound: after the stem); 0: the file does not say */
    int64_t position_rows;            /* of a stored table of positions; 0: none */
    int64_t position_offset;          /* of those, rows before that of the first token */
    struct model_conv stem[STEM_MAX]; /* of sound; none: tokens, by the decoder's table or its own */
    size_t stem_n;
    bool own_embedding; /* a table of tokens of its own, not the decoder's */
    bool embed_norm;    /* behind the table or the stem */
    bool final_norm;
    int64_t start_tokens; /* that the decoder has before it generates */
};

/* What a model has in place of a decoder's ends. A classifier has a head of so many labels, an encoder of text none. A
 * draft head reads hidden vectors of a target model, and may use the target's embedding and output head. All zero: a
 * model of its own. MODEL.md "Draft heads". */
struct model_draft {
    int64_t joined; /* vectors of width hidden, side by side, that one product makes one of; 0: none */
    bool joined_bias;
    int64_t norms_before, norms_after;  /* norms of width hidden before that product, and after it */
    bool embed_borrowed, head_borrowed; /* the target's: read, not stored */
    bool no_embedding, no_final_norm, no_head;
    int64_t head_rows; /* tokens, or labels, that its own output head knows; 0: vocab */
    int64_t heads;     /* output heads, a matrix each; 0: one */
};

/* Multi-token prediction: modules of layers that the checkpoint stores beside the model. 0 modules: none. */
struct model_mtp {
    int64_t modules, layers; /* layers of one module */
    struct layer_kind *kinds;
    size_t kinds_n;
    bool copies; /* each stores an embedding and an output head of its own */
};

/* Low-rank adapters that are served beside the model (LoRA), as engines allot them: slots of one rank beside each
 * product, which adapters of requests are loaded into. MODEL.md "Adapters". */
struct model_adapters {
    int64_t slots;    /* 0: none are served */
    int64_t rank;     /* of the slots, whatever that of an adapter */
    int64_t among;    /* adapters that sequences choose among, all alike; those of a batch have slots */
    unsigned modules; /* products with slots, bits of enum lora_module (cost/lora.h); 0: all */
    bool sharded;     /* both factors are split over ranks, not one of them */
};

struct model {
    const char *name;
    const char *source;    /* file or built-in it was read from */
    const char *family;    /* row of the families table */
    bool foreign_states;   /* the family has recurrent layers as no engine serves them (family.h engine_states) */
    const char *attention; /* "MHA", "GQA", "MQA", "MLA" and windows, for display */
    int64_t hidden, vocab, layers;
    int64_t loops; /* times that the layers run one after the other, each time with caches of their own, the final norm
                    * behind each; 0: once. MODEL.md "Loops" */
    bool loops_bare;            /* the norm is behind the last time alone */
    bool exit_gate;             /* behind each a product of one number says whether to go on */
    int64_t position_rows;      /* learned absolute positions; 0: none */
    int64_t position_offset;    /* of those, rows before that of the first token */
    int64_t max_context_tokens; /* 0 unknown */
    bool tied;                  /* the output head is the embedding */
    bool head_bias;
    bool head_dense, head_dense_bias;  /* a hidden x hidden product, a nonlinearity and a norm before the output head */
    bool embed_norm, embed_norm_plain; /* plain: statistics alone */
    int64_t rope_scales;               /* stored factors of the rotation's frequencies, for all layers; 0 none */
    /* Gemma 3n and 4. per_layer_dim: elements that every layer adds to its input by token, from a table of
     * per_layer_vocab rows for all layers together; streams: residual streams that a layer predicts and corrects
     * (AltUp, arXiv 2301.13310); laurel_rank: of a learned residual beside attention (LAuReL, arXiv 2411.07501);
     * layer_scale: a stored number times each layer's output. 0 none. */
    int64_t per_layer_dim, per_layer_vocab, streams, laurel_rank;
    bool layer_scale;
    /* Hyper-connections (DeepSeek-V4): residual streams that each block reads a mixture of and writes to all of, by
     * weights that hyper_rounds rounds make doubly stochastic. 0 none. */
    int64_t hyper_streams, hyper_rounds;
    bool hyper_identity; /* streams keep what they have, unmixed, and are written to (Hy4) */
    bool hyper_handed;   /* weights to read by are made one block earlier, and the last ones close (DeepSeek-V4.1) */
    int64_t hyper_rank;  /* streams are read by a product of this rank, element by element, behind a norm that is the
                          * block's (Qwen4); 0: by a number a stream */
    bool hyper_mean;     /* their mean goes to the output head, by no weights (GLM-5.3-Flash) */
    /* Attention residuals (Kimi K3; arXiv 2607.24653): every block reads a mixture of the sums of groups of so many
     * layers, by scores of their norms, instead of one sum of all. 0 none. */
    int64_t residual_group;
    /* Engram (DeepSeek-V4.1): of each n-gram that ends in a token rows of a table, by hashes; side by side they make a
     * key for every stream and a value that is added to each by a gate. Rows of a token, and their width. */
    int64_t engram_columns, engram_width;
    /* Qwen4: what is added passes a convolution of so many taps, each so many tokens apart, behind a norm, with others
     * of the streams and of their keys; 0 none of that. */
    int64_t engram_taps, engram_spacing;
    int64_t embed_extra_rows;        /* of the input embedding, beyond the vocabulary */
    struct model_tower tower, audio; /* of images, of sound */
    bool towerless;                  /* and they are not loaded */
    struct model_encoder encoder;
    struct model_draft draft;
    struct model_mtp mtp;
    struct model_adapters adapters;
    bool adapted_vocabulary; /* where adapters are served, embedding and head have slots too (family.h) */
    /* Queries see later tokens too: all of them, or with block_causal those of their own block. diffusion: a pass
     * proposes block_tokens at once (0: the whole sequence), and block_steps passes settle them (0: as many as there
     * are tokens). MODEL.md "Diffusion". */
    bool bidirectional, block_causal, diffusion;
    int64_t block_tokens, block_steps;
    enum norm_kind norm;
    size_t kinds_n;
    struct layer_kind *kinds;
    size_t order_n;
    struct layer_place *order;            /* each block in the order they run; NULL: kind after kind */
    struct dtype weights[WEIGHT_CLASSES]; /* as stored */
    size_t whole_kinds_n; /* kinds before layers that differ in formats alone were told apart; 0 they were not */
    struct layer_kind *whole_kinds;
    struct layer_place *whole_order;
    const char *weights_unknown; /* why the stored format could not be priced; NULL when weights[] holds */
    const char *formats_assumed; /* a sentence where the file leaves them open; NULL, or another format was named */
    struct dtype kv, activations;
    struct dtype state;                /* of recurrent states; that of convolutions is kept as activations */
    bool state_assumed;                /* the file does not say it */
    double stored_bytes, stored_elems; /* of the checkpoint's tensors, by their own headers; NAN no checkpoint */
    bool stored_plain;                 /* stored elements are parameters: no packed ones among them */
    char hash[17];                     /* of the file with its settings applied */
    const char *notes; /* what the file holds that is not counted ("vision tower not counted"); NULL none */
};

/* model_parse -- a config.json, parsed, as a model. name and source are set by the caller.
 * Errors: ERR_INPUT naming file and key path: missing key, wrong type, size outside its bounds, contradiction, unknown
 * model_type (nearest offered), quantisation or cache layout that is not known. */
enum err_code model_parse(struct arena *a, const struct json *j, struct model *out, struct err *e);

/* One "KEY=VALUE" of --set: a symbol of the course (L D F N K H V E) or a key of config.json. */
struct model_setting {
    const char *key, *value;
};

/* model_load -- from a path to a config.json, a directory that holds one, a .gguf or a directory with one and no
 * config.json, a built-in name or alias, or a Hugging Face id in the local cache ($HF_HOME, ~/.cache/huggingface/hub).
 * Settings override keys before reading. Tensors beside a config.json fill stored_* (not with settings: then it is
 * another model) and say how its weights are stored, where the config says otherwise; so do those of a .gguf. Errors:
 * as model_parse; ERR_INPUT unknown name (nearest offered), a .gguf or a header of tensors that lies; ERR_IO. */
enum err_code model_load(struct arena *a, const char *name, const struct model_setting *set, size_t n_set,
                         struct model *out, struct err *e);

/* model_mtp -- one module of m's multi-token prediction as a draft model, in m's formats; false: it has none. */
bool model_mtp(const struct model *m, struct model *out);

/* model_eagle -- a draft head as published for models without experts: the feature and the embedding joined, one
 * decoder layer like m's last, m's embedding and output head. model_medusa -- heads of one residual unit and an output
 * matrix each, over m's last hidden vector. Heads of other shapes have files of their own (model_load). Errors:
 * ERR_USAGE m's last layer is no attention with an MLP; ERR_NOMEM. Source: 2401.15077; 2401.10774. */
enum err_code model_eagle(struct arena *a, const struct model *m, struct model *out, struct err *e);
enum err_code model_medusa(struct arena *a, const struct model *m, int64_t heads, struct model *out, struct err *e);

/* model_positions -- tokens that its learned position table has rows for; 0: it has none. */
int64_t model_positions(const struct model *m);

/* model_context_limit -- tokens that its file allows: the rows of a learned position table, else what it states; 0: it
 * says nothing. model_check_context -- ERR_USAGE where a position table ends before `tokens`, or a
 * decoder beside an encoder begins with more; beyond what a file states alone a model still computes. */
int64_t model_context_limit(const struct model *m);
enum err_code model_check_context(const struct model *m, int64_t tokens, struct err *e);

/* model_passes_whole -- a diffusion model without blocks: every pass takes the whole sequence, and there is no cache.
 * model_set_blocks -- a diffusion model settles blocks of so many tokens, each in so many passes (0: what it had).
 * Errors: ERR_USAGE another model, passes without a block, or more of them than a block has tokens. */
bool model_passes_whole(const struct model *m);
enum err_code model_set_blocks(struct model *m, int64_t tokens, int64_t passes, struct err *e);

/* model_set_source -- an encoder reads so many tokens. Errors: ERR_USAGE no encoder, or fewer stored positions.
 * model_check_source -- the same without setting it. model_source_ahead -- tokens of it in front of each prompt, as a
 * server counts them (MODEL.md "Encoder-decoders", *Served*); 0 without an encoder. model_refuse_encoder -- what is not
 * described of an encoder-decoder: "MODEL has an encoder, and WHAT". Errors: ERR_USAGE it has one. */
enum err_code model_set_source(struct model *m, int64_t tokens, struct err *e);
enum err_code model_check_source(const struct model *m, int64_t tokens, struct err *e);
int64_t model_source_ahead(const struct model *m);
enum err_code model_refuse_encoder(const struct model *m, const char *what, struct err *e);

/* Bytes of a model's towers on one GPU: split_bytes/tp + whole_bytes, of tp tensor-parallel ranks. */
struct model_beside {
    double split_bytes, whole_bytes;
};

/* model_beside_of -- of one tower, in the file's plain format, whatever the linear layers are stored in; NAN where it
 * is not described. model_beside -- of all that are loaded, 0 with towerless; what is not described is nothing here.
 * model_beside_bytes -- on one of tp ranks. Source: MODEL.md "Towers". */
struct model_beside model_beside_of(const struct model *m, const struct model_tower *t);
struct model_beside model_beside(const struct model *m);
double model_beside_bytes(const struct model_beside *b, double tp);

/* model_same -- whether two descriptions cost the same, whatever their names, notes and sources: sizes, layers and
 * their order, formats of what there is. */
bool model_same(const struct model *a, const struct model *b);

/* model_same_layer -- the same of a layer of two kinds, but for its formats. Kinds are zeroed before they are filled,
 * so bytes compare them; two that differ in padding alone would only be listed twice. */
bool model_same_layer(const struct layer_kind *a, const struct layer_kind *b);

/* model_builtins -- names of the built-in models, in order; returns how many. */
size_t model_builtins(struct arena *a, const char *const **names);

/* model_hub_id -- the Hugging Face id of a built-in model, called `name` here: that id where the name is one, else of
 * the checkpoints of its shape the first that is trained to answer (Instruct, Chat, it), else the first; NULL: none is
 * known, or no built-in. */
const char *model_hub_id(struct arena *a, const char *name);

/* model_linear_format -- the format that most weights are stored in: of the experts where there are any, else of the
 * MLP. */
const struct dtype *model_linear_format(const struct model *m);

#endif
