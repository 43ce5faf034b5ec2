/* pool -- the memory an inference engine allots to the KV cache of one GPU, by vLLM's rule.
 *
 *     pool   = visible * utilization - weights - activation - non_torch [- graphs]
 *     page   = block * kv_bytes_per_token_per_gpu
 *     blocks = floor(pool / page),  tokens = blocks * block,  cpu_blocks = floor(swap / page)
 *     max_concurrency = blocks / ceil(max_model_len / block)
 *
 * Where d ranks share a context by tokens, a block of each holds every d-th token of block * d, and kv_bytes_per_token
 * is a d-th of what a token takes: page is as large as without, blocks are as many, tokens d times as many.
 *
 * That is of uniform attention: every layer keeps every token and has the same page. Layers of several kinds (windows,
 * states) share one pool of equal blocks (calc/serve/pages.h); a block is then of one group of layers:
 *
 *     page = group_layers * page of a layer,  tokens = floor(blocks / groups) * block
 *     max_concurrency = blocks / blocks of a sequence of max_model_len
 *
 * The activation term is what the engine reserves after a profiling run at its largest batch:
 *
 *     activation = max(sampler, mlp)
 *     sampler = (logit_bytes + draft_logit_bytes * drafts) * max_num_seqs * vocab + sampler_hidden * T * hidden * elem
 *     mlp     = T * (mlp_ffn * ffn / tp + mlp_hidden * hidden) * elem
 *     T       = max_num_batched_tokens with chunked prefill, max_model_len without
 *
 * with the coefficients of one row of the engine table. The sampler works on whole logits, so neither tensor
 * parallelism nor depth makes it smaller.
 *
 * One GPU at a time: with unequal ranks the engine uses the smallest blocks of all. An engine that reserves only a
 * fraction (SGLang's mem_fraction_static) is the case activation = non_torch = 0, block = 1.
 *
 * Source: vLLM determine_available_memory and get_num_blocks, PRs 10511, 30515, 38284; coefficients fitted to logged
 * reservations. Not covered: vision encoders, prompt_logprobs, and memory that other processes hold. */
#ifndef RIDGE_SERVE_POOL_H
#define RIDGE_SERVE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/err.h"
#include "calc/model/model.h"
#include "calc/serve/pages.h"

/* What depends on the engine's version and on nothing else. */
struct pool_engine {
    const char *name;          /* "vllm-v0", ... */
    const char *versions;      /* the releases it stands for */
    double logit_bytes;        /* sampler: bytes alive per logit at its peak (copies, sort, softmax, sums) */
    double draft_logit_bytes;  /* more of them per draft token, when the rejection sampler is profiled */
    double sampler_hidden;     /* sampler: hidden vectors alive per token of the prefill */
    double mlp_ffn;            /* MLP peak: vectors of ffn/tp per token */
    double mlp_hidden;         /* MLP peak: vectors of hidden per token */
    double elem_bytes;         /* per activation element */
    double non_torch_bytes;    /* default outside the tensor allocator, tp 1 */
    double non_torch_tp_bytes; /* the same, tp > 1: collective buffers */
    double utilization_frac;   /* default gpu_memory_utilization */
    double swap_bytes;         /* default swap space; 0 for engines without swapping */
    double large_gpu_bytes;    /* total from which a GPU counts as large (A100 never does); INFINITY: no distinction */
    int64_t block_tokens;      /* default block */
    int64_t chunked_over_tokens;        /* chunked prefill is the default when max_model_len exceeds this */
    int64_t chunk_tokens;               /* default max_num_batched_tokens: server, chunked prefill */
    int64_t chunk_offline_tokens;       /* the same, offline (LLM class) */
    int64_t chunk_large_tokens;         /* server on a large GPU */
    int64_t chunk_large_offline_tokens; /* offline on a large GPU */
    int64_t seqs;                       /* default max_num_seqs */
    int64_t seqs_large;                 /* on a large GPU */
    bool subtracts_graphs;              /* the CUDA-graph estimate comes off the pool */
    bool groups_layers;                 /* layers of several kinds are laid out by calc/serve/pages.h */
    bool block_aligns;                  /* a block raised for states is a multiple of the one that was set */
    bool state_a_sequence;              /* does not start with fewer blocks than max_num_seqs, when there are states */
    bool tokens_by_concurrency;         /* the tokens it prints are max_concurrency * max_model_len */
    const char *source;
};

/* pool_engine_table -- all rows, oldest first; *n gets their number. */
const struct pool_engine *pool_engine_table(size_t *n);

/* pool_engine_find -- the row of that name. Errors: ERR_USAGE naming the nearest. */
enum err_code pool_engine_find(const char *name, const struct pool_engine **out, struct err *e);

