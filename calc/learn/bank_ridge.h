/* bank_ridge -- the exercises of the first set that are about devices; rows of bank_intensity. */
#ifndef RIDGE_LEARN_BANK_RIDGE_H
#define RIDGE_LEARN_BANK_RIDGE_H

#include "calc/learn/bank.h"

enum err_code bank_ridge_h100(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_ridge_device(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_ridge_cpu(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_ridge_bound(struct exercise_maker *m, struct exercise_question *q, struct err *e);
enum err_code bank_ridge_batch(struct exercise_maker *m, struct exercise_question *q, struct err *e);

#endif
