/* Calibrated forms against their description in MODEL.md "Forms", tile by tile and split by split with nothing left
 * out, on random calls, devices and parameters; work and credit of every kind where test_kernel.c has only round
 * numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "calc/time/kernel.h"

enum { CALLS = 400 };

struct dice {
    uint64_t state;
};

static double roll(struct dice *d) /* 0 to 1 */
{
    uint64_t z = (d->state += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static double between(struct dice *d, double lo, double hi) { return lo * pow(hi / lo, roll(d)); }
static double whole(struct dice *d, double lo, double hi) { return floor(between(d, lo, hi + 1)); }
static double heads_or_tails(struct dice *d, double a, double b) { return roll(d) < 0.5 ? a : b; }

/* A device between those there are; of no name. */
static struct hw device(struct dice *d)
{
    struct hw hw = {.file = "made", .name = "made", .link_pair_bytes_per_s = (double)NAN};
    for (int i = 0; i < HW_DTYPES_N; i++) hw.peak_flops_per_s[i] = between(d, 1e13, 3e15);
    hw.bandwidth_bytes_per_s = between(d, 3e11, 8e12);
    hw.l2_bytes = between(d, 5e6, 2e8);
    hw.sm_count = whole(d, 37, 211);
    hw.link_bytes_per_s = between(d, 1e11, 9e11);
    hw.link_domain = 8;
    hw.pcie_bytes_per_s = between(d, 1e10, 9e10);
    hw.nvls = roll(d) < 0.5;
    hw.sm_version = roll(d) < 0.3 ? (double)NAN : heads_or_tails(d, 80, 90);
    return hw;
}

static void near(double found, double wanted, const char *what, int call)
{
    if (!(fabs(found - wanted) <= 1e-11 * fabs(wanted)))
        fail_msg("%s, call %d: found %.17g, wanted %.17g", what, call, found, wanted);
}

/* ---- pieces of several forms ---- */

static double join(double x, double y, double p) /* (x^p + y^p)^(1/p), without overflow */
{
    return x > y ? x * exp(log1p(pow(y / x, p)) / p) : y * exp(log1p(pow(x / y, p)) / p);
}

static double slowed(double s, double most) { return s + most * s * s / (s + 0.005); }

/* Seconds per second at full bandwidth of operands that take `part` of the last-level cache. */
static double pace(double part, double room, double memory_frac, double hot_ratio)
{
    const double cold = 1 / memory_frac, hot = 1 / hot_ratio < cold ? 1 / hot_ratio : cold;
    const double found = part <= room ? 1 : part >= 2 * room ? 0 : (2 * room - part) / room;
    return found * hot + (1 - found) * cold;
}

/* ---- forms: seconds of a call by hand, p as named in the form ---- */

/* Units of 16 bits multiply activations of 16, however narrow the weights. */
static double activation_bytes(const struct kernel *k)
{
    const bool wide = k->unit == HW_BF16 || k->unit == HW_FP16;
    return wide && k->element_bytes < 2 ? 2 : k->element_bytes;
}

typedef double by_hand(const struct kernel *k, const struct hw *hw, const double *p);

static double product_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    static const double ROWS[] = {64, 128, 192, 256}, COLUMNS[] = {32, 64, 96, 128, 192, 256};
    static const double SPLITS[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
    const double b = k->element_bytes, rate = hw->bandwidth_bytes_per_s, peak = hw->peak_flops_per_s[k->unit];
    const double in = activation_bytes(k), x = k->groups * k->m * k->k * in, w = k->groups * k->n * k->k * b,
                 y = k->groups * k->m * k->n * 2;
    double best = (double)INFINITY, best_sum = 0;
    for (size_t i = 0; i < 4 * 6 * 10; i++) {
        const double rows = ROWS[i / 60], columns = COLUMNS[i / 10 % 6], s = SPLITS[i % 10];
        const bool scaled = k->kind == KERNEL_GEMM && k->quant == KERNEL_QUANT_BLOCK; /* rows of 64, whole depths */
        if (scaled && (rows != 64 || s > 1)) continue;
        if (s > 1 && k->k < s * 128) continue;
        const double depth = 64 * ceil(k->k / s / 64),
                     blocks = s * k->groups * ceil(k->m / rows) * ceil(k->n / columns);
        const double waves = ceil(blocks / hw->sm_count), even = blocks < hw->sm_count ? 1 : blocks / hw->sm_count;
        const double tile_s = 2 * rows * columns * depth / (p[1] * peak / hw->sm_count);
        const double feed_s = waves * (rows * in + columns * b) * depth / (p[2] * rate / hw->sm_count);
        const double compute_s = waves * tile_s + p[8] * (even - waves) * tile_s;
        double own_s =
            (compute_s > feed_s ? compute_s : feed_s) + waves * rows * columns * 2 / (p[3] * rate / hw->sm_count);
        if (scaled) own_s += waves * ceil(k->k / 128) * p[7];
        const double sum_s = s > 1 ? 8 * s * k->groups * k->m * k->n / (p[6] * rate) + p[7] : 0;
        if (own_s + sum_s < best) {
            best = own_s + sum_s;
            best_sum = sum_s;
        }
    }
    const double l2 = hw->l2_bytes, copies = k->cold ? (double)INFINITY : (x + 6 * w + y) / l2;
    const double memory_s = x / rate * pace((x + w + y) / l2, p[10], p[4], p[9]) +
                            w / rate * pace(copies, p[10], p[4], p[9]) + y / rate / p[4];
    return p[0] + best_sum + join(slowed(best - best_sum, p[11]), memory_s, p[5]);
}

/* Steps of 128 keys over n blocks whose first sees `first` steps and whose last sees `last`, none more than `most`. */
static double ramp(double n, double first, double last, double most)
{
    if (most >= last) return n * (first + last) / 2;
    const double slope = (last - first) / (n > 1 ? n - 1 : 1);
    double below = slope > 1e-9 ? (most - first) / slope : (most - first) / 1e-9; /* blocks below the window */
    below = below < 0 ? 0 : below > n ? n : below;
    return n * most - below * (most - first) / 2;
}

static double prompt_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    const double rate = hw->bandwidth_bytes_per_s, peak = hw->peak_flops_per_s[k->unit],
                 wide = k->head_dim + k->value_dim;
    const double t = k->query_tokens, before = k->prefix_tokens, group = k->heads / k->kv_heads;
    const double keys = before + t, kept = k->window > 0 && k->window - 1 < before ? k->window - 1 : before;
    const double queries_bytes = t * k->heads * (k->head_dim * k->element_bytes + 2 * k->value_dim);
    const double memory_s = k->batch * (queries_bytes + (kept + t) * k->kv_heads * wide * k->kv_element_bytes) / rate;
    /* FlashAttention-2 of devices before sm_90: half blocks, of one head each but for single queries; a kernel that
     * knows no groups has half blocks there for prompts that fit one */
    const bool old = hw->sm_version < 90, flash2 = old && k->flash2 > 0, hides = k->window > 0 && k->window < keys;
    const bool packed = group > 1 && !(k->ungrouped > 0) && !(flash2 && t > 1);
    const double high = flash2 || (old && k->ungrouped > 0 && t <= 64) ? 64 : 128;
    const double share = packed ? group : 1, units = k->batch * (packed ? k->kv_heads : k->heads);
    const double n = ceil(t * share / high), most = k->window > 0 ? 1 + ceil(k->window / 128) : (double)INFINITY;
    const double last = ceil(keys / 128), of_first = t < high / share ? t : high / share;
    const double first = ceil((before + of_first) / 128) < last ? ceil((before + of_first) / 128) : last;
    const double longest = most < last ? most : last, steps = ramp(n, first, last, most);
    /* a step multiplies the block's queries by 128 keys and their scores by 128 values, on one SM, both as wide as
     * computed; two half blocks share an SM, so each pays half of what goes with 128 rows */
    const double computed = k->padded_dim > 0 ? 2 * k->padded_dim : wide;
    const double step_s = 2.0 * high * 128 * computed / (p[1] * peak / hw->sm_count) + p[4] * high / 128;
    const double block_s = p[3] + (hides ? p[11] : 0) + (packed ? p[2] : 0);
    const double longest_s = longest * step_s + block_s,
                 all_s = units / hw->sm_count * (steps * step_s + n * block_s * high / 128);
    const double best = all_s + p[8] * longest_s > longest_s ? all_s + p[8] * longest_s : longest_s;
    const double cache_s = k->batch * t * k->kv_heads * wide * (2 + k->kv_element_bytes) / rate;
    return p[0] + join(slowed(best, p[9]), memory_s / p[5], p[7]) + cache_s / p[6] + k->batch * t * p[10] / 1e3;
}

static double token_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    static const double SPLITS[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128};
    const bool latent = k->kind == KERNEL_MLA_DECODE, hidden = k->window > 0 && k->window < k->context_tokens;
    const double rate = hw->bandwidth_bytes_per_s, sm = hw->sm_count, peak = hw->peak_flops_per_s[k->unit];
    const double keys = hidden ? k->window : k->context_tokens, wide = k->head_dim + k->value_dim;
    const double sets = latent ? 1 : k->ungrouped > 0 ? k->heads : k->kv_heads; /* of keys that are read */
    const double of_one = (latent ? k->head_dim : wide) * k->kv_element_bytes;  /* a key, its value with it */
    const double units = k->batch * sets * ceil(k->heads / sets / 64), all = ceil(k->context_tokens / 128);
    /* a window that begins inside a block reaches into one more */
    const double blocks = k->window > 0 && ceil(k->window / 128) + 1 < all ? ceil(k->window / 128) + 1 : all;
    const double queries_bytes = k->batch * k->heads * (k->head_dim * k->element_bytes + 2 * k->value_dim);
    const double bytes = queries_bytes + k->batch * keys * (latent ? 1 : k->kv_heads) * of_one;
    const double part = k->cold ? (double)INFINITY : bytes / hw->l2_bytes;
    const double hot = 1 / p[5] < 1 / p[4] ? 1 / p[5] : 1 / p[4], read_s = units * keys * of_one / rate * hot;
    double memory_s = bytes / rate * (latent ? 1 / p[4] : pace(part, 0.5, p[4], p[5]));
    if (read_s > memory_s) memory_s = read_s;
    double best = (double)INFINITY, best_own = 0, best_sum = 0;
    for (size_t i = 0; i < sizeof SPLITS / sizeof SPLITS[0] && SPLITS[i] <= blocks; i++) {
        const double s = SPLITS[i], waves = ceil(units * s / sm), steps = waves * ceil(blocks / s);
        if (!latent && s > 32) break;
        if (!latent && s > 1 && hw->sm_version < 90 && k->flash2 > 0 && k->heads == sets)
            break; /* splits only groups */
        /* wide heads are read slower; eight query heads of a group are a row of the matrix unit */
        const double reading = 128 * of_one / (p[2] * rate / sm), slower = k->head_dim * k->head_dim / (p[6] * p[6]);
        double own_s = waves * p[1];
        if (latent)
            own_s += steps * (reading + p[10] + 2 * 64 * 128 * wide / (p[3] * peak / sm));
        else
            own_s += steps * (reading * (1 + slower) + ceil(k->heads / sets / 8) * p[10]);
        const double sum_s = s > 1 ? p[7] + 8 * s * k->batch * k->heads * k->value_dim / (p[8] * rate) : 0;
        const double all_s = hypot(own_s, memory_s) + sum_s;
        if (all_s >= best) continue;
        best = all_s;
        best_own = own_s;
        best_sum = sum_s;
    }
    const double s = p[0] + join(best_own, memory_s, p[9]) + best_sum;
    if (!latent) return s + (hidden ? p[3] : 0) + k->batch * p[11];
    return s + k->batch * p[6] + 2 * k->batch * k->heads * k->head_dim * k->element_bytes / (p[11] * rate);
}

