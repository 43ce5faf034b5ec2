#include "calc/learn/bank_makers.h"

#include "calc/time/train.h"

#define INT(n) sym_int(m->c, (n))

static const double GIB_PER_GB = 1.073741824; /* not a unit */

static const char TIME_FORM[] = "a time with its unit";

enum err_code bank_flops_prefill_time(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    TRY(bank_served(m, &s, e));
    const double tokens = (double)s.S, peak = s.peak_flops_per_s, prefill_s = 2 * s.n.params * tokens / peak;
    bank_ask(q, UNITS_SECONDS, prefill_s, 0.01, TIME_FORM);
    q->text = bank_printf(m,
                          "%s Its dense peak is %s in 16 bits. How long does the prefill of a prompt of S = %lld "
                          "tokens take at that peak? Count every weight that works on a token, the embedding too, and "
                          "leave aside the products of queries with keys and values.",
                          bank_served_text(m, &s), bank_peak_text(m, peak), (long long)s.S);
    bank_slip(q, 3 * prefill_s,
              "6 flops for each parameter and token are training: a forward pass has no backward part.");
    bank_slip(q, prefill_s / 2, "This counts a multiply-add as one flop: it is two.");
    bank_slip(q, prefill_s / tokens, "This is the time of one token of the prompt.");
    bank_slip(q, s.n.weight_bytes / s.hw.bandwidth_bytes_per_s,
              "This is the time to read the weights: a long prompt is limited by arithmetic.");
    bank_slip(q, tokens * s.n.weight_bytes / s.hw.bandwidth_bytes_per_s,
              "This reads the weights again for every token: a prefill takes all tokens through them at once.");
    bank_step(q, "A weight does one multiply-add for each token, which is 2 flops: t = 2 * parameters * S / peak.");
    bank_step(q, bank_printf(m, "2 * %s * %lld / %s = %s", bank_digits(m, s.n.params), (long long)s.S,
                             bank_peak_text(m, peak), bank_shown(m, UNITS_SECONDS, prefill_s)));
    return ERR_OK;
}

enum err_code bank_flops_forward(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const char *const MODELS[] = {"mixtral-8x7b", "mixtral-8x22b", "qwen3-30b-a3b", "qwen3-235b-a22b",
                                         "gpt-oss-20b",  "gpt-oss-120b",  "deepseek-v3",   "qwen1.5-moe-a2.7b"};
    struct model d;
    struct cost_parameters p;
    const struct cost_conventions v = bank_course(m);
    TRY(bank_model(m, sizeof MODELS / sizeof MODELS[0], MODELS, &d, e));
    TRY(cost_parameters(m->arena, &d, &v, &p, e));
    const double tokens = 128 * (double)bank_draw(m, 2, 64);
    const struct ffn f = d.kinds[d.kinds_n - 1].ffn;
    bank_ask(q, UNITS_FLOPS, 2 * p.active * tokens, 0.01, "flops with their unit");
    q->text = bank_printf(
        m,
        "%s has %s parameters (norms not counted). Of these, %s are in routed experts, of which each token takes k = "
        "%lld out of E = %lld. How many flops is a forward pass over a prompt of S = %.0f tokens? Count every weight "
        "that works on a token, the embedding too, and leave aside the products of queries with keys and values.",
        d.name, bank_digits(m, p.total), bank_digits(m, p.routed), (long long)f.experts_per_token, (long long)f.experts,
        tokens);
    bank_slip(q, 2 * p.total * tokens, "This puts every token through all experts: it takes k of them.");
    bank_slip(q, 6 * p.active * tokens,
              "6 flops for each parameter and token are training: a forward pass has no backward part.");
    bank_slip(q, p.active * tokens, "This counts a multiply-add as one flop: it is two.");
    bank_slip(q, 2 * p.active, "This is one token of the prompt.");
    bank_slip(q, 2 * (p.active - p.total + p.routed) * tokens,
              "This counts the experts alone: attention and the other weights work on every token too.");
    bank_slip(q, 2 * p.total / (double)f.experts * (double)f.experts_per_token * tokens,
              "This takes k/E of all parameters: only those of the routed experts are chosen from.");
    bank_step(q, "flops = 2 * (parameters - routed + routed * k/E) * S");
    bank_step(q, bank_printf(m, "active: %s - %s + %s * %lld/%lld = %s", bank_digits(m, p.total),
                             bank_digits(m, p.routed), bank_digits(m, p.routed), (long long)f.experts_per_token,
                             (long long)f.experts, bank_digits(m, p.active)));
    bank_step(q, bank_printf(m, "2 * %s * %.0f = %s", bank_digits(m, p.active), tokens,
                             bank_shown(m, UNITS_FLOPS, q->value)));
    return ERR_OK;
}

