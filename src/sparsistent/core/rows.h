/* W, the covariance of an estimate, row by row, and the graph beside it.

   Entries ``first[k]`` to ``first[k] + size[k]`` of ``w`` are those of node k. *Dense* rows have all
   entries. *Sparse* rows have those above ``drop``, and those whose correlation alone could make an
   edge; beside each entry (k, m) is ``column``, the node m, and ``twin``, at which place of its own
   row the entry (m, k) stands; a row that is full moves to the end, ``used``, and gets more
   ``room``. Beside each entry of W is that of S in ``s``, 0 in sparse rows as long as nobody has
   asked for it.

   Edges are numbered; the slots of node k, ``begin[k]`` to ``begin[k] + degree[k]``, hold its
   neighbours and the numbers of the edges to them. */

#ifndef SPARSISTENT_ROWS_H
#define SPARSISTENT_ROWS_H

#include "kernels.h"

typedef struct {
    Int *first, *size, *room, *used;
    int32_t *column, *twin;
    double *w, *s;
    Int capacity;
    bool sparse;
} Rows;

typedef struct {
    Int *begin, *degree, *neighbor, *edge;
    Int slots;
} Edges;

INLINED Rows take_rows(Arguments *args)
{
    Arguments items = group(args);
    Ints first = ints(&items), size = ints(&items), room = ints(&items), used = ints(&items);
    Places column = places(&items), twin = places(&items);
    Floats w = floats(&items), s = floats(&items);
    close_group(args, &items);
    return (Rows){first.at, size.at, room.at, used.at,   column.at,
                  twin.at,  w.at,    s.at,    w.size, column.size > 0};
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

#endif
