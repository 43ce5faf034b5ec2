/* plan -- what `ridge plan` was asked, and the rows that answer it; private to the command. */
#ifndef RIDGE_CLI_PLAN_H
#define RIDGE_CLI_PLAN_H

#include "calc/base/table.h"
#include "calc/cli/layout_options.h"
#include "calc/cli/lora_options.h"
#include "calc/cli/option.h"
#include "calc/cli/this_cpu.h"
#include "calc/serve/emit.h"
#include "calc/serve/planner.h"
#include "calc/serve/planner_verify.h"

/* Rows of an option table that say what is asked: model, devices, traffic, promises and the choice. */
#define PLAN_OPTIONS(gpu_help)                                                                                         \
    {.name = "model",                                                                                                  \
     .letter = 'm',                                                                                                    \
     .kind = OPTION_TEXT,                                                                                              \
     .value = "NAME",                                                                                                  \
     .group = "What",                                                                                                  \
     .help = "as in ridge estimate"},                                                                                  \
        {.name = "gpu", .letter = 'g', .kind = OPTION_TEXT, .value = "NAME[:N],...", .help = (gpu_help)},              \
        THIS_CPU_STORE,                                                                                                \
        {.name = "set", .kind = OPTION_MANY, .value = "KEY=VALUE,...", .help = "change a key of the config"},          \
        {.name = "what-if", .kind = OPTION_MANY, .value = "CHANGE,...", .help = "change the model that was read"},     \
        LAYOUT_TEXT(                                                                                                   \
            "weights", "FORMAT,...", NULL,                                                                             \
            "formats of the linear layers to choose from (default: stored,fp8 of 16-bit models, else stored)"),        \
        LAYOUT_TEXT("kv", "FORMAT,...", NULL, "formats of the KV cache, likewise"),                                    \
        LAYOUT_TEXT("activations", "FORMAT", NULL, "format of activations"),                                           \
        {.name = "rate",                                                                                               \
         .kind = OPTION_TEXT,                                                                                          \
         .value = "R",                                                                                                 \
         .group = "Traffic (a rate, a trace, tokens a day or a job)",                                                  \
         .help = "requests a second"},                                                                                 \
        LAYOUT_TEXT("prompt", "LENGTH", "1000",                                                                        \
                    "tokens in: N, uniform:A..B, exponential:MEAN, lognormal:MEAN,CV, gamma:MEAN,CV, "                 \
                    "pareto:MEAN,ALPHA or empirical:FILE; each with ,max=N"),                                          \
        LAYOUT_TEXT("generate", "LENGTH", "200", "tokens out, likewise"),                                              \
        LAYOUT_TEXT("source", "N", NULL,                                                                               \
                    "encoder-decoders: tokens that the encoder reads of every request (default: the file's); the "     \
                    "--prompt is what the decoder begins with (default: what the class does)"),                        \
        LAYOUT_TEXT("arrivals", "PROCESS", "poisson",                                                                  \
                    "poisson, gamma:CV, bursty:RATIO,TIME or diurnal:SWING,TIME (1d)"),                                \
        LAYOUT_TEXT("trace", "FILE", NULL,                                                                             \
                    "requests as they came (formats: ridge help simulate); --rate scales them"),                       \
        LAYOUT_TEXT("tokens-per-day", "N", NULL, "tokens out a day, whatever the latency"),                            \
        LAYOUT_TEXT("job", "requests=N", NULL, "so many requests, all at once, done by the --deadline"),               \
        LAYOUT_TEXT("deadline", "TIME", NULL, "of the job: 8h, 2d (ns, us, ms, s, min, h or d)"),                      \
        LAYOUT_TEXT("seed", "N", "1", "of lengths and arrivals that are drawn"),                                       \
        {.name = "ttft",                                                                                               \
         .kind = OPTION_TEXT,                                                                                          \
         .value = "[pNN=]TIME",                                                                                        \
         .single = true,                                                                                               \
         .group = "Promises",                                                                                          \
         .help = "time to first token: p95=1s (p50, p90, p95 or p99 of requests; without: p95)"},                      \
        {.name = "tpot",                                                                                               \
         .kind = OPTION_TEXT,                                                                                          \
         .value = "[pNN=]TIME",                                                                                        \
         .single = true,                                                                                               \
         .help = "time per output token behind the first: p95=40ms"},                                                  \
        {.name = "max-gpus",                                                                                           \
         .kind = OPTION_TEXT,                                                                                          \
         .value = "N",                                                                                                 \
         .fallback = "64",                                                                                             \
         .group = "Choice (a number that is given is kept)",                                                           \
         .help = "of any device"},                                                                                     \
        LAYOUT_TEXT("price", "FILE", NULL, "dollars an hour: {\"h100-sxm\": 2.49, ...}, before list prices"),          \
        LAYOUT_TEXT("max-num-seqs", "N,...", "16..1024*2",                                                             \
                    "most sequences of a copy (default: and between them what its cache holds)"),                      \
        LAYOUT_TEXT("max-num-batched-tokens", "N,...", "512..8192*2", "most tokens of a step"),                        \
        LAYOUT_TEXT("gpu-memory-utilization", "FRAC", NULL, "part of the GPU that the engine takes (default: 0.9)"),   \
        LAYOUT_TEXT("tp", "N", NULL, "ranks that split every layer"), LAYOUT_OPTIONS, OFFLOAD_OPTIONS, LORA_OPTIONS,   \
        TOWERS_OPTION,                                                                                                 \
        LAYOUT_FLAG("prefix-cache", "of a trace whose prompts share blocks: kept by every copy, and simulated so"),    \
        LAYOUT_TEXT("kv-offloading-size", "N", NULL,                                                                   \
                    "and at the host of a copy, GiB of all its GPUs together (vLLM's name): loaded over --host-link"), \
        LAYOUT_FLAG("disagg", "also in two pools: copies that prefill, others that decode, caches sent between them"), \
        LAYOUT_TEXT(                                                                                                   \
            "draft", "NAME", NULL,                                                                                     \
            "also with tokens drafted ahead by a model, by eagle (an EAGLE head), medusa=4 or mtp, as in ridge "       \
            "estimate"),                                                                                               \
        LAYOUT_TEXT("accept", "A[,A,...]", NULL,                                                                       \
                    "part of the drafted tokens that is kept, of each depth, or of a tree by depth and rank of a "     \
                    "child 0.6/0.2,0.5/0.1"),                                                                          \
        LAYOUT_TEXT("gamma", "N,...", NULL, "tokens drafted in a row to choose from (default: 1..5)"),                 \
        LAYOUT_TEXT("tree", "N,...", NULL,                                                                             \
                    "a tree in place of rows: nodes at each depth (1,3,2,1), or children of each node (4x2x1)"),       \
        LAYOUT_TEXT("fidelity", "NAME", NULL,                                                                          \
                    "calibrated (default), or floors: roofline, bound; --layouts: roofline (default) or bound"),       \
        LAYOUT_TEXT("efficiency", "NAME|FILE,...", NULL,                                                               \
                    "calibrated: parameters of ridge fit, each for the device that it is of"),                         \
        LAYOUT_TEXT("framework", "NAME", NULL, "calibrated: whose kernels and steps: vllm, trtllm, sglang or none"),   \
        LAYOUT_TEXT(                                                                                                   \
            "server", "NAME[:VERSION]|FILE", NULL,                                                                     \
            "calibrated: steps as a server takes them, kernels and its host fitted to published times, and the "       \
            "band of what it serves, in layouts that it runs: vllm (default), trtllm or sglang, or none"),             \
        LAYOUT_TEXT("band", "p50|p90", "p90", "calibrated: the part of services that keep the promise")

