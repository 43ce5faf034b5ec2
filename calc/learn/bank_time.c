#include <math.h>

#include "calc/learn/bank_makers.h"

#define INT(n) sym_int(m->c, (n))
#define PROD(...) SYM_PROD(m->c, __VA_ARGS__)

static const char TIME_FORM[] = "a time with its unit";
static const char RATE_FORM[] = "tokens per second with their unit";
static const char CACHE_ONE[] = "This reads the cache of one sequence: every sequence has its own.";
static const char NO_CACHE[] = "This reads the weights alone: a step reads the KV cache too.";

/* What a decode step reads, and the times that people take for its time. */
struct decode {
    double weights_bytes, cache_bytes, bandwidth;
    double step_s; /* (weights + cache) / bandwidth */
    double one_s;  /* with the cache of one sequence */
    double weights_s, cache_s, halved_s, compute_s;
};

static enum err_code decode_of(struct exercise_maker *m, const struct bank_served *s, struct decode *out, struct err *e)
{
    struct decode d = {.weights_bytes = s->n.weight_bytes, .bandwidth = s->hw.bandwidth_bytes_per_s};
    const double B = (double)s->B;
    double one;
    TRY(bank_cache_bytes(m, &s->model, s->S, &one, e));
    TRY(bank_decode_s(m, &s->model, &s->hw, B, (double)s->S, &d.step_s, e));
    d.cache_bytes = B * one;
    d.one_s = (d.weights_bytes + one) / d.bandwidth;
    d.weights_s = d.weights_bytes / d.bandwidth;
    d.cache_s = d.cache_bytes / d.bandwidth;
    d.halved_s = (s->n.params + d.cache_bytes) / d.bandwidth;
    d.compute_s = 2 * s->n.params * B / s->peak_flops_per_s;
    *out = d;
    return ERR_OK;
}

static void step_of_decode(struct exercise_maker *m, struct exercise_question *q, const struct bank_served *s,
                           const struct decode *d)
{
    bank_step(
        q, "A decode step reads the weights once and the cache of every sequence: t = (weights + B*S*kv) / bandwidth.");
    bank_step(q, bank_printf(m, "weights: %s * 2 = %s; cache: %lld * %lld * %s = %s", bank_digits(m, s->n.params),
                             bank_shown(m, UNITS_BYTES, d->weights_bytes), (long long)s->B, (long long)s->S,
                             bank_digits(m, s->n.kv_bytes_per_token), bank_shown(m, UNITS_BYTES, d->cache_bytes)));
    bank_step(q, bank_printf(m, "t = (%s + %s) / %s = %s", bank_shown(m, UNITS_BYTES, d->weights_bytes),
                             bank_shown(m, UNITS_BYTES, d->cache_bytes), bank_shown(m, UNITS_BYTES_PER_S, d->bandwidth),
                             bank_shown(m, UNITS_SECONDS, d->step_s)));
}

static enum err_code make_decode_latency(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    struct decode d;
    TRY(bank_served(m, &s, e));
    TRY(decode_of(m, &s, &d, e));
    bank_ask(q, UNITS_SECONDS, d.step_s, 0.01, TIME_FORM);
    q->text =
        bank_printf(m,
                    "%s How long does one decode step take at B = %lld sequences with a context of S = %lld tokens "
                    "each, when the bandwidth is what limits it?",
                    bank_served_text(m, &s), (long long)s.B, (long long)s.S);
    bank_slip(q, d.weights_s, NO_CACHE);
    bank_slip(q, d.cache_s, "This reads the cache alone: a step reads the weights too.");
    bank_slip(q, d.one_s, CACHE_ONE);
    bank_slip(q, d.halved_s, "This takes a parameter for a byte: 16 bits are two.");
    bank_slip(q, d.compute_s, "This is the time of the arithmetic: the step waits for its bytes.");
    bank_slip(q, d.step_s * (double)s.B, "This reads the weights again for each sequence: the batch shares them.");
    bank_slip(q, d.step_s / (double)s.B, "This is the time for each token of the batch, not of the step.");
    step_of_decode(m, q, &s, &d);
    return ERR_OK;
}

