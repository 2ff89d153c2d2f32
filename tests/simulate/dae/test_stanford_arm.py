"""Y5, Y12: inverse, then forward dynamics of the Stanford arm with the same stepper."""

import casadi as ca
import numpy as np
from scipy.interpolate import CubicSpline

import dalembert as da
from dalembert.examples import CENTRES, FRAMES, INERTIAS, MASSES
from dalembert.simulate import Problem

NAMES = [f"q{i + 1}" for i in range(6)]


def arm() -> da.Lagrangian:
    """The arm in joint coordinates, from its energies: velocities of the links by differentiating their frames."""
    q, v, tau = ca.SX.sym("q", 6), ca.SX.sym("v", 6), ca.SX.sym("tau", 6)
    R, origin = ca.SX.eye(3), ca.SX.zeros(3)
    spin, kinetic, potential = ca.SX.zeros(3), ca.SX(0), ca.SX(0)
    for i, (kind, theta, d, a, alpha) in enumerate(FRAMES):
        z = R[:, 2]
        spin = spin + (z * v[i] if kind == "revolute" else 0)
        angle = q[i] if theta is None else theta
        c, s = ca.cos(angle), ca.sin(angle)
        origin = origin + R @ ca.vertcat(a * c, a * s, q[i] if d is None else d)
        ca_, sa = np.cos(alpha), np.sin(alpha)
        R = R @ ca.blockcat([[c, -s * ca_, s * sa], [s, c * ca_, -c * sa], [0, sa, ca_]])
        centre = origin + R @ ca.DM(CENTRES["centimetres"][i])
        speed, local = ca.jtimes(centre, q, v), R.T @ spin
        kinetic += MASSES[i] * ca.sumsqr(speed) / 2 + ca.dot(ca.DM(INERTIAS[i]), local * local) / 2
        potential += 9.81 * MASSES[i] * centre[2]
    return da.Lagrangian(q, v, kinetic=kinetic, potential=potential, forces=tau, controls=tau, coordinates=NAMES)


def test_Y5_inverse_then_forward_on_the_stanford_arm():
    """A smooth motion of all joints; its torques drive the arm along the same motion."""
    t, system = ca.SX.sym("t"), arm()
    start = np.array([0.3, -0.7, 0.5, 0.4, -0.9, 0.6])
    swing = 0.2 * (1 - ca.cos(2 * t))
    known = {name: float(x) + (1 + 0.2 * i) * swing for i, (name, x) in enumerate(zip(NAMES, start, strict=True))}
    back = Problem(system, known=known, time=t).integrate((0, 1), rtol=1e-8, max_step=0.05)
    assert back.success
    # at every step the torques are those of M a + bias
    motion = [np.array([back[name] for name in NAMES]).T, np.array([back[f"{name}'"] for name in NAMES]).T]
    rates = np.cumsum(np.full(6, 0.2)) + 0.8
    a = 0.8 * np.cos(2 * back.t)[:, None] * rates
    torque = np.array([back[f"tau_{i}"] for i in range(6)]).T
    M, bias = system.mass_matrix(motion[0]), system.bias(*motion, u=np.zeros(6))
    assert np.abs(torque - np.einsum("nij,nj->ni", M, a) - bias).max() < 1e-9 * np.abs(torque).max()
    times = np.linspace(0, 1, 401)
    drive = {f"tau_{i}": CubicSpline(times, back.sol(times)[i]) for i in range(6)}
    ahead = Problem(system, known=drive).integrate((0, 1), start, np.zeros(6), rtol=1e-9, atol=1e-9)
    assert ahead.success
    end = start + rates * 0.2 * (1 - np.cos(2.0))
    assert np.abs(ahead.y[:6, -1] - end).max() < 1e-5
