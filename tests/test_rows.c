/* Measured rows read from files: what is taken, what is passed over, what is refused and how it is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calc/fit/rows.h"
#include "tests/csv.h"
#include "tests/scratch.h"

struct place {
    struct arena *arena;
    struct hw hw;
    char dir[SCRATCH_MAX];
};

static int open_place(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct err e;
    if (!p || !(p->arena = arena_open())) return -1;
    (void)scratch_dir(p->dir);
    *state = p;
    return hw_load(p->arena, "h100-sxm", &p->hw, &e) == ERR_OK ? 0 : -1;
}

static int close_place(void **state)
{
    struct place *p = *state;
    arena_close(p->arena);
    free(p);
    return 0;
}

static const char *put(struct place *p, const char *name, const char *text, size_t n)
{
    const char *path = arena_printf(p->arena, "%s/%s", p->dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static struct rows take(struct place *p, const char *from, const char *framework, const char *kinds)
{
    const struct rows_filter filter = {.hw = &p->hw, .framework = framework, .kinds = kinds};
    struct rows rows = {.n = 0};
    struct err e = {.code = ERR_OK};
    if (rows_read(p->arena, from, &filter, &rows, &e) != ERR_OK) fail_msg("%s", e.text);
    return rows;
}

static void refuse_bytes(struct place *p, const char *text, size_t n, const char *sentence)
{
    const struct rows_filter filter = {.hw = &p->hw};
    struct rows rows = {.n = 1237};
    struct err e = {.code = ERR_OK};
    const char *path = put(p, "a.csv", text, n);
    assert_int_equal(rows_read(p->arena, path, &filter, &rows, &e), ERR_INPUT);
    if (!strstr(e.text, sentence) || !strstr(e.text, "a.csv")) fail_msg("\"%s\" does not say \"%s\"", e.text, sentence);
    assert_int_equal(rows.n, 1237);
    assert_int_not_equal(rows_read(p->arena, path, &filter, &rows, NULL), ERR_OK);
}

static void refuse(struct place *p, const char *text, const char *sentence)
{
    refuse_bytes(p, text, strlen(text), sentence);
}

#define GEMM "m,n,k,dtype,framework,version,kernel,latency_us\n"

static void test_a_row(void **state)
{
    struct place *p = *state;
    /* byte order mark, CRLF, quotes, a column nobody knows, blank lines */
    static const char text[] = "\xef\xbb\xbf"
                               "extra,k,\"n\",m,dtype,framework,version,latency_us\r\n\r\n"
                               "\"a,\"\"b\"\"\nc\",307,211,101,bf16,vllm,1.2,12.5\r\n"
                               ",311,223,103,fp8_block128,\"trtllm\",2.0,7e1";
    const struct rows rows = take(p, put(p, "a.csv", text, strlen(text)), NULL, NULL);
    assert_int_equal(rows.n, 2);
    const struct row *r = &rows.v[0];
    assert_int_equal(r->kernel.kind, KERNEL_GEMM);
    assert_true(r->kernel.m == 101 && r->kernel.n == 211 && r->kernel.k == 307 && r->kernel.groups == 1);
    assert_int_equal(r->line, 3);
    assert_true(fabs(r->time_s - 12.5e-6) < 1e-18);
    assert_string_equal(r->class_name, "gemm/bf16/vllm");
    assert_string_equal(r->version, "1.2");
    assert_string_equal(rows.v[1].class_name, "gemm/fp8_block128/trtllm");
    assert_int_equal(rows.v[1].line, 5);
    assert_int_equal(rows.v[1].kernel.quant, KERNEL_QUANT_BLOCK);
    assert_int_equal(rows.v[1].kernel.unit, HW_FP8);
    assert_true(fabs(rows.v[1].time_s - 70e-6) < 1e-18);
    assert_string_not_equal(r->family, rows.v[1].family);
}

