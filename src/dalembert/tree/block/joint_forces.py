"""Wrenches that joints transmit: the inward pass of the recursive Newton-Euler algorithm over the bodies.

Symbols (Featherstone 2008, sec. 5.3): f, n force and moment that a joint passes on to the body beyond it; F_i the force
of constraint row i on a body, lam_i its multiplier.

    wrench of a joint = sum over the bodies beyond it of  rate of momentum - gravity - springs + sum_i lam_i F_i

Nothing here solves for anything: accelerations and multipliers are those of the block system. Masses are those of the
bodies as they are, not regrouped ones, since regrouping moves loads from one side of a joint to the other; bodies on
fixed joints keep their own share, so that a fixed joint has its wrench, too. Constraints and springs act on the bodies
that they name. The moment of a joint is about the origin of its frame on the child, the wrench is the parent's on the
child.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca

from dalembert.errors import ModelError
from dalembert.kkt.expressions.scalars import add, mul, scalar, sub, total
from dalembert.kkt.expressions.sparse_factor import dense, sparse
from dalembert.model.constraints.constraint import Constraint
from dalembert.model.constraints.expression import Expression
from dalembert.model.constraints.primitives import FrameKinematics, Kinematics
from dalembert.model.joints import KINDS, as_expression
from dalembert.model.mechanism.placement import IDENTITY, Placement
from dalembert.model.mechanism.transmissions import AXES, Transmission, transmissions
from dalembert.names import lookup
from dalembert.status import Status
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid, inertial_force, momentum
from dalembert.tree.algebra.screws import Pair, Pose
from dalembert.tree.algebra.vectors import Vector, cross
from dalembert.tree.algorithms import dynamics
from dalembert.tree.algorithms.dynamics import REST, articulated_factor, status_of_numbers
from dalembert.tree.algorithms.inverse import LinkMotion, accelerations, body_forces
from dalembert.tree.algorithms.kinematics import columns, poses, vector, velocities
from dalembert.tree.algorithms.passive import joint_resistance, lift_ends, spring_ends, spring_forces
from dalembert.tree.block import wrench_members as members
from dalembert.tree.block.articulated_system import scaled
from dalembert.tree.block.row_forces import TreeMotion
from dalembert.tree.prepared.configuration import Posed, inward, pair_add, pose_tree
from dalembert.tree.prepared.link import Tree, TreeBody
from dalembert.tree.prepared.prepare import candidates, cheapest
from dalembert.types import Scalar

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism
    from dalembert.tree.block.constrained import Tracing
    from dalembert.tree.routes.route_table import TreeRoute

# ----------------------------------------------------------------------------------------------------------------------
# The inward pass, over links and then within them.
#
# Symbols: H inertia that regrouping has handed from a link to its parent; (a, wd, U) motion of a link, as the outward
# pass of the Newton-Euler algorithm has it at joint accelerations zero; (a', wd') = J qdd what these add.
#
#     f of a link  = need at qdd = 0 + I (a', wd') + sum of the links that it carries
#     f of a joint = f of its link + inertial force of H
#
# What forward dynamics has computed anyway is used again. Links of one piece cost nothing more; bodies on fixed joints
# add their own inertial forces.


class LinkLoads(NamedTuple):
    """Links of a tree under load.

    Attributes
    ----------
    motions, beyond
        Of every link: its motion at joint accelerations zero, and (a', wd') in its frame.
    needs
        The force that every link needs at joint accelerations zero: its momentum, gravity, springs, constraint rows.
    """

    motions: Sequence[LinkMotion]
    beyond: Sequence[Pair]
    needs: Sequence[Pair]

    def full(self, i: int, gravity: Vector) -> LinkMotion:
        """Return the motion of a link, or of the ground, -1."""
        if i < 0:
            return LinkMotion(a=vectors.scale(-1.0, gravity))
        (w, wd, a, (x, y, z)), (da, (p, q, r)) = self.motions[i], self.beyond[i]
        U = (
            (x[0], add(x[1], r), sub(x[2], q)),
            (sub(y[0], r), y[1], add(y[2], p)),
            (add(z[0], q), sub(z[1], p), z[2]),
        )
        return LinkMotion(w, vectors.add(wd, (p, q, r)), vectors.add(a, da), U)


def body_wrenches(tree: Tree, posed: list[Posed], loads: LinkLoads | None, needed: dict[int, Pair]) -> list[Pair]:
    """Return the wrench that every body gets through its joint, at the joint, in the axes of the link it is part of.

    Parameters
    ----------
    loads
        None where masses do not count.
    needed
        What acts on single bodies beside their own mass: constraint rows, springs; part of the needs of their links.
    """
    motions = [] if loads is None else [loads.full(i, tree.gravity) for i in range(-1, len(posed))]
    joints = link_wrenches(tree, posed, loads, motions[1:], needed)
    carried = [needed.get(k, REST) for k in range(len(tree.bodies))]
    wrenches = [REST] * len(tree.bodies)
    for k in reversed(range(len(tree.bodies))):
        body, p = tree.bodies[k], vector(tree.bodies[k].joint.position)
        if body.link != (tree.bodies[body.parent].link if body.parent >= 0 else -1):
            share = joints[body.link]
            wrenches[k] = about(p, share)
        else:  # a weld: the bodies beyond it that are part of the same link, and the links that these carry
            inertial = REST if loads is None else central_force(body, p, motions[body.link + 1])
            wrenches[k] = pair_add(about(p, carried[k]), inertial)
            share = about(vectors.scale(-1.0, p), wrenches[k])
        if body.parent < 0:
            continue
        i, end = body.link, tree.bodies[body.parent].link
        while i != end:  # one link; two where a universal joint carries the body
            share, i = posed[i].force_out(share), tree.links[i].parent
        carried[body.parent] = pair_add(carried[body.parent], share)
    return wrenches


def link_wrenches(
    tree: Tree, posed: list[Posed], loads: LinkLoads | None, motions: list[LinkMotion], needed: dict[int, Pair]
) -> list[Pair]:
    """Return the wrench that every link gets through its joint, (f, n) in its frame."""
    if loads is None:
        sums = link_sums(tree, needed)
    else:
        pairs = zip(tree.links, loads.needs, loads.beyond, strict=True)
        sums = [pair_add(need, momentum(link.inertia, *beyond)) for link, need, beyond in pairs]
    totals, _ = inward(posed, sums, REST, lambda i, link, force: link.force_out(force), pair_add)
    if loads is None:
        return totals
    pairs = zip(totals, tree.handed, motions, strict=True)
    return [pair_add(f, inertial_force(H, motion.w, motion.wd, motion.a, motion.U)) for f, H, motion in pairs]


def about(p: Vector, force: Pair) -> Pair:
    """Return a force with its moment about the point p instead of the origin."""
    return force[0], vectors.difference(force[1], cross(p, force[0]))


def central_force(body: TreeBody, p: Vector, motion: LinkMotion) -> Pair:
    """Return the inertial force of a body by its centre of mass c, about p: m (a + U c), and (c - p) x f + moment."""
    c = body.center
    if not body.mass and not any(body.E):
        return REST
    f = vectors.scale(body.mass, vectors.add(motion.a, vectors.columns_times(motion.U, c)))
    _, n = inertial_force(Rigid(0.0, vectors.ZERO, body.E), motion.w, motion.wd, motion.a, motion.U)
    return f, vectors.add(n, cross(vectors.difference(c, p), f))


def link_sums(tree: Tree, needed: dict[int, Pair]) -> list[Pair]:
    """Return forces on bodies as forces on links."""
    sums = [REST] * len(tree.links)
    for k, force in needed.items():
        i = tree.bodies[k].link
        if i >= 0:
            sums[i] = pair_add(sums[i], force)
    return sums


def check_axes(axes: str) -> None:
    """Refuse axes that are none."""
    if axes not in AXES:
        raise ModelError(f"axes={axes!r}: joint forces are told in the axes of {', '.join(map(repr, AXES))}")


# ----------------------------------------------------------------------------------------------------------------------
# A mechanism at a state: what acts on its bodies, and the wrenches of all transmissions in the axes of one's choice.


@dataclass(frozen=True, eq=False)
class Wrenches:
    """A tree in a state, over scalars.

    Attributes
    ----------
    mechanism, tree, posed, q, v
        What moves, its links in a configuration, coordinates and velocities.
    rows_at
        The same state with the constraint rows as forces on frames; None where there are none.
    lam
        Multipliers of the user's rows.
    outer
        Further forces that bodies need, by the number of the body, in the frame of its link.
    massive
        Whether masses, gravity and springs count.
    ends
        Forces of unit multipliers by constraint, made once for all multipliers of the state.
    """

    mechanism: Mechanism
    tree: Tree
    posed: list[Posed]
    q: list[Scalar]
    v: list[Scalar]
    rows_at: TreeMotion | None = None
    lam: list[Scalar] = field(default_factory=list)
    outer: dict[int, Pair] = field(default_factory=dict)
    massive: bool = True
    ends: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[list[tuple[str, Pair]]]:
        """Per constraint the forces that its multipliers take from the bodies of its frames, frame by frame."""
        result, first = [], 0
        if self.rows_at is None:
            return result
        for constraint in self.mechanism.all_constraints:
            count = len(constraint.row_names())
            lam = self.rows_at.from_world(constraint, self.lam[first : first + count])
            first += count
            ends: list[tuple[str, Pair]] = []
            if constraint.label not in self.ends:
                self.ends[constraint.label] = row_ends(self.rows_at, constraint)
            for force, row in zip(lam, self.ends[constraint.label], strict=True):
                parts = [(name, scaled(force, F)) for name, F in row]
                ends = [(n, pair_add(x, y)) for (n, x), (_, y) in zip(ends, parts, strict=True)] if ends else parts
            result.append(ends)
        return result

    @cached_property
    def springs(self) -> list[tuple[tuple[str, Pair], tuple[str, Pair]]]:
        """Per spring the forces that it takes from the bodies of its two frames."""
        return spring_ends(self.tree, self.posed, self.v) if self.massive else []

    @cached_property
    def passive(self) -> dict[int, Pair]:
        """What springs take from bodies, and weight that is held up, by the number of the body."""
        lifts = lift_ends(self.tree, self.posed) if self.massive else []
        return self._by_body([*(end for pairs in self.springs for end in pairs), *lifts], {})

    @cached_property
    def constraints(self) -> dict[int, Pair]:
        """What constraint rows and forces from outside take from bodies."""
        return self._by_body([end for pairs in self.rows for end in pairs], self.outer)

    def _by_body(self, ends: Sequence[tuple[str, Pair]], start: dict[int, Pair]) -> dict[int, Pair]:
        sums = dict(start)
        for name, force in ends:
            k = self.mechanism.body_index(self.mechanism.frame(name).body)
            if k >= 0:
                sums[k] = pair_add(sums.get(k, REST), force)
        return sums

    def bodies(self, loads: LinkLoads | None) -> list[Pair]:
        """Return the wrench that every body gets through its joint, for links that move under a load without rows."""
        needed = dict(self.passive)
        for k, force in self.constraints.items():
            needed[k] = pair_add(needed.get(k, REST), force)
        if loads is not None and self.constraints:
            sums = link_sums(self.tree, self.constraints)
            loads = loads._replace(needs=[pair_add(*pair) for pair in zip(loads.needs, sums, strict=True)])
        return body_wrenches(self.tree, self.posed, loads, needed)

    def child(self, at: Transmission, bodies: list[Pair]) -> Pair:
        """Return the wrench of a transmission at its frame on the child, in the axes of this frame."""
        k = self.mechanism.body_index(at.child)
        place = at.place if k < 0 else self.tree.bodies[k].place @ at.place
        ends = self.springs if at.group == "spring" else self.rows
        if at.group == "joint":
            f, n = bodies[k]
        elif ends:
            f, n = about(vector(place.position), scaled(-1.0, ends[at.number][0][1]))
        else:
            f, n = REST
        R = columns(place.rotation)
        return vectors.transposed_times(R, f), vectors.transposed_times(R, n)

    @cached_property
    def _world(self) -> list[Pose]:
        return poses(self.posed)

    def _rotated(self, body: str, place: Placement, u: Vector, out: bool) -> Vector:
        """Return a vector of a frame's axes in those of the world, or back."""
        k = self.mechanism.body_index(body)
        link = -1 if k < 0 else self.tree.bodies[k].link
        R = place.rotation if k < 0 else self.tree.bodies[k].place.rotation @ place.rotation
        if out:
            u = vectors.columns_times(columns(R), u)
            return u if link < 0 else vectors.columns_times(self._world[link].R, u)
        u = u if link < 0 else vectors.transposed_times(self._world[link].R, u)
        return vectors.transposed_times(columns(R), u)

    def table(self, loads: LinkLoads | None, joints: Sequence[Transmission], axes: str) -> list[list[Scalar]]:
        """Return force and moment of transmissions, rows of six."""
        check_axes(axes)
        bodies = self.bodies(loads)
        return [self.in_axes(at, self.child(at, bodies), axes) for at in joints]

    def of_multipliers(self, lam: list[Scalar]) -> Wrenches:
        """Return the same state under other multipliers alone: neither masses, springs nor forces from outside."""
        return replace(self, lam=lam, outer={}, massive=False)

    def in_axes(self, at: Transmission, force: Pair, axes: str) -> list[Scalar]:
        """Return a wrench of the child's axes in those that were asked for, (6,)."""
        if axes == "parent" and at.group == "joint":
            joint = self.mechanism.joints[at.number]
            R, _ = KINDS[joint.kind].motion(joint, self.q[self.mechanism.index_q(joint.name)])
            return [total(*map(mul, row, part)) for part in force for row in R]
        if axes == "child":
            return [x for part in force for x in part]
        parts = [self._rotated(at.child, at.place, part, out=True) for part in force]
        if axes == "parent":
            parts = [self._rotated(at.parent, at.parent_place, part, out=False) for part in parts]
        return [x for part in parts for x in part]


