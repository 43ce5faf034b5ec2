/* plan_layouts -- ways to lay a model out over so many GPUs. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/table.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/layout_options.h"
#include "calc/cli/plan.h"
#include "calc/cli/scope.h"
#include "calc/model/stored.h"
#include "calc/model/whatif.h"
#include "calc/serve/layouts.h"

struct layout_row {
    const char *model, *hardware, *fidelity, *why, *stages, *fits_text;
    int64_t gpus, nodes, tp, pp, ep, attention_dp, dcp, replicas, batch, batch_per_copy, context, microbatches,
        tp_nodes;
    bool fits;
    double bubble_frac, weight_bytes, tower_bytes, kv_bytes, state_bytes, activation_bytes, memory_bytes,
        capacity_bytes, left_bytes;
    double prefill_s, prefill_link_s, prefill_sent_bytes, prefill_fabric_bytes;
    double decode_step_s, decode_link_s, decode_sent_bytes, decode_fabric_bytes;
    double user_tok_per_s, throughput_tok_per_s;
};

#define ROW(field, kind, unit, flags, heading, help)                                                                   \
    COLUMN_AT(struct layout_row, field, COLUMN_##kind, UNITS_##unit, flags, heading, help)

static const struct column COLUMNS[] = {
    ROW(model, STRING, NONE, 0, "model", "the model"),
    ROW(hardware, STRING, NONE, 0, "device", "the device"),
    ROW(gpus, INT, COUNT, 0, "GPUs", "devices in all"),
    ROW(nodes, INT, COUNT, 0, "nodes", "that they stand in"),
    ROW(tp, INT, COUNT, COLUMN_SHOWN, "TP", "ranks that split attention and dense blocks"),
    ROW(pp, INT, COUNT, COLUMN_SHOWN, "PP", "stages of layers"),
    ROW(attention_dp, INT, COUNT, COLUMN_SHOWN, "DP", "attention groups with sequences of their own"),
    ROW(ep, INT, COUNT, COLUMN_SHOWN, "EP", "parts in which experts are dealt"),
    ROW(dcp, INT, COUNT, 0, "DCP", "ranks that share the cache of a sequence by tokens (shown with --dcp)"),
    ROW(replicas, INT, COUNT, COLUMN_SHOWN, "x", "copies of the model"),
    ROW(tp_nodes, INT, COUNT, 0, "TP nodes", "nodes that a tensor-parallel group spans; more than one is slow"),
    ROW(stages, STRING, NONE, 0, "stages", "layers of each stage"),
    ROW(microbatches, INT, COUNT, 0, "parts", "of a batch that are in the stages at once"),
    ROW(bubble_frac, REAL, FRAC, 0, "bubble", "part of the time that stages idle while those pass once"),
    ROW(batch, INT, COUNT, 0, "batch", "sequences in flight on all GPUs"),
    ROW(batch_per_copy, INT, COUNT, 0, "batch/copy", "of the fullest copy"),
    ROW(context, INT, COUNT, 0, "context", "tokens of context, and of the prompt"),
    ROW(fidelity, STRING, NONE, 0, "fidelity", "bound or roofline: floors, servers are 2-4 times slower"),
    ROW(weight_bytes, COUNT, BYTES, COLUMN_SHOWN, "weights", "on the fullest GPU"),
    ROW(tower_bytes, COUNT, BYTES, 0, "towers", "of images and of sound on it; 0 with --no-towers"),
    ROW(kv_bytes, COUNT, BYTES, COLUMN_SHOWN, "KV", "cache on it"),
    ROW(state_bytes, COUNT, BYTES, 0, "state", "recurrent state on it"),
    ROW(activation_bytes, COUNT, BYTES, 0, "act.", "largest operator's inputs and outputs on it"),
    ROW(memory_bytes, COUNT, BYTES, 0, "total", "weights + towers + KV + state + activations on it"),
    ROW(capacity_bytes, COUNT, BYTES, 0, "capacity", "usable memory of one GPU"),
    ROW(left_bytes, COUNT, BYTES, COLUMN_SHOWN, "left", "capacity - total; negative: so much is missing"),
    ROW(fits, BOOL, NONE, 0, "fits", "total within capacity"),
    ROW(prefill_s, REAL, SECONDS, COLUMN_SHOWN, "TTFT", "one prompt in every attention group, a floor"),
    ROW(prefill_link_s, REAL, SECONDS, 0, "TTFT comm", "of it, sending: bytes at full rate, and latency"),
    ROW(prefill_sent_bytes, COUNT, BYTES, 0, "TTFT sent", "by one GPU, within its node"),
    ROW(prefill_fabric_bytes, COUNT, BYTES, 0, "TTFT fabric", "by one GPU, to other nodes"),
    ROW(decode_step_s, REAL, SECONDS, COLUMN_SHOWN, "step", "between two tokens of a sequence, a floor"),
    ROW(decode_link_s, REAL, SECONDS, COLUMN_SHOWN, "comm", "of it, sending: bytes at full rate, and latency"),
    ROW(decode_sent_bytes, COUNT, BYTES, 0, "step sent", "by one GPU, within its node"),
    ROW(decode_fabric_bytes, COUNT, BYTES, 0, "step fabric", "by one GPU, to other nodes"),
    ROW(user_tok_per_s, REAL, TOK_PER_S, 0, "user", "1/step, a ceiling"),
    ROW(throughput_tok_per_s, REAL, TOK_PER_S, COLUMN_SHOWN, "all", "batch/step, decode only, a ceiling"),
    ROW(why, STRING, NONE, 0, "why not", "memory that is missing, or what does not divide"),
};

const struct column *plan_layout_columns(size_t *n)
{
    *n = sizeof COLUMNS / sizeof COLUMNS[0];
    return COLUMNS;
}

/* Everything that a listing needs. */
struct plan {
    struct model model;
    struct hw hw;
    int64_t gpus, per_node, batch, context, top;
    struct layout_request asked;
    struct step_setup setup;
    struct layouts_request q;
    struct layouts_item *items;
    size_t n, fits_n, short_n, illegal_n;
};

