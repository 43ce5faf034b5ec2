#include "calc/serve/regions.h"

#include <stdlib.h>
#include <string.h>

int64_t regions_size(int64_t want)
{
    int64_t size = 1;
    while (size < want) size *= 2;
    return size;
}

bool regions_take(struct regions *r, int64_t want, struct region *out)
{
    int64_t i = 0, at = 0;
    want = regions_size(want);
    while (i < r->n && r->in_use[i].at - at < want) {
        at = (r->in_use[i].at + r->in_use[i].size + want - 1) / want * want;
        i++;
    }
    if (i == r->n && r->size - at < want) return false;
    if (r->n == r->room) {
        const int64_t room = r->room ? r->room * 2 : 64; /* not a unit */
        struct region *more = realloc(r->in_use, (size_t)room * sizeof *more);
        if (!more) return false;
        r->in_use = more;
        r->room = room;
    }
    memmove(&r->in_use[i + 1], &r->in_use[i], (size_t)(r->n - i) * sizeof *r->in_use);
    r->in_use[i] = *out = (struct region){at, want};
    r->n++;
    r->used += want;
    return true;
}

void regions_give(struct regions *r, struct region *x)
{
    int64_t i = 0;
    if (x->size == 0) return;
    while (i < r->n && r->in_use[i].at != x->at) i++;
    r->n--;
    memmove(&r->in_use[i], &r->in_use[i + 1], (size_t)(r->n - i) * sizeof *r->in_use);
    r->used -= x->size;
    *x = (struct region){0, 0};
}

void regions_close(struct regions *r)
{
    free(r->in_use);
    *r = (struct regions){0};
}
