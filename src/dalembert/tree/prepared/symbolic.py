"""A prepared tree with symbols for parameters of the mechanism: inertias, places of joints and frames, springs.

Masses are not regrouped: what is handed to a parent is numbers. A joint or frame that may move stands behind three
steps more; a frame gets a link of its own for them, which has neither mass nor velocity (kind "held").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from dalembert.kkt.expressions.scalars import scalar
from dalembert.model.mechanism.inertia import Inertia
from dalembert.model.mechanism.parametric import PARAMETER_KINDS, place_of, split_name
from dalembert.model.mechanism.placement import Placement
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.algebra.screws import Screw
from dalembert.tree.prepared.frames import decompose, idle, turn
from dalembert.tree.prepared.link import Link, Tree, moments, moved
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.parametric import SymbolicMechanism


def with_symbols(mechanism: SymbolicMechanism, tree: Tree) -> Tree:
    """Return a tree whose masses were not regrouped with the mechanism's symbols in the place of numbers."""
    tree = replace(tree, links=_with_inertias(mechanism, tree))
    for name, symbol in zip(mechanism.symbolic, mechanism.parameters.symbols, strict=True):
        kind, part = split_name(name)
        x = [symbol[i] for i in range(symbol.numel())]
        if kind in ("length", "position", "geometry"):
            tree = _with_place(mechanism, tree, kind, part, x)
        elif kind in ("stiffness", "damping", "rest", "armature"):
            tree = _with_passive(mechanism, tree, kind, part, x[0])
    return tree


# ----------------------------------------------------------------------------------------------------------------------
# Inertias.


def _with_inertias(mechanism: SymbolicMechanism, tree: Tree) -> tuple[Link, ...]:
    """Return the links, each with the sum of its bodies where one of them varies."""
    varied: dict[int, Rigid] = {}
    for name, symbol in zip(mechanism.symbolic, mechanism.parameters.symbols, strict=True):
        kind, part = split_name(name)
        if kind in ("mass", "inertia"):
            k = mechanism.body_index(part)
            own = _change(mechanism, kind, part, symbol) if k in varied else _rigid(mechanism, kind, part, symbol)
            own = moved_symbols(own, tree.bodies[k].place)
            varied[k] = varied[k].add(own) if k in varied else own
    links = list(tree.links)
    for i in {tree.bodies[k].link for k in varied} - {-1}:
        total = Rigid()
        for k, body in enumerate(tree.bodies):
            if body.link == i:
                inertia = varied[k] if k in varied else moved(moments(mechanism.bodies[k].inertia), body.place)
                total = total.add(inertia)
        links[i] = replace(links[i], inertia=total)
    return tuple(links)


def _rigid(mechanism: SymbolicMechanism, kind: str, part: str, symbol: ca.SX) -> Rigid:
    """Return m, h and E of a body in its own frame."""
    if kind == "mass":
        inertia = mechanism.body(part).inertia
        c = inertia.center
        m, h = symbol, symbol * ca.DM(c)
        rotational = ca.SX(ca.DM(inertia.rotational)) + symbol * ca.DM(c @ c * np.eye(3) - np.outer(c, c))
    else:
        return _of_numbers(symbol)
    return _of_matrices(m, h, 0.5 * ca.trace(rotational) * ca.SX.eye(3) - rotational)


def _change(mechanism: SymbolicMechanism, kind: str, part: str, symbol: ca.SX) -> Rigid:
    """Return what a parameter adds to a body of which another one varies, too: a mass is one at the body's centre."""
    change = symbol - ca.DM(PARAMETER_KINDS[kind].value(mechanism, part))
    if kind == "mass":
        change = change * ca.DM(Inertia(1.0, mechanism.body(part).inertia.center).numbers())
    return _of_numbers(change)


def _of_numbers(numbers: ca.SX) -> Rigid:
    """Return m, h and E of the ten inertial numbers."""
    xx, xy, yy, xz, yz, zz = (numbers[k] for k in range(4, 10))
    rotational = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
    return _of_matrices(numbers[0], numbers[1:4], 0.5 * ca.trace(rotational) * ca.SX.eye(3) - rotational)


def moved_symbols(inertia: Rigid, placement: Placement) -> Rigid:
    """Return the inertia in frame A, for `placement` = X_AB and this one given in B; as `link.moved` of numbers."""
    R, p = ca.DM(placement.rotation), ca.DM(placement.position)
    a, b, c, d, e, f = inertia.E
    E = ca.vertcat(ca.horzcat(a, b, c), ca.horzcat(b, d, e), ca.horzcat(c, e, f))
    turned = R @ ca.vertcat(*inertia.h)
    m = ca.SX(inertia.m)
    return _of_matrices(m, turned + m * p, R @ E @ R.T + turned @ p.T + p @ turned.T + m * (p @ p.T))


