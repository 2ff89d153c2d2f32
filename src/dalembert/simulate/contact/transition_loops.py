"""Transitions between modes, compiled: who opens, closes, sticks and slips at an instant."""

# pyright: reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import numpy as np

from dalembert.kernel.array_loops import copy_to, dot, fill
from dalembert.kernel.loops import invoke, nested
from dalembert.kernel.views import Unit, flags, matrix, table_at, vector, whole, whole_matrix
from dalembert.simulate.contact.cone_loops import decided, slipping_limb
from dalembert.simulate.contact.engine_memory import (
    AT,
    CLINGING,
    CLOSED,
    CODE,
    CONTACT,
    DETACHED,
    ENDLESS,
    ENERGY_BEFORE,
    EVENT_TOLERANCE,
    FIRST,
    FIXED_STEP,
    FORCE_UNIT,
    FRICTION_SUM,
    GAIN,
    GAINS,
    HEAT_SUM,
    IMPACT,
    IMPACTS,
    KEPT_ROWS,
    KNOWN,
    NUMBER,
    OPEN,
    RATE_UNIT,
    REST,
    ROWS,
    SEQUENTIAL,
    SLIP,
    SOUND,
    STICK,
    TERMS,
    TIME_SCALE,
    TRANSITION,
    WHO,
    WORK,
    H,
    T,
)
from dalembert.simulate.contact.friction_loops import own_acceleration, rate_of_itself, static, static_applies, terms_of
from dalembert.simulate.contact.impact_loops import certify, limit_of, strike, strike_one_by_one
from dalembert.simulate.contact.mode_loops import motion, opening, still
from dalembert.simulate.contact.projection_loops import least_change, project
from dalembert.simulate.contact.record_loops import note, word_of
from dalembert.simulate.contact.row_loops import choose, free_motions, see_limbs
from dalembert.simulate.contact.step_loops import set_state
from dalembert.simulate.limits import (
    AT_REST,
    CLINGS,
    LEFT_TO_LIMIT,
    LOST_AT_REST,
    LOW_FLIGHT,
    SAME_INSTANT,
    SLIDES_ON,
    SLOW,
    STILL,
    STRAIGHT,
    TOUCHING,
    TURNED_AWAY,
    WEAK,
)

CHANGES = 50
"""Changes of mode at one instant at most."""

# ----------------------------------------------------------------------------------------------------------------------
# Modes that hold: who opens, sticks, slips.


@nested
def choose_at(w):
    """Choose independent rows of the mode at w.q, w.v."""
    time, clock = vector(w, AT.time), vector(w, AT.clock)
    calls = whole_matrix(w, AT.calls)
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    choose(w)


@nested
def let_go(w, i, x, y):
    """Let a contact slide along (x, y)."""
    slides = flags(w, AT.slides)
    slow, limits = vector(w, AT.slow), vector(w, AT.limits)
    direction = matrix(w, AT.direction)
    tangents = whole(w, AT.tangents)
    size = np.sqrt(x * x + y * y)
    slides[i] = True
    direction[i, 0], direction[i, 1] = (x / size, y / size) if size > 0.0 else (1.0, 0.0)
    slow[i] = limits[TIME_SCALE] * own_acceleration(w, i) if tangents[i] == 2 else 0.0


