/* processor -- what the system's file about processors (/proc/cpuinfo) says of them. */
#ifndef RIDGE_PROBE_WORKER_PROCESSOR_H
#define RIDGE_PROBE_WORKER_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

/* processor_find -- the text behind "key ... : " in the first such line of a file; false when there is none. */
bool processor_find(const char *path, const char *key, char *out, size_t cap);

/* processor_name -- the name that such a file gives, its "model name". On ARM it has none, but numbers of implementer
 * and part, which are named here: "Arm Neoverse V2"; cores of several kinds with a plus between them; those without a
 * name here by their number, "Arm part 0xd99". Elsewhere "<system's machine> processor". Source of the names: the main
 * ID registers in the technical reference manuals of the cores, as Linux (arch/arm64/include/asm/cputype.h) and lscpu
 * list them. */
void processor_name(const char *path, char *out, size_t cap);

#endif
