#include <math.h>
#include <string.h>

#include "calc/sym/node.h"

/* Points go through in blocks: WIDE ones while they last (1 KiB a register, so a tape's live set stays in the
 * first-level cache), NARROW ones for a short rest, one by one where there are FEW. Blocks are compile-time trip counts
 * over restrict pointers, which is what a compiler needs to vectorise at -O2; one point is a switch over scalars, a
 * third of what calls through a table cost. */
enum { WIDE = 128, NARROW = 8, NARROW_REST = 32, FEW = 2 };

/* Two statements, so that no compiler contracts them into a fused multiply-add with another rounding. */
static inline double mul_then_add(double k, double x, double y)
{
    const double p = k * x;
    return p + y;
}

/* floor and ceil without a library call: adding and taking away 2^52 rounds any smaller number to a whole one. */
static inline double rounded(double x)
{
    const double big = 0x1p52, r = (fabs(x) + big) - big;
    return copysign(r, x);
}

static inline double floor_of(double x)
{
    const double r = rounded(x), less = r - 1.0, f = r > x ? less : r;
    return fabs(x) < 0x1p52 ? f : x;
}

static inline double ceil_of(double x)
{
    const double r = rounded(x), more = copysign(r + 1.0, x), f = r < x ? more : r;
    return fabs(x) < 0x1p52 ? f : x;
}

/* operation, operands it reads, value at point i (k: the constant of the instruction) */
#define TAPE_OPS(OP)                                                                                                   \
    OP(FILL, 0, k)                                                                                                     \
    OP(COPY, 1, a[i])                                                                                                  \
    OP(ADD, 2, a[i] + b[i])                                                                                            \
    OP(SUB, 2, a[i] - b[i])                                                                                            \
    OP(MUL, 2, a[i] * b[i])                                                                                            \
    OP(DIV, 2, a[i] / b[i])                                                                                            \
    OP(POW, 2, sym_pow_of(a[i], b[i]))                                                                                 \
    OP(MIN, 2, sym_min_of(a[i], b[i]))                                                                                 \
    OP(MAX, 2, sym_max_of(a[i], b[i]))                                                                                 \
    OP(CEIL, 1, ceil_of(a[i]))                                                                                         \
    OP(FLOOR, 1, floor_of(a[i]))                                                                                       \
    OP(LOG, 1, log(a[i]))                                                                                              \
    OP(EXP, 1, exp(a[i]))                                                                                              \
    OP(ADD_K, 1, a[i] + k)                                                                                             \
    OP(K_SUB, 1, k - a[i])                                                                                             \
    OP(MUL_K, 1, a[i] * k)                                                                                             \
    OP(DIV_K, 1, a[i] / k)                                                                                             \
    OP(K_DIV, 1, k / a[i])                                                                                             \
    OP(MIN_K, 1, sym_min_of(a[i], k))                                                                                  \
    OP(MAX_K, 1, sym_max_of(a[i], k))                                                                                  \
    OP(POW_K, 1, pow(a[i], k))                                                                                         \
    OP(K_POW, 1, sym_pow_of(k, a[i]))                                                                                  \
    OP(MUL_K_ADD, 2, mul_then_add(k, a[i], b[i]))

#define TAPE_ENUM(name, reads, value) OP_##name,
enum tape_op { TAPE_OPS(TAPE_ENUM) N_OPS };

typedef void tape_loop(double *restrict d, const double *restrict a, const double *restrict b, double k);

#define TAPE_LOOP(name, width, value)                                                                                  \
    static void name##_##width(double *restrict d, const double *restrict a, const double *restrict b, double k)       \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        (void)b;                                                                                                       \
        (void)k;                                                                                                       \
        for (int i = 0; i < (width); i++) d[i] = value;                                                                \
    }
#define TAPE_LOOPS(name, reads, value) TAPE_LOOP(name, WIDE, value) TAPE_LOOP(name, NARROW, value)
TAPE_OPS(TAPE_LOOPS)

#define TAPE_WIDE(name, reads, value) name##_WIDE,
#define TAPE_NARROW(name, reads, value) name##_NARROW,
#define TAPE_READS(name, reads, value) reads,
static tape_loop *const WIDE_LOOPS[N_OPS] = {TAPE_OPS(TAPE_WIDE)};
static tape_loop *const NARROW_LOOPS[N_OPS] = {TAPE_OPS(TAPE_NARROW)};
static const unsigned char N_READS[N_OPS] = {TAPE_OPS(TAPE_READS)};

