#define _DEFAULT_SOURCE /* madvise, MAP_ANONYMOUS */

#include "calc/base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Blocks double from FIRST_BYTES to BLOCK_BYTES: many arenas hold little for a moment, and all of a block is zeroed.
 * From BIG_BYTES on a block has pages of HUGE_BYTES where the system gives them: the first touch of a page costs as
 * much as reading all of it. */
enum {
    ROUND = 64,
    FIRST_BYTES = 4096 - ROUND,
    BLOCK_BYTES = (1 << 16) - ROUND,
    ALIGN = 16,
    BIG_BYTES = 1 << 20,
    HUGE_BYTES = 2 << 20
};

struct block {
    struct block *next;
    size_t used, size;
    void *mapped; /* what to give back instead of the block; NULL: the block is of calloc */
    size_t mapped_bytes;
    _Alignas(16) unsigned char data[];
};

struct deferred {
    struct deferred *next;
    void (*release)(void *);
    void *what;
};

struct arena {
    struct block *blocks;
    struct deferred *deferred;
};

static struct block *block_open(size_t data)
{
#if defined MADV_HUGEPAGE && defined MAP_ANONYMOUS
    if (data >= BIG_BYTES) {
        const size_t bytes = (sizeof(struct block) + data + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
        void *p = mmap(NULL, bytes + HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return NULL;
        struct block *b = (void *)((unsigned char *)p + (HUGE_BYTES - (uintptr_t)p % HUGE_BYTES) % HUGE_BYTES);
        (void)madvise(b, bytes, MADV_HUGEPAGE); /* advice: small pages do as well */
        b->mapped = p;
        b->mapped_bytes = bytes + HUGE_BYTES;
        return b;
    }
#endif
    return calloc(1, sizeof(struct block) + data);
}

static void block_close(struct block *b)
{
    if (b->mapped)
        (void)munmap(b->mapped, b->mapped_bytes);
    else
        free(b);
}

struct arena *arena_open(void) { return calloc(1, sizeof(struct arena)); }

void arena_close(struct arena *a)
{
    if (!a) return;
    for (struct deferred *d = a->deferred; d; d = d->next) d->release(d->what);
    for (struct block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        block_close(b);
    }
    free(a);
}

/* Of the block behind b that pieces of up to `size` go into. */
static size_t next_bytes(const struct block *b, size_t size)
{
    size_t bytes = !b ? FIRST_BYTES : b->size < BLOCK_BYTES / 2 ? 2 * b->size + ROUND : BLOCK_BYTES;
    while (bytes < size) bytes = 2 * bytes + ROUND;
    return bytes;
}

void *arena_alloc(struct arena *a, size_t size)
{
    if (size > SIZE_MAX / 2) return NULL;
    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    struct block *b = a->blocks;
    if (!b || b->size - b->used < size) {
        const bool large = size > BLOCK_BYTES / 4;
        const size_t data = large ? size : next_bytes(b, size);
        struct block *fresh = block_open(data);
        if (!fresh) return NULL;
        fresh->size = data;
        if (b && large) { /* a large piece gets its own block behind the one being filled */
            fresh->next = b->next;
            b->next = fresh;
        } else {
            fresh->next = b;
            a->blocks = fresh;
        }
        b = fresh;
    }
    void *p = b->data + b->used;
    b->used += size;
    return p;
}

void *arena_array(struct arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) return NULL;
    return arena_alloc(a, bytes);
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (s) (void)vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
    char *copy = len < SIZE_MAX ? arena_alloc(a, len + 1) : NULL;
    if (copy && len) memcpy(copy, s, len);
    return copy;
}

enum err_code arena_defer(struct arena *a, void (*release)(void *), void *what, struct err *e)
{
    struct deferred *d = arena_alloc(a, sizeof *d);
    if (!d) {
        release(what);
        return err_nomem(e);
    }
    *d = (struct deferred){.next = a->deferred, .release = release, .what = what};
    a->deferred = d;
    return ERR_OK;
}
