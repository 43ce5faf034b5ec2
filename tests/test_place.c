/* work at a place with memory of its own, as a card is: what is filled, copied, checked, timed and given back. The
 * place of this test is memory of the host that only its functions and the kernels touch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/table.h"
#include "probe/worker/work.h"

enum { ELEMENTS = 6151, COPIES_LEAST = 3 };

struct fake {
    struct place place; /* first */
    size_t taken, given, timed, counted;
    const char *cannot; /* count */
    const char *fails;  /* what the next wait says */
};

static void *take(struct place *p, unsigned device, size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(device, 0);
    ((struct fake *)p)->taken++;
    return posix_memalign(&memory, 256, bytes) ? NULL : memory;
}

static void give(struct place *p, void *memory)
{
    ((struct fake *)p)->given++;
    free(memory);
}

static void copy(struct place *p, void *to, const void *from, size_t bytes) { (void)p, memcpy(to, from, bytes); }
static void set(struct place *p, void *at, int byte, size_t bytes) { (void)p, memset(at, byte, bytes); }

static const char *wait(struct place *p)
{
    const char *why = ((struct fake *)p)->fails;
    ((struct fake *)p)->fails = NULL;
    return why;
}

static void times(struct place *p, struct work *w, const struct sample_rule *rule, struct work_times *out)
{
    ((struct fake *)p)->timed++;
    w->last = w->copies - 1;
    w->spec.variant->run(&w->calls[w->last]);
    out->n = rule->least;
    out->calls = 5;
    (void)snprintf(out->conditions, sizeof out->conditions, "{\"power_w\":\"311\"}");
}

/* 700 bytes read and 11 written each time that a kernel is called, of which run_counted keeps count. */
static size_t called;

static const char *count(struct place *p, const char *(*run)(void *closure), void *closure, double bytes[2], char *text,
                         size_t cap)
{
    struct fake *const f = (struct fake *)p;
    const size_t before = called;
    f->counted++;
    const char *why = run(closure);
    if (f->cannot) {
        (void)snprintf(text, cap, "%s", f->cannot);
        return text;
    }
    bytes[0] = 700 * (double)(called - before);
    bytes[1] = 11 * (double)(called - before);
    return why;
}

static const struct place_code CODE = {take, give, copy, set, wait, times, count};

/* -- variants of stream-copy -- */

static void copy_all(const struct kern_call *c, size_t from, size_t to)
{
    assert_ptr_equal(c->stream, &CODE); /* the place's own */
    for (size_t i = from; i < to; i++) ((float *)c->buffer[1])[i] = ((const float *)c->buffer[0])[i % ELEMENTS];
}

static void run_counted(const struct kern_call *c)
{
    called++;
    copy_all(c, 0, ELEMENTS);
}

static void run_right(const struct kern_call *c) { copy_all(c, 0, ELEMENTS); }
static void run_beyond(const struct kern_call *c) { copy_all(c, 0, ELEMENTS + 1); }
static void run_short(const struct kern_call *c) { copy_all(c, 0, ELEMENTS - 1); }
static void run_shifted(const struct kern_call *c)
{
    copy_all(c, 0, ELEMENTS);
    ((float *)c->buffer[1])[17] += 1;
}

static void run_scratch(const struct kern_call *c)
{
    memcpy(c->scratch, c->buffer[0], ELEMENTS * sizeof(float));
    memcpy(c->buffer[1], c->scratch, ELEMENTS * sizeof(float));
}

static size_t scratch_bytes(const struct kern_shape *s, const struct kern_machine *m)
{
    (void)m;
    return (size_t)s->v[0] * sizeof(float);
}

static const struct kern_machine MACHINE = {.cache_bytes = {0, 0, 20000}, .blas_name = ""};

static const char *open_work(struct fake *f, void (*run)(const struct kern_call *c), struct kern_variant *v,
                             struct work *w, char *text, size_t cap)
{
    *f = (struct fake){.place = {.code = &CODE, .stream = (void *)(uintptr_t)&CODE}};
    *v = (struct kern_variant){.name = "test",
                               .dtypes = KERN_HAS(KERN_FP32),
                               .run = run,
                               .scratch_bytes = run == run_scratch ? scratch_bytes : NULL};
    const struct work_spec spec = {.kernel = &kern_stream_copy,
                                   .variant = v,
                                   .shape = {{ELEMENTS}, KERN_FP32},
                                   .cold = true,
                                   .seed = 12,
                                   .place = &f->place};
    return work_open(&spec, &MACHINE, 1e8, w, text, cap);
}

