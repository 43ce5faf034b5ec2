/* cost -- the operators of a model in one forward pass, each with its FLOPs and bytes as exact expressions.
 *
 * This is the only place where such formulas exist: memory, time, intensity and explanations all read the same
 * operators. Derivations, sources and conventions: calc/MODEL.md. One multiply-add is 2 flops. Bytes are those of a
 * kernel that reads each operand once (infinite cache within a kernel) and finds nothing of it on chip (cold between
 * kernels). */
#ifndef RIDGE_COST_COST_H
#define RIDGE_COST_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/cost/layout.h"
#include "calc/cost/routing.h"
#include "calc/model/model.h"
#include "calc/sym/sym.h"

enum { COST_FP32_BYTES = 4 };

/* The symbols: field, text, meaning. Workload first, so that products print as the course writes them. */
#define COST_SYMBOLS(X)                                                                                                \
    X(B, "B", "sequences in the batch")                                                                                \
    X(S, "S", "tokens attended to, the new ones included")                                                             \
    X(T, "T", "query tokens per sequence in the pass")                                                                 \
    X(M, "M", "consecutive decode steps averaged over, the last at context S")                                         \
    X(X, "X", "tokens of the source that an encoder has read")                                                         \
    X(L, "L", "layers")                                                                                                \
    X(D, "D", "model width")                                                                                           \
    X(F, "F", "MLP hidden width (dense, or of one routed expert)")                                                     \
    X(N, "N", "query heads")                                                                                           \
    X(K, "K", "KV heads")                                                                                              \
    X(H, "H", "width of a query or key head (MLA: without rope)")                                                      \
    X(Hv, "Hv", "width of a value head")                                                                               \
    X(V, "V", "vocabulary")                                                                                            \
    X(E, "E", "routed experts")                                                                                        \
    X(k, "k", "routed experts per token")                                                                              \
    X(Fs, "Fs", "hidden width of the shared experts together")                                                         \
    X(C, "C", "width of the cached latent (MLA)")                                                                      \
    X(R, "R", "shared rope part of a key (MLA)")                                                                       \
    X(Q, "Q", "width of the query latent (MLA)")                                                                       \
    X(W, "W", "attention window")                                                                                      \
    X(U, "U", "keys that a query selects (sparse attention)")                                                          \
    X(Ni, "Ni", "heads of the indexer (sparse attention)")                                                             \
    X(Hi, "Hi", "width of an indexer head")                                                                            \
    X(Tp, "Tp", "tokens of an entry of a compressed cache")                                                            \
    X(Go, "Go", "groups of heads of a low-rank output product")                                                        \
    X(Ro, "Ro", "numbers that each such group gives")                                                                  \
    X(Dl, "Dl", "width of a layer's own input by token")                                                               \
    X(Vl, "Vl", "rows of the table of such inputs")                                                                    \
    X(A, "A", "residual streams (AltUp, hyper-connections)")                                                           \
    X(La, "La", "rank of a learned residual (LAuReL)")                                                                 \
    X(Nj, "Nj", "vectors that a draft head joins into one")                                                            \
    X(Vd, "Vd", "tokens that a draft head knows")                                                                      \
    X(P, "P", "rows of the learned position table")                                                                    \
    X(J, "J", "taps of a short convolution")                                                                           \
    X(Tc, "Tc", "tokens of a chunk of a scan")                                                                         \
    X(Ra, "Ra", "rank of the low-rank products of a recurrent mixer, or of an adapter")                                \
    X(Rm, "Rm", "rank of the mixtures with the token before (RWKV-6)")                                                 \
    X(Ri, "Ri", "rank of the rates of RWKV-7")                                                                         \
    X(Rv, "Rv", "rank of the share of the first layer's values (RWKV-7)")                                              \
    X(Rg, "Rg", "rank of the gate of RWKV-7")                                                                          \
    X(Hf, "Hf", "width of queries and keys before a Taylor map")                                                       \
    X(Fw, "Fw", "width of the MLP that makes a filter")                                                                \
    X(Fe, "Fe", "inputs of that MLP")                                                                                  \
    X(Ft, "Ft", "times that are stored for it")                                                                        \
    X(Z, "Z", "width of the projection in which latent experts work")                                                  \
    X(Rl, "Rl", "rank of the slots of low-rank adapters")                                                              \
    X(Sl, "Sl", "such slots")                                                                                          \
    X(Al, "Al", "adapters that sequences choose among")                                                                \
    X(t, "t", "tensor-parallel ranks")                                                                                 \
    X(r, "r", "bytes sent per byte all-reduced: 2(t-1)/t on a ring, 1 in a reducing switch")                           \
    X(b_kv, "b_kv", "bytes per cached element")                                                                        \
    X(b_index, "b_index", "bytes per cached element of an indexer")                                                    \
    X(b_state, "b_state", "bytes per element of a recurrent state")                                                    \
    X(b_act, "b_act", "bytes per activation element")                                                                  \
    X(b_embed, "b_embed", "bytes per element of the embedding")                                                        \
    X(b_head, "b_head", "bytes per element of the output head")                                                        \
    X(b_mixer, "b_mixer", "bytes per weight of the token mixer")                                                       \
    X(b_ffn, "b_ffn", "bytes per weight of a dense feed-forward block")                                                \
    X(b_expert, "b_expert", "bytes per weight of the routed experts")                                                  \
    X(b_router, "b_router", "bytes per weight of the router")                                                          \
    X(b_other, "b_other", "bytes per element of norms and biases")

