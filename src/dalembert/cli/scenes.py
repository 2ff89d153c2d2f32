"""`dalembert scenes`: those that come with the package, listed, printed or copied."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from dalembert.cli.target import print_json
from dalembert.errors import ModelError

if TYPE_CHECKING:
    from dalembert.scenes import Scene


@dataclass(frozen=True)
class Scenes:
    """List the scenes that come with the package; print the file of one, or copy it as a beginning of your own.

    For example:

        dalembert scenes

        dalembert scenes four_bar

        dalembert scenes four_bar --copy my_linkage.toml
    """

    name: Annotated[str | None, tyro.conf.Positional] = None
    """The scene whose file is printed."""

    copy: Path | None = None
    """Copy the file here, with the files that it reads beside it."""

    json: bool = False
    """Print plain data instead of words."""

    def run(self) -> int:
        """Print or copy, and return the exit code."""
        from dalembert.scenes import scene, scene_names

        if self.name is None:
            if self.copy is not None:
                raise ModelError("--copy needs the name of a scene: dalembert scenes four_bar --copy mine.toml")
            every = {name: scene(name) for name in scene_names()}
            if self.json:
                print_json({name: {"title": s.title, "about": s.content.about.strip()} for name, s in every.items()})
            else:
                print("\n".join(f"{name:17s} {s.title}" for name, s in every.items()))
                print("\ndalembert simulate NAME runs one, dalembert scenes NAME prints its file")
            return 0
        chosen = scene(self.name)
        if self.copy is not None:
            return self._copied(chosen)
        if self.json:
            print_json({"name": chosen.name, "title": chosen.title, "text": chosen.text})
        else:
            print(chosen.text, end="")
        return 0

    def _copied(self, chosen: Scene) -> int:
        """Copy the scene with what it reads; nothing is written over."""
        from dalembert.scenes.keys import TimeTable

        assert self.copy is not None
        content = chosen.content
        tables = [force.file for force in content.force.values() if isinstance(force, TimeTable)]
        others = [*tables, *([content.model.file] if content.model is not None else [])]
        targets = {chosen.path: self.copy} | {chosen.path.parent / name: self.copy.parent / name for name in others}
        for target in targets.values():
            if target.exists():
                raise ModelError(f"{target} is there already; give another name")
            if not target.resolve().parent.is_dir():
                raise ModelError(f"there is no folder {target.resolve().parent}")
        for source, target in targets.items():
            target.write_bytes(source.read_bytes())
        if self.json:
            print_json({"written": list(targets.values())})
        else:
            print("\n".join(f"written: {target}" for target in targets.values()))
        return 0
