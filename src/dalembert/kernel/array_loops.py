"""Vectors and elimination in compiled loops, written out: compiled several times faster than NumPy's expressions."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.loops import inner

# ----------------------------------------------------------------------------------------------------------------------
# Vectors and matrices.


@inner
def copy_to(target, source):
    """Copy a vector."""
    for j in range(source.size):
        target[j] = source[j]


@inner
def copy_rows(target, source):
    """Copy a matrix."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@inner
def fill(target, value):
    """Write a value into all of a vector."""
    for j in range(target.size):
        target[j] = value


@inner
def dot(a, b):
    """Return a . b."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@inner
def add_multiple(target, factor, source):
    """Add a multiple of a vector."""
    for j in range(source.size):
        target[j] += factor * source[j]


@inner
def least(values):
    """Return the least of some values."""
    smallest = np.inf
    for j in range(values.size):
        if values[j] < smallest:
            smallest = values[j]
    return smallest


# ----------------------------------------------------------------------------------------------------------------------
# Elimination with partial pivoting.


@inner
def factor(K, size, pivot):
    """Overwrite K by its factors; return whether no pivot is zero."""
    for j in range(size):
        p, largest = j, abs(K[j, j])
        for i in range(j + 1, size):
            if abs(K[i, j]) > largest:
                p, largest = i, abs(K[i, j])
        pivot[j] = p
        if not largest > 0.0:
            return False
        if p != j:
            for m in range(size):
                K[j, m], K[p, m] = K[p, m], K[j, m]
        for i in range(j + 1, size):
            if K[i, j] != 0.0:
                part = K[i, j] / K[j, j]
                K[i, j] = part
                for m in range(j + 1, size):
                    K[i, m] -= part * K[j, m]
    return True


@inner
def substitute(K, size, pivot, x):
    """Overwrite x by the solution."""
    for j in range(size):
        p = pivot[j]
        if p != j:
            x[j], x[p] = x[p], x[j]
    for j in range(size):
        total = x[j]
        for i in range(j):
            total -= K[j, i] * x[i]
        x[j] = total
    for j in range(size - 1, -1, -1):
        total = x[j]
        for i in range(j + 1, size):
            total -= K[j, i] * x[i]
        x[j] = total / K[j, j]


# ----------------------------------------------------------------------------------------------------------------------
# Cholesky's factors.


@inner
def factor_symmetric(K, L, size, shift):
    """Write the lower factor of K + shift I = L L^T; return whether it is positive definite."""
    for i in range(size):
        for j in range(i + 1):
            total = K[i, j]
            for a in range(j):
                total -= L[i, a] * L[j, a]
            if i == j:
                total += shift
                if not total > 0.0:
                    return False
                L[i, i] = np.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    return True


@inner
def substitute_lower(L, size, x):
    """Overwrite x by L^-1 x."""
    for i in range(size):
        total = x[i]
        for a in range(i):
            total -= L[i, a] * x[a]
        x[i] = total / L[i, i]


@inner
def substitute_upper(L, size, x):
    """Overwrite x by L^-T x."""
    for i in range(size - 1, -1, -1):
        total = x[i]
        for a in range(i + 1, size):
            total -= L[a, i] * x[a]
        x[i] = total / L[i, i]
