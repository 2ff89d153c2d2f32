"""Memory of the contact engine: its arrays, places in them, and the numbers by which its loops say how they ended."""

from __future__ import annotations

from typing import NamedTuple


class EngineArrays(NamedTuple):
    """Names of all arrays."""

    # codes and what they read and write
    calls: int
    arguments: int
    environment: int
    chart_base: int
    chart_x: int
    x_rate: int
    way: int
    moved: int
    q: int
    v: int
    time: int
    event_values: int
    law_speeds: int
    law_kinetic: int
    law_static: int
    # terms
    M: int
    bias: int
    A: int
    drift: int
    phi: int
    psi: int
    gaps: int
    W: int
    velocity: int
    shift: int
    load: int
    axes: int
    applied: int
    force: int
    # contacts
    gapped: int
    load_row: int
    pushes: int
    tangents: int
    restitution: int
    poisson: int
    law: int
    law_numbers: int
    law_tables: int
    holonomic: int
    known_rank: int
    row_sizes: int
    # the mode
    closed: int
    slides: int
    direction: int
    slow: int
    sign: int
    kept: int
    mode_counts: int
    limbs: int
    massless: int
    held_rows: int
    limb: int
    limb_rate: int
    trouble: int
    # the motion in it
    sliding_unit: int
    sliding_speed: int
    acceleration: int
    lam: int
    reactions: int
    contact_rate: int
    powers: int
    # linear algebra
    matrix_K: int
    factors: int
    pivot: int
    right: int
    solution: int
    # complementarity
    cone_G: int
    cone_g: int
    cone_first: int
    cone_mu: int
    cone_kind: int
    cone_sliding: int
    cone_s: int
    cone_r: int
    cone_row: int
    cone_size: int
    missed: int
    # the last impact
    impulses: int
    row_impulses: int
    impact: int
    # signals
    table_layout: int
    table_breaks: int
    table_coefficients: int
    bounds: int
    # the method of order 8
    rk_a: int
    rk_b: int
    rk_c: int
    rk_fifth: int
    rk_third: int
    rk_more_a: int
    rk_more_c: int
    rk_dense: int
    rk_times: int
    rk_order: int
    # chains of joints, for bounds on the motion of shapes
    chain_first: int
    chain_links: int
    chain_lengths: int
    chain_end: int
    angular: int
    pair_ball: int
    pair_coordinate: int
    pair_radii: int
    pair_bounded: int
    # contacts with heightfields
    field_pair: int
    field_table: int
    field_numbers: int
    heights: int
    balls: int
    feet: int
    cell_bounds: int
    # the run
    limits: int
    clock: int
    tally: int
    q0: int
    v0: int
    stages: int
    stage_y: int
    stage_v: int
    stage_a: int
    stage_margins: int
    q1: int
    v1: int
    sums: int
    polynomial: int
    nodes: int
    node_values: int
    node_scale: int
    # zeros of the user, impacts, gains
    signs: int
    direction_of: int
    loose: int
    terminal: int
    zeros: int
    struck: int
    rests: int
    gain: int
    late: int
    letting: int
    # the last state that counts
    kept_q: int
    kept_v: int
    kept_clock: int
    kept_counts: int
    kept_modes: int
    kept_rows: int
    kept_struck: int
    kept_more: int
    # samples and events
    sample_t: int
    sample_q: int
    sample_v: int
    sample_a: int
    sample_lam: int
    sample_r: int
    sample_u: int
    sample_mode: int
    sample_sums: int
    sample_verdict: int
    sample_impulse: int
    sample_impact: int
    events: int
    levers: int


AT = EngineArrays(*range(len(EngineArrays._fields)))
"""Places of the arrays in the table."""

ROWS = len(EngineArrays._fields)
"""Rows of the table."""


# ----------------------------------------------------------------------------------------------------------------------
# Places in arrays.


