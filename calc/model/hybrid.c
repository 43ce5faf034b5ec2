/* hybrid -- which layer of a model with recurrent mixers attends, which has a state, and which has neither. */
#include <string.h>

#include "calc/model/hybrid.h"
#include "calc/model/pattern.h"

enum place { PLACE_NONE, PLACE_ATTENTION, PLACE_RECURRENT, PLACES };
enum feed { FEED_NONE, FEED_DENSE, FEED_EXPERTS, FEEDS };

struct plan {
    enum place mixer;
    enum feed ffn;
    bool shared; /* a shared attention block goes before the layer */
    bool beside; /* attention beside its recurrent mixer */
    bool slides; /* attention within a window */
};

struct hybrid {
    struct reader *r;
    struct plan *layer;
    bool one_block; /* a layer is a mixer or a feed-forward block */
};

static enum err_code wrong_length(struct reader *r, const struct json *list, size_t n)
{
    return err_set(r->e, ERR_INPUT, "%s: %s has %zu entries for %lld layers", list->file, list->path, n,
                   (long long)r->m->layers);
}

static enum err_code missing(struct reader *r, const char *key)
{
    return err_set(r->e, ERR_INPUT, "%s: %s is missing, so which layers of the %s family attend is not known",
                   r->text.file, key, r->family->name);
}

/* Words of layer_types and layers_block_type. */
static bool place_of(const struct hybrid *h, const char *word, struct plan *out)
{
    static const struct {
        const char *word;
        struct plan plan;
    } WORDS[] = {
        {"full_attention", {PLACE_ATTENTION, FEED_NONE, false, false, false}},
        {"attention", {PLACE_ATTENTION, FEED_NONE, false, false, false}},
        {"deepseek_sparse_attention", {PLACE_ATTENTION, FEED_NONE, false, false, false}},
        {"indexed_attention", {PLACE_ATTENTION, FEED_NONE, false, false, false}},
        {"hybrid_indexed", {PLACE_ATTENTION, FEED_NONE, false, false, false}},
        {"sliding_attention", {PLACE_ATTENTION, FEED_NONE, false, false, true}},
        {"linear_attention", {PLACE_RECURRENT, FEED_NONE, false, false, false}},
        {"mamba", {PLACE_RECURRENT, FEED_NONE, false, false, false}},
        {"recurrent", {PLACE_RECURRENT, FEED_NONE, false, false, false}},
        {"conv", {PLACE_RECURRENT, FEED_NONE, false, false, false}},
        {"hybrid", {PLACE_RECURRENT, FEED_NONE, true, false, false}},
        {"mlp", {PLACE_NONE, FEED_DENSE, false, false, false}},
        {"moe", {PLACE_NONE, FEED_EXPERTS, false, false, false}},
    };
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strcmp(WORDS[i].word, word) != 0) continue;
        *out = WORDS[i].plan;
        if (out->slides && h->r->family->window != WINDOW_TYPES) return false;
        const bool shares = h->r->family->hybrid == HYBRID_SHARED;
        return out->shared                ? shares
               : out->mixer == PLACE_NONE ? h->one_block
                                          : out->mixer == PLACE_RECURRENT || !shares;
    }
    return false;
}

/* A list of one word a layer, or one that is repeated over the layers. */
static enum err_code read_words(struct hybrid *h, const struct json *list, bool tiled)
{
    struct reader *r = h->r;
    struct json item;
    const char *word;
    const size_t layers = (size_t)r->m->layers, n = json_len(list);
    if (!json_is_array(list) || n == 0) return json_want(list, "a list of one word per layer", r->e);
    if (!tiled && n != layers) return wrong_length(r, list, n);
    for (size_t i = 0; i < layers; i++) {
        (void)json_at(list, i % n, NULL, &item);
        TRY(json_str(&item, &word, r->e));
        if (!place_of(h, word, &h->layer[i]))
            return json_want(&item, "a kind of layer that the family describes (attention, mamba, ...)", r->e);
    }
    return ERR_OK;
}

