/* Predictions beside the judged moments that they could match, and which of them they get. */
#include "kernels.h"

/* As moments/overlap.py: formula and order of operations are part of what a measure is. */
INLINE double overlap_of(double start, double end, double true_start, double true_end) {
    double last = end < true_end ? end : true_end, first = start > true_start ? start : true_start;
    double shared = last - first > 0 ? last - first : 0;
    double all = (end - start) + (true_end - true_start) - shared;
    return all > 0 ? shared / all : 0;
}

/* The moments of one query by a hash of their video: `first` has the first of each hash, `next` the one after a moment,
 * counted from the query's first; -1 is none. */
enum { SLOTS = 256 };

INLINE uint32_t slot_of(int32_t video) { return ((uint32_t)video * 2654435761u) >> 24; }

static void chain_moments(const int32_t *video, int64_t count, int32_t *first, int32_t *next) {
    memset(first, -1, SLOTS * sizeof *first);
    for (int64_t m = count - 1; m >= 0; m--) { /* from the last, so that a chain is in the order of the file */
        uint32_t slot = slot_of(video[m]);
        next[m] = first[slot];
        first[slot] = (int32_t)m;
    }
}

/* For every prediction the judged moments of its query and video that overlap it, by falling overlap; of equal ones the
 * more relevant first, then the first in the file. `query` gives the place of each prediction's query, whose moments
 * are the rows from offsets[query] on, and `place` the row of its times among `times`; `done` gets how many pairs there
 * are, and pairs beyond `room` are not written. */
EXPORT int64_t overlapping_pairs(const int64_t *query, const int64_t *video, const int64_t *place, int64_t predictions,
                                 const double *start, const double *end, int64_t times, const int64_t *offsets,
                                 const int32_t *true_video, const int8_t *relevance, const double *true_start,
                                 const double *true_end, int64_t queries, int64_t moments, int64_t *row,
                                 int64_t *judged, double *overlap, int64_t room, int64_t *done) {
    int64_t longest = 0;
    for (int64_t q = 0; q < queries; q++) {
        if (offsets[q] < 0 || offsets[q + 1] < offsets[q] || offsets[q + 1] > moments) return OUTSIDE;
        if (offsets[q + 1] - offsets[q] > longest) longest = offsets[q + 1] - offsets[q];
    }
    if (longest >= INT32_MAX) return OUTSIDE;
    int32_t first[SLOTS], *next = malloc((size_t)(longest + 1) * sizeof *next);
    if (next == NULL) return NO_MEMORY;
    int64_t pairs = 0, chained = -1;
    for (int64_t i = 0; i < predictions; i++) {
        int64_t q = query[i], t = place[i];
        if (q < 0 || q >= queries || t < 0 || t >= times) {
            free(next);
            return OUTSIDE;
        }
        int64_t base = offsets[q];
        if (q != chained) chain_moments(true_video + base, offsets[q + 1] - base, first, next);
        chained = q;
        if (video[i] < 0 || video[i] > INT32_MAX) continue;
        int64_t begin = pairs;
        for (int32_t near = first[slot_of((int32_t)video[i])]; near >= 0; near = next[near]) {
            int64_t m = base + near;
            if (true_video[m] != video[i]) continue;
            double shared = overlap_of(start[t], end[t], true_start[m], true_end[m]);
            if (!(shared > 0)) continue;
            if (pairs >= room) {
                pairs++;
                continue;
            }
            int64_t at = pairs++;
            for (; at > begin; at--) {
                double before = overlap[at - 1];
                if (before > shared || (before == shared && relevance[judged[at - 1]] >= relevance[m])) break;
                overlap[at] = before;
                judged[at] = judged[at - 1];
            }
            row[pairs - 1] = i;
            overlap[at] = shared;
            judged[at] = m;
        }
    }
    free(next);
    *done = pairs;
    return DONE;
}

/* Each number of a row becomes the sum of all up to it, from the left. */
INLINE void add_up(double *sums, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t c = 0; c < columns; c++) sums[r * columns + c] = sum += sums[r * columns + c];
    }
}

/* What the predictions of each query gain up to each rank, if each takes the first of its moments that passes the
 * threshold and that no earlier one has taken; one of relevance 0 is only there to be taken with `absorb`. `gains` has
 * a row for each grade of relevance and a column for each rank, `sums` (0 at first) a row for each query, `used` is 0
 * for every moment, and pairs are as above, by rising row. */
EXPORT int64_t sum_matched_gains(const int64_t *row, const int64_t *judged, const double *overlap, int64_t pairs,
                                 double threshold, int64_t strict, int64_t absorb, const int64_t *query,
                                 const int64_t *rank, int64_t rows, const int8_t *relevance, uint8_t *used,
                                 int64_t moments, const double *gains, int64_t grades, int64_t ranks, double *sums,
                                 int64_t queries) {
    int64_t served = -1;
    for (int64_t i = 0; i < pairs; i++) {
        int64_t r = row[i], m = judged[i];
        if (r < 0 || r >= rows || m < 0 || m >= moments) return OUTSIDE;
        if (strict ? !(overlap[i] > threshold) : !(overlap[i] >= threshold)) continue;
        if (r == served || used[m] || (!absorb && relevance[m] <= 0)) continue;
        served = r;
        used[m] = 1;
        if (relevance[m] < 0 || relevance[m] >= grades || query[r] < 0 || query[r] >= queries || rank[r] < 0) {
            return OUTSIDE;
        }
        if (rank[r] < ranks) sums[query[r] * ranks + rank[r]] = gains[relevance[m] * ranks + rank[r]];
    }
    add_up(sums, queries, ranks);
    return DONE;
}

/* What each query's moments gain up to each rank if the most relevant come first. */
EXPORT int64_t sum_best_gains(const int64_t *offsets, int64_t queries, const int8_t *relevance, int64_t moments,
                              const double *gains, int64_t grades, int64_t ranks, double *sums) {
    for (int64_t q = 0; q < queries; q++) {
        if (offsets[q] < 0 || offsets[q + 1] > moments) return OUTSIDE;
        int64_t of_grade[128] = {0}, rank = 0;
        for (int64_t m = offsets[q]; m < offsets[q + 1]; m++) {
            if (relevance[m] < 0 || relevance[m] >= grades) return OUTSIDE;
            of_grade[relevance[m]]++;
        }
        for (int64_t grade = (grades < 128 ? grades : 128) - 1; grade >= 0; grade--) {
            for (; of_grade[grade] > 0 && rank < ranks; of_grade[grade]--, rank++) {
                sums[q * ranks + rank] = gains[grade * ranks + rank];
            }
        }
    }
    add_up(sums, queries, ranks);
    return DONE;
}

/* Each row, one after another, takes the first of its listed moments that no earlier one has taken. `taken` is -1 for
 * every row and `used` 0 for every moment. */
EXPORT int64_t take_in_turn(const int64_t *row, const int64_t *judged, int64_t pairs, int64_t *taken, int64_t rows,
                            uint8_t *used, int64_t moments) {
    for (int64_t i = 0; i < pairs; i++) {
        if (row[i] < 0 || row[i] >= rows || judged[i] < 0 || judged[i] >= moments) return OUTSIDE;
        if (taken[row[i]] >= 0 || used[judged[i]]) continue;
        taken[row[i]] = judged[i];
        used[judged[i]] = 1;
    }
    return DONE;
}