/* Two grouped products: up (with the gate beside it) and down. */
static double experts_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    static const double ROWS[] = {64, 128, 256}, COLUMNS[] = {32, 64, 128, 256};
    const double rate = hw->bandwidth_bytes_per_s, sm = hw->sm_count, peak = hw->peak_flops_per_s[k->unit];
    const double D = k->width, F = k->hidden / k->tp, pairs = k->tokens * k->topk, up = k->gated > 0 ? 2 * F : F;
    const double active =
        isnan(k->active_experts) ? kernel_experts(k->tokens, k->topk, k->experts) / k->ep : k->active_experts;
    const double rows = isnan(k->routed_rows) ? pairs / k->ep : k->routed_rows;
    const double in = activation_bytes(k), mean = rows / (active > 1 ? active : 1),
                 most = k->max_rows > mean ? k->max_rows : mean;
    double best[2] = {(double)INFINITY, (double)INFINITY};
    for (size_t i = 0; i < 12; i++) {
        const double tm = ROWS[i / 4], tn = COLUMNS[i % 4], each = ceil(mean / tm);
        const double strips = (active - 1) * each + ceil(most / tm); /* the fullest expert has more */
        const double blocks[] = {strips * ceil(up / tn), strips * ceil(D / tn)}, depth[] = {D, F};
        double s[2];
        for (size_t g = 0; g < 2; g++)
            s[g] = (blocks[g] > sm ? blocks[g] / sm : 1) *
                   (2 * tm * tn * depth[g] / (p[1] * peak / sm) +
                    (tm * in + tn * k->element_bytes) * depth[g] / (p[2] * rate / sm) + p[3]);
        if (s[0] + s[1] < best[0] + best[1]) memcpy(best, s, sizeof best);
    }
    const double bytes[] = {active * up * D * k->element_bytes, active * F * D * k->element_bytes};
    const double moved = rows * 2 * (3 * D + up + F), foreign = (rows < pairs ? pairs - rows : 0) * 2 * (D + up);
    const double part = k->cold ? (double)INFINITY : (bytes[0] + bytes[1]) / hw->l2_bytes;
    double s = p[0] + moved / (p[6] * rate) + k->experts / k->ep * p[7] + 4 * k->tokens * D / (p[8] * rate) +
               foreign / (p[9] * rate);
    const double slower = slowed(best[0] + best[1], p[10]) / (best[0] + best[1]);
    for (size_t g = 0; g < 2; g++) s += join(best[g] * slower, bytes[g] / rate * pace(part, 1, p[4], 1), p[5]);
    return s;
}

