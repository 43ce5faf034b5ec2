#define _DEFAULT_SOURCE
#include "probe/worker/cupti.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/worker/cupti_api.h"

enum call {
    INITIALIZE,
    SUPPORTED,
    CHIP,
    HOST_OPEN,
    HOST_METRICS,
    HOST_SIZE,
    HOST_IMAGE,
    HOST_PASSES,
    RANGE_OPEN,
    RANGE_SIZE,
    RANGE_DATA,
    RANGE_CONFIG,
    RANGE_START,
    RANGE_PUSH,
    RANGE_POP,
    RANGE_STOP,
    RANGE_DECODE,
    RANGE_INFO,
    HOST_VALUES,
    RANGE_CLOSE,
    HOST_CLOSE,
    DEINITIALIZE,
    CALLS_N
};

static const char *const NAMES[CALLS_N] = {
    [INITIALIZE] = "cuptiProfilerInitialize",
    [SUPPORTED] = "cuptiProfilerDeviceSupported",
    [CHIP] = "cuptiDeviceGetChipName",
    [HOST_OPEN] = "cuptiProfilerHostInitialize",
    [HOST_METRICS] = "cuptiProfilerHostConfigAddMetrics",
    [HOST_SIZE] = "cuptiProfilerHostGetConfigImageSize",
    [HOST_IMAGE] = "cuptiProfilerHostGetConfigImage",
    [HOST_PASSES] = "cuptiProfilerHostGetNumOfPasses",
    [RANGE_OPEN] = "cuptiRangeProfilerEnable",
    [RANGE_SIZE] = "cuptiRangeProfilerGetCounterDataSize",
    [RANGE_DATA] = "cuptiRangeProfilerCounterDataImageInitialize",
    [RANGE_CONFIG] = "cuptiRangeProfilerSetConfig",
    [RANGE_START] = "cuptiRangeProfilerStart",
    [RANGE_PUSH] = "cuptiRangeProfilerPushRange",
    [RANGE_POP] = "cuptiRangeProfilerPopRange",
    [RANGE_STOP] = "cuptiRangeProfilerStop",
    [RANGE_DECODE] = "cuptiRangeProfilerDecodeData",
    [RANGE_INFO] = "cuptiRangeProfilerGetCounterDataInfo",
    [HOST_VALUES] = "cuptiProfilerHostEvaluateToGpuValues",
    [RANGE_CLOSE] = "cuptiRangeProfilerDisable",
    [HOST_CLOSE] = "cuptiProfilerHostDeinitialize",
    [DEINITIALIZE] = "cuptiProfilerDeInitialize",
};

static const char *const METRICS[] = {"dram__bytes_read.sum", "dram__bytes_write.sum"};
enum { METRICS_N = sizeof METRICS / sizeof METRICS[0] };

/* What is open, and a sentence of what went wrong. */
struct session {
    void *library;
    int (*call[CALLS_N])(void *params);
    int (*result_name)(int result, const char **out);
    bool initialized;
    void *host, *ranges;
    uint8_t *config, *data;
    size_t config_bytes, data_bytes;
    const char *chip;
    char *text;
    size_t cap;
};

/* -- the library -- */

static const char *open_library(struct session *s, const char *named)
{
    static const char *const INSTALLED[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so",
                                            "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"};
    if (!named) named = getenv("RIDGE_CUPTI");
    if (named && *named) {
        s->library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (s->library) return NULL;
        const char *why = dlerror();
        (void)snprintf(s->text, s->cap, "libcupti cannot be loaded: %.150s", why ? why : named);
        return s->text;
    }
    for (size_t i = 0; i < sizeof INSTALLED / sizeof INSTALLED[0] && !s->library; i++)
        s->library = dlopen(INSTALLED[i], RTLD_NOW | RTLD_LOCAL);
    if (s->library) return NULL;
    (void)snprintf(s->text, s->cap, "no libcupti is installed (of CUDA 12.6 or later; RIDGE_CUPTI says where)");
    return s->text;
}