def row_ends(motion: TreeMotion, constraint: Constraint) -> list[Sequence[tuple[str, Pair]]]:
    """Return per row the forces of a unit multiplier on frames, each in the frame of its link."""
    if isinstance(constraint, Expression):
        return expression_ends(motion, constraint)
    return [row.ends for row in motion.rows(constraint)]


class FreeFrames(Kinematics):
    """A mechanism in motion whose frames are symbols of their own: what an expression does to each can be told apart.

    Attributes
    ----------
    frames
        Per frame that was asked for: its name, the frame with symbols, and the frame as it is.
    """

    def __init__(self, world: Kinematics) -> None:
        self.world, self.mechanism = world, world.mechanism
        self.q, self.v, self.t, self.rate = world.q, world.v, world.t, world.rate
        self.frames: list[tuple[str, Placement, FrameKinematics, FrameKinematics]] = []

    def frame(self, name: str, placement: Placement = IDENTITY) -> FrameKinematics:
        """Return a frame by name; rotation, position and velocity are symbols."""
        world_frame = self.world.frame(name, placement)
        R, p, V = (ca.SX.sym(letter, *shape) for letter, shape in (("R", (3, 3)), ("p", (3, 1)), ("V", (6, 1))))
        free = replace(world_frame, rotation=R, position=p, velocity=V)
        self.frames.append((name, placement, free, world_frame))
        return free