static double scan_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    const double units = k->batch * k->heads, chunks = ceil(k->query_tokens / k->chunk_tokens),
                 t = k->batch * k->query_tokens;
    const double state = k->heads * k->state_dim * k->value_dim, rate = hw->bandwidth_bytes_per_s;
    const double flops = t * state * (k->gated > 0 ? 6 : 4);
    const double bytes =
        4 * t * (k->key_heads * k->state_dim + k->heads * k->value_dim) + 2 * k->batch * state * k->state_bytes;
    const double own_s = chunks * (ceil(units / hw->sm_count) * p[1] + units / hw->sm_count * p[2]) +
                         flops / (p[3] * hw->peak_flops_per_s[k->unit]);
    const double part = k->cold ? (double)INFINITY : bytes / hw->l2_bytes;
    return p[0] + join(own_s, bytes / rate * pace(part, p[7], p[4], p[6]), p[5]);
}

static double conv_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    const double columns = k->query_tokens > 1 ? k->query_tokens : k->taps; /* of one token the ones before too */
    const double bytes = 4 * k->batch * k->channels * columns;
    const double own_s =
        k->query_tokens * p[1] + k->batch * k->channels / hw->sm_count * (k->query_tokens / 1e3 * p[2] + p[3]);
    return p[0] + join(own_s, bytes / hw->bandwidth_bytes_per_s * pace(bytes / hw->l2_bytes, p[7], p[4], p[6]), p[5]);
}

