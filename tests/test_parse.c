/* Unit tests of calc/sym/parse and of the printers that it reads back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "calc/sym/normal.h"
#include "calc/sym/parse.h"
#include "calc/sym/print.h"
#include "tests/scratch.h"
#include "tests/sym_mod.h"

enum { N_NAMES = 14 };

static const char *const NAMES[N_NAMES] = {"B",  "S",    "T",        "D",     "F", "H",        "G",
                                           "Hv", "b_kv", "kv_bytes", "gamma", "x", "\xce\xb3", "E"};

struct fixture {
    struct arena *a;
    struct sym_ctx *c;
    struct parse_symbol symbols[N_NAMES];
    struct parse_names names;
};

/* flops(mlp) is 17, intensity(attention, decode) is x/17; all else is refused */
static enum err_code resolve(void *user, const char *name, const char *argument, const struct sym **out, struct err *e)
{
    struct fixture *f = user;
    const struct sym *seventeen = sym_int(f->c, 17);
    if (strcmp(argument, "mlp") == 0 && strcmp(name, "flops") == 0)
        *out = seventeen;
    else if (strcmp(argument, "attention, decode") == 0 && strcmp(name, "intensity") == 0)
        *out = sym_div(f->c, sym_var(f->c, "x"), seventeen);
    else
        return err_set(e, ERR_INPUT, "no operator '%s' has %s", argument, name);
    return ERR_OK;
}

static int open_fixture(void **state)
{
    static const char *const CALLS[] = {"flops", "intensity"};
    struct fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->a = arena_open();
    f->c = sym_open(f->a);
    for (size_t i = 0; i < N_NAMES; i++) f->symbols[i] = (struct parse_symbol){NAMES[i], sym_var(f->c, NAMES[i])};
    f->names = (struct parse_names){f->symbols, N_NAMES, CALLS, 2, resolve, f, false, false};
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    const enum err_code code = sym_check(f->c, NULL);
    arena_close(f->a);
    free(f);
    return code == ERR_OK ? 0 : -1;
}

static const struct sym *parse(struct fixture *f, const char *text)
{
    const struct sym *e = NULL;
    struct err err = {0};
    if (sym_parse(f->c, text, strlen(text), &f->names, &e, NULL, &err) != ERR_OK)
        fail_msg("'%s' refused: %s", text, err.text);
    return e;
}

static void assert_same(struct fixture *f, const char *text, const char *want)
{
    char a[512], b[512];
    const struct sym *x = parse(f, text), *y = parse(f, want);
    (void)sym_print(x, a, sizeof a);
    (void)sym_print(y, b, sizeof b);
    if (x != y) fail_msg("'%s' is %s, not %s", text, a, b);
}

static void assert_refused(struct fixture *f, const char *text, enum err_code code, size_t column, const char *sentence)
{
    const struct sym *e = NULL;
    struct parse_error w = {0};
    struct err err = {0};
    const enum err_code got = sym_parse(f->c, text, strlen(text), &f->names, &e, &w, &err);
    if (got != code || w.column != column || !strstr(err.text, sentence))
        fail_msg("'%s': code %d, column %zu: %s", text, (int)got, w.column, err.text);
    assert_null(e);
    assert_int_equal(w.caret[strlen(w.caret) - 1], '^');
}

static void test_structure(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *B = sym_var(c, "B"), *S = sym_var(c, "S"), *T = sym_var(c, "T"), *D = sym_var(c, "D"),
                     *x = sym_var(c, "x"), *two = sym_int(c, 2);
    assert_ptr_equal(parse(f, "2BDT"), SYM_PROD(c, two, B, D, T));
    assert_ptr_equal(parse(f, "S*T/(T+S)"), sym_div(c, sym_mul(c, S, T), sym_add(c, S, T)));
    assert_ptr_equal(parse(f, "x^2"), sym_pow(c, x, two));
    assert_ptr_equal(parse(f, "-x^2"), sym_mul(c, sym_int(c, -1), sym_pow(c, x, two)));
    assert_ptr_equal(parse(f, "x^-3"), sym_pow(c, x, sym_int(c, -3)));
    assert_ptr_equal(parse(f, "B^S^T"), sym_pow(c, B, sym_pow(c, S, T)));
    assert_ptr_equal(parse(f, "B - S - T"), SYM_SUM(c, B, sym_sub(c, sym_int(c, 0), S), sym_sub(c, sym_int(c, 0), T)));
    assert_ptr_equal(parse(f, "S/T/B"), sym_div(c, sym_div(c, S, T), B));
    assert_ptr_equal(parse(f, "1/2B"), sym_mul(c, sym_rat(c, 1, 2), B));
    assert_ptr_equal(parse(f, "S/BT"), sym_mul(c, sym_div(c, S, B), T));
    assert_ptr_equal(parse(f, "2^3B"), sym_mul(c, sym_int(c, 8), B));
    assert_ptr_equal(parse(f, "B--+-x"), sym_sub(c, B, x));
    assert_ptr_equal(parse(f, "S*-T"), SYM_PROD(c, sym_int(c, -1), S, T));
    assert_ptr_equal(parse(f, "min(S, T, B)"), sym_min(c, sym_min(c, S, T), B));
    assert_ptr_equal(parse(f, "max (S,\n7)"), sym_max(c, S, sym_int(c, 7)));
    assert_ptr_equal(parse(f, "Bceil(T/13)"), sym_mul(c, B, sym_ceil(c, sym_div(c, T, sym_int(c, 13)))));
    assert_ptr_equal(parse(f, "pow(x, 1/2)+floor(7/2)"), sym_add(c, sym_pow(c, x, sym_rat(c, 1, 2)), sym_int(c, 3)));
}

