/* Compiled loop that turns the columns of a table into rows of mean zero and norm one.

   A few columns are copied at a time, so that a line of cache of the table is read once, and then
   worked on while they are in cache. Scaling by powers of two, which rounds nothing, lets scales
   from 1e-150 to 1e150 in one table neither overflow nor vanish. */

#include "kernels.h"

/* Columns that are copied together, and samples of each. */
#define TOGETHER 32
/* By so many samples, memory is asked ahead of time. */
#define AHEAD 16
/* Below this exponent of two a variance has underflowed; the reciprocal would overflow. */
#define LEAST_EXPONENT -1000

/* A table of any layout, in bytes. */
typedef struct {
    const char *at;
    Int samples, row_stride, column_stride;
    bool single;
} Table;

#define COPY(name, number)                                                                         \
    VECTORISED static void name(const Table *X, Int first, Int end, Int sample, double factor,     \
                                double *restrict unit)                                             \
    {                                                                                              \
        Int n = X->samples;                                                                        \
        for (Int i = sample; i < n; i += TOGETHER)                                                 \
            for (Int j = first; j < end; j++) {                                                    \
                const char *source = X->at + j * X->column_stride;                                 \
                for (Int a = i; a < least_int(i + TOGETHER, n); a++)                               \
                    unit[j * n + a] = factor * *(const number *)(source + a * X->row_stride);      \
            }                                                                                      \
    }
COPY(copy_double, double)
COPY(copy_single, float)

/* The same where samples are rows of doubles, for columns and samples by fours, which are turned in
   registers: the first sample that is left. Samples to come are asked for ahead of time: they are too
   far apart for the processor to guess them. */
#if defined(__GNUC__) && __GNUC__ >= 12
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));

VECTORISED static Int copy_by_fours(const Table *X, Int first, Int end, double factor,
                                    double *restrict unit)
{
    Int n = X->samples, stride = X->row_stride, i = 0;
    for (; i + 4 <= n; i += 4) {
        for (Int a = i + AHEAD; a < least_int(i + AHEAD + 4, n); a++)
            for (Int j = first; j < end; j += 8)
                ASK_FOR(X->at + a * stride + j * (Int)sizeof(double));
        for (Int j = first; j < end; j += 4) {
            const char *at = X->at + i * stride + j * (Int)sizeof(double);
            double *to = unit + j * n + i;
            Four a = *(const Four *)at, b = *(const Four *)(at + stride);
            Four c = *(const Four *)(at + 2 * stride), d = *(const Four *)(at + 3 * stride);
            Four ab = __builtin_shufflevector(a, b, 0, 4, 2, 6);
            Four cd = __builtin_shufflevector(c, d, 0, 4, 2, 6);
            *(Four *)to = factor * __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
            *(Four *)(to + 2 * n) = factor * __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
            ab = __builtin_shufflevector(a, b, 1, 5, 3, 7);
            cd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
            *(Four *)(to + n) = factor * __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
            *(Four *)(to + 3 * n) = factor * __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        }
    }
    return i;
}
#else
static Int copy_by_fours(const Table *X, Int first, Int end, double factor, double *unit)
{
    return 0;
}
#endif

static void copy(const Table *X, Int first, Int end, double factor, double *unit)
{
    bool rows = !X->single && X->column_stride == sizeof(double) && (end - first) % 4 == 0;
    Int sample = rows ? copy_by_fours(X, first, end, factor, unit) : 0;
    (X->single ? copy_single : copy_double)(X, first, end, sample, factor, unit);
}

