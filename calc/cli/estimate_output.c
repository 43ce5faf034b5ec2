/* estimate_output -- the rows of `ridge estimate` as tables and pictures. */
#include "calc/cli/estimate_output.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/plot.h"

/* ---- text ---- */

/* A line of the heading, wrapped at words under an indent. */
__attribute__((format(printf, 3, 4))) static void put_line(struct out *o, size_t indent, const char *fmt, ...)
{
    char line[640];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    out_printf(o, "%*s", (int)indent, "");
    option_wrap(o, line, indent, indent + 2);
}

/* Weights at the host: how many, over what, and when reading them hides. */
static void write_offload(struct out *o, const struct estimate_case *c, const struct dtype *lin)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], clean[64];
    const double bytes = step_offloaded_bytes(c->step), link = c->offload.host_bytes_per_s;
    double peak;
    const char *unit;
    put_line(o, 2,
             "at the host %s of weights a GPU, %.1f %% of its layers, over %s at %s: experts that no token "
             "chose are not read, shared blocks once a use",
             units_format_bytes(a, bytes), 100 * step_offloaded_frac(c->step),
             text_clean(clean, sizeof clean, c->host_link, strlen(c->host_link)),
             units_format(b, UNITS_BYTES_PER_S, link));
    if (step_offloaded_frac(c->step) >= 1 && bytes < c->offload.bytes)
        put_line(o, 2, "of %s asked for: its layers have no more", units_format_bytes(a, c->offload.bytes));
    if (step_peak(&c->hw, lin, &peak, &unit, NULL) == ERR_OK)
        put_line(o, 2, "a dense product hides its own from %s tokens a step on: bytes * peak / (2 * link)",
                 units_format_count(a, ceil(offload_hides_tokens(&c->offload, lin->bits / 8, peak))));
}

bool estimate_active_varies(const struct estimate_case *c) { return c->params.active_min < c->params.active_max; }

static void write_model_lines(struct out *o, const struct estimate_case *c)
{
    const struct model *m = &c->model;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], d[UNITS_TEXT_MAX], active[3 * UNITS_TEXT_MAX + 40] = "";
    const struct dtype *lin = model_linear_format(m);
    const double kv = step_kv_bytes_per_token_full(c->step) + step_kv_bytes_per_token_windowed(c->step) +
                      step_kv_bytes_per_token_index(c->step);
    if (estimate_active_varies(c))
        (void)snprintf(active, sizeof active, " (%s active, %s to %s by the token)",
                       units_format_count(a, c->params.active), units_format_count(b, c->params.active_min),
                       units_format_count(d, c->params.active_max));
    else if (c->params.active < c->params.total)
        (void)snprintf(active, sizeof active, " (%s active)", units_format_count(a, c->params.active));
    char half[32] = "";
    if (m->encoder.layers > 0) (void)snprintf(half, sizeof half, "%lld+", (long long)m->encoder.layers);
    put_line(o, 2, "%s parameters%s, %s%lld layers, %s; weights %s, KV %s", units_format_count(b, c->params.total),
             active, half, (long long)m->layers, m->attention, lin->name,
             c->uncached || !(kv > 0) ? "none" : m->kv.name);
    char state[UNITS_TEXT_MAX + 32] = "";
    if (c->state_bytes > 0 && !c->uncached)
        (void)snprintf(state, sizeof state, ", state %s per sequence",
                       units_format_bytes(a, step_state_bytes_per_sequence(c->step)));
    if (m->encoder.layers > 0)
        (void)snprintf(state, sizeof state, " and %s per token of the source",
                       units_format_digits(a, step_kv_bytes_per_source_token(c->step)));
    char cache[UNITS_TEXT_MAX + 32] = "no KV cache";
    if (kv > 0 && !c->uncached)
        (void)snprintf(cache, sizeof cache, "KV %s bytes per token", units_format_digits(b, kv));
    put_line(o, 2, "weights %s, %s%s, capacity %s (%s)%s", units_format_bytes(a, step_weight_bytes(c->step)), cache,
             state, units_format_bytes(d, c->capacity_bytes), units_format_bytes_iec(active, c->capacity_bytes),
             c->gpus > 1 ? ", each per GPU" : "");
    double peak;
    const char *unit;
    if (step_peak(&c->hw, lin, &peak, &unit, NULL) == ERR_OK)
        put_line(o, 2, "%s peak %s, bandwidth %s, ridge %.1f flops/byte", unit,
                 units_format(a, UNITS_FLOPS_PER_S, peak),
                 units_format(b, UNITS_BYTES_PER_S, c->hw.bandwidth_bytes_per_s), peak / c->hw.bandwidth_bytes_per_s);
    if (c->hw.measured) put_line(o, 2, "%s", c->hw.measured);
    if (c->hw.fitted) put_line(o, 2, "%s", c->hw.fitted);
    if (c->offload.bytes > 0) write_offload(o, c, lin);
}

