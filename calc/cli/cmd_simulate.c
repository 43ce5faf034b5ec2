/* cmd_simulate -- a workload through the scheduler of an engine, step by step. */
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/interrupt.h"
#include "calc/cli/plot.h"
#include "calc/cli/simulate.h"
#include "calc/cli/this_cpu.h"

#define TEXT(name_, value_, fallback_, help_)                                                                          \
    {                                                                                                                  \
        .name = name_, .kind = OPTION_TEXT, .value = value_, .fallback = fallback_, .help = help_                      \
    }
#define FLAG(name_, help_)                                                                                             \
    {                                                                                                                  \
        .name = name_, .kind = OPTION_FLAG, .help = help_                                                              \
    }

static const struct option OPTIONS[] = {
    {.name = "model",
     .letter = 'm',
     .kind = OPTION_TEXT,
     .value = "NAME",
     .group = "What",
     .help = "as in ridge estimate"},
    {.name = "gpu", .letter = 'g', .kind = OPTION_TEXT, .value = "NAME[:N]", .help = "a device, and how many of it"},
    THIS_CPU_STORE,
    TEXT("tp", "N", NULL, "GPUs that share every layer of a replica (default: all)"),
    TEXT("pp", "N", NULL, "stages of whole layers of a replica: as many batches are under way, each request in one"),
    TEXT("ep", "N", NULL, "parts in which experts are dealt to the ranks of a replica"),
    TEXT("attention-dp", "N", NULL, "attention groups of a replica, of --tp GPUs each, which step together"),
    TEXT("dcp", "N", NULL, "of --tp ranks that share the cache of a sequence by tokens (decode context parallelism)"),
    TEXT("decode-context-parallel-size", "N", NULL, "the same, as vLLM calls it"),
    TEXT("dcp-comm-backend", "ag_rs|a2a", "ag_rs", "how those ranks join outputs, as in ridge estimate"),
    TEXT("replicas", "N", NULL, "copies of the model, each with a queue of its own (default: as many as fit on -g)"),
    {.name = "set", .kind = OPTION_MANY, .value = "KEY=VALUE,...", .help = "change a key of the config"},
    {.name = "what-if", .kind = OPTION_MANY, .value = "CHANGE,...", .help = "change the model that was read"},
    TEXT("weights", "FORMAT", NULL, "format of the linear layers (default: as stored)"),
    TEXT("kv", "FORMAT", NULL, "format of the KV cache"),
    TEXT("activations", "FORMAT", NULL, "format of activations"),
    TEXT("cpu-offload-gb", "N", NULL,
         "GiB of each GPU's weights that stay at the host and are read in every step (vLLM's name)"),
    LORA_OPTIONS,
    TOWERS_OPTION,
    {.name = "trace",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .group = "Requests (a trace, a rate, clients, or all at once)",
     .help = "arrival_s,prompt_tokens,output_tokens as CSV; or a trace of Azure 2023, BurstGPT or Mooncake"},
    TEXT("rate", "R", NULL,
         "requests a second (--turns: conversations), whether others are answered or not; of a trace: its times scaled "
         "so that so many come"),
    TEXT("workload", "NAME|FILE", NULL,
         "lengths, arrivals and rate where no other option says them (ridge list workloads; ridge fit --workload)"),
    TEXT("arrivals", "PROCESS", "poisson",
         "how they come at that rate: poisson, gamma:CV, bursty:RATIO,TIME or diurnal:SWING,TIME (1d)"),
    TEXT("concurrency", "N", NULL, "clients, each of which asks again when it has its answer"),
    FLAG("exact-rate", "of made requests: times scaled so that --rate come, and not only on average"),
    TEXT("requests", "N", "1000", "how many in all (of a trace: only the first N)"),
    TEXT("judge", "A..B", NULL, "times are of the A-th to the B-th request that came (default: of all)"),
    TEXT("prompt", "LENGTH", "1000",
         "tokens in: N, uniform:A..B, exponential:MEAN, lognormal:MEAN,CV, gamma:MEAN,CV, pareto:MEAN,ALPHA or "
         "empirical:FILE; each "
         "with ,max=N"),
    TEXT("generate", "LENGTH", "200", "tokens out, likewise"),
    TEXT("source", "N", NULL,
         "encoder-decoders: tokens that the encoder reads of every request (default: as many as the file says); the "
         "--prompt is what the decoder begins with (default: what the class does)"),
    TEXT("samples", "N", "1", "answers to each prompt, which share its cache"),
    TEXT("turns", "N", "1", "requests of a conversation; each has all that was said before in its prompt"),
    TEXT("think", "TIME", "0s", "from an answer to the next request of the same client or conversation"),
    TEXT("shared-prefix", "N", NULL, "tokens in front of every first prompt that are the same for all"),
    TEXT("seed", "N", "1", "of everything that is drawn"),
    {.name = "policy",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "chunked",
     .group = "Scheduler",
     .help = "chunked (pieces of prompts beside those that decode) or chunked=TOKENS of a step, fcfs (prompts first), "
             "static (a batch at a time), disagg=P:D (P replicas prefill, D decode)"},
    TEXT("kv-link", "RATE", NULL,
         "disagg: out of a GPU that prefills, one direction, 50GB/s (default: the devices' links where they join all, "
         "else the fabric between nodes)"),
    TEXT("kv-latency", "TIME", "0s", "disagg: of each transfer"),
    TEXT("kv-transfer", "WHEN", "whole",
         "disagg: whole, a cache when its prompt is computed, or layers, each layer's when it is"),
    TEXT("preemption", "NAME", "recompute",
         "who loses blocks when none is left: recompute, is computed anew, or swap, has them copied to the host and "
         "back"),
    TEXT("swap-space", "SIZE", "4GiB", "swap: room at the host for each GPU; beyond it recompute"),
    TEXT(
        "host-link", "RATE", NULL,
        "between a GPU and its host, one direction, for all that goes there (default: the device's PCIe or host_link)"),
    FLAG("prefix-cache", "keep the blocks of prompts and answers for prompts that begin alike"),
    TEXT("kv-offloading-size", "N", NULL,
         "and at the host, GiB of all GPUs of a replica together (vLLM's name): loaded over --host-link, not computed"),
    FLAG("enable-hierarchical-cache", "the same by SGLang's names:"),
    TEXT("hicache-ratio", "X", "2", "of it, times the device's cache"),
    TEXT("hicache-size", "N", NULL, "of it, GB (1e9) of each GPU, instead of the ratio"),
    TEXT("route", "NAME", "round-robin",
         "of several replicas: round-robin, least-loaded or prefix (the longest cached)"),
    TEXT("overhead", "TIME", "0s", "of an engine, added to every step: 3ms"),
    {.name = "draft",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .group = "Speculative decoding, as in ridge estimate",
     .help = "what drafts tokens for the model to judge in one pass: another model, eagle, medusa=4 or mtp"},
    TEXT(
        "accept", "P,...", NULL,
        "part of the drafted tokens that is kept when those before them were, by depth, or of a tree by depth and rank "
        "of a child 0.6/0.2,0.5/0.1"),
    TEXT("gamma", "N", "best", "tokens drafted in a row, always so many"),
    TEXT("tree", "N,...", NULL,
         "a tree instead of a row, judged whole: nodes at each depth (1,3,2,1), or children of each node (4x2x1)"),
    FLAG("no-bonus", "no further token when all drafted ones are kept"),
    TEXT("draft-passes", "depth|one", NULL, "passes of the draft in a step: one for each depth, or one for all"),
    TEXT("draft-tp", "N", NULL, "GPUs that share the draft (default: --tp where the draft divides, else 1)"),
    {.name = "fidelity",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "roofline",
     .group = "How steps are timed",
     .help = "roofline, bound or calibrated, as in ridge estimate"},
    TEXT("efficiency", "NAME|FILE", NULL, "calibrated: parameters of ridge fit"),
    TEXT("framework", "NAME", NULL, "calibrated: whose kernels and steps: vllm, trtllm, sglang or none"),
    TEXT(
        "server", "NAME[:VERSION]|FILE", NULL,
        "steps as a server takes them, kernels calibrated and its host fitted to published times: vllm, trtllm, sglang "
        "(vllm:0.12.0: a version whose host does not work beside the device), or none (default)"),
    TEXT("band", "p50|p90|X", "p50",
         "calibrated: the median, or what nine of ten services do not exceed, as ridge plan keeps its promises at, or "
         "X times the median"),
    {.name = "pool",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "engine",
     .group = "Cache (vLLM's names)",
     .help = "engine: what the engine allots; ideal: all that weights and activations leave"},
    TEXT("memory", "NAME", "paged",
         "paged, or the old way: contiguous (of the longest sequence), contiguous=pow2 or contiguous=exact"),
    TEXT("watermark", "FRAC", NULL, "part of the blocks kept idle when a request enters (default: fcfs 0.01, else 0)"),
    TEXT("gpu-memory-utilization", "FRAC", NULL, "part of the GPU that the engine takes (default: the engine's)"),
    TEXT("max-model-len", "N", NULL, "longest sequence (default: the model's)"),
    FLAG("truncate", "what is longer than --max-model-len ends there (default: it is refused)"),
    TEXT("max-num-seqs", "N", NULL, "most sequences in a step, of each attention group"),
    TEXT("max-num-batched-tokens", "N", NULL, "most tokens in a step, of each attention group"),
    TEXT("num-gpu-blocks-override", "N", NULL,
         "blocks of the cache, of each attention group, whatever memory there is"),
    TEXT("block-size", "N", "16", "tokens in a cache block"),
    TEXT("engine", "NAME", "vllm-v1", "vllm-v0, vllm-v1, vllm-0.21 or vllm-runner-v2"),
    FLAG("offline", "defaults of the library instead of the server"),
    TEXT("mamba-cache-mode", "MODE", "none", "states kept of a sequence: none, align or all"),
    TEXT("mamba-ssm-cache-dtype", "NAME", "auto", "of recurrent states: auto, float32, float16 or bfloat16"),
    TEXT("kv-cache-memory", "SIZE", NULL, "the pool itself, when known: 16GiB"),
    TEXT("activation-memory", "SIZE", NULL, "what the engine reserves for activations (default: predicted)"),
    TEXT("non-torch-memory", "SIZE", NULL, "memory outside the tensor allocator (default: the engine's)"),
    OPTION_FORMAT("text, md, csv, json or jsonl"),
    TEXT("rows", "WHAT", "summary",
         "summary, requests (one row each), steps (one row for each run of equal ones) or steady (one row for each "
         "quantity, as simulated and at a steady state)"),
    OPTION_FILE("output", 'o', "write to a file, complete or not at all"),
    TEXT("columns", "KEY,...", NULL, "these columns, in this order (ridge list columns)"),
    OPTION_FILE("plot", 0,
                "batch, wait and cache over time; with --rows requests which part of them had its tokens within a "
                "time: .png .svg .pdf, or - for the terminal"),
    TEXT("scenario", "FILE", NULL, "options from a JSON object, or from a result that ridge wrote as JSON"),
};

