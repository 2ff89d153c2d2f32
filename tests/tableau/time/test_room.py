"""The room's page names its files."""

from pathlib import Path

import dalembert.simulate as room


def test_page_names_every_file():
    folder = Path(room.__file__).parent
    text = (folder / "README.md").read_text(encoding="utf-8")
    missing = [file.name for file in folder.glob("*.py") if file.stem != "__init__" and f"`{file.name}`" not in text]
    assert not missing
    named = {word for line in text.splitlines() for word in line.split("`")[1::2] if word.endswith(".py")}
    assert not {name for name in named if not (folder / name).exists()}
