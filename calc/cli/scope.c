#include "calc/cli/scope.h"

#include <string.h>
#include <strings.h>

#include "calc/cli/this_cpu.h"
#include "calc/model/stored.h"
#include "calc/model/whatif.h"

/* ---- lists, settings, devices ---- */

enum err_code scope_list(struct arena *a, const char *text, const char *what, const char ***out, size_t *n,
                         struct err *e)
{
    size_t count = 1;
    for (const char *p = text; *p; p++) count += *p == ',';
    const char **list = arena_array(a, count, sizeof *list);
    if (!list) return err_nomem(e);
    *n = 0;
    for (const char *p = text;;) {
        const size_t len = strcspn(p, ",");
        if (len == 0) return err_set(e, ERR_USAGE, "%s: an empty name in the list '%.80s'", what, text);
        list[*n] = arena_strndup(a, p, len);
        if (!list[*n]) return err_nomem(e);
        (*n)++;
        if (p[len] == '\0') break;
        p += len + 1;
    }
    *out = list;
    return ERR_OK;
}

/* Up to the comma that ends a setting: not one within quotes, nor within brackets that are closed later. */
static size_t setting_len(const char *text)
{
    size_t first = 0, depth = 0;
    bool quoted = false, comma = false;
    for (size_t i = 0; text[i]; i++) {
        const char c = text[i];
        if (c == ',' && !comma) {
            first = i;
            comma = true;
        }
        if (quoted && c == '\\' && text[i + 1]) {
            i++;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            depth += c == '[' || c == '{';
            depth -= depth > 0 && (c == ']' || c == '}');
            if (c == ',' && depth == 0) return i;
        }
    }
    return comma && (quoted || depth > 0) ? first : strlen(text);
}

enum err_code scope_settings(struct arena *a, const char *text, const struct model_setting **out, size_t *n,
                             struct err *e)
{
    size_t count = 0, room = 1;
    *out = NULL;
    *n = 0;
    if (!text) return ERR_OK;
    for (const char *p = text; *p; p++) room += *p == ',';
    const char **list = arena_array(a, room, sizeof *list);
    struct model_setting *set = arena_array(a, room, sizeof *set);
    if (!list || !set) return err_nomem(e);
    for (const char *p = text;;) {
        const size_t len = setting_len(p);
        if (len == 0) return err_set(e, ERR_USAGE, "--set: an empty name in the list '%.80s'", text);
        list[count] = arena_strndup(a, p, len);
        if (!list[count++]) return err_nomem(e);
        if (p[len] == '\0') break;
        p += len + 1;
    }
    for (size_t i = 0; i < count; i++) {
        const char *equals = strchr(list[i], '=');
        if (!equals || equals == list[i] || !equals[1])
            return err_set(e, ERR_USAGE, "--set: '%.60s' is no KEY=VALUE", list[i]);
        set[i].key = arena_strndup(a, list[i], (size_t)(equals - list[i]));
        set[i].value = equals + 1;
        if (!set[i].key) return err_nomem(e);
    }
    *out = set;
    *n = count;
    return ERR_OK;
}

enum err_code scope_formats(struct arena *a, const struct option_values *v, struct err *e)
{
    static const char *const BOTH[] = {"weights", "kv", "activations"};
    for (size_t i = 0; i < sizeof BOTH / sizeof BOTH[0]; i++) {
        const char *option = option_get(v, BOTH[i]), *change = whatif_given(a, option_get(v, "what-if"), BOTH[i]);
        if (option && change && strcasecmp(option, change) != 0)
            return err_set(e, ERR_USAGE, "--%s %.40s and --what-if %s=%.40s: one of the two", BOTH[i], option, BOTH[i],
                           change);
    }
    return ERR_OK;
}

