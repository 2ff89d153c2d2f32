"""The limits of runs, by name and with their reasons: every file of the room takes them from here.

Where no unit is said a limit is a part: of data, of the terms that a number is summed from, of a step, of a run. How
long a method goes on (iterations, blocks of samples) is said where it is written, unless two engines must agree on it.
Ranks and verdicts of block systems are those of `kkt/limits.py`, laws of friction at a state those of
`friction/limits.py`.
"""

from __future__ import annotations

from dalembert.kkt.limits import EPS

# ----------------------------------------------------------------------------------------------------------------------
# Rounding, and numbers that stand for zero.


ROUNDOFF = 2.2e-16
"""Rounding of one operation, as loops estimate with it."""

NOT_ZERO = 1e-300
"""Added to what is divided by, where all may be zero."""

POSITIVE = 2.2e-308
"""Stands for a value that is positive in exact numbers, and zero by rounding."""

LEAST_SPEED = 1e-140
"""Stands for the speed of a contact in a plane that has just let go: its square is not zero, metres per second."""

ROW_AT_REST = 1e-13
"""Part of its terms below which the rate that a constraint row has by itself is rounding: the row is at rest."""

ENERGY_ROUNDING = 1e-14
"""Part of the energies that a step may round."""

START_ROUNDING = 100 * EPS
"""Residuals of a start below this, relative to the sizes that enter them, are rounding."""

# ----------------------------------------------------------------------------------------------------------------------
# Times: which are one, and how short a step may be.


SAME_INSTANT = 8 * ROUNDOFF
"""Times that differ by this part of them are one: start + k every and the end of a run, the rest of a plane and now."""

TIME_ROUNDING = 2e-16
"""Part of a time below which the width of a located zero cannot fall."""

AT_STOP = 1e-15
"""A step that ends within this part of the time before a stop ends there."""

NO_STEP = 1e-14
"""Times that differ by this part of the time itself are told apart by rounding alone: no step leads from one to the
other."""

SAME_BREAK = 1e-12
"""A table covers a span that it misses by this part of the times."""

ON_THE_GRID = 1e-9
"""Part of a step by which a time may miss the end of one, or a sample a whole number of steps, and still be it."""

WHOLE_STEPS = 1e-12
"""Part of a duration by which whole steps may miss it."""

ALMOST_ALL = 1e-9
"""A step that leaves less than this part of itself to the end of a segment goes there."""

BEHIND = 1e-9
"""Part of a step behind its start at which forces are asked for: a break point there belongs to this step, whatever the
rounding of its time."""

LATER = 1e-12
"""Part of a run after an instant at which forces are asked for once more: a jump may lie between."""

COLLAPSE = 16.0 * ROUNDOFF
"""Steps below this part of the time are a collapse of the step size."""

LEAST_STEP = 1e-280
"""And steps below this, seconds: their squares are zero."""

SHORTEST = 1e-11
"""Steps of contacts that have no answer are shortened down to this, seconds: the run ends next to where the answer
does."""

FAR_STAGE = 1e12
"""Stages beyond this (metres, radians, per second) belong to steps that are too long."""

# ----------------------------------------------------------------------------------------------------------------------
# Steps: their control, and the equations of implicit ones.


SAFETY, SHRINK, GROW = 0.9, 0.2, 6.0
"""Part of the optimal step, and how much a step may shrink or grow at once."""

FIRST_STEP = 1e-3
"""The first step is at most this part of the run; of contacts at most so many seconds."""

LEAST_FIRST_STEP = 1e-12
"""And at least this part of the run."""

FLAT_START, FLAT_STEP = 1e-5, 1e-6
"""Rates below the first, in tolerances, say nothing of the first step: it is the second, seconds (Hairer, II.4)."""

LEAST_ERROR = 1e-4
"""Added to the error estimate of BDF where the next step is chosen: it may be zero."""

LEAST_RADAU_ERROR = 1e-10
"""The error of Radau's method, in tolerances, is taken for no less."""