enum { BATCH_MAX = 1 << 24, TOKENS_MAX = 1 << 30, GPUS_MAX = 4096 };

static enum err_code open_layouts_model(struct arena *a, const struct option_values *v, struct model *m, struct err *e)
{
    const struct model_setting *set;
    size_t n;
    TRY(scope_settings(a, option_get(v, "set"), &set, &n, e));
    TRY(scope_formats(a, v, e));
    TRY(model_load(a, option_get(v, "model"), set, n, m, e));
    if (option_get(v, "weights")) TRY(stored_set_all(m, option_get(v, "weights"), e));
    if (option_get(v, "kv")) TRY(stored_set_cache(m, option_get(v, "kv"), e));
    if (option_get(v, "activations")) TRY(dtype_find(option_get(v, "activations"), &m->activations, e));
    if (option_get(v, "what-if")) TRY(whatif_apply_all(a, m, option_get(v, "what-if"), e));
    struct lora_request adapters;
    TRY(lora_options_parse(v, 0, &adapters, e));
    TRY(lora_options_apply(&adapters, m, e));
    TRY(layout_options_towers(v, m, e));
    int64_t source = 0;
    TRY(option_count(v, "source", 1, TOKENS_MAX, &source, e));
    if (source > 0) TRY(model_set_source(m, source, e));
    if (m->diffusion) return err_set(e, ERR_USAGE, "%s: layouts of diffusion models are not listed", m->name);
    return ERR_OK;
}

