/* cmd_estimate -- memory, prefill and decode time of models on devices, for lists of batches and contexts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/estimate_output.h"
#include "calc/cli/plot.h"
#include "calc/cli/progress.h"
#include "calc/cli/this_cpu.h"

#define TEXT(name_, letter_, value_, fallback_, help_)                                                                 \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .kind = OPTION_TEXT, .value = value_, .fallback = fallback_, .help = help_   \
    }
#define ALTERNATIVE(number_, name_, letter_, value_, fallback_, help_)                                                 \
    {                                                                                                                  \
        .name = name_, .letter = letter_, .kind = OPTION_TEXT, .value = value_, .fallback = fallback_, .help = help_,  \
        .alternative = number_                                                                                         \
    }
#define FLAG(name_, help_)                                                                                             \
    {                                                                                                                  \
        .name = name_, .kind = OPTION_FLAG, .help = help_                                                              \
    }

static const struct option OPTIONS[] = {
    {.name = "model",
     .letter = 'm',
     .kind = OPTION_MANY,
     .value = "NAME,...",
     .group = "What",
     .help = "a built-in (ridge list models), a config.json, a checkpoint directory, or a Hugging Face id"},
    {.name = "gpu",
     .letter = 'g',
     .kind = OPTION_MANY,
     .value = "NAME[:N],...",
     .help = "a built-in device (ridge list hardware), a file of your own, or this-cpu (as ridge probe measured it), "
             "and how many"},
    THIS_CPU_STORE,
    TEXT("tp", 0, "N", NULL, "GPUs that share every layer of one copy (default: all; the others hold further copies)"),
    LAYOUT_OPTIONS,
    OFFLOAD_OPTIONS,
    {.name = "set",
     .kind = OPTION_MANY,
     .value = "KEY=VALUE,...",
     .help = "change a key of the config before reading it; K=8 and other letters of the course work too"},
    {.name = "what-if",
     .kind = OPTION_MANY,
     .value = "CHANGE,...",
     .help = "change the model that was read, in this order: gqa=8, mla=512+64, kv=fp8, ... (ridge list what-ifs)"},
    {.name = "batch",
     .letter = 'b',
     .kind = OPTION_TEXT,
     .value = "LIST",
     .fallback = "1",
     .group = "Workload",
     .help = "sequences decoded together, per copy: 1,16,64 or 1..512*2 or 1..64+8"},
    ALTERNATIVE(1, "context", 'c', "LIST", "1024",
                "tokens of context at the decode step, and of the prompt: 1Ki..128Ki*2"),
    ALTERNATIVE(2, "prompt", 0, "LIST", NULL,
                "tokens in; with --generate the decode step is the mean over the generation"),
    ALTERNATIVE(2, "generate", 0, "LIST", NULL, "tokens out"),
    ALTERNATIVE(3, "workload", 0, "NAME", NULL,
                "tokens in and out of a built-in workload (chat, code, long-context, reasoning) or a file"),
    ALTERNATIVE(4, "mix", 0, "ITEM,...", NULL,
                "one step of several: decode=N@CONTEXT sequences, prefill=[Nx]TOKENS[@CACHED] pieces of prompts, as in "
                "decode=32@1500,prefill=512@1024 or prefill=2x512"),
    TEXT("source", 0, "N", NULL,
         "encoder-decoders: tokens that the encoder reads, with --context (default: as many as the file says; with "
         "--generate the --prompt is the source)"),
    TEXT("chunk", 0, "N", NULL, "prefill in pieces of N tokens, a step each (default: whole prompts)"),
    TEXT("block", 0, "N", NULL,
         "diffusion models: tokens of a block, those before it cached (default: the model's; else whole sequences)"),
    TEXT("steps", 0, "N", NULL, "diffusion models: passes that settle a block, or all tokens (default: one a token)"),
    TEXT("lora", 0, "R[:MODULE,...]", NULL,
         "price a low-rank adapter of rank R on q,v or: q, k, v, o, gate, up, down, all (column lora_bytes)"),
    LORA_OPTIONS,
    TOWERS_OPTION,
    {.name = "weights",
     .kind = OPTION_TEXT,
     .value = "FORMAT",
     .group = "Precision (ridge list dtypes)",
     .help = "format of the linear layers (default: as the checkpoint stores them)"},
    TEXT("kv", 0, "FORMAT", NULL, "format of the KV cache; none: decoding without a cache"),
    TEXT("activations", 0, "FORMAT", NULL, "format of activations"),
    {.name = "draft",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .group = "Speculative decoding",
     .help = "what drafts tokens for the model to judge in one pass: another model (llama-3.1-8b, or changed: "
             "llama-3.1-8b+layers=4), "
             "eagle or medusa=4 (heads on it), or mtp (its own module)"},
    TEXT("accept", 0, "P,...", NULL,
         "part of the drafted tokens that is kept when those before them were: 0.8, by depth 0.9,0.8,0.7, or of a tree "
         "by depth and rank of a child 0.6/0.2,0.5/0.1"),
    TEXT("gamma", 0, "N|best", "best", "tokens drafted in a row"),
    TEXT("tree", 0, "N,...", NULL,
         "a tree instead of a row: nodes at each depth (1,3,2,1), or children of each node (4x2x1)"),
    FLAG("no-bonus", "no further token when all drafted ones are kept (the course's loop)"),
    TEXT("draft-passes", 0, "depth|one", NULL,
         "passes of the draft in a step: one for each depth, or one for all (default: one for heads side by side)"),
    TEXT("draft-tp", 0, "N", NULL, "GPUs that share the draft (default: --tp where the draft divides, else 1)"),
    {.name = "train",
     .kind = OPTION_TEXT,
     .value = "TOKENS",
     .group = "Training instead of serving",
     .help = "a run over so many tokens (15e12): days, memory by what it holds, a step of --batch sequences of "
             "--context tokens a copy (--tp is 1 unless given)"},
    TEXT("mfu", 0, "FRAC", NULL,
         "part of the peak flops that the run reaches (default: 1, a floor; runs reach 0.3-0.5)"),
    TEXT("params", 0, "N", NULL, "count 6*N*tokens flops (default: the model's active parameters)"),
    TEXT("optimizer", 0, "NAME", "adamw",
         "precision and optimizer: adamw, adamw-fp32-grad, adamw-fp32, adamw-bf16, adamw-8bit, momentum, sgd"),
    TEXT("zero", 0, "0..3", "3", "split over copies: 1 the optimizer's state, 2 gradients too, 3 parameters too"),
    TEXT("recompute", 0, "WHAT", "attention",
         "computed anew in the backward pass: attention (its softmax), layers (all but their inputs) or none"),
    {.name = "fidelity",
     .kind = OPTION_TEXT,
     .value = "NAME",
     .fallback = "roofline",
     .group = "How it is counted",
     .help = "roofline: every operator at its own limit, in sequence; bound: all work pooled; calibrated: as measured "
             "kernels take, median with P10 and P90"},
    TEXT("efficiency", 0, "NAME|FILE", NULL,
         "calibrated: parameters of ridge fit (default: the device's own, else those of the nearest measured device)"),
    TEXT("framework", 0, "NAME", NULL,
         "calibrated: whose kernels and steps: vllm, trtllm or sglang; ridge: the probe's; none: no engine around them "
         "(default: vllm)"),
    TEXT("launch", 0, "graph|eager", "graph", "calibrated: kernels replayed in a graph, or launched one by one"),
    FLAG("course", "the conventions and constants of CS336 lecture 10 (ridge list conventions)"),
    TEXT("causal", 0, "half|full", "half", "attention products: pairs that the mask keeps, or all"),
    TEXT("prefill", 0, "one|together", "one", "prefill one prompt alone, or B together"),
    TEXT("lm-head", 0, "last|all", "last", "logits for the last position, or for all"),
    TEXT("embedding", 0, "gathered|full", "gathered", "input embedding: rows of the tokens, or the whole table"),
    TEXT("mlp", 0, "separate|fused", "separate", "MLP products as kernels of their own, or one kernel"),
    TEXT("fuse", 0, "NAME,...", "none",
         "elementwise work in the kernel beside it: all, or of activation, residual, norm, rope, head-norm, kv-write"),
    TEXT("overlap", 0, "none|links", "none", "links: what ranks send goes on while other operators compute"),
    TEXT("routing", 0, "RULE", NULL,
         "distinct experts that a pass reads: uniform (default), zipf:S (popularity 1/rank^S), loads:A (drawn from a "
         "density x^-A; servers: 1.01), or as others count: "
         "replacement, upper, active, all (--skew: how uneven the parts of --ep are)"),
    TEXT("latent", 0, "FORM", "by-pass",
         "latent attention: by-pass (decode absorbed, prefill expanded), absorbed or expanded in both"),
    TEXT("head-multiple", 0, "N", NULL, "absorbed attention computes its query heads in blocks of N"),
    TEXT("like", 0, "TOOL", NULL,
         "count as another tool does, where there is a switch for it (ridge list conventions)"),
    FLAG("ignore-memory", "show times of points that do not fit, marked"),
    {.name = "gpu-memory-utilization",
     .kind = OPTION_TEXT,
     .value = "FRAC",
     .group = "An engine's cache pool (vLLM's names; any of them shows the pool)",
     .help = "part of the GPU that the engine takes (default: the engine's)"},
    TEXT("max-model-len", 0, "N", NULL, "longest sequence (default: the model's)"),
    TEXT("max-num-seqs", 0, "N", NULL, "most sequences in a step, of each attention group"),
    TEXT("max-num-batched-tokens", 0, "N", NULL, "most tokens in a step, of each attention group"),
    TEXT("block-size", 0, "N", "16", "tokens in a cache block"),
    TEXT("engine", 0, "NAME", "vllm-v1", "vllm-v0, vllm-v1, vllm-0.21 or vllm-runner-v2"),
    FLAG("offline", "defaults of the library instead of the server"),
    TEXT("mamba-cache-mode", 0, "MODE", "none",
         "states kept of a sequence: none (the last), align (two, for prefix caching) or all (one a block)"),
    TEXT("mamba-ssm-cache-dtype", 0, "NAME", "auto",
         "of recurrent states: auto (what the file says, else that of activations), float32, float16 or bfloat16"),
    TEXT("kv-cache-memory", 0, "SIZE", NULL, "the pool itself, when known: 16GiB"),
    TEXT("activation-memory", 0, "SIZE", NULL, "what the engine reserves for activations (default: predicted)"),
    TEXT("non-torch-memory", 0, "SIZE", NULL, "memory outside the tensor allocator (default: the engine's)"),
    {.name = "by-op", .kind = OPTION_FLAG, .group = "Output", .help = "one row per operator, for a single point"},
    TEXT("only", 0, "PART", "all", "memory, prefill or decode"),
    TEXT("format", 'f', "NAME", "text", "text, md, csv, json or jsonl"),
    OPTION_FILE("output", 'o', "write to a file, complete or not at all"),
    TEXT("columns", 0, "KEY,...", NULL, "these columns, in this order (ridge list columns)"),
    OPTION_FILE("plot", 0, "a picture: .png .svg .pdf, or - for the terminal; with --by-op a roofline"),
    TEXT("plot-kind", 0, "NAME", NULL,
         "roofline, batch or memory (default: roofline with --by-op, else batch; memory with --only memory)"),
    TEXT("scenario", 0, "FILE", NULL, "options from a JSON object, or from a result that ridge wrote as JSON"),
};

enum { CHUNK = 4096, KEEP_MAX = 1 << 20, TEXT_MAX_ROWS = 100000 };

static void count_fit(struct estimate_sink *s, const struct estimate_row *r)
{
    s->points_n++;
    if (r->fits) s->fits_n++;
    if (!r->fits && !s->because) s->because = r->unfit_because;
    if (!r->fits && !isnan(r->left_bytes) && !(-r->left_bytes >= s->least_short_bytes)) {
        s->least_short_bytes = -r->left_bytes;
        s->need_bytes = r->memory_bytes;
        s->capacity_bytes = r->capacity_bytes;
    }
}

static enum err_code run_case(struct estimate_sink *s, const struct estimate_request *q, const struct estimate_case *c,
                              struct err *e)
{
    const size_t points = estimate_points(q);
    for (size_t at = 0; at < points; at += CHUNK) {
        const size_t n = points - at < CHUNK ? points - at : CHUNK;
        struct arena *scratch = s->streamed ? arena_open() : NULL;
        if (s->streamed && !scratch) return err_nomem(e);
        struct estimate_row *rows = s->streamed ? arena_array(scratch, n, sizeof *rows) : s->rows + s->rows_n;
        enum err_code code = rows ? estimate_eval(scratch ? scratch : s->arena, q, c, at, n, rows, e) : err_nomem(e);
        for (size_t i = 0; i < n && code == ERR_OK; i++) {
            count_fit(s, &rows[i]);
            if (!s->streamed) continue;
            code = table_row(&s->table, s->format, &rows[i], s->first, s->out, e);
            s->first = false;
        }
        arena_close(scratch);
        TRY(code);
        if (!s->streamed) s->rows_n += n;
        progress_show(&s->progress, s->points_n, s->all_points);
    }
    return ERR_OK;
}

/* ---- the command ---- */

