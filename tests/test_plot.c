#define _GNU_SOURCE /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calc/cli/plot.h"
#include "calc/cli/plot_canvas.h"
#include "calc/cli/plot_csv.h"
#include "calc/cli/plot_label.h"
#include "calc/cli/plot_names.h"
#include "calc/cli/plot_rows.h"
#include "tests/scratch.h"

/* A private folder: pictures in it, and TMPDIR below it. */
struct room {
    struct arena *arena;
    char dir[SCRATCH_MAX], tmp[SCRATCH_FILE_MAX], path[SCRATCH_FILE_MAX];
};

static int enter(void **state)
{
    struct room *r = calloc(1, sizeof *r);
    if (!r) return 1;
    (void)snprintf(r->tmp, sizeof r->tmp, "%s/tmp", scratch_dir(r->dir));
    (void)setenv("TMPDIR", r->tmp, 1);
    r->arena = arena_open();
    *state = r;
    return mkdir(r->tmp, 0700) != 0 || !r->arena;
}

static size_t count_files(const char *dir, int clear)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    if (!d) return 999;
    for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        n++;
        if (clear) (void)unlinkat(dirfd(d), entry->d_name, 0);
    }
    (void)closedir(d);
    return n;
}

static int leave(void **state)
{
    struct room *r = *state;
    arena_close(r->arena);
    scratch_remove(r->dir);
    free(r);
    return 0;
}

static const char *in_room(struct room *r, const char *name)
{
    (void)snprintf(r->path, sizeof r->path, "%s/%s", r->dir, name);
    return r->path;
}

static char *read_all(struct room *r, const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *text = arena_alloc(r->arena, 1 << 20);
    assert_non_null(text);
    *n = fread(text, 1, (1 << 20) - 1, f);
    (void)fclose(f);
    return text;
}

static void write_all(const char *path, const char *text, mode_t mode)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static int has_gnuplot(void)
{
    const char *path = getenv("PATH");
    char name[512];
    for (const char *p = path ? path : ""; *p;) {
        const size_t n = strcspn(p, ":");
        (void)snprintf(name, sizeof name, "%.*s/gnuplot", (int)n, p);
        if (access(name, X_OK) == 0) return 1;
        p += n + (p[n] == ':');
    }
    return 0;
}

/* -- data: Llama-2-13B at batch 64 on an H100, to the digits that a picture needs -- */

static const char ceilings[] = "dtype,peak_flops_per_s,bandwidth_bytes_per_s\n"
                               "bf16,989e12,3.35e12\nfp16,989e12,3.35e12\nfp8,1979e12,3.35e12\nfp32,67e12,3.35e12\n";

/* One string goes to model, hardware and an operator's name. */
static const char *op_rows(struct arena *a, const char *text)
{
    return arena_printf(a,
                        "share_frac,bound_by,model,hardware,phase,op,flops,bytes,intensity_flops_per_byte,time_s\n"
                        "0.32,compute,%s,%s,prefill,q_proj,1.37e14,5.5e10,2482.4,0.139\n"
                        "0.32,compute,%s,%s,prefill,k_proj,1.37e14,5.5e10,2482.4,0.139\n"
                        "0.36,compute,%s,%s,prefill,%s,3e13,1.2e11,255.9,0.036\n"
                        "0.33,memory,%s,%s,decode,q_proj,1.34e11,2.15e9,62.4,0.00064\n"
                        "0.67,memory,%s,%s,decode,attention,5.4e10,5.4e10,1.0,0.0161\n"
                        ",memory,%s,%s,decode,embed,0,655360,,1.9e-7\n",
                        text, text, text, text, text, text, text, text, text, text, text, text, text);
}

static const char *sweep_rows(struct arena *a, const char *text)
{
    return arena_printf(
        a,
        "model,hardware,batch,context,phase,fidelity,weight_bytes,kv_bytes,state_bytes,activation_bytes,memory_bytes,"
        "capacity_bytes,fits,prefill_s,decode_step_s,throughput_tok_per_s\n"
        "%s,%s,1,2048,decode,roofline,26.03e9,1.678e9,0,2.02e8,27.91e9,79.2e9,yes,,0.00837,119.5\n"
        "%s,%s,7,2048,decode,roofline,26.03e9,11.74e9,0,2.14e8,37.99e9,79.2e9,yes,,0.01138,615.1\n"
        "%s,%s,17,2048,decode,roofline,26.03e9,28.52e9,0,2.34e8,54.79e9,79.2e9,yes,,0.01638,1037.9\n"
        "%s,%s,61,2048,decode,roofline,26.03e9,102.3e9,0,3.22e8,128.7e9,79.2e9,no,,,\n",
        text, text, text, text, text, text, text, text);
}

