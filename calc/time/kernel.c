#include "calc/time/kernel.h"

#include <math.h>
#include <string.h>

static const char *const kind_names[KERNEL_KINDS_N] = {
    [KERNEL_GEMM] = "gemm",
    [KERNEL_PREFILL] = "prefill",
    [KERNEL_DECODE] = "decode",
    [KERNEL_MLA_PREFILL] = "mla_prefill",
    [KERNEL_MLA_DECODE] = "mla_decode",
    [KERNEL_MLA_BMM] = "mla_bmm",
    [KERNEL_MOE] = "moe",
    [KERNEL_MLP] = "mlp",
    [KERNEL_SCAN] = "scan",
    [KERNEL_CONV] = "conv",
    [KERNEL_ELEMENTWISE] = "elementwise",
    [KERNEL_COLLECTIVE] = "collective",
};

const char *kernel_kind_name(enum kernel_kind kind) { return kind_names[kind]; }

bool kernel_kind_find(const char *name, enum kernel_kind *out)
{
    for (int i = 0; i < KERNEL_KINDS_N; i++) {
        if (strcmp(kind_names[i], name) != 0) continue;
        *out = (enum kernel_kind)i;
        return true;
    }
    return false;
}

double kernel_norm(double x, double y, double p)
{
    const double big = fmax(x, y), small = fmin(x, y);
    if (!(big > 0)) return 0;
    return big * pow(1 + pow(small / big, p), 1 / p);
}

double kernel_hot_frac(double bytes, double room_bytes) { return fmin(1, fmax(0, 2 - bytes / room_bytes)); }

double kernel_throttle(double compute_s, double most) { return 1 + most * compute_s / (compute_s + 5e-3); }

double kernel_experts(double tokens, double topk, double experts)
{
    if (topk >= experts) return experts;
    return experts * -expm1(tokens * log1p(-topk / experts));
}

double kernel_pairs(double query_tokens, double prefix_tokens, double window)
{
    const double t = query_tokens, p = prefix_tokens;
    if (!(window > 0)) return t * p + t * (t + 1) / 2;
    const double rising = fmin(fmax(window - p, 0), t); /* queries that see fewer than a window */
    return rising * p + rising * (rising + 1) / 2 + (t - rising) * window;
}

/* -- work -- */

enum { BF16_BYTES = 2 };

/* What is computed from narrow formats is written in 16 bits. */
static double result_bytes(const struct kernel *k) { return fmax(k->element_bytes, BF16_BYTES); }

/* Of a product's activations: the weights' format, but that narrower weights are made factors of 16 bits where the unit
 * has those. */
static double input_bytes(const struct kernel *k)
{
    const bool wide = k->quant != KERNEL_QUANT_NONE || k->unit == HW_BF16 || k->unit == HW_FP16;
    return wide ? fmax(k->element_bytes, BF16_BYTES) : k->element_bytes;
}

double kernel_fed_bytes(const struct kernel *k)
{
    return k->unit == HW_BF16 || k->unit == HW_FP16 ? fmax(k->element_bytes, BF16_BYTES) : k->element_bytes;
}

static void gemm_work(const struct kernel *k, struct kernel_work *w)
{
    w->flops = 2 * k->groups * k->m * k->n * k->k;
    w->bytes =
        k->groups * (k->m * k->k * input_bytes(k) + k->n * k->k * k->element_bytes + k->m * k->n * result_bytes(k));
    /* writes the quantised copy, the product reads it */
    if (k->quant != KERNEL_QUANT_NONE) w->quant_bytes = 2 * k->groups * k->m * k->k * k->element_bytes;
}

static void prefill_work(const struct kernel *k, struct kernel_work *w)
{
    const double wide = k->head_dim + k->value_dim, t = k->query_tokens;
    const double keys = k->window > 0 ? fmin(k->prefix_tokens, k->window - 1) + t : k->prefix_tokens + t;
    w->flops = 2 * k->batch * k->heads * wide * kernel_pairs(t, k->prefix_tokens, k->window);
    w->bytes = k->batch * (t * k->heads * (k->head_dim * k->element_bytes + k->value_dim * result_bytes(k)) +
                           keys * k->kv_heads * wide * k->kv_element_bytes);
}