static double rows_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    const double memory_s = k->moved_bytes / hw->bandwidth_bytes_per_s;
    return p[0] + join(ceil(k->m / hw->sm_count) * p[1],
                       memory_s * pace(k->moved_bytes / hw->l2_bytes, p[5], p[2], p[4]), p[3]);
}

static double link_s(const struct kernel *k, const struct hw *hw, const double *p)
{
    const bool reduces = k->collective == KERNEL_ALL_REDUCE, summed = reduces && hw->nvls && k->per_node >= k->ranks;
    const double n = k->ranks, ring = (reduces ? 2 : 1) * (n - 1) / n * k->payload_bytes;
    const bool inside = k->per_node <= hw->link_domain;
    const double rate =
        inside || hw->link_bytes_per_s > hw->pcie_bytes_per_s ? hw->link_bytes_per_s : hw->pcie_bytes_per_s;
    const double peers = reduces ? (n - 1) * k->payload_bytes : ring; /* short messages go to every peer at once */
    const double low_s = join(p[0] + (n - 1) * p[1], peers / rate / p[2], p[7]);
    double high = ring / rate / p[5];
    const double once = k->payload_bytes / rate / p[6];
    if (summed && ring > k->payload_bytes && once < high) high = once;
    const double high_s = join(p[3] + (n - 1) * p[4], high, p[7]);
    return low_s < high_s ? low_s : high_s;
}