def _of_matrices(m: Any, h: Any, E: Any) -> Rigid:
    """Return the entries of m, h, E as scalars; constants are floats."""
    h, E = ca.densify(ca.SX(h)), ca.densify(ca.SX(E))
    x, y, z = (scalar(h[i]) for i in range(3))
    a, b, c, d, e, f = (scalar(E[i, j]) for i in range(3) for j in range(i, 3))
    return Rigid(scalar(ca.SX(m)), (x, y, z), (a, b, c, d, e, f))


# ----------------------------------------------------------------------------------------------------------------------
# Places.


def _with_place(mechanism: SymbolicMechanism, tree: Tree, kind: str, part: str, x: list[Any]) -> Tree:
    """Return the tree with a joint or frame displaced: steps more, on its link or on one that is held for it."""
    joint = part in mechanism._joint_index
    body = mechanism.joint(part).parent if joint else mechanism.frame(part).body
    link, place = tree.places[body]
    if kind == "geometry":
        steps = _displaced(place @ place_of(mechanism, part), x)
    else:
        steps = _slides(ca.DM(place.rotation) @ _moved(mechanism, kind, part, x))
    links = list(tree.links)
    held = f"{part} (held)"
    here = (i for i, x in enumerate(links) if (x.joint == part if joint else (x.kind, x.name) == ("held", held)))
    i = next(here, None)
    if i is not None:  # the joint's link, or that of a frame of which another parameter is named, too
        links[i] = replace(links[i], steps=(*steps, *links[i].steps))
        return replace(tree, links=tuple(links))
    none: tuple[float, ...] = ()
    own = Link(held, "", "held", link, 0, 0, steps, 0.0, 0.0, 0.0, Rigid(), none, none, none, none)
    where = {**tree.places, part: (len(links), tree.places[part][1])}
    return replace(tree, links=(*links, own), places=where)


def _moved(mechanism: SymbolicMechanism, kind: str, part: str, x: list[Any]) -> Any:
    """Return where a joint or frame stands less where it stood, in the axes of its body."""
    position = place_of(mechanism, part).position
    way = position / np.linalg.norm(position) if kind == "length" else None
    target = [x[0] * float(w) for w in way] if way is not None else x
    return ca.vertcat(*[new - float(old) for new, old in zip(target, position, strict=True)])


def _displaced(place: Placement, x: list[Any]) -> tuple[Screw, ...]:
    """Return the steps of X D X^-1, X = `place` in the link: D slides by x[:3] and turns about x, y, z by x[3:]."""
    slides = _slides(ca.vertcat(*x[:3]))
    turns = tuple(Screw(k, ca.cos(x[3 + k]), ca.sin(x[3 + k])) for k in range(3))
    return (*_constant(place), *slides, *turns, *_constant(place.inverse()))


def _constant(place: Placement) -> tuple[Screw, ...]:
    """Return a placement as screws of numbers."""
    split = decompose(np.asarray(place.rotation), np.asarray(place.position))
    last = turn("z", *split.last)
    return split.steps() if idle(last) else (*split.steps(), last)


def _slides(shift: Any) -> tuple[Screw, ...]:
    """Return slides along x, y, z, without those that are known to be zero."""
    entries: list[Scalar] = [scalar(ca.SX(shift)[k]) for k in range(3)]
    return tuple(Screw(k, d=d) for k, d in enumerate(entries) if type(d) is not float or d != 0.0)


# ----------------------------------------------------------------------------------------------------------------------
# Springs and dampers.


def _with_passive(mechanism: SymbolicMechanism, tree: Tree, kind: str, part: str, x: Any) -> Tree:
    """Return the tree with a symbol for a number of a joint or of a spring between frames."""
    names = [spring.name for spring in mechanism.springs]
    if part in names:
        place = ("stiffness", "rest", "damping").index(kind) + 2
        springs = list(tree.springs)
        entries = list(springs[names.index(part)])
        entries[place] = x
        springs[names.index(part)] = tuple(entries)  # type: ignore[call-overload]
        return replace(tree, springs=tuple(springs))
    if kind == "armature":  # rotors of motors, seen through their gears, are there as well
        x = x + float(mechanism.armature[mechanism.index_v(part)][0] - (mechanism.joint(part).armature or (0.0,))[0])
    links = [replace(link, **{kind: (x,)}) if link.joint == part else link for link in tree.links]
    return replace(tree, links=tuple(links))