static struct plot_request request(struct room *r, const char *kind, const char *text, const char *output)
{
    const int roofline = strcmp(kind, "roofline") == 0;
    return (struct plot_request){.kind = kind,
                                 .csv = roofline ? op_rows(r->arena, text) : sweep_rows(r->arena, text),
                                 .ceilings_csv = ceilings,
                                 .title = text,
                                 .output = output};
}

static const char *const kinds[] = {"roofline", "batch", "memory"};

static void draw(struct room *r, const struct plot_request *q)
{
    struct err e = {.code = ERR_OK};
    if (plot_render(r->arena, q, &e) != ERR_OK) fail_msg("%s %s: %s", q->kind, q->output, e.text);
    assert_int_equal(count_files(r->tmp, 0), 0);
}

/* -- csv, names, rows -- */

static void test_csv(void **state)
{
    struct room *r = *state;
    struct plot_csv csv;
    struct err e = {.code = ERR_OK};
    const char *text = "a,\"b,\"\"c\"\"\",d\r\n'=1+1,\"x\ny\",13.5\n\n2,3\n";
    assert_int_equal(plot_csv_parse(r->arena, "t", text, &csv, &e), ERR_OK);
    assert_int_equal(csv.n_columns, 3);
    assert_int_equal(csv.n_rows, 2);
    assert_string_equal(plot_csv_text(&csv, 0, "a"), "=1+1");
    assert_string_equal(plot_csv_text(&csv, 0, "b,\"c\""), "x\ny");
    assert_true(fabs(plot_csv_number(&csv, 0, "d") - 13.5) < 1e-12);
    assert_string_equal(plot_csv_text(&csv, 1, "d"), "");
    assert_true(isnan(plot_csv_number(&csv, 1, "d")));
    assert_true(isnan(plot_csv_number(&csv, 0, "a")));
    assert_string_equal(plot_csv_text(&csv, 0, "none"), "");
    assert_int_equal(plot_csv_parse(r->arena, "t", "a,b\n1,2\n1,2,3\n", &csv, &e), ERR_INPUT);
    assert_string_equal(e.text, "t: line 3 has more cells than the header, which has 2");
    assert_int_equal(plot_csv_parse(r->arena, "t", "a\n\"1\n", &csv, &e), ERR_INPUT);
    assert_int_equal(plot_csv_parse(r->arena, "t", "a\n\"1\"2\n", &csv, &e), ERR_INPUT);
    assert_int_equal(plot_csv_parse(r->arena, "t", "\n", &csv, &e), ERR_INPUT);
    assert_int_equal(plot_csv_parse(r->arena, "t", NULL, &csv, &e), ERR_INPUT);
}

static void test_names(void **state)
{
    struct room *r = *state;
    const char *const qkv[] = {"q_proj", "k_proj", "v_proj", "o_proj", "lm_head", "q_proj"};
    assert_string_equal(plot_names_join(r->arena, qkv, 6, 40), "q/k/v/o_proj, lm_head");
    assert_string_equal(plot_names_join(r->arena, qkv, 6, 15), "q/k/v/o_proj +1");
    const char *const paths[] = {"dense.attn.q_a_proj", "moe.attn.q_a_proj"};
    assert_string_equal(plot_names_join(r->arena, paths, 2, 40), "dense/moe.attn.q_a_proj");
    const char *const leaves[] = {"mlp.gate_up", "mlp.down", "norm"};
    assert_string_equal(plot_names_join(r->arena, leaves, 3, 40), "mlp.gate_up/down, norm");
    const char *const odd[] = {"", "_", ".", "a.", "_x"};
    assert_non_null(plot_names_join(r->arena, odd, 5, 40));
}

static void test_rows(void **state)
{
    struct room *r = *state;
    struct plot_csv csv;
    struct err e = {.code = ERR_OK};
    const char *text =
        "model,hardware,batch,fits,memory_bytes,capacity_bytes\nm,h1,3,,7,11\nm,h2,3,no,7,11\nm,h2,3,,,11\n"
        "m,h2,3,,13,11\n";
    assert_int_equal(plot_csv_parse(r->arena, "t", text, &csv, &e), ERR_OK);
    struct plot_rows rows = plot_rows_look(&csv);
    plot_rows_axis(&rows, "batch");
    const char *out = NULL;
    assert_int_equal(plot_rows_shared(r->arena, &rows, &out, &e), ERR_OK);
    assert_string_equal(out, "m, batch 3");
    assert_int_equal(plot_rows_name(r->arena, &rows, 1, &out, &e), ERR_OK);
    assert_string_equal(out, "h2");
    assert_true(plot_rows_fit(&csv, 0) > 0.5);
    assert_true(plot_rows_fit(&csv, 1) < 0.5);
    assert_true(isnan(plot_rows_fit(&csv, 2)));
    assert_true(plot_rows_fit(&csv, 3) < 0.5);
}

/* -- labels -- */

