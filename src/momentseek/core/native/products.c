/* Dot products of float32 rows with queries: four rows with three queries at a time, so that each number that is loaded
 * is used several times. */
#include "kernels.h"
#include "products.h"

enum { ROWS_AT_ONCE = 4 };

typedef float block_t[ASKED_AT_ONCE][ROWS_AT_ONCE];

static void multiply_plain(const float *const *rows, int64_t dim, const float *const *asked, block_t out) {
    for (int q = 0; q < ASKED_AT_ONCE; q++)
        for (int r = 0; r < ROWS_AT_ONCE; r++) {
            eight total = {0};
            float tail = 0;
            int64_t j = 0;
            for (; j + 8 <= dim; j += 8) total += *(const eight *)(rows[r] + j) * *(const eight *)(asked[q] + j);
            for (; j < dim; j++) tail += rows[r][j] * asked[q][j];
            out[q][r] = sum_of(&total) + tail;
        }
}

#if HAS_WIDE
/* The sum of a register's halves. */
WIDE INLINE __m128 fold(__m256 x) { return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1)); }

/* The sums of four registers, each added up in the order of `sum_of`. */
WIDE INLINE void sum_four(__m256 a, __m256 b, __m256 c, __m256 d, float *out) {
    __m128 one = fold(a), two = fold(b), three = fold(c), four = fold(d);
    one = _mm_add_ps(_mm_movelh_ps(one, two), _mm_movehl_ps(two, one));
    three = _mm_add_ps(_mm_movelh_ps(three, four), _mm_movehl_ps(four, three));
    _mm_storeu_ps(out, _mm_add_ps(_mm_shuffle_ps(one, three, 0x88), _mm_shuffle_ps(one, three, 0xdd)));
}

/* Sums are named one by one: an array of them would be written to memory in every round. */
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
#define BEGIN_ROW(R) __m256 one##R = _mm256_setzero_ps(), two##R = one##R, three##R = one##R;
#define ADD_ROW(R)                                       \
    {                                                    \
        __m256 row = _mm256_loadu_ps(rows[R] + j);       \
        one##R = _mm256_fmadd_ps(row, one, one##R);      \
        two##R = _mm256_fmadd_ps(row, two, two##R);      \
        three##R = _mm256_fmadd_ps(row, three, three##R); \
    }

WIDE static void multiply_wide(const float *const *rows, int64_t dim, const float *const *asked, block_t out) {
    int64_t j = 0;
    EACH_ROW(BEGIN_ROW)
    for (; j + 8 <= dim; j += 8) {
        __m256 one = _mm256_loadu_ps(asked[0] + j), two = _mm256_loadu_ps(asked[1] + j);
        __m256 three = _mm256_loadu_ps(asked[2] + j);
        EACH_ROW(ADD_ROW)
    }
    sum_four(one0, one1, one2, one3, out[0]);
    sum_four(two0, two1, two2, two3, out[1]);
    sum_four(three0, three1, three2, three3, out[2]);
    for (; j < dim; j++)
        for (int q = 0; q < ASKED_AT_ONCE; q++)
            for (int r = 0; r < ROWS_AT_ONCE; r++) out[q][r] += rows[r][j] * asked[q][j];
}
#endif

void multiply_rows(const float *rows, int64_t dim, int64_t count, const float *const *asked, int64_t queries,
                   float out[ASKED_AT_ONCE][PRODUCTS_AT_ONCE]) {
    const float *those[ROWS_AT_ONCE], *them[ASKED_AT_ONCE];
    block_t some;
    for (int q = 0; q < ASKED_AT_ONCE; q++) them[q] = asked[smaller(q, queries - 1)];
    for (int64_t row = 0; row < count; row += ROWS_AT_ONCE) {
        for (int r = 0; r < ROWS_AT_ONCE; r++) those[r] = rows + smaller(row + r, count - 1) * dim;
#if HAS_WIDE
        if (uses_wide()) multiply_wide(those, dim, them, some);
        else
#endif
            multiply_plain(those, dim, them, some);
        for (int64_t q = 0; q < queries; q++)
            memcpy(out[q] + row, some[q], sizeof(float) * smaller(ROWS_AT_ONCE, count - row));
    }
}