static enum err_code make_decode_throughput(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    struct decode d;
    TRY(bank_served(m, &s, e));
    TRY(decode_of(m, &s, &d, e));
    const double B = (double)s.B;
    bank_ask(q, UNITS_TOK_PER_S, B / d.step_s, 0.01, RATE_FORM);
    q->text =
        bank_printf(m,
                    "%s How many tokens per second does it generate at B = %lld sequences with a context of S = %lld "
                    "tokens each, when the bandwidth is what limits it?",
                    bank_served_text(m, &s), (long long)s.B, (long long)s.S);
    bank_slip(q, 1 / d.step_s, "This counts one token in a step: each sequence of the batch gets one.");
    bank_slip(q, B / d.weights_s, NO_CACHE);
    bank_slip(q, B / d.cache_s, "This reads the cache alone: a step reads the weights too.");
    bank_slip(q, B / d.one_s, CACHE_ONE);
    bank_slip(q, B / d.halved_s, "This takes a parameter for a byte: 16 bits are two.");
    bank_slip(q, B / d.compute_s, "This is the rate of the arithmetic: the step waits for its bytes.");
    step_of_decode(m, q, &s, &d);
    bank_step(q, bank_printf(m, "throughput = B / t = %lld / %s = %s", (long long)s.B,
                             bank_shown(m, UNITS_SECONDS, d.step_s), bank_shown(m, UNITS_TOK_PER_S, q->value)));
    return ERR_OK;
}

static enum err_code make_latency_formula(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct sym *w = sym_var(m->c, "w"), *bw = sym_var(m->c, "bw"), *token, *cache;
    const struct sym_binding two = {m->y.b_kv, INT(2)}, heads = {m->y.K, m->y.N}, one = {m->y.B, INT(1)};
    const bool rate = bank_draw(m, 0, 1) != 0;
    TRY(bank_kv_token(m, &token, e));
    cache = PROD(m->y.B, m->y.S, sym_bind(m->c, token, &two, 1));
    const struct {
        const struct sym *bytes;
        const char *hint;
    } of[] = {
        {sym_add(m->c, w, cache), NULL},
        {w, NO_CACHE},
        {cache, "This reads the cache alone: a step reads the weights too."},
        {sym_add(m->c, w, sym_bind(m->c, cache, &one, 1)), CACHE_ONE},
        {sym_add(m->c, w, sym_bind(m->c, cache, &heads, 1)), "This reads N heads of cache: keys and values have K."},
        {sym_add(m->c, w, sym_div(m->c, cache, INT(2))),
         "This reads half of the cache: it has keys and values, of 2 bytes an element."},
    };
    const struct sym *const names[] = {w, bw, m->y.B, m->y.S, m->y.L, m->y.N, m->y.K, m->y.H};
    q->kind = EXERCISE_FORMULA;
    q->unit = rate ? UNITS_TOK_PER_S : UNITS_SECONDS;
    q->symbols_n = sizeof names / sizeof names[0];
    for (size_t i = 0; i < q->symbols_n; i++) q->symbols[i] = names[i];
    q->form = "an expression in w, bw, B, S, L, N, K, H";
    q->text =
        bank_printf(m,
                    "A model of L layers, N query heads and K KV heads of width H has weights of w bytes and keeps its "
                    "cache in bf16. B sequences at context S are decoded on a device that reads bw bytes per second, "
                    "and reading is what limits it. Give the %s.",
                    rate ? "tokens per second of the whole batch" : "seconds of one step");
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        const struct sym *s = sym_div(m->c, of[i].bytes, bw);
        if (rate) s = sym_div(m->c, m->y.B, s);
        if (i == 0)
            q->answer = s;
        else
            bank_slip_formula(q, s, of[i].hint);
    }
    if (rate)
        bank_slip_formula(q, sym_div(m->c, bw, of[0].bytes),
                          "This counts one token in a step: each sequence of the batch gets one.");
    const struct sym *step = sym_div(m->c, of[0].bytes, bw);
    const struct sym_binding layer = {m->y.L, INT(1)};
    bank_slip_formula(q, rate ? step : sym_div(m->c, m->y.B, step),
                      rate ? "This is the time of a step: tokens per second are asked."
                           : "These are tokens per second: the time of a step is asked.");
    bank_slip_formula(q, sym_bind(m->c, q->answer, &layer, 1), "This reads the cache of one layer: each has its own.");
    bank_step(q, "weights, read once: w");
    bank_step(q, "cache, of every sequence: B*S tokens of 2*L*K*H elements of 2 bytes");
    bank_step(q, "time of a step: t = (w + 4*B*S*L*K*H)/bw");
    if (rate) bank_step(q, "each step makes B tokens: B/t = B*bw/(w + 4*B*S*L*K*H)");
    return ERR_OK;
}

