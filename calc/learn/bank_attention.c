#include "calc/learn/bank_intensity.h"
#include "calc/sym/normal.h"

struct attention {
    struct quantity_topic t;
    const struct bank_precision *kv, *x;
    const struct sym *cache_bytes, *activation_bytes, *bytes;
};

static enum err_code derive_attention(struct exercise_maker *m, enum quantity_phase phase, struct attention *p,
                                      struct err *e)
{
    TRY(quantity_topic(&m->textbook, "attention", phase, &p->t, e));
    p->cache_bytes = bank_at_bytes(m, p->t.total.kv_bytes, p->kv->bytes);
    p->activation_bytes = bank_at_bytes(m, p->t.total.activation_bytes, p->x->bytes);
    p->bytes = sym_add(m->c, p->cache_bytes, p->activation_bytes);
    return sym_check(m->c, e);
}

static const char *attention_formats(struct exercise_maker *m, const struct attention *p)
{
    return bank_printf(m, "Keys and values are cached in %s (%s an element), queries and outputs are %s (%s).",
                       p->kv->name, p->kv->size, p->x->name, p->x->size);
}

static void attention_slips(struct exercise_maker *m, struct exercise_question *q, const struct attention *p)
{
    struct sym_ctx *c = m->c;
    const struct sym *half = sym_rat(c, 1, 2);
    const struct sym *elements = sym_add(c, sym_div(c, p->cache_bytes, sym_int(c, p->kv->bytes)),
                                         sym_div(c, p->activation_bytes, sym_int(c, p->x->bytes)));
    bank_slip_formula(q,
                      sym_div(c, p->t.total.flops, sym_add(c, sym_mul(c, p->cache_bytes, half), p->activation_bytes)),
                      "The bytes count keys or values, not both: the cache holds K and V.");
    bank_slip_formula(q, sym_div(c, sym_mul(c, p->t.total.flops, half), p->bytes),
                      "The flops count one product. There are two: queries with keys, and weights with values.");
    bank_slip_formula(q,
                      sym_div(c, p->t.total.flops, sym_add(c, p->cache_bytes, sym_mul(c, p->activation_bytes, half))),
                      "Queries are read and outputs are written; this counts one of the two.");
    bank_slip_formula(q, sym_div(c, p->t.total.flops, elements),
                      "This divides by elements, not by bytes: the bytes per element are missing.");
    bank_slip_formula(q, sym_div(c, p->t.total.flops, sym_mul(c, elements, sym_int(c, 2))),
                      "This counts 2 bytes for every element; read again which formats the question names.");
    bank_slip_formula(q, sym_div(c, p->t.total.flops, p->cache_bytes),
                      "This counts the cache alone; queries are read and outputs are written as well.");
}

static void attention_steps(struct exercise_maker *m, struct exercise_question *q, const struct attention *p)
{
    bank_step(q, bank_printf(m, "flops = %s: queries with keys, then weights with values",
                             bank_show_normal(m, p->t.total.flops)));
    bank_step(q, bank_printf(m, "bytes of K and V = %s", bank_show_normal(m, p->cache_bytes)));
    bank_step(q, bank_printf(m, "bytes of queries and outputs = %s", bank_show_normal(m, p->activation_bytes)));
    bank_step(q, bank_printf(m, "intensity = flops / bytes = %s: B and D cancel", bank_show(m, q->answer)));
}

static void draw_formats(struct exercise_maker *m, struct attention *p)
{
    static const size_t PAIRS[][2] = {{1, 1}, {0, 1}, {0, 0}, {2, 2}, {1, 2}, {0, 2}}; /* of bank_precision */
    const size_t *pair = PAIRS[bank_draw(m, 0, 5)];
    p->kv = bank_precision(pair[0]);
    p->x = bank_precision(pair[1]);
}

enum err_code bank_attention_intensity(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct attention p;
    draw_formats(m, &p);
    TRY(derive_attention(m, QUANTITY_ANY, &p, e));
    BANK_USE(m, q, m->y.S, m->y.T, m->y.B, m->y.D);
    q->text = bank_printf(
        m,
        "In each of B sequences T new tokens attend to all S tokens (no causal mask), over heads that are D "
        "wide together, as many for keys and values as for queries. %s The scores stay on the chip. What is the "
        "arithmetic "
        "intensity of attention, in flops per byte?",
        attention_formats(m, &p));
    TRY(sym_normal(m->c, sym_div(m->c, p.t.total.flops, p.bytes), &q->answer, e));
    attention_slips(m, q, &p);
    attention_steps(m, q, &p);
    return sym_check(m->c, e);
}