static enum err_code open_plan(struct arena *a, const struct option_values *v, struct plan *p, struct err *e)
{
    *p = (struct plan){0};
    if (!option_get(v, "model")) return err_set(e, ERR_USAGE, "plan: which model? -m NAME (ridge list models)");
    if (!option_get(v, "gpu")) return err_set(e, ERR_USAGE, "plan: which GPUs? -g NAME:N (ridge list hardware)");
    const char *fidelity = option_get(v, "fidelity") ? option_get(v, "fidelity") : "roofline";
    if (strcmp(fidelity, "roofline") != 0 && strcmp(fidelity, "bound") != 0)
        return err_set(e, ERR_USAGE, "--fidelity is bound or roofline, not '%.40s'", fidelity);
    p->batch = 64;
    p->context = 1024; /* not a unit */
    TRY(option_count(v, "batch", 1, BATCH_MAX, &p->batch, e));
    TRY(option_count(v, "context", 1, TOKENS_MAX, &p->context, e));
    TRY(option_count(v, "top", 1, GPUS_MAX, &p->top, e));
    struct offload_request away;
    struct offload offload;
    TRY(layout_options_parse(v, &p->asked, e));
    TRY(offload_options_parse(v, &away, e));
    TRY(open_layouts_model(a, v, &p->model, e));
    TRY(scope_gpu(a, v, option_get(v, "gpu"), &p->hw, &p->gpus, e));
    if (p->gpus > GPUS_MAX) return err_set(e, ERR_RANGE, "more than %d GPUs", (int)GPUS_MAX);
    TRY(layout_options_nodes(&p->asked, p->gpus, p->gpus, &p->hw, &p->per_node, e));
    TRY(layout_options_used(&p->asked, &p->model, p->gpus, p->per_node, &p->asked.layout, e));
    layout_options_latency(&p->asked, &p->hw);
    const int64_t most = model_context_limit(&p->model);
    if (!option_given(v, "context") && most > 0 && most < p->context) p->context = most;
    TRY(model_check_context(&p->model, p->context, e));
    const bool encodes = p->model.encoder.layers > 0;
    const int64_t ahead = model_source_ahead(&p->model);
    TRY(offload_options_open(&away, &p->hw, &offload, NULL, e));
    p->setup =
        (struct step_setup){.model = &p->model,
                            .hw = &p->hw,
                            .layout = {.sp = p->asked.layout.sp, .context_direct = p->asked.layout.context_direct},
                            .any_layout = true,
                            .served = true,
                            .any_context = p->asked.any_context || p->asked.layout.dcp > 1,
                            .latency = p->asked.latency,
                            .offload = offload,
                            .fidelity = strcmp(fidelity, "bound") == 0 ? STEP_BOUND : STEP_ROOFLINE,
                            .block_tokens = 16};
    p->q = (struct layouts_request){.model = &p->model,
                                    .hw = &p->hw,
                                    .capacity_bytes = hw_capacity_bytes(&p->hw),
                                    .gpus = p->gpus,
                                    .per_node = p->per_node,
                                    .batch = p->batch,
                                    .prompt = (double)(encodes ? ahead + p->model.encoder.start_tokens : p->context),
                                    .context = (double)(ahead + p->context),
                                    .average = 1,
                                    .like = p->asked.layout,
                                    .any_context = p->asked.any_context};
    TRY(step_compile(a, &p->setup, &p->q.step, e));
    if (!step_timed(p->q.step))
        return err_set(e, ERR_INPUT, "%s: no peak rate is known, so layouts cannot be compared", p->hw.name);
    TRY(layouts_list(a, &p->q, &p->items, &p->n, e));
    for (size_t i = 0; i < p->n; i++)
        (*(p->items[i].verdict == LAYOUTS_FITS    ? &p->fits_n
           : p->items[i].verdict == LAYOUTS_SHORT ? &p->short_n
                                                  : &p->illegal_n))++;
    return ERR_OK;
}

