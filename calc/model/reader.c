/* reader -- a Hugging Face config.json becomes a struct model, by the rules of its family's row. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "calc/base/text.h"
#include "calc/model/draft.h"
#include "calc/model/outside.h"
#include "calc/model/stored.h"
#include "calc/model/towers.h"

enum err_code reader_note(struct reader *r, const char *text)
{
    r->m->notes = r->m->notes ? arena_printf(r->arena, "%s; %s", r->m->notes, text) : text;
    return r->m->notes ? ERR_OK : err_nomem(r->e);
}

/* ---- which part of the file, which family ---- */

enum { NAMES_MAX = 400 }; /* of families: more than there are */

static enum err_code unknown_family(struct reader *r, const struct json *where, const char *key, const char *value)
{
    const char *names[NAMES_MAX];
    const struct family *f;
    size_t n = 0;
    char clean[64], near[200];
    text_clean(clean, sizeof clean, value, strlen(value));
    const char *outside = outside_find(value);
    if (outside) return err_set(r->e, ERR_INPUT, "%s: %s \"%s\" is %s", where->file, key, clean, outside);
    r->unknown = true;
    while (n < NAMES_MAX && (f = family_at(n))) names[n++] = f->name;
    text_suggest(near, sizeof near, value, names, sizeof names[0], n);
    return err_set(r->e, ERR_INPUT,
                   "%s: %s \"%s\" is a family that ridge does not know, so its parameters and cache would be guesses%s "
                   "(ridge list families; --set model_type=NAME reads the file as one of them)",
                   where->file, key, clean, near);
}

enum err_code reader_text_part(const struct json *root, struct json *out, struct err *e)
{
    static const char *const NESTED[] = {"text_config", "llm_config", "language_config"};
    struct json j;
    *out = *root;
    if (json_get(root, "thinker_config", &j)) { /* of a model that also talks: the part that reads */
        if (!json_is_object(&j)) return json_want(&j, "an object", e);
        return reader_text_part(&j, out, e);
    }
    for (size_t i = 0; i < sizeof NESTED / sizeof NESTED[0]; i++) {
        if (!json_get(root, NESTED[i], &j)) continue;
        if (!json_is_object(&j)) return json_want(&j, "an object", e);
        *out = j;
        break;
    }
    return ERR_OK;
}

/* A draft head is known by a key of its own or by its architecture: its model_type is mostly that of its target. Some
 * others are known by a key too. */
static const struct family *find_marked(struct reader *r)
{
    struct json j, list, first;
    const char *architecture = "";
    const struct family *f;
    if (json_get(r->root, "architectures", &list) && json_at(&list, 0, NULL, &first))
        (void)json_str(&first, &architecture, NULL);
    const struct family *by_name = family_find_architecture(architecture);
    if (by_name && by_name->draft) return by_name;
    for (size_t i = 0; (f = family_at(i)); i++)
        if (f->mark && json_get(&r->text, f->mark, &j)) return f;
    return NULL;
}

/* Files of some libraries say no more than the keys that they have. */
static const struct family *find_signed(struct reader *r)
{
    struct json j;
    const struct family *f;
    for (size_t i = 0; (f = family_at(i)); i++)
        if (f->sign && json_get(&r->text, f->sign, &j)) return f;
    return NULL;
}

/* The family that a version of a file stands for. */
static enum err_code find_version(struct reader *r)
{
    struct json j;
    double number;
    const char *said = "";
    char text[32] = "", known[160] = "";
    if (!r->family->versions) return ERR_OK;
    r->alias = r->family;
    if (json_get(&r->text, "version", &j) && json_is_number(&j)) {
        TRY(json_num(&j, &number, r->e));
        (void)snprintf(text, sizeof text, "%.1f", number);
        said = text;
    } else if (json_get(&r->text, "version", &j)) {
        TRY(json_str(&j, &said, r->e));
    }
    for (const struct family_version *v = r->alias->versions; v->family; v++) {
        const size_t at = strlen(known);
        if (strcmp(v->version, said) == 0) {
            r->family = family_named(v->family);
            return ERR_OK;
        }
        (void)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", v->version);
    }
    return err_set(r->e, ERR_INPUT, "%s: version \"%s\" of the %s family is not known (%s)", r->text.file,
                   text_clean(text, sizeof text, said, strlen(said)), r->alias->name, known);
}

