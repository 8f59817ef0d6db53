/* Which instructions may be used. */
#include "kernels.h"

#if HAS_WIDE
#include <cpuid.h>
#endif

enum { UNKNOWN = -1 };
static int wide = UNKNOWN;

static int find_wide(void) {
#if HAS_WIDE
    unsigned a, b, c, d, kept, high;
    const unsigned needed = bit_FMA | bit_OSXSAVE | bit_AVX | bit_F16C;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & needed) != needed) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2)) return 0;
    __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0)); /* what the system keeps when threads change */
    return (kept & 6) == 6;
#else
    return 0;
#endif
}

int uses_wide(void) {
    int known = __atomic_load_n(&wide, __ATOMIC_RELAXED);
    if (known == UNKNOWN) {
        known = find_wide();
        __atomic_store_n(&wide, known, __ATOMIC_RELAXED);
    }
    return known;
}

/* Use the kernels of every processor from here on (0), or those of this one (1); returns what is used now. */
EXPORT int64_t set_wide(int64_t wanted) {
    __atomic_store_n(&wide, wanted ? find_wide() : 0, __ATOMIC_RELAXED);
    return uses_wide();
}
