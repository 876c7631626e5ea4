/* Compiled loops of the global algorithm: gains of pairs and costs of edges.

   Everything is at unit variances; rows.h says how W, dense or sparse, is kept. */

#include "pairs.h"
#include "rows.h"

/* Up to this gain, |s − w| is at least LEAST_RATIO times its square root. */
#define TAME_GAIN 0.3
#define LEAST_RATIO 0.9
/* In place of a pair, where there is no room to know the correlations that it takes to find one. */
#define NO_ROOM -2

/* Largest drop of the loss when one entry of the precision moves and all others stay. The minimiser
   α is a root of a quadratic, taken in the form that does not cancel. */
static double gain_of(double s, double w)
{
    double d = 1.0 - w * w, b = d + 2.0 * s * w;
    double root = sqrt(most(b * b - 4.0 * s * d * (w - s), 0.0));
    double alpha = 2.0 * (w - s) / (b + root);
    return log1p(2.0 * alpha * w - alpha * alpha * d) - 2.0 * alpha * s;
}

/* |s − w| is above this where the gain is above another. */
static double least_difference(double gain)
{
    return LEAST_RATIO * sqrt(least(gain, TAME_GAIN));
}

static PyObject *coordinate_gain(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("coordinate_gain", values, count);
    double s = number(&args), w = number(&args);
    return complete(&args) ? PyFloat_FromDouble(gain_of(s, w)) : NULL;
}

static double cost_of(double s, double w, double theta)
{
    double x = -2.0 * theta * w - theta * theta * (1.0 - w * w);
    return x <= -1.0 ? INFINITY : -2.0 * theta * s - log1p(x);
}

static PyObject *removal_cost(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("removal_cost", values, count);
    double s = number(&args), w = number(&args), theta = number(&args);
    return complete(&args) ? PyFloat_FromDouble(cost_of(s, w, theta)) : NULL;
}

typedef struct {
    Int i, j;
    double gain;
} Pair;

static PyObject *as_tuple(Pair pair)
{
    return Py_BuildValue("LLd", (long long)pair.i, (long long)pair.j, pair.gain);
}

LARGEST_OF

/* How many entries of W differ from those of S by more than that. */
VECTORISED static Int count_different(const double *s, const double *w, Int size, double need)
{
    Int above = 0;
    for (Int k = 0; k < size; k++)
        above += fabs(s[k] - w[k]) > need;
    return above;
}

/* The largest |s − w| of some entries. */
VECTORISED static double most_different(const double *s, const double *w, Int size)
{
    Int bits = 0;
    for (Int k = 0; k < size; k++)
        bits = most_int(bits, magnitude(s[k] - w[k]));
    return of_magnitude(bits);
}

/* Looks at all pairs of a dense W but those that are barred. Edges need no exception: there s = w. */
static Pair look_at_all(Matrix S, Matrix W, double threshold)
{
    Pair best = {-1, -1, threshold};
    Int p = S.rows;
    for (Int i = 0; i < p; i++) {
        double need = least_difference(best.gain);
        const double *row = W.at + i * p, *sample = S.at + i * p;
        if (count_different(sample + i + 1, row + i + 1, p - i - 1, need) == 0)
            continue;
        for (Int j = i + 1; j < p; j++)
            if (fabs(sample[j] - row[j]) > need && sample[j] != BARRED) {
                double gain = gain_of(sample[j], row[j]);
                if (gain > best.gain) {
                    best = (Pair){i, j, gain};
                    need = least_difference(gain);
                }
            }
    }
    return best;
}

static PyObject *best_of_all(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("best_of_all", values, count);
    Matrix S = matrix(&args), W = matrix(&args);
    double threshold = number(&args);
    if (!complete(&args))
        return NULL;
    Pair best;
    Py_BEGIN_ALLOW_THREADS
    best = look_at_all(S, W, threshold);
    Py_END_ALLOW_THREADS
    return as_tuple(best);
}

/* What an edge costs, where that is not known taken afresh. */
static double cost_at(const Matrix *edges, Int e)
{
    double *value = edges->at + EDGE_VALUES * e;
    /* Rounding can make less than nothing of an edge that is worth nothing. */
    if (value[COST] == UNKNOWN)
        value[COST] = most(cost_of(value[SAMPLE], value[SAMPLE], value[THETA]), 0.0);
    return value[COST];
}

