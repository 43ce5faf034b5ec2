/* libcupti_fake -- a libcupti of the tests: it keeps the order that CUPTI 13.0 asks for, hands data on from step to
 * step as that does, and fails where it is told to. */
#include <string.h>

#include "probe/worker/cupti_api.h"
#include "tests/worker/cupti_fake.h"

extern struct cupti_fake cupti_fake;
struct cupti_fake cupti_fake;

enum { CONFIG_BYTES = 37, DATA_BYTES = 113, CONFIG_BYTE = 0x5a, DATA_BYTE = 0xa5 };

static int host_mark, range_mark;

/* Notes a call; right: it was given what it wants. Returns what it is to return. */
static int note(const char *name, bool right)
{
    struct cupti_fake *f = &cupti_fake;
    const size_t n = strlen(f->log);
    if (n + strlen(name) + 3 < sizeof f->log) {
        if (!right) f->log[n] = '?';
        memcpy(f->log + n + !right, name, strlen(name));
        f->log[n + !right + strlen(name)] = ' ';
        f->log[n + !right + strlen(name) + 1] = '\0';
    }
    if (f->fails && strcmp(f->fails, name) == 0) return f->code;
    return right ? CUPTI_DONE : 1;
}

static bool is(const void *bytes, size_t n, int byte)
{
    for (size_t i = 0; i < n; i++)
        if (((const unsigned char *)bytes)[i] != byte) return false;
    return true;
}

static bool are_metrics(const char *const *names, size_t n)
{
    return n == 2 && strcmp(names[0], "dram__bytes_read.sum") == 0 && strcmp(names[1], "dram__bytes_write.sum") == 0;
}

static bool has_head(const void *params, size_t size)
{
    const struct cupti_plain *p = params;
    return p->size == size && !p->reserved;
}

#define F(name, type, last)                                                                                            \
    int name(struct type *p);                                                                                          \
    int name(struct type *p)
#define HEAD(type, last) has_head(p, CUPTI_SIZE(struct type, last))
/* Notes the call of the function it stands in; leaves it where that fails. */
#define NOTE(right)                                                                                                    \
    do {                                                                                                               \
        const int code = note(__func__, (right));                                                                      \
        if (code != CUPTI_DONE) return code;                                                                           \
    } while (0)