static void write_tower(struct out *o, const struct estimate_request *q, const struct estimate_case *c,
                        const char *name, double params, double bytes)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];
    if (!(params > 0)) return;
    put_line(o, 2, "beside it %s, %s parameters: %s%s", name, units_format_count(a, params),
             q->towerless ? "not loaded" : units_format_bytes(b, bytes),
             q->towerless  ? " (--no-towers)"
             : c->gpus > 1 ? " of memory per GPU (--no-towers to serve text alone)"
                           : " of memory (--no-towers to serve text alone)");
}

/* What the checkpoint holds beside, and how tokens come about where not one by one. */
static void write_beside_lines(struct out *o, const struct estimate_request *q, const struct estimate_case *c)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], d_text[UNITS_TEXT_MAX], n[TEXT_COUNT_MAX];
    const struct estimate_beside *x = &c->beside;
    const struct estimate_diffusion *d = &c->diffusion;
    write_tower(o, q, c, c->model.tower.name, x->tower_params, x->tower_bytes);
    write_tower(o, q, c, c->model.audio.name, x->audio_params, x->audio_bytes);
    const bool drafts = q->drafting.draft && strcmp(q->drafting.draft, "mtp") == 0;
    if (x->mtp_params > 0 && !drafts)
        put_line(o, 2, "beside it %s, %s parameters, %s: not in memory here",
                 text_count(n, c->model.mtp.modules, "multi-token module"), units_format_count(a, x->mtp_params),
                 units_format_bytes(b, x->mtp_bytes));
    if (x->lora.params > 0) /* 2 flops a parameter */
        put_line(o, 2, "an adapter of rank %lld: %s parameters, %s, not in memory here; %s per token more",
                 (long long)q->lora.rank, units_format_count(a, x->lora.params), units_format_bytes(b, x->lora_bytes),
                 units_format(d_text, UNITS_FLOPS, x->lora.flops_per_token));
    if (c->model.draft.joined > 0 || c->model.draft.no_embedding)
        put_line(o, 2, "a draft head: a pass of it alone, its target not included");
    if (!c->model.diffusion) return;
    if (d->block_tokens == 0)
        put_line(o, 2, "diffusion over the whole sequence, no cache: a step is one pass over the context, %s",
                 d->steps ? "--steps of them for all tokens" : "as many as tokens");
    else
        put_line(o, 2, "diffusion in blocks of %lld tokens, %lld pass%s each%s", (long long)d->block_tokens,
                 (long long)(d->steps ? d->steps : d->block_tokens), d->steps == 1 ? "" : "es",
                 c->uncached ? ", over the whole sequence: --kv none" : ", tokens before them cached");
}

/* What of a layout the heading does not say. */
static void write_layout_lines(struct out *o, const struct estimate_case *c)
{
    const struct layout *l = &c->layout;
    char joined[128];
    (void)layout_nodes_text(c->gpus, l->per_node, &c->hw, joined, sizeof joined);
    if (*joined)
        put_line(o, 2, "%s%s", joined,
                 layout_nodes(l, l->tp) > 1 ? ": tensor parallelism across nodes is legal and slow" : "");
    if (l->pp > 1)
        put_line(o, 2, "stages of %s layers, %lld microbatch%s in them; a prefill of as many idles %.1f%% of the time",
                 c->stages, (long long)l->microbatches, l->microbatches == 1 ? "" : "es",
                 100 * layout_bubble(l->pp, l->microbatches));
    if (l->dp > 1)
        put_line(o, 2, "%lld attention groups take a part of the batch each; TTFT is of one prompt in every group",
                 (long long)l->dp);
}

