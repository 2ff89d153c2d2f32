"""Dry friction: force laws, contacts, index sets, and stick-slip resolved exactly (seed 001)."""

from dalembert.friction.batch import resolve_batch
from dalembert.friction.bounded.methods import METHODS
from dalembert.friction.contact_problem import Limited, Reacting
from dalembert.friction.laws.contacts import (
    CONTACTS,
    BearingFriction,
    Bounded,
    Coulomb,
    FrictionContact,
    JointFriction,
    Unilateral,
)
from dalembert.friction.laws.laws import LAWS, Dry, ExpressionLaw, Hyperbolic, Law, StaticKinetic, Stribeck, Tabulated
from dalembert.friction.resolution import BatchResolution, FrictionCertificate, IndexSets, Resolution
from dalembert.friction.resolve import resolve
from dalembert.friction.uniqueness import UniquenessReport

__all__ = [
    "CONTACTS",
    "LAWS",
    "METHODS",
    "BatchResolution",
    "BearingFriction",
    "Bounded",
    "Coulomb",
    "Dry",
    "ExpressionLaw",
    "FrictionCertificate",
    "FrictionContact",
    "Hyperbolic",
    "IndexSets",
    "JointFriction",
    "Law",
    "Limited",
    "Reacting",
    "Resolution",
    "StaticKinetic",
    "Stribeck",
    "Tabulated",
    "Unilateral",
    "UniquenessReport",
    "resolve",
    "resolve_batch",
]
