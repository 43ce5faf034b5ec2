/* wire: what one side writes the other reads; hostile lines are refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/wire.h"

static int begin(void **state)
{
    *state = arena_open();
    return *state ? 0 : -1;
}

static int end(void **state)
{
    arena_close(*state);
    return 0;
}

static const struct wire_job JOB = {.kernel = "gemm",
                                    .variant = "avx512",
                                    .dtype = "bf16",
                                    .shape = {3, {{"m", 17}, {"n", 4099}, {"k", 1 << 20}}},
                                    .cold = true,
                                    .seed = 104729,
                                    .least = 11,
                                    .noise_frac = 0.0047,
                                    .deadline_s = 2.3};

static const char *text_of_request(struct arena *a, const struct wire_request *q, size_t *n)
{
    struct out *o;
    assert_int_equal(out_memory(a, &o, NULL), ERR_OK);
    wire_write_request(o, q);
    return out_text(o, n);
}

static const char *text_of_reply(struct arena *a, const struct wire_reply *r, size_t *n)
{
    struct out *o;
    assert_int_equal(out_memory(a, &o, NULL), ERR_OK);
    wire_write_reply(o, r);
    return out_text(o, n);
}

static void requests_read_back(void **state)
{
    const struct wire_request q = {.id = 23, .ask = WIRE_MEASURE, .job = JOB};
    struct wire_request back;
    size_t n;
    const char *line = text_of_request(*state, &q, &n);
    assert_int_equal(line[n - 1], '\n');
    assert_ptr_equal(strchr(line, '\n'), line + n - 1);
    assert_int_equal(wire_read_request(*state, line, n - 1, &back, NULL), ERR_OK);
    assert_int_equal(back.id, 23);
    assert_int_equal(back.ask, WIRE_MEASURE);
    assert_string_equal(back.job.kernel, "gemm");
    assert_string_equal(back.job.variant, "avx512");
    assert_string_equal(back.job.dtype, "bf16");
    assert_int_equal(back.job.shape.n, 3);
    int64_t v = 0;
    assert_true(wire_shape_get(&back.job.shape, "n", &v));
    assert_int_equal(v, 4099);
    assert_false(wire_shape_get(&back.job.shape, "N", &v));
    assert_true(back.job.cold);
    assert_false(back.job.keep);
    assert_int_equal(back.job.seed, 104729);
    assert_int_equal(back.job.least, 11);
    assert_true(back.job.noise_frac == 0.0047 && back.job.deadline_s == 2.3);
}

static void results_read_back(void **state)
{
    double times[] = {1.1e-3, 1.3e-3, 1.7e-3}, discards[] = {0.019};
    const struct wire_reply r = {.id = 29,
                                 .is = WIRE_IS_RESULT,
                                 .result = {.outcome = WIRE_MEASURED,
                                            .reason = "",
                                            .unit = "bf16-dot",
                                            .stop = SAMPLE_PLATEAU,
                                            .times_s = times,
                                            .discards_s = discards,
                                            .times_n = 3,
                                            .discards_n = 1,
                                            .calls = 31,
                                            .copies = 37,
                                            .checked = 41,
                                            .error_frac = 1.7e-3,
                                            .tolerance_frac = 1e-2,
                                            .flops = 1.3e9,
                                            .vector_flops = 0,
                                            .read_bytes = 7e6,
                                            .written_bytes = 11e3,
                                            .footprint_bytes = 7.1e6,
                                            .piece_bytes = 32768,
                                            .conditions = "{\"power_w\":\"311\",\"throttled_by\":\"power cap\"}"}};
    struct wire_reply back;
    size_t n;
    const char *line = text_of_reply(*state, &r, &n);
    assert_int_equal(wire_read_reply(*state, line, n - 1, &back, NULL), ERR_OK);
    assert_int_equal(back.is, WIRE_IS_RESULT);
    assert_int_equal(back.result.outcome, WIRE_MEASURED);
    assert_int_equal(back.result.times_n, 3);
    assert_true(memcmp(back.result.times_s, times, sizeof times) == 0);
    assert_int_equal(back.result.discards_n, 1);
    assert_true(back.result.discards_s[0] == 0.019);
    assert_int_equal(back.result.stop, SAMPLE_PLATEAU);
    assert_string_equal(back.result.unit, "bf16-dot");
    assert_int_equal(back.result.calls + back.result.copies + back.result.checked, 31 + 37 + 41);
    assert_true(back.result.flops == 1.3e9 && back.result.footprint_bytes == 7.1e6);
    assert_true(back.result.piece_bytes == 32768);
    assert_string_equal(back.result.conditions, "{\"power_w\":\"311\",\"throttled_by\":\"power cap\"}");
}

/* A call whose work is asked for, and what it is; or why there is none. */
static void work_reads_back(void **state)
{
    struct wire_request q = {.id = 31, .ask = WIRE_COUNT, .job = JOB}, asked;
    struct wire_reply back, r = {.id = 31,
                                 .is = WIRE_IS_WORK,
                                 .work = {.refused = "",
                                          .row_kind = "decode",
                                          .ceiling = "",
                                          .unit = "bf16-dot",
                                          .flops = 1.7e9,
                                          .vector_flops = 3,
                                          .read_bytes = 19,
                                          .written_bytes = 23,
                                          .piece_bytes = 4096}};
    size_t n;
    const char *line = text_of_request(*state, &q, &n);
    assert_null(strstr(line, "deadline_s"));
    assert_int_equal(wire_read_request(*state, line, n - 1, &asked, NULL), ERR_OK);
    assert_int_equal(asked.ask, WIRE_COUNT);
    assert_string_equal(asked.job.dtype, "bf16");
    assert_int_equal(asked.job.shape.arg[1].value, 4099);
    line = text_of_reply(*state, &r, &n);
    assert_int_equal(wire_read_reply(*state, line, n - 1, &back, NULL), ERR_OK);
    assert_int_equal(back.is, WIRE_IS_WORK);
    assert_string_equal(back.work.row_kind, "decode");
    assert_string_equal(back.work.unit, "bf16-dot");
    assert_true(back.work.flops == 1.7e9 && back.work.vector_flops == 3 && back.work.read_bytes == 19);
    assert_true(back.work.written_bytes == 23 && back.work.piece_bytes == 4096);
    r.work = (struct wire_work){.refused = "no kernel gem"};
    line = text_of_reply(*state, &r, &n);
    assert_int_equal(wire_read_reply(*state, line, n - 1, &back, NULL), ERR_OK);
    assert_string_equal(back.work.refused, "no kernel gem");
    assert_true(isnan(back.work.flops));
}

