"""The routes through the block matrix, one per file; being in the list is being tested."""

from typing import Any, TypeVar

from dalembert.kkt.analysis import Analysis
from dalembert.kkt.routes.contract import FastRoute, Route, RouteDeclined
from dalembert.kkt.routes.dense import Dense
from dalembert.kkt.routes.mass_weighted import Augmented, Gauss
from dalembert.kkt.routes.nullspace import NullSpace
from dalembert.kkt.routes.schur import Schur
from dalembert.kkt.routes.short_form import GramForm, ShortForm

AnyRoute = TypeVar("AnyRoute", bound=Route)

FACTORISATIONS: dict[str, type[Route]] = {
    route.name: route for route in (Schur, Dense, NullSpace, Augmented, Gauss, ShortForm, GramForm)
}
"""Every route by the name that a user writes in `route=`."""

FAST_ROUTES: tuple[type[FastRoute], ...] = (Schur, Dense)
"""What `route="auto"` tries, in order, before it falls back to `NullSpace`; `Schur` in the user's units first, since
its bits do not depend on units."""


def factored(route: type[AnyRoute], analysis: Analysis) -> AnyRoute:
    """Return the route's factors of this system, made at most once; raises `RouteDeclined` where it does not apply."""
    factor: Any = analysis.factors.get(route.name)
    if factor is None:
        try:
            factor = route.factor(analysis)
        except RouteDeclined as declined:
            factor = declined
        analysis.factors[route.name] = factor
    if isinstance(factor, RouteDeclined):
        raise factor
    return factor


__all__ = [
    "FACTORISATIONS",
    "FAST_ROUTES",
    "Augmented",
    "Dense",
    "Gauss",
    "GramForm",
    "NullSpace",
    "Route",
    "RouteDeclined",
    "Schur",
    "ShortForm",
    "factored",
]
