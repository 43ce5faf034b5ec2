/* mutant -- reads which mutant is on before main starts. */
#include "tools/mutate/mutant.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int mutant_on;
unsigned char *mutant_seen;

__attribute__((constructor)) static void mutant_read(void)
{
    const char *on = getenv("RIDGE_MUTANT"), *seen = getenv("RIDGE_MUTANT_SEEN");
    if (on) mutant_on = (int)strtol(on, NULL, 10);
    if (!seen) return;
    const int fd = open(seen, O_RDWR);
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0) return;
    void *map = mmap(NULL, (size_t)s.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) mutant_seen = map;
    (void)close(fd);
}
