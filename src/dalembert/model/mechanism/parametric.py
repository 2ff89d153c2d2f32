"""Parameters of a mechanism: masses, lengths, springs that stay symbols, so that kernels take them as inputs.

A name is a kind and a part, "mass:load": what may vary is in the table `PARAMETER_KINDS`, each with its size, its value
in the model, and the model with another value. How a prepared tree gets the symbols is `tree/prepared/symbolic.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError, UnsupportedError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.model.mechanism.parts import Body, Joint
from dalembert.model.mechanism.placement import Placement
from dalembert.model.mechanism.tree_text import content_key
from dalembert.names import lookup, near_matches
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.kernel import Kernel
    from dalembert.model.parameters import Parameters

TAKE_PARAMETERS = (
    "forward", "inverse", "mass_matrix", "coriolis_matrix", "bias", "gravity", "energy", "kinematics", "constraint",
    "constraint_velocity", "constraint_jacobian", "constraint_drift", "impact", "forward_derivatives",
    "inverse_derivatives", "impact_derivatives", "project_step", "project_velocity",
)  # fmt: skip
"""Requests that take parameters; being here is being tested."""


# ----------------------------------------------------------------------------------------------------------------------
# What may vary.


@dataclass(frozen=True)
class ParameterKind:
    """One kind of parameter.

    Attributes
    ----------
    size
        How many numbers it is.
    value
        value(mechanism, part) returns them as the model has them; a part that has none is refused by name.
    changed
        changed(mechanism, part, numbers) returns the mechanism with others.
    """

    size: int
    value: Callable[[Mechanism, str], Any]
    changed: Callable[[Mechanism, str, Array], Mechanism]


def _mass(mechanism: Mechanism, part: str) -> Any:
    return _body(mechanism, part).mass


def moving_body(mechanism: Mechanism, part: str) -> Body:
    """Return a body by name; the ground is refused."""
    if part == mechanism.ground:
        raise ModelError(f"{part!r} is the ground: it has no inertia that could vary")
    return mechanism.body(part)


def _body(mechanism: Mechanism, part: str) -> Inertia:
    body = moving_body(mechanism, part)
    if body.compensation:
        raise UnsupportedError(f"the weight of {part!r} is held up in part: its inertia does not vary")
    return body.inertia


def _with_inertia(mechanism: Mechanism, part: str, inertia: Inertia) -> Mechanism:
    bodies = tuple(replace(body, inertia=inertia) if body.name == part else body for body in mechanism.bodies)
    return replace(mechanism, bodies=bodies)


def _with_mass(mechanism: Mechanism, part: str, x: Array) -> Mechanism:
    return _with_inertia(mechanism, part, replace(mechanism.body(part).inertia, mass=float(x[0])))


def place_of(mechanism: Mechanism, part: str) -> Placement:
    """Return where a joint or a named frame stands on its body; others have no place that could vary."""
    if part in mechanism._joint_index:
        joint = mechanism.joint(part)
        if joint.kind == "fixed":
            raise UnsupportedError(f"joint {part!r} is a weld, whose bodies are one: name a frame instead")
        return joint.placement
    named = {frame.name: frame for frame in mechanism.frames}
    return lookup(part, named, "joint or frame").placement


def _unmoved(mechanism: Mechanism, part: str) -> Array:
    place_of(mechanism, part)
    return np.zeros(6)


def _length(mechanism: Mechanism, part: str) -> float:
    length = float(np.linalg.norm(place_of(mechanism, part).position))
    if length == 0.0:
        raise ModelError(
            f"{part!r} stands at the origin of its body: a length needs a direction; name 'position:{part}'"
        )
    return length


def _with_position(mechanism: Mechanism, part: str, x: Array) -> Mechanism:
    return _with_placement(mechanism, part, lambda old: Placement(old.rotation, np.asarray(x, dtype=float)))


def _with_placement(mechanism: Mechanism, part: str, moved: Callable[[Placement], Placement]) -> Mechanism:
    if part in mechanism._joint_index:
        joints = tuple(replace(j, placement=moved(j.placement)) if j.name == part else j for j in mechanism.joints)
        return replace(mechanism, joints=joints)
    frames = tuple(replace(f, placement=moved(f.placement)) if f.name == part else f for f in mechanism.frames)
    return replace(mechanism, frames=frames)


def _with_geometry(mechanism: Mechanism, part: str, x: Array) -> Mechanism:
    """Return the mechanism with a joint or frame slid by x[:3] along its axes, then turned about them by x[3:]."""

    def moved(old: Placement) -> Placement:
        turns = Placement(np.eye(3), np.asarray(x[:3], dtype=float))
        for k in range(3):
            turns = turns @ Placement.from_rpy(tuple(float(x[3 + k]) if i == k else 0.0 for i in range(3)), (0, 0, 0))
        return old @ turns

    return _with_placement(mechanism, part, moved)


def _with_length(mechanism: Mechanism, part: str, x: Array) -> Mechanism:
    position = place_of(mechanism, part).position
    return _with_position(mechanism, part, float(x[0]) * position / np.linalg.norm(position))


def single_joint(mechanism: Mechanism, part: str) -> Joint:
    """Return a joint with one velocity; others have no single number of a kind."""
    joint = mechanism.joint(part)
    if KINDS[joint.kind].nv != 1:
        raise UnsupportedError(
            f"joint {part!r} has {KINDS[joint.kind].nv} velocities: its springs and dampers do not vary"
        )
    return joint


NOT_NEGATIVE = ("damping", "armature")
"""Numbers of joints that make energy, or a motion without mass, below zero."""


def _of_joint(word: str) -> ParameterKind:
    def value(mechanism: Mechanism, part: str) -> float:
        if not mechanism.passive and word != "armature":
            raise UnsupportedError(f"springs and dampers of {mechanism.name!r} do not act (passive=False)")
        if word != "armature" and any(spring.name == part for spring in mechanism.springs):
            return getattr(next(spring for spring in mechanism.springs if spring.name == part), word)
        return float((getattr(single_joint(mechanism, part), word) or (0.0,))[0])

    def changed(mechanism: Mechanism, part: str, x: Array) -> Mechanism:
        number = float(x[0])
        if word in NOT_NEGATIVE and not number >= 0.0:
            raise ModelError(f"{word}:{part} = {number:g}: it must not be negative", subject=f"{word}:{part}")
        if any(spring.name == part for spring in mechanism.springs):
            springs = tuple(replace(s, **{word: number}) if s.name == part else s for s in mechanism.springs)
            return replace(mechanism, springs=springs)
        joints = tuple(replace(j, **{word: (number,)}) if j.name == part else j for j in mechanism.joints)
        return replace(mechanism, joints=joints)

    return ParameterKind(1, value, changed)


def _spring_rest(mechanism: Mechanism, part: str) -> float:
    return lookup(part, {spring.name: spring for spring in mechanism.springs}, "spring").rest


PARAMETER_KINDS: dict[str, ParameterKind] = {
    "mass": ParameterKind(1, _mass, _with_mass),
    "inertia": ParameterKind(
        10,
        lambda mechanism, part: _body(mechanism, part).numbers(),
        lambda mechanism, part, x: _with_inertia(mechanism, part, Inertia.of_numbers(x)),
    ),
    "length": ParameterKind(1, _length, _with_length),
    "position": ParameterKind(3, lambda mechanism, part: place_of(mechanism, part).position, _with_position),
    "geometry": ParameterKind(6, _unmoved, _with_geometry),
    "stiffness": _of_joint("stiffness"),
    "damping": _of_joint("damping"),
    "armature": _of_joint("armature"),
    "rest": ParameterKind(1, _spring_rest, _of_joint("rest").changed),
}
"""Kinds of parameters. A mass varies with centre and moments about it held; a length is the distance of a joint or
frame from the origin of the body that it is on, its direction held; moments of "inertia" are about the body's origin;
"geometry" displaces a joint or frame from where it stands: three slides along its own axes, then turns about x, y and
z, so that a derivative at zero is that by the placement's tangent [linear; angular].
"""


def split_name(name: Any) -> tuple[str, str]:
    """Return kind and part of a parameter's name, or say what a name looks like."""
    kind, colon, part = str(name).partition(":")
    if not isinstance(name, str) or not colon or kind not in PARAMETER_KINDS:
        kinds = ", ".join(f"'{kind}:...'" for kind in PARAMETER_KINDS)
        raise ModelError(f"{name!r} names no parameter; there is {kinds}", near=near_matches(kind, PARAMETER_KINDS))
    return kind, part


