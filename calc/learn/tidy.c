#include "calc/learn/tidy.h"

#include "calc/sym/normal.h"

enum err_code tidy(struct sym_ctx *c, const struct sym *e, const struct sym **out, struct err *err)
{
    const struct sym *num, *den, *minus = sym_int(c, -1);
    enum sym_sign sign;
    TRY(sym_normal(c, e, out, err));
    if (sym_op(*out) != SYM_DIV && sym_op(*out) != SYM_MUL) return ERR_OK;
    TRY(sym_fraction(c, *out, &num, &den, err));
    if (sym_constant(den, NULL)) return ERR_OK;
    TRY(sym_sign(c, num, &sign, err));
    if (sign != SYM_SIGN_MINUS) return ERR_OK;
    TRY(sym_normal(c, sym_mul(c, minus, num), &num, err));
    TRY(sym_normal(c, sym_mul(c, minus, den), &den, err));
    *out = sym_div(c, num, den);
    return sym_check(c, err);
}
