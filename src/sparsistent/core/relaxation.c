/* Compiled loops that refit the global estimate, node by node.

   Everything is at unit variances. W is the covariance of the estimate: W = S on the graph's edges
   and on the diagonal, and there it stays, while node after node is put right. A node k is right
   where its row of W is that of a regression on its neighbours N,

       W_NN β = S_Nk,   W_k· = W_·N β,   θ_kk = 1 / (1 − S_kN β),   θ_kN = −θ_kk β.

   Putting it right maximises log det W over its row, so log det W only rises, and W stays positive
   definite. A row that has changed by d puts neighbour m wrong by up to |β_mk| d; what has come
   together there is ``pending[m]``, and once that is above the tolerance m is in the queue. Where
   all nodes are right, W⁻¹ = Θ has the graph's support and the loss is p + log det W.

   Where correlation decays, all this happens in a *block*: the nodes whose covariance with the
   changed edge's ends is large enough to matter. Its part of W is a small dense matrix V, into which
   a row is copied when it is first needed, and from which the rows that were put right are written
   back. Only a node all of whose neighbours are in the block can be put right there. ``nodes`` are
   those of the block, ``place[k]`` is where node k stands among them, or -1, and ``slots`` says of
   each entry of V where it stands in its row of W, or -1. rows.h says how W and the graph are kept. */

#include "rows.h"

/* A new edge may take at most this share of a node's residual variance away at once. */
#define MOST_TAKEN 0.9
/* Nodes that are most wrong come first: those by more than this many times the tolerance, then those
   by more than half of that, and so on. */
#define HASTE 8.0
/* Of what has changed in Θ, less than this share of the largest change does not count for the loss. */
#define LEAST_SHARE 3e-3
/* An error of W counts for the loss by its square times that of θ_mm: beyond a θ_mm of 1/SHARP it
   weighs more. */
#define SHARP 0.04
/* A row of a block: not there yet, nor asked for; asked for; there; put right. */
enum { ABSENT, COMING, LOADED, RIGHT };
/* While a new edge has come only part of its way, the refit is looser by this factor. */
#define ON_THE_WAY 100.0
/* Entries of sparse rows that change by less than this share of what is dropped stay as they are:
   most of what is far away, and to write it would cost more than all the rest. */
#define NEGLIGIBLE 0.15
/* A new edge that must come in smaller steps than this does not come. */
#define LEAST_STEP 1e-6

typedef struct {
    double *V;
    Int size;
    Int *nodes, *state;
    int32_t *place, *slots;
} Block;

static Block take_block(Arguments *args)
{
    Arguments items = group(args);
    Matrix V = matrix(&items);
    Ints nodes = ints(&items);
    Places place = places(&items);
    Ints state = ints(&items);
    PyArrayObject *slots = array(&items, 2, 'i', sizeof(int32_t));
    close_group(args, &items);
    int32_t *first = slots == NULL ? NULL : PyArray_DATA(slots);
    return (Block){V.at, nodes.size, nodes.at, state.at, place.at, first};
}

/* Coefficients of node k of V on its members: its residual variance, 1 − S_kN β. Returns 0 where
   that is below ``smallest``, or the members are collinear. */
static double regress(const double *V, Int u, const Int *member, Int size, Int k, double smallest,
                      double *factor, double *beta)
{
    for (Int a = 0; a < size; a++) {
        const double *row = V + member[a] * u;
        for (Int b = 0; b <= a; b++) {
            double t = row[member[b]];
            for (Int c = 0; c < b; c++)
                t -= factor[a * size + c] * factor[b * size + c];
            if (a > b)
                factor[a * size + b] = t * factor[b * size + b];
            else if (t > smallest)
                factor[a * size + a] = 1.0 / sqrt(t);
            else
                return 0.0;
        }
    }
    double variance = 1.0;
    for (Int a = 0; a < size; a++) {
        double t = V[k * u + member[a]];
        for (Int c = 0; c < a; c++)
            t -= factor[a * size + c] * beta[c];
        beta[a] = t * factor[a * size + a];
        variance -= beta[a] * beta[a];
    }
    for (Int a = size - 1; a >= 0; a--) {
        double t = beta[a];
        for (Int b = a + 1; b < size; b++)
            t -= factor[b * size + a] * beta[b];
        beta[a] = t * factor[a * size + a];
    }
    return variance > smallest ? variance : 0.0;
}

/* Put a node in a block, unless it is there. */
static void enter(int32_t *place, Int *found, Int *count, Int k)
{
    if (place[k] < 0) {
        place[k] = (int32_t)*count;
        found[(*count)++] = k;
    }
}

