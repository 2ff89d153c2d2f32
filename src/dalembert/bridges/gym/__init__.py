"""Gymnasium: mechanisms as environments, many side by side in one batch of kernels.

`import dalembert.bridges.gym` registers the examples: `gymnasium.make_vec("dalembert/LightCartPole-v0", num_envs=64)`.
"""

from dalembert.bridges.gym.environment import Env, VectorEnv
from dalembert.bridges.gym.tasks import EnvTask, register_examples

register_examples()

__all__ = ["Env", "EnvTask", "VectorEnv"]
