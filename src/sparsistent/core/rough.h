/* Rough covariances of all variables with a residual, and of a pool of them.

   Rough correlations are whole numbers of two bytes, a row a variable. The covariances with the
   residual x_r − Σγx are sums of shares of the rows of r and of the members. To make them for all
   variables at each look for a candidate reads the same rows again and again. But who is ever chosen
   is nearly always strongly correlated with r or with a member: so the looks are at a *pool* of such
   variables, whose columns are side by side. All others are weakly correlated with r and with the
   members. Looks at which that is not enough to pass them over are kept, and in the end one pass over
   the rows says for all of these together who else might have been chosen.

   A pool has little room. Where more is needed, it has *failed*, and what was found in it does not
   count. */

#ifndef SPARSISTENT_ROUGH_H
#define SPARSISTENT_ROUGH_H

#include "kernels.h"

/* Numbers of two bytes that are made together. */
#define ROUGH_STRIP 2048
/* Numbers that are looked at one by one where any of them counts. */
#define GROUP 64
/* Numbers that are checked together, and the most terms of their sums. */
#define CHECKED 256
#define TERMS 8
/* Variables and looks for which a pool has room, and rows: that of the node, and of who came in. */
#define POOL 512
#define LOOKS 16
#define POOL_ROWS (LOOKS + 1)
/* So many variables with which another may be strongly correlated are noted, after their number. */
#define STRONG 63
#define STRONG_WIDTH (STRONG + 1)

/* Rough covariances with the residual x_r − Σγx are sums of whole numbers of two bytes, Σ(γS)/``one``:
   ``one`` is what they have for one, so that no sum exceeds them. How far they can be off: so much,
   and so much for each unit of a candidate's own error. With x = x' + e, where x' is rounded, they are
   off by e_t times the residual, and by x'_t times e_r − Σγe. */
typedef struct {
    double one, fixed, each;
} Bound;

/* A share of a number of two bytes, in units of 1/32768, rounded. */
INLINED int16_t share_of(int16_t x, int16_t share)
{
    return (int16_t)(((x * share >> 14) + 1) >> 1);
}

INLINED int16_t share_for(double gamma, double one)
{
    return (int16_t)rint(gamma * one * (32768.0 / ONE));
}

INLINED int16_t size_of(int16_t x)
{
    return x < 0 ? -x : x;
}

/* What a covariance of that size is at least, as a sum of two bytes. */
INLINED int16_t least_sum(double size, double one)
{
    return (int16_t)least(most(size * one, 0.0), INT16_MAX);
}

/* Where rough covariances with the residual are at least ``bar`` in absolute value: how many, and how
   large. They are made strip by strip and looked at while they are in the cache. */
VECTORISED static Int collect(const int16_t *S, Int width, Int p, Int r, Int k, const Int *members,
                              const double *minus_gamma, double one, double bar,
                              int32_t *restrict places, float *restrict sizes)
{
    int16_t c[ROUGH_STRIP], least_size = least_sum(bar, one);
    Int found = 0;
    for (Int first = 0; first < p; first += ROUGH_STRIP) {
        Int size = least_int(ROUGH_STRIP, p - first);
        const int16_t *own = S + r * width + first;
        int16_t own_share = share_for(1.0, one);
        for (Int m = 0; m < size; m++)
            c[m] = share_of(own[m], own_share);
        for (Int i = 0; i < k; i += 2) {
            bool odd = i + 1 == k;
            const int16_t *x = S + members[i] * width + first;
            const int16_t *y = odd ? x : S + members[i + 1] * width + first;
            int16_t x0 = share_for(minus_gamma[i], one);
            int16_t y0 = share_for(odd ? 0.0 : minus_gamma[i + 1], one);
            for (Int m = 0; m < size; m++)
                c[m] += share_of(x[m], x0) + share_of(y[m], y0);
        }
        for (Int begin = 0; begin < size; begin += GROUP) {
            Int end = least_int(begin + GROUP, size);
            int16_t top = 0;
            for (Int m = begin; m < end; m++) {
                int16_t here = size_of(c[m]);
                top = here > top ? here : top;
            }
            for (Int m = begin; top >= least_size && m < end; m++)
                if (size_of(c[m]) >= least_size) {
                    places[found] = (int32_t)(first + m);
                    sizes[found++] = (float)(abs(c[m]) / one);
                }
        }
    }
    return found;
}

/* What a variable adds to a residual: its coefficient, and the row of which it takes that share. */
typedef struct {
    const int16_t *row;
    Int variable;
    double coefficient;
    int16_t share;
} Term;

