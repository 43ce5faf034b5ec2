/* towers -- encoders of images and of sound beside the language model, with what joins them to its stream; private to
 * calc/model. */
#ifndef RIDGE_MODEL_TOWERS_H
#define RIDGE_MODEL_TOWERS_H

#include "calc/model/reader.h"

/* towers_read -- fill m->tower and m->audio: parameters of the encoders that the root's model_type has, by the keys of
 * its vision_config and audio_config. One that no row of the table describes, or whose keys are missing, leaves params
 * NAN and a note. Derivation and sources: calc/MODEL.md "Towers". Errors: ERR_INPUT a key of a wrong type or size;
 * ERR_NOMEM. */
enum err_code towers_read(struct reader *r);

#endif
