/* Exact scores of videos: the largest dot product of their float16 rows with a float32 query.
 *
 * Every row is added up in the same order, so equal rows score alike wherever they stand. */
#include "kernels.h"

enum { ROWS_AHEAD = 16 };

INLINE float tail_of(const uint16_t *row, const float *asked, int64_t from, int64_t dim) {
    float total = 0;
    for (int64_t j = from; j < dim; j++) total += widen(row[j]) * asked[j];
    return total;
}

INLINE float half_dot_plain(const uint16_t *row, const float *asked, int64_t dim) {
    eight total = {0};
    int64_t j = 0;
    for (; j + 8 <= dim; j += 8) {
        eight x;
        for (int n = 0; n < 8; n++) x[n] = widen(row[j + n]);
        total += x * *(const eight *)(asked + j);
    }
    return sum_of(&total) + tail_of(row, asked, j, dim);
}

#if HAS_WIDE
WIDE INLINE __m256 halves(const uint16_t *row) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)row)); }

WIDE INLINE float half_dot_wide(const uint16_t *row, const float *asked, int64_t dim) {
    __m256 total[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    int64_t j = 0;
    for (; j + 32 <= dim; j += 32)
        for (int n = 0; n < 4; n++)
            total[n] = _mm256_fmadd_ps(halves(row + j + 8 * n), _mm256_loadu_ps(asked + j + 8 * n), total[n]);
    for (; j + 8 <= dim; j += 8) total[0] = _mm256_fmadd_ps(halves(row + j), _mm256_loadu_ps(asked + j), total[0]);
    eight whole = (eight)_mm256_add_ps(_mm256_add_ps(total[0], total[1]), _mm256_add_ps(total[2], total[3]));
    return sum_of(&whole) + tail_of(row, asked, j, dim);
}
#endif

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
