#include "calc/learn/bank_arch.h"

#include <string.h>

#define INT(n) sym_int(m->c, (n))
#define PROD(...) SYM_PROD(m->c, __VA_ARGS__)
#define SUM(...) SYM_SUM(m->c, __VA_ARGS__)

static const char BYTES_FORM[] = "bytes with their unit";

enum err_code bank_arch_split(struct exercise_maker *m, const struct model *of, int64_t first, struct model *out,
                              struct err *e)
{
    struct layer_kind *k = arena_array(m->arena, 2, sizeof *k);
    if (!k) return err_nomem(e);
    *out = *of;
    k[0] = k[1] = of->kinds[0];
    k[0].count = first;
    k[1].count = of->layers - first;
    out->kinds = k;
    out->kinds_n = 2;
    return ERR_OK;
}

enum err_code bank_arch_state(struct exercise_maker *m, const struct model *d, double *out, struct err *e)
{
    struct cost_cache cache;
    TRY(cost_cache(m->c, &m->y, d, 1, &cache, e));
    *out = cache.state_bytes_per_sequence;
    return ERR_OK;
}

enum err_code bank_arch_parameters(struct exercise_maker *m, const struct model *d, struct cost_parameters *out,
                                   struct err *e)
{
    const struct cost_conventions v = bank_course(m);
    return cost_parameters(m->arena, d, &v, out, e);
}

enum err_code bank_arch_pass(struct exercise_maker *m, const struct model *d, const struct cost_conventions *v,
                             const struct cost_pass *pass, bool bound, struct cost_ops *out, struct err *e)
{
    TRY(cost_build(m->arena, m->c, &m->y, d, v, pass, 1, out, e));
    return bound ? cost_bind(m->c, &m->y, d, 1, out, e) : sym_check(m->c, e);
}

/* ---- latent attention ---- */

static enum err_code draw_latent(struct exercise_maker *m, struct model *d, struct err *e)
{
    static const int64_t HEADS[] = {16, 24, 32, 48, 64, 128}, LATENTS[] = {192, 256, 384, 512, 768},
                         ROPES[] = {32, 64, 96};
    TRY(bank_decoder(m, d, e));
    struct mixer *x = &d->kinds[0].mixer;
    x->kind = MIXER_LATENT;
    x->heads = x->kv_heads = bank_pick(m, 6, HEADS);
    x->kv_rank = bank_pick(m, 5, LATENTS);
    x->rope_dim = bank_pick(m, 3, ROPES);
    return ERR_OK;
}

static enum err_code make_latent_token(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    struct bank_counts n;
    TRY(draw_latent(m, &d, e));
    TRY(dtype_find(bank_draw(m, 0, 2) ? "bf16" : "fp8", &d.kv, e));
    TRY(bank_count(m, &d, &n, e));
    const struct mixer x = d.kinds[0].mixer;
    const double L = (double)d.layers, C = (double)x.kv_rank, R = (double)x.rope_dim, N = (double)x.heads;
    const double bytes = d.kv.bits / 8;
    bank_ask(q, UNITS_BYTES_PER_TOKEN, n.kv_bytes_per_token, 0.01, BYTES_FORM);
    q->text = bank_printf(m,
                          "A decoder with latent attention (MLA) has L = %lld layers of N = %lld heads, each H = %lld "
                          "wide. For each token a layer caches one latent of C = %lld elements, from which the keys "
                          "and values of all heads are made, and a rope part of R = %lld, which all heads share. The "
                          "cache is kept in %s. How many bytes does each token add to it?",
                          (long long)d.layers, (long long)x.heads, (long long)x.head_dim, (long long)x.kv_rank,
                          (long long)x.rope_dim, d.kv.name);
    bank_slip(q, L * C * bytes, "This leaves out the rope part, which is cached beside the latent.");
    bank_slip(q, L * (C + N * R) * bytes, "This gives each head a rope part: one is shared by all.");
    bank_slip(q, 2 * q->value, "This doubles it for keys and values: both are made of the one latent.");
    bank_slip(q, N * q->value, "This gives each head a latent: one serves for all of them.");
    bank_slip(q, 2 * L * N * (double)x.head_dim * bytes,
              "These are keys and values of every head: the latent is what is cached.");
    bank_slip(q, q->value / L, "This counts one layer: each has a cache of its own.");
    bank_step(q, "bytes per token = L*(C + R)*b: keys and values are made of the latent when they are needed");
    bank_step(q, bank_printf(m, "%lld * (%lld + %lld) * %g = %s", (long long)d.layers, (long long)x.kv_rank,
                             (long long)x.rope_dim, bytes, bank_shown(m, UNITS_BYTES_PER_TOKEN, q->value)));
    return ERR_OK;
}

