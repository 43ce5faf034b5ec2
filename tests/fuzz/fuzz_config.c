/* fuzz_config -- any bytes as a config.json: read as a model that keeps its own promises, or refused with one clean
 * sentence; never a crash, a leak or a hang. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"
#include "calc/base/json.h"
#include "calc/cost/cost.h"
#include "calc/model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what, const char *text)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_config: %s: %s\n", what, text);
    abort();
}

static void check_refusal(enum err_code code, const struct err *e)
{
    require(e->code == code, "the error holds another code than the one returned", e->text);
    require(e->text[0] != '\0', "refused without a sentence", "");
    for (const char *p = e->text; *p; p++)
        require((unsigned char)*p >= ' ' && *p != 0x7f, "a control character of the input is in the message", e->text);
}

static void check_model(const struct model *m)
{
    require(m->layers >= 1 && m->hidden >= 1 && m->vocab >= 1, "a model without layers, width or vocabulary",
            m->family);
    int64_t layers = 0;
    for (size_t i = 0; i < m->kinds_n; i++) {
        const struct layer_kind *k = &m->kinds[i];
        require(k->count >= 1, "a layer kind that no layer has", k->label);
        if (!k->mixer.doubled_input) layers += k->count; /* shared blocks stand before layers of their own */
        require(k->mixer.kind == MIXER_NONE || (k->mixer.heads >= 1 && k->mixer.head_dim >= 1), "no heads", k->label);
        require(k->mixer.kind != MIXER_ATTENTION || k->mixer.kv_heads >= 1, "attention without KV heads", k->label);
        require(k->ffn.kind != FFN_MOE || k->ffn.experts >= k->ffn.experts_per_token,
                "more experts used than there are", k->label);
    }
    require(layers == m->layers, "the layer kinds do not add up to the layers", m->family);
}

/* What was read can be counted and laid out, or is refused as out of range. */
static void check_counts(struct arena *a, const struct model *m)
{
    static const struct cost_conventions PLAIN = {0};
    struct cost_parameters p;
    struct err e = {.code = ERR_OK};
    const enum err_code code = cost_parameters(a, m, &PLAIN, &p, &e);
    if (code != ERR_OK) {
        require(code == ERR_RANGE || code == ERR_NOMEM, "a model that cannot be counted", e.text);
        return;
    }
    require(p.active <= p.total && p.embedding + p.routed <= p.total, "parts exceed the total", m->family);
    require(p.total == floor(p.total), "a fraction of a parameter", m->family);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    if (!a) return 0;
    struct err e = {.code = ERR_OK};
    struct json j;
    struct model m = {.name = "fuzz", .source = "fuzz.json"};
    enum err_code code = json_parse(a, "fuzz.json", (const char *)data, size, &j, &e);
    if (code == ERR_OK) code = model_parse(a, &j, &m, &e);
    if (code != ERR_OK) {
        check_refusal(code, &e);
    } else {
        check_model(&m);
        check_counts(a, &m);
    }
    arena_close(a);
    return 0;
}
