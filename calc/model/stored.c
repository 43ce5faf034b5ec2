#include "calc/model/stored.h"

#include <stdio.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/model/family.h"
#include "calc/model/stored_methods.h"

static bool is_float(const struct dtype *d) { return d->bits >= 16; }

enum err_code stored_set_all(struct model *m, const char *name, struct err *e)
{
    struct dtype d, rest;
    TRY(dtype_find(name, &d, e));
    if (is_float(&d)) {
        for (size_t c = 0; c < WEIGHT_CLASSES; c++) m->weights[c] = d;
    } else {
        const bool known = !m->weights_unknown && m->weights[WEIGHT_EMBED].name &&
                           is_float(&m->weights[WEIGHT_EMBED]) &&
                           dtype_find(m->weights[WEIGHT_EMBED].name, &rest, NULL) == ERR_OK;
        TRY(dtype_find(known ? m->weights[WEIGHT_EMBED].name : "bf16", &rest, e));
        for (size_t c = 0; c < WEIGHT_CLASSES; c++) m->weights[c] = rest;
        m->weights[WEIGHT_MIXER] = m->weights[WEIGHT_FFN] = m->weights[WEIGHT_EXPERT] = d;
    }
    if (m->whole_kinds_n > 0) {
        m->kinds = m->whole_kinds;
        m->kinds_n = m->whole_kinds_n;
        m->order = m->whole_order;
        m->whole_kinds_n = 0;
    }
    m->weights_unknown = NULL;
    m->formats_assumed = NULL;
    return ERR_OK;
}

bool stored_has_cache(const struct model *m)
{
    bool kept = false;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        kept = kept || (x->kind != MIXER_NONE && x->kind != MIXER_RECURRENT) || model_keeps_inputs(x);
    }
    return kept && !model_passes_whole(m);
}

/* All layers that have a cache have one of latents, of which queries see chosen ones. */
static bool has_chosen_latents(const struct model *m)
{
    bool any = false;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        if (x->kind == MIXER_NONE || x->kind == MIXER_RECURRENT) continue;
        if (x->kind != MIXER_LATENT || (x->top_keys == 0 && !x->one_vector)) return false;
        any = true;
    }
    return any;
}

const char *stored_cache_fp8(const struct model *m) { return has_chosen_latents(m) ? "fp8-ds-mla" : "fp8"; }

const char *stored_cache_note(const struct model *m)
{
    if (!m->kv.name || strcmp(m->kv.name, "fp8") != 0 || !has_chosen_latents(m)) return NULL;
    return "the cache is fp8 with one scale, as TensorRT-LLM keeps these latents; vLLM and SGLang keep more bytes of "
           "them where they are told fp8 (--kv fp8-ds-mla)";
}

enum err_code stored_set_cache(struct model *m, const char *name, struct err *e)
{
    struct dtype d;
    TRY(dtype_find(name, &d, e));
    if (!stored_has_cache(m))
        return err_set(e, ERR_USAGE, "%s has no KV cache whose format could be %.40s: %s", m->name, name,
                       model_passes_whole(m) ? "every pass takes the whole sequence"
                                             : "its layers keep states of one size (--what-if state=bf16)");
    if (d.weights_only)
        return err_set(e, ERR_USAGE, "%.40s is a format of weights: no engine keeps a cache in it", name);
    if (d.group_in == GROUP_LATENT && !has_chosen_latents(m))
        return err_set(e, ERR_USAGE,
                       "%.40s is a cache of latents of which keys are chosen, and %s has layers of another kind", name,
                       m->name);
    for (size_t i = 0; i < m->kinds_n && d.group_in > 0; i++) {
        const struct mixer *x = &m->kinds[i].mixer;
        const int64_t width[] = {x->head_dim, x->v_head_dim};
        for (size_t w = 0; w < 2 && x->kind == MIXER_ATTENTION; w++)
            if (width[w] % d.group_in != 0)
                return err_set(e, ERR_USAGE,
                               "%.40s has groups of %lld elements, and heads of %s are %lld wide: a group would run "
                               "across heads (int4-head, int8-head, fp8-head have one a head)",
                               name, (long long)d.group_in, m->name, (long long)width[w]);
    }
    m->kv = d;
    return ERR_OK;
}

