#include <math.h>
#include <string.h>

#include "calc/learn/bank.h"
#include "calc/learn/bank_ridge.h"
#include "calc/sym/normal.h"

static const char SET[] = "1 intensity";

/* An element format; the textbook's expressions are for two bytes and scale. */
struct precision {
    const char *name;
    int64_t bytes;
};

static const struct precision PRECISIONS[] = {{"fp8", 1}, {"bf16", 2}, {"fp32", 4}};

static const struct precision *draw_precision(struct exercise_maker *m) { return &PRECISIONS[bank_draw(m, 0, 2)]; }

static const struct sym *at_bytes(struct exercise_maker *m, const struct sym *bytes, int64_t per_element)
{
    return sym_mul(m->c, bytes, sym_rat(m->c, per_element, 2));
}

/* The symbols that an answer may use, and the sentence that says so. */
static void use_symbols(struct exercise_maker *m, struct exercise_question *q, size_t n, const struct sym *const *list)
{
    const char *all = "";
    for (size_t i = 0; i < n; i++) {
        q->symbols[q->symbols_n++] = list[i];
        all = bank_printf(m, "%s%s%s", all, i ? ", " : "", sym_name(list[i]));
    }
    q->kind = EXERCISE_FORMULA;
    q->form = bank_printf(m, "an expression in %s", all);
}

#define USE(m, q, ...)                                                                                                 \
    use_symbols((m), (q), sizeof((const struct sym *[]){__VA_ARGS__}) / sizeof(const struct sym *),                    \
                (const struct sym *[]){__VA_ARGS__})

/* ---- one matrix product: x (rows x in) times W (in x out) ---- */

struct product {
    const struct sym *rows, *in, *out;
    const struct precision *w, *x; /* of weights and of activations */
    const struct sym *flops, *weight_bytes, *activation_bytes, *bytes;
};

static enum err_code product_derive(struct exercise_maker *m, struct product *p, struct err *e)
{
    struct quantity_topic t;
    TRY(quantity_topic(&m->textbook, "down_proj", QUANTITY_DECODE, &t, e));
    const struct sym_binding names[] = {{m->y.B, p->rows}, {m->y.F, p->in}, {m->y.D, p->out}};
    p->flops = sym_bind(m->c, t.total.flops, names, 3);
    p->weight_bytes = at_bytes(m, sym_bind(m->c, t.total.weight_bytes, names, 3), p->w->bytes);
    p->activation_bytes = at_bytes(m, sym_bind(m->c, t.total.activation_bytes, names, 3), p->x->bytes);
    p->bytes = sym_add(m->c, p->weight_bytes, p->activation_bytes);
    return sym_check(m->c, e);
}

static const char *product_text(struct exercise_maker *m, const struct product *p)
{
    const char *rows = sym_name(p->rows), *in = sym_name(p->in), *out = sym_name(p->out);
    if (p->w == p->x)
        return bank_printf(
            m,
            "A matrix X of %s x %s is multiplied with a weight matrix W of %s x %s; all elements are %s (%lld byte%s).",
            rows, in, in, out, p->w->name, (long long)p->w->bytes, p->w->bytes == 1 ? "" : "s");
    return bank_printf(m,
                       "A matrix X of %s x %s is multiplied with a weight matrix W of %s x %s; W is stored in %s (%lld "
                       "byte%s an element), X and the result in %s (%lld byte%s).",
                       rows, in, in, out, p->w->name, (long long)p->w->bytes, p->w->bytes == 1 ? "" : "s", p->x->name,
                       (long long)p->x->bytes, p->x->bytes == 1 ? "" : "s");
}

static enum err_code draw_product(struct exercise_maker *m, struct product *p, struct err *e)
{
    const struct sym *const names[][3] = {
        {m->y.B, m->y.D, m->y.F}, {m->y.T, m->y.D, m->y.F}, {m->y.B, m->y.D, m->y.V}, {m->y.B, m->y.F, m->y.D}};
    const struct sym *const *use = names[bank_draw(m, 0, 3)];
    *p = (struct product){.rows = use[0], .in = use[1], .out = use[2], .w = draw_precision(m)};
    p->x = bank_draw(m, 0, 2) == 0 && p->w->bytes == 1 ? &PRECISIONS[1] : p->w;
    return product_derive(m, p, e);
}