/* A model around a decoder in a file of one part: its class says which decoder's keys those are; NULL it does not. */
static const struct family *find_class_around(struct reader *r)
{
    struct json list, first;
    const char *name;
    if (r->text.obj != r->root->obj || !json_get(r->root, "architectures", &list) || !json_at(&list, 0, NULL, &first) ||
        json_str(&first, &name, NULL) != ERR_OK)
        return NULL;
    return family_find_architecture(name);
}

static enum err_code find_by_name(struct reader *r)
{
    TRY(reader_text_part(r->root, &r->text, r->e));
    struct json j;
    const char *type = NULL;
    if (json_get(r->root, "model_type", &j) && json_is_string(&j)) {
        TRY(json_str(&j, &type, r->e));
        if (outside_is_draft(type)) return unknown_family(r, r->root, j.path, type);
    }
    r->family = find_marked(r);
    if (r->family) return ERR_OK;
    const struct json *where = &r->text;
    if (!json_get(&r->text, "model_type", &j)) {
        where = r->root;
        if (!json_get(r->root, "model_type", &j)) {
            struct json list, first;
            if (!json_get(r->root, "architectures", &list) || !json_at(&list, 0, NULL, &first)) {
                r->family = find_signed(r);
                if (r->family) return ERR_OK;
                return err_set(r->e, ERR_INPUT,
                               "%s: neither model_type nor architectures is there: not a Hugging Face config.json of a "
                               "language model",
                               r->root->file);
            }
            TRY(json_str(&first, &type, r->e));
            r->family = family_find_architecture(type);
            return r->family ? ERR_OK : unknown_family(r, where, "architectures[0]", type);
        }
    }
    TRY(json_str(&j, &type, r->e));
    r->family = family_find(type);
    if (!r->family && outside_is_around(type)) r->family = find_class_around(r);
    if (!r->family) return unknown_family(r, where, j.path, type);
    return json_get(r->root, READ_AS_KEY, &j) ? json_str(&j, &r->read_as, r->e) : ERR_OK;
}

static enum err_code find_family(struct reader *r)
{
    TRY(find_by_name(r));
    return find_version(r);
}

/* ---- architectures ---- */

/* What the class of a task has for a head: by the end of its name. */
enum task { TASK_HEADLESS, TASK_SEQUENCES, TASK_TOKENS, TASK_ANSWERS, TASK_REWARDS };

static const struct {
    const char *ending;
    enum task task;
} TASKS[] = {{"ForSequenceClassification", TASK_SEQUENCES},
             {"ForTokenClassification", TASK_TOKENS},
             {"ForQuestionAnswering", TASK_ANSWERS},
             {"ForAudioClassification", TASK_SEQUENCES},
             {"ForProcessRewardModel", TASK_REWARDS},
             {"ForRewardModel", TASK_REWARDS},
             {"RewardModel", TASK_REWARDS},
             {"Model", TASK_HEADLESS}};

/* The family whose decoder a class of a task stands on; NULL none. */
static const struct family *family_of_task(struct reader *r, const char *name, enum task *task)
{
    static const char *const USUAL[] = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration"};
    const size_t len = strlen(name);
    for (size_t i = 0; i < sizeof TASKS / sizeof TASKS[0]; i++) {
        const size_t end = strlen(TASKS[i].ending);
        if (len <= end || strcmp(name + len - end, TASKS[i].ending) != 0) continue;
        for (size_t k = 0; k < sizeof USUAL / sizeof USUAL[0]; k++) {
            const char *usual = arena_printf(r->arena, "%.*s%s", (int)(len - end), name, USUAL[k]);
            const struct family *f = usual ? family_find_architecture(usual) : NULL;
            *task = TASKS[i].task;
            if (f) return f;
        }
    }
    return NULL;
}

/* num_labels, or as many as id2label names; class default 2. */
static enum err_code read_labels(struct reader *r, int64_t *out)
{
    struct json j, names;
    *out = 2;
    const bool named = json_get(r->root, "id2label", &names) && json_is_object(&names) && json_len(&names) > 0;
    if (named) *out = (int64_t)json_len(&names);
    if (!json_get(r->root, "num_labels", &j)) return ERR_OK;
    TRY(json_int(&j, 1, 1 << 24, out, r->e));
    if (named && *out != (int64_t)json_len(&names))
        return err_set(r->e, ERR_INPUT, "%s: num_labels is %lld, and id2label names %zu", j.file, (long long)*out,
                       json_len(&names));
    return ERR_OK;
}

