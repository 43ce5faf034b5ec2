/* outside -- model_types that are known and have no row in the table of families; private to calc/model. */
#ifndef RIDGE_MODEL_OUTSIDE_H
#define RIDGE_MODEL_OUTSIDE_H

#include <stdbool.h>

/* outside_find -- what a model of that type is, as the end of "TYPE is ...": an encoder, an encoder and decoder, a
 * model around a language model whose part of the file is missing. NULL: not known. Source: the configuration classes
 * of Hugging Face transformers (is_encoder_decoder, sub_configs), and of Kimi-VL, Kimi-K2.5 and DeepSeek-VL2. */
const char *outside_find(const char *model_type);

/* outside_is_around -- whether that is a model around a language model: the class that its file names may be one of a
 * known decoder, which no class makes an encoder or another decoder. */
bool outside_is_around(const char *model_type);

/* outside_is_draft -- whether that is a head that drafts for another model, whose text part is that of a known family
 * all the same: it is not read as one. */
bool outside_is_draft(const char *model_type);

#endif