/* Starts and their neighbours are in the block. Leaves the nodes in ``found``, starts first, and
   where they stand there in ``place``. */
static PyObject *open_block(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("open_block", values, count);
    Rows rows = take_rows(&args);
    Edges edges = take_edges(&args);
    int32_t *place = places(&args).at;
    Int *found = ints(&args).at;
    Ints starts = ints(&args);
    double level = number(&args);
    if (!complete(&args))
        return NULL;
    Int size = 0;
    for (Int a = 0; a < starts.size; a++)
        enter(place, found, &size, starts.at[a]);
    for (Int a = 0; a < starts.size; a++) {
        Int k = starts.at[a], begin = edges.begin[k], first = rows.first[k];
        for (Int slot = begin; slot < begin + edges.degree[k]; slot++)
            enter(place, found, &size, edges.neighbor[slot]);
        for (Int c = 0; c < rows.size[k]; c++)
            if (fabs(rows.w[first + c]) > level)
                enter(place, found, &size, node_at(&rows, first + c, c));
    }
    return PyLong_FromLongLong(size);
}

/* Copy a row of W into a block. There is room for one entry more than a row of the block has, with its
   slot, where entries go that are not in it: whether one is no processor can guess. */
static void load_row(const Block *block, const Rows *rows, Int a, double *restrict values,
                     int32_t *restrict at)
{
    Int u = block->size, k = block->nodes[a], first = rows->first[k];
    double *row = block->V + a * u;
    int32_t *slots = block->slots + a * u;
    if (rows->sparse) {
        memset(values, 0, (u + 1) * sizeof(double));
        memset(at, -1, (u + 1) * sizeof(int32_t));
        for (Int c = 0; c < rows->size[k]; c++) {
            Int b = block->place[rows->column[first + c]] + 1;
            values[b] = rows->w[first + c];
            at[b] = (int32_t)c;
        }
        memcpy(row, values + 1, u * sizeof(double));
        memcpy(slots, at + 1, u * sizeof(int32_t));
    }
    for (Int b = 0; !rows->sparse && b < u; b++) {
        slots[b] = (int32_t)block->nodes[b];
        row[b] = rows->w[first + block->nodes[b]];
    }
    block->state[a] = LOADED;
}

static PyObject *load(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("load", values, count);
    Block block = take_block(&args);
    Rows rows = take_rows(&args);
    Int a = integer(&args);
    if (!complete(&args))
        return NULL;
    double *row = malloc((block.size + 1) * (sizeof(double) + sizeof(int32_t)));
    if (row == NULL)
        return PyErr_NoMemory();
    load_row(&block, &rows, a, row, (int32_t *)(row + block.size + 1));
    free(row);
    Py_RETURN_NONE;
}

/* The change of a row of V that a regression makes, 0 for its members: the largest entry. */
VECTORISED static double change_row(const double *V, Int u, Int k, const Int *member, Int width,
                                    const double *beta, double *restrict step)
{
    const double *row = V + k * u;
    for (Int c = 0; c < u; c++)
        step[c] = -row[c];
    Int a = 0;
    for (; a + 1 < width; a += 2) {
        /* Two rows at a time, because to read and write the step costs as much as to read a row. */
        const double *one = V + member[a] * u, *two = V + member[a + 1] * u;
        double x = beta[a], y = beta[a + 1];
        for (Int c = 0; c < u; c++)
            step[c] += x * one[c] + y * two[c];
    }
    if (a < width) {
        const double *one = V + member[a] * u;
        for (Int c = 0; c < u; c++)
            step[c] += beta[a] * one[c];
    }
    step[k] = 0.0;
    for (a = 0; a < width; a++)
        step[member[a]] = 0.0;
    Int bits = 0;
    for (Int c = 0; c < u; c++)
        bits = most_int(bits, magnitude(step[c]));
    return of_magnitude(bits);
}

VECTORISED static void add_to(double *restrict row, const double *restrict step, Int u)
{
    for (Int c = 0; c < u; c++)
        row[c] += step[c];
}

typedef struct {
    double *values, *theta_diagonal, *change_diagonal, *pending;
    Int *stale;
} Estimate;

typedef struct {
    Ints starts;
    bool comes;
    double target, tolerance, near, far, smallest;
    Int limit;
} Order;

/* Places of the nodes of a block, for those who wait, and room for a regression. */
typedef struct {
    Int *queue, *loaded, *right, *member;
    bool *waiting;
    double *step, *factor, *beta, *row;
    int32_t *slots;
} Scratch;

/* Ask memory for some entries of an array, so that they are there when they are needed. */
INLINED void ask_for(const void *first, Int bytes)
{
    for (Int at = 0; at < bytes; at += LINE)
        ASK_FOR((const char *)first + at);
}

