"""What a time step needs of a system with contacts: its terms in the middle of the step, as one code.

The terms are those of the engine that locates events (`contact/contact_system.py`), taken at the middle of a step:

    q_m = q + v h / 2        M, bias, A, gaps, W at q_m, t + h / 2
                             rates of driven rows, A v + rate = 0, and of surfaces at t + h

Functions of Python (`Matrices`, projections of systems that are no mechanisms) are called back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from dalembert.errors import UnsupportedError
from dalembert.friction import Dry
from dalembert.friction.cones.turns import CONE, DISK, LINE, NORMAL
from dalembert.kernel.loops import SIGNATURE
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.simulate.contact.contact_system import (
    ContactSystem,
    contact_terms_of,
    joint_frame,
    lagrangian_contacts,
    mechanism_contacts,
    other_contacts,
    scene_of_contacts,
    split_contacts,
)
from dalembert.simulate.contact.geometry import asked
from dalembert.simulate.contact.shapes import Heightfield, pairs_of
from dalembert.simulate.contact.surface_loops import SLOTS
from dalembert.simulate.equations.codes import Forces, MechanismForm, _kernel, _traced, trace_along
from dalembert.simulate.equations.drives import known_by_accelerations
from dalembert.simulate.equations.lagrangian_system import LagrangianSystem
from dalembert.simulate.session import Session
from dalembert.simulate.steppers.moreau_loops import SteppedContacts
from dalembert.types import Array

TAKEN = ("M", "bias", "A", "gaps", "W", "load", "axes", "balls")
"""Terms that a step takes in its middle."""

PROBES = 17
"""Times at which rates of rows are looked at where they are functions of Python."""


class MoreauTerms:
    """A session's system as time steps read it: contacts, codes of its terms, pattern of its mass matrix."""

    def __init__(self, session: Session) -> None:
        self.session, self.system = session, session.system
        self.contacts, self.scene = stepped_contacts(session), scene_of_contacts(session.extra.get("contacts"))
        self.k, self.n = self.contacts.k, self.contacts.n
        self.mechanism = self.system if isinstance(self.system, Mechanism) else None
        refuse_laws(self.contacts.contacts)
        self.python = self.contacts.function is not None
        self.inputs = dict(self.contacts.inputs)
        self.turning = any(_rolls(contact) for contact in self.contacts.contacts)

    # --- codes --------------------------------------------------------------------------------------------------

    def kernels(self) -> dict[str, Any]:
        """Return the codes by name: terms and bias where they are expressions, and the way along a velocity."""
        m, key = self.system, None
        cached = self.mechanism is not None and self.mechanism.cacheable
        if self.mechanism is not None:
            frames = () if self.scene is None else self.scene.frames
            key = ("simulate", self.mechanism.content(), self.contacts.described, repr(frames))
            form = MechanismForm(self.mechanism)
            way = _kernel(("simulate", m.content(), "along"), lambda: trace_along(form), cached)
        else:
            way = _kernel(("simulate", "along", str(self.n)), lambda: _trace_sum(self.n), True)
        kernels: dict[str, Any] = {"along": way}
        if not self.python:
            kernels["terms"] = _kernel((*(key or ()), "step terms"), lambda: self._trace()[0], cached)
            kernels["bias"] = _kernel((*(key or ()), "step bias and power"), lambda: self._trace()[1], cached)
        return kernels

    def _trace(self) -> tuple[ca.Function, ca.Function]:
        """Return q, v, h, t -> middle and terms; q, v, t -> bias, and the power of forces in it without a potential."""
        given = self.contacts
        if self.mechanism is not None:
            trace: Any = given.trace
            terms, along = trace(self.mechanism), trace_along(MechanismForm(self.mechanism))
        else:
            terms, along = contact_terms_of(self.system.given), _trace_sum(self.n)
        sizes = {name: terms.size1_in(i) for i, name in enumerate(terms.name_in())}
        q, v = ca.SX.sym("q", given.nq), ca.SX.sym("v", given.n)
        h, t = ca.SX.sym("h"), ca.SX.sym("t")
        more = {name: ca.SX.sym(name, size) for name, size in sizes.items() if name not in ("q", "v", "t")}
        middle = along(q, 0.5 * h * v)
        there = terms(**{"q": middle, "v": v, "t": t + 0.5 * h} | more)
        still = terms(**{"q": middle, "v": ca.SX.zeros(given.n), "t": t + h} | more)
        outputs = {"middle": middle} | {name: there[name] for name in TAKEN if name in there}
        if "psi" in still:
            outputs["rate"] = still["psi"]
        if "u" in still:
            outputs["offset"] = still["u"]
        if self.mechanism is not None and self.turning:
            outputs["turns"] = self._spins(middle)
        if self.scene is not None:
            outputs |= _screws_and_poses(self.mechanism, self.scene.frames, middle)
        inputs = {"q": q, "v": v, "h": h, "t": t} | more
        step = ca.Function(
            "step_terms", list(inputs.values()), [ca.densify(e) for e in outputs.values()], list(inputs), list(outputs)
        )
        inputs = {"q": q, "v": v, "t": t} | more
        terms = terms(**inputs)
        outputs = {"bias": ca.densify(terms["bias"]), "power": ca.densify(terms.get("applied", ca.SX(0)))}
        return step, ca.Function(
            "step_bias", list(inputs.values()), list(outputs.values()), list(inputs), list(outputs)
        )

    def _spins(self, q: ca.SX) -> ca.SX:
        """Return r omega of the spheres of every contact, as rows (3 k, n) of the velocities."""
        m: Any = self.mechanism
        rows = []
        for contact in self.contacts.contacts:
            row = ca.SX.zeros(3, self.n)
            if _rolls(contact):
                pair: Any = contact.pair
                for ball in (pair.ball, pair.other):
                    if ball is not None and ball.radius > 0.0:
                        row = row + ball.radius * joint_frame(m, ball.frame, q, ca.SX.zeros(self.n))[3]
            rows.append(row)
        return ca.vec(ca.vertcat(*rows).T)

    def callback(self, work: Any, fail: Callable[[BaseException], None]) -> Any:
        """Return a function of Python for the terms of a system that is no expression, as compiled loops call it."""
        system: Any = self.contacts.function
        accelerated = known_by_accelerations(self.system)

        def run(table: Any, first: int, stop: int, scratch: Any) -> None:
            try:
                t, h = work.time[0], work.h[0]
                work.middle[:] = work.q + 0.5 * h * work.v
                there = system(work.middle, work.v, t + 0.5 * h)
                still = system(work.middle, np.zeros(self.n), t + h)
                work.M[:], work.bias[:], work.gaps[:] = there["M"], there["bias"], there["gaps"]
                work.W[:], work.load[:] = there["W"], there["load"]
                work.offset[:] = still["u"]
                if work.rate.size:
                    work.A[:] = there["A"]
                    # rows that are known by their accelerations alone keep A v but for h drift
                    drift = h * np.asarray(there["drift"]) - work.A @ work.v
                    work.rate[:] = drift if accelerated else still["psi"]
            except BaseException as error:
                fail(error)

        return SIGNATURE(run)

    def bias_callback(self, work: Any, fail: Callable[[BaseException], None]) -> Any:
        """Return a function of Python for the bias at another velocity."""

        def run(table: Any, first: int, stop: int, scratch: Any) -> None:
            try:
                work.bias[:] = self.system.given.bias(work.middle, work.speed, work.time[0])
            except BaseException as error:
                fail(error)

        return SIGNATURE(run)

    # --- forces that are implicit ---------------------------------------------------------------------------------

    def force_kernel(self, forces: Forces) -> Any:
        """Return the code of joint forces; of expressions with their slopes -d tau_j / d v_j and -d tau_j / d q_j."""
        c = forces.controller
        if c.function is not None or c.kind != "expression":
            return forces.kernel
        places = self._coordinates()
        key = ("simulate", "tau and slopes", c.content, repr(places))
        return _kernel(key, lambda: _trace_slopes(c, places), True)

    def _coordinates(self) -> list[int]:
        """Return per velocity the coordinate of which it is the rate, -1 where there is none."""
        m = self.mechanism
        if m is None:
            return list(range(self.n))
        places, manifold = [-1] * self.n, m.manifold
        for i in range(len(m.joints)):
            width = int(manifold.v_start[i + 1]) - int(manifold.v_start[i])
            if width == 1 and int(manifold.q_start[i + 1]) - int(manifold.q_start[i]) == 1:
                places[int(manifold.v_start[i])] = int(manifold.q_start[i])
        return places

    def springs_and_dampers(self) -> Array:
        """Return damping, then stiffness of simple joints, of a mechanism where they act, (2 n,)."""
        values, m = np.zeros(2 * self.n), self.mechanism
        if m is None or not m.passive:
            return values
        places = self._coordinates()
        for i, joint in enumerate(m.joints):
            first = int(m.manifold.v_start[i])
            for j, damping in enumerate(joint.damping):
                values[first + j] = max(float(damping), 0.0)
            for j, stiffness in enumerate(joint.stiffness):
                values[self.n + first + j] = max(float(stiffness), 0.0) if places[first + j] >= 0 else 0.0
        return values

    # --- patterns -----------------------------------------------------------------------------------------------

    def driven(self) -> Array:
        """Return which constraint rows move by themselves, (m,)."""
        m, names = self.mechanism, self.contacts.names
        if not names:
            return np.zeros(0, bool)
        if known_by_accelerations(self.system):
            return np.ones(len(names), bool)
        if m is None and self.python:
            rate = getattr(self.system, "constraint_velocity", None)
            times = np.linspace(self.session.settings.start, self.session.settings.end, PROBES)
            found = [np.asarray(rate(self.session.q, np.zeros(self.n), t)) for t in times] if rate is not None else []
            return np.any(found, axis=0) if found else np.zeros(len(names), bool)
        q, t = ca.SX.sym("q", self.contacts.nq), ca.SX.sym("t")
        given = {"q": q, "v": ca.SX.zeros(self.n), "t": t}
        if m is None:
            terms = contact_terms_of(self.system.given)
            more = {
                name: ca.SX.sym(name, terms.size1_in(i)) for i, name in enumerate(terms.name_in()) if name not in given
            }
            rates = ca.sparsify(terms(**given | more)["psi"])
        else:
            rates = ca.sparsify(_traced(m, "constraint_velocity")(*given.values()))
        rows = np.zeros(len(names), bool)
        rows[rates.sparsity().get_triplet()[0]] = True
        return rows

    def ancestors(self, M: Array, dense: bool) -> tuple[Array, Array]:
        """Return the velocities that come before each on its way to the ground, rising (n, n), and how many (n,).

        A chain of all velocities where M, at a configuration of no special kind, has entries beside the tree's pattern,
        or `dense` is wanted.
        """
        n = self.n
        before = [list(range(i)) for i in range(n)]
        if self.mechanism is not None and not dense:
            tree = _on_the_way(self.mechanism)
            if all(j in tree[i] for i in range(n) for j in range(i) if M[i, j] != 0.0):
                before = tree
        ancestors, depth = np.zeros((n, n), np.int64), np.zeros(n, np.int64)
        for i, path in enumerate(before):
            ancestors[i, : len(path)], depth[i] = path, len(path)
        return ancestors, depth

    def paths(self) -> list[list[int]]:
        """Return the velocities that move each contact."""
        every, m = list(range(self.n)), self.mechanism
        if m is None:
            return [every] * self.k
        bodies, paths = _paths_of_bodies(m), []
        for contact in self.contacts.contacts:
            pair = contact.pair
            if pair is None:
                paths.append(every)
            elif pair.ball is None:
                paths.append([pair.coordinate[1]])
            else:
                balls = [ball for ball in (pair.ball, pair.other) if ball is not None]
                paths.append(sorted({j for ball in balls for j in bodies[m.frame(ball.frame).body]}))
        for i, rows in zip(self.friction_places(), self.friction_rows(), strict=True):
            paths[i] = np.flatnonzero(np.any(rows != 0.0, axis=0)).tolist() or every
        return paths

    def friction_places(self) -> list[int]:
        """Return which contacts have no gap."""
        return [i for i, contact in enumerate(self.contacts.contacts) if contact.pair is None]

    def friction_rows(self) -> list[Array]:
        """Return the constant rows of contacts without a gap; zeros where they move."""
        return self.contacts.rubbing

    def table(self, ancestors: Array, depth: Array, room: int) -> SteppedContacts:
        """Return the contacts as arrays, with room for so many contacts between shapes."""
        several, k, n = self.contacts.contacts, self.k, self.n
        laws: list[Any] = [contact.law for contact in several]
        limit = np.array([float(law.limit) for law in laws])
        gapped = np.array([contact.gapped for contact in several], bool)
        wide = np.array([contact.width for contact in several], np.int64)
        kind = np.where(gapped, np.where(limit > 0.0, CONE, NORMAL), np.where(wide == 1, LINE, DISK)).astype(np.int64)
        path, size = np.zeros((k + room, n), np.int64), np.zeros(k + room, np.int64)
        for i, some in enumerate(self.paths()):
            whole = sorted(set(some).union(*(ancestors[j, : depth[j]].tolist() for j in some)))
            path[i, : len(whole)], size[i] = whole, len(whole)
        fields = self.contacts.field_arrays()
        ball = np.full(k, -1, np.int64)
        ball[fields["field_pair"]] = np.arange(fields["field_pair"].size)
        pairs = [contact.pair for contact in several]
        place = np.array([max(pair.slot, 0) if pair is not None else 0 for pair in pairs], np.int64)
        numbers = np.ascontiguousarray(fields["field_numbers"].T)
        more: dict[str, Any] = {
            "kind": kind, "gapped": gapped, "mu": np.where(gapped, limit, 0.0), "limit": np.where(gapped, 0.0, limit),
            "e": np.array([contact.restitution for contact in several], float),
            "poisson": np.array([contact.poisson for contact in several], bool),
        }  # fmt: skip
        behind = {"gapped": True, "kind": NORMAL}
        more = {name: np.append(x, np.full(room, behind.get(name, 0), x.dtype)) for name, x in more.items()}
        return SteppedContacts(
            **more, ball=ball, place=place, radius=numbers[0].copy(), reach=numbers[1].copy(),
            field=fields["field_table"], heights=fields["heights"], path=path, size=size,
            fixed=np.array([k], np.int64), **self._bodies(ancestors, depth),
        )  # fmt: skip

    def _bodies(self, ancestors: Array, depth: Array) -> dict[str, Array]:
        """Return the velocities that move the bodies with shapes, how far these reach, and the laws of pairs."""
        scene, n = self.scene, self.n
        frames = () if scene is None else scene.frames
        path, size, reach = np.zeros((len(frames), n), np.int64), np.zeros(len(frames), np.int64), np.zeros(len(frames))
        laws = np.zeros((0, 2)) if scene is None else np.column_stack([scene.friction, scene.restitution])
        bodies = {} if scene is None else _paths_of_bodies(self.mechanism)
        for i, frame in enumerate(frames):
            some = bodies[frame]
            whole = sorted(set(some).union(*(ancestors[j, : depth[j]].tolist() for j in some)))
            path[i, : len(whole)], size[i] = whole, len(whole)
        for record in () if scene is None else scene.records:
            if record["body"] >= 0:
                far = float(np.linalg.norm(record["place_p"]) + record["reach"])
                reach[record["body"]] = max(reach[record["body"]], far)
        return {"body_path": path, "body_size": size, "body_reach": reach, "pair_laws": laws}