static enum err_code make_throughput_limit(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    struct decode d;
    double one;
    TRY(bank_served(m, &s, e));
    TRY(decode_of(m, &s, &d, e));
    TRY(bank_cache_bytes(m, &s.model, s.S, &one, e));
    bank_ask(q, UNITS_TOK_PER_S, d.bandwidth / one, 0.01, RATE_FORM);
    q->text = bank_printf(
        m,
        "%s Decoding at a context of S = %lld tokens is limited by the bandwidth at every batch size B, and "
        "its throughput grows with B, but not without bound. Which throughput does it never reach, "
        "however large B is?",
        bank_served_text(m, &s), (long long)s.S);
    bank_slip(q, d.bandwidth / (d.weights_bytes + one), "This is the throughput at B = 1.");
    bank_slip(q, d.bandwidth / d.weights_bytes,
              "This keeps the weights, which a large batch shares, and drops the caches.");
    bank_slip(q, d.bandwidth / s.n.kv_bytes_per_token,
              "This reads one token of the cache: a step reads all S of them.");
    bank_slip(q, s.peak_flops_per_s / (2 * s.n.params), "This is the limit of the arithmetic, not of the bandwidth.");
    bank_slip(q, d.bandwidth / one / 2, "This counts keys and values again: the bytes per token hold both.");
    bank_step(q, "throughput = B * bandwidth / (weights + B*S*kv); as B grows it tends to bandwidth / (S*kv)");
    bank_step(q, bank_printf(m, "%s / (%lld * %s) = %s", bank_shown(m, UNITS_BYTES_PER_S, d.bandwidth), (long long)s.S,
                             bank_digits(m, s.n.kv_bytes_per_token), bank_shown(m, UNITS_TOK_PER_S, q->value)));
    return ERR_OK;
}

static enum err_code make_replicas(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    struct decode d;
    TRY(bank_served(m, &s, e));
    TRY(decode_of(m, &s, &d, e));
    const double M = (double)bank_draw(m, 2, 12), B = (double)s.B;
    bank_ask(q, UNITS_TOK_PER_S, M * B / d.step_s, 0.01, RATE_FORM);
    q->text =
        bank_printf(m,
                    "%s There are M = %.0f such devices, each with a copy of the model and B = %lld sequences at a "
                    "context of S = %lld tokens. How many tokens per second do they generate together, when the "
                    "bandwidth is what limits them?",
                    bank_served_text(m, &s), M, (long long)s.B, (long long)s.S);
    bank_slip(q, B / d.step_s, "This is the throughput of one replica.");
    bank_slip(q, M * B * d.bandwidth / (d.weights_bytes + M * d.cache_bytes),
              "This puts all sequences on one device: each replica has its own bandwidth.");
    bank_slip(q, M * B * M / d.step_s,
              "This makes each replica faster, too: its step takes as long as it would alone.");
    bank_slip(q, M / d.step_s, "This counts one token in a step: each sequence of the batch gets one.");
    bank_slip(q, M * B / d.weights_s, NO_CACHE);
    bank_slip(q, M * B / d.one_s, CACHE_ONE);
    step_of_decode(m, q, &s, &d);
    bank_step(q, "Replicas share nothing: the latency of a step stays, the throughput is M times one replica's.");
    bank_step(q, bank_printf(m, "M * B / t = %.0f * %lld / %s = %s", M, (long long)s.B,
                             bank_shown(m, UNITS_SECONDS, d.step_s), bank_shown(m, UNITS_TOK_PER_S, q->value)));
    return ERR_OK;
}