static void test_labels_never_overlap(void **state)
{
    (void)state;
    enum { N = 61 };
    struct plot_label labels[N];
    struct plot_box marks[N];
    const struct plot_box frame = {101, 53, 877, 521}, text = {607, 401, 777, 415}, line = {101, 53, 641, 421};
    uint32_t random = 2463534242u;
    for (size_t i = 0; i < N; i++) {
        double v[4];
        for (size_t j = 0; j < 4; j++) {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            v[j] = (double)random / 4294967296.0;
        }
        /* most along the line, as points on a roof are */
        const double x = 151 + 467 * v[0], y = 53 + (x - 101) * 368 / 540 + (i % 5 ? 0 : 80 * (v[1] - 0.5));
        labels[i] = (struct plot_label){.x = x, .y = y, .width = 31 + 127 * v[2], .height = 14, .weight = v[3]};
        marks[i] = (struct plot_box){x - 6, y - 6, x + 6, y + 6};
    }
    const struct plot_scene scene = {
        .frame = frame, .boxes = &text, .n_boxes = 1, .marks = marks, .n_marks = N, .strokes = &line, .n_strokes = 1};
    plot_label_place(&scene, labels, N);
    size_t shown = 0;
    for (size_t i = 0; i < N; i++) {
        if (!labels[i].shown) continue;
        shown++;
        const struct plot_box *b = &labels[i].box;
        assert_true(b->x0 >= frame.x0 && b->x1 <= frame.x1 && b->y0 >= frame.y0 && b->y1 <= frame.y1);
        assert_true(fabs(b->x1 - b->x0 - labels[i].width) < 1e-9);
        assert_false(plot_box_overlap(b, &text));
        for (size_t j = 0; j < i; j++)
            if (labels[j].shown) assert_false(plot_box_overlap(b, &labels[j].box));
    }
    assert_true(shown >= N - 6);
}

static void test_lone_label_is_clear(void **state)
{
    (void)state;
    const struct plot_box mark = {394, 294, 406, 306}, line = {100, 100, 700, 500};
    struct plot_label l = {.x = 400, .y = 300, .width = 83, .height = 14};
    const struct plot_scene scene = {
        .frame = {100, 50, 800, 550}, .marks = &mark, .n_marks = 1, .strokes = &line, .n_strokes = 1};
    plot_label_place(&scene, &l, 1);
    assert_true(l.shown && !l.leader);
    assert_false(plot_box_overlap(&l.box, &mark));
    assert_false(plot_box_stroked(&l.box, &line));
    const struct plot_box crossed = {399, 299, 401, 301}, beside = {399, 311, 401, 320};
    assert_true(plot_box_stroked(&crossed, &line));
    assert_false(plot_box_stroked(&beside, &line));
}

/* -- pictures -- */

static void test_all_forms(void **state)
{
    struct room *r = *state;
    if (!has_gnuplot()) skip();
    static const struct {
        const char *name, *start;
    } forms[] = {{"x.png", "\x89PNG"}, {"x.svg", "<?xml"}, {"x.pdf", "%PDF"}, {"UPPER.SVG", "<?xml"}};
    for (size_t k = 0; k < 3; k++)
        for (size_t f = 0; f < 4; f++) {
            const struct plot_request q = request(r, kinds[k], "Llama-2-13b", in_room(r, forms[f].name));
            draw(r, &q);
            size_t n = 0;
            const char *text = read_all(r, q.output, &n);
            assert_non_null(text);
            assert_true(n > 3000);
            assert_memory_equal(text, forms[f].start, strlen(forms[f].start));
        }
    assert_int_equal(count_files(r->dir, 0), 4 + 1);
}

static void test_says_its_numbers(void **state)
{
    struct room *r = *state;
    if (!has_gnuplot()) skip();
    static const char *const said[3][6] = {
        {"ridge 295 flops/byte", "989 TFLOP/s", "q/k_proj 64%", "bf16/fp16", "prefill", "memory 3.35 TB/s"},
        {"decode step time, ms (roofline)", "does not fit from batch 61 (128.7 GB of 79.2 GB)",
         "aggregate throughput, tokens/s (roofline)", "m, h, context 2048, roofline", "batch (sequences)", ">17<"},
        {"memory, GB", "79.2 GB usable", "does not fit from batch 61", "KV cache", "54.8", "activations"}};
    for (size_t k = 0; k < 3; k++) {
        struct plot_request q = request(r, kinds[k], "m", in_room(r, "x.svg"));
        if (k == 1) { /* model and hardware of their own */
            char *csv = arena_strndup(r->arena, q.csv, strlen(q.csv));
            for (char *at = csv; (at = strstr(at, "\nm,m,")) != NULL; at++) at[3] = 'h';
            q.csv = csv;
        }
        draw(r, &q);
        size_t n = 0;
        const char *text = read_all(r, q.output, &n);
        assert_non_null(text);
        for (size_t i = 0; i < 6; i++)
            if (!strstr(text, said[k][i])) {
                char spaced[64];
                (void)snprintf(spaced, sizeof spaced, "> %s", said[k][i] + 1); /* tics have a blank before them */
                if (!strstr(text, spaced)) fail_msg("%s does not say %s", kinds[k], said[k][i]);
            }
        assert_null(strstr(text, "state<"));
    }
}

