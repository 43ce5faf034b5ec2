/* hybrid -- blocks of models with recurrent mixers; private to calc/model. */
#ifndef RIDGE_MODEL_HYBRID_H
#define RIDGE_MODEL_HYBRID_H

#include "calc/model/reader.h"

/* hybrid_dense -- the dense feed-forward block, its width by the family's ffn_rule. hybrid_attention -- attention as
 * the members of attn say (HYBRID_ATTN). hybrid_shared -- the shared block of HYBRID_SHARED. Errors: ERR_INPUT with the
 * key that is missing or does not fit. */
enum err_code hybrid_dense(struct reader *r, struct ffn *f);
enum err_code hybrid_attention(struct reader *r, struct mixer *x);
enum err_code hybrid_shared(struct reader *r, struct layer_kind *k);

#endif
