#include "calc/learn/bank_scale.h"

#include "calc/cost/layout.h"
#include "calc/time/timed.h"

#define INT(n) sym_int(m->c, (n))

/* Bytes that one of t ranks (one of dp groups of them) sends in a pass, in operators of one kind. */
static enum err_code sent_bytes(struct exercise_maker *m, const struct model *d, const struct layout *l,
                                enum cost_op_kind kind, int64_t B, int64_t T, double *out, struct err *e)
{
    const struct cost_conventions v = bank_course(m);
    const struct cost_pass pass = {.name = "prefill", .B = INT(B), .T = INT(T), .S = INT(T)};
    const struct cost_layout layout = {.layout = *l};
    const struct sym_binding ring = {m->y.r, timed_wire_factor(m->c, NULL, l->tp)};
    struct cost_ops ops;
    double x;
    TRY(cost_build_layout(m->arena, m->c, &m->y, d, &v, &pass, &layout, &ops, e));
    TRY(cost_bind_layout(m->c, &m->y, d, &layout, &ops, e));
    *out = 0;
    for (size_t i = 0; i < ops.n; i++)
        if (ops.op[i].kind == kind && ops.op[i].kind_index >= 0 &&
            sym_constant(sym_bind(m->c, ops.op[i].wire_bytes, &ring, 1), &x))
            *out += (double)ops.op[i].count * x;
    return sym_check(m->c, e);
}

/* A decoder whose heads and widths divide by 2, 4, 8 and 16. */
static enum err_code draw_divisible(struct exercise_maker *m, struct model *d, struct err *e)
{
    static const int64_t HEADS[] = {32, 48, 64, 96};
    TRY(bank_decoder(m, d, e));
    d->kinds[0].mixer.heads = bank_pick(m, 4, HEADS);
    d->kinds[0].mixer.kv_heads = 16; /* not a unit */
    return ERR_OK;
}

enum err_code bank_ranks_sums(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t RANKS[] = {2, 4, 8, 16};
    struct model d;
    double sent;
    TRY(draw_divisible(m, &d, e));
    const int64_t t = bank_pick(m, 4, RANKS), T = 64 * bank_draw(m, 1, 128) + 5;
    TRY(sent_bytes(m, &d, &(struct layout){.tp = t, .per_node = t}, OP_ALL_REDUCE, 1, T, &sent, e));
    const double n = (double)t, L = (double)d.layers, vector = (double)(T * d.hidden) * 2;
    bank_ask(q, UNITS_BYTES, sent, 0.01, "bytes with their unit");
    q->text = bank_printf(m,
                          "A dense model of L = %lld layers and width D = %lld runs on t = %lld GPUs with tensor "
                          "parallelism: they split heads and MLP columns, and sum the bf16 outputs of attention and of "
                          "the MLP over all GPUs in each layer. A sum over ranks goes around a ring: each first gets "
                          "its part of the vector summed, then the parts are spread. How many bytes does one GPU send "
                          "for these sums in a pass of T = %lld tokens?",
                          (long long)d.layers, (long long)d.hidden, (long long)t, (long long)T);
    bank_slip(q, sent / 2,
              "This is half: a layer has two sums, and around a ring each sends every part twice, once to "
              "sum and once to spread it.");
    bank_slip(q, 2 * L * vector, "This sends the vector once, as in a switch that sums.");
    bank_slip(q, 2 * L * 2 * vector, "This sends a rank's own part, too: (t-1)/t of the vector travels each time.");
    bank_slip(q, 2 * L * 2 * (n - 1) * vector,
              "This sends the vector to each of the others: around a ring parts of it "
              "are passed on.");
    bank_slip(q, n * sent, "These are the bytes of all GPUs.");
    bank_slip(q, sent / L, "This is one layer.");
    bank_slip(q, sent / (double)T, "This is one token.");
    bank_slip(q, sent / n, "This splits the vector over the ranks: what is summed is D wide on each.");
    bank_step(q, "a sum of M bytes: (t-1)/t*M to sum the parts, (t-1)/t*M to spread them");
    bank_step(q, bank_printf(m, "M = T*D*2 = %s", bank_shown(m, UNITS_BYTES, vector)));
    bank_step(q, bank_printf(m, "2*L sums * 2*(t-1)/t * M = %lld * %.4g * M = %s", (long long)(2 * d.layers),
                             2 * (n - 1) / n, bank_shown(m, UNITS_BYTES, sent)));
    return ERR_OK;
}

