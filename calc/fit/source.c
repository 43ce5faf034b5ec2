#include "calc/fit/source.h"

#include <math.h>
#include <string.h>

#include "calc/base/embed.h"
#include "calc/base/text.h"

static const char FOLDER[] = "configs/efficiency/";
static const char *const FRAMEWORKS[] = {"vllm", "trtllm", "sglang", "ridge"};
enum { FRAMEWORKS_N = sizeof FRAMEWORKS / sizeof FRAMEWORKS[0], NAME_MAX_BYTES = 200 };

const char *const source_transfers[SOURCE_TRANSFERS_N] = {
    [SOURCE_OWN] = "",
    [SOURCE_SAME_GENERATION] = "of its generation",
    [SOURCE_OTHER_GENERATION] = "of another generation",
};

/* -- the nearest measured device -- */

static double log_ratio(double x, double y) { return isnan(x) || isnan(y) ? 0 : fabs(log(x / y)); }

static double distance(const struct hw *x, const struct hw *y)
{
    return (efficiency_same_generation(x, y) ? 0 : 10) +
           log_ratio(x->peak_flops_per_s[HW_BF16], y->peak_flops_per_s[HW_BF16]) +
           log_ratio(x->bandwidth_bytes_per_s, y->bandwidth_bytes_per_s) + log_ratio(x->sm_count, y->sm_count) +
           log_ratio(x->l2_bytes, y->l2_bytes) + log_ratio(x->link_bytes_per_s, y->link_bytes_per_s);
}

static bool same_kind(const struct hw *x, const struct hw *y)
{
    return x->device_kind && y->device_kind && strcmp(x->device_kind, y->device_kind) == 0;
}

/* "configs/efficiency/h100-sxm.vllm.json" -> "h100-sxm.vllm" and its device. */
static bool stem_of(const char *path, char *stem, char *device)
{
    const char *from = path + sizeof FOLDER - 1;
    const size_t len = strlen(from), end = strlen(".json");
    if (len <= end || len - end >= NAME_MAX_BYTES) return false;
    memcpy(stem, from, len - end);
    stem[len - end] = '\0';
    if (strcmp(stem, "steps") == 0) return false; /* of whole steps: steps.h */
    const size_t head = strcspn(stem, ".");
    memcpy(device, stem, head);
    device[head] = '\0';
    return true;
}

/* A measured device other than hw, of its kind. */
struct near {
    const char *key;
    double distance;
};

enum { NEAR_MAX = 64 };

/* All of them, nearest first. */
static enum err_code nearest(struct arena *a, const struct hw *hw, struct near *out, size_t *out_n, struct err *e)
{
    size_t n;
    const struct embed_file *f = embed_under(FOLDER, &n);
    *out_n = 0;
    for (size_t i = 0; i < n && *out_n < NEAR_MAX; i++) {
        char stem[NAME_MAX_BYTES], device[NAME_MAX_BYTES];
        if (!stem_of(f[i].path, stem, device) || strcmp(device, hw->key) == 0) continue;
        if (*out_n && strcmp(device, out[*out_n - 1].key) == 0) continue; /* files of a device are neighbours */
        struct hw h;
        TRY(hw_load(a, device, &h, e));
        if (!same_kind(hw, &h)) continue;
        out[*out_n] = (struct near){arena_strndup(a, device, strlen(device)), distance(hw, &h)};
        if (!out[(*out_n)++].key) return err_nomem(e);
    }
    for (size_t i = 1; i < *out_n; i++)
        for (size_t k = i; k > 0 && out[k].distance < out[k - 1].distance; k--) {
            const struct near swap = out[k];
            out[k] = out[k - 1];
            out[k - 1] = swap;
        }
    return ERR_OK;
}

/* -- files -- */

