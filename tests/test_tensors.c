/* Headers of checkpoints: files with known content written here, and files that lie. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "calc/model/tensors.h"
#include "calc/model/tensors_read.h"
#include "tests/checkpoint.h"
#include "tests/scratch.h"

struct fixture {
    struct arena *arena;
    char dir[SCRATCH_MAX];
};

static int open_fixture(void **state)
{
    struct arena *a = arena_open();
    struct fixture *f = a ? arena_alloc(a, sizeof *f) : NULL;
    if (!f) return 1;
    f->arena = a;
    *state = f;
    (void)scratch_dir(f->dir);
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    scratch_remove(f->dir);
    arena_close(f->arena);
    return 0;
}

static const char *at(const struct fixture *f, const char *name)
{
    return arena_printf(f->arena, "%s/%s", f->dir, name);
}

static struct tensor_set opened(const struct fixture *f, const char *name)
{
    struct tensor_set s;
    struct err e = {0};
    if (tensors_open(f->arena, at(f, name), &s, &e) != ERR_OK) fail_msg("%s: %s", name, e.text);
    return s;
}

static void refused(const struct fixture *f, const char *name, enum err_code code, const char *sentence)
{
    struct tensor_set s;
    struct err e = {0};
    const enum err_code got = tensors_open(f->arena, at(f, name), &s, &e);
    if (got != code || !strstr(e.text, sentence))
        fail_msg("%s: %d \"%s\", wanted %d \"%s\"", name, (int)got, e.text, (int)code, sentence);
}

static const struct tensor *found(const struct tensor_set *s, const char *name)
{
    const struct tensor *t = tensors_find(s, name);
    if (!t) fail_msg("no tensor %s", name);
    return t;
}

/* ---- safetensors ---- */

/* 2*3 bf16 = 12 bytes, 5 fp8 = 5, a scalar f32 = 4, 6 f4 = 3, an empty one = 0, 7*11 i64 = 616: 640 bytes. */
static const char KNOWN[] = "{\"__metadata__\":{\"format\":\"pt\",\"caf\\u00e9\":\"\\\"x\\\"\"},"
                            "\"a.weight\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
                            "\"b\":{\"shape\":[5],\"data_offsets\":[12,17],\"dtype\":\"F8_E4M3\"},"
                            "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[17,21]},"
                            "\"z\":{\"dtype\":\"I64\",\"shape\":[7,11],\"data_offsets\":[24,640]},"
                            "\"packed\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[21,24]},"
                            "\"empty\":{\"dtype\":\"F16\",\"shape\":[0,13],\"data_offsets\":[24,24]}}   \n";

static void test_single_file(void **state)
{
    const struct fixture *f = *state;
    checkpoint_safetensors(f->dir, "model.safetensors", KNOWN, 640);
    for (int i = 0; i < 2; i++) {
        const struct tensor_set s = opened(f, i ? "model.safetensors" : "");
        assert_int_equal(s.format, TENSOR_FORMAT_SAFETENSORS);
        assert_int_equal(s.n, 6);
        assert_int_equal(s.total_bytes, 640);
        assert_int_equal(s.total_elems, 6 + 5 + 1 + 6 + 0 + 77);
        assert_int_equal(s.shards_n, 1);
        assert_int_equal(s.shards[0].header_bytes, 8 + (int64_t)strlen(KNOWN));
        assert_int_equal(s.shards[0].file_bytes, 8 + (int64_t)strlen(KNOWN) + 640);
        const struct tensor *t = found(&s, "z");
        assert_string_equal(t->type->name, "I64");
        assert_int_equal(t->dims, 2);
        assert_int_equal(t->shape[0], 7);
        assert_int_equal(t->shape[1], 11);
        assert_int_equal(t->begin_bytes, 24);
        assert_int_equal(found(&s, "packed")->bytes, 3);
        assert_int_equal(found(&s, "scalar")->dims, 0);
        assert_int_equal(found(&s, "scalar")->elems, 1);
        assert_string_equal(tensors_meta(&s, "format")->text, "pt");
        assert_string_equal(tensors_meta(&s, "caf\xc3\xa9")->text, "\"x\"");
        assert_true(isnan(s.index_total_bytes));
        assert_null(s.notes);
        assert_false(tensors_plain(&s));
        struct tensor_total *totals;
        size_t n;
        struct err e;
        assert_int_equal(tensors_totals(f->arena, &s, &totals, &n, &e), ERR_OK);
        assert_int_equal(n, 6);
        assert_string_equal(totals[0].type->name, "I64");
        assert_int_equal(totals[0].bytes, 616);
        assert_int_equal(totals[0].elems, 77);
        assert_int_equal(totals[0].tensors, 1);
        assert_int_equal(totals[1].bytes, 12);
    }
}

static void write_shards(const struct fixture *f)
{
    checkpoint_safetensors(f->dir, "s1.safetensors",
                           "{\"x\":{\"dtype\":\"BF16\",\"shape\":[17,19],\"data_offsets\":[0,646]}}", 646);
    checkpoint_safetensors(f->dir, "s2.safetensors",
                           "{\"y\":{\"dtype\":\"F32\",\"shape\":[23],\"data_offsets\":[0,92]},"
                           "\"w\":{\"dtype\":\"BF16\",\"shape\":[29],\"data_offsets\":[92,150]}}",
                           150);
}

static void write_index(const struct fixture *f, const char *text)
{
    checkpoint_file(f->dir, "model.safetensors.index.json", text, strlen(text), 0);
}

static const char MAP[] = "\"weight_map\":{\"x\":\"s1.safetensors\",\"y\":\"s2.safetensors\",\"w\":\"s2.safetensors\"}";

