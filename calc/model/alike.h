/* alike -- the known family that a file of an unknown one is like; private to calc/model. A suggestion, never a
 * reading: what a file leaves unsaid is known of no class but its own. */
#ifndef RIDGE_MODEL_ALIKE_H
#define RIDGE_MODEL_ALIKE_H

#include "calc/model/reader.h"

/* alike_by_keys -- the plainest family that takes the file as it is, with nothing from class defaults; NULL none.
 * alike_by_tensors -- one whose matrices have the names and sides of those in the checkpoint beside the file, and whose
 * layers store as many numbers in vectors (norms, biases); NULL none, or no tensors. Cost: O(families * tensors). */
const struct family *alike_by_keys(struct arena *a, const struct json *root);
const struct family *alike_by_tensors(struct arena *a, const char *config_path, const struct json *root);

#endif
