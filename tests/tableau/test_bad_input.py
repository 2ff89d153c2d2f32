"""What users get wrong: every public function refuses it by an error of ours that says what; nothing is ignored."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import scipy.sparse as sp

import dalembert as da
from dalembert.errors import DalembertError, ModelError, ShapeError, UnsupportedError
from dalembert.examples import stanford_arm
from dalembert.tableau import (
    DiracStructure,
    ElementAssembly,
    Elimination,
    NewtonStep,
    Pattern,
    Tableau,
    body_positions,
    connection_split,
    coordinates,
    eliminate,
    implicit_lagrangian,
    least_norm,
    make_plan,
    maximal,
    newton_euler,
    rank_report,
    reduce_index,
    redundant_rows,
    signature,
    structure,
    without_rows,
)
from dalembert.tableau.mechanics.welded import welded

x, y, u, p, t, x_dot = (ca.SX.sym(name) for name in ("x", "y", "u", "p", "t", "x_dot"))
X = ca.SX.sym("X", 3)
CHAIN = Tableau({"a": X[0] - u, "b": X[1] - 2 * X[0], "c": X[2] - X[1]}, {"X": X, "u": u}, known=["u"])
GIVEN = CHAIN.with_known(["X"])
TIMED = Tableau({"a": p * x - t}, [x], time=t, parameters={"p": (p, 2.0)})
RATE = Tableau({"r": x_dot - y, "c": x - u}, [x, y, u], rates={"x": x_dot}, known=["u"])
SOLVER = eliminate(np.ones((2, 2)), engine="loop")
SPLIT = connection_split([[1.0, 1.0, 0.0]])
DIRAC = DiracStructure.of([[1.0, 1.0, 0.0]])
SQUARE = ca.Function("f", [x], [x**2 - 2])
STEP = CHAIN.newton()


def pendulum(body: str = "rod", joint: str = "hinge"):
    b = da.Builder("pendulum")
    b.body(body, mass=1.0, center=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.joint(joint, "revolute", parent="world", child=body, axis=(0, 1, 0))
    return b.build()


ROD = pendulum()
BODIES = maximal(ROD)
PLACE = body_positions(ROD, [0.3])
ASSEMBLY = ElementAssembly(ROD)
NOWHERE = np.zeros(ASSEMBLY.n)


NONSENSE = {
    "None": None,
    "text": "foo",
    "complex": 1 + 2j,
    "texts": ["a"],
    "three axes": np.ones((2, 2, 2)),
    "object": object(),
    "SX": ca.SX.sym("k"),
    "MX": ca.MX.sym("k"),
    "sparse": sp.eye_array(5),
    "ragged": [[1, 2], [3]],
    "function": len,
    "bytes": b"x",
    "nan": np.nan,
}
"""Values that are neither numbers of any shape asked for here, nor symbols that belong here."""

TAKES = {
    "equations": lambda v: Tableau(v, [x]),
    "equation": lambda v: Tableau({"a": v}, [x]),
    "variables": lambda v: Tableau({"a": x}, v),
    "variable": lambda v: Tableau({"a": x}, {"x": v}),
    "known": lambda v: Tableau({"a": x - u}, [x, u], known=v),
    "known name": lambda v: Tableau({"a": x - u}, [x, u], known=[v]),
    "output": lambda v: Tableau({"a": x - u}, [x, u], known=["u"], outputs={"a": v}),
    "solve known": CHAIN.solve,
    "solve value": lambda v: CHAIN.solve({"u": v}),
    "solve guess": lambda v: CHAIN.solve({"u": 1.0}, guess="foo" if v is None else v),
    "solve t": lambda v: TIMED.solve({}, t=v),
    "solve tolerance": lambda v: CHAIN.solve({"u": 1.0}, tolerance=v),
    "solve limit": lambda v: CHAIN.solve({"u": 1.0}, limit=v),
    "with_known": CHAIN.with_known,
    "rank points": lambda v: CHAIN.rank(points=v),
    "rank value": lambda v: CHAIN.rank(values={"u": v}),
    "rank shift": lambda v: RATE.rank(shift=v),
    "step": lambda v: STEP.step(v, [1.0]),
    "picture": lambda v: CHAIN.picture(v),
    "reduce_index": reduce_index,
    "reduce_index value": lambda v: reduce_index(RATE, {"x": v}),
    "signature": signature,
    "matrix values": lambda v: Pattern.of(np.eye(2)).matrix("foo" if v is None else v),
    "rank_report values": lambda v: rank_report(np.eye(2), v),
    "preferred": lambda v: make_plan(np.ones((2, 2)), preferred=v),
    "threshold": lambda v: make_plan(np.ones((2, 2)), threshold=v),
    "paired": lambda v: make_plan(np.ones((2, 2)), paired=v),
    "engine": lambda v: eliminate(np.ones((2, 2)), engine=v),
    "Elimination": Elimination,
    "elimination values": lambda v: SOLVER.solve(v, [1.0, 2.0]),
    "elimination right": lambda v: SOLVER.solve([1.0, 2.0, 3.0, 5.0], v),
    "NewtonStep": NewtonStep,
    "NewtonStep points": lambda v: NewtonStep(SQUARE, points="foo" if v is None else v),
    "NewtonStep checks": lambda v: NewtonStep(SQUARE, checks=v),
    "split independent": lambda v: connection_split([[1.0, 1.0, 0.0]], "foo" if v is None else v),
    "split dual": SPLIT.dual,
    "Dirac system": lambda v: DiracStructure.at(v, [0.0]),
    "Dirac residual": lambda v: DIRAC.residual_I(v, v, v, v),
    "Dirac pairing": lambda v: DIRAC.pairing(v, v),
    "welded": welded,
    "newton_euler": newton_euler,
    "maximal": maximal,
    "ElementAssembly": ElementAssembly,
    "ElementAssembly x": lambda v: ASSEMBLY.residual(v, NOWHERE),
    "ElementAssembly shift": lambda v: ASSEMBLY.jacobian(NOWHERE, NOWHERE, shift=v),
    "implicit_lagrangian": implicit_lagrangian,
    "granularity": lambda v: newton_euler(ROD, v),
    "level": lambda v: newton_euler(ROD, level=v),
    "reading": stanford_arm,
    "coordinates": lambda v: coordinates(ROD, v),
    "body_positions": lambda v: body_positions(ROD, v),
    "redundant_rows": lambda v: redundant_rows(BODIES, v),
    "redundant_rows of": lambda v: redundant_rows(v, PLACE),
    "without_rows": lambda v: without_rows(BODIES, v),
    "least_norm": lambda v: least_norm(BODIES, PLACE, {"lam hinge[0]": v}),
    "coordinates of": lambda v: coordinates(v, [0.0]),
    "body_positions of": lambda v: body_positions(v, [0.0]),
}
"""Every place that takes something, with a call that puts a value there."""


@pytest.mark.parametrize("place", TAKES)
def test_nonsense_is_an_error_of_ours(place):
    for value in NONSENSE.values():
        with pytest.raises(DalembertError, match=r"\w+.* \w+"):
            TAKES[place](value)


REFUSED = {
    "no equations": (lambda: Tableau({}, [x]), ModelError, "no equations"),
    "empty equation": (lambda: Tableau({"a": ca.SX(0, 1)}, [x]), ModelError, "'a' is empty"),
    "empty name": (lambda: Tableau({" ": x}, [x]), ModelError, "name of an equation"),
    "numbered variable": (lambda: Tableau({"a": x}, {3: x}), ModelError, "string"),
    "symbol of time": (lambda: Tableau({"a": x - t}, [x, t], time=t), ModelError, "variable .* and belongs to time"),
    "two times": (lambda: Tableau({"a": x - t}, [x], time=[t, p]), ShapeError, "one symbol"),
    "parameter as variable": (lambda: Tableau({"a": x - p}, [x, p], parameters={"p": p}), ModelError, "parameters"),
    "parameter without value": (
        lambda: Tableau({"a": x - p}, [x], parameters={"p": (p, np.nan)}), ModelError, "'p' is not finite",
    ),
    "another x": (lambda: Tableau({"a": ca.SX.sym("x") - x}, [x]), ModelError, "another symbol of that name"),
    "output of no equation": (
        lambda: Tableau({"sum": x - u}, [x, u], known=["u"], outputs={"sun": "x"}), ModelError, "did you mean 'sum'",
    ),
    "given twice": (lambda: GIVEN.solve({"X": [1, 2, 2], "X[0]": 3}), ModelError, r"'X\[0\]' is given twice"),
    "sampled twice": (lambda: CHAIN.rank(values={"X": [1, 2, 2], "X[0]": 3}), ModelError, "given twice"),
    "misspelt known": (lambda: CHAIN.solve({"uu": 1.0}), ModelError, "'uu'; did you mean 'u'"),
    "misspelt value": (lambda: CHAIN.rank(values={"uu": 1.0}), ModelError, "'uu'; did you mean 'u'"),
    "misspelt guess": (lambda: CHAIN.solve({"u": 1.0}, guess={"Y": 1.0}), ModelError, "'Y'"),
    "guess of known": (lambda: CHAIN.solve({"u": 1.0}, guess={"u": 1.0}), ModelError, "'u' is not unknown"),
    "misspelt rate": (lambda: reduce_index(RATE, {"xx'": 1.0}), ModelError, "'xx'; did you mean 'x'"),
    "rate that is not there": (lambda: CHAIN.rank(values={"u'": 1.0}), ModelError, "do not contain"),
    "derivative too high": (lambda: reduce_index(RATE, {"y''": 1.0}), ModelError, "do not contain"),
    "two sample points": (lambda: reduce_index(RATE, {"u": [1.0, 2.0]}), ShapeError, "one sample point"),
    "sample at infinity": (
        lambda: reduce_index(Tableau({"a": ca.sqrt(x) - x_dot}, [x], rates={"x": x_dot}), {"x": -1.0}).tableau
        and reduce_index(Tableau({"a": ca.sqrt(x) - 1}, [x]), {"x": -1.0}), ModelError, "not finite",
    ),
    "misspelt parameter": (lambda: TIMED.solve({}, parameters={"q": 1.0}), ModelError, "'q'"),
    "parameters of none": (lambda: CHAIN.solve({"u": 1.0}, parameters=[1.0]), ModelError, "no parameters"),
    "lengths": (lambda: TIMED.solve({}, t=[1.0, 2.0], parameters={"p": [1.0, 2.0, 3.0]}), ShapeError, "t 2, par"),
    "guess too short": (lambda: CHAIN.solve({"u": 1.0}, guess=[1.0, 2.0]), ShapeError, r"\(3,\)"),
    "steps of others": (lambda: CHAIN.solve({"u": 1.0}, newton=TIMED.newton()), ModelError, "other equations"),
    "no points": (lambda: CHAIN.rank(points=0), ModelError, "at least 1"),
    "values as a number": (lambda: CHAIN.rank(values=0), ModelError, "mapping"),
    "option of no kind": (lambda: CHAIN.newton(foo=1), ModelError, "'foo' is no option"),
    "plan option": (lambda: eliminate(np.eye(2), thresold=0.1), ModelError, "did you mean 'threshold'"),
    "threshold of 7": (lambda: make_plan(np.eye(2), threshold=7.0), ModelError, "between"),
    "pair outside": (lambda: make_plan(np.eye(2), preferred=[(99, 0)]), ModelError, "outside 2 equations"),
    "pair below": (lambda: make_plan(np.eye(2), preferred=[(-1, 0)]), ModelError, "outside"),
    "values as a matrix": (lambda: make_plan(np.ones((3, 3)), values=np.ones((3, 3))), ShapeError, "row after row"),
    "another pattern": (lambda: SOLVER.solve(sp.eye_array(2, format="csr"), [1.0, 2.0]), ShapeError, "pattern"),
    "rank of NaN": (lambda: rank_report(np.eye(2), [1.0, np.nan]), ModelError, "'equation 1'"),
    "rank at no point": (lambda: rank_report(np.eye(2), np.empty((0, 2))), ShapeError, "expected"),
    "points per input": (lambda: NewtonStep(SQUARE, points=[[1.0], [2.0]]), ShapeError, "one array per input"),
    "no formula": (
        lambda: NewtonStep(ca.Function("f", [m := ca.MX.sym("m", 2)], [ca.solve(ca.MX(np.eye(2)), m, "ldl")])),
        UnsupportedError, "SX",
    ),
    "no input": (lambda: eliminate(ca.Function("f", [], [ca.SX(1)])), ModelError, "input"),
    "large jacobian": (
        lambda: NewtonStep(SQUARE, jacobian=ca.Function("J", [x], [ca.SX.ones(2, 2)])), ShapeError, "1 x 1",
    ),
    "floats as indices": (lambda: connection_split([[1.0, 1.0, 0.0]], [0.0, 2.0]), ModelError, "whole numbers"),
    "indices without rows": (lambda: connection_split(np.empty((0, 3)), [0]), ModelError, "1 independent"),
    "seven forces": (lambda: SPLIT.dual(np.ones(7)), ShapeError, "one per velocity"),
    "mechanism as Lagrangian": (lambda: implicit_lagrangian(ROD), UnsupportedError, "newton_euler.*maximal"),
    "two configurations": (lambda: body_positions(ROD, [[0.1], [0.2]]), ShapeError, "one configuration"),
    "misspelt body": (lambda: redundant_rows(BODIES, {**PLACE, "p rood": [0, 0, 0]}), ModelError, "'p rod'"),
    "a file in place of a mechanism": (lambda: newton_euler("arm.urdf"), ModelError, "not from str; da.load"),
    "an arm that is no mechanism": (lambda: maximal([ROD]), ModelError, "made from a Mechanism.*not from list"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_named(case):
    call, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        call()


def test_names_of_all_kinds_are_found():
    brackets = Tableau({"a": x - 1, "b": y - x}, {"q[0]": x, "q": y}, outputs={"b": "q"})
    assert brackets.solve({})["q"] == brackets.solve({})["q[0]"] == 1.0
    primed = Tableau({"a": x - u}, {"x": x, "u'": u}, known=["u'"])
    assert primed.solve({"u'": 3.0})["x"] == 3.0
    mechanism = pendulum("rod[1]", "joint[1]")
    tableau = maximal(mechanism)
    assert redundant_rows(tableau, body_positions(mechanism, [0.2])) == ()
    assert without_rows(tableau, ["joint joint[1][0]"]).structure().pattern.shape == (18, 18)


def test_what_belongs_together_is_taken_together():
    np.testing.assert_allclose(TIMED.solve({}, t=[1.0, 2.0], parameters={"p": [[1.0], [4.0]]})["x"], [1.0, 0.5])
    np.testing.assert_allclose(CHAIN.solve({"u": ca.DM([1, 2])}, guess={"X": [1, 2, 3]})["X[1]"], [2.0, 4.0])
    A = sp.csc_array(np.array([[1.0, 2.0], [3.0, 5.0]]))
    np.testing.assert_allclose(SOLVER.solve(A, [1.0, 2.0]).x, [-1.0, 1.0])
    assert CHAIN.rank(values={"u": [1.0, 2.0]}).points == 2
    assert TIMED.rank(values={"t": 1.0, "p": 3.0}).full
    assert not TIMED.rank(values={"p": 0.0}).full
    np.testing.assert_allclose(SPLIT.dual(np.ones((4, 3))), np.tile([0.0, 1.0], (4, 1)))


def test_a_large_matrix_of_zeros_is_singular():
    n = 1300
    A = sp.csr_array(sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]))
    report = rank_report(A, 0.0 * A.data)
    assert not report.full
    assert len(str(report)) < 4000


def test_structure_takes_symbolic_matrices():
    assert structure(ca.SX.eye(3)).solvable
    assert structure(Pattern.of(np.eye(2)), equations=["a", "b"]).pattern.equations == ("a", "b")