static const char *find_functions(struct session *s)
{
    void *p = dlsym(s->library, "cuptiGetResultString");
    if (p) memcpy(&s->result_name, &p, sizeof p);
    for (size_t i = 0; i < CALLS_N; i++) {
        p = dlsym(s->library, NAMES[i]);
        if (!p) {
            (void)snprintf(s->text, s->cap, "libcupti has no %s: that of CUDA 12.6 or later has", NAMES[i]);
            return s->text;
        }
        memcpy(&s->call[i], &p, sizeof p);
    }
    return NULL;
}

/* -- what went wrong -- */

/* What follows from a code, beyond its name; "" nothing. */
static const char *advice(int code)
{
    switch (code) {
    case CUPTI_NO_PRIVILEGE:
        return ": this user may not read the card's counters; root may, who has CAP_SYS_ADMIN, and everybody where the"
               " driver's module has NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_NO_PRIVILEGE_VIRTUAL: return ": the counters of this virtual card are not given to it";
    case CUPTI_CONFIDENTIAL: return ": a card in confidential computing does not count";
    case CUPTI_MIG: return ": a part of a card (MIG) does not count";
    case CUPTI_NOT_INITIALIZED: return ": there is no driver, or no context";
    default: return "";
    }
}

static const char *failed(struct session *s, enum call which, int code)
{
    const char *name = NULL;
    char number[32];
    if (!s->result_name || s->result_name(code, &name) != CUPTI_DONE || !name) {
        (void)snprintf(number, sizeof number, "error %d", code);
        name = number;
    }
    if (which == HOST_METRICS && code == CUPTI_NO_SUCH_METRIC)
        (void)snprintf(s->text, s->cap, "%s: chip %.20s has no counters %s and %s", name, s->chip, METRICS[0],
                       METRICS[1]);
    else if (which == HOST_OPEN && code == CUPTI_NO_SUCH_CHIP)
        (void)snprintf(s->text, s->cap, "%s: this libcupti does not know chip %.20s", name, s->chip);
    else
        (void)snprintf(s->text, s->cap, "%s: %.60s%s", NAMES[which], name, advice(code));
    return s->text;
}

/* One call: NULL, or the sentence. */
static const char *call(struct session *s, enum call which, void *params)
{
    const int code = s->call[which](params);
    return code == CUPTI_DONE ? NULL : failed(s, which, code);
}

static const char *say(struct session *s, const char *what)
{
    (void)snprintf(s->text, s->cap, "%s", what);
    return s->text;
}

/* -- before the range -- */

static const char *check_card(struct session *s, const struct cupti_job *job)
{
    struct cupti_supported p = {.size = CUPTI_SIZE(struct cupti_supported, api), .device = job->device};
    p.api = CUPTI_API_RANGES;
    const char *why = call(s, SUPPORTED, &p);
    if (why || p.all == CUPTI_SUPPORTED || p.all == CUPTI_UNKNOWN) return why;
    const struct {
        int level;
        const char *what;
    } parts[] = {{p.architecture, "its architecture is older than compute capability 7.0"},
                 {p.sli, "it is one of several in SLI"},
                 {p.virtual_card, "it is virtual, and its counters are not given to it"},
                 {p.confidential, "it is in confidential computing"},
                 {p.mining, "it is one for mining"},
                 {p.wsl, "the Windows below it does not let it"}};
    const char *what = "CUPTI does not say why";
    for (size_t i = sizeof parts / sizeof parts[0]; i-- > 0;)
        if (parts[i].level != CUPTI_SUPPORTED && parts[i].level != CUPTI_UNKNOWN) what = parts[i].what;
    (void)snprintf(s->text, s->cap, "this card does not count: %s", what);
    return s->text;
}

