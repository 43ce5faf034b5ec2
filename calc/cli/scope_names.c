/* The names of scope.h: what a person's expression may say, and what stands for it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calc/cli/scope.h"
#include "calc/learn/sizes.h"

static bool occurs(const struct scope *s, const struct sym *e, const struct sym *var)
{
    const struct sym_binding one = {var, sym_int(s->quantity.c, 1)};
    return sym_bind(s->quantity.c, e, &one, 1) != e;
}

static bool occurs_any(const struct scope *s, size_t n, const struct sym *const *e, const struct sym *var)
{
    for (size_t i = 0; i < n; i++)
        if (occurs(s, e[i], var)) return true;
    return false;
}

/* ---- the free symbol ---- */

static const struct sym *find_symbol(const struct scope *s, const char *name)
{
    const struct parse_symbol all[] = {
#define X(field, text, meaning) {text, s->quantity.y.field},
        COST_SYMBOLS(X)
#undef X
    };
    const char *meaning;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].text, name) == 0) return all[i].e;
    const struct rates names = rates_make(s->quantity.c);
    for (size_t i = 0; i < RATES_N; i++)
        if (strcmp(sym_name(rates_list(&names, i, &meaning)), name) == 0) return rates_list(&names, i, &meaning);
    return NULL;
}

/* Value heads that are as wide as the key heads everywhere: one number, H. */
static bool heads_are_one(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        if (x->kind != MIXER_NONE && (x->kind != MIXER_ATTENTION || x->head_dim != x->v_head_dim)) return false;
    }
    return true;
}

enum err_code scope_free(struct scope *s, const char *name, struct err *e)
{
    struct quantity_scope *q = &s->quantity;
    const struct cost_symbols *y = &q->y;
    const struct sym *var = find_symbol(s, name);
    struct sizes z;
    if (!var) return err_set(e, ERR_USAGE, "--for: no symbol '%.20s' (ridge explain lists them)", name);
    q->free = var;
    if (var == y->t) return err_set(e, ERR_USAGE, "--for t: the number of ranks is a layout; try some with --tp");
    if (var == y->r) return err_set(e, ERR_USAGE, "--for r: it follows from the number of ranks and the device");
    if (var == y->M) return err_set(e, ERR_USAGE, "--for M: no quantity here is a mean over steps");
    if (var == y->T && s->phase != QUANTITY_ANY)
        return err_set(e, ERR_USAGE, "--for T: it is %s under --phase %s; --phase any leaves it free",
                       s->phase == QUANTITY_PREFILL ? "S"
                       : s->tokens                  ? "--tokens"
                                                    : "1",
                       s->phase == QUANTITY_PREFILL ? "prefill" : "decode");
    if (var == y->T && q->model && model_passes_whole(q->model))
        return err_set(e, ERR_USAGE, "--for T: every pass of %s takes the whole sequence, T = S", q->model->name);
    if (!q->model || var == y->B || var == y->S || var == y->T) return ERR_OK;
    if (var == y->L && q->model->kinds_n > 1)
        return err_set(e, ERR_USAGE, "--for L: the layers of %s are of %zu kinds, and L does not say how many of each",
                       q->model->name, q->model->kinds_n);
    if (var == y->Hv && heads_are_one(q->model))
        return err_set(e, ERR_USAGE, "--for Hv: value heads of %s are as wide as its key heads: --for H",
                       q->model->name);
    const char *meaning;
    for (size_t i = 0; i < RATES_N; i++) {
        const struct rates names = rates_make(q->c);
        if (rates_list(&names, i, &meaning) == var) return ERR_OK;
    }
    TRY(sizes_of(q, var, q->layer < 0 ? UINT64_MAX : UINT64_C(1) << q->layer, &z, e));
    if (z.n == 0)
        return err_set(e, ERR_USAGE, "--for %s: %s has none%s", name, q->model->name,
                       q->layer < 0 ? "" : " in this kind of layer");
    return ERR_OK;
}

/* ---- names ---- */

static void add_symbol(struct scope_asker *k, const char *text, const struct sym *value)
{
    k->symbols[k->n_symbols++] = (struct parse_symbol){text, value};
}

/* What a typed T is: the phase's. */
static const struct sym *tokens_of(const struct scope *s)
{
    const struct quantity_scope *q = &s->quantity;
    if (s->phase == QUANTITY_PREFILL || (q->model && model_passes_whole(q->model))) return q->y.S;
    return s->phase == QUANTITY_ANY ? q->y.T : quantity_tokens(q);
}

