/* bench_model -- how long it takes to read the built-in model files: bytes to JSON, JSON to model. */
#include <stdio.h>
#include <time.h>

#include "calc/base/arena.h"
#include "calc/base/embed.h"
#include "calc/base/json.h"
#include "calc/model/model.h"

enum { ROUNDS = 53 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
    size_t files = 0, bytes = 0;
    const struct embed_file *f = embed_under("configs/models/", &files);
    double json_s = 0, model_s = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < files; i++) {
            struct arena *a = arena_open();
            struct err e = {.code = ERR_OK};
            struct json j;
            struct model m;
            const double start = now_s();
            enum err_code code = json_parse(a, f[i].path, (const char *)f[i].bytes, f[i].size, &j, &e);
            const double parsed = now_s();
            if (code == ERR_OK) code = model_parse(a, &j, &m, &e);
            model_s += now_s() - parsed;
            json_s += parsed - start;
            bytes += f[i].size;
            arena_close(a);
            if (code == ERR_OK) continue;
            (void)fprintf(stderr, "bench_model: %s\n", e.text);
            return (int)code;
        }
    }
    if (files == 0) return ERR_SKIP;
    const double n = (double)files * ROUNDS;
    (void)printf("  %zu files, %d rounds\n", files, ROUNDS);
    (void)printf("  json_parse   %8.2f us a file, %.1f MB/s\n", json_s / n * 1e6, (double)bytes / json_s / 1e6);
    (void)printf("  model_parse  %8.2f us a file\n", model_s / n * 1e6);
    return 0;
}
