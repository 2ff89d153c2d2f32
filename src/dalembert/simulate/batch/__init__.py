"""Many runs of one system by the loops of one run: see `batch.py`."""
