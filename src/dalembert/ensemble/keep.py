"""What is kept of a run: its end, numbers of its columns, states at given times, or what a function makes of it.

| `keep=` | kept of each run |
|---|---|
| `"q"`, `"hinge"`, `"energy"` | the last value of a quantity |
| `("hinge", "max")` | its largest value, as `run.maximum("hinge")`; `TAKEN` has the others |
| `("q", times)` | q, v or a coordinate at these times, as accurate as the samples |
| `f` | f(run), a number or an array of the same shape in every run |

Extrema, means and root mean squares are those of the motion, whatever its samples are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.checks import floats, shown
from dalembert.errors import DalembertError, ModelError, ShapeError
from dalembert.names import near_matches
from dalembert.simulate.reductions import ENDS, REDUCTIONS, reduced
from dalembert.types import Array

if TYPE_CHECKING:
    from dalembert.simulate.trajectory import Trajectory

TAKEN = (*ENDS, *REDUCTIONS)
"""How a column of a run becomes one number: at its ends, or over the motion (`simulate/reductions.py`)."""

TAKEN_NAMES = ("status", "reason", "end_time", "steps", "event_count", "alone")
"""What every study has of its runs."""

MOST_NUMBERS = 10_000_000
"""Numbers that one run may keep: 80 MB."""


def at_times(run: Trajectory, name: str, times: Array) -> Array:
    """Return q, v or a coordinate at times of the run, (T,) or (T, k); NaN after its end."""
    inside = times <= run.t[-1]
    q, v = run.at(times[inside])
    rows = of_state(run, name, q, v)
    found = np.full((len(times), *rows.shape[1:]), np.nan)
    found[inside] = rows
    return found


def of_state(run: Trajectory, name: str, q: Array, v: Array) -> Array:
    """Return q, v or a coordinate out of states (..., nq), (..., nv)."""
    if name in ("q", "v"):
        return q if name == "q" else v
    if name in run.configuration_names:
        return q[..., run.configuration_names.index(name)]
    if name.endswith(".v") and name[:-2] in run.coordinates:
        return v[..., run.coordinates.index(name[:-2])]
    known = ["q", "v", *run.configuration_names, *(f"{each}.v" for each in run.coordinates)]
    raise ModelError(f"at given times there are q, v and coordinates, not {name!r}", near=near_matches(name, known))


@dataclass(frozen=True, eq=False)
class Keeper:
    """One quantity that is kept of every run, with its name.

    Attributes
    ----------
    quantity, take, times
        What to take of which column, or at which times.
    function
        A function of the run in their place.
    norm
        Whether columns of vectors are measured by their lengths.
    """

    name: str
    quantity: str = ""
    take: str = "last"
    times: Array | None = None
    function: Callable[[Trajectory], Any] | None = None
    norm: bool = False

    def __call__(self, run: Trajectory) -> Array:
        """Return what is kept of a run, as floats."""
        if self.function is not None:
            return np.asarray(self.function(run), dtype=float)
        if self.times is not None:
            return at_times(run, self.quantity, self.times)
        return np.asarray(reduced(run, self.quantity, self.take, self.norm), dtype=float)

    @property
    def reduces(self) -> bool:
        """Whether the motion between samples makes the number."""
        return self.function is None and self.times is None and self.take in REDUCTIONS

    def described(self) -> dict[str, Any]:
        """Return plain data; a function is named alone."""
        if self.function is not None:
            return {"name": self.name, "function": getattr(self.function, "__name__", "function")}
        times = None if self.times is None else self.times.tolist()
        return {"name": self.name, "quantity": self.quantity, "take": self.take, "times": times, "norm": self.norm}


def keepers(keep: Any) -> tuple[Keeper, ...]:
    """Read `keep=`: None (the last q and v), a name, a list of names, or a mapping from names to what is kept."""
    if keep is None:
        keep = {"q": "q", "v": "v"}
    if isinstance(keep, str):
        keep = [keep]
    if not isinstance(keep, Mapping):
        if not isinstance(keep, Sequence) or not all(isinstance(name, str) for name in keep):
            raise ModelError(f'keep={shown(keep)}: give names, or a dict: keep={{"peak": ("hinge", "max")}}')
        keep = {name: name for name in keep}
    if not keep:
        raise ModelError("keep= names nothing: a study keeps at least one quantity of every run")
    return tuple(_keeper(str(name), wanted) for name, wanted in keep.items())


def _keeper(name: str, wanted: Any) -> Keeper:
    if name in TAKEN_NAMES:
        raise ModelError(f"{name!r} is kept of every run already: call what you keep otherwise")
    if "/" in name or name.startswith((".", "_")) or not name:
        raise ModelError(f"{name!r} cannot name what is kept: it becomes the name of an array in a store")
    if isinstance(wanted, Keeper):
        return wanted
    if isinstance(wanted, str):
        return Keeper(name, wanted)
    if callable(wanted):
        return Keeper(name, function=wanted)
    if isinstance(wanted, tuple) and len(wanted) == 2 and isinstance(wanted[0], str):
        quantity, how = wanted
        if isinstance(how, str):
            if how not in TAKEN:
                raise ModelError(
                    f"{how!r} of {quantity!r}: there are {', '.join(TAKEN)}", near=near_matches(how, TAKEN)
                )
            return Keeper(name, quantity, how)
        times = np.atleast_1d(floats(how, f"the times of {name!r}"))
        if times.ndim == 1 and times.size and np.isfinite(times).all():
            return Keeper(name, quantity, times=times)
    raise ModelError(
        f"keep {name!r}: {shown(wanted)} is neither the name of a quantity, nor (name, 'max'), nor (name, times), nor "
        "a function of the run"
    )


def keepers_of(data: Sequence[Mapping[str, Any]], given: Any) -> tuple[Keeper, ...]:
    """Return what `Keeper.described` wrote; functions are given again."""
    again = {} if given is None else {each.name: each for each in keepers(given)}
    for name, each in again.items():
        kept = next((one for one in data if one["name"] == name), None)
        if kept is None or ("function" in kept) != (each.function is not None):
            raise ModelError(f"keep {name!r} is not what the store keeps: give the functions of the study again")
        if each.function is None and each.described() != kept:
            raise ModelError(f"keep {name!r} is another one in the store; leave it out, the store holds it")
    found = []
    for each in data:
        name = str(each["name"])
        if "function" in each:
            if name not in again:
                raise ModelError(f"keep {name!r} was a function, which a store cannot hold; give it again: keep=...")
            found.append(again[name])
        else:
            times = None if each["times"] is None else np.array(each["times"], float)
            found.append(Keeper(name, str(each["quantity"]), str(each["take"]), times, norm=bool(each["norm"])))
    return tuple(found)


def kept_of(
    run: Trajectory, wanted: Sequence[Keeper], shapes: Mapping[str, tuple[int, ...]] | None
) -> dict[str, Array]:
    """Return all that is kept of a run; what has another shape than in the pilot run is refused."""
    found = {}
    for each in wanted:
        try:
            value = each(run)
        except DalembertError:
            raise
        except Exception as error:
            raise ModelError(f"keep {each.name!r} raised {type(error).__name__}: {error}") from error
        if value.size > MOST_NUMBERS:
            raise ShapeError(f"keep {each.name!r} has {value.size} numbers of one run; the most are {MOST_NUMBERS}")
        if shapes is not None and value.shape != shapes[each.name]:
            raise ShapeError(
                f"keep {each.name!r} has shape {value.shape} here and {shapes[each.name]} in the pilot run: "
                "all runs must keep the same"
            )
        found[each.name] = value
    return found