/* A look at the pool: how many variables it had; the terms of the residual, first that of the node; the
   level that nobody else may reach, and the rough size from which on it takes more to tell. */
typedef struct {
    Int size, n_terms;
    Term terms[TERMS];
    double level;
    int16_t least_size;
    Bound bound;
} Look;

/* The pool of a node: its variables, in the order in which they came; the rows of which it is made,
   first that of the node, and for each of these its columns, side by side; the looks.
   For each variable its place in the pool, counted from one, or zero. What stays from node to node: a
   list for each variable, empty until it is needed, of those with which it is strongly correlated,
   at least so much. */
typedef struct {
    bool open, failed;
    Int n_rows, size, n_looks;
    Int rows[POOL_ROWS];
    int32_t variables[POOL], *spots, *strong;
    int16_t columns[POOL_ROWS * POOL], least_strong;
    Look looks[LOOKS];
} Pool;

/* Write down where a row is strong: how many, or -1 where they are too many. The row's own variable is
   one of them. */
VECTORISED static int32_t find_strong(const int16_t *row, Int p, int16_t least_size,
                                      int32_t *restrict places)
{
    int32_t found = 0, here[GROUP];
    for (Int first = 0; first < p; first += GROUP) {
        Int size = least_int(GROUP, p - first);
        int16_t top = 0;
        for (Int m = 0; m < size; m++) {
            int16_t x = size_of(row[first + m]);
            top = x > top ? x : top;
        }
        if (top < least_size)
            continue;
        int32_t count = 0;
        for (Int m = 0; m < size; m++) {
            here[count] = (int32_t)(first + m);
            count += size_of(row[first + m]) >= least_size;
        }
        if (found + count > STRONG)
            return -1;
        memcpy(places + found, here, count * sizeof(int32_t));
        found += count;
    }
    return found;
}

static void close_pool(Pool *pool)
{
    for (Int e = 0; e < pool->size; e++)
        pool->spots[pool->variables[e]] = 0;
    pool->size = pool->n_rows = pool->n_looks = 0;
    pool->open = pool->failed = false;
}

/* Fill in the columns of some rows and variables of the pool. */
static void fill_columns(Pool *pool, const int16_t *S, Int p, Int row, Int first)
{
    const int16_t *source = S + pool->rows[row] * p;
    for (Int e = first; e < pool->size; e++)
        pool->columns[row * POOL + e] = source[pool->variables[e]];
}

/* The place of a variable among the rows of the pool. Where it is new there, all come in with which it
   is strongly correlated. */
static Int row_in_pool(Pool *pool, const int16_t *S, Int p, Int variable)
{
    for (Int i = 0; i < pool->n_rows; i++)
        if (pool->rows[i] == variable)
            return i;
    int32_t *strong = pool->strong + variable * STRONG_WIDTH;
    if (strong[0] == 0)
        strong[0] = find_strong(S + variable * p, p, pool->least_strong, strong + 1);
    if (strong[0] < 0 || pool->size + strong[0] > POOL || pool->n_rows == POOL_ROWS) {
        pool->failed = true;
        return 0;
    }
    Int before = pool->size;
    for (int32_t e = 1; e <= strong[0]; e++)
        if (pool->spots[strong[e]] == 0) {
            pool->variables[pool->size++] = strong[e];
            pool->spots[strong[e]] = (int32_t)pool->size;
        }
    for (Int i = 0; i < pool->n_rows; i++)
        fill_columns(pool, S, p, i, before);
    pool->rows[pool->n_rows] = variable;
    fill_columns(pool, S, p, pool->n_rows, 0);
    return pool->n_rows++;
}

/* Sort places, of which there are few, with their sizes. */
static void sort_places(Int count, int32_t *places, float *sizes)
{
    for (Int e = 1; e < count; e++) {
        int32_t place = places[e];
        float size = sizes[e];
        Int at = e;
        for (; at > 0 && places[at - 1] > place; at--) {
            places[at] = places[at - 1];
            sizes[at] = sizes[at - 1];
        }
        places[at] = place;
        sizes[at] = size;
    }
}

