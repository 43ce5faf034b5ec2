/* collective -- one sum, or one gather, over the cards of a machine: not in the table of kernels, since no processor
 * can run them; a worker whose machine has cards adds them. */
#ifndef RIDGE_KERNELS_COLLECTIVE_H
#define RIDGE_KERNELS_COLLECTIVE_H

#include "kernels/kernel.h"

extern const struct kern kern_all_reduce, kern_all_gather;

/* Their parameters, and their buffers: of card r input 2*r and output 2*r + 1. */
enum { COLLECTIVE_CARDS, COLLECTIVE_BYTES };

/* collective_elements -- of one card's input and of its output. */
void collective_elements(const struct kern_shape *s, bool gathers, size_t *in, size_t *out);

#endif