/* The picture as characters, through standard output. */
static void test_terminal(void **state)
{
    struct room *r = *state;
    if (!has_gnuplot()) skip();
    for (size_t k = 0; k < 3; k++) {
        const struct plot_request q = request(r, kinds[k], "a title", "-");
        const int kept = dup(STDOUT_FILENO), fd = open(in_room(r, "x.txt"), O_RDWR | O_CREAT | O_TRUNC, 0600);
        (void)fflush(stdout);
        (void)dup2(fd, STDOUT_FILENO);
        struct err e = {.code = ERR_OK};
        const enum err_code code = plot_render(r->arena, &q, &e);
        (void)dup2(kept, STDOUT_FILENO);
        (void)close(kept);
        (void)close(fd);
        assert_int_equal(code, ERR_OK);
        size_t n = 0, lines = 0;
        const char *text = read_all(r, r->path, &n);
        assert_non_null(text);
        assert_non_null(strstr(text, "a title"));
        assert_non_null(strstr(text, k == 0 ? "ridge 295" : "does not fit from batch 61"));
        for (const char *at = text; *at; lines++) {
            const size_t len = strcspn(at, "\n\f");
            assert_true(len <= 79);
            at += len + 1;
        }
        assert_true(lines >= 23 && lines <= 26);
    }
}

static void test_edges(void **state)
{
    struct room *r = *state;
    if (!has_gnuplot()) skip();
    struct plot_request q = {.kind = "batch", .output = in_room(r, "x.png"), .title = ""};
    q.csv = "batch,decode_step_s,throughput_tok_per_s\n17,0.013,1307\n";
    draw(r, &q);
    q.csv = "batch,fits,memory_bytes,capacity_bytes\n17,no,31e9,23e9\n23,no,37e9,23e9\n";
    draw(r, &q);
    q.kind = "memory";
    draw(r, &q);
    q.csv = "context,weight_bytes,kv_bytes\n4096,13e9,7e9\n";
    draw(r, &q);
    q.kind = "roofline";
    q.csv = "op,flops,bytes\nlm_head,7e9,13e6\n";
    q.ceilings_csv = "dtype,peak_flops_per_s,bandwidth_bytes_per_s\nf32,7e11,31e9\n";
    draw(r, &q);
}

static void test_twelve_series(void **state)
{
    struct room *r = *state;
    struct plot_request q = {.kind = "batch", .output = in_room(r, "x.png")};
    const char *csv = "hardware,batch,decode_step_s,throughput_tok_per_s\n";
    for (int i = 0; i < 13; i++) {
        q.csv = csv;
        struct err e = {.code = ERR_OK};
        csv = arena_printf(r->arena, "%sa card with a rather long name %d,7,0.0%d,%d\n", csv, i, i + 11, 101 + i);
        if (i == 12 && has_gnuplot()) draw(r, &q);
        q.csv = csv;
        if (i < 12) continue;
        assert_int_equal(plot_render(r->arena, &q, &e), ERR_USAGE);
        assert_non_null(strstr(e.text, "12 series"));
    }
}

/* -- untrusted text -- */

static void test_hostile_text_is_inert(void **state)
{
    struct room *r = *state;
    if (!has_gnuplot()) skip();
    static const char *const hostile[] = {"`touch pwned`",
                                          "\"`touch pwned`\"",
                                          "'; system('touch pwned'); '",
                                          "\"\"\"; system(\"\"touch pwned\"\"); \"\"\"",
                                          "</text><script>alert(1)</script>",
                                          "$(touch pwned) @ARG1 {/=99 x} a_b^c %s %d",
                                          "\\n\\140touch pwned\\140 \\",
                                          "\"tab\there\nand\x01\x1b[31m line\"",
                                          "&lt; &#60; &undefined; ]]>",
                                          "\xff\xfe\xc0\x80 \xe2\x80\xae ok",
                                          "#",
                                          "NaN",
                                          "\xe6\xa8\xa1\xe5\x9e\x8b",
                                          "!touch pwned",
                                          "= 1; !touch pwned"};
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(r->dir), 0);
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++)
        for (size_t k = 0; k < 3; k++)
            for (size_t f = 0; f < 3; f++) {
                static const char *const names[] = {"x.png", "x.svg", "x.pdf"};
                const struct plot_request q = request(r, kinds[k], hostile[i], in_room(r, names[f]));
                draw(r, &q);
                assert_int_not_equal(access("pwned", F_OK), 0);
                if (f != 1) continue;
                size_t n = 0;
                const char *text = read_all(r, q.output, &n);
                assert_non_null(text);
                assert_null(strstr(text, "<script"));
                assert_null(strstr(text, "&undefined;"));
                assert_null(memchr(text, 0x1b, n));
                assert_null(memchr(text, 0x01, n));
                assert_null(memchr(text, 0xff, n));
            }
    assert_int_equal(chdir(here), 0);
    assert_int_equal(count_files(r->dir, 0), 3 + 1);
}

