#include "calc/model/family.h"

#include <string.h>
#include <strings.h>

const struct family *family_at(size_t i)
{
    static const struct family *const TABLES[] = {FAMILIES_DENSE,     FAMILIES_LAYER_NORM, FAMILIES_EXPERTS,
                                                  FAMILIES_RECURRENT, FAMILIES_DRAFTS,     FAMILIES_ENCODERS};
    for (size_t t = 0; t < sizeof TABLES / sizeof TABLES[0]; t++)
        for (const struct family *f = TABLES[t]; f->name; f++)
            if (i-- == 0) return f;
    return NULL;
}

const struct family *family_named(const char *name)
{
    const struct family *f;
    for (size_t i = 0; name && (f = family_at(i)); i++)
        if (strcmp(name, f->name) == 0) return f;
    return NULL;
}

const struct family *family_find(const char *model_type)
{
    const struct family *f;
    for (size_t i = 0; (f = family_at(i)); i++)
        for (size_t t = 0; t < sizeof f->types / sizeof f->types[0] && f->types[t]; t++)
            if (strcmp(model_type, f->types[t]) == 0) return f;
    return NULL;
}

const struct family *family_find_architecture(const char *name)
{
    const struct family *f;
    for (size_t i = 0; (f = family_at(i)); i++)
        for (size_t t = 0; t < sizeof f->architectures / sizeof f->architectures[0] && f->architectures[t]; t++)
            if (strcasecmp(name, f->architectures[t]) == 0) return f;
    return NULL;
}
