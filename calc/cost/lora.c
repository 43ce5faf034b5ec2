#include "calc/cost/lora.h"

#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"

static const struct {
    const char *name;
    unsigned module;
} NAMED[] = {{"q", LORA_Q},       {"k", LORA_K},   {"v", LORA_V},       {"o", LORA_O},
             {"gate", LORA_GATE}, {"up", LORA_UP}, {"down", LORA_DOWN}, {"all", LORA_ALL}};

enum { NAMED_N = sizeof NAMED / sizeof NAMED[0], RANK_MAX = 1 << 16, WORD_MAX = 32 };

static enum err_code read_module(const char *at, size_t len, unsigned *modules, struct err *e)
{
    char word[WORD_MAX];
    for (size_t i = 0; i < NAMED_N; i++) {
        const size_t n = strlen(NAMED[i].name);
        const bool suffixed = len == n + 5 && strncmp(at + n, "_proj", 5) == 0;
        if ((len != n && !suffixed) || strncmp(at, NAMED[i].name, n) != 0) continue;
        *modules |= NAMED[i].module;
        return ERR_OK;
    }
    return err_set(e, ERR_USAGE, "no module '%s': q, k, v, o, gate, up, down or all",
                   text_clean(word, sizeof word, at, len));
}

enum err_code lora_parse(const char *text, struct lora *out, struct err *e)
{
    char rank[WORD_MAX] = "";
    const char *colon = strchr(text, ':');
    const size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (len < sizeof rank) memcpy(rank, text, len);
    *out = (struct lora){.modules = colon ? 0 : LORA_Q | LORA_V};
    TRY(units_parse_count(rank, 1, RANK_MAX, &out->rank, e));
    for (const char *at = colon; at;) {
        const char *start = at + 1, *end = start + strcspn(start, ",");
        TRY(read_module(start, (size_t)(end - start), &out->modules, e));
        at = *end ? end : NULL;
    }
    return ERR_OK;
}

static enum err_code refuse(const struct model *m, const char *what, struct err *e)
{
    return err_set(e, ERR_INPUT, "%s: how an adapter of %s is laid out is not described", m->name, what);
}

/* Widths of a chosen matrix, in + out; found gets its bit. */
static double sides(const struct lora *x, unsigned module, int64_t in, int64_t out, unsigned *found)
{
    if (!(x->modules & module)) return 0;
    *found |= module;
    return (double)in + (double)out;
}

static enum err_code of_mixer(const struct model *m, const struct lora *x, const struct mixer *k, double *sum,
                              unsigned *found, struct err *e)
{
    const unsigned attention = LORA_Q | LORA_K | LORA_V | LORA_O;
    if (k->kind == MIXER_NONE || !(x->modules & attention)) return ERR_OK;
    if (k->kind == MIXER_LATENT) return refuse(m, "latent attention", e);
    if (k->kind == MIXER_RECURRENT) return refuse(m, "a recurrent mixer", e);
    if (k->q_rank > 0) return refuse(m, "narrow queries", e);
    const int64_t D = k->doubled_input ? 2 * m->hidden : m->hidden, q = k->heads * k->head_dim;
    const bool own = !k->shares_kv || k->idle_kv;
    *sum += sides(x, LORA_Q, D, k->output_gate && !k->gate_apart ? 2 * q : q, found);
    if (own) *sum += sides(x, LORA_K, D, k->kv_heads * k->head_dim, found);
    if (own && !k->v_is_k) *sum += sides(x, LORA_V, D, k->kv_heads * k->v_head_dim, found);
    *sum += sides(x, LORA_O, k->heads * k->v_head_dim, m->hidden, found);
    return ERR_OK;
}

static enum err_code of_ffn(const struct model *m, const struct lora *x, const struct ffn *f, double *sum,
                            unsigned *found, struct err *e)
{
    if (f->kind == FFN_NONE || !(x->modules & (LORA_GATE | LORA_UP | LORA_DOWN))) return ERR_OK;
    if (f->kind == FFN_MOE) return refuse(m, "routed experts", e);
    if (f->channel_mix || f->residual_unit) return refuse(m, "this MLP", e);
    if (f->gated) *sum += sides(x, LORA_GATE, m->hidden, f->width, found);
    if (!f->gated && (x->modules & LORA_ALL) == LORA_ALL) *found |= LORA_GATE; /* all there are */
    *sum += sides(x, LORA_UP, m->hidden, f->width, found) + sides(x, LORA_DOWN, f->width, m->hidden, found);
    return ERR_OK;
}

enum err_code lora_cost(const struct model *m, const struct lora *x, struct lora_cost *out, struct err *e)
{
    double sum = 0;
    unsigned found = 0;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct layer_kind *k = &m->kinds[i];
        double layer = 0;
        if (k->borrowed) return refuse(m, "layers that share weights", e);
        TRY(of_mixer(m, x, &k->mixer, &layer, &found, e));
        TRY(of_ffn(m, x, &k->ffn, &layer, &found, e));
        sum += (double)k->count * layer;
    }
    for (size_t i = 0; i + 1 < NAMED_N; i++)
        if ((x->modules & NAMED[i].module) && !(found & NAMED[i].module))
            return err_set(e, ERR_INPUT, "%s has no %s_proj for an adapter to stand beside", m->name, NAMED[i].name);
    *out = (struct lora_cost){.params = (double)x->rank * sum, .flops_per_token = 2 * (double)x->rank * sum};
    return ERR_OK;
}