/* Ask for what it takes to put a node right: rows, and the numbers of its edges. */
static void ask_for_rows(const Block *block, const Rows *rows, const Edges *edges,
                         const Estimate *estimate, Int node)
{
    Int begin = edges->begin[node];
    for (Int slot = begin - 1; rows->sparse && slot < begin + edges->degree[node]; slot++) {
        Int k = slot < begin ? node : edges->neighbor[slot], a = block->place[k];
        if (slot >= begin)
            ASK_FOR(estimate->values + EDGE_VALUES * edges->edge[slot]);
        if (a < 0 || block->state[a] != ABSENT)
            continue;
        block->state[a] = COMING;
        ask_for(rows->column + rows->first[k], rows->size[k] * sizeof(int32_t));
        ask_for(rows->w + rows->first[k], rows->size[k] * sizeof(double));
    }
}

/* Whether a node is wrong by more than a limit. What is wrong is its covariance with nodes near the
   starts. Where it is not near them itself, nobody decides on that, and it may be wrong by more. */
static bool is_wrong(const Block *block, const Order *order, double pending, double limit, Int a)
{
    if (pending <= limit || pending > order->far * limit)
        return pending > limit;
    for (Int start = 0; start < order->starts.size; start++)
        if (block->state[start] < LOADED || fabs(block->V[start * block->size + a]) > order->near)
            return true;
    return false;
}

static double put_right(const Block *block, const Rows *rows, const Edges *edges,
                        const Estimate *estimate, Order order, const Scratch *scratch)
{
    Int u = block->size, head = 0, length = 0, count = 0, n_right = 0;
    const Int *nodes = block->nodes;
    double *V = block->V, *beta = scratch->beta, *step = scratch->step;
    Int *queue = scratch->queue, *loaded = scratch->loaded, *right = scratch->right;
    Int *member = scratch->member;
    bool *waiting = scratch->waiting;
    for (Int a = 0; a < u; a++) {
        waiting[a] = false;
        if (block->state[a] >= LOADED)
            loaded[count++] = a;
    }
    for (Int a = 0; a < order.starts.size; a++)
        ask_for_rows(block, rows, edges, estimate, order.starts.at[a]);
    for (Int a = 0; a < order.starts.size; a++) {
        Int k = block->place[order.starts.at[a]];
        queue[length++] = k;
        waiting[k] = true;
    }
    double share = 1.0, moved = 0.0, tolerance = order.tolerance, limit_now = HASTE * tolerance;
    while (true) {
        if (length == 0) {
            if (limit_now == tolerance)
                return share;
            limit_now = most(0.5 * limit_now, tolerance);
            for (Int a = 0; a < u; a++)
                if (is_wrong(block, &order, estimate->pending[nodes[a]], limit_now, a)) {
                    queue[(head + length++) % u] = a;
                    waiting[a] = true;
                }
            continue;
        }
        Int k = queue[head], node = nodes[k];
        head = head + 1 < u ? head + 1 : 0;
        length--;
        waiting[k] = false;
        Int width = edges->degree[node], slot = edges->begin[node], lowest = k;
        for (Int a = 0; a < width; a++) {
            member[a] = block->place[edges->neighbor[slot + a]];
            lowest = least_int(lowest, member[a]);
        }
        member[width] = k;
        if (lowest < 0)
            continue;
        for (Int a = 0; a <= width; a++)
            if (block->state[member[a]] < LOADED) {
                load_row(block, rows, member[a], scratch->row, scratch->slots);
                /* What rows that were put right have of it is newer. */
                for (Int b = 0; b < n_right; b++)
                    V[member[a] * u + right[b]] = V[right[b] * u + member[a]];
                loaded[count++] = member[a];
            }
        Int j = order.comes ? queue[head] : k;
        double origin = V[k * u + j], variance;
        while (true) {
            if (order.comes)
                V[k * u + j] = V[j * u + k] = origin + share * (order.target - origin);
            variance = regress(V, u, member, width, k, order.smallest, scratch->factor, beta);
            if (!order.comes || variance * estimate->theta_diagonal[node] >= 1.0 - MOST_TAKEN)
                break;
            share *= 0.5;
            if (share < LEAST_STEP)
                return 0.0;
        }
        if (variance == 0.0 || --order.limit < 0)
            return 0.0;
        if (order.comes) {
            order.comes = false;
            moved = fabs(V[k * u + j] - origin);
            if (share < 1.0) {
                tolerance *= ON_THE_WAY;
                limit_now = HASTE * tolerance;
            }
        }
        /* W_ij is among the regressors of those that are neighbours of both. */
        double largest = most(change_row(V, u, k, member, width, beta, step), moved);
        moved = 0.0;
        add_to(V + k * u, step, u);
        for (Int a = 0; a < count; a++)
            V[loaded[a] * u + k] = V[k * u + loaded[a]];
        if (block->state[k] != RIGHT) {
            block->state[k] = RIGHT;
            right[n_right++] = k;
            /* For the end, when it is written back. */
            if (rows->sparse) {
                ask_for(rows->twin + rows->first[node], rows->size[node] * sizeof(int32_t));
                ask_for(rows->s + rows->first_known[node], rows->known[node] * sizeof(double));
            }
        }
        estimate->change_diagonal[node] += 1.0 / variance - estimate->theta_diagonal[node];
        estimate->theta_diagonal[node] = 1.0 / variance;
        estimate->pending[node] = 0.0;
        for (Int a = 0; a < width; a++) {
            Int e = edges->edge[slot + a], m = member[a], other = nodes[m];
            double theta = -beta[a] / variance, *value = estimate->values + EDGE_VALUES * e;
            value[CHANGE] += theta - value[THETA];
            value[THETA] = theta;
            if (value[COST] != UNKNOWN) {
                value[COST] = UNKNOWN;
                estimate->stale[++estimate->stale[0]] = e;
            }
            double weight = most(1.0 / estimate->theta_diagonal[other], SHARP);
            estimate->pending[other] += fabs(theta) * largest * weight;
            if (!waiting[m] && is_wrong(block, &order, estimate->pending[other], limit_now, m)) {
                Int last = head + length++;
                queue[last < u ? last : last - u] = m;
                waiting[m] = true;
                ask_for_rows(block, rows, edges, estimate, other);
            }
        }
    }
}

