"""A mechanism looked at in several configurations: ranks, redundancy, massless motion, uniqueness of reactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.kkt import Diagnosis
from dalembert.kkt.limits import SLACK
from dalembert.model.mechanism.assemble import closed_or_none, closed_samples

if TYPE_CHECKING:
    from dalembert.model.mechanism.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Finding:
    """One configuration.

    Attributes
    ----------
    place
        "neutral", "random 1", ...: where the search for it began.
    gap, widest
        Largest residual of the holonomic rows, and the row that has it ("" without rows).
    diagnosis
        What `KKT` says of it, at rest.
    """

    place: str
    gap: float
    widest: str
    diagnosis: Diagnosis

    @property
    def closed(self) -> bool:
        """Whether the constraints on configurations are met."""
        return self.gap <= SLACK

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        d = self.diagnosis
        return {
            "configuration": self.place,
            "closed": self.closed,
            "gap": self.gap,
            "widest": self.widest,
            "verdict": d.verdict.name.lower(),
            "message": d.verdict.message,
            "rank": d.rank,
            "rows": len(d.names),
            "mass_rank": d.mass_rank,
            "degrees_of_freedom": len(d.coordinates) - d.rank,
            "redundant": list(d.redundant_names),
            "inconsistent": [] if d.conflict is None else [d.names[i] for i in d.conflict.rows],
            "massless": list(d.massless_motions),
            "unique_reactions": [name for name, one in zip(d.names, d.unique, strict=True) if one],
            "reactions_not_unique": [name for name, one in zip(d.names, d.unique, strict=True) if not one],
        }

    def __str__(self) -> str:
        lines = [
            f"{self.place}: {'constraints met' if self.closed else 'constraints NOT met'} (largest gap {self.gap:.1e}"
        ]
        lines[0] += f", {self.widest})" if self.widest and not self.closed else ")"
        free = len(self.diagnosis.coordinates) - self.diagnosis.rank
        return "\n".join(
            [*lines, f"  {free} degrees of freedom", *(f"  {line}" for line in str(self.diagnosis).split("\n"))]
        )


@dataclass(frozen=True, eq=False)
class ConfigurationSurvey:
    """A mechanism and what was found; `print` it."""

    mechanism: Mechanism
    findings: tuple[Finding, ...]

    @property
    def solvable(self) -> bool:
        """Whether accelerations exist and are unique wherever the constraints are met, and they are met somewhere."""
        closed = [finding.diagnosis for finding in self.findings if finding.closed]
        return bool(closed) and all(each.solvable and each.conflict is None for each in closed)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        m = self.mechanism
        return {
            "mechanism": m.name,
            "source": m.source,
            "bodies": len(m.bodies),
            "nq": m.nq,
            "nv": m.nv,
            "mass": m.mass,
            "loops": [loop.name for loop in m.loops],
            "couplings": [coupling.name for coupling in m.couplings],
            "rows": list(m.names),
            "notes": list(m.notes),
            "solvable": self.solvable,
            "configurations": [finding.as_dict() for finding in self.findings],
        }

    def __str__(self) -> str:
        parts = [str(self.mechanism)]
        seen: dict[str, list[str]] = {}
        for finding in self.findings:
            said = str(finding).split("\n", 1)
            seen.setdefault(_without_numbers(finding), []).append(said[0])
            if len(seen[_without_numbers(finding)]) == 1:
                parts.append(str(finding))
            else:
                parts.append(f"{said[0]}\n  as at {seen[_without_numbers(finding)][0].split(':')[0]}")
        return "\n\n".join(parts)


def _without_numbers(finding: Finding) -> str:
    """Return what two findings must share to be told once."""
    kept = {k: v for k, v in finding.as_dict().items() if k not in ("configuration", "gap", "widest")}
    return repr(kept)


def survey(mechanism: Mechanism, samples: int = 3, seed: int = 0) -> ConfigurationSurvey:
    """Look at a mechanism at its neutral and at `samples` random configurations, each closed first where it can be."""
    if samples < 0 or seed < 0:
        raise ModelError(f"the number of random configurations and their seed are not negative; got {samples}, {seed}")
    close = closed_or_none(mechanism.project)
    neutral = close(mechanism.neutral())
    findings = [_finding(mechanism, "neutral", mechanism.neutral() if neutral is None else neutral)]
    for i, (q, _) in enumerate(closed_samples(mechanism, close, samples, seed)):
        findings.append(_finding(mechanism, f"random {i + 1}", q))
    return ConfigurationSurvey(mechanism, tuple(findings))


def _finding(mechanism: Mechanism, place: str, q: np.ndarray) -> Finding:
    """Diagnose a configuration."""
    phi = np.abs(mechanism.constraint(q))
    rows = [name for name, has in zip(mechanism.names, mechanism.holonomic, strict=True) if has]
    gap = float(phi.max(initial=0.0))
    return Finding(place, gap, rows[int(phi.argmax())] if phi.size else "", mechanism.diagnose(q))
