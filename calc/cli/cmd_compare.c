/* cmd_compare -- models, or changes of a model, side by side. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/compare.h"
#include "calc/cli/layout_options.h"
#include "calc/cli/preset.h"
#include "calc/cli/scope.h"
#include "calc/model/whatif.h"

static const struct option OPTIONS[] = {
    {.name = "model",
     .letter = 'm',
     .kind = OPTION_MANY,
     .value = "NAME,...",
     .group = "What",
     .help = "models as for estimate; each is a row, the first is what the ratios are to"},
    {.name = "what-if",
     .kind = OPTION_MANY,
     .value = "CHANGE,...",
     .help = "a further row for every change; changes of one row are joined by +: gqa=8+kv=fp8 (ridge list what-ifs)"},
    {.name = "preset",
     .kind = OPTION_MANY,
     .value = "NAME,...",
     .help = "rows of a built-in comparison (ridge list presets) or of a file"},
    SCOPE_TEXT("gpu", 'g', "NAME[:N]", NULL, "a built-in device (ridge list hardware) or a file, and how many of it"),
    THIS_CPU_STORE,
    SCOPE_TEXT("tp", 0, "N", NULL, "GPUs that share one copy of the model (default: all; the others hold copies)"),
    {.name = "set",
     .kind = OPTION_MANY,
     .value = "KEY=VALUE,...",
     .help = "change a key of every config before reading it"},
    SCOPE_TEXT("weights", 0, "FORMAT", NULL,
               "format of the linear layers of every row whose what-if gives no other (default: as stored)"),
    SCOPE_TEXT("kv", 0, "FORMAT", NULL, "format of the cache of every row whose what-if gives no other"),
    SCOPE_TEXT("activations", 0, "FORMAT", NULL, "format of activations of every row"),
    OFFLOAD_OPTIONS,
    LORA_OPTIONS,
    TOWERS_OPTION,
    {.name = "context",
     .letter = 'c',
     .kind = OPTION_TEXT,
     .value = "N",
     .fallback = "1024",
     .group = "Workload",
     .help = "tokens of a sequence"},
    SCOPE_TEXT("source", 0, "N", NULL,
               "of the encoder-decoders: tokens that the encoder reads (default: as many as the file says)"),
    SCOPE_TEXT("block", 0, "N", NULL,
               "of the diffusion models: tokens of a block, those before it cached (default: the model's; else whole "
               "sequences)"),
    SCOPE_TEXT("steps", 0, "N", NULL, "of the diffusion models: passes that settle a block (default: one a token)"),
    SCOPE_TEXT("batch", 'b', "N", "1", "sequences that memory is shown for; a row that they do not fit has no times"),
    SCOPE_TEXT("tpot", 0, "TIME", NULL, "the largest batch is one whose decode step takes at most this: 50ms"),
    SCOPE_TEXT("ttft", 0, "TIME", NULL, "the same of a prompt's prefill"),
    {.name = "fidelity",
     .kind = OPTION_TEXT,
     .value = "bound|roofline",
     .fallback = "roofline",
     .group = "How it is counted",
     .help = "roofline: every operator at its own limit, in sequence; bound: all work pooled"},
    {.name = "course",
     .kind = OPTION_FLAG,
     .help = "the conventions and constants of CS336 lecture 10 (ridge list conventions)"},
    OPTION_FORMAT("text, md, csv, json or jsonl"),
    OPTION_FILE("output", 'o', "write to a file, complete or not at all"),
    SCOPE_TEXT("columns", 0, "KEY,...", NULL, "these columns, in this order (ridge list columns)"),
    SCOPE_TEXT("scenario", 0, "FILE", NULL, "options from a JSON object, or from a result that ridge wrote as JSON"),
};

enum { BATCH_MAX = 1 << 24, TOKENS_MAX = 1 << 30, NOTES_MAX = 64 };

/* Everything that one run holds. */
struct comparison {
    struct arena *arena;
    struct compare_request request;
    const char **models;
    struct compare_variant *variant;
    struct estimate_case *cases; /* of the rows */
    struct compare_row *rows;
    size_t models_n, variants_n, rows_n;
    bool capped;       /* a model allows no context as long as the default */
    bool nothing_left; /* none of a preset's changes could be made */
};