/* -- refusals and failures -- */

static void refuses(struct room *r, const struct plot_request *q, enum err_code code, const char *sentence)
{
    struct err e = {.code = ERR_OK};
    assert_int_equal(plot_render(r->arena, q, &e), code);
    if (!strstr(e.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", e.text, sentence);
    assert_int_equal(count_files(r->tmp, 0), 0);
}

static void test_refusals(void **state)
{
    struct room *r = *state;
    struct err e = {.code = ERR_OK};
    assert_int_equal(plot_check("batch", "x.svg", &e), ERR_OK);
    assert_int_equal(plot_check("batch", "-", &e), ERR_OK);
    static const char *const endings[] = {"x.jpg", "x", "", ".", "png", "x.png/y", "x.svgz"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        assert_int_equal(plot_check("batch", endings[i], &e), ERR_USAGE);
        assert_non_null(strstr(e.text, ".png, .svg or .pdf, or -"));
    }
    struct plot_request q = request(r, "roofline", "m", in_room(r, "x.png"));
    q.kind = "pie";
    refuses(r, &q, ERR_USAGE, "roofline, batch and memory");
    q.kind = "roofline";
    q.ceilings_csv = NULL;
    refuses(r, &q, ERR_INPUT, "ceilings");
    q.ceilings_csv = "dtype,peak_flops_per_s\nbf16,7e12\n";
    refuses(r, &q, ERR_INPUT, "no dtype with a peak and a bandwidth");
    q.ceilings_csv = ceilings;
    q.csv = "model,op,flops,bytes\na,x,7,3\nb,x,7,3\n";
    refuses(r, &q, ERR_USAGE, "one model");
    q.csv = "model,flops\na,7\n";
    refuses(r, &q, ERR_INPUT, "no column \"op\"");
    q.csv = "op,flops,bytes\nx,0,3\ny,,3\nz,3,0\n";
    refuses(r, &q, ERR_INPUT, "no operator with flops");
    q.kind = "batch";
    refuses(r, &q, ERR_INPUT, "no column \"batch\"");
    q.kind = "memory";
    q.csv = "model,batch,weight_bytes\na,7,13\nb,7,13\n";
    refuses(r, &q, ERR_USAGE, "one model");
    q.csv = "dtype,batch,weight_bytes\na,7,13\nb,7,17\n";
    refuses(r, &q, ERR_USAGE, "one configuration");
    q.csv = "batch,weight_bytes\n7,\n";
    refuses(r, &q, ERR_INPUT, "no row with a batch and bytes");
    assert_int_equal(count_files(r->dir, 0), 1);
}

/* Run with a PATH of one folder that holds a gnuplot of our own (NULL: none). The file at q->output stays. */
static void fails_with(struct room *r, const char *gnuplot, const char *sentence)
{
    struct plot_request q = request(r, "batch", "m", arena_printf(r->arena, "%s/old.png", r->dir));
    write_all(q.output, "old", 0644);
    if (gnuplot) write_all(in_room(r, "gnuplot"), gnuplot, 0755);
    char *kept = arena_printf(r->arena, "%s", getenv("PATH"));
    (void)setenv("PATH", r->dir, 1);
    struct err e = {.code = ERR_OK};
    const enum err_code code = plot_render(r->arena, &q, &e);
    (void)setenv("PATH", kept, 1);
    assert_int_equal(code, ERR_IO);
    assert_string_equal(e.text, sentence);
    size_t n = 0;
    assert_string_equal(read_all(r, q.output, &n), "old");
    assert_int_equal(count_files(r->tmp, 0), 0);
    assert_int_equal(count_files(r->dir, 0), gnuplot ? 3 : 2);
}

static void test_gnuplot_absent(void **state)
{
    fails_with(*state, NULL, "gnuplot not found: install it (apt-get install gnuplot-nox) or leave out --plot");
}

static void test_gnuplot_failures(void **state)
{
    fails_with(*state,
               "#!/bin/sh\nprintf '\\nplot x\\n     ^\\n\"batch.gp\" line 7: \\033[1mno such thing\\n' >&2\nexit 1\n",
               "gnuplot: \"batch.gp\" line 7: ?[1mno such thing");
    fails_with(*state, "#!/bin/sh\necho first >picture; echo odd; exit 3\n", "gnuplot: odd");
    fails_with(*state, "#!/bin/sh\n: >picture\n", "gnuplot: no picture and no message, exit status 0");
    fails_with(*state, "#!/bin/sh\nkill -9 $$\n", "gnuplot: ended by signal 9");
}

static void test_gnuplot_is_told_only_files(void **state)
{
    struct room *r = *state;
    /* what it is given, and that it reads nothing from the terminal */
    write_all(in_room(r, "gnuplot"),
              "#!/bin/sh\necho \"$# $1 $2\" >picture\nread x && echo read >>picture\necho chatter\nexit 0\n", 0755);
    const struct plot_request q = request(r, "batch", "m", arena_printf(r->arena, "%s/x.png", r->dir));
    char *kept = arena_printf(r->arena, "%s", getenv("PATH"));
    (void)setenv("PATH", r->dir, 1);
    struct err e = {.code = ERR_OK};
    const enum err_code code = plot_render(r->arena, &q, &e);
    (void)setenv("PATH", kept, 1);
    assert_int_equal(code, ERR_OK);
    size_t n = 0;
    assert_string_equal(read_all(r, q.output, &n), "2 --default-settings settings.gp\n");
}

/* -- what a batch picture holds: its tables as gnuplot gets them, without gnuplot -- */

static char *tables(struct room *r, const char *kind, const char *csv)
{
    write_all(in_room(r, "gnuplot"), "#!/bin/sh\n/bin/cat *.tsv settings.gp >picture\n", 0755);
    const struct plot_request q = {
        .kind = kind, .csv = csv, .ceilings_csv = ceilings, .output = arena_printf(r->arena, "%s/x.png", r->dir)};
    char *kept = arena_printf(r->arena, "%s", getenv("PATH"));
    (void)setenv("PATH", r->dir, 1);
    struct err e = {.code = ERR_OK};
    const enum err_code code = plot_render(r->arena, &q, &e);
    (void)setenv("PATH", kept, 1);
    if (code != ERR_OK) fail_msg("%s: %s", kind, e.text);
    size_t n = 0;
    char *text = read_all(r, q.output, &n);
    assert_non_null(text);
    return text;
}

static void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("does not say \"%s\"", part);
}

/* The lines behind a header. */
static const char *table_rows(const char *text, const char *header)
{
    const char *at = strstr(text, header);
    assert_non_null(at);
    return at + strlen(header);
}

/* Bars of the strip that carry the marker of series i, counted by height; a bar's markers stand at its height. */
static size_t bars_of(const char *text, size_t i)
{
    const struct plot_canvas pixels = {.dumb = false};
    size_t n = 0;
    double m[4], b[5];
    const char *at = table_rows(text, "x\ty\tpoint\trgb\n");
    for (; sscanf(at, "%lf %lf %lf %lf", &m[0], &m[1], &m[2], &m[3]) == 4; at = strchr(at, '\n') + 1) {
        if ((int)m[2] != plot_series_point(&pixels, i + 1)) continue;
        const char *box = table_rows(text, "x0\ty0\tx1\ty1\tlook\n");
        for (; sscanf(box, "%lf %lf %lf %lf %lf", &b[0], &b[1], &b[2], &b[3], &b[4]) == 5; box = strchr(box, '\n') + 1)
            n += (int)b[4] == PLOT_UNFIT && m[1] > b[1] && m[1] < b[3];
    }
    return n;
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) n++;
    return n;
}

