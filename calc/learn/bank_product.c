#include "calc/learn/bank_intensity.h"
#include "calc/sym/normal.h"

/* ---- one matrix product: x (rows x in) times W (in x out) ---- */

struct product {
    const struct sym *rows, *in, *out;
    const struct bank_precision *w, *x; /* of weights and of activations */
    const struct sym *flops, *weight_bytes, *activation_bytes, *bytes;
};

static enum err_code product_derive(struct exercise_maker *m, struct product *p, struct err *e)
{
    struct quantity_topic t;
    TRY(quantity_topic(&m->textbook, "down_proj", QUANTITY_DECODE, &t, e));
    const struct sym_binding names[] = {{m->y.B, p->rows}, {m->y.F, p->in}, {m->y.D, p->out}};
    p->flops = sym_bind(m->c, t.total.flops, names, 3);
    p->weight_bytes = bank_at_bytes(m, sym_bind(m->c, t.total.weight_bytes, names, 3), p->w->bytes);
    p->activation_bytes = bank_at_bytes(m, sym_bind(m->c, t.total.activation_bytes, names, 3), p->x->bytes);
    p->bytes = sym_add(m->c, p->weight_bytes, p->activation_bytes);
    return sym_check(m->c, e);
}

static const char *product_text(struct exercise_maker *m, const struct product *p)
{
    const char *rows = sym_name(p->rows), *in = sym_name(p->in), *out = sym_name(p->out);
    if (p->w == p->x)
        return bank_printf(
            m, "A matrix X of %s x %s is multiplied with a weight matrix W of %s x %s; all elements are %s (%s).", rows,
            in, in, out, p->w->name, p->w->size);
    return bank_printf(
        m,
        "A matrix X of %s x %s is multiplied with a weight matrix W of %s x %s; W is stored in %s (%s an "
        "element), X and the result in %s (%s).",
        rows, in, in, out, p->w->name, p->w->size, p->x->name, p->x->size);
}

static enum err_code draw_product(struct exercise_maker *m, struct product *p, struct err *e)
{
    const struct sym *const names[][3] = {
        {m->y.B, m->y.D, m->y.F}, {m->y.T, m->y.D, m->y.F}, {m->y.B, m->y.D, m->y.V}, {m->y.B, m->y.F, m->y.D}};
    const struct sym *const *use = names[bank_draw(m, 0, 3)];
    *p = (struct product){.rows = use[0], .in = use[1], .out = use[2], .w = bank_draw_precision(m)};
    p->x = bank_draw(m, 0, 2) == 0 && p->w->bytes == 1 ? bank_precision(1) : p->w;
    return product_derive(m, p, e);
}

enum err_code bank_product_intensity(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct product p;
    TRY(draw_product(m, &p, e));
    BANK_USE(m, q, p.rows, p.in, p.out);
    q->text = bank_printf(m,
                          "%s Each operand is read once and the result is written once. What is the arithmetic "
                          "intensity of the product, in flops per byte?",
                          product_text(m, &p));
    TRY(sym_normal(m->c, sym_div(m->c, p.flops, p.bytes), &q->answer, e));
    const struct sym *elements = sym_add(m->c, sym_div(m->c, p.weight_bytes, sym_int(m->c, p.w->bytes)),
                                         sym_div(m->c, p.activation_bytes, sym_int(m->c, p.x->bytes)));
    const struct sym *written = SYM_PROD(m->c, sym_int(m->c, p.x->bytes), p.rows, p.out);
    bank_slip_formula(q, sym_div(m->c, p.flops, elements),
                      "This divides by elements, not by bytes: the bytes per element are missing.");
    bank_slip_formula(q, sym_div(m->c, p.flops, sym_mul(m->c, elements, sym_int(m->c, 2))),
                      "This counts 2 bytes for every element; read again which formats the question names.");
    bank_slip_formula(q, sym_div(m->c, p.flops, sym_mul(m->c, p.bytes, sym_int(m->c, 2))),
                      "A multiplication and an addition are 2 flops; this counts them as one.");
    bank_slip_formula(q, sym_div(m->c, p.flops, sym_sub(m->c, p.bytes, written)),
                      "The result has to be written to memory too; this counts only what is read.");
    bank_slip_formula(q, sym_div(m->c, p.flops, p.activation_bytes),
                      "This leaves out the weight matrix, which is read as well.");
    bank_slip_formula(q, sym_div(m->c, p.flops, p.weight_bytes),
                      "This counts the weight matrix alone; X is read and the result is written as well.");
    bank_step(q, bank_printf(m, "flops = %s: a multiplication and an addition for every element of W and row of X",
                             bank_show(m, p.flops)));
    bank_step(q, bank_printf(m, "bytes of W, read once = %s", bank_show(m, p.weight_bytes)));
    bank_step(q, bank_printf(m, "bytes of X, read, and of the result, written = %s", bank_show(m, p.activation_bytes)));
    bank_step(q, bank_printf(m, "intensity = flops / bytes = %s", bank_show(m, q->answer)));
    return sym_check(m->c, e);
}

