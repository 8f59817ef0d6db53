/* Exact scores of videos: the largest dot product of their float16 rows with a float32 query.
 *
 * Every row is added up in the same order, so equal rows score alike wherever they stand. */
#include "dots.h"

enum { ROWS_AHEAD = 16 };

#define DEFINE_SCORES(NAME, DOT)                                                                                     \
    static int NAME(const uint16_t *half, int64_t dim, const videos_t *of, const float *asked, float *out,           \
                    int64_t low, int64_t high) {                                                                     \
        int state = DONE;                                                                                            \
        runner_t ahead = start_runner(of, low, high);                                                                \
        for (int n = 0; n < ROWS_AHEAD; n++) fetch_row(&ahead, (const char *)half, 2 * dim);                         \
        for (int64_t video = low; video < high; video++) {                                                           \
            int64_t begin, end;                                                                                      \
            if (!rows_of(of, video, &begin, &end)) state = OUTSIDE;                                                  \
            float best = -INFINITY;                                                                                  \
            for (int64_t row = begin; row < end; row++) {                                                            \
                fetch_row(&ahead, (const char *)half, 2 * dim);                                                      \
                float total = DOT(half + row * dim, asked, dim);                                                     \
                if (total > best && total < INFINITY) best = total;                                                  \
            }                                                                                                        \
            out[video] = best;                                                                                       \
        }                                                                                                            \
        return state;                                                                                                \
    }

DEFINE_SCORES(scores_plain, half_dot_plain)
#if HAS_WIDE
WIDE DEFINE_SCORES(scores_wide, half_dot_wide)
#endif

/* out[n] of the n-th video meant, for low <= n < high; minus infinity without a row whose score is a number. */
EXPORT int64_t scores_of_one(const uint16_t *half, int64_t dim, const int64_t *offsets, int64_t videos, int64_t rows,
                             const int64_t *places, const float *asked, float *out, int64_t low, int64_t high) {
    videos_t of = {offsets, videos, rows, places};
#if HAS_WIDE
    if (uses_wide()) return scores_wide(half, dim, &of, asked, out, low, high);
#endif
    return scores_plain(half, dim, &of, asked, out, low, high);
}

#if HAS_WIDE
WIDE static int64_t widen_wide(const uint16_t *half, float *out, int64_t count) {
    int64_t n = 0;
    for (; n + 8 <= count; n += 8) _mm256_storeu_ps(out + n, halves(half + n));
    return n;
}
#endif

/* The numbers that float16s stand for. */
EXPORT int64_t widen_halves(const uint16_t *half, float *out, int64_t count) {
    int64_t n = 0;
#if HAS_WIDE
    if (uses_wide()) n = widen_wide(half, out, count);
#endif
    for (; n < count; n++) out[n] = widen(half[n]);
    return DONE;
}