static enum err_code read_letters(struct hybrid *h, const struct json *text)
{
    static const struct plan PLANS[] = {{PLACE_RECURRENT, FEED_NONE, false, false, false},
                                        {PLACE_ATTENTION, FEED_NONE, false, false, false},
                                        {PLACE_NONE, FEED_DENSE, false, false, false},
                                        {PLACE_NONE, FEED_EXPERTS, false, false, false}};
    static const char LETTERS[] = "M*-E";
    struct reader *r = h->r;
    const char *pattern;
    TRY(json_str(text, &pattern, r->e));
    if (strlen(pattern) != (size_t)r->m->layers) return wrong_length(r, text, strlen(pattern));
    for (size_t i = 0; pattern[i]; i++) {
        const char *at = strchr(LETTERS, pattern[i]);
        if (!at) return json_want(text, "the letters M, *, - and E, one a layer", r->e);
        h->layer[i] = PLANS[at - LETTERS];
    }
    return ERR_OK;
}

/* Every period-th layer attends, from `offset` on. */
static void place_period(struct hybrid *h, int64_t period, int64_t offset)
{
    for (int64_t i = 0; i < h->r->m->layers; i++)
        h->layer[i].mixer = i % period == offset ? PLACE_ATTENTION : PLACE_RECURRENT;
}

/* Layer numbers, counted from `first`, that get `place`; each layer at most once. */
static enum err_code read_numbers(struct hybrid *h, const struct json *list, int64_t first, enum place place)
{
    struct reader *r = h->r;
    struct json item;
    if (!json_is_array(list)) return json_want(list, "a list of layer numbers", r->e);
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) {
        int64_t at;
        TRY(json_int(&item, first, r->m->layers - 1 + first, &at, r->e));
        if (h->layer[at - first].mixer != PLACE_NONE) return json_want(&item, "each layer once", r->e);
        h->layer[at - first].mixer = place;
    }
    return ERR_OK;
}

static enum err_code read_flags(struct hybrid *h)
{
    struct reader *r = h->r;
    struct json list, item;
    if (!json_get(&r->text, "attn_type_list", &list)) /* transformers' own spelling is layer_types */
        return json_get(&r->text, "layer_types", &list) ? read_words(h, &list, false)
                                                        : missing(r, "attn_type_list or layer_types");
    if (!json_is_array(&list)) return json_want(&list, "a list of 0 (recurrent) and 1 (attention), one a layer", r->e);
    if (json_len(&list) != (size_t)r->m->layers) return wrong_length(r, &list, json_len(&list));
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        int64_t full;
        TRY(json_int(&item, 0, 1, &full, r->e));
        h->layer[i].mixer = full ? PLACE_ATTENTION : PLACE_RECURRENT;
    }
    return ERR_OK;
}

static enum err_code read_lists(struct hybrid *h)
{
    struct reader *r = h->r;
    struct json full, linear;
    if (!json_get(&r->text, "linear_attn_config.full_attn_layers", &full) ||
        !json_get(&r->text, "linear_attn_config.kda_layers", &linear)) /* transformers' own spelling is layer_types */
        return json_get(&r->text, "layer_types", &full)
                   ? read_words(h, &full, false)
                   : missing(r, "linear_attn_config.full_attn_layers or .kda_layers");
    TRY(read_numbers(h, &full, 1, PLACE_ATTENTION));
    TRY(read_numbers(h, &linear, 1, PLACE_RECURRENT));
    for (int64_t i = 0; i < r->m->layers; i++)
        if (h->layer[i].mixer == PLACE_NONE) return json_want(&linear, "every layer in one of the two lists", r->e);
    return ERR_OK;
}

