/* pattern -- which layer is what: the ways in which files list, tile or imply it; private to calc/model. */
#ifndef RIDGE_MODEL_PATTERN_H
#define RIDGE_MODEL_PATTERN_H

#include "calc/model/reader.h"

/* pattern_letters -- a string such as "LLLG", tiled over the layers: L slides, G is full, and the last layer is full.
 * pattern_numbers -- a list of one number per layer, 1 slides and 0 is full.
 * pattern_rope -- layers with rotary positions: no_rope_layers (1 rotates), else all but every
 * no_rope_layer_interval-th. All fill flags[r->m->layers]. Errors: ERR_INPUT wrong length, type or letter. */
enum err_code pattern_letters(struct reader *r, const struct json *pattern, bool *flags);
enum err_code pattern_numbers(struct reader *r, const char *key, bool *flags);
enum err_code pattern_rope(struct reader *r, bool *flags);

/* pattern_turns -- layers whose queries and keys rotate, by the family's nope rule. */
enum err_code pattern_turns(struct reader *r, const bool *windowed, bool *turns);

/* pattern_experts -- layers whose feed-forward is a mixture of experts, by the family's rule. */
enum err_code pattern_experts(struct reader *r, bool *moe);

#endif