/* The course's symbols; those of the model as its numbers where it has one number each. */
static enum err_code add_sizes(struct scope_asker *k, struct err *e)
{
    const struct quantity_scope *q = &k->scope->quantity;
    struct sizes all[SIZES_SYMBOLS];
    size_t n;
    add_symbol(k, "B", q->y.B);
    add_symbol(k, "S", q->y.S);
    add_symbol(k, "T", tokens_of(k->scope));
    add_symbol(k, "M", q->y.M);
    TRY(sizes_all(q, q->layer < 0 ? UINT64_MAX : UINT64_C(1) << q->layer, all, &n, e));
    for (size_t i = 0; i < n; i++) {
        const bool number = q->model && all[i].var != q->free && all[i].n == 1;
        add_symbol(k, sym_name(all[i].var), number ? all[i].at[0].whole : all[i].var);
    }
    return ERR_OK;
}

static bool is_named(const struct scope_asker *k, const char *name)
{
    for (size_t i = 0; i < k->n_named; i++)
        if (strcmp(k->named[i].name, name) == 0) return true;
    return false;
}

enum err_code scope_asker_make(const struct scope *s, struct scope_asker *out, struct err *e)
{
    const struct quantity_scope *q = &s->quantity;
    _Static_assert(4 + SIZES_SYMBOLS + RATES_N + QUANTITY_NAMED_MAX <= SCOPE_SYMBOLS, "room for all names");
    *out = (struct scope_asker){.scope = s};
    TRY(add_sizes(out, e));
    const struct rates names = rates_make(q->c);
    for (size_t i = 0; i < RATES_N; i++) {
        const char *meaning;
        const struct sym *var = rates_list(&names, i, &meaning), *value = rates_list(&q->rates, i, &meaning);
        if (s->gpus && value == var && var != q->free) continue; /* a rate that the device has not */
        add_symbol(out, sym_name(var), value);
    }
    TRY(quantity_named_all(q, out->named, &out->n_named, e));
    for (size_t i = 0; i < out->n_named; i++) add_symbol(out, out->named[i].name, sym_var(q->c, out->named[i].name));
    size_t calls;
    const char *const *call = quantity_calls(&calls);
    for (size_t i = 0; i < calls; i++)
        if (!is_named(out, call[i])) add_symbol(out, call[i], sym_var(q->c, call[i])); /* without its topic */
    return sym_check(q->c, e);
}

static enum err_code resolve(void *user, const char *name, const char *argument, const struct sym **out, struct err *e)
{
    struct scope_asker *k = user;
    struct quantity_topic topic;
    const size_t n = strlen(name);
    for (size_t i = 0; i < k->n_known; i++) {
        const char *call = k->known[i].call;
        if (strncmp(call, name, n) != 0 || call[n] != '(' || strcmp(call + n + 1, argument) != 0) continue;
        *out = k->known[i].value;
        return ERR_OK;
    }
    const struct quantity_scope *q = &k->scope->quantity;
    TRY(quantity_topic(q, argument, k->scope->phase, &topic, e));
    TRY(quantity_value(q, &topic, name, out, e));
    if (!q->free || occurs(k->scope, *out, q->free)) k->kinds |= sizes_kinds(&topic);
    k->units |= quantity_units(&topic);
    k->decodes = k->decodes || strcmp(topic.name, "decode_step") == 0;
    const char *call = arena_printf(q->arena, "%s(%s", name, argument);
    if (!call) return err_nomem(e);
    if (k->n_known < sizeof k->known / sizeof k->known[0]) k->known[k->n_known++] = (struct scope_answer){call, *out};
    return ERR_OK;
}

struct parse_names scope_names_of(struct scope_asker *k)
{
    struct parse_names names = {
        .symbols = k->symbols, .n_symbols = k->n_symbols, .resolve = resolve, .user = k, .units = true};
    names.calls = quantity_calls(&names.n_calls);
    return names;
}

enum err_code scope_parse_failed(const char *what, const char *text, const struct parse_error *where, struct err *e)
{
    (void)err_prepend(e, "%s'%.60s': ", what, text);
    if (where->column) (void)snprintf(e->below, sizeof e->below, "%s\n%s", where->excerpt, where->caret);
    return e->code;
}

/* ---- what stands for them ---- */

