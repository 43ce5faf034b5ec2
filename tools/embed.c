/* embed -- host tool of the build: embed OUT.c FILE...
 *
 * Writes a C file that defines embed_files and embed_files_n (calc/base/embed.h) with the bytes of every FILE, sorted
 * by path. FILEs are named relative to the checkout; absolute paths and ".." are refused, so that no machine's folders
 * end up in the program. Bytes are written as numbers: a string literal of C11 may be no longer than 4,095 characters.
 * OUT.c appears whole or not at all. Exit status: 0 done, 2 usage, 4 cannot read or write, 6 memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USE = 2, EXIT_IO = 4, EXIT_MEM = 6, NUMBERS_PER_LINE = 32, PATH_MAX_BYTES = 1000 };

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Letters that need no escape in a string literal of C and cannot form a trigraph. */
static int path_is_plain(const char *path)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/";
    return path[0] != '\0' && path[0] != '/' && path[strspn(path, legal)] == '\0' && !strstr(path, "..") &&
           strlen(path) <= PATH_MAX_BYTES;
}

static int write_bytes(FILE *out, size_t index, const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    if (!in) return 0;
    (void)fprintf(out, "\nstatic const unsigned char file_%zu[] = {", index);
    size_t n = 0;
    int c;
    while ((c = getc(in)) != EOF) (void)fprintf(out, "%s%d,", n++ % NUMBERS_PER_LINE == 0 ? "\n    " : "", c);
    (void)fprintf(out, "%s0};\n", n % NUMBERS_PER_LINE == 0 ? "\n    " : "");
    *size = n;
    const int bad = ferror(in);
    return fclose(in) == 0 && !bad;
}

static int write_all(FILE *out, const char **paths, size_t n, size_t *sizes)
{
    (void)fprintf(out, "/* Written by tools/embed.c. */\n#include \"calc/base/embed.h\"\n");
    for (size_t i = 0; i < n; i++) {
        if (!write_bytes(out, i, paths[i], &sizes[i])) {
            perror(paths[i]);
            return EXIT_IO;
        }
    }
    (void)fprintf(out, "\nconst struct embed_file embed_files[] = {\n");
    for (size_t i = 0; i < n; i++) (void)fprintf(out, "    {\"%s\", file_%zu, %zu},\n", paths[i], i, sizes[i]);
    if (n == 0) (void)fprintf(out, "    {0, 0, 0},\n"); /* an array of C has at least one element */
    (void)fprintf(out, "};\n\nconst size_t embed_files_n = %zu;\n", n);
    return 0;
}

static int write_file(const char *out_path, const char **paths, size_t n, size_t *sizes)
{
    char temporary[PATH_MAX_BYTES + 8];
    if (strlen(out_path) > PATH_MAX_BYTES) {
        (void)fprintf(stderr, "embed: the name of the output is longer than %d bytes\n", PATH_MAX_BYTES);
        return EXIT_USE;
    }
    (void)snprintf(temporary, sizeof temporary, "%s.tmp", out_path);
    FILE *out = fopen(temporary, "wb");
    if (!out) {
        perror(temporary);
        return EXIT_IO;
    }
    int status = write_all(out, paths, n, sizes);
    const int bad = ferror(out);
    if ((fclose(out) != 0 || bad) && status == 0) status = EXIT_IO;
    if (status == 0 && rename(temporary, out_path) != 0) {
        perror(out_path);
        status = EXIT_IO;
    }
    if (status != 0) (void)remove(temporary);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: embed OUT.c FILE...\n");
        return EXIT_USE;
    }
    const size_t n = (size_t)argc - 2;
    const char **paths = calloc(n + 1, sizeof *paths);
    size_t *sizes = calloc(n + 1, sizeof *sizes);
    int status = paths && sizes ? 0 : EXIT_MEM;
    for (size_t i = 0; i < n && status == 0; i++) {
        paths[i] = strncmp(argv[i + 2], "./", 2) == 0 ? argv[i + 2] + 2 : argv[i + 2];
        if (!path_is_plain(paths[i])) {
            (void)fprintf(stderr, "embed: %s: wanted a path below the checkout, of letters, digits and ._+-/\n",
                          paths[i]);
            status = EXIT_USE;
        }
    }
    if (status == 0) {
        qsort(paths, n, sizeof *paths, compare_paths);
        for (size_t i = 1; i < n && status == 0; i++) {
            if (strcmp(paths[i - 1], paths[i]) == 0) {
                (void)fprintf(stderr, "embed: %s: named twice\n", paths[i]);
                status = EXIT_USE;
            }
        }
    }
    if (status == 0) status = write_file(argv[1], paths, n, sizes);
    free(paths);
    free(sizes);
    return status;
}
