#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calc/base/json.h"
#include "calc/base/table.h"
#include "calc/base/text.h"

struct row {
    const char *model;
    int64_t batch;
    double weight_bytes, flops, decode_step_s, intensity_flops_per_byte, fits;
    bool causal;
};

static const struct column COLUMNS[] = {
    COLUMN_AT(struct row, model, COLUMN_STRING, UNITS_NONE, COLUMN_SHOWN, "model", "name of the model"),
    COLUMN_AT(struct row, batch, COLUMN_INT, UNITS_NONE, COLUMN_SHOWN, "batch", "sequences decoded together"),
    COLUMN_AT(struct row, weight_bytes, COLUMN_COUNT, UNITS_BYTES, COLUMN_SHOWN, "weights", "bytes of all weights"),
    COLUMN_AT(struct row, flops, COLUMN_COUNT, UNITS_FLOPS, 0, "flops", "flops of a step"),
    COLUMN_AT(struct row, decode_step_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN, "step", "seconds of a decode step"),
    COLUMN_AT(struct row, intensity_flops_per_byte, COLUMN_REAL, UNITS_FLOPS_PER_BYTE, COLUMN_SHOWN, "intensity",
              "flops/byte"),
    COLUMN_AT(struct row, fits, COLUMN_MAYBE, UNITS_NONE, COLUMN_SHOWN, "fits", "whether memory suffices"),
    COLUMN_AT(struct row, causal, COLUMN_BOOL, UNITS_NONE, COLUMN_SHOWN, "causal", "exact pairs"),
};
enum { N_COLUMNS = sizeof COLUMNS / sizeof COLUMNS[0] };

#define UNKNOWN ((double)NAN)

static const struct row ROWS[] = {
    {"llama-2-13b", 7, 26030899200.0, 26.5e9, 0.0079123, 6.9871, 1, true},
    {"caf\xC3\xA9, \"q\"\n|x", 641, 141107412992.0, 3e15 + 7, 0.4213, 223.777, 0, false},
    {"=1+2\x1b[31m<b>", TABLE_INT_UNKNOWN, UNKNOWN, UNKNOWN, (double)INFINITY, 0, UNKNOWN, true},
    {NULL, -13, 0, 9007199254740993.0, 1.0 / 3, 1e-9, 0, false},
};
enum { N_ROWS = sizeof ROWS / sizeof ROWS[0] };

static const char *const NOTES[] = {"fidelity: bound", "a\x1b[0m|b"};

static const struct table TABLE = {.columns = COLUMNS,
                                   .n_columns = N_COLUMNS,
                                   .rows = ROWS,
                                   .n_rows = N_ROWS,
                                   .stride_bytes = sizeof ROWS[0],
                                   .schema = "ridge.test/1",
                                   .tool = "ridge 0.1",
                                   .scenario_json = "{\"batch\":[7,641]}"};

static int open_arena(void **state)
{
    *state = arena_open();
    return *state == NULL;
}

static int close_arena(void **state)
{
    arena_close(*state);
    return 0;
}

static const char *written(struct arena *a, const struct table *t, enum table_format format)
{
    struct out *o;
    struct err e = {.code = ERR_OK};
    assert_int_equal(out_memory(a, &o, &e), ERR_OK);
    assert_int_equal(table_write(t, format, o, &e), ERR_OK);
    return out_text(o, NULL);
}

static const char *sheet(struct arena *a, const struct table *t)
{
    struct out *o;
    struct err e = {.code = ERR_OK};
    assert_int_equal(out_memory(a, &o, &e), ERR_OK);
    assert_int_equal(table_write_sheet(t, o, &e), ERR_OK);
    return out_text(o, NULL);
}

/* One CSV cell from *p, unquoted, into cell; moves *p behind its comma or line end. An independent RFC 4180 reader. */
static void csv_cell(const char **p, char cell[256])
{
    size_t n = 0;
    const bool quoted = **p == '"';
    if (quoted) ++*p;
    while (**p) {
        if (quoted && **p == '"') {
            if ((*p)[1] != '"') break;
            ++*p;
        } else if (!quoted && (**p == ',' || **p == '\n')) {
            break;
        }
        cell[n++] = *(*p)++;
    }
    if (quoted) assert_int_equal(*(*p)++, '"');
    assert_true(**p == ',' || **p == '\n');
    ++*p;
    cell[n] = '\0';
}