STAGE_ITERATIONS, STAGES_SOLVED = 12, 1e-3
"""Newton's steps on implicit stages at most, and the part of the tolerance at which they end; the Jacobian is fresh, so
that 4 to 6 suffice."""

FIRST_CORRECTION = 1e-4
"""A first Newton step below this part of what may be left ends the iteration, whatever its rate."""

POOR_PIVOT = 1e-12
"""Pivot quality below which a factorization is repaired."""

STAGE_DIFFERENCE, LEAST_SIZE = 1.5e-8, 1e-5
"""Differences of states for the Jacobian of stages: this part of their sizes, and what sizes are at least."""

CONTROLLER_DIFFERENCE = 1e-7
"""Differences of states for the Jacobian of a Python function: times the size of a coordinate or one."""

DECAY_DIFFERENCE = 1e-6
"""Differences of states by which decays are estimated."""

SERIES, SERIES_OF_SINES = 1e-3, 1e-4
"""Squares of angles, and of sines, below these go through series: the first omitted term is then below rounding."""

LEAST_RTOL = 1e-14
"""Relative tolerances below this ask for more than rounding leaves."""

FORCES_AGREE = 1e-12
"""A Python function is called at the middle of a step until its forces agree to this part of the largest one."""

FORCE_ROUNDING, FORCES_SETTLED = 1e-15, 1e-9
"""Forces that change the momentum by less than the first agree; below the second they may as well stop falling."""

MIDPOINT_SOLVED, MIDPOINT_STALLED = 1e-14, 1e-9
"""Newton's method on the discrete Lagrangian ends where its step is below the first part of the unknowns, or below the
second and falls no more."""

STANDSTILL_WAY = 1e-3
"""Added to the way of a step, metres or radians: next to a standstill rounding of q counts, not that of the way."""

PATIENCE = 5.0
"""Seconds after which a run is asked whether it gets anywhere; a passage of a singular configuration takes one."""

LONGEST_REST, TINY_STEPS = 4 * 3600.0, 1e-9
"""Seconds that the rest of a run may take at its present pace where most of its steps are rejected, or are shorter than
the second part of its duration: a billion of them."""

# ----------------------------------------------------------------------------------------------------------------------
# Constraints: which states are on the manifold, which rows depend on others.


CONSISTENT = 1e-6
"""Initial states of mechanisms may miss the constraints by this part of the system's size (or so many radians, per
second for velocities), and are then put onto them."""

ON_MANIFOLD = 1e-13
"""States that miss the constraints by less of the system's size are taken as they are: a run can be repeated bit for
bit."""

CLOSED = 1e-13
"""Newton's method on positions ends at this part of their size (the mechanism's, one radian), or where it rests."""

CLOSED_MODE = 1e-15
"""Newton's method on the gaps and positions of a mode ends at this residual, metres or radians."""

MOST_CLOSING, HELPS = 6, 0.5
"""Newton's steps onto positions at most, one or two being usual; they end where one leaves more than this part of what
was left before."""

CLOSED_PLAIN = 4e-16
"""Positions of a mode in plain NumPy are closed at this part of the coordinates, and of one."""

ACCEPTED_START = 1e-9
"""Residuals that a consistent start may have where Newton's method can do no better."""

POSSIBLE_CONTROLS = 1e-6
"""Unknown forces produce a known motion where what is left of the equations is below this part of their data."""

LARGEST_INVERSE = 1e8
"""Scaled systems of a start whose inverse is larger than this are left to `KKT`, which says what is wrong with them."""

LIGHTEST = 1e-6
"""Motions without mass count with this part of the lightest mass, or of the largest, in a metric of all."""

LEAST_SQUARES = 1e-12
"""Singular values below this part of the largest have no part in a least-squares answer."""

LEAST_NORM = 1e-9
"""The same where multipliers of least norm are asked for, which solved rows of a run's digits."""

TABLEAU_RANK = 1e-12
"""Singular values of scaled equations of a tableau below this part of the largest are zero."""

