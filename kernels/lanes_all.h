/* lanes_all -- LANES_BODY, the path of a kernel's body, compiled once for each instruction set; see kernels/lanes.h.
 * No include guard for the same reason. */
#include <math.h>
#include <string.h>

#include "kernels/vector.h"

#define LANES_SET 0
#include "kernels/lanes.h"
#include LANES_BODY
#undef LANES_SET

#if KERN_X86
#define LANES_SET 3
#include "kernels/lanes.h"
#include LANES_BODY
#undef LANES_SET

#define LANES_SET 4
#include "kernels/lanes.h"
#include LANES_BODY
#undef LANES_SET

#define LANES_SET 5
#include "kernels/lanes.h"
#include LANES_BODY
#undef LANES_SET
#endif

#if KERN_ARM
#define LANES_SET 1
#include "kernels/lanes.h"
#include LANES_BODY
#undef LANES_SET

#define LANES_SET 2
#include "kernels/lanes.h"
#include LANES_BODY
#undef LANES_SET
#endif

#undef LANES
#undef LANES_ARM
#undef LANES_PAIRS
#undef LANES_TARGET
#undef LANES_WIDE
#undef LANES_OP
#undef V
#undef LANES_BODY
