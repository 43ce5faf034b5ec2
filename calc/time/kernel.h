/* kernel -- one call of a measured kernel: its exact work, the time it cannot beat, and a calibrated time.
 *
 * Work is what any implementation must do: multiply-adds of the unmasked products, and each operand moved once. The
 * bound is max(flops/peak, bytes/bandwidth). A loop that replays a kernel finds up to a last-level cache full of its
 * operands on chip, so what a measurement is held against is the credited bound,
 *   max(flops/peak, max(0, bytes - L2)/bandwidth); of collectives max(sent, received) bytes / link, nothing credited.
 * Of a cold call, in a step that reads other weights in between, at most its activations are credited. On a core
 * whose caches were measured nothing is: a hot call's bytes come at the rate of the cache that holds them, and of a
 * cold call memory_s is max(bytes read/rate of reading, all bytes/best rate of reading and writing). The calibrated
 * time is a form per class with few parameters, physical ones, never below the credited bound. Derivations: MODEL.md
 * "Calibrated times". */
#ifndef RIDGE_TIME_KERNEL_H
#define RIDGE_TIME_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "calc/time/hw.h"

enum kernel_kind {
    KERNEL_GEMM,        /* [m, k] x [k, n], groups of them */
    KERNEL_PREFILL,     /* causal attention of whole prompts */
    KERNEL_DECODE,      /* attention of one query token per sequence */
    KERNEL_MLA_PREFILL, /* latent attention, keys and values expanded per head */
    KERNEL_MLA_DECODE,  /* latent attention, absorbed */
    KERNEL_MLA_BMM,     /* the per-head products that absorption adds */
    KERNEL_MOE,         /* routed experts: permute, two grouped products, combine */
    KERNEL_MLP,         /* a dense block's products in one call: an expert that all tokens have */
    KERNEL_SCAN,        /* recurrent state over tokens: gated delta rule, Mamba-2 */
    KERNEL_CONV,        /* depthwise causal convolution */
    KERNEL_ELEMENTWISE, /* norm, activation, sum, quantisation */
    KERNEL_COLLECTIVE,
    KERNEL_KINDS_N
};

/* What is quantised inside the timing: the activations, from bf16. */
enum kernel_quant { KERNEL_QUANT_NONE, KERNEL_QUANT_DYNAMIC, KERNEL_QUANT_BLOCK };

enum kernel_collective { KERNEL_ALL_REDUCE, KERNEL_ALL_GATHER, KERNEL_REDUCE_SCATTER, KERNEL_ALL_TO_ALL };

/* A call. Only the fields of its kind count; sizes are whole numbers. */
struct kernel {
    enum kernel_kind kind;
    enum kernel_quant quant;
    enum hw_dtype unit;                          /* matrix unit that computes */
    double element_bytes, kv_element_bytes;      /* of weights or queries, of keys and values */
    double m, n, k, groups;                      /* products */
    double batch, query_tokens, prefix_tokens;   /* attention, scan, conv: per sequence */
    double context_tokens;                       /* decode: keys, the new one included */
    double heads, kv_heads, head_dim, value_dim; /* MLA decode: head_dim = latent + rope, value_dim = latent */
    double window;                               /* 0: none */
    double page_tokens; /* decode: tokens of a page of the cache, 0: one piece; NAN not known */
    bool cold; /* weights and cache come from memory, as in a step that reads many: no call left them on chip */
    /* of a call that was measured on a core: how much slower its ceilings were around it than hw says; 0: as it says */
    double compute_slower, memory_slower;
    bool host;         /* one core of a CPU: all kinds but collectives have the form of one, and nothing is credited */
    double ungrouped;  /* 1 where the query heads of a group do not share one reading of their keys */
    double flash2;     /* 1 where FlashAttention-2 runs on devices before sm_90 */
    double padded_dim; /* width that the kernel computes a head of a prefill with; 0: head_dim */
    double tokens, width, hidden, topk, experts, tp, ep, gated; /* MoE; hidden before tp; gated 0 or 1 */
    double active_experts, routed_rows, max_rows;               /* MoE, of this rank; NAN: expected values */
    double sparse; /* MoE: tokens are sorted by expert first where a part has not all experts, or where there are fewer
                      than so many experts for each choice of a token; HUGE_VAL always, 0 no kernel alone does it */
    double tile_rows; /* MoE: fewest rows of a tile; 0: 64, which an instruction computes */
    double key_heads, state_dim, chunk_tokens, state_bytes; /* scan; state_bytes: per element of the state */
    bool state_space;                                       /* scan: Mamba-2, whose rows have columns of their own */
    double channels, taps;                                  /* conv */
    double moved_bytes;                                     /* elementwise: all bytes read and written */
    double written_bytes;                                   /* elementwise: of them those written; 0 not known */
    double rotary_dim, interleaved; /* rope: elements of a head that turn; 1: pairs are neighbours, NAN either */
    double vocab, top_k, top_p_milli, temperature_milli; /* sampling, and what judges drafts: tokens there are; kept */
    double drafts, accepted,
        branches; /* what judges drafts: a sequence's in a row, of them kept, tried in each place */
    enum kernel_collective collective;
    double ranks, payload_bytes, per_node; /* all-gather, reduce-scatter: of the whole; per_node: ranks in one node */
};