/* What all rows of the table share. */
static void write_workload_line(struct out *o, const struct estimate_request *q, const struct model *m)
{
    char n[TEXT_COUNT_MAX];
    if (q->mix_text) {
        put_line(o, 2, "one step of %s", q->mix_text);
        return;
    }
    if (q->chunk) put_line(o, 2, "prompts in pieces of %s, a step each", text_count(n, q->chunk, "token"));
    const bool one_batch = q->batch_n == 1;
    const bool one_context = (q->averaged ? q->prompt_n * q->generate_n : q->context_n) == 1;
    if (!one_batch && !one_context) return;
    out_str(o, "  ");
    if (one_batch) out_printf(o, "batch %lld%s", (long long)q->batch[0], one_context ? ", " : "");
    if (one_context && q->averaged)
        out_printf(o, "%s in, %lld out", text_count(n, q->prompt[0], "token"), (long long)q->generate[0]);
    else if (one_context)
        out_printf(o, "context %lld", (long long)estimate_context(q, m, 0));
    out_char(o, '\n');
}

/* Whose measurements times rest on, and where they do not. */
static void write_calibrated(struct out *o, const struct estimate_request *q, const struct estimate_case *c)
{
    const struct source *s = &c->source;
    char from[160] = "", name[96], device[96];
    if (s->transfer[0] != SOURCE_OWN) {
        double low = HUGE_VAL, high = 0;
        for (int k = 0; k < KERNEL_KINDS_N; k++) {
            const double factor =
                efficiency_factor((enum kernel_kind)k, s->transfer[0] == SOURCE_SAME_GENERATION, c->hw.key);
            low = fmin(low, factor);
            high = fmax(high, factor);
        }
        (void)snprintf(from, sizeof from, ", transferred from %s (%s: four of five kernels within %.2f to %.2f times)",
                       text_clean(device, sizeof device, s->file[0].device, strlen(s->file[0].device)),
                       source_transfers[s->transfer[0]], low, high);
    }
    const char *launched = rows_of_host(&c->hw) ? "" : q->eager ? ", launched one by one" : ", in graphs";
    put_line(o, 2, "fidelity calibrated (median of kernels as measured%s), conventions %s", launched,
             q->conventions_text);
    put_line(o, 2, "efficiency %s, framework %s%s", text_clean(name, sizeof name, s->name, strlen(s->name)),
             s->framework, from);
    const char *note;
    for (size_t i = 0; (note = calibrated_note(c->calibrated, i)) != NULL; i++) put_line(o, 2, "note: %s", note);
}

void estimate_write_heading(struct out *o, const struct estimate_request *q, const struct estimate_case *c)
{
    const struct model *m = &c->model;
    char model[96], device[96], count[32] = "", layout[128] = "", text[96];
    if (c->gpus > 1) {
        (void)snprintf(count, sizeof count, "%lld x ", (long long)c->gpus);
        (void)snprintf(layout, sizeof layout, " (%s)", layout_text(&c->layout, text, sizeof text));
    }
    put_line(o, 0, "%s on %s%s%s", text_clean(model, sizeof model, m->name, strlen(m->name)), count,
             text_clean(device, sizeof device, c->hw.name, strlen(c->hw.name)), layout);
    if (c->unsplit) {
        put_line(o, 2, "note: %s", c->unsplit);
        return;
    }
    write_model_lines(o, c);
    write_beside_lines(o, q, c);
    write_layout_lines(o, c);
    if (c->calibrated)
        write_calibrated(o, q, c);
    else
        put_line(o, 2, "fidelity %s (a floor: servers are 2-4x slower), conventions %s",
                 step_fidelity_name(q->fidelity), q->conventions_text);
    if (q->drafting.draft) estimate_drafting_write(o, q, c);
    write_workload_line(o, q, m);
    if (m->notes) put_line(o, 2, "note: %s", m->notes);
    const int64_t longest = estimate_longest(q, &c->model);
    if (m->max_context_tokens > 0 && longest > m->max_context_tokens)
        put_line(o, 2, "note: context %lld is beyond the %lld that the model's file allows", (long long)longest,
                 (long long)m->max_context_tokens);
    if (q->engine && strcmp(m->weights[WEIGHT_EXPERT].name, "mxfp4") == 0)
        put_line(
            o, 2,
            "note: engines pad mxfp4 experts when they load them (64.4 GiB were logged where 60.8 are stored): the "
            "pool is an upper bound");
}