static void decode_work(const struct kernel *k, struct kernel_work *w)
{
    const double keys = k->window > 0 ? fmin(k->context_tokens, k->window) : k->context_tokens;
    const double wide = k->head_dim + k->value_dim;
    /* absorbed latent attention: the value is the first part of the key */
    const double entry = k->kind == KERNEL_MLA_DECODE ? k->head_dim : k->kv_heads * wide;
    w->flops = 2 * k->batch * k->heads * wide * keys;
    w->bytes = k->batch * (k->heads * (k->head_dim * k->element_bytes + k->value_dim * result_bytes(k)) +
                           keys * entry * k->kv_element_bytes);
}

static void moe_work(const struct kernel *k, struct kernel_work *w)
{
    const double active =
        isnan(k->active_experts) ? kernel_experts(k->tokens, k->topk, k->experts) / k->ep : k->active_experts;
    const double rows = isnan(k->routed_rows) ? k->tokens * k->topk / k->ep : k->routed_rows;
    const double products = 2 + k->gated, hidden = k->hidden / k->tp;
    w->flops = 2 * rows * products * k->width * hidden;
    w->bytes = active * products * k->width * hidden * k->element_bytes +
               fmin(k->tokens, rows) * k->width * result_bytes(k) * 2; /* tokens in and out, those with a row here */
    if (k->quant != KERNEL_QUANT_NONE) w->quant_bytes = rows * (k->width + hidden) * (BF16_BYTES + 1);
}

static void scan_work(const struct kernel *k, struct kernel_work *w)
{
    const double t = k->batch * k->query_tokens, state = k->state_dim * k->value_dim;
    /* delta rule: state x key, outer product, state x query; Mamba-2 has no first one, so it is not counted there */
    w->flops = 2 * t * k->heads * state * (k->gated > 0 ? 3 : 2);
    w->bytes = t * result_bytes(k) * (2 * k->key_heads * k->state_dim + 2 * k->heads * k->value_dim) +
               2 * k->batch * k->heads * state * k->state_bytes;
}

static void conv_work(const struct kernel *k, struct kernel_work *w)
{
    w->bytes = k->batch * k->channels * BF16_BYTES * 2 * (k->query_tokens + (k->query_tokens > 1 ? 0 : k->taps - 1));
}

/* Bytes that one rank must send, or receive, whichever is more. */
static double wire_bytes(const struct kernel *k, const struct hw *hw)
{
    const double n = k->ranks, ring = (n - 1) / n * k->payload_bytes;
    if (k->collective != KERNEL_ALL_REDUCE) return ring;
    return hw->nvls && k->per_node >= n ? fmin(2 * ring, k->payload_bytes) : 2 * ring; /* the switch sums */
}

static enum err_code collective_work(const struct kernel *k, const struct hw *hw, struct kernel_work *w, struct err *e)
{
    double rate = hw_link_rate(hw, (size_t)fmin(k->per_node, 1e6));
    if (isnan(rate)) rate = fmax(hw->link_bytes_per_s, hw->pcie_bytes_per_s);
    if (isnan(rate)) return err_set(e, ERR_INPUT, "%s: link.per_direction: not known", hw->file);
    w->bytes = wire_bytes(k, hw);
    w->memory_s = w->bound_s = w->credited_bound_s = w->bytes / rate;
    return ERR_OK;
}

/* Bytes of weights and cache, which a cold call finds in memory. */
static double memory_bytes(const struct kernel *k, const struct kernel_work *w)
{
    const double queries = k->batch * k->heads * (k->head_dim * k->element_bytes + k->value_dim * result_bytes(k));
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->groups * k->n * k->k * k->element_bytes;
    case KERNEL_DECODE:
    case KERNEL_MLA_DECODE: return w->bytes - queries;
    case KERNEL_MOE:
    case KERNEL_MLP: return fmax(0, w->bytes - 2 * k->tokens * k->width * result_bytes(k));
    case KERNEL_SCAN: return 2 * k->batch * k->heads * k->state_dim * k->value_dim * k->state_bytes;
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL:
    case KERNEL_CONV:
    case KERNEL_ELEMENTWISE:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return 0;
}

/* Of a call's bytes those that it writes; all where that is not told. */
static double written_bytes(const struct kernel *k, const struct kernel_work *w)
{
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->groups * k->m * k->n * result_bytes(k);
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL: return k->batch * k->query_tokens * k->heads * k->value_dim * result_bytes(k);
    case KERNEL_DECODE:
    case KERNEL_MLA_DECODE: return k->batch * k->heads * k->value_dim * result_bytes(k);
    case KERNEL_MOE:
    case KERNEL_MLP: return fmin(w->bytes, k->tokens * k->width * result_bytes(k));
    case KERNEL_ELEMENTWISE: return k->written_bytes > 0 ? k->written_bytes : w->bytes;
    case KERNEL_SCAN:
    case KERNEL_CONV:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return w->bytes;
}