/* Bytes that were counted come without times, and with the check. */
static void counts_read_back(void **state)
{
    static const char COUNTED[] = "{\"ridge-probe\":1,\"id\":5,\"is\":\"result\",\"outcome\":\"counted\",\"checked\":7,"
                                  "\"error_frac\":0.001,\"tolerance_frac\":0.01%s}";
    struct wire_request q = {.id = 3, .ask = WIRE_MEASURE}, asked;
    q.job = (struct wire_job){.kernel = "gemm",
                              .variant = "cuda",
                              .dtype = "bf16",
                              .seed = 7,
                              .least = 11,
                              .noise_frac = 0.1,
                              .deadline_s = 1};
    q.job.dram_bytes = true;
    size_t n;
    const char *line = text_of_request(*state, &q, &n);
    assert_int_equal(wire_read_request(*state, line, n - 1, &asked, NULL), ERR_OK);
    assert_true(asked.job.dram_bytes);
    const struct wire_reply r = {.id = 29,
                                 .is = WIRE_IS_RESULT,
                                 .result = {.outcome = WIRE_COUNTED,
                                            .reason = "",
                                            .unit = "tensor",
                                            .checked = 41,
                                            .error_frac = 1.7e-3,
                                            .tolerance_frac = 1e-2,
                                            .dram_read_bytes = 7.3e6,
                                            .dram_write_bytes = 0}};
    struct wire_reply back;
    line = text_of_reply(*state, &r, &n);
    assert_int_equal(wire_read_reply(*state, line, n - 1, &back, NULL), ERR_OK);
    assert_int_equal(back.result.outcome, WIRE_COUNTED);
    assert_true(back.result.dram_read_bytes == 7.3e6 && back.result.dram_write_bytes == 0);
    static const struct {
        const char *more;
        enum err_code code;
    } CASES[] = {{",\"dram_read_bytes\":5,\"dram_write_bytes\":3", ERR_OK},
                 {",\"dram_read_bytes\":5", ERR_INPUT},
                 {",\"dram_read_bytes\":5,\"dram_write_bytes\":null", ERR_INPUT},
                 {",\"dram_read_bytes\":-5,\"dram_write_bytes\":3", ERR_INPUT}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char text[400];
        (void)snprintf(text, sizeof text, COUNTED, CASES[i].more);
        assert_int_equal(wire_read_reply(*state, text, strlen(text), &back, NULL), CASES[i].code);
    }
    char unchecked[400];
    (void)snprintf(unchecked, sizeof unchecked, COUNTED, ",\"dram_read_bytes\":5,\"dram_write_bytes\":3");
    *strstr(unchecked, "7,") = '0';
    assert_int_equal(wire_read_reply(*state, unchecked, strlen(unchecked), &back, NULL), ERR_INPUT);
}

