/* What the files of compiled loops have in common: arrays from NumPy, the module, a few numbers.

   A kernel takes its arguments in the order of its parameters and says of each what it must be; an
   array of another type, shape or layout is a TypeError that names the kernel and the argument. What
   belongs together comes as a tuple:

       Arguments args = arguments("kernel", values, count);
       Arguments block = group(&args);
       Matrix V = matrix(&block);
       Ints nodes = ints(&block);
       close_group(&args, &block);
       double level = number(&args);
       if (!complete(&args))
           return NULL;

   Then it releases the GIL, so that threads can run kernels side by side, and loops. */

#ifndef SPARSISTENT_KERNELS_H
#define SPARSISTENT_KERNELS_H

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In place of what is not known: the cost of an edge, the maximum of a block. */
#define UNKNOWN 1e300
/* In place of the correlation of a pair that must not become an edge. */
#define BARRED -1e300
/* What correlations in two bytes have for one. */
#define ONE 16384
/* Nodes whose largest gain is kept as one number. */
#define NODE_BLOCK 128

/* One binary serves all processors of a family: loops marked so are compiled once for each set of
   vector instructions, and the best is chosen when the module is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif
#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline, unused))
#define ASK_FOR(address) __builtin_prefetch(address)
#else
#define INLINED static inline
#define ASK_FOR(address)
#endif
/* Bytes that memory sends together. */
#define LINE 64

typedef int64_t Int;

typedef struct {
    double *at;
    Int size;
} Floats;

typedef struct {
    Int *at;
    Int size;
} Ints;

typedef struct {
    int32_t *at;
    Int size;
} Places;

typedef struct {
    double *at;
    Int rows, columns;
} Matrix;

/* Values of which some are taken; those of a group are argument number ``group`` of the kernel. */
typedef struct {
    const char *kernel;
    PyObject *const *values;
    Py_ssize_t count, taken, group;
    bool failed;
} Arguments;

INLINED Arguments arguments(const char *kernel, PyObject *const *values, Py_ssize_t count)
{
    return (Arguments){kernel, values, count, 0, 0, false};
}

INLINED void refuse(Arguments *args, const char *expected)
{
    if (args->group > 0)
        PyErr_Format(PyExc_TypeError, "%s() argument %zd, item %zd must be %s", args->kernel,
                     args->group, args->taken, expected);
    else
        PyErr_Format(PyExc_TypeError, "%s() argument %zd must be %s", args->kernel, args->taken,
                     expected);
    args->failed = true;
}

INLINED PyObject *next_argument(Arguments *args)
{
    if (args->failed)
        return NULL;
    if (args->taken < args->count)
        return args->values[args->taken++];
    PyErr_Format(PyExc_TypeError, "%s() got only %zd values", args->kernel, args->count);
    args->failed = true;
    return NULL;
}

/* Whether all arguments were what they must be, and there are no more. */
INLINED bool complete(Arguments *args)
{
    if (!args->failed && args->taken < args->count) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd values, got %zd", args->kernel, args->taken,
                     args->count);
        args->failed = true;
    }
    return !args->failed;
}

/* The next argument, a tuple, as arguments of their own. */
INLINED Arguments group(Arguments *args)
{
    PyObject *value = next_argument(args);
    Arguments items = {args->kernel, NULL, 0, 0, args->taken, args->failed};
    if (value != NULL && !PyTuple_Check(value)) {
        refuse(args, "a tuple");
        items.failed = true;
    } else if (value != NULL) {
        items.values = PySequence_Fast_ITEMS(value);
        items.count = PyTuple_GET_SIZE(value);
    }
    return items;
}

/* The arguments after a group are worth reading only if the group was. */
INLINED void close_group(Arguments *args, Arguments *items)
{
    args->failed |= !complete(items);
}

INLINED bool is_of_type(PyObject *value, int dimensions, char kind, int bytes)
{
    if (!PyArray_Check(value))
        return false;
    PyArrayObject *array = (PyArrayObject *)value;
    return PyArray_NDIM(array) == dimensions && PyArray_DESCR(array)->kind == kind &&
           PyArray_ITEMSIZE(array) == bytes && PyArray_ISALIGNED(array) &&
           PyArray_ISNOTSWAPPED(array);
}

