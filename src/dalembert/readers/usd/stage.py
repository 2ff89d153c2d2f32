"""A USD stage, opened within the folders that a model may read; prims with placements, units and numbers.

OpenUSD composes a stage of layers: a file names others as sublayers, references and payloads. They are looked through
before the stage is composed, since composing opens what a file names and repeats what it refers to.

Symbols: u metres per unit of length, w kilograms per unit of mass (stage metadata); USD writes row vectors, x' = x M.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dalembert.errors import MissingExtraError, ModelError, UnsupportedError, advised
from dalembert.model.mechanism.parts import Source
from dalembert.model.mechanism.placement import Placement
from dalembert.readers.draft import GROUND, Draft
from dalembert.readers.files import Folders, read_file
from dalembert.readers.xml_tree import DEEPEST, HUGE, shortened
from dalembert.types import Array

SUFFIXES = (".usd", ".usda", ".usdc")
"""Endings by which OpenUSD knows its layers."""

MOST_PRIMS = 200_000
"""Prims of a stage with all that is referred to, as often as it is; references of references multiply."""

SHEARED = 1e-5
"""Largest cosine between axes of a frame: matrices in files have single precision."""

NO_LIMIT = 3e38
"""Tools write the largest number of single precision, 3.4e38, where they mean none."""

BRACES = re.compile(rb'"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#[^\n]*|[{}]', re.DOTALL)
ARCS = ("referenceList", "payloadList", "inheritPathList", "specializesList")
"""Lists of a prim that bring in other prims."""


def import_usd() -> Any:
    """Return the package `pxr` with the modules that are used here, or say how to get it."""
    try:
        import pxr
        from pxr import Sdf, Usd, UsdGeom, UsdPhysics, UsdShade  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("OpenUSD", "usd", "reading USD files") from error
    return pxr


def is_usd(path: Path, content: bytes) -> bool:
    """Say whether a file is USD: by its first bytes, or by its ending where it does not begin as XML does."""
    if content.startswith((b"#usda", b"PXR-USDC")):
        return True
    return path.suffix.lower() in (*SUFFIXES, ".usdz") and not content[:4096].lstrip().startswith(b"<")


@dataclass
class Layers:
    """The layers of a model, looked through before they are composed."""

    folders: Folders
    file: str
    seen: dict[str, Any] = field(default_factory=dict)
    weights: dict[tuple[str, str], float] = field(default_factory=dict)

    def enter(self, path: Path) -> Any:
        """Return a layer; all that it names must lie in the model's folder or a declared package."""
        if str(path) in self.seen:
            return self.seen[str(path)]
        content = read_file(path)
        if not content.startswith(b"PXR-USDC"):
            self._refuse_depth(path, content)
        try:
            layer = import_usd().Sdf.Layer.FindOrOpen(str(path))
        except Exception as error:  # OpenUSD raises one class for all
            raise ModelError(f"{path}: {_complaint(error)}") from error
        if layer is None:
            raise ModelError(f"{path}: not a layer that OpenUSD can open")
        self.seen[str(path)] = layer
        for reference in filter(None, layer.GetCompositionAssetDependencies()):  # "" is the layer itself
            self.enter(self.target(layer, reference))
        return layer

    def _refuse_depth(self, path: Path, content: bytes) -> None:
        """Refuse text that is nested more deeply than a parser's stack is long."""
        depth = 0
        for token in BRACES.finditer(content):
            depth += {b"{": 1, b"}": -1}.get(token[0], 0)
            if depth > DEEPEST:
                raise ModelError(f"{path}: prims nested more than {DEEPEST} deep")

    def target(self, layer: Any, reference: str) -> Path:
        """Return the file that a layer names."""
        path = self.folders.allowed(Path(layer.realPath).parent / reference) if reference else None
        if path is None or not path.is_file():
            words = f"{layer.realPath}: {shortened(reference)!r} was not found in the model's folder or the packages"
            advice = "da.load(path, packages={name: folder}) declares one", "--packages FOLDER declares one"
            raise ModelError(advised(words, *advice))
        if path.suffix.lower() not in SUFFIXES:
            raise UnsupportedError(f"{layer.realPath}: {shortened(reference)!r} is not a layer of USD")
        return path

    def weight(self, layer: Any, path: Any, open_places: tuple[tuple[str, str], ...] = ()) -> float:
        """Return how many prims a prim becomes when all that it refers to is put in; circles are OpenUSD's to refuse.

        The count goes on through what is referred to: 20 prims that refer twice to the next one are a million.
        """
        place = (layer.identifier, str(path))
        if place in self.weights or place in open_places:
            return self.weights.get(place, 0.0)
        prim, inside = layer.GetPrimAtPath(path), (*open_places, place)
        if prim is None:
            return 0.0
        total = 1.0
        variants = [v.primSpec for group in prim.variantSets.values() for v in group.variants.values()]
        for child in (*prim.nameChildren, *(child for v in variants for child in v.nameChildren)):
            total += self.weight(layer, child.path, inside)
        for holder in (prim, *variants):
            for arc in (item for name in ARCS for item in getattr(holder, name).GetAddedOrExplicitItems()):
                asset = getattr(arc, "assetPath", "")
                other = self.enter(self.target(layer, asset)) if asset else layer
                target = getattr(arc, "primPath", arc) or f"/{other.defaultPrim}"
                total += self.weight(other, target, inside) if str(target) != "/" else 0.0
        self.weights[place] = total
        if total > MOST_PRIMS:
            raise ModelError(f"{self.file} {shortened(str(path))}: more than {MOST_PRIMS} prims with all references")
        return total