def expression_ends(motion: TreeMotion, constraint: Expression) -> list[Sequence[tuple[str, Pair]]]:
    """Return per row of an expression the forces of a unit multiplier on the frames that it speaks of.

    phi(p, R) has the rate g . v + (sum of R_j x G_j) . w, g and G_j its derivatives by p and by the columns of R.
    """
    free = FreeFrames(motion.world)
    phi = constraint.value(free)
    symbols = [ca.vec(x) for _, _, frame, _ in free.frames for x in (frame.rotation, frame.position, frame.velocity)]
    values = [
        ca.vec(ca.densify(ca.SX(x)))
        for *_, frame in free.frames
        for x in (frame.rotation, frame.position, frame.velocity)
    ]
    rows = []
    for i in range(phi.numel()):
        ends = []
        for name, placement, frame, _ in free.frames:
            if constraint.velocity:
                C = ca.jacobian(phi[i], frame.velocity).T
            else:
                G = ca.reshape(ca.jacobian(phi[i], ca.vec(frame.rotation)), 3, 3)
                turn = sum((ca.cross(frame.rotation[:, j], G[:, j]) for j in range(3)), ca.SX.zeros(3))
                C = ca.vertcat(ca.jacobian(phi[i], frame.position).T, turn)
            C = ca.densify(ca.substitute([C], symbols, values)[0]) if symbols else C
            ends.append((name, _into_link(motion, name, placement, [scalar(C[j]) for j in range(6)])))
        rows.append(ends)
    return rows


