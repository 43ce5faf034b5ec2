#include "tests/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stop(const char *what, const char *path)
{
    perror(what);
    (void)fprintf(stderr, "%s\n", path);
    abort();
}

void checkpoint_file(const char *dir, const char *name, const void *bytes, size_t n, int64_t file_bytes)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n) stop("write", path);
    if (file_bytes > (int64_t)n && ftruncate(fd, file_bytes) != 0) stop("ftruncate", path);
    (void)close(fd);
}

void checkpoint_safetensors(const char *dir, const char *name, const char *header, int64_t data_bytes)
{
    const size_t n = strlen(header);
    unsigned char *all = malloc(n + 8);
    if (!all) abort();
    for (size_t i = 0; i < 8; i++) all[i] = (unsigned char)(n >> (8 * i));
    memcpy(all + 8, header, n);
    checkpoint_file(dir, name, all, n + 8, (int64_t)n + 8 + data_bytes);
    free(all);
}

static void put_bytes(struct checkpoint_gguf *g, const void *p, size_t n)
{
    if (n > sizeof g->bytes - g->n) abort();
    memcpy(g->bytes + g->n, p, n);
    g->n += n;
}

void checkpoint_put(struct checkpoint_gguf *g, size_t bytes, uint64_t value)
{
    unsigned char le[8];
    for (size_t i = 0; i < 8; i++) le[i] = (unsigned char)(value >> (8 * i));
    put_bytes(g, le, bytes);
}

void checkpoint_put_text(struct checkpoint_gguf *g, const char *s)
{
    checkpoint_put(g, 8, strlen(s));
    put_bytes(g, s, strlen(s));
}

void checkpoint_gguf_begin(struct checkpoint_gguf *g, uint32_t version, uint64_t tensors, uint64_t pairs)
{
    g->n = 0;
    put_bytes(g, "GGUF", 4);
    checkpoint_put(g, 4, version);
    checkpoint_put(g, 8, tensors);
    checkpoint_put(g, 8, pairs);
}

void checkpoint_pair_u32(struct checkpoint_gguf *g, const char *key, uint32_t v)
{
    checkpoint_put_text(g, key);
    checkpoint_put(g, 4, 4);
    checkpoint_put(g, 4, v);
}

void checkpoint_pair_text(struct checkpoint_gguf *g, const char *key, const char *v)
{
    checkpoint_put_text(g, key);
    checkpoint_put(g, 4, 8);
    checkpoint_put_text(g, v);
}

void checkpoint_tensor(struct checkpoint_gguf *g, const char *name, uint32_t type, uint32_t dims, uint64_t side0,
                       uint64_t side1, uint64_t side2, uint64_t offset)
{
    const uint64_t side[3] = {side0, side1, side2};
    checkpoint_put_text(g, name);
    checkpoint_put(g, 4, dims);
    for (uint32_t i = 0; i < dims && i < 3; i++) checkpoint_put(g, 8, side[i]);
    checkpoint_put(g, 4, type);
    checkpoint_put(g, 8, offset);
}

void checkpoint_gguf_write(const struct checkpoint_gguf *g, const char *dir, const char *name, int64_t data_bytes)
{
    const int64_t data_at = (int64_t)(g->n + 31) / 32 * 32;
    checkpoint_file(dir, name, g->bytes, g->n, data_at + data_bytes);
}
