"""Settings that every test shares: checked shape annotations, profiles of hypothesis, plots without a screen."""

from __future__ import annotations

import ast
import builtins
import os
import signal
import threading
from importlib.util import find_spec
from pathlib import Path

import jaxtyping
from hypothesis import HealthCheck, settings
from jaxtyping import Bool, Complex, Float, Int, install_import_hook
from jaxtyping import _import_hook as import_hook
from jaxtyping._import_hook import JaxtypingTransformer

from tests import shape_checks

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("DALEMBERT_OPTIMIZE", "0")  # most kernels of the tests run a few times; the bits are the same

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background; some tests press Ctrl-C

# Shape annotations are for checkers: files between a robot file and a cached kernel do not import jaxtyping, which
# takes as long as NumPy. The checker of the tests finds the names among the builtins.
for _kind in (Bool, Complex, Float, Int):
    setattr(builtins, _kind.__name__, _kind)

POLICIES = {"compiled", "fused", "fused_allocating", "fused_steady", "inlined", "inner", "once", "pasted", "reordered"}
COMPILED = POLICIES | {"reordered_steady", "steady", "loop", "njit", "intrinsic", "overload", "register_jitable"}
"""Decorators of functions that Numba compiles: a wrapped one would not compile, so these are left as they are."""


SHAPES = ("Float[", "Int[", "Bool[")
"""How annotations with shapes begin."""


class CheckedFunctions(JaxtypingTransformer):
    """Shape checks around functions and fields with shapes, but for functions that Numba compiles.

    A wrapped call binds its arguments to their names, which takes longer than most functions: the others are left as
    they are.
    """

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        marks = (mark.func if isinstance(mark, ast.Call) else mark for mark in node.decorator_list)
        if any(getattr(mark, "id", getattr(mark, "attr", "")) in COMPILED for mark in marks):
            return node
        values = node.args
        arguments = [*values.posonlyargs, *values.args, *values.kwonlyargs, values.vararg, values.kwarg]
        if has_shapes([node.returns, *(each.annotation for each in arguments if each is not None)]):
            return super().visit_FunctionDef(node)
        return self.visit_inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if has_shapes([each.annotation for each in node.body if isinstance(each, ast.AnnAssign)]):
            return super().visit_ClassDef(node)
        return self.visit_inside(node)

    def visit_inside(self, node: ast.FunctionDef | ast.ClassDef) -> ast.AST:
        """Leave a node as it is, and visit what it holds."""
        self._parents.append(node)
        self.generic_visit(node)
        self._parents.pop()
        return node


def has_shapes(annotations: list[ast.expr | None]) -> bool:
    """Return whether an annotation carries a shape."""
    return any(word in ast.unparse(each) for each in annotations if each is not None for word in SHAPES)


import_hook.JaxtypingTransformer = CheckedFunctions
jaxtyping.jaxtyped = shape_checks.checked_once  # what the hook writes above functions and classes


def checked_modules() -> list[str]:
    """Return every module of dalembert that has shapes to check, found without importing the package."""
    spec = find_spec("dalembert")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    files = [path for path in root.rglob("*.py") if path.stem != "__init__" and "jaxtyping" in path.read_text()]
    return sorted({".".join(path.relative_to(root.parent).with_suffix("").parts) for path in files})


# Before the first import of dalembert, so that every shape annotation is a test of its own.  Packages are left out: the
# hook would take all their files with them.
install_import_hook(checked_modules(), "tests.shape_checks.checked")

# No deadline: the first example of a process may compile the batch kernel.
# "dev" and "ci" try the same examples every time; "explore" looks for new ones, many, for whoever wants to find bugs.
quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=25, derandomize=True, **quiet)
settings.register_profile("ci", max_examples=20, derandomize=True, **quiet)
settings.register_profile("explore", max_examples=2000, **quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