/* Flops of scores and weighted sum of one token at context S in one layer, in N, H, C, R. */
static enum err_code latent_flops(struct exercise_maker *m, bool absorbed, const struct sym **out, struct err *e)
{
    struct model d;
    struct cost_ops ops;
    TRY(draw_latent(m, &d, e));
    const struct cost_conventions v = bank_course(m);
    const struct cost_pass pass = {.name = "decode", .B = INT(1), .T = INT(1), .S = m->y.S, .absorbed = absorbed};
    TRY(bank_arch_pass(m, &d, &v, &pass, false, &ops, e));
    *out = INT(0);
    for (size_t i = 0; i < ops.n; i++)
        if (ops.op[i].kind == OP_ATTENTION) *out = SUM(*out, ops.op[i].flops);
    const struct sym_binding same = {m->y.Hv, m->y.H};
    *out = sym_bind(m->c, *out, &same, 1);
    return sym_check(m->c, e);
}

static enum err_code make_latent_absorbed(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    const bool absorbed = bank_draw(m, 0, 2) != 0;
    const struct sym *answer, *other;
    TRY(latent_flops(m, absorbed, &answer, e));
    TRY(latent_flops(m, !absorbed, &other, e));
    const struct sym *const names[] = {m->y.S, m->y.N, m->y.H, m->y.C, m->y.R};
    const struct sym *width = absorbed ? m->y.C : m->y.H;
    q->kind = EXERCISE_FORMULA;
    q->unit = UNITS_FLOPS;
    q->answer = answer;
    q->symbols_n = 5;
    memcpy(q->symbols, names, sizeof names);
    q->form = "an expression in S, N, H, C, R";
    q->text = bank_printf(
        m,
        "Latent attention (MLA) of N heads caches a latent of C elements and a shared rope part of R for each token; "
        "a head is H wide, in its key without rope and in its value. One token is decoded at context S, %s. How many "
        "flops are the scores and the weighted sum in one layer, what is done before and after them left aside?",
        absorbed ? "in absorbed form: the queries are moved into the space of the latents, scored there against "
                   "latents and rope parts, and the weighted sum is of latents"
                 : "in expanded form: keys and values of every head are made of the latents first, and scored against "
                   "keys with their rope part");
    bank_slip_formula(q, other,
                      absorbed ? "This is the expanded form: here scores and sum are over the width of the latent."
                               : "This is the absorbed form: here scores and sum are over the width of a head.");
    bank_slip_formula(q, PROD(INT(4), m->y.N, m->y.S, width), "This leaves out the rope part, which is scored too.");
    bank_slip_formula(q, PROD(INT(4), m->y.N, m->y.S, SUM(width, m->y.R)),
                      "The rope part is scored, but the weighted sum is without it.");
    bank_slip_formula(q, sym_div(m->c, answer, INT(2)), "This counts a multiply-add as one flop: it is two.");
    bank_slip_formula(q, sym_div(m->c, answer, m->y.N), "This is one head.");
    bank_slip_formula(q, PROD(INT(2), m->y.N, m->y.S, SUM(width, m->y.R)), "These are the scores without the sum.");
    bank_step(q, bank_printf(m, "scores: N heads, S tokens, %s + R multiply-adds each: 2*N*S*(%s + R)", sym_name(width),
                             sym_name(width)));
    bank_step(q, bank_printf(m, "weighted sum: %s multiply-adds for each head and token: 2*N*S*%s", sym_name(width),
                             sym_name(width)));
    bank_step(q, bank_printf(m, "together %s", bank_show_normal(m, answer)));
    return sym_check(m->c, e);
}

