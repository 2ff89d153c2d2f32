"""The limits of the friction laws, by name and with their reasons: every file of the room takes them from here.

None has a unit: each is a part of data, of the terms that a number is summed from, or of a diagonal. How long a method
goes on (rounds, steps, gaps) is said where it is written; ranks of constraint rows and masses are those of
`kkt/limits.py`.
"""

from __future__ import annotations

# ----------------------------------------------------------------------------------------------------------------------
# Zero: which accelerations and forces are none.


STILL = 1e-13
"""A contact acceleration counts as zero up to this part of the terms that it is summed from, some hundred roundings."""

AT_LIMIT = 1e-12
"""A force counts as at its limit within this part of the limit."""

UNSEEN = 1e-14
"""What constraint rows leave of a contact direction, or of g, is rounding below this part of its terms."""

SHARED = 1e-5
"""A contact that nothing loads is at rest to the rounding of the whole motion: so much of the latter is in its size."""

NOTHING = 1e-200
"""A force below this is the remainder of a first guess."""

ROUNDING = 2.2e-16
"""Part of the reactions that rounding leaves unknown."""

EXACT_SUM = 2e-16
"""Part of the forces below which their sums cannot be told from exact ones."""

# ----------------------------------------------------------------------------------------------------------------------
# Laws: which answers are answers.


OPTIMAL = 1e-10
"""Relative residual of the friction laws up to which an answer counts as one."""

AIM = 1e-13
"""What the solvers of cones aim at; `OPTIMAL` is what counts as an answer."""

HELD = 1e-10
"""A sticking contact's acceleration is zero up to this part of its terms; methods that miss that are not corrected."""

CANCELLED = 0.03
"""This part of the terms of g counts besides g itself: where they cancel, g is rounding and no measure of anything."""

RESOLVED = 1e-3
"""So does this part of the largest force: others are known to its rounding only."""

BALANCED = 1e-11
"""An acceleration belongs to given forces where the equations of motion hold up to this part of their terms."""

MISSED = 1e-13
"""Rows at rest may move by this part of the data that u is summed from; else their mode is solved once more."""

CLOSE = 1e-6
"""A mode that is solved once more is the same where its reactions change by less than this part of the largest."""

LARGE = 1e5
"""Answers up to this multiple of what the free motion explains are measured without asking the drifts as well."""

EXPLAINED = 1e8
"""Reactions beyond this multiple of what g alone explains lend no size to a residual: where no answer exists, they
grow until any violation is small beside them. Mass ratios of as much are met by honest problems."""

ENDLESS = 1e100
"""Reactions beyond this have diverged: their squares overflow."""

PIVOT = 1e-12
"""Entries of a column below this part of its largest are no pivots of Lemke's method: rounding of those before."""

SWEEPS = 10_000
"""Sweeps of method `sweeps`, at most: coupled contacts need thousands."""

SWITCHED = 1e-11
"""A slipping contact of method `switch` may accelerate against its direction by this part of the terms."""

# ----------------------------------------------------------------------------------------------------------------------
# Dependent rows and columns: which contacts are redundant.


DEPENDENT_CONSTRAINT = 1e-11
"""What is left of a constraint row beside those before it: below this part of the row it depends on them."""

CONSISTENT = 1e-9
"""A dependent constraint row's drift may miss what the others imply by this part of its terms."""

CONSISTENT_MOTION = 1e-13
"""And by this part of the row's size times that of the prescribed motion: where the terms vanish, all is rounding."""

DEPENDENT_STICKING = 1e-11
"""A row of unit size depends on others where less than this part of the largest pivot is left of it."""

HOLDS = 1e-14
"""A dependent row holds along with the others up to this part of its terms; else all rows are solved together."""

REDUNDANT_PIVOT = 1e-12
"""A pivot of the Delassus matrix below this part of its diagonal entry is rounding: the contact is redundant."""

DEPENDENT_COLUMN = 1e-13
"""A singular value of unit columns, or rows, below this part of the largest is rounding."""

DEPENDENT_UNIT = 1e-10
"""Pivots of rows of unit size below this are those of redundant rows, where a family of answers is looked for."""

REDUNDANT_MULTIPLIERS = 1e-12
"""Singular values of constraint rows below this part of the largest have no part in the least multipliers."""

REDUNDANT_EQUATIONS = 1e-12
"""Singular values below this part of the largest are those of redundant equations of a mode."""

REDUNDANT_REST = 1e-14
"""The same of the rows at rest where a mode is solved once more with the mass matrix itself."""

SYMMETRIC = 1e-12
"""M of a sample that is resolved by itself may differ from its transpose by this part of its entries."""

DEFINITE = 1e-8
"""Without constraints, M is factored at once where every pivot is at least this part of its diagonal entry."""

CONTRACTS = 1e-12
"""The Delassus matrix has an inverse for the proof of a contraction where its least eigenvalue is above this part."""

# ----------------------------------------------------------------------------------------------------------------------
# Uniqueness: which answers are others, and what a family of them leaves open.


DISTINCT = 1e-8
"""Two answers are different where they are apart by more than this part of data and of themselves."""

SAME_MODE = 1e-10
"""Reactions of two modes are the same within `DISTINCT` of themselves and this part of a typical reaction."""

OPEN = 1e-9
"""A contact is undetermined where its force can change by more than this part of a unit direction."""

ACTIVE = 1e-7
"""An inequality holds with equality, where a family of answers is looked for, up to this part of a typical reaction."""

PRESENT = 1e-9
"""A contact is in a mode, at its limit, at rest or open, up to this part: answers are known to `OPTIMAL`, and a mode
that is taken for the wrong one has other families."""

SLACK = 1e-9
"""Inequalities of a mode may fail by this part of the data."""

SLACK_OF_ROUNDING = 1e-13
"""And by this part of the reactions: their rounding. More would let reactions that diverge pass for an answer."""

# ----------------------------------------------------------------------------------------------------------------------
# No answer: proofs.


CONTRADICTS = 1e-9
"""The weighted drifts miss zero by more than this part of their terms: rounding is far below."""

CANCELS = 1e-13
"""The weighted rows sum to zero up to this part of their terms."""

USED = 1e-7
"""Weights of a linear programme below this part of the largest are its tolerance, and become zero."""

USED_RANK = 1e-9
"""Singular values of the rows with weights below this part of the largest are zero: weights become exact there."""

UNHELD = 1e-11
"""A massless motion is held where the contacts resist the load by more than this part of both."""

HELD_MASSLESS = 1e-10
"""A slipping contact may accelerate against its direction by this part of the contact accelerations: rounding."""
