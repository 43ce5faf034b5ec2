/* cupti_fake -- what libcupti_fake.so is told, and what it tells; found in it as the symbol cupti_fake. */
#ifndef RIDGE_TESTS_WORKER_CUPTI_FAKE_H
#define RIDGE_TESTS_WORKER_CUPTI_FAKE_H

#include <stdbool.h>
#include <stddef.h>

struct cupti_fake {
    /* told */
    const char *fails; /* the function that returns code; NULL none */
    int code;
    size_t passes, dropped, ranges;
    bool all_passes;
    int levels[7]; /* of cuptiProfilerDeviceSupported, in their order */
    double values[2];
    void *context; /* that is to be profiled */
    int device;
    /* tells */
    char log[2048]; /* names of the functions in their order, each with a blank behind it; "?" before one that was given
                       something else than it wants */
    int initialized, hosts, enabled, started, pushed; /* how many of them are open */
};

#endif
