"""Y15: Kirchhoff's laws and Tellegen's theorem as a Dirac structure; circuits and motors as a tableau, in time."""

from functools import cache

import numpy as np
import pytest

import dalembert as da
from dalembert.errors import ModelError, SolvabilityError
from dalembert.examples import stanford_arm
from dalembert.tableau import Circuit, DiracStructure, connect, newton_euler, signature, sparse_tableau_method

HENRY, FARAD = 0.3, 0.02
SECTIONS = 4


def ladder(split: bool = False, loss: float = 0.0) -> Circuit:
    """Inductors in a row from a shorted end, a capacitor to the ground at every node; halves in parallel if split."""
    c = Circuit()
    for k in range(SECTIONS):
        c.inductor(f"L{k}", f"n{k}" if k else "ground", f"n{k + 1}", HENRY)
        for half in "ab" if split else "a":
            c.capacitor(f"C{k}{half}", f"n{k + 1}", "ground", FARAD / (2 if split else 1))
    if loss:
        c.resistor("loss", f"n{SECTIONS}", "ground", loss)
    return c


def mode(k: int, t):
    """Voltages of the nodes (.., SECTIONS) and currents of the inductors in mode k of the ladder, in closed form."""
    theta = (2 * k - 1) * np.pi / (2 * SECTIONS + 1)
    omega = 2 / np.sqrt(HENRY * FARAD) * np.sin(theta / 2)
    t = np.asarray(t, dtype=float)[..., None]
    shape = np.sin(theta * np.arange(1, SECTIONS + 1))
    drop = np.diff(np.concatenate([[0.0], shape]))
    return np.cos(omega * t) * shape, -np.sin(omega * t) * drop / (omega * HENRY)


def first_point(tableau, values) -> np.ndarray:
    """Consistent unknowns from those of them that are given, with what is known."""
    still = tableau.with_known([*values], instant=True)
    found = still.solve(values)
    return np.array([values[u] if u in values else found[u] for u in tableau.unknowns])


def everything(run, tableau, known) -> dict[str, np.ndarray]:
    return {u: run[u] for u in tableau.unknowns} | {n: np.broadcast_to(x, run.t.shape) for n, x in known.items()}


def test_Y15_kirchhoff_and_tellegen_are_a_dirac_structure():
    """Currents are velocities, voltages forces of constraints; the split has entries 0, 1, -1."""
    c = ladder(split=True, loss=5.0)
    D = c.dirac()
    assert all(value < 1e-12 for value in D.checks().values())
    assert len(D.split.dependent) == len(c.nodes) - 1  # one row of N follows from the others
    assert set(np.unique(np.round(D.split.J, 12))) <= {-1.0, 0.0, 1.0}
    np.testing.assert_allclose(c.loops() @ D.N.T, 0, atol=0)
    rng = np.random.default_rng(0)
    i, u = D.B @ rng.standard_normal(D.B.shape[1]), D.N.T @ rng.standard_normal(len(c.nodes))
    assert abs(u @ i) < 1e-13


def test_Y15_redundant_loops_are_the_dual_structure():
    """Twice as many loops as are independent: voltages as velocities, currents as forces."""
    c = ladder(split=True)
    loops = c.loops()
    rng = np.random.default_rng(1)
    more = np.vstack([loops, rng.integers(-1, 2, (len(loops), len(loops))) @ loops])
    D = DiracStructure.of(more)
    assert len(D.split.dependent) == len(loops)
    potentials = rng.standard_normal(len(c.nodes))
    np.testing.assert_allclose(more @ (c.incidence.T @ potentials), 0, atol=1e-12)
    currents = more.T @ rng.standard_normal(len(more))
    np.testing.assert_allclose(c.incidence @ currents, 0, atol=1e-12)