static void test_csv(void **state)
{
    assert_string_equal(written(*state, &TABLE, TABLE_CSV),
                        "model,batch,weight_bytes,flops,decode_step_s,intensity_flops_per_byte,fits,causal\n"
                        "llama-2-13b,7,26030899200,26500000000,0.0079123,6.9871,true,true\n"
                        "\"caf\xC3\xA9, \"\"q\"\"\n|x\",641,141107412992,3000000000000007,0.4213,223.777,false,false\n"
                        "'=1+2?[31m<b>,,,,,0,,true\n"
                        ",-13,0,9007199254740992,0.3333333333333333,1e-09,false,false\n");
}

static void test_json(void **state)
{
    struct table t = TABLE;
    t.notes = NOTES;
    t.n_notes = 2;
    struct json j, m, row;
    struct err e = {.code = ERR_OK};
    const char *text = written(*state, &t, TABLE_JSON), *s = NULL;
    if (json_parse(*state, "out.json", text, strlen(text), &j, &e) != ERR_OK) fail_msg("%s", e.text);
    assert_true(json_get(&j, "schema", &m));
    assert_int_equal(json_str(&m, &s, &e), ERR_OK);
    assert_string_equal(s, "ridge.test/1");
    assert_true(json_get(&j, "tool", &m));
    assert_true(json_get(&j, "scenario.batch", &m));
    assert_int_equal(json_len(&m), 2);
    assert_true(json_get(&j, "notes", &m));
    assert_int_equal(json_len(&m), 2);
    assert_true(json_get(&j, "rows", &m));
    assert_int_equal(json_len(&m), N_ROWS);
    assert_true(json_at(&m, 2, NULL, &row));
    assert_int_equal(json_len(&row), N_COLUMNS);
    assert_true(json_get(&row, "model", &m));
    assert_int_equal(json_str(&m, &s, &e), ERR_OK);
    assert_string_equal(s, "=1+2\x1b[31m<b>"); /* JSON keeps it exactly, but only escaped */
    assert_null(strchr(text, '\x1b'));
    assert_false(json_get(&row, "batch", &m));
    assert_false(json_get(&row, "decode_step_s", &m));

    t.n_rows = 0;
    t.scenario_json = NULL;
    text = written(*state, &t, TABLE_JSON);
    assert_int_equal(json_parse(*state, "out.json", text, strlen(text), &j, &e), ERR_OK);
    assert_true(json_get(&j, "rows", &m));
    assert_int_equal(json_len(&m), 0);
    assert_false(json_get(&j, "scenario", &m));
}

/* What a JSON value is as the CSV cell of the same field. */
static void as_csv(const struct json *m, char cell[256])
{
    struct err e;
    const char *s = NULL;
    double x;
    bool b;
    cell[0] = '\0';
    if (json_is_string(m) && json_str(m, &s, &e) == ERR_OK)
        (void)snprintf(cell, 256, "%s", s);
    else if (json_is_bool(m) && json_bool(m, &b, &e) == ERR_OK)
        (void)snprintf(cell, 256, "%s", b ? "true" : "false");
    else if (json_is_number(m) && json_num(m, &x, &e) == ERR_OK)
        (void)snprintf(cell, 256, "%.17g", x);
}

