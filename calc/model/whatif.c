#include "calc/model/whatif.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calc/base/hash.h"
#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/model/reader.h"
#include "calc/model/stored.h"
#include "calc/model/whatif_change.h"

enum { WIDTH_MAX = 1 << 24, HEADS_MAX = 1 << 16 };

/* ---- number formats ---- */

static enum err_code change_weights(struct change *c)
{
    if (stored_set_all(c->m, c->value, c->e) == ERR_OK) return ERR_OK;
    return err_prepend(c->e, "what-if %.60s: ", c->text);
}

static enum err_code set_format(struct change *c, struct dtype *out)
{
    if (dtype_find(c->value, out, c->e) == ERR_OK) return ERR_OK;
    return err_prepend(c->e, "what-if %.60s: ", c->text);
}

static bool has_state(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].mixer.kind == MIXER_RECURRENT) return true;
    return false;
}

static enum err_code change_kv(struct change *c)
{
    if (!stored_has_cache(c->m) && !model_passes_whole(c->m))
        return change_refuse(c, "no layer attends, so there is no cache and nothing would change");
    if (model_passes_whole(c->m))
        return change_refuse(c, "every pass takes the whole sequence, so there is no cache and nothing would change");
    if (stored_set_cache(c->m, c->value, c->e) == ERR_OK) return ERR_OK;
    return err_prepend(c->e, "what-if %.60s: ", c->text);
}

static enum err_code change_state(struct change *c)
{
    struct dtype d;
    TRY(set_format(c, &d));
    if (d.bits < 16) return change_refuse(c, "recurrent states are kept in fp32, bf16 or fp16");
    if (!has_state(c->m))
        return change_refuse(c, "no layer is recurrent, so there is no state and nothing would change");
    bool matrices = false;
    for (size_t i = 0; i < c->m->kinds_n; i++) {
        const struct mixer *x = &c->m->kinds[i].mixer;
        matrices = matrices || (x->kind == MIXER_RECURRENT && x->recurrence.block != RECURRENT_CONV);
    }
    if (!matrices)
        return change_refuse(c, "its layers keep columns of convolutions alone, in the format of activations "
                                "(activations=FORMAT)");
    c->m->state = d;
    return ERR_OK;
}

static enum err_code change_activations(struct change *c) { return set_format(c, &c->m->activations); }

/* ---- pruning ---- */

static enum err_code change_layers(struct change *c)
{
    int64_t n;
    if (c->layers_n != (size_t)c->m->layers)
        return change_refuse(c, "layers of this model run blocks that others run too, so none can be left out alone");
    TRY(change_whole(c, LAYERS_MAX, &n));
    if ((size_t)n > c->layers_n)
        return change_refuse(c, "the model has %zu layers, and layers can only be left out (--set L=%lld adds some)",
                             c->layers_n, (long long)n);
    c->layers_n = (size_t)n;
    c->m->layers = n;
    return ERR_OK;
}

static enum err_code change_ffn(struct change *c)
{
    int64_t width;
    bool any = false;
    TRY(change_whole(c, WIDTH_MAX, &width));
    for (size_t i = 0; i < c->layers_n; i++) {
        struct ffn *f = &c->layer[i].ffn;
        if (f->kind == FFN_MOE)
            return change_refuse(c, "the model has experts: change their width by --set with the key of its config");
        if (f->kind == FFN_NONE) continue;
        any = true;
        f->width = width;
    }
    return any ? ERR_OK : change_refuse(c, "the model has no MLP");
}

/* Widths of heads, MLPs and latents stay. */
static enum err_code change_hidden(struct change *c) { return change_whole(c, WIDTH_MAX, &c->m->hidden); }

static enum err_code change_heads(struct change *c)
{
    int64_t n;
    bool any = false;
    TRY(change_whole(c, HEADS_MAX, &n));
    for (size_t i = 0; i < c->layers_n; i++) {
        struct mixer *x = &c->layer[i].mixer;
        if (x->kind != MIXER_ATTENTION && x->kind != MIXER_LATENT) continue;
        any = true;
        if (x->kind == MIXER_LATENT || x->kv_heads == x->heads) x->kv_heads = n;
        if (n % x->kv_heads != 0)
            return change_refuse(c, "%lld query heads are not a multiple of the model's %lld KV heads (gqa=... first)",
                                 (long long)n, (long long)x->kv_heads);
        x->heads = n;
    }
    return any ? ERR_OK : change_refuse(c, "the model has no attention");
}

/* ---- the table ---- */