/* ---- while it runs ---- */

static bool show(void *closure, size_t finished, size_t all)
{
    struct simulate_case *c = closure;
    progress_show(&c->progress, finished, all);
    return !interrupt_pending();
}

static void keep_step(void *closure, const struct simulate_step *x)
{
    struct simulate_case *c = closure;
    if (c->steps_n == c->steps_room && !c->steps_lost) {
        const size_t room = c->steps_room ? c->steps_room * 2 : 1 << 12;
        struct simulate_step *more = realloc(c->steps, room * sizeof *more);
        c->steps_lost = !more;
        if (more) {
            c->steps = more;
            c->steps_room = room;
        }
    }
    if (!c->steps_lost) c->steps[c->steps_n++] = *x;
}

static enum err_code simulate(struct arena *a, struct simulate_case *c, struct err *e)
{
    struct interrupt held;
    c->setup.closure = c;
    c->setup.progress = show;
    if (c->keep_steps) c->setup.step = keep_step;
    interrupt_hold(&held, false);
    progress_start(&c->progress, "requests");
    const enum err_code code = simulate_run(a, &c->setup, &c->result, e);
    progress_end(&c->progress);
    c->came = interrupt_release(&held);
    TRY(interrupt_relay(code, c->came, e));
    if (c->server_text) simulate_front(&c->result);
    return c->steps_lost ? err_nomem(e) : ERR_OK;
}