/* How f gets to hw; its parameters are made those of hw. */
static enum err_code transfer_from(struct arena *a, const struct hw *hw, struct efficiency *f,
                                   enum source_transfer *out, struct err *e)
{
    struct hw from;
    struct err unknown;
    char shown[80];
    *out = SOURCE_OWN;
    if (strcmp(f->device, hw->key) == 0) return ERR_OK;
    *out = SOURCE_OTHER_GENERATION;
    if (hw_load(a, f->device, &from, &unknown) != ERR_OK)
        return err_set(e, ERR_INPUT, "%s: device: no device \"%s\" is known, so its parameters are not those of %s",
                       f->file, text_clean(shown, sizeof shown, f->device, strlen(f->device)), hw->key);
    if (efficiency_same_generation(hw, &from)) *out = SOURCE_SAME_GENERATION;
    const struct efficiency fitted = *f;
    return efficiency_transfer(a, &fitted, &from, hw, f, e);
}

static enum err_code add(struct arena *a, const struct hw *hw, const char *name, struct source *s, struct err *e)
{
    if (s->n == SOURCE_FILES_MAX) return err_set(e, ERR_RANGE, "more than %d files of efficiencies", SOURCE_FILES_MAX);
    for (size_t i = 0; i < s->n; i++) {
        const char *have = s->file[i].file, *at = strstr(have, name);
        if (at == have + sizeof FOLDER - 1 && strcmp(at + strlen(name), ".json") == 0) return ERR_OK;
    }
    struct efficiency *f = &s->file[s->n];
    TRY(efficiency_load(a, name, f, e));
    TRY(transfer_from(a, hw, f, &s->transfer[s->n], e));
    if (s->n++ == 0) s->name = name;
    return ERR_OK;
}

/* All built-in files of a device, the framework's first. */
static enum err_code add_device(struct arena *a, const struct hw *hw, const char *device, struct source *s,
                                struct err *e)
{
    size_t n;
    const struct embed_file *f = embed_under(FOLDER, &n);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < n; i++) {
            char stem[NAME_MAX_BYTES], of[NAME_MAX_BYTES];
            if (!stem_of(f[i].path, stem, of) || strcmp(of, device) != 0) continue;
            const char *tail = stem[strlen(of)] ? stem + strlen(of) + 1 : "";
            if ((strcmp(tail, s->kernels) == 0 || !*tail) != (pass == 0)) continue;
            const char *name = arena_strndup(a, stem, strlen(stem));
            if (!name) return err_nomem(e);
            TRY(add(a, hw, name, s, e));
        }
    return ERR_OK;
}

static enum err_code choose_framework(const char *framework, struct source *s, struct err *e)
{
    const char *of_file = s->n ? s->file[0].framework : NULL;
    s->framework = s->kernels = FRAMEWORKS[0];
    if (framework && strcmp(framework, "none") == 0) {
        s->framework = "none";
        return ERR_OK;
    }
    for (size_t i = 0; i < FRAMEWORKS_N; i++) {
        if (framework ? strcmp(framework, FRAMEWORKS[i]) != 0 : !of_file || strcmp(of_file, FRAMEWORKS[i]) != 0)
            continue;
        s->framework = s->kernels = FRAMEWORKS[i];
        return ERR_OK;
    }
    return framework
               ? err_set(e, ERR_USAGE, "--framework is vllm, trtllm, sglang, ridge or none, not '%.40s'", framework)
               : ERR_OK;
}

/* Of a device that ridge probe measured, the commands that make what is missing; of others what may be named. */
static enum err_code say_unmeasured(const struct hw *hw, struct err *e)
{
    const char *at = strchr(hw->key, '@');
    if (!hw->measured)
        return err_set(e, ERR_USAGE,
                       "%s: no %s has been measured, so it has no calibrated times (--efficiency FILE names some)",
                       hw->key, hw->device_kind ? hw->device_kind : "device of its kind");
    return err_set(
        e, ERR_USAGE,
        "%s: nothing was fitted to its kernels yet, so it has no calibrated times: ridge probe run%s%s, then "
        "ridge fit --from store -g %s -o FILE.json (or --efficiency FILE)",
        hw->key, at ? " --threads " : "", at ? at + 1 : "", hw->key);
}

