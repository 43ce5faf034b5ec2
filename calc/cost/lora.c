#include "calc/cost/lora.h"

#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/base/units.h"
#include "calc/model/family.h"

/* As options name them, and checkpoints; no matrix is called all. */
static const struct {
    const char *name, *whole;
    unsigned module;
} NAMED[] = {{"q", "q_proj", LORA_Q},          {"k", "k_proj", LORA_K},
             {"v", "v_proj", LORA_V},          {"o", "o_proj", LORA_O},
             {"gate", "gate_proj", LORA_GATE}, {"up", "up_proj", LORA_UP},
             {"down", "down_proj", LORA_DOWN}, {"q_a", "q_a_proj", LORA_Q_A},
             {"q_b", "q_b_proj", LORA_Q_B},    {"kv_a", "kv_a_proj_with_mqa", LORA_KV_A},
             {"kv_b", "kv_b_proj", LORA_KV_B}, {"all", NULL, LORA_ALL}};

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
    return err_set(e, ERR_USAGE,
                   "no module '%s': q, k, v, o, gate, up, down, of latent attention q_a, q_b, kv_a, kv_b, or all",
                   text_clean(word, sizeof word, at, len));
}

const char *lora_module_name(size_t i, unsigned *bit)
{
    if (i >= NAMED_N || !NAMED[i].whole) return NULL;
    *bit = NAMED[i].module;
    return NAMED[i].whole;
}

int64_t lora_slot_rank(int64_t rank)
{
    static const int64_t RANKS[] = {1, 8, 16, 32, 64, 128, 256, 320, 512};
    for (size_t i = 0; i < sizeof RANKS / sizeof RANKS[0]; i++)
        if (RANKS[i] >= rank) return RANKS[i];
    return rank;
}

enum err_code lora_parse_modules(const char *text, unsigned *out, struct err *e)
{
    *out = 0;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        TRY(read_module(at, n, out, e));
        at += n;
        if (!*at) return ERR_OK;
    }
}

enum err_code lora_parse(const char *text, struct lora *out, struct err *e)
{
    char rank[WORD_MAX] = "";
    const char *colon = strchr(text, ':');
    const size_t len = colon ? (size_t)(colon - text) : strlen(text);
    if (len < sizeof rank) memcpy(rank, text, len);
    *out = (struct lora){.modules = LORA_Q | LORA_V};
    TRY(units_parse_count(rank, 1, RANK_MAX, &out->rank, e));
    return colon ? lora_parse_modules(colon + 1, &out->modules, e) : ERR_OK;
}

static enum err_code refuse(const struct model *m, const char *what, struct err *e)
{
    return err_set(e, ERR_USAGE, "%s: how an adapter of %s is laid out is not described", m->name, what);
}

/* Widths of the chosen matrices, in + out, of all of them and of those that a token passes; bits of what was found. */
struct sides {
    double all, passed;
    unsigned found;
    bool recurrent; /* mixers that have none of them */
};

static void add(struct sides *s, const struct lora *x, unsigned module, int64_t in, int64_t out, int64_t copies,
                int64_t passed)
{
    if (!(x->modules & module)) return;
    s->found |= module;
    s->all += (double)copies * ((double)in + (double)out);
    s->passed += (double)passed * ((double)in + (double)out);
}

static void add_one(struct sides *s, const struct lora *x, unsigned module, int64_t in, int64_t out)
{
    add(s, x, module, in, out, 1, 1);
}

enum {
    ATTENTION = LORA_Q | LORA_K | LORA_V | LORA_O | LORA_Q_A | LORA_Q_B | LORA_KV_A | LORA_KV_B,
    MLP = LORA_GATE | LORA_UP | LORA_DOWN
};