/* A head of labels in place of the tokens', or none. */
static enum err_code read_task(struct reader *r, const char *name, enum task task)
{
    struct model *m = r->m;
    char clean[64];
    int64_t labels = 2;
    text_clean(clean, sizeof clean, name, strlen(name));
    if (m->encoder.layers > 0 && !(task == TASK_HEADLESS && m->tied))
        return err_set(r->e, ERR_INPUT, "%s: architectures says %s, which has %s: not described of encoder-decoders",
                       r->root->file, clean, task == TASK_HEADLESS ? "no output head" : "another head");
    if (m->encoder.layers > 0) { /* published so, and served with the head that they are tied to */
        const char *text = arena_printf(r->arena, "%s has no output head: counted with the embedding as one", clean);
        return text ? reader_note(r, text) : err_nomem(r->e);
    }
    if (task == TASK_REWARDS)
        return err_set(r->e, ERR_INPUT,
                       "%s: architectures says %s, whose head has no shape that all such classes share: refused, not "
                       "guessed",
                       r->root->file, clean);
    if (task == TASK_SEQUENCES || task == TASK_TOKENS) TRY(read_labels(r, &labels));
    m->head_bias = task == TASK_TOKENS || task == TASK_ANSWERS;
    m->tied = false;
    m->draft.no_head = task == TASK_HEADLESS;
    m->draft.head_rows = task == TASK_HEADLESS ? 0 : labels;
    const char *text = task == TASK_HEADLESS ? arena_printf(r->arena, "%s has no output head", clean)
                                             : arena_printf(r->arena, "%s has a head of %lld labels, none of tokens",
                                                            clean, (long long)labels);
    return text ? reader_note(r, text) : err_nomem(r->e);
}

/* Whether a class is the family's: some have one name for several families. */
static bool lists(const struct family *f, const char *name)
{
    for (size_t i = 0; i < sizeof f->architectures / sizeof f->architectures[0] && f->architectures[i]; i++)
        if (strcasecmp(name, f->architectures[i]) == 0) return true;
    return false;
}

/* The class that a file names belongs to its family; what that class has for a head. Classes around a text part, and of
 * drafts, say other things. */
static enum err_code read_architecture(struct reader *r)
{
    struct json list, first;
    const char *name;
    enum task task = TASK_HEADLESS;
    char clean[64];
    if (r->family->draft || r->alias || r->text.obj != r->root->obj) return ERR_OK;
    if (!json_get(r->root, "architectures", &list) || !json_at(&list, 0, NULL, &first)) return ERR_OK;
    TRY(json_str(&first, &name, r->e));
    const size_t len = strlen(name), half = sizeof "EncoderModel" - 1;
    if (r->m->encoder.layers > 0 && len > half && strcmp(name + len - half, "EncoderModel") == 0)
        return err_set(r->e, ERR_INPUT,
                       "%s: architectures says %s, an encoder alone: ridge describes models that "
                       "generate",
                       list.file, text_clean(clean, sizeof clean, name, len));
    const bool decoder =
        len > sizeof "ForCausalLM" && strcmp(name + len - (sizeof "ForCausalLM" - 1), "ForCausalLM") == 0;
    if (r->m->encoder.layers > 0 && decoder && !lists(r->family, name))
        return err_set(r->e, ERR_INPUT, "%s: architectures says %s, a decoder alone: this family is described whole",
                       list.file, text_clean(clean, sizeof clean, name, len));
    const struct family *usual = lists(r->family, name) ? r->family : family_find_architecture(name);
    const struct family *f = usual ? usual : family_of_task(r, name, &task);
    text_clean(clean, sizeof clean, name, strlen(name));
    if (f && f != r->family)
        return err_set(r->e, ERR_INPUT, "%s: architectures says %s, of the %s family, but the rest says %s", list.file,
                       clean, f->name, r->family->name);
    if (f) return usual ? ERR_OK : read_task(r, name, task);
    const char *text = arena_printf(r->arena, "architectures says %s, which ridge does not know: counted as %s", clean,
                                    r->family->name);
    return text ? reader_note(r, text) : err_nomem(r->e);
}

/* ---- the whole ---- */

