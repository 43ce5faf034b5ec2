#include "calc/model/modules.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/model/family.h"

enum { NAME_MAX_LEN = 160, SPELLINGS = 12 };

/* The usual names within a layer; families have others in their stead (family.modules). An expert is number 0: patterns
 * that name one by its number are rewritten to it. */
static const struct {
    enum weight_class class;
    const char *name[SPELLINGS];
} MODULE[MODULES] = {
    [MODULE_Q] = {WEIGHT_MIXER, {"self_attn.q_proj", "attn.q_proj", "mixer.q_proj", "self_attn.qkv_proj"}},
    [MODULE_K] = {WEIGHT_MIXER, {"self_attn.k_proj", "attn.k_proj", "mixer.k_proj", "self_attn.qkv_proj"}},
    [MODULE_V] = {WEIGHT_MIXER, {"self_attn.v_proj", "attn.v_proj", "mixer.v_proj", "self_attn.qkv_proj"}},
    [MODULE_O] = {WEIGHT_MIXER, {"self_attn.o_proj", "attn.o_proj", "mixer.o_proj"}},
    [MODULE_Q_A] = {WEIGHT_MIXER, {"self_attn.q_a_proj", "self_attn.fused_qkv_a_proj", "attn.wq_a"}},
    [MODULE_Q_B] = {WEIGHT_MIXER, {"self_attn.q_b_proj", "attn.wq_b"}},
    [MODULE_KV_A] = {WEIGHT_MIXER, {"self_attn.kv_a_proj_with_mqa", "self_attn.fused_qkv_a_proj", "attn.wkv_a"}},
    [MODULE_KV_B] = {WEIGHT_MIXER, {"self_attn.kv_b_proj", "attn.wkv_b"}},
    [MODULE_INDEX_Q] = {WEIGHT_MIXER, {"self_attn.indexer.wq_b", "attn.indexer.wq_b"}},
    [MODULE_INDEX_K] = {WEIGHT_MIXER, {"self_attn.indexer.wk", "attn.indexer.wk"}},
    [MODULE_STATE_IN] = {WEIGHT_MIXER, {"mixer.in_proj"}},
    [MODULE_STATE_GATE] = {WEIGHT_MIXER, {NULL}},
    [MODULE_STATE_RATES] = {WEIGHT_MIXER, {NULL}},
    [MODULE_STATE_STEP_DOWN] = {WEIGHT_MIXER, {"mixer.x_proj"}},
    [MODULE_STATE_STEP_UP] = {WEIGHT_MIXER, {"mixer.dt_proj"}},
    [MODULE_STATE_OUT] = {WEIGHT_MIXER, {"mixer.out_proj"}},
    [MODULE_DECAY_DOWN] = {WEIGHT_MIXER, {NULL}},
    [MODULE_DECAY_UP] = {WEIGHT_MIXER, {NULL}},
    [MODULE_GATE_DOWN] = {WEIGHT_MIXER, {NULL}},
    [MODULE_GATE_UP] = {WEIGHT_MIXER, {NULL}},
    [MODULE_OUT_GATE] = {WEIGHT_MIXER, {NULL}},
    [MODULE_MIXER_ADAPTER] = {WEIGHT_MIXER, {NULL}},
    [MODULE_FFN_ADAPTER] = {WEIGHT_FFN, {NULL}},
    [MODULE_CHANNEL_GATE] = {WEIGHT_FFN, {NULL}},
    [MODULE_BLOCK_OUT] = {WEIGHT_FFN, {NULL}},
    [MODULE_LATENT_DOWN] = {WEIGHT_FFN, {"mixer.fc1_latent_proj"}},
    [MODULE_LATENT_UP] = {WEIGHT_FFN, {"mixer.fc2_latent_proj"}},
    [MODULE_GATE] = {WEIGHT_FFN,
                     {"mlp.gate_proj", "mlp.gate_up_proj", "feed_forward.gate_proj", "feed_forward.w1", "ffn.w1"}},
    [MODULE_UP] = {WEIGHT_FFN,
                   {"mlp.up_proj", "mlp.gate_up_proj", "feed_forward.up_proj", "feed_forward.w3", "ffn.w3",
                    "mixer.up_proj", "mlp.fc1", "mlp.c_fc"}},
    [MODULE_DOWN] = {WEIGHT_FFN,
                     {"mlp.down_proj", "feed_forward.down_proj", "feed_forward.w2", "ffn.w2", "mixer.down_proj",
                      "mlp.fc2", "mlp.c_proj"}},
    [MODULE_SHARED_GATE] = {WEIGHT_FFN,
                            {"mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj",
                             "feed_forward.shared_expert.gate_proj", "block_sparse_moe.shared_experts.gate_proj",
                             "ffn.shared_experts.w1", "mlp.shared_experts.gate_up_proj",
                             "mlp.shared_expert.gate_up_proj", "mlp.shared_mlp.gate_proj", "mlp.gate_proj"}},
    [MODULE_SHARED_UP] = {WEIGHT_FFN,
                          {"mlp.shared_experts.up_proj", "mlp.shared_expert.up_proj",
                           "feed_forward.shared_expert.up_proj", "block_sparse_moe.shared_experts.up_proj",
                           "ffn.shared_experts.w3", "mlp.shared_experts.gate_up_proj", "mlp.shared_expert.gate_up_proj",
                           "mixer.shared_experts.up_proj", "mlp.shared_mlp.up_proj", "mlp.up_proj"}},
    [MODULE_SHARED_DOWN] = {WEIGHT_FFN,
                            {"mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj",
                             "feed_forward.shared_expert.down_proj", "block_sparse_moe.shared_experts.down_proj",
                             "ffn.shared_experts.w2", "mixer.shared_experts.down_proj", "mlp.shared_mlp.down_proj",
                             "mlp.down_proj"}},
    [MODULE_EXPERT_GATE] = {WEIGHT_EXPERT,
                            {"mlp.experts.0.gate_proj", "mlp.experts.gate_up_proj", "mlp.switch_mlp.gate_proj",
                             "block_sparse_moe.experts.0.w1", "block_sparse_moe.switch_mlp.gate_proj",
                             "feed_forward.experts.0.gate_proj", "feed_forward.experts.gate_up_proj",
                             "ffn.experts.0.w1", "experts.0.gate_proj", "experts.gate_up_proj"}},
    [MODULE_EXPERT_UP] = {WEIGHT_EXPERT,
                          {"mlp.experts.0.up_proj", "mlp.experts.gate_up_proj", "mlp.switch_mlp.up_proj",
                           "block_sparse_moe.experts.0.w3", "block_sparse_moe.switch_mlp.up_proj",
                           "feed_forward.experts.0.up_proj", "feed_forward.experts.gate_up_proj", "ffn.experts.0.w3",
                           "mixer.experts.0.up_proj", "experts.0.up_proj", "experts.gate_up_proj"}},
    [MODULE_EXPERT_DOWN] = {WEIGHT_EXPERT,
                            {"mlp.experts.0.down_proj", "mlp.experts.down_proj", "mlp.switch_mlp.down_proj",
                             "block_sparse_moe.experts.0.w2", "block_sparse_moe.switch_mlp.down_proj",
                             "feed_forward.experts.0.down_proj", "feed_forward.experts.down_proj", "ffn.experts.0.w2",
                             "mixer.experts.0.down_proj", "experts.0.down_proj", "experts.down_proj"}},
    [MODULE_ROUTER] = {WEIGHT_ROUTER,
                       {"mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router", "ffn.gate",
                        "mixer.gate", "router", "mlp.gate.wg"}},
    [MODULE_SHARED_SWITCH] = {WEIGHT_ROUTER, {"mlp.shared_expert_gate"}},
    [MODULE_STATE_BLOCKS] = {WEIGHT_MIXER, {NULL}},
    [MODULE_INDEX_WEIGHTS] = {WEIGHT_ROUTER, {"self_attn.indexer.weights_proj", "attn.indexer.weights_proj"}},
};

