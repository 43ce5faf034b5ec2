/* estimate -- what `ridge estimate` was asked, and the rows that answer it; private to the command. */
#ifndef RIDGE_CLI_ESTIMATE_H
#define RIDGE_CLI_ESTIMATE_H

#include "calc/base/table.h"
#include "calc/cli/layout_options.h"
#include "calc/cli/lora_options.h"
#include "calc/cli/option.h"
#include "calc/fit/calibrated.h"
#include "calc/model/model.h"
#include "calc/serve/pool.h"
#include "calc/time/mix.h"
#include "calc/time/speculate.h"
#include "calc/time/train.h"

enum estimate_only { ONLY_ALL, ONLY_MEMORY, ONLY_PREFILL, ONLY_DECODE };

/* The request, parsed but with nothing loaded. */
struct estimate_request {
    const char **models, **gpus;
    size_t models_n, gpus_n;
    const struct model_setting *set;
    size_t set_n;
    const char *what_if;                                /* stacked changes of the model; NULL none */
    const int64_t *batch, *context, *prompt, *generate; /* context, or prompt x generate */
    size_t batch_n, context_n, prompt_n, generate_n;
    bool context_is_default;
    struct layout_request layout;
    struct offload_request offload;
    const char *weights, *kv, *activations; /* NULL: as stored */
    bool uncached, course, ignore_memory, by_op, averaged, prefill_together;
    enum step_fidelity fidelity; /* of the floors; bound where times are calibrated */
    bool calibrated, eager;
    const char *efficiency, *framework; /* NULL: of the device */
    enum estimate_only only;
    struct cost_conventions conventions;
    const char *conventions_text; /* those that differ from the defaults */
    int64_t block_tokens;
    int64_t source_tokens;          /* of an encoder-decoder; 0: the model's */
    int64_t steps, diffusion_block; /* of a diffusion model; 0: the model's */
    bool compared;                  /* those, and source_tokens, are of the models among several that have them */
    bool towerless;                 /* image towers are not loaded */
    struct lora lora;               /* an adapter that is priced; rank 0 none */
    struct lora_request adapters;   /* those that are served */
    bool engine;                    /* any engine flag was given */
    bool overlapped;                /* collectives run beside other operators */
    bool simulated;                 /* mixed steps are asked one by one */
    int64_t chunk;                  /* tokens of a piece of a prompt; 0: prompts whole */
    const char *mix_text;           /* a mixed step instead of prefill and decode; NULL none */
    struct estimate_piece {
        bool decode;
        int64_t n, tokens, context; /* sequences; of a prompt new tokens, and cached ones before them */
    } * mix;
    size_t mix_n;
    struct estimate_drafting {
        const char *draft; /* a model, eagle, medusa=N or mtp; NULL: no speculation */
        const char *accept_text;
        struct speculate_accept accept;
        bool bonus;
        const char *passes; /* NULL: as the draft is made */
        int64_t gamma;      /* 0: the best */
        int64_t tp;         /* 0: the target's where it divides, else 1 */
        bool has_tree;
        struct speculate_tree tree;
    } drafting;
    struct estimate_training {
        double tokens; /* 0: no training */
        double mfu;    /* part of the peak that the run reaches */
        double params; /* that flops are counted by; NAN: the model's active ones */
        const struct train_recipe *recipe;
        enum train_recompute recompute;
        int64_t zero;
    } training;
    const struct option_values *options;
};

enum err_code estimate_request_parse(struct arena *a, const struct option_values *v, struct estimate_request *out,
                                     struct err *e);

/* estimate_workload_open -- the JSON of a workload, built in or a file. Errors: ERR_USAGE unknown; ERR_INPUT, ERR_IO.
 */
struct json;
enum err_code estimate_workload_open(struct arena *a, const char *name, struct json *out, struct err *e);

/* estimate_conventions_text -- fill q->conventions_text from the conventions that q holds. Errors: ERR_NOMEM. */
enum err_code estimate_conventions_text(struct arena *a, struct estimate_request *q, struct err *e);

