/* Upper bounds of videos' scores for one query: bytes times 16-bit numbers, summed in 32 bits, so to the last bit.
 *
 * Each row is read once and fused with the maximum of its video, as fast as memory delivers it. */
#include "kernels.h"

enum { ROWS_AHEAD = 24 };

INLINE int32_t dot_plain(const int8_t *row, const int16_t *asked, int64_t dim) {
    int32_t total = 0;
    for (int64_t j = 0; j < dim; j++) total += (int32_t)row[j] * asked[j];
    return total;
}

#if HAS_WIDE
WIDE INLINE __m256i sixteen(const int8_t *row, const int16_t *asked) {
    __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)row));
    return _mm256_madd_epi16(wide, _mm256_loadu_si256((const __m256i *)asked));
}

WIDE INLINE int32_t dot_wide(const int8_t *row, const int16_t *asked, int64_t dim) {
    __m256i one = _mm256_setzero_si256(), two = one;
    int64_t j = 0;
    for (; j + 32 <= dim; j += 32) {
        one = _mm256_add_epi32(one, sixteen(row + j, asked + j));
        two = _mm256_add_epi32(two, sixteen(row + j + 16, asked + j + 16));
    }
    for (; j + 16 <= dim; j += 16) one = _mm256_add_epi32(one, sixteen(row + j, asked + j));
    one = _mm256_add_epi32(one, two);
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(one), _mm256_extracti128_si256(one, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
    return _mm_cvtsi128_si32(half) + dot_plain(row + j, asked + j, dim - j);
}
#endif

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

DEFINE_BOUNDS(bounds_plain, dot_plain)
#if HAS_WIDE
WIDE DEFINE_BOUNDS(bounds_wide, dot_wide)
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

typedef struct {
    const int32_t *which;
    int64_t rows; /* how many there are */
} rows_t;

#define DEFINE_ROWS(NAME, DOT)                                                                                \
    static int NAME(const query_t *q, const rows_t *of, float *out, int64_t low, int64_t high) {              \
        int state = DONE;                                                                                     \
        for (int64_t n = low; n < high; n++) {                                                                \
            int64_t row = of->which[n], next = n + ROWS_AHEAD < high ? of->which[n + ROWS_AHEAD] : -1;        \
            out[n] = -INFINITY;                                                                               \
            if (next >= 0 && next < of->rows)                                                                 \
                for (int64_t j = 0; j < q->dim; j += 64) __builtin_prefetch(q->codes + next * q->dim + j);    \
            if (row < 0 || row >= of->rows) {                                                                 \
                state = OUTSIDE;                                                                              \
                continue;                                                                                     \
            }                                                                                                 \
            int32_t total = DOT(q->codes + row * q->dim, q->asked, q->dim);                                   \
            float bound = q->scales[row] * ((float)total * q->step + q->slack);                               \
            if (bound > out[n]) out[n] = bound;                                                               \
        }                                                                                                     \
        return state;                                                                                         \
    }

DEFINE_ROWS(rows_plain, dot_plain)
#if HAS_WIDE
WIDE DEFINE_ROWS(rows_wide, dot_wide)
#endif

/* out[n] of the row which[n], for low <= n < high; minus infinity if it is no number. */
EXPORT int64_t bounds_of_rows(const int8_t *codes, const float *scales, int64_t dim, int64_t rows,
                              const int32_t *which, const int16_t *asked, const float *step, const float *slack,
                              float *out, int64_t low, int64_t high) {
    query_t q = {codes, scales, dim, asked, *step, *slack};
    rows_t of = {which, rows};
#if HAS_WIDE
    if (uses_wide()) return rows_wide(&q, &of, out, low, high);
#endif
    return rows_plain(&q, &of, out, low, high);
}
