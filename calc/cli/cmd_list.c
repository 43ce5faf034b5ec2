/* cmd_list -- what is built in. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/table.h"
#include "calc/base/text.h"
#include "calc/cli/commands.h"
#include "calc/cli/compare.h"
#include "calc/cli/estimate.h"
#include "calc/cli/list_tensors.h"
#include "calc/cli/peers.h"
#include "calc/cli/plan.h"
#include "calc/cli/preset.h"
#include "calc/cli/simulate.h"
#include "calc/fit/rows_formats.h"
#include "calc/model/family.h"
#include "calc/model/whatif.h"

static const struct option OPTIONS[] = {
    OPTION_FORMAT("text, md, csv, json or jsonl"),
    OPTION_FILE("output", 'o', "write to a file"),
    {.name = "by-type", .kind = OPTION_FLAG, .help = "tensors: only the totals by dtype"},
};

#define COL(row, field, kind, unit, heading, help)                                                                     \
    COLUMN_AT(struct row, field, COLUMN_##kind, UNITS_##unit, COLUMN_SHOWN, heading, help)

struct listing {
    struct arena *arena;
    struct table table;
    const struct text_row *sentences; /* what text shows in place of the table, which would cut them; a row each */
};

/* A name with a sentence. */
struct text_row {
    const char *name, *unit, *meaning;
};

/* ---- models ---- */

struct model_row {
    const char *name, *family, *attention, *weights;
    double total_params, active_params, kv_bytes_per_token, state_bytes_per_sequence;
    int64_t layers, max_context_tokens;
};

static const struct column MODEL_COLUMNS[] = {
    COL(model_row, name, STRING, NONE, "name", "for -m"),
    COLUMN_AT(struct model_row, family, COLUMN_STRING, UNITS_NONE, 0, "family", "row of ridge list families"),
    COL(model_row, total_params, COUNT, COUNT, "params", "stored parameters"),
    COL(model_row, active_params, COUNT, COUNT, "active",
        "parameters that one token uses, an embedding table of its own whole (some publish it left out)"),
    COLUMN_AT(struct model_row, layers, COLUMN_INT, UNITS_COUNT, 0, "layers", "decoder layers"),
    COL(model_row, attention, STRING, NONE, "attention", "form of attention"),
    COL(model_row, kv_bytes_per_token, COUNT, BYTES, "KV/token", "all layers, as stored"),
    COLUMN_AT(struct model_row, state_bytes_per_sequence, COLUMN_COUNT, UNITS_BYTES, 0, "state/seq",
              "recurrent state of a sequence"),
    COLUMN_AT(struct model_row, max_context_tokens, COLUMN_INT, UNITS_COUNT, 0, "context", "the model's own limit"),
    COLUMN_AT(struct model_row, weights, COLUMN_STRING, UNITS_NONE, 0, "weights", "format of the linear layers"),
};

static enum err_code list_models(struct listing *l, struct err *e)
{
    static const struct cost_conventions PLAIN = {0};
    const char *const *names = NULL;
    const size_t n = model_builtins(l->arena, &names);
    struct model_row *rows = arena_array(l->arena, n ? n : 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        struct model m;
        struct cost_parameters p;
        struct cost_cache cache;
        TRY(model_load(l->arena, names[i], NULL, 0, &m, e));
        TRY(cost_parameters(l->arena, &m, &PLAIN, &p, e));
        struct sym_ctx *c = sym_open(l->arena);
        if (!c) return err_nomem(e);
        const struct cost_symbols y = cost_symbols_make(c);
        TRY(cost_cache(c, &y, &m, 1, &cache, e));
        rows[i] =
            (struct model_row){.name = m.name,
                               .family = m.family,
                               .attention = m.attention,
                               .weights = model_linear_format(&m)->name,
                               .total_params = p.total,
                               .active_params = p.active,
                               .layers = m.layers,
                               .max_context_tokens = m.max_context_tokens ? m.max_context_tokens : TABLE_INT_UNKNOWN,
                               .kv_bytes_per_token = cache.bytes_per_token_full + cache.bytes_per_token_windowed +
                                                     cache.bytes_per_token_index,
                               .state_bytes_per_sequence = cache.state_bytes_per_sequence};
    }
    l->table = (struct table){.columns = MODEL_COLUMNS,
                              .n_columns = sizeof MODEL_COLUMNS / sizeof MODEL_COLUMNS[0],
                              .rows = rows,
                              .n_rows = n,
                              .stride_bytes = sizeof *rows};
    return ERR_OK;
}