@pytest.mark.parametrize("form", ["split", "potentials"])
@pytest.mark.parametrize("split", [False, True], ids=["plain", "loops of capacitors"])
def test_Y15_lc_ladder_in_closed_form(form, split):
    """Mode 2 with order 4, laws at every sample; halves in parallel are a redundant loop of states, index 2."""
    c = ladder(split)
    tableau = c.tableau(form)
    assert signature(tableau).index == (2 if split else 1)
    errors = []
    for n in (40, 80):
        h = 0.3 / n
        times = h * np.arange(4)
        voltages, currents = mode(2, times)
        halves = "ab" if split else "a"
        given = {f"u C{k}{x}": voltages[:, k] for k in range(SECTIONS) for x in halves}
        given |= {f"i L{k}": currents[:, k] for k in range(SECTIONS)}
        flow = {f"i C{k}": currents[:, k] - (currents[:, k + 1] if k + 1 < SECTIONS else 0) for k in range(SECTIONS)}
        given |= {f"i C{k}{x}": flow[f"i C{k}"] / len(halves) for k in range(SECTIONS) for x in halves}
        given |= {f"u L{k}": (voltages[:, k - 1] if k else 0) - voltages[:, k] for k in range(SECTIONS)}
        given |= {f"phi n{k + 1}": voltages[:, k] for k in range(SECTIONS)}
        given["phi ground"] = 0 * times
        if "phi n4" in tableau.unknowns and "phi ground" in tableau.unknowns:  # another node is the reference
            other = next(f"phi n{k}" for k in range(1, 5) if f"phi n{k}" not in tableau.unknowns)
            given |= {f"phi n{k}": given[f"phi n{k}"] - given[other] for k in range(1, 5)}
        first = np.stack([given[u] for u in tableau.unknowns], axis=-1)
        run = sparse_tableau_method(tableau, first, h, n - 3, 4)
        balance = c.balance(everything(run, tableau, {}))
        assert max(balance.values()) < 1e-12, balance
        exact = mode(2, run.t)[0]
        errors.append(max(np.abs(run[f"u C{k}{x}"] - exact[:, k]).max() for k in range(SECTIONS) for x in halves))
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.3)
    assert errors[1] < 1e-3


def test_Y15_ladder_by_the_stepper_of_variable_order():
    c = ladder()
    tableau = c.tableau()
    voltages, currents = mode(1, 0.0)
    start = {f"u C{k}a": voltages[k] for k in range(SECTIONS)} | {f"i L{k}": currents[k] for k in range(SECTIONS)}
    x = first_point(tableau, start)
    run = da.simulate(tableau, 0.5, x, rtol=1e-9, atol=1e-11)
    assert run.ok
    exact = mode(1, run.t)[0]
    assert max(np.abs(run[f"u C{k}a"] - exact[:, k]).max() for k in range(SECTIONS)) < 1e-6
    assert max(c.balance({u: run[u] for u in tableau.unknowns}).values()) < 1e-9


K, OHM, COIL, ROTOR, VOLT = 0.05, 0.8, 2e-3, 1e-4, 12.0


def drive() -> Circuit:
    c = Circuit()
    c.voltage_source("battery", "a", "ground")
    c.motor("motor", "a", "ground", K, OHM, COIL)
    return c


