"""Environments of Gymnasium (1.1 or later): many in one batch, or a single one.

A bad copy, one whose equations have no answer at its state, ends its episode: `terminated` is True, `info["solved"]` is
False, and its numbers are those before the step. Arrays that are returned are never written again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.bridges.chosen import guest
from dalembert.bridges.gym.batch import Batch
from dalembert.errors import ModelError, ShapeError
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.bridges.gym.tasks import EnvTask

gymnasium = guest("gymnasium", "Gymnasium", "gym", "an environment")
AutoresetMode = gymnasium.vector.AutoresetMode
ARRAYS = ("numpy", "torch", "jax")


def _fresh(values: Any, shape: tuple[int, ...], what: str, dtype: Any = float) -> Array:
    """Return a copy of what a task's function or a policy gave: it may be a view of the states, which move on."""
    array = np.array(values, dtype=dtype)
    if array.shape != shape:
        raise ShapeError(f"{what} is {shape}, not {array.shape}")
    return array


class Motion:
    """A task in motion: states of all copies, their episodes, their random numbers."""

    def __init__(self, task: EnvTask, size: int, max_episode_steps: int | None) -> None:
        self.task, self.size = task, size
        self.horizon = max_episode_steps or task.horizon
        self.batch = Batch(task.mechanism, size, task.method)
        self.limits = np.asarray(task.limits, dtype=float)
        self.places = [task.mechanism.index_v(name).start for name in task.actuated]
        self.count = np.zeros(size, dtype=int)

    def spaces(self) -> tuple[Any, Any]:
        """Return the spaces of one observation and one action."""
        box = gymnasium.spaces.Box
        size = self.observe().shape[1]
        return box(-np.inf, np.inf, (size,), np.float32), box(-1.0, 1.0, (len(self.places),), np.float32)

    def start(self, chosen: Array, rng: np.random.Generator) -> None:
        """Begin new episodes."""
        number = int(chosen.sum())
        if number:
            q, v = self.task.start(rng, number)
            self.batch.place(chosen, q, v)
            self.count[chosen] = 0

    def observe(self) -> Array:
        """Return all observations, fresh."""
        observation = np.array(self.task.observe(self.batch.q, self.batch.v), dtype=np.float32)
        if observation.ndim != 2 or len(observation) != self.size:
            raise ShapeError(f"observe(q, v) is ({self.size}, k), not {observation.shape}")
        return observation

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array]:
        """Advance all copies; return rewards, ends, cuts by the horizon, and which copies had an answer."""
        task = self.task
        actions = np.clip(_fresh(actions, (self.size, len(self.places)), "an action of all copies"), -1.0, 1.0)
        tau = np.zeros((self.size, task.mechanism.nv))
        tau[:, self.places] = actions * self.limits
        solved = self.batch.advance(tau, task.step / task.substeps, task.substeps)
        self.count += 1
        q, v = self.batch.q, self.batch.v
        terminated = _fresh(task.terminated(q, v), (self.size,), "terminated(q, v)", bool) | ~solved
        truncated = (self.count >= self.horizon) & ~terminated
        return _fresh(task.reward(q, v, actions), (self.size,), "reward(q, v, action)"), terminated, truncated, solved


def _maker(arrays: str) -> Callable[[Array], Any]:
    """Return what makes an array of the named library; the array is nobody else's, so it may share the memory."""
    if arrays == "torch":
        return guest("torch", "PyTorch", "torch", "arrays='torch'").from_numpy
    if arrays == "jax":
        return guest("jax.numpy", "JAX", "jax", "arrays='jax'").asarray
    return lambda array: array