/* ---- the request ---- */

static enum err_code count_of(struct arena *a, const struct option_values *v, const char *name, int64_t most,
                              const int64_t **out, struct err *e)
{
    int64_t *n = arena_array(a, 1, sizeof *n);
    if (!n) return err_nomem(e);
    *out = n;
    return option_count(v, name, 1, most, n, e);
}

static enum err_code time_of(const struct option_values *v, const char *name, double *out, struct err *e)
{
    *out = (double)NAN;
    return option_time(v, name, out, e);
}

static enum err_code read_request(struct arena *a, const struct option_values *v, struct compare_request *out,
                                  struct err *e)
{
    struct compare_request q = {.gpu = option_get(v, "gpu")};
    struct estimate_request *m = &q.estimate;
    const char *fidelity = option_get(v, "fidelity");
    *m = (struct estimate_request){.options = v, .batch_n = 1, .context_n = 1, .block_tokens = 16};
    if (v->operands_n)
        return err_set(e, ERR_USAGE, "compare: '%.60s' belongs to no option (models go after -m)", v->operands[0]);
    if (!q.gpu) return err_set(e, ERR_USAGE, "compare: which device? -g NAME (ridge list hardware)");
    if (strchr(q.gpu, ',')) return err_set(e, ERR_USAGE, "compare: one device; give -g NAME once");
    if (strcmp(fidelity, "roofline") != 0 && strcmp(fidelity, "bound") != 0)
        return err_set(e, ERR_USAGE, "--fidelity is bound or roofline, not '%.40s'", fidelity);
    TRY(scope_settings(a, option_get(v, "set"), &m->set, &m->set_n, e));
    if (option_get(v, "tp") &&
        units_parse_count(option_get(v, "tp"), 1, 4096, &m->layout.layout.tp, e) != ERR_OK) /* not a unit */
        return err_prepend(e, "--tp: ");
    TRY(count_of(a, v, "batch", BATCH_MAX, &m->batch, e));
    TRY(count_of(a, v, "context", TOKENS_MAX, &m->context, e));
    TRY(time_of(v, "tpot", &q.tpot_s, e));
    TRY(time_of(v, "ttft", &q.ttft_s, e));
    TRY(option_count(v, "block", 1, 1 << 20, &m->diffusion_block, e));
    TRY(option_count(v, "steps", 1, 1 << 20, &m->steps, e));
    m->compared = true;
    TRY(option_count(v, "source", 1, TOKENS_MAX, &m->source_tokens, e));
    m->weights = option_get(v, "weights");
    m->kv = option_get(v, "kv");
    m->activations = option_get(v, "activations");
    TRY(offload_options_parse(v, &m->offload, e));
    TRY(lora_options_parse(v, 0, &m->adapters, e));
    m->towerless = option_get(v, "no-towers") != NULL;
    m->course = option_get(v, "course") != NULL;
    m->conventions = cost_conventions_of(m->course);
    m->fidelity =
        strcmp(fidelity, "bound") == 0 || (m->course && !option_given(v, "fidelity")) ? STEP_BOUND : STEP_ROOFLINE;
    TRY(estimate_conventions_text(a, m, e));
    *out = q;
    return ERR_OK;
}

/* ---- the rows to be ---- */

/* A row `own` of a model; with several models a table for people sets it in below the model's own row, and elsewhere it
 * names the model. */
static enum err_code add(struct comparison *k, const char *own, const char *model, const char *what_if, struct err *e)
{
    const bool several = k->models_n > 1 && own != model;
    const char *label = several ? arena_printf(k->arena, "%s %s", model, own) : own;
    const char *under = several ? arena_printf(k->arena, "  %s", own) : own;
    if (!label || !under) return err_nomem(e);
    k->variant[k->variants_n++] =
        (struct compare_variant){.label = label, .under = under, .model = model, .what_if = what_if};
    return ERR_OK;
}

