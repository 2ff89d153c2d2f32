"""`dalembert cache`: look at the cache of compiled kernels, or empty it."""

from __future__ import annotations

from dataclasses import dataclass

from dalembert.errors import ModelError


@dataclass(frozen=True)
class Cache:
    """Show where compiled kernels are kept and how much room they take (--info), or remove them (--clear).

    The environment variable DALEMBERT_CACHE names another folder, or is "off".
    """

    info: bool = False
    """Show folder, entries and size (the default)."""

    clear: bool = False
    """Remove all entries."""

    def run(self) -> int:
        """Do what was asked and return the exit code."""
        from dalembert.kernel import cache_info, clear_cache

        if self.info and self.clear:
            raise ModelError("--info and --clear exclude each other")
        if self.clear:
            print(f"{clear_cache()} entries removed")
            return 0
        found = cache_info()
        where = found.folder if found.folder is not None else "off (DALEMBERT_CACHE)"
        print(f"folder   {where}\nentries  {found.entries}\nsize     {found.bytes / 2**20:.1f} MiB")
        return 0
