#include <math.h>

#include "calc/learn/bank_makers.h"

#define INT(n) sym_int(m->c, (n))
#define PROD(...) SYM_PROD(m->c, __VA_ARGS__)

static const double GIB_PER_GB = 1.073741824; /* not a unit */

static const char COUNT_FORM[] = "a whole number of tokens";
static const char BYTES_FORM[] = "bytes with their unit";

enum err_code bank_cache_formula(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const char *const WHAT[] = {"for one token", "of one sequence at context S",
                                       "of a batch of B sequences, each at context S"};
    const int64_t which = bank_draw(m, 0, 2);
    const struct sym *token, *many = which == 0 ? INT(1) : which == 1 ? m->y.S : PROD(m->y.B, m->y.S);
    TRY(bank_kv_token(m, &token, e));
    q->kind = EXERCISE_FORMULA;
    q->unit = UNITS_BYTES;
    q->answer = PROD(token, many);
    const struct sym *const names[] = {m->y.L, m->y.D, m->y.N, m->y.K, m->y.H, m->y.b_kv, m->y.S, m->y.B};
    q->symbols_n = 6 + (size_t)which;
    for (size_t i = 0; i < q->symbols_n; i++) q->symbols[i] = names[i];
    q->form =
        bank_printf(m, "an expression in L, D, N, K, H, b_kv%s%s", which > 0 ? ", S" : "", which > 1 ? ", B" : "");
    q->text = bank_printf(m,
                          "A decoder has L layers of width D, with N query heads and K KV heads of width H. Its cache "
                          "stores b_kv bytes for each element. How many bytes does the KV cache take %s?",
                          WHAT[which]);
    bank_slip_formula(q, sym_div(m->c, q->answer, INT(2)), "This stores keys or values alone: the cache holds both.");
    const struct sym_binding heads = {m->y.K, m->y.N}, bytes = {m->y.b_kv, INT(1)}, layer = {m->y.L, INT(1)};
    bank_slip_formula(q, sym_bind(m->c, q->answer, &heads, 1),
                      "This caches the query heads: only the K KV heads have keys and values.");
    bank_slip_formula(q, PROD(INT(2), m->y.L, m->y.D, m->y.b_kv, many),
                      "This caches vectors of the model width: a key or value is K heads of width H.");
    bank_slip_formula(q, sym_bind(m->c, q->answer, &bytes, 1), "This counts elements, not their bytes.");
    bank_slip_formula(q, sym_bind(m->c, q->answer, &layer, 1), "This counts one layer: each has a cache of its own.");
    if (which == 2) bank_slip_formula(q, PROD(token, m->y.S), "This counts one sequence of the batch.");
    if (which == 2) bank_slip_formula(q, PROD(token, m->y.B), "This counts one token of each sequence.");
    bank_step(q, "A layer caches one key and one value of width H for each KV head: 2*K*H elements per token.");
    bank_step(q, bank_printf(m, "L layers of b_kv bytes an element: %s per token.", bank_show(m, token)));
    if (which) bank_step(q, bank_printf(m, "For %s tokens: %s.", bank_show(m, many), bank_show(m, q->answer)));
    return ERR_OK;
}

/* A decoder of drawn sizes, or a built-in model of one layer kind without window; and its attention. */
static enum err_code cached_model(struct exercise_maker *m, struct model *d, struct mixer *x, struct err *e)
{
    static const char *const MODELS[] = {"llama-2-70b", "llama-3-8b",    "llama-3-70b",      "yi-34b",
                                         "phi-4",       "codellama-34b", "mixtral-8x7b",     "mixtral-8x22b",
                                         "qwen2.5-14b", "qwen2.5-32b",   "mistral-nemo-12b", "mistral-small-24b"};
    if (bank_draw(m, 0, 1))
        TRY(bank_decoder(m, d, e));
    else
        TRY(bank_model(m, sizeof MODELS / sizeof MODELS[0], MODELS, d, e));
    *x = d->kinds[0].mixer;
    return ERR_OK;
}

static const char *attention_sizes(struct exercise_maker *m, const struct model *d)
{
    const struct mixer *x = &d->kinds[0].mixer;
    return bank_printf(
        m,
        "%s has L = %lld layers, model width D = %lld, N = %lld query heads and K = %lld KV heads of width "
        "H = %lld",
        d->name, (long long)d->layers, (long long)d->hidden, (long long)x->heads, (long long)x->kv_heads,
        (long long)x->head_dim);
}