/* plan_layout_columns -- all columns of a layout; n of them. plan_columns -- of a plan. */
const struct column *plan_layout_columns(size_t *n);
const struct column *plan_columns(size_t *n);

/* plan_layouts_run -- the answer to --layouts. Errors: those of the options and files; ERR_NO no layout fits. */
enum err_code plan_layouts_run(struct arena *a, const struct option_values *v, enum table_format format, struct err *e);

/* A question about traffic, everything loaded. */
struct plan_case {
    const struct option_values *options;
    const char *model, *hub; /* its name, and what an engine loads it by */
    struct lora_request adapters;
    struct planner_request request;
    struct planner_device *device;
    struct planner_format *format;
    struct workload work;
    bool short_source;                                /* --source is less than what the model's file says */
    int64_t source;                                   /* tokens that an encoder reads, in front of each prompt; 0 */
    const char *arrivals, *prompt, *generate, *trace; /* as asked; NULL */
    double tokens_per_day;                            /* NAN: not asked */
    struct workload_spec spec;                        /* of made requests */
    double fillings, few;     /* of the copies, that percentiles are of; few: more were wanted, and so many are the
                                 most that are drawn; 0: not so */
    double period_s, periods; /* of arrivals whose rate changes in time, and how many were drawn; 0 */
    size_t truncated;         /* simulated requests that end at the plan's longest */
    bool partly;              /* fewer than tell how often promises are kept */
    bool drawn;               /* Poisson arrivals, of a trace without times */
    int64_t simulations;      /* in full breadth, of this search */
    const char *replaced;     /* what of a scenario the trace stands instead of, a sentence; NULL */
    bool uneven;              /* arrivals that are not Poisson's: the steady state knows nothing of their bursts */
    struct offload_request offload;
    struct planner_drafting drafting;
    struct speculate_shape shape;  /* of drafting, where it is a tree */
    int64_t tree_depth, tree_wide; /* most children of a node */
    struct model draft_model;
    const char *draft, *draft_hub, *accept; /* as asked; NULL: no draft. draft_hub: what an engine loads it by */
    enum emit_drafting draft_kind;
    struct planner_paying paying; /* of the winner */
    const char *unpaid;           /* why nothing is known of that; NULL */
    bool verify, has_emit, has_near;
    struct planner_plan near; /* has_near: cheaper than the winner, and late on paper by less than paper is off */
    const char *server;       /* as asked, else vLLM's; NULL: none */
    struct engine engine;
    enum emit_engine runs; /* with a server: layouts are those that this engine can run */
    enum emit_engine emit;
    int64_t top, max_context_tokens;
    struct price_list *prices;
    struct planner_result result;
    struct planner_headroom headroom; /* of the winner */
    double hosted_bytes;              /* of its weights, of each GPU, at the host */
    struct planner_verified verified; /* of it; n 0: not simulated */
    const char *unverified;           /* why it was not; NULL */
    struct planner_verified tierless; /* of it without the cache at the host; n 0: not asked */
    int64_t refuted;                  /* plans that the simulation said no to */
    struct planner_confirmed confirmed;
};