/* Whatever the order of the rows, a bar names the series of which some point does not fit, and those alone. */
static void test_unfit_bars_name_their_series(void **state)
{
    struct room *r = *state;
    enum { SERIES = 7, BATCHES = 5 };
    static const int batches[BATCHES] = {3, 7, 13, 29, 61};
    static const size_t fitting[][SERIES] = {{5, 3, 5, 5, 3, 1, 5},
                                             {3, 5, 5, 5, 5, 5, 5},
                                             {5, 5, 5, 5, 5, 5, 2},
                                             {0, 5, 4, 0, 5, 4, 1},
                                             {5, 5, 5, 5, 5, 5, 5}};
    for (size_t k = 0; k < sizeof fitting / sizeof fitting[0]; k++)
        for (size_t word = 0; word < 2; word++) {
            const char *csv = "model,batch,decode_step_s,throughput_tok_per_s,fits\n";
            for (size_t s = 0; s < SERIES; s++)
                for (size_t b = 0; b < BATCHES; b++) {
                    const int fits = b < fitting[k][s];
                    csv = arena_printf(r->arena, "%sm%zu,%d,%s,%s,%s\n", csv, s, batches[b], fits ? "0.0171" : "",
                                       fits ? "431" : "", word ? (fits ? "true" : "false") : (fits ? "yes" : "no"));
                }
            const char *text = tables(r, "batch", csv);
            size_t bars = 0;
            for (size_t s = 0; s < SERIES; s++) {
                assert_int_equal(bars_of(text, s), fitting[k][s] < BATCHES);
                bool first = fitting[k][s] < BATCHES;
                for (size_t o = 0; o < s; o++) first = first && fitting[k][o] != fitting[k][s];
                bars += first;
            }
            assert_int_equal(count(text, "does not fit"), bars);
        }
}

