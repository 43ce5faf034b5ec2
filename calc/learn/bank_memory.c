#include "calc/learn/bank_makers.h"

#define INT(n) sym_int(m->c, (n))
#define PROD(...) SYM_PROD(m->c, __VA_ARGS__)

static const char COUNT_FORM[] = "a whole number of parameters";
static const char BYTES_FORM[] = "bytes with their unit";
static const char PARAMETERS[] = "parameter,param,weight";
static const char LEFT_EMBEDDING[] = "This leaves out the embedding, a matrix of V x D.";
static const char LEFT_ENDS[] = "This leaves out embedding and output head, each a matrix of V x D.";
static const char SQUARE[] = "This takes W_Q and W_O for D x D: they are D x N*H, and N*H need not be D.";
static const char NORMS[] =
    "Each layer has the projections W_Q, W_K, W_V and W_O and a gated MLP of three matrices; there "
    "are no biases, and norms are not counted.";

static enum err_code total_of(struct exercise_maker *m, const struct model *d, double *out, struct err *e)
{
    struct bank_counts n;
    TRY(bank_count(m, d, &n, e));
    *out = n.params;
    return ERR_OK;
}

static enum err_code make_parameters(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d, flawed;
    double total, other_head, wide, two;
    TRY(bank_decoder(m, &d, e));
    d.tied = bank_draw(m, 0, 2) == 0;
    TRY(total_of(m, &d, &total, e));
    const struct mixer x = d.kinds[0].mixer;
    flawed = d;
    flawed.tied = !d.tied;
    TRY(total_of(m, &flawed, &other_head, e));
    TRY(bank_decoder_with(m, &d, x.heads, &flawed, e));
    TRY(total_of(m, &flawed, &wide, e));
    TRY(bank_decoder_with(m, &d, x.kv_heads, &flawed, e));
    flawed.kinds[0].ffn.gated = false;
    TRY(total_of(m, &flawed, &two, e));
    const double o_proj = (double)d.layers * (double)d.hidden * (double)(x.heads * x.v_head_dim);
    bank_ask(q, UNITS_COUNT, total, 0, COUNT_FORM);
    q->things = PARAMETERS;
    q->text = bank_printf(m, "A Llama-like decoder has %s. %s The output head %s. How many parameters does it have?",
                          bank_decoder_sizes(m, &d), NORMS,
                          d.tied ? "is the embedding's matrix (tied)" : "is a matrix of its own (not tied)");
    bank_slip(q, other_head,
              d.tied ? "This counts a head of its own: a tied head is the embedding's matrix, stored once."
                     : "This leaves out the output head: not tied, it is a second matrix as large as the embedding.");
    bank_slip(q, two, "This counts two matrices in the MLP: a gated one has gate, up and down.");
    bank_slip(q, wide, "This makes W_K and W_V as wide as W_Q: they have K heads, not N.");
    bank_slip(q, total - o_proj, "This leaves out W_O, which brings the heads back to the model width.");
    const double ends = (double)((d.tied ? 1 : 2) * d.vocab * d.hidden), D = (double)d.hidden;
    bank_slip(q, total - ends, d.tied ? LEFT_EMBEDDING : LEFT_ENDS);
    if (!d.tied) bank_slip(q, total - ends / 2, LEFT_EMBEDDING);
    bank_slip(q, total + 2 * ((double)d.layers * D * D - o_proj), SQUARE);
    const struct bank_template t = {.tied = d.tied, .gated = true};
    const struct sym *formula;
    TRY(bank_parameters(m, &t, &formula, e));
    bank_step(q, bank_printf(m, "Embedding%s: %sV*D = %s.", d.tied ? ", which is the head too" : " and head",
                             d.tied ? "" : "2*", bank_digits(m, (double)((d.tied ? 1 : 2) * d.vocab * d.hidden))));
    bank_step(q, bank_printf(m, "MLP of all layers: 3*L*D*F = %s.",
                             bank_digits(m, (double)(3 * d.layers * d.hidden * d.kinds[0].ffn.width))));
    bank_step(q, bank_printf(m, "W_Q and W_O are D x N*H, W_K and W_V are D x K*H: 2*L*D*H*(N + K) = %s.",
                             bank_digits(m, (double)(2 * d.layers * d.hidden * x.head_dim * (x.heads + x.kv_heads)))));
    bank_step(q, bank_printf(m, "Together %s = %s.", bank_show(m, formula), bank_digits(m, total)));
    return ERR_OK;
}

