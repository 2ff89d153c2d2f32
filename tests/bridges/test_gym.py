"""Environments: Gymnasium's own checker and wrappers, Pendulum-v1's equations, copies that do not see each other."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import dalembert as da

gymnasium = pytest.importorskip("gymnasium")
bridge = pytest.importorskip("dalembert.bridges.gym")

SMALL = ("LightCartPole", "FourBar")


def task(name):
    from dalembert.bridges.gym.tasks import EXAMPLES

    return EXAMPLES[name][0]()


def pendulum(step=0.05, method="euler"):
    """The rod of Pendulum-v1: theta = 0 is upright, m = l = 1, g = 10, torque up to 2."""
    b = da.Builder("pendulum", gravity=(0, 0, -10.0))
    b.body("rod", mass=1.0, center=(0, 0, 0.5), inertia=(1 / 12, 1 / 12, 0))
    b.joint("pivot", "revolute", "world", "rod", axis=(0, 1, 0))

    def wrapped(q):
        return (q[:, 0] + np.pi) % (2 * np.pi) - np.pi

    return bridge.EnvTask(
        b.build(),
        ["pivot"],
        [2.0],
        observe=lambda q, v: np.column_stack([np.cos(q), np.sin(q), v]),
        reward=lambda q, v, u: -(wrapped(q) ** 2 + 0.1 * v[:, 0] ** 2 + 0.001 * (2 * u[:, 0]) ** 2),
        start=lambda rng, n: (rng.uniform(-np.pi, np.pi, (n, 1)), rng.uniform(-1, 1, (n, 1))),
        step=step,
        substeps=1,
        horizon=200,
        method=method,
    )


def test_pendulum_of_gymnasium():
    """The same equations and the same semi-implicit step as Pendulum-v1: the same states for a hundred steps."""
    theirs = gymnasium.make("Pendulum-v1").unwrapped
    theirs.reset(seed=0)
    env = bridge.VectorEnv(pendulum(), 1)
    env.reset(seed=0)
    theirs.state = np.array([0.7, -0.3])
    env.motion.batch.place(np.array([True]), np.array([[0.7]]), np.array([[-0.3]]))
    rng = np.random.default_rng(0)
    for _ in range(100):
        u = rng.uniform(-1, 1)
        theirs.step(np.array([2 * u]))
        env.step(np.array([[u]]))
        assert abs(theirs.state[1]) < 8.0  # where Pendulum-v1 cuts the speed
        np.testing.assert_allclose(env.motion.batch.q[0, 0], theirs.state[0], rtol=0, atol=1e-10)
        np.testing.assert_allclose(env.motion.batch.v[0, 0], theirs.state[1], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", SMALL)
def test_single_passes_the_checker(name):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of infinite observation spaces
        env = gymnasium.make(f"dalembert/{name}-v0")
        check_env(env.unwrapped, skip_render_check=True)
    assert env.spec.max_episode_steps == task(name).horizon


def test_many_are_the_single_ones_side_by_side():
    """SameStep against Gymnasium's SyncVectorEnv of single environments: every array bit for bit, every mask."""
    size, horizon = 3, 4
    ours = bridge.VectorEnv(pendulum(), size, autoreset_mode="SameStep", max_episode_steps=horizon)
    single = lambda: gymnasium.wrappers.TimeLimit(bridge.Env(pendulum()), horizon)  # noqa: E731
    theirs = gymnasium.vector.SyncVectorEnv([single] * size, autoreset_mode="SameStep")
    ours.reset(seed=0), theirs.reset(seed=0)
    batches = [env.unwrapped.motion.batch for env in theirs.envs]
    ours.motion.batch.place(np.ones(size, dtype=bool), *([getattr(b, x)[0] for b in batches] for x in "qv"))
    for k in range(horizon):
        action = np.random.default_rng(k).uniform(-1, 1, (size, 1)).astype(np.float32)
        (*mine, info), (*wanted, their_info) = ours.step(action), theirs.step(action)
        for found, each in zip(mine[k == horizon - 1 :], wanted[k == horizon - 1 :], strict=True):  # but new starts
            np.testing.assert_array_equal(found, each)
            assert found.dtype == each.dtype
        assert set(info) == set(their_info) | {"solved", "_solved"}  # of all copies, also of those that begin anew
    np.testing.assert_array_equal(info["final_obs"], np.stack(their_info["final_obs"]))
    for word in ("final_info", "_final_info", "_final_obs"):
        np.testing.assert_equal(info[word], their_info[word])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_reward_may_be_a_view_of_the_states(mode):
    """The speed as reward: it does not change once it is out, and the states are those of any other reward."""
    speedy = replace(pendulum(), reward=lambda q, v, u: v[:, 0])
    env, other = (bridge.VectorEnv(each, 2, autoreset_mode=mode, max_episode_steps=2) for each in (speedy, pendulum()))
    env.reset(seed=0), other.reset(seed=0)
    seen = []
    for _ in range(4):
        seen.append(env.step(np.zeros((2, 1)))[1])
        seen.append(seen[-1].copy())
        other.step(np.zeros((2, 1)))
        np.testing.assert_array_equal(env.motion.batch.v, other.motion.batch.v)
    np.testing.assert_array_equal(seen[::2], seen[1::2])


