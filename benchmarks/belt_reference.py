"""The two blocks on a belt (seed 001, sec. 4) in 40-digit arithmetic, without the library: reference event times.

python benchmarks/belt_reference.py [--until 30] [--json FILE]

Every mode is integrated by Taylor series of order 40 (the law T / (1 + 3 s x) is a series division); events are roots
of the series; the mode after an event is found by trying all 27 combinations of stick and slip on the forces and
their first three rates. Takes a minute.
"""

from __future__ import annotations

import argparse
import itertools
import json

import mpmath as mp

mp.mp.dps = 40
ORDER = 40
M1, M2, K, V = mp.mpf(4), mp.mpf(7), mp.mpf(14), mp.mpf(3) / 10
LIMIT = (mp.mpf(4), mp.mpf(7), mp.mpf(5))
DECAY = 3
CONTACTS = ("belt 1", "belt 2", "between")
NAMES = {0: "stick", 1: "slip+", -1: "slip-"}


def series(q, v, mode, order=ORDER):
    """Return Taylor coefficients of q1, q2, v1, v2 in a mode (tuple of 0, 1, -1 per contact)."""
    q1, q2, v1, v2 = [q[0]], [q[1]], [v[0]], [v[1]]
    force = [[], [], []]
    for n in range(order):
        past = (
            [x - (V if j == 0 else 0) for j, x in enumerate(v1)],
            [x - (V if j == 0 else 0) for j, x in enumerate(v2)],
            [x - y for x, y in zip(v1, v2, strict=True)],
        )
        for i in range(3):
            s = mode[i]
            if s == 0:
                force[i].append(mp.mpf(0))
                continue
            total = -s * LIMIT[i] if n == 0 else mp.mpf(0)
            for j in range(1, n + 1):
                total -= DECAY * s * past[i][j] * force[i][n - j]
            force[i].append(total / (1 + DECAY * s * past[i][0]))
        f1 = -K * (2 * q1[n] - q2[n]) + force[0][n] + force[2][n]
        f2 = -K * (q2[n] - q1[n]) + force[1][n] - force[2][n]
        a1, a2 = accelerations(f1, f2, mode)
        q1.append(v1[n] / (n + 1))
        q2.append(v2[n] / (n + 1))
        v1.append(a1 / (n + 1))
        v2.append(a2 / (n + 1))
    return q1, q2, v1, v2, force


def accelerations(f1, f2, mode):
    """Return the accelerations under applied forces with the sticking contacts of the mode held."""
    stuck1, stuck2, together = (m == 0 for m in mode)
    if (stuck1 and stuck2) or (together and (stuck1 or stuck2)):
        return mp.mpf(0), mp.mpf(0)
    if together:
        return ((f1 + f2) / (M1 + M2),) * 2
    return (mp.mpf(0) if stuck1 else f1 / M1), (mp.mpf(0) if stuck2 else f2 / M2)


def value(c, h):
    return mp.polyval(c[::-1], h)


def stuck_forces(q, v, mode):
    """Return the needed total forces on both blocks from sticking contacts: m a - elastic - sliding friction."""
    x = (v[0] - V, v[1] - V, v[0] - v[1])
    T = [-m * LIMIT[i] / (1 + DECAY * m * x[i]) if m else mp.mpf(0) for i, m in enumerate(mode)]
    f1 = -K * (2 * q[0] - q[1]) + T[0] + T[2]
    f2 = -K * (q[1] - q[0]) + T[1] - T[2]
    a1, a2 = accelerations(f1, f2, mode)
    return M1 * a1 - f1, M2 * a2 - f2


def margin(q, v, mode):
    """Return how far the sticking contacts are from letting go, in newton; negative: they cannot hold."""
    need1, need2 = stuck_forces(q, v, mode)
    s1, s2, s3 = (m == 0 for m in mode)
    if s1 and s2 and s3:
        # T1 + T3 = need1, T2 - T3 = need2: T3 in [-5, 5], in [need1 - 4, need1 + 4], in [-7 - need2, 7 - need2]
        low = max(-LIMIT[2], need1 - LIMIT[0], -LIMIT[1] - need2)
        high = min(LIMIT[2], need1 + LIMIT[0], LIMIT[1] - need2)
        return high - low
    if s3:
        if s1:
            return min(LIMIT[2] - abs(need2), LIMIT[0] - abs(need1 + need2))
        if s2:
            return min(LIMIT[2] - abs(need1), LIMIT[1] - abs(need1 + need2))
        return LIMIT[2] - abs(need1)
    margins = [mp.inf]
    if s1:
        margins.append(LIMIT[0] - abs(need1))
    if s2:
        margins.append(LIMIT[1] - abs(need2))
    return min(margins)