/* ---- the command ---- */

static enum err_code parse_rows(const char *text, enum simulate_rows *out, struct err *e)
{
    static const char *const ROWS[] = {"summary", "requests", "steps", "steady"};
    char clean[64];
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        *out = (enum simulate_rows)i;
        if (strcmp(text, ROWS[i]) == 0) return ERR_OK;
    }
    return err_set(e, ERR_USAGE, "--rows is summary, requests, steps or steady, not '%s'",
                   text_clean(clean, sizeof clean, text, strlen(text)));
}

static enum err_code answer(struct arena *a, struct simulate_case *c, enum simulate_rows rows, enum table_format format,
                            struct err *e)
{
    const char *plot = option_get(c->options, "plot"), *output = option_get(c->options, "output");
    struct out *o;
    if (!plot || strcmp(plot, "-") != 0 || output) {
        TRY(out_open(a, output, &o, e));
        TRY(simulate_write(a, c, rows, format, option_get(c->options, "columns"), o, e));
        TRY(out_commit(o, e));
    }
    if (plot) TRY(simulate_plot(a, c, rows, plot, e));
    if (c->result.partial)
        return err_set(e, interrupt_relay(ERR_STOPPED, c->came, NULL),
                       "interrupted after %zu of %zu requests; what was written is partial", c->result.finished,
                       c->result.n);
    if (c->result.finished == 0) return err_set(e, ERR_NO, "no request could be served: each is too long");
    return ERR_OK;
}

