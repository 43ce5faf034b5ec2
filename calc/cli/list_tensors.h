/* list_tensors -- `ridge list tensors PATH`: what a checkpoint holds; private to the command. */
#ifndef RIDGE_CLI_LIST_TENSORS_H
#define RIDGE_CLI_LIST_TENSORS_H

#include "calc/base/table.h"

/* list_tensors -- a row per tensor; text and md add the totals by format behind it. With by_type the totals alone, in
 * any format. Errors: those of tensors_open and of the tables. */
enum err_code list_tensors(struct arena *a, const char *path, bool by_type, enum table_format format, struct out *o,
                           struct err *e);

#endif