static enum err_code add_preset(struct comparison *k, const struct preset *p, const char *model, struct err *e)
{
    for (size_t i = 0; i < p->variants_n; i++) {
        const struct preset_variant *v = &p->variant[i];
        const char *own = v->name ? v->name : v->what_if ? v->what_if : v->model;
        TRY(add(k, own, v->model ? v->model : model, v->what_if, e));
        struct compare_variant *to = &k->variant[k->variants_n - 1];
        to->says = v->says;
        to->source = v->source;
        to->optional = !v->model;
    }
    return ERR_OK;
}

/* Presets by name; one that brings models of its own stands alone. */
static enum err_code read_presets(struct comparison *k, const struct option_values *v, struct preset **out, size_t *n,
                                  struct err *e)
{
    const char **names = NULL;
    *n = 0;
    if (option_get(v, "preset")) TRY(scope_list(k->arena, option_get(v, "preset"), "--preset", &names, n, e));
    *out = arena_array(k->arena, *n + 1, sizeof **out);
    if (!*out) return err_nomem(e);
    for (size_t i = 0; i < *n; i++) {
        for (size_t other = 0; other < i; other++)
            if (strcmp(names[other], names[i]) == 0)
                return err_set(e, ERR_USAGE, "--preset: '%.60s' is given twice", names[i]);
        TRY(preset_load(k->arena, names[i], &(*out)[i], e));
        const struct preset *p = &(*out)[i];
        if (p->model && option_get(v, "model"))
            return err_set(e, ERR_USAGE, "--preset %s compares models of its own: leave -m out", p->name);
        if (p->model && *n > 1)
            return err_set(e, ERR_USAGE, "--preset %s compares models of its own: leave the other presets out",
                           p->name);
    }
    return ERR_OK;
}

/* Each model as it is, then its changes, then those of the preset. */
static enum err_code read_variants(struct comparison *k, const struct option_values *v, struct err *e)
{
    struct arena *a = k->arena;
    struct preset *preset;
    size_t presets_n, rows = 0;
    const char **changes = NULL;
    size_t changes_n = 0;
    TRY(read_presets(k, v, &preset, &presets_n, e));
    for (size_t i = 0; i < presets_n; i++) rows += preset[i].variants_n;
    const char *models = presets_n == 1 && preset[0].model ? preset[0].model : option_get(v, "model");
    if (!models) return err_set(e, ERR_USAGE, "compare: which models? -m NAME,... (ridge list models)");
    TRY(scope_list(a, models, "-m", &k->models, &k->models_n, e));
    if (option_get(v, "what-if")) TRY(scope_list(a, option_get(v, "what-if"), "--what-if", &changes, &changes_n, e));
    for (size_t i = 0; i < changes_n; i++) TRY(whatif_check(a, changes[i], e));
    k->variant = arena_array(a, k->models_n * (1 + changes_n + rows), sizeof *k->variant);
    if (!k->variant) return err_nomem(e);
    for (size_t m = 0; m < k->models_n; m++) {
        TRY(add(k, k->models[m], k->models[m], NULL, e));
        for (size_t i = 0; i < changes_n; i++) {
            TRY(add(k, changes[i], k->models[m], changes[i], e));
            k->variant[k->variants_n - 1].typed = i + 1;
        }
        for (size_t i = 0; i < presets_n; i++) TRY(add_preset(k, &preset[i], k->models[m], e));
    }
    return ERR_OK;
}

/* A row of a model as it is has the name that its file gives it, where no earlier row has that. */
static enum err_code name_row(struct comparison *k, struct compare_variant *v, const struct estimate_case *c,
                              const char **base, struct err *e)
{
    if (!v->what_if && v->label == v->model) {
        *base = c->model.name;
        for (size_t i = 0; i < k->rows_n; i++)
            if (strcmp(k->rows[i].variant, *base) == 0) *base = v->model;
        v->label = v->under = *base;
        return ERR_OK;
    }
    if (k->models_n < 2 || !v->what_if || strcmp(*base, v->model) == 0) return ERR_OK;
    v->label = arena_printf(k->arena, "%s %s", *base, v->under + strspn(v->under, " "));
    return v->label ? ERR_OK : err_nomem(e);
}