/* flops of a topic in a prefill of one prompt of S tokens. */
static enum err_code prefill_flops(struct exercise_maker *m, const struct quantity_scope *s, const char *topic,
                                   int64_t tokens, double *out, struct err *e)
{
    const struct sym *f;
    TRY(quantity_resolve(s, QUANTITY_PREFILL, "flops", topic, &f, e));
    const struct sym_binding at[] = {{m->y.B, INT(1)}, {m->y.S, INT(tokens)}};
    if (!sym_constant(sym_bind(m->c, f, at, 2), out)) return err_set(e, ERR_RANGE, "%s has no number", topic);
    return sym_check(m->c, e);
}

enum err_code bank_flops_attention_share(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    double core, qkv, o, mlp;
    TRY(bank_decoder(m, &d, e));
    struct quantity_scope s = m->textbook;
    s.model = &d;
    s.course = false;
    s.conventions = bank_course(m);
    const int64_t S = 1024 * bank_draw(m, 4, 96); /* not a unit */
    TRY(prefill_flops(m, &s, "attention", S, &core, e));
    TRY(prefill_flops(m, &s, "qkv_proj", S, &qkv, e));
    TRY(prefill_flops(m, &s, "o_proj", S, &o, e));
    TRY(prefill_flops(m, &s, "mlp", S, &mlp, e));
    const double all = core + qkv + o + mlp;
    const struct mixer x = d.kinds[0].mixer;
    bank_ask(q, UNITS_FRAC, core / all, 0.01, "a part");
    q->text =
        bank_printf(m,
                    "A layer has model width D = %lld, a gated MLP of width F = %lld, and attention with N = %lld "
                    "query heads and K = %lld KV heads of width H = %lld. In the prefill of S = %lld tokens, which "
                    "part of the layer's matrix flops is Q*K^T and the weighted sum of V, all S*S pairs counted?",
                    (long long)d.hidden, (long long)d.kinds[0].ffn.width, (long long)x.heads, (long long)x.kv_heads,
                    (long long)x.head_dim, (long long)S);
    bank_slip(q, core / 2 / (all - core / 2), "This counts half of it: both products, over all pairs, are asked.");
    bank_slip(q, core / (core + mlp), "This leaves out the projections W_Q, W_K, W_V and W_O.");
    bank_slip(q, core / (core + qkv + o), "This leaves out the MLP.");
    bank_slip(q, (core + qkv + o) / all, "This counts the projections as part of the products over pairs.");
    bank_slip(q, core / (all - mlp / 3), "This counts two matrices in the MLP: a gated one has gate, up and down.");
    bank_slip(q, 1 - core / all, "This is the rest of the layer: projections and MLP.");
    bank_slip(q, core / (all - core), "This is the ratio to the rest of the layer, not a part of the whole.");
    bank_step(q, "pairs: two products of 2*N*H*S*S, so 4*N*H*S^2");
    bank_step(q, "projections: 2*S*D*(2*N*H + 2*K*H); MLP: 6*S*D*F");
    bank_step(q,
              bank_printf(m, "%s of %s + %s + %s", bank_shown(m, UNITS_FLOPS, core), bank_shown(m, UNITS_FLOPS, core),
                          bank_shown(m, UNITS_FLOPS, qkv + o), bank_shown(m, UNITS_FLOPS, mlp)));
    bank_step(q, bank_printf(m, "= %.4g", core / all));
    return ERR_OK;
}