/* ---- random calls ---- */

static struct kernel call_of(struct dice *d, enum kernel_kind kind)
{
    struct kernel k = {.kind = kind, .unit = (enum hw_dtype)whole(d, 1, HW_DTYPES_N - 1), .cold = roll(d) < 0.5};
    const double kv = whole(d, 1, 16), group = whole(d, 1, 40);
    const bool product = kind == KERNEL_GEMM || kind == KERNEL_MLA_BMM;
    if (product || kind == KERNEL_MOE || kind == KERNEL_MLP) k.quant = (enum kernel_quant)(whole(d, 1, 3) - 1);
    k.element_bytes = heads_or_tails(d, 1, 2);
    k.kv_element_bytes = heads_or_tails(d, 1, 2);
    k.m = whole(d, 1, 20000);
    k.n = whole(d, 100, 30000);
    k.k = whole(d, 100, 20000);
    k.groups = kind == KERNEL_GEMM ? whole(d, 1, 3) : whole(d, 1, 128);
    k.batch = whole(d, 1, 300);
    k.query_tokens = kind == KERNEL_CONV && roll(d) < 0.3 ? whole(d, 1, 2) : whole(d, 1, 9000);
    k.prefix_tokens = roll(d) < 0.4 ? 0 : whole(d, 1, 5000);
    k.context_tokens = whole(d, 1, 60000);
    k.heads = kv * group;
    k.kv_heads = kv;
    k.head_dim = whole(d, 32, 600);
    k.value_dim = whole(d, 32, 300);
    k.window = roll(d) < 0.5 ? 0 : whole(d, 1, 6000);
    k.ungrouped = roll(d) < 0.3 ? 1 : 0;
    k.flash2 = !(k.ungrouped > 0) && roll(d) < 0.5 ? 1 : 0; /* of another engine */
    k.padded_dim = roll(d) < 0.5 ? 0 : whole(d, 64, 1024);
    k.tokens = whole(d, 1, 9000);
    k.width = whole(d, 500, 8000);
    k.topk = whole(d, 1, 9);
    k.experts = whole(d, 8, 300);
    k.ep = whole(d, 1, 8);
    k.tp = whole(d, 1, 5);
    k.hidden = k.tp * whole(d, 100, 3000);
    k.gated = heads_or_tails(d, 0, 1);
    k.active_experts = roll(d) < 0.5 ? (double)NAN : whole(d, 1, 50);
    k.routed_rows = roll(d) < 0.5 ? (double)NAN : whole(d, 1, 9000);
    k.max_rows = roll(d) < 0.5 ? (double)NAN : whole(d, 1, 3000);
    k.key_heads = kv;
    k.state_dim = whole(d, 16, 256);
    k.chunk_tokens = 64;
    k.state_bytes = heads_or_tails(d, 2, 4);
    k.channels = whole(d, 100, 20000);
    k.taps = whole(d, 2, 7);
    k.moved_bytes = whole(d, 1000, 1000000007);
    k.collective = (enum kernel_collective)(whole(d, 1, 4) - 1);
    k.ranks = whole(d, 2, 16);
    k.per_node = whole(d, 2, 16);
    k.payload_bytes = whole(d, 1000, 1000000007);
    return k;
}

