/* engine -- a server's steps: what its scheduler puts into one, what its kernels take, and what the engine adds.
 *
 * A step takes host_s + factor * (calibrated seconds of its kernels), factor and host_s being of the engine, fitted to
 * published times of servers (served.h). What a step holds is known, not fitted: whether prompts are computed beside
 * sequences that decode or in steps of their own, how many tokens one may have, which steps replay a graph. They are
 * data, configs/engines/<engine>.json:
 *   {"schema": "ridge.engine.1", "engine", "mixed", "budget_tokens", "graph_tokens", "graph_mixed", "facts",
 *    "host_s", "factor", "rows", "models", "error": {...}, "source", "date"}
 * Derivation: MODEL.md "Servers". */
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
    const char *name;      /* "vllm", "trtllm", "sglang": whose kernels */
    bool mixed;            /* pieces of prompts beside sequences that decode; else prompts have steps of their own */
    int64_t budget_tokens; /* most tokens of a step */
    int64_t graph_tokens;  /* steps of at most so many tokens replay a graph */
    bool graph_mixed;      /* those with prompts too */
    struct engine_terms terms;
    const char *file, *source, *date;
};

/* engine_load -- the built-in one of a name. engine_parse -- of the form above; file is for messages. Errors: ERR_USAGE
 * unknown name, naming those that are; ERR_INPUT naming file and key: missing, of another kind, outside its domain;
 * ERR_NOMEM. */
enum err_code engine_load(struct arena *a, const char *name, struct engine *out, struct err *e);
enum err_code engine_parse(struct arena *a, const char *file, const struct json *j, struct engine *out, struct err *e);

/* A model on the ranks of one device under an engine; lives in the arena. */
struct engine_case {
    const struct engine *engine;
    double groups; /* attention groups of a copy */
    struct mix_plan *bound, *roofline;
    struct calibrated *graph, *eager;
    struct mix x, y; /* a step of each plan */
};

/* engine_case_open -- the setup's model, device, ranks and conventions; its fidelity is unread. Errors: as
 * step_compile, mix_compile, source_open and calibrated_open. Cost: some tens of milliseconds. */
enum err_code engine_case_open(struct arena *a, const struct engine *engine, const struct step_setup *setup,
                               struct engine_case *out, struct err *e);

/* A closed loop of fixed lengths: so many clients, each of which asks again when it has its answer. */
struct engine_loop {
    double clients, prompt_tokens, output_tokens;
};

/* What a client sees in the steady state: for each token after the first, and until the first; means over requests.
 * Seconds of kernels, steps, and (sequences of a step) summed over the steps; roofline: the textbook seconds of a token
 * that decodes, and of the prompts of others before it. */
struct engine_seen {
    double kernels_s, steps, sequences;
    double roofline_decode_s, roofline_prefill_s;
};
struct engine_closed {
    struct engine_seen token, first;
};

/* engine_closed_loop -- in each cycle every client decodes its answer and has one prompt computed; C clients of prompts
 * of P and answers of G tokens decode
 *   D = C*(G-1)/(G-1+own)           at contexts P + G/2, in the mean
 *   q = min(budget - D, C*P)        tokens of prompts a step that has any (budget, where prompts have steps of their own)
 *   n = C*P/q                       such steps a cycle, of which `own` = max(1, P/q) are a client's own
 * and between its tokens a client sees the other n - own of them. What a step holds is decided by numbers of tokens, not
 * by times, so that all is linear in the engine's terms. Errors: ERR_RANGE numbers that are no loop. Cost: three steps.
 */
enum err_code engine_closed_loop(struct engine_case *c, const struct engine_loop *l, struct engine_closed *out,
                                 struct err *e);

/* engine_time_s -- host_s*steps + factor*kernels_s. */
static inline double engine_time_s(const struct engine_terms *t, const struct engine_seen *s)
{
    return t->host_s * s->steps + t->factor * s->kernels_s;
}

#endif