static void test_numbers(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    double v = 0.0;
    assert_ptr_equal(parse(f, "0.5"), sym_rat(c, 1, 2));
    assert_ptr_equal(parse(f, "2.5e3"), sym_int(c, 2500));
    assert_ptr_equal(parse(f, ".85"), sym_rat(c, 17, 20));
    assert_ptr_equal(parse(f, "1.10"), sym_rat(c, 11, 10));
    assert_ptr_equal(parse(f, "625e-4"), sym_rat(c, 1, 16));
    assert_ptr_equal(parse(f, "989e12/3.35e12"), sym_rat(c, 19780, 67));
    assert_ptr_equal(parse(f, "0e999"), sym_int(c, 0));
    assert_ptr_equal(parse(f, "9223372036854775807"), sym_int(c, INT64_MAX));
    assert_ptr_equal(parse(f, "1e300"), sym_num(c, 1e300));
    assert_ptr_equal(parse(f, "2e3"), sym_int(c, 2000));
    assert_ptr_equal(parse(f, "2E-3"), sym_sub(c, sym_mul(c, sym_int(c, 2), sym_var(c, "E")), sym_int(c, 3)));
    f->names.n_symbols--; /* E is the last */
    assert_ptr_equal(parse(f, "2E-3"), sym_rat(c, 1, 500));
    assert_refused(f, "2E", ERR_USAGE, 2, "unknown name 'E'");
    f->names.n_symbols++;
    assert_true(sym_constant(parse(f, "3.14159265358979323846264"), &v));
    assert_true(v == 3.14159265358979323846264);
    assert_refused(f, "1.2.3", ERR_USAGE, 4, "second decimal point");
    assert_refused(f, "3e1001", ERR_RANGE, 2, "exponent beyond 1000");
    assert_refused(f, "3e0000001", ERR_RANGE, 2, "exponent beyond 1000");
    assert_refused(f, "3e-400", ERR_RANGE, 1, "beyond what a double holds");
    assert_refused(f, "3e400", ERR_RANGE, 1, "beyond what a double holds");
    assert_refused(f, "x + .", ERR_USAGE, 5, "'.' is not expected");
}

/* whole numbers beyond 64 bits are exact */
static void test_long_numbers(void **state)
{
    struct fixture *f = *state;
    struct sym_ctx *c = f->c;
    const struct sym *a = parse(f, "123456789012345678901234567890"), *b = parse(f, "123456789012345678901234567891");
    const struct sym *ten = sym_int(c, 10), *head = sym_int(c, INT64_C(123456789012345678));
    const struct sym *want = sym_add(c, sym_mul(c, sym_pow(c, ten, sym_int(c, 12)), head), sym_int(c, 901234567890));
    double v = 0.0;
    bool equal = true;
    assert_true(sym_constant(a, &v) && fabs(v / 123456789012345678901234567890.0 - 1.0) < 1e-15);
    assert_int_equal(sym_equal(c, a, b, &equal, NULL), ERR_OK);
    assert_false(equal);
    assert_int_equal(sym_equal(c, a, want, &equal, NULL), ERR_OK);
    assert_true(equal);
    assert_int_equal(sym_equal(c, sym_sub(c, b, a), sym_int(c, 1), &equal, NULL), ERR_OK);
    assert_true(equal);
    assert_ptr_equal(parse(f, "9223372036854775808"), parse(f, "09223372036854775808"));
    char text[128];
    (void)sym_print(a, text, sizeof text);
    assert_string_equal(text, "123456789012345678901234567890");
    (void)sym_print(sym_mul(c, sym_mul(c, sym_int(c, -1), a), sym_pow(c, f->symbols[0].e, sym_int(c, 2))), text,
                    sizeof text);
    assert_non_null(strstr(text, "123456789012345678901234567890"));
}