enum err_code bank_flops_mlp_bound(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    struct hw hw;
    double peak, intensity, ridge;
    const struct sym *f;
    int64_t B;
    TRY(bank_device_16bit(m, &hw, &peak, e));
    TRY(quantity_resolve(&m->textbook, QUANTITY_DECODE, "intensity", "mlp", &f, e));
    ridge = peak / hw.bandwidth_bytes_per_s;
    TRY(bank_decoder(m, &d, e));
    const int64_t F = d.kinds[0].ffn.width;
    const bool compute = bank_draw(m, 0, 1) != 0;
    do { /* a batch well on one side */
        B = compute ? bank_draw(m, (int64_t)ridge, 3 * (int64_t)ridge) : bank_draw(m, 1, (int64_t)ridge);
        const struct sym_binding at[] = {{m->y.B, INT(B)}, {m->y.D, INT(d.hidden)}, {m->y.F, INT(F)}};
        if (!sym_constant(sym_bind(m->c, f, at, 3), &intensity)) return sym_check(m->c, e);
    } while (compute ? intensity < 1.05 * ridge : intensity > 0.95 * ridge);
    q->kind = EXERCISE_CHOICE;
    q->choices[0] = "memory";
    q->choices[1] = "compute";
    q->choices_n = 2;
    q->right = intensity > ridge;
    q->also[0] = BANK_ALSO_MEMORY;
    q->also[1] = BANK_ALSO_COMPUTE;
    q->form = "memory or compute";
    q->text = bank_printf(
        m,
        "The gated MLP of a decode step (bf16, one kernel, width D = %lld to F = %lld and back) works on B = %lld "
        "sequences on one %s with a bandwidth of %s and a dense peak of %s. Is it bound by memory or by compute?",
        (long long)d.hidden, (long long)F, (long long)B, hw.name,
        bank_shown(m, UNITS_BYTES_PER_S, hw.bandwidth_bytes_per_s), bank_peak_text(m, peak));
    bank_slip(q, 0, "A batch shares the weights it reads: compare flops per byte with peak over bandwidth.");
    bank_slip(q, 1, "Compare flops per byte with peak over bandwidth: each weight read serves only B tokens.");
    bank_step(q, "flops 6*B*D*F, bytes 4*B*D + 4*B*F + 6*D*F: intensity = 3*B*D*F/(2*B*D + 2*B*F + 3*D*F)");
    bank_step(q, bank_printf(m, "intensity at B = %lld: %.4g flops per byte", (long long)B, intensity));
    bank_step(q, bank_printf(m, "ridge point: %s / %s = %.4g flops per byte", bank_peak_text(m, peak),
                             bank_shown(m, UNITS_BYTES_PER_S, hw.bandwidth_bytes_per_s), ridge));
    bank_step(q, bank_printf(m, "%s the ridge: bound by %s", q->right ? "above" : "below", q->choices[q->right]));
    return ERR_OK;
}

/* -- training (lecture 2) -- */

enum err_code bank_flops_training_days(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t BILLIONS[] = {3, 7, 8, 13, 32, 34, 70, 72, 120, 180, 405},
                         DEVICES[] = {512, 768, 1024, 2048, 4096, 8192, 16384}; /* not a unit */
    struct hw hw;
    double peak;
    const double day_s = 86400, billion = 1e9; /* not a unit */
    TRY(bank_device_16bit(m, &hw, &peak, e));
    const double params = billion * (double)bank_pick(m, 11, BILLIONS), gpus = (double)bank_pick(m, 7, DEVICES);
    const double tokens = 1000 * billion * (double)bank_draw(m, 1, 18), mfu = (double)bank_draw(m, 28, 58) / 100;
    const double days = train_run_s(train_flops(params, tokens), gpus, peak, mfu) / day_s;
    bank_ask(q, UNITS_SECONDS, days * day_s, 0.01, "a number of days, or a time with its unit");
    q->bare = "days";
    q->text = bank_printf(m,
                          "A dense model of %.0f billion parameters is trained on %.0f trillion tokens with %.0f %s, "
                          "of a dense peak of %s each, at an MFU of %.0f %%. How many days does it take?",
                          params / billion, tokens / billion / 1000, gpus, hw.name, bank_peak_text(m, peak), 100 * mfu);
    bank_slip(q, day_s * days / 3,
              "2 flops for each parameter and token are the forward pass: the backward pass is twice that.");
    bank_slip(q, day_s * days * 2 / 3,
              "4 flops for each parameter and token are the backward pass: the forward pass comes on top.");
    bank_slip(q, day_s * days * mfu, "This runs at the full peak: only the MFU's part of it is reached.");
    bank_slip(q, day_s * days * mfu * mfu, "This multiplies by the MFU: a lower one makes it take longer.");
    bank_slip(q, day_s * days / 2,
              "This doubles the rate: datasheets print a sparse peak that dense products never see.");
    bank_slip(q, day_s * days * gpus, "This is one device.");
    bank_slip(q, day_s * days * 24, "These are hours.");
    bank_step(q, "flops = 6 * parameters * tokens (2 forward, 4 backward); rate = devices * peak * MFU");
    bank_step(q, bank_printf(m, "6 * %.0fe9 * %.0fe12 = %.4g flops", params / billion, tokens / billion / 1000,
                             6 * params * tokens));
    bank_step(q,
              bank_printf(m, "%.0f * %s * %.2f = %.4g flops/s", gpus, bank_peak_text(m, peak), mfu, gpus * peak * mfu));
    bank_step(q, bank_printf(m, "%.4g / %.4g / 86400 s = %.4g days", 6 * params * tokens, gpus * peak * mfu, days));
    /* CS336, lecture 2 */
    const double lecture_gpus = 1024, half = 0.5; /* not a unit */
    const double lecture = train_run_s(train_flops(70e9, 15e12), lecture_gpus, 989.5e12, half) / day_s;
    bank_step(q, bank_printf(m, "the lecture's own: 6 * 70e9 * 15e12 / (1024 * 989.5e12 * 0.5) / 86400 s = %.1f days",
                             lecture));
    return ERR_OK;
}