enum err_code source_open(struct arena *a, const struct hw *hw, const char *name, const char *framework,
                          struct source *out, struct err *e)
{
    struct near near[NEAR_MAX];
    size_t n;
    const bool fitted = !name && hw->efficiency;
    if (fitted) name = hw->efficiency;
    *out = (struct source){.named = name != NULL};
    if (name && add(a, hw, name, out, e) != ERR_OK) {
        if (!fitted || !e) return e ? e->code : ERR_INPUT;
        const struct err why = *e;
        return err_set(e, why.code, "%s (what ridge fit wrote last of %s: fit again, or --efficiency FILE)", why.text,
                       hw->key);
    }
    TRY(choose_framework(framework, out, e));
    out->sorts_few[0] = out->sorts_few[1] = strcmp(out->kernels, "sglang") == 0;
    TRY(add_device(a, hw, hw->key, out, e));
    TRY(nearest(a, hw, near, &n, e));
    for (size_t i = 0; i < n; i++) TRY(add_device(a, hw, near[i].key, out, e));
    return out->n ? ERR_OK : say_unmeasured(hw, e);
}

/* -- classes -- */

static bool matches(const char *name, const struct source_want *w, const char *framework)
{
    if (strncmp(name, w->prefix, strlen(w->prefix)) != 0) return false;
    if (w->with && !strstr(name, w->with)) return false;
    if (w->without && strstr(name, w->without)) return false;
    if (strstr(name, "/pages")) return false; /* a step's cache is in one piece */
    const size_t len = strlen(framework);
    for (const char *at = strstr(name, framework); at; at = strstr(at + 1, framework))
        if (at > name && at[-1] == '/' && (at[len] == '/' || !at[len])) return true;
    return false;
}

/* Which of two codes of one kernel on a core a user would run: the one that reaches more of both rates. */
static bool is_faster(const struct fit_class *x, const struct fit_class *y)
{
    return x->like.host && y->like.host && x->baseline[1] * x->baseline[2] > y->baseline[1] * y->baseline[2];
}

static const struct fit_class *class_in(const struct efficiency *f, const struct source_want *want,
                                        const char *framework)
{
    const struct fit_class *best = NULL;
    for (size_t k = 0; k < f->n; k++)
        if (matches(f->classes[k].name, want, framework) && (!best || is_faster(&f->classes[k], best)))
            best = &f->classes[k];
    return best;
}

static struct source_class find_of(const struct source *s, const struct source_want *want, size_t n,
                                   const char *framework, bool own)
{
    for (size_t w = 0; w < n; w++)
        for (size_t i = 0; i < s->n; i++) {
            if ((s->transfer[i] == SOURCE_OWN || (i == 0 && s->named)) != own) continue;
            const struct fit_class *class = class_in(&s->file[i], &want[w], framework);
            if (class)
                return (struct source_class){.class = class,
                                             .transfer = s->transfer[i],
                                             .file = s->file[i].file,
                                             .other_framework = strcmp(framework, s->kernels) != 0};
        }
    return (struct source_class){.class = NULL};
}

struct source_class source_find(const struct source *s, const struct source_want *want, size_t n)
{
    struct source_class c = {.class = NULL};
    for (int pass = 0; pass < 2 && !c.class; pass++) {
        c = find_of(s, want, n, s->kernels, pass == 0);
        for (size_t i = 0; i < FRAMEWORKS_N && !c.class; i++) c = find_of(s, want, n, FRAMEWORKS[i], pass == 0);
    }
    for (int pass = 0; pass < 2 && !c.class; pass++) c = find_of(s, want, n, "nccl", pass == 0);
    return c;
}