/* What stands in front of "layers.7": regular expressions are tried with each. */
static const char *const FRONT[] = {"model.",
                                    "language_model.model.",
                                    "backbone.",
                                    "model.language_model.",
                                    "transformer.",
                                    "model.decoder.",
                                    "gpt_neox.",
                                    "transformer.encoder.",
                                    "model.transformer.",
                                    ""};

/* The same of either half of an encoder-decoder. */
static const char *const FRONT_ENCODER[] = {"model.encoder.", "encoder."};
static const char *const FRONT_DECODER[] = {"model.decoder.", "decoder."};

enum { FRONTS = sizeof FRONT / sizeof FRONT[0], FRONTS_HALF = sizeof FRONT_ENCODER / sizeof FRONT_ENCODER[0] };

enum weight_class module_class(enum module module) { return MODULE[module].class; }

bool module_present(const struct layer_kind *k, enum module module)
{
    const struct mixer *x = &k->mixer;
    const struct ffn *f = &k->ffn;
    const bool attends = x->kind == MIXER_ATTENTION, latent = x->kind == MIXER_LATENT, keys = attends && !x->shares_kv;
    const bool recurs = x->kind == MIXER_RECURRENT;
    switch (module) {
    case MODULE_Q: return (attends || latent) && x->q_rank == 0;
    case MODULE_K: return keys || (attends && x->idle_kv);
    case MODULE_V: return (keys || (attends && x->idle_kv)) && !x->v_is_k;
    case MODULE_O: return attends || latent;
    case MODULE_Q_A:
    case MODULE_Q_B: return (attends || latent) && x->q_rank > 0;
    case MODULE_KV_A: return latent;
    case MODULE_KV_B: return latent && !x->one_vector;
    case MODULE_INDEX_Q: return x->index_heads > 0;
    case MODULE_INDEX_K: return x->index_heads > 0 && !x->one_vector;
    case MODULE_INDEX_WEIGHTS: return x->index_heads > 0 && x->index_block_tokens == 0;
    case MODULE_STATE_IN:
    case MODULE_STATE_OUT: return recurs;
    case MODULE_STATE_STEP_DOWN:
    case MODULE_STATE_STEP_UP:
        return recurs && ((x->recurrence.block == RECURRENT_SELECTIVE && x->kv_heads == 1) ||
                          (x->recurrence.block == RECURRENT_SSD && x->recurrence.rank > 0));
    case MODULE_STATE_GATE: return recurs && x->recurrence.gate == GATE_FULL;
    case MODULE_STATE_RATES:
        return recurs && x->recurrence.block == RECURRENT_LINEAR &&
               (x->recurrence.delta || x->recurrence.decay == DECAY_HEAD);
    case MODULE_STATE_BLOCKS: return recurs && x->recurrence.block == RECURRENT_LRU;
    case MODULE_DECAY_DOWN: return recurs && x->recurrence.decay == DECAY_CHANNEL && x->recurrence.rank > 0;
    case MODULE_DECAY_UP:
        return recurs && x->recurrence.block == RECURRENT_LINEAR && x->recurrence.decay == DECAY_CHANNEL;
    case MODULE_GATE_DOWN:
    case MODULE_GATE_UP: return recurs && x->recurrence.gate == GATE_LOW_RANK;
    case MODULE_OUT_GATE: return latent && x->output_gate && !x->gate_of_latent;
    case MODULE_MIXER_ADAPTER: return x->adapter_rank > 0;
    case MODULE_FFN_ADAPTER: return f->adapter_rank > 0;
    case MODULE_CHANNEL_GATE: return f->channel_mix && !f->channel_bare;
    case MODULE_BLOCK_OUT: return f->out_proj;
    case MODULE_LATENT_DOWN:
    case MODULE_LATENT_UP: return f->kind == FFN_MOE && f->latent_width > 0;
    case MODULE_GATE: return f->kind == FFN_DENSE && f->gated;
    case MODULE_UP:
    case MODULE_DOWN: return f->kind == FFN_DENSE;
    case MODULE_SHARED_GATE: return f->kind == FFN_MOE && f->shared_width > 0 && f->gated;
    case MODULE_SHARED_UP:
    case MODULE_SHARED_DOWN: return f->kind == FFN_MOE && f->shared_width > 0;
    case MODULE_EXPERT_GATE: return f->kind == FFN_MOE && f->gated;
    case MODULE_EXPERT_UP:
    case MODULE_EXPERT_DOWN:
    case MODULE_ROUTER: return f->kind == FFN_MOE;
    case MODULE_SHARED_SWITCH: return f->kind == FFN_MOE && f->shared_gate;
    case MODULES: break;
    }
    return false;
}