static void test_shards_with_index(void **state)
{
    const struct fixture *f = *state;
    write_shards(f);
    static const char *const META[] = {"{\"total_size\":796.0}",
                                       "{\"total_size\":796,\"total_parameters\":375}",
                                       "{\"total_size\":0}",
                                       "{}",
                                       "null",
                                       "{\"total_size\":\"many\",\"x\":[{},[1,2.5e-3]]}"};
    for (size_t i = 0; i < sizeof META / sizeof META[0]; i++) {
        write_index(f, arena_printf(f->arena, "{\"metadata\":%s,%s} trailing {", META[i], MAP));
        const struct tensor_set s = opened(f, i % 2 ? "" : "model.safetensors.index.json");
        assert_int_equal(s.n, 3);
        assert_int_equal(s.total_bytes, 796);
        assert_int_equal(s.total_elems, 375);
        assert_int_equal(s.shards_n, 2);
        assert_int_equal(found(&s, "w")->shard, 1);
        assert_null(s.notes);
        assert_false(s.headers_missing);
        assert_true(i < 2 ? s.index_total_bytes == 796 : isnan(s.index_total_bytes));
        assert_true(i == 1 ? s.index_total_params == 375 : isnan(s.index_total_params));
    }
    write_index(f, arena_printf(f->arena, "{\"metadata\":{\"total_size\":797},%s}", MAP));
    const struct tensor_set s = opened(f, "");
    assert_string_equal(s.notes, "the index says 797 bytes, its tensors hold 796");
}

static void test_index_against_shards(void **state)
{
    const struct fixture *f = *state;
    write_shards(f);
    static const struct {
        const char *map, *sentence;
    } WRONG[] = {
        {"\"x\":\"s1.safetensors\",\"y\":\"s2.safetensors\"", "'w' is not in the index but in s2.safetensors"},
        {"\"x\":\"s2.safetensors\",\"y\":\"s2.safetensors\",\"w\":\"s1.safetensors\"",
         "'w' is not where the index says but in s2.safetensors; 'x' is not where the index says but in s1"},
        {"\"x\":\"s1.safetensors\",\"y\":\"s2.safetensors\",\"w\":\"s2.safetensors\",\"v\":\"s2.safetensors\"",
         "'v' is in no shard"},
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        write_index(f, arena_printf(f->arena, "{\"weight_map\":{%s}}", WRONG[i].map));
        refused(f, "", ERR_INPUT, WRONG[i].sentence);
    }
    /* more than there is room for are counted */
    char map[8192] = "";
    size_t used = 0;
    for (int i = 0; i < 101; i++)
        used += (size_t)snprintf(map + used, sizeof map - used, "%s\"layers.%d.absent\":\"s1.safetensors\"",
                                 i ? "," : "", i);
    write_index(f, arena_printf(f->arena, "{\"weight_map\":{%s}}", map));
    refused(f, "", ERR_INPUT, "'x' is not in the index");
    refused(f, "", ERR_INPUT, " more");
}

static void test_shards_that_are_not_there(void **state)
{
    const struct fixture *f = *state;
    write_shards(f);
    write_index(f, arena_printf(f->arena, "{\"metadata\":{\"total_size\":796},%s}", MAP));
    assert_int_equal(unlink(at(f, "s2.safetensors")), 0);
    refused(f, "", ERR_IO, "shard 's2.safetensors' is missing (1 of 2 are there)");
    assert_int_equal(unlink(at(f, "s1.safetensors")), 0);
    const struct tensor_set s = opened(f, "");
    assert_int_equal(s.format, TENSOR_FORMAT_INDEX);
    assert_true(s.headers_missing);
    assert_int_equal(s.n, 3);
    assert_true(s.index_total_bytes == 796);
    assert_int_equal(s.total_bytes, TENSOR_UNKNOWN);
    assert_null(found(&s, "y")->type);
    assert_int_equal(found(&s, "y")->bytes, TENSOR_UNKNOWN);
    assert_string_equal(strrchr(s.shards[1].path, '/'), "/s2.safetensors");
    /* pickles are not looked into, present or not */
    write_index(f, "{\"metadata\":{\"total_size\":13731385408.0},\"weight_map\":{\"x\":\"p1.bin\"}}");
    checkpoint_file(f->dir, "p1.bin", "PK", 2, 0);
    const struct tensor_set p = opened(f, "");
    assert_true(p.headers_missing);
    assert_true(p.index_total_bytes == 13731385408.0);
}

/* Two shards of 41 tensors each; the index in steps of `step` through them, once with tensor `twice` named again. */
static void write_many(const struct fixture *f, int step, int twice)
{
    enum { EACH = 41, ALL = 2 * EACH };
    char text[16384];
    for (int shard = 0; shard < 2; shard++) {
        size_t n = 0;
        for (int i = 0; i < EACH; i++)
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "%s\"l.%d.\\u0077\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}",
                                  i ? "," : "{", shard * EACH + i, i, i * (i - 1) / 2, i * (i + 1) / 2);
        (void)snprintf(text + n, sizeof text - n, "}");
        checkpoint_safetensors(f->dir, shard ? "s2.safetensors" : "s1.safetensors", text, EACH * (EACH - 1) / 2);
    }
    size_t n = 0;
    for (int i = 0; i < ALL; i++) {
        const int k = i * step % ALL;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\"l.%d.%s\":\"s%d.safetensors\"", i ? "," : "", k,
                              k % 3 ? "w" : "\\u0077", k / EACH + 1);
    }
    if (twice >= 0) (void)snprintf(text + n, sizeof text - n, ",\"l.%d.w\":\"s1.safetensors\"", twice);
    write_index(f, arena_printf(f->arena, "{\"weight_map\":{%s}}", text));
}