class VectorEnv(gymnasium.vector.VectorEnv):
    """Copies of a task side by side.

    Parameters
    ----------
    task
        What is simulated, observed and rewarded.
    num_envs
        How many copies.
    autoreset_mode
        When an episode begins anew, as Gymnasium defines it: "NextStep" (the step after the last only resets),
        "SameStep" (the last step resets; `info["final_obs"]` has the last observation) or "Disabled" (who calls
        `reset(options={"reset_mask": mask})` decides).
    arrays
        "numpy", "torch" or "jax": what comes out; actions may be any of them. Tensors of PyTorch share memory with the
        arrays; arrays of JAX have its precision, so that rewards are single unless `jax_enable_x64` is on.

    Notes
    -----
    A copy's states do not depend on how many others there are, bit for bit; its random starts do.
    """

    def __init__(
        self,
        task: EnvTask,
        num_envs: int = 1,
        *,
        autoreset_mode: Any = "NextStep",
        max_episode_steps: int | None = None,
        arrays: str = "numpy",
        render_mode: None = None,
    ) -> None:
        if arrays not in ARRAYS:
            raise ModelError(f"arrays={arrays!r} is none of {', '.join(map(repr, ARRAYS))}")
        self.motion = Motion(task, num_envs, max_episode_steps)
        self.autoreset = AutoresetMode(autoreset_mode)
        self.metadata = {"render_modes": [], "autoreset_mode": self.autoreset}
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = self.motion.spaces()
        batch_space = gymnasium.vector.utils.batch_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._out = _maker(arrays)
        self._over = np.zeros(num_envs, dtype=bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes: all, or those of `options["reset_mask"]`."""
        super().reset(seed=seed if not isinstance(seed, list | tuple) else seed[0])
        mask = np.ones(self.num_envs, dtype=bool)
        if options and options.get("reset_mask") is not None:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != bool:
                raise ModelError(f"reset_mask is ({self.num_envs},) truth values, not {mask.dtype} {mask.shape}")
        self.motion.start(mask, self.np_random)
        self._over[mask] = False
        return self._out(self.motion.observe()), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance all copies."""
        actions = actions.detach().cpu().numpy() if hasattr(actions, "detach") else np.asarray(actions)
        motion, anew = self.motion, self._over & (self.autoreset == AutoresetMode.NEXT_STEP)
        if self.autoreset == AutoresetMode.DISABLED and self._over.any():
            raise ModelError("episodes are over: reset(options={'reset_mask': ...}) before the next step")
        rewards, terminated, truncated, solved = motion.step(actions)
        if anew.any():
            motion.start(anew, self.np_random)
            rewards[anew], terminated[anew], truncated[anew], solved[anew] = 0.0, False, False, True
        self._over = terminated | truncated
        observation = motion.observe()
        info: dict[str, Any] = {"solved": self._out(solved), "_solved": np.ones(self.num_envs, dtype=bool)}
        if self.autoreset == AutoresetMode.SAME_STEP and self._over.any():
            ended = {f"_{name}": self._over.copy() for name in ("final_obs", "final_info")}
            last = {"solved": info["solved"], "_solved": self._over.copy()}
            info |= {"final_obs": self._out(observation), "final_info": last, **ended}
            motion.start(self._over, self.np_random)
            observation = motion.observe()
            self._over = np.zeros(self.num_envs, dtype=bool)
        return (*(self._out(x) for x in (observation, rewards, terminated, truncated)), info)


class Env(gymnasium.Env):
    """A single copy of a task; the horizon is Gymnasium's (`max_episode_steps` of its registration)."""

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(self, task: EnvTask, render_mode: None = None) -> None:
        self.motion = Motion(task, 1, None)
        self.render_mode = render_mode
        self.observation_space, self.action_space = self.motion.spaces()

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin a new episode."""
        super().reset(seed=seed)
        self.motion.start(np.ones(1, dtype=bool), self.np_random)
        return self.motion.observe()[0], {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Advance."""
        rewards, terminated, _, solved = self.motion.step(np.asarray(action)[None])
        return self.motion.observe()[0], float(rewards[0]), bool(terminated[0]), False, {"solved": bool(solved[0])}
