/* Upper bounds of the best clips of videos for many queries at once: the product with the video's mean in float32, and
 * the largest product with what its clips are beside it, in whole numbers.
 *
 * Two columns of a clip are spread over a register and meet those of sixteen queries in a panel (see `panels.c`). A
 * video's clips share one scale, so the largest of their sums is found among whole numbers, without leaving registers. */
#include "kernels.h"
#include "float_panels.h"

enum { ROWS_AT_ONCE = 4, VIDEOS_AT_ONCE = 24 };

/* The largest sum of rows (count, width), a multiple of four, with each query of a panel. */
static void largest_plain(const int16_t *rows, int64_t width, int64_t count, const int16_t *panel, int32_t *out) {
    for (int q = 0; q < PANEL; q++) out[q] = INT32_MIN;
    for (int64_t row = 0; row < count; row++)
        for (int q = 0; q < PANEL; q++) {
            int32_t sum = 0;
            for (int64_t j = 0; j < width; j += 2) {
                const int16_t *pair = panel + j * PANEL + 2 * q;
                sum += (int32_t)rows[row * width + j] * pair[0] + (int32_t)rows[row * width + j + 1] * pair[1];
            }
            out[q] = sum > out[q] ? sum : out[q];
        }
}

#if HAS_WIDE
/* Sums are named one by one: an array of them would be written to memory in every round. */
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
#define BEGIN_ROW(R) __m256i low##R = _mm256_setzero_si256(), high##R = low##R;
#define ADD_ROW(R)                                                          \
    {                                                                       \
        int32_t pair;                                                       \
        memcpy(&pair, those + R * width + j, 4);                            \
        __m256i both = _mm256_set1_epi32(pair);                             \
        low##R = _mm256_add_epi32(low##R, _mm256_madd_epi16(both, low));    \
        high##R = _mm256_add_epi32(high##R, _mm256_madd_epi16(both, high)); \
    }
#define KEEP_ROW(R)                                \
    first = _mm256_max_epi32(first, low##R);     \
    second = _mm256_max_epi32(second, high##R);

WIDE static void largest_wide(const int16_t *rows, int64_t width, int64_t count, const int16_t *panel, int32_t *out) {
    __m256i first = _mm256_set1_epi32(INT32_MIN), second = first;
    for (int64_t row = 0; row < count; row += ROWS_AT_ONCE) {
        const int16_t *those = rows + row * width, *at = panel;
        EACH_ROW(BEGIN_ROW)
        UNROLL
        for (int64_t j = 0; j < width; j += 2, at += 2 * PANEL) {
            __m256i low = _mm256_loadu_si256((const __m256i *)at), high = _mm256_loadu_si256((const __m256i *)at + 1);
            EACH_ROW(ADD_ROW)
        }
        EACH_ROW(KEEP_ROW)
    }
    _mm256_storeu_si256((__m256i *)out, first);
    _mm256_storeu_si256((__m256i *)out + 1, second);
}
#endif

typedef struct {
    const int8_t *codes;
    int64_t width, queries, places;
    const int16_t *panels;
    const float *steps, *lengths; /* (places) and (2, places) */
    const float *means, *asked;
    int64_t dim;
    const float *sizes;
    float *out;
    int64_t stride;
} bounds_t;

/* Add to a video's bounds, one per place, what its codes promise; `rows` are these as 16-bit numbers. */
INLINE void add_video(const bounds_t *b, int64_t video, const int16_t *rows, int64_t count, float *bounds) {
    const float *sizes = b->sizes + 3 * video;
    for (int64_t first = 0; first < b->places; first += PANEL) {
        int32_t sums[PANEL];
#if HAS_WIDE
        if (uses_wide()) largest_wide(rows, b->width, count, b->panels + first * b->width, sums);
        else
#endif
            largest_plain(rows, b->width, count, b->panels + first * b->width, sums);
        for (int n = 0; n < PANEL; n += 8) {
            eight sum = __builtin_convertvector(*(const eight_whole *)(sums + n), eight);
            const float *lengths = b->lengths + first + n;
            *(eight *)(bounds + first + n) += sum * *(const eight *)(b->steps + first + n) * sizes[0] +
                                              sizes[1] * *(const eight *)lengths +
                                              sizes[2] * *(const eight *)(lengths + b->places);
        }
    }
}

/* The rows of a video as 16-bit numbers, the last one again until there are a multiple of four; their number. */
INLINE int64_t widen_rows(const bounds_t *b, int64_t begin, int64_t end, int16_t *rows) {
    int64_t count = (end - begin + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE * ROWS_AT_ONCE;
    for (int64_t row = 0; row < count; row++) {
        const int8_t *codes = b->codes + smaller(begin + row, end - 1) * b->width;
        for (int64_t j = 0; j < b->width; j++) rows[row * b->width + j] = codes[j];
    }
    return count;
}

/* Add to out[q, v], for the videos low <= v < high, how much their best rows come to at most: the query's product with
 * the mean (videos, dim); step, scale and largest sum multiplied; and two products of lengths, (2, places) of queries
 * and those beside the scale in `sizes` (videos, 3). A video without rows gets minus infinity. `panels` hold the
 * queries' codes, two columns at a time, and `asked` the queries themselves; `width` is even. */
EXPORT int64_t add_bounds_of_best(const int8_t *codes, int64_t width, const int64_t *offsets, int64_t videos,
                                  int64_t rows, const int16_t *panels, int64_t queries, const float *steps,
                                  const float *lengths, const float *means, const float *asked, int64_t dim,
                                  const float *sizes, float *out, int64_t stride, int64_t low, int64_t high) {
    bounds_t b = {codes, width, queries, places_of(queries), panels, steps, lengths, means, asked, dim, sizes, out, stride};
    videos_t of = {offsets, videos, rows, NULL};
    int64_t begin, end, most = 1;
    for (int64_t video = low; video < high; video++) {
        if (!rows_of(&of, video, &begin, &end)) return OUTSIDE;
        most = larger(most, end - begin);
    }
    int16_t *wide = malloc(sizeof(int16_t) * (most + ROWS_AT_ONCE) * larger(1, width));
    float *bounds = malloc(sizeof(float) * VIDEOS_AT_ONCE * larger(1, b.places));
    for (int64_t first = low; wide && bounds && first < high; first += VIDEOS_AT_ONCE) {
        int64_t some = smaller(VIDEOS_AT_ONCE, high - first);
        for (int64_t place = 0; place < b.places; place += PANEL)
            multiply_float_panel(means + first * dim, dim, some, asked + place * dim, bounds + place, b.places);
        for (int64_t n = 0; n < some; n++) {
            rows_of(&of, first + n, &begin, &end);
            if (begin < end) add_video(&b, first + n, wide, widen_rows(&b, begin, end, wide), bounds + n * b.places);
            else
                for (int64_t q = 0; q < queries; q++) bounds[n * b.places + q] = -INFINITY;
        }
        for (int64_t q = 0; q < queries; q++)
            for (int64_t n = 0; n < some; n++) out[q * stride + first + n] += bounds[n * b.places + q];
    }
    int64_t state = wide && bounds ? DONE : NO_MEMORY;
    free(wide);
    free(bounds);
    return state;
}