static enum err_code run(struct arena *a, const struct command *command, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct simulate_case *c = arena_alloc(a, sizeof *c);
    enum table_format format;
    enum simulate_rows rows;
    if (!c) return err_nomem(e);
    TRY(option_parse(a, command, argc, argv, &v, e));
    if (table_format_parse(option_get(&v, "format"), &format, e) != ERR_OK) return err_prepend(e, "--format: ");
    TRY(parse_rows(option_get(&v, "rows"), &rows, e));
    const char *plot = option_get(&v, "plot"), *output = option_get(&v, "output");
    if (plot) TRY(plot_check("timeline", plot, e));
    if (plot && output && strcmp(plot, output) == 0)
        return err_set(e, ERR_USAGE, "--plot and --output are the same file '%.80s'", plot);
    TRY(simulate_case_open(a, &v, c, e));
    c->keep_steps = rows == SIMULATE_STEPS || plot;
    enum err_code code = simulate(a, c, e);
    if (code == ERR_OK) code = answer(a, c, rows, format, e);
    free(c->steps);
    return code;
}

const struct command command_simulate = {
    .name = "simulate",
    .summary = "Requests through an engine's scheduler, step by step: latencies, batches, cache.",
    .usage = "-m MODEL -g DEVICE[:N] [--trace FILE | --rate R | --concurrency N] [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples =
        "  ridge simulate -m llama-3.1-70b -g h100-sxm:4 --tp 4 --rate 4 --prompt lognormal:1200,1\n"
        "  ridge simulate -m llama-3.1-8b -g h100-sxm:8 --tp 1 --trace azure.csv --route least-loaded\n"
        "  ridge simulate -m qwen3-8b -g l40s --concurrency 64 --rows requests -f csv -o requests.csv\n"
        "  ridge simulate -m qwen3-32b -g h100-sxm:2 --tp 2 --concurrency 32 --server vllm\n"
        "  ridge simulate -m llama-3.1-70b -g h100-sxm:20 --tp 4 --policy disagg=2:3 --rate 9\n"
        "  ridge simulate -m llama-3.1-8b -g l40s --concurrency 200 --preemption swap\n"
        "  ridge simulate -m llama-3.1-70b -g h100-sxm:4 --tp 4 --rate 2 --draft llama-3.1-8b --accept .8 --gamma "
        "4\n"
        "  ridge simulate -m llama-3.1-8b -g h100-sxm --concurrency 4 --draft medusa=3 --tree 4x2x1 "
        "--accept .6/.15/.08/.04,.5/.12,.4\n"
        "  ridge simulate -m llama-3.1-8b -g h100-sxm --rate 3 --turns 5 --think 10s --prefix-cache\n",
    .run = run,
};
