"""The variables of a unit, and the files that describe them: modelDescription.xml, buildDescription.xml.

Value references are places in the runtime's array (`runtime.h`): time, states, their derivatives, inputs, multipliers,
status, parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from dalembert._version import __version__
from dalembert.model.joints import KINDS
from dalembert.model.mechanism.mechanism import Mechanism

UNITS = {
    "rad": {"rad": 1},
    "m": {"m": 1},
    "rad/s": {"rad": 1, "s": -1},
    "m/s": {"m": 1, "s": -1},
    "rad/s2": {"rad": 1, "s": -2},
    "m/s2": {"m": 1, "s": -2},
    "N.m": {"kg": 1, "m": 2, "s": -2},
    "N": {"kg": 1, "m": 1, "s": -2},
    "s": {"s": 1},
}
"""Units by name, as powers of the base units."""


@dataclass(frozen=True)
class UnitVariable:
    """One variable of a unit.

    Attributes
    ----------
    causality
        "independent", "output", "local", "input" or "parameter".
    start
        Its start value; None where it is computed.
    derivative_of
        Place of the state that it is the derivative of.
    """

    name: str
    causality: str
    start: float | None = None
    unit: str = ""
    derivative_of: int | None = None

    @property
    def variability(self) -> str:
        """How it varies."""
        return "tunable" if self.causality == "parameter" else "continuous"

    @property
    def initial(self) -> str | None:
        """Whether its start is given; inputs and time have no such word."""
        if self.causality in ("input", "independent"):
            return None
        return "calculated" if self.start is None else "exact"


def variables(
    mechanism: Mechanism, q: Sequence[float], v: Sequence[float], parameters: dict[str, float]
) -> list[UnitVariable]:
    """Return all variables in the order of their value references."""
    q_units, v_units = _units(mechanism)
    states = [
        *zip(mechanism.configuration_names, q, q_units, strict=True),
        *zip((f"{name}.v" for name in mechanism.coordinates), v, (_per_second(u) for u in v_units), strict=True),
    ]
    entries = [UnitVariable("time", "independent", unit="s")]
    entries += [UnitVariable(name, "output", float(x), unit) for name, x, unit in states]
    for place, (name, _, unit) in enumerate(states, start=1):
        entries.append(UnitVariable(f"der({name})", "local", None, _per_second(unit), place))
    efforts = {"rad": "N.m", "m": "N"}
    for name, unit in zip(mechanism.coordinates, v_units, strict=True):
        entries.append(UnitVariable(f"tau.{name}", "input", 0.0, efforts[unit]))
    entries += [UnitVariable(f"multiplier.{name}", "output") for name in mechanism.names]
    entries.append(UnitVariable("status", "output"))
    return entries + [UnitVariable(name, "parameter", float(x)) for name, x in parameters.items()]


def _units(mechanism: Mechanism) -> tuple[list[str], list[str]]:
    """Return the units of q, none where an entry is of a quaternion or a cosine, and those of what v integrates to."""
    q: list[str] = []
    v: list[str] = []
    for joint in mechanism.joints:
        kind = KINDS[joint.kind]
        velocity_units = ["rad" if angular else "m" for angular in kind.angular]
        v += velocity_units
        length = ["m"] * (kind.unit.start if kind.unit is not None else 0)
        q += velocity_units if kind.nq == kind.nv else length + [""] * (kind.nq - len(length))
    return q, v


def _per_second(unit: str) -> str:
    return {"rad": "rad/s", "m": "m/s", "rad/s": "rad/s2", "m/s": "m/s2"}.get(unit, "")


def _attributes(**words: object) -> str:
    return "".join(f" {name}={quoteattr(str(value))}" for name, value in words.items() if value not in (None, ""))


def _number(x: float) -> str:
    return repr(float(x))


def _units_xml(found: Sequence[UnitVariable]) -> list[str]:
    used = sorted({variable.unit for variable in found} - {""})
    lines = [f"    <Unit{_attributes(name=unit)}><BaseUnit{_attributes(**UNITS[unit])}/></Unit>" for unit in used]
    return ["  <UnitDefinitions>", *lines, "  </UnitDefinitions>"]


def description3(
    name: str, title: str, token: str, found: Sequence[UnitVariable], kinds: Sequence[str], step: float
) -> str:
    """Return modelDescription.xml of FMI 3.0."""
    common = {
        "modelIdentifier": name,
        "canGetAndSetFMUState": "true",
        "canSerializeFMUState": "true",
        "providesDirectionalDerivatives": "true",
        "providesAdjointDerivatives": "true",
    }
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<fmiModelDescription fmiVersion="3.0"{_attributes(modelName=title, instantiationToken=token)}'
        f' generationTool="dalembert {__version__}" variableNamingConvention="flat">',
    ]
    if "model_exchange" in kinds:
        words = {"needsCompletedIntegratorStep": "true", **common}
        lines.append(f"  <ModelExchange{_attributes(**words)}/>")
    if "co_simulation" in kinds:
        words = {
            **common,
            "canHandleVariableCommunicationStepSize": "true",
            "fixedInternalStepSize": _number(step),
        }
        lines.append(f"  <CoSimulation{_attributes(**words)}/>")
    lines += _units_xml(found)
    lines += ['  <DefaultExperiment startTime="0.0" stopTime="10.0"/>', "  <ModelVariables>"]
    for place, x in enumerate(found):
        words = {
            "name": x.name,
            "valueReference": place,
            "causality": x.causality,
            "variability": x.variability,
            "initial": x.initial,
            "unit": x.unit,
            "derivative": x.derivative_of,
            "start": None if x.start is None else _number(x.start),
        }
        lines.append(f"    <Float64{_attributes(**words)}/>")
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for role, chosen in _structure(found):
        tag = {"output": "Output", "derivative": "ContinuousStateDerivative", "initial": "InitialUnknown"}[role]
        lines += [f'    <{tag} valueReference="{place}"/>' for place in chosen]
    return "\n".join([*lines, "  </ModelStructure>", "</fmiModelDescription>", ""])


def description2(
    name: str, title: str, token: str, found: Sequence[UnitVariable], kinds: Sequence[str], files: Sequence[str]
) -> str:
    """Return modelDescription.xml of FMI 2.0."""
    common = {
        "modelIdentifier": name,
        "canGetAndSetFMUstate": "true",
        "canSerializeFMUstate": "true",
        "providesDirectionalDerivative": "true",
    }
    sources = "".join(f"<File{_attributes(name=file)}/>" for file in files)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<fmiModelDescription fmiVersion="2.0"{_attributes(modelName=title, guid=token)}'
        f' generationTool="dalembert {__version__}" variableNamingConvention="flat" numberOfEventIndicators="0">',
    ]
    if "model_exchange" in kinds:
        lines.append(f"  <ModelExchange{_attributes(**common)}><SourceFiles>{sources}</SourceFiles></ModelExchange>")
    if "co_simulation" in kinds:
        words = {**common, "canHandleVariableCommunicationStepSize": "true"}
        lines.append(f"  <CoSimulation{_attributes(**words)}><SourceFiles>{sources}</SourceFiles></CoSimulation>")
    lines += _units_xml(found)
    lines += ['  <DefaultExperiment startTime="0.0" stopTime="10.0"/>', "  <ModelVariables>"]
    for place, x in enumerate(found):
        words = {
            "name": x.name,
            "valueReference": place,
            "causality": x.causality,
            "variability": x.variability,
            "initial": x.initial,
        }
        real = {
            "unit": x.unit,
            "derivative": None if x.derivative_of is None else x.derivative_of + 1,
            "start": None if x.start is None else _number(x.start),
        }
        lines.append(f"    <ScalarVariable{_attributes(**words)}><Real{_attributes(**real)}/></ScalarVariable>")
    lines += ["  </ModelVariables>", "  <ModelStructure>"]
    for role, chosen in _structure(found):
        tag = {"output": "Outputs", "derivative": "Derivatives", "initial": "InitialUnknowns"}[role]
        if chosen:
            lines.append(f"    <{tag}>" + "".join(f'<Unknown index="{place + 1}"/>' for place in chosen) + f"</{tag}>")
    return "\n".join([*lines, "  </ModelStructure>", "</fmiModelDescription>", ""])


def _structure(found: Sequence[UnitVariable]) -> list[tuple[str, list[int]]]:
    """Return the places of outputs, of derivatives of states, and of what initialisation computes."""
    places = list(enumerate(found))
    return [
        ("output", [k for k, x in places if x.causality == "output"]),
        ("derivative", [k for k, x in places if x.derivative_of is not None]),
        ("initial", [k for k, x in places if x.initial == "calculated"]),
    ]


def build_description(name: str, files: Sequence[str]) -> str:
    """Return sources/buildDescription.xml of FMI 3.0."""
    lines = [f"    <SourceFile{_attributes(name=file)}/>" for file in files]
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            '<fmiBuildDescription fmiVersion="3.0">',
            f"  <BuildConfiguration{_attributes(modelIdentifier=name)}>",
            '    <SourceFileSet language="C99">',
            *("  " + line for line in lines),
            "    </SourceFileSet>",
            "  </BuildConfiguration>",
            "</fmiBuildDescription>",
            "",
        ]
    )