struct cost_symbols {
#define X(field, text, meaning) const struct sym *field;
    COST_SYMBOLS(X)
#undef X
};

/* cost_symbols_make -- the variables in a context. Failure is sticky in the context. */
struct cost_symbols cost_symbols_make(struct sym_ctx *c);

#define COST_OPS(X)                                                                                                    \
    X(EMBED, "embed", "gather one embedding row per token")                                                            \
    X(POSITIONS, "positions", "gather and add one learned position row per token")                                     \
    X(NORM, "norm", "RMS or layer norm over the model width")                                                          \
    X(LINEAR, "linear", "matrix product with a weight")                                                                \
    X(HEAD_NORM, "head_norm", "RMS norm over each query and key head, or over a latent")                               \
    X(ROPE, "rope", "rotary position embedding of queries and keys")                                                   \
    X(KV_WRITE, "kv_write", "new keys and values, or latents, into the cache")                                         \
    X(ATTENTION, "attention", "scores, softmax and weighted sum, fused")                                               \
    X(INDEX, "index", "scores of the indexer and choice of the best keys")                                             \
    X(ABSORB, "absorb", "per-head product that moves queries into, or values out of, the latent space")                \
    X(MLP, "mlp", "whole MLP in one kernel (the course's convention)")                                                 \
    X(ACTIVATION, "activation", "nonlinearity, times the other branch when gated")                                     \
    X(ROUTE, "route", "softmax over experts and choice of the best")                                                   \
    X(EXPERTS, "experts", "grouped product with the routed experts' weights")                                          \
    X(COMBINE, "combine", "weighted sum of the routed experts' outputs")                                               \
    X(RESIDUAL, "residual", "sum with the residual stream")                                                            \
    X(CONV, "conv", "short causal convolution of each channel")                                                        \
    X(SCAN, "scan", "recurrence over the tokens, state read and written")                                              \
    X(LONG_CONV, "long_conv", "convolution of each channel with a filter as long as the context")                      \
    X(GATED_NORM, "gated_norm", "norm of a recurrent mixer's output, times its gate")                                  \
    X(STREAMS, "streams", "prediction or correction of the residual streams")                                          \
    X(SCALE, "scale", "product of the residual stream with a stored number or vector")                                 \
    X(LORA_SHRINK, "lora_shrink", "inputs through the first factors of the adapters that tokens have")                 \
    X(LORA_EXPAND, "lora_expand", "those through the second factors, added to the product's output")                   \
    X(LM_HEAD, "lm_head", "logits")                                                                                    \
    X(SAMPLE, "sample", "softmax over the vocabulary and a draw")                                                      \
    X(ALL_REDUCE, "all_reduce", "sum over the tensor-parallel ranks")                                                  \
    X(ALL_GATHER, "all_gather", "logits of all ranks")                                                                 \
    X(ALL_TO_ALL, "all_to_all", "tokens to the ranks of their experts, and results back")                              \
    X(SEND, "send", "the stream to the next stage")

enum cost_op_kind {
#define X(id, name, meaning) OP_##id,
    COST_OPS(X)
#undef X
        OP_KINDS
};

const char *cost_op_name(enum cost_op_kind kind);
const char *cost_op_meaning(enum cost_op_kind kind);

