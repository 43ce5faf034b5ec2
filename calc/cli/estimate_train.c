/* estimate_train -- training runs in `ridge estimate`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/estimate_output.h"

enum { DAY_S = 86400, HOUR_S = 3600 };

/* ---- options ---- */

static enum err_code parse_frac(const char *text, double *out, struct err *e)
{
    char *end;
    *out = strtod(text, &end);
    if (end != text && *end == '\0' && *out > 0 && *out <= 1) return ERR_OK;
    return err_set(e, ERR_USAGE, "--mfu is a part of the peak, above 0 and at most 1, not '%.40s'", text);
}

static enum err_code parse_training(const struct option_values *v, struct estimate_training *t, struct err *e)
{
    static const char *const WHAT[] = {"attention", "none", "layers"};
    int64_t n;
    const char *recompute = option_get(v, "recompute");
    if (units_parse_count(option_get(v, "train"), 1, INT64_MAX, &n, e) != ERR_OK) return err_prepend(e, "--train: ");
    t->tokens = (double)n;
    if (option_get(v, "mfu")) TRY(parse_frac(option_get(v, "mfu"), &t->mfu, e));
    if (option_get(v, "params")) {
        if (units_parse_count(option_get(v, "params"), 1, INT64_MAX, &n, e) != ERR_OK)
            return err_prepend(e, "--params: ");
        t->params = (double)n;
    }
    t->recipe = train_recipe_find(option_get(v, "optimizer"));
    if (!t->recipe)
        return err_set(e, ERR_USAGE,
                       "--optimizer is adamw, adamw-fp32-grad, adamw-fp32, adamw-bf16, adamw-8bit, momentum or sgd, "
                       "not '%.40s'",
                       option_get(v, "optimizer"));
    if (units_parse_count(option_get(v, "zero"), 0, 3, &t->zero, e) != ERR_OK) return err_prepend(e, "--zero: ");
    for (size_t i = 0; i < sizeof WHAT / sizeof WHAT[0]; i++)
        if (strcmp(recompute, WHAT[i]) == 0) {
            t->recompute = (enum train_recompute)i;
            return ERR_OK;
        }
    return err_set(e, ERR_USAGE, "--recompute is attention, layers or none, not '%.40s'", recompute);
}

/* A run is in the precision of its recipe: formats of weights and caches are those of serving. */
static enum err_code refuse_formats(const struct option_values *v, struct err *e)
{
    static const char *const FORMATS[] = {"weights", "kv"};
    const char *what_if = option_get(v, "what-if");
    if (option_get(v, "cpu-offload-gb"))
        return err_set(e, ERR_USAGE,
                       "--cpu-offload-gb is about serving: a run whose weights are at the host is not described");
    if (option_get(v, "weights"))
        return err_set(e, ERR_USAGE,
                       "--weights is about serving: --optimizer says what is trained in (--activations fp16, fp32)");
    for (const char *p = what_if; p && *p;) {
        const size_t n = strcspn(p, ",");
        for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
            const size_t len = strlen(FORMATS[i]);
            if (n > len && strncmp(p, FORMATS[i], len) == 0 && p[len] == '=')
                return err_set(e, ERR_USAGE,
                               "--what-if %s= is about serving: --optimizer says what is trained in (--activations "
                               "fp16, fp32)",
                               FORMATS[i]);
        }
        p += n + (p[n] == ',');
    }
    return ERR_OK;
}

/* Options that a run has no use for, by the reason. */
static enum err_code refuse_others(const struct option_values *v, struct err *e)
{
    static const struct {
        const char *why, *option[11];
    } NOT[] = {
        {"is about serving; it cannot stand beside --train",
         {"prompt", "workload", "mix", "chunk", "draft", "kv", "block", "steps", "lora", "max-loras"}},
        {"is a switch of how serving is counted; training is counted without it (--train)", {"fuse", "like", "latent"}},
        {"is of messages, and training is counted by the bytes that links carry; it cannot stand beside --train",
         {"latency", "fabric-latency"}},
        {"shows parts of serving; --train answers with one row for each step (--columns adds to it)",
         {"by-op", "only", "plot"}},
    };
    for (size_t i = 0; i < sizeof NOT / sizeof NOT[0]; i++)
        for (size_t k = 0; NOT[i].option[k]; k++)
            if (option_given(v, NOT[i].option[k]))
                return err_set(e, ERR_USAGE, "--%s %s", NOT[i].option[k], NOT[i].why);
    return ERR_OK;
}