static void test_units(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text, *want;
    } PAIRS[] = {
        {"5TB", "5*10^12"},
        {"5 TB", "5*10^12"},
        {"100kB + 3MB", "100000 + 3000000"},
        {"80GiB", "80*2^30"},
        {"1s + 50 ms + 7us + 3\xc2\xb5s + 2 min", "1 + 1/20 + 7/1000000 + 3/1000000 + 120"},
        {"3.35 TB/s", "335*10^10"},
        {"989 TFLOP/s", "989*10^12"},
        {"989TFLOPS", "989*10^12"},
        {"400 Gbit/s", "50*10^9"},
        {"400Gbps", "50*10^9"},
        {"20kB/token", "20000"},
        {"36 GB/h", "10^7"},
        {"4096 tokens", "4096"},
        {"25% * S", "S/4"},
        {"2BDF", "2*B*D*F"},
        {"2B", "2*B"},
        {"6BTDF", "6*B*T*D*F"},
        {"2 B", "2*B"},
        {"3 S", "3*S"},
        {"2H", "2*H"},
        {"7min(S, T)", "7*min(S, T)"},
        {"5MB/B", "5000000/B"},
        {"5MB/S", "5000000/S"},
        {"8TBS", "8*T*B*S"},
        {"2^30 GB", "2^30*10^9"},
        {"2^-3 GB", "10^9/8"},
        {"2^3B", "8*B"},
        {"S^2 x", "S^2*x"},
        {"3\\,\\mathrm{GB}", "3*10^9"},
        {"sum(2s, s, 1, 3)", "12"},
        {"(5 ms)^2", "1/40000"},
        {"2E-3", "2*E - 3"},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++) {
        const struct sym *want = parse(f, PAIRS[i].want);
        f->names.units = true;
        const struct sym *got = parse(f, PAIRS[i].text);
        f->names.units = false;
        if (got != want) fail_msg("%s", PAIRS[i].text);
    }
    assert_refused(f, "5kB", ERR_USAGE, 2, "unknown name 'kB'");
    f->names.units = true;
    assert_refused(f, "x TQ", ERR_USAGE, 4, "unknown name 'Q'");
    assert_refused(f, "5 Q", ERR_USAGE, 3, "unknown name 'Q'");
    assert_refused(f, "3b", ERR_USAGE, 2, "unknown name 'b'");
    assert_refused(f, "2 H2", ERR_USAGE, 4, "number behind an operand");
    assert_refused(f, "5 GB 3", ERR_USAGE, 6, "number behind an operand");
    f->names.units = false;
}

static void test_names(void **state)
{
    struct fixture *f = *state;
    assert_same(f, "Hv", "\\mathrm{Hv}");
    assert_same(f, "BTHvH", "B*T*Hv*H");
    assert_same(f, "b_kvS", "S*b_kv");
    assert_same(f, "2kv_bytes", "kv_bytes + kv_bytes");
    assert_same(f, "\xce\xb3gamma", "gamma*\xce\xb3");
    assert_same(f, "3flops(mlp)", "51");
    assert_same(f, "Bintensity( attention, decode )", "B*(x/17)");
    assert_refused(f, "flops(moe)", ERR_INPUT, 1, "no operator 'moe' has flops at column 1");
    assert_refused(f, "2*flops()", ERR_USAGE, 8, "flops of nothing");
    assert_refused(f, "flops(mlp", ERR_USAGE, 6, "not closed");
    assert_refused(f, "flops", ERR_USAGE, 1, "flops wants an argument, as in flops(...), at column 1");
    assert_refused(f, "2*min + S", ERR_USAGE, 3, "the function min without brackets");
    assert_refused(f, "abs(B - S)", ERR_USAGE, 1, "no abs: symbols are positive");
    assert_refused(f, "2E3", ERR_USAGE, 3, "E is a symbol here, a power of ten is written 1e3");
    assert_same(f, "H_v + H_{v} + H_\\mathrm{v}", "3*Hv");
    assert_same(f, "H_{v}B", "Hv*B");
    assert_refused(f, "H_w", ERR_USAGE, 2, "unknown name '_w'");
    assert_refused(f, "2*B*b_kw", ERR_USAGE, 5, "unknown name 'b_kw' at column 5; did you mean b_kv?");
    assert_refused(f, "S + kv_byte", ERR_USAGE, 5, "did you mean kv_bytes?");
    assert_refused(f, "S + intensty(mlp)", ERR_USAGE, 5, "did you mean intensity?");
    assert_refused(f, "S + flor(x)", ERR_USAGE, 5, "did you mean floor?");
    assert_refused(f, "BQ", ERR_USAGE, 2, "unknown name 'Q' in 'BQ' at column 2");
    assert_refused(f, "cbrt(x)", ERR_USAGE, 1, "unknown name 'cbrt'");
    assert_refused(f, "b_kv2", ERR_USAGE, 5, "number behind an operand");
}