FULFILLED_START, STALLED = 1e-10, 1e-6
"""Equations of a tableau hold at the start up to the first part of their terms; a search whose residual changes by less
than the second part of that has ended."""

RISEN = 1e-5
"""Part of a row beyond the kept directions, where constraints hold, from which on the rank is larger than assumed."""

RELAXED_SHARE = 1e-9
"""Relaxation of constraints near a singular configuration, as a part of the diagonal of A M^-1 A^T."""

JUMP_SEEN = 0.01
"""Part of the tolerance from which on positions that jump between rows are seen by the error test."""

CONTRADICTED = 100.0
"""Times the model's digits by which accelerations of redundant rows may contradict each other: residuals of positions
at its digits are seen so many times in second derivatives."""

PASSED = 0.003
"""Part of the usual distance below which a configuration is passed as a singular one. Hermite's cubic misses a motion
by h^4 / 384 of its fourth derivative: 0.0026 rad of a turn between samples a radian apart. A distance that is zero in
truth, and grows with the angle, looks no larger on it."""

JUMP_OF_TABLE = 1e-6
"""A table jumps, or its slope does, where both sides differ by more than this part of its terms."""

# ----------------------------------------------------------------------------------------------------------------------
# Zeros of functions: events of the user, gaps, margins of modes.


LEAST_PIECE = 1e-10
"""Pieces below this part of a step are not split any more: two zeros within one are none."""

DIFFERENCE_NOISE = 64 * ROUNDOFF
"""Part of the values below which differences of nodes are rounding."""

ZERO_VALUE = 16 * ROUNDOFF
"""Values below this part of the largest in a step are zero: their signs are rounding."""

SLOPE_OF_STEP, SLOPE_OF_RUN = 1e-3, 1e-6
"""Part of the step, and of the run, over which the sign of an event's slope is seen."""

CHANGE_WIDTH = 1e-13
"""Width of the bracket in which a change of mode is known at best, seconds."""

EDGE_WIDTH = 1e-13
"""Width of the bracket in which a crossing of a heightfield's edge is known, seconds."""

PINCHED = 1e-13
"""Part of a step to which a zero of its polynomial is known before steps of full order look for it."""

BESIDE_ZERO = 1e-10
"""Part of a step beside the zero of its polynomial at which a zero is looked for."""

NEAR = 1e-5
"""Part of a step from which the end of sticking is extrapolated."""

AT_ENDS = 1e-6
"""Stages this near to the ends of a step, as a part of it, are its ends."""

GRAZING = 1e-11
"""A gap that closes by less than this part of its lever and opens again within a step is none."""

APPROACHING = 1e-9
"""A gap closes where its rate is below minus this part of its bound, and of one."""

SEEMS_TO_SINK = 1e-6
"""Part of the way of a step by which a gap that opens may seem to sink."""

# ----------------------------------------------------------------------------------------------------------------------
# Contacts: which touch, rest, slide, push. Lengths are parts of a lever: the system's size for gaps between shapes, one
# radian or metre for those of joints' limits. Speeds are parts of lever times rate, forces parts of the system's
# (`contact/geometry.Units`); time stepping takes metres.


TOUCHING = 1e-9
"""Gaps up to this touch."""

DEEP = 1e-6
"""A penetration by more than this is refused at a start, and named where time steps begin with it."""

SMALLEST_IN_CONTACT, SMALLEST_IN_STEPS = 1e-8, 1e-4
"""Metres: where events are located, and in time stepping. The width of a located zero, 1e-13 s, is 3e-9 of the time in
which a part of the first size falls by itself; the limits of time stepping are metres, 1e-5 of the second size."""

PENETRATION = 1e-12
"""Gaps below minus this are closed again after a time step, metres."""

STILL = 1e-9
"""Velocities that are rest: part of the largest, or metres per second."""

AT_REST = 1e-11
"""Relative velocities up to this part of what they are summed from are zero where contacts come to rest together."""