int cuptiGetResultString(int result, const char **out);
int cuptiGetResultString(int result, const char **out)
{
    static const struct {
        int code;
        const char *name;
    } NAMES[] = {{15, "CUPTI_ERROR_NOT_INITIALIZED"},
                 {17, "CUPTI_ERROR_INVALID_METRIC_NAME"},
                 {35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
                 {40, "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES"},
                 {41, "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED"},
                 {43, "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED"},
                 {46, "CUPTI_ERROR_INVALID_CHIP_NAME"},
                 {999, "CUPTI_ERROR_UNKNOWN"}};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (NAMES[i].code == result) {
            *out = NAMES[i].name;
            return 0;
        }
    return 1;
}

F(cuptiProfilerInitialize, cupti_plain, reserved)
{
    NOTE(HEAD(cupti_plain, reserved));
    cupti_fake.initialized++;
    return 0;
}

F(cuptiProfilerDeInitialize, cupti_plain, reserved)
{
    NOTE(HEAD(cupti_plain, reserved) && cupti_fake.initialized && !cupti_fake.hosts && !cupti_fake.enabled);
    cupti_fake.initialized--;
    return 0;
}

F(cuptiProfilerDeviceSupported, cupti_supported, api)
{
    NOTE(HEAD(cupti_supported, api) && p->device == cupti_fake.device && p->api == 0);
    int *const to[] = {&p->all, &p->architecture, &p->sli, &p->virtual_card, &p->confidential, &p->mining, &p->wsl};
    for (size_t i = 0; i < 7; i++) *to[i] = cupti_fake.levels[i];
    return 0;
}

F(cuptiDeviceGetChipName, cupti_chip, name)
{
    NOTE(HEAD(cupti_chip, name) && p->device == (size_t)cupti_fake.device);
    p->name = "GH100";
    return 0;
}

F(cuptiProfilerHostInitialize, cupti_host_open, host)
{
    NOTE(HEAD(cupti_host_open, host) && p->kind == 0 && strcmp(p->chip, "GH100") == 0);
    p->host = &host_mark;
    cupti_fake.hosts++;
    return 0;
}

F(cuptiProfilerHostDeinitialize, cupti_host, host)
{
    NOTE(HEAD(cupti_host, host) && p->host == &host_mark && cupti_fake.hosts);
    cupti_fake.hosts--;
    return 0;
}

F(cuptiProfilerHostConfigAddMetrics, cupti_host_metrics, n)
{
    NOTE(HEAD(cupti_host_metrics, n) && p->host == &host_mark && are_metrics(p->names, p->n));
    return 0;
}

F(cuptiProfilerHostGetConfigImageSize, cupti_host_size, bytes)
{
    NOTE(HEAD(cupti_host_size, bytes) && p->host == &host_mark);
    p->bytes = CONFIG_BYTES;
    return 0;
}

F(cuptiProfilerHostGetConfigImage, cupti_host_image, image)
{
    NOTE(HEAD(cupti_host_image, image) && p->host == &host_mark && p->bytes == CONFIG_BYTES);
    memset(p->image, CONFIG_BYTE, p->bytes);
    return 0;
}

F(cuptiProfilerHostGetNumOfPasses, cupti_host_passes, passes)
{
    NOTE(HEAD(cupti_host_passes, passes) && p->bytes == CONFIG_BYTES && is(p->image, p->bytes, CONFIG_BYTE));
    p->passes = cupti_fake.passes;
    return 0;
}

F(cuptiRangeProfilerEnable, cupti_range_open, ranges)
{
    NOTE(HEAD(cupti_range_open, ranges) && cupti_fake.initialized && p->context == cupti_fake.context);
    p->ranges = &range_mark;
    cupti_fake.enabled++;
    return 0;
}

F(cuptiRangeProfilerDisable, cupti_range, ranges)
{
    NOTE(HEAD(cupti_range, ranges) && p->ranges == &range_mark && cupti_fake.enabled && !cupti_fake.started);
    cupti_fake.enabled--;
    return 0;
}

F(cuptiRangeProfilerGetCounterDataSize, cupti_range_size, bytes)
{
    NOTE(HEAD(cupti_range_size, bytes) && p->ranges == &range_mark && are_metrics(p->names, p->n) && p->ranges_n == 1 &&
         p->nodes_n >= p->ranges_n);
    p->bytes = DATA_BYTES;
    return 0;
}

F(cuptiRangeProfilerCounterDataImageInitialize, cupti_range_data, data)
{
    NOTE(HEAD(cupti_range_data, data) && p->ranges == &range_mark && p->bytes == DATA_BYTES);
    memset(p->data, DATA_BYTE, p->bytes);
    return 0;
}

static unsigned char *data; /* that was configured */

F(cuptiRangeProfilerSetConfig, cupti_range_config, level)
{
    NOTE(HEAD(cupti_range_config, level) && p->ranges == &range_mark && p->config_bytes == CONFIG_BYTES &&
         is(p->config, p->config_bytes, CONFIG_BYTE) && p->data_bytes == DATA_BYTES &&
         is(p->data, p->data_bytes, DATA_BYTE) && p->range == 2 && p->replay == 3 && p->ranges_n == 1 &&
         p->levels_n == 1 && p->level_least == 1 && p->pass == 0);
    data = p->data;
    return 0;
}

F(cuptiRangeProfilerStart, cupti_range, ranges)
{
    NOTE(HEAD(cupti_range, ranges) && p->ranges == &range_mark && data);
    cupti_fake.started++;
    return 0;
}

F(cuptiRangeProfilerPushRange, cupti_range_push, name)
{
    NOTE(HEAD(cupti_range_push, name) && p->ranges == &range_mark && cupti_fake.started && p->name && *p->name);
    cupti_fake.pushed++;
    return 0;
}

F(cuptiRangeProfilerPopRange, cupti_range, ranges)
{
    NOTE(HEAD(cupti_range, ranges) && p->ranges == &range_mark && cupti_fake.pushed);
    cupti_fake.pushed--;
    return 0;
}

F(cuptiRangeProfilerStop, cupti_range_stop, all_passes)
{
    cupti_fake.started--; /* whatever it says */
    NOTE(HEAD(cupti_range_stop, all_passes) && p->ranges == &range_mark);
    p->all_passes = cupti_fake.all_passes;
    return 0;
}

F(cuptiRangeProfilerDecodeData, cupti_range_decode, dropped)
{
    NOTE(HEAD(cupti_range_decode, dropped) && p->ranges == &range_mark && !cupti_fake.started && !cupti_fake.pushed);
    memcpy(data, cupti_fake.values, sizeof cupti_fake.values);
    p->dropped = cupti_fake.dropped;
    return 0;
}

F(cuptiRangeProfilerGetCounterDataInfo, cupti_range_info, ranges_n)
{
    NOTE(HEAD(cupti_range_info, ranges_n) && p->data == data && p->bytes == DATA_BYTES);
    p->ranges_n = cupti_fake.ranges;
    return 0;
}

F(cuptiProfilerHostEvaluateToGpuValues, cupti_host_values, values)
{
    NOTE(HEAD(cupti_host_values, values) && p->host == &host_mark && p->data == data && p->data_bytes == DATA_BYTES &&
         p->range == 0 && are_metrics(p->names, p->n));
    memcpy(p->values, data, sizeof cupti_fake.values);
    return 0;
}
