/* bank_serving -- makers of the sixth set, one prototype each: caches in blocks (bank_paged.c), requests and steps
 * (bank_queue.c), GPUs that share the traffic (bank_fleet.c). All as `make` of struct exercise. */
#ifndef RIDGE_LEARN_BANK_SERVING_H
#define RIDGE_LEARN_BANK_SERVING_H

#include "calc/learn/bank_arch.h"

BANK_MAKER(bank_paged_waste);
BANK_MAKER(bank_paged_copies);
BANK_MAKER(bank_paged_prefix);

BANK_MAKER(bank_queue_static);
BANK_MAKER(bank_queue_little);
BANK_MAKER(bank_queue_cache);
BANK_MAKER(bank_queue_closed);
BANK_MAKER(bank_queue_pace);
BANK_MAKER(bank_queue_wait);

BANK_MAKER(bank_fleet_cache);
BANK_MAKER(bank_fleet_step);
BANK_MAKER(bank_fleet_price);

#endif