/* The first of `keys` in text, then in root. */
static bool first_of(const struct json *text, const struct json *root, const char *const *keys, struct json *out)
{
    for (size_t i = 0; keys[i]; i++)
        if (json_get(text, keys[i], out) || json_get(root, keys[i], out)) return true;
    return false;
}

/* A method, its reader, and the members with members of their own that it reads beside those of all. */
struct method {
    const char *name;
    enum err_code (*read)(struct stored *s, const struct json *q);
    const char *reads[5];
};

static const struct method METHODS[] = {
    {"fp8", stored_fp8, {NULL}},
    {"fbgemm_fp8", stored_fp8_rows, {NULL}},
    {"mxfp4", stored_mxfp4, {NULL}},
    {"mxfp8", stored_mxfp8, {NULL}},
    {"awq", stored_awq, {NULL}},
    {"gptq", stored_gptq, {NULL}},
    {"bitsandbytes", stored_bitsandbytes, {NULL}},
    {"bitnet", stored_bitnet, {NULL}},
    {"compressed-tensors", stored_compressed, {NULL}},
    {"modelopt", stored_modelopt, {NULL}},
    {"modelopt_fp4", stored_modelopt, {NULL}},
    {"modelopt_mxfp8", stored_modelopt, {NULL}},
    {"modelopt_mixed", stored_modelopt, {NULL}},
    {"auto-round", stored_auto_round, {"extra_config", "block_name_to_quantize"}},
    {"intel/auto-round", stored_auto_round, {"extra_config", "block_name_to_quantize"}},
    {"torchao", stored_torchao, {"quant_type", "quant_type_kwargs"}},
    {"hqq", stored_hqq, {"quant_config", "skip_modules"}},
    {"quark", stored_quark, {"global_quant_config", "layer_quant_config", "exclude", "export", "algo_config"}},
};

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++)
        if (strcmp(METHODS[i].name, name) == 0) return &METHODS[i];
    return NULL;
}

/* Members that nothing here reads, and that could change formats: no price rather than a wrong one. method: NULL none
 * that is known. */
static bool has_unread(const struct json *q, const struct method *method, bool names_are_keys, const char **which)
{
    static const char *const READ[] = {"modules_to_not_convert",
                                       "ignored_layers",
                                       "ignore",
                                       "exclude_modules",
                                       "llm_int8_skip_modules",
                                       "weight_block_size",
                                       "config_groups",
                                       "kv_cache_scheme",
                                       "quantized_layers",
                                       "dynamic",
                                       "meta",
                                       "dataset",
                                       "producer"};
    struct json item;
    for (size_t i = 0; i < json_len(q) && json_at(q, i, which, &item); i++) {
        bool read = names_are_keys && (strchr(*which, '.') || stored_mlx_part(&item));
        for (size_t k = 0; k < sizeof READ / sizeof READ[0]; k++) read = read || strcmp(READ[k], *which) == 0;
        for (size_t k = 0; method && k < sizeof method->reads / sizeof method->reads[0] && method->reads[k]; k++)
            read = read || strcmp(method->reads[k], *which) == 0;
        if (read) continue;
        if (strchr(*which, '.') || ((json_is_object(&item) || json_is_array(&item)) && json_len(&item) > 0))
            return true;
    }
    return false;
}

static enum err_code read_quantization(struct stored *s, const struct json *q)
{
    struct json j;
    const char *name = "", *unread;
    if (!json_is_object(q)) return json_want(q, "an object", s->e);
    if (json_get(q, "quant_method", &j)) TRY(json_str(&j, &name, s->e));
    const struct method *method = find_method(name);
    const bool mlx = *name == '\0' && (json_has(q, "group_size") || json_has(q, "mode"));
    if (*name != '\0' && !method)
        return stored_unknown(s, "stored with quantisation method \"%s\", which ridge cannot price", name);
    if (has_unread(q, method, mlx, &unread))
        return stored_unknown(s, "stored in formats that \"%s\" of its quantisation changes in ways that are not read",
                              unread);
    if (mlx) return stored_mlx(s, q);
    if (method) return method->read(s, q);
    if (json_has(q, "config_groups")) return stored_compressed(s, q);
    return stored_unknown(s, "quantised (its %s names no quant_method)", q->path);
}