static void devices_read_back(void **state)
{
    static const struct wire_arg args[] = {{"m", "rows", 1, 1 << 20}, {"k", "inner \"size\"", 2, 77}};
    static const struct wire_point points[] = {{{2, {{"m", 3}, {"k", 5}}}, "fp32", true}};
    static const struct wire_variant variants[] = {{"own", "fp32", "", "fp32,bf16", false, true},
                                                   {"blas", "fp32", "none is installed", "fp32", true, false}};
    static const struct wire_kernel kernels[] = {
        {"gemm", "products", "gemm", "", args, points, variants, 2, 1, 2, true},
        {"fma", "peak", "", "compute", args, points, variants, 1, 0, 1, false}};
    const struct wire_reply r = {
        .id = 1,
        .is = WIRE_IS_DEVICE,
        .device = {"A \x1b[31m CPU", "{\"name\":\"A\"}", 1.7e9, {3e4, 5e5, 7e6}, kernels, 2, "", 1}};
    struct wire_reply back;
    size_t n;
    const char *line = text_of_reply(*state, &r, &n);
    assert_int_equal(wire_read_reply(*state, line, n - 1, &back, NULL), ERR_OK);
    const struct wire_device *d = &back.device;
    assert_null(strchr(d->name, '\x1b')); /* would steer a terminal */
    assert_string_equal(d->identity, "{\"name\":\"A\"}");
    assert_true(d->cache_bytes[2] == 7e6);
    assert_int_equal(d->kernels_n, 2);
    assert_int_equal(d->kernels[0].args_n, 2);
    assert_string_equal(d->kernels[0].args[1].help, "inner \"size\"");
    assert_int_equal(d->kernels[0].args[1].hi, 77);
    assert_int_equal(d->kernels[0].points[0].shape.arg[1].value, 5);
    assert_true(d->kernels[0].points[0].quick);
    assert_string_equal(d->kernels[0].variants[1].lacks, "none is installed");
    assert_true(d->kernels[0].variants[1].library);
    assert_true(d->kernels[0].variants[0].splits && !d->kernels[0].variants[1].splits);
    assert_true(d->kernels[0].card && !d->kernels[1].card);
    assert_int_equal(d->kernels[1].points_n, 0);
    assert_string_equal(d->kernels[1].ceiling, "compute");
}

#define MEASURED                                                                                                       \
    "{\"ridge-probe\":1,\"id\":1,\"is\":\"result\",\"outcome\":\"measured\",\"unit\":\"fp32\",\"stop\":\"quiet\","     \
    "\"calls\":1,\"copies\":1,\"checked\":5,\"error_frac\":0,\"tolerance_frac\":1e-5,\"flops\":7,\"vector_flops\":0,"  \
    "\"read_bytes\":3,\"written_bytes\":2,\"footprint_bytes\":5,\"times_s\":[0.001]"

static void hostile_lines(void **state)
{
    static const char *const LINES[] = {
        "",
        "x",
        "null",
        "[]",
        "{}",
        "{\"ridge-probe\":1}",
        "{\"ridge-probe\":2,\"id\":1,\"is\":\"progress\"}",
        "{\"ridge-probe\":1,\"id\":-1,\"is\":\"progress\"}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"surprise\"}",
        "{\"ridge-probe\":1,\"id\":1,\"id\":2,\"is\":\"progress\"}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"progress\"} x",
        "{\"ridge-probe\":1,\"id\":1.5,\"is\":\"progress\"}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"result\"}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"result\",\"outcome\":\"fine\"}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"result\",\"outcome\":\"measured\"}", /* no times, no check */
        MEASURED ",\"calls\":1}",
        MEASURED ",\"conditions\":{\"power_w\":311}}",
        MEASURED ",\"conditions\":{\"Po wer\":\"311\"}}",
        MEASURED ",\"conditions\":[]}",
        "\"",
        MEASURED,
        MEASURED ",\"discards_s\":[0]}",
        MEASURED ",\"discards_s\":[-1]}",
        MEASURED ",\"discards_s\":[1e999]}",
        MEASURED ",\"discards_s\":[NaN]}",
        MEASURED ",\"discards_s\":{}}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"device\",\"name\":\"x\"}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"device\",\"name\":\"x\",\"identity\":7,\"memory_bytes\":1,"
        "\"cache_bytes\":[1,2,3],\"kernels\":[]}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"device\",\"name\":\"x\",\"identity\":{},\"memory_bytes\":1,"
        "\"cache_bytes\":[1,2],\"kernels\":[]}",
        "{\"ridge-probe\":1,\"id\":1,\"is\":\"\xff\"}"};
    struct wire_reply r;
    assert_int_equal(wire_read_reply(*state, MEASURED "}", strlen(MEASURED "}"), &r, NULL), ERR_OK);
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
        struct err e = {.code = ERR_OK};
        assert_int_equal(wire_read_reply(*state, LINES[i], strlen(LINES[i]), &r, &e), ERR_INPUT);
        assert_true(e.text[0] != '\0');
    }
}