struct cost_op;

/* cost_op_says -- the sentence of one operator: its own, or that of its kind. */
const char *cost_op_says(const struct cost_op *op);

/* A stored tensor (or `copies` equal ones) of an operator. */
struct cost_tensor {
    enum weight_class class;
    const struct sym *elems; /* of all copies */
    const struct sym *bytes; /* as stored, scales included */
    bool shared;             /* already stored by another operator (a tied head): counts nothing */
    bool norm;               /* a norm: the course leaves it out of its parameter count */
    bool idle;               /* held, and works on no token of text */
};

enum { COST_TENSORS_MAX = 4 };

/* One operator of one layer (or of the model, kind_index -1), per forward pass on one tensor-parallel rank. */
struct cost_op {
    enum cost_op_kind kind;
    const char *name;                      /* "qkv_proj" */
    const char *shape;                     /* for people: "[B*T, D] x [D, (N+2K)*H]" */
    const char *says;                      /* for people, in place of its kind's meaning; NULL: that */
    int kind_index;                        /* layer kind, -1 outside the layers */
    bool apart;                            /* works on each sequence by itself: no other's tokens go through with it */
    bool context;                          /* of the ranks that share a context, not of all tensor-parallel ones */
    bool encodes;                          /* of an encoder, or made of its output: once a request */
    int part;                              /* of a mixed pass: whose sequences (enum mixed_part); -1: of all */
    bool by_group;                         /* of experts of groups of experts */
    int64_t count;                         /* layers that have it */
    bool closes;                           /* after the layers: the last stage has it; else, outside them, the first */
    int compute_class;                     /* weight class whose format decides the matrix unit; -1: the activations' */
    const struct dtype *format;            /* its own format, which decides instead; NULL: that of the class */
    const struct sym *flops;               /* on the matrix unit */
    const struct sym *half_flops;          /* of them in 16 bits whatever the format (outlier columns) */
    const struct sym *vector_flops;        /* elementwise, on the vector unit */
    const struct sym *weight_bytes;        /* read */
    const struct sym *weight_needed_bytes; /* of them what no fusion avoids: nothing for those of an earlier layer */
    const struct sym *kv_bytes;            /* cache read and written */
    const struct sym *kv_needed_bytes;     /* of them what no fusion avoids: old tokens read, new ones written */
    const struct sym *held_bytes;          /* of the batch, that this operator keeps in cache or state at S */
    const struct sym *state_bytes;         /* recurrent state read and written */
    const struct sym *state_needed_bytes;  /* of them what no fusion avoids */
    const struct sym *activation_bytes;    /* read and written */
    const struct sym *wire_bytes;          /* sent by this rank, within its node */
    const struct sym *fabric_bytes;        /* sent by it to other nodes */
    const struct sym *rows, *in, *out;     /* of a product [rows, in] x [in, out], of one matrix of many; else 0 */
    struct cost_tensor tensor[COST_TENSORS_MAX];
    size_t tensors_n;
};

/* cost_op_adapts -- whether it is work of adapters, whose tensors are slots beside the model's weights. */
bool cost_op_adapts(const struct cost_op *op);

/* Which form latent attention takes: that of the pass (decode absorbed, prefill expanded), or one for both. */
enum cost_latent { LATENT_BY_PASS, LATENT_ABSORBED, LATENT_EXPANDED };

/* Named switches; zero is the default of each. `ridge explain --conventions` says them all. */
struct cost_conventions {
    bool causal_full;           /* attention products counted for all S*T pairs, not only the causal ones */
    bool embed_full_table;      /* the whole input embedding is read each pass, not B*T rows */
    bool mlp_fused;             /* gate, up, product and down are one kernel */
    bool head_all;              /* logits for every position, not only the last */
    bool norms_uncounted;       /* norms are left out of parameters and weight bytes */
    bool activations_uncounted; /* memory is weights, cache and state alone */
    unsigned fused;             /* elementwise work done in the kernel beside it (fusion.h) */
    struct routing routing;     /* distinct experts of a pass */
    enum cost_latent latent;    /* of latent attention without a choice of keys */
    int64_t head_multiple;      /* query heads of absorbed attention fill blocks of so many; 0: no blocks */
};

/* cost_conventions_of -- the defaults, or those of the course (CS336 lecture 10). */
struct cost_conventions cost_conventions_of(bool course);