/* The one of two edges that costs less, or else the first. */
static Int cheaper(const Matrix *edges, Int e, Int f)
{
    double one = cost_at(edges, e), other = cost_at(edges, f);
    return one < other || (one == other && e < f) ? e : f;
}

/* ``cheapest`` is the number found the last time. Only if that edge has changed, or is none any more,
   others than those that are stale can be the cheapest now. */
static PyObject *cheapest_edge(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("cheapest_edge", values, count);
    Matrix edges = matrix(&args);
    Int *stale = ints(&args).at;
    Int kept = integer(&args), end = integer(&args), cheapest = integer(&args);
    if (!complete(&args))
        return NULL;
    bool among_all = cheapest < kept || cheapest >= end ||
                     edges.at[EDGE_VALUES * cheapest + COST] == UNKNOWN;
    if (among_all)
        cheapest = kept;
    for (Int c = 1; c <= stale[0]; c++) {
        Int e = stale[c];
        if (e < kept || e >= end)
            /* Not UNKNOWN, which would say that it is among the stale. */
            edges.at[EDGE_VALUES * e + COST] = 0.0;
        else
            cheapest = cheaper(&edges, cheapest, e);
    }
    stale[0] = 0;
    for (Int e = kept; among_all && e < end; e++)
        cheapest = cheaper(&edges, cheapest, e);
    return PyLong_FromLongLong(cheapest);
}

/* No gain above the threshold is above the bound of its row. A row whose entries have changed may have
   another partner, which nobody knows before it is looked at again. */
static PyObject *update_bounds(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("update_bounds", values, count);
    double *bound = floats(&args).at;
    Int *partner = ints(&args).at;
    double *tops = floats(&args).at;
    Ints nodes = ints(&args);
    Matrix changes = matrix(&args);
    double threshold = number(&args);
    if (!complete(&args))
        return NULL;
    const double *amounts = changes.at, *differences = changes.at + changes.columns;
    double need = least_difference(threshold);
    for (Int c = 0; c < nodes.size; c++) {
        if (amounts[c] == 0.0)
            continue;
        Int k = nodes.at[c], block = k / NODE_BLOCK;
        double root = differences[c] / LEAST_RATIO, gain = root * root;
        partner[k] = -1;
        if (differences[c] > need)
            bound[k] = most(bound[k], gain < TAME_GAIN ? gain : INFINITY);
        tops[block] = most(tops[block], bound[k]);
    }
    Py_RETURN_NONE;
}

PRODUCT_OF

#define WHOLE_PRODUCT(name, Whole)                                                                 \
    VECTORISED static int32_t name(const Whole *x, const Whole *y, Int n)                          \
    {                                                                                              \
        int32_t total = 0;                                                                         \
        for (Int k = 0; k < n; k++)                                                                \
            total += x[k] * y[k];                                                                  \
        return total;                                                                              \
    }
WHOLE_PRODUCT(product_of_bytes, int8_t)
WHOLE_PRODUCT(product_of_pairs, int16_t)

/* Rows of a table rounded to whole numbers of one or two bytes, see rounded.c, or none. */
typedef struct {
    const char *at;
    Int bytes;
    bool single;
    const float *weights, *errors;
} Rounded;

typedef struct {
    bool table;
    Matrix source;
    Rounded rounded;
    double reach;
    Floats bound;
    Int *partner;
    Floats tops;
    double threshold;
} Search;

/* S_km, from the standardised columns in the rows of a table, or from the matrix itself. */
static double correlation(const Search *a, Int k, Int m)
{
    Int n = a->source.columns;
    const double *row = a->source.at + k * n;
    return a->table ? product_of(row, a->source.at + m * n, n) : row[m];
}

/* About S_km, up to the errors of both rows, from an eighth or a quarter of the bytes. */
static double rough_correlation(const Search *a, Int k, Int m)
{
    const Rounded *rounded = &a->rounded;
    if (rounded->at == NULL)
        return correlation(a, k, m);
    const char *x = rounded->at + k * rounded->bytes, *y = rounded->at + m * rounded->bytes;
    int32_t product =
        rounded->single
            ? product_of_bytes((const int8_t *)x, (const int8_t *)y, rounded->bytes)
            : product_of_pairs((const int16_t *)x, (const int16_t *)y, rounded->bytes / 2);
    return (double)product * rounded->weights[k] * rounded->weights[m];
}

