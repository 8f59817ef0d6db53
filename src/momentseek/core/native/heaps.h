/* Binary heaps: whatever comes before all others is on top. */
#ifndef MOMENTSEEK_HEAPS_H
#define MOMENTSEEK_HEAPS_H
#include "kernels.h"

/* Define NAME(heap, count, at), which moves an entry down to where it belongs; COMES_FIRST compares two of them. */
#define DEFINE_SINK(NAME, TYPE, COMES_FIRST)                                                           \
    INLINE void NAME(TYPE *heap, int64_t count, int64_t at) {                                          \
        TYPE moved = heap[at];                                                                         \
        for (int64_t child; (child = 2 * at + 1) < count; at = child) {                                \
            if (child + 1 < count && COMES_FIRST(heap + child + 1, heap + child)) child++;             \
            if (!COMES_FIRST(heap + child, &moved)) break;                                             \
            heap[at] = heap[child];                                                                    \
        }                                                                                              \
        heap[at] = moved;                                                                              \
    }

#endif