# ----------------------------------------------------------------------------------------------------------------------
# A mechanism with parameters.


@dataclass(frozen=True, eq=False, repr=False)
class SymbolicMechanism(Mechanism):
    """A mechanism whose traces have symbols for some of its numbers; kernels take them as their last input."""

    symbolic: tuple[str, ...] = ()

    @classmethod
    def of(cls, mechanism: Mechanism, names: Sequence[str]) -> SymbolicMechanism:
        """Make symbols of the parameters of these names."""
        parts = {part.name: getattr(mechanism, part.name) for part in fields(Mechanism)}
        return cls(**parts, symbolic=tuple(names))

    @cached_property
    def parameters(self) -> Parameters:
        """The symbols, with the values of the model as their defaults."""
        import casadi as ca

        from dalembert.model.parameters import Parameters

        symbols = {}
        for number, name in enumerate(self.symbolic):
            kind, part = split_name(name)
            number_kind = PARAMETER_KINDS[kind]
            symbols[name] = (ca.SX.sym(f"p{number}", number_kind.size), number_kind.value(self, part))
        return Parameters.of(symbols)

    @property
    def parameter_column(self) -> Any:
        """All symbols in one column."""
        return self.parameters.column

    @cached_property
    def _content(self) -> str:
        return content_key(super()._content, self.symbolic)


