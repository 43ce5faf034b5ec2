#include "calc/learn/bank_arch.h"

#define INT(n) sym_int(m->c, (n))

enum err_code bank_formats_int4(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const char *const MODELS[] = {"llama-2-13b", "llama-2-7b", "llama-3-8b", "phi-4", "llama-3-70b", "yi-34b"};
    static const int64_t GROUPS[] = {32, 64, 128};
    struct model wide, d;
    struct dtype f;
    struct bank_counts n, small;
    struct cost_parameters p;
    double cached;
    TRY(bank_model(m, 6, MODELS, &wide, e));
    const int64_t g = bank_pick(m, 3, GROUPS), S = 256 * bank_draw(m, 2, 24);
    TRY(dtype_find(bank_printf(m, "int4-g%lld", (long long)g), &f, e));
    d = wide;
    d.weights[WEIGHT_MIXER] = d.weights[WEIGHT_FFN] = f;
    TRY(bank_count(m, &wide, &n, e));
    TRY(bank_count(m, &d, &small, e));
    TRY(bank_arch_parameters(m, &wide, &p, e));
    TRY(bank_cache_bytes(m, &wide, S, &cached, e));
    const double ends = p.embedding + p.head, layers = p.total - ends;
    const double bits = f.bits + f.scale_bits / (double)g, zero_bits = f.scale_bits - 16;
    const double before = n.weight_bytes + cached, after = small.weight_bytes + cached;
    bank_ask(q, UNITS_RATIO, before / after, 0.01, "a ratio");
    q->text = bank_printf(
        m,
        "The layers of %s hold %s parameters, its embedding and output head together %s, and its cache takes %s bytes "
        "per token; all in 16 bits. The weights of the layers are quantised to 4 bits (AWQ) in groups of g = %lld, "
        "each "
        "with a scale in fp16 and a zero point of %g bits; the rest stays. One sequence is decoded at a context of S = "
        "%lld tokens, limited by the bandwidth, and weights (the embedding whole) and cache are read once. How many "
        "times faster is a step?",
        wide.name, bank_digits(m, layers), bank_digits(m, ends), bank_digits(m, n.kv_bytes_per_token), (long long)g,
        zero_bits, (long long)S);
    bank_slip(q, 16 / f.bits,
              "That holds if everything were read in 4 bits: scales, embedding, head and cache are not.");
    bank_slip(q, 16 / bits, "This is the layers alone: embedding, head and cache are read too.");
    bank_slip(q, n.weight_bytes / small.weight_bytes, "This reads the weights alone: a step reads the KV cache too.");
    bank_slip(q, before / (layers * f.bits / 8 + 2 * ends + cached), "This leaves out scales and zero points.");
    bank_slip(q, before / ((layers + ends) * bits / 8 + cached), "This quantises embedding and head: they stay.");
    bank_slip(q, after / before, "This is the part of the time that is left, not the factor.");
    bank_step(
        q, bank_printf(m, "bits for each weight of a layer: 4 + (16 + %g)/%lld = %.5g", zero_bits, (long long)g, bits));
    bank_step(q, bank_printf(m, "before: %s + %s", bank_shown(m, UNITS_BYTES, n.weight_bytes),
                             bank_shown(m, UNITS_BYTES, cached)));
    bank_step(q, bank_printf(m, "after: %s of layers + %s of embedding and head + %s",
                             bank_shown(m, UNITS_BYTES, small.weight_bytes - 2 * ends),
                             bank_shown(m, UNITS_BYTES, 2 * ends), bank_shown(m, UNITS_BYTES, cached)));
    bank_step(q, bank_printf(m, "%s / %s = %.4g", bank_shown(m, UNITS_BYTES, before), bank_shown(m, UNITS_BYTES, after),
                             q->value));
    return ERR_OK;
}