def opened(path: Path, folders: Folders) -> Any:
    """Return the composed stage of a file."""
    if path.suffix.lower() == ".usdz":
        raise UnsupportedError(f"{path}: packed USD is unpacked first: unzip {path.name}, then load the .usd in it")
    if path.suffix.lower() not in SUFFIXES:
        raise ModelError(f"{path}: USD, but OpenUSD opens it by its ending alone; name it {path.stem}.usd")
    pxr, layers = import_usd(), Layers(folders, str(path))
    root = layers.enter(path.resolve())
    for layer in list(layers.seen.values()):
        for prim in layer.rootPrims:
            layers.weight(layer, prim.path)
    try:
        stage = pxr.Usd.Stage.Open(root)
    except Exception as error:  # OpenUSD raises one class for all
        raise ModelError(f"{path}: {_complaint(error)}") from error
    errors = stage.GetCompositionErrors()
    if errors:
        raise ModelError(f"{path}: {shortened(' '.join(str(errors[0]).split()), 300)}")
    return stage


def _complaint(error: Exception) -> str:
    """Return what OpenUSD complains about, without the place in its own sources."""
    words = " ".join(str(error).split())
    return shortened(words.split(" : '", 1)[-1].rstrip(" '"), 300)


@dataclass
class UsdScene:
    """A stage on its way into a draft.

    Attributes
    ----------
    length, mass
        Metres and kilograms per unit of the stage.
    names
        Name of every body and joint by its path.
    """

    stage: Any
    draft: Draft
    length: float = 1.0
    mass: float = 1.0
    names: dict[str, str] = field(default_factory=dict)
    frames: dict[str, tuple[Placement, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pxr = import_usd()
        self.length = self._unit(pxr.UsdGeom.GetStageMetersPerUnit(self.stage), "metersPerUnit")
        self.mass = self._unit(pxr.UsdPhysics.GetStageKilogramsPerUnit(self.stage), "kilogramsPerUnit")
        self.start = pxr.Usd.TimeCode.EarliestTime()
        self._cache = pxr.UsdGeom.XformCache(self.start)
        if not self.stage.HasAuthoredMetadata("metersPerUnit"):
            self.draft.notes.append("metersPerUnit: the file gives none; USD's default, centimetres, is used")

    def _unit(self, value: float, name: str) -> float:
        if not 0.0 < value < HUGE:
            raise ModelError(f"{self.draft.file} {name} = {value:g}: a unit is a positive number")
        return float(value)

    def source(self, prim: Any) -> Source:
        """Return where a prim stands: the file and its path."""
        return Source(self.draft.file, None, f"<{shortened(str(prim.GetPath()), 200)}>")

    def error(self, prim: Any, words: str, kind: Callable[[str], Exception] = ModelError) -> Exception:
        """Return an error that names file and prim."""
        return kind(f"{self.source(prim)}: {words}")

    def place(self, prim: Any, words: str) -> None:
        """Remember a prim that says something this library does not use."""
        self.draft.leave_out_at(words, shortened(str(prim.GetPath()), 80))

    def value(self, prim: Any, name: str, default: Any) -> Any:
        """Return an attribute of a prim, or the default where it has no value."""
        attribute = prim.GetAttribute(name)
        value = attribute.Get(self.start) if attribute else None
        return default if value is None else value

    def number(self, prim: Any, name: str, default: float, infinite: bool = False) -> float:
        """Return an attribute as a number."""
        value = self.value(prim, name, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(prim, f"{name} is not a number")
        if infinite and abs(value) >= NO_LIMIT:
            return math.copysign(math.inf, value)
        if math.isnan(value) or (not infinite and not abs(value) <= HUGE):
            raise self.error(prim, f"{name} = {value} is not a finite number")
        return float(value)

    def vector(self, prim: Any, name: str, default: tuple[float, ...]) -> Array:
        """Return an attribute as three numbers."""
        values = np.array([float(x) for x in self.value(prim, name, default)])
        if not (np.isfinite(values).all() and np.abs(values).max() <= HUGE):
            raise self.error(prim, f"{name} = {values.tolist()} is not finite")
        return values

    def rotation(self, prim: Any, name: str) -> Placement:
        """Return a quaternion as a rotation; (0, 0, 0, 0), USD's word for "not given", turns nothing."""
        quaternion = self.value(prim, name, None)
        if quaternion is None:
            return Placement()
        xyzw = [*(float(x) for x in quaternion.GetImaginary()), float(quaternion.GetReal())]
        if not any(xyzw):
            return Placement()
        if not 1e-8 < math.hypot(*xyzw) < 1e8:
            raise self.error(prim, f"{name} = {xyzw} is not a rotation")
        return Placement.from_quaternion(xyzw)

    def frame(self, prim: Any) -> tuple[Placement, Array]:
        """Return where a prim stands in the world, metres, and the scales of its axes.

        Rows of USD's matrix are the axes in the world, times their scales.
        """
        path = str(prim.GetPath())
        if path not in self.frames:
            if prim.IsPseudoRoot():
                return Placement(), np.ones(3)
            matrix = np.array(self._cache.GetLocalToWorldTransform(prim))
            axes, position = matrix[:3, :3], matrix[3, :3] * self.length
            scale = np.linalg.norm(axes, axis=1)
            if not (np.isfinite(matrix).all() and np.abs(matrix).max() <= HUGE and scale.min() > 0.0):
                raise self.error(prim, "its transform has zero scale, or numbers that are not finite")
            unit = axes / scale[:, None]
            if np.abs(unit @ unit.T - np.eye(3)).max() > SHEARED:
                raise self.error(prim, "its transform shears; rotations below scales that differ by axis do that")
            if np.linalg.det(unit) < 0.0:
                raise self.error(prim, "its transform mirrors; a negative scale does that", UnsupportedError)
            U, _, Vt = np.linalg.svd(unit.T)
            self.frames[path] = Placement(U @ Vt, position), scale
        return self.frames[path]

    def name_all(self, prims: list[Any]) -> None:
        """Name parts by their prims, or by their paths where prims of several paths share a name."""
        names = [prim.GetName() for prim in prims]
        for prim, name in zip(prims, names, strict=True):
            path = str(prim.GetPath())
            self.names[path] = name if names.count(name) == 1 and name != GROUND else path.lstrip("/")
