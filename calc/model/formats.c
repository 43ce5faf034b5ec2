#include "calc/model/formats.h"

#include <string.h>

#include "calc/base/text.h"
#include "calc/model/family.h"

/* ---- rules ---- */

/* Lists name experts one by one: neighbours that differ in the number alone are one rule. */
static struct format_rule *known_rule(struct format_plan *p, const struct format_rule *new)
{
    enum { LOOK_BACK = 32 };
    if (!new->pattern.of_one_expert) return NULL;
    for (size_t i = p->rules_n; i > 0 && i + LOOK_BACK > p->rules_n; i--) {
        struct format_rule *have = &p->rule[i - 1];
        if (have->pattern.of_one_expert &&
            have->format == new->format &&strcmp(have->pattern.text, new->pattern.text) == 0)
            return have;
    }
    return NULL;
}

enum err_code format_plan_add(struct arena *a, struct format_plan *p, const char *pattern, bool regex,
                              const struct dtype *format, struct err *e)
{
    struct format_rule new = {.format = format, .experts = 1};
    TRY(module_pattern_read(a, p->file, pattern, regex, &new.pattern, e));
    if (p->parts) module_pattern_as_part(&new.pattern);
    struct format_rule *same = known_rule(p, &new);
    if (same) {
        same->experts++;
        return ERR_OK;
    }
    if (p->rules_n == p->room) {
        const size_t room = p->room ? 2 * p->room : 16;
        struct format_rule *grown = arena_array(a, room, sizeof *grown);
        if (!grown) return err_nomem(e);
        if (p->rules_n) memcpy(grown, p->rule, p->rules_n * sizeof *grown);
        p->rule = grown;
        p->room = room;
    }
    p->rule[p->rules_n++] = new;
    return ERR_OK;
}

/* ---- which module has what ---- */

struct apply {
    struct arena *arena;
    struct format_plan p;
    struct model *m;
    const struct family *family;       /* whose names modules have */
    const struct format_rule *partial; /* names some experts of a layer, not all */
    /* of each rule and module: 1 + whether it matches, where that does not depend on the layer; 0 not asked yet */
    uint8_t *memo;
};

static bool matches(struct apply *w, size_t i, int64_t layer, const struct layer_kind *k, enum module module)
{
    const struct module_pattern *p = &w->p.rule[i].pattern;
    const bool halves = w->family && w->family->halves; /* which differ in their names */
    if (p->kind != PATTERN_REGEX || p->by_layer || halves)
        return module_pattern_matches(p, w->family, layer, k, module);
    uint8_t *known = &w->memo[i * MODULES + module];
    if (!*known) *known = module_pattern_matches(p, w->family, layer, k, module) ? 2 : 1;
    return *known == 2;
}

/* The format of a module; NULL floats. */
static const struct dtype *format_of(struct apply *w, int64_t layer, const struct layer_kind *k, enum module module)
{
    const bool apart = module >= MODULE_ROUTER || (w->family && w->family->latent_float &&
                                                   (module == MODULE_LATENT_DOWN || module == MODULE_LATENT_UP));
    const struct dtype *found = apart ? w->p.elsewhere : w->p.linear;
    bool first = true;
    for (size_t i = 0; i < w->p.rules_n; i++) {
        struct format_rule *r = &w->p.rule[i];
        if (!matches(w, i, layer, k, module)) continue;
        r->used = true;
        if (r->pattern.of_one_expert && r->experts != k->ffn.experts) w->partial = r;
        if (first) found = r->format;
        first = false;
    }
    return found;
}

static const struct dtype *format_of_end(struct apply *w, const struct dtype *usual,
                                         bool (*named)(const struct module_pattern *))
{
    const struct dtype *found = usual;
    bool first = true;
    for (size_t i = 0; i < w->p.rules_n; i++) {
        struct format_rule *r = &w->p.rule[i];
        if (!named(&r->pattern)) continue;
        r->used = true;
        if (first) found = r->format;
        first = false;
    }
    return found;
}

/* ---- layers told apart ---- */

struct variant {
    struct layer_kind kind; /* count: of layers met so far */
    size_t of;              /* kind it was made from */
    const struct dtype **format;
};