static enum err_code read_head(struct reader *r)
{
    struct model *m = r->m;
    TRY(reader_tied(r));
    TRY(reader_flag(r, &r->text, "weight_tying", m->tied, &m->tied)); /* LLaDA's spelling */
    m->norm = r->family->norm;
    m->embed_norm = r->family->embed_norm;
    m->embed_norm_plain = r->family->embed_norm_plain;
    m->head_bias = r->family->head_bias;
    if (r->family->head_bias_by_key) TRY(reader_flag(r, &r->text, "lm_head_bias", false, &m->head_bias));
    if (!r->family->positions) return ERR_OK;
    if (m->max_context_tokens == 0)
        return err_set(r->e, ERR_INPUT, "%s: n_positions is missing: the learned position table has that many rows",
                       r->text.file);
    m->position_offset = r->family->position_offset;
    m->position_rows = m->max_context_tokens + m->position_offset;
    return ERR_OK;
}

/* What attends in a model, and what does instead. */
struct attending {
    const struct mixer *first, *recurrent; /* NULL none; first: one with a window where there is any */
    int64_t layers, windowed, sharing, choosing, pooled, striped;
};

static struct attending look_at(const struct model *m)
{
    struct attending r = {.first = NULL};
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct layer_kind *k = &m->kinds[i];
        const struct mixer *x = &k->mixer;
        if (x->kind == MIXER_RECURRENT) r.recurrent = x;
        if (x->kind == MIXER_NONE || x->kind == MIXER_RECURRENT) continue;
        r.layers += k->count;
        if (x->shares_kv) r.sharing += k->count;
        if (x->pool_tokens > 0) r.pooled += k->count;
        if (x->top_keys > 0) r.choosing += k->count;
        if (x->stripe_every > 0) r.striped += k->count;
        if (x->window_tokens) r.windowed += k->count;
        if (!r.first || (x->window_tokens && !r.first->window_tokens)) r.first = x;
    }
    return r;
}

/* "GQA, 20/24 within 1024", "MHA, 20/40 share KV"; "GQA 4/40, mamba-2" beside recurrent mixers. */
const char *reader_attention_text(struct arena *a, const struct model *m)
{
    const struct attending on = look_at(m);
    const struct mixer *x = on.first;
    if (!x) return on.recurrent ? recurrent_name(on.recurrent) : "none";
    const char *text = x->one_vector                            ? "MQA of keys that are values"
                       : x->kind == MIXER_LATENT && x->top_keys ? "MLA, sparse"
                       : x->kind == MIXER_LATENT                ? "MLA"
                       : x->kv_heads == x->heads                ? "MHA"
                       : x->kv_heads == 1                       ? "MQA"
                                                                : "GQA";
    const long long layers = m->layers;
    const bool all = on.recurrent && on.windowed == on.layers;
    const bool some = on.layers < m->layers; /* others have a state, or no mixer at all */
    if (on.recurrent || some) text = arena_printf(a, "%s %lld/%lld", text, (long long)on.layers, layers);
    if (all && text) text = arena_printf(a, "%s within %lld", text, (long long)x->window_tokens);
    if (on.windowed && !all && text)
        text = arena_printf(a, "%s, %lld/%lld within %lld", text, (long long)on.windowed, layers,
                            (long long)x->window_tokens);
    if (on.striped && text) text = arena_printf(a, "%s, %lld/%lld striped", text, (long long)on.striped, layers);
    if (m->loops > 1 && text) text = arena_printf(a, "%s, %lld times", text, (long long)m->loops);
    if (on.pooled && text) text = arena_printf(a, "%s, %lld/%lld compressed", text, (long long)on.pooled, layers);
    if (on.choosing && x->kind != MIXER_LATENT && text)
        text = arena_printf(a, "%s, %lld/%lld sparse", text, (long long)on.choosing, layers);
    if (on.sharing && text) text = arena_printf(a, "%s, %lld/%lld share KV", text, (long long)on.sharing, layers);
    return on.recurrent && text ? arena_printf(a, "%s, %s", text, recurrent_name(on.recurrent)) : text;
}

/* Layers; of files that list their blocks without a number, the length of the list. */
static enum err_code read_depth(struct reader *r)
{
    struct json j;
    const bool listed = r->family->hybrid != HYBRID_NONE && json_get(&r->text, "layers_block_type", &j);
    const int64_t n = listed ? (int64_t)json_len(&j) : 0;
    if (r->family->layers_key && json_get(&r->text, r->family->layers_key, &j))
        return json_int(&j, 1, LAYERS_MAX, &r->m->layers, r->e);
    return reader_dim(r, DIM_LAYERS, 1, n > 0 && n <= LAYERS_MAX ? n : -1, &r->m->layers);
}