TERMS, CHART, ALONG, FORCE, EVENTS, LAWS, SIGNALS, HARD, MOTION, PROJECT, SHOT, TRANSITION, BALLS = range(13)
"""Rows of the table of calls; `SIGNALS` is where `signals.set_signals` looks. From `MOTION` on they are units: loops
that are called by their address, so that they are compiled once and not again in every loop around them. Where there
are heightfields `TERMS` is one, too (`field_loops.py`), and calls the kernel in `BALLS`."""

FIRST, SECOND, CODE, RESULT = range(4)
"""Places in `arguments`, which units read at their start and write at their end."""

FAILED = 1
"""Place in the environment that a Python function sets when it fails."""

KEPT_ROWS, KEPT_CONSTRAINTS, REDUNDANT, HELD = range(4)
"""Places in `mode_counts`."""

POWER, HEAT, FRICTION_WORK, RESIDUAL = range(4)
"""Places in `powers`."""

CONTACT, NUMBER, APPROACH = range(3)
"""Places in `trouble`: whose, how much, and the acceleration of its gap without reactions."""

MOMENTUM, LAWS_MISSED, ENERGY_BEFORE, ENERGY_AFTER, UNIQUENESS = range(5)
"""Places in `impact`, the certificate of the last one: residuals of its balance and its laws, kinetic energies, and
whether its impulses are unique (`kkt.Status`)."""

(
    T, H, STOP, END, START, EVERY, WORK, HEAT_SUM, FRICTION_SUM, FAILED_AT, DETAIL, LAST_STEP, LAST_RATIO,
) = range(13)  # fmt: skip
"""Places in `clock`; the last two are length and error of the step before in the same mode, 0 where there is none."""

(
    STEPS,
    REJECTED,
    EVALUATIONS,
    SAMPLES,
    EVENT_COUNT,
    NEXT,
    STANDING,
    GAINS,
    UNRESOLVED,
    WHO,
    COMPLETE,
    COMPLETE_EVENTS,
    BEGUN,
) = range(13)
"""Places in `tally`."""

(
    RTOL, ATOL, FIXED_STEP, LARGEST, EVENT_TOLERANCE, SEQUENTIAL, TIME_SCALE, SIZED, GAIN, INSIDE, ORDER, APART,
    BETWEEN, IMPLICIT, LENGTH_UNIT, RATE_UNIT, FORCE_UNIT,
) = range(17)  # fmt: skip
"""Places in `limits`: tolerances, a fixed step (0: adaptive), the largest, the width of a located zero; impacts one
after the other; time in which forces may turn; errors of coordinates relative to their size; part of the energy of
motion that an impact may add; samples inside of every step; of the method: order of its error, half of the largest
distance of two stages, how much larger accelerations may be between stages, whether stages are implicit; units of the
system (`geometry.Units`)."""

KNOWN = 5
"""Impacts that are looked at where they pile up: the length of rows of `struck`."""


# ----------------------------------------------------------------------------------------------------------------------
# Numbers that loops write: how they ended, and words of events.


(
    SOUND,
    SINGULAR,
    DOUBTFUL,
    NO_FORCES,
    NOT_UNIQUE,
    NOT_FINITE,
    CALLBACK,
    NO_IMPULSES,
    PAINLEVE,
    SLIPPING_LIMB,
    CONTRADICTORY,
) = range(11)
"""How a solve ended."""

NOT_DISSIPATIVE, NO_LOAD = 11, 12
"""How a solve ended, too: a law pushes along the motion, a given load is no number or negative."""

DONE, FULL, STEPS_TAKEN, FAILURE, ENDED = range(20, 25)
"""Why the loop came back: end of the segment, buffers full, as many steps as asked for, no answer, a terminal event."""

DETACHED, COLLAPSED, ENDLESS, UNCERTAIN_GAP, STANDSTILL, PASSAGE, CHATTERING, CLINGING, ROLLING = range(31, 40)
"""What has no answer in a run, beside how a solve ended."""

OPEN, CLOSED, STICK, SLIP, SLIP_PLUS, SLIP_MINUS, IMPACT, IMPACTS, REST, RISING, FALLING, NOTHING = range(12)
"""Words of events."""

FIRED, PASSED = 1, 2
"""Functions of the user at the end of a step: zero, and counted; zero where a jump comes, and not counted."""