/* Puts nodes right, from ``starts`` on, until nothing above the tolerance is pending, or above ``far``
   times that where no start has a covariance above ``near``. Rows of V are loaded when they are needed.
   Where an edge between the two starts has just come, W moves towards ``target`` there. By how much Θ
   changes is added to the values of edges and to ``change_diagonal``. Returns the share of its way that
   the edge has come, 0 where that failed or the limit of updates was reached. */
static PyObject *relax(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("relax", values, count);
    Block block = take_block(&args);
    Rows rows = take_rows(&args);
    Edges edges = take_edges(&args);
    Estimate estimate;
    Arguments items = group(&args);
    estimate.values = matrix(&items).at;
    estimate.theta_diagonal = floats(&items).at;
    estimate.change_diagonal = floats(&items).at;
    estimate.pending = floats(&items).at;
    estimate.stale = ints(&items).at;
    close_group(&args, &items);
    Order order;
    order.starts = ints(&args);
    order.comes = integer(&args);
    order.target = number(&args);
    order.tolerance = number(&args);
    order.near = number(&args);
    order.far = number(&args);
    order.smallest = number(&args);
    order.limit = integer(&args);
    if (!complete(&args))
        return NULL;
    Int u = block.size, widest = 1;
    for (Int a = 0; a < u; a++)
        widest = most_int(widest, edges.degree[block.nodes[a]]);
    Int n_ints = 3 * u + widest + 1, n_floats = 2 * u + 1 + widest * widest + widest;
    Int n_bytes = (u + 1) * sizeof(int32_t) + u;
    char *memory = malloc(n_ints * sizeof(Int) + n_floats * sizeof(double) + n_bytes);
    if (memory == NULL)
        return PyErr_NoMemory();
    Scratch scratch;
    scratch.queue = (Int *)memory;
    scratch.loaded = scratch.queue + u;
    scratch.right = scratch.loaded + u;
    scratch.member = scratch.right + u;
    scratch.step = (double *)(scratch.member + widest + 1);
    scratch.factor = scratch.step + u;
    scratch.beta = scratch.factor + widest * widest;
    scratch.row = scratch.beta + widest;
    scratch.slots = (int32_t *)(scratch.row + u + 1);
    scratch.waiting = (bool *)(scratch.slots + u + 1);
    double share;
    Py_BEGIN_ALLOW_THREADS
    share = put_right(&block, &rows, &edges, &estimate, order, &scratch);
    Py_END_ALLOW_THREADS
    free(memory);
    return PyFloat_FromDouble(share);
}