/* A change that was typed is of one model at least. */
static enum err_code check_typed(const struct comparison *k, struct err *e)
{
    for (size_t i = 0; i < k->variants_n; i++) {
        const struct compare_variant *v = &k->variant[i];
        bool any = !v->typed;
        for (size_t j = 0; j < k->variants_n && !any; j++)
            any = k->variant[j].typed == v->typed && !k->variant[j].left_out_because;
        if (!any) return err_set(e, ERR_USAGE, "%s: %s", v->model, v->left_out_because);
    }
    return ERR_OK;
}

/* The default context of all rows: no longer than the file of any model allows. */
static enum err_code cap_context(struct comparison *k, struct err *e)
{
    struct estimate_request *q = &k->request.estimate;
    int64_t *context = arena_array(k->arena, 1, sizeof *context);
    if (!context) return err_nomem(e);
    *context = q->context[0];
    for (size_t i = 0; i < k->variants_n && !option_given(q->options, "context"); i++) {
        struct model m;
        if (k->variant[i].what_if) continue;
        TRY(model_load(k->arena, k->variant[i].model, q->set, q->set_n, &m, e));
        const int64_t most = model_context_limit(&m);
        if (most > 0 && most < *context) *context = most;
    }
    k->capped = *context < q->context[0];
    q->context = context;
    return ERR_OK;
}

/* Of several models, one that has no positions as far as the context: it has no row, the others have theirs. */
static enum err_code out_of_positions(struct comparison *k, const struct compare_variant *v, bool *out, struct err *e)
{
    const struct estimate_request *q = &k->request.estimate;
    struct model m;
    *out = false;
    if (k->models_n < 2 || v->what_if) return ERR_OK;
    TRY(model_load(k->arena, v->model, q->set, q->set_n, &m, e));
    *out = model_check_context(&m, q->context[0], NULL) == ERR_USAGE;
    return ERR_OK;
}

/* Why a variant has no row: without the model's name in front, which its note begins with. */
static enum err_code leave_out(struct comparison *k, struct compare_variant *v, const char *because, struct err *e)
{
    const size_t name = strlen(v->label);
    if (strncmp(because, v->label, name) == 0 && strncmp(because + name, ": ", 2) == 0) because += name + 2;
    v->left_out_because = arena_strndup(k->arena, because, strlen(because));
    return v->left_out_because ? ERR_OK : err_nomem(e);
}

static enum err_code fill_rows(struct comparison *k, struct err *e)
{
    k->cases = arena_array(k->arena, k->variants_n, sizeof *k->cases);
    k->rows = arena_array(k->arena, k->variants_n, sizeof *k->rows);
    if (!k->cases || !k->rows) return err_nomem(e);
    size_t base = 0, changes = 0, optional = 0, unsplit = 0;
    struct err first = {.code = ERR_OK}, refused = {.code = ERR_OK};
    const char *named = "";
    for (size_t i = 0; i < k->variants_n; i++) {
        struct compare_variant *v = &k->variant[i];
        optional += v->optional;
        struct estimate_case *c = &k->cases[k->rows_n];
        struct err own = {.code = ERR_OK};
        const enum err_code code = compare_open(k->arena, &k->request, v, c, &own);
        bool short_of = false;
        if (code == ERR_USAGE) TRY(out_of_positions(k, v, &short_of, e));
        if (code == ERR_USAGE && (short_of || v->optional || (v->typed && k->models_n > 1))) {
            TRY(leave_out(k, v, own.text, e));
            if (refused.code == ERR_OK) refused = own;
            continue;
        }
        if (code != ERR_OK && (!c->unsplit || k->variants_n == 1)) return err_set(e, code, "%s", own.text);
        if (code != ERR_OK && unsplit++ == 0) first = own;
        struct compare_row *row = &k->rows[k->rows_n];
        TRY(name_row(k, v, c, &named, e));
        TRY((c->unsplit ? compare_unsplit : compare_fill)(k->arena, &k->request, v, c, row, e));
        if (!v->what_if) base = k->rows_n;
        if (v->optional && v->what_if && model_same(&c->model, &k->cases[base].model)) {
            v->left_out_because = "the model has it already";
            continue;
        }
        if (v->optional && row->kv_bytes_per_sequence > k->rows[base].kv_bytes_per_sequence) {
            v->left_out_because = "its cache would be larger than the model's own";
            continue;
        }
        changes += v->optional;
        k->rows_n++;
    }
    if (k->rows_n == 0 && refused.code != ERR_OK) return err_set(e, refused.code, "%s", refused.text);
    if (unsplit > 0 && unsplit == k->rows_n) return err_set(e, first.code, "%s", first.text);
    TRY(check_typed(k, e));
    bool diffuses = false;
    for (size_t i = 0; i < k->rows_n; i++) diffuses = diffuses || k->cases[i].model.diffusion;
    if ((k->request.estimate.diffusion_block || k->request.estimate.steps) && !diffuses)
        return err_set(e, ERR_USAGE, "--block and --steps are of diffusion models, and no row is of one");
    compare_ratios(k->rows, k->rows_n);
    k->nothing_left = optional > 0 && changes == 0;
    return ERR_OK;
}