static void test_right(void **state)
{
    void (*const runs[])(const struct kern_call *c) = {run_right, run_scratch};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fake f;
        struct kern_variant v;
        struct work w;
        static struct work_times t;
        char text[256] = "";
        double error;
        size_t checked;
        assert_null(open_work(&f, runs[i], &v, &w, text, sizeof text));
        assert_true(w.copies >= COPIES_LEAST);
        for (size_t c = 0; c < w.copies; c++) {
            assert_ptr_not_equal(w.calls[c].buffer[0], w.here.buffer[0]);
            assert_memory_equal(w.calls[c].buffer[0], w.here.buffer[0], ELEMENTS * sizeof(float));
            assert_true((uintptr_t)w.calls[c].buffer[1] % 64 == 0);
        }
        w.calls[0].shape = &w.spec.shape;
        assert_null(work_check(&w, &error, &checked, text, sizeof text));
        assert_true(error == 0 && checked == ELEMENTS);
        work_time(&w, &(struct sample_rule){11, 0.01, 1}, &t);
        assert_true(f.timed == 1 && t.n == 11 && t.calls == 5);
        assert_string_equal(t.conditions, "{\"power_w\":\"311\"}");
        assert_null(work_check_again(&w, text, sizeof text));
        work_close(&w);
        assert_true(f.taken == 1 && f.given == 1);
    }
}

/* The mean of a call over whole rounds, after one that is not counted; nothing is timed. */
static void test_counted(void **state)
{
    struct fake f;
    struct kern_variant v;
    struct work w;
    char text[256] = "";
    double bytes[2];
    (void)state;
    called = 0;
    assert_null(open_work(&f, run_counted, &v, &w, text, sizeof text));
    for (size_t c = 0; c < w.copies; c++) w.calls[c].shape = &w.spec.shape;
    const size_t round = w.copies > 16 ? w.copies : 16;
    assert_null(work_count(&w, bytes, text, sizeof text));
    assert_true(bytes[0] == 700 && bytes[1] == 11);
    assert_true(called == 2 * round && f.counted == 1 && f.timed == 0);
    f.cannot = "no libcupti is installed";
    assert_string_equal(work_count(&w, bytes, text, sizeof text), "no libcupti is installed");
    assert_true(isnan(bytes[0]) && isnan(bytes[1]));
    f.cannot = NULL;
    f.fails = "an illegal address";
    assert_string_equal(work_count(&w, bytes, text, sizeof text), "an illegal address");
    struct place_code blind = CODE;
    blind.count = NULL;
    f.place.code = &blind;
    assert_string_equal(work_count(&w, bytes, text, sizeof text), "only a card counts the bytes of its memory");
    work_close(&w);
}

static void test_wrong(void **state)
{
    static const struct {
        void (*run)(const struct kern_call *c);
        const char *says;
    } CASES[] = {{run_beyond, "beyond the end of "}, {run_short, "is no number"}, {run_shifted, "off by"}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fake f;
        struct kern_variant v;
        struct work w;
        char text[256] = "";
        double error;
        size_t checked;
        assert_null(open_work(&f, CASES[i].run, &v, &w, text, sizeof text));
        const char *why = work_check(&w, &error, &checked, text, sizeof text);
        assert_non_null(why);
        assert_non_null(strstr(why, CASES[i].says));
        work_close(&w);
    }
}

/* What the place says has failed is the reason, at whatever step. */
static void test_failures(void **state)
{
    struct fake f;
    struct kern_variant v;
    struct work w;
    char text[256] = "";
    double error;
    size_t checked;
    (void)state;
    assert_null(open_work(&f, run_right, &v, &w, text, sizeof text));
    f.fails = "an illegal address";
    assert_string_equal(work_check(&w, &error, &checked, text, sizeof text), "an illegal address");
    assert_null(work_check(&w, &error, &checked, text, sizeof text));
    f.fails = "a late failure";
    assert_string_equal(work_check_again(&w, text, sizeof text), "a late failure");
    work_close(&w);
    assert_int_equal(f.given, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_counted),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