/* Whatever order an index has, and however names are spelled, it names the same; and one of them twice is refused. */
static void test_orders_of_an_index(void **state)
{
    const struct fixture *f = *state;
    static const int STEPS[] = {1, 3, 7, 81, 45}; /* none shares a factor with 82 */
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        write_many(f, STEPS[i], -1);
        const struct tensor_set s = opened(f, "");
        assert_int_equal(s.n, 82);
        assert_int_equal(s.total_bytes, 2 * 820);
        for (int k = 0; k < 82; k++) {
            char name[32];
            (void)snprintf(name, sizeof name, "l.%d.w", k);
            assert_int_equal(found(&s, name)->shard == found(&s, "l.0.w")->shard, k < 41);
            assert_int_equal(found(&s, name)->elems, k % 41);
            assert_int_equal(found(&s, name)->shape[0], k % 41);
        }
    }
    static const int TWICE[] = {0, 17, 40, 41, 80, 81};
    for (size_t i = 0; i < sizeof TWICE / sizeof TWICE[0]; i++) {
        write_many(f, STEPS[i % 5], TWICE[i]);
        refused(f, "", ERR_INPUT, arena_printf(f->arena, "'l.%d.w' is there twice", TWICE[i]));
    }
    /* a name whose spelling needs escapes is not taken for the bytes that it stands for */
    write_index(f, "{\"weight_map\":{\"a\\\"b\":\"s1.safetensors\"}}");
    checkpoint_safetensors(f->dir, "s1.safetensors",
                           "{\"a\\\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
    assert_int_equal(opened(f, "").total_bytes, 3);
    checkpoint_safetensors(f->dir, "s1.safetensors",
                           "{\"a\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3);
    refused(f, "", ERR_INPUT, "wanted a colon");
}

static void test_directories(void **state)
{
    const struct fixture *f = *state;
    refused(f, "", ERR_IO, "no .safetensors");
    refused(f, "none.safetensors", ERR_IO, "cannot open");
    refused(f, "none.gguf", ERR_IO, "cannot open");
    refused(f, "x.bin", ERR_USAGE, "wanted a .safetensors file");
    enum tensor_format format;
    assert_false(tensors_present(f->dir, &format));
    static const char ONE[] = "{\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    checkpoint_safetensors(f->dir, "b.safetensors", ONE, 3);
    assert_true(tensors_present(f->dir, &format));
    assert_int_equal(format, TENSOR_FORMAT_SAFETENSORS);
    assert_int_equal(opened(f, "").total_bytes, 3);
    checkpoint_safetensors(f->dir, "a.safetensors", ONE, 3);
    refused(f, "", ERR_IO, "2 files like 'a.safetensors' and no index");
    checkpoint_safetensors(f->dir, "model.safetensors", ONE, 3);
    assert_int_equal(opened(f, "").total_bytes, 3);
    assert_int_equal(mkdir(at(f, "d.safetensors"), 0700), 0);
    refused(f, "d.safetensors", ERR_IO, "no .safetensors");
    assert_int_equal(mkfifo(at(f, "fifo.gguf"), 0600), 0);
    refused(f, "fifo.gguf", ERR_IO, "not a regular file");
}

#define T(name, dtype, shape, from, to)                                                                                \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #from "," #to "]}"

/* Headers that lie. */
static const struct hostile {
    const char *header;
    int64_t data_bytes;
    const char *sentence;
} HOSTILE[] = {
    {"{}", 1, "last 1 bytes belong to no tensor"},
    {"[]", 0, "wanted the object of a safetensors header"},
    {"  {}", 0, "wanted the object of a safetensors header"},
    {"{} x", 0, "nothing but blanks"},
    {"{\"a\":}", 0, "wanted an object"},
    {"{" T("a", "BF16", "[2]", 0, 4), 4, "found the end"},
    {"{" T("a", "BF16", "[2]", 0, 4) ",}", 4, "wanted a member's name"},
    {"{" T("a", "BF16", "[2]", 0, 4) "," T("a", "BF16", "[2]", 4, 8) "}", 8, "'a' is there twice"},
    {"{" T("a", "BF17", "[2]", 0, 4) "}", 4, "'a': dtype \"BF17\""},
    {"{" T("a", "BF16", "[-2]", 0, 4) "}", 4, "an integer within its bounds"},
    {"{" T("a", "BF16", "[2.0]", 0, 4) "}", 4, "wanted an integer"},
    {"{" T("a", "BF16", "[02]", 0, 4) "}", 4, "wanted an integer"},
    {"{" T("a", "BF16", "[18446744073709551616]", 0, 4) "}", 4, "an integer within its bounds"},
    {"{" T("a", "BF16", "[4294967296,4294967296]", 0, 4) "}", 4, "beyond 64 bits"},
    {"{" T("a", "F64", "[4611686018427387904]", 0, 4) "}", 4, "beyond 64 bits"},
    {"{" T("a", "BF16", "[1,1,1,1,1,1,1,1,2]", 0, 4) "}", 4, "at most 8 dimensions"},
    {"{" T("a", "BF16", "2", 0, 4) "}", 4, "wanted a list"},
    {"{" T("a", "F4", "[3]", 0, 2) "}", 2, "no whole number of F4 blocks"},
    {"{" T("a", "F6_E2M3", "[2]", 0, 2) "}", 2, "no whole number of F6_E2M3 blocks"},
    {"{" T("a", "BF16", "[2]", 0, 5) "}", 5, "'a': its offsets [0, 5) are not the 4 bytes of its BF16 shape"},
    {"{" T("a", "BF16", "[2]", 4, 0) "}", 4, "'a': its offsets [4, 0) are not the 4 bytes of its BF16 shape"},
    {"{" T("a", "BF16", "[2]", 0, 4) "}", 3, "ends 1 bytes before its last tensor does"},
    {"{" T("a", "BF16", "[1099511627776]", 0, 2199023255552) "}", 7, "incomplete download"},
    {"{" T("a", "BF16", "[2]", 0, 4) "," T("b", "BF16", "[2]", 2, 6) "}", 6, "'b' begins at byte 2, within another"},
    {"{" T("a", "BF16", "[3]", 0, 6) "," T("b", "BF16", "[1]", 2, 4) "}", 6, "'b' begins at byte 2, within another"},
    {"{" T("b", "BF16", "[1]", 2, 4) "," T("a", "BF16", "[3]", 0, 6) "}", 6, "'b' begins at byte 2, within another"},
    {"{" T("a", "BF16", "[2]", 0, 4) "," T("b", "BF16", "[2]", 5, 9) "}", 9, "1 bytes before tensor 'b' belong"},
    {"{" T("a", "BF16", "[2]", 1, 5) "}", 5, "1 bytes before tensor 'a' belong"},
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2]}}", 4, "'a': data_offsets is missing"},
    {"{\"a\":{\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "dtype is missing"},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0, "shape is missing"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "once each"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"strides\":[1]}}", 0, "only dtype, shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0]}}", 0, "two offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0,0]}}", 0, "no third"},
    {"{\"a\":{\"dtype\":8,\"shape\":[0],\"data_offsets\":[0,0]}}", 0, "wanted a string"},
    {"{" T("", "U8", "[0]", 0, 0) "}", 0, "name of 0 bytes"},
    {"{" T("a\\u0000b", "U8", "[0]", 0, 0) "}", 0, "not all zero"},
    {"{" T("a\\ud800", "U8", "[0]", 0, 0) "}", 0, "surrogate pair"},
    {"{" T("a\\x", "U8", "[0]", 0, 0) "}", 0, "an escape of JSON"},
    {"{" T("a\xff", "U8", "[0]", 0, 0) "}", 0, "UTF-8"},
    {"{" T("a\033[31m", "U8", "[0]", 0, 0) "}", 0, "UTF-8"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "wanted a string"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ once"},
};

