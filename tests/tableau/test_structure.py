"""Matchings, covers, parts and blocks against SciPy and CasADi; named culprits of broken systems."""

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import maximum_bipartite_matching

from dalembert.errors import ModelError, ShapeError, SolvabilityError, UnsupportedError
from dalembert.tableau import Pattern, make_plan, rank_report, structure
from dalembert.tableau.structure.matching import blocks, match, parts
from tests.tableau.strategies import casadi_sparsity, patterns, regular_matrices


def structural_rank(pattern: np.ndarray) -> int:
    """SciPy's Hopcroft-Karp."""
    return int((maximum_bipartite_matching(sp.csr_matrix(pattern), perm_type="column") >= 0).sum())


@given(patterns())
def test_Y10_matching_is_maximal_and_the_cover_proves_it(pattern):
    """Konig-Egervary: the cover has as many vertices as the matching has arcs, and touches every entry."""
    found = match(Pattern.of(pattern))
    assert found.size == structural_rank(pattern)
    for i, j in enumerate(found.col_of_row):
        assert j < 0 or (pattern[i, j] and found.row_of_col[j] == i)
    rows, cols = found.cover
    assert rows.sum() + cols.sum() == found.size
    assert not (pattern & ~rows[:, None] & ~cols[None, :]).any()


@given(patterns(), st.integers(0, 2**32 - 1))
def test_preferred_pairs_never_cost_a_match(pattern, seed):
    rng = np.random.default_rng(seed)
    wanted = [
        (int(i), int(j)) for i, j in zip(rng.permutation(pattern.shape[0]), range(pattern.shape[1]), strict=False)
    ]
    assert match(Pattern.of(pattern), wanted).size == structural_rank(pattern)


def test_preferred_pairs_are_kept_where_they_fit():
    found = match(Pattern.of(np.ones((3, 3))), [(0, 2), (1, 0), (2, 1)])
    assert found.col_of_row.tolist() == [2, 0, 1]


@given(patterns(square=True))
def test_Y10_blocks_are_those_of_casadi(pattern):
    """`Sparsity.btf()` is the oracle for the sizes and members of blocks; the order solves block after block."""
    found = match(Pattern.of(pattern))
    if not found.perfect:
        return
    order = blocks(found)
    _, row, col, row_blocks, col_blocks, _, _ = casadi_sparsity(pattern).btf()
    theirs = {
        (frozenset(row[a:b]), frozenset(col[c:d]))
        for a, b, c, d in zip(row_blocks[:-1], row_blocks[1:], col_blocks[:-1], col_blocks[1:], strict=True)
    }
    bounds = list(zip(order.begins[:-1], order.begins[1:], strict=True))
    ours = {(frozenset(order.rows[a:b].tolist()), frozenset(order.cols[a:b].tolist())) for a, b in bounds}
    assert ours == theirs
    permuted = pattern[order.rows][:, order.cols]
    assert not any(permuted[a:b, b:].any() for a, b in bounds)


@given(patterns())
def test_parts_are_those_of_dulmage_and_mendelsohn(pattern):
    """The over-determined part has a surplus, the under-determined a deficit; entries point one way only."""
    found = match(Pattern.of(pattern))
    coarse = parts(found)
    assert coarse.over_rows.sum() - coarse.over_cols.sum() == len(found.free_rows)
    assert coarse.under_cols.sum() - coarse.under_rows.sum() == len(found.free_cols)
    assert not (coarse.over_rows & coarse.under_rows).any()
    assert not pattern[coarse.over_rows][:, ~coarse.over_cols].any()
    assert not pattern[~coarse.under_rows][:, coarse.under_cols].any()
    square = blocks(found)
    assert len(square.rows) == (~(coarse.over_rows | coarse.under_rows)).sum()


@given(patterns())
def test_Y10_smallest_sets_are_minimal(pattern):
    """k equations in k - 1 unknowns; without any one of them the rest can be matched."""
    found = structure(pattern)
    p = found.pattern
    for misfit in found.over_determined:
        rows = [p.equations.index(e) for e in misfit.equations]
        assert len(misfit.unknowns) == len(rows) - 1
        assert {p.unknowns[j] for j in np.flatnonzero(pattern[rows].any(axis=0))} == set(misfit.unknowns)
        for left_out in rows:
            rest = [i for i in rows if i != left_out]
            assert not rest or structural_rank(pattern[rest]) == len(rest)
    assert len(found.under_determined) == pattern.shape[1] - found.rank


@given(regular_matrices(largest=15), st.data())
def test_a_dropped_equation_is_named(matrix, data):
    """Without equation k, its unknown is among those that are not determined; with it back, all is well."""
    k = data.draw(st.integers(0, matrix.shape[0] - 1))
    kept = [i for i in range(matrix.shape[0]) if i != k]
    names = [f"G{i}" for i in kept]
    found = structure(matrix.toarray()[kept] if kept else np.zeros((0, 1)), equations=names)
    assert not found.over_determined
    (missing,) = found.under_determined
    lost = [f"unknown {j}" for j in np.flatnonzero(matrix.toarray()[k])]
    assert set(missing.unknowns) & set(lost)
    assert len(missing.equations) == len(missing.unknowns) - 1


@given(regular_matrices(largest=15), st.data())
def test_an_equation_written_twice_is_named(matrix, data):
    """A second copy of an equation under another name is in the only over-determined set."""
    k = data.draw(st.integers(0, matrix.shape[0] - 1))
    doubled = np.vstack([matrix.toarray(), matrix.toarray()[k]])
    names = [*(f"G{i}" for i in range(matrix.shape[0])), "copy"]
    (misfit,) = structure(doubled, equations=names).over_determined
    assert {"copy", f"G{k}"} <= set(misfit.equations)


