"""Outputs that are inputs or constants, as two loops over tables: no arithmetic, so no code per element.

Thousands of loads and stores in a row cost LLVM milliseconds each, since it brings the loads forward and runs out of
registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from dalembert.kernel.llvm_vector import alignment, real, vector

LEAVES = """
MOVED_TABLES
define internal void @leaves(ptr noalias %in, ptr noalias %scratch, ptr noalias %out) #0 {
  br label %inputs
inputs:
  %i = phi i64 [0, %0], [%i_next, %input]
  %i_more = icmp slt i64 %i, MOVES
  br i1 %i_more, label %input, label %constants
input:
  %from_at = getelementptr i32, ptr @leaf_from, i64 %i
  %from = load i32, ptr %from_at
  %to_at = getelementptr i32, ptr @leaf_to, i64 %i
  %to = load i32, ptr %to_at
  %x_at = getelementptr VEC, ptr %in, i32 %from
  %x = load VEC, ptr %x_at, align ALIGNED
  %y_at = getelementptr VEC, ptr %out, i32 %to
  store VEC %x, ptr %y_at, align ALIGNED
  %i_next = add i64 %i, 1
  br label %inputs
constants:
  %c = phi i64 [0, %inputs], [%c_next, %constant]
  %c_more = icmp slt i64 %c, CONSTANTS
  br i1 %c_more, label %constant, label %done
constant:
  %value_at = getelementptr ELEM, ptr @leaf_value, i64 %c
  %value = load ELEM, ptr %value_at
  %one = insertelement VEC poison, ELEM %value, i32 0
  %all = shufflevector VEC %one, VEC poison, <WIDTH x i32> zeroinitializer
  %place_at = getelementptr i32, ptr @leaf_place, i64 %c
  %place = load i32, ptr %place_at
  %z_at = getelementptr VEC, ptr %out, i32 %place
  store VEC %all, ptr %z_at, align ALIGNED
  %c_next = add i64 %c, 1
  br label %constants
done:
  ret void
}
"""


def leaves(
    moves: Sequence[tuple[int, int]], constants: Sequence[tuple[float, int]], width: int, element: str
) -> list[str]:
    """Return `@leaves`: vector `from` of the inputs goes to vector `to` of the outputs; a constant to its place."""
    tables = [
        _table("leaf_from", "i32", [str(x) for x, _ in moves]),
        _table("leaf_to", "i32", [str(y) for _, y in moves]),
        _table("leaf_value", element, [real(value) for value, _ in constants]),
        _table("leaf_place", "i32", [str(place) for _, place in constants]),
    ]
    text = LEAVES.replace("MOVED_TABLES", "\n".join(tables)).replace("MOVES", str(len(moves)))
    text = text.replace("CONSTANTS", str(len(constants))).replace("VEC", vector(width, element))
    text = text.replace("ELEM", element).replace("WIDTH", str(width))
    return [text.replace("ALIGNED", str(alignment(width, element)))]


def _table(name: str, kind: str, words: list[str]) -> str:
    """Return a constant array; one that is not used holds a zero."""
    words = words or ["0" if kind == "i32" else real(0.0)]
    return f"@{name} = internal constant [{len(words)} x {kind}] [{', '.join(f'{kind} {word}' for word in words)}]"