/* ---- output ---- */

static void put_wrapped(struct out *o, size_t indent, const char *text)
{
    out_printf(o, "%*s", (int)indent, "");
    option_wrap(o, text, indent, indent + 2);
}

static enum err_code write_heading(struct comparison *k, struct out *o, struct err *e)
{
    const struct estimate_case *c = &k->cases[0];
    const struct estimate_request *q = &k->request.estimate;
    const struct model *m = &c->model;
    char name[96], device[96], count[32] = "", capacity[UNITS_TEXT_MAX];
    if (c->gpus > 1) (void)snprintf(count, sizeof count, "%lld x ", (long long)c->gpus);
    const char *line =
        arena_printf(k->arena, "%s%s on %s%s, context %lld", text_clean(name, sizeof name, m->name, strlen(m->name)),
                     k->rows_n > 1 ? " and others" : "", count,
                     text_clean(device, sizeof device, c->hw.name, strlen(c->hw.name)), (long long)q->context[0]);
    if (!line) return err_nomem(e);
    put_wrapped(o, 0, line);
    line = arena_printf(k->arena,
                        "fidelity %s (a floor: servers are 2-4x slower), conventions %s; capacity %s%s; times are of "
                        "the largest batch that fits%s, ratios to the first row",
                        step_fidelity_name(q->fidelity), q->conventions_text,
                        units_format_bytes(capacity, c->capacity_bytes), c->gpus > 1 ? " per GPU" : "",
                        isnan(k->request.tpot_s) && isnan(k->request.ttft_s) ? "" : " in memory and promised times");
    if (!line) return err_nomem(e);
    put_wrapped(o, 2, line);
    if (k->capped)
        put_wrapped(o, 2, "note: the default context is 1024, and the file of a model here allows no more than this");
    out_char(o, '\n');
    return ERR_OK;
}

/* Whether an earlier row, of another model, comes with the same words. */
static bool said_before(const struct comparison *k, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (!k->variant[i].left_out_because && k->variant[i].says == k->variant[at].says) return true;
    return false;
}

/* What a step of a diffusion model is, and what it keeps. */
static const char *diffusion_note(struct arena *a, const struct estimate_case *c, const char *row)
{
    const struct estimate_diffusion *d = &c->diffusion;
    if (d->block_tokens == 0)
        return arena_printf(a, "%s: diffusion over the whole sequence: no cache, and a step is a pass over the context",
                            row);
    return arena_printf(a, "%s: diffusion in blocks of %lld tokens: a step is a pass over one, of %lld that settle it",
                        row, (long long)d->block_tokens, (long long)(d->steps ? d->steps : d->block_tokens));
}

