/* engine -- a server's steps: what its scheduler puts into one, what its kernels take, and what the engine adds.
 *
 * A step takes host_s + factor*k, k being the calibrated seconds of its kernels; where the host works beside the
 * device, max(host_s, factor*k). Both terms are of the engine, fitted to published times of servers (served.h). What a
 * step holds is known, not fitted: whether prompts are computed beside sequences that decode or in steps of their own,
 * how many tokens one may have, which steps replay a graph. All of it is data, configs/engines/<engine>.json:
 *   {"schema": "ridge.engine.1", "engine", "mixed", "budget_tokens", "graph_tokens", "graph_mixed",
 *    "overlapped_from" (a version; "" none), "facts": [sentences with their sources],
 *    "host_s", "factor", "rows", "models",
 *    "errors": [{"kind": "dense"|"experts", "rows", "fitted_median_frac" (all in the fit),
 *      and of models left out "median_frac", "within_frac" (of 25 %), "baseline_frac", "slow_p90" (nine in ten rows
 * take at most so many times what is predicted; may be missing)}], "source", "date"} Derivation: MODEL.md "Servers". */
#ifndef RIDGE_SERVE_ENGINE_H
#define RIDGE_SERVE_ENGINE_H

#include "calc/base/json.h"
#include "calc/fit/calibrated.h"

/* What is fitted. */
struct engine_terms {
    double host_s; /* of a step: scheduling, inputs, sampling, answers */
    double factor; /* of the seconds of its kernels */
};

struct engine {
    const char *name;            /* "vllm", "trtllm", "sglang": whose kernels */
    bool mixed;                  /* prompts beside sequences that decode; else they have steps of their own */
    int64_t budget_tokens;       /* most tokens of a step */
    int64_t graph_tokens;        /* steps of at most so many tokens replay a graph */
    bool graph_mixed;            /* those with prompts too */
    const char *overlapped_from; /* version from which on the host works beside the device; "" none does */
    struct engine_terms terms;
    double slow_p90[2]; /* measured over predicted, ninetieth percentile of models that were left out: dense ones and
                           those with experts or latents; NAN unknown */
    const char *file, *source, *date;
};

/* engine_load -- by path (has '/' or ends in ".json"), else the built-in one of a name. engine_parse -- of the form
 * above. Errors: ERR_USAGE unknown name, saying which there are; ERR_INPUT naming file and key: missing, of another
 * kind, outside its domain; ERR_IO; ERR_NOMEM. */
enum err_code engine_load(struct arena *a, const char *name, struct engine *out, struct err *e);
enum err_code engine_parse(const struct json *j, struct engine *out, struct err *e);

/* engine_load_version -- "vllm", or "vllm:0.12.0" or a file likewise; *overlapped: whether its host works beside the
 * device, without a version as that of the newest does. Errors: as engine_load. */
enum err_code engine_load_version(struct arena *a, const char *text, struct engine *out, bool *overlapped,
                                  struct err *e);

/* engine_has_experts -- which kind of errors is a model's: "experts" have routed experts or latent attention. */
bool engine_has_experts(const struct model *m);

/* engine_overlaps -- whether the host of a version works beside the device. Versions compare number by number; of one
 * that is not known (NULL, "") it does not. */
bool engine_overlaps(const struct engine *g, const char *version);

/* A model on the ranks of one device under an engine; lives in the arena. */
struct engine_case {
    const struct engine *engine;
    double groups; /* attention groups of a copy */
    struct mix_plan *bound, *roofline;
    struct calibrated *graph, *eager;
    struct mix x, y; /* a step of each plan */
};

/* engine_case_open -- the setup's model, device, ranks and conventions; its fidelity is unread. Errors:
 * ERR_USAGE several stages or nodes; as step_compile, mix_compile, source_open and calibrated_open. Cost: some ten
 * milliseconds. */
enum err_code engine_case_open(struct arena *a, const struct engine *engine, const struct step_setup *setup,
                               struct engine_case *out, struct err *e);

/* A closed loop of fixed lengths: so many clients, each of which asks again when it has its answer. */
struct engine_loop {
    double clients, prompt_tokens, output_tokens;
};

/* Steps that a client waits for: how many without and with prompts in them, and the kernels' seconds of one. */
struct engine_steps {
    double decode, decode_s, prompt, prompt_s;
};

/* What a client sees in the steady state, in the mean over requests. */
struct engine_closed {
    struct engine_steps token;                    /* for each token after the first */
    struct engine_steps first;                    /* until the first */
    double roofline_decode_s, roofline_prefill_s; /* textbook seconds of a token, and of others' prompts before it */
    double bound_s;                               /* of a cycle, all that is computed or read in it; nothing is below */
    double decoding, prompts;                     /* sequences of a step that decode; prompts of one that has any */
};

/* engine_closed_loop -- in each cycle every client decodes its answer and has one prompt computed; C clients (of a
 * group) of prompts of P and answers of G tokens decode
 *   D = C*(G-1)/(G-1+own)    at contexts P + G/2, in the mean; C where prompts have steps of their own
 *   q = min(budget-D, C*P)   tokens of prompts a step that has any; of the whole budget where they have steps of their
 * own n = C*P/q                such steps a cycle, of which own = max(1, P/q) are a client's Between its tokens a
 * client sees the other n - own. Where prompts go first and those that decode wait, all clients begin to decode
 * together, so that a client waits for half of them, and for the other half before its first token. What a step holds
 * is decided by numbers of tokens, not by times. Errors: ERR_RANGE numbers that are no loop. Cost: some steps. */
enum err_code engine_closed_loop(struct engine_case *c, const struct engine_loop *l, struct engine_closed *out,
                                 struct err *e);

/* engine_mix_s -- seconds of a mixed step of the case's bound plan. Cost: that of calibrated_mix_eval. */
double engine_mix_s(struct engine_case *c, const struct mix *x, bool overlapped);

/* engine_steps_s -- seconds of those steps. engine_step_s -- of one whose kernels take kernels_s. */
double engine_step_s(const struct engine_terms *t, bool overlapped, double kernels_s);
double engine_steps_s(const struct engine_terms *t, bool overlapped, const struct engine_steps *s);

#endif