/* Whether anybody says what the family calls the matrix. */
static bool is_named(const struct family *f, enum module module)
{
    for (const struct family_module *n = f ? f->modules : NULL; n && n->name; n++)
        if (n->module == module) return true;
    return MODULE[module].name[0] != NULL;
}

bool module_covers(const struct family *f, const struct layer_kind *k)
{
    const struct mixer *x = &k->mixer;
    const struct recurrence *p = &x->recurrence;
    if (x->index_mean || k->ffn.group_experts > 0 ||
        ((k->ffn.channel_mix || k->ffn.channel_bare) && p->block != RECURRENT_WKV))
        return false;
    for (enum module u = MODULE_DECAY_DOWN; u <= MODULE_BLOCK_OUT; u++)
        if (module_present(k, u) && !is_named(f, u)) return false;
    if (x->kind != MIXER_RECURRENT)
        return !x->head_gate && !(x->kind == MIXER_LATENT && x->gate_of_latent) && k->mixer_gate_rank == 0 &&
               k->ffn_gate_rank == 0 && k->ffn_condition_rank == 0;
    return (p->block == RECURRENT_SELECTIVE && x->kv_heads == 1) || p->block == RECURRENT_SSD ||
           p->block == RECURRENT_CONV || p->block == RECURRENT_MEMORY || p->block == RECURRENT_LINEAR ||
           p->block == RECURRENT_LRU || p->block == RECURRENT_WKV;
}