enum err_code scope_gpu(struct arena *a, const struct option_values *v, const char *text, struct hw *hw, int64_t *n,
                        struct err *e)
{
    const char *colon = strrchr(text, ':');
    *n = 1;
    if (colon) {
        if (units_parse_count(colon + 1, 1, 1 << 20, n, e) != ERR_OK) return err_prepend(e, "-g %.60s: ", text);
        text = arena_strndup(a, text, (size_t)(colon - text));
        if (!text) return err_nomem(e);
    }
    int64_t threads;
    bool this_cpu;
    TRY(this_cpu_named(text, &this_cpu, &threads, e));
    if (!this_cpu) return hw_load(a, text, hw, e);
    struct this_cpu cpu;
    TRY(this_cpu_load(a, option_get(v, "store"), threads, &cpu, e));
    *hw = cpu.hw;
    return ERR_OK;
}

const char *scope_gpu_hash(const struct hw *hw, char out[HASH_TEXT_MAX])
{
    uint64_t h = hash_start();
    for (enum hw_field f = 0; f < HW_FIELDS_N; f++) {
        const double v = hw_value(hw, f);
        h = hash_more(h, &v, sizeof v);
    }
    return hash_text(out, h);
}

/* ---- what the options open ---- */

static enum err_code choose(const struct option_values *v, const char *name, const char *const *names, size_t n,
                            const char *all, size_t *out, struct err *e)
{
    const char *text = option_get(v, name);
    if (!text) return ERR_OK;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return ERR_OK;
        }
    return err_set(e, ERR_USAGE, "--%s is %s, not '%.40s'", name, all, text);
}

static enum err_code open_model(struct arena *a, const struct option_values *v, struct scope *s, struct err *e)
{
    const struct model_setting *set;
    size_t n;
    struct lora_request adapters;
    int64_t block = 0, steps = 0, source = 0;
    const char *name = option_get(v, "model");
    TRY(scope_settings(a, option_get(v, "set"), &set, &n, e));
    if (!name) {
        static const char *const OF_MODEL[] = {"set",   "weights", "kv",    "activations", "what-if",
                                               "layer", "block",   "steps", "max-loras",   "no-towers"};
        for (size_t i = 0; i < sizeof OF_MODEL / sizeof OF_MODEL[0]; i++) {
            if (option_get(v, OF_MODEL[i])) return err_set(e, ERR_USAGE, "--%s needs -m", OF_MODEL[i]);
        }
        return ERR_OK;
    }
    TRY(scope_formats(a, v, e));
    TRY(model_load(a, name, set, n, &s->model, e));
    if (option_get(v, "weights")) TRY(stored_set_all(&s->model, option_get(v, "weights"), e));
    if (option_get(v, "kv")) TRY(stored_set_cache(&s->model, option_get(v, "kv"), e));
    if (option_get(v, "activations")) TRY(dtype_find(option_get(v, "activations"), &s->model.activations, e));
    TRY(option_count(v, "block", 1, 1 << 20, &block, e));
    TRY(option_count(v, "steps", 1, 1 << 20, &steps, e));
    TRY(model_set_blocks(&s->model, block, steps, e));
    TRY(option_count(v, "source", 1, 1 << 30, &source, e));
    if (source > 0) TRY(model_set_source(&s->model, source, e));
    if (s->model.encoder.layers > 0 && s->model.encoder.source_tokens == 0)
        return err_set(e, ERR_USAGE, "%s: its file does not say how long a source is: --source N", s->model.name);
    if (option_get(v, "what-if")) TRY(whatif_apply_all(a, &s->model, option_get(v, "what-if"), e));
    TRY(layout_options_towers(v, &s->model, e));
    TRY(lora_options_parse(v, 0, &adapters, e));
    TRY(lora_options_apply(&adapters, &s->model, e));
    if (s->model.weights_unknown)
        return err_set(e, ERR_INPUT, "%s: %s; state the format with --weights", s->model.source,
                       s->model.weights_unknown);
    s->quantity.model = &s->model;
    return ERR_OK;
}

