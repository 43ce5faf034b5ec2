/* emit -- the command line that starts an inference engine in a layout: a string to paste, with what it cannot say as
 * comments.
 *
 * Arguments are those of `vllm serve` (engine/arg_utils.py), `python -m sglang.launch_server` (srt/server_args.py) and
 * `trtllm-serve` (commands/serve.py). An engine runs what it runs: vLLM deals experts over all ranks of a copy or over
 * none, TensorRT-LLM gives every rank or none an attention group of its own, none of the three starts in a layout that
 * it has no arguments for, and that is an answer. */
#ifndef RIDGE_SERVE_EMIT_H
#define RIDGE_SERVE_EMIT_H

#include "calc/base/arena.h"
#include "calc/cost/layout.h"

enum emit_engine { EMIT_VLLM, EMIT_SGLANG, EMIT_TRTLLM, EMIT_ENGINES };

/* What is to be started. */
struct emit_plan {
    const char *model;       /* a Hugging Face id or a path */
    struct layout layout;    /* whole (layout_whole) */
    bool experts;            /* the model has routed ones */
    int64_t max_num_seqs;    /* of one copy, all its attention groups together; >= 1 */
    int64_t step_tokens;     /* most tokens of a step: the chunk of prompts and those that decode; >= 1 */
    int64_t max_model_len;   /* >= 1 */
    double utilization_frac; /* of the memory that the process may take, weights and cache and work */
    double static_frac;      /* of it, weights and cache */
    double free_frac;        /* of what is free behind weights and work, the cache */
    const char *weights;     /* a format that the stored weights are not in; NULL: as stored */
    const char *kv;          /* the same of the cache */
    bool fp8_on_load;        /* weights is fp8 and the stored ones have 16 bits: engines convert them as they load */
};

/* emit_name -- "vllm", "sglang", "trtllm"; emit_find -- and back. Errors: ERR_USAGE. */
const char *emit_name(enum emit_engine engine);
enum err_code emit_find(const char *name, enum emit_engine *out, struct err *e);

/* emit_refusal -- why the engine cannot run it, a sentence; NULL: it can. */
const char *emit_refusal(enum emit_engine engine, const struct emit_plan *p);

/* emit_command -- the lines, the last one ended too. What the shell could read as more than a word is quoted. Errors:
 * ERR_NO what emit_refusal says; ERR_NOMEM. */
enum err_code emit_command(struct arena *a, enum emit_engine engine, const struct emit_plan *p, const char **out,
                           struct err *e);

#endif
