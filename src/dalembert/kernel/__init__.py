"""From expressions to machine code: trace a CasADi function once, compile it for where it runs."""

from dalembert.kernel.cache import CacheInfo, cache_info, clear_cache
from dalembert.kernel.engine import Evaluation, SampleStatus
from dalembert.kernel.kernel import Kernel
from dalembert.kernel.report import KernelReport

__all__ = ["CacheInfo", "Evaluation", "Kernel", "KernelReport", "SampleStatus", "cache_info", "clear_cache"]