static enum err_code make_cache_takes_over(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    double one;
    TRY(bank_served(m, &s, e));
    TRY(bank_cache_bytes(m, &s.model, s.S, &one, e));
    const double B = s.n.weight_bytes / one;
    bank_ask(q, UNITS_COUNT, B, 0.02, "a number of sequences (need not be whole)");
    q->things = "sequence,seq,request,user";
    q->text = bank_printf(
        m,
        "%s Its dense peak is %s in 16 bits. At a context of S = %lld tokens, from which batch size on does a "
        "decode step spend more time on the KV cache than on the weights?",
        bank_served_text(m, &s), bank_peak_text(m, s.peak_flops_per_s), (long long)s.S);
    bank_slip(q, s.peak_flops_per_s / s.hw.bandwidth_bytes_per_s,
              "This is the ridge point, where arithmetic and bytes meet: the question compares two reads.");
    bank_slip(q, B / 2, "A parameter has 2 bytes; the bytes per token hold keys and values already.");
    bank_slip(q, s.n.weight_bytes / s.n.kv_bytes_per_token, "This leaves out the context: a sequence caches S tokens.");
    bank_step(q, "Both are read at the same bandwidth: weights = B*S*kv, so B = weights / (S*kv).");
    bank_step(q, bank_printf(m, "%s * 2 / (%lld * %s) = %.4g", bank_digits(m, s.n.params), (long long)s.S,
                             bank_digits(m, s.n.kv_bytes_per_token), B));
    return ERR_OK;
}

static enum err_code make_gqa_speed(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t HEADS[] = {1, 2, 4, 5, 8, 10, 20};
    static const char *const MODELS[] = {"llama-2-13b"};
    struct model full, few;
    struct hw hw;
    struct bank_counts a, b;
    double peak, slow_s, fast_s, one, small;
    TRY(bank_model(m, 1, MODELS, &full, e));
    TRY(bank_device_16bit(m, &hw, &peak, e));
    const int64_t K = bank_pick(m, 7, HEADS), B = bank_draw(m, 8, 64), S = 128 * bank_draw(m, 4, 24);
    TRY(bank_decoder_with(m, &full, K, &few, e));
    TRY(bank_count(m, &full, &a, e));
    TRY(bank_count(m, &few, &b, e));
    TRY(bank_decode_s(m, &full, &hw, (double)B, (double)S, &slow_s, e));
    TRY(bank_decode_s(m, &few, &hw, (double)B, (double)S, &fast_s, e));
    TRY(bank_cache_bytes(m, &full, S, &one, e));
    TRY(bank_cache_bytes(m, &few, S, &small, e));
    const struct mixer x = full.kinds[0].mixer;
    const double n = (double)B, before = a.weight_bytes + n * one, factor = slow_s / fast_s;
    bank_ask(q, UNITS_RATIO, factor, 0.01, "a ratio");
    q->text = bank_printf(
        m,
        "%s (%s parameters without norms, L = %lld layers of width D = %lld, N = %lld heads of width H = %lld, as many "
        "KV "
        "heads, 16 bits throughout) decodes B = %lld sequences at a context of S = %lld tokens, limited by "
        "the bandwidth. With K = %lld KV heads instead, how many times higher is the throughput at the same "
        "batch?",
        full.name, bank_digits(m, a.params), (long long)full.layers, (long long)full.hidden, (long long)x.heads,
        (long long)x.head_dim, (long long)B, (long long)S, (long long)K);
    bank_slip(q, (double)x.heads / (double)K, "This is how much smaller the cache becomes: the weights are read too.");
    bank_slip(q, before / (a.weight_bytes + n * small),
              "This keeps the weights as they were: W_K and W_V become narrower.");
    bank_slip(q, before / (b.weight_bytes + n * one), "This keeps the cache as it was.");
    bank_slip(q, (a.weight_bytes + one) / (b.weight_bytes + small), CACHE_ONE);
    bank_slip(q, 1 / factor, "This is the part of the time that is left, not the factor.");
    bank_slip(q, a.weight_bytes / b.weight_bytes, NO_CACHE);
    bank_step(q, "throughput = B * bandwidth / (weights + B*S * 2*L*K*H * 2); both terms shrink with K");
    bank_step(q, bank_printf(m, "K = N: %s + %s", bank_shown(m, UNITS_BYTES, a.weight_bytes),
                             bank_shown(m, UNITS_BYTES, n * one)));
    bank_step(q, bank_printf(m, "K = %lld: %s + %s, with 2*L*D*(N - K)*H = %s parameters fewer", (long long)K,
                             bank_shown(m, UNITS_BYTES, b.weight_bytes), bank_shown(m, UNITS_BYTES, n * small),
                             bank_digits(m, a.params - b.params)));
    bank_step(q, bank_printf(m, "%s / %s = %.4g", bank_shown(m, UNITS_BYTES, before),
                             bank_shown(m, UNITS_BYTES, b.weight_bytes + n * small), factor));
    return ERR_OK;
}