/* The unit of ridge and peak: the one that all topics run on, else the linear layers'. */
static enum err_code choose_unit(const struct scope_asker *k, enum hw_dtype *out, const char **note, struct err *e)
{
    const struct quantity_scope *q = &k->scope->quantity;
    TRY(quantity_linear_unit(q, out, e));
    const unsigned linear = 1U << *out;
    const bool open = (k->units | linear) != linear; /* a topic runs on another one */
    const bool one = k->units && (k->units & (k->units - 1)) == 0;
    for (unsigned u = 0; one && u < HW_DTYPES_N; u++)
        if (k->units == 1U << u) *out = (enum hw_dtype)u;
    *note = NULL;
    if (!open) return ERR_OK;
    *note = arena_printf(q->arena, "note: ridge is that of %s, %s", hw_dtype_name(*out),
                         one ? "the unit of the topics" : "the unit of the linear layers");
    return *note ? ERR_OK : err_nomem(e);
}

static enum err_code put_values(struct scope_asker *k, size_t n, const struct sym **e, const char **note,
                                struct err *err)
{
    const struct quantity_scope *q = &k->scope->quantity;
    struct sym_binding env[QUANTITY_NAMED_MAX];
    enum hw_dtype unit;
    *note = NULL;
    for (size_t i = 0; i < k->n_named; i++) {
        const struct quantity_named *x = &k->named[i];
        env[i] = (struct sym_binding){sym_var(q->c, x->name), x->value};
        if (!occurs_any(k->scope, n, e, env[i].var)) continue;
        const bool ridge = strcmp(x->name, "ridge") == 0, peak = strcmp(x->name, "peak") == 0;
        if (ridge || peak) {
            TRY(choose_unit(k, &unit, note, err));
            env[i].value = ridge ? quantity_ridge(q, unit) : q->rates.peak[unit];
        }
        if (strcmp(x->name, "decode_step") == 0 || strcmp(x->name, "throughput") == 0) k->decodes = true;
        if (strcmp(x->name, "resident_bytes") == 0) k->resides = true;
        if (q->free && occurs(k->scope, env[i].value, q->free)) k->kinds = UINT64_MAX;
    }
    for (size_t i = 0; i < n; i++) e[i] = sym_bind(q->c, e[i], env, k->n_named);
    return sym_check(q->c, err);
}

/* A size that stands in the expressions and has no one number. */
static enum err_code refuse_sizes(const struct scope_asker *k, size_t n, const struct sym *const *e, struct err *err)
{
    const struct quantity_scope *q = &k->scope->quantity;
    struct sizes all[SIZES_SYMBOLS];
    size_t sizes = 0;
    const uint64_t chosen = q->layer < 0 ? UINT64_MAX : UINT64_C(1) << q->layer;
    if (q->model) TRY(sizes_all(q, chosen, all, &sizes, err));
    for (size_t i = 0; i < sizes; i++) {
        struct sizes *z = &all[i];
        const bool free = z->var == q->free;
        if (!occurs_any(k->scope, n, e, z->var)) continue;
        if (free) TRY(sizes_of(q, z->var, chosen & k->kinds, z, err)); /* of what it stands in */
        if (free && z->n < 2) continue;
        const char *text = sizes_text(q, z, false);
        if (!text) return err_nomem(err);
        if (z->n == 0) return err_set(err, ERR_USAGE, "%s has no %s", q->model->name, sym_name(z->var));
        return err_set(err, ERR_USAGE, "%s of %s is several numbers: %s; choose with --layer%s", sym_name(z->var),
                       q->model->name, text, free ? ", or name quantities of one kind of layer" : "");
    }
    return ERR_OK;
}

/* "flops" alone, which is of no topic. */
static enum err_code refuse_calls(const struct scope_asker *k, size_t n, const struct sym *const *e, struct err *err)
{
    size_t calls;
    const char *const *call = quantity_calls(&calls);
    for (size_t i = 0; i < calls; i++)
        if (!is_named(k, call[i]) && occurs_any(k->scope, n, e, sym_var(k->scope->quantity.c, call[i])))
            return err_set(err, ERR_USAGE, "%s of what? %s(TOPIC), such as %s(mlp); ridge explain lists topics",
                           call[i], call[i], call[i]);
    return ERR_OK;
}

enum err_code scope_settle(struct scope_asker *k, size_t n, const struct sym **e, const char **note, struct err *err)
{
    const struct scope *s = k->scope;
    const struct quantity_scope *q = &s->quantity;
    TRY(refuse_calls(k, n, e, err));
    TRY(put_values(k, n, e, note, err));
    TRY(refuse_sizes(k, n, e, err));
    if (s->tokens && s->phase != QUANTITY_DECODE && !k->decodes)
        return err_set(err, ERR_USAGE, "--tokens are those of a decode step, and none is named");
    if (q->model && q->model->towerless && !k->resides)
        return err_set(err, ERR_USAGE, "--no-towers is of resident_bytes, which is not named");
    if (q->free && !occurs_any(s, n, e, q->free))
        return err_set(err, ERR_USAGE, "--for %s: it does not occur in what the two sides come to", sym_name(q->free));
    return ERR_OK;
}

