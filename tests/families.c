#include "tests/families.h"

#include <string.h>

struct model families_read(struct arena *a, const struct subject *s)
{
    struct json j;
    struct model m = {0};
    struct err e = {.code = ERR_OK};
    if (json_parse(a, "config.json", s->json, strlen(s->json), &j, &e) != ERR_OK ||
        model_parse(a, &j, &m, &e) != ERR_OK)
        fail_msg("%s: %s", s->model, e.text);
    return m;
}

void families_tensors(const struct subject *subjects, size_t n)
{
    static const struct cost_conventions PLAIN = {0};
    for (size_t i = 0; i < n; i++) {
        const struct subject *s = &subjects[i];
        struct arena *a = arena_open();
        const struct model m = families_read(a, s);
        struct cost_parameters p;
        struct err e = {.code = ERR_OK};
        int64_t total = 0, active = 0;
        for (size_t t = 0; t < TENSORS_MAX && s->tensors[t].name; t++) {
            const struct tensors *x = &s->tensors[t];
            total += x->rows * x->cols * x->times;
            active += x->rows * x->cols * (x->used < 0 ? 0 : x->used ? x->used : x->times);
        }
        if (cost_parameters(a, &m, &PLAIN, &p, &e) != ERR_OK) fail_msg("%s: %s", s->model, e.text);
        if (p.total != (double)total || p.active != (double)active)
            fail_msg("%s: %.0f parameters, %.0f active; by its tensors %lld, %lld", s->model, p.total, p.active,
                     (long long)total, (long long)active);
        arena_close(a);
    }
}

/* Keys of an indexer as if each element took the two bytes of the cache: where their heads are weighed they are fp8,
 * and a float for every 128, which is not the cache's format. */
static double index_as_two(const char *model, const struct mixer *x, double bytes)
{
    if (bytes <= 0 || x->index_block_tokens > 0 || x->index_mean) return bytes;
    double pool = 1, floats = 0;
    if (x->pool_tokens > 0) pool *= (double)x->pool_tokens;
    if (x->index_pool_tokens > 0) pool *= (double)x->index_pool_tokens;
    for (int64_t at = 0; at < x->index_dim; at += 128) floats++;
    const double keys = (double)x->index_dim;
    if (bytes * pool != keys + 4 * floats) fail_msg("%s: a key of the indexer takes %g bytes", model, bytes * pool);
    return 2 * keys / pool;
}

void families_caches(const struct subject *subjects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct subject *s = &subjects[i];
        struct arena *a = arena_open();
        const struct model m = families_read(a, s);
        double full = 0, windowed = 0, kept = 0;
        for (size_t k = 0; k < m.kinds_n; k++) {
            struct cost_kind_cache one;
            struct err e = {.code = ERR_OK};
            if (cost_kind_cache(a, &m, &m.kinds[k], 1, &one, &e) != ERR_OK) fail_msg("%s: %s", s->model, e.text);
            *(m.kinds[k].mixer.window_tokens ? &windowed : &full) += (double)m.kinds[k].count * one.token_bytes;
            full += (double)m.kinds[k].count * index_as_two(s->model, &m.kinds[k].mixer, one.index_bytes);
            kept += (double)m.kinds[k].count * one.state_bytes;
        }
        if (full != 2.0 * (double)s->full_elems || windowed != 2.0 * (double)s->windowed_elems)
            fail_msg("%s: a token leaves %.0f and %.0f bytes", s->model, full, windowed);
        if (kept != 2.0 * (double)s->conv_elems + 4.0 * (double)s->state_elems)
            fail_msg("%s: a sequence leaves %.0f bytes", s->model, kept);
        arena_close(a);
    }
}

void families_refused(const struct refused *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct arena *a = arena_open();
        struct json j;
        struct model m;
        struct err e = {.code = ERR_OK};
        assert_int_equal(json_parse(a, "config.json", cases[i].json, strlen(cases[i].json), &j, &e), ERR_OK);
        assert_int_equal(model_parse(a, &j, &m, &e), ERR_INPUT);
        if (!strstr(e.text, cases[i].sentence)) fail_msg("%s: %s", cases[i].json, e.text);
        arena_close(a);
    }
}