static enum err_code open_device(struct arena *a, const struct option_values *v, struct scope *s, struct err *e)
{
    int64_t tp = 0;
    TRY(option_count(v, "tp", 1, 1 << 20, &tp, e));
    if (!option_get(v, "gpu")) {
        if (tp) s->quantity.tp = tp;
        return ERR_OK;
    }
    TRY(scope_gpu(a, v, option_get(v, "gpu"), &s->hw, &s->gpus, e));
    if (s->quantity.course) hw_pin_course(&s->hw);
    s->quantity.tp = tp ? tp : s->gpus;
    if (s->gpus > 1 && s->gpus % s->quantity.tp != 0)
        return err_set(e, ERR_USAGE, "%lld GPUs are not a multiple of --tp %lld", (long long)s->gpus,
                       (long long)s->quantity.tp);
    if (s->gpus > 1) s->quantity.copies = s->gpus / s->quantity.tp;
    return quantity_device(&s->quantity, &s->hw, e);
}

enum err_code scope_open(struct arena *a, const struct option_values *v, const char *free, struct scope *out,
                         struct err *e)
{
    static const char *const PHASES[] = {"any", "prefill", "decode"}, *const FIDELITIES[] = {"bound", "roofline"},
                             *const PROMPTS[] = {"one", "together"};
    int64_t layer = 0, tokens = 0;
    size_t phase = 0, fidelity = STEP_ROOFLINE, prompts = 0;
    *out = (struct scope){.gpus = 0};
    struct quantity_scope *q = &out->quantity;
    TRY(quantity_open(a, NULL, option_get(v, "course") != NULL, q, e));
    TRY(choose(v, "phase", PHASES, 3, "any, prefill or decode", &phase, e));
    TRY(choose(v, "fidelity", FIDELITIES, 2, "bound or roofline", &fidelity, e));
    TRY(choose(v, "prefill", PROMPTS, 2, "one or together", &prompts, e));
    TRY(option_count(v, "layer", 1, 1 << 20, &layer, e));
    TRY(option_count(v, "tokens", 1, 1 << 20, &tokens, e));
    out->phase = (enum quantity_phase)phase;
    out->tokens = tokens;
    q->prefill_together = prompts == 1;
    if (!q->course || option_given(v, "fidelity")) q->fidelity = (enum step_fidelity)fidelity;
    if (tokens) q->tokens = sym_int(q->c, tokens);
    TRY(open_model(a, v, out, e));
    if (q->model && layer > (int64_t)q->model->kinds_n)
        return err_set(e, ERR_USAGE, "--layer %lld: %s has %zu kind%s of layer", (long long)layer, q->model->name,
                       q->model->kinds_n, q->model->kinds_n == 1 ? "" : "s");
    if (tokens && q->model && q->model->diffusion)
        return err_set(e, ERR_USAGE, "--tokens: a pass of %s takes %s", q->model->name,
                       model_passes_whole(q->model) ? "the whole sequence" : "the tokens of a block (--block)");
    q->layer = (int)layer - 1;
    if (free) TRY(scope_free(out, free, e));
    return open_device(a, v, out, e);
}

enum err_code scope_context(const struct scope *s, int64_t context, struct err *e)
{
    const struct model *m = s->quantity.model;
    if (m) TRY(model_check_context(m, context, e));
    if (s->tokens > context)
        return err_set(e, ERR_USAGE, "--tokens %lld: the context, %lld tokens, has the new ones in it",
                       (long long)s->tokens, (long long)context);
    return ERR_OK;
}

enum err_code scope_numbers(const struct scope *s, const struct option_values *v, struct sym_binding out[2], size_t *n,
                            struct err *e)
{
    int64_t batch = 0, context = 0;
    *n = 0;
    TRY(option_count(v, "batch", 1, 1 << 24, &batch, e));
    TRY(option_count(v, "context", 1, 1 << 30, &context, e));
    if (context) TRY(scope_context(s, context, e));
    if (batch) out[(*n)++] = (struct sym_binding){s->quantity.y.B, sym_int(s->quantity.c, batch)};
    if (context) out[(*n)++] = (struct sym_binding){s->quantity.y.S, sym_int(s->quantity.c, context)};
    return ERR_OK;
}
