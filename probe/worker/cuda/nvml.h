/* nvml -- clocks, power, temperature and what throttles a card, by NVIDIA's management library where it is installed.
 * It is loaded while running, and only asked; nothing is set by it. */
#ifndef RIDGE_PROBE_WORKER_CUDA_NVML_H
#define RIDGE_PROBE_WORKER_CUDA_NVML_H

#include <stdbool.h>
#include <stddef.h>

struct nvml {
    void *library, *device;
    int (*clock)(void *device, int kind, unsigned *mhz);
    int (*power)(void *device, unsigned *mw);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*throttle)(void *device, unsigned long long *reasons);
    char driver[80];
};

/* nvml_open -- of the card with this PCI address; false: not installed, or it does not know the card. nvml_close --
 * unloads it. */
bool nvml_open(struct nvml *n, const char *bus);
void nvml_close(struct nvml *n);

/* What the card was doing; unknown numbers are NAN. */
struct nvml_state {
    double processor_hz, memory_hz, power_w, temperature_c;
    bool throttle_known;
    unsigned long long throttle; /* bits of nvmlClocksEventReasons */
};
void nvml_read(const struct nvml *n, struct nvml_state *out);

/* nvml_throttle_text -- "power cap, thermal"; "" for none. Returns text. */
const char *nvml_throttle_text(unsigned long long reasons, char *text, size_t cap);

#endif