/* Rows of one core, of two of its threads, of a card, and of none that is said. */
static void test_rows_of_other_devices(void **state)
{
    struct place *p = *state;
    static const char text[] = "m,n,k,dtype,framework,device,time_s\n"
                               "7,11,13,fp32,ridge,AMD EPYC,1e-5\n7,11,13,fp32,ridge,\"AMD EPYC, 2 threads\",1e-5\n"
                               "7,11,13,fp32,ridge,this-cpu@2,1e-5\n7,11,13,fp32,ridge,NVIDIA H100 80GB HBM3,1e-5\n"
                               "7,11,13,fp32,ridge,,1e-5\n7,11,13,fp32,vllm,dgx,1e-5\n";
    const char *path = put(p, "export.csv", text, strlen(text));
    const char *said;
    struct err e = {.code = ERR_OK};
    struct rows rows = take(p, path, NULL, NULL); /* of the H100 */
    assert_int_equal(rows.n, 3);
    assert_int_equal(rows.others_n, 3);
    assert_int_equal(rows_others(p->arena, &rows, &said, &e), ERR_OK);
    assert_string_equal(said, "3 rows are of another device and passed over.");
    p->hw.device_kind = "cpu";
    p->hw.aliases_n = 0;
    p->hw.key = "this-cpu";
    p->hw.name = "AMD EPYC";
    rows = take(p, path, NULL, NULL);
    assert_int_equal(rows.n, 2); /* its own, and that which says no device */
    assert_string_equal(rows.v[0].device, "AMD EPYC");
    assert_int_equal(rows.others_n, 4);
    p->hw.key = "this-cpu@2";
    p->hw.name = "AMD EPYC, 2 threads";
    rows = take(p, path, NULL, NULL);
    assert_int_equal(rows.n, 3); /* by its name and by its key */
    assert_int_equal(rows.others_n, 3);
}

static void test_what_is_filtered(void **state)
{
    struct place *p = *state;
    static const char a[] = GEMM "7,11,13,bf16,vllm,1,x,3\n7,11,13,bf16,sglang,1,x,3\n";
    static const char b[] = "batch,kv_len,n_heads,n_kv_heads,head_dim,window,q_dtype,kv_dtype,framework,device,time_s\n"
                            "3,71,8,2,64,0,bf16,fp8,vllm,H100 SXM,1e-5\n3,71,8,2,64,0,bf16,bf16,vllm,b200,1e-5\n";
    static const char other[] = "nothing,of,this\n1,2,3\n";
    put(p, "a.csv", a, strlen(a));
    put(p, "b.csv", b, strlen(b));
    put(p, "gemm_a100_sxm.csv", a, strlen(a));
    put(p, "notes.txt", other, strlen(other));
    struct rows rows = take(p, p->dir, NULL, NULL);
    assert_int_equal(rows.n, 3); /* not the A100's file, not the B200's row */
    assert_int_equal(rows.files_n, 3);
    assert_non_null(rows.files[2].why);
    assert_string_equal(rows.v[2].class_name, "decode/bf16/fp8/vllm");
    assert_int_equal(rows.v[2].kernel.unit, HW_FP8); /* a bound allows the faster unit */
    assert_true(rows.v[2].time_s == 1e-5);
    assert_int_equal(take(p, p->dir, "vllm", NULL).n, 2);
    assert_int_equal(take(p, p->dir, NULL, "decode,gemm").n, 3);
    assert_int_equal(take(p, p->dir, NULL, "decode").n, 1);
    rows = take(p, arena_printf(p->arena, "%s/[ab].csv,%s/a.csv", p->dir, p->dir), NULL, NULL);
    assert_int_equal(rows.n, 5);
    /* of a pattern what is of no kind is passed over, of a name it is refused */
    assert_int_equal(take(p, arena_printf(p->arena, "%s/*", p->dir), NULL, NULL).n, 3);
    const struct rows_filter filter = {.hw = &p->hw};
    struct err e = {.code = ERR_OK};
    assert_int_equal(rows_read(p->arena, arena_printf(p->arena, "%s/notes.txt", p->dir), &filter, &rows, &e),
                     ERR_INPUT);
    assert_non_null(strstr(e.text, "no kind of kernel"));
    assert_int_equal(rows_read(p->arena, arena_printf(p->arena, "%s/none.csv", p->dir), &filter, &rows, &e), ERR_IO);
    const struct rows_filter bad = {.hw = &p->hw, .kinds = "gemm,nonesuch"};
    assert_int_equal(rows_read(p->arena, p->dir, &bad, &rows, &e), ERR_USAGE);
    assert_non_null(strstr(e.text, "nonesuch"));
    const struct rows_filter none = {.hw = &p->hw, .framework = "nobody"};
    assert_int_equal(rows_read(p->arena, p->dir, &none, &rows, &e), ERR_NO);
}