static void swap_ints(int32_t *x, int32_t *y)
{
    int32_t z = *x;
    *x = *y;
    *y = z;
}

/* Let the entries at two places of a sparse row change places. */
static void swap_entries(const Rows *rows, Int k, Int c, Int d)
{
    Int one = rows->first[k] + c, two = rows->first[k] + d;
    double w = rows->w[one];
    rows->w[one] = rows->w[two];
    rows->w[two] = w;
    swap_ints(rows->column + one, rows->column + two);
    swap_ints(rows->twin + one, rows->twin + two);
    rows->twin[rows->first[rows->column[one]] + rows->twin[one]] = (int32_t)c;
    rows->twin[rows->first[rows->column[two]] + rows->twin[two]] = (int32_t)d;
}

/* Know a correlation about, which is that of the entry at place c of a sparse row. */
static void know(const Rows *rows, Int k, Int c, double s)
{
    Int d = rows->known[k]++;
    if (d == rows->room_known[k]) {
        Int to = rows->used[1];
        memcpy(rows->s + to, rows->s + rows->first_known[k], d * sizeof(double));
        rows->first_known[k] = to;
        rows->room_known[k] = 2 * d + 8;
        rows->used[1] += rows->room_known[k];
    }
    rows->s[rows->first_known[k] + d] = s;
    swap_entries(rows, k, c, d);
}

/* Know a correlation as it is, that was known about. */
static void know_exactly(const Rows *rows, Int k, Int c, double s)
{
    Int d = rows->exact[k]++;
    double *known = rows->s + rows->first_known[k];
    known[c] = known[d];
    known[d] = s;
    swap_entries(rows, k, c, d);
}

/* Ask for the correlations of a sparse row whose covariance is above ``reach``. Returns false where
   there is no room to know them. */
static bool ask_for_correlations(const Rows *rows, const Search *a, Int k)
{
    Int begin = rows->first[k], size = rows->size[k], known = rows->known[k];
    if (largest_of(rows->w + begin + known, size - known) <= a->reach)
        return true;
    for (Int c = known; c < size; c++)
        if (fabs(rows->w[begin + c]) > a->reach) {
            Int m = rows->column[begin + c], place = rows->twin[begin + c];
            Int need = 2 * (rows->room_known[k] + rows->room_known[m] + 8);
            if (rows->used[1] + need > rows->capacity_known)
                return false;
            double s = rough_correlation(a, k, m);
            know(rows, k, c, s);
            know(rows, m, place, s);
            if (a->rounded.at == NULL) {
                /* Then all that is known is exact. */
                rows->exact[k]++;
                rows->exact[m]++;
            }
        }
    return true;
}

/* Take the correlations of a sparse row that are known about, and may differ from W by more than
   ``need``, as they are. */
static void settle(const Rows *rows, const Search *a, Int k, double need)
{
    for (Int c = rows->exact[k]; c < rows->known[k]; c++) {
        Int slot = rows->first[k] + c, m = rows->column[slot], place = rows->twin[slot];
        double error = (double)a->rounded.errors[k] + a->rounded.errors[m];
        if (fabs(rows->s[rows->first_known[k] + c] - rows->w[slot]) + error > need) {
            double s = correlation(a, k, m);
            know_exactly(rows, k, c, s);
            know_exactly(rows, m, place, s);
        }
    }
}

/* Find the largest gain in row k of W, and the partner. Returns false where there is no room to know
   all the correlations that this takes: those that are known by then stay. */
static bool look_at_row(const Rows *rows, const Search *a, Int k, double need)
{
    if (rows->sparse) {
        if (!ask_for_correlations(rows, a, k))
            return false;
        settle(rows, a, k, need);
    }
    Int begin = rows->first[k], size = rows->exact[k], partner = -1;
    const double *s = rows->s + rows->first_known[k], *w = rows->w + begin;
    double best = 0.0, largest = most_different(s, w, size);
    for (Int c = 0; largest > need && c < size; c++)
        if (fabs(s[c] - w[c]) > need && s[c] != BARRED) {
            Int m = node_at(rows, begin + c, c);
            double gain = gain_of(s[c], w[c]);
            if (gain > most(best, a->threshold) || (gain == best && m < partner)) {
                best = gain;
                partner = m;
                need = most(need, least_difference(gain));
            }
        }
    a->bound.at[k] = best;
    a->partner[k] = partner;
    return true;
}