/* What a value says by itself. */
static enum err_code check_count(struct change *c)
{
    int64_t n;
    return change_whole(c, WIDTH_MAX, &n);
}

static enum err_code check_part(struct change *c)
{
    struct part part;
    return change_read_part(c, c->value, &part);
}

static enum err_code check_format(struct change *c)
{
    struct dtype d;
    return set_format(c, &d);
}

static enum err_code check_state(struct change *c)
{
    struct dtype d;
    TRY(set_format(c, &d));
    return d.bits < 16 ? change_refuse(c, "recurrent states are kept in fp32, bf16 or fp16") : ERR_OK;
}

static const struct whatif TABLE[] = {
    {"gqa", "N", "N KV heads, each for an equal group of query heads (arXiv 2305.13245)", WHATIF_LAYERS,
     change_kv_heads, check_count},
    {"mqa", NULL, "one KV head for all query heads (arXiv 1911.02150)", WHATIF_LAYERS, change_multi_query, NULL},
    {"mha", NULL, "a KV head for every query head", WHATIF_LAYERS, change_multi_head, NULL},
    {"mla", "C+R[:Q]",
     "latent attention: C + R elements cached a token and layer, queries through a latent of Q (arXiv 2405.04434)",
     WHATIF_LAYERS, change_latent, change_check_ranks},
    {"cla", "N",
     "N successive layers with caches of one shape share the keys and values of the first (arXiv 2405.12981)",
     WHATIF_LAYERS, change_across_layers, check_count},
    {"window", "W[:a/b]|none",
     "a of every b attention layers see the last W tokens, the last b - a of each b see all; W alone: every layer",
     WHATIF_LAYERS, change_window, change_check_window},
    {"ssm", "a/b",
     "a of every b attention layers become Mamba-2 mixers twice as wide as the model, states of 128 (arXiv 2405.21060)",
     WHATIF_LAYERS, change_state_space, check_part},
    {"linear", "a/b",
     "a of every b attention layers become linear attention of the same heads with a fixed decay (arXiv 2501.08313)",
     WHATIF_LAYERS, change_linear, check_part},
    {"poles", "N", "filters of long convolutions become sums of N complex poles a channel (arXiv 2310.18780)",
     WHATIF_LAYERS, change_poles, check_count},
    {"layers", "N", "the first N layers (depth pruning)", WHATIF_LAYERS, change_layers, check_count},
    {"hidden", "N", "model width; heads, head widths and the MLP stay (width pruning, arXiv 2407.14679)", WHATIF_LAYERS,
     change_hidden, check_count},
    {"ffn", "N", "width of the MLP", WHATIF_LAYERS, change_ffn, check_count},
    {"heads", "N", "query heads; KV heads stay, or are as many where they were", WHATIF_LAYERS, change_heads,
     check_count},
    {"weights", "FORMAT", "number format of the linear layers (ridge list dtypes)", WHATIF_WEIGHTS, change_weights,
     check_format},
    {"kv", "FORMAT", "number format of the cache", WHATIF_CACHE, change_kv, check_format},
    {"state", "FORMAT", "number format of recurrent states: fp32, bf16 or fp16", WHATIF_CACHE, change_state,
     check_state},
    {"activations", "FORMAT", "number format of activations", WHATIF_CACHE, change_activations, check_format},
};

enum { TABLE_N = sizeof TABLE / sizeof TABLE[0] };

const struct whatif *whatif_table(size_t *n)
{
    *n = TABLE_N;
    return TABLE;
}

/* ---- helpers of the changes ---- */

enum err_code change_refuse(const struct change *c, const char *fmt, ...)
{
    char why[512], clean[80];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return err_set(c->e, ERR_USAGE, "what-if %s: %s", text_clean(clean, sizeof clean, c->text, strlen(c->text)), why);
}

enum err_code change_whole(const struct change *c, int64_t hi, int64_t *out)
{
    if (units_parse_count(c->value, 1, hi, out, c->e) == ERR_OK) return ERR_OK;
    return err_prepend(c->e, "what-if %.60s: ", c->text);
}

enum err_code change_owned(const struct change *c)
{
    for (size_t i = 0; i < c->layers_n; i++)
        if (c->layer[i].borrowed)
            return change_refuse(c, "layers run the weights of others, so they cannot differ from them");
    return ERR_OK;
}

