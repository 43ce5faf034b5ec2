#include "calc/sym/flint.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* The build gives the name with the version that the headers are of. */
#ifndef RIDGE_FLINT
#define RIDGE_FLINT "libflint.so"
#endif

struct function {
    const char *name;
    size_t at;
};

static enum err_code look_up(struct flint *f, const struct function *fn, struct err *e)
{
    void *found = dlsym(f->library, fn->name);
    if (!found) return err_set(e, ERR_IO, "%s has no %s", RIDGE_FLINT, fn->name);
    /* by bytes: ISO C has no conversion from an object's address to a function's */
    memcpy((char *)f + fn->at, &found, sizeof found);
    return ERR_OK;
}

enum err_code flint_open(struct flint *f, struct err *e)
{
#define FLINT_ROW(member, function) {#function, offsetof(struct flint, member)},
    static const struct function FUNCTIONS[] = {FLINT_FUNCTIONS(FLINT_ROW)};
#undef FLINT_ROW
    *f = (struct flint){.library = dlopen(RIDGE_FLINT, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE)};
    if (!f->library) {
        const char *why = dlerror();
        return err_set(e, ERR_IO, "exact algebra needs FLINT, Debian's libflint17: %s", why ? why : RIDGE_FLINT);
    }
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0]; i++) {
        const enum err_code code = look_up(f, &FUNCTIONS[i], e);
        if (code == ERR_OK) continue;
        (void)dlclose(f->library);
        return code;
    }
    return ERR_OK;
}

void flint_close(struct flint *f) { (void)dlclose(f->library); }