static void fill_values(const struct layouts_item *i, struct layout_row *r)
{
    const double *v = i->value;
    r->weight_bytes = v[STEP_weight_bytes];
    r->tower_bytes = v[STEP_beside_bytes];
    r->kv_bytes = v[STEP_kv_bytes];
    r->state_bytes = v[STEP_state_bytes];
    r->activation_bytes = v[STEP_activation_bytes];
    r->memory_bytes = v[STEP_memory_bytes];
    r->left_bytes = i->left_bytes;
    if (i->verdict != LAYOUTS_FITS) return;
    r->prefill_s = v[STEP_prefill_s];
    r->prefill_link_s = v[STEP_prefill_link_s];
    r->prefill_sent_bytes = v[STEP_prefill_wire_bytes];
    r->prefill_fabric_bytes = v[STEP_prefill_fabric_bytes];
    r->decode_step_s = v[STEP_decode_step_s];
    r->decode_link_s = v[STEP_decode_link_s];
    r->decode_sent_bytes = v[STEP_decode_wire_bytes];
    r->decode_fabric_bytes = v[STEP_decode_fabric_bytes];
    r->user_tok_per_s = 1 / r->decode_step_s;
    r->throughput_tok_per_s = i->throughput_tok_per_s;
}

static enum err_code fill(struct arena *a, const struct plan *p, const struct layouts_item *i, struct layout_row *r,
                          struct err *e)
{
    const struct layout *l = &i->layout;
    const double unknown = (double)NAN;
    char text[256], more[UNITS_TEXT_MAX];
    *r = (struct layout_row){.model = p->model.name,
                             .hardware = p->hw.key,
                             .fidelity = step_fidelity_name(p->setup.fidelity),
                             .why = i->why,
                             .gpus = p->gpus,
                             .nodes = layout_nodes(l, p->gpus),
                             .tp = l->tp,
                             .pp = l->pp,
                             .ep = l->ep,
                             .attention_dp = l->dp,
                             .dcp = l->dcp,
                             .replicas = l->replicas,
                             .batch = p->batch,
                             .batch_per_copy = i->batch,
                             .context = p->context,
                             .microbatches = l->microbatches,
                             .tp_nodes = layout_nodes(l, l->tp),
                             .fits = i->verdict == LAYOUTS_FITS,
                             .bubble_frac = layout_bubble(l->pp, l->microbatches),
                             .capacity_bytes = p->q.capacity_bytes};
    double *const numbers[] = {&r->weight_bytes,
                               &r->tower_bytes,
                               &r->kv_bytes,
                               &r->state_bytes,
                               &r->activation_bytes,
                               &r->memory_bytes,
                               &r->left_bytes,
                               &r->prefill_s,
                               &r->prefill_link_s,
                               &r->prefill_sent_bytes,
                               &r->prefill_fabric_bytes,
                               &r->decode_step_s,
                               &r->decode_link_s,
                               &r->decode_sent_bytes,
                               &r->decode_fabric_bytes,
                               &r->user_tok_per_s,
                               &r->throughput_tok_per_s};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) *numbers[k] = unknown;
    if (i->verdict != LAYOUTS_ILLEGAL) fill_values(i, r);
    if (i->verdict == LAYOUTS_SHORT)
        r->why = arena_printf(a, "needs %s more", units_format_bytes(more, -i->left_bytes));
    (void)layout_stages_text(&p->model, l, text, sizeof text);
    if (*text) r->stages = arena_strndup(a, text, sizeof text);
    return (i->verdict == LAYOUTS_SHORT && !r->why) || (*text && !r->stages) ? err_nomem(e) : ERR_OK;
}

/* ---- text ---- */

__attribute__((format(printf, 2, 3))) static void put_line(struct out *o, const char *fmt, ...)
{
    char line[640];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    out_str(o, "  ");
    option_wrap(o, line, 2, 4);
}

static bool context_asked(const struct plan *p) { return p->asked.any_context || p->asked.layout.dcp > 1; }