static void test_csv_and_json_agree_cell_by_cell(void **state)
{
    struct arena *a = *state;
    const char *csv = written(a, &TABLE, TABLE_CSV), *lines = written(a, &TABLE, TABLE_JSONL);
    char cell[256], want[256];
    for (size_t c = 0; c < N_COLUMNS; c++) {
        csv_cell(&csv, cell);
        assert_string_equal(cell, COLUMNS[c].key);
    }
    for (size_t r = 0; r < N_ROWS; r++) {
        struct json row, m;
        struct err e = {.code = ERR_OK};
        const size_t len = strcspn(lines, "\n");
        assert_int_equal(json_parse(a, "line", lines, len, &row, &e), ERR_OK);
        lines += len + 1;
        for (size_t c = 0; c < N_COLUMNS; c++) {
            const char *key = NULL;
            assert_true(json_at(&row, c, &key, &m));
            assert_string_equal(key, COLUMNS[c].key);
            csv_cell(&csv, cell);
            as_csv(&m, want);
            if (r == 2 && c == 0) continue; /* the disarmed string, looked at in test_csv */
            if (json_is_number(&m))
                assert_true(strtod(cell, NULL) == strtod(want, NULL));
            else
                assert_string_equal(cell, want);
        }
    }
    assert_int_equal(*csv, '\0');
    assert_int_equal(*lines, '\0');
}

static void test_text(void **state)
{
    struct table t = TABLE;
    t.notes = NOTES;
    t.n_notes = 2;
    const char *text = written(*state, &t, TABLE_TEXT);
    assert_string_equal(text, "model         batch  weights   step  intensity  fits  causal\n"
                              "                          GB     ms  flop/byte\n"
                              "------------  -----  -------  -----  ---------  ----  ------\n"
                              "llama-2-13b       7    26.03  7.912      6.987  yes   yes\n"
                              "caf\xC3\xA9, \"q\"?|x    641    141.1  421.3      223.8  no    no\n"
                              "=1+2?[31m<b>      -        -      -          0  -     yes\n"
                              "-               -13        0  333.3      1e-09  no    no\n"
                              "\nnote: fidelity: bound\nnote: a?[0m|b\n");
}

/* Words stay whole, no line is beyond a terminal, and nothing of a long sentence is lost. */
static void test_notes_wrap(void **state)
{
    struct table t = TABLE;
    char note[2048] = "", got[2048] = "";
    for (int i = 0; i < 131; i++)
        (void)snprintf(note + strlen(note), sizeof note - strlen(note), "%s%.*s\xC3\xA9", i ? " " : "", 1 + i * 7 % 13,
                       "abcdefghijklm");
    const char *const notes[] = {note};
    t.notes = notes;
    t.n_notes = 1;
    const char *text = strstr(written(*state, &t, TABLE_TEXT), "\nnote: ");
    assert_non_null(text);
    text++;
    size_t lines = 0;
    for (const char *end; *text; text = end + 1, lines++) {
        end = strchr(text, '\n');
        assert_non_null(end);
        const size_t indent = lines ? 2 : 6;
        assert_true(text_width(text, (size_t)(end - text)) <= 80);
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", lines ? " " : "",
                       (int)((size_t)(end - text) - indent), text + indent);
    }
    assert_true(lines > 10);
    assert_string_equal(got, note);
}

/* Times that are compared have one prefix, however far apart; others of the table their own. */
static void test_alike(void **state)
{
    struct times {
        double predicted_s, measured_s, other_s;
    };
    static const struct times ROWS_S[] = {{3.7e-6, 1.9e-3, 41e-6}, {5.3e-6, 2.3e-3, 43e-6}};
    const struct column columns[] = {
        COLUMN_AT(struct times, predicted_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN, "predicted", ""),
        COLUMN_AT(struct times, measured_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN | COLUMN_ALIKE, "measured", ""),
        COLUMN_AT(struct times, other_s, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN, "other", ""),
    };
    const struct table t = {
        .columns = columns, .n_columns = 3, .rows = ROWS_S, .n_rows = 2, .stride_bytes = sizeof ROWS_S[0]};
    assert_string_equal(written(*state, &t, TABLE_TEXT), "predicted  measured  other\n"
                                                         "       us        us     us\n"
                                                         "---------  --------  -----\n"
                                                         "    3.700      1900  41.00\n"
                                                         "    5.300      2300  43.00\n");
    struct column apart[3];
    memcpy(apart, columns, sizeof apart);
    apart[1].flags = COLUMN_SHOWN;
    struct table u = t;
    u.columns = apart;
    assert_non_null(strstr(written(*state, &u, TABLE_TEXT), "us        ms     us"));
}