/* A forward pass: T new tokens against a context that ends at S. */
struct cost_pass {
    const char *name; /* "prefill", "decode" */
    const struct sym *B, *T, *S;
    const struct sym *M; /* NULL: one pass; else the mean of decode steps of T over M tokens, the last at S */
    bool absorbed;       /* MLA: attend in the latent space */
    bool uncached;       /* no cache: keys and values of all S tokens are made in the pass, T = S */
    bool encodes;        /* the encoder reads the source, and keys and values of its output are made, in this pass */
    const struct sym *source_new, *source_held; /* of a part of a mixed pass of an encoder-decoder: tokens of the source
                                                   that one sequence has read in it, and that it has in the cache */
    bool all_logits;        /* of every position, and a token drawn for each: a denoising or a verifying pass */
    struct cost_sums *sums; /* NULL; else the pass is a part of a mixed one (mixed.h): T and S are of one sequence, */
    const struct sym *rows; /* and all its sequences give `rows` tokens of the `step_rows` and `step_sequences` */
    const struct sym *step_rows, *step_sequences; /* of the whole step */
    const struct sym *step_routed; /* tokens of all attention groups, that experts have; NULL: as many as of one each */
};

/* Sums over the sequences of a part of a mixed pass: var stands for the sum of `each`, an expression in T and S. */
struct cost_sum {
    const struct sym *var, *each;
    int kind_index;
};
struct cost_sums {
    const char *name; /* of the part */
    struct cost_sum *at;
    size_t n, cap;
};

struct cost_ops {
    struct cost_op *op;
    size_t n;
};

/* cost_build -- the operators of a pass, symbolic in everything but structure and stored formats (a format with scales
 * adds its scale bytes; its element width is the symbol b_*). tp > 1 adds the collectives. Order is execution order.
 * Errors: ERR_NOMEM. Cost: O(layer kinds). */
enum err_code cost_build(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                         const struct cost_conventions *v, const struct cost_pass *pass, int64_t tp,
                         struct cost_ops *out, struct err *e);

/* A layout of ranks; with `free` its numbers stay symbols (t, r and those of layout.h) and all collectives are there,
 * so that one list of operators serves every layout. sp is of the structure, never free. */
struct cost_layout {
    struct layout layout;
    bool free;
};

/* cost_build_layout, cost_bind_layout -- as cost_build and cost_bind, of one rank of a layout: pass->B sequences are
 * those of one attention group, expert operators have their tokens of all groups. r and the numbers of links stay.
 * Errors: as layout_check, which is asked where the layout is not free. */
enum err_code cost_build_layout(struct arena *a, struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                                const struct cost_conventions *v, const struct cost_pass *pass,
                                const struct cost_layout *l, struct cost_ops *out, struct err *e);
enum err_code cost_bind_layout(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct cost_layout *l, struct cost_ops *ops, struct err *e);

/* What a stage has: layers of each kind of the model, and 1 or 0 of what is before and after the layers. */
struct cost_stage {
    const struct sym *const *layers; /* [kinds_n] */
    const struct sym *first, *last;
};

/* cost_times -- how often a stage runs an operator; stage NULL: the whole model. */
const struct sym *cost_times(struct sym_ctx *c, const struct cost_op *op, const struct cost_stage *stage);

/* cost_bind -- replace all symbols of the model and its formats by the numbers of one of tp ranks; B, S, T, M, r stay.
 * Heads and widths are split (K heads replicated when fewer than tp), the vocabulary in ceil(V/tp) rows, latents, norms
 * and routers replicated. Errors: ERR_USAGE a layout that does not divide (names heads or width), ERR_NOMEM. */
enum err_code cost_bind(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                        struct cost_ops *ops, struct err *e);

/* cost_bind_as -- the same, with one symbol left free (NULL: none), or every bound symbol x as x times its number, so
 * that x = 1 is the model and d ln(.)/d ln(x) there says what a larger x costs. A free symbol is the size of the whole
 * model, of which a rank has the share that it has of the model's own (F/t; of KV heads at least one); free_kind: a
 * size of layers is free in this kind alone, -1: in all. Where value heads are as wide as key heads (plain attention),
 * Hv is H. Errors: as cost_bind. */
