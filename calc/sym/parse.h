/* parse -- what a person types, as an expression.
 *
 *   equation  = expression "=" expression
 *   sum       = sign* term { ("+" | "-") sign* term }
 *   term      = power { ("*" | "/") sign* power  |  power }      juxtaposition is multiplication
 *   power     = operand [superscript] [ ("^" | "**") sign* power ]
 *   operand   = number | name | call | "(" sum ")" | "[" sum "]" | "{" sum "}" | ceil and floor brackets
 *   call      = ("min" | "max") "(" sum { "," sum } ")" | ("ceil" | "floor") "(" sum ")" | "pow" "(" sum "," sum ")"
 *             | ("log" | "ln" | "exp" | "sqrt" | "log2" | "log10" | "log_" digits | "sqrt" "[" number "]")
 *               ( "(" sum ")" | "{" sum "}" | power )
 *             | "sum" "(" sum "," name "," sum "," sum ")" | "\sum" "_" "{" name "=" sum "}" "^" operand term
 *             | name of the caller's "(" text without parentheses ")"
 *
 * Choices where people differ:
 *   - juxtaposition binds exactly like * and /, and all three go from left to right: 1/2B is (1/2)*B, a/bc is (a/b)*c;
 *   - -x^2 is -(x^2); x^y^z is x^(y^z); x^-2 is allowed; 2^x² is 2^(x^2), x²^3 is (x^2)^3;
 *   - names are the caller's, the longest that matches first and never taken back: with B, T and b_kv known, BT is B*T
 *     and b_kv one symbol; case counts. A function name counts as one only in front of "(", log, ln, exp and sqrt also
 *     in front of "{" and of a name: log B^2 is log(B^2), and log B S is refused: it needs brackets. H_{v} and H_v are
 *     Hv where there is no H_v;
 *   - log and ln are the natural logarithm, log_2 x and log10(x) have another base, sqrt(x) is x^(1/2), sqrt[3](x) is
 *     x^(1/3), abs is none;
 *   - sum(i^2, i, 1, n) and \sum_{i=1}^{n} i^2 bind i in what is summed, not in the bounds; it may be any name, and
 *     hides one of the caller's. \sum takes the term behind it, to the next + or -. The sum becomes its closed form at
 *     once; which there are, sym_sum_range says;
 *   - no number follows an operand without an operator (B2, x 2, 1 000 are refused);
 *   - decimals are exact rationals (0.5 is 1/2, 2.5e3 is 2500), whole numbers exact whatever their length; another one
 *     that int64/int64 cannot hold is its nearest double.
 *     "e" with digits behind a number is always an exponent, "E" unless E is a name of the caller's.
 * Where the caller wants units, a number literal, or a power of one by one as 2^30, takes the unit behind it, with
 * blanks between or not: 5TB, 80 GiB, 50 ms, 1s, 2 min, 3.35 TB/s, 989 TFLOPS, 400Gbps, 20 kB/token, 4096 tokens, 25%;
 * what units_read_word reads of bytes, flops, seconds, tokens, parts of one, and their rates. kB, MB, GB, TB, PB and
 * KiB to PiB behind a number are always units; any other word is one only when it is no product of known symbols and no
 * call: 2B, 2BDF, 6BTDF, 2H and 3KB stay products where B, D, ... are symbols, 2 min(S, T) a minimum. The stroke of a
 * rate has no blanks around it, and what is behind it is no symbol: 5MB/B divides by B. No units: b for bits, times in
 * capitals, money, watts.
 * Also read: √ (of one operand), ½ ¼ ¾, $...$ and \( \) around a formula, superscripts ² ⁻¹, − – × · ⋅ ∙ ∗ ÷ ∕ ⁄ ⌈⌉
 * ⌊⌋, the spaces of typesetting, and of LaTeX \frac{}{}, \frac12, \sqrt[3]{}, \cdot \times \ast \div, \left \right and
 * the \big family, \min \max \log \ln \exp \sqrt{}, \lceil \rceil \lfloor \rfloor, \mathrm{} \text{} \operatorname{}
 * and the like around a name, \, \; \: \! \quad, and subscripts: b_{kv} and b_{\mathrm{kv}} are b_kv. Any other \word
 * is the name word. x^23 is x to the 23rd, as typed, not LaTeX's x^2 3.
 *
 * Limits, each refused with ERR_RANGE: 64 KiB of text, PARSE_DEPTH_MAX nested brackets and exponents, 10,000 symbols,
 * constant exponents beyond 1000 (of a decimal: also more than 6 digits), division by zero, the logarithm of a number
 * that is not positive, sums without a closed form or of more than RANGE_WORK steps altogether. Everything else that is
 * refused is ERR_USAGE. Cost: linear in the text times the names that begin with the same byte, and n log n in the
 * terms of a sum, besides the steps of sums over ranges; the C stack is bounded by PARSE_DEPTH_MAX. */
#ifndef RIDGE_SYM_PARSE_H
#define RIDGE_SYM_PARSE_H

#include <stddef.h>

#include "calc/base/err.h"
#include "calc/sym/sym.h"

enum { PARSE_BYTES_MAX = 1 << 16, PARSE_DEPTH_MAX = 200, PARSE_SYMBOLS_MAX = 10000, PARSE_EXPONENT_MAX = 1000 };

struct parse_symbol {
    const char *text; /* not empty, not beginning with a digit; of two equal ones the first counts */
    const struct sym *e;
};

struct parse_names {
    const struct parse_symbol *symbols;
    size_t n_symbols;
    const char *const *calls; /* names that resolve answers for; they win over a symbol of the same name before "(" */
    size_t n_calls;
    /* The value of name(argument), as in flops(attention). argument is trimmed, not empty, UTF-8 without controls, and
     * lives only during the call. On an error e->text is one sentence without a position, which is added. May be NULL
     * when n_calls is 0. */
    enum err_code (*resolve)(void *user, const char *name, const char *argument, const struct sym **out, struct err *e);
    void *user;
    bool units; /* numbers may have units behind them, taken to base units: see above */
    bool dims;  /* such a number becomes what it is measured in instead (calc/sym/dims.h) */
};

/* Where the error is, for two lines below the sentence. */
struct parse_error {
    size_t column;     /* character of the text, from 1; 0 when the error has no place */
    char excerpt[384]; /* the text around it, fit for a terminal, on one line */
    char caret[128];   /* spaces and a '^' under the character */
};

/* sym_parse, sym_parse_equation -- read text (len bytes, UTF-8). where may be NULL. The sentence in e says the column
 * and, for an unknown name, those nearest to it. On failure the out-pointers are untouched.
 * Errors: ERR_USAGE not such an expression or equation, ERR_RANGE a limit above, ERR_NOMEM, whatever resolve returns.
 */
enum err_code sym_parse(struct sym_ctx *c, const char *text, size_t len, const struct parse_names *names,
                        const struct sym **out, struct parse_error *where, struct err *e);
enum err_code sym_parse_equation(struct sym_ctx *c, const char *text, size_t len, const struct parse_names *names,
                                 const struct sym **lhs, const struct sym **rhs, struct parse_error *where,
                                 struct err *e);

#endif