/* plan_case_open -- from the options. Errors: ERR_USAGE; those of files. */
enum err_code plan_case_open(struct arena *a, const struct option_values *v, struct plan_case *out, struct err *e);

/* plan_layout_words -- "TP4 PP2 x3"; NULL: no memory. plan_money -- "$54.00", "no known price". */
const char *plan_layout_words(struct arena *a, const struct layout *l);
/* plan_layout_sentence -- the same for who has never seen one: "2 copies of the model, each on 2 GPUs: every layer
 * split over 2 (TP2)"; NULL: no memory. */
const char *plan_layout_sentence(struct arena *a, const struct layout *l);
/* plan_layout_legend -- what TP, PP and their like are, "layouts: ..." without a stop: attention groups and parts of
 * experts where there are experts, shared contexts where they are asked for. */
const char *plan_layout_legend(bool experts, bool contexts);
const char *plan_money(char out[UNITS_TEXT_MAX], double usd);

/* plan_part -- "p95" of a promise. plan_reason -- why a plan fails, with its number; NULL: it does not. plan_breaks,
 * plan_advice -- what gives way first, and what to do then. plan_promises_text -- all that is promised, a sentence;
 * NULL: no memory. */
const char *plan_part(const struct planner_promise *p);
const char *plan_reason(struct arena *a, const struct plan_case *c, const struct planner_plan *x);
const char *plan_breaks(enum planner_verdict v);
/* plan_times_apart -- a time and what is promised, with as many digits as they differ by. */
void plan_times_apart(double is_s, double may_s, char is[UNITS_TEXT_MAX], char may[UNITS_TEXT_MAX]);
const char *plan_advice(const struct planner_headroom *h);
const char *plan_promises_text(struct arena *a, const struct plan_case *c);
/* plan_usual -- " (default)" behind the mean of lengths that nobody gave, by option or by a trace; else "". */
const char *plan_usual(const struct plan_case *c, const char *option);

enum { PLAN_SIMULATIONS = 192 }; /* in full breadth, of a search */

/* plan_say -- a line, wrapped below 80 columns, further lines indented by two; prefix before each. plan_kernels --
 * whose kernels and steps times are. plan_times_say -- how steps are timed. plan_times_doubts -- that times are floors,
 * or medians. plan_devices_doubts -- whose times stand for those of a device (only -1: of each; not of `except`, -1: of
 * none left out) that nobody measured, and where its band is another: devices of which the same is to be said are in
 * one line. plan_doubts -- what is not checked of the winner. plan_headroom_how -- " (simulated, ...)", how its
 * headroom is known; empty: on paper, like all else; NULL: no memory. plan_known_within -- no nearer than another run
 * may be, a part of the rate. */