static void write_heading(struct out *o, const struct plan *p)
{
    char model[96], device[96], a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX], text[128];
    const struct timed_latency *l = &p->setup.latency;
    out_printf(o, "%s on %lld x %s\n", text_clean(model, sizeof model, p->model.name, strlen(p->model.name)),
               (long long)p->gpus, text_clean(device, sizeof device, p->hw.name, strlen(p->hw.name)));
    const char *joined = layout_nodes_text(p->gpus, p->per_node, &p->hw, text, sizeof text);
    if (*joined) put_line(o, "%s", joined);
    put_line(o, "%s in flight, context %lld; capacity %s of a GPU", text_count(n, p->batch, "sequence"),
             (long long)p->context, units_format_bytes(b, p->q.capacity_bytes));
    put_line(o, "fidelity %s (a floor: servers are 2-4x slower)", step_fidelity_name(p->setup.fidelity));
    if (p->gpus > 1 && !(l->link_s > 0) && !(l->fabric_s > 0)) put_line(o, "links without latency");
    const bool far = p->per_node < p->gpus, own = p->asked.latency_given && (p->asked.fabric_latency_given || !far);
    if (p->gpus > 1 && (l->link_s > 0 || l->fabric_s > 0))
        put_line(o, "a message takes %s%s%s%s%s%s", p->per_node > 1 ? units_format(a, UNITS_SECONDS, l->link_s) : "",
                 p->per_node > 1 ? " in a node" : "", p->per_node > 1 && far ? ", " : "",
                 far ? units_format(b, UNITS_SECONDS, l->fabric_s) : "", far ? " between nodes" : "",
                 own ? "" : " (NCCL's; --latency, --fabric-latency)");
    put_line(o, "%s", plan_layout_legend(layout_routed(&p->model) != NULL, context_asked(p)));
    const struct model_beside towers = model_beside(&p->model);
    if (p->model.towerless)
        put_line(o, "towers beside the model are not loaded (--no-towers)");
    else if (model_beside_bytes(&towers, 1) > 0)
        put_line(o, "totals hold the towers beside it, %s of a copy (--no-towers serves text alone)",
                 units_format_bytes(a, model_beside_bytes(&towers, 1)));
    if (p->model.notes) put_line(o, "note: %s", p->model.notes);
    if (p->asked.layout.skew > 1)
        put_line(o, "the busiest part of the experts has %.3g times the mean tokens, or all", p->asked.layout.skew);
}

/* Why layouts are missing from the table, in one line each. */
static void write_rejected(struct out *o, const struct plan *p)
{
    char a[UNITS_TEXT_MAX];
    if (p->short_n > 0) {
        const struct layouts_item *nearest = &p->items[p->fits_n];
        put_line(o, "%zu do%s not fit: the nearest needs %s more (--all)", p->short_n, p->short_n == 1 ? "es" : "",
                 units_format_bytes(a, -nearest->left_bytes));
    }
    for (size_t i = p->fits_n + p->short_n; i < p->n; i++) {
        size_t same = 0;
        bool before = false;
        for (size_t k = p->fits_n + p->short_n; k < p->n; k++) {
            if (strcmp(p->items[k].why, p->items[i].why) != 0) continue;
            before = before || k < i;
            same++;
        }
        char why[256];
        if (!before)
            put_line(o, "%zu cannot be: %s", same,
                     text_clean(why, sizeof why, p->items[i].why, strlen(p->items[i].why)));
    }
}

/* Tensor parallelism across nodes among the rows that are shown. */
static bool any_across(const struct layout_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].tp_nodes > 1 && rows[i].fits) return true;
    return false;
}

static enum err_code write_text(struct arena *a, const struct plan *p, bool all, bool chosen, struct table *t,
                                struct out *o, struct err *e)
{
    const struct layout_row *rows = t->rows;
    struct table fit = *t, rest = *t;
    size_t fits = 0;
    while (fits < t->n_rows && rows[fits].fits) fits++;
    fit.n_rows = all && !chosen ? fits : t->n_rows;
    write_heading(o, p);
    out_char(o, '\n');
    if (fit.n_rows > 0) TRY(table_write(&fit, TABLE_TEXT, o, e));
    if (any_across(rows, t->n_rows))
        put_line(o, "TP over more than one node (TP > %lld) is legal and slow", (long long)p->per_node);
    if (!all) {
        write_rejected(o, p);
        return ERR_OK;
    }
    if (chosen || fits == t->n_rows) return ERR_OK;
    rest.rows = rows + fits;
    rest.n_rows = t->n_rows - fits;
    TRY(table_select(a, &rest,
                     context_asked(p) ? "tp,pp,attention_dp,ep,dcp,replicas,why" : "tp,pp,attention_dp,ep,replicas,why",
                     &rest, e));
    out_str(o, "\nnot these\n");
    return table_write(&rest, TABLE_TEXT, o, e);
}

