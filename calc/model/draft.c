/* draft -- what draft heads and multi-token layers add to a decoder. Tensor lists: SafeAILab/EAGLE cnets1.py and
 * cnets.py, FasterDecoding/Medusa medusa_model.py, z-lab/dflash model/dflash.py, vLLM deepseek_mtp.py. */
#include "calc/model/draft.h"

#include <string.h>

/* A whole number of the file by the first of two keys that it has. */
static enum err_code first_number(struct reader *r, const char *a, const char *b, int64_t hi, int64_t *out, bool *found)
{
    struct json j;
    *found = json_get(&r->text, a, &j) || (b && json_get(&r->text, b, &j));
    return *found ? json_int(&j, 1, hi, out, r->e) : ERR_OK;
}

/* ---- EAGLE ---- */

/* The first layer takes the fused vector as it is. */
enum err_code vary_eagle(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    if (layer == 0) k->norms = 1;
    return ERR_OK;
}

enum err_code extend_eagle(struct reader *r)
{
    struct model_draft *d = &r->m->draft;
    *d = (struct model_draft){.joined = 2, .embed_borrowed = true, .head_borrowed = true, .no_final_norm = true};
    return reader_flag(r, &r->text, "bias", true, &d->joined_bias);
}

/* The first layer attends to the embedding beside the feature, each with a norm of its own. */
enum err_code vary_eagle3(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    if (layer > 0) return ERR_OK;
    k->mixer.doubled_input = true;
    k->norms = 3;
    return ERR_OK;
}

enum err_code extend_eagle3(struct reader *r)
{
    struct json j;
    int64_t width = r->m->hidden;
    struct model_draft *d = &r->m->draft;
    *d = (struct model_draft){.joined = 3, .embed_borrowed = true};
    if (json_get(&r->text, "target_hidden_size", &j)) TRY(json_int(&j, 1, INT64_MAX, &width, r->e));
    if (width != r->m->hidden)
        return err_set(r->e, ERR_INPUT, "%s: %s is not the head's own width, which the eagle3 family does not describe",
                       j.file, j.path);
    if (json_get(&r->text, "draft_vocab_size", &j)) TRY(json_int(&j, 1, r->m->vocab, &d->head_rows, r->e));
    return ERR_OK;
}

/* ---- block drafts (DFlash) ---- */

enum err_code vary_block_draft(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)r;
    (void)layer;
    k->mixer.features_kv = true;
    return ERR_OK;
}

enum err_code extend_block_draft(struct reader *r)
{
    struct json ids;
    struct model *m = r->m;
    bool found;
    m->draft =
        (struct model_draft){.joined = m->layers, .norms_after = 1, .embed_borrowed = true, .head_borrowed = true};
    if (json_get(&r->text, "dflash_config.target_layer_ids", &ids)) {
        if (!json_is_array(&ids) || json_len(&ids) == 0) return json_want(&ids, "a list of layers", r->e);
        m->draft.joined = (int64_t)json_len(&ids);
    }
    TRY(first_number(r, "block_size", "dflash_config.block_size", 1 << 20, &m->block_tokens, &found));
    if (!found)
        return err_set(r->e, ERR_INPUT, "%s: block_size is missing: the tokens that a pass drafts", r->text.file);
    m->diffusion = m->bidirectional = true;
    m->block_steps = 1;
    return ERR_OK;
}

/* ---- Medusa ---- */

static enum err_code missing_base(struct reader *r, const char *key)
{
    struct json j;
    const char *base = "";
    if (json_get(r->root, "base_model_name_or_path", &j)) TRY(json_str(&j, &base, r->e));
    return err_set(r->e, ERR_INPUT,
                   "%s: %s is missing: a Medusa head has that of its base model%s%.60s; state it with --set %s=N",
                   r->text.file, key, *base ? " " : "", base, key);
}

/* Heads of residual blocks over the base model's last hidden vector, each with an output matrix of its own. */
enum err_code structure_medusa(struct reader *r)
{
    struct model *m = r->m;
    int64_t heads = 0, blocks = 1;
    bool found, bias;
    struct layer_kind *k = arena_alloc(r->arena, sizeof *k);
    if (!k) return err_nomem(r->e);
    TRY(first_number(r, "medusa_num_heads", "num_heads", 1 << 10, &heads, &found));
    if (!found) return err_set(r->e, ERR_INPUT, "%s: medusa_num_heads is missing: the number of heads", r->text.file);
    const char *second = json_has(&r->text, "medusa_num_heads") ? NULL : "num_hidden_layers";
    TRY(first_number(r, "medusa_num_layers", second, 1 << 10, &blocks, &found)); /* class default: 1 */
    TRY(reader_flag(r, &r->text, "medusa_fc_bias", true, &bias));
    TRY(reader_dim(r, DIM_HIDDEN, 1, 0, &m->hidden));
    if (m->hidden == 0) return missing_base(r, "hidden_size");
    TRY(reader_dim(r, DIM_VOCAB, 1, 0, &m->vocab));
    if (m->vocab == 0) return missing_base(r, "vocab_size");
    m->layers = heads * blocks;
    m->draft = (struct model_draft){.heads = heads, .no_embedding = true, .no_final_norm = true};
    k->ffn = (struct ffn){.kind = FFN_DENSE, .residual_unit = true, .up_bias = bias};
    for (int64_t i = 0; i < m->layers; i++) TRY(reader_count_kind(r->arena, m, i, k, r->e));
    return ERR_OK;
}