static void test_md(void **state)
{
    struct table t = TABLE;
    t.notes = NOTES;
    t.n_notes = 2;
    assert_string_equal(written(*state, &t, TABLE_MD),
                        "| model | batch | weights (GB) | step (ms) | intensity (flop/byte) | fits | causal |\n"
                        "| --- | ---: | ---: | ---: | ---: | --- | --- |\n"
                        "| llama-2-13b | 7 | 26.03 | 7.912 | 6.987 | yes | yes |\n"
                        "| caf\xC3\xA9, \"q\"?\\|x | 641 | 141.1 | 421.3 | 223.8 | no | no |\n"
                        "| =1+2?\\[31m&lt;b&gt; | - | - | - | 0 | - | yes |\n"
                        "| - | -13 | 0 | 333.3 | 1e-09 | no | no |\n"
                        "\n- fidelity: bound\n- a?\\[0m\\|b\n");
}

static void test_sheet(void **state)
{
    struct table t = TABLE;
    t.n_rows = 1;
    assert_string_equal(sheet(*state, &t), "model      llama-2-13b\n"
                                           "batch      7\n"
                                           "weights    26.03 GB\n"
                                           "step       7.912 ms\n"
                                           "intensity  6.987 flop/byte\n"
                                           "fits       yes\n"
                                           "causal     yes\n");
    t.rows = &ROWS[1];
    t.n_rows = 2;
    const char *two = sheet(*state, &t);
    assert_non_null(strstr(two, "weights    141.1 GB         -\n"));
    assert_null(strchr(two, '\x1b'));
}

/* Every number a text table shows is the CSV number within 4 significant digits. */
static void test_text_agrees_with_csv(void **state)
{
    struct table t;
    struct err e = {.code = ERR_OK};
    assert_int_equal(table_select(*state, &TABLE, "decode_step_s,intensity_flops_per_byte", &t, &e), ERR_OK);
    t.rows = ROWS;
    t.n_rows = 2;
    const char *text = written(*state, &t, TABLE_TEXT);
    for (int skip_lines = 0; skip_lines < 3; skip_lines++) text = strchr(text, '\n') + 1;
    for (int r = 0; r < 2; r++) {
        char *end = NULL;
        const double ms = strtod(text, &end), intensity = strtod(end, &end);
        assert_true(fabs(ms * 1e-3 / ROWS[r].decode_step_s - 1) < 5e-4);
        assert_true(fabs(intensity / ROWS[r].intensity_flops_per_byte - 1) < 5e-4);
        text = end + 1;
    }
}

static void test_fits_a_terminal(void **state)
{
    struct row rows[2] = {ROWS[0], ROWS[0]};
    rows[0].model = "an-organisation/with-a-very-long-name-of-a-model-that-would-fill-the-line-alone-and-more";
    struct table t = TABLE;
    t.rows = rows;
    t.n_rows = 2;
    const char *text = written(*state, &t, TABLE_TEXT);
    assert_non_null(strstr(text, "an-organisation/with-"));
    for (const char *p = text; *p;) {
        const size_t len = strcspn(p, "\n");
        assert_true(len <= 80);
        assert_true(len == 0 || p[len - 1] != ' ');
        p += len + 1;
    }
}

