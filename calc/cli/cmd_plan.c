/* cmd_plan -- GPUs for traffic within promised latencies at the lowest cost; ways to lay a model out over GPUs. */
#include <string.h>

#include "calc/cli/commands.h"
#include "calc/cli/plan.h"
#include "calc/cli/plan_charts.h"
#include "calc/cli/plot.h"

static const struct option OPTIONS[] = {
    PLAN_OPTIONS("devices to choose from, N: so many of it at most (default: h100-sxm,h200-sxm,l40s); --layouts: one "
                 "device, and how many of it"),
    {.name = "layouts",
     .kind = OPTION_FLAG,
     .group = "Layouts (without traffic)",
     .help = "every legal TP x PP x EP x attention-DP x copies on the GPUs: memory, bytes sent, times"},
    {.name = "batch",
     .letter = 'b',
     .kind = OPTION_TEXT,
     .value = "N",
     .help = "sequences in flight on all GPUs together; copies share them evenly (default: 64)"},
    {.name = "context",
     .letter = 'c',
     .kind = OPTION_TEXT,
     .value = "N",
     .help = "tokens of context at the decode step, and of the prompt (default: 1024)"},
    {.name = "all", .kind = OPTION_FLAG, .help = "also layouts that do not fit or cannot be, each with the reason"},
    {.name = "emit",
     .kind = OPTION_TEXT,
     .value = "ENGINE",
     .group = "Output",
     .help = "vllm, sglang or trtllm: the command line that starts the winner (--server: whose steps it is planned "
             "with, and whose layouts); its checkpoint is the id that -m names, else of that shape the one that is "
             "trained to answer (Instruct, Chat, it)"},
    LAYOUT_FLAG("verify", "simulate plans in the order of their cost until one keeps its promises (default for traces, "
                          "--arrivals other than poisson and --disagg)"),
    LAYOUT_TEXT("top", "N", NULL, "only the N best"),
    {.name = "format",
     .letter = 'f',
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "text",
     .help = "text, table (the same), md, csv, json or jsonl"},
    {.name = "output",
     .letter = 'o',
     .kind = OPTION_TEXT,
     .value = "FILE",
     .typed_only = true,
     .written = true,
     .help = "write to a file, complete or not at all"},
    OPTION_FILE("plot", 0,
                "latency against throughput of the best layouts, what is promised shaded: .png .svg .pdf, or - for the "
                "terminal"),
    OPTION_FILE("plot-cost", 0, "dollars an hour against requests a second, likewise"),
    LAYOUT_TEXT("columns", "KEY,...", NULL, "these columns, in this order (ridge list columns)"),
    LAYOUT_TEXT("scenario", "FILE", NULL, "options from a JSON object, or from a result that ridge wrote as JSON"),
};

/* What only one of the two questions reads. */
static enum err_code check_options(const struct option_values *v, bool layouts, struct err *e)
{
    static const char *const SERVE[] = {"rate",      "prompt",       "generate",
                                        "arrivals",  "trace",        "tokens-per-day",
                                        "job",       "deadline",     "seed",
                                        "ttft",      "tpot",         "max-gpus",
                                        "price",     "max-num-seqs", "max-num-batched-tokens",
                                        "emit",      "verify",       "gpu-memory-utilization",
                                        "framework", "band",         "server",
                                        "plot",      "plot-cost",    "draft",
                                        "accept",    "gamma",        "tree",
                                        "disagg",    "prefix-cache", "kv-offloading-size",
                                        "efficiency"};
    static const char *const LAYOUTS[] = {"batch", "context", "all"};
    const char *const *other = layouts ? SERVE : LAYOUTS;
    const size_t n = layouts ? sizeof SERVE / sizeof *SERVE : sizeof LAYOUTS / sizeof *LAYOUTS;
    for (size_t i = 0; i < n; i++)
        if (option_given(v, other[i]))
            return err_set(e, ERR_USAGE,
                           layouts ? "--layouts lists layouts without traffic: not beside --%s"
                                   : "--%s is of --layouts, which lists ways to share GPUs",
                           other[i]);
    return ERR_OK;
}

static enum err_code serve(struct arena *a, const struct option_values *v, enum table_format format, struct err *e)
{
    static const char *const PICTURES[] = {"plot", "plot-cost"};
    struct plan_case *c = arena_alloc(a, sizeof *c);
    const char *output = option_get(v, "output");
    struct out *o;
    if (!c) return err_nomem(e);
    for (size_t i = 0; i < 2; i++) {
        const char *plot = option_get(v, PICTURES[i]);
        if (!plot) continue;
        TRY(plot_check("charts", plot, e));
        if (output && strcmp(plot, output) == 0)
            return err_set(e, ERR_USAGE, "--%s and --output are the same file '%.80s'", PICTURES[i], plot);
    }
    TRY(plan_case_open(a, v, c, e));
    const bool found = c->result.best_n > 0;
    if (!found && c->has_emit) return plan_none(c, e);
    TRY(out_open(a, output, &o, e));
    TRY(c->has_emit ? plan_emit(a, c, o, e) : plan_write(a, c, format, o, e));
    TRY(out_commit(o, e));
    for (size_t i = 0; i < 2; i++) {
        if (!option_get(v, PICTURES[i])) continue;
        const enum err_code code = plan_plot(a, c, i == 1, option_get(v, PICTURES[i]), e);
        if (code != ERR_OK && (found || code != ERR_NO)) return code; /* else why there is no plan says more */
    }
    if (!found) return plan_none(c, e);
    return ERR_OK;
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    enum table_format format;
    TRY(option_parse(a, c, argc, argv, &v, e));
    const char *name = option_get(&v, "format");
    if (table_format_parse(strcmp(name, "table") == 0 ? "text" : name, &format, e) != ERR_OK)
        return err_prepend(e, "--format: ");
    if (v.operands_n) return err_set(e, ERR_USAGE, "plan: '%.60s' belongs to no option", v.operands[0]);
    const bool layouts = option_get(&v, "layouts") != NULL;
    TRY(check_options(&v, layouts, e));
    return layouts ? plan_layouts_run(a, &v, format, e) : serve(a, &v, format, e);
}

const struct command command_plan = {
    .name = "plan",
    .summary = "Which GPUs serve traffic within promised latencies at the lowest cost, and why others do not.",
    .usage = "-m MODEL --rate R --prompt N --generate N --ttft TIME --tpot TIME [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge plan -m llama-3.1-70b --rate 12 --prompt 1200 --generate 300 --ttft p95=1s --tpot p95=40ms\n"
                "  ridge plan -m llama-3.1-8b --rate 40 --ttft 500ms --tpot 30ms -g l40s,h100-sxm --emit vllm\n"
                "  ridge plan -m qwen3-8b --trace azure.csv --ttft p99=2s --tpot p99=50ms --price prices.json\n"
                "  ridge plan -m llama-3.1-70b --rate 1 --tpot p95=15ms --draft llama-3.2-1b --accept 0.7\n"
                "  ridge plan -m llama-3.1-70b --job requests=1e6 --deadline 8h --prompt 800 --generate 400\n"
                "  ridge plan --layouts -m deepseek-v3 -g h200-sxm:16 -b 1024 --top 10\n"
                "  ridge plan --layouts -m llama-3.1-70b -g h100-sxm:16 --nodes 2 --all\n",
    .run = run,
};