/* By how much Θ has changed at each node of a block, at most; returns the largest. */
static double sizes_of_change(const Block *block, const Edges *edges, const double *values,
                              const double *change_diagonal, double *size)
{
    double largest = 0.0;
    for (Int a = 0; a < block->size; a++) {
        size[a] = 0.0;
        /* Whatever has changed is in a row that was loaded. */
        if (block->state[a] >= LOADED) {
            Int k = block->nodes[a], begin = edges->begin[k];
            size[a] = fabs(change_diagonal[k]);
            for (Int slot = begin; slot < begin + edges->degree[k]; slot++)
                size[a] = most(size[a], fabs(values[EDGE_VALUES * edges->edge[slot] + CHANGE]));
            largest = most(largest, size[a]);
        }
    }
    return largest;
}

/* I − V_TT Δ row by row, and its trace. */
static double moved_rows(const Block *block, const Edges *edges, const double *values,
                         const double *change_diagonal, const double *size, double limit,
                         const Int *T, Int count, double *out)
{
    double trace = 0.0;
    memset(out, 0, count * count * sizeof(double));
    for (Int y = 0; y < count; y++) {
        Int k = block->nodes[T[y]], begin = edges->begin[k];
        double *line = out + y * count;
        for (Int slot = begin - 1; slot < begin + edges->degree[k]; slot++) {
            bool own = slot < begin;
            Int a = own ? T[y] : block->place[edges->neighbor[slot]];
            double value = own ? change_diagonal[k]
                               : values[EDGE_VALUES * edges->edge[slot] + CHANGE];
            if (a >= 0 && size[a] > limit)
                for (Int x = 0; x < count; x++)
                    line[x] -= block->V[a * block->size + T[x]] * value;
        }
        line[y] += 1.0;
        trace += line[y];
    }
    return trace;
}

/* Take a multiple of a row from another. */
VECTORISED static void eliminate(const double *restrict row, double *restrict other, Int n, double x)
{
    for (Int c = 0; c < n; c++)
        other[c] -= x * row[c];
}

/* log |det A| by elimination with pivots; A is used up. */
static double log_determinant(double *A, Int n)
{
    double total = 0.0;
    for (Int k = 0; k < n; k++) {
        double *row = A + k * n;
        Int pivot = k;
        for (Int i = k + 1; i < n; i++)
            if (fabs(A[i * n + k]) > fabs(A[pivot * n + k]))
                pivot = i;
        for (Int c = k; c < n && pivot != k; c++) {
            double x = row[c];
            row[c] = A[pivot * n + c];
            A[pivot * n + c] = x;
        }
        total += log(fabs(row[k]));
        for (Int i = k + 1; i < n && row[k] != 0.0; i++)
            eliminate(row + k + 1, A + i * n + k + 1, n - k - 1, A[i * n + k] / row[k]);
    }
    return total;
}

/* With T the nodes whose entries of Θ have changed most, by Δ, at most ``limit`` of them, the loss
   has changed by tr(V_TT Δ) + log det(I − V_TT Δ). Afterwards all changes are zero. */
static PyObject *change_of_loss(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("change_of_loss", values, count);
    Block block = take_block(&args);
    Edges edges = take_edges(&args);
    double *edge_values = matrix(&args).at, *change_diagonal = floats(&args).at;
    Int limit = integer(&args), u = block.size, found = limit + 1;
    if (!complete(&args))
        return NULL;
    Int room = least_int(u, limit);
    double *size = malloc((u + room * room + 1) * sizeof(double) + (u + 1) * sizeof(Int));
    if (size == NULL)
        return PyErr_NoMemory();
    double *moved = size + u;
    Int *T = (Int *)(moved + room * room);
    double largest = sizes_of_change(&block, &edges, edge_values, change_diagonal, size);
    double bar = 0.5 * LEAST_SHARE * largest;
    while (found > limit) {
        found = 0;
        bar *= 2.0;
        for (Int a = 0; a < u; a++)
            if (size[a] > bar)
                T[found++] = a;
    }
    double trace =
        moved_rows(&block, &edges, edge_values, change_diagonal, size, bar, T, found, moved);
    double gained = (double)found - trace + log_determinant(moved, found);
    for (Int a = 0; a < u; a++)
        if (size[a] > 0.0) {
            Int k = block.nodes[a], begin = edges.begin[k];
            change_diagonal[k] = 0.0;
            for (Int slot = begin; slot < begin + edges.degree[k]; slot++)
                edge_values[EDGE_VALUES * edges.edge[slot] + CHANGE] = 0.0;
        }
    free(size);
    return Py_BuildValue("dd", gained, largest);
}

/* The room that a full row of so many entries gets. */
static Int room_for(Int size) { return size + size / 2 + 16; }

/* All places together through which a row moves before it has so many entries take at most three times
   the room of the last. */
static Int most_room(Int size) { return 3 * room_for(size); }