def _into_link(motion: TreeMotion, name: str, placement: Placement, C: list[Scalar]) -> Pair:
    """Return a force of world axes at a place on a frame, in the frame of the link that it is on."""
    link, place = motion.place(name, placement)
    f, n = (C[0], C[1], C[2]), (C[3], C[4], C[5])
    for i in reversed(motion.tree.ancestors(link)):
        f, n = motion.posed[i].into(f), motion.posed[i].into(n)
    return f, vectors.add(n, cross(vector(place.position), f))


# ----------------------------------------------------------------------------------------------------------------------
# The requests.
#
#     joint_forces                 q, v, tau, t               forward dynamics, and the wrenches that go with it
#     joint_forces_of_motion       q, v, a, multipliers, t    wrenches of a motion and multipliers that are known
#     joint_forces_of_multipliers  q, multipliers, t          what multipliers do: masses, gravity, springs left out
#
# The last two also take forces on bodies from outside.


def chosen(mechanism: Mechanism, joints: Any) -> list[Transmission]:
    """Return the transmissions by name; all by default, "moving": all but fixed joints and what flies freely."""
    table = {place.name: place for place in transmissions(mechanism)}
    if joints is None:
        return list(table.values())
    if isinstance(joints, str) and joints == "moving":
        return [place for place in table.values() if place.group != "joint" or place.kind not in ("fixed", "free")]
    return [lookup(name, table, "joint") for name in ((joints,) if isinstance(joints, str) else joints)]


