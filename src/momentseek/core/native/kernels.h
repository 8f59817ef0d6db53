/* What all kernels share. C11 with the vector types of GCC and Clang; a function is compiled for every processor of the
 * platform, and once more, on x86-64, for those with AVX2, FMA and F16C, which is chosen when it is called. */
#ifndef MOMENTSEEK_KERNELS_H
#define MOMENTSEEK_KERNELS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define INLINE static inline __attribute__((always_inline))

/* Before a loop: do four rounds at a time. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll 4")
#else
#define UNROLL _Pragma("GCC unroll 4")
#endif

#if defined(__x86_64__)
#define HAS_WIDE 1
#define WIDE __attribute__((target("avx2,fma,f16c")))
#include <immintrin.h>
#else
#define HAS_WIDE 0
#define WIDE
#endif

/* Whether the kernels for AVX2, FMA and F16C may be used. */
int uses_wide(void);

/* Results of kernels: everything was done, a place lay outside its array (nothing was read there), or there was no memory. */
enum { DONE = 0, OUTSIDE = 1, NO_MEMORY = 2 };

/* Eight numbers anywhere in memory. */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

typedef int32_t eight_whole __attribute__((vector_size(32), aligned(4), may_alias));

/* The larger of each two; the first where the second is no number. */
INLINE eight larger_of(eight one, eight two) {
    eight_whole more = (eight_whole)(two > one);
    return (eight)(((eight_whole)two & more) | ((eight_whole)one & ~more));
}

/* The sum of eight numbers; by their address, since how vectors are handed over differs with the processor. */
INLINE float sum_of(const eight *at) {
    eight x = *at;
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

/* The number that a float16 stands for. */
INLINE float widen(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu, bits;
    float value;
    if (rest >= 0x7c00u) { /* infinite, or no number */
        bits = sign | 0x7f800000u | (rest & 0x3ffu) << 13;
    } else if (rest >= 0x400u) {
        bits = sign | ((rest << 13) + 0x38000000u);
    } else {
        value = (float)rest * 0x1p-24f;
        memcpy(&bits, &value, 4);
        bits |= sign;
    }
    memcpy(&value, &bits, 4);
    return value;
}

INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Rows of some videos: those of place p are offsets[p] up to offsets[p + 1]. */
typedef struct {
    const int64_t *offsets;
    int64_t videos; /* how many there are */
    int64_t rows;   /* how many rows there are */
    const int64_t *places; /* the places of the videos meant, or NULL for 0, 1, 2 and so on */
} videos_t;

/* First and last row of the n-th video that is meant; none, and 0, if they would lie outside. */
INLINE int rows_of(const videos_t *of, int64_t n, int64_t *begin, int64_t *end) {
    int64_t place = of->places ? of->places[n] : n;
    *begin = *end = 0;
    if (place < 0 || place >= of->videos) return 0;
    int64_t first = of->offsets[place], beyond = of->offsets[place + 1];
    if (first < 0 || beyond < first || beyond > of->rows) return 0;
    *begin = first;
    *end = beyond;
    return 1;
}

/* A reader that runs ahead of the one who computes and asks for rows, since a processor's own prefetching stops at
 * every page of 4 KB and at every video that lies elsewhere. */
typedef struct {
    const videos_t *of;
    int64_t next, high, row, end;
} runner_t;

INLINE runner_t start_runner(const videos_t *of, int64_t low, int64_t high) {
    return (runner_t){of, low, high, 0, 0};
}

INLINE void fetch_row(runner_t *run, const char *base, int64_t row_bytes) {
    while (run->row == run->end) {
        if (run->next >= run->high) return;
        rows_of(run->of, run->next++, &run->row, &run->end);
    }
    const char *row = base + run->row++ * row_bytes;
    for (int64_t j = 0; j < row_bytes; j += 64) __builtin_prefetch(row + j);
}

#endif