def test_Y15_dc_motor_in_closed_form():
    """Step of voltage on a rotor: two real time constants."""
    b = da.Builder("rotor", gravity=(0, 0, 0))
    b.body("rotor", mass=1.0, inertia=(ROTOR, ROTOR, ROTOR))
    b.joint("shaft", "revolute", parent="world", child="rotor", axis=(0, 0, 1))
    shaft = newton_euler(b.build(), "essential", known=("tau",), instant=False)
    c = drive()
    tableau = connect([c.tableau(), shaft], {"speed motor": "qd", "tau": "torque motor"})
    assert tableau.known == ("u battery",)
    slow, fast = np.roots([COIL * ROTOR, OHM * ROTOR, K**2])[::-1]

    def exact(t):
        speed = VOLT / K * (1 - (fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (fast - slow))
        current = ROTOR / K * VOLT / K * slow * fast * (np.exp(fast * t) - np.exp(slow * t)) / (fast - slow)
        return speed, current

    x = first_point(tableau, {"q": 0.0, "qd": 0.0, "i motor": 0.0, "u battery": VOLT})
    run = sparse_tableau_method(tableau, x, 5e-5, 800, 4, {"u battery": VOLT})
    speed, current = exact(run.t)
    np.testing.assert_allclose(run["qd"], speed, atol=2e-4 * VOLT / K)
    np.testing.assert_allclose(run["i motor"], current, atol=2e-4 * VOLT / OHM)
    values = everything(run, tableau, {"u battery": VOLT})
    assert max(c.balance(values).values()) < 1e-13
    heat, shaft_power = OHM * run["i motor"] ** 2, run["torque motor"] * run["speed motor"]
    stored = run["u motor"] * run["i motor"] - heat - shaft_power  # power into the coil
    energy = COIL * run["i motor"][-1] ** 2 / 2
    assert np.trapezoid(stored, run.t) == pytest.approx(energy, abs=2e-3 * COIL * current.max() ** 2 / 2)


robot = cache(stanford_arm)
GEAR = 60.0
RATES = 0.15 + 0.03 * np.arange(6)
START = np.array([0.3, -0.7, 0.5, 0.4, -0.9, 0.6])


def motion(t):
    t = np.asarray(t, dtype=float)[..., None]
    return START + RATES * (1 - np.cos(2 * t)), 2 * RATES * np.sin(2 * t), 4 * RATES * np.cos(2 * t)


@cache
def driven_arm():
    """The Stanford arm with a motor and a gear on its first joint, one tableau."""
    c = drive()
    arm = newton_euler(robot(), "essential", known=("tau",), instant=False)
    return c, connect([c.tableau(), arm], {"speed motor": ("qd[0]", GEAR), "tau[0]": ("torque motor", GEAR)})


def torque(t):
    return robot().inverse(*motion(t)).tau


def voltage(t):
    """Of the motor that drives joint 1 along the motion, in closed form but for the derivative of its current."""
    current = lambda s: torque(s)[..., 0] / (GEAR * K)  # noqa: E731
    h = 1e-4
    rate = (current(t - 2 * h) - 8 * current(t - h) + 8 * current(t + h) - current(t + 2 * h)) / (12 * h)
    return OHM * current(t) + COIL * rate + K * GEAR * motion(t)[1][..., 0]


def test_Y15_inverse_dynamics_of_arm_and_motor_gives_the_voltage():
    """Known q*(t) alone: 114 blocks of one equation; what the start misses is forgotten after three formulas."""
    c, tableau = driven_arm()
    inverse = tableau.with_known(["q"])
    assert inverse.structure().blocks.sizes.max() == 1
    errors = []
    for n in (40, 80):
        first = np.zeros((3, len(inverse.unknowns)))
        run = sparse_tableau_method(inverse, first, 0.5 / n, n - 2, 3, {"q": lambda t: motion(t)[0]}, engine="loop")
        np.testing.assert_allclose(run["tau"][-1], torque(0.5), rtol=2e-3)
        errors.append(abs(run["u battery"][-1] - voltage(0.5)))
        values = {u: run[u][12:] for u in inverse.unknowns}
        assert max(c.balance(values).values()) < 1e-12
    assert errors[0] / errors[1] == pytest.approx(8, rel=0.35)
    assert errors[1] < 1e-3 * abs(voltage(0.5))


def test_Y15_forward_dynamics_of_arm_and_motor_returns_the_motion():
    c, tableau = driven_arm()
    q, v, _ = motion(0.0)
    known = {"u battery": voltage, **{f"tau[{i}]": (lambda t, i=i: torque(t)[i]) for i in range(1, 6)}}
    start = {"q": q, "qd": v, "i motor": torque(0.0)[0] / (GEAR * K), **{n: f(0.0) for n, f in known.items()}}
    at_start = tableau.with_known([*start], instant=True)
    still = at_start.solve(start, newton=at_start.newton(engine="loop"))
    values = {f"q[{i}]": q[i] for i in range(6)} | {f"qd[{i}]": v[i] for i in range(6)}
    values["i motor"] = start["i motor"]
    x = np.array([values[u] if u in values else still[u] for u in tableau.unknowns])
    run = sparse_tableau_method(tableau, x, 0.5 / 50, 48, 3, known, engine="loop")
    np.testing.assert_allclose(run["q"], motion(run.t)[0], atol=2e-4)
    battery = np.array([voltage(t) for t in run.t])
    values = {u: run[u] for u in tableau.unknowns} | {"u battery": battery}
    assert max(c.balance(values).values()) < 1e-12


def test_Y15_mixed_dynamics_of_arm_and_motor():
    """The motor's voltage is known, two joints follow their motion, three are driven by torques: matched anew."""
    circuit, tableau = driven_arm()
    known = {"u battery": voltage}
    known |= {f"q[{i}]": (lambda t, i=i: motion(t)[0][i]) for i in (1, 2)}
    known |= {f"tau[{i}]": (lambda t, i=i: torque(t)[i]) for i in (3, 4, 5)}
    mixed = tableau.with_known(known)
    assert mixed.structure().solvable
    points = []
    still = newton_euler(robot(), "essential")
    newton = still.newton(engine="loop")
    for t in 0.01 * np.arange(3):
        q, v, a = motion(t)
        state = {"q": q, "qd": v, "qdd": a}
        current = torque(t)[0] / (GEAR * K)
        arm = still.solve(state, newton=newton)
        values = {f"{n}[{i}]": x for n, row in state.items() for i, x in enumerate(row)}
        values |= {f"tau[{i}]": torque(t)[i] for i in range(6)}
        values |= {"i motor": current, "i battery": -current, "u motor": voltage(t), "u battery": voltage(t),
                   "speed motor": GEAR * v[0], "torque motor": K * current}  # fmt: skip
        points.append([values[u] if u in values else arm[u] for u in mixed.unknowns])
    run = sparse_tableau_method(mixed, points, 0.01, 47, 3, known, engine="loop")
    np.testing.assert_allclose(run["q[0]"], motion(run.t)[0][:, 0], atol=2e-4)
    values = {u: run[u] for u in mixed.unknowns} | {"u battery": np.array([voltage(t) for t in run.t])}
    assert max(circuit.balance(values).values()) < 1e-12
    np.testing.assert_allclose(run["tau[1]"][10:], torque(run.t)[10:, 1], rtol=0.01, atol=0.05)


def test_batches_of_circuits():
    c = Circuit()
    c.current_source("source", "ground", "a")
    c.resistor("first", "a", "ground", 2.0)
    c.resistor("second", "a", "ground", 3.0)
    found = c.tableau().solve({"i source": np.array([1.0, 5.0])})
    np.testing.assert_allclose(found["u first"], [1.2, 6.0])


def test_circuits_that_do_not_fit_are_named():
    c = Circuit()
    c.voltage_source("one", "a", "ground")
    c.voltage_source("two", "a", "ground")
    found = c.tableau().structure()
    assert not found.solvable
    with pytest.raises(SolvabilityError, match="i two"):
        found.require()
    with pytest.raises(ModelError, match="two branches are called 'one'"):
        c.resistor("one", "a", "b", 1.0)
    with pytest.raises(ModelError, match="must be finite and positive"):
        c.resistor("three", "a", "b", -1.0)
    with pytest.raises(ModelError, match="both ends are at node 'a'"):
        c.resistor("three", "a", "a", 1.0)
    with pytest.raises(ModelError, match="no values of"):
        c.balance({"i one": 1.0})
    with pytest.raises(ModelError, match="no variable is called 'speed'"):
        connect([drive().tableau()], {"speed": "u motor"})
    with pytest.raises(ModelError, match="names of their own"):
        connect([drive().tableau(), drive().tableau()], {})
    with pytest.raises(ModelError, match="without branches"):
        Circuit().tableau()