static void hold(enum kernel_kind kind, by_hand *hand, uint64_t seed)
{
    struct dice d = {seed};
    for (int i = 0; i < CALLS; i++) {
        const struct hw hw = device(&d);
        const struct kernel k = call_of(&d, kind);
        const struct kernel_form *form = kernel_form_of(&k);
        double room[KERNEL_FEATURES_MAX], p[KERNEL_PARAMS_MAX];
        struct kernel_features f;
        struct err e = {.code = ERR_OK};
        if (kernel_prepare(&k, &hw, room, &f, &e) != ERR_OK) fail_msg("%s", e.text);
        for (size_t j = 0; j < kernel_params_n(&k); j++)
            p[j] = between(&d, kernel_param(&k, j)->lo, kernel_param(&k, j)->hi);
        const double s = hand(&k, &hw, p);
        near(form->time_s(&f, p), s, form->name, i);
        struct kernel_work w;
        assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
        const double quantising_s = w.quant_bytes / hw.bandwidth_bytes_per_s / p[form->n_params + 1];
        const double whole_s = k.quant == KERNEL_QUANT_NONE ? s : s + p[form->n_params] + quantising_s;
        near(kernel_time_s(form, &f, p), whole_s > w.credited_bound_s ? whole_s : w.credited_bound_s, form->name, i);
        const double kept_s = kernel_time_s(form, &f, p);
        double again[KERNEL_FEATURES_MAX], once_s;
        assert_int_equal(kernel_once_s(&k, &hw, &w, p, again, &once_s, NULL), ERR_OK);
        assert_memory_equal(&once_s, &kept_s, sizeof once_s);
    }
}

static void test_products(void **state)
{
    (void)state;
    hold(KERNEL_GEMM, product_s, 101);
    hold(KERNEL_MLA_BMM, product_s, 103);
}

static void test_prompts(void **state)
{
    (void)state;
    hold(KERNEL_PREFILL, prompt_s, 107);
    hold(KERNEL_MLA_PREFILL, prompt_s, 109);
}

static void test_tokens(void **state)
{
    (void)state;
    hold(KERNEL_DECODE, token_s, 113);
    hold(KERNEL_MLA_DECODE, token_s, 127);
}

static void test_experts(void **state)
{
    (void)state;
    hold(KERNEL_MOE, experts_s, 131);
}

static void test_recurrent(void **state)
{
    (void)state;
    hold(KERNEL_SCAN, scan_s, 137);
    hold(KERNEL_CONV, conv_s, 139);
}

static void test_rows_and_links(void **state)
{
    (void)state;
    hold(KERNEL_ELEMENTWISE, rows_s, 149);
    hold(KERNEL_COLLECTIVE, link_s, 151);
}

/* ---- work ---- */

/* Weights, cache and state: what a cold call reads from memory, here and nothing else of a huge cache. */
static double kept_bytes(const struct kernel *k)
{
    const double wide = k->head_dim + k->value_dim,
                 keys = k->window > 0 && k->window < k->context_tokens ? k->window : k->context_tokens;
    switch (k->kind) {
    case KERNEL_GEMM:
    case KERNEL_MLA_BMM: return k->groups * k->n * k->k * k->element_bytes;
    case KERNEL_DECODE: return k->batch * keys * k->kv_heads * wide * k->kv_element_bytes;
    case KERNEL_MLA_DECODE: return k->batch * keys * k->head_dim * k->kv_element_bytes;
    case KERNEL_SCAN: return 2 * k->batch * k->heads * k->state_dim * k->value_dim * k->state_bytes;
    case KERNEL_MOE:
    case KERNEL_MLP: {
        const double active =
            isnan(k->active_experts) ? kernel_experts(k->tokens, k->topk, k->experts) / k->ep : k->active_experts;
        const double rows = isnan(k->routed_rows) ? k->tokens * k->topk / k->ep : k->routed_rows;
        const double absent = rows < k->tokens ? k->tokens - rows : 0; /* tokens without a row here are not read */
        const double bytes =
            active * (2 + k->gated) * k->width * k->hidden / k->tp * k->element_bytes - absent * k->width * 4;
        return bytes > 0 ? bytes : 0;
    }
    case KERNEL_PREFILL:
    case KERNEL_MLA_PREFILL:
    case KERNEL_CONV:
    case KERNEL_ELEMENTWISE:
    case KERNEL_COLLECTIVE:
    case KERNEL_KINDS_N: break;
    }
    return 0;
}

