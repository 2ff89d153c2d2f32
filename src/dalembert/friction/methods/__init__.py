"""Every method behind one contract; being in the list is being tested."""

from dalembert.friction.methods.contract import Found, Method
from dalembert.friction.methods.exact import exact
from dalembert.friction.methods.flowchart import flowchart
from dalembert.friction.methods.regularised import regularised
from dalembert.friction.methods.switch import switch

METHODS = {"exact": exact, "flowchart": flowchart, "switch": switch, "regularised": regularised}

__all__ = ["METHODS", "Found", "Method", "exact", "flowchart", "regularised", "switch"]