void plan_times_say(struct out *o, const char *prefix, const struct plan_case *c);
void plan_times_doubts(struct out *o, const char *prefix, const struct plan_case *c);
enum err_code plan_devices_doubts(struct arena *a, struct out *o, const char *prefix, const struct plan_case *c,
                                  int only, int except, struct err *e);
double plan_known_within(const struct plan_case *c);

/* plan_hosted_of -- what of the winner's weights is at the host: hosted_bytes. plan_hosted -- lines about it, and that
 * more was asked for than there is. Errors: as planner_at. */
enum err_code plan_hosted_of(struct arena *a, struct plan_case *c, struct err *e);
void plan_hosted(struct out *o, const struct plan_case *c, const char *prefix);

/* plan_saturates -- "saturates at 9.84 requests/s, 1.6 % below those that come", of a plan that does on paper. */
const char *plan_saturates(struct arena *a, const struct planner_plan *x);

/* plan_paper_miss -- "on paper TPOT p95 40.01 ms > 40 ms", of a plan that a simulation may choose; NULL: it misses
 * nothing there. plan_near_text -- that and what the simulation says, of a winner; empty: nothing. plan_near -- a line
 * on what would cost less and misses by so little; plan_shares -- on a cache that is replicated, where it could be
 * shared.
 */
const char *plan_paper_miss(struct arena *a, const struct plan_case *c, const struct planner_plan *x);
const char *plan_near_text(struct arena *a, const struct plan_case *c, const struct planner_plan *x);
/* plan_kept -- "keeps its promises", or of which part of a pattern in time that is known. plan_refuted_text -- what a
 * simulation found of a plan, beside what is on paper; NULL: no memory. */
const char *plan_kept(struct arena *a, const struct plan_case *c);
const char *plan_refuted_text(struct arena *a, const struct plan_case *c, const struct planner_refuted *x);
/* plan_few_text -- that fewer than five of the simulated requests lie beyond the part that is promised; NULL: more do,
 * or no memory. */
const char *plan_few_text(struct arena *a, const struct planner_request *q, const struct planner_verified *v);
/* plan_skipped_text -- plans that are not simulated for that reason, a sentence without its stop; NULL: there are none,
 * or no memory. */
const char *plan_skipped_text(struct arena *a, const struct plan_case *c, enum planner_skip why);
void plan_near(struct arena *a, struct out *o, const struct plan_case *c, const char *prefix);
void plan_shares(struct out *o, const struct plan_case *c, const char *prefix);
const char *plan_headroom_how(struct arena *a, const struct plan_case *c);
__attribute__((format(printf, 3, 4))) void plan_say(struct out *o, const char *prefix, const char *fmt, ...);
const char *plan_kernels(const struct plan_case *c);
void plan_doubts(struct arena *a, struct out *o, const struct plan_case *c, const char *prefix);

/* plan_drafted -- tokens that a plan drafts in a step: in a row, or all of a tree. */
static inline int64_t plan_drafted(const struct plan_case *c, const struct planner_plan *x)
{
    return c->drafting.shape && x->gamma > 0 ? c->shape.drafted : x->gamma;
}

/* plan_command -- the lines that start a plan in an engine. Errors: as emit_command. */
enum err_code plan_command(struct arena *a, const struct plan_case *c, const struct planner_plan *x,
                           enum emit_engine engine, const char **out, struct err *e);

/* plan_write -- the answer in a format; text: with the reasons. plan_rows -- its rows as a table: of text the best
 * alone, else also what fails. plan_text -- as text, the table of n plans in it. plan_emit -- the engine's command
 * line, the plan as a comment above it. plan_none -- that nothing keeps the promises, and what forbids it: ERR_NO. */
enum err_code plan_rows(struct arena *a, const struct plan_case *c, bool text, struct table *t, struct err *e);
enum err_code plan_text(struct arena *a, struct out *o, const struct plan_case *c, const struct table *t,
                        struct err *e);
enum err_code plan_write(struct arena *a, const struct plan_case *c, enum table_format format, struct out *o,
                         struct err *e);
enum err_code plan_emit(struct arena *a, const struct plan_case *c, struct out *o, struct err *e);
enum err_code plan_none(const struct plan_case *c, struct err *e);

#endif
