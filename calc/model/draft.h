/* draft -- heads that draft for another model, and layers that predict further tokens of their own; private to
 * calc/model. */
#ifndef RIDGE_MODEL_DRAFT_H
#define RIDGE_MODEL_DRAFT_H

#include "calc/model/reader.h"

/* Hooks of the draft families: vary and extend of EAGLE and EAGLE-3, extend of block drafts, structure of Medusa. */
enum err_code vary_eagle(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_eagle3(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code vary_block_draft(struct reader *r, int64_t layer, struct layer_kind *k);
enum err_code extend_eagle(struct reader *r);
enum err_code extend_eagle3(struct reader *r);
enum err_code extend_block_draft(struct reader *r);
enum err_code structure_medusa(struct reader *r);

/* draft_read_mtp -- fill m->mtp by the family's rule and the file's number of modules. A number without a rule becomes
 * a note. Errors: ERR_INPUT, ERR_NOMEM. */
enum err_code draft_read_mtp(struct reader *r);

#endif
