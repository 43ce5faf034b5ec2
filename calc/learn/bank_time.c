#include "calc/learn/bank.h"

const struct exercise *bank_time(size_t *n)
{
    *n = 0;
    return NULL;
}