/* The largest bound of a block of nodes. */
static double top_of(const Search *a, Int block)
{
    Int first = block * NODE_BLOCK;
    return largest_of(a->bound.at + first, least_int(NODE_BLOCK, a->bound.size - first));
}

/* Rows are looked at in the order of their bounds, until the first whose partner is known. */
static Pair look_at_rows(const Rows *rows, const Search *a)
{
    double need = least_difference(a->threshold), *tops = a->tops.at, *bound = a->bound.at;
    while (true) {
        double top = largest_of(tops, a->tops.size);
        if (!(top > a->threshold))
            return (Pair){-1, -1, a->threshold};
        Int best = 0;
        while (tops[best] != top)
            best++;
        Int k = best * NODE_BLOCK;
        while (bound[k] != top)
            k++;
        if (a->partner[k] >= 0)
            return (Pair){k, a->partner[k], top};
        if (!look_at_row(rows, a, k, need))
            return (Pair){NO_ROOM, NO_ROOM, 0.0};
        tops[best] = top_of(a, best);
    }
}

static Rounded take_rounded(Arguments *args)
{
    Arguments items = group(args);
    PyArrayObject *rows = array(&items, 2, 'i', sizeof(int8_t));
    bool single = integer(&items);
    PyArrayObject *weights = array(&items, 1, 'f', sizeof(float));
    PyArrayObject *errors = array(&items, 1, 'f', sizeof(float));
    close_group(args, &items);
    if (args->failed)
        return (Rounded){0};
    const char *first = PyArray_DIM(rows, 0) > 0 ? PyArray_DATA(rows) : NULL;
    return (Rounded){first, PyArray_DIM(rows, 1), single, PyArray_DATA(weights),
                     PyArray_DATA(errors)};
}

/* Of sparse rows, correlations are computed where the covariance alone, above ``reach``, could make
   a gain: roughly first, and as they are where that leaves it open. All others are too small for one.
   Pairs that are barred are passed over. Where there is no room for those correlations, it says so, and
   can be called again. */
static PyObject *best_pair(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("best_pair", values, count);
    Rows rows = take_rows(&args);
    Search a;
    a.table = integer(&args);
    a.source = matrix(&args);
    a.rounded = take_rounded(&args);
    a.reach = number(&args);
    a.bound = floats(&args);
    a.partner = ints(&args).at;
    a.tops = floats(&args);
    a.threshold = number(&args);
    if (!complete(&args))
        return NULL;
    Pair best;
    Py_BEGIN_ALLOW_THREADS
    best = look_at_rows(&rows, &a);
    Py_END_ALLOW_THREADS
    return as_tuple(best);
}

/* W_ij is 0 where a sparse row has no such entry. */
static PyObject *entry(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("entry", values, count);
    Rows rows = take_rows(&args);
    Int i = integer(&args), j = integer(&args);
    if (!complete(&args))
        return NULL;
    Int first = rows.first[i], size = rows.size[i], c = rows.sparse ? 0 : j;
    while (rows.sparse && c < size && rows.column[first + c] != j)
        c++;
    double w = c < size ? rows.w[first + c] : 0.0;
    if (c >= rows.exact[i])
        return Py_BuildValue("dO", w, Py_None);
    return Py_BuildValue("dd", w, rows.s[rows.first_known[i] + c]);
}

/* The gain of an entry that may differ so much from its correlation, or, where that is known about, the
   most that it may be. */
static double largest_gain(const Known *row, Int place, double w, double open)
{
    return place < row->exact ? gain_of(row->s[place], w)
                              : open * open / (LEAST_RATIO * LEAST_RATIO);
}

/* The largest gain above another in row k, but for that of (i, j). */
static double best_in_row(const Rows *rows, Int k, Int i, Int j, double best)
{
    Known row = known_of(rows, k);
    const double *w = rows->w + rows->first[k];
    double need = least_difference(best);
    Int first = count_different(row.s, w, row.exact, need) > 0 ? 0 : row.exact;
    for (Int c = first; c < row.known; c++) {
        double open = fabs(row.s[c] - w[c]) + (c < row.exact ? 0.0 : row.error);
        if (open > need && row.s[c] != BARRED) {
            Int m = node_at(rows, rows->first[k] + c, c);
            if ((k != i || m != j) && (k != j || m != i))
                best = most(best, largest_gain(&row, c, w[c], open));
        }
    }
    return best;
}