enum err_code change_read_part(const struct change *c, const char *text, struct part *out)
{
    const char *slash = strchr(text, '/');
    const char *some = slash ? arena_strndup(c->arena, text, (size_t)(slash - text)) : text;
    if (!some) return err_nomem(c->e);
    if (!slash || units_parse_count(slash + 1, 1, LAYERS_MAX, &out->of, NULL) != ERR_OK ||
        units_parse_count(some, 1, out->of, &out->some, NULL) != ERR_OK)
        return change_refuse(c, "'%.20s' is no part of the layers such as 5/6", text);
    return ERR_OK;
}

enum err_code change_part(const struct change *c, const char *text, struct part *out)
{
    int64_t attending = 0;
    TRY(change_owned(c));
    for (size_t i = 0; i < c->layers_n; i++)
        attending += c->layer[i].mixer.kind == MIXER_ATTENTION || c->layer[i].mixer.kind == MIXER_LATENT;
    TRY(change_read_part(c, text, out));
    if (attending == 0) return change_refuse(c, "the model has no attention");
    if (out->of > attending)
        return change_refuse(c, "only %lld layer%s, fewer than one period of %lld", (long long)attending,
                             attending == 1 ? " attends" : "s attend", (long long)out->of);
    return ERR_OK;
}

enum err_code change_attending(const struct change *c, bool everywhere, int64_t *out)
{
    bool latent = false;
    *out = 0;
    for (size_t i = 0; i < c->layers_n; i++) {
        *out += c->layer[i].mixer.kind == MIXER_ATTENTION;
        latent = latent || c->layer[i].mixer.kind == MIXER_LATENT;
    }
    if (latent && (everywhere || *out == 0))
        return change_refuse(c, "the model has latent attention, which caches no keys and values of heads");
    return *out > 0 ? ERR_OK : change_refuse(c, "the model has no attention");
}

enum err_code change_unshared(const struct change *c, const char *what)
{
    for (size_t i = 0; i < c->layers_n; i++)
        if (c->layer[i].mixer.shares_kv)
            return change_refuse(c,
                                 "layers attend to the cache of an earlier layer, and %s could part the two "
                                 "(cla=... goes last)",
                                 what);
    return ERR_OK;
}

/* ---- applying ---- */

/* Layers one by one, in the order they run. */
static enum err_code take_apart(struct change *c, const struct model *m)
{
    size_t n = m->order ? m->order_n : 0;
    for (size_t i = 0; i < m->kinds_n && !m->order; i++) n += (size_t)m->kinds[i].count;
    c->layer = arena_array(c->arena, n ? n : 1, sizeof *c->layer);
    if (!c->layer) return err_nomem(c->e);
    for (size_t i = 0; i < m->order_n && m->order; i++)
        memcpy(&c->layer[c->layers_n++], &m->kinds[m->order[i].kind], sizeof *c->layer);
    for (size_t i = 0; i < m->kinds_n && !m->order; i++)
        for (int64_t k = 0; k < m->kinds[i].count; k++)
            memcpy(&c->layer[c->layers_n++], &m->kinds[i], sizeof *c->layer);
    return ERR_OK;
}

static enum err_code put_together(struct change *c)
{
    struct model *m = c->m;
    m->kinds = NULL;
    m->order = NULL;
    m->kinds_n = m->order_n = m->whole_kinds_n = 0;
    for (size_t i = 0; i < c->layers_n; i++) TRY(reader_count_kind(c->arena, m, (int64_t)i, &c->layer[i], c->e));
    m->attention = reader_attention_text(c->arena, m);
    return m->attention ? ERR_OK : err_nomem(c->e);
}

/* Kinds of its own for a model whose formats change. */
static enum err_code own_kinds(struct change *c)
{
    const struct layer_kind *from = c->m->kinds;
    c->m->kinds = arena_array(c->arena, c->m->kinds_n, sizeof *from);
    if (!c->m->kinds) return err_nomem(c->e);
    memcpy(c->m->kinds, from, c->m->kinds_n * sizeof *from);
    return ERR_OK;
}

static enum err_code rename_model(struct change *c, bool weights_kept)
{
    struct model *m = c->m;
    m->name = arena_printf(c->arena, "%s %s", m->name, c->text);
    if (!m->name) return err_nomem(c->e);
    uint64_t h = hash_start();
    h = hash_more(h, m->hash, strlen(m->hash));
    h = hash_more(h, c->text, strlen(c->text));
    (void)hash_text(m->hash, h);
    if (!weights_kept) m->stored_bytes = m->stored_elems = (double)NAN;
    return ERR_OK;
}

