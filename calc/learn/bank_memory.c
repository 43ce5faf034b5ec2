#include "calc/learn/bank.h"

const struct exercise *bank_memory(size_t *n)
{
    *n = 0;
    return NULL;
}