/* Which of the numbers that were asked for no layout has. */
static enum err_code no_layout(const struct plan *p, struct err *e)
{
    const struct layout *l = &p->asked.layout;
    const struct {
        const char *name;
        int64_t n;
    } asked[] = {{"tp", l->tp}, {"pp", l->pp}, {"attention-dp", l->dp}, {"replicas", l->replicas}};
    int64_t product = 1;
    char gpus[TEXT_COUNT_MAX];
    (void)text_count(gpus, p->gpus, "GPU");
    if (!layout_routed(&p->model) && (l->dp > 1 || l->ep > 1))
        return err_set(e, ERR_NO, "no layout of %s has those numbers: %s has no experts for --%s", gpus, p->model.name,
                       l->dp > 1 ? "attention-dp" : "ep");
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (asked[i].n <= 0) continue;
        if (p->gpus % asked[i].n != 0)
            return err_set(e, ERR_NO, "no layout of %s has those numbers: --%s %lld does not divide them", gpus,
                           asked[i].name, (long long)asked[i].n);
        product = product > p->gpus ? product : product * asked[i].n;
    }
    if (p->gpus % product != 0 || (l->tp && l->pp && l->dp && l->replicas && product != p->gpus))
        return err_set(e, ERR_NO, "no layout of %s has those numbers: TP x PP x attention-DP x copies is %lld", gpus,
                       (long long)product);
    return err_set(e, ERR_NO, "no layout of %s has those numbers: --ep %lld divides no stage of them", gpus,
                   (long long)l->ep);
}

enum err_code plan_layouts_run(struct arena *a, const struct option_values *v, enum table_format format, struct err *e)
{
    struct plan p;
    struct out *o;
    TRY(open_plan(a, v, &p, e));
    const bool all = option_get(v, "all") != NULL;
    size_t n = all ? p.n : p.fits_n;
    if (p.top > 0 && (size_t)p.top < n) n = (size_t)p.top;
    struct layout_row *rows = arena_array(a, n + 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    struct column columns[sizeof COLUMNS / sizeof COLUMNS[0]];
    memcpy(columns, COLUMNS, sizeof columns);
    for (size_t i = 0; context_asked(&p) && i < sizeof columns / sizeof *columns; i++)
        if (strcmp(columns[i].key, "dcp") == 0) columns[i].flags |= COLUMN_SHOWN;
    for (size_t i = 0; i < n; i++) TRY(fill(a, &p, &p.items[i], &rows[i], e));
    struct table t = {.columns = columns,
                      .n_columns = sizeof COLUMNS / sizeof COLUMNS[0],
                      .rows = rows,
                      .n_rows = n,
                      .stride_bytes = sizeof *rows,
                      .schema = "ridge.layouts.1",
                      .tool = commands_tool(),
                      .scenario_json = option_scenario_json(a, v)};
    const char *keys = option_get(v, "columns");
    if (keys && table_select(a, &t, keys, &t, e) != ERR_OK) return commands_no_column(e);
    TRY(out_open(a, option_get(v, "output"), &o, e));
    if (format == TABLE_TEXT)
        TRY(write_text(a, &p, all, keys != NULL, &t, o, e));
    else
        TRY(table_write(&t, format, o, e));
    TRY(out_commit(o, e));
    if (p.fits_n > 0) return ERR_OK;
    char more[UNITS_TEXT_MAX];
    if (p.short_n > 0)
        return err_set(e, ERR_NO, "no layout fits; the nearest needs %s more on every GPU",
                       units_format_bytes(more, -p.items[0].left_bytes));
    return p.n > 0 ? err_set(e, ERR_NO, "no layout can be: %s", p.items[0].why) : no_layout(&p, e);
}