enum err_code estimate_train_parse(const struct option_values *v, struct estimate_request *q, struct err *e)
{
    static const char *const OWN[] = {"mfu", "params", "optimizer", "zero", "recompute"};
    struct estimate_training *t = &q->training;
    *t = (struct estimate_training){.mfu = 1, .params = (double)NAN};
    if (!option_get(v, "train")) {
        for (size_t i = 0; i < sizeof OWN / sizeof OWN[0]; i++)
            if (option_given(v, OWN[i]))
                return err_set(e, ERR_USAGE, "--%s is about training: over how many tokens? --train 15e12", OWN[i]);
        return ERR_OK;
    }
    TRY(refuse_others(v, e));
    if (q->engine) return err_set(e, ERR_USAGE, "--train has no engine; its flags are about serving");
    if (q->calibrated || (q->fidelity == STEP_BOUND && option_given(v, "fidelity")))
        return err_set(e, ERR_USAGE, "--train is counted by floors of operators (--fidelity roofline)");
    q->fidelity = STEP_ROOFLINE;
    TRY(refuse_formats(v, e));
    if (!q->layout.layout.tp) q->layout.layout.tp = 1;
    return parse_training(v, t, e);
}

/* ---- rows ---- */

struct train_row {
    const char *model, *hardware, *fidelity, *conventions, *optimizer, *recompute, *marked, *notes;
    int64_t gpus, tp, copies, zero, batch, context;
    double total_params, active_params, train_tokens, train_flops, exact_flops;
    double mfu, peak_flops_per_s, train_s, train_days, gpu_hours, exact_days;
    double step_tokens, steps, step_s, forward_s, backward_s, update_s, reduce_s, mfu_ceiling, exact_mfu_ceiling,
        floor_days;
    double param_bytes, grad_bytes, optimizer_bytes, activation_bytes, memory_bytes, capacity_bytes, left_bytes;
    bool fits;
};

#define ROW(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct train_row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

