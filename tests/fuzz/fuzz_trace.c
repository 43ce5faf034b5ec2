/* fuzz_trace -- any bytes as a trace of requests: refused with one clean sentence, or read into requests that hold what
 * the reader promises, in order. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/serve/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_trace: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    struct workload w;
    struct err e = {0};
    if (!a) return 0;
    char *text = malloc(size + 1);
    if (text && size > 0) memcpy(text, data, size);
    const enum err_code code = text ? workload_read_text(a, "trace", text, size, &w, &e) : ERR_NOMEM;
    if (code == ERR_OK) {
        require(w.n > 0 && w.first_n == w.n, "no requests");
        for (size_t i = 0; i < w.n; i++) {
            const struct workload_request *r = &w.request[i];
            require(isfinite(r->arrival_s) && r->arrival_s >= (i ? r[-1].arrival_s : 0), "arrivals out of order");
            require(r->prompt_tokens >= 1 && r->output_tokens >= 1 && r->cached_tokens >= 0, "tokens");
            (void)workload_block_hash(&w, r, 16, r->prompt_tokens / 16);
        }
    } else {
        require(code == ERR_NOMEM || code == ERR_INPUT, "refused with a strange code");
        require(code == ERR_NOMEM || e.text[0] != '\0', "refused without a sentence");
        for (size_t i = 0, n = strlen(e.text); i < n;) {
            uint32_t c = 0;
            const size_t k = text_utf8_len(e.text + i, n - i, &c);
            require(k > 0 && !text_is_hostile(c), "the sentence is not clean");
            i += k ? k : 1;
        }
    }
    free(text);
    arena_close(a);
    return 0;
}
