/* The compiled loop of Kendall's rank correlation.

   Samples come in one by one in the order of one column, those of equal rank together; a Fenwick
   tree over the ranks of another column counts who came before and is smaller. */

#include "kernels.h"

/* Concordant minus discordant pairs of samples, and how many are untied in either column. */
static void compare(Ints order, const Int *groups, const Int *other, Ints tree, Int *counts,
                    double *output)
{
    memset(tree.at, 0, tree.size * sizeof(Int));
    memset(counts, 0, tree.size * sizeof(Int));
    Int balance = 0, came = 0, tied = 0;
    for (Int begin = 0, end; begin < order.size; begin = end) {
        Int together = 0;
        for (end = begin; end < order.size && groups[end] == groups[begin]; end++) {
            Int r = other[order.at[end]];
            if (r == 0)
                continue;
            together++;
            counts[r]++;
            balance -= came;
            /* Once for those that are smaller, once for those and the tied ones. */
            for (Int last = r - 1; last <= r; last++)
                for (Int at = last; at > 0; at -= at & -at)
                    balance += tree.at[at];
        }
        for (Int place = begin; place < end; place++)
            for (Int at = other[order.at[place]]; 0 < at && at < tree.size; at += at & -at)
                tree.at[at]++;
        came += together;
        tied += together * (together - 1) / 2;
    }
    Int pairs = came * (came - 1) / 2, tied_other = 0;
    for (Int r = 0; r < tree.size; r++)
        tied_other += counts[r] * (counts[r] - 1) / 2;
    output[0] = (double)balance;
    output[1] = (double)(pairs - tied);
    output[2] = (double)(pairs - tied_other);
}

/* ``order`` are the samples that have a value in the column, by that value, and ``groups`` has its
   rank among them; row k of ``ranks`` are ranks from 1 of column k, 0 where there is no value. */
static PyObject *concordance(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("concordance", values, count);
    Ints order = ints(&args), groups = ints(&args);
    PyArrayObject *ranks = array(&args, 2, 'i', sizeof(Int));
    Int column = integer(&args);
    Ints tree = ints(&args), counts = ints(&args);
    Matrix output = matrix(&args);
    if (!complete(&args))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    Int n = PyArray_DIM(ranks, 1);
    for (Int k = column + 1; k < PyArray_DIM(ranks, 0); k++)
        compare(order, groups.at, (Int *)PyArray_DATA(ranks) + k * n, tree, counts.at,
                output.at + k * output.columns);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyMethodDef kernels[] = {
    KERNEL(concordance, "The balance of concordant pairs of one column with each after it."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "concordance", "Kendall's rank correlation.", -1, kernels,
};

PyMODINIT_FUNC PyInit_concordance(void)
{
    return new_module(&definition);
}
