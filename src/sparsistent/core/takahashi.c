/* Compiled loop for the entries of an inverse on the pattern of its sparse factor.

   With A = L D L' and Z = A⁻¹, Takahashi's equations give Z on the pattern of L from the last
   column to the first: Z_ij = −Σ_k Z_ik L_kj over k > j in column j, and Z_jj = 1/d_j − Σ_k L_kj
   Z_kj. They cost about as much as the factorisation, where all of Z would cost p solves. */

#include "kernels.h"

/* Columns of L are sorted by row and begin with the diagonal; ``position`` is -1 everywhere. */
static void fill(const Int *start, const Int *row, const double *L, Floats diagonal, double *Z,
                 double *Z_diagonal, Int *position)
{
    for (Int j = diagonal.size - 1; j >= 0; j--) {
        Int begin = start[j] + 1, end = start[j + 1];
        for (Int a = begin; a < end; a++) {
            position[row[a]] = a;
            Z[a] = 0.0;
        }
        for (Int a = begin; a < end; a++) {
            Int k = row[a];
            double z = Z[a] - Z_diagonal[k] * L[a];
            for (Int c = start[k] + 1; c < start[k + 1]; c++) {
                Int b = position[row[c]];
                if (b >= 0) {
                    Z[b] -= Z[c] * L[a];
                    z -= Z[c] * L[b];
                }
            }
            Z[a] = z;
        }
        double total = 1.0 / diagonal.at[j];
        for (Int a = begin; a < end; a++) {
            position[row[a]] = -1;
            total -= L[a] * Z[a];
        }
        Z_diagonal[j] = total;
    }
}

static PyObject *inverse_on_pattern(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("inverse_on_pattern", values, count);
    Ints start = ints(&args), row = ints(&args);
    Floats L = floats(&args), diagonal = floats(&args);
    Floats Z = floats(&args), Z_diagonal = floats(&args);
    if (!complete(&args))
        return NULL;
    Int *position = malloc(most_int(diagonal.size, 1) * sizeof(Int));
    if (position == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Int k = 0; k < diagonal.size; k++)
        position[k] = -1;
    fill(start.at, row.at, L.at, diagonal, Z.at, Z_diagonal.at, position);
    Py_END_ALLOW_THREADS
    free(position);
    Py_RETURN_NONE;
}

static PyMethodDef kernels[] = {
    KERNEL(inverse_on_pattern, "Fill Z on the pattern of L by columns, and its diagonal."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "takahashi", "The inverse on the pattern of a factor.", -1, kernels,
};

PyMODINIT_FUNC PyInit_takahashi(void)
{
    return new_module(&definition);
}