@pytest.mark.parametrize(("library", "module"), [("torch", "torch"), ("jax", "jax.numpy")])
def test_arrays_of_other_libraries(library, module):
    """In and out, the numbers of NumPy in single precision; those that are out stay as they are."""
    guest = pytest.importorskip(module)
    numpy, other = (
        bridge.VectorEnv(pendulum(), 3, autoreset_mode="SameStep", max_episode_steps=3, arrays=arrays)
        for arrays in ("numpy", library)
    )
    first, kept = other.reset(seed=2)[0], numpy.reset(seed=2)[0]
    kind = type(guest.asarray([0.0]))
    for _ in range(4):
        action = np.full((3, 1), 0.25, dtype=np.float32)
        found, wanted = other.step(guest.asarray(action)), numpy.step(action)
        for one, two in zip(found[:4], wanted[:4], strict=True):
            assert isinstance(one, kind)
            np.testing.assert_array_equal(np.asarray(one, dtype=np.float32), np.float32(two))
        assert isinstance(found[4]["solved"], kind)
    np.testing.assert_array_equal(np.asarray(first), kept)
    mask = guest.asarray(np.array([True, False, False]))
    before = other.motion.batch.q.copy()
    other.reset(options={"reset_mask": mask})
    np.testing.assert_array_equal(other.motion.batch.q[1:], before[1:])


def test_copies_do_not_see_each_other():
    """States of a copy are those of a batch of one, bit for bit."""
    many = bridge.VectorEnv(task("FourBar"), 5)
    many.reset(seed=3)
    q, v = many.motion.batch.q.copy(), many.motion.batch.v.copy()
    actions = np.random.default_rng(1).uniform(-1, 1, (10, 5, 1))
    for action in actions:
        many.step(action)
    for k in range(5):
        one = bridge.VectorEnv(task("FourBar"), 1)
        one.reset(seed=0)
        one.motion.batch.place(np.array([True]), q[k], v[k])
        for action in actions:
            one.step(action[k : k + 1])
        np.testing.assert_array_equal(one.motion.batch.q[0], many.motion.batch.q[k])
    mechanism = task("FourBar").mechanism
    assert np.abs(mechanism.constraint(many.motion.batch.q)).max() < 1e-9 * mechanism.reach


def test_redundant_rows_of_few_digits_are_held():
    """A hinge 3e-9 m beside the plane of a linkage, within the digits of a built model: it moves as the exact one."""
    exact = task("FourBar")
    pin = exact.mechanism.constraints[0]
    off = da.Revolute("rocker", at=(1.1, 3e-9, 0), placement=(0.8, 0, 0), axis=pin.axis, name="pin")
    near = replace(exact, mechanism=replace(exact.mechanism, constraints=()).constrain(off))
    ends = []
    for each in (exact, near):
        env = bridge.VectorEnv(each, 2)
        env.reset(seed=0)
        q = exact.mechanism.project([1.0, -0.7, -1.5])
        env.motion.batch.place(np.ones(2, dtype=bool), q, np.zeros(3))
        for _ in range(10):
            info = env.step(np.full((2, 1), 0.3))[-1]
            assert info["solved"].all()
        ends.append(env.motion.batch.q)
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-7)
    assert np.abs(near.mechanism.constraint(ends[1])).max() < near.mechanism.slack


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_episodes_begin_anew_as_declared(mode):
    env = bridge.VectorEnv(pendulum(), 3, autoreset_mode=mode, max_episode_steps=4)
    assert env.metadata["autoreset_mode"].value == mode
    first, _ = env.reset(seed=1)
    kept = first.copy()
    for k in range(4):
        observation, _, terminated, truncated, info = env.step(np.zeros((3, 1)))
        assert truncated.all() == (k == 3)
        assert not terminated.any()
    np.testing.assert_array_equal(first, kept)  # what was returned is not written again
    if mode == "SameStep":
        assert info["_final_obs"].all()
        assert (info["final_obs"] != observation).any()
        assert not env.step(np.zeros((3, 1)))[3].any()
    elif mode == "NextStep":
        _, reward, _, truncated, _ = env.step(np.zeros((3, 1)))
        assert not reward.any()
        assert not truncated.any()
    else:
        with pytest.raises(da.ModelError, match="reset_mask"):
            env.step(np.zeros((3, 1)))
        before = env.motion.batch.q.copy()
        env.reset(options={"reset_mask": np.array([True, False, False])})
        np.testing.assert_array_equal(env.motion.batch.q[1:], before[1:])
        assert env.motion.batch.q[0] != before[0]