static enum err_code find_row(const char *text, size_t name_len, const struct whatif **out, struct err *e)
{
    char near[200], clean[64], name[32] = "";
    if (name_len < sizeof name) memcpy(name, text, name_len);
    for (size_t i = 0; i < TABLE_N; i++) {
        *out = &TABLE[i];
        if (strcmp(TABLE[i].name, name) == 0) return ERR_OK;
    }
    text_suggest(near, sizeof near, name, &TABLE->name, sizeof TABLE[0], TABLE_N);
    return err_set(e, ERR_USAGE, "no what-if '%s' (ridge list what-ifs)%s",
                   text_clean(clean, sizeof clean, text, name_len), near);
}

static enum err_code note_restated(struct arena *a, struct model *m, const char *text, struct err *e)
{
    char clean[80];
    m->notes = arena_printf(a, "%s%swhat-if %s changes nothing: the model has it already", m->notes ? m->notes : "",
                            m->notes ? "; " : "", text_clean(clean, sizeof clean, text, strlen(text)));
    return m->notes ? ERR_OK : err_nomem(e);
}

/* The row of a what-if, and its value where it takes one. */
static enum err_code read_change(struct arena *a, const char *text, struct change *out, const struct whatif **row,
                                 struct err *e)
{
    const char *equals = strchr(text, '=');
    TRY(find_row(text, equals ? (size_t)(equals - text) : strlen(text), row, e));
    *out = (struct change){.arena = a, .text = text, .value = equals && equals[1] ? equals + 1 : NULL, .e = e};
    if ((*row)->value && !out->value) return change_refuse(out, "it takes a value: %s=%s", (*row)->name, (*row)->value);
    return !(*row)->value && equals ? change_refuse(out, "it takes no value") : ERR_OK;
}

enum err_code whatif_apply(struct arena *a, struct model *m, const char *text, struct err *e)
{
    const struct whatif *row;
    struct change c;
    TRY(read_change(a, text, &c, &row, e));
    struct model next = *m;
    c.m = &next;
    if (row->extent == WHATIF_LAYERS && m->encoder.layers > 0)
        return change_refuse(&c, "it has an encoder, and which of its halves would change is not described");
    for (size_t i = 0; i < m->kinds_n && row->extent == WHATIF_LAYERS; i++)
        if (m->kinds[i].mixer.one_vector)
            return change_refuse(&c, "keys are the values, and entries stand for several tokens: what it would make of "
                                     "these is not described");
    TRY(row->extent == WHATIF_LAYERS ? take_apart(&c, m) : own_kinds(&c));
    TRY(row->apply(&c));
    if (row->extent == WHATIF_LAYERS) TRY(put_together(&c));
    TRY(rename_model(&c, row->extent == WHATIF_CACHE));
    if (model_same(m, &next)) TRY(note_restated(a, &next, text, e));
    *m = next;
    return ERR_OK;
}

/* Characters of the first what-if of a stack. */
static size_t first_of(const char *stack)
{
    size_t n = 0;
    while (stack[n] && stack[n] != ',' && !(stack[n] == '+' && (isalpha((unsigned char)stack[n + 1]) || !stack[n + 1])))
        n++;
    return n;
}

const char *whatif_given(struct arena *a, const char *stack, const char *name)
{
    const char *found = NULL;
    const size_t len = strlen(name);
    for (const char *p = stack; p && *p;) {
        const size_t n = first_of(p);
        if (n > len && strncmp(p, name, len) == 0 && p[len] == '=') found = arena_strndup(a, p + len + 1, n - len - 1);
        p += n + (p[n] != '\0');
    }
    return found;
}

/* m NULL: only checked. */
static enum err_code walk_stack(struct arena *a, struct model *m, const char *stack, struct err *e)
{
    const struct whatif *row;
    struct change c;
    for (const char *p = stack;;) {
        const size_t n = first_of(p);
        if (n == 0) return err_set(e, ERR_USAGE, "an empty what-if in '%.80s'", stack);
        const char *one = arena_strndup(a, p, n);
        if (!one) return err_nomem(e);
        if (m) TRY(whatif_apply(a, m, one, e));
        if (!m) TRY(read_change(a, one, &c, &row, e));
        if (!m && row->check) TRY(row->check(&c));
        if (!p[n]) return ERR_OK;
        p += n + 1;
    }
}

enum err_code whatif_check(struct arena *a, const char *stack, struct err *e) { return walk_stack(a, NULL, stack, e); }

enum err_code whatif_apply_all(struct arena *a, struct model *m, const char *stack, struct err *e)
{
    struct model next = *m;
    TRY(walk_stack(a, &next, stack, e));
    *m = next;
    return ERR_OK;
}
