"""Films and pictures of a picture: GIF, WebP and PNG by Pillow, MP4 by ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError
from dalembert.view.picture import Picture
from dalembert.view.plane import Item, PlaneDrawing, drawn

FINER = 2
"""Frames are drawn so much larger and made smaller, which smooths edges."""

PAPER = "#ffffff"

COLORS = 64
"""Colours of a GIF: those of the bodies and their smooth edges."""


def write_film(picture: Picture, path: Path, width: float = 560.0) -> None:
    """Write the film of a picture; a PNG has its first frame."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("Pillow", "view", "Writing a film or a picture") from error
    drawing = drawn(picture, width)
    suffix, count = path.suffix.lower(), picture.t.size
    if suffix == ".png":
        _frame(Image, drawing, 0).save(path)
        return
    if count < 2:
        raise ModelError(f"{path.name}: nothing moves; write a .png, .svg or .html")
    rate = (count - 1) / float(picture.t[-1] - picture.t[0])
    frames = (_frame(Image, drawing, k) for k in range(count))
    if suffix == ".mp4":
        _mp4(frames, rate, path)
        return
    options: dict[str, Any] = {"save_all": True, "duration": round(1000 / rate), "loop": 0}
    first = next(frames)
    if suffix == ".webp":
        first.save(path, quality=80, method=2, append_images=frames, **options)
        return
    palette = _frame(Image, drawing, count // 2).quantize(COLORS)
    few = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    first.quantize(palette=palette, dither=Image.Dither.NONE).save(path, append_images=few, **options)


def _frame(Image: Any, drawing: PlaneDrawing, k: int) -> Any:
    """Return one frame."""
    from PIL import ImageDraw

    size = (2 * round(drawing.width / 2), 2 * round(drawing.height / 2))
    image = Image.new("RGB", (FINER * size[0], FINER * size[1]), PAPER)
    draw = ImageDraw.Draw(image)
    for item in drawing.items:
        _draw(draw, item, item.points[min(k, len(item.points) - 1)] * FINER)
    return image.reduce(FINER)


def _draw(draw: Any, item: Item, points: Any) -> None:
    color = _mixed(item.color, item.opacity)
    places = [tuple(place) for place in points.tolist()]
    if item.kind == "polygon":
        draw.polygon(places, fill=color)
    elif item.kind == "circle":
        (x, y), r = places[0], FINER * item.width
        draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
    else:
        width = max(FINER * item.width, FINER)
        draw.line(places, fill=color, width=round(width), joint="curve")
        for x, y in (places[0], places[-1]):
            r = width / 2
            draw.ellipse((x - r, y - r, x + r, y + r), fill=color)
        if item.hollow and len(places) == 2:  # without mass: a hollow line
            draw.line(places, fill=PAPER, width=round(0.6 * width))


def _mixed(color: str, opacity: float) -> tuple[int, ...]:
    """Return a colour on paper."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    return tuple(round(x) for x in (opacity * parts + (1 - opacity) * 255).tolist())


def _mp4(frames: Any, rate: float, path: Path) -> None:
    """Write frames through ffmpeg: the one that is installed, or that of imageio-ffmpeg."""
    program = shutil.which("ffmpeg")
    if program is None:
        try:
            program = import_module("imageio_ffmpeg").get_ffmpeg_exe()
        except ImportError as error:
            raise MissingExtraError("ffmpeg", "film", "Writing an MP4") from error
    first = next(frames)
    size = f"{first.width}x{first.height}"
    command = [
        program, "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", f"{rate:g}",
        "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", str(path),
    ]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        for frame in (first, *frames):
            process.stdin.write(frame.tobytes())
        process.stdin.close()
    except BrokenPipeError:
        pass
    complaint = process.stderr.read().decode(errors="replace")
    if process.wait() != 0:
        raise ModelError(f"{path}: ffmpeg wrote no film: {complaint.strip()[:400]}")
