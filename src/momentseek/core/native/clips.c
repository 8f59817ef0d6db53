/* The clips of videos as bytes: less their video's mean, turned onto some directions, with the length of what these
 * leave out as the last column. */
#include "kernels.h"
#include "float_panels.h"

INLINE float square_of(const float *x, int64_t dim) {
    eight total = {0};
    float tail = 0;
    int64_t j = 0;
    for (; j + 8 <= dim; j += 8) total += *(const eight *)(x + j) * *(const eight *)(x + j);
    for (; j < dim; j++) tail += x[j] * x[j];
    return sum_of(&total) + tail;
}

/* The squared distance of two rows. */
INLINE float distance_of(const float *x, const float *y, int64_t dim) {
    eight total = {0};
    float tail = 0;
    int64_t j = 0;
    for (; j + 8 <= dim; j += 8) {
        eight rest = *(const eight *)(x + j) - *(const eight *)(y + j);
        total += rest * rest;
    }
    for (; j < dim; j++) tail += (x[j] - y[j]) * (x[j] - y[j]);
    return sum_of(&total) + tail;
}

INLINE float most_of(const float *x, int64_t count) {
    eight most = {0};
    float tail = 0;
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) {
        eight size = (eight)(*(const eight_whole *)(x + j) & 0x7fffffff);
        most = larger_of(most, size);
    }
    for (; j < count; j++) tail = fabsf(x[j]) > tail ? fabsf(x[j]) : tail;
    for (int n = 0; n < 8; n++) tail = most[n] > tail ? most[n] : tail;
    return tail;
}

INLINE void take_mean(const float *rows, int64_t dim, int64_t count, float *mean) {
    memset(mean, 0, sizeof(float) * dim);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < dim; j++) mean[j] += rows[i * dim + j];
    float share = 1.0f / (float)larger(1, count);
    for (int64_t j = 0; j < dim; j++) mean[j] *= share;
}

typedef int8_t eight_small __attribute__((vector_size(8), aligned(1), may_alias));

/* Codes of a row by a scale; what they miss, squared. */
INLINE float encode(const float *row, int64_t dim, float scale, float inverse, int8_t *codes) {
    const eight one = {1, 1, 1, 1, 1, 1, 1, 1};
    eight error = {0};
    float tail = 0;
    int64_t j = 0;
    for (; j + 8 <= dim; j += 8) {
        eight value = *(const eight *)(row + j);
        eight whole = larger_of(one, value * inverse + 128.5f); /* what is no number becomes 1 */
        eight_whole code = __builtin_convertvector(whole, eight_whole) - 128;
        eight rest = value - __builtin_convertvector(code, eight) * scale;
        error += rest * rest;
        *(eight_small *)(codes + j) = __builtin_convertvector(code, eight_small);
    }
    for (; j < dim; j++) {
        float whole = row[j] * inverse + 128.5f;
        int32_t code = (int32_t)(whole > 1 ? whole : 1.0f) - 128;
        float rest = row[j] - (float)code * scale;
        tail += rest * rest;
        codes[j] = (int8_t)code;
    }
    return sum_of(&error) + tail;
}

typedef struct {
    const float *turn; /* (places / 16, dim, 16), or NULL for all columns as they are */
    int64_t dim, width;
    float rounding;
    float *turned; /* (the most rows of a video, width) */
    float *some;   /* (the most rows, 16) */
} turn_t;

/* The rows less their mean, on the directions of the turn, and the length of the rest as the last column. */
INLINE void turn_rows(const turn_t *t, const float *rows, int64_t count, const float *mean) {
    int64_t width = t->width;
    if (!t->turn) {
        for (int64_t i = 0; i < count; i++) {
            for (int64_t j = 0; j < t->dim; j++) t->turned[i * width + j] = rows[i * t->dim + j] - mean[j];
            for (int64_t j = t->dim; j < width; j++) t->turned[i * width + j] = 0;
        }
        return;
    }
    for (int64_t first = 0; first < width; first += PANEL) {
        float middle[PANEL];
        int64_t part = smaller(PANEL, width - first);
        multiply_float_panel(mean, t->dim, 1, t->turn + first * t->dim, middle, PANEL);
        multiply_float_panel(rows, t->dim, count, t->turn + first * t->dim, t->some, PANEL);
        for (int64_t i = 0; i < count; i++)
            for (int64_t n = 0; n < part; n++)
                t->turned[i * width + first + n] = t->some[i * PANEL + n] - middle[n];
    }
    float around = 8 * square_of(mean, t->dim);
    for (int64_t i = 0; i < count; i++) {
        float *kept = t->turned + i * width, square = distance_of(rows + i * t->dim, mean, t->dim);
        float left = square - square_of(kept, width - 1);
        kept[width - 1] = sqrtf((left > 0 ? left : 0) + t->rounding * (2 * square + around));
    }
}

INLINE void encode_video(const turn_t *t, const float *rows, int64_t count, float *mean, int8_t *codes, float *sizes) {
    take_mean(rows, t->dim, count, mean);
    turn_rows(t, rows, count, mean);
    float most = most_of(t->turned, t->width * count), missed = 0, length = 0;
    float scale = most / 127.0f, inverse = most == 0 ? 0.0f : 127.0f / most;
    for (int64_t i = 0; i < count; i++) {
        const float *row = t->turned + i * t->width;
        float error = encode(row, t->width, scale, inverse, codes + i * t->width), square = square_of(row, t->width);
        missed = error > missed ? error : missed;
        length = square > length ? square : length;
    }
    sizes[0] = scale;
    sizes[1] = sqrtf(missed);
    sizes[2] = sqrtf(length);
}

static void encode_plain(const turn_t *t, const float *rows, int64_t count, float *mean, int8_t *codes, float *sizes) {
    encode_video(t, rows, count, mean, codes, sizes);
}
#if HAS_WIDE
WIDE static void encode_wide(const turn_t *t, const float *rows, int64_t count, float *mean, int8_t *codes,
                             float *sizes) {
    encode_video(t, rows, count, mean, codes, sizes);
}
#else
#define encode_wide encode_plain
#endif

/* Means (videos, dim) of videos' rows and codes (rows, width) of the rest with one scale per video. `turn` has panels of
 * `width - 1` directions and one of zeros; without one, width is dim or one more. `rounding` is how much sums may be
 * off, as a share of squared lengths. `sizes` (videos, 3) gets the scale and the largest lengths, over a video's rows,
 * of what the codes miss and of the row that was coded. */
EXPORT int64_t encode_videos(const float *rows, int64_t dim, const int64_t *offsets, int64_t videos, int64_t count,
                             const float *turn, int64_t width, float rounding, float *means, int8_t *codes,
                             float *sizes) {
    videos_t of = {offsets, videos, count, NULL};
    int64_t begin, end, most = 1;
    for (int64_t video = 0; video < videos; video++) {
        if (!rows_of(&of, video, &begin, &end)) return OUTSIDE;
        most = larger(most, end - begin);
    }
    turn_t t = {turn, dim, width, rounding, malloc(sizeof(float) * most * larger(1, width)),
                malloc(sizeof(float) * most * PANEL)};
    int64_t state = t.turned && t.some ? DONE : NO_MEMORY;
    for (int64_t video = 0; video < videos && state == DONE; video++) {
        rows_of(&of, video, &begin, &end);
        (uses_wide() ? encode_wide : encode_plain)(&t, rows + begin * dim, end - begin, means + video * dim,
                                                   codes + begin * width, sizes + 3 * video);
    }
    free(t.turned);
    free(t.some);
    return state;
}
