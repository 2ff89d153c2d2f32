"""The live viewer: a mechanism in the browser with a slider for each joint, or a run that plays; by viser.

It listens to this machine alone, behind a gate that turns pages of other sites away; for others `host=` asks for a
token (`gate.py`).
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
from importlib import import_module
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, MissingExtraError, ModelError
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.mechanism import Mechanism
from dalembert.readers.meshes import TriangleMesh
from dalembert.simulate.trajectory import Trajectory
from dalembert.types import Array
from dalembert.view.body_shapes import THICKNESS, Shape, along
from dalembert.view.colors import FORCE_COLORS, LINE_COLORS, rgb
from dalembert.view.gate import Gate
from dalembert.view.page import smooth_quaternions
from dalembert.view.picture import Picture, Ring, drawable, picture_of, reaction_forces, uniqueness

LOCAL = ("127.0.0.1", "localhost", "::1")

TURNS, COIL = 9, 0.028
"""Turns of a drawn spring, and its radius in sizes of the mechanism."""

STEEL = (108, 122, 137)
"""Colour of springs and rods."""

RING, WIRE = 0.052, 0.0085
"""Radii of the ring that marks a constraint, and of its wire, in sizes of the mechanism."""

FLAT = 1e-9
"""Length of a spring, in sizes of the mechanism, below which it is a point."""

MOST_SLIDERS = 60
"""Joints that have a slider."""

PLAY_RATE = 25.0
"""Frames per second of a run that plays."""


def serve(
    what: Any, q: Any = None, host: str = "127.0.0.1", port: int = 8080, token: str | None = None, block: Any = None
) -> Live:
    """Show a mechanism or a run; wait for the viewer's end where nobody types (`block`)."""
    live = Live(what, q, host, port, token)
    print(f"the viewer is at {live.url}", flush=True)
    interactive = hasattr(sys, "ps1") or "IPython" in sys.modules
    if block or (block is None and not interactive):
        live.wait()
    return live


