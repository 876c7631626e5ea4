/* Compiled loop that turns the columns of a table into rows of mean zero and norm one.

   A few columns are copied at a time, so that a line of cache of the table is read once, and then
   worked on while they are in cache. Scaling by powers of two, which rounds nothing, lets scales
   from 1e-150 to 1e150 in one table neither overflow nor vanish. */

#include "kernels.h"

/* Columns that are copied together, and samples of each. */
#define TOGETHER 16
/* Below this exponent of two a variance has underflowed; the reciprocal would overflow. */
#define LEAST_EXPONENT -1000

/* A table of any layout, in bytes. */
typedef struct {
    const char *at;
    Int samples, row_stride, column_stride;
    bool single;
} Table;

#define COPY(name, number)                                                                         \
    VECTORISED static void name(const Table *X, Int first, Int end, double factor,                 \
                                double *restrict unit)                                             \
    {                                                                                              \
        Int n = X->samples;                                                                        \
        for (Int i = 0; i < n; i += TOGETHER)                                                      \
            for (Int j = first; j < end; j++) {                                                    \
                const char *source = X->at + j * X->column_stride;                                 \
                for (Int a = i; a < least_int(i + TOGETHER, n); a++)                               \
                    unit[j * n + a] = factor * *(const number *)(source + a * X->row_stride);      \
            }                                                                                      \
    }
COPY(copy_double, double)
COPY(copy_single, float)

/* The mean of a row, by shares if there are any, taken out. */
VECTORISED static double center(double *restrict x, Int n, const double *share)
{
    double mean = 0.0;
    if (share != NULL)
        for (Int a = 0; a < n; a++)
            mean += share[a] * x[a];
    else
        for (Int a = 0; a < n; a++)
            mean += x[a];
    mean = share != NULL ? mean : mean / (double)n;
    for (Int a = 0; a < n; a++)
        x[a] -= mean;
    return mean;
}

LARGEST_OF

/* Bring a row to norm one: its norm before, after the factor and the roots of shares. */
VECTORISED static double normalise(double *restrict x, Int n, double factor, const double *root)
{
    double square = 0.0;
    if (root != NULL)
        for (Int a = 0; a < n; a++)
            x[a] *= root[a];
    for (Int a = 0; a < n; a++) {
        x[a] *= factor;
        square += x[a] * x[a];
    }
    double norm = sqrt(square), inverse = norm > 0.0 ? 1.0 / norm : 1.0;
    for (Int a = 0; a < n; a++)
        x[a] *= inverse;
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
        (single ? copy_single : copy_double)(&X, j, last, ldexp(1.0, (int)-room), unit.at);
        for (Int k = j; k < last; k++) {
            double *x = unit.at + k * n;
            mean.at[k] = 0.0;
            for (int time = 0; time < 2 && !centered; time++)
                mean.at[k] += center(x, n, share.size > 0 ? share.at : NULL);
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
