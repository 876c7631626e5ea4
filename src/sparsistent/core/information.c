/* The information of the free entries of Θ, compiled: second derivatives of the loss.

   With W = Θ⁻¹, entries a = (i, j) and b = (k, l) have H_ab = 2 f_a f_b (W_ik W_jl + W_il W_jk),
   where f is ½ on the diagonal and 1 elsewhere.

   A *tableau* holds what a quadratic model of the loss says about entries that are free and entries
   that are held at zero. With A the inverse of the information of the free ones, its blocks are −A,
   b = A H and v = H − H A H. Sweeping it at an entry lets that entry go free or holds it: all blocks
   are then those of the new model. A ``value`` beside it is θ for a free entry, and for one that is
   held the slope of the loss. */

#include "kernels.h"

/* A prediction says no more than that the loss changes by a lot beyond these. */
#define MOST_GAINED 0.999
#define MOST_LOST 0.4999
/* The least variance of a free entry at unit variances: its information is 4 at most. */
#define LEAST_FREE 0.25

static void fill(Matrix W, Ints i, const Int *j, const double *f, double *out)
{
    Int n = i.size, p = W.columns;
    for (Int a = 0; a < n; a++) {
        const double *first = W.at + i.at[a] * p, *second = W.at + j[a] * p;
        for (Int b = 0; b <= a; b++) {
            Int k = i.at[b], l = j[b];
            double h = 2.0 * f[a] * f[b] * (first[k] * second[l] + first[l] * second[k]);
            out[a * n + b] = out[b * n + a] = h;
        }
    }
}

static PyObject *information(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("information", values, count);
    Matrix W = matrix(&args);
    Ints i = ints(&args), j = ints(&args);
    Floats f = floats(&args);
    PyObject *out = complete(&args) ? new_matrix(i.size, i.size) : NULL;
    if (out == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    fill(W, i, j.at, f.at, data(out));
    Py_END_ALLOW_THREADS
    return out;
}

/* What an entry is worth that gains x by the quadratic model. */
static double gain(double x)
{
    return -log1p(-least(x, MOST_GAINED));
}

/* What an edge costs to remove that costs x by the quadratic model. */
static double cost(double x)
{
    x = least(x, MOST_LOST);
    return log((1.0 - x) / (1.0 - 2.0 * x));
}

typedef struct {
    double change;
    Int freed, held;
} Move;

static Move find_best(Matrix tableau, Floats value, const bool *free_entry, const double *smallest,
                      const bool *vain, double price)
{
    Int n = value.size;
    Move best = {INFINITY, n, n};
    for (Int c = 0; c < n; c++) {
        const double *row = tableau.at + c * n;
        const bool *futile = vain + c * (n + 1);
        if (free_entry[c]) {
            double x = 0.5 * value.at[c] * value.at[c] / most(-row[c], LEAST_FREE);
            double change = cost(x) - price;
            if (change < best.change && !vain[n * (n + 1) + c])
                best = (Move){change, n, c};
            continue;
        }
        double v = most(row[c], smallest[c]);
        double worth = gain(0.5 * value.at[c] * value.at[c] / v), step = value.at[c] / v;
        if (price - worth < best.change && !futile[n])
            best = (Move){price - worth, c, n};
        for (Int e = 0; e < n; e++) {
            if (!free_entry[e])
                continue;
            double after = value.at[e] + row[e] * step;
            double left = row[e] * row[e] / v - tableau.at[e * n + e];
            double x = 0.5 * after * after / most(left, LEAST_FREE);
            /* What an entry costs is never less than x. */
            if (x - worth < best.change && !futile[e]) {
                double change = cost(x) - worth;
                if (change < best.change)
                    best = (Move){change, c, e};
            }
        }
    }
    return best;
}

static PyObject *best_move(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("best_move", values, count);
    Matrix tableau = matrix(&args);
    Floats value = floats(&args);
    Flags free_entry = flags(&args);
    Floats smallest = floats(&args);
    PyArrayObject *vain = array(&args, 2, 'b', sizeof(bool));
    double price = number(&args);
    if (!complete(&args))
        return NULL;
    Move best;
    Py_BEGIN_ALLOW_THREADS
    best = find_best(tableau, value, free_entry.at, smallest.at, PyArray_DATA(vain), price);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("dLL", best.change, (long long)best.freed, (long long)best.held);
}

static PyMethodDef kernels[] = {
    KERNEL(information, "H among the entries (i, j) with weights f."),
    KERNEL(best_move,
           "The move after which loss and price are least: the change, the entry freed, the entry\n"
           "held. An entry number of n stands for none. Moves marked in vain are passed over."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "information", "The information of the free entries.", -1, kernels,
};

PyMODINIT_FUNC PyInit_information(void)
{
    PyObject *module = new_module(&definition);
    if (module != NULL)
        PyModule_AddObject(module, "LEAST_FREE", PyFloat_FromDouble(LEAST_FREE));
    return module;
}