/* Layers of several kinds in one pool: what a block is, and what a state costs in it. */
static void write_pages(struct out *o, const struct pages *g)
{
    char page[UNITS_TEXT_MAX], state[UNITS_TEXT_MAX], groups[TEXT_COUNT_MAX], layers[TEXT_COUNT_MAX];
    out_printf(o, "    %s of %s", text_count(groups, g->groups, "group"), text_count(layers, g->group_layers, "layer"));
    if (g->padding_layers > 0) out_printf(o, " (%lld of padding)", (long long)g->padding_layers);
    out_printf(o, ", page %s", units_format_bytes_iec(page, (double)g->page_bytes));
    if (g->state_bytes > 0) out_printf(o, ", state %s", units_format_bytes_iec(state, (double)g->state_bytes));
    out_char(o, '\n');
}

static void write_pool(struct out *o, const struct estimate_engine *g)
{
    const struct pool_request *q = &g->request;
    const struct pool *p = &g->pool;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];
    put_line(o, 2, "engine %s: utilization %.3g, max_num_seqs %lld, max_num_batched_tokens %lld", q->engine->name,
             q->utilization_frac, (long long)q->max_num_seqs, (long long)q->max_num_batched_tokens);
    if (!isnan(p->budget_bytes)) {
        out_printf(o, "    budget %s", units_format_bytes_iec(a, p->budget_bytes));
        out_printf(o, " - weights %s", units_format_bytes_iec(a, q->weight_bytes_per_gpu));
        out_printf(o, " - activations (%s) %s\n", p->activation_by, units_format_bytes_iec(a, p->activation_bytes));
        out_printf(o, "    - outside the allocator %s", units_format_bytes_iec(a, p->non_torch_bytes));
        if (p->graph_bytes > 0) out_printf(o, " - graphs %s", units_format_bytes_iec(a, p->graph_bytes));
        out_printf(o, " = KV pool %s\n", units_format_bytes_iec(a, p->pool_bytes));
    }
    if (g->refusal[0]) {
        out_str(o, "    ");
        option_wrap(o, g->refusal, 4, 4);
        return;
    }
    char at[96] = "";
    if (!isnan(p->max_concurrency))
        (void)snprintf(at, sizeof at, ", %.2fx at %lld tokens", p->max_concurrency, (long long)q->max_model_len_tokens);
    if (g->pages && pages_states_alone(g->pages)) /* whose blocks are as long as max_model_len says */
        put_line(o, 4, "KV pool: states alone, in %s blocks, %.2fx at any length",
                 units_format_digits(b, (double)p->blocks), p->max_concurrency);
    else
        put_line(o, 4, "KV pool: %s tokens in %s blocks of %lld%s", units_format_digits(a, (double)p->tokens),
                 units_format_digits(b, (double)p->blocks), (long long)p->block_tokens, at);
    if (g->pages) write_pages(o, g->pages);
}

