/* How clearly the clips of a video change from one to the next (search/localise/scenes.py has the formulas). */
#include "kernels.h"

enum { SUMMED_AT_ONCE = 128 };

/* In the order in which numpy adds a row of doubles, so that both find the same to the last bit. */
static double sum_in_pairs(const double *values, int64_t count) {
    if (count > SUMMED_AT_ONCE) {
        int64_t half = count / 2 - count / 2 % 8;
        return sum_in_pairs(values, half) + sum_in_pairs(values + half, count - half);
    }
    double sum = 0;
    int64_t at = 0;
    if (count >= 8) {
        double part[8];
        memcpy(part, values, sizeof part);
        for (at = 8; at < count - count % 8; at += 8)
            for (int lane = 0; lane < 8; lane++) part[lane] += values[at + lane];
        sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; at < count; at++) sum += values[at];
    return sum;
}

/* Squares of the distance of two means, column by column: those of the clips from `low` to `at` and from `at` to `high`. */
#define SQUARES(name, target)                                                                                         \
    target static void name(const double *low, const double *at, const double *high, double before, double after,     \
                            int64_t dim, double *squares) {                                                           \
        for (int64_t column = 0; column < dim; column++) {                                                            \
            double step = (at[column] - low[column]) / before - (high[column] - at[column]) / after;                  \
            squares[column] = step * step;                                                                            \
        }                                                                                                             \
    }
SQUARES(squares_everywhere, )
#if HAS_WIDE
SQUARES(squares_wide, WIDE)
#endif

static int by_size(const void *one, const void *two) {
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
}

static double median_of(double *values, int64_t count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* What the changes are worth, 0 to 1, in their place; `some` has room for as many. */
static void weigh_changes(double *changes, int64_t count, double *some, double least, double full, double slope) {
    memcpy(some, changes, (size_t)count * sizeof *some);
    double middle = median_of(some, count);
    for (int64_t at = 0; at < count; at++) some[at] = fabs(changes[at] - middle);
    double mean = sum_in_pairs(some, count) / (double)count;
    double deviation = 1.4826 * median_of(some, count);
    if (deviation <= least) deviation = mean > least ? mean : least;
    double previous = -INFINITY;
    for (int64_t at = 0; at < count; at++) {
        double value = changes[at], clear = (value - middle) / deviation / full;
        clear = clear < 0 ? 0 : clear > 1 ? 1 : clear;
        int top = value >= previous && (at + 1 == count || value > changes[at + 1]);
        previous = value;
        changes[at] = top ? clear : slope * clear;
    }
}

/* How clearly `rows` (clips, dim) change at each of the clips - 1 boundaries between them, by the means of up to `width`
 * clips on either side. */
EXPORT int64_t clear_changes(const float *rows, int64_t clips, int64_t dim, int64_t width, double least, double full,
                             double slope, double *out) {
    if (clips < 2 || dim < 1 || width < 1) return OUTSIDE;
    int64_t ring = 2 * width + 1, known = 0;
    double *sums = calloc((size_t)(ring * dim), sizeof *sums);
    double *some = malloc((size_t)larger(dim, clips) * sizeof *some);
    if (!sums || !some) {
        free(sums);
        free(some);
        return NO_MEMORY;
    }
#if HAS_WIDE
    int wide = uses_wide();
#endif
    for (int64_t at = 1; at < clips; at++) {
        int64_t low = larger(at - width, 0), high = smaller(at + width, clips);
        for (; known < high; known++) {
            const float *row = rows + known * dim;
            const double *last = sums + known % ring * dim;
            double *next = sums + (known + 1) % ring * dim;
            for (int64_t column = 0; column < dim; column++) next[column] = last[column] + (double)row[column];
        }
        const double *before = sums + low % ring * dim, *here = sums + at % ring * dim;
        const double *after = sums + high % ring * dim;
        double left = (double)(at - low), right = (double)(high - at);
#if HAS_WIDE
        if (wide)
            squares_wide(before, here, after, left, right, dim, some);
        else
#endif
            squares_everywhere(before, here, after, left, right, dim, some);
        out[at - 1] = sum_in_pairs(some, dim) * left * right / (left + right);
    }
    weigh_changes(out, clips - 1, some, least, full, slope);
    free(sums);
    free(some);
    return DONE;
}
