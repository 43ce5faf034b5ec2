#include "calc/learn/bank_intensity.h"
#include "calc/sym/normal.h"

struct mlp {
    struct quantity_topic t;
    enum quantity_phase phase;
    const struct bank_precision *x;
    const struct sym *rows, *tokens, *bytes; /* of B*T; T; at the element format */
};

static enum err_code draw_mlp(struct exercise_maker *m, struct mlp *p, struct err *e)
{
    p->phase = (enum quantity_phase)bank_draw(m, QUANTITY_ANY, QUANTITY_DECODE);
    p->x = bank_draw_precision(m);
    TRY(quantity_topic(&m->textbook, "mlp", p->phase, &p->t, e));
    p->bytes = bank_at_bytes(m, p->t.bytes, p->x->bytes);
    p->tokens = p->phase == QUANTITY_PREFILL ? m->y.S : p->phase == QUANTITY_DECODE ? sym_int(m->c, 1) : m->y.T;
    p->rows = sym_mul(m->c, m->y.B, p->tokens);
    return sym_check(m->c, e);
}

static const char *mlp_text(struct exercise_maker *m, const struct mlp *p)
{
    static const char *const PHASES[] = {"B sequences pass with T tokens each", "B prompts of S tokens are prefilled",
                                         "B sequences decode one token each"};
    return bank_printf(m, "%s through a gated MLP of model width D and hidden width F.", PHASES[p->phase]);
}

static void mlp_symbols(struct exercise_maker *m, struct exercise_question *q, const struct mlp *p)
{
    if (p->phase == QUANTITY_DECODE)
        BANK_USE(m, q, m->y.B, m->y.D, m->y.F);
    else
        BANK_USE(m, q, m->y.B, p->tokens, m->y.D, m->y.F);
}

enum err_code bank_mlp_flops(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct mlp p;
    TRY(draw_mlp(m, &p, e));
    mlp_symbols(m, q, &p);
    const bool all = bank_draw(m, 0, 1) == 1;
    const struct sym *one = sym_int(m->c, 1), *layers = all ? m->y.L : one;
    if (all) BANK_USE(m, q, m->y.L);
    q->unit = UNITS_FLOPS;
    q->text = bank_printf(
        m, "%s It has a gate, an up and a down projection. How many flops is that %s? Only matrix products count.",
        mlp_text(m, &p), all ? "in all L layers" : "in one layer");
    q->answer = sym_mul(m->c, p.t.total.flops, layers);
    const struct sym *product = SYM_PROD(m->c, p.rows, m->y.D, m->y.F, layers);
    bank_slip_formula(q, sym_mul(m->c, sym_int(m->c, 4), product),
                      "This counts two products. A gated MLP has three: gate, up and down.");
    bank_slip_formula(q, sym_mul(m->c, sym_int(m->c, 3), product), "This counts a multiply-add as one; it is 2 flops.");
    bank_slip_formula(q, sym_mul(m->c, sym_int(m->c, 2), product),
                      "This is one of its products. A gated MLP has three: gate, up and down.");
    bank_slip_formula(q, SYM_PROD(m->c, sym_int(m->c, 6), m->y.D, m->y.F, layers),
                      "This is for one token; count all that pass.");
    if (all) bank_slip_formula(q, p.t.total.flops, "This is one layer; all layers were asked.");
    bank_step(q, bank_printf(m, "each product multiplies %s rows with a matrix of D x F or F x D: %s flops",
                             bank_show(m, p.rows),
                             bank_show(m, SYM_PROD(m->c, sym_int(m->c, 2), p.rows, m->y.D, m->y.F))));
    bank_step(q, "three of them: gate, up and down; the product of gate and up is elementwise");
    bank_step(q, bank_printf(m, "flops = %s", bank_show(m, q->answer)));
    return sym_check(m->c, e);
}

static const char *mlp_traffic(struct exercise_maker *m, const struct mlp *p)
{
    return bank_printf(m,
                       "%s All elements are %s (%s). As in the lecture, its kernel reads X and the three matrices "
                       "once and writes the outputs of gate, up and down once; nothing is read again.",
                       mlp_text(m, p), p->x->name, p->x->size);
}