/* The same of calibrated times: a band beside each, and of memory only what is left. */
static enum err_code calibrated_columns(struct arena *a, const struct estimate_request *q, bool headed, struct table *t,
                                        struct err *e)
{
    const bool both = q->batch_n > 1 && estimate_points(q) > q->batch_n;
    const char *keys =
        arena_printf(a, "%s%s%s,left_bytes%s%s", headed ? "" : "model,hardware,fidelity,",
                     q->batch_n > 1 || (q->context_n <= 1 && !q->averaged) ? "batch" : "context",
                     both ? ",context" : "", q->only == ONLY_DECODE ? "" : ",prefill_s,prefill_s_p10,prefill_s_p90",
                     q->only == ONLY_PREFILL ? ""
                     : q->only == ONLY_DECODE
                         ? ",decode_step_s,decode_step_s_p10,decode_step_s_p90,user_tok_per_s,throughput_tok_per_s"
                         : ",decode_step_s,decode_step_s_p10,decode_step_s_p90,throughput_tok_per_s");
    if (!keys) return err_nomem(e);
    return table_select(a, t, keys, t, e);
}

/* Columns of a table for people: what varies, and what was asked for. A table without a heading over it says in each
 * row whose it is. */
static enum err_code text_columns(struct arena *a, const struct estimate_request *q, bool headed, bool state,
                                  const char *length, struct table *t, struct err *e)
{
    if (q->calibrated && q->only != ONLY_MEMORY) return calibrated_columns(a, q, headed, t, e);
    const bool batch = q->batch_n > 1 || (q->context_n <= 1 && !q->averaged);
    const bool both = q->batch_n > 1 && estimate_points(q) > q->batch_n;
    const char *keys =
        arena_printf(a, "%s%s%s%s%s%s%s", headed ? "" : "model,hardware,fidelity,", batch ? "batch" : length,
                     both ? "," : "", both ? length : "", state && q->only == ONLY_ALL ? ",state_bytes" : "",
                     q->only == ONLY_MEMORY
                         ? ",weight_bytes,kv_bytes,kv_allocated_bytes,activation_bytes,memory_bytes,left_bytes,fits"
                     : q->only == ONLY_ALL ? ",kv_bytes,activation_bytes,memory_bytes,left_bytes,fits"
                                           : ",memory_bytes,left_bytes,fits",
                     q->only == ONLY_ALL && q->batch_n > 1 && estimate_points(q) > q->batch_n
                         ? ",prefill_s,decode_step_s,throughput_tok_per_s,bounds"
                     : q->only == ONLY_ALL     ? ",prefill_s,decode_step_s,user_tok_per_s,throughput_tok_per_s,bounds"
                     : q->only == ONLY_PREFILL ? ",prefill_s,prefill_bound_by"
                     : q->only == ONLY_DECODE  ? ",decode_step_s,user_tok_per_s,throughput_tok_per_s,decode_bound_by"
                                               : "");
    const char *drafting = headed ? NULL : estimate_drafting_keys(q);
    if (keys && drafting) keys = arena_printf(a, "%s,%s", keys, drafting);
    if (!keys) return err_nomem(e);
    return table_select(a, t, keys, t, e);
}

static enum err_code write_text_case(struct estimate_sink *s, const struct estimate_request *q,
                                     const struct estimate_case *c, const struct estimate_row *rows, size_t n,
                                     const char *columns, struct err *e)
{
    struct table t = s->table;
    t.rows = rows;
    t.n_rows = n;
    estimate_write_heading(s->out, q, c);
    if (q->engine && !c->unsplit) write_pool(s->out, &c->engine);
    out_char(s->out, '\n');
    const char *length = c->model.encoder.layers == 0 || q->prompt_n <= 1 ? "context"
                         : q->generate_n > 1                              ? "source_tokens,context"
                                                                          : "source_tokens";
    if (!columns) TRY(text_columns(s->arena, q, true, c->state_bytes > 0, length, &t, e));
    TRY(table_write(&t, s->format, s->out, e));
    if (columns || c->unsplit || !estimate_drafting_keys(q)) return ERR_OK;
    return estimate_drafting_table(s->arena, q, &s->table, rows, n, s->out, e);
}

/* ---- by operator ---- */

/* Whether operators are of layers of several kinds. */
static bool has_kinds(const struct estimate_op_row *rows, size_t n)
{
    const char *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *layer = rows[i].op.layer;
        if (strcmp(layer, "model") == 0) continue;
        if (first && strcmp(first, layer) != 0) return true;
        first = layer;
    }
    return false;
}