/* ---- matching ---- */

/* * stands for any text; linear in both but for one step back. */
static bool glob(const char *p, const char *s)
{
    const char *star = NULL, *from = NULL;
    while (*s) {
        if (*p == '*') {
            star = p++;
            from = s;
        } else if (*p == *s) {
            p++;
            s++;
        } else if (star) {
            p = star + 1;
            s = ++from;
        } else {
            return false;
        }
    }
    while (*p == '*') p++;
    return *p == '\0';
}

/* Words of p, divided by dots, one after the other among those of s. With a dot at its end p stands at the front:
 * transformers ends a name at a boundary, which is behind a dot too (should_convert_module). */
static bool has_words(const char *s, const char *p)
{
    const size_t len = strlen(p);
    if (len > 0 && p[len - 1] == '.' && strncmp(s, p, len) == 0) return true;
    for (const char *at = s; (at = strstr(at, p)) != NULL; at++)
        if ((at == s || at[-1] == '.') && (at[len] == '.' || at[len] == '\0')) return true;
    return false;
}

/* p in the text of s, of experts in that of their block. */
static bool has_part(const char *s, const char *p)
{
    const char *experts = strstr(s, "experts."), *at = strstr(s, p);
    const bool routed = experts && (experts == s || experts[-1] == '.'); /* not shared_experts */
    return at && (!routed || at + strlen(p) <= experts + sizeof "experts" - 1);
}

/* half: of an encoder-decoder, that the name is of. */
static bool matches_name(const struct module_pattern *p, const char *name, enum pattern_half half)
{
    const char *const *front = half == HALF_ENCODER ? FRONT_ENCODER : half == HALF_DECODER ? FRONT_DECODER : FRONT;
    const size_t fronts = half == HALF_NONE ? FRONTS : FRONTS_HALF;
    char longer[NAME_MAX_LEN + MODULE_PATTERN_MAX + 4];
    switch (p->kind) {
    case PATTERN_NAME: return has_words(name, p->text);
    case PATTERN_PART:
        if (has_words(name, p->text) || has_part(name, p->text)) return true;
        for (size_t i = 0; i < fronts; i++) { /* "model." and other words that stand in front of all */
            (void)snprintf(longer, sizeof longer, "%s%s", front[i], name);
            if (strstr(front[i], p->text) && has_part(longer, p->text)) return true;
        }
        return false;
    case PATTERN_GLOB:
        if (glob(p->text, name)) return true;
        (void)snprintf(longer, sizeof longer, "%s.*", p->text); /* a block that the name stands in */
        return glob(longer, name);
    case PATTERN_REGEX:
        for (size_t i = 0; i < fronts; i++) {
            (void)snprintf(longer, sizeof longer, "%s%s", front[i], name);
            if (regexec(p->compiled, longer, 0, NULL, 0) == 0) return true;
        }
        return false;
    }
    return false;
}

/* Experts stand in the MLP, and beside them a shared one; or (Gemma 4, whose branches have norms of their own) beside
 * the MLP, with their router. */
static bool spelled(const struct family *f, const struct layer_kind *k, enum module module, const char *name)
{
    /* only layers of one block each call it a mixer */
    if (f && f->hybrid != HYBRID_LETTERS && f->hybrid != HYBRID_NEVER && strncmp(name, "mixer.", 6) == 0) return false;
    const bool beside = k->ffn.branch_norms > 0, bare = strncmp(name, "experts.", 8) == 0 || !strchr(name, '.');
    if (module >= MODULE_SHARED_GATE && module <= MODULE_SHARED_DOWN) return (strstr(name, "shared") == NULL) == beside;
    return !(module >= MODULE_EXPERT_GATE && module <= MODULE_ROUTER) || bare == beside;
}

