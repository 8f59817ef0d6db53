/* Blocks of a coarse list: 32 vectors side by side in 4 bits per two columns, two codes in a byte, and what a query's
 * tables make of them. One shuffle looks up 32 numbers of 7 bits, two of them are added in a byte, and these are summed
 * in 16 bits (André et al. 2017). */
#ifndef MOMENTSEEK_BLOCKS_H
#define MOMENTSEEK_BLOCKS_H

#include "kernels.h"

enum { CENTRES = 16, VECTORS_PER_BLOCK = 32 };

/* Sums of the 32 vectors of a block; `tables` are (2 * bytes, 16). One bit is set for each sum from `least` on. */
INLINE uint32_t sum_block_plain(const uint8_t *block, const uint8_t *tables, int64_t bytes, uint16_t least,
                                uint16_t *sums) {
    uint32_t bits = 0;
    memset(sums, 0, sizeof(uint16_t) * VECTORS_PER_BLOCK);
    for (int64_t j = 0; j < bytes; j++, block += VECTORS_PER_BLOCK, tables += 2 * CENTRES)
        for (int v = 0; v < VECTORS_PER_BLOCK; v++)
            sums[v] = (uint16_t)(sums[v] + tables[block[v] & 15] + tables[CENTRES + (block[v] >> 4)]);
    for (int v = 0; v < VECTORS_PER_BLOCK; v++) bits |= (uint32_t)(sums[v] >= least) << v;
    return bits;
}

#if HAS_WIDE
/* The same in registers; the sums are only written if a bit is set. */
WIDE INLINE uint32_t sum_block_wide(const uint8_t *block, const uint8_t *tables, int64_t bytes, uint16_t least,
                                    uint16_t *sums) {
    const __m256i nibble = _mm256_set1_epi8(15), upper = _mm256_set1_epi16((short)0xff00);
    const __m256i wanted = _mm256_set1_epi16((short)least);
    __m256i even = _mm256_setzero_si256(), odd = even; /* the vectors 0, 2, 4 and so on, and the others */
    UNROLL
    for (int64_t j = 0; j < bytes; j++, block += VECTORS_PER_BLOCK) {
        __m256i codes = _mm256_loadu_si256((const __m256i *)block);
        __m256i low = _mm256_and_si256(codes, nibble), high = _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble);
        const __m128i *mine = (const __m128i *)(tables + j * 2 * CENTRES);
        __m256i one = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(mine)), low);
        __m256i two = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(mine + 1)), high);
        __m256i sum = _mm256_add_epi8(one, two);
        even = _mm256_add_epi16(even, sum); /* and 256 times the odd ones, which are taken off at the end */
        odd = _mm256_add_epi16(odd, _mm256_srli_epi16(sum, 8));
    }
    even = _mm256_sub_epi16(even, _mm256_slli_epi16(odd, 8));
    __m256i some = _mm256_cmpeq_epi16(_mm256_max_epu16(even, wanted), even);
    __m256i others = _mm256_cmpeq_epi16(_mm256_max_epu16(odd, wanted), odd);
    uint32_t bits = (uint32_t)_mm256_movemask_epi8(_mm256_blendv_epi8(some, others, upper));
    if (bits) {
        __m256i first = _mm256_unpacklo_epi16(even, odd), second = _mm256_unpackhi_epi16(even, odd);
        _mm256_storeu_si256((__m256i *)sums, _mm256_permute2x128_si256(first, second, 0x20));
        _mm256_storeu_si256((__m256i *)sums + 1, _mm256_permute2x128_si256(first, second, 0x31));
    }
    return bits;
}
#endif

#endif
