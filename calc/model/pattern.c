#include "calc/model/pattern.h"

#include <string.h>

enum { ROPE_INTERVAL = 4 }; /* class default of no_rope_layer_interval (Llama 4, SmolLM3) */

static enum err_code want_length(struct reader *r, const struct json *list)
{
    if (!json_is_array(list)) return json_want(list, "a list of one entry per layer", r->e);
    if (json_len(list) == (size_t)r->m->layers) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %s has %zu entries for %lld layers", list->file, list->path, json_len(list),
                   (long long)r->m->layers);
}

enum err_code pattern_letters(struct reader *r, const struct json *pattern, bool *flags)
{
    const char *s;
    TRY(json_str(pattern, &s, r->e));
    const size_t n = strlen(s);
    if (n == 0 || strspn(s, "LG") != n) return json_want(pattern, "letters L (sliding) and G (full)", r->e);
    for (int64_t i = 0; i < r->m->layers; i++) flags[i] = s[(size_t)i % n] == 'L' && i + 1 < r->m->layers;
    return ERR_OK;
}

enum err_code pattern_numbers(struct reader *r, const char *key, bool *flags)
{
    struct json list, item;
    if (!json_get(&r->text, key, &list))
        return err_set(r->e, ERR_INPUT, "%s: %s is missing: it says which layers slide", r->text.file, key);
    TRY(want_length(r, &list));
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        int64_t v;
        TRY(json_int(&item, 0, 1, &v, r->e));
        flags[i] = v == 1;
    }
    return ERR_OK;
}

enum err_code pattern_rope(struct reader *r, bool *flags)
{
    struct json list, j;
    int64_t interval = ROPE_INTERVAL;
    if (json_get(&r->text, "no_rope_layers", &list) && json_len(&list) > 0)
        return pattern_numbers(r, "no_rope_layers", flags);
    if (json_get(&r->text, "no_rope_layer_interval", &j)) TRY(json_int(&j, 1, LAYERS_MAX, &interval, r->e));
    for (int64_t i = 0; i < r->m->layers; i++) flags[i] = (i + 1) % interval != 0;
    return ERR_OK;
}

enum err_code pattern_turns(struct reader *r, const bool *windowed, bool *turns)
{
    bool any = false;
    for (int64_t i = 0; i < r->m->layers; i++) any = any || windowed[i];
    for (int64_t i = 0; i < r->m->layers; i++) turns[i] = r->family->nope != NOPE_FULL || windowed[i] || !any;
    return r->family->nope == NOPE_LIST ? pattern_rope(r, turns) : ERR_OK;
}

/* ---- experts ---- */

/* A list of layer numbers; sets or clears their flags. */
static enum err_code mark_listed(struct reader *r, const char *key, bool value, bool *flags)
{
    struct json list, item;
    if (!json_get(&r->text, key, &list)) return ERR_OK;
    if (!json_is_array(&list)) return json_want(&list, "a list of layer numbers", r->e);
    for (size_t i = 0; json_at(&list, i, NULL, &item); i++) {
        int64_t at;
        TRY(json_int(&item, 0, r->m->layers - 1, &at, r->e));
        flags[at] = value;
    }
    return ERR_OK;
}

/* mlp_layer_types: "dense" or "sparse". */
static enum err_code by_types(struct reader *r, const struct json *list, bool *moe)
{
    struct json item;
    TRY(want_length(r, list));
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) {
        const char *type;
        TRY(json_str(&item, &type, r->e));
        moe[i] = strcmp(type, "sparse") == 0 || strcmp(type, "moe") == 0 || strcmp(type, "hash_moe") == 0;
        if (!moe[i] && strcmp(type, "dense") != 0) return json_want(&item, "\"dense\" or \"sparse\"", r->e);
    }
    return ERR_OK;
}

/* Steps of a rule: layers from `first` to `last` whose number, counted from `from`, is a multiple of step. */
struct steps {
    int64_t first, last, step, from;
};

/* Dense layers before those with experts: no more than there are layers. */
static enum err_code read_prefix(struct reader *r, int64_t fallback, int64_t *out)
{
    struct json j;
    TRY(reader_dim(r, DIM_DENSE_PREFIX, 0, fallback, out));
    for (const char *const *key = dim_spellings(DIM_DENSE_PREFIX); *key && *out > r->m->layers; key++)
        if (json_get(&r->text, *key, &j))
            return err_set(r->e, ERR_INPUT, "%s: %s is %lld of %lld layers", r->text.file, j.path, (long long)*out,
                           (long long)r->m->layers);
    return ERR_OK;
}

