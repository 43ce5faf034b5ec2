#include "calc/base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/base/text.h"

uint64_t hash_start(void) { return 0xcbf29ce484222325u; }

uint64_t hash_more(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

const char *hash_text(char out[HASH_TEXT_MAX], uint64_t h)
{
    (void)snprintf(out, HASH_TEXT_MAX, "%016llx", (unsigned long long)h);
    return out;
}

static enum err_code hash_open_file(int fd, const char *name, char out[HASH_TEXT_MAX], struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return err_set(e, ERR_IO, "%s: cannot read: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode)) return err_set(e, ERR_IO, "%s: is not a regular file", name);
    char buffer[16 * 1024]; /* not a unit */
    uint64_t h = hash_start();
    for (;;) {
        const ssize_t n = read(fd, buffer, sizeof buffer);
        if (n == 0) break;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return err_set(e, ERR_IO, "%s: cannot read: %s", name, strerror(errno));
        h = hash_more(h, buffer, (size_t)n);
    }
    hash_text(out, h);
    return ERR_OK;
}

enum err_code hash_file(const char *path, char out[HASH_TEXT_MAX], struct err *e)
{
    char name[200];
    text_clean(name, sizeof name, path, strlen(path));
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a fifo must not hang before fstat */
    if (fd < 0) return err_set(e, ERR_IO, "%s: cannot open: %s", name, strerror(errno));
    const enum err_code code = hash_open_file(fd, name, out, e);
    (void)close(fd);
    return code;
}
