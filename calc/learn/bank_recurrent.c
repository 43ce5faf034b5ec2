#include "calc/learn/bank_arch.h"

static const char BYTES_FORM[] = "bytes with their unit";

/* A layer that keeps, for each of its heads, a matrix of `keys` x `values` elements instead of a cache. */
static void make_recurrent(struct layer_kind *k, enum recurrent_block block, int64_t heads, int64_t keys,
                           int64_t values)
{
    struct mixer *x = &k->mixer;
    *x = (struct mixer){.kind = MIXER_RECURRENT,
                        .heads = heads,
                        .kv_heads = block == RECURRENT_SSD ? 1 : heads,
                        .head_dim = keys,
                        .v_head_dim = values};
    x->recurrence = (struct recurrence){.block = block, .chunk_tokens = 64};
    k->label = "recurrence + mlp";
}

enum err_code bank_recurrent_crossing(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t STATES[] = {64, 96, 128, 256}, WIDTHS[] = {48, 64, 80, 128},
                         HEADS[] = {24, 32, 48, 64, 80, 128};
    struct model d, ssm;
    struct cost_cache cache;
    double state;
    TRY(bank_decoder(m, &d, e));
    d.layers = d.kinds[0].count = 1;
    const struct mixer x = d.kinds[0].mixer;
    const int64_t n = bank_pick(m, 4, STATES), P = bank_pick(m, 4, WIDTHS), heads = bank_pick(m, 6, HEADS);
    TRY(bank_decoder_with(m, &d, x.kv_heads, &ssm, e));
    make_recurrent(&ssm.kinds[0], RECURRENT_SSD, heads, n, P);
    TRY(dtype_find("fp32", &ssm.state, e));
    TRY(bank_arch_state(m, &ssm, &state, e));
    TRY(cost_cache(m->c, &m->y, &d, 1, &cache, e));
    const double token = cache.bytes_per_token_full, S = state / token;
    bank_ask(q, UNITS_COUNT, S, 0.01, "a number of tokens (need not be whole)");
    q->things = "token,tok";
    q->text = bank_printf(
        m,
        "A state-space layer (Mamba-2) keeps for each sequence a state of %lld heads, each a matrix of n = %lld by P = "
        "%lld elements in fp32, however long the sequence is. An attention layer with N = %lld query heads and K = "
        "%lld KV heads of width H = %lld keeps its cache in bf16. From which context on does the attention layer "
        "keep more bytes of a sequence than the state-space layer? (The columns of its short convolution are left "
        "aside.)",
        (long long)heads, (long long)n, (long long)P, (long long)x.heads, (long long)x.kv_heads, (long long)x.head_dim);
    bank_slip(q, S / 2, "Two bytes are taken for an element of the state: fp32 has four.");
    bank_slip(q, 2 * S, "This stores keys or values alone: the cache holds both.");
    bank_slip(q, S / (double)heads, "This is the state of one head: every head has a matrix of its own.");
    bank_slip(q, S / (double)n, "This keeps a vector of P elements for each head: the state is a matrix of n by P.");
    bank_slip(q, S * (double)x.kv_heads / (double)x.heads,
              "This caches the query heads: only the K KV heads have keys and values.");
    bank_slip(q, state, "These are the bytes of the state: divide by what a token adds to the cache.");
    bank_step(q, bank_printf(m, "state: %lld * %lld * %lld * 4 bytes = %s", (long long)heads, (long long)n,
                             (long long)P, bank_digits(m, state)));
    bank_step(q, bank_printf(m, "cache of a token: 2*K*H * 2 bytes = 2 * %lld * %lld * 2 = %s", (long long)x.kv_heads,
                             (long long)x.head_dim, bank_digits(m, token)));
    bank_step(q, bank_printf(m, "S = %s / %s = %.5g tokens", bank_digits(m, state), bank_digits(m, token), S));
    return ERR_OK;
}

