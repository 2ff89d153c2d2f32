"""From expressions to machine code: trace a CasADi function once, compile it for where it runs."""

from dalembert.kernel.cache import CacheInfo, cache_info, clear_cache
from dalembert.kernel.engine import Evaluation, SampleStatus
from dalembert.kernel.kernel import Kernel
from dalembert.kernel.report import Report

__all__ = ["CacheInfo", "Evaluation", "Kernel", "Report", "SampleStatus", "cache_info", "clear_cache"]
