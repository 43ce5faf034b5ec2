#include "calc/model/checkpoint.h"

#include <math.h>
#include <string.h>

#include "calc/model/gguf_config.h"
#include "calc/model/stored.h"
#include "calc/model/stored_tensors.h"

static enum err_code note(struct arena *a, struct model *m, const char *text, struct err *e)
{
    m->notes = m->notes ? arena_printf(a, "%s; %s", m->notes, text) : text;
    return m->notes ? ERR_OK : err_nomem(e);
}

/* The one float type of all matrices of layers, NULL none: tensors of two and more sides whose name has a number in it.
 */
static const struct tensor_type *one_float(const struct tensor_set *s)
{
    static const char *const FLOATS[] = {"F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"};
    const struct tensor_type *only = NULL;
    for (size_t i = 0; i < s->n; i++) {
        const struct tensor *t = &s->tensors[i];
        if (t->dims < 2 || (only && t->type == only)) continue; /* nearly all: their names need no look */
        const char *dot = strchr(t->name, '.');
        while (dot && !(dot[1] >= '0' && dot[1] <= '9')) dot = strchr(dot + 1, '.');
        if (!dot || strstr(t->name, "vis")) continue;
        if (!t->type || only) return NULL;
        only = t->type;
    }
    for (size_t i = 0; only && i < sizeof FLOATS / sizeof FLOATS[0]; i++)
        if (strcmp(FLOATS[i], only->name) == 0) return only;
    return NULL;
}

/* Of files that name no quantisation the tensors say the format, whatever torch_dtype says. */
static enum err_code take_format(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e)
{
    static const char *const NAMES[][2] = {{"F32", "fp32"}, {"F16", "fp16"}, {"BF16", "bf16"}};
    const struct tensor_type *type = one_float(s);
    const struct dtype *said = &m->weights[WEIGHT_OTHER];
    if (!type || m->weights_unknown || m->whole_kinds_n > 0) return ERR_OK;
    for (enum weight_class c = WEIGHT_MIXER; c <= WEIGHT_EXPERT; c++)
        if (!dtype_same(&m->weights[c], said)) return ERR_OK;
    const char *name = "fp8", *was = said->name;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(NAMES[i][0], type->name) == 0) name = NAMES[i][1];
    m->formats_assumed = NULL;
    if (strcmp(name, was) == 0) return ERR_OK;
    const struct dtype router = m->weights[WEIGHT_ROUTER];
    TRY(stored_set_all(m, name, e));
    if (router.bits > said->bits) m->weights[WEIGHT_ROUTER] = router;
    const char *text = arena_printf(a, "the tensors of its layers are %s, where the config says %s: counted as stored",
                                    type->name, was);
    return text ? note(a, m, text, e) : err_nomem(e);
}

/* What the tensors are quantised as, where the config says otherwise, or nothing that can be priced: a checkpoint that
 * was converted again often keeps the quantization_config of what it was made from. */
static enum err_code take_quantisation(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e)
{
    const char *was, *is;
    TRY(stored_tensors_apply(a, s, m, &was, &is, e));
    if (!was || m->weights_unknown) return ERR_OK;
    m->formats_assumed = NULL;
    const char *text = strcmp(was, is) == 0
                           ? arena_printf(a,
                                          "which matrices are stored as %s differs between the tensors and the "
                                          "config: counted as stored",
                                          is)
                           : arena_printf(a,
                                          "the tensors of its layers are stored as %s, where the config says %s: "
                                          "counted as stored",
                                          is, was);
    return text ? note(a, m, text, e) : err_nomem(e);
}

enum err_code checkpoint_stored(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e)
{
    if (s->headers_missing) {
        m->stored_bytes = s->index_total_bytes;
        m->stored_elems = s->index_total_params;
        return isnan(m->stored_bytes) ? ERR_OK : note(a, m, "of the checkpoint only an index was read", e);
    }
    m->stored_bytes = (double)s->total_bytes;
    m->stored_elems = (double)s->total_elems;
    m->stored_plain = s->format == TENSOR_FORMAT_GGUF || tensors_plain(s);
    if (s->format != TENSOR_FORMAT_GGUF) {
        TRY(take_quantisation(a, s, m, e));
        TRY(take_format(a, s, m, e));
    }
    if (s->format != TENSOR_FORMAT_GGUF) TRY(checkpoint_names(a, s, m, e));
    TRY(checkpoint_widths(a, s, m, e));
    return s->notes ? note(a, m, s->notes, e) : ERR_OK;
}

/* The format of the MLP or experts; of a model without either that of its mixers. */
static const char *stored_name(const struct model *m)
{
    for (size_t i = 0; i < m->kinds_n; i++)
        if (m->kinds[i].ffn.kind != FFN_NONE) return model_linear_format(m)->name;
    return m->weights[WEIGHT_MIXER].name;
}

/* GGUF beside a config.json: its tensors say how the model is stored, where they are those of its family. */
static enum err_code gguf_beside(struct arena *a, const struct tensor_set *s, struct model *m, struct err *e)
{
    const struct family *f = gguf_family(a, s);
    const char *was = m->weights_unknown ? "formats that cannot be priced" : model_linear_format(m)->name;
    if (!f || strcmp(f->name, m->family) != 0) {
        m->stored_bytes = (double)s->total_bytes;
        return note(a, m, "the GGUF file beside it is counted by its bytes alone: which tensor is what is not known",
                    e);
    }
    TRY(stored_set_all(m, m->weights[WEIGHT_OTHER].name, e));
    TRY(gguf_formats(a, s, m, e));
    TRY(checkpoint_stored(a, s, m, e));
    const char *text = arena_printf(
        a, "the tensors beside it are %s, of GGUF, where the config says %s: counted as stored", stored_name(m), was);
    return text ? note(a, m, text, e) : err_nomem(e);
}

enum err_code checkpoint_beside(struct arena *a, const char *config_path, struct model *m, struct err *e)
{
    static const char FILE_NAME[] = "config.json";
    const size_t len = strlen(config_path), base = sizeof FILE_NAME - 1;
    struct tensor_set s;
    struct err why = {.code = ERR_OK};
    enum tensor_format format;
    if (len < base || strcmp(config_path + len - base, FILE_NAME) != 0) return ERR_OK;
    if (len > base && config_path[len - base - 1] != '/') return ERR_OK;
    const char *dir = len == base ? "." : arena_strndup(a, config_path, len - base);
    if (!dir) return err_nomem(e);
    if (!tensors_present(dir, &format)) return ERR_OK;
    const enum err_code code = tensors_open(a, dir, &s, &why);
    if (code == ERR_OK)
        return s.format == TENSOR_FORMAT_GGUF ? gguf_beside(a, &s, m, e) : checkpoint_stored(a, &s, m, e);
    if (code == ERR_NOMEM) return err_nomem(e);
    if (code == ERR_INPUT)
        return err_set(e, code, "%s", why.text); /* a header that lies; what is not there is left out */
    const char *text = arena_printf(a, "its tensors are left out: %s", why.text);
    return text ? note(a, m, text, e) : err_nomem(e);
}
