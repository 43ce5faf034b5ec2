/* cupti -- bytes that the memory of an NVIDIA card read and wrote during calls, by its own counters: CUPTI, which is
 * loaded for it alone, in a process that times nothing. */
#ifndef RIDGE_PROBE_WORKER_CUPTI_H
#define RIDGE_PROBE_WORKER_CUPTI_H

#include <stddef.h>

struct cupti_job {
    const char *library;               /* which libcupti; NULL: that of $RIDGE_CUPTI, else an installed one */
    int device;                        /* its number, as the CUDA runtime has it */
    void *context;                     /* CUcontext in which calls run */
    const char *(*run)(void *closure); /* calls, and waits until all are done; returns NULL, or what failed */
    void *closure;
};

struct cupti_bytes {
    double read, written; /* of all calls that run made */
};

/* cupti_count -- run once, in one range and one pass of dram__bytes_read.sum and dram__bytes_write.sum. Returns NULL,
 * or a sentence of why not, in text[cap]: no library, no permission, no such counter on this chip, ... Everything that
 * was opened is closed. */
const char *cupti_count(const struct cupti_job *job, struct cupti_bytes *out, char *text, size_t cap);

#endif
