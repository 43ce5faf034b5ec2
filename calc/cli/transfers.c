#include "calc/cli/transfers.h"

#include <math.h>
#include <string.h>

#include "calc/base/text.h"

enum err_code transfer_text(struct arena *a, const struct hw *hw, const char *efficiency, const char *framework,
                            const char **out, struct err *e)
{
    struct source s;
    char device[64];
    double low = HUGE_VAL, high = 0;
    *out = NULL;
    TRY(source_open(a, hw, efficiency, framework, &s, e));
    if (s.transfer[0] == SOURCE_OWN) return ERR_OK;
    for (int k = 0; k < KERNEL_KINDS_N; k++) {
        const double factor = efficiency_factor((enum kernel_kind)k, s.transfer[0] == SOURCE_SAME_GENERATION, hw->key);
        low = fmin(low, factor);
        high = fmax(high, factor);
    }
    *out = arena_printf(a,
                        "no kernel of %s is measured: times are transferred from %s (%s: four of five kernels within "
                        "%.2f to %.2f times)",
                        hw->key, text_clean(device, sizeof device, s.file[0].device, strlen(s.file[0].device)),
                        source_transfers[s.transfer[0]], low, high);
    return *out ? ERR_OK : err_nomem(e);
}
