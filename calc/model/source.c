/* source -- what the encoder of an encoder-decoder reads. */
#include "calc/model/model.h"

enum err_code model_check_source(const struct model *m, int64_t tokens, struct err *e)
{
    const int64_t most = m->encoder.position_rows - m->encoder.position_offset;
    if (m->encoder.layers == 0)
        return err_set(e, ERR_USAGE, "%s has no encoder, so no source: --source is for encoder-decoders", m->name);
    if (m->encoder.position_rows > 0 && tokens > most)
        return err_set(e, ERR_USAGE, "%s: a source of %lld, but its encoder has positions for %lld", m->name,
                       (long long)tokens, (long long)most);
    return ERR_OK;
}

enum err_code model_set_source(struct model *m, int64_t tokens, struct err *e)
{
    TRY(model_check_source(m, tokens, e));
    m->encoder.source_tokens = tokens;
    return ERR_OK;
}

int64_t model_source_ahead(const struct model *m) { return m->encoder.layers > 0 ? m->encoder.source_tokens : 0; }

enum err_code model_refuse_encoder(const struct model *m, const char *what, struct err *e)
{
    if (m->encoder.layers == 0) return ERR_OK;
    return err_set(e, ERR_USAGE, "%s has an encoder, and %s", m->name, what);
}