static enum err_code read_steps(struct reader *r, bool listed, struct steps *s)
{
    const enum moe_rule rule = r->family->moe;
    struct json j;
    *s = (struct steps){0, r->m->layers - 1, 1, rule == MOE_DEEPSEEK ? 0 : 1};
    if (rule == MOE_EVERY || rule == MOE_OPTIONAL || rule == MOE_BESIDE || rule == MOE_SHARED) return ERR_OK;
    if (rule == MOE_DEEPSEEK || rule == MOE_COHERE || rule == MOE_HUNYUAN || rule == MOE_ERNIE)
        TRY(read_prefix(r, rule == MOE_ERNIE ? 1 : 0, &s->first));
    if (!listed) TRY(reader_dim(r, DIM_SPARSE_STEP, 1, 1, &s->step));
    if (rule == MOE_ERNIE && json_get(&r->text, "moe_layer_end_index", &j)) {
        if (r->family->pairs && json_is_array(&j) && json_len(&j) == 2) (void)json_at(&j, 0, NULL, &j);
        TRY(json_int(&j, -1, LAYERS_MAX, &s->last, r->e));
        if (s->last < 0) s->last = r->m->layers - 1;
    }
    return ERR_OK;
}

/* expert_layer_period, expert_layer_offset: class defaults 2 and 1; one expert is a dense layer. */
static enum err_code by_period(struct reader *r, int64_t experts, bool *moe)
{
    int64_t period = 2, offset = 1;
    struct json j;
    if (json_get(&r->text, "expert_layer_period", &j)) TRY(json_int(&j, 1, LAYERS_MAX, &period, r->e));
    if (json_get(&r->text, "expert_layer_offset", &j)) TRY(json_int(&j, 0, period - 1, &offset, r->e));
    for (int64_t i = 0; i < r->m->layers; i++) moe[i] = experts > 1 && i % period == offset;
    return ERR_OK;
}

/* One layer of a list of names. Those behind the last layer are of multi-token prediction. */
static enum err_code name_layer(struct reader *r, const struct json *j, int64_t n, int64_t further, bool *moe)
{
    if (n >= r->m->layers + further)
        return err_set(r->e, ERR_INPUT, "%s: %s names layer %lld, and there are %lld, from 0 on", j->file, j->path,
                       (long long)n, (long long)r->m->layers);
    if (n < r->m->layers && moe[n])
        return err_set(r->e, ERR_INPUT, "%s: %s names layer %lld twice", j->file, j->path, (long long)n);
    if (n < r->m->layers) moe[n] = true;
    return ERR_OK;
}

/* "4,5,6", or [4,5,6]: numbers of layers. */
static enum err_code by_names(struct reader *r, bool *moe)
{
    struct json j, next, item;
    const char *s;
    int64_t further = 0, at;
    for (int64_t i = 0; i < r->m->layers; i++) moe[i] = i > 0;
    if (!json_get(&r->text, "moe_layers_enum", &j)) return ERR_OK;
    if (json_get(&r->text, "num_nextn_predict_layers", &next)) TRY(json_int(&next, 0, LAYERS_MAX, &further, r->e));
    memset(moe, 0, (size_t)r->m->layers * sizeof *moe);
    for (size_t i = 0; json_is_array(&j) && json_at(&j, i, NULL, &item); i++) {
        TRY(json_int(&item, 0, LAYERS_MAX, &at, r->e));
        TRY(name_layer(r, &j, at, further, moe));
    }
    if (json_is_array(&j)) return ERR_OK;
    TRY(json_str(&j, &s, r->e));
    while (*s) {
        int64_t n = 0;
        const size_t digits = strspn(s, "0123456789");
        if (digits == 0 || digits > 6) return json_want(&j, "numbers of layers, separated by commas", r->e);
        for (size_t i = 0; i < digits; i++) n = 10 * n + (s[i] - '0');
        TRY(name_layer(r, &j, n, further, moe));
        s += digits;
        s += strspn(s, ", ");
    }
    return ERR_OK;
}

/* is_moe_layer: a flag a layer. Source: K-EXAONE's files; vLLM exaone_moe.py. */
static enum err_code by_flags(struct reader *r, const struct json *list, bool *moe)
{
    struct json item;
    TRY(want_length(r, list));
    for (size_t i = 0; json_at(list, i, NULL, &item); i++) TRY(json_bool(&item, &moe[i], r->e));
    return ERR_OK;
}