static void of_latent(const struct model *m, const struct lora *x, const struct mixer *k, struct sides *s)
{
    const int64_t q = k->heads * (k->head_dim + k->rope_dim);
    if (k->q_rank > 0) {
        add_one(s, x, LORA_Q_A, m->hidden, k->q_rank);
        add_one(s, x, LORA_Q_B, k->q_rank, q);
    } else {
        add_one(s, x, LORA_Q, m->hidden, q);
    }
    add_one(s, x, LORA_KV_A, m->hidden, k->kv_rank + k->rope_dim);
    add_one(s, x, LORA_KV_B, k->kv_rank, k->heads * (k->head_dim + k->v_head_dim));
    add_one(s, x, LORA_O, k->heads * k->v_head_dim, m->hidden);
}

/* Modules whose names matrices of a recurrent mixer have too, by what the family calls them; linear attention, where
 * the family says nothing of it, calls its own as attention does. */
static unsigned recurrent_modules(const struct model *m, const struct mixer *k)
{
    const struct family *f = family_named(m->family);
    static const unsigned ATTENTION_OF[] = {
        [MODULE_Q] = LORA_Q, [MODULE_K] = LORA_K, [MODULE_V] = LORA_V, [MODULE_O] = LORA_O};
    unsigned named = 0, bit = 0;
    bool says = false;
    for (const struct family_module *x = f ? f->modules : NULL; x && x->name; x++) {
        if (x->module != MODULE_STATE_IN && x->module != MODULE_STATE_OUT && x->module != MODULE_STATE_GATE) continue;
        const char *dot = strrchr(x->name, '.'), *last = dot ? dot + 1 : x->name, *name;
        for (size_t i = 0; (name = lora_module_name(i, &bit)) != NULL; i++)
            if (strcmp(last, name) == 0) named |= bit;
        for (const struct family_module *y = f->modules; y->name; y++)
            if (y->module <= MODULE_O && strcmp(x->name, y->name) == 0) named |= ATTENTION_OF[y->module];
        says = true;
    }
    return says || k->recurrence.block != RECURRENT_LINEAR ? named : LORA_Q | LORA_K | LORA_V | LORA_O;
}

static enum err_code of_mixer(const struct model *m, const struct lora *x, const struct mixer *k, struct sides *s,
                              struct err *e)
{
    if (k->kind == MIXER_NONE || !(x->modules & ATTENTION)) return ERR_OK;
    if (k->kind == MIXER_RECURRENT) {
        s->recurrent = true;
        return x->modules & recurrent_modules(m, k) ? refuse(m, "a recurrent mixer", e) : ERR_OK;
    }
    if (k->kind == MIXER_LATENT && k->one_vector) return refuse(m, "attention to entries of several tokens", e);
    if (k->kind == MIXER_LATENT) {
        of_latent(m, x, k, s);
        return ERR_OK;
    }
    if (k->q_rank > 0) return refuse(m, "narrow queries", e);
    const int64_t D = k->doubled_input ? 2 * m->hidden : m->hidden, q = k->heads * k->head_dim;
    const bool own = !k->shares_kv || k->idle_kv;
    add_one(s, x, LORA_Q, D, k->output_gate && !k->gate_apart ? 2 * q : q);
    if (own) add_one(s, x, LORA_K, D, k->kv_heads * k->head_dim);
    if (own && !k->v_is_k) add_one(s, x, LORA_V, D, k->kv_heads * k->v_head_dim);
    add_one(s, x, LORA_O, k->heads * k->v_head_dim, m->hidden);
    return ERR_OK;
}

static void of_mlp(const struct model *m, const struct lora *x, bool gated, int64_t width, int64_t copies,
                   int64_t passed, struct sides *s)
{
    if (gated) add(s, x, LORA_GATE, m->hidden, width, copies, passed);
    add(s, x, LORA_UP, m->hidden, width, copies, passed);
    add(s, x, LORA_DOWN, width, m->hidden, copies, passed);
}

