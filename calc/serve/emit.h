/* emit -- the command line that starts an inference engine in a layout: a string to paste, with what it cannot say as
 * comments.
 *
 * Arguments are those of `vllm serve` (vllm/engine/arg_utils.py at 99d7eb5d, vllm/config/speculative.py at 002e77c1),
 * `python -m sglang.launch_server` (python/sglang/srt/server_args.py at 001067ff) and `trtllm-serve`
 * (tensorrt_llm/commands/serve.py at 00209af1, tensorrt_llm/llmapi/llm_args.py); MODEL.md "Engine lines" says what each
 * means. An engine runs what it runs: vLLM deals experts over all ranks of a copy or over
 * none, TensorRT-LLM gives every rank or none an attention group of its own, none of the three starts in a layout that
 * it has no arguments for, and that is an answer. */
#ifndef RIDGE_SERVE_EMIT_H
#define RIDGE_SERVE_EMIT_H

#include "calc/base/arena.h"
#include "calc/cost/layout.h"

enum emit_engine { EMIT_VLLM, EMIT_SGLANG, EMIT_TRTLLM, EMIT_ENGINES };

/* Whose tokens are judged: those of a model of its own, of an EAGLE head, of the model's multi-token prediction, of
 * Medusa's heads. */
enum emit_drafting { EMIT_MODEL, EMIT_EAGLE, EMIT_MTP, EMIT_MEDUSA };

enum { EMIT_LENGTH_PAGE = 256 }; /* tokens; a length that is chosen is so many times it; not a unit */

/* What is to be started. */
struct emit_plan {
    const char *model;       /* a Hugging Face id or a path */
    struct layout layout;    /* whole (layout_whole) */
    bool experts;            /* the model has routed ones */
    const char *encoder;     /* its family, of one with an encoder and a decoder; NULL: a decoder alone */
    bool short_source;       /* of sound, and shorter than what the encoder has positions for */
    bool towerless;          /* towers of images and of sound are not loaded */
    int64_t max_num_seqs;    /* of one attention group, as tokens of a step are; >= 1 */
    int64_t step_tokens;     /* most tokens of a step: the chunk of prompts and those that decode; >= 1 */
    int64_t max_model_len;   /* >= 1 */
    int64_t longest_tokens;  /* of a request planned, prompt and answer; said beside max_model_len; 0: not */
    double utilization_frac; /* of the memory that the process may take, weights and cache and work */
    double static_frac;      /* of it, weights and cache */
    double free_frac;        /* of what is free behind weights and work, the cache */
    const char *weights;     /* a format that the stored weights are not in; NULL: as stored */
    const char *kv;          /* the same of the cache */
    int64_t prefill;         /* of the copies, those that prefill alone, the others decode; 0: all do both */
    bool mixed;              /* pieces of prompts are computed beside those that decode */
    enum emit_drafting drafting;
    const char *draft;              /* a Hugging Face id or a path: of a model */
    int64_t draft_tokens;           /* drafted in a row, of a tree its depth; 0: none */
    int64_t draft_nodes;            /* of a tree, all that are judged but the last token; 0: a row */
    int64_t draft_wide;             /* of a tree, most children of a node */
    struct model_adapters adapters; /* that are served; slots 0: none */
    int64_t host_adapters;          /* of them at the host */
    double offload_bytes;           /* weights of each GPU that stay at the host; 0 none */
    double tier_bytes;              /* of the prefix cache at the host of a copy, all its ranks; 0 none */
    bool fp8_on_load; /* weights is fp8 and the stored ones have 16 bits: engines convert them as they load */
};

/* emit_name -- "vllm", "sglang", "trtllm"; emit_find -- and back. Errors: ERR_USAGE. */
const char *emit_name(enum emit_engine engine);
enum err_code emit_find(const char *name, enum emit_engine *out, struct err *e);

/* Stands for a checkpoint whose place is not known: of a model described by one JSON file alone, and of its draft. */
#define EMIT_CHECKPOINT "CHECKPOINT_DIR"
#define EMIT_DRAFT_CHECKPOINT "DRAFT_CHECKPOINT_DIR"

/* emit_source -- what an engine loads a model by, of the name it was asked by: engines take a directory or an id, so of
 * .../config.json its directory, of any other JSON file `unknown`, else the name. NULL: no memory. */
const char *emit_source(struct arena *a, const char *name, const char *unknown);

/* emit_quoted -- a path or id as one word of a shell; control characters become question marks. NULL: no memory. */
const char *emit_quoted(struct arena *a, const char *s);

/* emit_refusal -- why the engine cannot run it, a sentence; NULL: it can. */
const char *emit_refusal(enum emit_engine engine, const struct emit_plan *p);

/* emit_command -- the lines, the last one ended too. What the shell could read as more than a word is quoted. Errors:
 * ERR_NO what emit_refusal says; ERR_NOMEM. */
enum err_code emit_command(struct arena *a, enum emit_engine engine, const struct emit_plan *p, const char **out,
                           struct err *e);

#endif
