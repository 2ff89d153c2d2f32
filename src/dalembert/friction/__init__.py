"""Dry friction: force laws, contacts, index sets, and stick-slip resolved exactly (seed 001)."""

from dalembert.friction.batch import resolve_batch
from dalembert.friction.contacts import CONTACTS, Bounded, Contact, Coulomb, Joint
from dalembert.friction.index_sets import IndexSets
from dalembert.friction.law import Law
from dalembert.friction.laws import LAWS, Dry, Expression, Hyperbolic, StaticKinetic, Stribeck, Tabulated
from dalembert.friction.methods import METHODS
from dalembert.friction.reaction_problem import Limited, Reacting
from dalembert.friction.resolution import FrictionCertificate, Resolution
from dalembert.friction.resolve import resolve
from dalembert.friction.samples import BatchResolution
from dalembert.friction.status import FrictionStatus
from dalembert.friction.uniqueness import UniquenessReport

__all__ = [
    "CONTACTS",
    "LAWS",
    "METHODS",
    "BatchResolution",
    "Bounded",
    "Contact",
    "Coulomb",
    "Dry",
    "Expression",
    "FrictionCertificate",
    "FrictionStatus",
    "Hyperbolic",
    "IndexSets",
    "Joint",
    "Law",
    "Limited",
    "Reacting",
    "Resolution",
    "StaticKinetic",
    "Stribeck",
    "Tabulated",
    "UniquenessReport",
    "resolve",
    "resolve_batch",
]