/* Formats by module in words: "bf16 and nvfp4" in the order of the modules. */
static const char *words(struct arena *a, const struct variant *v)
{
    const char *said[3] = {NULL, NULL, NULL};
    size_t n = 0;
    for (enum module u = MODULE_Q; u < MODULE_ROUTER; u++) {
        if (!v->format[u] || !module_present(&v->kind, u)) continue;
        bool known = false;
        for (size_t i = 0; i < n; i++) known = known || strcmp(said[i], v->format[u]->name) == 0;
        if (!known && n < 3) said[n++] = v->format[u]->name;
    }
    return n == 0   ? v->kind.label
           : n == 1 ? arena_printf(a, "%s, %s", v->kind.label, said[0])
                    : arena_printf(a, "%s, %s and %s", v->kind.label, said[0], n > 2 ? "others" : said[1]);
}

static size_t find_variant(const struct variant *v, size_t n, size_t of, const struct dtype *const *format)
{
    size_t i = 0;
    while (i < n && (v[i].of != of || memcmp(v[i].format, format, MODULES * sizeof(const struct dtype *)) != 0)) i++;
    return i;
}

/* One format where all matrices of a class have it, else that of most linear layers. */
static void set_classes(struct apply *w, const struct variant *v, size_t n)
{
    struct model *m = w->m;
    for (enum weight_class c = WEIGHT_MIXER; c <= WEIGHT_ROUTER; c++) {
        const struct dtype *only = NULL;
        bool mixed = false;
        for (size_t i = 0; i < n; i++)
            for (enum module u = MODULE_Q; u < MODULES; u++) {
                if (module_class(u) != c || !module_present(&v[i].kind, u)) continue;
                mixed = mixed || (only && only != v[i].format[u]);
                only = v[i].format[u];
            }
        const struct dtype *usual = c == WEIGHT_ROUTER ? w->p.elsewhere : w->p.linear;
        if (only && !mixed) usual = only;
        if (usual) m->weights[c] = *usual;
    }
}

/* Formats of single matrices where they are not those of their class. */
static void set_kinds(struct apply *w, struct variant *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool own = false;
        for (enum module u = MODULE_Q; u < MODULES; u++) {
            const struct dtype *usual = &w->m->weights[module_class(u)];
            if (!module_present(&v[i].kind, u) || dtype_same(v[i].format[u], usual)) v[i].format[u] = NULL;
            own = own || v[i].format[u];
        }
        if (own) v[i].kind.formats = (const struct dtype *const *)v[i].format;
    }
}

/* place: which variant each block is */
static enum err_code split(struct apply *w, struct variant *v, size_t n, const size_t *place, struct err *e)
{
    struct model *m = w->m;
    struct layer_kind *kinds = arena_array(w->arena, n, sizeof *kinds);
    struct layer_place *order = arena_array(w->arena, m->order_n + 1, sizeof *order);
    size_t *index = arena_array(w->arena, n + 1, sizeof *index), to = 0;
    if (!kinds || !order || !index) return err_nomem(e);
    for (size_t i = 0; i < n; i++) { /* said before formats that are their class's are dropped */
        bool alone = true;
        for (size_t k = 0; k < n; k++) alone = alone && (k == i || v[k].of != v[i].of);
        if (!alone) v[i].kind.label = words(w->arena, &v[i]);
        if (!v[i].kind.label) return err_nomem(e);
    }
    set_kinds(w, v, n);
    for (size_t of = 0; of < m->kinds_n; of++)
        for (size_t i = 0; i < n; i++)
            if (v[i].of == of) {
                index[i] = to;
                kinds[to++] = v[i].kind;
            }
    for (size_t i = 0; i < m->order_n; i++) order[i] = (struct layer_place){m->order[i].layer, index[place[i]]};
    m->whole_order = m->order;
    m->order = order;
    m->whole_kinds = m->kinds;
    m->whole_kinds_n = m->kinds_n;
    m->kinds = kinds;
    m->kinds_n = n;
    return ERR_OK;
}

static enum err_code name_pattern(struct apply *w, const struct format_rule *r, const char *why, struct err *e)
{
    char clean[96];
    w->m->weights_unknown =
        arena_printf(w->arena, "%s modules \"%s\", %s",
                     w->p.of_tensors ? "stored in a checkpoint that has" : "its quantisation names",
                     text_clean(clean, sizeof clean, r->pattern.given, strlen(r->pattern.given)), why);
    return w->m->weights_unknown ? ERR_OK : err_nomem(e);
}