static void test_series_by_columns(void **state)
{
    struct room *r = *state;
    const char *text = tables(r, "batch",
                              "model,hardware,gpus,tp,replicas,weights,kv,batch,decode_step_s,throughput_tok_per_s\n"
                              "m,h100-sxm,1,1,1,bf16,fp8,3,0.017,176\nm,h100-sxm,1,1,1,bf16,fp8,7,0.019,368\n"
                              "m,h100-sxm,2,2,1,bf16,fp8,3,0.011,272\nm,h100-sxm,2,2,1,bf16,fp8,7,0.013,538\n"
                              "m,h100-sxm,8,8,1,bf16,fp8,3,0.005,600\nm,h100-sxm,8,8,1,bf16,fp8,7,0.007,997\n");
    assert_says(text, "\"h100-sxm\"\n");
    assert_says(text, "\"2 x h100-sxm TP 2\"\n");
    assert_says(text, "\"8 x h100-sxm TP 8\"\n");
    assert_says(text, "\"m, weights bf16, KV fp8\"\n");
    assert_says(text, "\"batch (sequences)\"\n");
    assert_says(text, "series_n = 3.0");
    text = tables(r, "batch",
                  "hardware,gpus,tp,weights,kv,batch,decode_step_s\nh,8,4,bf16,bf16,3,0.017\nh,8,4,bf16,bf16,7,0.019\n"
                  "h,8,4,int4-g128,bf16,3,0.013\nh,8,4,int4-g128,fp8,3,0.011\nh,8,4,int4-g128,fp8,7,0.012\n"
                  "h,8,2,int4-g128,fp8,7,0.023\n");
    assert_says(text, "\"8 x h TP 4, weights bf16, KV bf16\"\n");
    assert_says(text, "\"8 x h TP 4, weights int4-g128, KV bf16\"\n");
    assert_says(text, "\"8 x h TP 4, weights int4-g128, KV fp8\"\n");
    assert_says(text, "\"8 x h TP 2, weights int4-g128, KV fp8\"\n");
    assert_says(text, "\"batch (sequences per copy)\"\n");
    assert_says(text, "series_n = 4.0");
    /* names that are alike once shortened are still two series */
    const char *end = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", *csv = "model,batch,decode_step_s\n";
    csv = arena_printf(r->arena, "%s%s1%s,3,0.017\n%s2%s,3,0.019\n", csv, end, end, end, end);
    assert_says(tables(r, "batch", csv), "series_n = 2.0");
}

static void test_says_what_decides(void **state)
{
    struct room *r = *state;
    const char *what = "\"m, 8 x h100-sxm TP 4, weights int4-g128, KV fp8, batch 13, context 2039, roofline\"\n";
    const char *head = "model,hardware,gpus,tp,weights,kv,batch,context,fidelity";
    const char *row = "m,h100-sxm,8,4,int4-g128,fp8,13,2039,roofline";
    const char *csv = arena_printf(r->arena, "%s,decode_step_s\n%s,0.017\n", head, row);
    assert_says(tables(r, "batch", csv), what);
    csv = arena_printf(r->arena, "%s,weight_bytes,kv_bytes,capacity_bytes\n%s,13e9,7e9,79.2e9\n", head, row);
    const char *text = tables(r, "memory", csv);
    assert_says(text, what);
    assert_says(text, "\"memory per GPU, GB\"\n");
    assert_says(text, "\"79.2 GB usable each\"\n");
    assert_says(text, "\"8 x h100-sxm TP 4\"\n");
    csv = arena_printf(r->arena, "%s,op,flops,bytes\n%s,lm_head,7e11,13e6\n", head, row);
    text = tables(r, "roofline", csv);
    assert_says(text, what);
    assert_says(text, "\"attainable FLOP/s per GPU\"\n");
    csv = arena_printf(r->arena, "%sm,h100-sxm,8,4,int4-g128,bf16,13,2039,roofline,lm_head,7e11,13e6\n", csv);
    const struct plot_request q = {
        .kind = "roofline", .csv = csv, .ceilings_csv = ceilings, .output = in_room(r, "x.png")};
    refuses(r, &q, ERR_USAGE, "one KV format");
}