static enum err_code make_parameters_formula(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const struct bank_template t = {
        .tied = bank_draw(m, 0, 1) != 0, .gated = bank_draw(m, 0, 2) != 0, .mha = bank_draw(m, 0, 2) == 0};
    struct bank_template other_head = t, other_mlp = t, other_heads = t;
    const struct sym *s;
    other_head.tied = !t.tied;
    other_mlp.gated = !t.gated;
    other_heads.mha = true;
    q->kind = EXERCISE_FORMULA;
    q->unit = UNITS_COUNT;
    q->things = PARAMETERS;
    TRY(bank_parameters(m, &t, &q->answer, e));
    const struct sym *const names[] = {m->y.V, m->y.D, m->y.F, m->y.L, m->y.N, m->y.H, m->y.K};
    q->symbols_n = t.mha ? 6 : 7;
    for (size_t i = 0; i < q->symbols_n; i++) q->symbols[i] = names[i];
    q->form = t.mha ? "an expression in V, D, F, L, N, H" : "an expression in V, D, F, L, N, K, H";
    q->text =
        bank_printf(m,
                    "A decoder has L layers of width D, a vocabulary of V and an output head that is %s. Attention "
                    "has N query heads %s of width H, with projections W_Q, W_K, W_V and W_O. The MLP is %s and F "
                    "wide. There are no biases, and norms are not counted. Give the number of its parameters.",
                    t.tied ? "tied to the embedding" : "a matrix of its own (not tied)",
                    t.mha ? "and as many KV heads," : "and K KV heads,",
                    t.gated ? "gated (gate, up, down)" : "not gated (up, down)");
    TRY(bank_parameters(m, &other_head, &s, e));
    bank_slip_formula(
        q, s,
        t.tied ? "This counts a head of its own: a tied head is the embedding's matrix, stored once."
               : "This leaves out the output head: not tied, it is a second matrix as large as the embedding.");
    TRY(bank_parameters(m, &other_mlp, &s, e));
    bank_slip_formula(q, s,
                      t.gated ? "This counts two matrices in the MLP: a gated one has gate, up and down."
                              : "This counts a gate: without one the MLP is up and down alone.");
    TRY(bank_parameters(m, &other_heads, &s, e));
    if (!t.mha) bank_slip_formula(q, s, "This makes W_K and W_V as wide as W_Q: they have K heads, not N.");
    bank_slip_formula(q, sym_sub(m->c, q->answer, PROD(m->y.L, m->y.D, m->y.N, m->y.H)),
                      "This leaves out one projection of D by N*H: attention has W_Q and W_O of that size.");
    const struct sym_binding one = {m->y.L, INT(1)};
    bank_slip_formula(q, sym_bind(m->c, q->answer, &one, 1), "This counts one layer only.");
    const struct sym *end = PROD(m->y.V, m->y.D), *square = PROD(m->y.L, m->y.D, m->y.D);
    bank_slip_formula(q, sym_sub(m->c, q->answer, end), LEFT_EMBEDDING);
    if (!t.tied) bank_slip_formula(q, sym_sub(m->c, q->answer, PROD(INT(2), end)), LEFT_ENDS);
    const struct sym *heads = PROD(m->y.L, m->y.D, m->y.N, m->y.H);
    bank_slip_formula(q, sym_add(m->c, q->answer, PROD(INT(t.mha ? 4 : 2), sym_sub(m->c, square, heads))), SQUARE);
    bank_step(q, t.tied ? "Embedding and head are one matrix: V*D." : "Embedding and head: 2*V*D.");
    bank_step(q, t.gated ? "MLP of a layer: gate and up of D x F, down of F x D: 3*D*F."
                         : "MLP of a layer: up of D x F, down of F x D: 2*D*F.");
    bank_step(q, t.mha ? "Attention of a layer: four matrices of D x N*H: 4*D*N*H."
                       : "Attention of a layer: W_Q and W_O of D x N*H, W_K and W_V of D x K*H: 2*D*H*(N + K).");
    bank_step(q, bank_printf(m, "With L layers: %s.", bank_show(m, q->answer)));
    return ERR_OK;
}

static enum err_code make_weight_bytes(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const char *const MODELS[] = {"llama-2-7b",  "llama-2-13b", "llama-2-70b", "llama-3-8b",
                                         "llama-3-70b", "yi-34b",      "mixtral-8x7b"};
    static const char *const FORMATS[] = {"fp32", "bf16", "fp8"};
    struct model d;
    struct dtype f;
    struct bank_counts n;
    TRY(bank_model(m, sizeof MODELS / sizeof MODELS[0], MODELS, &d, e));
    TRY(dtype_find(FORMATS[bank_draw(m, 0, 2)], &f, e));
    for (size_t i = 0; i < WEIGHT_CLASSES; i++) d.weights[i] = f;
    TRY(bank_count(m, &d, &n, e));
    bank_ask(q, UNITS_BYTES, n.weight_bytes, 0.01, BYTES_FORM);
    q->text = bank_printf(
        m, "%s has %s parameters (norms not counted). How much memory do its weights take, all of them stored in %s?",
        d.name, bank_digits(m, n.params), f.name);
    bank_slip(q, n.params * f.bits, "This counts bits: a byte has 8 of them.");
    if (f.bits > 8) bank_slip(q, n.params, "This takes a parameter for a byte.");
    bank_slip(q, 2 * n.params, "This takes 2 bytes for each parameter, as of bf16.");
    bank_slip(q, 4 * n.params, "This takes 4 bytes for each parameter, as of fp32.");
    bank_step(q, "bytes = parameters * bits / 8");
    bank_step(q, bank_printf(m, "%s * %g / 8 = %s", bank_digits(m, n.params), f.bits,
                             bank_shown(m, UNITS_BYTES, n.weight_bytes)));
    return ERR_OK;
}