static const struct column COLUMNS[] = {
    ROW(model, STRING, NONE, 0, "model", "the model"),
    ROW(hardware, STRING, NONE, 0, "device", "the device"),
    ROW(gpus, INT, COUNT, 0, "GPUs", "devices in all"),
    ROW(tp, INT, COUNT, 0, "TP", "tensor-parallel ranks that share one copy of the model"),
    ROW(copies, INT, COUNT, 0, "copies", "data-parallel copies of the model"),
    ROW(fidelity, STRING, NONE, 0, "fidelity", "roofline: a floor"),
    ROW(conventions, STRING, NONE, 0, "conventions", "those that differ from the defaults"),
    ROW(optimizer, STRING, NONE, 0, "optimizer", "precision and optimizer"),
    ROW(zero, INT, COUNT, 0, "ZeRO", "stage: 1 optimizer state split over copies, 2 gradients too, 3 parameters too"),
    ROW(recompute, STRING, NONE, 0, "recompute", "what the backward pass computes anew"),
    ROW(batch, INT, COUNT, COLUMN_SHOWN, "batch", "sequences of one copy in a step"),
    ROW(context, INT, COUNT, COLUMN_SHOWN, "context", "tokens of a sequence"),
    ROW(total_params, COUNT, COUNT, 0, "parameters", "stored parameters"),
    ROW(active_params, COUNT, COUNT, 0, "active", "parameters that flops are counted by: of one token, or --params"),
    ROW(train_tokens, COUNT, COUNT, 0, "tokens", "of the run"),
    ROW(train_flops, COUNT, FLOPS, 0, "flops", "6 * active_params * tokens"),
    ROW(exact_flops, COUNT, FLOPS, 0, "exact flops",
        "matrix flops of the run, attention and head counted, no embedding"),
    ROW(mfu, REAL, FRAC, 0, "MFU", "part of the peak that the run is taken to reach, by train_flops"),
    ROW(peak_flops_per_s, REAL, FLOPS_PER_S, 0, "peak", "of one device, dense, in the format of activations"),
    ROW(train_s, REAL, SECONDS, 0, "run", "train_flops / (GPUs * peak * MFU)"),
    ROW(train_days, REAL, RATIO, COLUMN_SHOWN, "days", "the same in days"),
    ROW(exact_days, REAL, RATIO, 0, "exact days", "exact_flops / (GPUs * peak * MFU) in days"),
    ROW(gpu_hours, COUNT, COUNT, 0, "GPU hours", "GPUs * run in hours"),
    ROW(floor_days, REAL, RATIO, 0, "floor days", "steps * step_s in days: what this step's floor allows"),
    ROW(step_tokens, COUNT, COUNT, 0, "step", "tokens of a step of all copies"),
    ROW(steps, COUNT, COUNT, 0, "steps", "of the run"),
    ROW(step_s, REAL, SECONDS, COLUMN_SHOWN, "step", "forward + backward + update + reduce, a floor"),
    ROW(forward_s, REAL, SECONDS, 0, "forward", "operators at their own limits"),
    ROW(backward_s, REAL, SECONDS, 0, "backward", "twice that, and what is computed anew"),
    ROW(update_s, REAL, SECONDS, 0, "update", "bytes of gradients, state and parameters at full bandwidth"),
    ROW(reduce_s, REAL, SECONDS, 0, "reduce",
        "gradients summed over copies, parameters gathered; unknown where no fabric is known"),
    ROW(mfu_ceiling, REAL, FRAC, COLUMN_SHOWN, "MFU <",
        "6 * active_params * step_tokens over the step's floor and the peak: days at a higher MFU cannot be"),
    ROW(exact_mfu_ceiling, REAL, FRAC, 0, "exact MFU <", "the same of exact flops"),
    ROW(param_bytes, COUNT, BYTES, COLUMN_SHOWN, "params", "parameters on one GPU"),
    ROW(grad_bytes, COUNT, BYTES, COLUMN_SHOWN, "grads", "gradients on one GPU"),
    ROW(optimizer_bytes, COUNT, BYTES, COLUMN_SHOWN, "optim.", "moments and master copy on one GPU"),
    ROW(activation_bytes, COUNT, BYTES, COLUMN_SHOWN, "act.", "kept for the backward pass on one GPU"),
    ROW(memory_bytes, COUNT, BYTES, COLUMN_SHOWN, "total", "all four"),
    ROW(capacity_bytes, COUNT, BYTES, 0, "capacity", "usable memory of one GPU"),
    ROW(left_bytes, COUNT, BYTES, 0, "left", "capacity - total; negative: so much is missing"),
    ROW(fits, BOOL, NONE, COLUMN_SHOWN, "fits", "total within capacity"),
    ROW(marked, STRING, NONE, 0, "marked", "\"does not fit\" where times are shown all the same"),
    ROW(notes, STRING, NONE, 0, "notes", "what of the model's files is not counted, assumed or contradicted"),
};

const struct column *estimate_train_columns(size_t *n)
{
    *n = sizeof COLUMNS / sizeof COLUMNS[0];
    return COLUMNS;
}

static void hide(struct train_row *r)
{
    const double no = (double)NAN;
    r->train_s = r->train_days = r->exact_days = r->gpu_hours = no;
    r->step_s = r->forward_s = r->backward_s = r->update_s = r->reduce_s = r->mfu_ceiling = no;
    r->exact_mfu_ceiling = r->floor_days = no;
}

/* What a row contradicts or lacks, behind the model's own notes. */
static const char *notes_of(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                            const struct train_row *r)
{
    const char *all = c->model.notes;
    const char *const join = all ? "; " : "";
    if (!all) all = "";
    if (isnan(r->step_s) && !isnan(r->train_s))
        return arena_printf(a, "%s%sno fabric between nodes is known, so steps are not timed (--fabric)", all, join);
    if (r->mfu > r->mfu_ceiling && option_given(q->options, "mfu"))
        return arena_printf(
            a,
            "%s%san MFU of %.3g is above the %.3g that steps of batch %lld and context %lld allow: at least "
            "%.1f days",
            all, join, r->mfu, r->mfu_ceiling, (long long)r->batch, (long long)r->context, r->floor_days);
    return c->model.notes;
}