/* ---- multi-token prediction ---- */

/* The kind of the model's own that a letter of mtp_hybrid_override_pattern names. */
static const struct layer_kind *kind_of_letter(const struct model *m, char letter)
{
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct layer_kind *k = &m->kinds[i];
        const bool alone = k->mixer.kind == MIXER_NONE || k->ffn.kind == FFN_NONE;
        const char is = k->mixer.kind == MIXER_RECURRENT   ? 'M'
                        : k->mixer.kind == MIXER_ATTENTION ? '*'
                        : k->ffn.kind == FFN_MOE           ? 'E'
                                                           : '-';
        if (alone && is == letter) return k;
    }
    return NULL;
}

/* The same as transformers saves it: a word a layer. */
static enum err_code letters_of_words(struct reader *r, const struct json *list, const char **out)
{
    static const struct {
        const char *word;
        char letter;
    } WORDS[] = {{"mamba", 'M'}, {"full_attention", '*'}, {"attention", '*'}, {"moe", 'E'}, {"mlp", '-'}};
    struct json item;
    const char *word;
    const size_t n = json_len(list);
    char *letters = arena_array(r->arena, n + 1, 1);
    if (!letters) return err_nomem(r->e);
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) {
        TRY(json_str(&item, &word, r->e));
        for (size_t k = 0; k < sizeof WORDS / sizeof WORDS[0]; k++)
            if (strcmp(WORDS[k].word, word) == 0) letters[i] = WORDS[k].letter;
        if (letters[i] == '\0') return json_want(&item, "mamba, full_attention, moe or mlp", r->e);
    }
    *out = letters;
    return ERR_OK;
}

static enum err_code read_letters(struct reader *r, const struct json *pattern, struct model_mtp *t)
{
    const char *letters;
    TRY(json_is_array(pattern) ? letters_of_words(r, pattern, &letters) : json_str(pattern, &letters, r->e));
    t->kinds_n = strlen(letters);
    if (t->kinds_n == 0 || t->kinds_n > 16) return json_want(pattern, "1 to 16 letters", r->e); /* not a unit */
    t->kinds = arena_array(r->arena, t->kinds_n, sizeof *t->kinds);
    if (!t->kinds) return err_nomem(r->e);
    for (size_t i = 0; i < t->kinds_n; i++) {
        const struct layer_kind *k = kind_of_letter(r->m, letters[i]);
        if (!k) return json_want(pattern, "letters of layers that the model has", r->e);
        memcpy(&t->kinds[i], k, sizeof *k);
        t->kinds[i].count = 1;
    }
    t->layers = (int64_t)t->kinds_n;
    return ERR_OK;
}

/* A layer like the model's last; where later layers use an earlier one's choice of keys, with an indexer of its own. */
static enum err_code repeat_last(struct reader *r, int64_t layers, struct model_mtp *t)
{
    const struct model *m = r->m;
    t->kinds = arena_array(r->arena, 1, sizeof *t->kinds);
    if (!t->kinds || m->order_n == 0) return err_nomem(r->e);
    memcpy(t->kinds, &m->kinds[m->order[m->order_n - 1].kind], sizeof *t->kinds);
    t->kinds_n = 1;
    t->kinds->count = t->layers = layers;
    struct mixer *x = &t->kinds->mixer;
    for (size_t i = 0; i < m->kinds_n && x->top_keys > 0 && x->index_heads == 0; i++) {
        x->index_heads = m->kinds[i].mixer.index_heads;
        x->index_dim = m->kinds[i].mixer.index_dim;
    }
    return ERR_OK;
}

/* Modules by the family's own rule, all alike; *known false: the file does not say what they are. */
static enum err_code own_layers(struct reader *r, int64_t modules, struct model_mtp *t, bool *known)
{
    struct layer_kind *k = arena_array(r->arena, 2, sizeof *k);
    *known = true;
    TRY(repeat_last(r, 1, t));
    if (!k) return err_nomem(r->e);
    for (int64_t i = 0; i < modules && *known; i++) {
        memcpy(&k[1], t->kinds, sizeof *k);
        TRY(r->family->mtp_layer(r, i, &k[1]));
        *known = k[1].count == 1 && (i == 0 || model_same_layer(&k[0], &k[1]));
        if (i == 0) memcpy(&k[0], &k[1], sizeof *k);
    }
    t->kinds = k;
    return ERR_OK;
}

