"""Which cells are refused, and why: everything else must be right. The page of the docs shows this rule."""

from __future__ import annotations

from tests.pairs.slider import ANSWERS, MOTIONS, WRITTEN
from tests.pairs.table import STEPPERS

REASONS = {
    "past": (
        "goes on from steps of the past",
        "backward differentiation goes on from steps of the past, and every event ends them",
    ),
    "discrete": (
        "a discrete Lagrangian has neither",
        "a discrete Lagrangian has neither impulses nor friction of contacts",
    ),
    "simplified": (
        "simplified: .* without dry friction of joints",
        'the run ends with the status "simplified": dry friction of joints does not act',
    ),
    "Python": (
        "Matrices are Python functions",
        "matrices are Python functions, and these steppers differentiate expressions",
    ),
    "energies": (
        "Matrices have no Lagrangian",
        "matrices have no Lagrangian, of which the discrete one is made",
    ),
}
"""By short name: what the message must say, and the words of the page."""


HEAD = """\
Parts that are right alone may be wrong where they meet. So one small system is written in three ways: a slider over a
foot that strikes a floor, rubs in its guide, or does both. Its rows are redundant and some of its bodies have no
mass. It goes through time by every stepper. Every cell is compared with the closed form (`tests/pairs/`): it is right
to the tolerance of its stepper, or refused by name with the reason. What a stepper takes: {doc}`through_time`."""


def refusal(motion: str, answers: str, written: str, stepper: str) -> str:
    """Return the short name of the reason for which a cell is refused; empty where it must be right."""
    if stepper not in ("bdf", "ida", "variational"):
        return ""
    if motion == "smooth":
        return "" if written != "Matrices" else "energies" if stepper == "variational" else "Python"
    if motion == "stick-slip" and written == "Mechanism":
        return "simplified"
    return "discrete" if stepper == "variational" else "past"


def page() -> str:
    """Return the page of the docs."""
    numbers = {name: k + 1 for k, name in enumerate(REASONS)}
    lines = ["# Which method takes which system", "", *HEAD.splitlines(), ""]
    right = 0
    for motion in MOTIONS:
        lines += [f"## {motion[0].upper()}{motion[1:]}", "", f"| answers | written as | {' | '.join(STEPPERS)} |"]
        lines.append(f"|---|---|{'---|' * len(STEPPERS)}")
        for answers in ANSWERS:
            for written in WRITTEN:
                reasons = [refusal(motion, answers, written, stepper) for stepper in STEPPERS]
                right += reasons.count("")
                marks = [f"refused ({numbers[reason]})" if reason else "right" for reason in reasons]
                lines.append(f"| {answers} | `{written}` | {' | '.join(marks)} |")
        lines.append("")
    total = len(MOTIONS) * len(ANSWERS) * len(WRITTEN) * len(STEPPERS)
    lines += ["## Reasons", ""]
    lines += [f"{numbers[name]}. {words[1]}" for name, words in REASONS.items()]
    lines += [
        "",
        f"{right} of {total} cells are right, {total - right} are refused.",
        "",
        "## What right means",
        "",
        "| stepper | options | heights (m) and velocities (m/s) to |",
        "|---|---|---|",
    ]
    for name, (options, tolerance) in STEPPERS.items():
        words = ", ".join(f"`{key}={value:g}`" for key, value in options.items())
        lines.append(f"| `{name}` | {words} | {tolerance:.0e} |")
    lines += ["", "`python tools/pairs.py` writes this page.", ""]
    return "\n".join(lines)