static void test_safetensors_that_lie(void **state)
{
    const struct fixture *f = *state;
    for (size_t i = 0; i < sizeof HOSTILE / sizeof HOSTILE[0]; i++) {
        checkpoint_safetensors(f->dir, "x.safetensors", HOSTILE[i].header, HOSTILE[i].data_bytes);
        refused(f, "x.safetensors", ERR_INPUT, HOSTILE[i].sentence);
    }
    static const struct {
        const char bytes[17];
        size_t n;
        int64_t file_bytes;
        const char *sentence;
    } LENGTHS[] = {
        {"", 0, 0, "too few for a safetensors file"},
        {"\2\0\0\0\0\0\0", 7, 7, "too few for a safetensors file"},
        {"\1\0\0\0\0\0\0\0{", 9, 9, "a header of 1 bytes"},
        {"\0\0\0\0\0\0\0\0{}", 10, 10, "a header of 0 bytes"},
        {"\3\0\0\0\0\0\0\0{}", 10, 10, "a header of 3 bytes in a file of 10"},
        {"\377\377\377\377\377\377\377\377{}", 10, 10, "a header of 18446744073709551615 bytes"},
        {"\1\341\365\5\0\0\0\0{}", 10, 200000009, "a header of 100000001 bytes"},
        {"\0\341\365\5\0\0\0\0{}", 10, 100000007, "incomplete download"},
        {"\0\341\365\5\0\0\0\0{", 9, 100000008, "wanted a member's name"},
    };
    for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
        checkpoint_file(f->dir, "x.safetensors", LENGTHS[i].bytes, LENGTHS[i].n, LENGTHS[i].file_bytes);
        refused(f, "x.safetensors", ERR_INPUT, LENGTHS[i].sentence);
    }
}

static void test_indexes_that_lie(void **state)
{
    const struct fixture *f = *state;
    static const char *const LIES[][2] = {
        {"", "found the end"},
        {"[]", "wanted an object"},
        {"{}", "no weight_map"},
        {"{\"weight_map\":[]}", "wanted an object"},
        {"{\"weight_map\":{\"x\":7}}", "wanted a string"},
        {"{\"weight_map\":{\"x\":\"s\",\"x\":\"s\"}}", "'x' is there twice"},
        {"{\"weight_map\":{\"x\":\"../s.safetensors\"}}", "not the name of a file beside the index"},
        {"{\"weight_map\":{\"x\":\"/etc/passwd\"}}", "not the name of a file beside the index"},
        {"{\"weight_map\":{\"x\":\"d/s.safetensors\"}}", "not the name of a file beside the index"},
        {"{\"weight_map\":{\"x\":\"d\\\\s.safetensors\"}}", "not the name of a file beside the index"},
        {"{\"weight_map\":{\"x\":\"\"}}", "not the name of a file beside the index"},
        {"{\"weight_map\":{\"x\":\"..\"}}", "not the name of a file beside the index"},
        {"{\"weight_map\":{\"x\":\"s\"},\"weight_map\":{}}", "weight_map once"},
        {"{\"weight_map\":{\"x\":\"s\"}", "found the end"},
        {"{\"metadata\":{\"total_size\":1e999},\"weight_map\":{}}", "within the range of a double"},
        {"{\"metadata\":{\"total_size\":-},\"weight_map\":{}}", "wanted a number"},
    };
    for (size_t i = 0; i < sizeof LIES / sizeof LIES[0]; i++) {
        write_index(f, LIES[i][0]);
        refused(f, "", ERR_INPUT, LIES[i][1]);
    }
    char deep[300];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"x\":", 5);
    checkpoint_file(f->dir, "model.safetensors.index.json", deep, sizeof deep, 0);
    refused(f, "", ERR_INPUT, "at most 64 levels");
    checkpoint_safetensors(f->dir, "s1.safetensors", "{" T("x", "U8", "[3]", 0, 3) "}", 3);
    checkpoint_safetensors(f->dir, "s2.safetensors", "{" T("x", "U8", "[3]", 0, 3) "}", 3);
    write_index(f, "{\"weight_map\":{\"x\":\"s1.safetensors\",\"y\":\"s2.safetensors\"}}");
    refused(f, "", ERR_INPUT, "s2.safetensors: tensor 'x' is there twice");
}

/* A checkpoint of 700 GB: the file is sparse, only its header is read. */
static void test_large_files_are_not_read(void **state)
{
    const struct fixture *f = *state;
    checkpoint_safetensors(f->dir, "big.safetensors", "{" T("a", "BF16", "[700003,500009]", 0, 700015600054) "}",
                           700015600054);
    const struct tensor_set s = opened(f, "big.safetensors");
    assert_int_equal(s.total_bytes, 700015600054);
    assert_int_equal(s.total_elems, 350007800027);
}

