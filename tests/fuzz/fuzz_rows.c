/* fuzz_rows -- any bytes as a CSV file of measured rows: rows whose every call has work, a bound and a calibrated form,
 * or one clean sentence; never a crash, a leak or a hang. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calc/fit/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what, const char *text)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_rows: %s: %s\n", what, text);
    abort();
}

static void check_refusal(enum err_code code, const struct err *e)
{
    require(e->code == code, "the error holds another code than the one returned", e->text);
    require(code == ERR_INPUT || code == ERR_NOMEM || code == ERR_RANGE || code == ERR_NO,
            "a code that no file can cause", e->text);
    for (const char *p = e->text; *p; p++)
        require((unsigned char)*p >= ' ' && *p != 0x7f, "a control character of the input is in the message", e->text);
    require(e->text[0] != '\0', "refused without a sentence", "");
}

/* What fit and validate do with a row: seconds of a form at its first starts, never below the credited bound. */
static void check_row(const struct row *r, const struct hw *hw)
{
    static double room[KERNEL_FEATURES_MAX];
    struct kernel_work w;
    struct kernel_features f;
    struct err e = {.code = ERR_OK};
    double p[KERNEL_PARAMS_MAX];
    require(r->time_s > 0 && isfinite(r->time_s), "a time that is none", r->class_name);
    for (const char *c = r->class_name; *c; c++)
        require((unsigned char)*c >= ' ' && *c != 0x7f, "a control character is in the class", r->class_name);
    if (kernel_work(&r->kernel, hw, &w, &e) != ERR_OK) {
        check_refusal(e.code, &e);
        return;
    }
    require(w.bound_s >= 0 && isfinite(w.bound_s) && w.credited_bound_s <= w.bound_s, "no bound", r->class_name);
    require(kernel_prepare(&r->kernel, hw, room, &f, &e) == ERR_OK, "work without a form", e.text);
    require(f.n <= KERNEL_FEATURES_MAX, "more features than there is room", r->class_name);
    for (size_t i = 0; i < kernel_params_n(&r->kernel); i++) p[i] = kernel_param(&r->kernel, i)->start[0];
    const double s = kernel_time_s(kernel_form_of(&r->kernel), &f, p);
    require(isfinite(s) && s >= w.credited_bound_s, "a calibrated time below the bound, or none", r->class_name);
}

/* The bytes as a file without a name, one for all inputs. */
static int file_of(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char name[] = "/tmp/fuzz_rows.XXXXXX";
    if (fd < 0) {
        fd = mkstemp(name);
        (void)unlink(name);
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct hw hw;
    struct rows rows = {.n = 0};
    char path[64];
    const int fd = file_of(data, size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!a || hw_load(a, "h100-sxm", &hw, &e) != ERR_OK) abort();
    const struct rows_filter filter = {.hw = &hw, .lenient = size % 2 == 1};
    const enum err_code code = rows_read_file(a, path, &filter, &rows, &e);
    if (code != ERR_OK) check_refusal(code, &e);
    for (size_t i = 0; i < rows.n; i++) check_row(&rows.v[i], &hw);
    arena_close(a);
    return 0;
}
