/* cmd_help -- the overview, a command's page, and the manual page, all from the option tables. */
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"

static const struct option OPTIONS[] = {
    {.name = "man", .kind = OPTION_FLAG, .help = "the manual page, in troff", .group = "Output"},
};

static void overview(struct out *o)
{
    size_t n;
    const struct command *const *all = commands_table(&n);
    out_str(o, "ridge -- what a language model's inference costs, in bytes, flops and seconds, and why\n\n");
    for (size_t i = 0; i < n; i++) {
        out_printf(o, "  ridge %-10s ", all[i]->name);
        option_wrap(o, all[i]->summary, 19, 19);
    }
    out_str(o, "\n  ridge help COMMAND for its options, ridge --version.\n\n"
               "Units: times in ns, us, ms, s, min, h or d; GB is 1e9 bytes, GiB 2^30.\n\n"
               "Exit codes: 0 answered, 1 the answer is no, 2 usage, 3 bad input file,\n"
               "4 input or output, 5 out of range, 6 memory, 7 device,\n"
               "130 interrupted, 129 by the end of its terminal.\n");
}

static void manual(struct out *o)
{
    size_t n;
    const struct command *const *all = commands_table(&n);
    out_printf(o, ".TH RIDGE 1 \"\" \"%s\" \"User Commands\"\n", commands_tool());
    out_str(o, ".SH NAME\nridge \\- roofline and memory calculator for language\\-model inference\n"
               ".SH SYNOPSIS\n.B ridge\n.I command\n[options]\n.SH DESCRIPTION\n"
               "Exact parameter counts, KV cache, FLOPs and bytes from a Hugging Face config.json; times at roofline\n"
               "fidelity, which are floors. Prefixes: GB is 1e9 bytes, GiB is 2^30; times are in ns, us, ms, s, "
               "min,\nh or d.\n.SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) option_man(o, all[i]);
    out_str(o, ".SH EXIT STATUS\n0 answered, 1 the answer is no (nothing fits), 2 usage, 3 bad input file, 4 input or\n"
               "output, 5 out of range, 6 memory, 7 device, 130 interrupted, 129 by the end of its terminal.\n");
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct out *o;
    TRY(option_parse(a, c, argc, argv, &v, e));
    TRY(out_open(a, NULL, &o, e));
    if (option_get(&v, "man")) {
        manual(o);
    } else if (v.operands_n == 0) {
        overview(o);
    } else {
        const struct command *about = commands_find(v.operands[0]);
        char clean[64];
        if (!about)
            return err_set(e, ERR_USAGE, "no command '%s' (ridge help)",
                           text_clean(clean, sizeof clean, v.operands[0], strlen(v.operands[0])));
        option_help(o, about);
    }
    return out_commit(o, e);
}

const struct command command_help = {
    .name = "help",
    .summary = "The options of a command.",
    .usage = "[COMMAND]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge help estimate\n",
    .run = run,
};