enum err_code bank_product_limit(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct product p;
    int64_t order;
    TRY(draw_product(m, &p, e));
    BANK_USE(m, q, p.rows, p.in, p.out);
    const struct sym *const dims[] = {p.rows, p.in, p.out};
    const size_t left = (size_t)bank_draw(m, 0, 2); /* the one that stays */
    const struct sym *const group[] = {dims[(left + 1) % 3], dims[(left + 2) % 3]};
    const struct sym *intensity = sym_div(m->c, p.flops, p.bytes);
    TRY(sym_limit(m->c, intensity, 2, group, &q->answer, &order, e));
    q->text = bank_printf(m,
                          "%s Operands are read once, the result is written once. %s and %s are so large that %s is "
                          "nothing beside them. What does the arithmetic intensity tend to, in flops per byte?",
                          product_text(m, &p), sym_name(group[0]), sym_name(group[1]), sym_name(dims[left]));
    bank_slip_formula(q, sym_mul(m->c, q->answer, sym_rat(m->c, 1, 2)),
                      "A multiplication and an addition are 2 flops; this counts them as one.");
    bank_slip_formula(q, sym_mul(m->c, sym_int(m->c, 2), dims[left]),
                      "The flops per element of the matrix that stays; divide by the bytes of an element.");
    bank_slip_formula(q, dims[left], "That holds at 2 bytes an element; this question has other formats.");
    bank_slip_formula(q, intensity,
                      bank_printf(m, "This is the intensity itself: let %s and %s grow beyond all bounds.",
                                  sym_name(group[0]), sym_name(group[1])));
    bank_slip_formula(q, group[0], "That one is large and cancels; what remains is the one that is not.");
    bank_slip_formula(q, group[1], "That one is large and cancels; what remains is the one that is not.");
    bank_step(q, bank_printf(m, "intensity = flops / bytes = %s", bank_show_normal(m, intensity)));
    bank_step(
        q, bank_printf(m, "of the bytes only the term with %s*%s counts: the other two are smaller by %s/%s and %s/%s",
                       sym_name(group[0]), sym_name(group[1]), sym_name(dims[left]), sym_name(group[0]),
                       sym_name(dims[left]), sym_name(group[1])));
    bank_step(q, bank_printf(m, "limit = %s", bank_show(m, q->answer)));
    return sym_check(m->c, e);
}

enum err_code bank_product_matvec(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t WIDTHS[] = {1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192};
    static const int64_t HIDDEN[] = {2816, 5632, 8192, 11008, 13824, 14336, 18944, 28672};
    struct product p = {.rows = m->y.B, .in = m->y.D, .out = m->y.F, .w = bank_draw_precision(m)};
    const int64_t D = bank_pick(m, 8, WIDTHS), F = bank_pick(m, 8, HIDDEN);
    p.x = p.w;
    TRY(product_derive(m, &p, e));
    const struct sym_binding at[] = {{p.rows, sym_int(m->c, 1)}, {p.in, sym_int(m->c, D)}, {p.out, sym_int(m->c, F)}};
    const struct sym *intensity = sym_bind(m->c, sym_div(m->c, p.flops, p.bytes), at, 3);
    if (!sym_constant(intensity, &q->value)) return err_nomem(e);
    q->kind = EXERCISE_NUMBER;
    q->unit = UNITS_FLOPS_PER_BYTE;
    q->tolerance_frac = 0.01;
    q->form = "a number of flops per byte";
    q->text =
        bank_printf(m,
                    "While one sequence decodes, a vector of %lld elements is multiplied with a weight matrix of %lld "
                    "x %lld; all elements are %s (%s). What is the arithmetic intensity?",
                    (long long)D, (long long)D, (long long)F, p.w->name, p.w->size);
    const double per = (double)p.w->bytes, cells = (double)D * (double)F, ends = (double)D + (double)F;
    bank_slip(q, q->value / 2, "A multiplication and an addition are 2 flops; this counts them as one.");
    bank_slip(q, q->value * per, "This divides by elements, not by bytes: the bytes per element are missing.");
    bank_slip(q, q->value * per / 2,
              "This counts 2 bytes for every element; read again which format the question names.");
    bank_slip(q, 2 * cells / (per * ends), "This leaves out the bytes of the weight matrix, nearly all there are.");
    bank_slip(q, (double)D, "That holds where each weight that is read serves D rows: a single vector uses it once.");
    bank_step(q, bank_printf(m, "intensity = %s with B = 1", bank_show_normal(m, sym_div(m->c, p.flops, p.bytes))));
    bank_step(q, bank_printf(m, "flops = 2*%lld*%lld = %.0f", (long long)D, (long long)F, 2 * cells));
    bank_step(q, bank_printf(m, "bytes = %lld*(%lld*%lld + %lld + %lld) = %.0f", (long long)p.w->bytes, (long long)D,
                             (long long)F, (long long)D, (long long)F, per * (cells + ends)));
    bank_step(q,
              bank_printf(m, "intensity = %.4f flops per byte: every weight is read for one multiply-add", q->value));
    return ERR_OK;
}
