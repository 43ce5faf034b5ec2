/* paged -- a cache in blocks of equal size, shared by reference counts, copied on the first write, found by what is in
 * them and evicted when least recently used.
 *
 * A sequence of len tokens holds ceil(len / block_tokens) blocks; only the last is partly empty, so the waste of n
 * sequences is below n blocks. A fork shares all blocks of a sequence. Who writes behind the last token of a shared
 * block that is not full gets a copy of it first, so that n samples of a prompt of P tokens with O outputs each hold
 *
 *     floor(P / b) + n * ceil((P mod b + O) / b)        blocks of b tokens
 *
 * instead of n * ceil((P + O) / b). A full block may be named by a hash of all that is in it and before it. Blocks that
 * nobody refers to wait in a queue, oldest first, and keep their names until they are taken for something else.
 * Derivation: MODEL.md "Paged caches". Source: PagedAttention, arXiv 2309.06180, section 4; vLLM
 * v1/core/block_pool.py, kv_cache_manager.py. */
#ifndef RIDGE_SERVE_PAGED_H
#define RIDGE_SERVE_PAGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calc/base/arena.h"
#include "calc/base/err.h"

enum { PAGED_BLOCKS_MAX = 1 << 28, PAGED_NONE = -1 };

struct paged {
    int64_t blocks, block_tokens, idle; /* idle: nobody refers to them, named ones included */
    int64_t copies, evictions;          /* blocks copied on write; names lost */
    int64_t again_tokens;               /* in blocks, once for each reference to them but the first */
    struct paged_block *block;
    int32_t *bucket; /* chains of names */
    size_t buckets;  /* a power of two; 0: nothing is named */
    int32_t head, tail;
};

/* A sequence's blocks in order. Zeroed: empty. Memory for them is the caller's: paged_drop gives blocks back, and
 * paged_release frees the list too. */
struct paged_list {
    int32_t *at;
    int64_t n, room;
    int64_t tokens; /* in them */
};

/* paged_open -- `blocks` idle blocks of `block_tokens` each; named: they can be found again. Errors: ERR_RANGE outside
 * 1..PAGED_BLOCKS_MAX, or block_tokens < 1; ERR_NOMEM. Cost: O(blocks). */
enum err_code paged_open(struct arena *a, int64_t blocks, int64_t block_tokens, bool named, struct paged *out,
                         struct err *e);

/* paged_need -- idle blocks that it takes to have `more` tokens behind those of l, the copy on write among them. */
int64_t paged_need(const struct paged *p, const struct paged_list *l, int64_t more);

/* paged_grow -- `more` >= 0 tokens behind those of l: all of them, or nothing changes. ERR_NO: too few idle blocks.
 * ERR_NOMEM. Cost: O(blocks that are new). */
enum err_code paged_grow(struct paged *p, struct paged_list *l, int64_t more);

/* paged_fork -- `to`, which is empty, shares all blocks of `from`. Errors: ERR_NOMEM. Cost: O(blocks). */
enum err_code paged_fork(struct paged *p, const struct paged_list *from, struct paged_list *to);

/* paged_drop -- a sequence leaves: its references go, last block first, so that of a prefix the end is evicted before
 * the beginning. Cost: O(blocks). paged_release -- the same, and the list's memory. */
void paged_drop(struct paged *p, struct paged_list *l);
void paged_release(struct paged *p, struct paged_list *l);

/* paged_name -- the i-th block of l, which is full, is what this hash (not 0) says. A name that another block has
 * already stays with that one. Cost: O(1). */
void paged_name(struct paged *p, const struct paged_list *l, int64_t i, uint64_t hash);

/* paged_has -- whether a block has this name. paged_attach -- share it as the next block of l, whose blocks are full;
 * ERR_NO: no block has it. Errors: ERR_NOMEM. Cost: O(1). */
bool paged_has(const struct paged *p, uint64_t hash);
enum err_code paged_attach(struct paged *p, struct paged_list *l, uint64_t hash);

/* paged_references -- of the i-th block of l. */
int64_t paged_references(const struct paged *p, const struct paged_list *l, int64_t i);

/* paged_check -- whether the books are right: every block is idle or referred to, none twice in the queue, every name
 * is found and leads to one block, and references, and tokens that they share, are those of the n lists. The sentence
 * of what is not is in e. Errors: ERR_RANGE. Cost: O(blocks + blocks of lists). */
enum err_code paged_check(const struct paged *p, const struct paged_list *lists, size_t n, struct err *e);

#endif