class BoundKernel:
    """A kernel whose last input, the parameters, has its values; all else is the kernel's."""

    def __init__(self, kernel: Kernel, values: Array) -> None:
        self.kernel, self.values, self._before = kernel, values, len(kernel.inputs) - 1

    def _all(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return inputs with the parameters, and with the time where it is left off."""
        time = (np.zeros(1),) if len(inputs) == self._before - 1 else ()
        return (*inputs, *time, self.values)

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        """Return one array per output, as a kernel does."""
        return self.kernel(*self._all(inputs), out=out)

    def call(self, *inputs: Any, out: Any = None) -> Any:
        """Return all outputs and the status of every sample."""
        return self.kernel.call(*self._all(inputs), out=out)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


@dataclass(frozen=True, eq=False, repr=False)
class BoundMechanism(Mechanism):
    """A mechanism with other numbers that shares the kernels of all numbers: values are an input of theirs.

    Attributes
    ----------
    nominal
        What the kernels are traced from: it alone decides their code, whatever the values.
    values
        Of its parameters.
    stamp
        Content of this mechanism when it was made; one that was changed since has kernels of its own.
    """

    nominal: SymbolicMechanism | None = None
    values: tuple[float, ...] = ()
    stamp: str = ""

    @property
    def shared(self) -> SymbolicMechanism | None:
        """What the kernels are traced from, where nothing else was changed."""
        return self.nominal if self._content == self.stamp else None

    def compile(self, what: str = "forward", **options: Any) -> Kernel:
        """Return a kernel that has the values, made once for all of them; requests without parameters their own."""
        nominal = self.shared
        if nominal is None or what not in TAKE_PARAMETERS:
            return super().compile(what, **options)
        kernel = nominal.compile(what, **options)
        return BoundKernel(kernel, np.array(self.values))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False, repr=False)
class ParametricMechanism:
    """A mechanism of which some numbers stay open: `compile` gives kernels that take them as their last input.

    Attributes
    ----------
    mechanism
        The mechanism with the numbers of the model.
    names
        The parameters, in the order of `parameters`.
    """

    mechanism: Mechanism
    names: tuple[str, ...]

    @classmethod
    def of(cls, mechanism: Mechanism, names: Sequence[str]) -> ParametricMechanism:
        """Check the names."""
        if not names or len(set(names)) < len(names):
            raise ModelError(
                "with_parameters takes the names of parameters, each once: 'mass:load', 'length:crank', ..."
            )
        for name in names:
            kind, part = split_name(name)
            PARAMETER_KINDS[kind].value(mechanism, part)
            whole = {"mass": ("inertia",), "length": ("position", "geometry"), "position": ("geometry",)}
            if any(f"{other}:{part}" in names for other in whole.get(kind, ())):
                raise ModelError(f"{name!r} is part of another parameter that is named: leave one of them off")
        return cls(mechanism, tuple(names))

    @cached_property
    def _symbolic(self) -> SymbolicMechanism:
        return SymbolicMechanism.of(self.mechanism, self.names)

    @property
    def parameters(self) -> Parameters:
        """Names and values: `parameters.pack({"mass:load": 2.0})` is the input of a kernel, others as in the model."""
        return self._symbolic.parameters

    def compile(self, what: str = "forward", **options: Any) -> Kernel:
        """Return a kernel of `Mechanism.compile` with the parameters (k,) as one more input, the last."""
        if what not in TAKE_PARAMETERS:
            raise UnsupportedError(
                f"{what!r} takes no parameters; there is {', '.join(map(repr, TAKE_PARAMETERS))}; at(...) has all"
            )
        return self._symbolic.compile(what, **options)

    def at(self, values: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism with other numbers."""
        numbers = dict(zip(self.names, np.split(self.parameters.pack(values), self._ends), strict=True))
        mechanism = self.mechanism
        for name in values:
            kind, part = split_name(name)
            mechanism = PARAMETER_KINDS[kind].changed(mechanism, part, numbers[name])
        return mechanism

    def bind(self, values: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism with other numbers, as `at`, whose kernels are made once for all values: for sweeps.

        Its numbers differ from those of `at(values)` in the last digits, since there they are constants of the code.
        """
        plain = self.at(values)
        parts = {part.name: getattr(plain, part.name) for part in fields(Mechanism)}
        packed = tuple(float(x) for x in self.parameters.pack(values))
        return BoundMechanism(**parts, nominal=self._symbolic, values=packed, stamp=plain.content())

    @property
    def _ends(self) -> Array:
        return np.cumsum([PARAMETER_KINDS[split_name(name)[0]].size for name in self.names])[:-1]

    def __repr__(self) -> str:
        return f"ParametricMechanism({self.mechanism.name!r}: {', '.join(self.names)})"
