/* Compiled loops for a sparse positive definite matrix: its inverse where it has entries.

   A = L D L', where L has ones on the diagonal. Column j of L has entries where A has, and where the
   columns have that come before it and whose first entry below the diagonal is in row j: its children
   in the elimination tree. The tree, and with it the pattern of L, is the same for all matrices on a
   graph. Columns that follow each other and have the same rows below are a *front*, with a list of
   variables, its own and then the rows below. Those rows are all in the list of the front's parent,
   and ``places`` says where. So all work is on small dense matrices.

   Up the tree: a front gets its part of A, and what its children leave; its own variables are
   eliminated, and it leaves the rest (the multifrontal method). Down the tree: with Z = A⁻¹ known on
   the rows below, which the parent has, Takahashi's equations give Z for the front's own variables,
   Z_ij = −Σ_k Z_ik L_kj and Z_jj = 1/d_j − Σ_k L_kj Z_kj over the k > j in column j. Both cost about
   the same, where all of Z would cost p solves.

   Of several children the one with the largest subtree comes first on the way up, and last on the way
   down, so that no more than log p fronts wait for others to end. */

#include "kernels.h"

/* Parents in the elimination tree, and how many entries each column of L has. A is given by the
   columns of the entries of each row that come before the diagonal. */
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

/* An order in which subtrees are together and parents come after their children, of which one may be
   told to come last, and of the others the one with the largest subtree comes first: where each
   goes. Parents have larger numbers than their children. */
static PyObject *postorder(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("postorder", values, count);
    Ints parents = ints(&args), last = ints(&args), order = ints(&args);
    if (!complete(&args))
        return NULL;
    Int p = parents.size, roots = 0;
    Int *sizes = malloc(most_int(3 * p, 1) * sizeof(Int));
    if (sizes == NULL)
        return PyErr_NoMemory();
    Int *largest = sizes + p, *next = largest + p;
    for (Int k = 0; k < p; k++) {
        sizes[k] = 1;
        largest[k] = -1;
    }
    for (Int k = 0; k < p; k++) {
        Int parent = parents.at[k];
        if (parent < 0)
            continue;
        sizes[parent] += sizes[k];
        if (last.at[parent] != k && (largest[parent] < 0 || sizes[k] > sizes[largest[parent]]))
            largest[parent] = k;
    }
    for (Int k = p - 1; k >= 0; k--) {
        Int parent = parents.at[k], *place = parent < 0 ? &roots : next + parent, first = *place;
        if (parent >= 0 && last.at[parent] == k)
            first = order.at[parent] - sizes[k];
        else if (parent >= 0 && largest[parent] == k)
            first = order.at[parent] - sizes[parent] + 1;
        else
            *place += sizes[k];
        order.at[k] = first + sizes[k] - 1;
        next[k] = first + (largest[k] < 0 ? 0 : sizes[largest[k]]);
    }
    free(sizes);
    Py_RETURN_NONE;
}

/* The rows below each front, in order: ``ends`` is where the next one goes, for the last column of a
   front, and -1 for all others. */
static PyObject *fill_rows(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("fill_rows", values, count);
    Ints starts = ints(&args), others = ints(&args), parents = ints(&args), ends = ints(&args);
    Ints rows = ints(&args);
    if (!complete(&args))
        return NULL;
    Int p = parents.size;
    Int *seen = malloc(most_int(p, 1) * sizeof(Int));
    if (seen == NULL)
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    for (Int k = 0; k < p; k++) {
        seen[k] = k;
        for (Int e = starts.at[k]; e < starts.at[k + 1]; e++)
            for (Int i = others.at[e]; seen[i] != k; i = parents.at[i]) {
                seen[i] = k;
                if (ends.at[i] >= 0)
                    rows.at[ends.at[i]++] = k;
            }
    }
    Py_END_ALLOW_THREADS
    free(seen);
    Py_RETURN_NONE;
}

/* Fronts: in which sequence they come on the way up, the first of their columns, where their rows
   begin and where these stand in the list of the parent; the entries of A by columns, each with its
   place in the list of its front. */
typedef struct {
    Int count, *sequence, *first, *row_starts, *places, *parents;
    Int *starts, *positions;
    const double *diagonal, *entries;
} Fronts;

static Int own_of(const Fronts *a, Int s)
{
    return a->first[s + 1] - a->first[s];
}

static Int below(const Fronts *a, Int s)
{
    return a->row_starts[s + 1] - a->row_starts[s];
}

static Int size_of(const Fronts *a, Int s)
{
    return own_of(a, s) + below(a, s);
}