/* New entries (k, m) and (m, k). A row that is full moves to where there is more room. */
static void append(const Rows *rows, Int k, Int m, double value)
{
    Int there = rows->size[m];
    for (int end = 0; end < 2; end++) {
        Int here = rows->size[k];
        if (here == rows->room[k]) {
            Int from = rows->first[k], to = rows->used[0];
            memcpy(rows->column + to, rows->column + from, here * sizeof(int32_t));
            memcpy(rows->twin + to, rows->twin + from, here * sizeof(int32_t));
            memcpy(rows->w + to, rows->w + from, here * sizeof(double));
            rows->first[k] = to;
            rows->room[k] = room_for(here);
            rows->used[0] += rows->room[k];
        }
        Int slot = rows->first[k] + here;
        rows->column[slot] = (int32_t)m;
        rows->twin[slot] = (int32_t)there;
        rows->w[slot] = value;
        rows->size[k]++;
        Int other = m;
        m = k;
        k = other;
        there = here;
    }
}

/* A new entry of a block, of which its twin knows if it is in a row that was loaded. */
static void append_once(const Block *block, const Rows *rows, Int a, Int b)
{
    Int u = block->size, k = block->nodes[a], m = block->nodes[b];
    block->slots[b * u + a] = (int32_t)rows->size[m];
    append(rows, k, m, block->V[a * u + b]);
}

/* Which entries of a row that was put right have changed by more than what is negligible, or are new
   and above what is dropped, and by how much. First all are looked at, as nobody can guess which. */
static Int find_changed(const Block *block, const Rows *rows, Int a, double negligible, double drop,
                        Int *restrict changed, double *restrict amounts)
{
    Int u = block->size, count = 0;
    const double *row = block->V + a * u, *w = rows->w + rows->first[block->nodes[a]];
    const int32_t *slots = block->slots + a * u;
    for (Int b = 0; b < u; b++) {
        bool kept = slots[b] >= 0;
        double before = w[kept ? slots[b] : 0], x = fabs(row[b] - (kept ? before : 0.0));
        changed[count] = b;
        amounts[count] = x;
        count += x > (kept ? negligible : drop);
    }
    return count;
}

/* Of nodes, by how much, at most, entries of their rows have changed, and by how much, at most, those
   that have may differ from their correlations now. */
typedef struct {
    double *amounts, *differences;
} Changes;

/* None, as yet, in a matrix with two rows. */
static Changes no_changes(PyObject *noted)
{
    Int size = PyArray_DIM((PyArrayObject *)noted, 1);
    double *first = data(noted);
    memset(first, 0, 2 * size * sizeof(double));
    return (Changes){first, first + size};
}

static void note(const Changes *changes, Int a, double amount, double difference)
{
    changes->amounts[a] = most(changes->amounts[a], amount);
    changes->differences[a] = most(changes->differences[a], difference);
}

/* Write the rows of a block that were put right back, and what they say of other rows. */
static void write_rows(const Block *block, const Rows *rows, double drop, Changes changes,
                       Int *changed, double *sizes)
{
    Int u = block->size;
    for (Int a = 0; a < u; a++) {
        if (block->state[a] != RIGHT)
            continue;
        Int k = block->nodes[a];
        const double *row = block->V + a * u;
        const int32_t *slots = block->slots + a * u;
        Known known = known_of(rows, k);
        double amount = 0.0, difference = 0.0;
        /* An edge that comes in ever smaller steps does so between the first two nodes. */
        double negligible = rows->sparse && a > 1 ? NEGLIGIBLE * drop : 0.0;
        Int count = find_changed(block, rows, a, negligible, drop, changed, sizes);
        for (Int c = 0; c < count; c++) {
            Int b = changed[c], slot = rows->first[k] + slots[b], m = block->nodes[b];
            double open = largest_difference(&known, slots[b], row[b]);
            if (slots[b] >= 0)
                set_both(rows, k, m, slot, row[b]);
            else
                append_once(block, rows, a, b);
            note(&changes, b, sizes[c], open);
            amount = most(amount, sizes[c]);
            difference = most(difference, open);
        }
        note(&changes, a, amount, difference);
    }
}

/* New entries of sparse rows up to ``drop`` are left out. Where the sparse rows have no room,
   nothing is done, and what is returned is empty. */
static PyObject *close_block(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("close_block", values, count);
    Block block = take_block(&args);
    Rows rows = take_rows(&args);
    double drop = number(&args);
    if (!complete(&args))
        return NULL;
    Int u = block.size, need = rows.used[0];
    for (Int a = 0; a < u; a++)
        need += most_room(rows.size[block.nodes[a]] + u);
    if (rows.sparse && need > rows.capacity)
        return new_matrix(2, 0);
    PyObject *noted = new_matrix(2, u);
    Int *changed = malloc((u + 1) * (sizeof(Int) + sizeof(double)));
    if (noted == NULL || changed == NULL) {
        Py_XDECREF(noted);
        free(changed);
        return PyErr_NoMemory();
    }
    Changes changes = no_changes(noted);
    Py_BEGIN_ALLOW_THREADS
    write_rows(&block, &rows, drop, changes, changed, (double *)(changed + u + 1));
    Py_END_ALLOW_THREADS
    free(changed);
    return noted;
}