def of_motion(mechanism: Mechanism, axes: str, joints: Any, external: Any) -> ca.Function:
    """Return q, v, a, multipliers, t -> joint_forces; with `external` also forces on these bodies, 6 numbers for each.

    Those are force and moment about the body's origin, in world axes.
    """
    tree = candidates(mechanism)[0]
    q, v, a, lam, t, outer = _symbols(mechanism, external)
    posed = pose_tree(tree, _list(q))
    motions = accelerations(tree.gravity, posed, _list(v), [0.0] * tree.nv)
    rows = TreeMotion(mechanism, tree, posed, q, v, t, motions)
    forces = _outer(mechanism, tree, posed, external, outer)
    wrenches = Wrenches(mechanism, tree, posed, _list(q), _list(v), rows, _list(lam), forces)
    needs = [
        pair_add(*pair) for pair in zip(body_forces(tree, motions), link_sums(tree, wrenches.passive), strict=True)
    ]
    loads = LinkLoads(motions, velocities(posed, _list(a)), needs)
    names = ["q", "v", "a", "multipliers", "t", *(["external"] if external else [])]
    inputs = [q, v, a, lam, t, *([outer] if external else [])]
    table = _expression(wrenches.table(loads, chosen(mechanism, joints), axes))
    return ca.Function("joint_forces_of_motion", inputs, [table], names, ["joint_forces"])


def of_multipliers(mechanism: Mechanism, axes: str, joints: Any, external: Any) -> ca.Function:
    """Return q, multipliers, t -> joint_forces: linear in the multipliers, and in forces on `external` bodies."""
    tree = candidates(mechanism)[0]
    q, _, _, lam, t, outer = _symbols(mechanism, external)
    posed, still = pose_tree(tree, _list(q)), [0.0] * tree.nv
    motions = accelerations(vectors.ZERO, posed, still, still)
    rows = TreeMotion(mechanism, tree, posed, q, ca.SX.zeros(tree.nv), t, motions)
    forces = _outer(mechanism, tree, posed, external, outer)
    wrenches = Wrenches(mechanism, tree, posed, _list(q), still, rows, _list(lam), forces, massive=False)
    names = ["q", "multipliers", "t", *(["external"] if external else [])]
    inputs = [q, lam, t, *([outer] if external else [])]
    table = _expression(wrenches.table(None, chosen(mechanism, joints), axes))
    return ca.Function("joint_forces_of_multipliers", inputs, [table], names, ["joint_forces"])


