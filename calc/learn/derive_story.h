/* derive_story -- topics that are no sum over operators: how drafts, a training run and shared models are counted. */
#ifndef RIDGE_LEARN_DERIVE_STORY_H
#define RIDGE_LEARN_DERIVE_STORY_H

#include "calc/learn/derive.h"

struct derive_page;

/* derive_story_names -- "speculation", "training", "layouts", NULL-terminated; derive_story_meaning -- a sentence on
 * one; NULL: none of them. */
const char *const *derive_story_names(void);
const char *derive_story_meaning(const char *topic);

/* derive_story -- the page of one. Formulas are those of calc/time and calc/cost, or their coefficients read off them;
 * numbers, with a model and a device, what `ridge estimate` computes at that point. Errors: as derive_topic; ERR_USAGE
 * a model that does not decode token by token. */
enum err_code derive_story(struct derive_page *p, const char *topic);

#endif