/* A result whose check does not pass is none, whatever it calls itself. */
static void unchecked_results_are_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } CHANGES[] = {{"\"error_frac\":0,", "\"error_frac\":1,"}, {"\"error_frac\":0,", "\"error_frac\":null,"},
                   {"\"checked\":5", "\"checked\":0"},         {"\"calls\":1", "\"calls\":0"},
                   {"\"flops\":7,", "\"flops\":null,"},        {"[0.001]", "[]"},
                   {"\"tolerance_frac\":1e-5,", "\"x\":1,"},   {"\"unit\":\"fp32\"", "\"unit\":\"\""}};
    for (size_t i = 0; i < sizeof CHANGES / sizeof CHANGES[0]; i++) {
        const char *line = MEASURED "}", *at = strstr(line, CHANGES[i].from);
        struct wire_reply r;
        assert_non_null(at);
        const char *changed =
            arena_printf(*state, "%.*s%s%s", (int)(at - line), line, CHANGES[i].to, at + strlen(CHANGES[i].from));
        assert_int_equal(wire_read_reply(*state, changed, strlen(changed), &r, NULL), ERR_INPUT);
    }
}

static void unknown_members_are_passed_over(void **state)
{
    const char *line = MEASURED ",\"clock_hz\":[1,{\"x\":null}]}";
    struct wire_reply r;
    assert_int_equal(wire_read_reply(*state, line, strlen(line), &r, NULL), ERR_OK);
}

static void bounds(void **state)
{
    struct wire_request q = {.id = 1, .ask = WIRE_MEASURE, .job = JOB}, back;
    size_t n;
    static const struct {
        int64_t least;
        double noise_frac, deadline_s;
    } BAD[] = {{1, 0.01, 1}, {100000, 0.01, 1}, {10, 1.5, 1}, {10, (double)NAN, 1}, {10, 0.01, 1e6}};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        q.job.least = BAD[i].least;
        q.job.noise_frac = BAD[i].noise_frac;
        q.job.deadline_s = BAD[i].deadline_s;
        const char *line = text_of_request(*state, &q, &n);
        assert_int_equal(wire_read_request(*state, line, n - 1, &back, NULL), ERR_INPUT);
    }
    const char *twice = "{\"m\":1,\"m\":2}", *deep = "{\"m\":{\"n\":1}}";
    struct wire_shape s;
    assert_int_equal(wire_read_shape(*state, twice, &s, NULL), ERR_INPUT);
    assert_int_equal(wire_read_shape(*state, deep, &s, NULL), ERR_INPUT);
    assert_int_equal(wire_read_shape(*state, "{}", &s, NULL), ERR_OK);
    assert_int_equal(s.n, 0);
    char many[600] = "{";
    for (int i = 0; i < 17; i++) {
        char one[32];
        (void)snprintf(one, sizeof one, "%s\"p%d\":%d", i ? "," : "", i, i);
        (void)strncat(many, one, sizeof many - strlen(many) - 2);
    }
    (void)strncat(many, "}", 2);
    assert_int_equal(wire_read_shape(*state, many, &s, NULL), ERR_INPUT);
}

static void lists(void **state)
{
    (void)state;
    assert_true(wire_list_has("fp32,bf16", "bf16"));
    assert_true(wire_list_has("fp32,bf16", "fp32"));
    assert_false(wire_list_has("fp32,bf16", "bf1"));
    assert_false(wire_list_has("fp32,bf16", ""));
    assert_false(wire_list_has("", "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(requests_read_back, begin, end),
        cmocka_unit_test_setup_teardown(counts_read_back, begin, end),
        cmocka_unit_test_setup_teardown(results_read_back, begin, end),
        cmocka_unit_test_setup_teardown(work_reads_back, begin, end),
        cmocka_unit_test_setup_teardown(devices_read_back, begin, end),
        cmocka_unit_test_setup_teardown(hostile_lines, begin, end),
        cmocka_unit_test_setup_teardown(unchecked_results_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(unknown_members_are_passed_over, begin, end),
        cmocka_unit_test_setup_teardown(bounds, begin, end),
        cmocka_unit_test(lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