INLINED bool is_array(PyObject *value, int dimensions, char kind, int bytes)
{
    return is_of_type(value, dimensions, kind, bytes) &&
           PyArray_IS_C_CONTIGUOUS((PyArrayObject *)value);
}

/* The next argument as an array with so many dimensions, of a kind of numbers, in C order. */
INLINED PyArrayObject *array(Arguments *args, int dimensions, char kind, int bytes)
{
    PyObject *value = next_argument(args);
    if (value == NULL || is_array(value, dimensions, kind, bytes))
        return (PyArrayObject *)value;
    char expected[64];
    snprintf(expected, sizeof expected, "a C-contiguous array of type %c%d with %d dimensions", kind,
             bytes, dimensions);
    refuse(args, expected);
    return NULL;
}

#define TAKE_ARRAY(Type, name, kind, item)                                                         \
    INLINED Type name(Arguments *args)                                                             \
    {                                                                                              \
        PyArrayObject *x = array(args, 1, kind, sizeof(item));                                     \
        return x == NULL ? (Type){NULL, 0} : (Type){(item *)PyArray_DATA(x), PyArray_DIM(x, 0)};   \
    }
TAKE_ARRAY(Floats, floats, 'f', double)
TAKE_ARRAY(Ints, ints, 'i', Int)
TAKE_ARRAY(Places, places, 'i', int32_t)

typedef struct {
    bool *at;
    Int size;
} Flags;
TAKE_ARRAY(Flags, flags, 'b', bool)

INLINED Matrix matrix(Arguments *args)
{
    PyArrayObject *x = array(args, 2, 'f', sizeof(double));
    if (x == NULL)
        return (Matrix){NULL, 0, 0};
    return (Matrix){(double *)PyArray_DATA(x), PyArray_DIM(x, 0), PyArray_DIM(x, 1)};
}

INLINED double number(Arguments *args)
{
    PyObject *value = next_argument(args);
    double x = value == NULL ? 0.0 : PyFloat_AsDouble(value);
    args->failed |= x == -1.0 && PyErr_Occurred();
    return x;
}

INLINED Int integer(Arguments *args)
{
    PyObject *value = next_argument(args);
    Int x = value == NULL ? 0 : PyLong_AsLongLong(value);
    args->failed |= x == -1 && PyErr_Occurred();
    return x;
}

INLINED PyObject *new_floats(Int size)
{
    npy_intp shape[1] = {size};
    return PyArray_SimpleNew(1, shape, NPY_DOUBLE);
}

INLINED PyObject *new_ints(Int size)
{
    npy_intp shape[1] = {size};
    return PyArray_SimpleNew(1, shape, NPY_INT64);
}

INLINED PyObject *new_matrix(Int rows, Int columns)
{
    npy_intp shape[2] = {rows, columns};
    return PyArray_SimpleNew(2, shape, NPY_DOUBLE);
}

INLINED void *data(PyObject *array)
{
    return PyArray_DATA((PyArrayObject *)array);
}

INLINED Int least_int(Int x, Int y) { return x < y ? x : y; }
INLINED Int most_int(Int x, Int y) { return x > y ? x : y; }
INLINED double least(double x, double y) { return x < y ? x : y; }
INLINED double most(double x, double y) { return x > y ? x : y; }

/* The bits of |x| as an integer: in the same order, and compilers find the maximum of integers,
   unlike that of floats, several at a time. */
INLINED Int magnitude(double x)
{
    Int bits;
    x = fabs(x);
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINED double of_magnitude(Int bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The largest of some numbers in absolute value; not finite where one of them is not. */
#define LARGEST_OF                                                                                 \
    VECTORISED static double largest_of(const double *x, Int n)                                    \
    {                                                                                              \
        Int bits = 0;                                                                              \
        for (Int k = 0; k < n; k++)                                                                \
            bits = most_int(bits, magnitude(x[k]));                                                \
        return of_magnitude(bits);                                                                 \
    }

/* Where sums are taken in parts, which need not wait for each other, so many of them. */
#define PARTS 32

#define KERNEL(name, doc) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, doc}
#define END_OF_KERNELS {NULL, NULL, 0, NULL}

INLINED PyObject *new_module(PyModuleDef *definition)
{
    import_array1(NULL);
    return PyModule_Create(definition);
}

#endif
