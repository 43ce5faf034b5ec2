/* engine -- a server's steps: what its scheduler puts into one, what its kernels take, and what the engine adds.
 *
 * A step of n sequences and m kernels takes h + d, h = host_s + n*sequence_s, d = factor*k + m*kernel_s +
 * collective_frac*c, k being the calibrated seconds of its kernels and c those of them among ranks (less what the
 * device is idle anyway, waiting for launches); where the host works beside the device, max(h, d). Two of these terms
 * are fitted to published times of servers (served.h): kernel_s and sequence_s ("per_kernel"), or host_s and
 * collective_frac. A first token takes ENGINE_FIRST_S beside its steps and ENGINE_TOKEN_S for each token of its prompt,
 * whatever the engine. What a step holds is known, not fitted: whether prompts are computed beside sequences that
 * decode or in steps of their own, how many tokens one may have, which steps replay a graph. Tokens choose experts as
 * ENGINE_LOADS says. All of it is data, configs/engines/<engine>.json:
 *   {"schema": "ridge.engine.1", "engine", "mixed", "budget_tokens", "graph_tokens", "graph_mixed",
 *    "overlapped_from" (a version; "" none), "sorted_before" (of experts in 16 bits and in fp8), "per_kernel",
 * "versions": [first and last measured], "devices": [keys of those measured], "facts": [sentences with their sources],
 * "host_s", "sequence_s", "kernel_s", "factor", "collective_frac", "rows", "models", "errors": [{"kind":
 * "dense"|"experts", "rows", "fitted_median_frac" (all in the fit), and of models left out "median_frac", "within_frac"
 * (of 25 %), "baseline_frac", "slow_p90" (nine in ten rows take at most so many times what is predicted; may be
 * missing)}], "source", "date"} "sorted_before": [version, version]: before these a few tokens are sorted by expert as
 * many are, where the measured kernel does not; "" never, "always". sequence_s, kernel_s, collective_frac (0),
 * per_kernel (false), sorted_before (never), versions and devices may be missing. Derivation: MODEL.md "Servers".
 */
#ifndef RIDGE_SERVE_ENGINE_H
#define RIDGE_SERVE_ENGINE_H

#include "calc/base/json.h"
#include "calc/fit/calibrated.h"

/* What is fitted. */
struct engine_terms {
    double host_s;     /* of a step: scheduling, inputs, sampling, answers */
    double factor;     /* of the seconds of its kernels */
    double sequence_s; /* of each sequence of a step, of the host */
    double kernel_s;   /* of each kernel of a step, of the device: until the next begins, and small ones unlisted */
    double collective_frac; /* of the seconds of collectives, beyond them: until the last rank is there */
};

/* What a first token takes beside its steps whatever the model and engine: client, HTTP and back, and for each token of
 * the prompt its tokenizer. Of vLLM 0.30, Qwen3-8B on one H100, one client: what TTFT has beyond the steps, 7 ms at 128
 * tokens and 64 at 8192 (github tgarg01/silybench-data commit 93e48873, derived/csv/perf_points.csv). */
#define ENGINE_FIRST_S 0.007
#define ENGINE_TOKEN_S 7e-6

/* How tokens choose experts where servers are predicted (routing.h "loads"): what the source of their rows found to
 * fit DeepSeek-V3 and R1 served with CNN/DailyMail and OpenOrca, the more even of its two. */
#define ENGINE_LOADS 1.01

enum { ENGINE_DEVICES_MAX = 8 };

