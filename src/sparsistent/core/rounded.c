/* Products of rows that are rounded to whole numbers of one or two bytes.

   Processors multiply four pairs of bytes, or two of two bytes, where they multiply one pair of
   floats, and their sum is exact. Row i becomes x_i = w_i q_i + e_i with q_i whole and ‖e_i‖ known,
   so that x_i·x_j is w_i w_j q_i·q_j up to ‖e_i‖ ‖x_j‖ + ‖w_i q_i‖ ‖e_j‖: a bound that is proven,
   and small enough to tell which few products are worth taking in double precision.

   There are several ways to multiply, and which are fast depends on the processor; the plain ones
   are never, but there is nothing in them to get wrong.

   Rows come in panels of 32. A word of four bytes holds samples 4k to 4k + 3 of a row, or 2k and
   2k + 1; word k of all rows of a panel is together, and then comes word k + 1. Rows that fill the
   last panel are zero. On request each row is kept by itself too, for single products. */

#include "kernels.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_PRODUCTS
#include <immintrin.h>
#endif

/* Rows of a panel, and those that are multiplied by a panel at the same time. */
#define PANEL 32
#define TOGETHER 8
/* The norm of a row in two bytes: no sum of products exceeds 2³¹, by Cauchy and Schwarz. */
#define LARGEST_NORM 46340.0
/* Longer rows in one byte could exceed it. */
#define LONGEST 65000

/* The products of 8 rows of one panel with all of another; each row has the number that its sums
   start at. */
typedef void Multiply(const int32_t *rows, const int32_t *columns, Int words, const int32_t *start,
                      int32_t *out);

#define MULTIPLY_PLAINLY(name, Whole)                                                              \
    static void name(const int32_t *rows, const int32_t *columns, Int words, const int32_t *start, \
                     int32_t *out)                                                                 \
    {                                                                                              \
        Int samples = sizeof(int32_t) / sizeof(Whole);                                             \
        for (Int a = 0; a < TOGETHER; a++)                                                         \
            for (Int b = 0; b < PANEL; b++) {                                                      \
                int32_t sum = start[a];                                                            \
                for (Int k = 0; k < words; k++) {                                                  \
                    Whole x[sizeof(int32_t)], y[sizeof(int32_t)];                                  \
                    memcpy(x, rows + k * PANEL + a, sizeof(int32_t));                              \
                    memcpy(y, columns + k * PANEL + b, sizeof(int32_t));                           \
                    for (Int c = 0; c < samples; c++)                                              \
                        sum += x[c] * y[c];                                                        \
                }                                                                                  \
                out[a * PANEL + b] = sum;                                                          \
            }                                                                                      \
    }
MULTIPLY_PLAINLY(multiply_bytes_plainly, int8_t)
MULTIPLY_PLAINLY(multiply_pairs_plainly, int16_t)

#ifdef HAS_PRODUCTS
#define UNROLLED _Pragma("GCC unroll 8")

/* The instruction takes bytes with a sign on one side only. The other side gets 128 more, by its
   first bit, and the start of the sum makes up for it. */
#define MULTIPLY_512(name, instruction, shift)                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vnni"))) static void name(                       \
        const int32_t *rows, const int32_t *columns, Int words, const int32_t *start,              \
        int32_t *out)                                                                              \
    {                                                                                              \
        __m512i sums[TOGETHER][2], bits = _mm512_set1_epi32(shift);                                \
        UNROLLED for (int a = 0; a < TOGETHER; a++)                                                \
            sums[a][0] = sums[a][1] = _mm512_set1_epi32(start[a]);                                 \
        for (Int k = 0; k < words; k++, rows += PANEL, columns += PANEL) {                         \
            __m512i left = _mm512_xor_si512(_mm512_loadu_si512(columns), bits);                    \
            __m512i right = _mm512_xor_si512(_mm512_loadu_si512(columns + 16), bits);              \
            UNROLLED for (int a = 0; a < TOGETHER; a++)                                            \
            {                                                                                      \
                __m512i row = _mm512_set1_epi32(rows[a]);                                          \
                sums[a][0] = instruction(sums[a][0], left, row);                                   \
                sums[a][1] = instruction(sums[a][1], right, row);                                  \
            }                                                                                      \
        }                                                                                          \
        UNROLLED for (int a = 0; a < TOGETHER; a++)                                                \
        {                                                                                          \
            _mm512_storeu_si512(out + a * PANEL, sums[a][0]);                                      \
            _mm512_storeu_si512(out + a * PANEL + 16, sums[a][1]);                                 \
        }                                                                                          \
    }
MULTIPLY_512(multiply_bytes_512, _mm512_dpbusd_epi32, (int)0x80808080)
MULTIPLY_512(multiply_pairs_512, _mm512_dpwssd_epi32, 0)