/* The slips that every number of cached bytes knows. */
static void cache_slips(struct exercise_question *q, const struct model *d)
{
    const struct mixer *x = &d->kinds[0].mixer;
    bank_slip(q, q->value / 2,
              d->kv.bits == 16 ? "Keys and values are both cached, of 2 bytes an element: one of these is missing."
                               : "This stores keys or values alone: the cache holds both.");
    bank_slip(q, q->value / (double)x->kv_heads * (double)x->heads,
              "This caches the query heads: only the K KV heads have keys and values.");
    bank_slip(q, q->value / (double)d->layers, "This counts one layer: each has a cache of its own.");
}

enum err_code bank_cache_token(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    struct mixer x;
    struct bank_counts n;
    TRY(cached_model(m, &d, &x, e));
    TRY(dtype_find(bank_draw(m, 0, 2) ? "bf16" : "fp8", &d.kv, e));
    TRY(bank_count(m, &d, &n, e));
    bank_ask(q, UNITS_BYTES_PER_TOKEN, n.kv_bytes_per_token, 0.01, BYTES_FORM);
    q->text = bank_printf(m, "%s. The cache is kept in %s. How much does each token add to the KV cache?",
                          attention_sizes(m, &d), d.kv.name);
    cache_slips(q, &d);
    bank_slip(q, n.kv_bytes_per_token / (double)x.head_dim * (double)d.hidden / (double)x.heads,
              "This takes D/N for the width of a head: the model has its own H.");
    bank_slip(q, n.kv_bytes_per_token / (double)(x.kv_heads * x.head_dim) * (double)d.hidden,
              "This caches vectors of the model width: a key or value is K heads of width H.");
    bank_step(q, "bytes per token = 2*L*K*H*b: a key and a value of K heads in every layer, b bytes an element");
    bank_step(q, bank_printf(m, "2 * %lld * %lld * %lld * %g = %s", (long long)d.layers, (long long)x.kv_heads,
                             (long long)x.head_dim, d.kv.bits / 8, bank_shown(m, UNITS_BYTES, n.kv_bytes_per_token)));
    return ERR_OK;
}

enum err_code bank_cache_batch(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    struct mixer x;
    double one;
    TRY(cached_model(m, &d, &x, e));
    const int64_t B = bank_draw(m, 3, 160), S = 128 * bank_draw(m, 4, 64);
    TRY(dtype_find("bf16", &d.kv, e));
    TRY(bank_cache_bytes(m, &d, S, &one, e));
    bank_ask(q, UNITS_BYTES, (double)B * one, 0.01, BYTES_FORM);
    q->text =
        bank_printf(m,
                    "%s. How much memory does the KV cache of B = %lld sequences take at a context of S = %lld tokens "
                    "each, in bf16?",
                    attention_sizes(m, &d), (long long)B, (long long)S);
    cache_slips(q, &d);
    bank_slip(q, one, "This counts one sequence of the batch.");
    bank_slip(q, one / (double)S * (double)B, "This counts one token of each sequence.");
    bank_step(q, "bytes = B*S * 2*L*K*H * 2 bytes");
    bank_step(q, bank_printf(m, "%lld * %lld * 2 * %lld * %lld * %lld * 2 = %s", (long long)B, (long long)S,
                             (long long)d.layers, (long long)x.kv_heads, (long long)x.head_dim,
                             bank_shown(m, UNITS_BYTES, q->value)));
    return ERR_OK;
}

