/* place -- where calls run whose buffers are not in this process's own memory: a card. */
#ifndef RIDGE_PROBE_WORKER_PLACE_H
#define RIDGE_PROBE_WORKER_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "probe/sample.h"

struct place;
struct work;
struct work_times;

/* What is asked of it. copy and set may only begin what they do, in order with calls on the stream; what failed is said
 * by wait. copy goes from and to anywhere, and from the place to here is done when it returns. */
struct place_code {
    void *(*take)(struct place *p, unsigned device, size_t bytes); /* aligned to 256; NULL: none left */
    void (*give)(struct place *p, void *memory);
    void (*copy)(struct place *p, void *to, const void *from, size_t bytes);
    void (*set)(struct place *p, void *at, int byte, size_t bytes);
    const char *(*wait)(struct place *p); /* until all is done; NULL, or what has failed since the last wait */
    /* As work_time: warm up, sample. */
    void (*time)(struct place *p, struct work *w, const struct sample_rule *rule, struct work_times *out);
    /* Bytes that the memory read, and wrote, while run made its calls, by the place's own counters; NULL: it has none.
     * Returns NULL, or why they are not known, in text[cap]. */
    const char *(*count)(struct place *p, const char *(*run)(void *closure), void *closure, double bytes[2], char *text,
                         size_t cap);
};

struct place {
    const struct place_code *code;
    void *stream; /* of kern_call */
    bool broken;  /* nothing will work any more: this process has to be started anew */
};

#endif
