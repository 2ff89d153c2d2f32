"""`dalembert graph` of odd files: a message that names the file and what is wrong, an exit code, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import called

HEAD = 'unknowns = ["x"]\n'
ONE = '[[equation]]\nname = "one"\ntext = "x = 1"\n'
MARKET = "%%MatrixMarket matrix coordinate pattern general\n"

TEXTS = {
    "empty": ("", "needs the key 'unknowns'"),
    "no equation": (HEAD, "needs the key 'equation'"),
    "empty list": (HEAD + "equation = []\n", "no equations"),
    "unknown key": (HEAD + "foo = 1\n" + ONE, "no key 'foo'"),
    "key of an equation": (HEAD + ONE + 'nmae = "a"\n', "no key 'nmae'; did you mean 'name'?"),
    "syntax": (HEAD + "[[equation]\n", ".toml:2: "),
    "key twice": (HEAD + HEAD + ONE, ".toml:2: "),
    "unknown twice": ('unknowns = ["x", "x"]\n' + ONE, "'x' is declared twice"),
    "known and unknown": (HEAD + 'known = ["x"]\n' + ONE, "'x' is declared twice"),
    "equation twice": (HEAD + ONE + ONE, "two equations are called 'one'"),
    "no name": ('unknowns = ["x y"]\n' + ONE, "'x y' cannot be a name"),
    "function as a name": ('unknowns = ["sin"]\n' + ONE, "'sin' cannot be a name"),
    "infinity": (HEAD + '[[equation]]\ntext = "x * 1e999 = 0"\n', "beyond any machine"),
    "division by zero": (HEAD + '[[equation]]\ntext = "x / 0 = 1"\n', "NaN or infinity"),
    "parameter of NaN": (HEAD + "parameters = { g = nan }\n" + ONE, "'g' is nan; it must be a finite number"),
    "constant": (HEAD + ONE + '[[equation]]\ntext = "1 = 2"\n', "contains no variable"),
    "output": (HEAD + ONE + 'output = "z"\n', "no variable is called 'z'"),
    "deep": (HEAD + f'[[equation]]\ntext = "{"(" * 500}x{")" * 500} = 1"\n', "nested"),
    "type": ('unknowns = "x"\n' + ONE, "'unknowns' must be a list"),
}

PATTERNS = {
    "nothing": ("", "not a MatrixMarket file"),
    "short": (MARKET + "2 2 3\n1 1\n", "Expected another 2 lines"),
    "outside": (MARKET + "2 2 1\n5 5\n", "Line 3"),
    "no rows": (MARKET + "0 0 0\n", "no equations"),
    "claims too much": (MARKET + "100000000 100000000 1\n1 1\n", "above the limit"),
}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("s.toml", *case) for case in TEXTS.values()] + [("p.mtx", *case) for case in PATTERNS.values()],
    ids=[*TEXTS, *PATTERNS],
)
def test_an_odd_file_is_named_with_what_is_wrong(tmp_path, capsys, name, text, words):
    path = tmp_path / name
    path.write_text(text)
    code, out, err = called("graph", str(path), capsys=capsys)
    assert (code, out) == (2, "")
    assert words in err
    assert str(path) in err.replace("\n", "")
    assert "Traceback" not in err
    assert len(err) < 700


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "picture.png"), "ends in .svg"),
        (("-o", "nowhere/picture.svg"), "folder"),
        (("--kind", "hologram"), "auto, graph or matrix"),
        (("--granularity", "products"), "--granularity is for robot files"),
        (("--known", "x"), "--known is for robot files"),
    ],
)
def test_options_that_cannot_be_obeyed_are_refused_at_once(tmp_path, capsys, options, words):
    path = tmp_path / "s.toml"
    path.write_text(HEAD + ONE)
    code, out, err = called("graph", str(path), *options, capsys=capsys)
    assert (code, out, words in err) == (2, "", True)


def test_the_file_of_the_manual_is_a_pendulum(tmp_path, capsys):
    manual = (Path(__file__).parents[2] / "docs" / "tableau.md").read_text()
    path = tmp_path / "pendulum.toml"
    path.write_text(manual.split("```toml\n")[1].split("```")[0])
    code, out, _ = called("graph", str(path), "-o", str(tmp_path / "p.svg"), capsys=capsys)
    assert (code, "structural index 3, 2 degrees of freedom" in out) == (0, True)


def test_a_large_misfit_is_drawn_and_conditions_are_told(tmp_path, capsys):
    path, picture = tmp_path / "p.mtx", tmp_path / "p.svg"
    path.write_text(MARKET + "200 201 200\n" + "".join(f"{k} {k}\n" for k in range(1, 201)))
    code, out, _ = called("graph", str(path), "-o", str(picture), capsys=capsys)
    assert (code, "'unknown 200' is in no equation" in out) == (1, True)
    assert "too few equations" in picture.read_text()
    path = tmp_path / "s.toml"
    path.write_text('known = ["u"]\n' + HEAD + ONE + '[[equation]]\nname = "given"\ntext = "u = 1"\n')
    code, out, _ = called("graph", str(path), capsys=capsys)
    assert (code, "conditions on known data: 'given'" in out) == (0, True)