/* What is said of the variants, and why some have no row. */
static enum err_code make_notes(struct comparison *k, const char ***out, size_t *n, struct err *e)
{
    const char **notes = arena_array(k->arena, 3 * k->variants_n, sizeof *notes);
    if (!notes) return err_nomem(e);
    *n = 0;
    for (size_t i = 0; i < k->rows_n; i++) {
        if (!k->cases[i].model.diffusion || k->rows[i].what_if) continue;
        notes[*n] = diffusion_note(k->arena, &k->cases[i], k->rows[i].variant);
        if (!notes[(*n)++]) return err_nomem(e);
    }
    const char *of_model = ""; /* notes of the model's file, which its changes repeat */
    for (size_t i = 0; i < k->rows_n; i++) {
        const struct compare_row *r = &k->rows[i];
        const char *more = r->notes ? r->notes : "";
        const size_t known = strlen(of_model);
        if (r->what_if && strncmp(more, of_model, known) == 0) more += known + (known > 0 && more[known] ? 2 : 0);
        if (!r->what_if) of_model = more;
        if (!*more) continue;
        notes[*n] = arena_printf(k->arena, "%s: %s", r->variant, more);
        if (!notes[(*n)++]) return err_nomem(e);
    }
    for (size_t i = 0; i < k->variants_n; i++) {
        const struct compare_variant *v = &k->variant[i];
        const bool named = v->what_if && !v->typed && strcmp(v->what_if, v->label) != 0;
        if (!v->left_out_because && (!v->says || said_before(k, i))) continue;
        notes[*n] = arena_printf(
            k->arena, "%s%s%s%s: %s%s%s%s", v->label, named ? " (" : "", named ? v->what_if : "", named ? ")" : "",
            v->left_out_because ? "left out, " : "", v->left_out_because ? v->left_out_because : v->says,
            v->source && !v->left_out_because ? " -- " : "", v->source && !v->left_out_because ? v->source : "");
        if (!notes[*n]) return err_nomem(e);
        (*n)++;
    }
    *out = notes;
    return ERR_OK;
}

/* Columns of a table for people: as many as a terminal has room for, with the one that tells these rows apart best. */
static const char *text_columns(const struct comparison *k)
{
    bool active = false, state = false;
    for (size_t i = 0; i < k->rows_n; i++) {
        active = active || k->rows[i].active_params < k->rows[i].total_params;
        state = state || k->rows[i].state_bytes_per_sequence > 0;
    }
    return arena_printf(k->arena,
                        "variant,total_params,%s,kv_bytes_per_sequence,kv_ratio,max_batch,max_batch_ratio,"
                        "decode_step_s,throughput_tok_per_s,throughput_ratio",
                        k->request.estimate.batch[0] > 1 ? "memory_bytes"
                        : state                          ? "state_bytes_per_sequence"
                        : active                         ? "active_params"
                                                         : "weight_bytes");
}

/* Labels that a narrow table would cut to the same text get numbers, and a legend under it: legend[i], NULL none. */
static enum err_code number_rows(struct comparison *k, const char **legend, struct err *e)
{
    enum { CUT = 11 }; /* columns that the narrowest string column shows of a longer one */
    struct compare_row *r = k->rows;
    for (size_t i = 0; i < k->rows_n; i++) {
        bool alike = false;
        for (size_t j = 0; j < k->rows_n && strlen(r[i].under) > CUT + 3; j++)
            alike = alike || (strlen(r[j].under) > CUT + 3 && strncmp(r[i].under, r[j].under, CUT) == 0 &&
                              strcmp(r[i].under, r[j].under) != 0);
        if (!alike) continue;
        const char *own = r[i].under + strspn(r[i].under, " ");
        r[i].variant = arena_printf(k->arena, "%.*s[%zu] %s", (int)(own - r[i].under), r[i].under, i + 1, own);
        legend[i] = arena_printf(k->arena, "[%zu] %s", i + 1, own);
        if (!r[i].variant || !legend[i]) return err_nomem(e);
    }
    return ERR_OK;
}