static enum err_code read_indexes(struct hybrid *h)
{
    struct reader *r = h->r;
    struct json list;
    if (json_get(&r->text, "layer_types", &list) || json_get(&r->text, "layers_block_type", &list))
        return read_words(h, &list, false);
    if (!json_get(&r->text, "full_attn_idxs", &list) && !json_get(&r->text, "attn_layer_indices", &list))
        return missing(r, "layer_types, full_attn_idxs or attn_layer_indices");
    TRY(read_numbers(h, &list, 0, PLACE_ATTENTION));
    for (int64_t i = 0; i < r->m->layers; i++)
        if (h->layer[i].mixer == PLACE_NONE) h->layer[i].mixer = PLACE_RECURRENT;
    return ERR_OK;
}

/* flash-linear-attention: attn names layers that attend; without it none does. */
static enum err_code read_attn(struct hybrid *h)
{
    struct reader *r = h->r;
    struct json attn, list;
    if (json_get(&r->text, "attn", &attn)) {
        if (!json_is_object(&attn)) return json_want(&attn, "an object with layers and num_heads", r->e);
        if (!json_get(&attn, "layers", &list)) return missing(r, "attn.layers");
        TRY(read_numbers(h, &list, 0, PLACE_ATTENTION));
    } else if (r->family->attn_required) {
        return missing(r, "attn");
    }
    for (int64_t i = 0; i < r->m->layers; i++)
        if (h->layer[i].mixer == PLACE_NONE) h->layer[i].mixer = PLACE_RECURRENT;
    return ERR_OK;
}

static enum err_code read_interval(struct hybrid *h, const char *key, const char *offset_key, int64_t period,
                                   int64_t offset)
{
    struct reader *r = h->r;
    struct json j;
    if (json_get(&r->text, key, &j)) TRY(json_int(&j, 1, LAYERS_MAX, &period, r->e));
    if (offset_key && json_get(&r->text, offset_key, &j)) TRY(json_int(&j, 0, period - 1, &offset, r->e));
    place_period(h, period, offset_key ? offset : period - 1);
    return ERR_OK;
}

/* Zamba: the third layer, and of those behind it every attn_layer_period-th, have a shared block before them. */
static enum err_code read_shared_period(struct hybrid *h)
{
    struct reader *r = h->r;
    const int64_t lead = 3;
    TRY(read_interval(h, "attn_layer_period", "attn_layer_offset", 6, 4)); /* class defaults */
    for (int64_t i = r->m->layers - 1; i >= 0; i--) {
        const bool before = i == lead - 1 || (i >= lead && h->layer[i - lead].mixer == PLACE_ATTENTION);
        h->layer[i] = (struct plan){.mixer = PLACE_RECURRENT, .shared = before};
    }
    return ERR_OK;
}

/* The last layer of each group attends; what layers behind the last whole group are is not the same in all code. */
static enum err_code read_groups(struct hybrid *h)
{
    struct reader *r = h->r;
    struct json j;
    int64_t group;
    if (!json_get(&r->text, "layer_group_size", &j)) return missing(r, "layer_group_size");
    TRY(json_int(&j, 1, LAYERS_MAX, &group, r->e));
    if (r->m->layers % group != 0) return json_want(&j, "a divisor of the number of layers", r->e);
    place_period(h, group, group - 1);
    return ERR_OK;
}

/* Source: vLLM, plamo2.py. */
static enum err_code read_middle(struct hybrid *h)
{
    struct reader *r = h->r;
    int64_t step;
    bool on;
    TRY(reader_int(r, "mamba_step", 2, LAYERS_MAX, 2, &step)); /* class default */
    TRY(reader_flag(r, &r->text, "mamba_enabled", true, &on));
    if (!on)
        return err_set(r->e, ERR_INPUT, "%s: mamba_enabled is false, which the %s family does not describe",
                       r->text.file, r->family->name);
    place_period(h, step, step / 2);
    if (r->m->layers <= step / 2) h->layer[r->m->layers - 1].mixer = PLACE_ATTENTION;
    return ERR_OK;
}

