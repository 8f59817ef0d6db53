/* An orthogonal basis whose first directions hold most of what vectors vary in, on one thread.
 *
 * Power steps and orthogonalisation in turn: the libraries for matrices share even a small decomposition among threads
 * that wait for each other, which on a busy machine takes a hundred times as long. */
#include "kernels.h"
#include "float_panels.h"

INLINE float dot(const float *x, const float *y, int64_t dim) {
    eight total = {0};
    float tail = 0;
    int64_t j = 0;
    for (; j + 8 <= dim; j += 8) total += *(const eight *)(x + j) * *(const eight *)(y + j);
    for (; j < dim; j++) tail += x[j] * y[j];
    return sum_of(&total) + tail;
}

/* Make rows orthogonal, from the first to the last, and of length 1; twice, because once leaves rounding behind. */
INLINE void orthogonalise(float *rows, int64_t dim, int64_t stride) {
    for (int64_t i = 0; i < dim; i++) {
        float *row = rows + i * stride;
        for (int again = 0; again < 2; again++) {
            for (int64_t k = 0; k < i; k++) {
                float share = dot(row, rows + k * stride, dim);
                for (int64_t j = 0; j < dim; j++) row[j] -= share * rows[k * stride + j];
            }
            float length = sqrtf(dot(row, row, dim));
            for (int64_t j = 0; j < dim; j++) row[j] /= length;
        }
    }
}

static void orthogonalise_plain(float *rows, int64_t dim, int64_t stride) { orthogonalise(rows, dim, stride); }
#if HAS_WIDE
WIDE static void orthogonalise_wide(float *rows, int64_t dim, int64_t stride) { orthogonalise(rows, dim, stride); }
#else
#define orthogonalise_wide orthogonalise_plain
#endif

/* Turn the rows of `basis` (dim, places), orthogonal at first, towards the main directions of a symmetric matrix, given
 * as panels; those of its largest eigenvalues come first. The columns beyond `dim` are room to work in. */
EXPORT int64_t turn_basis(const float *panels, int64_t dim, int64_t rounds, float *basis) {
    int64_t places = places_of(dim);
    float *next = malloc(sizeof(float) * larger(1, dim) * larger(1, dim));
    if (!next) return NO_MEMORY;
    for (int64_t round = 0; round < rounds; round++) {
        for (int64_t i = 0; i < dim; i++) memcpy(next + i * dim, basis + i * places, sizeof(float) * dim);
        for (int64_t first = 0; first < places; first += PANEL)
            multiply_float_panel(next, dim, dim, panels + first * dim, basis + first, places);
        (uses_wide() ? orthogonalise_wide : orthogonalise_plain)(basis, dim, places);
    }
    free(next);
    return DONE;
}

/* out[row, vector] of float32 rows (count, dim) with vectors in panels; out is (count, the panels' places). */
EXPORT int64_t float_products(const float *rows, int64_t dim, int64_t count, const float *panels, int64_t places,
                              float *out) {
    for (int64_t first = 0; first < places; first += PANEL)
        multiply_float_panel(rows, dim, count, panels + first * dim, out + first, places);
    return DONE;
}
