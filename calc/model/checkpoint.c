#include "calc/model/checkpoint.h"

#include <math.h>
#include <string.h>

static enum err_code note(struct arena *a, struct model *m, const char *text, struct err *e)
{
    m->notes = m->notes ? arena_printf(a, "%s; %s", m->notes, text) : text;
    return m->notes ? ERR_OK : err_nomem(e);
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
    return s->notes ? note(a, m, s->notes, e) : ERR_OK;
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
    if (!tensors_present(dir, &format) || format == TENSOR_FORMAT_GGUF) return ERR_OK;
    const enum err_code code = tensors_open(a, dir, &s, &why);
    if (code == ERR_OK) return checkpoint_stored(a, &s, m, e);
    if (code == ERR_NOMEM) return err_nomem(e);
    const char *text = arena_printf(a, "its tensors are left out: %s", why.text);
    return text ? note(a, m, text, e) : err_nomem(e);
}
