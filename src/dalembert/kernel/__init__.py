"""From expressions to machine code: trace a CasADi function once, compile it for where it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalembert.first_use import on_first_use
from dalembert.kernel.cache import CacheInfo, cache_info, clear_cache
from dalembert.kernel.engine import Evaluation
from dalembert.kernel.kernel import Kernel

if TYPE_CHECKING:
    from dalembert.kernel.report import KernelReport

__all__ = ["CacheInfo", "Evaluation", "Kernel", "KernelReport", "cache_info", "clear_cache"]

__getattr__ = on_first_use(__name__, {"KernelReport": "report"})
