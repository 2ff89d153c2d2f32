"""`dalembert completion SHELL`: completion of commands and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Completion:
    """Print a script that completes commands and options in your shell.

    For example:

        dalembert completion bash > ~/.local/share/bash-completion/completions/dalembert

        dalembert completion zsh > ~/.zfunc/_dalembert

        dalembert completion tcsh >> ~/.tcshrc
    """

    shell: Annotated[Literal["bash", "zsh", "tcsh"], tyro.conf.Positional]
    """Which shell."""

    json: bool = False
    """Print the script as plain data."""

    def run(self) -> int:
        """Print the script, and return the exit code."""
        import contextlib
        import io

        from dalembert.cli.main import COMMANDS, command_class
        from dalembert.cli.target import print_json

        stream = io.StringIO()
        classes = {name: command_class(name) for name in COMMANDS}
        with contextlib.redirect_stdout(stream), contextlib.suppress(SystemExit):
            tyro.extras.subcommand_cli_from_dict(
                classes, prog="dalembert", args=["--tyro-print-completion", self.shell]
            )
        if self.json:
            print_json({"shell": self.shell, "script": stream.getvalue()})
        else:
            print(stream.getvalue(), end="")
        return 0
