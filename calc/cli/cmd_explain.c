/* cmd_explain -- where a number comes from: shapes, FLOPs, bytes, intensity and seconds, step by step, from the very
 * description that `ridge estimate` evaluates. */
#include <stdio.h>
#include <string.h>

#include "calc/base/table.h"
#include "calc/cli/commands.h"
#include "calc/cli/explain_page.h"
#include "calc/cli/scope.h"
#include "calc/learn/derive_story.h"
#include "calc/learn/sensitivity.h"
#include "calc/time/step.h"

static const struct option OPTIONS[] = {
    SCOPE_MODEL,
    SCOPE_CONVENTIONS("any"),
    SCOPE_TEXT("batch", 'b', "N", "1", "with -m: put in a batch"),
    SCOPE_TEXT("context", 'c', "N", "1024", "with -m: put in a context"),
    {.name = "sensitivity",
     .kind = OPTION_FLAG,
     .help = "with -m: per cent of it for one per cent of each size, width and rate: what is worth improving"},
    {.name = "conventions", .kind = OPTION_FLAG, .help = "every convention and its default, as ridge list conventions"},
    OPTION_FORMAT("of --sensitivity"),
    {.name = "latex", .kind = OPTION_FLAG, .help = "a LaTeX document"},
    OPTION_FILE("output", 'o', "write to a file"),
};

static enum err_code list_topics(struct arena *a, struct out *o, struct err *e)
{
    struct quantity_scope s;
    static const char *const OTHERS[][2] = {
        {"state_bytes", "recurrent state of B sequences, one rank (of a model that has some)"},
        {"capacity_bytes", "memory that a process can use (of a device: -g)"},
    };
    struct quantity_named named[QUANTITY_NAMED_MAX];
    size_t n;
    const char *meaning;
    TRY(quantity_open(a, NULL, false, &s, e));
    TRY(quantity_named_all(&s, named, &n, e));
    out_str(o, "ridge explain TOPIC, one of\n");
    for (const char *const *name = quantity_names(); *name; name++)
        out_printf(o, "  %-18s%s\n", *name, quantity_meaning(*name));
    for (const char *const *name = derive_story_names(); *name; name++) {
        out_printf(o, "  %-18s", *name);
        option_wrap(o, derive_story_meaning(*name), 20, 20);
    }
    out_str(o, "\nor, with -m, any operator of the model (ridge estimate --by-op names them), or a quantity of the "
               "whole model\n");
    for (size_t i = 0; i < n; i++)
        if (!quantity_meaning(named[i].name)) {
            out_printf(o, "  %-18s", named[i].name);
            option_wrap(o, named[i].meaning, 20, 20);
        }
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        out_printf(o, "  %-18s%s\n", OTHERS[i][0], OTHERS[i][1]);
    out_str(o, "\nSymbols\n");
#define X(field, text, meaning_)                                                                                       \
    out_printf(o, "  %-18s", text);                                                                                    \
    option_wrap(o, meaning_, 20, 20);
    COST_SYMBOLS(X)
#undef X
    for (size_t i = 0; i < RATES_N; i++) {
        const char *name = sym_name(rates_list(&s.rates, i, &meaning));
        out_printf(o, "  %-18s%s\n", name, meaning);
    }
    return ERR_OK;
}

/* The whole-model topics as a point: decode_step has one query token, the prefill S. */
static enum quantity_phase phase_of(const struct scope *s, const char *topic)
{
    if (strcmp(topic, "decode_step") == 0) return QUANTITY_DECODE;
    return strcmp(topic, "prefill") == 0 ? QUANTITY_PREFILL : s->phase;
}