LOST_AT_REST = 0.01
"""Part of the velocity that accelerations make in a step up to which velocity that is left at rest is error: ten times
what the loosest tolerance, 1e-3, allows. A system that moves on beside a row that vanishes has all of its velocity."""

REST_DIRECTION = 1e-9
"""Part of the velocity before, which stands for that of a plane that has come to rest within a fixed step."""

RESTING = 1e-6
"""Contacts that approach by less than this part of their speed do not strike, in time stepping."""

NO_VELOCITY = 1e-9
"""Contact velocities (or accelerations) below this are none, m/s (m/s^2): they explain no reaction."""

SLOW = 1e-3
"""Contacts that separate slower than this after impacts that pile up stay closed."""

SLIDES_ON = 10.0
"""Contacts that slide by less than so many times the speed at which others strike whose impacts pile up rest with them:
friction stops them in the time of one more flight."""

LOW_FLIGHT = 1e-13
"""Contacts that rise by less than this part of their lever before they fall back have not left: of a gap as long as its
lever 1e-16 is rounding."""

STRAIGHT = 1e-9
"""A path that bends by less than this part of its deceleration is straight: it ends at a zero of its speed."""

TURNED_AWAY = 1e-6
"""A plane whose velocity is above this part of its terms where it has none along its direction has turned, and slides
on."""

ALIGNED, ALIGNING_ROUNDS = 1e-14, 60
"""When a direction of sliding has settled, and after how many rounds it is left as it is."""

SHORTEST_TURN, LONGEST_TURN = 1e-6, 1e-3
"""Bounds of sqrt(rtol). Forces may turn at the onset of slip within sqrt(rtol) / 10 of the run's duration."""

OPENING, WEAK = 1e-9, 1e-12
"""Parts of the accelerations and of the forces below which they are none."""

CLINGS = 1e-6
"""A massless foot that lands may pull by this part of the largest force: rounding of the moment at which it lands."""

SLIPS = 1e-7
"""Accelerations of massless feet below this part of the largest are none."""

SEEN = 1e-9
"""Entries of contact rows along massless motions below this part of the row are none."""

FAR_FROM_SINGULAR = 1e-4
"""Roots of pivots of a scaled mass matrix above this are no rounding: nothing is massless."""

LIGHT = 1e-12
"""Part of the heaviest mass that stands for none, where light coordinates follow others."""

DEPENDENT_ENTRY = 1e-9
"""A row whose largest entry left is below this part of its size depends on rows above."""

DEPENDENT_PIVOT = 1e-11
"""A pivot below this part of its diagonal entry is rounding: the row depends on those above."""

CHATTER, CHATTER_TIME = 30, 1e-7
"""So many changes of mode within this part of the run are an accumulation (Zeno)."""

STEADY, LEFT_TO_LIMIT = 1e-3, 1e-4
"""By how much factors of impacts that pile up may differ, what may be left to their limit, times one over the rate."""

BEYOND_LIMIT = 1e-9
"""Samples are beyond a joint's limit by more than this part of it (and of one radian or metre)."""

# ----------------------------------------------------------------------------------------------------------------------
# Forces and impulses by complementarity: which answers are answers.


CONE_SWEEPS, CONE_NEWTON = 12, 400
"""Sweeps and steps of Newton's method that cones of contacts may take; they aim at `AIM` of `friction/limits.py`."""

ACCEPTED = 1e-8
"""Residual of the contact laws, relative to the data, that counts as an answer, and certifies an impact."""

EVEN_SHARES = 1e-8
"""Part of the largest entry that makes the matrix of contacts that share their load regular."""

AIM_IN_STEPS = 1e-10
"""Residual of the contact laws, relative to the data, that time steps aim at."""

CONTRADICTING_RATES = 1e-3
"""Rows left out of a time step that miss by more than this part of the velocities they sum contradict the others."""

REDUNDANT_RESIDUAL = 1e-9
"""A residual of the equations of constraints above this part of the data says that their rows are redundant."""