/* ---- GGUF ---- */

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q8_0 = 8, Q4_K = 12, Q6_K = 14, IQ4_XS = 23, BF16 = 30, TQ1_0 = 34, MXFP4 = 39 };

static void put_list(struct checkpoint_gguf *g, const char *key, uint32_t type, uint64_t n)
{
    checkpoint_put_text(g, key);
    checkpoint_put(g, 4, 9);
    checkpoint_put(g, 4, type);
    checkpoint_put(g, 8, n);
}

static void test_gguf(void **state)
{
    const struct fixture *f = *state;
    struct checkpoint_gguf *g = arena_alloc(f->arena, sizeof *g);
    for (uint32_t version = 2; version <= 3; version++) {
        checkpoint_gguf_begin(g, version, 5, 9);
        checkpoint_pair_text(g, "general.architecture", "llama");
        checkpoint_pair_u32(g, "llama.block_count", 31);
        put_list(g, "tokenizer.ggml.tokens", 8, 3);
        checkpoint_put_text(g, "a");
        checkpoint_put_text(g, "");
        checkpoint_put_text(g, "tok");
        put_list(g, "llama.attention.head_count_kv", 5, 4);
        for (uint64_t i = 0; i < 4; i++) checkpoint_put(g, 4, i == 2 ? 0xFFFFFFFD : 7 + i);
        put_list(g, "nested", 9, 2);
        checkpoint_put(g, 4, 0);
        checkpoint_put(g, 8, 3);
        checkpoint_put(g, 3, 0x030201);
        checkpoint_put(g, 4, 6);
        checkpoint_put(g, 8, 0);
        checkpoint_put_text(g, "real");
        checkpoint_put(g, 4, 6);
        checkpoint_put(g, 4, 0x40490000); /* 3.140625 */
        checkpoint_put_text(g, "flag");
        checkpoint_put(g, 4, 7);
        checkpoint_put(g, 1, 1);
        checkpoint_put_text(g, "large");
        checkpoint_put(g, 4, 10);
        checkpoint_put(g, 8, UINT64_MAX);
        checkpoint_pair_u32(g, "general.alignment", 64);
        /* 512*3 q4_k = 6 blocks of 144; 32*5 q8_0 = 5*34 */
        checkpoint_tensor(g, "token_embd.weight", Q4_K, 2, 512, 3, 0, 0);
        checkpoint_tensor(g, "norm", F32, 1, 7, 0, 0, 896);
        checkpoint_tensor(g, "q", Q8_0, 2, 32, 5, 0, 960);
        checkpoint_tensor(g, "experts", MXFP4, 3, 64, 11, 13, 1152);
        checkpoint_tensor(g, "last", BF16, 2, 3, 3, 0, 6016);
        const int64_t data_at = ((int64_t)g->n + 63) / 64 * 64;
        checkpoint_file(f->dir, "m.gguf", g->bytes, g->n, data_at + 6016 + 18);
        const struct tensor_set s = opened(f, version == 2 ? "" : "m.gguf");
        assert_int_equal(s.format, TENSOR_FORMAT_GGUF);
        assert_int_equal(s.n, 5);
        assert_int_equal(s.shards[0].header_bytes, data_at);
        const struct tensor *t = found(&s, "token_embd.weight");
        assert_int_equal(t->shape[0], 3);
        assert_int_equal(t->shape[1], 512);
        assert_int_equal(t->bytes, 864);
        assert_int_equal(found(&s, "experts")->bytes, 2 * 17 * 11 * 13);
        assert_int_equal(found(&s, "experts")->shape[0], 13);
        assert_int_equal(found(&s, "q")->bytes, 170);
        assert_int_equal(s.total_bytes, 864 + 28 + 170 + 4862 + 18);
        assert_int_equal(s.total_elems, 1536 + 7 + 160 + 9152 + 9);
        assert_int_equal(s.meta_n, 9);
        assert_string_equal(tensors_meta(&s, "general.architecture")->text, "llama");
        assert_int_equal(tensors_meta(&s, "llama.block_count")->integer, 31);
        assert_int_equal(tensors_meta(&s, "tokenizer.ggml.tokens")->array_n, 3);
        const struct tensor_meta *kv = tensors_meta(&s, "llama.attention.head_count_kv");
        assert_int_equal(kv->array_n, 4);
        assert_int_equal(kv->ints[2], -3);
        assert_int_equal(kv->ints[3], 10);
        assert_true(tensors_meta(&s, "real")->real == 3.140625);
        assert_int_equal(tensors_meta(&s, "flag")->kind, TENSOR_META_BOOL);
        assert_int_equal(tensors_meta(&s, "large")->integer, TENSOR_UNKNOWN);
    }
}

