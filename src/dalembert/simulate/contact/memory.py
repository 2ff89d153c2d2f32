"""Memory of the contact engine: which arrays there are, and their places in the table that its loops read."""

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


AT = EngineArrays(*range(len(EngineArrays._fields)))
"""Places of the arrays in the table."""

ROWS = len(EngineArrays._fields)
"""Rows of the table."""
