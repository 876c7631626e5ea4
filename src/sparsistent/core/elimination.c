/* Compiled loops for a sparse positive definite matrix: its factor, and its inverse on the pattern of
   that.

   A = L D L', where L has ones on the diagonal, is made row by row. Row k of L has entries where the
   paths from the entries of row k of A to the root of the elimination tree lead; the tree, and with
   it the pattern of L, is the same for all matrices on a graph. With Z = A⁻¹, Takahashi's equations
   give Z on that pattern from the last column to the first: Z_ij = −Σ_k Z_ik L_kj over k > j in
   column j, and Z_jj = 1/d_j − Σ_k L_kj Z_kj. They cost about as much as the factor, where all of Z
   would cost p solves.

   A is given by its diagonal and, for each row k, the entries before it; L and Z by columns, without
   their diagonals. Rows of a column come in order. */

#include "kernels.h"

/* Entries of rows or columns: where each begins, and in which column or row they stand. */
typedef struct {
    Int *starts, *others;
} Pattern;

/* Parents in the elimination tree, and how many entries each column of L has. */
static PyObject *analyse(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("analyse", values, count);
    Ints starts = ints(&args), others = ints(&args), parents = ints(&args), counts = ints(&args);
    if (!complete(&args))
        return NULL;
    Int p = parents.size;
    Int *seen = malloc(most_int(p, 1) * sizeof(Int));
    if (seen == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Int k = 0; k < p; k++) {
        parents.at[k] = -1;
        counts.at[k] = 0;
        seen[k] = k;
        for (Int e = starts.at[k]; e < starts.at[k + 1]; e++)
            for (Int i = others.at[e]; seen[i] != k; i = parents.at[i]) {
                if (parents.at[i] < 0)
                    parents.at[i] = k;
                counts.at[i]++;
                seen[i] = k;
            }
    }
    Py_END_ALLOW_THREADS
    free(seen);
    Py_RETURN_NONE;
}

/* Fill L and D, where D holds the diagonal of A before; false where A is not positive definite. The
   numbers are zero at first, and ``seen`` is -1. */
static bool decompose(Int p, Pattern A, const double *entries, const Int *parents, Pattern columns,
                      double *L, double *D, double *row, Int *seen, Int *ends, Int *path)
{
    for (Int k = 0; k < p; k++) {
        Int top = p;
        seen[k] = k;
        ends[k] = columns.starts[k];
        for (Int e = A.starts[k]; e < A.starts[k + 1]; e++) {
            Int length = 0;
            row[A.others[e]] = entries[e];
            for (Int i = A.others[e]; seen[i] != k; i = parents[i]) {
                path[length++] = i;
                seen[i] = k;
            }
            /* What is nearer to the root comes later. */
            while (length > 0)
                path[--top] = path[--length];
        }
        for (; top < p; top++) {
            Int i = path[top], end = ends[i]++;
            double x = row[i];
            row[i] = 0.0;
            for (Int e = columns.starts[i]; e < end; e++)
                row[columns.others[e]] -= L[e] * x;
            columns.others[end] = k;
            L[end] = x / D[i];
            D[k] -= L[end] * x;
        }
        if (!(D[k] > 0.0))
            return false;
    }
    return true;
}

/* The first of the columns up to j that have the same rows below j: the pattern of each is the next
   column and its pattern. */
static Int first_alike(Pattern columns, Int j)
{
    const Int *starts = columns.starts;
    while (j > 0 && starts[j] - starts[j - 1] == starts[j + 1] - starts[j] + 1 &&
           columns.others[starts[j - 1]] == j)
        j--;
    return j;
}

/* The most rows that columns alike have, together with themselves. */
static Int most_rows(Pattern columns, Int p)
{
    Int most_so_far = 0;
    for (Int last = p - 1, first; last >= 0; last = first - 1) {
        first = first_alike(columns, last);
        most_so_far = most_int(most_so_far, columns.starts[first + 1] - columns.starts[first] + 1);
    }
    return most_so_far;
}