/* Combinations of outputs that would overwrite or mislead. */
static enum err_code check_picture(const struct option_values *v, const struct estimate_request *q, struct err *e)
{
    const char *plot = option_get(v, "plot"), *output = option_get(v, "output");
    if (q->by_op && q->only == ONLY_MEMORY) return err_set(e, ERR_USAGE, "--by-op shows times; --only memory has none");
    if (!plot) return ERR_OK;
    if (output && strcmp(plot, output) == 0)
        return err_set(e, ERR_USAGE, "--plot and --output are the same file '%.80s'", plot);
    if (strcmp(plot, "-") == 0 && !output && strcmp(option_get(v, "format"), "text") != 0)
        return err_set(e, ERR_USAGE, "--plot - draws on standard output, where --format %s goes: add -o FILE",
                       option_get(v, "format"));
    if (strcmp(estimate_plot_kind(q), "batch") == 0 && (q->only == ONLY_PREFILL || q->only == ONLY_MEMORY))
        return err_set(e, ERR_USAGE,
                       "the batch picture shows decode steps; it cannot stand beside --only prefill or memory");
    return ERR_OK;
}

static enum err_code open_sink(struct arena *a, const struct option_values *v, const struct estimate_request *q,
                               size_t cases_n, struct estimate_sink *s, struct err *e)
{
    *s = (struct estimate_sink){.arena = a, .first = true, .least_short_bytes = (double)NAN};
    if (table_format_parse(option_get(v, "format"), &s->format, e) != ERR_OK) return err_prepend(e, "--format: ");
    size_t columns_n;
    const struct column *columns = estimate_columns(&columns_n);
    s->table = (struct table){.columns = columns,
                              .n_columns = columns_n,
                              .stride_bytes = sizeof *s->rows,
                              .schema = "ridge.estimate.1",
                              .tool = commands_tool(),
                              .scenario_json = option_scenario_json(a, v)};
    if (option_get(v, "columns") && !q->by_op &&
        table_select(a, &s->table, option_get(v, "columns"), &s->table, e) != ERR_OK)
        return commands_no_column(e);
    if (option_get(v, "plot-kind") && !option_get(v, "plot"))
        return err_set(e, ERR_USAGE, "--plot-kind says what --plot FILE shows; the file is missing");
    TRY(check_picture(v, q, e));
    if (option_get(v, "plot")) TRY(plot_check(estimate_plot_kind(q), option_get(v, "plot"), e));
    const size_t rows = estimate_points(q) * cases_n;
    if (option_get(v, "plot") && strcmp(estimate_plot_kind(q), "roofline") == 0 && rows != 1)
        return err_set(e, ERR_USAGE, "a roofline picture shows one point: one model, device, batch and context");
    s->all_points = rows;
    progress_start(&s->progress, "points");
    const bool text = s->format == TABLE_TEXT || s->format == TABLE_MD;
    if (q->by_op && rows / cases_n != 1)
        return err_set(e, ERR_USAGE, "--by-op shows one point: give one batch and one context");
    s->streamed = !text && !q->by_op && !option_get(v, "plot");
    if (text && rows > TEXT_MAX_ROWS)
        return err_set(e, ERR_RANGE, "%zu rows are too many for a text table; use --format csv -o FILE", rows);
    if (!s->streamed) {
        if (rows > KEEP_MAX) return err_set(e, ERR_RANGE, "%zu points are too many for one picture", rows);
        s->rows = arena_array(a, rows, sizeof *s->rows);
        if (!s->rows) return err_nomem(e);
    }
    return out_open(a, option_get(v, "output"), &s->out, e);
}