struct engine {
    const char *name;       /* "vllm", "trtllm", "sglang": whose kernels */
    bool mixed;             /* prompts beside sequences that decode; else they have steps of their own */
    int64_t budget_tokens;  /* most tokens of a step */
    int64_t graph_tokens;   /* steps of at most so many tokens replay a graph */
    bool graph_mixed;       /* those with prompts too */
    bool per_kernel;        /* kernel_s and sequence_s are fitted, else host_s and collective_frac */
    const char *version[2]; /* first and last that were measured; NULL not said */
    const char *device[ENGINE_DEVICES_MAX]; /* keys of those it was measured on; NULL behind the last */
    const char *overlapped_from;            /* version from which on the host works beside the device; "" none does */
    const char *sorted_before[2];           /* of 16 bits, of fp8: above */
    bool sorts_few[2];                      /* so of the version in question; engine_set_version */
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
 * device, without a version as that of the newest does. Errors: as engine_load; ERR_USAGE a version that is no number
 * or newer than all that were measured, saying which were. */
enum err_code engine_load_version(struct arena *a, const char *text, struct engine *out, bool *overlapped,
                                  struct err *e);

/* engine_set_version -- sets what depends on the version, which may be unknown (NULL, ""): then as before any. Of an
 * engine just loaded it is that of the last one measured. */
void engine_set_version(struct engine *g, const char *version);

/* engine_terms_text -- what a step takes, for people: "31 us a sequence of its host beside its kernels as measured and
 * 1.9 us for each". engine_device_note -- a sentence where the terms were fitted on other devices than this, NULL where
 * not; engine_devices_note -- the same of several that are named. Errors of the latter: NULL also out of memory. */
enum { ENGINE_TEXT = 192 };
const char *engine_terms_text(const struct engine *g, bool overlapped, char out[ENGINE_TEXT]);
const char *engine_device_note(struct arena *a, const struct engine *g, const struct hw *hw);
const char *engine_devices_note(struct arena *a, const struct engine *g, const char *names);

/* engine_measured_on -- whether the terms were fitted on servers of such a device; where it is not said on which, on
 * all. */
bool engine_measured_on(const struct engine *g, const struct hw *hw);

/* engine_has_experts -- which kind of errors is a model's: "experts" have routed experts or latent attention. */
bool engine_has_experts(const struct model *m);

/* engine_overlaps -- whether the host of a version works beside the device. Versions compare number by number; of one
 * that is not known (NULL, "") it does not. */
bool engine_overlaps(const struct engine *g, const char *version);

/* A model on the ranks of one device under an engine; lives in the arena. */
struct engine_case {
    const struct engine *engine;
    double groups; /* attention groups of a copy */
    bool measured; /* its terms were fitted on servers of the device */
    struct mix_plan *bound, *roofline;
    struct calibrated *graph, *eager;
    const struct source *source; /* whose kernels */
    double launches;             /* of a prompt's step, each kernel by itself */
    struct mix x, y;             /* a step of each plan */
};

/* engine_source_open -- the kernels of an engine on a device, for several cases; engine_case_open_from -- with them.
 * engine_case_open -- the setup's model, device, ranks and conventions; its fidelity is unread. Choices that are alike
 * there are of ENGINE_LOADS, and parts of experts, unless a skew above 1 is said, as uneven as choices make them.
 * Errors: ERR_USAGE several stages or nodes; as step_compile, mix_compile, source_open and calibrated_open. Cost: some
 * ten milliseconds. */
enum err_code engine_case_open(struct arena *a, const struct engine *engine, const struct step_setup *setup,
                               struct engine_case *out, struct err *e);
enum err_code engine_source_open(struct arena *a, const struct engine *engine, const struct hw *hw, struct source *out,
                                 struct err *e);
enum err_code engine_case_open_from(struct arena *a, const struct engine *engine, const struct source *source,
                                    const struct step_setup *setup, struct engine_case *out, struct err *e);

/* engine_band -- the most that nine in ten services take, over what is predicted, at least 1: slow_p90 of the
 * model's kind; on a device that no server was measured on no less than the band of its kernels (calibrated_band, a
 * transfer's where nobody measured them either). NAN: not known. */
double engine_band(const struct engine_case *c, double batch, double context, double prompt);

/* A closed loop of fixed lengths: so many clients, each of which asks again when it has its answer. */
struct engine_loop {
    double clients, prompt_tokens, output_tokens;
};

/* What a step is made of. */
struct engine_work {
    double kernels_s, kernels, sequences;
    double collectives_s, idle_s; /* of kernels_s: among ranks; waiting for launches */
};

/* Steps that a client waits for: how many without and with prompts in them, and what one of each is made of. */
struct engine_steps {
    double decode, prompt;
    struct engine_work of_decode, of_prompt;
};

/* What a client sees in the steady state, in the mean over requests. */
struct engine_closed {
    struct engine_steps token;                    /* for each token after the first */
    struct engine_steps first;                    /* until the first */
    double first_launches;                        /* kernels that the step of its prompt launches, one by one */
    double roofline_decode_s, roofline_prefill_s; /* textbook seconds of a token, and of others' prompts before it */
    double bound_s;                               /* of a cycle, all that its busiest rank computes or reads */
    double decoding, prompts;                     /* sequences of a step that decode; prompts of one that has any */
};

/* engine_closed_loop -- in each cycle every client decodes its answer and has one prompt computed; C clients (of a
 * group) of prompts of P and answers of G tokens.
 *
 * Beside sequences that decode: nobody waits for anybody, so after a few answers clients ask at any time. D =
 * C*(G-1)/(G-1+own) decode, at contexts P + G/2 in the mean; answers end with a step, so a step has as many prompts
 * however long it takes, a = (C-1)/(G-1+own) of others in the mean, at random:
 *   pi = 1-exp(-a)     part of steps that have any; a/pi prompts in one, at most those of q = budget-D tokens
 * A prompt longer than q takes own = P/q steps (else 1), one after the other: pi = a*own. Its first token waits for the
 * rest of a step, E[t^2]/(2 E[t]) of the seconds t of both kinds, and takes its own steps.
 *
 * Prompts first, in steps of q = min(budget, C*P): nobody decodes beside them, so all clients begin to decode together,
 * finish and ask together. n = C*P/q such steps are in a cycle, own = max(1, P/q) of them a client's; of the others it
 * waits for half between its tokens, and for half before the first one: (n+own)/2.
 *
 * What a step holds is decided by numbers of tokens, not by times. Errors: ERR_RANGE numbers that are no loop. Cost:
 * some steps. */
enum err_code engine_closed_loop(struct engine_case *c, const struct engine_loop *l, struct engine_closed *out,
                                 struct err *e);

/* engine_mix_s -- seconds of a mixed step of the case's bound plan. Cost: that of calibrated_mix_eval. */
double engine_mix_s(struct engine_case *c, const struct mix *x, bool overlapped);

/* engine_any_s -- the same of whatever prices a step: a server, else its kernels' calibrated times, else (both NULL)
 * its floor. */
double engine_any_s(struct engine_case *server, bool overlapped, struct calibrated *kernels, const struct mix *x);

/* engine_steps_s -- seconds of those steps. engine_step_s -- of one. engine_first_s -- what a first token takes beside
 * its steps, of a prompt of so many tokens. */
double engine_step_s(const struct engine_terms *t, bool overlapped, const struct engine_work *w);
double engine_first_s(double tokens);
double engine_steps_s(const struct engine_terms *t, bool overlapped, const struct engine_steps *s);

#endif