static void test_typography(void **state)
{
    struct fixture *f = *state;
    assert_same(f, "S\xc2\xb7T/(S+T)", "S*T/(T+S)");
    assert_same(f, "x\xc2\xb2", "x**2");
    assert_same(f, "x\xc2\xb9\xc2\xb3 + T\xe2\x81\xbb\xc2\xb2", "x^13 + T^(-2)");
    assert_same(f, "2^x\xc2\xb2", "2^(x^2)");
    assert_same(f, "x\xc2\xb2^3", "(x^2)^3");
    assert_same(f, "B \xe2\x88\x92 S \xc3\x97 T", "B - S*T");
    assert_same(f, "B\xe2\x80\x89S\xe2\x80\xafT", "B*S*T");
    assert_same(f, "\xe2\x8c\x88T/7\xe2\x8c\x89 \xc3\xb7 \xe2\x8c\x8aT/3\xe2\x8c\x8b", "ceil(T/7)/floor(T/3)");
    assert_same(f, "[S + {T*(B)}]", "S + T*B");
    assert_same(f, "\xe2\x88\x9a(S*T) + \xe2\x88\x9aT", "sqrt(S*T) + sqrt(T)");
    assert_same(f, "2\xe2\x88\x9aT^3", "2*sqrt(T)^3");
    assert_same(f, "\xc2\xbdS + \xc2\xbc*T/\xc2\xbe", "S/2 + T/3");
    assert_refused(f, "2\xc2\xbd", ERR_USAGE, 2, "a fraction behind a digit");
    assert_refused(f, "\xe2\x88\x9aST", ERR_USAGE, 1, "sqrt of several factors without brackets");
    assert_refused(f, "x\xc2\xb2\xe2\x81\xbb", ERR_USAGE, 2, "superscript that is no number");
    assert_refused(f, "\xc2\xb2", ERR_USAGE, 1, "superscript");
    assert_refused(f, "S\xc2\xb7\xff", ERR_USAGE, 3, "not UTF-8");
    assert_refused(f, "S\xe2\x80\xaeT", ERR_USAGE, 2, "control character");
    assert_refused(f, "S\x01T", ERR_USAGE, 2, "control character");
    assert_refused(f, "S \xe2\x82\xac", ERR_USAGE, 3, "unknown name '\xe2\x82\xac'");
}

static void test_latex_input(void **state)
{
    struct fixture *f = *state;
    assert_same(f, "\\frac{S T}{S+T}", "S*T/(S+T)");
    assert_same(f, "\\frac{1}{2} B \\cdot 3 \\times T", "3/2*B*T");
    assert_same(f, "\\left( S + T \\right)^{2}", "(S+T)^2");
    assert_same(f, "2\\,B\\;D \\quad F", "2*B*D*F");
    assert_same(f, "b_{kv} + b_{\\mathrm{kv}} + b_\\mathrm{kv} + b_kv + b\\_kv", "5*b_kv");
    assert_same(f, "\\mathrm{kv}_{\\mathrm{bytes}} \\text{kv\\_bytes}", "kv_bytes^1*kv_bytes");
    assert_same(f, "\\min\\left(S, T\\right)\\max\\{S, T\\}", "min(S, T)*max(S, T)");
    assert_same(f, "\\left\\lceil\\frac{T}{7}\\right\\rceil", "ceil(T/7)");
    assert_same(f, "\\operatorname{flops}(\\text{mlp})\\gamma", "17*gamma");
    assert_same(f, "b_{kv}S", "b_kv*S");
    assert_same(f, "\\frac12 B + \\frac1{S}", "B/2 + 1/S");
    assert_same(f, "\\sqrt[3]{B} + sqrt[4](S)", "B^(1/3) + S^(1/4)");
    assert_same(f, "\\log B + \\ln B^2 + log x", "log(B) + log(B^2) + log(x)");
    assert_same(f, "\\log_2 B + log_2(S) + log2(T) + \\log_{10}\\left(D\\right) + log10(F)",
                "log(B)/log(2) + log(S)/log(2) + log(T)/log(2) + log(D)/log(10) + log(F)/log(10)");
    assert_same(f, "\\log \\frac{S}{T} - \\exp x", "log(S/T) - exp(x)");
    assert_same(f, "$ S + T $", "S + T");
    assert_same(f, "$$\\(S\\) + \\[T\\]$$", "S + T");
    assert_refused(f, "\\log 2B", ERR_USAGE, 1, "log of several factors without brackets");
    assert_refused(f, "\\sqrt[B]{S}", ERR_USAGE, 6, "a root whose index is no whole number from 2");
    assert_refused(f, "\\log_1 S", ERR_RANGE, 1, "a base below 2");
    assert_refused(f, "S$", ERR_USAGE, 2, "'$' is not expected");
    assert_refused(f, "S$T$", ERR_USAGE, 2, "'$' is not expected");
    assert_refused(f, "\\frac S T", ERR_USAGE, 1, "two arguments in braces");
    assert_refused(f, "B \\foo", ERR_USAGE, 3, "unknown name 'foo'");
    assert_refused(f, "b_{kv", ERR_USAGE, 3, "not closed");
    assert_refused(f, "b_{k\\frac}", ERR_USAGE, 5, "no name");
    assert_refused(f, "S\\", ERR_USAGE, 2, "backslash");
    assert_refused(f, "\\mathrm S", ERR_USAGE, 1, "\\mathrm without a name");
}