/* ---- layers that share a cache ---- */

struct crossed {
    struct model full, shared;
    int64_t group, own; /* layers that share one cache; layers that have one */
    struct mixer x;
};

static enum err_code draw_crossed(struct exercise_maker *m, struct crossed *p, struct err *e)
{
    TRY(bank_decoder(m, &p->full, e));
    p->group = bank_draw(m, 2, 4);
    p->own = bank_draw(m, 6, 20);
    p->full.layers = p->full.kinds[0].count = p->group * p->own;
    TRY(bank_arch_split(m, &p->full, p->own, &p->shared, e));
    p->shared.kinds[1].mixer.shares_kv = true;
    p->x = p->full.kinds[0].mixer;
    return ERR_OK;
}

static const char *crossed_text(struct exercise_maker *m, const struct crossed *p)
{
    return bank_printf(m,
                       "A decoder has L = %lld layers of width D = %lld, with N = %lld query heads and K = %lld KV "
                       "heads of width H = %lld. In each group of g = %lld neighbouring layers the first makes keys "
                       "and values, and the others attend to its cache (cross-layer attention).",
                       (long long)p->full.layers, (long long)p->full.hidden, (long long)p->x.heads,
                       (long long)p->x.kv_heads, (long long)p->x.head_dim, (long long)p->group);
}

static enum err_code make_crossed_cache(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct crossed p;
    double one, full;
    TRY(draw_crossed(m, &p, e));
    const int64_t B = bank_draw(m, 3, 96), S = 128 * bank_draw(m, 8, 128);
    TRY(bank_cache_bytes(m, &p.shared, S, &one, e));
    TRY(bank_cache_bytes(m, &p.full, S, &full, e));
    const double n = (double)B;
    bank_ask(q, UNITS_BYTES, n * one, 0.01, BYTES_FORM);
    q->text = bank_printf(m,
                          "%s How much memory does the KV cache of B = %lld sequences take at a context of S = %lld "
                          "tokens each, in bf16?",
                          crossed_text(m, &p), (long long)B, (long long)S);
    bank_slip(q, n * full, "This gives every layer a cache: only the first of a group has one.");
    bank_slip(q, n * (full - one), "This counts the layers that borrow a cache: those that make one have it.");
    bank_slip(q, n * one / 2, "This stores keys or values alone: the cache holds both.");
    bank_slip(q, one, "This counts one sequence of the batch.");
    bank_slip(q, n * one / (double)p.own, "This counts one group: each has a cache of its own.");
    bank_slip(q, n * one / (double)p.x.kv_heads * (double)p.x.heads,
              "This caches the query heads: only the K KV heads have keys and values.");
    bank_step(q, "bytes = B*S * 2*(L/g)*K*H * 2 bytes: one cache for each group");
    bank_step(q, bank_printf(m, "%lld * %lld * 2 * %lld/%lld * %lld * %lld * 2 = %s", (long long)B, (long long)S,
                             (long long)p.full.layers, (long long)p.group, (long long)p.x.kv_heads,
                             (long long)p.x.head_dim, bank_shown(m, UNITS_BYTES, q->value)));
    return ERR_OK;
}

static enum err_code make_crossed_parameters(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct crossed p;
    struct cost_parameters full, shared;
    TRY(draw_crossed(m, &p, e));
    TRY(bank_arch_parameters(m, &p.full, &full, e));
    TRY(bank_arch_parameters(m, &p.shared, &shared, e));
    const double saved = full.total - shared.total, borrowers = (double)(p.full.layers - p.own);
    const double query = (double)p.full.hidden * (double)(p.x.heads * p.x.head_dim);
    bank_ask(q, UNITS_COUNT, saved, 0, "a whole number of parameters");
    q->things = "parameter,param,weight";
    q->text = bank_printf(m,
                          "%s There are no biases. How many parameters fewer does it have than if every layer made "
                          "keys and values of its own?",
                          crossed_text(m, &p));
    bank_slip(q, saved / 2, "This drops W_K or W_V alone: a layer that borrows needs neither.");
    bank_slip(q, saved + borrowers * query, "This drops W_Q as well: each layer has queries of its own.");
    bank_slip(q, saved + 2 * borrowers * query, "This drops all of attention: W_Q and W_O stay in each layer.");
    bank_slip(q, saved / borrowers, "This is one layer of those that borrow.");
    bank_slip(q, saved / borrowers * (double)p.own, "These are the matrices that stay: the other layers lose theirs.");
    bank_slip(q, saved / borrowers * (double)p.full.layers,
              "This drops W_K and W_V in every layer: the first of a group keeps them.");
    bank_step(q, "L - L/g layers lose W_K and W_V, each of D x K*H: (L - L/g) * 2*D*K*H");
    bank_step(q, bank_printf(m, "(%lld - %lld) * 2 * %lld * %lld * %lld = %s", (long long)p.full.layers,
                             (long long)p.own, (long long)p.full.hidden, (long long)p.x.kv_heads,
                             (long long)p.x.head_dim, bank_digits(m, saved)));
    return ERR_OK;
}