/* Covariances of the nodes before ``middle``, on one side of an edge, with those after it. */
static void cross(const Rows *rows, int32_t *where, const Int *nodes, const double *value, Int middle,
                  Int count, double sample, double drop, Changes changes)
{
    for (Int a = 0; a < middle; a++) {
        Int k = nodes[a], before = rows->sparse ? rows->size[k] : 0;
        Known known = known_of(rows, k);
        double amount = 0.0, difference = 0.0;
        for (Int c = 0; c < before; c++)
            where[rows->column[rows->first[k] + c]] = (int32_t)c;
        for (Int b = middle; b < count; b++) {
            Int m = nodes[b], c = rows->sparse ? where[m] : m;
            double y = sample * value[a] * value[b], w = y;
            /* A node is on both sides where an entry too small to keep hides a path between them. */
            if (m == k || (c < 0 && fabs(y) <= drop))
                continue;
            if (c >= 0) {
                Int slot = rows->first[k] + c;
                w += rows->w[slot];
                set_both(rows, k, m, slot, w);
            } else {
                append(rows, k, m, y);
            }
            double open = largest_difference(&known, c, w);
            note(&changes, b, fabs(y), open);
            amount = most(amount, fabs(y));
            difference = most(difference, open);
        }
        note(&changes, a, amount, difference);
        for (Int c = 0; c < before; c++)
            where[rows->column[rows->first[k] + c]] = -1;
    }
}

/* The entries of row k above what is dropped: how many, and the room that their rows may need. */
static Int side_of(const Rows *rows, Int k, double drop, Int largest, Int *nodes, double *values,
                   Int *need)
{
    Int found = 0;
    for (Int c = 0; c < rows->size[k]; c++) {
        Int slot = rows->first[k] + c;
        if (fabs(rows->w[slot]) > drop) {
            nodes[found] = node_at(rows, slot, c);
            values[found] = rows->w[slot];
            *need += most_room(rows->size[nodes[found]] + largest);
            found++;
        }
    }
    return found;
}

/* Returns the nodes on both sides, and what has changed in their rows, see close_block: no nodes where
   the sparse rows have no room, and then nothing has been done. */
static PyObject *join(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("join", values, count);
    Rows rows = take_rows(&args);
    int32_t *where = places(&args).at;
    Int i = integer(&args), j = integer(&args);
    double sample = number(&args), drop = number(&args);
    if (!complete(&args))
        return NULL;
    Int largest = rows.size[i] + rows.size[j], need = rows.used[0];
    Int *nodes = malloc(largest * (sizeof(Int) + sizeof(double)));
    if (nodes == NULL)
        return PyErr_NoMemory();
    double *value = (double *)(nodes + largest);
    Int middle = side_of(&rows, i, drop, largest, nodes, value, &need);
    Int found = middle + side_of(&rows, j, drop, largest, nodes + middle, value + middle, &need);
    if (rows.sparse && need > rows.capacity)
        found = 0;
    PyObject *both_sides = new_ints(found), *noted = new_matrix(2, found);
    if (both_sides == NULL || noted == NULL) {
        Py_XDECREF(both_sides);
        Py_XDECREF(noted);
        free(nodes);
        return NULL;
    }
    memcpy(data(both_sides), nodes, found * sizeof(Int));
    Changes changes = no_changes(noted);
    if (found > 0)
        cross(&rows, where, nodes, value, middle, found, sample, drop, changes);
    free(nodes);
    return Py_BuildValue("NN", both_sides, noted);
}

/* How many entries of a sparse row are above a level, and which, unless there is nowhere to write. */
static Int strong_in_row(const Rows *rows, Int k, double least, Int *nodes, double *values)
{
    Int found = 0;
    for (Int slot = rows->first[k]; slot < rows->first[k] + rows->size[k]; slot++)
        if (fabs(rows->w[slot]) > least) {
            if (nodes != NULL) {
                nodes[found] = rows->column[slot];
                values[found] = rows->w[slot];
            }
            found++;
        }
    return found;
}

