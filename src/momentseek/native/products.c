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
WIDE static void multiply_wide(const float *const *rows, int64_t dim, const float *const *asked, block_t out) {
    __m256 total[ASKED_AT_ONCE][ROWS_AT_ONCE];
    for (int q = 0; q < ASKED_AT_ONCE; q++)
        for (int r = 0; r < ROWS_AT_ONCE; r++) total[q][r] = _mm256_setzero_ps();
    int64_t j = 0;
    for (; j + 8 <= dim; j += 8) {
        __m256 one = _mm256_loadu_ps(asked[0] + j), two = _mm256_loadu_ps(asked[1] + j);
        __m256 three = _mm256_loadu_ps(asked[2] + j);
        for (int r = 0; r < ROWS_AT_ONCE; r++) {
            __m256 row = _mm256_loadu_ps(rows[r] + j);
            total[0][r] = _mm256_fmadd_ps(row, one, total[0][r]);
            total[1][r] = _mm256_fmadd_ps(row, two, total[1][r]);
            total[2][r] = _mm256_fmadd_ps(row, three, total[2][r]);
        }
    }
    for (int q = 0; q < ASKED_AT_ONCE; q++)
        for (int r = 0; r < ROWS_AT_ONCE; r++) {
            eight whole = (eight)total[q][r];
            float tail = 0;
            for (int64_t n = j; n < dim; n++) tail += rows[r][n] * asked[q][n];
            out[q][r] = sum_of(&whole) + tail;
        }
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
