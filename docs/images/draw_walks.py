"""Draw `walks.svg`: the way of the data for six calls, sub-room by sub-room.

Run `python docs/images/draw_walks.py` after a change of the rooms.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

WALKS = (
    (
        "da.KKT(M, A).solve(f)",
        ("kkt/inputs", "kkt/analysis", "kkt/rows", "kkt/routes", "kkt/residual", "kkt/certificate"),
    ),
    (
        "da.load(file).compile()",
        (
            "readers",
            "model/mechanism",
            "model/requests",
            "tree/prepared",
            "tree/block",
            "kernel/program",
            "kernel/llvm",
        ),
    ),
    (
        "da.simulate(mechanism, T)",
        ("simulate/entry", "simulate/equations", "tree, kernel", "simulate/steppers", "simulate/events", "trajectory"),
    ),
    (
        "friction.resolve(...)",
        ("friction/laws", "kkt", "bounded, cones", "friction/uniqueness", "friction/resolution"),
    ),
    (
        "newton_euler(arm).structure()",
        ("model/mechanism", "tableau/mechanics", "tableau/variables", "tableau/structure", "pictures"),
    ),
    (
        "da.Problem(system).integrate(...)",
        ("simulate/equations", "tableau/elimination", "kernel", "simulate/steppers", "simulate/events", "result"),
    ),
)
COLOURS = {
    "kkt": "#dbe7f5", "kernel": "#e6e0f2", "readers": "#e9efe0", "model": "#dff0e6", "tree": "#f5ead8",
    "simulate": "#f6dfdc", "friction": "#efe2d6", "bounded": "#efe2d6", "tableau": "#dceef0",
}  # fmt: skip
HEIGHT, STEP, LEFT, WIDTH = 34, 62, 232, 138


def box(x: float, y: float, text: str) -> str:
    """Return a box with a sub-room's name."""
    colour = COLOURS.get(text.split("/")[0].split(",")[0], "#eeeeee")
    return (
        f'<rect x="{x}" y="{y}" width="{WIDTH - 20}" height="{HEIGHT}" rx="5" fill="{colour}" stroke="#888"/>'
        f'<text x="{x + (WIDTH - 20) / 2}" y="{y + HEIGHT / 2 + 4}" text-anchor="middle" font-size="11">'
        f"{escape(text)}</text>"
    )


def picture() -> str:
    """Return the picture as SVG."""
    most = max(len(walk) for _, walk in WALKS)
    size = LEFT + most * WIDTH, 20 + len(WALKS) * STEP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for i, (call, walk) in enumerate(WALKS):
        y = 14 + i * STEP
        parts.append(
            f'<text x="8" y="{y + HEIGHT / 2 + 4}" font-family="monospace" font-size="11">{escape(call)}</text>'
        )
        for k, name in enumerate(walk):
            x = LEFT + k * WIDTH
            parts.append(box(x, y, name))
            if k:
                parts.append(f'<path d="M{x - 18} {y + HEIGHT / 2} h12 m-4 -4 l5 4 l-5 4" fill="none" stroke="#555"/>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("walks.svg").write_text(picture(), encoding="utf-8")
