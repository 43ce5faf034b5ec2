#include "calc/fit/rows_formats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define AT(field) offsetof(struct kernel, field)

enum { CLASS_MAX = 160 };

static enum err_code finish_gemm(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_bmm(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_attention(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_mla(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_moe(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_delta(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_mamba(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_quant(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_mlp(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_norm(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_write(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_rope(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_sample(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_verify(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_elementwise(struct arena *a, struct row *r, struct err *e);
static enum err_code finish_collective(struct arena *a, struct row *r, struct err *e);

#define SIZE 1, 1e9, false, ROWS_NEEDED, false, NULL      /* not a unit */
#define SIZE_OR_1 1, 1e9, false, ROWS_ONE, false, NULL    /* not a unit */
#define SIZE_OR_0 0, 1e9, false, ROWS_NEEDED, false, NULL /* not a unit */
#define MEAN(own) 0, 1e9, true, ROWS_UNKNOWN, false, own  /* not a unit */
#define FLAG 0, 1, false, ROWS_ONE, false, NULL

/* Of an element of a recurrent state; unknown: as its framework keeps it. */
#define STATE_BYTES                                                                                                    \
    {                                                                                                                  \
        "state_bytes", AT(state_bytes), 2, 4, false, ROWS_UNKNOWN, true, NULL                                          \
    }

/* Of a cache; unknown: rows of engines, whose pages are their own. */
#define PAGE_TOKENS                                                                                                    \
    {                                                                                                                  \
        "page_tokens", AT(page_tokens), 0, 1e9, false, ROWS_UNKNOWN, true, NULL /* not a unit */                       \
    }

static const struct rows_number moe_numbers[] = {
    {"num_tokens", AT(tokens), SIZE},
    {"hidden", AT(width), SIZE},
    {"inter_full", AT(hidden), SIZE},
    {"topk", AT(topk), SIZE},
    {"num_experts", AT(experts), SIZE},
    {"moe_tp", AT(tp), SIZE_OR_1},
    {"moe_ep", AT(ep), SIZE_OR_1},
    {"gated", AT(gated), FLAG},
    {"derived_active_experts_rank0", AT(active_experts), MEAN("active")},
    {"derived_routed_rows_rank0", AT(routed_rows), MEAN(NULL)},
    {"derived_max_rows_one_expert", AT(max_rows), MEAN(NULL)},
};
static const struct rows_number mlp_numbers[] = {
    {"num_tokens", AT(tokens), SIZE},
    {"hidden", AT(width), SIZE},
    {"ffn_full", AT(hidden), SIZE},
    {"gated", AT(gated), FLAG},
};
static const struct rows_number mla_prefill_numbers[] = {
    {"batch", AT(batch), SIZE},
    {"q_len", AT(query_tokens), SIZE},
    {"prefix_len", AT(prefix_tokens), SIZE_OR_0},
    {"n_heads_local", AT(heads), SIZE},
    {"qk_head_dim", AT(head_dim), SIZE},
    {"v_head_dim", AT(value_dim), SIZE},
};
static const struct rows_number mla_decode_numbers[] = {
    {"batch", AT(batch), SIZE},         {"kv_len", AT(context_tokens), SIZE},
    {"n_heads_local", AT(heads), SIZE}, {"kv_lora_rank", AT(value_dim), SIZE},
    {"rope_dim", AT(head_dim), SIZE},   PAGE_TOKENS,
};
static const struct rows_number prefill_numbers[] = {
    {"batch", AT(batch), SIZE},         {"q_len", AT(query_tokens), SIZE}, {"n_heads", AT(heads), SIZE},
    {"n_kv_heads", AT(kv_heads), SIZE}, {"head_dim", AT(head_dim), SIZE},  {"window", AT(window), SIZE_OR_0},
};
static const struct rows_number decode_numbers[] = {
    {"batch", AT(batch), SIZE},
    {"kv_len", AT(context_tokens), SIZE},
    {"n_heads", AT(heads), SIZE},
    {"n_kv_heads", AT(kv_heads), SIZE},
    {"head_dim", AT(head_dim), SIZE},
    {"window", AT(window), SIZE_OR_0},
    PAGE_TOKENS,
};
static const struct rows_number bmm_numbers[] = {
    {"m_per_head", AT(m), SIZE}, {"n_heads_local", AT(groups), SIZE}, {"n", AT(n), SIZE}, {"k", AT(k), SIZE}};
static const struct rows_number gemm_numbers[] = {{"m", AT(m), SIZE}, {"n", AT(n), SIZE}, {"k", AT(k), SIZE}};
static const struct rows_number quant_numbers[] = {{"m", AT(m), SIZE}, {"k", AT(k), SIZE}};
static const struct rows_number delta_numbers[] = {
    {"batch", AT(batch), SIZE},
    {"seq_len", AT(query_tokens), SIZE_OR_1},
    {"n_k_heads", AT(key_heads), SIZE},
    {"head_k_dim", AT(state_dim), SIZE},
    {"n_v_heads", AT(heads), SIZE},
    {"head_v_dim", AT(value_dim), SIZE},
    {"delta", AT(gated), 0, 1, false, ROWS_ONE, true, NULL},
    STATE_BYTES,
    {"d_conv", AT(taps), SIZE_OR_1}, /* last */
};
static const struct rows_number mamba_numbers[] = {
    {"batch", AT(batch), SIZE},
    {"seq_len", AT(query_tokens), SIZE_OR_1},
    {"n_heads", AT(heads), SIZE},
    {"head_dim", AT(value_dim), SIZE},
    {"d_state", AT(state_dim), SIZE},
    {"n_groups", AT(key_heads), SIZE},
    {"chunk_size", AT(chunk_tokens), SIZE_OR_1},
    STATE_BYTES,
    {"d_conv", AT(taps), SIZE_OR_1}, /* last */
};
static const struct rows_number elementwise_numbers[] = {
    {"num_tokens", AT(m), SIZE},
    {"hidden", AT(width), SIZE},
    {"ffn_full", AT(hidden), SIZE},
    {"n_heads_full", AT(heads), SIZE},
    {"n_kv_heads_full", AT(kv_heads), SIZE},
    {"tp", AT(tp), SIZE},
};
static const struct rows_number norm_numbers[] = {{"num_tokens", AT(m), SIZE}, {"hidden", AT(width), SIZE}};
static const struct rows_number write_numbers[] = {
    {"num_tokens", AT(m), SIZE}, {"n_kv_heads", AT(kv_heads), SIZE}, {"head_dim", AT(head_dim), SIZE}};
static const struct rows_number rope_numbers[] = {
    {"num_tokens", AT(m), SIZE},          {"n_heads", AT(heads), SIZE},
    {"n_kv_heads", AT(kv_heads), SIZE},   {"head_dim", AT(head_dim), SIZE},
    {"rotary_dim", AT(rotary_dim), SIZE}, {"interleaved", AT(interleaved), 0, 1, false, ROWS_UNKNOWN, true, NULL},
};
static const struct rows_number sample_numbers[] = {
    {"batch", AT(batch), SIZE},
    {"vocab", AT(vocab), SIZE},
    {"top_k", AT(top_k), SIZE_OR_0},
    {"top_p_milli", AT(top_p_milli), SIZE},
    {"temperature_milli", AT(temperature_milli), SIZE},
};
static const struct rows_number verify_numbers[] = {
    {"batch", AT(batch), SIZE},       {"gamma", AT(drafts), SIZE},
    {"vocab", AT(vocab), SIZE},       {"accepted", AT(accepted), SIZE_OR_0},
    {"branches", AT(branches), SIZE},
};
static const struct rows_number collective_numbers[] = {
    {"n_gpus", AT(ranks), 2, 1e6, false, ROWS_NEEDED, false, NULL},
    {"bytes", AT(payload_bytes), 1, 1e15, false, ROWS_NEEDED, false, NULL}};

#define NUMBERS(array) array, COUNT(array)

const struct rows_format rows_formats[] = {
    {KERNEL_MOE, NUMBERS(moe_numbers), "dtype", NULL, NULL, finish_moe},
    {KERNEL_MLA_PREFILL, NUMBERS(mla_prefill_numbers), "q_dtype,kv_dtype", NULL, NULL, finish_mla},
    {KERNEL_MLA_DECODE, NUMBERS(mla_decode_numbers), "q_dtype,kv_dtype", NULL, NULL, finish_mla},
    {KERNEL_PREFILL, NUMBERS(prefill_numbers), "q_dtype,kv_dtype", NULL, NULL, finish_attention},
    {KERNEL_DECODE, NUMBERS(decode_numbers), "q_dtype,kv_dtype", NULL, NULL, finish_attention},
    {KERNEL_MLA_BMM, NUMBERS(bmm_numbers), "dtype", NULL, NULL, finish_bmm},
    {KERNEL_GEMM, NUMBERS(gemm_numbers), "", "fp16", NULL, finish_gemm},
    {KERNEL_SCAN, NUMBERS(delta_numbers), "op", "bf16", NULL, finish_delta},
    {KERNEL_SCAN, NUMBERS(mamba_numbers), "op", "bf16", NULL, finish_mamba},
    {KERNEL_ELEMENTWISE, NUMBERS(elementwise_numbers), "op", "fp16", NULL, finish_elementwise},
    {KERNEL_ELEMENTWISE, NUMBERS(quant_numbers), "op", "bf16", NULL, finish_quant},
    {KERNEL_ELEMENTWISE, NUMBERS(rope_numbers), "op", "bf16", "rope", finish_rope}, /* has all columns of the next */
    {KERNEL_ELEMENTWISE, NUMBERS(write_numbers), "op", "bf16", "kv-write", finish_write},
    {KERNEL_MLP, NUMBERS(mlp_numbers), "dtype", NULL, NULL, finish_mlp},
    {KERNEL_ELEMENTWISE, NUMBERS(norm_numbers), "op", "bf16", "rmsnorm", finish_norm},
    {KERNEL_ELEMENTWISE, NUMBERS(sample_numbers), "op", "fp32", "sample", finish_sample},
    {KERNEL_ELEMENTWISE, NUMBERS(verify_numbers), "op", "fp32", "spec-verify", finish_verify},
    {KERNEL_COLLECTIVE, NUMBERS(collective_numbers), "op", "fp16", NULL, finish_collective},
};

const size_t rows_formats_n = COUNT(rows_formats);

bool rows_number_is(const struct rows_number *n, const char *name)
{
    return strcmp(n->column, name) == 0 || (n->own && strcmp(n->own, name) == 0);
}

/* Whether a call is told by these columns, where its kind has several. */
static bool tells(const struct rows_format *f, const struct kernel *k)
{
    if (f->kind == KERNEL_SCAN) return (f->finish == finish_mamba) == k->state_space;
    if (f->kind != KERNEL_ELEMENTWISE) return true;
    if (k->drafts > 0) return f->finish == finish_verify;
    if (k->vocab > 0) return f->finish == finish_sample;
    if (k->rotary_dim > 0) return f->finish == finish_rope;
    if (k->head_dim > 0) return f->finish == finish_write;
    if (k->hidden > 0) return f->finish == finish_elementwise;
    return f->finish == (k->width > 0 ? finish_norm : finish_quant);
}

const struct rows_format *rows_format_of(const struct kernel *k)
{
    for (size_t i = 0; i < rows_formats_n; i++)
        if (rows_formats[i].kind == k->kind && tells(&rows_formats[i], k)) return &rows_formats[i];
    return NULL;
}

const struct rows_number rows_optional[ROWS_OPTIONAL_N] = {{"devices_per_node", AT(per_node), SIZE},
                                                           {"prefix_len", AT(prefix_tokens), SIZE_OR_0},
                                                           {"kv_len", AT(context_tokens), SIZE_OR_0}};

const struct rows_text rows_texts[ROWS_TEXTS_N] = {
    {"dtype", offsetof(struct row, dtype)},        {"q_dtype", offsetof(struct row, dtype)},
    {"kv_dtype", offsetof(struct row, kv_dtype)},  {"framework", offsetof(struct row, framework)},
    {"version", offsetof(struct row, version)},    {"nccl_version", offsetof(struct row, version)},
    {"kernel", offsetof(struct row, kernel_name)}, {"op", offsetof(struct row, op)},
    {"device", offsetof(struct row, device)},      {"machine", offsetof(struct row, device)},
    {"state", offsetof(struct row, state)},
};

/* -- formats of numbers -- */

static const struct {
    const char *name;
    enum hw_dtype unit;
    double bytes;
    enum kernel_quant quant;
} dtypes[] = {
    {"bf16", HW_BF16, 2, KERNEL_QUANT_NONE},
    {"fp16", HW_FP16, 2, KERNEL_QUANT_NONE},
    {"fp8", HW_FP8, 1, KERNEL_QUANT_NONE},
    {"fp8_dynquant", HW_FP8, 1, KERNEL_QUANT_DYNAMIC},
    {"fp8_block128", HW_FP8, 1, KERNEL_QUANT_BLOCK},
    {"int8", HW_INT8, 1, KERNEL_QUANT_NONE},
    {"fp32", HW_FP32_VECTOR, 4, KERNEL_QUANT_NONE},
    /* weights alone: half a byte and 16 bits for every 128 of them; factors of 16 bits */
    {"int4-g128", HW_BF16, 0.5 + 2.0 / 128, KERNEL_QUANT_NONE},
};

static bool find_dtype(const char *name, size_t *at)
{
    for (*at = 0; *at < COUNT(dtypes); (*at)++)
        if (strcmp(dtypes[*at].name, name) == 0) return true;
    return false;
}

static enum err_code dtype_of(struct row *r, struct err *e)
{
    size_t at, kv;
    char shown[40];
    if (!find_dtype(r->dtype, &at))
        return err_set(e, ERR_INPUT, "dtype \"%s\" is not known",
                       text_clean(shown, sizeof shown, r->dtype, strlen(r->dtype)));
    r->kernel.unit = dtypes[at].unit;
    r->kernel.quant = dtypes[at].quant;
    r->kernel.element_bytes = r->kernel.kv_element_bytes = dtypes[at].bytes;
    if (!*r->kv_dtype) return ERR_OK;
    if (!find_dtype(r->kv_dtype, &kv))
        return err_set(e, ERR_INPUT, "kv_dtype \"%s\" is not known",
                       text_clean(shown, sizeof shown, r->kv_dtype, strlen(r->kv_dtype)));
    r->kernel.kv_element_bytes = dtypes[kv].bytes;
    if (dtypes[kv].unit == HW_FP8) r->kernel.unit = HW_FP8; /* the faster unit may be used: a bound must allow it */
    return ERR_OK;
}

/* -- what a row of each kind means -- */

static enum err_code name_row(struct arena *a, struct row *r, const char *op, const char *more, const char *family,
                              struct err *e)
{
    /* of the probe's own rows, which code of a kernel it was */
    const char *own = strcmp(r->framework, "ridge") == 0 ? r->kernel_name : NULL;
    const char *parts[] = {op, r->dtype, r->kv_dtype, r->framework, more, more == own ? NULL : own};
    char name[CLASS_MAX];
    int n = snprintf(name, sizeof name, "%s", kernel_kind_name(r->kernel.kind));
    for (size_t i = 0; i < COUNT(parts); i++)
        if (parts[i] && *parts[i] && n >= 0 && n < CLASS_MAX)
            n += snprintf(name + n, (size_t)(CLASS_MAX - n), "/%s", parts[i]);
    char clean[CLASS_MAX];
    (void)text_clean(clean, sizeof clean, name, strlen(name));
    r->class_name = arena_strndup(a, clean, strlen(clean));
    r->family = family;
    return r->class_name && r->family ? ERR_OK : err_nomem(e);
}

static enum err_code finish_gemm(struct arena *a, struct row *r, struct err *e)
{
    r->kernel.groups = 1;
    TRY(dtype_of(r, e));
    return name_row(a, r, NULL, NULL, arena_printf(a, "%g,%g", r->kernel.n, r->kernel.k), e);
}

static enum err_code finish_bmm(struct arena *a, struct row *r, struct err *e)
{
    TRY(dtype_of(r, e));
    if (r->kernel.unit == HW_FP8) r->kernel.quant = KERNEL_QUANT_BLOCK;
    return name_row(a, r, NULL, NULL, arena_printf(a, "%g,%g,%g", r->kernel.groups, r->kernel.n, r->kernel.k), e);
}

void rows_attention(struct kernel *k, const char *framework)
{
    /* TensorRT-LLM decodes groups of 2 to 32 heads with one kernel and all else with one that knows no groups; its
     * prefill never packs the heads of a group into one block of rows, and computes widths that are powers of two */
    const double group = k->heads / k->kv_heads;
    const bool decode = k->kind == KERNEL_DECODE, trtllm = strcmp(framework, "trtllm") == 0;
    k->flash2 = strcmp(framework, "vllm") == 0;
    k->ungrouped = trtllm && !(decode && group > 1 && group <= 32);
    k->padded_dim = trtllm && !decode ? exp2(ceil(log2(k->head_dim))) : 0;
}

/* A prompt's keys are those before it and its own. */
static enum err_code check_context(const struct kernel *k, struct err *e)
{
    if (k->kind == KERNEL_DECODE || !(k->context_tokens > 0)) return ERR_OK;
    if (k->context_tokens < k->query_tokens + k->prefix_tokens)
        return err_set(e, ERR_INPUT, "kv_len %g is below q_len %g%s", k->context_tokens, k->query_tokens,
                       k->prefix_tokens > 0 ? " + prefix_len" : "");
    return ERR_OK;
}

/* Whether a cache is in pages, of which there are several, that lie in no order; "pages" in the name of a class. What
 * engines measure is in pages always, as the name of the engine says. */
static const char *in_pages(const struct row *r)
{
    const struct kernel *k = &r->kernel;
    const bool paged = k->page_tokens > 0 && k->page_tokens < k->context_tokens;
    return paged && strcmp(r->framework, "ridge") == 0 ? "pages" : NULL;
}

static enum err_code finish_attention(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    if (k->kv_heads > k->heads)
        return err_set(e, ERR_INPUT, "n_kv_heads %g is above n_heads %g", k->kv_heads, k->heads);
    if (fmod(k->heads, k->kv_heads) > 0)
        return err_set(e, ERR_INPUT, "n_heads %g is not a multiple of n_kv_heads %g", k->heads, k->kv_heads);
    TRY(check_context(k, e));
    k->value_dim = k->head_dim;
    rows_attention(k, r->framework);
    return name_row(a, r, NULL, k->kind == KERNEL_DECODE && k->ungrouped > 0 ? "ungrouped" : in_pages(r),
                    arena_printf(a, "%g,%g,%g,%g", k->heads, k->kv_heads, k->head_dim, k->window), e);
}

static enum err_code finish_mla(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    if (k->kind == KERNEL_MLA_DECODE) k->head_dim += k->value_dim; /* latent and rope part */
    k->kv_heads = k->kind == KERNEL_MLA_DECODE ? 1 : k->heads;
    return name_row(a, r, NULL, in_pages(r), arena_printf(a, "%g,%g", k->heads, k->prefix_tokens), e);
}

double rows_sparse(const char *kernel)
{
    enum { SPARSITY_FACTOR = 4 };
    return strstr(kernel, "vllm") && strstr(kernel, "triton") ? SPARSITY_FACTOR : 0;
}

double rows_tile_rows(const char *kernel)
{
    enum { BLOCK_SIZE_M = 16 };
    return strstr(kernel, "fp8") && strstr(kernel, "triton") ? BLOCK_SIZE_M : 0;
}

double rows_moe_launches(const char *kernel, bool blocks)
{
    enum { CHOICE = 1, PRODUCTS = 2, ACTIVATION = 1, SUM = 1, OF_ALL = CHOICE + PRODUCTS + ACTIVATION + SUM };
    enum { TRITON_SORT = 2, CUTLASS_MAPS = 3, CUTLASS_EXPAND = 1, CUTLASS_SHAPES = 1, SCALES = 2 };
    if (strstr(kernel, "triton")) return OF_ALL + TRITON_SORT + (strstr(kernel, "fp8") ? SCALES : 0);
    return OF_ALL + CUTLASS_MAPS + CUTLASS_EXPAND + (blocks ? SCALES : CUTLASS_SHAPES);
}

static enum err_code finish_moe(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    if (k->unit == HW_FP8 && k->quant == KERNEL_QUANT_NONE) k->quant = KERNEL_QUANT_DYNAMIC;
    if (r->kernel_name) {
        k->sparse = rows_sparse(r->kernel_name);
        k->tile_rows = rows_tile_rows(r->kernel_name);
    }
    if (k->topk > k->experts) return err_set(e, ERR_INPUT, "topk %g is above num_experts %g", k->topk, k->experts);
    return name_row(a, r, NULL, r->kernel_name,
                    arena_printf(a, "%g,%g,%g,%g", k->experts, k->topk, k->width, k->hidden), e);
}

/* Operators of recurrent layers: which are convolutions; of decode, one token per sequence. */
static bool is_conv(const char *op) { return strncmp(op, "causal_conv1d", strlen("causal_conv1d")) == 0; }

static enum err_code finish_delta(struct arena *a, struct row *r, struct err *e)
{
    enum { CHUNK = 64 };
    struct kernel *k = &r->kernel;
    const bool separate = strcmp(r->framework, "trtllm") == 0; /* convolves keys alone, keeps states in bf16 */
    TRY(dtype_of(r, e));
    k->chunk_tokens = k->query_tokens > 1 ? CHUNK : 1;
    if (isnan(k->state_bytes)) k->state_bytes = separate ? 2 : 4;
    k->channels = k->key_heads * k->state_dim * (separate ? 1 : 2) + (separate ? 0 : k->heads * k->value_dim);
    if (is_conv(r->op)) k->kind = KERNEL_CONV;
    return name_row(a, r, r->op, k->gated > 0 ? "delta" : "linear", arena_printf(a, "%g,%g", k->key_heads, k->heads),
                    e);
}

static enum err_code finish_mamba(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    k->channels = k->heads * k->value_dim + 2 * k->key_heads * k->state_dim;
    if (isnan(k->state_bytes)) k->state_bytes = fmax(2, k->element_bytes);
    k->state_space = true;
    if (is_conv(r->op)) k->kind = KERNEL_CONV;
    return name_row(a, r, r->op, "mamba2", arena_printf(a, "%g,%g,%g", k->heads, k->value_dim, k->state_dim), e);
}

static enum err_code finish_quant(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    /* a scale needs one reading; scaling reads bf16 and writes fp8 */
    k->moved_bytes = k->m * k->k * (strcmp(r->op, "compute_scale") == 0 ? 2 : 3);
    return name_row(a, r, r->op, NULL, arena_printf(a, "%g", k->k), e);
}

/* The work of one expert that every token has. */
static enum err_code finish_mlp(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    k->topk = k->experts = k->tp = k->ep = k->active_experts = 1;
    k->routed_rows = k->max_rows = k->tokens;
    return name_row(a, r, NULL, r->kernel_name, arena_printf(a, "%g,%g", k->width, k->hidden), e);
}

static enum err_code not_known(const struct row *r, struct err *e)
{
    char shown[40];
    return err_set(e, ERR_INPUT, "op \"%s\" is not known", text_clean(shown, sizeof shown, r->op, strlen(r->op)));
}

static enum err_code check_op(const struct row *r, struct err *e)
{
    return strcmp(r->op, rows_format_of(&r->kernel)->op) == 0 ? ERR_OK : not_known(r, e);
}

static enum err_code finish_norm(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    TRY(check_op(r, e));
    k->moved_bytes = (2 * k->m + 1) * k->width * k->element_bytes; /* in and out, and the weights */
    k->written_bytes = k->m * k->width * k->element_bytes;
    return name_row(a, r, r->op, NULL, arena_printf(a, "%g", k->width), e);
}

/* Keys and values from 16 bits into their slots, whose numbers are read; in a byte each with a scale a row. */
static enum err_code finish_write(struct arena *a, struct row *r, struct err *e)
{
    enum { BF16_BYTES = 2, SCALE_BYTES = 4, SLOT_BYTES = 4 };
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    TRY(check_op(r, e));
    const double rows = 2 * k->kv_heads, scales = k->element_bytes < BF16_BYTES ? SCALE_BYTES : 0;
    k->moved_bytes = k->m * (rows * (k->head_dim * (BF16_BYTES + k->element_bytes) + scales) + SLOT_BYTES);
    k->written_bytes = k->m * rows * (k->head_dim * k->element_bytes + scales);
    return name_row(a, r, r->op, NULL, arena_printf(a, "%g,%g", k->kv_heads, k->head_dim), e);
}

/* Rows of the vocabulary that one sequence reads whole: p and q where a draft is refused, which is after a tree's
 * candidate of another place than the first and where drafts end; q alone when all are accepted. Of a tree the probe
 * keeps at level i the candidate (i + 1) mod branches. */
static double rows_judged(const struct kernel *k)
{
    return 2 * (k->accepted - floor(k->accepted / k->branches)) + (k->accepted < k->drafts ? 2 : 1);
}

void rows_move(struct kernel *k)
{
    enum { NUMBER_BYTES = 4, TURN_BYTES = 8 }; /* a position, a number drawn with, a token; a pair's fraction */
    if (k->rotary_dim > 0) {
        k->written_bytes = k->m * (k->heads + k->kv_heads) * k->rotary_dim * k->element_bytes;
        k->moved_bytes = 2 * k->written_bytes + NUMBER_BYTES * k->m + TURN_BYTES * k->rotary_dim / 2;
    } else if (k->drafts > 0) {
        k->written_bytes = NUMBER_BYTES * k->batch * (k->drafts + 1);
        k->moved_bytes = k->batch * (rows_judged(k) * k->vocab * k->element_bytes + NUMBER_BYTES) + k->written_bytes;
    } else {
        k->written_bytes = NUMBER_BYTES * k->batch;
        k->moved_bytes = k->batch * (k->vocab * k->element_bytes + NUMBER_BYTES) + k->written_bytes;
    }
}

static enum err_code finish_rope(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    TRY(check_op(r, e));
    if (k->rotary_dim > k->head_dim)
        return err_set(e, ERR_INPUT, "rotary_dim %g is above head_dim %g", k->rotary_dim, k->head_dim);
    rows_move(k);
    return name_row(a, r, r->op, k->interleaved > 0 ? "interleaved" : NULL,
                    arena_printf(a, "%g,%g,%g,%g", k->heads, k->kv_heads, k->head_dim, k->rotary_dim), e);
}

/* A list of the k largest, of the likely ones, or none: three ways of choosing. */
static enum err_code finish_sample(struct arena *a, struct row *r, struct err *e)
{
    enum { WHOLE_MILLI = 1000 }; /* not a unit */
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    TRY(check_op(r, e));
    rows_move(k);
    const char *how = k->top_k > 0 && k->top_k < k->vocab ? "top-k" : k->top_p_milli < WHOLE_MILLI ? "top-p" : NULL;
    return name_row(a, r, r->op, how, arena_printf(a, "%g,%g", k->vocab, k->top_k), e);
}

static enum err_code finish_verify(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    TRY(check_op(r, e));
    if (k->accepted > k->drafts) return err_set(e, ERR_INPUT, "accepted %g is above gamma %g", k->accepted, k->drafts);
    rows_move(k);
    return name_row(a, r, r->op, k->branches > 1 ? "tree" : NULL,
                    arena_printf(a, "%g,%g,%g,%g", k->drafts, k->vocab, k->accepted, k->branches), e);
}

static enum err_code finish_elementwise(struct arena *a, struct row *r, struct err *e)
{
    struct kernel *k = &r->kernel;
    const double head = k->width / k->heads;
    const struct {
        const char *op;
        double elements; /* read and written, per token */
    } ops[] = {
        {"emb", 2 * k->width},
        {"input_layernorm", 2 * k->width},
        {"post_attention_layernorm", 2 * k->width},
        {"add", 3 * k->width},
        {"attn_rope", 2 * head * (k->heads + k->kv_heads) / k->tp},
        {"mlp_act", 3 * k->hidden / k->tp},
    };
    TRY(dtype_of(r, e));
    for (size_t i = 0; i < COUNT(ops); i++) {
        if (strcmp(ops[i].op, r->op) != 0) continue;
        k->moved_bytes = k->m * ops[i].elements * k->element_bytes;
        return name_row(a, r, r->op, NULL, arena_printf(a, "%g,%g,%g", k->width, k->hidden, k->tp), e);
    }
    return not_known(r, e);
}

/* The probe's kernels join words by '-'. */
static bool is_spelled(const char *op, const char *name)
{
    for (; *op && (*op == *name || (*op == '-' && *name == '_')); op++) name++;
    return !*op && !*name;
}

static enum err_code finish_collective(struct arena *a, struct row *r, struct err *e)
{
    static const struct {
        const char *op;
        enum kernel_collective collective;
    } ops[] = {{"all_reduce", KERNEL_ALL_REDUCE},
               {"all_gather", KERNEL_ALL_GATHER},
               {"reduce_scatter", KERNEL_REDUCE_SCATTER},
               {"alltoall", KERNEL_ALL_TO_ALL}};
    struct kernel *k = &r->kernel;
    TRY(dtype_of(r, e));
    r->dtype = "";                                            /* only bytes count */
    if (!*r->framework && *r->version) r->framework = "nccl"; /* files that give the library's version alone */
    if (!(k->per_node > 0)) k->per_node = k->ranks;
    for (size_t i = 0; i < COUNT(ops); i++) {
        if (!is_spelled(r->op, ops[i].op)) continue;
        r->op = ops[i].op;
        k->collective = ops[i].collective;
        const char *more = k->per_node < k->ranks ? "across_nodes" : r->kernel_name;
        return name_row(a, r, r->op, more, arena_printf(a, "%g", k->payload_bytes), e);
    }
    return not_known(r, e);
}