/* Slots: inputs, then outputs, then registers. While compiling, values: inputs, then one per instruction. */
struct ins {
    uint32_t op, dst, a, b;
    double k;
};

/* Where the slots lie while blocks of one width go through: side by side, as a stride of 1 KiB would have those of a
 * few points share a few lines of the first-level cache. */
struct slots {
    size_t width;
    tape_loop *const *loops;
    const double **read; /* [slot] */
    double **write;      /* [slot]; an output that is not wanted has a block of scratch like a register */
    double *scratch;     /* [slot][width] */
};

enum slots_of { OF_NARROW, OF_WIDE, WIDTHS };

struct sym_tape {
    size_t n_in, n_out, n_registers, n_ins;
    struct ins *ins;
    struct slots slots[WIDTHS];
    double *one; /* [slot], of one point */
};

struct compiler {
    size_t n_in;
    struct sym_order order;
    uint32_t *value; /* [position] */
    uint8_t *uses;   /* [position] users among nodes and outputs, 2 = more */
    bool *wanted;    /* [position] some instruction reads it */
    struct ins *ins; /* dst and operands are values */
    size_t n_ins;
};

/* What a node compiles to: one instruction reading x (and y), after nothing but their own. */
struct form {
    enum tape_op op;
    const struct sym *x, *y;
    double k;
};

static size_t at(const struct compiler *c, const struct sym *e) { return c->order.pos[e->index] - 1; }

static bool is_negated(const struct sym *e) { return e->op == SYM_MUL && sym_is_int(e->a, -1); }

static bool fuses(const struct compiler *c, const struct sym *e)
{
    return e->op == SYM_MUL && e->a->closed && c->uses[at(c, e)] == 1 && sym_scale_of(e->a).div == 1.0;
}

static struct form form_of_sum(const struct compiler *c, const struct sym *a, const struct sym *b)
{
    if (b->closed && is_negated(a)) return (struct form){OP_K_SUB, a->b, NULL, sym_value(b)};
    if (b->closed) return (struct form){OP_ADD_K, a, NULL, sym_value(b)};
    if (is_negated(b)) return (struct form){OP_SUB, a, b->b, 0.0};
    if (is_negated(a)) return (struct form){OP_SUB, b, a->b, 0.0};
    if (fuses(c, b)) return (struct form){OP_MUL_K_ADD, b->b, a, sym_value(b->a)};
    if (fuses(c, a)) return (struct form){OP_MUL_K_ADD, a->b, b, sym_value(a->a)};
    return (struct form){OP_ADD, a, b, 0.0};
}

/* with_k when the right operand is closed, k_with when the left one is */
static struct form form_of_pair(const struct sym *e, enum tape_op plain, enum tape_op with_k, enum tape_op k_with)
{
    if (e->b->closed) return (struct form){with_k, e->a, NULL, sym_value(e->b)};
    if (e->a->closed) return (struct form){k_with, e->b, NULL, sym_value(e->a)};
    return (struct form){plain, e->a, e->b, 0.0};
}

static struct form form_of(const struct compiler *c, const struct sym *e)
{
    switch (sym_op(e)) {
    case SYM_ADD: return form_of_sum(c, e->a, e->b);
    case SYM_MUL: return form_of_pair(e, OP_MUL, OP_MUL_K, OP_MUL_K);
    case SYM_DIV: return form_of_pair(e, OP_DIV, OP_DIV_K, OP_K_DIV);
    case SYM_POW: return form_of_pair(e, OP_POW, OP_POW_K, OP_K_POW);
    case SYM_MIN: return form_of_pair(e, OP_MIN, OP_MIN_K, OP_MIN_K);
    case SYM_MAX: return form_of_pair(e, OP_MAX, OP_MAX_K, OP_MAX_K);
    case SYM_CEIL: return (struct form){OP_CEIL, e->a, NULL, 0.0};
    case SYM_FLOOR: return (struct form){OP_FLOOR, e->a, NULL, 0.0};
    case SYM_LOG: return (struct form){OP_LOG, e->a, NULL, 0.0};
    case SYM_EXP: return (struct form){OP_EXP, e->a, NULL, 0.0};
    case SYM_CONST:
    case SYM_VAR: break;
    }
    return (struct form){OP_FILL, NULL, NULL, sym_value(e)};
}