enum err_code bank_recurrent_state(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t KEYS[] = {48, 64, 128}, VALUES[] = {96, 128, 256}, HEADS[] = {8, 12, 16, 24, 32};
    struct model d;
    double one;
    TRY(bank_decoder(m, &d, e));
    const int64_t N = bank_pick(m, 5, HEADS), H = bank_pick(m, 3, KEYS), Hv = bank_pick(m, 3, VALUES);
    const int64_t B = bank_draw(m, 3, 128), S = 1024 * bank_draw(m, 2, 128); /* not a unit */
    make_recurrent(&d.kinds[0], RECURRENT_LINEAR, N, H, Hv);
    TRY(dtype_find("fp32", &d.state, e));
    TRY(bank_arch_state(m, &d, &one, e));
    const double all = (double)B * one, L = (double)d.layers, elements = (double)H * (double)Hv;
    bank_ask(q, UNITS_BYTES, all, 0.01, BYTES_FORM);
    q->text = bank_printf(m,
                          "Linear attention has no cache: each of its N = %lld heads keeps the sum of k*v^T over all "
                          "tokens so far, with keys k of H = %lld and values v of P = %lld elements, in fp32. How much "
                          "memory do L = %lld such layers keep for B = %lld sequences of S = %lld tokens each?",
                          (long long)N, (long long)H, (long long)Hv, (long long)d.layers, (long long)B, (long long)S);
    bank_slip(q, all * (double)S, "This keeps a state for every token: one is updated from token to token.");
    bank_slip(q, all / elements * (double)(H + Hv) * (double)S,
              "This caches keys and values of all tokens: they are summed up in the state.");
    bank_slip(q, all / elements * (double)(H + Hv),
              "This keeps a key and a value: their product is a matrix of H by P.");
    bank_slip(q, all / 2, "Two bytes are taken for an element of the state: fp32 has four.");
    bank_slip(q, all / (double)N, "This is the state of one head: every head has a matrix of its own.");
    bank_slip(q, one, "This counts one sequence of the batch.");
    bank_slip(q, all / L, "This counts one layer: each has a state of its own.");
    bank_step(q, "bytes = B*L*N * H*P * 4: a matrix for each sequence, layer and head; S does not matter");
    bank_step(q, bank_printf(m, "%lld * %lld * %lld * %lld * %lld * 4 = %s", (long long)B, (long long)d.layers,
                             (long long)N, (long long)H, (long long)Hv, bank_shown(m, UNITS_BYTES, all)));
    return ERR_OK;
}

enum err_code bank_recurrent_hybrid(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t STATES[] = {64, 128, 256}, WIDTHS[] = {64, 80, 128}, HEADS[] = {48, 64, 96, 128};
    struct model d, full;
    double cached, state, dense;
    TRY(bank_decoder(m, &full, e));
    const int64_t groups = bank_draw(m, 3, 9), B = bank_draw(m, 3, 64);
    const int64_t S = 1024 * bank_draw(m, 4, 128); /* not a unit */
    const int64_t n = bank_pick(m, 3, STATES), P = bank_pick(m, 3, WIDTHS), heads = bank_pick(m, 4, HEADS);
    full.layers = full.kinds[0].count = 8 * groups;
    TRY(bank_arch_split(m, &full, groups, &d, e));
    make_recurrent(&d.kinds[1], RECURRENT_SSD, heads, n, P);
    TRY(dtype_find("fp32", &d.state, e));
    TRY(bank_cache_bytes(m, &d, S, &cached, e));
    TRY(bank_cache_bytes(m, &full, S, &dense, e));
    TRY(bank_arch_state(m, &d, &state, e));
    const struct mixer x = full.kinds[0].mixer;
    const double b = (double)B;
    bank_ask(q, UNITS_BYTES, b * (cached + state), 0.01, BYTES_FORM);
    q->text = bank_printf(
        m,
        "A hybrid has L = %lld layers. One layer in n = 8 is attention with N = %lld query heads and K = %lld KV heads "
        "of width H = %lld, its cache in bf16; the others keep a state of %lld heads, each a matrix of %lld by P = "
        "%lld elements in fp32. How much memory do cache and states of B = %lld sequences take at a context of S = "
        "%lld tokens each? (Columns of short convolutions are left aside.)",
        (long long)d.layers, (long long)x.heads, (long long)x.kv_heads, (long long)x.head_dim, (long long)heads,
        (long long)n, (long long)P, (long long)B, (long long)S);
    bank_slip(q, b * dense, "This gives every layer a cache: one in eight is attention.");
    bank_slip(q, b * (dense + state), "This gives each layer a cache, most of them beside its state.");
    bank_slip(q, b * cached, "This is the cache alone: the other layers keep a state.");
    bank_slip(q, b * state, "These are the states alone: the attention layers keep a cache.");
    bank_slip(q, b * (cached + state * (double)S),
              "This keeps a state for every token: one is updated from token to token.");
    bank_slip(q, cached + state, "This counts one sequence of the batch.");
    bank_slip(q, b * (7 * cached + state / 7), "This swaps the layers: seven in eight keep a state.");
    bank_slip(q, b * (cached + state / 2), "Two bytes are taken for an element of the state: fp32 has four.");
    bank_step(q, bank_printf(m, "cache: B*S * 2*(L/8)*K*H * 2 bytes = %lld * %lld * 2 * %lld * %lld * %lld * 2 = %s",
                             (long long)B, (long long)S, (long long)groups, (long long)x.kv_heads,
                             (long long)x.head_dim, bank_shown(m, UNITS_BYTES, b * cached)));
    bank_step(q, bank_printf(m, "states: B*(7*L/8) * heads*n*P * 4 bytes = %lld * %lld * %lld * %lld * %lld * 4 = %s",
                             (long long)B, (long long)(7 * groups), (long long)heads, (long long)n, (long long)P,
                             bank_shown(m, UNITS_BYTES, b * state)));
    bank_step(q, bank_printf(m, "together %s; attention in every layer would keep %s",
                             bank_shown(m, UNITS_BYTES, q->value), bank_shown(m, UNITS_BYTES, b * dense)));
    return ERR_OK;
}