static void test_what_is_refused(void **state)
{
    struct place *p = *state;
    refuse(p, "", "empty");
    refuse(p, "\n\n", "empty");
    refuse(p, "m,n,dtype,latency_us\n1,2,bf16,3\n", "missing: k");
    refuse(p, "m,n,k,dtype\n1,2,3,bf16\n", "time_s or latency_us");
    refuse(p, GEMM "1,2,3,bf16,v,1,x,0\n", "line 2: latency_us: found \"0\"");
    refuse(p, GEMM "1,2,3,bf16,v,1,x,-4\n", "latency_us");
    refuse(p, GEMM "1,2,3,bf16,v,1,x,nan\n", "latency_us");
    refuse(p, GEMM "1,2,3,bf16,v,1,x,0x10\n", "latency_us");
    refuse(p, GEMM "1,2,3,bf16,v,1,x,inf\n", "latency_us");
    refuse(p, GEMM "0,2,3,bf16,v,1,x,4\n", "line 2: m: found \"0\"");
    refuse(p, GEMM "\n1e99,2,3,bf16,v,1,x,4\n", "line 3: m: found \"1e99\"");
    refuse(p, GEMM "1,,3,bf16,v,1,x,4\n", "n: found \"\"");
    refuse(p, GEMM "1,2 2,3,bf16,v,1,x,4\n", "n: found \"2 2\"");
    refuse(p, GEMM "1,2,3,bf17,v,1,x,4\n", "line 2: dtype \"bf17\"");
    refuse(p, GEMM "1,2,3,\x1b[31m,v,1,x,4\n", "dtype \"?[31m\"");
    refuse(p, GEMM "1,2,3,bf16,v,1,x\n", "7 cells, wanted the 8");
    refuse(p, GEMM "1,2,3,bf16,v,1,x,4,5\n", "9 cells, wanted the 8");
    refuse(p, GEMM "1,2,3,bf16,\"v,1,x,4\n", "line 2: a quote does not end");
    refuse(p, GEMM "1,2,3,bf16,\"v\"w,1,x,4\n", "behind a closing quote");
    refuse(p, "m,n,k\rdtype,latency_us\n", "carriage return");
    refuse_bytes(p, GEMM "1,2,3,bf16,v\0,1,x,4\n", sizeof GEMM + 20, "NUL");
    refuse(p, "op,n_gpus,bytes,latency_us\nall_sum,2,8,3\n", "op \"all_sum\"");
    refuse(p, "op,n_gpus,bytes,latency_us\nall_reduce,1,8,3\n", "n_gpus: found \"1\"");
    refuse(p, "batch,q_len,n_heads,n_kv_heads,head_dim,window,q_dtype,kv_dtype,latency_us\n1,2,3,4,64,0,bf16,bf16,9\n",
           "n_kv_heads 4 is above n_heads 3");
    char *wide = arena_alloc(p->arena, 300000);
    memset(wide, 'x', 270001);
    refuse(p, wide, "more than 262144 bytes");
    memset(wide, ',', 9000);
    refuse(p, wide, "more than 256 columns");
}

