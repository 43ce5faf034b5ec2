/* ridge report: the page is well formed, needs nothing else, and nothing from outside reaches it unescaped; its charts.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "calc/cli/commands.h"
#include "calc/cli/report.h"
#include "calc/cli/simulate_charts.h"
#include "tests/scratch.h"

/* -- a small reader of HTML -- */

enum { DEPTH_MAX = 32, IDS_MAX = 64, NAME_MAX_BYTES = 32 };

struct page {
    const char *text;
    char open[DEPTH_MAX][NAME_MAX_BYTES];
    size_t depth, ids_n, links_n, tags;
    char id[IDS_MAX][NAME_MAX_BYTES], link[IDS_MAX][NAME_MAX_BYTES];
};

static bool is_void(const char *name)
{
    return strcmp(name, "meta") == 0 || strcmp(name, "br") == 0 || strcmp(name, "link") == 0;
}

static void keep(char to[][NAME_MAX_BYTES], size_t *n, const char *s, size_t len)
{
    assert_true(*n < IDS_MAX && len < NAME_MAX_BYTES);
    memcpy(to[*n], s, len);
    to[(*n)++][len] = '\0';
}

/* Attributes up to '>' or "/>", every value quoted; where the tag ends. */
static const char *attributes(struct page *p, const char *s, bool *closed)
{
    for (;;) {
        s += strspn(s, " \n");
        *closed = strncmp(s, "/>", 2) == 0;
        if (*closed) return s + 2;
        if (*s == '>') return s + 1;
        const char *name = s;
        const size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
        if (len == 0 || s[len] != '=' || s[len + 1] != '"') fail_msg("an attribute: %.40s", s);
        s += len + 2;
        const size_t value = strcspn(s, "\"<");
        if (s[value] != '"') fail_msg("a value: %.40s", s);
        assert_false(strncmp(name, "on", 2) == 0 && len > 2); /* no handlers */
        assert_false(len == 3 && strncmp(name, "src", 3) == 0);
        assert_false(len == 5 && strncmp(name, "style", 5) == 0);
        if (len == 2 && strncmp(name, "id", 2) == 0) {
            for (size_t i = 0; i < p->ids_n; i++)
                if (strlen(p->id[i]) == value && strncmp(p->id[i], s, value) == 0) fail_msg("id twice: %.20s", s);
            keep(p->id, &p->ids_n, s, value);
        }
        if (len == 4 && strncmp(name, "href", 4) == 0) {
            assert_true(*s == '#');
            keep(p->link, &p->links_n, s + 1, value - 1);
        }
        s += value + 1;
    }
}

/* Every element ends where it should, every '&' begins a reference, every link has its place. */
static void read_page(const char *text, struct page *p)
{
    *p = (struct page){.text = text};
    assert_int_equal(strncmp(text, "<!DOCTYPE html>\n", 16), 0);
    for (const char *s = text + 15; *s;) {
        if (*s == '&') {
            const char *end = strchr(s, ';');
            assert_true(end && end - s <= 6);
        }
        if (*s == '>') fail_msg("a bare >: %.40s", s);
        if (*s != '<') {
            s++;
            continue;
        }
        const bool ends = s[1] == '/';
        s += ends ? 2 : 1;
        const size_t len = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789");
        char name[NAME_MAX_BYTES];
        assert_true(len > 0 && len < sizeof name);
        memcpy(name, s, len);
        name[len] = '\0';
        p->tags++;
        assert_string_not_equal(name, "script");
        assert_string_not_equal(name, "img");
        assert_string_not_equal(name, "iframe");
        if (ends) {
            if (p->depth == 0 || strcmp(p->open[p->depth - 1], name) != 0)
                fail_msg("</%s> ends <%s>", name, p->depth ? p->open[p->depth - 1] : "nothing");
            p->depth--;
            assert_true(s[len] == '>');
            s += len + 1;
            continue;
        }
        bool closed;
        s = attributes(p, s + len, &closed);
        if (strcmp(name, "style") == 0) { /* not markup */
            s = strstr(s, "</style>");
            assert_non_null(s);
            s += 8;
        } else if (!closed && !is_void(name)) {
            assert_true(p->depth < DEPTH_MAX);
            memcpy(p->open[p->depth++], name, sizeof name);
        }
    }
    assert_int_equal(p->depth, 0);
    for (size_t i = 0; i < p->links_n; i++) {
        bool found = false;
        for (size_t k = 0; k < p->ids_n; k++) found |= strcmp(p->link[i], p->id[k]) == 0;
        if (!found) fail_msg("#%s leads nowhere", p->link[i]);
    }
    assert_null(strstr(text, "url("));
    assert_null(strstr(text, "@import"));
}