/* A float format as a file names it; "auto" is none. */
static enum err_code float_of(const struct json *j, struct dtype *d, bool *said, struct err *e)
{
    const char *name;
    TRY(json_str(j, &name, e));
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    *said = strcmp(name, "auto") != 0;
    if (!*said) return ERR_OK;
    return dtype_find(name, d, NULL) == ERR_OK && is_float(d) ? ERR_OK
                                                              : json_want(j, "float32, float16 or bfloat16", e);
}

/* dtype or torch_dtype, of the text part or of the whole; those that contradict each other are refused. */
static enum err_code read_float(const struct json *root, const struct json *text, struct dtype *d, bool *said,
                                struct err *e)
{
    static const char *const KEYS[] = {"dtype", "torch_dtype"};
    const struct json *const parts[] = {text, root};
    struct json first = {.file = NULL}, j;
    *said = false;
    TRY(dtype_find("bf16", d, e));
    for (size_t i = 0; i < 4; i++) {
        struct dtype other;
        bool known;
        if (!json_get(parts[i / 2], KEYS[i % 2], &j)) continue;
        TRY(float_of(&j, &other, &known, e));
        if (!known) continue;
        if (*said && !dtype_same(&other, d))
            return err_set(e, ERR_INPUT, "%s: %s and %s say different formats (%s and %s) for one quantity", j.file,
                           first.path, j.path, d->name, other.name);
        if (!*said) first = j;
        *said = true;
        *d = other;
    }
    return ERR_OK;
}

/* Recurrent states are kept in fp32 unless the file says otherwise. */
static enum err_code read_state(const struct json *text, const struct json *root, struct model *m, struct err *e)
{
    static const char *const KEYS[] = {"mamba_ssm_cache_dtype", "mamba_ssm_dtype", "inference_state_dtype" /* xLSTM */,
                                       NULL};
    struct json j;
    const char *name = "fp32";
    m->state_assumed = !first_of(text, root, KEYS, &j);
    if (!m->state_assumed) TRY(json_str(&j, &name, e));
    if (strncmp(name, "torch.", 6) == 0) name += 6;
    if (strcmp(name, "auto") == 0) name = m->activations.name;
    if (dtype_find(name, &m->state, NULL) != ERR_OK || !is_float(&m->state))
        return json_want(&j, "float32, float16 or bfloat16", e);
    return ERR_OK;
}

/* ---- several statements of one quantisation ---- */

enum { STATEMENTS_MAX = 7 };

struct statement {
    struct json object;
    bool modelopt; /* hf_quant_config.json's, which names no method */
};

static enum err_code find_statements(const struct json *root, const struct json *text, struct statement *out, size_t *n,
                                     struct err *e)
{
    static const char *const KEYS[] = {"quantization_config", "quantization", "compression_config"};
    const struct json *const parts[] = {text, root};
    struct json j;
    *n = 0;
    if (json_get(root, "hf_quant_config.quantization", &j)) {
        if (!json_is_object(&j)) return json_want(&j, "an object", e);
        out[(*n)++] = (struct statement){j, true};
    }
    for (size_t i = 0; i < 3; i++)
        for (size_t p = 0; p < (text->obj == root->obj ? 1 : 2); p++)
            if (json_get(parts[p], KEYS[i], &j)) out[(*n)++] = (struct statement){j, false};
    return ERR_OK;
}

/* The format that a plan gives linear layers: by itself, or of experts by its first rule that has one. */
static const struct dtype *main_format(const struct format_plan *p)
{
    if (p->linear) return p->linear;
    for (size_t i = 0; i < p->rules_n; i++)
        if (p->rule[i].format) return p->rule[i].format;
    return NULL;
}

