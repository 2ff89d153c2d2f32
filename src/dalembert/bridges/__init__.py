"""Bridges to other libraries, each behind its extra: nothing here is imported before it is asked for."""
