#ifndef MOMENTSEEK_FLOAT_PANELS_H
#define MOMENTSEEK_FLOAT_PANELS_H

enum { PANEL = 16 };

/* How many places the panels of so many vectors have. */
INLINE int64_t places_of(int64_t vectors) { return (vectors + PANEL - 1) / PANEL * PANEL; }

/* Products of `count` float32 rows with the sixteen vectors of a panel (dim, 16): out[row * stride + vector]. */
void multiply_float_panel(const float *rows, int64_t dim, int64_t count, const float *panel, float *out, int64_t stride);

#endif
