/* W, the covariance of an estimate, row by row, and the graph beside it.

   Entries ``first[k]`` to ``first[k] + size[k]`` of ``w`` are those of node k. *Dense* rows have all
   entries. *Sparse* rows have those above ``drop``, and those whose correlation alone could make an
   edge; beside each entry (k, m) is ``column``, the node m, and ``twin``, at which place of its own
   row the entry (m, k) stands; a row that is full moves to the end, and gets more ``room``.

   The first ``known[k]`` entries of a row are those whose correlation somebody has asked for. It is in
   ``s``, from ``first_known[k]`` on, where there is room for ``room_known[k]``: as it is for the first
   ``exact[k]``, up to ``error`` for the others; one that nobody has asked for is at most ``cutoff``. Of
   dense rows all are exact. ``used`` says where the entries end, and where the correlations do.

   Edges are numbered; the slots of node k, ``begin[k]`` to ``begin[k] + degree[k]``, hold its
   neighbours and the numbers of the edges to them. What a search knows of an edge stands together, as
   edges near each other have numbers that are not: its entries of Θ and S, by how much that of Θ has
   changed, and what the edge costs, UNKNOWN where its entry of Θ has changed since. The numbers of
   all those, each once, are in ``stale``, after how many they are. */

#ifndef SPARSISTENT_ROWS_H
#define SPARSISTENT_ROWS_H

#include "kernels.h"

typedef struct {
    Int *first, *size, *room, *known, *exact, *first_known, *room_known, *used;
    int32_t *column, *twin;
    double *w, *s;
    double cutoff, error;
    Int capacity, capacity_known;
    bool sparse;
} Rows;

typedef struct {
    Int *begin, *degree, *neighbor, *edge;
    Int slots;
} Edges;

enum { THETA, SAMPLE, CHANGE, COST, EDGE_VALUES };

INLINED Rows take_rows(Arguments *args)
{
    Arguments items = group(args);
    Rows rows;
    rows.first = ints(&items).at;
    rows.size = ints(&items).at;
    rows.room = ints(&items).at;
    rows.known = ints(&items).at;
    rows.exact = ints(&items).at;
    rows.first_known = ints(&items).at;
    rows.room_known = ints(&items).at;
    rows.used = ints(&items).at;
    Places column = places(&items);
    rows.column = column.at;
    rows.twin = places(&items).at;
    rows.w = floats(&items).at;
    Floats s = floats(&items);
    rows.s = s.at;
    rows.cutoff = number(&items);
    rows.error = number(&items);
    close_group(args, &items);
    rows.sparse = column.size > 0;
    rows.capacity = column.size;
    rows.capacity_known = s.size;
    return rows;
}

INLINED Edges take_edges(Arguments *args)
{
    Arguments items = group(args);
    Ints begin = ints(&items), degree = ints(&items), neighbor = ints(&items), edge = ints(&items);
    close_group(args, &items);
    return (Edges){begin.at, degree.at, neighbor.at, edge.at, edge.size};
}

/* The node of an entry at this place of a row. */
INLINED Int node_at(const Rows *rows, Int slot, Int place)
{
    return rows->sparse ? rows->column[slot] : place;
}

/* What is known of the correlations in a row. */
typedef struct {
    const double *s;
    Int known, exact;
    double cutoff, error;
} Known;

INLINED Known known_of(const Rows *rows, Int k)
{
    return (Known){rows->s + rows->first_known[k], rows->known[k], rows->exact[k], rows->cutoff,
                   rows->error};
}

/* By how much the correlation of an entry may differ from this covariance; where it has no place yet,
   or none that is known, by as much as any may. */
INLINED double largest_difference(const Known *row, Int place, double w)
{
    if (place < 0 || place >= row->known)
        return row->cutoff + fabs(w);
    double s = row->s[place], error = place < row->exact ? 0.0 : row->error;
    return s == BARRED ? 0.0 : fabs(s - w) + error;
}

/* Give an entry (k, m), and its twin, a value. */
INLINED void set_both(const Rows *rows, Int k, Int m, Int slot, double value)
{
    rows->w[slot] = value;
    rows->w[rows->first[m] + (rows->sparse ? rows->twin[slot] : k)] = value;
}

#endif
