#include "kernels/attend.h"

#define LANES_BODY "kernels/attend_body.h"
#include "kernels/lanes_all.h"
