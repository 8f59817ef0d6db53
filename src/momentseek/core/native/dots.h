/* Dot products of one stored row with a query: of bytes with 16-bit numbers, to the last bit, and of float16s with
 * float32s, always added up in the same order. */
#ifndef MOMENTSEEK_DOTS_H
#define MOMENTSEEK_DOTS_H

#include "kernels.h"

INLINE int32_t code_dot_plain(const int8_t *row, const int16_t *asked, int64_t dim) {
    int32_t total = 0;
    for (int64_t j = 0; j < dim; j++) total += (int32_t)row[j] * asked[j];
    return total;
}

#if HAS_WIDE
WIDE INLINE __m256i sixteen_products(const int8_t *row, const int16_t *asked) {
    __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)row));
    return _mm256_madd_epi16(wide, _mm256_loadu_si256((const __m256i *)asked));
}

WIDE INLINE int32_t code_dot_wide(const int8_t *row, const int16_t *asked, int64_t dim) {
    __m256i one = _mm256_setzero_si256(), two = one;
    int64_t j = 0;
    for (; j + 32 <= dim; j += 32) {
        one = _mm256_add_epi32(one, sixteen_products(row + j, asked + j));
        two = _mm256_add_epi32(two, sixteen_products(row + j + 16, asked + j + 16));
    }
    for (; j + 16 <= dim; j += 16) one = _mm256_add_epi32(one, sixteen_products(row + j, asked + j));
    one = _mm256_add_epi32(one, two);
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(one), _mm256_extracti128_si256(one, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
    return _mm_cvtsi128_si32(half) + code_dot_plain(row + j, asked + j, dim - j);
}
#endif

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

#endif
