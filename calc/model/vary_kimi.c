/* vary_kimi -- Kimi Linear and what Kimi K3 has beyond it. Source: vLLM, kimi_linear.py and kimi_k3; transformers,
 * modular_kimi_k3.py, configuration_kimi_linear.py; arXiv 2510.26692, 2607.24653. */
#include "calc/model/vary.h"

/* Experts in a latent space: their sum is normed in it where the file says so. */
static enum err_code read_latent_experts(struct reader *r, struct ffn *f)
{
    TRY(reader_dim(r, DIM_LATENT_WIDTH, 1, 0, &f->latent_width));
    if (f->latent_width == 0) return ERR_OK;
    if (!json_has(&r->text, "latent_moe_use_norm"))
        return err_set(r->e, ERR_INPUT,
                       "%s: latent_moe_use_norm is missing: whether experts' sum in the latent space has a norm",
                       r->text.file);
    return reader_flag(r, &r->text, "latent_moe_use_norm", false, &f->latent_norm);
}

enum err_code vary_kimi(struct reader *r, int64_t layer, struct layer_kind *k)
{
    (void)layer;
    if (k->mixer.kind == MIXER_LATENT)
        TRY(reader_flag(r, &r->text, "mla_use_output_gate", false, &k->mixer.output_gate));
    if (k->ffn.kind == FFN_MOE) return read_latent_experts(r, &k->ffn);
    return reader_int(r, "dense_ffn_hidden", 1, 1 << 24, k->ffn.width, &k->ffn.width);
}

enum err_code extend_kimi(struct reader *r)
{
    return reader_int(r, "attn_res_block_size", 0, LAYERS_MAX, 0, &r->m->residual_group);
}
