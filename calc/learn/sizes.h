/* sizes -- the numbers that a model has for the course's symbols, layer kind by layer kind: F of a dense MLP and F of
 * an expert are two numbers under one name, and whoever puts a number in for F has to say of which. */
#ifndef RIDGE_LEARN_SIZES_H
#define RIDGE_LEARN_SIZES_H

#include "calc/learn/quantity.h"

enum { SIZES_MAX = 12 };

/* One number, and the kinds of layer that have it. */
struct size {
    const struct sym *whole, *rank; /* of the model; on one of the scope's ranks */
    uint64_t kinds;                 /* bit k: layer kind k; all bits: of the model, whatever the layer */
};

/* The different numbers of one symbol in the order of the layer kinds. */
struct sizes {
    const struct sym *var;
    const char *meaning;
    size_t n;
    struct size at[SIZES_MAX];
};

/* sizes_of -- those of a symbol in the kinds of layer of a set (bit k: kind k); n is 0 where the model has no such
 * size. A model of more than 64 kinds or a symbol of more than SIZES_MAX numbers: the first ones. t is the scope's
 * ranks, r what they send for a byte. Errors: as cost_size. */
enum err_code sizes_of(const struct quantity_scope *s, const struct sym *var, uint64_t kinds, struct sizes *out,
                       struct err *e);

/* sizes_all -- every symbol of cost.h but B, S, T and M; out holds SIZES_SYMBOLS. */
enum { SIZES_SYMBOLS = 64 };
enum err_code sizes_all(const struct quantity_scope *s, uint64_t kinds, struct sizes out[SIZES_SYMBOLS], size_t *n,
                        struct err *e);

/* sizes_text -- "14336", of one rank of two "14336/2 = 7168"; of several "18432 in layer kind 1, 2048 in layer kind 2".
 * In the scope's arena; NULL when memory is exhausted. */
const char *sizes_text(const struct quantity_scope *s, const struct sizes *z, bool rank);

/* sizes_kinds -- the set of the layer kinds of a topic. */
uint64_t sizes_kinds(const struct quantity_topic *q);

#endif