def joint_forces(
    mechanism: Mechanism, route: str, metric: Any, dtype: str, axes: str, joints: Any, flexible: Any = None
) -> ca.Function:
    """Return q, v, tau, t -> joint_forces (k, 6), acceleration, multipliers, status, unique (k, 6).

    Of redundant rows that is the member that joints with compliance choose, `flexible` or all alike; with a `metric`,
    which weighs the squares of multipliers, that of the least multipliers.
    """
    if not mechanism.names:
        return _open_tree(mechanism, route, axes, joints)
    from dalembert.tree.block.constrained import Tracing
    from dalembert.tree.routes.route_table import quickest, routes_to_take

    check_axes(axes)
    if metric is not None and flexible is not None:
        raise ModelError("metric weighs multipliers, flexible joints store energy: give one of them, not both")
    setting, stiff = Tracing.of(mechanism, metric, dtype), None if flexible is None else dict(flexible)
    return quickest(_joint_forces_by(setting, way, axes, joints, stiff) for way in routes_to_take(setting, route))


def _joint_forces_by(
    setting: Tracing, route: TreeRoute, axes: str, joints: Any, flexible: Mapping[str, Any] | None
) -> ca.Function:
    """Return forward dynamics by one route, with the wrenches that go with it."""
    from dalembert.tree.block.constrained import FORWARD_INPUTS, forward_answer

    mechanism, answer = setting.mechanism, forward_answer(setting, route)
    q, v, rows = setting.symbol("q"), setting.symbol("v"), setting.tree_rows.motion
    lam, status, places = list(answer.multipliers), answer.status, chosen(mechanism, joints)
    state = Wrenches(mechanism, setting.tree, setting.posed, q, v, rows, lam)
    loads = LinkLoads(rows.motions, velocities(setting.posed, answer.acceleration), setting.load.links)
    unique: list[Scalar] = [1.0] * (6 * len(places))
    if not setting.needs.redundant:
        table = state.table(loads, places, axes)
    else:
        everywhere = transmissions(mechanism)
        W = members.Loads(_flat(state.table(loads, everywhere, "child")), lam)
        T = [
            members.Loads(_flat(state.of_multipliers(Z).table(None, everywhere, "child")), Z)
            for Z in members.member_multipliers(setting)
        ]
        if setting.metric is None:
            choice = members.chosen_member(setting, W, T, flexible)
            W, T, lam = choice.loads, choice.open, choice.loads.multipliers
            status = members.certified(setting, status, choice)
        table, *turned = (_turned(state, turned_state.wrenches, places, axes) for turned_state in (W, *T))
        if T:
            unique = members.unique_here(setting, T, [_flat(turned_state) for turned_state in turned])
    outputs = {"joint_forces": table, "acceleration": answer.acceleration, "multipliers": lam, "status": [status]}
    outputs["unique"] = _where_solved(unique, status)
    return setting.function("joint_forces", FORWARD_INPUTS, outputs)


def _flat(table: list[list[Scalar]]) -> list[Scalar]:
    return [x for row in table for x in row]


def _turned(state: Wrenches, flat: list[Scalar], asked: Sequence[Transmission], axes: str) -> list[list[Scalar]]:
    """Return the wrenches of some transmissions in the axes that were asked for, of those of all in the children's."""
    places = {at.name: 6 * i for i, at in enumerate(transmissions(state.mechanism))}
    result = []
    for at in asked:
        f1, f2, f3, n1, n2, n3 = flat[places[at.name] : places[at.name] + 6]
        result.append(state.in_axes(at, ((f1, f2, f3), (n1, n2, n3)), axes))
    return result