def possible(q, v, rest, old):
    """Return the one mode that continues the motion: sticking margins and slipping directions hold for a short time."""
    choices = [(0, 1, -1) if rest[i] else (old[i],) for i in range(3)]
    found = []
    for mode in itertools.product(*choices):
        if mode.count(0) == 2:  # two rows at rest make the third one rest
            continue
        c = series(q, v, mode, 12)
        good = True
        for h in (mp.mpf(10) ** -6, mp.mpf(10) ** -5, mp.mpf(10) ** -4):
            qq, vv = (value(c[0], h), value(c[1], h)), (value(c[2], h), value(c[3], h))
            xx = (vv[0] - V, vv[1] - V, vv[0] - vv[1])
            good &= margin(qq, vv, mode) >= 0
            good &= all(mode[i] == 0 or mode[i] * xx[i] > 0 for i in range(3))
        if good:
            found.append(mode)
    assert len(found) == 1, (q, v, rest, old, found)
    return found[0]


def root(f, low, high):
    for _ in range(200):
        middle = (low + high) / 2
        if f(middle) > 0:
            low = middle
        else:
            high = middle
        if high - low < mp.mpf(10) ** -33:
            break
    return (low + high) / 2


def first_event(c, mode, h):
    """Return (time, contacts that come to rest, or None for a loss of stick) within a step, or None."""

    def state(s):
        return (value(c[0], s), value(c[1], s)), (value(c[2], s), value(c[3], s))

    def speed(i, s):
        v = state(s)[1]
        return mode[i] * (v[0] - V, v[1] - V, v[0] - v[1])[i]

    best = None
    grid = [h * j / 16 for j in range(17)]
    for i in range(3):
        if mode[i]:
            for low, high in itertools.pairwise(grid):
                if speed(i, low) > 0 and speed(i, high) <= 0:
                    s = root(lambda s, i=i: speed(i, s), low, high)
                    if best is None or s < best[0]:
                        best = (s, i)
                    break
    if 0 in mode:
        for low, high in itertools.pairwise(grid):
            if margin(*state(high), mode) < 0:
                s = root(lambda s: margin(*state(s), mode), low, high)
                if best is None or s < best[0]:
                    best = (s, None)
                break
    return best


def events_until(end):
    t, q, v, mode = mp.mpf(0), (mp.mpf(0), mp.mpf(0)), (V, V), (0, 0, 0)
    found = []
    step = mp.mpf(1) / 32
    while t < end:
        c = series(q, v, mode)
        h = min(step, end - t)
        event = first_event(c, mode, h)
        s = h if event is None else event[0]
        q, v = (value(c[0], s), value(c[1], s)), (value(c[2], s), value(c[3], s))
        t += s
        if mode[0] == 0:
            v = (V, v[1])
        if mode[1] == 0:
            v = (v[0], V)
        if event is None:
            continue
        x = [v[0] - V, v[1] - V, v[0] - v[1]]
        rest = [mode[i] == 0 or abs(x[i]) < mp.mpf(10) ** -25 for i in range(3)]
        if rest[0]:
            v = (V, v[1])
        if rest[1]:
            v = (v[0], V)
        if rest[2]:
            v = (v[0], v[0]) if not rest[1] else (v[1], v[1])
        new = possible(q, v, rest, mode)
        found += [(t, CONTACTS[i], NAMES[mode[i]], NAMES[new[i]]) for i in range(3) if new[i] != mode[i]]
        mode = new
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--until", type=float, default=30.0)
    parser.add_argument("--json")
    options = parser.parse_args()
    table = [
        {"time": mp.nstr(t, 20), "contact": c, "from": a, "to": b} for t, c, a, b in events_until(mp.mpf(options.until))
    ]
    for row in table:
        print(f"{row['time']:>24s}  {row['contact']}: {row['from']} -> {row['to']}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as stream:
            json.dump({"events": table}, stream, indent=1)


if __name__ == "__main__":
    main()