/* ---- hardware ---- */

struct hw_row {
    const char *key, *name, *unverified;
    double capacity_bytes, bandwidth_bytes_per_s, bf16_flops_per_s, fp8_flops_per_s, ridge_flops_per_byte, power_w,
        list_price_usd_per_h;
    double link_bytes_per_s, fabric_bytes_per_s;
};

static const struct column HW_COLUMNS[] = {
    COL(hw_row, key, STRING, NONE, "key", "for -g"),
    COLUMN_AT(struct hw_row, name, COLUMN_STRING, UNITS_NONE, 0, "name", "full name"),
    COL(hw_row, capacity_bytes, COUNT, BYTES, "memory", "usable, else visible, else label"),
    COL(hw_row, bandwidth_bytes_per_s, REAL, BYTES_PER_S, "bandwidth", "datasheet"),
    COL(hw_row, bf16_flops_per_s, REAL, FLOPS_PER_S, "bf16", "dense, fp16 where there is no bf16"),
    COL(hw_row, fp8_flops_per_s, REAL, FLOPS_PER_S, "fp8", "dense"),
    COL(hw_row, ridge_flops_per_byte, REAL, FLOPS_PER_BYTE, "ridge", "bf16 peak / bandwidth"),
    COLUMN_AT(struct hw_row, link_bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, 0, "link", "one direction"),
    COLUMN_AT(struct hw_row, fabric_bytes_per_s, COLUMN_REAL, UNITS_BYTES_PER_S, 0, "fabric",
              "between nodes, one direction of one device"),
    COLUMN_AT(struct hw_row, power_w, COLUMN_REAL, UNITS_WATTS, 0, "power", "board power"),
    COLUMN_AT(struct hw_row, list_price_usd_per_h, COLUMN_REAL, UNITS_USD, 0, "$/h", "list price, on demand"),
    COLUMN_AT(struct hw_row, unverified, COLUMN_STRING, UNITS_NONE, 0, "unverified",
              "values that no source was read for, or on which sources disagree"),
};

static const char *unverified(struct arena *a, const struct hw *hw)
{
    const char *all = NULL;
    for (enum hw_field f = 0; f < HW_FIELDS_N; f++) {
        const enum hw_status s = hw->origin[f].status;
        if (s != HW_UNVERIFIED && s != HW_CONFLICT) continue;
        all = all ? arena_printf(a, "%s %s", all, hw_field_key(f)) : hw_field_key(f);
        if (!all) return NULL;
    }
    return all;
}

static enum err_code list_hardware(struct listing *l, struct err *e)
{
    const size_t n = hw_builtins_n();
    struct hw_row *rows = arena_array(l->arena, n ? n : 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        struct hw hw;
        TRY(hw_load_builtin(l->arena, i, &hw, e));
        const enum hw_dtype half = isnan(hw.peak_flops_per_s[HW_BF16]) ? HW_FP16 : HW_BF16;
        rows[i] = (struct hw_row){.key = hw.key,
                                  .name = hw.name,
                                  .capacity_bytes = hw_capacity_bytes(&hw),
                                  .bandwidth_bytes_per_s = hw.bandwidth_bytes_per_s,
                                  .bf16_flops_per_s = hw.peak_flops_per_s[half],
                                  .fp8_flops_per_s = hw.peak_flops_per_s[HW_FP8],
                                  .ridge_flops_per_byte = hw_ridge(&hw, half),
                                  .power_w = hw.power_w,
                                  .list_price_usd_per_h = hw.price_list_usd_per_h,
                                  .link_bytes_per_s = hw.link_bytes_per_s,
                                  .fabric_bytes_per_s = hw.fabric_bytes_per_s,
                                  .unverified = unverified(l->arena, &hw)};
    }
    l->table = (struct table){.columns = HW_COLUMNS,
                              .n_columns = sizeof HW_COLUMNS / sizeof HW_COLUMNS[0],
                              .rows = rows,
                              .n_rows = n,
                              .stride_bytes = sizeof *rows};
    return ERR_OK;
}

