/* Products of rows of int8 or int16, by panels: the vector instructions behind products.pyx.

   A panel has 32 rows. A word of four bytes holds samples 4k to 4k + 3 of a row of int8, or 2k and
   2k + 1 of a row of int16; word k of all rows of a panel is together, and then comes word k + 1.
   One instruction multiplies a word of one row by those of 16 others, and adds two or four products
   to each of 16 sums of 32 bits, which are exact.

   The instruction for bytes takes them with a sign on one side only. On the columns' side 128 is
   added, by the first bit, and each row's sums start at -128 times the sum of its bytes instead.

   The portable methods are for tests: they are slower than products of floats. */

#ifndef SPARSISTENT_PRODUCTS_H
#define SPARSISTENT_PRODUCTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_VECTOR_PRODUCTS
#include <immintrin.h>
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* Rows of a panel, and those that are multiplied by a panel at the same time. */
enum { PANEL_ROWS = 32, ROWS_TOGETHER = 8 };
enum {
    METHOD_PORTABLE_INT8,
    METHOD_PORTABLE_INT16,
    METHOD_VNNI_INT8,
    METHOD_VNNI_INT16,
    METHOD_AVX2_INT16,
};

/* The products of 8 rows of one panel with all of another; sums of row a start at start[a]. */
typedef void (*Multiply)(const int32_t *rows, const int32_t *columns, ptrdiff_t words,
                         const int32_t *start, int32_t *out);

#define MULTIPLY_PORTABLY(name, Number, shift)                                                     \
    static void name(const int32_t *rows, const int32_t *columns, ptrdiff_t words,                 \
                     const int32_t *start, int32_t *out)                                           \
    {                                                                                              \
        enum { SAMPLES = sizeof(int32_t) / sizeof(Number) };                                       \
        for (int a = 0; a < ROWS_TOGETHER; a++)                                                    \
            for (int b = 0; b < PANEL_ROWS; b++) {                                                 \
                int64_t sum = start[a];                                                            \
                for (ptrdiff_t k = 0; k < words; k++) {                                            \
                    Number x[SAMPLES], y[SAMPLES];                                                 \
                    memcpy(x, rows + k * PANEL_ROWS + a, sizeof x);                                \
                    memcpy(y, columns + k * PANEL_ROWS + b, sizeof y);                             \
                    for (int c = 0; c < SAMPLES; c++)                                              \
                        sum += x[c] * (y[c] + shift);                                              \
                }                                                                                  \
                out[a * PANEL_ROWS + b] = (int32_t)sum;                                            \
            }                                                                                      \
    }
MULTIPLY_PORTABLY(multiply_int8, int8_t, 128)
MULTIPLY_PORTABLY(multiply_int16, int16_t, 0)

#ifdef HAS_VECTOR_PRODUCTS
#define MULTIPLY_VNNI(name, instruction, first_bits)                                               \
    __attribute__((target("avx512f,avx512bw,avx512vnni"))) static void name(                       \
        const int32_t *rows, const int32_t *columns, ptrdiff_t words, const int32_t *start,        \
        int32_t *out)                                                                              \
    {                                                                                              \
        __m512i sums[ROWS_TOGETHER][2], bits = _mm512_set1_epi32(first_bits);                      \
        UNROLLED for (int a = 0; a < ROWS_TOGETHER; a++)                                           \
            sums[a][0] = sums[a][1] = _mm512_set1_epi32(start[a]);                                 \
        for (ptrdiff_t k = 0; k < words; k++, rows += PANEL_ROWS, columns += PANEL_ROWS) {         \
            __m512i left = _mm512_xor_si512(_mm512_loadu_si512(columns), bits);                    \
            __m512i right = _mm512_xor_si512(_mm512_loadu_si512(columns + 16), bits);              \
            UNROLLED for (int a = 0; a < ROWS_TOGETHER; a++)                                       \
            {                                                                                      \
                __m512i row = _mm512_set1_epi32(rows[a]);                                          \
                sums[a][0] = instruction(sums[a][0], left, row);                                   \
                sums[a][1] = instruction(sums[a][1], right, row);                                  \
            }                                                                                      \
        }                                                                                          \
        UNROLLED for (int a = 0; a < ROWS_TOGETHER; a++)                                           \
        {                                                                                          \
            _mm512_storeu_si512(out + a * PANEL_ROWS, sums[a][0]);                                 \
            _mm512_storeu_si512(out + a * PANEL_ROWS + 16, sums[a][1]);                            \
        }                                                                                          \
    }
MULTIPLY_VNNI(multiply_int8_vnni, _mm512_dpbusd_epi32, (int)0x80808080)
MULTIPLY_VNNI(multiply_int16_vnni, _mm512_dpwssd_epi32, 0)

__attribute__((target("avx2"))) static void multiply_int16_avx2(const int32_t *rows,
                                                                const int32_t *columns,
                                                                ptrdiff_t words,
                                                                const int32_t *start, int32_t *out)
{
    for (int a = 0; a < ROWS_TOGETHER; a += 2) {
        __m256i sums[2][4];
        UNROLLED for (int b = 0; b < 8; b++)
            sums[b / 4][b % 4] = _mm256_set1_epi32(start[a + b / 4]);
        for (ptrdiff_t k = 0; k < words; k++) {
            __m256i first = _mm256_set1_epi32(rows[k * PANEL_ROWS + a]);
            __m256i second = _mm256_set1_epi32(rows[k * PANEL_ROWS + a + 1]);
            const __m256i *column = (const __m256i *)(columns + k * PANEL_ROWS);
            UNROLLED for (int b = 0; b < 4; b++)
            {
                __m256i part = _mm256_loadu_si256(column + b);
                sums[0][b] = _mm256_add_epi32(sums[0][b], _mm256_madd_epi16(part, first));
                sums[1][b] = _mm256_add_epi32(sums[1][b], _mm256_madd_epi16(part, second));
            }
        }
        UNROLLED for (int b = 0; b < 8; b++)
            _mm256_storeu_si256((__m256i *)(out + (a + b / 4) * PANEL_ROWS) + b % 4,
                                sums[b / 4][b % 4]);
    }
}
#endif

/* The function of a method, or NULL where this processor has no instruction for it. */
static Multiply multiplication(int method)
{
    if (method == METHOD_PORTABLE_INT8)
        return multiply_int8;
    if (method == METHOD_PORTABLE_INT16)
        return multiply_int16;
#ifdef HAS_VECTOR_PRODUCTS
    int has_vnni = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
    if (method == METHOD_VNNI_INT8 && has_vnni)
        return multiply_int8_vnni;
    if (method == METHOD_VNNI_INT16 && has_vnni)
        return multiply_int16_vnni;
    if (method == METHOD_AVX2_INT16 && __builtin_cpu_supports("avx2"))
        return multiply_int16_avx2;
#endif
    return NULL;
}

#endif