def _rolls(contact: Any) -> bool:
    """Return whether the normal of a contact may turn: two spheres, or a sphere and a heightfield."""
    pair = contact.pair
    if pair is None or pair.ball is None:
        return False
    return pair.other is not None or isinstance(pair.ground, Heightfield)


def _on_the_way(mechanism: Any) -> list[list[int]]:
    """Return per velocity those before it on its way to the ground, rising."""
    last: dict[str, list[int]] = {mechanism.ground: []}
    before: list[list[int]] = [[] for _ in range(mechanism.nv)]
    starts = mechanism.manifold.v_start
    for i, joint in enumerate(mechanism.joints):
        way = list(last[joint.parent])
        for j in range(int(starts[i]), int(starts[i + 1])):
            before[j] = list(way)
            way.append(j)
        last[joint.child] = way
    return before


def _paths_of_bodies(mechanism: Any) -> dict[str, list[int]]:
    """Return per body the velocities that move it, rising."""
    paths: dict[str, list[int]] = {mechanism.ground: []}
    starts = mechanism.manifold.v_start
    for i, joint in enumerate(mechanism.joints):
        paths[joint.child] = paths[joint.parent] + list(range(int(starts[i]), int(starts[i + 1])))
    return paths


def _trace_slopes(c: Any, places: list[int]) -> ca.Function:
    """Return t, q, v, signals -> tau and its slopes along the same velocities, and coordinates, of the other sign."""
    inputs = {"t": c.t, "q": c.q, "v": c.v, "signals": c.symbols}
    inputs = {name: port for name, port in inputs.items() if port.numel()}
    speed, place = ca.jacobian(c.tau, c.v), ca.jacobian(c.tau, c.q)
    slopes = [-speed[j, j] for j in range(len(places))]
    slopes += [-place[j, k] if k >= 0 else ca.SX(0) for j, k in enumerate(places)]
    outputs = [ca.densify(c.tau), ca.densify(ca.vertcat(*slopes))]
    return ca.Function("tau", list(inputs.values()), outputs, list(inputs), ["tau", "slopes"])