enum err_code bank_cache_gqa_saving(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model few, full;
    struct bank_counts n, wide;
    TRY(bank_decoder(m, &few, e));
    const struct mixer x = few.kinds[0].mixer;
    const int64_t B = bank_draw(m, 4, 64), S = 128 * bank_draw(m, 2, 24);
    TRY(bank_decoder_with(m, &few, x.heads, &full, e));
    TRY(bank_count(m, &few, &n, e));
    TRY(bank_count(m, &full, &wide, e));
    const double tokens = (double)(B * S), saved_weights = wide.weight_bytes - n.weight_bytes;
    const double saved_cache = tokens * (wide.kv_bytes_per_token - n.kv_bytes_per_token);
    bank_ask(q, UNITS_BYTES, saved_weights + saved_cache, 0.01, BYTES_FORM);
    q->text =
        bank_printf(m,
                    "A decoder in bf16 has L = %lld layers of width D = %lld and N = %lld query heads of width H = "
                    "%lld. It serves B = %lld sequences at a context of S = %lld tokens. How much memory, weights and "
                    "KV cache together, does it save to have K = %lld KV heads instead of N?",
                    (long long)few.layers, (long long)few.hidden, (long long)x.heads, (long long)x.head_dim,
                    (long long)B, (long long)S, (long long)x.kv_heads);
    bank_slip(q, saved_cache, "This is the cache alone: W_K and W_V become narrower too.");
    bank_slip(q, saved_weights, "This is the weights alone: the cache becomes smaller too.");
    bank_slip(q, saved_weights + saved_cache / (double)B, "This counts the cache of one sequence.");
    bank_slip(q, saved_weights + tokens * n.kv_bytes_per_token,
              "This takes what is left of the cache for what is saved.");
    bank_slip(q, saved_weights + saved_cache / 2, "This counts keys or values alone: the cache holds both.");
    bank_step(q, "cache saved: B*S * 2*L*(N - K)*H * 2 bytes; weights saved, W_K and W_V: 2*L*D*(N - K)*H * 2 bytes");
    bank_step(q, bank_printf(m, "cache: %lld * %lld * 2 * %lld * (%lld - %lld) * %lld * 2 = %s", (long long)B,
                             (long long)S, (long long)few.layers, (long long)x.heads, (long long)x.kv_heads,
                             (long long)x.head_dim, bank_shown(m, UNITS_BYTES, saved_cache)));
    bank_step(q, bank_printf(m, "weights: 2 * %lld * %lld * (%lld - %lld) * %lld * 2 = %s", (long long)few.layers,
                             (long long)few.hidden, (long long)x.heads, (long long)x.kv_heads, (long long)x.head_dim,
                             bank_shown(m, UNITS_BYTES, saved_weights)));
    bank_step(q, bank_printf(m, "together %s", bank_shown(m, UNITS_BYTES, q->value)));
    return ERR_OK;
}

enum err_code bank_cache_largest_batch(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const char *const MODELS[] = {"llama-2-13b", "llama-2-7b", "llama-3-8b",        "phi-4",
                                         "qwen2.5-14b", "yi-34b",     "mistral-small-24b", "codellama-34b"};
    static const char *const DEVICES[] = {"h100-sxm", "a100-80g", "h200-sxm", "h100-nvl", "gh200-96g"};
    struct model d;
    struct hw hw;
    struct bank_counts n;
    double one;
    TRY(bank_model(m, sizeof MODELS / sizeof MODELS[0], MODELS, &d, e));
    TRY(bank_device(m, sizeof DEVICES / sizeof DEVICES[0], DEVICES, &hw, e));
    const int64_t S = 128 * bank_draw(m, 4, 32);
    const struct mixer x = d.kinds[0].mixer;
    TRY(bank_count(m, &d, &n, e));
    TRY(bank_cache_bytes(m, &d, S, &one, e));
    const double memory = hw.memory_label_bytes, room = memory - n.weight_bytes;
    const double heads = (double)x.heads / (double)x.kv_heads;
    bank_ask(q, UNITS_COUNT, floor(room / one), 0, "a whole number of sequences");
    q->things = "sequence,seq,request,user";
    q->text =
        bank_printf(m,
                    "%s, and %s parameters (norms not counted), all in 16 bits like the cache. Weights and KV cache "
                    "share %s of memory. How "
                    "many sequences of S = %lld tokens fit at most?",
                    attention_sizes(m, &d), bank_digits(m, n.params), bank_shown(m, UNITS_BYTES, memory), (long long)S);
    bank_slip(q, floor(memory / one), "This leaves no room for the weights.");
    bank_slip(q, floor((memory * GIB_PER_GB - n.weight_bytes) / one), "This takes GB for GiB: a GB is 1e9 bytes.");
    bank_slip(q, floor((memory - n.params) / one), "This takes a parameter for a byte: 16 bits are two.");
    bank_slip(q, floor(room / one * 2), "This stores keys or values alone: the cache holds both.");
    bank_slip(q, floor(room / (one * heads)), "This caches the query heads: only the K KV heads have keys and values.");
    bank_slip(q, floor(room / one) + 1, "The last one does not fit whole: round down.");
    bank_step(q, "B = floor((memory - weights) / (S * 2*L*K*H * 2 bytes))");
    bank_step(q, bank_printf(m, "weights: %s * 2 = %s", bank_digits(m, n.params),
                             bank_shown(m, UNITS_BYTES, n.weight_bytes)));
    bank_step(q,
              bank_printf(m, "one sequence: %lld * 2 * %lld * %lld * %lld * 2 = %s", (long long)S, (long long)d.layers,
                          (long long)x.kv_heads, (long long)x.head_dim, bank_shown(m, UNITS_BYTES, one)));
    bank_step(q, bank_printf(m, "(%s - %s) / %s = %.4g, rounded down: %.0f", bank_shown(m, UNITS_BYTES, memory),
                             bank_shown(m, UNITS_BYTES, n.weight_bytes), bank_shown(m, UNITS_BYTES, one), room / one,
                             q->value));
    return ERR_OK;
}

