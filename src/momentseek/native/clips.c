/* The clips of videos as bytes less their video's mean, with the lengths that bounds need, and scores of pairs. */
#include "kernels.h"
#include "products.h"

INLINE float square_of(const float *x, int64_t dim) {
    eight total = {0};
    float tail = 0;
    int64_t j = 0;
    for (; j + 8 <= dim; j += 8) total += *(const eight *)(x + j) * *(const eight *)(x + j);
    for (; j < dim; j++) tail += x[j] * x[j];
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

INLINE void centre(float *rows, int64_t dim, int64_t count, float *mean, float *squares) {
    memset(mean, 0, sizeof(float) * dim);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < dim; j++) mean[j] += rows[i * dim + j];
    float share = 1.0f / (float)larger(1, count);
    for (int64_t j = 0; j < dim; j++) mean[j] *= share;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t j = 0; j < dim; j++) rows[i * dim + j] -= mean[j];
        squares[i] = square_of(rows + i * dim, dim);
    }
}

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
        for (int n = 0; n < 8; n++) codes[j + n] = (int8_t)code[n];
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

INLINE void quantise(const float *rows, const float *squares, int64_t dim, int64_t count, int8_t *codes, float *sizes) {
    float most = most_of(rows, dim * count), missed = 0, length = 0, tail = 0;
    float scale = most / 127.0f, inverse = most == 0 ? 0.0f : 127.0f / most;
    for (int64_t i = 0; i < count; i++) {
        float error = encode(rows + i * dim, dim, scale, inverse, codes + i * dim), square = square_of(rows + i * dim, dim);
        missed = error > missed ? error : missed;
        length = square > length ? square : length;
        tail = squares[i] - square > tail ? squares[i] - square : tail;
    }
    sizes[0] = scale;
    sizes[1] = sqrtf(missed);
    sizes[2] = sqrtf(length);
    sizes[3] = sqrtf(tail);
}

static void centre_plain(float *rows, int64_t dim, int64_t count, float *mean, float *squares) {
    centre(rows, dim, count, mean, squares);
}
static void quantise_plain(const float *rows, const float *squares, int64_t dim, int64_t count, int8_t *codes,
                           float *sizes) {
    quantise(rows, squares, dim, count, codes, sizes);
}
#if HAS_WIDE
WIDE static void centre_wide(float *rows, int64_t dim, int64_t count, float *mean, float *squares) {
    centre(rows, dim, count, mean, squares);
}
WIDE static void quantise_wide(const float *rows, const float *squares, int64_t dim, int64_t count, int8_t *codes,
                               float *sizes) {
    quantise(rows, squares, dim, count, codes, sizes);
}
#else
#define centre_wide centre_plain
#define quantise_wide quantise_plain
#endif

/* Take the mean of a video's rows off each of them, and keep it; `squares` get the rows' squared lengths then. */
EXPORT int64_t centre_videos(float *rows, int64_t dim, const int64_t *offsets, int64_t videos, int64_t count,
                             float *means, float *squares) {
    videos_t of = {offsets, videos, count, NULL};
    int64_t state = DONE, begin, end;
    for (int64_t video = 0; video < videos; video++) {
        if (!rows_of(&of, video, &begin, &end)) state = OUTSIDE;
        (uses_wide() ? centre_wide : centre_plain)(rows + begin * dim, dim, end - begin, means + video * dim,
                                                   squares + begin);
    }
    return state;
}

/* Codes of rows with one scale per video; `squares` are the squared lengths of the rows before columns were left out.
 * `sizes` (videos, 4) gets the scale and the largest lengths, over a video's rows, of what the codes miss, of the row
 * itself, and of the columns left out. */
EXPORT int64_t quantise_videos(const float *rows, const float *squares, int64_t dim, const int64_t *offsets,
                               int64_t videos, int64_t count, int8_t *codes, float *sizes) {
    videos_t of = {offsets, videos, count, NULL};
    int64_t state = DONE, begin, end;
    for (int64_t video = 0; video < videos; video++) {
        if (!rows_of(&of, video, &begin, &end)) state = OUTSIDE;
        (uses_wide() ? quantise_wide : quantise_plain)(rows + begin * dim, squares + begin, dim, end - begin,
                                                       codes + begin * dim, sizes + 4 * video);
    }
    return state;
}

/* Add `share` of the largest dot product of a pair's query and video to the pair's score; quickest where pairs of a
 * video stand together. */
EXPORT int64_t add_pair_scores(const float *rows, int64_t dim, const int64_t *offsets, int64_t videos, int64_t count,
                               const float *queries, int64_t asked, const int64_t *query, const int64_t *video,
                               int64_t pairs, float share, float *out) {
    videos_t of = {offsets, videos, count, video};
    int64_t begin, end, some;
    for (int64_t pair = 0; pair < pairs; pair += some) {
        const float *those[ASKED_AT_ONCE];
        float products[ASKED_AT_ONCE][PRODUCTS_AT_ONCE], best[ASKED_AT_ONCE];
        if (!rows_of(&of, pair, &begin, &end)) return OUTSIDE;
        some = same_video(video, pair, pairs);
        for (int64_t q = 0; q < some; q++) {
            if (query[pair + q] < 0 || query[pair + q] >= asked) return OUTSIDE;
            those[q] = queries + query[pair + q] * dim;
            best[q] = -INFINITY;
        }
        for (; begin < end; begin += PRODUCTS_AT_ONCE) {
            int64_t part = smaller(PRODUCTS_AT_ONCE, end - begin);
            multiply_rows(rows + begin * dim, dim, part, those, some, products);
            for (int64_t q = 0; q < some; q++)
                for (int64_t n = 0; n < part; n++)
                    if (products[q][n] > best[q] || isnan(products[q][n])) best[q] = products[q][n];
        }
        for (int64_t q = 0; q < some; q++) out[pair + q] += share * best[q];
    }
    return DONE;
}