struct kernel_work {
    double flops, bytes;              /* bytes: moved from and to memory, or over the link of one rank */
    double quant_bytes;               /* that quantising moves beyond bytes */
    double compute_s, memory_s;       /* flops/peak; bytes/bandwidth or bytes/link */
    double bound_s, credited_bound_s; /* credited_bound_s <= bound_s */
    bool weak;                        /* bytes < L2: only the flops are left in the credited bound */
};

/* kernel_work -- the work of k on hw. Errors: ERR_INPUT no peak, bandwidth or link is known. Cost: O(1). */
enum err_code kernel_work(const struct kernel *k, const struct hw *hw, struct kernel_work *out, struct err *e);

/* kernel_experts -- expected distinct experts that tokens touch with topk of experts each, drawn independently and
 * uniformly: E*(1 - (1 - k/E)^tokens); k for one token, E in the limit. */
double kernel_experts(double tokens, double topk, double experts);

/* kernel_fed_bytes -- bytes of an element of a product's activations as its kernel is fed with: those of the weights,
 * but 16-bit units multiply 16-bit activations however narrow the weights are stored (unpacked beside the unit). */
double kernel_fed_bytes(const struct kernel *k);

/* kernel_pairs -- (query, key) pairs of a causal prefill of T tokens behind P cached ones with window W (0: none):
 * the sum of min(s, W) over s = P+1 .. P+T. */
double kernel_pairs(double query_tokens, double prefix_tokens, double window);

/* kernel_tiles -- tiles of rows x columns that an m x n result takes, ragged ones whole. kernel_waves -- rounds in
 * which `units` SMs work off so many tiles, the last one whole: ceil(tiles/units). Source: NVIDIA, Matrix
 * Multiplication Background User's Guide, "Wave quantization". */
double kernel_tiles(double m, double n, double rows, double columns);
double kernel_waves(double tiles, double units);

/* What a parameter is on another device (kernel_scale). */
enum kernel_scaling {
    KERNEL_KEPT,    /* a part of a datasheet rate, an exponent, or a time that no clock of an SM sets: the same */
    KERNEL_CYCLES,  /* cycles of an SM: seconds by the ratio of clocks */
    KERNEL_VECTOR,  /* elementwise work of an SM: seconds by the ratio of its fp32 rates, else of clocks */
    KERNEL_SM_RATE, /* bytes a cycle that SMs draw from the last-level cache, over the bandwidth of memory */
    KERNEL_SM_FEED  /* the same of operands, which pairs of SMs share from sm_90 on: three quarters without */
};

/* A parameter of a form. Bounds are inclusive and positive; the fit works on the logarithm. */
struct kernel_param {
    const char *name, *unit, *meaning;
    double lo, hi, start[2]; /* two starts for the fit */
    enum kernel_scaling scaling;
};