static void test_refusals(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, "", ERR_USAGE, 1, "ends where an operand is wanted");
    assert_refused(f, "2*", ERR_USAGE, 3, "ends where an operand is wanted");
    assert_refused(f, "(S + T", ERR_USAGE, 1, "not closed");
    assert_refused(f, "(S + T]", ERR_USAGE, 7, "']' is not expected");
    assert_refused(f, "S + T)", ERR_USAGE, 6, "')' is not expected");
    assert_refused(f, "S */ T", ERR_USAGE, 4, "'/' is not expected");
    assert_refused(f, "1,000", ERR_USAGE, 2, "a comma outside");
    assert_refused(f, "1 000", ERR_USAGE, 3, "number behind an operand");
    assert_refused(f, "B2", ERR_USAGE, 2, "number behind an operand");
    assert_refused(f, "S = T", ERR_USAGE, 3, "'='");
    assert_refused(f, "S/0", ERR_RANGE, 2, "division by zero");
    assert_refused(f, "S/(T-T)", ERR_RANGE, 2, "division by zero");
    assert_refused(f, "0^-2", ERR_RANGE, 2, "negative power of zero");
    assert_refused(f, "x^1009", ERR_RANGE, 2, "exponent beyond 1000");
    assert_refused(f, "x^(100*11)", ERR_RANGE, 2, "exponent beyond 1000");
    assert_refused(f, "min(S)", ERR_USAGE, 1, "min of 1 argument, wanted two or more");
    assert_refused(f, "B*ceil(S, T)", ERR_USAGE, 3, "ceil of 2 arguments, wanted one");
    assert_refused(f, "pow(S, T, B)", ERR_USAGE, 1, "pow of 3 arguments, wanted two");
    assert_refused(f, "S # T", ERR_USAGE, 3, "'#' is not expected");
}

static void test_caret(void **state)
{
    struct fixture *f = *state;
    const struct sym *e = NULL;
    struct parse_error w;
    const char *text = "x\xc2\xb2 \xc2\xb7\tQ + S";
    assert_int_equal(sym_parse(f->c, text, strlen(text), &f->names, &e, &w, NULL), ERR_USAGE);
    assert_int_equal(w.column, 6);
    assert_string_equal(w.excerpt, "x\xc2\xb2 \xc2\xb7 Q + S");
    assert_string_equal(w.caret, "     ^");
    char line[600];
    memset(line, ' ', sizeof line);
    line[293] = '?';
    assert_int_equal(sym_parse(f->c, line, sizeof line, &f->names, &e, &w, NULL), ERR_USAGE);
    assert_int_equal(w.column, 294);
    assert_int_equal(w.excerpt[strlen(w.caret) - 1], '?');
    assert_true(strlen(w.excerpt) < 100 && strncmp(w.excerpt, "...", 3) == 0);
    assert_int_equal(sym_parse(f->c, "S\0T", 3, &f->names, &e, &w, NULL), ERR_USAGE);
    assert_int_equal(w.column, 2);
}

static void test_equation(void **state)
{
    struct fixture *f = *state;
    const struct sym *l = NULL, *r = NULL;
    struct parse_error w;
    struct err err = {0};
    const char *text = "intensity(attention, decode) = 2BT";
    assert_int_equal(sym_parse_equation(f->c, text, strlen(text), &f->names, &l, &r, &w, &err), ERR_OK);
    assert_ptr_equal(l, parse(f, "x/17"));
    assert_ptr_equal(r, parse(f, "2*B*T"));
    l = r = NULL;
    assert_int_equal(sym_parse_equation(f->c, "S", 1, &f->names, &l, &r, &w, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "an equation without '='"));
    assert_int_equal(sym_parse_equation(f->c, "S=T=B", 5, &f->names, &l, &r, &w, &err), ERR_USAGE);
    assert_int_equal(w.column, 4);
    assert_int_equal(sym_parse_equation(f->c, "S=", 2, &f->names, &l, &r, &w, &err), ERR_USAGE);
    assert_true(!l && !r);
}

/* n times unit, then tail */
static char *repeated(size_t n, const char *unit, const char *tail)
{
    const size_t k = strlen(unit);
    char *s = malloc(n * k + strlen(tail) + 1);
    assert_non_null(s);
    for (size_t i = 0; i < n; i++) memcpy(s + i * k, unit, k);
    memcpy(s + n * k, tail, strlen(tail) + 1);
    return s;
}

static void expect(struct fixture *f, char *s, enum err_code code, const char *sentence)
{
    const struct sym *e = NULL;
    struct err err = {0};
    const enum err_code got = sym_parse(f->c, s, strlen(s), &f->names, &e, NULL, &err);
    if (got != code || !strstr(err.text, sentence)) fail_msg("%.20s...: code %d: %s", s, (int)got, err.text);
    free(s);
}

static void test_bounds(void **state)
{
    struct fixture *f = *state;
    expect(f, repeated(65536, " ", "S"), ERR_RANGE, "more than 65536 bytes");
    expect(f, repeated(65535, " ", "S"), ERR_OK, "");
    expect(f, repeated(65535, "-", "S"), ERR_OK, "");
    expect(f, repeated(65535, "(", ""), ERR_RANGE, "more than 200 nested");
    expect(f, repeated(10922, "\\frac{", ""), ERR_RANGE, "more than 200 nested");
    expect(f, repeated(32000, "x^", "x"), ERR_RANGE, "more than 200 nested");
    expect(f, repeated(13000, "ceil(", "x"), ERR_RANGE, "more than 200 nested");
    expect(f, repeated(200, "(", "S"), ERR_USAGE, "not closed");
    expect(f, repeated(10000, "S", ""), ERR_OK, "");
    expect(f, repeated(10001, "S", ""), ERR_RANGE, "more than 10000 symbols");
    expect(f, repeated(9999, "S*T^2+", ""), ERR_RANGE, "more than 10000 symbols");
    expect(f, repeated(4999, "S-T/", "T"), ERR_OK, "");
    expect(f, repeated(65536, "7", ""), ERR_RANGE, "beyond what a double holds");
    expect(f, repeated(32767, "2*", "2"), ERR_OK, "");
    expect(f, repeated(30, "_{", ""), ERR_USAGE, "not closed");
}