/* Whether a name of an encoder-decoder's matrix is of the block: which attention it is of, in T5 whose MLP. */
static bool of_block(const struct family *f, const struct layer_kind *k, const char *name)
{
    if (!f || !f->halves) return true;
    const bool source = strstr(name, "encoder_attn") || strstr(name, "EncDecAttention");
    if (source || strstr(name, "self_attn") || strstr(name, "SelfAttention")) return source == k->mixer.of_source;
    return strncmp(name, "layer.", 6) != 0 || (name[6] == '1') == k->encodes;
}

/* Whether the pattern names the matrix that the family calls so. */
static bool matches_called(const struct module_pattern *p, const struct family *f, int64_t layer,
                           const struct layer_kind *k, const char *called)
{
    const enum pattern_half half = !f || !f->halves ? HALF_NONE : k->encodes ? HALF_ENCODER : HALF_DECODER;
    char name[NAME_MAX_LEN];
    if (!of_block(f, k, called) || (half != HALF_NONE && p->half != HALF_NONE && p->half != half)) return false;
    (void)snprintf(name, sizeof name, "layers.%lld.%s", (long long)layer, called);
    if (matches_name(p, name, half)) return true;
    if (!f || !f->trunk || p->kind == PATTERN_NAME || p->kind == PATTERN_PART) return false;
    (void)snprintf(name, sizeof name, "%s.%lld.%s", f->trunk, (long long)layer, called);
    return matches_name(p, name, half);
}

bool module_pattern_matches(const struct module_pattern *p, const struct family *f, int64_t layer,
                            const struct layer_kind *k, enum module module)
{
    bool own = false;
    if (p->layer >= 0 && p->layer != layer) return false;
    for (const struct family_module *n = f ? f->modules : NULL; n && n->name; n++) {
        if (n->module != module) continue;
        own = true;
        if (matches_called(p, f, layer, k, n->name)) return true;
    }
    for (size_t i = 0; i < SPELLINGS && !own && MODULE[module].name[i]; i++) {
        if (!spelled(f, k, module, MODULE[module].name[i])) continue;
        if (p->kind == PATTERN_REGEX && strstr(MODULE[module].name[i], "switch_mlp")) continue; /* MLX has names only */
        if (matches_called(p, f, layer, k, MODULE[module].name[i])) return true;
    }
    return false;
}

bool module_called(const struct family *f, const struct layer_kind *k, enum module module, const char *text)
{
    bool own = false;
    for (const struct family_module *n = f ? f->modules : NULL; n && n->name; n++) {
        if (n->module != module) continue;
        own = true;
        if (strcmp(n->name, text) == 0 && of_block(f, k, text)) return true;
    }
    for (size_t i = 0; i < SPELLINGS && !own && MODULE[module].name[i]; i++)
        if (spelled(f, k, module, MODULE[module].name[i]) && strcmp(MODULE[module].name[i], text) == 0) return true;
    return false;
}

static bool matches_one(const struct module_pattern *p, const char *const *names)
{
    for (; *names; names++)
        if (matches_name(p, *names, HALF_NONE)) return true;
    return false;
}

bool module_pattern_matches_head(const struct module_pattern *p)
{
    static const char *const NAMES[] = {"lm_head", "head", "output_layer", "embed_out", "output", "proj_out", NULL};
    return matches_one(p, NAMES);
}

bool module_pattern_matches_embed(const struct module_pattern *p)
{
    static const char *const NAMES[] = {"embed_tokens",    "embeddings",     "wte",    "embed_in", "embedding",
                                        "word_embeddings", "tok_embeddings", "shared", NULL};
    return matches_one(p, NAMES);
}

int64_t module_layers(const struct model *m) { return m->encoder.layers > m->layers ? m->encoder.layers : m->layers; }

bool module_pattern_is_foreign(const struct module_pattern *p, const struct model *m)
{
    const int64_t layers = module_layers(m);
    static const char *const WORDS[] = {"visual", "vision",  "audio",      "image",   "projector",   "norm",   "mtp",
                                        "conv1",  "conv2",   "correction", "eh_proj", "shared_head", "rotary", "bias",
                                        "patch_", "adaptor", "adapter",    "speech",  "vit"};
    if (p->layer >= layers) return true;
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if (strstr(p->given, WORDS[i])) return true;
    if (p->kind != PATTERN_GLOB || strncmp(p->text, "layers.", 7) != 0) return false;
    const size_t digits = strspn(p->text + 7, "0123456789"); /* "layers.61*" */
    return digits > 0 && digits < 7 && strtol(p->text + 7, NULL, 10) >= layers;
}