static enum err_code of_ffn(const struct model *m, const struct lora *x, const struct ffn *f, struct sides *s,
                            struct err *e)
{
    if (f->kind == FFN_NONE || !(x->modules & MLP)) return ERR_OK;
    if (f->channel_mix || f->residual_unit) return refuse(m, "this MLP", e);
    if (f->latent_width > 0) return refuse(m, "experts in a latent", e);
    if (f->kind == FFN_DENSE) of_mlp(m, x, f->gated, f->width, 1, 1, s);
    if (f->kind == FFN_MOE) of_mlp(m, x, f->gated, f->width, f->experts, f->experts_per_token, s);
    if (f->kind == FFN_MOE && f->shared_width > 0) of_mlp(m, x, f->gated, f->shared_width, 1, 1, s);
    return ERR_OK;
}

/* All matrices there are, or each that was named. */
static enum err_code check_found(const struct model *m, unsigned asked, unsigned found, struct err *e)
{
    if (asked == LORA_ALL && found) return ERR_OK;
    for (size_t i = 0; i + 1 < NAMED_N; i++)
        if ((asked & NAMED[i].module) && !(found & NAMED[i].module))
            return err_set(e, ERR_USAGE, "%s has no %s_proj for an adapter to stand beside", m->name, NAMED[i].name);
    return ERR_OK;
}

enum err_code lora_cost(const struct model *m, const struct lora *x, struct lora_cost *out, struct err *e)
{
    double all = 0, passed = 0;
    unsigned found = 0;
    bool recurrent = false;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct layer_kind *k = &m->kinds[i];
        struct sides layer = {0, 0, 0, false};
        if (k->borrowed) return refuse(m, "layers that share weights", e);
        TRY(of_mixer(m, x, &k->mixer, &layer, e));
        TRY(of_ffn(m, x, &k->ffn, &layer, e));
        all += (double)k->count * layer.all;
        passed += (double)k->count * layer.passed;
        found |= layer.found;
        recurrent = recurrent || layer.recurrent;
    }
    if (recurrent && (x->modules == LORA_ALL || !(found & ATTENTION))) return refuse(m, "a recurrent mixer", e);
    TRY(check_found(m, x->modules, found, e));
    *out = (struct lora_cost){.params = (double)x->rank * all, .flops_per_token = 2 * (double)x->rank * passed};
    return ERR_OK;
}

/* What of a layer has products that no engine's slots are described for; NULL: nothing. */
static const char *undescribed(const struct layer_kind *k)
{
    const struct mixer *x = &k->mixer;
    const struct ffn *f = &k->ffn;
    if (k->borrowed) return "layers that share weights";
    if (x->kind == MIXER_RECURRENT) return "a recurrent mixer";
    if (x->kind == MIXER_LATENT && x->one_vector) return "attention to entries of several tokens";
    if (x->index_heads > 0) return "an indexer";
    if (x->kind == MIXER_ATTENTION && x->q_rank > 0) return "narrow queries";
    if (x->shares_kv || x->v_is_k) return "keys that are another's";
    if (x->head_gate || x->doubled_input || x->adapter_rank > 0 || x->images || x->recurrence.conv_taps > 0)
        return "this attention";
    if (f->channel_mix || f->residual_unit || f->adapter_rank > 0 || f->out_proj) return "this MLP";
    return f->latent_width > 0 ? "experts in a latent" : NULL;
}

enum err_code lora_serve(struct model *m, const struct model_adapters *x, struct err *e)
{
    const struct lora one = {.rank = x->rank, .modules = x->modules ? x->modules : LORA_ALL};
    struct lora_cost unused;
    const bool more = m->per_layer_dim > 0 || m->streams > 0 || m->hyper_streams > 0 || m->laurel_rank > 0;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const char *what = undescribed(&m->kinds[i]);
        if (!what && more) what = "products beside the layers' blocks";
        if (what)
            return err_set(e, ERR_USAGE, "%s: what an engine allots to adapters of %s is not described", m->name, what);
    }
    TRY(lora_cost(m, &one, &unused, e));
    m->adapters = *x;
    return ERR_OK;
}