__attribute__((target("avx2"))) static void multiply_pairs_256(const int32_t *rows,
                                                               const int32_t *columns, Int words,
                                                               const int32_t *start, int32_t *out)
{
    for (int a = 0; a < TOGETHER; a += 2) {
        __m256i sums[2][4];
        UNROLLED for (int b = 0; b < 8; b++)
            sums[b / 4][b % 4] = _mm256_set1_epi32(start[a + b / 4]);
        for (Int k = 0; k < words; k++) {
            __m256i first = _mm256_set1_epi32(rows[k * PANEL + a]);
            __m256i second = _mm256_set1_epi32(rows[k * PANEL + a + 1]);
            const __m256i *column = (const __m256i *)(columns + k * PANEL);
            UNROLLED for (int b = 0; b < 4; b++)
            {
                __m256i part = _mm256_loadu_si256(column + b);
                sums[0][b] = _mm256_add_epi32(sums[0][b], _mm256_madd_epi16(part, first));
                sums[1][b] = _mm256_add_epi32(sums[1][b], _mm256_madd_epi16(part, second));
            }
        }
        UNROLLED for (int b = 0; b < 8; b++)
            _mm256_storeu_si256((__m256i *)(out + (a + b / 4) * PANEL) + b % 4,
                                sums[b / 4][b % 4]);
    }
}
#endif

/* Ways to multiply rows of one byte a sample, or two, and vectors of so many bits. */
enum { BYTES_PLAINLY, PAIRS_PLAINLY, BYTES_512, PAIRS_512, PAIRS_256 };

/* How that is done, or NULL where this processor cannot. */
static Multiply *multiplication(Int way)
{
    if (way == BYTES_PLAINLY)
        return multiply_bytes_plainly;
    if (way == PAIRS_PLAINLY)
        return multiply_pairs_plainly;
#ifdef HAS_PRODUCTS
    bool has_512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
    if (way == BYTES_512 && has_512)
        return multiply_bytes_512;
    if (way == PAIRS_512 && has_512)
        return multiply_pairs_512;
    if (way == PAIRS_256 && __builtin_cpu_supports("avx2"))
        return multiply_pairs_256;
#endif
    return NULL;
}

typedef struct {
    Int way, words;
    int32_t *panels, *starts;
    float *weights, *errors;
    char *by_row;
} Rows;

static Rows take_rows(Arguments *args)
{
    Arguments items = group(args);
    Int way = integer(&items);
    PyArrayObject *panels = array(&items, 3, 'i', sizeof(int32_t));
    Places starts = places(&items);
    PyArrayObject *weights = array(&items, 1, 'f', sizeof(float));
    PyArrayObject *errors = array(&items, 1, 'f', sizeof(float));
    PyArrayObject *by_row = array(&items, 2, 'i', sizeof(int8_t));
    close_group(args, &items);
    if (args->failed)
        return (Rows){0};
    char *first = PyArray_DIM(by_row, 0) > 0 ? PyArray_DATA(by_row) : NULL;
    return (Rows){way, PyArray_DIM(panels, 1), PyArray_DATA(panels), starts.at,
                  PyArray_DATA(weights), PyArray_DATA(errors), first};
}

LARGEST_OF

/* Whole numbers, their sum, and the square of what they leave. */
#define ROUND(name, Whole)                                                                         \
    VECTORISED static double name(const double *x, Int n, double scale, Whole *restrict whole,     \
                                  int32_t *sum)                                                    \
    {                                                                                              \
        double square = 0.0, weight = 1.0 / scale;                                                 \
        int32_t total = 0;                                                                         \
        for (Int k = 0; k < n; k++) {                                                              \
            double number = rint(x[k] * scale), left = x[k] - number * weight;                     \
            int32_t rounded = (int32_t)number;                                                     \
            whole[k] = (Whole)rounded;                                                             \
            total += rounded;                                                                      \
            square += left * left;                                                                 \
        }                                                                                          \
        *sum = total;                                                                              \
        return square;                                                                             \
    }
ROUND(round_to_bytes, int8_t)
ROUND(round_to_pairs, int16_t)