enum err_code bank_flops_training_memory(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    /* formats of parameters and gradients, of the moments; whether an fp32 copy of the parameters is kept */
    static const struct {
        const char *held, *moments;
        bool copy;
    } MIXES[] = {{"fp32", "fp32", false}, {"bf16", "fp32", true}, {"bf16", "bf16", true}, {"bf16", "bf16", false}};
    static const char *const DEVICES[] = {"h100-sxm", "h100-sxm", "a100-80g", "a100-40g", "h200-sxm", "b200-sxm"};
    const size_t mix = (size_t)bank_draw(m, 0, 3);
    struct dtype held, moments, single;
    struct hw hw;
    TRY(dtype_find(MIXES[mix].held, &held, e));
    TRY(dtype_find(MIXES[mix].moments, &moments, e));
    TRY(dtype_find("fp32", &single, e));
    TRY(bank_device(m, sizeof DEVICES / sizeof DEVICES[0], DEVICES, &hw, e));
    hw_pin_course(&hw);
    const double gpus = (double)bank_draw(m, 2, 64), memory = gpus * hw.memory_label_bytes;
    const double param = held.bits / 8, moment = moments.bits / 8, copy = MIXES[mix].copy ? single.bits / 8 : 0;
    const double each = 2 * param + 2 * moment + copy;
    bank_ask(q, UNITS_COUNT, memory / each, 0.01, "a number of parameters");
    q->things = "parameter,param,weight";
    q->text = bank_printf(m,
                          "%.0f devices with %s of memory each train a model with AdamW. Parameters and gradients are "
                          "in %s, the two moments in %s%s, and all of it is split over the devices without copies. How "
                          "many parameters can the model have at most, activations left aside?",
                          gpus, bank_shown(m, UNITS_BYTES, hw.memory_label_bytes), held.name, moments.name,
                          copy > 0 ? ", a master copy of the parameters in fp32" : "");
    bank_slip(q, memory / param, "This holds the parameters alone: training keeps gradients and moments too.");
    bank_slip(q, memory / (each - param),
              param < moment ? "This leaves out the gradients, one for each parameter."
                             : "This keeps one number too few: there are the parameter, its gradient and two moments.");
    if (copy > 0) bank_slip(q, memory / (each - moment), "This leaves out one of the two moments, or the master copy.");
    bank_slip(q, memory / (each - 2 * moment),
              copy > 0 ? "This leaves out the two moments, or the master copy." : "This leaves out the two moments.");
    bank_slip(q, memory / each / gpus, "This is the memory of one device.");
    if (moment < single.bits / 8)
        bank_slip(q, memory / (2 * param + 2 * single.bits / 8 + copy),
                  "This keeps the moments in fp32: read again which format the question names.");
    bank_slip(q, memory * GIB_PER_GB / each, "This takes GB for GiB: a GB is 1e9 bytes.");
    bank_step(q, "bytes per parameter: parameter + gradient + two moments + master copy, where there is one");
    bank_step(q, bank_printf(m, "%g + %g + 2 * %g + %g = %g", param, param, moment, copy, each));
    bank_step(q,
              bank_printf(m, "%.0f * %s / %g = %s parameters", gpus, bank_shown(m, UNITS_BYTES, hw.memory_label_bytes),
                          each, bank_shown(m, UNITS_COUNT, memory / each)));
    return ERR_OK;
}