static uint32_t add_ins(struct compiler *c, enum tape_op op, uint32_t a, uint32_t b, double k)
{
    c->ins[c->n_ins] = (struct ins){.op = op, .dst = (uint32_t)(c->n_in + c->n_ins), .a = a, .b = b, .k = k};
    return c->ins[c->n_ins++].dst;
}

static bool is_small_power(double k) { return k >= 2.0 && k <= (double)SYM_POW_MAX && k == floor(k); }

/* the same products in the same order as sym_pow_of */
static uint32_t add_power(struct compiler *c, uint32_t x, unsigned n)
{
    uint32_t r = 0;
    bool started = false;
    for (;;) {
        if (n & 1) {
            r = started ? add_ins(c, OP_MUL, r, x, 0.0) : x;
            started = true;
        }
        n >>= 1;
        if (n == 0) return r;
        x = add_ins(c, OP_MUL, x, x, 0.0);
    }
}

static uint32_t add_node(struct compiler *c, const struct sym *e)
{
    const struct form f = form_of(c, e);
    const uint32_t x = f.x ? c->value[at(c, f.x)] : 0, y = f.y ? c->value[at(c, f.y)] : 0;
    if (f.op == OP_POW_K && is_small_power(f.k)) return add_power(c, x, (unsigned)f.k);
    if (f.op == OP_MUL_K) { /* the closed factor is on the left */
        const struct sym_scale s = sym_scale_of(e->a);
        if (s.div == 1.0) return add_ins(c, OP_MUL_K, x, 0, s.mul);
        if (fabs(s.mul) == 1.0) return add_ins(c, OP_DIV_K, x, 0, s.mul * s.div);
        return add_ins(c, OP_DIV_K, add_ins(c, OP_MUL_K, x, 0, s.mul), 0, s.div);
    }
    return add_ins(c, f.op, x, y, f.k);
}

enum { INS_PER_NODE = 8 }; /* x^15 takes 6 products */

/* the uses that decide fusing, then which nodes are needed at all, then instructions in order */
static enum err_code select_ins(struct compiler *c, struct arena *scratch, size_t n_out, const struct sym *const *exprs,
                                const struct sym *const *inputs, struct err *e)
{
    const size_t n = c->order.n;
    size_t p, n_wanted = 0;
    c->value = arena_array(scratch, n, sizeof *c->value);
    c->uses = arena_array(scratch, n, sizeof *c->uses);
    c->wanted = arena_array(scratch, n, sizeof *c->wanted);
    bool *given = arena_array(scratch, n, sizeof *given);
    if (!c->value || !c->uses || !c->wanted || !given) return err_nomem(e);
    for (size_t i = c->n_in; i-- > 0;) {
        if (!sym_order_find(&c->order, inputs[i], &p)) continue;
        c->value[p] = (uint32_t)i;
        given[p] = true;
    }
    for (size_t i = 0; i < n_out; i++) {
        c->uses[at(c, exprs[i])] = 2;
        c->wanted[at(c, exprs[i])] = true;
    }
    for (size_t i = 0; i < n; i++) {
        const struct sym *node = c->order.node[i], *side[2] = {sym_left(node), sym_right(node)};
        if (node->op == SYM_VAR && !given[i])
            return err_set(e, ERR_RANGE, "variable '%s' has no values: it is not among the %zu inputs", node->name,
                           c->n_in);
        for (int j = 0; j < 2; j++)
            if (side[j] && c->uses[at(c, side[j])] < 2) c->uses[at(c, side[j])]++;
    }
    for (size_t i = n; i-- > 0;) {
        const struct sym *node = c->order.node[i];
        if (!c->wanted[i] || given[i] || node->closed) continue;
        const struct form f = form_of(c, node);
        c->wanted[at(c, f.x)] = true;
        if (f.y) c->wanted[at(c, f.y)] = true;
        n_wanted++;
    }
    c->ins = arena_array(scratch, INS_PER_NODE * n_wanted + n_out, sizeof *c->ins);
    if (!c->ins) return err_nomem(e);
    for (size_t i = 0; i < n; i++)
        if (c->wanted[i] && !given[i] && !c->order.node[i]->closed) c->value[i] = add_node(c, c->order.node[i]);
    return ERR_OK;
}

