/* cupti_api -- what of NVIDIA's CUPTI is called, declared here: its header for the profiler of the host is C++, and no
 * build may need a toolkit. Names and order of the members are this project's and that library's: CUPTI 13.0, API
 * reference, "CUPTI Profiler Host API", "CUPTI Range Profiler API", "CUPTI Profiler Target API"
 * (docs.nvidia.com/cupti); cuda/cupti_check.cu holds them against the headers of a toolkit, where there is one. Every
 * function takes one of these and returns a number, 0 when it has done what it should; size is that up to the last
 * member, which tells the library how much of it the caller knows; reserved is NULL. */
#ifndef RIDGE_PROBE_WORKER_CUPTI_API_H
#define RIDGE_PROBE_WORKER_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

#define CUPTI_HEAD                                                                                                     \
    size_t size;                                                                                                       \
    void *reserved

#define CUPTI_SIZE(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/* CUptiResult, those that have a sentence of their own. */
enum {
    CUPTI_DONE = 0,
    CUPTI_NOT_INITIALIZED = 15,
    CUPTI_NO_SUCH_METRIC = 17,
    CUPTI_NO_PRIVILEGE = 35,
    CUPTI_NO_PRIVILEGE_VIRTUAL = 40,
    CUPTI_CONFIDENTIAL = 41,
    CUPTI_MIG = 43,
    CUPTI_NO_SUCH_CHIP = 46
};

/* CUpti_ProfilerType, CUpti_ProfilerRange, CUpti_ProfilerReplayMode, CUpti_Profiler_API, CUpti_Profiler_Support_Level.
 */
enum { CUPTI_RANGE_PROFILER = 0, CUPTI_USER_RANGE = 2, CUPTI_USER_REPLAY = 3 };
enum { CUPTI_API_RANGES = 0, CUPTI_SUPPORTED = 3, CUPTI_UNKNOWN = 0 };

struct cupti_plain { /* cuptiProfilerInitialize, cuptiProfilerDeInitialize */
    CUPTI_HEAD;
};

struct cupti_supported { /* cuptiProfilerDeviceSupported */
    CUPTI_HEAD;
    int device, all, architecture, sli, virtual_card, confidential, mining, wsl, api;
};

struct cupti_chip { /* cuptiDeviceGetChipName */
    CUPTI_HEAD;
    size_t device;
    const char *name;
};

struct cupti_host_open { /* cuptiProfilerHostInitialize */
    CUPTI_HEAD;
    int kind;
    const char *chip;
    const uint8_t *availability;
    void *host;
};

struct cupti_host { /* cuptiProfilerHostDeinitialize */
    CUPTI_HEAD;
    void *host;
};

struct cupti_host_metrics { /* cuptiProfilerHostConfigAddMetrics */
    CUPTI_HEAD;
    void *host;
    const char *const *names;
    size_t n;
};

struct cupti_host_size { /* cuptiProfilerHostGetConfigImageSize */
    CUPTI_HEAD;
    void *host;
    size_t bytes;
};

struct cupti_host_image { /* cuptiProfilerHostGetConfigImage */
    CUPTI_HEAD;
    void *host;
    size_t bytes;
    uint8_t *image;
};

struct cupti_host_passes { /* cuptiProfilerHostGetNumOfPasses */
    CUPTI_HEAD;
    size_t bytes;
    uint8_t *image;
    size_t passes;
};

struct cupti_host_values { /* cuptiProfilerHostEvaluateToGpuValues */
    CUPTI_HEAD;
    void *host;
    const uint8_t *data;
    size_t data_bytes, range;
    const char *const *names;
    size_t n;
    double *values;
};

struct cupti_range_open { /* cuptiRangeProfilerEnable */
    CUPTI_HEAD;
    void *context, *ranges;
};

struct cupti_range { /* cuptiRangeProfilerDisable, cuptiRangeProfilerStart, cuptiRangeProfilerPopRange */
    CUPTI_HEAD;
    void *ranges;
};

struct cupti_range_size { /* cuptiRangeProfilerGetCounterDataSize */
    CUPTI_HEAD;
    void *ranges;
    const char *const *names;
    size_t n, ranges_n;
    uint32_t nodes_n;
    size_t bytes;
};

struct cupti_range_data { /* cuptiRangeProfilerCounterDataImageInitialize */
    CUPTI_HEAD;
    void *ranges;
    size_t bytes;
    uint8_t *data;
};

struct cupti_range_config { /* cuptiRangeProfilerSetConfig */
    CUPTI_HEAD;
    void *ranges;
    size_t config_bytes;
    const uint8_t *config;
    size_t data_bytes;
    uint8_t *data;
    int range, replay;
    size_t ranges_n;
    uint16_t levels_n, level_least;
    size_t pass;
    uint16_t level;
};

struct cupti_range_push { /* cuptiRangeProfilerPushRange */
    CUPTI_HEAD;
    void *ranges;
    const char *name;
};

struct cupti_range_stop { /* cuptiRangeProfilerStop */
    CUPTI_HEAD;
    void *ranges;
    size_t pass, level;
    uint8_t all_passes;
};

struct cupti_range_decode { /* cuptiRangeProfilerDecodeData */
    CUPTI_HEAD;
    void *ranges;
    size_t dropped;
};

struct cupti_range_info { /* cuptiRangeProfilerGetCounterDataInfo */
    CUPTI_HEAD;
    const uint8_t *data;
    size_t bytes, ranges_n;
};

#endif
