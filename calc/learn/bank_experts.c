#include "calc/learn/bank_arch.h"

#include <math.h>

#define INT(n) sym_int(m->c, (n))

/* A decoder with routed experts in every layer. */
static enum err_code draw_experts(struct exercise_maker *m, struct model *d, struct err *e)
{
    static const int64_t EXPERTS[] = {8, 16, 32, 60, 64, 128, 160, 256},
                         WIDTHS[] = {768, 1024, 1408, 1536, 2048, 3584}; /* not a unit */
    TRY(bank_decoder(m, d, e));
    const int64_t E = bank_pick(m, 8, EXPERTS);
    struct ffn *f = &d->kinds[0].ffn;
    *f = (struct ffn){.kind = FFN_MOE, .gated = true, .width = bank_pick(m, 6, WIDTHS), .experts = E};
    f->experts_per_token = bank_draw(m, 1, E < 32 ? 2 : 8);
    d->kinds[0].label = "attention + experts";
    return ERR_OK;
}

/* Bytes of routed experts that a decode step of B tokens reads in one layer, and what one expert has. */
static enum err_code read_experts(struct exercise_maker *m, const struct model *d, int64_t B, double *bytes,
                                  double *one, struct err *e)
{
    const struct cost_conventions v = bank_course(m);
    const struct cost_pass pass = {.name = "decode", .B = INT(B), .T = INT(1), .S = m->y.S};
    struct cost_ops ops;
    double x;
    TRY(bank_arch_pass(m, d, &v, &pass, true, &ops, e));
    *bytes = *one = 0;
    for (size_t i = 0; i < ops.n; i++) {
        if (ops.op[i].kind != OP_EXPERTS) continue;
        if (sym_constant(ops.op[i].weight_bytes, &x)) *bytes += x;
        for (size_t t = 0; t < ops.op[i].tensors_n; t++)
            if (sym_constant(ops.op[i].tensor[t].bytes, &x)) *one += x / (double)d->kinds[0].ffn.experts;
    }
    return sym_check(m->c, e);
}

static double touched(double E, double k, double n) { return E * (1 - pow(1 - k / E, n)); }

static double fewer(double a, double b) { return a < b ? a : b; }

enum err_code bank_experts_touched(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    double bytes, one;
    TRY(draw_experts(m, &d, e));
    const struct ffn f = d.kinds[0].ffn;
    const double E = (double)f.experts, k = (double)f.experts_per_token;
    const int64_t few = (int64_t)(E / k / 3) + 2, B = bank_draw(m, few, 6 * few);
    const double n = (double)B;
    TRY(read_experts(m, &d, B, &bytes, &one, e));
    bank_ask(q, UNITS_COUNT, bytes / one, 0.01, "a number of experts (need not be whole)");
    q->things = "expert";
    q->text = bank_printf(m,
                          "A layer has E = %lld routed experts, and the router sends each token to k = %lld different "
                          "ones; all are equally likely and tokens choose independently. How many different experts "
                          "does a decode step of B = %lld sequences need on average?",
                          (long long)f.experts, (long long)f.experts_per_token, (long long)B);
    bank_slip(q, fewer(k * n, E), "This takes all choices for different ones: tokens meet at experts.");
    bank_slip(q, E, "These are all experts: some are chosen by no token.");
    bank_slip(q, k, "This is one token: the others choose experts of their own.");
    bank_slip(q, E - bytes / one, "These are the experts that no token chooses.");
    bank_slip(q, touched(E, 1, n), "This sends each token to one expert: it goes to k.");
    bank_slip(q, touched(E, 1, n * k), "This lets a token choose one expert twice: its k are different.");
    bank_step(q, "a token passes an expert by with probability 1 - k/E, and all B tokens do with (1 - k/E)^B");
    bank_step(q, bank_printf(m, "E*(1 - (1 - k/E)^B) = %lld * (1 - (1 - %lld/%lld)^%lld) = %.5g", (long long)f.experts,
                             (long long)f.experts_per_token, (long long)f.experts, (long long)B, q->value));
    return ERR_OK;
}