enum err_code bank_cache_equals_weights(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    struct mixer x;
    struct bank_counts n;
    TRY(cached_model(m, &d, &x, e));
    TRY(bank_count(m, &d, &n, e));
    const int64_t B = bank_draw(m, 2, 96);
    const double all = n.weight_bytes / n.kv_bytes_per_token, S = all / (double)B;
    bank_ask(q, UNITS_COUNT, S, 0.01, "a number of tokens (need not be whole)");
    q->things = "token,tok";
    q->text = bank_printf(m,
                          "%s, and %s parameters (norms not counted), all in 16 bits like the cache. At which context, "
                          "in tokens, does the KV "
                          "cache of B = %lld sequences take as much memory as the weights?",
                          attention_sizes(m, &d), bank_digits(m, n.params), (long long)B);
    bank_slip(q, all, "This is the context of one sequence: B of them share the cache.");
    bank_slip(q, S / 2, "This takes a parameter for a byte: 16 bits are two.");
    bank_slip(q, S * 2, "This counts keys or values alone, or elements for bytes: the cache is larger.");
    bank_slip(q, S / (double)x.heads * (double)x.kv_heads,
              "This caches the query heads: only the K KV heads have keys and values.");
    bank_slip(q, S * (double)d.layers, "This counts the cache of one layer.");
    bank_step(q, "weights = B*S * 2*L*K*H * 2 bytes, so S = weights / (B * 2*L*K*H * 2 bytes)");
    bank_step(q, bank_printf(m, "weights: %s * 2 = %s", bank_digits(m, n.params),
                             bank_shown(m, UNITS_BYTES, n.weight_bytes)));
    bank_step(q, bank_printf(m, "%s / (%lld * %s) = %.0f", bank_shown(m, UNITS_BYTES, n.weight_bytes), (long long)B,
                             bank_shown(m, UNITS_BYTES, n.kv_bytes_per_token), S));
    return ERR_OK;
}

enum err_code bank_cache_latent(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t HEADS[] = {16, 32, 64, 96, 128}, LATENTS[] = {256, 384, 512, 768, 1536},
                         ROPES[] = {32, 64, 96};
    struct model full, latent;
    struct bank_counts n, small;
    TRY(bank_decoder(m, &full, e));
    const int64_t N = bank_pick(m, 5, HEADS), C = bank_pick(m, 5, LATENTS), R = bank_pick(m, 3, ROPES);
    struct mixer *x = &full.kinds[0].mixer;
    x->heads = x->kv_heads = N;
    TRY(bank_decoder_with(m, &full, N, &latent, e));
    latent.kinds[0].mixer.kind = MIXER_LATENT;
    latent.kinds[0].mixer.kv_rank = C;
    latent.kinds[0].mixer.rope_dim = R;
    TRY(bank_count(m, &full, &n, e));
    TRY(bank_count(m, &latent, &small, e));
    const double factor = n.kv_bytes_per_token / small.kv_bytes_per_token;
    bank_ask(q, UNITS_RATIO, factor, 0.01, "a ratio");
    q->text =
        bank_printf(m,
                    "Multi-head attention with N = %lld heads of width H = %lld is replaced by latent attention (MLA), "
                    "which caches for each token and layer a latent of C = %lld elements and a shared rope part of R = "
                    "%lld. By which factor does the cache become smaller?",
                    (long long)N, (long long)x->head_dim, (long long)C, (long long)R);
    const double heads = (double)(N * x->head_dim);
    bank_slip(q, 2 * heads / (double)C, "This leaves out the rope part, which is cached beside the latent.");
    bank_slip(q, factor / 2, "One side is off by two: N heads cache keys and values, the latent serves for both.");
    bank_slip(q, 1 / factor, "This is the part that is left, not the factor.");
    bank_slip(q, 2 * heads / (double)(C + R * N), "This gives each head a rope part: one is shared by all.");
    bank_slip(q, factor / (double)N, "This caches one head of width H: there are N.");
    bank_step(q, "before: a key and a value of N heads, 2*N*H elements; after: C + R elements for both");
    bank_step(q,
              bank_printf(m, "2 * %lld * %lld / (%lld + %lld) = %.0f / %lld = %.4g", (long long)N,
                          (long long)x->head_dim, (long long)C, (long long)R, 2 * heads, (long long)(C + R), factor));
    bank_step(q, "DeepSeek-V2 caches 512 + 64 elements; its 128 heads of width 128 would be 2*16384.");
    return ERR_OK;
}

