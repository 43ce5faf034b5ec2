#include "calc/serve/paged.h"

#include <stdlib.h>

struct paged_block {
    uint64_t hash;         /* 0: not named */
    int32_t before, after; /* in the queue of idle blocks */
    int32_t chain;         /* next of the bucket */
    int32_t references;
};

static size_t bucket_of(const struct paged *p, uint64_t hash)
{
    hash ^= hash >> 33;
    hash *= UINT64_C(0xff51afd7ed558ccd);
    return (size_t)(hash >> 32) & (p->buckets - 1);
}

/* ---- the queue of idle blocks ---- */

static void queue_add(struct paged *p, int32_t i)
{
    struct paged_block *b = &p->block[i];
    b->before = p->tail;
    b->after = PAGED_NONE;
    if (p->tail == PAGED_NONE)
        p->head = i;
    else
        p->block[p->tail].after = i;
    p->tail = i;
    p->idle++;
}

static void queue_take(struct paged *p, int32_t i)
{
    struct paged_block *b = &p->block[i];
    if (b->before == PAGED_NONE)
        p->head = b->after;
    else
        p->block[b->before].after = b->after;
    if (b->after == PAGED_NONE)
        p->tail = b->before;
    else
        p->block[b->after].before = b->before;
    p->idle--;
}

/* ---- names ---- */

static int32_t find(const struct paged *p, uint64_t hash)
{
    if (!p->buckets || hash == 0) return PAGED_NONE;
    int32_t i = p->bucket[bucket_of(p, hash)];
    while (i != PAGED_NONE && p->block[i].hash != hash) i = p->block[i].chain;
    return i;
}

static void forget(struct paged *p, int32_t i)
{
    struct paged_block *b = &p->block[i];
    if (b->hash == 0) return;
    int32_t *at = &p->bucket[bucket_of(p, b->hash)];
    while (*at != i) at = &p->block[*at].chain;
    *at = b->chain;
    b->hash = 0;
    p->evictions++;
}

bool paged_has(const struct paged *p, uint64_t hash) { return find(p, hash) != PAGED_NONE; }

void paged_name(struct paged *p, const struct paged_list *l, int64_t i, uint64_t hash)
{
    struct paged_block *b = &p->block[l->at[i]];
    if (!p->buckets || b->hash != 0 || hash == 0 || find(p, hash) != PAGED_NONE) return;
    int32_t *first = &p->bucket[bucket_of(p, hash)];
    b->hash = hash;
    b->chain = *first;
    *first = l->at[i];
}

/* ---- sequences ---- */

enum err_code paged_open(struct arena *a, int64_t blocks, int64_t block_tokens, bool named, struct paged *out,
                         struct err *e)
{
    if (blocks < 1 || blocks > PAGED_BLOCKS_MAX || block_tokens < 1)
        return err_set(e, ERR_RANGE, "a cache of %lld blocks of %lld tokens: from 1 to %d blocks can be managed",
                       (long long)blocks, (long long)block_tokens, (int)PAGED_BLOCKS_MAX);
    struct paged p = {.blocks = blocks, .block_tokens = block_tokens, .head = PAGED_NONE, .tail = PAGED_NONE};
    p.block = arena_array(a, (size_t)blocks, sizeof *p.block);
    if (!p.block) return err_nomem(e);
    for (p.buckets = named; named && p.buckets < (size_t)blocks;) p.buckets *= 2;
    p.bucket = arena_array(a, p.buckets + 1, sizeof *p.bucket);
    if (!p.bucket) return err_nomem(e);
    for (size_t i = 0; i < p.buckets; i++) p.bucket[i] = PAGED_NONE;
    for (int32_t i = 0; i < (int32_t)blocks; i++) queue_add(&p, i);
    *out = p;
    return ERR_OK;
}

static bool make_room(struct paged_list *l, int64_t n)
{
    if (n <= l->room) return true;
    int64_t room = l->room ? l->room * 2 : 8;
    if (room < n) room = n;
    int32_t *at = realloc(l->at, (size_t)room * sizeof *at);
    if (!at) return false;
    l->at = at;
    l->room = room;
    return true;
}

/* Whether the next token goes into a block that others hold too. */
static bool shares_end(const struct paged *p, const struct paged_list *l)
{
    return l->tokens % p->block_tokens != 0 && p->block[l->at[l->n - 1]].references > 1;
}

int64_t paged_need(const struct paged *p, const struct paged_list *l, int64_t more)
{
    if (more == 0) return 0;
    const int64_t n = (l->tokens + more + p->block_tokens - 1) / p->block_tokens;
    return n - l->n + shares_end(p, l);
}

static int32_t take(struct paged *p)
{
    const int32_t i = p->head;
    queue_take(p, i);
    forget(p, i);
    p->block[i].references = 1;
    return i;
}

/* Tokens of a sequence in its i-th block. */
static int64_t filled(const struct paged *p, const struct paged_list *l, int64_t i)
{
    const int64_t left = l->tokens - i * p->block_tokens;
    return left < p->block_tokens ? left : p->block_tokens;
}

/* A sequence lets go of its i-th block. */
static void give(struct paged *p, const struct paged_list *l, int64_t i)
{
    struct paged_block *b = &p->block[l->at[i]];
    if (--b->references == 0)
        queue_add(p, l->at[i]);
    else
        p->again_tokens -= filled(p, l, i);
}