static const char *open_host(struct session *s, const struct cupti_job *job)
{
    struct cupti_chip chip = {.size = CUPTI_SIZE(struct cupti_chip, name), .device = (size_t)job->device};
    const char *why = call(s, CHIP, &chip);
    if (why) return why;
    s->chip = chip.name ? chip.name : "unknown";
    struct cupti_host_open p = {
        .size = CUPTI_SIZE(struct cupti_host_open, host), .kind = CUPTI_RANGE_PROFILER, .chip = s->chip};
    why = call(s, HOST_OPEN, &p);
    if (!why) s->host = p.host;
    return why;
}

/* What is to be counted, as the card is told. */
static const char *make_config(struct session *s)
{
    struct cupti_host_metrics add = {.size = CUPTI_SIZE(struct cupti_host_metrics, n), .host = s->host};
    add.names = METRICS;
    add.n = METRICS_N;
    const char *why = call(s, HOST_METRICS, &add);
    if (why) return why;
    struct cupti_host_size size = {.size = CUPTI_SIZE(struct cupti_host_size, bytes), .host = s->host};
    why = call(s, HOST_SIZE, &size);
    if (why) return why;
    s->config_bytes = size.bytes;
    s->config = calloc(size.bytes + 1, 1);
    if (!s->config) return say(s, "no memory");
    struct cupti_host_image image = {.size = CUPTI_SIZE(struct cupti_host_image, image), .host = s->host};
    image.bytes = s->config_bytes;
    image.image = s->config;
    why = call(s, HOST_IMAGE, &image);
    if (why) return why;
    struct cupti_host_passes p = {.size = CUPTI_SIZE(struct cupti_host_passes, passes)};
    p.bytes = s->config_bytes;
    p.image = s->config;
    why = call(s, HOST_PASSES, &p);
    if (why || p.passes == 1) return why;
    (void)snprintf(s->text, s->cap, "%s and %s take %zu passes on chip %.20s, and one is made", METRICS[0], METRICS[1],
                   p.passes, s->chip);
    return s->text;
}

static const char *open_ranges(struct session *s, const struct cupti_job *job)
{
    struct cupti_range_open open = {.size = CUPTI_SIZE(struct cupti_range_open, ranges), .context = job->context};
    const char *why = call(s, RANGE_OPEN, &open);
    if (why) return why;
    s->ranges = open.ranges;
    struct cupti_range_size size = {.size = CUPTI_SIZE(struct cupti_range_size, bytes), .ranges = s->ranges};
    size.names = METRICS;
    size.n = METRICS_N;
    size.ranges_n = size.nodes_n = 1;
    why = call(s, RANGE_SIZE, &size);
    if (why) return why;
    s->data_bytes = size.bytes;
    s->data = calloc(size.bytes + 1, 1);
    if (!s->data) return say(s, "no memory");
    struct cupti_range_data data = {.size = CUPTI_SIZE(struct cupti_range_data, data), .ranges = s->ranges};
    data.bytes = s->data_bytes;
    data.data = s->data;
    why = call(s, RANGE_DATA, &data);
    if (why) return why;
    struct cupti_range_config p = {.size = CUPTI_SIZE(struct cupti_range_config, level), .ranges = s->ranges};
    p.config_bytes = s->config_bytes;
    p.config = s->config;
    p.data_bytes = s->data_bytes;
    p.data = s->data;
    p.range = CUPTI_USER_RANGE; /* a call may be several kernels */
    p.replay = CUPTI_USER_REPLAY;
    p.ranges_n = 1;
    p.levels_n = p.level_least = p.level = 1;
    return call(s, RANGE_CONFIG, &p);
}

/* -- the range -- */