CONTRADICTION = 1e-5
"""Constraint rows that are left out and miss by more than this, relative to the data, contradict the others."""

CONTRADICTING_IMPULSES = 1e-3
"""Contacts that approach after their impulses by more than this part of the data contradict each other."""

CONFLICT = 1e-3
"""Contacts that miss their laws by more than this part of the worst take part in a contradiction."""

UNEXPLAINED_IMPULSE = 1e6
"""Impulses this many times those that would stop what is seen cannot be explained by the data of a time step."""

STRUCK_APART = 1e-12
"""Impacts one after the other end where no contact approaches by more than this part of the fastest, and of 1 m/s."""

EXPANSION_SETTLED = 1e-15
"""The expansion of an impact has settled where its impulses change by less than this part."""

IMPACT_GAIN = 1e-9
"""Impacts that add more than this part of the energy of motion gain energy."""

STEP_GAIN = 1e-4
"""Impulses that add more than this part of the energy of motion in a time step gain energy: far above rounding, and
above what a gap that is left open at the end of a step is worth."""

# ----------------------------------------------------------------------------------------------------------------------
# Heightfields and boxes.


OUTSIDE = 1e-12
"""Feet this far outside of their cell have left it, metres: along an edge rounding must not count. Those this near to
an edge that move towards it are at it: a step from there would feel both slopes."""

TOWARDS = 1e-6
"""Feet that leave their cell by more than this part of their speed do not move along its edge."""

FLAT = 1e-7
"""Normals that differ by less than this are one: a twisted cell turns by that within `ASIDE`, rounding by less."""

ASIDE = 1e-9
"""How far beside a foot slopes are looked at, metres."""

NEARER = 1e-12
"""A neighbour is nearer by this part of the reach (squared), or it is at the same place (as a part of the grid)."""

NO_DIRECTION = 1e-7
"""Distances below this part of the reach have no direction of their own: the normal is that of the slope."""

NEAREST_FOUND = 1e-14
"""Newton's method in a cell ends where its step is below this part of the cell."""

INSIDE, INSIDE_PART = 1e-6, 1e-3
"""Ridges deeper in a box than the first, metres, and than the second part of its shortest edge, are inside: what a box
of this size may sink by first-order steps."""

# ----------------------------------------------------------------------------------------------------------------------
# Derivatives of runs.


DERIVED_MODE = 1e-8
"""Part of the data by which the equations of a mode may be missed where they are differentiated, and part of an
acceleration that redundancy may leave open."""

NO_JUMP = 1e-9
"""Part of velocities or accelerations below which an event does not change them."""

STRICT = 1e-6
"""Margin, as a part, by which a contact must be on one side of its laws (stick or slip, closed or open) at an event,
and by which modes must tell the accelerations of samples."""

TRANSVERSAL = 1e-7
"""Rate of a guard, as a part of the terms that it is summed from, below which an event is met without speed."""

RANK_OF_MODE = 1e-10
"""Singular values of a mode's block matrix, its rows and columns of size one, below which rows are redundant."""

TRANSITION_CONVERGED = 1e-10
"""Transitions are taken when halving the steps changes them by no more than this part of their largest entry."""

SAME_SAMPLE = 1e3
"""The motion must arrive at the next sample within this many tolerances of the run."""

UNSAID_RTOL = 1e-6
"""Relative tolerance of runs that do not say theirs."""

# ----------------------------------------------------------------------------------------------------------------------
# Loads along runs.


STEPPED_GAP, LOCATED_GAP = 1e-3, 1e-9
"""Parts of the mechanism's size that count as no gap: after time stepping, and where events are located."""

SEEN_AT_REST = 1e-6
"""Touching points that move along their normal by no more than this, m/s, count as closed contacts, whatever their
force is: where contacts are redundant it may be none."""

SHOWN_FORCE = 1e-12
"""Forces below this part of the largest are shown as zero: what they are is rounding."""

INSIDE_CONE = 1e-6
"""Part of its cone by which an impulse inside of it sticks."""