/* FILL and COPY for outputs that are constants, inputs, or the same as an earlier output; slot[value] of the rest */
static void place_outputs(struct compiler *c, size_t n_out, const struct sym *const *exprs, uint32_t *slot)
{
    const size_t n_values = c->n_in + c->n_ins;
    for (size_t j = 0; j < n_out; j++) {
        const uint32_t out = (uint32_t)(c->n_in + j), v = c->value[at(c, exprs[j])];
        uint32_t extra;
        if (exprs[j]->closed) {
            extra = add_ins(c, OP_FILL, 0, 0, sym_value(exprs[j]));
        } else if (v < c->n_in || (v < n_values && slot[v] != UINT32_MAX)) {
            extra = add_ins(c, OP_COPY, v, 0, 0.0);
        } else {
            slot[v] = out;
            continue;
        }
        slot[extra] = out;
    }
}

/* A register is free again after the last instruction that reads it; an instruction never writes one that it reads. */
static bool place_registers(const struct compiler *c, struct arena *scratch, size_t n_out, uint32_t *slot,
                            size_t *n_registers)
{
    const size_t n = c->n_ins, base = c->n_in + n_out;
    uint32_t *last = arena_array(scratch, c->n_in + n, sizeof *last), *unused = arena_array(scratch, n, sizeof *unused);
    if (!last || !unused) return false;
    for (size_t i = 0; i < n; i++) {
        if (N_READS[c->ins[i].op] > 0) last[c->ins[i].a] = (uint32_t)i;
        if (N_READS[c->ins[i].op] > 1) last[c->ins[i].b] = (uint32_t)i;
    }
    size_t n_unused = 0, used = 0;
    for (size_t i = 0; i < n; i++) {
        struct ins *x = &c->ins[i];
        if (slot[x->dst] == UINT32_MAX) slot[x->dst] = n_unused ? unused[--n_unused] : (uint32_t)(base + used++);
        x->dst = slot[x->dst];
        for (unsigned j = 0; j < N_READS[x->op]; j++) {
            uint32_t *operand = j == 0 ? &x->a : &x->b;
            const uint32_t v = *operand;
            *operand = slot[v];
            if (v < c->n_in || slot[v] < base || last[v] != i) continue;
            unused[n_unused++] = slot[v];
            last[v] = UINT32_MAX; /* x*x gives it back once */
        }
        if (N_READS[x->op] < 1) x->a = 0; /* any slot: never read */
        if (N_READS[x->op] < 2) x->b = 0;
    }
    *n_registers = used;
    return true;
}

static bool open_slots(struct arena *a, size_t n, size_t width, tape_loop *const *loops, struct slots *out)
{
    *out = (struct slots){.width = width,
                          .loops = loops,
                          .read = arena_array(a, n, sizeof *out->read),
                          .write = arena_array(a, n, sizeof *out->write),
                          .scratch = arena_array(a, n, width * sizeof *out->scratch)};
    if (!out->read || !out->write || !out->scratch) return false;
    for (size_t i = 0; i < n; i++) out->read[i] = out->write[i] = out->scratch + i * width;
    return true;
}

static struct sym_tape *tape_make(struct arena *a, const struct compiler *c, size_t n_out, size_t n_registers)
{
    struct sym_tape *t = arena_alloc(a, sizeof *t);
    if (!t) return NULL;
    const size_t n_slots = c->n_in + n_out + n_registers;
    *t = (struct sym_tape){.n_in = c->n_in, .n_out = n_out, .n_registers = n_registers, .n_ins = c->n_ins};
    t->ins = arena_array(a, c->n_ins, sizeof *t->ins);
    t->one = arena_array(a, n_slots, sizeof *t->one);
    if (!t->ins || !t->one || !open_slots(a, n_slots, NARROW, NARROW_LOOPS, &t->slots[OF_NARROW]) ||
        !open_slots(a, n_slots, WIDE, WIDE_LOOPS, &t->slots[OF_WIDE]))
        return NULL;
    if (c->n_ins) memcpy(t->ins, c->ins, c->n_ins * sizeof *t->ins);
    return t;
}

static enum err_code compile(struct arena *a, struct arena *scratch, size_t n_out, const struct sym *const *exprs,
                             size_t n_in, const struct sym *const *inputs, struct sym_tape **out, struct err *e)
{
    struct compiler c = {.n_in = n_in};
    size_t n_registers;
    if (!sym_order_make(scratch, n_out, exprs, &c.order)) return err_nomem(e);
    if (c.order.n > UINT32_MAX / (2 * INS_PER_NODE) || n_in > UINT32_MAX / 4 || n_out > UINT32_MAX / 4)
        return err_nomem(e);
    TRY(select_ins(&c, scratch, n_out, exprs, inputs, e));
    uint32_t *slot = arena_array(scratch, n_in + c.n_ins + n_out, sizeof *slot);
    if (!slot) return err_nomem(e);
    for (size_t i = 0; i < n_in + c.n_ins + n_out; i++) slot[i] = i < n_in ? (uint32_t)i : UINT32_MAX;
    place_outputs(&c, n_out, exprs, slot);
    if (!place_registers(&c, scratch, n_out, slot, &n_registers)) return err_nomem(e);
    struct sym_tape *t = tape_make(a, &c, n_out, n_registers);
    if (!t) return err_nomem(e);
    *out = t;
    return ERR_OK;
}