static void test_kinds(void **state)
{
    struct place *p = *state;
    static const char moe[] = "num_tokens,hidden,inter_full,topk,num_experts,moe_tp,moe_ep,dtype,distribution,gated,"
                              "derived_active_experts_rank0,derived_routed_rows_rank0,derived_max_rows_one_expert,"
                              "framework,version,kernel,latency_us\n"
                              "17,2048,768,8,128,2,4,fp8,balanced,1,31,34,2,trtllm,1,cutlass,25.8\n";
    struct rows rows = take(p, put(p, "a.csv", moe, strlen(moe)), NULL, NULL);
    assert_string_equal(rows.v[0].class_name, "moe/fp8/trtllm/cutlass");
    assert_true(rows.v[0].kernel.active_experts == 31 && rows.v[0].kernel.max_rows == 2);
    assert_int_equal(rows.v[0].kernel.quant, KERNEL_QUANT_DYNAMIC);
    static const char mla[] = "batch,kv_len,n_heads_local,kv_lora_rank,rope_dim,q_dtype,kv_dtype,framework,latency_us\n"
                              "3,97,16,512,64,bf16,fp8,trtllm,25.8\n";
    rows = take(p, put(p, "a.csv", mla, strlen(mla)), NULL, NULL);
    assert_true(rows.v[0].kernel.head_dim == 576 && rows.v[0].kernel.value_dim == 512);
    static const char prefill[] =
        "batch,q_len,n_heads,n_kv_heads,head_dim,window,q_dtype,kv_dtype,framework,latency_us\n"
        "3,97,16,4,192,0,bf16,bf16,trtllm,25.8\n3,97,16,4,192,0,bf16,bf16,vllm,25.8\n";
    rows = take(p, put(p, "a.csv", prefill, strlen(prefill)), NULL, NULL);
    assert_true(rows.v[0].kernel.padded_dim == 256 && rows.v[0].kernel.ungrouped > 0);
    assert_true(rows.v[1].kernel.padded_dim == 0 && !(rows.v[1].kernel.ungrouped > 0));
    static const char conv[] = "op,phase,batch,seq_len,n_k_heads,head_k_dim,n_v_heads,head_v_dim,d_conv,framework,"
                               "latency_us\ncausal_conv1d_fn,context,1,71,4,128,8,64,4,vllm,2.3\n"
                               "chunk_gated_delta_rule,context,1,71,4,128,8,64,4,vllm,2.3\n";
    rows = take(p, put(p, "a.csv", conv, strlen(conv)), NULL, NULL);
    assert_int_equal(rows.v[0].kernel.kind, KERNEL_CONV);
    assert_true(rows.v[0].kernel.channels == 2 * 4 * 128 + 8 * 64);
    assert_int_equal(rows.v[1].kernel.kind, KERNEL_SCAN);
    assert_true(rows.v[1].kernel.chunk_tokens == 64);
    static const char quant[] = "m,k,op,framework,latency_us\n7,101,compute_scale,trtllm,2.3\n7,101,scale,trtllm,2.3\n";
    rows = take(p, put(p, "a.csv", quant, strlen(quant)), NULL, NULL);
    assert_true(rows.v[0].kernel.moved_bytes == 7 * 101 * 2 && rows.v[1].kernel.moved_bytes == 7 * 101 * 3);
    static const char ring[] = "machine,op,n_gpus,devices_per_node,bytes,latency_us\n"
                               "h100_dgx,all_reduce,8,4,1000003,51\na100_dgx,all_reduce,8,4,1000003,51\n";
    rows = take(p, put(p, "a.csv", ring, strlen(ring)), NULL, NULL);
    assert_int_equal(rows.n, 1);
    assert_string_equal(rows.v[0].class_name, "collective/all_reduce/across_nodes");
    assert_true(rows.v[0].kernel.per_node == 4 && rows.v[0].kernel.payload_bytes == 1000003);
}