/* estimate_fidelity_name -- bound, roofline or calibrated. */
const char *estimate_fidelity_name(const struct estimate_request *q);

/* estimate_drafting_parse -- q->drafting from the options; --course drafts without the bonus. Errors: ERR_USAGE. */
enum err_code estimate_drafting_parse(const struct option_values *v, struct estimate_request *q, struct err *e);

/* An engine's cache pool for a case, from the engine flags. */
struct estimate_engine {
    struct pool_request request;
    struct pool pool;
    struct pages *pages; /* layers of several kinds; NULL uniform */
    char refusal[320];   /* why it does not start; empty when it does */
};

/* What a checkpoint holds beside the language model. NAN: it does, and how much is not known. */
struct estimate_beside {
    double tower_params, tower_bytes; /* bytes of one GPU, loaded; 0 with --no-towers */
    double audio_params, audio_bytes; /* the same of an encoder of sound */
    double mtp_params, mtp_bytes;     /* of multi-token modules, of the whole model, not loaded */
    struct lora_cost lora;            /* of one adapter; NAN without --lora */
    double lora_bytes;                /* of it, whole, not loaded */
};

/* How a diffusion model generates: blocks of so many tokens (0: the whole sequence at once, without a cache), each
 * settled in `steps` passes (0: as many as tokens). */
struct estimate_diffusion {
    int64_t block_tokens, steps;
};

/* One model on one device, ready to evaluate. */
struct estimate_case {
    struct model model;
    struct hw hw;
    int64_t gpus, tp, replicas;
    struct layout layout;
    struct offload offload; /* weights at the host */
    const char *host_link;  /* what they come over */
    char stages[160];       /* layers of each: "31+30"; empty with one */
    struct cost_parameters params;
    double kv_full_bytes, kv_windowed_bytes, kv_index_bytes; /* cache per token of the whole model, by kind */
    double state_bytes;                                      /* of one sequence, whole model */
    double capacity_bytes;
    char hw_hash[17];
    bool uncached; /* --kv none, or a diffusion model that passes whole sequences */
    struct estimate_beside beside;
    struct estimate_diffusion diffusion;
    struct step *step;    /* NULL: the model cannot be split so */
    const char *unsplit;  /* and why; NULL otherwise */
    struct source source; /* of calibrated times, and they; NULL without */
    struct calibrated *calibrated;
    const char *notes;         /* of rows: the model's, then those of its times and context; NULL none */
    struct mix_plan *mix_plan; /* only with --mix or --chunk */
    struct mix mix;
    struct estimate_engine engine; /* only with engine flags */
    struct model draft;            /* only with --draft */
    int64_t draft_tp;
    struct speculate_setup speculation;
    struct estimate_clock *clock; /* of it, calibrated; NULL without */
};

/* estimate_switches_like -- q's conventions and fidelity as another tool counts (--like). estimate_switches_parse --
 * fusions, routing, forms and overlap. estimate_switches_check -- whether a case has what they are about.
 * estimate_switches_text -- those that differ from the defaults, each behind a blank; NULL: no memory. Errors:
 * ERR_USAGE. */
enum err_code estimate_switches_like(const struct option_values *v, struct estimate_request *q, struct err *e);
enum err_code estimate_switches_parse(const struct option_values *v, struct estimate_request *q, struct err *e);
enum err_code estimate_switches_check(const struct estimate_request *q, const struct estimate_case *c, struct err *e);
const char *estimate_switches_text(struct arena *a, const struct estimate_request *q);

/* estimate_train_parse -- q->training from the options, and one rank a copy where --tp says nothing.
 * estimate_train_run -- the answer to --train: a row for each case, sequence length and batch. Errors: ERR_USAGE; as
 * train_compile; ERR_NO nothing fits. */
enum err_code estimate_train_parse(const struct option_values *v, struct estimate_request *q, struct err *e);
enum err_code estimate_train_run(struct arena *a, const struct estimate_request *q, const struct estimate_case *cases,
                                 size_t cases_n, struct err *e);