/* ---- windows ---- */

static enum err_code make_window_share(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t WINDOWS[] = {512, 1024, 2048, 4096}; /* not a unit */
    struct model d, only;
    double all, global;
    TRY(bank_decoder(m, &d, e));
    const int64_t every = bank_draw(m, 4, 8), groups = bank_draw(m, 4, 10), W = bank_pick(m, 4, WINDOWS);
    const int64_t S = W * bank_draw(m, 3, 40) + 128 * bank_draw(m, 0, 3);
    d.layers = d.kinds[0].count = every * groups;
    TRY(bank_arch_split(m, &d, groups, &d, e));
    d.kinds[1].mixer.window_tokens = W;
    only = d;
    only.kinds_n = 1;
    TRY(bank_cache_bytes(m, &d, S, &all, e));
    TRY(bank_cache_bytes(m, &only, S, &global, e));
    const double share = global / all, n = (double)every, context = (double)S, window = (double)W;
    bank_ask(q, UNITS_FRAC, share, 0.01, "a part");
    q->text = bank_printf(m,
                          "In a decoder of L = %lld layers one layer in n = %lld attends to the whole context, the "
                          "others to a window of W = %lld tokens; all have the same KV heads, and a layer keeps only "
                          "what it can see. At a context of S = %lld tokens, which part of the KV cache is that of the "
                          "layers without a window?",
                          (long long)d.layers, (long long)every, (long long)W, (long long)S);
    bank_slip(q, 1 / n, "This is their part of the layers: each of them caches more than one with a window.");
    bank_slip(q, 1 - share, "This is the part of the layers with a window.");
    bank_slip(q, context / ((n - 1) * window),
              "This is the ratio to the other layers' cache, not a part of the whole.");
    bank_slip(q, context / (context + window), "This compares one layer with one: there are n - 1 with a window.");
    bank_slip(q, window / (window + (n - 1) * context), "This swaps the layers that have a window.");
    bank_step(q, "of n layers: one keeps S tokens, n - 1 keep min(S, W): S / (S + (n - 1)*min(S, W))");
    bank_step(q, bank_printf(m, "%lld / (%lld + %lld * %lld) = %.4g", (long long)S, (long long)S,
                             (long long)(every - 1), (long long)W, share));
    return ERR_OK;
}