/* Column a of a dense block of Z, of size t and known from a + 1 on, for that of L below. */
VECTORISED static double fill_column(double *restrict block, Int t, Int a, const double *L, double d)
{
    double total = 1.0 / d;
    for (Int x = a + 1; x < t; x++) {
        const double *row = block + x * t + a + 1;
        double z = 0.0;
        for (Int y = 0; y < t - a - 1; y++)
            z -= row[y] * L[y];
        block[a * t + x] = z;
        total -= L[x - a - 1] * z;
    }
    for (Int x = a + 1; x < t; x++)
        block[x * t + a] = block[a * t + x];
    block[a * t + a] = total;
    return total;
}

/* Fill Z on the pattern of L, and its diagonal, for columns alike together: what Z has on their rows
   is copied into a dense block once. ``places`` is -1 everywhere. */
static void invert(Int p, Pattern columns, const double *L, const double *D, double *Z,
                   double *Z_diagonal, Int *places, double *block)
{
    const Int *starts = columns.starts, *others = columns.others;
    for (Int last = p - 1, first; last >= 0; last = first - 1) {
        first = first_alike(columns, last);
        Int own = last - first + 1, begin = starts[last], end = starts[last + 1];
        Int t = own + end - begin;
        for (Int e = begin; e < end; e++)
            places[others[e]] = own + e - begin;
        for (Int e = begin; e < end; e++) {
            Int k = others[e], x = own + e - begin;
            block[x * t + x] = Z_diagonal[k];
            for (Int c = starts[k]; c < starts[k + 1]; c++) {
                Int y = places[others[c]];
                if (y >= 0)
                    block[x * t + y] = block[y * t + x] = Z[c];
            }
        }
        for (Int e = begin; e < end; e++)
            places[others[e]] = -1;
        for (Int j = last; j >= first; j--) {
            Int a = j - first;
            Z_diagonal[j] = fill_column(block, t, a, L + starts[j], D[j]);
            memcpy(Z + starts[j], block + a * t + a + 1, (t - a - 1) * sizeof(double));
        }
    }
}

static PyObject *inverse_on_pattern(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("inverse_on_pattern", values, count);
    Pattern A, columns;
    Floats diagonal = floats(&args), entries = floats(&args);
    A.starts = ints(&args).at;
    A.others = ints(&args).at;
    Int *parents = ints(&args).at;
    columns.starts = ints(&args).at;
    columns.others = ints(&args).at;
    Floats Z = floats(&args), Z_diagonal = floats(&args);
    if (!complete(&args))
        return NULL;
    Int p = diagonal.size;
    double *L = malloc(most_int(Z.size + 2 * p, 1) * sizeof(double));
    Int *work = malloc(most_int(3 * p, 1) * sizeof(Int));
    bool positive = false, failed = L == NULL || work == NULL;
    if (L != NULL && work != NULL) {
        double *D = L + Z.size, *row = D + p;
        Py_BEGIN_ALLOW_THREADS
        memcpy(D, diagonal.at, p * sizeof(double));
        for (Int k = 0; k < p; k++) {
            row[k] = 0.0;
            work[k] = -1;
        }
        positive = decompose(p, A, entries.at, parents, columns, L, D, row, work, work + p,
                             work + 2 * p);
        if (positive) {
            Int size = most_rows(columns, p);
            double *block = malloc(most_int(size * size, 1) * sizeof(double));
            failed = block == NULL;
            for (Int k = 0; k < p; k++)
                work[k] = -1;
            if (!failed)
                invert(p, columns, L, D, Z.at, Z_diagonal.at, work, block);
            free(block);
        }
        Py_END_ALLOW_THREADS
    }
    free(L);
    free(work);
    return failed ? PyErr_NoMemory() : PyBool_FromLong(positive);
}

static PyMethodDef kernels[] = {
    KERNEL(analyse, "Fill the parents in the elimination tree, and the sizes of the columns of L."),
    KERNEL(inverse_on_pattern,
           "Factorise A, and fill the places of L, and the inverse there and on its diagonal.\n"
           "False where A is not positive definite."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "elimination", "Sparse factors and inverses.", -1, kernels,
};

PyMODINIT_FUNC PyInit_elimination(void)
{
    return new_module(&definition);
}
