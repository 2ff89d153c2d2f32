"""Water tube network: 18 tubes between 13 nodes, two of them with storage; flows, resistances, pressures.

Index 2: pressures of nodes without storage act as multipliers of the balance of flows there. The friction law jumps
at the critical Reynolds number. Source: F. Mazzia, C. Magherini, "Test Set for Initial Value Problem Solvers", release
2.4, problem "Water tube system"; reference vector of the set, confirmed independently (flows 7-12 digits).
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from dalembert.simulate import DAE, from_expressions

from .published import Published

NU, GRAVITY, RHO, CRITICAL = 1.31e-6, 9.8, 1e3, 2.3e3
LENGTH, ROUGHNESS, DIAMETER, STORE = 1e3, 2e-4, 1.0, 2e2
AREA = np.pi * DIAMETER**2 / 4
INERTIA = RHO * LENGTH / AREA
CAPACITY = STORE / (RHO * GRAVITY)
TUBES = [
    (1, 2), (2, 3), (2, 6), (3, 4), (3, 5), (4, 5), (5, 10), (6, 5), (7, 4),
    (7, 8), (8, 5), (8, 10), (9, 8), (11, 9), (11, 12), (12, 7), (12, 8), (13, 11),
]  # fmt: skip
STORES = (5, 8)
NODES = (5, 8, 1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 13)
REFERENCE = [
    0.00229848829647743,
    0.001188984650746585,
    0.001109503645730845,
    0.0001589620100314825,
    0.001030022640715102,
    0.0008710606306836165,
    0.003243571480903489,
    0.001109503645730845,
    0.0007120986206521341,
    0.0006414613963833099,
    0.0009416978549524347,
    0.003403428519096511,
    0.002397639310739395,
    0.002397639310739395,
    0.00334858143045418,
    0.001353560017035444,
    0.001995021413418736,
    0.005746220741193575,
    0.04751940452918529,
    0.04751940452918529,
    0.04751940452918529,
    0.04751940452918529,
    0.04751940452918529,
    0.04751940452918529,
    0.04311196778792902,
    0.04751940452918529,
    0.04751940452918529,
    0.04751940452918529,
    0.04751940452918529,
    0.0424921743360116,
    0.04732336439609648,
    0.04732336439609648,
    0.04270002118868241,
    0.04751940452918529,
    0.04751940452918529,
    0.03651427026675656,
    111126.8591478108,
    111127.0045592387,
    111127.1078730254,
    111126.9851929858,
    111126.9255355337,
    111126.9322658045,
    111126.9221703983,
    111127.0121140691,
    111127.4419515807,
    111125.5158881087,
    111127.8793439227,
    111127.0995171642,
    111129.8338971779,
]


def external(t: ca.SX) -> dict[int, ca.SX]:
    """Return the flows into the network from outside, by node."""
    hours = t / 3600
    rise = 1 - ca.cos(ca.exp(-hours) - 1)
    return {1: rise / 200, 13: rise / 80, 10: -(hours**2) * (3 * hours**2 - 92 * hours + 720) / 1e6}


def system() -> DAE:
    """Return 49 equations: momentum of tubes, Colebrook's law, balance of nodes."""
    t = ca.SX.sym("t")
    flow, friction, pressure = ca.SX.sym("flow", 18), ca.SX.sym("friction", 18), ca.SX.sym("pressure", 13)
    x = ca.vertcat(flow, friction, pressure)
    rates = ca.SX.sym("rate", 49)
    at = {node: pressure[k] for k, node in enumerate(NODES)}
    rows = []
    for j, (begin, end) in enumerate(TUBES):
        reynolds = ca.fabs(flow[j] * DIAMETER / (NU * AREA))
        turbulent = friction[j] * RHO * LENGTH * flow[j] ** 2 / (AREA**2 * DIAMETER)
        laminar = 32 * NU * RHO * LENGTH * flow[j] / (AREA * DIAMETER**2)
        loss = ca.if_else(reynolds > CRITICAL, turbulent, laminar)
        rows.append(INERTIA * rates[j] - (at[begin] - at[end] - loss))
    for j in range(18):
        reynolds = ca.fmax(CRITICAL, ca.fabs(flow[j] * DIAMETER / (NU * AREA)))
        root = 1 / ca.sqrt(friction[j])
        rows.append(root - 1.74 + 2 * ca.log10(2 * ROUGHNESS / DIAMETER + 18.7 / reynolds * root))
    outside = external(t)
    for k, node in enumerate(NODES):
        inflow = outside.get(node, ca.SX(0))
        for j, (begin, end) in enumerate(TUBES):
            inflow += flow[j] * ((end == node) - (begin == node))
        rows.append(CAPACITY * rates[36 + k] - inflow if node in STORES else inflow)
    names = [*(f"flow {a}-{b}" for a, b in TUBES), *(f"friction {a}-{b}" for a, b in TUBES)]
    names += [f"pressure {node}" for node in NODES]
    index = {f"pressure {node}": 2 for node in NODES if node not in STORES}
    return from_expressions(x, rates, rows, time=t, unknowns=names, index=index)


def start() -> np.ndarray:
    """Return the state at rest: no flow, equal pressures."""
    return np.concatenate([np.zeros(18), np.full(18, 0.047519404529185289807), np.full(13, 109800.0)])


NAMES = [*(f"flow {a}-{b}" for a, b in TUBES), *(f"friction {a}-{b}" for a, b in TUBES)]
NAMES += [f"pressure {node}" for node in NODES]
PROBLEM = Published(
    name="water_tube",
    build=system,
    q=start(),
    v=np.zeros(49),
    t_end=61200.0,
    groups={
        "flows": dict(zip(NAMES[:18], REFERENCE[:18], strict=True)),
        "friction": dict(zip(NAMES[18:36], REFERENCE[18:36], strict=True)),
        "pressures": dict(zip(NAMES[36:], REFERENCE[36:], strict=True)),
    },
    mechanical=False,
)
