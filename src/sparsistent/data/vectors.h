/* Loops over rows of small integers, compiled for each set of vector instructions.

   The best version is chosen when the module is loaded; what other compilers make of the loops is
   right, too, and slower. */

#ifndef SPARSISTENT_VECTORS_H
#define SPARSISTENT_VECTORS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif
/* Integers that are compared one by one only if one of them is large enough. */
enum { GROUP = 128 };

/* Round x*scale to integers: the sum of squares of the errors, and the sum of the integers. */
#define QUANTISE(name, Number)                                                                     \
    VECTORISED static double name(const double *x, ptrdiff_t n, double scale, Number *q,           \
                                  int32_t *sum)                                                    \
    {                                                                                              \
        double error = 0.0;                                                                        \
        int32_t total = 0;                                                                         \
        for (ptrdiff_t k = 0; k < n; k++) {                                                        \
            double y = x[k] * scale;                                                               \
            int32_t nearest = (int32_t)(y + (y < 0.0 ? -0.5 : 0.5));                               \
            q[k] = (Number)nearest;                                                                \
            total += nearest;                                                                      \
            error += (y - nearest) * (y - nearest);                                                \
        }                                                                                          \
        *sum = total;                                                                              \
        return error;                                                                              \
    }
QUANTISE(quantise_int8, int8_t)
QUANTISE(quantise_int16, int16_t)

/* Add row*share/65536, rounded down: one instruction multiplies several integers. */
VECTORISED static void add_shares(int16_t *c, const int16_t *row, int16_t share, ptrdiff_t n)
{
    for (ptrdiff_t m = 0; m < n; m++)
        c[m] = (int16_t)(c[m] + (((int)row[m] * share) >> 16));
}

/* Set to zero what the mask excludes, and find the largest magnitude of each group. */
VECTORISED static void find_tops(int16_t *c, const int16_t *mask, int16_t *tops, ptrdiff_t groups)
{
    for (; groups > 0; groups--, c += GROUP, mask += GROUP, tops++) {
        int16_t top = 0;
        for (int m = 0; m < GROUP; m++) {
            c[m] = (int16_t)(c[m] & mask[m]);
            int16_t size = (int16_t)(c[m] < 0 ? -c[m] : c[m]);
            top = size > top ? size : top;
        }
        *tops = top;
    }
}

#endif