/* ---- lists of names with a sentence ---- */

static const struct column NAMED[] = {
    COL(text_row, name, STRING, NONE, "name", "the name"),
    COL(text_row, unit, STRING, NONE, "", "kind"),
    COL(text_row, meaning, STRING, NONE, "meaning", "what it is"),
};

static enum err_code named(struct listing *l, const struct text_row *rows, size_t n)
{
    l->table =
        (struct table){.columns = NAMED, .n_columns = 3, .rows = rows, .n_rows = n, .stride_bytes = sizeof *rows};
    l->sentences = rows;
    return ERR_OK;
}

struct family_row {
    const char *name, *blocks, *checked, *model_types;
};

static const struct column FAMILY_COLUMNS[] = {
    COL(family_row, name, STRING, NONE, "name", "the name"),
    COL(family_row, blocks, STRING, NONE, "blocks", "what a layer is made of"),
    COL(family_row, checked, STRING, NONE, "checked", "what was checked, and against what"),
    COL(family_row, model_types, STRING, NONE, "model_types", "values of model_type that it reads besides its name"),
};

/* The values of model_type that are not the name, between commas; "" none. */
static const char *other_types(struct arena *a, const struct family *f)
{
    const char *text = "";
    for (size_t i = 0; text && i < sizeof f->types / sizeof f->types[0] && f->types[i]; i++)
        if (strcmp(f->types[i], f->name) != 0) text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", f->types[i]);
    return text;
}

static enum err_code list_families(struct listing *l, struct err *e)
{
    size_t n = 0;
    const struct family *f;
    while (family_at(n)) n++;
    struct family_row *rows = arena_array(l->arena, n, sizeof *rows);
    struct text_row *sentences = arena_array(l->arena, n, sizeof *sentences);
    if (!rows || !sentences) return err_nomem(e);
    for (size_t i = 0; (f = family_at(i)); i++) {
        const char *also = other_types(l->arena, f);
        const char *checked = arena_printf(l->arena, "checked: %s", f->exact);
        const char *blocks = f->blocks;
        if (also && *also) blocks = arena_printf(l->arena, "%s; model_type also %s", f->blocks, also);
        if (!also || !checked || !blocks) return err_nomem(e);
        rows[i] = (struct family_row){f->name, f->blocks, f->exact, also};
        sentences[i] = (struct text_row){f->name, blocks, checked};
    }
    l->sentences = sentences;
    l->table = (struct table){
        .columns = FAMILY_COLUMNS, .n_columns = 4, .rows = rows, .n_rows = n, .stride_bytes = sizeof *rows};
    return ERR_OK;
}

static enum err_code list_dtypes(struct listing *l, struct err *e)
{
    size_t n;
    const struct dtype *d = dtype_table(&n);
    struct text_row *rows = arena_array(l->arena, n, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const bool rows_alone = d[i].group_in < 0; /* then bits depend on the length of a row */
        const char *of = d[i].group_in == GROUP_HEAD     ? "head"
                         : d[i].group_in == GROUP_LATENT ? "128 of a latent"
                                                         : "row";
        const char *bits = rows_alone ? arena_printf(l->arena, "%g + %g/%s bits", d[i].bits, d[i].scale_bits, of)
                                      : arena_printf(l->arena, "%.6g bits", dtype_bits_per_weight(&d[i], 1));
        rows[i] = (struct text_row){d[i].name, bits,
                                    arena_printf(l->arena, "computes in %s; %s%s%s%s", d[i].compute, d[i].note,
                                                 d[i].source ? " (" : "", d[i].source ? d[i].source : "",
                                                 d[i].source ? ")" : "")};
        if (!rows[i].unit || !rows[i].meaning) return err_nomem(e);
    }
    return named(l, rows, n);
}

enum { TABLES = 11 };
static const char *const WHERE[TABLES] = {"estimate",  "--by-op",  "--mix",    "--train", "compare", "plan",
                                          "--layouts", "simulate", "requests", "steps",   "steady"};