/* Patterns that name no matrix leave nothing out: said, since ridge may know a matrix by another name. */
static enum err_code note_unused(struct apply *w, struct err *e)
{
    enum { SAID_MAX = 3 };
    const char *text = NULL;
    size_t n = 0;
    for (size_t i = 0; i < w->p.rules_n; i++) {
        const struct format_rule *r = &w->p.rule[i];
        char clean[96];
        if (r->used || r->format || module_pattern_is_foreign(&r->pattern, w->m)) continue;
        if (++n > SAID_MAX) continue;
        text_clean(clean, sizeof clean, r->pattern.given, strlen(r->pattern.given));
        text = arena_printf(w->arena, "%s%s\"%s\"", text ? text : "", text ? ", " : "", clean);
        if (!text) return err_nomem(e);
    }
    if (n == 0) return ERR_OK;
    if (n > SAID_MAX) text = arena_printf(w->arena, "%s and %zu more", text, n - SAID_MAX);
    w->m->notes =
        arena_printf(w->arena, "%s%sits quantisation leaves out %s, which the model is not known to have: passed over",
                     w->m->notes ? w->m->notes : "", w->m->notes ? "; " : "", text ? text : "");
    return text && w->m->notes ? ERR_OK : err_nomem(e);
}

/* A format for matrices that are not there, or a checkpoint's tensors of another name: its bytes are not known. */
static enum err_code judge(struct apply *w, struct err *e)
{
    if (w->partial) return name_pattern(w, w->partial, "and so some experts of a layer but not all", e);
    for (size_t i = 0; i < w->p.rules_n; i++) {
        const struct format_rule *r = &w->p.rule[i];
        if (!r->used && (r->format || w->p.of_tensors) && !module_pattern_is_foreign(&r->pattern, w->m))
            return name_pattern(w, r, "which are none of those that the model is known to have", e);
    }
    return note_unused(w, e);
}

enum err_code format_plan_apply(struct arena *a, const struct format_plan *p, struct model *m, struct err *e)
{
    enum { VARIANTS_MAX = 256 };
    struct apply w = {.arena = a, .p = *p, .m = m, .family = family_named(m->family)};
    struct dtype *plain = arena_array(a, 2, sizeof *plain); /* of linear layers and of routers */
    struct variant *v = arena_array(a, VARIANTS_MAX, sizeof *v);
    size_t n = 0;
    w.memo = arena_array(a, (p->rules_n + 1) * MODULES, 1);
    size_t *place = arena_array(a, m->order_n + 1, sizeof *place);
    if (!place || !plain || !v || !w.memo) return err_nomem(e);
    plain[0] = m->weights[WEIGHT_OTHER];
    plain[1] = m->weights[WEIGHT_ROUTER];
    for (size_t i = 0; i < m->order_n; i++) {
        const struct layer_place at = m->order[i];
        const struct layer_kind *k = &m->kinds[at.kind];
        const struct dtype **format = arena_array(a, MODULES, sizeof *format);
        if (!format) return err_nomem(e);
        for (enum module u = MODULE_Q; u < MODULES; u++) {
            if (!module_present(k, u)) continue;
            const struct dtype *d = format_of(&w, at.layer, k, u);
            format[u] = d ? d : &plain[u >= MODULE_ROUTER ? 1 : 0];
        }
        const size_t same = find_variant(v, n, at.kind, format);
        if (same == VARIANTS_MAX) {
            m->weights_unknown = "stored in formats that change from layer to layer in too many ways";
            return ERR_OK;
        }
        if (same == n) {
            v[n] = (struct variant){.kind = *k, .of = at.kind, .format = format};
            v[n++].kind.count = 0;
        }
        v[same].kind.count++;
        place[i] = same;
    }
    const struct dtype *head = format_of_end(&w, p->head ? p->head : p->elsewhere, module_pattern_matches_head);
    const struct dtype *embed = format_of_end(&w, p->elsewhere, module_pattern_matches_embed);
    TRY(judge(&w, e));
    if (m->weights_unknown) return ERR_OK;
    if (head) m->weights[WEIGHT_HEAD] = *head;
    if (embed) m->weights[WEIGHT_EMBED] = *embed;
    set_classes(&w, v, n);
    return split(&w, v, n, place, e);
}