enum err_code bank_ranks_cache(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t RANKS[] = {4, 8, 16}, KV[] = {1, 2, 4, 8};
    struct model d;
    struct cost_cache cache;
    TRY(draw_divisible(m, &d, e));
    struct mixer *x = &d.kinds[0].mixer;
    const int64_t t = bank_pick(m, 3, RANKS), B = bank_draw(m, 3, 60),
                  S = 100 * bank_draw(m, 9, 160) + 3; /* not a unit */
    x->kv_heads = bank_pick(m, 4, KV);
    TRY(cost_cache(m->c, &m->y, &d, t, &cache, e));
    const double tokens = (double)B * (double)S, held = tokens * cache.bytes_per_token_full, n = (double)t;
    const double head = tokens * (double)(2 * d.layers * x->head_dim) * 2, K = (double)x->kv_heads;
    bank_ask(q, UNITS_BYTES, held, 0.01, "bytes with their unit");
    q->text =
        bank_printf(m,
                    "A decoder has L = %lld layers with N = %lld query heads and K = %lld KV heads of width H = "
                    "%lld, and caches keys and values in bf16. Tensor parallelism splits the heads over t = %lld "
                    "GPUs; each keeps the keys and values that its query heads attend to, and no head is cut. How "
                    "many bytes of cache do B = %lld sequences of S = %lld tokens take on one GPU?",
                    (long long)d.layers, (long long)x->heads, (long long)x->kv_heads, (long long)x->head_dim,
                    (long long)t, (long long)B, (long long)S);
    bank_slip(q, head * K / n, "This cuts heads: a GPU holds one at least, so with fewer than GPUs they are copied.");
    bank_slip(q, head * K, "This is the cache of all heads: a GPU has its part of them.");
    bank_slip(q, head * (double)x->heads / n, "This counts query heads: the cache has KV heads.");
    bank_slip(q, held / 2, "This counts keys or values alone: the cache holds both.");
    bank_slip(q, n * held, "These are all GPUs together.");
    bank_slip(q, held / (double)B, "This is one sequence.");
    bank_slip(q, held / (double)d.layers, "This is one layer.");
    bank_step(q, bank_printf(m, "KV heads of a GPU: max(1, K/t) = max(1, %lld/%lld) = %.0f", (long long)x->kv_heads,
                             (long long)t, held / head));
    bank_step(q, bank_printf(m, "B*S * 2*L*H*2 bytes a head = %s", bank_shown(m, UNITS_BYTES, head)));
    bank_step(q, bank_printf(m, "%.0f of them: %s; all GPUs hold each head %.3g times", held / head,
                             bank_shown(m, UNITS_BYTES, held), n * held / (head * K)));
    return ERR_OK;
}

enum err_code bank_ranks_latents(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t LATENTS[] = {256, 384, 512}, RANKS[] = {4, 8, 16};
    struct model d;
    struct cost_cache cache;
    TRY(draw_divisible(m, &d, e));
    struct mixer *x = &d.kinds[0].mixer;
    x->kind = MIXER_LATENT;
    x->kv_heads = x->heads;
    x->kv_rank = bank_pick(m, 3, LATENTS);
    x->rope_dim = 64;
    const bool groups = bank_draw(m, 0, 1) != 0;
    const int64_t t = bank_pick(m, 3, RANKS), B = t * bank_draw(m, 2, 24),
                  S = 100 * bank_draw(m, 9, 300) + 7; /* not a unit */
    TRY(cost_cache(m->c, &m->y, &d, groups ? 1 : t, &cache, e));
    const double n = (double)t, one = (double)S * cache.bytes_per_token_full, sequences = (double)B;
    const double held = one * sequences / (groups ? n : 1), N = (double)x->heads;
    bank_ask(q, UNITS_BYTES, held, 0.01, "bytes with their unit");
    q->text = bank_printf(
        m,
        "A decoder with latent attention (MLA) has L = %lld layers of N = %lld heads. For each token a layer caches a "
        "latent of C = %lld elements and a key of R = %lld, for all heads together, in bf16. t = %lld GPUs serve B = "
        "%lld sequences of S = %lld tokens; %s. How many bytes of cache does one GPU hold?",
        (long long)d.layers, (long long)x->heads, (long long)x->kv_rank, (long long)x->rope_dim, (long long)t,
        (long long)B, (long long)S,
        groups ? "each has the attention of all heads for its part of the sequences (attention data parallelism)"
               : "tensor parallelism splits the heads over them, and each works on all sequences");
    bank_slip(q, groups ? one * sequences : one * sequences / n,
              groups
                  ? "This keeps all sequences on each GPU: it has its part of them."
                  : "This splits the latents: they belong to all heads, so every GPU that has some needs them whole.");
    bank_slip(q, held / (double)(x->kv_rank + x->rope_dim) * (double)x->kv_rank, "This leaves out the rope part.");
    bank_slip(q, 2 * held, "This counts keys and values apart: both are made from the one latent.");
    bank_slip(q, held / (double)d.layers, "This is one layer.");
    bank_slip(q, groups ? held / n : held * N / n,
              groups ? "This splits each latent on top: a GPU has whole sequences."
                     : "This gives each head a latent: they share it.");
    bank_slip(q, one, "This is one sequence.");
    bank_step(q, bank_printf(m, "a token: L*(C + R)*2 = %s bytes", bank_digits(m, cache.bytes_per_token_full)));
    bank_step(q, groups ? bank_printf(m, "a GPU has %lld/%lld = %.0f of the sequences", (long long)B, (long long)t,
                                      sequences / n)
                        : "latents have no heads to split: each GPU keeps those of all B sequences");
    bank_step(q, bank_printf(m, "%.0f * %lld * %s = %s; the other way it is %s", groups ? sequences / n : sequences,
                             (long long)S, bank_digits(m, cache.bytes_per_token_full), bank_shown(m, UNITS_BYTES, held),
                             bank_shown(m, UNITS_BYTES, groups ? one * sequences : one * sequences / n)));
    return ERR_OK;
}