static PyObject *round_rows(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("round_rows", values, count);
    Matrix unit = matrix(&args);
    Int first = integer(&args), end = integer(&args);
    Rows rows = take_rows(&args);
    if (!complete(&args))
        return NULL;
    bool single = rows.way == BYTES_512 || rows.way == BYTES_PLAINLY;
    Int n = unit.columns;
    double most_whole = single ? 127.0 : 32767.0;
    double most_scale = single ? INFINITY : LARGEST_NORM - 0.5 * sqrt((double)n) - 1.0;
    char *whole = calloc(most_int(rows.words, 1), sizeof(int32_t));
    if (whole == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Int i = first; i < end; i++) {
        const double *x = unit.at + i * n;
        double scale = least(most_whole / most(largest_of(x, n), 1e-300), most_scale);
        int32_t sum;
        double square = single ? round_to_bytes(x, n, scale, (int8_t *)whole, &sum)
                               : round_to_pairs(x, n, scale, (int16_t *)whole, &sum);
        int32_t *panel = rows.panels + i / PANEL * PANEL * rows.words + i % PANEL;
        for (Int k = 0; k < rows.words; k++)
            memcpy(panel + k * PANEL, whole + k * sizeof(int32_t), sizeof(int32_t));
        if (rows.by_row != NULL)
            memcpy(rows.by_row + i * rows.words * sizeof(int32_t), whole,
                   rows.words * sizeof(int32_t));
        rows.starts[i] = rows.way == BYTES_512 ? -128 * sum : 0;
        rows.weights[i] = (float)(1.0 / scale);
        /* Half of ‖e_i‖ ‖e_j‖ is for each of the two; the rest is for rounding, here and below. */
        rows.errors[i] = (float)(sqrt(square) + 0.5 * square + 1e-6);
    }
    Py_END_ALLOW_THREADS
    free(whole);
    Py_RETURN_NONE;
}

static void multiply_panels(const Rows *rows, Multiply *multiply, Int i, Int j, int32_t *out)
{
    const int32_t *left = rows->panels + i * PANEL * rows->words;
    const int32_t *right = rows->panels + j * PANEL * rows->words;
    for (Int a = 0; a < PANEL; a += TOGETHER)
        multiply(left + a, right, rows->words, rows->starts + i * PANEL + a, out + a * PANEL);
}

/* Where the products of two panels may be above the cutoff, see scan. */
VECTORISED static Int scan_panels(const Rows *rows, Int i, Int j, float cutoff, const int32_t *out,
                                  int32_t *restrict first, int32_t *restrict second, Int *certain)
{
    const float *weights = rows->weights + j * PANEL, *errors = rows->errors + j * PANEL;
    Int found = 0;
    for (Int a = 0; a < PANEL; a++) {
        float sizes[PANEL], weight = rows->weights[i * PANEL + a];
        float error = rows->errors[i * PANEL + a];
        int above = 0;
        for (int b = 0; b < PANEL; b++) {
            sizes[b] = fabsf((float)out[a * PANEL + b]) * weight * weights[b];
            above += sizes[b] + errors[b] > cutoff - error;
        }
        for (int b = i == j ? (int)a + 1 : 0; above > 0 && b < PANEL; b++)
            if (sizes[b] + errors[b] > cutoff - error) {
                first[found] = (int32_t)(i * PANEL + a);
                second[found++] = (int32_t)(j * PANEL + b);
                *certain += sizes[b] - errors[b] > cutoff + error;
            }
    }
    return found;
}

typedef struct {
    Int top, bottom, left, right;
} Tile;

static Tile take_tile(Arguments *args)
{
    Int top = integer(args), bottom = integer(args), left = integer(args), right = integer(args);
    return (Tile){top, bottom, left, right};
}

static Multiply *multiplication_of(const Arguments *args, const Rows *rows)
{
    Multiply *multiply = multiplication(rows->way);
    if (multiply == NULL)
        PyErr_Format(PyExc_ValueError, "%s() cannot multiply in this way here", args->kernel);
    return multiply;
}

static PyObject *scan(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("scan", values, count);
    Rows rows = take_rows(&args);
    Tile tile = take_tile(&args);
    double cutoff = number(&args);
    Places first = places(&args), second = places(&args);
    if (!complete(&args))
        return NULL;
    Int area = (tile.bottom - tile.top) * (tile.right - tile.left) * PANEL * PANEL;
    if (least_int(first.size, second.size) < area) {
        PyErr_SetString(PyExc_ValueError, "scan() needs room for all pairs of the tile");
        return NULL;
    }
    Multiply *multiply = multiplication_of(&args, &rows);
    if (multiply == NULL)
        return NULL;
    Int found = 0, certain = 0;
    int32_t out[PANEL * PANEL];
    Py_BEGIN_ALLOW_THREADS
    for (Int i = tile.top; i < tile.bottom; i++)
        for (Int j = most_int(i, tile.left); j < tile.right; j++) {
            multiply_panels(&rows, multiply, i, j, out);
            found += scan_panels(&rows, i, j, (float)cutoff, out, first.at + found,
                                 second.at + found, &certain);
        }
    Py_END_ALLOW_THREADS
    return Py_BuildValue("LL", (long long)found, (long long)certain);
}