static enum err_code make_group_scales(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t GROUPS[] = {32, 64, 128};
    struct model d, plain;
    struct dtype f;
    struct bank_counts n, all4;
    struct cost_parameters p;
    const struct cost_conventions v = bank_course(m);
    TRY(bank_decoder(m, &d, e));
    const int64_t g = bank_pick(m, 3, GROUPS);
    TRY(dtype_find(bank_printf(m, "int4-g%lld", (long long)g), &f, e));
    d.weights[WEIGHT_MIXER] = d.weights[WEIGHT_FFN] = f;
    TRY(bank_count(m, &d, &n, e));
    TRY(cost_parameters(m->arena, &d, &v, &p, e));
    plain = d;
    plain.weights[WEIGHT_EMBED] = plain.weights[WEIGHT_HEAD] = f;
    TRY(bank_count(m, &plain, &all4, e));
    const double ends = p.embedding + p.head, layers = p.total - ends, groups = layers / (double)g;
    const double zero_bits = f.scale_bits - 16;
    bank_ask(q, UNITS_BYTES, n.weight_bytes, 0.002, "bytes with their unit and four digits");
    q->text =
        bank_printf(m,
                    "The layers of a decoder hold %s parameters, its embedding and output head together %s. The "
                    "layers are quantised to 4 bits in groups of g = %lld along a row, and each group has a scale in "
                    "fp16 and a zero point of %g bits; embedding and head stay in bf16. How much memory do the weights "
                    "take?",
                    bank_digits(m, layers), bank_digits(m, ends), (long long)g, zero_bits);
    bank_slip(q, n.weight_bytes - groups * f.scale_bits / 8,
              "This leaves out what every group stores beside its weights.");
    bank_slip(q, n.weight_bytes - groups * zero_bits / 8, "This counts the scales but not the zero points.");
    bank_slip(q, all4.weight_bytes, "This quantises embedding and head too: they stay in bf16.");
    bank_slip(q, n.weight_bytes - 2 * ends, "This leaves out embedding and head.");
    bank_slip(q, n.weight_bytes + layers * (f.scale_bits - f.scale_bits / (double)g) / 8,
              "This gives every weight a scale of its own: one serves a whole group.");
    bank_step(q, "bits for each weight of a layer: 4 + (16 + zero point)/g");
    bank_step(q,
              bank_printf(m, "4 + %g/%lld = %g bits", f.scale_bits, (long long)g, f.bits + f.scale_bits / (double)g));
    bank_step(q, bank_printf(m, "layers: %s * %g / 8 = %s", bank_digits(m, layers), f.bits + f.scale_bits / (double)g,
                             bank_shown(m, UNITS_BYTES, n.weight_bytes - 2 * ends)));
    bank_step(q, bank_printf(m, "embedding and head: %s * 2 = %s", bank_digits(m, ends),
                             bank_shown(m, UNITS_BYTES, 2 * ends)));
    bank_step(q, bank_printf(m, "together %s", bank_shown(m, UNITS_BYTES, n.weight_bytes)));
    return ERR_OK;
}

#define SET "2 memory"
#define SEE_CACHE "ridge explain kv_write"

static const struct exercise ROWS[] = {
    {"parameters", SET, "parameters of a decoder from its sizes", "ridge explain qkv_proj", make_parameters},
    {"parameters-formula", SET, "parameters of a decoder, as a formula", "ridge explain qkv_proj",
     make_parameters_formula},
    {"weight-bytes", SET, "memory of the weights in a format", NULL, make_weight_bytes},
    {"group-scales", SET, "memory of weights in 4 bits, with scales for groups", NULL, make_group_scales},
    {"cache-formula", SET, "bytes in the KV cache, as a formula", SEE_CACHE, bank_cache_formula},
    {"cache-token", SET, "bytes in the KV cache for each token", SEE_CACHE, bank_cache_token},
    {"cache-batch", SET, "the KV cache of a batch", SEE_CACHE, bank_cache_batch},
    {"cache-of-total", SET, "how much of the memory is cache", SEE_CACHE, bank_cache_of_total},
    {"without-cache", SET, "tokens that pass the model when nothing is cached", SEE_CACHE, bank_cache_without},
    {"gqa-saving", SET, "memory that fewer KV heads save", SEE_CACHE, bank_cache_gqa_saving},
    {"latent-cache", SET, "how much smaller latent attention makes the cache", "ridge explain latent_attention",
     bank_cache_latent},
    {"window-cache", SET, "the KV cache when most layers see a window", SEE_CACHE, bank_cache_window},
    {"cache-equals-weights", SET, "the context at which cache and weights are equal", SEE_CACHE,
     bank_cache_equals_weights},
    {"largest-batch", SET, "the largest batch that fits", SEE_CACHE, bank_cache_largest_batch},
};

const struct exercise *bank_memory(size_t *n)
{
    *n = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}
