#ifndef MOMENTSEEK_PRODUCTS_H
#define MOMENTSEEK_PRODUCTS_H

/* out[n] becomes the dot product of the n-th of `count` rows with a query. */
void multiply_rows(const float *rows, int64_t dim, int64_t count, const float *asked, float *out);

#endif
