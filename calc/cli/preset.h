/* preset -- comparisons that are data: configs/presets/NAME.json, or a file of one's own.
 *
 *   {"about": "...",                         one sentence, for ridge list presets
 *    "model": "llama-2-13b",                 compared without -m; absent: -m is needed
 *    "variants": [{"name": "fewer heads",    row label; absent: the what-if, else the model
 *                  "model": "...",           another model than the one that is compared
 *                  "what_if": "gqa=8",       absent: the model as it is
 *                  "says": "...",            what is known of the accuracy
 *                  "source": "..."}]} */
#ifndef RIDGE_CLI_PRESET_H
#define RIDGE_CLI_PRESET_H

#include <stddef.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

/* Texts are NULL where absent. */
struct preset_variant {
    const char *name, *model, *what_if, *says, *source;
};

struct preset {
    const char *name, *about, *model;
    struct preset_variant *variant;
    size_t variants_n;
};

/* preset_load -- a built-in by name, or a file: a path with a '/' or ending in ".json". Errors: ERR_USAGE unknown name
 * (nearest offered); ERR_INPUT a file that is none; ERR_IO. */
enum err_code preset_load(struct arena *a, const char *name, struct preset *out, struct err *e);

/* preset_builtins -- all of them; n of them. Errors: ERR_NOMEM. */
enum err_code preset_builtins(struct arena *a, struct preset **out, size_t *n, struct err *e);

#endif