/* What bounds a hot call of a core by its caches: what it reads. Stores go on beside loads, and at what rate is not
 * measured; where it is not told what is written, all is taken as read. */
static double hot_bound_s(const struct kernel *k, const struct kernel_work *w)
{
    const double read = w->bytes - written_bytes(k, w);
    return read > 0 ? w->memory_s * read / w->bytes : w->memory_s;
}

/* Of a cold call of a core: what it reads at the rate of reading, all at the best rate of reading and writing. */
static double host_memory_s(const struct kernel *k, const struct hw *hw, const struct kernel_work *w)
{
    const double read = hw->bandwidth_bytes_per_s, moved = hw->moved_bytes_per_s;
    if (!(moved > read)) return w->bytes / read;
    return fmax((w->bytes - written_bytes(k, w)) / read, w->bytes / moved);
}

enum err_code kernel_work(const struct kernel *k, const struct hw *hw, struct kernel_work *out, struct err *e)
{
    struct kernel_work w = {.flops = 0};
    double peak = 1;
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: gemm_work(k, &w); break;
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL: prefill_work(k, &w); break;
    case KERNEL_DECODE:
    case KERNEL_MLA_DECODE: decode_work(k, &w); break;
    case KERNEL_MOE:
    case KERNEL_MLP: moe_work(k, &w); break;
    case KERNEL_SCAN: scan_work(k, &w); break;
    case KERNEL_CONV: conv_work(k, &w); break;
    case KERNEL_ELEMENTWISE: w.bytes = k->moved_bytes; break;
    case KERNEL_COLLECTIVE:
        TRY(collective_work(k, hw, &w, e));
        *out = w;
        return ERR_OK;
    case KERNEL_KINDS_N: break;
    }
    if (w.flops > 0) TRY(hw_peak(hw, k->unit, &peak, e));
    double credit = isnan(hw->l2_bytes) ? 0 : hw->l2_bytes, rate = hw->bandwidth_bytes_per_s;
    if (k->host && !k->cold) rate = fmax(rate, hw_cache_rate(hw, w.bytes));
    if (k->host && (k->cold || rate > hw->bandwidth_bytes_per_s))
        credit = 0;
    else if (k->cold)
        credit = fmin(credit, w.bytes - memory_bytes(k, &w));
    w.compute_s = w.flops / peak;
    const bool cold_host = k->host && k->cold;
    w.memory_s = cold_host ? host_memory_s(k, hw, &w) : w.bytes / rate;
    if (k->host && k->compute_slower > 0) w.compute_s *= k->compute_slower;
    if (k->host && k->memory_slower > 0) w.memory_s *= k->memory_slower;
    w.bound_s = fmax(w.compute_s, k->host && !k->cold ? hot_bound_s(k, &w) : w.memory_s);
    w.credited_bound_s = cold_host ? w.bound_s : fmin(w.bound_s, fmax(w.compute_s, fmax(0, w.bytes - credit) / rate));
    w.weak = w.bytes < credit;
    *out = w;
    return ERR_OK;
}

/* -- forms -- */

static const struct kernel_param quant_params[2] = {
    {"quant_start_s", "s", "start-up of the quantisation kernels", 1e-8, 3e-5, {3e-6, 1e-6}, KERNEL_CYCLES},
    {"quant_bandwidth_frac", "fraction", "of the bandwidth that quantising reaches", 0.02, 1, {0.5, 0.3}, KERNEL_KEPT},
};

const struct kernel_param kernel_baseline_params[KERNEL_BASELINE_PARAMS_N] = {
    {"start_s", "s", "start-up", 1e-7, 3e-4, {5e-6, 2e-5}, KERNEL_CYCLES},
    {"compute_frac", "fraction", "of the peak rate", 0.01, 1, {0.6, 0.3}, KERNEL_KEPT},
    {"memory_frac", "fraction", "of the bandwidth", 0.01, 1, {0.8, 0.4}, KERNEL_KEPT},
};

double kernel_baseline_s(const struct kernel_work *w, const double *p)
{
    return p[0] + fmax(w->compute_s / p[1], w->memory_s / p[2]);
}

/* From sm_90 on a pair of blocks fetches one operand of its tiles once for both (multicast in clusters of two): of two
 * operands as large as each other an SM draws three quarters. */
#define SHARED_FEED (3.0 / 4)

