#include "calc/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum err_code err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    if (!e) return code;
    va_list ap;
    va_start(ap, fmt);
    e->code = code;
    e->below[0] = '\0';
    (void)vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return code;
}

enum err_code err_prepend(struct err *e, const char *fmt, ...)
{
    char old[sizeof e->text];
    memcpy(old, e->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof e->text) (void)snprintf(e->text + n, sizeof e->text - (size_t)n, "%s", old);
    return e->code;
}

enum err_code err_nomem(struct err *e) { return err_set(e, ERR_NOMEM, "out of memory"); }
