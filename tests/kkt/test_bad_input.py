"""Bad input: each has its own error, which names the culprit, or its defined meaning; in batches it has a status."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sps

from dalembert import KKT, DalembertError, ModelError, ShapeError, SolvabilityError, Status, UnsupportedError
from dalembert.friction import resolve
from tests.kkt import oracles

UNIT, ROW = np.eye(2), np.array([[1.0, 1.0]])


# shapes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("M", "A", "words"),
    [
        (np.ones((2, 3)), ROW, ["M", "square", "(2, 3)"]),
        (np.ones(3), ROW, ["M", "square", "(3,)"]),
        (5.0, ROW, ["M", "square"]),
        (np.zeros((0, 0)), None, ["M", "(0, 0)", "coordinates"]),
        (UNIT, np.ones((1, 3)), ["A", "(1, 3)"]),
        (np.eye(3), np.ones((3, 1)), ["A", "(3, 1)", "transposed"]),
        (UNIT, np.ones(2), ["A", "A[None, :]", "(1, 2)"]),
        (UNIT, np.ones(3), ["A", "(3,)"]),
        (UNIT, 1.0, ["A"]),
        (np.ones((3, 2, 2)), np.ones((4, 1, 2)), ["batch", "(3,)", "(4,)"]),
        ([[1, 2], [3]], ROW, ["M"]),
        (UNIT, [[1, 2], [3]], ["A"]),
    ],
)
def test_wrong_shapes_of_matrices(M: object, A: object, words: list[str]) -> None:
    with pytest.raises(ShapeError) as caught:
        KKT(M, A)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda K: K.solve([1, 2, 3]), ["force", "2", "(3,)"]),
        (lambda K: K.solve(1.0), ["force"]),
        (lambda K: K.solve([1, 2], [1, 2]), ["drift", "1", "(2,)"]),
        (lambda K: K.solve([1, 2], 3.0), ["drift"]),
        (lambda K: K.impact([1]), ["velocity", "2", "(1,)"]),
        (lambda K: K.impact([1, 2], [0.1, 0.2]), ["restitution", "(2,)"]),
        (lambda K: K.project_velocity([1]), ["velocity", "(1,)"]),
        (lambda K: K.least_energy_velocity([1, 2]), ["constraint_velocity", "(2,)"]),
        (lambda K: K.diagnose([1, 2]), ["drift", "(2,)"]),
        (lambda K: K.solve(np.ones((3, 2)), np.ones((4, 1))), ["broadcast", "(3,)", "(4,)"]),
    ],
)
def test_wrong_shapes_of_vectors(call, words: list[str]) -> None:
    with pytest.raises(ShapeError) as caught:
        call(KKT(UNIT, ROW))
    for word in words:
        assert word in str(caught.value)


def test_a_batch_is_not_analysed_as_a_whole() -> None:
    with pytest.raises(ShapeError, match=r"K\[0\]"):
        KKT(np.ones((3, 1, 1)), np.ones((1, 1))).diagnose()


def test_a_batch_index_of_the_wrong_length() -> None:
    with pytest.raises(ShapeError, match="indices"):
        KKT(np.ones((3, 2, 1, 1)))[0]


# M -------------------------------------------------------------------------------------------------------------------


def test_asymmetric_mass_is_refused_by_entry_and_name() -> None:
    M = np.array([[1.0, 0.25, 0], [0.5, 1, 0], [0, 0, 1]])
    with pytest.raises(ModelError, match=re.escape("M[0, 1] = 0.25 but M[1, 0] = 0.5 ('x', 'y')")):
        KKT(M, coordinates=["x", "y", "z"])


def test_half_filled_mass_gets_a_hint() -> None:
    with pytest.raises(ModelError, match="only the upper"):
        KKT([[2.0, 1.0], [0.0, 2.0]])


def test_asymmetry_of_rounding_is_taken() -> None:
    M = np.array([[2.0, 1.0], [1.0 + 4e-16, 2.0]])
    assert KKT(M, ROW).solve([1, 2]).ok


def test_asymmetry_of_float32_rounding_is_taken_only_from_float32() -> None:
    M = np.array([[2.0, 1.0], [1.0 + 1e-7, 2.0]])
    assert M.astype(np.float32)[0, 1] != M.astype(np.float32)[1, 0]
    assert KKT(M.astype(np.float32), ROW).solve([1, 2]).ok
    with pytest.raises(ModelError, match="not symmetric"):
        KKT(M, ROW)


def test_indefinite_on_the_relevant_space() -> None:
    with pytest.raises(SolvabilityError, match=r"negative mass along: (q0 - q1|-q0 \+ q1)"):
        KKT([[1.0, 3.0], [3.0, 1.0]], ROW).solve([1, 2])


# numbers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_entries_are_named(bad: float) -> None:
    names = {"names": ["foot"], "coordinates": ["hip", "knee"]}
    M, A = UNIT.copy(), ROW.copy()
    M[1, 1] = bad
    with pytest.raises(ModelError, match=re.escape(f"M[1, 1] is {bad} ('knee', 'knee')")):
        KKT(M, ROW, **names)
    A[0, 1] = bad
    with pytest.raises(ModelError, match=re.escape(f"A[0, 1] is {bad} ('foot', 'knee')")):
        KKT(UNIT, A, **names)
    K = KKT(UNIT, ROW, **names)
    with pytest.raises(ModelError, match=re.escape(f"force[1] is {bad} ('knee')")):
        K.solve([0, bad])
    with pytest.raises(ModelError, match=re.escape(f"drift[0] is {bad} ('foot')")):
        K.solve([0, 0], [bad])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("call", "culprit"),
    [
        (lambda K, x: K.impact([0, x]), "velocity"),
        (lambda K, x: K.project_velocity([0, x]), "velocity"),
        (lambda K, x: K.least_energy_velocity([x]), "constraint_velocity"),
        (lambda K, x: K.diagnose([x]), "drift"),
    ],
    ids=["impact", "project", "least energy", "diagnose"],
)
def test_nonfinite_velocities_are_named_as_such(call, culprit: str, bad: float) -> None:
    with pytest.raises(ModelError, match=rf"(^|\s){culprit}\["):
        call(KKT(UNIT, ROW), bad)


@pytest.mark.parametrize("scale", [1e155, 1e200, 1e300, 1e-155, 1e-200, 1e-300])
@pytest.mark.parametrize("where", ["M", "A", "force", "all"])
def test_huge_and_tiny_numbers_are_solved_without_warnings(scale: float, where: str) -> None:
    sM, sA, sf = (scale if where in (name, "all") else 1.0 for name in ("M", "A", "force"))
    s = KKT(sM * np.array([[2.0, 1], [1, 2]]), sA * np.array([[1.0, 2]])).solve(sf * np.array([1.0, 3]))
    np.testing.assert_allclose(s.acceleration * (sM / sf), [-1 / 3, 1 / 6], rtol=1e-12)
    np.testing.assert_allclose(s.multipliers * (sA / sf), [1.5], rtol=1e-12)
    assert s.ok


@pytest.mark.parametrize(
    ("M", "A", "culprit"),
    [
        (UNIT + 0j, ROW, "M"),
        (UNIT, ROW * 1j, "A"),
        ([["a", "b"], ["c", "d"]], ROW, "M"),
        (UNIT, [["1", "2"]], "A"),
        (None, ROW, "M"),
        ([[object()]], None, "M"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), None, "M"),
    ],
    ids=["complex M", "complex A", "text M", "text A", "None", "objects", "dates"],
)
def test_what_is_no_real_number_is_refused(M: object, A: object, culprit: str) -> None:
    with pytest.raises(ModelError, match=rf"^{culprit} .*dtype"):
        KKT(M, A)


@pytest.mark.parametrize("force", [[1j, 0], ["a", "b"], [None, 1]])
def test_forces_that_are_no_real_numbers_are_refused(force: list) -> None:
    with pytest.raises(ModelError, match=r"^force .*dtype"):
        KKT(UNIT, ROW).solve(force)


# defined meanings ----------------------------------------------------------------------------------------------------


def test_an_empty_list_of_rows_is_refused_as_it_has_no_columns() -> None:
    with pytest.raises(ShapeError, match="A must be"):
        KKT(np.diag([2, 4]), [])


@pytest.mark.parametrize("A", [None, np.zeros((0, 2))], ids=["None", "(0, n)"])
def test_no_constraints_is_the_free_system(A: object) -> None:
    K = KKT(np.diag([2, 4]), A)
    s = K.solve([2, 8])
    np.testing.assert_allclose(s.acceleration, [1, 2], rtol=1e-15)
    assert s.multipliers.shape == s.reactions.shape == (0,)
    assert s.status is Status.UNIQUE
    assert str(s)
    assert str(K.diagnose())
    np.testing.assert_allclose(K.dagger.M, np.diag([0.5, 0.25]), rtol=1e-15)
    np.testing.assert_allclose(K.impact([3, 4], 0.5).velocity, [3, 4], rtol=1e-15)
    np.testing.assert_allclose(K.project_velocity([3, 4]), [3, 4], rtol=1e-15)


@pytest.mark.parametrize("size", [3, 70])
def test_no_constraints_in_a_batch(size: int) -> None:
    s = KKT(np.tile(np.diag([2.0, 4.0]), (size, 1, 1))).solve(np.tile([2.0, 8.0], (size, 1)))
    np.testing.assert_allclose(s.acceleration, np.tile([1.0, 2.0], (size, 1)), rtol=1e-15)
    assert s.multipliers.shape == (size, 0)
    assert s.ok.all()


def test_more_rows_than_coordinates_is_a_redundant_system() -> None:
    assert KKT(UNIT, [[1, 0], [0, 1], [1, 1]]).solve([1, 2]).status is Status.REDUNDANT


class Lazy:
    """Something with `__array__`, as other libraries have it."""

    def __init__(self, values: object) -> None:
        self.values = values

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: np.asarray(x).tolist(),
        lambda x: tuple(map(tuple, x)) if np.ndim(x) == 2 else tuple(x),
        Lazy,
        lambda x: np.asarray(x, dtype=np.float32),
        lambda x: np.asarray(x, dtype=np.float16),
        lambda x: np.asarray(x, dtype=np.int8),
        lambda x: np.asarray(x, dtype=np.longdouble),
        lambda x: np.asarray(x, dtype=">f8"),
        lambda x: np.asarray(x, order="F"),
        lambda x: np.ma.masked_array(x),
    ],
    ids=["lists", "tuples", "__array__", "float32", "float16", "int8", "longdouble", "big-endian", "fortran", "masked"],
)
def test_everything_that_is_an_array_is_taken(convert) -> None:
    M, A, force, drift = np.array([[2, 1], [1, 2]]), np.array([[1, 2]]), np.array([1, 3]), np.array([3])
    s = KKT(convert(M), convert(A)).solve(convert(force), convert(drift))
    expected = KKT(M, A).solve(force, drift)
    np.testing.assert_allclose(s.acceleration, expected.acceleration, rtol=1e-13)
    np.testing.assert_allclose(s.multipliers, expected.multipliers, rtol=1e-13)
    assert s.acceleration.dtype == np.float64


@pytest.mark.parametrize("number", [Fraction(1, 2), Decimal("0.5")])
def test_exact_numbers_of_the_standard_library_are_refused(number: object) -> None:
    with pytest.raises(ModelError, match=r"^M has dtype object"):
        KKT([[number]])


@pytest.mark.parametrize("kind", [sps.csr_matrix, sps.csc_array, sps.coo_matrix, sps.dia_matrix])
def test_small_sparse_matrices_are_taken(kind) -> None:
    s = KKT(kind(UNIT), kind(ROW)).solve([1, 3])
    np.testing.assert_allclose(s.acceleration, [-1, 1])


def test_large_sparse_matrices_are_never_made_dense_silently() -> None:
    with pytest.raises(UnsupportedError, match=r"(?s)sparse M.*2500.*2000.*toarray"):
        KKT(sps.identity(2500, format="csr"))
    with pytest.raises(UnsupportedError, match=r"(?s)sparse A.*2000.*toarray"):
        KKT(UNIT, sps.csr_matrix((2500, 2)))


def test_the_sparse_limit_is_n_plus_m() -> None:
    """The stated limit: n + m = 2000."""
    assert KKT(sps.identity(1900, format="csr"), sps.csr_matrix((100, 1900))).n == 1900
    with pytest.raises(UnsupportedError):
        KKT(sps.identity(1900, format="csr"), sps.csr_matrix((101, 1900)))


# names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"names": ["a", "b"]}, ShapeError, ["2 names", "a, b", "1"]),
        ({"names": []}, ShapeError, ["0 names", "1"]),
        ({"coordinates": ["x"]}, ShapeError, ["1 coordinates", "x", "2"]),
        ({"names": "foot"}, ShapeError, ["'foot'", "single str"]),
        ({"coordinates": ["x", "x"]}, ModelError, ["'x'", "distinct", "0", "1"]),
    ],
)
def test_names_of_wrong_length_or_twice(arguments: dict, error: type, words: list[str]) -> None:
    with pytest.raises(error) as caught:
        KKT(UNIT, ROW, **arguments)
    for word in words:
        assert word in str(caught.value)


def test_duplicate_row_names_are_refused() -> None:
    with pytest.raises(ModelError, match="'foot' stands at 0 and at 2"):
        KKT(np.eye(3), np.eye(3), names=["foot", "hand", "foot"])


def test_a_name_for_a_row_and_a_coordinate_is_never_ambiguous() -> None:
    """Either the clash is refused at once, or asking for the name is."""
    with pytest.raises(DalembertError, match="'x'"):
        KKT(UNIT, ROW, names=["x"], coordinates=["x", "y"]).solve([1, 1])["x"]


# words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: KKT(UNIT, ROW, route="shur"), lambda: KKT(UNIT, ROW).solve([1, 1], route="shur")]
)
def test_unknown_route_gets_a_suggestion(make) -> None:
    with pytest.raises(ModelError, match=r"route='shur'.*did you mean 'schur'"):
        make()


@pytest.mark.parametrize(
    ("option", "value"), [("massless", "ignore"), ("inconsistent", "least squares"), ("massless", None), ("route", 3)]
)
def test_unknown_options_name_the_allowed_ones(option: str, value: object) -> None:
    with pytest.raises(ModelError, match=f"{option}={re.escape(repr(value))} is not one of 'auto|refuse"):
        KKT(UNIT, ROW).solve([1, 1], **{option: value})


# restitution ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e", [-0.1, 1.1, np.nan, np.inf])
def test_restitution_outside_the_unit_interval(e: float) -> None:
    K = KKT(UNIT, np.eye(2), names=["heel", "toe"])
    with pytest.raises(ModelError, match=r"\[0, 1\].*'toe'"):
        K.impact([1, 1], [0.5, e])
    with pytest.raises(ModelError, match=r"\[0, 1\].*'heel'"):
        K.impact([1, 1], e)


@pytest.mark.parametrize("e", [0.0, 1.0])
def test_the_ends_of_the_interval_are_taken(e: float) -> None:
    np.testing.assert_array_equal(KKT(UNIT, np.eye(2)).impact([1, 1], e).velocity, [-e, -e])


# metric --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "error", "words"),
    [
        ([1.0, -1.0], ModelError, ["positive", "'toe'", "-1"]),
        ([0.0, 1.0], ModelError, ["positive", "'heel'"]),
        ([np.nan, 1.0], ModelError, ["'heel'", "nan"]),
        ([np.inf, 1.0], ModelError, ["'heel'", "inf"]),
        ([1.0], ShapeError, ["metric", "(1,)"]),
        (np.ones((3, 3)), ShapeError, ["metric", "(3, 3)"]),
        ([[1.0, 0.5], [0.0, 1.0]], ModelError, ["symmetric"]),
        ([[1.0, 2.0], [2.0, 1.0]], ModelError, ["definite", "-1"]),
        (["a", "b"], ModelError, ["metric"]),
    ],
)
def test_bad_metrics(metric: object, error: type, words: list[str]) -> None:
    with pytest.raises(error) as caught:
        KKT(UNIT, np.eye(2), names=["heel", "toe"], metric=metric)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("tolerance", [-1.0, np.nan, 2.0])
def test_rank_tolerance_must_be_a_fraction(tolerance: object) -> None:
    with pytest.raises(ModelError, match="rank_tolerance"):
        KKT(UNIT, np.eye(2), rank_tolerance=tolerance)


# errors as objects ---------------------------------------------------------------------------------------------------


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(ShapeError, ValueError)
    assert issubclass(ModelError, ValueError)
    assert issubclass(SolvabilityError, ArithmeticError)
    assert all(issubclass(e, DalembertError) for e in (ShapeError, ModelError, SolvabilityError, UnsupportedError))


# batches: a bad sample has a status, the others finish ---------------------------------------------------------------

BAD = {
    "M nan": ("M", (1, 0), np.nan, Status.NONFINITE),
    "M nan above the diagonal": ("M", (0, 1), np.nan, Status.NONFINITE),
    "M infinite": ("M", (1, 1), np.inf, Status.NONFINITE),
    "A nan": ("A", (0, 1), np.nan, Status.NONFINITE),
    "A infinite": ("A", (0, 0), -np.inf, Status.NONFINITE),
    "force nan": ("force", (1,), np.nan, Status.NONFINITE),
    "drift infinite": ("drift", (0,), np.inf, Status.NONFINITE),
    "M asymmetric": ("M", (0, 1), 0.75, Status.NOT_SYMMETRIC),
    "M negative": ("M", (0, 0), -9.0, Status.INDEFINITE),
}


@pytest.mark.parametrize("size", [9, 64, 100], ids=lambda size: f"batch of {size}")
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_sample_has_a_status_and_the_others_finish(kind: str, size: int) -> None:
    where, entry, value, status = BAD[kind]
    data = {
        "M": np.tile([[2.0, 0.5], [0.5, 2.0]], (size, 1, 1)),
        "A": np.tile([[1.0, 2.0]], (size, 1, 1)),
        "force": np.tile([1.0, 3.0], (size, 1)),
        "drift": np.tile([0.25], (size, 1)),
    }
    good = KKT(data["M"][0], data["A"][0]).solve(data["force"][0], data["drift"][0])
    spoiled = [0, size // 2, size - 1]
    for sample in spoiled:
        data[where][(sample, *entry)] = value
    s = KKT(data["M"], data["A"]).solve(data["force"], data["drift"])
    rest = np.setdiff1d(np.arange(size), spoiled)
    assert (s.status[spoiled] == status).all()
    assert np.isnan(s.acceleration[spoiled]).all()
    assert np.isnan(s.multipliers[spoiled]).all()
    assert (s.status[rest] == Status.UNIQUE).all()
    np.testing.assert_allclose(s.acceleration[rest], np.tile(good.acceleration, (rest.size, 1)), rtol=1e-13)
    np.testing.assert_allclose(s.multipliers[rest], np.tile(good.multipliers, (rest.size, 1)), rtol=1e-13)


def test_a_batch_of_bad_samples_only() -> None:
    s = KKT(np.full((70, 2, 2), np.nan), ROW).solve(np.ones(2))
    assert (s.status == Status.NONFINITE).all()
    assert not s.ok.any()


def test_a_zero_mass_in_a_batch() -> None:
    M = np.tile(UNIT, (70, 1, 1))
    M[3] = 0.0
    s = KKT(M, ROW).solve([1.0, 3.0])
    assert s.status[3] == Status.MASSLESS
    assert np.delete(s.ok, 3).all()


def test_an_impact_is_printed_by_name():
    K = KKT(np.diag([1.0, 2.0]), [[1.0, 1.0]], names=["stop"], coordinates=["x", "y"])
    lines = str(K.impact([1.0, 2.0], 0.5)).splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["x", "velocity", "-2"],
        ["y", "velocity", "0.5"],
        ["stop", "impulse", "-3"],
    ]
    assert lines[3] == "kinetic energy 4.5 before, 2.25 after"
    assert "2 of 2 samples ok" in str(K.impact([[1.0, 2.0], [0.0, 1.0]]))


MASKED = np.ma.masked_invalid([[1.0, np.nan], [0.0, 1.0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: KKT(MASKED),
        lambda: KKT(np.eye(2), MASKED),
        lambda: KKT(np.eye(2), [MASKED[0], MASKED[1]]),
        lambda: KKT(np.eye(2)).solve(MASKED[0]),
        lambda: KKT(np.eye(2), np.ones((1, 2))).solve([1, 2], np.ma.array([1.0], mask=[True])),
        lambda: KKT(np.eye(2), np.ones((1, 2))).impact(MASKED[0]),
        lambda: KKT(np.eye(2), np.ones((1, 2))).impact([1, 2], np.ma.array([0.5], mask=[True])),
        lambda: KKT(np.eye(2), np.ones((1, 2)), metric=np.ma.array([1.0], mask=[True])),
        lambda: resolve(MASKED, [0, 0], [[1], [0]], [0.0], [1.0]),
        lambda: resolve(np.eye(2), MASKED[0], [[1], [0]], [0.0], [1.0]),
    ],
)
def test_numbers_under_a_mask_are_refused(call):
    with pytest.raises(ShapeError, match=r"is a masked array; fill what is masked"):
        call()


EXTREME = [
    (np.diag([1e300, 1.0]), [[1e300, 1.0]], [1.0, 2.0]),
    (1e300 * np.eye(2), [[1.0, 1.0]], [1e300, 2e300]),
    (1e-200 * np.eye(2), [[1.0, 1.0]], [1e-200, 2e-200]),
    (np.eye(2), [[1e-200, 2e-200]], [1.0, 1.0]),
    (1e-200 * np.eye(2), [[1e-200, 1e-200]], [1e-200, 2e-200]),
    (1e300 * np.eye(2), [[1e-200, 1e-200]], [1e300, 2e300]),
    (1e300 * np.eye(2), [[1e-200, 1e-200], [2e-200, 2e-200]], [1e300, 2e300]),
    (np.diag([1e300, 1e-200]), [[1e200, 1e-200], [2e200, 2e-200]], [1e300, 1.0]),
    (np.eye(2), [[1e-200, 2e-200], [1e200, 0.0]], [1.0, 2.0]),
]


@pytest.mark.parametrize(("M", "A", "force"), EXTREME)
@pytest.mark.parametrize("copies", [1, 70])
def test_numbers_near_the_ends_of_the_range_are_answered_or_refused(M, A, force, copies):
    """Right to 1e-9 of the largest acceleration where ok; otherwise a status, and words where one is alone."""
    s = KKT(np.tile(M, (copies, 1, 1)), np.tile(A, (copies, 1, 1))).solve(force)
    if s.ok[0]:
        a, _ = oracles.exact_solution(M, np.array(A), np.array(force), np.zeros(len(A)))
        size = np.abs(a).max() + np.abs(np.array(force) / np.diag(M)).max()
        np.testing.assert_allclose(s.acceleration[0], a, atol=1e-9 * size)
    if s.status[0] > Status.ILL_CONDITIONED:
        with pytest.raises(SolvabilityError, match="rescale the units"):
            KKT(M, A).solve(force)
    else:
        alone = KKT(M, A).solve(force)
        assert alone.ok == s.ok[0]
        assert str(alone)
