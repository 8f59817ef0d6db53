/* Predictions beside the judged moments that they could match, and which of them they get. */
#include "kernels.h"

/* As moments/overlap.py: formula and order of operations are part of what a measure is. */
INLINE double overlap_of(double start, double end, double true_start, double true_end) {
    double last = end < true_end ? end : true_end, first = start > true_start ? start : true_start;
    double shared = last - first > 0 ? last - first : 0;
    double all = (end - start) + (true_end - true_start) - shared;
    return all > 0 ? shared / all : 0;
}

/* For every prediction the judged moments of its query and video that overlap it, by falling overlap; of equal ones the
 * more relevant first, then the first in the file. `query` gives the place of each prediction's query, whose moments
 * are the rows from offsets[query] on; `done` gets how many pairs there are, and pairs beyond `room` are not written. */
EXPORT int64_t overlapping_pairs(const int64_t *query, const int64_t *video, const double *start, const double *end,
                                 int64_t predictions, const int64_t *offsets, const int32_t *true_video,
                                 const int8_t *relevance, const double *true_start, const double *true_end,
                                 int64_t queries, int64_t moments, int64_t *row, int64_t *judged, double *overlap,
                                 int64_t room, int64_t *done) {
    int64_t pairs = 0;
    for (int64_t i = 0; i < predictions; i++) {
        int64_t q = query[i];
        if (q < 0 || q >= queries || offsets[q] < 0 || offsets[q + 1] > moments) return OUTSIDE;
        int64_t begin = pairs;
        for (int64_t m = offsets[q]; m < offsets[q + 1]; m++) {
            if (true_video[m] != video[i]) continue;
            double shared = overlap_of(start[i], end[i], true_start[m], true_end[m]);
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
    *done = pairs;
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