static struct train_row fill_row(struct arena *a, const struct estimate_request *q, const struct estimate_case *c,
                                 struct train_plan *p, int64_t batch, int64_t context)
{
    const struct estimate_training *t = &q->training;
    struct train_step s;
    train_eval(p, (double)batch, (double)context, &s);
    struct train_row r = {.model = c->model.name,
                          .hardware = c->hw.key,
                          .fidelity = estimate_fidelity_name(q),
                          .conventions = q->conventions_text,
                          .optimizer = t->recipe->name,
                          .recompute = option_get(q->options, "recompute"),
                          .gpus = c->gpus,
                          .tp = c->tp,
                          .copies = c->replicas,
                          .zero = t->zero,
                          .batch = batch,
                          .context = context,
                          .total_params = c->params.total,
                          .active_params = isnan(t->params) ? c->params.active : t->params,
                          .train_tokens = t->tokens,
                          .mfu = t->mfu,
                          .peak_flops_per_s = train_peak(p),
                          .step_tokens = s.tokens,
                          .step_s = s.step_s,
                          .forward_s = s.forward_s,
                          .backward_s = s.backward_s,
                          .update_s = s.update_s,
                          .reduce_s = s.reduce_s,
                          .exact_mfu_ceiling = s.mfu,
                          .param_bytes = s.memory.param_bytes,
                          .grad_bytes = s.memory.grad_bytes,
                          .optimizer_bytes = s.memory.state_bytes,
                          .activation_bytes = s.activation_bytes,
                          .memory_bytes = s.memory_bytes,
                          .capacity_bytes = c->capacity_bytes,
                          .left_bytes = c->capacity_bytes - s.memory_bytes};
    r.train_flops = train_flops(r.active_params, t->tokens);
    r.exact_flops = s.flops / s.tokens * t->tokens;
    r.steps = ceil(t->tokens / s.tokens);
    r.train_s = train_run_s(r.train_flops, (double)c->gpus, r.peak_flops_per_s, t->mfu);
    r.train_days = r.train_s / DAY_S;
    r.exact_days = train_run_s(r.exact_flops, (double)c->gpus, r.peak_flops_per_s, t->mfu) / DAY_S;
    r.gpu_hours = r.train_s / HOUR_S * (double)c->gpus;
    r.mfu_ceiling = train_flops(r.active_params, s.tokens) / ((double)c->gpus * r.peak_flops_per_s * s.step_s);
    r.floor_days = r.steps * s.step_s / DAY_S;
    r.fits = r.left_bytes >= 0;
    r.marked = !r.fits && q->ignore_memory ? "does not fit" : NULL;
    if (!r.fits && !q->ignore_memory) hide(&r);
    r.notes = notes_of(a, q, c, &r);
    return r;
}

/* ---- text ---- */

static void put_line(struct out *o, size_t indent, const char *line)
{
    out_printf(o, "%*s", (int)indent, "");
    option_wrap(o, line, indent, indent + 2);
}

static void put_note(struct out *o, const char *note)
{
    char line[512];
    (void)snprintf(line, sizeof line, "note: %s", note);
    put_line(o, 2, line);
}

static void write_heading(struct out *o, const struct estimate_request *q, const struct estimate_case *c,
                          const struct train_row *r, size_t each)
{
    const struct estimate_training *t = &q->training;
    char line[512], model[96], device[96], a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], d[UNITS_TEXT_MAX];
    (void)snprintf(line, sizeof line, "training %s on %lld x %s (TP %lld, %lld cop%s)",
                   text_clean(model, sizeof model, c->model.name, strlen(c->model.name)), (long long)c->gpus,
                   text_clean(device, sizeof device, c->hw.name, strlen(c->hw.name)), (long long)c->tp,
                   (long long)c->replicas, c->replicas == 1 ? "y" : "ies");
    put_line(o, 0, line);
    (void)snprintf(line, sizeof line, "6 x %s parameters x %s tokens = %.4g flops",
                   units_format_count(a, r->active_params), units_format_count(b, t->tokens), r->train_flops);
    put_line(o, 2, line);
    (void)snprintf(line, sizeof line, "MFU %.3g of %lld x %s%s: %.1f days, %s GPU hours", t->mfu, (long long)c->gpus,
                   units_format(a, UNITS_FLOPS_PER_S, r->peak_flops_per_s),
                   t->mfu < 1 ? "" : " (a floor: runs reach 0.3-0.5, --mfu)",
                   train_run_s(r->train_flops, (double)c->gpus, r->peak_flops_per_s, t->mfu) / DAY_S,
                   units_format_count(b, train_run_s(r->train_flops, 1, r->peak_flops_per_s, t->mfu) / HOUR_S));
    if (r->fits || q->ignore_memory) put_line(o, 2, line);
    (void)snprintf(line, sizeof line, "%s: %s", t->recipe->name, t->recipe->meaning);
    put_line(o, 2, line);
    (void)snprintf(line, sizeof line, "ZeRO stage %lld over %lld copies; computed anew: %s; capacity %s of each GPU",
                   (long long)t->zero, (long long)c->replicas, r->recompute, units_format_bytes(d, c->capacity_bytes));
    put_line(o, 2, line);
    (void)snprintf(line, sizeof line, "steps: products in %s, fidelity roofline (a floor), conventions %s",
                   c->model.activations.name, q->conventions_text);
    put_line(o, 2, line);
    if (c->model.notes) put_note(o, c->model.notes);
    const size_t own = c->model.notes ? strlen(c->model.notes) + strlen("; ") : 0;
    for (size_t i = 0; i < each; i++) {
        if (!r[i].notes || strlen(r[i].notes) <= own) continue;
        put_note(o, r[i].notes + own);
        if (isnan(r[i].step_s)) break; /* so are the others */
    }
}