@nested
def do_settle(w):
    """Open and let slide what must, at the state of the run, until the mode holds; return how it ended."""
    closed, gapped, pushes = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.pushes)
    slides = flags(w, AT.slides)
    q, v, reactions = vector(w, AT.q), vector(w, AT.v), vector(w, AT.reactions)
    q0, v0 = vector(w, AT.q0), vector(w, AT.v0)
    clock, contact_rate = vector(w, AT.clock), vector(w, AT.contact_rate)
    load_, lam = vector(w, AT.load), vector(w, AT.lam)
    tally, tangents, load_row = whole(w, AT.tally), whole(w, AT.tangents), whole(w, AT.load_row)
    limits, levers = vector(w, AT.limits), vector(w, AT.levers)
    k = closed.size
    needed, goes = np.zeros(3 * k), np.zeros(k, np.bool_)
    for _ in range(CHANGES):
        set_state(w, q0, v0)
        choose_at(w)
        code = project(w, clock[T])
        if code != SOUND:
            return code
        copy_to(q0, q)
        copy_to(v0, v)
        code = motion(w, clock[T], True)
        if code == SOUND:
            code = slipping_limb(w)
        if code != SOUND:
            return code
        copy_to(needed, reactions)
        largest, noise = 0.0, opening(w)
        for j in range(3 * k):
            largest = max(largest, abs(reactions[j]))
        pull = WEAK * (limits[FORCE_UNIT] + largest)
        wrong = False
        for i in range(k):
            if not closed[i]:
                continue
            if gapped[i] and (reactions[3 * i] < -pull or contact_rate[3 * i] > noise * levers[i]):
                wrong = True
            if not gapped[i] and load_row[i] >= 0 and pushes[i] and -lam[load_row[i]] < -pull:
                tally[WHO] = i
                return DETACHED
            if tangents[i] and not slides[i] and static_applies(w, i):
                N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load_[i])
                force = np.sqrt(reactions[3 * i + 1] ** 2 + reactions[3 * i + 2] ** 2)
                if static(w, i) * N - force < -pull:
                    wrong = True
                if np.sqrt(contact_rate[3 * i + 1] ** 2 + contact_rate[3 * i + 2] ** 2) > noise * levers[i]:
                    wrong = True
        if not wrong:
            return SOUND
        code = decided(w)
        if code != SOUND:
            return code
        noise = opening(w)
        opened = begins = False
        fill(goes, False)
        weakest, excess = -1, pull
        for i in range(k):
            leaves = contact_rate[3 * i] > noise * levers[i] or needed[3 * i] < -pull
            goes[i] = closed[i] and gapped[i] and reactions[3 * i] <= pull and leaves
        code = stays_down(w, goes, needed)
        if code != SOUND:
            return code
        for i in range(k):
            if goes[i]:
                closed[i], slides[i], opened = False, False, True
                note(w, clock[T], i, CLOSED, OPEN)
        if opened:
            continue
        for i in range(k):
            if not closed[i] or slides[i] or tangents[i] == 0 or not static_applies(w, i):
                continue
            N = reactions[3 * i] if gapped[i] else (abs(lam[load_row[i]]) if load_row[i] >= 0 else load_[i])
            if gapped[i] and not pull < N:
                continue
            x, y = contact_rate[3 * i + 1], contact_rate[3 * i + 2]
            force = np.sqrt(needed[3 * i + 1] ** 2 + needed[3 * i + 2] ** 2)
            load = needed[3 * i] if gapped[i] else N
            if np.sqrt(x * x + y * y) > noise * levers[i]:
                let_go(w, i, x, y)
                begins = True
            elif force - static(w, i) * load > excess and load > 0.0:
                weakest, excess = i, force - static(w, i) * load
        # next to the edge nobody is seen to slip: who is most beyond its limit lets go, others may hold then
        if not begins and weakest >= 0:
            let_go(w, weakest, -needed[3 * weakest + 1], -needed[3 * weakest + 2])
            begins = True
        if not begins:
            # complementarity holds all: the forces of the mode are another choice of redundant ones
            return SOUND
    return ENDLESS


@nested
def stays_down(w, goes, needed):
    """Take those out of `goes` whose massless limbs, let go and held, would sink; return how it ended."""
    closed, massless = flags(w, AT.closed), flags(w, AT.massless)
    v, trouble = vector(w, AT.v), vector(w, AT.trouble)
    W, held, limb = matrix(w, AT.W), matrix(w, AT.held_rows), vector(w, AT.limb)
    kept, mode_counts = whole(w, AT.kept), whole(w, AT.mode_counts)
    if whole(w, AT.limbs)[0] == 0:
        return SOUND
    largest = 0.0
    for j in range(needed.size):
        largest = max(largest, abs(needed[j]))
    for i in range(closed.size):
        closed[i] = closed[i] and not goes[i]
    choose(w)
    count = free_motions(w, kept, mode_counts[KEPT_ROWS])
    left, code = v.copy(), SOUND
    for b in range(count):
        along = dot(held[b], v) - dot(held[b], limb)
        for j in range(v.size):
            left[j] -= along * held[b, j]
    for i in range(closed.size):
        if not goes[i]:
            continue
        closed[i] = True
        if massless[i] and dot(W[3 * i], left) < 0.0:
            goes[i] = False
            if needed[3 * i] < -CLINGS * (vector(w, AT.limits)[FORCE_UNIT] + largest):
                trouble[CONTACT], trouble[NUMBER], code = i, -needed[3 * i], CLINGING
    choose(w)
    return code