static enum err_code product_intensity(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct product p;
    TRY(draw_product(m, &p, e));
    USE(m, q, p.rows, p.in, p.out);
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

static enum err_code product_limit(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct product p;
    int64_t order;
    TRY(draw_product(m, &p, e));
    USE(m, q, p.rows, p.in, p.out);
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
                      "Half of it: a multiplication and an addition are 2 flops.");
    bank_slip_formula(q, sym_mul(m->c, sym_int(m->c, 2), dims[left]),
                      "The flops per element of the matrix that stays; divide by the bytes of an element.");
    bank_slip_formula(q, dims[left], "That holds at 2 bytes an element; this question has other formats.");
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

static enum err_code matvec_intensity(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    static const int64_t WIDTHS[] = {1024, 2048, 2560, 3072, 4096, 5120, 6144, 8192};
    static const int64_t HIDDEN[] = {2816, 5632, 8192, 11008, 13824, 14336, 18944, 28672};
    struct product p = {.rows = m->y.B, .in = m->y.D, .out = m->y.F, .w = draw_precision(m)};
    const int64_t D = bank_pick(m, 8, WIDTHS), F = bank_pick(m, 8, HIDDEN);
    p.x = p.w;
    TRY(product_derive(m, &p, e));
    const struct sym_binding at[] = {{p.rows, sym_int(m->c, 1)}, {p.in, sym_int(m->c, D)}, {p.out, sym_int(m->c, F)}};
    const struct sym *intensity = sym_bind(m->c, sym_div(m->c, p.flops, p.bytes), at, 3);
    if (!sym_constant(intensity, &q->value)) return err_nomem(e);
    q->kind = EXERCISE_NUMBER;
    q->unit = UNITS_FLOPS_PER_BYTE;
    q->tolerance_frac = 0.01;
    q->form = "a number of flops per byte, such as 12.5, within 1%";
    q->text = bank_printf(
        m,
        "While one sequence decodes, a vector of %lld elements is multiplied with a weight matrix of %lld "
        "x %lld; all elements are %s (%lld byte%s). What is the arithmetic intensity?",
        (long long)D, (long long)D, (long long)F, p.w->name, (long long)p.w->bytes, p.w->bytes == 1 ? "" : "s");
    const double per = (double)p.w->bytes, cells = (double)D * (double)F, ends = (double)D + (double)F;
    bank_slip(q, q->value / 2, "A multiplication and an addition are 2 flops; this counts them as one.");
    bank_slip(q, q->value * per, "This divides by elements, not by bytes: the bytes per element are missing.");
    bank_slip(q, q->value * per / 2,
              "This counts 2 bytes for every element; read again which format the question names.");
    bank_slip(q, 2 * cells / (per * ends), "This leaves out the bytes of the weight matrix, nearly all there are.");
    bank_slip(q, (double)D, "The flops of a vector use every weight once: nothing of the matrix is used D times.");
    bank_step(q, bank_printf(m, "intensity = %s with B = 1", bank_show_normal(m, sym_div(m->c, p.flops, p.bytes))));
    bank_step(q, bank_printf(m, "flops = 2*%lld*%lld = %.0f", (long long)D, (long long)F, 2 * cells));
    bank_step(q, bank_printf(m, "bytes = %lld*(%lld*%lld + %lld + %lld) = %.0f", (long long)p.w->bytes, (long long)D,
                             (long long)F, (long long)D, (long long)F, per * (cells + ends)));
    bank_step(q,
              bank_printf(m, "intensity = %.4f flops per byte: every weight is read for one multiply-add", q->value));
    return ERR_OK;
}

/* ---- the gated MLP ---- */

struct mlp {
    struct quantity_topic t;
    enum quantity_phase phase;
    const struct precision *x;
    const struct sym *rows, *tokens, *bytes; /* of B*T; T; at the element format */
};

static enum err_code draw_mlp(struct exercise_maker *m, struct mlp *p, struct err *e)
{
    p->phase = (enum quantity_phase)bank_draw(m, QUANTITY_ANY, QUANTITY_DECODE);
    p->x = draw_precision(m);
    TRY(quantity_topic(&m->textbook, "mlp", p->phase, &p->t, e));
    p->bytes = at_bytes(m, p->t.bytes, p->x->bytes);
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
        USE(m, q, m->y.B, m->y.D, m->y.F);
    else
        USE(m, q, m->y.B, p->tokens, m->y.D, m->y.F);
}

static enum err_code mlp_flops(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct mlp p;
    TRY(draw_mlp(m, &p, e));
    mlp_symbols(m, q, &p);
    const bool all = bank_draw(m, 0, 1) == 1;
    const struct sym *one = sym_int(m->c, 1), *layers = all ? m->y.L : one;
    if (all) USE(m, q, m->y.L);
    if (all)
        q->form = bank_printf(m, "an expression in B, %sD, F, L",
                              p.phase == QUANTITY_DECODE ? "" : bank_printf(m, "%s, ", sym_name(p.tokens)));
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
    return bank_printf(
        m,
        "%s All elements are %s (%lld byte%s). As in the lecture, its kernel reads X and the three matrices "
        "once and writes the outputs of gate, up and down once; nothing is read again.",
        mlp_text(m, p), p->x->name, (long long)p->x->bytes, p->x->bytes == 1 ? "" : "s");
}

static enum err_code mlp_intensity(struct exercise_maker *m, struct exercise_question *q, struct err *e)
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
    bank_slip_formula(q, sym_div(m->c, p.t.total.flops, at_bytes(m, p.t.total.weight_bytes, p.x->bytes)),
                      "This counts the weights alone; X is read, and the outputs are written, as well.");
    bank_step(q, bank_printf(m, "flops = %s", bank_show(m, p.t.total.flops)));
    bank_step(q, bank_printf(m, "bytes of the three matrices = %s",
                             bank_show(m, at_bytes(m, p.t.total.weight_bytes, p.x->bytes))));
    bank_step(q, bank_printf(m, "bytes of X, gate, up and the result = %s",
                             bank_show_normal(m, at_bytes(m, p.t.total.activation_bytes, p.x->bytes))));
    bank_step(q, bank_printf(m, "intensity = flops / bytes = %s", bank_show(m, q->answer)));
    return sym_check(m->c, e);
}