@given(regular_matrices(largest=15), st.data())
def test_a_variable_used_under_two_names_is_named(matrix, data):
    """A second name for an unknown, in some of its equations: both are in the only under-determined set."""
    j = data.draw(st.integers(0, matrix.shape[1] - 1))
    doubled = np.hstack([matrix.toarray(), matrix.toarray()[:, [j]]])
    names = [*(f"x{k}" for k in range(matrix.shape[1])), "twin"]
    found = structure(doubled, unknowns=names)
    (missing,) = found.under_determined
    assert {"twin", f"x{j}"} <= set(missing.unknowns)
    assert not found.over_determined


@given(regular_matrices(largest=12), st.data())
def test_wrong_causality_is_corrected_not_obeyed(matrix, data):
    """Declared outputs that allow no matching give way; blocks are those of the equations, whatever was declared."""
    n = matrix.shape[0]
    wrong = list(zip(data.draw(st.permutations(range(n))), range(n), strict=True))
    found, free = match(Pattern.of(matrix), wrong), match(Pattern.of(matrix))
    assert found.perfect
    dense = matrix.toarray()
    assert all(dense[i, j] for i, j in enumerate(found.col_of_row))
    assert sorted(blocks(found).sizes) == sorted(blocks(free).sizes)


@given(regular_matrices(largest=15), st.data())
def test_numerically_dependent_rows_are_named(matrix, data):
    """A combination of two equations in place of a third passes the matching, not the numbers."""
    n = matrix.shape[0]
    if n < 3:
        return
    a, b, c = data.draw(st.permutations(range(n)))[:3]
    dense = matrix.toarray()
    dense[c] = dense[a] - 2 * dense[b]
    found = structure(dense, equations=[f"G{i}" for i in range(n)])
    if not found.solvable:
        return
    report = rank_report(found.pattern, dense[dense != 0])
    assert not report.full
    named = sorted(int(name[1:]) for name in report.found[0].equations[0])
    assert set(named) <= {a, b, c}  # fewer than three where a block before theirs holds one of them
    within = dense[:, block_columns(dense, named)]
    assert np.linalg.matrix_rank(within[named]) == len(named) - 1
    for left_out in named:  # none of the named is innocent
        others = [i for i in named if i != left_out]
        assert np.linalg.matrix_rank(within[others]) == len(others)


def block_columns(dense, rows):
    """Return the columns of the diagonal block that holds the rows, as CasADi finds it."""
    i, j = (index.tolist() for index in np.nonzero(dense))
    count, row, column, row_start, column_start, *_ = ca.Sparsity.triplet(*dense.shape, i, j).btf()
    (k,) = [k for k in range(count) if set(rows) <= set(row[row_start[k] : row_start[k + 1]])]
    return column[column_start[k] : column_start[k + 1]]


@given(regular_matrices())
def test_regular_matrices_have_full_rank(matrix):
    assert rank_report(matrix, matrix.data).full


def test_rank_of_a_large_block_by_inverse_iteration():
    """A chain of 2000 equations in one block, the last a combination of two others."""
    n = 2000
    A = sp.lil_array(sp.diags_array([np.ones(n - 1), 3 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]))
    regular = sp.csr_array(A)
    assert rank_report(regular, regular.data).full
    A[n - 1, :] = 0
    for j in range(4):
        A[n - 1, j] = A[0, j] + A[1, j] if j < 3 else 0
    A[n - 1, n - 1] = 0
    A[0, n - 1] = 1.0
    A[n - 1, n - 1] = 1.0
    singular = sp.csr_array(A)
    singular.eliminate_zeros()
    singular.sort_indices()
    report = rank_report(singular, singular.data)
    assert not report.full
    assert {"equation 0", "equation 1", f"equation {n - 1}"} == set(report.found[0].equations[0])


def test_report_names_sets_and_says_what_to_do():
    A = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1]])
    text = str(structure(A, equations=["first", "second", "third"], unknowns=["x", "y", "z"]))
    assert "structurally singular" in text
    assert "2 equations for 1 unknown(s): equations 'first', 'second'; unknowns 'x'" in text
    assert "Drop one" in text
    assert "'y', 'z'" in text


def test_empty_rows_and_columns_are_named():
    found = structure(np.array([[0, 0], [1, 0]]), equations=["nothing", "one"], unknowns=["x", "alone"])
    assert "equation 'nothing' contains no unknown" in found.report()
    assert "unknown 'alone' is in no equation" in found.report()


@pytest.mark.parametrize(
    ("given_", "error"),
    [
        (np.array([[1.0, np.nan]]), ModelError),
        (np.zeros(3), UnsupportedError),
        ("text", UnsupportedError),
        (np.array([["a"]]), UnsupportedError),
    ],
)
def test_what_is_no_pattern_is_refused(given_, error):
    with pytest.raises(error):
        structure(given_)


def test_names_are_checked():
    with pytest.raises(ModelError, match="distinct"):
        structure(np.eye(2), equations=["G", "G"])
    with pytest.raises(ShapeError):
        structure(np.eye(2), unknowns=["x"])


def test_unsquare_and_singular_systems_have_no_plan():
    with pytest.raises(ShapeError, match="3 equations for 2 unknowns"):
        make_plan(np.ones((3, 2)))
    with pytest.raises(SolvabilityError, match="structurally singular") as raised:
        make_plan(np.array([[1, 0], [1, 0]]))
    assert raised.value.diagnosis.rank == 1