/* Bytes of one super-block against the structures of ggml, by hand: scales, then quants. */
static void test_block_sizes(void **state)
{
    (void)state;
    static const struct {
        uint32_t number;
        const char *name;
        int64_t elems, bytes;
    } BLOCKS[] = {
        {0, "F32", 1, 4},
        {1, "F16", 1, 2},
        {2, "Q4_0", 32, 2 + 16},
        {3, "Q4_1", 32, 2 + 2 + 16},
        {6, "Q5_0", 32, 2 + 4 + 16},
        {7, "Q5_1", 32, 2 + 2 + 4 + 16},
        {8, "Q8_0", 32, 2 + 32},
        {9, "Q8_1", 32, 2 + 2 + 32},
        {10, "Q2_K", 256, 2 + 2 + 256 / 16 + 256 / 4},
        {11, "Q3_K", 256, 2 + 256 / 8 + 256 / 4 + 12},
        {12, "Q4_K", 256, 2 + 2 + 12 + 256 / 2},
        {13, "Q5_K", 256, 2 + 2 + 12 + 256 / 8 + 256 / 2},
        {14, "Q6_K", 256, 2 + 256 / 16 + 256 / 2 + 256 / 4},
        {15, "Q8_K", 256, 4 + 256 + 2 * (256 / 16)},
        {16, "IQ2_XXS", 256, 2 + 256 / 8 * 2},
        {17, "IQ2_XS", 256, 2 + 256 / 8 * 2 + 256 / 32},
        {18, "IQ3_XXS", 256, 2 + 3 * (256 / 8)},
        {19, "IQ1_S", 256, 2 + 256 / 8 + 256 / 16},
        {20, "IQ4_NL", 32, 2 + 16},
        {21, "IQ3_S", 256, 2 + 13 * (256 / 32) + 256 / 64},
        {22, "IQ2_S", 256, 2 + 256 / 4 + 256 / 16},
        {23, "IQ4_XS", 256, 2 + 2 + 256 / 64 + 256 / 2},
        {24, "I8", 1, 1},
        {25, "I16", 1, 2},
        {26, "I32", 1, 4},
        {27, "I64", 1, 8},
        {28, "F64", 1, 8},
        {29, "IQ1_M", 256, 256 / 8 + 256 / 16 + 256 / 32},
        {30, "BF16", 1, 2},
        {34, "TQ1_0", 256, 2 + 4 + 48},
        {35, "TQ2_0", 256, 2 + 64},
        {36, "I2_S", 4, 1},
        {39, "MXFP4", 32, 1 + 16},
        {40, "NVFP4", 64, 4 + 32},
    };
    size_t n = 0;
    for (uint32_t number = 0; number < 100; number++) n += gguf_type(number) != NULL;
    assert_int_equal(n, sizeof BLOCKS / sizeof BLOCKS[0]);
    for (size_t i = 0; i < n; i++) {
        const struct tensor_type *t = gguf_type(BLOCKS[i].number);
        assert_non_null(t);
        assert_string_equal(t->name, BLOCKS[i].name);
        assert_int_equal(t->block_elems, BLOCKS[i].elems);
        assert_int_equal(t->block_bytes, BLOCKS[i].bytes);
        assert_int_equal(t->tail_bytes, BLOCKS[i].number == 36 ? 32 : 0);
    }
    static const char *const SAFE[] = {"F4:4",      "F6_E2M3:6", "F6_E3M2:6",     "BOOL:8",       "U8:8",   "I8:8",
                                       "F8_E5M2:8", "F8_E4M3:8", "F8_E8M0:8",     "I16:16",       "U16:16", "F16:16",
                                       "BF16:16",   "I32:32",    "U32:32",        "F32:32",       "C64:64", "F64:64",
                                       "I64:64",    "U64:64",    "F8_E4M3FNUZ:8", "F8_E5M2FNUZ:8"};
    for (size_t i = 0; i < sizeof SAFE / sizeof SAFE[0]; i++) {
        const char *colon = strchr(SAFE[i], ':');
        const struct tensor_type *t = safetensors_type(SAFE[i], (size_t)(colon - SAFE[i]));
        assert_non_null(t);
        assert_int_equal(8 * t->block_bytes, t->block_elems * strtol(colon + 1, NULL, 10));
    }
}

/* One tensor of 32*3 q4_0 in a file as each row of the table makes it. */
enum lie {
    LIE_MAGIC,
    LIE_VERSION_1,
    LIE_VERSION_4,
    LIE_BIG_ENDIAN,
    LIE_SHORT,
    LIE_TENSORS,
    LIE_PAIRS,
    LIE_KEY_LENGTH,
    LIE_KEY_EMPTY,
    LIE_KEY_TWICE,
    LIE_KEY_NUL,
    LIE_VALUE_TYPE,
    LIE_VALUE_LENGTH,
    LIE_BOOL,
    LIE_LIST_LENGTH,
    LIE_LIST_OF_TEXT,
    LIE_LIST_TYPE,
    LIE_NESTED,
    LIE_ALIGNMENT_0,
    LIE_ALIGNMENT_48,
    LIE_ALIGNMENT_TEXT,
    LIE_NAME_LENGTH,
    LIE_NAME_EMPTY,
    LIE_NAME_TWICE,
    LIE_DIMS,
    LIE_SIDE,
    LIE_PRODUCT,
    LIE_BLOCKS,
    LIE_ROW,
    LIE_TYPE,
    LIE_TYPE_REMOVED,
    LIE_OFFSET_ODD,
    LIE_OFFSET_FAR,
    LIE_OFFSET_HUGE,
    LIE_OVERLAP,
    LIE_TRUNCATED,
    LIE_NO_DATA,
    LIE_LARGE,
    LIES_N
};

