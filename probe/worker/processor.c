#include "probe/worker/processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "calc/base/text.h"

/* Text behind the colon, else behind the key, of a line that begins with the key; false where it does not. */
static bool value_of(const char *line, const char *key, char *out, size_t cap)
{
    if (strncmp(line, key, strlen(key)) != 0) return false;
    const char *v = strchr(line, ':');
    v = v ? v + 1 : line + strlen(key);
    v += strspn(v, " \t");
    (void)text_clean(out, cap, v, strcspn(v, "\n"));
    return true;
}

bool processor_find(const char *path, const char *key, char *out, size_t cap)
{
    char line[1024]; /* not a unit */
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f)) found = value_of(line, key, out, cap);
    if (f) (void)fclose(f);
    return found;
}

/* -- ARM -- */

struct maker {
    unsigned long implementer;
    const char *name;
};

struct core {
    unsigned long implementer, part;
    const char *name;
};

enum { ARM = 0x41, CAVIUM = 0x43, FUJITSU = 0x46, HISILICON = 0x48, NVIDIA = 0x4e, QUALCOMM = 0x51, APPLE = 0x61 };
enum { MICROSOFT = 0x6d, AMPERE = 0xc0 };

static const struct maker MAKERS[] = {
    {ARM, "Arm"},           {CAVIUM, "Cavium"}, {FUJITSU, "Fujitsu"},     {HISILICON, "HiSilicon"}, {NVIDIA, "NVIDIA"},
    {QUALCOMM, "Qualcomm"}, {APPLE, "Apple"},   {MICROSOFT, "Microsoft"}, {AMPERE, "Ampere"},
};

static const struct core CORES[] = {
    {ARM, 0xd03, "Cortex-A53"},
    {ARM, 0xd05, "Cortex-A55"},
    {ARM, 0xd07, "Cortex-A57"},
    {ARM, 0xd08, "Cortex-A72"},
    {ARM, 0xd09, "Cortex-A73"},
    {ARM, 0xd0a, "Cortex-A75"},
    {ARM, 0xd0b, "Cortex-A76"},
    {ARM, 0xd0c, "Neoverse N1"},
    {ARM, 0xd0d, "Cortex-A77"},
    {ARM, 0xd40, "Neoverse V1"},
    {ARM, 0xd41, "Cortex-A78"},
    {ARM, 0xd42, "Cortex-A78AE"},
    {ARM, 0xd44, "Cortex-X1"},
    {ARM, 0xd46, "Cortex-A510"},
    {ARM, 0xd47, "Cortex-A710"},
    {ARM, 0xd48, "Cortex-X2"},
    {ARM, 0xd49, "Neoverse N2"},
    {ARM, 0xd4d, "Cortex-A715"},
    {ARM, 0xd4e, "Cortex-X3"},
    {ARM, 0xd4f, "Neoverse V2"},
    {ARM, 0xd80, "Cortex-A520"},
    {ARM, 0xd81, "Cortex-A720"},
    {ARM, 0xd82, "Cortex-X4"},
    {ARM, 0xd84, "Neoverse V3"},
    {ARM, 0xd85, "Cortex-X925"},
    {ARM, 0xd8e, "Neoverse N3"},
    {CAVIUM, 0xaf, "ThunderX2"},
    {FUJITSU, 0x1, "A64FX"},
    {HISILICON, 0xd01, "TaiShan v110"},
    {NVIDIA, 0x4, "Carmel"},
    {QUALCOMM, 0x1, "Oryon"},
    {APPLE, 0x22, "M1 (Icestorm)"},
    {APPLE, 0x23, "M1 (Firestorm)"},
    {APPLE, 0x24, "M1 Pro (Icestorm)"},
    {APPLE, 0x25, "M1 Pro (Firestorm)"},
    {APPLE, 0x28, "M1 Max (Icestorm)"},
    {APPLE, 0x29, "M1 Max (Firestorm)"},
    {APPLE, 0x32, "M2 (Blizzard)"},
    {APPLE, 0x33, "M2 (Avalanche)"},
    {MICROSOFT, 0xd49, "Azure Cobalt 100"},
    {AMPERE, 0xac3, "AmpereOne"},
    {AMPERE, 0xac4, "AmpereOne A"},
};

static void put_core(unsigned long implementer, unsigned long part, char *out, size_t cap)
{
    const char *maker = NULL, *core = NULL;
    char number[40];
    for (size_t i = 0; i < sizeof MAKERS / sizeof MAKERS[0]; i++)
        if (MAKERS[i].implementer == implementer) maker = MAKERS[i].name;
    for (size_t i = 0; i < sizeof CORES / sizeof CORES[0]; i++)
        if (CORES[i].implementer == implementer && CORES[i].part == part) core = CORES[i].name;
    if (!maker) (void)snprintf(number, sizeof number, "implementer 0x%lx", implementer);
    if (core)
        (void)snprintf(out, cap, "%s %s", maker ? maker : number, core);
    else
        (void)snprintf(out, cap, "%s part 0x%lx", maker ? maker : number, part);
}

/* Names of all kinds of cores, in the order of the processors. */
static bool name_cores(const char *path, char *out, size_t cap)
{
    enum { KINDS = 4 };
    unsigned long seen[KINDS][2], implementer = 0;
    size_t kinds = 0, used = 0;
    char line[1024], text[64]; /* not a unit */
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (value_of(line, "CPU implementer", text, sizeof text)) implementer = strtoul(text, NULL, 16);
        if (!value_of(line, "CPU part", text, sizeof text)) continue;
        const unsigned long part = strtoul(text, NULL, 16);
        bool new = kinds < KINDS;
        for (size_t i = 0; i < kinds; i++) new = new && (seen[i][0] != implementer || seen[i][1] != part);
        if (!new || used + 1 >= cap) continue;
        put_core(implementer, part, text, sizeof text);
        (void)snprintf(out + used, cap - used, "%s%s", kinds ? " + " : "", text);
        used += strlen(out + used);
        seen[kinds][0] = implementer;
        seen[kinds++][1] = part;
    }
    if (f) (void)fclose(f);
    return kinds > 0;
}

void processor_name(const char *path, char *out, size_t cap)
{
    struct utsname u;
    if (processor_find(path, "model name", out, cap) || name_cores(path, out, cap)) return;
    (void)snprintf(out, cap, "%s processor", uname(&u) == 0 ? u.machine : "unknown");
}
