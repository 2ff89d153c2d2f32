"""The face of rsl_rl (5.5): tensors in and out, observations as a TensorDict, episodes that begin anew by themselves.

    step(actions) -> observations {"policy": (n, k)}, rewards (n,), dones (n,), extras

`extras["time_outs"]` are the episodes that the horizon has cut, whose last value rsl_rl adds to the reward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalembert.bridges.chosen import guest
from dalembert.bridges.gym.environment import VectorEnv

if TYPE_CHECKING:
    from dalembert.bridges.gym.tasks import EnvTask
    from dalembert.types import Array

torch = guest("torch", "PyTorch", "rsl", "an environment of rsl_rl")
tensordict = guest("tensordict", "tensordict", "rsl", "an environment of rsl_rl")
rsl_rl_env = guest("rsl_rl.env", "rsl_rl", "rsl", "an environment of rsl_rl")


class RslVecEnv(rsl_rl_env.VecEnv):
    """Copies of a task side by side, for the runners of rsl_rl.

    Parameters
    ----------
    task
        What is simulated, observed and rewarded.
    num_envs
        How many copies.
    device
        Where tensors are when they come out; the simulation is on the CPU.
    seed
        Of the random starts.
    """

    def __init__(
        self,
        task: EnvTask,
        num_envs: int,
        *,
        device: str = "cpu",
        max_episode_steps: int | None = None,
        seed: int | None = None,
    ) -> None:
        self._env = VectorEnv(task, num_envs, autoreset_mode="SameStep", max_episode_steps=max_episode_steps)
        self.num_envs, self.device = num_envs, torch.device(device)
        self.num_actions = len(task.actuated)
        self.max_episode_length = self._env.motion.horizon
        self.cfg = {"step": task.step, "substeps": task.substeps, "method": task.method, "horizon": task.horizon}
        self._seed = seed
        self.reset()

    @property
    def episode_length_buf(self) -> Any:
        """How many steps every episode has lasted, (n,); it may be set, to begin with episodes of all ages."""
        return torch.from_numpy(self._env.motion.count).to(self.device)

    @episode_length_buf.setter
    def episode_length_buf(self, lengths: Any) -> None:
        self._env.motion.count[:] = lengths.cpu().numpy()

    def _out(self, array: Array, dtype: Any) -> Any:
        return torch.from_numpy(array).to(self.device, dtype)

    def _observations(self, array: Array) -> Any:
        return tensordict.TensorDict(
            {"policy": self._out(array, torch.float32)}, batch_size=[self.num_envs], device=self.device
        )

    def reset(self) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes anew."""
        observation, _ = self._env.reset(seed=self._seed)
        self._seed = None  # what follows is drawn from the same stream
        return self._observations(observation), {}

    def get_observations(self) -> Any:
        """Return the present observations."""
        return self._observations(self._env.motion.observe())

    def step(self, actions: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
        """Advance all copies; those whose episodes end are at their next start."""
        observation, rewards, terminated, truncated, info = self._env.step(actions)
        extras = {"time_outs": self._out(truncated, torch.float32), "solved": self._out(info["solved"], torch.bool)}
        dones = self._out(terminated | truncated, torch.long)
        return self._observations(observation), self._out(rewards, torch.float32), dones, extras