static void all_columns(const struct column *of[TABLES], size_t n[TABLES])
{
    of[0] = estimate_columns(&n[0]);
    of[1] = estimate_op_columns(&n[1]);
    of[2] = estimate_mix_columns(&n[2]);
    of[3] = estimate_train_columns(&n[3]);
    of[4] = compare_columns(&n[4]);
    of[5] = plan_columns(&n[5]);
    of[6] = plan_layout_columns(&n[6]);
    of[7] = simulate_columns(SIMULATE_SUMMARY, &n[7]);
    of[8] = simulate_columns(SIMULATE_REQUESTS, &n[8]);
    of[9] = simulate_columns(SIMULATE_STEPS, &n[9]);
    of[10] = simulate_columns(SIMULATE_STEADY, &n[10]);
}

enum err_code commands_no_column(struct err *e)
{
    const struct column *of[TABLES];
    size_t n[TABLES], used = 0;
    char key[64], tail[160] = "";
    const char *end = e->text[0] == '"' ? strstr(e->text, "\": no such column") : NULL;
    const bool alone = end && strcmp(end, "\": no such column") == 0; /* nothing like it is known */
    if (end && (size_t)(end - e->text) <= sizeof key) {
        (void)snprintf(key, sizeof key, "%.*s", (int)(end - e->text - 1), e->text + 1);
        all_columns(of, n);
        for (size_t t = 0; t < TABLES; t++)
            for (size_t i = 0; i < n[t]; i++)
                if (strcmp(of[t][i].key, key) == 0 && used + strlen(WHERE[t]) + 16 < sizeof tail)
                    used += (size_t)snprintf(tail + used, sizeof tail - used, "%s%s", used ? ", " : "; it is of ",
                                             WHERE[t]);
    }
    if (alone || *tail) {
        const struct err plain = *e;
        (void)err_set(e, plain.code, "%s%s (ridge list columns)", plain.text, tail);
    }
    return err_prepend(e, "--columns: ");
}

static enum err_code list_columns(struct listing *l, struct err *e)
{
    const struct column *of[TABLES];
    size_t n[TABLES], all = 0, at = 0;
    all_columns(of, n);
    for (size_t t = 0; t < TABLES; t++) all += n[t];
    struct text_row *rows = arena_array(l->arena, all, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t t = 0; t < TABLES; t++)
        for (size_t i = 0; i < n[t]; i++) rows[at++] = (struct text_row){of[t][i].key, WHERE[t], of[t][i].help};
    return named(l, rows, all);
}

static const struct text_row CONVENTIONS[] = {
    {"multiply-add", "2 flops", "elementwise work is counted apart, against the vector peak"},
    {"fidelity", "roofline",
     "sum over operators of their own maximum; bound: pooled; both are floors (--course: bound); calibrated: fitted, "
     "median and P10-P90"},
    {"causal", "half", "attention pairs that the mask keeps (--course: full, all S*T)"},
    {"fusion", "attention, qkv, gate+up",
     "each one kernel, all else a kernel of its own; operands cold between kernels"},
    {"mlp", "separate", "products are kernels of their own (--course: fused, gate and up outputs not read again)"},
    {"embedding", "gathered", "rows of the tokens are read (--course: full table)"},
    {"lm-head", "last", "logits of the last position only"},
    {"active parameters", "whole table",
     "what one token uses: k of the experts, shared ones, an embedding table of its own whole; some publish it left "
     "out"},
    {"norms", "counted", "in parameters and weight bytes (--course: not)"},
    {"activations", "counted", "largest operator's inputs and outputs plus the residual stream (--course: not)"},
    {"context", "fixed", "decode step at S; with --prompt and --generate the mean over the generation"},
    {"prefill", "one", "the prompt of one sequence; together: B of them in one pass"},
    {"throughput", "decode only", "batch * copies / step time"},
    {"siblings", "independent",
     "trees: the r-th child of a node is kept with p*(1-p)^(r-1) of its depth's acceptance p, one of k with 1-(1-p)^k; "
     "a draft's next guesses are in truth kept less often, so a measured tree yields less; --accept 0.6/0.2,0.5/0.1: "
     "parts by depth and rank, as measured"},
    {"bonus", "drawn", "speculation: one token more when no drafted one is refused (--no-bonus, --course: none)"},
    {"expert parts", "the busiest",
     "of --ep parts the one that reads most, as expected; --skew: its tokens over the mean"},
    {"dispatch", "copies", "a token is sent for each of its experts; once: to a node and rank once; gather: to all"},
    {"link latency", "none", "a floor; --latency, --fabric-latency: for each message in a row (plan: NCCL's)"},
    {"stages", "steady state", "a decode step is the time between two tokens of a sequence, a batch in m microbatches"},
    {"capacity", "usable", "what a process can have; else visible, else label (--course: 80e9 bytes)"},
    {"fits", "per GPU", "weights + towers + KV at full context + state + activations within capacity"},
    {"scan", "chunked", "of the published length, states between chunks on chip; a decode step is elementwise"},
    {"state", "fp32", "recurrent matrices, unless the file says otherwise; convolution columns as activations"},
    {"kv_bytes", "needed", "windows cut; heads copied when fewer than ranks; latents copied on every rank"},
    {"kv_allocated_bytes", "engine", "whole blocks, every layer at full length"},
    {"GB, GiB", "1e9, 2^30", "a bare G is refused"},
    {"device constants", "data files", "--course on h100-sxm: 989e12 flops/s, 3.35e12 bytes/s, 80e9 bytes"},
    {"fuse", "none", "elementwise operators are kernels of their own; names (--fuse) are done in the kernel beside"},
    {"overlap", "none", "collectives wait for what they sum; links: they run beside all else (--overlap)"},
    {"routing", "uniform", "experts that tokens touch: E*(1-(1-k/E)^n), k of one token; other rules: --routing"},
    {"latent", "by pass", "decode absorbed, prefill expanded (--latent); heads as they are (--head-multiple)"},
    {"mixed step", "one of both", "products over all tokens, attention apart (--mix); a row of logits a sequence"},
    {"prompt", "whole", "in one pass; --chunk N: in pieces, weights read for each"},
};

