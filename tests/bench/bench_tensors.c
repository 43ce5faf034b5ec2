/* bench_tensors -- opening a checkpoint of 200 shards through its index: milliseconds and memory against the bar of
 * 20 ms and 50 MB, up to as many tensors as the largest mixtures of experts have; their index in the order of the
 * shards, and sorted by name as transformers writes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calc/model/tensors.h"

enum { SHARDS = 200, ROUNDS = 9, LINE = 192 };

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void name_tensor(char name[128], int k, int i)
{
    static const char *const PARTS[] = {"gate_proj", "up_proj", "down_proj"};
    (void)snprintf(name, 128, "model.layers.%d.mlp.experts.%d.%s.weight", k, i / 3, PARTS[i % 3]);
}

/* Shard k of `each` tensors of 7168 x 2048 bf16, named as published ones are; its lines of the index. */
static int write_shard(const char *dir, int k, int each, char (*line)[LINE])
{
    char path[512], name[128];
    const long long bytes = 7168LL * 2048 * 2;
    char *header = malloc((size_t)each * 256 + 64);
    if (!header) return 1;
    size_t n = (size_t)snprintf(header, 64, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < each; i++) {
        name_tensor(name, k, i);
        n += (size_t)snprintf(header + n, 256,
                              ",\"%s\":{\"dtype\":\"BF16\",\"shape\":[7168,2048],\"data_offsets\":[%lld,%lld]}", name,
                              i * bytes, (i + 1) * bytes);
        (void)snprintf(line[i], LINE, "\n    \"%s\": \"model-%05d-of-%05d.safetensors\"", name, k + 1, SHARDS);
    }
    header[n++] = '}';
    (void)snprintf(path, sizeof path, "%s/model-%05d-of-%05d.safetensors", dir, k + 1, SHARDS);
    FILE *f = fopen(path, "w");
    if (!f) return 1;
    for (size_t i = 0; i < 8; i++) (void)fputc((int)(n >> (8 * i) & 0xFF), f);
    (void)fwrite(header, 1, n, f);
    free(header);
    const int bad = fflush(f) != 0 || ftruncate(fileno(f), (off_t)(8 + (long long)n + each * bytes)) != 0;
    return fclose(f) != 0 || bad;
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

struct layout {
    int each, sorted; /* tensors of a shard; the index by name rather than by shard */
};

static int write_all(const char *dir, const struct layout *x)
{
    char path[512];
    const int each = x->each;
    const size_t n = (size_t)each * SHARDS;
    char(*lines)[LINE] = malloc(n * sizeof *lines);
    (void)snprintf(path, sizeof path, "%s/model.safetensors.index.json", dir);
    FILE *index = fopen(path, "w");
    if (!index || !lines) return 1;
    int bad = 0;
    for (int k = 0; k < SHARDS && !bad; k++) bad = write_shard(dir, k, each, lines + (size_t)k * (size_t)each);
    if (x->sorted && !bad) qsort(lines, n, sizeof *lines, by_text);
    (void)fprintf(index, "{\n  \"metadata\": {\n    \"total_size\": %lld\n  },\n  \"weight_map\": {",
                  7168LL * 2048 * 2 * each * SHARDS);
    for (size_t i = 0; i < n && !bad; i++) (void)fprintf(index, "%s%s", i ? "," : "", lines[i]);
    (void)fprintf(index, "\n  }\n}\n");
    free(lines);
    return fclose(index) != 0 || bad;
}

static int remove_all(const char *dir)
{
    char path[512];
    for (int k = 0; k < SHARDS; k++) {
        (void)snprintf(path, sizeof path, "%s/model-%05d-of-%05d.safetensors", dir, k + 1, SHARDS);
        (void)unlink(path);
    }
    (void)snprintf(path, sizeof path, "%s/model.safetensors.index.json", dir);
    (void)unlink(path);
    return rmdir(dir);
}

static int measure(const char *dir, const struct layout *x)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        struct arena *a = arena_open();
        struct tensor_set s;
        struct err e = {.code = ERR_OK};
        const double start = now_s();
        const enum err_code code = tensors_open(a, dir, &s, &e);
        const double took = now_s() - start;
        if (code != ERR_OK) {
            (void)fprintf(stderr, "bench_tensors: %s\n", e.text);
            return (int)code;
        }
        if (took < best) best = took;
        if (i == ROUNDS - 1) {
            struct rusage use;
            (void)getrusage(RUSAGE_SELF, &use);
            (void)printf("  %zu shards, %6zu tensors %s, %.1f TB: %6.2f ms, peak %.1f MB\n", s.shards_n, s.n,
                         x->sorted ? "by name " : "by shard", (double)s.total_bytes / 1e12, best * 1e3,
                         (double)use.ru_maxrss / 1e3); /* not a unit */
        }
        arena_close(a);
    }
    return 0;
}

/* In a process of its own, so that the peak is that of the work. */
static int in_child(int (*work)(const char *, const struct layout *), const char *dir, const struct layout *x)
{
    int status = 1;
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) exit(work(dir, x));
    return child < 0 || waitpid(child, &status, 0) != child ? 1 : status;
}

int main(void)
{
    static const struct layout LAYOUTS[] = {{6, 0}, {60, 0}, {465, 0}, {465, 1}};
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof LAYOUTS[0]; i++) {
        char dir[] = "/tmp/ridge-bench-XXXXXX";
        if (!mkdtemp(dir)) return ERR_IO;
        const int bad = in_child(write_all, dir, &LAYOUTS[i]) || in_child(measure, dir, &LAYOUTS[i]);
        (void)remove_all(dir);
        if (bad) return ERR_IO;
    }
    return 0;
}
