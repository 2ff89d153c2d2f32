"""The face of rsl_rl: its interface, its PPO for two iterations, episodes as Gymnasium's environment has them."""

from __future__ import annotations

import numpy as np
import pytest

import dalembert as da

pytest.importorskip("gymnasium")
torch = pytest.importorskip("torch")
rsl_rl = pytest.importorskip("rsl_rl")
from dalembert.bridges.gym import RslVecEnv, VectorEnv  # noqa: E402
from tests.bridges.test_gym import pendulum  # noqa: E402

MODEL = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "elu"}
PPO = {
    "class_name": "PPO", "num_learning_epochs": 2, "num_mini_batches": 2, "clip_param": 0.2, "gamma": 0.99, "lam": 0.95,
    "value_loss_coef": 1.0, "entropy_coef": 0.0, "learning_rate": 1e-3, "max_grad_norm": 1.0, "schedule": "fixed",
    "desired_kl": 0.01, "use_clipped_value_loss": True,
}  # fmt: skip


def test_steps_are_those_of_the_vector_environment():
    """The same states, rewards and ends, bit for bit in single precision; starts are drawn from the same stream."""
    mine = RslVecEnv(pendulum(), 3, seed=5, max_episode_steps=4)
    theirs = VectorEnv(pendulum(), 3, autoreset_mode="SameStep", max_episode_steps=4)
    observation, _ = theirs.reset(seed=5)
    assert isinstance(mine, rsl_rl.env.VecEnv)
    np.testing.assert_array_equal(mine.get_observations()["policy"].numpy(), observation)
    rng = np.random.default_rng(0)
    for k in range(9):
        actions = rng.uniform(-1, 1, (3, 1)).astype(np.float32)
        found, rewards, dones, extras = mine.step(torch.from_numpy(actions))
        observation, reward, terminated, truncated, _ = theirs.step(actions)
        np.testing.assert_array_equal(found["policy"].numpy(), observation)
        np.testing.assert_array_equal(rewards.numpy(), reward.astype(np.float32))
        np.testing.assert_array_equal(dones.numpy().astype(bool), terminated | truncated)
        np.testing.assert_array_equal(extras["time_outs"].numpy().astype(bool), truncated)
        assert extras["solved"].all()
        assert dones.all() == (k % 4 == 3)


def test_ages_of_episodes_may_be_set():
    env = RslVecEnv(pendulum(), 3, seed=0, max_episode_steps=10)
    env.episode_length_buf = torch.tensor([9, 0, 5])
    dones = env.step(torch.zeros(3, 1))[2]
    assert dones.tolist() == [1, 0, 0]
    assert env.episode_length_buf.tolist() == [0, 1, 6]
    with pytest.raises(da.ModelError, match="method"):
        RslVecEnv(pendulum(method="leapfrog"), 1)


def test_its_runner_learns(tmp_path):
    """Two iterations of PPO on a batch of pendulums: the policy changes, and nothing is NaN."""
    from rsl_rl.runners import OnPolicyRunner

    torch.manual_seed(0)
    env = RslVecEnv(pendulum(), 8, seed=1)
    actor = MODEL | {"distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}}
    settings = {
        "num_steps_per_env": 8, "save_interval": 100, "logger": "tensorboard", "check_for_nan": True,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": actor, "critic": dict(MODEL), "algorithm": dict(PPO),
    }  # fmt: skip
    runner = OnPolicyRunner(env, settings, log_dir=None, device="cpu")
    before = [x.clone() for x in runner.alg.actor.parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    after = list(runner.alg.actor.parameters())
    assert any((a != b).any() for a, b in zip(before, after, strict=True))
    assert all(torch.isfinite(x).all() for x in after)