static enum err_code place_mixers(struct hybrid *h)
{
    struct reader *r = h->r;
    const enum hybrid_rule rule = r->family->hybrid;
    struct json j;
    const bool words = json_get(&r->text, "layers_block_type", &j) || json_get(&r->text, "layer_types", &j);
    switch (rule) {
    case HYBRID_NONE:
    case HYBRID_NEVER:
        for (int64_t i = 0; i < r->m->layers; i++) h->layer[i].mixer = PLACE_RECURRENT;
        return ERR_OK;
    case HYBRID_TYPES:
        if (words) return read_words(h, &j, false);
        if (!json_has(&r->text, "full_attention_interval") && !r->family->output_gate) return missing(r, "layer_types");
        return read_interval(h, "full_attention_interval", NULL, 4, 3);
    case HYBRID_PERIOD:
        if (words) return read_words(h, &j, false);
        return read_interval(h, "attn_layer_period", "attn_layer_offset", 8, 4);
    case HYBRID_FLAGS: return read_flags(h);
    case HYBRID_INDEXES: return read_indexes(h);
    case HYBRID_ATTN: return read_attn(h);
    case HYBRID_LISTS: return read_lists(h);
    case HYBRID_LETTERS:
        if (json_get(&r->text, "hybrid_override_pattern", &j)) return read_letters(h, &j);
        return words ? read_words(h, &j, false) : missing(r, "hybrid_override_pattern");
    case HYBRID_TILED:
        if (json_get(&r->text, "block_types", &j) || json_get(&r->text, "_block_types", &j))
            return read_words(h, &j, true);
        return missing(r, "block_types");
    case HYBRID_GROUPS: return read_groups(h);
    case HYBRID_FOURS:
        if (words) return read_words(h, &j, false);
        for (int64_t i = 0; i < r->m->layers; i++)
            h->layer[i] = (struct plan){.mixer = i % 2 == 0 && i > 0 ? PLACE_ATTENTION : PLACE_RECURRENT,
                                        .slides = i % 4 == 0 && i > 0};
        return ERR_OK;
    case HYBRID_CYCLE:
        if (words) return read_words(h, &j, false);
        for (int64_t i = 0; i < r->m->layers; i++) {
            const char at = r->family->cycle[(size_t)i % strlen(r->family->cycle)];
            h->layer[i] = (struct plan){.mixer = at == 'r' ? PLACE_RECURRENT : PLACE_ATTENTION, .slides = at == 's'};
        }
        return ERR_OK;
    case HYBRID_MIDDLE: return read_middle(h);
    case HYBRID_BESIDE:
        for (int64_t i = 0; i < r->m->layers; i++)
            h->layer[i] = (struct plan){.mixer = PLACE_RECURRENT, .beside = true};
        return ERR_OK;
    case HYBRID_SHARED:
        if (words) return read_words(h, &j, false);
        return json_has(&r->text, "attn_layer_period") ? read_shared_period(h) : missing(r, "layers_block_type");
    }
    return ERR_OK;
}

/* The same layers read from another key of the file. */
static enum err_code read_again(struct hybrid *h, const char *key, const struct json *list)
{
    struct reader *r = h->r;
    struct json item;
    if (strcmp(key, "full_attention_interval") == 0) return read_interval(h, key, NULL, 4, 3);
    if (r->family->hybrid == HYBRID_SHARED && strcmp(key, "attn_layer_period") == 0) return read_shared_period(h);
    if (strcmp(key, "attn_layer_period") == 0) return read_interval(h, key, "attn_layer_offset", 8, 4);
    if (strcmp(key, "full_attn_idxs") == 0 || strcmp(key, "attn_layer_indices") == 0) {
        TRY(read_numbers(h, list, 0, PLACE_ATTENTION));
        for (int64_t i = 0; i < r->m->layers; i++)
            if (h->layer[i].mixer == PLACE_NONE) h->layer[i].mixer = PLACE_RECURRENT;
        return ERR_OK;
    }
    if (strcmp(key, "hybrid_layer_ids") != 0) return read_words(h, list, strstr(key, "block_types") != NULL);
    for (int64_t i = 0; i < r->m->layers; i++) h->layer[i].mixer = PLACE_RECURRENT;
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) {
        int64_t at;
        TRY(json_int(&item, 0, r->m->layers - 1, &at, r->e));
        h->layer[at].shared = true;
    }
    return ERR_OK;
}