/* Tables of one point, a phase each. */
static enum err_code write_phases(struct estimate_sink *s, const struct estimate_request *q,
                                  const struct estimate_case *c, const struct estimate_row *point, struct table t,
                                  const struct estimate_op_row *rows, size_t n, struct err *e)
{
    struct speculate_pass pass[SPECULATE_DEPTH_MAX];
    estimate_write_heading(s->out, q, c);
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && rows[end].op.phase == rows[i].op.phase) end++;
        const bool one = !q->prefill_together && strcmp(rows[i].op.phase, step_phase_name(STEP_PREFILL)) == 0;
        char what[128] = "", name[96], tokens[TEXT_COUNT_MAX];
        if (strcmp(rows[i].op.phase, "verify") == 0)
            (void)snprintf(what, sizeof what, " of %s a sequence", text_count(tokens, point->verify_tokens, "token"));
        else if (strcmp(rows[i].op.phase, "draft") == 0) {
            const size_t passes = speculate_passes(&c->speculation, rows[i].gamma, 0, pass);
            (void)snprintf(what, sizeof what, ", gamma %lld, %zu pass%s of %s", (long long)rows[i].gamma, passes,
                           passes == 1 ? "" : "es",
                           text_clean(name, sizeof name, c->draft.name, strlen(c->draft.name)));
        }
        out_char(s->out, '\n');
        put_line(s->out, 0, "%s%s, batch %lld, context %lld (%s, all layers)", rows[i].op.phase, what,
                 one ? 1LL : (long long)rows[i].batch, (long long)rows[i].context,
                 c->calibrated ? "calibrated kernels without the engine around them" : "roofline");
        t.rows = rows + i;
        t.n_rows = end - i;
        t.sectioned = has_kinds(t.rows, t.n_rows);
        t.section_offset = offsetof(struct estimate_op_row, op) + offsetof(struct step_op, layer);
        TRY(table_write(&t, s->format, s->out, e));
        i = end;
    }
    return ERR_OK;
}

/* What people see of operators with a state: that too. */
static enum err_code show_state(struct arena *a, struct table *t, struct err *e)
{
    struct column *columns = arena_array(a, t->n_columns, sizeof *columns);
    if (!columns) return err_nomem(e);
    memcpy(columns, t->columns, t->n_columns * sizeof *columns);
    for (size_t i = 0; i < t->n_columns; i++)
        if (strcmp(columns[i].key, "state_bytes") == 0) columns[i].flags |= COLUMN_SHOWN;
    t->columns = columns;
    return ERR_OK;
}

static enum err_code write_ops(struct estimate_sink *s, const struct estimate_request *q,
                               const struct estimate_case *cases, size_t cases_n, struct err *e)
{
    struct table t = s->table;
    struct estimate_op_row **rows = arena_array(s->arena, cases_n, sizeof *rows);
    size_t *n = arena_array(s->arena, cases_n, sizeof *n), total = 0, at = 0;
    if (!rows || !n) return err_nomem(e);
    t.columns = estimate_op_columns(&t.n_columns);
    t.stride_bytes = sizeof **rows;
    t.schema = "ridge.operators.1";
    const char *keys = option_get(q->options, "columns");
    if (keys && table_select(s->arena, &t, keys, &t, e) != ERR_OK) return commands_no_column(e);
    for (size_t i = 0; i < cases_n; i++) {
        if ((s->rows[i].fits || q->ignore_memory) && step_timed(cases[i].step))
            TRY(estimate_ops(s->arena, q, &cases[i], &s->rows[i], &rows[i], &n[i], e));
        total += n[i];
    }
    if (s->format == TABLE_TEXT) {
        for (size_t i = 0; i < cases_n; i++) {
            struct table of = t;
            if (i) out_char(s->out, '\n');
            if (!keys && cases[i].state_bytes > 0) TRY(show_state(s->arena, &of, e));
            TRY(write_phases(s, q, &cases[i], &s->rows[i], of, rows[i], n[i], e));
        }
        return ERR_OK;
    }
    struct estimate_op_row *all = arena_array(s->arena, total ? total : 1, sizeof *all);
    if (!all) return err_nomem(e);
    for (size_t i = 0; i < cases_n; i++)
        for (size_t k = 0; k < n[i]; k++) all[at++] = rows[i][k];
    t.rows = all;
    t.n_rows = total;
    return table_write(&t, s->format, s->out, e);
}