/* Peak memory of the process so far. */
static long peak_kib(void)
{
    struct rusage u;
    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return u.ru_maxrss;
}

enum { HOSTILE_BYTES = 1000000 };

/* Texts that no command line can pass: a megabyte and more, each refused within 16 MiB (the texts have up
 * to 7 MB themselves). */
static void test_hostile_bounds(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *head, *unit, *tail;
    } TEXTS[] = {
        {"", "(", "B"},     {"B^", "9", ""},       {"B^-", "7", ""},    {"2e", "9", "*B"},   {"0.", "3", "*B"},
        {"B", "*B", ""},    {"S", "+T*B", ""},     {"", "max(B,", "1"}, {"B", "^B", ""},     {"", "\\frac{1}{", "B"},
        {"", "flops(", ""}, {"x", "\xc2\xb2", ""}, {"", "_", ""},       {"", "\\left(", ""}, {"", "\xe2\x8c\x88", "B"},
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        char *many = repeated(HOSTILE_BYTES, TEXTS[i].unit, TEXTS[i].tail);
        const size_t size = strlen(TEXTS[i].head) + strlen(many) + 1;
        char *text = malloc(size);
        assert_non_null(text);
        (void)snprintf(text, size, "%s%s", TEXTS[i].head, many);
        free(many);
        const long before_kib = peak_kib();
        expect(f, text, ERR_RANGE, "more than 65536 bytes");
        assert_true(peak_kib() - before_kib < 16 * 1024);
    }
}

/* ten thousand different symbols: read, and refused by the algebra; one more is refused by the parser */
static void test_many_names(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 10000, WIDTH = 6 };
    struct parse_symbol *symbols = arena_array(f->a, MANY, sizeof *symbols);
    char *text = arena_array(f->a, MANY + 2, WIDTH);
    const struct sym *e = NULL, *out = NULL;
    struct err err = {0};
    assert_true(symbols && text);
    for (int i = 0; i < MANY; i++) {
        const char *name = arena_printf(f->a, "a%04d", i);
        assert_non_null(name);
        symbols[i] = (struct parse_symbol){name, sym_var(f->c, name)};
        (void)snprintf(text + i * WIDTH, WIDTH + 1, "%s%c", name, i + 1 < MANY ? '+' : ' ');
    }
    const struct parse_names names = {.symbols = symbols, .n_symbols = MANY};
    const long before_kib = peak_kib();
    assert_int_equal(sym_parse(f->c, text, strlen(text), &names, &e, NULL, &err), ERR_OK);
    assert_int_equal(sym_normal(f->c, e, &out, &err), ERR_RANGE);
    assert_non_null(strstr(err.text, "10000 different symbols"));
    memcpy(text + MANY * WIDTH, "+a0007", WIDTH);
    assert_int_equal(sym_parse(f->c, text, MANY * WIDTH + WIDTH, &names, &e, NULL, &err), ERR_RANGE);
    assert_non_null(strstr(err.text, "more than 10000 symbols"));
    assert_true(peak_kib() - before_kib < 64 * 1024);
}

/* ---- printers ---- */

static void assert_prints(struct fixture *f, enum sym_style style, const char *text, const char *want)
{
    char buf[512];
    const size_t n = sym_print_as(parse(f, text), style, buf, sizeof buf);
    assert_string_equal(buf, want);
    assert_int_equal(n, strlen(want));
}

static void test_latex_output(void **state)
{
    struct fixture *f = *state;
    assert_prints(f, SYM_LATEX, "2*B*S*D", "2 B S D");
    assert_prints(f, SYM_LATEX, "S*T/(S+T)", "\\frac{S T}{S + T}");
    assert_prints(f, SYM_LATEX, "B*b_kv*(H+Hv)", "B b_{\\mathrm{kv}} \\left(H + \\mathrm{Hv}\\right)");
    assert_prints(f, SYM_LATEX, "3*(S+T)/7", "\\frac{3 \\left(S + T\\right)}{7}");
    assert_prints(f, SYM_LATEX, "(S+T)/2", "\\frac{S + T}{2}");
    assert_prints(f, SYM_LATEX, "(S+T)^2", "\\left(S + T\\right)^{2}");
    assert_prints(f, SYM_LATEX, "S*S*T", "S^{2} T");
    assert_prints(f, SYM_LATEX, "x^(S+1)", "x^{S + 1}");
    assert_prints(f, SYM_LATEX, "B - S/T", "B - \\frac{S}{T}");
    assert_prints(f, SYM_LATEX, "-(S*3)/T", "-\\frac{3 S}{T}");
    assert_prints(f, SYM_LATEX, "3*2^x", "3 \\cdot 2^{x}");
    assert_prints(f, SYM_LATEX, "-3/7", "-\\frac{3}{7}");
    assert_prints(f, SYM_LATEX, "min(S, T)*ceil(T/7)",
                  "\\min\\left(S, T\\right) \\left\\lceil \\frac{T}{7} \\right\\rceil");
    assert_prints(f, SYM_LATEX, "kv_bytes*gamma", "\\mathrm{kv}_{\\mathrm{bytes}} \\gamma");
    assert_prints(f, SYM_LATEX, "2.5e-30", "2.5 \\cdot 10^{-30}");
}

