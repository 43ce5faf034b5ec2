/* checkpoint_names -- whether the matrices of a checkpoint are those of the model that its config describes. Norms,
 * biases, states and towers are left alone: their names are not among those of the families. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/checkpoint.h"
#include "calc/model/family.h"
#include "calc/model/modules.h"

enum { NAME_CAP = 192 };

/* A tensor's layer and what its module is called there; false: it is of no layer, or no matrix. */
static bool read_name(const struct tensor *t, const char *trunk, int64_t *layer, char called[NAME_CAP])
{
    static const char *const TAILS[] = {".weight", ".qweight", ".weight_packed", "_blocks"};
    const size_t n = strlen(trunk);
    const char *at = t->name;
    char *end;
    while ((at = strstr(at, trunk)) != NULL && !((at == t->name || at[-1] == '.') && at[n] == '.')) at++;
    if (!at || at[n + 1] < '0' || at[n + 1] > '9') return false;
    const long number = strtol(at + n + 1, &end, 10);
    const size_t len = *end == '.' ? strlen(end + 1) : 0;
    if (len == 0 || len >= NAME_CAP || number == LONG_MAX) return false;
    *layer = number;
    memcpy(called, end + 1, len + 1);
    for (size_t i = 0; i < sizeof TAILS / sizeof TAILS[0]; i++) {
        const size_t tail = strlen(TAILS[i]);
        if (len <= tail || strcmp(called + len - tail, TAILS[i]) != 0) continue;
        called[len - tail] = '\0';
        return true;
    }
    return t->dims == 3; /* experts of a layer in one tensor have no further name */
}

/* Which of m's kinds have a matrix of that name. */
static bool kind_has(const struct family *f, const struct layer_kind *k, const char *called)
{
    for (enum module u = MODULE_Q; u < MODULES; u++)
        if (module_present(k, u) && module_called(f, k, u, called)) return true;
    return false;
}

struct tally {
    size_t here, elsewhere, beyond; /* where m has it; in another layer; behind the last one */
    const char *odd;                /* the first one elsewhere */
};

static void tally_tensor(const struct model *m, const struct family *f, const struct tensor *x, struct tally *t)
{
    char called[NAME_CAP];
    int64_t layer;
    bool some = false, here = false;
    if (x->dims < 2 || !read_name(x, f && f->trunk ? f->trunk : "layers", &layer, called)) return;
    const char *expert = strstr(called, "experts.");
    if (expert && expert[8] >= '1' && expert[8] <= '9') return; /* as number 0 */
    for (size_t i = 0; i < m->kinds_n && !some; i++) some = kind_has(f, &m->kinds[i], called);
    if (!some || strstr(x->name, "vis") || strstr(x->name, "audio") || strstr(x->name, "mtp")) return;
    if (layer >= module_layers(m)) {
        t->beyond += layer >= m->layers + m->mtp.modules * m->mtp.layers;
        t->here += layer < m->layers + m->mtp.modules * m->mtp.layers;
        return;
    }
    for (size_t i = 0; i < m->order_n && !here; i++)
        here = m->order[i].layer == layer && kind_has(f, &m->kinds[m->order[i].kind], called);
    t->here += here;
    t->elsewhere += !here;
    if (!here && !t->odd) t->odd = x->name;
}

/* Whether all matrices of the model have names here: else a checkpoint may hold it under others. */
static bool named(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (!module_covers(family_named(m->family), &m->kinds[i])) return false;
    return m->order != NULL;
}

enum err_code checkpoint_names(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e)
{
    const struct family *f = family_named(m->family);
    struct tally t = {0};
    char clean[96] = "";
    const char *text = NULL;
    if (!named(m)) return ERR_OK;
    for (size_t i = 0; i < s->n; i++) tally_tensor(m, f, &s->tensors[i], &t);
    if (t.odd) text_clean(clean, sizeof clean, t.odd, strlen(t.odd));
    if (t.here + t.elsewhere + t.beyond == 0)
        text =
            s->n == 0 ? "the checkpoint holds no tensors"
            : s->n == 1
                ? "the checkpoint's one tensor is no matrix that the config describes"
                : arena_printf(a, "none of the checkpoint's %zu tensors is a matrix that the config describes", s->n);
    else if (t.elsewhere > 0)
        text = arena_printf(a,
                            "of the checkpoint's matrices %zu stand in layers where the config has none of that name, "
                            "such as %s",
                            t.elsewhere, clean);
    else if (t.beyond > 0)
        text =
            arena_printf(a, "of the checkpoint's matrices %zu are of layers behind the last one of the config (%lld)",
                         t.beyond, (long long)module_layers(m) - 1);
    else
        return ERR_OK;
    if (text && m->notes) text = arena_printf(a, "%s; %s", m->notes, text);
    m->notes = text;
    return text ? ERR_OK : err_nomem(e);
}