def _screws_and_poses(mechanism: Any, frames: tuple[str, ...], q: ca.SX) -> dict[str, ca.SX]:
    """Return what each velocity gives a body at the world's origin, (n, 6) by rows, and R by rows and p of bodies."""
    screws, poses = ca.SX.zeros(mechanism.nv, 6), []
    for frame in frames:
        J = ca.reshape(asked(mechanism, "jacobian", frame=frame, reference="world")(q), 6, mechanism.nv)
        J = ca.sparsify(J)
        for j in sorted(set(J.sparsity().get_triplet()[1])):
            screws[j, :] = J[:, j].T
        R, p = asked(mechanism, "kinematics", frame=frame)(q)
        poses.append(ca.vertcat(ca.vec(ca.reshape(R, 3, 3).T), ca.vec(p)))
    return {"screws": ca.vec(screws.T), "poses": ca.vertcat(*poses)}


def _trace_sum(n: int) -> ca.Function:
    """Return base, way -> base + way: configurations that are vectors."""
    base, way = ca.SX.sym("base", n), ca.SX.sym("way", n)
    return ca.Function("along", [base, way], [base + way], ["base", "way"], ["q"])


def stepped_contacts(session: Session) -> ContactSystem:
    """Return the contacts of a session; a sphere touches a heightfield at several places."""
    system, contacts = session.system, session.extra.get("contacts")
    if isinstance(system, LagrangianSystem):
        return lagrangian_contacts(system.given)
    if not isinstance(system, Mechanism):
        return other_contacts(system.given)
    shapes, rubbing = split_contacts(contacts)
    alone = contacts is not None and not rubbing and scene_of_contacts(contacts) is None
    pairs = pairs_of(system, shapes, SLOTS) if shapes or alone else ()
    return mechanism_contacts(system, pairs, session.settings.friction, rubbing, compiled=False)


def refuse_laws(contacts: Any) -> None:
    """Refuse laws with more than one limit, and limits that are reactions of rows."""
    for contact in contacts:
        if type(contact.law) is not Dry:
            raise UnsupportedError(
                f'method="moreau" takes one limit of friction for rest and motion (Dry), and contact '
                f'{contact.name!r} has {type(contact.law).__name__}; method="hybrid" takes all laws'
            )
        if contact.row >= 0:
            raise UnsupportedError(
                f'method="moreau" takes loads that are given, and that of contact {contact.name!r} is the '
                'reaction of a row; method="hybrid" takes it'
            )


def address(function: Any) -> int:
    """Return where a function of Python lies for compiled loops."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