struct workload_row {
    const char *name, *description;
    int64_t prompt_tokens, generate_tokens;
};

static const struct column WORKLOAD_COLUMNS[] = {
    COL(workload_row, name, STRING, NONE, "name", "for --workload"),
    COL(workload_row, prompt_tokens, INT, COUNT, "prompt", "tokens in"),
    COL(workload_row, generate_tokens, INT, COUNT, "output", "tokens out"),
    COL(workload_row, description, STRING, NONE, "description", "what it stands for"),
};

static enum err_code list_workloads(struct listing *l, struct err *e)
{
    size_t n;
    const struct embed_file *f = embed_under("configs/workloads/", &n);
    struct workload_row *rows = arena_array(l->arena, n ? n : 1, sizeof *rows);
    struct text_row *sentences = arena_array(l->arena, n ? n : 1, sizeof *sentences);
    if (!rows || !sentences) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        struct json j, item;
        const char *base = f[i].path + strlen("configs/workloads/");
        rows[i].name = arena_strndup(l->arena, base, strlen(base) - strlen(".json"));
        if (!rows[i].name) return err_nomem(e);
        TRY(json_parse(l->arena, f[i].path, (const char *)f[i].bytes, f[i].size, &j, e));
        if (json_get(&j, "prompt_tokens", &item)) TRY(json_int(&item, 1, INT64_MAX, &rows[i].prompt_tokens, e));
        if (json_get(&j, "generate_tokens", &item)) TRY(json_int(&item, 1, INT64_MAX, &rows[i].generate_tokens, e));
        if (json_get(&j, "description", &item)) TRY(json_str(&item, &rows[i].description, e));
        sentences[i] = (struct text_row){
            .name = rows[i].name,
            .unit = arena_printf(l->arena, "%lld tokens in, %lld out", (long long)rows[i].prompt_tokens,
                                 (long long)rows[i].generate_tokens),
            .meaning = rows[i].description ? rows[i].description : "",
        };
        if (!sentences[i].unit) return err_nomem(e);
    }
    l->sentences = sentences;
    l->table = (struct table){
        .columns = WORKLOAD_COLUMNS, .n_columns = 4, .rows = rows, .n_rows = n, .stride_bytes = sizeof *rows};
    return ERR_OK;
}

bool commands_convention(size_t i, const char *out[3])
{
    if (i >= sizeof CONVENTIONS / sizeof CONVENTIONS[0]) return false;
    out[0] = CONVENTIONS[i].name;
    out[1] = CONVENTIONS[i].unit;
    out[2] = CONVENTIONS[i].meaning;
    return true;
}

