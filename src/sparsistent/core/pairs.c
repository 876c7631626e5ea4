/* Products of pairs of rows: made, remembered, recalled. */

#include "pairs.h"

PRODUCT_OF

static PyObject *products(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("products", values, count);
    Matrix unit = matrix(&args);
    Ints i = ints(&args), j = ints(&args);
    Floats s = floats(&args);
    if (!complete(&args))
        return NULL;
    Int n = unit.columns;
    Py_BEGIN_ALLOW_THREADS
    for (Int k = 0; k < i.size; k++)
        s.at[k] = product_of(unit.at + i.at[k] * n, unit.at + j.at[k] * n, n);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *remember(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("remember", values, count);
    Matrix known = matrix(&args);
    Ints pairs = ints(&args);
    Floats s = floats(&args);
    if (!complete(&args))
        return NULL;
    for (Int k = 0; k < pairs.size; k++) {
        bool there;
        double *line = line_of(known, pairs.at[k], &there);
        line[0] = (double)pairs.at[k];
        line[1] = s.at[k];
    }
    Py_RETURN_NONE;
}

static PyObject *recall(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("recall", values, count);
    Matrix known = matrix(&args);
    Ints pairs = ints(&args);
    Floats s = floats(&args);
    if (!complete(&args))
        return NULL;
    for (Int k = 0; k < pairs.size; k++) {
        bool there;
        const double *line = line_of(known, pairs.at[k], &there);
        s.at[k] = there ? line[1] : UNKNOWN;
    }
    Py_RETURN_NONE;
}

static PyMethodDef kernels[] = {
    KERNEL(products, "Products of the rows of each pair (i, j)."),
    KERNEL(remember, "Put products of pairs in a table."),
    KERNEL(recall, "Look products of pairs up in a table; UNKNOWN for what is not there."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "pairs", "Products of pairs of rows.", -1, kernels,
};

PyMODINIT_FUNC PyInit_pairs(void)
{
    PyObject *module = new_module(&definition);
    if (module != NULL) {
        PyModule_AddIntMacro(module, BUCKET);
        PyModule_AddObject(module, "UNKNOWN", PyFloat_FromDouble(UNKNOWN));
    }
    return module;
}