/* ---- limits ---- */

enum err_code scope_limits(const struct scope_asker *k, int64_t context, struct scope_limits *out, struct err *e)
{
    const struct scope *s = k->scope;
    const struct quantity_scope *q = &s->quantity;
    const struct cost_symbols *y = &q->y;
    const struct {
        const struct sym *var, *limit;
        bool above;
    } rules[] = {{y->k, y->E, true}, {y->E, y->k, false}, {y->K, y->N, true}, {y->N, y->K, false}};
    struct scope_limits l = {(double)NAN, (double)NAN, ""};
    const uint64_t kinds = q->layer >= 0 ? UINT64_C(1) << q->layer : k->kinds ? k->kinds : UINT64_MAX;
    for (size_t i = 0; q->model && i < sizeof rules / sizeof rules[0]; i++) {
        struct sizes z;
        double v;
        if (rules[i].var != q->free) continue;
        TRY(sizes_of(q, rules[i].limit, kinds, &z, e));
        if (z.n != 1 || !sym_constant(z.at[0].whole, &v)) continue;
        *(rules[i].above ? &l.high : &l.low) = v;
        l.text =
            arena_printf(q->arena, "%s %s = %.15g", rules[i].above ? "up to" : "from", sym_name(rules[i].limit), v);
    }
    if (q->free == y->S && q->model && model_positions(q->model) > 0) {
        l.high = (double)model_positions(q->model);
        l.text = arena_printf(q->arena, "up to %.15g (its learned position table)", l.high);
    }
    if (q->free == y->S && s->tokens > 1) l.low = (double)s->tokens;
    if (q->free == y->S && s->tokens > 1 && isnan(l.high))
        l.text = arena_printf(q->arena, "from the %lld new tokens", (long long)s->tokens);
    if (q->free == y->T && context) {
        l.high = (double)context;
        l.text = arena_printf(q->arena, "up to S = %lld", (long long)context);
    }
    if (!l.text) return err_nomem(e);
    *out = l;
    return ERR_OK;
}

/* "--context for S": an option and the symbols that it would give values to; appended to text, NULL none so far. */
static const char *missing(const struct scope_asker *k, const char *option, size_t n_vars,
                           const struct sym *const *vars, const char *text)
{
    struct arena *a = k->scope->quantity.arena;
    const char *names = NULL;
    for (size_t i = 0; i < n_vars; i++)
        names = names ? arena_printf(a, "%s, %s", names, sym_name(vars[i])) : sym_name(vars[i]);
    if (!names) return text;
    return text ? arena_printf(a, "%s; %s for %s", text, option, names) : arena_printf(a, "%s for %s", option, names);
}

const char *scope_missing(const struct scope_asker *k, size_t n, const struct sym *const *e, const struct sym *var)
{
    const struct quantity_scope *q = &k->scope->quantity;
    const struct rates names = rates_make(q->c);
    const struct sym *const work[] = {q->y.B, q->y.S, q->y.T}, *const all[] = {
#define X(field, text_, meaning_) q->y.field,
                                                                   COST_SYMBOLS(X)
#undef X
                                                               };
    static const char *const OPTIONS[] = {"--batch", "--context", "--phase"};
    enum { SIZES = sizeof all / sizeof all[0] };
    const struct sym *sizes[SIZES], *rates[RATES_N];
    size_t n_sizes = 0, n_rates = 0;
    const char *text = NULL, *meaning;
    for (size_t i = 0; i < SIZES; i++)
        if (all[i] != work[0] && all[i] != work[1] && all[i] != work[2] && all[i] != var &&
            occurs_any(k->scope, n, e, all[i]))
            sizes[n_sizes++] = all[i];
    for (size_t i = 0; i < RATES_N; i++) {
        const struct sym *x = rates_list(&names, i, &meaning);
        if (x != var && occurs_any(k->scope, n, e, x)) rates[n_rates++] = x;
    }
    for (size_t i = 0; i < 3; i++)
        if (work[i] != var) text = missing(k, OPTIONS[i], occurs_any(k->scope, n, e, work[i]), &work[i], text);
    text = missing(k, "-m", n_sizes, sizes, text);
    return missing(k, "-g", n_rates, rates, text);
}