def test_wrappers_of_gymnasium_take_it():
    wrappers = gymnasium.wrappers.vector
    env = gymnasium.make_vec("dalembert/LightCartPole-v0", num_envs=4)
    env = wrappers.RecordEpisodeStatistics(wrappers.NormalizeObservation(env))
    env.reset(seed=0)
    for _ in range(3):
        observation = env.step(env.action_space.sample())[0]
    assert observation.shape == (4, 5)


def test_a_copy_without_an_answer_ends(monkeypatch):
    """Its episode terminates, its numbers stay where they were, the others go on."""
    env = bridge.VectorEnv(pendulum(), 2)
    env.reset(seed=0)
    batch = env.motion.batch
    forward = batch.forward

    def failing(q, v, tau, t):
        a, lam, status = forward(q, v, tau, t)
        a[0], status[0] = np.nan, da.Status.MASSLESS
        return a, lam, status

    monkeypatch.setattr(batch, "forward", failing)
    before = batch.q.copy()
    observation, _, terminated, _, info = env.step(np.zeros((2, 1)))
    assert terminated.tolist() == [True, False]
    assert info["solved"].tolist() == [False, True]
    assert batch.q[0] == before[0] != batch.q[1]
    assert np.isfinite(observation).all()


def test_misuse_is_named():
    with pytest.raises(da.ModelError, match="limits"):
        bridge.EnvTask(**{**vars(pendulum()), "limits": []})
    with pytest.raises(da.ModelError, match="method"):
        bridge.VectorEnv(pendulum(method="leapfrog"), 1)
    with pytest.raises(da.ModelError, match="arrays"):
        bridge.VectorEnv(pendulum(), 1, arrays="lists")
    with pytest.raises(da.ShapeError, match=r"\(3, 1\), not \(1, 3\)"):
        bridge.VectorEnv(pendulum(), 3).step(np.zeros((1, 3)))
    with pytest.raises(da.ShapeError, match=r"reward.* is \(3,\), not \(3, 1\)"):
        bridge.VectorEnv(replace(pendulum(), reward=lambda q, v, u: v), 3).step(np.zeros((3, 1)))
    with pytest.raises(da.ShapeError, match=r"terminated.* is \(3,\), not \(\)"):
        bridge.VectorEnv(replace(pendulum(), terminated=lambda q, v: False), 3).step(np.zeros((3, 1)))
    with pytest.raises(da.ShapeError, match=r"observe.* is \(3, k\), not \(3,\)"):
        bridge.VectorEnv(replace(pendulum(), observe=lambda q, v: q[:, 0]), 3)


def test_cassie_moves_its_legs_through_its_loops():
    """Ten motors through rods and leaf springs: every copy is answered, loops stay closed to the file's digits."""
    legs = task("CassieLegs")
    env = bridge.VectorEnv(legs, 4)
    env.reset(seed=0)
    rng = np.random.default_rng(1)
    for _ in range(10):
        *_, info = env.step(rng.uniform(-0.3, 0.3, (4, 10)).astype(np.float32))
        assert info["solved"].all()
    mechanism, moving = legs.mechanism, env.motion.batch
    assert len(mechanism.names) == 12
    assert mechanism.generic_rank().rank == 10
    assert np.abs(mechanism.constraint(moving.q)).max() < mechanism.slack * mechanism.reach
    rate = [mechanism.constraint_velocity(q, v) for q, v in zip(moving.q, moving.v, strict=True)]
    assert np.abs(rate).max() < 1e-5 * np.abs(moving.v).max()
