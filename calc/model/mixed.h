/* mixed -- models whose files say neither what a layer is in one word nor by a period: the formats of the libraries
 * that came with Mamba, H3, Based and Hyena; private to calc/model.
 *
 * structure_* is a family.structure: sizes and layers; extend_* a family.extend: norms and ties. */
#ifndef RIDGE_MODEL_MIXED_H
#define RIDGE_MODEL_MIXED_H

#include "calc/model/reader.h"

enum err_code structure_mamba_ssm(struct reader *r);    /* ssm_cfg, attn_layer_idx, attn_cfg, d_intermediate */
enum err_code structure_h3(struct reader *r);           /* the same keys, with d_inner */
enum err_code structure_s4d(struct reader *r);          /* d_model, n_layer, d_state */
enum err_code structure_based(struct reader *r);        /* mixer, alt_mixer, alt_mixer_2 and their layers */
enum err_code structure_stripedhyena(struct reader *r); /* attn_layer_idxs, hyena_layer_idxs */
enum err_code structure_hyenadna(struct reader *r);

enum err_code extend_mamba_ssm(struct reader *r);
enum err_code extend_based(struct reader *r);
enum err_code extend_stripedhyena(struct reader *r);

/* mixed_size -- a whole number of obj, lo .. hi, else fallback; -1 as fallback makes it required. mixed_marks -- the
 * layers, from 0, that a list of obj names; a list that is absent names none. Errors: ERR_INPUT, with the key: also of
 * a layer that there is not, or that the list has twice. */
enum err_code mixed_size(struct reader *r, const struct json *obj, const char *key, int64_t lo, int64_t hi,
                         int64_t fallback, int64_t *out);
enum err_code mixed_marks(struct reader *r, const struct json *obj, const char *key, bool *out);

/* mixed_sizes -- width, layers and vocabulary of the file, the latter rounded up to pad_vocab_size_multiple. */
enum err_code mixed_sizes(struct reader *r, int64_t pad_default);

#endif
