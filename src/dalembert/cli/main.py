"""Entry of the command line: one subcommand per file, one error style for all.

Exit codes: 0 done, 1 no solution (or a run that did not reach its end), 2 misuse (a wrong command, file, option or
value), 130 Ctrl-C, 141 the reader of a pipe has left. They hold with --debug, which adds the traceback.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from dalembert._version import __version__
from dalembert.errors import DalembertError, ModelError, ModelWarning, SolvabilityError, scene_words
from dalembert.names import near_matches

DONE, NO_SOLUTION, MISUSE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
"""Exit codes."""

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:Demo", "six short demonstrations on one report page"),
    "scenes": ("scenes:Scenes", "list the scenes that come with the package, or copy one"),
    "simulate": ("simulate:Simulate", "run a scene or a robot file in time"),
    "sweep": ("sweep:SweepCommand", "run a scene for many values of its parameters"),
    "check": ("check:Check", "is a system solvable, and if not, why"),
    "solve": ("solve:Solve", "accelerations and forces at one state, with their certificate"),
    "inverse": ("inverse:InverseCommand", "forces that cause a given motion"),
    "graph": ("graph:Graph", "which equation determines which unknown"),
    "show": ("show:Show", "print a robot file as a tree"),
    "view": ("view:View", "look at a robot, a scene or a run in the browser"),
    "export": ("export:ExportCommand", "write a model or a run as URDF, C, CSV, picture or film"),
    "bench": ("bench:Bench", "how long dynamics takes here, for a robot of yours"),
    "warm": ("warm:Warm", "compile all loops now, so that no later call waits"),
    "cache": ("show:Cache", "look at the cache of compiled kernels, or empty it"),
    "completion": ("completion:Completion", "completion of commands for your shell"),
}
"""Every command: its file and class, and what it does in a line. Being here is being tested."""

OVERVIEW = """usage: dalembert COMMAND [OPTIONS]

Constrained mechanics: motion, constraint forces and impacts, each with a certificate.

{commands}

`dalembert COMMAND --help` has options and examples. --json prints plain data, --debug shows tracebacks.

try:
  dalembert simulate bouncing_ball --report ball.html
  dalembert check robot.urdf --point left_foot --point right_foot
  dalembert demo
"""


def overview() -> str:
    """Return the help of the whole."""
    lines = [f"  {name:11s} {summary}" for name, (_, summary) in COMMANDS.items()]
    return OVERVIEW.format(commands="\n".join(lines))


def command_class(name: str) -> Any:
    """Import a command's class: others are not waited for."""
    module, _, class_name = COMMANDS[name][0].partition(":")
    return getattr(import_module(f"dalembert.cli.{module}"), class_name)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exits the process, also where nobody reads on what help prints."""
    try:
        try:
            _answer(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to complain at exit
        raise SystemExit(BROKEN_PIPE) from None


def _answer(arguments: Sequence[str] | None) -> None:
    line = list(sys.argv[1:] if arguments is None else arguments)
    if "--version" in line or "-V" in line:
        print(f"dalembert {__version__}")
        raise SystemExit(DONE)
    debug = "--debug" in line
    words = [argument for argument in line if argument != "--debug"]
    if words and words[0] in ("-h", "--help", "help") and len(words) == 1:
        print(overview(), end="")
        raise SystemExit(DONE)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words or words == ["--json"]:
        if words:
            raise SystemExit(complain(ModelError("no command was given; dalembert --help lists all"), True))
        print(overview(), end="", file=sys.stderr)
        raise SystemExit(MISUSE)
    name = next((argument for argument in words if argument != "--json"), "")
    words = [name, *(argument for k, argument in enumerate(words) if k != words.index(name))]
    if name not in COMMANDS:
        near = near_matches(name, COMMANDS)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "dalembert --help lists all"
        raise SystemExit(complain(ModelError(f"there is no command {name!r}; {hint}"), "--json" in words))
    from dalembert.cli.options import parsed

    try:
        command = parsed(command_class(name), f"dalembert {name}", words[1:])
    except ModelError as error:
        raise SystemExit(complain(error, "--json" in words)) from None
    raise SystemExit(run(command, debug))


def run(command: Any, debug: bool) -> int:
    """Run one command and return its exit code; errors become one readable message on the error stream."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", ModelWarning)
            warnings.showwarning = _show_warning
            code = command.run()
            sys.stdout.flush()
            return code
    except BrokenPipeError:
        raise  # no fault of the command: `main` answers it
    except (DalembertError, OSError) as error:
        if debug:
            traceback.print_exc()
        return complain(error, getattr(command, "json", False))
    except KeyboardInterrupt:
        if debug:
            traceback.print_exc()
        return INTERRUPTED


def complain(error: Exception, as_json: bool) -> int:
    """Print an error for the person who made it, as data on the output where data is asked for; return the code."""
    unsolvable = isinstance(error, SolvabilityError)
    kind = "no solution" if unsolvable else "error"
    if as_json:
        print(json.dumps({"error": scene_words(error), "kind": type(error).__name__}))
    say(kind, scene_words(error))
    return NO_SOLUTION if unsolvable else MISUSE


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in the words of an error, without the line of code that gave it."""
    say("warning", scene_words(message))


def say(kind: str, message: Any) -> None:
    """Print a message on the error stream."""
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text(f"dalembert: {kind}: ", style="bold red") + str(message)
    )