static PyObject *strong_entries(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("strong_entries", values, count);
    Rows rows = take_rows(&args);
    Ints starts = ints(&args);
    double least = number(&args);
    if (!complete(&args))
        return NULL;
    Int p = starts.size - 1;
    starts.at[0] = 0;
    for (Int k = 0; k < p; k++)
        starts.at[k + 1] = starts.at[k] + strong_in_row(&rows, k, least, NULL, NULL);
    PyObject *nodes = new_ints(starts.at[p]), *w = new_floats(starts.at[p]);
    if (nodes == NULL || w == NULL) {
        Py_XDECREF(nodes);
        Py_XDECREF(w);
        return NULL;
    }
    for (Int k = 0; k < p; k++)
        strong_in_row(&rows, k, least, (Int *)data(nodes) + starts.at[k],
                      (double *)data(w) + starts.at[k]);
    return Py_BuildValue("NN", nodes, w);
}

/* (W X W) on the diagonal and then on the edges, where x and out have an entry for each. There is
   room for a column of X W in z, and for the entries of X in the order of neighbours. */
static void multiply(Int p, const Int *start, const Int *node, const double *w, const Edges *edges,
                     const double *x, double *restrict out, double *restrict z,
                     double *restrict entries)
{
    memset(z, 0, p * sizeof(double));
    for (Int m = 0; m < p; m++)
        for (Int slot = edges->begin[m]; slot < edges->begin[m] + edges->degree[m]; slot++)
            entries[slot] = x[p + edges->edge[slot]];
    for (Int j = 0; j < p; j++) {
        for (Int c = start[j]; c < start[j + 1]; c++) {
            Int m = node[c], begin = edges->begin[m];
            z[m] += x[m] * w[c];
            for (Int slot = begin; slot < begin + edges->degree[m]; slot++)
                z[edges->neighbor[slot]] += entries[slot] * w[c];
        }
        Int begin = edges->begin[j];
        for (Int slot = begin - 1; slot < begin + edges->degree[j]; slot++) {
            Int i = slot < begin ? j : edges->neighbor[slot];
            if (i > j)
                continue;
            double total = 0.0;
            for (Int c = start[i]; c < start[i + 1]; c++)
                total += w[c] * z[node[c]];
            out[i == j ? j : p + edges->edge[slot]] = total;
        }
        for (Int c = start[j]; c < start[j + 1]; c++) {
            Int m = node[c], first = edges->begin[m];
            z[m] = 0.0;
            for (Int slot = first; slot < first + edges->degree[m]; slot++)
                z[edges->neighbor[slot]] = 0.0;
        }
    }
}

static PyObject *curvature(PyObject *module, PyObject *const *values, Py_ssize_t count)
{
    Arguments args = arguments("curvature", values, count);
    Arguments items = group(&args);
    Ints start = ints(&items), node = ints(&items);
    Floats w = floats(&items);
    close_group(&args, &items);
    Edges edges = take_edges(&args);
    Floats x = floats(&args);
    if (!complete(&args))
        return NULL;
    Int p = start.size - 1;
    PyObject *out = new_floats(x.size);
    double *z = malloc((p + edges.slots + 1) * sizeof(double));
    if (out == NULL || z == NULL) {
        Py_XDECREF(out);
        free(z);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    multiply(p, start.at, node.at, w.at, &edges, x.at, data(out), z, z + p);
    Py_END_ALLOW_THREADS
    free(z);
    return out;
}

static PyMethodDef kernels[] = {
    KERNEL(open_block,
           "Find the block of nodes whose covariance with one of the starts is above a level: how\n"
           "many they are."),
    KERNEL(load, "Copy a row of W into a block."),
    KERNEL(relax, "Put nodes right, from starts on, until nothing above the tolerance is pending."),
    KERNEL(change_of_loss,
           "By how much what has changed in Θ has changed the loss, and the largest change of Θ."),
    KERNEL(close_block,
           "Write a block back: by how much, at most, entries of each row have changed, and by how\n"
           "much, at most, those that have may differ from their correlations."),
    KERNEL(join,
           "Give the nodes on one side of a new edge (i, j) their covariance with those on the\n"
           "other."),
    KERNEL(strong_entries,
           "The entries of sparse rows above a level: nodes and values, and where each row begins."),
    KERNEL(curvature,
           "(W X W) on the diagonal and on the edges, with X the symmetric matrix that has x there."),
    END_OF_KERNELS,
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "relaxation", "Refits of the global estimate.", -1, kernels,
};

PyMODINIT_FUNC PyInit_relaxation(void)
{
    PyObject *module = new_module(&definition);
    if (module != NULL) {
        PyModule_AddIntMacro(module, ABSENT);
        PyModule_AddIntMacro(module, LOADED);
        PyModule_AddIntMacro(module, RIGHT);
    }
    return module;
}