/* The question, all of it per GPU. NAN and 0 mean unknown only where it says so. */
struct pool_request {
    const struct pool_engine *engine;
    double visible_bytes;        /* > 0, total that the engine sees on one GPU (not the label) */
    double utilization_frac;     /* gpu_memory_utilization, in (0, 1] */
    double weight_bytes_per_gpu; /* >= 0 */
    double activation_bytes;     /* >= 0; NAN: predict by the engine's rule */
    double non_torch_bytes;      /* >= 0; NAN: the engine's default for this tp */
    double graph_bytes;          /* >= 0, CUDA graphs; NAN: unknown. Comes off only where engine->subtracts_graphs */
    double kv_bytes_per_token_per_gpu; /* > 0; heads replicated when fewer than tp, an MLA latent whole on each rank */
    const struct pages *pages;         /* layers of several kinds, in place of the former; NULL: uniform */
    double swap_bytes;                 /* >= 0, host memory for swapped blocks; NAN: none */
    double pool_bytes;                 /* the pool given by hand (kv_cache_memory_bytes); NAN: computed */
    int64_t block_tokens;              /* >= 1 */
    int64_t max_model_len_tokens;      /* >= 1; 0: unknown (no verdict on it, no concurrency) */
    int64_t max_num_seqs;              /* >= 1 */
    int64_t max_num_batched_tokens;    /* >= 1 */
    bool chunked_prefill;
    int64_t draft_tokens;  /* >= 0, speculated per step */
    int64_t vocab;         /* >= 1; vocab, hidden and ffn_width are only read when the activation is predicted */
    int64_t hidden;        /* >= 1 */
    int64_t ffn_width;     /* >= 1, before tp; MoE: experts per token times the width of one, shared ones included */
    int64_t tp;            /* >= 1 */
    int64_t context_ranks; /* that share a context by tokens, kv_bytes_per_token_per_gpu being a share; 0: 1 */
};

/* pool_defaults -- a request with everything that the engine sets by itself: utilization, block, max_num_seqs,
 * max_num_batched_tokens, chunked prefill, swap. Activation, non-torch, graphs, pool, weights and KV bytes are NAN,
 * tp is 1, model dimensions are 0, for the caller to fill.
 *   visible_bytes  total on one GPU, > 0. At 70 GiB and more, and not an A100, vLLM V1 takes 1024 sequences and 8192
 *                  (server) or 16384 (offline) tokens; otherwise 256 and 2048 or 8192: a card of 80 GB reserves four
 *                  times the sampler memory of one of 40 GB
 *   is_a100        the device's name holds "A100"
 *   server         an API server; false for offline use of the library
 *   max_model_len_tokens  >= 1, or 0 when unknown. V0 chunks only above 32768 and otherwise prefills a prompt whole
 * Errors: ERR_RANGE. Source: vLLM arg_utils (get_batch_defaults, _set_default_args_v0), PR 17885 for the A100, PR 38284
 * for utilization .92 and graphs since 0.21. */
enum err_code pool_defaults(const struct pool_engine *engine, double visible_bytes, bool is_a100, bool server,
                            int64_t max_model_len_tokens, struct pool_request *out, struct err *e);

/* pool_ffn_width -- the hidden width of the MLP that a token passes: the dense one, or its routed and shared experts
 * together; of the widest kind of layer. */
int64_t pool_ffn_width(const struct model *m);

struct pool_activation {
    double sampler_bytes;
    double mlp_bytes;
    double bytes;   /* the larger one */
    const char *by; /* "sampler" or "mlp" */
};

/* pool_activation_predict -- the reservation by the engine's rule (above); reads engine, max_num_seqs, the prefill
 * size, draft_tokens, vocab, hidden, ffn_width, tp. Within .12 GiB of 18 logged text models, .06-120 B. Errors:
 * ERR_RANGE a dimension outside its domain, or a product beyond 64 bits. */
enum err_code pool_activation_predict(const struct pool_request *q, struct pool_activation *out, struct err *e);

enum pool_verdict {
    POOL_STARTS,      /* a sequence of max_model_len fits (or its length is unknown and a block does) */
    POOL_NO_MEMORY,   /* nothing is left for the cache, or not one block */
    POOL_LEN_TOO_BIG, /* blocks, but too few for one sequence of max_model_len: the engine refuses to start */
    POOL_FEW_STATES,  /* fewer blocks than max_num_seqs, each of which needs one for its state */
};

struct pool {
    enum pool_verdict verdict;
    double budget_bytes;         /* visible * utilization; NAN when the pool is given */
    double activation_bytes;     /* as given or predicted; NAN when the pool is given and it is not */
    const char *activation_by;   /* "sampler", "mlp", "given"; "unknown" when NAN */
    double non_torch_bytes;      /* as given or the default; NAN when the pool is given and it is not */
    double graph_bytes;          /* taken off the pool; 0 where the engine does not */
    bool graphs_unknown;         /* the engine takes them off but their size is not known: the pool is an upper bound */
    double pool_bytes;           /* <= 0: so much is missing before the first block */
    double page_bytes;           /* one block */
    int64_t block_tokens;        /* of it: the request's, or the layout's */
    int64_t blocks;              /* 0 when nothing fits */
    int64_t tokens;              /* as the engine prints them; uniform: blocks * block */
    int64_t longest_tokens;      /* the largest max_model_len that starts; 0 none */
    int64_t cpu_blocks;          /* swapped-out blocks that host memory holds */
    int64_t blocks_per_sequence; /* of one sequence of max_model_len; 0 unknown */
    double max_concurrency;      /* sequences of max_model_len at once; NAN unknown */
    double need_bytes;           /* pages of one sequence of max_model_len, or one page when that is unknown */
    double short_bytes;          /* what the pool lacks to start: need - pool, 0 when it starts */
};

/* pool_compute -- the pool and what fits in it. A pool at or below zero and a max_model_len beyond it are answers
 * (verdict, short_bytes), not errors. Where pool_bytes is given, visible_bytes, utilization_frac and weights are not
 * read. Errors: ERR_RANGE a field outside its domain, or a count beyond 64 bits. */
enum err_code pool_compute(const struct pool_request *q, struct pool *out, struct err *e);

/* pool_explain -- the verdict as one sentence in out (cap bytes, cut to fit). Returns out. */
const char *pool_explain(const struct pool_request *q, const struct pool *p, char *out, size_t cap);

#endif