enum err_code bank_cache_window(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t WINDOWS[] = {512, 768, 1280, 2048, 4096};
    struct model d;
    double bytes, full;
    TRY(bank_decoder(m, &d, e));
    const int64_t every = bank_draw(m, 3, 8), global = bank_draw(m, 3, 10), W = bank_pick(m, 5, WINDOWS);
    const int64_t S = W * bank_draw(m, 2, 12) + 128 * bank_draw(m, 0, 3);
    struct layer_kind *k = arena_array(m->arena, 2, sizeof *k);
    if (!k) return err_nomem(e);
    k[0] = k[1] = d.kinds[0];
    k[0].count = global;
    k[1].count = (every - 1) * global;
    d.layers = every * global;
    d.kinds[0].count = d.layers;
    const struct mixer x = k[0].mixer;
    TRY(bank_cache_bytes(m, &d, S, &full, e));
    k[1].mixer.window_tokens = W;
    d.kinds = k;
    d.kinds_n = 2;
    TRY(bank_cache_bytes(m, &d, S, &bytes, e));
    const double layer = full / (double)(d.layers * S);
    bank_ask(q, UNITS_BYTES_PER_SEQUENCE, bytes, 0.01, BYTES_FORM);
    q->text = bank_printf(
        m,
        "A decoder has L = %lld layers with K = %lld KV heads of width H = %lld. One layer in %lld attends to "
        "the whole context, the others to a window of W = %lld tokens. How much KV cache does one "
        "sequence need at a context of S = %lld tokens, in bf16, when a layer keeps only what it can see?",
        (long long)d.layers, (long long)x.kv_heads, (long long)x.head_dim, (long long)every, (long long)W,
        (long long)S);
    bank_slip(q, full, "This keeps the whole context in every layer.");
    bank_slip(q, layer * (double)(d.layers * W), "This cuts every layer to its window: some see the whole context.");
    bank_slip(q, layer * (double)(global * S), "This leaves out the layers with a window.");
    bank_slip(q, layer * (double)(global * W + (d.layers - global) * S), "This swaps the layers that have a window.");
    bank_slip(q, bytes / 2, "This stores keys or values alone: the cache holds both.");
    bank_step(q, "bytes = (L_global*S + L_window*min(S, W)) * 2*K*H * 2 bytes");
    bank_step(q, bank_printf(m, "(%lld * %lld + %lld * %lld) * 2 * %lld * %lld * 2 = %s", (long long)global,
                             (long long)S, (long long)(d.layers - global), (long long)W, (long long)x.kv_heads,
                             (long long)x.head_dim, bank_shown(m, UNITS_BYTES, bytes)));
    bank_step(q, bank_printf(m, "%.3g of the %s that full attention in every layer takes", bytes / full,
                             bank_shown(m, UNITS_BYTES, full)));
    return ERR_OK;
}

/* The lecture's write-ups call 240 GB the cache of Llama 2 13B at B = 256; it is weights and cache (MODEL.md, Errata).
 */