static void test_code_output(void **state)
{
    struct fixture *f = *state;
    assert_prints(f, SYM_C, "2*B*S*D", "2.0*B*S*D");
    assert_prints(f, SYM_C, "3*S*T/7", "3.0*S*T/7.0");
    assert_prints(f, SYM_C, "min(S, T)^2*S*S", "pow(S, 2.0)*pow(fmin(S, T), 2.0)");
    assert_prints(f, SYM_C, "ceil(T/7)/floor(T)", "ceil(T/7.0)/floor(T)");
    assert_prints(f, SYM_C, "b_kv - 1e300", "b_kv - 1e+300");
    assert_prints(f, SYM_C, "\xce\xb3/1024", "0.0009765625*_xce_xb3");
    assert_prints(f, SYM_GNUPLOT, "x^2/T", "real(x**2.0)/T");
    assert_prints(f, SYM_GNUPLOT, "B - S/T", "B - real(S)/T");
    assert_prints(f, SYM_GNUPLOT, "B - 2*min(S, 7)", "B - 2.0*(S < 7.0 ? S : 7.0)");
    assert_prints(f, SYM_GNUPLOT, "-S*S*ceil(x)", "-S**2.0*real(ceil(x))");
    assert_prints(f, SYM_GNUPLOT, "max(S, T)", "(S > T ? S : T)");
    char small[7];
    assert_int_equal(sym_print_as(parse(f, "S*T/(S+T)"), SYM_LATEX, small, sizeof small), 17);
    assert_string_equal(small, "\\frac{");
}

static void test_wrapped(void **state)
{
    struct fixture *f = *state;
    char buf[512], flat[512];
    const struct sym *e = parse(f, "2*B*S*(H + Hv)*b_kv + 3*kv_bytes*min(S*T, D*F) - gamma/(S + T) + 1009");
    (void)sym_print(e, flat, sizeof flat);
    for (size_t width = 1; width < 90; width++) {
        for (size_t indent = 0; indent < 7; indent += 3) {
            const size_t n = sym_print_wrapped(e, width, indent, buf, sizeof buf);
            assert_int_equal(n, strlen(buf));
            assert_ptr_equal(parse(f, buf), parse(f, flat));
            size_t longest = 0, column = 0;
            for (const char *s = buf; *s; s++) {
                column = *s == '\n' ? 0 : column + 1;
                if (column > longest) longest = column;
            }
            if (width >= indent + 10) assert_true(longest <= width);
        }
    }
    assert_int_equal(sym_print_wrapped(e, 200, 4, buf, sizeof buf), strlen(flat));
    assert_string_equal(buf, flat);
    (void)sym_print_wrapped(parse(f, "B*S*(H + T) + D*F + x"), 14, 2, buf, sizeof buf);
    assert_string_equal(buf, "x + D*F\n  + B*S*(T\n  + H)");
    (void)sym_print_wrapped(parse(f, "B*S*(H + T) + D*F + x"), 18, 2, buf, sizeof buf);
    assert_string_equal(buf, "x + D*F + B*S\n  *(T + H)");
    char cut[9];
    assert_true(sym_print_wrapped(e, 20, 2, cut, sizeof cut) > 60);
    assert_int_equal(strlen(cut), 8);
}

/* ---- random expressions ---- */