/* Sizes and layers. */
static enum err_code read_structure(struct reader *r)
{
    struct model *m = r->m;
    TRY(reader_dim(r, DIM_POSITIONS, 0, 0, &m->max_context_tokens));
    if (r->family->structure) return r->family->structure(r);
    TRY(reader_dim(r, DIM_HIDDEN, 1, -1, &m->hidden));
    TRY(read_depth(r));
    TRY(reader_dim(r, DIM_VOCAB, 1, -1, &m->vocab));
    TRY(reader_layers(r));
    m->diffusion = m->bidirectional = r->family->diffusion;
    m->block_causal = r->family->block_causal;
    for (size_t i = 0; i < m->kinds_n && m->bidirectional; i++)
        if (m->kinds[i].mixer.window_tokens > 0)
            return err_set(r->e, ERR_INPUT, "%s: windows of tokens that see each other are not described",
                           r->text.file);
    return ERR_OK;
}

/* A file of one family read as another's. */
static enum err_code note_read_as(struct reader *r)
{
    char clean[64];
    if (!r->read_as) return ERR_OK;
    const char *text = arena_printf(r->arena,
                                    "a file of %s read as the %s family, as stated: what it says beyond that family is "
                                    "not counted",
                                    text_clean(clean, sizeof clean, r->read_as, strlen(r->read_as)), r->family->name);
    return text ? reader_note(r, text) : err_nomem(r->e);
}

int64_t model_positions(const struct model *m) { return m->position_rows - m->position_offset; }

int64_t model_context_limit(const struct model *m)
{
    return model_positions(m) > 0 ? model_positions(m) : m->max_context_tokens;
}

enum err_code model_check_context(const struct model *m, int64_t tokens, struct err *e)
{
    if (m->encoder.layers > 0 && tokens < m->encoder.start_tokens)
        return err_set(e, ERR_USAGE, "%s: context %lld, but its decoder begins with %lld tokens", m->name,
                       (long long)tokens, (long long)m->encoder.start_tokens);
    if (model_positions(m) == 0 || tokens <= model_positions(m)) return ERR_OK;
    return err_set(e, ERR_USAGE, "%s: context %lld, but its learned position table ends at %lld", m->name,
                   (long long)tokens, (long long)model_positions(m));
}

/* as: the family that the file is read as, whatever it says; NULL its own. */
static enum err_code parse(struct arena *a, const struct json *j, const struct family *as, struct model *out,
                           struct err *e)
{
    struct model m = {.source = j->file, .stored_bytes = (double)NAN, .stored_elems = (double)NAN};
    struct reader r = {.arena = a, .root = j, .m = &m, .family = as, .read_as = as ? "another" : NULL, .e = e};
    if (!json_is_object(j)) return json_want(j, "an object (a Hugging Face config.json)", e);
    TRY(as ? reader_text_part(j, &r.text, e) : find_family(&r));
    m.family = r.family->name;
    m.adapted_vocabulary = r.family->adapted_vocabulary;
    m.foreign_states = !r.family->engine_states && (r.family->recurrent || r.family->structure);
    TRY(reader_refuse_foreign(&r));
    TRY(read_structure(&r));
    TRY(read_head(&r));
    TRY(read_architecture(&r));
    TRY(note_read_as(&r));
    if (r.family->extend) TRY(r.family->extend(&r));
    TRY(draft_read_mtp(&r));
    TRY(stored_read(a, j, &r.text, r.family->router_fp32, &m, e));
    m.attention = reader_attention_text(a, &m);
    TRY(towers_read(&r));
    if (r.sizes_of_class)
        TRY(reader_note(
            &r, arena_printf(a, "sizes that %s does not state are those of the class of %s", r.text.path, m.family)));
    (void)json_hash(j, m.hash);
    if (!m.attention) return err_nomem(e);
    *out = m;
    return ERR_OK;
}

enum err_code model_parse(struct arena *a, const struct json *j, struct model *out, struct err *e)
{
    return parse(a, j, NULL, out, e);
}

enum err_code reader_parse_as(struct arena *a, const struct json *j, const struct family *as, struct model *out,
                              struct err *e)
{
    return parse(a, j, as, out, e);
}

bool reader_family_unknown(struct arena *a, const struct json *j)
{
    struct err ignored = {.code = ERR_OK};
    struct reader r = {.arena = a, .root = j, .e = &ignored};
    return json_is_object(j) && find_family(&r) != ERR_OK && r.unknown;
}