/* Spare columns give way, the last first, only as far as they must; never where they were asked for. */
static void test_spare_columns(void **state)
{
    struct row rows[2] = {ROWS[0], ROWS[0]};
    struct column columns[N_COLUMNS];
    struct table t = TABLE, chosen;
    struct err e = {.code = ERR_OK};
    memcpy(columns, COLUMNS, sizeof columns);
    columns[4].heading = "a heading of so many letters"; /* 28 */
    columns[4].flags |= COLUMN_SPARE;
    columns[5].flags |= COLUMN_SPARE;
    rows[1].model = "reduce/of-an-engine/whose-name-is-long";
    rows[1].decode_step_s = 3e-10; /* of 7.912 ms: 2 digits */
    rows[0].intensity_flops_per_byte = 0.00012347;
    t.columns = columns;
    t.rows = rows;
    t.n_rows = 2;
    const char *text = written(*state, &t, TABLE_TEXT);
    assert_non_null(strstr(text, "a heading of so many letters"));
    assert_non_null(strstr(text, " 3.0e-04 "));
    assert_null(strstr(text, "intensity  "));
    assert_non_null(strstr(text, "\n\nleft out for width (-f csv, md or json has all): intensity_flops_per_byte\n"));
    assert_non_null(strstr(text, "...ame-is-long"));
    for (const char *p = text; *p; p += strcspn(p, "\n") + 1) assert_true(strcspn(p, "\n") <= 80);
    assert_non_null(strstr(written(*state, &t, TABLE_CSV), "intensity_flops_per_byte"));
    assert_non_null(strstr(written(*state, &t, TABLE_MD), "0.0001235"));
    columns[2].heading = "another heading of so many letters"; /* now neither has room */
    text = written(*state, &t, TABLE_TEXT);
    assert_null(strstr(text, "a heading of so many letters"));
    assert_non_null(strstr(text, "has all): decode_step_s,\n  intensity_flops_per_byte\n"));
    assert_int_equal(table_select(*state, &t, "model,weight_bytes,decode_step_s,intensity_flops_per_byte", &chosen, &e),
                     ERR_OK);
    text = written(*state, &chosen, TABLE_TEXT);
    assert_non_null(strstr(text, "a heading of so many letters"));
    assert_null(strstr(text, "left out"));
}

/* Names that are typed again are whole, and spare columns give way to them. */
static void test_whole_names(void **state)
{
    static const char NAME[] = "an-organisation-whose-name-is-long/of-a-model";
    struct row rows[2] = {ROWS[0], ROWS[0]};
    struct column columns[N_COLUMNS];
    struct table t = TABLE;
    memcpy(columns, COLUMNS, sizeof columns);
    rows[1].model = NAME;
    t.columns = columns;
    t.rows = rows;
    t.n_rows = 2;
    assert_null(strstr(written(*state, &t, TABLE_TEXT), NAME));
    columns[0].flags |= COLUMN_WHOLE;
    columns[5].flags |= COLUMN_SPARE;
    const char *text = written(*state, &t, TABLE_TEXT);
    assert_non_null(strstr(text, NAME));
    assert_null(strstr(text, "..."));
    assert_non_null(strstr(text, "has all): intensity_flops_per_byte\n"));
    for (const char *p = text; *p; p += strcspn(p, "\n") + 1) assert_true(strcspn(p, "\n") <= 80);
}

struct pair {
    double a, b;
};

static void test_random_doubles_round_trip(void **state)
{
    enum { N = 20011 };
    static const struct column columns[] = {
        COLUMN_AT(struct pair, a, COLUMN_REAL, UNITS_SECONDS, COLUMN_SHOWN, "a", "any double"),
        COLUMN_AT(struct pair, b, COLUMN_COUNT, UNITS_BYTES, COLUMN_SHOWN, "b", "a whole double"),
    };
    struct pair *rows = calloc(N, sizeof *rows);
    assert_non_null(rows);
    uint64_t x = 88172645463325252u; /* xorshift64, Marsaglia 2003 */
    for (size_t i = 0; i < N; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        memcpy(&rows[i].a, &x, sizeof x);
        if (i % 2) rows[i].a = ldexp((double)(x >> 11), (int)(x % 100) - 100);
        rows[i].b = (double)(x >> (i % 64));
    }
    const struct table t = {
        .columns = columns, .n_columns = 2, .rows = rows, .n_rows = N, .stride_bytes = sizeof *rows};
    const char *csv = written(*state, &t, TABLE_CSV), *text = written(*state, &t, TABLE_JSON);
    struct json j, all, row, m;
    struct err e = {.code = ERR_OK};
    assert_int_equal(json_parse(*state, "rows", text, strlen(text), &j, &e), ERR_OK);
    assert_true(json_get(&j, "rows", &all));
    csv = strchr(csv, '\n') + 1;
    char cell[256];
    for (size_t i = 0; i < N; i++) {
        assert_true(json_at(&all, i, NULL, &row));
        for (size_t c = 0; c < 2; c++) {
            const double want = c ? rows[i].b : rows[i].a;
            csv_cell(&csv, cell);
            if (!isfinite(want)) {
                assert_string_equal(cell, "");
                continue;
            }
            double got = 0;
            assert_true(strtod(cell, NULL) == want);
            assert_true(json_get(&row, columns[c].key, &m));
            assert_int_equal(json_num(&m, &got, &e), ERR_OK);
            assert_true(got == want);
        }
    }
    free(rows);
}