enum err_code bank_cache_of_total(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const char *const MODELS[] = {"llama-2-13b", "llama-2-13b", "llama-2-7b", "llama-3-8b", "phi-4"};
    struct model d;
    struct bank_counts n;
    double one;
    TRY(bank_model(m, sizeof MODELS / sizeof MODELS[0], MODELS, &d, e));
    TRY(bank_count(m, &d, &n, e));
    const int64_t B = 16 * bank_draw(m, 3, 24), S = 128 * bank_draw(m, 4, 16);
    TRY(bank_cache_bytes(m, &d, S, &one, e));
    const double cache = (double)B * one, total = cache + n.weight_bytes;
    bank_ask(q, UNITS_BYTES, cache, 0.01, BYTES_FORM);
    q->text =
        bank_printf(m,
                    "%s has %s parameters (norms not counted) in 16 bits. A report says that at B = %lld and S = %lld "
                    "\"its KV cache takes %s "
                    "bytes\", but that figure is the memory of weights and cache together. How much does the cache "
                    "take?",
                    d.name, bank_digits(m, n.params), (long long)B, (long long)S, bank_digits(m, total));
    bank_slip(q, total, "This is the figure of the report: the weights are still in it.");
    bank_slip(q, total - n.params, "This takes a parameter for a byte: 16 bits are two.");
    bank_slip(q, n.weight_bytes, "These are the weights, not the cache.");
    bank_slip(q, one, "This is the cache of one sequence.");
    bank_step(q, "cache = memory - 2 bytes * parameters");
    bank_step(q, bank_printf(m, "%s - 2 * %s = %s", bank_digits(m, total), bank_digits(m, n.params),
                             bank_shown(m, UNITS_BYTES, cache)));
    return ERR_OK;
}

enum err_code bank_cache_without(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const int64_t p = bank_draw(m, 20, 900), g = bank_draw(m, 11, 200);
    const struct sym *flops, *per_token;
    double tokens = 0, one, pass;
    TRY(quantity_resolve(&m->textbook, QUANTITY_PREFILL, "flops", "mlp", &flops, e));
    const struct sym_binding unit[] = {{m->y.B, INT(1)}, {m->y.D, INT(1)}, {m->y.F, INT(1)}};
    per_token = sym_bind(m->c, flops, unit, 3);
    const struct sym_binding first = {m->y.S, INT(1)};
    if (!sym_constant(sym_bind(m->c, per_token, &first, 1), &one)) return sym_check(m->c, e);
    for (int64_t i = 0; i < g; i++) { /* every new token passes the model with all before it */
        const struct sym_binding at = {m->y.S, INT(p + i)};
        if (!sym_constant(sym_bind(m->c, per_token, &at, 1), &pass)) return sym_check(m->c, e);
        tokens += pass / one;
    }
    const double P = (double)p, G = (double)g;
    bank_ask(q, UNITS_COUNT, tokens, 0, COUNT_FORM);
    q->things = "token,tok";
    q->text =
        bank_printf(m,
                    "A prompt has P = %lld tokens, and G = %lld tokens are generated, one in a forward pass; the pass "
                    "over the prompt yields the first of them. There is no KV cache, so each pass takes the whole "
                    "sequence so far. How many tokens go through the model in all passes together?",
                    (long long)p, (long long)g);
    bank_slip(q, P + G - 1, "This is with a cache: without one, all tokens before go through again in each pass.");
    bank_slip(q, G * P, "This passes the prompt alone each time: what was generated goes through again too.");
    bank_slip(q, G * (P + G), "This gives every pass the final length: the sequence grows from pass to pass.");
    bank_slip(q, tokens + G, "This is one token too many in each pass: the first pass sees the prompt alone.");
    bank_slip(q, tokens - P, "This leaves out a pass: the one over the prompt counts too.");
    bank_slip(q, tokens + P + G, "This has one pass too many: the last token is not passed again.");
    bank_step(q, "pass i = 0 .. G-1 takes P + i tokens: G*P + G*(G - 1)/2");
    bank_step(q, bank_printf(m, "%lld * %lld + %lld * %lld / 2 = %s", (long long)g, (long long)p, (long long)g,
                             (long long)(g - 1), bank_digits(m, tokens)));
    bank_step(q, bank_printf(m, "With a cache it is P + G - 1 = %s: %.3g times fewer.", bank_digits(m, P + G - 1),
                             tokens / (P + G - 1)));
    return ERR_OK;
}
