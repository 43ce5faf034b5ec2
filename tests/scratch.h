/* scratch -- folders and files that tests write, below $TMPDIR or /tmp. All are in one folder of the program, which
 * goes when it ends, whatever became of its tests; of one that is killed, tests/run.sh removes what is left. */
#ifndef RIDGE_TESTS_SCRATCH_H
#define RIDGE_TESTS_SCRATCH_H

#include <stddef.h>

/* Room for the path of a folder or a file, and for that of a file with a short name in a folder. */
enum { SCRATCH_MAX = 192, SCRATCH_FILE_MAX = SCRATCH_MAX + 64 };

/* scratch_dir -- an empty folder of its own; its path into out, which is returned. The program ends where there is
 * none. */
const char *scratch_dir(char out[SCRATCH_MAX]);

/* scratch_file -- an empty file, open for reading and writing: its descriptor; its path into out. */
int scratch_file(char out[SCRATCH_MAX]);

/* scratch_text -- a file of this text; its path into out, which is returned. */
const char *scratch_text(char out[SCRATCH_MAX], const char *text);

/* scratch_remove -- a file, or a folder with all in it, before the program ends. */
void scratch_remove(const char *path);

#endif