/* Those that compete are pairs one of whose ends has a covariance above ``strong`` with i or j. */
static PyObject *best_beside(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("best_beside", values, count);
    Rows rows = take_rows(&args);
    Int i = integer(&args), j = integer(&args);
    double best = number(&args), strong = number(&args);
    if (!complete(&args))
        return NULL;
    for (Int end = 0; end < 2; end++) {
        Int own = end ? j : i;
        for (Int c = 0; c < rows.size[own]; c++) {
            Int near = rows.first[own] + c;
            if (fabs(rows.w[near]) > strong)
                best = best_in_row(&rows, node_at(&rows, near, c), i, j, best);
        }
    }
    return PyFloat_FromDouble(best);
}

/* How many pairs have a gain above ``low``, up to ``high``, or may have, and which, unless there is
   nowhere to write: of those whose correlation is known, as all others are far below. */
static Int pairs_between(const Rows *rows, Int p, double low, double high, Int *pairs)
{
    double need = least_difference(low);
    Int found = 0;
    for (Int k = 0; k < p; k++) {
        Known row = known_of(rows, k);
        for (Int c = 0; c < row.known; c++) {
            Int slot = rows->first[k] + c, m = node_at(rows, slot, c);
            double w = rows->w[slot], open = largest_difference(&row, c, w);
            if (m <= k || open <= need)
                continue;
            double gain = largest_gain(&row, c, w, open);
            if (gain <= low || (gain > high && c < row.exact))
                continue;
            if (pairs != NULL) {
                pairs[2 * found] = k;
                pairs[2 * found + 1] = m;
            }
            found++;
        }
    }
    return found;
}

static PyObject *close_pairs(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("close_pairs", values, count);
    Rows rows = take_rows(&args);
    Int p = integer(&args);
    double low = number(&args), high = number(&args);
    if (!complete(&args))
        return NULL;
    PyObject *pairs = new_ints(2 * pairs_between(&rows, p, low, high, NULL));
    if (pairs != NULL)
        pairs_between(&rows, p, low, high, data(pairs));
    return pairs;
}

static PyMethodDef kernels[] = {
    KERNEL(coordinate_gain,
           "Largest drop of the loss when one entry of the precision moves and all others stay."),
    KERNEL(removal_cost,
           "Rise of the loss when an edge's entry is set to zero and all others stay."),
    KERNEL(best_of_all, "The pair of a dense W with the largest gain above a threshold, or -1, -1."),
    KERNEL(best_pair, "The pair with the largest gain above a threshold, or -1, -1; NO_ROOM where correlations\n"
           "have none."),
    KERNEL(entry, "W_ij, and S_ij where it is known exactly, else None."),
    KERNEL(best_beside, "The largest gain above another of pairs that compete with (i, j), or more."),
    KERNEL(close_pairs,
           "The pairs whose gain is above one number, up to another, or may be: one after the other."),
    KERNEL(cheapest_edge, "The number of the edge whose plain removal costs least."),
    KERNEL(update_bounds,
           "Bounds of the gains in rows of W, of which entries have changed by at most so much and\n"
           "may now differ from their correlations by at most so much."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "edges", "Gains of pairs and costs of edges.", -1, kernels,
};

PyMODINIT_FUNC PyInit_edges(void)
{
    PyObject *module = new_module(&definition);
    if (module != NULL) {
        PyModule_AddIntMacro(module, NODE_BLOCK);
        PyModule_AddIntMacro(module, THETA);
        PyModule_AddIntMacro(module, SAMPLE);
        PyModule_AddIntMacro(module, CHANGE);
        PyModule_AddIntMacro(module, COST);
        PyModule_AddIntMacro(module, EDGE_VALUES);
        PyModule_AddIntMacro(module, NO_ROOM);
        PyModule_AddObject(module, "UNKNOWN", PyFloat_FromDouble(UNKNOWN));
        PyModule_AddObject(module, "BARRED", PyFloat_FromDouble(BARRED));
    }
    return module;
}