static uint32_t next(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

static const struct sym *random_expr(struct fixture *f, uint64_t *seed, int size, bool rational)
{
    struct sym_ctx *c = f->c;
    const uint32_t kind = next(seed) % (rational ? 6 : 10);
    if (size <= 1) {
        if (next(seed) % 4) return f->symbols[next(seed) % (N_NAMES - 2)].e;
        return sym_rat(c, (int64_t)(next(seed) % 97) - 48, (int64_t)(next(seed) % 13) + 1);
    }
    const struct sym *a = random_expr(f, seed, size / 2, rational),
                     *b = random_expr(f, seed, size - size / 2, rational);
    switch (kind) {
    case 0: return sym_add(c, a, b);
    case 1: return sym_sub(c, a, b);
    case 2:
    case 3: return sym_mul(c, a, b);
    case 4: return sym_constant(b, NULL) ? sym_mul(c, a, b) : sym_div(c, a, b);
    case 5: return sym_constant(a, NULL) ? a : sym_pow(c, a, sym_int(c, (int64_t)(next(seed) % 5) + 2));
    case 6: return sym_min(c, a, b);
    case 7: return sym_max(c, a, b);
    case 8: return sym_add(c, sym_ceil(c, a), b);
    default: return sym_mul(c, sym_floor(c, a), b);
    }
}

static void test_round_trip(void **state)
{
    struct fixture *f = *state;
    static char buf[1 << 16];
    uint64_t seed = 20011;
    size_t identical = 0, tried = 0;
    for (int i = 0; i < 3000; i++) {
        const struct sym *e = random_expr(f, &seed, 1 + (int)(next(&seed) % 25), i % 2 == 0);
        for (int style = SYM_TEXT; style <= SYM_LATEX; style++) {
            assert_true(sym_print_as(e, (enum sym_style)style, buf, sizeof buf) < sizeof buf);
            if (strpbrk(buf, ".") || strstr(buf, "e+") || strstr(buf, "e-") || strstr(buf, "10^{")) continue;
            const struct sym *back = parse(f, buf);
            uint64_t x = 0, y = 1;
            assert_true(sym_mod(e, &x) && sym_mod(back, &y));
            if (x != y) fail_msg("reads back to another value: %s", buf);
            tried++;
            identical += back == e;
        }
    }
    assert_true(tried > 5000);
    assert_true(identical * 4 > tried * 3);
}

/* ---- C, compiled ---- */

enum { N_COMPILED = 60, N_POINTS = 5 };

static void write_program(struct fixture *f, FILE *out, const struct sym *const *e)
{
    static char buf[1 << 15];
    (void)fputs("#include <math.h>\n#include <stdio.h>\n", out);
    for (int i = 0; i < N_COMPILED; i++) {
        (void)fprintf(out, "static double f%d(const double *v)\n{\n", i);
        for (size_t k = 0; k < N_NAMES; k++) {
            (void)sym_print_as(f->symbols[k].e, SYM_C, buf, sizeof buf);
            (void)fprintf(out, "    const double %s = v[%zu]; (void)%s;\n", buf, k, buf);
        }
        assert_true(sym_print_as(e[i], SYM_C, buf, sizeof buf) < sizeof buf);
        (void)fprintf(out, "    return %s;\n}\n", buf);
    }
    (void)fprintf(out, "int main(void)\n{\n    double v[%d];\n    for (int p = 0; p < %d; p++) {\n", N_NAMES, N_POINTS);
    (void)fprintf(out, "        for (int k = 0; k < %d; k++) v[k] = 3.0 + 1.375 * (7 * k %% 11) + 0.25 * p;\n",
                  N_NAMES);
    for (int i = 0; i < N_COMPILED; i++) (void)fprintf(out, "        printf(\"%%.17g\\n\", f%d(v));\n", i);
    (void)fputs("    }\n    return 0;\n}\n", out);
}

static void check_program(struct fixture *f, FILE *in, const struct sym *const *e)
{
    const struct sym *vars[N_NAMES];
    struct sym_tape *t = NULL;
    double v[N_NAMES], want[N_COMPILED], *out[N_COMPILED];
    const double *cols[N_NAMES];
    for (int k = 0; k < N_NAMES; k++) {
        vars[k] = f->symbols[k].e;
        cols[k] = &v[k];
    }
    for (int i = 0; i < N_COMPILED; i++) out[i] = &want[i];
    assert_int_equal(sym_tape_compile(f->a, N_COMPILED, e, N_NAMES, vars, &t, NULL), ERR_OK);
    for (int p = 0; p < N_POINTS; p++) {
        for (int k = 0; k < N_NAMES; k++) v[k] = 3.0 + 1.375 * (7 * k % 11) + 0.25 * p;
        sym_tape_eval(t, 1, cols, out);
        for (int i = 0; i < N_COMPILED; i++) {
            char line[64];
            assert_non_null(fgets(line, sizeof line, in));
            const double got = strtod(line, NULL);
            if (isfinite(want[i])) assert_true(fabs(got - want[i]) <= 1e-9 * fabs(want[i]));
        }
    }
}

static void test_compiled(void **state)
{
    struct fixture *f = *state;
    const struct sym *e[N_COMPILED];
    char dir[SCRATCH_MAX], path[SCRATCH_FILE_MAX], command[128 + 4 * SCRATCH_MAX];
    uint64_t seed = 7919;
    if (system("cc --version >/dev/null 2>&1") != 0) skip();
    for (int i = 0; i < N_COMPILED; i++) e[i] = random_expr(f, &seed, 2 + (int)(next(&seed) % 11), i % 3 == 0);
    (void)snprintf(path, sizeof path, "%s/e.c", scratch_dir(dir));
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    write_program(f, out, e);
    assert_int_equal(fclose(out), 0);
    (void)snprintf(command, sizeof command, "cc -std=c11 -O0 -o '%s/e' '%s/e.c' -lm && '%s/e' >'%s/out'", dir, dir, dir,
                   dir);
    const int status = system(command);
    (void)snprintf(path, sizeof path, "%s/out", dir);
    FILE *in = fopen(path, "r");
    scratch_remove(dir); /* the open file is read on */
    assert_int_equal(status, 0);
    assert_non_null(in);
    check_program(f, in, e);
    (void)fclose(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_structure, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_numbers, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_long_numbers, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_units, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_names, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_typography, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_latex_input, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_refusals, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_caret, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_equation, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_bounds, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_hostile_bounds, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_many_names, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_latex_output, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_code_output, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_wrapped, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_round_trip, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_compiled, open_fixture, close_fixture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