enum err_code paged_grow(struct paged *p, struct paged_list *l, int64_t more)
{
    if (more == 0) return ERR_OK;
    const int64_t n = (l->tokens + more + p->block_tokens - 1) / p->block_tokens;
    if (paged_need(p, l, more) > p->idle) return ERR_NO;
    if (!make_room(l, n)) return ERR_NOMEM;
    if (shares_end(p, l)) {
        const int32_t copy = take(p);
        give(p, l, l->n - 1);
        l->at[l->n - 1] = copy;
        p->copies++;
    }
    while (l->n < n) l->at[l->n++] = take(p);
    l->tokens += more;
    return ERR_OK;
}

enum err_code paged_fork(struct paged *p, const struct paged_list *from, struct paged_list *to)
{
    if (!make_room(to, from->n)) return ERR_NOMEM;
    for (int64_t i = 0; i < from->n; i++) {
        to->at[i] = from->at[i];
        p->block[from->at[i]].references++;
        p->again_tokens += filled(p, from, i);
    }
    to->n = from->n;
    to->tokens = from->tokens;
    return ERR_OK;
}

enum err_code paged_attach(struct paged *p, struct paged_list *l, uint64_t hash)
{
    const int32_t i = find(p, hash);
    if (i == PAGED_NONE) return ERR_NO;
    if (!make_room(l, l->n + 1)) return ERR_NOMEM;
    if (p->block[i].references++ == 0)
        queue_take(p, i);
    else
        p->again_tokens += p->block_tokens;
    l->at[l->n++] = i;
    l->tokens += p->block_tokens;
    return ERR_OK;
}

void paged_drop(struct paged *p, struct paged_list *l)
{
    for (; l->n > 0; l->n--) give(p, l, l->n - 1);
    l->tokens = 0;
}

void paged_release(struct paged *p, struct paged_list *l)
{
    paged_drop(p, l);
    free(l->at);
    *l = (struct paged_list){0};
}

int64_t paged_references(const struct paged *p, const struct paged_list *l, int64_t i)
{
    return p->block[l->at[i]].references;
}

/* ---- the books ---- */

static enum err_code check_queue(const struct paged *p, struct err *e)
{
    int64_t n = 0;
    int32_t before = PAGED_NONE;
    for (int32_t i = p->head; i != PAGED_NONE; before = i, i = p->block[i].after) {
        if (p->block[i].references != 0)
            return err_set(e, ERR_RANGE, "block %d waits with %d references", (int)i, (int)p->block[i].references);
        if (p->block[i].before != before || ++n > p->blocks)
            return err_set(e, ERR_RANGE, "the queue is broken at block %d", (int)i);
    }
    if (before != p->tail || n != p->idle)
        return err_set(e, ERR_RANGE, "%lld blocks wait, %lld are counted", (long long)n, (long long)p->idle);
    int64_t held = 0;
    for (int64_t i = 0; i < p->blocks; i++) held += p->block[i].references > 0;
    if (held + n != p->blocks) return err_set(e, ERR_RANGE, "%lld blocks are lost", (long long)(p->blocks - held - n));
    return ERR_OK;
}

static enum err_code check_names(const struct paged *p, struct err *e)
{
    int64_t named = 0, chained = 0;
    for (int64_t i = 0; i < p->blocks; i++) {
        if (p->block[i].hash == 0) continue;
        named++;
        if (find(p, p->block[i].hash) != (int32_t)i)
            return err_set(e, ERR_RANGE, "block %lld is not found by its name", (long long)i);
    }
    for (size_t k = 0; k < p->buckets; k++)
        for (int32_t i = p->bucket[k]; i != PAGED_NONE && chained <= p->blocks; i = p->block[i].chain) chained++;
    if (named != chained)
        return err_set(e, ERR_RANGE, "%lld blocks are named, %lld listed", (long long)named, (long long)chained);
    return ERR_OK;
}

enum err_code paged_check(const struct paged *p, const struct paged_list *lists, size_t n, struct err *e)
{
    TRY(check_queue(p, e));
    TRY(check_names(p, e));
    int32_t *count = calloc((size_t)p->blocks, sizeof *count);
    if (!count) return err_nomem(e);
    int64_t again_tokens = 0;
    for (size_t k = 0; k < n; k++)
        for (int64_t i = 0; i < lists[k].n; i++)
            if (count[lists[k].at[i]]++ > 0) again_tokens += filled(p, &lists[k], i);
    int64_t wrong = PAGED_NONE;
    for (int64_t i = 0; i < p->blocks && wrong == PAGED_NONE; i++)
        if (count[i] != p->block[i].references) wrong = i;
    free(count);
    if (wrong != PAGED_NONE)
        return err_set(e, ERR_RANGE, "block %lld has %d references that are not those of its sequences",
                       (long long)wrong, (int)p->block[wrong].references);
    if (again_tokens != p->again_tokens)
        return err_set(e, ERR_RANGE, "%lld tokens are shared, %lld are counted", (long long)again_tokens,
                       (long long)p->again_tokens);
    for (size_t k = 0; k < n; k++)
        if (lists[k].n != (lists[k].tokens + p->block_tokens - 1) / p->block_tokens)
            return err_set(e, ERR_RANGE, "%lld tokens are in %lld blocks", (long long)lists[k].tokens,
                           (long long)lists[k].n);
    return ERR_OK;
}