/* A second statement must name the format of the first; lists of what stays may differ in their spelling. */
static enum err_code compare_statement(struct stored *s, const struct statement *first, const struct statement *other)
{
    struct model copy = *s->m;
    struct stored t = {.arena = s->arena, .m = &copy, .plan = {.file = s->plan.file}, .e = s->e};
    TRY(other->modelopt ? stored_modelopt(&t, &other->object) : read_quantization(&t, &other->object));
    const struct dtype *a = main_format(&s->plan), *b = main_format(&t.plan);
    const bool same = a && b ? a->bits == b->bits && a->group_in == b->group_in && a->block_out == b->block_out &&
                                   strcmp(a->compute, b->compute) == 0
                             : a == b;
    if (same && !copy.weights_unknown) return ERR_OK;
    s->m->weights_unknown = arena_printf(s->arena, "quantised in two ways: %s says %s, %s says %s", first->object.path,
                                         a ? a->name : "no format", other->object.path,
                                         copy.weights_unknown ? "something that ridge cannot price"
                                         : b                  ? b->name
                                                              : "no format");
    return s->m->weights_unknown ? ERR_OK : err_nomem(s->e);
}

/* Mamba-1: methods that convert every linear layer differ in whether the two of the time step are among them. */
static bool scans(const struct layer_kind *k)
{
    return k->mixer.kind == MIXER_RECURRENT && k->mixer.recurrence.block == RECURRENT_SELECTIVE;
}

static enum err_code note_scans(struct stored *s)
{
    static const char TEXT[] = "the matrices of a scan's time steps are taken to be quantised as other linear layers "
                               "are, unless the file's list names them";
    s->m->notes = s->m->notes ? arena_printf(s->arena, "%s; %s", s->m->notes, TEXT) : TEXT;
    return s->m->notes ? ERR_OK : err_nomem(s->e);
}

enum err_code stored_read(struct arena *a, const struct json *root, const struct json *text, bool router_fp32,
                          struct model *m, struct err *e)
{
    struct statement one[STATEMENTS_MAX];
    size_t n;
    struct dtype d;
    bool said;
    TRY(read_float(root, text, &d, &said, e));
    for (size_t c = 0; c < WEIGHT_CLASSES; c++) m->weights[c] = d;
    if (router_fp32) TRY(dtype_find("fp32", &m->weights[WEIGHT_ROUTER], e));
    TRY(dtype_find(is_float(&d) && d.bits < 32 ? d.name : "bf16", &m->activations, e));
    m->kv = m->activations;
    if (!said) m->formats_assumed = "the file names no dtype: bf16 is assumed (--weights states another)";
    if (d.bits > 16) m->formats_assumed = "weights are stored in fp32; activations and cache are taken as bf16 (--kv)";
    TRY(read_state(text, root, m, e));
    TRY(find_statements(root, text, one, &n, e));
    struct json j;
    struct stored s = {.arena = a, .m = m, .plan = {.file = root->file}, .e = e};
    const bool experts = json_get(text, "expert_dtype", &j);
    if (n == 0 && !experts) return ERR_OK;
    if (n > 0) TRY(one[0].modelopt ? stored_modelopt(&s, &one[0].object) : read_quantization(&s, &one[0].object));
    if (experts) TRY(stored_expert_dtype(&s, &j));
    if (n == 0) return format_plan_apply(a, &s.plan, m, e);
    for (size_t i = 1; i < n && !m->weights_unknown; i++) TRY(compare_statement(&s, &one[0], &one[i]));
    for (size_t i = 0; i < m->kinds_n && !m->weights_unknown; i++)
        if (!module_covers(family_named(m->family), &m->kinds[i])) /* tensors beside the file may tell */
            TRY(stored_unknown(&s, "quantised, but not how: of its layers of %s it is not known which matrices are",
                               m->kinds[i].label));
    if (m->weights_unknown) return ERR_OK;
    TRY(format_plan_apply(a, &s.plan, m, e));
    for (size_t i = 0; i < m->kinds_n; i++)
        if (s.plan.linear && scans(&m->kinds[i])) return note_scans(&s);
    return ERR_OK;
}

const struct dtype *model_linear_format(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].ffn.kind == FFN_MOE) return &m->weights[WEIGHT_EXPERT];
    return &m->weights[WEIGHT_FFN];
}
