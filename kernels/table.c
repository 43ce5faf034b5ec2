/* table -- the kernels, in the order they are listed. */
#include "kernels/table.h"

#include <string.h>

static const struct kern *const TABLE[] = {
#define X(name) &name,
    KERN_TABLE(X)
#undef X
};

const struct kern *const *kern_table(size_t *n)
{
    *n = sizeof TABLE / sizeof TABLE[0];
    return TABLE;
}

const struct kern *kern_find(const char *name)
{
    for (size_t i = 0; i < sizeof TABLE / sizeof TABLE[0]; i++)
        if (strcmp(TABLE[i]->name, name) == 0) return TABLE[i];
    return NULL;
}