# ----------------------------------------------------------------------------------------------------------------------
# Impacts, and the end of sliding.


@nested
def do_impact(w):
    """Let touching contacts collide, close those that do not separate, settle; return how it ended."""
    limits, q0, v0 = vector(w, AT.limits), vector(w, AT.q0), vector(w, AT.v0)
    time, v, clock = vector(w, AT.time), vector(w, AT.v), vector(w, AT.clock)
    velocity, gaps, gain = vector(w, AT.velocity), vector(w, AT.gaps), vector(w, AT.gain)
    impulses, row_impulses, impact = vector(w, AT.impulses), vector(w, AT.row_impulses), vector(w, AT.impact)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    massless = flags(w, AT.massless)
    calls = whole_matrix(w, AT.calls)
    tally, load_row = whole(w, AT.tally), whole(w, AT.load_row)
    W, levers = matrix(w, AT.W), vector(w, AT.levers)
    k, n, t = closed.size, v.size, clock[T]
    rising = vector(w, AT.contact_rate).copy()
    set_state(w, q0, v0)
    time[0] = t
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    before, size = velocity.copy(), limits[RATE_UNIT]
    for j in range(3 * k):
        if gapped[j // 3]:
            size = max(size, abs(before[j]) / levers[j // 3])
    touching, plastic, limit = np.zeros(k, np.bool_), np.zeros(k, np.bool_), np.zeros(k)
    for i in range(k):
        slow = before[3 * i] <= STILL * size * levers[i] or falls_back(w, i, before[3 * i], rising[3 * i])
        touching[i] = not gapped[i] or closed[i] or (gaps[i] <= TOUCHING * levers[i] and slow)
        if gapped[i]:
            limit[i] = end_of_impacts(w, i, before[3 * i], rising[3 * i])
            plastic[i] = limit[i] > 0.0
    see_limbs(w)
    for i in range(k):
        plastic[i] = plastic[i] or massless[i]
    fill(impact, 0.0)
    fill(row_impulses, 0.0)
    after, start = np.zeros(n), v0.copy()
    if limits[SEQUENTIAL]:
        code = strike_one_by_one(w, touching, plastic, impulses, after)
    else:
        code = strike(w, touching, plastic, impulses, after)
    if code != SOUND:
        return code
    piled = note_impacts(w, before, touching, limit)
    copy_to(v0, after)
    set_state(w, q0, v0)
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    # what the contacts take: P . (u- + u+) / 2; what they do to the system: P . W (v- + v+) / 2
    heat = work = 0.0
    for j in range(3 * k):
        if gapped[j // 3] or load_row[j // 3] >= 0:
            heat -= 0.5 * impulses[j] * (before[j] + velocity[j])
            for b in range(n):
                work += 0.5 * impulses[j] * W[j, b] * (start[b] + after[b])
    stays, low = np.zeros(k, np.bool_), False
    for i in range(k):
        u, fast = velocity[3 * i], (SLOW * limits[RATE_UNIT] if piled > 0.0 else STILL * size) * levers[i]
        stays[i] = touching[i] and (u <= fast or falls_back(w, i, u, rising[3 * i]))
        low = low or (stays[i] and gapped[i] and u > fast)
    close(w, stays)
    if piled > 0.0 or low:
        lost, given = rest_together(w, SLIDES_ON * piled)
        heat, work = heat + lost, work + given
    sticks = np.zeros(k, np.bool_)
    for i in range(k):
        sticks[i] = closed[i] and gapped[i] and not slides[i]
    code = do_settle(w)
    for i in range(k):
        if sticks[i] and closed[i] and slides[i]:
            note(w, t, i, STICK, SLIP)
    for row in range(row_impulses.size):
        clock[WORK] += row_impulses[row] * rate_of_itself(w, row)
    clock[HEAT_SUM] += heat
    clock[FRICTION_SUM] += work
    certify(w, start)
    if heat < -2.0 * limits[GAIN] * impact[ENERGY_BEFORE]:
        if tally[GAINS] == 0:
            gain[0], gain[1] = -heat, t
        tally[GAINS] += 1
    return code


@nested
def falls_back(w, i, u, rise):
    """Return whether contact i, which opens at the speed u and the acceleration `rise`, comes back unseen."""
    return rise < 0.0 and u > 0.0 and u * u <= -2.0 * rise * LOW_FLIGHT * vector(w, AT.levers)[i]


@nested
def end_of_impacts(w, i, u, rise):
    """Return when the impacts of contact i end that now strikes at the velocity u of its gap, or 0: it bounces on.

    They end at the limit of a steady sequence that is near; and where the contact has fallen from within what touches,
    u^2 <= 2 a h, a = -`rise` the acceleration at which its gap closes: it had not left. That ends the impacts of
    contacts of one body, which strike in turn and disturb each other's, at no steady intervals.
    """
    limits, struck, t = vector(w, AT.limits), matrix(w, AT.struck), vector(w, AT.clock)[T]
    end = limit_of(struck[i], t, LEFT_TO_LIMIT / limits[RATE_UNIT])
    fallen = rise < 0.0 and u < 0.0 and u * u <= -2.0 * rise * TOUCHING * vector(w, AT.levers)[i]
    if end > 0.0 or not fallen or vector(w, AT.restitution)[i] >= 1.0:
        return end
    return max(limit_of(struck[i], t, np.inf), t)


@nested
def rest_together(w, fast):
    """Let closed contacts rest once impacts pile up; return the heat, and the work on the system.

    Those that stay closed lose the velocity of their gaps, and those their sliding that slide no faster than `fast`
    times their lever: such a group would strike, stick and slip ever faster and slower on its way to rest.
    """
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    velocity, levers, calls = vector(w, AT.velocity), vector(w, AT.levers), whole_matrix(w, AT.calls)
    direction = matrix(w, AT.direction)
    for i in range(closed.size):
        speed = np.sqrt(velocity[3 * i + 1] ** 2 + velocity[3 * i + 2] ** 2)
        slides[i] = slides[i] and not (closed[i] and gapped[i] and speed <= fast * levers[i])
    choose(w)
    heat, work = hold(w)
    set_state(w, vector(w, AT.q0), vector(w, AT.v0))
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    for i in range(closed.size):
        x, y = velocity[3 * i + 1], velocity[3 * i + 2]
        speed = np.sqrt(x * x + y * y)
        # what other rows move slides on
        if closed[i] and gapped[i] and not slides[i] and static(w, i) > 0.0 and speed > still(w, i):
            slides[i], direction[i, 0], direction[i, 1] = True, x / speed, y / speed
    return heat, work


@nested
def hold(w):
    """Put velocities on the rows of the mode by impulses of the contacts; return the heat, and the work on the system.

    The impulses count to those of the impact, M (v+ - v-) + A^T L = W^T P.
    """
    impulses, row_impulses = vector(w, AT.impulses), vector(w, AT.row_impulses)
    kept, mode_counts = whole(w, AT.kept), whole(w, AT.mode_counts)
    v, v0, velocity, psi = vector(w, AT.v), vector(w, AT.v0), vector(w, AT.velocity), vector(w, AT.psi)
    solution, A, W, M = vector(w, AT.solution), matrix(w, AT.A), matrix(w, AT.W), matrix(w, AT.M)
    n, m, count = v.size, A.shape[0], mode_counts[KEPT_ROWS]
    rows, missing, change = np.zeros(count + n, np.int64), np.zeros(count), np.zeros(n)
    for p in range(count):
        rows[p] = kept[p]
        missing[p] = psi[kept[p]] if kept[p] < m else velocity[kept[p] - m]
    if count == 0 or not least_change(w, rows, count, missing, change):
        return 0.0, 0.0
    heat = work = 0.0
    for p in range(count):
        row = rows[p]
        if row < m:
            row_impulses[row] += solution[n + p]
        else:
            impulses[row - m] -= solution[n + p]
            work -= solution[n + p] * (dot(W[row - m], v) + 0.5 * dot(W[row - m], change))
    for j in range(n):
        heat += 0.5 * change[j] * dot(M[j], change)
    for j in range(n):
        v0[j] += change[j]
    return heat, work


@nested
def note_impacts(w, before, touching, limit):
    """Note who struck with which velocities before, and when, for those that pile up.

    `limit` (k,) are limits of sequences of impacts, 0 where there is none. Return the largest speed at which those
    struck, as a part of their levers; 0 where none did.
    """
    impulses, rests, t = vector(w, AT.impulses), vector(w, AT.rests), vector(w, AT.clock)[T]
    gapped, massless, struck = flags(w, AT.gapped), flags(w, AT.massless), matrix(w, AT.struck)
    levers, piled = vector(w, AT.levers), 0.0
    for i in range(touching.size):
        if not gapped[i]:
            continue
        if impulses[3 * i] > 0.0 or (massless[i] and touching[i] and before[3 * i] < -still(w, i)):
            if before[3 * i] < -still(w, i):
                if limit[i] > 0.0 or massless[i]:
                    fill(struck[i], np.nan)
                else:
                    for j in range(KNOWN - 1):
                        struck[i, j] = struck[i, j + 1]
                    struck[i, KNOWN - 1] = t
                note(w, t, i, OPEN, IMPACT)
            if limit[i] > 0.0:
                rests[i] = max(limit[i], t)
        if limit[i] > 0.0 and touching[i] and before[3 * i] < -still(w, i):
            piled = max(piled, -before[3 * i] / levers[i])
    return piled


@nested
def close(w, stays):
    """Close the gaps that stay shut after an impact, open the others, and let slide who moves along its surface."""
    t, velocity, slow = vector(w, AT.clock)[T], vector(w, AT.velocity), vector(w, AT.slow)
    closed, gapped, slides = flags(w, AT.closed), flags(w, AT.gapped), flags(w, AT.slides)
    tangents, direction = whole(w, AT.tangents), matrix(w, AT.direction)
    for i in range(stays.size):
        if gapped[i] and stays[i] and not closed[i]:
            note(w, t, i, OPEN, CLOSED)
    for i in range(stays.size):
        if gapped[i] and closed[i] and not stays[i]:
            note(w, t, i, CLOSED, OPEN)
    for i in range(stays.size):
        word = word_of(w, i)
        if gapped[i]:
            closed[i] = stays[i]
        x, y = velocity[3 * i + 1], velocity[3 * i + 2]
        speed = np.sqrt(x * x + y * y)
        if not closed[i] or tangents[i] == 0 or (gapped[i] and not static(w, i) > 0.0):
            slides[i] = False
            continue
        slides[i], slow[i] = speed > still(w, i) if gapped[i] else speed > AT_REST * terms_of(w, i) and speed > 0.0, 0.0
        if slides[i]:
            direction[i, 0], direction[i, 1] = x / speed, y / speed
        if not gapped[i] and word_of(w, i) != word:
            note(w, t, i, word, word_of(w, i))


@nested
def rest(w, t):
    """Note the end of impacts that pile up, where it is due."""
    closed = flags(w, AT.closed)
    rests = vector(w, AT.rests)
    for i in range(closed.size):
        if rests[i] <= t:
            if closed[i]:
                note(w, rests[i], i, IMPACTS, REST)
            rests[i] = np.inf


@nested
def turns_back(w, i):
    """Return whether a contact that slid passes through rest while the system moves on, at the last terms.

    Its row vanishes there beside the others (a slider at the dead centre of its crank), and the state is as near to
    that place as the step is accurate: held, the row would stop all that moves. What comes to rest has lost its
    velocity on the way, v = a h in the step: what is left of it is small beside that.
    """
    slides, M = flags(w, AT.slides), matrix(w, AT.M)
    v, q0, v0 = vector(w, AT.v), vector(w, AT.q0), vector(w, AT.v0)
    acceleration, limits, clock = vector(w, AT.acceleration), vector(w, AT.limits), vector(w, AT.clock)
    calls = whole_matrix(w, AT.calls)
    h = limits[FIXED_STEP] if limits[FIXED_STEP] > 0.0 else clock[H]
    slides[i] = False
    choose(w)
    code = project(w, clock[T])
    slides[i] = True
    lost = gained = 0.0
    for j in range(v.size):
        for o in range(v.size):
            lost += (v[j] - v0[j]) * M[j, o] * (v[o] - v0[o])
            gained += acceleration[j] * M[j, o] * acceleration[o] * h * h
    set_state(w, q0, v0)
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    return code == SOUND and lost > LOST_AT_REST**2 * gained


@nested
def do_change(w):
    """Let those come to rest whose sliding has ended; open, and let slide, what must; return how it ended."""
    q0, v0, time = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.time)
    clock, velocity = vector(w, AT.clock), vector(w, AT.velocity)
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    calls = whole_matrix(w, AT.calls)
    direction, letting = matrix(w, AT.direction), matrix(w, AT.letting)
    tangents, slow = whole(w, AT.tangents), vector(w, AT.slow)
    k, t = closed.size, clock[T]
    old = np.zeros(k, np.int64)
    set_state(w, q0, v0)
    time[0] = t
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    for i in range(k):
        old[i] = word_of(w, i)
    arrived = False
    for i in range(k):
        if closed[i] and slides[i]:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            along = x * direction[i, 0] + y * direction[i, 1]
            if along > 0.0:
                continue
            speed = np.sqrt(x * x + y * y)
            if tangents[i] == 2 and speed > max(still(w, i), TURNED_AWAY * terms_of(w, i)):
                # its path has turned by a right angle: it slides on, slow or not, where it goes now
                direction[i, 0], direction[i, 1], slow[i] = x / speed, y / speed, 0.0
                continue
            if tangents[i] == 1 and turns_back(w, i):
                direction[i, 0], direction[i, 1] = -direction[i, 0], -direction[i, 1]
                continue
            slides[i], arrived = False, True
    # those that let go although nothing is seen of it yet
    for i in range(k):
        if letting[i, 0] != 0.0 and closed[i] and not slides[i]:
            let_go(w, i, letting[i, 1], letting[i, 2])
        letting[i, 0] = 0.0
    # contacts that come to rest together
    for i in range(k):
        if arrived and closed[i] and slides[i]:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            if np.sqrt(x * x + y * y) <= AT_REST * terms_of(w, i):
                slides[i] = False
    code = do_settle(w)
    for i in range(k):
        new = word_of(w, i)
        if new != old[i] and new != OPEN and old[i] != OPEN:
            note(w, t, i, old[i], new)
    return code


SETTLE, COLLIDE, CHANGE = range(3)
"""Transitions."""


def _transition(address, first, stop, scratch):
    w = table_at(address, ROWS)
    arguments = vector(w, AT.arguments)
    which = arguments[FIRST]
    if which == SETTLE:
        code = do_settle(w)
    elif which == COLLIDE:
        code = do_impact(w)
    else:
        code = do_change(w)
    arguments[CODE] = code


transition_unit = Unit(_transition)


@nested
def transit(w, which):
    """Change the modes at the state of the run; return how it ended."""
    arguments, calls = vector(w, AT.arguments), whole_matrix(w, AT.calls)
    arguments[FIRST] = which
    invoke(calls[TRANSITION, 0], calls[TRANSITION, 1], calls[TRANSITION, 2])
    return int(arguments[CODE])


# ----------------------------------------------------------------------------------------------------------------------
# Planes that slide, and come to rest.


@nested
def follow(w):
    """Turn the directions of planes that slide with their velocities; what has got going is slow no longer."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    tangents = whole(w, AT.tangents)
    velocity, slow = vector(w, AT.velocity), vector(w, AT.slow)
    direction = matrix(w, AT.direction)
    for i in range(closed.size):
        if closed[i] and slides[i] and tangents[i] == 2:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            size = np.sqrt(x * x + y * y)
            if size > slow[i]:
                slow[i] = 0.0
                if size > still(w, i):
                    direction[i, 0], direction[i, 1] = x / size, y / size


@nested
def plane_limit(w):
    """Return the longest step that planes about to rest allow: half of the way; 0 where one is at rest now."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    tangents = whole(w, AT.tangents)
    slow, velocity, limits = vector(w, AT.slow), vector(w, AT.velocity), vector(w, AT.limits)
    contact_rate, clock = vector(w, AT.contact_rate), vector(w, AT.clock)
    longest = np.inf
    for i in range(closed.size):
        if closed[i] and slides[i] and tangents[i] == 2 and slow[i] == 0.0:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            slowing = -(x * contact_rate[3 * i + 1] + y * contact_rate[3 * i + 2])
            # only where the path bends: a straight one ends at a zero of its speed
            bend = abs(x * contact_rate[3 * i + 2] - y * contact_rate[3 * i + 1])
            if slowing > 0.0 and bend > STRAIGHT * slowing:
                left = (x * x + y * y) / slowing
                if left <= max(limits[EVENT_TOLERANCE], SAME_INSTANT * abs(clock[T])):
                    return 0.0
                longest = min(longest, 0.5 * left)
    return longest


@nested
def rest_planes(w):
    """Let planes that are at rest but for less than the tolerance come to rest; return how it ended."""
    closed, slides = flags(w, AT.closed), flags(w, AT.slides)
    clock, velocity, limits = vector(w, AT.clock), vector(w, AT.velocity), vector(w, AT.limits)
    contact_rate = vector(w, AT.contact_rate)
    tangents = whole(w, AT.tangents)
    k, t = closed.size, clock[T]
    old = np.zeros(k, np.int64)
    for i in range(k):
        old[i] = word_of(w, i)
        if closed[i] and slides[i] and tangents[i] == 2:
            x, y = velocity[3 * i + 1], velocity[3 * i + 2]
            slowing = -(x * contact_rate[3 * i + 1] + y * contact_rate[3 * i + 2])
            if slowing > 0.0 and (x * x + y * y) / slowing <= max(limits[EVENT_TOLERANCE], SAME_INSTANT * abs(t)):
                slides[i] = False
    code = transit(w, SETTLE)
    for i in range(k):
        new = word_of(w, i)
        if new != old[i] and new != OPEN and old[i] != OPEN:
            note(w, t, i, old[i], new)
    return code


# ----------------------------------------------------------------------------------------------------------------------
# Modes at the start.


@nested
def touches(w):
    """Return whether something touches and does not separate, at the state of the run."""
    q0, v0, time = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.time)
    clock, gaps, velocity = vector(w, AT.clock), vector(w, AT.gaps), vector(w, AT.velocity)
    calls = whole_matrix(w, AT.calls)
    closed, gapped, levers = flags(w, AT.closed), flags(w, AT.gapped), vector(w, AT.levers)
    set_state(w, q0, v0)
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    touching = False
    for i in range(closed.size):
        touching = touching or (gapped[i] and gaps[i] <= TOUCHING * levers[i] and velocity[3 * i] <= still(w, i))
    return touching


@nested
def first_modes(w):
    """Let contacts without a gap slide where they move, at the state of the run."""
    q0, v0, time = vector(w, AT.q0), vector(w, AT.v0), vector(w, AT.time)
    clock, velocity = vector(w, AT.clock), vector(w, AT.velocity)
    calls = whole_matrix(w, AT.calls)
    closed, slides, gapped = flags(w, AT.closed), flags(w, AT.slides), flags(w, AT.gapped)
    direction = matrix(w, AT.direction)
    set_state(w, q0, v0)
    time[0] = clock[T]
    invoke(calls[TERMS, 0], calls[TERMS, 1], calls[TERMS, 2])
    for i in range(closed.size):
        closed[i] = not gapped[i]
        x, y = velocity[3 * i + 1], velocity[3 * i + 2]
        speed = np.sqrt(x * x + y * y)
        slides[i] = closed[i] and speed > AT_REST * terms_of(w, i)
        if slides[i]:
            direction[i, 0], direction[i, 1] = x / speed, y / speed
    choose(w)