static const char *const LIE_SENTENCE[LIES_N] = {
    [LIE_MAGIC] = "begins with \"GGML\"",
    [LIE_VERSION_1] = "GGUF version 1, wanted 2 or 3 (version 1 counts in 32 bits",
    [LIE_VERSION_4] = "GGUF version 4, wanted 2 or 3",
    [LIE_BIG_ENDIAN] = "big-endian",
    [LIE_SHORT] = "too few for a GGUF file",
    [LIE_TENSORS] = "1000000000000 tensors, more than the rest",
    [LIE_PAIRS] = "18446744073709551615 metadata pairs, more than the rest",
    [LIE_KEY_LENGTH] = "bytes of a metadata key, more than the rest",
    [LIE_KEY_EMPTY] = "a metadata key of 0 bytes",
    [LIE_KEY_TWICE] = "metadata 'a' is there twice",
    [LIE_KEY_NUL] = "without NUL",
    [LIE_VALUE_TYPE] = "is of type 13, which GGUF has not",
    [LIE_VALUE_LENGTH] = "bytes of a metadata string, more than the rest",
    [LIE_BOOL] = "is 2, wanted 0 or 1",
    [LIE_LIST_LENGTH] = "elements of a metadata list, more than the rest",
    [LIE_LIST_OF_TEXT] = "bytes of a string, more than the rest",
    [LIE_LIST_TYPE] = "is of type 99",
    [LIE_NESTED] = "lists nested deeper than 4",
    [LIE_ALIGNMENT_0] = "no power of two",
    [LIE_ALIGNMENT_48] = "no power of two",
    [LIE_ALIGNMENT_TEXT] = "no power of two",
    [LIE_NAME_LENGTH] = "bytes of a tensor's name, more than the rest",
    [LIE_NAME_EMPTY] = "name of 0 bytes",
    [LIE_NAME_TWICE] = "'w' is there twice",
    [LIE_DIMS] = "has 5 dimensions",
    [LIE_SIDE] = "a side of 9223372036854775808",
    [LIE_PRODUCT] = "beyond 64 bits",
    [LIE_BLOCKS] = "no whole number of Q4_0 blocks",
    [LIE_ROW] = "no whole number of Q4_0 blocks",
    [LIE_TYPE] = "type number 77",
    [LIE_TYPE_REMOVED] = "type number 4,",
    [LIE_OFFSET_ODD] = "begins at byte 16 of the data: not aligned",
    [LIE_OFFSET_FAR] = "beyond the end of the file",
    [LIE_OFFSET_HUGE] = "beyond the end of the file",
    [LIE_OVERLAP] = "'v' begins at byte 32, within another that ends at 54",
    [LIE_TRUNCATED] = "ends 1 bytes before its last tensor does",
    [LIE_NO_DATA] = "within the padding before the data",
    [LIE_LARGE] = "takes 618475290624 bytes in a file of",
};

static void put_pair_of(struct checkpoint_gguf *g, enum lie lie)
{
    if (lie == LIE_KEY_TWICE) checkpoint_pair_u32(g, "a", 1);
    if (lie == LIE_KEY_LENGTH) {
        checkpoint_put(g, 8, UINT64_MAX / 2);
    } else if (lie == LIE_KEY_NUL) {
        checkpoint_put(g, 8, 2);
        checkpoint_put(g, 2, 'a');
    } else {
        checkpoint_put_text(g, lie == LIE_KEY_EMPTY ? ""
                               : lie == LIE_ALIGNMENT_0 || lie == LIE_ALIGNMENT_48 || lie == LIE_ALIGNMENT_TEXT
                                   ? "general.alignment"
                                   : "a");
    }
    if (lie == LIE_VALUE_LENGTH || lie == LIE_ALIGNMENT_TEXT) {
        checkpoint_put(g, 4, 8);
        checkpoint_put(g, 8, lie == LIE_ALIGNMENT_TEXT ? 0 : UINT64_MAX);
    } else if (lie == LIE_BOOL) {
        checkpoint_put(g, 4, 7);
        checkpoint_put(g, 1, 2);
    } else if (lie == LIE_LIST_LENGTH || lie == LIE_LIST_OF_TEXT || lie == LIE_LIST_TYPE) {
        checkpoint_put(g, 4, 9);
        checkpoint_put(g, 4, lie == LIE_LIST_TYPE ? 99 : lie == LIE_LIST_OF_TEXT ? 8 : 12);
        checkpoint_put(g, 8, lie == LIE_LIST_LENGTH ? UINT64_C(1) << 61 : 3);
        if (lie == LIE_LIST_OF_TEXT) checkpoint_put(g, 8, UINT64_MAX - 7);
    } else if (lie == LIE_NESTED) {
        checkpoint_put(g, 4, 9);
        for (int i = 0; i < 9; i++) {
            checkpoint_put(g, 4, 9);
            checkpoint_put(g, 8, 1);
        }
    } else {
        checkpoint_put(g, 4, lie == LIE_VALUE_TYPE ? 13 : 4);
        checkpoint_put(g, 4, lie == LIE_ALIGNMENT_0 ? 0 : lie == LIE_ALIGNMENT_48 ? 48 : 32);
    }
}

static void put_tensor_of(struct checkpoint_gguf *g, enum lie lie)
{
    const char *name = lie == LIE_NAME_EMPTY ? "" : "w";
    const uint32_t dims = lie == LIE_DIMS ? 5 : lie == LIE_PRODUCT || lie == LIE_LARGE ? 3 : 2;
    const uint32_t type = lie == LIE_TYPE ? 77 : lie == LIE_TYPE_REMOVED ? 4 : Q4_0;
    const uint64_t offset = lie == LIE_OFFSET_ODD    ? 16
                            : lie == LIE_OFFSET_FAR  ? 4096
                            : lie == LIE_OFFSET_HUGE ? UINT64_MAX - 31
                                                     : 0;
    uint64_t side[3] = {32, 3, 1};
    if (lie == LIE_SIDE) side[1] = UINT64_C(1) << 63;
    if (lie == LIE_PRODUCT) side[1] = side[2] = UINT64_C(1) << 31;
    if (lie == LIE_LARGE) side[1] = side[2] = UINT64_C(1) << 20, side[2] = 32768;
    if (lie == LIE_BLOCKS) side[0] = 33;
    if (lie == LIE_ROW) side[0] = 16, side[1] = 6; /* whole in all, but rows cut through blocks */
    if (lie == LIE_NAME_LENGTH) {
        checkpoint_put(g, 8, UINT64_C(1) << 40);
        return;
    }
    checkpoint_tensor(g, name, type, dims, side[0], side[1], side[2], offset);
    if (lie == LIE_NAME_TWICE) checkpoint_tensor(g, name, type, dims, 32, 3, 1, 64);
    if (lie == LIE_OVERLAP) checkpoint_tensor(g, "v", type, dims, 32, 3, 1, 32);
}