/* Take a number from a row: its mean after that, by shares if there are any. */
VECTORISED static double shift(double *restrict x, Int n, double mean, const double *share)
{
    double parts[PARTS] = {0.0}, total = 0.0;
    Int k = 0;
    if (share != NULL) {
        for (; k < n; k++) {
            x[k] -= mean;
            total += share[k] * x[k];
        }
        return total;
    }
    for (; k + PARTS <= n; k += PARTS)
        for (int b = 0; b < PARTS; b++) {
            x[k + b] -= mean;
            parts[b] += x[k + b];
        }
    for (; k < n; k++) {
        x[k] -= mean;
        total += x[k];
    }
    for (int b = 0; b < PARTS; b++)
        total += parts[b];
    return total / (double)n;
}

LARGEST_OF

/* Bring a row to norm one: its norm before, after the factor and the roots of shares. */
VECTORISED static double normalise(double *restrict x, Int n, double factor, const double *root)
{
    double parts[PARTS] = {0.0}, square = 0.0;
    Int k = 0;
    if (root != NULL)
        for (Int a = 0; a < n; a++)
            x[a] *= root[a];
    for (; k + PARTS <= n; k += PARTS)
        for (int b = 0; b < PARTS; b++)
            parts[b] += (factor * x[k + b]) * (factor * x[k + b]);
    for (; k < n; k++)
        square += (factor * x[k]) * (factor * x[k]);
    for (int b = 0; b < PARTS; b++)
        square += parts[b];
    double norm = sqrt(square), inverse = norm > 0.0 ? 1.0 / norm : 1.0;
    for (Int a = 0; a < n; a++)
        x[a] = factor * x[a] * inverse;
    return norm;
}

/* The mean is taken twice: the second one takes out what the first one rounded off. Without it a row
   of three hundred times 0.1 has deviations, all equal, and looks like data. */
static PyObject *standardise(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("standardise", values, count);
    PyObject *table = next_argument(&args);
    bool single = table != NULL && is_of_type(table, 2, 'f', sizeof(float));
    if (table != NULL && !single && !is_of_type(table, 2, 'f', sizeof(double)))
        refuse(&args, "a table of floating-point numbers");
    Matrix unit = matrix(&args);
    Int first = integer(&args), end = integer(&args);
    bool centered = integer(&args);
    Int room = integer(&args);
    Floats share = floats(&args), root = floats(&args);
    Floats mean = floats(&args), largest = floats(&args), norm = floats(&args);
    Ints exponent = ints(&args);
    if (!complete(&args))
        return NULL;
    PyArrayObject *source = (PyArrayObject *)table;
    Table X = {PyArray_BYTES(source), PyArray_DIM(source, 0), PyArray_STRIDE(source, 0),
               PyArray_STRIDE(source, 1), single};
    Int n = X.samples;
    Py_BEGIN_ALLOW_THREADS
    for (Int j = first; j < end; j += TOGETHER) {
        Int last = least_int(j + TOGETHER, end);
        copy(&X, j, last, ldexp(1.0, (int)-room), unit.at);
        for (Int k = j; k < last; k++) {
            double *x = unit.at + k * n;
            const double *shares = share.size > 0 ? share.at : NULL;
            mean.at[k] = 0.0;
            if (!centered) {
                double first_mean = shift(x, n, 0.0, shares);
                double second_mean = shift(x, n, first_mean, shares);
                shift(x, n, second_mean, shares);
                mean.at[k] = first_mean + second_mean;
            }
            int power = 0;
            largest.at[k] = largest_of(x, n);
            if (isfinite(largest.at[k]))
                frexp(largest.at[k], &power);
            exponent.at[k] = most_int(power, LEAST_EXPONENT);
            norm.at[k] = normalise(x, n, ldexp(1.0, (int)-exponent.at[k]),
                                   root.size > 0 ? root.at : NULL);
        }
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef kernels[] = {
    KERNEL(standardise,
           "Write some columns of X to unit as rows of mean zero and norm one: means before, largest\n"
           "deviations, norms, and the exponent of two by which these are divided."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "columns", "Standardised columns of a table.", -1, kernels,
};

PyMODINIT_FUNC PyInit_columns(void)
{
    return new_module(&definition);
}
