"""Unilateral contacts in time: shapes, gaps, impacts, contacts that close and open."""

from dalembert.simulate.contact.shapes import CONTACT_CLASSES, Box, Contact, Heightfield, JointLimits, Plane, Sphere

__all__ = ["CONTACT_CLASSES", "Box", "Contact", "Heightfield", "JointLimits", "Plane", "Sphere"]