enum err_code bank_ranks_bubble(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const int64_t p = bank_draw(m, 2, 16), n = bank_draw(m, 2, 48);
    const double stages = (double)p, parts = (double)n, idle = layout_bubble(p, n);
    (void)e;
    bank_ask(q, UNITS_FRAC, idle, 0.01, "a part");
    q->text = bank_printf(m,
                          "The layers of a model are split into %lld stages on as many GPUs, all equally long. A batch "
                          "passes them as %lld microbatches, one behind the other, and the next batch starts when the "
                          "last microbatch has left the last stage. Which part of the time does a GPU idle?",
                          (long long)p, (long long)n);
    bank_slip(q, (stages - 1) / parts, "This is idle time over busy time: the whole is both.");
    bank_slip(q, 1 - idle, "This is the part in which it works.");
    bank_slip(q, (stages - 1) / stages, "This is one microbatch: the others fill the stages behind it.");
    bank_slip(q, stages / (parts + stages), "This idles for a slot too many: a GPU waits while p - 1 others work.");
    bank_slip(q, 1 / (parts + stages - 1), "This is one idle slot: a GPU waits for each of the other stages.");
    bank_slip(q, (stages - 1) / (parts * stages),
              "This adds up the time of all stages: microbatches are in them at once.");
    bank_step(q, "the last microbatch leaves after m + p - 1 slots, of which each GPU works in m");
    bank_step(q, bank_printf(m, "(p - 1) / (m + p - 1) = %lld / %lld = %.4g", (long long)(p - 1),
                             (long long)(n + p - 1), idle));
    return ERR_OK;
}

enum err_code bank_ranks_dispatch(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t RANKS[] = {8, 16, 32, 64};
    struct model d;
    double sent;
    TRY(draw_divisible(m, &d, e));
    const int64_t G = bank_pick(m, 4, RANKS), each = 2 * bank_draw(m, 1, 4);
    const int64_t k = bank_draw(m, 2, G < 16 ? 6 : 8), T = bank_draw(m, 17, 260);
    d.kinds[0].ffn = (struct ffn){
        .kind = FFN_MOE, .gated = true, .width = 1536, .experts = G * each, .experts_per_token = k}; /* not a unit */
    TRY(sent_bytes(m, &d, &(struct layout){.dp = G, .ep = G, .per_node = G}, OP_ALL_TO_ALL, 1, T, &sent, e));
    const double n = (double)G, L = (double)d.layers, copy = (double)(T * d.hidden) * 2, taken = (double)k;
    bank_ask(q, UNITS_BYTES, sent, 0.01, "bytes with their unit");
    q->text =
        bank_printf(m,
                    "The E = %lld routed experts of each of L = %lld layers are dealt to G = %lld GPUs, and each "
                    "GPU has sequences of its own. In a layer a token of width D = %lld goes in bf16 to the GPU of "
                    "each of its k = %lld experts, once for each of them, and its results come back the same way; "
                    "all experts are equally likely, and what stays on a GPU is not sent. Each GPU has T = %lld "
                    "tokens. How many bytes does one GPU send in a pass, for tokens out and results back?",
                    (long long)d.kinds[0].ffn.experts, (long long)d.layers, (long long)G, (long long)d.hidden,
                    (long long)k, (long long)T);
    bank_slip(q, sent / 2, "This is one way: tokens go out and results come back.");
    bank_slip(q, 2 * L * taken * copy, "This sends what stays, too: one in G experts is on the token's own GPU.");
    bank_slip(q, sent / taken, "This sends a token to one expert: it goes to k.");
    bank_slip(q, 2 * L * (n - 1) * copy, "This sends each token to all GPUs: it goes to those of its experts.");
    bank_slip(q, sent / L, "This is one layer.");
    bank_slip(q, sent / (double)T, "This is one token.");
    bank_slip(q, n * sent, "These are the bytes of all GPUs.");
    bank_step(q, "each way: L*T tokens * k copies * (G-1)/G that leave * D*2 bytes");
    bank_step(
        q, bank_printf(m, "a pass: T*D*2 = %s in a layer if each token left once", bank_shown(m, UNITS_BYTES, copy)));
    bank_step(q, bank_printf(m, "2 * %lld * %lld * %lld/%lld * %s = %s", (long long)d.layers, (long long)k,
                             (long long)(G - 1), (long long)G, bank_shown(m, UNITS_BYTES, copy),
                             bank_shown(m, UNITS_BYTES, sent)));
    return ERR_OK;
}
