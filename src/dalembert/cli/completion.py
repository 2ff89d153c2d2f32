"""`dalembert completion SHELL`: completion of commands, options, names of scenes and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

BASH = """# completion of dalembert for bash{zsh}
_dalembert() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands} --help --version"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}}
complete -o filenames -F _dalembert dalembert
"""

ON_SCENES = ("simulate", "sweep", "check", "solve", "inverse", "view", "export", "bench", "scenes")
"""Commands whose file may be the name of a scene."""


@dataclass(frozen=True)
class Completion:
    """Print a script that completes commands, options, names of scenes and files in your shell.

    For example:

        dalembert completion bash > ~/.local/share/bash-completion/completions/dalembert

        dalembert completion zsh >> ~/.zshrc

        dalembert completion fish > ~/.config/fish/completions/dalembert.fish
    """

    shell: Annotated[Literal["bash", "zsh", "fish"], tyro.conf.Positional]
    """Which shell."""

    json: bool = False
    """Print the script as plain data."""

    def run(self) -> int:
        """Print the script, and return the exit code."""
        from dalembert.cli.target import print_json

        script = fish_script() if self.shell == "fish" else bash_script(self.shell == "zsh")
        if self.json:
            print_json({"shell": self.shell, "script": script})
        else:
            print(script, end="")
        return 0


def words_of(name: str) -> list[str]:
    """Return the options of a command, and the names of scenes where it takes them."""
    from dalembert.cli.main import command_class
    from dalembert.cli.options import option_names
    from dalembert.scenes.library import scene_names

    return [*option_names(command_class(name)), "--help", "--debug", *(scene_names() if name in ON_SCENES else ())]


def bash_script(zsh: bool) -> str:
    """Return the script for bash; zsh reads it with its own emulation."""
    from dalembert.cli.main import COMMANDS

    cases = "\n".join(f'            {name}) words="{" ".join(words_of(name))}" ;;' for name in COMMANDS)
    head = " and zsh\nautoload -U +X bashcompinit && bashcompinit" if zsh else ""
    return BASH.format(zsh=head, commands=" ".join(COMMANDS), cases=cases)


def fish_script() -> str:
    """Return the script for fish."""
    from dalembert.cli.main import COMMANDS

    lines = ["# completion of dalembert for fish"]
    for name, (_, summary) in COMMANDS.items():
        lines.append(f"complete -c dalembert -n __fish_use_subcommand -a {name} -d '{summary}'")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for token in words_of(name):
            form = f"-l {token[2:]}" if token.startswith("--") else f"-a {token}"
            lines.append(f"complete -c dalembert {seen} {form}")
    return "\n".join(lines) + "\n"
