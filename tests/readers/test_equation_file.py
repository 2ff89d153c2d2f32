"""Equations and patterns from files: what is read, and every refusal with its reason."""

import casadi as ca
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from dalembert.errors import ModelError, UnsupportedError
from dalembert.readers.equation_file import FUNCTIONS, parse_equation, read_equations, read_pattern

X, Y = 0.7, -1.3


def value(text: str) -> float:
    """Evaluate a text with x = 0.7, y = -1.3, x' = 2."""
    symbols = {"x": ca.SX(X), "y": ca.SX(Y), "x'": ca.SX(2.0)}
    return float(parse_equation(text, symbols.__getitem__))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 2*y", X + 2 * Y),
        ("-x^2", -(X**2)),
        ("2^-1", 0.5),
        ("2^3^2", 512.0),
        ("x**2 = y", X**2 - Y),
        ("1.5e-3*x/3/2", 1.5e-3 * X / 6),
        ("x - y - 1", X - Y - 1),
        ("--x", X),
        ("x' + der(x)", 4.0),
        ("atan2(y, x)", np.arctan2(Y, X)),
        ("max(x, y) * min(x, y)", X * Y),
        ("sqrt(abs(y)) + sin(cos(x))", np.sqrt(-Y) + np.sin(np.cos(X))),
        (".5", 0.5),
    ],
)
def test_texts_mean_what_they_say(text, expected):
    assert value(text) == pytest.approx(expected, rel=1e-15)


@given(
    st.recursive(
        st.sampled_from(["x", "y", "2", "0.5"]),
        lambda e: st.tuples(e, st.sampled_from("+-*/"), e).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        max_leaves=8,
    )
)
def test_arithmetic_agrees_with_python(text):
    """Python's own reading of the same arithmetic is the oracle."""
    try:
        expected = eval(text, {"__builtins__": {}}, {"x": X, "y": Y})
    except ZeroDivisionError:
        return
    assert value(text) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x +", "ends too early"),
        ("x y", "unexpected 'y'"),
        ("(x", "expected '\\)'"),
        ("x = y = 1", "unexpected '='"),
        ("foo(x)", "no function is called 'foo'"),
        ("__import__('os')", "no number, name or operator"),
        ("sin(x, y)", "takes 1"),
        ("x ; y", "no number, name"),
        ("", "ends too early"),
        ("(" * 300 + "x" + ")" * 300, "deeper"),
        ("x" * 30_000, "characters"),
    ],
)
def test_texts_that_are_refused(text, words):
    with pytest.raises(ModelError, match=words):
        parse_equation(text, lambda name: ca.SX(1.0))


def test_every_function_has_its_arguments():
    for name, (count, _) in FUNCTIONS.items():
        assert np.isfinite(value(f"{name}({', '.join(['0.3'] * count)})"))


PENDULUM = """
unknowns = ["x", "y", "u", "v", "lam"]
parameters = { g = 9.81 }
equation = [
  { name = "rate of x", text = "x' = u" },
  { name = "rate of y", text = "y' = v" },
  { name = "force x", text = "u' = -lam*x" },
  { name = "force y", text = "v' = -lam*y - g" },
  { name = "rod", text = "x^2 + y^2 = 1", output = "y" },
]
"""


def write(tmp_path, text: str, name: str = "system.toml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_equations(tmp_path):
    system = read_equations(write(tmp_path, PENDULUM))
    assert list(system.equations) == ["rate of x", "rate of y", "force x", "force y", "rod"]
    assert set(system.rates) == {"x", "y", "u", "v"}
    assert system.outputs == {"rod": "y"}
    assert system.parameters["g"][1] == 9.81


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lam*x", "lambda*x", "equation 'force x': .*'lambda'"),
        ("-lam*x", "lamm*x", "did you mean 'lam'"),
        ("x' = u", "x'' = u", "higher derivatives"),
        ("y' = v", "g' = v", "only unknown and known"),
        ('name = "rod"', 'name = "force x"', "two equations"),
        ('"lam"]', '"lam", "g"]', "declared twice"),
        ("unknowns", "unknown", "unknown"),
    ],
)
def test_files_that_are_refused(tmp_path, old, new, words):
    assert old in PENDULUM
    path = write(tmp_path, PENDULUM.replace(old, new))
    with pytest.raises(ModelError, match=words) as raised:
        read_equations(path)
    assert "system.toml" in str(raised.value)


def test_wrong_and_missing_files(tmp_path):
    with pytest.raises(UnsupportedError):
        read_equations(tmp_path / "system.yaml")
    with pytest.raises(ModelError, match="cannot be read"):
        read_equations(tmp_path / "none.toml")
    with pytest.raises(ModelError, match="MatrixMarket"):
        read_pattern(write(tmp_path, "nothing", "a.mtx"))


def test_patterns_from_matrix_market(tmp_path):
    A = sp.random_array((7, 5), density=0.3, rng=np.random.default_rng(0))
    scipy.io.mmwrite(tmp_path / "a.mtx", A)
    assert ((read_pattern(tmp_path / "a.mtx").toarray() != 0) == (A.toarray() != 0)).all()