static enum err_code mlp_limit(struct exercise_maker *m, struct exercise_question *q, struct err *e)
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
                      "Two of three: the third product, the gate, is in the bytes but not in the flops.");
    bank_slip_formula(q, sym_mul(m->c, q->answer, sym_rat(m->c, 1, 2)),
                      "Half of it: a multiplication and an addition are 2 flops.");
    bank_slip_formula(q, sym_mul(m->c, sym_int(m->c, 2), p.rows),
                      "This divides by elements, not by bytes: the bytes per element are missing.");
    bank_slip_formula(q, p.rows, "That holds at 2 bytes an element; this question has another format.");
    if (p.phase != QUANTITY_DECODE) {
        bank_slip_formula(q, sym_div(m->c, q->answer, p.tokens),
                          "Every token uses the weights that are read, not only one of each sequence.");
        bank_slip_formula(q, sym_div(m->c, q->answer, m->y.B),
                          "The sequences of a batch share the weights that are read; this counts one sequence.");
    }
    bank_step(q, bank_printf(m, "intensity = flops / bytes = %s", bank_show_normal(m, intensity)));
    bank_step(q, "of the bytes only the weights grow with D*F; the activations grow with D or F alone");
    bank_step(q, bank_printf(m, "limit = %s / (%s) = %s", bank_show(m, p.t.total.flops),
                             bank_show(m, at_bytes(m, p.t.total.weight_bytes, p.x->bytes)), bank_show(m, q->answer)));
    return sym_check(m->c, e);
}

/* ---- attention ---- */

struct attention {
    struct quantity_topic t;
    const struct precision *kv, *x;
    const struct sym *cache_bytes, *activation_bytes, *bytes;
};

static enum err_code derive_attention(struct exercise_maker *m, enum quantity_phase phase, struct attention *p,
                                      struct err *e)
{
    TRY(quantity_topic(&m->textbook, "attention", phase, &p->t, e));
    p->cache_bytes = at_bytes(m, p->t.total.kv_bytes, p->kv->bytes);
    p->activation_bytes = at_bytes(m, p->t.total.activation_bytes, p->x->bytes);
    p->bytes = sym_add(m->c, p->cache_bytes, p->activation_bytes);
    return sym_check(m->c, e);
}

