#include "calc/cli/transfers.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"

enum err_code transfer_of(struct arena *a, const struct hw *hw, const char *efficiency, const char *framework,
                          struct transfer *out, struct err *e)
{
    struct source s;
    char device[64];
    *out = (struct transfer){.kind = SOURCE_OWN, .low = HUGE_VAL};
    TRY(source_open(a, hw, efficiency, framework, &s, e));
    if (s.transfer[0] == SOURCE_OWN) return ERR_OK;
    out->kind = s.transfer[0];
    (void)text_clean(device, sizeof device, s.file[0].device, strlen(s.file[0].device));
    out->device = arena_strndup(a, device, strlen(device));
    if (!out->device) return err_nomem(e);
    for (int k = 0; k < KERNEL_KINDS_N; k++) {
        const double factor = efficiency_factor((enum kernel_kind)k, s.transfer[0] == SOURCE_SAME_GENERATION, hw->key);
        out->low = fmin(out->low, factor);
        out->high = fmax(out->high, factor);
    }
    return ERR_OK;
}

const char *transfer_words(struct arena *a, const struct transfer *t, const char *names)
{
    return arena_printf(a,
                        "no kernel of %s is measured: times are transferred from %s (%s: four of five kernels within "
                        "%.2f to %.2f times)",
                        names, t->device, source_transfers[t->kind], t->low, t->high);
}

enum err_code transfer_text(struct arena *a, const struct hw *hw, const char *efficiency, const char *framework,
                            const char **out, struct err *e)
{
    struct transfer t;
    *out = NULL;
    TRY(transfer_of(a, hw, efficiency, framework, &t, e));
    if (t.kind == SOURCE_OWN) return ERR_OK;
    *out = transfer_words(a, &t, hw->key);
    return *out ? ERR_OK : err_nomem(e);
}