static void test_gguf_that_lies(void **state)
{
    const struct fixture *f = *state;
    struct checkpoint_gguf *g = arena_alloc(f->arena, sizeof *g);
    for (enum lie lie = LIE_MAGIC; lie < LIES_N; lie++) {
        const uint64_t tensors = lie == LIE_TENSORS                            ? UINT64_C(1000000000000)
                                 : lie == LIE_NAME_TWICE || lie == LIE_OVERLAP ? 2
                                                                               : 1;
        const uint32_t version = lie == LIE_VERSION_1    ? 1
                                 : lie == LIE_VERSION_4  ? 4
                                 : lie == LIE_BIG_ENDIAN ? 3u << 24
                                                         : 3;
        checkpoint_gguf_begin(g, version, tensors, lie == LIE_PAIRS ? UINT64_MAX : lie == LIE_KEY_TWICE ? 2 : 1);
        if (lie == LIE_MAGIC) memcpy(g->bytes, "GGML", 4);
        put_pair_of(g, lie);
        put_tensor_of(g, lie);
        int64_t bytes = ((int64_t)g->n + 31) / 32 * 32 + 54 + (lie == LIE_OVERLAP ? 32 : 0);
        if (lie == LIE_TRUNCATED) bytes--;
        if (lie == LIE_NO_DATA) bytes = 0;
        if (lie == LIE_SHORT) g->n = 23, bytes = 0;
        checkpoint_file(f->dir, "x.gguf", g->bytes, g->n, bytes);
        refused(f, "x.gguf", ERR_INPUT, LIE_SENTENCE[lie]);
    }
}

/* Every beginning of a good file is refused, and no byte of it is read that is not there. */
static void test_every_prefix_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct checkpoint_gguf *g = arena_alloc(f->arena, sizeof *g);
    checkpoint_gguf_begin(g, 3, 2, 2);
    checkpoint_pair_text(g, "general.architecture", "qwen3");
    put_list(g, "x", 8, 2);
    checkpoint_put_text(g, "ab");
    checkpoint_put_text(g, "cde");
    checkpoint_tensor(g, "w", Q6_K, 2, 256, 3, 0, 0);
    checkpoint_tensor(g, "v", F16, 1, 5, 0, 0, 640);
    while (g->n % 32) checkpoint_put(g, 1, 0);
    for (size_t i = 0; i < 650; i++) checkpoint_put(g, 1, i & 0xFF);
    for (size_t n = 0; n <= g->n; n++) {
        struct err e = {0};
        struct arena *a = arena_open();
        int64_t header;
        unsigned char *exact = malloc(n ? n : 1); /* so that the sanitizer sees a byte too many */
        assert_non_null(exact);
        memcpy(exact, g->bytes, n);
        const struct tensor_source src = {.name = "p.gguf", .size_bytes = (int64_t)n, .data = exact};
        struct tensor_builder b = {.arena = a, .err = &e, .names = tensor_names_open(a)};
        assert_int_equal(gguf_read(&b, &src, 0, &header), n < g->n ? ERR_INPUT : ERR_OK);
        tensor_builder_close(&b);
        free(exact);
        arena_close(a);
    }
}

static void write_part(const struct fixture *f, const char *name, uint32_t no, uint32_t count, uint32_t tensors,
                       const char *tensor)
{
    struct checkpoint_gguf *g = arena_alloc(f->arena, sizeof *g);
    checkpoint_gguf_begin(g, 3, 1, no == 0 ? 4 : 3);
    checkpoint_pair_u32(g, "split.no", no);
    checkpoint_pair_u32(g, "split.count", count);
    checkpoint_pair_u32(g, "split.tensors.count", tensors);
    if (no == 0) checkpoint_pair_text(g, "general.architecture", "llama");
    checkpoint_tensor(g, tensor, F32, 1, 13 + no, 0, 0, 0);
    checkpoint_gguf_write(g, f->dir, name, (13 + (int64_t)no) * 4);
}

static void test_split_gguf(void **state)
{
    const struct fixture *f = *state;
    write_part(f, "m-00001-of-00003.gguf", 0, 3, 3, "a");
    write_part(f, "m-00002-of-00003.gguf", 1, 3, 3, "b");
    refused(f, "", ERR_IO, "m-00003-of-00003.gguf: cannot open");
    write_part(f, "m-00003-of-00003.gguf", 2, 3, 3, "c");
    static const char *const PATHS[] = {"", "m-00001-of-00003.gguf", "m-00002-of-00003.gguf"};
    for (size_t i = 0; i < 3; i++) {
        const struct tensor_set s = opened(f, PATHS[i]);
        assert_int_equal(s.n, 3);
        assert_int_equal(s.shards_n, 3);
        assert_int_equal(s.total_elems, 13 + 14 + 15);
        assert_int_equal(found(&s, "c")->shard, 2);
        assert_int_equal(s.meta_n, 4);
    }
    write_part(f, "m-00003-of-00003.gguf", 2, 3, 4, "b");
    refused(f, "", ERR_INPUT, "'b' is there twice");
    write_part(f, "m-00001-of-00003.gguf", 0, 3, 5, "a");
    write_part(f, "m-00003-of-00003.gguf", 2, 3, 5, "c");
    refused(f, "", ERR_INPUT, "3 tensors in all parts, but split.tensors.count is 5");
    write_part(f, "m-00002-of-00003.gguf", 2, 3, 3, "b");
    refused(f, "", ERR_INPUT, "its metadata part 2 of 3");
    write_part(f, "alone.gguf", 0, 2, 2, "a");
    refused(f, "alone.gguf", ERR_INPUT, "one of 2 parts");
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RUN(test_single_file),
        RUN(test_shards_with_index),
        RUN(test_index_against_shards),
        RUN(test_shards_that_are_not_there),
        RUN(test_orders_of_an_index),
        RUN(test_directories),
        RUN(test_safetensors_that_lie),
        RUN(test_indexes_that_lie),
        RUN(test_large_files_are_not_read),
        RUN(test_gguf),
        cmocka_unit_test(test_block_sizes),
        RUN(test_gguf_that_lies),
        RUN(test_every_prefix_is_refused),
        RUN(test_split_gguf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
