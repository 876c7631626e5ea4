/* Products of pairs of rows, and a table that remembers them.

   A line of the table has i p + j for the pair i < j, or -1 where it is free, and the product. A pair
   can be in one bucket of four lines only. Where it is full, a pair takes the place of another: what
   is not in the table can always be made again. */

#ifndef SPARSISTENT_PAIRS_H
#define SPARSISTENT_PAIRS_H

#include "kernels.h"

#define BUCKET 4

/* The line of a pair, or where it goes, if it is not there. */
INLINED double *line_of(Matrix known, Int pair, bool *there)
{
    /* One product would put pairs at regular distances, as those of a grid, in few buckets. */
    uint64_t mixed = (uint64_t)pair * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u >> 32;
    double *bucket = known.at + 2 * BUCKET * (Int)(mixed * (uint64_t)(known.rows / BUCKET) >> 32);
    *there = false;
    for (int e = 0; e < BUCKET; e++) {
        *there = bucket[2 * e] == (double)pair;
        if (*there || bucket[2 * e] < 0.0)
            return bucket + 2 * e;
    }
    return bucket + 2 * (mixed % BUCKET);
}

#define PRODUCT_OF                                                                                 \
    VECTORISED static double product_of(const double *x, const double *y, Int n)                   \
    {                                                                                              \
        double parts[PARTS] = {0.0}, total = 0.0;                                                  \
        Int k = 0;                                                                                 \
        for (; k + PARTS <= n; k += PARTS)                                                         \
            for (int b = 0; b < PARTS; b++)                                                        \
                parts[b] += x[k + b] * y[k + b];                                                   \
        for (; k < n; k++)                                                                         \
            total += x[k] * y[k];                                                                  \
        for (int b = 0; b < PARTS; b++)                                                            \
            total += parts[b];                                                                     \
        return total;                                                                              \
    }

#endif