/* As ``collect``, in the pool of node r only, in the order of all variables. */
static Int collect_in_pool(Pool *pool, const int16_t *S, Int p, Int r, Int k, const Int *members,
                           const double *minus_gamma, double one, double bar,
                           int32_t *restrict places, float *restrict sizes)
{
    Int rows[POOL_ROWS];
    row_in_pool(pool, S, p, r);
    pool->failed |= k >= POOL_ROWS;
    for (Int i = 0; i < k && !pool->failed; i++)
        rows[i] = row_in_pool(pool, S, p, members[i]);
    if (pool->failed)
        return 0;
    Int found = collect(pool->columns, POOL, pool->size, 0, k, rows, minus_gamma, one, bar, places,
                        sizes);
    for (Int e = 0; e < found; e++)
        places[e] = pool->variables[places[e]];
    sort_places(found, places, sizes);
    return found;
}

static Term term_of(const int16_t *S, Int p, Int variable, double coefficient, double one)
{
    return (Term){S + variable * p, variable, coefficient, share_for(coefficient, one)};
}

/* Keep a look at the pool, at which nobody else may have a covariance of that level. All others are
   weakly correlated with the node and the members. Where sums of that reach no such level, as when
   somebody strong was chosen, there is nothing to check. */
static void keep_look(Pool *pool, const int16_t *S, Int p, Int r, Int k, const Int *members,
                      const double *minus_gamma, Bound bound, double worst, double level)
{
    int16_t least_size = least_sum(level - bound.fixed - bound.each * worst, bound.one);
    pool->failed |= pool->n_looks == LOOKS || k >= TERMS || least_size == 0;
    if (pool->failed)
        return;
    Look *look = pool->looks + pool->n_looks;
    double reach = 0.0;
    look->size = pool->size;
    look->level = level;
    look->least_size = least_size;
    look->bound = bound;
    look->terms[0] = term_of(S, p, r, 1.0, bound.one);
    for (Int i = 0; i < k; i++)
        look->terms[1 + i] = term_of(S, p, members[i], minus_gamma[i], bound.one);
    look->n_terms = 1 + k;
    for (Int i = 0; i <= k; i++)
        reach += abs(look->terms[i].share) * (pool->least_strong / 32768.0) + 1.0;
    pool->n_looks += reach >= least_size;
}

/* Make the rough covariances of a strip of variables at a look. ``over`` is by how much any so far is
   larger than the least that counts. The number of terms is known to the compiler, so that a sum never
   leaves its register. */
INLINED void sum_terms(const Look *look, int terms, Int first, int16_t *restrict over)
{
    const int16_t *rows[TERMS];
    int16_t shares[TERMS], least_size = look->least_size;
    for (int i = 0; i < terms; i++) {
        rows[i] = look->terms[i].row + first;
        shares[i] = look->terms[i].share;
    }
    for (int m = 0; m < CHECKED; m++) {
        int16_t c = 0;
#pragma GCC unroll 8
        for (int i = 0; i < terms; i++)
            c += share_of(rows[i][m], shares[i]);
        c = (int16_t)(size_of(c) - least_size);
        over[m] = c > over[m] ? c : over[m];
    }
}

/* The same for some looks, and whether any counts. */
VECTORISED static bool sum_looks(const Look *looks, Int n_looks, Int first, int16_t *restrict over)
{
    int16_t top = -1;
    memset(over, -1, CHECKED * sizeof(int16_t));
    for (Int e = 0; e < n_looks; e++)
        switch (looks[e].n_terms) {
#define SUM(terms)                                                                                 \
    case terms:                                                                                    \
        sum_terms(looks + e, terms, first, over);                                                  \
        break;
            SUM(1) SUM(2) SUM(3) SUM(4) SUM(5) SUM(6) SUM(7) SUM(8)
#undef SUM
        }
    for (int m = 0; m < CHECKED; m++)
        top = over[m] > top ? over[m] : top;
    return top >= 0;
}

/* The variables, of at least a strip, whose rough covariances count at any look. */
static Int find_over(const Look *looks, Int n_looks, Int p, int32_t *restrict places)
{
    int16_t over[CHECKED];
    Int found = 0;
    for (Int begin = 0; begin < p; begin += CHECKED) {
        /* The last strip may begin among those that were looked at before. */
        Int first = least_int(begin, p - CHECKED);
        bool any = sum_looks(looks, n_looks, first, over);
        for (Int m = begin - first; any && m < CHECKED; m++)
            if (over[m] >= 0)
                places[found++] = (int32_t)(first + m);
    }
    return found;
}

/* The size of the rough covariance of a variable at a look. */
static double rough_size(const Look *look, Int m)
{
    int16_t c = 0;
    for (Int i = 0; i < look->n_terms; i++)
        c += share_of(look->terms[i].row[m], look->terms[i].share);
    return abs(c) / look->bound.one;
}

#endif
