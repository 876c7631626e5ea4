/* The information of the free entries of Θ, compiled: second derivatives of the loss.

   With W = Θ⁻¹, entries a = (i, j) and b = (k, l) have H_ab = 2 f_a f_b (W_ik W_jl + W_il W_jk),
   where f is ½ on the diagonal and 1 elsewhere.

   A *tableau* holds what a quadratic model of the loss says about entries that are free and entries
   that are held at zero. With A the inverse of the information of the free ones, its blocks are −A,
   b = A H and v = H − H A H. Sweeping it at an entry lets that entry go free or holds it: all blocks
   are then those of the new model. A ``value`` beside it is θ for a free entry, and for one that is
   held the slope of the loss. */

#include "rows.h"

/* A prediction says no more than that the loss changes by a lot beyond these. */
#define MOST_GAINED 0.999
#define MOST_LOST 0.4999
/* The least variance of a free entry at unit variances: its information is 4 at most. */
#define LEAST_FREE 0.25
/* Around a pair at most so many nodes and entries count. Of a hub that is the first of its
   neighbours, which a search adds because they are the strongest. */
#define MOST_NODES 24
#define MOST_ENTRIES 64
/* Pivots below this are rounding: of entries that determine each other. */
#define LEAST_PIVOT 1e-9

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

/* The variances of two nodes and of their neighbours, and the edges among these: nodes by their
   numbers in the block, V their covariances. */
typedef struct {
    Int node[MOST_NODES], n_nodes;
    Int first[MOST_ENTRIES], second[MOST_ENTRIES], n_entries;
    double V[MOST_NODES * MOST_NODES];
    double factor[MOST_ENTRIES * MOST_ENTRIES];
} Block;

static void add_entry(Block *block, Int a, Int b)
{
    if (block->n_entries == MOST_ENTRIES)
        return;
    block->first[block->n_entries] = a;
    block->second[block->n_entries++] = b;
}

/* Put the nodes k, l and their neighbours in the block, as long as there is room; ``place`` has the
   number of each plus one, zero for all others. */
static void gather_nodes(const Edges *edges, Int k, Int l, Int *place, Block *block)
{
    block->node[0] = k;
    block->node[1] = l;
    block->n_nodes = 2;
    place[k] = 1;
    place[l] = 2;
    Int longest = most_int(edges->degree[k], edges->degree[l]);
    for (Int number = 0; number < longest; number++)
        for (Int end = 0; end < 2 && block->n_nodes < MOST_NODES; end++) {
            if (number >= edges->degree[block->node[end]])
                continue;
            Int other = edges->neighbor[edges->begin[block->node[end]] + number];
            if (place[other] > 0)
                continue;
            block->node[block->n_nodes++] = other;
            place[other] = block->n_nodes;
        }
}

/* Its variances, and its edges but for that of the first two nodes. */
static void gather_entries(const Edges *edges, const Int *place, Block *block)
{
    block->n_entries = 0;
    for (Int a = 0; a < block->n_nodes; a++)
        add_entry(block, a, a);
    for (Int a = 0; a < block->n_nodes; a++) {
        Int begin = edges->begin[block->node[a]], stop = begin + edges->degree[block->node[a]];
        for (Int slot = begin; slot < stop; slot++) {
            Int b = place[edges->neighbor[slot]] - 1;
            if (a < b && b > 1)
                add_entry(block, a, b);
        }
    }
}

static void gather_covariances(const Rows *rows, const Int *place, Block *block)
{
    Int n = block->n_nodes;
    memset(block->V, 0, n * n * sizeof *block->V);
    for (Int a = 0; a < n; a++) {
        Int first = rows->first[block->node[a]], size = rows->size[block->node[a]];
        if (!rows->sparse)
            for (Int b = 0; b < n; b++)
                block->V[a * n + b] = rows->w[first + block->node[b]];
        else
            for (Int slot = first; slot < first + size; slot++) {
                Int b = place[rows->column[slot]];
                if (b > 0)
                    block->V[a * n + b - 1] = rows->w[slot];
            }
    }
}

/* H between entry number e and (i, j), but for the weight of the latter. */
static double between(const Block *block, Int e, Int i, Int j)
{
    Int a = block->first[e], b = block->second[e], n = block->n_nodes;
    double weight = a == b ? 0.5 : 1.0;
    const double *V = block->V;
    return 2.0 * weight * (V[a * n + i] * V[b * n + j] + V[a * n + j] * V[b * n + i]);
}

/* H_ee − H_eF H_FF⁻¹ H_Fe of the first two nodes, by the rows of the Cholesky factor of H_FF. */
static double left_over(Block *block)
{
    const double *V = block->V;
    Int n = block->n_nodes;
    double v = 2.0 * (V[0] * V[n + 1] + V[1] * V[1]), solved[MOST_ENTRIES];
    for (Int e = 0; e < block->n_entries; e++) {
        double *L = block->factor + e * MOST_ENTRIES;
        for (Int f = 0; f <= e; f++) {
            const double *other = block->factor + f * MOST_ENTRIES;
            double h = between(block, e, block->first[f], block->second[f]);
            h *= block->first[f] == block->second[f] ? 0.5 : 1.0;
            for (Int c = 0; c < f; c++)
                h -= L[c] * other[c];
            L[f] = f < e ? h / other[f] : sqrt(most(h, LEAST_PIVOT));
        }
        double h = between(block, e, 0, 1);
        for (Int c = 0; c < e; c++)
            h -= L[c] * solved[c];
        solved[e] = h / L[e];
        v -= solved[e] * solved[e];
    }
    return v;
}

static PyObject *local_information(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("local_information", values, count);
    Rows rows = take_rows(&args);
    Edges edges = take_edges(&args);
    Ints place = ints(&args), k = ints(&args), l = ints(&args);
    PyObject *out = complete(&args) ? new_floats(k.size) : NULL;
    if (out == NULL)
        return NULL;
    Block *block = malloc(sizeof *block);
    if (block == NULL) {
        Py_DECREF(out);
        return PyErr_NoMemory();
    }
    double *v = data(out);
    Py_BEGIN_ALLOW_THREADS
    for (Int e = 0; e < k.size; e++) {
        gather_nodes(&edges, k.at[e], l.at[e], place.at, block);
        gather_entries(&edges, place.at, block);
        gather_covariances(&rows, place.at, block);
        for (Int a = 0; a < block->n_nodes; a++)
            place.at[block->node[a]] = 0;
        v[e] = left_over(block);
    }
    Py_END_ALLOW_THREADS
    free(block);
    return out;
}

static PyMethodDef kernels[] = {
    KERNEL(information, "H among the entries (i, j) with weights f."),
    KERNEL(local_information,
           "Of each pair (k, l) the information that is left when the variances of its nodes and\n"
           "their neighbours, and all other edges among these, are free. ``place``, one integer a\n"
           "node, is zero before and after."),
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