static void test_context_axis(void **state)
{
    struct room *r = *state;
    const char *head = "model,batch,context,prompt_tokens,generate_tokens,decode_step_s,throughput_tok_per_s,fits\n";
    const char *csv =
        arena_printf(r->arena,
                     "%sm,1,1021,1021,,0.017,59,yes\nm,1,4093,4093,,0.019,53,yes\n"
                     "m,1,131071,131071,,,,no\nn,1,4093,4093,,0.029,34,yes\nn,1,1021,1021,,0.023,43,yes\n",
                     head);
    const char *text = tables(r, "batch", csv);
    assert_says(text, "\"context (tokens)\"\n");
    assert_says(text, "\"batch 1\"\n");
    assert_says(text, "\"m\"\n");
    assert_says(text, "\"n\"\n");
    assert_says(text, "does not fit from context 131071");
    assert_says(text, "set xtics (1021, 4093, 131071)");
    assert_says(text, "series_n = 2.0");
    assert_int_equal(count(text, "\n1021\t"), 2);
    assert_int_equal(bars_of(text, 0), 1);
    assert_int_equal(bars_of(text, 1), 0);
    /* both vary: batch, and a series per context; a row of prefill changes nothing */
    csv = arena_printf(r->arena, "%sm,3,1021,,,0.017,59,\nm,7,1021,,,0.019,53,\nm,3,4093,,,0.023,53,\n", head);
    text = tables(r, "batch", csv);
    assert_says(text, "\"batch (sequences)\"\n");
    assert_says(text, "\"context 1021\"\n");
    assert_says(text, "\"context 4093\"\n");
    csv = arena_printf(r->arena, "%sm,3,1021,,,0.017,59,\nm,7,1021,,,0.019,53,\n", head);
    assert_says(tables(r, "batch", csv), "\"m, context 1021\"\n");
    csv = arena_printf(r->arena, "phase,batch,context,decode_step_s\nprefill,1,1021,\ndecode,3,1021,0.017\n"
                                 "decode,3,4093,0.019\n");
    text = tables(r, "batch", csv);
    assert_says(text, "\"context (tokens)\"\n");
    assert_says(text, "series_n = 1.0");
    /* two shares of one context are two points, unless the prompt is one for all */
    csv = arena_printf(
        r->arena, "%sm,3,1500,1000,500,0.017,59,\nm,3,1500,500,1000,0.019,53,\nm,3,1100,1000,100,0.016,61,\n", head);
    text = tables(r, "batch", csv);
    assert_says(text, "\"generating 500\"\n");
    assert_says(text, "series_n = 3.0");
    csv = arena_printf(r->arena, "%sm,3,1500,1000,500,0.017,59,\nm,3,1100,1000,100,0.016,61,\n", head);
    assert_says(tables(r, "batch", csv), "series_n = 1.0");
}

static void test_unwritable(void **state)
{
    struct room *r = *state;
    struct plot_request q = request(r, "batch", "m", in_room(r, "absent/x.png"));
    refuses(r, &q, ERR_IO, "cannot write");
    q.output = in_room(r, "x.png");
    (void)setenv("TMPDIR", "/nonexistent/tmp", 1);
    struct err e = {.code = ERR_OK};
    assert_int_equal(plot_render(r->arena, &q, &e), ERR_IO);
    assert_non_null(strstr(e.text, "/nonexistent/tmp: cannot make a temporary directory"));
    assert_int_equal(count_files(r->dir, 0), 1);
}

/* Killed in the middle: no picture, no folder, and the signal has its effect. */
static void test_interrupted(void **state)
{
    struct room *r = *state;
    write_all(in_room(r, "gnuplot"), "#!/bin/sh\necho part >picture\nexec /bin/sleep 31\n", 0755);
    const struct plot_request q = request(r, "batch", "m", arena_printf(r->arena, "%s/x.png", r->dir));
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)setenv("PATH", r->dir, 1);
        (void)signal(SIGTERM, SIG_DFL);
        struct err e = {.code = ERR_OK};
        _exit((int)plot_render(r->arena, &q, &e));
    }
    const struct timespec nap = {0, 20000000};
    for (int i = 0; i < 250 && count_files(r->tmp, 0) == 0; i++) (void)nanosleep(&nap, NULL);
    (void)nanosleep(&nap, NULL);
    assert_int_equal(kill(pid, SIGTERM), 0);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(count_files(r->tmp, 0), 0);
    assert_int_equal(count_files(r->dir, 0), 2); /* gnuplot and tmp */
}

int main(void)
{
#define IN_ROOM(test) cmocka_unit_test_setup_teardown(test, enter, leave)
    const struct CMUnitTest tests[] = {
        IN_ROOM(test_csv),
        IN_ROOM(test_names),
        IN_ROOM(test_rows),
        cmocka_unit_test(test_labels_never_overlap),
        cmocka_unit_test(test_lone_label_is_clear),
        IN_ROOM(test_all_forms),
        IN_ROOM(test_says_its_numbers),
        IN_ROOM(test_terminal),
        IN_ROOM(test_edges),
        IN_ROOM(test_twelve_series),
        IN_ROOM(test_hostile_text_is_inert),
        IN_ROOM(test_refusals),
        IN_ROOM(test_gnuplot_absent),
        IN_ROOM(test_gnuplot_failures),
        IN_ROOM(test_gnuplot_is_told_only_files),
        IN_ROOM(test_unfit_bars_name_their_series),
        IN_ROOM(test_series_by_columns),
        IN_ROOM(test_says_what_decides),
        IN_ROOM(test_context_axis),
        IN_ROOM(test_unwritable),
        IN_ROOM(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
