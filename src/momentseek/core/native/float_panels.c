/* Products of float32 rows with sixteen vectors that lie side by side in a panel, column after column: a number of a row
 * is spread over a register and meets those of all vectors, so nothing is added up across a register. */
#include "kernels.h"
#include "float_panels.h"

enum { ROWS_AT_ONCE = 6 };

static void multiply_plain(const float *const *rows, int64_t dim, const float *panel, float out[ROWS_AT_ONCE][PANEL]) {
    memset(out, 0, sizeof(float) * ROWS_AT_ONCE * PANEL);
    for (int64_t j = 0; j < dim; j++, panel += PANEL)
        for (int r = 0; r < ROWS_AT_ONCE; r++)
            for (int n = 0; n < PANEL; n++) out[r][n] += rows[r][j] * panel[n];
}

#if HAS_WIDE
/* Sums are named one by one: an array of them would be written to memory in every round. */
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#define BEGIN_ROW(R) __m256 low##R = _mm256_setzero_ps(), high##R = low##R;
#define ADD_ROW(R)                                          \
    {                                                       \
        __m256 number = _mm256_broadcast_ss(rows[R] + j);   \
        low##R = _mm256_fmadd_ps(number, low, low##R);      \
        high##R = _mm256_fmadd_ps(number, high, high##R);   \
    }
#define STORE_ROW(R)                     \
    _mm256_storeu_ps(out[R], low##R);    \
    _mm256_storeu_ps(out[R] + 8, high##R);

WIDE static void multiply_wide(const float *const *rows, int64_t dim, const float *panel,
                               float out[ROWS_AT_ONCE][PANEL]) {
    EACH_ROW(BEGIN_ROW)
    for (int64_t j = 0; j < dim; j++, panel += PANEL) {
        __m256 low = _mm256_loadu_ps(panel), high = _mm256_loadu_ps(panel + 8);
        EACH_ROW(ADD_ROW)
    }
    EACH_ROW(STORE_ROW)
}
#endif

void multiply_float_panel(const float *rows, int64_t dim, int64_t count, const float *panel, float *out,
                          int64_t stride) {
    for (int64_t row = 0; row < count; row += ROWS_AT_ONCE) {
        const float *those[ROWS_AT_ONCE];
        float some[ROWS_AT_ONCE][PANEL];
        for (int r = 0; r < ROWS_AT_ONCE; r++) those[r] = rows + smaller(row + r, count - 1) * dim;
#if HAS_WIDE
        if (uses_wide()) multiply_wide(those, dim, panel, some);
        else
#endif
            multiply_plain(those, dim, panel, some);
        for (int64_t r = 0; r < smaller(ROWS_AT_ONCE, count - row); r++)
            memcpy(out + (row + r) * stride, some[r], sizeof(some[r]));
    }
}