/* -- pages -- */

static char *read_all(const char *path)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    assert_int_equal(fclose(f), 0);
    return text;
}

struct made {
    enum err_code code;
    struct err e;
    char *text;
    struct page page;
};

static struct made make(const char *const *args, size_t n)
{
    struct made m = {.code = ERR_OK};
    struct arena *a = arena_open();
    char dir[SCRATCH_MAX], path[SCRATCH_FILE_MAX], report[] = "report", output[] = "-o";
    char *argv[32] = {report};
    (void)snprintf(path, sizeof path, "%s/page.html", scratch_dir(dir));
    for (size_t i = 0; i < n; i++) {
        argv[i + 1] = arena_strndup(a, args[i], strlen(args[i]));
        assert_non_null(argv[i + 1]);
    }
    argv[n + 1] = output;
    argv[n + 2] = path;
    m.code = command_report.run(a, &command_report, (int)n + 3, argv, &m.e);
    if (m.code == ERR_OK || m.code == ERR_NO) {
        m.text = read_all(path);
        read_page(m.text, &m.page);
    }
    scratch_remove(dir);
    arena_close(a);
    return m;
}

static void has(const struct made *m, const char *words)
{
    if (!strstr(m->text, words)) fail_msg("no '%s'", words);
}

#define MAKE(...)                                                                                                      \
    make((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void test_page(void **state)
{
    (void)state;
    struct made m = MAKE("-m", "llama-3.1-8b", "-g", "h100-sxm", "--max-gpus", "5", "--rate", "7", "--prompt", "701",
                         "--generate", "131", "--ttft", "p95=1s", "--tpot", "p90=30ms", "--max-num-seqs", "64",
                         "--max-num-batched-tokens", "1024");
    assert_int_equal(m.code, ERR_OK);
    static const char *const IDS[] = {"answer",   "figures",  "command",    "memory",   "others",      "fail",
                                      "frontier", "cost",     "simulation", "inputs",   "conventions", "formulas",
                                      "method",   "c-tpot-t", "c-cost-t",   "c-batch-d"};
    for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
        char id[48];
        (void)snprintf(id, sizeof id, "id=\"%s\"", IDS[i]);
        has(&m, id);
    }
    has(&m, "vllm serve meta-llama/Llama-3.1-8B-Instruct ");
    has(&m, "keeps its promises");
    has(&m, "2*B*D*(N*H + 2*K*H)"); /* a product of the decode step */
    has(&m, "prefers-color-scheme:dark");
    has(&m, "size:A4");
    has(&m, "4096 requests through a scheduler");
    assert_null(strstr(m.text, "NOT A PROMISE"));
    assert_null(strstr(m.text, "nan"));
    free(m.text);
}

/* Nothing else than the seed of the draw and the options makes the page. */
static void test_page_repeats(void **state)
{
    (void)state;
#define ASKED                                                                                                          \
    "-m", "qwen3-8b", "-g", "l40s", "--max-gpus", "4", "--rate", "3", "--ttft", "2s", "--seed", "17", "--weights", "fp8"
    struct made m = MAKE(ASKED), n = MAKE(ASKED);
    assert_int_equal(m.code, ERR_OK);
    assert_string_equal(m.text, n.text);
    free(m.text);
    free(n.text);
}

static void test_floors_are_marked(void **state)
{
    (void)state;
    struct made m = MAKE("-m", "llama-3.1-8b", "-g", "h100-sxm", "--max-gpus", "2", "--rate", "3", "--tpot", "30ms",
                         "--fidelity", "roofline");
    assert_int_equal(m.code, ERR_OK);
    has(&m, "NOT A PROMISE");
    free(m.text);
}

/* No plan: the page says why, and is there. */
static void test_no_plan(void **state)
{
    (void)state;
    struct made m = MAKE("-m", "llama-3.1-8b", "-g", "h100-sxm", "--max-gpus", "2", "--rate", "3", "--tpot", "1ms");
    assert_int_equal(m.code, ERR_NO);
    has(&m, "is forbidden by memory bandwidth");
    free(m.text);
    m = MAKE("-m", "llama-3.1-8b", "-g", "h100-sxm", "--max-gpus", "1", "--rate", "3", "--tpot", "4ms");
    assert_int_equal(m.code, ERR_NO);
    has(&m, "id=\"fail\"");
    free(m.text);
}

static void test_other_aims(void **state)
{
    (void)state;
    struct made m =
        MAKE("-m", "llama-3.1-8b", "-g", "h100-sxm", "--max-gpus", "4", "--job", "requests=1e5", "--deadline", "8h");
    assert_int_equal(m.code, ERR_OK);
    has(&m, "The job is done in");
    has(&m, "a job has no rate");
    free(m.text);
    m = MAKE("-m", "llama-3.1-8b", "-g", "h100-sxm", "--max-gpus", "4", "--tokens-per-day", "1e8");
    assert_int_equal(m.code, ERR_OK);
    has(&m, "no latency is promised");
    free(m.text);
}

/* A file's name is its model's name. */
static void test_hostile_names(void **state)
{
    (void)state;
    static const char NAME[] = "<script>alert(1)<!--'\"&amp;\xe2\x80\xae";
    static const char CONFIG[] = "{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 3, "
                                 "\"num_attention_heads\": 8, \"num_key_value_heads\": 2, \"intermediate_size\": 1408, "
                                 "\"vocab_size\": 32000, \"max_position_embeddings\": 4096, \"torch_dtype\": "
                                 "\"bfloat16\"}";
    char dir[SCRATCH_MAX], path[SCRATCH_FILE_MAX];
    (void)snprintf(path, sizeof path, "%s/%s.json", scratch_dir(dir), NAME);
    FILE *f = fopen(path, "wb");
    if (!f) skip();
    assert_true(fputs(CONFIG, f) >= 0);
    assert_int_equal(fclose(f), 0);
    struct made m = MAKE("-m", path, "-g", "h100-sxm", "--max-gpus", "2", "--rate", "3", "--tpot", "30ms");
    scratch_remove(dir);
    assert_int_equal(m.code, ERR_OK);
    assert_null(strstr(m.text, "<script"));
    assert_null(strstr(m.text, "<!--"));
    assert_null(strstr(m.text, "\xe2\x80\xae"));
    has(&m, "&lt;script&gt;alert(1)&lt;!--&#39;&quot;&amp;amp;?");
    free(m.text);
}

static void test_text(void **state)
{
    (void)state;
    struct arena *a = arena_open();
    struct out *o;
    assert_int_equal(out_memory(a, &o, NULL), ERR_OK);
    report_text(o, "a<b>&\"c'\x1b[0m\xff\xc3\xa9\n");
    report_put(o, "%s%d", "</td>", 17);
    report_text(o, NULL);
    assert_string_equal(out_text(o, NULL), "a&lt;b&gt;&amp;&quot;c&#39;?[0m?\xc3\xa9\n&lt;/td&gt;17");
    arena_close(a);
}

/* -- charts -- */

static void test_ticks(void **state)
{
    (void)state;
    double t[CHART_TICKS_MAX];
    assert_int_equal(chart_ticks(0, 23, 5, false, t), 5); /* 0 5 10 15 20 */
    assert_true(t[0] == 0 && t[4] == 20);
    assert_int_equal(chart_ticks(0, .0071, 6, false, t), 4); /* 0 .002 .004 .006 */
    assert_true(fabs(t[3] - .006) < 1e-12);
    assert_int_equal(chart_ticks(13, 170, 5, true, t), 3); /* 20 50 100 */
    assert_true(t[0] == 20 && t[2] == 100);
    assert_int_equal(chart_ticks(7, 23e3, 5, true, t), 4); /* 10 100 1000 10000 */
    assert_true(t[0] == 10 && t[3] == 1e4);
    assert_int_equal(chart_ticks(22, 43, 5, true, t), 4); /* 25 30 35 40 of a decade's part: by fives */
    assert_true(t[0] == 25 && t[3] == 40);
    for (double hi = 1e-7; hi < 1e9; hi *= 3.7) {
        const size_t n = chart_ticks(0, hi, 7, false, t);
        assert_true(n >= 3 && n <= 9 && t[n - 1] <= hi * (1 + 1e-9));
    }
}

static void test_range(void **state)
{
    (void)state;
    const double none = (double)NAN, x[] = {3, none, 17}, y[] = {5, 7, 11};
    struct chart c = {.n = 1, .x_limit = none, .x_mark = none, .y_mark = none, .y_most = none};
    struct chart_range r;
    c.series[0] = (struct chart_series){"one", x, y, NULL, 3};
    assert_true(chart_range_of(&c, &r));
    assert_true(r.x0 == 0 && r.x1 > 17 && r.x1 < 19 && r.y0 == 0 && r.y1 > 11 && r.y1 < 13);
    c.x_limit = 40;
    c.log_x = true;
    assert_true(chart_range_of(&c, &r) && r.x0 < 3 && r.x0 > 2 && r.x1 > 40 && r.x1 < 53);
    c.series[0].n = 0;
    assert_false(chart_range_of(&c, &r));
}

/* Points stand where they belong: of two points the line goes from the left axis' end to the right one's. */
static void test_svg(void **state)
{
    (void)state;
    const double none = (double)NAN, x[] = {0, 50, 100}, y[] = {0, 25, 100};
    const bool kept[] = {true, true, false};
    struct arena *a = arena_open();
    struct out *o;
    struct chart c = {.title = "a < b",
                      .x_title = "x & y",
                      .y_title = "u",
                      .n = 1,
                      .x_limit = 50,
                      .x_mark = none,
                      .y_mark = 50,
                      .y_mark_name = "\"",
                      .y_most = 100};
    c.series[0] = (struct chart_series){"one", x, y, kept, 3};
    assert_int_equal(out_memory(a, &o, NULL), ERR_OK);
    report_chart(o, "c-one", &c);
    const char *s = out_text(o, NULL);
    /* x: 64 + x/103*558; y: 252 - y/100*228 */
    assert_non_null(
        strstr(s, "class=\"late s1\" fill=\"none\" stroke=\"#0072b2\" d=\"M64.0 252.0L334.9 195.0L605.7 24.0\""));
    assert_non_null(strstr(s, "class=\"line s1\" fill=\"none\" stroke=\"#0072b2\" d=\"M64.0 252.0L334.9 195.0\""));
    assert_non_null(strstr(s, "<rect class=\"ok\" fill=\"#e7f0e2\" x=\"64.0\" y=\"24.0\" width=\"270.9\""));
    assert_non_null(strstr(s, "a &lt; b"));
    assert_non_null(strstr(s, "x &amp; y"));
    arena_close(a);
}

/* Pieces of time of 10 s in 300: means of steps weighted by how long they last there, and the longest wait of those who
 * came in each; who was never begun has none. */
static void test_bins(void **state)
{
    struct simulate_record x[] = {{.arrival_s = 0, .start_s = .002},
                                  {.arrival_s = .01, .start_s = .05},
                                  {.arrival_s = .02, .start_s = .021},
                                  {.arrival_s = 5.01, .start_s = 5.3},
                                  {.arrival_s = 9.999, .start_s = (double)NAN}};
    const struct simulate_result r = {.record = x, .n = 5, .span_s = 10};
    const struct simulate_step step[] = {{.start_s = 0, .end_s = 5, .running = 4, .blocks = 30},
                                         {.start_s = 5.0 + 1. / 60, .end_s = 10, .running = 10, .blocks = 60}};
    struct simulate_bins b;
    simulate_bins_of(step, 2, &r, 120, &b);
    assert_true(fabs(b.batch[0] - 4) < 1e-9 && fabs(b.batch[149] - 4) < 1e-9);
    assert_true(fabs(b.batch[150] - 5) < 1e-6); /* half of it idle */
    assert_true(fabs(b.batch[299] - 10) < 1e-9 && fabs(b.blocks_percent[299] - 50) < 1e-9);
    assert_true(fabs(b.wait_s[0] - .04) < 1e-12); /* the longest, not the last nor the mean */
    assert_true(b.wait_s[1] == 0 && fabs(b.wait_s[150] - .29) < 1e-12 && b.wait_s[299] == 0);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),    cmocka_unit_test(test_page_repeats), cmocka_unit_test(test_floors_are_marked),
        cmocka_unit_test(test_no_plan), cmocka_unit_test(test_other_aims),   cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_text),    cmocka_unit_test(test_ticks),        cmocka_unit_test(test_range),
        cmocka_unit_test(test_svg),     cmocka_unit_test(test_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