/* The list of types and that of flags, where a file has either; both must say the same. */
static enum err_code by_list(struct reader *r, bool *moe, bool *given)
{
    struct json types, flags;
    const bool typed = json_get(&r->text, "mlp_layer_types", &types);
    const bool flagged = json_get(&r->text, "is_moe_layer", &flags);
    *given = typed || flagged;
    if (flagged) TRY(by_flags(r, &flags, moe));
    if (!typed) return ERR_OK;
    bool *other = arena_array(r->arena, (size_t)r->m->layers, sizeof *other);
    if (!other) return err_nomem(r->e);
    TRY(by_types(r, &types, other));
    for (int64_t i = 0; i < r->m->layers; i++) {
        if (flagged && moe[i] != other[i])
            return err_set(r->e, ERR_INPUT, "%s: %s and %s contradict each other about layer %lld", flags.file,
                           types.path, flags.path, (long long)i);
        moe[i] = other[i];
    }
    return ERR_OK;
}

/* Of Gemma 4: whether layers have experts at all, however many are stated. */
#define SWITCH "enable_moe_block"

/* As fallback of a number of experts: none in the file, and no class default. */
#define NOT_STATED INT64_MAX

/* A key of experts beside their number that says there are some: neither null nor 0 nor false. *key: which; NULL none.
 */
static enum err_code other_expert_key(struct reader *r, const char **key)
{
    static const enum dim OTHERS[] = {DIM_EXPERTS_PER_TOKEN, DIM_EXPERT_WIDTH};
    struct json j;
    bool on = false;
    *key = NULL;
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        for (const char *const *spell = dim_spellings(OTHERS[i]); *spell; spell++) {
            double number = 1; /* a list, one a layer, says it too */
            if (!json_get(&r->text, *spell, &j)) continue;
            if (json_is_number(&j)) TRY(json_num(&j, &number, r->e));
            if (number != 0) *key = *spell; /* exact: 0 as it is written */
            if (*key) return ERR_OK;
        }
    TRY(reader_flag(r, &r->text, SWITCH, false, &on));
    if (on) *key = SWITCH;
    return ERR_OK;
}

/* The number of experts. Where experts are optional none stated is a dense model, unless another key tells of them. */
static enum err_code count_experts(struct reader *r, bool optional, int64_t *out)
{
    const char *key;
    bool on;
    TRY(reader_flag(r, &r->text, SWITCH, true, &on));
    if (optional && !on) {
        *out = 0;
        return ERR_OK;
    }
    TRY(reader_dim(r, DIM_EXPERTS, optional ? 0 : 1, optional ? NOT_STATED : -1, out));
    if (*out != NOT_STATED) return ERR_OK;
    *out = 0;
    TRY(other_expert_key(r, &key));
    if (!key) return ERR_OK;
    return err_set(r->e, ERR_INPUT, "%s: %s is missing, but %s says that there are experts: state it with --set %s=...",
                   r->text.file, dim_name(r->family, DIM_EXPERTS), key, dim_name(r->family, DIM_EXPERTS));
}

enum err_code pattern_experts(struct reader *r, bool *moe)
{
    const enum moe_rule rule = r->family->moe;
    int64_t experts;
    struct steps s;
    struct json list, item;
    bool given;
    if (rule == MOE_NONE || rule == MOE_LETTERS) return ERR_OK; /* letters: the hybrid pattern says */
    const bool optional = rule == MOE_OPTIONAL || rule == MOE_BESIDE || rule == MOE_SHARED;
    TRY(count_experts(r, optional, &experts));
    if (experts == 0) return ERR_OK;
    if (rule == MOE_PERIOD) return by_period(r, experts, moe);
    TRY(by_list(r, moe, &given));
    if (given) return ERR_OK;
    if (rule == MOE_NAMED) return by_names(r, moe);
    const bool listed = json_get(&r->text, "moe_layer_freq", &list) && json_is_array(&list);
    if (listed) TRY(want_length(r, &list));
    TRY(read_steps(r, listed, &s));
    for (int64_t i = 0; i < r->m->layers; i++) {
        int64_t on = 1;
        if (listed && json_at(&list, (size_t)i, NULL, &item)) TRY(json_int(&item, 0, 1, &on, r->e));
        moe[i] = on && i >= s.first && i <= s.last && (i + s.from) % s.step == 0;
    }
    if (rule == MOE_LLAMA4 && json_has(&r->text, "moe_layers") && json_get(&r->text, "moe_layers", &list)) {
        memset(moe, 0, (size_t)r->m->layers * sizeof *moe);
        return mark_listed(r, "moe_layers", true, moe);
    }
    return mark_listed(r, "mlp_only_layers", false, moe);
}