/* No point that fits is a no; with engine flags every device whose engine does not start is named. */
static enum err_code judge(const struct estimate_sink *s, const struct estimate_request *q,
                           const struct estimate_case *cases, size_t cases_n, struct err *e)
{
    char need[UNITS_TEXT_MAX], more[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX];
    size_t refusals = 0;
    char all[640] = "";
    for (size_t i = 0; i < cases_n && q->engine; i++) {
        if (!cases[i].engine.refusal[0]) continue;
        const size_t at = strlen(all);
        (void)snprintf(all + at, sizeof all - at, "%s%s: the engine %s", refusals++ ? "; " : "", cases[i].hw.key,
                       cases[i].engine.refusal);
    }
    if (refusals == cases_n) return err_set(e, ERR_NO, "%s", all);
    if (s->fits_n > 0 || q->ignore_memory) return ERR_OK;
    if (isnan(s->least_short_bytes) || s->least_short_bytes <= 0)
        return err_set(e, ERR_NO, "no point is within the engine's pool and limits: %s",
                       s->because ? s->because : "its pool");
    return err_set(e, ERR_NO, "%s: needs %s, %s more than the %s of one GPU",
                   s->points_n == 1 ? "does not fit" : "no point fits; the smallest shortfall",
                   units_format_bytes(need, s->need_bytes), units_format_bytes(more, s->least_short_bytes),
                   units_format_bytes(have, s->capacity_bytes));
}

