"""Entry of the command line: one subcommand per file, one error style for all.

Exit codes: 0 done, 1 the system has no solution, 2 misuse (a wrong file, option or value). A traceback is shown only
with --debug.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import tyro
from rich.console import Console
from rich.text import Text

from dalembert._version import __version__
from dalembert.cli.check import Check
from dalembert.cli.demo import Demo
from dalembert.cli.graph import Graph
from dalembert.cli.show import Cache, Show
from dalembert.cli.warm import Warm
from dalembert.errors import DalembertError, ModelWarning, SolvabilityError

COMMANDS = {"demo": Demo, "check": Check, "show": Show, "graph": Graph, "cache": Cache, "warm": Warm}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits the process."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "--version" in arguments or "-V" in arguments:
        print(f"dalembert {__version__}")
        raise SystemExit(0)
    debug = "--debug" in arguments
    arguments = [word for word in arguments if word != "--debug"] or ["--help"]
    about = "Constrained mechanics. --version shows the version; --debug shows tracebacks."
    command = tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="dalembert", description=about, args=arguments)
    raise SystemExit(run(command, debug))


def run(command: Demo | Check | Show | Graph | Cache | Warm, debug: bool) -> int:
    """Run one command and return its exit code; errors become one readable message on the error stream."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ModelWarning)
            warnings.showwarning = _show_warning
            return command.run()
    except (DalembertError, OSError) as error:
        if debug:
            raise
        _complain(error)
        return 1 if isinstance(error, SolvabilityError) else 2
    except KeyboardInterrupt:
        if debug:
            raise
        return 130


def _complain(error: Exception) -> None:
    """Print an error for the person who made it."""
    kind = "no solution" if isinstance(error, SolvabilityError) else "error"
    _say(kind, error)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in the words of an error, without the line of code that gave it."""
    _say("warning", message)


def _say(kind: str, message: Any) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text(f"dalembert: {kind}: ", style="bold red") + str(message)
    )