/* Variables of a front that are eliminated together, so that the others are read less often. */
#define TOGETHER 4

/* What some variables of a front take from the rows [begin, end) when they are eliminated; of the
   front, which is symmetric, what is on or above the diagonal counts. */
VECTORISED static void eliminate(double *restrict front, Int t, const double *restrict rows,
                                 const double *restrict L, Int count, Int begin, Int end)
{
    for (Int i = begin; i < end; i++) {
        double *other = front + i * t;
        if (count == TOGETHER) {
            const double *x = rows, *y = x + t, *z = y + t, *w = z + t;
            double x0 = L[i], y0 = L[t + i], z0 = L[2 * t + i], w0 = L[3 * t + i];
            for (Int b = i; b < t; b++)
                other[b] -= (x0 * x[b] + y0 * y[b]) + (z0 * z[b] + w0 * w[b]);
            continue;
        }
        for (Int k = 0; k < count; k++) {
            double x0 = L[k * t + i];
            for (Int b = i; b < t; b++)
                other[b] -= x0 * rows[k * t + b];
        }
    }
}

/* Add what a child leaves. */
static void extend(double *front, Int t, const double *left, Int r, const Int *places)
{
    for (Int x = 0; x < r; x++) {
        double *row = front + places[x] * t;
        for (Int y = x; y < r; y++)
            row[places[y]] += left[x * r + y];
    }
}

/* Fill D, and L by rows of L', each with room for the list of its front; false where A is not positive
   definite. */
static bool decompose(const Fronts *a, double *L, double *D, double *front, double *stack,
                      Int *waiting)
{
    Int waits = 0, top = 0;
    for (Int q = 0; q < a->count; q++) {
        Int s = a->sequence[q], own = own_of(a, s), r = below(a, s), t = own + r;
        memset(front, 0, t * t * sizeof(double));
        for (Int k = 0; k < own; k++) {
            Int j = a->first[s] + k;
            front[k * t + k] = a->diagonal[j];
            for (Int e = a->starts[j]; e < a->starts[j + 1]; e++)
                front[k * t + a->positions[e]] = a->entries[e];
        }
        while (waits > 0 && a->parents[waiting[waits - 1]] == s) {
            Int child = waiting[--waits], size = below(a, child);
            top -= size * size;
            extend(front, t, stack + top, size, a->places + a->row_starts[child]);
        }
        for (Int begin = 0; begin < own; begin += TOGETHER) {
            Int end = least_int(begin + TOGETHER, own);
            const double *rows = front + begin * t;
            for (Int k = begin; k < end; k++) {
                eliminate(front, t, rows, L, k - begin, k, k + 1);
                double d = front[k * t + k], *column = L + (k - begin) * t;
                if (!(d > 0.0))
                    return false;
                D[a->first[s] + k] = d;
                for (Int b = k + 1; b < t; b++)
                    column[b] = front[k * t + b] / d;
            }
            eliminate(front, t, rows, L, end - begin, end, t);
            L += (end - begin) * t;
        }
        for (Int x = 0; x < r; x++)
            memcpy(stack + top + x * r + x, front + (own + x) * t + own + x,
                   (r - x) * sizeof(double));
        top += r * r;
        waiting[waits++] = s;
    }
    return true;
}

/* Column a of a dense block of Z, of size t and known from a + 1 on, for that of L. */
VECTORISED static double fill_column(double *restrict block, Int t, Int a, const double *L, double d)
{
    double total = 1.0 / d;
    for (Int x = a + 1; x < t; x++) {
        const double *row = block + x * t;
        double z = 0.0;
        for (Int y = a + 1; y < t; y++)
            z -= row[y] * L[y];
        block[a * t + x] = z;
        total -= L[x] * z;
    }
    for (Int x = a + 1; x < t; x++)
        block[x * t + a] = block[a * t + x];
    block[a * t + a] = total;
    return total;
}

/* Fill Z at the entries of A and on the diagonal. Blocks of fronts whose children are to come are in
   ``kept``, from ``offsets`` on; L is at its end. */