enum err_code sym_tape_compile(struct arena *a, size_t n_out, const struct sym *const *exprs, size_t n_in,
                               const struct sym *const *inputs, struct sym_tape **out, struct err *e)
{
    struct arena *scratch = arena_open();
    const enum err_code code = scratch ? compile(a, scratch, n_out, exprs, n_in, inputs, out, e) : err_nomem(e);
    arena_close(scratch);
    return code;
}

static void run(const struct sym_tape *t, const struct slots *k)
{
    for (size_t i = 0; i < t->n_ins; i++) {
        const struct ins *x = &t->ins[i];
        k->loops[x->op](k->write[x->dst], k->read[x->a], k->read[x->b], x->k);
    }
}

/* The value of an instruction, its operands at a[i] and b[i]. */
static inline double value_of(const struct ins *x, const double *v)
{
    enum { i = 0 };
    const double *const a = v + x->a, *const b = v + x->b, k = x->k;
    switch ((enum tape_op)x->op) {
#define TAPE_CASE(name, reads, value)                                                                                  \
    case OP_##name: return value;
        TAPE_OPS(TAPE_CASE)
#undef TAPE_CASE
    case N_OPS: break;
    }
    return (double)NAN;
}

static void run_one(const struct sym_tape *t, size_t at, const double *const *in, double *const *out)
{
    double *const v = t->one;
    const struct ins *const end = t->ins + t->n_ins;
    for (size_t i = 0; i < t->n_in; i++)
        if (in[i]) v[i] = in[i][at];
    for (const struct ins *x = t->ins; x < end; x++) v[x->dst] = value_of(x, v);
    for (size_t j = 0; j < t->n_out; j++)
        if (out[j]) out[j][at] = v[t->n_in + j];
}

/* points base .. base+width-1, straight from and to the caller's columns */
static void run_whole(const struct sym_tape *t, size_t base, struct slots *k, const double *const *in,
                      double *const *out)
{
    for (size_t i = 0; i < t->n_in; i++)
        if (in[i]) k->read[i] = in[i] + base;
    for (size_t j = t->n_in; j < t->n_in + t->n_out; j++) { /* those not wanted: scratch */
        double *to = out[j - t->n_in];
        k->read[j] = k->write[j] = to ? to + base : k->scratch + j * k->width;
    }
    run(t, k);
}

/* the last n < width points, through scratch; the places past them repeat the last point */
static void run_part(const struct sym_tape *t, size_t base, size_t n, struct slots *k, const double *const *in,
                     double *const *out)
{
    for (size_t i = 0; i < t->n_in; i++) {
        double *to = k->scratch + i * k->width;
        k->read[i] = to;
        for (size_t p = 0; in[i] && p < k->width; p++) to[p] = in[i][base + (p < n ? p : n - 1)];
    }
    for (size_t j = t->n_in; j < t->n_in + t->n_out; j++) k->read[j] = k->write[j] = k->scratch + j * k->width;
    run(t, k);
    for (size_t j = 0; j < t->n_out; j++)
        if (out[j]) memcpy(out[j] + base, k->write[t->n_in + j], n * sizeof(double));
}

void sym_tape_eval(struct sym_tape *t, size_t n, const double *const *in, double *const *out)
{
    size_t base = 0;
    for (; n - base >= WIDE; base += WIDE) run_whole(t, base, &t->slots[OF_WIDE], in, out);
    if (n - base > NARROW_REST) {
        run_part(t, base, n - base, &t->slots[OF_WIDE], in, out);
        return;
    }
    for (; n - base >= NARROW; base += NARROW) run_whole(t, base, &t->slots[OF_NARROW], in, out);
    if (n - base > FEW)
        run_part(t, base, n - base, &t->slots[OF_NARROW], in, out);
    else
        for (; base < n; base++) run_one(t, base, in, out);
}

size_t sym_tape_length(const struct sym_tape *t) { return t->n_ins; }