class Live:
    """A viewer in the browser.

    Attributes
    ----------
    url
        Where it is, with the token if one is needed.
    q
        The configuration that is shown.
    message
        Whether the loops are closed there.
    """

    def __init__(self, what: Any, q: Any, host: str, port: int, token: str | None) -> None:
        try:
            viser = import_module("viser")
        except ImportError as error:
            raise MissingExtraError("viser", "view3d", "The live viewer") from error
        self.run = what if isinstance(what, Trajectory) else None
        self.mechanism: Mechanism = drawable(what) if isinstance(what, Trajectory) else what
        if not isinstance(self.mechanism, Mechanism):
            raise ModelError(f"a mechanism or a run can be viewed, not {type(what).__name__}")
        self.scene = picture_of(what, q, rate=PLAY_RATE if self.run is not None else None, lines=None)
        self.q, self.message, self._lock, self._ended = self.scene.q[0].copy(), "", threading.RLock(), threading.Event()
        local = host in LOCAL
        with contextlib.redirect_stdout(io.StringIO()):  # its own lines name an address behind the gate
            self.server = viser.ViserServer(host="127.0.0.1", port=0, label=self.mechanism.name, verbose=False)
        inner = self.server.get_port()
        self.gate = Gate("127.0.0.1" if local else host, port, inner, token, local=local)
        self.url = self.gate.url
        self._build()
        self.draw(0, self.scene)

    # --- what is in the window ----------------------------------------------------------------------------------

    def _build(self) -> None:
        scene, s = self.scene, self.server
        up, size = scene.up, scene.size
        s.scene.set_up_direction(tuple(up.tolist()))
        places = np.concatenate([scene.positions.reshape(-1, 3), scene.outline, np.zeros((0, 3))])
        low, high = (places.min(axis=0), places.max(axis=0)) if places.size else (np.zeros(3), np.zeros(3))
        center, away = (low + high) / 2, max(1.6 * size, 1.1 * float(np.linalg.norm(high - low)))
        view = scene.view / np.linalg.norm(scene.view)
        s.scene.configure_fog(away, 10.0 * away, enabled=False)  # mechanisms of some metres would pale in it
        s.initial_camera.position = tuple((center + away * view).tolist())
        s.initial_camera.look_at = tuple(center.tolist())
        plane = "xy" if abs(up[2]) > 0.9 else "xz" if abs(up[1]) > 0.9 else "yz"
        s.scene.add_grid(
            "/ground",
            width=6 * size,
            height=6 * size,
            cell_size=size / 4,
            position=tuple(up * scene.floor),
            plane=plane,
        )
        for k, shape in enumerate(scene.drawing.ground):
            self._add(f"/scenery/{k}", shape)
        self.frames = []
        for body, shapes in zip(self.mechanism.bodies, scene.drawing.bodies, strict=True):
            self.frames.append(s.scene.add_frame(f"/bodies/{body.name}", show_axes=False))
            for k, shape in enumerate(shapes):
                self._add(f"/bodies/{body.name}/{k}", shape)
        for k, ring in enumerate(scene.rings):
            owner = f"/bodies/{self.mechanism.bodies[ring.body].name}" if ring.body >= 0 else "/scenery"
            color = rgb(FORCE_COLORS["unique" if ring.unique.all() else "family"])
            self._add(f"{owner}/ring {k}", _ring(ring, size), color)
        self.arrows, self.links, self._drawn = None, None, 0
        self._sliders()
        if self.run is not None:
            self._player()

    def _add(self, name: str, shape: Shape, color: tuple[int, int, int] | None = None) -> None:
        """Add a solid, as triangles."""
        vertices, faces = triangles(shape, self.scene.size)
        c = shape.color
        self.server.scene.add_mesh_simple(
            name,
            vertices.astype(np.float32),
            faces.astype(np.uint32),
            color=(c >> 16, c >> 8 & 255, c & 255) if color is None else color,
            opacity=None if shape.opacity == 1.0 else shape.opacity,
            wxyz=tuple(np.roll(shape.placement.quaternion(), 1).tolist()),
            position=tuple(np.asarray(shape.placement.position).tolist()),
        )

    def _sliders(self) -> None:
        m, self.sliders = self.mechanism, {}
        closed = "Joints (loops stay closed)" if m.all_constraints else "Joints"
        with self.server.gui.add_folder(closed):
            for i, joint in enumerate(m.joints):
                if KINDS[joint.kind].nv != 1 or len(self.sliders) >= MOST_SLIDERS:
                    continue
                low, high = self._limits(i)
                step = 10.0 ** np.floor(np.log10((high - low) / 1000.0))
                low, high = _on_grid(np.ceil(low / step), step), _on_grid(np.floor(high / step), step)
                start = float(np.clip(_on_grid(np.round(self.coordinate(joint.name) / step), step), low, high))
                unit = "m" if joint.kind == "prismatic" else "rad"
                slider = self.server.gui.add_slider(joint.name, low, high, float(step), start, hint=unit)
                slider.on_update(lambda event, name=joint.name: self._moved(event, name))
                self.sliders[joint.name] = slider
        self.words = self.server.gui.add_markdown("")

    def _limits(self, i: int) -> tuple[float, float]:
        joint = self.mechanism.joints[i]
        far = self.scene.size if joint.kind == "prismatic" else np.pi
        low = joint.limits.lower[0] if joint.limits.lower and np.isfinite(joint.limits.lower[0]) else -far
        high = joint.limits.upper[0] if joint.limits.upper and np.isfinite(joint.limits.upper[0]) else far
        return (float(low), float(high)) if high > low else (-far, far)

    def _player(self) -> None:
        t = self.scene.t
        with self.server.gui.add_folder("Run"):
            self.clock = self.server.gui.add_slider(
                "time (s)", float(t[0]), float(t[-1]), float(t[1] - t[0]), float(t[0])
            )
            self.playing = self.server.gui.add_checkbox("play", True)
            self.speed = self.server.gui.add_dropdown("speed", ("0.1", "0.25", "0.5", "1", "2"), initial_value="1")
            self._plot()
        self.clock.on_update(lambda event: self.show_time(self.clock.value))
        threading.Thread(target=self._play, daemon=True).start()

    def _plot(self) -> None:
        """Add the run's lines over time, with a point on each at the time that is shown."""
        self.plot = None
        if not self.scene.lines:
            return
        uplot = import_module("viser").uplot
        series = [uplot.Series(label="t, s")]
        for k, name in enumerate(self.scene.lines):
            color = LINE_COLORS[k % len(LINE_COLORS)]
            series.append(uplot.Series(label=name, stroke=color, width=1.5))
            series.append(uplot.Series(label="now", stroke=color, points={"show": True, "size": 8}))
        every = np.concatenate(list(self.scene.lines.values()))
        room = 0.05 * float(np.ptp(every)) or 1.0
        reach = (float(every.min()) - room, float(every.max()) + room)
        scales = {"x": uplot.Scale(time=False), "y": uplot.Scale(auto=False, range=reach)}
        self.plot = self.server.gui.add_uplot(self._plot_data(0), tuple(series), scales=scales, height=170)

    def _plot_data(self, k: int) -> tuple[Array, ...]:
        t = self.scene.line_t
        now, columns = np.full(t.size, np.nan), [t]
        k = min(int(np.searchsorted(t, self.scene.t[k])), t.size - 1)
        for line in self.scene.lines.values():
            point = now.copy()
            point[k] = line[k]
            columns += [np.asarray(line, float), point]
        return tuple(columns)

    # --- what moves it ------------------------------------------------------------------------------------------

    def coordinate(self, name: str) -> float:
        """Return the number that a joint's slider shows; of an angle without limits that within half a turn."""
        part, joint = self.q[self.mechanism.index_q(name)], self.mechanism.joint(name)
        if part.size == 1 and (joint.kind != "revolute" or joint.limits.lower or joint.limits.upper):
            return float(part[0])
        return float(np.arctan2(np.sin(part[0]), np.cos(part[0])) if part.size == 1 else np.arctan2(part[1], part[0]))

    def _moved(self, event: Any, name: str) -> None:
        if event.client is not None:
            self.move(name, float(self.sliders[name].value))

    def move(self, name: str, value: float) -> bool:
        """Set a joint, close the loops around it, and show that; return whether they could be closed."""
        m = self.mechanism
        with self._lock:
            if self.run is not None:
                self.playing.value = False
            guess, place = self.q.copy(), m.index_q(name)
            guess[place] = [value] if place.stop - place.start == 1 else [np.cos(value), np.sin(value)]
            q, self.message = guess, ""
            if m.all_constraints:
                closed = m.assemble(guess, hold=[name])
                q = closed.q if closed.ok else None
                gaps = ", ".join(f"{row} {gap:.3g}" for row, gap in list(closed.open.items())[:3])
                self.message = "loops are closed" if closed.ok else f"**cannot be closed here:** {gaps}"
            self.words.content = self.message
            if q is None:
                return False
            self.q = np.asarray(q)
            self.draw(0, self._state())
            self._follow()
            return True

    def _state(self) -> Picture:
        """Return the scene at rest in the configuration that is shown, with its reactions."""
        m, scene = self.mechanism, self.scene
        R, p = m.kinematics(self.q[None])
        now = Picture(m, scene.title, scene.size, scene.drawing, np.zeros(1), self.q[None], np.zeros((1, m.nv)), R, p)
        now.links = scene.links
        if m.names:
            try:
                reactions = np.asarray(m.solve(now.q[0], now.v[0]).reactions, float).reshape(1, -1)
            except DalembertError as error:
                self.message = str(error)
                return now
            now.forces = reaction_forces(now, reactions, uniqueness(m, now.q, now.v))
        return now

    def show_time(self, t: float) -> None:
        """Show the run at a time."""
        with self._lock:
            k = int(np.argmin(np.abs(self.scene.t - t)))
            self.q = self.scene.q[k].copy()
            self.clock.value = float(np.clip(t, self.clock.min, self.clock.max))
            self.draw(k, self.scene)
            if self.plot is not None:
                self.plot.data = self._plot_data(k)
            self._follow()

    def _follow(self) -> None:
        """Set the sliders to the configuration that is shown, on the grid of their steps."""
        for name, slider in self.sliders.items():
            place = _on_grid(np.round(self.coordinate(name) / slider.step), slider.step)
            slider.value = float(np.clip(place, slider.min, slider.max))

    def draw(self, k: int, scene: Picture) -> None:
        """Draw frame k of a scene."""
        turns = smooth_quaternions(scene.rotations[k : k + 1])[0]
        with self.server.atomic():
            for frame, place, turn in zip(self.frames, scene.positions[k], turns, strict=True):
                frame.position, frame.wxyz = tuple(place.tolist()), tuple(np.roll(turn, 1).tolist())
            self._draw_links(k, scene)
            self._draw_arrows(k, scene)

    def _draw_links(self, k: int, scene: Picture) -> None:
        """Draw springs as coils and rods as lines between their ends."""
        if not scene.links:
            return
        lines = [_coil(scene.ends_of_link(link)[k], link.kind == "spring", scene.size) for link in scene.links]
        points = np.concatenate(lines).astype(np.float32)
        if self.links is None:
            thick = WIRE * self.scene.size
            self.links = self.server.scene.add_line_segments("/links", points, colors=STEEL, thickness=thick)
        else:
            self.links.points = points

    def _draw_arrows(self, k: int, scene: Picture) -> None:
        forces = [force for force in scene.forces if np.linalg.norm(force.vectors[k]) > 0.0]
        if self.arrows is not None and len(self.arrows.points) != len(forces):
            self.arrows.remove()
            self.arrows = None
        if not forces:
            return
        unit = scene.arrow_unit
        tips = [[force.points[k], force.points[k] + unit * force.vectors[k]] for force in forces]
        points = np.array(tips, dtype=np.float32)
        colors = np.array([rgb(FORCE_COLORS[force.kind]) for force in forces], dtype=np.uint8)
        if self.arrows is not None:
            self.arrows.points, self.arrows.colors = points, colors
            return
        thick = (0.01 if self.mechanism.visuals else 1.15 * THICKNESS) * scene.size  # not hidden in generated links
        self._drawn += 1  # a name of its own: the browser may hear of the old arrows' end later
        self.arrows = self.server.scene.add_arrows(
            f"/forces/{self._drawn}",
            points,
            colors=colors,
            shaft_radius=thick,
            head_radius=2.2 * thick,
            head_length=4.0 * thick,
        )

    def _play(self) -> None:
        while not self._ended.wait(1.0 / PLAY_RATE):
            if self.playing.value:
                t = self.clock.value + float(self.speed.value) / PLAY_RATE
                self.clock.value = t if t <= float(self.scene.t[-1]) else float(self.scene.t[0])

    # --- its end ------------------------------------------------------------------------------------------------

    def wait(self) -> None:
        """Wait until the viewer is closed, or the keyboard says so."""
        try:
            while not self._ended.wait(0.5):
                time.sleep(0.0)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Close the viewer."""
        self._ended.set()
        self.gate.close()
        self.server.stop()

    def __repr__(self) -> str:
        return f"Live({self.mechanism.name!r} at {self.url})"


# ----------------------------------------------------------------------------------------------------------------------
# Springs and rods as lines, markers and solids as triangles.


def _on_grid(k: float, step: float) -> float:
    """Return k steps, a power of ten each, with the digits of a step."""
    return round(float(k) * float(step), max(0, -int(np.floor(np.log10(step) + 0.5))))


def _coil(ends: Array, coiled: bool, size: float) -> Array:
    """Return segments (K, 2, 3) between ends (2, 3): one of a rod, those of a helix of a spring."""
    start, end = ends
    length = float(np.linalg.norm(end - start))
    if not coiled or length <= FLAT * size:
        return np.array([[start, end]])
    R = np.asarray(along((end - start) / length, np.zeros(3)).rotation)
    s = np.linspace(0.0, 1.0, 16 * TURNS + 1)
    radius = COIL * size * np.clip(np.minimum(s, 1.0 - s) / 0.1, 0.0, 1.0)
    angle = 2.0 * np.pi * TURNS * s
    points = start + np.column_stack([radius * np.cos(angle), radius * np.sin(angle), length * s]) @ R.T
    return np.stack([points[:-1], points[1:]], axis=1)


def _ring(ring: Ring, size: float) -> Shape:
    """Return the marker of a constraint: a ring about its axis."""
    angle = np.linspace(0.0, 2.0 * np.pi, 13)
    profile = [(size * (RING + WIRE * np.cos(a)), size * WIRE * np.sin(a)) for a in angle]
    mesh = TriangleMesh(*_turned(profile), 0)
    return Shape("mesh", (1.0, 1.0, 1.0), along(ring.axis, ring.position), mesh=mesh)


def triangles(shape: Shape, size: float) -> tuple[Array, Array]:
    """Return vertices and faces of a solid in its own frame, the axis along z."""
    s = shape.size
    if shape.mesh is not None:
        faces = shape.mesh.faces if np.prod(s) > 0.0 else shape.mesh.faces[:, ::-1]
        return shape.mesh.vertices * np.asarray(s), faces
    if shape.kind == "box":
        corners = np.array(np.meshgrid([-0.5, 0.5], [-0.5, 0.5], [-0.5, 0.5], indexing="ij")).reshape(3, -1).T
        quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
        faces = np.array([triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))])
        return _flat(corners * np.asarray(s), faces)
    if shape.kind == "plane":
        x, y = (half or 3.0 * size for half in s)
        return np.array([[-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0.0]]), np.array([[0, 1, 2], [0, 2, 3]])
    if shape.kind == "cylinder":
        r, half = s[0], s[1] / 2
        return _flat(*_turned([(0, -half), (r, -half), (r, half), (0, half)]))
    angles = np.linspace(-np.pi / 2, np.pi / 2, 13)
    if shape.kind == "capsule":
        r, half = s[0], s[1] / 2
        caps = [(r * np.cos(a), r * np.sin(a)) for a in angles]
        middle = len(caps) // 2
        below, above = caps[: middle + 1], caps[middle:]
        return _turned([*((x, z - half) for x, z in below), *((x, z + half) for x, z in above)])
    vertices, faces = _turned([(np.cos(a), np.sin(a)) for a in angles])
    return vertices * (np.full(3, s[0]) if shape.kind == "sphere" else np.asarray(s)), faces


def _turned(profile: list[tuple[float, float]], around: int = 24) -> tuple[Array, Array]:
    """Return the surface of a profile (radius, z) turned about z."""
    angle = 2 * np.pi * np.arange(around) / around
    rings = [np.column_stack([r * np.cos(angle), r * np.sin(angle), np.full(around, z)]) for r, z in profile]
    faces = []
    for k in range(len(profile) - 1):
        a = k * around + np.arange(around)
        b = k * around + (np.arange(around) + 1) % around
        faces += [np.column_stack([a, b, b + around]), np.column_stack([a, b + around, a + around])]
    return np.concatenate(rings), np.concatenate(faces)


def _flat(vertices: Array, faces: Array) -> tuple[Array, Array]:
    """Return triangles that share no vertices, so that edges stay sharp."""
    return vertices[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3)