/* kernel_scale -- what a parameter fitted on `from` is times on `to`; NAN where a datasheet does not say. */
double kernel_scale(enum kernel_scaling scaling, const struct hw *from, const struct hw *to);

enum { KERNEL_PARAMS_MAX = 14, KERNEL_FEATURES_MAX = 1536 };

/* What a form needs of a call, computed once. */
struct kernel_features {
    double credited_bound_s, quant_s; /* quant_s: quantisation bytes / bandwidth */
    bool quantised;
    size_t n;
    double *v; /* [n], at most KERNEL_FEATURES_MAX */
};

struct kernel_form {
    const char *name, *meaning;
    const struct kernel_param *params;
    size_t n_params;
    void (*prepare)(const struct kernel *k, const struct hw *hw, const struct kernel_work *w,
                    struct kernel_features *out);
    double (*time_s)(const struct kernel_features *f, const double *p);
    /* both at once, without features; NULL: one after the other */
    double (*once_s)(const struct kernel *k, const struct hw *hw, const struct kernel_work *w, const double *p);
};

/* kernel_form_of -- the form of a call's class. kernel_params_n, kernel_param -- its parameters, and the two of
 * quantisation where one is inside: start-up and part of the bandwidth. */
const struct kernel_form *kernel_form_of(const struct kernel *k);
size_t kernel_params_n(const struct kernel *k);
const struct kernel_param *kernel_param(const struct kernel *k, size_t i);

/* kernel_prepare -- the features of a call; room[KERNEL_FEATURES_MAX] takes them, out->v points there. Errors: as
 * kernel_work; ERR_INPUT the number of SMs or the cache size is not known. */
enum err_code kernel_prepare(const struct kernel *k, const struct hw *hw, double *room, struct kernel_features *out,
                             struct err *e);

/* kernel_hot_frac -- part of `bytes` that a replay finds in a cache of which room_bytes are its own: 1 up to the room,
 * falling to 0 at twice the room. */
double kernel_hot_frac(double bytes, double room_bytes);

/* kernel_throttle -- factor of a kernel that computes for compute_s: clocks fall as power is drawn for milliseconds,
 * 1 + most * c/(c + 5 ms). */
double kernel_throttle(double compute_s, double most);

/* kernel_time_s -- calibrated seconds with parameters p[kernel_params_n]: max(credited bound, form + quantisation).
 * Cost: under a microsecond. */
double kernel_time_s(const struct kernel_form *form, const struct kernel_features *f, const double *p);

/* kernel_once_s -- kernel_prepare and kernel_time_s of a call whose work (kernel_work) is known and that is asked once,
 * to the last bit; room: kernel_prepare's. Errors: its. */
enum err_code kernel_once_s(const struct kernel *k, const struct hw *hw, const struct kernel_work *w, const double *p,
                            double *room, double *out_s, struct err *e);

/* The three-parameter model that forms are compared with: t0 + max(flops/(eta_compute*peak), bytes/(eta_memory*rate)).
 */
enum { KERNEL_BASELINE_PARAMS_N = 3 };
extern const struct kernel_param kernel_baseline_params[KERNEL_BASELINE_PARAMS_N];
double kernel_baseline_s(const struct kernel_work *w, const double *p);

/* kernel_kind_name -- "gemm" and back; false for another text. */
const char *kernel_kind_name(enum kernel_kind kind);
bool kernel_kind_find(const char *name, enum kernel_kind *out);

/* The forms, one a class; for kernel.c. */
extern const struct kernel_form kernel_gemm_form, kernel_prefill_form, kernel_decode_form, kernel_mla_decode_form,
    kernel_moe_form, kernel_scan_form, kernel_conv_form, kernel_elementwise_form, kernel_collective_form,
    kernel_host_form;

/* kernel_norm -- (x^p + y^p)^(1/p) of x, y >= 0: the sum for p = 1, the larger for large p. */
double kernel_norm(double x, double y, double p);

#endif