/* Flops of a layer's first MLP product over `rows` rows, and of them in 16 bits whatever the format. */
static enum err_code product_flops(struct exercise_maker *m, const struct model *d, int64_t rows, double *all,
                                   double *half, struct err *e)
{
    struct cost_conventions v = bank_course(m);
    v.mlp_fused = false;
    const struct cost_pass pass = {.name = "prefill", .B = INT(1), .T = INT(rows), .S = INT(rows)};
    struct cost_ops ops;
    TRY(bank_arch_pass(m, d, &v, &pass, true, &ops, e));
    *all = *half = 0;
    for (size_t i = 0; i < ops.n; i++) {
        double a, b;
        if (ops.op[i].kind != OP_LINEAR || ops.op[i].compute_class != WEIGHT_FFN) continue;
        if (!sym_constant(ops.op[i].flops, &a) || !sym_constant(ops.op[i].half_flops, &b)) continue;
        *all += a;
        *half += b;
    }
    return sym_check(m->c, e);
}

enum err_code bank_formats_outliers(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const char *const DEVICES[] = {"h100-sxm", "a100-80g", "h200-sxm", "l40s"};
    static const int64_t PARTS[] = {10, 20, 30, 40, 60, 80}; /* thousandths */
    struct model d, wide;
    struct hw hw;
    double all, half, plain, none, fast, slow;
    TRY(bank_decoder(m, &d, e));
    TRY(bank_device(m, 4, DEVICES, &hw, e));
    const int64_t part = bank_pick(m, 6, PARTS), rows = 1024 * bank_draw(m, 4, 32); /* not a unit */
    wide = d;
    TRY(dtype_find(bank_printf(m, "llm-int8:%g", (double)part / 1000), &d.weights[WEIGHT_FFN], e));
    TRY(product_flops(m, &d, rows, &all, &half, e));
    TRY(product_flops(m, &wide, rows, &plain, &none, e));
    TRY(hw_peak(&hw, HW_INT8, &fast, e));
    TRY(hw_peak(&hw, HW_BF16, &slow, e));
    const double before = plain / slow, eight = (all - half) / fast, after = eight + half / slow,
                 p = (double)part / 1000;
    bank_ask(q, UNITS_RATIO, before / after, 0.01, "a ratio");
    q->text = bank_printf(
        m,
        "The products of a long prefill are limited by arithmetic. LLM.int8() runs them in two parts: one over all D = "
        "%lld columns in 8 bits, the outliers set to zero, at %s, and one in 16 bits over the columns with outliers, "
        "%.1f%% of them all, at %s. How many times faster is that than the whole product in 16 bits, if the parts run "
        "one after the other?",
        (long long)d.hidden, bank_peak_text(m, fast), 100 * p, bank_peak_text(m, slow));
    bank_slip(q, fast / slow, "This is without the second product: the outlier columns take their time in 16 bits.");
    bank_slip(q, after / before, "This is the part of the time that is left, not the factor.");
    bank_slip(q, 1 / (slow / fast * (1 - p) + p),
              "This takes the outlier columns out of the first product: there they are set to zero and multiplied.");
    bank_slip(q, before / (half / slow), "This is the second product alone: the first takes its time too.");
    bank_slip(q, 1 / (slow / fast + p / 2), "This runs the outlier columns at the rate of 8 bits.");
    bank_step(q,
              "of the time in 16 bits: the first product takes peak_16/peak_8, the second the share of the outliers");
    bank_step(
        q, bank_printf(m, "%s / %s + %g = %.4g", bank_peak_text(m, slow), bank_peak_text(m, fast), p, after / before));
    bank_step(q, bank_printf(m, "1 / %.4g = %.4g times faster; without outliers %.4g", after / before, q->value,
                             fast / slow));
    return ERR_OK;
}