static enum err_code list_conventions(struct listing *l, struct err *e)
{
    const size_t own = sizeof CONVENTIONS / sizeof CONVENTIONS[0];
    size_t n;
    const struct peer *peers = peers_list(&n);
    struct text_row *rows = arena_array(l->arena, own + n, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < own; i++) rows[i] = CONVENTIONS[i];
    for (size_t i = 0; i < n; i++) {
        const char *name = arena_printf(l->arena, "--like %s", peers[i].name);
        if (!name) return err_nomem(e);
        rows[own + i] = (struct text_row){name, "another tool", peers[i].meaning};
    }
    return named(l, rows, own + n);
}

/* ---- what-ifs, presets ---- */

static enum err_code list_whatifs(struct listing *l, struct err *e)
{
    size_t n;
    const struct whatif *all = whatif_table(&n);
    struct text_row *rows = arena_array(l->arena, n, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const char *form = all[i].value ? arena_printf(l->arena, "%s=%s", all[i].name, all[i].value) : all[i].name;
        if (!form) return err_nomem(e);
        rows[i] = (struct text_row){all[i].name, form, all[i].help};
    }
    return named(l, rows, n);
}

static enum err_code list_presets(struct listing *l, struct err *e)
{
    size_t n;
    struct preset *all;
    TRY(preset_builtins(l->arena, &all, &n, e));
    struct text_row *rows = arena_array(l->arena, n ? n : 1, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const char *size = arena_printf(l->arena, "%zu variants", all[i].variants_n);
        if (!size) return err_nomem(e);
        rows[i] = (struct text_row){all[i].name, size, all[i].about ? all[i].about : ""};
    }
    return named(l, rows, n);
}

/* ---- columns of measured rows ---- */

/* "m, n, k [1]; op; dtype fp16 where there is none" of one form of file. */
static const char *columns_of(struct arena *a, const struct rows_format *f)
{
    const char *text = "";
    for (size_t i = 0; i < f->numbers_n && text; i++)
        text = arena_printf(a, "%s%s%s%s", text, i ? ", " : "", f->numbers[i].column,
                            f->numbers[i].absent == ROWS_ONE && f->numbers[i].optional ? " [1]"
                            : f->numbers[i].absent == ROWS_UNKNOWN                     ? " [expected]"
                                                                                       : "");
    for (const char *p = f->texts; text && *p;) {
        const size_t n = strcspn(p, ",");
        text = arena_printf(a, "%s, %.*s", text, (int)n, p);
        p += n + (p[n] == ',');
    }
    if (text && f->dtype && f->kind != KERNEL_COLLECTIVE)
        text = arena_printf(a, "%s; dtype (%s where it is missing)", text, f->dtype);
    return text;
}

static enum err_code list_rows(struct listing *l, struct err *e)
{
    static const struct text_row SHARED[] = {
        {"time_s or latency_us", "every kind", "the time of one call, in seconds or in microseconds"},
        {"framework, version, nccl_version, kernel", "optional",
         "whose kernel ran; rows of each framework are fitted apart"},
        {"device, machine", "optional", "rows that name another device than --device are passed over"},
        {"prefix_len, kv_len", "optional", "prefill: tokens cached before the prompt, and both together, in tokens"},
        {"devices_per_node", "optional", "collective: ranks of a node, where they are in several"},
        {"dtype, q_dtype, kv_dtype", "formats",
         "bf16, fp16, fp8, fp8_dynquant, fp8_block128, int8, int4-g128 (weights alone) or fp32"},
        {"[1], [expected]", "where it is missing",
         "a column may be left out: it is 1; a cell may be empty: what is expected"},
        {"all other numbers", "units", "counts: tokens, heads, elements, ranks; bytes of a collective in bytes"},
    };
    const size_t shared = sizeof SHARED / sizeof SHARED[0];
    struct text_row *rows = arena_array(l->arena, rows_formats_n + shared, sizeof *rows);
    if (!rows) return err_nomem(e);
    for (size_t i = 0; i < rows_formats_n; i++) {
        const struct rows_format *f = &rows_formats[i];
        rows[i] = (struct text_row){kernel_kind_name(f->kind), "columns", columns_of(l->arena, f)};
        if (!rows[i].meaning) return err_nomem(e);
    }
    for (size_t i = 0; i < shared; i++) rows[rows_formats_n + i] = SHARED[i];
    return named(l, rows, rows_formats_n + shared);
}

