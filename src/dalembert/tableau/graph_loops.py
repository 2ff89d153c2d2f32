"""Compiled loops over a bipartite graph: augmenting paths, alternating reach, strong components.

Symbols: row i is an equation, column j an unknown; `indptr, indices` list the columns of each row (CSR);
`col_of_row` and `row_of_col` are a matching, -1 where there is none.
"""

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import loop

compiled = loop(nogil=True, error_model="numpy")


@compiled
def augment(indptr, indices, col_of_row, row_of_col):
    """Enlarge a matching, in place, until no augmenting path is left.

    Depth first with look-ahead (I. S. Duff, "On algorithms for obtaining a maximum transversal", ACM TOMS 7 (1981)
    315-330). Rows that are matched stay matched, perhaps to another column. Worst case O(rows * entries), in practice
    close to linear.
    """
    rows = indptr.size - 1
    ahead, position = indptr[:-1].copy(), indptr[:-1].copy()
    visited = np.full(row_of_col.size, -1, np.int64)
    stack, chosen = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
    for root in range(rows):
        if col_of_row[root] >= 0:
            continue
        stack[0], depth, free = root, 0, -1
        position[root] = indptr[root]
        while depth >= 0:
            row = stack[depth]
            free = _free_column(indptr, indices, row_of_col, ahead, row)
            if free >= 0:
                break
            column = _next_column(indptr, indices, visited, position, row, root)
            if column < 0:
                depth -= 1
                continue
            chosen[depth] = column
            depth += 1
            stack[depth] = row_of_col[column]
            position[stack[depth]] = indptr[stack[depth]]
        for level in range(depth, -1, -1):
            column = free if level == depth else chosen[level]
            col_of_row[stack[level]] = column
            row_of_col[column] = stack[level]


@compiled
def _free_column(indptr, indices, row_of_col, ahead, row):
    """Return a column of the row that is not matched, or -1; a matched column never becomes free again."""
    while ahead[row] < indptr[row + 1]:
        column = indices[ahead[row]]
        ahead[row] += 1
        if row_of_col[column] < 0:
            return column
    return -1


@compiled
def _next_column(indptr, indices, visited, position, row, root):
    """Return the next column of the row that this search has not seen, or -1."""
    while position[row] < indptr[row + 1]:
        column = indices[position[row]]
        position[row] += 1
        if visited[column] != root:
            visited[column] = root
            return column
    return -1


@compiled
def reach(indptr, indices, row_of_col, starts):
    """Return which rows and columns alternating paths reach: row -> any column -> the row matched to it."""
    rows, cols = np.zeros(indptr.size - 1, np.bool_), np.zeros(row_of_col.size, np.bool_)
    stack = np.empty(indptr.size, np.int64)
    depth = 0
    for start in starts:
        if not rows[start]:
            rows[start] = True
            stack[depth] = start
            depth += 1
    while depth > 0:
        depth -= 1
        row = stack[depth]
        for k in range(indptr[row], indptr[row + 1]):
            column = indices[k]
            if cols[column]:
                continue
            cols[column] = True
            other = row_of_col[column]
            if other >= 0 and not rows[other]:
                rows[other] = True
                stack[depth] = other
                depth += 1
    return rows, cols


@compiled
def strong_components(indptr, indices, row_of_col):
    """Return the rows of a perfectly matched square graph in solving order, and where each block begins.

    Row i needs row k if it contains k's matched unknown. Tarjan's algorithm closes a component after everything it
    needs (R. Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1 (1972) 146-160), so the order
    in which components close is the order in which blocks are solved. O(entries).
    """
    n = indptr.size - 1
    index, low = np.full(n, -1, np.int64), np.zeros(n, np.int64)
    position, on_stack = indptr[:-1].copy(), np.zeros(n, np.bool_)
    calls, stack = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    order, begins = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    counter = height = done = blocks = 0
    for root in range(n):
        if index[root] >= 0:
            continue
        calls[0], depth = root, 0
        while depth >= 0:
            row = calls[depth]
            if index[row] < 0:
                index[row] = low[row] = counter
                counter += 1
                stack[height], on_stack[row] = row, True
                height += 1
            needed = _unvisited(indptr, indices, row_of_col, index, low, on_stack, position, row)
            if needed >= 0:
                depth += 1
                calls[depth] = needed
                continue
            if low[row] == index[row]:
                begins[blocks] = done
                blocks += 1
                member = -1
                while member != row:
                    height -= 1
                    member = stack[height]
                    on_stack[member] = False
                    order[done] = member
                    done += 1
            depth -= 1
            if depth >= 0:
                low[calls[depth]] = min(low[calls[depth]], low[row])
    begins[blocks] = n
    return order, begins[: blocks + 1]


@compiled
def _unvisited(indptr, indices, row_of_col, index, low, on_stack, position, row):
    """Return the next row that this one needs and that was not visited, or -1; lower the link on the way."""
    while position[row] < indptr[row + 1]:
        other = row_of_col[indices[position[row]]]
        position[row] += 1
        if index[other] < 0:
            return other
        if on_stack[other]:
            low[row] = min(low[row], index[other])
    return -1


@compiled
def depth_first(indptr, indices):
    """Return the nodes of an acyclic graph, each after those that its list names, depth first from the last."""
    n = indptr.size - 1
    position, entered = indptr[:-1].copy(), np.zeros(n, np.bool_)
    stack, order = np.empty(n + 1, np.int64), np.empty(n, np.int64)
    done = 0
    for root in range(n - 1, -1, -1):
        if entered[root]:
            continue
        stack[0], depth, entered[root] = root, 0, True
        while depth >= 0:
            node = stack[depth]
            if position[node] < indptr[node + 1]:
                needed = indices[position[node]]
                position[node] += 1
                if not entered[needed]:
                    entered[needed] = True
                    depth += 1
                    stack[depth] = needed
            else:
                order[done] = node
                done += 1
                depth -= 1
    return order