enum { CLUSTERS = 90 };

static double feed_share(const struct hw *hw) { return hw->sm_version >= CLUSTERS ? SHARED_FEED : 1; }

double kernel_scale(enum kernel_scaling scaling, const struct hw *from, const struct hw *to)
{
    const double clock = to->clock_mhz / from->clock_mhz, sms = to->sm_count / from->sm_count;
    const double vector = to->peak_flops_per_s[HW_FP32_VECTOR] / from->peak_flops_per_s[HW_FP32_VECTOR] / sms;
    const double sm_rate = sms * clock * from->bandwidth_bytes_per_s / to->bandwidth_bytes_per_s;
    switch (scaling) {
    case KERNEL_KEPT: break;
    case KERNEL_CYCLES: return 1 / clock;
    case KERNEL_VECTOR: return 1 / (isnan(vector) ? clock : vector);
    case KERNEL_SM_RATE: return sm_rate;
    case KERNEL_SM_FEED: return sm_rate * feed_share(from) / feed_share(to);
    }
    return 1;
}

const struct kernel_form *kernel_form_of(const struct kernel *k)
{
    if (k->host && k->kind != KERNEL_COLLECTIVE) return &kernel_host_form;
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return &kernel_gemm_form;
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL: return &kernel_prefill_form;
    case KERNEL_DECODE: return &kernel_decode_form;
    case KERNEL_MLA_DECODE: return &kernel_mla_decode_form;
    case KERNEL_MOE:
    case KERNEL_MLP: return &kernel_moe_form;
    case KERNEL_SCAN: return &kernel_scan_form;
    case KERNEL_CONV: return &kernel_conv_form;
    case KERNEL_ELEMENTWISE: return &kernel_elementwise_form;
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return &kernel_collective_form;
}

size_t kernel_params_n(const struct kernel *k)
{
    return kernel_form_of(k)->n_params + (k->quant != KERNEL_QUANT_NONE ? 2 : 0);
}

const struct kernel_param *kernel_param(const struct kernel *k, size_t i)
{
    const struct kernel_form *form = kernel_form_of(k);
    return i < form->n_params ? &form->params[i] : &quant_params[i - form->n_params];
}

/* What a form needs of a device. */
static enum err_code check_device(const struct hw *hw, struct err *e)
{
    if (isnan(hw->sm_count)) return err_set(e, ERR_INPUT, "%s: sm_count: not known", hw->file);
    if (isnan(hw->l2_bytes)) return err_set(e, ERR_INPUT, "%s: l2: not known", hw->file);
    return ERR_OK;
}

static void features_of(const struct kernel *k, const struct hw *hw, const struct kernel_work *w, double *room,
                        struct kernel_features *out)
{
    out->credited_bound_s = w->credited_bound_s;
    out->quant_s = w->quant_bytes / hw->bandwidth_bytes_per_s;
    out->quantised = k->quant != KERNEL_QUANT_NONE;
    out->n = 0;
    out->v = room;
}

enum err_code kernel_prepare(const struct kernel *k, const struct hw *hw, double *room, struct kernel_features *out,
                             struct err *e)
{
    struct kernel_work w;
    TRY(kernel_work(k, hw, &w, e));
    TRY(check_device(hw, e));
    features_of(k, hw, &w, room, out);
    kernel_form_of(k)->prepare(k, hw, &w, out);
    return ERR_OK;
}

/* With what quantises inside; at least the bound. */
static double with_quant_s(const struct kernel_form *form, const struct kernel_features *f, const double *p, double s)
{
    if (f->quantised) s += p[form->n_params] + f->quant_s / p[form->n_params + 1];
    return fmax(s, f->credited_bound_s);
}

double kernel_time_s(const struct kernel_form *form, const struct kernel_features *f, const double *p)
{
    return with_quant_s(form, f, p, form->time_s(f, p));
}

enum err_code kernel_once_s(const struct kernel *k, const struct hw *hw, const struct kernel_work *w, const double *p,
                            double *room, double *out_s, struct err *e)
{
    const struct kernel_form *form = kernel_form_of(k);
    struct kernel_features f;
    TRY(check_device(hw, e));
    features_of(k, hw, w, room, &f);
    if (form->once_s) {
        *out_s = with_quant_s(form, &f, p, form->once_s(k, hw, w, p));
        return ERR_OK;
    }
    form->prepare(k, hw, w, &f);
    *out_s = kernel_time_s(form, &f, p);
    return ERR_OK;
}
