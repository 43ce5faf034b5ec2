#define _DEFAULT_SOURCE
#include "probe/worker/cuda/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Numbers of nvml.h (NVML API reference): NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_SUCCESS. */
enum { CLOCK_SM = 1, CLOCK_MEM = 2, TEMPERATURE_GPU = 0, SUCCESS = 0 };

static bool find(void *library, const char *name, void *slot)
{
    void *const p = dlsym(library, name);
    if (p) memcpy(slot, &p, sizeof p);
    return p != NULL;
}

bool nvml_open(struct nvml *n, const char *bus)
{
    int (*init)(void) = NULL;
    int (*handle)(const char *bus, void **device) = NULL;
    int (*driver)(char *text, unsigned cap) = NULL;
    *n = (struct nvml){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (!n->library) return false;
    if (find(n->library, "nvmlInit_v2", &init) && init() == SUCCESS) {
        if (find(n->library, "nvmlSystemGetDriverVersion", &driver) && driver(n->driver, sizeof n->driver) != SUCCESS)
            n->driver[0] = '\0';
        (void)find(n->library, "nvmlDeviceGetClockInfo", &n->clock);
        (void)find(n->library, "nvmlDeviceGetPowerUsage", &n->power);
        (void)find(n->library, "nvmlDeviceGetTemperature", &n->temperature);
        (void)find(n->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &n->throttle);
        if (find(n->library, "nvmlDeviceGetHandleByPciBusId_v2", &handle) && handle(bus, &n->device) == SUCCESS)
            return true;
    }
    nvml_close(n);
    return false;
}

void nvml_close(struct nvml *n)
{
    int (*end)(void) = NULL;
    if (!n->library) return;
    if (find(n->library, "nvmlShutdown", &end)) (void)end();
    (void)dlclose(n->library);
    n->library = n->device = NULL;
}

void nvml_read(const struct nvml *n, struct nvml_state *out)
{
    const double nan = (double)NAN;
    unsigned v;
    *out = (struct nvml_state){.processor_hz = nan, .memory_hz = nan, .power_w = nan, .temperature_c = nan};
    if (!n->device) return;
    if (n->clock && n->clock(n->device, CLOCK_SM, &v) == SUCCESS) out->processor_hz = v * 1e6;
    if (n->clock && n->clock(n->device, CLOCK_MEM, &v) == SUCCESS) out->memory_hz = v * 1e6;
    if (n->power && n->power(n->device, &v) == SUCCESS) out->power_w = v * 1e-3;
    if (n->temperature && n->temperature(n->device, TEMPERATURE_GPU, &v) == SUCCESS) out->temperature_c = v;
    out->throttle_known = n->throttle && n->throttle(n->device, &out->throttle) == SUCCESS;
}

const char *nvml_throttle_text(unsigned long long reasons, char *text, size_t cap)
{
    static const char *const NAMES[] = {"idle",    "clocks set",     "power cap",   "slowdown",     "sync boost",
                                        "thermal", "thermal (hard)", "power brake", "display clock"};
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (!(reasons >> i & 1) || n >= cap) continue;
        const int more = snprintf(text + n, cap - n, "%s%s", n ? ", " : "", NAMES[i]);
        n += more > 0 ? (size_t)more : 0;
    }
    return text;
}
