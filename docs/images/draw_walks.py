"""Draw `walks.svg`: the way of the data for six calls, as it is walked.

Each call runs in a process of its own with an empty cache of kernels, and the files whose functions it calls are noted
in the order of their first call; a box is a sub-room with its files. Imports, and ground that all rooms share, are left
out. Run `python docs/images/draw_walks.py` after a change of the rooms: half a minute, and more where loops have to be
compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from house import WALKS  # noqa: E402

CALLS = {
    "da.KKT(M, A).solve(f)": WALKS["solve"],
    "mechanism.compile()(q, v, tau)": WALKS["compile"].replace("b.build()", "b.build().constrain(da.Point('bob'))"),
    "da.simulate(mechanism, T)": WALKS["simulate"],
    "friction.resolve(...)": WALKS["friction"],
    "newton_euler(arm).structure()": WALKS["structure"],
    "da.Problem(system).integrate(...)": WALKS["integrate"],
}
"""What is called, in words and in code."""

NOTED = """
import json, sys
from pathlib import Path
import dalembert as da

root, way = str(Path(da.__file__).parent) + "/", {{}}

def imported(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False

def note(frame, event, argument):
    file = frame.f_code.co_filename
    if event == "call" and frame.f_code.co_flags & 2 and file.startswith(root) and not imported(frame.f_back):
        way[file[len(root):].removesuffix(".py")] = way.get(file[len(root):].removesuffix(".py"), 0) + 1

sys.setprofile(note)
{walk}
sys.setprofile(None)
print(json.dumps(list(way)))
"""
"""Code that makes a call and prints the files of the library whose functions ran, in order."""

COLOURS = {
    "kkt": "#dbe7f5", "kernel": "#e6e0f2", "readers": "#e9efe0", "model": "#dff0e6", "tree": "#f5ead8",
    "large": "#f0e6f0", "simulate": "#f6dfdc", "friction": "#efe2d6", "tableau": "#dceef0",
}  # fmt: skip

IN_A_ROW, LEFT, WIDTH, GAP = 7, 8, 172, 18
LETTERS, LINE, HEAD = 33, 11, 20
"""Boxes in a row; letters in a line of file names, and its height in pixels."""


def walked(code: str) -> dict[str, list[str]]:
    """Return the files that a call goes through, by sub-room, both in the order of their first call."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "DALEMBERT_CACHE": folder}
        command = [sys.executable, "-c", NOTED.format(walk=code)]
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rooms: dict[str, list[str]] = {}
    for file in json.loads(run.stdout.splitlines()[-1]):
        room, _, name = file.rpartition("/")
        if room and name != "__init__":
            rooms.setdefault(room, []).append(name)
    return rooms


def lines_of(names: list[str]) -> list[str]:
    """Return file names in lines that fit a box."""
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) + 2 > LETTERS:
            lines.append("")
        lines[-1] += f", {name}" if lines[-1] else name
    return lines


def box(x: float, y: float, height: float, room: str, names: list[str]) -> str:
    """Return a box with a sub-room's name and its files."""
    colour = COLOURS.get(room.split("/")[0], "#eeeeee")
    middle = x + WIDTH / 2
    texts = [f'<text x="{middle}" y="{y + 14}" text-anchor="middle" font-size="11" font-weight="bold">{room}</text>']
    texts += [
        f'<text x="{middle}" y="{y + 27 + LINE * k}" text-anchor="middle" font-size="9">{escape(line)}</text>'
        for k, line in enumerate(lines_of(names))
    ]
    frame = f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{height}" rx="5" fill="{colour}" stroke="#888"/>'
    return "\n".join([frame, *texts])


def picture() -> str:
    """Return the picture as SVG."""
    parts: list[str] = []
    y = 16.0
    for call, code in CALLS.items():
        way = list(walked(code).items())
        parts.append(f'<text x="{LEFT}" y="{y}" font-family="monospace" font-size="12">{escape(call)}</text>')
        y += 8
        for first in range(0, len(way), IN_A_ROW):
            row = way[first : first + IN_A_ROW]
            height = HEAD + LINE * max(len(lines_of(names)) for _, names in row) + 4
            for k, (room, names) in enumerate(row):
                x = LEFT + k * (WIDTH + GAP)
                parts.append(box(x, y, height, room, names))
                if k or first:
                    path = f"M{x - GAP + 3} {y + height / 2} h10 m-4 -4 l5 4 l-5 4" if k else f"M{x + 20} {y - 8} v6"
                    parts.append(f'<path d="{path}" fill="none" stroke="#555"/>')
            y += height + 10
        y += 16
    size = 2 * LEFT + IN_A_ROW * (WIDTH + GAP), round(y)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("walks.svg").write_text(picture(), encoding="utf-8")