static const struct topic {
    const char *name;
    enum err_code (*list)(struct listing *l, struct err *e);
} TOPICS[] = {
    {"models", list_models},           {"hardware", list_hardware},
    {"families", list_families},       {"workloads", list_workloads},
    {"dtypes", list_dtypes},           {"columns", list_columns},
    {"conventions", list_conventions}, {"what-ifs", list_whatifs},
    {"presets", list_presets},         {"rows", list_rows},
    {"gpus", list_hardware},           {"devices", list_hardware}, /* as who looks for them calls them */
};

/* Names with sentences, which a table would cut. */
static void write_sentences(struct out *o, const struct text_row *rows, size_t n)
{
    enum { INDENT = 4 };
    for (size_t i = 0; i < n; i++) {
        const size_t name = strlen(rows[i].name);
        out_printf(o, "%s  ", rows[i].name);
        option_wrap(o, rows[i].unit, name + 2, INDENT);
        out_printf(o, "%*s", INDENT, "");
        option_wrap(o, rows[i].meaning, INDENT, INDENT);
    }
}

/* The one topic that is not built in. */
static enum err_code run_tensors(struct arena *a, const struct option_values *v, enum table_format format,
                                 struct err *e)
{
    struct out *o;
    if (v->operands_n != 2)
        return err_set(
            e, ERR_USAGE,
            "list tensors: wanted one path: a .safetensors file, a ....index.json, a .gguf or their directory");
    TRY(out_open(a, option_get(v, "output"), &o, e));
    TRY(list_tensors(a, v->operands[1], option_get(v, "by-type") != NULL, format, o, e));
    return out_commit(o, e);
}

static enum err_code run(struct arena *a, const struct command *c, int argc, char **argv, struct err *e)
{
    struct option_values v;
    struct out *o;
    enum table_format format;
    struct listing l = {.arena = a};
    TRY(option_parse(a, c, argc, argv, &v, e));
    TRY(table_format_parse(option_get(&v, "format"), &format, e));
    if (v.operands_n > 0 && strcmp(v.operands[0], "tensors") == 0) return run_tensors(a, &v, format, e);
    if (option_given(&v, "by-type")) return err_set(e, ERR_USAGE, "--by-type is for: ridge list tensors PATH");
    const char *topic = v.operands_n == 1 ? v.operands[0] : "";
    size_t at = 0;
    const size_t n = sizeof TOPICS / sizeof TOPICS[0];
    while (at < n && strcmp(TOPICS[at].name, topic) != 0) at++;
    if (at == n) {
        char near[120];
        return err_set(e, ERR_USAGE,
                       "list: wanted one of models, hardware, workloads, families, dtypes, columns, conventions, "
                       "what-ifs, presets, rows or tensors PATH%s",
                       text_suggest(near, sizeof near, topic, &TOPICS[0].name, sizeof TOPICS[0], n));
    }
    TRY(TOPICS[at].list(&l, e));
    l.table.schema = "ridge.list.1";
    l.table.tool = commands_tool();
    TRY(out_open(a, option_get(&v, "output"), &o, e));
    if (l.sentences && format == TABLE_TEXT)
        write_sentences(o, l.sentences, l.table.n_rows);
    else
        TRY(table_write(&l.table, format, o, e));
    return out_commit(o, e);
}

const struct command command_list = {
    .name = "list",
    .summary = "What is built in: models, hardware, workloads, families, dtypes, columns, conventions, what-ifs, "
               "presets, columns of measured rows; or the tensors of a checkpoint.",
    .usage =
        "models|hardware|workloads|families|dtypes|columns|conventions|what-ifs|presets|rows|tensors PATH [options]",
    .options = OPTIONS,
    .options_n = sizeof OPTIONS / sizeof OPTIONS[0],
    .examples = "  ridge list models\n  ridge list hardware -f csv\n"
                "  ridge list tensors model.gguf --by-type\n",
    .run = run,
};