/* Files that say twice which layer is what must say the same. */
static enum err_code check_twice(struct hybrid *h)
{
    static const struct {
        enum hybrid_rule rule;
        const char *first, *second; /* of which the first decided */
    } TWICE[] = {
        {HYBRID_TYPES, "layers_block_type", "layer_types"},
        {HYBRID_TYPES, "layers_block_type", "full_attention_interval"},
        {HYBRID_TYPES, "layer_types", "full_attention_interval"},
        {HYBRID_PERIOD, "layers_block_type", "layer_types"},
        {HYBRID_PERIOD, "layers_block_type", "attn_layer_period"},
        {HYBRID_PERIOD, "layer_types", "attn_layer_period"},
        {HYBRID_FLAGS, "attn_type_list", "layer_types"},
        {HYBRID_INDEXES, "layer_types", "full_attn_idxs"},
        {HYBRID_INDEXES, "layer_types", "attn_layer_indices"},
        {HYBRID_INDEXES, "layers_block_type", "attn_layer_indices"},
        {HYBRID_LETTERS, "hybrid_override_pattern", "layers_block_type"},
        {HYBRID_LETTERS, "layers_block_type", "layer_types"},
        {HYBRID_TILED, "block_types", "_block_types"},
        {HYBRID_SHARED, "layers_block_type", "layer_types"},
        {HYBRID_SHARED, "layers_block_type", "hybrid_layer_ids"},
        {HYBRID_SHARED, "layers_block_type", "attn_layer_period"},
    };
    struct reader *r = h->r;
    struct json first, second;
    for (size_t i = 0; i < sizeof TWICE / sizeof TWICE[0]; i++) {
        if (TWICE[i].rule != r->family->hybrid || !json_get(&r->text, TWICE[i].first, &first) ||
            !json_get(&r->text, TWICE[i].second, &second))
            continue;
        struct hybrid other = *h;
        other.layer = arena_array(r->arena, (size_t)r->m->layers, sizeof *other.layer);
        if (!other.layer) return err_nomem(r->e);
        TRY(read_again(&other, TWICE[i].second, &second));
        for (int64_t k = 0; k < r->m->layers; k++)
            if (other.layer[k].mixer != h->layer[k].mixer || other.layer[k].ffn != h->layer[k].ffn ||
                other.layer[k].shared != h->layer[k].shared || other.layer[k].slides != h->layer[k].slides)
                return err_set(r->e, ERR_INPUT, "%s: %s and %s contradict each other about layer %lld", r->text.file,
                               first.path, second.path, (long long)k);
    }
    return ERR_OK;
}

static enum err_code place_ffns(struct hybrid *h)
{
    struct reader *r = h->r;
    bool *moe = arena_array(r->arena, (size_t)r->m->layers, sizeof *moe);
    if (!moe) return err_nomem(r->e);
    if (h->one_block || r->family->ffn == FFN_ABSENT) return ERR_OK;
    TRY(pattern_experts(r, moe));
    for (int64_t i = 0; i < r->m->layers; i++) h->layer[i].ffn = moe[i] ? FEED_EXPERTS : FEED_DENSE;
    return ERR_OK;
}

/* ---- kinds ---- */

