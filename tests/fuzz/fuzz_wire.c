/* fuzz_wire -- any bytes as a line of a worker, or as a request to one: read within bounds and with a check that
 * passed, or refused with one clean sentence; what was read is written and read again the same. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds, const char *what, const char *text)
{
    if (holds) return;
    (void)fprintf(stderr, "fuzz_wire: %s: %s\n", what, text);
    abort();
}

static void check_refusal(enum err_code code, const struct err *e)
{
    require(e->code == code, "the error holds another code than the one returned", e->text);
    require(code == ERR_INPUT || code == ERR_NOMEM, "a code that no line can cause", e->text);
    for (const char *p = e->text; *p; p++)
        require((unsigned char)*p >= ' ' && *p != 0x7f, "a control character of the input is in the message", e->text);
    require(e->text[0] != '\0', "refused without a sentence", "");
}

static void check_result(const struct wire_result *r)
{
    require(r->times_n <= SAMPLE_MAX && r->discards_n <= SAMPLE_MAX, "too many samples", r->reason);
    for (size_t i = 0; i < r->times_n; i++) require(r->times_s[i] > 0 && isfinite(r->times_s[i]), "no time", r->reason);
    if (r->outcome != WIRE_MEASURED) return;
    require(r->error_frac <= r->tolerance_frac && r->checked > 0, "measured without a check", r->reason);
    require(r->times_n + r->discards_n > 0 && r->flops >= 0, "measured without samples", r->reason);
}

static void reply_again(struct arena *a, const struct wire_reply *r)
{
    struct out *o, *p;
    struct wire_reply back;
    struct err e = {.code = ERR_OK};
    size_t n, m;
    if (out_memory(a, &o, NULL) != ERR_OK || out_memory(a, &p, NULL) != ERR_OK) return;
    wire_write_reply(o, r);
    const char *line = out_text(o, &n);
    if (!line || n > WIRE_LINE_MAX) return;
    require(line[n - 1] == '\n' && memchr(line, '\n', n) == line + n - 1, "not one line", line);
    require(wire_read_reply(a, line, n - 1, &back, &e) == ERR_OK, "its own line is refused", e.text);
    wire_write_reply(p, &back);
    const char *again = out_text(p, &m);
    require(again && m == n && memcmp(again, line, n) == 0, "written again it is another line", line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *a = arena_open();
    struct err e = {.code = ERR_OK};
    struct wire_reply reply;
    struct wire_request request;
    if (!a) return 0;
    const char *line = size ? (const char *)data : "";
    enum err_code code = wire_read_reply(a, line, size, &reply, &e);
    if (code != ERR_OK) {
        check_refusal(code, &e);
    } else {
        if (reply.is == WIRE_IS_RESULT) check_result(&reply.result);
        if (reply.is != WIRE_IS_DEVICE || !strchr(reply.device.identity, '\n')) reply_again(a, &reply);
    }
    e = (struct err){.code = ERR_OK};
    code = wire_read_request(a, line, size, &request, &e);
    if (code != ERR_OK) check_refusal(code, &e);
    arena_close(a);
    return 0;
}