/* Turn a block of numbers of two bytes, by eights in registers where the compiler can. */
#if defined(__GNUC__) && __GNUC__ >= 12
typedef int16_t Eight __attribute__((vector_size(16), aligned(2), may_alias));
#define FIRST_HALVES(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define SECOND_HALVES(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)

static void turn(const int16_t *block, int16_t *restrict turned)
{
    for (Int a = 0; a < PANEL; a += 8)
        for (Int b = 0; b < PANEL; b += 8) {
            Eight rows[8], mixed[8];
            for (int k = 0; k < 8; k++)
                rows[k] = *(const Eight *)(block + (a + k) * PANEL + b);
            /* Three times, each row is dealt with the one four further on. */
            for (int round = 0; round < 3; round++) {
                for (int k = 0; k < 4; k++) {
                    mixed[2 * k] = FIRST_HALVES(rows[k], rows[k + 4]);
                    mixed[2 * k + 1] = SECOND_HALVES(rows[k], rows[k + 4]);
                }
                memcpy(rows, mixed, sizeof rows);
            }
            for (int k = 0; k < 8; k++)
                *(Eight *)(turned + (b + k) * PANEL + a) = rows[k];
        }
}
#else
static void turn(const int16_t *block, int16_t *turned)
{
    for (Int a = 0; a < PANEL; a++)
        for (Int b = 0; b < PANEL; b++)
            turned[b * PANEL + a] = block[a * PANEL + b];
}
#endif

/* Write the products of two panels to their place in S and across its diagonal. */
VECTORISED static void write_panels(const Rows *rows, Int i, Int j, const int32_t *out,
                                    int16_t *restrict S, Int p)
{
    const float *weights = rows->weights + j * PANEL;
    Int height = least_int(PANEL, p - i * PANEL), width = least_int(PANEL, p - j * PANEL);
    int16_t block[PANEL * PANEL], turned[PANEL * PANEL];
    for (Int a = 0; a < PANEL; a++)
        for (Int b = 0; b < PANEL; b++) {
            float x = (float)out[a * PANEL + b] * (rows->weights[i * PANEL + a] * ONE) * weights[b];
            x = x < -ONE ? -ONE : x > ONE ? ONE : x;
            block[a * PANEL + b] = (int16_t)rintf(x);
        }
    for (Int a = 0; a < height; a++)
        memcpy(S + (i * PANEL + a) * p + j * PANEL, block + a * PANEL, width * sizeof(int16_t));
    if (i == j)
        return;
    turn(block, turned);
    for (Int b = 0; b < width; b++)
        memcpy(S + (j * PANEL + b) * p + i * PANEL, turned + b * PANEL, height * sizeof(int16_t));
}

static PyObject *fill(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("fill", values, count);
    Rows rows = take_rows(&args);
    Tile tile = take_tile(&args);
    PyArrayObject *S = array(&args, 2, 'i', sizeof(int16_t));
    if (!complete(&args))
        return NULL;
    Multiply *multiply = multiplication_of(&args, &rows);
    if (multiply == NULL)
        return NULL;
    int32_t out[PANEL * PANEL];
    Py_BEGIN_ALLOW_THREADS
    for (Int i = tile.top; i < tile.bottom; i++)
        for (Int j = most_int(i, tile.left); j < tile.right; j++) {
            multiply_panels(&rows, multiply, i, j, out);
            write_panels(&rows, i, j, out, PyArray_DATA(S), PyArray_DIM(S, 1));
        }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *has(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("has", values, count);
    Int way = integer(&args);
    return complete(&args) ? PyBool_FromLong(multiplication(way) != NULL) : NULL;
}

static PyMethodDef kernels[] = {
    KERNEL(has, "Whether this processor can multiply in a way."),
    KERNEL(round_rows, "Round some rows of a table, and note weights and errors."),
    KERNEL(scan,
           "Write the pairs of a tile, on or above the diagonal, whose product may exceed the cutoff\n"
           "in absolute value: how many there are, and how many exceed it for certain."),
    KERNEL(fill, "Write the products of a tile, and across the diagonal, in units of 1/ONE."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rounded", "Products of rows of whole numbers.", -1, kernels,
};

PyMODINIT_FUNC PyInit_rounded(void)
{
    PyObject *module = new_module(&definition);
    if (module != NULL) {
        PyModule_AddIntMacro(module, PANEL);
        PyModule_AddIntMacro(module, LONGEST);
        PyModule_AddIntMacro(module, ONE);
        PyModule_AddIntMacro(module, BYTES_PLAINLY);
        PyModule_AddIntMacro(module, PAIRS_PLAINLY);
        PyModule_AddIntMacro(module, BYTES_512);
        PyModule_AddIntMacro(module, PAIRS_512);
        PyModule_AddIntMacro(module, PAIRS_256);
    }
    return module;
}