/* estimate_mix_parse -- q->mix and q->chunk from the options. Errors: ERR_USAGE. estimate_mix_run -- the answer to
 * --mix: a row for each case. Errors: those of the tables; ERR_NO nothing fits. */
enum err_code estimate_mix_parse(struct arena *a, const struct option_values *v, struct estimate_request *q,
                                 struct err *e);
enum err_code estimate_mix_run(struct arena *a, const struct estimate_request *q, const struct estimate_case *cases,
                               size_t cases_n, struct err *e);

/* estimate_chunked -- prefill values of step_eval's, activations and memory for a prompt of T tokens in pieces of
 * --chunk. estimate_chunked_ops -- the operators of all its pieces. Errors: ERR_NOMEM. */
void estimate_chunked(const struct estimate_request *q, const struct estimate_case *c, double B, double T, double S,
                      double M, double v[STEP_VALUES_N]);
enum err_code estimate_chunked_ops(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                                   double T, struct step_op **out, size_t *out_n, struct err *e);

/* estimate_draft_load -- a draft by its name: a model, "eagle", "medusa=N", "mtp" of the target; each with
 * "+CHANGE+CHANGE" of --what-if. Errors: those of model_load; ERR_USAGE. */
enum err_code estimate_draft_load(struct arena *a, const char *name, const struct model *target, struct model *out,
                                  struct err *e);

/* estimate_drafting_judged -- tokens of a sequence in a step of the chain or the tree; 1 without a draft. Errors: as
 * speculate_tree_shape. */
enum err_code estimate_drafting_judged(struct arena *a, const struct estimate_drafting *d, int64_t *out, struct err *e);

/* estimate_drafting_open -- the draft of a case and its steps, and the target's verify pass. setup: the target's.
 * Errors: ERR_USAGE a layout that does not divide, or a tree deeper than the acceptance; those of model_load. */
enum err_code estimate_drafting_open(struct arena *a, const struct estimate_request *q, const struct step_setup *setup,
                                     struct estimate_case *c, struct err *e);

/* estimate_engine_open -- fill c->engine. Errors: ERR_USAGE a flag's value, or a cache that the engine's rule does not
 * cover; ERR_RANGE, ERR_NOMEM. */
enum err_code estimate_engine_open(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                   struct err *e);

/* estimate_pages_open -- c->engine.pages, where the engine lays layers of several kinds out in one pool, those of a
 * draft (NULL none) among them, from the settings in r and the options. Errors: as estimate_engine_open. */
enum err_code estimate_pages_open(struct arena *a, const struct option_values *v, struct estimate_case *c,
                                  const struct model *draft, struct pool_request *r, struct err *e);

/* estimate_engine_limit -- why the engine does not run `batch` sequences of `context` tokens at once; NULL: it does. */
const char *estimate_engine_limit(const struct estimate_engine *g, int64_t batch, int64_t context);

/* estimate_source_open -- what an encoder-decoder reads, and what of the request is not described of one. Errors:
 * ERR_USAGE. */
enum err_code estimate_source_open(struct arena *a, const struct estimate_request *q, struct model *m, struct err *e);

enum err_code estimate_case_open(struct arena *a, const struct estimate_request *q, const char *model, const char *gpu,
                                 struct estimate_case *out, struct err *e);

/* estimate_beside_open, estimate_diffusion_open -- fill c->beside; c->diffusion and c->uncached. Errors: ERR_USAGE
 * options of diffusion for another model, or steps without a number of tokens; ERR_RANGE, ERR_NOMEM. */
enum err_code estimate_beside_open(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                   struct err *e);
enum err_code estimate_diffusion_open(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                      struct err *e);

/* estimate_active_varies -- whether tokens use parameters in different numbers (experts of no computation, of groups).
 */
bool estimate_active_varies(const struct estimate_case *c);

/* estimate_passes -- passes that settle `generate` tokens of a diffusion model, the last block like the others;
 * estimate_tokens_per_pass -- tokens that a pass settles, on average; of other models NAN and 1. */
