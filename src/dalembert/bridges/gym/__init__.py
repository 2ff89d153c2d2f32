"""Gymnasium: mechanisms as environments, many side by side in one batch of kernels.

`import dalembert.bridges.gym` registers the examples: `gymnasium.make_vec("dalembert/LightCartPole-v0", num_envs=64)`.
"""

from dalembert.bridges.gym.environment import Env, VectorEnv
from dalembert.bridges.gym.tasks import EnvTask, register_examples
from dalembert.first_use import on_first_use

register_examples()

__all__ = ["Env", "EnvTask", "VectorEnv"]

__getattr__ = on_first_use(__name__, {"RslVecEnv": "rsl_rl"})  # not in __all__: it needs a guest that most do not have