static enum err_code write_rows(struct arena *a, const struct estimate_request *q, const struct estimate_case *cases,
                                const struct train_row *rows, size_t cases_n, size_t each, struct err *e)
{
    enum table_format format;
    struct out *o;
    const struct option_values *v = q->options;
    struct table t = {.columns = COLUMNS,
                      .n_columns = sizeof COLUMNS / sizeof COLUMNS[0],
                      .stride_bytes = sizeof *rows,
                      .schema = "ridge.train.1",
                      .tool = commands_tool(),
                      .scenario_json = option_scenario_json(a, v)};
    if (table_format_parse(option_get(v, "format"), &format, e) != ERR_OK) return err_prepend(e, "--format: ");
    if (option_get(v, "columns") && table_select(a, &t, option_get(v, "columns"), &t, e) != ERR_OK)
        return commands_no_column(e);
    TRY(out_open(a, option_get(v, "output"), &o, e));
    for (size_t i = 0; i < cases_n && format == TABLE_TEXT; i++) {
        if (i) out_char(o, '\n');
        write_heading(o, q, &cases[i], &rows[i * each], each);
        out_char(o, '\n');
        t.rows = rows + i * each;
        t.n_rows = each;
        TRY(table_write(&t, format, o, e));
    }
    t.rows = rows;
    t.n_rows = cases_n * each;
    if (format != TABLE_TEXT) TRY(table_write(&t, format, o, e));
    return out_commit(o, e);
}

enum err_code estimate_train_run(struct arena *a, const struct estimate_request *q, const struct estimate_case *cases,
                                 size_t cases_n, struct err *e)
{
    enum { ROWS_MAX = 100000 };
    const size_t each = q->batch_n * q->context_n;
    size_t fits = 0;
    if (each * cases_n > ROWS_MAX) return err_set(e, ERR_RANGE, "more than %d rows were asked for", ROWS_MAX);
    struct train_row *rows = arena_array(a, each * cases_n, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < cases_n; i++) {
        const struct estimate_case *c = &cases[i];
        struct train_plan *p;
        const struct train_setup setup = {.model = &c->model,
                                          .hw = &c->hw,
                                          .tp = c->tp,
                                          .copies = c->replicas,
                                          .per_node = c->layout.per_node,
                                          .conventions = q->conventions,
                                          .recipe = q->training.recipe,
                                          .recompute = q->training.recompute,
                                          .zero = (int)q->training.zero};
        if (c->model.diffusion || c->model.draft.joined > 0)
            return err_set(e, ERR_USAGE, "--train: how %s is trained is not described", c->model.name);
        TRY(train_compile(a, &setup, &p, e));
        for (size_t k = 0; k < each; k++) {
            rows[i * each + k] =
                fill_row(a, q, c, p, q->batch[k % q->batch_n], estimate_context(q, &c->model, k / q->batch_n));
            fits += rows[i * each + k].fits;
        }
    }
    TRY(write_rows(a, q, cases, rows, cases_n, each, e));
    if (fits > 0 || q->ignore_memory) return ERR_OK;
    char need[UNITS_TEXT_MAX], have[UNITS_TEXT_MAX];
    const bool anew = q->training.recompute == TRAIN_RECOMPUTE_LAYERS;
    return err_set(e, ERR_NO, "does not fit: needs %s of the %s of one GPU (more GPUs%s%s)",
                   units_format_bytes(need, rows[0].memory_bytes), units_format_bytes(have, rows[0].capacity_bytes),
                   q->training.zero < 3 ? ", --zero 3" : "", anew ? "" : ", --recompute layers");
}
