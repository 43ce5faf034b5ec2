/* fuzz_answer -- any bytes as the answer to an exercise: right, or wrong with one clean sentence; never an error, a
 * crash or a leak. The first byte chooses what is asked: a number of some kind, a formula or a word. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/text.h"
#include "calc/cost/cost.h"
#include "calc/learn/exercise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KINDS = UNITS_WATTS + 1 };

static void require(int holds, const char *what, const char *text)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_answer: %s: %s\n", what, text);
    abort();
}

static void check_clean(const char *text, const char *what)
{
    const size_t n = strlen(text);
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t code = 0;
        k = text_utf8_len(text + i, n - i, &code);
        require(k > 0 && !text_is_hostile(code), what, "not clean");
    }
}

static struct exercise_question ask(struct sym_ctx *c, uint8_t what)
{
    const struct cost_symbols y = cost_symbols_make(c);
    struct exercise_question q = {.text = "question", .form = "form"};
    if (what % (KINDS + 2) < KINDS) {
        q.kind = EXERCISE_NUMBER;
        q.unit = (enum units_kind)(what % (KINDS + 2));
        q.value = 0.0079;
        q.tolerance_frac = what & 128 ? 0 : 0.01;
        q.things = q.unit == UNITS_COUNT ? "sequence,seq" : NULL;
        q.bare = q.unit == UNITS_SECONDS && what & 64 ? "days" : NULL;
        q.slips[q.slips_n++] = (struct exercise_slip){.value = 0.0237, .hint = "three of them"};
    } else if (what % (KINDS + 2) == KINDS) {
        q.kind = EXERCISE_FORMULA;
        q.unit = UNITS_FLOPS_PER_BYTE;
        q.answer = sym_div(c, sym_mul(c, y.S, y.T), sym_add(c, y.S, y.T));
        q.symbols[q.symbols_n++] = y.B;
        q.symbols[q.symbols_n++] = y.S;
        q.symbols[q.symbols_n++] = y.T;
        q.slips[q.slips_n++] = (struct exercise_slip){.formula = y.T, .hint = "half of the bytes"};
    } else {
        q.kind = EXERCISE_CHOICE;
        q.also[0] = "bandwidth,mem";
        q.choices[q.choices_n++] = "memory";
        q.choices[q.choices_n++] = "compute";
    }
    return q;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    struct sym_ctx *c = a ? sym_open(a) : NULL;
    char *answer = c && size ? arena_strndup(a, (const char *)data + 1, size - 1) : NULL;
    if (answer) {
        const struct exercise_question q = ask(c, data[0]);
        struct exercise_verdict v = {.hint = NULL};
        struct err e = {.code = ERR_OK};
        const enum err_code code = exercise_grade(a, c, &q, answer, &v, &e);
        require(code == ERR_OK, "an error", e.text);
        require(v.right == !v.hint, "right with a hint, or wrong without", answer);
        require(v.given != NULL, "nothing was read", answer);
        check_clean(v.given, "what was read");
        if (v.hint) {
            require(v.hint[0] != '\0', "an empty hint", answer);
            check_clean(v.hint, "the hint");
        }
    }
    arena_close(a);
    return 0;
}
