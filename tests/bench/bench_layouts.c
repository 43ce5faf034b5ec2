/* bench_layouts -- layouts priced per second: one compiled step, all layouts of a number of GPUs, many batches. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "calc/serve/layouts.h"

struct run {
    struct arena *arena;
    struct layouts_request *q;
    size_t n, fits;
    struct err err;
    enum err_code code;
};

static void price(void *closure, const struct layout *l)
{
    struct run *r = closure;
    struct layouts_item item;
    if (r->code != ERR_OK) return;
    static const int64_t BATCHES[] = {1, 7, 64, 250, 1000, 4096};
    for (size_t i = 0; i < sizeof BATCHES / sizeof *BATCHES && r->code == ERR_OK; i++) {
        r->q->batch = BATCHES[i];
        r->code = layouts_price(r->arena, r->q, l, &item, &r->err);
        r->n++;
        r->fits += item.verdict == LAYOUTS_FITS;
    }
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum err_code bench(struct arena *a, const char *name, int64_t gpus, struct err *e)
{
    struct model m;
    struct hw hw;
    TRY(model_load(a, name, NULL, 0, &m, e));
    TRY(hw_load(a, "h200-sxm", &hw, e));
    const double start_s = now_s();
    const struct step_setup setup = {
        .model = &m, .hw = &hw, .any_layout = true, .fidelity = STEP_ROOFLINE, .block_tokens = 16};
    struct layouts_request q = {.model = &m,
                                .hw = &hw,
                                .capacity_bytes = hw_capacity_bytes(&hw),
                                .gpus = gpus,
                                .per_node = 8,
                                .prompt = 1000,
                                .context = 1000,
                                .average = 1};
    TRY(step_compile(a, &setup, &q.step, e));
    const double compiled_s = now_s();
    struct run r = {.arena = a, .q = &q};
    (void)layouts_each(&q, price, &r);
    if (r.code != ERR_OK) return err_set(e, r.code, "%s", r.err.text);
    const double took_s = now_s() - compiled_s;
    printf("%-16s %4lld GPUs: %zu candidates, %zu fit, compiled %.2f ms, %.2f us each, 20000 in %.2f s\n", name,
           (long long)gpus, r.n, r.fits, 1e3 * (compiled_s - start_s), 1e6 * took_s / (double)r.n,
           20000 * took_s / (double)r.n);
    return ERR_OK;
}

int main(void)
{
    static const struct {
        const char *model;
        int64_t gpus;
    } CASES[] = {{"deepseek-v3", 16}, {"deepseek-v3", 1024}, {"llama-3.1-70b", 1024}, {"qwen3-235b-a22b", 256}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct err e = {0};
        struct arena *a = arena_open();
        const enum err_code code = a ? bench(a, CASES[i].model, CASES[i].gpus, &e) : err_nomem(&e);
        arena_close(a);
        if (code == ERR_OK) continue;
        fprintf(stderr, "%s: %s\n", CASES[i].model, e.text);
        return 1;
    }
    return 0;
}