static const char *attention_formats(struct exercise_maker *m, const struct attention *p)
{
    return bank_printf(
        m, "Keys and values are cached in %s (%lld byte%s an element), queries and outputs are %s (%lld byte%s).",
        p->kv->name, (long long)p->kv->bytes, p->kv->bytes == 1 ? "" : "s", p->x->name, (long long)p->x->bytes,
        p->x->bytes == 1 ? "" : "s");
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
    static const int64_t PAIRS[][2] = {{1, 1}, {0, 1}, {0, 0}, {2, 2}, {1, 2}, {0, 2}}; /* rows of PRECISIONS */
    const int64_t *pair = PAIRS[bank_draw(m, 0, 5)];
    p->kv = &PRECISIONS[pair[0]];
    p->x = &PRECISIONS[pair[1]];
}

static enum err_code attention_intensity(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct attention p;
    draw_formats(m, &p);
    TRY(derive_attention(m, QUANTITY_ANY, &p, e));
    USE(m, q, m->y.S, m->y.T, m->y.B, m->y.D);
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

static enum err_code attention_phase(struct exercise_maker *m, struct exercise_question *q, struct err *e)
{
    struct attention p;
    draw_formats(m, &p);
    const enum quantity_phase phase = bank_draw(m, 0, 1) ? QUANTITY_PREFILL : QUANTITY_DECODE;
    TRY(derive_attention(m, phase, &p, e));
    USE(m, q, m->y.S, m->y.B, m->y.D);
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
static enum err_code batching_gain(struct exercise_maker *m, struct exercise_question *q, struct err *e)
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
    q->form = "a ratio, such as 3.5, within 1%";
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
    bank_slip(q, (double)few / (double)many, "Upside down: the larger batch is above the stroke.");
    bank_step(q, bank_printf(m, "intensity = %s", bank_show(m, intensity)));
    bank_step(q, bank_printf(m, "at B = %lld: %.5g; at B = %lld: %.5g flops per byte", (long long)few, at[0],
                             (long long)many, at[1]));
    bank_step(q, bank_printf(m, "factor = %.4g: %s", q->value,
                             attends ? "B cancels, so batching does not help attention"
                                     : "the weights are shared by the batch"));
    return ERR_OK;
}

static const struct exercise ROWS[] = {
    {"matmul-intensity", SET, "arithmetic intensity of a matrix product", "ridge explain down_proj", product_intensity},
    {"matmul-limit", SET, "what it tends to when two dimensions are large", "ridge explain down_proj", product_limit},
    {"matvec-intensity", SET, "a matrix and one vector", "ridge explain down_proj --phase decode", matvec_intensity},
    {"ridge-h100", SET, "the ridge of an H100, and of what it reaches", "ridge list hardware", bank_ridge_h100},
    {"ridge-device", SET, "the ridge of another device and format", "ridge list hardware", bank_ridge_device},
    {"ridge-cpu", SET, "the ridge of a CPU, from its parts", "ridge list hardware", bank_ridge_cpu},
    {"bound", SET, "memory-bound or compute-bound?", "ridge explain down_proj -g h100-sxm", bank_ridge_bound},
    {"batch-ridge", SET, "the batch at which a matrix product turns compute-bound", "ridge help solve",
     bank_ridge_batch},
    {"mlp-flops", SET, "flops of a gated MLP", "ridge explain mlp", mlp_flops},
    {"mlp-intensity", SET, "arithmetic intensity of a gated MLP", "ridge explain mlp --course", mlp_intensity},
    {"mlp-limit", SET, "what it tends to when the widths are large", "ridge explain mlp --course", mlp_limit},
    {"attention-intensity", SET, "arithmetic intensity of attention", "ridge explain attention --course",
     attention_intensity},
    {"attention-phase", SET, "attention while prefilling and while decoding", "ridge explain attention --course",
     attention_phase},
    {"batching-gain", SET, "what a larger batch does for attention and for the MLP", "ridge explain attention --course",
     batching_gain},
};

const struct exercise *bank_intensity(size_t *n)
{
    *n = sizeof ROWS / sizeof ROWS[0];
    return ROWS;
}
