/* Upper bounds of videos' scores for one query: bytes times 16-bit numbers, summed in 32 bits, so to the last bit.
 *
 * Each row is read once and fused with the maximum of its video, as fast as memory delivers it. */
#include "dots.h"

enum { ROWS_AHEAD = 24 };

typedef struct {
    const int8_t *codes;
    const float *scales;
    int64_t dim;
    const int16_t *asked;
    float step, slack;
} query_t;

#define DEFINE_BOUNDS(NAME, DOT)                                                                          \
    static int NAME(const query_t *q, const videos_t *of, float *out, int64_t low, int64_t high) {        \
        int state = DONE;                                                                                 \
        runner_t ahead = start_runner(of, low, high);                                                     \
        for (int n = 0; n < ROWS_AHEAD; n++) fetch_row(&ahead, (const char *)q->codes, q->dim);           \
        for (int64_t video = low; video < high; video++) {                                                \
            int64_t begin, end;                                                                           \
            if (!rows_of(of, video, &begin, &end)) state = OUTSIDE;                                       \
            float best = -INFINITY;                                                                       \
            for (int64_t row = begin; row < end; row++) {                                                 \
                fetch_row(&ahead, (const char *)q->codes, q->dim);                                        \
                int32_t total = DOT(q->codes + row * q->dim, q->asked, q->dim);                           \
                float bound = q->scales[row] * ((float)total * q->step + q->slack);                       \
                if (bound > best) best = bound;                                                           \
            }                                                                                             \
            out[video] = best;                                                                            \
        }                                                                                                 \
        return state;                                                                                     \
    }

DEFINE_BOUNDS(bounds_plain, code_dot_plain)
#if HAS_WIDE
WIDE DEFINE_BOUNDS(bounds_wide, code_dot_wide)
#endif

/* out[n] of the n-th video meant, for low <= n < high; minus infinity without a row whose bound is a number. */
EXPORT int64_t bounds_of_one(const int8_t *codes, const float *scales, int64_t dim, const int64_t *offsets,
                             int64_t videos, int64_t rows, const int64_t *places, const int16_t *asked,
                             const float *step, const float *slack, float *out, int64_t low, int64_t high) {
    query_t q = {codes, scales, dim, asked, *step, *slack};
    videos_t of = {offsets, videos, rows, places};
#if HAS_WIDE
    if (uses_wide()) return bounds_wide(&q, &of, out, low, high);
#endif
    return bounds_plain(&q, &of, out, low, high);
}