enum err_code bank_mlp_intensity(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct mlp p;
    TRY(draw_mlp(m, &p, e));
    mlp_symbols(m, q, &p);
    const struct sym *b = sym_int(m->c, p.x->bytes), *elements = sym_div(m->c, p.bytes, b);
    const struct sym *matrix = SYM_PROD(m->c, b, m->y.D, m->y.F), *hidden = SYM_PROD(m->c, b, p.rows, m->y.F);
    q->text = bank_printf(m, "%s What is its arithmetic intensity, in flops per byte?", mlp_traffic(m, &p));
    TRY(sym_normal(m->c, sym_div(m->c, p.t.total.flops, p.bytes), &q->answer, e));
    const struct sym *two_thirds = sym_mul(m->c, p.t.total.flops, sym_rat(m->c, 2, 3));
    bank_slip_formula(q, sym_div(m->c, two_thirds, p.bytes),
                      "The flops count two products. A gated MLP has three: gate, up and down.");
    bank_slip_formula(q,
                      sym_div(m->c, two_thirds,
                              SYM_SUM(m->c, p.bytes, sym_mul(m->c, sym_int(m->c, -1), matrix),
                                      sym_mul(m->c, sym_int(m->c, -1), hidden))),
                      "This is an MLP without a gate. A gated one has three matrices, and two outputs of width F.");
    bank_slip_formula(q, sym_div(m->c, p.t.total.flops, elements),
                      "This divides by elements, not by bytes: the bytes per element are missing.");
    bank_slip_formula(q, sym_div(m->c, p.t.total.flops, sym_mul(m->c, elements, sym_int(m->c, 2))),
                      "This counts 2 bytes for every element; read again which format the question names.");
    bank_slip_formula(q, sym_div(m->c, p.t.total.flops, sym_sub(m->c, p.bytes, hidden)),
                      "Gate and up each write an output of width F; this counts one of them.");
    bank_slip_formula(q, sym_div(m->c, p.t.total.flops, SYM_SUM(m->c, p.bytes, hidden, hidden)),
                      "This reads the outputs of gate and up again; in the fused kernel they are on the chip.");
    bank_slip_formula(q, sym_div(m->c, p.t.total.flops, bank_at_bytes(m, p.t.total.weight_bytes, p.x->bytes)),
                      "This counts the weights alone; X is read, and the outputs are written, as well.");
    bank_step(q, bank_printf(m, "flops = %s", bank_show(m, p.t.total.flops)));
    bank_step(q, bank_printf(m, "bytes of the three matrices = %s",
                             bank_show(m, bank_at_bytes(m, p.t.total.weight_bytes, p.x->bytes))));
    bank_step(q, bank_printf(m, "bytes of X, gate, up and the result = %s",
                             bank_show_normal(m, bank_at_bytes(m, p.t.total.activation_bytes, p.x->bytes))));
    bank_step(q, bank_printf(m, "intensity = flops / bytes = %s", bank_show(m, q->answer)));
    return sym_check(m->c, e);
}

enum err_code bank_mlp_limit(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct mlp p;
    int64_t order;
    TRY(draw_mlp(m, &p, e));
    mlp_symbols(m, q, &p);
    const struct sym *intensity = sym_div(m->c, p.t.total.flops, p.bytes);
    TRY(sym_limit(m->c, intensity, 2, (const struct sym *[]){m->y.D, m->y.F}, &q->answer, &order, e));
    q->text = bank_printf(m, "%s What does the arithmetic intensity tend to when D and F are much larger than %s?",
                          mlp_traffic(m, &p), p.phase == QUANTITY_DECODE ? "B" : bank_show(m, p.rows));
    bank_slip_formula(q, sym_mul(m->c, q->answer, sym_rat(m->c, 2, 3)),
                      "The gate's product is missing in the flops, though its bytes are counted.");
    bank_slip_formula(q, sym_mul(m->c, q->answer, sym_rat(m->c, 1, 2)),
                      "A multiplication and an addition are 2 flops; this counts them as one.");
    bank_slip_formula(q, sym_mul(m->c, sym_int(m->c, 2), p.rows),
                      "This divides by elements, not by bytes: the bytes per element are missing.");
    bank_slip_formula(q, p.rows, "That holds at 2 bytes an element; this question has another format.");
    bank_slip_formula(q, intensity, "This is the intensity itself: let D and F grow beyond all bounds.");
    if (p.phase != QUANTITY_DECODE) {
        bank_slip_formula(q, sym_div(m->c, q->answer, p.tokens),
                          "Every token uses the weights that are read, not only one of each sequence.");
        bank_slip_formula(q, sym_div(m->c, q->answer, m->y.B),
                          "The sequences of a batch share the weights that are read; this counts one sequence.");
    }
    bank_step(q, bank_printf(m, "intensity = flops / bytes = %s", bank_show_normal(m, intensity)));
    bank_step(q, "of the bytes only the weights grow with D*F; the activations grow with D or F alone");
    bank_step(q,
              bank_printf(m, "limit = %s / (%s) = %s", bank_show(m, p.t.total.flops),
                          bank_show(m, bank_at_bytes(m, p.t.total.weight_bytes, p.x->bytes)), bank_show(m, q->answer)));
    return sym_check(m->c, e);
}