enum err_code bank_attention_phase(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct attention p;
    draw_formats(m, &p);
    const enum quantity_phase phase = bank_draw(m, 0, 1) ? QUANTITY_PREFILL : QUANTITY_DECODE;
    TRY(derive_attention(m, phase, &p, e));
    BANK_USE(m, q, m->y.S, m->y.B, m->y.D);
    const char *what = phase == QUANTITY_PREFILL
                           ? "B prompts of S tokens are prefilled, every token attending to all S of "
                             "its sequence (no causal mask)"
                           : "B sequences decode one token each, which attends to the S tokens of "
                             "its sequence";
    q->text =
        bank_printf(m,
                    "%s. As many heads for keys and values as for queries, D wide together. %s The scores stay on "
                    "the chip. What is the arithmetic intensity of attention, in flops per byte?",
                    what, attention_formats(m, &p));
    TRY(sym_normal(m->c, sym_div(m->c, p.t.total.flops, p.bytes), &q->answer, e));
    attention_slips(m, q, &p);
    attention_steps(m, q, &p);
    bank_step(q, phase == QUANTITY_PREFILL ? "it grows with the prompt: long prompts are compute-bound"
                                           : "it stays below a small number however long the context is: memory-bound");
    return sym_check(m->c, e);
}

/* By how much intensity grows with the batch: of attention not at all, of the MLP nearly as much. */
enum err_code bank_attention_batching(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t SHAPES[][2] = {{2048, 8192}, {4096, 11008}, {4096, 14336}, {5120, 13824}, {8192, 28672}};
    const bool attends = bank_draw(m, 0, 1) == 1;
    const int64_t *shape = SHAPES[bank_draw(m, 0, 4)], few = INT64_C(1) << bank_draw(m, 0, 4);
    const int64_t many = few * (INT64_C(1) << bank_draw(m, 2, 6)), S = 512 * bank_draw(m, 1, 32);
    const struct sym *intensity;
    double at[2];
    TRY(quantity_resolve(&m->textbook, QUANTITY_DECODE, "intensity", attends ? "attention" : "mlp", &intensity, e));
    TRY(sym_normal(m->c, intensity, &intensity, e));
    for (size_t i = 0; i < 2; i++) {
        const struct sym_binding env[] = {{m->y.B, sym_int(m->c, i ? many : few)},
                                          {m->y.D, sym_int(m->c, shape[0])},
                                          {m->y.F, sym_int(m->c, shape[1])},
                                          {m->y.S, sym_int(m->c, S)}};
        if (!sym_constant(sym_bind(m->c, intensity, env, 4), &at[i])) return err_nomem(e);
    }
    q->kind = EXERCISE_NUMBER;
    q->unit = UNITS_RATIO;
    q->tolerance_frac = 0.01;
    q->form = "a ratio";
    q->value = at[1] / at[0];
    q->text = bank_printf(
        m,
        "A model of width D = %lld and hidden width F = %lld, with as many KV heads as query heads, decodes in bf16 at "
        "context S = %lld. The batch is raised from %lld to %lld sequences. By what factor does the arithmetic "
        "intensity of %s grow? (%s)",
        (long long)shape[0], (long long)shape[1], (long long)S, (long long)few, (long long)many,
        attends ? "its attention" : "its gated MLP",
        attends ? "queries, K, V and outputs move once"
                : "weights, input and the outputs of gate, up and down move once");
    if (attends)
        bank_slip(q, (double)many / (double)few,
                  "Every sequence brings keys and values of its own: bytes grow with the batch as flops do.");
    else
        bank_slip(q, (double)many / (double)few,
                  "That is the limit of large D and F; here the activations already count.");
    if (!attends)
        bank_slip(q, 1, "All sequences use the same weights, which are read once: flops grow faster than bytes.");
    if (attends) bank_slip(q, at[1], "This is the intensity itself; the factor by which it grows was asked.");
    bank_slip(q, (double)few / (double)many, "Upside down: the intensity at the larger batch is what is divided.");
    bank_step(q, bank_printf(m, "intensity = %s", bank_show(m, intensity)));
    bank_step(q, bank_printf(m, "at B = %lld: %.5g; at B = %lld: %.5g flops per byte", (long long)few, at[0],
                             (long long)many, at[1]));
    bank_step(q, bank_printf(m, "factor = %.4g: %s", q->value,
                             attends ? "B cancels, so batching does not help attention"
                                     : "the weights are shared by the batch"));
    return ERR_OK;
}