static enum err_code make_window_pairs(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t WINDOWS[] = {96, 128, 250, 256, 512, 1000, 1024, 2048}; /* not a unit */
    struct model d;
    struct cost_ops ops;
    double flops = 0, f;
    TRY(bank_decoder(m, &d, e));
    const int64_t W = bank_pick(m, 8, WINDOWS), S = W * bank_draw(m, 2, 20) + bank_draw(m, 1, 90);
    struct mixer *x = &d.kinds[0].mixer;
    x->window_tokens = W;
    struct cost_conventions v = bank_course(m);
    v.causal_full = false;
    const struct cost_pass pass = {.name = "prefill", .B = INT(1), .T = INT(S), .S = INT(S)};
    TRY(bank_arch_pass(m, &d, &v, &pass, true, &ops, e));
    for (size_t i = 0; i < ops.n; i++)
        if (ops.op[i].kind == OP_ATTENTION && sym_constant(ops.op[i].flops, &f)) flops += f;
    const double s = (double)S, w = (double)W, pairs = flops / (double)(4 * x->heads * x->head_dim);
    bank_ask(q, UNITS_COUNT, pairs, 0, "a whole number of pairs");
    q->things = "pair,score";
    q->text = bank_printf(m,
                          "A prompt of S = %lld tokens is prefilled. In a layer with a window of W = %lld tokens each "
                          "token attends to itself and to the W - 1 tokens before it, as far as there are any. How "
                          "many pairs of a query and a key does a head score?",
                          (long long)S, (long long)W);
    bank_slip(q, s * w, "The first W - 1 tokens see fewer than W keys.");
    bank_slip(q, s * (s + 1) / 2, "This is without the window: a token sees all before it.");
    bank_slip(q, w * (s - w), "This leaves out the tokens at the beginning: they see what there is.");
    bank_slip(q, s * w - w * w / 2,
              "This takes half of W*W for the tokens at the beginning: each sees itself as well.");
    bank_slip(q, pairs - s, "This leaves out the pairs of a token with itself.");
    bank_slip(q, pairs + s - w, "This is a window of one more: W counts the token itself.");
    bank_slip(q, s * s, "These are all pairs: a token sees its window, and nothing behind itself.");
    bank_step(q, "token i sees min(i, W) keys: 1 + 2 + ... + W, then W for each of the other S - W tokens");
    bank_step(q, "pairs = W*(W + 1)/2 + (S - W)*W");
    bank_step(q, bank_printf(m, "%lld * %lld / 2 + %lld * %lld = %s", (long long)W, (long long)(W + 1),
                             (long long)(S - W), (long long)W, bank_digits(m, pairs)));
    return ERR_OK;
}

#define SET "4 architectures"
#define SEE_CACHE "ridge explain kv_write"
#define SEE_EXPERTS "ridge explain experts"
#define SEE_LATENT "ridge explain latent_attention"
#define SEE_STATE "ridge explain state_bytes -m jamba-1.5-mini"

static const struct exercise ROWS[] = {
    {"latent-token", SET, "bytes that latent attention caches for each token", SEE_LATENT, make_latent_token},
    {"latent-absorbed", SET, "flops of latent attention, absorbed or expanded", SEE_LATENT, make_latent_absorbed},
    {"shared-cache", SET, "the KV cache when layers share it", SEE_CACHE, make_crossed_cache},
    {"shared-parameters", SET, "parameters that layers with a borrowed cache lack", "ridge explain qkv_proj",
     make_crossed_parameters},
    {"window-share", SET, "the cache of the few layers without a window", SEE_CACHE, make_window_share},
    {"window-pairs", SET, "pairs that a prefill with a window scores", "ridge explain attention", make_window_pairs},
    {"state-crossing", SET, "the context at which a cache outgrows a state", SEE_STATE, bank_recurrent_crossing},
    {"linear-state", SET, "the state of linear attention", SEE_STATE, bank_recurrent_state},
    {"hybrid-memory", SET, "cache and state of a hybrid", SEE_STATE, bank_recurrent_hybrid},
    {"experts-touched", SET, "how many experts a batch reads", SEE_EXPERTS, bank_experts_touched},
    {"experts-active", SET, "parameters that work on a token", SEE_EXPERTS, bank_experts_active},
    {"experts-bytes", SET, "bytes of experts that a decode step reads", SEE_EXPERTS, bank_experts_bytes},
    {"int4-speed", SET, "how much faster 4-bit weights decode one sequence", NULL, bank_formats_int4},
    {"outlier-columns", SET, "what outlier columns in 16 bits cost", NULL, bank_formats_outliers},
    {"fp8-cache", SET, "how much faster an fp8 cache decodes", SEE_CACHE, bank_formats_cache},
    {"pruned-width", SET, "what pruning the width leaves of weights and cache", NULL, bank_formats_pruned},
    {"diffusion-weights", SET, "bytes that a diffusion model reads for a text", NULL, bank_passes_weights},
    {"diffusion-flops", SET, "flops of diffusion against one token at a time", NULL, bank_passes_flops},
};

const struct exercise *bank_architectures(size_t *n)
{
    *n = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}