/* The mixers and feed-forward blocks that the layers of a plan use. */
struct blocks {
    struct mixer mixer[PLACES];
    struct ffn ffn[FEEDS];
    struct layer_kind shared;
    int64_t window; /* of attention that slides */
    int64_t owners; /* shared blocks with weights of their own; later uses take them in turn */
};

static enum err_code read_blocks(struct hybrid *h, struct blocks *b)
{
    struct reader *r = h->r;
    const struct family *fam = r->family;
    int64_t n[PLACES] = {0}, feeds[FEEDS] = {0}, shared = 0;
    struct json j;
    for (int64_t i = 0; i < r->m->layers; i++) {
        n[h->layer[i].mixer]++;
        feeds[h->layer[i].ffn]++;
        shared += h->layer[i].shared;
        n[PLACE_ATTENTION] += h->layer[i].beside;
    }
    struct mixer *attention = &b->mixer[PLACE_ATTENTION];
    const bool named = fam->hybrid == HYBRID_ATTN;
    if (n[PLACE_ATTENTION]) TRY(named ? hybrid_attention(r, attention) : reader_attention(r, attention));
    if (n[PLACE_ATTENTION] && fam->window == WINDOW_EVERY)
        TRY(reader_dim(r, DIM_WINDOW, 0, 0, &attention->window_tokens));
    if (n[PLACE_ATTENTION] && fam->window == WINDOW_TYPES) TRY(reader_dim(r, DIM_WINDOW, 1, -1, &b->window));
    if (n[PLACE_RECURRENT]) TRY(fam->recurrent(r, &b->mixer[PLACE_RECURRENT]));
    if (feeds[FEED_DENSE]) TRY(hybrid_dense(r, &b->ffn[FEED_DENSE]));
    if (!named) TRY(reader_biases(r, attention, &b->ffn[FEED_DENSE]));
    if (feeds[FEED_EXPERTS]) TRY(reader_experts(r, &b->ffn[FEED_EXPERTS]));
    if (shared) TRY(hybrid_shared(r, &b->shared));
    b->owners = 1;
    return json_get(&r->text, "num_mem_blocks", &j) ? json_int(&j, 1, LAYERS_MAX, &b->owners, r->e) : ERR_OK;
}

enum err_code reader_hybrid(struct reader *r)
{
    struct model *m = r->m;
    struct hybrid h = {.r = r, .one_block = r->family->hybrid == HYBRID_LETTERS};
    struct blocks *b = arena_alloc(r->arena, sizeof *b);
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    int64_t shared = 0;
    h.layer = arena_array(r->arena, (size_t)m->layers, sizeof *h.layer);
    if (!h.layer || !b || !k) return err_nomem(r->e);
    TRY(place_mixers(&h));
    TRY(check_twice(&h));
    TRY(place_ffns(&h));
    TRY(read_blocks(&h, b));
    for (int64_t i = 0; i < m->layers; i++) {
        const struct plan *p = &h.layer[i];
        r->layer = i;
        if (p->shared) {
            b->shared.borrowed = shared++ >= b->owners;
            TRY(reader_count_kind(r->arena, r->m, i, &b->shared, r->e));
        }
        k->norms = r->family->norms;
        if (p->beside) { /* from one norm: two blocks, of which the first has it */
            memcpy(&k->mixer, &b->mixer[PLACE_ATTENTION], sizeof k->mixer);
            memset(&k->ffn, 0, sizeof k->ffn);
            k->norms = 1;
            TRY(reader_count_kind(r->arena, r->m, i, k, r->e));
            k->norms = r->family->norms - 1;
        }
        memcpy(&k->mixer, &b->mixer[p->mixer], sizeof k->mixer);
        memcpy(&k->ffn, &b->ffn[p->ffn], sizeof k->ffn);
        if (p->slides) k->mixer.window_tokens = b->window;
        if (r->family->vary) TRY(r->family->vary(r, i, k));
        TRY(reader_count_kind(r->arena, r->m, i, k, r->e));
    }
    return ERR_OK;
}
