/* The check of units of scope.h: a text is read once more, with what its names are measured in for their values. */
#include <string.h>

#include "calc/cli/scope.h"
#include "calc/sym/dims.h"

/* Calls that are of a topic; params and its like are counts, which people multiply by bytes that they do not write. */
static enum units_kind kind_of_call(const char *call)
{
    static const struct {
        const char *call;
        enum units_kind kind;
    } KINDS[] = {{"flops", UNITS_FLOPS},           {"vector_flops", UNITS_FLOPS},       {"bytes", UNITS_BYTES},
                 {"weight_bytes", UNITS_BYTES},    {"kv_bytes", UNITS_BYTES},           {"state_bytes", UNITS_BYTES},
                 {"time", UNITS_SECONDS},          {"intensity", UNITS_FLOPS_PER_BYTE}, {"params", UNITS_NONE},
                 {"activation_bytes", UNITS_BYTES}};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (strcmp(KINDS[i].call, call) == 0) return KINDS[i].kind;
    return UNITS_NONE;
}

/* Sizes are numbers of anything, but for bytes of an element. */
static enum units_kind kind_of_symbol(const struct scope_asker *k, const char *name)
{
    const struct rates rates = rates_make(k->scope->quantity.c);
    const char *meaning;
    for (size_t i = 0; i < k->n_named; i++)
        if (strcmp(k->named[i].name, name) == 0) return k->named[i].unit == UNITS_COUNT ? UNITS_NONE : k->named[i].unit;
    for (size_t i = 0; i < RATES_N; i++)
        if (strcmp(sym_name(rates_list(&rates, i, &meaning)), name) == 0)
            return i < HW_DTYPES_N ? UNITS_FLOPS_PER_S : UNITS_BYTES_PER_S;
    return strncmp(name, "b_", 2) == 0 ? UNITS_BYTES : UNITS_NONE;
}

struct asked {
    struct sym_ctx *c;
    struct arena *arena;
};

static enum err_code resolve(void *user, const char *name, const char *argument, const struct sym **out, struct err *e)
{
    const struct asked *k = user;
    const char *call = arena_printf(k->arena, "%s(%s", name, argument);
    if (!call) return err_nomem(e);
    *out = sym_dims_leaf(k->c, call, kind_of_call(name));
    return ERR_OK;
}

static enum err_code differ(const char *what, const struct sym_dims *a, const struct sym_dims *b, struct err *e)
{
    char x[SYM_DIMS_TEXT], y[SYM_DIMS_TEXT];
    return err_set(e, ERR_USAGE, "%s: %s beside %s", what, sym_dims_text(a, x), sym_dims_text(b, y));
}

enum err_code scope_dims(const struct scope_asker *k, const char *left, const char *right, struct err *e)
{
    const struct quantity_scope *q = &k->scope->quantity;
    struct asked asked = {q->c, q->arena};
    struct parse_symbol symbols[SCOPE_SYMBOLS];
    struct parse_names names = {
        .symbols = symbols, .n_symbols = k->n_symbols, .resolve = resolve, .user = &asked, .units = true, .dims = true};
    const struct sym *side[2];
    struct sym_dims d[2], one, other;
    struct err unread = {.code = ERR_OK}; /* what cannot be read so, as x/(a - a), says nothing */
    names.calls = quantity_calls(&names.n_calls);
    for (size_t i = 0; i < k->n_symbols; i++)
        symbols[i] = (struct parse_symbol){
            k->symbols[i].text, sym_dims_leaf(q->c, k->symbols[i].text, kind_of_symbol(k, k->symbols[i].text))};
    TRY(sym_check(q->c, e));
    enum err_code code = right
                             ? sym_parse(q->c, left, strlen(left), &names, &side[0], NULL, &unread)
                             : sym_parse_equation(q->c, left, strlen(left), &names, &side[0], &side[1], NULL, &unread);
    if (code == ERR_OK && right) code = sym_parse(q->c, right, strlen(right), &names, &side[1], NULL, &unread);
    if (code == ERR_NOMEM) return err_nomem(e);
    if (code != ERR_OK) return ERR_OK;
    for (size_t i = 0; i < 2; i++)
        if (!sym_dims_of(side[i], &d[i], &one, &other))
            return differ("terms that are not measured in the same", &one, &other, e);
    return sym_dims_agree(&d[0], &d[1]) ? ERR_OK : differ("sides that are not measured in the same", &d[0], &d[1], e);
}