static enum err_code write_all(struct comparison *k, const struct option_values *v, enum table_format format,
                               struct out *o, struct err *e)
{
    const char *columns = option_get(v, "columns");
    const char **notes = NULL;
    struct table t = {.rows = k->rows,
                      .n_rows = k->rows_n,
                      .stride_bytes = sizeof *k->rows,
                      .schema = "ridge.compare.1",
                      .tool = commands_tool(),
                      .scenario_json = option_scenario_json(k->arena, v)};
    t.columns = compare_columns(&t.n_columns);
    TRY(make_notes(k, &notes, &t.n_notes, e));
    if (!columns && format == TABLE_TEXT) columns = text_columns(k);
    if (!columns && format == TABLE_TEXT) return err_nomem(e);
    if (columns && table_select(k->arena, &t, columns, &t, e) != ERR_OK) return commands_no_column(e);
    if (format != TABLE_TEXT) {
        t.notes = notes;
        return table_write(&t, format, o, e);
    }
    const size_t notes_n = t.n_notes;
    t.n_notes = 0;
    TRY(write_heading(k, o, e));
    const char **legend = arena_array(k->arena, k->rows_n, sizeof *legend);
    if (!legend) return err_nomem(e);
    for (size_t i = 0; i < k->rows_n; i++) k->rows[i].variant = k->rows[i].under;
    TRY(number_rows(k, legend, e));
    TRY(table_write(&t, format, o, e));
    for (size_t i = 0, any = 0; i < k->rows_n; i++) {
        if (!legend[i]) continue;
        if (!any++) out_char(o, '\n');
        put_wrapped(o, 0, legend[i]);
    }
    if (notes_n) out_char(o, '\n');
    for (size_t i = 0; i < notes_n; i++) {
        char *clean = arena_alloc(k->arena, strlen(notes[i]) + 8);
        if (!clean) return err_nomem(e);
        put_wrapped(o, 0, text_clean(clean, strlen(notes[i]) + 8, notes[i], strlen(notes[i])));
    }
    return ERR_OK;
}

/* ---- the command ---- */

/* No row that fits is a no. */
static enum err_code judge(const struct comparison *k, struct err *e)
{
    char need[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX];
    const struct compare_row *least = &k->rows[0];
    if (k->nothing_left) return err_set(e, ERR_NO, "no model here can be changed in any way of the preset");
    for (size_t i = 0; i < k->rows_n; i++) {
        if (k->rows[i].fits && k->rows[i].max_batch > 0) return ERR_OK;
        if (isnan(least->memory_bytes) || k->rows[i].memory_bytes < least->memory_bytes) least = &k->rows[i];
    }
    if (least->fits) return err_set(e, ERR_NO, "no row keeps the promised times, not even at batch 1");
    return err_set(e, ERR_NO, "no row fits: the smallest needs %s of the %s of one GPU",
                   units_format_bytes(need, least->memory_bytes), units_format_bytes(have, least->capacity_bytes));
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct comparison k = {.arena = a};
    enum table_format format;
    struct out *o;
    TRY(option_parse(a, c, argc, argv, &v, e));
    if (table_format_parse(option_get(&v, "format"), &format, e) != ERR_OK) return err_prepend(e, "--format: ");
    TRY(read_request(a, &v, &k.request, e));
    TRY(read_variants(&k, &v, e));
    TRY(cap_context(&k, e));
    TRY(fill_rows(&k, e));
    TRY(out_open(a, option_get(&v, "output"), &o, e));
    TRY(write_all(&k, &v, format, o, e));
    TRY(out_commit(o, e));
    return judge(&k, e);
}

const struct command command_compare = {
    .name = "compare",
    .summary = "Models, or changes of a model, side by side: cache, largest batch, throughput.",
    .usage = "-m MODEL,... -g DEVICE [--what-if CHANGE]... [--preset NAME] [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge compare -m llama-2-13b,llama-3.1-8b -g h100-sxm -c 8Ki\n"
                "  ridge compare -m llama-2-13b -g h100-sxm --what-if gqa=8 --what-if gqa=8+kv=fp8\n"
                "  ridge compare -m llama-2-13b -g h100-sxm -c 32Ki --preset slim\n"
                "  ridge compare --preset prune -g h100-sxm\n",
    .run = run,
};