static enum err_code make_token_price(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct bank_served s;
    struct decode d;
    TRY(bank_served(m, &s, e));
    TRY(decode_of(m, &s, &d, e));
    const double low = s.hw.price_low_usd_per_h, high = s.hw.price_high_usd_per_h;
    const double usd_per_h = (double)bank_draw(m, (int64_t)ceil(100 * low), (int64_t)floor(100 * high)) / 100;
    const double tok_per_s = (double)s.B / d.step_s, Mtok = 1e6, hour_s = 3600;
    const double usd = usd_per_h / hour_s / tok_per_s * Mtok;
    bank_ask(q, UNITS_USD_PER_MTOK, usd, 0.01, "dollars per million tokens with their unit");
    q->text =
        bank_printf(m,
                    "%s The device costs $%.2f an hour and decodes B = %lld sequences at a context of S = %lld tokens "
                    "without a pause, limited by the bandwidth. What do a million generated tokens cost?",
                    bank_served_text(m, &s), usd_per_h, (long long)s.B, (long long)s.S);
    bank_slip(q, usd * (double)s.B, "This counts one token in a step: each sequence of the batch gets one.");
    bank_slip(q, usd * hour_s, "This takes the price of an hour for that of a second.");
    bank_slip(q, usd / d.step_s * d.halved_s, "This takes a parameter for a byte: 16 bits are two.");
    bank_slip(q, usd / d.step_s * d.weights_s, NO_CACHE);
    bank_slip(q, usd / d.step_s * d.one_s, CACHE_ONE);
    bank_slip(q, usd / 1000, "This is the price of a thousand tokens.");
    step_of_decode(m, q, &s, &d);
    bank_step(q, bank_printf(m, "throughput: %lld / %s = %s", (long long)s.B, bank_shown(m, UNITS_SECONDS, d.step_s),
                             bank_shown(m, UNITS_TOK_PER_S, tok_per_s)));
    bank_step(q, bank_printf(m, "%.2f $/h / 3600 s/h / %s * 10^6 = %s", usd_per_h,
                             bank_shown(m, UNITS_TOK_PER_S, tok_per_s), bank_shown(m, UNITS_USD_PER_MTOK, usd)));
    return ERR_OK;
}

#define SET "3 time"
#define SEE_STEP "ridge estimate --course -m llama-2-13b -g h100-sxm --batch 1,64,256 --context 1024"
#define SEE_TRAIN "ridge estimate -m llama-3.1-70b -g h100-sxm:1024 --train 15e12 --mfu 0.5 --params 70e9"
#define SEE_MLP "ridge explain mlp --course"

static const struct exercise ROWS[] = {
    {"decode-latency", SET, "time of a decode step", SEE_STEP, make_decode_latency},
    {"decode-throughput", SET, "tokens per second of a batch", SEE_STEP, make_decode_throughput},
    {"latency-formula", SET, "time or throughput of a decode step, as a formula", SEE_STEP, make_latency_formula},
    {"throughput-limit", SET, "what the throughput tends to as the batch grows", SEE_STEP, make_throughput_limit},
    {"cache-takes-over", SET, "the batch from which the cache costs more than the weights", SEE_STEP,
     make_cache_takes_over},
    {"mlp-bound", SET, "whether memory or compute bounds the MLP of a decode step", SEE_MLP, bank_flops_mlp_bound},
    {"gqa-speed", SET, "how much faster fewer KV heads decode", SEE_STEP, make_gqa_speed},
    {"replicas", SET, "throughput of several copies", SEE_STEP, make_replicas},
    {"token-price", SET, "what a million tokens cost", SEE_STEP, make_token_price},
    {"prefill-time", SET, "time of a prefill at peak", SEE_MLP, bank_flops_prefill_time},
    {"forward-flops", SET, "flops of a forward pass through experts", "ridge explain experts", bank_flops_forward},
    {"attention-share", SET, "the part of attention in a prefill", "ridge explain attention --course",
     bank_flops_attention_share},
    {"training-days", SET, "days to train a model", SEE_TRAIN, bank_flops_training_days},
    {"training-memory", SET, "the largest model that training can hold", SEE_TRAIN, bank_flops_training_memory},
};

const struct exercise *bank_time(size_t *n)
{
    *n = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}
