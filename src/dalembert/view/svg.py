"""Animated SVG of a picture: no script, a few kB; it plays in <img>, on README pages and offline."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np

from dalembert.types import Array
from dalembert.view.picture import Picture
from dalembert.view.plane import Item, PlaneDrawing, drawn

STILL = 0.05
"""Pixels, or degrees: what moves less stands still."""

DEVIATION = 0.35
"""Pixels, or degrees, by which a movement drawn with fewer frames may differ."""


def svg_of(picture: Picture, width: float = 560.0) -> str:
    """Return the SVG; bodies of a mechanism in a plane move as a whole, everything else point by point."""
    drawing = drawn(picture, width)
    size = f'viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" width="{drawing.width:.0f}"'
    name = escape(drawing.title)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{name}" stroke-linecap="round" '
        f'stroke-linejoin="round" fill="none"><title>{name}</title>'
    ]
    open_pose = -1
    for item in drawing.items:
        if item.pose != open_pose and open_pose >= 0:
            parts.append("</g></g>")
        if item.pose != open_pose and item.pose >= 0:
            parts.append(_moving(drawing, item.pose))
        open_pose = item.pose
        parts.append(_element(drawing, item))
    if open_pose >= 0:
        parts.append("</g></g>")
    return "\n".join([*parts, "</svg>\n"])


def _moving(drawing: PlaneDrawing, pose: int) -> str:
    """Return the opening of two groups: one that moves, in it one that turns."""
    place, angle = drawing.poses[pose]
    return f"<g{_transform(drawing, 'translate', place)}<g{_transform(drawing, 'rotate', angle[:, None])}"


def _transform(drawing: PlaneDrawing, kind: str, values: Array) -> str:
    """Return the rest of a group's tag, with its animation where it moves."""
    if np.ptp(values, axis=0).max(initial=0.0) < STILL or len(values) < 2:
        words = _numbers(values[0])
        return f' transform="{kind}({words})">' if np.any(np.abs(values[0]) >= STILL) else ">"
    shown = thinned(values, DEVIATION if kind == "translate" else DEVIATION / 2)
    frames = ";".join(_numbers(values[k]) for k in shown)
    return f'><animateTransform attributeName="transform" type="{kind}" values="{frames}"{_timing(drawing, shown)}/>'


def _timing(drawing: PlaneDrawing, frames: Array) -> str:
    t = drawing.t
    times = (t[frames] - t[0]) / (t[-1] - t[0])
    even = np.allclose(times, np.linspace(0.0, 1.0, frames.size), atol=1e-6)
    keys = "" if even else f' keyTimes="{";".join(_time(x) for x in times)}"'
    return f'{keys} dur="{t[-1] - t[0]:.4g}s" repeatCount="indefinite"'


def _time(x: float) -> str:
    return f"{x:.4f}".rstrip("0").rstrip(".").removeprefix("0") or "0"


def thinned(values: Array, most: float) -> Array:
    """Return the frames between which straight lines stay within `most` of all values (Ramer-Douglas-Peucker)."""
    keep = np.zeros(len(values), bool)
    keep[[0, -1]] = True
    stack = [(0, len(values) - 1)]
    while stack:
        a, b = stack.pop()
        if b - a < 2:
            continue
        u = (np.arange(a + 1, b) - a)[:, None] / (b - a)
        error = np.abs(values[a + 1 : b] - (1 - u) * values[a] - u * values[b]).max(axis=1)
        worst = int(error.argmax())
        if error[worst] > most:
            k = a + 1 + worst
            keep[k] = True
            stack += [(a, k), (k, b)]
    return np.flatnonzero(keep)


def _element(drawing: PlaneDrawing, item: Item) -> str:
    if item.hollow and item.kind == "line":  # without mass: white inside
        inside = replace(item, hollow=False, color="#fff", width=0.55 * item.width)
        return _element(drawing, replace(item, hollow=False)) + _element(drawing, inside)
    points = item.points if item.local is None else item.local[None]
    see = "" if item.opacity >= 1.0 else f' opacity="{item.opacity:.2g}"'
    if item.kind == "circle":
        return _circle(drawing, item, points[:, 0], see)
    if item.kind == "polygon":
        style = f' fill="{item.color}"'
    else:
        style = f' stroke="{item.color}" stroke-width="{max(item.width, 1.0):.1f}"'
    closed = "Z" if item.kind == "polygon" else ""
    frames = points.reshape(len(points), -1)
    if len(frames) < 2 or np.ptp(frames, axis=0).max() < STILL:
        return f'<path d="{_path(points[0])}{closed}"{style}{see}/>'
    shown = thinned(frames, DEVIATION)
    values = ";".join(_path(points[k]) + closed for k in shown)
    return f'<path{style}{see}><animate attributeName="d" values="{values}"{_timing(drawing, shown)}/></path>'


def _circle(drawing: PlaneDrawing, item: Item, places: Array, see: str) -> str:
    fill = f'fill="#fff" stroke="{item.color}"' if item.hollow else f'fill="{item.color}"'
    head = f'<circle r="{item.width:.1f}" {fill}{see}'
    if len(places) < 2 or np.ptp(places, axis=0).max() < STILL:
        x, y = places[0]
        return f'{head} cx="{x:.1f}" cy="{y:.1f}"/>'
    shown = thinned(places, DEVIATION)
    moves = [
        f'<animate attributeName="{attribute}" values="{";".join(f"{places[k, j]:.1f}" for k in shown)}"'
        f"{_timing(drawing, shown)}/>"
        for j, attribute in enumerate(("cx", "cy"))
    ]
    return f"{head}>{''.join(moves)}</circle>"


def _path(points: Array) -> str:
    return "M" + "L".join(_numbers(place) for place in points)


def _numbers(values: Array) -> str:
    return " ".join(f"{x:.1f}".removesuffix(".0").replace("-0", "0" if abs(x) < STILL else "-0") for x in values)
