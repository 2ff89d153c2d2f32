"""Complex numbers as pairs of expressions: what an implicit Runge-Kutta method needs of the same elimination plan."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca


@dataclass(frozen=True, eq=False)
class Complex:
    """re + i im, with the operations of an elimination."""

    re: ca.SX
    im: ca.SX

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def __mul__(self, other: Complex) -> Complex:
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __rtruediv__(self, one: float) -> Complex:
        square = self.re * self.re + self.im * self.im
        return Complex(one * self.re / square, -one * self.im / square)

    def is_constant(self) -> bool:
        """Whether both parts are numbers."""
        return self.re.is_constant() and self.im.is_constant()


def magnitude(x: ca.SX | Complex) -> ca.SX:
    """Return the size of an entry."""
    return ca.fabs(x.re) + ca.fabs(x.im) if isinstance(x, Complex) else ca.fabs(x)


def zero(like: ca.SX | Complex) -> ca.SX | Complex:
    """Return zero of the same kind."""
    return Complex(ca.SX(0), ca.SX(0)) if isinstance(like, Complex) else ca.SX(0)


def scalars(x: ca.SX | Complex) -> list[ca.SX]:
    """Return the expressions of an entry: one, or two."""
    return [x.re, x.im] if isinstance(x, Complex) else [x]


def symbol(name: str, like: ca.SX | Complex) -> ca.SX | Complex:
    """Return a symbol of the same kind."""
    if isinstance(like, Complex):
        return Complex(ca.SX.sym(f"{name}r"), ca.SX.sym(f"{name}i"))
    return ca.SX.sym(name)
