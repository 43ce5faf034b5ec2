/* cmd_probe -- measure kernels on this machine, and keep what was measured. */
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/model_shapes.h"
#include "calc/cli/probe_verbs.h"

static const struct option OPTIONS[] = {
    {.name = "device",
     .letter = 'g',
     .kind = OPTION_TEXT,
     .value = "cpu|cuda",
     .fallback = "cpu",
     .group = "What",
     .help = "where to measure; of import and history: the name of a device"},
    {.name = "kernel", .kind = OPTION_MANY, .value = "NAME,...", .help = "these kernels only (ridge probe list)"},
    {.name = "variant",
     .kind = OPTION_MANY,
     .value = "NAME,...|all",
     .help = "which code: the best that runs here and a library's unless named; all: every one"},
    {.name = "dtype",
     .kind = OPTION_MANY,
     .value = "NAME,...",
     .help = "these formats only: fp32, bf16, fp16, fp8, int8, int4-g128"},
    {.name = "shape",
     .kind = OPTION_TEXT,
     .value = "NAME=SIZES,...",
     .help = "instead of the kernels' own shapes: m=1,8,n=4096,k=4096, in all combinations"},
    MODEL_SHAPES_OPTIONS(NULL),
    {.name = "state",
     .kind = OPTION_TEXT,
     .value = "cold|hot|both",
     .fallback = "both",
     .help = "cold: operands come from memory; hot: from the caches, where they fit"},
    {.name = "threads",
     .kind = OPTION_TEXT,
     .value = "N|all",
     .fallback = "1",
     .help =
         "threads that make each call together, each on a core of its own, the ceilings too: of kernels that can be "
         "split (ridge probe list says which: streams, multiply-adds, gemm, mlp, prefill, decode). Results of other "
         "numbers of threads are of another device: this-cpu@N"},
    {.name = "quick",
     .kind = OPTION_FLAG,
     .help = "the shapes that tell most, a second each, in a minute unless --kernel, --shape or -m picks them"},
    {.name = "all", .kind = OPTION_FLAG, .help = "every shape of the kernels, however long it takes"},
    {.name = "budget",
     .kind = OPTION_TEXT,
     .value = "TIME",
     .help =
         "of all of it: the ceilings have half at most, the most telling shapes come first, and only the first goes on "
         "beyond it, by as much again and ten seconds at most: 2min, with --quick 1min; 1min of "
         "ceilings; without end with --all, --kernel, --shape or -m",
     .group = "How"},
    {.name = "deadline",
     .kind = OPTION_TEXT,
     .value = "TIME",
     .help = "sampling of one result ends after it: 3s, with --quick 1s, and less where the budget says so"},
    {.name = "ceilings",
     .kind = OPTION_TEXT,
     .value = "TIME",
     .help =
         "sampling of one ceiling ends after it, and of each of its repetitions around a result: 250ms, with --quick "
         "200ms"},
    {.name = "patience",
     .kind = OPTION_TEXT,
     .value = "TIME",
     .fallback = "60s",
     .help = "a worker that is silent so much longer is given up"},
    {.name = "dram-bytes",
     .kind = OPTION_FLAG,
     .help = "of a card: the bytes that its memory read and wrote, by its counters, in a run apart from the timing"},
    {.name = "samples", .kind = OPTION_TEXT, .value = "N", .fallback = "10", .help = "least samples of a result"},
    {.name = "seed", .kind = OPTION_TEXT, .value = "N", .fallback = "7", .help = "of the inputs"},
    {.name = "worker",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .help = "another program that measures (probe/METHOD.md); of import: that knows the kernels of the rows"},
    {.name = "store",
     .kind = OPTION_TEXT,
     .value = "FILE|none",
     .help =
         "where results are kept: $XDG_DATA_HOME/ridge/measurements.db. A FILE that cannot be had ends a run before it "
         "measures; without the usual one it measures, prints, and ends with exit status 4. Locked by another program "
         "it is "
         "waited for, 20s and no longer than the budget",
     .group = "Store"},
    {.name = "last",
     .kind = OPTION_TEXT,
     .value = "N",
     .help = "history, export: the newest N results; of text and md 1000, else all"},
    {.name = "outcome", .kind = OPTION_TEXT, .value = "NAME", .help = "history, export: measured, noisy, wrong, ..."},
    {.name = "kind",
     .kind = OPTION_TEXT,
     .value = "KIND",
     .help = "export: rows of this kind, as ridge fit names them"},
    {.name = "each", .kind = OPTION_FLAG, .help = "show: every sample instead of the summary"},
    {.name = "format",
     .letter = 'f',
     .kind = OPTION_TEXT,
     .value = "FORMAT",
     .help = "text, md, csv, json, jsonl; of export csv unless given, else text",
     .group = "Output"},
    {.name = "columns", .kind = OPTION_MANY, .value = "KEY,...", .help = "these columns, in this order"},
    {.name = "output",
     .letter = 'o',
     .kind = OPTION_TEXT,
     .value = "FILE",
     .typed_only = true,
     .written = true,
     .help = "instead of standard output"},
    {.name = "plot",
     .kind = OPTION_TEXT,
     .value = "FILE",
     .typed_only = true,
     .written = true,
     .help = "run: measured points on the measured roofline: .png .svg .pdf, or - for the terminal"},
};