def _where_solved(unique: list[Scalar], status: Scalar) -> list[list[Scalar]]:
    """Return what is said of components, (k, 6), as none where a sample has no answer."""
    solved = ca.SX(status) <= int(Status.ILL_CONDITIONED)
    flat = [solved if type(x) is float else ca.SX(x) * solved for x in unique]
    return [flat[i : i + 6] for i in range(0, len(flat), 6)]


def _open_tree(mechanism: Mechanism, route: str, axes: str, joints: Any) -> ca.Function:
    """Return forward dynamics of a tree without constraint rows, with the wrenches of its joints."""
    if route not in ("auto", "aba"):
        raise ModelError(f"{mechanism.name!r} has no constraints: route={route!r} is not one of 'auto', 'aba'")
    dynamics.refuse_singular(mechanism, candidates(mechanism)[0])
    algorithm = partial(_forward_and_wrenches, mechanism, axes, chosen(mechanism, joints))
    tree, _ = cheapest(mechanism, algorithm)
    q, v, tau = (ca.SX.sym(name, size) for name, size in (("q", tree.nq), ("v", tree.nv), ("tau", tree.nv)))
    a, rows = algorithm(tree, pose_tree(tree, _list(q)), _list(q), _list(v), _list(tau))
    a, table = _expression(a), _expression(rows)
    status = status_of_numbers(a)
    outputs = {"joint_forces": table, "acceleration": a, "multipliers": ca.SX(0, 1), "status": status}
    outputs["unique"] = _expression(_where_solved([1.0] * table.numel(), status))
    inputs = [q, v, tau, ca.SX.sym("t")]
    return ca.Function("joint_forces", inputs, list(outputs.values()), ["q", "v", "tau", "t"], list(outputs))


def _forward_and_wrenches(
    mechanism: Mechanism, axes: str, joints: list[Transmission],
    tree: Tree, posed: list[Posed], q: list[Scalar], v: list[Scalar], tau: list[Scalar],
) -> list[Any]:  # fmt: skip
    """Return accelerations by the articulated-body algorithm, and wrenches, of an open tree."""
    motions = accelerations(tree.gravity, posed, v, [0.0] * tree.nv)
    pairs = zip(body_forces(tree, motions), spring_forces(tree, posed, v), strict=True)
    needs = [pair_add(*pair) for pair in pairs]
    rest = [sub(t, r) for t, r in zip(tau, joint_resistance(tree, posed, q, v), strict=True)]
    factor = articulated_factor(tree, posed)
    qdd, beyond = factor.accelerate(factor.push(dict(enumerate(needs)), sparse(rest)))
    wrenches = Wrenches(mechanism, tree, posed, q, v)
    return [dense(qdd, tree.nv), wrenches.table(LinkLoads(motions, beyond, needs), joints, axes)]


def _expression(values: list[Any]) -> ca.SX:
    return as_expression(values) if values else ca.SX(0, 1)


def _symbols(mechanism: Mechanism, external: Any) -> list[ca.SX]:
    sizes = (mechanism.nq, mechanism.nv, mechanism.nv, len(mechanism.names), 1, 6 * len(external or ()))
    names = ("q", "v", "a", "multipliers", "t", "external")
    return [ca.SX.sym(name, size) for name, size in zip(names, sizes, strict=True)]


def _list(column: ca.SX) -> list[Scalar]:
    return [column[i] for i in range(column.numel())]


def _outer(mechanism: Mechanism, tree: Tree, posed: list[Posed], external: Any, outer: ca.SX) -> dict[int, Pair]:
    """Return forces that act on bodies from outside as what the bodies need less, each in the frame of its link."""
    forces: dict[int, Pair] = {}
    world = poses(posed) if external else []
    for i, name in enumerate(external or ()):
        k = mechanism.body_index(name)
        body = tree.bodies[k]
        x = [-outer[6 * i + j] for j in range(6)]
        f, n = (x[0], x[1], x[2]), (x[3], x[4], x[5])
        if body.link >= 0:
            f, n = (vectors.transposed_times(world[body.link].R, u) for u in (f, n))
        forces[k] = f, vectors.add(n, cross(vector(body.place.position), f))
    return forces