static void test_a_cold_call_is_credited_its_activations(void **state)
{
    (void)state;
    struct dice d = {157};
    for (int i = 0; i < CALLS * KERNEL_COLLECTIVE; i++) {
        struct hw hw = device(&d);
        struct kernel k = call_of(&d, (enum kernel_kind)(i % KERNEL_COLLECTIVE));
        struct kernel_work w;
        for (int j = 0; j < HW_DTYPES_N; j++) hw.peak_flops_per_s[j] = 1e30;
        hw.l2_bytes = 1e18;
        k.cold = true;
        assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
        const double least_s = w.flops > 0 ? w.flops / 1e30 : 0, kept_s = kept_bytes(&k) / hw.bandwidth_bytes_per_s;
        if (!(fabs(w.credited_bound_s - (kept_s > least_s ? kept_s : least_s)) <= 1e-9 * w.memory_s))
            fail_msg("%s: credited %.17g s, kept %.17g", kernel_kind_name(k.kind), w.credited_bound_s, kept_s);
        k.cold = false;
        assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
        near(w.credited_bound_s, least_s, kernel_kind_name(k.kind), i);
        assert_true(w.weak);
        hw.l2_bytes = w.bytes; /* a cache that holds it exactly is not larger */
        assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
        assert_false(w.weak);
        hw.l2_bytes = (double)NAN;
        assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
        near(w.credited_bound_s, w.bound_s, kernel_kind_name(k.kind), i);
    }
}

/* bf16 read, narrow copy and its scales written, per row of the two products. */
static void test_experts_quantise_both_inputs(void **state)
{
    (void)state;
    struct dice d = {163};
    for (int i = 0; i < CALLS; i++) {
        const struct hw hw = device(&d);
        const struct kernel k = call_of(&d, i % 2 ? KERNEL_MOE : KERNEL_GEMM);
        struct kernel_work w;
        assert_int_equal(kernel_work(&k, &hw, &w, NULL), ERR_OK);
        double want = 0;
        if (k.kind == KERNEL_GEMM) near(w.flops, 2 * k.groups * k.m * k.n * k.k, "flops", i);
        if (k.kind == KERNEL_GEMM)
            want = 2 * k.groups * k.m * k.k * k.element_bytes;
        else
            want = (isnan(k.routed_rows) ? k.tokens * k.topk / k.ep : k.routed_rows) * 3 * (k.width + k.hidden / k.tp);
        near(w.quant_bytes, k.quant == KERNEL_QUANT_NONE ? 0 : want, kernel_kind_name(k.kind), i);
    }
}

static void test_pieces(void **state)
{
    (void)state;
    const struct kernel_work w = {.compute_s = 0.0037, .memory_s = 0.0011},
                             v = {.compute_s = 0.0003, .memory_s = 0.0011};
    const double p[] = {0.00013, 0.61, 0.37};
    near(kernel_baseline_s(&w, p), 0.00013 + 0.0037 / 0.61, "baseline", 0);
    near(kernel_baseline_s(&v, p), 0.00013 + 0.0011 / 0.37, "baseline", 1);
    near(kernel_throttle(0.003, 0.08), 1.03, "clocks", 0); /* 3 ms: three eighths of it */
    near(kernel_throttle(0, 0.08), 1, "clocks", 1);
    near(kernel_pairs(29, 7, 0.5), 14.5, "a window of half a token", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_recurrent),
        cmocka_unit_test(test_rows_and_links),
        cmocka_unit_test(test_a_cold_call_is_credited_its_activations),
        cmocka_unit_test(test_experts_quantise_both_inputs),
        cmocka_unit_test(test_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