struct cost_binding {
    const struct sym *free;
    int free_kind;
    bool relative;
};
enum err_code cost_bind_as(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                           const struct cost_binding *how, struct cost_ops *ops, struct err *e);

/* cost_size -- the number of a symbol in one kind of layer (-1: outside the layers) on one of tp ranks; tp 1: of the
 * whole model. NULL where that part of the model has no such size: a dense MLP no E, and nothing B, S or r. Errors: as
 * cost_bind. */
enum err_code cost_size(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int kind, int64_t tp,
                        const struct sym *var, const struct sym **out, struct err *e);

/* cost_parameters -- exact counts: total counts every stored tensor once (tied head once, routing buffers included);
 * active takes experts_per_token of the experts. Tokens whose choices are of no computation, or that meet fewer groups,
 * use from active_min to active_max of them, active in the mean; equal where all use as many (MODEL.md "experts").
 * Errors: ERR_RANGE beyond 2^53. */
struct cost_parameters {
    double total, active, active_min, active_max, embedding, head, routed;
};
enum err_code cost_parameters(struct arena *a, const struct model *m, const struct cost_conventions *v,
                              struct cost_parameters *out, struct err *e);

/* cost_weight_bytes -- bytes of all tensors of bound operators, slots of adapters among them. */
const struct sym *cost_weight_bytes(struct sym_ctx *c, const struct cost_ops *ops, const struct cost_conventions *v);

/* cost_adapter_bytes -- those of them that are slots of adapters; of a stage, or (NULL) of the whole model. */
const struct sym *cost_adapter_bytes(struct sym_ctx *c, const struct cost_ops *ops, const struct cost_conventions *v,
                                     const struct cost_stage *stage);

/* cost_stage_weight_bytes -- the same of a stage. A head tied to the embedding is stored once more where the two lie in
 * different stages. */
const struct sym *cost_stage_weight_bytes(struct sym_ctx *c, const struct cost_ops *ops,
                                          const struct cost_conventions *v, const struct cost_stage *stage);

/* cost_layer_weight_bytes -- the same of layers alone: neither embedding nor head, nor slots of adapters. */
const struct sym *cost_layer_weight_bytes(struct sym_ctx *c, const struct cost_ops *ops,
                                          const struct cost_conventions *v, const struct cost_stage *stage);

/* cost_index_is_fp8 -- whether a layer has an indexer that weighs its heads (DeepSeek-V3.2): its keys are cached in fp8
 * with a float for every 128 elements, whatever the format of the cache. */
bool cost_index_is_fp8(const struct mixer *x);

/* Cache of one sequence on one rank, bound: bytes at context S (windows cut, indexers included), bytes per token of
 * keys and values that grow with context and within the window only, and of indexers' keys, which grow. An engine that
 * gives every layer full length charges the sum of all. Layers that share the cache of another have none. The state of
 * recurrent layers (matrices, and columns of the short convolutions) is beside it and does not grow. Keys and values of
 * an encoder's output are as many as the source has tokens, X, whatever S. */
struct cost_cache {
    const struct sym *bytes_per_sequence; /* in S, of an encoder-decoder X too, and b_kv's number */
    double bytes_per_token_full, bytes_per_token_windowed, bytes_per_token_index, bytes_per_source_token;
    double state_bytes_per_sequence;
};
enum err_code cost_cache(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m, int64_t tp,
                         struct cost_cache *out, struct err *e);

/* cost_kind_cache -- what one layer of kind k keeps on one of tp ranks: bytes of a token in its cache, of a token's key
 * for the indexer, and of a sequence's state; 0 where it keeps none. Errors: ERR_USAGE heads that do not divide;
 * ERR_NOMEM. */
struct cost_kind_cache {
    double token_bytes, index_bytes, state_bytes;
};
enum err_code cost_kind_cache(struct arena *a, const struct model *m, const struct layer_kind *k, int64_t tp,
                              struct cost_kind_cache *out, struct err *e);

/* cost_stage_cache -- the same of one rank of a layout and a stage, as expressions. */
struct cost_stage_cache {
    const struct sym *per_sequence, *per_token_full, *per_token_windowed, *per_token_index, *per_source_token,
        *state_per_sequence;
};
enum err_code cost_stage_cache(struct sym_ctx *c, const struct cost_symbols *y, const struct model *m,
                               const struct cost_layout *l, const struct cost_stage *stage,
                               struct cost_stage_cache *out, struct err *e);

#endif