enum err_code draft_read_mtp(struct reader *r)
{
    static const char *const KEYS[] = {"num_nextn_predict_layers", "mtp_num_hidden_layers"};
    const enum mtp_rule rule = r->family->mtp;
    struct model_mtp t = {.copies = rule == MTP_COPIES};
    struct json j;
    int64_t n = 0;
    bool dedicated, announced;
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0] && n == 0; i++)
        if (json_get(&r->text, KEYS[i], &j)) TRY(json_int(&j, 0, LAYERS_MAX, &n, r->e));
    TRY(reader_flag(r, &r->text, "use_mtp", false, &announced));
    TRY(reader_flag(r, &r->text, "mtp_use_dedicated_embeddings", false, &dedicated));
    if (n == 0 && !announced) return ERR_OK;
    bool known = n > 0 && rule != MTP_NONE && !dedicated;
    if (known && rule == MTP_OWN) TRY(own_layers(r, n, &t, &known));
    if (!known) return reader_note(r, "multi-token prediction layers not counted: how they are stored is not known");
    if (json_get(&r->text, "mtp_hybrid_override_pattern", &j) || json_get(&r->text, "mtp_layers_block_type", &j))
        TRY(read_letters(r, &j, &t));
    else if (rule != MTP_OWN)
        TRY(repeat_last(r, rule == MTP_STACK ? n : 1, &t));
    t.modules = rule == MTP_STACK ? 1 : n;
    r->m->mtp = t;
    return ERR_OK;
}

bool model_mtp(const struct model *m, struct model *out)
{
    const struct model_mtp *t = &m->mtp;
    if (t->modules == 0) return false;
    *out = *m;
    out->adapters = (struct model_adapters){.slots = 0}; /* engines adapt the target alone */
    out->kinds = t->kinds;
    out->kinds_n = t->kinds_n;
    out->layers = t->layers;
    out->order = out->whole_order = NULL; /* formats of a module are those of the classes */
    out->order_n = out->whole_kinds_n = 0;
    out->loops = 0; /* a draft's layers run once */
    out->exit_gate = out->loops_bare = false;
    out->mtp = (struct model_mtp){.modules = 0};
    out->tower = out->audio = (struct model_tower){.params = 0};
    out->tied = m->tied && !t->copies;
    out->draft =
        (struct model_draft){.joined = 2, .norms_before = 2, .embed_borrowed = !t->copies, .head_borrowed = !t->copies};
    return true;
}

/* ---- heads for any model ---- */

/* m with one kind of layer, and nothing around its layers but the embedding and the output head. */
static enum err_code bare(struct arena *a, const struct model *m, const char *what, int64_t layers, struct model *out,
                          struct layer_kind **kind, struct err *e)
{
    *kind = arena_array(a, 1, sizeof **kind);
    *out = *m;
    out->adapters = (struct model_adapters){.slots = 0}; /* engines adapt the target alone */
    out->name = arena_printf(a, "%s of %s", what, m->name);
    if (!*kind || !out->name) return err_nomem(e);
    out->kinds = *kind;
    out->kinds_n = 1;
    out->layers = layers;
    out->order = out->whole_order = NULL;
    out->order_n = out->whole_kinds_n = 0;
    out->loops = 0; /* a draft's layers run once */
    out->exit_gate = out->loops_bare = false;
    out->mtp = (struct model_mtp){.modules = 0};
    out->tower = out->audio = (struct model_tower){.params = 0};
    out->tied = out->embed_norm = out->head_bias = out->layer_scale = false;
    out->embed_extra_rows = out->position_rows = out->position_offset = 0;
    out->per_layer_dim = out->per_layer_vocab = out->streams = out->laurel_rank = 0;
    return ERR_OK;
}

enum err_code model_eagle(struct arena *a, const struct model *m, struct model *out, struct err *e)
{
    const struct layer_kind *last = &m->kinds[m->order_n ? m->order[m->order_n - 1].kind : m->kinds_n - 1];
    struct model r;
    struct layer_kind *k;
    if ((last->mixer.kind != MIXER_ATTENTION && last->mixer.kind != MIXER_LATENT) || last->ffn.kind != FFN_DENSE)
        return err_set(
            e, ERR_USAGE,
            "%s ends in no layer of attention and an MLP, so what its EAGLE head is made of is not known: give "
            "the head's own config.json",
            m->name);
    TRY(bare(a, m, "EAGLE head", 1, &r, &k, e));
    memcpy(k, last, sizeof *k);
    k->count = 1;
    k->norms = 1;
    k->borrowed = k->mixer.shares_kv = false;
    r.draft = (struct model_draft){
        .joined = 2, .joined_bias = true, .embed_borrowed = true, .head_borrowed = true, .no_final_norm = true};
    *out = r;
    return ERR_OK;
}

enum err_code model_medusa(struct arena *a, const struct model *m, int64_t heads, struct model *out, struct err *e)
{
    struct model r;
    struct layer_kind *k;
    TRY(bare(a, m, "Medusa heads", heads, &r, &k, e));
    *k = (struct layer_kind){
        .count = heads, .ffn = {.kind = FFN_DENSE, .residual_unit = true, .up_bias = true}, .label = "head"};
    r.attention = "none";
    r.draft = (struct model_draft){.heads = heads, .no_embedding = true, .no_final_norm = true};
    *out = r;
    return ERR_OK;
}