#define TABLE_OPTIONS "format,columns,output"

static const struct {
    const char *name;
    probe_verb *run;
    size_t operands; /* behind the verb, at least */
    size_t most;
    const char *options; /* that it heeds, joined by ',' */
} VERBS[] = {
    {"list", probe_list, 0, 0, "device,kernel,threads,patience,worker," TABLE_OPTIONS},
    {"run", probe_run, 0, 0,
     "device,threads,kernel,variant,dtype,shape,model,weights,batch,context,prompt,state,quick,all,budget,deadline,"
     "ceilings,patience,dram-bytes,samples,seed,worker,store,plot," TABLE_OPTIONS},
    {"ceilings", probe_ceilings, 0, 0,
     "device,threads,quick,budget,deadline,ceilings,patience,samples,seed,worker,store," TABLE_OPTIONS},
    {"history", probe_history, 0, 0, "device,kernel,store,last,outcome,kind," TABLE_OPTIONS},
    {"show", probe_show, 1, 1, "store,each," TABLE_OPTIONS},
    {"export", probe_export, 0, 0, "device,kernel,store,last,outcome,kind," TABLE_OPTIONS},
    {"import", probe_import, 1, 1000, "device,store,worker,output"},
};

/* Every option that is given says something to the verb. */
static enum err_code check_options(const struct option_values *v, const char *verb, const char *heeded, struct err *e)
{
    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++)
        if (option_given(v, OPTIONS[i].name) && !wire_list_has(heeded, OPTIONS[i].name))
            return err_set(e, ERR_USAGE, "probe %s: --%s says nothing to it", verb, OPTIONS[i].name);
    return wire_list_has(heeded, "model") ? model_shapes_check(v, e) : ERR_OK;
}

/* The command line as the user would read it again. */
static const char *command_text(struct arena *a, int argc, char **argv)
{
    const char *text = "ridge";
    char clean[200];
    for (int i = 0; i < argc && text; i++)
        text = arena_printf(a, "%s %s", text, text_clean(clean, sizeof clean, argv[i], strlen(argv[i])));
    return text;
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    const char *command = command_text(a, argc, argv);
    if (!command) return err_nomem(e);
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (!v.operands_n)
        return err_set(e, ERR_USAGE, "probe: what? list, run, ceilings, history, show ID, export or import FILE");
    for (size_t i = 0; i < sizeof VERBS / sizeof VERBS[0]; i++) {
        if (strcmp(v.operands[0], VERBS[i].name) != 0) continue;
        v.operands++;
        v.operands_n--;
        if (v.operands_n < VERBS[i].operands) return err_set(e, ERR_USAGE, "probe %s: which?", VERBS[i].name);
        if (v.operands_n > VERBS[i].most) {
            char clean[64];
            return err_set(
                e, ERR_USAGE, "probe %s: what is \"%s\"?", VERBS[i].name,
                text_clean(clean, sizeof clean, v.operands[VERBS[i].most], strlen(v.operands[VERBS[i].most])));
        }
        TRY(check_options(&v, VERBS[i].name, VERBS[i].options, e));
        return VERBS[i].run(a, &v, command, e);
    }
    char near[200], clean[64];
    text_suggest(near, sizeof near, v.operands[0], &VERBS[0].name, sizeof VERBS[0], sizeof VERBS / sizeof VERBS[0]);
    return err_set(e, ERR_USAGE, "probe: no \"%s\"%s",
                   text_clean(clean, sizeof clean, v.operands[0], strlen(v.operands[0])), near);
}

const struct command command_probe = {
    .name = "probe",
    .summary = "Measure kernels on this machine beside their predictions; keep the results.",
    .usage = "list|run|ceilings|history|show ID|export|import FILE [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge probe run --quick --plot roofline.svg\n"
                "  ridge probe run --kernel gemm --dtype bf16 --shape m=1..64*4,n=4096,k=4096\n"
                "  ridge probe run -m llama-3.1-8b --batch 1,8 --state cold\n"
                "  ridge probe export -o rows.csv\n",
    .run = run,
};