static void test_hostile_strings(void **state)
{
    static const struct {
        const char *s, *csv;
    } cases[] = {{"@SUM(A1)", "'@SUM(A1)"},
                 {"+1", "'+1"},
                 {"-x", "'-x"},
                 {"\tx", "\"'\tx\""},
                 {"", ""},
                 {" x", "\" x\""},
                 {"\xFFx", "?x"},
                 {"a\rb", "\"a?b\""},
                 {"a\xE2\x80\xAE"
                  "b",
                  "a?b"},
                 {"x\"y", "\"x\"\"y\""},
                 {"$(x)`y`", "$(x)`y`"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct row row = {.model = cases[i].s};
        struct table t;
        struct err e = {.code = ERR_OK};
        assert_int_equal(table_select(*state, &TABLE, "model", &t, &e), ERR_OK);
        t.rows = &row;
        t.n_rows = 1;
        char want[64];
        (void)snprintf(want, sizeof want, "model\n%s\n", cases[i].csv);
        assert_string_equal(written(*state, &t, TABLE_CSV), want);
        const char *text = written(*state, &t, TABLE_TEXT), *md = written(*state, &t, TABLE_MD);
        assert_null(strpbrk(text, "\x1b\t\r\xFF"));
        assert_null(strpbrk(md, "\x1b\t\r\xFF"));
        struct json j;
        const char *line = written(*state, &t, TABLE_JSONL);
        assert_int_equal(json_parse(*state, "line", line, strlen(line), &j, &e), ERR_OK);
    }
}

static void test_selection(void **state)
{
    struct table t = {.n_columns = 0};
    struct err e = {.code = ERR_OK};
    assert_int_equal(table_select(*state, &TABLE, "flops, batch", &t, &e), ERR_OK);
    t.n_rows = 1;
    assert_string_equal(written(*state, &t, TABLE_CSV), "flops,batch\n26500000000,7\n");
    assert_non_null(strstr(written(*state, &t, TABLE_TEXT), "GFLOP"));
    assert_int_equal(table_select(*state, &TABLE, "weigth_bytes", &t, &e), ERR_USAGE);
    assert_string_equal(e.text, "\"weigth_bytes\": no such column; did you mean weight_bytes?");
    assert_int_equal(table_select(*state, &TABLE, "batch,,flops", &t, &e), ERR_USAGE);
    assert_int_equal(table_select(*state, &TABLE, "", &t, &e), ERR_USAGE);
    assert_int_equal(table_select(*state, &TABLE, "batch,flops,batch", &t, &e), ERR_USAGE);
    assert_string_equal(e.text, "\"batch\": this column is named twice");
    assert_int_equal(t.n_columns, 2);
}

static void test_format_names(void **state)
{
    (void)state;
    enum table_format f = TABLE_TEXT;
    struct err e = {.code = ERR_OK};
    assert_int_equal(table_format_parse("jsonl", &f, &e), ERR_OK);
    assert_int_equal(f, TABLE_JSONL);
    assert_int_equal(table_format_parse("jsn", &f, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "did you mean json"));
    struct out *o = NULL;
    assert_int_equal(table_begin(&TABLE, TABLE_TEXT, o, &e), ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_csv, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_json, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_notes_wrap, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_alike, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_csv_and_json_agree_cell_by_cell, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_text, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_md, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_sheet, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_text_agrees_with_csv, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_fits_a_terminal, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_spare_columns, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_whole_names, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_random_doubles_round_trip, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_hostile_strings, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(test_selection, open_arena, close_arena),
        cmocka_unit_test(test_format_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
