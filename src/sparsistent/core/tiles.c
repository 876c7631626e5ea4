/* Compiled loops of the screening: which products of rows are large.

   A tile holds the products of some rows with some others, taken by BLAS. Looking at it must cost
   next to nothing beside making it, so the hits in a strip of entries are first counted without a
   branch, which the compiler turns into vector instructions, and only strips with hits are read one
   by one. */

#include "kernels.h"

#define STRIP 128

/* Where a tile is above a bound in absolute value, row by row: how many places were written, and at
   how many of them the value is above a second bound. On the diagonal only what is above it counts. */
#define SCAN(name, number)                                                                         \
    VECTORISED static Int name(const number *tile, Int height, Int width, bool on_diagonal,        \
                               number bound, number certain_bound, int32_t *rows,                  \
                               int32_t *columns, Int *certain)                                     \
    {                                                                                              \
        Int found = 0, sure = 0;                                                                   \
        for (Int a = 0; a < height; a++)                                                           \
            for (Int start = on_diagonal ? a + 1 : 0; start < width; start += STRIP) {             \
                const number *strip = tile + a * width + start;                                    \
                Int size = least_int(STRIP, width - start);                                        \
                int above = 0;                                                                     \
                for (Int b = 0; b < size; b++)                                                     \
                    above += (strip[b] < 0 ? -strip[b] : strip[b]) > bound;                        \
                for (Int b = 0; above > 0 && b < size; b++) {                                      \
                    number x = strip[b] < 0 ? -strip[b] : strip[b];                                \
                    if (x > bound) {                                                               \
                        rows[found] = (int32_t)a;                                                  \
                        columns[found++] = (int32_t)(start + b);                                   \
                        sure += x > certain_bound;                                                 \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        *certain = sure;                                                                           \
        return found;                                                                              \
    }
SCAN(scan_double, double)
SCAN(scan_single, float)

static PyObject *scan_tile(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("scan_tile", values, count);
    bool single = count > 0 && is_array(values[0], 2, 'f', sizeof(float));
    PyArrayObject *tile = array(&args, 2, 'f', single ? sizeof(float) : sizeof(double));
    bool on_diagonal = integer(&args);
    double bound = number(&args), certain_bound = number(&args);
    Places rows = places(&args), columns = places(&args);
    if (!complete(&args))
        return NULL;
    Int height = PyArray_DIM(tile, 0), width = PyArray_DIM(tile, 1), found, certain;
    if (least_int(rows.size, columns.size) < height * width) {
        PyErr_SetString(PyExc_ValueError, "scan_tile() needs room for all places of the tile");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    if (single)
        found = scan_single(PyArray_DATA(tile), height, width, on_diagonal, (float)bound,
                            (float)certain_bound, rows.at, columns.at, &certain);
    else
        found = scan_double(PyArray_DATA(tile), height, width, on_diagonal, bound, certain_bound,
                            rows.at, columns.at, &certain);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("LL", (long long)found, (long long)certain);
}

/* Blocks whose transposes are written together, so that a line of cache is used while it is there. */
#define SIDE 16

/* Write columns [left, right) of the rows [top, bottom) of a square matrix across its diagonal. */
VECTORISED static void mirror_tile(double *S, Int p, Int top, Int bottom, Int left, Int right)
{
    for (Int i = top; i < bottom; i += SIDE)
        for (Int j = left; j < right; j += SIDE)
            for (Int b = j; b < least_int(j + SIDE, right); b++)
                for (Int a = i; a < least_int(i + SIDE, bottom); a++)
                    S[b * p + a] = S[a * p + b];
}

static PyObject *mirror(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("mirror", values, count);
    Matrix S = matrix(&args);
    Int top = integer(&args), bottom = integer(&args);
    Int left = integer(&args), right = integer(&args);
    if (!complete(&args))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    mirror_tile(S.at, S.columns, top, bottom, left, right);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef kernels[] = {
    KERNEL(scan_tile, "Write where a tile is above a bound: how many places, how many for certain."),
    KERNEL(mirror, "Write a tile of a square matrix across its diagonal."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "tiles", "Compiled loops of the screening.", -1, kernels,
};

PyMODINIT_FUNC PyInit_tiles(void)
{
    return new_module(&definition);
}