/* Of several, one that cannot be split keeps a row that says so. */
static enum err_code open_cases(struct arena *a, const struct estimate_request *q, struct estimate_case *cases,
                                struct err *e)
{
    const bool rows = !q->by_op && !q->mix_text && q->training.tokens <= 0 && !option_get(q->options, "plot");
    const size_t n = q->models_n * q->gpus_n;
    size_t unsplit = 0;
    struct err first = {.code = ERR_OK};
    for (size_t i = 0; i < n; i++) {
        struct err own = {.code = ERR_OK};
        const enum err_code code =
            estimate_case_open(a, q, q->models[i / q->gpus_n], q->gpus[i % q->gpus_n], &cases[i], &own);
        if (code == ERR_OK) continue;
        if (unsplit++ == 0) first = own;
        if (!rows || !cases[i].unsplit) return err_set(e, code, "%s", own.text);
    }
    return n > 0 && unsplit == n ? err_set(e, first.code, "%s", first.text) : ERR_OK;
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct estimate_request q;
    struct estimate_sink s;
    TRY(option_parse(a, c, argc, argv, &v, e));
    TRY(estimate_request_parse(a, &v, &q, e));
    const size_t cases_n = q.models_n * q.gpus_n;
    struct estimate_case *cases = arena_array(a, cases_n, sizeof *cases);
    if (!cases) return err_nomem(e);
    TRY(open_cases(a, &q, cases, e));
    if (q.training.tokens > 0) return estimate_train_run(a, &q, cases, cases_n, e);
    if (q.mix_text) return estimate_mix_run(a, &q, cases, cases_n, e);
    TRY(open_sink(a, &v, &q, cases_n, &s, e));
    if (s.streamed) TRY(table_begin(&s.table, s.format, s.out, e));
    enum err_code code = ERR_OK;
    for (size_t i = 0; i < cases_n && code == ERR_OK; i++) code = run_case(&s, &q, &cases[i], e);
    progress_end(&s.progress);
    TRY(code);
    if (s.streamed)
        TRY(table_end(&s.table, s.format, s.out, e));
    else
        TRY(estimate_write(&s, &q, cases, cases_n, e));
    TRY(out_commit(s.out, e));
    if (option_get(&v, "plot")) TRY(estimate_draw(&s, &q, cases, e));
    return judge(&s, &q, cases, cases_n, e);
}

