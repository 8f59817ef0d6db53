/* Dot products of float32 rows with a query. Every row is added up in the same order, wherever it stands. */
#include "kernels.h"
#include "products.h"

enum { ROWS_AT_ONCE = 4 };

static void products_plain(const float *const rows[ROWS_AT_ONCE], int64_t dim, const float *asked, float *out) {
    for (int r = 0; r < ROWS_AT_ONCE; r++) {
        eight total = {0};
        float tail = 0;
        int64_t j = 0;
        for (; j + 8 <= dim; j += 8) total += *(const eight *)(rows[r] + j) * *(const eight *)(asked + j);
        for (; j < dim; j++) tail += rows[r][j] * asked[j];
        out[r] = sum_of(&total) + tail;
    }
}

#if HAS_WIDE
WIDE static void products_wide(const float *const rows[ROWS_AT_ONCE], int64_t dim, const float *asked, float *out) {
    __m256 total[ROWS_AT_ONCE][2];
    for (int r = 0; r < ROWS_AT_ONCE; r++) total[r][0] = total[r][1] = _mm256_setzero_ps();
    int64_t j = 0;
    for (; j + 16 <= dim; j += 16) {
        __m256 one = _mm256_loadu_ps(asked + j), two = _mm256_loadu_ps(asked + j + 8);
        for (int r = 0; r < ROWS_AT_ONCE; r++) {
            total[r][0] = _mm256_fmadd_ps(_mm256_loadu_ps(rows[r] + j), one, total[r][0]);
            total[r][1] = _mm256_fmadd_ps(_mm256_loadu_ps(rows[r] + j + 8), two, total[r][1]);
        }
    }
    for (int r = 0; r < ROWS_AT_ONCE; r++) {
        float tail = 0;
        for (int64_t n = j; n < dim; n++) tail += rows[r][n] * asked[n];
        eight both = (eight)_mm256_add_ps(total[r][0], total[r][1]);
        out[r] = sum_of(&both) + tail;
    }
}
#endif

void multiply_rows(const float *rows, int64_t dim, int64_t count, const float *asked, float *out) {
    float some[ROWS_AT_ONCE];
    for (int64_t row = 0; row < count; row += ROWS_AT_ONCE) {
        const float *those[ROWS_AT_ONCE];
        for (int r = 0; r < ROWS_AT_ONCE; r++) those[r] = rows + smaller(row + r, count - 1) * dim;
#if HAS_WIDE
        if (uses_wide()) products_wide(those, dim, asked, some);
        else
#endif
            products_plain(those, dim, asked, some);
        memcpy(out + row, some, sizeof(float) * smaller(ROWS_AT_ONCE, count - row));
    }
}
