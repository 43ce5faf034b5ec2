#include "calc/cli/scope.h"

#include <string.h>

enum err_code scope_open(struct arena *a, const struct option_values *v, struct model *model,
                         struct quantity_scope *out, struct err *e)
{
    struct quantity_scope s = {.arena = a, .c = sym_open(a), .course = option_get(v, "course") != NULL};
    if (!s.c) return err_nomem(e);
    s.y = cost_symbols_make(s.c);
    s.conventions =
        (struct cost_conventions){.causal_full = s.course, .embed_full_table = s.course, .norms_uncounted = s.course};
    if (option_get(v, "model")) {
        TRY(model_load(a, option_get(v, "model"), NULL, 0, model, e));
        if (model->weights_unknown) return err_set(e, ERR_INPUT, "%s: %s", model->source, model->weights_unknown);
        s.model = model;
    }
    *out = s;
    return ERR_OK;
}

enum err_code scope_phase(const struct option_values *v, enum quantity_phase *out, struct err *e)
{
    const char *text = option_get(v, "phase");
    static const char *const NAMES[] = {"any", "prefill", "decode"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(NAMES[i], text) == 0) {
            *out = (enum quantity_phase)i;
            return ERR_OK;
        }
    return err_set(e, ERR_USAGE, "--phase is any, prefill or decode, not '%.40s'", text);
}

void scope_asker_make(const struct quantity_scope *s, enum quantity_phase phase, const struct sym *ridge,
                      struct scope_asker *out)
{
    const struct parse_symbol all[] = {
#define X(field, text, meaning) {text, s->y.field},
        COST_SYMBOLS(X)
#undef X
    };
    _Static_assert(sizeof all / sizeof all[0] < sizeof out->symbols / sizeof out->symbols[0], "room for ridge");
    *out = (struct scope_asker){.scope = s, .phase = phase};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) out->symbols[out->n_symbols++] = all[i];
    if (ridge) out->symbols[out->n_symbols++] = (struct parse_symbol){"ridge", ridge};
}

static enum err_code resolve(void *user, const char *name, const char *argument, const struct sym **out, struct err *e)
{
    struct scope_asker *k = user;
    const size_t n = strlen(name);
    for (size_t i = 0; i < k->n_known; i++) {
        const char *call = k->known[i].call;
        if (strncmp(call, name, n) != 0 || call[n] != '(' || strcmp(call + n + 1, argument) != 0) continue;
        *out = k->known[i].value;
        return ERR_OK;
    }
    TRY(quantity_resolve(k->scope, k->phase, name, argument, out, e));
    const char *call = arena_printf(k->scope->arena, "%s(%s", name, argument);
    if (!call) return err_nomem(e);
    if (k->n_known < sizeof k->known / sizeof k->known[0]) k->known[k->n_known++] = (struct scope_answer){call, *out};
    return ERR_OK;
}

struct parse_names scope_names_of(struct scope_asker *k)
{
    struct parse_names names = {.symbols = k->symbols, .n_symbols = k->n_symbols, .resolve = resolve, .user = k};
    names.calls = quantity_calls(&names.n_calls);
    return names;
}