const struct command command_estimate = {
    .name = "estimate",
    .summary = "Memory, time to first token and decode step of a model on a device.",
    .usage = "-m MODEL -g DEVICE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge estimate -m llama-2-13b -g h100-sxm --batch 1,16,64,256\n"
                "  ridge estimate -m config.json -g h100-sxm:8 --kv fp8 --weights int4-g128\n"
                "  ridge estimate -m llama-3.1-8b -g h100-sxm,l40s -b 1..512*2 -c 1Ki..128Ki*2 \\\n"
                "      --format csv -o sweep.csv\n"
                "  ridge estimate -m llama-3.1-8b -g h100-sxm -b 64 --by-op --plot roofline.svg\n"
                "  ridge estimate -m llama-3.1-8b -g h100-sxm --max-model-len 32768\n"
                "  ridge estimate -m llama-3.1-8b -g h100-sxm --mix decode=32@1500,prefill=512@1024\n"
                "  ridge estimate -m llama-3.1-70b -g h100-sxm:1024 --train 15e12 --mfu 0.5\n"
                "  ridge estimate -m llama-3.1-70b -g h100-sxm:8 -b 1..256*2 --fidelity calibrated\n"
                "  ridge estimate -m deepseek-v3 -g h200-sxm:16 --attention-dp 16 --ep 16 -b 512\n",
    .run = run,
};