enum err_code bank_experts_bytes(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    double bytes, one;
    TRY(draw_experts(m, &d, e));
    const struct ffn f = d.kinds[0].ffn;
    const double E = (double)f.experts, k = (double)f.experts_per_token, L = (double)d.layers;
    const int64_t few = (int64_t)(E / k / 4) + 2, B = bank_draw(m, few, 5 * few);
    const double n = (double)B;
    TRY(read_experts(m, &d, B, &bytes, &one, e));
    bank_ask(q, UNITS_BYTES, L * bytes, 0.01, "bytes with their unit");
    q->text =
        bank_printf(m,
                    "Each of L = %lld layers of width D = %lld has E = %lld routed experts, gated MLPs of width "
                    "F = %lld in bf16, and sends a token to k = %lld different ones, all equally likely. A decode "
                    "step of B = %lld sequences reads each expert that some token needs once. How many bytes of "
                    "experts does it read on average, in all layers?",
                    (long long)d.layers, (long long)d.hidden, (long long)f.experts, (long long)f.width,
                    (long long)f.experts_per_token, (long long)B);
    bank_slip(q, L * E * one, "This reads all experts: some are chosen by no token.");
    bank_slip(q, L * k * one, "This reads the experts of one token: the others choose their own.");
    bank_slip(q, L * fewer(k * n, E) * one, "This takes all choices for different experts: tokens meet at experts.");
    bank_slip(q, L * k * n * one, "This reads an expert again for each of its tokens: they share it.");
    bank_slip(q, bytes, "This is one layer.");
    bank_slip(q, L * bytes / 3 * 2, "This counts two matrices in an expert: a gated one has gate, up and down.");
    bank_slip(q, L * bytes / 2, "This takes a parameter for a byte: bf16 has two.");
    bank_step(
        q, bank_printf(m, "different experts: E*(1 - (1 - k/E)^B) = %.5g of %lld", bytes / one, (long long)f.experts));
    bank_step(q, bank_printf(m, "one expert: 3*D*F * 2 bytes = 3 * %lld * %lld * 2 = %s", (long long)d.hidden,
                             (long long)f.width, bank_shown(m, UNITS_BYTES, one)));
    bank_step(q, bank_printf(m, "%lld * %.5g * %s = %s", (long long)d.layers, bytes / one,
                             bank_shown(m, UNITS_BYTES, one), bank_shown(m, UNITS_BYTES, q->value)));
    return ERR_OK;
}

enum err_code bank_experts_active(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct model d;
    struct cost_parameters p;
    TRY(draw_experts(m, &d, e));
    struct ffn *f = &d.kinds[0].ffn;
    f->shared_width = f->width * bank_draw(m, 1, 2);
    TRY(bank_arch_parameters(m, &d, &p, e));
    const double L = (double)d.layers, D = (double)d.hidden, expert = 3 * D * (double)f->width;
    const double E = (double)f->experts, k = (double)f->experts_per_token, shared = 3 * D * (double)f->shared_width;
    bank_ask(q, UNITS_COUNT, p.active, 0, "a whole number of parameters");
    q->things = "parameter,param,weight";
    q->text = bank_printf(
        m,
        "A decoder has L = %lld layers of width D = %lld and a vocabulary of V = %lld, with an output head of its own. "
        "Attention has N = %lld query heads and K = %lld KV heads of width H = %lld and the projections W_Q, W_K, W_V "
        "and W_O. Each layer has a router (D x E), E = %lld routed experts of width F = %lld, of which a token takes k "
        "= %lld, and a shared expert of width G = %lld that every token takes; experts are gated MLPs. There are no "
        "biases, and norms are not counted. How many parameters work on one token, embedding and head counted whole?",
        (long long)d.layers, (long long)d.hidden, (long long)d.vocab, (long long)d.kinds[0].mixer.heads,
        (long long)d.kinds[0].mixer.kv_heads, (long long)d.kinds[0].mixer.head_dim, (long long)f->experts,
        (long long)f->width, (long long)f->experts_per_token, (long long)f->shared_width);
    bank_slip(q, p.total, "These are all parameters: a token takes k of the E experts.");
    bank_slip(q, p.active - L * D * E, "This leaves out the router, which scores every expert.");
    bank_slip(q, p.active - L * shared, "This leaves out the shared expert, which every token takes.");
    bank_slip(q, p.active - L * (k - 1) * expert, "This takes one routed expert: a token takes k.");
    bank_slip(q, p.active - L * (k * expert + shared) / 3,
              "This counts two matrices in an expert: a gated one has gate, up and down.");
    bank_slip(q, p.active - p.embedding - p.head, "This leaves out embedding and output head.");
    bank_step(q, "each layer: attention 2*D*H*(N + K), router D*E, experts 3*D*(k*F + G)");
    bank_step(q, bank_printf(m, "attention and router: %s in all layers",
                             bank_digits(m, p.active - p.embedding - p.head - L * (k * expert + shared))));
    bank_step(q, bank_printf(m, "experts: %lld * 3 * %lld * (%lld * %lld + %lld) = %s", (long long)d.layers,
                             (long long)d.hidden, (long long)f->experts_per_token, (long long)f->width,
                             (long long)f->shared_width, bank_digits(m, L * (k * expert + shared))));
    bank_step(q, bank_printf(m, "with embedding and head, 2*V*D: %s of %s", bank_digits(m, p.active),
                             bank_digits(m, p.total)));
    return ERR_OK;
}
