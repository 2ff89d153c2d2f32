"""The Coriolis matrix of the open tree: bias = C v + N, M' - 2 C skew-symmetric.

Symbols: J_r the velocity of a body's point r is J_r v; J_r' its rate at fixed axes. Every particle has kinetic energy
1/2 dm |J_r v|^2 and needs the force dm (J_r a + J_r' v), so

    M = sum ∫ J_r^T J_r dm        C = sum ∫ J_r^T J_r' dm        M' - 2 C = sum ∫ (J_r'^T J_r - J_r^T J_r') dm

is skew-symmetric; where velocities are rates of coordinates C_ij = Gamma_ijk v_k has Christoffel's symbols. With the
joints' columns S = (s, z), S' = V x S, and the particle's velocity u = V_o + w x r, a link's own part is

    J_r' = G S' + G' S,  G = [1, -r x],  G' = [0, -u x]
    ∫ G^T G' dm = [ 0   -p x        ]        p = ∫ u dm = m V_o + w x h
                  [ 0   tr(W) 1 - W ]        W = ∫ u r^T dm = V_o h^T + [w x] E

where p and W add up over links as inertias do: moved by d, W becomes W + p d^T. Columns walk inward as those of M.

Source: S. Echeandia, P. M. Wensing, "Numerical methods to compute the Coriolis matrix and Christoffel symbols for
rigid-body systems", J. Comput. Nonlinear Dyn. 16 (2021), Algorithm 1; the ten moments in place of its 6 x 6 matrices.
Johnson, "Block Matrix Solutions", eq. (19) has C v and N apart.
"""

from __future__ import annotations

from typing import NamedTuple

from dalembert.kkt.expressions.scalars import add, total
from dalembert.tree.algebra import vectors
from dalembert.tree.algebra.rigid import Rigid
from dalembert.tree.algebra.rigid import momentum as momentum_of
from dalembert.tree.algebra.screws import Element, Pair, Screw
from dalembert.tree.algebra.vectors import PLACE, ZERO, Matrix, Vector, cross, scale
from dalembert.tree.algorithms.inverse import composites
from dalembert.tree.algorithms.kinematics import velocities
from dalembert.tree.prepared.configuration import Posed, inward, pair_add
from dalembert.tree.prepared.link import Tree
from dalembert.types import Scalar


class Flow(NamedTuple):
    """How mass flows: p = ∫ u dm, and W = ∫ u r^T dm by its columns."""

    p: Vector = ZERO
    W: Matrix = (ZERO, ZERO, ZERO)

    def add(self, other: Flow) -> Flow:
        """Return the flow of both, given in one frame."""
        x, y, z = (vectors.add(a, b) for a, b in zip(self.W, other.W, strict=True))
        return Flow(vectors.add(self.p, other.p), (x, y, z))

    def out(self, element: Element) -> Flow:
        """Return it in frame A of an element: R p, R W R^T + R p d^T."""
        p = element.out(self.p)
        rows = [element.out(row) for row in transposed(columns_out(element, self.W))]
        W = list(transposed((rows[0], rows[1], rows[2])))
        if isinstance(element, Screw):
            W[element.k] = vectors.add(W[element.k], scale(element.d, p))
        return Flow(p, (W[0], W[1], W[2]))

    def force(self, z: Vector) -> Pair:
        """Return ∫ G^T G' dm times (s, z)."""
        return cross(z, self.p), vectors.difference(self._traced(z), vectors.columns_times(self.W, z))

    def force_transposed(self, s: Vector, z: Vector) -> Pair:
        """Return its transpose times (s, z)."""
        moment = vectors.difference(self._traced(z), vectors.transposed_times(self.W, z))
        return ZERO, vectors.add(cross(self.p, s), moment)

    def _traced(self, z: Vector) -> Vector:
        return scale(total(*(self.W[k][k] for k in range(3))), z)


def columns_out(element: Element, columns: Matrix) -> Matrix:
    """Return R times the matrix with these columns."""
    x, y, z = (element.out(column) for column in columns)
    return x, y, z


def transposed(columns: Matrix) -> Matrix:
    """Return the matrix with these rows."""
    x, y, z = ((columns[0][k], columns[1][k], columns[2][k]) for k in range(3))
    return x, y, z


def flow(inertia: Rigid, velocity: Pair) -> Flow:
    """Return p = m V + w x h and W = V h^T + [w x] E of one link about its origin."""
    m, h, E = inertia
    V, w = velocity
    moments = [(E[PLACE[0][k]], E[PLACE[1][k]], E[PLACE[2][k]]) for k in range(3)]
    x, y, z = (vectors.add(scale(h[k], V), cross(w, moments[k])) for k in range(3))
    return Flow(vectors.add(scale(m, V), cross(w, h)), (x, y, z))


def flow_out(i: int, link: Posed, carried: Flow) -> Flow:
    """Return a flow of the link's frame in its parent's."""
    for element in reversed(link.path):
        carried = carried.out(element)
    return carried


def coriolis_matrix(tree: Tree, posed: list[Posed], v: list[Scalar]) -> list[list[Scalar]]:
    """Return C, nv rows of nv scalars; zeros between branches are floats."""
    C: list[list[Scalar]] = [[0.0] * tree.nv for _ in range(tree.nv)]
    moving = velocities(posed, v)
    own = [flow(link.inertia, velocity) for link, velocity in zip(tree.links, moving, strict=True)]
    flows, _ = inward(posed, own, Flow(), flow_out, Flow.add)
    turning = [[(S, turned(velocity, S)) for S in subspace(tree, i)] for i, velocity in enumerate(moving)]
    for i, Ic in enumerate(composites(tree, posed)):
        for place, (S, rate) in enumerate(turning[i]):
            along = pair_add(momentum_of(Ic, *rate), flows[i].force(S[1]))
            back = momentum_of(Ic, *S), flows[i].force_transposed(*S)
            _fill(tree, posed, C, turning, i, tree.links[i].v + place, along, back)
    return C


def subspace(tree: Tree, i: int) -> list[Pair]:
    """Return the columns (s, z) of S of a link's joint, in the link's frame."""
    link, columns = tree.links[i], []
    for place in range(len(link.axes)):
        unit: list[Scalar] = [0.0] * tree.nv
        unit[link.v + place] = 1.0
        columns.append(link.relative(unit))
    return columns


def turned(velocity: Pair, S: Pair) -> Pair:
    """Return V x S = (w x s + V x z, w x z): the rate of a column that is fixed in a link, at fixed axes."""
    (V, w), (s, z) = velocity, S
    return vectors.add(cross(w, s), cross(V, z)), cross(w, z)


def _fill(
    tree: Tree, posed: list[Posed], C: list[list[Scalar]], turning: list[list[tuple[Pair, Pair]]], i: int, column: int,
    along: Pair, back: tuple[Pair, Pair],
) -> None:  # fmt: skip
    """Write C_kj = S_k^T (Ic S_j' + B S_j) for every k inward of j, and C_jk = S_k'^T (Ic S_j) + S_k^T (B^T S_j)."""
    momentum, flowing = back
    for j in tree.ancestors(i):
        for place, (S, rate) in enumerate(turning[j]):
            row = tree.links[j].v + place
            C[row][column] = power(S, along)
            if j != i:
                C[column][row] = add(power(rate, momentum), power(S, flowing))
        if tree.links[j].parent >= 0:
            along, momentum, flowing = (posed[j].force_out(force) for force in (along, momentum, flowing))


def power(motion: Pair, force: Pair) -> Scalar:
    """Return v . f + w . n."""
    return add(vectors.dot(motion[0], force[0]), vectors.dot(motion[1], force[1]))