/* ---- pictures ---- */

static enum err_code csv_of(struct arena *a, const struct table *t, const char **out, struct err *e)
{
    struct out *o;
    TRY(out_memory(a, &o, e));
    TRY(table_write(t, TABLE_CSV, o, e));
    *out = out_text(o, NULL);
    return *out ? ERR_OK : err_nomem(e);
}

/* One row per peak rate that the device has, that of the model's weights first. */
static enum err_code ceilings_csv(struct arena *a, const struct estimate_case *c, const char **out, struct err *e)
{
    struct out *o;
    double peak;
    const char *own;
    const struct model *m = &c->model;
    TRY(step_peak(&c->hw, &m->weights[WEIGHT_FFN], &peak, &own, e));
    TRY(out_memory(a, &o, e));
    out_str(o, "dtype,peak_flops_per_s,bandwidth_bytes_per_s\n");
    out_printf(o, "%s,%.17g,%.17g\n", own, peak, c->hw.bandwidth_bytes_per_s);
    for (enum hw_dtype d = HW_FP32_VECTOR; d < HW_DTYPES_N; d++)
        if (!isnan(c->hw.peak_flops_per_s[d]) && strcmp(hw_dtype_name(d), own) != 0)
            out_printf(o, "%s,%.17g,%.17g\n", hw_dtype_name(d), c->hw.peak_flops_per_s[d], c->hw.bandwidth_bytes_per_s);
    *out = out_text(o, NULL);
    return *out ? ERR_OK : err_nomem(e);
}

const char *estimate_plot_kind(const struct estimate_request *q)
{
    const char *kind = option_get(q->options, "plot-kind");
    if (kind) return kind;
    return q->by_op ? "roofline" : q->only == ONLY_MEMORY ? "memory" : "batch";
}

enum err_code estimate_draw(struct estimate_sink *s, const struct estimate_request *q,
                            const struct estimate_case *cases, struct err *e)
{
    struct plot_request p = {.kind = estimate_plot_kind(q), .output = option_get(q->options, "plot")};
    struct table t = {.rows = s->rows, .n_rows = s->rows_n, .stride_bytes = sizeof *s->rows};
    t.columns = estimate_columns(&t.n_columns);
    if (strcmp(p.kind, "roofline") == 0) {
        struct estimate_op_row *ops;
        if (!s->rows[0].fits && !q->ignore_memory) return ERR_OK; /* no times to show; judge says so */
        TRY(estimate_ops(s->arena, q, &cases[0], &s->rows[0], &ops, &t.n_rows, e));
        t.columns = estimate_op_columns(&t.n_columns);
        t.rows = ops;
        t.stride_bytes = sizeof *ops;
        TRY(ceilings_csv(s->arena, &cases[0], &p.ceilings_csv, e));
    }
    TRY(csv_of(s->arena, &t, &p.csv, e));
    return plot_render(s->arena, &p, e);
}

enum err_code estimate_write(struct estimate_sink *s, const struct estimate_request *q,
                             const struct estimate_case *cases, size_t cases_n, struct err *e)
{
    const size_t each = estimate_points(q);
    const char *columns = option_get(q->options, "columns");
    if (q->by_op) return write_ops(s, q, cases, cases_n, e);
    if (s->format != TABLE_TEXT) {
        if (s->format == TABLE_MD && !columns) TRY(text_columns(s->arena, q, false, false, "context", &s->table, e));
        s->table.rows = s->rows;
        s->table.n_rows = s->rows_n;
        return table_write(&s->table, s->format, s->out, e);
    }
    for (size_t i = 0; i < cases_n; i++) {
        if (i) out_char(s->out, '\n');
        TRY(write_text_case(s, q, &cases[i], s->rows + i * each, each, columns, e));
    }
    return ERR_OK;
}