static void invert(const Fronts *a, const double *L, const double *D, double *block, double *kept,
                   const Int *offsets, double *Z, double *Z_diagonal)
{
    for (Int q = a->count - 1; q >= 0; q--) {
        Int s = a->sequence[q], own = own_of(a, s), r = below(a, s), t = own + r;
        Int parent = a->parents[s];
        const Int *places = a->places + a->row_starts[s];
        if (parent >= 0) {
            const double *from = kept + offsets[parent];
            Int width = size_of(a, parent);
            for (Int x = 0; x < r; x++) {
                const double *row = from + places[x] * width;
                for (Int y = 0; y < r; y++)
                    block[(own + x) * t + own + y] = row[places[y]];
            }
        }
        for (Int k = own - 1; k >= 0; k--) {
            Int j = a->first[s] + k;
            L -= t;
            Z_diagonal[j] = fill_column(block, t, k, L, D[j]);
            for (Int e = a->starts[j]; e < a->starts[j + 1]; e++)
                Z[e] = block[k * t + a->positions[e]];
        }
        memcpy(kept + offsets[s], block, t * t * sizeof(double));
    }
}

/* Numbers that there must be room for. */
typedef struct {
    Int L, front, stack, kept;
} Room;

/* Also where blocks are kept. The last child on the way down takes the place of its parent, which
   nobody needs any more. */
static Room find_room(const Fronts *a, Int *offsets, Int *waiting)
{
    Room room = {1, 1, 1, 1};
    Int waits = 0, top = 0, *last_child = waiting;
    for (Int q = 0; q < a->count; q++) {
        Int s = a->sequence[q], r = below(a, s), t = size_of(a, s);
        room.L += own_of(a, s) * t;
        room.front = most_int(room.front, t * t);
        while (waits > 0 && a->parents[waiting[waits - 1]] == s) {
            Int size = below(a, waiting[--waits]);
            top -= size * size;
        }
        top += r * r;
        room.stack = most_int(room.stack, top);
        waiting[waits++] = s;
    }
    for (Int q = a->count - 1; q >= 0; q--)
        if (a->parents[a->sequence[q]] >= 0)
            last_child[a->parents[a->sequence[q]]] = a->sequence[q];
    for (Int q = a->count - 1; q >= 0; q--) {
        Int s = a->sequence[q], t = size_of(a, s), parent = a->parents[s];
        offsets[s] = parent < 0 ? 0 : offsets[parent];
        if (parent >= 0 && last_child[parent] != s)
            offsets[s] += size_of(a, parent) * size_of(a, parent);
        room.kept = most_int(room.kept, offsets[s] + t * t);
    }
    return room;
}

static PyObject *inverse_on_pattern(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("inverse_on_pattern", values, count);
    Fronts a;
    Floats diagonal = floats(&args);
    a.entries = floats(&args).at;
    a.starts = ints(&args).at;
    a.positions = ints(&args).at;
    Arguments fronts = group(&args);
    Ints sequence = ints(&fronts);
    a.first = ints(&fronts).at;
    a.row_starts = ints(&fronts).at;
    a.places = ints(&fronts).at;
    a.parents = ints(&fronts).at;
    close_group(&args, &fronts);
    double *Z = floats(&args).at, *Z_diagonal = floats(&args).at;
    if (!complete(&args))
        return NULL;
    a.count = sequence.size;
    a.sequence = sequence.at;
    a.diagonal = diagonal.at;
    Int *offsets = malloc((2 * a.count + 1) * sizeof(Int));
    if (offsets == NULL)
        return PyErr_NoMemory();
    Int *waiting = offsets + a.count;
    Room room = find_room(&a, offsets, waiting);
    /* What is left for parents and what is kept for children is not needed at the same time. */
    Int shared = most_int(room.stack, room.kept);
    double *L = malloc((room.L + diagonal.size + room.front + shared) * sizeof(double));
    if (L == NULL) {
        free(offsets);
        return PyErr_NoMemory();
    }
    double *D = L + room.L, *front = D + diagonal.size, *stack = front + room.front;
    bool positive;
    Py_BEGIN_ALLOW_THREADS
    positive = decompose(&a, L, D, front, stack, waiting);
    if (positive)
        invert(&a, L + room.L - 1, D, front, stack, offsets, Z, Z_diagonal);
    Py_END_ALLOW_THREADS
    free(L);
    free(offsets);
    return PyBool_FromLong(positive);
}

static PyMethodDef kernels[] = {
    KERNEL(analyse, "Fill the parents in the elimination tree, and the sizes of the columns of L."),
    KERNEL(postorder, "Where each node of a tree goes so that subtrees are together."),
    KERNEL(fill_rows, "Fill the rows below each front."),
    KERNEL(inverse_on_pattern,
           "Factorise A, and fill its inverse at its entries and on the diagonal. False where A is\n"
           "not positive definite."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "elimination", "Sparse factors and inverses.", -1, kernels,
};

PyMODINIT_FUNC PyInit_elimination(void)
{
    return new_module(&definition);
}