/* An option that says nothing about the topic is refused: it would be ignored. */
static enum err_code refuse_options(const struct option_values *v, const char *topic, const struct quantity_scope *s,
                                    struct err *e)
{
    static const char *const POINT[] = {"batch", "context"};
    const bool decodes = strcmp(topic, "decode_step") == 0 || strcmp(topic, "throughput") == 0;
    const bool prefill = strcmp(topic, "prefill") == 0, own = !quantity_of_layer(s, topic);
    for (size_t i = 0; i < sizeof POINT / sizeof POINT[0] && !s->model; i++)
        if (option_given(v, POINT[i])) return err_set(e, ERR_USAGE, "--%s needs -m", POINT[i]);
    if (own && option_given(v, "phase"))
        return err_set(e, ERR_USAGE, "--phase is of quantities of a layer; %s has one of its own", topic);
    if (own && option_given(v, "layer"))
        return err_set(e, ERR_USAGE, "--layer is of quantities of a layer; %s is of the whole model", topic);
    if (option_given(v, "tokens") && !decodes && (own || strcmp(option_get(v, "phase"), "prefill") == 0))
        return err_set(e, ERR_USAGE, "--tokens are those of a decode step, which this is not");
    if (option_given(v, "no-towers") && strcmp(topic, "resident_bytes") != 0)
        return err_set(e, ERR_USAGE, "--no-towers is of the topic resident_bytes; no pass of a text has them");
    if (!prefill && option_given(v, "prefill")) return err_set(e, ERR_USAGE, "--prefill is of the topic prefill");
    if (prefill && option_given(v, "batch") && strcmp(option_get(v, "prefill"), "together") != 0)
        return err_set(e, ERR_USAGE, "--batch: prefill takes one prompt; --prefill together takes those of the batch");
    return ERR_OK;
}

/* The scope, and the point; the default context is no longer than the model's file allows. */
static enum err_code open_topic(struct arena *a, const struct option_values *v, const char *topic, struct scope *s,
                                int64_t *batch, int64_t *context, struct err *e)
{
    TRY(scope_open(a, v, NULL, s, e));
    if (strcmp(topic, "params") == 0 || strcmp(topic, "active_params") == 0)
        s->quantity.tp = 1; /* of the whole model */
    TRY(units_parse_count(option_get(v, "batch"), 1, 1 << 24, batch, e));
    TRY(units_parse_count(option_get(v, "context"), 1, 1 << 30, context, e));
    const int64_t most = s->quantity.model ? model_context_limit(&s->model) : 0;
    if (!option_given(v, "context") && most > 0 && most < *context) *context = most;
    return scope_context(s, *context, e);
}

static enum err_code derive(struct arena *a, const struct option_values *v, const char *topic, struct derivation *out,
                            struct err *e)
{
    struct scope s;
    int64_t batch, context;
    TRY(open_topic(a, v, topic, &s, &batch, &context, e));
    struct quantity_scope symbols = s.quantity;
    symbols.sizes = QUANTITY_SYMBOLS;
    symbols.rates = rates_make(symbols.c);
    const struct derive_request q = {.symbols = &symbols,
                                     .numbers = s.quantity.model || s.gpus ? &s.quantity : NULL,
                                     .phase = phase_of(&s, topic),
                                     .batch = batch,
                                     .context = context};
    TRY(derive_topic(&q, topic, out, e));
    return refuse_options(v, topic, &s.quantity, e);
}

/* ---- sensitivity ---- */

static const struct column COLUMNS[] = {
    COLUMN_AT(struct sensitivity_row, symbol, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN, "x", "what varies"),
    COLUMN_AT(struct sensitivity_row, elasticity, COLUMN_REAL, UNITS_NONE, COLUMN_SHOWN, "% for 1%",
              "per cent of the quantity for one per cent of x"),
    COLUMN_AT(struct sensitivity_row, meaning, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN, "meaning", "in words"),
};

/* "decode_step of llama-2-13b on NVIDIA H100 SXM 80 GB: 24.05 ms at batch 64, context 1024, T = 1, roofline" */
static enum err_code write_title(struct out *o, struct arena *a, const struct scope *s, const char *topic,
                                 const struct sensitivity *r, int64_t batch, int64_t context, struct err *e)
{
    char value[UNITS_TEXT_MAX];
    const bool of_layer = quantity_of_layer(&s->quantity, topic) || strcmp(topic, "decode_step") == 0;
    const bool timed = r->unit == UNITS_SECONDS || r->unit == UNITS_TOK_PER_S;
    const char *at = "", *tokens = "";
    double each;
    if (r->of_batch) at = arena_printf(a, " at batch %lld", (long long)batch);
    if (r->of_context && at) at = arena_printf(a, "%s%s context %lld", at, *at ? "," : " at", (long long)context);
    if (of_layer)
        tokens = phase_of(s, topic) != QUANTITY_DECODE || !sym_constant(quantity_tokens(&s->quantity), &each)
                     ? ", T = S"
                     : arena_printf(a, ", T = %.0f", each);
    const char *title =
        at && tokens ? arena_printf(a, "%s of %s%s%s: %s%s%s%s%s", topic, s->model.name, s->gpus ? " on " : "",
                                    s->gpus ? s->hw.name : "", units_format(value, r->unit, r->value), at, tokens,
                                    timed ? ", " : "", timed ? step_fidelity_name(s->quantity.fidelity) : "")
                     : NULL;
    if (!title) return err_nomem(e);
    option_wrap(o, title, 0, 4);
    option_wrap(o, "one per cent more of x makes it so many per cent more:", 0, 4);
    out_char(o, '\n');
    return ERR_OK;
}

