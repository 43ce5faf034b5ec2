/* flush -- drive an array out of all caches, so that the call that reads it next finds it in memory. */
#ifndef RIDGE_PROBE_WORKER_FLUSH_H
#define RIDGE_PROBE_WORKER_FLUSH_H

#include <stdbool.h>
#include <stddef.h>

/* flush_can -- whether this processor has an instruction that does: clflushopt of x86 (Intel SDM vol. 2, CLFLUSHOPT:
 * the line leaves every level of the cache hierarchy of the coherence domain, what was written goes to memory). Not
 * aarch64, whose DC CIVAC ends at the point of coherency, before a cache of the system (Arm ARM, D7.5.9). */
bool flush_can(void);

/* flush_lines -- every line that has one of the n bytes; ended by a fence, so that no later access overtakes it. What
 * the array holds is unchanged. Nothing where flush_can is false. Cost: a line each, about what it takes to read them.
 */
void flush_lines(const void *at, size_t n);

#endif