enum err_code bank_formats_cache(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    struct model d;
    double wide, narrow, slow_s, fast_s;
    TRY(bank_served(m, &s, e));
    d = s.model;
    TRY(dtype_find("fp8", &d.kv, e));
    TRY(bank_cache_bytes(m, &s.model, s.S, &wide, e));
    TRY(bank_cache_bytes(m, &d, s.S, &narrow, e));
    TRY(bank_decode_s(m, &s.model, &s.hw, (double)s.B, (double)s.S, &slow_s, e));
    TRY(bank_decode_s(m, &d, &s.hw, (double)s.B, (double)s.S, &fast_s, e));
    const double w = s.n.weight_bytes, B = (double)s.B;
    bank_ask(q, UNITS_RATIO, slow_s / fast_s, 0.01, "a ratio");
    q->text = bank_printf(m,
                          "%s The cache is in bf16; it is to be kept in fp8 instead, its scales left aside, and the "
                          "weights stay. By which factor does the throughput of B = %lld sequences at a context of S = "
                          "%lld tokens grow, when the bandwidth is what limits it before and after?",
                          bank_served_text(m, &s), (long long)s.B, (long long)s.S);
    bank_slip(q, wide / narrow, "This is how much smaller the cache becomes: the weights are read too.");
    bank_slip(q, (w + wide) / (w + narrow), "This reads the cache of one sequence: every sequence has its own.");
    bank_slip(q, (w + B * wide) / (w / 2 + B * wide), "This stores the weights in fp8, not the cache.");
    bank_slip(q, fast_s / slow_s, "This is the part of the time that is left, not the factor.");
    bank_slip(q, (s.n.params + B * wide) / (s.n.params + B * narrow),
              "This takes a parameter for a byte: 16 bits are two.");
    bank_slip(q, (w + B * wide) / w, "This drops the cache: half of its bytes are still read.");
    bank_step(q, "(weights + cache in bf16) / (weights + cache in fp8)");
    bank_step(q, bank_printf(m, "(%s + %s) / (%s + %s) = %.4g", bank_shown(m, UNITS_BYTES, w),
                             bank_shown(m, UNITS_BYTES, B * wide), bank_shown(m, UNITS_BYTES, w),
                             bank_shown(m, UNITS_BYTES, B * narrow), q->value));
    return ERR_OK;
}

enum err_code bank_formats_pruned(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model full, d;
    struct bank_counts before, n;
    double one;
    TRY(bank_decoder(m, &full, e));
    const int64_t S = 256 * bank_draw(m, 4, 48), B = bank_draw(m, 4, 48);
    const struct mixer x = full.kinds[0].mixer;
    TRY(bank_decoder_with(m, &full, x.kv_heads, &d, e));
    d.hidden = 128 * (full.hidden * bank_draw(m, 50, 80) / 12800);
    d.kinds[0].ffn.width = 128 * (full.kinds[0].ffn.width * bank_draw(m, 40, 80) / 12800);
    TRY(bank_count(m, &full, &before, e));
    TRY(bank_count(m, &d, &n, e));
    TRY(bank_cache_bytes(m, &d, S, &one, e));
    const double cached = (double)B * one, part = (double)d.hidden / (double)full.hidden;
    bank_ask(q, UNITS_BYTES, n.weight_bytes + cached, 0.01, "bytes with their unit");
    q->text = bank_printf(
        m,
        "A decoder in 16 bits has %s; the MLP is gated, and the output head is a matrix of its own. It is pruned in "
        "width, to D' = %lld and F' = %lld; heads and layers stay as they are. Then it serves B = %lld sequences at a "
        "context of S = %lld tokens. How much memory do weights (norms not counted) and KV cache take?",
        bank_decoder_sizes(m, &full), (long long)d.hidden, (long long)d.kinds[0].ffn.width, (long long)B, (long long)S);
    bank_slip(q, n.weight_bytes + cached * part,
              "This makes the cache smaller with the width: it has K heads of width H in each layer, as before.");
    bank_slip(q, before.weight_bytes + cached, "This is before pruning.");
    bank_slip(q, n.weight_bytes, "These are the weights alone.");
    bank_slip(q, cached, "This is the cache alone.");
    bank_slip(q, n.weight_bytes + one, "This counts the cache of one sequence.");
    bank_slip(q, before.weight_bytes * part + cached,
              "This makes all weights smaller by D'/D: the MLP becomes smaller by D'*F'/(D*F).");
    bank_slip(q, n.params + cached, "This takes a parameter for a byte: 16 bits are two.");
    bank_step(q, "parameters = 2*V*D' + 3*L*D'*F' + 2*L*D'*H*(N + K)");
    bank_step(q, bank_printf(m, "= %s, before it was %s; 2 bytes each: %s", bank_digits(m, n.params),
                             bank_digits(m, before.params), bank_shown(m, UNITS_BYTES, n.weight_bytes)));
    bank_step(q, bank_printf(m, "cache, as before: B*S * 2*L*K*H * 2 bytes = %s", bank_shown(m, UNITS_BYTES, cached)));
    bank_step(q, bank_printf(m, "together %s", bank_shown(m, UNITS_BYTES, q->value)));
    return ERR_OK;
}