static enum err_code show_sensitivity(struct arena *a, const struct option_values *v, const char *topic, struct err *e)
{
    struct scope s;
    struct sensitivity r;
    enum table_format format;
    int64_t batch, context;
    struct out *o;
    if (option_get(v, "latex"))
        return err_set(e, ERR_USAGE, "--sensitivity is a table: -f text, md, csv, json or jsonl");
    TRY(table_format_parse(option_get(v, "format"), &format, e));
    TRY(open_topic(a, v, topic, &s, &batch, &context, e));
    TRY(sensitivity_of(&s.quantity, phase_of(&s, topic), topic, batch, context, &r, e));
    TRY(refuse_options(v, topic, &s.quantity, e));
    const char *notes[] = {"a max takes the resource that binds at this point",
                           "here two resources bind equally: a step to the other side answers differently"};
    const bool timed = r.unit == UNITS_SECONDS || r.unit == UNITS_TOK_PER_S;
    const struct table t = {.columns = COLUMNS,
                            .n_columns = sizeof COLUMNS / sizeof COLUMNS[0],
                            .rows = r.rows,
                            .n_rows = r.n,
                            .stride_bytes = sizeof *r.rows,
                            .schema = "ridge-sensitivity-1",
                            .tool = commands_tool(),
                            .scenario_json = option_scenario_json(a, v),
                            .notes = notes,
                            .n_notes = r.kink ? 2 : timed};
    TRY(out_open(a, option_get(v, "output"), &o, e));
    if (format == TABLE_TEXT) TRY(write_title(o, a, &s, topic, &r, batch, context, e));
    TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct derivation d;
    struct out *o;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (option_get(&v, "conventions")) {
        for (size_t i = 0; i < c->options_n; i++)
            if (v.operands_n ||
                (option_given(&v, c->options[i].name) && strcmp(c->options[i].name, "conventions") != 0))
                return err_set(e, ERR_USAGE, "--conventions is a list of its own, beside no topic or option");
        char list[] = "list", conventions[] = "conventions";
        char *words[] = {list, conventions, NULL};
        return command_list.run(a, &command_list, 2, words, e);
    }
    if (v.operands_n > 1) return err_set(e, ERR_USAGE, "explain: one topic at a time (ridge explain lists them)");
    const char *topic = v.operands_n ? v.operands[0] : "decode_step";
    if (strcmp(topic, "moe") == 0) topic = "experts"; /* as papers call the layer */
    if (option_get(&v, "sensitivity")) return show_sensitivity(a, &v, topic, e);
    if (option_given(&v, "format")) return err_set(e, ERR_USAGE, "--format goes with --sensitivity; see --latex");
    for (size_t i = 0; v.operands_n == 0 && i < c->options_n; i++)
        if (option_given(&v, c->options[i].name) && strcmp(c->options[i].name, "output") != 0)
            return err_set(e, ERR_USAGE, "explain: --%s goes with a topic", c->options[i].name);
    if (v.operands_n == 1) TRY(derive(a, &v, topic, &d, e));
    TRY(out_open(a, option_get(&v, "output"), &o, e));
    if (v.operands_n == 0)
        TRY(list_topics(a, o, e));
    else
        TRY((option_get(&v, "latex") ? explain_page_latex : explain_page_text)(a, o, &d, e));
    return out_commit(o, e);
}

const struct command command_explain = {
    .name = "explain",
    .summary = "Where a number comes from: shapes, FLOPs, bytes, intensity, seconds.",
    .usage = "[TOPIC] [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge explain mlp\n"
                "  ridge explain attention --course\n"
                "  ridge explain attention --phase decode -m llama-2-13b -g h100-sxm -b 64\n"
                "  ridge explain decode_step -m deepseek-v3 --latex -o step.tex\n"
                "  ridge explain decode_step -m llama-2-13b -g h100-sxm -b 64 --sensitivity\n",
    .run = run,
};