/* All published measurements: every file is of a kind, and nothing runs faster than its credited bound. */
static void test_published_rows_keep_their_bounds(void **state)
{
    struct place *p = *state;
    const char *dir = csv_shared(p->arena, "measured");
    static const char *const devices[] = {"h100-sxm", "h200-sxm", "a100-80g", "b200-sxm"};
    struct stat st;
    if (!dir || stat(dir, &st) != 0) skip();
    size_t all = 0;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        struct err e = {.code = ERR_OK};
        assert_int_equal(hw_load(p->arena, devices[i], &p->hw, &e), ERR_OK);
        const struct rows rows = take(p, dir, NULL, NULL);
        all += rows.n;
        for (size_t r = 0; r < rows.n; r++) {
            struct kernel_work w;
            assert_int_equal(kernel_work(&rows.v[r].kernel, &p->hw, &w, &e), ERR_OK);
            if (rows.v[r].time_s < w.credited_bound_s)
                fail_msg("%s: line %zu: %g s, bound %g s", rows.v[r].file, rows.v[r].line, rows.v[r].time_s,
                         w.credited_bound_s);
        }
    }
    assert_true(all > 25000);
}

static void test_rows_that_cannot_be(void **state)
{
    struct place *p = *state;
    static const char PREFILL[] = "batch,q_len,kv_len,prefix_len,n_heads,n_kv_heads,head_dim,window,q_dtype,kv_dtype,"
                                  "time_s\n";
    refuse(p, "m,n,k,k,dtype,time_s\n3,5,7,7,bf16,1e-5\n", "\"k\" is there twice");
    refuse(p, "m,n,k,dtype,time_s\n1.5,5,7,bf16,1e-5\n", "m: found 1.5, wanted a whole number");
    refuse(p, arena_printf(p->arena, "%s3,1024,512,0,32,8,128,0,bf16,bf16,1e-3\n", PREFILL),
           "kv_len 512 is below q_len");
    refuse(p, arena_printf(p->arena, "%s3,512,700,300,32,8,128,0,bf16,bf16,1e-3\n", PREFILL), "+ prefix_len");
    refuse(p, arena_printf(p->arena, "%s3,512,512,0,32,7,128,0,bf16,bf16,1e-3\n", PREFILL), "not a multiple");
    /* the nearest kind is the one most of whose columns are there, not the one with the fewest */
    refuse(p, "num_tokens,hidden,inter_full,topk,num_experts,moe_tp,moe_ep,dtype,time_s\n",
           "of moe are missing: gated");
    refuse(p, "batch,q_len,prefix_len,n_heads_local,qk_head_dim,q_dtype,kv_dtype,time_s\n",
           "of mla_prefill are missing: v_head_dim");
    refuse(p, "n_gpus,bytes,time_s\n", "of collective are missing: op");
    /* a mean of routed rows need not be whole; a file without dtype says what it was taken for */
    static const char plain[] = "m,n,k,time_s\n3,5,7,1e-5\n", empty[] = GEMM;
    const struct rows rows = take(p, put(p, "plain.csv", plain, strlen(plain)), NULL, NULL);
    assert_string_equal(rows.files[0].dtype_assumed, "fp16");
    struct rows none;
    struct err e = {.code = ERR_OK};
    const struct rows_filter filter = {.hw = &p->hw};
    assert_int_equal(rows_read(p->arena, put(p, "empty.csv", empty, strlen(empty)), &filter, &none, &e), ERR_NO);
    assert_non_null(strstr(e.text, "nothing behind it"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_row, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_rows_that_cannot_be, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_rows_of_other_devices, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_what_is_filtered, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_what_is_refused, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_kinds, open_place, close_place),
        cmocka_unit_test_setup_teardown(test_published_rows_keep_their_bounds, open_place, close_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