double estimate_passes(const struct estimate_case *c, int64_t generate);
double estimate_tokens_per_pass(const struct estimate_case *c, int64_t generate);

/* estimate_generated -- tokens made for `generate` of them: a diffusion model fills its blocks. */
double estimate_generated(const struct estimate_case *c, int64_t generate);

/* estimate_weight_bytes -- stored bytes of a whole model's weights. Errors: ERR_RANGE, ERR_NOMEM. */
enum err_code estimate_weight_bytes(struct arena *a, const struct model *m, double *out, struct err *e);

/* estimate_note_stored -- where the checkpoint behind a model holds other numbers of parameters or bytes than its
 * config explains, with its tower and multi-token modules or without, a note of c->model says both; modules that it
 * does not hold become none. Bytes are not compared when q stores the weights in another way. Errors: ERR_RANGE,
 * ERR_NOMEM. */
enum err_code estimate_note_stored(struct arena *a, const struct estimate_request *q, struct estimate_case *c,
                                   struct err *e);

/* A point of the answer. Strings are borrowed from the case. Bytes are per GPU. */
struct estimate_row {
    const char *model, *hardware, *phase, *fidelity, *conventions, *weights, *kv, *attention, *notes, *model_hash,
        *hardware_hash;
    const char *prefill_bound_by, *decode_bound_by, *bound_by, *bounds, *marked, *unfit_because, *stages;
    int64_t pp, ep, attention_dp, dcp, nodes, microbatches;
    double bubble_frac;
    double prefill_sent_bytes, prefill_fabric_bytes, decode_sent_bytes, decode_fabric_bytes;
    int64_t gpus, tp, replicas, batch, context, prompt_tokens, generate_tokens, layers, max_context_tokens;
    double total_params, active_params;
    double active_params_min, active_params_max; /* NAN: all tokens use as many */
    double stored_bytes, stored_elements;        /* NAN without a checkpoint */
    double tower_params, tower_bytes, mtp_params, mtp_weight_bytes;
    double audio_params, audio_bytes, image_tokens, image_token_pixels, audio_tokens; /* tokens: NAN not known */
    double lora_params, lora_bytes, lora_flops_per_token, lora_slot_bytes;
    double passes, tokens_per_pass; /* of a diffusion model; NAN others */
    int64_t source_tokens;          /* of an encoder-decoder, as all of the next line; unknown for others */
    double source_bytes;
    double offloaded_bytes, prefill_host_s, decode_host_s;
    double weight_bytes, kv_bytes_per_token, kv_bytes_per_token_full, kv_bytes_per_token_windowed,
        kv_bytes_per_token_index, kv_bytes_per_token_gpu;
    double state_bytes_per_sequence, state_bytes;
    double kv_bytes, kv_allocated_bytes, activation_bytes, memory_bytes, capacity_bytes, left_bytes;
    bool fits;
    double prefill_s, decode_step_s, user_tok_per_s, throughput_tok_per_s;
    double usd_per_h, usd_per_mtok;                                            /* at the list price; NAN unknown */
    double prefill_s_p10, prefill_s_p90, decode_step_s_p10, decode_step_s_p90; /* NAN unless calibrated */
    double user_tok_per_s_p10, user_tok_per_s_p90, throughput_tok_per_s_p10, throughput_tok_per_s_p90;
    const char *efficiency, *framework, *transferred; /* NULL unless calibrated */
    double flops, bytes, intensity_flops_per_byte;    /* of a decode step */
    double prefill_flops, prefill_bytes;
    double pool_bytes, pool_blocks, pool_tokens, max_concurrency, engine_starts; /* NAN without engine flags */
    double prefill_compute_s, prefill_memory_s, prefill_link_s, decode_compute_s, decode_memory_s, decode_link_s;
    const char *draft, *accept; /* speculation; NULL, TABLE_INT_UNKNOWN and NAN without */
    int64_t draft_tp, gamma, verify_tokens, best_gamma, spec_pays_until_batch;
    double bonus_token, draft_weight_bytes, draft_kv_bytes;
    double tokens_per_step, draft_s, verify_s, spec_step_s, spec_user_tok_per_s, spec_throughput_tok_per_s,
        spec_speedup;
    double spec_step_s_p10, spec_step_s_p90, spec_throughput_tok_per_s_p10, spec_throughput_tok_per_s_p90;
};