static const char *run_range(struct session *s, const struct cupti_job *job)
{
    struct cupti_range p = {.size = CUPTI_SIZE(struct cupti_range, ranges), .ranges = s->ranges};
    struct cupti_range_push push = {.size = CUPTI_SIZE(struct cupti_range_push, name), .ranges = s->ranges};
    struct cupti_range_stop stop = {.size = CUPTI_SIZE(struct cupti_range_stop, all_passes), .ranges = s->ranges};
    push.name = "calls";
    const char *why = call(s, RANGE_START, &p);
    if (why) return why;
    why = call(s, RANGE_PUSH, &push);
    if (!why) {
        const char *bad = job->run(job->closure);
        why = call(s, RANGE_POP, &p);
        if (bad) {
            (void)snprintf(s->text, s->cap, "the calls that were counted failed: %.150s", bad);
            why = s->text;
        }
    }
    const int code = s->call[RANGE_STOP](&stop);
    if (why) return why;
    if (code != CUPTI_DONE) return failed(s, RANGE_STOP, code);
    return stop.all_passes ? NULL : say(s, "the counters want to see the calls once more, and they are made once");
}

static const char *read_values(struct session *s, struct cupti_bytes *out)
{
    struct cupti_range_decode decode = {.size = CUPTI_SIZE(struct cupti_range_decode, dropped), .ranges = s->ranges};
    const char *why = call(s, RANGE_DECODE, &decode);
    if (why) return why;
    struct cupti_range_info info = {.size = CUPTI_SIZE(struct cupti_range_info, ranges_n), .data = s->data};
    info.bytes = s->data_bytes;
    why = call(s, RANGE_INFO, &info);
    if (why) return why;
    if (decode.dropped || info.ranges_n != 1) {
        (void)snprintf(s->text, s->cap, "of one range %zu were counted and %zu dropped", info.ranges_n, decode.dropped);
        return s->text;
    }
    double values[METRICS_N] = {(double)NAN, (double)NAN};
    struct cupti_host_values p = {.size = CUPTI_SIZE(struct cupti_host_values, values), .host = s->host};
    p.data = s->data;
    p.data_bytes = s->data_bytes;
    p.names = METRICS;
    p.n = METRICS_N;
    p.values = values;
    why = call(s, HOST_VALUES, &p);
    if (why) return why;
    for (size_t i = 0; i < METRICS_N; i++)
        if (!(isfinite(values[i]) && values[i] >= 0)) {
            (void)snprintf(s->text, s->cap, "%s came out as %g, which are no bytes", METRICS[i], values[i]);
            return s->text;
        }
    *out = (struct cupti_bytes){values[0], values[1]};
    return NULL;
}

static const char *count(struct session *s, const struct cupti_job *job, struct cupti_bytes *out)
{
    struct cupti_plain p = {.size = CUPTI_SIZE(struct cupti_plain, reserved)};
    const char *why = call(s, INITIALIZE, &p);
    s->initialized = !why;
    if (!why) why = check_card(s, job);
    if (!why) why = open_host(s, job);
    if (!why) why = make_config(s);
    if (!why) why = open_ranges(s, job);
    if (!why) why = run_range(s, job);
    if (!why) why = read_values(s, out);
    return why;
}

/* What these say is not asked: what was counted is known by now, or why nothing was. */
static void finish(struct session *s)
{
    struct cupti_range ranges = {.size = CUPTI_SIZE(struct cupti_range, ranges), .ranges = s->ranges};
    struct cupti_host host = {.size = CUPTI_SIZE(struct cupti_host, host), .host = s->host};
    struct cupti_plain p = {.size = CUPTI_SIZE(struct cupti_plain, reserved)};
    if (s->ranges) (void)s->call[RANGE_CLOSE](&ranges);
    if (s->host) (void)s->call[HOST_CLOSE](&host);
    if (s->initialized) (void)s->call[DEINITIALIZE](&p);
    free(s->config);
    free(s->data);
    if (s->library) (void)dlclose(s->library);
}

const char *cupti_count(const struct cupti_job *job, struct cupti_bytes *out, char *text, size_t cap)
{
    struct session s = {.text = text, .cap = cap};
    const char *why = open_library(&s, job->library);
    *out = (struct cupti_bytes){(double)NAN, (double)NAN};
    if (!why) why = find_functions(&s);
    if (!why) why = count(&s, job, out);
    finish(&s);
    return why;
}
