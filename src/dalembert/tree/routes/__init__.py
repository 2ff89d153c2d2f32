"""Ways to solve the block matrix of a mechanism; `table.py` lists them."""