/* estimate_drafting_fill -- memory of a point with a draft, and times unless hidden: p of this point, pays_until of
 * speculate_pays_until. estimate_drafting_constant -- fields that all points of a case share. */
void estimate_drafting_constant(const struct estimate_request *q, const struct estimate_case *c,
                                struct estimate_row *r);
void estimate_drafting_memory(const struct speculate_point *p, struct estimate_row *r);
void estimate_drafting_times(const struct estimate_case *c, const struct speculate_point *p, int64_t pays_until,
                             struct estimate_row *r);

/* estimate_drafting_band -- P10 and P90 of a step of the gamma that point p has, at calibrated times (NAN of floors).
 * estimate_drafting_ops -- calibrated_ops of a pass of one of the steps of the speculation. */
void estimate_drafting_band(const struct estimate_case *c, double B, double T, double S, double M,
                            const struct speculate_point *p, struct estimate_row *r);
void estimate_drafting_ops(const struct estimate_case *c, const struct step *of, double B, double T, double S,
                           struct step_op *ops, size_t n);

/* estimate_drafting_write -- lines that say who drafts, under the heading of a case. estimate_drafting_table -- a table
 * of the n rows under its own; keys of its columns are estimate_drafting_keys. */
void estimate_drafting_write(struct out *o, const struct estimate_request *q, const struct estimate_case *c);
const char *estimate_drafting_keys(const struct estimate_request *q);
enum err_code estimate_drafting_table(struct arena *a, const struct estimate_request *q, const struct table *t,
                                      const struct estimate_row *rows, size_t n, struct out *o, struct err *e);

/* estimate_columns -- all columns of a point; n of them. estimate_op_columns -- those of --by-op; and of --mix,
 * --train.
 */
const struct column *estimate_mix_columns(size_t *n);
const struct column *estimate_train_columns(size_t *n);
const struct column *estimate_columns(size_t *n);
const struct column *estimate_op_columns(size_t *n);

/* estimate_longest -- the longest context that is asked for, of the decoder where m has an encoder. */
int64_t estimate_longest(const struct estimate_request *q, const struct model *m);

/* estimate_context -- context i of those asked for; where none was, the default, or what m's file allows if that is
 * less. */
int64_t estimate_context(const struct estimate_request *q, const struct model *m, size_t i);

/* estimate_points -- how many points one case has. estimate_eval -- points first .. first+n-1 of it, context-major,
 * batch running fastest. Errors: ERR_NOMEM. */
size_t estimate_points(const struct estimate_request *q);
enum err_code estimate_eval(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                            size_t first, size_t n, struct estimate_row *rows, struct err *e);

/* estimate_ops_add -- n operators onto *sum, the same ones of passes before (NULL: none yet, op becomes it); what binds
 * is what bound the pass that took longest. estimate_ops_share -- share and intensity of such sums, and their phase. */
void estimate_ops_add(struct step_op **sum, struct step_op *op, size_t n);
void estimate_ops_share(struct step_op *op, size_t n, const char *phase);

/* An operator of a point, with what names the point. */
struct estimate_op_row {
    const char *model, *hardware, *fidelity, *weights, *kv;
    int64_t gpus, tp, batch, context, gamma;
    struct step_op op;
};

enum err_code estimate_ops(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                           const struct estimate_row *point, struct estimate_op_row **out, size_t *out_n,
                           struct err *e);

/* estimate_block_tokens -- --block-size. Errors: ERR_USAGE none that an engine takes: kernels of attention read caches
 * in multiples of 16 tokens (vllm/v1/attention/backends/flash_attn.py, get_supported_kernel_block_sizes), or pages that
 * divide them. */
enum err_code estimate_block_tokens(const struct option_values *v, int64_t *out, struct err *e);

#endif
